// SPDX-License-Identifier: Apache-2.0
// Trees of spans under pressure: bounds, what is kept of what is folded, state that is saved and
// loaded anywhere, phases of ranks, and no allocation once warm. What spans answer is shown by the
// recorded streams (golden/run_spans.py).
#include "cli/component_list.h"
#include "processors/spans/answer.h"
#include "processors/spans/phases.h"
#include "receivers/decode/spans/spans.h"
#include "tests/processors/state_copy.h"
#include "tests/support/detector.h"

#include <stdarg.h>

static struct span_forest forest;
static const struct state_row FOREST = {.name = "forest", .part = &span_forest_part};
static struct arena arena;
static struct span_tree_row *tree;
static uint64_t line_number;

static void open_forest(uint32_t spans, uint32_t tasks) {
    memset(&forest, 0, sizeof forest);
    state_rows_init(&FOREST, 1, &forest);
    forest.limits = (struct span_limits){
        .spans = spans, .tasks = tasks, .trees = 4, .text_bytes = UINT64_C(1) << 30};
    tree = span_forest_tree(&forest, (struct span_tree_key){.source = intern(SLICE("s"))}, 1);
    line_number = 0;
}

static void close_forest(void) {
    state_rows_release(&FOREST, 1, &forest);
}

static void setup(void) {
    arena_init(&arena, 64 << 10);
}

static void teardown(void) {
    arena_release(&arena);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// One line of the stream; single quotes stand for double ones.
__attribute__((format(printf, 1, 2))) static enum span_refusal say(const char *format, ...) {
    static char state[4096];
    char text[1024];
    struct event event = {0};
    struct decode_fault fault = {0};
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    ck_assert_uint_le(decoder_spans.state_size, sizeof state);
    struct slice record = {text, (size_t)size};
    enum decode_category category = decoder_spans.decode(state, record, &arena, &event, &fault);
    ck_assert_msg(category == DECODE_OK, "%s: %s %s", text, fault.field, fault.detail);
    enum span_refusal refusal = span_apply(&forest, tree, event.span, ++line_number);
    arena_reset(&arena);
    return refusal;
}

static void compute(const char *key, double start_s, double seconds, int64_t nbytes) {
    ck_assert_int_eq(
        say("{'ev':'transition','ts':%.6f,'key':'%s','to':'processing'}", start_s, key),
        SPAN_ACCEPTED);
    ck_assert_int_eq(say("{'ev':'transition','ts':%.6f,'key':'%s','to':'memory','nbytes':%lld,"
                         "'actions':[['compute',%.6f,%.6f]]}",
                         start_s + seconds, key, (long long)nbytes, start_s, start_s + seconds),
                     SPAN_ACCEPTED);
}

static struct span_answer answer_of(const char *id) {
    struct span_tree handle = {&forest, tree};
    struct span_answer answer;
    span_settle(&forest);
    uint32_t span = span_find(&forest, tree, slice_of(id));
    ck_assert_msg(span != SPAN_NONE, "%s is not there", id);
    span_answer_one(&handle, span, tree->now_s, &arena, &answer);
    return answer;
}

// -- bounds -------------------------------------------------------------------------------------

static void one_step(unsigned step, bool forget) {
    double at = 1000 + step;
    ck_assert_int_eq(say("{'ev':'tasks','ts':%.1f,'group':'g%u','span':{'name':['train','step'],"
                         "'ids':['t','s%u']},'tasks':['k%u']}",
                         at, step, step, step),
                     SPAN_ACCEPTED);
    char key[32];
    snprintf(key, sizeof key, "k%u", step);
    compute(key, at, 0.5, 10);
    ck_assert_int_eq(
        say("{'ev':'metrics','ts':%.1f,'worker':'w','data':[['execute','s%u','x','gpu',"
            "'seconds',0.25]]}",
            at, step),
        SPAN_ACCEPTED);
    if (forget)
        ck_assert_int_eq(say("{'ev':'transition','ts':%.1f,'key':'%s','to':'forgotten'}", at, key),
                         SPAN_ACCEPTED);
}

START_TEST(finished_spans_are_folded_into_their_parents_totals) {
    open_forest(32, 100000);
    say("{'ev':'start','ts':999,'nthreads':2}");
    for (unsigned step = 0; step < 1000; step++) {
        one_step(step, _i == 1);
        // Room is made for two, a step and its parent, and no more is taken up at once than an
        // eighth of the bound: 31 become 27.
        if (step > 32)
            ck_assert_uint_ge(tree->span_count, 31 - 32 / 8);
    }
    ck_assert_uint_le(keyed_rows_count(&forest.spans), 32);
    ck_assert_uint_le(table_live(&forest.groups), 64);
    ck_assert_uint_eq(tree->folded + tree->span_count, 1001);
    struct span_answer train = answer_of("t");
    ck_assert_uint_eq(train.folded, tree->folded);
    ck_assert_uint_eq(train.states[TASK_MEMORY] + train.states[TASK_FORGOTTEN], 1000);
    ck_assert_double_eq_tol(train.duration_s, 500, 1e-6);
    ck_assert_int_eq((int64_t)train.nbytes_total, 10000);
    ck_assert_double_eq_tol(train.active_cpu_s, 2 * 999.5, 1e-6);
    ck_assert_double_eq_tol(train.idle_s, 2 * 999.5 - 250, 1e-6);
    ck_assert_uint_eq(train.child_count, tree->span_count - 1);
    ck_assert_double_eq(train.start_s, 1000);
    ck_assert_double_eq_tol(train.stop_s, 1999.5, 1e-9);
    // The newest are there as they were.
    ck_assert_double_eq_tol(answer_of("s999").duration_s, 0.5, 1e-9);
    close_forest();
}
END_TEST

START_TEST(what_is_under_way_is_never_folded) {
    open_forest(16, 1000);
    say("{'ev':'start','ts':1}");
    for (unsigned i = 0; i < 15; i++) {
        ck_assert_int_eq(
            say("{'ev':'tasks','ts':%u,'group':'g%u','span':{'name':['a'],'ids':['s%u']}"
                ",'tasks':['k%u']}",
                i + 1, i, i, i),
            SPAN_ACCEPTED);
        ck_assert_int_eq(say("{'ev':'transition','ts':%u,'key':'k%u','to':'processing'}", i + 1, i),
                         SPAN_ACCEPTED);
    }
    // One is kept free for a default span.
    ck_assert_int_eq(say("{'ev':'tasks','ts':50,'group':'gy','span':{'name':['a'],'ids':['sy']},"
                         "'tasks':['ky']}"),
                     SPAN_LIMIT);
    ck_assert_uint_eq(tree->folded, 0);
    ck_assert_uint_eq(keyed_rows_count(&forest.spans), 15);
    ck_assert_uint_eq(tree->refused, 1);
    // When one is done there is room again.
    say("{'ev':'transition','ts':60,'key':'k0','to':'memory'}");
    ck_assert_int_eq(say("{'ev':'tasks','ts':61,'group':'gx','span':{'name':['a'],'ids':['sx']},"
                         "'tasks':['kx']}"),
                     SPAN_ACCEPTED);
    ck_assert_uint_eq(tree->folded, 1);
    close_forest();
}
END_TEST

START_TEST(ended_tasks_lose_their_keys_before_memory_grows) {
    open_forest(1000, 64);
    say("{'ev':'start','ts':999,'nthreads':2}");
    for (unsigned step = 0; step < 500; step++)
        one_step(step, false);
    ck_assert_uint_le(keyed_rows_count(&forest.tasks), 64);
    ck_assert_uint_eq(tree->dropped_tasks + tree->task_count, 500);
    ck_assert_uint_eq(tree->folded, 0);
    ck_assert_double_eq_tol(answer_of("t").duration_s, 250, 1e-6);
    ck_assert_uint_eq(answer_of("s0").states[TASK_MEMORY], 1);
    ck_assert_int_eq(say("{'ev':'transition','ts':3000,'key':'k0','to':'released'}"),
                     SPAN_UNKNOWN_TASK);
    // Data that no span asked for goes too.
    for (unsigned i = 0; i < 500; i++)
        ck_assert_int_eq(say("{'ev':'data','ts':3000,'group':'d%u','tasks':['d%u']}", i, i),
                         SPAN_ACCEPTED);
    ck_assert_uint_le(keyed_rows_count(&forest.tasks), 64);
    close_forest();
}
END_TEST

START_TEST(texts_are_bounded_and_given_back) {
    open_forest(100000, 100000);
    forest.limits.text_bytes = 1 << 16;
    say("{'ev':'start','ts':999}");
    enum span_refusal refusal = SPAN_ACCEPTED;
    for (unsigned i = 0; i < 5000 && refusal == SPAN_ACCEPTED; i++) {
        refusal =
            say("{'ev':'tasks','ts':%u,'group':'a-rather-long-name-of-a-group-that-needs-"
                "pieces-besides-its-row-%u','span':{'name':['x'],'ids':['id%u']},"
                "'tasks':['key%u']}",
                1000 + i, i, i, i);
        ck_assert_uint_le(forest.names.bytes, (1 << 16) + 4096);
    }
    // All of it was released, so done: old spans make room for new ones without end.
    ck_assert_int_eq(refusal, SPAN_ACCEPTED);
    ck_assert_uint_gt(tree->folded, 0);
    span_forest_drop_tree(&forest, tree);
    ck_assert_uint_eq(forest.names.bytes, 0);
    ck_assert_uint_eq(keyed_rows_count(&forest.spans) + keyed_rows_count(&forest.tasks) +
                          keyed_rows_count(&forest.paths) + keyed_rows_count(&forest.live_groups) +
                          table_live(&forest.items.table) + table_live(&forest.actions.table) +
                          table_live(&forest.groups) + table_live(&forest.points) +
                          table_live(&forest.refused) + table_live(&forest.texts),
                      0);
    close_forest();
}
END_TEST

START_TEST(the_default_span_is_taken_while_a_task_of_it_is_active) {
    open_forest(100, 100);
    say("{'ev':'start','ts':999}");
    say("{'ev':'tasks','ts':1000,'group':'g0','tasks':['k0']}");
    say("{'ev':'transition','ts':1001,'key':'k0','to':'processing'}");
    ck_assert_int_eq(say("{'ev':'tasks','ts':1002,'group':'g1','tasks':['k1']}"), SPAN_ACCEPTED);
    ck_assert_uint_eq(tree->span_count, 1);
    say("{'ev':'transition','ts':1003,'key':'k0','to':'memory'}");
    ck_assert_int_eq(say("{'ev':'tasks','ts':1004,'group':'g2','tasks':['k2']}"), SPAN_ACCEPTED);
    ck_assert_uint_eq(tree->span_count, 2);
    close_forest();
}
END_TEST

START_TEST(the_tree_told_of_least_recently_goes) {
    open_forest(1000, 1000);
    const char *const sources[] = {"b", "c", "d", "e"};
    say("{'ev':'start','ts':999}");
    one_step(1, false);
    for (uint32_t i = 0; i < 4; i++)
        span_forest_tree(&forest, (struct span_tree_key){.source = intern(slice_of(sources[i]))},
                         10 + i);
    ck_assert_uint_eq(keyed_rows_count(&forest.trees), 4);
    ck_assert_uint_eq(keyed_rows_count(&forest.spans), 0);
    ck_assert_uint_eq(forest.names.bytes, 0);
    close_forest();
}
END_TEST

START_TEST(nothing_is_allocated_once_warm) {
    open_forest(64, 256);
    say("{'ev':'start','ts':999,'nthreads':2}");
    for (unsigned step = 0; step < 2000; step++)
        one_step(step, step % 2 == 0);
    uint64_t before = memory_figures().allocations;
    for (unsigned step = 2000; step < 6000; step++)
        one_step(step, step % 2 == 0);
    ck_assert_uint_eq(memory_figures().allocations, before);
    close_forest();
}
END_TEST

// -- state --------------------------------------------------------------------------------------

// Saves the forest and loads it into another one, as a restart does.
static void through_a_restart(void) {
    struct state_copy copy = {0};
    struct state_list list = {0};
    struct span_limits limits = forest.limits;
    span_settle(&forest);
    state_rows_list(&FOREST, 1, &forest, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_save(&copy, &list.entries[i]);
    state_rows_release(&FOREST, 1, &forest);
    memset(&forest, 0, sizeof forest);
    state_rows_init(&FOREST, 1, &forest);
    forest.limits = limits;
    list = (struct state_list){0};
    state_rows_list(&FOREST, 1, &forest, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_load(&copy, &copy.entries[i], &list.entries[i]);
    state_rows_restored(&FOREST, 1, &forest);
    state_copy_release(&copy);
    uint32_t at = 0;
    tree = keyed_rows_next(&forest.trees, &at);
}

START_TEST(state_may_be_saved_anywhere) {
    for (int restarts = 0; restarts < 2; restarts++) {
        open_forest(48, 200);
        say("{'ev':'start','ts':999,'nthreads':2}");
        for (unsigned step = 0; step < 400; step++) {
            one_step(step, step % 3 == 0);
            if (restarts > 0 && step % 37 == 5)
                through_a_restart();
        }
        struct span_answer train = answer_of("t");
        ck_assert_double_eq_tol(train.duration_s, 200, 1e-6);
        ck_assert_double_eq_tol(train.idle_s, 2 * 399.5 - 100, 1e-6);
        ck_assert_uint_eq(tree->accepted, 1 + 400 * 4 + 134);
        ck_assert_uint_eq(tree->folded + tree->span_count, 401);
        close_forest();
        arena_reset(&arena);
    }
}
END_TEST

// -- phases -------------------------------------------------------------------------------------

enum { RANKS = 4, STEPS = 40, CROSSINGS_MAX = 4 * RANKS * STEPS };
static struct telemetry crossings[CROSSINGS_MAX];
static struct phase_scope scopes[CROSSINGS_MAX];
static struct event events[CROSSINGS_MAX];
static uint32_t crossing_count;

static void cross(int32_t rank, const char *label, uint32_t depth, bool enter, uint64_t time_ms,
                  const char *session) {
    struct phase_scope *scope = &scopes[crossing_count];
    *scope = (struct phase_scope){.label = intern(slice_of(label)),
                                  .depth = depth,
                                  .scope_id = SLICE("s"),
                                  .thread_id = 7,
                                  .sequence = crossing_count};
    crossings[crossing_count] =
        (struct telemetry){.timestamp_ns = time_ms * 1000000,
                           .type = enter ? TELEMETRY_PHASE_ENTER : TELEMETRY_PHASE_EXIT,
                           .rank = rank,
                           .world_size = RANKS,
                           .session = intern(slice_of(session)),
                           .job = intern(SLICE("llama")),
                           .scope = scope};
    events[crossing_count] = (struct event){.time_ns = time_ms * 1000000,
                                            .kind = EVENT_TELEMETRY,
                                            .job = crossings[crossing_count].job,
                                            .rank = rank,
                                            .telemetry = &crossings[crossing_count]};
    crossing_count++;
}

// Each step takes a second: rank 2 is 300 ms in forward, the others 100 ms.
static void make_steps(void) {
    crossing_count = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        for (int32_t rank = 0; rank < RANKS; rank++) {
            uint64_t at = 1000000 + step * 1000;
            cross(rank, "step", 1, true, at, "a");
            cross(rank, "step / forward", 2, true, at + 10, "a");
            cross(rank, "step / forward", 2, false, at + (rank == 2 ? 310 : 110), "a");
            cross(rank, "step", 1, false, at + 400, "a");
        }
    }
}

static struct batch judged(struct detector *spans, bool last) {
    struct batch batch = {.arena = &spans->arena,
                          .newest_ns = spans->newest_ns,
                          .evaluate = true,
                          .as_of_ns = last ? UINT64_MAX : spans->newest_ns,
                          .last = last};
    spans->type->processor.consume(spans->instance, &batch);
    return batch;
}

static void check_phases(const struct span_report *report) {
    ck_assert(report->from_telemetry);
    ck_assert_uint_eq(report->phase_count, 2);
    const struct span_phase *step = &report->phases[0], *forward = &report->phases[1];
    ck_assert(slice_equal(step->label, SLICE("step")));
    ck_assert(slice_equal(forward->label, SLICE("step / forward")));
    ck_assert_uint_eq(step->openings, STEPS);
    ck_assert_uint_eq(forward->openings, STEPS);
    ck_assert_uint_eq(forward->depth, 2);
    ck_assert_double_eq_tol(step->busy_s, RANKS * STEPS * 0.4, 1e-6);
    ck_assert_double_eq_tol(step->idle_s, 0, 1e-3);
    // All four wait for the slow one: 4 × 300 ms less 3 × 100 and 300.
    ck_assert_double_eq_tol(forward->thread_s, STEPS * 4 * 0.3, 1e-3);
    ck_assert_double_eq_tol(forward->busy_s, STEPS * (3 * 0.1 + 0.3), 1e-6);
    ck_assert_double_eq_tol(forward->idle_s, STEPS * 0.6, 1e-3);
    ck_assert_uint_eq(forward->rank_count, RANKS);
    ck_assert_int_eq(forward->ranks[0].rank, 2);
    ck_assert_double_eq_tol(forward->ranks[0].lag_s, STEPS * 0.2, 1e-6);
    ck_assert_uint_eq(forward->ranks[0].slowest, STEPS);
    ck_assert_uint_eq(forward->ranks[0].openings, STEPS);
    ck_assert_double_eq_tol(forward->ranks[1].lag_s, 0, 1e-9);
}

START_TEST(phases_in_any_order_of_arrival) {
    make_steps();
    uint64_t seed = 5;
    for (uint32_t round = 0; round < 20; round++) {
        struct detector spans = detector_open(&processor_spans);
        detector_set(&spans, "max_phase_spans", round % 2 == 0 ? "10000" : "16");
        detector_start(&spans);
        for (uint32_t i = crossing_count; round > 1 && i > 1; i--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint32_t j = (uint32_t)(seed >> 33) % i;
            struct event event = events[i - 1];
            events[i - 1] = events[j];
            events[j] = event;
        }
        detector_feed(&spans, events, crossing_count);
        struct batch batch = judged(&spans, true);
        ck_assert_uint_eq(batch.spans.count, 1);
        const struct span_report *report = &batch.spans.items[0];
        check_phases(report);
        ck_assert_uint_eq(report->span_count + report->folded, 1 + 2 * STEPS);
        ck_assert_uint_le(report->span_count, round % 2 == 0 ? 10000 : 17);
        ck_assert_uint_eq(report->note_count, round % 2);
        detector_close(&spans);
    }
}
END_TEST

static void restart(struct detector *spans) {
    struct state_copy copy = {0};
    struct state_list list = {0};
    component_list_state(spans->type, spans->instance, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_save(&copy, &list.entries[i]);
    component_stop(spans->type, spans->instance);
    memset(spans->instance, 0, spans->type->instance_size);
    detector_start(spans);
    list = (struct state_list){0};
    component_list_state(spans->type, spans->instance, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_load(&copy, &copy.entries[i], &list.entries[i]);
    component_restored(spans->type, spans->instance);
    state_copy_release(&copy);
}

// Also with what was kept, given to another instance between any two moments.
START_TEST(phases_live_moment_by_moment) {
    make_steps();
    struct detector spans = detector_open(&processor_spans);
    detector_start(&spans);
    for (uint32_t at = 0; at < crossing_count; at += RANKS * 4) {
        if (_i > 0 && at / (RANKS * 4) % 3 == 1)
            restart(&spans);
        detector_feed(&spans, events + at, RANKS * 4);
        struct batch batch = judged(&spans, false);
        ck_assert_uint_eq(batch.spans.count, 1);
        arena_reset(&spans.arena);
    }
    struct batch batch = judged(&spans, true);
    check_phases(&batch.spans.items[0]);
    detector_close(&spans);
}
END_TEST

START_TEST(a_rank_that_hangs_is_inside) {
    crossing_count = 0;
    for (int32_t rank = 0; rank < RANKS; rank++) {
        cross(rank, "step", 1, true, 1000, "a");
        if (rank != 3)
            cross(rank, "step", 1, false, 2000, "a");
    }
    cross(0, "step", 1, true, 9000, "a");
    struct detector spans = detector_open(&processor_spans);
    detector_start(&spans);
    detector_feed(&spans, events, crossing_count);
    struct batch batch = judged(&spans, true);
    const struct span_phase *step = &batch.spans.items[0].phases[0];
    ck_assert_uint_eq(step->openings, 2);
    ck_assert_int_eq(step->ranks[0].rank, 3); // 8 s inside against 1 s
    ck_assert(step->ranks[0].inside);
    ck_assert_double_eq_tol(step->ranks[0].lag_s, 7, 1e-6);
    ck_assert(!step->ranks[2].inside);
    detector_close(&spans);
}
END_TEST

START_TEST(after_a_restart_openings_are_counted_anew) {
    crossing_count = 0;
    for (int32_t rank = 0; rank < RANKS; rank++) {
        for (uint64_t step = 0; step < (rank == 1 ? 2u : 3u); step++) {
            cross(rank, "step", 1, true, 1000 + step * 1000, "a");
            cross(rank, "step", 1, false, 1500 + step * 1000, "a");
        }
        cross(rank, "step", 1, true, 100000, "b");
        cross(rank, "step", 1, false, 100500, "b");
    }
    struct detector spans = detector_open(&processor_spans);
    detector_start(&spans);
    detector_feed(&spans, events, crossing_count);
    struct batch batch = judged(&spans, true);
    const struct span_report *report = &batch.spans.items[0];
    ck_assert_uint_eq(report->phases[0].openings, 4);
    ck_assert_double_eq_tol(report->phases[0].busy_s, 15 * 0.5, 1e-6);
    ck_assert_double_eq_tol(report->phases[0].ranks[0].lag_s, 0, 1e-9);
    uint32_t at = 0, span, restarted = 0;
    while (report->ask->next(report->tree, &at, &span)) {
        struct span_answer answer;
        report->ask->answer(report->tree, span, report->now_s, &spans.arena, &answer);
        restarted += slice_equal(answer.id, SLICE("step#2.1"));
    }
    ck_assert_uint_eq(restarted, 1);
    detector_close(&spans);
}
END_TEST

// A job that is forgotten takes its phases, its spans and what waited along; it may come again.
START_TEST(a_job_that_is_forgotten_leaves_nothing) {
    make_steps();
    struct forgotten_job jobs[] = {{.job = intern(SLICE("nobody"))},
                                   {.job = intern(SLICE("llama"))}};
    struct forgotten forgotten = {.jobs = jobs, .job_count = 2};
    if (_i == 1)
        forgotten = (struct forgotten){.everything = true};
    struct detector spans = detector_open(&processor_spans);
    detector_start(&spans);
    for (int round = 0; round < 3; round++) {
        // The last step waits to be judged when the job goes.
        uint32_t last = RANKS * 4;
        detector_feed(&spans, events, crossing_count - last);
        ck_assert_uint_eq(judged(&spans, false).spans.count, 1);
        detector_feed(&spans, events + crossing_count - last, last);
        struct batch gone = {.arena = &spans.arena,
                             .evaluate = true,
                             .as_of_ns = spans.newest_ns,
                             .forgotten = &forgotten};
        spans.type->processor.consume(spans.instance, &gone);
        ck_assert_uint_eq(gone.spans.count, 0);
        arena_reset(&spans.arena);
    }
    detector_feed(&spans, events, crossing_count);
    struct batch batch = judged(&spans, true);
    ck_assert_uint_eq(batch.spans.count, 1);
    check_phases(&batch.spans.items[0]); // as if it had never been there
    ck_assert_uint_eq(batch.spans.items[0].span_count, 1 + 2 * STEPS);
    detector_close(&spans);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("spans_engine");
    TCase *cases = tcase_create("bounds");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, finished_spans_are_folded_into_their_parents_totals, 0, 2);
    tcase_add_test(cases, what_is_under_way_is_never_folded);
    tcase_add_test(cases, ended_tasks_lose_their_keys_before_memory_grows);
    tcase_add_test(cases, texts_are_bounded_and_given_back);
    tcase_add_test(cases, the_default_span_is_taken_while_a_task_of_it_is_active);
    tcase_add_test(cases, the_tree_told_of_least_recently_goes);
    tcase_add_test(cases, nothing_is_allocated_once_warm);
    tcase_add_test(cases, state_may_be_saved_anywhere);
    tcase_add_test(cases, phases_in_any_order_of_arrival);
    tcase_add_loop_test(cases, phases_live_moment_by_moment, 0, 2);
    tcase_add_test(cases, a_rank_that_hangs_is_inside);
    tcase_add_test(cases, after_a_restart_openings_are_counted_anew);
    tcase_add_loop_test(cases, a_job_that_is_forgotten_leaves_nothing, 0, 2);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

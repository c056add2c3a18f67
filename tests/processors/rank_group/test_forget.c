// SPDX-License-Identifier: Apache-2.0
// Jobs that are over make room: memory follows the jobs that run. Those that come back begin anew,
// and nothing of it depends on what raced ahead.
#include "base/metrics/metrics.h"
#include "tests/processors/evaluation_text.h"
#include "tests/processors/state_copy.h"

#include <check.h>

enum { TEXT_MAX = 1 << 22, TICKS = 12 };
static const uint64_t TICK_NS = 250000000;

static struct chain *forgetful_chain(const char *job_id, uint64_t idle_ns) {
    struct chain *chain = chain_new(false);
    chain->config.job_filter.job_id = job_id;
    chain->config.job_filter.idle_jobs_expire.ns = (int64_t)idle_ns;
    chain->timing.settle.ns = (int64_t)SECOND / 2;
    chain_start(chain);
    return chain;
}

static string_id numbered(const char *name, uint32_t job, uint32_t rank) {
    char text[32];
    snprintf(text, sizeof text, "%s-%u-%u", name, job, rank);
    return intern(slice_of(text));
}

static void add_sample(struct chain *chain, uint32_t job, int32_t rank, uint64_t time_ns,
                       int64_t used_bytes) {
    struct telemetry sample = chain_sample(rank, time_ns, used_bytes);
    sample.job = numbered("job", job, 0);
    sample.session = numbered("session", job, (uint32_t)rank);
    chain_add(chain, &sample);
}

static void add_phase(struct chain *chain, uint32_t job, int32_t rank, uint64_t time_ns) {
    struct phase_scope *scope = arena_zero(&chain->events_arena, 1, sizeof *scope);
    scope->label = intern(SLICE("step"));
    scope->thread_name = intern(SLICE("main"));
    scope->scope_id = SLICE("a scope id that is long enough to need more than one piece of text");
    struct telemetry boundary = chain_sample(rank, time_ns, 0);
    boundary.type = TELEMETRY_PHASE_ENTER;
    boundary.job = numbered("job", job, 0);
    // Some processes have no session: they are known by host and pid.
    if (job % 3 > 0)
        boundary.session = numbered("session", job, (uint32_t)rank);
    else
        boundary.session = STRING_NONE;
    boundary.scope = scope;
    chain_add(chain, &boundary);
}

// Three seconds of a job of two ranks, the second of which leaks. Returns the verdicts put out;
// `out` (or NULL): all that was said.
static uint32_t run_short_job(struct chain *chain, uint32_t job, uint64_t from_ns,
                              struct buffer *out) {
    uint32_t verdicts = 0;
    for (uint32_t tick = 0; tick < TICKS; tick++) {
        uint64_t now_ns = from_ns + tick * TICK_NS;
        for (int32_t rank = 0; rank < 2; rank++) {
            if (tick == 2)
                add_phase(chain, job, rank, now_ns);
            if (job % 3 == 0) { // and some samples have none
                struct telemetry sample = chain_sample(rank, now_ns, 1000 * MIB);
                sample.session = STRING_NONE;
                sample.job = numbered("job", job, 0);
                chain_add(chain, &sample);
            } else {
                add_sample(chain, job, rank, now_ns,
                           (1000 + (rank == 1 && tick > 3 ? (tick - 3) * 40 : 0)) * MIB);
            }
        }
        if (tick % 4 == 3)
            verdicts += chain_evaluate(chain, now_ns, false)->verdicts.count;
        if (tick % 4 == 3 && out != NULL)
            text_of_batch(&chain->batch, true, out);
    }
    return verdicts;
}

static uint64_t rows_ever(const struct chain *chain) {
    uint64_t rows = 0;
    for (int stage = 0; stage < CHAIN_STAGES; stage++) {
        struct state_list list;
        list_stage(chain, stage, &list);
        for (uint32_t i = 0; i < list.count; i++)
            rows += list.entries[i].table == NULL ? 0 : list.entries[i].table->used;
    }
    return rows;
}

START_TEST(test_thousands_of_short_jobs_leave_nothing_behind) {
    static const char *const modes[] = {"each", "auto"};
    enum { JOBS = 5000, WARM = 100 };
    for (uint32_t job = 0; job < JOBS; job++) {
        numbered("job", job, 0);
        numbered("session", job, 0);
        numbered("session", job, 1);
    }
    struct chain *chain = forgetful_chain(modes[_i], 10 * SECOND);
    uint64_t now_ns = SECOND, rows = 0, bytes = 0;
    uint32_t verdicts = 0;
    for (uint32_t job = 0; job < JOBS; job++) {
        verdicts += run_short_job(chain, job, now_ns, NULL);
        now_ns += 3 * SECOND;
        if (job == WARM) {
            rows = rows_ever(chain);
            bytes = memory_figures().live_bytes;
        }
    }
    ck_assert_uint_le(rows_ever(chain), rows);
    ck_assert_uint_le(memory_figures().live_bytes, bytes);
    if (_i == 0)
        ck_assert_uint_ge(verdicts, JOBS / 2);
    // None was left out: 64 may be known at the same time, and no more than five were.
    const struct evaluation *evaluation = &chain_evaluate(chain, 0, true)->evaluations[0];
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        ck_assert_ptr_null(strstr(evaluation->notes.items[i].data, "max_"));
    chain_end(chain);
}
END_TEST

START_TEST(test_a_job_that_comes_back_begins_anew) {
    struct chain *chain = forgetful_chain("each", 20 * SECOND);
    ck_assert_uint_ge(run_short_job(chain, 1, SECOND, NULL), 1);
    char id[VERDICT_ID_SIZE];
    // The open verdict is not resolved: the job ended with it.
    for (uint64_t at = 5; at < 40; at += 5) {
        add_sample(chain, 9, 0, at * SECOND, MIB);
        ck_assert_uint_eq(chain_evaluate(chain, at * SECOND, false)->verdicts.count, 0);
        ck_assert_uint_eq(chain->batch.forgotten != NULL, at == 25);
        ck_assert_uint_eq(chain->batch.evaluation_count, at < 25 ? 2 : 1);
    }
    uint32_t opened = 0;
    for (uint32_t tick = 0; tick < 40; tick++) {
        for (int32_t rank = 1; rank >= 0; rank--) // so that each gets its old number
            add_sample(chain, 1, rank, 40 * SECOND + tick * TICK_NS,
                       (1000 + (rank == 1 && tick > 3 ? (tick - 3) * 40 : 0)) * MIB);
        chain_evaluate(chain, 40 * SECOND + tick * TICK_NS, false);
        for (uint32_t i = 0; i < chain->batch.verdicts.count; i++) {
            const struct verdict *verdict = &chain->batch.verdicts.items[i];
            if (verdict->state == VERDICT_OPEN) {
                memcpy(id, verdict->id, sizeof id);
                opened++;
                // Seen at 41.5 s, when it had grown by 100 MiB; it has to stand again.
                ck_assert_uint_ge(40 * SECOND + tick * TICK_NS, 42 * SECOND);
            }
            ck_assert_str_eq(verdict->id, id);
        }
    }
    ck_assert_uint_eq(opened, 1);
    // Behind the job that began at 5 s.
    const struct evaluation *evaluation = &chain->batch.evaluations[1];
    ck_assert_uint_eq(evaluation->ranks[0].first_ns, 40 * SECOND);
    chain_end(chain);
}
END_TEST

START_TEST(test_max_jobs_counts_jobs_that_run) {
    static const char *const modes[] = {"each", "auto"};
    struct chain *chain = chain_new(false);
    chain->config.job_filter.job_id = modes[_i];
    chain->config.job_filter.max_jobs = 2;
    chain->config.job_filter.idle_jobs_expire.ns = 8 * (int64_t)SECOND;
    chain_start(chain);
    for (uint32_t job = 1; job <= 6; job++) {
        for (int tick = 0; tick < 20; tick++)
            add_sample(chain, job, 0, job * 6 * SECOND + (uint64_t)tick * 100 * MS, MIB);
        chain_evaluate(chain, job * 6 * SECOND + 2 * SECOND, false);
        chain_evaluate(chain, job * 6 * SECOND + 6 * SECOND, false);
        ck_assert_uint_le(chain->batch.evaluation_count, 2);
        ck_assert_uint_ge(chain->batch.evaluation_count, 1);
        const struct evaluation *evaluation = &chain->batch.evaluations[0];
        for (uint32_t i = 0; i < evaluation->notes.count; i++)
            ck_assert_ptr_null(strstr(evaluation->notes.items[i].data, "max_jobs"));
    }
    add_sample(chain, 7, 0, 44 * SECOND, MIB);
    add_sample(chain, 8, 0, 44 * SECOND, MIB);
    const struct evaluation *evaluation =
        &chain_evaluate(chain, 45 * SECOND, false)->evaluations[0];
    bool noted = false;
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        noted |= strstr(evaluation->notes.items[i].data, "max_jobs") != NULL;
    ck_assert(noted);
    chain_end(chain);
}
END_TEST

// Its clock is two hours behind the other job's: it is there as long as it speaks, however seldom.
START_TEST(test_a_job_with_a_slow_clock_is_not_idle) {
    struct chain *chain = forgetful_chain("each", 30 * SECOND);
    uint64_t behind_ns = 7200 * SECOND;
    for (uint64_t at = 7300; at < 7400; at++) {
        add_sample(chain, 1, 0, at * SECOND, MIB);
        if (at % 20 == 0 && at < 7365)
            add_sample(chain, 2, 0, at * SECOND - behind_ns, MIB);
        chain_evaluate(chain, at * SECOND, false);
        // Last heard at 7360.
        ck_assert_uint_eq(chain->batch.forgotten != NULL, at == 7391);
        ck_assert_uint_eq(chain->batch.evaluation_count, at <= 7390 ? 2 : 1);
    }
    chain_end(chain);
}
END_TEST

// A job that came when there was no room for its ranks takes no place for good.
START_TEST(test_a_job_without_samples_is_forgotten) {
    struct chain *chain = chain_new(false);
    chain->config.job_filter.job_id = "each";
    chain->config.job_filter.max_jobs = 6;
    chain->config.rank_group.max_ranks = 1; // 4 of all jobs
    chain_start(chain);
    for (uint32_t job = 1; job < 5; job++)
        add_sample(chain, job, 0, SECOND, MIB);
    for (uint32_t job = 5; job < 20; job++) {
        add_sample(chain, job, 0, job * SECOND, MIB);
        chain_evaluate(chain, job * SECOND, false);
        ck_assert_ptr_nonnull(chain->batch.forgotten);
        ck_assert_uint_eq(chain->batch.forgotten->job_count, 1);
        const struct evaluation *evaluation = &chain->batch.evaluations[0];
        for (uint32_t i = 0; i < evaluation->notes.count; i++)
            ck_assert_ptr_null(strstr(evaluation->notes.items[i].data, "max_jobs"));
    }
    chain_end(chain);
}
END_TEST

// Samples without a job belong to the only job again once all others were forgotten.
START_TEST(test_a_pool_opens_again) {
    struct chain *chain = forgetful_chain("auto", 10 * SECOND);
    for (uint64_t round = 0; round < 3; round++) {
        uint64_t from_ns = (1 + 100 * round) * SECOND;
        struct telemetry nameless = chain_sample(3, from_ns, MIB);
        nameless.job = STRING_NONE;
        chain_add(chain, &nameless);
        add_sample(chain, 1, 0, from_ns, MIB);
        ck_assert_uint_eq(chain_evaluate(chain, from_ns + SECOND, false)->evaluations[0].rank_count,
                          2);
        add_sample(chain, 2, 0, from_ns + 2 * SECOND, MIB);
        nameless.timestamp_ns = from_ns + 2 * SECOND;
        chain_add(chain, &nameless);
        ck_assert_uint_eq(
            chain_evaluate(chain, from_ns + 3 * SECOND, false)->evaluations[0].rank_count, 1);
        ck_assert_uint_eq(chain_evaluate(chain, from_ns + 50 * SECOND, false)->evaluation_count, 0);
        ck_assert_uint_eq(chain->batch.forgotten->job_count, 2);
    }
    chain_end(chain);
}
END_TEST

START_TEST(test_never_and_once_keep_all) {
    struct chain *chain = _i == 0 ? forgetful_chain("each", DURATION_SPECIAL) : chain_begin(true);
    for (uint32_t job = 0; job < 3; job++)
        add_sample(chain, job, 0, (1 + job * 100000) * SECOND, MIB);
    if (_i == 0) {
        chain_evaluate(chain, 10000000 * SECOND, false);
        ck_assert_ptr_null(chain->batch.forgotten);
        ck_assert_uint_eq(chain->batch.evaluation_count, 3);
    }
    chain_evaluate(chain, 0, true);
    ck_assert_ptr_null(chain->batch.forgotten);
    chain_end(chain);
}
END_TEST

// Room that one job's figures need for a moment is the next one's, with intervals (half a MiB of
// counts) and without (all processes' claims).
START_TEST(test_an_evaluation_of_many_jobs_takes_little_memory) {
    enum { JOBS = 500 };
    struct chain *chain = chain_new(_i < 2);
    chain->config.job_filter.job_id = "each";
    chain->config.job_filter.max_jobs = JOBS;
    chain_start(chain);
    for (uint32_t tick = 0; tick < 1 + (uint32_t)(_i % 2); tick++)
        for (uint32_t job = 0; job < JOBS; job++)
            for (int32_t rank = 0; rank < 4; rank++)
                add_sample(chain, job, rank, SECOND + tick * SECOND + job, MIB);
    chain_evaluate(chain, SECOND, false);
    ck_assert_uint_eq(chain->batch.evaluation_count, 1);
    uint64_t peak = memory_figures().live_bytes;
    chain_evaluate(chain, 10 * SECOND, true);
    ck_assert_uint_eq(chain->batch.evaluation_count, JOBS);
    ck_assert_uint_le(memory_figures().live_bytes, peak + (8u << 20));
    for (uint32_t i = 0; i < JOBS; i++) {
        ck_assert_uint_eq(chain->batch.evaluations[i].rank_count, 4);
        ck_assert(chain->batch.evaluations[i].median_interval_ns ==
                  (_i % 2 == 0 ? 100 : 1000) * (__int128)MS);
    }
    chain_end(chain);
}
END_TEST

// The last evaluation forgets nobody: what a job ended with is in the report.
START_TEST(test_the_last_evaluation_shows_all_that_is_known) {
    struct chain *chain = forgetful_chain("each", 10 * SECOND);
    add_sample(chain, 1, 0, SECOND, MIB);
    add_sample(chain, 2, 0, 100 * SECOND, MIB);
    ck_assert_uint_eq(chain_evaluate(chain, 0, true)->evaluation_count, 2);
    chain_end(chain);
}
END_TEST

// A job comes back after its time; its first new samples arrive before or after the evaluation
// that forgets it.
static void come_back(bool early, struct buffer *out) {
    struct chain *chain = forgetful_chain("each", 20 * SECOND);
    run_short_job(chain, 1, SECOND, NULL);
    for (int phase = 0; phase < 2; phase++) {
        if ((phase == 0) == early)
            add_phase(chain, 1, 1, 26 * SECOND + TICK_NS);
        if ((phase == 0) == early)
            for (uint32_t tick = 0; tick < 60; tick++)
                add_sample(chain, 1, (int32_t)(tick % 3), 26 * SECOND + tick * TICK_NS / 3,
                           (1000 + (tick % 3 == 1 ? tick * 20 : 0)) * MIB);
        add_sample(chain, 2, 0, 25 * SECOND, MIB);
        if (phase == 0)
            chain_evaluate(chain, 25 * SECOND, false);
    }
    ck_assert_uint_eq(chain->batch.forgotten->job_count, 1);
    for (uint64_t at = 27; at < 34; at++)
        text_of_batch(chain_evaluate(chain, at * SECOND, false), true, out);
    // Late, before the moment at which it was forgotten: no earlier row is there to be put right.
    add_sample(chain, 1, 0, 24 * SECOND, 900 * MIB);
    text_of_batch(chain_evaluate(chain, 34 * SECOND, false), true, out);
    chain_end(chain);
}

START_TEST(test_what_raced_ahead_makes_no_difference) {
    struct buffer early, late;
    buffer_init(&early, TEXT_MAX);
    buffer_init(&late, TEXT_MAX);
    come_back(true, &early);
    come_back(false, &late);
    buffer_append_char(&early, '\0');
    buffer_append_char(&late, '\0');
    size_t at = 0;
    while (early.data[at] == late.data[at] && at + 1 < early.size)
        at++;
    size_t from = at < 200 ? 0 : at - 200;
    ck_assert_msg(early.size == late.size && at + 1 == early.size, "%.500s\n-- or --\n%.500s",
                  early.data + from, late.data + from);
    ck_assert_ptr_nonnull(strstr(early.data, "\"state\":\"open\""));
    ck_assert_ptr_nonnull(strstr(early.data, " in step"));
    buffer_release(&early);
    buffer_release(&late);
}
END_TEST

// A chain whose samples were lost, or do not fit together, begins like one that was just started:
// no stage goes on with what it remembers of them.
START_TEST(test_rows_without_samples_are_not_believed) {
    struct buffer fresh, damaged;
    buffer_init(&fresh, TEXT_MAX);
    buffer_init(&damaged, TEXT_MAX);
    struct chain *chain = forgetful_chain("each", 100 * SECOND);
    run_short_job(chain, 1, 50 * SECOND, &fresh);
    chain_end(chain);
    chain = forgetful_chain("each", 100 * SECOND);
    run_short_job(chain, 1, SECOND, NULL);
    struct state_copy copy;
    state_save(chain, &copy);
    chain_end(chain);
    for (uint32_t i = 0; i < copy.count; i++) {
        struct entry_copy saved = copy.entries[i];
        bool needed = strncmp(saved.name, "rank_group.", 11) == 0 && saved.used > 0;
        if (!needed && strcmp(saved.name, "rank_group.kept") != 0)
            continue;
        if (saved.used > 0)
            copy.entries[i] = (struct entry_copy){
                .name = saved.name, .free_head = TABLE_NO_ROW, .bytes = saved.bytes};
        else
            memset(saved.bytes, 0, saved.size);
        chain = forgetful_chain("each", 100 * SECOND);
        state_load(chain, &copy);
        buffer_reset(&damaged);
        run_short_job(chain, 1, 50 * SECOND, &damaged);
        buffer_append_char(&damaged, '\0');
        ck_assert_msg(fresh.size + 1 == damaged.size &&
                          memcmp(fresh.data, damaged.data, fresh.size) == 0,
                      "without %s: %.1000s", saved.name, damaged.data);
        chain_end(chain);
        copy.entries[i] = saved;
    }
    state_copy_release(&copy);
    buffer_release(&fresh);
    buffer_release(&damaged);
}
END_TEST

static void teardown(void) {
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

int main(void) {
    Suite *suite = suite_create("forget");
    TCase *tests = tcase_create("forget");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_loop_test(tests, test_thousands_of_short_jobs_leave_nothing_behind, 0, 2);
    tcase_add_test(tests, test_a_job_that_comes_back_begins_anew);
    tcase_add_loop_test(tests, test_max_jobs_counts_jobs_that_run, 0, 2);
    tcase_add_test(tests, test_a_job_with_a_slow_clock_is_not_idle);
    tcase_add_test(tests, test_a_job_without_samples_is_forgotten);
    tcase_add_test(tests, test_a_pool_opens_again);
    tcase_add_loop_test(tests, test_never_and_once_keep_all, 0, 2);
    tcase_add_loop_test(tests, test_an_evaluation_of_many_jobs_takes_little_memory, 0, 4);
    tcase_add_test(tests, test_the_last_evaluation_shows_all_that_is_known);
    tcase_add_test(tests, test_what_raced_ahead_makes_no_difference);
    tcase_add_test(tests, test_rows_without_samples_are_not_believed);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

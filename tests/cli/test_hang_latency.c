// SPDX-License-Identifier: Apache-2.0
// How soon a live pipeline names a hang, in event time: the moment at which it is judged, and the
// newest event that had come when it was said. No clock is read.
#include "cli/component_list.h"
#include "pipeline/model/node_event.h"
#include "pipeline/runtime/runner.h"
#include "tests/support/detector.h"

static const uint64_t SECOND = 1000000000;
static const uint64_t NOON = UINT64_C(1795000000) * 1000000000; // a multiple of 10 s

enum { RANKS = 4, STUCK_S = 60, EVERY_S = 10 };

static struct plan_pipeline plan;
static struct runner runner;
static struct detector detector;
static struct arena arena;
static uint32_t row;
static uint64_t newest_ns;          // of the events that came
static uint64_t judged_ns, said_ns; // when it was named; 0: not yet

static void watch_verdicts(void *instance, struct batch *batch) {
    (void)instance;
    if (batch->verdicts.count == 0 || judged_ns != 0)
        return;
    ck_assert_str_eq(batch->verdicts.items[0].pattern, "nccl_hang");
    judged_ns = batch->as_of_ns;
    said_ns = newest_ns;
}

static const struct component_type diary = {
    .name = "diary", .kind = COMPONENT_PROCESSOR, .processor = {.consume = watch_verdicts}};

static void begin(int64_t lateness_s) {
    plan = (struct plan_pipeline){.name = "p",
                                  .timing = {.evaluate_every = {EVERY_S * (int64_t)SECOND},
                                             .allowed_lateness = {lateness_s * (int64_t)SECOND},
                                             .settle = {10 * (int64_t)SECOND},
                                             .idle_timeout = {INT64_C(3600) * (int64_t)SECOND}}};
    arena_init(&arena, 1 << 14);
    detector = detector_open(&processor_nccl_hang);
    detector_start(&detector);
    runner_init(&runner, &plan, 16, false);
    lock_take(&runner.lock);
    runner.stages = memory_zero(2, sizeof *runner.stages);
    runner.stages[0].type = &processor_nccl_hang;
    runner.stages[0].instance = detector.instance;
    runner.stages[1].type = &diary;
    runner.stage_count = 2;
    row = runner_source_row(&runner, intern(SLICE("file")), SLICE("ranks"));
    newest_ns = judged_ns = said_ns = 0;
}

static void end(void) {
    lock_release(&runner.lock);
    runner_release(&runner);
    detector_close(&detector);
    arena_release(&arena);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// What the entry says of an operation of this rank, at a time; all events come in order.
static void tell(int32_t rank, int64_t sequence, enum flight_state state, uint64_t created_ns,
                 uint64_t time_ns) {
    struct flight_entry entry = {.collective_seq_id = sequence,
                                 .group = rank < RANKS ? SLICE("0") : SLICE("1"),
                                 .desc = rank < RANKS ? SLICE("default_pg") : SLICE("other"),
                                 .name = SLICE("nccl:all_reduce"),
                                 .created_ns = created_ns,
                                 .started_ns = created_ns,
                                 .completed_ns = state == FLIGHT_COMPLETED ? time_ns : 0,
                                 .state = state};
    struct flight_dump record = {.rank = rank,
                                 .reports_states = true,
                                 .backend = SLICE("nccl"),
                                 .entries = &entry,
                                 .entry_count = 1};
    struct event event = {
        .time_ns = time_ns, .rank = rank, .kind = EVENT_FLIGHT, .flight = &record};
    struct source source = {0};
    source_times_note(&source.times, time_ns, runner_max_jump(&runner));
    struct source *touched = &source;
    struct delivery delivery = {.turned = true,
                                .events = &event,
                                .count = 1,
                                .kinds = 1u << EVENT_FLIGHT,
                                .touched = &touched,
                                .touched_count = 1,
                                .begun_ns = time_ns};
    newest_ns = time_ns;
    runner_consume(&runner, &delivery, &row);
    (void)runner_advance(&runner, time_ns);
}

// Rank 3 never comes to operation 2, which the others begin so many seconds after a moment, while
// another group goes on once a second. It is named at the first multiple of evaluate_every after
// the threshold, and said when the watermark has passed that: with 5 s of lateness within 15 s.
static void hang(uint64_t offset_s, uint64_t lateness_s) {
    begin((int64_t)lateness_s);
    uint64_t start_ns = NOON + offset_s * SECOND, threshold_ns = start_ns + STUCK_S * SECOND;
    for (int32_t rank = 0; rank < RANKS; rank++)
        tell(rank, 1, FLIGHT_COMPLETED, start_ns - SECOND, start_ns - SECOND + 1);
    for (int32_t rank = 0; rank < RANKS - 1; rank++)
        tell(rank, 2, FLIGHT_STARTED, start_ns, start_ns);
    for (uint64_t s = 1; s <= 120 && judged_ns == 0; s++)
        tell(9, (int64_t)s, FLIGHT_COMPLETED, start_ns + s * SECOND, start_ns + s * SECOND);
    ck_assert_uint_ne(judged_ns, 0);
    ck_assert_uint_ge(judged_ns, threshold_ns);
    ck_assert_uint_le(judged_ns - threshold_ns, EVERY_S * SECOND);
    ck_assert_uint_le(said_ns - threshold_ns, (EVERY_S + lateness_s) * SECOND);
    end();
}

START_TEST(a_hang_is_named_within_15_s) {
    hang((uint64_t)_i, 5);
}
END_TEST

START_TEST(later_by_what_the_lateness_is_more) {
    hang((uint64_t)_i, 10);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("hang_latency");
    TCase *tests = tcase_create("event time");
    tcase_add_loop_test(tests, a_hang_is_named_within_15_s, 0, EVERY_S);
    tcase_add_loop_test(tests, later_by_what_the_lateness_is_more, 0, EVERY_S);
    suite_add_tcase(suite, tests);
    SRunner *srunner = srunner_create(suite);
    srunner_run_all(srunner, CK_ENV);
    int failed = srunner_ntests_failed(srunner);
    srunner_free(srunner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// One pipeline on a clock of the test's own: when it looks, and what holds it back.
#include "pipeline/runtime/runner.h"

#include "base/memory.h"
#include "pipeline/runtime/feed_run.h"

#include <check.h>

static const uint64_t SECOND = 1000000000;
static const uint64_t MINUTE = 60 * UINT64_C(1000000000);
static const uint64_t START = 1000 * UINT64_C(1000000000); // of the clock

enum { SOURCES = 3, MOMENTS_MAX = 64 };

static struct plan_pipeline plan;
static struct runner runner;
static uint32_t rows[SOURCES];
static uint64_t judged[MOMENTS_MAX], judged_count; // moments, in seconds of the events' clock
static uint64_t looks;

static void diary_consume(void *instance, struct batch *batch) {
    (void)instance;
    if (!batch->evaluate)
        return;
    ck_assert_uint_lt(judged_count, MOMENTS_MAX);
    judged[judged_count++] = batch->as_of_ns / SECOND;
}

static const struct component_type diary_type = {
    .name = "diary", .kind = COMPONENT_PROCESSOR, .processor = {.consume = diary_consume}};

static void setup(void) {
    plan = (struct plan_pipeline){.name = "p",
                                  .timing = {.evaluate_every = {10 * (int64_t)SECOND},
                                             .allowed_lateness = {5 * (int64_t)SECOND},
                                             .settle = {10 * (int64_t)SECOND},
                                             .idle_timeout = {(int64_t)MINUTE}}};
    runner_init(&runner, &plan, 16, false);
    lock_take(&runner.lock);
    runner.stages = memory_zero(1, sizeof *runner.stages);
    runner.stages[0].type = &diary_type;
    runner.stage_count = 1;
    static const char *const names[SOURCES] = {"a", "b", "c"};
    for (uint32_t i = 0; i < SOURCES; i++)
        rows[i] = runner_source_row(&runner, intern(SLICE("file")), slice_of(names[i]));
    judged_count = looks = 0;
}

static void teardown(void) {
    lock_release(&runner.lock);
    runner_release(&runner);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// One event of this source, at a moment of the events' clock; it came at `now`.
static void come(uint32_t index, uint64_t event_ns, uint64_t now) {
    struct source source = {0};
    source_times_note(&source.times, event_ns, runner_max_jump(&runner));
    struct source *touched = &source;
    struct event event = {.time_ns = event_ns};
    struct delivery delivery = {
        .events = &event, .count = 1, .touched = &touched, .touched_count = 1, .begun_ns = now};
    runner_consume(&runner, &delivery, &rows[index]);
    (void)runner_advance(&runner, now);
}

// What the main thread does from one moment to another: it looks, and sleeps until its next look.
static void live_through(uint64_t from, uint64_t until) {
    for (uint64_t now = from; now < until; looks++) {
        ck_assert_uint_lt(looks, 10000);
        if (!runner_advance(&runner, now))
            runner_idle(&runner);
        uint64_t next = runner_next_look(&runner);
        now = next > now ? next : now;
    }
}

// One source speaks each 100 ms, the others have ended; the main thread has nothing to do. `holds`:
// one more receiver never gets that far, as with a broker that is away.
START_TEST(a_silent_source_wakes_nobody) {
    runner.holds = _i == 1 ? 1 : 0;
    runner.hold_until_ns = START + MINUTE;
    come(1, 1 * SECOND, START);
    come(2, 2 * SECOND, START + SECOND);
    uint64_t now = START;
    for (; now < START + 5 * MINUTE; now += SECOND / 10) {
        come(0, now - START + SECOND, now);
        live_through(now, now + SECOND / 10);
    }
    // A look with each event here, which is more than the service takes, and a few of its own.
    uint64_t events = 5 * MINUTE / (SECOND / 10);
    ck_assert_msg(looks < events + 10, "%llu looks", (unsigned long long)(looks - events));
    ck_assert_uint_eq(judged[judged_count - 1], 290); // 300 has not passed by more than 5 s
    // Then all are silent: judged to the end once, and nothing is looked at any more.
    looks = 0;
    live_through(now, now + 10 * MINUTE);
    ck_assert_uint_le(looks, 5);
    ck_assert_uint_eq(runner_next_look(&runner), UINT64_MAX);
}
END_TEST

START_TEST(a_source_that_falls_silent_is_looked_at_in_time) {
    come(0, 1 * SECOND, START);
    come(1, 100 * SECOND, START + 10 * SECOND);
    ck_assert_uint_eq(judged_count, 0);
    ck_assert_uint_eq(runner_next_look(&runner), START + MINUTE + 1);
    live_through(START + 10 * SECOND, START + MINUTE + 2);
    ck_assert_uint_eq(judged_count, 1);
    ck_assert_uint_eq(judged[0], 10);
    ck_assert_uint_eq(runner_next_look(&runner), START + 10 * SECOND + MINUTE + 1);
}
END_TEST

// The last one that was active leaves: silence is due at once, not at a moment that never comes.
START_TEST(when_the_last_one_leaves_silence_is_due) {
    come(0, 1 * SECOND, START);
    live_through(START, START + SECOND);
    runner_source_leave(&runner, rows[0], false);
    ck_assert_uint_le(runner_next_look(&runner), START + SECOND + MINUTE + 1);
    looks = 0;
    live_through(START + SECOND, START + 10 * MINUTE);
    ck_assert_uint_le(looks, 3);
    ck_assert_uint_eq(judged[0], 10);
}
END_TEST

// A batch can be handed over later than it began; the clock does not go back with it.
START_TEST(a_late_batch_does_not_turn_the_clock_back) {
    come(0, 1 * SECOND, START);
    come(1, 50 * SECOND, START + MINUTE - SECOND);
    live_through(START + MINUTE, START + MINUTE + 2 * SECOND); // the first one is silent
    ck_assert_uint_eq(judged_count, 1);
    come(1, 100 * SECOND, START + MINUTE - SECOND);
    ck_assert_uint_eq(judged[judged_count - 1], 50);
}
END_TEST

// A reload begins with what was saved a moment ago: who was silent still is. Another process does
// not know for how long. `_i`: which of the two.
START_TEST(what_was_silent_is_silent_after_a_reload) {
    come(0, 1 * SECOND, START);
    come(1, 2 * SECOND, START);
    uint64_t now = START + 2 * MINUTE;
    come(1, 50 * SECOND, now);
    live_through(now, now + SECOND);
    uint64_t before = judged_count;
    runner_prepare_state(&runner);
    runner_restored(&runner, now + SECOND, _i == 1);
    come(1, 100 * SECOND, now + 2 * SECOND);
    ck_assert_uint_eq(judged_count > before, _i == 1);
    ck_assert_uint_eq(runner_next_look(&runner),
                      _i == 1 ? now + 2 * SECOND + MINUTE + 1 : now + SECOND + MINUTE + 1);
}
END_TEST

// A line of tomorrow, in a source that goes on and in one that does not: what comes next is judged
// in its own time, also after a silence, and the line when its day comes.
START_TEST(a_line_of_tomorrow_holds_nothing_up) {
    enum { DAY = 86400 };
    plan.timing.max_jump.ns = 10 * (int64_t)MINUTE;
    uint64_t now = START;
    for (uint64_t s = 1; s <= 100; s++, now += SECOND) {
        come(0, s * SECOND, now);
        come(1, s * SECOND, now);
        if (s == 50)
            come(_i == 0 ? 0 : 2, (DAY + s) * SECOND, now);
    }
    runner.state.idle_unix_ns = 100 * SECOND;
    live_through(now, now + 5 * MINUTE);
    ck_assert_uint_eq(judged[judged_count - 1], 120); // the settle after 100
    ck_assert_uint_eq(runner.state.now_ns, 100 * SECOND);
    ck_assert_uint_eq(runner.watch.outliers, 1);
    if (_i == 1) {
        runner_prepare_state(&runner);
        runner_restored(&runner, now + 5 * MINUTE, true);
    }
    uint64_t before = judged_count;
    now += 6 * MINUTE;
    for (uint64_t s = 200; s <= 240; s++, now += SECOND) {
        come(0, s * SECOND, now);
        come(1, s * SECOND, now);
    }
    static const uint64_t WANTED[] = {200, 210, 220, 230};
    ck_assert_uint_eq(judged_count - before, 4);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_uint_eq(judged[before + i], WANTED[i]);
    ck_assert_uint_eq(runner.watch.outliers, 1);
    come(0, (DAY + 100) * SECOND, now);
    come(1, (DAY + 100) * SECOND, now);
    ck_assert_uint_eq(judged[judged_count - 1], DAY + 50);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("runner");
    TCase *tests = tcase_create("clock");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_silent_source_wakes_nobody, 0, 2);
    tcase_add_test(tests, a_source_that_falls_silent_is_looked_at_in_time);
    tcase_add_test(tests, when_the_last_one_leaves_silence_is_due);
    tcase_add_test(tests, a_late_batch_does_not_turn_the_clock_back);
    tcase_add_loop_test(tests, what_was_silent_is_silent_after_a_reload, 0, 2);
    tcase_add_loop_test(tests, a_line_of_tomorrow_holds_nothing_up, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *srunner = srunner_create(suite);
    srunner_run_all(srunner, CK_ENV);
    int failed = srunner_ntests_failed(srunner);
    srunner_free(srunner);
    return failed == 0 ? 0 : 1;
}

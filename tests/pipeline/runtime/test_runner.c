// SPDX-License-Identifier: Apache-2.0
// One pipeline on a clock of the test's own: when it looks, and what holds it back.
#include "pipeline/runtime/runner.h"

#include "base/memory.h"
#include "pipeline/runtime/feed/feed_run.h"

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
                                             .idle_timeout = {(int64_t)MINUTE},
                                             .caught_up_timeout = {3 * (int64_t)SECOND}}};
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

// One event of this source, at a moment of the events' clock; it came at `now`. `is_end`: it was
// the last that is there.
static void come_to(uint32_t index, uint64_t event_ns, uint64_t now, bool is_end) {
    struct source source = {.caught_up = is_end};
    source_times_note(&source.times, event_ns, runner_max_jump(&runner));
    struct source *touched = &source;
    struct event event = {.time_ns = event_ns};
    struct delivery delivery = {
        .events = &event, .count = 1, .touched = &touched, .touched_count = 1, .begun_ns = now};
    runner_consume(&runner, &delivery, &rows[index]);
    (void)runner_advance(&runner, now);
}

static void come(uint32_t index, uint64_t event_ns, uint64_t now) {
    come_to(index, event_ns, now, false);
}

// What the main thread does from one moment to another: it looks, and sleeps until its next look.
static void live_through(uint64_t from, uint64_t until) {
    for (uint64_t now = from; now < until; looks++) {
        ck_assert_uint_lt(looks, 10000);
        runner_judge_rest(&runner, runner_advance(&runner, now));
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

// One that was read to its end is passed allowed_lateness later, or caught_up_timeout, whichever is
// longer (`_i`), and never later than one that is silent. When it goes on it holds back again.
START_TEST(a_source_at_its_end_is_passed) {
    static const uint64_t TIMEOUTS[] = {3, 8, 600}, WANTED[] = {5, 8, 60};
    plan.timing.caught_up_timeout.ns = (int64_t)(TIMEOUTS[_i] * SECOND);
    uint64_t passed = START + WANTED[_i] * SECOND + 1;
    come(1, 1 * SECOND, START);
    come_to(0, 1 * SECOND, START, true);
    come(1, 100 * SECOND, START + SECOND);
    ck_assert_uint_eq(runner_next_look(&runner), passed);
    runner.look_ns = passed + 1; // it is not to sleep longer than that
    ck_assert(runner_looks_late(&runner, rows[0]) && !runner_looks_late(&runner, rows[1]));
    live_through(START + SECOND, passed);
    ck_assert_uint_eq(judged_count, 0);
    live_through(passed, passed + 1);
    ck_assert_uint_eq(judged_count, 1);
    ck_assert_uint_eq(judged[0], 10);
    come(0, 95 * SECOND, passed + SECOND);
    come(1, 200 * SECOND, passed + SECOND);
    ck_assert_uint_eq(judged_count, 1);
}
END_TEST

// While a journal is read again nothing is judged, and no entry of it wakes the main thread.
START_TEST(a_source_at_its_end_wakes_nobody_before_all_have_caught_up) {
    runner.holds = 1;
    runner.hold_until_ns = START + MINUTE;
    come_to(0, 1 * SECOND, START, true);
    runner.look_ns = runner_next_look(&runner);
    ck_assert_uint_eq(runner.look_ns, runner.hold_until_ns);
    ck_assert(!runner_looks_late(&runner, rows[0]));
    come_to(0, 2 * SECOND, START + SECOND, true);
    ck_assert(!runner_looks_late(&runner, rows[0]));
    come_to(0, 3 * SECOND, runner.hold_until_ns, true);
    runner.look_ns = UINT64_MAX; // as if it slept through the end of the wait
    ck_assert(runner_looks_late(&runner, rows[0]));
    runner.holds = 0;
    come_to(0, 4 * SECOND, START + 2 * SECOND, true);
    ck_assert(runner_looks_late(&runner, rows[0]));
}
END_TEST

// When all were read to their ends, what came is judged once, and a silence is one all the same:
// then a first name gets time to settle. What comes in between is judged in its turn.
START_TEST(all_at_their_ends_are_judged) {
    come_to(0, 1 * SECOND, START, true);
    come_to(1, 14 * SECOND, START + SECOND, true);
    live_through(START + SECOND, START + 30 * SECOND);
    ck_assert_uint_eq(judged_count, 2);
    ck_assert_uint_eq(judged[1], 20);
    ck_assert_uint_eq(runner_next_look(&runner), START + SECOND + MINUTE + 1);
    if (_i == 1) {
        come_to(0, 17 * SECOND, START + 30 * SECOND, true);
        live_through(START + 30 * SECOND, START + 40 * SECOND);
        ck_assert_uint_eq(judged_count, 3);
        ck_assert_uint_eq(judged[2], 30);
    }
    looks = 0;
    live_through(START + 40 * SECOND, START + 10 * MINUTE);
    ck_assert_uint_le(looks, 3);
    ck_assert_uint_eq(judged_count, _i == 1 ? 4 : 3);
    ck_assert_uint_eq(judged[judged_count - 1], _i == 1 ? 50 : 40); // settle, behind the last
    ck_assert_uint_eq(runner_next_look(&runner), UINT64_MAX);
}
END_TEST

// What comes after its moment was judged in a silence is judged in the next silence.
START_TEST(what_comes_late_to_a_silence_is_judged_in_the_next) {
    come(0, 1 * SECOND, START);
    live_through(START, START + 2 * MINUTE);
    ck_assert_uint_eq(judged[judged_count - 1], 30);
    come(0, 2 * SECOND, START + 2 * MINUTE);
    live_through(START + 2 * MINUTE, START + 4 * MINUTE);
    ck_assert_uint_eq(judged_count, 4);
    ck_assert_uint_eq(judged[2], 40);
    come(0, 100 * SECOND, START + 4 * MINUTE);
    come(0, 200 * SECOND, START + 4 * MINUTE);
    ck_assert_uint_eq(judged[judged_count - 1], 100);
}
END_TEST

// Nothing is at its end for another process before its receiver says so; after a reload it is.
START_TEST(an_end_is_of_this_process) {
    come_to(0, 1 * SECOND, START, true);
    come(1, 2 * SECOND, START);
    runner_prepare_state(&runner);
    runner_restored(&runner, START + SECOND, _i == 1);
    come(1, 100 * SECOND, START + SECOND);
    live_through(START + 10 * SECOND, START + 11 * SECOND);
    ck_assert_uint_eq(judged_count, _i == 1 ? 1 : 0);
}
END_TEST

// A time that stands alone far ahead, all at their ends: it counts when it was read as it happened,
// and waits for a silence when the clock does not speak for it.
START_TEST(a_quiet_moment_believes_what_is_fresh) {
    plan.timing.max_jump.ns = 10 * (int64_t)MINUTE;
    runner.state.rest_unix_ns = _i == 1 ? 3601 * SECOND : 7200 * SECOND;
    come_to(0, 1 * SECOND, START, true);
    come_to(0, 2 * SECOND, START, true);
    come_to(1, 3600 * SECOND, START + SECOND, true);
    live_through(START + SECOND, START + 30 * SECOND);
    ck_assert_uint_eq(judged[judged_count - 1], _i == 1 ? 3600 : 10);
    ck_assert_uint_eq(runner.watch.outliers, 0);
    live_through(START + 30 * SECOND, START + 5 * MINUTE);
    ck_assert_uint_eq(judged[judged_count - 1], 3620);
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
    runner.state.rest_unix_ns = 100 * SECOND;
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
    tcase_add_loop_test(tests, a_source_at_its_end_is_passed, 0, 3);
    tcase_add_test(tests, a_source_at_its_end_wakes_nobody_before_all_have_caught_up);
    tcase_add_loop_test(tests, all_at_their_ends_are_judged, 0, 2);
    tcase_add_test(tests, what_comes_late_to_a_silence_is_judged_in_the_next);
    tcase_add_loop_test(tests, an_end_is_of_this_process, 0, 2);
    tcase_add_loop_test(tests, a_quiet_moment_believes_what_is_fresh, 0, 2);
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

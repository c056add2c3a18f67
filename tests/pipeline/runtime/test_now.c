// SPDX-License-Identifier: Apache-2.0
// Runs of times, and the time that a pipeline takes from them.
#include "pipeline/runtime/now/offset.h"

#include "base/memory.h"

#include <check.h>
#include <stdlib.h>

enum { MINUTE = 60, DAY = 86400, SOURCES_MAX = 4, TIMES_MAX = 12 };

static const uint64_t JUMP = 10 * MINUTE;

START_TEST(runs_do_not_depend_on_order_or_batches) {
    static const uint64_t TIMES[] = {1000, 1005, 1600, 2300, 2301, 9000, 1010, 2900};
    enum { COUNT = sizeof TIMES / sizeof TIMES[0] };
    srand((unsigned)_i + 1);
    uint64_t times[COUNT];
    memcpy(times, TIMES, sizeof times);
    for (size_t i = COUNT - 1; i > 0; i--) {
        size_t other = (size_t)rand() % (i + 1);
        uint64_t kept = times[i];
        times[i] = times[other];
        times[other] = kept;
    }
    struct source_times all = {0}, batch = {0};
    for (size_t i = 0; i < COUNT; i++) {
        source_times_note(&batch, times[i], JUMP);
        if (rand() % 3 == 0) {
            source_times_merge(&all, &batch, JUMP);
            batch = (struct source_times){0};
        }
    }
    source_times_merge(&all, &batch, JUMP);
    static const uint64_t RUNS[][2] = {{1000, 1600}, {2300, 2900}, {9000, 9000}};
    ck_assert_uint_eq(all.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(all.runs[i].low, RUNS[i][0]);
        ck_assert_uint_eq(all.runs[i].high, RUNS[i][1]);
    }
    ck_assert_uint_eq(all.runs[2].behind, times[COUNT - 1] != 9000);
    ck_assert_uint_eq(source_times_sure(&all), 1);
    ck_assert_uint_eq(source_times_until(&all, 3000), 2900);
    ck_assert_uint_eq(source_times_until(&all, 10), 10);
}
END_TEST

START_TEST(old_runs_become_one) {
    struct source_times times = {0};
    for (uint64_t i = 1; i <= 3 * TIME_RUNS; i++) { // a log with a line an hour
        source_times_note(&times, i * 3600, JUMP);
        ck_assert_uint_le(times.count, TIME_RUNS);
        ck_assert_uint_eq(source_times_newest(&times), i * 3600);
        if (i > 1)
            ck_assert_uint_eq(times.runs[source_times_sure(&times)].high, (i - 1) * 3600);
    }
    // Lines with dates of many other days do not pass for its end.
    times = (struct source_times){0};
    for (uint64_t i = 1; i <= 3 * TIME_RUNS; i++) {
        source_times_note(&times, 1000 + i, JUMP);
        source_times_note(&times, i * DAY, JUMP);
        source_times_note(&times, 1000 + i, JUMP);
    }
    ck_assert_uint_eq(times.runs[source_times_sure(&times)].high, 1000 + 3 * TIME_RUNS);
}
END_TEST

static void count_told(void *context, const struct source_clock *clock,
                       const struct time_run *run) {
    ck_assert_uint_ne(clock->times.count, 0);
    ck_assert_uint_eq(run->low, run->high);
    ck_assert_uint_ne(clock->told, 0);
    ++*(uint32_t *)context;
}

// What sources said, in this order; 0 ends a list.
static const struct row {
    const char *what;
    uint64_t times[SOURCES_MAX][TIMES_MAX];
    bool ends;
    uint64_t unix_s; // 0: no clock
    uint64_t now;
    uint32_t left_aside;
} ROWS[] = {
    {"nothing", {{0}}, true, 0, 0, 0},
    {"one event, then more may come", {{1000}}, false, 0, 0, 0},
    {"one event, and that is all", {{1000}}, true, 0, 1000, 0},
    {"two events", {{1000, 1001}}, false, 0, 1001, 0},
    {"one event of each of two sources", {{1000}, {1300}}, false, 0, 1300, 0},
    {"a line a day ahead", {{1000, 1001, DAY, 1002}}, false, 0, 1002, 1},
    {"… and it is the first", {{DAY, 1000, 1001, 1002}}, false, 0, 1002, 1},
    {"… and it is there twice", {{1000, 1001, DAY, DAY, 1002}}, true, 0, 1002, 1},
    {"… and it is the last, live", {{1000, 1001, DAY}}, false, 0, 1001, 0},
    {"a lone Xid at the end of a kernel log", {{1000, 1001, DAY}}, true, 0, DAY, 0},
    {"two lines of another day", {{1000, 1001, DAY, DAY + 1, 1002}}, false, 0, DAY + 1, 0},
    {"two such days", {{1000, DAY, 1001, 3 * DAY, 1002}}, true, 0, 1002, 2},
    {"the rest gets there", {{1000, 5000, 1001, 2000, 4500}}, false, 0, 5000, 0},
    {"a source goes on alone", {{1000, 1001}, {1002, 1500, 2000, 2500}}, false, 0, 2500, 0},
    {"two sources, the end of one", {{1000, 1001}, {1000, 1001, 9000}}, true, 0, 9000, 0},
    {"most of three agree", {{1000, 1001}, {1000, 1100}, {1000, 1001, 9000}}, true, 0, 1100, 1},
    {"of three none agrees",
     {{1000, 1001}, {20000, 20100}, {1000, 1001, 90000}},
     true,
     0,
     90000,
     0},
    {"another source is near",
     {{1000, 1001}, {1000, 1100, 8500}, {1000, 1001, 9000}},
     false,
     0,
     9000,
     0},
    {"three apart: all count", {{1000}, {5000}, {9000}}, true, 0, 9000, 0},
    {"live: it was read as it happened",
     {{1000, 1001}, {1000, 1100}, {1000, 1001, 9000}},
     true,
     9060,
     9000,
     0},
    {"live: it is of tomorrow", {{1000, 1001, DAY}}, true, 1100, 1001, 1},
};

static struct table clocks;
static struct arena arena;

// A line of the kernel that is alone far ahead: what its log ends with is judged.
static const struct {
    uint64_t times[TIMES_MAX], others[TIMES_MAX];
    bool ends;
    uint64_t unix_s, now;
    enum run_told told;
} KERNEL_ROWS[] = {
    {{1000, 1001, 8200}, {1000, 1100}, true, 0, 8200, RUN_JUDGED},
    {{1000, 8200, 1001, 1002}, {1000, 1100}, true, 0, 1100, RUN_NOT_JUDGED},
    {{1000, 1001, 8200}, {1000, 1100}, false, 0, 1100, RUN_NOT_TOLD},
    {{1000, 8200, 1001, 1002}, {1000, 1100}, false, 0, 1100, RUN_LEFT_ASIDE},
    {{1000, 1001, 8200}, {1000, 1100}, true, 1200, 1100, RUN_LEFT_ASIDE}, // live
};

START_TEST(a_line_of_the_kernel_far_ahead) {
    table_init(&clocks, "clocks", sizeof(struct source_clock), 4);
    for (uint32_t i = 0; i < 3; i++) {
        struct source_clock *clock = table_row(&clocks, table_add(&clocks));
        const uint64_t *times = i == 0 ? KERNEL_ROWS[_i].times : KERNEL_ROWS[_i].others;
        for (uint32_t j = 0; j < TIMES_MAX && times[j] != 0; j++) {
            source_times_note(&clock->times, times[j], JUMP);
            if (i == 0)
                source_times_tell(&clock->times);
        }
    }
    struct now_rule rule = {.max_jump_ns = JUMP,
                            .end = KERNEL_ROWS[_i].ends ? NOW_ENDS : NOW_GOES_ON,
                            .unix_ns = KERNEL_ROWS[_i].unix_s,
                            .fresh_ns = JUMP + MINUTE};
    ck_assert_uint_eq(now_of(&clocks, &rule, &arena), KERNEL_ROWS[_i].now);
    const struct source_clock *clock = table_row(&clocks, 0);
    ck_assert_uint_eq(clock->times.runs[clock->times.count - 1].told, KERNEL_ROWS[_i].told);
    table_release(&clocks);
    arena_reset(&arena);
}
END_TEST

static void fill(const struct row *row, uint32_t shift) {
    table_init(&clocks, "clocks", sizeof(struct source_clock), 4);
    for (uint32_t i = 0; i < SOURCES_MAX; i++)
        table_add(&clocks);
    for (uint32_t i = 0; i < SOURCES_MAX; i++) {
        struct source_clock *clock = table_row(&clocks, (i + shift) % SOURCES_MAX);
        for (uint32_t j = 0; j < TIMES_MAX && row->times[i][j] != 0; j++)
            source_times_note(&clock->times, row->times[i][j], JUMP);
    }
}

START_TEST(the_time_of_a_pipeline) {
    const struct row *row = &ROWS[_i];
    for (uint32_t shift = 0; shift < SOURCES_MAX; shift++) {
        fill(row, shift);
        uint32_t told = 0;
        struct now_rule rule = {.max_jump_ns = JUMP,
                                .end = row->ends ? NOW_ENDS : NOW_GOES_ON,
                                .unix_ns = row->unix_s,
                                .fresh_ns = JUMP + MINUTE,
                                .tell = count_told,
                                .context = &told};
        for (int again = 0; again < 2; again++) { // told once
            ck_assert_msg(now_of(&clocks, &rule, &arena) == row->now, "%s: %llu", row->what,
                          (unsigned long long)now_of(&clocks, &rule, &arena));
            ck_assert_msg(told == row->left_aside, "%s: %u left aside", row->what, told);
        }
        // With any jump allowed the newest counts.
        if (row->times[0][0] != 0 && !row->ends)
            ck_assert_uint_ge(now_of(&clocks,
                                     &(struct now_rule){.max_jump_ns = UINT64_MAX, .end = NOW_ENDS},
                                     &arena),
                              row->now);
        table_release(&clocks);
        arena_reset(&arena);
    }
}
END_TEST

// -- offsets --------------------------------------------------------------------------------------

// Seconds between the first source's times and each other's, at the beginning and the end.
static const struct offset_row {
    const char *what;
    int64_t from_s[SOURCES_MAX], to_s[SOURCES_MAX];
    uint32_t events;
    int32_t quarters; // of the last source; 0: nothing is said
} OFFSET_ROWS[] = {
    {"together", {0, 3, -5, 2}, {0, 3, -5, 2}, 100, 0},
    {"two hours ahead", {0, 3, -5, 7200}, {0, 3, -5, 7230}, 100, 8},
    {"India", {0, 3, -5, 19800}, {0, 3, -5, 19790}, 100, 22},
    {"five hours behind", {0, 3, -5, -18000}, {0, 3, -5, -18060}, 100, -20},
    {"too few events", {0, 3, -5, 7200}, {0, 3, -5, 7230}, 4, 0},
    {"it ended earlier", {0, 3, -5, 0}, {0, 3, -5, -7200}, 100, 0},
    {"it began earlier", {0, 3, -5, -7200}, {0, 3, -5, 0}, 100, 0},
    {"no whole quarters", {0, 3, -5, 7500}, {0, 3, -5, 7530}, 100, 0},
    {"another day", {0, 3, -5, 86400}, {0, 3, -5, 86400}, 100, 0},
};

struct told {
    uint32_t count, row;
    int32_t quarters;
};

static void keep_told(void *context, const struct source_clock *clock, int32_t quarters) {
    struct told *told = context;
    told->count++;
    told->quarters = quarters;
    for (told->row = 0; table_row(&clocks, told->row) != clock;)
        told->row++;
}

static bool all_count(void *context, uint32_t row) {
    return context != NULL && row < SOURCES_MAX;
}

START_TEST(an_offset_is_said_once) {
    static const uint64_t SECOND = 1000000000, START = 1000000, LENGTH = 3 * 3600;
    const struct offset_row *row = &OFFSET_ROWS[_i];
    for (int live = 0; live <= 1; live++) {
        struct told told = {0};
        table_init(&clocks, "clocks", sizeof(struct source_clock), 4);
        for (uint32_t i = 0; i < SOURCES_MAX; i++)
            table_add(&clocks);
        for (uint64_t step = 0; step <= 20; step++) {
            for (uint32_t i = 0; i < SOURCES_MAX; i++) {
                struct source_clock *clock = table_row(&clocks, i);
                int64_t off_s =
                    row->from_s[i] + (row->to_s[i] - row->from_s[i]) * (int64_t)step / 20;
                uint64_t time_s = START + LENGTH * step / 20 + (uint64_t)off_s;
                source_times_note(&clock->times, time_s * SECOND, JUMP * SECOND);
                clock->offset.events = row->events;
            }
            if (live)
                offsets_look(&clocks, all_count, &told, keep_told, &told, &arena);
        }
        for (int again = 0; !live && again < 2; again++)
            offsets_at_end(&clocks, keep_told, &told, &arena);
        // Live one sees how it moves away.
        if (live && row->from_s[3] != row->to_s[3] && row->quarters == 0) {
            table_release(&clocks);
            continue;
        }
        ck_assert_msg(told.count == (row->quarters != 0), "%s: said %u times", row->what,
                      told.count);
        ck_assert_int_eq(told.quarters, row->quarters);
        ck_assert_uint_eq(told.row, row->quarters != 0 ? SOURCES_MAX - 1 : 0);
        table_release(&clocks);
        arena_reset(&arena);
    }
}
END_TEST

// Logs of few lines, of which the first begins and the last ends with the others.
START_TEST(what_lies_ahead_is_taken_together) {
    enum { SECOND = 1000000000, START = 1000000, LENGTH = 3600, SAMPLED = 5, LOGS = 2 };
    static const struct {
        uint64_t from_s[LOGS], to_s[LOGS];
        uint32_t said;
    } LOG_ROWS[] = {
        {{7200, 7200 + 2000}, {7200 + 900, 7200 + LENGTH}, 2},
        {{7200 + 1500, 7200 + 2000}, {7200 + 2200, 7200 + LENGTH}, 0}, // it began with neither
        {{7200, 7200 + 2000}, {7200 + 900, 7200 + 2500}, 0},           // it ended with neither
        {{0, 7200 + 2000}, {7200 + 900, 7200 + LENGTH}, 0},            // it goes on for longer
    };
    struct told told = {0};
    table_init(&clocks, "clocks", sizeof(struct source_clock), 4);
    for (uint32_t i = 0; i < SAMPLED + LOGS; i++) {
        struct source_clock *clock = table_row(&clocks, table_add(&clocks));
        uint64_t from_s = START + (i < SAMPLED ? 0 : LOG_ROWS[_i].from_s[i - SAMPLED]);
        uint64_t to_s = START + (i < SAMPLED ? LENGTH : LOG_ROWS[_i].to_s[i - SAMPLED]);
        for (uint64_t s = from_s; s <= to_s; s += 100)
            source_times_note(&clock->times, s * SECOND, JUMP * SECOND);
        clock->offset.events = 1;
    }
    offsets_at_end(&clocks, keep_told, &told, &arena);
    ck_assert_uint_eq(told.count, LOG_ROWS[_i].said);
    ck_assert_int_eq(told.quarters, LOG_ROWS[_i].said == 0 ? 0 : 8);
    table_release(&clocks);
}
END_TEST

START_TEST(of_two_the_lesser_is_off) {
    struct told told = {0};
    table_init(&clocks, "clocks", sizeof(struct source_clock), 4);
    for (uint64_t i = 0; i < 2; i++) {
        struct source_clock *clock = table_row(&clocks, table_add(&clocks));
        for (uint64_t s = 0; s < 10; s++)
            source_times_note(&clock->times, (1000000 + i * 3600 + s) * 1000000000,
                              JUMP * 1000000000);
        clock->offset.events = _i == 0 ? 10 : i == 0 ? 10 : 1000;
    }
    offsets_at_end(&clocks, keep_told, &told, &arena);
    ck_assert_uint_eq(told.count, _i == 0 ? 0 : 1); // of two alike nothing can be said
    ck_assert_int_eq(told.quarters, _i == 0 ? 0 : -4);
    table_release(&clocks);
}
END_TEST

START_TEST(zones_are_written_as_an_option_takes_them) {
    static const struct {
        int32_t quarters;
        const char *text;
    } ZONES[] = {{8, "+02:00"}, {22, "+05:30"}, {-20, "-05:00"}, {-14, "-03:30"}, {56, "+14:00"}};
    for (size_t i = 0; i < sizeof ZONES / sizeof ZONES[0]; i++) {
        char text[OFFSET_TEXT_MAX];
        offset_format(ZONES[i].quarters, text);
        ck_assert_str_eq(text, ZONES[i].text);
    }
}
END_TEST

static void setup(void) {
    arena_init(&arena, 4096);
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

int main(void) {
    Suite *suite = suite_create("now");
    TCase *tests = tcase_create("now");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, runs_do_not_depend_on_order_or_batches, 0, 40);
    tcase_add_test(tests, old_runs_become_one);
    tcase_add_loop_test(tests, a_line_of_the_kernel_far_ahead, 0,
                        sizeof KERNEL_ROWS / sizeof KERNEL_ROWS[0]);
    tcase_add_loop_test(tests, the_time_of_a_pipeline, 0, sizeof ROWS / sizeof ROWS[0]);
    tcase_add_loop_test(tests, an_offset_is_said_once, 0,
                        sizeof OFFSET_ROWS / sizeof OFFSET_ROWS[0]);
    tcase_add_loop_test(tests, what_lies_ahead_is_taken_together, 0, 4);
    tcase_add_loop_test(tests, of_two_the_lesser_is_off, 0, 2);
    tcase_add_test(tests, zones_are_written_as_an_option_takes_them);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

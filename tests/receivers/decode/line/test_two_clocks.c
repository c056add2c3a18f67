// SPDX-License-Identifier: Apache-2.0
// One clock for each source: what lines with two tell of the difference, and what becomes of the
// times that messages tell.
#include "receivers/decode/line/two_clocks.h"

#include <check.h>
#include <stdlib.h>

#define SECOND  INT64_C(1000000000)
#define MINUTE  (60 * SECOND)
#define HOUR    (60 * MINUTE)
#define CARRIER UINT64_C(1773482420000000000) // 2026-03-14T10:00:20Z

static struct frame frame_of(const char *message, int64_t late_ns) {
    struct frame frame;
    frame_clear(&frame, slice_of(message), 1);
    frame.time_ns = (uint64_t)((int64_t)CARRIER + late_ns);
    frame.carried = true;
    return frame;
}

// By the clock of a source that had these lines, each written at CARRIER and `late_ns`.
static int64_t told(const char *const *lines, int64_t late_ns, int64_t told_after_ns,
                    unsigned told_as) {
    struct two_clocks clock = {.known = false};
    for (size_t i = 0; lines != NULL && lines[i] != NULL; i++) {
        struct frame frame = frame_of(lines[i], late_ns);
        two_clocks_note(&clock, &frame);
    }
    struct frame last = frame_of("words", late_ns);
    two_clocks_note(&clock, &last);
    return (int64_t)two_clocks_time(&last, (uint64_t)((int64_t)CARRIER + told_after_ns), told_as) -
           (int64_t)last.time_ns;
}

START_TEST(differences) {
    const char *const same[] = {"2026-03-14 10:00:20,000 INFO a", NULL};
    const char *const ahead[] = {"E0314 12:00:20.000000 7 api.py:1] a", NULL};
    const char *const behind[] = {"[2026-03-14 02:00:20] a", NULL};
    // Before the line by five seconds, whatever the zone and the delay.
    ck_assert_int_eq(told(same, 0, -5 * SECOND, TOLD_LOCAL), -5 * SECOND);
    ck_assert_int_eq(told(same, 40 * SECOND, -5 * SECOND, TOLD_LOCAL), -5 * SECOND);
    ck_assert_int_eq(told(same, 57 * MINUTE, -5 * SECOND, TOLD_LOCAL), -5 * SECOND);
    ck_assert_int_eq(told(ahead, 0, 2 * HOUR - 5 * SECOND, TOLD_LOCAL), -5 * SECOND);
    ck_assert_int_eq(told(ahead, 40 * SECOND, 2 * HOUR - 5 * SECOND, TOLD_LOCAL), -5 * SECOND);
    ck_assert_int_eq(told(behind, 0, -8 * HOUR - 5 * SECOND, TOLD_LOCAL), -5 * SECOND);
    // Seconds since 1970 know no zone: only the delay counts.
    ck_assert_int_eq(told(ahead, 40 * SECOND, -5 * SECOND, TOLD_NOW), -5 * SECOND);
    ck_assert_int_eq(told(behind, 40 * SECOND, -5 * SECOND, TOLD_NOW), -5 * SECOND);
    // Nobody tells of what comes about later.
    ck_assert_int_eq(told(same, 0, 5 * SECOND, TOLD_LOCAL), 0);
}
END_TEST

START_TEST(lines_that_differ) {
    // What was held up on its way, and one other date, change nothing; three others do.
    const char *const held[] = {"2026-03-14 09:55:00 a", "2026-03-14 10:00:19 b",
                                "2026-03-14 09:58:00 c", "2024-01-01 00:00:00 d",
                                "2027-01-01 00:00:00 e", NULL};
    const char *const another[] = {"2024-01-01 00:00:00 a", "2026-03-14 10:00:19 b",
                                   "2026-03-14 10:00:18 c", "2026-03-14 10:00:20 d", NULL};
    ck_assert_int_eq(told(held, 0, -5 * SECOND, TOLD_LOCAL), -4 * SECOND);
    ck_assert_int_eq(told(another, 0, -5 * SECOND, TOLD_LOCAL), -5 * SECOND);
}
END_TEST

START_TEST(nothing_known) {
    // Whole quarters are a zone.
    ck_assert_int_eq(told(NULL, 0, -5 * SECOND, TOLD_LOCAL | TOLD_NOW), -5 * SECOND);
    ck_assert_int_eq(told(NULL, 0, 2 * HOUR - 5 * SECOND, TOLD_LOCAL | TOLD_NOW), -5 * SECOND);
    ck_assert_int_eq(told(NULL, 0, -330 * MINUTE - 5 * SECOND, TOLD_LOCAL | TOLD_NOW), -5 * SECOND);
    ck_assert_int_eq(told(NULL, 57 * MINUTE, 0, TOLD_LOCAL | TOLD_NOW), 0);
    ck_assert_int_eq(told(NULL, 0, -HOUR, TOLD_NOW), 0);
    // What may have been long ago stays.
    ck_assert_int_eq(told(NULL, 0, -50 * HOUR, TOLD_LOCAL), -50 * HOUR);
}
END_TEST

START_TEST(far_apart) {
    // The ends of time, and a line that no carrier wrote.
    struct two_clocks clock = {.known = false};
    struct frame frame = frame_of("1970-01-01 00:00:00 a", 0);
    frame.time_ns = INT64_MAX;
    two_clocks_note(&clock, &frame);
    ck_assert_uint_eq(two_clocks_time(&frame, INT64_MAX, TOLD_LOCAL), INT64_MAX);
    ck_assert_uint_le(two_clocks_time(&frame, 1, TOLD_LOCAL), INT64_MAX);
    frame.carried = false;
    ck_assert_uint_eq(two_clocks_time(&frame, 7, TOLD_LOCAL | TOLD_NOW), 7);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("two_clocks");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, differences);
    tcase_add_test(tests, lines_that_differ);
    tcase_add_test(tests, nothing_known);
    tcase_add_test(tests, far_apart);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

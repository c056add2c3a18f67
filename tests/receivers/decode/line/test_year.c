// SPDX-License-Identifier: Apache-2.0
// Years: dates that say one, wherever they stand, and up to when a date without one may lie.
#include "receivers/decode/line/year.h"

#include <check.h>
#include <stdlib.h>

static const uint64_t DAY = 86400 * UINT64_C(1000000000);
static const uint64_t SPRING = UINT64_C(1773482420000000000); // 2026-03-14T10:00:20Z

static const struct {
    const char *text;
    uint64_t observed_days; // after SPRING; 0: not known
    uint64_t newest;
} TEXTS[] = {
    {"", 0, 0},
    {"-", 0, 0},
    {"2026-03-14T10:00:20Z", 0, SPRING},
    {"  time      : 2026-03-14_10:00:20", 0, SPRING},
    {"{\"time\":\"2026-03-14 10:00:20.0\",\"a\":1}", 0, SPRING},
    {"2025-01-01 00:00:00 a\n2026-03-14 10:00:20 b\n2024-01-01 00:00:00 c\n", 0, SPRING},
    // Later than a day after the input was written.
    {"2026-03-14 10:00:20 a\n2031-01-01 00:00:00 b\n", 2, SPRING},
    {"2026-03-14 10:00:20 a", 1, SPRING},
    // No dates.
    {"12026-03-14 10:00:20", 0, 0},
    {"2026-03-14", 0, 0},
    {"2026-13-14 10:00:20", 0, 0},
    {"2026-02-30 10:00:20", 0, 0},
    {"--- -- 0314 10:00:20 -", 0, 0},
};

START_TEST(newest) {
    uint64_t observed_ns =
        TEXTS[_i].observed_days == 0 ? 0 : SPRING + TEXTS[_i].observed_days * DAY;
    // In memory of its own, so that a read past its end is seen, cut at each byte.
    struct slice text = slice_of(TEXTS[_i].text);
    for (size_t size = 0; size <= text.size; size++) {
        char *copy = malloc(size + (size == 0));
        memcpy(copy, text.data, size);
        uint64_t found = year_newest((struct slice){copy, size}, observed_ns);
        if (size == text.size)
            ck_assert_uint_eq(found, TEXTS[_i].newest);
        free(copy);
    }
}
END_TEST

START_TEST(limit) {
    ck_assert_uint_eq(year_limit(0, 0), 0);
    ck_assert_uint_eq(year_limit(0, SPRING), SPRING);
    ck_assert_uint_eq(year_limit(SPRING, 0), SPRING + 182 * DAY);
    ck_assert_uint_eq(year_limit(SPRING, SPRING + 1000 * DAY), SPRING + 182 * DAY);
    ck_assert_uint_eq(year_limit(SPRING, SPRING + 3 * DAY), SPRING + 3 * DAY);
    ck_assert_uint_eq(year_limit(SPRING, SPRING - DAY), SPRING - DAY);
    // What was written after the input says that its age is wrong.
    ck_assert_uint_eq(year_limit(SPRING, SPRING - 3 * DAY), SPRING + 182 * DAY);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("year");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, newest, 0, sizeof TEXTS / sizeof *TEXTS);
    tcase_add_test(tests, limit);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

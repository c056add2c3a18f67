// SPDX-License-Identifier: Apache-2.0
// Times as logs write them.
#include "base/text/log_time.h"

#include <check.h>
#include <stdlib.h>

#define SECOND UINT64_C(1000000000)
static const uint64_t MORNING_NS = UINT64_C(1769850904) * SECOND; // 2026-01-31T09:15:04Z

START_TEST(times_that_are_none) {
    static const char *const texts[] = {"2026-02-29T00:00:00Z",
                                        "2026-13-01T00:00:00Z",
                                        "2026-00-01T00:00:00Z",
                                        "2026-01-00T00:00:00Z",
                                        "2026-01-32T00:00:00Z",
                                        "2026-01-01T24:00:00Z",
                                        "2026-01-01T00:60:00Z",
                                        "2026-01-01T00:00:61Z",
                                        "1969-12-31T23:59:59Z",
                                        "2262-01-01T00:00:00Z",
                                        "2026-01-01T00:00:00+24:00",
                                        "2026-01-01T00:00:00+1",
                                        "1970-01-01T00:00:00+01:00",
                                        "",
                                        "2026"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct slice text = slice_of(texts[i]);
        uint64_t ns;
        ck_assert_msg(!log_time_iso(&text, &ns), "%s", texts[i]);
        ck_assert_ptr_eq(text.data, texts[i]);
    }
}
END_TEST

START_TEST(times_at_the_edges) {
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1972-02-29T12:00:00Z", UINT64_C(68212800) * SECOND},
        {"2000-03-01T00:00:00Z", UINT64_C(951868800) * SECOND},
        {"2026-01-31T09:15:04.1234567899Z", UINT64_C(1769850904123456789)},
        {"2026-01-31T04:45:04-04:30", UINT64_C(1769850904) * SECOND},
        {"2261-12-31T23:59:59Z", UINT64_C(9214646399) * SECOND},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct slice text = slice_of(good[i].text);
        uint64_t ns = 0;
        ck_assert_msg(log_time_iso(&text, &ns) && text.size == 0, "%s", good[i].text);
        ck_assert_msg(ns == good[i].ns, "%s is %llu", good[i].text, (unsigned long long)ns);
    }
}
END_TEST

static uint64_t syslog_at(const char *written, uint64_t observed_ns) {
    struct slice text = slice_of(written);
    uint64_t ns;
    ck_assert(log_time_syslog(&text, observed_ns, &ns));
    ck_assert_uint_eq(text.size, 0);
    return ns;
}

START_TEST(year_of_a_date_without_one) {
    // Read on the first of January 2026.
    uint64_t new_year_ns = UINT64_C(1767225600) * SECOND;
    ck_assert_uint_eq(syslog_at("Dec 31 23:59:59", new_year_ns), new_year_ns - SECOND);
    ck_assert_uint_eq(syslog_at("Jan  2 00:00:00", new_year_ns), new_year_ns + 86400 * SECOND);
    ck_assert_uint_eq(syslog_at("Jan  2 00:00:01", new_year_ns),
                      new_year_ns - 364 * 86400 * SECOND + SECOND);
    ck_assert_uint_eq(syslog_at("Feb 29 00:00:00", new_year_ns),
                      UINT64_C(1709164800) * SECOND); // 2024
}
END_TEST

START_TEST(other_forms) {
    struct slice text = SLICE("Sat Jan 31 09:15:04.5 2026] x");
    uint64_t ns = 0;
    ck_assert(log_time_ctime(&text, &ns));
    ck_assert_uint_eq(ns, MORNING_NS + 500000000);
    ck_assert(slice_equal(text, SLICE("] x")));
    text = SLICE("  12.000000001]");
    ck_assert(log_time_seconds(&text, &ns));
    ck_assert_uint_eq(ns, 12 * SECOND + 1);
    ck_assert(slice_equal(text, SLICE("]")));
    text = SLICE("12345678901.5");
    ck_assert(!log_time_seconds(&text, &ns));
    text = SLICE("1234567890.5");
    ck_assert(!log_time_seconds(&text, &ns));
    text = SLICE("Jan 31 09:15:04");
    ck_assert(!log_time_syslog(&text, 0, &ns));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("log_time");
    TCase *cases = tcase_create("log_time");
    tcase_add_test(cases, times_that_are_none);
    tcase_add_test(cases, times_at_the_edges);
    tcase_add_test(cases, year_of_a_date_without_one);
    tcase_add_test(cases, other_forms);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

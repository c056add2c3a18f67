// SPDX-License-Identifier: Apache-2.0
// Date-times are read and written as RFC 3339 has them.
#include "base/text/rfc3339.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct {
    const char *text;
    uint64_t ns;
    bool fraction;
} RIGHT[] = {
    {"1970-01-01T00:00:00Z", 0, false},
    {"2026-11-18T09:00:00Z", UINT64_C(1794992400000000000), false},
    {"2026-11-18T09:00:00.5Z", UINT64_C(1794992400500000000), true},
    {"2026-11-18T09:00:00.000000Z", UINT64_C(1794992400000000000), true},
    {"2026-11-18T09:00:00.123456789Z", UINT64_C(1794992400123456789), true},
    {"2026-11-18T09:00:00.12345678999999999999Z", UINT64_C(1794992400123456789), true},
    {"2026-11-18T11:00:00+02:00", UINT64_C(1794992400000000000), false},
    {"2026-11-18T03:30:00-05:30", UINT64_C(1794992400000000000), false},
    {"2026-11-18t09:00:00z", UINT64_C(1794992400000000000), false},
    {"2026-11-18 09:00:00Z", UINT64_C(1794992400000000000), false},
    {"2024-02-29T12:00:00Z", UINT64_C(1709208000000000000), false},
    {"2000-02-29T00:00:00Z", UINT64_C(951782400000000000), false},
    {"2016-12-31T23:59:60Z", UINT64_C(1483228800000000000), false},
    {"1970-01-01T01:00:00+01:00", 0, false},
    {"2554-07-21T23:34:33.709551615Z", UINT64_MAX, true},
};

START_TEST(right) {
    uint64_t ns;
    bool fraction;
    ck_assert_int_eq(rfc3339_parse(slice_of(RIGHT[_i].text), &ns, &fraction), RFC3339_OK);
    ck_assert_uint_eq(ns, RIGHT[_i].ns);
    ck_assert_int_eq(fraction, RIGHT[_i].fraction);
    ck_assert_int_eq(rfc3339_parse(slice_of(RIGHT[_i].text), &ns, NULL), RFC3339_OK);
}
END_TEST

static const char *const WRONG[] = {
    "",
    "now",
    "2026-11-18",
    "2026-11-18T09:00:00",
    "2026-11-18T09:00Z",
    "2026-13-18T09:00:00Z",
    "2026-00-18T09:00:00Z",
    "2026-11-31T09:00:00Z",
    "2026-11-00T09:00:00Z",
    "2026-02-29T09:00:00Z",
    "2100-02-29T09:00:00Z",
    "2026-11-18T24:00:00Z",
    "2026-11-18T09:60:00Z",
    "2026-11-18T09:00:61Z",
    "2026-11-18T09:00:00.Z",
    "2026-11-18T09:00:00+0200",
    "2026-11-18T09:00:00+24:00",
    "2026-11-18T09:00:00+02:60",
    "2026-11-18T09:00:00Z ",
    " 2026-11-18T09:00:00Z",
    "2026-11-18X09:00:00Z",
    "26-11-18T09:00:00Z",
    "-026-11-18T09:00:00Z",
};

START_TEST(wrong) {
    uint64_t ns = 7;
    ck_assert_int_eq(rfc3339_parse(slice_of(WRONG[_i]), &ns, NULL), RFC3339_WRONG);
    ck_assert_uint_eq(ns, 0);
}
END_TEST

START_TEST(outside) {
    static const char *const texts[] = {"0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z",
                                        "1970-01-01T00:00:00+00:01",
                                        "2554-07-21T23:34:33.709551616Z", "9999-12-31T23:59:59Z"};
    uint64_t ns;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_int_eq(rfc3339_parse(slice_of(texts[i]), &ns, NULL), RFC3339_OUTSIDE);
}
END_TEST

// Every prefix of a right text is wrong, and nothing is read behind it.
START_TEST(prefixes) {
    static const char text[] = "2026-11-18T09:00:00.123456789+02:00";
    for (size_t size = 0; size < sizeof text - 1; size++) {
        char *copy = malloc(size + 1);
        memcpy(copy, text, size);
        copy = realloc(copy, size == 0 ? 1 : size);
        uint64_t ns;
        ck_assert_int_eq(rfc3339_parse((struct slice){copy, size}, &ns, NULL), RFC3339_WRONG);
        free(copy);
    }
}
END_TEST

START_TEST(written_and_read_again) {
    uint64_t seed = 1;
    for (int i = 0; i < 100000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t ns = i % 3 == 0 ? seed / 1000000000 * 1000000000 : seed, again;
        char text[RFC3339_TEXT_MAX], second[RFC3339_TEXT_MAX], reference[64];
        rfc3339_format(ns, text);
        rfc3339_format_second(ns, second);
        ck_assert_int_eq(rfc3339_parse(slice_of(text), &again, NULL), RFC3339_OK);
        ck_assert_uint_eq(again, ns);
        time_t unix_s = (time_t)(ns / 1000000000);
        struct tm utc;
        gmtime_r(&unix_s, &utc);
        strftime(reference, sizeof reference, "%Y-%m-%dT%H:%M:%SZ", &utc);
        ck_assert_str_eq(second, reference);
    }
}
END_TEST

START_TEST(written) {
    char text[RFC3339_TEXT_MAX];
    rfc3339_format(UINT64_C(1794992400000000000), text);
    ck_assert_str_eq(text, "2026-11-18T09:00:00Z");
    rfc3339_format(UINT64_C(1794992400120000000), text);
    ck_assert_str_eq(text, "2026-11-18T09:00:00.12Z");
    rfc3339_format(UINT64_C(1794992400000000001), text);
    ck_assert_str_eq(text, "2026-11-18T09:00:00.000000001Z");
    rfc3339_format_second(UINT64_C(1794992400999999999), text);
    ck_assert_str_eq(text, "2026-11-18T09:00:00Z");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("rfc3339");
    TCase *cases = tcase_create("rfc3339");
    tcase_add_loop_test(cases, right, 0, sizeof RIGHT / sizeof *RIGHT);
    tcase_add_loop_test(cases, wrong, 0, sizeof WRONG / sizeof *WRONG);
    tcase_add_test(cases, outside);
    tcase_add_test(cases, prefixes);
    tcase_add_test(cases, written_and_read_again);
    tcase_add_test(cases, written);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

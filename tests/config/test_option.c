// SPDX-License-Identifier: Apache-2.0
#include "config/option.h"

#include <check.h>
#include <stdlib.h>

static void duration_is(const char *text, int64_t ns) {
    struct duration duration = {-1};
    char why[160] = "";
    ck_assert_msg(option_parse_duration(text, &duration, why), "%s: %s", text, why);
    ck_assert_msg(duration.ns == ns, "%s gives %lld", text, (long long)duration.ns);
}

static void duration_fails(const char *text, const char *expected) {
    struct duration duration = {-1};
    char why[160] = "";
    ck_assert_msg(!option_parse_duration(text, &duration, why), "%s was taken", text);
    ck_assert_str_eq(why, expected);
    ck_assert_int_eq(duration.ns, -1);
}

START_TEST(durations) {
    duration_is("0s", 0);
    duration_is("1ns", 1);
    duration_is("2us", 2000);
    duration_is("2\u00b5s", 2000);
    duration_is("2\u03bcs", 2000);
    duration_is("300ms", 300000000);
    duration_is("1.5s", 1500000000);
    duration_is(".5s", 500000000);
    duration_is("1h30m", INT64_C(5400000000000));
    duration_is("1h1m1s1ms1us1ns", INT64_C(3661001001001));
    duration_is("0.000000001s", 1);
    duration_is("0.3h", INT64_C(1080000000000));
    duration_is("2562047h", INT64_C(2562047) * 3600 * 1000000000);
}
END_TEST

START_TEST(durations_refused) {
    duration_fails("", "'' is not a valid duration; write it like 300ms, 5s or 1h30m");
    duration_fails("5", "'5' has no unit; write 5s or 5ms");
    duration_fails("0", "'0' has no unit; write 0s or 0ms");
    duration_fails("-5s", "'-5s' is not a valid duration; it cannot be negative");
    duration_fails("1d", "'1d' is not a valid duration; the largest unit is h: a day is 24h");
    duration_fails("5 s", "'5 s' is not a valid duration; write it like 300ms, 5s or 1h30m");
    duration_fails("5s ", "'5s ' is not a valid duration; write it like 300ms, 5s or 1h30m");
    duration_fails("s", "'s' is not a valid duration; write it like 300ms, 5s or 1h30m");
    duration_fails("5S", "'5S' is not a valid duration; write it like 300ms, 5s or 1h30m");
    duration_fails("1.2.3s", "'1.2.3s' is not a valid duration; write it like 300ms, 5s or 1h30m");
    duration_fails("9999999h", "'9999999h' is not a valid duration; the longest one is 2562047h");
    duration_fails("2562047h2562047h",
                   "'2562047h2562047h' is not a valid duration; the longest one is 2562047h");
    duration_fails(
        "12345678901234567890s",
        "'12345678901234567890s' is not a valid duration; write it like 300ms, 5s or 1h30m");
}
END_TEST

static void size_is(const char *text, uint64_t bytes) {
    struct byte_size size = {UINT64_MAX};
    char why[160] = "";
    ck_assert_msg(option_parse_size(text, &size, why), "%s: %s", text, why);
    ck_assert_msg(size.bytes == bytes, "%s gives %llu", text, (unsigned long long)size.bytes);
}

static void size_fails(const char *text, const char *expected) {
    struct byte_size size = {7};
    char why[160] = "";
    ck_assert_msg(!option_parse_size(text, &size, why), "%s was taken", text);
    ck_assert_str_eq(why, expected);
    ck_assert_uint_eq(size.bytes, 7);
}

START_TEST(sizes) {
    size_is("0B", 0);
    size_is("512B", 512);
    size_is("1KiB", 1024);
    size_is("64MiB", UINT64_C(64) << 20);
    size_is("1.5GiB", UINT64_C(3) << 29);
    size_is("2TiB", UINT64_C(2) << 40);
    size_is("8388607TiB", UINT64_C(8388607) << 40);
}
END_TEST

START_TEST(sizes_refused) {
    size_fails("64", "'64' has no unit; write 64B, 64KiB or 64MiB");
    size_fails("10MB", "'10MB' has a unit that is not used here; use MiB: 10MiB");
    size_fails("10kB", "'10kB' has a unit that is not used here; use KiB: 10KiB");
    size_fails("10K", "'10K' has a unit that is not used here; use KiB: 10KiB");
    size_fails("1.5Gi", "'1.5Gi' has a unit that is not used here; use GiB: 1.5GiB");
    size_fails("64mib", "'64mib' has a unit that is not used here; use MiB: 64MiB");
    size_fails("2tb", "'2tb' has a unit that is not used here; use TiB: 2TiB");
    size_fails("64 MiB", "'64 MiB' is not a valid size; write it like 512B, 64KiB, 20MiB or 2GiB");
    size_fails("", "'' is not a valid size; write it like 512B, 64KiB, 20MiB or 2GiB");
    size_fails("-1B", "'-1B' is not a valid size; it cannot be negative");
    size_fails("1b", "'1b' is not a valid size; write it like 512B, 64KiB, 20MiB or 2GiB");
    size_fails("8388608TiB", "'8388608TiB' is not a valid size; the largest one is 8388607TiB");
    size_fails("1KiB1KiB",
               "'1KiB1KiB' is not a valid size; write it like 512B, 64KiB, 20MiB or 2GiB");
}
END_TEST

// A long value is cut, never run over.
START_TEST(long_values_are_cut) {
    char text[4096], why[160];
    memset(text, 'x', sizeof text - 1);
    text[0] = '1';
    text[sizeof text - 1] = '\0';
    struct duration duration;
    struct byte_size size;
    ck_assert(!option_parse_duration(text, &duration, why));
    ck_assert_uint_lt(strlen(why), sizeof why);
    ck_assert(!option_parse_size(text, &size, why));
    ck_assert_uint_lt(strlen(why), sizeof why);
}
END_TEST

static void formatted(int64_t ns, const char *expected) {
    char out[OPTION_VALUE_MAX];
    option_format_duration((struct duration){ns}, out);
    ck_assert_str_eq(out, expected);
    struct duration back;
    char why[160];
    ck_assert(option_parse_duration(out, &back, why));
    ck_assert_int_eq(back.ns, ns);
}

START_TEST(formats_read_back) {
    formatted(0, "0s");
    formatted(1, "1ns");
    formatted(60000000000, "1m");
    formatted(5400000000000, "1h30m");
    formatted(1500000000, "1s500ms");
    formatted(INT64_MAX - 1, "2562047h47m16s854ms775us806ns");
    char out[OPTION_VALUE_MAX];
    static const struct {
        uint64_t bytes;
        const char *text;
    } SIZES[] = {{0, "0B"},
                 {1023, "1023B"},
                 {1024, "1KiB"},
                 {1536, "1536B"},
                 {UINT64_C(64) << 20, "64MiB"},
                 {UINT64_C(5) << 40, "5TiB"}};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        option_format_size((struct byte_size){SIZES[i].bytes}, out);
        ck_assert_str_eq(out, SIZES[i].text);
    }
}
END_TEST

static void nearest_is(const char *given, const char *expected) {
    static const char *const NAMES[] = {"include", "exclude", "start_at", "max_line_size", "json"};
    const char *near = option_nearest(given, NAMES, 5);
    ck_assert_msg((near == NULL) == (expected == NULL), "%s gives %s", given, near);
    if (expected != NULL)
        ck_assert_str_eq(near, expected);
}

START_TEST(nearest) {
    nearest_is("includ", "include");
    nearest_is("inlcude", "include");
    nearest_is("excldue", "exclude");
    nearest_is("max_linesize", "max_line_size");
    nearest_is("jsno", "json");
    nearest_is("jsonl", "json");
    nearest_is("start", "start_at");
    nearest_is("x", NULL);
    nearest_is("", NULL);
    nearest_is("brokers", NULL);
    char longer[200];
    memset(longer, 'j', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    nearest_is(longer, NULL);
    ck_assert_ptr_null(option_nearest("json", NULL, 0));
}
END_TEST

START_TEST(ranges) {
    static const char *const CHOICES[] = {"a", "b", "c", NULL};
    static const struct {
        struct option row;
        const char *range;
    } ROWS[] = {
        {{.type = OPTION_INT}, ""},
        {{.type = OPTION_INT, .min = 1, .max = 65536}, "between 1 and 65536"},
        {{.type = OPTION_INT, .max = 10}, "between 0 and 10"},
        {{.type = OPTION_INT, .min = 1, .max = 1e19}, "at least 1"},
        {{.type = OPTION_RATIO, .max = 0.5}, "between 0 and 0.5"},
        {{.type = OPTION_DURATION, .min = 0.01, .max = 5400}, "between 10ms and 1h30m"},
        {{.type = OPTION_DURATION, .max = 60}, "at most 1m"},
        {{.type = OPTION_DURATION, .min = 1, .max = 60, .special = "all"},
         "between 1s and 1m, or all"},
        {{.type = OPTION_DURATION, .special = "never"}, "any, or never"},
        {{.type = OPTION_SIZE, .min = 1024, .max = 1048576}, "between 1KiB and 1MiB"},
        {{.type = OPTION_SIZE, .min = 1024, .max = 1e15}, "between 1KiB and 909.5TiB"},
        {{.type = OPTION_SIZE, .min = 1024, .max = 1e19}, "at least 1KiB"},
        {{.type = OPTION_CHOICE, .choices = CHOICES}, "a, b or c"},
        {{.type = OPTION_TEXT}, ""},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char range[OPTION_RANGE_MAX];
        option_range(&ROWS[i].row, range);
        ck_assert_str_eq(range, ROWS[i].range);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("option");
    TCase *cases = tcase_create("option");
    tcase_add_test(cases, durations);
    tcase_add_test(cases, durations_refused);
    tcase_add_test(cases, sizes);
    tcase_add_test(cases, sizes_refused);
    tcase_add_test(cases, long_values_are_cut);
    tcase_add_test(cases, formats_read_back);
    tcase_add_test(cases, nearest);
    tcase_add_test(cases, ranges);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

// SPDX-License-Identifier: Apache-2.0
// Time zones by name, and local times around the days on which clocks change.
#include "base/text/time_zone.h"

#include "base/memory.h"

#include <check.h>
#include <stdlib.h>

static void teardown(void) {
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// 2026-01-01T00:00:00, of whatever zone.
#define YEAR_2026 INT64_C(1767225600)
#define DAY       INT64_C(86400)

static const struct {
    const char *zone;
    int64_t local_s;
    int32_t offset_s;
} TIMES[] = {
    {"UTC", YEAR_2026, 0},
    {"Z", YEAR_2026, 0},
    {"+02:00", YEAR_2026, 7200},
    {"-0530", YEAR_2026, -19800},
    {"+2", YEAR_2026, 7200},
    {"Europe/Berlin", YEAR_2026, 3600},
    {"Europe/Berlin", YEAR_2026 + 200 * DAY, 7200},
    {"Europe/Berlin", 0, 3600},
    {"America/New_York", YEAR_2026, -18000},
    {"America/New_York", YEAR_2026 + 200 * DAY, -14400},
    {"Asia/Shanghai", YEAR_2026, 28800},
    {"Asia/Kolkata", YEAR_2026, 19800},
    // Summer around the turn of the year, and half an hour of it.
    {"Australia/Lord_Howe", YEAR_2026, 39600},
    {"Australia/Lord_Howe", YEAR_2026 + 200 * DAY, 37800},
    {"Africa/Casablanca", YEAR_2026, 3600},
    // Behind what the files list, by the rule at their end.
    {"Europe/Berlin", INT64_C(4102444800) + 200 * DAY, 7200}, // 2100
    {"Europe/Berlin", INT64_C(4102444800), 3600},
    {"Australia/Sydney", INT64_C(4102444800), 39600},
    {"Australia/Sydney", INT64_C(4102444800) + 200 * DAY, 36000},
    {"America/Sao_Paulo", INT64_C(4102444800), -10800},
    // 2026-03-29: 02:00 becomes 03:00. What lies between never was: as before the change.
    {"Europe/Berlin", INT64_C(1774749599), 3600},
    {"Europe/Berlin", INT64_C(1774749600), 3600},
    {"Europe/Berlin", INT64_C(1774753199), 3600},
    {"Europe/Berlin", INT64_C(1774753200), 7200},
    // 2026-10-25: 03:00 becomes 02:00. What was twice is the first.
    {"Europe/Berlin", INT64_C(1792893600), 7200},
    {"Europe/Berlin", INT64_C(1792897199), 7200},
    {"Europe/Berlin", INT64_C(1792897200), 3600},
};

START_TEST(local_times) {
    struct time_zone *zone = time_zone_open(slice_of(TIMES[_i].zone));
    ck_assert_msg(zone != NULL, "%s", TIMES[_i].zone);
    ck_assert_msg(time_zone_unix(zone, TIMES[_i].local_s) == TIMES[_i].local_s - TIMES[_i].offset_s,
                  "%s: %lld", TIMES[_i].zone,
                  (long long)(TIMES[_i].local_s - time_zone_unix(zone, TIMES[_i].local_s)));
    time_zone_close(zone);
}
END_TEST

static const char *const WRONG[] = {
    "",
    "/",
    "..",
    "../etc/passwd",
    "Europe/../UTC",
    "/etc/localtime",
    "Europe/",
    "Europe",
    "Nope",
    "Europe//Berlin",
    "tzdata.zi",
    "zone.tab",
    "+24:00",
    "+01:60",
    "+1:",
    "+",
    "+01:000",
    "right/Europe/Berlin",
    "utc ",
    "Europe/Berl",
    "-01-00",
    "Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};

START_TEST(wrong_names) {
    ck_assert_msg(time_zone_open(slice_of(WRONG[_i])) == NULL, "%s", WRONG[_i]);
}
END_TEST

// Each second of days on which clocks change: what a local time gives shows that time again, but
// for those that never were.
START_TEST(there_and_back) {
    static const char *const zones[] = {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                        "Africa/Casablanca"};
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        struct time_zone *zone = time_zone_open(slice_of(zones[i]));
        ck_assert_ptr_nonnull(zone);
        int64_t before = INT64_MIN;
        unsigned never = 0;
        for (int64_t at = YEAR_2026; at < YEAR_2026 + 365 * DAY; at += 600) {
            int64_t unix_s = time_zone_unix(zone, at);
            never += unix_s + time_zone_offset(zone, unix_s) != at;
            // Going forward it goes back only where clocks were put forward.
            ck_assert(unix_s > before || unix_s + time_zone_offset(zone, unix_s) == at);
            before = unix_s;
        }
        ck_assert_uint_le(never, 6);
        ck_assert_uint_ge(never, 3);
        time_zone_close(zone);
    }
}
END_TEST

START_TEST(no_zone_is_utc) {
    ck_assert_int_eq(time_zone_offset(NULL, YEAR_2026), 0);
    ck_assert_int_eq(time_zone_unix(NULL, YEAR_2026), YEAR_2026);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("time_zone");
    TCase *cases = tcase_create("time_zone");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, local_times, 0, sizeof TIMES / sizeof *TIMES);
    tcase_add_loop_test(cases, wrong_names, 0, sizeof WRONG / sizeof *WRONG);
    tcase_add_test(cases, there_and_back);
    tcase_add_test(cases, no_zone_is_utc);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

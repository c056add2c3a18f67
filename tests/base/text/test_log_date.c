// SPDX-License-Identifier: Apache-2.0
// Dates of log lines: what is taken, and which time it is.
#include "base/text/log_date.h"

#include "base/text/rfc3339.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define OBSERVED UINT64_C(1773964800000000000) // 2026-03-20T00:00:00Z

typedef bool take_date(struct slice *text, struct log_date *date);

static const struct {
    take_date *take;
    const char *text;
    const char *want; // NULL: none
    enum log_date_result result;
    const char *rest;
} DATES[] = {
    {log_date_take_iso, "2026-03-14T01:50:17.5Z x", "2026-03-14T01:50:17.5Z", LOG_DATE_OK, " x"},
    {log_date_take_iso, "2026-03-14 01:50:17,500001+01:00 x", "2026-03-14T00:50:17.500001Z",
     LOG_DATE_OK, " x"},
    {log_date_take_iso, "2026-03-14_01:50:17-0530", "2026-03-14T07:20:17Z", LOG_DATE_OK, ""},
    {log_date_take_iso, "2026-03-14T01:50:17.1234567899+01", "2026-03-14T00:50:17.123456789Z",
     LOG_DATE_OK, ""},
    {log_date_take_iso, "2026-03-14T01:50:17. x", "2026-03-14T01:50:17Z", LOG_DATE_OK, ". x"},
    {log_date_take_iso, "2026-02-30T01:50:17Z", "", LOG_DATE_NONE, ""},
    {log_date_take_iso, "2026-13-01T01:50:17Z", "", LOG_DATE_NONE, ""},
    {log_date_take_iso, "0000-00-00T01:50:17Z", "", LOG_DATE_NONE, ""},
    {log_date_take_iso, "1969-12-31T23:59:59Z", "", LOG_DATE_NONE, ""},
    {log_date_take_iso, "1970-01-01T00:00:00+01:00", "", LOG_DATE_NONE, ""},
    {log_date_take_iso, "2262-01-01T00:00:00Z", "", LOG_DATE_NONE, ""},
    {log_date_take_iso, "2261-12-31T23:59:59Z", "2261-12-31T23:59:59Z", LOG_DATE_OK, ""},
    {log_date_take_iso, "2026-03-14T24:50:17Z", NULL, LOG_DATE_OK, NULL},
    {log_date_take_iso, "2026-03-14T01:50:17+24:00", NULL, LOG_DATE_OK, NULL},
    {log_date_take_iso, "2026-03-14T01:50:17+01:", NULL, LOG_DATE_OK, NULL},
    {log_date_take_iso, "2026-3-14T01:50:17", NULL, LOG_DATE_OK, NULL},
    {log_date_take_iso, "2026/03/14 01:50:17.5 x", "2026-03-14T01:50:17.5Z", LOG_DATE_OK, " x"},
    {log_date_take_iso, "2026/03-14 01:50:17", NULL, LOG_DATE_OK, NULL},
    {log_date_take_iso, "2026-03/14 01:50:17", NULL, LOG_DATE_OK, NULL},
    {log_date_take_syslog, "Mar 14 01:50:17 n", "2026-03-14T01:50:17Z", LOG_DATE_OK, " n"},
    {log_date_take_syslog, "Mar  4 01:50:17.25", "2026-03-04T01:50:17.25Z", LOG_DATE_OK, ""},
    {log_date_take_syslog, "Mar 21 00:00:00", "2026-03-21T00:00:00Z", LOG_DATE_OK, ""},
    {log_date_take_syslog, "Mar 21 00:00:01", "2025-03-21T00:00:01Z", LOG_DATE_OK, ""},
    {log_date_take_syslog, "Feb 29 00:00:00", "2024-02-29T00:00:00Z", LOG_DATE_OK, ""},
    {log_date_take_syslog, "Feb 30 00:00:00", "", LOG_DATE_NONE, ""},
    {log_date_take_syslog, "Mar 0 00:00:00", "", LOG_DATE_NONE, ""},
    {log_date_take_syslog, "Xyz 14 00:00:00", "", LOG_DATE_UNKNOWN_MONTH, ""},
    {log_date_take_syslog, "13\xe6\x9c\x88 14 00:00:00", "", LOG_DATE_UNKNOWN_MONTH, ""},
    {log_date_take_syslog, "12 14 00:00:00", NULL, LOG_DATE_OK, NULL},
    {log_date_take_syslog, "Mar 14 00:00", NULL, LOG_DATE_OK, NULL},
    {log_date_take_syslog, "Mar    14 00:00:00", NULL, LOG_DATE_OK, NULL},
    {log_date_take_ctime, "Sat Mar 14 01:50:17 2026]", "2026-03-14T01:50:17Z", LOG_DATE_OK, "]"},
    {log_date_take_ctime, "Sa M\xc3\xa4r 14 01:50:17 2020", "2020-03-14T01:50:17Z", LOG_DATE_OK,
     ""},
    {log_date_take_ctime, "Sat Mar 14 01:50:17 0000", NULL, LOG_DATE_OK, NULL},
    {log_date_take_minute, "Mar14 01:50]", "2026-03-14T01:50:00Z", LOG_DATE_OK, "]"},
    {log_date_take_minute, "Mar14 24:50", NULL, LOG_DATE_OK, NULL},
    {log_date_take_month_first, "Mar 14 2026 01:50:17]", "2026-03-14T01:50:17Z", LOG_DATE_OK, "]"},
    {log_date_take_month_year, "Mar 14 01:50:17 2026]", "2026-03-14T01:50:17Z", LOG_DATE_OK, "]"},
    {log_date_take_month_year, "Mar 14 01:50:17 node", NULL, LOG_DATE_OK, NULL},
    {log_date_take_glog, "314 01:50:17.000417225 F", "2026-03-14T01:50:17.000417225Z", LOG_DATE_OK,
     " F"},
    {log_date_take_glog, "0314 01:50:17", "2026-03-14T01:50:17Z", LOG_DATE_OK, ""},
    {log_date_take_glog, "1399 01:50:17", "", LOG_DATE_NONE, ""},
    {log_date_take_glog, "31 01:50:17", NULL, LOG_DATE_OK, NULL},
};

START_TEST(dates) {
    struct slice text = slice_of(DATES[_i].text);
    struct log_date date;
    uint64_t ns;
    char shown[RFC3339_TEXT_MAX];
    bool taken = DATES[_i].take(&text, &date);
    ck_assert_msg(taken == (DATES[_i].want != NULL), "%s", DATES[_i].text);
    if (!taken) {
        ck_assert_ptr_eq(text.data, DATES[_i].text);
        return;
    }
    ck_assert_str_eq(text.data, DATES[_i].rest);
    ck_assert_int_eq(log_date_unix(&date, NULL, OBSERVED, &ns), DATES[_i].result);
    if (DATES[_i].result != LOG_DATE_OK)
        return;
    rfc3339_format(ns, shown);
    ck_assert_str_eq(shown, DATES[_i].want);
    if (date.year == 0)
        ck_assert_int_eq(log_date_unix(&date, NULL, 0, &ns), LOG_DATE_NO_YEAR);
}
END_TEST

START_TEST(dates_cut_off) {
    size_t whole = strlen(DATES[_i].text);
    for (size_t size = 0; size <= whole; size++) {
        char *copy = malloc(size + 1);
        memcpy(copy, DATES[_i].text, size);
        struct slice text = {copy, size};
        struct log_date date;
        if (!DATES[_i].take(&text, &date))
            ck_assert(text.data == copy && text.size == size);
        else
            ck_assert(text.data > copy && text.data + text.size == copy + size);
        free(copy);
    }
}
END_TEST

static const char *const MONTHS[12] = {
    "Jan januar JANUARY janv. janvier enero gen sty stycznia янв Янв января jänner 1月",
    "Feb févr. février feb fev febbraio lutego лют- фев февраля 2月",
    "Mar Mär März mars marzo mrt marca мар марта МАРТ 3월",
    "Apr avr. abr aprile kwietnia апреля 4月",
    "May Mai mayo maggio maj мая 5月",
    "Jun juin giu junho czerwca июня 6月",
    "Jul juil. lug julho lipca июля 7月",
    "Aug août Août ago agosto sierpnia августа 8月",
    "Sep sept. set setembro września сен сентября 9月",
    "Oct Okt Oktober ott out października окт ОКТЯБРЬ 10月",
    "Nov nov. noviembre listopada ноября 11月",
    "Dec Dez dic déc. décembre grudnia дек декабря 12月",
};

START_TEST(names_of_months) {
    struct slice names = slice_of(MONTHS[_i]);
    unsigned known = 0, unknown = 0;
    for (struct slice name; names.size > 0;) {
        const char *end = memchr(names.data, ' ', names.size);
        name = (struct slice){names.data, end == NULL ? names.size : (size_t)(end - names.data)};
        names.data += name.size + (end != NULL);
        names.size -= name.size + (end != NULL);
        char line[128];
        snprintf(line, sizeof line, "%.*s 14 01:50:17", (int)name.size, name.data);
        struct slice text = slice_of(line);
        struct log_date date = {0};
        if (log_date_take_syslog(&text, &date) && date.month == (uint32_t)_i + 1)
            known++;
        else if (memchr(name.data, '-', name.size) != NULL)
            unknown++;
        else
            ck_abort_msg("%s is month %u", line, date.month);
    }
    ck_assert_uint_ge(known, 6);
    ck_assert_uint_eq(unknown, _i == 1 ? 1 : 0);
}
END_TEST

START_TEST(zones) {
    struct time_zone *zone = time_zone_open(SLICE("Europe/Berlin"));
    ck_assert_ptr_nonnull(zone);
    struct log_date date = {.year = 2026, .month = 7, .day = 1};
    uint64_t ns;
    ck_assert_int_eq(log_date_unix(&date, zone, 0, &ns), LOG_DATE_OK);
    ck_assert_uint_eq(ns, UINT64_C(1782856800000000000));
    date.has_offset = true; // what the line says counts
    ck_assert_int_eq(log_date_unix(&date, zone, 0, &ns), LOG_DATE_OK);
    ck_assert_uint_eq(ns, UINT64_C(1782864000000000000));
    time_zone_close(zone);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("log_date");
    TCase *cases = tcase_create("log_date");
    tcase_add_loop_test(cases, dates, 0, sizeof DATES / sizeof *DATES);
    tcase_add_loop_test(cases, dates_cut_off, 0, sizeof DATES / sizeof *DATES);
    tcase_add_loop_test(cases, names_of_months, 0, 12);
    tcase_add_test(cases, zones);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

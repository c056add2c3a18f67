// SPDX-License-Identifier: Apache-2.0
// Reads and writes date-times.
//
// Days are counted over 400-year cycles that begin in March, so that a leap day is the last one of
// its year. Constant time, no memory. Source: RFC 3339, section 5.6; the proleptic Gregorian
// calendar.
#include "base/text/rfc3339.h"

#include "base/text/cut.h"

#include <assert.h>
#include <stdio.h>

enum { NS_DIGITS = 9 };
static const uint64_t NS_PER_SECOND = 1000000000;

static bool is_date(uint64_t year, uint64_t month, uint64_t day) {
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month >= 1 && month <= 12 && day >= 1 &&
           day <= (month == 2 && leap ? 29u : days[month - 1]);
}

// Days from 1970-01-01, negative before it.
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
    int64_t march_year = month > 2 ? year : year - 1; // not negative: year is at least 0
    int64_t cycle = (march_year + 400) / 400 - 1;
    int64_t of_cycle = march_year - cycle * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t days = of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year;
    return cycle * 146097 + days - 719468;
}

bool rfc3339_date(uint64_t year, uint64_t month, uint64_t day, int64_t *seconds) {
    assert(year <= 9999);
    if (!is_date(year, month, day))
        return false;
    *seconds = days_of((int64_t)year, (int64_t)month, (int64_t)day) * 86400;
    return true;
}

bool rfc3339_take_clock(struct slice *text, int64_t *seconds) {
    struct slice rest = *text;
    uint64_t hour, minute, second;
    if (!text_take_number(&rest, 2, 2, &hour) || !text_skip_char(&rest, ':') ||
        !text_take_number(&rest, 2, 2, &minute) || !text_skip_char(&rest, ':') ||
        !text_take_number(&rest, 2, 2, &second) || hour > 23 || minute > 59 || second > 60)
        return false;
    *seconds += (int64_t)(hour * 3600 + minute * 60 + second);
    *text = rest;
    return true;
}

static bool take_date(struct slice *rest, int64_t *seconds) {
    uint64_t year, month, day;
    return text_take_number(rest, 4, 4, &year) && text_skip_char(rest, '-') &&
           text_take_number(rest, 2, 2, &month) && text_skip_char(rest, '-') &&
           text_take_number(rest, 2, 2, &day) && rfc3339_date(year, month, day, seconds) &&
           (text_skip_char(rest, 'T') || text_skip_char(rest, 't') || text_skip_char(rest, ' '));
}

static bool take_fraction(struct slice *rest, uint64_t *fraction_ns, bool *has_fraction) {
    *fraction_ns = 0;
    *has_fraction = text_skip_char(rest, '.');
    uint64_t digit, unit = NS_PER_SECOND / 10;
    size_t size = rest->size;
    for (; *has_fraction && text_take_number(rest, 1, 1, &digit); unit /= 10)
        *fraction_ns += digit * unit;
    return !*has_fraction || rest->size < size;
}

static bool take_offset(struct slice *rest, int64_t *seconds) {
    uint64_t hours, minutes;
    if (text_skip_char(rest, 'Z') || text_skip_char(rest, 'z'))
        return true;
    bool ahead = text_skip_char(rest, '+');
    if ((!ahead && !text_skip_char(rest, '-')) || !text_take_number(rest, 2, 2, &hours) ||
        !text_skip_char(rest, ':') || !text_take_number(rest, 2, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    int64_t offset = (int64_t)(hours * 3600 + minutes * 60);
    *seconds -= ahead ? offset : -offset;
    return true;
}

enum rfc3339_result rfc3339_parse(struct slice text, uint64_t *unix_ns, bool *has_fraction) {
    assert(unix_ns != NULL);
    int64_t seconds;
    uint64_t fraction_ns;
    bool fraction;
    *unix_ns = 0;
    if (has_fraction != NULL)
        *has_fraction = false;
    if (!take_date(&text, &seconds) || !rfc3339_take_clock(&text, &seconds) ||
        !take_fraction(&text, &fraction_ns, &fraction) || !take_offset(&text, &seconds) ||
        text.size != 0)
        return RFC3339_WRONG;
    uint64_t whole_ns;
    if (seconds < 0 || __builtin_mul_overflow((uint64_t)seconds, NS_PER_SECOND, &whole_ns) ||
        __builtin_add_overflow(whole_ns, fraction_ns, unix_ns)) {
        *unix_ns = 0;
        return RFC3339_OUTSIDE;
    }
    if (has_fraction != NULL)
        *has_fraction = fraction;
    return RFC3339_OK;
}

// The date of a day, counted from 1970-01-01.
static void date_of(uint64_t day, unsigned *year, unsigned *month, unsigned *of_month) {
    uint64_t from_march = day + 719468;
    uint64_t cycle = from_march / 146097, of_cycle = from_march % 146097;
    uint64_t of_cycle_year =
        (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / 146096) / 365;
    uint64_t of_year = of_cycle - (365 * of_cycle_year + of_cycle_year / 4 - of_cycle_year / 100);
    uint64_t march_month = (5 * of_year + 2) / 153;
    *of_month = (unsigned)(of_year - (153 * march_month + 2) / 5 + 1);
    *month = (unsigned)(march_month < 10 ? march_month + 3 : march_month - 9);
    *year = (unsigned)(cycle * 400 + of_cycle_year + (*month <= 2));
}

static size_t put_second(uint64_t seconds, char out[RFC3339_TEXT_MAX]) {
    unsigned year, month, day, left = (unsigned)(seconds % 86400);
    date_of(seconds / 86400, &year, &month, &day);
    return (size_t)snprintf(out, RFC3339_TEXT_MAX, "%04u-%02u-%02uT%02u:%02u:%02uZ", year % 10000,
                            month, day, left / 3600, left / 60 % 60, left % 60);
}

void rfc3339_format_second(uint64_t unix_ns, char out[RFC3339_TEXT_MAX]) {
    put_second(unix_ns / NS_PER_SECOND, out);
}

void rfc3339_format(uint64_t unix_ns, char out[RFC3339_TEXT_MAX]) {
    size_t size = put_second(unix_ns / NS_PER_SECOND, out) - 1; // in front of the Z
    unsigned fraction = (unsigned)(unix_ns % NS_PER_SECOND), digits = NS_DIGITS;
    if (fraction == 0)
        return;
    for (; fraction % 10 == 0; digits--)
        fraction /= 10;
    snprintf(out + size, RFC3339_TEXT_MAX - size, ".%0*uZ", (int)digits, fraction);
}

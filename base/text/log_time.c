// SPDX-License-Identifier: Apache-2.0
// When does a log say that it was? Days are counted with years that begin in March, so that the
// leap day is the last one (Howard Hinnant, "chrono-compatible low-level date algorithms").
#include "base/text/log_time.h"

#include <string.h>

static const uint64_t SECOND_NS = 1000000000;
enum { YEAR_MIN = 1970, YEAR_MAX = 2553, DAY_S = 86400 };

struct moment {
    unsigned year, month, day, hour, minute, second;
    uint64_t fraction_ns;
};

// Exactly `digits` of them.
static bool read_number(struct slice text, size_t *at, unsigned digits, unsigned *value) {
    unsigned number = 0;
    if (text.size - *at < digits)
        return false;
    for (unsigned i = 0; i < digits; i++) {
        char c = text.data[*at + i];
        if (c < '0' || c > '9')
            return false;
        number = number * 10 + (unsigned)(c - '0');
    }
    *at += digits;
    *value = number;
    return true;
}

static bool read_char(struct slice text, size_t *at, char wanted) {
    if (*at >= text.size || text.data[*at] != wanted)
        return false;
    ++*at;
    return true;
}

// Digits behind a point, as nanoseconds.
static uint64_t read_fraction(struct slice text, size_t *at) {
    uint64_t value = 0, unit = SECOND_NS / 10;
    for (; *at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9'; ++*at) {
        value += (uint64_t)(text.data[*at] - '0') * unit;
        unit /= 10;
    }
    return value;
}

static bool read_clock(struct slice text, size_t *at, struct moment *moment) {
    if (!read_number(text, at, 2, &moment->hour) || !read_char(text, at, ':') ||
        !read_number(text, at, 2, &moment->minute) || !read_char(text, at, ':') ||
        !read_number(text, at, 2, &moment->second))
        return false;
    moment->fraction_ns = 0;
    if (read_char(text, at, '.') || read_char(text, at, ','))
        moment->fraction_ns = read_fraction(text, at);
    return moment->hour < 24 && moment->minute < 60 && moment->second <= 60;
}

static bool read_month(struct slice text, size_t *at, unsigned *month) {
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text.size - *at < 3)
        return false;
    for (unsigned i = 0; i < 12; i++) {
        if (memcmp(names + (size_t)i * 3, text.data + *at, 3) == 0) {
            *month = i + 1;
            *at += 3;
            return true;
        }
    }
    return false;
}

static unsigned month_days(unsigned year, unsigned month) {
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap ? 1u : 0u);
}

// Seconds since 1970 of a date that is one.
static bool unix_seconds(const struct moment *moment, int64_t *seconds) {
    if (moment->year < YEAR_MIN || moment->year > YEAR_MAX || moment->month < 1 ||
        moment->month > 12 || moment->day < 1 ||
        moment->day > month_days(moment->year, moment->month))
        return false;
    int64_t year = moment->month <= 2 ? (int64_t)moment->year - 1 : (int64_t)moment->year;
    int64_t month = (moment->month + 9) % 12;
    int64_t day = (153 * month + 2) / 5 + moment->day - 1;
    int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + day - 719468;
    *seconds = days * DAY_S + moment->hour * 3600 + moment->minute * 60 + moment->second;
    return true;
}

static bool unix_ns(const struct moment *moment, int64_t zone_s, uint64_t *ns) {
    int64_t seconds;
    if (!unix_seconds(moment, &seconds) || seconds - zone_s < 0)
        return false;
    *ns = (uint64_t)(seconds - zone_s) * SECOND_NS + moment->fraction_ns;
    return true;
}

// "Z", "+01:00", "+0100" or nothing.
static bool read_zone(struct slice text, size_t *at, int64_t *zone_s) {
    unsigned hours, minutes;
    *zone_s = 0;
    if (read_char(text, at, 'Z'))
        return true;
    bool minus = *at < text.size && text.data[*at] == '-';
    if (!minus && (*at >= text.size || text.data[*at] != '+'))
        return true;
    ++*at;
    if (!read_number(text, at, 2, &hours))
        return false;
    read_char(text, at, ':');
    if (!read_number(text, at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *zone_s = (int64_t)hours * 3600 + (int64_t)minutes * 60;
    if (minus)
        *zone_s = -*zone_s;
    return true;
}

bool log_time_iso(struct slice text, size_t *at, uint64_t *ns) {
    struct moment moment;
    size_t here = *at;
    int64_t zone_s;
    if (!read_number(text, &here, 4, &moment.year) || !read_char(text, &here, '-') ||
        !read_number(text, &here, 2, &moment.month) || !read_char(text, &here, '-') ||
        !read_number(text, &here, 2, &moment.day) ||
        !(read_char(text, &here, 'T') || read_char(text, &here, ' ')) ||
        !read_clock(text, &here, &moment) || !read_zone(text, &here, &zone_s) ||
        !unix_ns(&moment, zone_s, ns))
        return false;
    *at = here;
    return true;
}

// "Jan 31", "Jan  3".
static bool read_day(struct slice text, size_t *at, struct moment *moment) {
    if (!read_month(text, at, &moment->month) || !read_char(text, at, ' '))
        return false;
    return read_number(text, at, read_char(text, at, ' ') ? 1 : 2, &moment->day);
}

bool log_time_syslog(struct slice text, size_t *at, uint64_t observed_ns, uint64_t *ns) {
    struct moment moment = {0};
    size_t here = *at;
    if (observed_ns == 0 || !read_day(text, &here, &moment) || !read_char(text, &here, ' ') ||
        !read_clock(text, &here, &moment))
        return false;
    uint64_t latest_ns =
        observed_ns > UINT64_MAX - DAY_S * SECOND_NS ? UINT64_MAX : observed_ns + DAY_S * SECOND_NS;
    // Within eight years every date exists in one of them, the 29th of February too.
    unsigned newest = YEAR_MIN + (unsigned)(latest_ns / SECOND_NS / DAY_S / 365) + 1;
    for (unsigned back = 0; back <= 10; back++) {
        moment.year = newest - back;
        if (unix_ns(&moment, 0, ns) && *ns <= latest_ns) {
            *at = here;
            return true;
        }
    }
    return false;
}

bool log_time_ctime(struct slice text, size_t *at, uint64_t *ns) {
    struct moment moment = {0};
    size_t here = *at + 3;
    if (text.size < here + 1 || text.data[here] != ' ')
        return false;
    here++;
    if (!read_day(text, &here, &moment) || !read_char(text, &here, ' ') ||
        !read_clock(text, &here, &moment) || !read_char(text, &here, ' ') ||
        !read_number(text, &here, 4, &moment.year) || !unix_ns(&moment, 0, ns))
        return false;
    *at = here;
    return true;
}

bool log_time_seconds(struct slice text, size_t *at, uint64_t *ns) {
    size_t here = *at;
    while (read_char(text, &here, ' ')) {
    }
    uint64_t seconds = 0;
    size_t digits = here;
    for (; here < text.size && text.data[here] >= '0' && text.data[here] <= '9'; here++) {
        if (here - digits >= 10)
            return false;
        seconds = seconds * 10 + (uint64_t)(text.data[here] - '0');
    }
    if (here == digits || !read_char(text, &here, '.'))
        return false;
    *ns = seconds * SECOND_NS + read_fraction(text, &here);
    *at = here;
    return true;
}

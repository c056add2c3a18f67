// SPDX-License-Identifier: Apache-2.0
// Reads TZif files (version 2 and later) and the POSIX rule at their end. A binary search for each
// time; a file is bounded before it is read.
#include "base/text/time_zone.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/rfc3339.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_MAX_SIZE = 64,
    FILE_MAX = 64 << 10,
    TYPES_MAX = 256,
    DAY_S = 86400,
    WEEK_DAYS = 7,
    OFFSET_MAX_S = 26 * 3600,
};

// When the clocks change in each year.
struct zone_change {
    enum { CHANGE_JULIAN, CHANGE_DAY, CHANGE_WEEKDAY } how;
    uint32_t month, week, day; // of CHANGE_WEEKDAY; else `day` of the year
    int32_t second;            // local time of that day; may be negative or beyond it
};

struct time_zone {
    // From at[i] on the offset is offsets[i]; before the first it is `first`.
    uint32_t count;
    int64_t *at;
    int32_t *offsets;
    int32_t first;
    // Behind the last one.
    bool has_rule, has_summer;
    int32_t standard, summer;
    struct zone_change to_summer, to_standard;
};

// -- the rule at the end --------------------------------------------------------------------------

static bool skip_zone_name(struct slice *text) {
    if (text_skip_char(text, '<')) {
        struct slice name = text_until(*text, '>');
        text_take(text, name.size);
        return text_skip_char(text, '>');
    }
    size_t size = 0;
    while (size < text->size && ((text->data[size] >= 'a' && text->data[size] <= 'z') ||
                                 (text->data[size] >= 'A' && text->data[size] <= 'Z')))
        size++;
    text_take(text, size);
    return size >= 3;
}

// "[+-]h[hh][:mm[:ss]]"
static bool take_clock(struct slice *text, int32_t *seconds) {
    uint64_t hours, minutes = 0, rest = 0;
    bool negative = text_skip_char(text, '-');
    if (!negative)
        text_skip_char(text, '+');
    if (!text_take_number(text, 1, 3, &hours) ||
        (text_skip_char(text, ':') && !text_take_number(text, 2, 2, &minutes)) ||
        (text_skip_char(text, ':') && !text_take_number(text, 2, 2, &rest)))
        return false;
    int64_t sum = (int64_t)(hours * 3600 + minutes * 60 + rest);
    if (sum > 168 * 3600 + 3599)
        return false;
    *seconds = (int32_t)(negative ? -sum : sum);
    return true;
}

static bool take_change(struct slice *text, struct zone_change *change) {
    uint64_t month = 0, week = 0, day;
    if (!text_skip_char(text, ','))
        return false;
    if (text_skip_char(text, 'M')) {
        change->how = CHANGE_WEEKDAY;
        if (!text_take_number(text, 1, 2, &month) || !text_skip_char(text, '.') ||
            !text_take_number(text, 1, 1, &week) || !text_skip_char(text, '.') ||
            !text_take_number(text, 1, 1, &day) || month < 1 || month > 12 || week < 1 ||
            week > 5 || day >= WEEK_DAYS)
            return false;
    } else {
        change->how = text_skip_char(text, 'J') ? CHANGE_JULIAN : CHANGE_DAY;
        if (!text_take_number(text, 1, 3, &day) || day > 365)
            return false;
    }
    change->month = (uint32_t)month;
    change->week = (uint32_t)week;
    change->day = (uint32_t)day;
    change->second = 2 * 3600;
    return !text_skip_char(text, '/') || take_clock(text, &change->second);
}

// "CET-1CEST,M3.5.0,M10.5.0/3"
static bool read_rule(struct time_zone *zone, struct slice text) {
    int32_t west;
    if (!skip_zone_name(&text) || !take_clock(&text, &west) || west > OFFSET_MAX_S ||
        west < -OFFSET_MAX_S)
        return false;
    zone->standard = zone->summer = -west;
    zone->has_rule = true;
    if (text.size == 0)
        return true;
    if (!skip_zone_name(&text))
        return false;
    zone->summer = zone->standard + 3600;
    if (text.size > 0 && text.data[0] != ',') {
        if (!take_clock(&text, &west) || west > OFFSET_MAX_S || west < -OFFSET_MAX_S)
            return false;
        zone->summer = -west;
    }
    zone->has_summer = true;
    return take_change(&text, &zone->to_summer) && take_change(&text, &zone->to_standard) &&
           text.size == 0;
}

static bool is_leap_year(int64_t year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_of_year(int64_t year) {
    int64_t before = year - 1;
    return 365 * (year - 1970) + (before / 4 - before / 100 + before / 400) -
           (1969 / 4 - 1969 / 100 + 1969 / 400);
}

static int64_t year_of(int64_t unix_s) {
    int64_t year = 1970 + unix_s / DAY_S / 366;
    while (days_of_year(year + 1) * DAY_S <= unix_s)
        year++;
    return year;
}

// The local second, as if it were UTC, at which the clocks change in this year.
static int64_t change_in(const struct zone_change *change, int64_t year) {
    static const uint16_t starts[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    int64_t day = days_of_year(year);
    bool leap = is_leap_year(year);
    if (change->how == CHANGE_DAY) {
        day += change->day;
    } else if (change->how == CHANGE_JULIAN) { // the 29th of February has no number
        day += (int64_t)change->day - 1 + (leap && change->day > 59);
    } else {
        int64_t first = day + starts[change->month - 1] + (leap && change->month > 2);
        int64_t end = day + starts[change->month] + (leap && change->month > 1);
        // 1970 began on a Thursday.
        int64_t weekday = ((first + 4) % WEEK_DAYS + WEEK_DAYS) % WEEK_DAYS;
        day = first + ((int64_t)change->day - weekday + WEEK_DAYS) % WEEK_DAYS;
        day += (int64_t)(change->week - 1) * WEEK_DAYS;
        while (day >= end)
            day -= WEEK_DAYS;
    }
    return day * DAY_S + change->second;
}

static int32_t rule_offset(const struct time_zone *zone, int64_t unix_s) {
    if (!zone->has_summer)
        return zone->standard;
    int64_t year = year_of(unix_s + zone->standard);
    int64_t begin = change_in(&zone->to_summer, year) - zone->standard;
    int64_t end = change_in(&zone->to_standard, year) - zone->summer;
    bool summer = begin < end ? unix_s >= begin && unix_s < end : unix_s >= begin || unix_s < end;
    return summer ? zone->summer : zone->standard;
}

// -- the file -------------------------------------------------------------------------------------

static int64_t big_endian(const unsigned char *at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | at[i];
    return size == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
}

struct tzif_head {
    uint32_t universal, standard, leap, times, types, letters;
};

static bool take_head(struct slice *file, struct tzif_head *head) {
    enum { HEAD_SIZE = 44, COUNTS_AT = 20 };
    if (file->size < HEAD_SIZE || !text_begins(*file, SLICE("TZif")) || file->data[4] < '2')
        return false;
    const unsigned char *at = (const unsigned char *)file->data + COUNTS_AT;
    uint32_t *counts[] = {&head->universal, &head->standard, &head->leap,
                          &head->times,     &head->types,    &head->letters};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t count = big_endian(at + 4 * i, 4);
        if (count < 0 || count > FILE_MAX)
            return false;
        *counts[i] = (uint32_t)count;
    }
    text_take(file, HEAD_SIZE);
    return true;
}

static size_t block_size(const struct tzif_head *head, size_t time_size) {
    return head->times * (time_size + 1) + head->types * (size_t)6 + head->letters +
           head->leap * (time_size + 4) + head->standard + head->universal;
}

// The transitions of the second block; `block` has its size.
static bool read_transitions(struct time_zone *zone, const struct tzif_head *head,
                             struct slice block) {
    const unsigned char *times = (const unsigned char *)block.data;
    const unsigned char *places = times + head->times * (size_t)8;
    const unsigned char *types = places + head->times;
    int32_t offsets[TYPES_MAX];
    if (head->types == 0 || head->types > TYPES_MAX)
        return false;
    for (uint32_t i = 0; i < head->types; i++) {
        offsets[i] = (int32_t)big_endian(types + 6 * (size_t)i, 4);
        if (offsets[i] > OFFSET_MAX_S || offsets[i] < -OFFSET_MAX_S)
            return false;
    }
    zone->first = offsets[0];
    zone->at = memory_take(head->times * sizeof *zone->at + 1);
    zone->offsets = memory_take(head->times * sizeof *zone->offsets + 1);
    for (uint32_t i = 0; i < head->times; i++) {
        zone->at[i] = big_endian(times + 8 * (size_t)i, 8);
        if (places[i] >= head->types || (i > 0 && zone->at[i] <= zone->at[i - 1]))
            return false;
        zone->offsets[i] = offsets[places[i]];
    }
    zone->count = head->times;
    return true;
}

static bool read_tzif(struct time_zone *zone, struct slice file) {
    struct tzif_head head;
    if (!take_head(&file, &head) || block_size(&head, 4) > file.size)
        return false;
    text_take(&file, block_size(&head, 4));
    // Files with leap seconds count other seconds than Unix time.
    if (!take_head(&file, &head) || head.leap > 0 || block_size(&head, 8) > file.size)
        return false;
    if (!read_transitions(zone, &head, text_take(&file, block_size(&head, 8))))
        return false;
    if (!text_skip_char(&file, '\n'))
        return false;
    struct slice rule = text_until(file, '\n');
    return rule.size == 0 || (rule.size < file.size && read_rule(zone, rule));
}

static bool is_name(struct slice name) {
    if (name.size == 0 || name.size > NAME_MAX_SIZE || name.data[name.size - 1] == '/')
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || text_is_digit(c);
        bool starts = i == 0 || name.data[i - 1] == '/';
        if (!letter && (starts || (c != '/' && c != '_' && c != '-' && c != '+')))
            return false;
    }
    return true;
}

static bool read_file(struct time_zone *zone, struct slice name) {
    char path[sizeof TIME_ZONE_FOLDER + 1 + NAME_MAX_SIZE];
    struct stat about;
    snprintf(path, sizeof path, "%s/%.*s", TIME_ZONE_FOLDER, (int)name.size, name.data);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return false;
    bool right = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= FILE_MAX;
    char *bytes = memory_take(FILE_MAX);
    size_t size = 0;
    for (ssize_t got = 1; right && got != 0 && size < FILE_MAX;) {
        got = read(file, bytes + size, FILE_MAX - size);
        right = got >= 0 || errno == EINTR;
        size += got > 0 ? (size_t)got : 0;
    }
    close(file);
    right = right && read_tzif(zone, (struct slice){bytes, size});
    memory_give(bytes);
    return right;
}

// "UTC", "Z", "+02:00", "-0530", "+2".
static bool read_fixed(struct time_zone *zone, struct slice name) {
    uint64_t hours, minutes = 0;
    zone->first = 0;
    if (slice_equal(name, SLICE("UTC")) || slice_equal(name, SLICE("Z")))
        return true;
    bool east = text_skip_char(&name, '+');
    if ((!east && !text_skip_char(&name, '-')) || !text_take_number(&name, 1, 2, &hours))
        return false;
    bool colon = text_skip_char(&name, ':');
    if (((colon || name.size > 0) && !text_take_number(&name, 2, 2, &minutes)) || name.size > 0 ||
        hours > 23 || minutes > 59)
        return false;
    int32_t offset = (int32_t)(hours * 3600 + minutes * 60);
    zone->first = east ? offset : -offset;
    return true;
}

struct time_zone *time_zone_open(struct slice name) {
    struct time_zone *zone = memory_zero(1, sizeof *zone);
    if (read_fixed(zone, name) || (is_name(name) && read_file(zone, name)))
        return zone;
    time_zone_close(zone);
    return NULL;
}

void time_zone_close(struct time_zone *zone) {
    if (zone == NULL)
        return;
    memory_give(zone->at);
    memory_give(zone->offsets);
    memory_give(zone);
}

// -- times ----------------------------------------------------------------------------------------

int32_t time_zone_offset(const struct time_zone *zone, int64_t unix_s) {
    if (zone == NULL)
        return 0;
    if (zone->has_rule && (zone->count == 0 || unix_s >= zone->at[zone->count - 1]) && unix_s >= 0)
        return rule_offset(zone, unix_s);
    uint32_t low = 0, high = zone->count; // the first that lies behind
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (zone->at[middle] <= unix_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? zone->first : zone->offsets[low - 1];
}

int64_t time_zone_unix(const struct time_zone *zone, int64_t local_s) {
    static const int64_t TIME_MAX_S = INT64_MAX / 4;
    assert(local_s < TIME_MAX_S && local_s > -TIME_MAX_S);
    // No two changes are less than two days apart.
    int32_t before = time_zone_offset(zone, local_s - DAY_S);
    int32_t after = time_zone_offset(zone, local_s + DAY_S);
    int64_t first = local_s - before, second = local_s - after;
    if (before == after || time_zone_offset(zone, first) == before)
        return first;
    return time_zone_offset(zone, second) == after ? second : first;
}

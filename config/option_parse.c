// SPDX-License-Identifier: Apache-2.0
// Parses and formats durations and sizes.
//
// Durations follow the grammar of Go's time.ParseDuration without signs: numbers with a unit each,
// added up. Sizes are one number with a binary unit. Everything is counted in 128-bit integers, so
// that fractions are exact to the nanosecond or byte and an overflow is seen.
#include "config/option.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

// 18 digits and the largest unit (TiB, hours in ns) stay far below 2^127.
enum { WHY_MAX = 160, DIGITS_MAX = 18 };

struct unit {
    const char *name;
    uint64_t worth;
};

static const struct unit DURATION_UNITS[] = {
    {"ns", 1},
    {"\u00b5s", 1000},
    {"\u03bcs", 1000},
    {"us", 1000}, // the last of its worth is the one that is written
    {"ms", 1000000},
    {"s", UINT64_C(1000000000)},
    {"m", UINT64_C(60000000000)},
    {"h", UINT64_C(3600000000000)},
};

static const struct unit SIZE_UNITS[] = {
    {"B", 1},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
};

#define UNIT_COUNT(units) (sizeof(units) / sizeof((units)[0]))

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// A number with an optional fraction, as digits / scale.
struct quantity {
    uint64_t digits;
    uint64_t scale;
};

// Moves `*text` past the number; false when there is none or it is too long.
static bool take_quantity(const char **text, struct quantity *out) {
    *out = (struct quantity){0, 1};
    unsigned count = 0;
    bool fraction = false;
    const char *at = *text;
    for (; is_digit(*at) || (*at == '.' && !fraction); at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        if (++count > DIGITS_MAX)
            return false;
        out->digits = out->digits * 10 + (uint64_t)(*at - '0');
        out->scale *= fraction ? 10 : 1;
    }
    *text = at;
    return count > 0;
}

// The unit's letters: everything up to the next number.
static size_t unit_length(const char *text) {
    size_t length = 0;
    while (text[length] != '\0' && !is_digit(text[length]) && text[length] != '.')
        length++;
    return length;
}

static const struct unit *unit_find(const struct unit *units, size_t count, const char *name,
                                    size_t length) {
    assert(name != NULL);
    for (size_t i = 0; i < count; i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, name, length) == 0)
            return &units[i];
    return NULL;
}

// Adds quantity * unit to `*sum`; false when the result is over `max`.
static bool sum_add(unsigned __int128 *sum, struct quantity quantity, const struct unit *unit,
                    uint64_t max) {
    assert(quantity.scale > 0);
    *sum += (unsigned __int128)quantity.digits * unit->worth / quantity.scale;
    return *sum <= max;
}

static bool no_value(const char *text, const char *what, char *why, const char *hint) {
    snprintf(why, WHY_MAX, "'%.40s' is not a valid %s; %s", text, what, hint);
    return false;
}

static bool duration_unit_missing(const char *text, const char *unit, char *why) {
    if (*unit == '\0') {
        snprintf(why, WHY_MAX, "'%.40s' has no unit; write %.20ss or %.20sms", text, text, text);
        return false;
    }
    if (*unit == 'd' || *unit == 'w')
        return no_value(text, "duration", why, "the largest unit is h: a day is 24h");
    return no_value(text, "duration", why, "write it like 300ms, 5s or 1h30m");
}

bool option_parse_duration(const char *text, struct duration *out, char *why) {
    assert(text != NULL && why != NULL);
    if (*text == '\0')
        return no_value(text, "duration", why, "write it like 300ms, 5s or 1h30m");
    if (*text == '-')
        return no_value(text, "duration", why, "it cannot be negative");
    unsigned __int128 sum = 0;
    for (const char *at = text; *at != '\0';) {
        struct quantity quantity;
        if (!take_quantity(&at, &quantity))
            return no_value(text, "duration", why, "write it like 300ms, 5s or 1h30m");
        size_t length = unit_length(at);
        const struct unit *unit = unit_find(DURATION_UNITS, UNIT_COUNT(DURATION_UNITS), at, length);
        if (unit == NULL)
            return duration_unit_missing(text, at, why);
        if (!sum_add(&sum, quantity, unit, INT64_MAX - 1))
            return no_value(text, "duration", why, "the longest one is 2562047h");
        at += length;
    }
    out->ns = (int64_t)sum;
    return true;
}

// Says which unit was meant by kB, MB, M, Mi, mib and the like.
static bool size_unit_missing(const char *text, const char *unit, size_t length, char *why) {
    static const char *const LETTERS = "kmgt";
    int number = (int)(unit - text);
    if (length == 0) {
        snprintf(why, WHY_MAX, "'%.40s' has no unit; write %.20sB, %.20sKiB or %.20sMiB", text,
                 text, text, text);
        return false;
    }
    char lower[2] = {(char)(*unit | 0x20), '\0'};
    const char *letter = strchr(LETTERS, lower[0]);
    bool known = letter != NULL && length <= 3 &&
                 (length < 2 || strncasecmp(unit + 1, "ib", length - 1) == 0 ||
                  strncasecmp(unit + 1, "b", length) == 0);
    if (!known || number > 20)
        return no_value(text, "size", why, "write it like 512B, 64KiB, 20MiB or 2GiB");
    const char *meant = SIZE_UNITS[letter - LETTERS + 1].name;
    snprintf(why, WHY_MAX, "'%.40s' has a unit that is not used here; use %s: %.*s%s", text, meant,
             number, text, meant);
    return false;
}

bool option_parse_size(const char *text, struct byte_size *out, char *why) {
    assert(text != NULL && why != NULL);
    const char *at = text;
    struct quantity quantity;
    if (*text == '-')
        return no_value(text, "size", why, "it cannot be negative");
    if (!take_quantity(&at, &quantity))
        return no_value(text, "size", why, "write it like 512B, 64KiB, 20MiB or 2GiB");
    size_t length = strlen(at);
    const struct unit *unit = unit_find(SIZE_UNITS, UNIT_COUNT(SIZE_UNITS), at, length);
    if (unit == NULL)
        return size_unit_missing(text, at, length, why);
    unsigned __int128 sum = 0;
    if (!sum_add(&sum, quantity, unit, INT64_MAX))
        return no_value(text, "size", why, "the largest one is 8388607TiB");
    out->bytes = (uint64_t)sum;
    return true;
}

// Largest units first; `units` ascend.
static const struct unit *unit_dividing(const struct unit *units, size_t count, uint64_t value) {
    for (size_t i = count; i > 1; i--)
        if (value >= units[i - 1].worth && value % units[i - 1].worth == 0)
            return &units[i - 1];
    return &units[0];
}

void option_format_size(struct byte_size size, char out[OPTION_VALUE_MAX]) {
    const struct unit *unit = unit_dividing(SIZE_UNITS, UNIT_COUNT(SIZE_UNITS), size.bytes);
    snprintf(out, OPTION_VALUE_MAX, "%llu%s", (unsigned long long)(size.bytes / unit->worth),
             unit->name);
}

void option_format_duration(struct duration duration, char out[OPTION_VALUE_MAX]) {
    assert(duration.ns != DURATION_SPECIAL);
    uint64_t left = duration.ns < 0 ? 0 : (uint64_t)duration.ns;
    size_t used = 0;
    if (left == 0)
        snprintf(out, OPTION_VALUE_MAX, "0s");
    for (size_t i = UNIT_COUNT(DURATION_UNITS); i-- > 0 && left > 0;) {
        uint64_t whole = left / DURATION_UNITS[i].worth;
        if (whole == 0)
            continue;
        left %= DURATION_UNITS[i].worth;
        used += (size_t)snprintf(out + used, OPTION_VALUE_MAX - used, "%llu%s",
                                 (unsigned long long)whole, DURATION_UNITS[i].name);
    }
}

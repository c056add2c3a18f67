// SPDX-License-Identifier: Apache-2.0
// Describes the values that an option takes.
//
// Bounds are doubles in the row's unit: exact for integers below 2^53. A bound at or above what the
// type can hold is none.
#include "config/option.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { BOUND_MAX = 64 };

const char *option_type_name(enum option_type type) {
    static const char *const NAMES[] = {"true or false", "whole number", "number", "duration",
                                        "size",          "text",         "choice", "secret",
                                        "list of texts", "group"};
    assert(type <= OPTION_GROUP);
    return NAMES[type];
}

// A bound is for reading: one that no large unit divides is rounded to four digits.
static void size_bound_format(uint64_t bytes, char out[BOUND_MAX]) {
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    char exact[OPTION_VALUE_MAX];
    option_format_size((struct byte_size){bytes}, exact);
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    if (strspn(exact, "0123456789") > 6 && value < 1e6)
        snprintf(out, BOUND_MAX, "%.4g%s", value, UNITS[unit]);
    else
        snprintf(out, BOUND_MAX, "%s", exact);
}

static void bound_format(const struct option *row, double bound, char out[BOUND_MAX]) {
    char value[OPTION_VALUE_MAX];
    if (row->type == OPTION_DURATION) {
        option_format_duration((struct duration){(int64_t)(bound * 1e9)}, value);
        snprintf(out, BOUND_MAX, "%s", value);
    } else if (row->type == OPTION_SIZE) {
        size_bound_format((uint64_t)bound, out);
    } else if (row->type == OPTION_INT) {
        snprintf(out, BOUND_MAX, "%.0f", bound);
    } else {
        snprintf(out, BOUND_MAX, "%.15g", bound);
    }
}

// The largest value of the type, in the row's unit.
static double type_ceiling(enum option_type type) {
    return type == OPTION_DURATION ? 9.2e9 : 9.2e18;
}

static void bounds_range(const struct option *row, char out[OPTION_RANGE_MAX]) {
    assert(row->min <= row->max);
    char low[BOUND_MAX], high[BOUND_MAX];
    bool has_low = row->type == OPTION_INT || row->type == OPTION_RATIO
                       ? row->min > -type_ceiling(row->type)
                       : row->min > 0;
    bool has_high = row->max < type_ceiling(row->type);
    const char *word = row->special;
    const char *joint = word == NULL ? "" : ", or ";
    bound_format(row, has_low ? row->min : 0, low);
    bound_format(row, has_high ? row->max : 0, high);
    if (word == NULL)
        word = "";
    if (has_high && (has_low || row->type == OPTION_RATIO || row->type == OPTION_INT))
        snprintf(out, OPTION_RANGE_MAX, "between %s and %s%s%s", low, high, joint, word);
    else if (has_high)
        snprintf(out, OPTION_RANGE_MAX, "at most %s%s%s", high, joint, word);
    else if (has_low)
        snprintf(out, OPTION_RANGE_MAX, "at least %s%s%s", low, joint, word);
    else
        snprintf(out, OPTION_RANGE_MAX, "%s", word);
}

static void choices_range(const struct option *row, char out[OPTION_RANGE_MAX]) {
    assert(row->choices != NULL);
    size_t used = 0;
    for (size_t i = 0; row->choices[i] != NULL && used < OPTION_RANGE_MAX; i++) {
        const char *joint = i == 0 ? "" : row->choices[i + 1] == NULL ? " or " : ", ";
        used +=
            (size_t)snprintf(out + used, OPTION_RANGE_MAX - used, "%s%s", joint, row->choices[i]);
    }
}

void option_range(const struct option *row, char out[OPTION_RANGE_MAX]) {
    out[0] = '\0';
    bool bounded = row->min != 0 || row->max != 0;
    if (row->type == OPTION_CHOICE)
        choices_range(row, out);
    else if (bounded && row->type <= OPTION_SIZE)
        bounds_range(row, out);
    else if (row->type == OPTION_DURATION && row->special != NULL)
        snprintf(out, OPTION_RANGE_MAX, "any, or %s", row->special);
}

// SPDX-License-Identifier: Apache-2.0
// Writes metrics in the Prometheus text format 0.0.4 or OpenMetrics 1.0.0, and tells from an Accept
// header which one a scraper wants. Label values are escaped; invalid UTF-8, surrogates and zero
// bytes in them are replaced by U+FFFD. Names and help are the program's own. The caller gives
// families in order, all samples of a family together, and no two with the same labels
// (exposition_label_value). No memory of its own: the buffer's limit and its sticky error are the
// bound.
//
// Numbers are the shortest that read back as the same double: 0.1, 12, 1.5e+300, NaN, +Inf.
#pragma once

#include "base/buffer.h"

enum exposition_format { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };
enum exposition_type {
    EXPOSITION_COUNTER,
    EXPOSITION_GAUGE,
    EXPOSITION_HISTOGRAM,
    EXPOSITION_INFO // a gauge in the text format, which knows no such type
};

struct exposition {
    struct buffer *out;
    enum exposition_format format;
    const char *family; // the one being written; its name as in the text format
    enum exposition_type type;
};

struct exposition_label {
    const char *name;
    struct slice value; // an empty one is the same as no label, and left out
};

struct exemplar {
    struct slice id; // shown as the label verdict_id; empty: this bucket has none
    double value;
    double time_s;
};

// A label value is cut to this many bytes, at a character's end: texts come from outside.
enum { EXPOSITION_LABEL_MAX = 256 };

// The best of what `accept` (may be NULL) names, by q values; text 0.0.4 when it names neither or
// a version that is not written here. OpenMetrics when it likes both alike.
enum exposition_format exposition_negotiate(const char *accept);
// With version and charset, as the response must echo it.
const char *exposition_content_type(enum exposition_format format);

void exposition_begin(struct exposition *exposition, struct buffer *out,
                      enum exposition_format format);
// `name` as in the text format: a counter's ends in _total, an info's in _info. Writes HELP and
// TYPE; OpenMetrics names the family without that ending.
void exposition_family(struct exposition *exposition, const char *name, const char *help,
                       enum exposition_type type);
void exposition_sample(struct exposition *exposition, const struct exposition_label *labels,
                       uint32_t label_count, double value);
void exposition_sample_uint(struct exposition *exposition, const struct exposition_label *labels,
                            uint32_t label_count, uint64_t value);
// A histogram: `bounds` ascending without +Inf, `counts` has one more, none cumulative. Exemplars
// (one a bucket, or NULL) are written in OpenMetrics only; one whose id has more characters than
// the format allows is left out.
void exposition_histogram(struct exposition *exposition, const struct exposition_label *labels,
                          uint32_t label_count, const double *bounds, uint32_t bound_count,
                          const uint64_t *counts, double sum, const struct exemplar *exemplars);
// "# EOF" in OpenMetrics.
void exposition_end(struct exposition *exposition);

// The value as it is shown, before escapes: cut and repaired, in `room` unless it was right before.
// Values that are shown alike would be one series twice: whoever tells series apart compares these.
struct slice exposition_label_value(struct slice value, char room[EXPOSITION_LABEL_MAX]);
// value / divisor with one rounding: Unix nanoseconds, which no double holds, come out as the
// nearest seconds.
static inline double exposition_quotient(uint64_t value, uint32_t divisor) {
    uint64_t whole = value / divisor;
    return (double)whole + (double)(value % divisor) / divisor;
}
// The number as it is written in a sample.
void exposition_append_number(struct buffer *out, double value);

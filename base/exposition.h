// SPDX-License-Identifier: Apache-2.0
// Writes metrics in the Prometheus text format 0.0.4 or OpenMetrics 1.0.0, and tells from an Accept
// header which one a scraper wants. Label values and help are escaped; invalid UTF-8 in them is
// replaced. The caller gives families in order, all samples of a family together.
#pragma once

#include "base/buffer.h"

enum exposition_format { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };
enum exposition_type {
    EXPOSITION_COUNTER,
    EXPOSITION_GAUGE,
    EXPOSITION_HISTOGRAM,
    EXPOSITION_INFO
};

struct exposition {
    struct buffer *out;
    enum exposition_format format;
    const char *family; // the one being written
    enum exposition_type type;
};

struct exposition_label {
    const char *name;
    struct slice value;
};

struct exemplar {
    struct slice id; // shown as the label verdict_id
    double value;
    double time_s;
};

// The best of what `accept` (may be NULL) names, by q values; text 0.0.4 when it names neither.
enum exposition_format exposition_negotiate(const char *accept);
// With version and charset, as the response must echo it.
const char *exposition_content_type(enum exposition_format format);

void exposition_begin(struct exposition *exposition, struct buffer *out,
                      enum exposition_format format);
// `name` as in the text format: a counter's ends in _total, an info's in _info.
void exposition_family(struct exposition *exposition, const char *name, const char *help,
                       enum exposition_type type);
void exposition_sample(struct exposition *exposition, const struct exposition_label *labels,
                       uint32_t label_count, double value);
void exposition_sample_uint(struct exposition *exposition, const struct exposition_label *labels,
                            uint32_t label_count, uint64_t value);
// A histogram: `bounds` ascending without +Inf, `counts` has one more, none cumulative. Exemplars
// (one a bucket, or NULL) are written in OpenMetrics only.
void exposition_histogram(struct exposition *exposition, const struct exposition_label *labels,
                          uint32_t label_count, const double *bounds, uint32_t bound_count,
                          const uint64_t *counts, double sum, const struct exemplar *exemplars);
// "# EOF" in OpenMetrics.
void exposition_end(struct exposition *exposition);

// SPDX-License-Identifier: Apache-2.0
// Writes families of metrics.
//
// The two formats differ in the family's name on HELP and TYPE lines, in escapes of the help, in
// the bounds of histograms (OpenMetrics writes 1 as 1.0), exemplars and the end mark. Labels are
// copied in runs that need no escape. Sources: Prometheus exposition formats, text 0.0.4;
// OpenMetrics 1.0.0.
#include "base/metrics/exposition.h"

#include "base/text/utf8.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// OpenMetrics allows this many characters in an exemplar's label names and values together.
enum { EXEMPLAR_CHARACTERS_MAX = 128 };

static const char EXEMPLAR_LABEL[] = "verdict_id";
#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD

void exposition_append_number(struct buffer *out, double value) {
    if (isnan(value)) {
        buffer_append(out, SLICE("NaN"));
        return;
    }
    if (isinf(value)) {
        buffer_append(out, value > 0 ? SLICE("+Inf") : SLICE("-Inf"));
        return;
    }
    if (value == floor(value) && fabs(value) < 1e15) {
        buffer_append_int(out, (int64_t)value);
        return;
    }
    // 15 digits always survive the way through a double, so if they read back as the same number,
    // they are, without trailing zeros, the shortest. Below the normal range fewer survive.
    char text[40];
    int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (digits++ < 17 && strtod(text, NULL) != value);
    buffer_append_text(out, text);
}

// `text` is clean. `quotes`: a double quote is escaped, too.
static void append_escaped(struct buffer *out, struct slice text, bool quotes) {
    for (size_t at = 0; at < text.size;) {
        size_t run = at;
        while (run < text.size && text.data[run] != '\\' && text.data[run] != '\n' &&
               (text.data[run] != '"' || !quotes))
            run++;
        buffer_append(out, (struct slice){text.data + at, run - at});
        if (run < text.size) {
            buffer_append_char(out, '\\');
            buffer_append_char(out, text.data[run] == '\n' ? 'n' : text.data[run]);
            run++;
        }
        at = run;
    }
}

// The character at `at` as it is shown; *at moves behind it.
static struct slice take_character(struct slice text, size_t *at) {
    assert(*at < text.size);
    uint32_t code_point = 0;
    size_t length = utf8_decode(text, *at, &code_point);
    struct slice character = {text.data + *at, length};
    *at += length == 0 ? 1 : length;
    bool whole = length > 0 && code_point != 0 && (code_point < 0xd800 || code_point > 0xdfff);
    return whole ? character : SLICE(REPLACEMENT);
}

static bool label_is_clean(struct slice value) {
    if (value.size > EXPOSITION_LABEL_MAX)
        return false;
    for (size_t at = 0; at < value.size;) {
        size_t before = at;
        if (value.data[at] > 0)
            at++;
        else if (take_character(value, &at).data != value.data + before)
            return false;
    }
    return true;
}

struct slice exposition_label_value(struct slice value, char room[EXPOSITION_LABEL_MAX]) {
    if (label_is_clean(value))
        return value;
    size_t size = 0;
    for (size_t at = 0; at < value.size;) {
        struct slice shown = take_character(value, &at);
        if (size + shown.size > EXPOSITION_LABEL_MAX)
            break;
        memcpy(room + size, shown.data, shown.size);
        size += shown.size;
    }
    assert(size <= EXPOSITION_LABEL_MAX);
    return (struct slice){room, size};
}

void exposition_begin(struct exposition *exposition, struct buffer *out,
                      enum exposition_format format) {
    assert(out != NULL && format <= EXPOSITION_OPENMETRICS);
    *exposition = (struct exposition){.out = out, .format = format};
}

static bool ends_in(const char *name, const char *ending) {
    size_t size = strlen(name);
    size_t ending_size = strlen(ending);
    return size > ending_size && strcmp(name + size - ending_size, ending) == 0;
}

static struct slice family_name(const struct exposition *exposition) {
    struct slice name = slice_of(exposition->family);
    const char *ending = exposition->type == EXPOSITION_COUNTER ? "_total"
                         : exposition->type == EXPOSITION_INFO  ? "_info"
                                                                : "";
    assert(*ending == '\0' || ends_in(exposition->family, ending));
    if (exposition->format == EXPOSITION_OPENMETRICS)
        name.size -= strlen(ending);
    return name;
}

void exposition_family(struct exposition *exposition, const char *name, const char *help,
                       enum exposition_type type) {
    static const char *const text_types[] = {"counter", "gauge", "histogram", "gauge"};
    static const char *const types[] = {"counter", "gauge", "histogram", "info"};
    struct buffer *out = exposition->out;
    bool openmetrics = exposition->format == EXPOSITION_OPENMETRICS;
    assert(name[0] != '\0' && help != NULL && type <= EXPOSITION_INFO);
    exposition->family = name;
    exposition->type = type;
    struct slice shown = family_name(exposition);
    buffer_append(out, SLICE("# HELP "));
    buffer_append(out, shown);
    buffer_append_char(out, ' ');
    append_escaped(out, slice_of(help), openmetrics);
    buffer_append(out, SLICE("\n# TYPE "));
    buffer_append(out, shown);
    buffer_append_char(out, ' ');
    buffer_append_text(out, openmetrics ? types[type] : text_types[type]);
    buffer_append_char(out, '\n');
}

static void append_label(struct buffer *out, const char *name, struct slice value, bool *opened) {
    assert(name[0] != '\0' && value.size > 0);
    buffer_append_char(out, *opened ? ',' : '{');
    *opened = true;
    buffer_append_text(out, name);
    buffer_append(out, SLICE("=\""));
    char room[EXPOSITION_LABEL_MAX];
    append_escaped(out, exposition_label_value(value, room), true);
    buffer_append_char(out, '"');
}

// A bound as the label `le`: OpenMetrics wants all bounds to look like floating-point numbers.
static void append_bound(const struct exposition *exposition, double bound, bool opened) {
    struct buffer *out = exposition->out;
    buffer_append_text(out, opened ? ",le=\"" : "{le=\"");
    exposition_append_number(out, bound);
    if (exposition->format == EXPOSITION_OPENMETRICS && bound == floor(bound) && fabs(bound) < 1e15)
        buffer_append(out, SLICE(".0"));
    buffer_append_char(out, '"');
}

// Name, ending and labels of a sample, and the blank before its value. `bound`: NULL, or that of a
// bucket.
static void append_series(struct exposition *exposition, const char *ending,
                          const struct exposition_label *labels, uint32_t label_count,
                          const double *bound) {
    struct buffer *out = exposition->out;
    bool opened = false;
    assert(exposition->family != NULL); // exposition_family comes first
    buffer_append_text(out, exposition->family);
    buffer_append_text(out, ending);
    for (uint32_t i = 0; i < label_count; i++)
        if (labels[i].value.size > 0)
            append_label(out, labels[i].name, labels[i].value, &opened);
    if (bound != NULL)
        append_bound(exposition, *bound, opened);
    buffer_append_text(out, opened || bound != NULL ? "} " : " ");
}

void exposition_sample(struct exposition *exposition, const struct exposition_label *labels,
                       uint32_t label_count, double value) {
    append_series(exposition, "", labels, label_count, NULL);
    exposition_append_number(exposition->out, value);
    buffer_append_char(exposition->out, '\n');
}

void exposition_sample_uint(struct exposition *exposition, const struct exposition_label *labels,
                            uint32_t label_count, uint64_t value) {
    append_series(exposition, "", labels, label_count, NULL);
    buffer_append_uint(exposition->out, value);
    buffer_append_char(exposition->out, '\n');
}

static uint32_t characters_of(struct slice text) {
    uint32_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

static void append_exemplar(struct exposition *exposition, const struct exemplar *exemplar) {
    struct buffer *out = exposition->out;
    uint32_t characters = (uint32_t)strlen(EXEMPLAR_LABEL) + characters_of(exemplar->id);
    if (exemplar->id.size == 0 || characters > EXEMPLAR_CHARACTERS_MAX)
        return;
    bool opened = false;
    buffer_append(out, SLICE(" # "));
    append_label(out, EXEMPLAR_LABEL, exemplar->id, &opened);
    buffer_append(out, SLICE("} "));
    exposition_append_number(out, exemplar->value);
    buffer_append_char(out, ' ');
    exposition_append_number(out, exemplar->time_s);
}

void exposition_histogram(struct exposition *exposition, const struct exposition_label *labels,
                          uint32_t label_count, const double *bounds, uint32_t bound_count,
                          const uint64_t *counts, double sum, const struct exemplar *exemplars) {
    struct buffer *out = exposition->out;
    uint64_t total = 0;
    assert(exposition->type == EXPOSITION_HISTOGRAM);
    for (uint32_t i = 0; i <= bound_count; i++) {
        double bound = i < bound_count ? bounds[i] : INFINITY;
        assert(i == 0 || bounds[i - 1] < bound);
        total += counts[i];
        append_series(exposition, "_bucket", labels, label_count, &bound);
        buffer_append_uint(out, total);
        if (exemplars != NULL && exposition->format == EXPOSITION_OPENMETRICS)
            append_exemplar(exposition, &exemplars[i]);
        buffer_append_char(out, '\n');
    }
    append_series(exposition, "_sum", labels, label_count, NULL);
    exposition_append_number(out, sum);
    buffer_append_char(out, '\n');
    append_series(exposition, "_count", labels, label_count, NULL);
    buffer_append_uint(out, total);
    buffer_append_char(out, '\n');
}

void exposition_end(struct exposition *exposition) {
    if (exposition->format == EXPOSITION_OPENMETRICS)
        buffer_append(exposition->out, SLICE("# EOF\n"));
    exposition->family = NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Each point is made the line that an exporter would have written for it, and read as such
// (dcgm.h): labels and fields are known there. O(document); points of a series share the text of
// its labels.
#include "receivers/decode/dcgm/prometheus_api.h"

#include "base/buffer.h"
#include "base/text/cut.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/dcgm/dcgm.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/line/tokens.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE_MAX_SIZE = 1 << 20, DIGITS_MAX = 11, TAIL_MAX = 128 };

// The member with this name; false: none.
static bool find_member(struct slice object, struct slice name, struct arena *arena,
                        struct token *value) {
    struct json_pairs pairs = json_pairs_of(object);
    for (struct token key; json_pairs_next(&pairs, &key, value);)
        if (slice_equal(token_decode(&key, arena), name))
            return true;
    return false;
}

// -- lines of an exporter -------------------------------------------------------------------------

static void put_label(struct buffer *out, struct slice name, struct slice value, bool first) {
    if (!first)
        buffer_append_char(out, ',');
    buffer_append(out, name);
    buffer_append_text(out, "=\"");
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] == '"' || value.data[i] == '\\')
            buffer_append_char(out, '\\');
        buffer_append_char(out, value.data[i] == '\n' ? ' ' : value.data[i]);
    }
    buffer_append_char(out, '"');
}

// `name{label="value",…}`; false: no series that is kept.
static bool put_series(struct slice metric, struct buffer *out, struct arena *arena) {
    struct token name, key, value;
    struct slice family;
    bool first = true;
    if (!find_member(metric, SLICE("__name__"), arena, &name) || name.kind != TOKEN_STRING)
        return false;
    family = token_decode(&name, arena);
    if (!dcgm_reading_keeps(family))
        return false;
    buffer_append(out, family);
    buffer_append_char(out, '{');
    struct json_pairs pairs = json_pairs_of(metric);
    while (json_pairs_next(&pairs, &key, &value)) {
        struct slice label = token_decode(&key, arena);
        if (value.kind != TOKEN_STRING || slice_equal(label, SLICE("__name__")))
            continue;
        put_label(out, label, token_decode(&value, arena), first);
        first = false;
    }
    buffer_append_text(out, "} ");
    return !out->failed;
}

// [1789034490, "79"], [1789034490.781, "79"]: "79 1789034490781" behind the labels.
static size_t put_point(const struct token *point, char room[TAIL_MAX], struct arena *arena) {
    struct token time, value;
    uint64_t seconds, milliseconds = 0;
    if (point->kind != TOKEN_ARRAY)
        return 0;
    struct json_items items = json_items_of(point);
    if (!json_items_next(&items, &time) || !json_items_next(&items, &value) ||
        value.kind != TOKEN_STRING)
        return 0;
    struct slice text = token_slice(&time);
    if (!text_take_number(&text, 1, DIGITS_MAX, &seconds))
        return 0;
    if (text_skip_char(&text, '.'))
        for (uint64_t digit = 100; digit > 0 && text.size > 0 && text_is_digit(*text.data);
             digit /= 10, text = text_from(text, 1))
            milliseconds += (uint64_t)(*text.data - '0') * digit;
    struct slice number = token_decode(&value, arena);
    int size = snprintf(room, TAIL_MAX, "%.*s %" PRIu64 "%03" PRIu64,
                        (int)(number.size < TAIL_MAX ? number.size : TAIL_MAX), number.data,
                        seconds, milliseconds);
    return size > 0 && size < TAIL_MAX ? (size_t)size : 0;
}

// -- the document ---------------------------------------------------------------------------------

// `line`: the labels, with room for a point behind them. Samples refer to the labels.
static enum decode_category take_point(struct dcgm_reading *reading, const struct token *point,
                                       char *line, size_t labels) {
    size_t size = put_point(point, line + labels, reading->arena);
    if (size == 0)
        return fault_set(reading->fault, DECODE_WRONG_TYPE, SLICE("values"),
                         "a point is an array of seconds and a number as text");
    reading->line++;
    return dcgm_reading_take(reading, (struct slice){line, labels + size});
}

static enum decode_category take_points(struct dcgm_reading *reading, struct slice series,
                                        char *line, size_t labels) {
    struct token points, point;
    enum decode_category category = DECODE_OK;
    if (find_member(series, SLICE("value"), reading->arena, &points))
        return take_point(reading, &points, line, labels);
    if (!find_member(series, SLICE("values"), reading->arena, &points) ||
        points.kind != TOKEN_ARRAY)
        return DECODE_OK;
    struct json_items items = json_items_of(&points);
    while (!decode_refused(category) && json_items_next(&items, &point))
        category = take_point(reading, &point, line, labels);
    return category;
}

static enum decode_category take_series(struct dcgm_reading *reading, const struct token *series,
                                        struct buffer *text) {
    struct token metric;
    buffer_reset(text);
    if (series->kind != TOKEN_OBJECT ||
        !find_member(token_slice(series), SLICE("metric"), reading->arena, &metric) ||
        metric.kind != TOKEN_OBJECT || !put_series(token_slice(&metric), text, reading->arena))
        return DECODE_OK;
    char *line = arena_take(reading->arena, text->size + TAIL_MAX);
    memcpy(line, text->data, text->size);
    return take_points(reading, token_slice(series), line, text->size);
}

static enum decode_category take_result(struct dcgm_reading *reading, struct slice record) {
    struct token data, result, series;
    enum decode_category category = DECODE_OK;
    struct buffer text;
    if (!find_member(record, SLICE("data"), reading->arena, &data) || data.kind != TOKEN_OBJECT ||
        !find_member(token_slice(&data), SLICE("result"), reading->arena, &result) ||
        result.kind != TOKEN_ARRAY)
        return fault_set(reading->fault, DECODE_MISSING_FIELD, SLICE("data.result"),
                         "not there as an array; an answer of Prometheus to a query has one");
    buffer_init(&text, LINE_MAX_SIZE);
    struct json_items items = json_items_of(&result);
    while (!decode_refused(category) && json_items_next(&items, &series))
        category = take_series(reading, &series, &text);
    buffer_release(&text);
    return decode_refused(category) ? category : DECODE_OK;
}

static enum decode_category decode(void *state, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct dcgm_reading reading = {.arena = arena, .fault = fault};
    struct token slots[1] = {0};
    struct json_fault json;
    static const struct json_shape_row rows[] = {{{"status", 6}, 0, NULL}};
    static const struct json_shape shape = JSON_SHAPE(rows);
    (void)state;
    if (!json_shape_read_all(&shape, record, slots, &json))
        return refuse_json(fault, record, &json);
    enum decode_category category = take_result(&reading, record);
    if (category != DECODE_OK || reading.count == 0)
        return category == DECODE_OK ? DECODE_NOTHING : category;
    struct gpu_scrape *scrape = arena_take(arena, sizeof *scrape);
    *scrape = (struct gpu_scrape){reading.samples, reading.count};
    event->kind = EVENT_GPU_SAMPLE;
    event->gpus = scrape;
    event->job = STRING_NONE;
    event->rank = RANK_NONE;
    event->node = reading.samples[0].node;
    event->time_ns = 0;
    for (uint32_t i = 0; i < reading.count; i++)
        if (reading.samples[i].time_ns > event->time_ns)
            event->time_ns = reading.samples[i].time_ns;
    return DECODE_OK;
}

const struct decoder_type decoder_prometheus_api = {.name = "prometheus_api", .decode = decode};

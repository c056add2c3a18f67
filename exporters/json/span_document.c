// SPDX-License-Identifier: Apache-2.0
// A tree of spans as JSON.
//
// Members and their order are those of the format's description; what culprit has to say beyond it
// stands behind them, and only when it says something. Texts of the input that are JSON already go
// out as they came, without the line breaks that may stand between their parts.
#include "exporters/json/span_document.h"

#include "base/text/json_write.h"
#include "pipeline/model/span_event.h"

#include <assert.h>

#ifndef CULPRIT_VERSION
#define CULPRIT_VERSION "unknown"
#endif

enum { SPAN_FORMAT = 1, ANSWER_BYTES = 64 << 10 };

// A line break in JSON text is white space between two parts of it.
static void raw_on_one_line(struct json_writer *json, struct slice text) {
    if (memchr(text.data, '\n', text.size) == NULL) {
        json_raw(json, text);
        return;
    }
    json_raw(json, text.data[0] == '\n' ? SLICE(" ") : (struct slice){text.data, 1});
    for (size_t i = 1; i < text.size; i++)
        buffer_append_char(json->out, text.data[i] == '\n' ? ' ' : text.data[i]);
}

static void put_texts(struct json_writer *json, const char *key, const struct slice *texts,
                      uint32_t count) {
    json_field_array_open(json, key);
    for (uint32_t i = 0; i < count; i++)
        json_slice(json, texts[i]);
    json_array_close(json);
}

static void put_text_or_null(struct json_writer *json, struct slice text) {
    if (text.data == NULL)
        json_put_null(json);
    else
        json_slice(json, text);
}

static void put_states(struct json_writer *json, const uint64_t states[TASK_STATE_COUNT],
                       bool zeros) {
    json_field_object_open(json, "states");
    for (int i = 0; i < TASK_STATE_COUNT; i++) {
        if (states[i] == 0 && !zeros)
            continue;
        json_field_uint(json, task_state_name((enum task_state)i), states[i]);
    }
    json_object_close(json);
}

static void put_durations(struct json_writer *json, const struct span_duration *durations,
                          uint32_t count, double sum_s) {
    json_field_object_open(json, "all_durations");
    for (uint32_t i = 0; i < count; i++) {
        json_key_slice(json, durations[i].action);
        json_double(json, durations[i].seconds);
    }
    json_object_close(json);
    json_field_double(json, "duration", sum_s);
}

static void put_number(struct json_writer *json, const struct span_number *number) {
    if (number->whole)
        json_int128(json, number->integer);
    else
        json_double(json, number->number);
}

// A key is an array already, and the value becomes its last item.
static void put_metrics(struct json_writer *json, const struct span_answer *answer) {
    json_field_array_open(json, "cumulative_worker_metrics");
    for (uint32_t i = 0; i < answer->metric_count; i++) {
        struct slice key = answer->metrics[i].key;
        json_raw(json, (struct slice){key.data, key.size - 1});
        struct json_writer value;
        if (key.size > 2)
            buffer_append_char(json->out, ',');
        json_begin(&value, json->out, 0);
        put_number(&value, &answer->metrics[i].value);
        buffer_append_char(json->out, ']');
    }
    json_array_close(json);
}

static void put_intervals(struct json_writer *json, const struct span_answer *answer) {
    json_field_array_open(json, "nthreads_intervals");
    for (uint32_t i = 0; i < answer->interval_count; i++) {
        json_array_open(json);
        json_double(json, answer->intervals[i].begin_s);
        json_double(json, answer->intervals[i].end_s);
        json_int(json, answer->intervals[i].threads);
        json_array_close(json);
    }
    json_array_close(json);
}

static void put_group(struct json_writer *json, const struct span_group_answer *group) {
    json_object_open(json);
    json_field_slice(json, "name", group->name);
    json_field_double(json, "start", group->start_s);
    json_field_double(json, "stop", group->stop_s);
    json_field_bool(json, "done", group->done);
    put_states(json, group->states, false);
    put_durations(json, group->durations, group->duration_count, group->duration_s);
    json_field_int128(json, "nbytes_total", group->nbytes);
    json_object_close(json);
}

static void put_annotation(struct json_writer *json, const struct span_answer *answer) {
    json_key(json, "annotation");
    if (!answer->annotated) {
        json_put_null(json);
        return;
    }
    json_object_open(json);
    put_texts(json, "name", answer->name, answer->name_count);
    put_texts(json, "ids", answer->annotation_ids, answer->annotation_id_count);
    json_object_close(json);
}

static void put_attachments(struct json_writer *json, const struct span_answer *answer) {
    json_field_array_open(json, "code");
    for (uint32_t i = 0; i < answer->code_count; i++)
        raw_on_one_line(json, answer->code[i]);
    json_array_close(json);
    json_key(json, "metadata");
    if (!answer->has_metadata) {
        json_put_null(json);
        return;
    }
    json_object_open(json);
    json_field_array_open(json, "collections");
    if (answer->collections.size > 0)
        raw_on_one_line(json, answer->collections);
    json_array_close(json);
    json_object_close(json);
}

static void put_span(struct json_writer *json, const struct span_answer *answer) {
    json_object_open(json);
    json_field_slice(json, "id", answer->id);
    put_texts(json, "name", answer->name, answer->name_count);
    json_key(json, "parent");
    put_text_or_null(json, answer->parent);
    put_texts(json, "children", answer->children, answer->child_count);
    put_annotation(json, answer);
    json_field_double(json, "enqueued", answer->enqueued_s);
    json_field_double(json, "start", answer->start_s);
    json_field_double(json, "stop", answer->stop_s);
    json_field_bool(json, "done", answer->done);
    put_states(json, answer->states, true);
    put_durations(json, answer->durations, answer->duration_count, answer->duration_s);
    json_field_int128(json, "nbytes_total", answer->nbytes_total);
    put_metrics(json, answer);
    put_intervals(json, answer);
    json_field_double(json, "active_cpu_seconds", answer->active_cpu_s);
    put_attachments(json, answer);
    json_field_array_open(json, "groups");
    for (uint32_t i = 0; i < answer->group_count; i++)
        put_group(json, &answer->groups[i]);
    json_array_close(json);
    json_object_close(json);
}

static void put_task(struct json_writer *json, const struct span_query_answer *answer) {
    json_object_open(json);
    json_field_slice(json, "group", answer->task.group);
    json_key(json, "span");
    put_text_or_null(json, answer->task.span);
    json_field_text(json, "state", task_state_name(answer->task.state));
    json_field_int(json, "nbytes", answer->task.nbytes);
    json_object_close(json);
}

static void put_result(struct json_writer *json, const struct span_query_answer *answer) {
    json_key(json, answer->kind == SPAN_RESULT_ERROR ? "error" : "result");
    switch (answer->kind) {
    case SPAN_RESULT_ERROR:
        json_slice(json, answer->error);
        return;
    case SPAN_RESULT_SPAN:
        put_span(json, &answer->spans[0]);
        return;
    case SPAN_RESULT_TASK:
        put_task(json, answer);
        return;
    case SPAN_RESULT_SPANS:
    case SPAN_RESULT_IDS:
        break;
    }
    json_array_open(json);
    if (answer->kind == SPAN_RESULT_SPANS)
        for (uint32_t i = 0; i < answer->span_count; i++)
            put_span(json, &answer->spans[i]);
    else
        for (uint32_t i = 0; i < answer->id_count; i++)
            json_slice(json, answer->ids[i]);
    json_array_close(json);
}

// The query is repeated as it was asked, and its result follows inside the same braces.
static void put_query(struct json_writer *json, const struct span_query_answer *answer) {
    assert(answer->query.data != NULL);
    struct slice query = answer->query;
    assert(query.size > 2 && query.data[0] == '{' && query.data[query.size - 1] == '}');
    struct slice members = {query.data + 1, query.size - 2};
    json_object_open(json);
    raw_on_one_line(json, members); // `op` at least
    put_result(json, answer);
    json_object_close(json);
}

static void put_refused(struct json_writer *json, const struct span_report *report) {
    json_field_array_open(json, "rejected");
    for (uint32_t i = 0; i < report->refused_count; i++) {
        const struct span_refused *refused = &report->refused[i];
        json_object_open(json);
        json_field_uint(json, "line", refused->line);
        if (refused->entry >= 0)
            json_field_int(json, "entry", refused->entry);
        json_field_text(json, "code", span_refusal_name(refused->refusal));
        json_object_close(json);
    }
    json_array_close(json);
}

static void put_history(struct json_writer *json, const struct span_report *report) {
    json_field_array_open(json, "total_nthreads_history");
    for (uint32_t i = 0; i < report->history_count; i++) {
        json_array_open(json);
        json_double(json, report->history[i].time_s);
        json_int(json, report->history[i].threads);
        json_array_close(json);
    }
    json_array_close(json);
}

static void put_phase(struct json_writer *json, const struct span_phase *phase) {
    json_object_open(json);
    json_field_slice(json, "phase", phase->label);
    json_field_uint(json, "openings", phase->openings);
    json_field_double(json, "thread_seconds", phase->thread_s);
    json_field_double(json, "busy_seconds", phase->busy_s);
    json_field_double(json, "idle_seconds", phase->idle_s);
    json_field_array_open(json, "ranks");
    for (uint32_t i = 0; i < phase->rank_count; i++) {
        const struct span_phase_rank *rank = &phase->ranks[i];
        json_object_open(json);
        json_field_int(json, "rank", rank->rank);
        json_field_uint(json, "openings", rank->openings);
        json_field_double(json, "busy_seconds", rank->busy_s);
        json_field_double(json, "lag_seconds", rank->lag_s);
        json_field_uint(json, "slowest", rank->slowest);
        json_field_bool(json, "inside", rank->inside);
        json_object_close(json);
    }
    json_array_close(json);
    json_object_close(json);
}

// What the format's description does not know, where there is something to say.
static void put_own(struct json_writer *json, const struct span_report *report) {
    if (report->source.data != NULL)
        json_field_slice(json, "source", report->source);
    if (report->job != STRING_NONE && report->job != STRING_REFUSED)
        json_field_slice(json, "job", intern_slice(report->job));
    if (report->from_telemetry) {
        json_field_array_open(json, "phases");
        for (uint32_t i = 0; i < report->phase_count; i++)
            put_phase(json, &report->phases[i]);
        json_array_close(json);
    }
    if (report->refused_not_listed > 0)
        json_field_uint(json, "rejected_not_listed", report->refused_not_listed);
    if (report->folded > 0)
        json_field_uint(json, "folded", report->folded);
    if (report->note_count > 0)
        put_texts(json, "notes", report->notes, report->note_count);
}

static void put_spans(struct json_writer *json, const struct span_report *report) {
    struct arena arena;
    arena_init(&arena, ANSWER_BYTES);
    json_field_array_open(json, "spans");
    uint32_t at = 0, span;
    while (report->ask->next(report->tree, &at, &span)) {
        struct span_answer answer;
        arena_reset(&arena);
        report->ask->answer(report->tree, span, report->now_s, &arena, &answer);
        put_span(json, &answer);
    }
    json_array_close(json);
    arena_release(&arena);
}

void span_document_encode(const struct span_report *report, struct buffer *out) {
    assert(report->ask != NULL && out != NULL);
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_int(&json, "format", SPAN_FORMAT);
    json_field_text(&json, "made_with", "culprit " CULPRIT_VERSION);
    json_field_uint(&json, "accepted", report->accepted);
    put_refused(&json, report);
    json_key(&json, "now");
    if (report->now_s > 0)
        json_double(&json, report->now_s);
    else
        json_put_null(&json);
    put_history(&json, report);
    put_spans(&json, report);
    json_field_array_open(&json, "queries");
    for (uint32_t i = 0; i < report->query_count; i++)
        put_query(&json, &report->queries[i]);
    json_array_close(&json);
    put_own(&json, report);
    json_object_close(&json);
    buffer_append_char(out, '\n');
}

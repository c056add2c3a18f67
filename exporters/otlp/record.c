// SPDX-License-Identifier: Apache-2.0
// A verdict as an OTLP log record, and verdicts counted as a metric.
#include "exporters/otlp/otlp.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/json_write.h"

#include <assert.h>
#include <stdio.h>

enum { EVIDENCE_MAX = 64, ENTITIES_MAX = 64, VALUE_MAX = 1024 };

// -- values ---------------------------------------------------------------------------------------

static void value_text(struct json_writer *json, struct slice text) {
    char room[TEXT_ROOM(VALUE_MAX)];
    json_object_open(json);
    json_field_slice(json, "stringValue", text_shorten(text, VALUE_MAX, TEXT_CHARACTERS, room));
    json_object_close(json);
}

static void attribute_open(struct json_writer *json, const char *key) {
    json_object_open(json);
    json_field_text(json, "key", key);
    json_key(json, "value");
}

static void attribute_text(struct json_writer *json, const char *key, struct slice text) {
    attribute_open(json, key);
    value_text(json, text);
    json_object_close(json);
}

static void attribute_int(struct json_writer *json, const char *key, int64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    attribute_open(json, key);
    json_object_open(json);
    json_field_text(json, "intValue", digits); // 64-bit numbers are texts in OTLP's JSON
    json_object_close(json);
    json_object_close(json);
}

static void attribute_true(struct json_writer *json, const char *key) {
    attribute_open(json, key);
    json_object_open(json);
    json_field_bool(json, "boolValue", true);
    json_object_close(json);
    json_object_close(json);
}

static void attribute_list_open(struct json_writer *json, const char *key) {
    attribute_open(json, key);
    json_object_open(json);
    json_field_object_open(json, "arrayValue");
    json_field_array_open(json, "values");
}

static void attribute_list_close(struct json_writer *json) {
    json_array_close(json);
    json_object_close(json);
    json_object_close(json);
    json_object_close(json);
}

static void map_open(struct json_writer *json) {
    json_object_open(json);
    json_field_object_open(json, "kvlistValue");
    json_field_array_open(json, "values");
}

static void map_close(struct json_writer *json) {
    json_array_close(json);
    json_object_close(json);
    json_object_close(json);
}

static void field_nano(struct json_writer *json, const char *key, uint64_t time_ns) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)time_ns);
    json_field_text(json, key, digits);
}

// -- the record -----------------------------------------------------------------------------------

static const struct entity *blamed(const struct verdict *verdict, const char *kind) {
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (verdict->entities[i].role != ROLE_VICTIM &&
            strcmp(verdict->entities[i].kind, kind) == 0)
            return &verdict->entities[i];
    return NULL;
}

// Whose it is: the node and the pod that are blamed.
static void append_resource(struct json_writer *json, const struct verdict *verdict,
                            const char *service) {
    const struct entity *node = blamed(verdict, "node"), *pod = blamed(verdict, "pod");
    json_field_object_open(json, "resource");
    json_field_array_open(json, "attributes");
    attribute_text(json, "service.name", slice_of(service));
    if (node != NULL)
        attribute_text(json, "k8s.node.name", node->name);
    if (pod != NULL)
        attribute_text(json, "k8s.pod.name", pod->name);
    if (verdict->job != STRING_NONE)
        attribute_text(json, "culprit.job_id", intern_slice(verdict->job));
    json_array_close(json);
    json_object_close(json);
}

static const char *role_name(enum entity_role role) {
    return role == ROLE_CULPRIT ? "culprit" : role == ROLE_SUSPECT ? "suspect" : "victim";
}

static void append_entities(struct json_writer *json, const struct verdict *verdict) {
    attribute_list_open(json, "culprit.entities");
    for (uint32_t i = 0; i < verdict->entity_count && i < ENTITIES_MAX; i++) {
        const struct entity *entity = &verdict->entities[i];
        map_open(json);
        attribute_text(json, "kind", slice_of(entity->kind));
        attribute_text(json, "name", entity->name);
        attribute_text(json, "role", slice_of(role_name(entity->role)));
        map_close(json);
    }
    attribute_list_close(json);
}

static void append_evidence(struct json_writer *json, const struct verdict *verdict) {
    attribute_list_open(json, "culprit.evidence");
    for (uint32_t i = 0; i < verdict->evidence_count && i < EVIDENCE_MAX; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        map_open(json);
        attribute_text(json, "uid", evidence->uid);
        attribute_text(json, "description", evidence->description);
        attribute_text(json, "role",
                       evidence->role == EVIDENCE_CAUSE    ? SLICE("cause")
                       : evidence->role == EVIDENCE_EFFECT ? SLICE("effect")
                                                           : SLICE("context"));
        if (evidence->has_time && evidence->time_ns <= INT64_MAX)
            attribute_int(json, "time_unix_nano", (int64_t)evidence->time_ns);
        if (evidence->repeats)
            attribute_true(json, "repeats");
        map_close(json);
    }
    attribute_list_close(json);
}

static void append_related(struct json_writer *json, const struct verdict *verdict) {
    static const char *const keys[] = {"culprit.caused_by", "culprit.causes",
                                       "culprit.same_incident"};
    for (int relation = RELATION_CAUSED_BY; relation <= RELATION_SAME_INCIDENT; relation++) {
        bool open = false;
        for (uint32_t i = 0; i < verdict->related_count; i++) {
            if ((int)verdict->related[i].relation != relation)
                continue;
            if (!open)
                attribute_list_open(json, keys[relation]);
            open = true;
            value_text(json, slice_of(verdict->related[i].id));
        }
        if (open)
            attribute_list_close(json);
    }
}

static void append_attributes(struct json_writer *json, const struct verdict *verdict) {
    json_field_array_open(json, "attributes");
    attribute_text(json, "culprit.verdict.id", slice_of(verdict->id));
    attribute_text(json, "culprit.verdict.pattern", slice_of(verdict->pattern));
    attribute_text(json, "culprit.verdict.kind", slice_of(verdict->kind));
    attribute_text(json, "culprit.verdict.state", slice_of(verdict_state_name(verdict->state)));
    attribute_text(json, "culprit.verdict.severity", slice_of(severity_name(verdict->severity)));
    attribute_int(json, "culprit.verdict.confidence", verdict->confidence);
    attribute_text(json, "culprit.verdict.completeness",
                   verdict->partial ? SLICE("partial") : SLICE("full"));
    attribute_text(json, "culprit.verdict.action", slice_of(verdict->action));
    attribute_text(json, "culprit.verdict.remediation", verdict->remediation);
    if (verdict->start_ns <= INT64_MAX)
        attribute_int(json, "culprit.verdict.start_time_unix_nano", (int64_t)verdict->start_ns);
    if (verdict->job != STRING_NONE)
        attribute_text(json, "culprit.job_id", intern_slice(verdict->job));
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        attribute_text(json, verdict->attributes[i].key, verdict->attributes[i].value);
    append_related(json, verdict);
    append_entities(json, verdict);
    append_evidence(json, verdict);
    json_array_close(json);
}

void otlp_encode_verdict(const struct verdict *verdict, const char *service, struct buffer *out) {
    // Of the log data model: INFO, WARN, ERROR, FATAL.
    static const int numbers[] = {9, 13, 17, 21};
    static const char *const texts[] = {"INFO", "WARN", "ERROR", "FATAL"};
    assert(verdict->severity <= SEVERITY_CRITICAL);
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    append_resource(&json, verdict, service);
    json_field_array_open(&json, "scopeLogs");
    json_object_open(&json);
    json_field_object_open(&json, "scope");
    json_field_text(&json, "name", "culprit");
    json_object_close(&json);
    json_field_array_open(&json, "logRecords");
    json_object_open(&json);
    field_nano(&json, "timeUnixNano", verdict->end_ns);
    json_field_int(&json, "severityNumber", numbers[verdict->severity]);
    json_field_text(&json, "severityText", texts[verdict->severity]);
    json_field_text(&json, "eventName", "culprit.verdict");
    json_key(&json, "body");
    char room[TEXT_ROOM(VERDICT_HEADLINE_MAX)];
    value_text(&json, verdict_headline(verdict, room));
    append_attributes(&json, verdict);
    json_object_close(&json);
    json_array_close(&json);
    json_object_close(&json);
    json_array_close(&json);
    json_object_close(&json);
    buffer_append_char(out, '\n');
}

static json_t *record_of(const json_t *line) {
    const json_t *scope = json_array_get(json_object_get(line, "scopeLogs"), 0);
    return json_array_get(json_object_get(scope, "logRecords"), 0);
}

const char *verdict_record_attribute(const json_t *line, const char *key) {
    const json_t *attributes = json_object_get(record_of(line), "attributes");
    for (size_t i = 0; i < json_array_size(attributes); i++) {
        const json_t *attribute = json_array_get(attributes, i);
        const char *name = json_string_value(json_object_get(attribute, "key"));
        if (name != NULL && strcmp(name, key) == 0)
            return json_string_value(
                json_object_get(json_object_get(attribute, "value"), "stringValue"));
    }
    return NULL;
}

static json_t *nano_text(uint64_t time_ns) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)time_ns);
    return json_string(digits);
}

void verdict_record_observe(json_t *line, uint64_t unix_ns) {
    json_t *record = record_of(line);
    if (record != NULL)
        json_object_set_new(record, "observedTimeUnixNano", nano_text(unix_ns));
}

// -- counts ---------------------------------------------------------------------------------------

void otlp_counts_begin(struct otlp_counts *counts, uint64_t unix_ns) {
    *counts = (struct otlp_counts){.begun_ns = unix_ns};
}

void otlp_counts_release(struct otlp_counts *counts) {
    for (uint32_t i = 0; i < counts->count; i++) {
        memory_give(counts->items[i].pattern);
        memory_give(counts->items[i].severity);
        memory_give(counts->items[i].job);
    }
    memory_give(counts->items);
    *counts = (struct otlp_counts){.items = NULL};
}

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static char *copy(const char *text) {
    return text == NULL ? NULL : memory_copy_text(text, strlen(text));
}

void otlp_counts_add(struct otlp_counts *counts, const json_t *line) {
    const char *pattern = verdict_record_attribute(line, "culprit.verdict.pattern");
    const char *severity = verdict_record_attribute(line, "culprit.verdict.severity");
    const char *state = verdict_record_attribute(line, "culprit.verdict.state");
    const char *job = verdict_record_attribute(line, "culprit.job_id");
    if (pattern == NULL || severity == NULL || state == NULL || strcmp(state, "open") != 0)
        return;
    struct otlp_count *found = NULL;
    for (uint32_t i = 0; i < counts->count && found == NULL; i++)
        if (same_text(counts->items[i].pattern, pattern) &&
            same_text(counts->items[i].severity, severity) && same_text(counts->items[i].job, job))
            found = &counts->items[i];
    if (found == NULL && counts->count == OTLP_SERIES_MAX)
        return;
    if (found == NULL) {
        counts->items =
            memory_room(counts->items, &counts->capacity, counts->count, sizeof *counts->items);
        found = &counts->items[counts->count++];
        *found = (struct otlp_count){copy(pattern), copy(severity), copy(job), 0};
    }
    found->count++;
    counts->changed = true;
}

static json_t *text_attribute(const char *key, const char *value) {
    return json_pack("{s:s,s:{s:s}}", "key", key, "value", "stringValue", value);
}

static json_t *count_point(const struct otlp_counts *counts, const struct otlp_count *one,
                           uint64_t unix_ns) {
    json_t *attributes = json_array();
    json_array_append_new(attributes, text_attribute("culprit.verdict.pattern", one->pattern));
    json_array_append_new(attributes, text_attribute("culprit.verdict.severity", one->severity));
    if (one->job != NULL)
        json_array_append_new(attributes, text_attribute("culprit.job_id", one->job));
    return json_pack("{s:o,s:o,s:o,s:o}", "attributes", attributes, "startTimeUnixNano",
                     nano_text(counts->begun_ns), "timeUnixNano", nano_text(unix_ns), "asInt",
                     nano_text(one->count));
}

json_t *otlp_counts_document(const struct otlp_counts *counts, const char *service,
                             uint64_t unix_ns) {
    enum { CUMULATIVE = 2 };
    json_t *points = json_array();
    for (uint32_t i = 0; i < counts->count; i++)
        json_array_append_new(points, count_point(counts, &counts->items[i], unix_ns));
    json_t *metric =
        json_pack("{s:s,s:s,s:s,s:{s:o,s:i,s:b}}", "name", "culprit.verdicts", "description",
                  "Verdicts that were found.", "unit", "{verdict}", "sum", "dataPoints", points,
                  "aggregationTemporality", CUMULATIVE, "isMonotonic", 1);
    json_t *scope = json_pack("{s:{s:s},s:[o]}", "scope", "name", "culprit", "metrics", metric);
    json_t *resource = json_pack("{s:{s:[o]},s:[o]}", "resource", "attributes",
                                 text_attribute("service.name", service), "scopeMetrics", scope);
    json_t *document = json_pack("{s:[o]}", "resourceMetrics", resource);
    assert(document != NULL);
    return document;
}

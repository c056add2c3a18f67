// SPDX-License-Identifier: Apache-2.0
// The alerts that Alertmanager is told of again and again, since it ends by itself what it does not
// hear of.
#include "exporters/alertmanager/alert.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/json_write.h"
#include "base/text/rfc3339.h"

#include <assert.h>

enum { MISSED_RESENDS = 4 }; // of Prometheus: rules/manager.go, resendDelay
static const uint64_t RESOLVED_FOR_NS = 5ull * 60 * 1000 * 1000 * 1000;

void alert_table_begin(struct alert_table *table, const struct alert_config *config) {
    assert(config->max_alerts > 0 && config->resend_interval.ns > 0);
    *table = (struct alert_table){
        .max = (uint32_t)config->max_alerts,
        .resend_ns = (uint64_t)config->resend_interval.ns,
        .resolve_after_ns = (uint64_t)config->resolve_after.ns,
    };
    table->items = memory_zero(table->max, sizeof *table->items);
}

static void release(struct alert *alert) {
    memory_give(alert->labels);
    memory_give(alert->annotations);
    memory_give(alert->former_labels);
}

void alert_table_release(struct alert_table *table) {
    for (uint32_t i = 0; i < table->count; i++)
        release(&table->items[i]);
    memory_give(table->items);
    table->items = NULL;
    table->count = 0;
}

void alert_table_forget(struct alert_table *table, const struct alert *alert) {
    size_t at = (size_t)(alert - table->items);
    assert(at < table->count);
    release(&table->items[at]);
    table->count--;
    memmove(&table->items[at], &table->items[at + 1], (table->count - at) * sizeof *alert);
}

// -- taking lines ---------------------------------------------------------------------------------

struct parts {
    struct slice id, labels, annotations;
    bool fires;
    uint64_t start_ns;
    uint64_t changed_ns; // 0: the line does not say
};

static struct slice take_part(struct slice *line) {
    struct slice part = text_until(*line, '\t');
    *line = text_from(*line, part.size + (part.size < line->size));
    return part;
}

static bool take_parts(struct slice line, struct parts *parts) {
    parts->id = take_part(&line);
    parts->fires = slice_equal(take_part(&line), SLICE("firing"));
    bool known = text_number(take_part(&line), 20, &parts->start_ns);
    parts->labels = take_part(&line);
    parts->annotations = take_part(&line);
    parts->changed_ns = 0;
    known &= line.size == 0 || text_number(line, 20, &parts->changed_ns);
    return known && parts->id.size > 0 && parts->id.size < VERDICT_ID_SIZE &&
           parts->labels.size > 1 && parts->annotations.size > 1;
}

static struct alert *find(struct alert_table *table, struct slice id) {
    for (uint32_t i = 0; i < table->count; i++)
        if (slice_equal(slice_of(table->items[i].id), id))
            return &table->items[i];
    return NULL;
}

// Makes room: the first that is resolved goes, else the first of all.
static void make_room(struct alert_table *table) {
    assert(table->count <= table->max);
    if (table->count < table->max)
        return;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->items[i].resolved_ns != 0) {
            alert_table_forget(table, &table->items[i]);
            return;
        }
    table->left_out++;
    alert_table_forget(table, &table->items[0]);
}

static struct alert *add(struct alert_table *table, struct slice id) {
    make_room(table);
    struct alert *alert = &table->items[table->count++];
    *alert = (struct alert){.posted_ns = 0};
    memcpy(alert->id, id.data, id.size);
    return alert;
}

static void set_text(char **place, struct slice text) {
    memory_give(*place);
    *place = memory_copy_text(text.data, text.size);
}

// Alertmanager knows an alert by its labels, so with others it is another one, and the former ends.
// One that it was not told of yet need not end.
static void set_labels(struct alert *alert, struct slice labels) {
    if (alert->labels != NULL && slice_equal(slice_of(alert->labels), labels))
        return;
    if (alert->told && alert->former_labels == NULL) {
        memory_give(alert->former_labels);
        alert->former_labels = alert->labels;
        alert->labels = NULL;
    }
    set_text(&alert->labels, labels);
}

struct alert *alert_table_take(struct alert_table *table, struct slice line, uint64_t unix_ns) {
    struct parts parts;
    if (!take_parts(line, &parts))
        return NULL;
    struct alert *alert = find(table, parts.id);
    if (alert == NULL && !parts.fires)
        return NULL;
    if (alert == NULL)
        alert = add(table, parts.id);
    alert->start_ns = parts.start_ns;
    alert->changed_ns = parts.changed_ns != 0 ? parts.changed_ns : unix_ns;
    if (parts.fires)
        alert->resolved_ns = 0;
    else if (alert->resolved_ns == 0)
        alert->resolved_ns = unix_ns;
    // What was told last ends: the labels of a verdict that is none any more may be others.
    if (parts.fires || !alert->told)
        set_labels(alert, parts.labels);
    set_text(&alert->annotations, parts.annotations);
    alert->posted_ns = 0;
    return alert;
}

// -- time -----------------------------------------------------------------------------------------

void alert_table_age(struct alert_table *table, uint64_t unix_ns) {
    for (uint32_t i = 0; i < table->count; i++) {
        struct alert *alert = &table->items[i];
        if (alert->resolved_ns == 0) {
            if (table->resolve_after_ns == 0 || unix_ns < alert->changed_ns ||
                unix_ns - alert->changed_ns < table->resolve_after_ns)
                continue;
            alert->resolved_ns = unix_ns;
        } else if (unix_ns > alert->resolved_ns && unix_ns - alert->resolved_ns > RESOLVED_FOR_NS &&
                   alert->posted_ns != 0) {
            alert_table_forget(table, alert);
            i--;
        }
    }
}

uint64_t alert_table_due(const struct alert_table *table) {
    uint64_t due = UINT64_MAX;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct alert *alert = &table->items[i];
        uint64_t own = alert->posted_ns == 0 ? 0 : alert->posted_ns + table->resend_ns;
        due = own < due ? own : due;
    }
    return due;
}

void alert_was_posted(struct alert *alert, uint64_t monotonic_ns) {
    assert(alert->labels != NULL);
    alert->posted_ns = monotonic_ns;
    alert->told = true;
    memory_give(alert->former_labels);
    alert->former_labels = NULL;
}

// -- the API --------------------------------------------------------------------------------------

static void append_link(struct json_writer *json, const char *id, const char *link) {
    struct buffer url;
    buffer_init(&url, ALERT_LINE_MAX);
    struct slice rest = slice_of(link);
    while (rest.size > 0) {
        struct slice plain = text_until(rest, '{');
        buffer_append(&url, plain);
        rest = text_from(rest, plain.size);
        if (text_skip(&rest, SLICE("{id}")))
            buffer_append_text(&url, id);
        else if (rest.size > 0)
            buffer_append(&url, text_take(&rest, 1));
    }
    json_field_slice(json, "generatorURL", buffer_slice(&url));
    buffer_release(&url);
}

static void append_one(const struct alert *alert, const char *labels, const char *link,
                       uint64_t end_ns, struct buffer *out) {
    char start[RFC3339_TEXT_MAX], end[RFC3339_TEXT_MAX];
    // An end before its start would be refused, and clocks of senders may be ahead.
    rfc3339_format(alert->start_ns < end_ns ? alert->start_ns : end_ns, start);
    rfc3339_format(end_ns, end);
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_key(&json, "labels");
    json_raw(&json, slice_of(labels));
    json_key(&json, "annotations");
    json_raw(&json, slice_of(alert->annotations));
    json_field_text(&json, "startsAt", start);
    json_field_text(&json, "endsAt", end);
    if (link != NULL)
        append_link(&json, alert->id, link);
    json_object_close(&json);
}

void alert_append(const struct alert_table *table, const struct alert *alert, const char *link,
                  uint64_t unix_ns, struct buffer *out) {
    uint64_t end_ns =
        alert->resolved_ns != 0 ? alert->resolved_ns : unix_ns + MISSED_RESENDS * table->resend_ns;
    if (alert->former_labels != NULL) {
        append_one(alert, alert->former_labels, link, unix_ns, out);
        buffer_append_char(out, ',');
    }
    append_one(alert, alert->labels, link, end_ns, out);
}

// -- over a restart -------------------------------------------------------------------------------

void alert_table_keep(const struct alert_table *table, struct buffer *out) {
    for (uint32_t i = 0; i < table->count; i++) {
        const struct alert *alert = &table->items[i];
        size_t size = strlen(alert->labels) + strlen(alert->annotations) + VERDICT_ID_SIZE + 64;
        if (size > out->max - out->size)
            continue;
        buffer_append_format(out, "%s\t%s\t", alert->id,
                             alert->resolved_ns == 0 ? "firing" : "resolved");
        buffer_append_uint(out, alert->start_ns);
        buffer_append_format(out, "\t%s\t%s\t", alert->labels, alert->annotations);
        buffer_append_uint(out, alert->resolved_ns == 0 ? alert->changed_ns : alert->resolved_ns);
        buffer_append_char(out, '\n');
    }
}

void alert_table_restore(struct alert_table *table, struct slice kept) {
    while (kept.size > 0) {
        struct slice line = text_take_line(&kept);
        struct parts parts;
        if (!take_parts(line, &parts))
            continue;
        struct alert *alert = find(table, parts.id);
        if (alert == NULL)
            alert = add(table, parts.id);
        alert->start_ns = parts.start_ns;
        alert->changed_ns = parts.changed_ns;
        alert->resolved_ns = parts.fires ? 0 : parts.changed_ns;
        alert->told = true;
        set_text(&alert->labels, parts.labels);
        set_text(&alert->annotations, parts.annotations);
    }
}

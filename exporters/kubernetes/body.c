// SPDX-License-Identifier: Apache-2.0
// What requests to the API server hold: Events of events.k8s.io/v1, their series, and the condition
// of a node.
//
// An Event's name is made of what it says, of whom: after a crash the same line makes the same
// name, and the server says that it is there. Limits: kubernetes
// pkg/apis/core/validation/events.go.
#include "base/text/cut.h"
#include "base/text/json_write.h"
#include "base/text/rfc3339.h"
#include "base/text/utf8.h"
#include "exporters/kubernetes/exporter.h"

#include <assert.h>
#include <stdio.h>

// Times of Events have exactly six digits behind the point, those of conditions none.
static void field_micros(struct json_writer *json, const char *key, uint64_t time_ns) {
    char second[RFC3339_TEXT_MAX], whole[RFC3339_TEXT_MAX + 16];
    rfc3339_format_second(time_ns, second);
    snprintf(whole, sizeof whole, "%.19s.%06uZ", second, (unsigned)(time_ns % 1000000000 / 1000));
    json_field_text(json, key, whole);
}

static void field_second(struct json_writer *json, const char *key, uint64_t time_ns) {
    char second[RFC3339_TEXT_MAX];
    rfc3339_format_second(time_ns, second);
    json_field_text(json, key, second);
}

enum kube_state kube_state_of(const struct kube_verdict *verdict,
                              const struct kube_object *object) {
    return verdict->state == KUBE_OPEN && !object->stays ? KUBE_WITHDRAWN : verdict->state;
}

const char *kube_event_namespace(const struct kube_object *object) {
    return object->kind == KUBE_NODE ? "default" : object->namespace;
}

// -- words ----------------------------------------------------------------------------------------

// Up to `most` bytes in all.
static void append_shortened(struct buffer *out, const char *text, size_t most) {
    char room[KUBE_NOTE_MAX];
    assert(most <= sizeof room && out->size + TEXT_SHORTEST <= most);
    buffer_append(out, text_shorten(slice_of(text), most - out->size, TEXT_BYTES, room));
}

static void append_note(const struct kube_verdict *verdict, enum kube_state state,
                        struct buffer *out) {
    static const char *const before[] = {
        [KUBE_OPEN] = "", [KUBE_RESOLVED] = "Over: ", [KUBE_WITHDRAWN] = "Not held against it: "};
    size_t most = KUBE_NOTE_MAX - strlen(verdict->id) - strlen(" []");
    buffer_append_text(out, before[state]);
    append_shortened(out, kube_text(verdict->line, "headline"), most);
    const char *more = kube_text(verdict->line, "remediation");
    if (state == KUBE_OPEN && more[0] != '\0' && out->size + 2 + TEXT_SHORTEST <= most) {
        bool ends = out->size > 0 && strchr(".!?", out->data[out->size - 1]) != NULL;
        buffer_append_text(out, ends ? " " : ". ");
        append_shortened(out, more, most);
    }
    buffer_append_format(out, " [%s]", verdict->id);
    assert(out->size <= KUBE_NOTE_MAX);
}

static const char *type_of(const struct kube_verdict *verdict, const struct kube_object *object) {
    bool warns = kube_state_of(verdict, object) == KUBE_OPEN && object->role != ROLE_VICTIM &&
                 kube_number(verdict->line, "severity") >= SEVERITY_WARNING;
    return warns ? "Warning" : "Normal";
}

void kube_event_digest(const struct kube_verdict *verdict, const struct kube_object *object,
                       char out[DIGEST_ID_SIZE]) {
    char generation[16];
    struct buffer note;
    assert(verdict->line != NULL);
    buffer_init(&note, 2 * KUBE_NOTE_MAX);
    append_note(verdict, kube_state_of(verdict, object), &note);
    snprintf(generation, sizeof generation, "%u", verdict->generation);
    const struct slice parts[] = {
        slice_of(verdict->id),       slice_of(object->kind == KUBE_POD ? "Pod" : "Node"),
        slice_of(object->namespace), slice_of(object->name),
        slice_of(generation),        slice_of(type_of(verdict, object)),
        buffer_slice(&note)};
    digest_id(parts, sizeof parts / sizeof parts[0], out);
    buffer_release(&note);
}

void kube_event_name(const struct kube_object *object, const char *digest, struct buffer *out) {
    size_t size = strlen(object->name), most = KUBERNETES_SUBDOMAIN_MAX - DIGEST_ID_SIZE;
    assert(strlen(digest) == DIGEST_ID_SIZE - 1);
    size = size > most ? most : size;
    while (size > 0 && strchr("-.", object->name[size - 1]) != NULL)
        size--;
    buffer_append(out, (struct slice){object->name, size});
    buffer_append_format(out, ".%s", digest);
}

// -- Events ---------------------------------------------------------------------------------------

// As the kubelet does, the uid of a node is its name: kubectl asks for both.
static void append_regarding(struct json_writer *json, const struct kube_object *object) {
    bool node = object->kind == KUBE_NODE;
    json_field_object_open(json, "regarding");
    json_field_text(json, "apiVersion", "v1");
    json_field_text(json, "kind", node ? "Node" : "Pod");
    json_field_text(json, "name", object->name);
    if (!node)
        json_field_text(json, "namespace", object->namespace);
    if (node || object->uid[0] != '\0')
        json_field_text(json, "uid", node ? object->name : object->uid);
    json_object_close(json);
}

static void append_metadata(struct json_writer *json, const struct kube_verdict *verdict,
                            const struct kube_object *object, const char *digest) {
    static const char *const roles[] = {"culprit", "suspect", "victim"};
    struct buffer name;
    const char *key;
    json_t *value;
    buffer_init(&name, KUBERNETES_SUBDOMAIN_MAX + 1);
    kube_event_name(object, digest, &name);
    json_field_object_open(json, "metadata");
    json_field_slice(json, "name", buffer_slice(&name));
    json_field_text(json, "namespace", kube_event_namespace(object));
    json_field_object_open(json, "annotations");
    json_object_foreach(json_object_get(verdict->line, "annotations"), key, value) json_field_text(
        json, key, json_string_value(value) == NULL ? "" : json_string_value(value));
    json_field_text(json, "culprit/role", roles[object->role]);
    json_object_close(json);
    json_object_close(json);
    buffer_release(&name);
}

void kube_event_body(const struct kube_verdict *verdict, const struct kube_object *object,
                     const char *digest, const char *instance, uint64_t now_ns,
                     struct buffer *out) {
    static const char *const behind[] = {
        [KUBE_OPEN] = "", [KUBE_RESOLVED] = "Resolved", [KUBE_WITHDRAWN] = "Withdrawn"};
    enum kube_state state = kube_state_of(verdict, object);
    uint64_t end_ns = kube_number(verdict->line, "end");
    struct json_writer json;
    struct buffer text;
    assert(instance[0] != '\0');
    buffer_init(&text, 2 * KUBE_NOTE_MAX);
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "apiVersion", "events.k8s.io/v1");
    json_field_text(&json, "kind", "Event");
    append_metadata(&json, verdict, object, digest);
    field_micros(&json, "eventTime", end_ns != 0 ? end_ns : now_ns);
    json_field_text(&json, "type", type_of(verdict, object));
    buffer_append_format(&text, "%.100s%s", kube_text(verdict->line, "reason"), behind[state]);
    json_field_slice(&json, "reason", buffer_slice(&text));
    json_field_text(&json, "action", "Diagnose");
    buffer_reset(&text);
    append_note(verdict, state, &text);
    json_field_slice(&json, "note", buffer_slice(&text));
    json_field_text(&json, "reportingController", "culprit");
    json_field_text(&json, "reportingInstance", instance);
    append_regarding(&json, object);
    json_object_close(&json);
    buffer_release(&text);
}

void kube_series_body(uint32_t count, uint64_t last_ns, struct buffer *out) {
    struct json_writer json;
    assert(count >= 2); // one is no series
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_object_open(&json, "series");
    json_field_uint(&json, "count", count);
    field_micros(&json, "lastObservedTime", last_ns);
    json_object_close(&json);
    json_object_close(&json);
}

// -- the condition --------------------------------------------------------------------------------

void kube_condition_message(const struct kube_verdict *verdict, uint32_t open, struct buffer *out) {
    assert(open > 0);
    append_note(verdict, KUBE_OPEN, out);
    if (open > 1)
        buffer_append_format(out, " and %u more", open - 1);
}

void kube_condition_body(const struct kube_condition *condition, struct buffer *out) {
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_object_open(&json, "status");
    json_field_array_open(&json, "conditions");
    json_object_open(&json);
    json_field_text(&json, "type", condition->type);
    json_field_text(&json, "status", condition->is_true ? "True" : "False");
    json_field_text(&json, "reason", condition->reason);
    json_field_text(&json, "message", condition->message);
    field_second(&json, "lastHeartbeatTime", condition->now_ns);
    field_second(&json, "lastTransitionTime", condition->since_ns);
    json_object_close(&json);
    json_array_close(&json);
    json_object_close(&json);
    json_object_close(&json);
}

// SPDX-License-Identifier: Apache-2.0
// A verdict as one line of JSON: what its Events say, and the objects that they are about.
//
// Pods are written as "namespace/name" in verdicts, or with the namespace in an attribute. Texts
// come from telemetry: control characters become spaces, what is no character U+FFFD.
#include "base/text/cut.h"
#include "base/text/json_write.h"
#include "base/text/utf8.h"
#include "exporters/kubernetes/exporter.h"

#include <assert.h>

enum { HEADLINE_MAX = 600, REMEDIATION_MAX = 1000, ANNOTATION_MAX = 256 }; // bytes
enum { BYTES_OF_WRONG = 3 }; // of U+FFFD for a byte that is no character

struct place {
    enum kube_kind kind;
    struct slice namespace, uid;
    char name[KUBERNETES_SUBDOMAIN_MAX + 1];
};

static const char *const HARDWARE[] = {"gpu", "nic", "pci_device", "pci_port", "link", "storage"};

void kube_reason(const char *pattern, struct buffer *out) {
    bool begins = true;
    assert(pattern != NULL && pattern[0] != '\0');
    for (const char *c = pattern; *c != '\0'; c++) {
        bool small = begins && *c >= 'a' && *c <= 'z';
        if (*c != '_')
            buffer_append_char(out, small ? (char)(*c - 'a' + 'A') : *c);
        begins = *c == '_';
    }
}

static void append_clean(struct buffer *out, struct slice text) {
    for (size_t at = 0; at < text.size;) {
        uint32_t code_point = 0;
        size_t length = utf8_decode(text, at, &code_point);
        bool wrong = length == 0 || (code_point >= 0xd800 && code_point <= 0xdfff);
        bool control = code_point < ' ' || (code_point >= 0x7f && code_point < 0xa0);
        struct slice one = wrong     ? SLICE("\xef\xbf\xbd")
                           : control ? SLICE(" ")
                                     : (struct slice){text.data + at, length};
        buffer_append(out, one);
        at += length == 0 ? 1 : length;
    }
}

// Shortened to `most` bytes.
static void field_clean(struct json_writer *json, const char *key, struct slice text, size_t most) {
    char room[REMEDIATION_MAX];
    struct buffer clean;
    assert(most <= sizeof room);
    buffer_init(&clean, BYTES_OF_WRONG * text.size + 1);
    append_clean(&clean, text);
    json_field_slice(json, key, text_shorten(buffer_slice(&clean), most, TEXT_BYTES, room));
    buffer_release(&clean);
}

static void field_time(struct json_writer *json, const char *key, uint64_t time_ns) {
    json_field_int(json, key, time_ns > INT64_MAX ? INT64_MAX : (int64_t)time_ns);
}

// -- who it is about ------------------------------------------------------------------------------

static struct slice attribute(const struct verdict *verdict, const char *key) {
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        if (strcmp(verdict->attributes[i].key, key) == 0)
            return verdict->attributes[i].value;
    return (struct slice){NULL, 0};
}

static bool set_name(struct place *place, struct slice name) {
    if (name.size > KUBERNETES_SUBDOMAIN_MAX)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        // A Node has the host's name in lower case.
        bool lower = place->kind == KUBE_NODE && c >= 'A' && c <= 'Z';
        place->name[i] = lower ? (char)(c - 'A' + 'a') : c;
    }
    place->name[name.size] = '\0';
    return kubernetes_is_subdomain(slice_of(place->name));
}

static bool set_pod(struct place *place, const struct verdict *verdict, struct slice name,
                    const char *namespace) {
    bool same;
    place->kind = KUBE_POD;
    place->namespace = text_until(name, '/');
    if (place->namespace.size < name.size) {
        name = text_from(name, place->namespace.size + 1);
        same = slice_equal(attribute(verdict, "k8s.pod.name"), name) &&
               slice_equal(attribute(verdict, "k8s.namespace.name"), place->namespace);
    } else {
        struct slice known = attribute(verdict, "k8s.namespace.name");
        same = slice_equal(attribute(verdict, "k8s.pod.name"), name);
        place->namespace = same && known.size > 0 ? known : slice_of(namespace);
    }
    struct slice uid = attribute(verdict, "k8s.pod.uid");
    bool fits = same && uid.size > 0 && uid.size <= KUBE_UID_MAX && kubernetes_is_label(uid);
    place->uid = fits ? uid : SLICE("");
    return kubernetes_is_label(place->namespace) && set_name(place, name);
}

// False when it is no pod or node, or one that cannot be named to the API server.
static bool set_place(struct place *place, const struct verdict *verdict,
                      const struct entity *entity, const char *namespace) {
    if (strcmp(entity->kind, "pod") == 0)
        return set_pod(place, verdict, entity->name, namespace);
    place->kind = KUBE_NODE;
    place->namespace = place->uid = SLICE("");
    return strcmp(entity->kind, "node") == 0 && set_name(place, entity->name);
}

// Whether hardware of this node is blamed: "node/…".
static bool blames_hardware_of(const struct verdict *verdict, struct slice node) {
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role != ROLE_CULPRIT || !text_begins(entity->name, node) ||
            entity->name.size == node.size || entity->name.data[node.size] != '/')
            continue;
        for (size_t at = 0; at < sizeof HARDWARE / sizeof HARDWARE[0]; at++)
            if (strcmp(entity->kind, HARDWARE[at]) == 0)
                return true;
    }
    return false;
}

// A rank that failed says nothing against its node: a condition is for nodes that are blamed
// themselves, or by their hardware.
static bool is_condition(const struct kube_config *config, const struct verdict *verdict,
                         const struct entity *entity) {
    return config->node_condition.enabled &&
           (int)verdict->severity >= config->node_condition.min_severity &&
           (entity->role == ROLE_CULPRIT || blames_hardware_of(verdict, entity->name));
}

static void append_object(struct json_writer *json, const struct place *place,
                          enum entity_role role, bool condition) {
    json_object_open(json);
    json_field_text(json, "kind", place->kind == KUBE_POD ? "Pod" : "Node");
    json_field_slice(json, "namespace", place->namespace);
    json_field_text(json, "name", place->name);
    json_field_slice(json, "uid", place->uid);
    json_field_int(json, "role", role);
    json_field_bool(json, "condition", condition);
    json_object_close(json);
}

// Entities come in the order of their roles, so those that are left out matter least.
static uint32_t append_objects(struct json_writer *json, const struct kube_config *config,
                               const char *namespace, const struct verdict *verdict) {
    uint32_t written = 0;
    json_field_array_open(json, "objects");
    for (uint32_t i = 0; i < verdict->entity_count && written < config->max_objects; i++) {
        const struct entity *entity = &verdict->entities[i];
        struct place place;
        if (!set_place(&place, verdict, entity, namespace))
            continue;
        append_object(json, &place, entity->role,
                      place.kind == KUBE_NODE && is_condition(config, verdict, entity));
        written++;
    }
    json_array_close(json);
    return written;
}

// -- the line -------------------------------------------------------------------------------------

static void append_annotations(struct json_writer *json, const struct verdict *verdict) {
    json_field_object_open(json, "annotations");
    json_field_text(json, "culprit/verdict", verdict->id);
    json_field_text(json, "culprit/pattern", verdict->pattern);
    json_field_text(json, "culprit/kind", verdict->kind);
    json_field_text(json, "culprit/severity", severity_name(verdict->severity));
    json_field_text(json, "culprit/suggested-action", verdict->action);
    if (verdict->job != STRING_NONE)
        field_clean(json, "culprit/job", intern_slice(verdict->job), ANNOTATION_MAX);
    json_object_close(json);
}

static const char *state_of(const struct kube_config *config, const struct verdict *verdict) {
    return verdict->state == VERDICT_RESOLVED       ? "resolved"
           : route_matches(&config->route, verdict) ? "open"
                                                    : "withdrawn";
}

uint32_t kube_encode(const struct kube_config *config, const char *namespace,
                     const struct verdict *verdict, struct buffer *out) {
    struct json_writer json;
    struct buffer reason;
    assert(namespace != NULL && config->max_objects > 0);
    buffer_init(&reason, KUBE_NOTE_MAX);
    kube_reason(verdict->pattern, &reason);
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "id", verdict->id);
    json_field_text(&json, "state", state_of(config, verdict));
    json_field_int(&json, "severity", verdict->severity);
    field_time(&json, "start", verdict->start_ns);
    field_time(&json, "end", verdict->end_ns);
    json_field_slice(&json, "reason", buffer_slice(&reason));
    field_clean(&json, "headline", verdict->headline, HEADLINE_MAX);
    field_clean(&json, "remediation", verdict->remediation, REMEDIATION_MAX);
    append_annotations(&json, verdict);
    uint32_t objects = append_objects(&json, config, namespace, verdict);
    json_object_close(&json);
    buffer_append_char(out, '\n');
    buffer_release(&reason);
    return objects;
}

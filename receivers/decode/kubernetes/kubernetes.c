// SPDX-License-Identifier: Apache-2.0
// Reads one Kubernetes object.
//
// The line's own members are read first, since a watch event and an Event both have a `type`; then
// the object's, by the tables of shape.c. Values are checked only for the kinds that are
// wanted, and only those that are used. The object is scanned at most three times. Takes one struct
// kubernetes_object and its conditions from the arena.
#include "receivers/decode/kubernetes/kubernetes.h"

#include "base/text/rfc3339.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/kubernetes/shape.h"
#include "receivers/decode/kubernetes/stopped.h"
#include "receivers/decode/kubernetes/walk.h"

#include <assert.h>

enum { NAME_MAX_BYTES = 253 };

struct kubernetes_state {
    uint64_t observed_ns;
    const struct forms *forms;
    struct kubernetes_walk walk; // what the object at hand has still to say
};
_Static_assert(sizeof(struct kubernetes_state) <= KUBERNETES_STATE_SIZE, "its header says so");

struct reading {
    struct slice record;
    struct arena *arena;
    struct decode_fault *fault;
    struct kubernetes_walk *walk;
    const struct forms *forms;     // NULL: those that are built in
    enum decode_category category; // of the first value that is wrong
    uint64_t said_ns;              // the line says when it was read; 0: it does not
    uint64_t input_ns;             // when the input was read; 0: not known
    uint64_t newest_ns;            // that the object tells of
    struct token line[SLOT_OBJECT_COUNT];
    struct token slots[SLOT_OBJECT_COUNT];
};

static void refuse_type(struct reading *reading, enum kubernetes_slot slot,
                        const struct token *found, const char *expected) {
    char path[KUBERNETES_PATH_MAX];
    if (reading->category == DECODE_OK)
        reading->category =
            fault_type(reading->fault, kubernetes_slot_name(slot, path), found, expected);
}

static void refuse_limit(struct reading *reading, enum kubernetes_slot slot,
                         const struct token *found, const char *limit) {
    char path[KUBERNETES_PATH_MAX];
    reading->category = fault_limit(reading->fault, kubernetes_slot_name(slot, path), found, limit);
}

// Absent, null and empty are the same: data NULL.
static struct slice take_token_text(struct reading *reading, enum kubernetes_slot slot,
                                    const struct token *token) {
    struct slice none = {NULL, 0};
    if (token->kind == TOKEN_NONE || token->kind == TOKEN_NULL)
        return none;
    if (token->kind != TOKEN_STRING) {
        refuse_type(reading, slot, token, "a text");
        return none;
    }
    struct slice text = token_decode(token, reading->arena);
    return text.size == 0 ? none : text;
}

static struct slice take_text(struct reading *reading, enum kubernetes_slot slot) {
    return take_token_text(reading, slot, &reading->slots[slot]);
}

// Unix nanoseconds; 0: absent, null, or outside of what they can say (Go's zero time).
static uint64_t take_token_time(struct reading *reading, enum kubernetes_slot slot,
                                const struct token *token, bool *has_fraction) {
    uint64_t time_ns = 0;
    *has_fraction = false;
    struct slice text = take_token_text(reading, slot, token);
    if (text.size > 0 && rfc3339_parse(text, &time_ns, has_fraction) == RFC3339_WRONG)
        refuse_type(reading, slot, token, "a time such as \"2026-01-31T09:15:04Z\"");
    return time_ns;
}

static uint64_t take_time(struct reading *reading, enum kubernetes_slot slot) {
    bool ignored;
    return take_token_time(reading, slot, &reading->slots[slot], &ignored);
}

static void see_time(struct reading *reading, uint64_t time_ns) {
    if (time_ns > reading->newest_ns)
        reading->newest_ns = time_ns;
}

static int64_t take_count(struct reading *reading, enum kubernetes_slot slot) {
    const struct token *token = &reading->slots[slot];
    if (token->kind == TOKEN_NONE || token->kind == TOKEN_NULL)
        return 0;
    if (token->kind != TOKEN_INTEGER)
        refuse_type(reading, slot, token, "an integer");
    return token->kind == TOKEN_INTEGER ? token->integer : 0;
}

// A name that must be there and that Kubernetes would have let pass.
static struct slice take_name(struct reading *reading, enum kubernetes_slot slot, bool needed) {
    assert(slot < SLOT_OBJECT_COUNT);
    struct slice name = take_text(reading, slot);
    char path[KUBERNETES_PATH_MAX];
    if (reading->category != DECODE_OK)
        return name;
    if (name.size > NAME_MAX_BYTES)
        refuse_limit(reading, slot, &reading->slots[slot], "names of at most 253 bytes");
    else if (needed && name.size == 0)
        reading->category =
            fault_set(reading->fault, DECODE_MISSING_FIELD, kubernetes_slot_name(slot, path),
                      "the object has no such name, so it is not known what it is about");
    return name;
}

static void read_event_time(struct reading *reading, struct kubernetes_object *out) {
    static const enum kubernetes_slot order[] = {SLOT_EVENT_TIME, SLOT_SERIES_TIME, SLOT_LAST_TIME,
                                                 SLOT_FIRST_TIME, SLOT_CREATED};
    for (size_t i = 0; i < sizeof order / sizeof *order && out->event_ns == 0; i++) {
        bool has_fraction;
        out->event_ns =
            take_token_time(reading, order[i], &reading->slots[order[i]], &has_fraction);
        out->whole_seconds = !has_fraction;
    }
    if (out->event_ns == 0)
        out->event_ns = out->observed_ns;
}

static void read_event(struct reading *reading, struct kubernetes_object *out) {
    out->reason = take_text(reading, SLOT_REASON);
    out->message = take_text(reading, SLOT_MESSAGE);
    out->type = take_text(reading, SLOT_TYPE);
    out->object_kind = take_text(reading, SLOT_ABOUT_KIND);
    out->object_name = take_name(reading, SLOT_ABOUT_NAME, true);
    out->object_namespace = take_name(reading, SLOT_ABOUT_NAMESPACE, false);
    out->object_uid = take_name(reading, SLOT_ABOUT_UID, false);
    out->component = take_text(reading, SLOT_COMPONENT);
    struct slice controller = take_text(reading, SLOT_CONTROLLER);
    struct slice instance = take_name(reading, SLOT_INSTANCE, false);
    if (out->component.data == NULL)
        out->component = controller;
    out->host = take_name(reading, SLOT_HOST, false);
    if (out->host.data == NULL && slice_equal(out->component, SLICE("kubelet")))
        out->host = instance;
    out->count = take_count(reading, SLOT_SERIES_COUNT);
    if (out->count == 0)
        out->count = take_count(reading, SLOT_COUNT);
    out->starved_resource = take_text(reading, SLOT_STARVED);
    read_event_time(reading, out);
    see_time(reading, out->event_ns);
}

static bool read_condition(struct reading *reading, const struct token *item,
                           struct kubernetes_condition *out) {
    const enum kubernetes_slot slot = SLOT_CONDITIONS;
    struct token slots[CONDITION_SLOT_COUNT] = {0};
    struct json_fault fault;
    if (item->kind != TOKEN_OBJECT) {
        refuse_type(reading, slot, item, "objects in it");
        return false;
    }
    const char *end = item->text + item->size;
    json_shape_read(&kubernetes_condition_shape, item->text, end, 0, slots, &fault);
    *out = (struct kubernetes_condition){0};
    out->type = take_token_text(reading, slot, &slots[CONDITION_TYPE]);
    out->status = take_token_text(reading, slot, &slots[CONDITION_STATUS]);
    out->reason = take_token_text(reading, slot, &slots[CONDITION_REASON]);
    out->message = take_token_text(reading, slot, &slots[CONDITION_MESSAGE]);
    out->transition_text = take_token_text(reading, slot, &slots[CONDITION_TRANSITION]);
    bool ignored;
    out->transition_ns = take_token_time(reading, slot, &slots[CONDITION_TRANSITION], &ignored);
    see_time(reading, out->transition_ns);
    see_time(reading, take_token_time(reading, slot, &slots[CONDITION_HEARTBEAT], &ignored));
    return out->type.size > 0;
}

static void read_conditions(struct reading *reading, struct kubernetes_object *out) {
    const struct token *array = &reading->slots[SLOT_CONDITIONS];
    if (array->kind == TOKEN_NONE || array->kind == TOKEN_NULL)
        return;
    if (array->kind != TOKEN_ARRAY) {
        refuse_type(reading, SLOT_CONDITIONS, array, "an array");
        return;
    }
    struct kubernetes_condition *conditions =
        arena_take(reading->arena, CONDITIONS_MAX * sizeof *conditions);
    struct json_items items = json_items_of(array);
    struct token item;
    while (out->condition_count < CONDITIONS_MAX && json_items_next(&items, &item))
        out->condition_count += read_condition(reading, &item, &conditions[out->condition_count]);
    out->conditions = conditions;
}

// "nvidia.com/gpu" or a slice of one ("nvidia.com/mig-1g.10gb"), and more than none of it.
static bool limits_name_gpu(const struct token *limits) {
    if (limits->kind != TOKEN_OBJECT)
        return false;
    struct json_pairs pairs = json_pairs_of(token_slice(limits));
    for (struct token key, value; json_pairs_next(&pairs, &key, &value);) {
        bool gpu = token_equals(&key, SLICE("nvidia.com/gpu")) ||
                   token_starts_with(&key, SLICE("nvidia.com/mig-"));
        if (gpu && value.kind != TOKEN_NULL && !slice_equal(token_slice(&value), SLICE("0")))
            return true;
    }
    return false;
}

static bool any_has_gpu(const struct token *containers) {
    if (containers->kind != TOKEN_ARRAY)
        return false;
    struct json_items items = json_items_of(containers);
    struct token item;
    while (json_items_next(&items, &item)) {
        struct token slots[CONTAINER_SLOT_COUNT] = {0};
        struct json_fault fault;
        if (item.kind != TOKEN_OBJECT)
            continue;
        json_shape_read(&kubernetes_container_shape, item.text, item.text + item.size, 0, slots,
                        &fault);
        if (limits_name_gpu(&slots[CONTAINER_LIMITS]))
            return true;
    }
    return false;
}

// -- other names of a node ------------------------------------------------------------------------

// Room for further ones is taken when the first is there. What is no name at all, or a loopback
// address that each node has, is left out.
static void add_alias(struct reading *reading, struct slice alias, struct kubernetes_object *out) {
    static const char *const of_all[] = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"};
    for (size_t i = 0; i < sizeof of_all / sizeof *of_all; i++)
        if (slice_equal(alias, slice_of(of_all[i])))
            return;
    if (alias.size == 0 || alias.size > NAME_MAX_BYTES || out->alias_count == ALIASES_MAX)
        return;
    if (out->aliases == NULL)
        out->aliases = arena_take(reading->arena, ALIASES_MAX * sizeof *out->aliases);
    ((struct slice *)(uintptr_t)out->aliases)[out->alias_count++] = alias;
}

static void read_address(struct reading *reading, const struct token *item,
                         struct kubernetes_object *out) {
    static const char *const types[] = {"InternalIP", "ExternalIP", "Hostname", "InternalDNS",
                                        "ExternalDNS"};
    struct token slots[ADDRESS_SLOT_COUNT] = {0};
    struct json_fault fault;
    if (item->kind != TOKEN_OBJECT) {
        refuse_type(reading, SLOT_ADDRESSES, item, "objects in it");
        return;
    }
    json_shape_read(&kubernetes_address_shape, item->text, item->text + item->size, 0, slots,
                    &fault);
    struct slice type = take_token_text(reading, SLOT_ADDRESSES, &slots[ADDRESS_TYPE]);
    struct slice text = take_token_text(reading, SLOT_ADDRESSES, &slots[ADDRESS_TEXT]);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (slice_equal(type, slice_of(types[i])))
            add_alias(reading, text, out);
}

static void read_node(struct reading *reading, struct kubernetes_object *out) {
    read_conditions(reading, out);
    add_alias(reading, take_text(reading, SLOT_HOSTNAME), out);
    const struct token *array = &reading->slots[SLOT_ADDRESSES];
    if (array->kind == TOKEN_NONE || array->kind == TOKEN_NULL)
        return;
    if (array->kind != TOKEN_ARRAY) {
        refuse_type(reading, SLOT_ADDRESSES, array, "an array");
        return;
    }
    struct json_items items = json_items_of(array);
    struct token item;
    while (out->alias_count < ALIASES_MAX && json_items_next(&items, &item))
        read_address(reading, &item, out);
}

static void read_pod(struct reading *reading, struct kubernetes_object *out) {
    static const enum kubernetes_slot job_labels[] = {SLOT_JOBSET, SLOT_KUBEFLOW_JOB,
                                                      SLOT_BATCH_JOB, SLOT_JOB};
    out->node_name = take_name(reading, SLOT_NODE_NAME, false);
    out->phase = take_text(reading, SLOT_PHASE);
    out->status_reason = take_text(reading, SLOT_STATUS_REASON);
    out->status_message = take_text(reading, SLOT_STATUS_MESSAGE);
    out->deletion_ns = take_time(reading, SLOT_DELETED); // lies ahead: no moment that was seen
    see_time(reading, take_time(reading, SLOT_START_TIME));
    for (size_t i = 0; i < sizeof job_labels / sizeof *job_labels; i++)
        if (out->job_label.data == NULL)
            out->job_label = take_text(reading, job_labels[i]);
    out->has_gpu = any_has_gpu(&reading->slots[SLOT_CONTAINERS]) ||
                   any_has_gpu(&reading->slots[SLOT_INIT_CONTAINERS]);
    read_conditions(reading, out);
    struct slice address = take_text(reading, SLOT_HOST_IP);
    if (out->node_name.size > 0)
        add_alias(reading, address, out);
}

static uint64_t take_integer_time(struct reading *reading, enum kubernetes_slot slot) {
    const struct token *token = &reading->line[slot];
    static const char expected[] = "nanoseconds since 1970, an integer from 1 to 2^64 - 1";
    if (token->kind == TOKEN_NONE || token->kind == TOKEN_NULL || reading->category != DECODE_OK)
        return 0;
    if (!token_is_integer(token))
        refuse_type(reading, slot, token, expected);
    else if (token->kind == TOKEN_HUGE || (token->kind == TOKEN_INTEGER && token->integer <= 0))
        refuse_limit(reading, slot, token, expected);
    else
        return (uint64_t)token->integer;
    return 0;
}

static enum watch_type watch_of(const struct token *type) {
    if (type->kind != TOKEN_STRING)
        return WATCH_NONE;
    if (token_equals(type, SLICE("ADDED")))
        return WATCH_ADDED;
    if (token_equals(type, SLICE("MODIFIED")))
        return WATCH_MODIFIED;
    return token_equals(type, SLICE("DELETED")) ? WATCH_DELETED : WATCH_NONE;
}

// The kind, or false when nobody looks for it.
static bool kind_of(struct slice kind, enum kubernetes_kind *out) {
    *out = KUBERNETES_EVENT;
    if (slice_equal(kind, SLICE("Pod")))
        *out = KUBERNETES_POD;
    else if (slice_equal(kind, SLICE("Node")))
        *out = KUBERNETES_NODE;
    else
        return slice_equal(kind, SLICE("Event"));
    return true;
}

static enum decode_category set_event(struct reading *reading,
                                      const struct kubernetes_object *object, struct event *event) {
    struct slice node = object->kind == KUBERNETES_POD    ? object->node_name
                        : object->kind == KUBERNETES_NODE ? object->name
                                                          : object->host;
    bool kubelet = slice_equal(object->component, SLICE("kubelet"));
    if (object->kind == KUBERNETES_EVENT && !kubelet)
        node = (struct slice){NULL, 0};
    if (event->time_ns == 0)
        return fault_set(reading->fault, DECODE_MISSING_TIMESTAMP, SLICE("observed_time_ns"),
                         "the object has no timestamp, and when it was read is not known");
    event->node = STRING_NONE;
    if (node.size > 0 &&
        fault_intern(reading->fault, SLICE("node"), node, &event->node) != DECODE_OK)
        return DECODE_LIMIT;
    event->kind = EVENT_KUBERNETES;
    event->job = STRING_NONE;
    event->rank = RANK_NONE;
    event->kubernetes = object;
    reading->fault->category = DECODE_OK;
    return DECODE_OK;
}

// A file can be read long after what it tells of: what a line says of itself comes first, then the
// newest moment in the object, then when the input was read.
static uint64_t time_of_state(const struct reading *reading) {
    if (reading->said_ns != 0)
        return reading->said_ns;
    return reading->newest_ns != 0 ? reading->newest_ns : reading->input_ns;
}

static enum decode_category read_wanted(struct reading *reading, enum kubernetes_kind kind,
                                        struct event *event) {
    struct kubernetes_object *object = arena_zero(reading->arena, 1, sizeof *object);
    object->kind = kind;
    object->observed_ns = reading->said_ns != 0 ? reading->said_ns : reading->input_ns;
    if (reading->line[SLOT_OBJECT].kind == TOKEN_OBJECT)
        object->watch = watch_of(&reading->line[SLOT_TYPE]);
    object->name = take_name(reading, SLOT_NAME, kind != KUBERNETES_EVENT);
    object->namespace = take_name(reading, SLOT_NAMESPACE, false);
    object->uid = take_name(reading, SLOT_UID, false);
    see_time(reading, take_time(reading, SLOT_CREATED));
    if (kind == KUBERNETES_EVENT)
        read_event(reading, object);
    else if (kind == KUBERNETES_POD)
        read_pod(reading, object);
    else
        read_node(reading, object);
    event->time_ns = kind == KUBERNETES_EVENT ? object->event_ns : time_of_state(reading);
    event->timeless = kind != KUBERNETES_EVENT && reading->said_ns == 0 && reading->newest_ns == 0;
    if (reading->category != DECODE_OK)
        return reading->category;
    bool about_pod = slice_equal(object->object_kind, SLICE("Pod"));
    if (kind == KUBERNETES_EVENT && !about_pod)
        return kubernetes_read_stop(object, reading->forms, reading->arena, event, reading->fault);
    return set_event(reading, object, event);
}

static enum decode_category read_list(struct reading *reading, struct slice kind) {
    return fault_set(reading->fault, DECODE_WRONG_TYPE, SLICE("kind"),
                     "found %.*s, a list of objects; give what stands in `items` one by one "
                     "(kubectl: -o json | jq -c .items[])",
                     (int)(kind.size < 40 ? kind.size : 40), kind.data);
}

// The items of an API server's own lists do not say their kind: what only such an object has does.
static struct slice inferred_kind(const struct reading *reading) {
    if (reading->slots[SLOT_ABOUT_NAME].kind == TOKEN_STRING)
        return SLICE("Event");
    if (reading->slots[SLOT_CONTAINERS].kind == TOKEN_ARRAY)
        return SLICE("Pod");
    if (reading->slots[SLOT_NODE_INFO].kind == TOKEN_OBJECT)
        return SLICE("Node");
    return (struct slice){NULL, 0};
}

// A Pod or Node is an event whatever its state; what has gone wrong with it follows.
static enum decode_category read_state(struct reading *reading, enum kubernetes_kind kind,
                                       struct event *event) {
    enum decode_category category = read_wanted(reading, kind, event);
    if (category == DECODE_OK && kind != KUBERNETES_EVENT)
        kubernetes_walk_begin(reading->walk, kind == KUBERNETES_POD ? WALK_POD : WALK_NODE,
                              reading->slots, event->time_ns, reading->forms);
    return category;
}

// Nothing but what has gone wrong.
static enum decode_category read_job(struct reading *reading, struct event *event) {
    take_name(reading, SLOT_NAME, false);
    take_name(reading, SLOT_NAMESPACE, false);
    see_time(reading, take_time(reading, SLOT_CREATED));
    struct kubernetes_object conditions = {.kind = KUBERNETES_NODE};
    read_conditions(reading, &conditions);
    if (reading->category != DECODE_OK)
        return reading->category;
    event->time_ns = time_of_state(reading);
    kubernetes_walk_begin(reading->walk, WALK_JOB, reading->slots, event->time_ns, reading->forms);
    enum decode_category category =
        kubernetes_walk_next(reading->walk, reading->arena, event, reading->fault);
    return category == DECODE_END ? DECODE_NOTHING : category;
}

static enum decode_category read_object(struct reading *reading, struct event *event) {
    struct slice kind = take_text(reading, SLOT_KIND);
    enum kubernetes_kind wanted;
    if (reading->category != DECODE_OK)
        return reading->category;
    if (kind.size == 0)
        kind = inferred_kind(reading);
    if (kind.size == 0)
        return fault_set(reading->fault, DECODE_MISSING_FIELD, SLICE("kind"),
                         "not there; a Kubernetes object says its kind (\"Event\", \"Pod\", …)");
    if (reading->slots[SLOT_ITEMS].kind == TOKEN_ARRAY && kind.size >= 4 &&
        memcmp(kind.data + kind.size - 4, "List", 4) == 0)
        return read_list(reading, kind);
    if (kind_of(kind, &wanted))
        return read_state(reading, wanted, event);
    if (kubernetes_is_job(kind))
        return read_job(reading, event);
    const struct token *created = &reading->slots[SLOT_CREATED];
    if (created->kind == TOKEN_STRING)
        rfc3339_parse(token_decode(created, reading->arena), &reading->newest_ns, NULL);
    event->time_ns = time_of_state(reading);
    return DECODE_NOTHING;
}

static enum decode_category refuse_text(const struct reading *reading,
                                        const struct json_fault *fault) {
    if (fault->why != NULL)
        return fault_json(reading->fault, reading->record, fault);
    return fault_set(reading->fault, DECODE_NOT_OBJECT, SLICE(""),
                     "not a JSON object; a Kubernetes object or watch event is one");
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct kubernetes_state *state = memory;
    struct reading reading = {.record = record,
                              .arena = arena,
                              .fault = fault,
                              .walk = &state->walk,
                              .forms = state->forms,
                              .input_ns = state->observed_ns};
    struct json_fault json;
    state->walk.open = false;
    event->time_ns = 0;
    if (!json_shape_read_all(&kubernetes_line_shape, record, reading.line, &json))
        return refuse_text(&reading, &json);
    reading.said_ns = take_integer_time(&reading, SLOT_OBSERVED);
    if (reading.said_ns == 0)
        reading.said_ns = take_integer_time(&reading, SLOT_TIMESTAMP);
    if (reading.category != DECODE_OK)
        return reading.category;
    struct slice object = record;
    const struct token *inner = &reading.line[SLOT_OBJECT];
    if (inner->kind == TOKEN_OBJECT)
        object = token_slice(inner);
    else if (inner->kind != TOKEN_NONE && reading.line[SLOT_KIND].kind == TOKEN_NONE)
        return fault_type(fault, SLICE("object"), inner, "a Kubernetes object");
    if (!json_shape_read_all(&kubernetes_object_shape, object, reading.slots, &json))
        return refuse_text(&reading, &json);
    return read_object(&reading, event);
}

static void begin(void *memory, const struct decoder_input *input) {
    struct kubernetes_state *state = memory;
    state->observed_ns = input->observed_ns;
    state->forms = input->forms;
}

enum decode_category kubernetes_tagged(void *state, struct slice object, struct arena *arena,
                                       struct event *event, struct decode_fault *fault) {
    return decode(state, object, arena, event, fault);
}

enum decode_category kubernetes_next(void *memory, struct arena *arena, struct event *event,
                                     struct decode_fault *fault) {
    struct kubernetes_state *state = memory;
    event->lines = 0;
    return kubernetes_walk_next(&state->walk, arena, event, fault);
}

void kubernetes_finish(void *memory) {
    ((struct kubernetes_state *)memory)->walk.open = false;
}

const struct decoder_type decoder_kubernetes = {
    .name = "kubernetes",
    .state_size = sizeof(struct kubernetes_state),
    .begin = begin,
    .decode = decode,
    .next = kubernetes_next,
    .finish = kubernetes_finish,
};

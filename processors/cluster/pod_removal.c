// SPDX-License-Identifier: Apache-2.0
// Which pods were taken away, when, by whom and why?
//
// An object is read into what it tells (who, the cause, the moment); a row keeps the best witness
// of each cause, and of the taint manager its newest marks beside the newest cancellation. What
// stands is decided when it is read, so nothing depends on the order of the objects. 1.5 KiB a row,
// O(1) an object.
#include "processors/cluster/pod_removal.h"

#include "base/hash/hash.h"
#include "base/text/rfc3339.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/row_text.h"

enum { ROWS_PER_CHUNK = 16, KEY_SIZE = sizeof(uint32_t) + 2 * sizeof(uint64_t) };
_Static_assert(offsetof(struct pod_removal, named) == sizeof(struct row_head), "the key");
_Static_assert(offsetof(struct pod_removal, newest_ns) - offsetof(struct pod_removal, named) ==
                   KEY_SIZE,
               "the key has no gaps");

// What one object tells.
struct told {
    enum removal_cause cause;
    enum removal_source source;
    bool cancelled; // the mark is taken back
    uint64_t time_ns;
    bool whole_seconds;
    struct slice pod_uid, namespace, name, event_uid, note, starved_resource;
    struct slice node;
};

void removal_table_init(struct removal_table *table, const char *name, uint32_t max) {
    *table = (struct removal_table){.max = max};
    keyed_rows_init(&table->rows, name, sizeof(struct pod_removal), KEY_SIZE, ROWS_PER_CHUNK);
}

void removal_table_release(struct removal_table *table) {
    keyed_rows_release(&table->rows);
}

void removal_table_state(struct removal_table *table, struct state_list *list) {
    struct state_entry *entry = state_list_table(list, &table->rows.table);
    state_entry_string(entry, offsetof(struct pod_removal, node));
}

void removal_table_restored(struct removal_table *table) {
    keyed_rows_restored(&table->rows);
}

static bool begins_folded(struct slice text, const char *start) {
    size_t length = strlen(start);
    return text.size >= length && strncasecmp(text.data, start, length) == 0;
}

// "Preempted by pod UID on node NAME".
static struct slice node_of_note(struct slice note) {
    struct slice phrase = SLICE(" on node ");
    const char *at = note.size == 0 ? NULL : memmem(note.data, note.size, phrase.data, phrase.size);
    if (at == NULL)
        return (struct slice){NULL, 0};
    at += phrase.size;
    size_t size = 0, left = (size_t)(note.data + note.size - at);
    while (size < left && at[size] != ' ')
        size++;
    while (size > 0 && at[size - 1] == '.')
        size--;
    return (struct slice){at, size};
}

static bool read_event(const struct kubernetes_object *object, struct told *out) {
    if (!slice_equal(object->object_kind, SLICE("Pod")))
        return false;
    *out = (struct told){.source = REMOVAL_BY_EVENT,
                         .time_ns = object->event_ns,
                         .whole_seconds = object->whole_seconds,
                         .pod_uid = object->object_uid,
                         .namespace = object->object_namespace,
                         .name = object->object_name,
                         .event_uid = object->uid,
                         .starved_resource = object->starved_resource};
    if (slice_equal(object->reason, SLICE("Evicted"))) {
        out->cause = REMOVAL_EVICTED;
        out->note = object->message;
        // A controller's host is where the controller runs.
        if (object->component.size == 0 || slice_equal(object->component, SLICE("kubelet")))
            out->node = object->host;
        return true;
    }
    if (slice_equal(object->reason, SLICE("Preempted"))) {
        out->cause = REMOVAL_PREEMPTED;
        out->node = node_of_note(object->message);
        return true;
    }
    out->cause = REMOVAL_TAINT;
    out->cancelled = begins_folded(object->message, "Cancelling deletion");
    return slice_equal(object->reason, SLICE("TaintManagerEviction")) &&
           (out->cancelled || begins_folded(object->message, "Marking for deletion"));
}

static bool cause_of_reason(struct slice reason, enum removal_cause *cause) {
    static const struct {
        const char *reason;
        enum removal_cause cause;
    } reasons[] = {
        {"TerminationByKubelet", REMOVAL_EVICTED},    {"DeletionByTaintManager", REMOVAL_TAINT},
        {"PreemptionByScheduler", REMOVAL_PREEMPTED}, {"EvictionByEvictionAPI", REMOVAL_API},
        {"DeletionByPodGC", REMOVAL_COLLECTED},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        *cause = reasons[i].cause;
        if (slice_equal(reason, slice_of(reasons[i].reason)))
            return true;
    }
    return false;
}

// The kubelet also ends pods when their node shuts down or makes room for a critical pod: that is
// told by another status.reason.
static bool is_eviction(const struct kubernetes_object *object, struct slice message) {
    if (object->status_reason.size > 0)
        return slice_equal(object->status_reason, SLICE("Evicted"));
    return pressure_read(message, (struct slice){NULL, 0}) != 0;
}

static bool read_pod(const struct event *event, struct told *out) {
    const struct kubernetes_object *object = event->kubernetes;
    *out = (struct told){.pod_uid = object->uid,
                         .namespace = object->namespace,
                         .name = object->name,
                         .node = object->node_name};
    for (uint32_t i = 0; i < object->condition_count; i++) {
        const struct kubernetes_condition *condition = &object->conditions[i];
        if (!slice_equal(condition->type, SLICE("DisruptionTarget")) ||
            !slice_equal(condition->status, SLICE("True")) || condition->transition_ns == 0 ||
            !cause_of_reason(condition->reason, &out->cause))
            continue;
        out->note = condition->message;
        if (out->cause == REMOVAL_EVICTED && !is_eviction(object, condition->message))
            continue;
        out->source = REMOVAL_BY_CONDITION;
        out->time_ns = condition->transition_ns;
        out->whole_seconds = out->time_ns % UINT64_C(1000000000) == 0;
        return true;
    }
    if (!slice_equal(object->status_reason, SLICE("Evicted")))
        return false;
    // Without the condition nothing says when: the object was read afterwards.
    out->cause = REMOVAL_EVICTED;
    out->source = REMOVAL_BY_STATUS;
    out->note = object->status_message;
    out->time_ns = event->time_ns;
    out->whole_seconds = true;
    return true;
}

static bool read_told(const struct event *event, struct told *out) {
    const struct kubernetes_object *object = event->kubernetes;
    *out = (struct told){0};
    if (object->watch == WATCH_DELETED)
        return false;
    bool found = object->kind == KUBERNETES_EVENT
                     ? read_event(object, out)
                     : object->kind == KUBERNETES_POD && read_pod(event, out);
    return found && out->time_ns != 0 && out->name.size > 0;
}

struct removal_key {
    uint32_t named;
    uint64_t halves[2];
} __attribute__((packed));

static struct removal_key key_of(const struct told *told) {
    struct removal_key key = {.named = told->pod_uid.size == 0};
    struct slice first = told->pod_uid, second = {NULL, 0};
    if (key.named != 0) {
        first = told->namespace;
        second = told->name;
    }
    const uint64_t starts[] = {HASH_START, UINT64_C(0x9ae16a3b2f90404f)};
    for (int i = 0; i < 2; i++) {
        uint64_t hash = hash_more(hash_more(starts[i], first.data, first.size), "", 1);
        key.halves[i] = hash_more(hash, second.data, second.size);
    }
    return key;
}

static struct pod_removal *row_of(struct removal_table *table, const struct told *told,
                                  struct arena *scratch) {
    struct removal_key key = key_of(told);
    struct pod_removal *row = keyed_rows_find(&table->rows, &key);
    if (row != NULL)
        return row;
    table->evicted += row_bound_make_room(&table->rows, table->max,
                                          offsetof(struct pod_removal, newest_ns), scratch);
    row = keyed_rows_add(&table->rows, &key);
    row_text_put(row->uid, sizeof row->uid, told->pod_uid);
    row_text_put(row->namespace, sizeof row->namespace, told->namespace);
    row_text_put(row->name, sizeof row->name, told->name);
    return row;
}

static int compare_witnesses(const struct removal_witness *a, const struct removal_witness *b) {
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return strcmp(a->uid, b->uid);
}

// Kept in order of time; of more than fit, the oldest goes.
static void add_mark(struct pod_removal *row, const struct removal_witness *mark) {
    uint32_t at = 0;
    while (at < row->mark_count && compare_witnesses(&row->marks[at], mark) < 0)
        at++;
    if (at < row->mark_count && compare_witnesses(&row->marks[at], mark) == 0)
        return;
    if (row->mark_count == REMOVAL_MARKS_MAX) {
        if (at == 0)
            return;
        memmove(&row->marks[0], &row->marks[1], (at - 1) * sizeof *row->marks);
        row->marks[at - 1] = *mark;
        return;
    }
    memmove(&row->marks[at + 1], &row->marks[at], (row->mark_count - at) * sizeof *row->marks);
    row->marks[at] = *mark;
    row->mark_count++;
}

// What the kubelet wrote: from the best witness that says what was short, else from the best.
static void add_note(struct pod_removal *row, const struct told *told) {
    uint32_t pressure = pressure_read(told->note, told->starved_resource);
    char note[REMOVAL_NOTE_MAX];
    row_text_put(note, sizeof note, told->note);
    int order = (pressure == 0) - (row->pressure == 0);
    if (row->note_ns == 0)
        order = -1;
    if (order == 0)
        order = (told->source > row->note_source) - (told->source < row->note_source);
    if (order == 0)
        order = (told->time_ns > row->note_ns) - (told->time_ns < row->note_ns);
    if (order == 0)
        order = strcmp(note, row->note);
    if (order == 0)
        order = pressure < row->pressure ? -1 : 1;
    if (order > 0)
        return;
    row->pressure = pressure;
    row->note_source = told->source;
    row->note_ns = told->time_ns;
    memcpy(row->note, note, sizeof note);
}

static void add_node(struct pod_removal *row, struct slice node) {
    if (node.size == 0)
        return;
    string_id id = intern(node);
    // One pod, one node; should two be named, the lesser one, whoever came first.
    if (id != STRING_REFUSED &&
        (row->node == STRING_NONE || slice_compare(intern_slice(id), intern_slice(row->node)) < 0))
        row->node = id;
}

void removal_table_take(struct removal_table *table, const struct event *event,
                        struct arena *scratch) {
    struct told told;
    if (!read_told(event, &told))
        return;
    struct pod_removal *row = row_of(table, &told, scratch);
    if (told.time_ns > row->newest_ns)
        row->newest_ns = told.time_ns;
    if (told.cancelled) {
        if (told.time_ns > row->cancelled_ns)
            row->cancelled_ns = told.time_ns;
        return;
    }
    add_node(row, told.node);
    struct removal_witness witness = {.time_ns = told.time_ns,
                                      .source = (uint8_t)told.source,
                                      .whole_seconds = told.whole_seconds};
    row_text_put(witness.uid, sizeof witness.uid, told.event_uid);
    if (told.cause == REMOVAL_TAINT && told.source == REMOVAL_BY_EVENT) {
        add_mark(row, &witness);
        return;
    }
    if (told.cause == REMOVAL_EVICTED)
        add_note(row, &told);
    struct removal_witness *known = &row->witnesses[told.cause];
    if (known->time_ns == 0 || compare_witnesses(&witness, known) < 0)
        *known = witness;
}

struct pod_removal *removal_table_next(const struct removal_table *table, uint32_t *at) {
    return keyed_rows_next(&table->rows, at);
}

// The first mark that no cancellation follows; at the same moment the cancellation came after it.
static const struct removal_witness *standing_mark(const struct pod_removal *row) {
    for (uint32_t i = 0; i < row->mark_count; i++)
        if (row->marks[i].time_ns > row->cancelled_ns)
            return &row->marks[i];
    return NULL;
}

static const struct removal_witness *witness_of(const struct pod_removal *row, uint32_t cause) {
    const struct removal_witness *mark = cause == REMOVAL_TAINT ? standing_mark(row) : NULL;
    if (mark != NULL)
        return mark;
    return row->witnesses[cause].time_ns != 0 ? &row->witnesses[cause] : NULL;
}

bool pod_removal_read(struct pod_removal *row, struct removal *removal) {
    uint32_t cause = 0;
    while (cause < REMOVAL_CAUSE_COUNT && witness_of(row, cause) == NULL)
        cause++;
    bool stands = cause < REMOVAL_CAUSE_COUNT;
    if (!stands && row->mark_count == 0)
        return false;
    cause = stands ? cause : REMOVAL_TAINT;
    const struct removal_witness *witness =
        stands ? witness_of(row, cause) : &row->marks[row->mark_count - 1];
    bool evicted = cause == REMOVAL_EVICTED;
    *removal = (struct removal){
        .row = row,
        .stands = stands,
        .cause = (enum removal_cause)cause,
        .source = (enum removal_source)witness->source,
        .time_ns = witness->time_ns,
        .whole_seconds = witness->whole_seconds != 0,
        .pressure = evicted ? row->pressure : 0,
        .node = row->node,
        .uid = slice_of(row->uid),
        .namespace = slice_of(row->namespace),
        .name = slice_of(row->name),
        .event_uid = slice_of(witness->uid),
        .note = slice_of(evicted ? row->note : ""),
    };
    return true;
}

void removal_locate(struct removal *removal, const struct pod_map *map, struct pod_place *place) {
    pod_map_find(map, removal->uid, removal->namespace, removal->name, place);
    if (removal->node == STRING_NONE)
        removal->node = place->node;
}

int removal_compare(const void *a, const void *b) {
    const struct removal *first = a, *second = b;
    if (first->time_ns != second->time_ns)
        return first->time_ns < second->time_ns ? -1 : 1;
    int order = slice_compare(first->namespace, second->namespace);
    if (order == 0)
        order = slice_compare(first->name, second->name);
    if (order == 0)
        order = slice_compare(first->event_uid, second->event_uid);
    return order != 0 ? order : slice_compare(first->uid, second->uid);
}

struct slice removal_pod_name(const struct removal *removal, struct arena *arena) {
    if (removal->namespace.size == 0)
        return removal->name;
    return slice_of(arena_format(arena, "%s/%s", removal->namespace.data, removal->name.data));
}

struct slice removal_evidence_uid(const struct removal *removal, struct arena *arena) {
    if (removal->event_uid.size > 0)
        return slice_of(arena_format(arena, "k8s-event:%s", removal->event_uid.data));
    const char *pod = removal_pod_name(removal, arena).data;
    char time[RFC3339_TEXT_MAX];
    rfc3339_format(removal->time_ns, time);
    // An Event without a uid: it is still told by its moment.
    if (removal->source == REMOVAL_BY_EVENT)
        return slice_of(arena_format(arena, "k8s-event:%s:%s", pod, time));
    if (removal->source == REMOVAL_BY_CONDITION)
        return slice_of(arena_format(arena, "pod-condition:%s:DisruptionTarget:%s", pod, time));
    return slice_of(
        arena_format(arena, "k8s-pod:%s", removal->uid.size > 0 ? removal->uid.data : pod));
}

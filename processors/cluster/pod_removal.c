// SPDX-License-Identifier: Apache-2.0
// Reads what objects say of pods that were taken away, and keeps the best witnesses.
//
// An object is read into what it tells (who, the cause, the moment); a row keeps the best witness
// of each cause, and of the taint manager its newest marks beside the newest cancellation. What
// stands is decided when it is read, so nothing depends on the order of the objects. 1.5 KiB a row,
// O(1) an object.
#include "processors/cluster/pod_removal.h"

#include "base/hash/hash.h"
#include "base/sort.h"
#include "base/table/table.h"
#include "base/text/rfc3339.h"
#include "processors/cluster/compare.h"
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

const struct row_type REMOVAL_ROWS = {
    .size = sizeof(struct pod_removal),
    .key_size = KEY_SIZE,
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct pod_removal, node)},
};

static bool begins_folded(struct slice text, const char *start) {
    size_t length = strlen(start);
    return text.size >= length && strncasecmp(text.data, start, length) == 0;
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
        // A controller that evicts (Karpenter, a descheduler) says nothing of what the node was
        // short of, and its host is where the controller runs.
        bool by_kubelet =
            object->component.size == 0 || slice_equal(object->component, SLICE("kubelet"));
        bool is_short = pressure_read(object->message, object->starved_resource) != 0;
        out->cause = by_kubelet || is_short ? REMOVAL_EVICTED : REMOVAL_API;
        if (by_kubelet)
            out->node = object->host;
        return true;
    }
    if (slice_equal(object->reason, SLICE("Preempted"))) {
        out->cause = REMOVAL_PREEMPTED;
        out->node = object->said_node.size > 0 ? object->said_node : kubernetes_said_node(object);
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

// One uid, one name; should two be named, the lesser one, whoever came first.
static void take_name(struct pod_removal *row, const struct told *told) {
    char namespace[REMOVAL_NAMESPACE_MAX], name[REMOVAL_NAME_MAX];
    row_text_put(namespace, sizeof namespace, told->namespace);
    row_text_put(name, sizeof name, told->name);
    int order = strcmp(namespace, row->namespace);
    if (row->newest_ns != 0 && (order > 0 || (order == 0 && strcmp(name, row->name) >= 0)))
        return;
    memcpy(row->namespace, namespace, sizeof namespace);
    memcpy(row->name, name, sizeof name);
}

static struct pod_removal *row_of(struct removal_table *table, const struct told *told,
                                  struct arena *scratch) {
    struct removal_key key = key_of(told);
    struct pod_removal *row = row_bound_take(&table->rows, &table->bound, &key,
                                             offsetof(struct pod_removal, newest_ns), scratch);
    if (row->newest_ns == 0)
        row_text_put(row->uid, sizeof row->uid, told->pod_uid);
    take_name(row, told);
    return row;
}

static int compare_witnesses(const struct removal_witness *a, const struct removal_witness *b) {
    int order = COMPARE_KEYS(COMPARE(a->source, b->source), COMPARE(a->time_ns, b->time_ns));
    return order != 0 ? order : strcmp(a->uid, b->uid);
}

// Kept in order of time; of more than fit, the oldest goes.
static void add_mark(struct pod_removal *row, const struct removal_witness *mark) {
    assert(row->mark_count <= REMOVAL_MARKS_MAX);
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
    row_text_say(note, sizeof note, told->note);
    int order = -1;
    if (row->note_ns != 0)
        order = COMPARE_KEYS(COMPARE(pressure == 0, row->pressure == 0),
                             COMPARE(told->source, row->note_source),
                             COMPARE(told->time_ns, row->note_ns));
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
    assert(event->kind == EVENT_KUBERNETES && table->bound.max > 0);
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
    if (told.cause == REMOVAL_EVICTED ||
        (told.cause == REMOVAL_API && told.source == REMOVAL_BY_EVENT))
        add_note(row, &told);
    struct removal_witness *known = &row->witnesses[told.cause];
    if (known->time_ns == 0 || compare_witnesses(&witness, known) < 0)
        *known = witness;
}

// The first mark that no cancellation follows; at the same moment the cancellation came after it.
static const struct removal_witness *standing_mark(const struct pod_removal *row) {
    for (uint32_t i = 0; i < row->mark_count; i++)
        if (row->marks[i].time_ns > row->cancelled_ns)
            return &row->marks[i];
    return NULL;
}

static const struct removal_witness *witness_of(const struct pod_removal *row, uint32_t cause) {
    assert(cause < REMOVAL_CAUSE_COUNT);
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
    if (!stands && row->mark_count == 0 && row->judged == 0)
        return false;
    cause = stands ? cause : REMOVAL_TAINT;
    static const struct removal_witness NOTHING = {.source = REMOVAL_BY_EVENT};
    const struct removal_witness *witness = stands                ? witness_of(row, cause)
                                            : row->mark_count > 0 ? &row->marks[row->mark_count - 1]
                                                                  : &NOTHING;
    bool evicted = cause == REMOVAL_EVICTED;
    bool by_controller = cause == REMOVAL_API && witness->source == REMOVAL_BY_EVENT;
    *removal = (struct removal){
        .row = row,
        .stands = stands,
        .moved = !stands && row->mark_count == 0,
        .cause = (enum removal_cause)cause,
        .source = (enum removal_source)witness->source,
        .time_ns = witness->time_ns != 0 ? witness->time_ns : row->newest_ns,
        .whole_seconds = witness->whole_seconds != 0,
        .pressure = evicted ? row->pressure : 0,
        .node = row->node,
        .uid = slice_of(row->uid),
        .namespace = slice_of(row->namespace),
        .name = slice_of(row->name),
        .event_uid = slice_of(witness->uid),
        .note = slice_of(evicted || by_controller ? row->note : ""),
    };
    return true;
}

void removal_locate(struct removal *removal, const struct pod_map *map, struct pod_place *place) {
    assert(removal->row != NULL);
    pod_map_find(map, removal->uid, removal->namespace, removal->name, place);
    if (removal->node == STRING_NONE)
        removal->node = place->node;
}

// -- Rows of one pod -----------------------------------------------------------------------------

// The taint manager's events hold no uid of the pod, the Pod's condition does: what is told so near
// in time of one name is one removal.
#define SAME_REMOVAL_NS (UINT64_C(300) * 1000000000)

static int compare_pods(const struct pod_removal *a, const struct pod_removal *b) {
    int order = strcmp(a->namespace, b->namespace);
    return order != 0 ? order : strcmp(a->name, b->name);
}

static int compare_rows(const void *left, const void *right) {
    const struct pod_removal *a = *(struct pod_removal *const *)left;
    const struct pod_removal *b = *(struct pod_removal *const *)right;
    int order = compare_pods(a, b);
    return order != 0 ? order : strcmp(a->uid, b->uid);
}

struct owner_list {
    struct pod_removal **items; // with a uid, by name and uid
    uint32_t count;
};

static uint64_t apart(const struct pod_removal *row, uint64_t time_ns) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < REMOVAL_CAUSE_COUNT + row->mark_count; i++) {
        uint64_t told_ns = i < REMOVAL_CAUSE_COUNT ? row->witnesses[i].time_ns
                                                   : row->marks[i - REMOVAL_CAUSE_COUNT].time_ns;
        uint64_t gap = told_ns > time_ns ? told_ns - time_ns : time_ns - told_ns;
        if (told_ns != 0 && gap < least)
            least = gap;
    }
    return least;
}

// The row with a uid that this was told of, NULL: none.
static struct pod_removal *find_owner(const struct owner_list *list, const struct pod_removal *row,
                                      uint64_t time_ns) {
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_pods(list->items[middle], row) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct pod_removal *best = NULL;
    uint64_t least = SAME_REMOVAL_NS + 1;
    for (; low < list->count && compare_pods(list->items[low], row) == 0; low++) {
        uint64_t gap = apart(list->items[low], time_ns);
        if (gap >= least)
            continue;
        least = gap;
        best = list->items[low];
    }
    return best;
}

static void join_row(struct pod_removal *owner, const struct pod_removal *row) {
    if (row->newest_ns > owner->newest_ns)
        owner->newest_ns = row->newest_ns;
    if (row->cancelled_ns > owner->cancelled_ns)
        owner->cancelled_ns = row->cancelled_ns;
    if (row->node != STRING_NONE)
        add_node(owner, intern_slice(row->node));
    if (row->note_ns != 0 && owner->note_ns == 0) {
        owner->note_ns = row->note_ns;
        owner->note_source = row->note_source;
        owner->pressure = row->pressure;
        memcpy(owner->note, row->note, sizeof owner->note);
    }
}

// Hands what is told by name alone over to the rows with a uid.
static void hand_over(const struct owner_list *list, struct pod_removal *row) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < row->mark_count; i++) {
        struct pod_removal *owner = find_owner(list, row, row->marks[i].time_ns);
        if (owner == NULL) {
            row->marks[kept++] = row->marks[i];
            continue;
        }
        add_mark(owner, &row->marks[i]);
        join_row(owner, row);
    }
    row->mark_count = kept;
    for (uint32_t cause = 0; cause < REMOVAL_CAUSE_COUNT; cause++) {
        struct removal_witness *witness = &row->witnesses[cause];
        struct pod_removal *owner =
            witness->time_ns == 0 ? NULL : find_owner(list, row, witness->time_ns);
        if (owner == NULL)
            continue;
        struct removal_witness *known = &owner->witnesses[cause];
        if (known->time_ns == 0 || compare_witnesses(witness, known) < 0)
            *known = *witness;
        join_row(owner, row);
        witness->time_ns = 0;
    }
}

static bool is_empty(const struct pod_removal *row) {
    for (uint32_t cause = 0; cause < REMOVAL_CAUSE_COUNT; cause++)
        if (row->witnesses[cause].time_ns != 0)
            return false;
    return row->mark_count == 0;
}

static void unite(struct removal_table *table, struct arena *arena) {
    struct pod_removal *row;
    size_t room = keyed_rows_count(&table->rows) + 1;
    struct owner_list list = {arena_take(arena, room * sizeof *list.items), 0};
    struct owner_list named = {arena_take(arena, room * sizeof *named.items), 0};
    for (uint32_t at = 0; (row = keyed_rows_next(&table->rows, &at)) != NULL;) {
        struct owner_list *into = row->named != 0 ? &named : &list;
        into->items[into->count++] = row;
    }
    if (named.count == 0 || list.count == 0)
        return;
    sort_stable(list.items, list.count, sizeof *list.items, arena, compare_rows);
    for (uint32_t i = 0; i < named.count; i++) {
        row = named.items[i];
        hand_over(&list, row);
        // What its owner said of it is to be taken back first. A cancellation stays: marks may
        // still come.
        if (is_empty(row) && row->judged == 0 && row->cancelled_ns == 0)
            keyed_rows_remove(&table->rows, row);
    }
}

static int compare_removals(const void *a, const void *b) {
    const struct removal *first = a, *second = b;
    int order = COMPARE(first->time_ns, second->time_ns);
    order = order != 0 ? order : slice_compare(first->namespace, second->namespace);
    order = order != 0 ? order : slice_compare(first->name, second->name);
    order = order != 0 ? order : slice_compare(first->event_uid, second->event_uid);
    return order != 0 ? order : slice_compare(first->uid, second->uid);
}

struct removal *removal_table_sorted(struct removal_table *table, uint64_t now_ns,
                                     struct arena *arena, uint32_t *count) {
    struct pod_removal *row;
    unite(table, arena);
    struct removal *list = arena_take(arena, (keyed_rows_count(&table->rows) + 1) * sizeof *list);
    *count = 0;
    for (uint32_t at = 0; (row = keyed_rows_next(&table->rows, &at)) != NULL;)
        if (pod_removal_read(row, &list[*count]) && list[*count].time_ns <= now_ns)
            ++*count;
    sort_stable(list, *count, sizeof *list, arena, compare_removals);
    return list;
}

const char *removal_pod_name(const struct removal *removal, struct arena *arena) {
    if (removal->namespace.size == 0)
        return removal->name.data;
    return arena_format(arena, "%s/%s", removal->namespace.data, removal->name.data);
}

const char *removal_evidence_uid(const struct removal *removal, struct arena *arena) {
    if (removal->event_uid.size > 0)
        return arena_format(arena, "k8s-event:%s", removal->event_uid.data);
    const char *pod = removal_pod_name(removal, arena);
    char time[RFC3339_TEXT_MAX];
    rfc3339_format(removal->time_ns, time);
    // An Event without a uid: it is still told by its moment.
    if (removal->source == REMOVAL_BY_EVENT)
        return arena_format(arena, "k8s-event:%s:%s", pod, time);
    if (removal->source == REMOVAL_BY_CONDITION)
        return arena_format(arena, "pod-condition:%s:DisruptionTarget:%s", pod, time);
    return arena_format(arena, "k8s-pod:%s", removal->uid.size > 0 ? removal->uid.data : pod);
}

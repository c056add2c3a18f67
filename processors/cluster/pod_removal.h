// SPDX-License-Identifier: Apache-2.0
// The pods that were removed from their nodes: when, by whom and why.
//
// The events of the taint manager name no uid: at a reading what was told by name alone goes to the
// row with a uid of that name that was told of within 5 min.
//
// What counts: the kubelet's event Evicted; the taint manager's "Marking for deletion", unless it
// is cancelled afterwards; Preempted; a Pod's condition DisruptionTarget that is True; a Pod's
// status.reason Evicted. All that is told of one pod (by its uid, else by namespace and name) is
// one row, so that repeats, series, the event and the Pod's status count once. Objects of watch
// type DELETED say nothing new.
//
// Rows are flat and do not depend on the order of the objects: of several who tell of the same
// thing an event is preferred to a condition and that to a status, then the earliest. When the
// bound is reached, the oldest removals go, a sixteenth at a time. Not thread-safe.
//
//     removal_table_take(&table, event, batch->arena);             // for each EVENT_KUBERNETES
//     ...
//     struct removal *list = removal_table_sorted(&table, now_ns, batch->arena, &count);
#pragma once

#include "base/arena.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/pod_map.h"
#include "processors/cluster/row_bound.h"

enum removal_cause {   // in the order of preference when a pod was taken away for several
    REMOVAL_EVICTED,   // by the kubelet
    REMOVAL_TAINT,     // by the taint manager, which also takes the pods off lost nodes
    REMOVAL_PREEMPTED, // by the scheduler, for a pod of higher priority
    REMOVAL_API,       // by the eviction API: drain, autoscaler, an operator's hand
    REMOVAL_COLLECTED, // by the pod garbage collector: its node is gone
    REMOVAL_CAUSE_COUNT
};

// What a kubelet's text says of why: bits, since a text may name several. 0: nothing is said.
enum {
    PRESSURE_MEMORY = 1 << 0, // MemoryPressure
    PRESSURE_DISK = 1 << 1,   // ephemeral storage: DiskPressure
    PRESSURE_INODES = 1 << 2, // DiskPressure
    PRESSURE_PIDS = 1 << 3,   // PIDPressure
    PRESSURE_LIMIT = 1 << 4,  // the pod passed a storage limit of its own: no pressure of the node
};
// What the text and the annotation starved_resource say; letters in any case.
uint32_t pressure_read(struct slice text, struct slice starved_resource);

enum removal_source { REMOVAL_BY_EVENT, REMOVAL_BY_CONDITION, REMOVAL_BY_STATUS };

enum {
    REMOVAL_UID_MAX = 64,
    REMOVAL_NAMESPACE_MAX = 64,
    REMOVAL_NAME_MAX = 256,
    REMOVAL_NOTE_MAX = 400,
    REMOVAL_MARKS_MAX = 4,
    REMOVALS_MAX_DEFAULT = 8192,
};

struct removal_witness {
    uint64_t time_ns; // 0: there is none
    uint8_t source;   // enum removal_source
    uint8_t whole_seconds;
    uint16_t pressure;
    char uid[REMOVAL_UID_MAX]; // of the Event object, ends with a zero; "" for the others
};

// A row; use pod_removal_read.
struct pod_removal {
    struct row_head head;
    uint32_t named; // the key is namespace and name
    uint64_t key[2];
    uint64_t newest_ns; // of all that was told
    uint64_t cancelled_ns;
    uint64_t note_ns; // of the witness that `note` is from
    uint64_t judged;  // the owner's: what it knew when it judged this row last
    string_id node;   // that a kubelet or the Pod named
    uint32_t pressure;
    uint32_t note_source;
    uint32_t mark_count;
    struct removal_witness marks[REMOVAL_MARKS_MAX]; // REMOVAL_TAINT, the newest ones by time
    struct removal_witness witnesses[REMOVAL_CAUSE_COUNT];
    char uid[REMOVAL_UID_MAX];
    char namespace[REMOVAL_NAMESPACE_MAX];
    char name[REMOVAL_NAME_MAX];
    char note[REMOVAL_NOTE_MAX]; // what the kubelet wrote, shortened
};

extern const struct row_type REMOVAL_ROWS;

// Its table is the owner's state row; `bound.max` is the owner's to set.
struct removal_table {
    struct keyed_rows rows; // REMOVAL_ROWS
    struct row_bound bound;
};

// Takes what the event (kind EVENT_KUBERNETES) says of a pod's removal, if anything. O(1).
void removal_table_take(struct removal_table *table, const struct event *event,
                        struct arena *scratch);
// One removal. The texts lie in the row.
struct removal {
    struct pod_removal *row;
    bool stands; // false: the pod was only marked for deletion, and that was cancelled later
    bool moved;  // it does not stand: what was judged of it went to the row with the pod's uid
    enum removal_cause cause;
    enum removal_source source;
    uint64_t time_ns;
    bool whole_seconds; // time_ns has no finer digits: allow a second
    uint32_t pressure;  // of REMOVAL_EVICTED
    string_id node;     // that the removal itself names; STRING_NONE: ask removal_locate
    struct slice uid, namespace, name; // of the pod; empty: not said
    struct slice event_uid;            // of the Event object; empty unless source is BY_EVENT
    struct slice note; // what the kubelet or the controller wrote, shortened; empty: nothing
};

// False when there is only a cancellation in it. Look at `stands` before anything else.
bool pod_removal_read(struct pod_removal *row, struct removal *removal);
// Sets `node` from the map when the removal names none, and says what else the map knows.
void removal_locate(struct removal *removal, const struct pod_map *map, struct pod_place *place);
// Those up to `now_ns`, by time, namespace and name, uid of the event, uid of the pod; in the
// arena.
struct removal *removal_table_sorted(struct removal_table *table, uint64_t now_ns,
                                     struct arena *arena, uint32_t *count);
// What evidence of it is called: "k8s-event:UID", "pod-condition:NAMESPACE/NAME:DisruptionTarget:
// TIME" or "k8s-pod:UID" (without a uid NAMESPACE/NAME). Text in the arena.
const char *removal_evidence_uid(const struct removal *removal, struct arena *arena);
// "train/worker-0", text in the arena.
const char *removal_pod_name(const struct removal *removal, struct arena *arena);

// SPDX-License-Identifier: Apache-2.0
// What is told of how processes of a job end, and where they run.
//
// A note is a flat row: one line of a launcher, a kernel, a rank's log, a container or Slurm that
// speaks of an end. A place is a process that is known by its node and pid, with its rank. Both are
// bounded; when there are too many, the oldest go. O(1) an event; nothing is concluded here.
#pragma once

#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/gpu_names.h"
#include "processors/cluster/pod_map.h"
#include "processors/cluster/progress_log.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/xid_log.h"

enum { NOTE_TYPE_MAX = 96, NOTE_TEXT_MAX = 640, NOTE_REASON_MAX = 48, NOTE_RANGES_MAX = 8 };

enum note_flag {
    NOTE_TIMELESS = 1 << 0, // its time is that of something else: note_time_of
    NOTE_VICTIM = 1 << 1,   // it follows from another's end
    NOTE_SUMMARY_FIRST = 1 << 2,
    NOTE_TIME_OF = 3 << 3,    // of NOTE_TIMELESS: enum time_of
    NOTE_WROTE_LAST = 1 << 5, // a launcher's: `text` is what the process wrote last
    NOTE_ONE_NODE = 1 << 6,   // of a layout: the job runs on one node
};
enum { NOTE_TIME_OF_SHIFT = 3 };

struct exit_note_key {
    string_id source;
    uint32_t position_high, position_low;
    uint32_t kind; // enum observation_kind
    uint32_t what; // of what a line says, which may tell of several ends; 0: of an object
};

// Tasks of Slurm, both ends included.
struct task_range {
    int32_t first, last;
};

struct exit_note {
    struct row_head head;
    struct exit_note_key key;
    uint64_t time_ns;
    uint64_t slack_ns; // it happened in [time_ns, time_ns + slack_ns]
    int64_t pid;       // -1: not said
    string_id job, node;
    string_id unit;          // "NAMESPACE/NAME" of a pod
    struct pod_key unit_uid; // of the pod; 0: not said
    uint64_t container;      // hash of the container's id; 0: not said
    uint32_t range_count;    // of a list of tasks
    struct task_range ranges[NOTE_RANGES_MAX];
    int32_t rank, local_rank, task;
    int32_t signal, exit_code, attempt; // -1: not said
    uint32_t flags;
    uint16_t type_size, text_size, reason_size;
    char type[NOTE_TYPE_MAX]; // of an exception
    char text[NOTE_TEXT_MAX];
    char reason[NOTE_REASON_MAX];
};

struct exit_place_key {
    string_id node, job; // jobs follow one another on a node, and not all say pids
    uint32_t pid_high, pid_low;
    int32_t rank;
};

enum place_fact { PLACE_LOCAL_RANK, PLACE_UNIT, PLACE_UUID, PLACE_GPU, PLACE_FACTS };

struct exit_place {
    struct row_head head;
    struct exit_place_key key;
    int32_t local_rank;
    uint64_t time_ns; // when it was first told of; 0: nobody wrote when
    uint64_t gpu;     // PCI_NONE: not known, it is `uuid`'s
    string_id unit, uuid;
    uint64_t said_ns[PLACE_FACTS]; // of the words that these are from
};

enum { RECENT_PLACES = 1024 };

struct exit_notes {
    struct keyed_rows notes;  // EXIT_NOTE_ROWS
    struct keyed_rows places; // EXIT_PLACE_ROWS
    struct row_bound note_bound, place_bound;
    struct pod_map pods;
    struct xid_log xids;
    struct gpu_names gpus;
    struct progress_log progress;
    // Hashes of places that were told of last, and since when: most telemetry says what is known.
    struct recent_place {
        uint64_t hash, time_ns;
    } recent[RECENT_PLACES];
};

extern const struct row_type EXIT_NOTE_ROWS, EXIT_PLACE_ROWS;

// The kinds of observations (enum observation_kind) that are kept, ended by OBSERVATION_NONE.
extern const uint8_t EXIT_NOTE_KINDS[];
void exit_notes_take(struct exit_notes *notes, const struct event *event, struct arena *scratch);
// By all that they say and where; 0: nothing tells them apart.
int exit_notes_compare(const struct exit_note *a, const struct exit_note *b);

static inline enum observation_kind note_kind(const struct exit_note *note) {
    return (enum observation_kind)note->key.kind;
}
static inline uint64_t note_position(const struct exit_note *note) {
    return (uint64_t)note->key.position_high << 32 | note->key.position_low;
}
static inline struct slice note_type(const struct exit_note *note) {
    return (struct slice){note->type, note->type_size};
}
static inline struct slice note_text(const struct exit_note *note) {
    return (struct slice){note->text, note->text_size};
}
static inline struct slice note_reason(const struct exit_note *note) {
    return (struct slice){note->reason, note->reason_size};
}
static inline bool note_has_unit_uid(const struct exit_note *note) {
    static const struct pod_key NONE;
    return memcmp(&note->unit_uid, &NONE, sizeof NONE) != 0;
}
// Whether the line says in which container it happened.
static inline bool note_is_contained(const struct exit_note *note) {
    return note->container != 0 || note_has_unit_uid(note);
}
static inline enum time_of note_time_of(const struct exit_note *note) {
    return (enum time_of)((note->flags & NOTE_TIME_OF) >> NOTE_TIME_OF_SHIFT);
}
static inline bool note_is(const struct exit_note *note, enum note_flag flag) {
    return (note->flags & (uint32_t)flag) != 0;
}
// Somebody says why, in words; what a process wrote last only goes with its code.
static inline bool note_has_words(const struct exit_note *note) {
    return !note_is(note, NOTE_WROTE_LAST) && (note->type_size > 0 || note->text_size > 0);
}
// The others waited for it and say so, which is more than that they lost it.
static inline bool note_is_missing(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_PEER_LOST && note->reason_size > 0;
}
// A scheduler or a launcher lost the node.
static inline bool note_is_node_loss(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_SLURM_NODE_FAILURE ||
           note_kind(note) == OBSERVATION_NODE_LOST;
}
// A scheduler, or somebody by way of a launcher, stopped the whole job.
static inline bool note_is_job_stop(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_SLURM_CANCELLED ||
           note_kind(note) == OBSERVATION_JOB_STOPPED;
}
static inline int64_t place_pid(const struct exit_place *place) {
    return (int64_t)((uint64_t)place->key.pid_high << 32 | place->key.pid_low);
}

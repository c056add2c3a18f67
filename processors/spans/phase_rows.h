// SPDX-License-Identifier: Apache-2.0
// Rows of training phases as spans: ranks are workers, the n-th time that each rank enters a phase
// is one span (an opening), one visit of a rank is one task (docs/spans.md, "Training telemetry").
#pragma once

#include "pipeline/model/batch.h"
#include "processors/spans/forest.h"

struct span_phases {
    struct span_forest *forest;
    struct table waiting;       // boundaries
    struct keyed_rows jobs;     // ranks known, by job
    struct keyed_rows labels;   // of a job
    struct keyed_rows ranks;    // of a label
    struct keyed_rows openings; // of a label
    struct table visits;        // of an opening
    struct arena scratch;       // of one boundary
    struct arena order;         // of one evaluation
    int64_t threads;            // of a rank
    uint32_t spans_kept;        // of a job; older finished ones are folded
    struct {
        uint64_t left_out; // boundaries without room
    } kept;
};

// Makes, releases, lists and restores it; forest, threads and spans_kept are set by the owner.
extern const struct state_part span_phases_part;

// A boundary that waits until its moment is judged.
struct boundary_row {
    uint32_t number; // its own, while it is looked at
    uint32_t in_use;
    string_id job, label, session;
    int32_t rank;
    int32_t world; // as the process says
    uint32_t depth;
    uint32_t is_enter;
    uint64_t time_ns;
    int64_t sequence;
    int64_t thread;
};

struct phase_job {
    struct row_head head;
    string_id job;
    uint32_t ranks; // that crossed a boundary
    uint32_t world; // the largest that any of them said
};

struct phase_label_key {
    uint32_t job; // row
    string_id label;
};
struct phase_label {
    struct row_head head;
    struct phase_label_key key;
    struct row_list waiting; // openings that are not added up yet
    uint32_t kept;           // how many they are
    uint64_t openings;       // added up
    double thread_s, busy_s;
};

struct phase_rank_sums {
    uint64_t openings;
    uint64_t slowest;
    double busy_s;
    double lag_s;
};

struct phase_rank_key {
    uint32_t label; // row
    int32_t rank;
    uint32_t thread[2]; // its id, the lower half first: a key has no gap before it
};
struct phase_rank {
    struct row_head head;
    struct phase_rank_key key;
    string_id session;
    uint32_t restarts; // how often its session changed
    uint32_t number;   // times that it entered in this session
    uint32_t visit;    // that it is on; TABLE_NO_ROW
    struct phase_rank_sums sums;
};

// The `number`-th time of each rank since its `restarts`-th restart.
struct phase_opening_key {
    uint32_t label; // row
    uint32_t restarts;
    uint32_t number;
};
struct phase_opening {
    struct row_head head;
    struct phase_opening_key key;
    uint32_t next; // of its label
    uint32_t first_visit;
    uint32_t visits;
    uint32_t inside;
};

struct phase_visit {
    uint32_t next; // of its opening, the newest first
    uint32_t opening;
    uint32_t rank; // row
    uint32_t inside;
    uint32_t whole; // its end was seen
    uint64_t enter_ns, exit_ns;
};

// How many parts a label has: "train / forward" has two.
uint32_t phase_depth(struct slice label);
// The id of its span: "train / forward#17", after a restart "train / forward#2.17".
struct slice phase_opening_id(struct slice label, const struct phase_opening_key *key,
                              struct arena *arena);
// With its visits.
void phase_opening_remove(struct span_phases *phases, struct phase_label *label,
                          struct phase_opening *opening);
// What is kept of these jobs, their trees included.
void span_phases_forget(struct span_phases *phases, const struct forgotten *forgotten);

KEYED_ROW_CHECK(struct phase_job, job);
KEYED_ROW_CHECK(struct phase_label, key);
KEYED_ROW_CHECK(struct phase_rank, key);
KEYED_ROW_CHECK(struct phase_opening, key);

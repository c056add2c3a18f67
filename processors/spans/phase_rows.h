// SPDX-License-Identifier: Apache-2.0
// The rows behind span_phases.h, and what an opening of a phase measures.
#pragma once

#include "processors/spans/phases.h"

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
    uint32_t first_opening, last_opening; // that are not added up yet
    uint32_t kept;                        // how many they are
    uint64_t openings;                    // added up
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

struct visit_measure {
    uint32_t rank; // row
    double busy_s;
    double lag_s; // over the median of those that ended
    bool slowest; // the last to leave, of several that all left
    bool inside;
};

struct phase_measure {
    double thread_s, busy_s;
    const struct visit_measure *visits;
    uint32_t count;
};

// The id of its span: "train / forward#17", after a restart "train / forward#2.17".
struct slice phase_opening_id(struct slice label, const struct phase_opening_key *key,
                              struct arena *arena);
// What an opening comes to as things are; `id` is that of its span.
void phase_measure(const struct span_phases *phases, const struct span_tree_row *tree,
                   const struct phase_opening *opening, struct slice id, struct arena *arena,
                   struct phase_measure *measure);
void phase_rank_add(struct phase_rank_sums *sums, const struct visit_measure *visit);
// With its visits.
void phase_opening_remove(struct span_phases *phases, struct phase_label *label,
                          struct phase_opening *opening);

KEYED_ROW_CHECK(struct phase_job, job);
KEYED_ROW_CHECK(struct phase_label, key);
KEYED_ROW_CHECK(struct phase_rank, key);
KEYED_ROW_CHECK(struct phase_opening, key);

// SPDX-License-Identifier: Apache-2.0
// From boundaries to spans, and from spans to what was active at one moment (stormlog's phase
// replay and attribution policy). Everything lies in the caller's arena.
#pragma once

#include "base/arena.h"
#include "pipeline/model/evaluation.h"

// A phase_enter or phase_exit of one process, as a row that is kept.
struct phase_boundary {
    uint64_t time_ns;
    int64_t sequence;
    int64_t thread_id;
    string_id label;
    string_id thread_name;
    uint32_t depth;
    uint32_t text; // first row of the scope id
    uint32_t text_size;
    uint32_t next; // of its process, in order of arrival
    bool is_enter;
    bool thread_id_is_bool;
};

// One that was looked up.
struct loaded_boundary {
    const struct phase_boundary *row;
    struct slice scope_id;
    uint32_t number; // of its row
    bool is_needed;  // the caller's
};

struct phase_span {
    uint64_t start_ns;
    uint64_t end_ns; // UINT64_MAX: never left
    struct loaded_boundary *enter;
    const struct loaded_boundary *exit; // NULL: never left
    size_t order;                       // among spans with the same times
};

// Sorts `boundaries` (of one session and rank, in order of arrival) and puts those that say what
// another says behind the others. Returns how many are left without them. O(count · log).
size_t phase_distinct(struct loaded_boundary *boundaries, size_t count, struct arena *arena);
// The same sorting, and replays them: at most `count` spans, sorted by (start, end). Returns how
// many. O(count · log).
size_t phase_replay(struct loaded_boundary *boundaries, size_t count, struct arena *arena,
                    struct phase_span **spans);
// What was open at `time_ns`, both ends of a span included. O(spans · log).
struct phase_attribution phase_attribute(const struct phase_span *spans, size_t count,
                                         uint64_t time_ns, struct arena *arena);

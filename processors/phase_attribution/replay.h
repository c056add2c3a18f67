// SPDX-License-Identifier: Apache-2.0
// From boundaries to spans, and from spans to what was active at one moment (stormlog's phase
// replay and attribution policy). Everything lies in the caller's arena.
#pragma once

#include "base/arena.h"
#include "pipeline/model/evaluation.h"

struct phase_boundary {
    uint64_t time_ns;
    int64_t sequence;
    int64_t thread_id;
    string_id label;
    string_id thread_name;
    uint32_t depth;
    bool is_enter;
    bool thread_id_is_bool;
    struct slice scope_id;
    uint32_t row; // where the caller keeps it
};

struct phase_span {
    uint64_t start_ns;
    uint64_t end_ns; // UINT64_MAX: never left
    int64_t sequence;
    int64_t thread_id;
    bool thread_id_is_bool;
    string_id label;
    string_id thread_name;
    uint32_t depth;
    struct slice scope_id;
    uint32_t enter_row, exit_row; // rows of its boundaries; exit_row TABLE_NO_ROW when never left
};

// Sorts `boundaries` (of one session and rank, in order of arrival) and replays them: at most
// `count` spans, sorted by (start, end). Returns how many.
size_t phase_replay(struct phase_boundary *boundaries, size_t count, struct arena *arena,
                    struct phase_span **spans);
struct phase_attribution phase_attribute(const struct phase_span *spans, size_t count,
                                         uint64_t time_ns, struct arena *arena);

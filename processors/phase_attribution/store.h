// SPDX-License-Identifier: Apache-2.0
// The phase boundaries of every (session, rank), and what a process was doing at one moment, as
// stormlog's phase replay gives it.
//
// Memory: 64 bytes a boundary plus its scope id in pieces of 60 bytes. One thread.
#pragma once

#include "base/arena.h"
#include "base/table/row_index.h"
#include "base/table/table.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"
#include "pipeline/model/evaluation.h"
#include "pipeline/model/event.h"

struct phase_store {
    struct table tracks;     // one a (session, rank)
    struct table boundaries; // chained a track, in order of arrival
    struct table texts;      // scope ids, in chained pieces
    struct row_index index;  // of tracks
    struct {
        bool tracks_left_out;
    } kept;
};

// Makes, releases, lists and restores it (pipeline/component/state.h).
extern const struct state_part phase_store_part;

// Forgets what these processes did up to `until_ns`. O(processes known).
void phase_store_forget(struct phase_store *store, const struct forgotten *forgotten,
                        uint64_t until_ns, struct arena *scratch);

// Keeps the boundary (telemetry->scope is not NULL).
void phase_store_add(struct phase_store *store, const struct telemetry *telemetry);
// Forgets scopes that were left before `before_ns`. Looks at a track only when it has doubled
// since.
void phase_store_expire(struct phase_store *store, uint64_t before_ns, struct arena *scratch);

// What a sample's process was doing at `time_ns`. `distinct`: a boundary that came again counts
// once; else as stormlog has it, each time. Texts lie in `arena`. O(boundaries of its track · log).
struct phase_attribution phase_store_resolve(const struct phase_store *store,
                                             const struct origin *origin, int32_t rank,
                                             uint64_t time_ns, bool distinct, struct arena *arena);

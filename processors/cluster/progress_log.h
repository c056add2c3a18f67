// SPDX-License-Identifier: Apache-2.0
// How far a job came, and who goes on counting behind a fault: what was survived was caught.
//
// A row for each progress that is told (observation "progress"): the decoder tells it around other
// events and at the end of a log, so that there are about as many as there are faults.
#pragma once

#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/row_bound.h"

enum { PROGRESS_LOG_MAX = 16384, PROGRESS_EPOCH_MAX = 16 };

enum progress_state { PROGRESS_COUNTS, PROGRESS_SAVED, PROGRESS_BEGINS, PROGRESS_DONE };

struct progress_key {
    string_id source;
    uint32_t position_high, position_low;
    uint32_t state; // enum progress_state
};

struct progress_row {
    struct row_head head;
    struct progress_key key;
    uint64_t time_ns;         // of something else where `timeless` is 1
    int64_t iteration, total; // -1: not said
    int64_t pid;
    string_id job, node;
    int32_t rank, local_rank, task;
    uint32_t rises;    // since what was told of the writer before
    uint32_t of_epoch; // 1: the iteration is counted anew in each epoch
    uint32_t anew;     // 1: it counted from lower on since then
    uint32_t timeless;
    char epoch[PROGRESS_EPOCH_MAX];
};

struct progress_log {
    struct keyed_rows rows; // PROGRESS_ROWS
    struct row_bound bound; // max: PROGRESS_LOG_MAX
};

extern const struct row_type PROGRESS_ROWS;

// Keeps the event, which is progress. O(1).
void progress_log_keep(struct progress_log *log, const struct event *event, struct arena *scratch);

// The same of any event.
static inline void progress_log_take(struct progress_log *log, const struct event *event,
                                     struct arena *scratch) {
    if (event->kind == EVENT_OBSERVATION && event->observation->kind == OBSERVATION_PROGRESS)
        progress_log_keep(log, event, scratch);
}

// -- who went on ----------------------------------------------------------------------------------

// Who said something, and where. -1, STRING_NONE, 0: not known.
struct progress_who {
    string_id source, job, node;
    uint64_t position, time_ns;
    uint64_t until_position, until_ns; // what is counted later is of another start; 0: no end
    int64_t pid;
    int32_t rank, local_rank, task;
};

struct progress_after {
    uint32_t own;    // how often the same writer rose behind it
    uint32_t others; // … and the one of the others in its log, or job, that rose most
    bool is_done;    // the job said that it is done
    bool is_long;    // others went on for so long that they did not only finish a step
};

struct progress_index;

// Of what is told up to `now_ns`, and of lines whose time is not known. In the arena. O(n log n).
const struct progress_index *progress_index_make(const struct progress_log *log, uint64_t now_ns,
                                                 struct arena *arena);
// The last that each writer told, one writer after the other; `*at` is 0 at first. NULL: no more.
const struct progress_row *progress_next_writer(const struct progress_index *index, uint32_t *at);
// O(writers log rows).
struct progress_after progress_after(const struct progress_index *index,
                                     const struct progress_who *who);
// The writer itself went on, or the job did so beyond doubt.
static inline bool progress_survived(const struct progress_after *after) {
    return after->own > 0 || after->is_done || after->is_long;
}
// Enough where nothing else says that anybody ended.
static inline bool progress_went_on(const struct progress_after *after) {
    return progress_survived(after) || after->others > 1;
}

// -- how far it came ------------------------------------------------------------------------------

struct progress_reached {
    const struct progress_row *newest; // NULL: not known
    const struct progress_row *saved;  // the last checkpoint; NULL: not known
};

// How far the job was at `until_ns`; STRING_NONE: the only one. `timeless`: lines of which nobody
// knows when they were written count, too. O(n).
struct progress_reached progress_reached(const struct progress_log *log, string_id job,
                                         uint64_t until_ns, bool timeless);

// SPDX-License-Identifier: Apache-2.0
// The lows that a rank's memory never went below again: a leak under swings lifts them step by
// step, though every single rise falls back.
//
// A low is a sample that uses no more than the one before. Kept are those that no later sample went
// to or below, ascending in time and use. Lows closer together than `step_bytes` are thinned out,
// so that their number is bounded by the range of use over the step. Amortised constant time a
// sample.
#pragma once

#include "pipeline/model/series.h"
#include "processors/spike_detect/growth_scan.h"

// One low, in a table of the owner's; newest first.
struct low_step {
    uint64_t time_ns;
    int64_t used_bytes;
    uint64_t number; // of this low among all lows of the rank
    uint32_t origin;
    uint32_t below; // the one before it, or TABLE_NO_ROW
};

struct low_steps {
    struct series_cursor cursor;
    bool has_previous;
    int64_t previous_bytes;
    uint64_t lows;   // seen so far
    uint32_t newest; // row of the table, or TABLE_NO_ROW
};

// Ranks are read beside one another, while nobody takes or frees rows of the table: what does is
// put into it afterwards, by one thread.
struct low_list { // new lows of one rank after the other
    struct low_step *items;
    uint32_t count, capacity;
};

struct low_edit {
    uint32_t kept;         // row of the table up to which the rank's lows stay, or TABLE_NO_ROW
    uint32_t first, count; // of the list: those above it, oldest first
};

// Frees the lows.
void low_steps_drop(struct low_steps *steps, struct table *table);
// Begins at another place, without any: those in the table go with the next write.
void low_steps_restart(struct low_steps *steps, struct series_cursor at);
// Reads the rows that are new, from where `edit->kept` says which lows stand, and appends to the
// list.
void low_steps_read(struct low_steps *steps, const struct table *table,
                    const struct growth_source *source, int64_t step_bytes, struct low_edit *edit,
                    struct low_list *list);
// Puts the edit into the table where that neither takes rows nor frees any: one low took another's
// place, as mostly. Beside other ranks' reading. Nothing is left to write then, and true returned.
bool low_steps_replace(struct low_steps *steps, const struct table *table, struct low_edit *edit,
                       struct low_list *list);
void low_steps_write(struct low_steps *steps, struct table *table, const struct low_edit *edit,
                     const struct low_list *list);

struct low_answer {
    int64_t growth_bytes;
    // For each `end_ns` from after_ns + 1 (of 0, from 0 on) to until_ns the answer is the same.
    uint64_t after_ns, until_ns;
};

// The rise of the lows up to the one that holds from `end_ns` on, and, when it reaches the
// threshold and has stood for LOWS_TO_STAND lows, the creep: from the last low near the bottom to
// the first at the threshold. Of the lows as they were read, before or after the write.
enum { LOWS_TO_STAND = 5 };
struct spike low_steps_creep(const struct low_edit *edit, const struct low_list *list,
                             const struct table *table, uint64_t end_ns, int64_t threshold_bytes,
                             struct low_answer *answer);

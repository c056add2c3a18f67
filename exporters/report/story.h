// SPDX-License-Identifier: Apache-2.0
// The order in which incidents are told, the same in text, on the page and in JSON: the root first,
// then what followed from it, by time.
#pragma once

#include "base/arena.h"
#include "pipeline/model/verdict.h"

struct story {
    const struct verdict **steps; // [0] is the root
    uint32_t count;               // at least 1
};

struct story_list {
    struct story *items;
    uint32_t count;
};

// Every verdict is in exactly one story. Stories that stand come before those that are over, then
// those that are no mere notes, then those that are explained, then by the time of their root. All
// of it lives in the arena. O(verdicts · related · log verdicts), and of steps that begin at the
// same moment O(steps²).
struct story_list stories_make(const struct verdict *verdicts, uint32_t count, struct arena *arena);

// The one entity of this kind in the gravest role in which the verdict names any, victims left out;
// NULL when it names none or several: one of several would change with the next evidence.
const struct entity *story_only_blamed(const struct verdict *verdict, const char *kind);
// Whether it says that something failed, and neither why nor who (processors/unexplained).
bool story_is_unexplained(const struct verdict *verdict);
bool story_relates(const struct verdict *verdict, const struct verdict *other,
                   enum relation relation);
// The number of the step that this one follows from most directly: the last of its causes that is
// told before it. 0, the root, for what is only known to belong to it.
uint32_t story_cause_of(const struct story *story, uint32_t step);

// Which pieces of a verdict's evidence are told where no more than `most` (at least 4) have room;
// [evidence_count]. Of each role some, causes before others, and the first of each; what says the
// same as another (`repeats`) never.
const bool *story_evidence_chosen(const struct verdict *verdict, uint32_t most,
                                  struct arena *arena);
// How many pieces there are to tell, those that were dropped among them.
uint32_t story_evidence_count(const struct verdict *verdict);

// The ranks that the incident took along: all that are named in it, but for those that its root
// blames or suspects. Ascending. `more` is set when verdicts left out whom they are about.
// Waiting ranks are no entities; evidence of an effect that begins with "rank 4" names one.
const int32_t *story_ranks(const struct story *story, struct arena *arena, uint32_t *count,
                           bool *more);
// Those that one verdict names as its victims.
const int32_t *story_victims(const struct verdict *verdict, struct arena *arena, uint32_t *count);
// The rank that an entity is; false when it is none.
bool story_rank_of(const struct entity *entity, int32_t *rank);
// The rank on which this is an effect: "rank 4 started all_reduce 17 …"; false: on none by itself.
bool story_struck_rank(const struct evidence *evidence, int32_t *rank);
// What the launcher called the root cause where that is not whom the verdict blames: "rank 3"; a
// text of events, to be made safe. No data: it said nothing, or the same.
struct slice story_launcher_named(const struct verdict *verdict, struct arena *arena);
// "the job got to step 4,120 of 50,000; its last checkpoint is 4,000"; a text of events, to be made
// safe. NULL: it is not known.
const char *story_progress(const struct verdict *verdict, struct arena *arena);
// Whether it helps to start the job again as it is. NULL: it is not known.
const char *story_restart(const struct verdict *verdict);
// Whether the verdict counts that rank among its victims.
bool story_launcher_named_victim(const struct verdict *verdict);

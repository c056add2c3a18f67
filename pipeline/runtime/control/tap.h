// SPDX-License-Identifier: Apache-2.0
// Copies a sample of what flows past one point of a pipeline, for somebody who watches.
//
// The pipeline's thread copies what was chosen into a ring of fixed size, at most `rate` records a
// second; the reader makes JSON of it on a thread of its own. What has no room, and what is beyond
// the rate, is counted and left out: the pipeline never waits. Nobody watches: one comparison a
// batch and stage. Watched: a look at each event; a copied one costs some kilobytes.
#pragma once

#include "pipeline/model/batch.h"
#include "pipeline/model/observation.h"

enum {
    TAPS_MAX = 4, // at one pipeline
    TAP_RING_BYTES = 1 << 20,
    TAP_RATE_MAX = 10000,
    TAP_VERDICT_MAX = 256 << 10, // as JSON
};

// Points of a pipeline: 0 and up are those behind a stage.
enum { TAP_ENTRY = -1, TAP_OUT = INT32_MAX };

struct tap_choice {
    int32_t point;
    bool events[EVENT_CLASS_COUNT]; // which events, by event_class
    bool verdicts;
    string_id job;  // STRING_NONE: of any job, or of none
    int32_t rank;   // RANK_NONE: of any rank, or of none
    uint64_t every; // each so-manieth of those that match; at least 1
    uint32_t rate;  // records a second at most, 1 to TAP_RATE_MAX
};

struct tap; // opaque

struct tap *tap_create(const struct tap_choice *choice);
void tap_free(struct tap *tap); // no pipeline has it any more. NULL is fine

// -- the reader's side, one thread --
// Appends the next record as a line of JSON; false when none waits.
bool tap_next(struct tap *tap, struct buffer *out);
// How many records were left out so far.
uint64_t tap_left_out(const struct tap *tap);

// -- the pipeline's side, under its lock --
struct tap_set { // all zero: nobody watches
    struct tap *items[TAPS_MAX];
    uint32_t count;
};
bool tap_set_add(struct tap_set *set, struct tap *tap); // false: there is no room
void tap_set_remove(struct tap_set *set, struct tap *tap);
// The batch is at this point. `first_verdict`: those of its verdicts from this one on are new here.
void tap_set_note(const struct tap_set *set, int32_t point, const struct batch *batch,
                  uint32_t first_verdict);

// SPDX-License-Identifier: Apache-2.0
// The first sample and the generation of each rank.
//
// A gateway that takes over may begin to read long after a rank's first sample, which it needs to
// align ranks: so each sample carries it. A session of a rank that begins later than the ones
// before begins a generation, as in the pipeline itself. What is carried names the sample's own
// session; without sessions there is one generation. At most 65,536 ranks and 64 sessions each;
// ranks without a sample for a day make room, the further ones carry nothing. One thread.
#pragma once

#include "base/table/row_index.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"

enum {
    FORWARD_RANKS_MAX = 65536,
    FORWARD_SESSIONS_MAX = 64, // of one rank
};

struct forward_session {
    uint32_t next;     // row of the next older one, or TABLE_NO_ROW
    string_id session; // STRING_NONE: this row is free
    uint64_t first_ns;
    uint32_t generation; // from 1
};

struct forward_rank {
    uint32_t reserved; // of free rows the next one
    string_id job;
    int32_t rank; // RANK_NONE: this row is free
    uint32_t newest_session;
    uint32_t session_count;
    uint64_t first_ns; // of all
    uint64_t last_ns;
};

struct forward_ranks {
    struct table ranks;
    struct table sessions;
    struct row_index index; // of ranks
    uint64_t newest_ns;     // of all samples
    uint64_t looked_ns;     // when room was looked for, in event time
};

extern const struct row_type forward_rank_rows, forward_session_rows;

void forward_ranks_release(struct forward_ranks *ranks); // what is no state
// After a load: sets up what is derived; begins anew when the rows make no sense.
void forward_ranks_restored(struct forward_ranks *ranks);
// What goes along with this event; zeros: nothing. `full` is set when there is no room for a rank.
struct carried forward_ranks_note(struct forward_ranks *ranks, const struct event *event,
                                  bool *full);

// SPDX-License-Identifier: Apache-2.0
// What is new of the samples, read on a pipeline's thread while it is held, for a mirror
// (mirror.h) that another thread keeps.
//
// At each evaluation the samples since the last one are written into a log: 16 bytes a sample, and
// as many a rank. When the log is full, the rest is read at a later evaluation; nothing is lost as
// long as the pipeline keeps the samples. What came too late for its evaluation is read with all
// else of its rank once more, PAGE_REREAD_MAX ranks an evaluation. Memory: 32 bytes a rank; nothing
// is allocated once all ranks are known.
#pragma once

#include "exporters/report/page/mirror.h"
#include "pipeline/model/batch.h"

enum { PAGE_REREAD_MAX = 4 };

// A rank as an evaluation showed it.
struct page_rank {
    int32_t rank;
    uint32_t row; // of the mirror
    string_id host;
};

struct page_follower; // opaque

struct page_follower *page_follower_new(void);
void page_follower_release(struct page_follower *follower); // NULL is fine
// Looks at a batch that was evaluated, or one with which jobs are forgotten. A pipeline is told by
// its arena, so that one follower serves several. False: the log was full before all was in it.
bool page_follow(struct page_follower *follower, const struct batch *batch, struct page_log *log);
// The ranks of an evaluation of the batch that was followed last; in the arena.
const struct page_rank *page_follower_ranks(const struct page_follower *follower,
                                            const struct batch *batch,
                                            const struct evaluation *evaluation,
                                            struct arena *arena);

// SPDX-License-Identifier: Apache-2.0
// The verdicts as they stand, kept when their batch is gone: what a report that is made again shows
// of those that did not change since.
//
// At most KEPT_VERDICTS_MAX; of more, those that are over go first, then those that changed longest
// ago. Memory: 96 bytes a verdict, and its texts in chunks of 1 KiB.
#pragma once

#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"

enum { KEPT_VERDICTS_MAX = 1000 };

struct kept_verdicts {
    struct table rows;   // struct kept_verdict (verdicts.c), never freed
    struct table chunks; // of their texts
    uint64_t changes;
};

// For a state row of the owner.
extern const struct state_part kept_verdicts_part;

void kept_verdicts_put(struct kept_verdicts *kept, const struct verdict *verdict);
// Copies of all, in the arena.
const struct verdict *kept_verdicts_all(const struct kept_verdicts *kept, struct arena *arena,
                                        uint32_t *count);

// The same in two steps, so that the second may be done by another thread, which has the arena
// then: their bytes, and the verdicts that these are.
struct kept_copy {
    const struct kept_bytes *items; // (kept_verdicts.c)
    uint32_t count;
};
struct kept_copy kept_verdicts_copy(const struct kept_verdicts *kept, struct arena *arena);
const struct verdict *kept_copy_read(const struct kept_copy *copy, struct arena *arena,
                                     uint32_t *count);

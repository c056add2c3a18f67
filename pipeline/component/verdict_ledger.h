// SPDX-License-Identifier: Apache-2.0
// Which verdicts stand, and did one change? A detector says at each evaluation what it finds; the
// ledger puts a verdict into the batch as new, as changed, or as ended; one that is as it was put
// out last is in it too, as `unchanged`, for the stages behind: it is taken out before the
// exporters.
#pragma once

#include "base/buffer.h"
#include "base/table/table.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"

enum { LEDGER_VERDICTS_MAX = 65536 };

struct verdict_ledger {
    struct table entries;
    uint32_t *index; // open addressing by id
    uint32_t index_size;
    struct buffer scratch;
    uint64_t left_out; // verdicts beyond LEDGER_VERDICTS_MAX, not put out
};

// For the owner's `state` and `restored` (state.h).
void verdict_ledger_state(struct verdict_ledger *ledger, struct state_list *list);
void verdict_ledger_restored(struct verdict_ledger *ledger);
// Forgets the verdicts about these jobs without a word: who comes back begins anew. O(verdicts).
void verdict_ledger_forget(struct verdict_ledger *ledger, const struct forgotten *forgotten);

void verdict_ledger_init(struct verdict_ledger *ledger, const char *table_name);
void verdict_ledger_release(struct verdict_ledger *ledger);

// The verdict as it is now; its `state` is set here: open at first, updated when it changed. With
// `ended` it is resolved, and put out once more only if it stood before or was never put out.
// `weight`: anything else that makes a difference worth a line, such as a growth in steps of a
// quarter.
void verdict_ledger_report(struct verdict_ledger *ledger, struct batch *batch,
                           struct verdict *verdict, bool ended, uint64_t weight);

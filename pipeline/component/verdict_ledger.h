// SPDX-License-Identifier: Apache-2.0
// Which verdicts stand, and which of them changed.
//
// A detector reports at each evaluation what it finds; the ledger puts a verdict into the batch as
// new, as changed, or as ended. One that is as it was put out last is in the batch too, as
// `unchanged`, for the stages behind: it is taken out before the exporters. A state row of its
// owner (VERDICT_LEDGER) makes it.
#pragma once

#include "base/buffer.h"
#include "base/table/row_index.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"

enum { LEDGER_VERDICTS_MAX = 65536, VERDICT_LEDGER_MAGIC = 0x1ed6e401 };

struct verdict_ledger {
    uint32_t magic;
    struct table entries;
    struct row_index index; // by id
    struct buffer scratch;
    uint64_t left_out; // verdicts beyond LEDGER_VERDICTS_MAX, not put out
};

// For a state row: STATE_PART(struct x, ledger, "x.verdicts", VERDICT_LEDGER).
extern const struct state_part VERDICT_LEDGER;
// Forgets the verdicts about these jobs without a word: who comes back begins anew. O(verdicts).
void verdict_ledger_forget(struct verdict_ledger *ledger, const struct forgotten *forgotten);

// The calls of that part, for owners that list their state by themselves.
void verdict_ledger_init(void *part, const char *name);
void verdict_ledger_release(void *part);
void verdict_ledger_state(void *part, struct state_list *list);
void verdict_ledger_restored(void *part);

// Whether a finding has to wait, live: one that rests on what has not come (a dump, the lines of a
// node) is reported once it has been found for `patience_ns` of event time, since what is missing
// may still be on its way. Asked at each evaluation that finds it, before it is reported. False for
// one that was put out, and when nothing more comes.
bool verdict_ledger_waits(struct verdict_ledger *ledger, const struct batch *batch,
                          const struct verdict *verdict, uint64_t patience_ns);
// The verdict as it is now; its `state` is set here: open at first, updated when it changed. With
// `ended` it is resolved, and put out once more only if it stood before or was never put out.
// `weight`: anything else that makes a difference worth a line, such as a growth in steps of a
// quarter.
void verdict_ledger_report(struct verdict_ledger *ledger, struct batch *batch,
                           struct verdict *verdict, bool ended, uint64_t weight);

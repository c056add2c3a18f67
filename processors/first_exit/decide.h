// SPDX-License-Identifier: Apache-2.0
// Which end of a round was the first, and whose it was.
#pragma once

#include "processors/cluster/detector.h"
#include "processors/cluster/restart.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/first_exit/ends.h"

struct first_exit_config {
    struct duration hold; // how long what was told of an end is kept
    int64_t confidence_written, confidence_kernel, confidence_code, confidence_silence;
    int64_t tie_penalty;
    struct duration xid_window; // from an Xid to the CUDA error that goes with it
    int64_t max_notes, max_places, max_pods, max_xids;
};

struct exit_decision {
    bool found;
    bool tied;        // nothing says which of them was first
    bool is_alone;    // nothing says that anybody ended
    bool is_doubtful; // others left in the same way, and no log says why
    bool is_over;     // the job was started again, and went on or failed by something else
    bool of_launcher; // a launcher went, its ranks with it
    enum exit_scope scope;
    bool is_odd; // it called another collective than all others
    uint32_t round;
    enum exit_kind kind;
    enum exit_ground ground;
    struct exit_candidate *candidates; // who was first: one unless tied
    uint32_t candidate_count;
    uint64_t time_ns; // of the end; 0: not known
};

// One decision for each round of the list, which gets the processes that are named for their
// silence and of which nothing else is told.
struct exit_decision *exits_decide(struct exit_list *list, struct arena *arena);

// The others waited for it, and nobody says why it did not come.
static inline bool exit_is_missing(const struct exit_decision *decision) {
    const struct exit_note *reason = decision->candidates[0].reason;
    return reason != NULL && note_is_missing(reason);
}

// restart.c: whether it helps to start the job again as it is.
enum restart exit_restart(const struct exit_decision *decision);
// verdict.c
void exit_verdict_build(const struct first_exit_config *config, const struct exit_list *list,
                        const struct exit_decision *decision, struct verdict_builder *builder);
// "rank 2", "rank 2 on node-b", "process 4711 on node-b", "pod train/w-3".
const char *exit_process_spoken(const struct exit_process *process, struct arena *arena);

// xids.c
// A CUDA error and the Xid of it are two words of one thing. One that programs cause is no fault of
// the GPU; of another the detectors of GPUs tell, and it stands here as context.
void exit_tell_xids(const struct first_exit_config *config, const struct exit_list *list,
                    const struct exit_candidate *candidate, struct verdict_builder *builder);

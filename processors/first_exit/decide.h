// SPDX-License-Identifier: Apache-2.0
// Which end of a round was the first, and whose it was.
#pragma once

#include "processors/cluster/detector.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/first_exit/ends.h"

struct first_exit_config {
    struct duration hold; // how long what was told of an end is kept
    int64_t confidence_written, confidence_kernel, confidence_code, confidence_silence;
    int64_t tie_penalty;
    struct duration xid_window; // from an Xid to the CUDA error that goes with it
    int64_t max_notes, max_places, max_pods, max_xids;
};

enum { ALSO_MAX = 6 };

// One end that nobody else brought about: of a process, of a node, or of the whole job.
struct exit_candidate {
    uint32_t process; // NO_PROCESS: a node's, a pod's or the job's
    string_id node;
    string_id unit; // of a pod that was preempted; else STRING_NONE
    enum exit_kind kind;
    enum exit_ground ground;
    const struct exit_note *reason;         // NULL: silence
    const struct exit_note *also[ALSO_MAX]; // what else tells of the same
    uint32_t also_count;
    uint64_t low_ns, high_ns; // it was in between; 0 and UINT64_MAX: not known
};

struct exit_decision {
    bool found;
    bool tied;        // nothing says which of them was first
    bool is_alone;    // nothing says that anybody ended
    bool is_doubtful; // others left in the same way, and no log says why
    bool is_over;     // the job was started again, and went on or failed by something else
    bool of_launcher; // a launcher went, its ranks with it
    uint32_t round;
    enum exit_kind kind;
    enum exit_ground ground;
    struct exit_candidate *candidates; // who was first: one unless tied
    uint32_t candidate_count;
    uint64_t time_ns; // of the end; 0: not known
};

// One decision for each round of the list.
struct exit_decision *exits_decide(const struct exit_list *list, struct arena *arena);
// verdict.c
void exit_verdict_build(const struct first_exit_config *config, const struct exit_list *list,
                        const struct exit_decision *decision, struct verdict_builder *builder);

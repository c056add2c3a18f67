// SPDX-License-Identifier: Apache-2.0
// From a finding of the hang detector to a verdict in words.
#pragma once

#include "pipeline/model/verdict.h"
#include "processors/nccl_hang/judge.h"

// Confidences in percent, as the options have them.
struct hang_confidence {
    int64_t missing_rank, mismatch, not_started, missing_peer, not_completed, all_started,
        missing_dump;
    int64_t past_timeout; // added
    int64_t without_dump; // taken off for each quarter of the members that left no dump
};

const char *hang_kind_name(enum hang_kind kind);
// Texts and lists lie in `arena`.
void hang_verdict_build(const struct hang_store *store, const struct hang_finding *finding,
                        const struct hang_confidence *confidence, struct arena *arena,
                        struct verdict *out);

// What is kept of a verdict to say later that it is over.
struct hang_said {
    struct row_head head;
    char id[VERDICT_ID_SIZE];
    uint8_t kind;
    bool p2p;
    bool partial;
    bool standing; // found again at this evaluation
    string_id job;
    string_id group_name, group_desc, operation;
    int32_t witness; // who waited longest
    int32_t confidence;
    int64_t sequence;
    uint64_t start_ns;
    uint64_t end_ns; // when it was last seen
};
void hang_said_fill(struct hang_said *said, const struct hang_finding *finding,
                    const struct verdict *verdict);
// The verdict as it ends.
void hang_verdict_end(const struct hang_said *said, struct arena *arena, struct verdict *out);

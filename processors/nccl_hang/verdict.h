// SPDX-License-Identifier: Apache-2.0
// From a finding of the hang detector to a verdict in words.
#pragma once

#include "processors/cluster/verdict_builder.h"
#include "processors/nccl_hang/judge.h"

void hang_verdict_build(const struct hang_store *store, const struct hang_finding *finding,
                        const struct hang_config *config, struct verdict_builder *builder);
// Names the verdicts of related findings. `builders`: of all findings, by their index.
void hang_verdict_relate(const struct hang_finding *finding, const struct verdict_builder *builders,
                         struct verdict *verdict);

// What is kept of a verdict to say later that it is over.
struct hang_said {
    struct row_head head;
    char id[VERDICT_ID_SIZE];
    uint8_t kind;
    bool p2p;
    uint8_t told_by; // its evidence (verdict.c)
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
void hang_verdict_end(const struct hang_said *said, struct verdict_builder *builder);

// SPDX-License-Identifier: Apache-2.0
// A verdict about machines in the making: parts are added in any order and put into the schema's
// order at the end, so that nothing depends on which fact was met first.
//
//     struct verdict_draft draft;
//     verdict_draft_begin(&draft, batch->arena, "pcie_aer", "correctable_storm");
//     verdict_draft_entity(&draft, "gpu", ROLE_CULPRIT, name);
//     ...
//     verdict_draft_finish(&draft);     // draft.verdict, but for its id and state
//
// All texts lie in the arena. Parts beyond the schema's limits are left out and counted.
#pragma once

#include "base/arena.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/verdict.h"

enum { DRAFT_ENTITIES = 64, DRAFT_EVIDENCE = 32, DRAFT_ATTRIBUTES = 32 };

struct verdict_draft {
    struct arena *arena;
    struct verdict verdict;
    struct entity entities[DRAFT_ENTITIES];
    struct evidence evidence[DRAFT_EVIDENCE];
    struct attribute attributes[DRAFT_ATTRIBUTES];
};

void verdict_draft_begin(struct verdict_draft *draft, struct arena *arena, const char *pattern,
                         const char *kind);
// An empty name adds nothing.
void verdict_draft_entity(struct verdict_draft *draft, const char *kind, enum entity_role role,
                          const char *name);
// An item whose uid is there already adds nothing.
void verdict_draft_evidence(struct verdict_draft *draft, enum evidence_role role, uint64_t time_ns,
                            const char *uid, const char *description);
// NULL and empty values add nothing.
void verdict_draft_attribute(struct verdict_draft *draft, const char *key, const char *value);
void verdict_draft_text(struct verdict_draft *draft, const char *headline, const char *remediation);
// Sorts: entities by verdict_entity_compare; evidence by time and uid; attributes by key. Times are
// those of the evidence: the earliest that is no context, and the latest.
void verdict_draft_finish(struct verdict_draft *draft);

// "gpu-node-03", cut where it is longer than a headline bears; "an unnamed node" for STRING_NONE.
const char *draft_node(struct arena *arena, string_id node);
// "gpu-node-03/0000:45:00", or without the node where it is not known; never longer than the
// schema allows.
const char *draft_on_node(struct arena *arena, string_id node, const char *what);
// The node's part of a uid.
const char *draft_node_uid(struct arena *arena, string_id node);
// The text of a string id cut to `max` bytes, or NULL for STRING_NONE.
const char *draft_string(struct arena *arena, string_id id, size_t max);

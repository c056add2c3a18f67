// SPDX-License-Identifier: Apache-2.0
// The words of the hang detector's verdicts.
#pragma once

#include "processors/cluster/verdict_builder.h"
#include "processors/nccl_hang/judge.h"

enum { HANG_NODES_MAX = 128 };

struct hang_nodes {
    string_id names[HANG_NODES_MAX];
    uint32_t count;
    bool some_unknown; // of some it is not known where they run
};

// The text, shortened to `max` characters.
const char *hang_text(string_id id, size_t max, struct arena *arena);
// "default_pg", or "group 7" where it has no description.
const char *hang_group_text(string_id name, string_id desc, struct arena *arena);
const char *hang_operation_text(string_id name, struct arena *arena);
struct slice hang_operation_whole(string_id name); // not shortened
// "operation all_reduce", to begin a sentence with; "collective" where its name is not known.
const char *hang_operation_named(string_id name, struct arena *arena);
// The operation that most of those who wait are in; of equally many the first by its name.
string_id hang_main_operation(const struct hang_finding *finding);
// What a rank called, in as much detail as the kind needs.
const char *hang_call_text(const struct hang_open *open, enum hang_kind kind, struct arena *arena);
bool hang_is_mismatch(enum hang_kind kind);
// Where the culprits run, or the suspects when there are none, and where all are in it and none
// comes out, all of them; by name.
struct hang_nodes hang_find_nodes(const struct hang_store *store,
                                  const struct hang_finding *finding, struct arena *arena);
// Says what was not seen of what the finding speaks of (builder_partial).
void hang_tell_not_seen(struct verdict_builder *builder, const struct hang_finding *finding);
// Headline and what to do. `group`, `operation`: as hang_group_text and hang_operation_text say.
void hang_set_texts(struct verdict_builder *builder, const struct hang_finding *finding,
                    const struct hang_nodes *nodes, const char *group, const char *operation);

// SPDX-License-Identifier: Apache-2.0
// The words of the hang detector's verdicts.
#pragma once

#include "processors/nccl_hang/judge.h"

enum { HANG_NODES_MAX = 64 };

struct hang_words {
    const struct hang_finding *finding;
    struct arena *arena;
    const char *group, *operation, *culprits;
    int64_t sequence;
};

struct hang_nodes {
    string_id names[HANG_NODES_MAX];
    uint32_t count;
};

// The text, cut at `max` bytes between two characters.
const char *hang_text(string_id id, size_t max, struct arena *arena);
// "default_pg", or "group 7" where it has no description.
const char *hang_group_text(string_id name, string_id desc, struct arena *arena);
const char *hang_operation_text(string_id name, struct arena *arena);
// "rank 5", "ranks 1, 2 and 3", "ranks 0, 1, 2, 3, 4, 5 and 10 others" of those with this part.
const char *hang_ranks_text(const struct hang_finding *finding, enum hang_part part,
                            struct arena *arena);
// The operation that most of those who wait are in; of equally many the first by its name.
string_id hang_main_operation(const struct hang_finding *finding);
const struct hang_seat *hang_first_with(const struct hang_finding *finding, enum hang_part part);
// What a rank called, in as much detail as the kind needs.
const char *hang_call_text(const struct hang_open *open, enum hang_kind kind, struct arena *arena);
bool hang_is_mismatch(enum hang_kind kind);
// Where the culprits run, or the suspects when there are none; by name.
struct hang_nodes hang_find_nodes(const struct hang_store *store,
                                  const struct hang_finding *finding, struct arena *arena);
const char *hang_headline(const struct hang_words *words);
const char *hang_remediation(const struct hang_words *words, const struct hang_nodes *nodes);

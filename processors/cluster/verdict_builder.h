// SPDX-License-Identifier: Apache-2.0
// Builds a verdict: parts are added in any order and put into the schema's order at the end, so
// that nothing depends on which fact came first.
//
//     struct verdict_builder builder;
//     builder_begin(&builder, batch->arena, "pcie_aer", "correctable_storm");
//     builder_entity(&builder, "gpu", ROLE_CULPRIT, name);
//     builder_evidence(&builder, EVIDENCE_CAUSE, time_ns, uid, "%s rose by %d", counter, growth);
//     builder_texts(&builder, "PCIe link of {gpu} has many errors", "Check {gpu}.", fields);
//     builder_finish(&builder, (struct slice[]){node, gpu}, 2); // builder.verdict
//
// Completeness is one rule for all detectors. A verdict is full where all was seen that its answer
// speaks of: every member of the group, or every rank of the job that is known, with what it did,
// and every source that the pattern joins. Else it is partial, and builder_partial says what is
// missing. What is not known is neither evidence nor an excuse: a rank that was not seen is no
// rank that did nothing.
//
// All texts lie in the arena, or live longer. Parts beyond the bounds are left out and counted;
// texts beyond the schema's lengths are cut when the verdict is encoded.
#pragma once

#include "base/arena.h"
#include "pipeline/model/verdict.h"

struct verdict_builder {
    struct arena *arena;
    struct verdict verdict;
    uint32_t entity_max, evidence_max; // 64 and 32 unless the owner sets others
    bool evidence_in_order;            // stays as it was added, each item told once; else as usual
    const char *not_seen;              // what is missing, for the attribute; NULL: nothing
};

void builder_begin(struct verdict_builder *builder, struct arena *arena, const char *pattern,
                   const char *kind);
// How bad it is, how sure that is (5 to 97 percent; what is beyond is put there) and what to do, of
// the schema's list of actions; static text.
void builder_rate(struct verdict_builder *builder, enum severity severity, int64_t confidence,
                  const char *action);
// An empty name adds nothing. `kind` is static text.
void builder_entity(struct verdict_builder *builder, const char *kind, enum entity_role role,
                    const char *name);
// An item whose uid is there already adds nothing. time_ns 0: not known.
void builder_evidence(struct verdict_builder *builder, enum evidence_role role, uint64_t time_ns,
                      const char *uid, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
// The item with this uid says what another of them says already (struct evidence).
void builder_evidence_repeats(struct verdict_builder *builder, const char *uid);
// `key` is static text. An empty value adds nothing.
void builder_attribute(struct verdict_builder *builder, const char *key, struct slice value);
void builder_attribute_format(struct verdict_builder *builder, const char *key, const char *format,
                              ...) __attribute__((format(printf, 3, 4)));

// The verdict is partial, and this is missing: a clause, "no dump of rank 6 was read". All of them
// are the attribute culprit.not_seen.
void builder_partial(struct verdict_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Values of the fields that a template names; a list ends with a NULL.
struct text_field {
    const char *name, *value;
};
// The template with the value of each "{name}". "{Name}", at the beginning of a sentence, puts a
// capital there only where the value begins with a word of ours ("rank 3", "node gpu-7", "the
// job"): a name out of the input keeps its spelling, so that it can be searched for. Where a
// sentence would begin with such a name, put what it is before it.
const char *text_fill(struct arena *arena, const char *template, const struct text_field *fields);
// Templates of the headline and of what to do.
void builder_texts(struct verdict_builder *builder, const char *headline, const char *remediation,
                   const struct text_field *fields);
// Sorts the parts: entities by verdict_entity_compare, evidence by verdict_sort_evidence,
// attributes by key. Times are those of the
// evidence: the earliest that is no context, and the latest. The id is made from pattern and key.
void builder_finish(struct verdict_builder *builder, const struct slice *key, size_t key_count);
// Puts an attribute into its place in a verdict that is finished; beyond the bound it is left out.
void verdict_add_attribute(struct verdict *verdict, const char *key, struct slice value,
                           struct arena *arena);

// SPDX-License-Identifier: Apache-2.0
// A verdict: one finding of one detector, after design "culprit.verdict.v1"
// (docs/verdict.schema.json).
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/hash/digest.h"
#include "base/intern.h"
#include "base/text/cut.h"
#include "pipeline/model/event.h"

#include <stdbool.h>
#include <stdint.h>

enum verdict_state { VERDICT_OPEN, VERDICT_UPDATED, VERDICT_RESOLVED };
enum severity { SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR, SEVERITY_CRITICAL };
enum entity_role { ROLE_CULPRIT, ROLE_SUSPECT, ROLE_VICTIM };
enum evidence_role { EVIDENCE_CAUSE, EVIDENCE_EFFECT, EVIDENCE_CONTEXT };

// Limits of the schema; what goes beyond is left out and counted (`…_dropped`).
enum {
    VERDICT_PATTERN_MAX = 40,
    VERDICT_ID_SIZE = VERDICT_PATTERN_MAX + 1 + DIGEST_ID_SIZE,
    VERDICT_HEADLINE_MAX = 240,
    VERDICT_REMEDIATION_MAX = 480,
    EVIDENCE_DESCRIPTION_MAX = 480,
    VERDICT_ENTITIES_MAX = 1024,
    VERDICT_EVIDENCE_MAX = 256,
    VERDICT_ATTRIBUTES_MAX = 64,
    VERDICT_RELATED_MAX = 64,
};

struct entity {
    const char *kind; // "rank", "gpu", "node", "pod", … as in the schema
    struct slice name;
    enum entity_role role;
};

struct evidence {
    struct slice uid; // names one source event, stable across runs
    struct slice description;
    uint64_t time_ns;
    bool has_time;
    enum evidence_role role;
    // Another piece says the same already, in its own words: people are told one of them.
    bool repeats;
};

// How another verdict of the same incident stands to this one.
enum relation { RELATION_CAUSED_BY, RELATION_CAUSES, RELATION_SAME_INCIDENT };

struct related {
    char id[VERDICT_ID_SIZE];
    enum relation relation;
};

struct attribute {
    const char *key; // dotted lower case; the array is sorted by bytes
    struct slice value;
};

struct verdict {
    char id[VERDICT_ID_SIZE];
    const char *pattern; // static text
    const char *kind;    // static text
    string_id job;
    enum verdict_state state;
    enum severity severity;
    bool partial;   // completeness
    int confidence; // 0 to 100
    struct slice headline;
    struct slice remediation;
    const char *action; // static text, from the schema's list
    uint64_t start_ns;
    uint64_t end_ns;
    // It was seen by sampling: it began somewhere behind this moment, that of the sample before,
    // and at start_ns at the latest. 0: at start_ns. Not put out.
    uint64_t after_ns;
    struct entity *entities; // in the order of verdict_entity_compare
    uint32_t entity_count;
    uint32_t entities_dropped;
    struct evidence *evidence; // in the order in which it is told, everywhere
    uint32_t evidence_count;
    uint32_t evidence_dropped;
    struct attribute *attributes;
    uint32_t attribute_count;
    // A detector may say here what it knows of its own verdicts; `incident` takes it over and adds
    // the rest.
    struct related *related;
    uint32_t related_count;
    // As it was put out last: told to later stages, which may change it, and not put out again.
    bool unchanged;
    // … but an exporter was not told of it yet (pipeline/runtime/sender_route.h).
    bool recalled;
};

// One in a list of what was found.
struct verdict_title {
    char id[VERDICT_ID_SIZE];
    char *headline;
};

// Fills `id` from the pattern and its correlation key's parts.
void verdict_set_id(struct verdict *verdict, const char *pattern, const struct slice *key,
                    size_t key_count);
// Those of its evidence: the earliest that is no context (where all is, the earliest), and the
// latest. Without any both are 0.
void verdict_set_times(struct verdict *verdict);
// The order in which entities are listed everywhere: culprits, suspects, victims; within a role by
// kind, then by name, of which those of ranks are compared as numbers. For qsort.
int verdict_entity_compare(const void *left, const void *right);
void verdict_sort_entities(struct verdict *verdict);
// The usual order of evidence: by time, what has none last; of the same moment causes, effects,
// context; then by uid. Scratch from the arena.
void verdict_sort_evidence(struct verdict *verdict, struct arena *arena);
// The attribute with this key; NULL: it has none.
const struct attribute *verdict_attribute(const struct verdict *verdict, const char *key);
// Whose time `start_ns` is: attribute culprit.time_of, which only those have whose own is not
// known.
enum time_of verdict_time_of(const struct verdict *verdict);
const char *time_of_name(enum time_of time_of); // "file"
// Whether it is the root of its incident, which holds at least itself (processors/incident).
bool verdict_is_root(const struct verdict *verdict);
const char *severity_name(enum severity severity);
const char *verdict_state_name(enum verdict_state state); // "open"
// The texts as all are told: within the schema's lengths, shortened (text_shorten) where they are
// longer. The text itself, or a slice of `room`.
struct slice verdict_headline(const struct verdict *verdict,
                              char room[TEXT_ROOM(VERDICT_HEADLINE_MAX)]);
struct slice verdict_remediation(const struct verdict *verdict,
                                 char room[TEXT_ROOM(VERDICT_REMEDIATION_MAX)]);
struct slice evidence_description(const struct evidence *evidence,
                                  char room[TEXT_ROOM(EVIDENCE_DESCRIPTION_MAX)]);
// Puts them in place of its own, in the arena, so that all sinks say the same.
void verdict_shorten(struct verdict *verdict, struct arena *arena);
// One line of JSON with its newline, fields in the schema's order.
void verdict_encode(const struct verdict *verdict, struct buffer *out);

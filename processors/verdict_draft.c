// SPDX-License-Identifier: Apache-2.0
// How is a verdict about machines put together? Small fixed arrays, insertion sort; copies of what
// is used go to the arena at the end.
#include "processors/verdict_draft.h"

#include "base/text/utf8.h"

#include <assert.h>

enum {
    NODE_IN_TEXT_MAX = 64,
    NODE_IN_NAME_MAX = 220,
    DESCRIPTION_MAX = 480,
    ATTRIBUTE_VALUE_MAX = 1024
};

// At most `max` bytes, whole characters.
static struct slice cut(struct slice text, size_t max) {
    if (text.size <= max)
        return text;
    size_t at = 0, size;
    uint32_t code_point;
    while ((size = utf8_decode(text, at, &code_point), at + (size == 0 ? 1 : size)) <= max)
        at += size == 0 ? 1 : size;
    return (struct slice){text.data, at};
}

static struct slice cut_text(const char *text, size_t max) {
    return cut(slice_of(text), max);
}

void verdict_draft_begin(struct verdict_draft *draft, struct arena *arena, const char *pattern,
                         const char *kind) {
    draft->arena = arena;
    draft->verdict = (struct verdict){.pattern = pattern, .kind = kind, .action = "monitor"};
}

void verdict_draft_entity(struct verdict_draft *draft, const char *kind, enum entity_role role,
                          const char *name) {
    struct verdict *verdict = &draft->verdict;
    if (name == NULL || name[0] == '\0')
        return;
    if (verdict->entity_count == DRAFT_ENTITIES) {
        verdict->entities_dropped++;
        return;
    }
    draft->entities[verdict->entity_count++] =
        (struct entity){.kind = kind, .name = slice_of(name), .role = role};
}

void verdict_draft_evidence(struct verdict_draft *draft, enum evidence_role role, uint64_t time_ns,
                            const char *uid, const char *description) {
    struct verdict *verdict = &draft->verdict;
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (slice_equal(draft->evidence[i].uid, slice_of(uid)))
            return;
    if (verdict->evidence_count == DRAFT_EVIDENCE) {
        verdict->evidence_dropped++;
        return;
    }
    draft->evidence[verdict->evidence_count++] =
        (struct evidence){.uid = slice_of(uid),
                          .description = cut_text(description, DESCRIPTION_MAX),
                          .time_ns = time_ns,
                          .has_time = true,
                          .role = role};
}

void verdict_draft_attribute(struct verdict_draft *draft, const char *key, const char *value) {
    struct verdict *verdict = &draft->verdict;
    if (value == NULL || value[0] == '\0')
        return;
    assert(verdict->attribute_count < DRAFT_ATTRIBUTES);
    draft->attributes[verdict->attribute_count++] =
        (struct attribute){key, cut_text(value, ATTRIBUTE_VALUE_MAX)};
}

void verdict_draft_text(struct verdict_draft *draft, const char *headline,
                        const char *remediation) {
    draft->verdict.headline = cut_text(headline, VERDICT_HEADLINE_MAX);
    draft->verdict.remediation = cut_text(remediation, VERDICT_REMEDIATION_MAX);
}

static int compare_evidence(const struct evidence *a, const struct evidence *b) {
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return slice_compare(a->uid, b->uid);
}

static void sort_parts(struct verdict_draft *draft) {
    struct verdict *verdict = &draft->verdict;
    for (uint32_t i = 1; i < verdict->evidence_count; i++)
        for (uint32_t at = i;
             at > 0 && compare_evidence(&draft->evidence[at], &draft->evidence[at - 1]) < 0; at--) {
            struct evidence other = draft->evidence[at];
            draft->evidence[at] = draft->evidence[at - 1];
            draft->evidence[at - 1] = other;
        }
    for (uint32_t i = 1; i < verdict->attribute_count; i++)
        for (uint32_t at = i;
             at > 0 && strcmp(draft->attributes[at].key, draft->attributes[at - 1].key) < 0; at--) {
            struct attribute other = draft->attributes[at];
            draft->attributes[at] = draft->attributes[at - 1];
            draft->attributes[at - 1] = other;
        }
}

static void *copy(struct arena *arena, const void *items, size_t size) {
    void *to = arena_take(arena, size + 1);
    memcpy(to, items, size);
    return to;
}

void verdict_draft_finish(struct verdict_draft *draft) {
    struct verdict *verdict = &draft->verdict;
    sort_parts(draft);
    verdict->entities =
        copy(draft->arena, draft->entities, verdict->entity_count * sizeof draft->entities[0]);
    verdict_sort_entities(verdict);
    verdict->evidence =
        copy(draft->arena, draft->evidence, verdict->evidence_count * sizeof draft->evidence[0]);
    verdict->attributes = copy(draft->arena, draft->attributes,
                               verdict->attribute_count * sizeof draft->attributes[0]);
    verdict_set_times(verdict);
}

const char *draft_string(struct arena *arena, string_id id, size_t max) {
    return id == STRING_NONE ? NULL : arena_text(arena, cut(intern_slice(id), max));
}

const char *draft_node(struct arena *arena, string_id node) {
    const char *text = draft_string(arena, node, NODE_IN_TEXT_MAX);
    return text == NULL ? "an unnamed node" : text;
}

const char *draft_node_uid(struct arena *arena, string_id node) {
    const char *text = draft_string(arena, node, NODE_IN_NAME_MAX);
    return text == NULL ? "" : text;
}

const char *draft_on_node(struct arena *arena, string_id node, const char *what) {
    const char *text = draft_string(arena, node, NODE_IN_NAME_MAX);
    return text == NULL ? what : arena_format(arena, "%s/%s", text, what);
}

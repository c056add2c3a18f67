// SPDX-License-Identifier: Apache-2.0
// Names verdicts and writes them.
//
// The name is made from the pattern and its correlation key alone, so it stays when evidence is
// added. The line holds the fields of docs/verdict.schema.json in the schema's order; texts that
// are longer than the schema allows are shortened between words, uids cut between characters. No
// memory of its own.
#include "pipeline/model/verdict.h"

#include "base/sort.h"
#include "base/text/json_write.h"
#include "base/text/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KEY_PARTS_MAX = 16,
    ENTITY_NAME_MAX = 253,
    EVIDENCE_UID_MAX = 512,
    ATTRIBUTE_VALUE_MAX = 1024,
};

static const char *const severity_names[] = {"info", "warning", "error", "critical"};
static const char *const state_names[] = {"open", "updated", "resolved"};
static const char *const entity_role_names[] = {"culprit", "suspect", "victim"};
static const char *const relation_names[] = {"caused_by", "causes", "same_incident"};
static const char *const evidence_role_names[] = {"cause", "effect", "context"};

void verdict_set_id(struct verdict *verdict, const char *pattern, const struct slice *key,
                    size_t key_count) {
    assert(strlen(pattern) <= VERDICT_PATTERN_MAX && key_count < KEY_PARTS_MAX);
    struct slice parts[KEY_PARTS_MAX];
    parts[0] = slice_of(pattern);
    for (size_t i = 0; i < key_count; i++)
        parts[i + 1] = key[i];
    char digest[DIGEST_ID_SIZE];
    digest_id(parts, key_count + 1, digest);
    snprintf(verdict->id, sizeof verdict->id, "%s:%s", pattern, digest);
}

void verdict_set_times(struct verdict *verdict) {
    assert(verdict->evidence_count <= VERDICT_EVIDENCE_MAX);
    uint64_t first_ns = UINT64_MAX;
    verdict->start_ns = UINT64_MAX;
    verdict->end_ns = 0;
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        if (evidence->role != EVIDENCE_CONTEXT && evidence->time_ns < verdict->start_ns)
            verdict->start_ns = evidence->time_ns;
        if (evidence->time_ns < first_ns)
            first_ns = evidence->time_ns;
        if (evidence->time_ns > verdict->end_ns)
            verdict->end_ns = evidence->time_ns;
    }
    if (verdict->start_ns == UINT64_MAX)
        verdict->start_ns = verdict->evidence_count == 0 ? 0 : first_ns;
}

// The number that a rank's name says; false for a name that is none.
static bool rank_number(struct slice name, uint64_t *number) {
    *number = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] < '0' || name.data[i] > '9' || *number > UINT32_MAX)
            return false;
        *number = *number * 10 + (uint64_t)(name.data[i] - '0');
    }
    return name.size > 0;
}

// Numbers in order, then names that are none.
static int compare_ranks(struct slice a, struct slice b) {
    uint64_t a_number, b_number;
    bool a_is = rank_number(a, &a_number), b_is = rank_number(b, &b_number);
    return COMPARE_KEYS(COMPARE(b_is, a_is), a_is && b_is ? COMPARE(a_number, b_number) : 0,
                        slice_compare(a, b));
}

int verdict_entity_compare(const void *left, const void *right) {
    const struct entity *a = left, *b = right;
    bool are_ranks = strcmp(a->kind, "rank") == 0;
    return COMPARE_KEYS(COMPARE(a->role, b->role), strcmp(a->kind, b->kind),
                        are_ranks ? compare_ranks(a->name, b->name)
                                  : slice_compare(a->name, b->name));
}

void verdict_sort_entities(struct verdict *verdict) {
    assert(verdict->entity_count == 0 || verdict->entities != NULL);
    if (verdict->entity_count > 1)
        qsort(verdict->entities, verdict->entity_count, sizeof *verdict->entities,
              verdict_entity_compare);
}

static int compare_evidence(const void *left, const void *right) {
    const struct evidence *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(b->has_time, a->has_time),
                        a->has_time && b->has_time ? COMPARE(a->time_ns, b->time_ns) : 0,
                        COMPARE(a->role, b->role), slice_compare(a->uid, b->uid));
}

void verdict_sort_evidence(struct verdict *verdict, struct arena *arena) {
    assert(verdict->evidence_count == 0 || verdict->evidence != NULL);
    sort_stable(verdict->evidence, verdict->evidence_count, sizeof *verdict->evidence, arena,
                compare_evidence);
}

const struct attribute *verdict_attribute(const struct verdict *verdict, const char *key) {
    assert(verdict->attribute_count == 0 || verdict->attributes != NULL);
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        if (strcmp(verdict->attributes[i].key, key) == 0)
            return &verdict->attributes[i];
    return NULL;
}

static const char *const time_of_names[] = {[TIME_OF_EVENT] = "event",
                                            [TIME_OF_LINE_BEFORE] = "line_before",
                                            [TIME_OF_FILE] = "file",
                                            [TIME_OF_RECEIPT] = "receipt"};

const char *time_of_name(enum time_of time_of) {
    assert((size_t)time_of < sizeof time_of_names / sizeof time_of_names[0]);
    return time_of_names[time_of];
}

enum time_of verdict_time_of(const struct verdict *verdict) {
    const struct attribute *said = verdict_attribute(verdict, "culprit.time_of");
    for (enum time_of of = TIME_OF_EVENT; said != NULL && of <= TIME_OF_RECEIPT; of++)
        if (slice_equal(said->value, slice_of(time_of_names[of])))
            return of;
    return TIME_OF_EVENT;
}

bool verdict_is_root(const struct verdict *verdict) {
    const struct attribute *root = verdict_attribute(verdict, "culprit.root");
    return root == NULL || slice_equal(root->value, SLICE("true"));
}

const char *severity_name(enum severity severity) {
    assert((size_t)severity < sizeof severity_names / sizeof severity_names[0]);
    return severity_names[severity];
}

const char *verdict_state_name(enum verdict_state state) {
    assert((size_t)state < sizeof state_names / sizeof state_names[0]);
    return state_names[state];
}

static void field_text(struct json_writer *json, const char *key, const char *value) {
    json_key(json, key);
    json_text(json, value);
}

struct slice verdict_headline(const struct verdict *verdict,
                              char room[TEXT_ROOM(VERDICT_HEADLINE_MAX)]) {
    return text_shorten(verdict->headline, VERDICT_HEADLINE_MAX, TEXT_CHARACTERS, room);
}

struct slice verdict_remediation(const struct verdict *verdict,
                                 char room[TEXT_ROOM(VERDICT_REMEDIATION_MAX)]) {
    return text_shorten(verdict->remediation, VERDICT_REMEDIATION_MAX, TEXT_CHARACTERS, room);
}

struct slice evidence_description(const struct evidence *evidence,
                                  char room[TEXT_ROOM(EVIDENCE_DESCRIPTION_MAX)]) {
    return text_shorten(evidence->description, EVIDENCE_DESCRIPTION_MAX, TEXT_CHARACTERS, room);
}

static void shorten(struct slice *text, size_t max, struct arena *arena) {
    if (text->size > max)
        *text = text_shorten(*text, max, TEXT_CHARACTERS, arena_take(arena, TEXT_ROOM(max)));
}

void verdict_shorten(struct verdict *verdict, struct arena *arena) {
    shorten(&verdict->headline, VERDICT_HEADLINE_MAX, arena);
    shorten(&verdict->remediation, VERDICT_REMEDIATION_MAX, arena);
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        shorten(&verdict->evidence[i].description, EVIDENCE_DESCRIPTION_MAX, arena);
}

static void field_shortened(struct json_writer *json, const char *key, struct slice value,
                            size_t max) {
    char room[TEXT_ROOM(ATTRIBUTE_VALUE_MAX)];
    assert(max <= ATTRIBUTE_VALUE_MAX);
    json_key(json, key);
    json_slice(json, text_shorten(value, max, TEXT_CHARACTERS, room));
}

// Nanoseconds as a decimal string, as in OTLP/JSON.
static void field_nano(struct json_writer *json, const char *key, uint64_t time_ns) {
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%llu", (unsigned long long)time_ns);
    json_key(json, key);
    json_slice(json, (struct slice){digits, (size_t)size});
}

static void field_dropped(struct json_writer *json, const char *key, uint32_t count) {
    if (count == 0)
        return;
    json_key(json, key);
    json_uint(json, count);
}

static void entities_encode(struct json_writer *json, const struct verdict *verdict) {
    assert(verdict->entity_count <= VERDICT_ENTITIES_MAX);
    json_key(json, "entities");
    json_array_open(json);
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        assert(entity->kind != NULL && entity->role <= ROLE_VICTIM);
        json_object_open(json);
        field_text(json, "kind", entity->kind);
        field_shortened(json, "name", entity->name, ENTITY_NAME_MAX);
        field_text(json, "role", entity_role_names[entity->role]);
        json_object_close(json);
    }
    json_array_close(json);
    field_dropped(json, "entities_dropped", verdict->entities_dropped);
}

static void evidence_encode(struct json_writer *json, const struct verdict *verdict) {
    assert(verdict->evidence_count <= VERDICT_EVIDENCE_MAX);
    json_key(json, "evidence_trail");
    json_array_open(json);
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        assert(evidence->role <= EVIDENCE_CONTEXT);
        json_object_open(json);
        json_key(json, "uid");
        json_slice(json, utf8_cut(evidence->uid, EVIDENCE_UID_MAX));
        field_shortened(json, "description", evidence->description, EVIDENCE_DESCRIPTION_MAX);
        if (evidence->has_time)
            field_nano(json, "time_unix_nano", evidence->time_ns);
        field_text(json, "role", evidence_role_names[evidence->role]);
        if (evidence->repeats) {
            json_key(json, "repeats");
            json_bool(json, true);
        }
        json_object_close(json);
    }
    json_array_close(json);
    field_dropped(json, "evidence_dropped", verdict->evidence_dropped);
}

static void related_encode(struct json_writer *json, const struct verdict *verdict) {
    assert(verdict->related_count <= VERDICT_RELATED_MAX);
    if (verdict->related_count == 0)
        return;
    json_key(json, "related");
    json_array_open(json);
    for (uint32_t i = 0; i < verdict->related_count; i++) {
        assert(verdict->related[i].relation <= RELATION_SAME_INCIDENT);
        json_object_open(json);
        field_text(json, "id", verdict->related[i].id);
        field_text(json, "relation", relation_names[verdict->related[i].relation]);
        json_object_close(json);
    }
    json_array_close(json);
}

static void attributes_encode(struct json_writer *json, const struct verdict *verdict) {
    assert(verdict->attribute_count <= VERDICT_ATTRIBUTES_MAX);
    if (verdict->attribute_count == 0)
        return;
    json_key(json, "attributes");
    json_object_open(json);
    for (uint32_t i = 0; i < verdict->attribute_count; i++) {
        const struct attribute *attribute = &verdict->attributes[i];
        assert(i == 0 || strcmp(verdict->attributes[i - 1].key, attribute->key) < 0);
        field_shortened(json, attribute->key, attribute->value, ATTRIBUTE_VALUE_MAX);
    }
    json_object_close(json);
}

void verdict_encode(const struct verdict *verdict, struct buffer *out) {
    assert(verdict->id[0] != '\0' && verdict->state <= VERDICT_RESOLVED);
    struct json_writer writer;
    struct json_writer *json = &writer;
    json_begin(json, out, 0);
    json_object_open(json);
    field_text(json, "schema", "culprit.verdict.v1");
    field_text(json, "id", verdict->id);
    field_text(json, "pattern", verdict->pattern);
    field_text(json, "kind", verdict->kind);
    if (verdict->job != STRING_NONE && intern_slice(verdict->job).size > 0) {
        json_key(json, "job_id");
        json_slice(json, intern_slice(verdict->job));
    }
    field_text(json, "state", verdict_state_name(verdict->state));
    field_text(json, "severity", severity_name(verdict->severity));
    field_text(json, "completeness", verdict->partial ? "partial" : "full");
    json_key(json, "confidence");
    json_int(json, verdict->confidence);
    field_shortened(json, "headline", verdict->headline, VERDICT_HEADLINE_MAX);
    field_shortened(json, "remediation", verdict->remediation, VERDICT_REMEDIATION_MAX);
    field_text(json, "action", verdict->action);
    field_nano(json, "start_time_unix_nano", verdict->start_ns);
    field_nano(json, "end_time_unix_nano", verdict->end_ns);
    entities_encode(json, verdict);
    evidence_encode(json, verdict);
    related_encode(json, verdict);
    attributes_encode(json, verdict);
    json_object_close(json);
    buffer_append_char(out, '\n');
}

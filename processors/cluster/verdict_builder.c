// SPDX-License-Identifier: Apache-2.0
// Gathers the parts of a verdict in lists that double in the arena, and sorts them at the end.
#include "processors/cluster/verdict_builder.h"

#include "base/sort.h"

#include <stdarg.h>
#include <stdio.h>

enum { ENTITIES_USUAL = 64, EVIDENCE_USUAL = 32, ROOM_FIRST = 4 };

void builder_begin(struct verdict_builder *builder, struct arena *arena, const char *pattern,
                   const char *kind) {
    assert(arena != NULL && pattern != NULL && kind != NULL);
    *builder = (struct verdict_builder){
        .arena = arena,
        .verdict = {.pattern = pattern, .kind = kind, .action = "monitor"},
        .entity_max = ENTITIES_USUAL,
        .evidence_max = EVIDENCE_USUAL,
    };
}

void builder_rate(struct verdict_builder *builder, enum severity severity, int64_t confidence,
                  const char *action) {
    assert(action != NULL && severity <= SEVERITY_CRITICAL);
    builder->verdict.severity = severity;
    builder->verdict.confidence = confidence < 5 ? 5 : confidence > 97 ? 97 : (int)confidence;
    builder->verdict.action = action;
}

// The list with room for one more item: it is full when `count` is a power of two.
static void *with_room(struct arena *arena, void *items, uint32_t count, size_t item_size) {
    if (count != 0 && (count < ROOM_FIRST || (count & (count - 1)) != 0))
        return items;
    uint32_t room = count == 0 ? ROOM_FIRST : 2 * count;
    void *larger = arena_take(arena, room * item_size);
    if (count > 0)
        memcpy(larger, items, count * item_size);
    return larger;
}

static const char *format_list(struct arena *arena, const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    assert(size >= 0);
    char *text = arena_take(arena, (size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, values);
    return text;
}

void builder_entity(struct verdict_builder *builder, const char *kind, enum entity_role role,
                    const char *name) {
    struct verdict *verdict = &builder->verdict;
    if (name == NULL || name[0] == '\0')
        return;
    if (verdict->entity_count == builder->entity_max) {
        verdict->entities_dropped++;
        return;
    }
    verdict->entities = with_room(builder->arena, verdict->entities, verdict->entity_count,
                                  sizeof *verdict->entities);
    verdict->entities[verdict->entity_count++] = (struct entity){kind, slice_of(name), role};
}

static bool has_evidence(const struct verdict *verdict, struct slice uid) {
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (slice_equal(verdict->evidence[i].uid, uid))
            return true;
    return false;
}

void builder_evidence(struct verdict_builder *builder, enum evidence_role role, uint64_t time_ns,
                      const char *uid, const char *format, ...) {
    struct verdict *verdict = &builder->verdict;
    struct slice name = slice_of(uid);
    if (!builder->evidence_in_order && has_evidence(verdict, name))
        return;
    if (verdict->evidence_count == builder->evidence_max) {
        verdict->evidence_dropped++;
        return;
    }
    va_list values;
    va_start(values, format);
    struct slice description = slice_of(format_list(builder->arena, format, values));
    va_end(values);
    verdict->evidence = with_room(builder->arena, verdict->evidence, verdict->evidence_count,
                                  sizeof *verdict->evidence);
    verdict->evidence[verdict->evidence_count++] =
        (struct evidence){name, description, time_ns, time_ns != 0, role, false};
}

void builder_evidence_repeats(struct verdict_builder *builder, const char *uid) {
    struct verdict *verdict = &builder->verdict;
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (slice_equal(verdict->evidence[i].uid, slice_of(uid)))
            verdict->evidence[i].repeats = true;
}

void builder_attribute(struct verdict_builder *builder, const char *key, struct slice value) {
    assert(key != NULL);
    struct verdict *verdict = &builder->verdict;
    if (value.size == 0)
        return;
    assert(verdict->attribute_count < VERDICT_ATTRIBUTES_MAX);
    verdict->attributes = with_room(builder->arena, verdict->attributes, verdict->attribute_count,
                                    sizeof *verdict->attributes);
    verdict->attributes[verdict->attribute_count++] = (struct attribute){key, value};
}

void builder_attribute_format(struct verdict_builder *builder, const char *key, const char *format,
                              ...) {
    va_list values;
    va_start(values, format);
    builder_attribute(builder, key, slice_of(format_list(builder->arena, format, values)));
    va_end(values);
}

void builder_partial(struct verdict_builder *builder, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const char *clause = format_list(builder->arena, format, values);
    va_end(values);
    builder->verdict.partial = true;
    builder->not_seen = builder->not_seen == NULL
                            ? clause
                            : arena_format(builder->arena, "%s; %s", builder->not_seen, clause);
}

// -- texts ----------------------------------------------------------------------------------------

static char capital(char letter) {
    return letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
}

// The words that values begin with when they do not begin with a name.
static const char *const OWN_WORDS[] = {"a",       "all",     "an",        "both",  "collective",
                                        "network", "node",    "operation", "phase", "pod",
                                        "port",    "process", "rank",      "ranks", "the"};

static bool begins_with_own_word(struct slice text) {
    size_t size = 0;
    while (size < text.size && text.data[size] != ' ')
        size++;
    for (size_t i = 0; i < sizeof OWN_WORDS / sizeof *OWN_WORDS; i++)
        if (slice_equal((struct slice){text.data, size}, slice_of(OWN_WORDS[i])))
            return true;
    return false;
}

static struct slice value_of(const struct text_field *fields, struct slice name) {
    for (; fields->name != NULL; fields++)
        if (strlen(fields->name) == name.size &&
            capital(fields->name[0]) == capital(name.data[0]) &&
            memcmp(fields->name + 1, name.data + 1, name.size - 1) == 0)
            return slice_of(fields->value);
    assert(false && "a template names a field that is not filled");
    return SLICE("");
}

// Copies the text when there is somewhere to copy it to; returns where the next one begins.
static size_t append(char *to, size_t at, struct slice text) {
    if (to != NULL && text.size > 0)
        memcpy(to + at, text.data, text.size);
    return at + text.size;
}

static size_t fill(char *to, const char *template, const struct text_field *fields) {
    size_t size = 0;
    while (*template != '\0') {
        size_t plain = strcspn(template, "{");
        size = append(to, size, (struct slice){template, plain});
        template += plain;
        if (*template == '\0')
            break;
        struct slice name = {template + 1, strcspn(template, "}") - 1};
        struct slice value = value_of(fields, name);
        bool rises = name.data[0] == capital(name.data[0]) && begins_with_own_word(value);
        size_t begin = size;
        size = append(to, size, value);
        if (to != NULL && rises)
            to[begin] = capital(to[begin]);
        template += name.size + 2;
    }
    return size;
}

const char *text_fill(struct arena *arena, const char *template, const struct text_field *fields) {
    assert(template != NULL && fields != NULL);
    size_t size = fill(NULL, template, fields);
    char *text = arena_take(arena, size + 1);
    fill(text, template, fields);
    text[size] = '\0';
    return text;
}

void builder_texts(struct verdict_builder *builder, const char *headline, const char *remediation,
                   const struct text_field *fields) {
    assert(headline != NULL && remediation != NULL);
    builder->verdict.headline = slice_of(text_fill(builder->arena, headline, fields));
    builder->verdict.remediation = slice_of(text_fill(builder->arena, remediation, fields));
}

// -- the end --------------------------------------------------------------------------------------

static int compare_attributes(const void *left, const void *right) {
    return strcmp(((const struct attribute *)left)->key, ((const struct attribute *)right)->key);
}

void builder_finish(struct verdict_builder *builder, const struct slice *key, size_t key_count) {
    struct verdict *verdict = &builder->verdict;
    assert(verdict->headline.size > 0 && verdict->remediation.size > 0);
    if (builder->not_seen != NULL)
        builder_attribute(builder, "culprit.not_seen", slice_of(builder->not_seen));
    if (!builder->evidence_in_order)
        verdict_sort_evidence(verdict, builder->arena);
    sort_stable(verdict->attributes, verdict->attribute_count, sizeof *verdict->attributes,
                builder->arena, compare_attributes);
    verdict_sort_entities(verdict);
    verdict_set_times(verdict);
    verdict_set_id(verdict, verdict->pattern, key, key_count);
}

void verdict_add_attribute(struct verdict *verdict, const char *key, struct slice value,
                           struct arena *arena) {
    if (verdict->attribute_count == VERDICT_ATTRIBUTES_MAX)
        return;
    struct attribute *attributes =
        arena_take(arena, (verdict->attribute_count + 1) * sizeof *attributes);
    uint32_t at = 0;
    while (at < verdict->attribute_count && strcmp(verdict->attributes[at].key, key) < 0) {
        attributes[at] = verdict->attributes[at];
        at++;
    }
    attributes[at] = (struct attribute){key, value};
    for (uint32_t i = at; i < verdict->attribute_count; i++)
        attributes[i + 1] = verdict->attributes[i];
    verdict->attributes = attributes;
    verdict->attribute_count++;
}

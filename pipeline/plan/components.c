// SPDX-License-Identifier: Apache-2.0
// Defines the components of the configuration and checks their options.
//
// Each id is looked up among the types of this build and bound by the type's rows; the type's own
// rules are asked only when every option has a valid value. Linear in the ids.
#include "config/problem.h"
#include "config/server_options.h"
#include "config/yaml/document.h"
#include "pipeline/plan/builder.h"

#include <assert.h>
#include <string.h>

enum { TYPES_MAX = 256, PATTERNS_MAX = 1024 };

static const char *component_key(const struct plan_builder *builder, enum component_kind kind,
                                 const char *id) {
    return arena_format(&builder->plan->arena, "%s.%s", plan_section(kind), id);
}

static const char *article(const char *noun) {
    return strchr("aeiou", *noun) == NULL ? "a" : "an";
}

// The type with this name of another kind: the component stands in the wrong section.
static const struct component_type *type_elsewhere(struct component_set set, struct slice name) {
    for (size_t i = 0; i < set.count; i++)
        if (slice_equal(slice_of(set.types[i]->name), name))
            return set.types[i];
    return NULL;
}

// The type of this kind that others call so, and what is to be said of it.
static const struct component_type *type_alias(struct component_set set, enum component_kind kind,
                                               struct slice name, const char **does) {
    for (size_t i = 0; i < set.count; i++)
        for (size_t j = 0; set.types[i]->kind == kind && j < set.types[i]->alias_count; j++)
            if (slice_equal(slice_of(set.types[i]->aliases[j].name), name)) {
                *does = set.types[i]->aliases[j].does;
                return set.types[i];
            }
    return NULL;
}

// Its name, or NULL.
static const char *type_nearest(struct component_set set, enum component_kind kind,
                                const char *name) {
    const char *names[TYPES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < set.count && count < TYPES_MAX; i++)
        if (set.types[i]->kind == kind)
            names[count++] = set.types[i]->name;
    return option_nearest(name, names, count);
}

// Returns the type that was meant, so that what is below it is checked, too; NULL: it is unknown.
static const struct component_type *type_unknown(struct plan_builder *builder,
                                                 enum component_kind kind, struct slice name,
                                                 const struct node_entry *entry, const char *key) {
    assert(kind <= COMPONENT_EXTENSION);
    struct component_set set = builder->input->components;
    if (problem_list_full(builder->binder.problems))
        return NULL;
    const char *type_name = arena_text(&builder->plan->arena, name);
    const char *kind_name = component_kind_name(kind);
    const struct component_type *elsewhere = type_elsewhere(set, name);
    const char *near = type_nearest(set, kind, type_name), *does = NULL;
    const struct component_type *alias = type_alias(set, kind, name, &does);
    if (alias != NULL) {
        problem_add_at(builder->binder.problems, entry->key_where, key,
                       "there is no %s '%s'; use '%s': %s", kind_name, type_name, alias->name,
                       does);
        return NULL; // its options are not those of the other
    }
    if (elsewhere != NULL) {
        const char *other = component_kind_name(elsewhere->kind);
        problem_add_at(builder->binder.problems, entry->key_where, key,
                       "%s is %s %s, not %s %s; put it under %s", type_name, article(other), other,
                       article(kind_name), kind_name, plan_section(elsewhere->kind));
    } else if (near != NULL) {
        problem_add_at(builder->binder.problems, entry->key_where, key,
                       "there is no %s '%s'; did you mean '%s'?", kind_name, type_name, near);
    } else {
        problem_add_at(builder->binder.problems, entry->key_where, key,
                       "there is no %s '%s'; `culprit components` lists what there is", kind_name,
                       type_name);
    }
    return elsewhere == NULL && near != NULL ? component_find(set, kind, slice_of(near)) : NULL;
}

// Ids go into logs, metrics and key paths.
static bool id_good(const char *id) {
    static const char *const LETTERS =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    const char *slash = strchr(id, '/');
    if (slash == NULL)
        return strspn(id, LETTERS) == strlen(id);
    return strspn(id, LETTERS) == (size_t)(slash - id) && slash[1] != '\0' &&
           strspn(slash + 1, LETTERS) == strlen(slash + 1);
}

static struct location builder_locate(void *context, const char *key) {
    const struct plan_builder *builder = context;
    return document_locate(builder->root, key);
}

static bool node_unknown(const struct node *node) {
    if (node == NULL || node->unknown)
        return node != NULL;
    for (uint32_t i = 0; node->type == NODE_LIST && i < node->count; i++)
        if (node->entries[i].value->unknown)
            return true;
    return false;
}

// What was not looked up cannot be wrong.
static void unknown_problems_drop(struct plan_builder *builder, uint32_t from) {
    assert(from <= builder->binder.problems->count);
    struct problem_list *problems = builder->binder.problems;
    uint32_t kept = from;
    for (uint32_t i = from; i < problems->count; i++)
        if (!node_unknown(document_find(builder->root, problems->items[i].key)))
            problems->items[kept++] = problems->items[i];
    problems->count = kept;
}

// The patterns that a route names are those of the processors of this build.
static void route_validate(struct plan_builder *builder, const struct component_type *type,
                           const void *config, struct problem_list *problems) {
    assert(type->exporter.route != NULL);
    const char *names[PATTERNS_MAX];
    size_t count = 0;
    struct component_set set = builder->input->components;
    for (size_t i = 0; i < set.count; i++)
        for (size_t j = 0; j < set.types[i]->pattern_count && count < PATTERNS_MAX; j++)
            names[count++] = set.types[i]->patterns[j].name;
    route_check(type->exporter.route(config), names, count, problems);
}

// The problems that are added until rules_end are those of what stands under `key`.
static uint32_t rules_begin(struct plan_builder *builder, const char *key) {
    struct problem_list *problems = builder->binder.problems;
    assert(problems->prefix == NULL);
    problems->prefix = arena_format(&builder->plan->arena, "%s.", key);
    problems->locate = builder_locate;
    problems->locate_context = builder;
    return problems->count;
}

static void rules_end(struct plan_builder *builder, uint32_t before) {
    struct problem_list *problems = builder->binder.problems;
    problems->prefix = NULL;
    problems->locate = NULL;
    problems->locate_context = NULL;
    unknown_problems_drop(builder, before);
}

void plan_validate_component(struct plan_builder *builder, const struct component_type *type,
                             const void *config, const char *key) {
    struct problem_list *problems = builder->binder.problems;
    uint32_t before = rules_begin(builder, key);
    if (type->validate != NULL)
        type->validate(config, problems);
    if (type->exporter.route != NULL)
        route_validate(builder, type, config, problems);
    rules_end(builder, before);
}

void plan_check_endpoint(struct plan_builder *builder, const char *endpoint, const char *key) {
    if (endpoint == NULL)
        return;
    uint32_t before = rules_begin(builder, key);
    endpoint_check(endpoint, "endpoint", builder->binder.problems);
    rules_end(builder, before);
}

static uint32_t component_add(struct plan_builder *builder, const struct component_type *type,
                              const char *id, const struct bind_source *source) {
    assert(builder->plan->component_count < builder->component_room);
    struct plan *plan = builder->plan;
    void *config = arena_zero(&plan->arena, 1, type->config_size + 1);
    bool good = bind_options(&builder->binder, type->options, type->option_count, source, config);
    if (good)
        plan_validate_component(builder, type, config, source->key);
    plan->components[plan->component_count] = (struct plan_component){
        .type = type, .id = id, .config = config, .where = source->where, .node = source->node};
    return plan->component_count++;
}

static void component_define(struct plan_builder *builder, enum component_kind kind,
                             const struct node_entry *entry) {
    assert(entry->key != NULL);
    assert(builder->definition_count < builder->component_room);
    struct definition *definition = &builder->definitions[builder->definition_count++];
    *definition = (struct definition){kind, entry->key, PLAN_NO_COMPONENT};
    const char *key = component_key(builder, kind, entry->key);
    if (!id_good(entry->key)) {
        problem_add_at(builder->binder.problems, entry->key_where, key,
                       "an id is TYPE or TYPE/NAME of letters, digits, '_', '-' and '.'");
        return;
    }
    struct slice name = {entry->key, strcspn(entry->key, "/")};
    const struct component_type *type = component_find(builder->input->components, kind, name);
    bool mistyped = type == NULL;
    if (mistyped)
        type = type_unknown(builder, kind, name, entry, key);
    if (type == NULL)
        return;
    struct bind_source source = {.node = entry->value, .key = key, .where = entry->key_where};
    definition->component = component_add(builder, type, entry->key, &source);
    // That nobody uses it under this name is no mistake of its own.
    builder->plan->components[definition->component].used = mistyped;
}

static const struct node *section_node(struct plan_builder *builder, enum component_kind kind) {
    const struct node *node = node_child(builder->root, plan_section(kind));
    if (node == NULL || node->type == NODE_MAP || node->type == NODE_NULL)
        return node;
    problem_add_at(builder->binder.problems, node->where, plan_section(kind),
                   "must be a map of %ss by id, not a %s", component_kind_name(kind),
                   node_type_name(node->type));
    return NULL;
}

void plan_define_components(struct plan_builder *builder) {
    assert(builder->root != NULL);
    assert(builder->plan->component_count == 0);
    const struct node *sections[PLAN_SECTION_COUNT];
    size_t count = builder->input->components.count; // a preset may add each once
    for (int kind = 0; kind < PLAN_SECTION_COUNT; kind++) {
        sections[kind] = section_node(builder, (enum component_kind)kind);
        count += sections[kind] == NULL ? 0 : sections[kind]->count;
    }
    struct arena *arena = &builder->plan->arena;
    builder->component_room = (uint32_t)count;
    builder->plan->components = arena_zero(arena, count, sizeof *builder->plan->components);
    builder->definitions = arena_zero(arena, count, sizeof *builder->definitions);
    for (int kind = 0; kind < PLAN_SECTION_COUNT; kind++)
        for (uint32_t i = 0; sections[kind] != NULL && i < sections[kind]->count; i++)
            component_define(builder, (enum component_kind)kind, &sections[kind]->entries[i]);
}

const struct definition *plan_definition(const struct plan_builder *builder,
                                         enum component_kind kind, const char *id) {
    assert(id != NULL);
    for (uint32_t i = 0; i < builder->definition_count; i++)
        if (builder->definitions[i].kind == kind && strcmp(builder->definitions[i].id, id) == 0)
            return &builder->definitions[i];
    return NULL;
}

uint32_t plan_add_default(struct plan_builder *builder, const struct component_type *type,
                          struct location where) {
    struct bind_source source = {.key = component_key(builder, COMPONENT_PROCESSOR, type->name),
                                 .where = where};
    assert(builder->definition_count < builder->component_room);
    struct definition *definition = &builder->definitions[builder->definition_count++];
    *definition = (struct definition){COMPONENT_PROCESSOR, type->name, PLAN_NO_COMPONENT};
    definition->component = component_add(builder, type, type->name, &source);
    return definition->component;
}

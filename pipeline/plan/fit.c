// SPDX-License-Identifier: Apache-2.0
// Checks that what a pipeline lists exists, and that each stage finds what it builds on.
//
// Stages are walked in order with the set of facts given so far; a fact that is missing is said
// once and then taken as given, so that one mistake gives one problem.
#include "config/problem.h"
#include "config/yaml/document.h"
#include "pipeline/plan/builder.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 1200 };

// The id that was meant, which then counts as used.
static const char *id_nearest(struct plan_builder *builder, enum component_kind kind,
                              const char *id) {
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < builder->definition_count && count < NAMES_MAX; i++)
        if (builder->definitions[i].kind == kind)
            names[count++] = builder->definitions[i].id;
    const char *near = option_nearest(id, names, count);
    const struct definition *meant = near == NULL ? NULL : plan_definition(builder, kind, near);
    if (meant != NULL && meant->component != PLAN_NO_COMPONENT)
        builder->plan->components[meant->component].used = true;
    return near;
}

static void id_undefined(struct plan_builder *builder, enum component_kind kind,
                         const struct node *item, const char *key) {
    assert(item->type == NODE_TEXT);
    struct problem_list *problems = builder->binder.problems;
    if (problem_list_full(problems))
        return;
    const char *section = plan_section(kind);
    const char *near = item->expanded ? NULL : id_nearest(builder, kind, item->text);
    struct slice type_name = {item->text, strcspn(item->text, "/")};
    bool type_known = component_find(builder->input->components, kind, type_name) != NULL;
    if (near != NULL)
        problem_add_at(problems, item->where, key,
                       "'%.60s' is not defined under %s; did you mean '%s'?", item->written,
                       section, near);
    else if (type_known && !item->expanded)
        problem_add_at(problems, item->where, key,
                       "'%.60s' is not defined under %s; add '%.60s:' there", item->written,
                       section, item->written);
    else
        problem_add_at(problems, item->where, key, "'%.60s' is not defined under %s", item->written,
                       section);
}

static bool row_listed(const uint32_t *rows, uint32_t count, uint32_t row) {
    for (uint32_t i = 0; i < count; i++)
        if (rows[i] == row)
            return true;
    return false;
}

// One item; false when it stands for no component.
static bool item_resolve(struct plan_builder *builder, enum component_kind kind,
                         const struct node *item, const char *key, uint32_t *rows,
                         uint32_t *count) {
    assert(*count < 2 * PLAN_LIST_MAX);
    if (item->type != NODE_TEXT)
        return false; // said when the list was bound
    if (item->unknown) {
        builder->names_unknown = true;
        return false;
    }
    const struct definition *definition = plan_definition(builder, kind, item->text);
    if (definition == NULL) {
        id_undefined(builder, kind, item, key);
        return false;
    }
    if (definition->component == PLAN_NO_COMPONENT)
        return false; // its own problem has been said
    builder->plan->components[definition->component].used = true;
    if (row_listed(rows, *count, definition->component)) {
        problem_add_at(builder->binder.problems, item->where, key,
                       "'%.60s' stands here twice (a preset counts); list it once", item->written);
        return false;
    }
    rows[(*count)++] = definition->component;
    return true;
}

bool plan_resolve(struct plan_builder *builder, enum component_kind kind, const struct node *list,
                  const char *key, uint32_t *rows, uint32_t *count) {
    assert(rows != NULL && count != NULL);
    struct arena *arena = &builder->plan->arena;
    if (list->type == NODE_TEXT)
        return item_resolve(builder, kind, list, key, rows, count);
    if (list->type != NODE_LIST) {
        builder->names_unknown = true;
        return false; // said when it was bound
    }
    if (list->count > PLAN_LIST_MAX) {
        problem_add_at(builder->binder.problems, list->where, key,
                       "names %u components; at most %d", list->count, PLAN_LIST_MAX);
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; i < list->count; i++) {
        const char *item_key = arena_format(arena, "%s[%u]", key, i);
        good = item_resolve(builder, kind, list->entries[i].value, item_key, rows, count) && good;
    }
    return good;
}

// The first type of processor that gives a fact.
static const struct component_type *giver_type(struct component_set set, enum stage_fact fact) {
    for (size_t i = 0; i < set.count; i++)
        if (set.types[i]->kind == COMPONENT_PROCESSOR && (set.types[i]->gives & fact) != 0)
            return set.types[i];
    return NULL;
}

// The processor of this pipeline at or behind `from` that gives a fact.
static const char *giver_behind(const struct plan_builder *builder,
                                const struct plan_pipeline *pipeline, uint32_t from,
                                enum stage_fact fact) {
    for (uint32_t i = from; i < pipeline->processor_count; i++) {
        const struct plan_component *stage = &builder->plan->components[pipeline->processors[i]];
        if ((stage->type->gives & fact) != 0)
            return stage->id;
    }
    return NULL;
}

struct stage {
    const struct plan_component *component;
    uint32_t behind; // processors from here on come after it
    const char *list;
};

// Where the pipeline names the component: the item, or the preset.
static struct location stage_place(const struct plan_builder *builder,
                                   const struct plan_pipeline *pipeline, const struct stage *stage,
                                   const char *pipeline_key, const char **key) {
    struct arena *arena = &builder->plan->arena;
    const struct node *list = node_child(pipeline->node, stage->list);
    *key = arena_format(arena, "%s.%s", pipeline_key, stage->list);
    for (uint32_t i = 0; list != NULL && list->type == NODE_LIST && i < list->count; i++) {
        const struct node *item = list->entries[i].value;
        if (strcmp(item->text, stage->component->id) != 0)
            continue;
        *key = arena_format(arena, "%s[%u]", *key, i);
        return item->where;
    }
    if (list == NULL || list->type != NODE_TEXT)
        *key = arena_format(arena, "%s.preset", pipeline_key);
    return document_locate(builder->root, *key);
}

static void fact_missing(struct plan_builder *builder, const struct plan_pipeline *pipeline,
                         const struct stage *stage, enum stage_fact fact,
                         const char *pipeline_key) {
    assert((fact & (fact - 1)) == 0);
    const char *key;
    struct location where = stage_place(builder, pipeline, stage, pipeline_key, &key);
    const char *behind = giver_behind(builder, pipeline, stage->behind, fact);
    const struct component_type *giver = giver_type(builder->input->components, fact);
    char advice[256] = "nothing in this build gives it";
    if (behind != NULL)
        snprintf(advice, sizeof advice, "move %.100s before it", behind);
    else if (giver != NULL && stage->component->type->kind == COMPONENT_EXPORTER)
        snprintf(advice, sizeof advice, "add the processor %.100s to the pipeline%s", giver->name,
                 (giver->presets & 1u << PRESET_MEMORY) != 0 ? ", or write preset: memory" : "");
    else if (giver != NULL)
        snprintf(advice, sizeof advice, "put the processor %.100s before it", giver->name);
    problem_add_at(builder->binder.problems, where, key,
                   "%s needs %s, which no stage before it gives; %s", stage->component->id,
                   stage_fact_name(fact), advice);
}

// Says what is missing; returns the facts that hold behind the stage.
static uint32_t stage_check(struct plan_builder *builder, const struct plan_pipeline *pipeline,
                            const struct stage *stage, uint32_t given, const char *pipeline_key) {
    assert(stage->component != NULL);
    const struct component_type *type = stage->component->type;
    uint32_t missing = component_needs(type, stage->component->config) & ~given;
    for (uint32_t left = missing; left != 0; left &= left - 1)
        fact_missing(builder, pipeline, stage, (enum stage_fact)(left & (0u - left)), pipeline_key);
    return given | missing | type->gives;
}

void plan_check_needs(struct plan_builder *builder, const struct plan_pipeline *pipeline,
                      const char *key) {
    assert(pipeline->processor_count == 0 || pipeline->processors != NULL);
    const struct plan_component *components = builder->plan->components;
    uint32_t given = 0;
    for (uint32_t i = 0; i < pipeline->processor_count; i++) {
        struct stage stage = {&components[pipeline->processors[i]], i + 1, "processors"};
        given = stage_check(builder, pipeline, &stage, given, key);
    }
    for (uint32_t i = 0; i < pipeline->exporter_count; i++) {
        struct stage stage = {&components[pipeline->exporters[i]], pipeline->processor_count,
                              "exporters"};
        stage_check(builder, pipeline, &stage, given, key);
    }
}

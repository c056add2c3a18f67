// SPDX-License-Identifier: Apache-2.0
// Defines the pipelines and what each consists of.
//
// A pipeline's lists are resolved to components one by one; whether the stages fit together is
// asked only when all of them are known. Lists are bounded by PLAN_LIST_MAX.
#include "config/problem.h"
#include "config/yaml/document.h"
#include "pipeline/plan/builder.h"

#include <assert.h>
#include <string.h>

static const char *join(const struct plan_builder *builder, const char *path, const char *key) {
    return arena_format(&builder->plan->arena, "%s.%s", path, key);
}

// A pipeline that is being made.
struct draft {
    const char *key; // "service.pipelines.verdicts"
    const struct node_entry *entry;
    struct pipeline_config config;
    uint32_t *processors;
    uint32_t processor_count;
    bool good; // every id is known
};

// One list of a pipeline; true when it names at least one component and all are known.
static bool list_resolve(struct plan_builder *builder, struct draft *draft,
                         enum component_kind kind, uint32_t *rows, uint32_t *count) {
    assert(draft->entry != NULL);
    const char *name = plan_section(kind);
    const struct node *list = node_child(draft->entry->value, name);
    const char *key = join(builder, draft->key, name);
    uint32_t before = *count;
    if (list == NULL || list->type == NODE_NULL)
        return kind == COMPONENT_PROCESSOR; // what is missing was said when it was bound
    bool good = plan_resolve(builder, kind, list, key, rows, count);
    if (kind != COMPONENT_PROCESSOR && good && *count == before) {
        problem_add_at(builder->binder.problems, list->where, key,
                       "names no %s; a pipeline needs at least one", component_kind_name(kind));
        good = false;
    }
    return good;
}

// The preset's processors: the one with the plain id when it is defined, else one with defaults.
static bool preset_resolve(struct plan_builder *builder, struct draft *draft) {
    assert(draft->processors != NULL);
    struct component_set set = builder->input->components;
    struct location where = document_locate(builder->root, join(builder, draft->key, "preset"));
    bool good = true;
    for (size_t i = 0; i < set.count; i++) {
        if ((set.types[i]->presets & 1u << draft->config.preset) == 0)
            continue;
        const struct definition *definition =
            plan_definition(builder, COMPONENT_PROCESSOR, set.types[i]->name);
        uint32_t row = definition != NULL ? definition->component
                                          : plan_add_default(builder, set.types[i], where);
        good = good && row != PLAN_NO_COMPONENT;
        if (row == PLAN_NO_COMPONENT)
            continue;
        builder->plan->components[row].used = true;
        draft->processors[draft->processor_count++] = row;
    }
    return good;
}

// Those that let input in or not come first, wherever they are listed: they are asked before
// anything is read.
static void admitting_first(const struct plan_builder *builder, struct draft *draft) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < draft->processor_count; i++) {
        uint32_t row = draft->processors[i];
        if (builder->plan->components[row].type->processor.admits == NULL)
            continue;
        memmove(&draft->processors[first + 1], &draft->processors[first],
                (i - first) * sizeof *draft->processors);
        draft->processors[first++] = row;
    }
}

static uint32_t *rows_take(struct plan_builder *builder, uint32_t more) {
    return arena_take(&builder->plan->arena, (PLAN_LIST_MAX + more) * sizeof(uint32_t));
}

static void pipeline_make(struct plan_builder *builder, struct draft *draft) {
    assert(builder->plan->pipelines != NULL);
    struct plan *plan = builder->plan;
    uint32_t *receivers = rows_take(builder, 0), *exporters = rows_take(builder, 0);
    struct plan_pipeline *pipeline = &plan->pipelines[plan->pipeline_count++];
    *pipeline = (struct plan_pipeline){.name = draft->entry->key,
                                       .receivers = receivers,
                                       .exporters = exporters,
                                       .timing = draft->config.timing,
                                       .where = draft->entry->key_where,
                                       .node = draft->entry->value};
    draft->processors = rows_take(builder, (uint32_t)builder->input->components.count);
    bool good =
        list_resolve(builder, draft, COMPONENT_RECEIVER, receivers, &pipeline->receiver_count);
    good = preset_resolve(builder, draft) && good;
    good = list_resolve(builder, draft, COMPONENT_PROCESSOR, draft->processors,
                        &draft->processor_count) &&
           good;
    admitting_first(builder, draft);
    good = list_resolve(builder, draft, COMPONENT_EXPORTER, exporters, &pipeline->exporter_count) &&
           good;
    pipeline->processors = draft->processors;
    pipeline->processor_count = draft->processor_count;
    // With a preset that is none, who stands there cannot be told.
    bool preset_known =
        !problem_list_names(builder->binder.problems, join(builder, draft->key, "preset"));
    builder->names_unknown |= !preset_known;
    if (good && preset_known)
        plan_check_needs(builder, pipeline, draft->key);
}

static bool name_good(const char *name) {
    static const char *const LETTERS =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./";
    return strspn(name, LETTERS) == strlen(name);
}

static void pipeline_define(struct plan_builder *builder, const struct node_entry *entry) {
    assert(entry->key != NULL);
    struct draft draft = {.key = join(builder, "service.pipelines", entry->key), .entry = entry};
    struct bind_source source = {.node = entry->value, .key = draft.key, .where = entry->key_where};
    if (!name_good(entry->key))
        problem_add_at(builder->binder.problems, entry->key_where, draft.key,
                       "a pipeline's name has letters, digits, '_', '-', '.' and '/'");
    bind_options(&builder->binder, PLAN_PIPELINE_ROWS.rows, PLAN_PIPELINE_ROWS.count, &source,
                 &draft.config);
    pipeline_make(builder, &draft);
}

static void pipelines_define(struct plan_builder *builder, const struct node *service,
                             struct location where) {
    const struct node_entry *entry = node_entry_find(service, "pipelines");
    const struct node *pipelines = entry == NULL ? NULL : entry->value;
    if (pipelines != NULL && pipelines->type != NODE_MAP && pipelines->type != NODE_NULL) {
        problem_add_at(builder->binder.problems, pipelines->where, "service.pipelines",
                       "must be a map of pipelines by name, not a %s",
                       node_type_name(pipelines->type));
        return;
    }
    if (pipelines == NULL || pipelines->count == 0) {
        problem_add_at(builder->binder.problems, entry == NULL ? where : entry->key_where,
                       "service.pipelines",
                       "no pipeline is defined; add one with receivers and exporters");
        return;
    }
    builder->plan->pipelines =
        arena_zero(&builder->plan->arena, pipelines->count, sizeof *builder->plan->pipelines);
    for (uint32_t i = 0; i < pipelines->count; i++)
        pipeline_define(builder, &pipelines->entries[i]);
}

static void extensions_use(struct plan_builder *builder, const struct node *service) {
    const struct node *list = node_child(service, "extensions");
    uint32_t *rows = rows_take(builder, 0), count = 0;
    if (list != NULL && list->type != NODE_NULL)
        plan_resolve(builder, COMPONENT_EXTENSION, list, "service.extensions", rows, &count);
}

void plan_define_service(struct plan_builder *builder) {
    assert(builder->root != NULL);
    assert(builder->plan->pipeline_count == 0);
    const struct node_entry *entry = node_entry_find(builder->root, "service");
    struct bind_source source = {.node = entry == NULL ? NULL : entry->value,
                                 .key = "service",
                                 .where = entry == NULL ? builder->root->where : entry->key_where,
                                 .also_key = "pipelines"};
    bind_options(&builder->binder, PLAN_SERVICE_ROWS.rows, PLAN_SERVICE_ROWS.count, &source,
                 &builder->plan->settings);
    builder->plan->service = source.node;
    plan_check_endpoint(builder, builder->plan->settings.telemetry.metrics.endpoint,
                        "service.telemetry.metrics");
    if (source.node != NULL && source.node->type != NODE_MAP && source.node->type != NODE_NULL)
        return;
    extensions_use(builder, source.node);
    pipelines_define(builder, source.node, source.where);
}

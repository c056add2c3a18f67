// SPDX-License-Identifier: Apache-2.0
// Chooses the pipeline that runs, its inputs and its outputs.
//
// plan_build does the checking. What analyze and replay change afterwards is put into the built
// plan, not into YAML text: a path may hold any byte, and none of them means anything there.
#include "cli/plan_ends.h"

#include "config/option.h"
#include "pipeline/component/component.h"

#include <assert.h>
#include <string.h>

enum { CONFIG_TEXT_MAX = 64 * 1024 };

static const struct option *option_row(const struct plan_component *component, const char *option) {
    const struct option *row = component->type->options;
    const struct option *end = row + component->type->option_count;
    while (row < end && strcmp(row->name, option) != 0)
        row++;
    assert(row < end &&
           (row->type == OPTION_TEXT || row->type == OPTION_TEXT_LIST || row->type == OPTION_BOOL));
    return row;
}

bool plan_set(struct plan *plan, enum component_kind kind, const char *type, const char *option,
              struct word_list words) {
    assert(option != NULL);
    bool any = false;
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (component->type->kind != kind || !component->used ||
            (type != NULL && strcmp(component->type->name, type) != 0))
            continue;
        const struct option *row = option_row(component, option);
        assert(row->type == OPTION_BOOL || words.count > 0);
        void *field = (char *)(uintptr_t)component->config + row->offset;
        if (row->type == OPTION_BOOL)
            *(bool *)field = true;
        else if (row->type == OPTION_TEXT_LIST)
            *(struct text_list *)field = (struct text_list){words.items, words.count};
        else
            *(const char **)field = words.items[0];
        any = true;
    }
    return any;
}

bool plan_set_text(struct plan *plan, enum component_kind kind, const char *type,
                   const char *option, const char *text) {
    return plan_set(plan, kind, type, option, (struct word_list){&text, 1});
}

int plan_load_default(struct plan *plan, enum analyze_output output, const char *html,
                      const char *queries, const struct plan_request *given,
                      struct invocation *invocation) {
    struct buffer text;
    buffer_init(&text, CONFIG_TEXT_MAX);
    struct error error = {0};
    struct default_config config = {.output = output, .html = html == NULL ? NULL : "page.html"};
    enum status status = default_config_write(&text, &config, &error);
    assert(status == STATUS_OK && !text.failed);
    struct plan_request request = *given;
    assert(given->text == NULL && given->files.count == 0);
    request.text = arena_text(invocation->arena, buffer_slice(&text));
    request.text_name = "(default)";
    buffer_release(&text);
    int code = plan_load(plan, &request, invocation);
    if (code == 0 && html != NULL)
        plan_set_text(plan, COMPONENT_EXPORTER, "html", "path", html);
    if (code == 0 && queries != NULL)
        plan_set_text(plan, COMPONENT_PROCESSOR, "spans", "queries", queries);
    return code;
}

static void name_pipelines(const struct plan *plan, struct buffer *out) {
    for (uint32_t i = 0; i < plan->pipeline_count; i++)
        buffer_append_format(out, "%s\"%s\"", i == 0 ? "" : ", ", plan->pipelines[i].name);
}

static enum status keep_pipeline(struct plan *plan, const char *name, struct error *error) {
    assert(plan->pipeline_count > 0);
    uint32_t kept = 0;
    while (name != NULL && kept < plan->pipeline_count &&
           strcmp(plan->pipelines[kept].name, name) != 0)
        kept++;
    if (kept == plan->pipeline_count) {
        struct buffer names;
        buffer_init(&names, ERROR_MESSAGE_MAX);
        name_pipelines(plan, &names);
        error_set(error, STATUS_USAGE, "unknown pipeline \"%s\"; the configuration has %.*s",
                  name == NULL ? "" : name, (int)names.size, names.data);
        buffer_release(&names);
        return STATUS_USAGE;
    }
    plan->pipelines[0] = plan->pipelines[kept];
    plan->pipeline_count = 1;
    return STATUS_OK;
}

static uint32_t given_facts(const struct plan *plan, const struct plan_pipeline *pipeline) {
    uint32_t facts = 0;
    for (uint32_t i = 0; i < pipeline->processor_count; i++)
        facts |= plan->components[pipeline->processors[i]].type->gives;
    return facts;
}

static enum status check_needs(const struct plan *plan, struct error *error) {
    const struct plan_pipeline *pipeline = &plan->pipelines[0];
    uint32_t given = given_facts(plan, pipeline);
    for (uint32_t i = 0; i < pipeline->exporter_count; i++) {
        const struct plan_component *exporter = &plan->components[pipeline->exporters[i]];
        uint32_t missing = component_needs(exporter->type, exporter->config) & ~given;
        if (missing == 0)
            continue;
        enum stage_fact first = (enum stage_fact)(missing & (0u - missing));
        return error_set(error, STATUS_CONFIG,
                         "the pipeline \"%s\" does not give the %s exporter %s; add the processor "
                         "that does, or write preset: all",
                         pipeline->name, exporter->type->name, stage_fact_name(first));
    }
    return STATUS_OK;
}

// The indices of `from`, moved to where its components now stand.
static const uint32_t *moved_indices(struct plan *plan, const uint32_t *from, uint32_t count,
                                     uint32_t offset) {
    uint32_t *moved = arena_zero(&plan->arena, count, sizeof *moved);
    for (uint32_t i = 0; i < count; i++)
        moved[i] = from[i] + offset;
    return moved;
}

static void mark(struct plan *plan, const uint32_t *indices, uint32_t count) {
    assert(count == 0 || indices != NULL);
    for (uint32_t i = 0; i < count; i++)
        plan->components[indices[i]].used = true;
}

void plan_mark_used(struct plan *plan) {
    for (uint32_t i = 0; i < plan->component_count; i++)
        plan->components[i].used = false;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct plan_pipeline *pipeline = &plan->pipelines[i];
        mark(plan, pipeline->receivers, pipeline->receiver_count);
        mark(plan, pipeline->processors, pipeline->processor_count);
        mark(plan, pipeline->exporters, pipeline->exporter_count);
    }
}

static enum status replace_ends(struct plan *plan, const struct plan *ends, struct error *error) {
    assert(plan->pipeline_count == 1 && ends->pipeline_count > 0);
    uint32_t offset = plan->component_count;
    struct plan_component *all =
        arena_zero(&plan->arena, offset + ends->component_count, sizeof *all);
    memcpy(all, plan->components, offset * sizeof *all);
    memcpy(all + offset, ends->components, ends->component_count * sizeof *all);
    plan->components = all;
    plan->component_count = offset + ends->component_count;

    const struct plan_pipeline *from = &ends->pipelines[0];
    struct plan_pipeline *pipeline = &plan->pipelines[0];
    pipeline->receivers = moved_indices(plan, from->receivers, from->receiver_count, offset);
    pipeline->receiver_count = from->receiver_count;
    pipeline->exporters = moved_indices(plan, from->exporters, from->exporter_count, offset);
    pipeline->exporter_count = from->exporter_count;

    plan_mark_used(plan);
    return check_needs(plan, error);
}

int plan_load_between(struct plan *plan, const struct plan *ends,
                      const struct plan_request *request, const char *pipeline,
                      struct invocation *invocation) {
    struct plan_request inner = *request;
    inner.ends_unused = true;
    int code = plan_load(plan, &inner, invocation);
    if (code != 0)
        return code;
    if (!request->quiet && pipeline == NULL && plan->pipeline_count > 1) {
        buffer_append_format(invocation->err,
                             "using the first of %u pipelines, \"%s\"; --pipeline names another\n",
                             plan->pipeline_count, plan->pipelines[0].name);
        invocation_say(invocation);
    }
    struct error error = {0};
    if (keep_pipeline(plan, pipeline, &error) == STATUS_OK &&
        replace_ends(plan, ends, &error) == STATUS_OK)
        return 0;
    plan_release(plan);
    return invocation_fail(invocation, &error);
}

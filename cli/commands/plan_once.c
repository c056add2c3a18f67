// SPDX-License-Identifier: Apache-2.0
// Reduces a configuration to what can run once, over inputs that end.
//
// The same file serves the sidecar and a single run over what is there: files are read to their
// end, and what has no end is left out, each logged once. Linear in what the pipelines list.
#include "cli/commands/plan_once.h"

#include "base/log.h"
#include "cli/plan_ends.h"
#include "pipeline/component/component.h"
#include "pipeline/plan/plan.h"

#include <assert.h>

typedef bool component_rule(const struct component_type *type);

static bool receiver_ends(const struct component_type *type) {
    return type->receiver.list != NULL;
}

static bool exporter_delivers(const struct component_type *type) {
    return type->exporter.send != NULL;
}

// A copy of the list with those that keep to the rule.
static const uint32_t *kept_components(struct plan *plan, const uint32_t *indices, uint32_t *count,
                                       component_rule *rule) {
    assert(count != NULL && rule != NULL);
    uint32_t *kept = arena_zero(&plan->arena, *count, sizeof *kept);
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (rule(plan->components[indices[i]].type))
            kept[kept_count++] = indices[i];
    *count = kept_count;
    return kept;
}

// The log counts what repeats of one component, so each is said under its own name.
static void log_left_out(struct plan *plan, const struct plan_component *component,
                         const char *why) {
    const char *site = arena_format(&plan->arena, "%s/%s",
                                    component_kind_name(component->type->kind), component->id);
    log_write(LOG_INFO, (struct log_site){"C1020", site}, "left out: %s", why);
}

static void log_components(struct plan *plan) {
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        const struct component_type *type = component->type;
        if (!component->used)
            continue;
        if (type->kind == COMPONENT_RECEIVER && !receiver_ends(type))
            log_left_out(plan, component,
                         "its input has no end, and --once reads inputs to their end");
        if (type->kind == COMPONENT_EXPORTER && !exporter_delivers(type))
            log_left_out(plan, component, "it only answers while culprit runs");
    }
}

static void append_endless(const struct plan *plan, struct buffer *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (component->used && component->type->kind == COMPONENT_RECEIVER &&
            !receiver_ends(component->type))
            buffer_append_format(out, "%s%s", count++ == 0 ? "" : ", ", component->id);
    }
}

static enum status nothing_left(const struct plan *plan, struct error *error) {
    struct buffer ids;
    buffer_init(&ids, ERROR_MESSAGE_MAX / 2);
    append_endless(plan, &ids);
    if (ids.size > 0)
        error_set(
            error, STATUS_CONFIG,
            "--once reads inputs to their end, and those of %.*s have none; leave out --once, "
            "or add a file receiver to a pipeline",
            (int)ids.size, ids.data);
    else
        error_set(error, STATUS_CONFIG,
                  "no pipeline has an exporter that delivers anything with --once; leave out "
                  "--once, or add one such as json");
    buffer_release(&ids);
    return STATUS_CONFIG;
}

enum status plan_keep_finite(struct plan *plan, struct error *error) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        struct plan_pipeline pipeline = plan->pipelines[i];
        pipeline.receivers =
            kept_components(plan, pipeline.receivers, &pipeline.receiver_count, receiver_ends);
        pipeline.exporters =
            kept_components(plan, pipeline.exporters, &pipeline.exporter_count, exporter_delivers);
        if (pipeline.receiver_count > 0 && pipeline.exporter_count > 0)
            plan->pipelines[kept++] = pipeline;
        else
            log_write(LOG_INFO,
                      (struct log_site){"C1020", arena_format(&plan->arena, "service/pipelines/%s",
                                                              pipeline.name)},
                      "left out: --once leaves it without %s",
                      pipeline.receiver_count == 0 ? "a receiver" : "an exporter");
    }
    if (kept == 0)
        return nothing_left(plan, error);
    plan->pipeline_count = kept;
    log_components(plan);
    plan_mark_used(plan); // no extension: those serve what goes on
    return STATUS_OK;
}

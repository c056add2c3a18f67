// SPDX-License-Identifier: Apache-2.0
// What happens to my data, and what is left after a crash?
//
// Said from what the plan lists and from the options that decide it, so that it cannot differ from
// what runs.
#include "cli/guarantees.h"

#include "cli/figures.h"

static void append_ids(struct buffer *out, const struct plan *plan, const uint32_t *indices,
                       uint32_t count, const char *between) {
    for (uint32_t i = 0; i < count; i++)
        buffer_append_format(out, "%s%s", i == 0 ? "" : between, plan->components[indices[i]].id);
}

void pipeline_describe(struct buffer *out, const struct plan *plan,
                       const struct plan_pipeline *pipeline) {
    append_ids(out, plan, pipeline->receivers, pipeline->receiver_count, ", ");
    buffer_append_text(out, " → ");
    append_ids(out, plan, pipeline->processors, pipeline->processor_count, " → ");
    buffer_append_text(out, pipeline->processor_count == 0 ? "" : " → ");
    append_ids(out, plan, pipeline->exporters, pipeline->exporter_count, ", ");
    buffer_append_text(out, "; evaluates every ");
    char duration[OPTION_VALUE_MAX];
    option_format_duration(pipeline->timing.evaluate_every, duration);
    buffer_append_text(out, duration);
    buffer_append_text(out, ", waits ");
    option_format_duration(pipeline->timing.allowed_lateness, duration);
    buffer_append_text(out, duration);
    buffer_append_text(out, " for late events");
}

// The word that was chosen for the option `name`, or NULL when the component has no such choice.
static const char *chosen(const struct plan_component *component, const char *name) {
    for (size_t i = 0; i < component->type->option_count; i++) {
        const struct option *row = &component->type->options[i];
        if (row->type == OPTION_CHOICE && strcmp(row->name, name) == 0)
            return row->choices[*(const int *)(const void *)((const char *)component->config +
                                                             row->offset)];
    }
    return NULL;
}

void pipeline_guarantees(struct buffer *out, const struct plan *plan,
                         const struct plan_pipeline *pipeline) {
    buffer_append_text(out, "State is kept in memory only.");
    for (uint32_t i = 0; i < pipeline->receiver_count; i++) {
        const struct plan_component *receiver = &plan->components[pipeline->receivers[i]];
        const char *start_at = chosen(receiver, "start_at");
        if (start_at == NULL)
            continue;
        if (strcmp(start_at, "beginning") == 0)
            buffer_append_format(out,
                                 " After a crash or restart %s reads its files again from the "
                                 "beginning (start_at: beginning), so nothing is lost while they "
                                 "are there, and verdicts may be written again with the same id.",
                                 receiver->id);
        else
            buffer_append_format(out,
                                 " After a crash or restart %s goes on at the end of its files "
                                 "(start_at: %s): what was written meanwhile is not read, and what "
                                 "was known before is forgotten.",
                                 receiver->id, start_at);
    }
}

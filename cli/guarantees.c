// SPDX-License-Identifier: Apache-2.0
// What happens to my data, and what is left after a crash?
//
// Said from what the plan lists and from the options that decide it, so that it cannot differ from
// what runs.
#include "cli/guarantees.h"

#include "cli/figures.h"

#include <string.h>

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

static bool has_store(const struct plan *plan) {
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (component->used && component->type->extension.store != NULL)
            return true;
    }
    return false;
}

static void exporter_guarantee(struct buffer *out, const struct plan_component *exporter,
                               bool store) {
    const struct exporter_calls *calls = &exporter->type->exporter;
    if (calls->send == NULL)
        return;
    const struct sending_config *sending =
        calls->sending == NULL ? &sending_defaults : calls->sending(exporter->config);
    char text[OPTION_VALUE_MAX];
    if (!sending->retry.enabled) {
        buffer_append_format(out, " What %s cannot deliver at once is dropped.", exporter->id);
        return;
    }
    if (sending->retry.max_elapsed_time.ns > 0) {
        option_format_duration(sending->retry.max_elapsed_time, text);
        buffer_append_format(out, " What %s cannot deliver for %s is dropped.", exporter->id, text);
        return;
    }
    option_format_size(sending->queue.queue_size, text);
    buffer_append_format(out,
                         " While %s cannot deliver, up to %s wait%s; then this pipeline's input "
                         "waits%s.",
                         exporter->id, text, store ? " in the store" : " in memory",
                         store ? ", and no other's" : "");
}

void pipeline_guarantees(struct buffer *out, const struct plan *plan,
                         const struct plan_pipeline *pipeline) {
    bool store = has_store(plan);
    char interval[OPTION_VALUE_MAX];
    option_format_duration(plan->checkpoint_interval, interval);
    if (store)
        buffer_append_format(out,
                             "State, what waits to be delivered, and how far each input was read "
                             "are written to the store together, every %s while they change; after "
                             "a crash all goes on from there, and verdicts come out once, with the "
                             "same bytes.",
                             interval);
    else
        buffer_append_text(out, "State is kept in memory only (no file_storage extension).");
    for (uint32_t i = 0; i < pipeline->receiver_count; i++) {
        const struct plan_component *receiver = &plan->components[pipeline->receivers[i]];
        if (receiver->type->receiver.guarantee != NULL)
            receiver->type->receiver.guarantee(receiver->config, receiver->id, store, out);
    }
    for (uint32_t i = 0; i < pipeline->exporter_count; i++)
        exporter_guarantee(out, &plan->components[pipeline->exporters[i]], store);
}

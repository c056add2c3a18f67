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

static bool has_store(const struct plan *plan) {
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (component->used && component->type->extension.store != NULL)
            return true;
    }
    return false;
}

static bool is_type(const struct plan_component *component, const char *name) {
    return strcmp(component->type->name, name) == 0;
}

static void file_guarantee(struct buffer *out, const struct plan_component *receiver, bool store) {
    const char *start_at = chosen(receiver, "start_at");
    bool beginning = strcmp(start_at, "beginning") == 0;
    if (store)
        buffer_append_format(out,
                             " %s goes on at the line where it was; files that appeared meanwhile "
                             "are read from their beginning.",
                             receiver->id);
    else if (beginning)
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

static void http_guarantee(struct buffer *out, const struct plan_component *receiver) {
    const char *ack = chosen(receiver, "ack");
    if (strcmp(ack, "stored") == 0)
        buffer_append_format(out,
                             " %s answers 200 only when the request is on the disk: what was "
                             "acknowledged survives a crash (ack: stored).",
                             receiver->id);
    else
        buffer_append_format(out,
                             " What %s acknowledged since the last checkpoint is lost in a crash "
                             "(ack: accepted); ack: stored keeps it.",
                             receiver->id);
}

static void kafka_guarantee(struct buffer *out, const struct plan_component *receiver, bool store) {
    buffer_append_format(out,
                         store ? " %s commits an offset only when the records before it are in "
                                 "the store, and takes up where the store is."
                               : " %s commits an offset when the records before it have gone "
                                 "through the pipeline; after a restart it reads the time of its "
                                 "rewind option again, and verdicts may come again with the same "
                                 "id.",
                         receiver->id);
}

static void receiver_guarantee(struct buffer *out, const struct plan_component *receiver,
                               bool store) {
    if (is_type(receiver, "file"))
        file_guarantee(out, receiver, store);
    else if (is_type(receiver, "http"))
        http_guarantee(out, receiver);
    else if (is_type(receiver, "kafka"))
        kafka_guarantee(out, receiver, store);
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
    for (uint32_t i = 0; i < pipeline->receiver_count; i++)
        receiver_guarantee(out, &plan->components[pipeline->receivers[i]], store);
    for (uint32_t i = 0; i < pipeline->exporter_count; i++)
        exporter_guarantee(out, &plan->components[pipeline->exporters[i]], store);
}

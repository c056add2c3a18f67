// SPDX-License-Identifier: Apache-2.0
// What happens to my data, and what is left after a crash?
//
// Said from what the plan lists and from the options that decide it, so that it cannot differ from
// what runs.
#include "cli/guarantees.h"

#include "base/memory.h"
#include "cli/figures.h"

#include <string.h>

enum { TEXT_MAX = 64 * 1024 };

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
                               const char *id, bool store) {
    const struct exporter_calls *calls = &exporter->type->exporter;
    if (calls->send == NULL)
        return;
    const struct sending_config *sending =
        calls->sending == NULL ? &sending_defaults : calls->sending(exporter->config);
    char text[OPTION_VALUE_MAX];
    if (!sending->retry.enabled) {
        buffer_append_format(out, " What %s cannot deliver at once is dropped.", id);
        return;
    }
    if (sending->retry.max_elapsed_time.ns > 0) {
        option_format_duration(sending->retry.max_elapsed_time, text);
        buffer_append_format(out, " What %s cannot deliver for %s is dropped.", id, text);
        return;
    }
    option_format_size(sending->queue.queue_size, text);
    buffer_append_format(out,
                         " While %s cannot deliver, up to %s wait%s; then the input of its "
                         "pipeline waits%s.",
                         id, text, store ? " in the store" : " in memory",
                         store ? ", and no other's" : "");
}

// The sentence of one component, under the name `id`; it begins with a space.
static void component_guarantee(struct buffer *out, const struct plan_component *component,
                                const char *id, bool store) {
    if (component->type->kind == COMPONENT_EXPORTER)
        exporter_guarantee(out, component, id, store);
    else if (component->type->receiver.guarantee != NULL)
        component->type->receiver.guarantee(component->config, id, store, out);
}

// Components of one kind, and which of them have had their say.
struct speakers {
    const struct plan *plan;
    const uint32_t *indices;
    uint32_t count;
    bool *said;
    bool store;
};

static bool same_words(const struct plan_component *a, const struct plan_component *b, bool store) {
    struct buffer one, other;
    buffer_init(&one, TEXT_MAX);
    buffer_init(&other, TEXT_MAX);
    component_guarantee(&one, a, "", store);
    component_guarantee(&other, b, "", store);
    bool same = slice_equal(buffer_slice(&one), buffer_slice(&other));
    buffer_release(&one);
    buffer_release(&other);
    return same;
}

// "file", or "each of file/a, file/b and file/c": all that say the same as the one at `first`.
static void append_speakers(struct buffer *out, struct speakers *speakers, uint32_t first) {
    const struct plan_component *all = speakers->plan->components;
    const struct plan_component *component = &all[speakers->indices[first]];
    uint32_t same = 0, at = 0;
    for (uint32_t i = first; i < speakers->count; i++) {
        bool joins = !speakers->said[i] &&
                     same_words(component, &all[speakers->indices[i]], speakers->store);
        same += joins;
    }
    if (same > 1)
        buffer_append_text(out,
                           component->type->kind == COMPONENT_EXPORTER ? "one of " : "each of ");
    for (uint32_t i = first; i < speakers->count; i++) {
        const struct plan_component *other = &all[speakers->indices[i]];
        if (speakers->said[i] || !same_words(component, other, speakers->store))
            continue;
        speakers->said[i] = true;
        buffer_append_text(out, at == 0 ? "" : at + 1 == same ? " and " : ", ");
        buffer_append_text(out, other->id);
        at++;
    }
}

// Each sentence once, with all whom it is about; `between` goes before each.
static void append_sentences(struct buffer *out, struct speakers *speakers, const char *between) {
    speakers->said = memory_zero(speakers->count, sizeof *speakers->said);
    for (uint32_t i = 0; i < speakers->count; i++) {
        if (speakers->said[i])
            continue;
        const struct plan_component *component = &speakers->plan->components[speakers->indices[i]];
        struct buffer names, sentence;
        buffer_init(&names, TEXT_MAX);
        buffer_init(&sentence, TEXT_MAX);
        append_speakers(&names, speakers, i);
        buffer_append_char(&names, '\0');
        component_guarantee(&sentence, component, names.data, speakers->store);
        if (sentence.size > 1) {
            if (strncmp(sentence.data + 1, "each of ", 8) == 0)
                sentence.data[1] = 'E';
            buffer_append_text(out, between);
            buffer_append(out, (struct slice){sentence.data + 1, sentence.size - 1});
        }
        buffer_release(&names);
        buffer_release(&sentence);
    }
    memory_give(speakers->said);
}

static void append_state(struct buffer *out, const struct plan *plan, bool store) {
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
}

void pipeline_guarantees(struct buffer *out, const struct plan *plan,
                         const struct plan_pipeline *pipeline) {
    bool store = has_store(plan);
    struct speakers receivers = {plan, pipeline->receivers, pipeline->receiver_count, NULL, store};
    struct speakers exporters = {plan, pipeline->exporters, pipeline->exporter_count, NULL, store};
    append_state(out, plan, store);
    append_sentences(out, &receivers, " ");
    append_sentences(out, &exporters, " ");
}

static void append_kind(struct buffer *out, const struct plan *plan, enum component_kind kind,
                        const char *between) {
    uint32_t *indices = memory_zero(plan->component_count, sizeof *indices);
    struct speakers speakers = {.plan = plan, .indices = indices, .store = has_store(plan)};
    for (uint32_t i = 0; i < plan->component_count; i++)
        if (plan->components[i].used && plan->components[i].type->kind == kind)
            indices[speakers.count++] = i;
    append_sentences(out, &speakers, between);
    memory_give(indices);
}

void plan_guarantees(struct buffer *out, const struct plan *plan, const char *between) {
    buffer_append_text(out, between);
    append_state(out, plan, has_store(plan));
    append_kind(out, plan, COMPONENT_RECEIVER, between);
    append_kind(out, plan, COMPONENT_EXPORTER, between);
}

// SPDX-License-Identifier: Apache-2.0
// Describes what a configuration guarantees: what happens to data, and what is left after a crash.
//
// The sentences come from the plan and the options that decide it, so they match what runs.
#include "cli/guarantees.h"

#include "base/memory.h"
#include "cli/figures.h"
#include "config/option.h"
#include "pipeline/component/component.h"
#include "pipeline/component/sending.h"
#include "pipeline/model/observation.h"

#include <assert.h>
#include <string.h>

enum { TEXT_MAX = 64 * 1024, ARENA_BLOCK = 16 * 1024 };

static void append_ids(struct buffer *out, const struct plan *plan, const uint32_t *indices,
                       uint32_t count, const char *between) {
    assert(count == 0 || indices != NULL);
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

void pipeline_kinds(struct buffer *out, const struct plan *plan,
                    const struct plan_pipeline *pipeline, const char *between) {
    const char *before = "";
    for (uint32_t class = 0; class < EVENT_CLASS_COUNT; class ++) {
        const char *name = event_class_name(class);
        if (name == NULL || !plan_pipeline_takes(plan, pipeline, class))
            continue;
        buffer_append_format(out, "%s%s", before, name);
        before = between;
    }
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

// The sentence of one component, under the name `id`, without the blank that it begins with. In the
// arena.
static const char *sentence_of(const struct plan_component *component, const char *id, bool store,
                               struct arena *arena) {
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    if (component->type->kind == COMPONENT_EXPORTER)
        exporter_guarantee(&text, component, id, store);
    else if (component->type->receiver.guarantee != NULL)
        component->type->receiver.guarantee(component->config, id, store, &text);
    struct slice said = buffer_slice(&text);
    if (said.size > 0)
        said = (struct slice){said.data + 1, said.size - 1};
    const char *sentence = arena_text(arena, said);
    buffer_release(&text);
    return sentence;
}

// "file", or "each of file/a, file/b and file/c": the component at `first` and those behind it of
// which the same is said, whose texts are then NULL.
static const char *names_of(const struct plan *plan, const uint32_t *indices, uint32_t count,
                            uint32_t first, const char **texts, struct arena *arena) {
    assert(first < count && texts[first] != NULL);
    const struct plan_component *one = &plan->components[indices[first]];
    const char *text = texts[first], *names = one->id, *last = NULL;
    for (uint32_t i = first + 1; i < count; i++) {
        if (texts[i] == NULL || strcmp(texts[i], text) != 0)
            continue;
        texts[i] = NULL;
        names = last == NULL ? names : arena_format(arena, "%s, %s", names, last);
        last = plan->components[indices[i]].id;
    }
    if (last == NULL)
        return names;
    return arena_format(arena, "%s of %s and %s",
                        one->type->kind == COMPONENT_EXPORTER ? "one" : "each", names, last);
}

// Each sentence once, with all whom it is about; `between` goes before each.
static void append_sentences(struct buffer *out, const struct plan *plan, const uint32_t *indices,
                             uint32_t count, const char *between) {
    bool store = has_store(plan);
    struct arena arena;
    arena_init(&arena, ARENA_BLOCK);
    const char **texts = arena_zero(&arena, count + 1, sizeof *texts);
    for (uint32_t i = 0; i < count; i++)
        texts[i] = sentence_of(&plan->components[indices[i]], "", store, &arena);
    for (uint32_t i = 0; i < count; i++) {
        if (texts[i] == NULL || texts[i][0] == '\0')
            continue;
        const char *names = names_of(plan, indices, count, i, texts, &arena);
        const char *text = sentence_of(&plan->components[indices[i]], names, store, &arena);
        bool each = strncmp(text, "each of ", 8) == 0;
        buffer_append_format(out, "%s%s%s", between, each ? "E" : "", text + each);
    }
    arena_release(&arena);
}

static void append_state(struct buffer *out, const struct plan *plan, bool store) {
    char interval[OPTION_VALUE_MAX];
    option_format_duration(plan->settings.checkpoint_interval, interval);
    if (store)
        buffer_append_format(out,
                             "State, output that waits for delivery, and the offset of each input "
                             "are written to the store together, every %s while they change; after "
                             "a crash culprit continues from there, and each verdict is written "
                             "once, with the same bytes.",
                             interval);
    else
        buffer_append_text(out, "State is kept in memory only (no file_storage extension).");
}

void pipeline_guarantees(struct buffer *out, const struct plan *plan,
                         const struct plan_pipeline *pipeline) {
    assert(pipeline->receiver_count > 0 && pipeline->exporter_count > 0);
    append_state(out, plan, has_store(plan));
    append_sentences(out, plan, pipeline->receivers, pipeline->receiver_count, " ");
    append_sentences(out, plan, pipeline->exporters, pipeline->exporter_count, " ");
}

static void append_kind(struct buffer *out, const struct plan *plan, enum component_kind kind,
                        const char *between) {
    uint32_t *indices = memory_zero(plan->component_count, sizeof *indices), count = 0;
    for (uint32_t i = 0; i < plan->component_count; i++)
        if (plan->components[i].used && plan->components[i].type->kind == kind)
            indices[count++] = i;
    append_sentences(out, plan, indices, count, between);
    memory_give(indices);
}

void plan_guarantees(struct buffer *out, const struct plan *plan, const char *between) {
    buffer_append_text(out, between);
    append_state(out, plan, has_store(plan));
    append_kind(out, plan, COMPONENT_RECEIVER, between);
    append_kind(out, plan, COMPONENT_EXPORTER, between);
}

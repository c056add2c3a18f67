// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/component.h"

#include "pipeline/model/observation.h"

#include <assert.h>

const char *const PRESET_NAMES[] = {"none", "memory", "all", NULL};

const char *component_kind_name(enum component_kind kind) {
    static const char *const NAMES[] = {"receiver", "processor", "exporter", "extension"};
    assert(kind <= COMPONENT_EXTENSION);
    return NAMES[kind];
}

const char *stage_fact_name(enum stage_fact fact) {
    static const char *const NAMES[] = {"the choice of jobs",
                                        "samples of each rank",
                                        "a clock offset for each rank",
                                        "a memory spike for each rank",
                                        "the suspects",
                                        "the suspects' phases",
                                        "verdicts",
                                        "spans"};
    assert(fact >= FACT_JOBS && fact <= FACT_SPANS && (fact & (fact - 1)) == 0);
    return NAMES[__builtin_ctz(fact)];
}

const struct component_type *component_find(struct component_set set, enum component_kind kind,
                                            struct slice name) {
    assert(name.data != NULL);
    for (size_t i = 0; i < set.count; i++)
        if (set.types[i]->kind == kind && slice_equal(slice_of(set.types[i]->name), name))
            return set.types[i];
    return NULL;
}

uint32_t component_needs(const struct component_type *type, const void *config) {
    bool events = config != NULL && type->exporter.takes_events != NULL &&
                  type->exporter.takes_events(config);
    if (!events && config != NULL && type->exporter.needs != NULL)
        return type->exporter.needs(config);
    return events ? 0 : type->needs;
}

enum status component_start(const struct component_type *type, void *instance, const void *config,
                            const struct component_context *context, struct error *error) {
    assert(type->instance_size == 0 || instance != NULL);
    state_rows_init(type->state_rows, type->state_row_count, instance);
    return type->start == NULL ? STATUS_OK : type->start(instance, config, context, error);
}

void component_list_state(const struct component_type *type, void *instance,
                          struct state_list *list) {
    assert(type->state_row_count == 0 || instance != NULL);
    state_rows_list(type->state_rows, type->state_row_count, instance, list);
    if (type->state != NULL)
        type->state(instance, list);
}

void component_restored(const struct component_type *type, void *instance) {
    assert(type->state_row_count == 0 || instance != NULL);
    state_rows_restored(type->state_rows, type->state_row_count, instance);
    if (type->restored != NULL)
        type->restored(instance);
}

void component_stop(const struct component_type *type, void *instance) {
    assert(type->state_row_count == 0 || instance != NULL);
    if (type->stop != NULL)
        type->stop(instance);
    state_rows_release(type->state_rows, type->state_row_count, instance);
}

static bool takes_class(const struct component_type *type, uint32_t class) {
    enum event_kind kind = event_class_kind(class);
    if ((type->takes >> kind & 1) == 0 || kind != EVENT_OBSERVATION || type->observations == NULL)
        return (type->takes >> kind & 1) != 0;
    const uint8_t *observation = type->observations;
    uint32_t wanted = class - EVENT_CLASS_BASE;
    while (*observation != OBSERVATION_NONE && *observation != wanted)
        observation++;
    return *observation != OBSERVATION_NONE;
}

bool component_takes(const struct component_type *type, const void *config, uint32_t class) {
    if (type->kind == COMPONENT_EXPORTER)
        return config != NULL && type->exporter.takes_events != NULL &&
               type->exporter.takes_events(config);
    // Those that do not say look at telemetry: what they give is made of it.
    bool samples = (type->gives & (FACT_SERIES | FACT_PHASES)) != 0;
    return type->kind == COMPONENT_PROCESSOR &&
           (takes_class(type, class) || (samples && class == EVENT_CLASS_TELEMETRY));
}

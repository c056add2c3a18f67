// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/component.h"

#include <assert.h>

const char *component_kind_name(enum component_kind kind) {
    static const char *const NAMES[] = {"receiver", "processor", "exporter", "extension"};
    return NAMES[kind];
}

const char *stage_fact_name(enum stage_fact fact) {
    switch (fact) {
    case FACT_JOBS:
        return "the choice of jobs";
    case FACT_SERIES:
        return "samples of each rank";
    case FACT_ALIGNMENT:
        return "a clock offset for each rank";
    case FACT_SPIKES:
        return "a memory spike for each rank";
    case FACT_SUSPECTS:
        return "the suspects";
    case FACT_PHASES:
        return "the suspects' phases";
    case FACT_VERDICTS:
        return "verdicts";
    case FACT_SPANS:
        return "spans";
    }
    assert(false && "not one fact");
    return "";
}

const struct component_type *component_find(struct component_set set, enum component_kind kind,
                                            struct slice name) {
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

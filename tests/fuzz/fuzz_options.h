// SPDX-License-Identifier: Apache-2.0
// A component's options with their defaults, for targets that start one.
#pragma once

#include "base/memory.h"
#include "pipeline/component/component.h"

#include <stdlib.h>

static inline void fuzz_set_default(const struct option *row, void *field) {
    char why[160];
    switch (row->type) {
    case OPTION_BOOL:
        *(bool *)field = strcmp(row->default_value, "true") == 0;
        return;
    case OPTION_INT:
        *(int64_t *)field = strtoll(row->default_value, NULL, 10);
        return;
    case OPTION_RATIO:
        *(double *)field = strtod(row->default_value, NULL);
        return;
    case OPTION_DURATION:
        if (!option_parse_duration(row->default_value, field, why))
            abort();
        return;
    case OPTION_SIZE:
        if (!option_parse_size(row->default_value, field, why))
            abort();
        return;
    default:
        abort();
    }
}

// To be given back with memory_give.
static inline void *fuzz_options(const struct component_type *type) {
    char *config = memory_zero(1, type->config_size);
    for (size_t i = 0; i < type->option_count; i++)
        if (type->options[i].default_value != NULL)
            fuzz_set_default(&type->options[i], config + type->options[i].offset);
    return config;
}

static inline const struct option *fuzz_option(const struct component_type *type,
                                               const char *name) {
    for (size_t i = 0; i < type->option_count; i++)
        if (strcmp(type->options[i].name, name) == 0)
            return &type->options[i];
    abort();
}

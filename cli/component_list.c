// SPDX-License-Identifier: Apache-2.0
#include "cli/component_list.h"

static const struct component_type *const types[] = {
#define COMPONENT(kind, name) &kind##_##name,
#include "cli/components.def"
#undef COMPONENT
};

struct component_set component_list(void) {
    return (struct component_set){types, sizeof(types) / sizeof(types[0])};
}

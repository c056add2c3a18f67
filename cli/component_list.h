// SPDX-License-Identifier: Apache-2.0
// The components of this build (components.def), declared, and as one set.
#pragma once

#include "pipeline/component/component.h"

#define COMPONENT(kind, name) extern const struct component_type kind##_##name;
#include "cli/components.def"
#undef COMPONENT

struct component_set component_list(void);

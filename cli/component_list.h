// SPDX-License-Identifier: Apache-2.0
// THE list of components of this build: a new one is one line in component_list.c.
#pragma once

#include "pipeline/component/component.h"

struct component_set component_list(void);

// SPDX-License-Identifier: Apache-2.0
// The processor that keeps the samples of each rank. See rank_group/README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type processor_rank_group;

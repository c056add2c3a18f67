// SPDX-License-Identifier: Apache-2.0
// See pod_evicted.md.
#pragma once

#include "pipeline/component.h"

extern const struct component_type processor_pod_evicted;

// SPDX-License-Identifier: Apache-2.0
// See pod_evicted/README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type processor_pod_evicted;

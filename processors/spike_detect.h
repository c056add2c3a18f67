// SPDX-License-Identifier: Apache-2.0
// See spike_detect/README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type processor_spike_detect;

// SPDX-License-Identifier: Apache-2.0
// See thermal_throttle.md.
#pragma once

#include "pipeline/component.h"

extern const struct component_type processor_thermal_throttle;

// SPDX-License-Identifier: Apache-2.0
// See phase_attribution/README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type processor_phase_attribution;

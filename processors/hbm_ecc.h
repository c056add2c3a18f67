// SPDX-License-Identifier: Apache-2.0
// See hbm_ecc.md.
#pragma once

#include "pipeline/component.h"

extern const struct component_type processor_hbm_ecc;

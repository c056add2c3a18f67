// SPDX-License-Identifier: Apache-2.0
// See hbm_ecc/README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type processor_hbm_ecc;

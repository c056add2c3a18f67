// SPDX-License-Identifier: Apache-2.0
// See pcie_aer.md.
#pragma once

#include "pipeline/component.h"

extern const struct component_type processor_pcie_aer;

// SPDX-License-Identifier: Apache-2.0
// Builds the verdict about a PCI Express device with errors.
#pragma once

#include "processors/cluster/verdict_builder.h"
#include "processors/pcie_aer/facts.h"

// Everything but its state.
void aer_verdict_build(const struct aer_facts *facts, const struct aer_incident *incident,
                       struct verdict_builder *builder);

// SPDX-License-Identifier: Apache-2.0
// What people read of a PCI Express device with errors.
#pragma once

#include "processors/pcie_aer/facts.h"
#include "processors/verdict_draft.h"

struct aer_confidence {
    int fatal, nonfatal, storm, degraded;
    int with_xid;   // added where the GPU was lost afterwards
    int port_only;  // taken off where only a port told of it
    int by_counter; // taken off where only a counter did
};

// Everything but its state.
void aer_verdict(const struct aer_facts *facts, const struct aer_incident *incident,
                 const struct aer_confidence *confidence, struct verdict_draft *draft);

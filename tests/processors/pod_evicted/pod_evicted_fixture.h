// SPDX-License-Identifier: Apache-2.0
// For tests of pod_evicted.
#pragma once

#include "cli/component_list.h"
#include "processors/cluster/pod_removal.h"
#include "tests/processors/cluster_fixture.h"

static const char LOW_MEMORY[] = "The node was low on resource: memory. Threshold quantity: 100Mi";
static const char LOW_DISK[] = "The node was low on resource: ephemeral-storage. ";

static inline void setup(void) {
    fixture_begin(&processor_pod_evicted);
}

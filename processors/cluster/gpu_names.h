// SPDX-License-Identifier: Apache-2.0
// Joins the PCI address of a GPU on its node with its UUID, both ways.
//
// Learnt from samples, from the driver's lines and from rank maps. Of several that are told the one
// of the latest time stands, of equal times the greater text, so that order does not matter. Words
// that nobody dated come before all others, whenever they were read.
// Bounded; the ones told of least recently go. `bound.max` is the owner's to set.
// Not thread-safe.
#pragma once

#include "base/arena.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/row_bound.h"

enum { GPU_NAMES_MAX = 65536 };

// Its two tables are the owner's state rows.
extern const struct row_type GPU_ADDRESS_ROWS, GPU_UUID_ROWS;

struct gpu_names {
    struct keyed_rows by_address; // GPU_ADDRESS_ROWS
    struct keyed_rows by_uuid;    // GPU_UUID_ROWS
    struct row_bound bound;       // of each
};

// What an event of kind EVENT_KERNEL, EVENT_GPU_SAMPLE or EVENT_RANK_MAP says; others are passed
// over.
void gpu_names_take(struct gpu_names *names, const struct event *event, struct arena *scratch);
string_id gpu_names_uuid(const struct gpu_names *names, string_id node, pci_address address);
pci_address gpu_names_address(const struct gpu_names *names, string_id node, string_id uuid);

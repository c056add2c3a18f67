// SPDX-License-Identifier: Apache-2.0
// Which UUID belongs to the GPU at a PCI address of a node, and which address to a UUID?
//
// Learnt from samples, from the driver's lines and from rank maps. Of several that are told the one
// of the latest time stands, of equal times the greater text, so that order does not matter.
// Bounded; the ones told of least recently go. Not thread-safe.
#pragma once

#include "base/arena.h"
#include "base/table/keyed_rows.h"
#include "pipeline/component/state.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"

enum { GPU_NAMES_MAX = 65536 };

struct gpu_names {
    struct keyed_rows by_address;
    struct keyed_rows by_uuid;
    uint64_t evicted;
};

// Names are static texts, unique in the component.
void gpu_names_init(struct gpu_names *names, const char *address_table, const char *uuid_table);
void gpu_names_release(struct gpu_names *names);
void gpu_names_state(struct gpu_names *names, struct state_list *list);
void gpu_names_restored(struct gpu_names *names);
// What an event of kind EVENT_KERNEL, EVENT_GPU_SAMPLE or EVENT_RANK_MAP says; others are passed
// over.
void gpu_names_take(struct gpu_names *names, const struct event *event, struct arena *scratch);
string_id gpu_names_uuid(const struct gpu_names *names, string_id node, pci_address address);
pci_address gpu_names_address(const struct gpu_names *names, string_id node, string_id uuid);

// SPDX-License-Identifier: Apache-2.0
// Joins a GPU's PCI address, as the kernel log has it, with its UUID, as metrics have it. Two
// tables of some 50 bytes a row, O(1) each.
#include "processors/cluster/gpu_names.h"

#include "base/table/table.h"

enum { ROWS_PER_CHUNK = 64 };

struct address_key {
    string_id node;
    uint64_t address;
} __attribute__((packed));

struct uuid_key {
    string_id node;
    string_id uuid;
};

struct address_row {
    struct row_head head;
    string_id node;
    uint64_t address;
    uint64_t time_ns;
    string_id uuid;
};

_Static_assert(offsetof(struct address_row, time_ns) ==
                   sizeof(struct row_head) + sizeof(struct address_key),
               "the key lies in the row as in struct address_key");

struct uuid_row {
    struct row_head head;
    string_id node;
    string_id uuid;
    uint32_t unused;
    uint64_t address;
    uint64_t time_ns;
};

const struct row_type GPU_ADDRESS_ROWS = {
    .size = sizeof(struct address_row),
    .key_size = sizeof(struct address_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct address_row, node), offsetof(struct address_row, uuid)},
};
const struct row_type GPU_UUID_ROWS = {
    .size = sizeof(struct uuid_row),
    .key_size = sizeof(struct uuid_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct uuid_row, node), offsetof(struct uuid_row, uuid)},
};

static void tell(struct gpu_names *names, string_id node, pci_address address, struct slice text,
                 uint64_t time_ns, struct arena *scratch) {
    if (node == STRING_NONE || address == PCI_NONE || text.size == 0)
        return;
    string_id uuid = intern(text);
    if (uuid == STRING_REFUSED)
        return;
    address = pci_device(address);
    struct address_key address_key = {node, address};
    struct address_row *at = row_bound_take(&names->by_address, &names->bound, &address_key,
                                            offsetof(struct address_row, time_ns), scratch);
    if (at->uuid == STRING_NONE || time_ns > at->time_ns ||
        (time_ns == at->time_ns && slice_compare(text, intern_slice(at->uuid)) > 0)) {
        at->uuid = uuid;
        at->time_ns = time_ns;
    }
    struct uuid_key uuid_key = {node, uuid};
    struct uuid_row *by = row_bound_take(&names->by_uuid, &names->bound, &uuid_key,
                                         offsetof(struct uuid_row, time_ns), scratch);
    if (time_ns > by->time_ns || (time_ns == by->time_ns && address > by->address)) {
        by->address = address;
        by->time_ns = time_ns;
    }
}

void gpu_names_take(struct gpu_names *names, const struct event *event, struct arena *scratch) {
    uint64_t time_ns = event->timeless ? 0 : event->time_ns;
    assert(names->bound.max > 0);
    if (event->kind == EVENT_KERNEL && event->kernel->kind == KERNEL_GPU_UUID)
        tell(names, event->node, event->kernel->address, event->kernel->uuid, time_ns, scratch);
    if (event->kind == EVENT_RANK_MAP) {
        string_id node = event->place->node != STRING_NONE ? event->place->node : event->node;
        tell(names, node, event->place->address, event->place->uuid, time_ns, scratch);
    }
    if (event->kind != EVENT_GPU_SAMPLE)
        return;
    for (uint32_t i = 0; i < event->gpus->count; i++) {
        const struct gpu_sample *sample = &event->gpus->samples[i];
        string_id node = sample->node != STRING_NONE ? sample->node : event->node;
        tell(names, node, sample->address, sample->uuid,
             sample->time_ns != 0 ? sample->time_ns : time_ns, scratch);
    }
}

string_id gpu_names_uuid(const struct gpu_names *names, string_id node, pci_address address) {
    assert(address == PCI_NONE || address == pci_device(address));
    struct address_key key = {node, address};
    const struct address_row *row = keyed_rows_find(&names->by_address, &key);
    return row == NULL ? STRING_NONE : row->uuid;
}

pci_address gpu_names_address(const struct gpu_names *names, string_id node, string_id uuid) {
    struct uuid_key key = {node, uuid};
    const struct uuid_row *row = keyed_rows_find(&names->by_uuid, &key);
    return row == NULL ? PCI_NONE : row->address;
}

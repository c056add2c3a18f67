// SPDX-License-Identifier: Apache-2.0
// How is a GPU called in the kernel log and how by its metrics? Two tables of some 50 bytes a row,
// O(1) each.
#include "processors/cluster/gpu_names.h"

#include "processors/cluster/row_bound.h"

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

void gpu_names_init(struct gpu_names *names, const char *address_table, const char *uuid_table) {
    *names = (struct gpu_names){0};
    keyed_rows_init(&names->by_address, address_table, sizeof(struct address_row),
                    sizeof(struct address_key), ROWS_PER_CHUNK);
    keyed_rows_init(&names->by_uuid, uuid_table, sizeof(struct uuid_row), sizeof(struct uuid_key),
                    ROWS_PER_CHUNK);
}

void gpu_names_release(struct gpu_names *names) {
    keyed_rows_release(&names->by_address);
    keyed_rows_release(&names->by_uuid);
}

void gpu_names_state(struct gpu_names *names, struct state_list *list) {
    struct state_entry *entry = state_list_table(list, &names->by_address.table);
    state_entry_string(entry, offsetof(struct address_row, node));
    state_entry_string(entry, offsetof(struct address_row, uuid));
    entry = state_list_table(list, &names->by_uuid.table);
    state_entry_string(entry, offsetof(struct uuid_row, node));
    state_entry_string(entry, offsetof(struct uuid_row, uuid));
}

void gpu_names_restored(struct gpu_names *names) {
    keyed_rows_restored(&names->by_address);
    keyed_rows_restored(&names->by_uuid);
}

static void *row_of(struct gpu_names *names, struct keyed_rows *rows, const void *key,
                    size_t time_offset, struct arena *scratch) {
    void *row = keyed_rows_find(rows, key);
    if (row != NULL)
        return row;
    names->evicted += row_bound_make_room(rows, GPU_NAMES_MAX, time_offset, scratch);
    return keyed_rows_add(rows, key);
}

static void tell(struct gpu_names *names, string_id node, pci_address address, struct slice text,
                 uint64_t time_ns, struct arena *scratch) {
    if (node == STRING_NONE || address == PCI_NONE || text.size == 0)
        return;
    string_id uuid = intern(text);
    if (uuid == STRING_REFUSED)
        return;
    address = pci_device(address);
    struct address_key address_key = {node, address};
    struct address_row *at = row_of(names, &names->by_address, &address_key,
                                    offsetof(struct address_row, time_ns), scratch);
    if (at->uuid == STRING_NONE || time_ns > at->time_ns ||
        (time_ns == at->time_ns && slice_compare(text, intern_slice(at->uuid)) > 0)) {
        at->uuid = uuid;
        at->time_ns = time_ns;
    }
    struct uuid_key uuid_key = {node, uuid};
    struct uuid_row *by =
        row_of(names, &names->by_uuid, &uuid_key, offsetof(struct uuid_row, time_ns), scratch);
    if (time_ns > by->time_ns || (time_ns == by->time_ns && address > by->address)) {
        by->address = address;
        by->time_ns = time_ns;
    }
}

void gpu_names_take(struct gpu_names *names, const struct event *event, struct arena *scratch) {
    if (event->kind == EVENT_KERNEL && event->kernel->kind == KERNEL_GPU_UUID)
        tell(names, event->node, event->kernel->address, event->kernel->uuid, event->time_ns,
             scratch);
    if (event->kind == EVENT_RANK_MAP) {
        string_id node = event->place->node != STRING_NONE ? event->place->node : event->node;
        tell(names, node, event->place->address, event->place->uuid, event->time_ns, scratch);
    }
    if (event->kind != EVENT_GPU_SAMPLE)
        return;
    for (uint32_t i = 0; i < event->gpus->count; i++) {
        const struct gpu_sample *sample = &event->gpus->samples[i];
        string_id node = sample->node != STRING_NONE ? sample->node : event->node;
        tell(names, node, sample->address, sample->uuid,
             sample->time_ns != 0 ? sample->time_ns : event->time_ns, scratch);
    }
}

string_id gpu_names_uuid(const struct gpu_names *names, string_id node, pci_address address) {
    struct address_key key = {node, address};
    const struct address_row *row = keyed_rows_find(&names->by_address, &key);
    return row == NULL ? STRING_NONE : row->uuid;
}

pci_address gpu_names_address(const struct gpu_names *names, string_id node, string_id uuid) {
    struct uuid_key key = {node, uuid};
    const struct uuid_row *row = keyed_rows_find(&names->by_uuid, &key);
    return row == NULL ? PCI_NONE : row->address;
}

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/state.h"

static struct state_entry *add_entry(struct state_list *list) {
    assert(list->count < STATE_ENTRIES_MAX);
    return &list->entries[list->count++];
}

struct state_entry *state_list_table(struct state_list *list, struct table *table) {
    struct state_entry *entry = add_entry(list);
    *entry = (struct state_entry){.name = table->name, .table = table, .size = table->row_size};
    return entry;
}

struct state_entry *state_list_struct(struct state_list *list, const char *name, void *bytes,
                                      size_t size) {
    struct state_entry *entry = add_entry(list);
    *entry = (struct state_entry){.name = name, .bytes = bytes, .size = size};
    return entry;
}

void state_entry_string(struct state_entry *entry, size_t offset) {
    assert(entry->string_count < STATE_STRINGS_MAX && offset + sizeof(uint32_t) <= entry->size);
    assert((entry->table == NULL || offset >= sizeof(uint32_t)) && offset <= UINT16_MAX);
    entry->strings[entry->string_count++] = (uint16_t)offset;
}

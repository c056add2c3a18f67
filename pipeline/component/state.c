// SPDX-License-Identifier: Apache-2.0
// Makes, lists and releases what the state rows of a component name. O(rows).
#include "pipeline/component/state.h"

#include <assert.h>

static struct state_entry *add_entry(struct state_list *list) {
    assert(list->count < STATE_ENTRIES_MAX);
    return &list->entries[list->count++];
}

struct state_entry *state_list_table(struct state_list *list, struct table *table) {
    assert(table->row_size > 0);
    struct state_entry *entry = add_entry(list);
    *entry = (struct state_entry){.name = table->name, .table = table, .size = table->row_size};
    const struct row_type *type = table->type;
    for (uint32_t i = 0; type != NULL && i < ROW_STRINGS_MAX && type->strings[i] != 0; i++)
        state_entry_string(entry, type->strings[i]);
    if (type != NULL)
        entry->row_has_strings = type->has_strings;
    return entry;
}

struct state_entry *state_list_struct(struct state_list *list, const char *name, void *bytes,
                                      size_t size) {
    assert(bytes != NULL && size > 0);
    struct state_entry *entry = add_entry(list);
    *entry = (struct state_entry){.name = name, .bytes = bytes, .size = size};
    return entry;
}

void state_entry_string(struct state_entry *entry, size_t offset) {
    assert(entry->string_count < STATE_STRINGS_MAX && offset + sizeof(uint32_t) <= entry->size);
    assert((entry->table == NULL || offset >= sizeof(uint32_t)) && offset <= UINT16_MAX);
    entry->strings[entry->string_count++] = (uint16_t)offset;
}

static void *place_of(const struct state_row *row, void *owner) {
    return (char *)owner + row->offset;
}

static void part_init(const struct state_row *row, void *part) {
    state_rows_init(row->part->rows, row->part->row_count, part);
    if (row->part->init != NULL)
        row->part->init(part, row->name);
}

void state_rows_init(const struct state_row *rows, size_t count, void *owner) {
    for (size_t i = 0; i < count; i++) {
        const struct state_row *row = &rows[i];
        assert((row->rows != NULL) + (row->part != NULL) + (row->struct_size > 0) == 1);
        if (row->part != NULL)
            part_init(row, place_of(row, owner));
        else if (row->rows != NULL && row->rows->key_size > 0)
            keyed_rows_start(place_of(row, owner), row->name, row->rows);
        else if (row->rows != NULL)
            table_start(place_of(row, owner), row->name, row->rows);
    }
}

static void part_list(const struct state_part *type, void *part, struct state_list *list) {
    state_rows_list(type->rows, type->row_count, part, list);
    if (type->list != NULL)
        type->list(part, list);
}

void state_rows_list(const struct state_row *rows, size_t count, void *owner,
                     struct state_list *list) {
    assert(count == 0 || owner != NULL);
    for (size_t i = 0; i < count; i++) {
        const struct state_row *row = &rows[i];
        if (row->part != NULL)
            part_list(row->part, place_of(row, owner), list);
        else if (row->rows != NULL && row->rows->key_size > 0)
            state_list_table(list, &((struct keyed_rows *)place_of(row, owner))->table);
        else if (row->rows != NULL)
            state_list_table(list, place_of(row, owner));
        else
            state_list_struct(list, row->name, place_of(row, owner), row->struct_size);
    }
}

static void part_restored(const struct state_part *type, void *part) {
    state_rows_restored(type->rows, type->row_count, part);
    if (type->restored != NULL)
        type->restored(part);
}

void state_rows_restored(const struct state_row *rows, size_t count, void *owner) {
    assert(count == 0 || owner != NULL);
    for (size_t i = 0; i < count; i++) {
        const struct state_row *row = &rows[i];
        if (row->part != NULL)
            part_restored(row->part, place_of(row, owner));
        else if (row->rows != NULL && row->rows->key_size > 0)
            keyed_rows_restored(place_of(row, owner));
    }
}

static void part_release(const struct state_part *type, void *part) {
    if (type->release != NULL)
        type->release(part);
    state_rows_release(type->rows, type->row_count, part);
}

void state_rows_release(const struct state_row *rows, size_t count, void *owner) {
    assert(count == 0 || owner != NULL);
    for (size_t i = 0; i < count; i++) {
        const struct state_row *row = &rows[i];
        if (row->part != NULL)
            part_release(row->part, place_of(row, owner));
        else if (row->rows != NULL && row->rows->key_size > 0)
            keyed_rows_release(place_of(row, owner));
        else if (row->rows != NULL)
            table_release(place_of(row, owner));
    }
}

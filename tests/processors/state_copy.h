// SPDX-License-Identifier: Apache-2.0
// What a chain remembers, as bytes, and a new chain made from them in what may as well be another
// process: string ids are written as texts, and the caller may forget all strings in between.
#pragma once

#include "pipeline/component/state.h"
#include "tests/processors/chain.h"

struct entry_copy {
    const char *name;
    uint32_t used, free_head, free_count; // of a table
    char *bytes;
    size_t size;
};

struct state_copy {
    struct entry_copy entries[CHAIN_STAGES * STATE_ENTRIES_MAX];
    uint32_t count;
    char **texts; // by id of the first process; NULL: not met
    size_t *text_sizes;
    uint32_t text_count;
};

static inline void copy_text(struct state_copy *copy, string_id id) {
    if (id >= copy->text_count) {
        uint32_t count = id + 256;
        copy->texts = memory_resize(copy->texts, count * sizeof *copy->texts);
        copy->text_sizes = memory_resize(copy->text_sizes, count * sizeof *copy->text_sizes);
        memset(copy->texts + copy->text_count, 0, (count - copy->text_count) * sizeof *copy->texts);
        copy->text_count = count;
    }
    if (copy->texts[id] != NULL)
        return;
    struct slice text = intern_slice(id);
    copy->texts[id] = memory_copy_text(text.data, text.size);
    copy->text_sizes[id] = text.size;
}

// Calls for each string id of a row that has one.
static inline void for_strings(const struct state_entry *entry, char *row,
                               void (*change)(struct state_copy *copy, string_id *id),
                               struct state_copy *copy) {
    if (entry->row_has_strings != NULL && !entry->row_has_strings(row))
        return;
    for (uint32_t i = 0; i < entry->string_count; i++) {
        string_id id;
        memcpy(&id, row + entry->strings[i], sizeof id);
        if (id == STRING_NONE || id == STRING_REFUSED)
            continue;
        change(copy, &id);
        memcpy(row + entry->strings[i], &id, sizeof id);
    }
}

static inline void note_string(struct state_copy *copy, string_id *id) {
    copy_text(copy, *id);
}

static inline void intern_again(struct state_copy *copy, string_id *id) {
    *id = intern((struct slice){copy->texts[*id], copy->text_sizes[*id]});
}

static inline void entry_save(struct state_copy *copy, const struct state_entry *entry) {
    struct entry_copy *out = &copy->entries[copy->count++];
    *out = (struct entry_copy){.name = entry->name, .size = entry->size};
    if (entry->table == NULL) {
        out->bytes = memory_take(entry->size);
        memcpy(out->bytes, entry->bytes, entry->size);
        for_strings(entry, out->bytes, note_string, copy);
        return;
    }
    const struct table *table = entry->table;
    out->used = table->used;
    out->free_head = table->free_head;
    out->free_count = table->free_count;
    out->size = (size_t)table->used * table->row_size;
    out->bytes = memory_take(out->size + 1);
    size_t at = 0;
    for (uint32_t page = 0; page < table_page_count(table); page++) {
        size_t size;
        const void *bytes = table_page(table, page, &size);
        memcpy(out->bytes + at, bytes, size);
        at += size;
    }
    if (at != out->size)
        abort();
    for (uint32_t row = 0; row < table->used; row++)
        for_strings(entry, out->bytes + row * table->row_size, note_string, copy);
}

static inline void entry_load(struct state_copy *copy, struct entry_copy *from,
                              const struct state_entry *entry) {
    if (strcmp(from->name, entry->name) != 0)
        abort();
    if (entry->table == NULL) {
        memcpy(entry->bytes, from->bytes, entry->size);
        for_strings(entry, entry->bytes, intern_again, copy);
        return;
    }
    struct table *table = entry->table;
    table_load(table, from->used, from->free_head, from->free_count);
    size_t at = 0;
    for (uint32_t page = 0; page < table_page_count(table); page++) {
        size_t size;
        void *bytes = table_page(table, page, &size);
        memcpy(bytes, from->bytes + at, size);
        at += size;
    }
    if (!table_chain_is_whole(table))
        abort();
    for (uint32_t row = 0; row < table->used; row++)
        for_strings(entry, table_row(table, row), intern_again, copy);
}

static inline void list_stage(const struct chain *chain, int stage, struct state_list *list) {
    *list = (struct state_list){0};
    component_list_state(CHAIN_TYPES[stage], chain->instances[stage], list);
}

static inline void state_save(const struct chain *chain, struct state_copy *copy) {
    *copy = (struct state_copy){0};
    for (int stage = 0; stage < CHAIN_STAGES; stage++) {
        struct state_list list;
        list_stage(chain, stage, &list);
        for (uint32_t i = 0; i < list.count; i++)
            entry_save(copy, &list.entries[i]);
    }
}

// Into a chain that was just started.
static inline void state_load(struct chain *chain, struct state_copy *copy) {
    uint32_t at = 0;
    for (int stage = 0; stage < CHAIN_STAGES; stage++) {
        struct state_list list;
        list_stage(chain, stage, &list);
        for (uint32_t i = 0; i < list.count; i++)
            entry_load(copy, &copy->entries[at++], &list.entries[i]);
        component_restored(CHAIN_TYPES[stage], chain->instances[stage]);
    }
    if (at != copy->count)
        abort();
}

static inline void state_copy_release(struct state_copy *copy) {
    for (uint32_t i = 0; i < copy->count; i++)
        memory_give(copy->entries[i].bytes);
    for (uint32_t i = 0; i < copy->text_count; i++)
        memory_give(copy->texts[i]);
    memory_give(copy->texts);
    memory_give(copy->text_sizes);
}

// SPDX-License-Identifier: Apache-2.0
// Each entry has a header (number 0: layout, row size, rows, chain of freed rows, fingerprint) and
// its pages (numbers from 1). A page counts as changed when its 64-bit hash did: that costs a read
// of the memory (some GB/s) and saves every component from keeping marks. Ids of strings are put
// right while loading, row by row, in rows that are in use.
#include "pipeline/runtime/checkpoint.h"

#include "base/memory.h"

#include <assert.h>
#include <stdio.h>

static const uint64_t K0 = UINT64_C(0x9e6c63d0876a9a47);
static const uint64_t K1 = UINT64_C(0xc5a308d313198a2f);

static inline uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size) {
    const char *at = bytes;
    uint64_t hash = seed ^ (size * K1), a, b;
    for (; size >= 16; size -= 16, at += 16) {
        memcpy(&a, at, 8);
        memcpy(&b, at + 8, 8);
        hash = fold(a ^ K0, b ^ hash);
    }
    unsigned char rest[16] = {0};
    memcpy(rest, at, size);
    memcpy(&a, rest, 8);
    memcpy(&b, rest + 8, 8);
    return fold(fold(a ^ K1, b ^ hash) ^ K0, K1);
}

// -- sinks --------------------------------------------------------------------------------------

static void batch_put(void *batch, enum storage_space space, const char *name, uint64_t number,
                      struct slice bytes) {
    storage_put(batch, space, name, number, bytes);
}

static void batch_drop(void *batch, enum storage_space space, const char *name, uint64_t first,
                       uint64_t last) {
    storage_delete(batch, space, name, first, last);
}

struct blob_sink batch_sink(struct storage_batch *batch) {
    return (struct blob_sink){batch, batch_put, batch_drop};
}

static void into_snapshot(void *snapshot, enum storage_space space, const char *name,
                          uint64_t number, struct slice bytes) {
    snapshot_put(snapshot, space, name, number, bytes);
}

struct blob_sink snapshot_sink(struct snapshot *snapshot) {
    return (struct blob_sink){snapshot, into_snapshot, NULL};
}

// -- saving -------------------------------------------------------------------------------------

struct entry_header {
    uint32_t layout;
    uint32_t row_size;
    uint32_t used;
    uint32_t free_head;
    uint32_t free_count;
    uint32_t reserved;
    uint64_t fingerprint;
};

void saver_init(struct saver *saver, const char *owner, uint64_t fingerprint) {
    assert(owner[0] != '\0');
    *saver =
        (struct saver){.owner = memory_copy_text(owner, strlen(owner)), .fingerprint = fingerprint};
}

static const char *entry_name(struct saver *saver, uint32_t index) {
    assert(index < saver->list.count && index < STATE_ENTRIES_MAX);
    struct saved_entry *saved = &saver->saved[index];
    if (saved->name == NULL) {
        const char *name = saver->list.entries[index].name;
        size_t size = strlen(saver->owner) + strlen(name) + 2;
        saved->name = memory_take(size);
        snprintf(saved->name, size, "%s/%s", saver->owner, name);
    }
    return saved->name;
}

void saver_release(struct saver *saver) {
    for (uint32_t i = 0; i < STATE_ENTRIES_MAX; i++) {
        memory_give(saver->saved[i].name);
        memory_give(saver->saved[i].hashes);
    }
    memory_give(saver->owner);
    *saver = (struct saver){0};
}

void saver_forget(struct saver *saver) {
    for (uint32_t i = 0; i < STATE_ENTRIES_MAX; i++) {
        saver->saved[i].count = 0;
        saver->saved[i].header_hash = 0;
    }
}

static struct entry_header header_of(const struct saver *saver, const struct state_entry *entry) {
    assert(entry->size <= UINT32_MAX);
    struct entry_header header = {.layout = STATE_LAYOUT,
                                  .row_size = (uint32_t)entry->size,
                                  .used = 1,
                                  .free_head = TABLE_NO_ROW,
                                  .fingerprint = saver->fingerprint};
    if (entry->table != NULL) {
        header.used = entry->table->used;
        header.free_head = entry->table->free_head;
        header.free_count = entry->table->free_count;
    }
    return header;
}

static struct slice page_at(const struct state_entry *entry, uint32_t page) {
    assert(page == 0 || entry->table != NULL);
    if (entry->table == NULL)
        return (struct slice){entry->bytes, entry->size};
    size_t size;
    const char *bytes = table_page(entry->table, page, &size);
    return (struct slice){bytes, size};
}

static void save_page(struct saved_entry *saved, const char *name, uint32_t page,
                      struct slice bytes, const struct blob_sink *sink) {
    assert(bytes.size > 0);
    uint64_t hash = hash_bytes(K0, bytes.data, bytes.size) | 1;
    if (page < saved->count && saved->hashes[page] == hash)
        return;
    assert(page <= saved->count);
    saved->hashes = memory_room(saved->hashes, &saved->capacity, page, sizeof *saved->hashes);
    saved->hashes[page] = hash;
    if (page >= saved->count)
        saved->count = page + 1;
    sink->put(sink->context, STORAGE_STATE, name, (uint64_t)page + 1, bytes);
}

static void save_entry(struct saver *saver, uint32_t index, const struct blob_sink *sink) {
    assert(index < saver->list.count);
    const struct state_entry *entry = &saver->list.entries[index];
    struct saved_entry *saved = &saver->saved[index];
    const char *name = entry_name(saver, index);
    struct entry_header header = header_of(saver, entry);
    uint64_t hash = hash_bytes(K1, &header, sizeof header) | 1;
    if (hash != saved->header_hash) {
        saved->header_hash = hash;
        sink->put(sink->context, STORAGE_STATE, name, 0,
                  (struct slice){(const char *)&header, sizeof header});
    }
    uint32_t pages = entry->table == NULL ? 1 : table_page_count(entry->table);
    for (uint32_t page = 0; page < pages; page++)
        save_page(saved, name, page, page_at(entry, page), sink);
    if (saved->count > pages) {
        if (sink->drop != NULL)
            sink->drop(sink->context, STORAGE_STATE, name, (uint64_t)pages + 1, saved->count);
        saved->count = pages;
    }
}

void saver_save(struct saver *saver, const struct blob_sink *sink) {
    assert(saver->owner != NULL);
    for (uint32_t i = 0; i < saver->list.count; i++)
        save_entry(saver, i, sink);
}

// -- loading ------------------------------------------------------------------------------------

static bool get_header(const struct snapshot *snapshot, const char *name,
                       struct entry_header *header) {
    struct slice bytes;
    if (!snapshot_get(snapshot, STORAGE_STATE, name, 0, &bytes) || bytes.size != sizeof *header)
        return false;
    memcpy(header, bytes.data, sizeof *header);
    return true;
}

static bool fill_pages(const struct state_entry *entry, struct table *table,
                       const struct snapshot *snapshot, const char *name) {
    assert(name != NULL);
    uint32_t pages = table == NULL ? 1 : table_page_count(table);
    for (uint32_t page = 0; page < pages; page++) {
        struct slice bytes;
        size_t size = entry->size;
        void *to = table == NULL ? entry->bytes : table_page(table, page, &size);
        if (!snapshot_get(snapshot, STORAGE_STATE, name, (uint64_t)page + 1, &bytes) ||
            bytes.size != size)
            return false;
        memcpy(to, bytes.data, size);
    }
    return true;
}

// Whether the strings of this row are known; with `map` they get their ids of this process.
static bool row_strings(const struct state_entry *entry, struct snapshot *snapshot, char *row,
                        bool map) {
    if (entry->row_has_strings != NULL && !entry->row_has_strings(row))
        return true;
    for (uint32_t i = 0; i < entry->string_count; i++) {
        string_id id;
        memcpy(&id, row + entry->strings[i], sizeof id);
        if (!snapshot_knows_string(snapshot, id))
            return false;
        id = map ? snapshot_string(snapshot, id) : id;
        if (map)
            memcpy(row + entry->strings[i], &id, sizeof id);
    }
    return true;
}

// The same for every row in use.
static bool table_strings(const struct state_entry *entry, const struct table *table,
                          struct snapshot *snapshot, bool map) {
    if (entry->string_count == 0 || table->used == 0)
        return true;
    unsigned char *is_free = memory_zero(table->used, 1);
    table_mark_free(table, is_free);
    bool whole = true;
    for (uint32_t row = 0; row < table->used && whole; row++)
        whole = is_free[row] || row_strings(entry, snapshot, table_row(table, row), map);
    memory_give(is_free);
    return whole;
}

static bool check_struct(const struct state_entry *entry, struct snapshot *snapshot,
                         const char *name) {
    assert(entry->table == NULL);
    struct slice bytes;
    return snapshot_get(snapshot, STORAGE_STATE, name, 1, &bytes) && bytes.size == entry->size &&
           row_strings(entry, snapshot, (char *)(uintptr_t)bytes.data, false);
}

static bool check_table(const struct state_entry *entry, struct snapshot *snapshot,
                        const char *name, const struct entry_header *header) {
    assert(entry->table != NULL);
    // Bounded by what is there, so that a damaged header costs nothing.
    struct slice last;
    uint32_t per_page = table_rows_per_page(entry->table);
    if (header->used > 0 &&
        !snapshot_get(snapshot, STORAGE_STATE, name, (header->used - 1) / per_page + 1, &last))
        return false;
    struct table table;
    table_init(&table, entry->name, entry->size, entry->table->rows_per_chunk);
    table_load(&table, header->used, header->free_head, header->free_count);
    bool whole = fill_pages(entry, &table, snapshot, name) && table_chain_is_whole(&table) &&
                 table_strings(entry, &table, snapshot, false);
    table_release(&table);
    return whole;
}

enum saver_answer saver_check(struct saver *saver, struct snapshot *snapshot) {
    assert(saver->owner != NULL);
    uint32_t found = 0;
    for (uint32_t i = 0; i < saver->list.count; i++) {
        const struct state_entry *entry = &saver->list.entries[i];
        const char *name = entry_name(saver, i);
        struct entry_header header;
        if (!get_header(snapshot, name, &header))
            continue;
        found++;
        if (header.layout != STATE_LAYOUT || header.row_size != entry->size ||
            header.fingerprint != saver->fingerprint)
            return SAVER_OTHER;
        if (entry->table == NULL ? !check_struct(entry, snapshot, name)
                                 : !check_table(entry, snapshot, name, &header))
            return SAVER_DAMAGED;
    }
    if (found == 0)
        return saver->list.count == 0 ? SAVER_WHOLE : SAVER_NOTHING;
    return found == saver->list.count ? SAVER_WHOLE : SAVER_DAMAGED;
}

void saver_load(struct saver *saver, struct snapshot *snapshot) {
    assert(saver->owner != NULL);
    for (uint32_t i = 0; i < saver->list.count; i++) {
        const struct state_entry *entry = &saver->list.entries[i];
        const char *name = entry_name(saver, i);
        struct entry_header header = {0};
        bool whole = get_header(snapshot, name, &header);
        if (entry->table != NULL)
            table_load(entry->table, header.used, header.free_head, header.free_count);
        whole = whole && fill_pages(entry, entry->table, snapshot, name);
        assert(whole); // saver_check said so
        if (entry->table == NULL)
            row_strings(entry, snapshot, entry->bytes, true);
        else
            table_strings(entry, entry->table, snapshot, true);
    }
}

// -- fingerprints -------------------------------------------------------------------------------

uint64_t fingerprint_add(uint64_t fingerprint, struct slice bytes) {
    return hash_bytes(fingerprint ^ K0, bytes.data, bytes.size);
}

static uint64_t add_text(uint64_t fingerprint, const char *text) {
    return fingerprint_add(fingerprint, text == NULL ? SLICE("") : slice_of(text));
}

static uint64_t add_list(uint64_t fingerprint, const struct text_list *list) {
    for (uint32_t i = 0; i < list->count; i++)
        fingerprint = add_text(fingerprint, list->items[i]);
    return fingerprint;
}

static uint64_t add_rows(uint64_t fingerprint, const struct option *rows, size_t count,
                         const char *config) {
    static const size_t SIZES[] = {
        [OPTION_BOOL] = sizeof(bool),        [OPTION_CHOICE] = sizeof(int),
        [OPTION_INT] = sizeof(int64_t),      [OPTION_RATIO] = sizeof(double),
        [OPTION_DURATION] = sizeof(int64_t), [OPTION_SIZE] = sizeof(int64_t),
    };
    for (size_t i = 0; i < count; i++) {
        const struct option *row = &rows[i];
        const char *field = config + row->offset;
        fingerprint = add_text(fingerprint, row->name);
        if (row->type == OPTION_TEXT)
            fingerprint = add_text(fingerprint, *(const char *const *)(const void *)field);
        else if (row->type == OPTION_TEXT_LIST)
            fingerprint = add_list(fingerprint, (const void *)field);
        else if (row->type == OPTION_GROUP)
            fingerprint = add_rows(fingerprint, row->rows, row->row_count, field);
        else if (row->type != OPTION_SECRET)
            fingerprint = fingerprint_add(fingerprint, (struct slice){field, SIZES[row->type]});
    }
    return fingerprint;
}

uint64_t config_fingerprint(const struct component_type *type, const void *config) {
    uint64_t fingerprint = add_text(K1, type->name);
    if (config == NULL)
        return fingerprint;
    return add_rows(fingerprint, type->options, type->option_count, config);
}

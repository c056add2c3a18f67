// SPDX-License-Identifier: Apache-2.0
// Reads blobs from the store.
//
// Rows are copied out under the disk lock, up to 256 KiB (or one larger blob) at a time, and
// visited without it: a visitor may take its time, submit, and wait for what it submitted. Between
// two copies the scan remembers only the last number. A page that cannot be read makes the store be
// repaired, and the scan go on behind what it saw.
#include "extensions/file_storage/store_parts.h"

#include "base/log.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 256 << 10, CHUNK_ROWS = 2048, ALIGNMENT = 16 };

struct chunk {
    char *data;
    size_t size, capacity;
    struct {
        uint64_t number;
        uint32_t crc;
        size_t at, size;
    } rows[CHUNK_ROWS];
    uint32_t count;
    uint64_t next; // where the following chunk begins
    bool more;
};

static void chunk_add(struct chunk *chunk, const struct store_row *row) {
    assert(chunk->count < CHUNK_ROWS);
    size_t at = (chunk->size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (chunk->capacity - at < row->bytes.size || chunk->capacity < at) {
        chunk->capacity =
            at + row->bytes.size > CHUNK_BYTES * 2 ? at + row->bytes.size : CHUNK_BYTES * 2;
        chunk->data = memory_resize(chunk->data, chunk->capacity);
    }
    if (row->bytes.size > 0)
        memcpy(chunk->data + at, row->bytes.data, row->bytes.size);
    chunk->rows[chunk->count].number = store_number(row->key);
    chunk->rows[chunk->count].crc = row->crc;
    chunk->rows[chunk->count].at = at;
    chunk->rows[chunk->count++].size = row->bytes.size;
    chunk->size = at + row->bytes.size;
}

static enum disk_result chunk_read(struct store_database *database, uint32_t id, uint64_t last,
                                   struct chunk *chunk) {
    struct store_row row;
    bool found = true;
    enum disk_result result =
        database_seek(database, store_key(id, chunk->next), store_key(id, last));
    while (result == DISK_OK && found && chunk->count < CHUNK_ROWS && chunk->size < CHUNK_BYTES) {
        result = database_next(database, &row, &found);
        // A key out of order is damage that the library does not see.
        if (result == DISK_OK && found && row.key < store_key(id, chunk->next))
            result = DISK_DAMAGED;
        else if (result == DISK_OK && found) {
            chunk_add(chunk, &row);
            chunk->next = store_number(row.key) + 1;
        }
    }
    database_seek_end(database);
    chunk->more = found && chunk->next <= last;
    return result;
}

// Under the disk lock: after a failure of the disk the writer leaves it closed for a while.
static enum disk_result database_ensure(struct store *store) {
    assert(lock_is_held(&store->disk_lock));
    return store->database.connection == NULL ? database_open(&store->database, store->path)
                                              : DISK_OK;
}

// Under the disk lock: a chunk of `name`, after a repair when one is needed.
static enum disk_result chunk_fill(struct store *store, enum storage_space space, const char *name,
                                   uint64_t last, struct chunk *chunk) {
    chunk->count = 0;
    chunk->size = 0;
    chunk->more = false;
    enum disk_result result = DISK_DAMAGED;
    for (int attempt = 0; attempt < 2 && result == DISK_DAMAGED; attempt++) {
        result = database_ensure(store);
        uint32_t id = result == DISK_OK ? names_find(&store->database.names, space, name) : 0;
        if (id != 0)
            result = chunk_read(&store->database, id, last, chunk);
        if (result == DISK_DAMAGED) {
            enum disk_result repaired = store_rebuild(store, store->database.reason);
            if (repaired != DISK_OK)
                return repaired;
        }
    }
    return result;
}

void store_count_damaged(struct store *store, const char *name, uint64_t number) {
    atomic_fetch_add(&store->damaged_blobs, 1);
    log_write(LOG_ERROR, (struct log_site){"C4004", store->site},
              "%s: blob %llu of %s is damaged and left out.", store->path,
              (unsigned long long)number, name[0] == '\0' ? "(no name)" : name);
}

static bool chunk_visit(struct store *store, const struct chunk *chunk, enum storage_space space,
                        const char *name, storage_visit *visit, void *context) {
    assert(!lock_is_held(&store->disk_lock));
    struct slice text = slice_of(name);
    for (uint32_t i = 0; i < chunk->count; i++) {
        struct slice bytes = {chunk->data + chunk->rows[i].at, chunk->rows[i].size};
        if (store_crc(space, text, chunk->rows[i].number, bytes) != chunk->rows[i].crc)
            store_count_damaged(store, name, chunk->rows[i].number);
        else if (!visit(context, name, chunk->rows[i].number, bytes))
            return false;
    }
    return true;
}

// Sets whether the visitor wants more.
static enum status name_scan(struct store *store, enum storage_space space, const char *name,
                             uint64_t first, uint64_t last, storage_visit *visit, void *context,
                             bool *more, struct error *error) {
    struct chunk *chunk = memory_zero(1, sizeof *chunk);
    chunk->next = first;
    enum status status = STATUS_OK;
    do {
        lock_take(&store->disk_lock);
        if (chunk_fill(store, space, name, last, chunk) != DISK_OK)
            status = error_set(error, STATUS_IO, "reading the store %s: %s.", store->path,
                               store->database.reason);
        lock_release(&store->disk_lock);
        *more = status == STATUS_OK && chunk_visit(store, chunk, space, name, visit, context);
    } while (*more && chunk->more);
    memory_give(chunk->data);
    memory_give(chunk);
    return status;
}

static int text_compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// The names of a space in order; the caller gives each and the list back.
static enum status names_copy(struct store *store, enum storage_space space, char ***list,
                              uint32_t *count, struct error *error) {
    assert(!lock_is_held(&store->disk_lock));
    enum status status = STATUS_OK;
    lock_take(&store->disk_lock);
    enum disk_result result = database_ensure(store);
    if (result == DISK_DAMAGED)
        result = store_rebuild(store, store->database.reason);
    if (result != DISK_OK)
        status = error_set(error, STATUS_IO, "reading the store %s: %s.", store->path,
                           store->database.reason);
    const struct store_names *names = &store->database.names;
    char **copies = memory_take((names->count + 1) * sizeof *copies);
    *list = copies;
    *count = 0;
    for (uint32_t id = 1; id < names->count; id++)
        if (names->items[id].text != NULL && names->items[id].space == space)
            copies[(*count)++] =
                memory_copy_text(names->items[id].text, strlen(names->items[id].text));
    lock_release(&store->disk_lock);
    if (*count > 1)
        qsort(copies, *count, sizeof *copies, text_compare);
    return status;
}

enum status store_scan(struct storage *storage, enum storage_space space, const char *name,
                       uint64_t first, uint64_t last, storage_visit *visit, void *context,
                       struct error *error) {
    struct store *store = store_of(storage);
    bool more = true;
    if (name != NULL)
        return name_scan(store, space, name, first, last, visit, context, &more, error);
    uint32_t count;
    char **names;
    enum status status = names_copy(store, space, &names, &count, error);
    for (uint32_t i = 0; i < count; i++) {
        if (more && status == STATUS_OK)
            status = name_scan(store, space, names[i], first, last, visit, context, &more, error);
        memory_give(names[i]);
    }
    memory_give(names);
    return status;
}

uint64_t store_last_number(struct storage *storage, enum storage_space space, const char *name) {
    struct store *store = store_of(storage);
    int64_t key = -1;
    lock_take(&store->disk_lock);
    enum disk_result result = DISK_DAMAGED;
    for (int attempt = 0; attempt < 2 && result == DISK_DAMAGED; attempt++) {
        key = -1;
        result = database_ensure(store);
        uint32_t id = result == DISK_OK ? names_find(&store->database.names, space, name) : 0;
        if (id != 0)
            result = database_last(&store->database, store_key(id, 0),
                                   store_key(id, STORAGE_NUMBER_MAX), &key);
        if (result == DISK_DAMAGED && store_rebuild(store, store->database.reason) != DISK_OK)
            break;
    }
    lock_release(&store->disk_lock);
    if (result != DISK_OK)
        log_write(LOG_ERROR, (struct log_site){"C4006", store->site},
                  "%s: the last number of %s cannot be read: %s; it counts from 0.", store->path,
                  name, store->database.reason);
    return key < 0 ? 0 : store_number(key);
}

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/storage.h"

#include <assert.h>
#include <string.h>

const char *storage_space_name(enum storage_space space) {
    static const char *const names[STORAGE_SPACE_COUNT] = {"meta",  "state",   "strings",
                                                           "queue", "journal", "repeats"};
    assert(space < STORAGE_SPACE_COUNT);
    return names[space];
}

static const struct storage_calls *calls_of(const struct storage *storage) {
    assert(storage->magic == STORAGE_MAGIC);
    return storage->calls;
}

static const struct storage_calls *batch_calls(const struct storage_batch *batch) {
    assert(batch->magic == STORAGE_MAGIC);
    return calls_of(batch->storage);
}

struct storage_batch *storage_batch_new(struct storage *storage) {
    return calls_of(storage)->batch_new(storage);
}

void storage_put(struct storage_batch *batch, enum storage_space space, const char *name,
                 uint64_t number, struct slice bytes) {
    assert(space < STORAGE_SPACE_COUNT);
    assert(strlen(name) <= STORAGE_NAME_MAX);
    assert(number <= STORAGE_NUMBER_MAX);
    assert(bytes.size <= STORAGE_BLOB_MAX);
    batch_calls(batch)->put(batch, space, name, number, bytes);
}

void storage_delete(struct storage_batch *batch, enum storage_space space, const char *name,
                    uint64_t first, uint64_t last) {
    assert(space < STORAGE_SPACE_COUNT);
    if (first > last || first > STORAGE_NUMBER_MAX)
        return;
    batch_calls(batch)->delete (batch, space, name, first,
                                last < STORAGE_NUMBER_MAX ? last : STORAGE_NUMBER_MAX);
}

void storage_delete_names(struct storage_batch *batch, enum storage_space space,
                          const char *prefix) {
    assert(space < STORAGE_SPACE_COUNT);
    batch_calls(batch)->delete_names(batch, space, prefix);
}

uint64_t storage_submit(struct storage_batch *batch) {
    return batch_calls(batch)->submit(batch, false);
}

uint64_t storage_submit_checkpoint(struct storage_batch *batch) {
    return batch_calls(batch)->submit(batch, true);
}

uint64_t storage_durable(const struct storage *storage) {
    return calls_of(storage)->durable(storage);
}

enum status storage_wait(struct storage *storage, uint64_t ticket, uint64_t timeout_ns,
                         struct error *error) {
    assert(ticket > 0);
    return calls_of(storage)->wait(storage, ticket, timeout_ns, error);
}

void storage_on_commit(struct storage *storage, void (*committed)(void *context), void *context) {
    assert(committed != NULL);
    calls_of(storage)->on_commit(storage, committed, context);
}

enum status storage_scan(struct storage *storage, enum storage_space space, const char *name,
                         uint64_t first, uint64_t last, storage_visit *visit, void *context,
                         struct error *error) {
    assert(space < STORAGE_SPACE_COUNT);
    if (last > STORAGE_NUMBER_MAX)
        last = STORAGE_NUMBER_MAX;
    if (first > last)
        return STATUS_OK;
    return calls_of(storage)->scan(storage, space, name, first, last, visit, context, error);
}

uint64_t storage_last_number(struct storage *storage, enum storage_space space, const char *name) {
    assert(space < STORAGE_SPACE_COUNT);
    return calls_of(storage)->last_number(storage, space, name);
}

void storage_statistics(struct storage *storage, struct storage_statistics *out) {
    assert(out != NULL);
    calls_of(storage)->statistics(storage, out);
}

bool storage_full(const struct storage *storage) {
    return calls_of(storage)->full(storage);
}

uint64_t storage_room(const struct storage *storage) {
    return calls_of(storage)->room(storage);
}

void storage_close_by(struct storage *storage, uint64_t deadline_ns) {
    if (storage != NULL)
        calls_of(storage)->close_by(storage, deadline_ns);
}

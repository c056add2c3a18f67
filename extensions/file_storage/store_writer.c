// SPDX-License-Identifier: Apache-2.0
// The thread that writes what was submitted, and tries again when it cannot.
//
// One thread sleeps until there is a batch. While nobody waits for an answer it gathers for the
// commit interval; when somebody does, only until as many have come as last time, or none for an
// eighth of the interval. A commit that fails leaves the batches where they are: the thread says
// why, waits 100 ms, then longer up to 5 s, opens the file anew and writes them again. A batch that
// frees space gets in behind one that finds none, since then all that wait are one transaction.
//
// What was committed stands in the log alone until the log is moved into the file: when it is long,
// and two seconds after a commit at the latest, so that little is there to be damaged.
#include "extensions/file_storage/store_parts.h"

#include "base/clock.h"
#include "base/file_identity.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum { GROUP_BYTES = 8 << 20, LOG_FRAMES = 1000 };
#define RETRY_FIRST_NS 100000000ull
#define RETRY_LAST_NS  5000000000ull
#define LOG_AGE_NS     2000000000ull

static void wait_until(struct store *store, uint64_t until_ns) {
    (void)cond_wait_until(&store->work, &store->lock, until_ns);
}

// -- groups -------------------------------------------------------------------------------------

struct group {
    struct store_batch *first, *last;
    uint32_t count;
    uint64_t bytes;
    uint64_t input_bytes; // of them: not of checkpoints
};

static void gather(struct store *store) {
    assert(lock_is_held(&store->lock));
    uint64_t end = store->first->submitted_ns + store->interval_ns;
    while (!store->stopping && atomic_load(&store->pending_bytes) < GROUP_BYTES) {
        uint64_t until = end, now = clock_monotonic_ns();
        if (store->waiters > 0) {
            uint64_t quiet = store->last_submit_ns + store->interval_ns / 8;
            if (store->queued_count >= store->group_count)
                break;
            until = quiet < end ? quiet : end;
        }
        if (now >= until)
            break;
        wait_until(store, until);
    }
}

// From the front of the queue, at least one; `all`: all of it.
static struct group group_take(const struct store *store, bool all) {
    assert(lock_is_held(&store->lock));
    assert(store->first != NULL);
    struct group group = {.first = store->first};
    for (struct store_batch *batch = store->first; batch != NULL; batch = batch->next) {
        if (group.count > 0 && !all && group.bytes + batch->size > GROUP_BYTES)
            break;
        group.last = batch;
        group.count++;
        group.bytes += batch->size;
        group.input_bytes += batch->is_checkpoint ? 0 : batch->size;
        if (batch == store->last)
            break;
    }
    return group;
}

static enum disk_result group_write(struct store *store, const struct group *group) {
    assert(lock_is_held(&store->disk_lock));
    struct store_database *database = &store->database;
    enum disk_result result = database_begin(database);
    for (struct store_batch *batch = group->first; result == DISK_OK; batch = batch->next) {
        result = database_apply(database, batch);
        if (batch == group->last)
            break;
    }
    if (result == DISK_OK)
        result = database_commit(database, store->max_size);
    if (result != DISK_OK)
        database_rollback(database);
    return result;
}

// They are durable: puts them away, so that whoever waits finds them to be used again, and tells.
static void group_settle(struct store *store, const struct group *group) {
    assert(group->count > 0 && group->last != NULL);
    assert(!lock_is_held(&store->lock));
    uint64_t ticket = group->last->ticket;
    lock_take(&store->lock);
    struct store_batch *batch = group->first, *next;
    store->first = group->last->next;
    if (store->first == NULL)
        store->last = NULL;
    store->queued_count -= group->count;
    store->group_count = group->count;
    group->last->next = NULL;
    lock_release(&store->lock);
    for (; batch != NULL; batch = next) {
        next = batch->next;
        store_batch_drop(store, batch);
    }
    lock_take(&store->lock);
    atomic_fetch_sub(&store->pending_bytes, group->bytes);
    atomic_fetch_sub(&store->input_bytes, group->input_bytes);
    atomic_store(&store->used_bytes, store->database.used_bytes);
    atomic_fetch_add(&store->commits, 1);
    atomic_fetch_add(&store->batches, group->count);
    assert(ticket > atomic_load(&store->durable));
    atomic_store_explicit(&store->durable, ticket, memory_order_release);
    pthread_cond_broadcast(&store->done);
    lock_release(&store->lock);
}

static void call_back(const struct store *store) {
    for (uint32_t i = 0; i < store->callback_count; i++)
        store->callbacks[i].committed(store->callbacks[i].context);
}

// -- failures -----------------------------------------------------------------------------------

static void degrade(struct store *store) {
    assert(!lock_is_held(&store->lock));
    atomic_fetch_add(&store->failures, 1);
    lock_take(&store->lock);
    bool changed = !store->degraded || strcmp(store->reason, store->database.reason) != 0;
    store->degraded = true;
    memcpy(store->reason, store->database.reason, sizeof store->reason);
    lock_release(&store->lock);
    if (!changed)
        return;
    log_write(
        LOG_ERROR, (struct log_site){"C4001", store->site},
        "%s cannot be written: %s. Nothing is lost: what was taken waits in memory, and it is "
        "tried again.",
        store->path, store->database.reason);
    call_back(store);
}

static void recover(struct store *store) {
    assert(!lock_is_held(&store->lock));
    lock_take(&store->lock);
    bool changed = store->degraded;
    store->degraded = false;
    store->reason[0] = '\0';
    lock_release(&store->lock);
    if (!changed)
        return;
    log_write(LOG_INFO, (struct log_site){"C4002", store->site},
              "%s can be written again; all that waited is safe.", store->path);
    call_back(store);
}

// After a failure the file is opened anew: what the library and the kernel remember of it may not
// be what is on the disk.
static enum disk_result database_ready(struct store *store) {
    assert(lock_is_held(&store->disk_lock));
    if (store->database.connection != NULL)
        return DISK_OK;
    enum disk_result result = database_open(&store->database, store->path);
    return result == DISK_DAMAGED ? store_rebuild(store, store->database.reason) : result;
}

// What is written to a file without a name is lost with the process, so it is as if nothing could
// be written, until the file is back.
static bool is_gone(struct store *store) {
    struct store_database *database = &store->database;
    struct stat about;
    bool there = stat(store->path, &about) == 0;
    if (database->connection == NULL || (!there && errno != ENOENT) ||
        (there && file_identity_equal(file_identity_of(&about), database->identity)))
        return false;
    snprintf(database->reason, sizeof database->reason,
             "it was %s while culprit runs: put it back, or restart culprit with a new one",
             there ? "replaced" : "moved away or removed");
    return true;
}

static enum disk_result attempt(struct store *store, const struct group *group) {
    assert(!lock_is_held(&store->lock));
    lock_take(&store->disk_lock);
    bool gone = is_gone(store);
    enum disk_result result = gone ? DISK_FAILED : database_ready(store);
    if (result == DISK_OK)
        result = group_write(store, group);
    if (result == DISK_DAMAGED) {
        result = store_rebuild(store, store->database.reason);
        if (result == DISK_OK)
            result = group_write(store, group);
    }
    if ((result == DISK_FAILED && !gone) || result == DISK_DAMAGED)
        database_close(&store->database, false);
    lock_release(&store->disk_lock);
    return result;
}

// Moves the log into the file once it is long or old.
static enum disk_result tidy(struct store *store) {
    assert(!lock_is_held(&store->lock));
    lock_take(&store->disk_lock);
    enum disk_result result = DISK_OK;
    uint64_t now = clock_monotonic_ns();
    if (store->database.wal_frames > 0 && store->log_due_ns == 0)
        store->log_due_ns = now + LOG_AGE_NS;
    bool is_due = store->log_due_ns != 0 && now >= store->log_due_ns;
    if (store->database.connection == NULL)
        result = database_ready(store);
    else if (store->database.wal_frames >= LOG_FRAMES || is_due) {
        result = database_checkpoint(&store->database, false);
        store->log_due_ns = store->database.wal_frames == 0 ? 0 : now + LOG_AGE_NS;
    }
    if (result == DISK_DAMAGED)
        result = store_rebuild(store, store->database.reason);
    if (result == DISK_FAILED)
        database_close(&store->database, false);
    lock_release(&store->disk_lock);
    return result;
}

// -- the thread ---------------------------------------------------------------------------------

// Waits for something to do: false when it is time to end.
static bool await_group(struct store *store, bool untidy, uint64_t retry_ns, enum disk_result last,
                        struct group *group) {
    *group = (struct group){0};
    lock_take(&store->lock);
    uint64_t until = clock_monotonic_ns() + retry_ns;
    while (last != DISK_OK && clock_monotonic_ns() < until && !store->stopping)
        wait_until(store, until);
    if (last != DISK_OK && store->stopping)
        wait_until(store, clock_monotonic_ns() + RETRY_FIRST_NS);
    while (store->first == NULL && !store->stopping && !untidy) {
        uint64_t due_ns = store->log_due_ns == 0 ? UINT64_MAX : store->log_due_ns;
        if (clock_monotonic_ns() >= due_ns)
            break;
        wait_until(store, due_ns);
    }
    bool more = !store->stopping || (store->first != NULL &&
                                     (last == DISK_OK || clock_monotonic_ns() < store->stop_ns));
    if (more && store->first != NULL) {
        gather(store);
        *group = group_take(store, last == DISK_LIMIT || last == DISK_FULL);
    }
    lock_release(&store->lock);
    return more;
}

void *store_writer(void *context) {
    assert(((const struct store *)context)->base.magic == STORAGE_MAGIC);
    struct store *store = context;
    // The names of the store's files must outlive a power failure, too: before anything is durable,
    // and here, where nobody waits for it who only starts.
    sync_directory_of(store->path);
    enum disk_result last = DISK_OK;
    bool untidy = false;
    uint64_t retry_ns = RETRY_FIRST_NS;
    struct group group;
    while (await_group(store, untidy, retry_ns, last, &group)) {
        enum disk_result result = group.count == 0 ? DISK_OK : attempt(store, &group);
        if (result == DISK_OK) {
            if (group.count > 0) {
                group_settle(store, &group);
                call_back(store);
            }
            result = tidy(store);
            untidy = result != DISK_OK;
        }
        if (result == DISK_OK) {
            recover(store);
            retry_ns = RETRY_FIRST_NS;
        } else {
            degrade(store);
            if (last != DISK_OK && retry_ns < RETRY_LAST_NS)
                retry_ns = retry_ns * 2 < RETRY_LAST_NS ? retry_ns * 2 : RETRY_LAST_NS;
        }
        last = result;
    }
    return NULL;
}

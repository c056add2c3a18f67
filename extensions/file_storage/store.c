// SPDX-License-Identifier: Apache-2.0
// Opens and closes the store, and answers how it does.
//
// Opening takes the lock file of the directory, puts an interrupted repair right, opens the file
// (or repairs it) and starts the writer's thread. Cost of an idle store: one sleeping thread, a
// page cache of at most 384 KiB; it wakes once, two seconds after what was written last.
#include "extensions/file_storage/store.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "extensions/file_storage/store_parts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PENDING_MAX = 64 << 20, DIRECTORY_MODE = 0750 };

// -- the directory ------------------------------------------------------------------------------

static enum status directory_make(const char *path, struct error *error) {
    char *part = memory_copy_text(path, strlen(path));
    int failure = 0;
    for (char *at = part + 1; failure == 0; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char end = *at;
        *at = '\0';
        if (mkdir(part, DIRECTORY_MODE) != 0 && errno != EEXIST)
            failure = errno;
        *at = end;
        if (end == '\0')
            break;
    }
    memory_give(part);
    struct stat about;
    if (failure != 0 && stat(path, &about) == 0)
        failure = 0; // a parent that may not be written, and need not be
    return failure == 0 ? STATUS_OK
                        : error_set_os(error, STATUS_CANNOT_CREATE, failure,
                                       "the store's directory %s cannot be made", path);
}

static enum status directory_look(const struct store_options *options, struct error *error) {
    struct stat about;
    if (options->create_directory) {
        enum status status = directory_make(options->directory, error);
        if (status != STATUS_OK)
            return status;
    }
    if (stat(options->directory, &about) != 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno,
                            "the store's directory %s cannot be used", options->directory);
    if (!S_ISDIR(about.st_mode))
        return error_set(error, STATUS_CANNOT_CREATE,
                         "the store's directory %s is not a directory.", options->directory);
    if (access(options->directory, W_OK | X_OK) != 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno,
                            "the store's directory %s cannot be written", options->directory);
    return STATUS_OK;
}

// -- the lock -----------------------------------------------------------------------------------

static enum status directory_refused(int file, const char *directory, struct error *error) {
    char text[32] = "";
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    long pid = size > 0 ? strtol(text, NULL, 10) : 0;
    if (pid <= 0)
        return error_set(error, STATUS_CANNOT_CREATE,
                         "the store in %s is in use by another process.", directory);
    return error_set(error, STATUS_CANNOT_CREATE,
                     "the store in %s is in use by process %ld; stop that one, or give this one a "
                     "directory of its own.",
                     directory, pid);
}

static enum status directory_lock(struct store *store, const char *directory, struct error *error) {
    char path[4200];
    snprintf(path, sizeof path, "%s/culprit.lock", directory);
    store->lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (store->lock_file < 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno,
                            "the store's lock file %s cannot be opened", path);
    if (flock(store->lock_file, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? directory_refused(store->lock_file, directory, error)
                   : error_set_os(error, STATUS_CANNOT_CREATE, errno,
                                  "the store's lock file %s cannot be locked", path);
    char text[32];
    int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    // The text is for people: on a full disk the lock holds without it.
    if (ftruncate(store->lock_file, 0) != 0 ||
        pwrite(store->lock_file, text, (size_t)size, 0) != size)
        log_write(LOG_DEBUG, (struct log_site){"C4007", store->site},
                  "%s does not say whose it is: %s", path, strerror(errno));
    return STATUS_OK;
}

// -- waiting and asking -------------------------------------------------------------------------

static uint64_t durable(const struct storage *storage) {
    const struct store *store = store_of(storage);
    return atomic_load_explicit(&store->durable, memory_order_acquire);
}

static enum status wait_durable(struct storage *storage, uint64_t ticket, uint64_t timeout_ns,
                                struct error *error) {
    struct store *store = store_of(storage);
    if (ticket <= durable(storage))
        return STATUS_OK;
    uint64_t now = clock_monotonic_ns();
    uint64_t end_ns = timeout_ns < UINT64_MAX / 4 ? now + timeout_ns : UINT64_MAX;
    bool in_time = true;
    lock_take(&store->lock);
    store->waiters++;
    pthread_cond_signal(&store->work);
    while (ticket > durable(storage) && in_time)
        in_time = cond_wait_until(&store->done, &store->lock, end_ns);
    store->waiters--;
    enum status status = STATUS_OK;
    if (ticket > durable(storage))
        status = error_set(error, STATUS_IO, "what was to be stored in %s is not safe yet%s%s.",
                           store->path, store->degraded ? ": " : "", store->reason);
    lock_release(&store->lock);
    return status;
}

static void on_commit(struct storage *storage, void (*committed)(void *context), void *context) {
    assert(committed != NULL);
    struct store *store = store_of(storage);
    lock_take(&store->lock);
    assert(store->callback_count < STORE_CALLBACKS_MAX);
    store->callbacks[store->callback_count++] = (struct store_callback){committed, context};
    lock_release(&store->lock);
}

// An eighth of the room is kept for what must be written so that space comes free.
static bool is_full(const struct storage *storage) {
    const struct store *store = store_of(storage);
    uint64_t pending = atomic_load(&store->pending_bytes);
    uint64_t input = atomic_load(&store->input_bytes);
    uint64_t used = atomic_load(&store->used_bytes);
    return input >= store->pending_max || used + pending >= store->max_size / 8 * 7;
}

static uint64_t room(const struct storage *storage) {
    const struct store *store = store_of(storage);
    uint64_t input = atomic_load(&store->input_bytes);
    return input < store->pending_max ? store->pending_max - input : 0;
}

static void statistics(struct storage *storage, struct storage_statistics *out) {
    struct store *store = store_of(storage);
    lock_take(&store->lock);
    *out = (struct storage_statistics){.degraded = store->degraded};
    memcpy(out->reason, store->reason, sizeof out->reason);
    lock_release(&store->lock);
    out->size_bytes = size_beside(store->path, "") + size_beside(store->path, "-wal");
    out->max_bytes = store->max_size;
    out->pending_bytes = atomic_load(&store->pending_bytes);
    out->commits = atomic_load(&store->commits);
    out->batches = atomic_load(&store->batches);
    out->failures = atomic_load(&store->failures); // after `degraded`, which one of them caused
    out->damaged_blobs = atomic_load(&store->damaged_blobs);
    out->repairs = atomic_load(&store->repairs);
}

static void close_by(struct storage *storage, uint64_t deadline_ns) {
    struct store *store = store_of(storage);
    lock_take(&store->lock);
    store->close_by_ns = deadline_ns;
    lock_release(&store->lock);
}

static const struct storage_calls CALLS = {
    .batch_new = store_batch_new,
    .put = store_put,
    .delete = store_delete,
    .delete_names = store_delete_names,
    .submit = store_submit,
    .durable = durable,
    .wait = wait_durable,
    .on_commit = on_commit,
    .scan = store_scan,
    .last_number = store_last_number,
    .statistics = statistics,
    .full = is_full,
    .room = room,
    .close_by = close_by,
};

// -- opening and closing ------------------------------------------------------------------------

static void conditions_init(struct store *store) {
    cond_init(&store->work);
    cond_init(&store->done);
    lock_init(&store->disk_lock);
    lock_init(&store->lock);
}

static void store_free(struct store *store) {
    struct store_batch *lists[] = {store->first, store->idle};
    for (size_t i = 0; i < 2; i++) {
        for (struct store_batch *batch = lists[i], *next; batch != NULL; batch = next) {
            next = batch->next;
            batch_free(batch);
        }
    }
    if (store->lock_file >= 0)
        close(store->lock_file);
    pthread_cond_destroy(&store->work);
    pthread_cond_destroy(&store->done);
    lock_destroy(&store->disk_lock);
    lock_destroy(&store->lock);
    memory_give(store->path);
    memory_give(store->site);
    memory_give(store);
}

static enum status file_open(struct store *store, struct error *error) {
    store_rebuild_resume(store);
    enum disk_result result = database_open(&store->database, store->path);
    if (result == DISK_DAMAGED)
        result = store_rebuild(store, store->database.reason);
    if (result != DISK_OK)
        return error_set(error, STATUS_IO, "the store %s cannot be opened: %s.", store->path,
                         store->database.reason);
    atomic_store(&store->used_bytes, store->database.used_bytes);
    return STATUS_OK;
}

enum status store_open(struct storage **out, const struct store_options *options,
                       struct error *error) {
    assert(options->directory != NULL && options->site != NULL);
    const struct store_library *library;
    enum status status = store_library_load(&library, error);
    if (status == STATUS_OK && strlen(options->directory) > 4096)
        status = error_set(error, STATUS_CONFIG, "the path of the store's directory is too long.");
    if (status == STATUS_OK)
        status = directory_look(options, error);
    if (status != STATUS_OK)
        return status;
    struct store *store = memory_zero(1, sizeof *store);
    store->base = (struct storage){STORAGE_MAGIC, &CALLS};
    conditions_init(store);
    size_t size = strlen(options->directory) + sizeof "/culprit.db";
    store->path = memory_take(size);
    snprintf(store->path, size, "%s/culprit.db", options->directory);
    store->site = memory_copy_text(options->site, strlen(options->site));
    store->max_size = options->max_size;
    store->pending_max = options->max_size / 4 < PENDING_MAX ? options->max_size / 4 : PENDING_MAX;
    store->interval_ns = options->commit_interval_ns;
    store->group_count = 1;
    store->database.library = library;
    store->database.keeps_mark = true;
    status = directory_lock(store, options->directory, error);
    if (status == STATUS_OK)
        status = file_open(store, error);
    if (status == STATUS_OK) {
        int failure = pthread_create(&store->thread, NULL, store_writer, store);
        if (failure != 0) {
            database_close(&store->database, false);
            status = error_set_os(error, STATUS_OS, failure, "the store's thread cannot start");
        }
    }
    if (status == STATUS_OK)
        *out = &store->base;
    else
        store_free(store);
    return status;
}

void store_close(struct storage *storage, uint64_t budget_ns) {
    if (storage == NULL)
        return;
    struct store *store = store_of(storage);
    lock_take(&store->lock);
    store->stopping = true;
    store->stop_ns = clock_monotonic_ns() + budget_ns;
    if (store->close_by_ns != 0 && store->close_by_ns < store->stop_ns)
        store->stop_ns = store->close_by_ns;
    pthread_cond_broadcast(&store->work);
    lock_release(&store->lock);
    pthread_join(store->thread, NULL);
    if (store->queued_count > 0)
        log_write(LOG_ERROR, (struct log_site){"C4005", store->site},
                  "%s could not be written before the end (%s): %u batches of %llu bytes are not "
                  "in it; what they came from must be sent again.",
                  store->path, store->reason, store->queued_count,
                  (unsigned long long)atomic_load(&store->pending_bytes));
    database_close(&store->database, false);
    store_free(store);
}

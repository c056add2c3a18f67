// SPDX-License-Identifier: Apache-2.0
// Makes a whole store of a damaged one.
//
// What can be read goes into culprit.db.new, which is renamed to culprit.db.rebuilt when it is
// complete and on the disk. Only then the damaged file gets its new name, and the rebuilt one takes
// its place. A crash before that leaves the damaged store as it was; one after it is ended at the
// next start. The two newest damaged files are kept for whoever wants to look.
#include "extensions/file_storage/store_parts.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COMMIT_BYTES = 4 << 20, DAMAGED_KEPT = 2, DAMAGED_SEEN_MAX = 64 };

// -- files --------------------------------------------------------------------------------------

static void remove_beside(const char *path, const char *suffix) {
    static const char *const parts[] = {"", "-wal", "-shm", "-journal", STORE_MARK_SUFFIX};
    char name[STORE_PATH_ROOM];
    path_beside(name, path, suffix);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        unlink_beside(name, parts[i]);
}

static bool rename_part(const char *path, const char *from, const char *to) {
    char old[STORE_PATH_ROOM], new[STORE_PATH_ROOM];
    path_beside(old, path, from);
    path_beside(new, path, to);
    return rename(old, new) == 0 || errno == ENOENT;
}

static int newest_first(const void *a, const void *b) {
    return strcmp(b, a);
}

// Removes all damaged files but the newest.
static void damaged_thin(const char *path) {
    static const char prefix[] = "culprit.db.damaged-";
    char directory[STORE_PATH_ROOM], (*names)[64] = memory_take(DAMAGED_SEEN_MAX * sizeof *names);
    uint32_t count = 0;
    directory_of(path, directory);
    DIR *list = opendir(directory);
    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        size_t size = strlen(entry->d_name);
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0 || size >= sizeof *names ||
            entry->d_name[size - 1] != 'Z' || count == DAMAGED_SEEN_MAX)
            continue;
        memcpy(names[count++], entry->d_name, size + 1);
    }
    if (list != NULL)
        closedir(list);
    qsort(names, count, sizeof *names, newest_first);
    for (uint32_t i = DAMAGED_KEPT; i < count; i++)
        remove_beside(path, names[i] + strlen("culprit.db"));
    memory_give(names);
}

// Gives the damaged file a name of its own and the rebuilt one its place; `name` gets that name.
static bool swap(const char *path, char name[64]) {
    char time[CLOCK_RFC3339_MAX], log[80], journal[80], directory[STORE_PATH_ROOM];
    clock_format_rfc3339(clock_unix_ns(), time);
    size_t size = 0;
    for (size_t i = 0; time[i] != '\0'; i++)
        if (time[i] != ':')
            time[size++] = time[i];
    snprintf(name, 64, ".damaged-%.*s", (int)size, time);
    snprintf(log, sizeof log, "%s-wal", name);
    snprintf(journal, sizeof journal, "%s-journal", name);
    // Step by step, so that a crash between them is followed by the rest of them; the log goes
    // first, since it must never stand beside the new file, and so does the journal of a file whose
    // making was cut short.
    bool done = rename_part(path, "-wal", log) && rename_part(path, "-journal", journal) &&
                rename_part(path, "", name);
    unlink_beside(path, "-shm");
    unlink_beside(path, STORE_MARK_SUFFIX);
    done = done && rename_part(path, ".rebuilt", "");
    directory_of(path, directory);
    sync_path(directory);
    damaged_thin(path);
    return done;
}

void store_rebuild_resume(const struct store *store) {
    assert(store->database.connection == NULL);
    char rebuilt[STORE_PATH_ROOM], name[64];
    path_beside(rebuilt, store->path, ".rebuilt");
    remove_beside(store->path, ".new");
    if (access(rebuilt, F_OK) == 0)
        (void)swap(store->path, name);
}

// -- rows ---------------------------------------------------------------------------------------

struct transfer {
    struct store_database target;
    enum disk_result result;
    uint64_t uncommitted;
};

static bool transfer_row(void *context, enum storage_space space, const char *name, uint64_t number,
                         uint32_t crc, struct slice bytes) {
    assert(((const struct transfer *)context)->target.connection != NULL);
    struct transfer *transfer = context;
    struct store_database *target = &transfer->target;
    transfer->result = database_put(target, space, name, number, crc, bytes);
    transfer->uncommitted += bytes.size;
    if (transfer->result == DISK_OK && transfer->uncommitted >= COMMIT_BYTES) {
        transfer->uncommitted = 0;
        transfer->result = database_commit(target, UINT64_MAX);
        if (transfer->result == DISK_OK)
            transfer->result = database_checkpoint(target, false);
        if (transfer->result == DISK_OK)
            transfer->result = database_begin(target);
    }
    return transfer->result == DISK_OK;
}

// Fills PATH.new and, when that is complete, calls it PATH.rebuilt.
static enum disk_result transfer_all(struct store *store, struct recovery_totals *totals) {
    char path[STORE_PATH_ROOM];
    struct error error = {0};
    struct transfer transfer = {.target = {.library = store->database.library}};
    path_beside(path, store->path, ".new");
    remove_beside(store->path, ".new");
    transfer.result = database_open(&transfer.target, path);
    if (transfer.result == DISK_OK)
        transfer.result = database_begin(&transfer.target);
    if (transfer.result == DISK_OK &&
        recovery_rows(store->path, transfer_row, &transfer, totals, &error) != STATUS_OK) {
        snprintf(transfer.target.reason, sizeof transfer.target.reason, "%.150s", error.message);
        transfer.result = DISK_FAILED;
    }
    if (transfer.result == DISK_OK)
        transfer.result = database_commit(&transfer.target, UINT64_MAX);
    if (transfer.result == DISK_OK)
        transfer.result = database_checkpoint(&transfer.target, true);
    memcpy(store->database.reason, transfer.target.reason, sizeof store->database.reason);
    database_close(&transfer.target, false);
    sync_path(path);
    if (transfer.result == DISK_OK && !rename_part(store->path, ".new", ".rebuilt")) {
        snprintf(store->database.reason, sizeof store->database.reason, "renaming %.100s: %s", path,
                 strerror(errno));
        transfer.result = DISK_FAILED;
    }
    if (transfer.result != DISK_OK)
        remove_beside(store->path, ".new");
    return transfer.result;
}

// -- the whole ----------------------------------------------------------------------------------

// Tells what became of the rows; returns how many are lost.
static uint64_t say(const struct store *store, const char *why, const char *name,
                    const struct recovery_totals *totals) {
    char text[600];
    size_t size = 0;
    uint64_t kept = 0, lost = totals->lost_elsewhere;
    text[0] = '\0';
    for (int space = 0; space < STORAGE_SPACE_COUNT; space++) {
        kept += totals->kept[space];
        lost += totals->lost[space];
        if (totals->lost[space] > 0 && size < sizeof text)
            size += (size_t)snprintf(text + size, sizeof text - size, ", %llu of %s",
                                     (unsigned long long)totals->lost[space],
                                     storage_space_name((enum storage_space)space));
    }
    log_write(LOG_ERROR, (struct log_site){"C4003", store->site},
              "%s is damaged: %s. It is kept as culprit.db%s; %llu blobs were carried over, %llu "
              "could not be read%s, and %llu pages are unreadable.",
              store->path, why, name, (unsigned long long)kept, (unsigned long long)lost, text,
              (unsigned long long)totals->bad_pages);
    return lost;
}

enum disk_result store_rebuild(struct store *store, const char *why) {
    assert(why != NULL);
    char because[STORE_REASON_MAX], name[64];
    struct recovery_totals totals = {0};
    snprintf(because, sizeof because, "%s", why);
    for (char *at = because; *at != '\0'; at++)
        if (*at == '\n')
            *at = ' ';
    database_close(&store->database, true);
    enum disk_result result = transfer_all(store, &totals);
    if (result != DISK_OK)
        return result == DISK_DAMAGED ? DISK_FAILED : result;
    if (!swap(store->path, name)) {
        snprintf(store->database.reason, sizeof store->database.reason, "renaming: %s",
                 strerror(errno));
        return DISK_FAILED;
    }
    atomic_fetch_add(&store->damaged_blobs, say(store, because, name, &totals));
    atomic_fetch_add(&store->repairs, 1);
    result = database_open(&store->database, store->path);
    return result == DISK_DAMAGED ? DISK_FAILED : result;
}

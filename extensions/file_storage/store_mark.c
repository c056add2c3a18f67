// SPDX-License-Identifier: Apache-2.0
// Keeps, beside the log, how far it was synced.
//
// The library reads its log up to the first frame that is not right and takes that for its end: it
// cannot tell a commit that a power failure tore from one that was synced, acknowledged, and is
// damaged. So a second file says how far the log was synced. It is written after the sync, without
// one of its own: it may lag behind, and is never ahead. Before the log is begun anew it is synced
// itself, since an old mark would then speak of a log that is rightly gone.
//
// One row stands for all when the log is gone: the one that was put last. If it is in the file, so
// is what came before it. Behind the mark stands a CRC-32C of each frame: with the log's own sum,
// which takes some bytes for others, it says which byte of a damaged frame is wrong.
//
// Cost: a commit's frames are read again, from memory, and two small writes made; a sync each time
// the log was moved into the file.
#include "extensions/file_storage/store_parts.h"

#include "base/hash/crc32c.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { SALTS_AT = 16, SUMS_AT = 512, SUMS_ROOM = 16 };

static const char MAGIC[8] = {'c', 'u', 'l', 'p', 'm', 'a', 'r', 'k'};

struct mark_file {
    char magic[sizeof MAGIC];
    struct store_mark mark;
    uint32_t spare;
    uint32_t crc; // of all before it
};
_Static_assert(sizeof(struct mark_file) <= 512, "a disk writes it whole or not at all");
_Static_assert(sizeof(struct store_mark) == 32, "it has no holes");

static uint32_t crc_of(const struct mark_file *file) {
    return crc32c(0, (struct slice){(const char *)file, offsetof(struct mark_file, crc)});
}

bool mark_read(const char *path, struct store_mark *mark) {
    struct mark_file file;
    int descriptor = open_beside(path, STORE_MARK_SUFFIX, O_RDONLY);
    bool whole = descriptor >= 0 && pread(descriptor, &file, sizeof file, 0) == sizeof file &&
                 memcmp(file.magic, MAGIC, sizeof MAGIC) == 0 && file.crc == crc_of(&file) &&
                 file.mark.moved <= file.mark.frames;
    if (descriptor >= 0)
        close(descriptor);
    *mark = whole ? file.mark : (struct store_mark){.witness_key = STORE_NO_WITNESS};
    return whole;
}

static void files_close(struct store_database *database) {
    if (database->mark_file >= 0)
        close(database->mark_file);
    if (database->mark_log >= 0)
        close(database->mark_log);
    database->mark_file = database->mark_log = -1;
}

// One that does not say the truth is worse than none.
static void mark_give_up(struct store_database *database) {
    unlink_beside(database->path, STORE_MARK_SUFFIX);
    files_close(database);
}

void mark_begin(struct store_database *database) {
    database->salts_known = false;
    if (!database->keeps_mark)
        return;
    database->mark_file = open_beside(database->path, STORE_MARK_SUFFIX, O_RDWR | O_CREAT);
    if (database->mark_file < 0)
        mark_give_up(database);
}

void mark_end(struct store_database *database, bool log_is_gone) {
    if (database->mark_file < 0)
        return;
    files_close(database);
    if (log_is_gone)
        unlink_beside(database->path, STORE_MARK_SUFFIX);
}

uint32_t mark_frame_sum(const unsigned char *frame) {
    uint32_t crc = crc32c(0, (struct slice){(const char *)frame, 8});
    return crc32c(crc, (struct slice){(const char *)frame + STORE_FRAME_HEADER, STORE_PAGE_SIZE});
}

void mark_sums_read(const char *path, uint32_t *sums, uint32_t count) {
    memset(sums, 0, count * sizeof *sums);
    int descriptor = open_beside(path, STORE_MARK_SUFFIX, O_RDONLY);
    if (descriptor >= 0 && pread(descriptor, sums, count * sizeof *sums, SUMS_AT) < 0)
        memset(sums, 0, count * sizeof *sums);
    if (descriptor >= 0)
        close(descriptor);
}

// The salts of the log are other ones each time it is begun anew.
static bool salts_read(struct store_database *database) {
    unsigned char salts[sizeof database->mark.salts];
    if (database->salts_known)
        return true;
    if (database->mark_log < 0)
        database->mark_log = open_beside(database->path, "-wal", O_RDONLY);
    if (database->mark_log < 0 ||
        pread(database->mark_log, salts, sizeof salts, SALTS_AT) != sizeof salts)
        return false;
    if (memcmp(salts, database->mark.salts, sizeof salts) != 0)
        database->mark.frames = 0;
    memcpy(database->mark.salts, salts, sizeof salts);
    return database->salts_known = true;
}

static void mark_write(struct store_database *database) {
    assert(database->mark_file >= 0);
    assert(database->mark.moved <= database->mark.frames);
    struct mark_file file = {.mark = database->mark};
    memcpy(file.magic, MAGIC, sizeof MAGIC);
    file.crc = crc_of(&file);
    if (pwrite(database->mark_file, &file, sizeof file, 0) != (ssize_t)sizeof file)
        mark_give_up(database);
}

// Of the frames behind those that the mark spoke of, a piece of the log at a time. One that cannot
// be read has none.
static void sums_write(struct store_database *database, uint32_t frames) {
    assert(database->mark_log >= 0);
    unsigned char piece[SUMS_ROOM * STORE_FRAME];
    uint32_t sums[SUMS_ROOM];
    for (uint32_t first = database->mark.frames, count; first < frames; first += count) {
        count = frames - first < SUMS_ROOM ? frames - first : SUMS_ROOM;
        ssize_t got = pread(database->mark_log, piece, (size_t)count * STORE_FRAME,
                            STORE_LOG_HEADER + (off_t)first * STORE_FRAME);
        for (uint32_t i = 0; i < count; i++) {
            bool is_read = got >= (ssize_t)(i + 1) * STORE_FRAME;
            sums[i] = is_read ? mark_frame_sum(piece + (size_t)i * STORE_FRAME) : 0;
        }
        off_t place = SUMS_AT + (off_t)first * (off_t)sizeof *sums;
        if (pwrite(database->mark_file, sums, count * sizeof *sums, place) < 0)
            return; // nothing depends on them alone
    }
}

void mark_synced(struct store_database *database, uint32_t frames) {
    if (database->mark_file < 0)
        return;
    if (!salts_read(database)) {
        mark_give_up(database);
        return;
    }
    sums_write(database, frames);
    database->mark.frames = frames;
    database->mark.moved = 0;
    database->mark.witness_key = database->witness_key;
    database->mark.witness_crc = database->witness_crc;
    mark_write(database);
}

void mark_moved(struct store_database *database, uint32_t frames) {
    assert(database->connection != NULL);
    if (database->mark_file >= 0 && frames > 0 && salts_read(database)) {
        database->mark.frames = database->mark.moved = frames;
        mark_write(database);
    }
    mark_settle(database);
    database->salts_known = false;
}

void mark_settle(struct store_database *database) {
    assert(database->connection != NULL);
    if (database->mark_file >= 0 && fdatasync(database->mark_file) != 0)
        mark_give_up(database);
}

// SPDX-License-Identifier: Apache-2.0
// Keeps how far each log had come at a checkpoint, and cuts it back to there.
//
// What was sent after a checkpoint comes once more after a crash. So the checkpoint keeps the
// length of each log and a checksum of its last bytes; what follows is cut off, and numbers and
// steps go on from there. A log that is not as it was left is not touched: its run goes on in a
// new directory.
#include "exporters/wandb/offline/offline.h"

#include "exporters/wandb/offline/parts.h"
#include "exporters/wandb/record.h"

#include "base/hash/crc32c.h"
#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { COOKIE_VERSION = 1, COOKIE_TAIL = 512 };

struct cookie_head {
    uint32_t version;
    uint32_t run_count;
    uint64_t sequence;
};

struct cookie_run {
    uint64_t start_ns, name_s, incarnation, length, records, first_row;
    uint32_t tail_crc; // of up to COOKIE_TAIL bytes before `length`
    uint16_t id_size;  // the id follows
    uint8_t has_rows, finished;
};

// Of the bytes before `length`; false when they cannot be read.
static bool tail_crc(const char *path, uint64_t length, uint32_t *crc) {
    char tail[COOKIE_TAIL];
    size_t size = length < sizeof tail ? (size_t)length : sizeof tail;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return false;
    ssize_t got = pread(descriptor, tail, size, (off_t)(length - size));
    close(descriptor);
    if (got < 0 || (size_t)got != size)
        return false;
    *crc = crc32c(0, (struct slice){tail, size});
    return true;
}

void run_mark(const struct wandb_offline *offline, struct offline_run *run) {
    assert(run->kept.length > 0);
    char *path = run_log_path(offline, run);
    if (!tail_crc(path, run->kept.length, &run->tail_crc))
        run->tail_crc = 0; // it is gone; resuming will find that too
    memory_give(path);
}

void wandb_offline_delivered(const struct wandb_offline *offline, struct buffer *out) {
    struct cookie_head head = {COOKIE_VERSION, offline->run_count, offline->sequence};
    buffer_append(out, (struct slice){(const char *)&head, sizeof head});
    for (uint32_t i = 0; i < offline->run_count; i++) {
        const struct offline_run *run = offline->runs[i];
        struct cookie_run cookie = {
            .start_ns = run->start_ns,
            .name_s = run->name_s,
            .incarnation = run->incarnation,
            .length = run->kept.length,
            .records = run->kept.records,
            .first_row = run->kept.first_row,
            .tail_crc = run->tail_crc,
            .id_size = (uint16_t)strlen(run->id),
            .has_rows = run->kept.has_rows,
            .finished = run->kept.finished,
        };
        buffer_append(out, (struct slice){(const char *)&cookie, sizeof cookie});
        buffer_append(out, slice_of(run->id));
    }
}

static bool take(struct slice *bytes, void *out, size_t size) {
    if (bytes->size < size)
        return false;
    memcpy(out, bytes->data, size);
    bytes->data += size;
    bytes->size -= size;
    return true;
}

static enum status run_resume(struct wandb_offline *offline, const struct cookie_run *cookie,
                              struct slice id, struct error *error) {
    struct offline_run *run = run_add(offline, id);
    uint32_t crc;
    run->start_ns = cookie->start_ns;
    run->name_s = cookie->name_s;
    run->incarnation = cookie->incarnation;
    run->kept = (struct offline_position){
        .length = cookie->length,
        .records = cookie->records,
        .first_row = cookie->first_row,
        .has_rows = cookie->has_rows != 0,
        .finished = cookie->finished != 0,
    };
    run->now = run->kept;
    run->tail_crc = cookie->tail_crc;
    char *path = run_log_path(offline, run);
    bool same = tail_crc(path, run->kept.length, &crc) && crc == cookie->tail_crc;
    enum status status = STATUS_OK;
    if (same)
        status = files_cut(offline, run, error);
    else if (!run->kept.finished)
        log_write(
            LOG_WARN, (struct log_site){"C3606", offline->site},
            "%.300s has changed since the last checkpoint; its run continues in a new directory",
            path);
    memory_give(path);
    if (!same && !run->kept.finished)
        run_drop(offline, offline->run_count - 1);
    return status;
}

enum status wandb_offline_resume(struct wandb_offline *offline, struct slice delivered,
                                 struct error *error) {
    struct cookie_head head;
    struct cookie_run cookie;
    if (!take(&delivered, &head, sizeof head) || head.version != COOKIE_VERSION)
        return STATUS_OK; // another mode wrote it
    for (uint32_t i = 0; i < head.run_count; i++) {
        if (!take(&delivered, &cookie, sizeof cookie) || cookie.id_size == 0 ||
            cookie.id_size > WANDB_RUN_ID_MAX || delivered.size < cookie.id_size)
            return error_set(error, STATUS_BAD_DATA,
                             "what the checkpoint says of the runs in %.300s is damaged",
                             offline->directory);
        struct slice id = {delivered.data, cookie.id_size};
        delivered.data += id.size;
        delivered.size -= id.size;
        enum status status = run_resume(offline, &cookie, id, error);
        if (status != STATUS_OK)
            return status;
    }
    offline->sequence = head.sequence;
    return STATUS_OK;
}

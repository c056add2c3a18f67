// SPDX-License-Identifier: Apache-2.0
// The offsets are rows of the store's space of journals, under a name of the receiver's own: the
// number is the sequence number that an offset begins with, the bytes are boot and offset.
#include "receivers/kmsg/wall_clock.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct kept {
    struct boot_id boot;
    int64_t offset_ns;
};

static const char boot_path[] = "/proc/sys/kernel/random/boot_id";

static int hex_value(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct boot_id boot_id_now(void) {
    struct boot_id id = {{0, 0}};
    char text[64];
    int file = open(boot_path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text);
    if (file >= 0)
        close(file);
    int digits = 0;
    for (ssize_t i = 0; i < size && digits < 32; i++) {
        int value = hex_value(text[i]);
        if (value >= 0) {
            id.words[digits / 16] = id.words[digits / 16] << 4 | (uint64_t)value;
            digits++;
        }
    }
    return id;
}

// -- what the store keeps -------------------------------------------------------------------------

struct scan {
    struct wall_clock *wall;
    struct storage_batch *stale; // rows of other boots; NULL: none yet
};

static void add(struct wall_clock *wall, struct wall_clock_offset offset) {
    assert(wall->count == 0 || offset.from >= wall->offsets[wall->count - 1].from);
    if (wall->count > 0 && wall->offsets[wall->count - 1].from == offset.from)
        wall->count--;
    if (wall->count == WALL_CLOCK_OFFSETS_MAX)
        memmove(wall->offsets, wall->offsets + 1, --wall->count * sizeof *wall->offsets);
    wall->offsets[wall->count++] = offset;
}

static bool take_row(void *context, const char *name, uint64_t number, struct slice bytes) {
    struct scan *scan = context;
    struct kept kept;
    bool whole = bytes.size == sizeof kept;
    if (whole)
        memcpy(&kept, bytes.data, sizeof kept);
    if (whole && boot_id_equal(kept.boot, scan->wall->boot)) {
        add(scan->wall, (struct wall_clock_offset){number, kept.offset_ns});
        return true;
    }
    if (scan->stale == NULL)
        scan->stale = storage_batch_new(scan->wall->store);
    storage_delete(scan->stale, STORAGE_JOURNAL, name, number, number);
    return true;
}

enum status wall_clock_init(struct wall_clock *wall, struct storage *store, const char *id,
                            uint32_t copy, struct boot_id boot, struct error *error) {
    *wall = (struct wall_clock){.store = store, .boot = boot};
    int size = snprintf(wall->name, sizeof wall->name, "%s/clock/%u", id, (unsigned)copy);
    if (size >= (int)sizeof wall->name)
        return error_set(error, STATUS_LIMIT, "the name of the receiver is too long");
    if (store == NULL)
        return STATUS_OK;
    struct scan scan = {.wall = wall};
    enum status status = storage_scan(store, STORAGE_JOURNAL, wall->name, 0, STORAGE_NUMBER_MAX,
                                      take_row, &scan, error);
    if (scan.stale != NULL)
        storage_submit(scan.stale);
    return status;
}

static void keep(struct wall_clock *wall, struct wall_clock_offset offset) {
    if (wall->count > 0 && offset.from > wall->offsets[wall->count - 1].from &&
        wall->count == WALL_CLOCK_OFFSETS_MAX && wall->store != NULL) {
        struct storage_batch *oldest = storage_batch_new(wall->store);
        storage_delete(oldest, STORAGE_JOURNAL, wall->name, wall->offsets[0].from,
                       wall->offsets[0].from);
        storage_submit(oldest);
    }
    add(wall, offset);
    if (wall->store == NULL || offset.from > STORAGE_NUMBER_MAX)
        return;
    struct kept kept = {wall->boot, offset.offset_ns};
    struct storage_batch *batch = storage_batch_new(wall->store);
    storage_put(batch, STORAGE_JOURNAL, wall->name, offset.from,
                (struct slice){(const char *)&kept, sizeof kept});
    wall->ticket = storage_submit(batch);
}

bool wall_clock_is_kept(struct wall_clock *wall, uint64_t timeout_ns) {
    struct error ignored;
    return wall->ticket == 0 || storage_durable(wall->store) >= wall->ticket ||
           storage_wait(wall->store, wall->ticket, timeout_ns, &ignored) == STATUS_OK;
}

// -- offsets --------------------------------------------------------------------------------------

void wall_clock_begin(struct wall_clock *wall, uint64_t unix_ns, uint64_t monotonic_ns) {
    assert(unix_ns <= INT64_MAX && monotonic_ns <= INT64_MAX);
    if (wall->count == 0)
        keep(wall, (struct wall_clock_offset){0, (int64_t)unix_ns - (int64_t)monotonic_ns});
}

static const struct wall_clock_offset *offset_of(const struct wall_clock *wall, uint64_t sequence) {
    assert(wall->count > 0);
    uint32_t i = wall->count - 1;
    while (i > 0 && wall->offsets[i].from > sequence)
        i--;
    return &wall->offsets[i];
}

// Usec of the record as nanoseconds, bounded so that sums with it stay in range.
static int64_t since_boot_ns(uint64_t usec) {
    static const uint64_t USEC_MAX = INT64_MAX / 4000;
    return (int64_t)((usec > USEC_MAX ? USEC_MAX : usec) * 1000);
}

bool wall_clock_fresh(struct wall_clock *wall, uint64_t sequence, uint64_t usec, uint64_t unix_ns) {
    const struct wall_clock_offset *last = &wall->offsets[wall->count - 1];
    assert(wall->count > 0 && unix_ns <= INT64_MAX);
    int64_t offset_ns = (int64_t)unix_ns - since_boot_ns(usec), differs;
    if (sequence < last->from || __builtin_sub_overflow(offset_ns, last->offset_ns, &differs) ||
        (differs <= (int64_t)WALL_CLOCK_TOLERANCE_NS &&
         differs >= -(int64_t)WALL_CLOCK_TOLERANCE_NS))
        return false;
    keep(wall, (struct wall_clock_offset){sequence, offset_ns});
    return true;
}

uint64_t wall_clock_time(const struct wall_clock *wall, uint64_t sequence, uint64_t usec) {
    int64_t time_ns;
    if (__builtin_add_overflow(offset_of(wall, sequence)->offset_ns, since_boot_ns(usec), &time_ns))
        time_ns = INT64_MAX;
    return time_ns < 1 ? 1 : (uint64_t)time_ns;
}

// SPDX-License-Identifier: Apache-2.0
// What does page N hold?
//
// The log's frames are followed as long as their running checksum is right; only those up to the
// last that ends a transaction count. One pass over the log, 4 bytes a page and a frame.
#include "pipeline/store_log.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_HEADER = 32, FRAME_HEADER = 24, FRAME = FRAME_HEADER + STORE_PAGE_SIZE };

static uint32_t big_endian(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

struct checksum {
    uint32_t a, b;
    bool big;
};

static void checksum_add(struct checksum *sum, const unsigned char *at, size_t size) {
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint32_t x = big_endian(at + i), y = big_endian(at + i + 4);
        sum->a += (sum->big ? x : __builtin_bswap32(x)) + sum->b;
        sum->b += (sum->big ? y : __builtin_bswap32(y)) + sum->a;
    }
}

static bool read_at(int file, unsigned char *into, size_t size, uint64_t at) {
    if (file < 0)
        return false;
    while (size > 0) {
        ssize_t got = pread(file, into, size, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        into += got;
        size -= (size_t)got;
        at += (uint64_t)got;
    }
    return true;
}

static uint64_t size_of(int file) {
    struct stat about;
    return file >= 0 && fstat(file, &about) == 0 ? (uint64_t)about.st_size : 0;
}

static bool log_begin(int file, unsigned char header[LOG_HEADER], struct checksum *sum) {
    if (!read_at(file, header, LOG_HEADER, 0) || (big_endian(header) & ~1u) != 0x377f0682 ||
        big_endian(header + 8) != STORE_PAGE_SIZE)
        return false;
    *sum = (struct checksum){.big = (header[3] & 1) != 0};
    checksum_add(sum, header, 24);
    return sum->a == big_endian(header + 24) && sum->b == big_endian(header + 28);
}

// Takes the page numbers of a transaction's frames over.
static void frames_settle(struct store_log *log, const uint32_t *numbers, uint32_t from,
                          uint32_t to, uint32_t page_count) {
    for (uint32_t frame = from; frame < to; frame++)
        log->frames[numbers[frame]] = frame + 1;
    log->page_count = page_count;
}

static void log_read(struct store_log *log) {
    unsigned char header[LOG_HEADER];
    struct checksum sum;
    if (!log_begin(log->log, header, &sum))
        return;
    uint64_t size = size_of(log->log);
    uint32_t count = (uint32_t)((size - LOG_HEADER) / FRAME), settled = 0;
    uint64_t most = log->page_count + (uint64_t)count + 1;
    log->frame_pages = (uint32_t)most + 1;
    log->frames = memory_zero(log->frame_pages, sizeof *log->frames);
    uint32_t *numbers = memory_take((size_t)count * sizeof *numbers);
    unsigned char *frame = memory_take(FRAME);
    for (uint32_t i = 0; i < count; i++) {
        if (!read_at(log->log, frame, FRAME, LOG_HEADER + (uint64_t)i * FRAME))
            break;
        checksum_add(&sum, frame, 8);
        checksum_add(&sum, frame + FRAME_HEADER, STORE_PAGE_SIZE);
        numbers[i] = big_endian(frame);
        uint32_t page_count = big_endian(frame + 4);
        if (memcmp(frame + 8, header + 16, 8) != 0 || sum.a != big_endian(frame + 16) ||
            sum.b != big_endian(frame + 20) || numbers[i] == 0 || numbers[i] > most ||
            page_count > most)
            break;
        if (page_count != 0) {
            frames_settle(log, numbers, settled, i + 1, page_count);
            settled = i + 1;
        }
    }
    memory_give(frame);
    memory_give(numbers);
}

enum status log_open(struct store_log *log, const char *path, struct error *error) {
    char name[4352];
    snprintf(name, sizeof name, "%s-wal", path);
    *log = (struct store_log){.file = open(path, O_RDONLY | O_CLOEXEC), .log = -1};
    if (log->file < 0 && errno != ENOENT)
        return error_set_os(error, STATUS_IO, errno, "reading %s", path);
    log->log = open(name, O_RDONLY | O_CLOEXEC);
    uint64_t pages = size_of(log->file) / STORE_PAGE_SIZE;
    log->page_count = pages < INT32_MAX ? (uint32_t)pages : INT32_MAX;
    log_read(log);
    return STATUS_OK;
}

void log_close(struct store_log *log) {
    if (log->file >= 0)
        close(log->file);
    if (log->log >= 0)
        close(log->log);
    memory_give(log->frames);
}

bool log_page(const struct store_log *log, uint32_t number, unsigned char page[STORE_PAGE_SIZE]) {
    if (number == 0 || number > log->page_count)
        return false;
    uint32_t frame = number < log->frame_pages ? log->frames[number] : 0;
    if (frame != 0)
        return read_at(log->log, page, STORE_PAGE_SIZE,
                       LOG_HEADER + (uint64_t)(frame - 1) * FRAME + FRAME_HEADER);
    return read_at(log->file, page, STORE_PAGE_SIZE, (uint64_t)(number - 1) * STORE_PAGE_SIZE);
}

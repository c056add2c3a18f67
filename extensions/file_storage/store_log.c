// SPDX-License-Identifier: Apache-2.0
// Reads pages of the store's file and its write-ahead log.
//
// The log's frames are followed as long as their running checksum is right; only those up to the
// last that ends a transaction count. That is how the library reads it. Frames that are known to
// have been synced are followed further: each frame holds the sum that the next one goes on from,
// so that behind a damaged one the others can be told from garbage. One pass over the log, 4 bytes
// a page and a frame.
#include "extensions/file_storage/store_log.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_HEADER = STORE_LOG_HEADER, FRAME_HEADER = STORE_FRAME_HEADER, FRAME = STORE_FRAME };

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

// -- frames -------------------------------------------------------------------------------------

// The sums that a frame may go on from: as the one before it says, and as it is.
struct chain {
    struct checksum stored, computed;
};

struct log_reader {
    const char *path;
    struct store_log *log;
    struct store_mark mark;
    struct chain chain;
    unsigned char salts[8];
    bool header_is_right;
    bool is_known;       // the mark speaks of this log
    uint32_t count;      // frames in the file
    uint32_t settled;    // frames whose transactions ended
    uint32_t first_bad;  // from 1; 0: none
    uint32_t *numbers;   // pages, by frame
    uint32_t *sums;      // of the frames the mark speaks of
    uint64_t page_most;  // no page has a higher number
    uint32_t page_found; // the highest so far
    unsigned char frame[FRAME];
};

static bool sum_equal(const struct checksum *a, const struct checksum *b) {
    return a->a == b->a && a->b == b->b;
}

static struct checksum frame_sum(const unsigned char *frame, struct checksum sum) {
    checksum_add(&sum, frame, 8);
    checksum_add(&sum, frame + FRAME_HEADER, STORE_PAGE_SIZE);
    return sum;
}

static struct checksum stored_sum(const unsigned char *at, bool big) {
    return (struct checksum){big_endian(at), big_endian(at + 4), big};
}

// Looks for the one byte that makes a frame fit its sum.
struct mending {
    unsigned char *frame;
    struct checksum difference; // of the sum it should have from the one it has
    uint32_t crc;               // it should have, 0: not known
    uint32_t found;
    uint32_t at;
    unsigned char value;
};

static void mend_try(struct mending *mending, uint32_t at, unsigned char value) {
    unsigned char was = mending->frame[at];
    mending->frame[at] = value;
    if (mending->crc == 0 || mark_frame_sum(mending->frame) == mending->crc) {
        mending->found++;
        mending->at = at;
        mending->value = value;
    }
    mending->frame[at] = was;
}

// What a change of a word by `delta` does to the sum is `delta` times two numbers, `by`, that
// depend on the word's place only.
static void word_try(struct mending *mending, uint32_t at, const uint32_t by[2]) {
    for (uint32_t byte = 0; byte < 4; byte++) {
        uint32_t place = at + (mending->difference.big ? 3 - byte : byte);
        for (uint32_t value = 0; value < 256; value++) {
            uint32_t delta = (value - mending->frame[place]) << 8 * byte;
            if (by[0] * delta == mending->difference.a && by[1] * delta == mending->difference.b)
                mend_try(mending, place, (unsigned char)value);
        }
    }
}

// True when there is exactly one such byte; it is put right.
static bool frame_mend(struct log_reader *reader, const struct checksum *seed, uint32_t index) {
    assert(index < reader->count);
    struct store_log *log = reader->log;
    struct checksum stored = stored_sum(reader->frame + 16, seed->big);
    struct checksum found = frame_sum(reader->frame, *seed);
    struct mending mending = {.frame = reader->frame,
                              .difference = {stored.a - found.a, stored.b - found.b, seed->big},
                              .crc = reader->sums[index]};
    uint32_t first[2] = {1, 1}, second[2] = {0, 1};
    for (uint32_t pair = 1 + STORE_PAGE_SIZE / 8; pair-- > 0;) {
        uint32_t at = pair == 0 ? 0 : FRAME_HEADER + (pair - 1) * 8;
        word_try(&mending, at, first);
        word_try(&mending, at + 4, second);
        first[0] += first[1];
        first[1] += first[0];
        second[0] += second[1];
        second[1] += second[0];
    }
    if (mending.found != 1 || log->patch_count == LOG_PATCHES_MAX)
        return false;
    reader->frame[mending.at] = mending.value;
    log->patches[log->patch_count++] = (struct log_patch){index + 1, mending.at, mending.value};
    return true;
}

// Whether the frame that was read fits those before it; the chain goes on behind it.
static bool frame_fits(struct log_reader *reader) {
    struct checksum stored = stored_sum(reader->frame + 16, reader->chain.stored.big);
    struct checksum sum = frame_sum(reader->frame, reader->chain.stored);
    bool fits = sum_equal(&sum, &stored);
    if (!fits && !sum_equal(&reader->chain.stored, &reader->chain.computed)) {
        struct checksum other = frame_sum(reader->frame, reader->chain.computed);
        fits = sum_equal(&other, &stored);
    }
    reader->chain = (struct chain){stored, fits ? stored : sum};
    return fits;
}

static bool frame_read(struct log_reader *reader, uint32_t index) {
    assert(index < reader->count);
    return read_at(reader->log->log, reader->frame, FRAME, LOG_HEADER + (uint64_t)index * FRAME);
}

static bool frame_has_salts(const struct log_reader *reader) {
    return memcmp(reader->frame + 8, reader->salts, sizeof reader->salts) == 0;
}

// -- the log ------------------------------------------------------------------------------------

// False when there is no log that may be followed.
static bool log_begin(struct log_reader *reader) {
    unsigned char header[LOG_HEADER];
    uint64_t size = size_of(reader->log->log);
    if (!read_at(reader->log->log, header, LOG_HEADER, 0))
        return false;
    reader->count = (uint32_t)((size - LOG_HEADER) / FRAME);
    bool has_magic = (big_endian(header) & ~1u) == 0x377f0682;
    bool big = has_magic ? (header[3] & 1) != 0 : __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    struct checksum sum = {.big = big}, stored = stored_sum(header + 24, big);
    checksum_add(&sum, header, 24);
    reader->chain = (struct chain){stored, sum};
    reader->header_is_right =
        has_magic && big_endian(header + 8) == STORE_PAGE_SIZE && sum_equal(&sum, &stored);
    memcpy(reader->salts, header + 16, sizeof reader->salts);
    if (!reader->header_is_right) {
        memcpy(reader->salts, reader->mark.salts, sizeof reader->salts);
        for (uint32_t i = 0; i < reader->mark.frames && !reader->is_known; i++)
            reader->is_known = frame_read(reader, i) && frame_has_salts(reader);
        return reader->is_known;
    }
    reader->is_known = reader->mark.frames > 0 &&
                       memcmp(reader->salts, reader->mark.salts, sizeof reader->salts) == 0;
    return true;
}

// Takes the page numbers of the frames before `to` over. The file has what was moved into it.
static void frames_settle(struct log_reader *reader, uint32_t to, uint32_t page_count) {
    assert(to <= reader->count);
    for (uint32_t i = reader->settled; i < to; i++)
        if (!reader->is_known || i >= reader->mark.moved)
            reader->log->frames[reader->numbers[i]] = i + 1;
    reader->settled = to;
    reader->log->page_count = page_count;
}

static void note_bad(struct log_reader *reader, uint32_t index) {
    assert(index <= reader->count);
    if (reader->first_bad == 0)
        reader->first_bad = index + 1;
}

// A frame that was synced: it counts whatever became of it.
static void frame_take(struct log_reader *reader, uint32_t index) {
    assert(index < reader->count);
    struct chain before = reader->chain;
    bool is_whole = true;
    if (!frame_read(reader, index))
        memset(reader->frame, 0, sizeof reader->frame);
    if (!frame_has_salts(reader))
        note_bad(reader, index); // the library goes no further
    if (!frame_fits(reader)) {
        note_bad(reader, index);
        is_whole = frame_mend(reader, &before.stored, index) ||
                   (!sum_equal(&before.stored, &before.computed) &&
                    frame_mend(reader, &before.computed, index));
        if (is_whole)
            reader->chain.computed = reader->chain.stored;
    }
    uint32_t page = big_endian(reader->frame), pages = big_endian(reader->frame + 4);
    bool is_known_page = page > 0 && page <= reader->page_most;
    reader->numbers[index] = is_known_page ? page : 0;
    if (!is_known_page && index >= reader->mark.moved)
        reader->log->report.lost_frames++;
    if (is_known_page && page > reader->page_found)
        reader->page_found = page;
    if (is_whole && pages > reader->page_found && pages <= reader->page_most)
        reader->page_found = pages;
}

static void known_frames_read(struct log_reader *reader) {
    assert(reader->is_known);
    uint32_t synced = reader->mark.frames;
    uint32_t there = synced < reader->count ? synced : reader->count;
    reader->sums = memory_take(((size_t)there + 1) * sizeof *reader->sums);
    mark_sums_read(reader->path, reader->sums, there);
    reader->page_found = reader->log->page_count;
    for (uint32_t i = 0; i < there; i++)
        frame_take(reader, i);
    if (there < synced) {
        note_bad(reader, there);
        uint32_t kept = there > reader->mark.moved ? there : reader->mark.moved;
        reader->log->report.lost_frames += synced - kept;
    }
    frames_settle(reader, there, reader->page_found);
    reader->log->frames[0] = 0;
    memory_give(reader->sums);
}

// As the library does it.
static void further_frames_read(struct log_reader *reader) {
    for (uint32_t i = reader->settled; i < reader->count && frame_read(reader, i); i++) {
        uint32_t page = big_endian(reader->frame), pages = big_endian(reader->frame + 4);
        reader->numbers[i] = page;
        if (!frame_has_salts(reader) || !frame_fits(reader) || page == 0 ||
            page > reader->page_most || pages > reader->page_most)
            break;
        if (pages != 0)
            frames_settle(reader, i + 1, pages);
    }
}

static void log_describe(struct log_reader *reader) {
    struct log_report *report = &reader->log->report;
    uint32_t synced = reader->mark.frames;
    report->is_there = reader->is_known;
    report->is_damaged = reader->is_known && (reader->first_bad != 0 || !reader->header_is_right);
    if (!report->is_damaged)
        return;
    if (!reader->header_is_right)
        snprintf(report->sentence, sizeof report->sentence,
                 "the header of its log is damaged, behind which %u pages were acknowledged",
                 synced);
    else if (reader->first_bad > reader->count)
        snprintf(report->sentence, sizeof report->sentence,
                 "its log ends after %u of %u pages that were acknowledged", reader->count, synced);
    else
        snprintf(report->sentence, sizeof report->sentence,
                 "its log is damaged at page %u of %u that were acknowledged", reader->first_bad,
                 synced);
}

static void log_read(struct store_log *log, const char *path) {
    assert(log->frames == NULL);
    struct log_reader *reader = memory_zero(1, sizeof *reader);
    reader->log = log;
    reader->path = path;
    (void)mark_read(path, &reader->mark);
    if (log_begin(reader)) {
        reader->page_most = log->page_count + (uint64_t)reader->count + 1;
        log->frame_pages = (uint32_t)reader->page_most + 1;
        log->frames = memory_zero(log->frame_pages, sizeof *log->frames);
        reader->numbers = memory_take(((size_t)reader->count + 1) * sizeof *reader->numbers);
        if (reader->is_known)
            known_frames_read(reader);
        further_frames_read(reader);
        log_describe(reader);
        memory_give(reader->numbers);
    }
    memory_give(reader);
}

static enum status log_file_open(struct store_log *log, const char *path, uint64_t file_bytes,
                                 struct error *error) {
    log->log = open_beside(path, "-wal", O_RDONLY);
    if (log->log < 0 && errno != ENOENT)
        return error_set_os(error, STATUS_IO, errno, "reading %s-wal", path);
    uint64_t pages = file_bytes / STORE_PAGE_SIZE;
    log->page_count = pages < INT32_MAX ? (uint32_t)pages : INT32_MAX;
    log_read(log, path);
    return STATUS_OK;
}

enum status log_open(struct store_log *log, const char *path, struct error *error) {
    *log = (struct store_log){.file = open_beside(path, "", O_RDONLY), .log = -1};
    if (log->file < 0 && errno != ENOENT)
        return error_set_os(error, STATUS_IO, errno, "reading %s", path);
    enum status status = log_file_open(log, path, size_of(log->file), error);
    if (status != STATUS_OK)
        log_close(log);
    return status;
}

void log_close(struct store_log *log) {
    if (log->file >= 0)
        close(log->file);
    if (log->log >= 0)
        close(log->log);
    memory_give(log->frames);
}

enum status log_examine(const char *path, struct log_report *report, struct error *error) {
    struct store_log log = {.file = -1, .log = -1};
    enum status status = log_file_open(&log, path, size_beside(path, ""), error);
    *report = log.report;
    log_close(&log);
    return status;
}

// -- pages --------------------------------------------------------------------------------------

bool log_page(const struct store_log *log, uint32_t number, unsigned char page[STORE_PAGE_SIZE]) {
    if (number == 0 || number > log->page_count)
        return false;
    uint32_t frame = number < log->frame_pages ? log->frames[number] : 0;
    if (frame == 0)
        return read_at(log->file, page, STORE_PAGE_SIZE, (uint64_t)(number - 1) * STORE_PAGE_SIZE);
    if (!read_at(log->log, page, STORE_PAGE_SIZE,
                 LOG_HEADER + (uint64_t)(frame - 1) * FRAME + FRAME_HEADER))
        return false;
    for (uint32_t i = 0; i < log->patch_count; i++)
        if (log->patches[i].frame == frame && log->patches[i].at >= FRAME_HEADER)
            page[log->patches[i].at - FRAME_HEADER] = log->patches[i].value;
    return true;
}

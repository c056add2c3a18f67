// SPDX-License-Identifier: Apache-2.0
#include "receivers/file/follow/lines.h"

#include "pipeline/component/feed.h"
#include "receivers/file/ahead.h"
#include "receivers/file/follow/alike.h"
#include "receivers/file/follow/place.h"
#include "receivers/file/input.h"
#include "receivers/file/records.h"
#include "receivers/records/body.h"

#include <assert.h>

enum {
    REREAD_MAX = 64 << 10,      // an unfinished line up to this long is simply read again
    MUCH_MIN = 16 * FILE_BLOCK, // so much at once is worth other threads
};

// `known_bytes`: how long it was when it was looked at before.
static void restart(struct follower *follower, struct tracked_file *file, uint64_t known_bytes) {
    uint64_t offset = file->stream.done.offset;
    file->restarts++;
    follower_note(follower, file,
                  "it was cut or filled anew (for the %lluth time) and is read from its beginning; "
                  "up to %llu bytes were there before and could not be read",
                  (unsigned long long)file->restarts,
                  (unsigned long long)(known_bytes > offset ? known_bytes - offset : 0));
    place_retire(follower->table, file);
    place_renew(follower->table, file);
    file->stream.generation++;
    file->stream.done = (struct extent){0};
    if (file->short_of == 0)
        file->copy_waits = file->copy_looks = 0;
    file->short_of = 0;
    file->stream.skipping = file->from_end = false;
    file->restored = (struct position){.kind = POSITION_NONE};
    file->state = TRACK_UNDECIDED;
    file->scanned = file->tried_bytes = file->passed_bytes = file->begin_bytes = 0;
    file->items = file->items_hash = 0;
}

// The fingerprint of `size` bytes at `offset`, whose marks are set; none when they cannot be read.
static struct fingerprint print_at(struct follower *follower, struct tracked_file *file,
                                   uint64_t offset, size_t size) {
    char bytes[FINGERPRINT_MAX];
    size_t got = 0;
    assert(size <= sizeof bytes);
    if (!follower_read(follower, file, bytes, size, offset, &got) || got != size)
        return (struct fingerprint){0, 0};
    extent_mark(&file->stream.done, offset, (struct slice){bytes, size});
    return fingerprint_of((struct slice){bytes, size});
}

void lines_go_to(struct follower *follower, struct tracked_file *file, uint64_t offset,
                 uint64_t lines) {
    struct extent *done = &file->stream.done;
    size_t size = offset < FINGERPRINT_MAX ? (size_t)offset : FINGERPRINT_MAX;
    done->tail = print_at(follower, file, offset - size, size);
    if (done->head.size == 0)
        done->head = print_at(follower, file, 0, size);
    done->offset = file->scanned = offset;
    done->records = lines;
    stream_describe(&file->stream, POSITION_LINES, true);
    stream_reach(&file->stream, lines, offset);
}

// Looks for the end of a long unfinished line behind what was looked through. Returns the length of
// the line with its newline when it is there, 0 when it is not.
static size_t find_line_end(struct follower *follower, struct tracked_file *file, bool *more) {
    char *to = follower_room(follower, FILE_BLOCK);
    size_t got = 0;
    *more = false;
    if (!follower_read(follower, file, to, FILE_BLOCK, file->scanned, &got))
        return 0;
    const char *newline = memchr(to, '\n', got);
    if (newline != NULL)
        return (size_t)(file->scanned - file->stream.done.offset) + (size_t)(newline - to) + 1;
    file->scanned += got;
    *more = got == FILE_BLOCK;
    return 0;
}

// The line at hand is too long and has no end yet.
static void refuse_unfinished(struct follower *follower, struct tracked_file *file) {
    struct record_stream *stream = &file->stream;
    char start[1024];
    size_t got = 0;
    if (!follower_read(follower, file, start, sizeof start, stream->done.offset, &got))
        return;
    records_refuse_long(&follower->reader->sink, stream, (struct slice){start, got},
                        ++stream->done.records);
    stream->skipping = true;
    lines_go_to(follower, file, file->scanned, stream->done.records);
}

// What the file is known by: the first bytes of its first whole lines.
static struct fingerprint head_of(struct slice block) {
    const char *newline = memrchr(block.data, '\n', block.size);
    size_t size = newline == NULL ? text_filling(block) : (size_t)(newline + 1 - block.data);
    return fingerprint_of(
        (struct slice){block.data, size < FINGERPRINT_MAX ? size : FINGERPRINT_MAX});
}

// Offers the whole lines of a block that begins with `known` bytes of the tail. Returns what is
// left of it.
static struct slice take_block(struct follower *follower, struct tracked_file *file,
                               struct slice block, size_t known) {
    struct record_sink *sink = &follower->reader->sink;
    struct record_stream *stream = &file->stream;
    struct extent *done = &stream->done;
    assert(block.size >= known);
    // What another file of this name began, before it was rotated, does not go on in this one.
    if (feed_source_holds(stream->source) && !feed_source_holds(stream->place))
        feed_source_finish(sink->feed, stream->source);
    struct slice fresh = {block.data + known, block.size - known};
    if (done->offset == 0)
        done->head = head_of(block);
    stream_describe(stream, POSITION_LINES, false);
    size_t taken = records_take_lines(sink, stream, fresh);
    struct slice rest = {fresh.data + taken, fresh.size - taken};
    if (rest.size > 0 && records_drop_long(sink, stream, rest))
        taken = fresh.size;
    if (taken > 0) {
        struct slice read = {block.data, known + taken};
        extent_mark(done, done->offset - known, read);
        done->tail = fingerprint_of(read);
        done->offset += taken;
        stream_describe(stream, POSITION_LINES, true);
        stream_reach(stream, done->records, done->offset);
    }
    file->scanned = done->offset + (fresh.size - taken);
    feed_source_figures(stream->source)->bytes += taken;
    return (struct slice){fresh.data + taken, fresh.size - taken};
}

// -- much at once -------------------------------------------------------------------------------

// Whether so much is left that other threads are to read and decode, while lines before go through
// the chain.
static bool has_much(const struct follower *follower, const struct tracked_file *file) {
    uint64_t offset = file->stream.done.offset;
    return follower->reader->ahead != NULL && file->seen.bytes >= offset + MUCH_MIN &&
           file->scanned - offset <= REREAD_MAX && records_are_telemetry(file->stream.source);
}

// Reads a part of it. False: nothing was read, since there is no other thread or reading fails.
static bool read_part(struct follower *follower, struct tracked_file *file) {
    struct file_reader *reader = follower->reader;
    struct record_stream *stream = &file->stream;
    struct file_input input = {.stop_descriptor = -1};
    struct error error;
    follower_clear(follower);
    if (file_input_attach_plain(&input, file->descriptor, stream->done.offset, &error) !=
            STATUS_OK ||
        !ahead_begin(reader->ahead, &input, MUCH_MIN, reader->sink.record_max,
                     file_forms(reader, stream->source)))
        return false;
    struct slice rest = {NULL, 0};
    struct ahead_block block;
    bool any = false;
    for (;; any = true) {
        ahead_next(reader->ahead, rest, &block);
        if (block.read == 0)
            break;
        stream->foreseen = (struct foreseen_lines){.next = block.foreseen,
                                                   .end = block.foreseen + block.foreseen_count};
        stream->found = block.found;
        rest = take_block(follower, file, (struct slice){block.data, block.size}, 0);
        feed_flush(reader->sink.feed);
    }
    ahead_end(reader->ahead);
    stream->foreseen = (struct foreseen_lines){.next = NULL};
    stream->found.count = 0;
    file_input_release(&input);
    return any;
}

// The same where the file is still the one that was read so far. Whether it is is asked again then:
// it may have been filled anew meanwhile, beyond where it was read.
static bool read_much(struct follower *follower, struct tracked_file *file, uint64_t known_bytes) {
    struct fingerprint tail = file->stream.done.tail;
    uint64_t offset = file->stream.done.offset - tail.size;
    bool unreadable = false;
    if (!follower_holds(follower, file, tail, offset, &unreadable) || !read_part(follower, file))
        return false;
    if (!follower_holds(follower, file, tail, offset, &unreadable) && !unreadable)
        restart(follower, file, known_bytes);
    return true;
}

// -- a block at a time --------------------------------------------------------------------------

// Goes behind the hole that begins where it was read to, if this is still the file that was read.
static void pass_hole(struct follower *follower, struct tracked_file *file) {
    const struct extent *done = &file->stream.done;
    bool unreadable = false;
    uint64_t data = follower_data_at(file, done->offset);
    if (data > done->offset && file->scanned == done->offset &&
        follower_holds(follower, file, done->tail, done->offset - done->tail.size, &unreadable))
        lines_go_to(follower, file, data, done->records);
}

// Whether the file may get back what was read of it: it begins like that, and was found shorter
// only lately. A network file system may tell an old size for a moment; a copy that is written over
// the file begins like it. What is written after a cut begins otherwise.
static bool may_come_back(struct follower *follower, struct tracked_file *file, uint64_t bytes) {
    if (bytes != file->copy_bytes)
        file->copy_waits = 0;
    file->copy_bytes = bytes;
    file->copy_waits += follower->ticked;
    file->copy_looks += follower->ticked;
    bool ends = follower->ending && !follower->keeps; // else the next start tells
    enum likeness like = alike_compare(follower, file, &file->stream.done, bytes);
    return !ends && file->copy_waits < ALIKE_WAITS_MAX && like != ALIKE_NOT &&
           (like == ALIKE_SURE || file->copy_looks < ALIKE_LOOKS_MAX);
}

// There are only so many bytes, fewer than were read: it was cut, unless that is not sure yet.
static bool found_short(struct follower *follower, struct tracked_file *file, uint64_t known_bytes,
                        uint64_t bytes) {
    assert(bytes < file->stream.done.offset);
    if (file->short_of == 0) {
        file->short_of = known_bytes > 0 ? known_bytes : file->stream.done.offset;
        file->copy_waits = file->copy_looks = 0;
        file->copy_bytes = bytes;
    }
    if (may_come_back(follower, file, bytes))
        return false;
    restart(follower, file, file->short_of);
    return true;
}

static bool read_block(struct follower *follower, struct tracked_file *file, uint64_t known_bytes) {
    const struct extent *done = &file->stream.done;
    assert(file->scanned >= done->offset && done->offset >= done->tail.size);
    pass_hole(follower, file);
    if (has_much(follower, file) && read_much(follower, file, known_bytes))
        return true;
    size_t size = FILE_BLOCK;
    if (file->scanned - done->offset > REREAD_MAX) {
        bool more = false;
        size_t line = find_line_end(follower, file, &more);
        if (line == 0) {
            if (file->scanned - done->offset <= follower->reader->sink.record_max + 1)
                return more;
            if (feed_source_decoder(file->stream.source)->pass_over == NULL) {
                refuse_unfinished(follower, file);
                return more;
            }
            line = follower->reader->sink.record_max + 2; // a bar that overwrites itself is cut
        }
        size = line > size ? line : size;
    }
    size += done->tail.size;
    char *to = follower_room(follower, size);
    size_t got = 0;
    if (!follower_read(follower, file, to, size, done->offset - done->tail.size, &got))
        return false;
    if (got < done->tail.size)
        return found_short(follower, file, known_bytes, done->offset - done->tail.size + got);
    if (!fingerprint_fits(done->tail, to)) {
        restart(follower, file, known_bytes);
        return true;
    }
    (void)take_block(follower, file, (struct slice){to, got}, done->tail.size);
    follower->reader->window.end += got;
    return got == size;
}

bool lines_step(struct follower *follower, struct tracked_file *file) {
    assert(file->state == TRACK_LINES);
    struct stat about;
    if (!track_stat(file, &about))
        return false;
    uint64_t known_bytes = file->seen.bytes;
    track_notice(file, &about, follower->now_ns);
    // Else what is written later than it was opened at first would be taken for as old as that.
    if (about.st_mtim.tv_sec > 0)
        feed_source_written(file->stream.source,
                            (uint64_t)about.st_mtim.tv_sec * UINT64_C(1000000000) +
                                (uint64_t)about.st_mtim.tv_nsec);
    if ((uint64_t)about.st_size < file->stream.done.offset)
        return found_short(follower, file, known_bytes, (uint64_t)about.st_size);
    file->short_of = 0;
    return read_block(follower, file, known_bytes);
}

bool lines_read_rest(struct follower *follower, struct tracked_file *file) {
    uint64_t restarts = file->restarts;
    bool pinned = file->pinned;
    if (!follower_open(follower, file))
        return true;
    file->pinned = true;
    while (file->restarts == restarts && lines_step(follower, file))
        continue;
    file->pinned = pinned;
    return file->restarts == restarts;
}

void lines_take_written(struct follower *follower, struct tracked_file *file) {
    struct record_stream *stream = &file->stream;
    struct error error;
    uint64_t scanned = file->scanned, offset = stream->done.offset;
    if (file->state != TRACK_LINES || scanned == offset || file->written_bytes == scanned ||
        scanned - offset > follower->reader->sink.record_max ||
        track_open(follower->table, file, &error) != STATUS_OK)
        return;
    file->written_bytes = scanned;
    size_t size = (size_t)(scanned - offset), got = 0;
    follower_clear(follower);
    char *to = follower_room(follower, size);
    if (!follower_read(follower, file, to, size, offset, &got) || got < size)
        return;
    size_t taken = records_take_written(&follower->reader->sink, stream, (struct slice){to, size});
    follower->reader->window.end += size;
    if (taken == 0)
        return;
    feed_source_figures(stream->source)->bytes += taken;
    lines_go_to(follower, file, offset + taken, stream->done.records);
    file->scanned = scanned;
}

void lines_take_last(struct follower *follower, struct tracked_file *file) {
    struct record_stream *stream = &file->stream;
    struct error error;
    if (file->state != TRACK_LINES || file->scanned == stream->done.offset ||
        track_open(follower->table, file, &error) != STATUS_OK)
        return;
    size_t size = (size_t)(file->scanned - stream->done.offset);
    follower_clear(follower);
    char *to = follower_room(follower, size);
    size_t got = 0;
    if (!follower_read(follower, file, to, size, stream->done.offset, &got) || got < size)
        return;
    enum last_line last =
        records_take_last(&follower->reader->sink, stream, (struct slice){to, size}, true);
    follower->reader->window.end += size;
    if (last != LAST_LINE_USED)
        return;
    feed_source_figures(stream->source)->bytes += size;
    stream->done.offset = file->scanned;
}

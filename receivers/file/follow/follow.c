// SPDX-License-Identifier: Apache-2.0
// What has come in this file since we looked?
//
// Each read begins a little before the place that was reached: the bytes there must be those that
// were there before (the mark), which finds files that were cut, replaced or filled anew, in the
// same call that reads what is new. An unfinished line is left where it is, in the file; only how
// far it was looked through is remembered, so that a long line that comes in small pieces is not
// read over and over. No memory of its own but the reader's window.
#include "receivers/file/follow/follow.h"

#include "base/memory.h"
#include "receivers/file/follow/chain.h"
#include "receivers/file/follow/copy.h"
#include "receivers/file/follow/place.h"
#include "receivers/file/follow/settle.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

enum {
    HEAD_FIRST = 64 << 10, // bytes read to tell a format, at first
    REREAD_MAX = 64 << 10, // an unfinished line up to this long is simply read again
};

void follow_clear_window(struct follower *follower) {
    feed_flush(follower->reader->sink.feed);
    follower->reader->window.start = follower->reader->window.end = 0;
}

static void note_error(struct follower *follower, const struct tracked_file *file, const char *what,
                       int os_error) {
    feed_note(follower->reader->sink.feed, slice_of(file->path), "%s: %s", what,
              strerror(os_error));
}

// Reads at an offset, whole unless the file ends; false on an error, which is noted.
static bool read_at(struct follower *follower, struct tracked_file *file, char *to, size_t size,
                    uint64_t offset, size_t *got) {
    *got = 0;
    while (*got < size) {
        ssize_t count = pread(file->descriptor, to + *got, size - *got, (off_t)(offset + *got));
        if (count == 0)
            break;
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            note_error(follower, file, "reading it failed; it is tried again later", errno);
            return false;
        }
        *got += (size_t)count;
    }
    return true;
}

// Room for `size` bytes at the end of the window, without moving what events may point to.
static char *window_room(struct follower *follower, size_t size) {
    struct file_window *window = &follower->reader->window;
    if (window->capacity - window->end < size) {
        follow_clear_window(follower);
        window_reserve(window, size);
    }
    return window->data + window->end;
}

// -- beginning ----------------------------------------------------------------------------------

// `known_bytes`: how long it was when it was looked at before.
static void restart(struct follower *follower, struct tracked_file *file, uint64_t known_bytes) {
    uint64_t lost = known_bytes > file->offset ? known_bytes - file->offset : 0;
    file->restarts++;
    feed_note(follower->reader->sink.feed, slice_of(file->path),
              "it was cut or filled anew (for the %lluth time) and is read from its beginning; up "
              "to %llu bytes were there before and could not be read",
              (unsigned long long)file->restarts, (unsigned long long)lost);
    place_retire(follower->table, file);
    place_renew(follower->table, file);
    file->stream.generation++;
    file->restored = (struct place){.kind = PLACE_UNKNOWN};
    file->state = TRACK_UNDECIDED;
    file->head = file->mark = (struct track_mark){0, 0};
    file->offset = file->scanned = file->tried_bytes = file->begin_bytes = 0;
    file->items = file->items_hash = 0;
    file->stream.position = 0;
    file->stream.skipping = file->from_end = false;
}

// Takes the mark anew from the file, for a place that was not reached by reading lines.
static void mark_place(struct follower *follower, struct tracked_file *file, uint64_t offset,
                       uint64_t lines) {
    char bytes[TRACK_MARK_MAX];
    size_t size = offset < TRACK_MARK_MAX ? (size_t)offset : TRACK_MARK_MAX;
    size_t got = 0;
    file->mark = (struct track_mark){0, 0};
    if (read_at(follower, file, bytes, size, offset - size, &got) && got == size)
        file->mark = track_mark_of((struct slice){bytes, size});
    if (file->head.size == 0 && read_at(follower, file, bytes, size, 0, &got) && got == size)
        file->head = track_mark_of((struct slice){bytes, size});
    file->offset = file->scanned = offset;
    file->stream.position = lines;
    place_describe(file, PLACE_LINES, true);
    place_reach(&file->stream, lines, offset);
}

// Goes to the line that begins last in what was there at first, counting lines on the way.
static void skip_beginning(struct follower *follower, struct tracked_file *file) {
    follow_clear_window(follower);
    char *to = window_room(follower, FILE_BLOCK);
    uint64_t at = 0, line_start = 0, lines = 0;
    while (at < file->begin_bytes) {
        uint64_t left = file->begin_bytes - at;
        size_t got = 0;
        if (!read_at(follower, file, to, left < FILE_BLOCK ? (size_t)left : FILE_BLOCK, at, &got) ||
            got == 0)
            break;
        const char *end = to + got;
        for (const char *c = to; c < end && (c = memchr(c, '\n', (size_t)(end - c))) != NULL; c++) {
            lines++;
            line_start = at + (uint64_t)(c + 1 - to);
        }
        at += got;
    }
    mark_place(follower, file, line_start, lines);
}

// A copy that grows is waited for, and for a while one that does not.
static bool is_patient(const struct follower *follower, struct tracked_file *file) {
    if (file->seen_bytes > file->copy_bytes)
        file->copy_waits = 0;
    file->copy_bytes = file->seen_bytes;
    return file->copy_waits < COPY_WAITS_MAX && !follower->ending;
}

// What was read of another file whose copy this is, is not read again. False when it may be a copy
// that is still being made.
static bool skip_copied(struct follower *follower, struct tracked_file *file) {
    struct copy_place place;
    enum copy_answer answer = copy_find_plain(follower, file, is_patient(follower, file), &place);
    if (answer == COPY_UNFINISHED) {
        file->copy_waits += follower->ticked;
        return false;
    }
    if (answer == COPY_FOUND) {
        feed_note(follower->reader->sink.feed, slice_of(file->path),
                  "it is a copy of what was read before, up to line %llu, and is read on from "
                  "there",
                  (unsigned long long)place.lines);
        mark_place(follower, file, place.bytes, place.lines);
    }
    return true;
}

static bool has_mark(struct follower *follower, struct tracked_file *file, struct track_mark mark,
                     uint64_t offset, bool *unreadable) {
    char bytes[TRACK_MARK_MAX];
    size_t got = 0;
    if (mark.size > sizeof bytes)
        return false;
    *unreadable = !read_at(follower, file, bytes, mark.size, offset, &got);
    return !*unreadable && got == mark.size && track_mark_fits(mark, bytes);
}

// It is the file that had another path when an earlier process read it.
static void remember_path(struct follower *follower, struct tracked_file *file) {
    struct slice path = place_path(file->stream.place);
    if (path.size == 0 || slice_equal(path, slice_of(file->path)))
        return;
    memory_give(file->was_at);
    file->was_at = memory_copy_text(path.data, path.size);
    chain_link_rotated(follower->table, file);
}

// Goes on where an earlier process was, if these are still the bytes that it read. What cannot be
// read now may still be the same.
static bool resume(struct follower *follower, struct tracked_file *file, bool *unreadable) {
    struct place known = file->restored;
    if (known.kind != PLACE_LINES || known.offset == 0)
        return false;
    bool same = file->seen_bytes >= known.offset && known.mark.size <= known.offset &&
                (known.head.size == 0 || has_mark(follower, file, known.head, 0, unreadable)) &&
                (known.mark.size == 0 ||
                 has_mark(follower, file, known.mark, known.offset - known.mark.size, unreadable));
    if (same) {
        remember_path(follower, file);
        mark_place(follower, file, known.offset, known.records);
        return true;
    }
    if (*unreadable)
        return false;
    place_retire_restored(follower->table, file);
    place_renew(follower->table, file);
    file->stream.generation++;
    feed_note(
        follower->reader->sink.feed, slice_of(file->path),
        "it is not the file any more that was read up to line %llu before the restart, and is "
        "read from its beginning",
        (unsigned long long)known.records);
    return false;
}

// False when it is too early to begin.
static bool begin_as(struct follower *follower, struct tracked_file *file,
                     struct format_guess guess) {
    if (guess.kind == FORMAT_GZIP) {
        bool done = file->from_end || file->restored.kind == PLACE_DONE;
        file->state = done ? TRACK_IGNORED : TRACK_GZIP;
        return true;
    }
    bool lines = guess.layout == LAYOUT_LINES;
    bool unreadable = false;
    bool resumed = lines && resume(follower, file, &unreadable);
    if (unreadable)
        return false;
    if (guess.kind == FORMAT_STORMLOG && lines && !file->from_end && !resumed &&
        !skip_copied(follower, file))
        return false;
    if (!file_accept_format(follower->reader, file->stream.source, guess, file->descriptor)) {
        file->state = TRACK_IGNORED;
        return true;
    }
    file->state = lines ? TRACK_LINES : TRACK_DOCUMENT;
    if (!lines && file->restored.kind == PLACE_DOCUMENT) {
        file->items = file->restored.records;
        file->items_hash = file->restored.items_hash;
    }
    if (file->from_end && lines && !resumed)
        skip_beginning(follower, file);
    return true;
}

// Tells the format by what is there. True when it is known now.
static bool decide(struct follower *follower, struct tracked_file *file) {
    // A beginning that grows byte by byte is not looked at each time.
    bool grown = file->seen_bytes >= file->tried_bytes + file->tried_bytes / 8;
    if (file->seen_bytes == 0 || (!grown && !follower->ticked && !follower->ending))
        return false;
    follow_clear_window(follower);
    struct format_guess guess = {.decided = false};
    size_t size = HEAD_FIRST, got = 0;
    for (; !guess.decided && size <= FORMAT_HEAD_MAX; size *= 4) {
        char *to = window_room(follower, size);
        if (!read_at(follower, file, to, size, 0, &got))
            return false;
        bool whole = got < size && follower->ending;
        guess = format_guess((struct slice){to, got}, whole, follower->reader->forced);
        if (got < size)
            break;
    }
    file->tried_bytes = file->seen_bytes;
    if (!guess.decided || got == 0)
        return false;
    return begin_as(follower, file, guess);
}

// -- lines --------------------------------------------------------------------------------------

// Looks for the end of a long unfinished line behind what was looked through. Returns the length of
// the line with its newline when it is there, 0 when it is not.
static size_t find_line_end(struct follower *follower, struct tracked_file *file, bool *more) {
    char *to = window_room(follower, FILE_BLOCK);
    size_t got = 0;
    *more = false;
    if (!read_at(follower, file, to, FILE_BLOCK, file->scanned, &got))
        return 0;
    const char *newline = memchr(to, '\n', got);
    if (newline != NULL)
        return (size_t)(file->scanned - file->offset) + (size_t)(newline - to) + 1;
    file->scanned += got;
    *more = got == FILE_BLOCK;
    return 0;
}

// The line at hand is too long and has no end yet.
static void refuse_unfinished(struct follower *follower, struct tracked_file *file) {
    struct record_sink *sink = &follower->reader->sink;
    char start[1024];
    size_t got = 0;
    if (!read_at(follower, file, start, sizeof start, file->offset, &got))
        return;
    records_refuse_long(sink, &file->stream, (struct slice){start, got}, ++file->stream.position);
    file->stream.skipping = true;
    mark_place(follower, file, file->scanned, file->stream.position);
}

// What the file is known by: the first bytes of its first whole lines.
static struct track_mark head_of(struct slice block) {
    const char *newline = memrchr(block.data, '\n', block.size);
    size_t size = newline == NULL ? 0 : (size_t)(newline + 1 - block.data);
    return track_mark_of((struct slice){block.data, size < TRACK_MARK_MAX ? size : TRACK_MARK_MAX});
}

// Offers the lines of a block that begins with the bytes of the mark.
static void take_block(struct follower *follower, struct tracked_file *file, struct slice block) {
    struct record_sink *sink = &follower->reader->sink;
    size_t marked = file->mark.size;
    struct slice fresh = {block.data + marked, block.size - marked};
    if (file->offset == 0)
        file->head = head_of(block);
    place_describe(file, PLACE_LINES, false);
    file->stream.offset = file->offset;
    size_t taken = records_take_lines(sink, &file->stream, fresh);
    struct slice rest = {fresh.data + taken, fresh.size - taken};
    if (rest.size > 0 && records_drop_long(sink, &file->stream, rest))
        taken = fresh.size;
    if (taken > 0) {
        file->mark = track_mark_of((struct slice){block.data, marked + taken});
        file->offset += taken;
        place_describe(file, PLACE_LINES, true);
        place_reach(&file->stream, file->stream.position, file->offset);
    }
    file->scanned = file->offset + (fresh.size - taken);
    feed_source_figures(file->stream.source)->bytes += taken;
}

static bool step_lines(struct follower *follower, struct tracked_file *file, uint64_t known_bytes) {
    size_t size = FILE_BLOCK;
    if (file->scanned - file->offset > REREAD_MAX) {
        bool more = false;
        size_t line = find_line_end(follower, file, &more);
        if (line == 0) {
            if (file->scanned - file->offset > follower->reader->sink.record_max + 1)
                refuse_unfinished(follower, file);
            return more;
        }
        size = line > size ? line : size;
    }
    size += file->mark.size;
    char *to = window_room(follower, size);
    size_t got = 0;
    if (!read_at(follower, file, to, size, file->offset - file->mark.size, &got))
        return false;
    if (got < file->mark.size || !track_mark_fits(file->mark, to)) {
        restart(follower, file, known_bytes);
        return true;
    }
    take_block(follower, file, (struct slice){to, got});
    follower->reader->window.end += got;
    return got == size;
}

void follow_last_line(struct follower *follower, struct tracked_file *file) {
    struct record_sink *sink = &follower->reader->sink;
    struct error error;
    if (file->state != TRACK_LINES || file->scanned == file->offset ||
        track_open(follower->table, file, &error) != STATUS_OK)
        return;
    size_t size = (size_t)(file->scanned - file->offset);
    follow_clear_window(follower);
    char *to = window_room(follower, size);
    size_t got = 0;
    if (!read_at(follower, file, to, size, file->offset, &got) || got < size)
        return;
    file->stream.offset = file->offset;
    enum last_line last = records_take_last(sink, &file->stream, (struct slice){to, size}, true);
    follower->reader->window.end += size;
    if (last != LAST_LINE_USED)
        return;
    feed_source_figures(file->stream.source)->bytes += size;
    file->offset = file->scanned;
}

// -- any state ----------------------------------------------------------------------------------

static bool open_file(struct follower *follower, struct tracked_file *file) {
    struct error error;
    enum status status = track_open(follower->table, file, &error);
    if (status == STATUS_OK) {
        file->error_noted = false;
        return true;
    }
    if (status != STATUS_NOT_FOUND && !file->error_noted) {
        feed_note(follower->reader->sink.feed, slice_of(file->path), "not read for now: %s",
                  error.message);
        file->error_noted = true;
    }
    return false;
}

static bool step_file(struct follower *follower, struct tracked_file *file) {
    struct stat about;
    if (!track_stat(file, &about))
        return false;
    uint64_t known_bytes = file->seen_bytes;
    if (file->state == TRACK_LINES && (uint64_t)about.st_size < file->offset)
        restart(follower, file, known_bytes);
    track_notice(file, &about, follower->now_ns);
    switch (file->state) {
    case TRACK_UNDECIDED:
        return decide(follower, file);
    case TRACK_LINES:
        return step_lines(follower, file, known_bytes);
    case TRACK_DOCUMENT:
    case TRACK_GZIP:
        return settle_step(follower, file);
    case TRACK_IGNORED:
        break;
    }
    return false;
}

bool follow_step(struct follower *follower, struct tracked_file *file) {
    if (file->state == TRACK_IGNORED || !open_file(follower, file))
        return false;
    file->pinned = true;
    bool more = step_file(follower, file);
    file->pinned = false;
    return more;
}

void follow_check(struct follower *follower, struct tracked_file *file) {
    struct stat about;
    if (!track_stat(file, &about))
        return;
    uint64_t before = file->seen_bytes;
    if (file->state == TRACK_IGNORED) {
        // What was not telemetry may be by now, when it begins anew.
        if (track_notice(file, &about, follower->now_ns) && file->seen_bytes < before) {
            file->state = TRACK_UNDECIDED;
            file->changed = true;
            file->tried_bytes = 0;
            file->from_end = false;
        }
        return;
    }
    bool waits = file->state == TRACK_UNDECIDED ? about.st_size > 0
                                                : file->state != TRACK_LINES && settle_waits(file);
    // Not noticed here: what was there is needed to say how much was lost.
    file->changed = file->changed || waits || (uint64_t)about.st_size != before ||
                    about.st_mtim.tv_sec != file->seen_time.tv_sec ||
                    about.st_mtim.tv_nsec != file->seen_time.tv_nsec;
}

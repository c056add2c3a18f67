// SPDX-License-Identifier: Apache-2.0
// Decides what a new file is and where to begin in it, then hands each step to what reads such
// files.
#include "receivers/file/follow/follow.h"

#include "base/text/cut.h"
#include "receivers/decode/format.h"
#include "receivers/decode/split.h"
#include "receivers/file/follow/chain.h"
#include "receivers/file/follow/copy.h"
#include "receivers/file/follow/lines.h"
#include "receivers/file/follow/place.h"
#include "receivers/file/follow/settle.h"
#include "receivers/records/body.h"

#include <assert.h>

enum { HEAD_FIRST = 64 << 10 }; // bytes read to tell a format, at first

// -- beginning ----------------------------------------------------------------------------------

// Goes to the line that begins last in what was there at first, counting lines on the way.
static void skip_beginning(struct follower *follower, struct tracked_file *file) {
    assert(file->from_end && file->state == TRACK_LINES);
    follower_clear(follower);
    char *to = follower_room(follower, FILE_BLOCK);
    uint64_t at = 0, line_start = 0, lines = 0;
    while (at < file->begin_bytes) {
        uint64_t left = file->begin_bytes - at;
        size_t got = 0;
        if (!follower_read(follower, file, to, left < FILE_BLOCK ? (size_t)left : FILE_BLOCK, at,
                           &got) ||
            got == 0)
            break;
        const char *end = to + got;
        for (const char *c = to; c < end && (c = memchr(c, '\n', (size_t)(end - c))) != NULL; c++) {
            lines++;
            line_start = at + (uint64_t)(c + 1 - to);
        }
        at += got;
    }
    lines_go_to(follower, file, line_start, lines);
}

// A copy that grows is waited for, and for a while one that does not.
static bool is_patient(const struct follower *follower, struct tracked_file *file) {
    if (file->seen.bytes > file->copy_bytes)
        file->copy_waits = 0;
    file->copy_bytes = file->seen.bytes;
    return file->copy_waits < ALIKE_WAITS_MAX && !follower->ending;
}

// What was read of another file whose copy this is, or of one that had its name, is not read again.
// `all`: otherwise only names that rotation gives are asked. False when it may be a copy that is
// still being made.
static bool skip_copied(struct follower *follower, struct tracked_file *file, bool all) {
    struct read_start start;
    struct copy_wish wish = {.all = all, .patient = is_patient(follower, file)};
    enum copy_answer answer = copy_find_plain(follower, file, wish, &start);
    if (answer == COPY_UNFINISHED) {
        file->copy_waits += follower->ticked;
        file->copy_looks += follower->ticked;
        return false;
    }
    if (answer == COPY_FOUND || answer == COPY_FOUND_ITSELF) {
        follower_note(follower, file,
                      "it %s what was read before, up to line %llu, and is read on from there",
                      answer == COPY_FOUND_ITSELF ? "was put anew and holds" : "is a copy of",
                      (unsigned long long)start.lines);
        lines_go_to(follower, file, start.bytes, start.lines);
    }
    return true;
}

// It is the file that had another path when an earlier process read it.
static void remember_path(struct follower *follower, struct tracked_file *file) {
    struct slice path = place_path(file->stream.place);
    if (path.size == 0 || slice_equal(path, slice_of(file->path)))
        return;
    track_set_was_at(file, path);
    chain_link_rotated(follower->table, file);
}

// Goes on where an earlier process was, if these are still the bytes that it read. What cannot be
// read now may still be the same.
static bool resume(struct follower *follower, struct tracked_file *file, bool *unreadable) {
    struct extent known = file->restored.done;
    if (file->restored.kind != POSITION_LINES || known.offset == 0)
        return false;
    if (file->seen.bytes >= known.offset && known.tail.size <= known.offset &&
        follower_holds(follower, file, known.head, 0, unreadable) &&
        follower_holds(follower, file, known.tail, known.offset - known.tail.size, unreadable)) {
        remember_path(follower, file);
        lines_go_to(follower, file, known.offset, known.records);
        return true;
    }
    if (*unreadable)
        return false;
    place_retire_restored(follower->table, file);
    place_renew(follower->table, file);
    file->stream.generation++;
    follower_note(follower, file,
                  "it is not the file that was read up to line %llu before the restart, and is "
                  "read from its beginning",
                  (unsigned long long)known.records);
    return false;
}

// False when it is too early to begin.
static bool begin_as(struct follower *follower, struct tracked_file *file,
                     struct format_guess guess) {
    if (guess.kind == FORMAT_GZIP) {
        // What was read to its end is looked at again when it grows.
        uint64_t known_bytes = file->restored.file_bytes;
        if (file->restored.kind == POSITION_DONE &&
            (known_bytes == 0 || known_bytes == file->seen.bytes))
            file->read = file->seen;
        file->state = file->from_end ? TRACK_IGNORED : TRACK_GZIP;
        return true;
    }
    bool lines = guess.layout == LAYOUT_LINES;
    bool unreadable = false;
    bool resumed = lines && resume(follower, file, &unreadable);
    if (unreadable)
        return false;
    // Logs of two ranks may say the same in files of one stem; telemetry names its rank.
    if (lines && !file->from_end && !resumed &&
        !skip_copied(follower, file, guess.kind == FORMAT_STORMLOG))
        return false;
    if (!file_accept_format(follower->reader, file->stream.source, guess, file->descriptor)) {
        file->state = TRACK_IGNORED;
        return true;
    }
    assert(file->state == TRACK_UNDECIDED);
    file->state = lines ? TRACK_LINES : TRACK_DOCUMENT;
    if (!lines && file->restored.kind == POSITION_DOCUMENT) {
        file->items = file->restored.done.records;
        file->items_hash = file->restored.items_hash;
    }
    if (file->from_end && lines && !resumed)
        skip_beginning(follower, file);
    return true;
}

// A log may stay shorter than what is looked at to tell one. What says nothing yet, or is no list
// of lines, is waited for.
static void guess_short(struct slice head, enum format_kind forced, const struct forms *forms,
                        struct format_guess *guess) {
    struct format_guess whole = format_guess_by(head, true, forced, forms);
    bool is_known = whole.kind != FORMAT_UNKNOWN && whole.kind != FORMAT_BINARY;
    if (is_known && whole.layout == LAYOUT_LINES)
        *guess = whole;
}

// Passes zeros, such as a log that was cut begins with whose writer goes on where it was. One is
// of UTF-16. False: nothing else is there, or it cannot be read.
static bool pass_filling(struct follower *follower, struct tracked_file *file) {
    size_t got = 0, filling = 0;
    do {
        follower_clear(follower);
        char *to = follower_room(follower, HEAD_FIRST);
        if (!follower_read(follower, file, to, HEAD_FIRST, file->passed_bytes, &got))
            return false;
        filling = text_filling((struct slice){to, got});
        if (filling > 1)
            file->passed_bytes = follower_data_at(file, file->passed_bytes + filling);
    } while (filling == HEAD_FIRST);
    return got > filling;
}

// Tells the format by what stands behind what was passed.
static bool look_at_head(struct follower *follower, struct tracked_file *file,
                         struct format_guess *guess, struct slice *head) {
    *guess = (struct format_guess){.decided = false};
    for (size_t size = HEAD_FIRST; !guess->decided && size <= FORMAT_HEAD_MAX; size *= 4) {
        size_t got = 0;
        follower_clear(follower);
        char *to = follower_room(follower, size);
        if (!follower_read(follower, file, to, size, file->passed_bytes, &got))
            return false;
        *head = (struct slice){to, got};
        *head = text_from(*head, file->passed_bytes == 0 ? text_mark(*head) : 0);
        enum format_kind forced = file_forced_format(follower->reader, slice_of(file->path));
        const struct forms *forms = follower->reader->sink.known.forms;
        *guess = format_guess_by(*head, got < size && follower->ending, forced, forms);
        if (!guess->decided && got < size && follower_is_finished(follower, file))
            guess_short(*head, forced, forms, guess);
        if (got < size)
            break;
    }
    follower->reader->packing = format_packing(*head);
    return true;
}

// Nothing is told by these lines, but what comes may tell: they are passed. Of what is no text only
// the newest bytes are looked at. False: nothing is there behind them.
static bool look_on(struct follower *follower, struct tracked_file *file, struct format_guess guess,
                    struct slice head) {
    if (!file->unread_noted)
        (void)file_accept_format(follower->reader, file->stream.source, guess, file->descriptor);
    file->unread_noted = true;
    uint64_t before = file->passed_bytes;
    file->passed_bytes += format_looked_at(head);
    if (guess.kind == FORMAT_BINARY && file->seen.bytes > file->passed_bytes + FORMAT_HEAD_MAX)
        file->passed_bytes = file->seen.bytes - FORMAT_HEAD_MAX;
    return file->passed_bytes > before && file->passed_bytes < file->seen.bytes;
}

// Tells the format by what is there. True when it is known now.
static bool decide(struct follower *follower, struct tracked_file *file) {
    assert(file->state == TRACK_UNDECIDED && file->descriptor >= 0);
    // A beginning that grows byte by byte is not looked at each time.
    bool grown = file->seen.bytes >= file->tried_bytes + file->tried_bytes / 8;
    if (file->seen.bytes == 0 || (!grown && !follower->ticked && !follower->ending))
        return false;
    struct format_guess guess;
    struct slice head;
    do {
        if (!pass_filling(follower, file) || !look_at_head(follower, file, &guess, &head))
            return false;
    } while (format_is_open(guess, head) && look_on(follower, file, guess, head));
    file->tried_bytes = file->seen.bytes;
    if (!guess.decided || head.size == 0 || format_is_open(guess, head))
        return false;
    return begin_as(follower, file, guess);
}

// -- any state ----------------------------------------------------------------------------------

static bool step_file(struct follower *follower, struct tracked_file *file) {
    struct stat about;
    if (file->state == TRACK_LINES)
        return lines_step(follower, file);
    if (!track_stat(file, &about))
        return false;
    track_notice(file, &about, follower->now_ns);
    return file->state == TRACK_UNDECIDED ? decide(follower, file) : settle_step(follower, file);
}

bool follow_step(struct follower *follower, struct tracked_file *file) {
    if (file->state == TRACK_IGNORED || !follower_open(follower, file))
        return false;
    assert(!file->pinned && !file->over);
    file->pinned = true;
    bool more = step_file(follower, file);
    file->pinned = false;
    return more;
}

// What was not telemetry may be by now, when it begins anew.
static void check_ignored(struct follower *follower, struct tracked_file *file,
                          const struct stat *about) {
    assert(file->state == TRACK_IGNORED);
    uint64_t before = file->seen.bytes;
    if (!track_notice(file, about, follower->now_ns) || file->seen.bytes >= before)
        return;
    file->state = TRACK_UNDECIDED;
    file->stream.done = (struct extent){.records = file->stream.done.records};
    file->tried_bytes = file->passed_bytes = 0;
    file->changed = true;
    file->from_end = false;
}

void follow_check(struct follower *follower, struct tracked_file *file) {
    struct stat about;
    if (!track_stat(file, &about))
        return;
    if (file->state == TRACK_IGNORED) {
        check_ignored(follower, file, &about);
        return;
    }
    bool waits = file->state == TRACK_LINES ? file->short_of > 0 : settle_waits(file);
    if (file->state == TRACK_UNDECIDED) // what was passed is not looked at again
        waits = (uint64_t)about.st_size > file->passed_bytes;
    // Not noticed here: what was there is needed to say how much was lost.
    file->changed =
        file->changed || waits || !file_version_equal(file_version_of(&about), file->seen);
}

// SPDX-License-Identifier: Apache-2.0
// Is this document or gzip file whole, and what in it is new?
//
// Two passes: the first only looks (does it end properly, how many records, are those that were
// offered before still the same), the second offers. A document costs a hash and a count of memory,
// whatever its size.
#include "receivers/file/follow/settle.h"

#include "base/hash/hash.h"

#include "receivers/decode/split.h"
#include "receivers/file/follow/copy.h"
#include "receivers/file/follow/place.h"

#include <unistd.h>

static bool attach(struct follower *follower, struct tracked_file *file) {
    struct error error;
    follow_clear_window(follower);
    if (lseek(file->descriptor, 0, SEEK_SET) != 0)
        return false;
    return file_input_attach(&follower->reader->input, file->descriptor, &error) == STATUS_OK;
}

// The next bytes behind what is left in the window; false at the end or on an error.
static bool next_bytes(struct file_reader *reader) {
    struct file_window *window = &reader->window;
    window_reserve(window, FILE_BLOCK);
    size_t got = 0;
    struct error error;
    if (file_input_read(&reader->input, window->data + window->end, FILE_BLOCK, &got, &error) !=
        STATUS_OK)
        return false;
    window->end += got;
    return got > 0;
}

static void read_again(struct follower *follower, struct tracked_file *file,
                       struct read_start start) {
    if (attach(follower, file)) {
        file_read_open(follower->reader, &file->stream, start);
        file_input_close(&follower->reader->input);
    }
}

// -- documents ----------------------------------------------------------------------------------

struct document_look {
    enum format_layout layout;
    bool ended; // whole, or broken in a way that more bytes do not mend
    uint64_t items;
    uint64_t hash;     // of all records
    uint64_t old_hash; // of as many as were offered before
};

static bool look_at_items(struct splitter *split, struct slice window, uint64_t old_items,
                          struct document_look *look) {
    for (;;) {
        struct slice record = {NULL, 0};
        enum split_step step = splitter_next(split, window, &record);
        if (step == SPLIT_MORE)
            return true;
        if (step == SPLIT_FAULT)
            return false;
        look->hash = hash_more(look->hash, record.data, record.size);
        if (split->item == old_items)
            look->old_hash = look->hash;
    }
}

// One record; what is quiet is whole.
static void look_at_whole(struct follower *follower, uint64_t old_items,
                          struct document_look *look) {
    struct file_window *window = &follower->reader->window;
    look->hash = HASH_START;
    while (next_bytes(follower->reader)) {
        struct slice bytes = window_rest(window);
        look->hash = hash_more(look->hash, bytes.data, bytes.size);
        window->start = window->end;
    }
    look->items = 1;
    look->old_hash = old_items == 1 ? look->hash : 0;
    look->ended = true;
}

static void look_at_document(struct follower *follower, uint64_t old_items,
                             struct document_look *look) {
    struct file_reader *reader = follower->reader;
    struct file_window *window = &reader->window;
    if (look->layout == LAYOUT_WHOLE) {
        look_at_whole(follower, old_items, look);
        return;
    }
    struct splitter split;
    splitter_begin(&split, look->layout, reader->sink.record_max);
    look->hash = HASH_START;
    bool right = true;
    while (right && next_bytes(reader)) {
        right = look_at_items(&split, window_rest(window), old_items, look);
        size_t used = right ? splitter_used(&split) : 0;
        window->start += used;
        splitter_drop(&split, used);
    }
    look->items = split.item;
    look->ended = !right || splitter_end(&split) == NULL;
}

// The layout by what is there now: a torn line can look like a document until more comes.
static bool find_layout(struct follower *follower, struct tracked_file *file,
                        struct document_look *look) {
    if (!attach(follower, file))
        return false;
    struct file_reader *reader = follower->reader;
    struct format_guess guess;
    bool more;
    do {
        more = next_bytes(reader);
        guess = format_guess(window_rest(&reader->window), !more, reader->forced);
    } while (!guess.decided);
    file_input_close(&reader->input);
    look->layout = guess.layout;
    return true;
}

// A document that was replaced under its name goes on from what was offered of the old one.
static void take_over(struct follower *follower, struct tracked_file *file) {
    const struct track_table *table = follower->table;
    for (uint32_t i = 0; i < table->count && file->items == 0; i++) {
        struct tracked_file *old = table->files[i];
        if (old == file || old->there || old->over || old->state != TRACK_DOCUMENT ||
            old->items == 0 || old->stream.source != file->stream.source)
            continue;
        file->items = old->items;
        file->items_hash = old->items_hash;
        old->over = true;
    }
}

static bool settle_document(struct follower *follower, struct tracked_file *file) {
    struct document_look look = {.old_hash = 0};
    if (!find_layout(follower, file, &look))
        return false;
    if (look.layout == LAYOUT_LINES) {
        file->state = TRACK_LINES;
        return true;
    }
    if (!attach(follower, file))
        return false;
    take_over(follower, file);
    look_at_document(follower, file->items, &look);
    file_input_close(&follower->reader->input);
    file->unfinished = !look.ended;
    if (!look.ended && !follower->ending)
        return false;
    bool grown = file->items > 0 && look.items >= file->items && look.old_hash == file->items_hash;
    // A scrape is written anew all the time.
    if (file->items > 0 && !grown && look.layout != LAYOUT_WHOLE)
        feed_note(follower->reader->sink.feed, slice_of(file->path),
                  "it was written anew with other records and is read from its beginning");
    if (!grown)
        place_begin_document(file, file->items > 0);
    if (!file->from_end)
        read_again(follower, file, (struct read_start){.items = grown ? file->items : 0});
    file->from_end = false;
    file->items = look.items;
    file->items_hash = look.hash;
    return false;
}

// -- gzip ---------------------------------------------------------------------------------------

// One candidate while the decompressed bytes go by.
struct gzip_match {
    struct copy_candidate candidate;
    uint64_t head_hash;
    uint64_t mark_hash;
};

// The hash over those of the bytes [at, at + size) that lie in [from, to).
static uint64_t hash_within(uint64_t hash, struct slice bytes, uint64_t at, uint64_t from,
                            uint64_t to) {
    uint64_t end = at + bytes.size;
    if (from < at)
        from = at;
    if (to > end)
        to = end;
    if (from >= to)
        return hash;
    return hash_more(hash, bytes.data + (from - at), (size_t)(to - from));
}

// Decompresses it all once. False when it breaks off.
static bool look_at_gzip(struct file_reader *reader, struct gzip_match *matches, uint32_t count,
                         uint64_t *size) {
    uint64_t at = 0;
    struct file_window *window = &reader->window;
    for (; next_bytes(reader); window->start = window->end) {
        struct slice bytes = window_rest(window);
        for (uint32_t i = 0; i < count; i++) {
            struct gzip_match *match = &matches[i];
            const struct copy_candidate *candidate = &match->candidate;
            match->head_hash = hash_within(match->head_hash, bytes, at, 0, candidate->head.size);
            match->mark_hash =
                hash_within(match->mark_hash, bytes, at, candidate->offset - candidate->mark.size,
                            candidate->offset);
        }
        at += bytes.size;
    }
    *size = at;
    return reader->input.trouble[0] == '\0';
}

static const struct gzip_match *best_match(const struct gzip_match *matches, uint32_t count,
                                           uint64_t size) {
    const struct gzip_match *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct copy_candidate *candidate = &matches[i].candidate;
        if (candidate->offset <= size && matches[i].head_hash == candidate->head.hash &&
            matches[i].mark_hash == candidate->mark.hash &&
            (best == NULL || candidate->offset > best->candidate.offset))
            best = &matches[i];
    }
    return best;
}

// The first bytes, decompressed, for telling whose copy it is.
static size_t read_beginning(struct follower *follower, struct tracked_file *file,
                             char beginning[TRACK_MARK_MAX]) {
    if (!attach(follower, file))
        return 0;
    struct file_window *window = &follower->reader->window;
    while (window->end - window->start < TRACK_MARK_MAX && next_bytes(follower->reader))
        continue;
    struct slice bytes = window_rest(window);
    size_t size = bytes.size < TRACK_MARK_MAX ? bytes.size : TRACK_MARK_MAX;
    if (size > 0)
        memcpy(beginning, bytes.data, size);
    file_input_close(&follower->reader->input);
    return size;
}

// Whose copy it may be. What is left of an original is read first, so that nothing is read twice.
static void find_originals(struct follower *follower, struct tracked_file *file,
                           struct copy_candidates *found) {
    char bytes[TRACK_MARK_MAX];
    struct slice beginning = {bytes, read_beginning(follower, file, bytes)};
    copy_find_candidates(follower->table, file, beginning, found);
    for (uint32_t i = 0; i < found->count; i++) {
        struct tracked_file *original = found->items[i].file;
        if (original != NULL && !original->there) {
            while (original->state == TRACK_LINES && follow_step(follower, original))
                continue;
        }
    }
    copy_find_candidates(follower->table, file, beginning, found);
    copy_note_more(follower, file, found);
}

static void settle_gzip(struct follower *follower, struct tracked_file *file) {
    struct copy_candidates found;
    struct gzip_match matches[COPY_CANDIDATES_MAX];
    find_originals(follower, file, &found);
    uint32_t count = found.count;
    for (uint32_t i = 0; i < count; i++)
        matches[i] = (struct gzip_match){found.items[i], HASH_START, HASH_START};
    if (!attach(follower, file))
        return;
    uint64_t size = 0;
    bool whole = look_at_gzip(follower->reader, matches, count, &size);
    file_input_close(&follower->reader->input);
    file->unfinished = !whole;
    if (!whole && !follower->ending)
        return;
    struct read_start start = {0, 0, 0};
    if (file->restored.kind == PLACE_GZIP)
        start =
            (struct read_start){.bytes = file->restored.offset, .lines = file->restored.records};
    const struct gzip_match *match = best_match(matches, count, size);
    if (match != NULL && match->candidate.offset > start.bytes) {
        start.bytes = match->candidate.offset;
        start.lines = match->candidate.lines;
        feed_note(follower->reader->sink.feed, slice_of(file->path),
                  "it holds what was read before, up to line %llu, and is read on from there",
                  (unsigned long long)start.lines);
        copy_settle(follower->table, file, &match->candidate);
        struct tracked_file *original = match->candidate.file;
        if (original != NULL && !original->there) {
            place_retire(follower->table, original);
            original->over = true;
        }
    }
    place_describe(file, PLACE_GZIP, false);
    read_again(follower, file, start);
    place_describe(file, PLACE_DONE, false);
    place_reach(&file->stream, file->stream.position, file->stream.offset);
    file->state = TRACK_IGNORED;
}

// -- either -------------------------------------------------------------------------------------

static bool was_tried(const struct tracked_file *file) {
    return file->read_bytes == file->seen_bytes &&
           file->read_time.tv_sec == file->seen_time.tv_sec &&
           file->read_time.tv_nsec == file->seen_time.tv_nsec;
}

bool settle_waits(const struct tracked_file *file) {
    return !was_tried(file);
}

bool settle_step(struct follower *follower, struct tracked_file *file) {
    bool quiet = follower->now_ns - file->quiet_since_ns >= follower->settled_ns;
    bool tried = was_tried(file);
    if (!follower->ending && (!quiet || tried))
        return false;
    // At the end only what was not whole before is looked at once more.
    if (follower->ending && tried && !file->unfinished)
        return false;
    file->unfinished = false;
    file->read_bytes = file->seen_bytes;
    file->read_time = file->seen_time;
    if (file->state == TRACK_DOCUMENT)
        return settle_document(follower, file);
    settle_gzip(follower, file);
    return false;
}

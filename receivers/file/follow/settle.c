// SPDX-License-Identifier: Apache-2.0
// Finds out whether a document or gzip file is whole, and reads what in it is new.
//
// Two passes: the first only looks (does it end properly, how many records, are those that were
// offered before still the same), the second offers. A document costs a hash and a count of memory,
// whatever its size.
#include "receivers/file/follow/settle.h"

#include "base/text/cut.h"

#include "base/hash/hash.h"
#include "receivers/decode/format.h"
#include "receivers/decode/split.h"
#include "receivers/file/follow/copy.h"
#include "receivers/file/follow/lines.h"
#include "receivers/file/input.h"

#include <assert.h>
#include <unistd.h>

static bool attach(struct follower *follower, struct tracked_file *file) {
    struct error error;
    assert(file->descriptor >= 0);
    follower_clear(follower);
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
        (void)file_read_open(follower->reader, &file->stream, start);
        file_input_close(&follower->reader->input);
    }
}

// With a store a stop is no end: the next start finds the input whole, or still under way.
static bool stays_for_later(struct follower *follower, const struct tracked_file *file) {
    if (!follower->ending)
        return true;
    if (!follower->keeps)
        return false;
    follower_note(follower, file, "it is not whole yet: the next start reads it");
    return true;
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

// Whether a document of one record has its end: JSON by its brackets, else by its last byte, which
// is that of a pickle or of a scrape.
struct end_look {
    struct splitter brackets;
    bool is_json, any;
    char first, last;
};

static void look_for_end(struct end_look *end, struct slice bytes) {
    struct slice text = text_trim(bytes), record;
    if (bytes.size == 0)
        return;
    if (!end->any) {
        *end = (struct end_look){.any = true, .first = bytes.data[0]};
        end->is_json = text.size > 0 && (text.data[0] == '{' || text.data[0] == '[');
        // No record is kept: each is passed over.
        splitter_begin(&end->brackets, LAYOUT_OBJECT, 0);
    }
    end->last = bytes.data[bytes.size - 1];
    enum split_step step = end->is_json ? SPLIT_TOO_LONG : SPLIT_MORE;
    while (step != SPLIT_MORE && step != SPLIT_FAULT)
        step = splitter_next(&end->brackets, bytes, &record);
    if (step == SPLIT_MORE && end->is_json)
        splitter_drop(&end->brackets, splitter_used(&end->brackets));
}

static bool has_end(const struct end_look *end) {
    enum { PICKLE_BEGIN = 0x80 };
    if (end->is_json)
        return splitter_end(&end->brackets) == NULL;
    return end->last == ((unsigned char)end->first == PICKLE_BEGIN ? '.' : '\n');
}

// One record; what is quiet is whole. A stop does not wait for that: a dump is often the last that
// a job writes before it is stopped, and nobody may start again here.
static void look_at_whole(struct follower *follower, uint64_t old_items, bool is_quiet,
                          struct document_look *look) {
    struct file_window *window = &follower->reader->window;
    struct end_look end = {.any = false};
    do {
        struct slice bytes = window_rest(window);
        look->hash = hash_more(look->hash, bytes.data, bytes.size);
        look_for_end(&end, bytes);
        window->start = window->end;
    } while (next_bytes(follower->reader));
    look->ended = is_quiet || has_end(&end);
    look->items = 1;
    look->old_hash = old_items == 1 ? look->hash : 0;
}

static void look_at_document(struct follower *follower, uint64_t old_items, bool is_quiet,
                             struct document_look *look) {
    struct file_reader *reader = follower->reader;
    struct file_window *window = &reader->window;
    look->hash = HASH_START;
    if (look->layout == LAYOUT_WHOLE) {
        look_at_whole(follower, old_items, is_quiet, look);
        return;
    }
    struct splitter split;
    splitter_begin(&split, look->layout, reader->sink.record_max);
    bool right;
    do {
        right = look_at_items(&split, window_rest(window), old_items, look);
        size_t used = right ? splitter_used(&split) : 0;
        window->start += used;
        splitter_drop(&split, used);
    } while (right && next_bytes(reader));
    look->items = split.item;
    look->ended = !right || splitter_end(&split) == NULL;
}

// The layout by what is there now: a torn line can look like a document until more comes.
static enum format_layout find_layout(struct file_reader *reader, struct slice path) {
    struct format_guess guess;
    bool more;
    do {
        more = next_bytes(reader);
        enum format_kind forced = file_forced_format(reader, path);
        file_pass_filling(reader, forced);
        guess =
            format_guess_by(window_rest(&reader->window), !more, forced, reader->sink.known.forms);
    } while (!guess.decided);
    return guess.layout;
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
    assert(file->state == TRACK_DOCUMENT);
    if (!attach(follower, file))
        return false;
    struct document_look look = {.layout = find_layout(follower->reader, slice_of(file->path))};
    if (look.layout != LAYOUT_LINES) {
        take_over(follower, file);
        look_at_document(follower, file->items, file->is_quiet, &look);
    }
    file_input_close(&follower->reader->input);
    if (look.layout == LAYOUT_LINES) {
        file->state = TRACK_LINES;
        return true;
    }
    file->unfinished = !look.ended;
    if (!look.ended && stays_for_later(follower, file))
        return false;
    bool grown = file->items > 0 && look.items >= file->items && look.old_hash == file->items_hash;
    // A scrape is written anew all the time.
    if (file->items > 0 && !grown && look.layout != LAYOUT_WHOLE)
        follower_note(follower, file,
                      "it was written anew with other records and is read from its beginning");
    if (!grown)
        stream_begin_document(&file->stream, file->items > 0);
    if (!file->from_end)
        read_again(follower, file, (struct read_start){.items = grown ? file->items : 0});
    file->from_end = false;
    file->items = look.items;
    file->items_hash = look.hash;
    return false;
}

// -- gzip ---------------------------------------------------------------------------------------

// The fingerprints of one candidate while the decompressed bytes go by.
struct gzip_prints {
    uint64_t head;
    uint64_t tail;
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

// Decompresses it all once, to see which candidates it holds. False when it breaks off.
static bool look_at_gzip(struct file_reader *reader, struct copy_candidates *found) {
    struct gzip_prints prints[COPY_CANDIDATES_MAX];
    uint64_t at = 0;
    struct file_window *window = &reader->window;
    for (uint32_t i = 0; i < found->count; i++)
        prints[i] = (struct gzip_prints){HASH_START, HASH_START};
    for (; next_bytes(reader); window->start = window->end) {
        struct slice bytes = window_rest(window);
        for (uint32_t i = 0; i < found->count; i++) {
            const struct extent *done = &found->items[i].done;
            assert(done->tail.size <= done->offset);
            prints[i].head = hash_within(prints[i].head, bytes, at, 0, done->head.size);
            prints[i].tail = hash_within(prints[i].tail, bytes, at, done->offset - done->tail.size,
                                         done->offset);
        }
        at += bytes.size;
    }
    for (uint32_t i = 0; i < found->count; i++) {
        const struct extent *done = &found->items[i].done;
        found->items[i].is_held = done->offset <= at && prints[i].head == done->head.hash &&
                                  prints[i].tail == done->tail.hash;
    }
    return reader->input.trouble[0] == '\0';
}

// The first bytes, decompressed, for telling whose copy it is.
static struct slice read_beginning(struct follower *follower, struct tracked_file *file,
                                   char beginning[FINGERPRINT_MAX]) {
    struct slice bytes = {beginning, 0};
    if (!attach(follower, file))
        return bytes;
    struct file_window *window = &follower->reader->window;
    while (window->end - window->start < FINGERPRINT_MAX && next_bytes(follower->reader))
        continue;
    struct slice rest = window_rest(window);
    bytes.size = rest.size < FINGERPRINT_MAX ? rest.size : FINGERPRINT_MAX;
    if (bytes.size > 0)
        memcpy(beginning, rest.data, bytes.size);
    file_input_close(&follower->reader->input);
    return bytes;
}

// Whose copy it may be. What is left of an original is read first, so that nothing is read twice.
static void find_originals(struct follower *follower, struct tracked_file *file,
                           struct copy_candidates *found) {
    char bytes[FINGERPRINT_MAX];
    struct slice beginning = read_beginning(follower, file, bytes);
    copy_find_candidates(follower->table, file, beginning, true, found);
    for (uint32_t i = 0; i < found->count; i++) {
        struct tracked_file *original = found->items[i].file;
        if (original != NULL && !original->there && original->state == TRACK_LINES)
            (void)lines_read_rest(follower, original);
    }
    copy_find_candidates(follower->table, file, beginning, true, found);
    copy_note_more(follower, file, found);
}

// Where what was not offered begins. A file that grew by another member goes on there, if it is
// still the one that was read.
static struct read_start gzip_start(struct follower *follower, struct tracked_file *file,
                                    struct slice beginning) {
    const struct extent *done = &file->restored.done;
    struct fingerprint head = fingerprint_of(beginning);
    bool is_same = done->head.size == 0 ||
                   (head.size >= done->head.size && fingerprint_fits(done->head, beginning.data));
    struct read_start start = {0, 0, 0};
    if (is_same && (file->restored.kind == POSITION_GZIP || file->restored.kind == POSITION_DONE))
        start = (struct read_start){.bytes = done->offset, .lines = done->records};
    if (!is_same) {
        follower_note(follower, file, "it was filled anew and is read from its beginning");
        file->stream.generation++;
    }
    file->stream.done.head = head;
    return start;
}

// One that was replaced under its name goes on from what was offered of the old one.
static void take_over_gzip(struct follower *follower, struct tracked_file *file) {
    const struct track_table *table = follower->table;
    for (uint32_t i = 0; i < table->count && file->restored.kind == POSITION_NONE; i++) {
        struct tracked_file *old = table->files[i];
        if (old == file || old->there || old->over || old->state != TRACK_GZIP ||
            old->restored.kind != POSITION_DONE || old->stream.source != file->stream.source)
            continue;
        file->restored = old->restored;
        old->over = true;
    }
}

static void settle_gzip(struct follower *follower, struct tracked_file *file) {
    assert(file->state == TRACK_GZIP);
    char bytes[FINGERPRINT_MAX];
    struct copy_candidates found;
    take_over_gzip(follower, file);
    find_originals(follower, file, &found);
    if (!attach(follower, file))
        return;
    bool whole = look_at_gzip(follower->reader, &found);
    file_input_close(&follower->reader->input);
    file->unfinished = !whole;
    if (!whole && stays_for_later(follower, file))
        return;
    struct record_stream *stream = &file->stream;
    struct read_start start = gzip_start(follower, file, read_beginning(follower, file, bytes));
    const struct copy_candidate *best = copy_best(&found);
    if (best != NULL && best->done.offset > start.bytes) {
        start = (struct read_start){.bytes = best->done.offset, .lines = best->done.records};
        follower_note(follower, file,
                      "it holds what was read before, up to line %llu, and is read on from there",
                      (unsigned long long)start.lines);
        copy_settle(follower->table, file, best);
        copy_replace(follower->table, best->file);
    }
    stream_describe(stream, POSITION_GZIP, false);
    read_again(follower, file, start);
    stream_reach_done(stream, file->read.bytes);
    file->restored = (struct position){.kind = POSITION_DONE, .done = stream->done};
}

// -- either -------------------------------------------------------------------------------------

bool settle_waits(const struct tracked_file *file) {
    return !file_version_equal(file->read, file->seen);
}

bool settle_step(struct follower *follower, struct tracked_file *file) {
    assert(file->state == TRACK_DOCUMENT || file->state == TRACK_GZIP);
    bool quiet = follower->now_ns - file->quiet_since_ns >= follower->settled_ns;
    bool tried = !settle_waits(file);
    if (!follower->ending && (!quiet || tried))
        return false;
    // At the end only what was not whole before is looked at once more.
    if (follower->ending && tried && !file->unfinished)
        return false;
    file->unfinished = false;
    file->read = file->seen;
    file->is_quiet = quiet;
    if (file->state == TRACK_DOCUMENT)
        return settle_document(follower, file);
    settle_gzip(follower, file);
    return false;
}

// SPDX-License-Identifier: Apache-2.0
// Links each file to the one that goes on where it ends.
//
// Segments by their numbers: a search finds those of a sink side by side, in order. Rotated files
// by what is known of them (they had the other's name, or are a copy of it), else by their names,
// strictly: rank.0.jsonl and rank.1.jsonl are two ranks. Cost: a few look-ups of paths for each
// file whose name holds digits, once a search.
#include "receivers/file/follow/chain.h"

#include "base/text/cut.h"
#include "receivers/file/find/directory.h"
#include "receivers/file/find/path.h"

#include <assert.h>
#include <stdlib.h>

enum {
    DATE_DIGITS = 8,
    EMPTY_MAX = 64, // files in a row that nothing was read of
};

// -- names --------------------------------------------------------------------------------------

// How long the number or date at the start of `text` is, 0 when none is there; its digits.
static size_t stamp_size(struct slice text, size_t *digits) {
    size_t size = 0;
    *digits = 0;
    for (; size < text.size; size++) {
        bool digit = text_is_digit(text.data[size]);
        if (!digit && (size == 0 || memchr("-_T:", text.data[size], 4) == NULL))
            break;
        *digits += digit;
    }
    return size;
}

// The name without the stamp that begins behind its byte `at`, a dot or dash. False when rotation
// would not write one there: numbers end a name, dates may also stand before its ending.
static bool without_stamp(struct slice name, size_t at, char out[CHAIN_PATH_MAX], size_t *size) {
    size_t digits;
    size_t stamp = stamp_size((struct slice){name.data + at + 1, name.size - at - 1}, &digits);
    size_t rest = name.size - at - 1 - stamp;
    bool dated = digits >= DATE_DIGITS;
    bool numbered = name.data[at] == '.' && rest == 0 && digits == stamp;
    if (stamp == 0 || (!dated && !numbered) || (rest > 0 && name.data[at + 1 + stamp] != '.'))
        return false;
    assert(at + rest < CHAIN_PATH_MAX);
    memcpy(out, name.data, at);
    memcpy(out + at, name.data + at + 1 + stamp, rest);
    *size = at + rest;
    return true;
}

bool chain_next_base(struct slice older, size_t *at, char out[CHAIN_PATH_MAX], size_t *size) {
    older = name_without_gzip(older);
    if (older.size >= CHAIN_PATH_MAX)
        return false;
    size_t start = path_directory(older).size + 1; // a name does not begin with its stamp
    for (*at = *at < start ? start : *at; *at < older.size;) {
        size_t here = (*at)++;
        if ((older.data[here] == '.' || older.data[here] == '-') &&
            without_stamp(older, here, out, size))
            return true;
    }
    return false;
}

bool chain_names_fit(struct slice older, struct slice newer) {
    char base[CHAIN_PATH_MAX];
    size_t at = 0, size = 0;
    while (chain_next_base(older, &at, base, &size))
        if (slice_equal((struct slice){base, size}, newer))
            return true;
    return false;
}

// -- links --------------------------------------------------------------------------------------

static bool can_follow(const struct tracked_file *file, const struct tracked_file *next) {
    return next != NULL && next != file && next->there &&
           next->stream.source != file->stream.source;
}

static bool link_path(const struct track_table *table, struct tracked_file *file,
                      struct slice path) {
    struct tracked_file *next = track_find_path(table, path);
    bool right = can_follow(file, next);
    assert(!right || next != file);
    if (right)
        file->successor = next;
    return right;
}

void chain_link_rotated(const struct track_table *table, struct tracked_file *file) {
    if (file->was_at != NULL && link_path(table, file, slice_of(file->was_at)))
        return;
    char base[CHAIN_PATH_MAX];
    size_t at = 0, size = 0;
    while (file->successor == NULL && chain_next_base(slice_of(file->path), &at, base, &size))
        (void)link_path(table, file, (struct slice){base, size});
}

// The segment of the same sink with the next higher number, out of a sorted list.
static const struct found_file *next_segment(const struct found_list *found, uint32_t index) {
    assert(index < found->count);
    struct slice path = found->files[index].path;
    struct slice directory = path_directory(path);
    uint32_t own, number;
    if (!directory_segment_number(path, &own))
        return NULL;
    for (uint32_t i = index + 1; i < found->count; i++) {
        struct slice other = found->files[i].path;
        if (!slice_equal(path_directory(other), directory))
            return NULL;
        if (directory_segment_number(other, &number) && number > own)
            return &found->files[i];
    }
    return NULL;
}

void chain_link(struct track_table *table, const struct found_list *found) {
    for (uint32_t i = 0; i < table->count; i++) {
        table->files[i]->successor = NULL;
        chain_link_rotated(table, table->files[i]);
    }
    for (uint32_t i = 0; i < found->count; i++) {
        const struct found_file *next = next_segment(found, i);
        if (next == NULL)
            continue;
        struct tracked_file *file = track_find(table, found->files[i].identity);
        struct tracked_file *segment = track_find(table, next->identity);
        if (file != NULL && can_follow(file, segment))
            file->successor = segment;
    }
}

// -- being over ---------------------------------------------------------------------------------

static bool is_read(const struct tracked_file *file) {
    if (file->state == TRACK_LINES)
        return !file->changed && file->scanned >= file->seen.bytes;
    if (file->state == TRACK_DOCUMENT)
        return !file->changed && file->items > 0 && !file->unfinished;
    if (file->state == TRACK_GZIP)
        return !file->changed && !file->unfinished && file->restored.kind == POSITION_DONE;
    return file->state == TRACK_IGNORED;
}

// Whether anything was read of what comes after. A file in between may have stayed empty: its
// writer ended before it wrote.
static bool goes_on(const struct tracked_file *file) {
    const struct tracked_file *next = file->successor;
    for (int i = 0; next != NULL && i < EMPTY_MAX; i++, next = next->successor)
        if (next->stream.at.number > 0)
            return true;
    return false;
}

bool chain_is_complete(const struct tracked_file *file) {
    return is_read(file) && goes_on(file);
}

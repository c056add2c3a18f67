// SPDX-License-Identifier: Apache-2.0
// Has this been read under another name?
//
// Names first, then the hash of the first bytes, both without reading anything but the copy's
// beginning; then that of the bytes before the place reached, a small read for each of at most 64
// that are left. Of several the one that was read furthest counts. The likeliest come first: those
// whose names rotation would give the copy, and what was there before a cut from the newest on.
#include "receivers/file/follow/copy.h"

#include "base/clock.h"
#include "base/memory.h"
#include "receivers/file/follow/chain.h"
#include "receivers/file/follow/place.h"

#include <ctype.h>
#include <unistd.h>

static struct slice directory_of(struct slice path) {
    const char *slash = memrchr(path.data, '/', path.size);
    return (struct slice){path.data, slash == NULL ? 0 : (size_t)(slash + 1 - path.data)};
}

// The last name up to its first dot.
static struct slice stem_of(struct slice path) {
    size_t at = directory_of(path).size;
    size_t end = at;
    while (end < path.size && path.data[end] != '.')
        end++;
    return (struct slice){path.data + at, end - at};
}

static bool names_fit(struct slice original, struct slice copy) {
    struct slice stem = stem_of(original), other = stem_of(copy);
    if (slice_equal(original, copy) || !slice_equal(directory_of(original), directory_of(copy)) ||
        stem.size == 0 || other.size < stem.size || memcmp(stem.data, other.data, stem.size) != 0)
        return false;
    // run-2026 goes with run, run2 does not.
    return other.size == stem.size || !isalnum((unsigned char)other.data[stem.size]);
}

static void consider(struct copy_candidates *found, struct slice copy, struct slice beginning,
                     struct copy_candidate candidate) {
    if (candidate.offset == 0 || candidate.head.size == 0 || candidate.mark.size == 0)
        return;
    if (beginning.size < candidate.head.size) {
        found->too_short = found->too_short || chain_names_fit(copy, candidate.path);
        return;
    }
    if (!track_mark_fits(candidate.head, beginning.data))
        return;
    if (found->count == COPY_CANDIDATES_MAX)
        found->more = true;
    else
        found->items[found->count++] = candidate;
}

static void consider_file(struct copy_candidates *found, struct slice copy, struct slice beginning,
                          struct tracked_file *file, bool likely) {
    bool undecided = file->state == TRACK_UNDECIDED && file->restored.kind == PLACE_LINES;
    struct slice path = undecided ? place_path(file->stream.place) : slice_of(file->path);
    if ((file->state != TRACK_LINES && !undecided) || !names_fit(path, copy) ||
        chain_names_fit(copy, path) != likely)
        return;
    const struct place *known = &file->restored;
    consider(found, copy, beginning,
             undecided ? (struct copy_candidate){NULL, path, known->head, known->mark,
                                                 known->offset, known->records, true}
                       : (struct copy_candidate){file, path, file->head, file->mark, file->offset,
                                                 file->stream.position, false});
}

static void consider_all(const struct track_table *table, const struct tracked_file *copy,
                         struct slice beginning, bool likely, struct copy_candidates *found) {
    struct slice path = slice_of(copy->path);
    for (uint32_t i = 0; i < table->count; i++)
        if (table->files[i] != copy)
            consider_file(found, path, beginning, table->files[i], likely);
    const struct track_former *former;
    for (uint32_t i = 0; (former = track_former_at(table, i)) != NULL; i++) {
        struct slice was_at = slice_of(former->path);
        if (names_fit(was_at, path) && chain_names_fit(path, was_at) == likely)
            consider(found, path, beginning,
                     (struct copy_candidate){NULL, was_at, former->head, former->mark,
                                             former->offset, former->lines, false});
    }
}

void copy_find_candidates(const struct track_table *table, const struct tracked_file *copy,
                          struct slice beginning, struct copy_candidates *found) {
    found->count = 0;
    found->more = found->too_short = false;
    consider_all(table, copy, beginning, true, found);
    consider_all(table, copy, beginning, false, found);
}

static bool bytes_fit(const struct tracked_file *file, struct track_mark mark, uint64_t offset) {
    char bytes[TRACK_MARK_MAX];
    ssize_t got = pread(file->descriptor, bytes, mark.size, (off_t)offset);
    return got == (ssize_t)mark.size && track_mark_fits(mark, bytes);
}

// Reads the original up to its end as it is now, then says from where the copy is to be read.
static struct copy_place place_after(struct follower *follower,
                                     const struct copy_candidate *candidate,
                                     const struct tracked_file *copy) {
    struct copy_place place = {candidate->offset, candidate->lines};
    struct tracked_file *original = candidate->file;
    if (original == NULL)
        return place;
    uint64_t restarts = original->restarts;
    while (original->restarts == restarts && follow_step(follower, original))
        continue;
    if (original->restarts != restarts)
        return place;
    bool further = original->offset <= copy->seen_bytes &&
                   bytes_fit(copy, original->mark, original->offset - original->mark.size);
    if (further)
        place = (struct copy_place){original->offset, original->stream.position};
    if (!original->there) {
        // The copy takes its place, up to a last line without newline.
        place_retire(follower->table, original);
        original->over = true;
    }
    return place;
}

void copy_settle(struct track_table *table, struct tracked_file *copy,
                 const struct copy_candidate *candidate) {
    char *path = memory_copy_text(candidate->path.data, candidate->path.size);
    memory_give(copy->was_at);
    copy->was_at = path;
    chain_link_rotated(table, copy);
}

void copy_note_more(struct follower *follower, const struct tracked_file *copy,
                    const struct copy_candidates *found) {
    if (found->more)
        feed_note(follower->reader->sink.feed, slice_of(copy->path),
                  "more than %d files with such a name begin like it: should it be a copy of one "
                  "that it was not compared with, its lines count twice",
                  COPY_CANDIDATES_MAX);
}

// What was read of a file is longer than this one, which begins like it.
static void note_shorter(struct follower *follower, const struct tracked_file *copy,
                         struct slice longer) {
    feed_note(follower->reader->sink.feed, slice_of(copy->path),
              "it begins like %.*s, but is shorter than what was read of that: it is taken as "
              "another file, and what both hold counts twice",
              (int)longer.size, longer.data);
}

// The one that was read furthest of those whose bytes the copy holds; NULL when it holds none's.
static const struct copy_candidate *best_plain(const struct copy_candidates *found,
                                               const struct tracked_file *copy) {
    const struct copy_candidate *best = NULL;
    for (uint32_t i = 0; i < found->count; i++) {
        const struct copy_candidate *candidate = &found->items[i];
        if (candidate->offset <= copy->seen_bytes &&
            (best == NULL || candidate->offset > best->offset) &&
            bytes_fit(copy, candidate->mark, candidate->offset - candidate->mark.size))
            best = candidate;
    }
    return best;
}

static const struct copy_candidate *first_longer(const struct copy_candidates *found,
                                                 const struct tracked_file *copy) {
    for (uint32_t i = 0; i < found->count; i++)
        if (found->items[i].offset > copy->seen_bytes)
            return &found->items[i];
    return NULL;
}

// Whether it was written to lately.
static bool may_grow(const struct follower *follower, const struct tracked_file *copy) {
    uint64_t written_ns =
        (uint64_t)copy->seen_time.tv_sec * 1000000000 + (uint64_t)copy->seen_time.tv_nsec;
    return clock_unix_ns() < written_ns + COPY_WAITS_MAX * follower->settled_ns;
}

enum copy_answer copy_find_plain(struct follower *follower, struct tracked_file *copy, bool patient,
                                 struct copy_place *place) {
    char beginning[TRACK_MARK_MAX];
    struct copy_candidates found;
    ssize_t got = pread(copy->descriptor, beginning, sizeof beginning, 0);
    copy_find_candidates(follower->table, copy,
                         (struct slice){beginning, got < 0 ? 0 : (size_t)got}, &found);
    const struct copy_candidate *longer = first_longer(&found, copy);
    const struct copy_candidate *best = best_plain(&found, copy);
    bool undecided = best != NULL && best->undecided;
    bool unfinished = (longer != NULL || found.too_short) && may_grow(follower, copy);
    if (patient && (unfinished || undecided))
        return COPY_UNFINISHED;
    copy_note_more(follower, copy, &found);
    if (best != NULL) {
        copy_settle(follower->table, copy, best);
        *place = place_after(follower, best, copy);
        return COPY_FOUND;
    }
    if (longer != NULL)
        note_shorter(follower, copy, longer->path);
    return COPY_NONE;
}

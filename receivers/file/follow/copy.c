// SPDX-License-Identifier: Apache-2.0
// Names are compared first, then the fingerprint of the first bytes, both without reading anything
// but the copy's beginning; then that of the bytes before the offset reached, a small read for each
// of at most 64 that are left. Of several the one that was read furthest counts. The likeliest come
// first: those whose names rotation would give the copy, and what was there before a cut from the
// newest on.
#include "receivers/file/follow/copy.h"

#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/text/cut.h"
#include "receivers/file/find/path.h"
#include "receivers/file/follow/chain.h"
#include "receivers/file/follow/lines.h"
#include "receivers/file/follow/place.h"

#include <assert.h>
#include <ctype.h>
#include <unistd.h>

// The last name up to its first dot.
static struct slice stem_of(struct slice path) {
    struct slice name = path_name(path);
    const char *dot = name.size == 0 ? NULL : memchr(name.data, '.', name.size);
    return (struct slice){name.data, dot == NULL ? name.size : (size_t)(dot - name.data)};
}

static bool names_fit(struct slice original, struct slice copy) {
    struct slice stem = stem_of(original), other = stem_of(copy);
    if (!slice_equal(path_directory(original), path_directory(copy)) || stem.size == 0 ||
        !text_begins(other, stem))
        return false;
    // run-2026 goes with run, run2 does not.
    return other.size == stem.size || !isalnum((unsigned char)other.data[stem.size]);
}

// Whether the copy has a name that rotation gives, or its own one.
static bool is_likely(struct slice original, struct slice copy) {
    return slice_equal(original, copy) || slice_equal(original, name_without_gzip(copy)) ||
           chain_names_fit(copy, original);
}

// Whether these first bytes of a copy are not those that were read.
static bool begins_otherwise(const struct extent *done, struct slice beginning) {
    for (uint32_t i = 0; i < MARK_COUNT && mark_at(i) <= beginning.size; i++) {
        const char *from = beginning.data + mark_at(i) - mark_size(i);
        if (done->marks[i] != 0 && hash_slice((struct slice){from, mark_size(i)}) != done->marks[i])
            return true;
    }
    return beginning.size >= done->head.size && !fingerprint_fits(done->head, beginning.data);
}

// One look through all that was read, for the likely or for the other candidates.
struct search {
    struct copy_candidates *found;
    struct slice copy;
    struct slice beginning;
    bool likely;
};

static void consider(const struct search *search, struct copy_candidate candidate) {
    struct copy_candidates *found = search->found;
    const struct extent *done = &candidate.done;
    assert(found->count <= COPY_CANDIDATES_MAX);
    candidate.likely = search->likely;
    if (!names_fit(candidate.path, search->copy) ||
        is_likely(candidate.path, search->copy) != search->likely || done->offset == 0 ||
        done->head.size == 0 || done->tail.size == 0 || begins_otherwise(done, search->beginning))
        return;
    if (search->beginning.size < done->head.size)
        found->too_short = found->too_short || search->likely;
    else if (found->count == COPY_CANDIDATES_MAX)
        found->more = true;
    else
        found->items[found->count++] = candidate;
}

static void consider_all(const struct search *search, const struct track_table *table,
                         const struct tracked_file *copy) {
    for (uint32_t i = 0; i < table->count; i++) {
        struct tracked_file *file = table->files[i];
        if (file == copy || file->over)
            continue;
        if (file->state == TRACK_LINES)
            consider(search, (struct copy_candidate){.file = file,
                                                     .path = slice_of(file->path),
                                                     .done = file->stream.done});
        else if (file->state == TRACK_UNDECIDED && file->restored.kind == POSITION_LINES)
            consider(search, (struct copy_candidate){.path = place_path(file->stream.place),
                                                     .done = file->restored.done,
                                                     .undecided = true});
    }
    const struct track_former *former;
    for (uint32_t i = 0; (former = track_former_at(table, i)) != NULL; i++)
        consider(search,
                 (struct copy_candidate){.path = slice_of(former->path), .done = former->done});
}

void copy_find_candidates(const struct track_table *table, const struct tracked_file *copy,
                          struct slice beginning, bool all, struct copy_candidates *found) {
    struct search search = {
        .found = found, .copy = slice_of(copy->path), .beginning = beginning, .likely = true};
    assert(beginning.size <= FINGERPRINT_MAX);
    found->count = 0;
    found->more = found->too_short = false;
    consider_all(&search, table, copy);
    search.likely = false;
    if (all)
        consider_all(&search, table, copy);
}

const struct copy_candidate *copy_best(const struct copy_candidates *found) {
    const struct copy_candidate *best = NULL;
    for (uint32_t i = 0; i < found->count; i++) {
        const struct copy_candidate *candidate = &found->items[i];
        if (candidate->is_held && (best == NULL || candidate->done.offset > best->done.offset))
            best = candidate;
    }
    return best;
}

static bool holds(struct follower *follower, const struct tracked_file *copy,
                  const struct extent *done) {
    bool unreadable = false;
    return done->offset <= copy->seen.bytes && done->tail.size <= done->offset &&
           follower_holds(follower, copy, done->tail, done->offset - done->tail.size, &unreadable);
}

// Reads the original up to its end as it is now, then says from where the copy is to be read.
static struct read_start start_after(struct follower *follower,
                                     const struct copy_candidate *candidate,
                                     const struct tracked_file *copy) {
    assert(candidate->is_held && candidate->file != copy);
    struct read_start start = {.bytes = candidate->done.offset, .lines = candidate->done.records};
    struct tracked_file *original = candidate->file;
    if (original == NULL || !lines_read_rest(follower, original))
        return start;
    const struct extent *done = &original->stream.done;
    if (holds(follower, copy, done))
        start = (struct read_start){.bytes = done->offset, .lines = done->records};
    // Up to a last line without newline.
    copy_replace(follower->table, original);
    return start;
}

void copy_settle(struct track_table *table, struct tracked_file *copy,
                 const struct copy_candidate *candidate) {
    assert(candidate->is_held && candidate->file != copy);
    memcpy(copy->stream.done.marks, candidate->done.marks, sizeof copy->stream.done.marks);
    if (slice_equal(candidate->path, slice_of(copy->path)))
        return;
    track_set_was_at(copy, candidate->path);
    chain_link_rotated(table, copy);
}

void copy_replace(struct track_table *table, struct tracked_file *original) {
    if (original == NULL || original->there)
        return;
    assert(!original->over && !original->pinned);
    place_retire(table, original);
    original->over = true;
}

void copy_note_more(struct follower *follower, const struct tracked_file *copy,
                    const struct copy_candidates *found) {
    if (found->more)
        follower_note(
            follower, copy,
            "more than %d files with such a name begin like it: should it be a copy of one "
            "that it was not compared with, its lines count twice",
            COPY_CANDIDATES_MAX);
}

// What was read of a file is longer than this one, which begins like it.
static void note_shorter(struct follower *follower, const struct tracked_file *copy,
                         struct slice longer) {
    follower_note(follower, copy,
                  "it begins like %.*s, but is shorter than what was read of that: it is taken as "
                  "another file, and what both hold counts twice",
                  (int)longer.size, longer.data);
}

// The first that is longer, and begins like the copy as far as that goes.
static const struct copy_candidate *first_longer(struct follower *follower,
                                                 const struct copy_candidates *found,
                                                 const struct tracked_file *copy,
                                                 enum likeness *like) {
    *like = ALIKE_NOT;
    for (uint32_t i = 0; i < found->count; i++) {
        const struct extent *done = &found->items[i].done;
        if (done->offset > copy->seen.bytes)
            *like = alike_compare(follower, copy, done, copy->seen.bytes);
        if (*like != ALIKE_NOT)
            return &found->items[i];
    }
    return NULL;
}

// Whether it was written to lately.
static bool may_grow(const struct follower *follower, const struct tracked_file *copy) {
    uint64_t written_ns =
        (uint64_t)copy->seen.time.tv_sec * 1000000000 + (uint64_t)copy->seen.time.tv_nsec;
    return clock_unix_ns() < written_ns + ALIKE_WAITS_MAX * follower->settled_ns;
}

// What is likely is waited for as long as it grows, if it is sure to begin like what was read.
static bool is_worth_waiting(const struct follower *follower, const struct tracked_file *copy,
                             bool likely, enum likeness like) {
    return may_grow(follower, copy) &&
           (!likely || like == ALIKE_SURE || copy->copy_looks < ALIKE_LOOKS_MAX);
}

enum copy_answer copy_find_plain(struct follower *follower, struct tracked_file *copy,
                                 struct copy_wish wish, struct read_start *start) {
    assert(copy->descriptor >= 0 && copy->state == TRACK_UNDECIDED);
    char beginning[FINGERPRINT_MAX];
    struct copy_candidates found;
    ssize_t got = pread(copy->descriptor, beginning, sizeof beginning, 0);
    copy_find_candidates(follower->table, copy,
                         (struct slice){beginning, got < 0 ? 0 : (size_t)got}, wish.all, &found);
    for (uint32_t i = 0; i < found.count; i++)
        found.items[i].is_held = holds(follower, copy, &found.items[i].done);
    enum likeness like;
    const struct copy_candidate *longer = first_longer(follower, &found, copy, &like);
    const struct copy_candidate *best = copy_best(&found);
    bool undecided = best != NULL && best->undecided;
    bool likely = longer == NULL || longer->likely;
    bool unfinished =
        (longer != NULL || found.too_short) && is_worth_waiting(follower, copy, likely, like);
    if (wish.patient && (unfinished || undecided))
        return COPY_UNFINISHED;
    copy_note_more(follower, copy, &found);
    if (best != NULL) {
        bool itself = slice_equal(best->path, slice_of(copy->path));
        copy_settle(follower->table, copy, best);
        *start = start_after(follower, best, copy);
        return itself ? COPY_FOUND_ITSELF : COPY_FOUND;
    }
    if (longer != NULL)
        note_shorter(follower, copy, longer->path);
    return COPY_NONE;
}

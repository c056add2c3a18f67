// SPDX-License-Identifier: Apache-2.0
// Has this been read under another name?
//
// Names first, then the hash of the first bytes, then that of the bytes before the place reached:
// at most eight candidates and two small reads each.
#include "receivers/file_copy.h"

#include "base/memory.h"
#include "receivers/file_chain.h"

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

uint32_t copy_candidates(const struct track_table *table, const struct tracked_file *copy,
                         struct copy_candidate out[COPY_CANDIDATES_MAX]) {
    uint32_t count = 0;
    struct slice path = slice_of(copy->path);
    for (uint32_t i = 0; i < table->count && count < COPY_CANDIDATES_MAX; i++) {
        struct tracked_file *file = table->files[i];
        if (file != copy && file->offset > 0 && file->head.size > 0 && file->mark.size > 0 &&
            file->state == TRACK_LINES && names_fit(slice_of(file->path), path))
            out[count++] = (struct copy_candidate){file,       file->path,   file->head,
                                                   file->mark, file->offset, file->stream.position};
    }
    for (uint32_t i = 0; i < TRACK_FORMER_MAX && count < COPY_CANDIDATES_MAX; i++) {
        // The newest first.
        const struct track_former *former =
            &table->formers[(table->former_next - 1 - i) % TRACK_FORMER_MAX];
        if (former->path != NULL && names_fit(slice_of(former->path), path))
            out[count++] = (struct copy_candidate){NULL,         former->path,   former->head,
                                                   former->mark, former->offset, former->lines};
    }
    return count;
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
        track_remember(follower->table, original);
        original->over = true;
    }
    return place;
}

void copy_settle(struct track_table *table, struct tracked_file *copy,
                 const struct copy_candidate *candidate) {
    char *path = memory_copy_text(candidate->path, strlen(candidate->path));
    memory_give(copy->was_at);
    copy->was_at = path;
    chain_link_rotated(table, copy);
}

enum copy_answer copy_find_plain(struct follower *follower, struct tracked_file *copy,
                                 struct copy_place *place) {
    struct copy_candidate candidates[COPY_CANDIDATES_MAX];
    uint32_t count = copy_candidates(follower->table, copy, candidates);
    enum copy_answer answer = COPY_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct copy_candidate *candidate = &candidates[i];
        if (!bytes_fit(copy, candidate->head, 0))
            continue;
        if (copy->seen_bytes < candidate->offset) {
            answer = COPY_UNFINISHED;
            continue;
        }
        if (bytes_fit(copy, candidate->mark, candidate->offset - candidate->mark.size)) {
            copy_settle(follower->table, copy, candidate);
            *place = place_after(follower, candidate, copy);
            return COPY_FOUND;
        }
    }
    return answer;
}

// SPDX-License-Identifier: Apache-2.0
// Joins signs of one process by the names that they share: each sign is entered under a hash of
// each name together with its words, and looked for under its own.
#include "processors/unexplained/repeats.h"

#include "base/hash/hash.h"
#include "base/sort.h"

// Names of a sign: rank, pid and local rank, each on its node and in its file.
enum { NAMES_MAX = 6 };

// With more than so many under one name it is not looked further: no one of them is meant.
enum { LOOKED_AT_MAX = 64 };

struct name {
    uint64_t hash;
    uint32_t order; // of its sign, the best named first
};

// -- names ----------------------------------------------------------------------------------------

static void add_name(struct name *names, uint32_t *count, const struct sign *sign, int64_t kind,
                     string_id place, int64_t number) {
    if (place == STRING_NONE || number < 0)
        return;
    const int64_t parts[] = {(int64_t)sign->said, kind, (int64_t)place, number};
    names[(*count)++].hash = hash_words(parts, sizeof parts);
}

// Up to NAMES_MAX of them, without their order.
static uint32_t names_of(const struct sign *sign, struct name *names) {
    const int64_t numbers[] = {sign->key.rank, sign->pid, sign->local_rank};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        add_name(names, &count, sign, (int64_t)(2 * i), sign->key.node, numbers[i]);
        add_name(names, &count, sign, (int64_t)(2 * i + 1), sign->source, numbers[i]);
    }
    return count;
}

// -- the same process -----------------------------------------------------------------------------

static bool differ(int64_t a, int64_t b, int64_t unknown) {
    return a != unknown && b != unknown && a != b;
}

static bool is_close(const struct sign *a, const struct sign *b) {
    if (((a->flags | b->flags) & SIGN_TIMELESS) != 0)
        return true;
    uint64_t apart = a->time_ns > b->time_ns ? a->time_ns - b->time_ns : b->time_ns - a->time_ns;
    return apart <= SIGN_STRETCH_NS;
}

// A process ends once, whatever the clocks say; other things may happen to it again, and what has
// no pid may be of a later start.
static bool is_same(const struct sign *a, const struct sign *b) {
    bool once = (a->flags & b->flags & SIGN_ENDS) != 0 && a->pid >= 0 && a->pid == b->pid;
    return a->said == b->said && (once || is_close(a, b)) && a->key.job == b->key.job &&
           !differ(a->key.rank, b->key.rank, RANK_NONE) && !differ(a->pid, b->pid, -1) &&
           !differ(a->local_rank, b->local_rank, -1) &&
           !differ((int64_t)a->key.node, (int64_t)b->key.node, (int64_t)STRING_NONE);
}

struct entry {
    const struct sign *sign;
    uint32_t at; // among those that were given
};

struct search {
    const struct entry *entries; // the best named first
    const struct name *names;    // sorted
    uint32_t name_count;
    bool *again; // of those that were given
};

static uint32_t first_of(const struct search *search, uint64_t hash) {
    uint32_t from = 0, to = search->name_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (search->names[middle].hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

// Whether exactly one of those that have a better place and this name is the same.
static bool is_told_before(const struct search *search, uint32_t order, uint64_t hash) {
    uint32_t first = first_of(search, hash), found = 0;
    for (uint32_t i = first;
         i < search->name_count && search->names[i].hash == hash && search->names[i].order < order;
         i++) {
        if (i - first == LOOKED_AT_MAX)
            return false;
        const struct entry *other = &search->entries[search->names[i].order];
        found += !search->again[other->at] && is_same(other->sign, search->entries[order].sign);
    }
    return found == 1;
}

// A rank is the best name, then one with its node, then what was there first.
static int compare_entries(const void *left, const void *right) {
    const struct sign_key *a = &((const struct entry *)left)->sign->key;
    const struct sign_key *b = &((const struct entry *)right)->sign->key;
    return COMPARE_KEYS(COMPARE(a->rank < 0, b->rank < 0),
                        COMPARE(a->node == STRING_NONE, b->node == STRING_NONE));
}

static int compare_hashes(const void *left, const void *right) {
    const struct name *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(a->hash, b->hash), COMPARE(a->order, b->order));
}

static const struct entry *entries_of(const struct sign *const *signs, uint32_t count,
                                      struct arena *arena) {
    struct entry *entries = arena_take(arena, count * sizeof *entries);
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct entry){signs[i], i};
    sort_stable(entries, count, sizeof *entries, arena, compare_entries);
    return entries;
}

// The names of all entries in `search`, sorted.
static void enter_names(struct search *search, uint32_t count, struct arena *arena) {
    struct name *names = arena_take(arena, (size_t)count * NAMES_MAX * sizeof *names);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t left = names_of(search->entries[i].sign, names + search->name_count);
             left > 0; left--)
            names[search->name_count++].order = i;
    sort_stable(names, search->name_count, sizeof *names, arena, compare_hashes);
    search->names = names;
}

static bool is_repeat(const struct search *search, uint32_t order) {
    struct name own[NAMES_MAX];
    uint32_t count = names_of(search->entries[order].sign, own);
    for (uint32_t i = 0; i < count; i++)
        if (is_told_before(search, order, own[i].hash))
            return true;
    return false;
}

const bool *sign_repeats(const struct sign *const *signs, uint32_t count, struct arena *arena) {
    struct search search = {.again = arena_zero(arena, count + 1, sizeof *search.again)};
    if (count < 2)
        return search.again;
    search.entries = entries_of(signs, count, arena);
    enter_names(&search, count, arena);
    for (uint32_t i = 0; i < count; i++)
        search.again[search.entries[i].at] = is_repeat(&search, i);
    return search.again;
}

// SPDX-License-Identifier: Apache-2.0
// Which rows are there for groups, members and member sets, and which go when a bound is reached?
#include "base/hash/hash.h"
#include "base/sort.h"
#include "processors/cluster/row_bound.h"
#include "processors/nccl_hang_parts.h"

void *hang_rows_add(struct keyed_rows *rows, const void *key, uint32_t *self) {
    // table_add takes the row that was freed last, else the next one.
    *self = rows->table.free_count > 0 ? rows->table.free_head : rows->table.used;
    void *row = keyed_rows_add(rows, key);
    assert(table_row(&rows->table, *self) == row);
    return row;
}

// -- groups and members --------------------------------------------------------------------------

struct hang_group *hang_take_group(struct hang_store *store, string_id job, string_id backend,
                                   string_id name, string_id desc) {
    string_id key[4] = {job, backend, name, desc};
    struct hang_group *group = keyed_rows_find(&store->groups, key);
    if (group != NULL)
        return group;
    if (keyed_rows_count(&store->groups) >= store->max_groups) {
        store->evicted++;
        return NULL;
    }
    uint32_t self;
    group = hang_rows_add(&store->groups, key, &self);
    group->self = self;
    group->first_member = TABLE_NO_ROW;
    return group;
}

struct hang_member *hang_take_member(struct hang_store *store, struct hang_group *group,
                                     int32_t rank) {
    struct {
        uint32_t group;
        int32_t rank;
    } key = {group->self, rank};
    struct hang_member *member = keyed_rows_find(&store->members, &key);
    if (member != NULL)
        return member;
    if (group->member_count >= store->max_ranks ||
        keyed_rows_count(&store->members) >= store->max_entries) {
        store->evicted++;
        return NULL;
    }
    uint32_t self;
    member = hang_rows_add(&store->members, &key, &self);
    member->self = self;
    member->next = group->first_member;
    group->first_member = self;
    group->member_count++;
    member->first_open = TABLE_NO_ROW;
    member->set = TABLE_NO_ROW;
    member->last = member->collective.newest = member->collective.done = -1;
    member->p2p.newest = member->p2p.done = -1;
    return member;
}

// -- member sets ---------------------------------------------------------------------------------

static void release_set(struct hang_store *store, uint32_t row) {
    struct hang_set *set = hang_set_at(store, row);
    if (--set->references > 0)
        return;
    for (uint32_t at = set->first_chunk; at != TABLE_NO_ROW;) {
        uint32_t next = ((struct hang_chunk *)table_row(&store->chunks, at))->next;
        table_free(&store->chunks, at);
        at = next;
    }
    keyed_rows_remove(&store->sets, set);
}

static struct hang_set *add_set(struct hang_store *store, const void *key, const int32_t *ranks,
                                uint32_t count) {
    uint32_t self, *link;
    struct hang_set *set = hang_rows_add(&store->sets, key, &self);
    set->self = self;
    link = &set->first_chunk;
    for (uint32_t at = 0; at < count; at += HANG_CHUNK_RANKS) {
        uint32_t row = table_add(&store->chunks);
        struct hang_chunk *chunk = table_row(&store->chunks, row);
        chunk->count = count - at < HANG_CHUNK_RANKS ? count - at : HANG_CHUNK_RANKS;
        memcpy(chunk->ranks, ranks + at, chunk->count * sizeof *ranks);
        *link = row;
        link = &chunk->next;
    }
    *link = TABLE_NO_ROW;
    return set;
}

void hang_member_clear_set(struct hang_store *store, struct hang_member *member) {
    if (member->set != TABLE_NO_ROW)
        release_set(store, member->set);
    member->set = TABLE_NO_ROW;
}

void hang_member_set(struct hang_store *store, struct hang_member *member, const int32_t *ranks,
                     uint32_t count) {
    struct __attribute__((packed)) {
        uint32_t count;
        uint64_t hash;
    } key = {count, hash_more(HASH_START, ranks, count * sizeof *ranks)};
    struct hang_set *set = keyed_rows_find(&store->sets, &key);
    if (set == NULL)
        set = add_set(store, &key, ranks, count);
    set->references++;
    hang_member_clear_set(store, member);
    member->set = set->self;
}

const int32_t *hang_set_ranks(const struct hang_store *store, const struct hang_set *set,
                              struct arena *arena) {
    int32_t *ranks = arena_take(arena, set->count * sizeof *ranks);
    uint32_t filled = 0;
    for (uint32_t at = set->first_chunk; at != TABLE_NO_ROW && filled < set->count;) {
        const struct hang_chunk *chunk = table_row(&store->chunks, at);
        memcpy(ranks + filled, chunk->ranks, chunk->count * sizeof *ranks);
        filled += chunk->count;
        at = chunk->next;
    }
    return ranks;
}

bool hang_set_holds(const struct hang_store *store, const struct hang_set *set, int32_t rank) {
    for (uint32_t at = set->first_chunk; at != TABLE_NO_ROW;) {
        const struct hang_chunk *chunk = table_row(&store->chunks, at);
        if (rank <= chunk->ranks[chunk->count - 1]) {
            for (uint32_t i = 0; i < chunk->count; i++)
                if (chunk->ranks[i] == rank)
                    return true;
            return false;
        }
        at = chunk->next;
    }
    return false;
}

// -- bounds --------------------------------------------------------------------------------------

static void remove_group(struct hang_store *store, struct hang_group *group) {
    for (uint32_t row = group->first_member; row != TABLE_NO_ROW;) {
        struct hang_member *member = hang_member_at(store, row);
        row = member->next;
        hang_open_clear(store, member);
        hang_member_clear_set(store, member);
        keyed_rows_remove(&store->members, member);
    }
    keyed_rows_remove(&store->groups, group);
}

static bool is_full(const struct hang_store *store, uint32_t share) {
    uint32_t of = 16 - share;
    return keyed_rows_count(&store->groups) >= (uint64_t)store->max_groups * of / 16 ||
           keyed_rows_count(&store->members) >= (uint64_t)store->max_entries * of / 16 ||
           table_live(&store->opens) >= (uint64_t)store->max_entries * of / 16;
}

static int compare_text(string_id a, string_id b) {
    return slice_compare(intern_slice(a), intern_slice(b));
}

static int compare_groups(const void *a, const void *b) {
    const struct hang_group *first = *(struct hang_group *const *)a;
    const struct hang_group *second = *(struct hang_group *const *)b;
    if (first->heard_ns != second->heard_ns)
        return first->heard_ns < second->heard_ns ? -1 : 1;
    int order = compare_text(first->job, second->job);
    if (order == 0)
        order = compare_text(first->backend, second->backend);
    if (order == 0)
        order = compare_text(first->name, second->name);
    return order != 0 ? order : compare_text(first->desc, second->desc);
}

void hang_make_room(struct hang_store *store, struct arena *scratch) {
    store->evicted += row_bound_make_room(&store->ranks, store->max_ranks,
                                          offsetof(struct hang_rank, heard_ns), scratch);
    store->evicted += row_bound_make_room(&store->sources, store->max_ranks * 2,
                                          offsetof(struct hang_source, heard_ns), scratch);
    uint32_t count = keyed_rows_count(&store->groups), gathered = 0, at = 0;
    if (!is_full(store, 0) || count == 0)
        return;
    struct hang_group *group, **groups = arena_take(scratch, count * sizeof *groups);
    while ((group = keyed_rows_next(&store->groups, &at)) != NULL)
        groups[gathered++] = group;
    sort_stable(groups, gathered, sizeof *groups, scratch, compare_groups);
    // At least one stays: the bound on its rows is max_ranks.
    for (uint32_t i = 0; i + 1 < gathered && is_full(store, 1); i++) {
        store->evicted += groups[i]->member_count;
        remove_group(store, groups[i]);
    }
}

void hang_store_expire(struct hang_store *store, uint64_t before_ns) {
    uint32_t at = 0;
    for (struct hang_group *group; (group = keyed_rows_next(&store->groups, &at)) != NULL;)
        if (group->heard_ns < before_ns)
            remove_group(store, group);
    at = 0;
    for (struct hang_source *source; (source = keyed_rows_next(&store->sources, &at)) != NULL;)
        if (source->heard_ns < before_ns)
            keyed_rows_remove(&store->sources, source);
    at = 0;
    for (struct hang_rank *rank; (rank = keyed_rows_next(&store->ranks, &at)) != NULL;)
        if (rank->heard_ns < before_ns)
            keyed_rows_remove(&store->ranks, rank);
}

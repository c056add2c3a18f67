// SPDX-License-Identifier: Apache-2.0
// Makes the rows of groups, members and member sets, and removes them when a bound is reached.
#include "base/hash/hash.h"
#include "base/sort.h"
#include "base/table/table.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/row_bound.h"
#include "processors/nccl_hang/lines.h"
#include "processors/nccl_hang/ras.h"
#include "processors/nccl_hang/refusal.h"
#include "processors/nccl_hang/stack.h"

struct group_key {
    string_id job, backend, name, desc;
};

struct member_key {
    uint32_t group;
    int32_t rank;
};

struct set_key {
    uint32_t count;
    uint64_t hash;
} __attribute__((packed));

_Static_assert(offsetof(struct hang_set, hash) == sizeof(struct row_head) + sizeof(uint32_t),
               "the key lies in the row as in struct set_key");

enum { ROWS_PER_CHUNK = 64 };

const struct row_type HANG_GROUP_ROWS = {
    .size = sizeof(struct hang_group),
    .key_size = sizeof(struct group_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct hang_group, job), offsetof(struct hang_group, backend),
                offsetof(struct hang_group, name), offsetof(struct hang_group, desc)},
};
const struct row_type HANG_MEMBER_ROWS = {
    .size = sizeof(struct hang_member),
    .key_size = sizeof(struct member_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct hang_member, node), offsetof(struct hang_member, last_name)},
};
const struct row_type HANG_SOURCE_ROWS = {
    .size = sizeof(struct hang_source),
    .key_size = sizeof(struct hang_source_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct hang_source, key.job), offsetof(struct hang_source, key.backend),
                offsetof(struct hang_source, node)},
};
const struct row_type HANG_RANK_ROWS = {
    .size = sizeof(struct hang_rank),
    .key_size = sizeof(struct hang_rank_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct hang_rank, key.job), offsetof(struct hang_rank, node),
                offsetof(struct hang_rank, read_node)},
};
const struct row_type HANG_SET_ROWS = {
    .size = sizeof(struct hang_set),
    .key_size = sizeof(struct set_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
};
const struct row_type HANG_OPEN_ROWS = {
    .size = sizeof(struct hang_open),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct hang_open, name), offsetof(struct hang_open, sizes),
                offsetof(struct hang_open, dtypes)},
};
const struct row_type HANG_CHUNK_ROWS = {.size = sizeof(struct hang_chunk), .rows_per_chunk = 16};

// -- groups and members --------------------------------------------------------------------------

struct hang_group *hang_take_group(struct hang_store *store, string_id job, string_id backend,
                                   string_id name, string_id desc) {
    assert(store->max_groups > 0);
    const struct group_key key = {job, backend, name, desc};
    struct hang_group *group = keyed_rows_find(&store->groups, &key);
    if (group != NULL)
        return group;
    if (keyed_rows_count(&store->groups) >= store->max_groups) {
        store->evicted++;
        return NULL;
    }
    group = keyed_rows_add(&store->groups, &key);
    group->self = keyed_rows_number(&store->groups, group);
    group->first_member = TABLE_NO_ROW;
    return group;
}

struct hang_member *hang_take_member(struct hang_store *store, struct hang_group *group,
                                     int32_t rank) {
    assert(group->head.live != 0 && rank >= 0);
    const struct member_key key = {group->self, rank};
    struct hang_member *member = keyed_rows_find(&store->members, &key);
    if (member != NULL)
        return member;
    if (group->member_count >= store->max_ranks ||
        keyed_rows_count(&store->members) >= store->max_entries) {
        store->evicted++;
        return NULL;
    }
    member = keyed_rows_add(&store->members, &key);
    member->self = keyed_rows_number(&store->members, member);
    member->next = group->first_member;
    group->first_member = member->self;
    group->member_count++;
    member->first_open = TABLE_NO_ROW;
    member->set = TABLE_NO_ROW;
    member->last = member->collective.newest = member->collective.done = -1;
    member->p2p.newest = member->p2p.done = -1;
    return member;
}

// -- member sets ---------------------------------------------------------------------------------

static void release_set(struct hang_store *store, uint32_t row) {
    assert(row != TABLE_NO_ROW && hang_set_at(store, row)->references > 0);
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

static struct hang_set *add_set(struct hang_store *store, const struct set_key *key,
                                const int32_t *ranks, uint32_t count) {
    assert(count > 0);
    struct hang_set *set = keyed_rows_add(&store->sets, key);
    set->self = keyed_rows_number(&store->sets, set);
    uint32_t *link = &set->first_chunk;
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
    const struct set_key key = {count, hash_more(HASH_START, ranks, count * sizeof *ranks)};
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
    assert(filled == set->count);
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
    assert(group->head.live != 0);
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
    assert(share < 16);
    uint32_t of = 16 - share;
    return keyed_rows_count(&store->groups) >= (uint64_t)store->max_groups * of / 16 ||
           keyed_rows_count(&store->members) >= (uint64_t)store->max_entries * of / 16 ||
           table_live(&store->opens) >= (uint64_t)store->max_entries * of / 16;
}

static int compare_groups(const void *left, const void *right) {
    const struct hang_group *a = *(struct hang_group *const *)left;
    const struct hang_group *b = *(struct hang_group *const *)right;
    int order = COMPARE(a->heard_ns, b->heard_ns);
    order = order != 0 ? order : compare_strings(a->job, b->job);
    order = order != 0 ? order : compare_strings(a->backend, b->backend);
    order = order != 0 ? order : compare_strings(a->name, b->name);
    return order != 0 ? order : compare_strings(a->desc, b->desc);
}

void hang_make_room(struct hang_store *store, struct arena *scratch) {
    assert(store->max_ranks > 0 && store->max_entries > 0);
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
    rows_expire(&store->lines, offsetof(struct hang_line, heard_ns), before_ns);
    rows_expire(&store->timeouts, offsetof(struct hang_timeout, time_ns), before_ns);
    rows_expire(&store->ras, offsetof(struct hang_ras, heard_ns), before_ns);
    rows_expire(&store->processes, offsetof(struct hang_process, heard_ns), before_ns);
    rows_expire(&store->stacks, offsetof(struct hang_stack, time_ns), before_ns);
    rows_expire(&store->refusals, offsetof(struct hang_refusal, time_ns), before_ns);
    rows_expire(&store->sources, offsetof(struct hang_source, heard_ns), before_ns);
    rows_expire(&store->ranks, offsetof(struct hang_rank, heard_ns), before_ns);
}

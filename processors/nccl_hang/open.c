// SPDX-License-Identifier: Apache-2.0
// Keeps the operations that are under way. A short chain a member, walked from its beginning.
//
// What two records of one operation say is joined so that their order does not matter: the later
// state, the later time. When a member has more than its share, the newest one goes: what hangs is
// the oldest.
#include "base/table/table.h"
#include "processors/nccl_hang/store.h"

bool hang_is_done(const struct hang_progress *progress, int64_t sequence) {
    if (sequence > progress->done)
        return false;
    uint64_t back = (uint64_t)(progress->done - sequence);
    return back >= HANG_WINDOW || (progress->done_bits[back / 64] >> (back % 64) & 1) != 0;
}

static bool is_p2p(const struct hang_open *open) {
    return open->direction != HANG_COLLECTIVE;
}

static void unlink_open(struct hang_store *store, struct hang_member *member, uint32_t *link) {
    assert(member->open_count > 0 && *link != TABLE_NO_ROW);
    uint32_t row = *link;
    *link = hang_open_at(store, row)->next;
    table_free(&store->opens, row);
    member->open_count--;
}

void hang_open_remove(struct hang_store *store, struct hang_member *member, bool p2p,
                      int64_t sequence) {
    for (uint32_t *link = &member->first_open; *link != TABLE_NO_ROW;) {
        struct hang_open *open = hang_open_at(store, *link);
        if (open->sequence == sequence && is_p2p(open) == p2p)
            unlink_open(store, member, link);
        else
            link = &open->next;
    }
}

void hang_open_clear(struct hang_store *store, struct hang_member *member) {
    while (member->first_open != TABLE_NO_ROW)
        unlink_open(store, member, &member->first_open);
}

void hang_open_prune(struct hang_store *store, struct hang_member *member) {
    for (uint32_t *link = &member->first_open; *link != TABLE_NO_ROW;) {
        struct hang_open *open = hang_open_at(store, *link);
        if (hang_is_done(is_p2p(open) ? &member->p2p : &member->collective, open->sequence))
            unlink_open(store, member, link);
        else
            link = &open->next;
    }
}

static bool same_key(const struct hang_open *a, const struct hang_open *b) {
    return a->sequence == b->sequence && a->direction == b->direction && a->own == b->own &&
           a->peer == b->peer;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// Several operations under one number are told apart by what they say.
static bool differ(const struct hang_open *a, const struct hang_open *b) {
    return a->name != b->name || a->sizes_hash != b->sizes_hash || a->dtypes_hash != b->dtypes_hash;
}

static bool is_less(string_id a, string_id b) {
    return slice_compare(intern_slice(a), intern_slice(b)) < 0;
}

static void join(struct hang_open *into, const struct hang_open *more) {
    assert(into->sequence == more->sequence);
    if (differ(into, more)) {
        into->several = true;
        if (is_less(more->name, into->name))
            into->name = more->name;
    }
    into->several |= more->several;
    into->state = more->state > into->state ? more->state : into->state;
    into->retired |= more->retired;
    into->tells_states |= more->tells_states;
    into->from_file |= more->from_file;
    into->silent &= more->silent;
    into->created_ns = later(into->created_ns, more->created_ns);
    into->started_ns = later(into->started_ns, more->started_ns);
    into->seen_ns = later(into->seen_ns, more->seen_ns);
    into->timeout_ms = into->timeout_ms > more->timeout_ms ? into->timeout_ms : more->timeout_ms;
}

// Of those that tell their end the newest is left out, of silent ones the oldest.
static void drop_one(struct hang_store *store, struct hang_member *member, bool silent) {
    uint32_t *chosen = NULL;
    for (uint32_t *link = &member->first_open; *link != TABLE_NO_ROW;
         link = &hang_open_at(store, *link)->next) {
        const struct hang_open *open = hang_open_at(store, *link);
        if (open->silent != silent)
            continue;
        const struct hang_open *best = chosen == NULL ? NULL : hang_open_at(store, *chosen);
        bool newer = best == NULL || open->created_ns > best->created_ns ||
                     (open->created_ns == best->created_ns && open->sequence > best->sequence);
        if (best == NULL || newer != silent)
            chosen = link;
    }
    if (chosen != NULL)
        unlink_open(store, member, chosen);
}

void hang_open_take(struct hang_store *store, struct hang_member *member,
                    const struct hang_open *open) {
    assert(open->direction <= HANG_BATCH && store->max_pending > 0);
    uint32_t same_kind = 0;
    for (uint32_t row = member->first_open; row != TABLE_NO_ROW;) {
        struct hang_open *other = hang_open_at(store, row);
        if (same_key(other, open)) {
            join(other, open);
            return;
        }
        same_kind += other->silent == open->silent;
        row = other->next;
    }
    bool full = table_live(&store->opens) >= store->max_entries;
    if (full && same_kind == 0) {
        store->evicted++;
        return;
    }
    uint32_t row = table_add(&store->opens);
    struct hang_open *added = hang_open_at(store, row);
    *added = *open;
    added->next = member->first_open;
    member->first_open = row;
    member->open_count++;
    if (full || same_kind >= (open->silent ? HANG_SILENT_KEPT : store->max_pending)) {
        store->evicted += !open->silent;
        drop_one(store, member, open->silent);
    }
}

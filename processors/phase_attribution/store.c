// SPDX-License-Identifier: Apache-2.0
// Keeps every phase boundary until a moment is asked for: few moments are (one a suspect), so the
// replay is left to them. A live pipeline forgets scopes that were left before its retention; a
// track is looked at for that only when it has doubled, which is amortised O(log) a boundary.
#include "processors/phase_attribution/store.h"

#include "base/memory.h"
#include "base/sort.h"
#include "processors/phase_attribution/replay.h"

#include <assert.h>
#include <stdlib.h>

enum {
    TEXT_PIECE_BYTES = 60,
    TRACKS_MAX = 1 << 20,
    EXPIRE_AT_LEAST = 1024, // boundaries of a track
};

// A process: its session and rank. Sessions without an id are told apart by what their synthetic id
// is made of (time, host, pid), so that only records of the same instant share one.
struct phase_track {
    uint32_t first, last; // rows of the boundaries table
    string_id session;
    string_id host; // these three only without a session
    uint64_t time_ns;
    int64_t pid;
    int32_t rank;
    uint32_t count;
    uint32_t count_kept; // after the last expiry
    bool in_use;         // else this row is free
};

struct stored_boundary {
    uint64_t time_ns;
    int64_t sequence;
    int64_t thread_id;
    string_id label;
    string_id thread_name;
    uint32_t depth;
    uint32_t text; // first piece of the scope id
    uint32_t text_size;
    uint32_t next;
    bool is_enter;
    bool thread_id_is_bool;
};

struct text_piece {
    uint32_t next;
    char bytes[TEXT_PIECE_BYTES];
};

_Static_assert(sizeof(struct stored_boundary) <= 64, "bytes a boundary are promised in the docs");

void phase_store_init(struct phase_store *store) {
    *store = (struct phase_store){0};
    table_init(&store->tracks, "phase_attribution.tracks", sizeof(struct phase_track), 64);
    table_init(&store->boundaries, "phase_attribution.boundaries", sizeof(struct stored_boundary),
               512);
    table_init(&store->texts, "phase_attribution.texts", sizeof(struct text_piece), 512);
}

void phase_store_release(struct phase_store *store) {
    table_release(&store->tracks);
    table_release(&store->boundaries);
    table_release(&store->texts);
    memory_give(store->index);
    store->index = NULL;
}

static struct phase_track *track_at(const struct phase_store *store, uint32_t row) {
    return table_row(&store->tracks, row);
}

static struct stored_boundary *boundary_at(const struct phase_store *store, uint32_t row) {
    return table_row(&store->boundaries, row);
}

static bool same_track(const struct phase_track *a, const struct phase_track *b) {
    return a->session == b->session && a->rank == b->rank && a->host == b->host &&
           a->time_ns == b->time_ns && a->pid == b->pid;
}

static struct phase_track track_key(string_id session, int32_t rank, string_id host, int64_t pid,
                                    uint64_t time_ns) {
    struct phase_track key = {.first = TABLE_NO_ROW,
                              .last = TABLE_NO_ROW,
                              .session = session,
                              .rank = rank,
                              .in_use = true};
    if (session == STRING_NONE) {
        key.host = host;
        key.pid = pid;
        key.time_ns = time_ns;
    }
    return key;
}

static uint32_t track_slot(const struct phase_store *store, const struct phase_track *key) {
    uint64_t mixed = (uint64_t)key->session << 32 | (uint32_t)key->rank;
    mixed = (mixed ^ key->time_ns) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (uint64_t)key->pid ^ key->host) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(mixed >> 32) & (store->index_size - 1);
}

// The slot that holds the track, or the empty one where it would stand.
static uint32_t find_slot(const struct phase_store *store, const struct phase_track *key) {
    uint32_t slot = track_slot(store, key);
    while (store->index[slot] != TABLE_NO_ROW &&
           !same_track(track_at(store, store->index[slot]), key))
        slot = (slot + 1) & (store->index_size - 1);
    return slot;
}

static void make_index(struct phase_store *store, uint32_t size) {
    if (size != store->index_size) {
        memory_give(store->index);
        store->index = memory_take(size * sizeof(uint32_t));
        store->index_size = size;
    }
    memset(store->index, 0xff, size * sizeof(uint32_t));
    for (uint32_t row = 0; row < store->tracks.used; row++)
        if (track_at(store, row)->in_use)
            store->index[find_slot(store, track_at(store, row))] = row;
}

static const struct phase_track *find_track(const struct phase_store *store,
                                            const struct phase_track *key) {
    if (store->index_size == 0)
        return NULL;
    uint32_t row = store->index[find_slot(store, key)];
    return row == TABLE_NO_ROW ? NULL : track_at(store, row);
}

static struct phase_track *find_or_add_track(struct phase_store *store,
                                             const struct phase_track *key) {
    if ((uint64_t)table_live(&store->tracks) * 2 >= store->index_size)
        make_index(store, store->index_size == 0 ? 64 : store->index_size * 2);
    uint32_t slot = find_slot(store, key);
    if (store->index[slot] == TABLE_NO_ROW) {
        if (table_live(&store->tracks) == TRACKS_MAX) {
            store->kept.tracks_left_out = true;
            return NULL;
        }
        store->index[slot] = table_add(&store->tracks);
        *track_at(store, store->index[slot]) = *key;
    }
    return track_at(store, store->index[slot]);
}

static uint32_t store_text(struct phase_store *store, struct slice text) {
    uint32_t first = TABLE_NO_ROW;
    // From the end, so that each piece knows the next one.
    size_t pieces = (text.size + TEXT_PIECE_BYTES - 1) / TEXT_PIECE_BYTES;
    while (pieces-- > 0) {
        size_t begin = pieces * TEXT_PIECE_BYTES;
        size_t size = text.size - begin < TEXT_PIECE_BYTES ? text.size - begin : TEXT_PIECE_BYTES;
        uint32_t row = table_add(&store->texts);
        struct text_piece *piece = table_row(&store->texts, row);
        piece->next = first;
        memcpy(piece->bytes, text.data + begin, size);
        first = row;
    }
    return first;
}

static struct slice load_text(const struct phase_store *store, uint32_t row, size_t size,
                              struct arena *arena) {
    char *text = arena_take(arena, size + 1);
    for (size_t at = 0; at < size; at += TEXT_PIECE_BYTES) {
        const struct text_piece *piece = table_row(&store->texts, row);
        memcpy(text + at, piece->bytes,
               size - at < TEXT_PIECE_BYTES ? size - at : TEXT_PIECE_BYTES);
        row = piece->next;
    }
    return (struct slice){text, size};
}

static void free_boundary(struct phase_store *store, uint32_t row) {
    uint32_t text = boundary_at(store, row)->text;
    while (text != TABLE_NO_ROW) {
        uint32_t next = ((const struct text_piece *)table_row(&store->texts, text))->next;
        table_free(&store->texts, text);
        text = next;
    }
    table_free(&store->boundaries, row);
}

static void append_boundary(struct phase_store *store, struct phase_track *track, uint32_t row) {
    boundary_at(store, row)->next = TABLE_NO_ROW;
    if (track->last == TABLE_NO_ROW)
        track->first = row;
    else
        boundary_at(store, track->last)->next = row;
    track->last = row;
    track->count++;
}

void phase_store_add(struct phase_store *store, const struct telemetry *telemetry) {
    const struct phase_scope *scope = telemetry->scope;
    assert(scope != NULL);
    struct phase_track key = track_key(telemetry->session, telemetry->rank, telemetry->host,
                                       telemetry->pid, telemetry->timestamp_ns);
    struct phase_track *track = find_or_add_track(store, &key);
    if (track == NULL)
        return;
    uint32_t row = table_add(&store->boundaries);
    *boundary_at(store, row) =
        (struct stored_boundary){.time_ns = telemetry->timestamp_ns,
                                 .sequence = scope->sequence,
                                 .thread_id = scope->thread_id,
                                 .label = scope->label,
                                 .thread_name = scope->thread_name,
                                 .depth = scope->depth,
                                 .text = store_text(store, scope->scope_id),
                                 .text_size = (uint32_t)scope->scope_id.size,
                                 .is_enter = telemetry->type == TELEMETRY_PHASE_ENTER,
                                 .thread_id_is_bool = scope->thread_id_is_bool};
    append_boundary(store, track, row);
}

static struct phase_boundary *load_track(const struct phase_store *store,
                                         const struct phase_track *track, struct arena *arena) {
    struct phase_boundary *boundaries = arena_take(arena, track->count * sizeof *boundaries);
    size_t count = 0;
    for (uint32_t row = track->first; row != TABLE_NO_ROW;) {
        const struct stored_boundary *stored = boundary_at(store, row);
        boundaries[count++] = (struct phase_boundary){
            .time_ns = stored->time_ns,
            .sequence = stored->sequence,
            .thread_id = stored->thread_id,
            .label = stored->label,
            .thread_name = stored->thread_name,
            .depth = stored->depth,
            .is_enter = stored->is_enter,
            .thread_id_is_bool = stored->thread_id_is_bool,
            .scope_id = load_text(store, stored->text, stored->text_size, arena),
            .row = row};
        row = stored->next;
    }
    assert(count == track->count);
    return boundaries;
}

struct phase_attribution phase_store_resolve(const struct phase_store *store,
                                             const struct origin *origin, int32_t rank,
                                             uint64_t time_ns, struct arena *arena) {
    struct phase_track key = track_key(origin->session, rank, origin->host, origin->pid, time_ns);
    const struct phase_track *track = find_track(store, &key);
    if (track == NULL || track->count == 0)
        return (struct phase_attribution){.resolution = PHASE_NONE};
    struct phase_span *spans;
    size_t count = phase_replay(load_track(store, track, arena), track->count, arena, &spans);
    return phase_attribute(spans, count, time_ns, arena);
}

// Marks in `keep` the boundaries that a later question may need: of scopes still open or left late
// enough, and those late enough themselves.
static void mark_kept(const struct phase_boundary *boundaries, size_t count,
                      const struct phase_span *spans, size_t span_count, uint64_t before_ns,
                      uint32_t *keep_rows, size_t *keep_count) {
    *keep_count = 0;
    for (size_t i = 0; i < span_count; i++)
        if (spans[i].end_ns >= before_ns && spans[i].start_ns < before_ns)
            keep_rows[(*keep_count)++] = spans[i].enter_row;
    for (size_t i = 0; i < count; i++)
        if (boundaries[i].time_ns >= before_ns)
            keep_rows[(*keep_count)++] = boundaries[i].row;
}

static int compare_rows(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void expire_track(struct phase_store *store, struct phase_track *track, uint64_t before_ns,
                         struct arena *scratch) {
    struct phase_boundary *boundaries = load_track(store, track, scratch);
    struct phase_span *spans;
    size_t span_count = phase_replay(boundaries, track->count, scratch, &spans);
    uint32_t *keep = arena_take(scratch, track->count * 2 * sizeof *keep);
    size_t keep_count;
    mark_kept(boundaries, track->count, spans, span_count, before_ns, keep, &keep_count);
    sort_stable(keep, keep_count, sizeof *keep, scratch, compare_rows);
    uint32_t row = track->first;
    track->first = track->last = TABLE_NO_ROW;
    track->count = 0;
    while (row != TABLE_NO_ROW) {
        uint32_t next = boundary_at(store, row)->next;
        if (bsearch(&row, keep, keep_count, sizeof row, compare_rows) == NULL) {
            free_boundary(store, row);
        } else {
            append_boundary(store, track, row);
        }
        row = next;
    }
    track->count_kept = track->count;
}

void phase_store_expire(struct phase_store *store, uint64_t before_ns, struct arena *scratch) {
    for (uint32_t i = 0; i < store->tracks.used; i++) {
        struct phase_track *track = track_at(store, i);
        if (track->in_use && track->count >= EXPIRE_AT_LEAST &&
            track->count / 2 >= track->count_kept)
            expire_track(store, track, before_ns, scratch);
    }
}

void phase_store_state(struct phase_store *store, struct state_list *list) {
    struct state_entry *tracks = state_list_table(list, &store->tracks);
    state_entry_string(tracks, offsetof(struct phase_track, session));
    state_entry_string(tracks, offsetof(struct phase_track, host));
    struct state_entry *boundaries = state_list_table(list, &store->boundaries);
    state_entry_string(boundaries, offsetof(struct stored_boundary, label));
    state_entry_string(boundaries, offsetof(struct stored_boundary, thread_name));
    state_list_table(list, &store->texts);
    state_list_struct(list, "phase_attribution.phases", &store->kept, sizeof store->kept);
}

void phase_store_restored(struct phase_store *store) {
    uint32_t size = 64;
    while (size <= (uint64_t)table_live(&store->tracks) * 2)
        size *= 2;
    make_index(store, size);
}

static int compare_processes(const void *left, const void *right) {
    const struct forgotten_process *a = left;
    const struct forgotten_process *b = right;
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

// True when nothing is left of the track, whose row is then free.
static bool forget_track(struct phase_store *store, uint32_t row, uint64_t until_ns) {
    struct phase_track *track = track_at(store, row);
    uint32_t at = track->first;
    track->first = track->last = TABLE_NO_ROW;
    track->count = 0;
    while (at != TABLE_NO_ROW) {
        uint32_t next = boundary_at(store, at)->next;
        if (boundary_at(store, at)->time_ns <= until_ns)
            free_boundary(store, at);
        else
            append_boundary(store, track, at);
        at = next;
    }
    track->count_kept = track->count;
    if (track->count > 0)
        return false;
    table_free(&store->tracks, row);
    track->in_use = false;
    return true;
}

void phase_store_forget(struct phase_store *store, const struct forgotten *forgotten,
                        uint64_t until_ns, struct arena *scratch) {
    uint32_t count = forgotten->process_count;
    if (count == 0)
        return;
    struct forgotten_process *processes = arena_take(scratch, count * sizeof *processes);
    memcpy(processes, forgotten->processes, count * sizeof *processes);
    sort_stable(processes, count, sizeof *processes, scratch, compare_processes);
    bool found = false;
    for (uint32_t row = 0; row < store->tracks.used; row++) {
        const struct phase_track *track = track_at(store, row);
        struct forgotten_process key = {track->session, track->host, track->pid};
        if (!track->in_use ||
            bsearch(&key, processes, count, sizeof *processes, compare_processes) == NULL)
            continue;
        found |= forget_track(store, row, until_ns);
    }
    if (found)
        make_index(store, store->index_size);
}

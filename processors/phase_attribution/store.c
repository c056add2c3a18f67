// SPDX-License-Identifier: Apache-2.0
// Keeps every phase boundary until a moment is asked for: few moments are (one a suspect), so the
// replay is left to them. A live pipeline forgets scopes that were left before its retention; a
// track is looked at for that only when it has doubled, which is amortised O(log) a boundary.
#include "processors/phase_attribution/store.h"

#include "base/sort.h"
#include "base/table/table_text.h"
#include "pipeline/model/telemetry_event.h"
#include "processors/phase_attribution/replay.h"

#include <assert.h>
#include <stdlib.h>

enum {
    TRACKS_MAX = 1 << 20,
    EXPIRE_AT_LEAST = 1024, // boundaries of a track
};

// A process: its session and rank. Sessions without an id are told apart by what their synthetic id
// is made of (time, host, pid), so that only records of the same instant share one.
struct phase_track {
    struct row_list rows; // of the boundaries table
    string_id session;
    string_id host; // these three only without a session
    uint64_t time_ns;
    int64_t pid;
    int32_t rank;
    uint32_t count;
    uint32_t count_kept; // after the last expiry
    bool in_use;         // else this row is free
};

_Static_assert(sizeof(struct phase_boundary) <= 64, "bytes a boundary are promised in the docs");

static const struct row_type TRACKS =
    ROW_TYPE(struct phase_track, 64, offsetof(struct phase_track, session),
             offsetof(struct phase_track, host));
static const struct row_type BOUNDARIES =
    ROW_TYPE(struct phase_boundary, 512, offsetof(struct phase_boundary, label),
             offsetof(struct phase_boundary, thread_name));
static const struct state_row STATE[] = {
    STATE_ROWS(struct phase_store, tracks, "phase_attribution.tracks", TRACKS),
    STATE_ROWS(struct phase_store, boundaries, "phase_attribution.boundaries", BOUNDARIES),
    STATE_ROWS(struct phase_store, texts, "phase_attribution.texts", table_text_rows),
    STATE_STRUCT(struct phase_store, kept, "phase_attribution.phases"),
};

static void release_index(void *part) {
    row_index_release(&((struct phase_store *)part)->index);
}

TABLE_ACCESS(track_at, struct phase_store, tracks, struct phase_track)
TABLE_ACCESS(boundary_at, struct phase_store, boundaries, struct phase_boundary)

static bool same_track(const struct phase_track *a, const struct phase_track *b) {
    return a->session == b->session && a->rank == b->rank && a->host == b->host &&
           a->time_ns == b->time_ns && a->pid == b->pid;
}

static struct phase_track track_key(string_id session, int32_t rank, string_id host, int64_t pid,
                                    uint64_t time_ns) {
    struct phase_track key = {
        .rows = ROW_LIST_EMPTY, .session = session, .rank = rank, .in_use = true};
    if (session == STRING_NONE) {
        key.host = host;
        key.pid = pid;
        key.time_ns = time_ns;
    }
    return key;
}

static uint32_t track_hash(const struct phase_track *key) {
    return row_hash((uint64_t)key->session << 32 | (uint32_t)key->rank,
                    row_hash((uint64_t)key->pid << 32 ^ key->host, key->time_ns));
}

static struct phase_track *find_track(const struct phase_store *store,
                                      const struct phase_track *key) {
    uint32_t hash = track_hash(key);
    for (uint32_t at = 0, row; (row = row_index_next(&store->index, hash, &at)) != TABLE_NO_ROW;)
        if (same_track(track_at(store, row), key))
            return track_at(store, row);
    return NULL;
}

static struct phase_track *find_or_add_track(struct phase_store *store,
                                             const struct phase_track *key) {
    struct phase_track *track = find_track(store, key);
    if (track != NULL)
        return track;
    if (table_live(&store->tracks) == TRACKS_MAX) {
        store->kept.tracks_left_out = true;
        return NULL;
    }
    uint32_t row = table_add(&store->tracks);
    row_index_put(&store->index, track_hash(key), row);
    track = track_at(store, row);
    *track = *key;
    return track;
}

static void free_boundary(struct phase_store *store, uint32_t row) {
    table_text_free(&store->texts, boundary_at(store, row)->text);
    table_free(&store->boundaries, row);
}

static void append_boundary(struct phase_store *store, struct phase_track *track, uint32_t row) {
    table_append(&store->boundaries, offsetof(struct phase_boundary, next), &track->rows, row);
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
        (struct phase_boundary){.time_ns = telemetry->timestamp_ns,
                                .sequence = scope->sequence,
                                .thread_id = scope->thread_id,
                                .label = scope->label,
                                .thread_name = scope->thread_name,
                                .depth = scope->depth,
                                .text = table_text_add(&store->texts, scope->scope_id),
                                .text_size = (uint32_t)scope->scope_id.size,
                                .is_enter = telemetry->type == TELEMETRY_PHASE_ENTER,
                                .thread_id_is_bool = scope->thread_id_is_bool};
    append_boundary(store, track, row);
}

static struct loaded_boundary *load_track(const struct phase_store *store,
                                          const struct phase_track *track, struct arena *arena) {
    struct loaded_boundary *boundaries = arena_take(arena, track->count * sizeof *boundaries);
    size_t count = 0;
    const struct phase_boundary *row;
    for (uint32_t at = track->rows.first; at != TABLE_NO_ROW; at = row->next) {
        row = boundary_at(store, at);
        char *text = arena_take(arena, row->text_size + 1);
        table_text_copy(&store->texts, row->text, text, row->text_size);
        boundaries[count++] =
            (struct loaded_boundary){.row = row, .scope_id = {text, row->text_size}, .number = at};
    }
    assert(count == track->count && track->in_use);
    return boundaries;
}

struct phase_attribution phase_store_resolve(const struct phase_store *store,
                                             const struct origin *origin, int32_t rank,
                                             uint64_t time_ns, bool distinct, struct arena *arena) {
    struct phase_track key = track_key(origin->session, rank, origin->host, origin->pid, time_ns);
    const struct phase_track *track = find_track(store, &key);
    if (track == NULL || track->count == 0)
        return (struct phase_attribution){.resolution = PHASE_NONE};
    struct phase_span *spans;
    struct loaded_boundary *boundaries = load_track(store, track, arena);
    size_t count = track->count;
    if (distinct)
        count = phase_distinct(boundaries, count, arena);
    count = phase_replay(boundaries, count, arena, &spans);
    return phase_attribute(spans, count, time_ns, arena);
}

// Kept is what a later question may need: boundaries late enough, and enters of scopes that are
// still open or were left late enough, each once. They stand in order of time afterwards, which
// answers alike: equal ones keep their order.
static void expire_track(struct phase_store *store, struct phase_track *track, uint64_t before_ns,
                         struct arena *scratch) {
    uint32_t count = track->count;
    assert(count > 0);
    struct loaded_boundary *boundaries = load_track(store, track, scratch);
    struct phase_span *spans;
    size_t distinct = phase_distinct(boundaries, count, scratch);
    size_t span_count = phase_replay(boundaries, distinct, scratch, &spans);
    for (size_t i = 0; i < span_count; i++)
        spans[i].enter->is_needed = spans[i].end_ns >= before_ns;
    track->rows = ROW_LIST_EMPTY;
    track->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i < distinct && (boundaries[i].is_needed || boundaries[i].row->time_ns >= before_ns))
            append_boundary(store, track, boundaries[i].number);
        else
            free_boundary(store, boundaries[i].number);
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

static void restore_index(void *part) {
    struct phase_store *store = part;
    row_index_clear(&store->index);
    for (uint32_t row = 0; row < store->tracks.used; row++)
        if (track_at(store, row)->in_use)
            row_index_put(&store->index, track_hash(track_at(store, row)), row);
}

const struct state_part phase_store_part = {.rows = STATE,
                                            .row_count = STATE_ROW_COUNT(STATE),
                                            .release = release_index,
                                            .restored = restore_index};

static int compare_processes(const void *left, const void *right) {
    const struct forgotten_process *a = left;
    const struct forgotten_process *b = right;
    return COMPARE_KEYS(COMPARE(a->session, b->session), COMPARE(a->host, b->host),
                        COMPARE(a->pid, b->pid));
}

// When nothing is left of the track, its row is free.
static void forget_track(struct phase_store *store, uint32_t row, uint64_t until_ns) {
    struct phase_track *track = track_at(store, row);
    uint32_t at = track->rows.first;
    track->rows = ROW_LIST_EMPTY;
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
        return;
    row_index_remove(&store->index, track_hash(track), row);
    table_free(&store->tracks, row);
    track->in_use = false;
}

void phase_store_forget(struct phase_store *store, const struct forgotten *forgotten,
                        uint64_t until_ns, struct arena *scratch) {
    uint32_t count = forgotten->process_count;
    if (count == 0)
        return;
    struct forgotten_process *processes = arena_take(scratch, count * sizeof *processes);
    memcpy(processes, forgotten->processes, count * sizeof *processes);
    sort_stable(processes, count, sizeof *processes, scratch, compare_processes);
    for (uint32_t row = 0; row < store->tracks.used; row++) {
        const struct phase_track *track = track_at(store, row);
        struct forgotten_process key = {track->session, track->host, track->pid};
        if (track->in_use &&
            bsearch(&key, processes, count, sizeof *processes, compare_processes) != NULL)
            forget_track(store, row, until_ns);
    }
}

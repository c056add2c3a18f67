// SPDX-License-Identifier: Apache-2.0
// Puts samples where they belong among their rank's samples: at the end, nearly always, after one
// comparison. The place of a late one is found by time (binary search over chunks); a full chunk is
// split at that row, so that rows before it keep their places and cursors on them hold.
#include "processors/rank_group/rows.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/table/row_index.h"

#include <assert.h>

enum { CHUNKS_PER_BLOCK = 64, ORIGINS_PER_BLOCK = 256 };

_Static_assert(sizeof(struct sample) == 48, "bytes a sample are promised in the docs");
_Static_assert(sizeof(struct sample_chunk) == 1024, "so are bytes a chunk");
_Static_assert(sizeof(struct origin) == 40, "looked at for each sample: as small as can be");

static const struct row_type CHUNKS = ROW_TYPE(struct sample_chunk, CHUNKS_PER_BLOCK);
static const struct row_type ORIGINS =
    ROW_TYPE(struct origin, ORIGINS_PER_BLOCK, offsetof(struct origin, session),
             offsetof(struct origin, host));
static const struct row_type CARRIED = ROW_TYPE(struct carried, ORIGINS_PER_BLOCK);

static const struct state_row STATE[] = {
    STATE_ROWS(struct series_store, chunks, "rank_group.chunks", CHUNKS),
    STATE_ROWS(struct series_store, origins, "rank_group.origins", ORIGINS),
    STATE_ROWS(struct series_store, carried, "rank_group.carried", CARRIED),
};

void rows_store_clear(struct series_store *store) {
    table_release(&store->chunks);
    table_release(&store->origins);
    table_release(&store->carried);
    row_index_release(&store->by_process);
}

static void store_release(void *part) {
    row_index_release(&((struct series_store *)part)->by_process);
}

void rows_release(struct rank_series *series) {
    memory_give(series->chunks);
    series->chunks = NULL;
    series->chunk_count = series->chunk_capacity = 0;
}

void rows_free(struct series_store *store, struct rank_series *series) {
    for (uint32_t i = 0; i < series->chunk_count; i++)
        table_free(&store->chunks, series->chunks[i]);
    rows_release(series);
    series->tail_count = 0;
    series->sample_count = 0;
}

static bool same_carried(const struct carried *a, const struct carried *b) {
    if (a == NULL || b == NULL)
        return a == b;
    return a->first_sample_ns == b->first_sample_ns && a->generation == b->generation;
}

// Of the same job, that is.
static bool origin_matches(const struct series_store *store, const struct origin *origin,
                           const struct origin_key *key) {
    const struct telemetry *telemetry = key->telemetry;
    return origin->session == telemetry->session && origin->host == telemetry->host &&
           origin->pid == telemetry->pid && origin->world_size == telemetry->world_size &&
           origin->sampling_interval_ms == telemetry->sampling_interval_ms &&
           origin->job_null == (telemetry->job == STRING_NONE) &&
           same_carried(origin_carried(store, origin), key->carried);
}

static uint32_t process_hash(string_id session, string_id host, int64_t pid) {
    return row_hash((uint64_t)session << 32 | host, (uint64_t)pid);
}

TABLE_ACCESS(origin_at, struct series_store, origins, struct origin)

static void store_restored(void *part) {
    struct series_store *store = part;
    row_index_clear(&store->by_process);
    for (uint32_t row = 0; row < store->origins.used; row++) {
        const struct origin *origin = origin_at(store, row);
        if (origin->job != TABLE_NO_ROW)
            row_index_put(&store->by_process,
                          process_hash(origin->session, origin->host, origin->pid), row);
    }
}

const struct state_part series_store_part = {.rows = STATE,
                                             .row_count = STATE_ROW_COUNT(STATE),
                                             .release = store_release,
                                             .restored = store_restored};

static uint32_t add_origin(struct series_store *store, const struct origin_key *key) {
    const struct telemetry *telemetry = key->telemetry;
    uint32_t row = table_add(&store->origins);
    struct origin *origin = origin_at(store, row);
    *origin = (struct origin){.session = telemetry->session,
                              .host = telemetry->host,
                              .pid = telemetry->pid,
                              .sampling_interval_ms = telemetry->sampling_interval_ms,
                              .world_size = telemetry->world_size,
                              .job_null = telemetry->job == STRING_NONE,
                              .job = key->job};
    if (key->carried != NULL) {
        uint32_t carried = table_add(&store->carried);
        *(struct carried *)table_row(&store->carried, carried) = *key->carried;
        origin->carried = (carried + 1) & INT32_MAX;
    }
    return row;
}

uint32_t rows_origin(struct series_store *store, uint32_t hint, const struct origin_key *key) {
    if (hint < store->origins.used && origin_matches(store, origin_at(store, hint), key))
        return hint;
    const struct telemetry *telemetry = key->telemetry;
    uint32_t hash = process_hash(telemetry->session, telemetry->host, telemetry->pid);
    for (uint32_t at = 0, row;
         (row = row_index_next(&store->by_process, hash, &at)) != TABLE_NO_ROW;)
        if (origin_at(store, row)->job == key->job &&
            origin_matches(store, origin_at(store, row), key))
            return row;
    uint32_t row = add_origin(store, key);
    row_index_put(&store->by_process, hash, row);
    return row;
}

void rows_free_origin(struct series_store *store, uint32_t row) {
    struct origin *origin = origin_at(store, row);
    assert(origin->job != TABLE_NO_ROW);
    row_index_remove(&store->by_process, process_hash(origin->session, origin->host, origin->pid),
                     row);
    if (origin->carried != 0)
        table_free(&store->carried, origin->carried - 1);
    table_free(&store->origins, row);
    origin->job = TABLE_NO_ROW;
}

static int compare_values(const struct sample *a, const struct sample *b) {
    const uint32_t said = ~(uint32_t)SAMPLE_REPEATED;
    return COMPARE_KEYS(
        COMPARE(a->used_bytes, b->used_bytes), COMPARE(a->reserved_bytes, b->reserved_bytes),
        COMPARE(a->allocated_bytes, b->allocated_bytes), COMPARE(a->change_bytes, b->change_bytes),
        COMPARE(a->flags & said, b->flags & said));
}

// Only for rows of the same instant.
static int compare_same_time(const struct series_store *store, const struct sample *a,
                             const struct sample *b, bool by_value) {
    if (a->origin != b->origin) {
        const struct origin *origin_a = series_origin(store, a);
        const struct origin *origin_b = series_origin(store, b);
        int order = COMPARE(origin_a->pid, origin_b->pid);
        if (order == 0 && origin_a->host != origin_b->host)
            order = slice_compare(intern_slice(origin_a->host), intern_slice(origin_b->host));
        if (order != 0)
            return order;
    }
    return by_value ? compare_values(a, b) : 0;
}

static bool comes_after(const struct series_store *store, const struct sample *a,
                        const struct sample *b, bool by_value) {
    if (a->time_ns != b->time_ns)
        return a->time_ns > b->time_ns;
    return compare_same_time(store, a, b, by_value) > 0;
}

static struct sample_chunk *chunk_at(struct series_store *store, const struct rank_series *series,
                                     uint32_t ordinal) {
    return table_row(&store->chunks, series->chunks[ordinal]);
}

// Room for `count` chunks in the directory.
static void directory_reserve(struct rank_series *series, uint32_t count) {
    if (count <= series->chunk_capacity)
        return;
    if (series->chunk_capacity == 0)
        series->chunk_capacity = 4;
    while (series->chunk_capacity < count)
        series->chunk_capacity *= 2;
    series->chunks = memory_resize(series->chunks, series->chunk_capacity * sizeof(uint32_t));
}

// Makes a place for a new chunk at `ordinal` of the directory and returns the chunk, empty.
static struct sample_chunk *add_chunk(struct series_store *store, struct rank_series *series,
                                      uint32_t ordinal) {
    directory_reserve(series, series->chunk_count + 1);
    memmove(series->chunks + ordinal + 1, series->chunks + ordinal,
            (series->chunk_count - ordinal) * sizeof(uint32_t));
    assert(ordinal <= series->chunk_count);
    uint32_t row = table_add(&store->chunks);
    series->chunks[ordinal] = row;
    series->chunk_count++;
    struct sample_chunk *chunk = table_row(&store->chunks, row);
    chunk->next = ordinal + 1 < series->chunk_count ? series->chunks[ordinal + 1] : TABLE_NO_ROW;
    if (ordinal > 0)
        chunk_at(store, series, ordinal - 1)->next = row;
    else
        series->head = row;
    return chunk;
}

static void note_tail(const struct series_store *store, struct rank_series *series) {
    series->tail_count = 0;
    if (series->chunk_count == 0)
        return;
    const struct sample_chunk *chunk = series_chunk(store, series, series->chunk_count - 1);
    series->tail = series->chunks[series->chunk_count - 1];
    series->tail_count = chunk->count;
    series->tail_ns = chunk->rows[chunk->count - 1].time_ns;
}

// Member by member, which `volatile` holds the compiler to: two that were just written are not read
// as one word before both have left for the cache, behind all that waits for memory.
static void put_new(struct sample *to, const struct sample *row) {
    const volatile struct sample *from = row;
    to->time_ns = from->time_ns;
    to->used_bytes = from->used_bytes;
    to->reserved_bytes = from->reserved_bytes;
    to->allocated_bytes = from->allocated_bytes;
    to->change_bytes = from->change_bytes;
    to->origin = from->origin;
    to->flags = from->flags;
}

// Behind all rows: touches the series' front, the chunk's count and the row, nothing else.
static void append(struct series_store *store, struct rank_series *series,
                   const struct sample *row) {
    struct sample_chunk *chunk;
    if (series->tail_count == 0 || series->tail_count == SAMPLES_PER_CHUNK) {
        chunk = add_chunk(store, series, series->chunk_count);
        series->tail = series->chunks[series->chunk_count - 1];
        series->tail_count = 0;
    } else {
        chunk = table_row(&store->chunks, series->tail);
    }
    assert(chunk->count == series->tail_count && series->tail_count < SAMPLES_PER_CHUNK);
    put_new(&chunk->rows[series->tail_count], row);
    chunk->count = ++series->tail_count;
    series->tail_ns = row->time_ns;
}

void rows_prefetch(const struct series_store *store, const struct rank_series *series) {
    if (series->tail_count == 0)
        return;
    struct sample_chunk *chunk = table_row(&store->chunks, series->tail);
    __builtin_prefetch(chunk, 1);
    if (series->tail_count < SAMPLES_PER_CHUNK) {
        __builtin_prefetch(&chunk->rows[series->tail_count], 1);
        __builtin_prefetch((char *)&chunk->rows[series->tail_count + 1] - 1, 1);
    } else {
        __builtin_prefetch(series->chunks + series->chunk_count, 1);
    }
    if (series->last_origin != TABLE_NO_ROW)
        __builtin_prefetch(table_row(&store->origins, series->last_origin));
}

// The first place whose row comes after `row`, as (ordinal, row); there is one.
static struct series_cursor find_place(const struct series_store *store,
                                       const struct rank_series *series, const struct sample *row,
                                       bool by_value) {
    uint32_t low = 0;
    uint32_t high = series->chunk_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct sample_chunk *chunk = series_chunk(store, series, middle);
        if (comes_after(store, &chunk->rows[chunk->count - 1], row, by_value))
            high = middle;
        else
            low = middle + 1;
    }
    const struct sample_chunk *chunk = series_chunk(store, series, low);
    uint32_t first = 0;
    uint32_t end = chunk->count - 1;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (comes_after(store, &chunk->rows[middle], row, by_value))
            end = middle;
        else
            first = middle + 1;
    }
    return (struct series_cursor){low, first};
}

// Puts `row` at a place that find_place gave; a full chunk is split there.
static void insert_at(struct series_store *store, struct rank_series *series,
                      struct series_cursor place, const struct sample *row) {
    if (place.next == 0 && place.chunk > 0) {
        struct sample_chunk *before = chunk_at(store, series, place.chunk - 1);
        if (before->count < SAMPLES_PER_CHUNK) {
            before->rows[before->count++] = *row;
            return;
        }
    }
    struct sample_chunk *chunk = chunk_at(store, series, place.chunk);
    assert(place.next < chunk->count);
    if (chunk->count == SAMPLES_PER_CHUNK) {
        struct sample_chunk *rest = add_chunk(store, series, place.chunk + 1);
        rest->count = SAMPLES_PER_CHUNK - place.next;
        memcpy(rest->rows, chunk->rows + place.next, rest->count * sizeof *row);
        chunk->count = place.next;
    }
    memmove(chunk->rows + place.next + 1, chunk->rows + place.next,
            (chunk->count - place.next) * sizeof *row);
    chunk->rows[place.next] = *row;
    chunk->count++;
}

static struct row_place neighbours(const struct series_store *store,
                                   const struct rank_series *series, struct series_cursor place) {
    const struct sample_chunk *chunk = series_chunk(store, series, place.chunk);
    struct row_place around = {.has_after = true, .after_ns = chunk->rows[place.next].time_ns};
    if (place.next > 0) {
        around.has_before = true;
        around.before_ns = chunk->rows[place.next - 1].time_ns;
    } else if (place.chunk > 0) {
        const struct sample_chunk *before = series_chunk(store, series, place.chunk - 1);
        around.has_before = true;
        around.before_ns = before->rows[before->count - 1].time_ns;
    }
    return around;
}

// Whether the row belongs behind all others.
static bool belongs_behind(const struct series_store *store, const struct rank_series *series,
                           const struct sample *row, bool by_value) {
    if (series->tail_count == 0 || row->time_ns > series->tail_ns)
        return true;
    if (row->time_ns < series->tail_ns)
        return false;
    const struct sample_chunk *chunk = table_row(&store->chunks, series->tail);
    return !comes_after(store, &chunk->rows[series->tail_count - 1], row, by_value);
}

// What the record said of itself: not what its sender added on the way.
static bool same_record(const struct series_store *store, const struct sample *a,
                        const struct sample *b) {
    if (a->time_ns != b->time_ns || compare_values(a, b) != 0)
        return false;
    if (a->origin == b->origin)
        return true;
    const struct origin *origin_a = series_origin(store, a);
    const struct origin *origin_b = series_origin(store, b);
    return origin_a->session == origin_b->session && origin_a->host == origin_b->host &&
           origin_a->pid == origin_b->pid;
}

enum rows_held rows_have(const struct series_store *store, const struct rank_series *series,
                         const struct sample *row) {
    enum { LOOKED_AT = 64 };
    enum rows_held answer = ROWS_HELD_NOT;
    if (series->tail_count == 0 || row->time_ns > series->tail_ns)
        return answer;
    struct series_cursor at = series_seek(store, series, row->time_ns);
    for (uint32_t i = 0; i < LOOKED_AT; i++) {
        const struct sample *held = series_next(store, series, &at, row->time_ns);
        if (held == NULL)
            return answer;
        if (!same_record(store, held, row))
            continue;
        if (held->origin == row->origin)
            return ROWS_HELD;
        answer = ROWS_HELD_OTHERWISE;
    }
    return answer;
}

struct row_place rows_insert(struct series_store *store, struct rank_series *series,
                             const struct sample *row, bool by_value) {
    struct row_place around = {0};
    if (belongs_behind(store, series, row, by_value)) {
        around.has_before = series->tail_count > 0;
        around.before_ns = series->tail_ns;
        append(store, series, row);
    } else {
        struct series_cursor place = find_place(store, series, row, by_value);
        around = neighbours(store, series, place);
        insert_at(store, series, place, row);
        note_tail(store, series);
    }
    series->sample_count++;
    series->has_repeats |= (row->flags & SAMPLE_REPEATED) != 0;
    around.late = series->settled_any && row->time_ns <= series->settled_ns;
    // Behind all that evaluations have seen it voids nothing, however late it is: senders of
    // different ranks are seldom equally far.
    if (around.late && around.has_after && around.after_ns <= series->settled_ns)
        series->revision++;
    return around;
}

const struct sample_chunk *rows_expired_chunk(const struct series_store *store,
                                              const struct rank_series *series, uint64_t time_ns) {
    if (series->chunk_count < 2)
        return NULL;
    const struct sample_chunk *first = series_chunk(store, series, 0);
    return first->rows[first->count - 1].time_ns < time_ns ? first : NULL;
}

void rows_drop_first_chunk(struct series_store *store, struct rank_series *series) {
    assert(series->sample_count >= series_chunk(store, series, 0)->count);
    series->sample_count -= series_chunk(store, series, 0)->count;
    table_free(&store->chunks, series->chunks[0]);
    series->chunk_count--;
    series->chunks_expired++;
    memmove(series->chunks, series->chunks + 1, series->chunk_count * sizeof(uint32_t));
    if (series->chunk_count > 0)
        series->head = series->chunks[0];
}

static void remove_rows(struct series_store *store, struct rank_series *series,
                        bool (*goes)(const struct sample *row, uint64_t limit), uint64_t limit) {
    uint32_t count = series->chunk_count;
    series->chunk_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = series->chunks[i], kept = 0;
        struct sample_chunk *chunk = table_row(&store->chunks, number);
        for (uint32_t j = 0; j < chunk->count; j++)
            if (!goes(&chunk->rows[j], limit))
                chunk->rows[kept++] = chunk->rows[j];
        series->sample_count -= chunk->count - kept;
        chunk->count = kept;
        chunk->next = TABLE_NO_ROW;
        if (kept == 0) {
            table_free(&store->chunks, number);
            continue;
        }
        if (series->chunk_count > 0)
            chunk_at(store, series, series->chunk_count - 1)->next = number;
        series->chunks[series->chunk_count++] = number;
    }
    if (series->chunk_count > 0)
        series->head = series->chunks[0];
    note_tail(store, series);
    series->revision++;
}

static bool is_until(const struct sample *row, uint64_t until_ns) {
    return row->time_ns <= until_ns;
}

static bool is_flagged(const struct sample *row, uint64_t flags) {
    return (row->flags & flags) != 0;
}

void rows_remove_until(struct series_store *store, struct rank_series *series, uint64_t time_ns) {
    remove_rows(store, series, is_until, time_ns);
}

void rows_remove_flagged(struct series_store *store, struct rank_series *series, uint32_t flags) {
    remove_rows(store, series, is_flagged, flags);
}

static bool chunk_is_whole(const struct series_store *store, const struct sample_chunk *chunk) {
    if (chunk->count == 0 || chunk->count > SAMPLES_PER_CHUNK)
        return false;
    for (uint32_t i = 0; i < chunk->count; i++)
        if (chunk->rows[i].origin >= store->origins.used)
            return false;
    return true;
}

// Fills the directory; false when the chain is not whole.
static bool read_chain(const struct series_store *store, struct rank_series *series,
                       uint32_t count) {
    uint64_t samples = 0;
    uint32_t row = series->head;
    for (uint32_t i = 0; i < count; i++) {
        if (row >= store->chunks.used)
            return false;
        const struct sample_chunk *chunk = table_row(&store->chunks, row);
        if (!chunk_is_whole(store, chunk))
            return false;
        samples += chunk->count;
        series->chunks[i] = row;
        row = chunk->next;
    }
    return samples == series->sample_count && (count == 0 || row == TABLE_NO_ROW);
}

bool rows_restore(const struct series_store *store, struct rank_series *series) {
    uint32_t count = series->chunk_count;
    series->chunks = NULL;
    series->chunk_count = series->chunk_capacity = 0;
    if (count > store->chunks.used)
        return false;
    directory_reserve(series, count);
    if (!read_chain(store, series, count)) {
        rows_release(series);
        return false;
    }
    series->chunk_count = count;
    note_tail(store, series);
    return true;
}

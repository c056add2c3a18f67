// SPDX-License-Identifier: Apache-2.0
// Where does a sample belong among its rank's samples? At the end, nearly always: one comparison.
// A late one is looked for by time (binary search over chunks), then moved into its chunk; a full
// chunk is split at that row, so that rows before it keep their places and cursors on them hold.
#include "processors/rank_rows.h"

#include "base/memory.h"

enum { CHUNKS_PER_BLOCK = 64, ORIGINS_PER_BLOCK = 256 };

_Static_assert(sizeof(struct sample) == 48, "bytes a sample are promised in the docs");
_Static_assert(sizeof(struct sample_chunk) == 1024, "so are bytes a chunk");

void rows_store_init(struct series_store *store) {
    table_init(&store->chunks, "rank_group.chunks", sizeof(struct sample_chunk), CHUNKS_PER_BLOCK);
    table_init(&store->origins, "rank_group.origins", sizeof(struct origin), ORIGINS_PER_BLOCK);
}

void rows_store_release(struct series_store *store) {
    table_release(&store->chunks);
    table_release(&store->origins);
}

void rows_release(struct rank_series *series) {
    memory_give(series->chunks);
    series->chunks = NULL;
    series->chunk_count = series->chunk_capacity = 0;
}

static bool origin_matches(const struct origin *origin, const struct telemetry *telemetry) {
    return origin->session == telemetry->session && origin->host == telemetry->host &&
           origin->pid == telemetry->pid && origin->world_size == telemetry->world_size &&
           origin->sampling_interval_ms == telemetry->sampling_interval_ms &&
           origin->job_null == (telemetry->job == STRING_NONE);
}

static uint32_t origin_bucket(const struct telemetry *telemetry, uint32_t bucket_count) {
    uint64_t mixed = telemetry->session * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ telemetry->host) * UINT64_C(0xff51afd7ed558ccd);
    mixed = (mixed ^ (uint64_t)telemetry->pid) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(mixed >> 32) & (bucket_count - 1);
}

uint32_t rows_origin(struct series_store *store, uint32_t *buckets, uint32_t bucket_count,
                     uint32_t hint, const struct telemetry *telemetry) {
    if (hint < store->origins.used && origin_matches(table_row(&store->origins, hint), telemetry))
        return hint;
    uint32_t *bucket = &buckets[origin_bucket(telemetry, bucket_count)];
    for (uint32_t row = *bucket; row != TABLE_NO_ROW;) {
        const struct origin *origin = table_row(&store->origins, row);
        if (origin_matches(origin, telemetry))
            return row;
        row = origin->next;
    }
    uint32_t row = table_add(&store->origins);
    *(struct origin *)table_row(&store->origins, row) =
        (struct origin){.session = telemetry->session,
                        .host = telemetry->host,
                        .pid = telemetry->pid,
                        .sampling_interval_ms = telemetry->sampling_interval_ms,
                        .world_size = telemetry->world_size,
                        .job_null = telemetry->job == STRING_NONE,
                        .next = *bucket};
    *bucket = row;
    return row;
}

static int compare_numbers(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_values(const struct sample *a, const struct sample *b) {
    int order = compare_numbers(a->used_bytes, b->used_bytes);
    if (order == 0)
        order = compare_numbers(a->reserved_bytes, b->reserved_bytes);
    if (order == 0)
        order = compare_numbers(a->allocated_bytes, b->allocated_bytes);
    if (order == 0)
        order = compare_numbers(a->change_bytes, b->change_bytes);
    if (order == 0)
        order = compare_numbers(a->flags, b->flags);
    return order;
}

// Only for rows of the same instant.
static int compare_same_time(const struct series_store *store, const struct sample *a,
                             const struct sample *b, bool by_value) {
    if (a->origin != b->origin) {
        const struct origin *origin_a = series_origin(store, a);
        const struct origin *origin_b = series_origin(store, b);
        int order = compare_numbers(origin_a->pid, origin_b->pid);
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

// Makes a place for a new chunk at `ordinal` of the directory and returns the chunk, empty.
static struct sample_chunk *add_chunk(struct series_store *store, struct rank_series *series,
                                      uint32_t ordinal) {
    if (series->chunk_count == series->chunk_capacity) {
        series->chunk_capacity = series->chunk_capacity == 0 ? 4 : series->chunk_capacity * 2;
        series->chunks = memory_resize(series->chunks, series->chunk_capacity * sizeof(uint32_t));
    }
    memmove(series->chunks + ordinal + 1, series->chunks + ordinal,
            (series->chunk_count - ordinal) * sizeof(uint32_t));
    series->chunks[ordinal] = table_add(&store->chunks);
    series->chunk_count++;
    return table_row(&store->chunks, series->chunks[ordinal]);
}

static struct sample_chunk *chunk_at(struct series_store *store, const struct rank_series *series,
                                     uint32_t ordinal) {
    return table_row(&store->chunks, series->chunks[ordinal]);
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
    chunk->rows[series->tail_count] = *row;
    chunk->count = ++series->tail_count;
    series->tail_ns = row->time_ns;
}

void rows_prefetch(const struct series_store *store, const struct rank_series *series) {
    if (series->tail_count == 0 || series->tail_count == SAMPLES_PER_CHUNK)
        return;
    struct sample_chunk *chunk = table_row(&store->chunks, series->tail);
    __builtin_prefetch(chunk, 1);
    __builtin_prefetch(&chunk->rows[series->tail_count], 1);
    __builtin_prefetch((char *)&chunk->rows[series->tail_count + 1] - 1, 1);
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
    around.late = series->settled_any && row->time_ns <= series->settled_ns;
    if (around.late)
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
    series->sample_count -= series_chunk(store, series, 0)->count;
    table_free(&store->chunks, series->chunks[0]);
    series->chunk_count--;
    series->chunks_expired++;
    memmove(series->chunks, series->chunks + 1, series->chunk_count * sizeof(uint32_t));
}

void rows_remove_flagged(struct series_store *store, struct rank_series *series, uint32_t flags) {
    uint32_t kept_chunks = 0;
    for (uint32_t i = 0; i < series->chunk_count; i++) {
        struct sample_chunk *chunk = chunk_at(store, series, i);
        uint32_t kept = 0;
        for (uint32_t j = 0; j < chunk->count; j++)
            if ((chunk->rows[j].flags & flags) == 0)
                chunk->rows[kept++] = chunk->rows[j];
        series->sample_count -= chunk->count - kept;
        chunk->count = kept;
        if (kept > 0)
            series->chunks[kept_chunks++] = series->chunks[i];
        else
            table_free(&store->chunks, series->chunks[i]);
    }
    series->chunk_count = kept_chunks;
    note_tail(store, series);
    series->revision++;
}

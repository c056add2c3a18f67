// SPDX-License-Identifier: Apache-2.0
// Finds the row at a moment. Binary search over the chunks, then within one: the rows of a chunk
// and the chunks of a rank are in time order.
#include "pipeline/model/series.h"

// Ordinal of the first chunk whose last row is at or after `time_ns`; chunk_count when there is
// none.
static uint32_t chunk_lower_bound(const struct series_store *store,
                                  const struct rank_series *series, uint64_t time_ns) {
    uint32_t low = 0;
    uint32_t high = series->chunk_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct sample_chunk *chunk = series_chunk(store, series, middle);
        if (chunk->rows[chunk->count - 1].time_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Behind the last row held: a row appended to its chunk is read next.
static struct series_cursor series_end(const struct series_store *store,
                                       const struct rank_series *series) {
    if (series->chunk_count == 0)
        return series_begin(series);
    uint32_t last = series->chunk_count - 1;
    return (struct series_cursor){series->chunks_expired + last,
                                  series_chunk(store, series, last)->count};
}

struct series_cursor series_seek(const struct series_store *store, const struct rank_series *series,
                                 uint64_t time_ns) {
    uint32_t ordinal = chunk_lower_bound(store, series, time_ns);
    if (ordinal == series->chunk_count)
        return series_end(store, series);
    const struct sample_chunk *chunk = series_chunk(store, series, ordinal);
    uint32_t low = 0;
    uint32_t high = chunk->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (chunk->rows[middle].time_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    // Behind the row before it, where a row that comes in between will stand.
    if (low == 0 && ordinal > 0)
        low = series_chunk(store, series, --ordinal)->count;
    return (struct series_cursor){series->chunks_expired + ordinal, low};
}

const struct sample *series_next_distinct(const struct series_store *store,
                                          const struct rank_series *series,
                                          struct series_cursor *cursor, uint64_t as_of_ns) {
    const struct sample *row = series_next(store, series, cursor, as_of_ns);
    while (row != NULL && (row->flags & SAMPLE_REPEATED) != 0)
        row = series_next(store, series, cursor, as_of_ns);
    return row;
}

uint32_t series_next_distinct_run(const struct series_store *store,
                                  const struct rank_series *series, struct series_cursor *cursor,
                                  uint64_t as_of_ns, const struct sample **rows) {
    if (!series->has_repeats)
        return series_next_run(store, series, cursor, as_of_ns, rows);
    *rows = series_next_distinct(store, series, cursor, as_of_ns);
    if (*rows == NULL)
        return 0;
    const struct sample_chunk *chunk =
        series_chunk(store, series, cursor->chunk - series->chunks_expired);
    uint32_t first = cursor->next - 1;
    while (cursor->next < chunk->count && chunk->rows[cursor->next].time_ns <= as_of_ns &&
           (chunk->rows[cursor->next].flags & SAMPLE_REPEATED) == 0)
        cursor->next++;
    return cursor->next - first;
}

const struct sample *series_at_or_before(const struct series_store *store,
                                         const struct rank_series *series, uint64_t time_ns) {
    struct series_cursor after =
        time_ns == UINT64_MAX ? series_end(store, series) : series_seek(store, series, time_ns + 1);
    uint32_t ordinal = after.chunk - series->chunks_expired;
    if (after.next > 0)
        return &series_chunk(store, series, ordinal)->rows[after.next - 1];
    if (ordinal == 0)
        return NULL;
    const struct sample_chunk *before = series_chunk(store, series, ordinal - 1);
    return &before->rows[before->count - 1];
}

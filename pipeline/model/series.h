// SPDX-License-Identifier: Apache-2.0
// Samples of one rank in time order, and what is read off them: the shared ground of the analyses.
//
// `rank_group` owns and fills these; later stages read them through cursors. Rows are ordered by
// (time, pid, host bytes), then by arrival; in a live pipeline, where arrival is a race, by value
// instead. A row never changes. Rows later than the evaluation's `as_of_ns` are there already but
// not part of that evaluation: a cursor stops before them.
//
// Memory: 48 bytes a sample in chunks of 1 KiB, 4 bytes a chunk for the rank's directory. The
// chunks of a rank are chained too, so that the directory can be made again after a load.
#pragma once

#include "base/table/row_index.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/telemetry_event.h"

enum sample_flag {
    SAMPLE_RESERVED_NULL = 1 << 0,
    SAMPLE_ALLOCATED_NULL = 1 << 1,
    SAMPLE_CHANGE_NULL = 1 << 2,
    SAMPLE_JOB_NULL = 1 << 3, // the record named no job
    SAMPLE_REPEATED = 1 << 4, // the same record came before: the summary counts it, no verdict does
};

struct sample {
    uint64_t time_ns;
    int64_t used_bytes; // device_used_bytes
    int64_t reserved_bytes;
    int64_t allocated_bytes;
    int64_t change_bytes;
    uint32_t origin; // row of the origins table: who wrote it
    uint32_t flags;  // enum sample_flag
};

// Who wrote a sample, and what its sender knew of the rank: few distinct ones a process.
struct origin {
    int32_t world_size;
    string_id session; // STRING_NONE: synthetic (see telemetry_event.h)
    string_id host;
    uint32_t carried : 31; // 0: nothing, else 1 + row of the table of what was carried
    uint32_t job_null : 1; // the record named no job
    int64_t pid;
    int64_t sampling_interval_ms;
    uint32_t job; // row of the jobs table; TABLE_NO_ROW: this row is free
    uint32_t reserved;
};

enum { SAMPLES_PER_CHUNK = 21 };

struct sample_chunk {
    uint32_t count;
    uint32_t next; // row of the rank's next chunk, or TABLE_NO_ROW
    uint32_t reserved[2];
    struct sample rows[SAMPLES_PER_CHUNK];
};

// The samples of one rank of one job. What appending touches stands together in front.
struct rank_series {
    int32_t rank;
    uint32_t last_origin;   // row of the origins table, to recognise the next row's quickly
    uint32_t tail;          // row of the chunks table: the last chunk
    uint32_t tail_count;    // its rows; 0 without a chunk
    uint64_t tail_ns;       // time of its last row
    uint64_t sample_count;  // rows held now
    uint64_t first_arrival; // arrival number of its first row among the rows held
    uint64_t settled_ns;    // rows up to here have been part of an evaluation; 0 none yet
    bool settled_any;
    bool has_repeats; // some rows are SAMPLE_REPEATED
    // Grows when a row came in before one that has been part of an evaluation: what was read off
    // earlier rows is void.
    uint32_t revision;
    uint32_t chunk_count;
    uint32_t chunk_capacity;
    uint32_t chunks_expired; // chunks given back at the front since the beginning
    uint32_t head;           // row of the first chunk; means nothing without one
    uint32_t *chunks;        // rows of the chunks table, in time order
};

struct series_store {
    struct table chunks;         // struct sample_chunk
    struct table origins;        // struct origin
    struct table carried;        // struct carried (event.h)
    struct row_index by_process; // rank_group's: origins
};

// A place in a series: behind the row that was read last, in that row's chunk, so that a row which
// is put behind it there is read too. Stays valid while rows come in behind all that have been part
// of an evaluation, and while its chunk has not expired; start again when `revision` changed.
struct series_cursor {
    uint32_t chunk; // absolute: chunks_expired counts
    uint32_t next;  // row in that chunk to read next
};

static inline const struct sample_chunk *
series_chunk(const struct series_store *store, const struct rank_series *series, uint32_t ordinal) {
    assert(ordinal < series->chunk_count);
    return table_row(&store->chunks, series->chunks[ordinal]);
}

static inline const struct origin *series_origin(const struct series_store *store,
                                                 const struct sample *sample) {
    return table_row(&store->origins, sample->origin);
}

// What came along with the samples of this origin, or NULL.
static inline const struct carried *origin_carried(const struct series_store *store,
                                                   const struct origin *origin) {
    return origin->carried == 0 ? NULL : table_row(&store->carried, origin->carried - 1);
}

static inline struct series_cursor series_begin(const struct rank_series *series) {
    return (struct series_cursor){series->chunks_expired, 0};
}

// The next row with time_ns <= as_of_ns, or NULL; moves the cursor past it. A cursor whose chunk
// has expired goes on at the first row held.
static inline const struct sample *series_next(const struct series_store *store,
                                               const struct rank_series *series,
                                               struct series_cursor *cursor, uint64_t as_of_ns) {
    if (cursor->chunk < series->chunks_expired)
        *cursor = series_begin(series);
    for (;;) {
        uint32_t ordinal = cursor->chunk - series->chunks_expired;
        if (ordinal >= series->chunk_count)
            return NULL;
        const struct sample_chunk *chunk = series_chunk(store, series, ordinal);
        if (cursor->next < chunk->count) {
            const struct sample *row = &chunk->rows[cursor->next];
            if (row->time_ns > as_of_ns)
                return NULL;
            cursor->next++;
            return row;
        }
        if (ordinal + 1 >= series->chunk_count ||
            series_chunk(store, series, ordinal + 1)->rows[0].time_ns > as_of_ns)
            return NULL;
        *cursor = (struct series_cursor){cursor->chunk + 1, 0};
    }
}

// Like series_next, but as many rows as stand together: how many are at *rows, 0 at the end.
static inline uint32_t series_next_run(const struct series_store *store,
                                       const struct rank_series *series,
                                       struct series_cursor *cursor, uint64_t as_of_ns,
                                       const struct sample **rows) {
    *rows = series_next(store, series, cursor, as_of_ns);
    if (*rows == NULL)
        return 0;
    const struct sample_chunk *chunk =
        series_chunk(store, series, cursor->chunk - series->chunks_expired);
    uint32_t first = cursor->next - 1;
    assert(first < chunk->count);
    if (chunk->rows[chunk->count - 1].time_ns <= as_of_ns)
        cursor->next = chunk->count;
    while (cursor->next < chunk->count && chunk->rows[cursor->next].time_ns <= as_of_ns)
        cursor->next++;
    return cursor->next - first;
}

// The same two without rows that repeat others.
const struct sample *series_next_distinct(const struct series_store *store,
                                          const struct rank_series *series,
                                          struct series_cursor *cursor, uint64_t as_of_ns);
uint32_t series_next_distinct_run(const struct series_store *store,
                                  const struct rank_series *series, struct series_cursor *cursor,
                                  uint64_t as_of_ns, const struct sample **rows);

// Asks the processor to fetch what reading the newest rows will touch. Where many ranks are read
// one after the other, each is asked for 2 * SERIES_AHEAD ranks before it is read, and once more,
// by the second function, SERIES_AHEAD before, so that the waits overlap.
enum { SERIES_AHEAD = 8 };

static inline void series_prefetch(const struct series_store *store,
                                   const struct rank_series *series) {
    if (series->tail_count == 0)
        return;
    const struct sample_chunk *chunk = table_row(&store->chunks, series->tail);
    assert(series->tail_count <= SAMPLES_PER_CHUNK);
    __builtin_prefetch(&series->chunks[series->chunk_count - 1]);
    __builtin_prefetch(chunk);
    __builtin_prefetch(&chunk->rows[series->tail_count - 1]);
    __builtin_prefetch((const char *)&chunk->rows[series->tail_count - 1] + sizeof *chunk->rows -
                       1);
}

// A cursor stands at the end of the chunk before where the newest row begins one.
static inline void series_prefetch_before(const struct series_store *store,
                                          const struct rank_series *series) {
    if (series->tail_count == 1 && series->chunk_count > 1)
        __builtin_prefetch(series_chunk(store, series, series->chunk_count - 2));
}

// The last row with time_ns <= time, or NULL; O(log chunks + log rows).
const struct sample *series_at_or_before(const struct series_store *store,
                                         const struct rank_series *series, uint64_t time_ns);
// A cursor that reads the first row with time_ns >= time next.
struct series_cursor series_seek(const struct series_store *store, const struct rank_series *series,
                                 uint64_t time_ns);

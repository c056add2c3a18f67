// SPDX-License-Identifier: Apache-2.0
// Writing side of struct rank_series: rows go in where they belong in time.
//
// Appending is O(1); a late row costs a search and a move within one 1 KiB chunk. A row that comes
// in front of rows already judged raises the series' revision. One thread.
#pragma once

#include "pipeline/component/state.h"
#include "pipeline/model/event.h"
#include "pipeline/model/series.h"

struct row_place {
    bool late; // at or before settled_ns: what was read off the series is void
    bool has_before, has_after;
    uint64_t before_ns, after_ns; // times of its neighbours
};

// Makes, releases, lists and restores a struct series_store.
extern const struct state_part series_store_part;
// Empties it; chunk directories of series are their owners'.
void rows_store_clear(struct series_store *store);
void rows_release(struct rank_series *series); // the directory; chunks go with the store
void rows_free(struct series_store *store, struct rank_series *series); // all of it

// After a load: makes the directory again from the chain of chunks. False when the chain is not one
// of chunk_count chunks of the store with origins of the store; the series is then empty.
bool rows_restore(const struct series_store *store, struct rank_series *series);

struct origin_key {
    const struct telemetry *telemetry;
    const struct carried *carried; // or NULL
    uint32_t job;                  // row of the jobs table
};

// Row of the origins table for these values, found or made. `hint` is the row of this job that
// matched last.
uint32_t rows_origin(struct series_store *store, uint32_t hint, const struct origin_key *key);
void rows_free_origin(struct series_store *store, uint32_t row);

// Asks the processor to fetch what the next insert into this series will touch.
void rows_prefetch(const struct series_store *store, const struct rank_series *series);

enum rows_held {
    ROWS_HELD_NOT,
    ROWS_HELD,           // with all that came along
    ROWS_HELD_OTHERWISE, // but what its sender said beside it was something else
};

// Whether a row that is held says the same, of the same process at the same moment. Of the rows of
// one moment some are looked at. O(1) where the row is newer than all.
enum rows_held rows_have(const struct series_store *store, const struct rank_series *series,
                         const struct sample *row);

// Puts `row` behind all rows that do not come after it. `by_value`: rows with equal (time, pid,
// host) are ordered by their values instead of by arrival.
struct row_place rows_insert(struct series_store *store, struct rank_series *series,
                             const struct sample *row, bool by_value);

// The first chunk when all its rows are before `time_ns` and it is not the only one, else NULL.
const struct sample_chunk *rows_expired_chunk(const struct series_store *store,
                                              const struct rank_series *series, uint64_t time_ns);
void rows_drop_first_chunk(struct series_store *store, struct rank_series *series);

// Removes all rows up to `time_ns`, inclusive. O(rows).
void rows_remove_until(struct series_store *store, struct rank_series *series, uint64_t time_ns);
// Removes all rows that have any of `flags`. O(rows).
void rows_remove_flagged(struct series_store *store, struct rank_series *series, uint32_t flags);

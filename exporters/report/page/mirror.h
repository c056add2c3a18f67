// SPDX-License-Identifier: Apache-2.0
// The samples of many ranks as a page draws them, kept by whoever renders it: of each stretch of
// time the least and the most.
//
// A pipeline writes what is new into a log (page_log), while it is held; the mirror takes that in
// on another thread. Stretches double in length when a rank has too many of them, so memory is
// bounded: PAGE_STRETCHES in all, shared by the ranks, at most PAGE_STRETCHES_MAX and at least
// PAGE_STRETCHES_MIN of one. With fewer samples than stretches nothing is left out.
#pragma once

#include "base/arena.h"
#include "pipeline/model/evaluation.h"

enum {
    PAGE_STRETCHES = 1 << 20,
    PAGE_STRETCHES_MAX = 512,
    PAGE_STRETCHES_MIN = 16,
    PAGE_LOG_MAX = 1 << 20, // entries: 16 MiB
};

// What a pipeline's log says of a rank, told by its row; samples follow PAGE_LOG_SAMPLES.
enum page_log_kind {
    PAGE_LOG_SAMPLES, // `value` of them
    PAGE_LOG_EXPIRED, // those before the time `value` are gone
    PAGE_LOG_FORGET,  // all of it is gone; the row may be given to another
};

union page_log_entry {
    struct {
        uint32_t row;
        uint32_t kind; // enum page_log_kind
        uint64_t value;
    } head;
    struct {
        uint64_t time_ns;
        int64_t used_bytes;
    } sample;
};

// Bounded by PAGE_LOG_MAX; grows to what was needed most, and no further allocation then.
struct page_log {
    union page_log_entry *entries;
    uint32_t count, capacity;
};

// Room for so many more behind the others, which the log has; they count.
union page_log_entry *page_log_add(struct page_log *log, uint32_t count);
static inline uint32_t page_log_room(const struct page_log *log) {
    return PAGE_LOG_MAX - log->count;
}
void page_log_release(struct page_log *log);

struct page_mirror; // opaque

struct page_mirror *page_mirror_new(void);
void page_mirror_release(struct page_mirror *mirror); // NULL is fine
// Takes in what the log holds, and empties it.
void page_mirror_fold(struct page_mirror *mirror, struct page_log *log);
// Fills `series`, its rank but for it, with what is held of the row, in chunks of `store`. A row
// that was never told of has none. All
// have this origin.
void page_mirror_read(const struct page_mirror *mirror, uint32_t row, uint32_t origin,
                      struct series_store *store, struct rank_series *series);
// The longest stretch of any rank: samples further apart than twice of it have none between them.
uint64_t page_mirror_stretch_ns(const struct page_mirror *mirror);
// How many stretches are held of the row; for tests.
uint32_t page_mirror_count(const struct page_mirror *mirror, uint32_t row);

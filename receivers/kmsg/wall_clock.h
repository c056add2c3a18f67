// SPDX-License-Identifier: Apache-2.0
// From the time of a record to the time of day.
//
// A record says how many microseconds the kernel's local clock showed: since boot, without the time
// spent in suspend, and not slewed as the other clocks are, so that over weeks it may be seconds
// away from CLOCK_MONOTONIC. What is added to it here is an offset:
//
// - at first, and for records from before culprit began, time of day less CLOCK_MONOTONIC: off by
//   what the clocks drifted apart, and by a suspend or a step of the clock since the record;
// - from the first record that woke a waiting reader on, the time of day at that moment less the
//   record's own time, which a suspend or a step of the clock changes; a new one is taken only when
//   it differs by more than WALL_CLOCK_TOLERANCE_NS.
//
// An offset holds from one sequence number on, and is durable in the store before a record is told
// with it: read again after a crash, a record has the same time to the nanosecond.
#pragma once

#include "pipeline/component/storage.h"

#include <stdbool.h>
#include <stdint.h>

enum { WALL_CLOCK_OFFSETS_MAX = 64, WALL_CLOCK_NAME_MAX = 512 };
#define WALL_CLOCK_TOLERANCE_NS UINT64_C(1000000000)

struct boot_id {
    uint64_t words[2]; // /proc/sys/kernel/random/boot_id; zeros: not known
};
struct boot_id boot_id_now(void);
static inline bool boot_id_equal(struct boot_id a, struct boot_id b) {
    return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

struct wall_clock_offset {
    uint64_t from; // sequence number of the first record it is for
    int64_t offset_ns;
};

struct wall_clock {
    struct storage *store; // NULL: none
    char name[WALL_CLOCK_NAME_MAX];
    struct boot_id boot;
    struct wall_clock_offset offsets[WALL_CLOCK_OFFSETS_MAX]; // ascending; the oldest go
    uint32_t count;
    uint64_t ticket; // of what the store was given last; 0: nothing
};

// Loads what is kept of this boot, and drops what is of others. `id` is the receiver's, `copy` as
// in component_context.
enum status wall_clock_init(struct wall_clock *wall, struct storage *store, const char *id,
                            uint32_t copy, struct boot_id boot, struct error *error) MUST_USE;
// An offset where there is none yet: both clocks as they are now.
void wall_clock_begin(struct wall_clock *wall, uint64_t unix_ns, uint64_t monotonic_ns);
// The record was written just before `unix_ns`. True: from it on another offset holds.
bool wall_clock_fresh(struct wall_clock *wall, uint64_t sequence, uint64_t usec, uint64_t unix_ns);
// Whether the offsets are durable, after at most `timeout_ns`.
bool wall_clock_is_kept(struct wall_clock *wall, uint64_t timeout_ns);
// Unix time of a record, 1 to INT64_MAX. There is an offset.
uint64_t wall_clock_time(const struct wall_clock *wall, uint64_t sequence, uint64_t usec);

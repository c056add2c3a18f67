// SPDX-License-Identifier: Apache-2.0
// A made-up span stream for the bench: any line of an endless job, by its number.
//
// First all spans are made (train, ten steps an epoch, four phases a step), by a task each that
// comes and goes. Then phase after phase is opened again, round and round: its ranks' tasks are
// submitted in one line, are run, done with two actions each, a worker tells its metrics, and the
// tasks of the opening MADE_SPANS_KEPT before are forgotten. The number of spans stays what it is,
// and so do the names that occur.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    MADE_SPAN_LINE_MAX = 16384,
    MADE_SPAN_RANKS_MAX = 256,
    MADE_SPANS_MIN = 10,
    MADE_SPANS_MAX = 1000000,
    MADE_SPANS_KEPT = 3
};

struct made_spans {
    uint32_t ranks;  // 1 to MADE_SPAN_RANKS_MAX
    uint32_t leaves; // phases that are opened in turn
};

// As few leaves as make `spans` spans or a few more.
struct made_spans made_spans_of(uint32_t ranks, uint32_t spans);
uint32_t made_spans_count(const struct made_spans *job);
// Lines before the first opening.
uint64_t made_spans_first(const struct made_spans *job);
// Lines of one opening.
uint64_t made_spans_opening(const struct made_spans *job);
// As made_line(), in at most MADE_SPAN_LINE_MAX - 1 bytes.
size_t made_span_line(const struct made_spans *job, uint64_t number, char *out);

// SPDX-License-Identifier: Apache-2.0
// The first window of growth in one rank's samples that reaches a threshold, found step by step.
//
// A window is a run of samples each of which uses more than the one before; any other sample ends
// it (stormlog's cross-rank analysis). The threshold may rise between steps but never falls, so the
// answer only ever moves forward: a scan reads each sample once, whatever the number of steps.
#pragma once

#include "pipeline/model/evaluation.h"
#include "pipeline/model/series.h"

struct growth_source {
    const struct series_store *store;
    const struct rank_series *series;
    uint64_t as_of_ns;
    bool distinct; // without rows that repeat others, each of which would end a window
};

// The window that the scan stands in.
struct growth_window {
    bool has_previous;
    int64_t previous_bytes;
    uint64_t previous_ns;
    uint64_t samples; // growing ones so far; 0: no window
    int64_t growth_bytes;
    int64_t base_bytes; // use before the first growing sample
    uint64_t base_ns;
    uint64_t time_ns; // of the newest sample
    uint32_t origin;
    int64_t highest_bytes;      // use so far
    int64_t base_highest_bytes; // use so far when the window began
};

// stormlog's answer: the first sample at which a window's growth reaches the threshold.
struct first_scan {
    struct series_cursor cursor;
    struct growth_window window;
    bool found;
};

void first_scan_begin(struct first_scan *scan, struct series_cursor at);
// Goes on to the first sample that answers `threshold_bytes`, or to the end.
void first_scan_advance(struct first_scan *scan, const struct growth_source *source,
                        int64_t threshold_bytes);
struct spike first_scan_spike(const struct first_scan *scan);

// Ours: the first window that reaches the threshold and does not fall back, that is, after whose
// end no sample uses base + growth / 2 or less, growth being that at the threshold. A window that
// fell back or turned out too small stays out for good, since the threshold only rises. When one
// does, what came after it is read again: a sample is read once for each window that it outlived.
struct kept_scan {
    struct series_cursor reader;
    struct growth_window window;          // as the reader sees it
    bool holding;                         // a window that reached the threshold; else still looking
    struct growth_window crossing;        // its state at the threshold
    struct series_cursor crossing_cursor; // reads the sample after it next
    bool window_open;                     // still growing
    uint64_t window_samples;
    struct series_cursor end_cursor; // reads the sample that ended it next
    struct growth_window end_window; // the reader's state before that sample
    int64_t min_after_bytes;
    int64_t highest_since_bytes; // use since the window began
};

void kept_scan_begin(struct kept_scan *scan, struct series_cursor at);
// While nothing is held both scans read the same rows from the same place on and see the same
// window, so the one can take over what the other has read: with is_at before the other is
// advanced, follow behind it. Of the same threshold.
bool kept_scan_is_at(const struct kept_scan *kept, const struct first_scan *first);
void kept_scan_follow(struct kept_scan *kept, const struct first_scan *first);
void kept_scan_advance(struct kept_scan *scan, const struct growth_source *source,
                       int64_t threshold_bytes);
struct spike kept_scan_spike(const struct kept_scan *scan);
// How far the use has risen above all that it was before the window: a swing that has not fallen
// yet does not rise above the swings before it. 0 when no window is held or it stays below.
int64_t kept_scan_excess(const struct kept_scan *scan);

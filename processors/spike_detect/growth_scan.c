// SPDX-License-Identifier: Apache-2.0
// Finds when a rank's use began to grow for good. All sums are exact: a window's growth is its last
// use less its base, which fits int64.
#include "processors/spike_detect/growth_scan.h"

#include "pipeline/model/series.h"

#include <assert.h>

static void window_read(struct growth_window *window, const struct sample *row) {
    int64_t delta = window->has_previous ? row->used_bytes - window->previous_bytes : 0;
    if (delta <= 0) {
        window->samples = 0;
        window->growth_bytes = 0;
    } else {
        if (window->samples == 0) {
            window->base_bytes = window->previous_bytes;
            window->base_ns = window->previous_ns;
            window->base_highest_bytes = window->highest_bytes;
        }
        window->growth_bytes += delta;
        window->samples++;
    }
    if (!window->has_previous || row->used_bytes > window->highest_bytes)
        window->highest_bytes = row->used_bytes;
    window->has_previous = true;
    window->previous_bytes = row->used_bytes;
    window->previous_ns = row->time_ns;
    window->time_ns = row->time_ns;
    window->origin = row->origin;
}

static bool window_reaches(const struct growth_window *window, int64_t threshold_bytes) {
    return window->samples > 0 && window->growth_bytes >= threshold_bytes;
}

static struct spike window_spike(const struct growth_window *window, bool found) {
    if (!found)
        return (struct spike){0};
    assert(window->samples > 0 && window->base_ns <= window->time_ns);
    return (struct spike){.found = true,
                          .time_ns = window->time_ns,
                          .window_ns = window->base_ns,
                          .base_bytes = window->base_bytes,
                          .growth_bytes = window->growth_bytes,
                          .samples = window->samples,
                          .origin = window->origin};
}

static const struct sample *read_next(const struct growth_source *source,
                                      struct series_cursor *cursor) {
    return series_next(source->store, source->series, cursor, source->as_of_ns);
}

void first_scan_begin(struct first_scan *scan, struct series_cursor at) {
    *scan = (struct first_scan){.cursor = at};
}

void first_scan_advance(struct first_scan *scan, const struct growth_source *source,
                        int64_t threshold_bytes) {
    const struct sample *row;
    while (!(scan->found = window_reaches(&scan->window, threshold_bytes)) &&
           (row = read_next(source, &scan->cursor)) != NULL)
        window_read(&scan->window, row);
}

struct spike first_scan_spike(const struct first_scan *scan) {
    return window_spike(&scan->window, scan->found);
}

void kept_scan_begin(struct kept_scan *scan, struct series_cursor at) {
    *scan = (struct kept_scan){.reader = at};
}

static void hold_window(struct kept_scan *scan) {
    assert(!scan->holding && scan->window.samples > 0);
    scan->holding = true;
    scan->crossing = scan->window;
    scan->crossing_cursor = scan->reader;
    scan->window_open = true;
    scan->window_samples = scan->window.samples;
    scan->min_after_bytes = INT64_MAX;
    scan->highest_since_bytes = scan->window.previous_bytes;
}

// Looks on after the end of the window that was held.
static void drop_window(struct kept_scan *scan) {
    assert(scan->holding && !scan->window_open);
    scan->holding = false;
    scan->reader = scan->end_cursor;
    scan->window = scan->end_window;
    scan->window.samples = 0;
    scan->window.growth_bytes = 0;
}

// The threshold rose above the growth at which the window was taken: moves on within the window.
static void move_crossing(struct kept_scan *scan, const struct growth_source *source,
                          int64_t threshold_bytes) {
    while (!window_reaches(&scan->crossing, threshold_bytes)) {
        const struct sample *row = NULL;
        if (scan->crossing.samples < scan->window_samples)
            row = read_next(source, &scan->crossing_cursor);
        if (row == NULL) {
            // All of the window is too small: an open one may still grow, a closed one is out.
            if (scan->window_open)
                scan->holding = false;
            else
                drop_window(scan);
            return;
        }
        window_read(&scan->crossing, row);
    }
}

static bool fell_back(const struct kept_scan *scan) {
    if (scan->window_open || scan->min_after_bytes == INT64_MAX)
        return false;
    int64_t above_base = scan->min_after_bytes - scan->crossing.base_bytes;
    return above_base <= scan->crossing.growth_bytes / 2;
}

// A sample while a window is held. After the window's end only extremes matter: should it fall
// back, the samples since are read again.
static void watch(struct kept_scan *scan, const struct sample *row, struct series_cursor before) {
    if (row->used_bytes > scan->highest_since_bytes)
        scan->highest_since_bytes = row->used_bytes;
    if (scan->window_open) {
        if (row->used_bytes > scan->window.previous_bytes) {
            window_read(&scan->window, row);
            scan->window_samples = scan->window.samples;
            return;
        }
        scan->window_open = false;
        scan->end_cursor = before;
        scan->end_window = scan->window;
    }
    if (row->used_bytes < scan->min_after_bytes)
        scan->min_after_bytes = row->used_bytes;
}

void kept_scan_advance(struct kept_scan *scan, const struct growth_source *source,
                       int64_t threshold_bytes) {
    for (;;) {
        if (!scan->holding && window_reaches(&scan->window, threshold_bytes))
            hold_window(scan);
        if (scan->holding) {
            move_crossing(scan, source, threshold_bytes);
            if (scan->holding && fell_back(scan))
                drop_window(scan);
        }
        struct series_cursor before = scan->reader;
        const struct sample *row = read_next(source, &scan->reader);
        if (row == NULL)
            return;
        if (scan->holding)
            watch(scan, row, before);
        else
            window_read(&scan->window, row);
    }
}

struct spike kept_scan_spike(const struct kept_scan *scan) {
    return window_spike(&scan->crossing, scan->holding);
}

int64_t kept_scan_excess(const struct kept_scan *scan) {
    if (!scan->holding || scan->highest_since_bytes <= scan->crossing.base_highest_bytes)
        return 0;
    return scan->highest_since_bytes - scan->crossing.base_highest_bytes;
}

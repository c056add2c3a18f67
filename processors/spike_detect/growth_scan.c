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

// Reads rows that stand together, up to the one at which the window reaches the threshold; how
// many. Like window_read row by row: the row before the first growing one is the last that did not
// grow.
static uint32_t window_read_run(struct growth_window *window, const struct sample *rows,
                                uint32_t count, int64_t threshold_bytes) {
    assert(count > 0 && threshold_bytes > 0);
    uint32_t done = 0;
    if (!window->has_previous)
        window_read(window, &rows[done++]);
    if (done == count)
        return count;
    bool open = window->samples > 0;
    int64_t previous = window->previous_bytes, highest = window->highest_bytes;
    int64_t base = open ? window->base_bytes : previous;
    int64_t base_highest = open ? window->base_highest_bytes : highest;
    int64_t base_at = (int64_t)done - 1 - (int64_t)window->samples; // below 0: before these rows
    int64_t first_at = done, at = done;
    for (;; at++) {
        int64_t used = rows[at].used_bytes;
        bool grew = used > previous;
        base = grew ? base : used;
        base_at = grew ? base_at : at;
        base_highest = grew ? base_highest : highest;
        highest = used > highest ? used : highest;
        previous = used;
        if (used - base >= threshold_bytes || at + 1 == count)
            break;
    }
    if (base_at >= 0 && base_at != first_at - 1)
        window->base_ns = rows[base_at].time_ns;
    else if (!open)
        window->base_ns = window->previous_ns;
    window->samples = (uint64_t)(at - base_at);
    window->growth_bytes = previous - base;
    window->base_bytes = base;
    window->base_highest_bytes = base_highest;
    window->highest_bytes = highest;
    window->previous_bytes = previous;
    window->previous_ns = window->time_ns = rows[at].time_ns;
    window->origin = rows[at].origin;
    return (uint32_t)at + 1;
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
    return source->distinct
               ? series_next_distinct(source->store, source->series, cursor, source->as_of_ns)
               : series_next(source->store, source->series, cursor, source->as_of_ns);
}

static uint32_t read_run(const struct growth_source *source, struct series_cursor *cursor,
                         const struct sample **rows) {
    return source->distinct
               ? series_next_distinct_run(source->store, source->series, cursor, source->as_of_ns,
                                          rows)
               : series_next_run(source->store, source->series, cursor, source->as_of_ns, rows);
}

void first_scan_begin(struct first_scan *scan, struct series_cursor at) {
    *scan = (struct first_scan){.cursor = at};
}

void first_scan_advance(struct first_scan *scan, const struct growth_source *source,
                        int64_t threshold_bytes) {
    const struct sample *rows;
    uint32_t count;
    while (!(scan->found = window_reaches(&scan->window, threshold_bytes)) &&
           (count = read_run(source, &scan->cursor, &rows)) > 0)
        scan->cursor.next -= count - window_read_run(&scan->window, rows, count, threshold_bytes);
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

// The same for rows that stand together, when the window has ended: up to the one at which it fell
// back; how many.
static uint32_t watch_run(struct kept_scan *scan, const struct sample *rows, uint32_t count) {
    assert(scan->holding && !scan->window_open && count > 0);
    int64_t limit = scan->crossing.base_bytes + scan->crossing.growth_bytes / 2;
    int64_t highest = scan->highest_since_bytes, lowest = scan->min_after_bytes;
    uint32_t done = 0;
    while (done < count) {
        int64_t used = rows[done++].used_bytes;
        highest = used > highest ? used : highest;
        lowest = used < lowest ? used : lowest;
        if (used <= limit)
            break;
    }
    scan->highest_since_bytes = highest;
    scan->min_after_bytes = lowest;
    return done;
}

static bool same_window(const struct growth_window *a, const struct growth_window *b) {
    return a->has_previous == b->has_previous && a->previous_bytes == b->previous_bytes &&
           a->samples == b->samples && a->highest_bytes == b->highest_bytes &&
           (a->samples == 0 ||
            (a->base_bytes == b->base_bytes && a->base_ns == b->base_ns &&
             a->growth_bytes == b->growth_bytes && a->base_highest_bytes == b->base_highest_bytes));
}

bool kept_scan_is_at(const struct kept_scan *kept, const struct first_scan *first) {
    return !kept->holding && kept->reader.chunk == first->cursor.chunk &&
           kept->reader.next == first->cursor.next && same_window(&kept->window, &first->window);
}

void kept_scan_follow(struct kept_scan *kept, const struct first_scan *first) {
    assert(!kept->holding);
    kept->reader = first->cursor;
    kept->window = first->window;
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
        const struct sample *rows;
        struct series_cursor before = scan->reader;
        if (scan->holding && scan->window_open) {
            if ((rows = read_next(source, &scan->reader)) == NULL)
                return;
            watch(scan, rows, before);
            continue;
        }
        uint32_t count = read_run(source, &scan->reader, &rows);
        if (count == 0)
            return;
        uint32_t done = scan->holding
                            ? watch_run(scan, rows, count)
                            : window_read_run(&scan->window, rows, count, threshold_bytes);
        scan->reader.next -= count - done;
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

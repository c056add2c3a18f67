// SPDX-License-Identifier: Apache-2.0
// One chart: its scales, its axes, and the lines in it.
#pragma once

#include "exporters/report/page/parts.h"

// The drawing is as wide as there is room: across, places are shares of the width, so that texts
// keep their size and all of it is in view also on a phone. Down, units are pixels. Only lines and
// the band are stretched: they are drawn in tenths of a unit of a plot that is PLOT_WIDTH wide.
enum {
    PLOT_TOP = 40, // above the plot
    PLOT_WIDTH = 784,
    PLOT_BOTTOM = 48, // below the plot
    PLOT_FINE = 10,
};

enum plot_kind { PLOT_MEMORY, PLOT_UTILISATION };

struct plot {
    struct page_view *view;
    const struct evaluation *evaluation;
    const struct rank_figures *figures;
    enum plot_kind kind;
    int height;
    __int128 start_ns;     // aligned
    __int128 span_ns;      // above 0
    double bottom, top;    // bytes, or percent of the device
    double unit, step;     // of the ticks between them: `step` units of `unit`
    const char *unit_name; // static text
    // Ranks with lines of their own, suspects first; and for each rank whether it is one.
    const uint32_t *lines;
    uint32_t line_count;
    const bool *has_line;
};

// Whether this rank can be drawn in this plot.
bool plot_shows(const struct plot *plot, uint32_t index);
// Whether somebody grew and did not fall back, so that growth is what the plot is to show.
bool plot_has_growth(const struct plot *plot);
double plot_value(const struct plot *plot, uint32_t index, int64_t used_bytes);
// In tenths of a unit, from the plot's left and top; clamped to the plot.
int plot_x(const struct plot *plot, __int128 aligned_ns);
int plot_y(const struct plot *plot, double value);

// The share of a place in tenths of a unit, for PAGE_SHARE_OF.
static inline int plot_share(int x) {
    return x * 10000 / (PLOT_WIDTH * PLOT_FINE);
}

// axis.c: sets bottom and top to round numbers around these, and draws both axes.
void plot_scale_bytes(struct plot *plot, double lowest, double highest);
void plot_scale_percent(struct plot *plot, double highest);
void plot_axes_append(const struct plot *plot);
// Of ticks the digits behind the point; a value with as many, in the axis's unit.
int plot_decimals(const struct plot *plot);
const char *plot_value_text(const struct plot *plot, double value);

// lines.c: which ranks get lines; the others as a band; the lines.
void plot_choose_lines(struct plot *plot);
void plot_band_append(const struct plot *plot);
void plot_lines_append(const struct plot *plot);
// "<svg …>" of what is stretched to the plot's width; the caller ends it.
void plot_field_begin(const struct plot *plot, const char *class);

// SPDX-License-Identifier: Apache-2.0
// One chart: its scales, its axes, and the lines in it.
#pragma once

#include "exporters/report/page/parts.h"

// The drawing, in its own units: the plot stands at (LEFT, TOP) in a picture of PICTURE_WIDTH.
enum {
    PLOT_LEFT = 82,
    PLOT_TOP = 40,
    PLOT_WIDTH = 784,
    PLOT_BOTTOM = 48, // below the plot
    PICTURE_WIDTH = 960,
    PLOT_FINE = 10, // lines are drawn in tenths of a unit
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

// axis.c: sets bottom and top to round numbers around these, and draws both axes.
void plot_scale_bytes(struct plot *plot, double lowest, double highest);
void plot_scale_percent(struct plot *plot, double highest);
void plot_axes_append(const struct plot *plot);

// lines.c: which ranks get lines; the others as a band; the lines.
void plot_choose_lines(struct plot *plot);
void plot_band_append(const struct plot *plot);
void plot_lines_append(const struct plot *plot);

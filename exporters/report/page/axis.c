// SPDX-License-Identifier: Apache-2.0
// The axes of a chart, and the ticks on them.
//
// Steps that people count in: 1, 2, 5 and their tens; of a minute and more, the divisions of a
// clock. All ticks of an axis are in one unit.
#include "exporters/report/page/plot.h"
#include "exporters/report/text/layout.h"

#include <assert.h>
#include <math.h>

enum { TIME_TICKS_MAX = 10, VALUE_TICKS_MAX = 5, TIME_TICKS_NARROW = 6 };

static double round_step(double range, int ticks) {
    assert(range > 0 && ticks > 0);
    double raw = range / ticks;
    double step = pow(10, floor(log10(raw)));
    if (step * 1 >= raw * 0.999)
        return step;
    return step * 2 >= raw * 0.999 ? step * 2 : step * 5 >= raw * 0.999 ? step * 5 : step * 10;
}

// -- values -------------------------------------------------------------------------------------

static const char *const byte_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

struct value_steps {
    double unit; // bytes
    double step; // in units
    const char *name;
};

static struct value_steps byte_steps(double range, double highest) {
    int power = 0;
    double unit = 1;
    while (power < 6 && highest >= unit * 1024) {
        unit *= 1024;
        power++;
    }
    // So narrow a range would need long fractions: a smaller unit has none.
    while (power > 0 && range / unit < 0.04) {
        unit /= 1024;
        power--;
    }
    double step = round_step(range / unit, VALUE_TICKS_MAX);
    return (struct value_steps){unit, power == 0 && step < 1 ? 1 : step, byte_units[power]};
}

void plot_scale_bytes(struct plot *plot, double lowest, double highest) {
    if (highest < 1)
        highest = 1;
    // From zero, so that noise is not drawn as a cliff. Only growth that was found is looked at
    // more closely where zero is far off, and then at least over a tenth of the highest.
    bool close = plot_has_growth(plot) && lowest >= highest * 0.4;
    double bottom = close ? fmin(lowest, highest * 0.9) : fmin(lowest, 0);
    struct value_steps steps = byte_steps(highest - bottom, highest);
    double step = steps.step * steps.unit;
    plot->bottom = floor(bottom / step + 1e-9) * step;
    plot->top = ceil(highest / step - 1e-9) * step;
    if (plot->top <= plot->bottom)
        plot->top = plot->bottom + step;
    plot->unit = steps.unit;
    plot->step = steps.step;
    plot->unit_name = steps.name;
}

void plot_scale_percent(struct plot *plot, double highest) {
    plot->step = highest > 250 ? round_step(highest, VALUE_TICKS_MAX) : 25;
    plot->bottom = 0;
    plot->top = highest > 100 ? ceil(highest / plot->step - 1e-9) * plot->step : 100;
    plot->unit = 1;
    plot->unit_name = "%";
}

static int decimals_of(double step) {
    assert(step > 0);
    return step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
}

int plot_decimals(const struct plot *plot) {
    return decimals_of(plot->step);
}

const char *plot_value_text(const struct plot *plot, double value) {
    return arena_format(plot->view->html.arena, "%.*f\xc2\xa0%s", plot_decimals(plot),
                        value / plot->unit, plot->unit_name);
}

static void value_ticks_append(const struct plot *plot) {
    assert(plot->step > 0 && plot->unit > 0);
    struct html *html = &plot->view->html;
    double step = plot->step * plot->unit;
    for (int i = 0;; i++) {
        double value = plot->bottom + i * step;
        if (value > plot->top + step * 0.01)
            return;
        int y = plot_y(plot, value) / PLOT_FINE;
        html_format(html,
                    "<line class=\"grid\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/><text x=\"-8\" "
                    "y=\"%d\" text-anchor=\"end\">%s</text>\n",
                    y, y, y + 4, plot_value_text(plot, value));
    }
}

// -- time ---------------------------------------------------------------------------------------

#define SECOND INT64_C(1000000000)

struct time_unit {
    __int128 from_ns; // spans as long as this are told in it
    int64_t unit_ns;
    const char *name;
};

static const struct time_unit time_units[] = {
    {(__int128)4 * 86400 * SECOND, INT64_C(86400) * SECOND, "d"},
    {(__int128)4 * 3600 * SECOND, 3600 * SECOND, "h"},
    {(__int128)5 * 60 * SECOND, 60 * SECOND, "min"},
    {SECOND, SECOND, "s"},
    {1000000, 1000000, "ms"},
    {1000, 1000, "us"},
    {0, 1, "ns"},
};

static double time_step(const struct time_unit *unit, double span) {
    static const double of_sixty[] = {1, 2, 5, 10, 15, 30, 60, 120};
    static const double of_hours[] = {1, 2, 3, 6, 12, 24};
    bool minutes = unit->unit_ns == 60 * SECOND, hours = unit->unit_ns == 3600 * SECOND;
    const double *steps = hours ? of_hours : of_sixty;
    size_t count = hours ? 6 : minutes ? 8 : 0;
    for (size_t i = 0; i < count; i++)
        if (span / steps[i] <= TIME_TICKS_MAX)
            return steps[i];
    return round_step(span, TIME_TICKS_MAX);
}

// Where there is little room, the style leaves out the words of every other tick, of many of three
// in four.
static void time_ticks_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    const struct time_unit *unit = time_units;
    while (plot->span_ns < unit->from_ns)
        unit++;
    double span = (double)plot->span_ns / (double)unit->unit_ns;
    double step = time_step(unit, span);
    bool many = span / step > TIME_TICKS_NARROW;
    for (int i = 0; i * step <= span * 1.0001; i++) {
        int x = (int)lround(i * step / span * 10000);
        html_format(html, "<g class=\"tick%s\">",
                    i % 2 == 1           ? " odd"
                    : i % 4 == 2 && many ? " half"
                                         : "");
        html_format(html, "<line x1=\"" PAGE_SHARE "\" x2=\"" PAGE_SHARE "\" y1=\"%d\" y2=\"%d\"/>",
                    PAGE_SHARE_OF(x), PAGE_SHARE_OF(x), plot->height, plot->height + 5);
        html_format(html,
                    "<text x=\"" PAGE_SHARE
                    "\" y=\"%d\" text-anchor=\"middle\">%.*f&#160;%s"
                    "</text></g>\n",
                    PAGE_SHARE_OF(x), plot->height + 20, decimals_of(step), i * step, unit->name);
    }
}

void plot_axes_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    html_raw(html, "<g class=\"axis\">\n");
    value_ticks_append(plot);
    html_format(html, "<line class=\"base\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/>\n", plot->height,
                plot->height);
    time_ticks_append(plot);
    // Aligned time begins with the first sample of the rank that sets the clock.
    uint64_t start_ns = plot->start_ns < 0                      ? 0
                        : plot->start_ns > (__int128)UINT64_MAX ? UINT64_MAX
                                                                : (uint64_t)plot->start_ns;
    html_format(html,
                "<text class=\"since\" x=\"50%%\" y=\"%d\" text-anchor=\"middle\">aligned time "
                "since %s</text>\n</g>\n",
                plot->height + 40, page_time(&plot->view->words, start_ns));
}

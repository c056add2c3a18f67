// SPDX-License-Identifier: Apache-2.0
// The exporter that writes a report for people: who started it, when, how much, how sure and why.
// See text/README.md.
#pragma once

#include "exporters/report/seen.h"
#include "pipeline/component/component.h"

extern const struct component_type exporter_text;

// How the page looks; found out once, at the start.
struct text_style {
    bool color;
    bool utf8; // else ASCII only, other characters spelled out
    uint32_t width;
};

// The whole report on what a last batch holds. Scratch comes from the batch's arena. `seen`: which
// evidence came before; NULL: it is not known.
void text_report_append(const struct batch *batch, const struct text_style *style,
                        const struct seen *seen, struct buffer *out);

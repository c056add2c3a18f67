// SPDX-License-Identifier: Apache-2.0
// A page of a terminal's width: headings, labelled paragraphs, colours, and texts made safe.
#pragma once

#include "exporters/text.h"

enum text_color { COLOR_NONE, COLOR_CULPRIT, COLOR_SUSPECT, COLOR_GOOD, COLOR_STRONG, COLOR_DIM };

// What the report says, gathered instead of laid out, for those who lay it out otherwise (page.h).
enum told_kind { TOLD_HEADING, TOLD_PARAGRAPH, TOLD_FIELD };

struct told {
    enum told_kind kind;
    enum text_color color;
    const char *label; // TOLD_FIELD; empty: goes on with the field before
    const char *text;
};

struct told_list {
    struct told *items; // in the page's arena
    uint32_t count;
    uint32_t capacity;
};

struct text_page {
    const struct text_style *style;
    struct arena *arena;    // for the texts that are composed
    struct buffer *out;     // NULL with `told`
    struct told_list *told; // NULL: laid out into `out` at once
};

void page_color(struct text_page *page, enum text_color color);
void page_color_end(struct text_page *page, enum text_color color);
// One line, whatever its width.
void page_line(struct text_page *page, enum text_color color, const char *text);
void page_blank(struct text_page *page); // a blank line
// A blank line, then a heading.
void page_heading(struct text_page *page, const char *text);
// Words wrapped at the width, further lines indented by `indent` columns like the first.
void page_paragraph(struct text_page *page, enum text_color color, uint32_t indent,
                    const char *text);
// "  label       text, wrapped under itself".
void page_field(struct text_page *page, const char *label, const char *text);

// Text from events, made safe for this page and cut to `max` bytes (0: not cut). Lives in the
// page's arena.
const char *page_shown(struct text_page *page, struct slice text, size_t max);
// "2026-01-31 09:15:04.123 UTC".
const char *page_time(struct text_page *page, uint64_t unix_ns);
const char *page_bytes(struct text_page *page, int64_t bytes);
const char *page_duration(struct text_page *page, __int128 duration_ns);

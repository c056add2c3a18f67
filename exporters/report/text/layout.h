// SPDX-License-Identifier: Apache-2.0
// A page of a terminal's width: headings, labelled paragraphs, colours, and texts made safe.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/status.h"
#include "pipeline/model/verdict.h"

#include <stdbool.h>
#include <stdint.h>

// How the page looks; found out once, at the start.
struct text_style {
    bool color;
    bool utf8;    // else ASCII only, other characters spelled out
    bool verbose; // all details also where nothing was found
    uint32_t width;
};

enum text_color { COLOR_NONE, COLOR_CULPRIT, COLOR_SUSPECT, COLOR_GOOD, COLOR_STRONG, COLOR_DIM };

// What the report says, gathered instead of laid out, for those who lay it out otherwise
// (exporters/report/page/page.h).
enum told_kind { TOLD_HEADING, TOLD_LINE, TOLD_PARAGRAPH, TOLD_FIELD };

struct told {
    enum told_kind kind;
    enum text_color color;
    uint32_t indent;   // TOLD_PARAGRAPH: columns
    const char *label; // TOLD_FIELD; empty: goes on with the field before
    const char *text;  // in the page's arena
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
void page_blank(struct text_page *page); // a blank line
// Lays it out, or gathers it. The calls below make its text from a format and what follows that.
void page_tell(struct text_page *page, struct told told);
// One line, whatever its width.
#define page_line(page, color_, ...)                                                               \
    page_tell(page, (struct told){.kind = TOLD_LINE,                                               \
                                  .color = (color_),                                               \
                                  .text = arena_format((page)->arena, __VA_ARGS__)})
// A blank line, then a heading.
#define page_heading(page, ...)                                                                    \
    page_tell(page, (struct told){.kind = TOLD_HEADING,                                            \
                                  .color = COLOR_STRONG,                                           \
                                  .text = arena_format((page)->arena, __VA_ARGS__)})
// Words wrapped at the width, further lines indented by `indent` columns like the first.
#define page_paragraph(page, color_, indent_, ...)                                                 \
    page_tell(page, (struct told){.kind = TOLD_PARAGRAPH,                                          \
                                  .color = (color_),                                               \
                                  .indent = (indent_),                                             \
                                  .text = arena_format((page)->arena, __VA_ARGS__)})
// "  label       text, wrapped under itself"; a label has at most 10 characters.
#define page_field(page, label_, ...)                                                              \
    page_tell(page, (struct told){.kind = TOLD_FIELD,                                              \
                                  .label = (label_),                                               \
                                  .text = arena_format((page)->arena, __VA_ARGS__)})

// Text from events, made safe for this page and cut to `max` bytes (0: not cut). Lives in the
// page's arena.
const char *page_shown(struct text_page *page, struct slice text, size_t max);
// "2026-01-31 09:15:04.123 UTC".
const char *page_time(struct text_page *page, uint64_t unix_ns);
// When the verdict began, or that nobody wrote it.
const char *page_began(struct text_page *page, const struct verdict *verdict);
const char *page_bytes(struct text_page *page, int64_t bytes);
const char *page_duration(struct text_page *page, __int128 duration_ns);

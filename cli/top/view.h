// SPDX-License-Identifier: Apache-2.0
// What `culprit top` shows, made of two answers of /status: lines of text, of any width.
//
// Every text of theirs is made safe for a terminal first (base/text/display.h). Rates are what was
// added between the two answers.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"

#include <jansson.h>
#include <stdint.h>

enum view_kind { VIEW_ALL, VIEW_PIPELINES, VIEW_JOBS, VIEW_INCIDENTS };
enum view_style { STYLE_PLAIN, STYLE_TITLE, STYLE_HEAD, STYLE_BAD, STYLE_WARN };

struct view_line {
    struct slice text;
    enum view_style style;
};

struct view {
    struct arena *arena; // holds everything
    struct view_line *lines;
    uint32_t count, capacity;
};

// Two answers, and how far they lie apart; `before` may be NULL: there are no rates yet.
struct view_answers {
    const json_t *now, *before;
    double seconds;
};

// `columns`: how wide it will be shown (0: any width); VIEW_INCIDENTS goes on on further lines
// then.
struct view view_make(enum view_kind kind, const struct view_answers *answers, uint32_t columns,
                      struct arena *arena);
// As much of the text as fits into so many columns; with *more an ellipsis has to follow, and room
// is left for it.
struct slice view_cut(struct slice text, uint32_t columns, bool *more);

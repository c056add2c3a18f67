// SPDX-License-Identifier: Apache-2.0
// Text laid out on a terminal of a given width.
//
// Words are put on lines greedily; a word that is wider than a line stands alone on one. Widths are
// counted in columns. All composed texts live in the arena; linear in the text.
#include "exporters/report/text/layout.h"

#include "base/clock.h"
#include "base/text/display.h"
#include "base/text/human.h"
#include "base/text/utf8.h"
#include "pipeline/model/event.h"

#include <assert.h>

enum { FIELD_LABEL_WIDTH = 13, SHOWN_MAX = 64 * 1024 };

static const char *const color_codes[] = {
    [COLOR_NONE] = "",           [COLOR_CULPRIT] = "\x1b[1;31m", [COLOR_SUSPECT] = "\x1b[33m",
    [COLOR_GOOD] = "\x1b[1;32m", [COLOR_STRONG] = "\x1b[1m",     [COLOR_DIM] = "\x1b[2m",
};

void page_color(struct text_page *page, enum text_color color) {
    assert(page->out != NULL && (size_t)color < sizeof color_codes / sizeof color_codes[0]);
    if (page->style->color)
        buffer_append_text(page->out, color_codes[color]);
}

void page_color_end(struct text_page *page, enum text_color color) {
    if (page->style->color && color != COLOR_NONE)
        buffer_append(page->out, SLICE("\x1b[0m"));
}

void page_blank(struct text_page *page) {
    if (page->told == NULL)
        buffer_append_char(page->out, '\n');
}

static void spaces_append(struct buffer *out, size_t count) {
    for (; count > 0; count--)
        buffer_append_char(out, ' ');
}

// Words of `text`, the first of them at column `column`.
static void words_append(struct text_page *page, const char *text, size_t indent, size_t column) {
    assert(page->style->width > indent);
    bool line_is_empty = true;
    while (*text != '\0') {
        size_t size = strcspn(text, " ");
        size_t columns = display_columns((struct slice){text, size});
        if (!line_is_empty && column + 1 + columns > page->style->width) {
            buffer_append_char(page->out, '\n');
            spaces_append(page->out, indent);
            column = indent;
            line_is_empty = true;
        }
        if (!line_is_empty)
            buffer_append_char(page->out, ' ');
        buffer_append(page->out, (struct slice){text, size});
        column += columns + (line_is_empty ? 0 : 1);
        line_is_empty = false;
        text += size;
        text += strspn(text, " ");
    }
}

static void gather(struct text_page *page, struct told told) {
    struct told_list *list = page->told;
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        list->items = arena_enlarge(page->arena, list->items, list->count, list->capacity,
                                    sizeof *list->items);
    }
    list->items[list->count++] = told;
}

static void label_append(struct text_page *page, const char *label) {
    assert(strlen(label) < FIELD_LABEL_WIDTH - 2);
    buffer_append(page->out, SLICE("  "));
    page_color(page, COLOR_DIM);
    buffer_append_text(page->out, label);
    page_color_end(page, COLOR_DIM);
    spaces_append(page->out, FIELD_LABEL_WIDTH - 2 - strlen(label));
}

void page_tell(struct text_page *page, struct told told) {
    assert(told.text != NULL && (told.label != NULL) == (told.kind == TOLD_FIELD));
    if (page->told != NULL) {
        gather(page, told);
        return;
    }
    if (told.kind == TOLD_HEADING)
        page_blank(page);
    page_color(page, told.color);
    if (told.kind == TOLD_FIELD) {
        label_append(page, told.label);
        words_append(page, told.text, FIELD_LABEL_WIDTH, FIELD_LABEL_WIDTH);
    } else if (told.kind == TOLD_PARAGRAPH) {
        spaces_append(page->out, told.indent);
        words_append(page, told.text, told.indent, told.indent);
    } else {
        buffer_append_text(page->out, told.text);
    }
    page_color_end(page, told.color);
    buffer_append_char(page->out, '\n');
}

// A terminal without UTF-8 would take the bytes of other characters for something else. U+2026 is
// what a shortened text ends in.
static void ascii_append(struct buffer *out, struct slice text) {
    enum { ELLIPSIS = 0x2026 };
    for (size_t at = 0; at < text.size;) {
        uint32_t code_point = 0;
        size_t length = utf8_decode(text, at, &code_point);
        if (length > 1 && code_point == ELLIPSIS)
            buffer_append_text(out, "...");
        else if (length > 1)
            buffer_append_format(out, "\\u%04x", (unsigned)code_point);
        else
            buffer_append_char(out, text.data[at]);
        at += length == 0 ? 1 : length;
    }
}

const char *page_shown(struct text_page *page, struct slice text, size_t max) {
    assert(page->arena != NULL && page->style != NULL);
    struct buffer safe, plain;
    buffer_init(&safe, SHOWN_MAX);
    buffer_init(&plain, SHOWN_MAX);
    display_append(&safe, text, SHOWN_MAX / 8);
    struct slice shown = buffer_slice(&safe);
    if (!page->style->utf8) {
        ascii_append(&plain, shown);
        shown = buffer_slice(&plain);
    }
    const char *copy = arena_text(page->arena, shown);
    if (max > 0 && shown.size > max) {
        buffer_reset(&safe);
        display_append(&safe, slice_of(copy), max);
        buffer_reset(&plain);
        ascii_append(&plain, buffer_slice(&safe));
        copy = arena_text(page->arena, buffer_slice(page->style->utf8 ? &safe : &plain));
    }
    buffer_release(&safe);
    buffer_release(&plain);
    return copy;
}

const char *page_time(struct text_page *page, uint64_t unix_ns) {
    char text[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(unix_ns, text);
    text[10] = ' ';
    return arena_format(page->arena, "%.23s UTC", text);
}

const char *page_began(struct text_page *page, const struct verdict *verdict) {
    char text[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(verdict->start_ns, text);
    enum time_of time_of = verdict_time_of(verdict);
    if (time_of == TIME_OF_EVENT)
        return page_time(page, verdict->start_ns);
    if (time_of == TIME_OF_LINE_BEFORE)
        return arena_format(page->arena, "time not known (after %s, the time of a line before it)",
                            page_time(page, verdict->start_ns));
    return arena_format(page->arena, "time not known (%s %.10s %.5s UTC)",
                        time_of == TIME_OF_FILE ? "file last written" : "received", text,
                        text + 11);
}

const char *page_bytes(struct text_page *page, int64_t bytes) {
    char text[HUMAN_MAX];
    human_bytes(bytes, text);
    return arena_text(page->arena, slice_of(text));
}

const char *page_duration(struct text_page *page, __int128 duration_ns) {
    char text[HUMAN_MAX];
    human_duration(duration_ns, text);
    return arena_text(page->arena, slice_of(text));
}

// SPDX-License-Identifier: Apache-2.0
#include "receivers/kubernetes/lines.h"

#include "base/text/cut.h"

void watch_lines_init(struct watch_lines *lines, size_t line_max) {
    assert(line_max > 0);
    *lines = (struct watch_lines){.line_max = line_max};
    buffer_init(&lines->begun, line_max);
}

void watch_lines_release(struct watch_lines *lines) {
    buffer_release(&lines->begun);
}

void watch_lines_reset(struct watch_lines *lines) {
    buffer_reset(&lines->begun);
    lines->passing = false;
}

// Keeps the beginning of a line, or gives it up when it gets too long.
static void keep(struct watch_lines *lines, struct slice part) {
    assert(lines->begun.size <= lines->line_max);
    if (lines->passing || part.size == 0)
        return;
    if (part.size > lines->line_max - lines->begun.size) {
        lines->passing = true;
        lines->too_long++;
        buffer_reset(&lines->begun);
        return;
    }
    buffer_append(&lines->begun, part);
}

// The line that ends with `part`; empty when there is none to be given.
static struct slice complete(struct watch_lines *lines, struct slice part) {
    if (lines->begun.size == 0 && !lines->passing && part.size <= lines->line_max)
        return part;
    keep(lines, part);
    bool passing = lines->passing;
    lines->passing = false;
    return passing ? (struct slice){NULL, 0} : buffer_slice(&lines->begun);
}

bool watch_lines_take(struct watch_lines *lines, struct slice piece,
                      bool (*take)(void *context, struct slice line), void (*settle)(void *context),
                      void *context) {
    bool goes_on = true;
    assert(!lines->begun.failed);
    while (goes_on && piece.size > 0) {
        struct slice part = text_until(piece, '\n');
        if (part.size == piece.size) {
            keep(lines, part);
            break;
        }
        piece = text_from(piece, part.size + 1);
        struct slice line = text_trim(complete(lines, part));
        if (line.size > 0)
            goes_on = take(context, line);
        if (lines->begun.size > 0) {
            settle(context); // before its bytes are overwritten
            buffer_reset(&lines->begun);
        }
    }
    settle(context);
    return goes_on;
}

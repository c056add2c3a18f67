// SPDX-License-Identifier: Apache-2.0
// Collects what is wrong with a configuration, and where.
//
// Problems are kept in order of arrival and sorted once, when they are printed. At most
// PROBLEMS_MAX are kept; the last of them then says that there are more. Everything lies in the
// list's arena, so there is nothing to release.
#include "config/problem.h"

#include "base/sort.h"
#include "base/text/display.h"
#include "base/text/redact.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEMS_MAX = 200, PROBLEM_TEXT_MAX = 1024 };

void problem_list_init(struct problem_list *list, struct arena *arena) {
    assert(arena != NULL);
    *list = (struct problem_list){.arena = arena};
}

bool problem_list_full(const struct problem_list *list) {
    return list->count == PROBLEMS_MAX;
}

bool problem_list_names(const struct problem_list *list, const char *key) {
    assert(key != NULL);
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].key, key) == 0)
            return true;
    return false;
}

static struct problem *list_grow(struct problem_list *list) {
    assert(list->count <= list->capacity && list->count < PROBLEMS_MAX);
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        list->items = arena_enlarge(list->arena, list->items, list->count, list->capacity,
                                    sizeof *list->items);
    }
    return &list->items[list->count++];
}

// The file's name must outlive the text it was read from; few files, so the copies are shared.
static const char *kept_file(const struct problem_list *list, const char *file) {
    if (file == NULL)
        return NULL;
    for (uint32_t i = list->count; i > 0; i--) {
        const char *known = list->items[i - 1].where.file;
        if (known != NULL && strcmp(known, file) == 0)
            return known;
    }
    return arena_text(list->arena, slice_of(file));
}

static void list_append(struct problem_list *list, struct location where, const char *key,
                        const char *format, va_list arguments) {
    assert(list->arena != NULL && key != NULL);
    if (problem_list_full(list))
        return;
    char text[PROBLEM_TEXT_MAX];
    vsnprintf(text, sizeof text, format, arguments);
    redact_urls(text, sizeof text);
    bool full = list->count == PROBLEMS_MAX - 1;
    const char *kept = full ? "and more from here on; fix these first" : text;
    where.file = kept_file(list, where.file);
    struct problem problem = {.where = where,
                              .key = arena_text(list->arena, slice_of(full ? "" : key)),
                              .text = arena_text(list->arena, slice_of(kept))};
    *list_grow(list) = problem;
}

void problem_add(struct problem_list *list, const char *key, const char *format, ...) {
    const char *prefix = list->prefix == NULL ? "" : list->prefix;
    const char *path = arena_format(list->arena, "%s%s", prefix, key);
    struct location where = {0};
    if (list->locate != NULL)
        where = list->locate(list->locate_context, path);
    va_list arguments;
    va_start(arguments, format);
    list_append(list, where, path, format, arguments);
    va_end(arguments);
}

void problem_add_at(struct problem_list *list, struct location where, const char *key,
                    const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    list_append(list, where, key, format, arguments);
    va_end(arguments);
}

// The command line comes last, as it is applied last.
static int location_compare(struct location a, struct location b) {
    if (a.file == NULL || b.file == NULL)
        return COMPARE(a.file == NULL, b.file == NULL);
    return COMPARE_KEYS(strcmp(a.file, b.file), COMPARE(a.line, b.line),
                        COMPARE(a.column, b.column));
}

// Insertion sort: stable, and the list is short.
static void list_sort(struct problem_list *list) {
    for (uint32_t i = 1; i < list->count; i++) {
        struct problem moved = list->items[i];
        uint32_t at = i;
        for (; at > 0 && location_compare(list->items[at - 1].where, moved.where) > 0; at--)
            list->items[at] = list->items[at - 1];
        list->items[at] = moved;
    }
}

static void location_print(struct location where, struct buffer *out) {
    if (where.file == NULL) {
        buffer_append_text(out, "--set: ");
        return;
    }
    display_append(out, slice_of(where.file), 0);
    buffer_append_format(out, ":%u:%u: ", where.line, where.column);
}

void problem_list_print(struct problem_list *list, struct buffer *out) {
    assert(out != NULL);
    list_sort(list);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct problem *problem = &list->items[i];
        location_print(problem->where, out);
        if (problem->key[0] != '\0') {
            display_append(out, slice_of(problem->key), 0);
            buffer_append_text(out, ": ");
        }
        display_append(out, slice_of(problem->text), 0);
        buffer_append_char(out, '\n');
    }
}

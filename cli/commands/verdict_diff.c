// SPDX-License-Identifier: Apache-2.0
// Compares two lists of verdicts, line by line and field by field.
//
// Lines are parsed, sorted by (id, line) on both sides and walked together, so the cost is
// n log n in the lines. The fields of a pair are compared by their compact JSON text; a list is
// compared item by item. Memory: both lists as parsed documents.
#include "cli/commands/verdict_diff.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/cut.h"
#include "base/text/display.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>

enum { VALUE_SHOWN_MAX = 600 };

struct verdict_line {
    struct slice text; // without its newline
    uint32_t number;   // 1-based
    json_t *json;
    const char *id; // in `json`
    uint32_t nth;   // of the lines with this id
};

struct verdict_lines {
    struct verdict_line *items;
    uint32_t count;
    uint32_t capacity;
};

static void lines_release(struct verdict_lines *lines) {
    for (uint32_t i = 0; i < lines->count; i++)
        json_decref(lines->items[i].json);
    memory_give(lines->items);
}

static enum status line_parse(struct verdict_line *line, const char *name, struct error *error) {
    json_error_t json_error;
    line->json = json_loadb(line->text.data, line->text.size, JSON_ALLOW_NUL, &json_error);
    if (line->json == NULL)
        return error_set(error, STATUS_BAD_DATA, "%s:%u: not valid JSON: %s", name, line->number,
                         json_error.text);
    line->id = json_string_value(json_object_get(line->json, "id"));
    if (line->id == NULL)
        return error_set(error, STATUS_BAD_DATA,
                         "%s:%u: not a verdict: expected an object with an id", name, line->number);
    return STATUS_OK;
}

static int by_id_then_number(const void *a, const void *b) {
    const struct verdict_line *left = a, *right = b;
    return COMPARE_KEYS(strcmp(left->id, right->id), COMPARE(left->number, right->number));
}

// Blank lines are passed over; the lines come out sorted by (id, number).
static enum status lines_parse(struct verdict_lines *lines, struct slice text, const char *name,
                               struct error *error) {
    *lines = (struct verdict_lines){0};
    for (uint32_t number = 1; text.size > 0; number++) {
        if (number > VERDICT_LINES_MAX)
            return error_set(error, STATUS_LIMIT, "%s has more than %d lines", name,
                             (int)VERDICT_LINES_MAX);
        struct slice line = text_take_line(&text);
        if (line.size == 0)
            continue;
        lines->items =
            memory_room(lines->items, &lines->capacity, lines->count, sizeof *lines->items);
        lines->items[lines->count] = (struct verdict_line){.text = line, .number = number};
        enum status status = line_parse(&lines->items[lines->count++], name, error);
        if (status != STATUS_OK)
            return status;
    }
    if (lines->count > 1)
        qsort(lines->items, lines->count, sizeof *lines->items, by_id_then_number);
    for (uint32_t i = 1; i < lines->count; i++)
        if (strcmp(lines->items[i].id, lines->items[i - 1].id) == 0)
            lines->items[i].nth = lines->items[i - 1].nth + 1;
    return STATUS_OK;
}

// -- one pair -----------------------------------------------------------------------------------

static void print_side(struct buffer *out, char sign, const char *path, size_t index,
                       const json_t *value) {
    if (value == NULL)
        return;
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    buffer_append_format(out, "  %c ", sign);
    display_append(out, slice_of(path), 0);
    if (index != SIZE_MAX)
        buffer_append_format(out, "[%zu]", index);
    buffer_append_text(out, ": ");
    display_append(out, slice_of(text == NULL ? "" : text), VALUE_SHOWN_MAX);
    buffer_append_char(out, '\n');
    memory_give(text);
}

static bool diff_value(struct buffer *out, const char *path, size_t index, const json_t *expected,
                       const json_t *got) {
    if (expected != NULL && got != NULL && json_equal(expected, got))
        return false;
    print_side(out, '-', path, index, expected);
    print_side(out, '+', path, index, got);
    return true;
}

static bool diff_field(struct buffer *out, const char *key, const json_t *expected,
                       const json_t *got) {
    if (!json_is_array(expected) || !json_is_array(got))
        return diff_value(out, key, SIZE_MAX, expected, got);
    bool differs = false;
    size_t expected_size = json_array_size(expected), got_size = json_array_size(got);
    for (size_t i = 0; i < expected_size || i < got_size; i++)
        differs |= diff_value(out, key, i, json_array_get(expected, i), json_array_get(got, i));
    return differs;
}

// The fields in the order of the expected verdict, then those that are new.
static bool diff_object(struct buffer *out, const char *prefix, json_t *expected, json_t *got) {
    bool differs = false;
    const char *key;
    json_t *value;
    char path[512];
    json_object_foreach(expected, key, value) {
        snprintf(path, sizeof path, "%s%s", prefix, key);
        json_t *other = json_object_get(got, key);
        bool nested = json_is_object(value) && json_is_object(other) && prefix[0] == '\0';
        if (nested) {
            char inner[512];
            snprintf(inner, sizeof inner, "%.*s.", (int)sizeof inner - 2, key);
            differs |= diff_object(out, inner, value, other);
        } else {
            differs |= diff_field(out, path, value, other);
        }
    }
    json_object_foreach(got, key, value) {
        snprintf(path, sizeof path, "%s%s", prefix, key);
        if (json_object_get(expected, key) == NULL)
            differs |= diff_field(out, path, NULL, value);
    }
    return differs;
}

static void print_heading(struct buffer *out, const char *what, const struct verdict_line *line) {
    buffer_append_format(out, "%s: ", what);
    display_append(out, slice_of(line->id), 0);
    const char *state = json_string_value(json_object_get(line->json, "state"));
    if (line->nth > 0 && state != NULL) {
        buffer_append_format(out, ", line %u of it (", line->nth + 1);
        display_append(out, slice_of(state), 0);
        buffer_append_char(out, ')');
    }
    buffer_append_char(out, '\n');
}

static void print_alone(struct buffer *out, const char *what, char sign,
                        const struct verdict_line *line) {
    print_heading(out, what, line);
    print_side(out, sign, "severity", SIZE_MAX, json_object_get(line->json, "severity"));
    print_side(out, sign, "headline", SIZE_MAX, json_object_get(line->json, "headline"));
}

static void diff_pair(struct verdict_diff *diff, struct buffer *out,
                      const struct verdict_line *expected, const struct verdict_line *got) {
    assert(strcmp(expected->id, got->id) == 0 && expected->nth == got->nth);
    if (slice_equal(expected->text, got->text))
        return;
    diff->differing++;
    print_heading(out, "differs", expected);
    if (!diff_object(out, "", expected->json, got->json))
        buffer_append_text(out, "  the fields are equal but written in another order or spacing\n");
}

// -- both lists ---------------------------------------------------------------------------------

static int compare_lines(const struct verdict_line *a, const struct verdict_line *b) {
    assert(a->id != NULL && b->id != NULL);
    return COMPARE_KEYS(strcmp(a->id, b->id), COMPARE(a->nth, b->nth));
}

static void diff_lines(struct verdict_diff *diff, struct buffer *out,
                       const struct verdict_lines *expected, const struct verdict_lines *got) {
    uint32_t e = 0, g = 0;
    while (e < expected->count || g < got->count) {
        int order = e == expected->count ? 1
                    : g == got->count    ? -1
                                         : compare_lines(&expected->items[e], &got->items[g]);
        if (order == 0) {
            diff_pair(diff, out, &expected->items[e++], &got->items[g++]);
        } else if (order < 0) {
            diff->missing++;
            print_alone(out, "missing", '-', &expected->items[e++]);
        } else {
            diff->unexpected++;
            print_alone(out, "unexpected", '+', &got->items[g++]);
        }
    }
}

enum status verdict_diff_compare(struct verdict_diff *diff, struct buffer *out,
                                 struct slice expected, const char *expected_name, struct slice got,
                                 struct error *error) {
    json_set_alloc_funcs(memory_take, memory_give);
    struct verdict_lines wanted = {0}, found = {0};
    *diff = (struct verdict_diff){0};
    enum status status = lines_parse(&wanted, expected, expected_name, error);
    if (status == STATUS_OK)
        status = lines_parse(&found, got, "(verdicts)", error);
    if (status == STATUS_OK) {
        diff->expected_count = wanted.count;
        diff->got_count = found.count;
        diff->equal = slice_equal(expected, got);
        diff_lines(diff, out, &wanted, &found);
        if (!diff->equal && diff->differing + diff->missing + diff->unexpected == 0)
            buffer_append_text(out,
                               "the same verdicts, but in another order or with other line "
                               "ends\n");
    }
    lines_release(&wanted);
    lines_release(&found);
    return status;
}

// SPDX-License-Identifier: Apache-2.0
// Reads and checks single values of a span event.
#include "receivers/decode/spans/read.h"

#include "base/sort.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { FIELD_TEXT = 96 };

// "tasks[3].group", "span.ids", "actions[0]".
static struct slice field_path(const struct span_line *line, const char *field,
                               char text[static FIELD_TEXT]) {
    int size = 0;
    if (line->list == NULL)
        return slice_of(field);
    size = snprintf(text, FIELD_TEXT, "%s[%u]%s%s", line->list, line->index,
                    field[0] == '\0' ? "" : ".", field);
    return (struct slice){text, (size_t)size};
}

bool span_refuse(struct span_line *line, enum span_refusal refusal, enum decode_category category,
                 const char *field, const char *format, ...) {
    assert(refusal != SPAN_ACCEPTED);
    char path[FIELD_TEXT], detail[DECODE_DETAIL_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    fault_set(line->fault, category, field_path(line, field, path), "%s: %s",
              span_refusal_name(refusal), detail);
    line->event->refused = refusal;
    return false;
}

static bool refuse_found(struct span_line *line, enum span_refusal refusal,
                         enum decode_category category, const char *field,
                         const struct token *found, const char *expected) {
    char detail[DECODE_DETAIL_MAX];
    fault_type(line->fault, SLICE(""), found, expected);
    memcpy(detail, line->fault->detail, sizeof detail);
    return span_refuse(line, refusal, category, field, "%s", detail);
}

bool span_refuse_value(struct span_line *line, enum span_refusal refusal, const char *field,
                       const struct token *found, const char *expected) {
    if (found->kind == TOKEN_NONE)
        return span_refuse(line, refusal, DECODE_MISSING_FIELD, field, "not there, expected %s",
                           expected);
    return refuse_found(line, refusal, DECODE_WRONG_TYPE, field, found, expected);
}

bool span_refuse_choice(struct span_line *line, enum span_refusal refusal, const char *field,
                        const struct token *found, const char *choices) {
    return refuse_found(line, refusal, DECODE_OUT_OF_RANGE, field, found, choices);
}

bool span_read_text(struct span_line *line, enum span_refusal refusal, const char *field,
                    const struct token *token, bool may_be_empty, struct slice *out) {
    if (token->kind != TOKEN_STRING)
        return span_refuse_value(line, refusal, field, token, "a text");
    *out = token_decode(token, line->arena);
    if (out->size == 0 && !may_be_empty)
        return span_refuse(line, refusal, DECODE_EMPTY_STRING, field,
                           "found an empty text, expected one that is not");
    if (token->escaped && memchr(out->data, '\0', out->size) != NULL)
        return span_refuse(line, refusal, DECODE_OUT_OF_RANGE, field,
                           "found a text with the character U+0000, expected one without");
    return true;
}

bool span_read_count(struct span_line *line, const char *field, const struct token *token,
                     int64_t *out) {
    if (token->kind != TOKEN_INTEGER)
        return span_refuse_value(line, SPAN_BAD_FIELD, field, token, "an integer from 0 up");
    if (token->integer < 0)
        return span_refuse(line, SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, field,
                           "found %lld, expected an integer from 0 up", (long long)token->integer);
    *out = token->integer;
    return true;
}

bool span_token_is_number(const struct token *token) {
    return token->kind == TOKEN_INTEGER || token->kind == TOKEN_DECIMAL;
}

uint32_t span_count_items(const struct token *array) {
    struct json_items items = json_items_of(array);
    struct token item;
    uint32_t count = 0;
    while (json_items_next(&items, &item))
        count++;
    return count;
}

void *span_grow(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size,
                const struct token *array) {
    assert(count <= *capacity && array->kind == TOKEN_ARRAY);
    enum { FEW = 4, SOME = 16 };
    if (count < *capacity)
        return items;
    *capacity = count == 0 ? FEW : count == FEW ? SOME : span_count_items(array);
    void *more = arena_take(arena, *capacity * size);
    if (count > 0)
        memcpy(more, items, count * size);
    return more;
}

// -- equal texts --------------------------------------------------------------------------------

// Up to here every two are compared: no memory, and soonest done.
enum { FEW_TEXTS = 16, STEPS_A_TEXT = 4 };

typedef struct slice (*text_getter)(const void *texts, uint32_t index);

static uint64_t load_word(const char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

// Different ones have different texts; names that are counted differ in their last bytes.
static uint32_t mark_of(struct slice text) {
    uint64_t word = text.size;
    if (text.size >= sizeof word)
        word += load_word(text.data) * UINT64_C(0x9e6c63d0876a9a47) ^
                load_word(text.data + text.size - sizeof word);
    else
        for (size_t i = 0; i < text.size; i++)
            word = word << 8 ^ (unsigned char)text.data[i];
    return (uint32_t)(word * UINT64_C(0xa24baed4963ee407) >> 32);
}

static void find_firsts_of_few(text_getter text_of, const void *texts, uint32_t count,
                               uint32_t *firsts) {
    uint32_t marks[FEW_TEXTS];
    assert(count <= FEW_TEXTS);
    for (uint32_t i = 0; i < count; i++) {
        marks[i] = mark_of(text_of(texts, i));
        firsts[i] = i;
        for (uint32_t j = 0; j < i && firsts[i] == i; j++)
            if (marks[j] == marks[i] && slice_equal(text_of(texts, i), text_of(texts, j)))
                firsts[i] = j;
    }
}

// By a table of their marks. False: too many have the same one, as they can be made to have.
static bool find_firsts_marked(text_getter text_of, const void *texts, uint32_t count,
                               uint32_t *firsts, struct arena *arena) {
    struct marked {
        uint32_t mark, number; // index, plus 1; 0: free
    };
    uint64_t slot_count = FEW_TEXTS, steps = (uint64_t)count * STEPS_A_TEXT;
    while (slot_count < (uint64_t)count * 2)
        slot_count *= 2;
    struct marked *slots = arena_zero(arena, slot_count, sizeof *slots);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t mark = mark_of(text_of(texts, i));
        uint64_t at = mark & (slot_count - 1);
        for (; slots[at].number != 0; at = (at + 1) & (slot_count - 1)) {
            if (slots[at].mark == mark &&
                slice_equal(text_of(texts, i), text_of(texts, slots[at].number - 1)))
                break;
            if (steps-- == 0)
                return false;
        }
        if (slots[at].number == 0)
            slots[at] = (struct marked){mark, i + 1};
        firsts[i] = slots[at].number - 1;
    }
    return true;
}

struct placed_text {
    struct slice text;
    uint32_t index;
};

static int compare_placed(const void *a, const void *b) {
    return slice_compare(((const struct placed_text *)a)->text,
                         ((const struct placed_text *)b)->text);
}

static void find_firsts_of_many(const struct placed_text *sorted, uint32_t count,
                                uint32_t *firsts) {
    for (uint32_t i = 0; i < count; i++) {
        bool equal = i > 0 && slice_equal(sorted[i].text, sorted[i - 1].text);
        firsts[sorted[i].index] = equal ? firsts[sorted[i - 1].index] : sorted[i].index;
    }
}

static void find_firsts_sorted(text_getter text_of, const void *texts, uint32_t count,
                               uint32_t *firsts, struct arena *arena) {
    struct placed_text *sorted = arena_take(arena, count * sizeof *sorted);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = (struct placed_text){text_of(texts, i), i};
    sort_stable(sorted, count, sizeof *sorted, arena, compare_placed);
    find_firsts_of_many(sorted, count, firsts);
}

void span_find_firsts(text_getter text_of, const void *texts, uint32_t count, uint32_t *firsts,
                      struct arena *arena) {
    if (count <= FEW_TEXTS)
        find_firsts_of_few(text_of, texts, count, firsts);
    else if (!find_firsts_marked(text_of, texts, count, firsts, arena))
        find_firsts_sorted(text_of, texts, count, firsts, arena);
}

// -- JSON text ----------------------------------------------------------------------------------

// A quote, a backslash or a control character, which NUL is not.
static size_t write_escape(char *out, char c) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", digits[] = "0123456789abcdef";
    const char *found = strchr(from, c);
    if (found != NULL) {
        out[0] = '\\';
        out[1] = to[found - from];
        return 2;
    }
    memcpy(out, "\\u00", 4);
    out[4] = digits[c >> 4];
    out[5] = digits[c & 15];
    return 6;
}

size_t span_write_text(char *out, const struct token *token, struct arena *arena) {
    size_t size = 0;
    out[size++] = '"';
    if (token->escaped) {
        struct slice text = token_decode(token, arena);
        for (size_t i = 0; i < text.size; i++) {
            char c = text.data[i];
            if ((unsigned char)c >= ' ' && c != '"' && c != '\\')
                out[size++] = c;
            else
                size += write_escape(out + size, c);
        }
    } else {
        memcpy(out + size, token->text, token->size);
        size += token->size;
    }
    out[size++] = '"';
    return size;
}

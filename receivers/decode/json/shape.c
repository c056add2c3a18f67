// SPDX-License-Identifier: Apache-2.0
// Reads the wanted values of an object. Keys are few, so they are looked up by comparing sizes
// and bytes one after another; what is not wanted is skipped by the scanner.
#include "receivers/decode/json/shape.h"

#include <assert.h>

static const struct json_shape_row *find_row(const struct json_shape *shape,
                                             const struct token *key) {
    for (uint32_t i = 0; i < shape->count; i++)
        if (token_equals(key, shape->rows[i].key))
            return &shape->rows[i];
    return NULL;
}

static const char *read_value(const struct json_shape_row *row, const char *at, const char *end,
                              unsigned depth, struct token *slots, struct json_fault *fault) {
    struct token value;
    const struct json_shape *inner = row == NULL ? NULL : row->inner;
    if (inner == NULL || json_peek(at, end) != '{') {
        const char *after = json_scan_value(at, end, depth + 1, &value, fault);
        if (after != NULL && row != NULL && row->slot != JSON_NO_SLOT)
            slots[row->slot] = value;
        return after;
    }
    const char *after = json_shape_read(inner, at, end, depth + 1, slots, fault);
    if (after != NULL && row->slot != JSON_NO_SLOT)
        slots[row->slot] =
            (struct token){.text = at, .size = (size_t)(after - at), .kind = TOKEN_OBJECT};
    return after;
}

const char *json_shape_read(const struct json_shape *shape, const char *at, const char *end,
                            unsigned depth, struct token *slots, struct json_fault *fault) {
    struct json_members members = {.first = true};
    struct token key;
    while ((at = json_next_member(&members, at, end, &key, fault)) != NULL && !members.done)
        at = read_value(find_row(shape, &key), at, end, depth, slots, fault);
    return at;
}

bool json_shape_read_all(const struct json_shape *shape, struct slice text, struct token *slots,
                         struct json_fault *fault) {
    *fault = (struct json_fault){.at = text.data};
    if (text.size == 0)
        return false;
    const char *end = text.data + text.size;
    const char *at = json_skip_space(text.data, end);
    if (json_peek(at, end) != '{')
        return false;
    at = json_shape_read(shape, at, end, 0, slots, fault);
    return json_read_end(at, end, fault) != NULL;
}

struct json_items json_items_of(const struct token *array) {
    assert(array->kind == TOKEN_ARRAY);
    return (struct json_items){array->text, array->text + array->size, false};
}

bool json_items_next(struct json_items *items, struct token *item) {
    struct json_fault fault;
    const char *at = items->at, *end = items->end;
    if (at == NULL)
        return false;
    at = json_skip_space(at, end);
    unsigned char c = json_peek(at, end);
    items->at = NULL;
    if (c != (items->started ? ',' : '['))
        return false;
    at = json_skip_space(at + 1, end);
    if (!items->started && json_peek(at, end) == ']')
        return false;
    items->started = true;
    items->at = json_scan_value(at, end, 1, item, &fault);
    return items->at != NULL;
}

struct json_pairs json_pairs_of(struct slice object) {
    const char *end = object.data + object.size;
    const char *at = json_skip_space(object.data, end);
    assert(json_peek(at, end) == '{');
    return (struct json_pairs){at, end, {.first = true}};
}

bool json_pairs_next(struct json_pairs *pairs, struct token *key, struct token *value) {
    struct json_fault fault;
    if (pairs->at != NULL)
        pairs->at = json_next_member(&pairs->members, pairs->at, pairs->end, key, &fault);
    if (pairs->at == NULL || pairs->members.done)
        return false;
    pairs->at = json_scan_value(pairs->at, pairs->end, 0, value, &fault);
    return pairs->at != NULL;
}

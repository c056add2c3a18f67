// SPDX-License-Identifier: Apache-2.0
// What does an object say under each key, as text?
//
// Members are found by counting brackets outside of strings; nothing else of a value is looked at.
// Keys are compared in the form that json_append_string gives them. Hashing: open
// addressing. Memory: at most WANDB_VALUES_BYTES_MAX of keys and values.
#include "exporters/wandb/members.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include "base/text/json_write.h"

#include <jansson.h>
#include <stdlib.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t blanks_end(struct slice text, size_t at) {
    while (at < text.size && is_blank(text.data[at]))
        at++;
    return at;
}

// Behind the string that begins at `at`; 0 when it does not end.
static size_t string_end(struct slice text, size_t at) {
    for (at++; at < text.size; at++) {
        if (text.data[at] == '"')
            return at + 1;
        if (text.data[at] == '\\')
            at++;
    }
    return 0;
}

// Behind the value that begins at `at`; 0 when it does not end as it should.
static size_t value_end(struct slice text, size_t at) {
    unsigned depth = 0;
    while (at < text.size) {
        char c = text.data[at];
        if (c == '"') {
            at = string_end(text, at);
            if (at == 0)
                return 0;
            continue;
        }
        if (c == ',' && depth == 0)
            break;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth-- == 0)
            return 0;
        at++;
    }
    return depth == 0 ? at : 0;
}

bool wandb_member_next(struct slice *members, struct slice *key, struct slice *value) {
    struct slice text = *members;
    size_t at = blanks_end(text, 0);
    if (at < text.size && text.data[at] == ',')
        at = blanks_end(text, at + 1);
    if (at >= text.size || text.data[at] != '"')
        return false;
    size_t key_at = at;
    size_t key_end = string_end(text, at);
    at = key_end == 0 ? text.size : blanks_end(text, key_end);
    if (at >= text.size || text.data[at] != ':')
        return false;
    size_t value_at = blanks_end(text, at + 1);
    size_t end = value_end(text, value_at);
    if (end == 0)
        return false;
    *members = (struct slice){text.data + end, text.size - end};
    while (end > value_at && is_blank(text.data[end - 1]))
        end--;
    *key = (struct slice){text.data + key_at, key_end - key_at};
    *value = (struct slice){text.data + value_at, end - value_at};
    return value->size > 0;
}

struct slice wandb_object_inside(struct slice text) {
    size_t begin = blanks_end(text, 0), end = text.size;
    while (end > begin && is_blank(text.data[end - 1]))
        end--;
    if (end - begin < 2 || text.data[begin] != '{' || text.data[end - 1] != '}')
        return (struct slice){"", 0};
    return (struct slice){text.data + begin + 1, end - begin - 2};
}

struct slice wandb_member_find(struct slice members, const char *key) {
    struct slice name, value, wanted = slice_of(key);
    while (wandb_member_next(&members, &name, &value))
        if (slice_equal((struct slice){name.data + 1, name.size - 2}, wanted))
            return value;
    return (struct slice){"", 0};
}

double wandb_member_number_or(struct slice members, const char *key, double otherwise) {
    struct slice value = wandb_member_find(members, key);
    char text[64], *end;
    if (value.size == 0 || value.size >= sizeof text)
        return otherwise;
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
    double number = strtod(text, &end);
    return *end == '\0' && number - number == 0 ? number : otherwise;
}

// -- values by key --------------------------------------------------------------------------------

void wandb_values_release(struct wandb_values *values) {
    for (uint32_t i = 0; i < values->count; i++) {
        memory_give(values->items[i].key);
        memory_give(values->items[i].text);
    }
    memory_give(values->items);
    memory_give(values->slots);
    *values = (struct wandb_values){0};
}

// Where the key's index stands, or would stand. There is always a free slot.
static uint32_t *slot_of(const struct wandb_values *values, struct slice key) {
    for (uint32_t at = hash_folded(hash_slice(key));; at++) {
        uint32_t *slot = &values->slots[at & (values->slot_count - 1)];
        if (*slot == 0)
            return slot;
        const struct wandb_value *item = &values->items[*slot - 1];
        if (slice_equal((struct slice){item->key, item->key_size}, key))
            return slot;
    }
}

static void grow(struct wandb_values *values) {
    values->capacity = values->capacity == 0 ? 32 : values->capacity * 2;
    values->items = memory_resize(values->items, values->capacity * sizeof *values->items);
    memory_give(values->slots);
    values->slot_count = values->capacity * 2;
    values->slots = memory_zero(values->slot_count, sizeof *values->slots);
    for (uint32_t i = 0; i < values->count; i++)
        *slot_of(values, (struct slice){values->items[i].key, values->items[i].key_size}) = i + 1;
}

static bool set_plain(struct wandb_values *values, struct slice key, struct slice value) {
    uint64_t more = key.size + value.size;
    if (values->count == values->capacity)
        grow(values);
    uint32_t *slot = slot_of(values, key);
    if (*slot == 0) {
        if (value.size == 0)
            return true;
        if (values->bytes + more > WANDB_VALUES_BYTES_MAX || values->count >= WANDB_VALUES_MAX)
            return false;
        values->items[values->count] = (struct wandb_value){
            .key = memory_copy_text(key.data, key.size), .key_size = (uint32_t)key.size};
        *slot = ++values->count;
        values->bytes += key.size;
    }
    struct wandb_value *item = &values->items[*slot - 1];
    if (values->bytes - item->text_size + value.size > WANDB_VALUES_BYTES_MAX)
        return false;
    values->bytes += value.size - item->text_size;
    if (value.size > item->text_capacity) {
        item->text_capacity = (uint32_t)value.size + 16;
        item->text = memory_resize(item->text, item->text_capacity);
    }
    if (value.size > 0)
        memcpy(item->text, value.data, value.size);
    item->text_size = (uint32_t)value.size;
    return true;
}

bool wandb_values_set(struct wandb_values *values, struct slice key, struct slice value) {
    bool plain = memchr(key.data, '\\', key.size) == NULL;
    for (size_t i = 0; plain && i < key.size; i++)
        plain = key.data[i] >= ' ' && key.data[i] <= '~';
    if (plain)
        return set_plain(values, key, value);
    // Written another way by the server, it is still the same key.
    json_t *decoded = json_loadb(key.data, key.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!json_is_string(decoded)) {
        json_decref(decoded);
        return set_plain(values, key, value);
    }
    struct buffer text;
    buffer_init(&text, 1 << 20);
    json_append_string(&text,
                       (struct slice){json_string_value(decoded), json_string_length(decoded)});
    bool fits = !text.failed && set_plain(values, buffer_slice(&text), value);
    buffer_release(&text);
    json_decref(decoded);
    return fits;
}

bool wandb_values_apply(struct wandb_values *values, struct slice members, bool explicit_update) {
    struct slice key, value;
    bool fits = true;
    while (wandb_member_next(&members, &key, &value)) {
        bool removes = explicit_update &&
                       (slice_equal(value, SLICE("null")) || slice_equal(value, SLICE("NaN")));
        fits = wandb_values_set(values, key, removes ? (struct slice){"", 0} : value) && fits;
    }
    return fits;
}

void wandb_values_append(const struct wandb_values *values, struct buffer *out) {
    char before = '{';
    for (uint32_t i = 0; i < values->count; i++) {
        const struct wandb_value *item = &values->items[i];
        if (item->text_size == 0)
            continue;
        buffer_append_char(out, before);
        buffer_append(out, (struct slice){item->key, item->key_size});
        buffer_append_char(out, ':');
        buffer_append(out, (struct slice){item->text, item->text_size});
        before = ',';
    }
    if (before == '{')
        buffer_append_char(out, '{');
    buffer_append_char(out, '}');
}

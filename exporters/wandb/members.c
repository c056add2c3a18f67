// SPDX-License-Identifier: Apache-2.0
// Reads the members of JSON objects as text, and keeps the last value of each key.
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

double wandb_number_or(struct slice value, double otherwise) {
    char text[64], *end;
    if (value.size == 0 || value.size >= sizeof text)
        return otherwise;
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
    double number = strtod(text, &end);
    return *end == '\0' && number - number == 0 ? number : otherwise;
}

double wandb_member_number_or(struct slice members, const char *key, double otherwise) {
    return wandb_number_or(wandb_member_find(members, key), otherwise);
}

// -- values by key --------------------------------------------------------------------------------

void wandb_values_release(struct wandb_values *values) {
    for (uint32_t i = 0; i < values->count; i++) {
        memory_give(values->items[i].key);
        memory_give(values->items[i].text);
    }
    memory_give(values->items);
    hash_index_release(&values->index);
    *values = (struct wandb_values){0};
}

static struct wandb_value *value_find(const struct wandb_values *values, struct slice key) {
    uint32_t probe = 0, found;
    uint64_t hash = hash_slice(key);
    while ((found = hash_index_next(&values->index, hash, &probe)) != HASH_INDEX_NONE) {
        struct wandb_value *item = &values->items[found];
        if (slice_equal((struct slice){item->key, item->key_size}, key))
            return item;
    }
    return NULL;
}

static bool set_plain(struct wandb_values *values, struct slice key, struct slice value) {
    assert(values->bytes <= WANDB_VALUES_BYTES_MAX && values->count <= values->capacity);
    struct wandb_value *item = value_find(values, key);
    if (item == NULL) {
        if (value.size == 0)
            return true;
        if (values->bytes + key.size + value.size > WANDB_VALUES_BYTES_MAX ||
            values->count >= WANDB_VALUES_MAX)
            return false;
        values->items = memory_room(values->items, &values->capacity, values->count, sizeof *item);
        item = &values->items[values->count];
        *item = (struct wandb_value){.key = memory_copy_text(key.data, key.size),
                                     .key_size = (uint32_t)key.size};
        hash_index_add(&values->index, hash_slice(key), values->count++);
        values->bytes += key.size;
    }
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
    assert(values->bytes <= WANDB_VALUES_BYTES_MAX);
    return true;
}

bool wandb_values_set(struct wandb_values *values, struct slice key, struct slice value) {
    assert(key.size >= 2 && key.data[0] == '"');
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

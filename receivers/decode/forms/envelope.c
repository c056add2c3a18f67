// SPDX-License-Identifier: Apache-2.0
// Each key makes its path's hash longer; a table knows the paths of all rows and what leads to
// them, so that everything else is passed over unseen.
#include "receivers/decode/forms/envelope.h"

#include "base/hash/hash.h"
#include "base/text/cut.h"
#include "receivers/decode/json/scan.h"

#include <assert.h>
#include <stdio.h>

enum { WORD_BITS = 64, WORDS = FORMS_PATHS_MAX / WORD_BITS + 1, TAGS_MAX = 64 };

struct path_entry {
    struct slice path; // data NULL: free
    uint64_t hash;
    uint16_t id;
    bool is_value; // some row asks for it
    bool is_inner; // … for something that stands in it
};

struct row {
    const struct form *form;
    uint16_t *ids; // as form->paths
    uint64_t needs[WORDS], messages[WORDS];
};

struct envelopes {
    struct path_entry *table;
    uint32_t mask;
    uint32_t words; // of `needs` and `messages` that are used
    struct row *rows;
    uint32_t row_count;
    uint16_t words_ids[16]; // of keys as those of messages; UINT16_MAX ends them
};

// Under which keys programs write what they say.
static const struct slice WORD_KEYS[] = {
    {"message", 7},        {"msg", 3},      {"log", 3},  {"text", 4}, {"MESSAGE", 7},
    {"Message", 7},        {"@message", 8}, {"body", 4}, {"line", 4}, {"content", 7},
    {"short_message", 13}, {"_msg", 4}};
enum { WORD_KEY_COUNT = sizeof WORD_KEYS / sizeof *WORD_KEYS };

// -- making ---------------------------------------------------------------------------------------

static struct path_entry *entry_of(const struct envelopes *envelopes, struct slice path) {
    uint64_t hash = hash_slice(path);
    uint32_t at = hash_folded(hash) & envelopes->mask;
    while (envelopes->table[at].path.data != NULL && !slice_equal(envelopes->table[at].path, path))
        at = (at + 1) & envelopes->mask;
    envelopes->table[at].path = path;
    envelopes->table[at].hash = hash;
    return &envelopes->table[at];
}

static uint16_t add_path(struct envelopes *envelopes, struct slice path, uint16_t *count) {
    struct path_entry *entry = entry_of(envelopes, path);
    if (!entry->is_value)
        entry->id = (*count)++;
    entry->is_value = true;
    for (size_t i = 1; i < path.size; i++)
        if (path.data[i] == '.')
            entry_of(envelopes, (struct slice){path.data, i})->is_inner = true;
    return entry->id;
}

static void set_bit(uint64_t *bits, uint16_t id) {
    bits[id / WORD_BITS] |= UINT64_C(1) << id % WORD_BITS;
}

static void add_row(struct envelopes *envelopes, const struct form *form, uint16_t *count,
                    struct arena *arena) {
    struct row *row = &envelopes->rows[envelopes->row_count++];
    bool has_list = false;
    *row = (struct row){.form = form, .ids = arena_zero(arena, form->path_count, sizeof(uint16_t))};
    for (uint32_t i = 0; i < form->path_count; i++) {
        enum form_target target = form->paths[i].target;
        bool first_list = target == TARGET_LIST && !has_list;
        row->ids[i] = add_path(envelopes, form->paths[i].path, count);
        has_list = has_list || first_list;
        if (target == TARGET_NEEDS || first_list)
            set_bit(row->needs, row->ids[i]);
    }
    for (uint32_t i = 0; i < form->path_count && !has_list; i++)
        if (form->paths[i].target == TARGET_MESSAGE)
            set_bit(row->messages, row->ids[i]);
}

// How many entries the table may get: each path, and what leads to it.
static uint32_t entries_of(const struct form_rows *rows) {
    uint32_t entries = WORD_KEY_COUNT;
    for (uint32_t i = 0; i < rows->count; i++)
        for (uint32_t k = 0; k < rows->forms[i]->path_count; k++, entries++)
            for (size_t at = 0; at < rows->forms[i]->paths[k].path.size; at++)
                entries += rows->forms[i]->paths[k].path.data[at] == '.';
    return entries;
}

struct envelopes *envelopes_make(const struct form_rows *rows, struct arena *arena) {
    struct envelopes *envelopes = arena_zero(arena, 1, sizeof *envelopes);
    uint16_t count = 0;
    uint32_t size = 64;
    while (size < 2 * entries_of(rows))
        size *= 2;
    envelopes->mask = size - 1;
    envelopes->table = arena_zero(arena, size, sizeof *envelopes->table);
    envelopes->rows = arena_zero(arena, rows->count + 1, sizeof *envelopes->rows);
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->forms[i]->is_envelope)
            add_row(envelopes, rows->forms[i], &count, arena);
    for (int i = 0; i < WORD_KEY_COUNT; i++)
        envelopes->words_ids[i] = add_path(envelopes, WORD_KEYS[i], &count);
    envelopes->words_ids[WORD_KEY_COUNT] = UINT16_MAX;
    envelopes->words = (count + WORD_BITS - 1u) / WORD_BITS;
    assert(envelopes->words <= WORDS);
    return envelopes;
}

// -- walking --------------------------------------------------------------------------------------

// A place in the object: what path leads there.
struct path {
    uint64_t hash;
    size_t size; // 0: the object itself
};

static struct path path_of(const struct path *around, struct slice key) {
    uint64_t hash = around->size == 0 ? HASH_START : hash_more(around->hash, ".", 1);
    return (struct path){hash_more(hash, key.data, key.size),
                         around->size + (around->size > 0) + key.size};
}

// What is asked for at this path; NULL: nothing.
static const struct path_entry *find(const struct envelopes *envelopes, const struct path *path,
                                     struct slice key) {
    if (path->size > FORM_PATH_SIZE_MAX || key.size == 0)
        return NULL;
    uint32_t at = hash_folded(path->hash) & envelopes->mask;
    for (; envelopes->table[at].path.data != NULL; at = (at + 1) & envelopes->mask) {
        const struct path_entry *entry = &envelopes->table[at];
        if (entry->hash == path->hash && entry->path.size == path->size &&
            memcmp(entry->path.data + path->size - key.size, key.data, key.size) == 0)
            return entry;
    }
    return NULL;
}

static void note(struct envelope *envelope, const struct path_entry *entry,
                 const struct token *value) {
    if (entry == NULL || !entry->is_value || value->kind == TOKEN_NULL ||
        envelope->count == ENVELOPE_FOUND_MAX)
        return;
    envelope->found[envelope->count].path = entry->id;
    envelope->found[envelope->count++].value = *value;
}

static void note_at(struct envelope *envelope, const struct path *around, struct slice key,
                    const struct token *value) {
    struct path path = path_of(around, key);
    note(envelope, find(envelope->rows, &path, key), value);
}

// "name:value"
static void note_tag(struct envelope *envelope, const struct path *around, struct slice tag) {
    struct slice name = text_until(tag, ':');
    if (name.size == tag.size)
        return;
    struct slice value = text_from(tag, name.size + 1);
    struct token token = {.kind = TOKEN_STRING, .text = value.data, .size = value.size};
    note_at(envelope, around, name, &token);
}

static void walk_tags(struct envelope *envelope, const struct path *around,
                      const struct token *text) {
    struct slice rest = token_slice(text);
    for (int i = 0; i < TAGS_MAX && rest.size > 0 && text->escaped == 0; i++) {
        struct slice tag = text_until(rest, ',');
        note_tag(envelope, around, text_trim(tag));
        rest = text_from(rest, tag.size + (tag.size < rest.size));
    }
}

// {"key": "host.name", "value": {"stringValue": "gpu-a01"}}
static void walk_attribute(struct envelope *envelope, const struct path *around,
                           const struct token *object) {
    struct json_pairs pairs = json_pairs_of(token_slice(object)), inner;
    struct token key, value, name = {.kind = TOKEN_NONE}, said = {.kind = TOKEN_NONE};
    while (json_pairs_next(&pairs, &key, &value)) {
        if (slice_equal(token_slice(&key), SLICE("key")))
            name = value;
        else if (slice_equal(token_slice(&key), SLICE("value")))
            said = value;
    }
    if (said.kind == TOKEN_OBJECT) {
        inner = json_pairs_of(token_slice(&said));
        if (!json_pairs_next(&inner, &key, &said))
            return;
    }
    if (name.kind == TOKEN_STRING && said.kind != TOKEN_NONE)
        note_at(envelope, around, token_slice(&name), &said);
}

static void walk_attributes(struct envelope *envelope, const struct path *around,
                            const struct token *array) {
    struct json_items items = json_items_of(array);
    struct token item;
    for (int i = 0; i < TAGS_MAX && json_items_next(&items, &item); i++)
        if (item.kind == TOKEN_OBJECT)
            walk_attribute(envelope, around, &item);
        else if (item.kind == TOKEN_STRING)
            note_tag(envelope, around, token_slice(&item));
}

static const char *walk_object(struct envelope *envelope, const char *at, const char *end,
                               unsigned depth, const struct path *around, struct json_fault *fault);

// A path may also ask for the first item.
static void walk_array(struct envelope *envelope, const struct path *around,
                       const struct token *array) {
    struct json_items items = json_items_of(array);
    struct json_fault ignored;
    struct path path = path_of(around, SLICE("0"));
    const struct path_entry *entry = find(envelope->rows, &path, SLICE("0"));
    struct token item;
    if (entry == NULL)
        walk_attributes(envelope, around, array);
    else if (json_items_next(&items, &item) && item.kind == TOKEN_OBJECT)
        (void)walk_object(envelope, item.text, item.text + item.size, 1, &path, &ignored);
}

// A value that some path leads to, or into.
static const char *walk_value(struct envelope *envelope, const char *at, const char *end,
                              unsigned depth, const struct path *path,
                              const struct path_entry *entry, struct json_fault *fault) {
    struct token value;
    const char *after;
    bool is_object = json_peek(at, end) == '{';
    if (is_object && entry->is_inner && depth < ENVELOPE_DEPTH_MAX) {
        after = walk_object(envelope, at, end, depth + 1, path, fault);
        if (after != NULL)
            value = (struct token){.kind = TOKEN_OBJECT, .text = at, .size = (size_t)(after - at)};
    } else {
        after = json_scan_value(at, end, depth, &value, fault);
    }
    if (after == NULL)
        return NULL;
    note(envelope, entry, &value);
    if (entry->is_inner && value.kind == TOKEN_ARRAY)
        walk_array(envelope, path, &value);
    else if (entry->is_inner && value.kind == TOKEN_STRING)
        walk_tags(envelope, path, &value);
    return after;
}

// The object that opens at `at`; `depth` is that of its members. Goes as deep as the paths do.
static const char *walk_object(struct envelope *envelope, const char *at, const char *end,
                               unsigned depth, const struct path *around,
                               struct json_fault *fault) {
    struct json_members members = {.first = true};
    struct token key, value;
    for (;;) {
        at = json_next_member(&members, at, end, &key, fault);
        if (at == NULL || members.done)
            return at;
        at = json_skip_space(at, end);
        struct path path = path_of(around, token_slice(&key));
        const struct path_entry *entry = find(envelope->rows, &path, token_slice(&key));
        at = entry == NULL ? json_scan_value(at, end, depth, &value, fault)
                           : walk_value(envelope, at, end, depth, &path, entry, fault);
    }
}

static void walk_item(struct envelope *envelope, const struct token *item) {
    const struct path none = {HASH_START, 0};
    struct json_fault ignored;
    if (item->kind == TOKEN_OBJECT) {
        (void)walk_object(envelope, item->text, item->text + item->size, 1, &none, &ignored);
        return;
    }
    if (item->kind != TOKEN_ARRAY)
        return;
    struct json_items items = json_items_of(item);
    struct token value;
    for (char digit = '0'; digit <= '9' && json_items_next(&items, &value); digit++)
        note_at(envelope, &none, (struct slice){&digit, 1}, &value);
}

// -- rows -----------------------------------------------------------------------------------------

static const struct token *found_value(const struct envelope *envelope, uint16_t path) {
    for (uint32_t i = envelope->count; i > 0; i--)
        if (envelope->found[i - 1].path == path)
            return &envelope->found[i - 1].value;
    return NULL;
}

static const struct row *row_of(const struct envelope *envelope) {
    const struct row *row = envelope->rows->rows;
    while (row->form != envelope->form)
        row++;
    return row;
}

static bool fits(const struct row *row, const uint64_t *found, uint32_t words) {
    bool needs = true, message = false, has_messages = false;
    for (uint32_t i = 0; i < words; i++) {
        needs = needs && (row->needs[i] & ~found[i]) == 0;
        message = message || (row->messages[i] & found[i]) != 0;
        has_messages = has_messages || row->messages[i] != 0;
    }
    return needs && (message || !has_messages);
}

// The list of this number, from 0.
static const struct token *list_value(const struct envelope *envelope, const struct row *row,
                                      uint32_t number) {
    for (uint32_t i = 0; i < row->form->path_count; i++)
        if (row->form->paths[i].target == TARGET_LIST && number-- == 0)
            return found_value(envelope, row->ids[i]);
    return NULL;
}

static uint32_t lists_of(const struct form *form) {
    uint32_t lists = 0;
    for (uint32_t i = 0; i < form->path_count; i++)
        lists += form->paths[i].target == TARGET_LIST;
    return lists;
}

static bool enter_list(struct envelope *envelope, const struct row *row) {
    const struct token *list = list_value(envelope, row, envelope->depth);
    if (list == NULL || list->kind != TOKEN_ARRAY)
        return false;
    envelope->items[envelope->depth] = json_items_of(list);
    envelope->counts[envelope->depth++] = envelope->count;
    return true;
}

static void choose(struct envelope *envelope) {
    const struct envelopes *rows = envelope->rows;
    uint64_t found[WORDS] = {0};
    for (uint32_t i = 0; i < envelope->count; i++)
        set_bit(found, envelope->found[i].path);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        if (!fits(&rows->rows[i], found, rows->words))
            continue;
        envelope->lists = lists_of(rows->rows[i].form);
        if (envelope->lists > 0 && !enter_list(envelope, &rows->rows[i]))
            continue;
        envelope->form = rows->rows[i].form;
        return;
    }
    for (int i = 0; rows->words_ids[i] != UINT16_MAX && !envelope->has_words; i++) {
        const struct token *words = found_value(envelope, rows->words_ids[i]);
        envelope->has_words = words != NULL && words->kind == TOKEN_STRING;
    }
}

bool envelope_open(struct envelope *envelope, const struct envelopes *rows, struct slice object,
                   struct json_fault *fault) {
    const struct path none = {HASH_START, 0};
    const char *end = object.data + object.size;
    envelope->rows = rows;
    envelope->form = NULL;
    envelope->has_words = envelope->given = false;
    envelope->depth = envelope->lists = envelope->count = 0;
    const char *at = json_skip_space(object.data, end);
    at = walk_object(envelope, at, end, 1, &none, fault);
    if (json_read_end(at, end, fault) == NULL)
        return false;
    choose(envelope);
    return true;
}

bool envelope_next(struct envelope *envelope) {
    assert(envelope->form != NULL);
    const struct row *row = row_of(envelope);
    struct token item, ignored;
    if (envelope->lists == 0) {
        bool first = !envelope->given;
        envelope->given = true;
        return first;
    }
    while (envelope->depth > 0) {
        envelope->count = envelope->counts[envelope->depth - 1];
        if (!json_items_next(&envelope->items[envelope->depth - 1], &item)) {
            envelope->depth--;
            continue;
        }
        walk_item(envelope, &item);
        if (envelope->depth < envelope->lists)
            (void)enter_list(envelope, row);
        else if (envelope_value(envelope, TARGET_MESSAGE, &ignored))
            return true;
    }
    return false;
}

bool envelope_value(const struct envelope *envelope, enum form_target target, struct token *value) {
    const struct row *row = row_of(envelope);
    for (uint32_t i = 0; i < row->form->path_count; i++) {
        const struct token *said =
            row->form->paths[i].target == target ? found_value(envelope, row->ids[i]) : NULL;
        if (said == NULL)
            continue;
        *value = *said;
        return true;
    }
    return false;
}

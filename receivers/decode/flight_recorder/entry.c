// SPDX-License-Identifier: Apache-2.0
// Reads the entries of a Flight Recorder dump in JSON.
//
// They are most of a dump, so their keys are predicted from the entry before (32 bytes compared at
// once), and what repeats from entry to entry (groups, sizes, dtypes) is recognised by its bytes
// and read once.
#include "receivers/decode/flight_recorder/from_json.h"
#include "receivers/decode/json/block.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"

enum { KEY_BLOCK = sizeof((struct json_key *)0)->text, COMPACT_MAX = 64 << 10 };

static const char *refuse(struct flight_reader *reader, const struct flight_field *field,
                          const struct token *found, const char *expected) {
    flight_refuse(reader->fault, reader->entry, field, found, expected);
    reader->refused = true;
    return NULL;
}

static const char *read_scalar(struct flight_reader *reader, const struct flight_field *field,
                               const char *at, struct flight_entry *entry) {
    struct token token;
    at = json_scan_value(at, reader->end, 3, &token, &reader->json);
    if (at == NULL || field->kind == FLIGHT_OTHER)
        return at;
    if (field->kind == FLIGHT_INTEGER && token.kind == TOKEN_INTEGER) {
        *(int64_t *)(void *)((char *)entry + field->offset) = token.integer;
        return at;
    }
    const char *expected = flight_entry_take(entry, field, &token, reader->arena);
    return expected == NULL ? at : refuse(reader, field, &token, expected);
}

static bool begins_with(const char *at, const char *end, struct slice text) {
    return text.size > 0 && (size_t)(end - at) >= text.size &&
           memcmp(at, text.data, text.size) == 0;
}

// JSON text without the white space between its tokens.
static struct slice compact(struct slice raw, struct arena *arena) {
    bool inside = false, spaced = false;
    for (size_t i = 0; i < raw.size && !spaced; i++)
        spaced = (unsigned char)raw.data[i] <= ' ';
    if (!spaced)
        return raw;
    char *text = arena_take(arena, raw.size);
    size_t size = 0;
    for (size_t i = 0; i < raw.size; i++) {
        char c = raw.data[i];
        if (c == '"')
            inside = !inside;
        if (!inside && (unsigned char)c <= ' ')
            continue;
        text[size++] = c;
        if (c == '\\' && i + 1 < raw.size)
            text[size++] = raw.data[++i];
    }
    return (struct slice){text, size};
}

static const char *read_shapes(struct flight_reader *reader, const struct flight_field *field,
                               const char *at, struct flight_entry *entry) {
    struct slice *value = (struct slice *)(void *)((char *)entry + field->offset);
    struct flight_seen_shapes *seen =
        &reader->shapes[(size_t)(field - FLIGHT_FIELDS) % FLIGHT_SHAPES_SEEN];
    if (begins_with(at, reader->end, seen->raw)) { // an array ends where its bytes end
        *value = seen->compact;
        return at + seen->raw.size;
    }
    struct token token;
    at = json_scan_value(at, reader->end, 3, &token, &reader->json);
    if (at == NULL || token.kind == TOKEN_NULL)
        return at;
    if (token.kind != TOKEN_ARRAY)
        return refuse(reader, field, &token, "a list");
    if (token.size > COMPACT_MAX)
        return at;
    *value = compact(token_slice(&token), reader->arena);
    *seen = (struct flight_seen_shapes){token_slice(&token), *value};
    return at;
}

// ["0", "default_pg"]; the second may be missing.
static struct flight_seen_group group_of(const struct token *array, struct arena *arena) {
    struct slice texts[2] = {{0}, SLICE("")};
    struct json_items items = json_items_of(array);
    struct token item;
    for (unsigned i = 0; i < 2 && json_items_next(&items, &item); i++)
        if (item.kind == TOKEN_STRING)
            texts[i] = token_decode(&item, arena);
    return (struct flight_seen_group){token_slice(array), texts[0], texts[1]};
}

static const char *read_group(struct flight_reader *reader, const struct flight_field *field,
                              const char *at, struct flight_entry *entry) {
    const struct flight_seen_group *seen = NULL;
    for (uint32_t i = 0; i < FLIGHT_GROUPS_SEEN && seen == NULL; i++)
        if (begins_with(at, reader->end, reader->groups[i].raw))
            seen = &reader->groups[i];
    if (seen == NULL) {
        struct token token;
        const char *after = json_scan_value(at, reader->end, 3, &token, &reader->json);
        if (after == NULL || token.kind == TOKEN_NULL)
            return after;
        if (token.kind != TOKEN_ARRAY)
            return refuse(reader, field, &token, "a list of name and description");
        reader->groups[reader->group_next] = group_of(&token, reader->arena);
        seen = &reader->groups[reader->group_next];
        reader->group_next = (reader->group_next + 1) % FLIGHT_GROUPS_SEEN;
    }
    entry->group = seen->name;
    entry->desc = seen->desc;
    return at + seen->raw.size;
}

static const char *read_field(struct flight_reader *reader, const struct flight_field *field,
                              const char *at, struct flight_entry *entry) {
    if (field->kind == FLIGHT_GROUP)
        return read_group(reader, field, at, entry);
    if (field->kind == FLIGHT_SHAPES)
        return read_shapes(reader, field, at, entry);
    return read_scalar(reader, field, at, entry);
}

// -- entries -------------------------------------------------------------------------------------

// At the quote of a key: past its colon, `*field` what it is. `place` is its number in the entry.
static const char *read_key(struct flight_reader *reader, unsigned place, const char *at,
                            const struct flight_field **field) {
    const char *end = reader->end;
    uint8_t *learnt = place < FLIGHT_KEYS_LEARNT ? &reader->memory->order[place] : NULL;
    if (learnt != NULL && *learnt != 0 && end - at > KEY_BLOCK) {
        *field = &FLIGHT_FIELDS[*learnt];
        if (json_block_matches(at, (*field)->key.text, (*field)->key.mask))
            return at + (*field)->key.size;
    }
    if (json_peek(at, end) != '"')
        return json_fail(&reader->json, at, "no key in quotes where one must be");
    struct token name;
    at = json_scan_string(at + 1, end, &name, &reader->json);
    if (at == NULL)
        return NULL;
    *field = flight_field_find(token_decode(&name, reader->arena));
    if (learnt != NULL)
        *learnt = (uint8_t)(*field - FLIGHT_FIELDS);
    at = json_skip_space(at, end);
    if (json_peek(at, end) != ':')
        return json_fail(&reader->json, at, "no colon after a key");
    return at + 1;
}

const char *flight_read_entry(struct flight_reader *reader, const char *at,
                              struct flight_entry *entry) {
    const char *end = reader->end;
    at = json_skip_space(at + 1, end);
    if (json_peek(at, end) == '}')
        return at + 1;
    for (unsigned place = 0;; place++) {
        const struct flight_field *field;
        at = read_key(reader, place, at, &field);
        if (at != NULL)
            at = read_field(reader, field, json_skip_space(at, end), entry);
        if (at == NULL)
            return NULL;
        at = json_skip_space(at, end);
        unsigned char c = json_peek(at, end);
        if (c == '}')
            return at + 1;
        if (c != ',')
            return json_fail(&reader->json, at, "no comma or closing brace after a value");
        at = json_skip_space(at + 1, end);
    }
}

const char *flight_read_entries(struct flight_reader *reader, const char *at,
                                struct flight_entries *entries) {
    const char *end = reader->end;
    struct flight_source *source = &reader->memory->source;
    *entries = (struct flight_entries){0};
    reader->entry = 0;
    at = json_skip_space(at + 1, end);
    if (json_peek(at, end) == ']')
        return at + 1;
    for (;; reader->entry++) {
        if (json_peek(at, end) != '{') {
            struct token token;
            at = json_scan_value(at, end, 2, &token, &reader->json);
            return at == NULL ? NULL : refuse(reader, &FLIGHT_FIELDS[0], &token, "an object");
        }
        struct flight_entry *entry = flight_entries_add(entries, source->entry_hint, reader->arena);
        at = flight_read_entry(reader, at, entry);
        if (at == NULL)
            return NULL;
        if (!flight_entry_finish(entry))
            entries->count--;
        at = json_skip_space(at, end);
        unsigned char c = json_peek(at, end);
        if (c == ']')
            break;
        if (c != ',')
            return json_fail(&reader->json, at, "no comma or closing bracket after a value");
        at = json_skip_space(at + 1, end);
    }
    reader->entry++;
    source->entry_hint = entries->count;
    return at + 1;
}

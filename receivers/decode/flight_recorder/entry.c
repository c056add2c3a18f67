// SPDX-License-Identifier: Apache-2.0
// What do the entries of a Flight Recorder dump in JSON say?
//
// They are most of a dump, so their keys are predicted from the entry before (32 bytes compared at
// once), and what repeats from entry to entry (groups, sizes, dtypes) is recognised by its bytes
// and read once.
#include "receivers/decode/flight_recorder/from_json.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/text.h"

#include <ctype.h>
#include <stdio.h>

enum { KEY_BLOCK = 32, COMPACT_MAX = 64 << 10 };

// "time_created_ns\":" padded, and which of its bytes count.
struct key_block {
    char text[KEY_BLOCK];
    uint32_t mask;
    uint32_t size;
};

#define KEY(field, name)                                                                           \
    [field] = {name "\":", (uint32_t)((UINT64_C(1) << (sizeof(name) + 1)) - 1), sizeof(name) + 1}
// As PyTorch writes them. Others are passed over.
enum { OTHER_KEYS = 5, KEYS = FLIGHT_FIELD_COUNT + OTHER_KEYS };
static const struct key_block KEY_BLOCKS[KEYS] = {
    KEY(FLIGHT_FIELD_RECORD_ID, "record_id"),
    KEY(FLIGHT_FIELD_GROUP, "process_group"),
    KEY(FLIGHT_FIELD_COLLECTIVE, "collective_seq_id"),
    KEY(FLIGHT_FIELD_P2P, "p2p_seq_id"),
    KEY(FLIGHT_FIELD_NAME, "profiling_name"),
    KEY(FLIGHT_FIELD_CREATED, "time_created_ns"),
    KEY(FLIGHT_FIELD_STARTED, "time_discovered_started_ns"),
    KEY(FLIGHT_FIELD_COMPLETED, "time_discovered_completed_ns"),
    KEY(FLIGHT_FIELD_STATE, "state"),
    KEY(FLIGHT_FIELD_RETIRED, "retired"),
    KEY(FLIGHT_FIELD_IS_P2P, "is_p2p"),
    KEY(FLIGHT_FIELD_TIMEOUT, "timeout_ms"),
    KEY(FLIGHT_FIELD_INPUT_SIZES, "input_sizes"),
    KEY(FLIGHT_FIELD_OUTPUT_SIZES, "output_sizes"),
    KEY(FLIGHT_FIELD_INPUT_DTYPES, "input_dtypes"),
    KEY(FLIGHT_FIELD_OUTPUT_DTYPES, "output_dtypes"),
    KEY(FLIGHT_FIELD_SEQ_ID, "seq_id"),
    KEY(FLIGHT_FIELD_COUNT + 0, "pg_id"),
    KEY(FLIGHT_FIELD_COUNT + 1, "op_id"),
    KEY(FLIGHT_FIELD_COUNT + 2, "thread_id"),
    KEY(FLIGHT_FIELD_COUNT + 3, "thread_name"),
    KEY(FLIGHT_FIELD_COUNT + 4, "duration_ms"),
};

static unsigned find_key(struct slice name) {
    for (unsigned key = 1; key < KEYS; key++)
        if (KEY_BLOCKS[key].size == name.size + 2 &&
            memcmp(KEY_BLOCKS[key].text, name.data, name.size) == 0)
            return key;
    return FLIGHT_FIELD_OTHER;
}

// -- faults --------------------------------------------------------------------------------------

static const char *refuse(struct flight_reader *reader, enum flight_field field,
                          const struct token *found, const char *expected) {
    char name[80];
    struct slice text = FLIGHT_FIELD_NAMES[field];
    int size =
        snprintf(name, sizeof name, "entries[%u].%.*s", reader->entry, (int)text.size, text.data);
    fault_type(reader->fault, (struct slice){name, (size_t)size}, found, expected);
    reader->refused = true;
    return NULL;
}

// -- values --------------------------------------------------------------------------------------

// Numbers in quotes are taken too: writers differ.
bool flight_integer_of(const struct token *token, int64_t *value) {
    if (token->kind == TOKEN_INTEGER) {
        *value = token->integer;
        return true;
    }
    if (token->kind == TOKEN_NULL)
        return true;
    if (token->kind != TOKEN_STRING || token->size == 0)
        return false;
    struct token number;
    struct json_fault ignored;
    const char *end = token->text + token->size;
    if (*token->text != '-' && !isdigit((unsigned char)*token->text))
        return false;
    const char *after = json_scan_long_number(token->text, end, &number, &ignored);
    if (after != end || number.kind != TOKEN_INTEGER)
        return false;
    *value = number.integer;
    return true;
}

static const char *read_integer(struct flight_reader *reader, enum flight_field field,
                                const char *at, struct flight_entry *entry) {
    struct token token;
    at = json_scan_value(at, reader->end, 3, &token, &reader->json);
    int64_t *value = flight_entry_integer(entry, field);
    if (at != NULL && token.kind == TOKEN_INTEGER)
        *value = token.integer;
    else if (at != NULL && !flight_integer_of(&token, value))
        return refuse(reader, field, &token, "an integer");
    return at;
}

static const char *read_flag(struct flight_reader *reader, enum flight_field field, const char *at,
                             struct flight_entry *entry) {
    struct token token;
    at = json_scan_value(at, reader->end, 3, &token, &reader->json);
    bool *value = flight_entry_flag(entry, field);
    if (at == NULL)
        return NULL;
    if (token.kind == TOKEN_TRUE || token.kind == TOKEN_FALSE)
        *value = token.kind == TOKEN_TRUE;
    else if (token.kind == TOKEN_INTEGER && (token.integer & ~1) == 0)
        *value = token.integer == 1;
    else if (token.kind != TOKEN_NULL)
        return refuse(reader, field, &token, "true or false");
    return at;
}

static const char *read_text(struct flight_reader *reader, enum flight_field field, const char *at,
                             struct flight_entry *entry) {
    struct token token;
    at = json_scan_value(at, reader->end, 3, &token, &reader->json);
    if (at == NULL || token.kind == TOKEN_NULL)
        return at;
    if (token.kind != TOKEN_STRING)
        return refuse(reader, field, &token, "a text");
    if (field == FLIGHT_FIELD_NAME)
        entry->name = token_decode(&token, reader->arena);
    else if (token_equals(&token, SLICE("completed")))
        entry->state = FLIGHT_COMPLETED;
    else if (token_equals(&token, SLICE("started")))
        entry->state = FLIGHT_STARTED;
    return at;
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

static const char *read_shapes(struct flight_reader *reader, enum flight_field field,
                               const char *at, struct flight_entry *entry) {
    struct slice *value = flight_entry_shapes(entry, field);
    struct flight_seen_shapes *seen = &reader->shapes[field - FLIGHT_FIELD_INPUT_SIZES];
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
static const char *read_group_texts(struct flight_reader *reader, const char *at,
                                    struct flight_seen_group *group) {
    struct slice texts[2] = {{0}, {0}};
    const char *end = reader->end;
    unsigned count = 0;
    at = json_skip_space(at + 1, end);
    while (json_peek(at, end) != ']') {
        struct token token;
        at = json_scan_value(at, end, 4, &token, &reader->json);
        if (at == NULL)
            return NULL;
        if (count < 2 && token.kind == TOKEN_STRING)
            texts[count] = token_decode(&token, reader->arena);
        count++;
        at = json_skip_space(at, end);
        if (json_peek(at, end) == ',') {
            at = json_skip_space(at + 1, end);
            if (json_peek(at, end) == ']')
                return json_fail(&reader->json, at, "no value after a comma");
        } else if (json_peek(at, end) != ']') {
            return json_fail(&reader->json, at, "no comma or closing bracket after a value");
        }
    }
    group->name = texts[0];
    group->desc = texts[1].data == NULL ? SLICE("") : texts[1];
    return at + 1;
}

static const char *read_group(struct flight_reader *reader, const char *at,
                              struct flight_entry *entry) {
    const struct flight_seen_group *seen = NULL;
    for (uint32_t i = 0; i < FLIGHT_GROUPS_SEEN && seen == NULL; i++)
        if (begins_with(at, reader->end, reader->groups[i].raw))
            seen = &reader->groups[i];
    if (seen == NULL) {
        if (json_peek(at, reader->end) != '[') {
            struct token token;
            at = json_scan_value(at, reader->end, 3, &token, &reader->json);
            if (at != NULL && token.kind != TOKEN_NULL)
                return refuse(reader, FLIGHT_FIELD_GROUP, &token, "a list of name and description");
            return at;
        }
        struct flight_seen_group group = {0};
        const char *after = read_group_texts(reader, at, &group);
        if (after == NULL)
            return NULL;
        group.raw = (struct slice){at, (size_t)(after - at)};
        reader->groups[reader->group_next] = group;
        seen = &reader->groups[reader->group_next];
        reader->group_next = (reader->group_next + 1) % FLIGHT_GROUPS_SEEN;
    }
    entry->group = seen->name;
    entry->desc = seen->desc;
    return at + seen->raw.size;
}

static const char *skip_value(struct flight_reader *reader, const char *at) {
    struct token ignored;
    return json_scan_value(at, reader->end, 3, &ignored, &reader->json);
}

static const char *read_field(struct flight_reader *reader, unsigned key, const char *at,
                              struct flight_entry *entry) {
    enum flight_field field = key < FLIGHT_FIELD_COUNT ? key : FLIGHT_FIELD_OTHER;
    switch (field) {
    case FLIGHT_FIELD_OTHER:
        return skip_value(reader, at);
    case FLIGHT_FIELD_GROUP:
        return read_group(reader, at, entry);
    case FLIGHT_FIELD_NAME:
    case FLIGHT_FIELD_STATE:
        return read_text(reader, field, at, entry);
    case FLIGHT_FIELD_RETIRED:
    case FLIGHT_FIELD_IS_P2P:
        return read_flag(reader, field, at, entry);
    case FLIGHT_FIELD_INPUT_SIZES:
    case FLIGHT_FIELD_OUTPUT_SIZES:
    case FLIGHT_FIELD_INPUT_DTYPES:
    case FLIGHT_FIELD_OUTPUT_DTYPES:
        return read_shapes(reader, field, at, entry);
    case FLIGHT_FIELD_SEQ_ID:
        return entry->collective_seq_id >= 0 ? skip_value(reader, at)
                                             : read_integer(reader, field, at, entry);
    default:
        return read_integer(reader, field, at, entry);
    }
}

// -- entries -------------------------------------------------------------------------------------

// At the quote of a key: past its colon, `*key` what it is. `place` is its number in the entry.
static const char *read_key(struct flight_reader *reader, unsigned place, const char *at,
                            unsigned *key) {
    const char *end = reader->end;
    uint8_t *learnt = &reader->memory->order[place < FLIGHT_KEYS_LEARNT ? place : 0];
    bool predicted = place < FLIGHT_KEYS_LEARNT && *learnt != 0;
    if (predicted && end - at > KEY_BLOCK) {
        const struct key_block *block = &KEY_BLOCKS[*learnt - 1];
        if (*at == '"' && json_block_matches(at + 1, block->text, block->mask)) {
            *key = *learnt - 1u;
            return at + 1 + block->size;
        }
    }
    if (json_peek(at, end) != '"')
        return json_fail(&reader->json, at, "no key in quotes where one must be");
    struct token name;
    at = json_scan_string(at + 1, end, &name, &reader->json);
    if (at == NULL)
        return NULL;
    *key = find_key(token_decode(&name, reader->arena));
    if (place < FLIGHT_KEYS_LEARNT)
        *learnt = *key == FLIGHT_FIELD_OTHER ? 0 : (uint8_t)(*key + 1);
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
        unsigned key;
        at = read_key(reader, place, at, &key);
        if (at != NULL)
            at = read_field(reader, key, json_skip_space(at, end), entry);
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
            return at == NULL ? NULL : refuse(reader, FLIGHT_FIELD_OTHER, &token, "an object");
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

// SPDX-License-Identifier: Apache-2.0
// Reads a Flight Recorder dump that PyTorch wrote as a pickle.
//
// recorder_pickle.c reads those that are as PyTorch writes them. Of all others, such as those that
// Python wrote again, and of what is wrong pickle.c makes plain values; here they are read into the
// same struct flight_dump that the JSON form gives, sizes and dtypes written as the compact JSON
// that the other form has. Lists of those are two deep at most, so nothing here follows a value
// that holds itself. Frames are not looked at.
#include "receivers/decode/flight_recorder/flight_recorder.h"
#include "receivers/decode/flight_recorder/parts.h"
#include "receivers/decode/flight_recorder/pickle.h"
#include "receivers/decode/flight_recorder/recorder_pickle.h"
#include "receivers/decode/json/fault.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { SHAPE_DEPTH = 3, SHAPE_TEXT_MAX = 64 << 10, KEYS_KNOWN = 64 };

// Keys are shared through the memo, so one look at each is enough: by address.
struct known_key {
    const struct pickle_value *key;
    const struct flight_field *field;
};

struct reader {
    struct arena *arena;
    struct decode_fault *fault;
    struct known_key known[KEYS_KNOWN];
    char *shape;                // SHAPE_TEXT_MAX bytes, where texts of sizes are made
    struct flight_entry before; // whose texts are used again where they are the same
    uint32_t entry;
};

// A value as the JSON form would have it; numbers are written into `room`.
static struct token token_of(const struct pickle_value *value, char room[32]) {
    static const enum token_kind KINDS[] = {
        [PICKLE_NONE] = TOKEN_NULL,   [PICKLE_FALSE] = TOKEN_FALSE,
        [PICKLE_TRUE] = TOKEN_TRUE,   [PICKLE_INTEGER] = TOKEN_INTEGER,
        [PICKLE_HUGE] = TOKEN_HUGE,   [PICKLE_DECIMAL] = TOKEN_DECIMAL,
        [PICKLE_TEXT] = TOKEN_STRING, [PICKLE_LIST] = TOKEN_ARRAY,
        [PICKLE_TUPLE] = TOKEN_ARRAY, [PICKLE_DICT] = TOKEN_OBJECT,
    };
    struct slice text = {room, 0};
    if (value->kind == PICKLE_TEXT)
        text = value->text;
    else if (value->kind == PICKLE_INTEGER)
        text.size = (size_t)snprintf(room, 32, "%" PRId64, value->integer);
    else if (value->kind == PICKLE_DECIMAL)
        text.size = (size_t)snprintf(room, 32, "%.17g", value->decimal);
    else if (value->kind == PICKLE_HUGE)
        text = SLICE("beyond 64 bits");
    return (struct token){.text = text.data,
                          .size = text.size,
                          .integer = value->kind == PICKLE_INTEGER ? value->integer : 0,
                          .kind = KINDS[value->kind]};
}

static bool refuse(struct reader *reader, const struct flight_field *field,
                   const struct pickle_value *found, const char *expected) {
    char room[32];
    struct token token = token_of(found, room);
    flight_refuse(reader->fault, reader->entry, field, &token, expected);
    return false;
}

// -- values --------------------------------------------------------------------------------------

static bool is_sequence(const struct pickle_value *value) {
    return value->kind == PICKLE_LIST || value->kind == PICKLE_TUPLE;
}

static bool read_group(const struct pickle_value *value, struct flight_entry *entry) {
    if (value->kind == PICKLE_NONE)
        return true;
    if (!is_sequence(value))
        return false;
    entry->desc = SLICE("");
    if (value->count > 0 && value->items[0]->kind == PICKLE_TEXT)
        entry->group = value->items[0]->text;
    if (value->count > 1 && value->items[1]->kind == PICKLE_TEXT)
        entry->desc = value->items[1]->text;
    return true;
}

// -- sizes and dtypes ----------------------------------------------------------------------------

struct shape_text {
    char *data;
    size_t size;
    bool full;
};

static void put(struct shape_text *out, const char *text, size_t size) {
    assert(out->size <= SHAPE_TEXT_MAX);
    if (size > SHAPE_TEXT_MAX - out->size)
        out->full = true;
    if (out->full)
        return;
    memcpy(out->data + out->size, text, size);
    out->size += size;
}

static void put_string(struct shape_text *out, struct slice text) {
    put(out, "\"", 1);
    for (size_t i = 0; i < text.size && !out->full; i++) {
        char c = text.data[i], escaped[8];
        if ((unsigned char)c < 0x20)
            put(out, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", c));
        else if (c == '"' || c == '\\')
            put(out, (const char[]){'\\', c}, 2);
        else
            put(out, &c, 1);
    }
    put(out, "\"", 1);
}

static void put_scalar(struct shape_text *out, const struct pickle_value *value) {
    char text[32];
    switch (value->kind) {
    case PICKLE_INTEGER:
        put(out, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value->integer));
        break;
    case PICKLE_DECIMAL:
        put(out, text, (size_t)snprintf(text, sizeof text, "%.17g", value->decimal));
        break;
    case PICKLE_TEXT:
        put_string(out, value->text);
        break;
    case PICKLE_TRUE:
        put(out, "true", 4);
        break;
    case PICKLE_FALSE:
        put(out, "false", 5);
        break;
    default:
        put(out, "null", 4);
        break;
    }
}

// As compact JSON; false when it is no list, too deep or too long.
static bool put_list(struct shape_text *out, const struct pickle_value *list) {
    assert(is_sequence(list));
    const struct pickle_value *open[SHAPE_DEPTH] = {list};
    uint32_t next[SHAPE_DEPTH] = {0};
    unsigned depth = 1;
    put(out, "[", 1);
    while (depth > 0 && !out->full) {
        const struct pickle_value *top = open[depth - 1];
        if (next[depth - 1] == top->count) {
            put(out, "]", 1);
            depth--;
            continue;
        }
        const struct pickle_value *item = top->items[next[depth - 1]++];
        if (next[depth - 1] > 1)
            put(out, ",", 1);
        if (!is_sequence(item)) {
            put_scalar(out, item);
            continue;
        }
        if (depth == SHAPE_DEPTH)
            return false;
        put(out, "[", 1);
        open[depth] = item;
        next[depth++] = 0;
    }
    return !out->full;
}

static bool read_shapes(struct reader *reader, const struct flight_field *field,
                        const struct pickle_value *value, struct flight_entry *entry) {
    if (value->kind == PICKLE_NONE)
        return true;
    if (!is_sequence(value))
        return false;
    struct slice *before = (struct slice *)(void *)((char *)&reader->before + field->offset);
    struct shape_text text = {.data = reader->shape};
    if (!put_list(&text, value))
        return true; // as if it were not said
    if (before->data == NULL || !slice_equal(*before, (struct slice){text.data, text.size}))
        *before = arena_copy(reader->arena, (struct slice){text.data, text.size});
    *(struct slice *)(void *)((char *)entry + field->offset) = *before;
    return true;
}

// -- entries -------------------------------------------------------------------------------------

static const struct flight_field *field_of(struct reader *reader, const struct pickle_value *key) {
    struct known_key *known = &reader->known[((uintptr_t)key >> 5) % KEYS_KNOWN];
    if (known->key != key)
        *known = (struct known_key){key, key->kind == PICKLE_TEXT ? flight_field_find(key->text)
                                                                  : &FLIGHT_FIELDS[0]};
    return known->field;
}

static bool read_field(struct reader *reader, const struct flight_field *field,
                       const struct pickle_value *value, struct flight_entry *entry) {
    if (field->kind == FLIGHT_OTHER)
        return true;
    if (field->kind == FLIGHT_GROUP)
        return read_group(value, entry) ||
               refuse(reader, field, value, "a list of name and description");
    if (field->kind == FLIGHT_SHAPES)
        return read_shapes(reader, field, value, entry) || refuse(reader, field, value, "a list");
    if (field->kind == FLIGHT_INTEGER && value->kind == PICKLE_INTEGER) {
        *(int64_t *)(void *)((char *)entry + field->offset) = value->integer;
        return true;
    }
    char room[32];
    struct token token = token_of(value, room);
    const char *expected = flight_entry_take(entry, field, &token, reader->arena);
    return expected == NULL || refuse(reader, field, value, expected);
}

static bool read_entries(struct reader *reader, const struct pickle_value *list,
                         struct flight_entries *entries) {
    for (reader->entry = 0; reader->entry < list->count; reader->entry++) {
        const struct pickle_value *item = list->items[reader->entry];
        if (item->kind != PICKLE_DICT)
            return refuse(reader, &FLIGHT_FIELDS[0], item, "an object");
        struct flight_entry *entry = flight_entries_add(entries, list->count, reader->arena);
        for (uint32_t i = 0; i < item->count; i++)
            if (!read_field(reader, field_of(reader, item->items[2 * i]), item->items[2 * i + 1],
                            entry))
                return false;
        if (!flight_entry_finish(entry))
            entries->count--;
    }
    return true;
}

// -- pg_config -----------------------------------------------------------------------------------

static void read_members(struct reader *reader, const struct pickle_value *ranks,
                         struct flight_group *group) {
    if (ranks->kind == PICKLE_TEXT)
        group->members = flight_members_parse(ranks->text, &group->member_count, reader->arena);
    if (!is_sequence(ranks) || ranks->count == 0)
        return;
    int32_t *members = arena_take(reader->arena, ranks->count * sizeof *members);
    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct pickle_value *rank = ranks->items[i];
        if (rank->kind != PICKLE_INTEGER || rank->integer < 0 || rank->integer > RANK_MAX)
            return;
        members[i] = (int32_t)rank->integer;
    }
    group->member_count = flight_members_sort(members, ranks->count, reader->arena);
    group->members = members;
}

static void read_config(struct reader *reader, const struct pickle_value *config,
                        struct flight_dump *dump) {
    struct flight_group *groups = arena_zero(reader->arena, config->count + 1, sizeof *groups);
    const struct pickle_value *ranks_before = NULL;
    for (uint32_t i = 0; i < config->count; i++) {
        const struct pickle_value *name = config->items[2 * i], *value = config->items[2 * i + 1];
        if (name->kind != PICKLE_TEXT || value->kind != PICKLE_DICT)
            continue;
        struct flight_group *group = &groups[dump->group_count++];
        *group = (struct flight_group){.name = name->text, .desc = SLICE("")};
        const struct pickle_value *desc = pickle_get(value, SLICE("desc"));
        const struct pickle_value *ranks = pickle_get(value, SLICE("ranks"));
        if (desc != NULL && desc->kind == PICKLE_TEXT)
            group->desc = desc->text;
        if (ranks != NULL && ranks == ranks_before) {
            group->members = group[-1].members;
            group->member_count = group[-1].member_count;
        } else if (ranks != NULL) {
            read_members(reader, ranks, group);
        }
        ranks_before = ranks;
    }
    dump->groups = groups;
}

// -- the document --------------------------------------------------------------------------------

static bool counts_completed(const struct pickle_value *status) {
    for (uint32_t i = 0; status->kind == PICKLE_DICT && i < status->count; i++) {
        const struct pickle_value *group = status->items[2 * i + 1];
        if (group->kind != PICKLE_DICT)
            continue;
        const struct pickle_value *last = pickle_get(group, SLICE("last_completed_collective"));
        char room[32];
        int64_t number = -1;
        struct token token = {.kind = TOKEN_NULL};
        if (last != NULL)
            token = token_of(last, room);
        if (flight_integer_of(&token, &number) && number >= 0)
            return true;
    }
    return false;
}

static enum decode_category refuse_pickle(const struct pickle_fault *pickle,
                                          struct decode_fault *fault) {
    fault_set(fault, pickle->cut ? DECODE_TORN : DECODE_BAD_PICKLE, SLICE(""), "at byte %zu: %s",
              pickle->offset, pickle->why);
    fault->offset = pickle->offset;
    return fault->category;
}

// A member that must be of this kind when it is there and not None.
static enum decode_category take_member(const struct pickle_value *dict, struct slice key,
                                        enum pickle_kind kind, const char *expected,
                                        const struct pickle_value **member,
                                        struct decode_fault *fault) {
    *member = pickle_get(dict, key);
    if (*member != NULL && (*member)->kind == PICKLE_NONE)
        *member = NULL;
    if (*member == NULL || (*member)->kind == kind)
        return DECODE_OK;
    char room[32];
    struct token token = token_of(*member, room);
    return fault_type(fault, key, &token, expected);
}

static enum decode_category read_document(struct reader *reader, const struct pickle_value *root,
                                          struct flight_dump *dump) {
    const struct pickle_value *entries, *config;
    enum decode_category category =
        take_member(root, SLICE("entries"), PICKLE_LIST, "a list", &entries, reader->fault);
    if (category == DECODE_OK)
        category =
            take_member(root, SLICE("pg_config"), PICKLE_DICT, "an object", &config, reader->fault);
    if (category != DECODE_OK)
        return category;
    if (entries == NULL && config == NULL)
        return fault_set(reader->fault, DECODE_MISSING_FIELD, SLICE("entries, pg_config"),
                         "neither is there; a Flight Recorder dump has one of them at least");
    const struct pickle_value *version = pickle_get(root, SLICE("version"));
    if (version != NULL && version->kind == PICKLE_TEXT)
        dump->version = version->text;
    const struct pickle_value *status = pickle_get(root, SLICE("pg_status"));
    dump->counts_completed = status != NULL && counts_completed(status);
    if (config != NULL)
        read_config(reader, config, dump);
    struct flight_entries list = {0};
    if (entries != NULL && !read_entries(reader, entries, &list))
        return reader->fault->category;
    dump->entries = list.items;
    dump->entry_count = list.count;
    return DECODE_OK;
}

// Any pickle, by its values.
static enum decode_category read_values(struct slice record, struct arena *values,
                                        struct arena *arena, struct flight_parsed **parsed,
                                        struct decode_fault *fault) {
    struct pickle_fault pickle;
    const struct pickle_value *root = pickle_read(record, values, &pickle);
    if (root == NULL)
        return refuse_pickle(&pickle, fault);
    if (root->kind != PICKLE_DICT) {
        char room[32];
        struct token token = token_of(root, room);
        return fault_found(fault, DECODE_NOT_OBJECT, SLICE(""), &token,
                           "an object with \"entries\", as a Flight Recorder writes");
    }
    *parsed = flight_parsed_new(arena);
    struct reader reader = {
        .arena = arena, .fault = fault, .shape = arena_take(values, SHAPE_TEXT_MAX)};
    enum decode_category category = read_document(&reader, root, &(*parsed)->dump);
    (*parsed)->entries_seen = reader.entry;
    return category;
}

// `values`: where those of the pickle are put, which are needed until it returns.
static enum decode_category read_parsed(struct flight_source *source, struct slice record,
                                        struct arena *values, struct arena *arena,
                                        struct flight_parsed **parsed, struct decode_fault *fault) {
    *parsed = flight_parsed_new(arena);
    enum decode_category category = DECODE_OK;
    if (!recorder_pickle_read(record, source->entry_hint, values, arena, &(*parsed)->dump,
                              &(*parsed)->entries_seen))
        category = read_values(record, values, arena, parsed, fault);
    if (category == DECODE_OK)
        source->entry_hint = (*parsed)->entries_seen;
    return category;
}

// The values, which take some times what is made of them, do not wait for the taker.
static void *parse(void *state, struct slice record, struct arena *arena) {
    enum { VALUES_BLOCK = 1 << 20 };
    struct decode_fault ignored;
    struct flight_parsed *parsed = NULL;
    struct arena values;
    arena_init(&values, VALUES_BLOCK);
    enum decode_category category = read_parsed(state, record, &values, arena, &parsed, &ignored);
    arena_release(&values);
    return category == DECODE_OK ? parsed : NULL;
}

static enum decode_category decode(void *state, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct flight_parsed *parsed = NULL;
    enum decode_category category = read_parsed(state, record, arena, arena, &parsed, fault);
    return category == DECODE_OK ? flight_decode_parsed(state, parsed, event, fault)
                                 : flight_refuse_file(state, parsed, event, fault);
}

const struct decoder_type decoder_flight_pickle = {
    .name = "pickle",
    .state_size = FLIGHT_STATE_SIZE,
    .begin = flight_begin,
    .written = flight_written,
    .decode = decode,
    .tell_refused = flight_tell_refused,
    .parse = parse,
    .decode_parsed = flight_decode_parsed,
};

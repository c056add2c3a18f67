// SPDX-License-Identifier: Apache-2.0
// What does a Flight Recorder dump in JSON say?
//
// One pass over the text, which is checked as JSON on the way. Memory: one struct flight_entry each
// from the arena, and texts only where they have escapes or white space. Entries, which are most of
// a dump, are read in flight_entry.c.
#include "receivers/decode/flight_recorder/from_json.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"

// -- pg_config -----------------------------------------------------------------------------------

struct groups {
    struct flight_group *items;
    uint32_t count, capacity;
    struct slice ranks; // of the group before, as it was written
};

static void read_members(struct flight_reader *reader, const struct token *value,
                         struct groups *groups, struct flight_group *group) {
    struct slice text = value->kind == TOKEN_STRING  ? token_decode(value, reader->arena)
                        : value->kind == TOKEN_ARRAY ? token_slice(value)
                                                     : (struct slice){0};
    const struct flight_group *before = group - 1;
    if (groups->count > 1 && slice_equal(text, groups->ranks)) {
        group->members = before->members;
        group->member_count = before->member_count;
    } else {
        group->members = flight_members_parse(text, &group->member_count, reader->arena);
    }
    groups->ranks = text;
}

static struct flight_group *add_group(struct groups *groups, struct arena *arena) {
    if (groups->count == groups->capacity) {
        groups->capacity = groups->capacity == 0 ? 16 : groups->capacity * 2;
        struct flight_group *items = arena_take(arena, groups->capacity * sizeof *items);
        if (groups->count > 0)
            memcpy(items, groups->items, groups->count * sizeof *items);
        groups->items = items;
    }
    struct flight_group *group = &groups->items[groups->count++];
    *group = (struct flight_group){.desc = SLICE("")};
    return group;
}

static const char *read_config(struct flight_reader *reader, const char *at,
                               struct groups *groups) {
    const char *end = reader->end;
    struct json_members outer = {.first = true};
    struct token name, key, value;
    while ((at = json_next_member(&outer, at, end, &name, &reader->json)) != NULL && !outer.done) {
        if (json_peek(at, end) != '{') {
            at = json_scan_value(at, end, 2, &value, &reader->json);
            if (at == NULL)
                return NULL;
            continue;
        }
        struct flight_group *group = add_group(groups, reader->arena);
        group->name = token_decode(&name, reader->arena);
        struct json_members inner = {.first = true};
        while ((at = json_next_member(&inner, at, end, &key, &reader->json)) != NULL &&
               !inner.done) {
            at = json_scan_value(at, end, 3, &value, &reader->json);
            if (at == NULL)
                return NULL;
            if (token_equals(&key, SLICE("desc")) && value.kind == TOKEN_STRING)
                group->desc = token_decode(&value, reader->arena);
            else if (token_equals(&key, SLICE("ranks")))
                read_members(reader, &value, groups, group);
        }
        if (at == NULL)
            return NULL;
        if (group->members == NULL)
            groups->ranks = (struct slice){0};
    }
    return at;
}

// -- the document --------------------------------------------------------------------------------

// Whether any group of pg_status has a last_completed_collective, a number or one in quotes.
static const char *read_status(struct flight_reader *reader, const char *at, bool *counts) {
    const char *end = reader->end;
    struct json_members outer = {.first = true};
    struct token name, key, value;
    *counts = false;
    while ((at = json_next_member(&outer, at, end, &name, &reader->json)) != NULL && !outer.done) {
        if (json_peek(at, end) != '{') {
            at = json_scan_value(at, end, 2, &value, &reader->json);
            if (at == NULL)
                return NULL;
            continue;
        }
        struct json_members inner = {.first = true};
        while ((at = json_next_member(&inner, at, end, &key, &reader->json)) != NULL &&
               !inner.done) {
            int64_t last = -1;
            at = json_scan_value(at, end, 3, &value, &reader->json);
            if (at == NULL)
                return NULL;
            if (token_equals(&key, SLICE("last_completed_collective")) &&
                flight_integer_of(&value, &last) && last >= 0)
                *counts = true;
        }
        if (at == NULL)
            return NULL;
    }
    return at;
}

struct document {
    struct groups groups;
    struct flight_entries entries;
    struct slice version;
    bool has_entries, has_config, counts_completed;
};

static const char *read_document_member(struct flight_reader *reader, const struct token *key,
                                        const char *at, struct document *document) {
    char first = (char)json_peek(at, reader->end);
    if (token_equals(key, SLICE("entries")) && first == '[') {
        document->has_entries = true;
        return flight_read_entries(reader, at, &document->entries);
    }
    if (token_equals(key, SLICE("pg_config")) && first == '{') {
        document->has_config = true;
        document->groups = (struct groups){0};
        return read_config(reader, at, &document->groups);
    }
    if (token_equals(key, SLICE("pg_status")) && first == '{')
        return read_status(reader, at, &document->counts_completed);
    struct token value;
    at = json_scan_value(at, reader->end, 1, &value, &reader->json);
    if (at == NULL || value.kind == TOKEN_NULL)
        return at;
    if (token_equals(key, SLICE("version"))) {
        document->version =
            value.kind == TOKEN_STRING ? token_decode(&value, reader->arena) : token_slice(&value);
    } else if (token_equals(key, SLICE("entries")) || token_equals(key, SLICE("pg_config"))) {
        bool entries = token_equals(key, SLICE("entries"));
        fault_type(reader->fault, token_slice(key), &value, entries ? "a list" : "an object");
        reader->refused = true;
        return NULL;
    }
    return at;
}

static enum decode_category failed(const struct flight_reader *reader, struct slice record) {
    return reader->refused ? reader->fault->category
                           : fault_json(reader->fault, record, &reader->json);
}

// Reads the object that begins at `record` and ends with it.
static enum decode_category read_document(struct flight_reader *reader, struct slice record,
                                          struct document *document) {
    const char *end = reader->end;
    const char *at = record.size == 0 ? record.data : json_skip_space(record.data, end);
    if (json_peek(at, end) != '{')
        return fault_set(reader->fault, DECODE_NOT_OBJECT, SLICE(""),
                         "not a JSON object; a Flight Recorder dump is one, with \"entries\"");
    struct json_members members = {.first = true};
    struct token key;
    while ((at = json_next_member(&members, at, end, &key, &reader->json)) != NULL &&
           !members.done) {
        at = read_document_member(reader, &key, at, document);
        if (at == NULL)
            return failed(reader, record);
    }
    if (at != NULL && json_skip_space(at, end) != end)
        at = json_fail(&reader->json, json_skip_space(at, end),
                       "more than white space after the object");
    if (at == NULL)
        return failed(reader, record);
    if (!document->has_entries && !document->has_config)
        return fault_set(reader->fault, DECODE_MISSING_FIELD, SLICE("entries, pg_config"),
                         "neither is there; a Flight Recorder dump has one of them at least");
    return DECODE_OK;
}

static struct flight_dump *make_dump(const struct document *document, struct arena *arena) {
    struct flight_dump *dump = arena_zero(arena, 1, sizeof *dump);
    dump->whole = true;
    dump->rank = RANK_NONE;
    dump->version = document->version;
    dump->counts_completed = document->counts_completed;
    dump->groups = document->groups.items;
    dump->group_count = document->groups.count;
    dump->entries = document->entries.items;
    dump->entry_count = document->entries.count;
    return dump;
}

static struct flight_reader reader_of(struct flight_memory *memory, struct slice record,
                                      struct arena *arena, struct decode_fault *fault) {
    return (struct flight_reader){
        .end = record.data + record.size, .arena = arena, .memory = memory, .fault = fault};
}

static enum decode_category decode(void *state, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct flight_memory *memory = state;
    struct flight_reader reader = reader_of(memory, record, arena, fault);
    struct document document = {0};
    enum decode_category category = read_document(&reader, record, &document);
    if (category != DECODE_OK)
        return category;
    struct flight_dump *dump = make_dump(&document, arena);
    dump->rank = memory->source.rank_after - 1;
    dump->is_file = memory->source.is_file;
    dump->observed_ns = memory->source.observed_ns;
    return flight_finish(&memory->source, dump, reader.entry, event, fault);
}

const struct decoder_type decoder_flight_json = {
    .name = "flight_recorder",
    .state_size = FLIGHT_STATE_SIZE,
    .begin = flight_begin,
    .decode = decode,
};

// -- tagged lines --------------------------------------------------------------------------------

// The whole dump or the one entry of a tagged line.
static enum decode_category read_body(struct flight_memory *memory, struct slice body, bool whole,
                                      struct arena *arena, struct decode_fault *fault,
                                      struct flight_dump **dump, uint32_t *seen) {
    struct flight_reader reader = reader_of(memory, body, arena, fault);
    struct document document = {0};
    if (whole) {
        enum decode_category category = read_document(&reader, body, &document);
        if (category != DECODE_OK)
            return category;
        *seen = reader.entry;
    } else {
        struct flight_entry *entry = flight_entries_add(&document.entries, 1, arena);
        if (flight_read_entry(&reader, body.data, entry) == NULL)
            return failed(&reader, body);
        if (!flight_entry_finish(entry))
            document.entries.count = 0;
        *seen = 1;
    }
    *dump = make_dump(&document, arena);
    (*dump)->whole = whole;
    return DECODE_OK;
}

enum decode_category flight_tagged(void *state, struct slice object, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct flight_memory *memory = state;
    struct tagged_keys keys;
    struct slice key, body = {0};
    struct token value, wrong = {.kind = TOKEN_NONE};
    bool whole = false;
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value)) {
        bool dump = slice_equal(key, SLICE("dump"));
        if (!dump && !slice_equal(key, SLICE("entry")))
            continue;
        if (value.kind != TOKEN_OBJECT)
            wrong = value;
        body = token_slice(&value);
        whole = dump;
    }
    struct event common = *event;
    enum decode_category category = tagged_keys_end(&keys, &common, fault);
    if (category != DECODE_OK)
        return category;
    if (body.data == NULL)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("dump, entry"),
                         "neither is there; a line of the Flight Recorder has one of them");
    if (wrong.kind != TOKEN_NONE)
        return fault_type(fault, whole ? SLICE("dump") : SLICE("entry"), &wrong, "an object");
    struct flight_dump *dump = NULL;
    uint32_t seen = 0;
    category = read_body(memory, body, whole, arena, fault, &dump, &seen);
    if (category != DECODE_OK)
        return category;
    dump->rank = keys.rank;
    dump->observed_ns = keys.observed_ns != 0 ? keys.observed_ns : keys.time_ns;
    dump->pod = keys.pod;
    dump->namespace = keys.namespace;
    category = flight_finish(&memory->source, dump, seen, event, fault);
    event->time_ns = keys.time_ns;
    event->node = keys.node;
    event->job = keys.job;
    return category;
}

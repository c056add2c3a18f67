// SPDX-License-Identifier: Apache-2.0
// Reads a Flight Recorder dump in JSON.
//
// One pass over the text, which is checked as JSON on the way. Memory: one struct flight_entry each
// from the arena, and texts only where they have escapes or white space. Entries, which are most of
// a dump, are read in entry.c.
#include "receivers/decode/flight_recorder/flight_recorder.h"

#include "receivers/decode/flight_recorder/from_json.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"

_Static_assert(sizeof(struct flight_memory) <= FLIGHT_STATE_SIZE, "FLIGHT_STATE_SIZE is too small");

// -- pg_config -----------------------------------------------------------------------------------

// A dump on its way.
struct document {
    struct flight_dump *dump;
    struct flight_group *groups; // the dump's
    uint32_t group_capacity;
    struct slice ranks; // of the group before, as it was written
    bool has_entries, has_config;
};

static void read_members(struct document *document, const struct token *value, struct arena *arena,
                         struct flight_group *group) {
    struct slice text = value->kind == TOKEN_STRING  ? token_decode(value, arena)
                        : value->kind == TOKEN_ARRAY ? token_slice(value)
                                                     : (struct slice){0};
    const struct flight_group *before = group - 1;
    if (document->dump->group_count > 1 && slice_equal(text, document->ranks)) {
        group->members = before->members;
        group->member_count = before->member_count;
    } else {
        group->members = flight_members_parse(text, &group->member_count, arena);
    }
    document->ranks = text;
}

static struct flight_group *add_group(struct document *document, struct arena *arena) {
    uint32_t count = document->dump->group_count++;
    if (count == document->group_capacity) {
        document->group_capacity = count == 0 ? 16 : count * 2;
        struct flight_group *groups = arena_take(arena, document->group_capacity * sizeof *groups);
        if (count > 0)
            memcpy(groups, document->groups, count * sizeof *groups);
        document->dump->groups = document->groups = groups;
    }
    document->groups[count] = (struct flight_group){.desc = SLICE("")};
    return &document->groups[count];
}

static void read_group(struct document *document, const struct token *name,
                       const struct token *config, struct arena *arena) {
    struct flight_group *group = add_group(document, arena);
    struct json_pairs pairs = json_pairs_of(token_slice(config));
    group->name = token_decode(name, arena);
    for (struct token key, value; json_pairs_next(&pairs, &key, &value);)
        if (token_equals(&key, SLICE("desc")) && value.kind == TOKEN_STRING)
            group->desc = token_decode(&value, arena);
        else if (token_equals(&key, SLICE("ranks")))
            read_members(document, &value, arena, group);
    if (group->members == NULL)
        document->ranks = (struct slice){0};
}

static const char *read_config(struct flight_reader *reader, const char *at,
                               struct document *document) {
    struct json_members members = {.first = true};
    struct token name, value;
    document->has_config = true;
    document->dump->group_count = document->group_capacity = 0;
    document->ranks = (struct slice){0};
    while ((at = json_next_member(&members, at, reader->end, &name, &reader->json)) != NULL &&
           !members.done) {
        at = json_scan_value(at, reader->end, 2, &value, &reader->json);
        if (at != NULL && value.kind == TOKEN_OBJECT)
            read_group(document, &name, &value, reader->arena);
    }
    return at;
}

// -- the document --------------------------------------------------------------------------------

// Whether any group of pg_status has a last_completed_collective, a number or one in quotes.
static bool counts_completed(const struct token *status) {
    struct json_pairs groups = json_pairs_of(token_slice(status));
    for (struct token name, group; json_pairs_next(&groups, &name, &group);) {
        if (group.kind != TOKEN_OBJECT)
            continue;
        struct json_pairs pairs = json_pairs_of(token_slice(&group));
        for (struct token key, value; json_pairs_next(&pairs, &key, &value);) {
            int64_t last = -1;
            if (token_equals(&key, SLICE("last_completed_collective")) &&
                flight_integer_of(&value, &last) && last >= 0)
                return true;
        }
    }
    return false;
}

static const char *read_document_member(struct flight_reader *reader, const struct token *key,
                                        const char *at, struct document *document) {
    struct flight_dump *dump = document->dump;
    bool entries = token_equals(key, SLICE("entries"));
    bool config = token_equals(key, SLICE("pg_config"));
    char first = (char)json_peek(at, reader->end);
    if (entries && first == '[') {
        struct flight_entries list;
        document->has_entries = true;
        at = flight_read_entries(reader, at, &list);
        dump->entries = list.items;
        dump->entry_count = list.count;
        return at;
    }
    if (config && first == '{')
        return read_config(reader, at, document);
    struct token value;
    at = json_scan_value(at, reader->end, 1, &value, &reader->json);
    if (at == NULL || value.kind == TOKEN_NULL)
        return at;
    if (entries || config) {
        fault_type(reader->fault, token_slice(key), &value, entries ? "a list" : "an object");
        reader->refused = true;
        return NULL;
    }
    if (token_equals(key, SLICE("pg_status")) && value.kind == TOKEN_OBJECT)
        dump->counts_completed = counts_completed(&value);
    else if (token_equals(key, SLICE("version")))
        dump->version =
            value.kind == TOKEN_STRING ? token_decode(&value, reader->arena) : token_slice(&value);
    return at;
}

static enum decode_category failed(const struct flight_reader *reader, struct slice record) {
    return reader->refused ? reader->fault->category
                           : fault_json(reader->fault, record, &reader->json);
}

// Reads the object that begins at `record` and ends with it.
static enum decode_category read_document(struct flight_reader *reader, struct slice record,
                                          struct flight_dump *dump) {
    struct document document = {.dump = dump};
    const char *end = reader->end;
    const char *at = record.size == 0 ? record.data : json_skip_space(record.data, end);
    if (at == end)
        return fault_set(reader->fault, DECODE_TORN, SLICE(""), "nothing is in it");
    if (json_peek(at, end) != '{')
        return fault_set(reader->fault, DECODE_NOT_OBJECT, SLICE(""),
                         "not a JSON object; a Flight Recorder dump is one, with \"entries\"");
    struct json_members members = {.first = true};
    struct token key;
    while ((at = json_next_member(&members, at, end, &key, &reader->json)) != NULL && !members.done)
        at = read_document_member(reader, &key, at, &document);
    if (json_read_end(at, end, &reader->json) == NULL)
        return failed(reader, record);
    if (!document.has_entries && !document.has_config)
        return fault_set(reader->fault, DECODE_MISSING_FIELD, SLICE("entries, pg_config"),
                         "neither is there; a Flight Recorder dump has one of them at least");
    return DECODE_OK;
}

static struct flight_reader reader_of(struct flight_memory *memory, struct slice record,
                                      struct arena *arena, struct decode_fault *fault) {
    return (struct flight_reader){
        .end = record.data + record.size, .arena = arena, .memory = memory, .fault = fault};
}

static enum decode_category read_parsed(struct flight_memory *memory, struct slice record,
                                        struct arena *arena, struct flight_parsed **parsed,
                                        struct decode_fault *fault) {
    struct flight_reader reader = reader_of(memory, record, arena, fault);
    *parsed = flight_parsed_new(arena);
    enum decode_category category = read_document(&reader, record, &(*parsed)->dump);
    (*parsed)->entries_seen = reader.entry;
    return category;
}

static void *parse(void *state, struct slice record, struct arena *arena) {
    struct decode_fault ignored;
    struct flight_parsed *parsed;
    return read_parsed(state, record, arena, &parsed, &ignored) == DECODE_OK ? parsed : NULL;
}

static enum decode_category decode(void *state, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct flight_parsed *parsed;
    enum decode_category category = read_parsed(state, record, arena, &parsed, fault);
    return category == DECODE_OK ? flight_decode_parsed(state, parsed, event, fault)
                                 : flight_refuse_file(state, parsed, event, fault);
}

const struct decoder_type decoder_flight_json = {
    .name = "flight_recorder",
    .state_size = FLIGHT_STATE_SIZE,
    .begin = flight_begin,
    .written = flight_written,
    .decode = decode,
    .tell_refused = flight_tell_refused,
    .parse = parse,
    .decode_parsed = flight_decode_parsed,
};

// -- tagged lines --------------------------------------------------------------------------------

// The one entry of a tagged line.
static enum decode_category read_entry(struct flight_reader *reader, struct slice body,
                                       struct flight_dump *dump) {
    struct flight_entries entries = {0};
    struct flight_entry *entry = flight_entries_add(&entries, 1, reader->arena);
    if (flight_read_entry(reader, body.data, entry) == NULL)
        return failed(reader, body);
    reader->entry = 1;
    dump->whole = false;
    dump->entries = entries.items;
    dump->entry_count = flight_entry_finish(entry);
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
    struct flight_parsed *parsed = flight_parsed_new(arena);
    struct flight_dump *dump = &parsed->dump;
    struct flight_reader reader = reader_of(memory, body, arena, fault);
    category = whole ? read_document(&reader, body, dump) : read_entry(&reader, body, dump);
    dump->rank = keys.rank;
    dump->observed_ns = keys.observed_ns != 0 ? keys.observed_ns : keys.time_ns;
    dump->pod = keys.pod;
    dump->namespace = keys.namespace;
    if (category == DECODE_OK)
        category = flight_finish(&memory->source, dump, reader.entry, event, fault);
    if (category != DECODE_OK && whole)
        flight_refuse_dump(&memory->source, parsed, event, fault);
    event->time_ns = keys.time_ns;
    event->timeless = false;
    event->node = keys.node;
    event->job = keys.job;
    return category;
}

bool flight_tagged_tell_refused(struct slice start, struct slice why, struct arena *arena,
                                struct event *event) {
    static const struct flight_source NOTHING;
    struct tagged_keys keys;
    struct slice key;
    struct token value;
    tagged_keys_begin(&keys, start, arena);
    while (tagged_keys_next(&keys, &key, &value))
        continue;
    if (keys.rank == RANK_NONE)
        return false;
    tagged_keys_known(&keys);
    struct flight_parsed *parsed = flight_parsed_new(arena);
    parsed->dump.rank = keys.rank;
    parsed->dump.observed_ns = keys.observed_ns != 0 ? keys.observed_ns : keys.time_ns;
    parsed->dump.pod = keys.pod;
    parsed->dump.namespace = keys.namespace;
    flight_make_refused(&NOTHING, parsed, arena_copy(arena, why), event);
    event->time_ns = keys.time_ns;
    event->timeless = keys.time_ns == 0;
    event->node = keys.node;
    event->job = keys.job;
    return true;
}

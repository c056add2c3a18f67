// SPDX-License-Identifier: Apache-2.0
// What does a Flight Recorder dump say that PyTorch wrote as a pickle?
//
// pickle.c makes plain values of it; here they are read into the same struct flight_dump that the
// JSON form gives, sizes and dtypes written as the compact JSON that the other form has. Lists of
// those are two deep at most, so nothing here follows a value that holds itself. Frames are not
// looked at.
#include "receivers/decode/flight_recorder/parts.h"

#include "receivers/decode/flight_recorder/pickle.h"
#include "receivers/decode/json/fault.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

enum { SHAPE_DEPTH = 3, SHAPE_TEXT_MAX = 64 << 10, KEYS_KNOWN = 64 };

// Keys are shared through the memo, so one look at each is enough: by address.
struct known_key {
    const struct pickle_value *key;
    enum flight_field field;
};

struct reader {
    struct arena *arena;
    struct decode_fault *fault;
    struct known_key known[KEYS_KNOWN];
    char *shape;                // SHAPE_TEXT_MAX bytes, where texts of sizes are made
    struct flight_entry before; // whose texts are used again where they are the same
    uint32_t entry;
};

static const char *kind_text(const struct pickle_value *value, char room[64]) {
    static const char *const KINDS[] = {
        [PICKLE_NONE] = "None",
        [PICKLE_FALSE] = "False",
        [PICKLE_TRUE] = "True",
        [PICKLE_INTEGER] = "an integer",
        [PICKLE_HUGE] = "an integer beyond 64 bits",
        [PICKLE_DECIMAL] = "a decimal number",
        [PICKLE_TEXT] = "a text",
        [PICKLE_LIST] = "a list",
        [PICKLE_TUPLE] = "a tuple",
        [PICKLE_DICT] = "a dict",
    };
    if (value->kind == PICKLE_TEXT)
        snprintf(room, 64, "the text \"%.*s\"",
                 (int)(value->text.size < 40 ? value->text.size : 40), value->text.data);
    else if (value->kind == PICKLE_INTEGER)
        snprintf(room, 64, "the integer %" PRId64, value->integer);
    else
        snprintf(room, 64, "%s", KINDS[value->kind]);
    return room;
}

static bool refuse(struct reader *reader, enum flight_field field, const struct pickle_value *found,
                   const char *expected) {
    char name[80], room[64];
    struct slice text = FLIGHT_FIELD_NAMES[field];
    int size =
        snprintf(name, sizeof name, "entries[%u].%.*s", reader->entry, (int)text.size, text.data);
    fault_set(reader->fault, DECODE_WRONG_TYPE, (struct slice){name, (size_t)size},
              "found %s, expected %s", kind_text(found, room), expected);
    return false;
}

// -- values --------------------------------------------------------------------------------------

static bool integer_of(const struct pickle_value *value, int64_t *integer) {
    if (value->kind == PICKLE_NONE)
        return true;
    if (value->kind == PICKLE_INTEGER) {
        *integer = value->integer;
        return true;
    }
    if (value->kind != PICKLE_TEXT || value->text.size == 0 || value->text.size > 20)
        return false;
    bool negative = value->text.data[0] == '-';
    int64_t number = 0;
    for (size_t i = negative; i < value->text.size; i++) {
        char c = value->text.data[i];
        if (!isdigit((unsigned char)c) || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_sub_overflow(number, c - '0', &number))
            return false;
    }
    if ((negative && value->text.size == 1) ||
        (!negative && __builtin_sub_overflow(0, number, &number)))
        return false;
    *integer = number;
    return true;
}

static bool flag_of(const struct pickle_value *value, bool *flag) {
    if (value->kind == PICKLE_TRUE || value->kind == PICKLE_FALSE)
        *flag = value->kind == PICKLE_TRUE;
    else if (value->kind == PICKLE_INTEGER && (value->integer & ~1) == 0)
        *flag = value->integer == 1;
    else
        return value->kind == PICKLE_NONE;
    return true;
}

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

static bool read_shapes(struct reader *reader, enum flight_field field,
                        const struct pickle_value *value, struct flight_entry *entry) {
    if (value->kind == PICKLE_NONE)
        return true;
    if (!is_sequence(value))
        return false;
    struct slice *before = flight_entry_shapes(&reader->before, field);
    struct shape_text text = {.data = reader->shape};
    if (!put_list(&text, value))
        return true; // as if it were not said
    if (before->data == NULL || !slice_equal(*before, (struct slice){text.data, text.size}))
        *before = arena_copy(reader->arena, (struct slice){text.data, text.size});
    *flight_entry_shapes(entry, field) = *before;
    return true;
}

// -- entries -------------------------------------------------------------------------------------

static enum flight_field field_of(struct reader *reader, const struct pickle_value *key) {
    struct known_key *known = &reader->known[((uintptr_t)key >> 5) % KEYS_KNOWN];
    if (known->key != key)
        *known = (struct known_key){key, key->kind == PICKLE_TEXT ? flight_field_find(key->text)
                                                                  : FLIGHT_FIELD_OTHER};
    return known->field;
}

static bool read_field(struct reader *reader, enum flight_field field,
                       const struct pickle_value *value, struct flight_entry *entry) {
    switch (field) {
    case FLIGHT_FIELD_OTHER:
        return true;
    case FLIGHT_FIELD_GROUP:
        return read_group(value, entry) ||
               refuse(reader, field, value, "a list of name and description");
    case FLIGHT_FIELD_NAME:
    case FLIGHT_FIELD_STATE:
        if (value->kind == PICKLE_NONE)
            return true;
        if (value->kind != PICKLE_TEXT)
            return refuse(reader, field, value, "a text");
        if (field == FLIGHT_FIELD_NAME)
            entry->name = value->text;
        else if (slice_equal(value->text, SLICE("completed")))
            entry->state = FLIGHT_COMPLETED;
        else if (slice_equal(value->text, SLICE("started")))
            entry->state = FLIGHT_STARTED;
        return true;
    case FLIGHT_FIELD_RETIRED:
    case FLIGHT_FIELD_IS_P2P:
        return flag_of(value, flight_entry_flag(entry, field)) ||
               refuse(reader, field, value, "True or False");
    case FLIGHT_FIELD_INPUT_SIZES:
    case FLIGHT_FIELD_OUTPUT_SIZES:
    case FLIGHT_FIELD_INPUT_DTYPES:
    case FLIGHT_FIELD_OUTPUT_DTYPES:
        return read_shapes(reader, field, value, entry) || refuse(reader, field, value, "a list");
    case FLIGHT_FIELD_SEQ_ID:
        if (entry->collective_seq_id >= 0)
            return true;
        break;
    default:
        break;
    }
    return integer_of(value, flight_entry_integer(entry, field)) ||
           refuse(reader, field, value, "an integer");
}

static bool read_entries(struct reader *reader, const struct pickle_value *list,
                         struct flight_entries *entries) {
    for (reader->entry = 0; reader->entry < list->count; reader->entry++) {
        const struct pickle_value *item = list->items[reader->entry];
        if (item->kind != PICKLE_DICT)
            return refuse(reader, FLIGHT_FIELD_OTHER, item, "a dict");
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
        int64_t number = -1;
        if (last != NULL && integer_of(last, &number) && number >= 0)
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
    char room[64];
    *member = pickle_get(dict, key);
    if (*member != NULL && (*member)->kind == PICKLE_NONE)
        *member = NULL;
    if (*member == NULL || (*member)->kind == kind)
        return DECODE_OK;
    return fault_set(fault, DECODE_WRONG_TYPE, key, "found %s, expected %s",
                     kind_text(*member, room), expected);
}

static enum decode_category read_document(struct reader *reader, const struct pickle_value *root,
                                          struct flight_dump *dump) {
    const struct pickle_value *entries, *config;
    enum decode_category category =
        take_member(root, SLICE("entries"), PICKLE_LIST, "a list", &entries, reader->fault);
    if (category == DECODE_OK)
        category =
            take_member(root, SLICE("pg_config"), PICKLE_DICT, "a dict", &config, reader->fault);
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

static enum decode_category decode(void *state, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    const struct flight_source *source = state;
    struct pickle_fault pickle;
    const struct pickle_value *root = pickle_read(record, arena, &pickle);
    if (root == NULL)
        return refuse_pickle(&pickle, fault);
    char room[64];
    if (root->kind != PICKLE_DICT)
        return fault_set(fault, DECODE_NOT_OBJECT, SLICE(""),
                         "found %s, expected a dict with \"entries\" as a Flight Recorder writes",
                         kind_text(root, room));
    struct flight_dump *dump = arena_zero(arena, 1, sizeof *dump);
    *dump = (struct flight_dump){.rank = source->rank_after - 1,
                                 .whole = true,
                                 .is_file = source->is_file,
                                 .observed_ns = source->observed_ns};
    struct reader reader = {
        .arena = arena, .fault = fault, .shape = arena_take(arena, SHAPE_TEXT_MAX)};
    enum decode_category category = read_document(&reader, root, dump);
    if (category != DECODE_OK)
        return category;
    return flight_finish(source, dump, reader.entry, event, fault);
}

const struct decoder_type decoder_flight_pickle = {
    .name = "pickle",
    .state_size = FLIGHT_STATE_SIZE,
    .begin = flight_begin,
    .decode = decode,
};

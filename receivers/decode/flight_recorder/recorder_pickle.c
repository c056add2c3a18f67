// SPDX-License-Identifier: Apache-2.0
// Reads a pickle as PyTorch's recorder writes it straight into a dump.
//
// PyTorch pickles at protocol 2, with an op code for all items of a container at once, and puts
// only texts and frames into the memo, each in the next place. Such a pickle is read from front to
// back as JSON would be: a key is a place of the memo whose field is known, and what a list of
// sizes was read as is known by its bytes. Whatever is written otherwise, is out of order or is of
// an unexpected kind makes it give up: pickle.c and from_pickle.c then read the record from its
// beginning, and say what is wrong with it. So nothing here has a message, and no rule of theirs is
// weakened: a record shorter than PICKLE_VALUES_MAX cannot reach their bounds.
//
// Memory: one struct flight_entry each, and the memo of pickle_stream.h.
#include "receivers/decode/flight_recorder/recorder_pickle.h"

#include "base/text/number.h"
#include "receivers/decode/flight_recorder/pickle.h"
#include "receivers/decode/flight_recorder/pickle_stream.h"

#include <assert.h>

enum {
    SHAPES_SEEN = 4, // of each field
    SHAPE_TEXT_MAX = 4096,
};

// A list of sizes or dtypes as its op codes and as text.
struct seen_shape {
    const unsigned char *raw;
    size_t size;
    struct slice text;
};

struct reader {
    struct pickle_stream stream;
    struct arena *arena;
    struct seen_shape shapes[4][SHAPES_SEEN]; // of the four fields
    uint8_t shape_next[4];
    char shape[SHAPE_TEXT_MAX];
};

// -- sizes and dtypes ----------------------------------------------------------------------------

static bool put(struct reader *reader, size_t *size, const char *text, size_t more) {
    if (more > SHAPE_TEXT_MAX - *size)
        return false;
    memcpy(reader->shape + *size, text, more);
    *size += more;
    return true;
}

static bool put_item(struct reader *reader, size_t *size) {
    if (pickle_is_integer(pickle_peek(&reader->stream))) {
        int64_t value;
        char room[NUMBER_TEXT_MAX];
        if (!pickle_read_integer(&reader->stream, &value))
            return false;
        struct slice digits = number_text(value, room);
        return put(reader, size, digits.data, digits.size);
    }
    struct slice text;
    if (!pickle_read_text(&reader->stream, &text))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == '"' || text.data[i] == '\\')
            return false;
    return put(reader, size, "\"", 1) && put(reader, size, text.data, text.size) &&
           put(reader, size, "\"", 1);
}

// The list as compact JSON in reader->shape, two deep at most.
static bool put_list(struct reader *reader, size_t *size) {
    unsigned depth = 0;
    bool first = true;
    do {
        unsigned char code = pickle_peek(&reader->stream);
        if (depth > 0 && code == OP_APPENDS) {
            reader->stream.at++;
            if (!put(reader, size, "]", 1) || !pickle_take_put_other(&reader->stream))
                return false;
            depth--;
            first = false;
            continue;
        }
        if (!first && !put(reader, size, ",", 1))
            return false;
        first = false;
        if (code != OP_EMPTY_LIST) {
            if (depth == 0 || !put_item(reader, size))
                return false;
            continue;
        }
        bool empty;
        if (depth == 2 || !pickle_begin_container(&reader->stream, OP_EMPTY_LIST, &empty) ||
            !put(reader, size, empty ? "[]" : "[", empty ? 2 : 1))
            return false;
        depth += !empty;
        first = !empty;
    } while (depth > 0);
    return true;
}

// Texts of the memo and numbers in the same bytes are the same list, since no place changes.
static const struct seen_shape *seen_before(const struct reader *reader, unsigned which) {
    for (unsigned i = 0; i < SHAPES_SEEN; i++) {
        const struct seen_shape *seen = &reader->shapes[which][i];
        if (seen->size > 0 && seen->size <= pickle_left(&reader->stream) &&
            memcmp(reader->stream.at, seen->raw, seen->size) == 0)
            return seen;
    }
    return NULL;
}

static bool read_shapes(struct reader *reader, const struct flight_field *field,
                        struct flight_entry *entry) {
    struct slice *value = (struct slice *)(void *)((char *)entry + field->offset);
    unsigned which = (unsigned)(field - FLIGHT_FIELDS) % 4;
    const struct seen_shape *seen = seen_before(reader, which);
    if (seen != NULL) {
        reader->stream.at += seen->size;
        *value = seen->text;
        return true;
    }
    if (pickle_skip_op(&reader->stream, OP_NONE))
        return true;
    const unsigned char *from = reader->stream.at;
    uint32_t memo_count = reader->stream.memo_count;
    size_t size = 0;
    if (!put_list(reader, &size))
        return false;
    *value = arena_copy(reader->arena, (struct slice){reader->shape, size});
    if (memo_count == reader->stream.memo_count) { // what puts something must be read each time
        reader->shapes[which][reader->shape_next[which]++ % SHAPES_SEEN] =
            (struct seen_shape){from, (size_t)(reader->stream.at - from), *value};
    }
    return true;
}

// -- entries -------------------------------------------------------------------------------------

static bool read_group(struct reader *reader, struct flight_entry *entry) {
    return pickle_skip_op(&reader->stream, OP_NONE) ||
           (pickle_read_text(&reader->stream, &entry->group) &&
            pickle_read_text(&reader->stream, &entry->desc) &&
            pickle_skip_op(&reader->stream, OP_TUPLE2) && pickle_take_put_other(&reader->stream));
}

static bool read_field(struct reader *reader, const struct flight_field *field,
                       struct flight_entry *entry) {
    if (field->kind == FLIGHT_OTHER)
        return pickle_skip_value(&reader->stream);
    if (field->kind == FLIGHT_GROUP)
        return read_group(reader, entry);
    if (field->kind == FLIGHT_SHAPES)
        return read_shapes(reader, field, entry);
    if (field->kind == FLIGHT_INTEGER && pickle_is_integer(pickle_peek(&reader->stream)))
        return pickle_read_integer(&reader->stream,
                                   (int64_t *)(void *)((char *)entry + field->offset));
    struct token token;
    return pickle_read_token(&reader->stream, &token) &&
           flight_entry_take(entry, field, &token, reader->arena) == NULL;
}

static uint8_t field_named(const char *data, uint32_t size) {
    return (uint8_t)(flight_field_find((struct slice){data, size}) - FLIGHT_FIELDS);
}

// NULL: no text is there.
static const struct flight_field *read_key(struct reader *reader) {
    unsigned char code = pickle_peek(&reader->stream);
    reader->stream.at += reader->stream.at < reader->stream.end;
    if (code == OP_BINGET || code == OP_LONG_BINGET) {
        struct pickle_memo_item *item = pickle_memo_get(&reader->stream, code);
        if (item == NULL || item->data == NULL)
            return NULL;
        if (item->field == PICKLE_FIELD_UNKNOWN)
            item->field = field_named(item->data, item->size);
        return &FLIGHT_FIELDS[item->field];
    }
    struct pickle_memo_item item;
    if (code != OP_BINUNICODE || !pickle_new_text(&reader->stream, &item))
        return NULL;
    item.field = field_named(item.data, item.size);
    return pickle_take_put(&reader->stream, item) ? &FLIGHT_FIELDS[item.field] : NULL;
}

static bool read_entry(struct reader *reader, struct flight_entry *entry) {
    bool empty;
    if (!pickle_begin_container(&reader->stream, OP_EMPTY_DICT, &empty))
        return false;
    while (!empty && !pickle_skip_op(&reader->stream, OP_SETITEMS)) {
        const struct flight_field *field = read_key(reader);
        if (field == NULL || !read_field(reader, field, entry))
            return false;
    }
    return pickle_take_put_other(&reader->stream);
}

static bool read_entries(struct reader *reader, uint32_t hint, struct flight_dump *dump,
                         uint32_t *seen) {
    struct flight_entries list = {0};
    bool empty;
    if (!pickle_begin_container(&reader->stream, OP_EMPTY_LIST, &empty))
        return false;
    while (!empty && !pickle_skip_op(&reader->stream, OP_APPENDS)) {
        struct flight_entry *entry = flight_entries_add(&list, hint, reader->arena);
        if (!read_entry(reader, entry))
            return false;
        if (!flight_entry_finish(entry))
            list.count--;
        (*seen)++;
    }
    dump->entries = list.items;
    dump->entry_count = list.count;
    return pickle_take_put_other(&reader->stream);
}

// -- pg_config, pg_status ------------------------------------------------------------------------

static bool read_group_config(struct reader *reader, struct flight_group *group,
                              struct slice *ranks) {
    bool empty;
    if (!pickle_begin_container(&reader->stream, OP_EMPTY_DICT, &empty))
        return false;
    while (!empty && !pickle_skip_op(&reader->stream, OP_SETITEMS)) {
        struct slice key;
        if (!pickle_read_text(&reader->stream, &key))
            return false;
        bool is_read = slice_equal(key, SLICE("desc"))
                           ? pickle_read_text(&reader->stream, &group->desc)
                       : slice_equal(key, SLICE("ranks")) ? pickle_read_text(&reader->stream, ranks)
                                                          : pickle_skip_value(&reader->stream);
        if (!is_read)
            return false;
    }
    return pickle_take_put_other(&reader->stream);
}

static bool read_config(struct reader *reader, struct flight_dump *dump) {
    struct flight_group *groups = NULL;
    uint32_t count = 0, capacity = 0;
    struct slice before = {0};
    bool empty;
    if (!pickle_begin_container(&reader->stream, OP_EMPTY_DICT, &empty))
        return false;
    while (!empty && !pickle_skip_op(&reader->stream, OP_SETITEMS)) {
        struct flight_group group = {.desc = SLICE("")};
        struct slice ranks = {0};
        if (!pickle_read_text(&reader->stream, &group.name) ||
            !read_group_config(reader, &group, &ranks))
            return false;
        if (ranks.data != NULL && ranks.data == before.data) {
            group.members = groups[count - 1].members;
            group.member_count = groups[count - 1].member_count;
        } else if (ranks.data != NULL) {
            group.members = flight_members_parse(ranks, &group.member_count, reader->arena);
        }
        before = ranks;
        if (count == capacity) {
            capacity = capacity == 0 ? 16 : capacity * 2;
            groups = arena_enlarge(reader->arena, groups, count, capacity, sizeof *groups);
        }
        groups[count++] = group;
    }
    dump->groups = groups;
    dump->group_count = count;
    return pickle_take_put_other(&reader->stream);
}

static bool read_group_status(struct reader *reader, bool *counts) {
    int64_t last = -1;
    bool empty;
    if (!pickle_begin_container(&reader->stream, OP_EMPTY_DICT, &empty))
        return false;
    while (!empty && !pickle_skip_op(&reader->stream, OP_SETITEMS)) {
        struct slice key;
        struct token token;
        if (!pickle_read_text(&reader->stream, &key))
            return false;
        if (!slice_equal(key, SLICE("last_completed_collective"))) {
            if (!pickle_skip_value(&reader->stream))
                return false;
            continue;
        }
        last = -1;
        if (!pickle_read_token(&reader->stream, &token) || !flight_integer_of(&token, &last))
            return false;
    }
    *counts |= last >= 0;
    return pickle_take_put_other(&reader->stream);
}

static bool read_status(struct reader *reader, bool *counts) {
    bool empty;
    if (!pickle_begin_container(&reader->stream, OP_EMPTY_DICT, &empty))
        return false;
    while (!empty && !pickle_skip_op(&reader->stream, OP_SETITEMS)) {
        struct slice name;
        if (!pickle_read_text(&reader->stream, &name) || !read_group_status(reader, counts))
            return false;
    }
    return pickle_take_put_other(&reader->stream);
}

// -- the document --------------------------------------------------------------------------------

enum member { MEMBER_ENTRIES, MEMBER_CONFIG, MEMBER_STATUS, MEMBER_VERSION, MEMBER_OTHER };

static enum member member_named(struct slice key) {
    static const char *const NAMES[] = {"entries", "pg_config", "pg_status", "version"};
    unsigned member = 0;
    while (member < MEMBER_OTHER && !slice_equal(key, slice_of(NAMES[member])))
        member++;
    return (enum member)member;
}

static bool read_member(struct reader *reader, enum member member, uint32_t entry_hint,
                        struct flight_dump *dump, uint32_t *entries_seen) {
    switch (member) {
    case MEMBER_ENTRIES:
        return read_entries(reader, entry_hint, dump, entries_seen);
    case MEMBER_CONFIG:
        return read_config(reader, dump);
    case MEMBER_STATUS:
        return read_status(reader, &dump->counts_completed);
    case MEMBER_VERSION:
        return pickle_read_text(&reader->stream, &dump->version);
    case MEMBER_OTHER:
        break;
    }
    return pickle_skip_value(&reader->stream);
}

bool recorder_pickle_read(struct slice record, uint32_t entry_hint, struct arena *scratch,
                          struct arena *arena, struct flight_dump *dump, uint32_t *entries_seen) {
    const unsigned char *start = (const unsigned char *)record.data;
    struct reader reader = {.stream = {.at = start, .end = start + record.size, .scratch = scratch},
                            .arena = arena};
    unsigned known = 0; // members that came
    bool empty;
    *entries_seen = 0;
    if (record.size >= PICKLE_VALUES_MAX || !pickle_skip_op(&reader.stream, OP_PROTO) ||
        !pickle_skip_op(&reader.stream, 2) ||
        !pickle_begin_container(&reader.stream, OP_EMPTY_DICT, &empty))
        return false;
    while (!empty && !pickle_skip_op(&reader.stream, OP_SETITEMS)) {
        struct slice key;
        if (!pickle_read_text(&reader.stream, &key))
            return false;
        enum member member = member_named(key);
        unsigned bit = 1u << member;
        if ((member != MEMBER_OTHER && (known & bit) != 0) ||
            !read_member(&reader, member, entry_hint, dump, entries_seen))
            return false;
        known |= bit;
    }
    return (known & (1u << MEMBER_ENTRIES | 1u << MEMBER_CONFIG)) != 0 &&
           pickle_take_put_other(&reader.stream) && pickle_skip_op(&reader.stream, OP_STOP) &&
           pickle_left(&reader.stream) == 0;
}

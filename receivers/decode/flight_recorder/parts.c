// SPDX-License-Identifier: Apache-2.0
// Reads what both encodings of a Flight Recorder dump have in common: the fields of an entry, which
// rank wrote the dump, who is in a group, what an entry's state is. One pass over the entries;
// memory from the arena only.
#include "receivers/decode/flight_recorder/parts.h"

#include "base/sort.h"
#include "base/text/cut.h"
#include "receivers/decode/json/block.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#define FIELD(name, kind, member)                                                                  \
    { JSON_KEY(name), kind, offsetof(struct flight_entry, member) }
#define OTHER(name)                                                                                \
    { JSON_KEY(name), FLIGHT_OTHER, 0 }

const struct flight_field FLIGHT_FIELDS[FLIGHT_FIELD_COUNT] = {
    OTHER(""),
    FIELD("record_id", FLIGHT_INTEGER, record_id),
    FIELD("process_group", FLIGHT_GROUP, group),
    FIELD("collective_seq_id", FLIGHT_INTEGER, collective_seq_id),
    FIELD("p2p_seq_id", FLIGHT_INTEGER, p2p_seq_id),
    FIELD("profiling_name", FLIGHT_NAME, name),
    FIELD("time_created_ns", FLIGHT_INTEGER, created_ns),
    FIELD("time_discovered_started_ns", FLIGHT_INTEGER, started_ns),
    FIELD("time_discovered_completed_ns", FLIGHT_INTEGER, completed_ns),
    FIELD("state", FLIGHT_STATE, state),
    FIELD("retired", FLIGHT_FLAG, retired),
    FIELD("is_p2p", FLIGHT_FLAG, is_p2p),
    FIELD("timeout_ms", FLIGHT_INTEGER, timeout_ms),
    FIELD("input_sizes", FLIGHT_SHAPES, input_sizes),
    FIELD("output_sizes", FLIGHT_SHAPES, output_sizes),
    FIELD("input_dtypes", FLIGHT_SHAPES, input_dtypes),
    FIELD("output_dtypes", FLIGHT_SHAPES, output_dtypes),
    FIELD("seq_id", FLIGHT_SEQUENCE, collective_seq_id),
    OTHER("pg_id"),
    OTHER("op_id"),
    OTHER("thread_id"),
    OTHER("thread_name"),
    OTHER("duration_ms"),
};

const struct flight_field *flight_field_find(struct slice name) {
    for (unsigned i = 1; i < FLIGHT_FIELD_COUNT; i++)
        if (slice_equal(name, json_key_name(&FLIGHT_FIELDS[i].key)))
            return &FLIGHT_FIELDS[i];
    return &FLIGHT_FIELDS[0];
}

// -- values --------------------------------------------------------------------------------------

// Numbers in quotes are taken too: writers differ.
bool flight_integer_of(const struct token *token, int64_t *value) {
    struct token number = *token;
    struct json_fault ignored;
    if (token->kind == TOKEN_NULL)
        return true;
    if (token->kind == TOKEN_STRING) {
        const char *end = token->text + token->size;
        if (token->size == 0 || (*token->text != '-' && !text_is_digit(*token->text)) ||
            json_scan_long_number(token->text, end, &number, &ignored) != end)
            return false;
    }
    if (number.kind == TOKEN_INTEGER)
        *value = number.integer;
    return number.kind == TOKEN_INTEGER;
}

static bool flag_of(const struct token *token, bool *flag) {
    bool integer = token->kind == TOKEN_INTEGER && (token->integer & ~1) == 0;
    *flag = integer ? token->integer == 1 : token->kind == TOKEN_TRUE;
    return integer || token->kind == TOKEN_TRUE || token->kind == TOKEN_FALSE;
}

// Times are read as signed numbers, which is what a recorder writes; flight_entry_finish makes
// those below 1 missing.
const char *flight_entry_take(struct flight_entry *entry, const struct flight_field *field,
                              const struct token *value, struct arena *arena) {
    void *to = (char *)entry + field->offset;
    if (value->kind == TOKEN_NULL)
        return NULL;
    switch (field->kind) {
    case FLIGHT_SEQUENCE:
        if (entry->collective_seq_id >= 0)
            return NULL;
        return flight_integer_of(value, to) ? NULL : "an integer";
    case FLIGHT_INTEGER:
        return flight_integer_of(value, to) ? NULL : "an integer";
    case FLIGHT_FLAG:
        return flag_of(value, to) ? NULL : "true or false";
    case FLIGHT_NAME:
    case FLIGHT_STATE:
        if (value->kind != TOKEN_STRING)
            return "a text";
        if (field->kind == FLIGHT_NAME)
            entry->name = token_decode(value, arena);
        else if (token_equals(value, SLICE("completed")))
            entry->state = FLIGHT_COMPLETED;
        else if (token_equals(value, SLICE("started")))
            entry->state = FLIGHT_STARTED;
        return NULL;
    case FLIGHT_OTHER:
    case FLIGHT_SHAPES:
    case FLIGHT_GROUP:
        break;
    }
    assert(field->kind == FLIGHT_OTHER);
    return NULL;
}

void flight_refuse(struct decode_fault *fault, uint32_t index, const struct flight_field *field,
                   const struct token *found, const char *expected) {
    char path[80];
    struct slice name = json_key_name(&field->key);
    int size = snprintf(path, sizeof path, "entries[%u].%.*s", index, (int)name.size, name.data);
    fault_type(fault, (struct slice){path, (size_t)size}, found, expected);
}

// -- who wrote it --------------------------------------------------------------------------------

// The name without extensions like ".json", ".gz": such as begin with a letter.
static struct slice without_extensions(struct slice name) {
    for (;;) {
        size_t at = name.size;
        while (at > 0 && isalnum((unsigned char)name.data[at - 1]))
            at--;
        if (at < 2 || at == name.size || name.data[at - 1] != '.' ||
            !isalpha((unsigned char)name.data[at]))
            return name;
        name.size = at - 1;
    }
}

enum { RANK_DIGITS_MAX = 10 };

static int32_t rank_of_path(struct slice path) {
    const char *slash = memrchr(path.data, '/', path.size);
    if (slash != NULL)
        path = text_from(path, (size_t)(slash - path.data) + 1);
    path = without_extensions(path);
    size_t at = path.size;
    uint64_t rank;
    while (at > 0 && text_is_digit(path.data[at - 1]))
        at--;
    return text_number(text_from(path, at), RANK_DIGITS_MAX, &rank) && rank <= RANK_MAX
               ? (int32_t)rank
               : RANK_NONE;
}

void flight_begin(void *state, const struct decoder_input *input) {
    struct flight_source *source = state;
    int32_t rank = input->path.size == 0 ? RANK_NONE : rank_of_path(input->path);
    source->rank_after = rank + 1;
    source->observed_ns = input->observed_ns;
    source->node = input->node;
    source->is_file = input->is_file;
}

// A dump that is written once more is as new as that.
void flight_written(void *state, uint64_t written_ns) {
    struct flight_source *source = state;
    if (written_ns > source->observed_ns)
        source->observed_ns = written_ns;
}

// -- entries -------------------------------------------------------------------------------------

enum { ENTRIES_FIRST = 16, ENTRIES_HINT_MAX = 1 << 16 };

struct flight_entry *flight_entries_add(struct flight_entries *entries, uint32_t hint,
                                        struct arena *arena) {
    assert(entries->count <= entries->capacity);
    if (entries->count == entries->capacity) {
        uint32_t capacity = entries->capacity * 2;
        if (capacity == 0)
            capacity = hint < ENTRIES_FIRST      ? ENTRIES_FIRST
                       : hint > ENTRIES_HINT_MAX ? ENTRIES_HINT_MAX
                                                 : hint;
        struct flight_entry *items = arena_take(arena, capacity * sizeof *items);
        if (entries->count > 0)
            memcpy(items, entries->items, entries->count * sizeof *items);
        entries->items = items;
        entries->capacity = capacity;
    }
    struct flight_entry *entry = &entries->items[entries->count++];
    *entry = (struct flight_entry){.record_id = -1, .collective_seq_id = -1, .p2p_seq_id = -1};
    return entry;
}

static void drop_missing(uint64_t *time_ns) {
    if ((int64_t)*time_ns < 0)
        *time_ns = 0;
}

bool flight_entry_finish(struct flight_entry *entry) {
    assert(entry->group.data != NULL || entry->group.size == 0);
    drop_missing(&entry->created_ns);
    drop_missing(&entry->started_ns);
    drop_missing(&entry->completed_ns);
    if (entry->timeout_ms < 0)
        entry->timeout_ms = 0;
    // A state follows from what was discovered; producers without times say it in a word.
    if (entry->completed_ns != 0)
        entry->state = FLIGHT_COMPLETED;
    else if (entry->started_ns != 0 && entry->state == FLIGHT_SCHEDULED)
        entry->state = FLIGHT_STARTED;
    // Where there is one sequence for both kinds.
    if (entry->is_p2p && entry->p2p_seq_id < 0)
        entry->p2p_seq_id = entry->collective_seq_id;
    int64_t sequence = entry->is_p2p ? entry->p2p_seq_id : entry->collective_seq_id;
    return entry->group.data != NULL && sequence >= 0;
}

// -- members -------------------------------------------------------------------------------------

static int compare_ranks(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

uint32_t flight_members_sort(int32_t *ranks, uint32_t count, struct arena *arena) {
    bool ascending = true;
    for (uint32_t i = 1; i < count && ascending; i++)
        ascending = ranks[i - 1] < ranks[i];
    if (ascending)
        return count;
    sort_stable(ranks, count, sizeof *ranks, arena, compare_ranks);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    return kept;
}

static struct slice skip_blanks(struct slice text) {
    while (text.size > 0 && isspace((unsigned char)*text.data))
        text = text_from(text, 1);
    return text;
}

const int32_t *flight_members_parse(struct slice text, uint32_t *count, struct arena *arena) {
    *count = 0;
    text = skip_blanks(text);
    if (!text_begins(text, SLICE("[")))
        return NULL;
    // Each rank takes a digit and a comma or bracket.
    int32_t *ranks = arena_take(arena, (text.size / 2 + 1) * sizeof *ranks);
    uint32_t found = 0;
    do {
        uint64_t rank;
        text = skip_blanks(text_from(text, 1)); // the bracket or comma
        if (!text_take_number(&text, 1, RANK_DIGITS_MAX, &rank) || rank > RANK_MAX)
            return NULL;
        ranks[found++] = (int32_t)rank;
        text = skip_blanks(text);
    } while (text_begins(text, SLICE(",")));
    if (!text_skip_char(&text, ']') || skip_blanks(text).size > 0)
        return NULL;
    *count = flight_members_sort(ranks, found, arena);
    return ranks;
}

// -- the whole -----------------------------------------------------------------------------------

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static struct slice backend_of(struct slice name) {
    const char *colon = name.size == 0 ? NULL : memchr(name.data, ':', name.size);
    return colon == NULL ? SLICE("") : (struct slice){name.data, (size_t)(colon - name.data)};
}

static enum decode_category check(const struct flight_dump *dump, uint32_t entries_seen,
                                  struct decode_fault *fault) {
    struct slice version = dump->version;
    bool two = version.size >= 1 && version.data[0] == '2' &&
               (version.size == 1 || version.data[1] == '.');
    if (version.data != NULL && !two)
        return fault_set(fault, DECODE_UNSUPPORTED_VERSION, SLICE("version"),
                         "found \"%.*s\"; Flight Recorder formats 2.x are read",
                         (int)(version.size < 32 ? version.size : 32), version.data);
    if (dump->rank == RANK_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("rank"),
                         dump->is_file
                             ? "a dump does not say which rank wrote it; end the file's name with "
                               "the rank, as in trace_rank_3"
                             : "it is not said which rank wrote it; add rank, an integer");
    if (entries_seen > 0 && dump->entry_count == 0)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("entries[].process_group"),
                         "none of %u entries has a process_group and a sequence number",
                         entries_seen);
    return DECODE_OK;
}

enum decode_category flight_finish(const struct flight_source *source, struct flight_dump *dump,
                                   uint32_t entries_seen, struct event *event,
                                   struct decode_fault *fault) {
    enum decode_category category = check(dump, entries_seen, fault);
    if (category != DECODE_OK)
        return category;
    string_id node = STRING_NONE;
    if (source->node.size > 0 &&
        fault_intern(fault, SLICE("host"), source->node, &node) != DECODE_OK)
        return fault->category;
    uint64_t newest_ns = 0;
    for (uint32_t i = 0; i < dump->entry_count; i++) {
        const struct flight_entry *entry = &dump->entries[i];
        dump->reports_states |= entry->state != FLIGHT_SCHEDULED;
        newest_ns = later(newest_ns, later(entry->created_ns, entry->started_ns));
        newest_ns = later(newest_ns, entry->completed_ns);
    }
    dump->backend = dump->entry_count == 0 ? SLICE("") : backend_of(dump->entries[0].name);
    // Of a file the time is that of the newest thing in it, so that copying files changes nothing.
    if (newest_ns == 0)
        newest_ns = source->observed_ns;
    *event = (struct event){.time_ns = newest_ns,
                            .position = event->position,
                            .source = event->source,
                            .node = node,
                            .rank = dump->rank,
                            .kind = EVENT_FLIGHT,
                            .decoder = event->decoder,
                            .raw = event->raw,
                            .carried = event->carried,
                            .flight = dump};
    fault->category = DECODE_OK;
    return DECODE_OK;
}

// -- what is refused ------------------------------------------------------------------------------

void flight_make_refused(const struct flight_source *source, struct flight_parsed *parsed,
                         struct slice why, struct event *event) {
    const struct flight_dump *read = &parsed->dump;
    assert(read->rank != RANK_NONE && read->whole);
    string_id node = source->node.size == 0 ? STRING_NONE : intern(source->node);
    parsed->dump = (struct flight_dump){.rank = read->rank,
                                        .whole = true,
                                        .is_file = read->is_file,
                                        .observed_ns = read->observed_ns,
                                        .backend = SLICE(""),
                                        .pod = read->pod,
                                        .namespace = read->namespace,
                                        .unreadable = why};
    *event = (struct event){.time_ns = parsed->dump.observed_ns,
                            .position = event->position,
                            .source = event->source,
                            .node = node == STRING_REFUSED ? STRING_NONE : node,
                            .rank = parsed->dump.rank,
                            .kind = EVENT_FLIGHT,
                            .timeless = true,
                            .decoder = event->decoder,
                            .raw = event->raw,
                            .carried = event->carried,
                            .flight = &parsed->dump};
}

enum decode_category flight_refuse_dump(const struct flight_source *source,
                                        struct flight_parsed *parsed, struct event *event,
                                        struct decode_fault *fault) {
    assert(decode_refused(fault->category));
    fault->told = parsed->dump.rank != RANK_NONE;
    if (!fault->told)
        return fault->category;
    snprintf(parsed->why, sizeof parsed->why, "%s",
             fault->detail[0] == '\0' ? decode_category_name(fault->category) : fault->detail);
    flight_make_refused(source, parsed, slice_of(parsed->why), event);
    return fault->category;
}

static void take_file(const struct flight_source *source, struct flight_dump *dump) {
    dump->rank = source->rank_after - 1;
    dump->is_file = source->is_file;
    dump->observed_ns = source->observed_ns;
}

enum decode_category flight_refuse_file(const struct flight_source *source,
                                        struct flight_parsed *parsed, struct event *event,
                                        struct decode_fault *fault) {
    take_file(source, &parsed->dump);
    return flight_refuse_dump(source, parsed, event, fault);
}

bool flight_tell_refused(void *state, struct slice start, struct slice why, struct arena *arena,
                         struct event *event) {
    const struct flight_source *source = state;
    struct flight_parsed *parsed = flight_parsed_new(arena);
    (void)start;
    take_file(source, &parsed->dump);
    if (parsed->dump.rank == RANK_NONE)
        return false;
    flight_make_refused(source, parsed, arena_copy(arena, why), event);
    return true;
}

// -- what was parsed ------------------------------------------------------------------------------

struct flight_parsed *flight_parsed_new(struct arena *arena) {
    struct flight_parsed *parsed = arena_take(arena, sizeof *parsed);
    memset(parsed, 0, offsetof(struct flight_parsed, why));
    parsed->dump.whole = true;
    parsed->dump.rank = RANK_NONE;
    return parsed;
}

enum decode_category flight_decode_parsed(void *state, void *parsed, struct event *event,
                                          struct decode_fault *fault) {
    const struct flight_source *source = state;
    struct flight_parsed *read = parsed;
    assert(read->dump.whole);
    take_file(source, &read->dump);
    enum decode_category category =
        flight_finish(source, &read->dump, read->entries_seen, event, fault);
    return category == DECODE_OK ? category : flight_refuse_dump(source, read, event, fault);
}

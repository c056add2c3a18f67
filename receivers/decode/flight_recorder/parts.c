// SPDX-License-Identifier: Apache-2.0
// What follows from the fields of a Flight Recorder dump, whichever way they were written?
//
// Which rank wrote it, who is in a group, what an entry's state is. One pass over the entries;
// memory from the arena only.
#include "receivers/decode/flight_recorder/parts.h"

#include "base/sort.h"
#include "receivers/decode/json/fault.h"

#include <ctype.h>

const struct slice FLIGHT_FIELD_NAMES[FLIGHT_FIELD_COUNT] = {
    [FLIGHT_FIELD_OTHER] = {"", 0},
    [FLIGHT_FIELD_RECORD_ID] = {"record_id", 9},
    [FLIGHT_FIELD_GROUP] = {"process_group", 13},
    [FLIGHT_FIELD_COLLECTIVE] = {"collective_seq_id", 17},
    [FLIGHT_FIELD_P2P] = {"p2p_seq_id", 10},
    [FLIGHT_FIELD_NAME] = {"profiling_name", 14},
    [FLIGHT_FIELD_CREATED] = {"time_created_ns", 15},
    [FLIGHT_FIELD_STARTED] = {"time_discovered_started_ns", 26},
    [FLIGHT_FIELD_COMPLETED] = {"time_discovered_completed_ns", 28},
    [FLIGHT_FIELD_STATE] = {"state", 5},
    [FLIGHT_FIELD_RETIRED] = {"retired", 7},
    [FLIGHT_FIELD_IS_P2P] = {"is_p2p", 6},
    [FLIGHT_FIELD_TIMEOUT] = {"timeout_ms", 10},
    [FLIGHT_FIELD_INPUT_SIZES] = {"input_sizes", 11},
    [FLIGHT_FIELD_OUTPUT_SIZES] = {"output_sizes", 12},
    [FLIGHT_FIELD_INPUT_DTYPES] = {"input_dtypes", 12},
    [FLIGHT_FIELD_OUTPUT_DTYPES] = {"output_dtypes", 13},
    [FLIGHT_FIELD_SEQ_ID] = {"seq_id", 6},
};

enum flight_field flight_field_find(struct slice name) {
    for (enum flight_field field = 1; field < FLIGHT_FIELD_COUNT; field++)
        if (slice_equal(name, FLIGHT_FIELD_NAMES[field]))
            return field;
    return FLIGHT_FIELD_OTHER;
}

int64_t *flight_entry_integer(struct flight_entry *entry, enum flight_field field) {
    // Times are read as signed numbers, which is what a recorder writes; flight_entry_finish makes
    // those below 1 missing.
    switch (field) {
    case FLIGHT_FIELD_RECORD_ID:
        return &entry->record_id;
    case FLIGHT_FIELD_COLLECTIVE:
    case FLIGHT_FIELD_SEQ_ID:
        return &entry->collective_seq_id;
    case FLIGHT_FIELD_P2P:
        return &entry->p2p_seq_id;
    case FLIGHT_FIELD_CREATED:
        return (int64_t *)&entry->created_ns;
    case FLIGHT_FIELD_STARTED:
        return (int64_t *)&entry->started_ns;
    case FLIGHT_FIELD_COMPLETED:
        return (int64_t *)&entry->completed_ns;
    case FLIGHT_FIELD_TIMEOUT:
        return &entry->timeout_ms;
    default:
        return NULL;
    }
}

struct slice *flight_entry_shapes(struct flight_entry *entry, enum flight_field field) {
    switch (field) {
    case FLIGHT_FIELD_INPUT_SIZES:
        return &entry->input_sizes;
    case FLIGHT_FIELD_OUTPUT_SIZES:
        return &entry->output_sizes;
    case FLIGHT_FIELD_INPUT_DTYPES:
        return &entry->input_dtypes;
    case FLIGHT_FIELD_OUTPUT_DTYPES:
        return &entry->output_dtypes;
    default:
        return NULL;
    }
}

bool *flight_entry_flag(struct flight_entry *entry, enum flight_field field) {
    if (field == FLIGHT_FIELD_RETIRED)
        return &entry->retired;
    return field == FLIGHT_FIELD_IS_P2P ? &entry->is_p2p : NULL;
}

// -- who wrote it --------------------------------------------------------------------------------

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

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

static int32_t rank_of_path(struct slice path) {
    const char *slash = memrchr(path.data, '/', path.size);
    if (slash != NULL)
        path = (struct slice){slash + 1, (size_t)(path.data + path.size - slash - 1)};
    path = without_extensions(path);
    size_t at = path.size;
    while (at > 0 && is_digit(path.data[at - 1]))
        at--;
    if (at == path.size || path.size - at > 10)
        return RANK_NONE;
    int64_t rank = 0;
    for (; at < path.size; at++)
        rank = rank * 10 + (path.data[at] - '0');
    return rank <= RANK_MAX ? (int32_t)rank : RANK_NONE;
}

void flight_begin(void *state, const struct decoder_input *input) {
    struct flight_source *source = state;
    int32_t rank = input->path.size == 0 ? RANK_NONE : rank_of_path(input->path);
    source->rank_after = rank + 1;
    source->observed_ns = input->observed_ns;
    source->is_file = input->is_file;
}

// -- entries -------------------------------------------------------------------------------------

enum { ENTRIES_FIRST = 16, ENTRIES_HINT_MAX = 1 << 16 };

struct flight_entry *flight_entries_add(struct flight_entries *entries, uint32_t hint,
                                        struct arena *arena) {
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

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && isspace((unsigned char)*at))
        at++;
    return at;
}

const int32_t *flight_members_parse(struct slice text, uint32_t *count, struct arena *arena) {
    *count = 0;
    if (text.size == 0)
        return NULL;
    const char *end = text.data + text.size;
    const char *at = skip_blanks(text.data, end);
    if (at == end || *at != '[')
        return NULL;
    // Each rank takes a digit and a comma or bracket.
    int32_t *ranks = arena_take(arena, (text.size / 2 + 1) * sizeof *ranks);
    uint32_t found = 0;
    do {
        at = skip_blanks(at + 1, end);
        int64_t rank = 0;
        const char *digits = at;
        while (at < end && is_digit(*at) && rank <= RANK_MAX)
            rank = rank * 10 + (*at++ - '0');
        if (at == digits || rank > RANK_MAX)
            return NULL;
        ranks[found++] = (int32_t)rank;
        at = skip_blanks(at, end);
    } while (at < end && *at == ',');
    if (at == end || *at != ']' || skip_blanks(at + 1, end) != end)
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
                            .rank = dump->rank,
                            .kind = EVENT_FLIGHT,
                            .decoder = event->decoder,
                            .raw = event->raw,
                            .carried = event->carried,
                            .flight = dump};
    fault->category = DECODE_OK;
    return DECODE_OK;
}

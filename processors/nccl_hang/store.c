// SPDX-License-Identifier: Apache-2.0
// Takes what one dump, or one entry, changes of what is known.
//
// A dump is walked once. Its groups are found by the bytes of their names, which a decoder gives
// from one place for entries in a row; what ended sets a bit and leaves its newest entry to be
// written down when the walk is over, so that names are looked up once a group and not once an
// entry.
#include "processors/nccl_hang/store.h"

#include "base/hash/hash.h"
#include <stdlib.h>

enum { SIZES_TEXT_MAX = 160, SLOTS_FIRST = 16 };

// Times of one process may go back a little between two threads; a new start takes longer.
static const uint64_t RESTART_NS = 1000000000;

// -- recorders and places ------------------------------------------------------------------------

const struct hang_source *hang_find_source(const struct hang_store *store,
                                           const struct hang_group *group, int32_t rank) {
    assert(group->head.live != 0);
    struct hang_source_key key = {group->job, group->backend, rank};
    const struct hang_source *source = keyed_rows_find(&store->sources, &key);
    if (source != NULL)
        return source;
    key.backend = intern(SLICE(""));
    return keyed_rows_find(&store->sources, &key);
}

const struct hang_rank *hang_find_rank(const struct hang_store *store, string_id job,
                                       int32_t rank) {
    const struct hang_rank_key key = {job, rank};
    return keyed_rows_find(&store->ranks, &key);
}

bool hang_has_several_jobs(const struct hang_store *store) {
    string_id job = STRING_NONE;
    const struct hang_rank *rank;
    for (uint32_t at = 0; (rank = keyed_rows_next(&store->ranks, &at)) != NULL;) {
        if (job != STRING_NONE && rank->key.job != STRING_NONE && rank->key.job != job)
            return true;
        job = rank->key.job != STRING_NONE ? rank->key.job : job;
    }
    return false;
}

// The row with this key, made when new.
static void *row_of(struct keyed_rows *rows, const void *key) {
    void *row = keyed_rows_find(rows, key);
    return row != NULL ? row : keyed_rows_add(rows, key);
}

// The newest word on a node counts; of two of one time the higher name, whichever came first.
static void take_node(string_id *node, uint64_t *node_ns, string_id said, uint64_t time_ns) {
    if (said == STRING_NONE || time_ns < *node_ns)
        return;
    if (*node != STRING_NONE && time_ns == *node_ns &&
        slice_compare(intern_slice(said), intern_slice(*node)) < 0)
        return;
    *node = said;
    *node_ns = time_ns;
}

// A node that a line without a time says gives way to any other word, whenever it was read.
static void take_place(struct hang_store *store, const struct event *event, int32_t rank,
                       string_id node) {
    const struct hang_rank_key key = {event->job, rank};
    struct hang_rank *row = row_of(&store->ranks, &key);
    bool has_undated = event->kind == EVENT_RANK_MAP || event->kind == EVENT_FLIGHT;
    bool is_undated = has_undated && event->timeless;
    if (event->time_ns > row->heard_ns)
        row->heard_ns = event->time_ns;
    take_node(&row->node, &row->place_ns, node, is_undated ? 0 : event->time_ns);
}

static void take_read(struct hang_store *store, const struct event *event) {
    const struct hang_rank_key key = {event->job, event->flight->rank};
    struct hang_rank *row = row_of(&store->ranks, &key);
    uint64_t observed_ns = event->flight->observed_ns;
    uint64_t written_ns = observed_ns != 0 ? observed_ns : event->time_ns;
    if (written_ns > row->read_ns)
        row->read_node = STRING_NONE;
    if (written_ns > row->read_ns)
        row->read_ns = written_ns;
    take_node(&row->read_node, &row->read_ns, event->node, written_ns);
}

static struct hang_source *take_source(struct hang_store *store, const struct event *event,
                                       string_id backend) {
    const struct flight_dump *dump = event->flight;
    const struct hang_source_key key = {event->job, backend, dump->rank};
    struct hang_source *source = row_of(&store->sources, &key);
    if (event->time_ns > source->heard_ns)
        source->heard_ns = event->time_ns;
    source->tells_states |= dump->reports_states;
    source->streams |= !dump->whole;
    if (!dump->whole || event->time_ns < source->dump_ns)
        return source;
    source->whole = true;
    source->dated = !dump->is_file || (source->dated && event->time_ns == source->dump_ns);
    source->dump_ns = event->time_ns;
    if (event->node == STRING_NONE)
        source->node = STRING_NONE;
    take_node(&source->node, &source->node_ns, event->node, event->time_ns);
    source->first_record = dump->entry_count == 0 ? 0 : dump->entries[0].record_id;
    source->oldest_ns = dump->entry_count == 0 ? 0 : dump->entries[0].created_ns;
    return source;
}

// -- one dump ------------------------------------------------------------------------------------

// A group of the dump that is being taken.
struct slot {
    struct slice name, desc;
    struct hang_member *member;      // NULL: a bound is reached
    const struct flight_entry *last; // the newest that ended, or of a silent recorder the newest
};

struct taking {
    struct hang_store *store;
    const struct event *event;
    const struct flight_dump *dump;
    struct arena *scratch;
    string_id backend;
    bool tells_states;
    bool silent; // nothing tells whether an operation ended
    struct slot *slots;
    uint32_t slot_count, slot_capacity, slot_last;
};

static struct slot *add_slot(struct taking *taking, const struct flight_entry *entry) {
    if (taking->slot_count == taking->slot_capacity) {
        uint32_t capacity = taking->slot_capacity == 0 ? SLOTS_FIRST : taking->slot_capacity * 2;
        struct slot *slots = arena_take(taking->scratch, capacity * sizeof *slots);
        if (taking->slot_count > 0)
            memcpy(slots, taking->slots, taking->slot_count * sizeof *slots);
        taking->slots = slots;
        taking->slot_capacity = capacity;
    }
    struct slot *slot = &taking->slots[taking->slot_count++];
    *slot = (struct slot){.name = entry->group, .desc = entry->desc};
    string_id name = intern(entry->group), desc = intern(entry->desc);
    if (name == STRING_REFUSED || desc == STRING_REFUSED)
        return slot;
    struct hang_group *group =
        hang_take_group(taking->store, taking->event->job, taking->backend, name, desc);
    if (group == NULL)
        return slot;
    if (taking->event->time_ns > group->heard_ns)
        group->heard_ns = taking->event->time_ns;
    slot->member = hang_take_member(taking->store, group, taking->dump->rank);
    if (slot->member != NULL)
        take_node(&slot->member->node, &slot->member->node_ns, taking->event->node,
                  taking->event->time_ns);
    return slot;
}

static bool is_slot(const struct slot *slot, const struct flight_entry *entry) {
    return slice_equal(slot->name, entry->group) && slice_equal(slot->desc, entry->desc);
}

static struct slot *slot_of(struct taking *taking, const struct flight_entry *entry) {
    assert(taking->slot_count <= taking->slot_capacity);
    if (taking->slot_last < taking->slot_count && is_slot(&taking->slots[taking->slot_last], entry))
        return &taking->slots[taking->slot_last];
    for (uint32_t i = 0; i < taking->slot_count; i++)
        if (is_slot(&taking->slots[i], entry)) {
            taking->slot_last = i;
            return &taking->slots[i];
        }
    taking->slot_last = taking->slot_count;
    return add_slot(taking, entry);
}

// -- one entry -----------------------------------------------------------------------------------

static struct slice operation_of(struct slice name) {
    const char *colon = name.size == 0 ? NULL : memchr(name.data, ':', name.size);
    if (colon == NULL)
        return name;
    return (struct slice){colon + 1, (size_t)(name.data + name.size - colon - 1)};
}

static void mark_done(struct hang_progress *progress, int64_t sequence) {
    assert(progress->done >= -1);
    uint64_t *bits = progress->done_bits;
    if (sequence > progress->done) {
        uint64_t by = (uint64_t)sequence - (uint64_t)progress->done;
        if (by >= 64 || progress->done < 0) {
            uint64_t old[HANG_WORDS];
            memcpy(old, bits, sizeof old);
            memset(bits, 0, sizeof old);
            for (uint64_t i = 0; progress->done >= 0 && i + by < HANG_WINDOW; i++)
                bits[(i + by) / 64] |= (old[i / 64] >> (i % 64) & 1) << ((i + by) % 64);
        } else {
            for (unsigned i = HANG_WORDS - 1; i > 0; i--)
                bits[i] = bits[i] << by | bits[i - 1] >> (64 - by);
            bits[0] <<= by;
        }
        progress->done = sequence;
    }
    uint64_t back = (uint64_t)(progress->done - sequence);
    if (back < HANG_WINDOW)
        bits[back / 64] |= UINT64_C(1) << (back % 64);
}

// A lower number that was made later: the job was started again and counts anew.
static bool is_restart(const struct hang_member *member, const struct hang_progress *progress,
                       int64_t sequence, uint64_t created_ns) {
    if (created_ns == 0 || progress->newest < 0)
        return false;
    if (progress == &member->collective && sequence == progress->newest && sequence == member->last)
        return created_ns > member->last_completed_ns + RESTART_NS &&
               created_ns > progress->newest_created_ns + RESTART_NS;
    return sequence < progress->newest && created_ns > progress->newest_created_ns + RESTART_NS;
}

// A higher number that was made earlier: of the job before it was started again.
static bool is_of_before(const struct hang_progress *progress, int64_t sequence,
                         uint64_t created_ns) {
    return created_ns != 0 && progress->newest >= 0 && sequence > progress->newest &&
           created_ns + RESTART_NS < progress->newest_created_ns;
}

static void begin_anew(struct hang_store *store, struct hang_member *member) {
    hang_open_clear(store, member);
    member->collective = member->p2p = (struct hang_progress){.newest = -1, .done = -1};
    member->last = -1;
    member->last_name = STRING_NONE;
    member->last_created_ns = member->last_completed_ns = 0;
}

static bool parse_number(struct slice *text, int32_t *number) {
    size_t at = 0;
    int64_t value = 0;
    while (at < text->size && text->data[at] >= '0' && text->data[at] <= '9' && value <= RANK_MAX)
        value = value * 10 + (text->data[at++] - '0');
    if (at == 0 || value > RANK_MAX)
        return false;
    *number = (int32_t)value;
    *text = (struct slice){text->data + at, text->size - at};
    return true;
}

// "send 1->2", "recv 3<-0".
static void read_peers(struct slice operation, struct hang_open *open) {
    open->direction = HANG_BATCH;
    open->own = open->peer = -1;
    bool send = operation.size > 5 && memcmp(operation.data, "send ", 5) == 0;
    bool recv = operation.size > 5 && memcmp(operation.data, "recv ", 5) == 0;
    if (!send && !recv)
        return;
    struct slice rest = {operation.data + 5, operation.size - 5};
    int32_t own, peer;
    if (!parse_number(&rest, &own) || rest.size < 3 ||
        memcmp(rest.data, send ? "->" : "<-", 2) != 0)
        return;
    rest = (struct slice){rest.data + 2, rest.size - 2};
    if (!parse_number(&rest, &peer) || rest.size != 0)
        return;
    open->direction = send ? HANG_SEND : HANG_RECV;
    open->own = own;
    open->peer = peer;
}

static bool begins_with(struct slice text, const char *start) {
    size_t size = strlen(start);
    return text.size >= size && memcmp(text.data, start, size) == 0;
}

// Never 0, which stands for "not said".
static uint64_t hash_said(uint64_t hash, struct slice text) {
    return text.data == NULL ? hash : hash_more(hash | 1, text.data, text.size) | 1;
}

// What must be equal on all ranks of inputs and outputs: a scatter has inputs and a gather has
// outputs on one rank only.
static uint64_t hash_both(struct slice operation, struct slice input, struct slice output) {
    uint64_t hash = begins_with(operation, "scatter") ? 0 : hash_said(0, input);
    return begins_with(operation, "gather") ? hash : hash_said(hash, output);
}

// Sizes of all_to_all differ by right.
static bool may_differ_in_size(struct slice operation) {
    return begins_with(operation, "all_to_all") || begins_with(operation, "alltoall") ||
           begins_with(operation, "ALLTOALL");
}

static string_id short_text(struct slice text) {
    if (text.data == NULL || text.size == 0 || text.size > SIZES_TEXT_MAX)
        return STRING_NONE;
    string_id id = intern(text);
    return id == STRING_REFUSED ? STRING_NONE : id;
}

static void take_open(struct taking *taking, struct hang_member *member,
                      const struct flight_entry *entry) {
    struct slice operation = operation_of(entry->name);
    struct hang_open open = {
        .name = short_text(operation),
        .sizes = short_text(entry->input_sizes),
        .dtypes = short_text(entry->input_dtypes),
        .own = -1,
        .peer = -1,
        .state = (uint8_t)entry->state,
        .retired = entry->retired,
        .tells_states = taking->tells_states,
        .from_file = taking->dump->is_file,
        .several = slice_equal(operation, SLICE("coalesced")),
        .silent = taking->silent,
        .sequence = entry->is_p2p ? entry->p2p_seq_id : entry->collective_seq_id,
        .created_ns = entry->created_ns != 0 ? entry->created_ns : taking->event->time_ns,
        .started_ns = entry->started_ns,
        .seen_ns = taking->dump->whole ? taking->event->time_ns : HANG_SEEN_ALWAYS,
        .timeout_ms = entry->timeout_ms,
        .sizes_hash = may_differ_in_size(operation)
                          ? 0
                          : hash_both(operation, entry->input_sizes, entry->output_sizes),
        .dtypes_hash = hash_both(operation, entry->input_dtypes, entry->output_dtypes),
    };
    if (entry->is_p2p)
        read_peers(operation, &open);
    hang_open_take(taking->store, member, &open);
}

static bool has_ended(const struct taking *taking, const struct flight_entry *entry) {
    // Without states an operation that ended is retired (gloo); with them one that is retired and
    // not completed timed out.
    return entry->state == FLIGHT_COMPLETED ||
           (!taking->tells_states && !taking->silent && entry->retired);
}

static void take_entry(struct taking *taking, struct slot *slot, const struct flight_entry *entry) {
    assert(slot->member != NULL);
    struct hang_member *member = slot->member;
    struct hang_progress *progress = entry->is_p2p ? &member->p2p : &member->collective;
    int64_t sequence = entry->is_p2p ? entry->p2p_seq_id : entry->collective_seq_id;
    if (is_of_before(progress, sequence, entry->created_ns))
        return;
    if (is_restart(member, progress, sequence, entry->created_ns)) {
        begin_anew(taking->store, member);
        slot->last = NULL;
    }
    if (sequence >= progress->newest) {
        progress->newest = sequence;
        if (entry->created_ns > progress->newest_created_ns)
            progress->newest_created_ns = entry->created_ns;
    }
    bool ended = has_ended(taking, entry);
    if (!entry->is_p2p && (ended || taking->silent) &&
        (slot->last == NULL || sequence >= slot->last->collective_seq_id))
        slot->last = entry;
    if (ended) {
        mark_done(progress, sequence);
        if (member->open_count > 0)
            hang_open_remove(taking->store, member, entry->is_p2p, sequence);
    } else if (!hang_is_done(progress, sequence)) {
        take_open(taking, member, entry);
    }
}

// -- after the entries ---------------------------------------------------------------------------

static void keep_last(const struct slot *slot) {
    assert(slot->member != NULL);
    struct hang_member *member = slot->member;
    const struct flight_entry *last = slot->last;
    if (last == NULL || last->collective_seq_id < member->last)
        return;
    bool same = last->collective_seq_id == member->last;
    member->last = last->collective_seq_id;
    if (!same || last->created_ns >= member->last_created_ns) {
        member->last_name = short_text(operation_of(last->name));
        member->last_created_ns = last->created_ns;
    }
    if (!same || last->completed_ns > member->last_completed_ns)
        member->last_completed_ns = last->completed_ns;
}

static const struct flight_group *config_of(const struct flight_dump *dump, struct slice name) {
    for (uint32_t i = 0; i < dump->group_count; i++)
        if (slice_equal(dump->groups[i].name, name))
            return &dump->groups[i];
    return NULL;
}

static int compare_ranks(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

// Whether its list of ranks may be believed: it must hold the one who wrote it.
static bool is_trusted(const struct flight_group *group, int32_t rank) {
    return group != NULL && group->members != NULL &&
           bsearch(&rank, group->members, group->member_count, sizeof rank, compare_ranks) != NULL;
}

static void take_config(struct taking *taking) {
    const struct flight_dump *dump = taking->dump;
    bool usable = false;
    for (uint32_t i = 0; i < taking->slot_count && !usable; i++)
        usable = is_trusted(config_of(dump, taking->slots[i].name), dump->rank);
    if (!usable)
        return;
    for (uint32_t i = 0; i < taking->slot_count; i++) {
        struct hang_member *member = taking->slots[i].member;
        if (member == NULL || taking->event->time_ns < member->config_ns)
            continue;
        member->config_ns = taking->event->time_ns;
        const struct flight_group *group = config_of(dump, taking->slots[i].name);
        member->listed = group == NULL ? HANG_UNLISTED : HANG_LISTED;
        if (is_trusted(group, dump->rank) && group->member_count <= taking->store->max_ranks)
            hang_member_set(taking->store, member, group->members, group->member_count);
    }
}

static bool is_silent(const struct flight_dump *dump) {
    if (dump->reports_states || dump->counts_completed)
        return false;
    for (uint32_t i = 0; i < dump->entry_count; i++)
        if (!dump->entries[i].retired)
            return false;
    return true;
}

static void take_dump(struct hang_store *store, const struct event *event, struct arena *scratch) {
    assert(event->kind == EVENT_FLIGHT && event->flight != NULL);
    const struct flight_dump *dump = event->flight;
    string_id backend = intern(dump->backend);
    if (dump->rank == RANK_NONE || backend == STRING_REFUSED)
        return;
    hang_make_room(store, scratch);
    take_place(store, event, dump->rank, event->node);
    if (dump->unreadable.data != NULL) // refusal.h
        return;
    if (dump->whole)
        take_read(store, event);
    const struct hang_source *source = take_source(store, event, backend);
    struct taking taking = {
        .store = store,
        .event = event,
        .dump = dump,
        .scratch = scratch,
        .backend = backend,
        .tells_states = dump->whole ? dump->reports_states : source->tells_states,
        .silent = dump->whole && is_silent(dump),
    };
    for (uint32_t i = 0; i < dump->entry_count; i++) {
        struct slot *slot = slot_of(&taking, &dump->entries[i]);
        if (slot->member != NULL)
            take_entry(&taking, slot, &dump->entries[i]);
    }
    for (uint32_t i = 0; i < taking.slot_count; i++) {
        struct hang_member *member = taking.slots[i].member;
        if (member == NULL)
            continue;
        member->known |= !taking.silent;
        keep_last(&taking.slots[i]);
        if (member->open_count > 0)
            hang_open_prune(store, member);
    }
    if (dump->whole)
        take_config(&taking);
}

void hang_store_take(struct hang_store *store, const struct event *event, struct arena *scratch) {
    if (event->kind == EVENT_FLIGHT) {
        take_dump(store, event, scratch);
    } else if (event->kind == EVENT_RANK_MAP && event->place->rank != RANK_NONE) {
        string_id node = event->place->node != STRING_NONE ? event->place->node : event->node;
        hang_make_room(store, scratch);
        take_place(store, event, event->place->rank, node);
    } else if (event->kind == EVENT_APP_LINE && event->rank != RANK_NONE) {
        hang_make_room(store, scratch);
        take_place(store, event, event->rank, event->node);
    }
}

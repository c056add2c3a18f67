// SPDX-License-Identifier: Apache-2.0
// The JSON documents of RAS. The document is checked as a whole; then its communicators and their
// ranks are walked, one event a step, without keeping any of them. A document that lacks commas is
// copied with them put in. O(document).
#include "receivers/decode/nccl_ras/nccl_ras.h"
#include "receivers/decode/nccl_ras/report.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/log_time.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/line/tokens.h"

#include <assert.h>

#define ROW(name, slot)                                                                            \
    { {(name), sizeof(name) - 1}, (slot), NULL }
#define INNER(name, slot, shape)                                                                   \
    { {(name), sizeof(name) - 1}, (slot), &(shape) }

enum { HASH_MAX = 64, COUNTS_MAX = 4096 };

enum document_slot {
    SLOT_TIMESTAMP,
    SLOT_COMMUNICATORS,
    SLOT_EVENT,
    SLOT_PEER,
    SLOT_PEER_HOST,
    SLOT_PEER_ADDRESS,
    SLOT_PEER_PID,
    SLOT_PEER_CUDA,
    SLOT_PEER_NVML,
    SLOT_COUNT
};

static const struct json_shape_row peer_rows[] = {
    ROW("host", SLOT_PEER_HOST),      ROW("addr", SLOT_PEER_ADDRESS),   ROW("pid", SLOT_PEER_PID),
    ROW("cuda_devs", SLOT_PEER_CUDA), ROW("nvml_devs", SLOT_PEER_NVML),
};
static const struct json_shape peer_shape = JSON_SHAPE(peer_rows);
static const struct json_shape_row document_rows[] = {
    ROW("timestamp", SLOT_TIMESTAMP),
    ROW("communicators", SLOT_COMMUNICATORS),
    ROW("event", SLOT_EVENT),
    INNER("peer", SLOT_PEER, peer_shape),
};
static const struct json_shape document_shape = JSON_SHAPE(document_rows);

enum communicator_slot { SLOT_HASH, SLOT_SIZE, SLOT_RANKS, SLOT_MISSING, COMMUNICATOR_SLOT_COUNT };
static const struct json_shape_row communicator_rows[] = {
    ROW("hash", SLOT_HASH),
    ROW("size", SLOT_SIZE),
    ROW("ranks", SLOT_RANKS),
    ROW("missing_ranks", SLOT_MISSING),
};
static const struct json_shape communicator_shape = JSON_SHAPE(communicator_rows);

enum rank_slot {
    SLOT_RANK,
    SLOT_HOST,
    SLOT_PID,
    SLOT_CUDA,
    SLOT_NVML,
    SLOT_INIT,
    SLOT_ASYNC,
    SLOT_FINALIZE,
    SLOT_DESTROY,
    SLOT_ABORT,
    SLOT_UNRESPONSIVE,
    SLOT_DEAD,
    SLOT_COUNTS,
    RANK_SLOT_COUNT
};
static const struct json_shape_row status_rows[] = {
    ROW("init_state", SLOT_INIT),          ROW("async_error", SLOT_ASYNC),
    ROW("finalize_called", SLOT_FINALIZE), ROW("destroy_flag", SLOT_DESTROY),
    ROW("abort_flag", SLOT_ABORT),         ROW("unresponsive", SLOT_UNRESPONSIVE),
    ROW("considered_dead", SLOT_DEAD),
};
static const struct json_shape status_shape = JSON_SHAPE(status_rows);
static const struct json_shape_row rank_rows[] = {
    ROW("rank", SLOT_RANK),
    ROW("host", SLOT_HOST),
    ROW("pid", SLOT_PID),
    ROW("cuda_dev", SLOT_CUDA),
    ROW("nvml_dev", SLOT_NVML),
    INNER("status", JSON_NO_SLOT, status_shape),
    ROW("collective_counts", SLOT_COUNTS),
};
static const struct json_shape rank_shape = JSON_SHAPE(rank_rows);

struct ras_state {
    struct decoder_input input;
    char *owned;    // the document, where it is not the record itself
    char *repaired; // … with the commas that it lacked
    uint64_t position;
    uint64_t time_ns;
    bool local_time;
    bool counted; // the record's lines were
    string_id job;
    // The walk: its slices point into the document.
    struct json_items communicators; // at NULL: there is no document
    struct json_items ranks;
    struct token missing;
    bool is_missing;
    struct slice hash;
    int64_t size;             // -1: not said
    struct ras_report report; // of a text in the place of a document
};
_Static_assert(sizeof(struct ras_state) <= NCCL_RAS_STATE_SIZE, "nccl_ras.h says how much");

static void drop_document(struct ras_state *state) {
    memory_give(state->owned);
    memory_give(state->repaired);
    state->owned = state->repaired = NULL;
    state->communicators = state->ranks = (struct json_items){0};
    state->missing.kind = TOKEN_NONE;
    state->report = (struct ras_report){.rest = {NULL, 0}};
}

// -- the commas that are left out -----------------------------------------------------------------

// Where a comma is missing: behind the number of "nvml_dev" when "status" is next. NULL: nowhere.
static const char *find_gap(const char *at, const char *end) {
    static const char key[] = "\"nvml_dev\"", next[] = "\"status\"";
    while ((at = memmem(at, (size_t)(end - at), key, sizeof key - 1)) != NULL) {
        at = json_skip_space(at + sizeof key - 1, end);
        if (json_peek(at, end) != ':')
            continue;
        at = json_skip_space(at + 1, end);
        while (at < end && (text_is_digit(*at) || *at == '-'))
            at++;
        const char *behind = json_skip_space(at, end);
        if ((size_t)(end - behind) >= sizeof next - 1 && memcmp(behind, next, sizeof next - 1) == 0)
            return at;
    }
    return NULL;
}

// The document with its commas, as the state's own; data NULL: none was missing.
static struct slice repair(struct ras_state *state, struct slice text) {
    const char *from = text.data, *end = text.data + text.size;
    size_t gaps = 0, size = 0;
    for (const char *gap = find_gap(from, end); gap != NULL; gap = find_gap(gap, end))
        gaps++;
    if (gaps == 0)
        return (struct slice){NULL, 0};
    char *copy = memory_take(text.size + gaps);
    for (const char *gap = find_gap(from, end); gap != NULL; gap = find_gap(from, end)) {
        memcpy(copy + size, from, (size_t)(gap - from));
        size += (size_t)(gap - from);
        copy[size++] = ',';
        from = gap;
    }
    memcpy(copy + size, from, (size_t)(end - from));
    size += (size_t)(end - from);
    assert(size == text.size + gaps);
    assert(state->repaired == NULL);
    state->repaired = copy;
    return (struct slice){copy, size};
}

static bool read_document(struct ras_state *state, struct slice text, struct token *slots,
                          struct json_fault *fault) {
    if (json_shape_read_all(&document_shape, text, slots, fault))
        return true;
    struct json_fault ignored;
    struct slice whole = fault->why == NULL ? (struct slice){NULL, 0} : repair(state, text);
    for (int i = 0; i < SLOT_COUNT; i++)
        slots[i] = (struct token){0};
    return whole.data != NULL && json_shape_read_all(&document_shape, whole, slots, &ignored);
}

// -- ranks ----------------------------------------------------------------------------------------

// The object with the numbers of operations, without white space. Data NULL: it is none.
static struct slice compact_counts(const struct token *counts, struct arena *arena) {
    if (counts->kind != TOKEN_OBJECT || counts->size > COUNTS_MAX)
        return (struct slice){NULL, 0};
    char *text = arena_take(arena, counts->size);
    size_t size = 0;
    struct json_pairs pairs = json_pairs_of(token_slice(counts));
    for (struct token key, value; json_pairs_next(&pairs, &key, &value);) {
        if (value.kind != TOKEN_INTEGER || value.integer < 0)
            continue;
        memcpy(text + size, size == 0 ? "{\"" : ",\"", 2);
        memcpy(text + size + 2, key.text, key.size);
        size += 2 + key.size;
        memcpy(text + size, "\":", 2);
        memcpy(text + size + 2, value.text, value.size);
        size += 2 + value.size;
    }
    if (size == 0)
        return (struct slice){NULL, 0};
    text[size++] = '}';
    assert(size <= counts->size);
    return (struct slice){text, size};
}

// In the words of RAS's own text.
static struct slice status_of(const struct token *slots) {
    if (slots[SLOT_INIT].kind != TOKEN_INTEGER)
        return (struct slice){NULL, 0};
    if (slots[SLOT_ABORT].kind == TOKEN_TRUE)
        return SLICE("ABORT");
    if (slots[SLOT_FINALIZE].kind == TOKEN_TRUE || slots[SLOT_DESTROY].kind == TOKEN_TRUE)
        return SLICE("FINALIZE");
    return slots[SLOT_INIT].integer == 0 ? SLICE("RUNNING") : SLICE("INIT");
}

static enum decode_category finish(struct ras_state *state, struct reading *reading,
                                   struct slice text, struct event *event,
                                   struct decode_fault *fault) {
    struct frame frame;
    frame_clear(&frame, text, state->position);
    reading->no_rank = reading->no_host = true;
    reading->time_ns = state->time_ns;
    reading->local_time = state->local_time;
    enum decode_category category =
        reading_finish(reading, &frame, &state->input, text, event, fault);
    event->job = state->job;
    event->position = state->position;
    event->lines = state->counted ? 0 : 1;
    state->counted = true;
    return category;
}

// DECODE_END: it has no number, so that it is none.
static enum decode_category give_rank(struct ras_state *state, const struct token *item,
                                      struct arena *arena, struct event *event,
                                      struct decode_fault *fault) {
    struct token slots[RANK_SLOT_COUNT] = {0};
    struct json_fault json;
    struct reading reading = {.arena = arena};
    int64_t rank;
    json_shape_read(&rank_shape, item->text, item->text + item->size, 0, slots, &json);
    if (!token_number(&slots[SLOT_RANK], &rank))
        return DECODE_END;
    reading_begin(&reading, OBSERVATION_RAS_RANK);
    reading.host = token_text(&slots[SLOT_HOST], arena);
    if (state->hash.data != NULL)
        reading_text(&reading, FACT_COMMUNICATOR, state->hash);
    if (state->size >= 0)
        reading_number(&reading, FACT_SIZE, state->size);
    reading_number(&reading, FACT_GROUP_RANK, rank);
    reading_token_number(&reading, FACT_PID, &slots[SLOT_PID]);
    reading_token_number(&reading, FACT_CUDA_DEVICE, &slots[SLOT_CUDA]);
    reading_token_number(&reading, FACT_NVML_DEVICE, &slots[SLOT_NVML]);
    reading_yes_no(&reading, FACT_MISSING, state->is_missing);
    reading_token_yes_no(&reading, FACT_UNRESPONSIVE, &slots[SLOT_UNRESPONSIVE]);
    reading_token_yes_no(&reading, FACT_CONSIDERED_DEAD, &slots[SLOT_DEAD]);
    reading_token_number(&reading, FACT_INIT_STATE, &slots[SLOT_INIT]);
    reading_token_number(&reading, FACT_ASYNC_ERROR, &slots[SLOT_ASYNC]);
    struct slice status = status_of(slots), counts = compact_counts(&slots[SLOT_COUNTS], arena);
    if (status.data != NULL)
        reading_text(&reading, FACT_STATUS, status);
    if (counts.data != NULL)
        reading_text(&reading, FACT_COUNTS, counts);
    return finish(state, &reading, token_slice(item), event, fault);
}

// -- the walk -------------------------------------------------------------------------------------

static struct json_items items_of(const struct token *array) {
    return array->kind == TOKEN_ARRAY ? json_items_of(array) : (struct json_items){0};
}

// The next array of ranks: the missing ones of the communicator at hand, or those of the next
// communicator. False: there is none.
static bool next_ranks(struct ras_state *state, struct arena *arena) {
    struct token item, slots[COMMUNICATOR_SLOT_COUNT] = {0};
    struct json_fault json;
    if (state->missing.kind != TOKEN_NONE) {
        state->ranks = items_of(&state->missing);
        state->missing.kind = TOKEN_NONE;
        state->is_missing = true;
        return true;
    }
    if (state->communicators.at == NULL || !json_items_next(&state->communicators, &item))
        return false;
    state->ranks = (struct json_items){0};
    if (item.kind != TOKEN_OBJECT)
        return true;
    json_shape_read(&communicator_shape, item.text, item.text + item.size, 0, slots, &json);
    // A hash is short, since each rank gets it, and has no escapes: the arena may be gone.
    state->hash = (struct slice){NULL, 0};
    if (!slots[SLOT_HASH].escaped && slots[SLOT_HASH].size <= HASH_MAX)
        state->hash = token_text(&slots[SLOT_HASH], arena);
    if (!token_number(&slots[SLOT_SIZE], &state->size))
        state->size = -1;
    state->missing = slots[SLOT_MISSING];
    state->ranks = items_of(&slots[SLOT_RANKS]);
    state->is_missing = false;
    return true;
}

// DECODE_END: it says no more.
static enum decode_category next_of_report(struct ras_state *state, struct arena *arena,
                                           struct event *event, struct decode_fault *fault) {
    struct reading reading = {.arena = arena};
    struct slice line;
    enum read_result result = ras_report_next(&state->report, &reading, &line);
    if (result == READ_NOT)
        return DECODE_END;
    if (result == READ_EVENT)
        return finish(state, &reading, line, event, fault);
    event->position = state->position;
    event->lines = state->counted ? 0 : 1;
    state->counted = true;
    return fault_set(fault, reading.refusal, SLICE(""), "%s", reading.detail);
}

enum decode_category nccl_ras_next(void *memory, struct arena *arena, struct event *event,
                                   struct decode_fault *fault) {
    struct ras_state *state = memory;
    struct token item;
    enum decode_category said = next_of_report(state, arena, event, fault);
    if (said != DECODE_END)
        return said;
    do {
        while (state->ranks.at != NULL && json_items_next(&state->ranks, &item)) {
            enum decode_category category = DECODE_END;
            if (item.kind == TOKEN_OBJECT)
                category = give_rank(state, &item, arena, event, fault);
            if (category != DECODE_END)
                return category;
        }
    } while (next_ranks(state, arena));
    drop_document(state);
    return DECODE_END;
}

// -- MONITOR --------------------------------------------------------------------------------------

// The number when the array holds just one.
static void set_only(struct reading *reading, enum fact_key key, const struct token *array) {
    struct json_items items = items_of(array);
    struct token first, second;
    if (items.at != NULL && json_items_next(&items, &first) && !json_items_next(&items, &second))
        reading_token_number(reading, key, &first);
}

static enum decode_category give_peer(struct ras_state *state, const struct token *slots,
                                      struct slice text, struct arena *arena, struct event *event,
                                      struct decode_fault *fault) {
    bool is_dead = token_equals(&slots[SLOT_EVENT], SLICE("PEER_DEAD"));
    struct reading reading = {.arena = arena};
    if (!is_dead && !token_equals(&slots[SLOT_EVENT], SLICE("PEER_NEW"))) {
        drop_document(state);
        return DECODE_NOTHING;
    }
    reading_begin(&reading, is_dead ? OBSERVATION_RAS_PEER_DEAD : OBSERVATION_RAS_PEER_NEW);
    reading.host = token_text(&slots[SLOT_PEER_HOST], arena);
    if (reading.host.data == NULL)
        reading.host = text_until(token_text(&slots[SLOT_PEER_ADDRESS], arena), '<');
    reading_token_number(&reading, FACT_PID, &slots[SLOT_PEER_PID]);
    set_only(&reading, FACT_CUDA_DEVICE, &slots[SLOT_PEER_CUDA]);
    set_only(&reading, FACT_NVML_DEVICE, &slots[SLOT_PEER_NVML]);
    enum decode_category category = finish(state, &reading, text, event, fault);
    drop_document(state);
    return category;
}

// -- documents ------------------------------------------------------------------------------------

static enum decode_category set_time(struct ras_state *state, const struct token *timestamp,
                                     struct arena *arena, struct decode_fault *fault) {
    struct slice text = token_text(timestamp, arena);
    if (text.size > 0) {
        state->local_time = true;
        if (!log_time_iso(&text, &state->time_ns))
            return fault_found(fault, DECODE_BAD_TIMESTAMP, SLICE("timestamp"), timestamp,
                               "a time such as \"2026-03-14 01:50:17\"");
    } else if (state->input.observed_ns == 0) {
        return fault_set(fault, DECODE_MISSING_TIMESTAMP, SLICE("timestamp"),
                         "not there, and when the document was read is not known");
    }
    return DECODE_OK;
}

// `time_ns` 0: the document's own.
static enum decode_category start(struct ras_state *state, struct slice record, uint64_t time_ns,
                                  struct arena *arena, struct event *event,
                                  struct decode_fault *fault) {
    struct token slots[SLOT_COUNT] = {0};
    struct json_fault json;
    enum decode_category category = DECODE_OK;
    state->counted = state->local_time = false;
    state->position = event->position;
    state->time_ns = time_ns;
    if (time_ns > 0 && ras_report_is(record)) {
        ras_report_begin(&state->report, record);
        category = nccl_ras_next(state, arena, event, fault);
        return category == DECODE_END ? DECODE_NOTHING : category;
    }
    if (!read_document(state, record, slots, &json))
        category = refuse_json(fault, record, &json);
    else if (slots[SLOT_COMMUNICATORS].kind != TOKEN_ARRAY &&
             slots[SLOT_EVENT].kind != TOKEN_STRING)
        category = fault_set(fault, DECODE_MISSING_FIELD, SLICE("communicators"),
                             "not there as an array; a document of NCCL RAS has it");
    else if (time_ns == 0)
        category = set_time(state, &slots[SLOT_TIMESTAMP], arena, fault);
    if (category != DECODE_OK) {
        drop_document(state);
        return category;
    }
    if (slots[SLOT_COMMUNICATORS].kind != TOKEN_ARRAY)
        return give_peer(state, slots, record, arena, event, fault);
    state->communicators = json_items_of(&slots[SLOT_COMMUNICATORS]);
    category = nccl_ras_next(state, arena, event, fault);
    return category == DECODE_END ? DECODE_NOTHING : category;
}

static void begin(void *memory, const struct decoder_input *input) {
    struct ras_state *state = memory;
    state->input = *input;
    state->input.tail = (struct slice){NULL, 0};
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct ras_state *state = memory;
    drop_document(state);
    state->job = STRING_NONE;
    return start(state, record, 0, arena, event, fault);
}

void nccl_ras_release(void *memory) {
    drop_document(memory);
}

enum decode_category nccl_ras_tagged(void *memory, struct slice object, struct arena *arena,
                                     struct event *event, struct decode_fault *fault) {
    struct ras_state *state = memory;
    struct tagged_keys keys;
    struct slice key, text = object;
    struct token value;
    drop_document(state);
    uint64_t position = event->position;
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value)) {
        if (!slice_equal(key, SLICE("document")))
            continue;
        text = token_slice(&value);
        if (value.kind != TOKEN_STRING)
            continue;
        // The arena may be gone before all of its ranks were given.
        struct slice decoded = token_decode(&value, arena);
        memory_give(state->owned);
        state->owned = memory_copy_text(decoded.data, decoded.size);
        text = (struct slice){state->owned, decoded.size};
    }
    enum decode_category category = tagged_keys_end(&keys, event, fault);
    if (category != DECODE_OK) {
        drop_document(state);
        return category;
    }
    state->job = event->job;
    event->position = position;
    return start(state, text, event->time_ns, arena, event, fault);
}

const struct decoder_type decoder_nccl_ras = {
    .name = "nccl_ras",
    .state_size = sizeof(struct ras_state),
    .begin = begin,
    .decode = decode,
    .next = nccl_ras_next,
    .release = nccl_ras_release,
};

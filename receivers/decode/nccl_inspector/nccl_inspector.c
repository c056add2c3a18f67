// SPDX-License-Identifier: Apache-2.0
// One pass over the object, by tables of keys. No memory but the event's.
#include "receivers/decode/nccl_inspector/nccl_inspector.h"

#include "base/text/cut.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/line/tokens.h"

#define ROW(name, slot)                                                                            \
    { {(name), sizeof(name) - 1}, (slot), NULL }
#define INNER(name, slot, shape)                                                                   \
    { {(name), sizeof(name) - 1}, (slot), &(shape) }

enum slot {
    SLOT_ID,
    SLOT_NAME,
    SLOT_RANK,
    SLOT_SIZE,
    SLOT_TIME,
    SLOT_HOST,
    SLOT_PID,
    SLOT_COLL, // the object
    SLOT_COLL_OP,
    SLOT_COLL_SEQ,
    SLOT_COLL_TIME,
    SLOT_P2P,
    SLOT_P2P_OP,
    SLOT_P2P_SEQ,
    SLOT_P2P_TIME,
    SLOT_P2P_PEER,
    SLOT_COUNT
};

static const struct json_shape_row header_rows[] = {ROW("id", SLOT_ID), ROW("comm_name", SLOT_NAME),
                                                    ROW("rank", SLOT_RANK),
                                                    ROW("n_ranks", SLOT_SIZE)};
static const struct json_shape header_shape = JSON_SHAPE(header_rows);
static const struct json_shape_row metadata_rows[] = {
    ROW("dump_timestamp_us", SLOT_TIME), ROW("hostname", SLOT_HOST), ROW("pid", SLOT_PID)};
static const struct json_shape metadata_shape = JSON_SHAPE(metadata_rows);
static const struct json_shape_row coll_rows[] = {ROW("coll", SLOT_COLL_OP),
                                                  ROW("coll_sn", SLOT_COLL_SEQ),
                                                  ROW("coll_exec_time_us", SLOT_COLL_TIME)};
static const struct json_shape coll_shape = JSON_SHAPE(coll_rows);
static const struct json_shape_row p2p_rows[] = {
    ROW("p2p", SLOT_P2P_OP), ROW("p2p_sn", SLOT_P2P_SEQ), ROW("p2p_exec_time_us", SLOT_P2P_TIME),
    ROW("p2p_peer", SLOT_P2P_PEER)};
static const struct json_shape p2p_shape = JSON_SHAPE(p2p_rows);
static const struct json_shape_row object_rows[] = {
    INNER("header", JSON_NO_SLOT, header_shape), INNER("metadata", JSON_NO_SLOT, metadata_shape),
    INNER("coll_perf", SLOT_COLL, coll_shape), INNER("p2p_perf", SLOT_P2P, p2p_shape)};
static const struct json_shape object_shape = JSON_SHAPE(object_rows);

struct inspector_state {
    struct decoder_input input;
};

static void set_operation(struct reading *reading, const struct token *slots) {
    bool is_coll = slots[SLOT_COLL].kind == TOKEN_OBJECT;
    reading_begin(reading, is_coll ? OBSERVATION_INSPECTOR_COLL : OBSERVATION_INSPECTOR_P2P);
    reading_token_text(reading, FACT_OP, &slots[is_coll ? SLOT_COLL_OP : SLOT_P2P_OP]);
    reading_token_number(reading, FACT_SEQ, &slots[is_coll ? SLOT_COLL_SEQ : SLOT_P2P_SEQ]);
    reading_token_number(reading, FACT_EXEC_US, &slots[is_coll ? SLOT_COLL_TIME : SLOT_P2P_TIME]);
    if (!is_coll)
        reading_token_number(reading, FACT_PEER_RANK, &slots[SLOT_P2P_PEER]);
}

static void set_communicator(struct reading *reading, const struct token *slots) {
    reading_token_text(reading, FACT_COMMUNICATOR, &slots[SLOT_ID]);
    if (slots[SLOT_NAME].kind == TOKEN_STRING && !token_equals(&slots[SLOT_NAME], SLICE("unknown")))
        reading_token_text(reading, FACT_GROUP, &slots[SLOT_NAME]);
    reading_token_number(reading, FACT_GROUP_RANK, &slots[SLOT_RANK]);
    reading_token_number(reading, FACT_SIZE, &slots[SLOT_SIZE]);
}

// `time_ns` 0: the object's own. `node` is used when the object names none.
static enum decode_category read_object(const struct decoder_input *input, struct slice text,
                                        uint64_t time_ns, struct slice node, struct arena *arena,
                                        struct event *event, struct decode_fault *fault) {
    struct token slots[SLOT_COUNT] = {0};
    struct json_fault json;
    struct reading reading = {.arena = arena};
    struct frame frame;
    int64_t written_us;
    if (!json_shape_read_all(&object_shape, text, slots, &json))
        return refuse_json(fault, text, &json);
    if (slots[SLOT_COLL].kind != TOKEN_OBJECT && slots[SLOT_P2P].kind != TOKEN_OBJECT)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("coll_perf, p2p_perf"),
                         "neither is there as an object; one says how the operation went");
    set_operation(&reading, slots);
    set_communicator(&reading, slots);
    reading_token_number(&reading, FACT_PID, &slots[SLOT_PID]);
    reading.no_rank = true;
    reading.host = token_text(&slots[SLOT_HOST], arena);
    if (reading.host.data == NULL)
        reading.host = node;
    reading.time_ns = time_ns;
    if (token_number(&slots[SLOT_TIME], &written_us)) {
        if (__builtin_mul_overflow((uint64_t)written_us, UINT64_C(1000), &reading.time_ns))
            return fault_limit(fault, SLICE("metadata.dump_timestamp_us"), &slots[SLOT_TIME],
                               "microseconds since 1970 until the year 2553");
    }
    uint64_t position = event->position;
    frame_clear(&frame, text, position);
    return reading_finish(&reading, &frame, input, text, event, fault);
}

static void begin(void *memory, const struct decoder_input *input) {
    struct inspector_state *state = memory;
    state->input = *input;
    state->input.tail = (struct slice){NULL, 0};
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    const struct inspector_state *state = memory;
    return read_object(&state->input, record, 0, (struct slice){NULL, 0}, arena, event, fault);
}

enum decode_category nccl_inspector_tagged(void *state, struct slice object, struct arena *arena,
                                           struct event *event, struct decode_fault *fault) {
    struct tagged_keys keys;
    struct slice key, text = object, node = {NULL, 0};
    struct token value;
    (void)state;
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value))
        if (slice_equal(key, SLICE("document")))
            text = value.kind == TOKEN_STRING ? token_decode(&value, arena) : token_slice(&value);
    enum decode_category category = tagged_keys_end(&keys, event, fault);
    if (category != DECODE_OK)
        return category;
    string_id job = event->job;
    if (event->node != STRING_NONE)
        node = intern_slice(event->node);
    category =
        read_object(&(struct decoder_input){0}, text, event->time_ns, node, arena, event, fault);
    event->job = job;
    return category;
}

const struct decoder_type decoder_nccl_inspector = {
    .name = "nccl_inspector",
    .state_size = sizeof(struct inspector_state),
    .begin = begin,
    .decode = decode,
};

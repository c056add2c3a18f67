// SPDX-License-Identifier: Apache-2.0
// Reads which GPU and process a rank uses. One pass over the members; takes one struct rank_place
// from the arena.
#include "receivers/decode/rank_map/rank_map.h"

#include "base/text/cut.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"

struct rank_map_state {
    uint64_t observed_ns;
};

struct reading {
    struct arena *arena;
    struct decode_fault *fault;
    enum decode_category category; // of the first value that is wrong
    struct rank_place *place;
};

static void refuse(struct reading *reading, struct slice key, const struct token *value,
                   const char *expected) {
    if (reading->category == DECODE_OK)
        reading->category = fault_type(reading->fault, key, value, expected);
}

static struct slice take_text(struct reading *reading, struct slice key,
                              const struct token *value) {
    if (value->kind == TOKEN_STRING && value->size > 0)
        return token_decode(value, reading->arena);
    if (value->kind != TOKEN_STRING && value->kind != TOKEN_NULL)
        refuse(reading, key, value, "a text");
    return (struct slice){NULL, 0};
}

// A whole number from 0 to `max`, also as text; -1: absent.
static int64_t take_number(struct reading *reading, struct slice key, const struct token *value,
                           int64_t max, const char *expected) {
    uint64_t number = (uint64_t)value->integer;
    if (value->kind == TOKEN_NULL)
        return -1;
    bool right = value->kind == TOKEN_INTEGER ||
                 (value->kind == TOKEN_STRING && text_number(token_slice(value), 18, &number));
    if (right && number <= (uint64_t)max)
        return (int64_t)number;
    refuse(reading, key, value, expected);
    return -1;
}

static void take_address(struct reading *reading, struct slice key, const struct token *value) {
    struct slice text = take_text(reading, key, value);
    if (text.data != NULL && !pci_parse(text, &reading->place->address))
        refuse(reading, key, value, "a PCI address such as \"0000:9b:00.0\"");
}

static void take(struct reading *reading, struct slice key, const struct token *value) {
    struct rank_place *place = reading->place;
    if (slice_equal(key, SLICE("local_rank")))
        place->local_rank = (int32_t)take_number(reading, key, value, RANK_MAX, "0 to 2147483646");
    else if (slice_equal(key, SLICE("gpu")))
        place->index = (int32_t)take_number(reading, key, value, 65535, "a GPU's number");
    else if (slice_equal(key, SLICE("UUID")))
        place->uuid = take_text(reading, key, value);
    else if (slice_equal(key, SLICE("pci_bus_id")))
        take_address(reading, key, value);
    else if (slice_equal(key, SLICE("process.pid")))
        place->pid = take_number(reading, key, value, INT64_C(1) << 32, "a process id");
}

static enum decode_category read_line(struct slice object, uint64_t observed_ns,
                                      struct arena *arena, struct event *event,
                                      struct decode_fault *fault) {
    struct reading reading = {.arena = arena, .fault = fault};
    struct tagged_keys keys;
    struct slice key;
    struct token value;
    reading.place = arena_zero(arena, 1, sizeof *reading.place);
    *reading.place =
        (struct rank_place){.local_rank = -1, .address = PCI_NONE, .index = -1, .pid = -1};
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value))
        take(&reading, key, &value);
    bool readable = keys.at != NULL && keys.category == DECODE_OK;
    if (readable && reading.category != DECODE_OK)
        return reading.category;
    if (readable && keys.rank == RANK_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("rank"),
                         "not there; a line of a rank map says whose GPU it is");
    event->timeless = keys.observed_ns == 0 && keys.timestamp_ns == 0;
    if (event->timeless)
        keys.observed_ns = observed_ns;
    enum decode_category category = tagged_keys_end(&keys, event, fault);
    if (category != DECODE_OK)
        return category;
    reading.place->rank = keys.rank;
    reading.place->node = keys.node;
    reading.place->pod = keys.pod;
    reading.place->namespace = keys.namespace;
    event->kind = EVENT_RANK_MAP;
    event->place = reading.place;
    return DECODE_OK;
}

enum decode_category rank_map_tagged(void *state, struct slice object, struct arena *arena,
                                     struct event *event, struct decode_fault *fault) {
    (void)state;
    return read_line(object, 0, arena, event, fault);
}

static void begin(void *memory, const struct decoder_input *input) {
    ((struct rank_map_state *)memory)->observed_ns = input->observed_ns;
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    return read_line(record, ((const struct rank_map_state *)memory)->observed_ns, arena, event,
                     fault);
}

const struct decoder_type decoder_rank_map = {
    .name = "rank_map",
    .state_size = sizeof(struct rank_map_state),
    .begin = begin,
    .decode = decode,
};

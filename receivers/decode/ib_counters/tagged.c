// SPDX-License-Identifier: Apache-2.0
// Tagged lines of counters: first the port's state, then each counter of both objects. Nothing is
// kept but where the walk stands in the line.
#include "receivers/decode/ib_counters/ib_counters.h"

#include "base/text/cut.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/ib_counters/value.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/tokens.h"

#include <assert.h>

enum { DEVICE_MAX = 63 };

struct counters_state {
    // Of the line; the rest of it was read.
    struct json_pairs pairs;
    struct slice more; // the other object of counters; size 0: none
    uint64_t time_ns;
    uint64_t position;
    string_id node, job;
    pci_address address; // PCI_NONE: not said
    int64_t port;        // -1: not said
    bool counted;
    char device[DEVICE_MAX + 1]; // "" when it is not said
};
_Static_assert(sizeof(struct counters_state) <= IB_COUNTERS_STATE_SIZE,
               "ib_counters.h says how much");

struct line_values {
    struct token device, port, address, state, phys_state, counters, hw_counters;
};

static void keep(struct line_values *values, struct slice key, const struct token *value) {
    const struct {
        struct slice key;
        struct token *place;
    } places[] = {
        {SLICE("device"), &values->device},           {SLICE("port"), &values->port},
        {SLICE("pci_bus_id"), &values->address},      {SLICE("state"), &values->state},
        {SLICE("phys_state"), &values->phys_state},   {SLICE("counters"), &values->counters},
        {SLICE("hw_counters"), &values->hw_counters},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (slice_equal(key, places[i].key))
            *places[i].place = *value;
}

static enum decode_category finish(struct counters_state *state, struct reading *reading,
                                   struct slice text, struct event *event,
                                   struct decode_fault *fault) {
    struct frame frame;
    frame_clear(&frame, text, state->position);
    reading->time_ns = state->time_ns;
    if (state->device[0] != '\0')
        reading_text(reading, FACT_DEVICE, slice_of(state->device));
    if (state->port >= 0)
        reading_number(reading, FACT_PORT, state->port);
    if (state->address != PCI_NONE)
        reading_address(reading, FACT_NIC, state->address);
    enum decode_category category =
        reading_finish(reading, &frame, &(struct decoder_input){0}, text, event, fault);
    event->node = state->node;
    event->job = state->job;
    event->position = state->position;
    event->lines = state->counted ? 0 : 1;
    state->counted = true;
    return category;
}

enum decode_category ib_counters_next(void *memory, struct arena *arena, struct event *event,
                                      struct decode_fault *fault) {
    struct counters_state *state = memory;
    struct token name, value;
    for (;;) {
        while (state->pairs.at != NULL && json_pairs_next(&state->pairs, &name, &value)) {
            struct reading reading = {.arena = arena};
            // Numbers are written as such or as texts.
            bool plain = value.kind == TOKEN_INTEGER || value.kind == TOKEN_UNSIGNED ||
                         (value.kind == TOKEN_STRING && !value.escaped);
            if (plain && ib_counter_read(&reading, token_decode(&name, arena),
                                         token_slice(&value)) == READ_EVENT)
                return finish(state, &reading, token_slice(&name), event, fault);
        }
        state->pairs.at = NULL;
        if (state->more.size == 0)
            return DECODE_END;
        state->pairs = json_pairs_of(state->more);
        state->more.size = 0;
    }
}

static enum decode_category check(const struct line_values *values, struct decode_fault *fault) {
    bool has_any = values->counters.kind == TOKEN_OBJECT ||
                   values->hw_counters.kind == TOKEN_OBJECT || values->state.kind == TOKEN_STRING ||
                   values->phys_state.kind == TOKEN_STRING;
    if (values->device.kind != TOKEN_STRING || values->device.size == 0)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("device"),
                         "not there as a text; it names the card, such as \"mlx5_0\"");
    if (values->device.size > DEVICE_MAX)
        return fault_limit(fault, SLICE("device"), &values->device, "at most 63 bytes");
    if (!has_any)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("counters, hw_counters, state"),
                         "none of them is there; at least one must be");
    return DECODE_OK;
}

static void remember(struct counters_state *state, const struct line_values *values,
                     struct arena *arena) {
    struct slice device = token_text(&values->device, arena);
    struct slice address = token_text(&values->address, arena);
    memcpy(state->device, device.data, device.size);
    state->device[device.size] = '\0';
    if (!token_number(&values->port, &state->port))
        state->port = -1;
    if (address.data == NULL || !pci_parse(address, &state->address))
        state->address = PCI_NONE;
    struct slice none = {NULL, 0};
    struct slice first =
        values->counters.kind == TOKEN_OBJECT ? token_slice(&values->counters) : none;
    state->more =
        values->hw_counters.kind == TOKEN_OBJECT ? token_slice(&values->hw_counters) : none;
    if (first.size == 0) {
        first = state->more;
        state->more = none;
    }
    state->pairs = first.size > 0 ? json_pairs_of(first) : (struct json_pairs){0};
}

enum decode_category ib_counters_tagged(void *memory, struct slice object, struct arena *arena,
                                        struct event *event, struct decode_fault *fault) {
    struct counters_state *state = memory;
    struct line_values values = {0};
    struct tagged_keys keys;
    struct slice key;
    struct token value;
    *state = (struct counters_state){.position = event->position};
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value))
        keep(&values, key, &value);
    bool readable = keys.at != NULL && keys.category == DECODE_OK;
    if (readable && check(&values, fault) != DECODE_OK)
        return fault->category;
    enum decode_category category = tagged_keys_end(&keys, event, fault);
    if (category != DECODE_OK)
        return category;
    state->time_ns = event->time_ns;
    state->node = event->node;
    state->job = event->job;
    remember(state, &values, arena);
    struct slice word = ib_state_word(token_text(&values.state, arena));
    struct slice physical = ib_state_word(token_text(&values.phys_state, arena));
    if (word.data == NULL && physical.data == NULL) {
        category = ib_counters_next(state, arena, event, fault);
        return category == DECODE_END ? DECODE_NOTHING : category;
    }
    struct reading reading = {.arena = arena};
    reading_begin(&reading, OBSERVATION_IB_STATE);
    reading.no_rank = true;
    if (word.data != NULL)
        reading_text(&reading, FACT_STATE, word);
    if (physical.data != NULL)
        reading_text(&reading, FACT_STATUS, physical);
    return finish(state, &reading, object, event, fault);
}

// SPDX-License-Identifier: Apache-2.0
// Whatever a dump in JSON says, it is read or refused with a reason, and the detector survives it.
//
// The first byte chooses a whole dump or a tagged line. The input lies in a block of its own, so
// that a read past its end is seen. What was read keeps the promises of struct flight_dump; a
// decoder that has seen other dumps says the same as a new one; the detector takes it twice, as two
// ranks, and judges.
#include "base/intern.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "cli/component_list.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static void require_sound(const struct flight_dump *dump, size_t size) {
    for (uint32_t i = 0; i < dump->group_count; i++) {
        const struct flight_group *group = &dump->groups[i];
        require(group->name.data != NULL && group->desc.data != NULL);
        require((group->members == NULL) == (group->member_count == 0));
        for (uint32_t j = 0; j < group->member_count; j++)
            require(group->members[j] >= 0 &&
                    (j == 0 || group->members[j - 1] < group->members[j]));
    }
    bool states = false;
    for (uint32_t i = 0; i < dump->entry_count; i++) {
        const struct flight_entry *entry = &dump->entries[i];
        require(entry->group.data != NULL && entry->desc.data != NULL);
        require((entry->is_p2p ? entry->p2p_seq_id : entry->collective_seq_id) >= 0);
        require(entry->timeout_ms >= 0 && entry->state <= FLIGHT_COMPLETED);
        require(entry->completed_ns == 0 || entry->state == FLIGHT_COMPLETED);
        require(entry->input_sizes.size <= size && entry->name.size <= size);
        states |= entry->state != FLIGHT_SCHEDULED;
    }
    require(states == dump->reports_states);
}

static enum decode_category read_input(void *state, bool tagged, struct slice input,
                                       struct arena *arena, struct event *event) {
    struct decode_fault fault = {0};
    *event = (struct event){0};
    decoder_flight_json.begin(state,
                              &(struct decoder_input){.path = SLICE("rank_0"), .is_file = true});
    enum decode_category category =
        tagged ? flight_tagged(state, input, arena, event, &fault)
               : decoder_flight_json.decode(state, input, arena, event, &fault);
    require(category == DECODE_OK || strlen(fault.detail) > 5);
    require(fault.offset <= input.size);
    return category;
}

static void *make_config(void) {
    const struct component_type *type = &processor_nccl_hang;
    char *config = memory_zero(1, type->config_size), why[160];
    for (size_t i = 0; i < type->option_count; i++) {
        const struct option *row = &type->options[i];
        if (row->type == OPTION_BOOL)
            *(bool *)(void *)(config + row->offset) = true;
        else if (row->type == OPTION_INT)
            *(int64_t *)(void *)(config + row->offset) = strtoll(row->default_value, NULL, 10);
        else
            require(option_parse_duration(row->default_value,
                                          (struct duration *)(void *)(config + row->offset), why));
    }
    return config;
}

static void judge(const struct event *event, struct arena *arena) {
    const struct component_type *type = &processor_nccl_hang;
    void *config = make_config(), *instance = memory_zero(1, type->instance_size);
    struct component_context context = {.id = type->name, .site = type->name, .once = true};
    struct error error = {0};
    require(component_start(type, instance, config, &context, &error) == STATUS_OK);
    struct flight_dump other = *event->flight;
    struct event events[2] = {*event, *event};
    other.rank = event->flight->rank == 0 ? 1 : 0;
    events[1].flight = &other;
    struct batch batch = {.events = events,
                          .event_count = 2,
                          .arena = arena,
                          .newest_ns = event->time_ns,
                          .evaluate = true,
                          .as_of_ns = UINT64_MAX,
                          .last = true};
    type->processor.consume(instance, &batch);
    struct buffer out;
    buffer_init(&out, 64 << 20);
    for (uint32_t i = 0; i < batch.verdicts.count; i++) {
        const struct verdict *verdict = &batch.verdicts.items[i];
        require(verdict->evidence_count > 0 && verdict->headline.size > 0);
        verdict_encode(verdict, &out);
    }
    require(!out.failed);
    buffer_release(&out);
    component_stop(type, instance);
    memory_give(instance);
    memory_give(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    bool tagged = data[0] == 't';
    size_t length = size - 1;
    char *copy = memory_take(length > 0 ? length : 1);
    memcpy(copy, data + 1, length);
    struct slice input = {copy, length};
    struct arena arena;
    arena_init(&arena, 4096);
    void *state = memory_zero(1, decoder_flight_json.state_size);
    struct event event, again;
    enum decode_category category = read_input(state, tagged, input, &arena, &event);
    require(read_input(state, tagged, input, &arena, &again) == category);
    if (category == DECODE_OK) {
        require_sound(event.flight, length);
        require(event.flight->entry_count == again.flight->entry_count);
        require(event.time_ns == again.time_ns && event.rank == again.rank);
        judge(&event, &arena);
    }
    memory_give(state);
    arena_release(&arena);
    memory_give(copy);
    metrics_release();
    intern_release();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Whatever objects come, they are decoded the same way twice, and what is kept of them can be read,
// bounded and told.
//
// The input is records, one a line. Each lies in a block of its own, so that a read past its end is
// seen; what is accepted goes into the tables of pod_evicted, from which verdicts are written. Each
// is read as a health event of NVSentinel, too.
#include "base/memory.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "processors/pod_evicted/verdict.h"
#include "receivers/decode/kubernetes/kubernetes.h"
#include "receivers/decode/nvsentinel/nvsentinel.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tables {
    struct removal_table removals;
    struct pod_map pods;
    struct node_conditions conditions;
    struct arena arena;
    struct buffer out;
};

enum { ROWS_MAX = 16 };

static const struct state_row STATE[] = {
    STATE_ROWS(struct tables, removals.rows, "removals", REMOVAL_ROWS),
    STATE_ROWS(struct tables, pods.by_uid, "pods_by_uid", POD_ROWS),
    STATE_ROWS(struct tables, pods.by_name, "pods_by_name", POD_ROWS),
    STATE_ROWS(struct tables, conditions.rows, "conditions", CONDITION_ROWS),
};

static void require(bool holds) {
    if (!holds)
        abort();
}

static void require_text(struct slice text) {
    require(text.data != NULL || text.size == 0);
    require(text.size <= 1 << 20);
}

// What every accepted object promises to those who read it.
static void require_sound(const struct event *event) {
    const struct kubernetes_object *object = event->kubernetes;
    require(event->kind == EVENT_KUBERNETES && event->time_ns != 0 && event->rank == RANK_NONE);
    require(object->condition_count <= CONDITIONS_MAX);
    require_text(object->name);
    require_text(object->message);
    if (object->kind == KUBERNETES_EVENT)
        require(object->object_name.size > 0 && object->event_ns == event->time_ns);
    else
        require(object->name.size > 0);
    for (uint32_t i = 0; i < object->condition_count; i++)
        require(object->conditions[i].type.size > 0);
}

// Facts are in order, each once, and their texts lie where they say.
static void require_sound_facts(const struct event *event) {
    const struct observation *observation = event->observation;
    require(event->kind == EVENT_OBSERVATION && event->time_ns != 0);
    require_text(observation->text);
    for (uint32_t i = 0; i < observation->fact_count; i++) {
        const struct fact *fact = &observation->facts[i];
        require(i == 0 || fact->key > observation->facts[i - 1].key);
        if (fact_type(fact->key) == FACT_TEXT)
            require_text(fact->text);
    }
}

static void take(struct tables *tables, const struct event *event) {
    if (event->kind == EVENT_OBSERVATION) {
        require_sound_facts(event);
        return;
    }
    require_sound(event);
    pod_map_take(&tables->pods, event, &tables->arena);
    node_conditions_take(&tables->conditions, event, &tables->arena);
    removal_table_take(&tables->removals, event, &tables->arena);
    require(keyed_rows_count(&tables->pods.by_uid) <= ROWS_MAX);
    require(keyed_rows_count(&tables->conditions.rows) <= ROWS_MAX);
    require(keyed_rows_count(&tables->removals.rows) <= ROWS_MAX);
}

// What else the record says; how much of it there was.
static uint32_t take_more(struct tables *tables, const struct decoder_type *decoder, void *state) {
    struct event event = {0};
    struct decode_fault fault;
    uint32_t count = 0;
    enum decode_category category;
    while (decoder->next != NULL &&
           (category = decoder->next(state, &tables->arena, &event, &fault)) != DECODE_END) {
        require(category == DECODE_OK && event.lines == 0);
        take(tables, &event);
        count++;
    }
    return count;
}

static void decode_twice(struct tables *tables, const struct decoder_type *decoder,
                         struct slice record) {
    static const struct decoder_input input = {.observed_ns = 1};
    struct event event[2];
    struct decode_fault fault[2];
    uint64_t state[KUBERNETES_STATE_SIZE / sizeof(uint64_t)] = {0};
    enum decode_category category[2];
    uint32_t more[2];
    require(decoder->state_size <= sizeof state);
    decoder->begin(state, &input);
    for (int i = 0; i < 2; i++) {
        memset(&event[i], 0, sizeof event[i]);
        memset(&fault[i], 0, sizeof fault[i]);
        category[i] = decoder->decode(state, record, &tables->arena, &event[i], &fault[i]);
        more[i] = take_more(tables, decoder, state);
    }
    require(category[0] == category[1] && event[0].time_ns == event[1].time_ns);
    require(more[0] == more[1] && strcmp(fault[0].detail, fault[1].detail) == 0);
    if (category[0] == DECODE_OK)
        take(tables, &event[0]);
    else if (category[0] != DECODE_NOTHING)
        require(fault[0].category == category[0] && fault[0].detail[0] != '\0');
}

static void tell(struct tables *tables) {
    static const struct pod_evicted_config config = {.confidence_full = 90,
                                                     .confidence_partial = 60,
                                                     .confidence_pod_limit = 85,
                                                     .confidence_other = 80,
                                                     .unknown_pressure_penalty = 20};
    struct pressure_window window = {UINT64_C(300000000000), 1000000000};
    struct pod_removal *row;
    uint32_t at = 0;
    while ((row = keyed_rows_next(&tables->removals.rows, &at)) != NULL) {
        struct removal removal;
        struct pod_place place;
        if (!pod_removal_read(row, &removal))
            continue;
        removal_locate(&removal, &tables->pods, &place);
        for (uint32_t kind = EVICTION_NODE_PRESSURE; kind <= EVICTION_API; kind++) {
            struct eviction_finding finding = {.removal = &removal,
                                               .place = &place,
                                               .kind = (enum eviction_kind)kind,
                                               .cancelled = !removal.stands,
                                               .condition = NODE_DISK};
            finding.transition = node_conditions_find(&tables->conditions, removal.node, NODE_DISK,
                                                      removal.time_ns, window, &finding.sustained);
            struct verdict_builder builder = {.arena = &tables->arena};
            eviction_verdict_build(&finding, &config, &builder);
            buffer_reset(&tables->out);
            verdict_encode(&builder.verdict, &tables->out);
            require(!tables->out.failed && eviction_finding_hash(&finding) != 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct tables tables = {.removals.bound.max = ROWS_MAX,
                            .pods.bound.max = ROWS_MAX,
                            .conditions.bound.max = ROWS_MAX};
    state_rows_init(STATE, OPTION_COUNT(STATE), &tables);
    arena_init(&tables.arena, 4096);
    buffer_init(&tables.out, 1 << 20);
    while (size > 0) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t length = newline == NULL ? size : (size_t)(newline - data);
        char *record = memory_take(length);
        memcpy(record, data, length);
        decode_twice(&tables, &decoder_kubernetes, (struct slice){record, length});
        decode_twice(&tables, &decoder_nvsentinel, (struct slice){record, length});
        memory_give(record);
        arena_reset(&tables.arena);
        length += newline != NULL;
        data += length;
        size -= length;
    }
    tell(&tables);
    state_rows_release(STATE, OPTION_COUNT(STATE), &tables);
    arena_release(&tables.arena);
    buffer_release(&tables.out);
    intern_release();
    return 0;
}

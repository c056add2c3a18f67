// SPDX-License-Identifier: Apache-2.0
// What a record of the topic holds.
//
// An event: the record as it came, with headers that say whose it is, its number, and what a
// gateway must know from before (first sample and generation of the rank). Its key is the job. Of
// evidence without a job nobody here knows which gateway needs it, so it goes to each partition;
// samples without a job, of which there are too many for that, go to the jobs of their node as far
// as they are known, else by the node. A verdict: its line of JSON, keyed by job and verdict, so
// that a compacted topic keeps the last state of each.
#include "exporters/forward/ranks.h"
#include "exporters/kafka/exporter.h"
#include "pipeline/component/record_frame.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"

#include <assert.h>

// What is told again and again, in amounts: the next one tells as much. All else may be the only
// sign of what broke a job.
static bool is_sample(const struct event *event) {
    switch (event->kind) {
    case EVENT_TELEMETRY:
    case EVENT_SPAN:
    case EVENT_GPU_SAMPLE:
    case EVENT_AER_COUNTERS:
        return true;
    case EVENT_FLIGHT:
        return !event->flight->whole;
    case EVENT_OBSERVATION:
        return event->observation->kind == OBSERVATION_IB_COUNTER ||
               event->observation->kind == OBSERVATION_INSPECTOR_COLL ||
               event->observation->kind == OBSERVATION_INSPECTOR_P2P;
    default:
        return false;
    }
}

// Who has to see a record.
struct address {
    string_id job;  // of the first of its events that has one
    string_id node; // likewise
    bool rare;      // one of its events is no sample
};

// Of the record whose first event is number `first`: of all of its events.
static struct address address_of(const struct batch *batch, uint32_t first) {
    struct address address = {STRING_NONE, STRING_NONE, false};
    struct slice raw = batch->events[first].raw;
    uint32_t i = first;
    do {
        const struct event *event = &batch->events[i];
        if (!batch_selects(batch, i))
            continue;
        if (address.job == STRING_NONE && event->job != STRING_REFUSED)
            address.job = event->job;
        if (address.node == STRING_NONE && event->node != STRING_REFUSED)
            address.node = event->node;
        address.rare = address.rare || !is_sample(event);
    } while (++i < batch->event_count && raw.size > 0 && batch->events[i].raw.data == raw.data &&
             batch->events[i].raw.size == raw.size);
    return address;
}

static void write_event(struct kafka_exporter *self, const struct event *event,
                        struct carried carried, string_id key, bool for_all, struct buffer *out) {
    struct record_frame frame;
    struct forward_texts texts;
    forward_event(&self->sender, event, carried, &frame, &texts);
    assert(frame.key.data == NULL && !(for_all && key != STRING_NONE));
    if (key != STRING_NONE)
        frame.key = intern_slice(key);
    if (for_all)
        record_frame_add(&frame, RECORD_COPIES, SLICE(""));
    record_frame_write(&frame, out);
}

static bool belongs_to_a_node(const struct event *event) {
    return event->kind != EVENT_TELEMETRY && event->kind != EVENT_SPAN;
}

// A sample without a job: for each job of its node, or by the node.
static void write_sample(struct kafka_exporter *self, const struct event *event,
                         struct carried carried, string_id node, struct buffer *out) {
    string_id jobs[KAFKA_NODE_JOBS_MAX];
    if (!belongs_to_a_node(event)) {
        write_event(self, event, carried, STRING_NONE, false, out);
        return;
    }
    uint32_t count = kafka_nodes_jobs(&self->nodes, node, jobs);
    if (count == 0)
        write_event(self, event, carried, node, false, out);
    for (uint32_t i = 0; i < count; i++)
        write_event(self, event, carried, jobs[i], false, out);
}

static void encode_event(struct kafka_exporter *self, const struct event *event,
                         struct address address, struct buffer *out) {
    bool full;
    struct carried carried = forward_ranks_note(&self->ranks, event, &full);
    if (full)
        log_write(LOG_WARN, (struct log_site){"C7101", self->site},
                  "more than %d ranks are known: further ones are sent without their first sample",
                  FORWARD_RANKS_MAX);
    kafka_nodes_note(&self->nodes, event);
    if (self->config->key != KAFKA_KEY_JOB)
        write_event(self, event, carried, STRING_NONE, false, out);
    else if (address.job != STRING_NONE)
        write_event(self, event, carried, address.job, false, out);
    else if (address.rare)
        write_event(self, event, carried, STRING_NONE, true, out);
    else
        write_sample(self, event, carried, address.node, out);
}

static void encode_verdict(struct kafka_exporter *self, const struct verdict *verdict,
                           struct arena *arena, struct buffer *out) {
    struct record_frame frame;
    struct forward_texts texts;
    buffer_reset(&self->value);
    verdict_encode(verdict, &self->value);
    assert(!self->value.failed && self->value.size > 0);
    forward_begin(&self->sender, SLICE("culprit.verdict.v1"), &frame, &texts);
    record_frame_add(&frame, "culprit-verdict-id", slice_of(verdict->id));
    if (self->config->key == KAFKA_KEY_JOB) {
        struct slice job = intern_slice(verdict->job);
        frame.key = slice_of(arena_format(arena, "%.*s/%s", (int)job.size, job.data, verdict->id));
    }
    frame.value = (struct slice){self->value.data, self->value.size - 1}; // without the newline
    record_frame_write(&frame, out);
}

void kafka_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct kafka_exporter *self = instance;
    if (self->config->payload == KAFKA_VERDICTS) {
        for (uint32_t i = 0; i < batch->verdicts.count; i++)
            encode_verdict(self, &batch->verdicts.items[i], batch->arena, out);
        return;
    }
    struct slice last = {NULL, 0};
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch_selects(batch, i) && !forward_is_repeat(&batch->events[i], &last))
            encode_event(self, &batch->events[i], address_of(batch, i), out);
}

// SPDX-License-Identifier: Apache-2.0
// What a record of the topic holds.
//
// An event: the record as it came, with headers that say whose it is, its number, and what a
// gateway must know from before (first sample and generation of the rank). A verdict: its line of
// JSON, keyed by job and verdict, so that a compacted topic keeps the last state of each.
#include "exporters/forward/ranks.h"
#include "exporters/kafka/exporter.h"
#include "pipeline/component/record_frame.h"

#include <assert.h>

static void encode_event(struct kafka_exporter *self, const struct event *event,
                         struct buffer *out) {
    struct record_frame frame;
    struct forward_texts texts;
    bool full;
    struct carried carried = forward_ranks_note(&self->ranks, event, &full);
    if (full)
        log_write(LOG_WARN, (struct log_site){"C7101", self->site},
                  "more than %d ranks are known: further ones are sent without their first sample",
                  FORWARD_RANKS_MAX);
    forward_event(&self->sender, event, carried, &frame, &texts);
    if (event->job != STRING_NONE && self->config->key == KAFKA_KEY_JOB)
        frame.key = intern_slice(event->job);
    record_frame_write(&frame, out);
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
            encode_event(self, &batch->events[i], out);
}

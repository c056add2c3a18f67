// SPDX-License-Identifier: Apache-2.0
// What a record of the topic holds.
//
// An event: the record as it came, with headers that say whose it is, its number, and what a
// gateway must know from before (first sample and generation of the rank). A verdict: its line of
// JSON, keyed by job and verdict, so that a compacted topic keeps the last state of each. Every
// record has a number that rises by one, kept with the checkpoint: what is sent again after a crash
// has the number it had. Without a checkpoint the counting begins anew under another name.
#include "base/clock.h"
#include "base/text/number.h"
#include "exporters/kafka/exporter.h"
#include "pipeline/component/decoder.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

// The texts of numbers, for as long as a frame is being made.
struct numbers {
    char sequence[NUMBER_TEXT_MAX];
    char generation[NUMBER_TEXT_MAX];
    char first_sample[NUMBER_TEXT_MAX];
};

static void add(struct kafka_frame *frame, struct slice name, struct slice value) {
    assert(frame->header_count < KAFKA_HEADERS_MAX);
    frame->headers[frame->header_count++] = (struct kafka_header){name, value};
}

// Before the first record: the name under which they are sent.
static void name_sender(struct kafka_exporter *self) {
    if (self->sender_name[0] != '\0')
        return;
    struct kafka_counter *counter = &self->counter;
    if (counter->incarnation == 0)
        counter->incarnation = clock_unix_ns();
    snprintf(self->sender_name, sizeof self->sender_name, "%.*s/%016" PRIx64, KAFKA_SENDER_MAX - 17,
             self->sender, counter->incarnation);
}

static void begin(struct kafka_exporter *self, struct kafka_frame *frame, struct numbers *numbers,
                  struct slice schema) {
    assert(self->sender_name[0] != '\0');
    *frame = (struct kafka_frame){.sequence = ++self->counter.sequence};
    add(frame, SLICE("culprit-schema"), schema);
    add(frame, SLICE("culprit-sender"), slice_of(self->sender_name));
    add(frame, SLICE("culprit-sequence"), number_text(frame->sequence, numbers->sequence));
}

static void encode_event(struct kafka_exporter *self, const struct event *event,
                         struct buffer *out) {
    struct kafka_frame frame;
    struct numbers numbers;
    bool full;
    struct carried carried = kafka_ranks_note(&self->ranks, event, &full);
    if (full)
        log_write(LOG_WARN, (struct log_site){"C7101", self->site},
                  "more than %d ranks are known: further ones are sent without their first sample",
                  KAFKA_RANKS_MAX);
    begin(self, &frame, &numbers, SLICE("culprit.event.v1"));
    add(&frame, SLICE("culprit-format"), slice_of(event->decoder->name));
    if (event->job != STRING_NONE) {
        add(&frame, SLICE("culprit-job"), intern_slice(event->job));
        if (self->config->key == KAFKA_KEY_JOB)
            frame.key = intern_slice(event->job);
    }
    if (carried.generation != 0)
        add(&frame, SLICE("culprit-generation"),
            number_text(carried.generation, numbers.generation));
    if (carried.first_sample_ns != 0)
        add(&frame, SLICE("culprit-first-sample"),
            number_text(carried.first_sample_ns, numbers.first_sample));
    frame.value = event->raw;
    kafka_frame_write(&frame, out);
}

static void encode_verdict(struct kafka_exporter *self, const struct verdict *verdict,
                           struct arena *arena, struct buffer *out) {
    struct kafka_frame frame;
    struct numbers numbers;
    buffer_reset(&self->value);
    verdict_encode(verdict, &self->value);
    assert(!self->value.failed && self->value.size > 0);
    begin(self, &frame, &numbers, SLICE("culprit.verdict.v1"));
    add(&frame, SLICE("culprit-verdict-id"), slice_of(verdict->id));
    if (self->config->key == KAFKA_KEY_JOB) {
        struct slice job = intern_slice(verdict->job);
        frame.key = slice_of(arena_format(arena, "%.*s/%s", (int)job.size, job.data, verdict->id));
    }
    frame.value = (struct slice){self->value.data, self->value.size - 1}; // without the newline
    kafka_frame_write(&frame, out);
}

void kafka_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct kafka_exporter *self = instance;
    name_sender(self);
    if (self->config->payload == KAFKA_VERDICTS) {
        for (uint32_t i = 0; i < batch->verdicts.count; i++)
            encode_verdict(self, &batch->verdicts.items[i], batch->arena, out);
        return;
    }
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch_selects(batch, i))
            encode_event(self, &batch->events[i], out);
}

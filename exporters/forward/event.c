// SPDX-License-Identifier: Apache-2.0
#include "exporters/forward/event.h"

#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/telemetry_event.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INCARNATION_SIZE = 17 }; // "/" and 16 digits

// -- who sends ------------------------------------------------------------------------------------

void forward_sender_check(const char *sender, struct problem_list *problems) {
    size_t size = sender == NULL ? 1 : strlen(sender);
    if (size == 0 || size > RECORD_SENDER_MAX - INCARNATION_SIZE)
        problem_add(problems, "sender", "it has %zu bytes; write 1 to %d", size,
                    RECORD_SENDER_MAX - INCARNATION_SIZE);
}

static char *default_sender(const char *id) {
    char host[HOST_NAME_MAX + 1] = "localhost";
    if (gethostname(host, sizeof host) != 0)
        snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    size_t size = strlen(host) + strlen(id) + 2;
    char *name = memory_take(size);
    snprintf(name, size, "%s/%s", host, id);
    return name;
}

void forward_sender_init(struct forward_sender *sender, const char *given, const char *id) {
    assert(sender->base == NULL);
    sender->base = given == NULL ? default_sender(id) : memory_copy_text(given, strlen(given));
}

void forward_sender_release(struct forward_sender *sender) {
    memory_give(sender->base);
    sender->base = NULL;
}

void forward_sender_restored(struct forward_sender *sender) {
    sender->name[0] = '\0';
}

// Before the first record: the name under which they are sent.
static void name_sender(struct forward_sender *sender) {
    assert(sender->base != NULL);
    if (sender->name[0] != '\0')
        return;
    struct forward_counter *counter = &sender->counter;
    if (counter->incarnation == 0)
        counter->incarnation = clock_unix_ns();
    snprintf(sender->name, sizeof sender->name, "%.*s/%016" PRIx64,
             RECORD_SENDER_MAX - INCARNATION_SIZE, sender->base, counter->incarnation);
}

// -- frames ---------------------------------------------------------------------------------------

void forward_begin(struct forward_sender *sender, struct slice schema, struct record_frame *frame,
                   struct forward_texts *texts) {
    name_sender(sender);
    *frame = (struct record_frame){.sequence = ++sender->counter.sequence};
    record_frame_add(frame, RECORD_SCHEMA, schema);
    record_frame_add(frame, RECORD_SENDER, slice_of(sender->name));
    record_frame_add(frame, RECORD_SEQUENCE, number_text(frame->sequence, texts->sequence));
}

static void add_name(struct record_frame *frame, const char *header, string_id name) {
    if (name != STRING_NONE && name != STRING_REFUSED)
        record_frame_add(frame, header, intern_slice(name));
}

// Telemetry and spans say by themselves where and when they are from, but for what a receiver's
// options told.
static bool is_self_contained(const struct event *event) {
    return event->kind == EVENT_TELEMETRY || event->kind == EVENT_SPAN;
}

// When its input was read or written, where that counts; 0: it does not, or is not known.
static uint64_t observed(const struct event *event) {
    if (event->kind == EVENT_FLIGHT && event->flight->observed_ns != 0)
        return event->flight->observed_ns;
    if (event->kind == EVENT_KUBERNETES && event->kubernetes->observed_ns != 0)
        return event->kubernetes->observed_ns;
    return event->timeless ? event->time_ns : 0;
}

static void add_origin(struct record_frame *frame, const struct event *event,
                       struct forward_texts *texts) {
    if (is_self_contained(event)) {
        if (event->kind == EVENT_TELEMETRY && event->telemetry->host == STRING_NONE)
            add_name(frame, RECORD_NODE, event->node);
        return;
    }
    add_name(frame, RECORD_NODE, event->node);
    if (event->rank != RANK_NONE)
        record_frame_add(frame, RECORD_RANK, number_text(event->rank, texts->rank));
    uint64_t observed_ns = observed(event);
    if (event->time_ns != 0 && !event->timeless)
        record_frame_add(frame, RECORD_TIME, number_text(event->time_ns, texts->time));
    if (observed_ns != 0)
        record_frame_add(frame, RECORD_OBSERVED, number_text(observed_ns, texts->observed));
    // What came through another culprit keeps the path that it had there.
    if (event->carried == NULL)
        add_name(frame, RECORD_PATH, event->source);
    else
        add_name(frame, RECORD_PATH, event->carried->path);
    if (event->kind == EVENT_FLIGHT && event->flight->is_file)
        record_frame_add(frame, RECORD_FILE, SLICE("1"));
}

void forward_event(struct forward_sender *sender, const struct event *event, struct carried carried,
                   struct record_frame *frame, struct forward_texts *texts) {
    assert(event->decoder != NULL);
    forward_begin(sender, SLICE(RECORD_EVENT_SCHEMA), frame, texts);
    record_frame_add(frame, RECORD_FORMAT, slice_of(event->decoder->name));
    add_name(frame, RECORD_JOB, event->job);
    add_origin(frame, event, texts);
    if (carried.generation != 0)
        record_frame_add(frame, RECORD_GENERATION,
                         number_text(carried.generation, texts->generation));
    if (carried.first_sample_ns != 0)
        record_frame_add(frame, RECORD_FIRST_SAMPLE,
                         number_text(carried.first_sample_ns, texts->first_sample));
    frame->value = event->raw;
}

bool forward_is_repeat(const struct event *event, struct slice *last) {
    bool same = last->data != NULL && event->raw.data == last->data &&
                event->raw.size == last->size && event->raw.size > 0;
    *last = event->raw;
    return same;
}

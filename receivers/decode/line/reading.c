// SPDX-License-Identifier: Apache-2.0
// Facts are kept sorted by insertion (they are few); texts are copied when the event is made, since
// the receiver's bytes may be gone by then. O(size of the texts).
#include "receivers/decode/line/reading.h"

#include "base/text/cut.h"
#include "base/text/time_zone.h"
#include "base/text/utf8.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/line/two_clocks.h"

#include <assert.h>

struct slice reading_clean(struct slice text, struct arena *arena) {
    uint32_t code;
    size_t at = 0, length;
    while (at < text.size && (length = utf8_decode(text, at, &code)) > 0)
        at += length;
    if (at == text.size)
        return text;
    struct slice copy = arena_copy(arena, text);
    char *bytes = (char *)(uintptr_t)copy.data;
    while (at < copy.size) {
        length = utf8_decode(copy, at, &code);
        if (length == 0)
            bytes[at] = '?';
        at += length == 0 ? 1 : length;
    }
    return copy;
}

void reading_begin(struct reading *reading, enum observation_kind what) {
    assert(reading->arena != NULL && what != OBSERVATION_NONE);
    reading_clear(reading);
    reading->kind = EVENT_OBSERVATION;
    reading->what = what;
}

// The place of a fact, in the order of keys.
static struct fact *fact_place(struct reading *reading, enum fact_key key) {
    uint32_t at = 0;
    while (at < reading->fact_count && reading->facts[at].key < key)
        at++;
    if (at == reading->fact_count || reading->facts[at].key != key) {
        assert(reading->fact_count < READING_FACTS_MAX);
        memmove(&reading->facts[at + 1], &reading->facts[at],
                (reading->fact_count - at) * sizeof *reading->facts);
        reading->fact_count++;
    }
    reading->facts[at] = (struct fact){.key = key};
    return &reading->facts[at];
}

void reading_number(struct reading *reading, enum fact_key key, int64_t number) {
    assert(fact_type(key) == FACT_NUMBER);
    fact_place(reading, key)->number = number;
}

void reading_text(struct reading *reading, enum fact_key key, struct slice text) {
    assert(fact_type(key) == FACT_TEXT);
    fact_place(reading, key)->text = text;
}

void reading_yes_no(struct reading *reading, enum fact_key key, bool yes) {
    assert(fact_type(key) == FACT_YES_NO);
    fact_place(reading, key)->yes = yes;
}

void reading_address(struct reading *reading, enum fact_key key, pci_address address) {
    assert(fact_type(key) == FACT_PCI_ADDRESS);
    fact_place(reading, key)->address = address;
}

enum read_result reading_refuse(struct reading *reading, enum decode_category refusal,
                                const char *detail) {
    assert(decode_refused(refusal));
    reading->refusal = refusal;
    reading->detail = detail;
    return READ_REFUSED;
}

static bool is_free(const struct reading *reading, enum fact_key key) {
    for (uint32_t i = 0; i < reading->fact_count; i++)
        if (reading->facts[i].key == key)
            return false;
    return reading->fact_count < READING_FACTS_MAX;
}

void reading_place(struct reading *reading, const struct frame *frame) {
    if (reading->kind != EVENT_OBSERVATION || reading->no_rank)
        return;
    const struct {
        enum fact_key key;
        struct slice text;
    } texts[] = {{FACT_POD, frame->pod},
                 {FACT_CONTAINER, frame->container},
                 {FACT_UNIT_UID, frame->unit_uid},
                 {FACT_ADDRESS, frame->address}};
    const struct {
        enum fact_key key;
        int64_t number;
    } numbers[] = {{FACT_PID, frame->pid},
                   {FACT_LOCAL_RANK, frame->local_rank},
                   {FACT_TASK, frame->task},
                   {FACT_CUDA_DEVICE, frame->cuda_device}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text.data != NULL && is_free(reading, texts[i].key))
            reading_text(reading, texts[i].key, texts[i].text);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].number >= 0 && is_free(reading, numbers[i].key))
            reading_number(reading, numbers[i].key, numbers[i].number);
}

static struct slice keep(struct slice text, struct arena *arena) {
    struct slice clean = reading_clean(text, arena);
    return clean.data == text.data ? arena_copy(arena, text) : clean;
}

static bool has_fact(const struct reading *reading, enum fact_key key) {
    uint32_t at = 0;
    while (at < reading->fact_count && reading->facts[at].key < key)
        at++;
    return at < reading->fact_count && reading->facts[at].key == key;
}

// "ml/trainer-2", or the name alone where the transport says no namespace.
static struct slice pod_name(const struct frame *frame, struct arena *arena) {
    struct slice namespace = frame->namespace, pod = frame->pod;
    if (namespace.size == 0 || pod.size == 0)
        return pod;
    char *both = arena_take(arena, namespace.size + 1 + pod.size);
    memcpy(both, namespace.data, namespace.size);
    both[namespace.size] = '/';
    memcpy(both + namespace.size + 1, pod.data, pod.size);
    return (struct slice){both, namespace.size + 1 + pod.size};
}

// Who wrote it, as its transport says, where the message is about its writer and does not say.
static void put_writer(struct reading *reading, const struct frame *frame) {
    const struct {
        enum fact_key key;
        struct slice text;
    } rows[] = {
        {FACT_POD, pod_name(frame, reading->arena)},
        {FACT_CONTAINER, frame->container},
        {FACT_UNIT_UID, frame->unit_uid},
        {FACT_ADDRESS, frame->address},
    };
    for (size_t i = 0; !reading->no_rank && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].text.size > 0 && !has_fact(reading, rows[i].key) &&
            reading->fact_count < READING_FACTS_MAX)
            reading_text(reading, rows[i].key, rows[i].text);
}

static void set_observation(struct reading *reading, struct slice text, struct event *event) {
    struct observation *observation = arena_take(reading->arena, sizeof *observation);
    struct fact *facts =
        arena_take(reading->arena, (reading->fact_count + 1) * sizeof *reading->facts);
    for (uint32_t i = 0; i < reading->fact_count; i++) {
        facts[i] = reading->facts[i];
        if (fact_type(facts[i].key) == FACT_TEXT)
            facts[i].text = keep(facts[i].text, reading->arena);
    }
    *observation = (struct observation){.kind = reading->what,
                                        .text = keep(text, reading->arena),
                                        .facts = facts,
                                        .fact_count = reading->fact_count};
    event->observation = observation;
}

// From what a clock in the zone showed, read as if it were UTC.
static uint64_t of_zone(uint64_t local_ns, const struct time_zone *zone) {
    const int64_t second_ns = 1000000000;
    int64_t unix_s = time_zone_unix(zone, (int64_t)(local_ns / (uint64_t)second_ns));
    return unix_s <= 0 ? local_ns
                       : (uint64_t)unix_s * (uint64_t)second_ns + local_ns % (uint64_t)second_ns;
}

// The time that the message tells, by the clock of its source.
static uint64_t told_time(const struct reading *reading, const struct frame *frame,
                          const struct decoder_input *input) {
    // Whoever passed it on knew its zone.
    if (input->forwarded != NULL && input->forwarded->time_ns != 0)
        return input->forwarded->time_ns;
    uint64_t told_ns =
        reading->local_time ? of_zone(reading->time_ns, input->zone) : reading->time_ns;
    unsigned told_as =
        (reading->local_time ? TOLD_LOCAL : 0U) | (reading->just_now ? TOLD_NOW : 0U);
    return two_clocks_time(frame, told_ns, told_as);
}

// The message's own time, the frame's, or where that will do the input's.
static enum decode_category set_time(const struct reading *reading, const struct frame *frame,
                                     const struct decoder_input *input, struct event *event,
                                     uint64_t *slack_ns, struct decode_fault *fault) {
    *slack_ns = 0;
    event->time_ns = 0;
    if (reading->time_ns != 0) {
        event->time_ns = told_time(reading, frame, input);
        *slack_ns = reading->slack_ns;
        return DECODE_OK;
    }
    if (frame->time_ns != 0) {
        event->time_ns = frame->time_ns;
        *slack_ns = frame->slack_ns;
        return DECODE_OK;
    }
    enum decode_category why = frame->time_fault;
    // Who hands over a whole file asks about what stands in it, whenever that was.
    bool needs_time = reading->needs_time && !(input->is_file && input->ends);
    if ((needs_time && why == DECODE_OK) || input->observed_ns == 0)
        why = DECODE_MISSING_TIMESTAMP;
    if (why != DECODE_OK && (reading->needs_time || why != DECODE_MISSING_TIMESTAMP))
        return fault_set(fault, why, SLICE(""), "%s",
                         frame->time_detail != NULL ? frame->time_detail
                                                    : "no time that could be used stands in it");
    if (input->observed_ns == 0)
        return fault_set(fault, DECODE_MISSING_TIMESTAMP, SLICE(""),
                         "the line has no timestamp, and when it was written is not known");
    event->timeless = true;
    // What machines say is kept in the order in which it stands there.
    event->time_ns = input->observed_ns + (reading->needs_time ? frame->position : 0);
    event->time_of = input->is_file ? TIME_OF_FILE : TIME_OF_RECEIPT;
    if (frame->after_ns != 0) {
        event->time_ns = frame->after_ns;
        event->time_of = TIME_OF_LINE_BEFORE;
    }
    return DECODE_OK;
}

static const struct kernel_line *cut_kernel_line(const struct reading *reading) {
    struct kernel_line *line = arena_take(reading->arena, sizeof *line);
    struct slice detail = reading->kernel->detail;
    *line = *reading->kernel;
    line->truncated = true;
    // A number that the break touches is the front of another.
    if (detail.size > 0 && text_is_digit(detail.data[detail.size - 1])) {
        line->link = -1;
        line->caused_by = 0;
    }
    return line;
}

enum decode_category reading_finish(struct reading *reading, const struct frame *frame,
                                    const struct decoder_input *input, struct slice text,
                                    struct event *event, struct decode_fault *fault) {
    uint64_t slack_ns;
    struct slice host = reading->host;
    if (host.data == NULL && !reading->no_host)
        host = frame->host.size > 0 ? frame->host : frame->address;
    event->job = event->node = STRING_NONE;
    event->timeless = false;
    event->kind = reading->kind;
    event->rank = reading->rank;
    if (event->rank == RANK_NONE && !reading->no_rank)
        event->rank = frame->rank;
    enum decode_category category = set_time(reading, frame, input, event, &slack_ns, fault);
    if (category != DECODE_OK)
        return category;
    if (host.size == 0 && !reading->no_host)
        host = input->node;
    if (host.size > 0 && fault_intern(fault, SLICE("host"), reading_clean(host, reading->arena),
                                      &event->node) != DECODE_OK)
        return fault->category;
    if (reading->kind == EVENT_KERNEL) {
        event->kernel = frame->truncated ? cut_kernel_line(reading) : reading->kernel;
    } else if (reading->kind == EVENT_APP_LINE) {
        event->line = reading->line;
    } else {
        assert(reading->kind == EVENT_OBSERVATION && reading->what != OBSERVATION_NONE);
        put_writer(reading, frame);
        if (frame->truncated && reading->fact_count < READING_FACTS_MAX)
            reading_yes_no(reading, FACT_TRUNCATED, true);
        set_observation(reading, text, event);
        ((struct observation *)(uintptr_t)event->observation)->time_slack_ns = slack_ns;
    }
    return DECODE_OK;
}

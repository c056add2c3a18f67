// SPDX-License-Identifier: Apache-2.0
// Rounds at an interval, and answers that are asked for in between when a process falls silent.
//
// What came is a record of its own: the document with the time at which it came, since RAS writes
// local times without a zone.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "base/text/json_write.h"
#include "pipeline/component/decoder.h"
#include "pipeline/component/feed.h"
#include "receivers/decode/format.h"
#include "receivers/decode/formats.h"
#include "receivers/nccl_ras/receiver.h"
#include "receivers/nccl_ras/reply.h"
#include "receivers/records/options.h"

#include <errno.h>
#include <stdio.h>

static const uint64_t WAIT_MAX_NS = 500ull * 1000 * 1000;
static const uint64_t MS_NS = 1000ull * 1000;

static struct log_site site(const struct ras_receiver *receiver, const char *code) {
    return (struct log_site){code, receiver->context->site};
}

static bool is_stopping(const struct ras_receiver *receiver) {
    return feed_stopping(receiver->sink.feed);
}

// -- records --------------------------------------------------------------------------------------

static void offer(struct ras_receiver *receiver, struct ras_target *target, struct slice document) {
    struct feed *feed = receiver->sink.feed;
    struct json_writer json;
    while (feed_blocked(feed) && !feed_stopping(feed))
        (void)feed_wait(feed, WAIT_MAX_NS);
    buffer_reset(&receiver->record);
    json_begin(&json, &receiver->record, 0);
    json_object_open(&json);
    json_field_text(&json, "source", "nccl_ras");
    json_field_uint(&json, "timestamp_ns", clock_unix_ns());
    json_field_slice(&json, "document", document);
    json_object_close(&json);
    target->position.number++;
    feed_source_reached(target->source, &target->position);
    if (receiver->record.failed) {
        record_sink_fault(&receiver->sink, DECODE_TOO_LONG, "the answer is too long as a record");
        record_sink_refuse(&receiver->sink, target->source, SLICE(""), target->position.number);
    } else {
        (void)record_sink_offer(&receiver->sink, target->source, buffer_slice(&receiver->record),
                                target->position.number);
    }
    feed_source_caught_up(feed, target->source); // nothing more comes for now
    feed_flush(feed);
}

// What came of an answer that is not whole.
static void refuse(struct ras_receiver *receiver, struct ras_target *target) {
    struct slice text = buffer_slice(&target->asking.in);
    if (text.size > RAS_SHOWN_MAX) // enough for whoever looks at it
        text.size = RAS_SHOWN_MAX;
    record_sink_fault(&receiver->sink, DECODE_TORN, "%s", target->asking.reason);
    target->position.number++;
    feed_source_reached(target->source, &target->position);
    record_sink_refuse(&receiver->sink, target->source, text, target->position.number);
    feed_source_caught_up(receiver->sink.feed, target->source);
    feed_flush(receiver->sink.feed);
}

// -- answers --------------------------------------------------------------------------------------

static void set_presence(struct ras_receiver *receiver, struct ras_target *target,
                         enum ras_presence presence) {
    assert(presence != RAS_UNKNOWN);
    metric_set(target->running, presence == RAS_RUNS);
    if (target->presence == presence)
        return;
    target->presence = presence;
    if (presence == RAS_RUNS) {
        log_write(LOG_INFO, site(receiver, "C9402"), "a job answers at %s", target->name);
        return;
    }
    log_write(LOG_INFO, site(receiver, "C9401"), "no job answers at %s; it is asked again",
              target->name);
    ras_connection_close(&target->following);
    target->old = false; // the next job may have another NCCL
    target->silent = false;
}

static void start_following(struct ras_receiver *receiver, struct ras_target *target,
                            uint64_t now_ns) {
    if (!receiver->config->follow || target->old || target->following.phase != RAS_CLOSED)
        return;
    for (uint32_t i = 0; receiver->config->ask == RAS_ASK_FIRST && i < receiver->target_count; i++)
        ras_connection_close(&receiver->targets[i].following);
    // Whatever comes of it: it is tried again after the next answer.
    (void)ras_connection_open(&target->following, &target->endpoint,
                              (uint64_t)receiver->config->timeout.ns, now_ns);
}

static void ask(struct ras_receiver *receiver, struct ras_target *target, uint64_t now_ns);

// The next one is asked when this one had no answer and all are of one job.
static void ask_next(struct ras_receiver *receiver, uint64_t now_ns) {
    while (receiver->in_round && receiver->config->ask == RAS_ASK_FIRST &&
           receiver->under_way == 0 && receiver->candidate < receiver->target_count &&
           !is_stopping(receiver))
        ask(receiver, &receiver->targets[receiver->candidate++], now_ns);
}

static void take_outcome(struct ras_receiver *receiver, struct ras_target *target,
                         enum ras_outcome outcome, uint64_t now_ns) {
    bool answered = outcome == RAS_ANSWERED;
    assert(outcome != RAS_GOING && receiver->under_way > 0);
    receiver->under_way--;
    if (answered) {
        polled_answered(&target->polled);
        set_presence(receiver, target, RAS_RUNS);
        offer(receiver, target, buffer_slice(&target->asking.in));
        start_following(receiver, target, now_ns);
        receiver->candidate = receiver->target_count;
    } else if (outcome == RAS_ABSENT) {
        polled_absent(&target->polled);
        set_presence(receiver, target, RAS_NOBODY);
    } else {
        polled_failed(&target->polled, target->asking.reason);
        metric_set(target->running, 0);
        if (target->asking.in_answer)
            refuse(receiver, target);
    }
}

static void ask(struct ras_receiver *receiver, struct ras_target *target, uint64_t now_ns) {
    if (target->asking.phase != RAS_CLOSED)
        return;
    target->silent = false;
    target->asked_ns = now_ns;
    receiver->under_way++;
    enum ras_outcome outcome = ras_connection_open(&target->asking, &target->endpoint,
                                                   (uint64_t)receiver->config->timeout.ns, now_ns);
    if (outcome != RAS_GOING)
        take_outcome(receiver, target, outcome, now_ns);
}

// -- what RAS tells by itself ---------------------------------------------------------------------

static void note_silence(struct ras_receiver *receiver, struct ras_target *target,
                         struct slice event) {
    if (!target->silent)
        log_write(LOG_INFO, site(receiver, "C9406"),
                  "%s tells of a process that does not answer (%.*s): it is asked", target->name,
                  (int)event.size, event.data);
    target->silent = true;
    metric_add(target->silences, 1);
}

static void take_objects(struct ras_receiver *receiver, struct ras_target *target) {
    struct buffer *in = &target->following.in;
    size_t taken = 0, size;
    for (;;) {
        struct slice rest = {in->data + taken, in->size - taken};
        size = in->size == taken ? 0 : ras_object_size(rest);
        if (size == 0 || size > rest.size)
            break;
        struct slice object = {rest.data, size}, event = ras_event_name(object);
        if (ras_event_is_silence(event))
            note_silence(receiver, target, event);
        if (ras_event_is_lifecycle(event))
            offer(receiver, target, object);
        taken += size;
    }
    if (size == SIZE_MAX) {
        log_write(LOG_WARN, site(receiver, "C9407"),
                  "what %s tells is not JSON: it is followed anew after the next answer",
                  target->name);
        ras_connection_close(&target->following);
        return;
    }
    memmove(in->data, in->data + taken, in->size - taken);
    in->size -= taken;
}

static void take_told(struct ras_receiver *receiver, struct ras_target *target,
                      enum ras_outcome outcome) {
    if (outcome == RAS_TOLD)
        take_objects(receiver, target);
    if (outcome == RAS_OLD) {
        target->old = true;
        log_write(LOG_INFO, site(receiver, "C9405"),
                  "%s does not tell what happens (NCCL before 2.29): it is asked every interval "
                  "and no sooner",
                  target->name);
    }
    // The process that told is gone: another one of the job may know more.
    if (outcome == RAS_FAILED || outcome == RAS_ABSENT)
        target->silent = target->presence == RAS_RUNS;
}

// -- the loop -------------------------------------------------------------------------------------

static void begin_round(struct ras_receiver *receiver, uint64_t now_ns) {
    uint64_t interval_ns = (uint64_t)receiver->config->interval.ns;
    if (receiver->in_round || now_ns < receiver->round_ns)
        return;
    receiver->round_ns += interval_ns;
    if (receiver->round_ns <= now_ns)
        receiver->round_ns = now_ns + interval_ns;
    receiver->in_round = true;
    receiver->candidate = 0;
    if (receiver->config->ask == RAS_ASK_ALL)
        // Looking up a name may take long.
        for (uint32_t i = 0; i < receiver->target_count && !is_stopping(receiver); i++)
            ask(receiver, &receiver->targets[i], now_ns);
}

static uint64_t again_ns(const struct ras_receiver *receiver, const struct ras_target *target) {
    return target->asked_ns + (uint64_t)receiver->config->pause.ns;
}

static void ask_silent(struct ras_receiver *receiver, uint64_t now_ns) {
    for (uint32_t i = 0; !receiver->in_round && i < receiver->target_count; i++) {
        struct ras_target *target = &receiver->targets[i];
        if (!target->silent || now_ns < again_ns(receiver, target))
            continue;
        ask(receiver, target, now_ns);
        receiver->in_round = true;
        // Whoever comes next is asked when this one has no answer.
        receiver->candidate = 0;
    }
}

// When nothing can happen before, clock_monotonic_ns.
static uint64_t next_moment(const struct ras_receiver *receiver, uint64_t now_ns) {
    uint64_t next_ns = now_ns + WAIT_MAX_NS;
    if (!receiver->in_round && receiver->round_ns < next_ns)
        next_ns = receiver->round_ns;
    for (uint32_t i = 0; i < receiver->target_count; i++) {
        const struct ras_target *target = &receiver->targets[i];
        if (target->asking.phase != RAS_CLOSED && target->asking.deadline_ns < next_ns)
            next_ns = target->asking.deadline_ns;
        if (target->following.phase != RAS_CLOSED && target->following.deadline_ns < next_ns)
            next_ns = target->following.deadline_ns;
        if (target->silent && !receiver->in_round && again_ns(receiver, target) < next_ns)
            next_ns = again_ns(receiver, target);
    }
    return next_ns;
}

static void look_at(struct ras_receiver *receiver, struct ras_target *target,
                    const struct pollfd *found, uint64_t now_ns) {
    enum ras_outcome outcome = RAS_GOING;
    // A connection that was opened or closed since has another descriptor, or will be looked at.
    if (target->asking.phase != RAS_CLOSED)
        outcome = ras_connection_look(&target->asking, found[0].revents, now_ns);
    if (outcome != RAS_GOING)
        take_outcome(receiver, target, outcome, now_ns);
    outcome = RAS_GOING;
    if (target->following.phase != RAS_CLOSED && target->following.descriptor == found[1].fd)
        outcome = ras_connection_look(&target->following, found[1].revents, now_ns);
    if (outcome != RAS_GOING)
        take_told(receiver, target, outcome);
}

static void wait_and_look(struct ras_receiver *receiver, struct feed *feed) {
    struct pollfd found[1 + 2 * RAS_TARGETS_MAX];
    uint32_t count = receiver->target_count;
    uint64_t now = clock_monotonic_ns(), next = next_moment(receiver, now);
    found[0] = (struct pollfd){.fd = feed_stop_descriptor(feed), .events = POLLIN};
    for (uint32_t i = 0; i < count; i++) {
        found[1 + 2 * i] = ras_connection_wants(&receiver->targets[i].asking);
        found[2 + 2 * i] = ras_connection_wants(&receiver->targets[i].following);
    }
    int wait_ms = next <= now ? 0 : (int)((next - now) / MS_NS) + 1;
    if (poll(found, 1 + 2 * count, wait_ms) < 0) {
        assert(errno == EINTR || errno == EAGAIN || errno == ENOMEM);
        return;
    }
    now = clock_monotonic_ns();
    for (uint32_t i = 0; i < count && !feed_stopping(feed); i++)
        look_at(receiver, &receiver->targets[i], &found[1 + 2 * i], now);
}

static void open_sources(struct ras_receiver *receiver, struct feed *feed) {
    for (uint32_t i = 0; i < receiver->target_count; i++) {
        struct ras_target *target = &receiver->targets[i];
        target->source = feed_source(feed, slice_of(target->source_name));
        target->position = feed_source_restored(target->source);
        if (feed_source_decoder(target->source) == NULL)
            record_options_format(target->source, format_decoder(FORMAT_TAGGED_LINES),
                                  &receiver->sink.known);
        feed_source_caught_up(feed, target->source);
    }
    feed_flush(feed);
}

static void end_round(struct ras_receiver *receiver, struct feed *feed) {
    if (!receiver->in_round || receiver->under_way > 0 ||
        (receiver->config->ask == RAS_ASK_FIRST && receiver->candidate < receiver->target_count))
        return;
    receiver->in_round = false;
    if (!receiver->first_done)
        feed_caught_up(feed);
    receiver->first_done = true;
}

void ras_run(struct ras_receiver *receiver, struct feed *feed) {
    record_sink_attach(&receiver->sink, feed);
    open_sources(receiver, feed);
    feed_steps(feed, receiver->target_count == 1);
    while (!feed_stopping(feed)) {
        if (!receiver->in_round && feed_blocked(feed) && !feed_wait(feed, WAIT_MAX_NS))
            continue;
        uint64_t now = clock_monotonic_ns();
        begin_round(receiver, now);
        ask_silent(receiver, now);
        ask_next(receiver, now);
        end_round(receiver, feed);
        wait_and_look(receiver, feed);
    }
    for (uint32_t i = 0; i < receiver->target_count; i++) {
        ras_connection_close(&receiver->targets[i].asking);
        ras_connection_close(&receiver->targets[i].following);
    }
}

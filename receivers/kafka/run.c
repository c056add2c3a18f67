// SPDX-License-Identifier: Apache-2.0
// The loop: take what is there, hand it over, commit what is safe.
//
// While the pipelines take nothing the partitions are paused, and the consumer is polled all the
// same, so that it stays in its group.
#include "base/clock.h"
#include "receivers/kafka/receiver.h"

enum { TEND_MS = 1000, WAIT_MS = 500 };

static const uint64_t MS_NS = 1000000;

static void tend(struct kafka_receiver *receiver) {
    uint64_t now = clock_monotonic_ns();
    if (now - receiver->tended_ns < TEND_MS * MS_NS)
        return;
    receiver->tended_ns = now;
    kafka_commit(receiver);
    kafka_mend_range(receiver);
    kafka_look_whether_caught_up(receiver);
    kafka_show_lag(receiver);
}

// Takes messages until there are none for now or enough are held.
static void fill(struct kafka_receiver *receiver) {
    int wait_ms = receiver->held_count > 0 ? 0 : KAFKA_POLL_MS;
    while (receiver->held_count < KAFKA_BATCH_MESSAGES &&
           receiver->held_bytes < KAFKA_BATCH_BYTES && kafka_take(receiver, wait_ms))
        wait_ms = 0;
}

// False: it stops.
static bool handle_held(struct kafka_receiver *receiver) {
    assert(receiver->handled <= receiver->held_count);
    while (receiver->handled < receiver->held_count) {
        // Its place changes when a rebalance flushes what came before.
        if (!kafka_handle(receiver, receiver->held[receiver->handled]) &&
            feed_stopping(receiver->feed))
            return false;
        receiver->handled++;
    }
    return true;
}

// True when the pipelines take records; else it has waited a while.
static bool may_go_on(struct kafka_receiver *receiver) {
    struct feed *feed = receiver->feed;
    if (!feed_blocked(feed) || feed_wait(feed, WAIT_MS * MS_NS)) {
        kafka_pause(receiver, false);
        return true;
    }
    kafka_pause(receiver, true);
    // What was under way when they were paused is kept for later.
    (void)kafka_take(receiver, 0);
    return false;
}

static void turn(struct kafka_receiver *receiver) {
    assert(receiver->handled == 0);
    if (receiver->fatal || receiver->renew_at_ns != 0) {
        kafka_consumer_renew(receiver);
        if (receiver->consumer == NULL)
            clock_sleep_ns(KAFKA_POLL_MS * MS_NS);
        return;
    }
    if (!may_go_on(receiver)) {
        tend(receiver);
        return;
    }
    fill(receiver);
    bool quiet = receiver->held_count == 0;
    if (!quiet)
        receiver->renew_wait_ns = 0;
    bool goes_on = handle_held(receiver);
    if (goes_on)
        kafka_partitions_pass_ends(receiver);
    kafka_flush(receiver);
    if (!goes_on)
        return;
    if (quiet)
        kafka_look_whether_caught_up(receiver);
    tend(receiver);
}

enum status kafka_run(void *instance, struct feed *feed, struct error *error) {
    struct kafka_receiver *receiver = instance;
    assert(receiver->started && receiver->consumer != NULL);
    receiver->feed = feed;
    record_sink_attach(&receiver->sink, feed);
    feed_on_refusal(feed, kafka_held_refused, receiver);
    enum status status = kafka_consumer_join(receiver, error);
    while (status == STATUS_OK && !feed_stopping(feed))
        turn(receiver);
    return status;
}

// SPDX-License-Identifier: Apache-2.0
// The loop: each endpoint is asked at its own moment of the interval, all side by side, and what
// they answer is taken one after the other.
//
// The moments are spread over the interval, so that few answers are in memory at once. An endpoint
// that has not answered by its next moment is not asked twice at a time.
#include "base/clock.h"
#include "base/http/client.h"
#include "receivers/decode/tagged/tagged.h"
#include "receivers/prometheus_scrape/receiver.h"
#include "receivers/records/options.h"

static const uint64_t WAIT_MAX_NS = 500ull * 1000 * 1000;

static const char *const ACCEPT[] = {
    "Accept: text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0.5"};
static const struct http_call GET = {.method = "GET", .headers = ACCEPT, .header_count = 1};

static void set_out(struct scrape_receiver *receiver, uint64_t now_ns) {
    for (uint32_t i = 0; i < receiver->target_count; i++) {
        struct scrape_target *target = &receiver->targets[i];
        uint64_t interval_ns = target->polling.interval_ns;
        target->polling.next_ns = now_ns + interval_ns / receiver->target_count * i;
        target->source = feed_source(receiver->feed, slice_of(target->name));
        record_options_format(target->source, &decoder_tagged, &receiver->sink.known);
    }
}

static void ask(struct scrape_receiver *receiver, struct scrape_target *target) {
    struct buffer body;
    buffer_init(&body, (size_t)receiver->config->max_scrape_size.bytes);
    if (receiver->body_count > 0)
        body = receiver->bodies[--receiver->body_count];
    http_client_swap_body(target->client, &body);
    buffer_release(&body);
    target->under_way = true;
    target->began_ns = clock_unix_ns();
    target->began_monotonic_ns = clock_monotonic_ns();
    http_client_set_begin(receiver->set, target->client, &GET);
}

static void ask_due(struct scrape_receiver *receiver, uint64_t now_ns) {
    for (uint32_t i = 0; i < receiver->target_count; i++) {
        struct scrape_target *target = &receiver->targets[i];
        if (polling_due(&target->polling, now_ns) && !target->under_way)
            ask(receiver, target);
    }
}

static uint64_t wait_of(const struct scrape_receiver *receiver, uint64_t now_ns) {
    uint64_t wait_ns = WAIT_MAX_NS;
    for (uint32_t i = 0; i < receiver->target_count; i++) {
        uint64_t next_ns = receiver->targets[i].polling.next_ns;
        uint64_t left_ns = next_ns > now_ns ? next_ns - now_ns : 0;
        wait_ns = left_ns < wait_ns ? left_ns : wait_ns;
    }
    return wait_ns;
}

static struct scrape_target *target_of(const struct scrape_receiver *receiver,
                                       const struct http_client *client) {
    uint32_t i = 0;
    while (i < receiver->target_count && receiver->targets[i].client != client)
        i++;
    assert(i < receiver->target_count);
    return &receiver->targets[i];
}

static void turn(struct scrape_receiver *receiver) {
    bool blocked = feed_blocked(receiver->feed);
    uint64_t now_ns = clock_monotonic_ns(), wait_ns = WAIT_MAX_NS;
    if (!blocked) {
        ask_due(receiver, now_ns);
        wait_ns = wait_of(receiver, now_ns);
    }
    http_client_set_wait(receiver->set, feed_stop_descriptor(receiver->feed), wait_ns);
    struct http_client *client;
    enum http_class class;
    struct error error = {.message = ""};
    while (!feed_stopping(receiver->feed) &&
           (client = http_client_set_next(receiver->set, &class, &error)) != NULL)
        scrape_answer(receiver, target_of(receiver, client), class, &error);
}

enum status scrape_run(void *instance, struct feed *feed, struct error *error) {
    struct scrape_receiver *receiver = instance;
    assert(receiver->magic == SCRAPE_MAGIC && receiver->set != NULL);
    (void)error;
    receiver->feed = feed;
    record_sink_attach(&receiver->sink, feed);
    set_out(receiver, clock_monotonic_ns());
    feed_steps(feed, receiver->target_count == 1);
    // Nothing was there before the first answer.
    feed_caught_up(feed);
    while (!feed_stopping(feed))
        turn(receiver);
    return STATUS_OK;
}

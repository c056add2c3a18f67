// SPDX-License-Identifier: Apache-2.0
// What became of a call: a whole text of metrics goes into the feed as tagged lines, anything else
// is a failure of the target, and nothing of it is taken.
#include "base/clock.h"
#include "base/http/client.h"
#include "base/log.h"
#include "base/metrics/metrics.h"
#include "base/text/cut.h"
#include "receivers/decode/tagged/tagged.h"
#include "receivers/prometheus_scrape/receiver.h"

#include <strings.h>

static bool begins_as(struct slice text, const char *start) {
    return text.size >= strlen(start) && strncasecmp(text.data, start, strlen(start)) == 0;
}

const char *scrape_reply_problem(const struct http_client *client, bool takes_gzip,
                                 bool *open_metrics) {
    const struct http_reply *reply = http_client_reply(client);
    struct slice type = http_client_header(client, "Content-Type");
    struct slice encoding = http_client_header(client, "Content-Encoding");
    *open_metrics = begins_as(type, "application/openmetrics-text");
    if (reply->status != 200)
        return "it answers with a status that comes without metrics";
    if (!reply->whole)
        return "the answer was cut off";
    if (type.size > 0 && !*open_metrics && !begins_as(type, "text/plain"))
        return "the answer's Content-Type is neither text/plain nor application/openmetrics-text";
    // What was asked for libcurl has undone.
    if (encoding.size > 0 && !begins_as(encoding, "identity") &&
        !(takes_gzip && begins_as(encoding, "gzip")))
        return "the answer has a Content-Encoding that was not asked for";
    return NULL;
}

static void on_refused(void *context, struct slice line, uint64_t number,
                       const struct decode_fault *fault) {
    struct scrape_receiver *receiver = context;
    receiver->sink.fault = *fault;
    record_sink_refuse(&receiver->sink, receiver->at_hand->source, line, number);
}

static void offer_lines(struct scrape_receiver *receiver, struct source *source) {
    uint64_t number = 0;
    while (scrape_split_next(&receiver->split)) {
        struct slice lines = buffer_slice(&receiver->split.lines);
        while (lines.size > 0)
            (void)record_sink_offer(&receiver->sink, source, text_take_line(&lines), ++number);
        // The lines move with the next ones.
        feed_flush(receiver->feed);
    }
}

// Nothing that an endpoint says is looked for: perhaps it is the wrong one.
static void say_nothing(const struct scrape_receiver *receiver, struct scrape_target *target) {
    const struct scrape_counts *counts = &receiver->split.counts;
    if (target->said_nothing || counts->taken + counts->refused > 0)
        return;
    target->said_nothing = true;
    log_write(LOG_INFO, (struct log_site){"C9303", target->site},
              "%s: none of its %llu series is one that is looked for", target->name,
              (unsigned long long)counts->other);
}

// Whether the server said how much comes, so that a whole answer is known to be one.
static bool is_counted(const struct http_client *client) {
    return http_client_header(client, "Content-Length").size > 0 ||
           begins_as(http_client_header(client, "Transfer-Encoding"), "chunked");
}

// NULL: its samples are in the feed.
static const char *take_text(struct scrape_receiver *receiver, struct scrape_target *target,
                             struct slice text, bool open_metrics) {
    const char *label = receiver->config->node_label;
    struct scrape_text scrape = {.text = text,
                                 .time_ns = target->began_ns,
                                 .node = target->node,
                                 .node_label =
                                     label == NULL ? (struct slice){NULL, 0} : slice_of(label),
                                 .otherwise = slice_of(target->host),
                                 .counted = is_counted(target->client)};
    struct scrape_counts *counts = &receiver->split.counts;
    receiver->at_hand = target;
    receiver->split.refused = on_refused;
    receiver->split.context = receiver;
    const char *wrong = scrape_split_text(&receiver->split, &scrape, open_metrics);
    if (wrong != NULL)
        return wrong;
    feed_source_figures(target->source)->bytes += text.size;
    feed_pass_over(receiver->feed, target->source, counts->other);
    offer_lines(receiver, target->source);
    feed_source_caught_up(receiver->feed, target->source);
    feed_flush(receiver->feed);
    metric_add(target->bytes, text.size);
    metric_add(target->taken, counts->taken);
    metric_add(target->other, counts->other);
    metric_add(target->refused, counts->refused);
    say_nothing(receiver, target);
    return NULL;
}

// The client's sentence begins with the origin, which is the target's name.
static const char *without_name(const char *message, const char *name) {
    size_t size = strcspn(name, "#");
    if (strncmp(message, name, size) != 0)
        return message;
    message += size;
    return message + strspn(message, ": ");
}

static void tell_trouble(struct scrape_receiver *receiver) {
    uint32_t failing = 0;
    for (uint32_t i = 0; i < receiver->target_count; i++)
        failing += receiver->targets[i].polled.failed_in_a_row > 0;
    bool in_trouble = failing == receiver->target_count;
    if (in_trouble != receiver->in_trouble)
        feed_trouble(receiver->feed,
                     in_trouble ? "none of its endpoints answers with metrics" : NULL);
    receiver->in_trouble = in_trouble;
}

void scrape_answer(struct scrape_receiver *receiver, struct scrape_target *target,
                   enum http_class class, const struct error *error) {
    struct buffer body;
    bool open_metrics = false;
    assert(target->under_way);
    target->under_way = false;
    metric_add(target->nanoseconds, clock_monotonic_ns() - target->began_monotonic_ns);
    buffer_init(&body, (size_t)receiver->config->max_scrape_size.bytes);
    http_client_swap_body(target->client, &body);
    const char *wrong = scrape_reply_problem(
        target->client, receiver->config->compression == COMPRESSION_GZIP, &open_metrics);
    if (body.failed)
        wrong =
            "the answer has more than max_scrape_size, or all that are under way more than "
            "four times that";
    else if (class != HTTP_OK)
        wrong = without_name(error->message, target->name);
    else if (wrong == NULL)
        wrong = take_text(receiver, target, buffer_slice(&body), open_metrics);
    if (wrong == NULL) {
        polled_answered(&target->polled);
    } else {
        polled_failed(&target->polled, wrong);
        // One that says nothing holds no evaluation back.
        feed_source_leave(receiver->feed, target->source);
    }
    tell_trouble(receiver);
    if (receiver->body_count < SCRAPE_BODIES_KEPT)
        receiver->bodies[receiver->body_count++] = body;
    else
        buffer_release(&body);
}

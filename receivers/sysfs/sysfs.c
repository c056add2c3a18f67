// SPDX-License-Identifier: Apache-2.0
// The sysfs receiver as a component: its options, its life from start to stop, and its rounds.
//
// A round asks all cards at once, reads the PCI devices meanwhile, and then takes what the cards
// read. A card that is not done in time is told of and taken up when it is.
#include "base/clock.h"
#include "base/metrics/metrics.h"
#include "config/option.h"
#include "config/problem.h"
#include "pipeline/component/component.h"
#include "pipeline/component/feed.h"
#include "receivers/decode/format.h"
#include "receivers/decode/formats.h"
#include "receivers/records/options.h"
#include "receivers/sysfs/receiver.h"

#include <errno.h>
#include <stdio.h>

static const struct option options[] = {
    OPTION(struct sysfs_config, root, OPTION_TEXT, .default_value = "/sys",
           .help = "where the files are; where a container has the node's own elsewhere, that"),
    RECORD_OWN_NODE_OPTION(struct sysfs_config, records),
    OPTION(struct sysfs_config, interval, OPTION_DURATION, .default_value = "1s", .min = 0.1,
           .max = 3600, .help = "how often all is read"),
    OPTION(struct sysfs_config, read_timeout, OPTION_DURATION, .default_value = "2s", .min = 0.01,
           .max = 60, .help = "a card that has not been read by then is told of, and waited for"),
    OPTION(struct sysfs_config, rescan, OPTION_DURATION, .default_value = "30s", .min = 0.1,
           .max = 3600, .help = "how often new cards and devices are looked for"),
    OPTION(struct sysfs_config, repeat, OPTION_DURATION, .default_value = "10m", .min = 0,
           .max = 86400,
           .help = "how often all values are sent, changed or not, for those who came later; 0: "
                   "only at the start"),
    OPTION(struct sysfs_config, skip, OPTION_TEXT_LIST,
           .default_value = "[port_xmit_data, port_rcv_data, port_xmit_packets, port_rcv_packets, "
                            "unicast_xmit_packets, unicast_rcv_packets, multicast_xmit_packets, "
                            "multicast_rcv_packets, port_xmit_wait]",
           .help = "names of counters that are not read; at first those of traffic, which change "
                   "all the time"),
};

static const struct metric_family cards = {.name = "culprit_sysfs_receiver_cards",
                                           .help = "Cards whose counters are read.",
                                           .type = METRIC_GAUGE};
static const struct metric_family devices = {.name = "culprit_sysfs_receiver_pci_devices",
                                             .help =
                                                 "PCI devices whose counters of errors are read.",
                                             .type = METRIC_GAUGE};

enum { RECORD_MAX = 1 << 20 };
static const uint64_t SECOND_NS = 1000ull * 1000 * 1000;

static void sysfs_validate(const void *given, struct problem_list *problems) {
    const struct sysfs_config *config = given;
    if (config->root != NULL && config->root[0] != '/')
        problem_add(problems, "root", "not an absolute path, such as /sys or /host/sys");
    record_options_check(&config->records, problems);
}

static enum status sysfs_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    struct sysfs_receiver *receiver = instance;
    assert(!receiver->started);
    receiver->started = true;
    receiver->config = config;
    receiver->context = context;
    receiver->polling.interval_ns = (uint64_t)receiver->config->interval.ns;
    receiver->card_gauge = METRIC(&cards, "receiver", context->id);
    receiver->device_gauge = METRIC(&devices, "receiver", context->id);
    buffer_init(&receiver->record, RECORD_MAX);
    enum status status = record_own_node(&receiver->config->records, receiver->node, error);
    if (status != STATUS_OK)
        return status;
    return record_sink_open(&receiver->sink, &receiver->config->records,
                            (struct byte_size){RECORD_MAX}, context, error);
}

static void sysfs_stop(void *instance) {
    struct sysfs_receiver *receiver = instance;
    if (!receiver->started)
        return;
    receiver->started = false;
    sysfs_drop_all(receiver);
    record_sink_close(&receiver->sink);
    buffer_release(&receiver->record);
}

// -- rounds ---------------------------------------------------------------------------------------

static void scan_when_due(struct sysfs_receiver *receiver) {
    uint64_t now = clock_monotonic_ns();
    if (now < receiver->scan_ns && !receiver->scan_again)
        return;
    receiver->scan_ns = now + (uint64_t)receiver->config->rescan.ns;
    sysfs_scan(receiver);
}

static void take_card(struct sysfs_receiver *receiver, struct sysfs_card *card) {
    char reason[160];
    card->lost = card->gone;
    receiver->scan_again = receiver->scan_again || card->lost;
    if (card->read_count > 0) {
        polled_answered(&card->polled);
        sysfs_tell_card(receiver, card);
    } else {
        snprintf(reason, sizeof reason, "none of its files can be read: %s",
                 strerror(card->failure));
        polled_failed(&card->polled, reason);
    }
}

static void read_devices(struct sysfs_receiver *receiver) {
    uint64_t now = clock_unix_ns();
    for (uint32_t i = 0; i < receiver->device_count; i++) {
        if (sysfs_pci_read(receiver->devices[i]))
            sysfs_tell_pci(receiver, receiver->devices[i], now);
        receiver->scan_again = receiver->scan_again || receiver->devices[i]->gone;
    }
}

static void read_round(struct sysfs_receiver *receiver, const struct feed *feed) {
    char reason[96];
    uint64_t timeout_ns = (uint64_t)receiver->config->read_timeout.ns;
    for (uint32_t i = 0; i < receiver->card_count; i++)
        sysfs_card_ask(receiver->cards[i]);
    uint64_t until_ns = clock_monotonic_ns() + timeout_ns;
    read_devices(receiver);
    for (uint32_t i = 0; i < receiver->card_count; i++) {
        struct sysfs_card *card = receiver->cards[i];
        if (sysfs_card_wait(card, feed, until_ns)) {
            take_card(receiver, card);
        } else if (!feed_stopping(feed)) {
            snprintf(reason, sizeof reason, "reading its files takes longer than %g s",
                     (double)timeout_ns / (double)SECOND_NS);
            polled_failed(&card->polled, reason);
        }
    }
}

static enum status sysfs_run(void *instance, struct feed *feed, struct error *error) {
    struct sysfs_receiver *receiver = instance;
    bool first = true;
    (void)error;
    assert(receiver->started);
    record_sink_attach(&receiver->sink, feed);
    receiver->source = feed_source(feed, slice_of(receiver->context->id));
    receiver->position = feed_source_restored(receiver->source);
    if (feed_source_decoder(receiver->source) == NULL)
        record_options_format(receiver->source, format_decoder(FORMAT_TAGGED_LINES),
                              &receiver->sink.known);
    feed_steps(feed, true);
    while (polling_wait(&receiver->polling, feed)) {
        scan_when_due(receiver);
        read_round(receiver, feed);
        feed_source_caught_up(feed, receiver->source); // nothing more comes before the next round
        feed_flush(feed);
        if (first)
            feed_caught_up(feed);
        first = false;
    }
    return STATUS_OK;
}

static void sysfs_guarantee(const void *config, const char *id, bool store, struct buffer *out) {
    (void)config;
    (void)store;
    buffer_append_format(out,
                         " %s sends all values at its start: what counters rose by while culprit "
                         "was away is seen then, what came and went meanwhile is not.",
                         id);
}

const struct component_type receiver_sysfs = {
    .name = "sysfs",
    .summary =
        "Reads counters and states of network cards, and counters of PCI errors, of this "
        "node.",
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct sysfs_config),
    .instance_size = sizeof(struct sysfs_receiver),
    .validate = sysfs_validate,
    .start = sysfs_start,
    .stop = sysfs_stop,
    .receiver = {.run = sysfs_run, .guarantee = sysfs_guarantee},
};

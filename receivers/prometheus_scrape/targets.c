// SPDX-License-Identifier: Apache-2.0
// Who is asked: entries of `endpoints`, their names, clients and counters.
#include "base/http/client.h"
#include "base/http/url.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "base/text/cut.h"
#include "receivers/prometheus_scrape/receiver.h"

#include <stdio.h>

enum { RECEIVE_SIZE = 64 * 1024 };

static const struct metric_family scrape_seconds = {
    .name = "culprit_scrape_receiver_duration_seconds_total",
    .help = "Time from asking an endpoint to the end of its answer, or to giving up.",
    .type = METRIC_COUNTER,
    .divisor = 1000000000};
static const struct metric_family scrape_bytes = {
    .name = "culprit_scrape_receiver_bytes_total",
    .help = "Bytes of the answers that were read, without compression.",
    .type = METRIC_COUNTER};
static const struct metric_family scrape_series = {
    .name = "culprit_scrape_receiver_series_total",
    .help = "Series in answers: taken, nothing that is looked for, or refused.",
    .type = METRIC_COUNTER};

struct scrape_endpoint scrape_endpoint_of(const char *entry) {
    const char *scheme = strstr(entry, "://"), *equals = strchr(entry, '=');
    if (equals == NULL || scheme == NULL || equals > scheme)
        return (struct scrape_endpoint){.node = {NULL, 0}, .url = entry};
    return (struct scrape_endpoint){.node = {entry, (size_t)(equals - entry)}, .url = equals + 1};
}

static bool is_loopback(struct slice host) {
    return text_begins(host, SLICE("127.")) || slice_equal(host, SLICE("localhost")) ||
           slice_equal(host, SLICE("::1"));
}

char *scrape_host_of(const char *url) {
    struct slice host = http_url_origin(url), behind;
    if (text_find(host, SLICE("://"), &behind))
        host = behind;
    if (text_skip_char(&host, '['))
        host = text_until(host, ']');
    else
        host = text_until(host, ':');
    char own[RECORD_NODE_MAX + 1];
    record_host_name(own);
    if (is_loopback(host) && own[0] != '\0')
        host = slice_of(own);
    return memory_copy_text(host.data, host.size < RECORD_NODE_MAX ? host.size : RECORD_NODE_MAX);
}

// The origin; of several with the same one the second is called "http://host:9100#2".
static char *name_of(const struct scrape_receiver *receiver, uint32_t index, const char *url) {
    struct slice origin = http_url_origin(url);
    unsigned same = 1;
    for (uint32_t i = 0; i < index; i++) {
        const char *other = scrape_endpoint_of(receiver->config->endpoints.items[i]).url;
        same += slice_equal(http_url_origin(other), origin);
    }
    if (same == 1)
        return memory_copy_text(origin.data, origin.size);
    char number[16];
    int digits = snprintf(number, sizeof number, "#%u", same);
    char *name = memory_zero(1, origin.size + (size_t)digits + 1);
    memcpy(name, origin.data, origin.size);
    memcpy(name + origin.size, number, (size_t)digits);
    return name;
}

static struct http_client_options options_of(const struct scrape_config *config, const char *url) {
    struct http_client_options options = http_client_options_of(
        &config->client, config->timeout, (size_t)config->max_scrape_size.bytes);
    options.url = url;
    // Nodes are asked directly, whatever proxy the environment names for the rest of the world.
    if (options.proxy == NULL)
        options.proxy = "";
    options.refuses_long_replies = true;
    options.receive_size = RECEIVE_SIZE;
    options.accept_gzip = config->compression == COMPRESSION_GZIP;
    return options;
}

static char *site_of(const char *receiver, const char *name) {
    size_t size = strlen(receiver) + strlen(name) + 2;
    char *site = memory_zero(1, size);
    snprintf(site, size, "%s %s", receiver, name);
    return site;
}

static void warn_of_clear_text(const struct scrape_receiver *receiver,
                               const struct scrape_target *target, const char *url) {
    const struct auth_client_config *auth = &receiver->config->client.auth;
    bool has_token = secret_reveal(auth->bearer_token) != NULL || auth->bearer_token_file != NULL;
    if (has_token && http_url_is_exposed(url))
        log_write(LOG_WARN, (struct log_site){"C9304", target->site},
                  "%s: the bearer token goes over the network without encryption; use https://",
                  target->name);
}

static enum status open_target(struct scrape_receiver *receiver, uint32_t index,
                               struct error *error) {
    const struct scrape_config *config = receiver->config;
    const char *id = receiver->context->id;
    struct scrape_endpoint endpoint = scrape_endpoint_of(config->endpoints.items[index]);
    struct scrape_target *target = &receiver->targets[index];
    target->name = name_of(receiver, index, endpoint.url);
    target->site = site_of(receiver->context->site, target->name);
    target->host = scrape_host_of(endpoint.url);
    target->node = endpoint.node;
    if (target->node.size == 0 && config->records.node != NULL)
        target->node = slice_of(config->records.node);
    target->polling.interval_ns = (uint64_t)config->interval.ns;
    polled_begin(&target->polled, id, target->name, (struct log_site){"C9301", target->site},
                 (struct log_site){"C9302", target->site});
#define SERIES(word)                                                                               \
    METRIC(&scrape_series, "receiver", id, "target", target->name, "outcome", (word))
    target->nanoseconds = METRIC(&scrape_seconds, "receiver", id, "target", target->name);
    target->bytes = METRIC(&scrape_bytes, "receiver", id, "target", target->name);
    target->taken = SERIES("taken");
    target->other = SERIES("other");
    target->refused = SERIES("refused");
#undef SERIES
    warn_of_clear_text(receiver, target, endpoint.url);
    struct http_client_options options = options_of(config, endpoint.url);
    return http_client_open(&target->client, &options, error);
}

enum status scrape_targets_open(struct scrape_receiver *receiver, struct error *error) {
    uint32_t count = receiver->config->endpoints.count;
    assert(count > 0 && count <= SCRAPE_TARGETS_MAX && receiver->targets == NULL);
    receiver->targets = memory_zero(count, sizeof *receiver->targets);
    receiver->target_count = count;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
        status = open_target(receiver, i, error);
    return status;
}

void scrape_targets_close(struct scrape_receiver *receiver) {
    for (uint32_t i = 0; i < receiver->target_count; i++) {
        http_client_close(receiver->targets[i].client);
        memory_give(receiver->targets[i].name);
        memory_give(receiver->targets[i].site);
        memory_give(receiver->targets[i].host);
    }
    memory_give(receiver->targets);
    receiver->targets = NULL;
    receiver->target_count = 0;
}

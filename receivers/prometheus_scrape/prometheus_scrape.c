// SPDX-License-Identifier: Apache-2.0
// The scrape receiver as a component: its options, and its life from start to stop. Start reads
// files and opens no connection.
#include "base/http/late.h"
#include "base/http/url.h"
#include "base/memory.h"
#include "config/problem.h"
#include "receivers/prometheus_scrape/receiver.h"
#include "receivers/records/options.h"

static const char *const compression_choices[] = {"none", "gzip", NULL};

static const struct option options[] = {
    OPTION(struct scrape_config, endpoints, OPTION_TEXT_LIST, .required = true, .hidden = true,
           .help = "URLs that answer with metrics, http:// or https://; `NODE=URL` also says which "
                   "node they are of; no message shows what follows a host"),
    OPTION(struct scrape_config, interval, OPTION_DURATION, .default_value = "15s", .min = 0.1,
           .max = 86400, .help = "how often each endpoint is asked"),
    OPTION(struct scrape_config, timeout, OPTION_DURATION, .default_value = "10s", .min = 0.01,
           .max = 3600, .help = "how long an answer may take, to its end; at most the interval"),
    RECORD_NODE_OPTION(struct scrape_config, records,
                       "what the labels say, and without a label the host in the URL"),
    OPTION(struct scrape_config, node_label, OPTION_TEXT,
           .help = "label that names the node; otherwise `Hostname`, `hostname`, `node` and "
                   "`kubernetes_node` of GPUs and `node` of network cards do"),
    OPTION(struct scrape_config, compression, OPTION_CHOICE, .default_value = "none",
           .choices = compression_choices,
           .help = "whether answers may come compressed; on one machine that costs more than it "
                   "saves"),
    OPTION(struct scrape_config, max_scrape_size, OPTION_SIZE, .default_value = "16MiB",
           .min = 1024, .max = 256.0 * 1024 * 1024,
           .help = "a longer answer is refused as a whole, also when it is so long only without "
                   "compression"),
    OPTION_IN(struct scrape_config, client, headers, OPTION_TEXT_LIST, .hidden = true,
              .help = "headers of each request, `Name: value`"),
    OPTION_IN(struct scrape_config, client, proxy_url, OPTION_TEXT, .address = true,
              .help = "proxy; those of the environment are not used"),
    OPTION_IN(struct scrape_config, client, tls, OPTION_GROUP, .rows = tls_client_rows,
              .row_count = OPTION_COUNT(tls_client_rows),
              .help = "whom to trust, and what to show"),
    OPTION_IN(struct scrape_config, client, auth, OPTION_GROUP, .rows = auth_client_rows,
              .row_count = OPTION_COUNT(auth_client_rows), .help = "what to show the endpoints"),
    RECORD_JOB_OPTION(struct scrape_config, records),
    QUARANTINE_OPTIONS(struct scrape_config, records),
};

// -- rules between options ----------------------------------------------------------------------

static void check_endpoint(const struct text_list *endpoints, uint32_t index,
                           struct problem_list *problems) {
    struct scrape_endpoint endpoint = scrape_endpoint_of(endpoints->items[index]);
    const char *wrong = http_url_problem(endpoint.url);
    if (wrong != NULL)
        problem_add(problems, "endpoints", "URL %u of the list cannot be requested: %s",
                    (unsigned)index + 1, wrong);
    if (endpoint.node.data != NULL &&
        (endpoint.node.size == 0 || endpoint.node.size > RECORD_NODE_MAX))
        problem_add(problems, "endpoints",
                    "entry %u of the list: the name of a node has 1 to %d bytes",
                    (unsigned)index + 1, RECORD_NODE_MAX);
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(scrape_endpoint_of(endpoints->items[i]).url, endpoint.url) == 0) {
            problem_add(problems, "endpoints", "entries %u and %u of the list have the same URL",
                        (unsigned)i + 1, (unsigned)index + 1);
            return;
        }
}

static void scrape_validate(const void *given, struct problem_list *problems) {
    const struct scrape_config *config = given;
    const struct text_list *endpoints = &config->endpoints;
    if (endpoints->count == 0)
        problem_add(problems, "endpoints", "the list is empty; name at least one URL");
    if (endpoints->count > SCRAPE_TARGETS_MAX)
        problem_add(problems, "endpoints", "the list has %u entries; one receiver asks at most %d",
                    endpoints->count, SCRAPE_TARGETS_MAX);
    for (uint32_t i = 0; i < endpoints->count && i < SCRAPE_TARGETS_MAX; i++)
        check_endpoint(endpoints, i, problems);
    if (config->timeout.ns > config->interval.ns)
        problem_add(problems, "timeout", "it is longer than the interval");
    if (config->node_label != NULL && config->node_label[0] == '\0')
        problem_add(problems, "node_label", "the text is empty; leave the key out");
    record_options_check(&config->records, problems);
    http_client_check(&config->client, problems);
}

// -- life -----------------------------------------------------------------------------------------

static enum status scrape_start(void *instance, const void *config,
                                const struct component_context *context, struct error *error) {
    struct scrape_receiver *receiver = instance;
    receiver->magic = SCRAPE_MAGIC;
    receiver->config = config;
    receiver->context = context;
    scrape_split_init(&receiver->split);
    uint64_t bytes_max = 4 * receiver->config->max_scrape_size.bytes;
    enum status status = record_sink_open(&receiver->sink, &receiver->config->records,
                                          receiver->config->max_scrape_size, context, error);
    if (status == STATUS_OK)
        status = http_client_set_open(&receiver->set, receiver->config->endpoints.count,
                                      (size_t)bytes_max, error);
    if (status == STATUS_OK)
        status = scrape_targets_open(receiver, error);
    return status;
}

static void scrape_stop(void *instance) {
    struct scrape_receiver *receiver = instance;
    if (receiver->magic == 0)
        return; // it was not started
    assert(receiver->magic == SCRAPE_MAGIC);
    http_client_set_close(receiver->set);
    scrape_targets_close(receiver);
    while (receiver->body_count > 0)
        buffer_release(&receiver->bodies[--receiver->body_count]);
    scrape_split_release(&receiver->split);
    record_sink_close(&receiver->sink);
    receiver->magic = 0;
}

static void scrape_guarantee(const void *config, const char *id, bool store, struct buffer *out) {
    (void)config;
    buffer_append_format(out,
                         " %s asks for what is true now: samples%s are lost in a crash, and so are "
                         "those of the time while nobody asks.",
                         id, store ? " that no checkpoint holds" : "");
}

static const struct component_alias aliases[] = {
    {"prometheus", "it asks its endpoints for metrics of GPUs and network cards"},
};

const struct component_type receiver_prometheus_scrape = {
    .name = "prometheus_scrape",
    .summary = "Asks exporters of metrics at an interval: GPUs and network cards of nodes.",
    .aliases = aliases,
    .alias_count = sizeof aliases / sizeof aliases[0],
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct scrape_config),
    .instance_size = sizeof(struct scrape_receiver),
    .library = &http_client_library,
    .validate = scrape_validate,
    .start = scrape_start,
    .stop = scrape_stop,
    .receiver = {.run = scrape_run, .guarantee = scrape_guarantee},
};

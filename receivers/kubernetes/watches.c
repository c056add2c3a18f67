// SPDX-License-Identifier: Apache-2.0
// Which watches a configuration asks for, and what each of them owns.
#include "base/memory.h"
#include "receivers/decode/kubernetes/kubernetes.h"
#include "receivers/kubernetes/receiver.h"

#include <stdio.h>

enum { PAGE_BYTES_MAX = 64 << 20 };

const char *const kubernetes_resource_names[] = {"events", "pods", "nodes", NULL};

// -- counters -----------------------------------------------------------------------------------

static const struct metric_family objects_family = {
    .name = "culprit_kubernetes_receiver_objects_total",
    .help = "Objects that the API server told of, by resource and type of the watch event.",
    .type = METRIC_COUNTER};
static const struct metric_family repeated_family = {
    .name = "culprit_kubernetes_receiver_repeated_objects_total",
    .help = "Versions of objects that had been handed over before and were left out.",
    .type = METRIC_COUNTER};
static const struct metric_family lists_family = {
    .name = "culprit_kubernetes_receiver_lists_total",
    .help = "Lists that were begun, the first one included.",
    .type = METRIC_COUNTER};
static const struct metric_family gaps_family = {
    .name = "culprit_kubernetes_receiver_gaps_total",
    .help = "Times that the server had forgotten what came after the last version seen.",
    .type = METRIC_COUNTER};
static const struct metric_family watches_family = {.name =
                                                        "culprit_kubernetes_receiver_watches_total",
                                                    .help = "Watches that were begun.",
                                                    .type = METRIC_COUNTER};
static const struct metric_family too_long_family = {
    .name = "culprit_kubernetes_receiver_too_long_objects_total",
    .help = "Objects longer than max_object_size, which were left out.",
    .type = METRIC_COUNTER};
static const struct metric_family failures_family = {
    .name = "culprit_kubernetes_receiver_failed_requests_total",
    .help = "Requests that failed, by status.",
    .type = METRIC_COUNTER};
static const struct metric_family success_family = {
    .name = "culprit_kubernetes_receiver_last_success_seconds",
    .help = "Seconds since the API server last answered as it should; 0 while a watch is open.",
    .type = METRIC_GAUGE,
    .divisor = 1000000000};

static void find_counters(struct watch *watch) {
    static const char *const types[] = {"added", "modified", "deleted", "bookmark", "error"};
    static const char *const statuses[] = {"connection", "content", "400", "401", "403",
                                           "404",        "410",     "429", "500"};
    _Static_assert(sizeof types / sizeof *types == WATCH_EVENT_TYPE_COUNT, "each has a name");
    _Static_assert(sizeof statuses / sizeof *statuses == FAILURE_CLASS_COUNT, "each has a name");
    const char *id = watch->receiver->context->id;
    const char *resource = kubernetes_resource_names[watch->resource];
    struct kubernetes_counters *counters = &watch->counters;
    for (unsigned i = 0; i < WATCH_EVENT_TYPE_COUNT; i++)
        counters->objects[i] =
            METRIC(&objects_family, "receiver", id, "resource", resource, "type", types[i]);
    for (unsigned i = 0; i < FAILURE_CLASS_COUNT; i++)
        counters->failures[i] =
            METRIC(&failures_family, "receiver", id, "resource", resource, "status", statuses[i]);
    counters->repeated = METRIC(&repeated_family, "receiver", id, "resource", resource);
    counters->lists = METRIC(&lists_family, "receiver", id, "resource", resource);
    counters->gaps = METRIC(&gaps_family, "receiver", id, "resource", resource);
    counters->watches = METRIC(&watches_family, "receiver", id, "resource", resource);
    counters->too_long = METRIC(&too_long_family, "receiver", id, "resource", resource);
    counters->last_success_ns = METRIC(&success_family, "receiver", id, "resource", resource);
}

// -- making them --------------------------------------------------------------------------------

static const char *selector_of(const struct selector_config *selectors,
                               enum kubernetes_resource resource) {
    const char *const texts[] = {selectors->events, selectors->pods, selectors->nodes};
    assert(resource < RESOURCE_COUNT);
    return texts[resource] != NULL && texts[resource][0] != '\0' ? texts[resource] : NULL;
}

static void append_selector(struct buffer *url, const char *key, const char *text,
                            const char *more) {
    if (text == NULL && more[0] == '\0')
        return;
    buffer_append_format(url, "%c%s=", memchr(url->data, '?', url->size) == NULL ? '?' : '&', key);
    kubernetes_escape(url, more);
    if (text != NULL && more[0] != '\0')
        kubernetes_escape(url, ",");
    if (text != NULL)
        kubernetes_escape(url, text);
}

static char *url_of(const struct watch *watch) {
    const struct kubernetes_config *config = watch->receiver->config;
    char own_node[512] = "";
    struct buffer url;
    buffer_init(&url, KUBERNETES_URL_MAX);
    buffer_append_text(&url, watch->receiver->access.server);
    buffer_append_text(&url, "/api/v1/");
    if (watch->namespace != NULL) {
        buffer_append_text(&url, "namespaces/");
        kubernetes_escape(&url, watch->namespace);
        buffer_append_char(&url, '/');
    }
    buffer_append_text(&url, kubernetes_resource_names[watch->resource]);
    // What happens on one node cannot be selected of events.
    if (config->node != NULL && watch->resource != RESOURCE_EVENTS)
        snprintf(own_node, sizeof own_node, "%s=%.253s",
                 watch->resource == RESOURCE_PODS ? "spec.nodeName" : "metadata.name",
                 config->node);
    append_selector(&url, "fieldSelector", selector_of(&config->field_selectors, watch->resource),
                    own_node);
    append_selector(&url, "labelSelector", selector_of(&config->label_selectors, watch->resource),
                    "");
    assert(!url.failed); // each part is bounded by kubernetes_validate
    char *text = memory_copy_text(url.data, url.size);
    buffer_release(&url);
    return text;
}

static void make(struct kubernetes_receiver *receiver, enum kubernetes_resource resource,
                 const char *namespace) {
    struct watch *watch = &receiver->watches[receiver->watch_count++];
    *watch = (struct watch){.receiver = receiver,
                            .resource = resource,
                            .namespace = namespace,
                            .streamed_lists = !receiver->context->once,
                            .needs_list = true};
    watch->url = url_of(watch);
    watch_lines_init(&watch->lines, receiver->config->max_object_size.bytes);
    buffer_init(&watch->page, PAGE_BYTES_MAX);
    find_counters(watch);
}

static bool is_asked_for(const struct kubernetes_config *config, const char *name) {
    for (uint32_t i = 0; i < config->resources.count; i++)
        if (strcmp(config->resources.items[i], name) == 0)
            return true;
    return config->resources.count == 0;
}

void watches_make(struct kubernetes_receiver *receiver) {
    const struct kubernetes_config *config = receiver->config;
    size_t most = RESOURCE_COUNT * (size_t)(config->namespaces.count + 1);
    receiver->watches = memory_zero(most, sizeof *receiver->watches);
    for (unsigned i = 0; i < RESOURCE_COUNT; i++) {
        if (!is_asked_for(config, kubernetes_resource_names[i]))
            continue;
        // Nodes are in no namespace.
        if (i == RESOURCE_NODES || config->namespaces.count == 0)
            make(receiver, (enum kubernetes_resource)i, NULL);
        else
            for (uint32_t n = 0; n < config->namespaces.count; n++)
                make(receiver, (enum kubernetes_resource)i, config->namespaces.items[n]);
    }
    assert(receiver->watch_count <= most);
}

void watches_release(struct kubernetes_receiver *receiver) {
    for (uint32_t i = 0; i < receiver->watch_count; i++) {
        struct watch *watch = &receiver->watches[i];
        assert(watch->stream == NULL);
        memory_give(watch->url);
        watch_lines_release(&watch->lines);
        buffer_release(&watch->page);
    }
    memory_give(receiver->watches);
    receiver->watches = NULL;
    receiver->watch_count = 0;
}

// -- their sources ------------------------------------------------------------------------------

void watch_attach(struct watch *watch, struct feed *feed) {
    struct slice path = slice_of(watch->url);
    watch->source = feed_source(feed, path);
    if (feed_source_decoder(watch->source) == NULL) {
        struct decoder_input input = {.world_size = 0};
        feed_source_format(watch->source, &decoder_kubernetes, &input);
    }
    struct source_position position = feed_source_restored(watch->source);
    watch->number = position.number;
    memcpy(watch->version, position.detail, VERSION_MAX);
    watch->version[VERSION_MAX] = '\0';
    watch->needs_list = watch->version[0] == '\0';
    watch->needs_probe = !watch->needs_list;
    watch->listed = !watch->needs_list;
    watch->behind = true;
    known_objects_open(&watch->objects, feed, path, (uint32_t)watch->receiver->config->max_objects,
                       watch->resource != RESOURCE_EVENTS);
}

void watch_detach(struct watch *watch) {
    watch_cancel(watch);
    known_objects_close(&watch->objects);
    watch->source = NULL;
}

// SPDX-License-Identifier: Apache-2.0
// The Kubernetes receiver as a component: its options, and its life from start to stop.
#include "base/http/handle.h"
#include "base/http/late.h"
#include "config/problem.h"
#include "receivers/kubernetes/receiver.h"

#define SELECTOR_ROWS(what, example)                                                               \
    OPTION(struct selector_config, events, OPTION_TEXT, .help = what " of events" example),        \
        OPTION(struct selector_config, pods, OPTION_TEXT, .help = what " of pods"),                \
        OPTION(struct selector_config, nodes, OPTION_TEXT, .help = what " of nodes")

static const struct option field_rows[] = {
    SELECTOR_ROWS("field selector", ", such as `type=Warning`")};
static const struct option label_rows[] = {SELECTOR_ROWS("label selector", "")};

static const struct option options[] = {
    API_ACCESS_OPTIONS(struct kubernetes_config, access),
    OPTION(struct kubernetes_config, resources, OPTION_TEXT_LIST,
           .help = "what to read, of `events`, `pods` and `nodes`; default: all of them"),
    OPTION(struct kubernetes_config, namespaces, OPTION_TEXT_LIST,
           .help = "namespaces whose events and pods are read, at most 64; default: all, which "
                   "needs a ClusterRole"),
    OPTION(struct kubernetes_config, node, OPTION_TEXT,
           .help = "read only the pods on this node and the node itself, such as "
                   "`${env:NODE_NAME}`; events cannot be selected by node"),
    OPTION(struct kubernetes_config, field_selectors, OPTION_GROUP, .rows = field_rows,
           .row_count = OPTION_COUNT(field_rows),
           .help = "only objects with these fields, as the API server selects them"),
    OPTION(struct kubernetes_config, label_selectors, OPTION_GROUP, .rows = label_rows,
           .row_count = OPTION_COUNT(label_rows), .help = "only objects with these labels"),
    OPTION(struct kubernetes_config, watch_timeout, OPTION_DURATION, .default_value = "5m",
           .min = 1, .max = 3600,
           .help = "a watch is asked for so long, up to twice as long by chance, and then begun "
                   "again"),
    OPTION(struct kubernetes_config, page_size, OPTION_INT, .default_value = "500", .min = 1,
           .max = 10000,
           .help = "objects in a page of a list, where the server cannot stream lists"),
    OPTION(struct kubernetes_config, max_objects, OPTION_INT, .default_value = "20000", .min = 100,
           .max = 1000000,
           .help = "how many objects of a resource are remembered, to hand over each version once"),
    OPTION(struct kubernetes_config, max_object_size, OPTION_SIZE, .default_value = "8MiB",
           .min = 65536, .max = 64.0 * 1024 * 1024, .help = "a longer object is left out"),
};

// -- rules between options ----------------------------------------------------------------------

static void check_resources(const struct kubernetes_config *config, struct problem_list *problems) {
    for (uint32_t i = 0; i < config->resources.count; i++) {
        bool known = false;
        for (unsigned at = 0; kubernetes_resource_names[at] != NULL; at++)
            known |= strcmp(config->resources.items[i], kubernetes_resource_names[at]) == 0;
        if (!known)
            problem_add(problems, "resources", "\"%s\" is not one of events, pods and nodes",
                        config->resources.items[i]);
    }
}

static void check_selectors(const struct selector_config *selectors, const char *key,
                            struct problem_list *problems) {
    enum { SELECTOR_MAX = 300 };
    const char *const texts[] = {selectors->events, selectors->pods, selectors->nodes};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i] != NULL && strlen(texts[i]) > SELECTOR_MAX)
            problem_add(problems, key, "a selector is longer than %d bytes", SELECTOR_MAX);
}

static void kubernetes_validate(const void *given, struct problem_list *problems) {
    const struct kubernetes_config *config = given;
    check_resources(config, problems);
    if (config->namespaces.count > KUBERNETES_NAMESPACES_MAX)
        problem_add(problems, "namespaces", "more than %d are named; leave the key out to read all",
                    KUBERNETES_NAMESPACES_MAX);
    for (uint32_t i = 0; i < config->namespaces.count; i++)
        if (!kubernetes_is_label(slice_of(config->namespaces.items[i])))
            problem_add(problems, "namespaces", "\"%s\" is not a valid name of a namespace",
                        config->namespaces.items[i]);
    if (config->node != NULL && !kubernetes_is_subdomain(slice_of(config->node)))
        problem_add(problems, "node", "\"%s\" is not a valid name of a node", config->node);
    api_access_check(&config->access, problems);
    check_selectors(&config->field_selectors, "field_selectors", problems);
    check_selectors(&config->label_selectors, "label_selectors", problems);
}

// -- start and stop -----------------------------------------------------------------------------

static enum status kubernetes_start(void *instance, const void *given,
                                    const struct component_context *context, struct error *error) {
    struct kubernetes_receiver *receiver = instance;
    const struct kubernetes_config *config = given;
    assert(!receiver->started);
    receiver->config = config;
    receiver->context = context;
    receiver->started = true;
    arena_init(&receiver->scratch, 64 * 1024);
    enum status status = api_access_open(&receiver->access, &config->access, error);
    if (status == STATUS_OK)
        status = http_tls_check(&receiver->access.tls, error);
    if (status == STATUS_OK)
        watches_make(receiver);
    return status;
}

static void kubernetes_stop(void *instance) {
    struct kubernetes_receiver *receiver = instance;
    if (!receiver->started)
        return;
    receiver->started = false;
    assert(receiver->streams == NULL);
    watches_release(receiver);
    api_access_release(&receiver->access);
    arena_release(&receiver->scratch);
}

static void kubernetes_guarantee(const void *config, const char *id, bool store,
                                 struct buffer *out) {
    (void)config;
    buffer_append_format(out,
                         store ? " %s goes on from the version where it was, and hands over no "
                                 "version of an object twice; what came and went while the API "
                                 "server had forgotten that version is lost and counted."
                               : " After a crash or restart %s lists again, so objects that are "
                                 "there come again, and what came and went meanwhile is lost.",
                         id);
}

static const struct component_alias aliases[] = {
    {"k8s_events", "it watches Events, Pods and Nodes"},
    {"k8sobjects", "it watches Events, Pods and Nodes"},
};

const struct component_type receiver_kubernetes = {
    .name = "kubernetes",
    .summary = "Reads events, pods and nodes from a Kubernetes API server, by list and watch.",
    .aliases = aliases,
    .alias_count = sizeof aliases / sizeof aliases[0],
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_ALPHA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct kubernetes_config),
    .instance_size = sizeof(struct kubernetes_receiver),
    .library = &http_client_library,
    .validate = kubernetes_validate,
    .start = kubernetes_start,
    .stop = kubernetes_stop,
    .receiver = {.each_pipeline = true,
                 .run = kubernetes_run,
                 .guarantee = kubernetes_guarantee,
                 .list = kubernetes_list,
                 .read = kubernetes_read},
};

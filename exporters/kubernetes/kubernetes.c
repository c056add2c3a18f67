// SPDX-License-Identifier: Apache-2.0
// Writes findings as Events on the pods and nodes that they name, and, when it is turned on, as a
// condition of nodes. It suggests: no taint, no deletion, nothing of a spec.
//
// encode writes a line a verdict (encode.c); send keeps the newest line of each with what was
// written (table.c), and writes what is due (write.c, condition.c). Events are those of
// events.k8s.io/v1: the API in which kubectl and the scheduler count repetitions in a series, and
// for which an account can have a right of its own beside that to write core/v1 objects.
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
#include "base/clock.h"
#include "base/http/late.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "config/problem.h"
#include "exporters/kubernetes/exporter.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

enum { REPLY_MAX = 256 << 10, URL_MAX = 8192, TEXT_MAX = 4096 };

static const char *const SEVERITIES[] = {"info", "warning", "error", "critical", NULL};

static const struct metric_family written = {
    .name = "culprit_kubernetes_exporter_written_total",
    .help = "What the API server took: Events, counts in their series, conditions of nodes.",
    .type = METRIC_COUNTER};
static const struct metric_family refused = {
    .name = "culprit_kubernetes_exporter_refused_total",
    .help = "Events and conditions that the API server will not take, which were dropped.",
    .type = METRIC_COUNTER};
static const struct metric_family unplaced = {
    .name = "culprit_kubernetes_exporter_unplaced_verdicts_total",
    .help = "Verdicts that name no pod or node, and so have no Event.",
    .type = METRIC_COUNTER};
static const struct metric_family forgotten = {
    .name = "culprit_kubernetes_exporter_forgotten_verdicts_total",
    .help =
        "Open verdicts whose Events are not kept up any more, since there were more than "
        "max_verdicts.",
    .type = METRIC_COUNTER};

static const struct option condition_rows[] = {
    OPTION(struct condition_config, enabled, OPTION_BOOL, .default_value = "false",
           .help = "set a condition of nodes that are blamed, themselves or by their hardware"),
    OPTION(struct condition_config, type, OPTION_TEXT, .default_value = "CulpritNodeProblem",
           .help = "type of the condition; no other program may use it"),
    OPTION(struct condition_config, min_severity, OPTION_CHOICE, .default_value = "error",
           .choices = SEVERITIES, .help = "verdicts below this severity set none"),
    OPTION(struct condition_config, heartbeat_interval, OPTION_DURATION, .default_value = "5m",
           .min = 1, .max = 86400, .help = "a condition that is True is written again after this"),
    OPTION(struct condition_config, resolve_after, OPTION_DURATION, .default_value = "4h", .min = 0,
           .max = 30 * 86400.0,
           .help = "it is set to False when nothing new was found for so long; 0s: only when the "
                   "verdict is resolved"),
};

static const struct option OPTIONS[] = {
    API_ACCESS_OPTIONS(struct kube_config, access),
    OPTION(struct kube_config, namespace, OPTION_TEXT,
           .help = "namespace of pods for which none is known; default: that of the account"),
    OPTION(struct kube_config, instance, OPTION_TEXT,
           .help = "`reportingInstance` of Events; default: the host's name"),
    OPTION(struct kube_config, look_up_pods, OPTION_BOOL, .default_value = "true",
           .help = "ask for the uid of a pod that no input told, without which `kubectl describe "
                   "pod` does not show the Event; needs the right to get pods"),
    OPTION(struct kube_config, update_interval, OPTION_DURATION, .default_value = "5m", .min = 0,
           .max = 86400,
           .help = "changes of a verdict are written on an object at most once in this time"),
    OPTION(struct kube_config, max_objects, OPTION_INT, .default_value = "20", .min = 1,
           .max = 1000,
           .help = "on how many pods and nodes a verdict is written: culprits, suspects, victims"),
    OPTION(struct kube_config, max_verdicts, OPTION_INT, .default_value = "200", .min = 1,
           .max = 1000, .help = "how many verdicts are remembered; the oldest are forgotten"),
    OPTION(struct kube_config, node_condition, OPTION_GROUP, .rows = condition_rows,
           .row_count = OPTION_COUNT(condition_rows), .help = "a condition of nodes"),
    ROUTE_MATCH_OPTION(struct kube_config, route, route_root_rows),
    SENDING_OPTIONS(struct kube_config, sending, "10s"),
};

// -- rules between options ------------------------------------------------------------------------

// A letter, then letters, digits and what names of conditions may hold, as in a qualified name.
static bool is_condition_type(const char *type) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const char more[] = "0123456789-._";
    size_t size = strlen(type);
    if (size == 0 || size > 63 || strchr(letters, type[0]) == NULL ||
        strchr("-._", type[size - 1]) != NULL)
        return false;
    for (size_t i = 0; i < size; i++)
        if (strchr(letters, type[i]) == NULL && strchr(more, type[i]) == NULL)
            return false;
    return true;
}

static void kube_validate(const void *given, struct problem_list *problems) {
    static const char *const taken[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure",
                                        "NetworkUnavailable"};
    const struct kube_config *config = given;
    const char *type = config->node_condition.type;
    api_access_check(&config->access, problems);
    if (config->namespace != NULL && !kubernetes_is_label(slice_of(config->namespace)))
        problem_add(problems, "namespace", "\"%.80s\" is not a valid name of a namespace",
                    config->namespace);
    if (config->instance != NULL &&
        (config->instance[0] == '\0' || strlen(config->instance) > KUBE_INSTANCE_MAX))
        problem_add(problems, "instance", "it has 1 to %d bytes", KUBE_INSTANCE_MAX);
    if (!is_condition_type(type))
        problem_add(problems, "node_condition.type",
                    "\"%.80s\" is not a type of a condition, such as CulpritNodeProblem", type);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(type, taken[i]) == 0)
            problem_add(problems, "node_condition.type", "%s is Kubernetes' own", type);
}

// -- start and stop -------------------------------------------------------------------------------

static void find_counters(struct kube_exporter *self) {
    const char *id = self->context->id;
    self->counters =
        (struct kube_counters){.events = METRIC(&written, "exporter", id, "what", "event"),
                               .series = METRIC(&written, "exporter", id, "what", "series"),
                               .conditions = METRIC(&written, "exporter", id, "what", "condition"),
                               .refused = {METRIC(&refused, "exporter", id, "what", "event"),
                                           METRIC(&refused, "exporter", id, "what", "condition")},
                               .unplaced = METRIC(&unplaced, "exporter", id),
                               .forgotten = METRIC(&forgotten, "exporter", id)};
}

static void set_instance(struct kube_exporter *self) {
    char host[KUBE_INSTANCE_MAX + 1] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof host, "culprit");
    snprintf(self->instance, sizeof self->instance, "%s",
             self->config->instance != NULL ? self->config->instance : host);
}

static enum status open_client(struct kube_exporter *self, struct error *error) {
    struct http_client_options options = {
        .tls = self->access.tls,
        .bearer_token = self->access.has_token_file ? NULL : self->access.token,
        .bearer_token_file = self->access.has_token_file ? self->access.token_file.path : NULL,
        .timeout_ns = (uint64_t)self->config->sending.timeout.ns,
        .reply_max = REPLY_MAX};
    return http_client_open(&self->client, &options, error);
}

static enum status kube_start(void *instance, const void *given,
                              const struct component_context *context, struct error *error) {
    struct kube_exporter *self = instance;
    assert(!self->started);
    self->config = given;
    self->context = context;
    self->started = true;
    self->due_ns = UINT64_MAX;
    buffer_init(&self->url, URL_MAX);
    buffer_init(&self->body, KUBE_BODY_MAX);
    buffer_init(&self->text, TEXT_MAX);
    kube_table_init(&self->table, (uint32_t)self->config->max_verdicts);
    self->uids = memory_zero(KUBE_UIDS_MAX, sizeof *self->uids);
    find_counters(self);
    set_instance(self);
    enum status status = api_access_open(&self->access, &self->config->access, error);
    if (status == STATUS_OK)
        status = open_client(self, error);
    self->namespace =
        self->config->namespace != NULL ? self->config->namespace : self->access.namespace;
    return status;
}

static void kube_stop(void *instance) {
    struct kube_exporter *self = instance;
    if (!self->started)
        return;
    self->started = false;
    http_client_close(self->client);
    api_access_release(&self->access);
    kube_table_release(&self->table);
    memory_give(self->nodes);
    memory_give(self->uids);
    buffer_release(&self->url);
    buffer_release(&self->body);
    buffer_release(&self->text);
}

// -- encode and send ------------------------------------------------------------------------------

static void encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct kube_exporter *self = instance;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        uint32_t objects = kube_encode(self->config, self->namespace, verdict, out);
        metric_add(self->counters.unplaced, objects == 0 && verdict->state == VERDICT_OPEN);
    }
}

static void note_forgotten(struct kube_exporter *self) {
    if (self->table.forgotten == 0)
        return;
    metric_add(self->counters.forgotten, self->table.forgotten);
    log_write(LOG_WARN, (struct log_site){"C4304", self->context->site},
              "more than %u verdicts are open: %llu of the oldest are forgotten, and that they are "
              "over will not be written",
              self->table.max, (unsigned long long)self->table.forgotten);
    self->table.forgotten = 0;
}

static bool send_lines(struct kube_exporter *self, const struct request *request,
                       struct send_outcome *outcome, struct error *error) {
    struct slice rest = request->bytes;
    while (rest.size > 0) {
        struct slice line = text_take_line(&rest);
        struct kube_verdict *verdict = kube_table_take(&self->table, line, clock_unix_ns());
        if (verdict != NULL && verdict->line != NULL && !kube_write_verdict(self, verdict, error))
            return false;
        outcome->taken = request->bytes.size - rest.size;
    }
    return true;
}

static enum status kube_send(void *instance, const struct request *request,
                             struct send_outcome *outcome, struct error *error) {
    struct kube_exporter *self = instance;
    self->due_ns = UINT64_MAX;
    self->last = request->last;
    self->until_ns = clock_monotonic_ns() + (uint64_t)self->config->sending.timeout.ns;
    bool fine = send_lines(self, request, outcome, error);
    note_forgotten(self);
    fine = fine && kube_write_due(self, error);
    fine = fine && kube_write_conditions(self, error);
    if (fine)
        return STATUS_OK;
    self->due_ns = clock_monotonic_ns();
    outcome->retry_after_ns = http_client_reply(self->client)->retry_after_ns;
    return STATUS_IO;
}

static struct send_pace kube_pace(const void *instance) {
    const struct kube_exporter *self = instance;
    return (struct send_pace){.not_before_ns = 0, .again_ns = self->due_ns};
}

// -- over a restart -------------------------------------------------------------------------------

// Nodes first: a condition that nobody sets back stays.
static void kube_delivered(void *instance, struct buffer *out) {
    const struct kube_exporter *self = instance;
    kube_nodes_keep(self, out);
    kube_table_keep(&self->table, out);
}

static enum status kube_resume(void *instance, struct slice delivered, struct error *error) {
    struct kube_exporter *self = instance;
    (void)error;
    while (delivered.size > 0) {
        struct slice text = text_take_line(&delivered);
        json_t *line = json_loadb(text.data, text.size, 0, NULL);
        if (!kube_nodes_restore(self, line))
            kube_table_restore(&self->table, line);
        json_decref(line);
        self->due_ns = 0;
    }
    return STATUS_OK;
}

static const struct sending_config *kube_sending(const void *config) {
    return &((const struct kube_config *)config)->sending;
}

static const struct route_config *kube_route(const void *config) {
    return &((const struct kube_config *)config)->route;
}

const struct component_type exporter_kubernetes = {
    .name = "kubernetes",
    .summary = "Writes findings as Events on pods and nodes, and as a condition of nodes.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct kube_config),
    .instance_size = sizeof(struct kube_exporter),
    .library = &http_client_library,
    .needs = FACT_VERDICTS,
    .validate = kube_validate,
    .start = kube_start,
    .stop = kube_stop,
    .exporter = {.encode = encode,
                 .send = kube_send,
                 .lines = true,
                 .pace = kube_pace,
                 .delivered = kube_delivered,
                 .resume = kube_resume,
                 .sending = kube_sending,
                 .route = kube_route},
};

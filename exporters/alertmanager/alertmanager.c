// SPDX-License-Identifier: Apache-2.0
// Posts the root of each incident to a Prometheus Alertmanager as one alert, repeats it while it
// fires, and resolves it when it is over.
//
// encode writes a line a verdict (alert.h); send keeps the alerts and posts those that are new,
// changed or due. Alerts that the server has refused are posted one by one, so that only a bad one
// is lost. API: https://github.com/prometheus/alertmanager, api/v2/openapi.yaml.
#include "base/clock.h"
#include "base/http/client.h"
#include "base/http/late.h"
#include "base/http/url.h"
#include "base/log.h"
#include "base/metrics/metrics.h"
#include "base/text/cut.h"
#include "config/problem.h"
#include "exporters/alertmanager/alert.h"

#include <assert.h>
#include <stdio.h>

enum { ALERTS_A_POST = 64, BODY_MAX = 32 << 20, REPLY_MAX = 4096, URL_MAX = 4096 };

static const struct metric_family unrepeated = {
    .name = "culprit_alertmanager_exporter_forgotten_alerts_total",
    .help = "Firing alerts that are not repeated any more, since there were more than max_alerts.",
    .type = METRIC_COUNTER};

struct alertmanager {
    const struct alert_config *config;
    const struct component_context *context;
    struct http_client *client;
    char url[URL_MAX];
    struct alert_table table;
    struct buffer text; // of the verdict that is encoded
    struct buffer body;
    struct metric *unrepeated;
};

static const struct option OPTIONS[] = {
    HTTP_CLIENT_OPTIONS(struct alert_config, client),
    ROUTE_MATCH_OPTION(struct alert_config, route, route_root_rows),
    OPTION(struct alert_config, labels, OPTION_TEXT_LIST,
           .help = "further labels of each alert, NAME=VALUE"),
    OPTION(struct alert_config, link, OPTION_TEXT,
           .help = "URL that an alert links to; {id} stands for the verdict's id"),
    OPTION(struct alert_config, resend_interval, OPTION_DURATION, .default_value = "1m", .min = 1,
           .max = 3600,
           .help = "an alert that fires is posted again after this; Alertmanager ends it when it "
                   "misses four"),
    OPTION(struct alert_config, resolve_after, OPTION_DURATION, .default_value = "4h", .min = 0,
           .max = 30 * 86400.0,
           .help = "an alert is resolved when nothing new was found for so long; 0s: only when "
                   "its verdict is"),
    OPTION(struct alert_config, max_alerts, OPTION_INT, .default_value = "500", .min = 1,
           .max = 10000, .help = "how many alerts are repeated; the oldest are forgotten"),
    SENDING_OPTIONS(struct alert_config, sending, "10s"),
};

static void am_validate(const void *given, struct problem_list *problems) {
    const struct alert_config *config = given;
    http_client_check(&config->client, problems);
    for (uint32_t i = 0; i < config->labels.count; i++) {
        const char *why = alert_label_problem(config->labels.items[i]);
        if (why != NULL)
            problem_add(problems, "labels", "\"%.60s\" is not a label: %s", config->labels.items[i],
                        why);
    }
}

static enum status am_start(void *instance, const void *given,
                            const struct component_context *context, struct error *error) {
    struct alertmanager *self = instance;
    self->config = given;
    self->context = context;
    buffer_init(&self->text, ALERT_LINE_MAX);
    buffer_init(&self->body, BODY_MAX);
    alert_table_begin(&self->table, self->config);
    self->unrepeated = METRIC(&unrepeated, "exporter", context->id);
    if (!http_url_of_api(self->url, sizeof self->url, self->config->client.endpoint,
                         "/api/v2/alerts"))
        return error_set(error, STATUS_CONFIG, "the endpoint is too long");
    struct http_client_options options =
        http_client_options_of(&self->config->client, self->config->sending.timeout, REPLY_MAX);
    options.url = self->url;
    return http_client_open(&self->client, &options, error);
}

static void am_stop(void *instance) {
    struct alertmanager *self = instance;
    http_client_close(self->client);
    buffer_release(&self->text);
    buffer_release(&self->body);
    alert_table_release(&self->table);
}

static void am_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct alertmanager *self = instance;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        alert_encode(self->config, &batch->verdicts.items[i], &self->text, out);
    assert(!self->text.failed);
}

// -- sending --------------------------------------------------------------------------------------

// Posts these alerts, and marks them when Alertmanager has taken them.
static enum http_class post(struct alertmanager *self, struct alert *const *alerts, uint32_t count,
                            struct error *error) {
    static const char *const JSON = "Content-Type: application/json";
    assert(count > 0 && count <= ALERTS_A_POST);
    buffer_reset(&self->body);
    uint64_t unix_ns = clock_unix_ns();
    for (uint32_t i = 0; i < count; i++) {
        buffer_append_char(&self->body, i == 0 ? '[' : ',');
        alert_append(&self->table, alerts[i], self->config->link, unix_ns, &self->body);
    }
    buffer_append_char(&self->body, ']');
    assert(!self->body.failed);
    struct http_call call = {
        .method = "POST", .headers = &JSON, .header_count = 1, .body = buffer_slice(&self->body)};
    enum http_class class = http_client_send(self->client, &call, error);
    for (uint32_t i = 0; class == HTTP_OK && i < count; i++)
        alert_was_posted(alerts[i], clock_monotonic_ns());
    return class;
}

static void note_forgotten(struct alertmanager *self) {
    if (self->table.left_out == 0)
        return;
    metric_add(self->unrepeated, self->table.left_out);
    log_write(LOG_WARN, (struct log_site){"C3801", self->context->site},
              "more than %u alerts fire at a time: %llu of the oldest are not repeated any more",
              self->table.max, (unsigned long long)self->table.left_out);
    self->table.left_out = 0;
}

static uint32_t list_due(struct alertmanager *self, struct alert *due[ALERTS_A_POST]) {
    uint64_t now = clock_monotonic_ns();
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->table.count && count < ALERTS_A_POST; i++) {
        struct alert *alert = &self->table.items[i];
        if (alert->posted_ns == 0 || now >= alert->posted_ns + self->table.resend_ns)
            due[count++] = alert;
    }
    return count;
}

// A refusal says nothing of which one is wrong. Those that are refused by themselves were taken
// before: Alertmanager ends them.
static enum http_class repeat_singly(struct alertmanager *self, struct alert *const *due,
                                     uint32_t count, struct error *error) {
    enum http_class class = HTTP_OK;
    // From the last, so that those before it stay where they are.
    while (count > 0 && (class == HTTP_OK || class == HTTP_REFUSED)) {
        class = post(self, &due[--count], 1, error);
        if (class != HTTP_REFUSED)
            continue;
        log_write(LOG_ERROR, (struct log_site){"C3802", self->context->site},
                  "the alert %s is refused and not repeated any more: %s", due[count]->id,
                  error->message);
        alert_table_forget(&self->table, due[count]);
    }
    return class == HTTP_REFUSED ? HTTP_OK : class;
}

// Posts all that is new or due.
static enum http_class repeat_due(struct alertmanager *self, struct error *error) {
    alert_table_age(&self->table, clock_unix_ns());
    struct alert *due[ALERTS_A_POST];
    enum http_class class = HTTP_OK;
    for (uint32_t count; class == HTTP_OK && (count = list_due(self, due)) > 0;) {
        class = post(self, due, count, error);
        if (class == HTTP_REFUSED)
            class = repeat_singly(self, due, count, error);
    }
    return class;
}

// -- requests -------------------------------------------------------------------------------------

// The first lines of what is left of a request, as many as one post takes.
static struct slice first_lines(const struct alertmanager *self, struct slice rest) {
    uint32_t most = self->table.max < ALERTS_A_POST ? self->table.max : ALERTS_A_POST;
    struct slice behind = rest;
    for (uint32_t i = 0; i < most && behind.size > 0; i++)
        (void)text_take_line(&behind);
    return (struct slice){rest.data, rest.size - behind.size};
}

// All lines in one post. When that is refused they are still to be posted.
static enum http_class send_together(struct alertmanager *self, struct slice lines,
                                     struct error *error) {
    struct alert *alerts[ALERTS_A_POST];
    uint32_t count = 0;
    while (lines.size > 0)
        (void)alert_table_take(&self->table, text_take_line(&lines), clock_unix_ns());
    // A verdict may have several lines, and pointers die as the table changes.
    for (uint32_t i = 0; i < self->table.count && count < ALERTS_A_POST; i++)
        if (self->table.items[i].posted_ns == 0)
            alerts[count++] = &self->table.items[i];
    return count == 0 ? HTTP_OK : post(self, alerts, count, error);
}

static enum http_class send_line(struct alertmanager *self, struct slice line,
                                 struct error *error) {
    struct alert *alert = alert_table_take(&self->table, line, clock_unix_ns());
    enum http_class class = alert == NULL ? HTTP_OK : post(self, &alert, 1, error);
    if (class == HTTP_REFUSED)
        alert_table_forget(&self->table, alert);
    return class;
}

// Line by line, up to the first that is not taken.
static enum http_class send_singly(struct alertmanager *self, struct slice lines,
                                   struct send_outcome *outcome, struct error *error) {
    enum http_class class = HTTP_OK;
    while (class == HTTP_OK && lines.size > 0) {
        struct slice line = text_take_line(&lines);
        class = send_line(self, line, error);
        outcome->taken += class == HTTP_OK ? line.size + 1 : 0;
        outcome->refused = class == HTTP_REFUSED ? line.size + 1 : 0;
    }
    return class;
}

static enum http_class send_lines(struct alertmanager *self, const struct request *request,
                                  struct send_outcome *outcome, struct error *error) {
    enum http_class class = HTTP_OK;
    while (class == HTTP_OK && outcome->taken < request->bytes.size) {
        struct slice lines = first_lines(self, text_from(request->bytes, outcome->taken));
        class = send_together(self, lines, error);
        if (class == HTTP_OK)
            outcome->taken += lines.size;
        else if (class == HTTP_REFUSED)
            class = send_singly(self, lines, outcome, error);
        note_forgotten(self);
    }
    return class;
}

static enum status am_send(void *instance, const struct request *request,
                           struct send_outcome *outcome, struct error *error) {
    struct alertmanager *self = instance;
    enum http_class class = send_lines(self, request, outcome, error);
    if (class == HTTP_OK)
        class = repeat_due(self, error);
    if (class == HTTP_OK)
        return STATUS_OK;
    outcome->retry_after_ns = http_client_reply(self->client)->retry_after_ns;
    return STATUS_IO;
}

static struct send_pace am_pace(const void *instance) {
    const struct alertmanager *self = instance;
    return (struct send_pace){.not_before_ns = 0, .again_ns = alert_table_due(&self->table)};
}

static void am_delivered(void *instance, struct buffer *out) {
    alert_table_keep(&((const struct alertmanager *)instance)->table, out);
}

static enum status am_resume(void *instance, struct slice delivered, struct error *error) {
    (void)error;
    alert_table_restore(&((struct alertmanager *)instance)->table, delivered);
    return STATUS_OK;
}

static const struct sending_config *am_sending(const void *config) {
    return &((const struct alert_config *)config)->sending;
}

static const struct route_config *am_route(const void *config) {
    return &((const struct alert_config *)config)->route;
}

const struct component_type exporter_alertmanager = {
    .name = "alertmanager",
    .summary = "Posts the root of each incident to a Prometheus Alertmanager as one alert.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct alert_config),
    .instance_size = sizeof(struct alertmanager),
    .library = &http_client_library,
    .needs = FACT_VERDICTS,
    .validate = am_validate,
    .start = am_start,
    .stop = am_stop,
    .exporter = {.encode = am_encode,
                 .send = am_send,
                 .lines = true,
                 .pace = am_pace,
                 .delivered = am_delivered,
                 .resume = am_resume,
                 .sending = am_sending,
                 .route = am_route},
};

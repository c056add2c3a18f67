// SPDX-License-Identifier: Apache-2.0
// Posts each new or changed verdict to a URL: one request a verdict, its body made by a template,
// of the three here or of a file (template.h). encode writes one line of JSON a verdict, send posts
// line by line. A verdict that the server refuses (4xx) is dropped and logged; all other failures
// are tried again.
#include "base/hash/digest.h"
#include "base/http/client.h"
#include "base/http/late.h"
#include "base/text/json_write.h"
#include "base/text/redact.h"
#include "base/text/rfc3339.h"
#include "config/client_options.h"
#include "config/problem.h"
#include "exporters/webhook/template.h"
#include "pipeline/component/component.h"

#include <assert.h>
#include <string.h>

enum { LINE_MAX_BYTES = 32 << 20, REPLY_MAX = 4096 };

struct webhook_config {
    struct http_client_config client;
    int template;
    const char *template_file;
    struct text_list template_values; // may be secrets
    struct route_config route;
    struct sending_config sending;
};

struct webhook {
    const struct webhook_config *config;
    struct http_client *client;
    const struct template *template;
    struct body_template own; // of template_file
    struct buffer text;       // of the verdict under way
    struct buffer body;       // with the values that are given
};

// -- templates ------------------------------------------------------------------------------------

struct template {
    const char *content_type;
    // Appends one line of JSON. `text` is empty, for what the line is made of.
    void (*encode)(const struct verdict *verdict, struct buffer *text, struct buffer *out);
};

static void encode_verdict(const struct verdict *verdict, struct buffer *text, struct buffer *out) {
    (void)text;
    verdict_encode(verdict, out);
}

// CloudEvents 1.0, structured mode. The id is that of the verdict and of what is said of it, so
// that what is sent again has the same one.
static void encode_cloud_event(const struct verdict *verdict, struct buffer *text,
                               struct buffer *out) {
    verdict_encode(verdict, text);
    struct slice line = {text->data, text->size - 1}; // without its newline
    char digest[DIGEST_ID_SIZE], time[RFC3339_TEXT_MAX];
    digest_id(&line, 1, digest);
    rfc3339_format(verdict->end_ns, time);
    buffer_append_format(out,
                         "{\"specversion\":\"1.0\",\"id\":\"%s/%s\",\"source\":\"/culprit\","
                         "\"type\":\"culprit.verdict.v1\",\"subject\":\"%s\",\"time\":\"%s\","
                         "\"datacontenttype\":\"application/json\",\"data\":",
                         verdict->id, digest, verdict->id, time);
    buffer_append(out, line);
    buffer_append_text(out, "}\n");
}

// Slack's incoming webhooks: https://docs.slack.dev/messaging/formatting-message-text
static void encode_slack(const struct verdict *verdict, struct buffer *text, struct buffer *out) {
    buffer_append_char(text, '*');
    slack_append(text, verdict->headline);
    buffer_append_format(text, "*\n%s, %s, confidence %d %%, job ",
                         severity_name(verdict->severity), verdict_state_name(verdict->state),
                         verdict->confidence);
    slack_append(text, verdict->job == STRING_NONE ? SLICE("unknown") : intern_slice(verdict->job));
    buffer_append_char(text, '\n');
    slack_append(text, verdict->remediation);
    buffer_append_format(text, "\n`%s`", verdict->id);
    buffer_append_text(out, "{\"text\":");
    json_append_string(out, buffer_slice(text));
    buffer_append_text(out, "}\n");
}

static const struct template TEMPLATES[] = {
    {"Content-Type: application/json", encode_verdict},
    {"Content-Type: application/cloudevents+json", encode_cloud_event},
    {"Content-Type: application/json", encode_slack},
};
static const char *const TEMPLATE_NAMES[] = {"verdict", "cloudevents", "slack", NULL};

// -- the component --------------------------------------------------------------------------------

static const struct option OPTIONS[] = {
    HTTP_CLIENT_OPTIONS(struct webhook_config, client),
    OPTION(struct webhook_config, template, OPTION_CHOICE, .default_value = "verdict",
           .choices = TEMPLATE_NAMES,
           .help =
               "the body of a request; verdict: the JSON of docs/verdict.schema.json; "
               "cloudevents: the same as a CloudEvent; slack: a message for an incoming webhook"),
    OPTION(struct webhook_config, template_file, OPTION_TEXT,
           .help = "instead of `template`: a file of JSON with placeholders"),
    OPTION(struct webhook_config, template_values, OPTION_TEXT_LIST, .hidden = true,
           .help = "what the placeholders of the file stand for beside what a verdict holds, "
                   "NAME=VALUE; secrets best as `NAME=${env:NAME}`"),
    ROUTE_OPTIONS(struct webhook_config, route),
    SENDING_OPTIONS(struct webhook_config, sending, "10s"),
};

static void check_template(const struct webhook_config *config, struct problem_list *problems) {
    struct body_template template;
    struct template_fault fault;
    if (!template_read(&template, config->template_file, &config->template_values, &fault)) {
        const char *prefix = problems->prefix == NULL ? "" : problems->prefix;
        if (fault.line == 0)
            problem_add(problems, "template_file", "%s: %s", config->template_file, fault.text);
        else
            problem_add_at(
                problems, (struct location){config->template_file, fault.line, fault.column},
                arena_format(problems->arena, "%stemplate_file", prefix), "%s", fault.text);
    }
    template_release(&template);
}

static void webhook_validate(const void *given, struct problem_list *problems) {
    const struct webhook_config *config = given;
    http_client_check(&config->client, problems);
    bool good = config->template_values.count <= TEMPLATE_GIVEN_MAX;
    if (!good)
        problem_add(problems, "template_values", "there are more than %d", TEMPLATE_GIVEN_MAX);
    for (uint32_t i = 0; i < config->template_values.count; i++) {
        const char *why = template_given_problem(config->template_values.items[i]);
        good &= why == NULL;
        if (why != NULL) // without its text, which may be a secret
            problem_add(problems, "template_values", "the value with the number %u is none: %s",
                        i + 1, why);
    }
    if (config->template_file == NULL && config->template_values.count > 0)
        problem_add(problems, "template_values",
                    "they are for a template_file, which is not given");
    if (config->template_file != NULL && config->template != 0)
        problem_add(problems, "template_file", "give either a template_file or a template");
    if (config->template_file != NULL && good)
        check_template(config, problems);
}

static enum status webhook_start(void *instance, const void *config,
                                 const struct component_context *context, struct error *error) {
    struct webhook *self = instance;
    const struct webhook_config *given = config;
    struct template_fault fault;
    (void)context;
    self->config = given;
    buffer_init(&self->text, LINE_MAX_BYTES);
    buffer_init(&self->body, LINE_MAX_BYTES);
    self->template = &TEMPLATES[given->template];
    if (given->template_file != NULL &&
        !template_read(&self->own, given->template_file, &given->template_values, &fault))
        return error_set(error, STATUS_CONFIG, "%s:%u:%u: %s", given->template_file, fault.line,
                         fault.column, fault.text);
    struct http_client_options options =
        http_client_options_of(&given->client, given->sending.timeout, REPLY_MAX);
    return http_client_open(&self->client, &options, error);
}

static void webhook_stop(void *instance) {
    struct webhook *self = instance;
    http_client_close(self->client);
    buffer_release(&self->text);
    buffer_release(&self->body);
    template_release(&self->own);
}

static void webhook_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct webhook *self = instance;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        buffer_reset(&self->text);
        if (self->own.piece_count > 0)
            template_render(&self->own, &batch->verdicts.items[i], &self->text, out);
        else
            self->template->encode(&batch->verdicts.items[i], &self->text, out);
        assert(!self->text.failed);
    }
}

// Posts one line, without its newline.
static enum http_class post(struct webhook *self, struct slice line, struct error *error) {
    const struct text_list *values = &self->config->template_values;
    struct http_call call = {.method = "POST",
                             .headers = &self->template->content_type,
                             .header_count = 1,
                             .body = line};
    if (memchr(line.data, TEMPLATE_MARK, line.size) != NULL) {
        buffer_reset(&self->body);
        if (!template_fill(line, values, &self->body) || self->body.failed) {
            error_set(error, STATUS_CONFIG, "it waited since template_values had other names");
            return HTTP_REFUSED;
        }
        call.body = buffer_slice(&self->body);
    }
    enum http_class class = http_client_send(self->client, &call, error);
    for (uint32_t i = 0; class != HTTP_OK && i < values->count; i++)
        redact_secret(error->message, sizeof error->message, strchr(values->items[i], '=') + 1);
    return class;
}

static enum status webhook_send(void *instance, const struct request *request,
                                struct send_outcome *outcome, struct error *error) {
    struct webhook *self = instance;
    struct slice rest = request->bytes;
    while (rest.size > 0) {
        const char *newline = memchr(rest.data, '\n', rest.size);
        assert(newline != NULL); // requests hold whole lines
        size_t size = (size_t)(newline - rest.data) + 1;
        enum http_class class = post(self, (struct slice){rest.data, size - 1}, error);
        outcome->retry_after_ns = http_client_reply(self->client)->retry_after_ns;
        outcome->refused = class == HTTP_REFUSED ? size : 0;
        if (class != HTTP_OK)
            return STATUS_IO;
        outcome->taken += size;
        rest = (struct slice){rest.data + size, rest.size - size};
    }
    return STATUS_OK;
}

static const struct sending_config *webhook_sending(const void *config) {
    return &((const struct webhook_config *)config)->sending;
}

static const struct route_config *webhook_route(const void *config) {
    return &((const struct webhook_config *)config)->route;
}

const struct component_type exporter_webhook = {
    .name = "webhook",
    .summary = "Posts each new or changed verdict to a URL: as JSON, CloudEvent, or by a template.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct webhook_config),
    .instance_size = sizeof(struct webhook),
    .library = &http_client_library,
    .needs = FACT_VERDICTS,
    .validate = webhook_validate,
    .start = webhook_start,
    .stop = webhook_stop,
    .exporter = {.encode = webhook_encode,
                 .send = webhook_send,
                 .lines = true,
                 .sending = webhook_sending,
                 .route = webhook_route},
};

// SPDX-License-Identifier: Apache-2.0
// Writes verdicts to Grafana as annotations of the organization, found by their tags.
//
// encode writes a line a verdict (annotation.h). send asks Grafana for the annotation with the tag
// of the verdict's id, and changes it, or creates it when there is none. The number of an
// annotation is never kept: after a crash, an answer that was lost, or with a Grafana that began
// anew, nothing comes twice and nobody else's annotation is changed.
// API: https://grafana.com/docs/grafana/latest/developers/http_api/annotations/
#include "base/http/client.h"
#include "base/http/late.h"
#include "base/http/url.h"
#include "base/log.h"
#include "base/text/cut.h"
#include "config/problem.h"
#include "exporters/grafana/annotation.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>

// Of the answers one holds up to two annotations, with their texts.
enum { TEXT_MAX = 256 << 10, REPLY_MAX = 256 << 10, URL_MAX = 4096, ASKED_MAX = 2 };

struct grafana {
    const struct grafana_config *config;
    const struct component_context *context;
    struct http_client *client;
    char url[URL_MAX]; // …/api/annotations
    struct buffer text;
    struct buffer call_url;
    struct known_list known;
};

static const struct option OPTIONS[] = {
    HTTP_CLIENT_OPTIONS(struct grafana_config, client),
    OPTION(struct grafana_config, tags, OPTION_TEXT_LIST,
           .help = "further tags of each annotation, NAME or NAME:VALUE"),
    OPTION(struct grafana_config, link, OPTION_TEXT,
           .help = "http:// or https:// URL that an annotation links to; {id} stands for the "
                   "verdict's id"),
    ROUTE_OPTIONS(struct grafana_config, route),
    SENDING_OPTIONS(struct grafana_config, sending, "10s"),
};

static void grafana_validate(const void *given, struct problem_list *problems) {
    const struct grafana_config *config = given;
    http_client_check(&config->client, problems);
    size_t cost = 0;
    for (uint32_t i = 0; i < config->tags.count; i++) {
        const char *why = annotation_tag_problem(config->tags.items[i]);
        cost += annotation_tag_cost(strlen(config->tags.items[i]));
        if (why != NULL)
            problem_add(problems, "tags", "\"%.60s\" is not a tag: %s", config->tags.items[i], why);
    }
    if (cost > TAGS_OF_USER_MAX)
        problem_add(problems, "tags", "the tags take %zu bytes with their quotes; at most %d fit",
                    cost, TAGS_OF_USER_MAX);
    if (config->link != NULL && !text_begins(slice_of(config->link), SLICE("https://")) &&
        !text_begins(slice_of(config->link), SLICE("http://")))
        problem_add(problems, "link", "it does not begin with http:// or https://");
}

// -- start and stop -------------------------------------------------------------------------------

static enum status grafana_start(void *instance, const void *given,
                                 const struct component_context *context, struct error *error) {
    struct grafana *self = instance;
    self->config = given;
    self->context = context;
    buffer_init(&self->text, TEXT_MAX);
    buffer_init(&self->call_url, 2 * URL_MAX);
    if (!http_url_of_api(self->url, sizeof self->url, self->config->client.endpoint,
                         "/api/annotations"))
        return error_set(error, STATUS_CONFIG, "the endpoint is too long");
    struct http_client_options options =
        http_client_options_of(&self->config->client, self->config->sending.timeout, REPLY_MAX);
    options.url = self->url;
    return http_client_open(&self->client, &options, error);
}

static void grafana_stop(void *instance) {
    struct grafana *self = instance;
    http_client_close(self->client);
    buffer_release(&self->text);
    buffer_release(&self->call_url);
    known_release(&self->known);
}

static void grafana_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct grafana *self = instance;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        annotation_encode(self->config, &batch->verdicts.items[i], batch->arena, &self->text, out);
}

// -- requests -------------------------------------------------------------------------------------

static enum http_class call(struct grafana *self, const char *method, struct slice body,
                            struct error *error) {
    static const char *const HEADERS[] = {"Accept: application/json",
                                          "Content-Type: application/json"};
    buffer_append_char(&self->call_url, '\0');
    assert(!self->call_url.failed);
    struct http_call request = {.method = method,
                                .url = self->call_url.data,
                                .headers = HEADERS,
                                .header_count = body.size > 0 ? 2 : 1,
                                .body = body};
    enum http_class class = http_client_send(self->client, &request, error);
    buffer_reset(&self->call_url);
    return class;
}

// The lowest number of the annotations that an answer lists, 0 when it lists none. False when it is
// not such a list: a page of a proxy, for instance.
static bool read_list(struct slice answer, uint64_t *number) {
    json_t *list = json_loadb(answer.data, answer.size, 0, NULL);
    bool good = json_is_array(list);
    *number = 0;
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        json_int_t one = json_integer_value(json_object_get(json_array_get(list, i), "id"));
        good = one > 0;
        if (*number == 0 || (uint64_t)one < *number)
            *number = (uint64_t)one;
    }
    json_decref(list);
    return good;
}

// Asks which annotation a verdict has.
static enum http_class look_up(struct grafana *self, const char *id, uint64_t *number,
                               struct error *error) {
    buffer_append_text(&self->call_url, self->url);
    buffer_append_format(&self->call_url, "?type=annotation&limit=%d&tags=", ASKED_MAX);
    http_client_escape(self->client, &self->call_url, id);
    enum http_class class = call(self, "GET", (struct slice){NULL, 0}, error);
    if (class != HTTP_OK)
        return class;
    const struct http_reply *reply = http_client_reply(self->client);
    if (reply->whole && read_list(buffer_slice(&reply->body), number))
        return HTTP_OK;
    error_set(error, STATUS_IO, "%s",
              reply->whole ? "the answer is not a list of annotations: is this Grafana?"
                           : "the answer did not come whole, or is longer than 256 KiB");
    return HTTP_RETRY;
}

static enum http_class create(struct grafana *self, struct slice body, struct error *error) {
    buffer_append_text(&self->call_url, self->url);
    return call(self, "POST", body, error);
}

static enum http_class change(struct grafana *self, uint64_t number, struct slice body,
                              struct error *error) {
    buffer_append_text(&self->call_url, self->url);
    buffer_append_char(&self->call_url, '/');
    buffer_append_uint(&self->call_url, number);
    return call(self, "PATCH", body, error);
}

static void note_deleted(struct grafana *self, uint32_t at) {
    self->known.deleted[at] = true;
    log_write(LOG_INFO, (struct log_site){"C3501", self->context->site},
              "somebody deleted the annotation of %s: it is not created again",
              self->known.ids[at]);
}

static enum http_class send_line(struct grafana *self, struct slice line, struct error *error) {
    char id[VERDICT_ID_SIZE];
    struct slice name = text_until(line, '\t');
    assert(name.size > 0 && name.size < sizeof id && name.size < line.size);
    snprintf(id, sizeof id, "%.*s", (int)name.size, name.data);
    uint32_t at = known_find(&self->known, name);
    if (at != KNOWN_MAX && self->known.deleted[at])
        return HTTP_OK;
    uint64_t number = 0;
    enum http_class class = look_up(self, id, &number, error);
    if (class != HTTP_OK)
        return class == HTTP_REFUSED ? HTTP_RETRY : class; // that was no word on the annotation
    if (number == 0 && at != KNOWN_MAX) {
        note_deleted(self, at);
        return HTTP_OK;
    }
    struct slice body = text_from(line, name.size + 1);
    class = number == 0 ? create(self, body, error) : change(self, number, body, error);
    if (class == HTTP_OK)
        known_add(&self->known, name);
    return class;
}

static enum status grafana_send(void *instance, const struct request *request,
                                struct send_outcome *outcome, struct error *error) {
    struct grafana *self = instance;
    struct slice rest = request->bytes;
    while (rest.size > 0) {
        struct slice line = text_take_line(&rest);
        enum http_class class = send_line(self, line, error);
        outcome->refused = class == HTTP_REFUSED ? line.size + 1 : 0;
        if (class != HTTP_OK) {
            outcome->retry_after_ns = http_client_reply(self->client)->retry_after_ns;
            return STATUS_IO;
        }
        outcome->taken += line.size + 1;
    }
    return STATUS_OK;
}

// -- over a restart -------------------------------------------------------------------------------

static void grafana_delivered(void *instance, struct buffer *out) {
    known_keep(&((const struct grafana *)instance)->known, out);
}

static enum status grafana_resume(void *instance, struct slice delivered, struct error *error) {
    (void)error;
    known_restore(&((struct grafana *)instance)->known, delivered);
    return STATUS_OK;
}

static const struct sending_config *grafana_sending(const void *config) {
    return &((const struct grafana_config *)config)->sending;
}

static const struct route_config *grafana_route(const void *config) {
    return &((const struct grafana_config *)config)->route;
}

const struct component_type exporter_grafana = {
    .name = "grafana",
    .summary = "Writes each verdict to Grafana as an annotation that dashboards show by its tags.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct grafana_config),
    .instance_size = sizeof(struct grafana),
    .library = &http_client_library,
    .needs = FACT_VERDICTS,
    .validate = grafana_validate,
    .start = grafana_start,
    .stop = grafana_stop,
    .exporter = {.encode = grafana_encode,
                 .send = grafana_send,
                 .lines = true,
                 .delivered = grafana_delivered,
                 .resume = grafana_resume,
                 .sending = grafana_sending,
                 .route = grafana_route},
};

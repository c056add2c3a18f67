// SPDX-License-Identifier: Apache-2.0
// Sends verdicts to an OpenTelemetry Collector, or any backend that takes OTLP over HTTP: each as a
// log record, and counted as a metric.
//
// What is tried again is what OTLP says: 429, 502, 503, 504, and no answer at all. All other
// failures are for good: then lines are posted one by one, so that only what is refused by itself
// is lost.
#include "exporters/otlp/otlp.h"

#include "base/clock.h"
#include "base/gzip.h"
#include "base/http/client.h"
#include "base/http/late.h"
#include "base/http/url.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "config/client_options.h"
#include "config/problem.h"
#include "pipeline/component/component.h"

#include <assert.h>
#include <stdio.h>

enum { REPLY_MAX = 64 << 10, URL_MAX = 4096, LINES_A_POST = 512, MESSAGE_MAX = 300 };
enum otlp_encoding { ENCODING_PROTOBUF, ENCODING_JSON };
enum otlp_compression { COMPRESSION_GZIP, COMPRESSION_NONE };

static const char *const ENCODINGS[] = {"protobuf", "json", NULL};
static const char *const COMPRESSIONS[] = {"gzip", "none", NULL};

struct otlp_config {
    struct http_client_config client;
    int encoding;    // enum otlp_encoding
    int compression; // enum otlp_compression
    const char *service_name;
    struct duration metrics_interval; // 0: none
    struct route_config route;
    struct sending_config sending;
};

struct otlp_exporter {
    const struct otlp_config *config;
    const struct component_context *context;
    struct http_client *client;
    char logs_url[URL_MAX], metrics_url[URL_MAX];
    struct buffer body;
    struct gzip *gzip; // NULL: requests are not compressed
    struct otlp_counts counts;
    uint64_t metrics_ns; // monotonic: when they are due
    bool metrics_fail;
};

static const struct option OPTIONS[] = {
    HTTP_CLIENT_OPTIONS(struct otlp_config, client),
    OPTION(struct otlp_config, encoding, OPTION_CHOICE, .default_value = "protobuf",
           .choices = ENCODINGS, .help = "the form of requests"),
    OPTION(struct otlp_config, compression, OPTION_CHOICE, .default_value = "gzip",
           .choices = COMPRESSIONS, .help = "how requests are compressed"),
    OPTION(struct otlp_config, service_name, OPTION_TEXT, .default_value = "culprit",
           .help = "the resource attribute service.name"),
    OPTION(struct otlp_config, metrics_interval, OPTION_DURATION, .default_value = "1m", .min = 0,
           .max = 86400, .help = "how often the number of verdicts is sent as a metric; 0s: never"),
    ROUTE_OPTIONS(struct otlp_config, route),
    SENDING_OPTIONS(struct otlp_config, sending, "10s"),
};

static void otlp_validate(const void *given, struct problem_list *problems) {
    const struct otlp_config *config = given;
    http_client_check(&config->client, problems);
    if (config->service_name[0] == '\0')
        problem_add(problems, "service_name", "the text is empty");
}

// -- start and stop -------------------------------------------------------------------------------

static void say_port(const struct otlp_exporter *self) {
    static const char grpc[] = ":4317"; // by custom
    struct slice origin = http_url_origin(self->config->client.endpoint);
    size_t size = sizeof grpc - 1;
    if (origin.size > size && memcmp(origin.data + origin.size - size, grpc, size) == 0)
        log_write(
            LOG_WARN, (struct log_site){"C3904", self->context->site},
            "receivers expect gRPC at port 4317, and OTLP over HTTP, which is sent, mostly at "
            "4318");
}

static enum status otlp_start(void *instance, const void *given,
                              const struct component_context *context, struct error *error) {
    struct otlp_exporter *self = instance;
    self->config = given;
    self->context = context;
    buffer_init(&self->body, OTLP_BODY_MAX);
    if (self->config->compression == COMPRESSION_GZIP)
        self->gzip = gzip_make();
    otlp_counts_begin(&self->counts, clock_unix_ns());
    self->metrics_ns = clock_monotonic_ns() + (uint64_t)self->config->metrics_interval.ns;
    const char *endpoint = self->config->client.endpoint;
    if (!http_url_of_api(self->logs_url, URL_MAX, endpoint, "/v1/logs") ||
        !http_url_of_api(self->metrics_url, URL_MAX, endpoint, "/v1/metrics"))
        return error_set(error, STATUS_CONFIG, "the endpoint is too long");
    say_port(self);
    struct http_client_options options =
        http_client_options_of(&self->config->client, self->config->sending.timeout, REPLY_MAX);
    options.url = self->logs_url;
    return http_client_open(&self->client, &options, error);
}

static void otlp_stop(void *instance) {
    struct otlp_exporter *self = instance;
    http_client_close(self->client);
    buffer_release(&self->body);
    gzip_free(self->gzip);
    otlp_counts_release(&self->counts);
}

static void otlp_encode(void *instance, const struct batch *batch, struct buffer *out) {
    const struct otlp_exporter *self = instance;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        otlp_encode_verdict(&batch->verdicts.items[i], self->config->service_name, out);
}

// -- one request ----------------------------------------------------------------------------------

// Fills the body with the document in the form that is configured, and takes the document.
static void write_body(struct otlp_exporter *self, json_t *document, bool logs) {
    buffer_reset(&self->body);
    if (self->config->encoding == ENCODING_JSON) {
        char *text = json_dumps(document, JSON_COMPACT);
        assert(text != NULL);
        buffer_append_text(&self->body, text);
        free(text);
    } else if (logs) {
        otlp_protobuf_logs(document, &self->body);
    } else {
        otlp_protobuf_metrics(document, &self->body);
    }
    json_decref(document);
}

// What the status says by OTLP: only these are tried again, and what a token that was replaced
// meanwhile kept out.
static enum http_class class_by_otlp(long status, enum http_class class) {
    if (status == 0 || class == HTTP_OK)
        return class;
    bool again = status == 429 || status == 502 || status == 503 || status == 504;
    again |= status == 401 && class == HTTP_RETRY; // with the token that is in the file by now
    return again ? HTTP_RETRY : HTTP_REFUSED;
}

// Sends the body.
static enum http_class post(struct otlp_exporter *self, const char *url, struct error *error) {
    if (self->body.failed) {
        error_set(error, STATUS_IO, "the request would be larger than %d MiB", OTLP_BODY_MAX >> 20);
        return HTTP_REFUSED;
    }
    const char *headers[] = {self->config->encoding == ENCODING_JSON
                                 ? "Content-Type: application/json"
                                 : "Content-Type: application/x-protobuf",
                             "Content-Encoding: gzip"};
    struct http_call call = {.method = "POST",
                             .url = url,
                             .headers = headers,
                             .header_count = self->gzip != NULL ? 2 : 1,
                             .body = buffer_slice(&self->body)};
    if (self->gzip != NULL)
        call.body = gzip_compress(self->gzip, call.body);
    enum http_class class = http_client_send(self->client, &call, error);
    return class_by_otlp(http_client_reply(self->client)->status, class);
}

// What the answer to a request that was taken says of records that were not: they are never sent
// again.
static void tell_rejected(struct otlp_exporter *self) {
    uint64_t rejected;
    char message[MESSAGE_MAX];
    struct slice answer = buffer_slice(&http_client_reply(self->client)->body);
    bool protobuf = self->config->encoding == ENCODING_PROTOBUF;
    if (!otlp_partial_success(answer, protobuf, &rejected, message, sizeof message) ||
        (rejected == 0 && message[0] == '\0'))
        return;
    log_write(LOG_WARN, (struct log_site){"C3901", self->context->site},
              "%llu log records were rejected: %s", (unsigned long long)rejected,
              message[0] == '\0' ? "no reason is given" : message);
}

// -- logs -----------------------------------------------------------------------------------------

// The lines as one request. Their verdicts are counted when they were taken.
static enum http_class post_lines(struct otlp_exporter *self, struct slice lines,
                                  struct error *error) {
    json_t *list = json_array();
    uint64_t unix_ns = clock_unix_ns();
    for (struct slice rest = lines; rest.size > 0;) {
        struct slice line = text_take_line(&rest);
        json_t *one = json_loadb(line.data, line.size, JSON_ALLOW_NUL, NULL);
        assert(one != NULL); // encode wrote it
        verdict_record_observe(one, unix_ns);
        json_array_append_new(list, one);
    }
    json_t *document = json_pack("{s:O}", "resourceLogs", list);
    assert(document != NULL);
    write_body(self, document, true);
    enum http_class class = post(self, self->logs_url, error);
    if (class == HTTP_OK)
        tell_rejected(self);
    for (size_t i = 0; class == HTTP_OK && i < json_array_size(list); i++)
        otlp_counts_add(&self->counts, json_array_get(list, i));
    json_decref(list);
    return class;
}

static struct slice first_lines(struct slice rest) {
    struct slice behind = rest;
    for (uint32_t i = 0; i < LINES_A_POST && behind.size > 0; i++)
        (void)text_take_line(&behind);
    return (struct slice){rest.data, rest.size - behind.size};
}

// Line by line, up to the first that is not taken.
static enum http_class post_singly(struct otlp_exporter *self, struct slice lines,
                                   struct send_outcome *outcome, struct error *error) {
    enum http_class class = HTTP_OK;
    while (class == HTTP_OK && lines.size > 0) {
        struct slice behind = lines;
        (void)text_take_line(&behind);
        struct slice line = {lines.data, lines.size - behind.size};
        class = post_lines(self, line, error);
        outcome->taken += class == HTTP_OK ? line.size : 0;
        outcome->refused = class == HTTP_REFUSED ? line.size : 0;
        lines = behind;
    }
    return class;
}

static enum http_class send_logs(struct otlp_exporter *self, const struct request *request,
                                 struct send_outcome *outcome, struct error *error) {
    enum http_class class = HTTP_OK;
    while (class == HTTP_OK && outcome->taken < request->bytes.size) {
        struct slice lines = first_lines(text_from(request->bytes, outcome->taken));
        class = post_lines(self, lines, error);
        if (class == HTTP_OK)
            outcome->taken += lines.size;
        else if (class == HTTP_REFUSED)
            class = post_singly(self, lines, outcome, error);
    }
    return class;
}

// -- the metric -----------------------------------------------------------------------------------

// What could not be sent is in the next sum, too: it is not tried again before that is due.
static void send_metrics(struct otlp_exporter *self) {
    struct error error = {0};
    uint64_t interval_ns = (uint64_t)self->config->metrics_interval.ns;
    self->metrics_ns = clock_monotonic_ns() + interval_ns;
    if (self->counts.count == 0)
        return;
    write_body(self,
               otlp_counts_document(&self->counts, self->config->service_name, clock_unix_ns()),
               false);
    bool fails = post(self, self->metrics_url, &error) != HTTP_OK;
    if (fails && !self->metrics_fail)
        log_write(LOG_WARN, (struct log_site){"C3902", self->context->site},
                  "the metric is not taken: %s", error.message);
    if (!fails && self->metrics_fail)
        log_write(LOG_INFO, (struct log_site){"C3903", self->context->site},
                  "the metric is taken again");
    self->metrics_fail = fails;
}

static enum status otlp_send(void *instance, const struct request *request,
                             struct send_outcome *outcome, struct error *error) {
    struct otlp_exporter *self = instance;
    enum http_class class = send_logs(self, request, outcome, error);
    if (class != HTTP_OK) {
        outcome->retry_after_ns = http_client_reply(self->client)->retry_after_ns;
        return STATUS_IO;
    }
    bool on = self->config->metrics_interval.ns > 0;
    if (on && (request->last || clock_monotonic_ns() >= self->metrics_ns))
        send_metrics(self);
    return STATUS_OK;
}

static struct send_pace otlp_pace(const void *instance) {
    const struct otlp_exporter *self = instance;
    bool due = self->config->metrics_interval.ns > 0 && self->counts.count > 0;
    return (struct send_pace){0, due ? self->metrics_ns : UINT64_MAX};
}

static const struct sending_config *otlp_sending(const void *config) {
    return &((const struct otlp_config *)config)->sending;
}

static const struct route_config *otlp_route(const void *config) {
    return &((const struct otlp_config *)config)->route;
}

static const struct component_alias aliases[] = {
    {"otlphttp", "it sends verdicts as OTLP logs over HTTP"},
    {"otlp_http", "it sends verdicts as OTLP logs over HTTP"},
};

const struct component_type exporter_otlp = {
    .name = "otlp",
    .summary =
        "Sends verdicts as OpenTelemetry log records over HTTP, and counts them as a metric.",
    .aliases = aliases,
    .alias_count = sizeof aliases / sizeof aliases[0],
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct otlp_config),
    .instance_size = sizeof(struct otlp_exporter),
    .library = &http_client_library,
    .needs = FACT_VERDICTS,
    .validate = otlp_validate,
    .start = otlp_start,
    .stop = otlp_stop,
    .exporter = {.encode = otlp_encode,
                 .send = otlp_send,
                 .lines = true,
                 .pace = otlp_pace,
                 .sending = otlp_sending,
                 .route = otlp_route},
};

// SPDX-License-Identifier: Apache-2.0
// Posts every event to the `http` receiver of another culprit, as it came, each once.
//
// encode writes a frame for each record (record_frame.h), send posts as many of them as fit into a
// request. The frames have numbers and nothing leaves before the checkpoint that holds them, so the
// receiver tells what comes again after a crash on either side. What the gateway refuses for good
// is looked for by halving the request, dropped and counted, record by record; all other failures,
// also wrong tokens and paths, are tried again for as long as the options say.
#include "base/gzip.h"
#include "base/http/client.h"
#include "base/http/late.h"
#include "base/http/url.h"
#include "base/log.h"
#include "base/memory.h"
#include "config/client_options.h"
#include "exporters/forward/event.h"
#include "exporters/forward/ranks.h"
#include "pipeline/component/component.h"
#include "pipeline/component/record_frame.h"

#include <assert.h>
#include <string.h>

enum { REPLY_MAX = 4096, HEADERS_MAX = 2 };

enum http_compression { COMPRESSION_GZIP, COMPRESSION_NONE };

struct http_exporter_config {
    struct http_client_config client;
    int compression; // enum http_compression
    struct byte_size max_request_size;
    const char *sender;
    struct sending_config sending;
};

struct http_exporter {
    const struct http_exporter_config *config;
    const char *site;
    char *url; // with the path
    struct http_client *client;
    struct gzip *gzip;
    struct forward_sender sender;
    struct forward_ranks ranks;
    uint32_t records_max; // of one request; lower while a record is looked for
};

static const char *const COMPRESSIONS[] = {"gzip", "none", NULL};

static const struct option OPTIONS[] = {
    HTTP_CLIENT_OPTIONS(struct http_exporter_config, client),
    OPTION(struct http_exporter_config, compression, OPTION_CHOICE, .default_value = "gzip",
           .choices = COMPRESSIONS, .help = "how requests are compressed"),
    OPTION(struct http_exporter_config, max_request_size, OPTION_SIZE, .default_value = "4MiB",
           .min = 1024, .max = 64.0 * 1024 * 1024,
           .help = "records of one request, before compression; one record that is larger goes "
                   "alone. Not more than the receiver's max_request_size"),
    OPTION(struct http_exporter_config, sender, OPTION_TEXT,
           .help = "name under which records are numbered, so that the receiver drops repeats; "
                   "default HOST/EXPORTER"),
    SENDING_OPTIONS(struct http_exporter_config, sending, "10s"),
};

static void http_validate(const void *config, struct problem_list *problems) {
    const struct http_exporter_config *given = config;
    http_client_check(&given->client, problems);
    forward_sender_check(given->sender, problems);
}

// -- life -----------------------------------------------------------------------------------------

// The URL; with /v1/events when it has no path.
static char *url_of(const char *endpoint) {
    size_t origin = http_url_origin(endpoint).size;
    const char *path = endpoint + origin;
    bool bare = strcmp(path, "") == 0 || strcmp(path, "/") == 0;
    if (!bare)
        return memory_copy_text(endpoint, strlen(endpoint));
    static const char events[] = "/v1/events";
    char *url = memory_take(origin + sizeof events);
    memcpy(url, endpoint, origin);
    memcpy(url + origin, events, sizeof events);
    return url;
}

static enum status http_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct http_exporter *self = instance;
    self->config = config;
    self->site = context->site;
    self->records_max = UINT32_MAX;
    self->url = url_of(self->config->client.endpoint);
    forward_sender_init(&self->sender, self->config->sender, context->id);
    if (self->config->compression == COMPRESSION_GZIP)
        self->gzip = gzip_make();
    struct http_client_options options =
        http_client_options_of(&self->config->client, self->config->sending.timeout, REPLY_MAX);
    options.url = self->url;
    return http_client_open(&self->client, &options, error);
}

static void http_stop(void *instance) {
    struct http_exporter *self = instance;
    http_client_close(self->client);
    gzip_free(self->gzip);
    forward_ranks_release(&self->ranks);
    forward_sender_release(&self->sender);
    memory_give(self->url);
}

static const struct state_row STATE[] = {
    STATE_STRUCT(struct http_exporter, sender.counter, "http.counter"),
    STATE_ROWS(struct http_exporter, ranks.ranks, "http.ranks", forward_rank_rows),
    STATE_ROWS(struct http_exporter, ranks.sessions, "http.sessions", forward_session_rows),
};

static void http_restored(void *instance) {
    struct http_exporter *self = instance;
    forward_sender_restored(&self->sender);
    forward_ranks_restored(&self->ranks);
}

// -- encoding -------------------------------------------------------------------------------------

static void http_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct http_exporter *self = instance;
    struct slice last = {NULL, 0};
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (!batch_selects(batch, i) || forward_is_repeat(event, &last))
            continue;
        struct record_frame frame;
        struct forward_texts texts;
        bool full;
        struct carried carried = forward_ranks_note(&self->ranks, event, &full);
        if (full)
            log_write(
                LOG_WARN, (struct log_site){"C7201", self->site},
                "more than %d ranks are known: further ones are sent without their first sample",
                FORWARD_RANKS_MAX);
        forward_event(&self->sender, event, carried, &frame, &texts);
        record_frame_write(&frame, out);
    }
}

// -- sending --------------------------------------------------------------------------------------

// The frames at the front of `rest` that make up one request; `count` is how many.
static struct slice cut_request(const struct http_exporter *self, struct slice rest,
                                uint32_t *count) {
    struct slice left = rest;
    *count = 0;
    while (left.size > 0 && *count < self->records_max) {
        struct slice before = left;
        bool whole = record_frame_skip(&left);
        assert(whole); // a request holds whole frames
        (void)whole;
        if (*count > 0 && rest.size - left.size > self->config->max_request_size.bytes) {
            left = before;
            break;
        }
        ++*count;
    }
    assert(*count > 0);
    return (struct slice){rest.data, rest.size - left.size};
}

static enum http_class post(struct http_exporter *self, struct slice frames, struct error *error) {
    const char *headers[HEADERS_MAX] = {"Content-Type: " RECORD_FRAMES_TYPE,
                                        "Content-Encoding: gzip"};
    struct http_call call = {
        .method = "POST", .headers = headers, .header_count = 1, .body = frames};
    if (self->gzip != NULL) {
        call.body = gzip_compress(self->gzip, frames);
        call.header_count = 2;
    }
    return http_client_send(self->client, &call, error);
}

// Whether the answer is about the records themselves. Everything else may be put right while they
// wait: a token, a path, a gateway of another version (415), a proxy.
static bool is_the_records_fault(long status) {
    return status == 400 || status == 413 || status == 422;
}

static enum status http_send(void *instance, const struct request *request,
                             struct send_outcome *outcome, struct error *error) {
    struct http_exporter *self = instance;
    struct slice rest = request->bytes;
    while (rest.size > 0) {
        uint32_t count;
        struct slice frames = cut_request(self, rest, &count);
        enum http_class class = post(self, frames, error);
        const struct http_reply *reply = http_client_reply(self->client);
        if (class != HTTP_OK && is_the_records_fault(reply->status)) {
            if (count > 1) {
                self->records_max = count / 2;
                continue;
            }
            outcome->refused = frames.size;
            return STATUS_IO;
        }
        if (class != HTTP_OK) {
            outcome->retry_after_ns = reply->retry_after_ns;
            return STATUS_IO;
        }
        if (self->records_max < UINT32_MAX / 2)
            self->records_max *= 2;
        outcome->taken += frames.size;
        rest = (struct slice){rest.data + frames.size, rest.size - frames.size};
    }
    return STATUS_OK;
}

static const struct sending_config *http_sending(const void *config) {
    return &((const struct http_exporter_config *)config)->sending;
}

// Their numbers depend on the order in which receivers raced.
static bool http_always(const void *config) {
    (void)config;
    return true;
}

const struct component_type exporter_http = {
    .name = "http",
    .summary = "Posts every event as it came to the http receiver of another culprit.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct http_exporter_config),
    .instance_size = sizeof(struct http_exporter),
    .library = &http_client_library,
    .validate = http_validate,
    .start = http_start,
    .stop = http_stop,
    .state_rows = STATE,
    .state_row_count = OPTION_COUNT(STATE),
    .restored = http_restored,
    .exporter = {.takes_events = http_always,
                 .encode = http_encode,
                 .send = http_send,
                 .sending = http_sending,
                 .waits_for_checkpoint = http_always},
};

// SPDX-License-Identifier: Apache-2.0
// Answers liveness, startup and readiness probes, and /status with each component's state.
//
// Every answer is made of what the service says at that moment
// (pipeline/component/service_status.h); nothing is kept. A probe costs two or three atomics and a
// lock of its own, so that it is answered while pipelines are busy. Memory: 600 KiB for the list of
// components while /status is answered.
#include "pipeline/component/component.h"

#include "base/clock.h"
#include "base/http/endpoint.h"
#include "base/http/late.h"
#include "base/http/server.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text/json_write.h"
#include "config/server_options.h"

#include "pipeline/component/service_status.h"
#include <assert.h>

struct health_check_config {
    const char *endpoint;
    struct tls_server_config tls;
    struct auth_server_config auth;
};

#define HEALTH_CHECK_MAGIC UINT32_C(0x486c7468)

struct health_check {
    uint32_t magic; // HEALTH_CHECK_MAGIC
    const struct service_status *status;
    struct http_server *server;
};

enum { CONNECTIONS_MAX = 32, REQUEST_BYTES_MAX = 4096, COMPONENTS_MAX = 1024 };
static const uint64_t SECOND_NS = UINT64_C(1000000000);

static const struct option OPTIONS[] = {
    OPTION(struct health_check_config, endpoint, OPTION_TEXT, .claim = CLAIM_ENDPOINT,
           .address = true, .default_value = "127.0.0.1:13133",
           .help = "where to listen: HOST:PORT, [V6]:PORT or unix:/PATH"),
    SERVER_SECURITY_OPTIONS(struct health_check_config),
};

static void health_validate(const void *config, struct problem_list *problems) {
    const struct health_check_config *given = config;
    endpoint_check(given->endpoint, "endpoint", problems);
    server_security_check(&given->tls, &given->auth, problems);
}

static void put_time(struct json_writer *json, const char *key, uint64_t unix_ns) {
    char text[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(unix_ns, text);
    json_field_text(json, key, text);
}

static void put_some(struct json_writer *json, const char *key, const char *text) {
    if (text[0] != '\0')
        json_field_text(json, key, text);
}

static struct service_health ask(void *context) {
    const struct health_check *self = context;
    assert(self->magic == HEALTH_CHECK_MAGIC);
    struct service_health health = {0};
    self->status->health(self->status->context, &health);
    return health;
}

// /livez, /startupz, /readyz, and / for the last one: {"status":"ok","up_since":"…"}, and the
// reason when it is not.
static void answer_probe(void *context, const struct http_request *request,
                         struct http_response *response) {
    struct service_health health = ask(context);
    bool good = health.ready && health.last_config_taken;
    if (strcmp(request->path, "/livez") == 0) {
        good = health.live;
        if (!good)
            strcpy(health.sentence, "the main loop has not turned for 30 s");
    } else if (strcmp(request->path, "/startupz") == 0) {
        good = health.started;
    }
    struct json_writer json;
    response->status = good ? 200 : 503;
    response->content_type = "application/json; charset=utf-8";
    json_begin(&json, &response->body, 0);
    json_object_open(&json);
    json_field_text(&json, "status", good ? "ok" : "unavailable");
    put_time(&json, "up_since", health.up_since_unix_ns);
    put_some(&json, "reason", health.sentence);
    json_object_close(&json);
    buffer_append_char(&response->body, '\n');
}

// -- /status -------------------------------------------------------------------------------------

// As the Collector answers: an error that mends itself, or that only a person can mend, leaves the
// rest at work. Of two states the graver one says more of the whole.
static const struct {
    int http_status, gravity;
} STATES[] = {
    [COMPONENT_OK] = {200, 0},        [COMPONENT_STARTING] = {503, 1},
    [COMPONENT_STOPPED] = {503, 2},   [COMPONENT_RECOVERABLE] = {200, 3},
    [COMPONENT_PERMANENT] = {200, 4}, [COMPONENT_STOPPING] = {503, 5},
    [COMPONENT_FATAL] = {500, 6},
};
_Static_assert(sizeof STATES / sizeof STATES[0] == COMPONENT_STOPPED + 1, "a row for each state");

static void put_component(struct json_writer *json, const struct component_status *component) {
    json_object_open(json);
    json_field_text(json, "id", component->id);
    put_some(json, "pipeline", component->pipeline);
    json_field_text(json, "status", component_state_name(component->state));
    put_some(json, "error", component->sentence);
    put_time(json, "status_time", component->since_unix_ns);
    json_object_close(json);
}

// "verbose", "verbose=1", "verbose=true" among the parts of the query.
static bool asks_verbose(const char *query) {
    for (const char *at = query; *at != '\0';) {
        size_t size = strcspn(at, "&");
        struct slice part = {at, size};
        if (slice_equal(part, SLICE("verbose")) || slice_equal(part, SLICE("verbose=1")) ||
            slice_equal(part, SLICE("verbose=true")))
            return true;
        at += size + (at[size] == '&');
    }
    return false;
}

static void answer_status(void *context, const struct http_request *request,
                          struct http_response *response) {
    struct service_health health = ask(context);
    const struct service_status *status = ((struct health_check *)context)->status;
    struct component_status *components = memory_take(COMPONENTS_MAX * sizeof *components);
    uint32_t count = status->components(status->context, components, COMPONENTS_MAX);
    enum component_state whole = health.started ? COMPONENT_OK : COMPONENT_STARTING;
    uint64_t since_ns = health.up_since_unix_ns;
    for (uint32_t i = 0; i < count; i++) {
        bool graver = STATES[components[i].state].gravity > STATES[whole].gravity;
        if (graver)
            whole = components[i].state;
        if (graver || (components[i].state == whole && components[i].since_unix_ns > since_ns))
            since_ns = components[i].since_unix_ns;
    }
    struct json_writer json;
    response->status = STATES[whole].http_status;
    response->content_type = "application/json; charset=utf-8";
    response->compress = true;
    json_begin(&json, &response->body, 0);
    json_object_open(&json);
    put_time(&json, "start_time", health.up_since_unix_ns);
    json_field_bool(&json, "healthy", response->status == 200);
    json_field_text(&json, "status", component_state_name(whole));
    put_time(&json, "status_time", since_ns);
    put_some(&json, "reason", health.sentence);
    if (asks_verbose(request->query)) {
        json_field_array_open(&json, "components");
        for (uint32_t i = 0; i < count; i++)
            put_component(&json, &components[i]);
        json_array_close(&json);
    }
    json_object_close(&json);
    buffer_append_char(&response->body, '\n');
    memory_give(components);
}

#define PROBE(name)                                                                                \
    { .path = (name), .methods = "GET HEAD", .handler = answer_probe, .context = self }

static enum status health_start(void *instance, const void *config,
                                const struct component_context *context, struct error *error) {
    struct health_check *self = instance;
    const struct health_check_config *given = config;
    assert(context->status != NULL);
    self->magic = HEALTH_CHECK_MAGIC;
    self->status = context->status;
    struct http_server_options options = {
        .endpoint = given->endpoint,
        .paths =
            {PROBE("/"),
             PROBE("/readyz"),
             PROBE("/livez"),
             PROBE("/startupz"),
             {.path = "/status", .methods = "GET HEAD", .handler = answer_status, .context = self}},
        .path_count = 5,
        .tls = {given->tls.cert_file, given->tls.key_file, given->tls.client_ca_file},
        .bearer_token = secret_reveal(given->auth.bearer_token),
        .bearer_token_file = given->auth.bearer_token_file,
        .max_request_bytes = REQUEST_BYTES_MAX,
        .max_connections = CONNECTIONS_MAX,
        .header_timeout_ns = 10 * SECOND_NS,
        .body_timeout_ns = 10 * SECOND_NS,
        .write_timeout_ns = 30 * SECOND_NS,
        .idle_timeout_ns = 60 * SECOND_NS,
        .site = context->site,
    };
    enum status status = http_server_start(&self->server, &options, error);
    if (status != STATUS_OK)
        return status;
    char shown[ENDPOINT_SHOWN_MAX];
    endpoint_show(given->endpoint, http_server_port(self->server), shown);
    log_write(LOG_INFO, (struct log_site){"C6001", context->site}, "probes are answered at %s",
              shown);
    return STATUS_OK;
}

// The socket is kept: if this is a reload, the next instance answers who asks meanwhile.
static void health_stop(void *instance) {
    struct health_check *self = instance;
    http_server_stop(self->server, SECOND_NS, true);
    self->server = NULL;
}

const struct component_type extension_health_check = {
    .name = "health_check",
    .summary = "Answers liveness, readiness and startup probes, and tells how each component does.",
    .kind = COMPONENT_EXTENSION,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct health_check_config),
    .instance_size = sizeof(struct health_check),
    .library = &http_server_library,
    .validate = health_validate,
    .start = health_start,
    .stop = health_stop,
};

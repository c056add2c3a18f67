// SPDX-License-Identifier: Apache-2.0
// Serves the newest page. Its ETag is made of its bytes, so a restart with the same page is no news
// to who has it.
#include "exporters/html/served.h"

#include "base/clock.h"
#include "base/gzip.h"
#include "base/hash/digest.h"
#include "base/http/endpoint.h"
#include "base/http/events.h"
#include "base/http/server.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "config/problem.h"

#include <assert.h>
#include <stdio.h>

enum {
    SERVED_MAGIC = 0x48544d4c,
    CONNECTIONS_MAX = 96,
    LISTENERS_MAX = 64,
    REQUEST_BYTES_MAX = 4096,
    RETRY_MS = 1000,
};
static const uint64_t SECOND_NS = UINT64_C(1000000000);
// A page that was asked for is looked at for so long, also where no script listens.
static const uint64_t LOOKS_NS = UINT64_C(10000000000);

struct served {
    uint32_t magic; // SERVED_MAGIC
    struct served_options options;
    struct http_events *events;
    struct http_server *server;
    struct gzip *gzip;
    atomic_uint_fast64_t looked_ns;        // when the page was asked for last, monotonic; 0: never
    atomic_uint_fast64_t made_ns, cost_ns; // of the newest page; set by the thread that makes pages

    struct lock lock; // of what follows
    bool any;
    char etag[DIGEST_ID_SIZE];
    struct buffer page, packed;
};

// The page brings its own policy for what it loads; frames are forbidden by a header only.
static const char *const HEADERS[] = {
    "Cache-Control",
    "private, no-cache",
    "Content-Security-Policy",
    "frame-ancestors 'none'",
    "X-Content-Type-Options",
    "nosniff",
    "Referrer-Policy",
    "no-referrer",
    "Cross-Origin-Resource-Policy",
    "same-origin",
    "Vary",
    "Accept-Encoding",
    NULL,
};

static bool is_guarded(const struct served_options *options) {
    return secret_reveal(options->auth->bearer_token) != NULL ||
           options->auth->bearer_token_file != NULL;
}

void served_check(const struct served_options *options, struct problem_list *problems) {
    endpoint_check(options->endpoint, "endpoint", problems);
    server_security_check(options->tls, options->auth, problems);
    struct endpoint parsed;
    bool usable = endpoint_parse(options->endpoint, &parsed) == NULL;
    if (usable && !endpoint_is_local(options->endpoint) && !is_guarded(options) &&
        options->tls->client_ca_file == NULL)
        problem_add(problems, "endpoint",
                    "others reach %s: set auth.bearer_token_file or tls.client_ca_file, or listen "
                    "on 127.0.0.1",
                    options->endpoint);
}

static void answer_page(void *context, const struct http_request *request,
                        struct http_response *response) {
    struct served *served = context;
    assert(served->magic == SERVED_MAGIC);
    atomic_store(&served->looked_ns, clock_monotonic_ns());
    response->headers = HEADERS;
    response->content_type = "text/html; charset=utf-8";
    bool packed = http_takes_gzip(request);
    lock_take(&served->lock);
    if (!served->any) {
        lock_release(&served->lock);
        http_error(response, 503, "starting", "There is no page yet: try again in a second.");
        response->retry_after_s = 1;
        return;
    }
    memcpy(response->etag, served->etag, sizeof served->etag);
    packed = packed && served->packed.size > 0;
    response->compressed = packed;
    if (!http_has_current(request, served->etag))
        buffer_append(&response->body, buffer_slice(packed ? &served->packed : &served->page));
    lock_release(&served->lock);
}

static enum status listen_on(struct served *served, struct error *error) {
    const struct served_options *given = &served->options;
    bool guarded = is_guarded(given) || given->tls->client_ca_file != NULL;
    struct endpoint parsed;
    bool unix_socket = endpoint_parse(given->endpoint, &parsed) == NULL &&
                       strncmp(given->endpoint, "unix:", 5) == 0;
    struct http_server_options options = {
        .endpoint = given->endpoint,
        .paths = {{.path = "/", .methods = "GET HEAD", .handler = answer_page, .context = served},
                  {.path = "/events", .methods = "GET HEAD", .events = served->events}},
        .path_count = 2,
        .tls = {given->tls->cert_file, given->tls->key_file, given->tls->client_ca_file},
        .bearer_token = secret_reveal(given->auth->bearer_token),
        .bearer_token_file = given->auth->bearer_token_file,
        .basic = true,
        .local_names = endpoint_is_local(given->endpoint) && !guarded && !unix_socket,
        .max_request_bytes = REQUEST_BYTES_MAX,
        .max_connections = CONNECTIONS_MAX,
        .header_timeout_ns = 10 * SECOND_NS,
        .body_timeout_ns = 10 * SECOND_NS,
        .write_timeout_ns = 60 * SECOND_NS,
        .idle_timeout_ns = 60 * SECOND_NS,
        .site = given->site,
    };
    return http_server_start(&served->server, &options, error);
}

enum status served_start(struct served **out, const struct served_options *options,
                         struct error *error) {
    struct served *served = memory_zero(1, sizeof *served);
    assert(options->endpoint != NULL && options->refresh_ns > 0);
    served->magic = SERVED_MAGIC;
    served->options = *options;
    lock_init(&served->lock);
    buffer_init(&served->page, SERVED_PAGE_MAX);
    buffer_init(&served->packed, SERVED_PAGE_MAX);
    served->gzip = gzip_make();
    const struct http_events_options events = {.max_listeners = LISTENERS_MAX,
                                               .heartbeat_ns = 10 * SECOND_NS,
                                               .read_timeout_ns = 30 * SECOND_NS,
                                               .retry_ms = RETRY_MS};
    enum status status = http_events_start(&served->events, &events, error);
    if (status == STATUS_OK)
        status = listen_on(served, error);
    if (status != STATUS_OK) {
        served_stop(served);
        return status;
    }
    char shown[ENDPOINT_SHOWN_MAX];
    endpoint_show(options->endpoint, http_server_port(served->server), shown);
    bool has_url = strncmp(shown, "unix:", strlen("unix:")) != 0;
    const char *scheme = options->tls->cert_file != NULL ? "https://" : "http://";
    log_write(LOG_INFO, (struct log_site){"C3211", options->site}, "the page is at %s%s",
              has_url ? scheme : "", shown);
    *out = served;
    return STATUS_OK;
}

// The socket is kept: if this is a reload, the next instance answers who asks meanwhile.
void served_stop(struct served *served) {
    if (served == NULL)
        return;
    assert(served->magic == SERVED_MAGIC);
    http_server_stop(served->server, SECOND_NS, true);
    http_events_stop(served->events);
    gzip_free(served->gzip);
    buffer_release(&served->page);
    buffer_release(&served->packed);
    lock_destroy(&served->lock);
    served->magic = 0;
    memory_give(served);
}

// Evaluations come at about `refresh` often, and not to the millisecond.
static uint64_t least_gap(const struct served *served, uint64_t now_ns) {
    uint64_t looked_ns = atomic_load(&served->looked_ns);
    bool looks = http_events_listeners(served->events) > 0 ||
                 (looked_ns > 0 && now_ns < looked_ns + LOOKS_NS);
    uint64_t gap_ns = (looks ? 10 : 20) * served->cost_ns;
    uint64_t refresh_ns = served->options.refresh_ns / 10 * 9;
    return gap_ns > refresh_ns ? gap_ns : refresh_ns;
}

uint64_t served_due(const struct served *served) {
    assert(served->magic == SERVED_MAGIC);
    uint64_t made_ns = served->made_ns;
    return made_ns == 0 ? 0 : made_ns + least_gap(served, clock_monotonic_ns());
}

void served_put(struct served *served, struct buffer *page, uint64_t cost_ns) {
    assert(served->magic == SERVED_MAGIC && !page->failed);
    char etag[DIGEST_ID_SIZE];
    struct slice bytes = buffer_slice(page);
    uint64_t begun_ns = clock_monotonic_ns();
    digest_id(&bytes, 1, etag);
    // Only this thread changes it.
    bool news = !served->any || strcmp(etag, served->etag) != 0;
    struct slice packed = news ? gzip_compress(served->gzip, bytes) : (struct slice){"", 0};
    served->made_ns = clock_monotonic_ns();
    served->cost_ns = cost_ns + served->made_ns - begun_ns;
    if (!news)
        return;
    lock_take(&served->lock);
    struct buffer before = served->page;
    served->page = *page;
    *page = before;
    buffer_reset(&served->packed);
    buffer_append(&served->packed, packed);
    memcpy(served->etag, etag, sizeof etag);
    served->any = true;
    lock_release(&served->lock);
    http_events_publish(served->events, etag, "page", etag);
}

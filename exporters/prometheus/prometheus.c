// SPDX-License-Identifier: Apache-2.0
// Serves the board to scrapers.
//
// After a reload the board of the instance before comes a moment after the socket: a scrape waits
// for it, as an empty page would end every series. Batches change it and scrapes write it out, each
// under the exporter's lock: a scrape is one moment between two batches. What is over is told by
// the clock of the scrape, and its memory is given back by the next batch, so that nothing has to
// wake up for it. Memory: the board (prometheus/board.h), and the body of each scrape under way,
// about 80 bytes a series.
#include "pipeline/component/component.h"

#include "base/clock.h"
#include "base/http/endpoint.h"
#include "base/http/late.h"
#include "base/http/server.h"
#include "base/log.h"
#include "base/metrics/metrics.h"
#include "base/thread.h"
#include "config/server_options.h"
#include "exporters/prometheus/board.h"

#include <pthread.h>

struct prometheus_config {
    const char *endpoint;
    int64_t max_series;
    struct duration metric_expiration;
    bool self_metrics;
    struct tls_server_config tls;
    struct auth_server_config auth;
};

struct prometheus_exporter {
    struct board board; // first, for board_state_rows
    struct lock lock;   // of all that follows and the board
    bool locking;       // the lock was made
    // Nothing is shown before the first batch or a load: until then the tables belong to whoever
    // loads them.
    bool filled;
    bool ending;
    uint64_t until_ns;      // so long a scrape waits for the first of both; 0: it does not
    pthread_cond_t changed; // filled, or ending
    uint64_t overflow_told;
    struct metric *overflow;
    bool self_metrics;
    struct http_server *server;
};

_Static_assert(offsetof(struct prometheus_exporter, board) == 0, "board_state_rows");

enum { WAIT_S = 5, CONNECTIONS_MAX = 16, REQUEST_BYTES_MAX = 4096 };
static const uint64_t SECOND_NS = UINT64_C(1000000000);

static const struct metric_family OVERFLOW = {
    .name = "culprit_series_overflow_total",
    .help = "Samples folded into an overflow series because max_series was reached.",
    .type = METRIC_COUNTER,
};

static const struct option OPTIONS[] = {
    OPTION(struct prometheus_config, endpoint, OPTION_TEXT, .claim = CLAIM_ENDPOINT,
           .address = true, .default_value = "127.0.0.1:9464",
           .help = "where to listen: HOST:PORT, [V6]:PORT or unix:/PATH; metrics are at /metrics"),
    OPTION(struct prometheus_config, max_series, OPTION_INT, .default_value = "2000", .min = 50,
           .max = 200000,
           .help = "series of all families together; ranks get at most three quarters. What "
                   "exceeds it is folded into one series a family, with the label "
                   "otel_metric_overflow"),
    OPTION(struct prometheus_config, metric_expiration, OPTION_DURATION, .default_value = "5m",
           .min = 1, .max = 31536000, .special = "never",
           .help = "how long a silent job is shown; a job with an open verdict stays"),
    OPTION(struct prometheus_config, self_metrics, OPTION_BOOL, .default_value = "false",
           .help =
               "show culprit's own metrics on the same page, for scrapers that read one port only"),
    SERVER_SECURITY_OPTIONS(struct prometheus_config),
};

static void prometheus_validate(const void *config, struct problem_list *problems) {
    const struct prometheus_config *given = config;
    endpoint_check(given->endpoint, "endpoint", problems);
    server_security_check(&given->tls, &given->auth, problems);
}

// Without a board it is worse to answer than not to.
static bool wait_for_board(struct prometheus_exporter *self) {
    assert(lock_is_held(&self->lock));
    bool waits = true;
    while (!self->filled && !self->ending && self->until_ns > 0 && waits)
        waits = cond_wait_until(&self->changed, &self->lock, self->until_ns);
    return !self->ending;
}

static void answer_metrics(void *context, const struct http_request *request,
                           struct http_response *response) {
    struct prometheus_exporter *self = context;
    struct exposition exposition;
    enum exposition_format format = exposition_negotiate(http_request_header(request, "Accept"));
    lock_take(&self->lock);
    if (!wait_for_board(self)) {
        lock_release(&self->lock);
        http_error(response, 503, "starting", "culprit starts anew: try again in a second.");
        response->retry_after_s = 1;
        return;
    }
    response->content_type = exposition_content_type(format);
    response->compress = true;
    exposition_begin(&exposition, &response->body, format);
    if (self->filled)
        board_expose(&self->board, &exposition, clock_monotonic_ns());
    lock_release(&self->lock);
    if (self->self_metrics)
        metrics_expose(&exposition);
    exposition_end(&exposition);
}

static enum status prometheus_start(void *instance, const void *config,
                                    const struct component_context *context, struct error *error) {
    struct prometheus_exporter *self = instance;
    const struct prometheus_config *given = config;
    lock_init(&self->lock);
    cond_init(&self->changed);
    self->locking = true;
    bool never = given->metric_expiration.ns == DURATION_SPECIAL;
    board_init(&self->board, (uint32_t)given->max_series,
               never ? UINT64_MAX : (uint64_t)given->metric_expiration.ns, !context->once);
    self->self_metrics = given->self_metrics;
    self->overflow = METRIC(&OVERFLOW, "exporter", context->id);
    struct http_server_options options = {
        .endpoint = given->endpoint,
        .paths = {{.path = "/metrics",
                   .methods = "GET HEAD",
                   .handler = answer_metrics,
                   .context = self}},
        .path_count = 1,
        .tls = {given->tls.cert_file, given->tls.key_file, given->tls.client_ca_file},
        .bearer_token = secret_reveal(given->auth.bearer_token),
        .bearer_token_file = given->auth.bearer_token_file,
        .max_request_bytes = REQUEST_BYTES_MAX,
        .max_connections = CONNECTIONS_MAX,
        .header_timeout_ns = 10 * SECOND_NS,
        .body_timeout_ns = 10 * SECOND_NS,
        .write_timeout_ns = 30 * SECOND_NS,
        .idle_timeout_ns = 120 * SECOND_NS, // longer than scrapes are usually apart
        .site = context->site,
    };
    lock_take(&self->lock); // no scrape is answered before it is known for what it waits
    enum status status = http_server_start(&self->server, &options, error);
    if (status == STATUS_OK && http_server_takes_over(self->server))
        self->until_ns = clock_monotonic_ns() + WAIT_S * SECOND_NS;
    lock_release(&self->lock);
    if (status != STATUS_OK)
        return status;
    char shown[ENDPOINT_SHOWN_MAX];
    endpoint_show(given->endpoint, http_server_port(self->server), shown);
    log_write(LOG_INFO, (struct log_site){"C3201", context->site},
              "metrics are at %s, path /metrics", shown);
    return STATUS_OK;
}

static void end_waiting(struct prometheus_exporter *self) {
    lock_take(&self->lock);
    self->ending = true;
    pthread_cond_broadcast(&self->changed);
    lock_release(&self->lock);
}

// The socket is kept: if this is a reload, the next instance answers who asks meanwhile.
static void prometheus_stop(void *instance) {
    struct prometheus_exporter *self = instance;
    if (!self->locking)
        return;
    if (!self->filled)
        end_waiting(self);
    http_server_stop(self->server, SECOND_NS, true);
    self->server = NULL;
    board_release(&self->board);
    pthread_cond_destroy(&self->changed);
    lock_destroy(&self->lock);
    self->locking = false;
}

static void prometheus_restored(void *instance) {
    struct prometheus_exporter *self = instance;
    lock_take(&self->lock);
    board_restored(&self->board, clock_monotonic_ns());
    self->filled = true;
    pthread_cond_broadcast(&self->changed);
    lock_release(&self->lock);
}

// Looks at the clock, which no other encoder does: latency is measured here, and what is shown
// ends with time and not with events.
static void prometheus_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct prometheus_exporter *self = instance;
    (void)out;
    if (!batch->evaluate && batch->verdicts.count == 0)
        return;
    struct board_moment now = {.monotonic_ns = clock_monotonic_ns(), .unix_ns = clock_unix_ns()};
    lock_take(&self->lock);
    board_update(&self->board, batch, now);
    if (!self->filled)
        pthread_cond_broadcast(&self->changed);
    self->filled = true;
    metric_add(self->overflow, self->board.overflow_count - self->overflow_told);
    self->overflow_told = self->board.overflow_count;
    lock_release(&self->lock);
}

const struct component_type exporter_prometheus = {
    .name = "prometheus",
    .summary = "Offers verdicts and the state of each rank for Prometheus to scrape.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct prometheus_config),
    .instance_size = sizeof(struct prometheus_exporter),
    .library = &http_server_library,
    .needs = FACT_VERDICTS,
    .validate = prometheus_validate,
    .start = prometheus_start,
    .stop = prometheus_stop,
    .state_rows = board_state_rows,
    .state_row_count = BOARD_STATE_ROWS,
    .restored = prometheus_restored,
    .exporter = {.encode = prometheus_encode},
};

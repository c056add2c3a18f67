// SPDX-License-Identifier: Apache-2.0
// The endpoint of culprit's own metrics.
//
// One thread and at most CONNECTIONS_MAX connections: a scrape is answered in well under a
// millisecond, and whoever else comes waits or is refused. Memory: the body, about 80 bytes a
// series, while it is sent.
#include "pipeline/runtime/self_metrics.h"

#include "base/http/server.h"
#include "base/metrics/exposition.h"
#include "base/metrics/metrics.h"

#include <assert.h>
#include <stdlib.h>

enum { CONNECTIONS_MAX = 16, REQUEST_BYTES_MAX = 4096 };
static const uint64_t SECOND_NS = UINT64_C(1000000000);

static void answer_metrics(void *context, const struct http_request *request,
                           struct http_response *response) {
    struct exposition exposition;
    enum exposition_format format = exposition_negotiate(http_request_header(request, "Accept"));
    (void)context;
    response->content_type = exposition_content_type(format);
    response->compress = true;
    exposition_begin(&exposition, &response->body, format);
    metrics_expose(&exposition);
    exposition_end(&exposition);
}

enum status self_metrics_start(struct http_server **server, const char *endpoint, const char *site,
                               struct error *error) {
    assert(endpoint != NULL);
    struct http_server_options options = {
        .endpoint = endpoint,
        .paths = {{.path = "/metrics", .methods = "GET HEAD", .handler = answer_metrics}},
        .path_count = 1,
        .max_request_bytes = REQUEST_BYTES_MAX,
        .max_connections = CONNECTIONS_MAX,
        .header_timeout_ns = 10 * SECOND_NS,
        .body_timeout_ns = 10 * SECOND_NS,
        .write_timeout_ns = 30 * SECOND_NS,
        .idle_timeout_ns = 120 * SECOND_NS, // longer than scrapes are usually apart
        .site = site,
    };
    return http_server_start(server, &options, error);
}

// SPDX-License-Identifier: Apache-2.0
// How are culprit's own metrics asked for?
//
// One thread and at most CONNECTIONS_MAX connections: a scrape is answered in well under a
// millisecond, and whoever else comes waits or is refused. Memory: the body, about 80 bytes a
// series, while it is sent.
#include "pipeline/runtime/self_metrics.h"

#include "base/http/server.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"

#include <stdlib.h>

enum { CONNECTIONS_MAX = 16, REQUEST_BYTES_MAX = 4096 };
static const uint64_t SECOND_NS = UINT64_C(1000000000);

struct self_metrics {
    struct http_server *server;
};

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

enum status self_metrics_start(struct self_metrics **self, const char *endpoint, const char *site,
                               struct error *error) {
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
    struct self_metrics *made = memory_zero(1, sizeof *made);
    enum status status = http_server_start(&made->server, &options, error);
    if (status != STATUS_OK) {
        memory_give(made);
        return status;
    }
    *self = made;
    return STATUS_OK;
}

void self_metrics_stop(struct self_metrics *self, bool keep) {
    if (self == NULL)
        return;
    http_server_stop(self->server, SECOND_NS, keep);
    memory_give(self);
}

// SPDX-License-Identifier: Apache-2.0
// One request from its first line to the end of its answer, as libmicrohttpd calls it: first line,
// headers, pieces of the body, its end, and once more after it rested.
//
// A refusal that is known from the headers is answered at once when the client waits to be asked
// for the body (Expect) or the body is large, and the connection ends with it; otherwise the body
// is passed over and the connection goes on.
#include "base/http/server_parts.h"
#include "base/memory.h"

#include <assert.h>
#include <strings.h>

enum {
    SPARE_MAX = 32,
    PASSED_OVER_MAX = 256 << 10,
    RESPONSE_MAX = 64 << 20,
    KEPT_RESPONSE = 64 << 10
};

// -- exchanges ----------------------------------------------------------------------------------

static struct http_exchange *take(struct http_server *server) {
    lock_take(&server->lock);
    struct http_exchange *exchange = server->spare;
    if (exchange != NULL)
        server->spare = exchange->next;
    server->active++;
    lock_release(&server->lock);
    if (exchange == NULL) {
        exchange = memory_zero(1, sizeof *exchange);
        exchange->magic = EXCHANGE_MAGIC;
        exchange->server = server;
        buffer_init(&exchange->response.body, RESPONSE_MAX);
    }
    return exchange;
}

void exchange_free(struct http_exchange *exchange) {
    assert(exchange->magic == EXCHANGE_MAGIC);
    body_release(exchange);
    buffer_release(&exchange->response.body);
    exchange->magic = 0;
    memory_give(exchange);
}

static void clear(struct http_exchange *exchange) {
    body_trim(exchange);
    struct buffer body = exchange->response.body;
    if (body.capacity > KEPT_RESPONSE) {
        buffer_release(&body);
        buffer_init(&body, RESPONSE_MAX);
    }
    buffer_reset(&body);
    *exchange = (struct http_exchange){.magic = EXCHANGE_MAGIC,
                                       .server = exchange->server,
                                       .response.body = body,
                                       .sent = exchange->sent,
                                       .decoded = exchange->decoded,
                                       .inflater = exchange->inflater};
}

static void put_back(struct http_exchange *exchange) {
    struct http_server *server = exchange->server;
    clear(exchange);
    lock_take(&server->lock);
    uint32_t spare = 0;
    for (const struct http_exchange *at = server->spare; at != NULL; at = at->next)
        spare++;
    if (spare < SPARE_MAX) {
        exchange->next = server->spare;
        server->spare = exchange;
    } else {
        exchange_free(exchange);
    }
    // Last: the server may go once nothing is active.
    assert(server->active > 0);
    server->active--;
    pthread_cond_broadcast(&server->quieter);
    lock_release(&server->lock);
}

static struct http_connection *connection_of(const struct http_server *server,
                                             struct MHD_Connection *native) {
    const union MHD_ConnectionInfo *info =
        server->library->get_connection_info(native, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_connection *connection = info == NULL ? NULL : info->socket_context;
    assert(connection == NULL || connection->magic == CONNECTION_MAGIC);
    return connection;
}

void *exchange_begin(void *context, const char *uri, struct MHD_Connection *native) {
    struct http_server *server = context;
    assert(server->magic == SERVER_MAGIC);
    struct http_exchange *exchange = take(server);
    exchange->native = native;
    exchange->connection = connection_of(server, native);
    const char *query = strchr(uri, '?');
    query = query == NULL ? "" : query + 1;
    size_t size = strlen(query);
    size = size < sizeof exchange->query ? size : sizeof exchange->query - 1;
    memcpy(exchange->query, query, size);
    exchange->query[size] = '\0';
    if (exchange->connection != NULL)
        (void)watch_enter(exchange->connection, PHASE_HEADERS, server->options.header_timeout_ns);
    return exchange;
}

void exchange_completed(void *context, struct MHD_Connection *native, void **place,
                        enum MHD_RequestTerminationCode reason) {
    (void)native;
    (void)reason;
    struct http_server *server = context;
    struct http_exchange *exchange = *place;
    *place = NULL;
    if (exchange == NULL)
        return;
    assert(exchange->magic == EXCHANGE_MAGIC && exchange->server == server);
    events_leave(exchange);
    if (exchange->connection != NULL)
        (void)watch_enter(exchange->connection, PHASE_IDLE, server->options.idle_timeout_ns);
    put_back(exchange);
}

// -- a request ----------------------------------------------------------------------------------

static enum MHD_Result take_headers(struct http_exchange *exchange, const char *url,
                                    const char *method) {
    struct http_server *server = exchange->server;
    assert(exchange->state == EXCHANGE_NEW && exchange->refusal.status == 0);
    exchange->request = (struct http_request){.exchange = exchange,
                                              .method = method,
                                              .path = url,
                                              .query = exchange->query,
                                              .body = {"", 0}};
    if (!watch_enter(exchange->connection, PHASE_BODY, server->options.body_timeout_ns))
        return MHD_NO;
    exchange_check(exchange);
    if (exchange->refusal.status == 0) {
        exchange->state = EXCHANGE_READING;
        return MHD_YES;
    }
    exchange->state = EXCHANGE_DISCARDING;
    bool chunked;
    uint64_t length = exchange_claimed_length(exchange, &chunked);
    if (!chunked && length == 0)
        return MHD_YES;
    bool asks = http_request_header(&exchange->request, "Expect") != NULL;
    if (!exchange->refusal.close && !chunked && !asks && length <= PASSED_OVER_MAX)
        return MHD_YES;
    exchange->refusal.close = true;
    exchange->connection->linger = server->options.tls.cert_file == NULL;
    return exchange_send(exchange);
}

static enum MHD_Result take_piece(struct http_exchange *exchange, const char *data, size_t size) {
    assert(data != NULL && size > 0);
    const struct http_server_options *options = &exchange->server->options;
    if (exchange->state == EXCHANGE_READING) {
        if (exchange->sent.size + size > options->max_request_bytes) {
            exchange_refuse(exchange, 413, "too_large",
                            "The body is larger than %llu bytes: send less in one request.",
                            (unsigned long long)options->max_request_bytes);
            exchange->refusal.close = true;
        } else if (body_append(exchange, data, size)) {
            return MHD_YES;
        } else {
            exchange_refuse(exchange, 503, "busy",
                            "Too many requests are being read: try again later.");
        }
        exchange->state = EXCHANGE_DISCARDING;
    }
    // An answer can only be given at the end of the body: wait for it, but not for ever.
    exchange->discarded += size;
    if (exchange->discarded <= options->max_request_bytes + PASSED_OVER_MAX)
        return MHD_YES;
    answer_count(exchange->server, exchange->refusal.status);
    return MHD_NO;
}

// A stream of events; for HEAD its headers alone.
static enum MHD_Result stream(struct http_exchange *exchange) {
    assert(exchange->path->events != NULL && exchange->listener.channel == NULL);
    if (strcmp(exchange->request.method, "HEAD") != 0 && !events_join(exchange))
        exchange_refuse(exchange, 503, "busy", "Too many clients listen here: try again later.");
    else
        answer_stream(exchange);
    return exchange_send(exchange);
}

static enum MHD_Result handle(struct http_exchange *exchange) {
    if (!watch_enter(exchange->connection, PHASE_HANDLING, 0))
        return MHD_NO;
    exchange->request.body =
        (struct slice){exchange->sent.size == 0 ? "" : exchange->sent.data, exchange->sent.size};
    if (exchange->gzip)
        body_inflate(exchange);
    if (exchange->refusal.status != 0)
        return exchange_send(exchange);
    assert(exchange->path != NULL && exchange->state == EXCHANGE_READING);
    exchange->state = EXCHANGE_ANSWERED;
    if (exchange->path->events != NULL)
        return stream(exchange);
    exchange->path->handler(exchange->path->context, &exchange->request, &exchange->response);
    // With `later` somebody else has it now; this function is called again when it is answered.
    if (!exchange->later)
        return exchange_send(exchange);
    body_drop(exchange);
    return MHD_YES;
}

enum MHD_Result exchange_access(void *context, struct MHD_Connection *native, const char *url,
                                const char *method, const char *version, const char *data,
                                size_t *data_size, void **place) {
    (void)context;
    (void)native;
    assert(((const struct http_server *)context)->magic == SERVER_MAGIC);
    (void)version;
    struct http_exchange *exchange = *place;
    if (exchange == NULL || exchange->connection == NULL)
        return MHD_NO;
    assert(exchange->magic == EXCHANGE_MAGIC);
    switch (exchange->state) {
    case EXCHANGE_NEW:
        return take_headers(exchange, url, method);
    case EXCHANGE_READING:
    case EXCHANGE_DISCARDING:
        if (*data_size > 0) {
            size_t size = *data_size;
            *data_size = 0;
            return take_piece(exchange, data, size);
        }
        return exchange->state == EXCHANGE_READING ? handle(exchange) : exchange_send(exchange);
    case EXCHANGE_ANSWERED:
        return exchange_send(exchange);
    }
    return MHD_NO;
}

// -- answers that come later --------------------------------------------------------------------

void http_answer_later(const struct http_request *request) {
    struct http_exchange *exchange = request->exchange;
    assert(exchange->magic == EXCHANGE_MAGIC && !exchange->later);
    struct http_server *server = exchange->server;
    exchange->later = true;
    lock_take(&server->lock);
    server->waiting++;
    lock_release(&server->lock);
    server->library->suspend_connection(exchange->native);
}

void http_answer(struct http_exchange *exchange) {
    assert(exchange->magic == EXCHANGE_MAGIC && exchange->later);
    struct http_server *server = exchange->server;
    server->library->resume_connection(exchange->native);
    lock_take(&server->lock);
    assert(server->waiting > 0);
    server->waiting--;
    pthread_cond_broadcast(&server->quieter);
    lock_release(&server->lock);
}

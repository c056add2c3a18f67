// SPDX-License-Identifier: Apache-2.0
// The answer's way out: status, headers, body, gzip when the client takes it.
#include "base/http/server_parts.h"
#include "base/memory.h"
#include "base/text/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const char type_text[] = "text/plain; charset=utf-8";
static const char type_json[] = "application/json";

void http_error(struct http_response *response, int status, const char *code, const char *message) {
    assert(status >= 400 && status <= 599 && code != NULL && message != NULL);
    response->status = status;
    response->content_type = type_json;
    struct json_writer json;
    json_begin(&json, &response->body, 0);
    json_object_open(&json);
    json_field_object_open(&json, "error");
    json_field_text(&json, "code", code);
    json_field_text(&json, "message", message);
    json_object_close(&json);
    json_object_close(&json);
    buffer_append_char(&response->body, '\n');
}

void answer_count(struct http_server *server, int status) {
    assert(server->magic == SERVER_MAGIC && status >= 200 && status <= 599);
    if (server->options.answered != NULL)
        server->options.answered(server->options.answered_context, status);
}

// Named, or covered by *, and not with q=0.
bool http_takes_gzip(const struct http_request *request) {
    const char *at = http_request_header(request, "Accept-Encoding");
    bool any = false;
    while (at != NULL && *at != '\0') {
        at += strspn(at, " \t,");
        size_t size = strcspn(at, ",");
        size_t name = strcspn(at, ";, \t");
        const char *quality = memchr(at, ';', size);
        double weight = 1;
        if (quality != NULL) {
            quality += 1 + strspn(quality + 1, " \t");
            weight = strncasecmp(quality, "q=", 2) == 0 ? strtod(quality + 2, NULL) : 1;
        }
        if (name == 4 && strncasecmp(at, "gzip", 4) == 0)
            return weight > 0;
        if (name == 1 && *at == '*')
            any = weight > 0;
        at += size;
    }
    return any;
}

// The comparison is the weak one (RFC 9110, 13.1.2).
bool http_has_current(const struct http_request *request, const char *etag) {
    assert(etag != NULL && strlen(etag) < HTTP_ETAG_MAX);
    const char *at = http_request_header(request, "If-None-Match");
    size_t size = strlen(etag);
    while (size > 0 && at != NULL && *at != '\0') {
        at += strspn(at, " \t,");
        if (*at == '*')
            return true;
        at += strncmp(at, "W/", 2) == 0 ? 2 : 0;
        if (*at == '"' && strncmp(at + 1, etag, size) == 0 && at[1 + size] == '"')
            return true;
        at += strcspn(at, ",");
    }
    return false;
}

static void write_refusal(struct http_exchange *exchange) {
    struct http_response *response = &exchange->response;
    const struct http_refusal *refusal = &exchange->refusal;
    assert(refusal->status >= 400 && refusal->code != NULL);
    response->status = refusal->status;
    response->compress = response->compressed = false;
    response->etag[0] = '\0';
    buffer_reset(&response->body);
    if (refusal->status == 503 && response->retry_after_s == 0)
        response->retry_after_s = 1;
    if (exchange->path != NULL && exchange->path->write_error != NULL)
        exchange->path->write_error(exchange->path->context, &exchange->request, refusal->code,
                                    refusal->message, response);
    else
        http_error(response, refusal->status, refusal->code, refusal->message);
}

static const char type_events[] = "text/event-stream";
// Proxies must neither keep a stream nor collect it (X-Accel-Buffering: nginx).
static const char *const stream_headers[] = {"Cache-Control", "no-store", "X-Accel-Buffering", "no",
                                             NULL};
enum { STREAM_BLOCK = 1024 };

void answer_stream(struct http_exchange *exchange) {
    assert(exchange->refusal.status == 0);
    exchange->response.content_type = type_events;
    exchange->response.headers = stream_headers;
}

static struct MHD_Response *make_stream(struct http_exchange *exchange) {
    assert(exchange->path->events != NULL && exchange->listener.channel != NULL);
    return exchange->server->library->create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                                    events_read, exchange, NULL);
}

static struct MHD_Response *make(struct http_exchange *exchange) {
    if (exchange->listener.channel != NULL)
        return make_stream(exchange);
    const struct http_library *library = exchange->server->library;
    struct slice body = buffer_slice(&exchange->response.body);
    size_t size = 0;
    char *compressed = NULL;
    if (exchange->response.compress && http_takes_gzip(&exchange->request))
        compressed = body_deflate(exchange->server, body, &size);
    if (compressed != NULL)
        body = (struct slice){compressed, size};
    struct MHD_Response *made = library->create_response_from_buffer(
        body.size, (void *)(body.size == 0 ? "" : body.data), MHD_RESPMEM_MUST_COPY);
    memory_give(compressed);
    if (made == NULL)
        return NULL;
    if (compressed != NULL || exchange->response.compressed)
        library->add_response_header(made, "Content-Encoding", "gzip");
    if (exchange->response.compress || exchange->response.compressed)
        library->add_response_header(made, "Vary", "Accept-Encoding");
    return made;
}

static void add_headers(struct http_exchange *exchange, struct MHD_Response *made) {
    assert(made != NULL && exchange->response.status >= 200);
    const struct http_library *library = exchange->server->library;
    const struct http_response *response = &exchange->response;
    library->add_response_header(
        made, "Content-Type", response->content_type == NULL ? type_text : response->content_type);
    if (response->retry_after_s > 0) {
        char text[16];
        snprintf(text, sizeof text, "%u", (unsigned)response->retry_after_s);
        library->add_response_header(made, "Retry-After", text);
    }
    const char *const *header = response->headers;
    for (; header != NULL && header[0] != NULL; header += 2)
        library->add_response_header(made, header[0], header[1]);
    if (response->etag[0] != '\0') {
        char quoted[HTTP_ETAG_MAX + 2];
        snprintf(quoted, sizeof quoted, "\"%s\"", response->etag);
        library->add_response_header(made, "ETag", quoted);
    }
    if (response->status == 401 && exchange->server->options.basic)
        library->add_response_header(made, "WWW-Authenticate",
                                     "Basic realm=\"culprit\", charset=\"UTF-8\"");
    if (response->status == 401)
        library->add_response_header(made, "WWW-Authenticate", "Bearer realm=\"culprit\"");
    if (response->status == 405 && exchange->path != NULL) {
        // "GET HEAD" to "GET, HEAD": each space becomes a comma and a space.
        char listed[128];
        size_t used = 0;
        for (const char *at = exchange->path->methods; *at != '\0' && used + 2 < sizeof listed;
             at++) {
            if (*at == ' ')
                listed[used++] = ',';
            listed[used++] = *at;
        }
        listed[used] = '\0';
        library->add_response_header(made, "Allow", listed);
    }
    if (response->status == 415)
        library->add_response_header(made, "Accept-Encoding", "gzip, identity");
    if (exchange->refusal.close || atomic_load(&exchange->server->stopping))
        library->add_response_header(made, "Connection", "close");
}

enum MHD_Result exchange_send(struct http_exchange *exchange) {
    struct http_server *server = exchange->server;
    assert(exchange->magic == EXCHANGE_MAGIC && exchange->native != NULL);
    if (exchange->refusal.status != 0)
        write_refusal(exchange);
    else if (exchange->response.etag[0] != '\0' &&
             http_has_current(&exchange->request, exchange->response.etag)) {
        exchange->response.status = 304;
        buffer_reset(&exchange->response.body);
    }
    if (exchange->response.status == 0)
        exchange->response.status = 200;
    if (exchange->response.body.failed) {
        buffer_reset(&exchange->response.body);
        http_error(&exchange->response, 500, "too_large", "The answer is larger than is allowed.");
    }
    if (!watch_enter(exchange->connection, PHASE_WRITING, server->options.write_timeout_ns))
        return MHD_NO;
    struct MHD_Response *made = make(exchange);
    if (made == NULL)
        return MHD_NO;
    add_headers(exchange, made);
    enum MHD_Result result = server->library->queue_response(
        exchange->native, (unsigned)exchange->response.status, made);
    server->library->destroy_response(made);
    if (result == MHD_YES)
        answer_count(server, exchange->response.status);
    return result;
}

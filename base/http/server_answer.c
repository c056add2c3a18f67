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

// Whether Accept-Encoding takes gzip: named, or covered by *, and not with q=0.
static bool takes_gzip(const struct http_exchange *exchange) {
    const char *at = http_request_header(&exchange->request, "Accept-Encoding");
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

static void write_refusal(struct http_exchange *exchange) {
    struct http_response *response = &exchange->response;
    const struct http_refusal *refusal = &exchange->refusal;
    assert(refusal->status >= 400 && refusal->code != NULL);
    response->status = refusal->status;
    response->compress = false;
    buffer_reset(&response->body);
    if (refusal->status == 503 && response->retry_after_s == 0)
        response->retry_after_s = 1;
    if (exchange->path != NULL && exchange->path->write_error != NULL)
        exchange->path->write_error(exchange->path->context, &exchange->request, refusal->code,
                                    refusal->message, response);
    else
        http_error(response, refusal->status, refusal->code, refusal->message);
}

static struct MHD_Response *make(struct http_exchange *exchange) {
    const struct http_library *library = exchange->server->library;
    struct slice body = buffer_slice(&exchange->response.body);
    size_t size = 0;
    char *compressed = NULL;
    if (exchange->response.compress && takes_gzip(exchange))
        compressed = body_deflate(exchange->server, body, &size);
    if (compressed != NULL)
        body = (struct slice){compressed, size};
    struct MHD_Response *made = library->create_response_from_buffer(
        body.size, (void *)(body.size == 0 ? "" : body.data), MHD_RESPMEM_MUST_COPY);
    memory_give(compressed);
    if (made == NULL)
        return NULL;
    if (compressed != NULL)
        library->add_response_header(made, "Content-Encoding", "gzip");
    if (exchange->response.compress)
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

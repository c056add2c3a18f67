// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 listener, for the receiver and for the endpoints that culprit offers: libmicrohttpd
// with every bound set.
//
// A request's body is collected (and inflated when it came as gzip) within its limit before the
// handler is called; the handler answers from it, on one of the listener's threads. What is wrong
// with the request itself (too large, too slow, no such path, wrong method, no credential, bad
// gzip) is answered here. Paths match exactly, but for a "?query", which is cut off.
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

struct http_server;

enum { HTTP_PATHS_MAX = 16 };

struct http_request {
    const char *method; // "POST"
    const char *path;   // "/v1/events"
    const char *query;  // "" when there is none; still percent-encoded
    struct slice body;  // decoded; lives until the handler returns, may be changed by it
    void *native;       // for http_request_header
};
// A header's value, or NULL. `name` in any case.
const char *http_request_header(const struct http_request *request, const char *name);

struct http_response {
    int status;               // 200 when left as it is
    const char *content_type; // static text; "text/plain; charset=utf-8" when left
    uint32_t retry_after_s;   // 0: no Retry-After
    struct buffer body;       // the handler appends to it
    bool compress;            // gzip it when the client takes that
};

// Called on a thread of the listener, several at once.
typedef void http_handler(void *context, const struct http_request *request,
                          struct http_response *response);

struct http_path {
    const char *path;    // "/v1/events"; "" matches what no other path does
    const char *methods; // "GET HEAD", "POST"; others get 405 with Allow
    // Media types that are taken, separated by spaces ("application/json application/x-ndjson");
    // others get 415. NULL: any, also none.
    const char *content_types;
    http_handler *handler;
    void *context;
};

struct http_tls {
    const char *cert_file;      // PEM; NULL: plain HTTP
    const char *key_file;       // PEM
    const char *client_ca_file; // PEM; clients must show a certificate it signed
};

struct http_server_options {
    // "127.0.0.1:4318", "[::1]:4318", "localhost:0", "unix:/run/culprit/http.sock"
    const char *endpoint;
    struct http_path paths[HTTP_PATHS_MAX];
    uint32_t path_count;
    struct http_tls tls;
    // Text of the token, without "Bearer "; NULL: none is asked for. With a file it is read again
    // when the file changes.
    const char *bearer_token;
    const char *bearer_token_file;
    uint64_t max_request_bytes; // of a body, both as sent and decoded
    uint32_t max_connections;
    uint32_t max_connections_per_address; // 0: no bound of its own
    uint32_t threads;                     // 0: one
    uint64_t header_timeout_ns, body_timeout_ns, write_timeout_ns, idle_timeout_ns;
    // Asked before a body of `bytes` (0: unknown yet) is read. Returns 0 to go on, or 429 or 503
    // with *retry_after_s. NULL: always goes on.
    int (*admit)(void *context, uint64_t bytes, uint32_t *retry_after_s);
    void *admit_context;
    const char *site; // for logs, "receiver/http"
};

// Counters since the start, for metrics; any thread.
struct http_server_figures {
    uint64_t requests;
    uint64_t responses_2xx, responses_4xx, responses_5xx;
    uint64_t received_bytes; // bodies as sent
    uint64_t connections;    // open now
};

// Listens and answers until it is stopped. The listening socket of an endpoint is kept when the
// server stops with `keep` and taken up by the next server of that endpoint, so that a reload
// refuses nobody. STATUS_CANNOT_CREATE when the port is taken (the message names it), STATUS_CONFIG
// when certificate or token cannot be read. Option texts must live as long as the server.
enum status http_server_start(struct http_server **server,
                              const struct http_server_options *options,
                              struct error *error) MUST_USE;
// The port that was chosen for ":0"; 0 for a unix socket.
uint16_t http_server_port(const struct http_server *server);
void http_server_figures(const struct http_server *server, struct http_server_figures *figures);
// Accepts nothing new; requests under way get up to `grace_ns` to end. NULL is fine.
void http_server_stop(struct http_server *server, uint64_t grace_ns, bool keep);
// Closes the sockets that were kept and not taken up.
void http_server_drop_kept(void);

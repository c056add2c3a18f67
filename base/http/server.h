// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 listener, for the receiver and for the endpoints that culprit offers: libmicrohttpd
// with every bound set.
//
// A request's body is collected (and inflated when it came as gzip) within its limit before the
// handler is called; the handler answers from it, on one of the listener's threads. What is wrong
// with the request itself (too large, too slow, no such path, wrong method, no credential, bad
// gzip) is answered here. Paths match exactly, but for a "?query", which is cut off. What is not
// HTTP at all, and headers beyond 32 KiB, are answered by libmicrohttpd in its own words.
//
// Cost: a few threads, whatever the number of connections, and one that accepts them and sleeps
// until the next deadline; with no connection open, and while clients rest, nothing wakes up. With
// TLS a request looks at all connections of its thread, some 0.1 us each. Memory: 64 KiB a
// connection, and bodies within max_pending_bytes; what a request needs is used again by the next.
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

struct http_server;

enum { HTTP_PATHS_MAX = 16 };

struct http_exchange;
struct http_events;

struct http_request {
    struct http_exchange *exchange;
    const char *method; // "POST"
    const char *path;   // "/v1/events"
    const char *query;  // "" when there is none; still percent-encoded
    struct slice body;  // decoded; lives until the handler returns, may be changed by it
};
// A header's value, or NULL. `name` in any case.
const char *http_request_header(const struct http_request *request, const char *name);

enum { HTTP_ETAG_MAX = 40 };

struct http_response {
    int status;               // 200 when left as it is
    const char *content_type; // static text; "text/plain; charset=utf-8" when left
    uint32_t retry_after_s;   // 0: no Retry-After
    struct buffer body;       // the handler appends to it
    bool compress;            // gzip it when the client takes that
    bool compressed;          // the body is gzip already (http_takes_gzip)
    // Names and values by turns, ended by NULL; static. NULL: none.
    const char *const *headers;
    // Names this body, without quotes; "": no ETag. A handler may leave the body empty when
    // http_has_current says that the client has it: it is answered 304.
    char etag[HTTP_ETAG_MAX];
};
// Whether the client takes gzip (Accept-Encoding).
bool http_takes_gzip(const struct http_request *request);
// Whether If-None-Match names `etag`.
bool http_has_current(const struct http_request *request, const char *etag);

// Called on a thread of the listener, several at once.
typedef void http_handler(void *context, const struct http_request *request,
                          struct http_response *response);
// A handler that has to wait for something calls this and returns; the connection rests meanwhile
// and its thread serves others. The response stays valid until http_answer, which sends what it
// holds then; the request's body is gone once the handler returns. It must be called exactly once,
// from any thread, within a bounded time: http_server_stop waits for it.
void http_answer_later(const struct http_request *request);
void http_answer(struct http_exchange *exchange);

// The body of an answer that is made here: an error. `code` is a word for programs ("too_large"),
// `message` a sentence for people.
typedef void http_error_writer(void *context, const struct http_request *request, const char *code,
                               const char *message, struct http_response *response);
// What is written without one: {"error":{"code":"too_large","message":"…"}}. For handlers, too.
void http_error(struct http_response *response, int status, const char *code, const char *message);

struct http_path {
    const char *path;    // "/v1/events"; "" matches what no other path does
    const char *methods; // "GET HEAD", "POST"; others get 405 with Allow
    // Media types that are taken, separated by spaces ("application/json application/x-ndjson");
    // others get 415. NULL: any, also none.
    const char *content_types;
    http_handler *handler;
    http_error_writer *write_error; // NULL: http_error; response->status is set already
    void *context;                  // of both
    // A stream of events (base/http/events.h) instead of an answer of `handler`; NULL: none. It
    // lives longer than the server, which ends all streams when it stops.
    struct http_events *events;
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
    // The token is taken as the password of Basic authentication, too, with any user: a browser
    // asks for it.
    bool basic;
    // Requests must name this machine in Host (localhost, 127.0.0.0/8, [::1]): what else a browser
    // was led here by is a page of somebody else (DNS rebinding).
    bool local_names;
    uint64_t max_request_bytes; // of a body, both as sent and decoded
    // Of all bodies that are in memory at once; beyond it requests get 503. 0: 4 times the above.
    uint64_t max_pending_bytes;
    uint32_t max_connections;
    uint32_t max_connections_per_address; // 0: no bound of its own
    uint32_t threads;                     // 0: one
    // How long headers, body and answer may take in all, and a connection may rest; 0: for ever.
    uint64_t header_timeout_ns, body_timeout_ns, write_timeout_ns, idle_timeout_ns;
    // Asked before a body of `bytes` (0: unknown yet) is read. Returns 0 to go on, or 429 or 503
    // with *retry_after_s. NULL: always goes on.
    int (*admit)(void *context, uint64_t bytes, uint32_t *retry_after_s);
    void *admit_context;
    // Told of every answer's status, also of those that are made here; any thread. NULL: nobody.
    void (*answered)(void *context, int status);
    void *answered_context;
    const char *speaks; // a clause for logs of clients with another protocol; NULL: HTTP/1.1
    const char *site;   // for logs, "receiver/http"
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
// Whether it goes on with the socket of a server that was stopped, as after a reload.
bool http_server_takes_over(const struct http_server *server);
uint64_t http_server_connections(const struct http_server *server); // open now; any thread
// Accepts nothing new; requests under way get up to `grace_ns` to end. NULL is fine.
void http_server_stop(struct http_server *server, uint64_t grace_ns, bool keep);
// From now until http_server_drop_kept, a server that is started goes on with the certificate, the
// key and the token of the one of its endpoint that was stopped with `keep`, whatever the files say
// now: for a reload that failed.
void http_server_fall_back(void);
// Closes the sockets that were kept and not taken up, and forgets what was read from files.
void http_server_drop_kept(void);

// SPDX-License-Identifier: Apache-2.0
// An HTTP client for exporters: one request at a time on one libcurl handle, which keeps its
// connection.
//
// Certificates are checked. Redirects are not followed: they would carry a key elsewhere, or make a
// GET of a POST. Nothing but http and https is spoken. Proxies are those of the environment
// (https_proxy, no_proxy …) unless one is given; trusted authorities those of `ca_file`,
// $CURL_CA_BUNDLE, $SSL_CERT_FILE or the system. Only the answer's first `reply_max` bytes are
// kept. No message shows more of a URL than scheme, host and port, and none a token, a password or
// the value of a header.
//
// One thread at a time.
#pragma once

#include "base/buffer.h"
#include "base/http/tls.h"

#include <stdbool.h>

struct http_client; // opaque

// All texts live as long as the client; NULL where nothing is given.
struct http_client_options {
    const char *url;   // for calls without one of their own; treated as a secret from its path on
    const char *proxy; // instead of that of the environment
    struct http_client_tls tls;
    const char *const *headers; // "Name: value", with every call; values are treated as secrets
    size_t header_count;
    const char *user, *password; // Basic
    const char *bearer_token;
    const char *bearer_token_file; // read again when it changes
    uint64_t timeout_ns;           // of a call; a body gets more, a second for each 128 KiB
    size_t reply_max;              // bytes of a reply's body
    bool refuses_long_replies;     // a longer one is a failure; else the rest is passed over
    size_t receive_size;           // bytes that are read at once; 0: libcurl's own choice, 16 KiB
    bool accept_gzip;              // ask for gzip; `reply_max` is of what comes out of it
};

struct http_call {
    const char *method;         // "POST", "PUT"; "GET" when `body` is empty and there is no file
    const char *url;            // NULL: that of the options
    const char *const *headers; // "Name: value"; those that are no header are left out
    size_t header_count;
    struct slice body;
    int file; // with file_size > 0 the body is file_size bytes of this, from file_offset on
    uint64_t file_offset, file_size;
};

// What a status says of sending the same request again.
enum http_class {
    HTTP_OK,      // 2xx
    HTTP_RETRY,   // may pass later: no answer at all, 408, 425, 429, 5xx but 501 and 505
    HTTP_REFUSED, // this request will always fail, others need not: 400, 413, 422 …
    HTTP_DEAD,    // every request will fail: 3xx, 401, 403, 404, 405, 407, 410, 501, 505
};
enum http_class http_class_of(long status);

// Valid until the next call.
struct http_reply {
    long status; // 0: there was none, or none that could be taken
    bool whole;  // the body came to its end
    struct buffer body;
    uint64_t retry_after_ns; // Retry-After in seconds or as a date, at most an hour; 0: none
};

// Loads libcurl and reads the token's file; no network. STATUS_CONFIG when a file cannot be read or
// the URL cannot be requested.
enum status http_client_open(struct http_client **client, const struct http_client_options *options,
                             struct error *error) MUST_USE;
void http_client_close(struct http_client *client); // NULL is fine

// Sends one request and reads its reply. But for HTTP_OK `error` says what failed, with the
// beginning of what the server says: STATUS_CONFIG when
// the URL cannot be requested (HTTP_DEAD), else STATUS_IO.
enum http_class http_client_send(struct http_client *client, const struct http_call *call,
                                 struct error *error) MUST_USE;
const struct http_reply *http_client_reply(const struct http_client *client);
// Puts the reply's body into `other`, and the memory of `other`, emptied, in its place: for clients
// that are many and whose replies come one after the other.
void http_client_swap_body(struct http_client *client, struct buffer *other);
// The value of the reply's header, in any case; empty when it is not there.
struct slice http_client_header(const struct http_client *client, const char *name);

// Takes everything secret of the options out of a text that came back: tokens, passwords, header
// values, the proxy's user, and the URL behind its host, also as they stand in an Authorization
// header. In place, in a buffer of `capacity` bytes.
void http_client_redact(const struct http_client *client, char *text, size_t capacity);
// Percent-encoded for a part of a path.
void http_client_escape(const struct http_client *client, struct buffer *out, const char *text);

// -- for client_set.c, which drives the transfers itself ------------------------------------------

// Asked before a reply's body grows; false: the reply fails as one that is too long. NULL: only
// `reply_max` bounds it.
struct http_client_room {
    bool (*for_more)(void *context, size_t bytes);
    void *context;
};
// Sets the client up for the call, which stays until http_client_end or http_client_let_go. False:
// it cannot be made; `class` and `error` are as of http_client_send.
bool http_client_begin(struct http_client *client, const struct http_call *call,
                       struct http_client_room room, enum http_class *class,
                       struct error *error) MUST_USE;
void *http_client_handle(const struct http_client *client); // CURL *, of the call that was begun
// The transfer is over with this CURLcode: what became of the call, as of http_client_send.
enum http_class http_client_end(struct http_client *client, int code, struct error *error) MUST_USE;
void http_client_let_go(struct http_client *client); // the call is given up

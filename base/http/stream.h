// SPDX-License-Identifier: Apache-2.0
// HTTP requests whose answers come piece by piece and may take long: watches. Several are under way
// at once on one libcurl multi handle, over HTTP/1.1 or 2.
//
// Certificates, redirects, proxies and messages are as in base/http/client.h. A peer that is gone
// is found by TCP keepalive (after about two minutes) or by the request's own time limit, never by
// silence. One thread at a time; the callbacks run on it, within http_streams_wait.
#pragma once

#include "base/buffer.h"
#include "base/http/tls.h"

struct http_streams; // opaque: those under way
struct http_stream;  // opaque: one request

// Texts are copied, but for `tls`, which lives as long as the stream.
struct http_stream_options {
    const char *url;
    const char *const *headers; // "Name: value"
    size_t header_count;
    const char *bearer_token; // NULL: none; never in a message
    const struct http_client_tls *tls;
    uint64_t timeout_ns; // the answer must have ended by then
    // Takes the next bytes of the body of an answer with status 2xx; they are gone when it
    // returns. False: the stream ends.
    bool (*take)(void *context, struct slice bytes);
    void *context;
    size_t reply_max; // bytes kept of the body of any other answer
};

// Valid until the stream is freed.
struct http_stream_result {
    long status;  // 0: there was no answer
    bool whole;   // the body came to its end
    bool stopped; // `take` said so
    struct slice reply;
    uint64_t retry_after_ns; // 0: none
    const char *problem;     // why there is no answer, or no whole one; "": no reason
};

// Loads libcurl. No network.
enum status http_streams_open(struct http_streams **streams, struct error *error) MUST_USE;
// None may be under way. NULL is fine.
void http_streams_close(struct http_streams *streams);

// Sends the request. STATUS_CONFIG when it cannot be requested.
enum status http_stream_begin(struct http_streams *streams, struct http_stream **stream,
                              const struct http_stream_options *options,
                              struct error *error) MUST_USE;
// Also of one that is under way. NULL is fine.
void http_stream_free(struct http_stream *stream);

// Waits until bytes came, the descriptor (-1: none) is readable, or the time is over; then hands
// over what came.
void http_streams_wait(struct http_streams *streams, int descriptor, uint64_t timeout_ns);
// One that has ended since and that was not given yet; NULL: none. Its `context` is the caller's.
struct http_stream *http_streams_ended(struct http_streams *streams);
void *http_stream_context(const struct http_stream *stream);
// The status of the answer so far, 0: none yet.
long http_stream_status(const struct http_stream *stream);
struct http_stream_result http_stream_result(const struct http_stream *stream);

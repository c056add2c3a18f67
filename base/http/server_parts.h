// SPDX-License-Identifier: Apache-2.0
// Inside the HTTP listener: a server, a connection, an exchange (one request with its answer), and
// what each of the files that make it up does.
//
// A connection is used by one thread of libmicrohttpd at a time, and its deadline by the watch
// thread through one atomic. An exchange belongs to its connection's thread, or between
// http_answer_later and http_answer to whoever answers.
#pragma once

#include "base/http/library.h"
#include "base/http/server.h"
#include "base/http/token_file.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <zlib.h>

enum { HTTP_QUERY_MAX = 1024, HTTP_MESSAGE_MAX = 320 };

// What comes back from libmicrohttpd as a void * begins with one of these.
enum { SERVER_MAGIC = 0x48535256, CONNECTION_MAGIC = 0x48434f4e, EXCHANGE_MAGIC = 0x48455843 };

// -- one connection -----------------------------------------------------------------------------

// What a connection's time is counted for. A deadline stands in the upper bits of the same word.
enum connection_phase {
    PHASE_IDLE,    // between requests
    PHASE_HEADERS, // from the connection's beginning, or a request's first line
    PHASE_BODY,
    PHASE_HANDLING, // ours: no deadline
    PHASE_WRITING,
    PHASE_EXPIRED, // its time is over: it is being closed
};

struct http_connection {
    uint32_t magic; // CONNECTION_MAGIC
    struct http_server *server;
    struct http_connection *previous, *next; // of the watch, under its lock
    int descriptor;
    atomic_uint_fast64_t phase; // deadline in ns << 3 | enum connection_phase
    bool client_checked;        // its certificate was looked at …
    bool client_shown;          // … there is one …
    bool client_right;          // … and is right
    bool linger;                // what the client still sends is read away after the end
};

// -- one request and its answer -----------------------------------------------------------------

struct http_bytes {
    char *data;
    size_t size;
    size_t capacity;
};

struct http_refusal {
    int status;       // 0: none
    const char *code; // static
    bool close;
    char message[HTTP_MESSAGE_MAX];
};

// What an exchange has as a listener of a stream of events.
struct http_listener {
    struct http_events *channel;           // NULL: it is none
    struct http_exchange *previous, *next; // of the channel, under its lock, like what follows
    uint64_t sequence;                     // of the message that it was given last
    size_t given;                          // bytes of response.body that libmicrohttpd took
    bool suspended;
    bool beat; // it gets a heartbeat
};

enum exchange_state {
    EXCHANGE_NEW,
    EXCHANGE_READING,
    EXCHANGE_DISCARDING, // refused: the rest of the body is passed over
    EXCHANGE_ANSWERED,   // by the handler; the answer is yet to be sent
};

struct http_exchange {
    uint32_t magic;             // EXCHANGE_MAGIC
    struct http_exchange *next; // in the list of those that are not in use
    struct http_server *server;
    struct http_connection *connection;
    struct MHD_Connection *native;
    enum exchange_state state;
    const struct http_path *path;
    struct http_request request;
    struct http_response response;
    struct http_refusal refusal;
    struct http_listener listener;
    bool gzip;
    bool later;
    uint64_t discarded;
    struct http_bytes sent;    // the body as it came
    struct http_bytes decoded; // gzip taken off
    z_stream *inflater;        // kept with the exchange
    char query[HTTP_QUERY_MAX];
};

// -- the server ---------------------------------------------------------------------------------

struct token_watch {
    struct lock lock;
    bool asked;             // clients must show it
    struct token_file file; // `path` NULL: the text is all
};

enum { LINGER_MAX = 64 };

struct accepting {
    struct lock lock;
    bool open; // under the lock; a connection is taken under it, too
    // Of the watch thread:
    uint64_t not_before_ns; // monotonic
    bool failing;           // that was told
};

struct connection_watch {
    pthread_t thread;
    bool running;
    int wake_descriptor; // an eventfd
    struct lock lock;    // of what follows
    bool ending;
    struct http_connection *first;
    atomic_uint_fast64_t next_ns; // when it looks again; UINT64_MAX: when it is told to
    struct {
        int descriptor;
        uint64_t until_ns;
    } linger[LINGER_MAX];
    uint32_t linger_count;
};

struct http_server {
    uint32_t magic; // SERVER_MAGIC
    struct http_server_options options;
    const struct http_library *library;
    const struct tls_library *tls; // NULL: no client certificates are asked for
    struct MHD_Daemon *daemon;
    int descriptor; // of the listening socket
    uint16_t port;
    bool takes_over; // the socket was another server's
    atomic_bool stopping;
    struct token_watch token;
    struct accepting accepting;
    struct connection_watch watch;
    char *key_text, *cert_text, *client_ca_text;

    struct lock lock; // of what follows
    pthread_cond_t quieter;
    struct http_exchange *spare;
    uint32_t active;  // exchanges in use
    uint32_t waiting; // of them answered later
    z_stream *deflater;

    atomic_uint_fast64_t pending_bytes; // capacity of all bodies
    atomic_uint_fast64_t connections;   // open now, from accept on
};

// server_exchange.c: what libmicrohttpd calls.
enum MHD_Result exchange_access(void *context, struct MHD_Connection *native, const char *url,
                                const char *method, const char *version, const char *data,
                                size_t *data_size, void **exchange);
void *exchange_begin(void *context, const char *uri, struct MHD_Connection *native);
void exchange_completed(void *context, struct MHD_Connection *native, void **exchange,
                        enum MHD_RequestTerminationCode reason);
void exchange_free(struct http_exchange *exchange);

// server_check.c: refusals that need no body. Fills exchange->refusal, or leaves it.
void exchange_check(struct http_exchange *exchange);
void exchange_refuse(struct http_exchange *exchange, int status, const char *code,
                     const char *format, ...) PRINTF_LIKE(4, 5);
// Length that the request claims; `chunked`: it does not say.
uint64_t exchange_claimed_length(const struct http_exchange *exchange, bool *chunked);

// server_answer.c: sends what exchange->response or exchange->refusal holds.
enum MHD_Result exchange_send(struct http_exchange *exchange);
void answer_count(struct http_server *server, int status);
// Type and headers of a stream of events.
void answer_stream(struct http_exchange *exchange);

// server_events.c
// Answers with a stream; false, with a refusal, when there are too many listeners.
bool events_join(struct http_exchange *exchange);
// Reads what the listener is to be sent, as libmicrohttpd asks for it.
ssize_t events_read(void *exchange, uint64_t offset, char *out, size_t max);
// At the end of its request. Nothing for who is no listener.
void events_leave(struct http_exchange *exchange);
// Ends all streams, and lets nobody in any more; none of its connections rests when it returns.
void events_close(struct http_events *events);
// The server that has it starts.
void events_open(struct http_events *events);

// server_body.c
// False when too many bodies are in memory.
bool body_append(struct http_exchange *exchange, const char *data, size_t size);
// Takes gzip off into exchange->decoded, or refuses.
void body_inflate(struct http_exchange *exchange);
// Gives back what is not worth keeping for the next request.
void body_trim(struct http_exchange *exchange);
void body_release(struct http_exchange *exchange);
// Gives back a large body that nobody reads any more, while its answer is still owed.
void body_drop(struct http_exchange *exchange);
// Compressed bytes for `body` in a new buffer that the caller gives back; NULL: not worth it.
char *body_deflate(struct http_server *server, struct slice body, size_t *size);
void body_deflater_release(struct http_server *server);

// server_token.c
enum status token_open(struct token_watch *token, const char *text, const char *file,
                       struct error *error) MUST_USE;
// Whether `given` (the Authorization header, or NULL) shows the token.
// `basic`: as the password of Basic authentication, too.
bool token_shown(struct token_watch *token, const char *given, bool basic, const char *site);
void token_close(struct token_watch *token);

// server_kept.c
// Leaves what was read from files to the next server of this endpoint.
void kept_files_leave(struct http_server *server);
// Gives it back after http_server_fall_back; false when there is none.
bool kept_files_take(struct http_server *server);
void kept_files_drop(void);

// server_accept.c: takes connections.
void accept_begin(struct http_server *server);
void accept_end(struct http_server *server); // none is taken any more when it returns
// A connection has ended. Any thread.
void accept_left(struct http_server *server);
// By the watch thread: what to wait for, or -1, and until when (UINT64_MAX: until it is woken); and
// taking what is there.
int accept_descriptor(struct http_server *server, uint64_t now, uint64_t *again_ns);
void accept_some(struct http_server *server);

// server_watch.c: closes connections whose time is over, and has connections taken.
enum status watch_start(struct http_server *server, struct error *error) MUST_USE;
void watch_stop(struct http_server *server);
void watch_wake(struct http_server *server); // it looks again at what it waits for; any thread
// Whether a connection has yet to send its first request, or the rest of one.
bool watch_expects_request(struct http_server *server);
struct http_connection *watch_connect(struct http_server *server, int descriptor);
void watch_disconnect(struct http_connection *connection);
// False when its time was over before.
bool watch_enter(struct http_connection *connection, enum connection_phase phase,
                 uint64_t timeout_ns);

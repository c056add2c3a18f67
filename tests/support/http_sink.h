// SPDX-License-Identifier: Apache-2.0
// A small HTTP server for tests of what sends requests: it keeps each request and answers as a
// script says. One thread, one connection at a time, one request a connection; 127.0.0.1.
//
//     struct http_sink sink;
//     http_sink_start(&sink, (struct sink_answer[]){{.status = 503}, {.status = 200}}, 2);
//     … send to sink.url …
//     http_sink_wait(&sink, 2);
//     ck_assert_str_eq(sink.requests[1].path, "/hook");
//     http_sink_stop(&sink);
#pragma once

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SINK_REQUESTS_MAX = 256, SINK_HEAD_MAX = 16 << 10, SINK_BODY_MAX = 8 << 20 };

struct sink_answer {
    int status;          // 0: the connection is closed without an answer
    const char *headers; // whole lines, "Retry-After: 2\r\n"; NULL: none
    const char *body;    // NULL: empty
    unsigned delay_ms;   // before the answer; ends early when the sink is stopped
    size_t claimed_size; // of the body, when it is to be longer than what comes; 0: as it is
};

struct sink_request {
    char method[16];
    char path[1024]; // with its query
    char *head;      // the lines behind the first
    char *body;      // ended by a zero
    size_t size;
};

struct http_sink {
    char url[64]; // "http://127.0.0.1:PORT"
    const struct sink_answer *script;
    size_t script_count;
    int listener, stop_pipe[2];
    pthread_t thread;
    pthread_mutex_t lock; // of what follows
    pthread_cond_t changed;
    struct sink_request requests[SINK_REQUESTS_MAX];
    size_t count;
};

// A header's value in a buffer of the calling thread, or NULL.
static inline const char *sink_header(const struct sink_request *request, const char *name) {
    static _Thread_local char value[1024];
    size_t size = strlen(name);
    for (const char *at = request->head; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncasecmp(at, name, size) != 0 || at[size] != ':')
            continue;
        at += size + 1 + strspn(at + size + 1, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r\n"), at);
        return value;
    }
    return NULL;
}

static inline bool sink_read(int connection, struct sink_request *request) {
    char *head = malloc(SINK_HEAD_MAX);
    size_t used = 0;
    while (used < 4 || memcmp(head + used - 4, "\r\n\r\n", 4) != 0) {
        if (used == SINK_HEAD_MAX - 1 || recv(connection, head + used, 1, 0) != 1) {
            free(head);
            return false;
        }
        used++;
    }
    head[used] = '\0';
    char *lines = strchr(head, '\n') + 1;
    sscanf(head, "%15s %1023s", request->method, request->path);
    memmove(head, lines, strlen(lines) + 1);
    request->head = head;
    const char *length = sink_header(request, "Content-Length");
    size_t size = length == NULL ? 0 : strtoul(length, NULL, 10), got = 0;
    ck_assert_uint_le(size, SINK_BODY_MAX);
    request->body = calloc(1, size + 1);
    for (ssize_t more = 1; got < size && more > 0; got += more > 0 ? (size_t)more : 0)
        more = recv(connection, request->body + got, size - got, 0);
    request->size = got;
    return true;
}

static inline void sink_request_free(struct sink_request *request) {
    free(request->head);
    free(request->body);
}

// False when the sink was stopped meanwhile.
static inline bool sink_rest(const struct http_sink *sink, unsigned delay_ms) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(sink->stop_pipe[0], &set);
    struct timeval time = {.tv_sec = delay_ms / 1000, .tv_usec = (int)(delay_ms % 1000) * 1000};
    return select(sink->stop_pipe[0] + 1, &set, NULL, NULL, &time) == 0;
}

static inline void sink_answer(const struct http_sink *sink, int connection,
                               const struct sink_answer *answer) {
    char head[4096];
    size_t size = answer->body == NULL ? 0 : strlen(answer->body);
    if ((answer->delay_ms > 0 && !sink_rest(sink, answer->delay_ms)) || answer->status == 0)
        return;
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n",
                          answer->status, answer->claimed_size > 0 ? answer->claimed_size : size,
                          answer->headers == NULL ? "" : answer->headers);
    send(connection, head, (size_t)length, MSG_NOSIGNAL);
    send(connection, answer->body, size, MSG_NOSIGNAL);
}

static inline void sink_serve(struct http_sink *sink, int connection) {
    static const struct sink_answer fine = {.status = 200};
    struct timeval patience = {.tv_sec = 30};
    struct sink_request request = {.size = 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!sink_read(connection, &request))
        return;
    pthread_mutex_lock(&sink->lock);
    size_t at = sink->count;
    if (at < SINK_REQUESTS_MAX)
        sink->requests[sink->count++] = request;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
    if (at == SINK_REQUESTS_MAX)
        sink_request_free(&request);
    size_t last = sink->script_count - 1;
    sink_answer(sink, connection,
                sink->script_count == 0 ? &fine : &sink->script[at < last ? at : last]);
}

static inline void *sink_run(void *context) {
    struct http_sink *sink = context;
    int most = sink->listener > sink->stop_pipe[0] ? sink->listener : sink->stop_pipe[0];
    for (;;) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(sink->listener, &set);
        FD_SET(sink->stop_pipe[0], &set);
        if (select(most + 1, &set, NULL, NULL, NULL) < 0 || FD_ISSET(sink->stop_pipe[0], &set))
            return NULL;
        int connection = accept(sink->listener, NULL, NULL);
        if (connection < 0)
            continue;
        sink_serve(sink, connection);
        shutdown(connection, SHUT_WR);
        close(connection);
    }
}

// Answers the requests in order by `script`, whose last answer repeats; with none each gets 200.
// `script` must live until the sink is stopped.
static inline void http_sink_start(struct http_sink *sink, const struct sink_answer *script,
                                   size_t count) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    memset(sink, 0, sizeof *sink);
    sink->script = script;
    sink->script_count = count;
    pthread_mutex_init(&sink->lock, NULL);
    pthread_cond_init(&sink->changed, NULL);
    sink->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(sink->listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(sink->listener, 16), 0);
    ck_assert_int_eq(getsockname(sink->listener, (struct sockaddr *)&address, &size), 0);
    ck_assert_int_eq(pipe(sink->stop_pipe), 0);
    snprintf(sink->url, sizeof sink->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    ck_assert_int_eq(pthread_create(&sink->thread, NULL, sink_run, sink), 0);
}

// Waits until `count` requests have come; false after 90 s.
static inline bool http_sink_wait(struct http_sink *sink, size_t count) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 90;
    pthread_mutex_lock(&sink->lock);
    int problem = 0;
    while (sink->count < count && problem == 0)
        problem = pthread_cond_timedwait(&sink->changed, &sink->lock, &until);
    bool there = sink->count >= count;
    pthread_mutex_unlock(&sink->lock);
    return there;
}

static inline void http_sink_stop(struct http_sink *sink) {
    ck_assert_int_eq(write(sink->stop_pipe[1], "x", 1), 1);
    pthread_join(sink->thread, NULL);
    close(sink->listener);
    close(sink->stop_pipe[0]);
    close(sink->stop_pipe[1]);
    for (size_t i = 0; i < sink->count; i++)
        sink_request_free(&sink->requests[i]);
    pthread_cond_destroy(&sink->changed);
    pthread_mutex_destroy(&sink->lock);
}

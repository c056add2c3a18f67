// SPDX-License-Identifier: Apache-2.0
// A client for tests of listeners: sends bytes as they are given, and cuts answers apart. Included
// by test programs; plain HTTP over TCP or a unix socket.
#pragma once

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

enum { ANSWER_MAX = 1 << 20 };

struct answer {
    int status; // 0: the connection ended without one
    char head[4096];
    char *body;
    size_t size;
};

static inline void client_patience(int descriptor) {
    struct timeval patience = {.tv_sec = 90};
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

static inline int client_connect(uint16_t port) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_int_eq(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    client_patience(descriptor);
    return descriptor;
}

static inline int client_connect_unix(const char *path) {
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    ck_assert_int_eq(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    client_patience(descriptor);
    return descriptor;
}

static inline void client_send(int descriptor, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size > 0) {
        ssize_t sent = send(descriptor, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return; // the other side has closed: its answer says why
        at += sent;
        size -= (size_t)sent;
    }
}

static inline void client_send_text(int descriptor, const char *text) {
    client_send(descriptor, text, strlen(text));
}

// A request with a body; `headers` are whole lines.
static inline void client_request(int descriptor, const char *method, const char *path,
                                  const char *headers, const void *body, size_t size) {
    char head[2048];
    int used =
        snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: test\r\n%s", method, path, headers);
    if (body != NULL)
        used += snprintf(head + used, sizeof head - (size_t)used, "Content-Length: %zu\r\n", size);
    used += snprintf(head + used, sizeof head - (size_t)used, "\r\n");
    client_send(descriptor, head, (size_t)used);
    if (size > 0)
        client_send(descriptor, body, size);
}

static inline const char *answer_header(const struct answer *answer, const char *name) {
    static _Thread_local char value[512];
    const char *at = answer->head;
    while ((at = strstr(at, "\r\n")) != NULL) {
        at += 2;
        size_t size = strlen(name);
        if (strncasecmp(at, name, size) != 0 || at[size] != ':')
            continue;
        at += size + 1;
        while (*at == ' ')
            at++;
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
        return value;
    }
    return NULL;
}

// Reads one answer; passes over 100 Continue. `head_only`: it has no body (HEAD).
static inline struct answer client_answer(int descriptor, bool head_only) {
    struct answer answer = {.status = 0};
    size_t used = 0;
    for (;;) {
        while (used < 4 || memcmp(answer.head + used - 4, "\r\n\r\n", 4) != 0) {
            ck_assert_uint_lt(used, sizeof answer.head - 1);
            if (recv(descriptor, answer.head + used, 1, 0) != 1)
                return answer;
            answer.head[++used] = '\0';
        }
        answer.status = atoi(answer.head + 9);
        if (answer.status != 100)
            break;
        used = 0;
    }
    const char *length = answer_header(&answer, "Content-Length");
    answer.size = length == NULL || head_only ? 0 : strtoul(length, NULL, 10);
    answer.body = calloc(1, answer.size + 1);
    for (size_t got = 0; got < answer.size;) {
        ssize_t more = recv(descriptor, answer.body + got, answer.size - got, 0);
        ck_assert_int_gt(more, 0);
        got += (size_t)more;
    }
    return answer;
}

static inline void answer_free(struct answer *answer) {
    free(answer->body);
}

// One request on a connection of its own.
static inline struct answer client_ask(uint16_t port, const char *method, const char *path,
                                       const char *headers, const void *body, size_t size) {
    int descriptor = client_connect(port);
    client_request(descriptor, method, path, headers, body, size);
    struct answer answer = client_answer(descriptor, strcmp(method, "HEAD") == 0);
    close(descriptor);
    return answer;
}

// gzip of `size` bytes; the caller frees it.
static inline char *client_gzip(const void *bytes, size_t size, size_t *out_size) {
    z_stream stream = {.next_in = (unsigned char *)bytes, .avail_in = (unsigned)size};
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t capacity = deflateBound(&stream, size);
    char *out = malloc(capacity);
    stream.next_out = (unsigned char *)out;
    stream.avail_out = (unsigned)capacity;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *out_size = capacity - stream.avail_out;
    deflateEnd(&stream);
    return out;
}

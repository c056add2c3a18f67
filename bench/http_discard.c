// SPDX-License-Identifier: Apache-2.0
// A server that takes requests as http_load posts them and throws their bodies away: how fast can
// any server be beside that generator?
//
//   http_discard --port N
//
// One thread, epoll, keep-alive; each request must have a Content-Length. Listens on 127.0.0.1,
// runs until it is killed.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 256, HEAD_MAX = 4096, BLOCK = 256 << 10, EVENTS_MAX = 64 };

struct connection {
    bool used;
    char head[HEAD_MAX];
    size_t head_size;
    size_t body_left;
};

static struct connection connections[CONNECTIONS_MAX]; // by descriptor
static char block[BLOCK];

static void fail(const char *what) {
    fprintf(stderr, "http_discard: %s: %s\n", what, strerror(errno));
    exit(74);
}

static void hang_up(int descriptor) {
    connections[descriptor].used = false;
    close(descriptor);
}

static bool answer(int descriptor) {
    static const char text[] =
        "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n"
        "Content-Length: 47\r\n\r\n"
        "{\"accepted\":0,\"rejected\":[],"
        "\"rejected_count\":0}";
    size_t size = sizeof text - 1;
    return send(descriptor, text, size, MSG_NOSIGNAL) == (ssize_t)size;
}

// The size of the body, when the head is whole. Gives how many bytes of `data` belong to the head;
// 0 when it goes on; -1: not a request that this server takes.
static ssize_t read_head(struct connection *connection, const char *data, size_t size) {
    size_t before = connection->head_size;
    size_t take = size < HEAD_MAX - 1 - before ? size : HEAD_MAX - 1 - before;
    memcpy(connection->head + before, data, take);
    connection->head[before + take] = '\0';
    connection->head_size += take;
    const char *end = strstr(connection->head, "\r\n\r\n");
    if (end == NULL)
        return connection->head_size == HEAD_MAX - 1 ? -1 : 0;
    const char *length = strcasestr(connection->head, "\r\nContent-Length:");
    if (length == NULL || length > end)
        return -1;
    connection->body_left = strtoull(length + strlen("\r\nContent-Length:"), NULL, 10);
    connection->head_size = 0;
    return end + 4 - connection->head - (ssize_t)before;
}

static bool take(int descriptor, const char *data, size_t size) {
    struct connection *connection = &connections[descriptor];
    while (size > 0) {
        if (connection->body_left == 0) {
            ssize_t head = read_head(connection, data, size);
            if (head <= 0)
                return head == 0;
            data += head;
            size -= (size_t)head;
        }
        size_t body = size < connection->body_left ? size : connection->body_left;
        connection->body_left -= body;
        data += body;
        size -= body;
        if (connection->body_left == 0 && !answer(descriptor))
            return false;
    }
    return true;
}

static void serve(int descriptor) {
    ssize_t got = recv(descriptor, block, BLOCK, 0);
    if (got <= 0 || !take(descriptor, block, (size_t)got))
        hang_up(descriptor);
}

static void admit(int listener, int poller) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
    if (descriptor < 0)
        return;
    if (descriptor >= CONNECTIONS_MAX) {
        close(descriptor);
        return;
    }
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections[descriptor] = (struct connection){.used = true};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) != 0)
        fail("epoll_ctl");
}

static int listener_on(uint16_t port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, CONNECTIONS_MAX) != 0)
        fail("listen");
    return listener;
}

int main(int argc, char **argv) {
    if (argc != 3 || strcmp(argv[1], "--port") != 0) {
        fprintf(stderr, "usage: %s --port N\n", argv[0]);
        return 64;
    }
    int listener = listener_on((uint16_t)strtoul(argv[2], NULL, 10));
    int poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ready[EVENTS_MAX], event = {.events = EPOLLIN, .data.fd = listener};
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) != 0)
        fail("epoll");
    for (;;) {
        int count = epoll_wait(poller, ready, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++)
            if (ready[i].data.fd == listener)
                admit(listener, poller);
            else
                serve(ready[i].data.fd);
    }
}

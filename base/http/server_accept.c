// SPDX-License-Identifier: Apache-2.0
// Takes connections, and gives each to a thread of libmicrohttpd.
//
// libmicrohttpd could listen itself, but not stop listening while its threads are busy: a thread
// that leaves the listening socket at the same moment as MHD_quiesce_daemon ends the process
// (epoll, 0.9.75 to 1.0.1). Here the thread that watches deadlines takes connections, too. At the
// bound, and for a moment after a failure, it does not: clients wait in the system's queue.
#include "base/clock.h"
#include "base/http/server_parts.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { AT_ONCE_MAX = 64 };
#define PAUSE_NS 100000000ull

void accept_begin(struct http_server *server) {
    assert(server->daemon != NULL && server->descriptor >= 0);
    lock_take(&server->accepting.lock);
    server->accepting.open = true;
    lock_release(&server->accepting.lock);
    watch_wake(server);
}

void accept_end(struct http_server *server) {
    lock_take(&server->accepting.lock);
    server->accepting.open = false;
    lock_release(&server->accepting.lock);
    watch_wake(server);
}

static bool is_full(const struct http_server *server) {
    return atomic_load(&server->connections) >= server->options.max_connections;
}

void accept_left(struct http_server *server) {
    uint64_t before = atomic_fetch_sub(&server->connections, 1);
    assert(before > 0);
    if (before == server->options.max_connections)
        watch_wake(server);
}

int accept_descriptor(struct http_server *server, uint64_t now, uint64_t *again_ns) {
    struct accepting *accepting = &server->accepting;
    *again_ns = UINT64_MAX;
    lock_take(&accepting->lock);
    bool open = accepting->open;
    lock_release(&accepting->lock);
    if (!open || is_full(server))
        return -1;
    if (now >= accepting->not_before_ns)
        return server->descriptor;
    *again_ns = accepting->not_before_ns;
    return -1;
}

static void note_failure(struct http_server *server, int failure) {
    struct accepting *accepting = &server->accepting;
    if (failure == EAGAIN || failure == ECONNABORTED || failure == EINTR)
        return;
    accepting->not_before_ns = clock_monotonic_ns() + PAUSE_NS;
    if (!accepting->failing)
        log_write(LOG_WARN, (struct log_site){"C2109", server->options.site},
                  "connections cannot be accepted: %s; clients wait until they can",
                  strerror(failure));
    accepting->failing = true;
}

static bool accept_one(struct http_server *server) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    int descriptor = accept4(server->descriptor, (struct sockaddr *)&address, &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
        note_failure(server, errno);
        return false;
    }
    server->accepting.failing = false;
    atomic_fetch_add(&server->connections, 1);
    if (server->library->add_connection(server->daemon, descriptor, (struct sockaddr *)&address,
                                        size) != MHD_YES)
        accept_left(server); // it has closed it: too many of that address
    return true;
}

void accept_some(struct http_server *server) {
    lock_take(&server->accepting.lock);
    for (int i = 0; i < AT_ONCE_MAX && server->accepting.open && !is_full(server); i++)
        if (!accept_one(server))
            break;
    lock_release(&server->accepting.lock);
}

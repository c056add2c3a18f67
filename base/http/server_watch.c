// SPDX-License-Identifier: Apache-2.0
// Closes connections whose time is over.
//
// libmicrohttpd only knows how long nothing came, so a client that sends a byte now and then could
// hold a connection for ever. Here each phase of a connection has a deadline. One thread sleeps
// until the earliest or a new connection, looks at all connections, and shuts those whose time is
// over; it sleeps for good while there are none. A plain connection whose request was too slow is
// told so first (408).
//
// A connection that ends before its request was read to the end is kept open for a moment and read
// empty: closing it at once would make the system throw away the answer on its way.
#include "base/clock.h"
#include "base/http/server_parts.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PHASE_BITS = 3, PHASE_MASK = (1 << PHASE_BITS) - 1 };
#define LINGER_NS      2000000000ull
#define LINGER_LOOK_NS 20000000ull

static const char too_slow[] =
    "{\"error\":{\"code\":\"too_slow\",\"message\":\"The request did not come in time.\"}}\n";

static void say_too_slow(int descriptor) {
    char text[512];
    int size = snprintf(text, sizeof text,
                        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
                        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                        sizeof too_slow - 1, too_slow);
    // Its buffer is empty, as nothing was answered yet: it fits, or the client is gone.
    ssize_t sent = send(descriptor, text, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)sent;
}

static void expire(struct http_server *server, struct http_connection *connection, uint64_t seen) {
    assert(connection->magic == CONNECTION_MAGIC && connection->server == server);
    if (!atomic_compare_exchange_strong(&connection->phase, &seen, PHASE_EXPIRED))
        return;
    enum connection_phase phase = (enum connection_phase)(seen & PHASE_MASK);
    if (phase == PHASE_HEADERS || phase == PHASE_BODY) {
        if (server->options.tls.cert_file == NULL)
            say_too_slow(connection->descriptor);
        answer_count(server, 408);
    }
    // The thread that has it sees an end of input, and closes it.
    (void)shutdown(connection->descriptor, SHUT_RDWR);
}

// Returns the earliest deadline that is left. The watch's lock is held.
static uint64_t look_at_connections(struct http_server *server, uint64_t now) {
    assert(lock_is_held(&server->watch.lock));
    uint64_t next = UINT64_MAX;
    struct http_connection *at = server->watch.first;
    for (; at != NULL; at = at->next) {
        uint64_t seen = atomic_load(&at->phase);
        uint64_t deadline = seen >> PHASE_BITS;
        if (deadline == 0)
            continue;
        if (deadline <= now)
            expire(server, at, seen);
        else if (deadline < next)
            next = deadline;
    }
    return next;
}

static bool is_read_empty(int descriptor) {
    char waste[16384];
    for (int i = 0; i < 64; i++) {
        ssize_t got = recv(descriptor, waste, sizeof waste, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return true;
        if (got < 0)
            return false;
    }
    return false;
}

static uint64_t look_at_lingering(struct connection_watch *watch, uint64_t now) {
    assert(lock_is_held(&watch->lock) && watch->linger_count <= LINGER_MAX);
    for (uint32_t i = 0; i < watch->linger_count;) {
        if (now < watch->linger[i].until_ns && !watch->ending &&
            !is_read_empty(watch->linger[i].descriptor)) {
            i++;
            continue;
        }
        close(watch->linger[i].descriptor);
        watch->linger[i] = watch->linger[--watch->linger_count];
    }
    return watch->linger_count > 0 ? now + LINGER_LOOK_NS : UINT64_MAX;
}

void watch_wake(struct http_server *server) {
    // It can only fail when it is full of such calls.
    (void)eventfd_write(server->watch.wake_descriptor, 1);
}

// Until something is to be looked at. Connections are taken meanwhile.
static void wait_and_accept(struct http_server *server, uint64_t until_ns) {
    for (;;) {
        uint64_t now = clock_monotonic_ns(), again_ns;
        if (now >= until_ns)
            return;
        struct pollfd both[] = {
            {.fd = server->watch.wake_descriptor, .events = POLLIN},
            {.fd = accept_descriptor(server, now, &again_ns), .events = POLLIN}};
        uint64_t wait_ns = (again_ns < until_ns ? again_ns : until_ns) - now;
        struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
        bool forever = until_ns == UINT64_MAX && again_ns == UINT64_MAX;
        int ready = ppoll(both, 2, forever ? NULL : &wait, NULL);
        if (ready > 0 && both[1].revents != 0)
            accept_some(server);
        eventfd_t times;
        if (ready > 0 && both[0].revents != 0 &&
            eventfd_read(server->watch.wake_descriptor, &times) == 0)
            return;
    }
}

static void *run(void *context) {
    struct http_server *server = context;
    assert(server->magic == SERVER_MAGIC);
    struct connection_watch *watch = &server->watch;
    for (;;) {
        lock_take(&watch->lock);
        // Whoever sets an earlier deadline from here on wakes it.
        atomic_store(&watch->next_ns, UINT64_MAX);
        uint64_t now = clock_monotonic_ns();
        uint64_t next = look_at_connections(server, now);
        uint64_t linger = look_at_lingering(watch, now);
        next = linger < next ? linger : next;
        bool ending = watch->ending;
        atomic_store(&watch->next_ns, next);
        lock_release(&watch->lock);
        if (ending)
            return NULL;
        wait_and_accept(server, next);
    }
}

enum status watch_start(struct http_server *server, struct error *error) {
    assert(!server->watch.running && server->watch.first == NULL);
    struct connection_watch *watch = &server->watch;
    lock_init(&watch->lock);
    atomic_store(&watch->next_ns, UINT64_MAX);
    watch->wake_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->wake_descriptor < 0)
        return error_set_os(error, STATUS_OS, errno, "an eventfd cannot be had");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int os_error = pthread_create(&watch->thread, NULL, run, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (os_error != 0)
        return error_set_os(error, STATUS_OS, os_error,
                            "a thread for connections cannot be started");
    (void)pthread_setname_np(watch->thread, "http-accept");
    watch->running = true;
    return STATUS_OK;
}

void watch_stop(struct http_server *server) {
    struct connection_watch *watch = &server->watch;
    if (watch->running) {
        lock_take(&watch->lock);
        watch->ending = true;
        lock_release(&watch->lock);
        watch_wake(server);
        pthread_join(watch->thread, NULL);
        watch->running = false;
    }
    if (watch->wake_descriptor >= 0)
        close(watch->wake_descriptor);
    assert(watch->linger_count == 0);
    lock_destroy(&watch->lock);
}

bool watch_expects_request(struct http_server *server) {
    bool expects = false;
    uint64_t count = 0;
    lock_take(&server->watch.lock);
    for (const struct http_connection *at = server->watch.first; at != NULL; at = at->next) {
        uint64_t phase = atomic_load(&at->phase) & PHASE_MASK;
        expects = expects || phase == PHASE_HEADERS || phase == PHASE_BODY;
        count++;
    }
    lock_release(&server->watch.lock);
    return expects || count < atomic_load(&server->connections); // not yet with its thread
}

struct http_connection *watch_connect(struct http_server *server, int descriptor) {
    assert(server->magic == SERVER_MAGIC && descriptor >= 0);
    struct http_connection *connection = memory_zero(1, sizeof *connection);
    connection->magic = CONNECTION_MAGIC;
    connection->server = server;
    connection->descriptor = descriptor;
    struct connection_watch *watch = &server->watch;
    lock_take(&watch->lock);
    connection->next = watch->first;
    if (watch->first != NULL)
        watch->first->previous = connection;
    watch->first = connection;
    lock_release(&watch->lock);
    (void)watch_enter(connection, PHASE_HEADERS, server->options.header_timeout_ns);
    return connection;
}

void watch_disconnect(struct http_connection *connection) {
    assert(connection->magic == CONNECTION_MAGIC);
    struct connection_watch *watch = &connection->server->watch;
    int lingering = -1;
    if (connection->linger)
        lingering = fcntl(connection->descriptor, F_DUPFD_CLOEXEC, 3);
    lock_take(&watch->lock);
    assert(connection->previous != NULL || watch->first == connection);
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        watch->first = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    if (lingering >= 0 && watch->linger_count < LINGER_MAX && !watch->ending) {
        watch->linger[watch->linger_count].descriptor = lingering;
        watch->linger[watch->linger_count++].until_ns = clock_monotonic_ns() + LINGER_NS;
        lingering = -1;
        watch_wake(connection->server);
    }
    lock_release(&watch->lock);
    if (lingering >= 0)
        close(lingering);
    connection->magic = 0;
    memory_give(connection);
}

bool watch_enter(struct http_connection *connection, enum connection_phase phase,
                 uint64_t timeout_ns) {
    uint64_t deadline = timeout_ns == 0 ? 0 : clock_monotonic_ns() + timeout_ns;
    uint64_t wanted = deadline << PHASE_BITS | phase;
    assert(connection->magic == CONNECTION_MAGIC && deadline <= UINT64_MAX >> PHASE_BITS);
    uint64_t seen = atomic_load(&connection->phase);
    do {
        if ((seen & PHASE_MASK) == PHASE_EXPIRED)
            return false;
    } while (!atomic_compare_exchange_weak(&connection->phase, &seen, wanted));
    if (deadline != 0 && deadline < atomic_load(&connection->server->watch.next_ns))
        watch_wake(connection->server);
    return true;
}

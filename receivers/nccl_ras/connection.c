// SPDX-License-Identifier: Apache-2.0
// One connection to RAS: line by line up to STATUS or MONITOR, never blocking but to look up a
// name. Each step has a bound in time and size. A server that knows no JSON (before 2.28.7) answers
// in text.
#include "base/clock.h"
#include "base/text/cut.h"
#include "receivers/nccl_ras/receiver.h"
#include "receivers/nccl_ras/reply.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint64_t SECOND_NS = 1000ull * 1000 * 1000;
// For each step before the question; RAS answers these at once.
static const uint64_t STEP_NS = 5ull * 1000 * 1000 * 1000;
// What RAS takes at most beyond its timeout, and some for the way.
static const uint64_t EXTRA_NS = 10ull * 1000 * 1000 * 1000;
enum { READ_MAX = 32768 };

void ras_connection_init(struct ras_connection *connection, bool follows, size_t max) {
    *connection = (struct ras_connection){.follows = follows, .descriptor = -1};
    assert(max >= RAS_LINE_MAX);
    buffer_init(&connection->in, max);
}

static void drop_socket(struct ras_connection *connection) {
    if (connection->descriptor >= 0)
        close(connection->descriptor);
    connection->descriptor = -1;
}

void ras_connection_close(struct ras_connection *connection) {
    drop_socket(connection);
    if (connection->addresses != NULL)
        freeaddrinfo(connection->addresses);
    connection->addresses = connection->next = NULL;
    connection->phase = RAS_CLOSED;
}

void ras_connection_release(struct ras_connection *connection) {
    ras_connection_close(connection);
    buffer_release(&connection->in);
}

static enum ras_outcome fail(struct ras_connection *connection, const char *format, ...)
    PRINTF_LIKE(2, 3);
static enum ras_outcome fail(struct ras_connection *connection, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(connection->reason, sizeof connection->reason, format, arguments);
    va_end(arguments);
    connection->in_answer = connection->phase == RAS_STATUS && connection->in.size > 0;
    ras_connection_close(connection);
    return RAS_FAILED;
}

// -- connecting -----------------------------------------------------------------------------------

static enum ras_outcome send_command(struct ras_connection *connection, enum ras_phase phase,
                                     uint64_t wait_ns, uint64_t now_ns, const char *format, ...)
    PRINTF_LIKE(5, 6);

// No process of a job listens there. A name that nobody has is that of a pod that is gone.
static bool is_absence(int failure) {
    return failure == ECONNREFUSED || failure == EHOSTUNREACH || failure == ENETUNREACH;
}

static enum ras_outcome connect_next(struct ras_connection *connection, int failure,
                                     uint64_t now_ns) {
    drop_socket(connection);
    while (connection->next != NULL) {
        const struct addrinfo *address = connection->next;
        connection->next = address->ai_next;
        connection->descriptor =
            socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connection->descriptor < 0) {
            failure = errno;
            continue;
        }
        // So that a stream ends whose other end is gone without a word.
        (void)setsockopt(connection->descriptor, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
        connection->phase = RAS_CONNECTING;
        connection->deadline_ns = now_ns + STEP_NS;
        if (connect(connection->descriptor, address->ai_addr, address->ai_addrlen) == 0 ||
            errno == EINPROGRESS)
            return RAS_GOING;
        failure = errno;
        drop_socket(connection);
    }
    if (is_absence(failure)) {
        ras_connection_close(connection);
        return RAS_ABSENT;
    }
    return fail(connection, "cannot connect: %s", strerror(failure));
}

enum ras_outcome ras_connection_open(struct ras_connection *connection,
                                     const struct endpoint *endpoint, uint64_t timeout_ns,
                                     uint64_t now_ns) {
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    assert(connection->phase == RAS_CLOSED && !endpoint->is_unix);
    buffer_reset(&connection->in);
    connection->out_size = connection->out_sent = 0;
    connection->json = true;
    connection->timeout_ns = timeout_ns;
    connection->reason[0] = '\0';
    snprintf(port, sizeof port, "%u", endpoint->port);
    int failure = getaddrinfo(endpoint->host, port, &hints, &connection->addresses);
    if (failure == EAI_NONAME) {
        connection->addresses = NULL;
        return RAS_ABSENT;
    }
    if (failure != 0) {
        connection->addresses = NULL;
        return fail(connection, "looking up the name: %s", gai_strerror(failure));
    }
    connection->next = connection->addresses;
    return connect_next(connection, ECONNREFUSED, now_ns);
}

struct pollfd ras_connection_wants(const struct ras_connection *connection) {
    short events = POLLIN;
    if (connection->phase == RAS_CLOSED)
        return (struct pollfd){.fd = -1};
    if (connection->phase == RAS_CONNECTING || connection->out_sent < connection->out_size)
        events = POLLOUT;
    return (struct pollfd){.fd = connection->descriptor, .events = events};
}

// -- commands -------------------------------------------------------------------------------------

static enum ras_outcome flush_command(struct ras_connection *connection) {
    while (connection->out_sent < connection->out_size) {
        ssize_t sent = send(connection->descriptor, connection->out + connection->out_sent,
                            connection->out_size - connection->out_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return RAS_GOING;
        if (sent < 0)
            return fail(connection, "sending: %s", strerror(errno));
        connection->out_sent += (size_t)sent;
    }
    return RAS_GOING;
}

static enum ras_outcome send_command(struct ras_connection *connection, enum ras_phase phase,
                                     uint64_t wait_ns, uint64_t now_ns, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(connection->out, sizeof connection->out, format, arguments);
    va_end(arguments);
    assert(size > 0 && (size_t)size < sizeof connection->out);
    connection->out_size = (size_t)size;
    connection->out_sent = 0;
    connection->phase = phase;
    connection->deadline_ns = now_ns + wait_ns;
    return flush_command(connection);
}

static enum ras_outcome ask(struct ras_connection *connection, uint64_t now_ns) {
    if (connection->follows)
        return send_command(connection, RAS_MONITOR, STEP_NS, now_ns, "MONITOR all\n");
    return send_command(connection, RAS_STATUS, connection->timeout_ns + EXTRA_NS, now_ns,
                        "VERBOSE STATUS\n");
}

// The printable front of a line, for messages.
static enum ras_outcome unexpected(struct ras_connection *connection, struct slice line) {
    char shown[64];
    size_t size = line.size < sizeof shown - 1 ? line.size : sizeof shown - 1;
    for (size_t i = 0; i < size; i++)
        shown[i] = line.data[i] >= ' ' && line.data[i] < 127 ? line.data[i] : '?';
    shown[size] = '\0';
    return fail(connection, "it answers \"%s\", which is not the protocol of NCCL RAS", shown);
}

static enum ras_outcome on_line(struct ras_connection *connection, struct slice line,
                                uint64_t now_ns) {
    bool ok = ras_line_is_ok(line), refused = ras_line_is_error(line);
    switch (connection->phase) {
    case RAS_HELLO:
        if (!ras_line_is_hello(line))
            return unexpected(connection, line);
        return send_command(connection, RAS_TIMEOUT, STEP_NS, now_ns, "TIMEOUT %llu\n",
                            (unsigned long long)(connection->timeout_ns / SECOND_NS));
    case RAS_TIMEOUT:
        if (!ok && !refused)
            return unexpected(connection, line);
        return send_command(connection, RAS_FORMAT, STEP_NS, now_ns, "SET FORMAT json\n");
    case RAS_FORMAT:
        if (!ok && !refused)
            return unexpected(connection, line);
        connection->json = ok;
        if (connection->follows && !ok) {
            ras_connection_close(connection);
            return RAS_OLD;
        }
        return ask(connection, now_ns);
    case RAS_MONITOR:
        if (refused) {
            ras_connection_close(connection);
            return RAS_OLD;
        }
        if (!ok)
            return unexpected(connection, line);
        connection->phase = RAS_FOLLOWING;
        connection->deadline_ns = UINT64_MAX;
        return RAS_GOING;
    default:
        assert(false && "no line is awaited");
        return RAS_FAILED;
    }
}

// -- receiving ------------------------------------------------------------------------------------

static void drop_front(struct buffer *buffer, size_t size) {
    assert(size <= buffer->size);
    memmove(buffer->data, buffer->data + size, buffer->size - size);
    buffer->size -= size;
}

static bool awaits_line(const struct ras_connection *connection) {
    return connection->phase >= RAS_HELLO && connection->phase <= RAS_MONITOR;
}

static enum ras_outcome take_lines(struct ras_connection *connection, uint64_t now_ns) {
    enum ras_outcome outcome = RAS_GOING;
    while (outcome == RAS_GOING && awaits_line(connection)) {
        char line[RAS_LINE_MAX];
        struct slice text = buffer_slice(&connection->in);
        size_t size = text_until(text, '\n').size;
        if (size >= sizeof line)
            return fail(connection, "it answers with a line of more than %d bytes", RAS_LINE_MAX);
        if (size == text.size)
            return RAS_GOING;
        memcpy(line, text.data, size);
        drop_front(&connection->in, size + 1);
        outcome = on_line(connection, (struct slice){line, size}, now_ns);
    }
    return outcome;
}

static enum ras_outcome at_end(struct ras_connection *connection) {
    if (connection->phase == RAS_STATUS) {
        if (ras_reply_is_whole(buffer_slice(&connection->in), connection->json)) {
            ras_connection_close(connection);
            return RAS_ANSWERED;
        }
        return fail(connection, "the answer breaks off after %zu bytes", connection->in.size);
    }
    return fail(connection, "it closed the connection");
}

static enum ras_outcome receive(struct ras_connection *connection, uint64_t now_ns) {
    char block[READ_MAX];
    bool any = false;
    for (;;) {
        ssize_t got = recv(connection->descriptor, block, sizeof block, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (got < 0)
            return fail(connection, "the connection broke off: %s", strerror(errno));
        if (got == 0)
            return at_end(connection);
        any = true;
        buffer_append(&connection->in, (struct slice){block, (size_t)got});
        if (connection->in.failed)
            return fail(connection, "it sends more than %zu bytes", connection->in.max);
        enum ras_outcome outcome = take_lines(connection, now_ns);
        if (outcome != RAS_GOING)
            return outcome;
        if (connection->phase == RAS_FOLLOWING)
            break; // what is there is looked at before more is read
    }
    return any && connection->phase == RAS_FOLLOWING ? RAS_TOLD : RAS_GOING;
}

static enum ras_outcome connected(struct ras_connection *connection, uint64_t now_ns) {
    int failure = 0;
    socklen_t size = sizeof failure;
    if (getsockopt(connection->descriptor, SOL_SOCKET, SO_ERROR, &failure, &size) != 0)
        failure = errno;
    if (failure != 0)
        return connect_next(connection, failure, now_ns);
    return send_command(connection, RAS_HELLO, STEP_NS, now_ns, "CLIENT PROTOCOL 2\n");
}

enum ras_outcome ras_connection_look(struct ras_connection *connection, short found,
                                     uint64_t now_ns) {
    enum ras_outcome outcome = RAS_GOING;
    assert(connection->phase != RAS_CLOSED);
    if (found != 0 && connection->phase == RAS_CONNECTING)
        outcome = connected(connection, now_ns);
    else if (found != 0 && connection->out_sent < connection->out_size)
        outcome = flush_command(connection);
    else if (found != 0)
        outcome = receive(connection, now_ns);
    if (outcome == RAS_GOING && now_ns >= connection->deadline_ns) {
        if (connection->phase == RAS_CONNECTING && connection->next != NULL)
            return connect_next(connection, ETIMEDOUT, now_ns);
        outcome = fail(connection,
                       connection->phase == RAS_STATUS
                           ? "its answer was not there in time (%zu bytes of it came)"
                           : "it does not answer (%zu bytes of a line came)",
                       connection->in.size);
    }
    return outcome;
}

// SPDX-License-Identifier: Apache-2.0
// One thread polls the listening socket and the connections. A request is read until its empty
// line, answered, and the connection closed; a tap stays and is filled as far as its client reads.
#include "pipeline/runtime/control/control.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text/json_write.h"
#include "base/thread.h"
#include "pipeline/runtime/control/place.h"
#include "pipeline/runtime/control/request.h"
#include "pipeline/runtime/control/status.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONTROL_MAGIC UINT32_C(0x4374726c)

enum {
    CONNECTIONS_MAX = 16,
    REQUEST_MAX = 4096,
    ANSWER_MAX = 16 << 20,
    STREAM_AHEAD = 64 << 10, // bytes that wait for a client that watches
    TAP_LOOK_MS = 100,
};
static const uint64_t SECOND_NS = UINT64_C(1000000000);
static const uint64_t PATIENCE_NS = UINT64_C(10000000000); // for a request, and for its answer
static const uint64_t REST_NS = UINT64_C(100000000);
static const uint64_t GRACE_NS = UINT64_C(500000000); // at the end, for all together

enum connection_state { CONNECTION_FREE, READING, WRITING, TAPPING };

struct connection {
    enum connection_state state;
    int descriptor;
    uint64_t deadline_ns; // READING, WRITING
    char request[REQUEST_MAX + 1];
    size_t request_size;
    struct buffer out;
    size_t written; // bytes of `out`
    // TAPPING
    struct tap *tap;
    struct runner *runner;
    uint64_t limit, given;
    uint64_t left_out_told, told_ns;
};

struct control {
    uint32_t magic; // CONTROL_MAGIC
    struct service *service;
    struct control_socket socket;
    int wake;
    const char *why; // it ends
    atomic_bool stopping;
    pthread_t thread;
    bool stranger_told;
    uint64_t rests_until_ns; // nobody could be let in (no descriptor is left): not at once again
    struct connection connections[CONNECTIONS_MAX];
};

// -- answers --------------------------------------------------------------------------------------

static void answer_head(struct connection *connection, const char *status, const char *type,
                        const struct buffer *body) {
    buffer_append_format(&connection->out,
                         "HTTP/1.1 %s\r\nContent-Type: %s\r\nConnection: close\r\n", status, type);
    if (body != NULL)
        buffer_append_format(&connection->out, "Content-Length: %zu\r\n", body->size);
    buffer_append_text(&connection->out, "\r\n");
    if (body != NULL)
        buffer_append(&connection->out, buffer_slice(body));
    connection->state = WRITING;
    connection->deadline_ns = clock_monotonic_ns() + PATIENCE_NS;
}

static void answer_error(struct connection *connection, const char *status, const char *message) {
    struct buffer body;
    buffer_init(&body, 8192);
    struct json_writer json;
    json_begin(&json, &body, 0);
    json_object_open(&json);
    json_field_text(&json, "error", message);
    json_object_close(&json);
    buffer_append_char(&body, '\n');
    answer_head(connection, status, "application/json", &body);
    buffer_release(&body);
}

static void answer_status(struct control *control, struct connection *connection) {
    struct buffer body;
    buffer_init(&body, ANSWER_MAX - 4096);
    control_status_write(control->service, &body);
    if (body.failed)
        answer_error(connection, "503 Service Unavailable", "the answer is too long");
    else
        answer_head(connection, "200 OK", "application/json", &body);
    buffer_release(&body);
}

// -- taps -----------------------------------------------------------------------------------------

static bool attach(struct connection *connection, const struct tap_request *request) {
    struct tap *tap = tap_create(&request->choice);
    bool added = false;
    if (lock_take_within(&request->runner->lock, SECOND_NS)) {
        added = tap_set_add(&request->runner->taps, tap);
        lock_release(&request->runner->lock);
    }
    if (!added) {
        tap_free(tap);
        return false;
    }
    connection->tap = tap;
    connection->runner = request->runner;
    connection->limit = request->limit;
    connection->given = connection->left_out_told = 0;
    connection->told_ns = clock_monotonic_ns();
    return true;
}

static void detach(struct connection *connection) {
    if (connection->tap == NULL)
        return;
    lock_take(&connection->runner->lock);
    tap_set_remove(&connection->runner->taps, connection->tap);
    lock_release(&connection->runner->lock);
    tap_free(connection->tap);
    connection->tap = NULL;
}

static void answer_tap(struct control *control, struct connection *connection, char *query) {
    struct tap_request request;
    struct error error = {0};
    lock_take(&control->service->status_lock);
    enum status status =
        control->service->built
            ? tap_request_read(&request, control->service, query, &error)
            : error_set(&error, STATUS_AGAIN, "culprit is starting or stopping; ask again");
    lock_release(&control->service->status_lock);
    if (status != STATUS_OK) {
        answer_error(connection,
                     status == STATUS_NOT_FOUND ? "404 Not Found"
                     : status == STATUS_AGAIN   ? "503 Service Unavailable"
                                                : "400 Bad Request",
                     error.message);
    } else if (!attach(connection, &request)) {
        answer_error(connection, "503 Service Unavailable",
                     "the pipeline is busy for more than a second, or four watch it already");
    } else {
        answer_head(connection, "200 OK", "application/x-ndjson", NULL);
        connection->state = TAPPING;
    }
}

// What was left out since this was told last.
static void tell_left_out(struct connection *connection, uint64_t now) {
    uint64_t left_out = tap_left_out(connection->tap);
    connection->told_ns = now;
    if (left_out == connection->left_out_told)
        return;
    buffer_append_format(&connection->out, "{\"left_out\":%llu}\n",
                         (unsigned long long)(left_out - connection->left_out_told));
    connection->left_out_told = left_out;
}

static void end_tap(struct connection *connection, const char *why) {
    assert(connection->state == TAPPING);
    uint64_t now = clock_monotonic_ns();
    tell_left_out(connection, now);
    buffer_append_format(&connection->out, "{\"end\":\"%s\"}\n", why);
    detach(connection);
    connection->state = WRITING;
    connection->deadline_ns = now + PATIENCE_NS;
}

// Makes lines of what waits, as long as the client reads.
static void fill_stream(struct connection *connection) {
    struct buffer *out = &connection->out;
    if (connection->written == out->size) {
        buffer_reset(out);
        connection->written = 0;
    }
    while (out->size < STREAM_AHEAD &&
           (connection->limit == 0 || connection->given < connection->limit) &&
           tap_next(connection->tap, out))
        connection->given++;
    uint64_t now = clock_monotonic_ns();
    if (out->size < STREAM_AHEAD && now - connection->told_ns >= SECOND_NS)
        tell_left_out(connection, now);
    if (connection->limit > 0 && connection->given == connection->limit)
        end_tap(connection, "limit");
}

// -- connections ----------------------------------------------------------------------------------

static void close_connection(struct connection *connection) {
    detach(connection);
    close(connection->descriptor);
    buffer_release(&connection->out);
    connection->state = CONNECTION_FREE;
}

// "GET /status?a=b HTTP/1.1": cut into its parts.
static void answer_request(struct control *control, struct connection *connection) {
    char *line = connection->request, *rest = NULL;
    line[strcspn(line, "\r\n")] = '\0';
    const char *method = strtok_r(line, " ", &rest);
    char *path = strtok_r(NULL, " ", &rest);
    const char *version = strtok_r(NULL, " ", &rest);
    if (method == NULL || path == NULL || version == NULL || strncmp(version, "HTTP/1.", 7) != 0) {
        answer_error(connection, "400 Bad Request", "this is not an HTTP/1.1 request");
        return;
    }
    char none[1] = "", *query = strchr(path, '?');
    if (query != NULL)
        *query++ = '\0';
    if (strcmp(method, "GET") != 0)
        answer_error(connection, "405 Method Not Allowed", "only GET is known here");
    else if (strcmp(path, "/status") == 0)
        answer_status(control, connection);
    else if (strcmp(path, "/tap") == 0)
        answer_tap(control, connection, query == NULL ? none : query);
    else
        answer_error(connection, "404 Not Found", "there are /status and /tap");
}

// False: it is over.
static bool read_request(struct control *control, struct connection *connection) {
    ssize_t got = recv(connection->descriptor, connection->request + connection->request_size,
                       REQUEST_MAX - connection->request_size, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        return false;
    connection->request_size += (size_t)got;
    connection->request[connection->request_size] = '\0';
    if (strlen(connection->request) < connection->request_size)
        answer_error(connection, "400 Bad Request", "a request holds no zero bytes");
    else if (strstr(connection->request, "\r\n\r\n") != NULL)
        answer_request(control, connection);
    else if (connection->request_size == REQUEST_MAX)
        answer_error(connection, "400 Bad Request", "the request is longer than 4 KiB");
    return true;
}

static bool write_some(struct connection *connection) {
    struct buffer *out = &connection->out;
    assert(connection->written <= out->size);
    while (connection->written < out->size) {
        ssize_t sent = send(connection->descriptor, out->data + connection->written,
                            out->size - connection->written, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        connection->written += (size_t)sent;
    }
    return connection->state == TAPPING;
}

// What a client that watches sends is of no interest; its end is.
static bool still_there(const struct connection *connection) {
    char some[512];
    ssize_t got = recv(connection->descriptor, some, sizeof some, 0);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool serve(struct control *control, struct connection *connection, short events) {
    bool stays = true;
    if (connection->state == READING && events != 0)
        stays = read_request(control, connection);
    else if (connection->state == TAPPING && (events & (POLLIN | POLLHUP | POLLERR)) != 0)
        stays = still_there(connection);
    if (stays && connection->state == TAPPING)
        fill_stream(connection);
    if (stays && connection->state != READING)
        stays = write_some(connection);
    return stays &&
           (connection->state == TAPPING || clock_monotonic_ns() < connection->deadline_ns);
}

static void let_in(struct control *control, struct connection *connection) {
    int descriptor = accept4(control->socket.descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uid_t user;
    if (descriptor < 0) {
        control->rests_until_ns = clock_monotonic_ns() + REST_NS;
        return;
    }
    if (!control_peer_allowed(descriptor, &user)) {
        close(descriptor);
        if (!control->stranger_told)
            log_write(LOG_WARN, (struct log_site){.code = "C1023"},
                      "user %u wanted to use the control socket %s and was refused", (unsigned)user,
                      control->socket.path);
        control->stranger_told = true;
        return;
    }
    *connection = (struct connection){.state = READING,
                                      .descriptor = descriptor,
                                      .deadline_ns = clock_monotonic_ns() + PATIENCE_NS};
    buffer_init(&connection->out, ANSWER_MAX);
}

// -- the thread -----------------------------------------------------------------------------------

static struct connection *free_connection(struct control *control) {
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (control->connections[i].state == CONNECTION_FREE)
            return &control->connections[i];
    return NULL;
}

// Descriptors to poll: the wake, the listener, then one a connection; returns the timeout.
static int prepare(struct control *control, struct pollfd events[CONNECTIONS_MAX + 2]) {
    uint64_t now = clock_monotonic_ns(), next = UINT64_MAX;
    events[0] = (struct pollfd){.fd = control->wake, .events = POLLIN};
    bool lets_in = free_connection(control) != NULL && now >= control->rests_until_ns;
    events[1] = (struct pollfd){.fd = lets_in ? control->socket.descriptor : -1, .events = POLLIN};
    if (now < control->rests_until_ns)
        next = control->rests_until_ns;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *connection = &control->connections[i];
        bool waits = connection->written < connection->out.size;
        events[2 + i] = (struct pollfd){.fd = -1};
        if (connection->state == CONNECTION_FREE)
            continue;
        events[2 + i].fd = connection->descriptor;
        events[2 + i].events =
            (short)((connection->state == WRITING ? 0 : POLLIN) | (waits ? POLLOUT : 0));
        uint64_t due = connection->state == TAPPING ? now + TAP_LOOK_MS * UINT64_C(1000000)
                                                    : connection->deadline_ns;
        next = due < next ? due : next;
    }
    if (next == UINT64_MAX)
        return -1;
    return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

static void *control_run(void *context) {
    struct control *control = context;
    assert(control->magic == CONTROL_MAGIC);
    struct pollfd events[CONNECTIONS_MAX + 2];
    thread_name("control", "");
    while (!atomic_load(&control->stopping)) {
        int timeout = prepare(control, events);
        if (poll(events, CONNECTIONS_MAX + 2, timeout) < 0) {
            clock_sleep_ns(REST_NS); // no memory: later
            continue;
        }
        for (int i = 0; i < CONNECTIONS_MAX; i++) {
            struct connection *connection = &control->connections[i];
            if (connection->state != CONNECTION_FREE && events[2 + i].fd >= 0 &&
                !serve(control, connection, events[2 + i].revents))
                close_connection(connection);
        }
        if (events[1].fd >= 0 && (events[1].revents & POLLIN) != 0)
            let_in(control, free_connection(control));
    }
    return NULL;
}

enum status control_start(struct control **out, struct service *service, const char *path,
                          struct error *error) {
    struct control *control = memory_zero(1, sizeof *control);
    control->magic = CONTROL_MAGIC;
    control->service = service;
    enum status status = control_listen(&control->socket, path, error);
    if (status != STATUS_OK) {
        memory_give(control);
        return status;
    }
    control->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failure = control->wake < 0 ? errno : 0;
    sigset_t all, before;
    sigfillset(&all); // signals are for another thread
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (failure == 0)
        failure = pthread_create(&control->thread, NULL, control_run, control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure != 0) {
        if (control->wake >= 0)
            close(control->wake);
        control_unlisten(&control->socket);
        memory_give(control);
        return error_set_os(error, STATUS_OS, failure, "the control socket cannot be served");
    }
    *out = control;
    return STATUS_OK;
}

const char *control_path(const struct control *control) {
    assert(control->magic == CONTROL_MAGIC);
    return control->socket.path;
}

// Writes what waits, to a client that reads. False: it does not, or is gone.
static bool write_until(struct connection *connection, uint64_t until_ns) {
    while (connection->written < connection->out.size) {
        uint64_t now = clock_monotonic_ns();
        struct pollfd room = {.fd = connection->descriptor, .events = POLLOUT};
        if (now >= until_ns || poll(&room, 1, (int)((until_ns - now) / 1000000 + 1)) <= 0 ||
            (room.revents & POLLOUT) == 0 ||
            (!write_some(connection) && connection->written < connection->out.size))
            return false;
    }
    return true;
}

// Gives the client the rest, as far as it reads it by then.
static void end_connection(struct connection *connection, const char *why, uint64_t until_ns) {
    bool reads = true;
    while (reads && connection->state == TAPPING) {
        fill_stream(connection);
        if (connection->out.size == 0)
            break;
        reads = write_until(connection, until_ns);
    }
    if (connection->state == TAPPING)
        end_tap(connection, why);
    if (reads && connection->state == WRITING)
        (void)write_until(connection, until_ns);
    close_connection(connection);
}

void control_stop(struct control *control, const char *why) {
    if (control == NULL)
        return;
    assert(control->magic == CONTROL_MAGIC);
    atomic_store(&control->stopping, true);
    eventfd_write(control->wake, 1);
    pthread_join(control->thread, NULL);
    uint64_t until_ns = clock_monotonic_ns() + GRACE_NS;
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (control->connections[i].state != CONNECTION_FREE)
            end_connection(&control->connections[i], why, until_ns);
    control_unlisten(&control->socket);
    close(control->wake);
    control->magic = 0;
    memory_give(control);
}

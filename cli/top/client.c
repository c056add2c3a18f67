// SPDX-License-Identifier: Apache-2.0
#include "cli/top/client.h"

#include "base/clock.h"
#include "base/text/display.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 16 << 20, LINE_MAX_BYTES = 1 << 20, HEAD_MAX = 8192, BLOCK = 64 << 10 };
static const uint64_t ANSWER_NS = UINT64_C(5000000000); // the head of a stream

enum status client_choose(const char *given, char path[CONTROL_PATH_MAX], struct error *error) {
    const char *environment = getenv("CULPRIT_SOCKET");
    const char *chosen = given != NULL                                   ? given
                         : environment != NULL && environment[0] != '\0' ? environment
                                                                         : NULL;
    char found[CONTROL_FOUND_MAX][CONTROL_PATH_MAX];
    uint32_t count = 1;
    if (chosen == NULL) {
        count = control_find(found);
        chosen = found[0];
    }
    if (count == 0)
        return error_set(error, STATUS_NOT_FOUND,
                         "no culprit of this user runs here; give --socket when its configuration "
                         "names one (service.control.socket), or when it runs as another user");
    if (count > 1) {
        char list[CONTROL_PATH_MAX * 6] = "";
        size_t at = 0;
        for (uint32_t i = 0; i < count && at < sizeof list; i++)
            at +=
                (size_t)snprintf(list + at, sizeof list - at, "%s%s", i == 0 ? "" : " ", found[i]);
        return error_set(error, STATUS_USAGE, "%u culprits run here; choose one with --socket: %s",
                         count, list);
    }
    if (strlen(chosen) >= CONTROL_PATH_MAX)
        return error_set(error, STATUS_USAGE, "the path of a socket must be shorter than %d bytes",
                         CONTROL_PATH_MAX);
    memcpy(path, chosen, strlen(chosen) + 1);
    return STATUS_OK;
}

// -- one connection -------------------------------------------------------------------------------

struct exchange {
    int descriptor;
    int interrupt;
    int output;       // is it still read?
    struct buffer in; // what was read and not used yet
    bool over;        // the other end closed it
};

// Waits until the socket can be read (or written); STATUS_AGAIN when the time is over.
static enum status wait_for(const struct exchange *exchange, short events, uint64_t until_ns,
                            struct error *error) {
    struct pollfd polled[] = {{.fd = exchange->descriptor, .events = events},
                              {.fd = exchange->interrupt, .events = POLLIN},
                              {.fd = exchange->output}};
    for (;;) {
        uint64_t now = clock_monotonic_ns();
        uint64_t left = until_ns > now ? until_ns - now : 0;
        int wait_ms = until_ns == UINT64_MAX ? -1 : (int)(left / 1000000 + (left > 0));
        int ready = poll(polled, 3, wait_ms);
        if (ready < 0 && errno != EINTR)
            return error_set_os(error, STATUS_OS, errno, "cannot wait for the answer");
        if (ready > 0 && (polled[1].revents != 0 || (polled[2].revents & POLLERR) != 0))
            return error_set(error, STATUS_STOPPED, "interrupted");
        if (ready > 0)
            return STATUS_OK;
        if (ready == 0 && clock_monotonic_ns() >= until_ns)
            return STATUS_AGAIN;
    }
}

// Reads what is there, once it is.
static enum status read_more(struct exchange *exchange, uint64_t until_ns, struct error *error) {
    enum status status = wait_for(exchange, POLLIN, until_ns, error);
    if (status == STATUS_AGAIN)
        return error_set(error, STATUS_AGAIN, "culprit does not answer");
    if (status != STATUS_OK)
        return status;
    char block[BLOCK];
    ssize_t got = recv(exchange->descriptor, block, sizeof block, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return STATUS_OK;
    if (got < 0 && errno != ECONNRESET)
        return error_set_os(error, STATUS_IO, errno, "culprit cannot be read");
    exchange->over = got <= 0;
    if (got > 0)
        buffer_append(&exchange->in, (struct slice){block, (size_t)got});
    return exchange->in.failed ? error_set(error, STATUS_LIMIT, "the answer is too long")
                               : STATUS_OK;
}

static enum status ask(struct exchange *exchange, const char *path, const char *target,
                       uint64_t until_ns, struct error *error) {
    enum status status = control_connect(path, &exchange->descriptor, error);
    if (status != STATUS_OK)
        return status;
    struct buffer request;
    buffer_init(&request, HEAD_MAX);
    buffer_append_format(&request, "GET %s HTTP/1.1\r\nHost: culprit\r\n\r\n", target);
    bool fits = !request.failed;
    for (size_t sent = 0; fits && status == STATUS_OK && sent < request.size;) {
        status = wait_for(exchange, POLLOUT, until_ns, error);
        ssize_t some = status != STATUS_OK ? 0
                                           : send(exchange->descriptor, request.data + sent,
                                                  request.size - sent, MSG_NOSIGNAL);
        if (some > 0)
            sent += (size_t)some;
        else if (status == STATUS_OK && errno != EAGAIN && errno != EINTR)
            break; // it was refused: reading says so
    }
    buffer_release(&request);
    if (status == STATUS_AGAIN)
        return error_set(error, STATUS_IO, "culprit does not answer at %s", path);
    return fits ? status : error_set(error, STATUS_USAGE, "what is asked for is too long");
}

static void take_off(struct buffer *buffer, size_t size) {
    assert(size <= buffer->size);
    memmove(buffer->data, buffer->data + size, buffer->size - size);
    buffer->size -= size;
}

// Reads the head of the answer and takes it off. `*code` is its status.
static enum status read_head(struct exchange *exchange, const char *path, uint64_t until_ns,
                             int *code, struct error *error) {
    const char *end = NULL;
    while (end == NULL) {
        enum status status = read_more(exchange, until_ns, error);
        if (status == STATUS_AGAIN)
            return error_set(error, STATUS_IO, "culprit does not answer at %s", path);
        if (status != STATUS_OK)
            return status;
        if (exchange->in.size > 0)
            end = memmem(exchange->in.data, exchange->in.size, "\r\n\r\n", 4);
        if (end == NULL && exchange->over && exchange->in.size == 0)
            return error_set(error, STATUS_DENIED,
                             "%s closed the connection: only the user that culprit runs as, or "
                             "root, is answered there",
                             path);
        if (end == NULL && (exchange->over || exchange->in.size > HEAD_MAX))
            return error_set(error, STATUS_IO, "what listens at %s is no culprit", path);
    }
    if (exchange->in.size < 12 || memcmp(exchange->in.data, "HTTP/1.1 ", 9) != 0)
        return error_set(error, STATUS_IO, "what listens at %s is no culprit", path);
    *code = atoi(exchange->in.data + 9);
    take_off(&exchange->in, (size_t)(end + 4 - exchange->in.data));
    return STATUS_OK;
}

// The answer is {"error":"…"}.
static enum status refused(struct exchange *exchange, int code, uint64_t until_ns,
                           struct error *error) {
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !exchange->over)
        status = read_more(exchange, until_ns, error);
    json_t *answer =
        exchange->in.size == 0 ? NULL : json_loadb(exchange->in.data, exchange->in.size, 0, NULL);
    const char *why = json_string_value(json_object_get(answer, "error"));
    status = error_set(error,
                       code == 404   ? STATUS_NOT_FOUND
                       : code == 400 ? STATUS_USAGE
                                     : STATUS_AGAIN,
                       "%.900s", why == NULL ? "culprit refused it" : why);
    json_decref(answer);
    return status;
}

static void exchange_init(struct exchange *exchange, int interrupt, int output, size_t max) {
    *exchange = (struct exchange){.descriptor = -1, .interrupt = interrupt, .output = output};
    buffer_init(&exchange->in, max);
}

static void exchange_end(struct exchange *exchange) {
    if (exchange->descriptor >= 0)
        close(exchange->descriptor);
    buffer_release(&exchange->in);
}

enum status client_get(const char *path, const char *target, uint64_t timeout_ns, int interrupt,
                       struct buffer *body, struct error *error) {
    struct exchange exchange;
    uint64_t until_ns = clock_monotonic_ns() + timeout_ns;
    int code = 0;
    exchange_init(&exchange, interrupt, -1, ANSWER_MAX);
    enum status status = ask(&exchange, path, target, until_ns, error);
    if (status == STATUS_OK)
        status = read_head(&exchange, path, until_ns, &code, error);
    if (status == STATUS_OK && code != 200)
        status = refused(&exchange, code, until_ns, error);
    while (status == STATUS_OK && !exchange.over)
        status = read_more(&exchange, until_ns, error);
    if (status == STATUS_AGAIN && code == 200)
        status = error_set(error, STATUS_IO, "culprit does not answer at %s", path);
    if (status == STATUS_OK)
        buffer_append(body, buffer_slice(&exchange.in));
    exchange_end(&exchange);
    return status;
}

// -- streams --------------------------------------------------------------------------------------

static bool is_end(struct slice line, char why[CLIENT_WHY_MAX]) {
    static const char begin[] = "{\"end\":\"";
    size_t size = sizeof begin - 1;
    if (line.size < size + 2 || memcmp(line.data, begin, size) != 0)
        return false;
    snprintf(why, CLIENT_WHY_MAX, "%.*s", (int)(line.size - size - 2), line.data + size);
    return true;
}

// The whole lines that are there. False: it is over.
static bool take_lines(struct exchange *exchange, struct client_stream *stream) {
    struct buffer *in = &exchange->in;
    size_t used = 0;
    bool goes_on = true;
    while (goes_on && used < in->size) {
        const char *newline = memchr(in->data + used, '\n', in->size - used);
        if (newline == NULL)
            break;
        struct slice line = {in->data + used, (size_t)(newline - in->data) - used};
        used += line.size + 1;
        goes_on = !is_end(line, stream->why) && stream->take(stream->context, line);
    }
    if (used > 0)
        take_off(in, used);
    return goes_on;
}

enum status client_stream(const char *path, const char *target, struct client_stream *stream,
                          struct error *error) {
    struct exchange exchange;
    uint64_t until_ns = clock_monotonic_ns() + ANSWER_NS;
    int code = 0;
    stream->why[0] = '\0';
    exchange_init(&exchange, stream->interrupt, stream->output, LINE_MAX_BYTES + BLOCK);
    enum status status = ask(&exchange, path, target, until_ns, error);
    if (status == STATUS_OK)
        status = read_head(&exchange, path, until_ns, &code, error);
    if (status == STATUS_OK && code != 200)
        status = refused(&exchange, code, until_ns, error);
    bool goes_on = true;
    while (status == STATUS_OK && (goes_on = take_lines(&exchange, stream)) && !exchange.over) {
        if (stream->idle != NULL)
            stream->idle(stream->context);
        status = read_more(&exchange, UINT64_MAX, error);
    }
    if (status == STATUS_OK && goes_on)
        status = error_set(error, STATUS_IO, "culprit at %s has gone away", path);
    exchange_end(&exchange);
    return status;
}

void client_append_query(struct buffer *out, const char *name, struct slice value) {
    static const char digits[] = "0123456789ABCDEF";
    buffer_append_format(out, "&%s=", name);
    for (size_t i = 0; i < value.size; i++) {
        unsigned char c = (unsigned char)value.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~' || c == ',' || c == '/';
        if (plain) {
            buffer_append_char(out, (char)c);
            continue;
        }
        buffer_append_char(out, '%');
        buffer_append_char(out, digits[c >> 4]);
        buffer_append_char(out, digits[c & 15]);
    }
}

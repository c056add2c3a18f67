// SPDX-License-Identifier: Apache-2.0
// Streams of events on the connections of an HTTP listener.
//
// A listener's connection rests (is suspended) while it has all that there is. libmicrohttpd does
// not look at a connection that rests, so the heartbeat also finds out who has gone: a client that
// closed is seen by a look at its socket, and one whose system took none of what was sent since the
// heartbeat before is shut down. Lock order: the channel's, then libmicrohttpd's own.
#include "base/http/events.h"

#include "base/clock.h"
#include "base/http/server_parts.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { EVENTS_MAGIC = 0x48455654, WAKE_MAX = 64 };

struct http_events {
    uint32_t magic; // EVENTS_MAGIC
    struct http_events_options options;
    pthread_t thread;
    bool running;
    atomic_uint_fast32_t count; // of listeners

    struct lock lock; // of what follows, and of the listeners
    pthread_cond_t changed;
    struct http_exchange *first;
    bool ending;       // the thread
    bool closed;       // the streams
    uint32_t waking;   // threads that are about to wake connections which they took off the list
    uint64_t sequence; // of the newest message; 0: none yet
    char id[HTTP_EVENT_TEXT_MAX + 1];
    char text[HTTP_EVENT_TEXT_MAX + 64];
};

// -- waking -------------------------------------------------------------------------------------

static bool has_news(const struct http_events *events, const struct http_exchange *exchange) {
    return events->closed || exchange->listener.beat ||
           exchange->listener.sequence != events->sequence;
}

// Wakes those who rest and have something to be sent. The channel's lock is held, and let go while
// libmicrohttpd is called: nobody else wakes what was taken here, and what rests does not end.
static void wake(struct http_events *events) {
    assert(lock_is_held(&events->lock));
    struct http_server *server = NULL;
    struct MHD_Connection *woken[WAKE_MAX];
    uint32_t count;
    do {
        count = 0;
        struct http_exchange *at = events->first;
        for (; at != NULL && count < WAKE_MAX; at = at->listener.next) {
            if (!at->listener.suspended || !has_news(events, at))
                continue;
            at->listener.suspended = false;
            server = at->server;
            woken[count++] = at->native;
        }
        if (count == 0)
            return;
        events->waking++;
        lock_release(&events->lock);
        for (uint32_t i = 0; i < count; i++)
            server->library->resume_connection(woken[i]);
        lock_take(&events->lock);
        events->waking--;
        pthread_cond_broadcast(&events->changed);
    } while (count == WAKE_MAX);
}

// Whether the client has closed its end, or took nothing of what was sent at the last heartbeat.
static bool is_gone(const struct http_exchange *exchange) {
    int descriptor = exchange->connection->descriptor, left = 0;
    char byte;
    ssize_t got = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        return true;
    return ioctl(descriptor, SIOCOUTQ, &left) == 0 && left > 0;
}

static void beat(struct http_events *events) {
    assert(lock_is_held(&events->lock));
    struct http_exchange *at = events->first;
    for (; at != NULL; at = at->listener.next) {
        // One that does not rest is being written to, within its time.
        if (!at->listener.suspended)
            continue;
        if (is_gone(at))
            (void)shutdown(at->connection->descriptor, SHUT_RDWR);
        at->listener.beat = true;
    }
    wake(events);
}

static void *run(void *context) {
    struct http_events *events = context;
    assert(events->magic == EVENTS_MAGIC);
    lock_take(&events->lock);
    while (!events->ending) {
        uint64_t next = UINT64_MAX;
        if (events->first != NULL)
            next = clock_monotonic_ns() + events->options.heartbeat_ns;
        while (!events->ending && (next != UINT64_MAX || events->first == NULL) &&
               cond_wait_until(&events->changed, &events->lock, next))
            continue;
        if (!events->ending && next != UINT64_MAX)
            beat(events);
    }
    lock_release(&events->lock);
    return NULL;
}

// -- what a listener is sent --------------------------------------------------------------------

// Puts what it is to be sent next into the body of its answer; false: nothing. Under the lock.
static bool compose(struct http_events *events, struct http_exchange *exchange) {
    struct http_listener *listener = &exchange->listener;
    struct buffer *body = &exchange->response.body;
    assert(lock_is_held(&events->lock) && listener->given == body->size);
    listener->given = 0;
    buffer_reset(body);
    if (listener->sequence != events->sequence)
        buffer_append_text(body, events->text);
    else if (listener->beat)
        buffer_append_text(body, ":\n\n");
    listener->sequence = events->sequence;
    listener->beat = false;
    return body->size > 0;
}

ssize_t events_read(void *context, uint64_t offset, char *out, size_t max) {
    (void)offset;
    struct http_exchange *exchange = context;
    assert(exchange->magic == EXCHANGE_MAGIC && max > 0);
    struct http_listener *listener = &exchange->listener;
    struct http_events *events = listener->channel;
    struct buffer *body = &exchange->response.body;
    lock_take(&events->lock);
    if (events->closed) {
        lock_release(&events->lock);
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    size_t size = 0;
    bool alive = true;
    if (listener->given < body->size || compose(events, exchange)) {
        size = body->size - listener->given < max ? body->size - listener->given : max;
        memcpy(out, body->data + listener->given, size);
        listener->given += size;
        alive = watch_enter(exchange->connection, PHASE_WRITING, events->options.read_timeout_ns);
    } else {
        // All that was sent has left: time does not count while there is nothing to send.
        alive = watch_enter(exchange->connection, PHASE_HANDLING, 0);
        if (alive) {
            listener->suspended = true;
            exchange->server->library->suspend_connection(exchange->native);
        }
    }
    lock_release(&events->lock);
    return alive ? (ssize_t)size : MHD_CONTENT_READER_END_WITH_ERROR;
}

// -- who listens --------------------------------------------------------------------------------

bool events_join(struct http_exchange *exchange) {
    struct http_events *events = exchange->path->events;
    struct http_listener *listener = &exchange->listener;
    assert(events->magic == EVENTS_MAGIC && listener->channel == NULL);
    const char *known = http_request_header(&exchange->request, "Last-Event-ID");
    struct buffer *body = &exchange->response.body;
    lock_take(&events->lock);
    bool full = atomic_load(&events->count) >= events->options.max_listeners;
    if (events->closed || full) {
        // Those who have gone make room for who comes again.
        if (full)
            beat(events);
        lock_release(&events->lock);
        return false;
    }
    *listener = (struct http_listener){.channel = events, .next = events->first};
    if (events->first != NULL)
        events->first->listener.previous = exchange;
    events->first = exchange;
    atomic_fetch_add(&events->count, 1);
    buffer_append_format(body, "retry: %u\n\n", (unsigned)events->options.retry_ms);
    if (known != NULL && strcmp(known, events->id) == 0)
        listener->sequence = events->sequence;
    pthread_cond_broadcast(&events->changed);
    lock_release(&events->lock);
    return true;
}

void events_leave(struct http_exchange *exchange) {
    struct http_listener *listener = &exchange->listener;
    struct http_events *events = listener->channel;
    if (events == NULL)
        return;
    lock_take(&events->lock);
    assert(events->magic == EVENTS_MAGIC && !listener->suspended);
    if (listener->previous != NULL)
        listener->previous->listener.next = listener->next;
    else
        events->first = listener->next;
    if (listener->next != NULL)
        listener->next->listener.previous = listener->previous;
    *listener = (struct http_listener){.channel = NULL};
    assert(atomic_load(&events->count) > 0);
    atomic_fetch_sub(&events->count, 1);
    pthread_cond_broadcast(&events->changed);
    lock_release(&events->lock);
}

void events_open(struct http_events *events) {
    lock_take(&events->lock);
    assert(events->magic == EVENTS_MAGIC && events->first == NULL);
    events->closed = false;
    lock_release(&events->lock);
}

void events_close(struct http_events *events) {
    lock_take(&events->lock);
    assert(events->magic == EVENTS_MAGIC);
    events->closed = true;
    wake(events);
    while (events->waking > 0)
        cond_wait(&events->changed, &events->lock);
    lock_release(&events->lock);
}

// -- the channel --------------------------------------------------------------------------------

static enum status start_thread(struct http_events *events, struct error *error) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int os_error = pthread_create(&events->thread, NULL, run, events);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (os_error != 0)
        return error_set_os(error, STATUS_OS, os_error,
                            "a thread for heartbeats cannot be started");
    (void)pthread_setname_np(events->thread, "http-events");
    events->running = true;
    return STATUS_OK;
}

enum status http_events_start(struct http_events **out, const struct http_events_options *options,
                              struct error *error) {
    assert(options->max_listeners > 0 && options->heartbeat_ns > 0);
    struct http_events *events = memory_zero(1, sizeof *events);
    events->magic = EVENTS_MAGIC;
    events->options = *options;
    lock_init(&events->lock);
    cond_init(&events->changed);
    enum status status = start_thread(events, error);
    if (status == STATUS_OK)
        *out = events;
    else
        http_events_stop(events);
    return status;
}

void http_events_stop(struct http_events *events) {
    if (events == NULL)
        return;
    assert(events->magic == EVENTS_MAGIC && atomic_load(&events->count) == 0);
    lock_take(&events->lock);
    events->ending = true;
    pthread_cond_broadcast(&events->changed);
    lock_release(&events->lock);
    if (events->running)
        pthread_join(events->thread, NULL);
    pthread_cond_destroy(&events->changed);
    lock_destroy(&events->lock);
    events->magic = 0;
    memory_give(events);
}

void http_events_publish(struct http_events *events, const char *id, const char *name,
                         const char *data) {
    assert(events->magic == EVENTS_MAGIC && strpbrk(id, "\r\n") == NULL);
    assert(strpbrk(name, "\r\n") == NULL && strpbrk(data, "\r\n") == NULL);
    assert(id[0] != '\0' && strlen(id) + strlen(name) + strlen(data) <= HTTP_EVENT_TEXT_MAX);
    lock_take(&events->lock);
    snprintf(events->id, sizeof events->id, "%s", id);
    snprintf(events->text, sizeof events->text, "id: %s\nevent: %s\ndata: %s\n\n", id, name, data);
    events->sequence++;
    wake(events);
    lock_release(&events->lock);
}

uint32_t http_events_listeners(const struct http_events *events) {
    return (uint32_t)atomic_load(&events->count);
}

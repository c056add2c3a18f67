// SPDX-License-Identifier: Apache-2.0
// The loop: begins requests that are due, waits for bytes of all of them, and looks once a while
// how each watch is.
//
// While the pipelines take nothing, nothing is read: the server then ends the watches by itself,
// and they go on from their versions.
#include "base/clock.h"
#include "receivers/kubernetes/receiver.h"

#include <stdio.h>

enum { ONCE_FAILURES_MAX = 3 };

static const uint64_t MS_NS = 1000000;
static const uint64_t WAIT_MOST_NS = 500000000;
static const uint64_t TEND_NS = 250000000;
static const uint64_t STATE_SILENT_NS = 30000000000;

// -- looking after them -------------------------------------------------------------------------

static void show_last_success(const struct watch *watch, uint64_t now_ns) {
    bool open = watch->phase == PHASE_WATCH && watch->trouble[0] == '\0';
    metric_set(watch->counters.last_success_ns,
               open || watch->answered_ns == 0 ? 0 : now_ns - watch->answered_ns);
}

static bool answers(const struct watch *watch) {
    return watch->stream != NULL && http_stream_status(watch->stream) == 200;
}

static void tend_watch(struct watch *watch, uint64_t now_ns) {
    bool open = answers(watch);
    if (open && (watch->phase == PHASE_WATCH || watch->line_count > 0))
        watch_succeeded(watch, now_ns);
    // What happened since the version that was restored comes at once, when anything did.
    if (open && watch->phase == PHASE_WATCH && now_ns - watch->heard_ns > TEND_NS)
        watch->behind = false;
    // A server that has no streamed lists may not say so.
    if (watch->phase == PHASE_STREAMED_LIST && watch->listing && open &&
        now_ns - watch->heard_ns > STATE_SILENT_NS) {
        watch_cancel(watch);
        watch->streamed_lists = watch->listing = false;
        watch->not_before_ns = now_ns;
    }
    show_last_success(watch, now_ns);
}

// The sentences of all watches that do not work now, each once.
static void tell_trouble(struct kubernetes_receiver *receiver) {
    char text[sizeof receiver->trouble] = "";
    size_t used = 0;
    bool connected = true;
    for (uint32_t i = 0; i < receiver->watch_count; i++) {
        const struct watch *watch = &receiver->watches[i];
        size_t size = strlen(watch->trouble);
        connected &= size == 0 || watch->trouble_class != FAILURE_CONNECTION;
        if (size == 0 || used + size + 3 > sizeof text || strstr(text, watch->trouble) != NULL)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used == 0 ? "" : "; ",
                                 watch->trouble);
    }
    if (connected)
        receiver->connection_trouble[0] = '\0';
    if (strcmp(text, receiver->trouble) == 0)
        return;
    memcpy(receiver->trouble, text, sizeof text);
    feed_trouble(receiver->feed, used == 0 ? NULL : text);
}

// What was there has been handed over, or cannot be for now.
static void look_whether_caught_up(struct kubernetes_receiver *receiver) {
    if (receiver->caught_up)
        return;
    for (uint32_t i = 0; i < receiver->watch_count; i++)
        if (receiver->watches[i].behind && receiver->watches[i].trouble[0] == '\0')
            return;
    receiver->caught_up = true;
    feed_caught_up(receiver->feed);
}

static void tend(struct kubernetes_receiver *receiver, uint64_t now_ns) {
    if (now_ns - receiver->tended_ns < TEND_NS)
        return;
    receiver->tended_ns = now_ns;
    for (uint32_t i = 0; i < receiver->watch_count; i++)
        tend_watch(&receiver->watches[i], now_ns);
    tell_trouble(receiver);
    look_whether_caught_up(receiver);
}

// -- one turn -----------------------------------------------------------------------------------

static uint64_t begin_due(struct watch *watches, uint32_t count, uint64_t now_ns) {
    uint64_t wait = WAIT_MOST_NS;
    for (uint32_t i = 0; i < count; i++) {
        struct watch *watch = &watches[i];
        if (watch->phase == PHASE_IDLE && watch->not_before_ns <= now_ns)
            watch_begin(watch, now_ns);
        if (watch->phase == PHASE_IDLE && watch->not_before_ns - now_ns < wait)
            wait = watch->not_before_ns - now_ns;
    }
    return wait + MS_NS;
}

static void turn(struct kubernetes_receiver *receiver, struct watch *watches, uint32_t count) {
    struct http_stream *stream;
    uint64_t wait = begin_due(watches, count, clock_monotonic_ns());
    http_streams_wait(receiver->streams, feed_stop_descriptor(receiver->feed), wait);
    while ((stream = http_streams_ended(receiver->streams)) != NULL)
        watch_ended(http_stream_context(stream), clock_monotonic_ns());
    // What there was has been read; nothing that an open watch has not sent is waited for. A
    // streamed list goes on as a watch.
    for (uint32_t i = 0; i < count; i++)
        if ((watches[i].phase == PHASE_WATCH || watches[i].phase == PHASE_STREAMED_LIST) &&
            !watches[i].listing && !watches[i].behind && answers(&watches[i]))
            feed_source_caught_up(receiver->feed, watches[i].source);
    feed_flush(receiver->feed);
}

static enum status attach(struct kubernetes_receiver *receiver, struct feed *feed,
                          struct error *error) {
    assert(receiver->started && receiver->streams == NULL);
    receiver->feed = feed;
    receiver->caught_up = false;
    receiver->trouble[0] = '\0';
    receiver->random = clock_unix_ns();
    return http_streams_open(&receiver->streams, error);
}

static void detach(struct kubernetes_receiver *receiver) {
    http_streams_close(receiver->streams);
    receiver->streams = NULL;
    receiver->feed = NULL;
}

enum status kubernetes_run(void *instance, struct feed *feed, struct error *error) {
    struct kubernetes_receiver *receiver = instance;
    enum status status = attach(receiver, feed, error);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < receiver->watch_count; i++)
        watch_attach(&receiver->watches[i], feed);
    while (!feed_stopping(feed)) {
        if (!feed_blocked(feed) || feed_wait(feed, WAIT_MOST_NS))
            turn(receiver, receiver->watches, receiver->watch_count);
        tend(receiver, clock_monotonic_ns());
    }
    feed_flush(feed);
    for (uint32_t i = 0; i < receiver->watch_count; i++)
        watch_detach(&receiver->watches[i]);
    detach(receiver);
    return STATUS_OK;
}

// -- once -----------------------------------------------------------------------------------------

enum status kubernetes_list(void *instance, struct source_list *sources, struct error *error) {
    (void)error;
    struct kubernetes_receiver *receiver = instance;
    assert(receiver->started);
    for (uint32_t i = 0; i < receiver->watch_count; i++)
        source_list_add(sources, slice_of(receiver->watches[i].url));
    return STATUS_OK;
}

// One resource, listed once. What cannot be listed is told in the answer like a missing file.
enum status kubernetes_read(void *instance, struct feed *feed, struct slice path,
                            struct error *error) {
    struct kubernetes_receiver *receiver = instance;
    struct watch *watch = receiver->watches;
    for (uint32_t i = 0; i < receiver->watch_count; i++)
        if (slice_equal(path, slice_of(receiver->watches[i].url)))
            watch = &receiver->watches[i];
    enum status status = attach(receiver, feed, error);
    if (status != STATUS_OK)
        return status;
    watch_attach(watch, feed);
    while (!watch->listed && watch->failures < ONCE_FAILURES_MAX && !feed_stopping(feed))
        turn(receiver, watch, 1);
    if (!watch->listed)
        feed_missing(feed, path, slice_of(watch->trouble));
    feed_flush(feed);
    watch_detach(watch);
    detach(receiver);
    return STATUS_OK;
}

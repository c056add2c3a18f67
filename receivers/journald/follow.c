// SPDX-License-Identifier: Apache-2.0
// Reads the journal to its end, hands over, and waits for more.
//
// The position of an entry is how many were read so far, over all restarts, with the entry's cursor
// in five words. After a start the reader is put on that entry; when it is not there any more,
// entries may be lost.
#include "base/clock.h"
#include "base/memory.h"
#include "receivers/decode/tagged/tagged.h"
#include "receivers/journald/receiver.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum {
    BURST_MAX = 1024,      // entries between two flushes
    DRAIN_BURSTS_MAX = 64, // at a stop
    WAIT_MS = 10000,
    HELD_WAIT_MS = 500,
};
static const uint64_t RETRY_NS = UINT64_C(1000000000);
static const uint64_t BLOCKED_NS = UINT64_C(500000000);
static const uint64_t FINISH_NS = UINT64_C(5000000000);

static void flush(struct journald_receiver *receiver) {
    feed_flush(receiver->feed);
    receiver->used = 0;
}

// -- entries --------------------------------------------------------------------------------------

enum turn { TURN_MORE, TURN_DRAINED, TURN_FAILED };

// Remembers where the journal stands. False: it cannot tell.
static bool take_cursor(struct journald_receiver *receiver) {
    char *text = NULL;
    if (receiver->library->get_cursor(receiver->journal, &text) < 0)
        return false;
    bool right = journal_cursor_parse(slice_of(text), &receiver->cursor);
    free(text); // NOLINT: the library's own allocation
    receiver->known = receiver->known || right;
    return right;
}

static void take_entry(struct journald_receiver *receiver) {
    struct slice line;
    receiver->read_ns = clock_monotonic_ns();
    bool placed = take_cursor(receiver);
    if (!placed && receiver->context->copy == 0)
        metric_add(receiver->counters.unreadable, 1);
    bool told = placed && journald_line(receiver, &line);
    struct source_position position = {.number = ++receiver->count};
    memcpy(position.detail, receiver->cursor.words, sizeof position.detail);
    feed_source_reached(receiver->source, &position);
    if (!told)
        return;
    feed_source_figures(receiver->source)->bytes += line.size;
    (void)record_sink_offer(&receiver->sink, receiver->source, line, position.number);
}

// 1: at an entry that is still to be read; 0: none for now; below 0: it cannot be read on.
static int go_on(struct journald_receiver *receiver) {
    if (receiver->at_entry) {
        receiver->at_entry = false;
        return 1;
    }
    return receiver->library->next(receiver->journal);
}

static enum turn read_burst(struct journald_receiver *receiver, struct error *error) {
    enum turn turn = TURN_MORE;
    for (int i = 0; turn == TURN_MORE && i < BURST_MAX; i++) {
        if (receiver->block_size - receiver->used < receiver->line_max)
            break;
        int result = go_on(receiver);
        if (result > 0) {
            take_entry(receiver);
        } else if (result == 0) {
            turn = TURN_DRAINED;
            feed_source_caught_up(receiver->feed, receiver->source);
        } else {
            error_set_os(error, STATUS_IO, -result, "the journal cannot be read on");
            turn = TURN_FAILED;
        }
    }
    flush(receiver);
    return turn;
}

// -- the beginning --------------------------------------------------------------------------------

static uint64_t now_us(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void find_start(struct journald_receiver *receiver) {
    uint64_t now = now_us(CLOCK_REALTIME), up = now_us(CLOCK_BOOTTIME);
    switch (receiver->config->start_at) {
    case JOURNALD_START_BEGINNING:
        receiver->start_us = 0;
        break;
    case JOURNALD_START_BOOT:
        receiver->start_us = now > up ? now - up : 0;
        break;
    default:
        receiver->start_us = now;
        break;
    }
}

static void attach(struct journald_receiver *receiver, struct feed *feed) {
    assert(receiver->magic == JOURNALD_RECEIVER_MAGIC);
    if (receiver->feed == feed)
        return;
    assert(receiver->feed == NULL);
    receiver->feed = feed;
    record_sink_attach(&receiver->sink, feed);
    receiver->line_max = JOURNALD_AROUND_MAX + 6 * (size_t)receiver->config->max_message_size.bytes;
    receiver->block_size = JOURNALD_BLOCK_SIZE + receiver->line_max;
    receiver->block = memory_take(receiver->block_size);
    buffer_init(&receiver->line, receiver->line_max);
    receiver->source = feed_source(feed, slice_of(receiver->path));
    struct source_position at = feed_source_restored(receiver->source);
    receiver->count = at.number;
    receiver->known = at.number > 0;
    memcpy(receiver->cursor.words, at.detail, sizeof at.detail);
    find_start(receiver);
    record_options_format(receiver->source, &decoder_tagged, &receiver->sink.known);
}

// -- live -----------------------------------------------------------------------------------------

static void caught_up(struct journald_receiver *receiver) {
    feed_caught_up(receiver->feed);
    feed_steps(receiver->feed, true);
}

// How long the library lets its reader sleep, at most `most_ms`.
static int sleep_ms(struct journald_receiver *receiver, uint64_t most_ms) {
    uint64_t until_us = UINT64_MAX;
    if (receiver->library->get_timeout(receiver->journal, &until_us) < 0 || until_us == UINT64_MAX)
        return (int)most_ms;
    uint64_t now = now_us(CLOCK_MONOTONIC);
    uint64_t left_ms = until_us <= now ? 0 : (until_us - now + 999) / 1000;
    return (int)(left_ms < most_ms ? left_ms : most_ms);
}

static void wait_journal(struct journald_receiver *receiver, uint64_t most_ms) {
    struct pollfd both[2] = {
        {.fd = feed_stop_descriptor(receiver->feed), .events = POLLIN},
        {.fd = -1},
    };
    int timeout_ms = (int)most_ms;
    if (receiver->journal != NULL) {
        int events = receiver->library->get_events(receiver->journal);
        both[1].fd = receiver->library->get_fd(receiver->journal);
        both[1].events = (short)(events < 0 ? POLLIN : events);
        timeout_ms = sleep_ms(receiver, most_ms);
    }
    poll(both, 2, timeout_ms);
    if (receiver->journal != NULL && receiver->library->process(receiver->journal) < 0)
        journald_close(receiver); // opened again at the next turn
}

// What is held becomes events when nothing has come for a while; then time passes.
static void rest(struct journald_receiver *receiver, uint64_t most_ms) {
    bool holds = feed_source_holds(receiver->source);
    if (holds && clock_monotonic_ns() - receiver->read_ns >= FINISH_NS) {
        feed_source_finish(receiver->feed, receiver->source);
        feed_source_caught_up(receiver->feed, receiver->source);
        flush(receiver);
        holds = false;
    }
    wait_journal(receiver, holds && most_ms > HELD_WAIT_MS ? HELD_WAIT_MS : most_ms);
}

static void fail(struct journald_receiver *receiver, const struct error *error) {
    feed_trouble(receiver->feed, error->message);
    journald_close(receiver);
    caught_up(receiver); // others need not wait for it
    rest(receiver, RETRY_NS / 1000000);
}

static void turn(struct journald_receiver *receiver) {
    struct error error;
    if (receiver->journal == NULL && journald_open(receiver, &error) != STATUS_OK) {
        fail(receiver, &error);
        return;
    }
    if (feed_blocked(receiver->feed) && !feed_wait(receiver->feed, BLOCKED_NS))
        return;
    switch (read_burst(receiver, &error)) {
    case TURN_DRAINED:
        feed_trouble(receiver->feed, NULL);
        caught_up(receiver);
        rest(receiver, WAIT_MS);
        break;
    case TURN_FAILED:
        fail(receiver, &error);
        break;
    case TURN_MORE:
        feed_trouble(receiver->feed, NULL);
        break;
    }
}

// What is there when it is asked to stop is still read.
static void drain(struct journald_receiver *receiver) {
    struct error error;
    for (int i = 0; i < DRAIN_BURSTS_MAX && receiver->journal != NULL; i++)
        if (feed_blocked(receiver->feed) || read_burst(receiver, &error) != TURN_MORE)
            break;
    if (receiver->context->store == NULL)
        feed_source_finish(receiver->feed, receiver->source);
    flush(receiver);
}

enum status journald_run(void *instance, struct feed *feed, struct error *error) {
    struct journald_receiver *receiver = instance;
    (void)error;
    attach(receiver, feed);
    while (!feed_stopping(feed))
        turn(receiver);
    if (!feed_pausing(feed))
        drain(receiver);
    return STATUS_OK;
}

// -- once -----------------------------------------------------------------------------------------

enum status journald_read_once(void *instance, struct feed *feed, struct slice path,
                               struct error *error) {
    struct journald_receiver *receiver = instance;
    assert(slice_equal(path, slice_of(receiver->path)));
    attach(receiver, feed);
    enum status status = journald_open(receiver, error);
    enum turn last = TURN_MORE;
    while (status == STATUS_OK && last == TURN_MORE)
        last = read_burst(receiver, error);
    if (last == TURN_FAILED)
        status = error->status;
    feed_source_finish(feed, receiver->source);
    flush(receiver);
    journald_close(receiver);
    return status;
}

// SPDX-License-Identifier: Apache-2.0
// Reads the device until it is drained, hands over, and waits.
//
// A record becomes a tagged line with the time of day and the node in it, so that it can be
// forwarded as it is. The position of a record is its sequence number plus one, with the id of the
// boot. After a start the records that the kernel still has are read anew and passed over up to
// there: a gap in the numbers is what was overwritten meanwhile.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "receivers/decode/tagged/line.h"
#include "receivers/decode/tagged/tagged.h"
#include "receivers/kmsg/receiver.h"
#include "receivers/kmsg/record.h"

#include <assert.h>
#include <inttypes.h>

enum {
    BURST_MAX = 1024,      // reads between two flushes
    DRAIN_BURSTS_MAX = 64, // at a stop
    WAIT_MS = 10000,
    HELD_WAIT_MS = 500,
    SOCKET_WAIT_MS = 500,       // what is there comes within it
    FRESH_NS = 2 * 1000 * 1000, // who waited less may have been behind
    KEPT_LOOK_NS = 100 * 1000 * 1000,
};
static const uint64_t RETRY_NS = UINT64_C(1000000000);
static const uint64_t BLOCKED_NS = UINT64_C(500000000);
static const uint64_t FINISH_NS = UINT64_C(2000000000); // a report of the kernel comes at once

static struct log_site site(const struct kmsg_receiver *receiver, const char *code) {
    return (struct log_site){code, receiver->context->site};
}

// -- one record -----------------------------------------------------------------------------------

static struct source_position position_of(const struct kmsg_receiver *receiver, uint64_t sequence) {
    return (struct source_position){.number = sequence + 1,
                                    .detail = {receiver->boot.words[0], receiver->boot.words[1]}};
}

static void flush(struct kmsg_receiver *receiver) {
    feed_flush(receiver->feed);
    receiver->used = 0;
}

static bool is_first(const struct kmsg_receiver *receiver) {
    return receiver->context->copy == 0;
}

static void note_gap(struct kmsg_receiver *receiver, uint64_t sequence) {
    if (!is_first(receiver) || sequence == receiver->next)
        return;
    uint64_t missing = sequence - receiver->next;
    if (receiver->next_known && !receiver->skipping) {
        metric_add(receiver->counters.lost, missing);
        log_write(LOG_WARN, site(receiver, "C9101"),
                  "%" PRIu64
                  " records of the kernel are lost: they were overwritten before they "
                  "were read (log_buf_len of the kernel says how many it keeps)",
                  missing);
    } else if (!receiver->skipping) {
        log_write(LOG_INFO, site(receiver, "C9102"),
                  "the kernel has no records any more of the first %" PRIu64 " since boot",
                  missing);
    }
}

// The line of the record, in the block.
static struct slice make_line(struct kmsg_receiver *receiver, const struct kmsg_record *record) {
    struct tagged_line line = {.kernel = true,
                               .rank = RANK_NONE,
                               .time_ns =
                                   wall_clock_time(&receiver->wall, record->sequence, record->usec),
                               .node = slice_of(receiver->node)};
    assert(record->text.size <= sizeof receiver->text);
    line.message = (struct slice){receiver->text, kmsg_unescape(record->text, receiver->text)};
    buffer_reset(&receiver->line);
    tagged_line_append(&line, &receiver->line);
    assert(!receiver->line.failed && receiver->line.size <= KMSG_BLOCK_SIZE - receiver->used);
    char *to = receiver->block + receiver->used;
    memcpy(to, receiver->line.data, receiver->line.size);
    receiver->used += receiver->line.size;
    return (struct slice){to, receiver->line.size};
}

// Waits until the store has the offset that the record's time is made with. False: it stops.
static bool wait_kept(struct kmsg_receiver *receiver) {
    while (!wall_clock_is_kept(&receiver->wall, KEPT_LOOK_NS))
        if (feed_stopping(receiver->feed))
            return false;
    return true;
}

static bool settle_time(struct kmsg_receiver *receiver, const struct kmsg_record *record) {
    bool fresh = receiver->woken;
    receiver->woken = false;
    if (fresh && wall_clock_fresh(&receiver->wall, record->sequence, record->usec, clock_unix_ns()))
        log_write(LOG_INFO, site(receiver, "C9103"),
                  "the time of the kernel's records is mapped anew from record %" PRIu64
                  " on: the clock was set, the machine was suspended, or the clocks had drifted",
                  record->sequence);
    return wait_kept(receiver);
}

// False: it stops, and the record was not taken.
static bool take_record(struct kmsg_receiver *receiver, struct slice bytes) {
    struct kmsg_record record;
    struct source *source = receiver->source;
    feed_source_figures(source)->bytes += bytes.size;
    if (!kmsg_record_parse(bytes, &record)) {
        record_sink_fault(&receiver->sink, DECODE_TRUNCATED,
                          "not a record of /dev/kmsg: PRIORITY,SEQUENCE,USEC,FLAGS;TEXT");
        record_sink_refuse(&receiver->sink, source, bytes, receiver->next + 1);
        return true;
    }
    if (record.sequence < receiver->next)
        return true;
    bool other = receiver->skipping || record.facility != 0 || record.text.size == 0;
    if (!other && !settle_time(receiver, &record))
        return false;
    note_gap(receiver, record.sequence);
    receiver->next = record.sequence + 1;
    receiver->next_known = true;
    struct source_position position = position_of(receiver, record.sequence);
    feed_source_reached(source, &position);
    if (!other)
        (void)record_sink_offer(&receiver->sink, source, make_line(receiver, &record),
                                position.number);
    else if (!receiver->skipping && record.facility != 0 && is_first(receiver))
        metric_add(receiver->counters.user_records, 1);
    return true;
}

// -- many -----------------------------------------------------------------------------------------

enum turn { TURN_MORE, TURN_DRAINED, TURN_FAILED, TURN_STOPS };

static enum turn read_burst(struct kmsg_receiver *receiver, struct error *error) {
    enum turn turn = TURN_MORE;
    for (int i = 0; turn == TURN_MORE && i < BURST_MAX; i++) {
        struct slice record;
        if (KMSG_BLOCK_SIZE - receiver->used < KMSG_LINE_MAX)
            break;
        switch (kmsg_device_read(&receiver->device, &record, error)) {
        case KMSG_RECORD:
            receiver->read_ns = clock_monotonic_ns();
            receiver->works = true;
            if (!take_record(receiver, record))
                turn = TURN_STOPS;
            break;
        case KMSG_DRAINED:
            turn = TURN_DRAINED;
            feed_source_caught_up(receiver->feed, receiver->source);
            break;
        case KMSG_LOST: // the numbers tell how many
            break;
        case KMSG_FAILED:
            turn = TURN_FAILED;
            break;
        }
    }
    flush(receiver);
    return turn;
}

// Positions of another boot say nothing of this one: what is there has come since.
static void find_place(struct kmsg_receiver *receiver) {
    struct slice path = slice_of(receiver->config->path);
    receiver->source = feed_source(receiver->feed, path);
    struct source_position at = feed_source_restored(receiver->source);
    struct boot_id boot = {{at.detail[0], at.detail[1]}};
    if (at.number > 0 && boot_id_equal(boot, receiver->boot)) {
        receiver->next = at.number;
        receiver->next_known = true;
    } else if (at.number > 0) {
        feed_source_forget(receiver->feed, receiver->source);
        receiver->source = feed_source(receiver->feed, path);
    } else {
        receiver->skipping =
            receiver->config->start_at == KMSG_START_NOW && !receiver->context->once;
    }
    record_options_format(receiver->source, &decoder_tagged, &receiver->sink.known);
}

static void attach(struct kmsg_receiver *receiver, struct feed *feed) {
    assert(receiver->magic == KMSG_RECEIVER_MAGIC);
    if (receiver->feed == feed)
        return;
    assert(receiver->feed == NULL);
    receiver->feed = feed;
    record_sink_attach(&receiver->sink, feed);
    receiver->block = memory_take(KMSG_BLOCK_SIZE);
    buffer_init(&receiver->line, KMSG_LINE_MAX);
    find_place(receiver);
    wall_clock_begin(&receiver->wall, clock_unix_ns(), clock_monotonic_ns());
}

// -- live -----------------------------------------------------------------------------------------

static void caught_up(struct kmsg_receiver *receiver) {
    receiver->skipping = false;
    feed_caught_up(receiver->feed);
    feed_steps(receiver->feed, true);
}

// Nothing is there, or cannot be had: lets time pass.
static void wait_device(struct kmsg_receiver *receiver, uint64_t most_ns) {
    struct feed *feed = receiver->feed;
    uint64_t from = clock_monotonic_ns();
    bool holds = feed_source_holds(receiver->source);
    if (holds && from - receiver->read_ns >= FINISH_NS) {
        feed_source_finish(feed, receiver->source);
        feed_source_caught_up(feed, receiver->source);
        flush(receiver);
        holds = false;
    }
    uint64_t wait_ms = holds ? HELD_WAIT_MS : most_ns / 1000000;
    bool there = kmsg_device_wait(&receiver->device, feed_stop_descriptor(feed), (int)wait_ms);
    uint64_t now = clock_monotonic_ns();
    // The device has all that is there when it is opened; a program may still be giving it.
    receiver->woken = there && now - from >= FRESH_NS &&
                      (!receiver->device.is_socket ||
                       now - receiver->read_ns >= SOCKET_WAIT_MS * UINT64_C(1000000));
}

static void open_again(struct kmsg_receiver *receiver) {
    struct error error;
    receiver->works = false;
    receiver->read_ns = clock_monotonic_ns();
    if (kmsg_device_open(&receiver->device, receiver->config->path, &error) == STATUS_OK)
        return;
    feed_trouble(receiver->feed, error.message);
    caught_up(receiver); // others need not wait for it
    wait_device(receiver, RETRY_NS);
}

static void turn(struct kmsg_receiver *receiver) {
    struct error error;
    if (receiver->device.descriptor < 0) {
        open_again(receiver);
        return;
    }
    if (feed_blocked(receiver->feed) && !feed_wait(receiver->feed, BLOCKED_NS))
        return;
    switch (read_burst(receiver, &error)) {
    case TURN_DRAINED:
        if (receiver->works)
            feed_trouble(receiver->feed, NULL);
        caught_up(receiver);
        wait_device(receiver, (uint64_t)WAIT_MS * 1000000);
        receiver->works = true;
        break;
    case TURN_FAILED:
        feed_trouble(receiver->feed, error.message);
        kmsg_device_close(&receiver->device);
        caught_up(receiver);
        wait_device(receiver, RETRY_NS);
        break;
    case TURN_MORE:
        feed_trouble(receiver->feed, NULL);
        break;
    case TURN_STOPS: // the record was not taken: those behind it would be told without it
        kmsg_device_close(&receiver->device);
        break;
    }
}

// What is there when it is asked to stop is still read.
static void drain(struct kmsg_receiver *receiver) {
    struct error error;
    for (int i = 0; i < DRAIN_BURSTS_MAX && receiver->device.descriptor >= 0; i++)
        if (feed_blocked(receiver->feed) || read_burst(receiver, &error) != TURN_MORE)
            break;
    if (receiver->context->store == NULL)
        feed_source_finish(receiver->feed, receiver->source);
    flush(receiver);
}

enum status kmsg_run(void *instance, struct feed *feed, struct error *error) {
    struct kmsg_receiver *receiver = instance;
    (void)error;
    attach(receiver, feed);
    while (!feed_stopping(feed))
        turn(receiver);
    if (!feed_pausing(feed))
        drain(receiver);
    return STATUS_OK;
}

// -- once -----------------------------------------------------------------------------------------

enum status kmsg_read_once(void *instance, struct feed *feed, struct slice path,
                           struct error *error) {
    struct kmsg_receiver *receiver = instance;
    assert(slice_equal(path, slice_of(receiver->config->path)));
    attach(receiver, feed);
    enum status status = kmsg_device_open(&receiver->device, receiver->config->path, error);
    enum turn last = TURN_MORE;
    // The device has all of it at once; another program may need a moment.
    while (status == STATUS_OK &&
           (last == TURN_MORE ||
            (last == TURN_DRAINED && receiver->device.is_socket &&
             kmsg_device_wait(&receiver->device, feed_stop_descriptor(feed), SOCKET_WAIT_MS))))
        last = read_burst(receiver, error);
    if (last == TURN_FAILED && !receiver->device.is_socket)
        status = error->status;
    feed_source_finish(feed, receiver->source);
    flush(receiver);
    kmsg_device_close(&receiver->device);
    return status;
}

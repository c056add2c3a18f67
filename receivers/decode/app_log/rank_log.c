// SPDX-License-Identifier: Apache-2.0
// Every phrase begins with a capital letter: a byte of the message is looked up, and only capitals
// are compared with the few phrases of their letter. A function that says READ_NOT has looked at a
// bounded number of bytes, so a message costs O(its size), whatever is in it.
#include "receivers/decode/app_log/rank_log.h"

#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/app_log/gloo.h"
#include "receivers/decode/app_log/monitor.h"
#include "receivers/decode/app_log/nccl.h"
#include "receivers/decode/app_log/terminate.h"
#include "receivers/decode/app_log/watchdog.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

#define PHRASE(text, breaks, read)                                                                 \
    { {text, sizeof(text) - 1}, breaks, read }
#define LAST_PHRASE                                                                                \
    { {NULL, 0}, 0, NULL }

static const struct telling A[] = {
    PHRASE("Application timeout caused pair closure", 0, gloo_pair_closed),
    LAST_PHRASE,
};
static const struct telling C[] = {
    PHRASE("Connection closed by peer ", 0, gloo_peer),
    PHRASE("Connect timeout ", 0, gloo_peer),
    PHRASE("Could not acquire GIL within ", 0, monitor_gil),
    LAST_PHRASE,
};
static const struct telling E[] = {
    PHRASE("Exception (either an error or timeout) detected by watchdog at work: ", 12,
           watchdog_status),
    LAST_PHRASE,
};
static const struct telling F[] = {
    PHRASE("Failed to check the \"should dump\" flag on TCPStore", 0, store_flag),
    PHRASE("First PG on this rank to signal dumping", 0, monitor_dump),
    LAST_PHRASE,
};
static const struct telling H[] = {
    PHRASE("Heartbeat monitor timed out!", 0, monitor_stuck),
    LAST_PHRASE,
};
static const struct telling N[] = {
    PHRASE("NCCL WARN ", 0, nccl_warning),
    PHRASE("NCCL error", 0, nccl_error),
    PHRASE("NCCL watchdog thread terminated with exception: ", 24, monitor_terminated),
    PHRASE("NCCL Work update periodically: ", 0, watchdog_progress),
    LAST_PHRASE,
};
static const struct telling O[] = {
    PHRASE("Observed flight recorder dump signal", 0, monitor_dump),
    LAST_PHRASE,
};
static const struct telling P[] = {
    PHRASE("PG status: last enqueued work: ", 0, watchdog_group_status),
    PHRASE("Process group watchdog thread terminated with exception: ", 33, monitor_terminated),
    PHRASE("ProcessGroupNCCL's watchdog got stuck for ", 28, monitor_stuck),
    LAST_PHRASE,
};
static const struct telling R[] = {
    PHRASE("Received a dump signal due to a ", 0, monitor_dump_from),
    PHRASE("Read error ", 0, gloo_peer),
    PHRASE("Rank ", 0, monitor_remote),
    LAST_PHRASE,
};
static const struct telling S[] = {
    PHRASE("Stack trace of the failed collective", 28, monitor_stack),
    PHRASE("Some NCCL operations have failed or timed out", 14, monitor_end),
    PHRASE("SocketImpl(", 0, store_socket),
    LAST_PHRASE,
};
static const struct telling T[] = {
    PHRASE("Timeout at NCCL work: ", 13, watchdog_status),
    PHRASE("Timed out waiting ", 0, gloo_timeout),
    PHRASE("Timed out after ", 0, store_clients),
    PHRASE("Terminating the process after attempting to dump debug info, due to ", 0,
           monitor_terminating),
    LAST_PHRASE,
};
static const struct telling W[] = {
    PHRASE("Watchdog caught collective operation timeout", 10, watchdog_timeout),
    PHRASE("Write error ", 0, gloo_peer),
    LAST_PHRASE,
};

enum { LETTERS = 256 };
static const struct telling *const BY_LETTER[LETTERS] = {
    ['A'] = A, ['C'] = C, ['E'] = E, ['F'] = F, ['H'] = H, ['N'] = N,
    ['O'] = O, ['P'] = P, ['R'] = R, ['S'] = S, ['T'] = T, ['W'] = W,
};

// The message ends inside the phrase.
static enum read_result broken(const struct frame *frame, const struct telling *row, size_t size,
                               struct reading *reading) {
    assert(size > 0 && size < row->phrase.size);
    if (frame->truncated || row->phrase.data[size] == ' ' || row->phrase.data[size - 1] == ' ')
        return reading_refuse(reading, DECODE_TRUNCATED,
                              "a report of a watchdog that breaks off before it says anything");
    return reading_refuse(reading, DECODE_WRAPPED,
                          "a report of a watchdog that was broken inside a word, as a terminal "
                          "does: use the log as it was written");
}

static enum read_result try_rows(const struct frame *frame, struct slice message, size_t at,
                                 struct reading *reading) {
    struct slice rest = text_from(message, at);
    for (const struct telling *row = BY_LETTER[(uint8_t)rest.data[0]]; row->read != NULL; row++) {
        if (text_begins(rest, row->phrase)) {
            size_t head = at < SAID_HEAD_MAX ? at : SAID_HEAD_MAX;
            struct said said = {.frame = frame,
                                .message = message,
                                .head = {rest.data - head, head},
                                .tail = text_from(rest, row->phrase.size)};
            enum read_result result = row->read(&said, reading);
            if (result != READ_NOT)
                return result;
        } else if (row->breaks > 0 && rest.size >= row->breaks && rest.size < row->phrase.size &&
                   memcmp(rest.data, row->phrase.data, rest.size) == 0) {
            return broken(frame, row, rest.size, reading);
        }
    }
    return READ_NOT;
}

static enum read_result read_rank_log(const struct frame *frame, struct slice message,
                                      struct reading *reading) {
    enum read_result result = terminate_read(frame, message, reading);
    for (size_t at = 0; at < message.size && result == READ_NOT; at++)
        if (BY_LETTER[(uint8_t)message.data[at]] != NULL)
            result = try_rows(frame, message, at, reading);
    return result;
}

const struct line_reader READER_RANK_LOG = {.name = "rank_log", .read = read_rank_log};

// SPDX-License-Identifier: Apache-2.0
// One line each, but for the stack of the failed operation: a line for each of its functions
// follows, the innermost first. Linear in the message.
#include "receivers/decode/app_log/monitor.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/app_log/nccl.h"
#include "receivers/decode/app_log/watchdog.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

static void begin(struct said *said, enum observation_kind what, struct reading *reading) {
    struct slice rest;
    said_close(said, SLICE(""), &rest);
    reading_begin(reading, what);
    reading->rest = rest;
    said_writer(said, reading);
}

static void set_number(struct reading *reading, enum fact_key key, int64_t number) {
    if (number >= 0)
        reading_number(reading, key, number);
}

// -- dumps --------------------------------------------------------------------------------------

enum read_result monitor_dump(struct said *said, struct reading *reading) {
    begin(said, OBSERVATION_WATCHDOG_DUMP, reading);
    return READ_EVENT;
}

// "collective timeout from this local rank and we …", "… from  rank 5 and we …".
static void read_source(struct slice tail, struct reading *reading) {
    struct slice from;
    int64_t rank;
    if (!text_find(tail, SLICE(" from "), &from))
        return;
    text_skip_blanks(&from);
    if (text_skip(&from, SLICE("rank ")) && words_take_signed(&from, &rank) && from.size > 0 &&
        rank >= 0 && rank <= RANK_MAX)
        reading_number(reading, FACT_NOTICED_BY_RANK, rank);
    else if (text_begins(from, SLICE("this local rank")) && reading->rank != RANK_NONE)
        reading_number(reading, FACT_NOTICED_BY_RANK, reading->rank);
}

enum read_result monitor_dump_from(struct said *said, struct reading *reading) {
    begin(said, OBSERVATION_WATCHDOG_DUMP, reading);
    struct slice reason = text_until_any(said->tail, ".");
    struct slice progress;
    int64_t enqueued, completed;
    if (reading->rank == RANK_NONE)
        reading->rank = said->frame->rank;
    read_source(reason, reading);
    if (!text_find(said->tail, SLICE("ast enqueued NCCL work: "), &progress) ||
        !watchdog_take_progress(&progress, &enqueued, &completed) || progress.size == 0)
        return READ_EVENT;
    set_number(reading, FACT_LAST_ENQUEUED, enqueued);
    set_number(reading, FACT_LAST_COMPLETED, completed);
    return READ_EVENT;
}

// -- the stack of the failed operation ----------------------------------------------------------

// "#0 all_reduce from /opt/…/distributed_c10d.py:3174" becomes "all_reduce (/opt/…py:3174)".
static void read_frame(struct slice line, struct reading *reading) {
    struct slice place, name;
    uint64_t depth;
    words_skip_rank(&line);
    text_skip_char(&line, '#');
    if (!text_take_number(&line, 1, 4, &depth) || !text_skip_char(&line, ' ') ||
        !text_find(line, SLICE(" from "), &place))
        return;
    name = (struct slice){line.data, line.size - place.size - 6};
    place = text_trim(place);
    if (name.size == 0 || place.size == 0)
        return;
    char *frame = arena_take(reading->arena, name.size + place.size + 3);
    memcpy(frame, name.data, name.size);
    memcpy(frame + name.size, " (", 2);
    memcpy(frame + name.size + 2, place.data, place.size);
    frame[name.size + 2 + place.size] = ')';
    reading_text(reading, FACT_FRAME, (struct slice){frame, name.size + place.size + 3});
}

static bool is_frame(struct slice message) {
    words_skip_rank(&message);
    return message.size > 1 && message.data[0] == '#' && text_is_digit(message.data[1]);
}

static enum block_step stack_more(struct slice so_far, uint32_t count, const struct frame *frame,
                                  struct slice message) {
    (void)so_far;
    (void)count;
    (void)frame;
    return is_frame(message) ? BLOCK_TAKE : BLOCK_OVER;
}

static enum read_result stack_finish(struct slice text, bool cut, const struct frame *frame,
                                     struct reading *reading) {
    struct slice frames = text, first, tail;
    struct slice line = text_take_line(&frames);
    bool found = text_find(line, SLICE("Stack trace of the failed collective"), &tail);
    assert(found);
    (void)found;
    size_t head = line.size - tail.size - sizeof "Stack trace of the failed collective" + 1;
    struct said said = {.frame = frame, .message = line, .head = {line.data, head}, .tail = tail};
    begin(&said, OBSERVATION_WATCHDOG_STACK, reading);
    reading->rest = (struct slice){NULL, 0};
    if (cut)
        reading_yes_no(reading, FACT_TRUNCATED, true);
    if (frames.size == 0)
        return READ_EVENT;
    reading_text(reading, FACT_STACK, frames);
    first = text_take_line(&frames);
    // The last line of what is cut may be half a line.
    if (!cut || frames.size > 0)
        read_frame(first, reading);
    return READ_EVENT;
}

static const struct line_reader STACK = {
    .name = "watchdog_stack", .unmarked = true, .more = stack_more, .finish = stack_finish};

enum read_result monitor_stack(struct said *said, struct reading *reading) {
    struct slice tail = said->tail;
    if (!text_skip_char(&tail, ':')) {
        begin(said, OBSERVATION_WATCHDOG_STACK, reading);
        if (text_begins(tail, SLICE(" not found")))
            reading_yes_no(reading, FACT_MISSING, true);
        return READ_EVENT;
    }
    reading->block = &STACK;
    return READ_BEGIN;
}

// -- a watchdog that stands still ---------------------------------------------------------------

enum read_result monitor_stuck(struct said *said, struct reading *reading) {
    struct slice tail = said->tail;
    int64_t seconds;
    begin(said, OBSERVATION_WATCHDOG_STUCK, reading);
    reading_yes_no(reading, FACT_VICTIM, false);
    if (words_take_signed(&tail, &seconds) && text_begins(tail, SLICE(" sec")))
        set_number(reading, FACT_SECONDS, seconds);
    return READ_EVENT;
}

enum read_result monitor_gil(struct said *said, struct reading *reading) {
    struct slice tail = said->tail;
    int64_t limit;
    begin(said, OBSERVATION_GIL_HANG, reading);
    if (words_take_signed(&tail, &limit) && text_begins(tail, SLICE(" ms")))
        set_number(reading, FACT_TIMEOUT_MS, limit);
    return READ_EVENT;
}

// -- what another rank told ----------------------------------------------------------------------

// The rank is the group's, and that of who told, which need not be who is to blame.
enum read_result monitor_remote(struct said *said, struct reading *reading) {
    struct slice text = said->tail;
    int64_t own, other;
    if (!words_take_signed(&text, &own) || !text_skip_char(&text, ']'))
        return READ_NOT;
    struct slice head = {said->head.data, (size_t)(text.data - said->head.data)};
    text_skip_blanks(&text);
    if (!text_skip(&text, SLICE("remote error detected from rank: ")))
        return READ_NOT;
    said->head = head;
    begin(said, OBSERVATION_NCCL_ERROR, reading);
    reading_yes_no(reading, FACT_VICTIM, true);
    bool whole = words_take_signed(&text, &other) && text.size > 0;
    if (whole && other >= 0 && other <= RANK_MAX && words_group(head).is_whole_job)
        reading_number(reading, FACT_NOTICED_BY_RANK, other);
    return READ_EVENT;
}

// -- the end of the process ---------------------------------------------------------------------

enum read_result monitor_end(struct said *said, struct reading *reading) {
    begin(said, OBSERVATION_WATCHDOG_END, reading);
    return READ_EVENT;
}

enum read_result monitor_terminated(struct said *said, struct reading *reading) {
    struct slice error, behind;
    if (text_find(said->head, SLICE("what():"), &behind))
        return READ_OTHER; // said again by the exception that ended the process
    if (text_begins(said->tail, SLICE("NCCL error")))
        return nccl_error_begin(reading);
    begin(said, OBSERVATION_WATCHDOG_TERMINATED, reading);
    reading_text(reading, FACT_MESSAGE, text_trim(said->tail));
    words_blame(said->frame->forms, said->tail, reading);
    if (text_find(said->tail, SLICE("CUDA error: "), &error))
        reading_text(reading, FACT_ERROR, text_trim(text_until(error, '\n')));
    return READ_EVENT;
}

enum read_result monitor_terminating(struct said *said, struct reading *reading) {
    begin(said, OBSERVATION_WATCHDOG_TERMINATED, reading);
    struct slice reason = text_until(said->tail, '.');
    if (reason.size < said->tail.size)
        reading_text(reading, FACT_REASON, reason);
    words_blame(said->frame->forms, reason, reading);
    return READ_EVENT;
}

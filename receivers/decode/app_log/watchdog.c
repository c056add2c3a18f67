// SPDX-License-Identifier: Apache-2.0
// What stands around the phrase is read field by field, and a field that is not there, or not
// whole, stays "not said". Takes one struct app_line from the arena.
#include "receivers/decode/app_log/watchdog.h"

#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

// Above it stands memory that was never set, as old versions print it.
static const int64_t SEQUENCE_MAX = INT64_C(1) << 31;

static enum read_result breaks_off(struct reading *reading) {
    return reading_refuse(reading, DECODE_TRUNCATED,
                          "a report of a watchdog that breaks off inside its numbers");
}

// -- one line -----------------------------------------------------------------------------------

// The receiver's bytes may be gone when the event is looked at.
static struct slice keep_text(struct slice text, struct arena *arena) {
    assert(text.data != NULL);
    struct slice clean = reading_clean(text, arena);
    return clean.data == text.data ? arena_copy(arena, text) : clean;
}

static struct slice keep_name(struct slice name, struct arena *arena) {
    return name.data == NULL ? name : keep_text(name, arena);
}

// The message as it is kept, in the arena, with `said` pointing into it.
static void keep(struct said *said, struct arena *arena) {
    struct slice from = said->message;
    struct slice kept = keep_text(from, arena);
    assert(kept.size == from.size);
    said->message = kept;
    said->head.data = kept.data + (said->head.data - from.data);
    said->tail.data = kept.data + (said->tail.data - from.data);
}

static struct app_line *make_line(struct said *said, enum app_line_kind kind,
                                  struct reading *reading) {
    struct app_line *line = arena_take(reading->arena, sizeof *line);
    keep(said, reading->arena);
    struct words_group group = words_group(said->head);
    *line = (struct app_line){.kind = kind,
                              .rank = words_rank(said->head),
                              .group_rank = group.rank,
                              .text = said->message,
                              .group = group.name,
                              .group_desc = group.desc,
                              .collective_seq_id = -1,
                              .input_elements = -1,
                              .output_elements = -1,
                              .timeout_ms = -1,
                              .ran_ms = -1,
                              .last_enqueued = -1,
                              .last_completed = -1,
                              .pid = said->frame->pid,
                              .pod = keep_name(said->frame->pod, reading->arena),
                              .namespace = keep_name(said->frame->namespace, reading->arena),
                              .address = keep_name(said->frame->address, reading->arena)};
    if (line->rank == RANK_NONE)
        line->rank = said->frame->rank;
    if (line->rank == RANK_NONE && group.is_whole_job && group.rank >= 0)
        line->rank = group.rank;
    reading->kind = EVENT_APP_LINE;
    reading->rank = line->rank;
    reading->line = line;
    return line;
}

// -- an operation that did not end --------------------------------------------------------------

// "WorkNCCL(SeqNum=…, OpType=…, …) ran for … milliseconds before timing out."
static void read_work(struct slice work, struct app_line *line) {
    struct slice operation;
    line->collective_seq_id = words_number(work, SLICE("SeqNum="));
    line->input_elements = words_number(work, SLICE("NumelIn="));
    line->output_elements = words_number(work, SLICE("NumelOut="));
    line->timeout_ms = words_number(work, SLICE("Timeout(ms)="));
    line->ran_ms = words_number(work, SLICE("ran for "));
    if (!text_find(work, SLICE("OpType="), &operation))
        return;
    struct slice word = text_until_any(operation, ",) ");
    if (word.size > 0 && word.size < operation.size)
        line->operation = word;
}

// An exception that repeats what the watchdog said is not a second timeout.
static bool is_repeated(const struct said *said) {
    struct slice behind;
    return text_find(said->head, SLICE("what():"), &behind);
}

enum read_result watchdog_timeout(struct said *said, struct reading *reading) {
    struct slice rest;
    bool whole = said_close(said, SLICE("before timing out"), &rest);
    reading->rest = rest;
    if (is_repeated(said))
        return READ_OTHER;
    struct app_line *line = make_line(said, APP_TIMEOUT, reading);
    read_work(said->tail, line);
    line->truncated = !whole;
    return READ_EVENT;
}

// -- how far the group came ---------------------------------------------------------------------

static bool skip_words(struct slice *text, const struct slice *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (text_skip(text, words[i]))
            return true;
    return false;
}

bool watchdog_take_progress(struct slice *text, int64_t *enqueued, int64_t *completed) {
    static const struct slice between[] = {{", last completed NCCL work: ", 28},
                                           {", last completed work: ", 23}};
    struct slice rest = *text;
    if (!words_take_signed(&rest, enqueued) || !skip_words(&rest, between, 2) ||
        !words_take_signed(&rest, completed))
        return false;
    if (*enqueued > SEQUENCE_MAX || *enqueued < -1)
        *enqueued = APP_NUMBER_UNKNOWN;
    if (*completed > SEQUENCE_MAX || *completed < -1 ||
        (*enqueued != APP_NUMBER_UNKNOWN && *completed > *enqueued))
        *completed = APP_NUMBER_UNKNOWN;
    *text = rest;
    return true;
}

// `text`: from the first of the two numbers on. `ends`: a byte follows the last of them in every
// version, so that without one it may be cut.
static enum read_result read_progress(struct said *said, struct slice text, int64_t work, bool ends,
                                      struct reading *reading) {
    int64_t enqueued, completed;
    struct slice rest;
    bool whole = watchdog_take_progress(&text, &enqueued, &completed) &&
                 (text.size > 0 || !(ends || said->frame->truncated));
    said_close(said, SLICE(""), &rest);
    reading->rest = rest;
    if (!whole) // the other line is still to be read
        return rest.size > 0 ? READ_OTHER : breaks_off(reading);
    struct app_line *line = make_line(said, APP_PROGRESS, reading);
    line->has_progress = true;
    line->collective_seq_id = work > SEQUENCE_MAX ? -1 : work;
    line->last_enqueued = enqueued;
    line->last_completed = completed;
    return READ_EVENT;
}

enum read_result watchdog_status(struct said *said, struct reading *reading) {
    struct slice text = said->tail;
    int64_t work;
    if (text.size > 0 && text.data[0] != '-' && !text_is_digit(text.data[0]))
        return READ_NOT;
    if (!words_take_signed(&text, &work) || !text_skip(&text, SLICE(", last enqueued NCCL work: ")))
        return breaks_off(reading);
    return read_progress(said, text, work, true, reading);
}

enum read_result watchdog_progress(struct said *said, struct reading *reading) {
    struct slice text = said->tail;
    if (!text_skip(&text, SLICE("last enqueued NCCL work: ")))
        return READ_NOT;
    return read_progress(said, text, -1, true, reading);
}

enum read_result watchdog_group_status(struct said *said, struct reading *reading) {
    struct slice work;
    enum { WORDS_MAX = 128 }; // the failure's words in front, with their number
    size_t size = said->head.size < WORDS_MAX ? said->head.size : WORDS_MAX;
    struct slice near = text_from(said->head, said->head.size - size);
    if (!text_find(near, SLICE("failure detected by watchdog at work sequence id: "), &work))
        return READ_NOT;
    return read_progress(said, said->tail, words_number(work, SLICE("")), false, reading);
}

// SPDX-License-Identifier: Apache-2.0
// A block is over with the first line that cannot belong to it; while a traceback misses its last
// line, other lines in between are somebody else's and are passed. Which lines a logger printed
// shows in the line before. O(line), O(block) at its end.
#include "receivers/decode/app_log/exception.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/app_log/cuda.h"
#include "receivers/decode/app_log/killed.h"
#include "receivers/decode/app_log/logged.h"
#include "receivers/decode/app_log/rank_words.h"
#include "receivers/decode/forms/meanings.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/line/head.h"

#include <assert.h>

enum { MESSAGE_MAX = 640, BLANKS_MAX = 3 };

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool begins_any(struct slice text, const struct slice *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (text_begins(text, words[i]))
            return true;
    return false;
}

// -- whose fault --------------------------------------------------------------------------------

static struct slice last_part(struct slice name) {
    const char *dot = memrchr(name.data, '.', name.size);
    return dot == NULL ? name : text_from(name, (size_t)(dot - name.data) + 1);
}

// -- facts ----------------------------------------------------------------------------------------

static struct slice bounded(struct slice text, struct arena *arena) {
    text = text_until(text, '\n');
    if (text.size <= MESSAGE_MAX)
        return text;
    return text_shorten(text, MESSAGE_MAX, TEXT_BYTES, arena_take(arena, MESSAGE_MAX));
}

// "Process 991 got signal: 15".
static void set_signal(struct slice message, struct reading *reading) {
    uint64_t pid, number;
    struct slice rest;
    if (!text_skip(&message, SLICE("Process ")) || !text_take_number(&message, 1, 10, &pid) ||
        !text_skip(&message, SLICE(" got signal: ")))
        return;
    reading_number(reading, FACT_PID, (int64_t)pid);
    rest = message;
    if (text_take_number(&rest, 1, 2, &number) && text_trim(rest).size == 0)
        reading_number(reading, FACT_SIGNAL, (int64_t)number);
}

// What the process was told, or told itself.
static bool set_told(struct slice type, struct slice message, struct reading *reading) {
    uint64_t code;
    if (slice_equal(type, SLICE("SignalException"))) {
        set_signal(message, reading);
    } else if (slice_equal(type, SLICE("KeyboardInterrupt"))) {
        reading_number(reading, FACT_SIGNAL, 2);
    } else if (slice_equal(type, SLICE("SystemExit")) && text_number(message, 3, &code)) {
        reading_number(reading, FACT_EXIT_CODE, (int64_t)code);
        if (code != 143 && code != 130)
            return false;
    } else {
        return false;
    }
    reading_yes_no(reading, FACT_VICTIM, true);
    return true;
}

void exception_message(struct slice message, struct reading *reading) {
    message = bounded(message, reading->arena);
    if (message.size > 0)
        reading_text(reading, FACT_MESSAGE, message);
}

// What a message that ends in a colon says in the next line; empty: nothing.
static struct slice next_line(const struct raised *raised) {
    struct slice text = raised->text;
    if (!traceback_goes_on(raised->message))
        return (struct slice){text.data, 0};
    text_take_line(&text);
    return text_trim(text_until(text, '\n'));
}

// "Error(s) in loading state_dict for Net:", and then what does not fit.
static struct slice whole_message(const struct raised *raised, struct arena *arena) {
    struct slice message = raised->message, next = next_line(raised);
    if (next.size == 0)
        return message;
    char *both = arena_take(arena, message.size + 1 + next.size);
    memcpy(both, message.data, message.size);
    both[message.size] = ' ';
    memcpy(both + message.size + 1, next.data, next.size);
    return (struct slice){both, message.size + 1 + next.size};
}

// "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 10000 ms", "Ranks 1, 3 failed to …": whom
// the others waited for; of several the first.
static void set_missing(struct slice message, struct reading *reading) {
    struct slice behind, front;
    uint64_t rank;
    if (!text_find(message, SLICE(" failed to pass monitoredBarrier"), &behind))
        return;
    front = (struct slice){message.data, (size_t)(behind.data - message.data)};
    if (text_begins(front, SLICE("[Rank ")) && !text_find(front, SLICE("]: "), &front))
        return;
    if ((text_skip(&front, SLICE("Rank ")) || text_skip(&front, SLICE("Ranks "))) &&
        text_take_number(&front, 1, 9, &rank))
        reading_number(reading, FACT_PEER_RANK, (int64_t)rank);
}

static const struct form *meaning_of(const struct forms *forms, const struct raised *raised) {
    struct traceback_place place;
    struct uttered uttered = {
        .type = raised->type, .message = raised->message, .scope = MEANING_EXCEPTION};
    if (traceback_place(raised->place, &place))
        uttered.file = place.file;
    return forms_meaning(forms, &uttered);
}

void exception_facts(const struct forms *forms, const struct raised *raised,
                     struct reading *reading) {
    struct slice type = last_part(raised->type), message = raised->message;
    set_missing(message, reading);
    reading_text(reading, FACT_EXCEPTION, raised->type);
    exception_message(whole_message(raised, reading->arena), reading);
    if (!raised->cut && set_told(type, message, reading))
        return;
    const struct form *meaning = meaning_of(forms, raised);
    words_mean(meaning, reading);
    if (meaning == NULL && !raised->cut)
        reading_yes_no(reading, FACT_VICTIM, false);
}

void exception_last(const struct traceback *traceback, struct reading *reading) {
    if (traceback->count < 2 || traceback->unfinished)
        return;
    struct slice message = bounded(traceback->last.message, reading->arena);
    reading_text(reading, FACT_LAST_EXCEPTION, traceback->last.type);
    if (message.size > 0)
        reading_text(reading, FACT_LAST_MESSAGE, message);
}

static bool says(const struct reading *reading, enum fact_key key) {
    for (uint32_t i = 0; i < reading->fact_count; i++)
        if (reading->facts[i].key == key)
            return true;
    return false;
}

// Others know the exceptions that a lost peer raises.
static bool ask_others(const struct raised *reason, bool cut, const struct frame *frame,
                       struct reading *reading) {
    struct slice line = text_until(reason->text, '\n');
    for (size_t i = 0; REASON_READERS[i] != NULL; i++) {
        reading_clear(reading);
        enum read_result result = REASON_READERS[i]->read(frame, line, reading);
        if (result == READ_BEGIN) {
            const struct line_reader *by =
                reading->block != NULL ? reading->block : REASON_READERS[i];
            result = by->finish(reason->text, cut, frame, reading);
        }
        reading->rest = (struct slice){NULL, 0};
        if (result == READ_EVENT)
            return true;
    }
    reading_clear(reading);
    return false;
}

static void read_reason(const struct traceback *traceback, bool cut, const struct frame *frame,
                        struct reading *reading) {
    const struct raised *reason = &traceback->reason;
    if (reason->type.data == NULL) {
        reading_begin(reading, OBSERVATION_EXCEPTION);
        return;
    }
    if (cuda_read(reason->message, reading) || killed_child_read(reason->message, reading)) {
        reading_text(reading, FACT_EXCEPTION, reason->type);
        exception_message(reason->message, reading);
    } else if (ask_others(reason, cut, frame, reading)) {
        if (reading->kind == EVENT_OBSERVATION) {
            reading_text(reading, FACT_EXCEPTION, reason->type);
            if (!says(reading, FACT_MESSAGE))
                exception_message(reason->message, reading);
        }
    } else {
        struct raised told = *reason;
        told.cut = frame->truncated;
        reading_begin(reading, OBSERVATION_EXCEPTION);
        exception_facts(frame->forms, &told, reading);
    }
}

// -- whose it is ----------------------------------------------------------------------------------

static bool ask_owners(struct slice line, const struct frame *frame, struct reading *reading) {
    bool found = false;
    for (size_t i = 0; OWNER_READERS[i] != NULL && !found; i++)
        found = OWNER_READERS[i]->read(frame, line, reading) == READ_EVENT;
    return found;
}

// What collects the tracebacks of others says whose each is; the last word is nearest to it.
static void read_owner(struct slice text, const struct frame *frame, struct reading *reading) {
    if (frame->rank != RANK_NONE)
        return;
    ask_owners(frame->before, frame, reading);
    while (text.size > 0)
        ask_owners(text_take_line(&text), frame, reading);
}

// -- what a logger printed ------------------------------------------------------------------------

// The launcher's own lines, and those of a lost child, come in front of what ends a process.
static bool is_logged(const struct frame *frame) {
    struct slice before = frame->before;
    static const struct slice others[] = {
        {"torch.distributed.elastic", 25}, {"NCCL", 4}, {"encountered in worker", 21}};
    return frame->level != LEVEL_NOT_SAID || (before.size > 0 && logged_has_level(before) &&
                                              !words_any(before, others, COUNT(others)));
}

// Lines in front of a traceback after which the process goes on.
static bool is_harmless_head(struct slice line) {
    static const struct slice heads[] = {
        {"Exception ignored in", 20},     {"Exception ignored while", 23},
        {"Error in atexit", 15},          {"Exception in thread ", 20},
        {"--- Logging error ---", 21},    {"Exception in callback ", 22},
        {"Task exception was never", 24},
    };
    return begins_any(line, heads, COUNT(heads));
}

// False: it did not end the process by itself, as far as its text tells.
static bool may_be_fatal(struct slice first, const struct traceback *traceback,
                         const struct frame *frame) {
    struct traceback_place place;
    struct slice behind;
    if (is_harmless_head(first))
        return false;
    if (traceback_line(first, false) != TRACEBACK_HEAD)
        return frame->level == LEVEL_NOT_SAID;
    if (is_logged(frame) || logged_has_level(text_until(first, '(')))
        return false;
    return !traceback_place(traceback->reason.place, &place) ||
           !text_find(place.file, SLICE("resource_tracker.py"), &behind);
}

// A traceback without its last line that is the launcher's own: of how its ranks ended it says
// nothing.
static bool is_of_launcher(struct slice text) {
    static const struct slice places[] = {
        {"/bin/torchrun\"", 14},
        {"/bin/accelerate", 15},
        {"/torch/distributed/launcher/api.py", 34},
        {"/torch/distributed/run.py", 25},
        {"/accelerate/commands/launch.py", 30},
    };
    return words_any(text, places, COUNT(places));
}

// -- the readers ----------------------------------------------------------------------------------

static enum read_result finish(struct slice text, bool cut, const struct frame *frame,
                               struct reading *reading) {
    struct traceback traceback;
    struct slice first = text_until(text, '\n');
    traceback_read(text, &traceback);
    bool whole = traceback.count > 0;
    if (!whole && (is_harmless_head(first) || traceback_line(first, false) != TRACEBACK_HEAD))
        return READ_OTHER;
    if (!whole && is_of_launcher(text))
        return READ_OTHER;
    // The launcher's wrapper: its summary follows.
    if (whole && traceback.only_wrapped &&
        slice_equal(last_part(traceback.reason.type), SLICE("ChildFailedError")))
        return READ_OTHER;
    read_reason(&traceback, cut, frame, reading);
    if (reading->kind == EVENT_OBSERVATION) {
        exception_last(&traceback, reading);
        if (!may_be_fatal(first, &traceback, frame))
            reading_yes_no(reading, FACT_FATAL, false);
        const struct raised *reason = &traceback.reason;
        if (is_logged(frame) && traceback_line(first, false) == TRACEBACK_HEAD &&
            (logged_goes_on(frame->before) || logged_goes_on(reason->message)))
            reading_text(reading, FACT_STATE, SLICE("goes_on"));
        bool waits = traceback_goes_on(reason->message) && next_line(reason).size == 0;
        bool open = traceback.unfinished || (cut && (traceback.only_wrapped || waits));
        if (open || !whole || frame->truncated)
            reading_yes_no(reading, FACT_TRUNCATED, true);
        struct slice place = traceback_place_text(traceback.reason.place, reading->arena);
        if (place.data != NULL && !traceback.mixed)
            reading_text(reading, FACT_FRAME, place);
        if (!traceback.mixed)
            read_owner(text, frame, reading);
    }
    if (traceback.mixed) {
        reading->rank = RANK_NONE;
        reading->no_rank = true;
    }
    return READ_EVENT;
}

// The last line that was taken and is not blank; empty after BLANKS_MAX blank ones.
static struct slice last_line(struct slice so_far, uint32_t *blanks) {
    for (*blanks = 0; *blanks <= BLANKS_MAX; ++*blanks) {
        const char *newline = so_far.size == 0 ? NULL : memrchr(so_far.data, '\n', so_far.size);
        size_t from = newline == NULL ? 0 : (size_t)(newline - so_far.data) + 1;
        struct slice line = text_from(so_far, from);
        if (text_trim(line).size > 0 || newline == NULL)
            return line;
        so_far.size = from - 1;
    }
    return (struct slice){so_far.data, 0};
}

// Ray's driver names the task; what it raised follows, without a head of its own.
static bool is_remote_head(struct slice line) {
    struct slice behind;
    return text_find(line, SLICE("ray::"), &behind) && text_find(behind, SLICE("(pid="), &behind);
}

static bool is_one_word(struct slice text) {
    text = text_trim(text);
    return text.size > 0 && memchr(text.data, ' ', text.size) == NULL;
}

// An exception was told: what may follow is the rest of its message, or one more of the chain.
static enum block_step more_behind(struct slice last, uint32_t blanks, const struct frame *frame,
                                   struct slice message) {
    struct slice behind;
    // Of a line that breaks off it cannot be told.
    if (frame->truncated || (text_begins(last, SLICE("Last error:")) && blanks == 0))
        return BLOCK_TAKE;
    switch (traceback_line(message, false)) {
    case TRACEBACK_BLANK:
        return blanks < BLANKS_MAX ? BLOCK_TAKE : BLOCK_OVER;
    case TRACEBACK_LINK:
    case TRACEBACK_TAIL:
        return BLOCK_TAKE;
    case TRACEBACK_HEAD:
        return text_begins(message, SLICE("Original ")) || text_begins(message, SLICE(" "))
                   ? BLOCK_TAKE
                   : BLOCK_OVER;
    case TRACEBACK_FRAME:
        if (blanks == 0 && traceback_goes_on(text_trim(last)))
            return BLOCK_LAST;
        // Of a group of exceptions, between two of them.
        text_skip_blanks(&message);
        return text_begins(message, SLICE("+-")) || text_begins(message, SLICE("|")) ||
                       is_remote_head(last)
                   ? BLOCK_TAKE
                   : BLOCK_OVER;
    case TRACEBACK_FINAL:
        // Of a group, behind its bar; else another exception.
        return message.data[0] == ' ' && text_find(message, SLICE("| "), &behind) ? BLOCK_TAKE
                                                                                  : BLOCK_OVER;
    case TRACEBACK_OTHER: // a name that a colon announced
        return blanks == 0 && traceback_goes_on(text_trim(last)) && is_one_word(message)
                   ? BLOCK_LAST
                   : BLOCK_OVER;
    }
    return BLOCK_OVER;
}

static enum block_step more_of_traceback(struct slice so_far, uint32_t count,
                                         const struct frame *frame, struct slice message) {
    uint32_t blanks;
    struct slice last = last_line(so_far, &blanks);
    if (last.size == 0)
        return BLOCK_OVER;
    enum traceback_line kind = traceback_line(last, true);
    if (kind == TRACEBACK_FINAL || kind == TRACEBACK_TAIL)
        return more_behind(last, blanks, frame, message);
    enum traceback_line next = traceback_line(message, true);
    if (kind == TRACEBACK_OTHER && count == 1)
        return next == TRACEBACK_HEAD || text_begins(message, SLICE("future: ")) ? BLOCK_TAKE
                                                                                 : BLOCK_OVER;
    if (kind == TRACEBACK_OTHER && next != TRACEBACK_HEAD)
        return more_behind(last, blanks, frame, message);
    if (next == TRACEBACK_BLANK)
        return blanks < BLANKS_MAX ? BLOCK_TAKE : BLOCK_PASS;
    return next == TRACEBACK_OTHER || next == TRACEBACK_TAIL ? BLOCK_PASS : BLOCK_TAKE;
}

// "Scheduler hit an exception: "
static bool says_exception(struct slice front) {
    bool is_said = front.size > 2 && memcmp(front.data + front.size - 2, ": ", 2) == 0;
    return is_said && (memmem(front.data, front.size, "xception", 8) != NULL ||
                       memmem(front.data, front.size, "rror", 4) != NULL);
}

// Alone on the line, behind the level of a logger, or behind words that say what follows.
static bool begins_traceback(struct slice message) {
    struct slice behind;
    if (!text_find(message, SLICE("Traceback (most"), &behind) ||
        traceback_line(message, false) != TRACEBACK_HEAD)
        return false;
    struct slice front = {message.data, (size_t)(behind.data - message.data) - 15};
    text_skip_blanks(&message);
    return text_begins(message, SLICE("Traceback")) || text_begins(message, SLICE("+ Exc")) ||
           says_exception(front) || logged_has_level(front);
}

static enum read_result read_head(const struct frame *frame, struct slice message,
                                  struct reading *reading) {
    (void)frame;
    (void)reading;
    if (message.size == 0)
        return READ_NOT;
    bool harmless = memchr("E-T", message.data[0], 3) != NULL && is_harmless_head(message);
    return harmless || begins_traceback(message) ? READ_BEGIN : READ_NOT;
}

// As the last line of a traceback has it.
static struct slice raised_line(const struct raised *raised, struct arena *arena) {
    if (!text_begins(text_from(raised->text, raised->type.size), SLICE("(")))
        return raised->text;
    return slice_of(arena_format(arena, "%.*s: %.*s", (int)raised->type.size, raised->type.data,
                                 (int)raised->message.size, raised->message.data));
}

// Behind the head of a logger: whose it is may stand in that.
static enum read_result read_logged(const struct frame *frame, struct slice message,
                                    struct reading *reading) {
    struct raised raised;
    struct slice front;
    uint64_t rank;
    if (!logged_raised(message, frame->level, &raised, &front))
        return READ_NOT;
    enum read_result result = finish(raised_line(&raised, reading->arena), false, frame, reading);
    if (result != READ_EVENT || reading->kind != EVENT_OBSERVATION)
        return result;
    reading_yes_no(reading, FACT_FATAL, false);
    if (frame->rank == RANK_NONE && reading->rank == RANK_NONE && head_rank(front, &rank))
        reading->rank = (int32_t)rank;
    return result;
}

static enum read_result read_line(const struct frame *frame, struct slice message,
                                  struct reading *reading) {
    struct raised raised;
    if (!traceback_raised(message, false, &raised))
        return read_logged(frame, message, reading);
    // A name alone is one only where nothing else has it.
    bool interrupt = slice_equal(raised.type, SLICE("KeyboardInterrupt"));
    if (raised.message.size == 0 && !interrupt &&
        memchr(raised.type.data, '.', raised.type.size) == NULL)
        return READ_NOT;
    if (frame->level == LEVEL_BELOW_ERROR || logged_goes_on(message) ||
        (frame->level == LEVEL_ERROR && logged_is_tried_again(message)))
        return READ_NOT;
    if (cuda_runs_on(raised.message))
        return READ_BEGIN;
    return finish(raised.text, false, frame, reading);
}

static enum block_step more_of_line(struct slice so_far, uint32_t count, const struct frame *frame,
                                    struct slice message) {
    (void)so_far;
    (void)count;
    (void)frame;
    return traceback_line(message, false) == TRACEBACK_TAIL ? BLOCK_TAKE : BLOCK_OVER;
}

const struct line_reader READER_TRACEBACK = {.name = "traceback",
                                             .bare = true,
                                             .read = read_head,
                                             .more = more_of_traceback,
                                             .finish = finish};

const struct line_reader READER_EXCEPTION = {
    .name = "exception", .read = read_line, .more = more_of_line, .finish = finish};

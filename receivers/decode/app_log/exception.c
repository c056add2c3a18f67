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

#include <assert.h>

enum { MESSAGE_MAX = 640, BLANKS_MAX = 3 };

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool contains_any(struct slice text, const struct slice *words, size_t count) {
    struct slice behind;
    for (size_t i = 0; i < count; i++)
        if (text_find(text, words[i], &behind))
            return true;
    return false;
}

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

// The end of another process is what it tells of.
static bool follows_from_another(struct slice type, struct slice message) {
    static const struct slice types[] = {
        {"DistNetworkError", 16},          {"DistStoreError", 14},
        {"RendezvousConnectionError", 25}, {"RendezvousTimeoutError", 22},
        {"RendezvousClosedError", 21},     {"SignalException", 15},
        {"KeyboardInterrupt", 17},         {"GetTimeoutError", 15},
        {"ActorUnavailableError", 21},
    };
    static const struct slice words[] = {
        {"Connection closed by", 20},
        {"Connection reset by peer", 24},
        {"pair closure", 12},
        {"remote process exited", 21},
        {"ncclRemoteError", 15},
        {"connectFullMesh failed", 22},
        {"Connection was likely closed", 28},
        {"Horovod has been shut down", 26},
        {"successfully reached monitoredBarrier", 37},
        {"failed to pass monitoredBarrier", 31},
        {"operation to complete", 21},
        {"Watchdog caught collective operation timeout", 44},
    };
    for (size_t i = 0; i < COUNT(types); i++)
        if (slice_equal(type, types[i]))
            return true;
    return contains_any(message, words, COUNT(words));
}

// "[Errno 104] …": the network's, which may be the other end's fault.
static bool is_network_errno(struct slice message) {
    static const uint8_t numbers[] = {32, 101, 103, 104, 107, 110, 111, 112, 113};
    uint64_t number;
    if (!text_skip(&message, SLICE("[Errno ")) || !text_take_number(&message, 1, 4, &number))
        return false;
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (numbers[i] == number)
            return true;
    return false;
}

// Words of what goes on between processes: nothing can be concluded.
static bool is_doubtful(struct slice type, struct slice message) {
    static const struct slice words[] = {
        {"NCCL", 4},      {"nccl", 4},     {"loo", 3},    {"c10d", 4},        {"tore", 4},
        {"endezvous", 9}, {"imed out", 8}, {"imeout", 6}, {"peer", 4},        {"remote", 6},
        {"onnect", 6},    {"ocket", 5},    {"arrier", 6}, {"roken pipe", 10},
    };
    static const struct slice names[] = {
        {"onnect", 6}, {"imeout", 6},      {"Dist", 4},        {"Pipe", 4},      {"EOFError", 8},
        {"Ray", 3},    {"Rendezvous", 10}, {"SystemExit", 10}, {"Interrupt", 9},
    };
    return is_network_errno(message) || contains_any(type, names, COUNT(names)) ||
           contains_any(message, words, COUNT(words));
}

// A port that another process holds is the fault of who wants it, whatever the type says.
static bool is_port_in_use(struct slice message) {
    static const struct slice words[] = {{"ddress already in use", 21}, {"EADDRINUSE", 10}};
    return contains_any(message, words, COUNT(words));
}

// A service that the program calls (a tracker, a bucket, a database) is no rank: an error of its
// client is the end of who called it. The client shows in the type or in the place.
static bool is_of_service(const struct raised *raised) {
    static const struct slice clients[] = {
        {"requests.", 9},      {"urllib3.", 8}, {"botocore.", 9},     {"aiohttp.", 8},
        {"httpx.", 6},         {"wandb.", 6},   {"mlflow.", 7},       {"redis.", 6},
        {"pymongo.", 8},       {"google.", 7},  {"azure.", 6},        {"huggingface_hub.", 16},
        {"psycopg2.", 9},      {"openai.", 7},  {"http.client.", 12}, {"boto3.", 6},
        {"urllib.error.", 13},
    };
    static const struct slice folders[] = {
        {"/urllib3/", 9}, {"/requests/", 10}, {"/botocore/", 10},      {"/aiohttp/", 9},
        {"/httpx/", 7},   {"/wandb/", 7},     {"/http/client.py", 15}, {"/redis/", 7},
    };
    struct traceback_place place;
    return begins_any(raised->type, clients, COUNT(clients)) ||
           (traceback_place(raised->place, &place) &&
            contains_any(place.file, folders, COUNT(folders)));
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

void exception_facts(const struct raised *raised, struct reading *reading) {
    struct slice type = last_part(raised->type), message = raised->message;
    bool is_own = is_port_in_use(message) || (!raised->cut && is_of_service(raised));
    set_missing(message, reading);
    reading_text(reading, FACT_EXCEPTION, raised->type);
    exception_message(whole_message(raised, reading->arena), reading);
    if (!raised->cut && set_told(type, message, reading))
        return;
    if (!is_own && follows_from_another(type, message))
        reading_yes_no(reading, FACT_VICTIM, true);
    else if (is_own || (!raised->cut && !is_doubtful(type, message)))
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
        exception_facts(&told, reading);
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

static bool is_letter(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// A level that loggers write, as a word of its own.
static bool has_level(struct slice text) {
    static const struct slice levels[] = {
        {"ERROR", 5}, {"WARNING", 7}, {"CRITICAL", 8}, {"WARN", 4}};
    for (size_t i = 0; i < COUNT(levels); i++) {
        struct slice behind;
        if (!text_find(text, levels[i], &behind))
            continue;
        const char *at = behind.data - levels[i].size;
        bool begins = at == text.data || !is_letter(at[-1]);
        if (begins && (behind.size == 0 || !is_letter(behind.data[0])))
            return true;
    }
    return false;
}

// The launcher's own lines, and those of a lost child, come in front of what ends a process.
static bool is_logged(struct slice before) {
    static const struct slice others[] = {
        {"torch.distributed.elastic", 25}, {"NCCL", 4}, {"encountered in worker", 21}};
    return before.size > 0 && has_level(before) && !contains_any(before, others, COUNT(others));
}

// What a logger, or the exception itself, says of how the process goes on with it.
static bool says_it_goes_on(struct slice text) {
    static const struct slice words[] = {
        {"skipping", 8}, {"skipped", 7},  {"ignoring", 8},    {"ignored", 7},
        {"retrying", 8}, {"retry in", 8}, {"continuing", 10}, {"falling back", 12},
    };
    return contains_any(text, words, COUNT(words));
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
        return true;
    if (is_logged(frame->before) || has_level(text_until(first, '(')))
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
    return contains_any(text, places, COUNT(places));
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
        if (is_logged(frame->before) && traceback_line(first, false) == TRACEBACK_HEAD &&
            (says_it_goes_on(frame->before) || says_it_goes_on(reason->message)))
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

// Alone on the line, or behind the level of a logger.
static bool begins_traceback(struct slice message) {
    struct slice behind;
    if (!text_find(message, SLICE("Traceback (most"), &behind) ||
        traceback_line(message, false) != TRACEBACK_HEAD)
        return false;
    struct slice front = {message.data, (size_t)(behind.data - message.data) - 15};
    text_skip_blanks(&message);
    return text_begins(message, SLICE("Traceback")) || text_begins(message, SLICE("+ Exc")) ||
           has_level(front);
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

static enum read_result read_line(const struct frame *frame, struct slice message,
                                  struct reading *reading) {
    struct raised raised;
    if (!traceback_raised(message, false, &raised))
        return READ_NOT;
    // A name alone is one only where nothing else has it.
    bool interrupt = slice_equal(raised.type, SLICE("KeyboardInterrupt"));
    if (raised.message.size == 0 && !interrupt &&
        memchr(raised.type.data, '.', raised.type.size) == NULL)
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

const struct line_reader READER_TRACEBACK = {
    .name = "traceback", .read = read_head, .more = more_of_traceback, .finish = finish};

const struct line_reader READER_EXCEPTION = {
    .name = "exception", .read = read_line, .more = more_of_line, .finish = finish};

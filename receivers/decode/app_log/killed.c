// SPDX-License-Identifier: Apache-2.0
// One table of what signals are called (strsignal of glibc, as shells and PyTorch print it). A word
// counts only where it is all of the line. O(line).
#include "receivers/decode/app_log/killed.h"

#include "base/text/cut.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/app_log/traceback.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const struct {
    struct slice text; // of strsignal
    struct slice name;
    uint32_t number;
    enum observation_kind kind;
} SIGNALS[] = {
    {{"Killed", 6}, {"SIGKILL", 7}, 9, OBSERVATION_KILLED},
    {{"Segmentation fault", 18}, {"SIGSEGV", 7}, 11, OBSERVATION_SEGFAULT},
    {{"Aborted", 7}, {"SIGABRT", 7}, 6, OBSERVATION_ABORT},
    {{"Bus error", 9}, {"SIGBUS", 6}, 7, OBSERVATION_SEGFAULT},
    {{"Terminated", 10}, {"SIGTERM", 7}, 15, OBSERVATION_KILLED},
    {{"Floating point exception", 24}, {"SIGFPE", 6}, 8, OBSERVATION_TRAP},
    {{"Illegal instruction", 19}, {"SIGILL", 6}, 4, OBSERVATION_TRAP},
    {{"Hangup", 6}, {"SIGHUP", 6}, 1, OBSERVATION_KILLED},
    {{"Interrupt", 9}, {"SIGINT", 6}, 2, OBSERVATION_KILLED},
    {{"User defined signal 1", 21}, {"SIGUSR1", 7}, 10, OBSERVATION_KILLED},
};

enum { WORDS = 7 }; // the first of them stand alone on a line of a shell

// Which of them the text begins with, and moves behind it; -1: none.
static int take_signal(struct slice *text, bool by_name) {
    static const char first[] = {'K', 'S', 'A', 'B', 'T', 'F', 'I', 'H', 'U'};
    if (text->size == 0 || memchr(first, text->data[0], sizeof first) == NULL)
        return -1;
    for (size_t i = 0; i < COUNT(SIGNALS); i++)
        if (text_skip(text, by_name ? SIGNALS[i].name : SIGNALS[i].text))
            return (int)i;
    return -1;
}

static enum read_result ended_by(int signal, struct reading *reading) {
    assert(signal >= 0 && (size_t)signal < COUNT(SIGNALS));
    reading_begin(reading, SIGNALS[signal].kind);
    reading_number(reading, FACT_SIGNAL, SIGNALS[signal].number);
    return READ_EVENT;
}

// -- children -------------------------------------------------------------------------------------

// "is killed by signal: Killed.", "exited unexpectedly[ with exit code 1]".
static bool read_end(struct slice text, struct reading *reading) {
    uint64_t code;
    if (text_skip(&text, SLICE(" is killed by signal: "))) {
        int signal = take_signal(&text, false);
        if (signal >= 0 && text_skip_char(&text, '.'))
            reading_number(reading, FACT_SIGNAL, SIGNALS[signal].number);
        return true;
    }
    if (!text_skip(&text, SLICE(" exited unexpectedly")))
        return false;
    if (text_skip(&text, SLICE(" with exit code ")) && text_take_number(&text, 1, 3, &code) &&
        text_skip_char(&text, '.'))
        reading_number(reading, FACT_EXIT_CODE, (int64_t)code);
    return true;
}

bool killed_child_read(struct slice message, struct reading *reading) {
    struct slice rest, behind;
    uint64_t pid;
    if (!text_find(message, SLICE("DataLoader worker (pid"), &rest))
        return false;
    text_skip(&rest, SLICE("(s)"));
    if (!text_skip_char(&rest, ' ') || !text_take_number(&rest, 1, 10, &pid))
        return false;
    rest = text_until(rest, ')').size < rest.size ? rest : (struct slice){rest.data, 0};
    if (rest.size == 0)
        return false;
    rest = text_from(rest, text_until(rest, ')').size + 1);
    reading_begin(reading, OBSERVATION_WORKER_KILLED);
    if (!read_end(rest, reading))
        return false;
    reading_number(reading, FACT_PID, (int64_t)pid);
    if (text_find(rest, SLICE("out of shared memory"), &behind))
        reading_text(reading, FACT_REASON, SLICE("out of shared memory"));
    return true;
}

// -- words ----------------------------------------------------------------------------------------

static bool is_end_of_words(struct slice text) {
    text = text_trim(text);
    return text.size == 0 || slice_equal(text, SLICE("(core dumped)"));
}

// "/var/spool/slurmd/job88110/slurm_script": the job.
static struct slice job_of_script(struct slice path) {
    struct slice rest, job = {NULL, 0};
    uint64_t number;
    if (!text_find(path, SLICE("/job"), &rest))
        return job;
    job = rest;
    if (!text_take_number(&rest, 1, 18, &number) || !text_begins(rest, SLICE("/")))
        return (struct slice){NULL, 0};
    job.size -= rest.size;
    return job;
}

// "script: line 22: 61733 Killed                  python train.py", of bash.
static enum read_result read_job(struct slice message, struct reading *reading) {
    struct slice rest;
    uint64_t number, pid;
    if (!text_find(message, SLICE(": line "), &rest))
        return READ_NOT;
    struct slice path = {message.data, (size_t)(rest.data - message.data) - 7};
    if (!text_take_number(&rest, 1, 9, &number) || !text_skip(&rest, SLICE(":")))
        return READ_NOT;
    text_skip_blanks(&rest);
    if (!text_take_number(&rest, 1, 10, &pid) || !text_skip_char(&rest, ' '))
        return READ_NOT;
    text_skip_blanks(&rest);
    int signal = take_signal(&rest, false);
    if (signal < 0 || (rest.size > 0 && rest.data[0] != ' '))
        return READ_NOT;
    ended_by(signal, reading);
    reading_number(reading, FACT_PID, (int64_t)pid);
    struct slice job = job_of_script(path);
    if (job.data != NULL)
        reading_text(reading, FACT_JOB, job);
    return READ_EVENT;
}

// "*** SIGABRT received at time=1773453017 on cpu 31 ***", of Abseil.
static enum read_result read_handler(struct slice message, struct reading *reading) {
    uint64_t seconds, cpu;
    if (!text_skip(&message, SLICE("*** ")))
        return READ_NOT;
    int signal = take_signal(&message, true);
    if (signal < 0 || !text_skip(&message, SLICE(" received at time=")) ||
        !text_take_number(&message, 9, 10, &seconds) || !text_begins(message, SLICE(" ")))
        return READ_NOT;
    ended_by(signal, reading);
    reading->time_ns = seconds * 1000000000;
    reading->just_now = true;
    reading->slack_ns = 1000000000;
    if (text_skip(&message, SLICE(" on cpu ")) && text_take_number(&message, 1, 6, &cpu) &&
        text_begins(message, SLICE(" ")))
        reading_number(reading, FACT_CPU, (int64_t)cpu);
    return READ_EVENT;
}

static enum read_result read_killed(const struct frame *frame, struct slice message,
                                    struct reading *reading) {
    struct slice rest = message;
    if (message.size == 0 || frame->truncated)
        return READ_NOT;
    if (message.data[0] == '*')
        return read_handler(message, reading);
    int signal = take_signal(&rest, false);
    if (signal >= 0)
        return signal < WORDS && is_end_of_words(rest) ? ended_by(signal, reading) : READ_NOT;
    return read_job(message, reading);
}

const struct line_reader READER_KILLED = {.name = "killed", .read = read_killed};

// -- faulthandler ---------------------------------------------------------------------------------

static const struct slice FATAL = {"Fatal Python error: ", 20};

static enum read_result begin_fault(const struct frame *frame, struct slice message,
                                    struct reading *reading) {
    (void)frame;
    (void)reading;
    return text_begins(message, FATAL) ? READ_BEGIN : READ_NOT;
}

static enum block_step more_of_fault(struct slice so_far, uint32_t count, const struct frame *frame,
                                     struct slice message) {
    static const struct slice starts[] = {
        {"  ", 2},        {"Current thread ", 15},        {"Current thread's C stack", 24},
        {"Thread 0x", 9}, {"Python runtime state: ", 22},
    };
    (void)so_far;
    (void)count;
    if (text_begins(message, SLICE("Extension modules: ")))
        return BLOCK_LAST;
    // Of a line that breaks off it cannot be told.
    if (frame->truncated || text_trim(message).size == 0)
        return BLOCK_TAKE;
    for (size_t i = 0; i < COUNT(starts); i++)
        if (text_begins(message, starts[i]))
            return BLOCK_TAKE;
    return BLOCK_OVER;
}

// The innermost place of the thread that failed, or of the only one; of one that is cut, the one
// that failed may not have come yet.
static struct slice innermost(struct slice text, bool cut) {
    struct slice first = {NULL, 0};
    bool current = false;
    while (text.size > 0) {
        struct traceback_place place;
        struct slice line = text_take_line(&text);
        current = current || text_begins(line, SLICE("Current thread 0x"));
        if ((first.data != NULL && !current) || !traceback_place(line, &place))
            continue;
        if (current)
            return line;
        first = line;
    }
    return cut ? (struct slice){NULL, 0} : first;
}

static enum read_result finish_fault(struct slice text, bool cut, const struct frame *frame,
                                     struct reading *reading) {
    struct slice words = text_from(text_until(text, '\n'), FATAL.size), rest = words;
    int signal = take_signal(&rest, false);
    // Any other fatal error ends in abort().
    if (signal >= 0 && is_end_of_words(rest)) {
        ended_by(signal, reading);
    } else {
        reading_begin(reading, OBSERVATION_ABORT);
        reading_number(reading, FACT_SIGNAL, 6);
        reading_text(reading, FACT_MESSAGE, text_trim(words));
    }
    struct slice place = traceback_place_text(innermost(text, cut), reading->arena);
    if (place.data != NULL)
        reading_text(reading, FACT_FRAME, place);
    if (frame->truncated || (cut && words.size == text.size - FATAL.size))
        reading_yes_no(reading, FACT_TRUNCATED, true);
    return READ_EVENT;
}

const struct line_reader READER_FAULTHANDLER = {
    .name = "faulthandler", .read = begin_fault, .more = more_of_fault, .finish = finish_fault};

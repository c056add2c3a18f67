// SPDX-License-Identifier: Apache-2.0
// A phrase tells the line, whatever prefix stands before it. The rank that a prefix names is the
// launcher's place, not the worker's, so that it is never taken. Facts about the wordings: PyTorch,
// torch/distributed/elastic/multiprocessing/api.py and agent/server/api.py; NVIDIA's
// nvidia-resiliency-ext, fault_tolerance/launcher.py.
#include "receivers/decode/launcher/torchelastic.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

enum { SEVERAL_MAX = 64 << 10 }; // of a longer line only the first failure is read

#define COUNT(table) (sizeof(table) / sizeof *(table))

// -- parts ----------------------------------------------------------------------------------------

bool launcher_number(struct slice *text, int64_t *number) {
    struct slice rest = *text;
    bool negative = text_skip_char(&rest, '-');
    uint64_t value;
    if (!text_take_number(&rest, 1, 18, &value))
        return false;
    *number = negative ? -(int64_t)value : (int64_t)value;
    *text = rest;
    return true;
}

bool launcher_signal(struct slice *text, int64_t *number) {
    static const struct {
        struct slice name;
        int64_t number;
    } names[] = {{{"SIGTERM", 7}, 15}, {{"SIGKILL", 7}, 9}, {{"SIGINT", 6}, 2},
                 {{"SIGHUP", 6}, 1},   {{"SIGQUIT", 7}, 3}, {{"SIGUSR1", 7}, 10},
                 {{"SIGUSR2", 7}, 12}, {{"SIGABRT", 7}, 6}, {{"SIGSEGV", 7}, 11}};
    struct slice rest = *text;
    text_skip(&rest, SLICE("Signals."));
    for (size_t i = 0; i < COUNT(names); i++) {
        if (!text_skip(&rest, names[i].name))
            continue;
        *number = names[i].number;
        *text = rest;
        return true;
    }
    uint64_t value;
    if (!text_take_number(&rest, 1, 2, &value) || value == 0)
        return false;
    *number = (int64_t)value;
    *text = rest;
    return true;
}

void launcher_set_exit(int64_t code, struct reading *reading) {
    if (code < 0)
        reading_number(reading, FACT_SIGNAL, -code);
    else
        reading_number(reading, FACT_EXIT_CODE, code);
}

static bool take_pid(struct slice *text, int64_t *pid) {
    uint64_t value;
    if (!text_take_number(text, 1, 10, &value))
        return false;
    *pid = (int64_t)value;
    return true;
}

// The launcher's own pid: of the prefix "E1122 01:50:17.500000 88410 torch/…:984] ".
static int64_t own_pid(const struct frame *frame, struct slice message) {
    static const char levels[] = {'E', 'W', 'I', 'F'};
    uint64_t number;
    int64_t pid;
    if (message.size < 5 || memchr(levels, message.data[0], sizeof levels) == NULL)
        return frame->pid;
    message = text_from(message, 1);
    if (!text_take_number(&message, 4, 4, &number) || !text_skip_char(&message, ' '))
        return frame->pid;
    message = text_from(message, text_until(message, ' ').size);
    text_skip_blanks(&message);
    return take_pid(&message, &pid) && text_begins(message, SLICE(" ")) ? pid : frame->pid;
}

// "… [node7] [workload:12(4) infra:1(0)] launcher.py:3659 …" of ft_launcher.
static struct slice host_of_prefix(struct slice message) {
    struct slice behind, host = {NULL, 0};
    if (!text_find(message, SLICE("] [workload:"), &behind))
        return host;
    struct slice before = {message.data, (size_t)(behind.data - message.data) - 12};
    const char *open = memrchr(before.data, '[', before.size);
    if (open == NULL)
        return host;
    host = text_from(before, (size_t)(open - before.data) + 1);
    return host.size > 0 && memchr(host.data, ' ', host.size) == NULL ? host
                                                                      : (struct slice){NULL, 0};
}

static enum read_result give(enum observation_kind what, struct reading *reading) {
    reading_begin(reading, what);
    reading->no_rank = true;
    return READ_EVENT;
}

// -- lines; `rest` is what follows the phrase -----------------------------------------------------

// "failed (exitcode: -9) local_rank: 6 (pid: 88733) of binary: /usr/bin/python3"
static enum read_result read_failed(const struct frame *frame, struct slice message,
                                    struct slice rest, struct reading *reading) {
    int64_t code, local, pid;
    (void)frame;
    if (!launcher_number(&rest, &code) || !text_skip(&rest, SLICE(") local_rank: ")) ||
        !launcher_number(&rest, &local) || local < 0 || local > RANK_MAX ||
        !text_skip(&rest, SLICE(" (pid: ")) || !take_pid(&rest, &pid) ||
        !text_skip(&rest, SLICE(")")))
        return READ_NOT;
    give(OBSERVATION_LAUNCHER_FAILED, reading);
    reading->host = host_of_prefix(message);
    reading_number(reading, FACT_LOCAL_RANK, local);
    reading_number(reading, FACT_PID, pid);
    launcher_set_exit(code, reading);
    return READ_EVENT;
}

static enum read_result give_signal(struct slice message, int64_t pid, int64_t signal,
                                    struct reading *reading) {
    give(OBSERVATION_LAUNCHER_SIGNAL, reading);
    reading->host = host_of_prefix(message);
    reading_number(reading, FACT_PID, pid);
    reading_number(reading, FACT_SIGNAL, signal);
    reading_yes_no(reading, FACT_VICTIM, true);
    return READ_EVENT;
}

// "Sending process 4712 closing signal SIGTERM"
static enum read_result read_sending(const struct frame *frame, struct slice message,
                                     struct slice rest, struct reading *reading) {
    int64_t pid, signal;
    (void)frame;
    if (!take_pid(&rest, &pid) || !text_skip(&rest, SLICE(" closing signal ")) ||
        !launcher_signal(&rest, &signal))
        return READ_NOT;
    return give_signal(message, pid, signal, reading);
}

// "Unable to shutdown process 4712 via SIGTERM, forcefully exiting via SIGKILL"
static enum read_result read_forced(const struct frame *frame, struct slice message,
                                    struct slice rest, struct reading *reading) {
    int64_t pid, tried, signal;
    (void)frame;
    if (!take_pid(&rest, &pid) || !text_skip(&rest, SLICE(" via ")) ||
        !launcher_signal(&rest, &tried) || !text_skip(&rest, SLICE(", forcefully exiting via ")) ||
        !launcher_signal(&rest, &signal))
        return READ_NOT;
    return give_signal(message, pid, signal, reading);
}

// "Received Signals.SIGTERM death signal, shutting down workers"
static enum read_result read_told(const struct frame *frame, struct slice message,
                                  struct slice rest, struct reading *reading) {
    struct slice phrase = SLICE("Received ");
    struct slice before = {message.data, (size_t)(rest.data - message.data)}, behind = before;
    while (text_find(behind, phrase, &behind)) {
        int64_t signal, pid = own_pid(frame, message);
        struct slice word = behind;
        if (!launcher_signal(&word, &signal) || !text_begins(word, SLICE(" death signal")))
            continue;
        give(OBSERVATION_LAUNCHER_TOLD_TO_STOP, reading);
        reading->host = host_of_prefix(message);
        reading_number(reading, FACT_SIGNAL, signal);
        if (pid >= 0)
            reading_number(reading, FACT_PID, pid);
        return READ_EVENT;
    }
    return READ_NOT;
}

// "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"
static enum read_result read_restart(const struct frame *frame, struct slice message,
                                     struct slice rest, struct reading *reading) {
    (void)frame;
    size_t end = (size_t)(rest.data - message.data) - 37, from = end;
    while (from > 0 && (text_is_digit(message.data[from - 1]) || message.data[from - 1] == '/'))
        from--;
    struct slice number = {message.data + from, end - from};
    uint64_t left, all;
    if (!text_take_number(&number, 1, 9, &left) || !text_skip_char(&number, '/') ||
        !text_number(number, 9, &all) || left > all)
        return READ_NOT;
    give(OBSERVATION_LAUNCHER_RESTART, reading);
    reading->host = host_of_prefix(message);
    reading_number(reading, FACT_ATTEMPTS_LEFT, (int64_t)left);
    return READ_EVENT;
}

// The number that stands before ": ProcessFailure(…", a rank of the job.
static int32_t rank_before(struct slice text) {
    uint64_t rank;
    size_t from = text.size;
    while (from > 0 && text_is_digit(text.data[from - 1]))
        from--;
    return text_number(text_from(text, from), 9, &rank) && rank <= RANK_MAX ? (int32_t)rank
                                                                            : RANK_NONE;
}

// "{12: ProcessFailure(local_rank=4, pid=811, exitcode=-6, error_file='<N/A>'), 13: …}"
static enum read_result read_failures(const struct frame *frame, struct slice message,
                                      struct slice rest, struct reading *reading) {
    int64_t local, pid, code;
    struct slice before = {message.data, (size_t)(rest.data - message.data) - 28};
    if (!launcher_number(&rest, &local) || local < 0 || local > RANK_MAX ||
        !text_skip(&rest, SLICE(", pid=")) || !take_pid(&rest, &pid) ||
        !text_skip(&rest, SLICE(", exitcode=")) || !launcher_number(&rest, &code) ||
        !text_skip(&rest, SLICE(", ")))
        return READ_NOT;
    give(OBSERVATION_LAUNCHER_FAILED, reading);
    // The message may be the rest of one with several.
    reading->host = host_of_prefix(frame->message);
    reading->rank = rank_before(before);
    reading_number(reading, FACT_LOCAL_RANK, local);
    reading_number(reading, FACT_PID, pid);
    launcher_set_exit(code, reading);
    struct slice behind, file;
    if (text_skip(&rest, SLICE("error_file='")) && text_find(rest, SLICE("'"), &behind)) {
        file = text_until(rest, '\'');
        if (!slice_equal(file, SLICE("<N/A>")))
            reading_text(reading, FACT_ERROR_FILE, file);
    }
    if (message.size <= SEVERAL_MAX && text_find(rest, SLICE("ProcessFailure("), &behind))
        reading->rest = text_from(rest, text_until(rest, ')').size);
    return READ_EVENT;
}

static enum read_result read_nothing(const struct frame *frame, struct slice message,
                                     struct slice rest, struct reading *reading) {
    (void)frame;
    (void)message;
    (void)rest;
    (void)reading;
    return READ_OTHER;
}

struct telling {
    struct slice phrase;
    enum read_result (*read)(const struct frame *frame, struct slice message, struct slice rest,
                             struct reading *reading);
};

static const struct telling FAILURES[] = {
    {{"failed (exitcode: ", 18}, read_failed},
    {{": ProcessFailure(local_rank=", 28}, read_failures},
    {{"FAILED with no error file", 25}, read_nothing},
    {{NULL, 0}, NULL},
};
static const struct telling SIGNALS[] = {
    {{"Sending process ", 16}, read_sending},
    {{" death signal", 13}, read_told},
    {{NULL, 0}, NULL},
};
static const struct telling FORCED[] = {
    {{"Unable to shutdown process ", 27}, read_forced},
    {{NULL, 0}, NULL},
};
static const struct telling RESTARTS[] = {
    {{" attempts left; will restart worker g", 37}, read_restart},
    {{NULL, 0}, NULL},
};

// A word that all phrases of a list have with them: most lines have none of the words.
static const struct {
    struct slice word;
    const struct telling *phrases;
} LISTS[] = {
    {{"local_rank", 10}, FAILURES},
    {{" signal", 7}, SIGNALS},
    {{"forcefully exiting", 18}, FORCED},
    {{"attempts left", 13}, RESTARTS},
};

static enum read_result read_list(const struct telling *phrases, const struct frame *frame,
                                  struct slice message, struct reading *reading) {
    enum read_result result = READ_NOT;
    for (; phrases->read != NULL && result == READ_NOT; phrases++) {
        struct slice rest;
        if (text_find(message, phrases->phrase, &rest))
            result = phrases->read(frame, message, rest, reading);
    }
    return result;
}

static enum read_result read_launcher(const struct frame *frame, struct slice message,
                                      struct reading *reading) {
    enum read_result result = READ_NOT;
    for (size_t i = 0; i < COUNT(LISTS) && result == READ_NOT; i++) {
        struct slice behind;
        if (text_find(message, LISTS[i].word, &behind))
            result = read_list(LISTS[i].phrases, frame, message, reading);
    }
    if (result == READ_EVENT && frame->truncated)
        reading_yes_no(reading, FACT_TRUNCATED, true);
    return result;
}

const struct line_reader READER_TORCHELASTIC = {.name = "torchelastic", .read = read_launcher};

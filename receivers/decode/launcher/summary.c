// SPDX-License-Identifier: Apache-2.0
// A failure begins with its number in brackets, alone on a line, and has six fields; the last one
// is a traceback that may run over many lines, indented by two. That it is the first stands in the
// line before. Facts: PyTorch, torch/distributed/elastic/multiprocessing/errors/__init__.py.
// O(size) of the block.
#include "receivers/decode/launcher/summary.h"

#include "base/text/cut.h"
#include "base/text/log_time.h"
#include "pipeline/model/event.h"
#include "receivers/decode/app_log/exception.h"
#include "receivers/decode/app_log/traceback.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

enum { INDENT = 2 };

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

void launcher_set_exit(int64_t code, struct reading *reading) {
    if (code < 0)
        reading_number(reading, FACT_SIGNAL, -code);
    else
        reading_number(reading, FACT_EXIT_CODE, code);
}

// "[0]:", alone on the line.
static bool is_number(struct slice line) {
    uint64_t number;
    line = text_trim(line);
    return text_skip_char(&line, '[') && text_take_number(&line, 1, 6, &number) &&
           slice_equal(line, SLICE("]:"));
}

static enum read_result begin_failure(const struct frame *frame, struct slice message,
                                      struct reading *reading) {
    (void)frame;
    (void)reading;
    return message.size > 0 && message.data[0] == '[' && is_number(message) ? READ_BEGIN : READ_NOT;
}

// The value of "  time      : value"; false: another line.
static bool value_of(struct slice line, struct slice key, struct slice *value) {
    text_skip_blanks(&line);
    if (!text_skip(&line, key))
        return false;
    text_skip_blanks(&line);
    if (!text_skip_char(&line, ':'))
        return false;
    *value = text_trim(line);
    return true;
}

static enum block_step more_of_failure(struct slice so_far, uint32_t count,
                                       const struct frame *frame, struct slice message) {
    struct slice value;
    (void)so_far;
    (void)frame;
    if (count == 1)
        return value_of(message, SLICE("time"), &value) ? BLOCK_TAKE : BLOCK_OVER;
    bool indented = message.size == 0 || message.data[0] == ' ' || message.data[0] == '\t';
    return indented || text_trim(message).size == 0 ? BLOCK_TAKE : BLOCK_OVER;
}

// -- fields ---------------------------------------------------------------------------------------

// "2026-11-22_01:50:17", in whole seconds of the local clock.
static void read_time(struct slice value, struct reading *reading) {
    char text[19];
    uint64_t ns;
    if (value.size != sizeof text || value.data[10] != '_')
        return;
    memcpy(text, value.data, sizeof text);
    text[10] = 'T';
    struct slice time = {text, sizeof text};
    if (!log_time_iso(&time, &ns) || time.size > 0)
        return;
    reading->time_ns = ns;
    reading->local_time = reading->just_now = true;
    reading->slack_ns = 1000000000;
}

static void read_host(struct slice value, struct reading *reading) {
    if (value.size > 0 && memchr(value.data, ' ', value.size) == NULL)
        reading->host = value;
}

// "12 (local_rank: 4)"
static void read_rank(struct slice value, struct reading *reading) {
    int64_t rank, local;
    if (!launcher_number(&value, &rank) || !text_skip(&value, SLICE(" (local_rank: ")) ||
        !launcher_number(&value, &local) || !text_skip(&value, SLICE(")")))
        return;
    if (rank >= 0 && rank <= RANK_MAX)
        reading->rank = (int32_t)rank;
    if (local >= 0 && local <= RANK_MAX)
        reading_number(reading, FACT_LOCAL_RANK, local);
}

// "-15 (pid: 4712)  (SIGTERM)"
static void read_exit(struct slice value, struct reading *reading) {
    int64_t code, pid;
    if (!launcher_number(&value, &code) || !text_skip(&value, SLICE(" (pid: ")) ||
        !launcher_number(&value, &pid) || !text_skip(&value, SLICE(")")))
        return;
    launcher_set_exit(code, reading);
    if (pid >= 0)
        reading_number(reading, FACT_PID, pid);
}

static void read_file(struct slice value, struct reading *reading) {
    if (value.size > 0 && !slice_equal(value, SLICE("<N/A>")))
        reading_text(reading, FACT_ERROR_FILE, value);
}

static const struct {
    struct slice key;
    void (*read)(struct slice value, struct reading *reading);
} FIELDS[] = {
    {{"time", 4}, read_time},     {{"host", 4}, read_host},        {{"rank", 4}, read_rank},
    {{"exitcode", 8}, read_exit}, {{"error_file", 10}, read_file},
};
enum { FIELD_COUNT = sizeof FIELDS / sizeof *FIELDS };

// The traceback's lines with their indentation off.
static struct slice without_indent(struct slice text, struct arena *arena) {
    struct slice copy = {arena_take(arena, text.size + 1), 0};
    char *to = (char *)(uintptr_t)copy.data;
    while (text.size > 0) {
        struct slice line = text_take_line(&text);
        for (unsigned i = 0; i < INDENT; i++)
            text_skip_char(&line, ' ');
        memcpy(to + copy.size, line.data, line.size);
        copy.size += line.size;
        to[copy.size++] = '\n';
    }
    return copy;
}

static void read_traceback(struct slice text, const struct forms *forms, struct reading *reading) {
    struct traceback traceback;
    traceback_read(without_indent(text, reading->arena), &traceback);
    if (traceback.count == 0)
        return;
    exception_facts(forms, &traceback.reason, reading);
    exception_last(&traceback, reading);
    struct slice place = traceback_place_text(traceback.reason.place, reading->arena);
    if (place.data != NULL)
        reading_text(reading, FACT_FRAME, place);
}

// How many of the fields were there.
static unsigned read_fields(struct slice text, const struct forms *forms, struct reading *reading) {
    unsigned found = 0;
    while (text.size > 0) {
        struct slice value, rest = text, line = text_take_line(&text);
        if (value_of(line, SLICE("traceback"), &value)) {
            rest = text_from(rest, (size_t)(value.data - rest.data));
            read_traceback(rest, forms, reading);
            return found + 1;
        }
        for (size_t i = 0; i < FIELD_COUNT; i++) {
            if (!value_of(line, FIELDS[i].key, &value))
                continue;
            FIELDS[i].read(value, reading);
            found++;
        }
    }
    return found;
}

static enum read_result finish_failure(struct slice text, bool cut, const struct frame *frame,
                                       struct reading *reading) {
    text_take_line(&text);
    // The last line of one that is not whole may be a part of itself.
    if (cut) {
        const char *newline = text.size == 0 ? NULL : memrchr(text.data, '\n', text.size);
        text.size = newline == NULL ? 0 : (size_t)(newline - text.data);
    }
    reading_begin(reading, OBSERVATION_LAUNCHER_SUMMARY);
    reading->no_rank = true;
    reading_yes_no(reading, FACT_FIRST, text_begins(frame->before, SLICE("Root Cause (first")));
    unsigned found = read_fields(text, frame->forms, reading);
    if (found == 0)
        return READ_OTHER;
    if (found <= FIELD_COUNT)
        reading_yes_no(reading, FACT_TRUNCATED, true);
    return READ_EVENT;
}

const struct line_reader READER_SUMMARY = {
    .name = "summary", .read = begin_failure, .more = more_of_failure, .finish = finish_failure};

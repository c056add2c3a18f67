// SPDX-License-Identifier: Apache-2.0
// Tables of `sacct -P`: a heading that names the columns, and a row for each job or step. The rows
// are gathered behind their heading. Each row is read once, column by column.
#include "base/text/cut.h"
#include "base/text/log_time.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/slurm/slurm.h"
#include "receivers/decode/slurm/step.h"

enum { HEADING_MAX = 2048, DIGITS_MAX = 9 };

enum column { COLUMN_JOB, COLUMN_STATE, COLUMN_EXIT, COLUMN_END, COLUMN_NODES, COLUMN_COUNT };
static const struct slice COLUMNS[COLUMN_COUNT] = {[COLUMN_JOB] = {"JobID", 5},
                                                   [COLUMN_STATE] = {"State", 5},
                                                   [COLUMN_EXIT] = {"ExitCode", 8},
                                                   [COLUMN_END] = {"End", 3},
                                                   [COLUMN_NODES] = {"NodeList", 8}};

// An end that was not as it should be, in both spellings. Other states are of no interest.
static const struct {
    struct slice name, letters;
} STATES[] = {
    {{"BOOT_FAIL", 9}, {"BF", 2}}, {{"CANCELLED", 9}, {"CA", 2}},
    {{"DEADLINE", 8}, {"DL", 2}},  {{"FAILED", 6}, {"F", 1}},
    {{"NODE_FAIL", 9}, {"NF", 2}}, {{"OUT_OF_MEMORY", 13}, {"OOM", 3}},
    {{"PREEMPTED", 9}, {"PR", 2}}, {{"REVOKED", 7}, {"RV", 2}},
    {{"TIMEOUT", 7}, {"TO", 2}},
};

static struct slice take_column(struct slice *row) {
    struct slice column = text_until(*row, '|');
    *row = text_from(*row, column.size + (column.size < row->size));
    return column;
}

static size_t count_bars(struct slice text) {
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == '|';
    return count;
}

static bool has_column(struct slice heading, struct slice name) {
    while (heading.size > 0)
        if (slice_equal(text_trim(take_column(&heading)), name))
            return true;
    return false;
}

static enum read_result read_heading(const struct frame *frame, struct slice message,
                                     struct reading *reading) {
    struct slice behind;
    (void)frame;
    (void)reading;
    if (message.size > HEADING_MAX || !text_find(message, SLICE("JobID"), &behind))
        return READ_NOT;
    return has_column(message, COLUMNS[COLUMN_JOB]) && has_column(message, COLUMNS[COLUMN_STATE])
               ? READ_BEGIN
               : READ_NOT;
}

static enum block_step more_rows(struct slice so_far, uint32_t count, const struct frame *frame,
                                 struct slice message) {
    (void)count;
    (void)frame;
    struct slice heading = text_until(so_far, '\n');
    bool is_row = message.size > 0 && text_is_digit(message.data[0]) &&
                  count_bars(message) == count_bars(heading);
    return is_row ? BLOCK_TAKE : BLOCK_OVER;
}

// "CANCELLED by 2001"; false: a state that says nothing of interest.
static bool read_state(struct slice state, struct reading *reading) {
    uint64_t uid;
    struct slice word = text_until_any(state, " +");
    for (size_t i = 0; i < sizeof STATES / sizeof *STATES; i++) {
        if (!slice_equal(word, STATES[i].name) && !slice_equal(word, STATES[i].letters))
            continue;
        reading_text(reading, FACT_STATE, STATES[i].name);
        state = text_from(state, word.size);
        if (text_skip(&state, SLICE(" by ")) && text_number(state, DIGITS_MAX, &uid))
            reading_number(reading, FACT_BY_UID, (int64_t)uid);
        return true;
    }
    return false;
}

// "0:9": code and signal.
static void read_exit(struct slice text, struct reading *reading) {
    uint64_t code, signal;
    if (!text_take_number(&text, 1, DIGITS_MAX, &code) || !text_skip_char(&text, ':') ||
        !text_number(text, DIGITS_MAX, &signal))
        return;
    reading_number(reading, FACT_EXIT_CODE, (int64_t)code);
    if (signal > 0)
        reading_number(reading, FACT_SIGNAL, (int64_t)signal);
}

static enum read_result read_row(const struct slice values[COLUMN_COUNT], struct reading *reading) {
    if (!slurm_is_step(values[COLUMN_JOB]))
        return READ_OTHER;
    reading_begin(reading, OBSERVATION_SLURM_STATE);
    reading->no_rank = reading->no_host = true;
    if (!read_state(values[COLUMN_STATE], reading))
        return READ_OTHER;
    slurm_step_facts(reading, values[COLUMN_JOB]);
    read_exit(values[COLUMN_EXIT], reading);
    struct slice end = values[COLUMN_END], nodes = values[COLUMN_NODES];
    if (end.size > 0 && text_is_digit(end.data[0])) {
        if (!log_time_iso(&end, &reading->time_ns) || end.size > 0)
            return reading_refuse(reading, DECODE_BAD_TIMESTAMP,
                                  "the column End holds no time such as 2026-03-14T02:50:17");
        reading->local_time = true;
        reading->slack_ns = 1000000000;
    }
    if (nodes.size > 0 && text_until_any(nodes, "[, ").size == nodes.size)
        reading->host = nodes;
    else if (nodes.size > 0 && nodes.data[0] != 'N') // "None assigned"
        reading_text(reading, FACT_HOSTS, nodes);
    return READ_EVENT;
}

static enum read_result next_row(struct slice text, struct block_walk *walk, bool cut,
                                 const struct frame *frame, struct reading *reading) {
    (void)cut;
    (void)frame;
    struct slice values[COLUMN_COUNT] = {{NULL, 0}};
    struct slice heading = text_until(text, '\n');
    struct slice rest = text_from(text, walk->at);
    struct slice row = text_take_line(&rest);
    bool is_heading = walk->at == 0;
    walk->at = text.size - rest.size;
    if (is_heading)
        return READ_OTHER;
    while (heading.size > 0) {
        struct slice name = text_trim(take_column(&heading)), value = text_trim(take_column(&row));
        for (enum column column = 0; column < COLUMN_COUNT; column++)
            if (slice_equal(name, COLUMNS[column]))
                values[column] = value;
    }
    return read_row(values, reading);
}

const struct line_reader READER_SACCT = {
    .name = "sacct", .read = read_heading, .more = more_rows, .next = next_row};

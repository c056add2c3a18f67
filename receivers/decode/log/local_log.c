// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/log/local_log.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/kernel_log/aer.h"
#include "receivers/decode/kernel_log/xid.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/frame_reader.h"
#include "receivers/decode/line/year.h"
#include "receivers/decode/log/search.h"

#include <assert.h>

enum {
    ARENA_BLOCK = 4096,
    HEAD_LINES = 256, // that are read one by one: they show how the log is written
    TO_BE_READ = 64   // … so many at a time, where lines belong together
};

struct local_log {
    struct frame_reader *frames;
    struct frame_reader *judge; // of lines that may not be read
    struct arena arena;         // of the line at hand
    string_id node;
    uint64_t position;
    struct search search;
    uint64_t to_read; // lines that are read before it is asked which may be passed over
};

struct local_log *local_log_make(const struct decoder_input *input, string_id node) {
    struct local_log *log = memory_zero(1, sizeof *log);
    struct decoder_input utc = *input;
    utc.zone = NULL;
    log->frames = frame_reader_make(&utc, FORM_ANY);
    log->judge = frame_reader_make(&utc, FORM_ANY);
    log->node = node;
    arena_init(&log->arena, ARENA_BLOCK);
    return log;
}

void local_log_free(struct local_log *log) {
    if (log == NULL)
        return;
    frame_reader_free(log->frames);
    frame_reader_free(log->judge);
    arena_release(&log->arena);
    memory_give(log);
}

// 0: it is nothing that counters tell of.
static uint32_t code_of(struct slice message, struct kernel_line *line) {
    if (kernel_xid_parse(message, line) == KERNEL_XID_LINE)
        return line->kind == KERNEL_XID ? line->code : 0;
    if (!kernel_aer_parse(message, line) || line->aer != AER_ERROR ||
        line->severity == AER_SEVERITY_UNKNOWN)
        return 0;
    return LOCAL_AER + line->severity;
}

static void note_fact(const struct local_log *log, const struct frame *frame,
                      struct local_times *times) {
    struct kernel_line line = {.address = PCI_NONE, .port = PCI_NONE, .pid = -1, .link = -1};
    if (times->fact_count == LOCAL_FACTS_MAX || frame->message.data == NULL)
        return;
    uint32_t code = code_of(frame->message, &line);
    if (code == 0 || line.address == PCI_NONE)
        return;
    string_id node = frame->host.size > 0 ? intern(frame->host) : log->node;
    if (node == STRING_NONE || node == STRING_REFUSED)
        return;
    times->facts[times->fact_count++] = (struct local_fact){
        .time_ns = frame->time_ns, .node = node, .address = line.address, .code = code};
}

static void note_frame(const struct local_log *log, const struct frame *frame,
                       struct local_times *times) {
    if (!frame->local_time || frame->time_ns == 0)
        return;
    if (times->lines == 0 || frame->time_ns < times->first_ns)
        times->first_ns = frame->time_ns;
    if (times->lines == 0 || frame->time_ns > times->last_ns)
        times->last_ns = frame->time_ns;
    times->lines += times->lines < UINT32_MAX;
    note_fact(log, frame, times);
}

static void read_line(struct local_log *log, struct slice line, struct local_times *times) {
    struct frame frame;
    struct decode_fault fault;
    enum frame_step step =
        frame_read(log->frames, line, ++log->position, &log->arena, &frame, &fault);
    for (; step != FRAME_END; step = frame_next(log->frames, &log->arena, &frame, &fault))
        if (step == FRAME_LINE)
            note_frame(log, &frame, times);
    arena_reset(&log->arena);
}

// -- searching ------------------------------------------------------------------------------------

static enum frame_step judge_line(struct local_log *log, struct slice line, struct frame *frame) {
    struct decode_fault fault;
    arena_reset(&log->arena);
    frame_reader_follow(log->judge, log->frames);
    return frame_read(log->judge, line, 1, &log->arena, frame, &fault);
}

static bool tells_fact(void *context, struct slice line) {
    struct local_log *log = context;
    struct kernel_line told = {.address = PCI_NONE, .port = PCI_NONE, .pid = -1, .link = -1};
    struct frame frame;
    enum frame_step step = judge_line(log, line, &frame);
    return !frame_is_of_lines(log->judge) ||
           (step == FRAME_LINE && frame.message.size > 0 && code_of(frame.message, &told) != 0);
}

static bool has_time(void *context, struct slice line) {
    struct frame frame;
    return judge_line(context, line, &frame) == FRAME_LINE && frame.time_ns != 0;
}

// Passes over the first lines of the text that need not be read.
static void pass_lines(struct local_log *log, struct slice *text, struct local_times *times) {
    const struct search_judge judge = {.context = log,
                                       .numbers = frame_learns_labels(log->frames),
                                       .is_of_interest = tells_fact,
                                       .has_time = has_time};
    struct line_run runs[LINE_RUNS];
    search_lines(&log->search, forms_builtin(), *text, NULL, &judge, runs);
    for (int i = 0; i < LINE_RUNS; i++) {
        // Between two runs all lines are whole.
        for (; runs[i].lines > 0 && log->to_read > 0; log->to_read--)
            read_line(log, text_take_line(text), times);
        *text = text_from(*text, runs[i].bytes);
        log->position += runs[i].lines;
        log->to_read += runs[i].offered;
    }
}

size_t local_log_read(struct local_log *log, struct slice text, bool last,
                      struct local_times *times) {
    struct slice rest = text;
    assert(times->facts != NULL);
    for (; rest.size > 0; log->to_read--) {
        if (log->to_read == 0 && log->position >= HEAD_LINES && frame_is_of_lines(log->frames))
            pass_lines(log, &rest, times);
        if (rest.size == 0 || (!last && memchr(rest.data, '\n', rest.size) == NULL))
            break;
        if (log->to_read == 0)
            log->to_read = TO_BE_READ;
        read_line(log, text_take_line(&rest), times);
    }
    return text.size - rest.size;
}

// -- beginnings of logs ---------------------------------------------------------------------------

// What times there are in the first lines of a log.
struct head_times {
    bool local;    // the kernel's, without a zone
    bool certain;  // the kernel's, with one
    bool yearless; // without a year
    bool dated;    // with one
};

// A date without a year is a time, too, whenever it was: it is taken as of the year before this.
static const uint64_t YEARLESS_NS = UINT64_C(1) << 60;

static void note_time(struct head_times *times, const struct frame *frame) {
    bool kernel = frame->origin == ORIGIN_KERNEL;
    if (frame->time_ns == 0)
        return;
    times->local = times->local || (kernel && frame->local_time);
    times->certain = times->certain || (kernel && !frame->local_time && frame->slack_ns == 0);
    if (frame->time_ns > YEARLESS_NS)
        times->dated = true;
    else
        times->yearless = true;
}

static struct head_times times_of(struct slice head) {
    struct head_times times = {false, false, false, false};
    struct arena arena;
    arena_init(&arena, ARENA_BLOCK);
    struct decoder_input input = {.observed_ns = YEARLESS_NS};
    struct frame_reader *frames = frame_reader_make(&input, FORM_ANY);
    for (uint64_t line = 1; line <= HEAD_LINES && head.size > 0 && !times.certain; line++) {
        struct frame frame;
        struct decode_fault fault;
        enum frame_step step =
            frame_read(frames, text_take_line(&head), line, &arena, &frame, &fault);
        for (; step != FRAME_END; step = frame_next(frames, &arena, &frame, &fault))
            if (step == FRAME_LINE)
                note_time(&times, &frame);
        arena_reset(&arena);
    }
    frame_reader_free(frames);
    arena_release(&arena);
    return times;
}

bool log_is_local(struct slice head) {
    struct head_times times = times_of(head);
    return times.local && !times.certain;
}

bool log_lacks_year(struct slice head) {
    enum { LOOKED_AT = 64 << 10 };
    struct slice front = {head.data, head.size < LOOKED_AT ? head.size : LOOKED_AT};
    if (year_newest(front, 0) != 0)
        return false;
    struct head_times times = times_of(front);
    return times.yearless && !times.dated;
}

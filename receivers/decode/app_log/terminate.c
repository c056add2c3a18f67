// SPDX-License-Identifier: Apache-2.0
// What the exception says may have several lines; of those that follow it, the ones that PyTorch is
// known to write are taken. Linear in the text.
#include "receivers/decode/app_log/terminate.h"

#include "base/text/cut.h"
#include "receivers/decode/line/reading.h"

#define AFTER "terminate called after throwing an instance of '"

static bool is_what(struct slice message) {
    words_skip_rank(&message);
    text_skip_blanks(&message);
    return text_begins(message, SLICE("what():"));
}

static bool is_terminate(struct slice message) {
    words_skip_rank(&message);
    return text_begins(message, SLICE("terminate called"));
}

// Further lines of what an exception of PyTorch says.
static bool is_more_of_it(struct slice message) {
    static const struct slice words[] = {
        {"nccl", 4},
        {"Last error:", 11},
        {"NET/", 4},
        {"Cuda failure", 12},
        {"socketProgress", 14},
        {"CUDA kernel errors might", 24},
        {"For debugging consider", 22},
        {"Compile with `TORCH_USE_CUDA_DSA`", 33},
        {"Exception raised from", 21},
        {"frame #", 7},
    };
    words_skip_rank(&message);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text_begins(message, words[i]))
            return true;
    return false;
}

static enum block_step more(struct slice so_far, uint32_t count, const struct frame *frame,
                            struct slice message) {
    (void)so_far;
    (void)frame;
    // Of another process whose lines cannot be told from these.
    if (is_terminate(message))
        return BLOCK_PASS;
    if (count == 1)
        return is_what(message) ? BLOCK_TAKE : BLOCK_OVER;
    return is_more_of_it(message) ? BLOCK_TAKE : BLOCK_OVER;
}

static enum read_result finish(struct slice text, bool cut, const struct frame *frame,
                               struct reading *reading) {
    struct slice lines = text, type, what;
    struct slice first = text_take_line(&lines);
    reading_begin(reading, OBSERVATION_ABORT);
    reading->rank = words_rank(text_until(first, ' '));
    if (text_find(first, SLICE(AFTER), &type) && text_until(type, '\'').size < type.size)
        reading_text(reading, FACT_EXCEPTION, text_until(type, '\''));
    if (text_find(lines, SLICE("what():"), &what) && text_trim(what).size > 0) {
        reading_text(reading, FACT_MESSAGE, text_trim(text_until(text_trim(what), '\n')));
        words_blame(frame->forms, what, reading);
    } else if (cut) {
        reading_yes_no(reading, FACT_TRUNCATED, true);
    }
    return READ_EVENT;
}

static const struct line_reader TERMINATE = {
    .name = "terminate", .unmarked = true, .more = more, .finish = finish};

enum read_result terminate_read(const struct frame *frame, struct slice message,
                                struct reading *reading) {
    if (is_what(message))
        return READ_OTHER; // the exception's words, parted from its first line
    if (!is_terminate(message))
        return READ_NOT;
    struct slice rest = message;
    words_skip_rank(&rest);
    if (text_begins(rest, SLICE("terminate called without an active exception")))
        return finish(message, false, frame, reading);
    if (!text_begins(rest, SLICE(AFTER)))
        return READ_OTHER;
    reading->block = &TERMINATE;
    return READ_BEGIN;
}

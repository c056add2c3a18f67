// SPDX-License-Identifier: Apache-2.0
// The lines that two parsers know become EVENT_KERNEL. "Fallen off the bus" comes in three lines,
// of which the first names the GPU: they are gathered. O(line).
#include "receivers/decode/kernel_log/nvidia.h"

#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/event.h"
#include "receivers/decode/kernel_log/aer.h"
#include "receivers/decode/kernel_log/words.h"
#include "receivers/decode/kernel_log/xid.h"

#include <assert.h>

enum read_result nvidia_give(const struct kernel_line *line, struct slice text,
                             const struct frame *frame, struct reading *reading) {
    struct kernel_line *payload = arena_take(reading->arena, sizeof *payload);
    *payload = *line;
    payload->text = text;
    payload->boot_us = frame->boot_us;
    reading->kind = EVENT_KERNEL;
    reading->kernel = payload;
    reading->needs_time = true;
    return READ_EVENT;
}

struct slice nvidia_own_text(struct slice text, struct arena *arena) {
    struct slice clean = reading_clean(text, arena);
    return clean.data == text.data ? arena_copy(arena, text) : clean;
}

static enum read_result read_nvidia(const struct frame *frame, struct slice message,
                                    struct reading *reading) {
    struct kernel_line line = KERNEL_LINE_EMPTY;
    message = words_front(message);
    switch (kernel_xid_parse(message, &line)) {
    case KERNEL_XID_NONE:
        return READ_NOT;
    case KERNEL_XID_FIRST:
        return READ_BEGIN;
    case KERNEL_XID_LAST:
    case KERNEL_XID_DETAIL:
        return READ_OTHER;
    case KERNEL_XID_CUT:
        return reading_refuse(reading, DECODE_TRUNCATED,
                              "the line ends before the address or the number of the error");
    case KERNEL_XID_LINE:
        break;
    }
    struct slice text = nvidia_own_text(message, reading->arena);
    line = KERNEL_LINE_EMPTY;
    if (kernel_xid_parse(text, &line) != KERNEL_XID_LINE)
        return READ_OTHER;
    return nvidia_give(&line, text, frame, reading);
}

// "(PCI ID: …) installed in this system has", then "fallen off the bus …". Other words behind
// "installed in this" are of a card that the driver does not take.
static enum block_step more_of_lost(struct slice so_far, uint32_t count, const struct frame *frame,
                                    struct slice message) {
    struct slice said, behind;
    (void)so_far;
    (void)frame;
    if (!text_find(words_front(message), SLICE("NVRM: "), &said))
        return BLOCK_PASS;
    if (text_begins(said, SLICE("The NVIDIA GPU ")))
        return BLOCK_OVER;
    if (count == 1 && text_find(said, SLICE("installed in this"), &behind))
        return words_ends(text_trim(said), SLICE(" has")) ? BLOCK_TAKE : BLOCK_LAST;
    if (text_begins(said, SLICE("fallen off the bus")))
        return BLOCK_LAST;
    return BLOCK_PASS;
}

static enum read_result finish_lost(struct slice text, bool cut, const struct frame *frame,
                                    struct reading *reading) {
    struct slice rest = nvidia_own_text(text, reading->arena), said;
    struct kernel_line line = KERNEL_LINE_EMPTY, last = KERNEL_LINE_EMPTY;
    struct slice first = text_take_line(&rest);
    if (kernel_xid_parse(first, &line) != KERNEL_XID_FIRST)
        return READ_OTHER;
    while (rest.size > 0) {
        said = text_take_line(&rest);
        if (kernel_xid_parse(said, &last) == KERNEL_XID_LAST) {
            last.address = line.address;
            return nvidia_give(&last, said, frame, reading);
        }
    }
    if (cut)
        return reading_refuse(reading, DECODE_TRUNCATED,
                              "the log ends inside what NVIDIA's driver says of a GPU");
    return READ_OTHER;
}

const struct line_reader READER_NVIDIA = {
    .name = "nvidia", .read = read_nvidia, .more = more_of_lost, .finish = finish_lost};

static enum read_result read_aer(const struct frame *frame, struct slice message,
                                 struct reading *reading) {
    struct kernel_line line = KERNEL_LINE_EMPTY;
    if (!kernel_aer_parse(message, &line))
        return READ_NOT;
    struct slice text = nvidia_own_text(message, reading->arena);
    line = KERNEL_LINE_EMPTY;
    if (!kernel_aer_parse(text, &line))
        return READ_OTHER;
    return nvidia_give(&line, text, frame, reading);
}

const struct line_reader READER_AER = {.name = "aer", .read = read_aer};

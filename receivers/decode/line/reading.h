// SPDX-License-Identifier: Apache-2.0
// What a reader made of a message: a kind and facts, on the way to becoming an event.
//
//     reading_begin(reading, OBSERVATION_SEGFAULT);
//     reading_number(reading, FACT_PID, pid);
//     reading_text(reading, FACT_LIBRARY, library);
//     return READ_EVENT;
//
// Texts may point into the message: they are copied, cleaned of bytes that are no UTF-8, when the
// event is made. A fact that is set twice has its last value. More than READING_FACTS_MAX are a
// fault of the reader.
#pragma once

#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/line/frame.h"

#include <string.h>

enum { READING_FACTS_MAX = 28 };

struct line_reader;

enum read_result {
    READ_NOT,     // not this reader's
    READ_EVENT,   // `reading` holds it
    READ_BEGIN,   // it begins a block of lines (line_reader.more)
    READ_OTHER,   // recognised, and of no interest: no other reader is asked
    READ_REFUSED, // it looks like one and is not whole: `refusal` and `detail` say why
};

struct reading {
    struct arena *arena;
    // An observation, or the payload of another kind (in the arena).
    enum event_kind kind;
    enum observation_kind what;
    const struct kernel_line *kernel;
    const struct app_line *line;
    // Instead of the frame's, where the message itself says it.
    uint64_t time_ns; // 0: the frame's
    uint64_t slack_ns;
    struct slice host; // data NULL: the frame's
    int32_t rank;      // RANK_NONE: the frame's
    bool no_rank;      // the frame's rank is not that of whom the message is about
    bool no_host;      // … nor its host, nor the input's node
    bool local_time;   // time_ns was written without a zone: it is of the input's
    bool just_now;     // … and shortly before the line was written
    bool needs_time;   // refused where no time is known; else it gets that of the input
    // What is left of the message and is to be read once more (two reports on one line); shorter
    // than the message. Empty: nothing.
    struct slice rest;
    const struct line_reader *block; // READ_BEGIN: who gathers it; NULL: the reader itself
    enum decode_category refusal;    // READ_REFUSED
    const char *detail;              // static; a clause for people
    uint32_t fact_count;
    struct fact facts[READING_FACTS_MAX];
};

// Nothing was read. Facts beyond their count are not looked at, and not cleared: each reader that
// is asked about a line begins with this.
static inline void reading_clear(struct reading *reading) {
    struct arena *arena = reading->arena;
    memset(reading, 0, offsetof(struct reading, facts));
    reading->arena = arena;
    reading->rank = RANK_NONE;
}

void reading_begin(struct reading *reading, enum observation_kind what);
void reading_number(struct reading *reading, enum fact_key key, int64_t number);
void reading_text(struct reading *reading, enum fact_key key, struct slice text);
void reading_yes_no(struct reading *reading, enum fact_key key, bool yes);
void reading_address(struct reading *reading, enum fact_key key, pci_address address);
enum read_result reading_refuse(struct reading *reading, enum decode_category refusal,
                                const char *detail);

// Adds what the frame says of who wrote it, where the reader has not said otherwise: of an
// observation that is about its writer.
void reading_place(struct reading *reading, const struct frame *frame);
// Makes the event: time, node, rank and payload. DECODE_OK, or why it is refused.
enum decode_category reading_finish(struct reading *reading, const struct frame *frame,
                                    const struct decoder_input *input, struct slice text,
                                    struct event *event, struct decode_fault *fault);
// The text itself when it is UTF-8, else a copy with a question mark for each byte that is not.
struct slice reading_clean(struct slice text, struct arena *arena);

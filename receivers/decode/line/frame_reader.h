// SPDX-License-Identifier: Apache-2.0
// From lines to frames.
#pragma once

#include "receivers/decode/line/frame.h"

enum frame_step {
    FRAME_LINE,    // `frame` is filled
    FRAME_HELD,    // a part: wait for the rest
    FRAME_NOTHING, // no message in it, and nothing to wait for
    FRAME_REFUSED, // `fault` says why
    FRAME_END,     // frame_next has nothing more
};

struct frame_reader;

// Whether lines say all by themselves, and none is read with those before it: not in records of
// several lines, nor while parts are held.
bool frame_is_of_lines(const struct frame_reader *reader);
// Whether the object is one of those of which the log is full: its first key, and the keys by which
// a row of envelopes knew lines before it. O(line), without parsing it.
bool frame_knows_object(const struct frame_reader *reader, struct slice line);
// Whether it is still to be seen what numbers in front of lines are ("12: ").
bool frame_learns_labels(const struct frame_reader *reader);
// `reader` knows of the log what `other` does, and holds nothing; both are of the same source.
void frame_reader_follow(struct frame_reader *reader, const struct frame_reader *other);

// Memory of one source; freed with frame_reader_free. `input` as in decoder_type.begin.
struct frame_reader *frame_reader_make(const struct decoder_input *input, enum frame_form form);
void frame_reader_free(struct frame_reader *reader); // NULL is fine
// One physical line. Slices point into `line`, `arena` or the reader, until the next call.
enum frame_step frame_read(struct frame_reader *reader, struct slice line, uint64_t position,
                           struct arena *arena, struct frame *frame, struct decode_fault *fault);
// The line that is read next breaks off: the input ended in it. What it is part of is `truncated`.
void frame_cut(struct frame_reader *reader);
// Lines that say no year may be as new as this, Unix.
void frame_reader_written(struct frame_reader *reader, uint64_t written_ns);
// What frame_read did not give: frames of lines that were held, further lines of one record, the
// line itself when it ended what was held. To be called after each frame_read until FRAME_END, with
// its arena. `frame` tells position and lines (0 for further lines of a record) of FRAME_NOTHING
// and FRAME_REFUSED, too.
enum frame_step frame_next(struct frame_reader *reader, struct arena *arena, struct frame *frame,
                           struct decode_fault *fault);
// Whether parts are held. After frame_finish frame_next gives them, too; what breaks off is
// `truncated`.
bool frame_holds(const struct frame_reader *reader);
void frame_finish(struct frame_reader *reader);

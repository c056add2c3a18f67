// SPDX-License-Identifier: Apache-2.0
// The decoder of logs: lines of kernel logs, of training processes, of their launchers, in any
// order and behind any prefix (frame.h). Each message is offered to the readers of its kind; what
// none knows is DECODE_NOTHING. Reports of several lines are held until they are whole.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/line/frame.h"

extern const struct decoder_type decoder_log;        // lines of any log
extern const struct decoder_type decoder_kernel_log; // all of it is a kernel log
extern const struct decoder_type decoder_app_log;    // all of it was written by programs

// Whether one of the first lines of a log says the name of the machine on which it was written; an
// address is none.
bool log_names_host(struct slice head);

// For decoders of records that may be log lines: the same, with memory that is made when the first
// such line comes. LOG_STATE_SIZE zeroed bytes; log_begin first.
enum { LOG_STATE_SIZE = 1344 };
void log_begin(void *state, const struct decoder_input *input, enum frame_form form);
enum decode_category log_decode(void *state, struct slice record, struct arena *arena,
                                struct event *event, struct decode_fault *fault);
// A message whose circumstances are known (a tagged line). `lines`: it is several lines of one
// report; else it is parted where the kernel, or a program, wrote several at once.
enum decode_category log_decode_message(void *state, const struct frame *frame, bool lines,
                                        struct arena *arena, struct event *event,
                                        struct decode_fault *fault);
// Another record comes, which may be no line: nothing of the one before it is to be given any more.
void log_new_record(void *state);
enum decode_category log_next(void *state, struct arena *arena, struct event *event,
                              struct decode_fault *fault);
bool log_holds(const void *state);
void log_finish(void *state);
// `objects`: lines that are objects may be something else than lines of a log.
void log_pass_over(void *state, struct slice text, bool objects, const struct found_lines *found,
                   struct line_run runs[LINE_RUNS]);
void log_cut(void *state);
void log_written(void *state, uint64_t written_ns);
void log_release(void *state);

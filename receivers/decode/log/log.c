// SPDX-License-Identifier: Apache-2.0
// A line is peeled, offered to the open blocks of its writer, then to the readers in turn. What it
// gives beyond one event waits in the state and is given by log_next: the rest of a line with two
// reports, blocks that it ended. O(line) for each reader; nothing is kept of lines of no interest.
#include "receivers/decode/log/log.h"

#include "base/hash/hash.h"
#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/line/before.h"
#include "receivers/decode/line/frame_reader.h"
#include "receivers/decode/line/gather.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/line/two_clocks.h"
#include "receivers/decode/log/counters.h"
#include "receivers/decode/log/readers.h"
#include "receivers/decode/log/search.h"
#include "receivers/decode/tagged/line.h"

#include <assert.h>

enum {
    REPEATS = 64, // how many events are remembered to tell copies
    MICROSECOND_NS = 1000,
    SECOND_NS = 1000000000,
    READ_FIRST = 256, // lines that are read one by one: they show how the log is written
    TO_BE_READ = 64,  // … so many at a time, where lines belong together
    RESTS_MAX = 16    // reports that one line may hold; each is looked for in what is left of it
};

struct log_state {
    struct decoder_input input;
    enum frame_form form;
    struct frame_reader *frames;
    struct gather *gather;
    struct before *before;
    struct counters *counters;
    bool finishing;
    bool is_tagged;     // the line at hand came with a time of its own, and as often as it happened
    struct frame frame; // of the line at hand
    struct slice rest;  // of its message, still to be read
    uint32_t rests;     // how often it was read
    struct slice more;  // of a tagged line: lines behind the one at hand
    uint64_t repeats[REPEATS];
    uint32_t repeat_at;
    uint64_t dated_ns; // of the last line that has a time
    struct two_clocks clocks;
    // Lines that are judged before they are read, or instead.
    struct search search;
    uint32_t read; // lines that were read, up to READ_FIRST
    struct frame_reader *judge;
    struct arena judged;
};
_Static_assert(sizeof(struct log_state) <= LOG_STATE_SIZE, "log.h says how much");

void log_begin(void *memory, const struct decoder_input *input, enum frame_form form) {
    struct log_state *state = memory;
    assert(state->frames == NULL);
    state->input = *input;
    state->input.tail = (struct slice){NULL, 0};
    state->form = form;
    // What the last bytes tell is asked now: they do not stay.
    if (input->tail.size > 0)
        state->frames = frame_reader_make(input, form);
}

void log_release(void *memory) {
    struct log_state *state = memory;
    frame_reader_free(state->frames);
    gather_free(state->gather);
    before_free(state->before);
    frame_reader_free(state->judge);
    if (state->judge != NULL)
        arena_release(&state->judged);
    state->judge = NULL;
    counters_free(state->counters);
    state->counters = NULL;
    state->frames = NULL;
    state->gather = NULL;
    state->before = NULL;
}

// -- one message --------------------------------------------------------------------------------

static enum read_result ask(const struct line_reader *const *readers, const struct frame *frame,
                            struct slice message, struct reading *reading,
                            const struct line_reader **reader) {
    for (size_t i = 0; readers[i] != NULL; i++) {
        reading_clear(reading);
        enum read_result result = readers[i]->read(frame, message, reading);
        *reader = reading->block != NULL ? reading->block : readers[i];
        if (result != READ_NOT)
            return result;
    }
    return READ_NOT;
}

static enum read_result read_message(const struct log_state *state, const struct frame *frame,
                                     struct slice message, struct reading *reading,
                                     const struct line_reader **reader) {
    enum read_result result = READ_NOT;
    if (frame->origin != ORIGIN_KERNEL && state->form != FORM_KERNEL)
        result = ask(PROGRAM_READERS, frame, message, reading, reader);
    if (result == READ_NOT && frame->origin != ORIGIN_PROGRAM && state->form != FORM_PROGRAM)
        result = ask(KERNEL_READERS, frame, message, reading, reader);
    // A syslog that is read as a kernel log holds lines of programs that speak of the node.
    if (result == READ_NOT && state->form == FORM_KERNEL)
        result = ask(NODE_READERS, frame, message, reading, reader);
    return result;
}

static uint64_t hash_line(const struct frame *frame, struct slice message) {
    uint64_t hash = hash_words(message.data, message.size);
    hash = hash_more(hash, (const char *)&frame->time_ns, sizeof frame->time_ns);
    hash = hash_more(hash, (const char *)&frame->key, sizeof frame->key);
    return frame->host.data != NULL ? hash_more(hash, frame->host.data, frame->host.size) : hash;
}

// Whether it was there before; else it is noted.
static bool is_noted(struct log_state *state, uint64_t hash) {
    for (uint32_t i = 0; i < REPEATS; i++)
        if (state->repeats[i] == hash)
            return true;
    state->repeats[state->repeat_at++ % REPEATS] = hash;
    return false;
}

// The same words of the same host at the same time: a copy (the console, kern.log and messages all
// get one).
static bool is_repeat(struct log_state *state, const struct frame *frame, struct slice message) {
    return frame->time_ns != 0 && !state->is_tagged && is_noted(state, hash_line(frame, message));
}

// A service tells of a link each time that it goes down or up, and where times have whole seconds
// it does so several times in one: those are no copies.
static bool counts_each(const struct reading *reading, const struct frame *frame) {
    return reading->kind == EVENT_OBSERVATION && reading->what == OBSERVATION_NIC_LINK &&
           frame->origin == ORIGIN_PROGRAM && frame->time_ns != 0 &&
           frame->time_ns % SECOND_NS == 0;
}

// The second of these lines lies a microsecond behind the first, and so on.
static void set_apart(struct log_state *state, struct frame *frame, struct slice message) {
    uint64_t hash = hash_line(frame, message);
    for (uint32_t i = 0; i < REPEATS / 2 && is_noted(state, hash + i); i++)
        frame->time_ns += MICROSECOND_NS;
}

static enum decode_category refuse(const struct reading *reading, struct decode_fault *fault) {
    return fault_set(fault, reading->refusal, SLICE(""), "%s", reading->detail);
}

static int64_t number_read(const struct reading *reading, enum fact_key key) {
    for (uint32_t i = 0; i < reading->fact_count; i++)
        if (reading->facts[i].key == key)
            return reading->facts[i].number;
    return -1;
}

// A launcher tells of an end by a code alone: what the rank wrote last goes with it.
static void add_last_line(const struct log_state *state, const struct frame *frame,
                          struct reading *reading) {
    bool is_task = reading->what == OBSERVATION_SLURM_TASK_EXIT;
    if (reading->kind != EVENT_OBSERVATION || state->counters == NULL ||
        (reading->what != OBSERVATION_LAUNCHER_FAILED && !is_task) ||
        number_read(reading, FACT_EXIT_CODE) <= 0)
        return;
    int64_t rank = is_task ? number_read(reading, FACT_TASK) : reading->rank;
    struct slice last = {NULL, 0};
    if (rank >= 0 && rank <= INT32_MAX)
        last = counters_last(state->counters, (int32_t)rank, frame->position);
    if (last.data != NULL)
        reading_text(reading, FACT_LAST_MESSAGE, last);
}

// What a reading became: the event, a refusal, or nothing.
static enum decode_category give(struct log_state *state, enum read_result result,
                                 struct reading *reading, const struct frame *frame,
                                 struct slice text, struct event *event,
                                 struct decode_fault *fault) {
    switch (result) {
    case READ_EVENT:
        if (frame->origin != ORIGIN_KERNEL)
            reading_place(reading, frame);
        add_last_line(state, frame, reading);
        if (reading_finish(reading, frame, &state->input, text, event, fault) != DECODE_OK)
            return fault->category;
        if (event->job == STRING_NONE)
            event->job = frame->job;
        return DECODE_OK;
    case READ_REFUSED:
        return refuse(reading, fault);
    case READ_NOT:
    case READ_BEGIN:
    case READ_OTHER:
        break;
    }
    return DECODE_NOTHING;
}

// What nobody wants may count; whatever is told is a moment at which it matters who counted how
// far. Only of files that end: what counters keep of lines in front of a position would be lost
// with a process that is killed.
static void note_progress(struct log_state *state, enum read_result result,
                          const struct reading *reading, const struct frame *frame) {
    bool counts = state->input.is_file && state->input.ends && state->form != FORM_KERNEL;
    bool is_line =
        counts && result == READ_NOT && state->rests == 1 && frame->origin != ORIGIN_KERNEL;
    bool is_fault = result == READ_BEGIN ||
                    (result == READ_EVENT &&
                     (reading->kind != EVENT_OBSERVATION || reading->what != OBSERVATION_PROGRESS));
    if (state->counters == NULL && is_line)
        state->counters = counters_make();
    if (is_line)
        counters_note(state->counters, frame);
    else if (is_fault && state->counters != NULL)
        counters_mark(state->counters);
}

// Reads what is left of the line at hand.
static enum decode_category read_rest(struct log_state *state, struct arena *arena,
                                      struct event *event, struct decode_fault *fault) {
    struct reading reading = {.arena = arena};
    const struct line_reader *reader = NULL;
    struct frame *frame = &state->frame;
    struct slice message = state->rest;
    if (++state->rests > RESTS_MAX) {
        state->rest.size = 0;
        return DECODE_NOTHING;
    }
    enum read_result result = read_message(state, frame, message, &reading, &reader);
    state->rest = reading.rest;
    assert(state->rest.size == 0 || state->rest.size < message.size);
    note_progress(state, result, &reading, frame);
    if (result == READ_BEGIN) {
        if (state->gather == NULL)
            state->gather = gather_make();
        frame->message = message;
        gather_begin(state->gather, reader, frame);
        state->rest = (struct slice){NULL, 0};
        return DECODE_HELD;
    }
    if (result == READ_EVENT && counts_each(&reading, frame))
        set_apart(state, frame, message);
    else if (result == READ_EVENT && is_repeat(state, frame, message))
        result = READ_OTHER;
    return give(state, result, &reading, frame, message, event, fault);
}

// A line without a time lies behind the last one that has one. What is followed as it is written
// needs that not: then the file's own time says more, and after a crash the line before is not
// known.
static void note_order(struct log_state *state, struct frame *frame) {
    if (frame->time_ns != 0)
        state->dated_ns = frame->time_ns;
    frame->after_ns = state->input.is_file && state->input.ends ? state->dated_ns : 0;
}

static enum decode_category take_line(struct log_state *state, struct arena *arena,
                                      struct event *event, struct decode_fault *fault) {
    struct frame *frame = &state->frame;
    event->position = frame->position;
    event->lines = frame->lines;
    event->time_ns = frame->time_ns;
    note_order(state, frame);
    if (!state->is_tagged) // those are of many places, and in any order
        two_clocks_note(&state->clocks, frame);
    if (state->before == NULL)
        state->before = before_make();
    frame->before = before_swap(state->before, frame->key, frame->message);
    if (state->gather != NULL && gather_takes(state->gather, frame))
        return DECODE_HELD;
    if (frame->message.size == 0)
        return DECODE_NOTHING;
    state->rest = frame->message;
    state->rests = 0;
    return read_rest(state, arena, event, fault);
}

// What is forwarded of a tagged line where it is not the record as it came: a part of it, or a
// report that several records made up. The record itself otherwise.
static struct slice tagged_raw(const struct frame *frame, struct slice text, bool lines,
                               struct arena *arena) {
    enum { AROUND = 4096, ESCAPED = 6 };
    struct buffer out;
    buffer_init(&out, AROUND + ESCAPED * (text.size + frame->host.size + frame->pod.size +
                                          frame->namespace.size + frame->program.size));
    struct tagged_line line = {.kernel = frame->origin == ORIGIN_KERNEL,
                               .time_ns = frame->time_ns,
                               .rank = frame->rank,
                               .node = frame->host,
                               .pod = frame->pod,
                               .namespace = frame->namespace,
                               .program = frame->program,
                               .message = text,
                               .lines = lines};
    tagged_line_append(&line, &out);
    assert(!out.failed);
    struct slice raw = arena_copy(arena, buffer_slice(&out));
    buffer_release(&out);
    return raw;
}

static struct slice raw_of_block(const struct log_state *state, const struct frame *frame,
                                 struct slice text, struct arena *arena) {
    return state->is_tagged && frame->time_ns > 0 && frame->time_ns <= INT64_MAX
               ? tagged_raw(frame, text, true, arena)
               : arena_copy(arena, text);
}

// Takes the first of the lines that are left.
static enum decode_category take_more(struct log_state *state, struct arena *arena,
                                      struct event *event, struct decode_fault *fault) {
    struct frame *frame = &state->frame;
    frame->message = text_until(state->more, '\n');
    bool last = frame->message.size == state->more.size;
    state->more = last ? (struct slice){NULL, 0} : text_from(state->more, frame->message.size + 1);
    if (frame->time_ns <= INT64_MAX)
        event->raw = tagged_raw(frame, frame->message, false, arena);
    enum decode_category category = take_line(state, arena, event, fault);
    frame->lines = 0;
    return category;
}

// Of the kernel's text only lines that begin alike are parted: names of processes may hold
// anything.
static bool has_lines(const struct frame *frame) {
    struct slice first = text_until(frame->message, '\n');
    if (first.size == frame->message.size)
        return false;
    struct slice rest = text_from(frame->message, first.size + 1);
    struct slice tag = text_until(first, ' ');
    return frame->origin != ORIGIN_KERNEL ||
           (tag.size > 0 && tag.data[tag.size - 1] == ':' && text_begins(rest, tag));
}

enum decode_category log_decode_message(void *memory, const struct frame *frame, bool lines,
                                        struct arena *arena, struct event *event,
                                        struct decode_fault *fault) {
    struct log_state *state = memory;
    state->frame = *frame;
    state->frame.carried = frame->time_ns != 0;
    state->frame.forms = state->input.forms;
    state->is_tagged = true;
    state->more = (struct slice){NULL, 0};
    if (!lines && !has_lines(frame))
        return take_line(state, arena, event, fault);
    state->more = frame->message;
    return take_more(state, arena, event, fault);
}

void log_new_record(void *memory) {
    struct log_state *state = memory;
    state->rest = state->more = (struct slice){NULL, 0};
}

// Whoever passed the line on knew when it was written, and by which rank: from its options, its
// input's name, the lines around it.
static void complete_frame(struct frame *frame, const struct forwarded *forwarded) {
    if (forwarded->time_ns != 0) {
        frame->time_ns = forwarded->time_ns;
        frame->time_fault = DECODE_OK;
        frame->local_time = frame->carried = false;
    }
    if (frame->rank == RANK_NONE)
        frame->rank = forwarded->rank;
}

// What became of a line, or of lines that were held.
static enum decode_category take_frame(struct log_state *state, enum frame_step step,
                                       struct arena *arena, struct event *event,
                                       struct decode_fault *fault) {
    if (step == FRAME_HELD)
        return DECODE_HELD;
    if (step == FRAME_END)
        return DECODE_END;
    event->position = state->frame.position;
    event->lines = state->frame.lines;
    event->time_ns = state->frame.time_ns;
    if (state->frame.raw.data != NULL)
        event->raw = state->frame.raw;
    if (step == FRAME_REFUSED)
        return fault->category;
    if (state->input.forwarded != NULL)
        complete_frame(&state->frame, state->input.forwarded);
    return step == FRAME_LINE ? take_line(state, arena, event, fault) : DECODE_NOTHING;
}

enum decode_category log_decode(void *memory, struct slice record, struct arena *arena,
                                struct event *event, struct decode_fault *fault) {
    struct log_state *state = memory;
    if (state->frames == NULL)
        state->frames = frame_reader_make(&state->input, state->form);
    state->rest = (struct slice){NULL, 0};
    state->is_tagged = false;
    state->read += state->read < READ_FIRST;
    enum frame_step step =
        frame_read(state->frames, record, event->position, arena, &state->frame, fault);
    assert(step != FRAME_END);
    return take_frame(state, step, arena, event, fault);
}

// -- what else there is -------------------------------------------------------------------------

// The next part of a block that gives several readings.
static enum decode_category next_of_block(struct log_state *state, const struct gathered *block,
                                          struct reading *reading, struct event *event,
                                          struct decode_fault *fault) {
    size_t from = block->walk->at;
    struct arena *arena = reading->arena;
    enum read_result result =
        block->reader->next(block->text, block->walk, block->cut, &block->frame, reading);
    assert(block->walk->at > from && block->walk->at <= block->text.size);
    struct slice text = {block->text.data + from, block->walk->at - from};
    struct slice own = arena_copy(arena, text_trim(text));
    event->raw = raw_of_block(state, &block->frame, own, arena);
    gather_read(state->gather, &event->position, &event->lines);
    return give(state, result, reading, &block->frame, own, event, fault);
}

static enum decode_category next_block(struct log_state *state, struct arena *arena,
                                       struct event *event, struct decode_fault *fault) {
    struct gathered block;
    if (state->gather == NULL || !gather_take(state->gather, &block))
        return DECODE_END;
    struct reading reading = {.arena = arena, .rank = RANK_NONE};
    if (block.reader->next != NULL)
        return next_of_block(state, &block, &reading, event, fault);
    enum read_result result = block.reader->finish(block.text, block.cut, &block.frame, &reading);
    event->position = block.frame.position;
    event->lines = block.lines;
    event->raw = raw_of_block(state, &block.frame, block.text, arena);
    if (result == READ_EVENT && is_repeat(state, &block.frame, block.text))
        result = READ_OTHER;
    return give(state, result, &reading, &block.frame, block.text, event, fault);
}

static void put_progress(struct reading *reading, const struct counted *counted) {
    const struct progress *progress = &counted->progress;
    reading_clear(reading);
    reading_begin(reading, OBSERVATION_PROGRESS);
    reading_text(reading, FACT_STATE, SLICE("counting"));
    reading_number(reading, FACT_COUNT, counted->rises);
    if (counted->anew)
        reading_number(reading, FACT_RESTARTS, 1);
    if (progress->step >= 0)
        reading_number(reading, FACT_ITERATION, progress->step);
    if (progress->total >= 0)
        reading_number(reading, FACT_TOTAL, progress->total);
    if (progress->epoch[0] != '\0')
        reading_text(reading, FACT_EPOCH, slice_of(progress->epoch));
    if (progress->of_epoch)
        reading_text(reading, FACT_SCOPE, SLICE("epoch"));
}

static enum decode_category next_progress(struct log_state *state, struct arena *arena,
                                          struct event *event, struct decode_fault *fault) {
    struct counted counted;
    struct reading reading = {.arena = arena};
    if (!counters_take(state->counters, &counted))
        return DECODE_END;
    put_progress(&reading, &counted);
    event->position = counted.frame.position;
    event->lines = 0; // it was counted when it came
    event->raw = raw_of_block(state, &counted.frame, counted.text, arena);
    enum decode_category category =
        give(state, READ_EVENT, &reading, &counted.frame, counted.text, event, fault);
    return category == DECODE_OK ? DECODE_BESIDE : category;
}

// What was found besides the line at hand.
static enum decode_category next_found(struct log_state *state, struct arena *arena,
                                       struct event *event, struct decode_fault *fault) {
    enum decode_category category = next_progress(state, arena, event, fault);
    return category == DECODE_END ? next_block(state, arena, event, fault) : category;
}

enum decode_category log_next(void *memory, struct arena *arena, struct event *event,
                              struct decode_fault *fault) {
    struct log_state *state = memory;
    while (state->rest.size > 0) {
        event->position = state->frame.position;
        event->lines = 0;
        enum decode_category category = read_rest(state, arena, event, fault);
        if (category == DECODE_OK)
            return category;
    }
    enum decode_category category = next_found(state, arena, event, fault);
    if (category != DECODE_END)
        return category;
    if (state->more.size > 0)
        return take_more(state, arena, event, fault);
    enum frame_step step =
        state->frames == NULL ? FRAME_END : frame_next(state->frames, arena, &state->frame, fault);
    if (step != FRAME_END || !state->finishing)
        return take_frame(state, step, arena, event, fault);
    state->finishing = false;
    if (state->gather != NULL)
        gather_finish(state->gather);
    if (state->counters != NULL)
        counters_finish(state->counters);
    return next_found(state, arena, event, fault);
}

bool log_holds(const void *memory) {
    const struct log_state *state = memory;
    return counters_hold(state->counters) || gather_holds(state->gather) ||
           (state->frames != NULL && frame_holds(state->frames));
}

void log_finish(void *memory) {
    struct log_state *state = memory;
    state->finishing = true;
    if (state->frames != NULL)
        frame_finish(state->frames);
}

void log_cut(void *memory) {
    struct log_state *state = memory;
    if (state->frames == NULL)
        state->frames = frame_reader_make(&state->input, state->form);
    frame_cut(state->frames);
}

void log_written(void *memory, uint64_t written_ns) {
    struct log_state *state = memory;
    if (written_ns <= state->input.observed_ns)
        return;
    state->input.observed_ns = written_ns;
    if (state->frames != NULL)
        frame_reader_written(state->frames, written_ns);
}

// -- searching ----------------------------------------------------------------------------------

static void begin_judging(struct log_state *state) {
    enum { ARENA_BLOCK = 64 << 10 };
    if (state->judge == NULL) {
        state->judge = frame_reader_make(&state->input, state->form);
        arena_init(&state->judged, ARENA_BLOCK);
    }
    arena_reset(&state->judged);
    frame_reader_follow(state->judge, state->frames);
}

static bool is_read(const struct log_state *state, const struct frame *frame, struct arena *arena) {
    struct reading reading = {.arena = arena};
    const struct line_reader *reader = NULL;
    enum read_result result = READ_NOT;
    if (frame->message.size > 0)
        result = read_message(state, frame, frame->message, &reading, &reader);
    return result == READ_EVENT || result == READ_BEGIN || result == READ_REFUSED;
}

static bool is_of_interest(void *context, struct slice line) {
    struct log_state *state = context;
    struct frame frame;
    struct decode_fault fault;
    begin_judging(state);
    enum frame_step step = frame_read(state->judge, line, 1, &state->judged, &frame, &fault);
    for (; step != FRAME_END; step = frame_next(state->judge, &state->judged, &frame, &fault))
        if (step == FRAME_HELD || step == FRAME_REFUSED ||
            (step == FRAME_LINE && is_read(state, &frame, &state->judged)))
            return true;
    return !frame_is_of_lines(state->judge);
}

static bool is_carrier(void *context, struct slice line) {
    const struct log_state *state = context;
    return frame_knows_object(state->frames, line);
}

static bool has_time(void *context, struct slice line) {
    struct log_state *state = context;
    struct frame frame;
    struct decode_fault fault;
    begin_judging(state);
    return frame_read(state->judge, line, 1, &state->judged, &frame, &fault) == FRAME_LINE &&
           frame.time_ns != 0;
}

void log_pass_over(void *memory, struct slice text, bool objects, const struct found_lines *found,
                   struct line_run runs[LINE_RUNS]) {
    struct log_state *state = memory;
    bool single = state->frames != NULL && frame_is_of_lines(state->frames);
    memset(runs, 0, LINE_RUNS * sizeof *runs);
    if (!single || state->read < READ_FIRST)
        runs[0].offered = TO_BE_READ;
    else if (gather_holds(state->gather))
        runs[0].offered = 1;
    if (runs[0].offered > 0)
        return;
    const struct forms *forms = state->input.forms;
    const struct search_judge judge = {
        state, objects, frame_learns_labels(state->frames), is_of_interest, is_carrier, has_time};
    search_lines(&state->search, forms == NULL ? forms_builtin() : forms, text, found, &judge,
                 runs);
    if (runs[0].lines + runs[1].lines > 0) {
        before_forget(state->before);
        counters_forget(state->counters);
    }
}

// -- hosts --------------------------------------------------------------------------------------

// Whose address that is others may say.
static bool is_address(struct slice host) {
    size_t digits = 0, dots = 0;
    for (size_t i = 0; i < host.size; i++) {
        if (host.data[i] == ':')
            return true;
        digits += text_is_digit(host.data[i]);
        dots += host.data[i] == '.';
    }
    return dots == 3 && digits + dots == host.size;
}

bool log_names_host(struct slice head) {
    enum { LINES = 64, ARENA_BLOCK = 4096 };
    struct arena arena;
    arena_init(&arena, ARENA_BLOCK);
    struct decoder_input input = {0};
    struct frame_reader *frames = frame_reader_make(&input, FORM_ANY);
    bool named = false;
    uint64_t position = 0;
    while (!named && position < LINES && head.size > 0) {
        struct slice line = text_take_line(&head);
        struct frame frame;
        struct decode_fault fault;
        enum frame_step step = frame_read(frames, line, ++position, &arena, &frame, &fault);
        for (; step != FRAME_END && !named; step = frame_next(frames, &arena, &frame, &fault))
            named = step == FRAME_LINE && frame.host.size > 0 && !is_address(frame.host);
    }
    frame_reader_free(frames);
    arena_release(&arena);
    return named;
}

// -- named formats ------------------------------------------------------------------------------

static void pass_over_log(void *state, struct slice text, const struct found_lines *found,
                          struct line_run runs[LINE_RUNS]) {
    log_pass_over(state, text, false, found, runs);
}

static void begin_any(void *state, const struct decoder_input *input) {
    log_begin(state, input, FORM_ANY);
}

static void begin_kernel(void *state, const struct decoder_input *input) {
    log_begin(state, input, FORM_KERNEL);
}

static void begin_program(void *state, const struct decoder_input *input) {
    log_begin(state, input, FORM_PROGRAM);
}

#define LOG_DECODER(word, begins)                                                                  \
    {                                                                                              \
        .name = (word), .state_size = sizeof(struct log_state), .begin = (begins),                 \
        .decode = log_decode, .next = log_next, .holds = log_holds, .finish = log_finish,          \
        .pass_over = pass_over_log, .cut = log_cut, .written = log_written, .release = log_release \
    }

const struct decoder_type decoder_log = LOG_DECODER("log", begin_any);
const struct decoder_type decoder_kernel_log = LOG_DECODER("kernel_log", begin_kernel);
const struct decoder_type decoder_app_log = LOG_DECODER("app_log", begin_program);

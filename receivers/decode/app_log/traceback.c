// SPDX-License-Identifier: Apache-2.0
// One pass over the lines. Facts about the shapes: CPython, Lib/traceback.py; PyTorch's wrappers:
// torch/_utils.py, torch/multiprocessing/spawn.py, torch/csrc/cuda.
#include "receivers/decode/app_log/traceback.h"

#include "base/text/cut.h"

#include <assert.h>
#include <stdint.h>

static const struct slice HEAD = {"Traceback (most recent call last):", 34};

enum {
    DOTTED_MAX = 256,
    FRONT_MAX = 16 << 10 // what a line says stands in so much of it
};

static struct slice front_of(struct slice line) {
    return line.size > FRONT_MAX ? (struct slice){line.data, FRONT_MAX} : line;
}

static bool begins_any(struct slice text, const struct slice *starts, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (text_begins(text, starts[i]))
            return true;
    return false;
}

static bool ends_with(struct slice text, struct slice end) {
    return text.size >= end.size &&
           memcmp(text.data + text.size - end.size, end.data, end.size) == 0;
}

#define BEGINS_ANY(text, starts) begins_any((text), (starts), sizeof(starts) / sizeof *(starts))

// -- names of exceptions --------------------------------------------------------------------------

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}

static bool is_name_byte(char c) {
    return is_upper(c) || (c >= 'a' && c <= 'z') || text_is_digit(c) || c == '_' || c == '.';
}

// "package.module.Name" at the front; empty: none.
static struct slice dotted_name(struct slice text) {
    size_t size = 0;
    while (size < text.size && size < DOTTED_MAX && is_name_byte(text.data[size]))
        size++;
    struct slice name = {text.data, size};
    bool plain = size > 0 && !text_is_digit(name.data[0]) && name.data[0] != '.' &&
                 name.data[size - 1] != '.' && memmem(name.data, size, "..", 2) == NULL;
    return plain ? name : (struct slice){text.data, 0};
}

static struct slice last_part(struct slice name) {
    const char *dot = memrchr(name.data, '.', name.size);
    return dot == NULL ? name : text_from(name, (size_t)(dot - name.data) + 1);
}

// Names that only an exception has.
static bool is_telling_name(struct slice part) {
    static const struct slice ends[] = {{"Error", 5}, {"Exception", 9}, {"Interrupt", 9}};
    static const struct slice names[] = {{"SystemExit", 10}, {"BrokenBarrier", 13}};
    if (!is_upper(part.data[0]) && part.data[0] != '_')
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (part.size > ends[i].size && ends_with(part, ends[i]))
            return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(part, names[i]))
            return true;
    return slice_equal(part, SLICE("Exception"));
}

// Names that may be one's at the end of a traceback: no word of a language, no level of a log.
static bool is_likely_name(struct slice name, struct slice part) {
    static const struct slice lower[] = {
        {"timeout", 7}, {"error", 5}, {"gaierror", 8}, {"herror", 6}};
    bool dotted = part.size < name.size;
    for (size_t i = 0; dotted && i < sizeof lower / sizeof *lower; i++)
        if (slice_equal(part, lower[i]))
            return true;
    size_t upper = 0;
    for (size_t i = 0; i < part.size; i++)
        upper += is_upper(part.data[i]);
    return is_upper(part.data[0]) && upper < part.size && (dotted || upper >= 2);
}

bool traceback_raised(struct slice line, bool inside, struct raised *raised) {
    line = front_of(line);
    struct slice name = dotted_name(line);
    if (name.size == 0)
        return false;
    struct slice part = last_part(name), rest = text_from(line, name.size);
    bool telling = is_telling_name(part);
    if (!telling && !(inside && is_likely_name(name, part)))
        return false;
    // Ray puts the type of the cause in parentheses.
    if (text_begins(rest, SLICE("("))) {
        struct slice cause = dotted_name(text_from(rest, 1));
        if (cause.size == 0 || rest.size < cause.size + 2 || rest.data[cause.size + 1] != ')')
            return false;
        name.size += cause.size + 2;
        rest = text_from(rest, cause.size + 2);
    }
    struct slice message = text_trim(rest);
    if (message.size > 0 && !text_skip(&rest, SLICE(": ")) && !slice_equal(message, SLICE(":")))
        return false;
    *raised = (struct raised){.type = name, .message = text_trim(rest), .text = line};
    if (slice_equal(raised->message, SLICE(":")))
        raised->message.size = 0;
    return true;
}

// "ValueError('bad shard')" as Python's repr() writes it; `line` begins with the name.
static bool read_repr(struct slice line, size_t name_size, struct raised *raised) {
    struct slice rest = text_from(line, name_size + 1), behind;
    char quote = rest.size == 0 ? '\0' : rest.data[0];
    if (quote != '\'' && quote != '"' && !text_is_digit(quote))
        return false;
    bool is_quoted = !text_is_digit(quote);
    const char end[] = {is_quoted ? quote : ')', is_quoted ? ')' : '\0', '\0'};
    rest = text_from(rest, is_quoted);
    if (!text_find(rest, slice_of(end), &behind))
        return false;
    *raised =
        (struct raised){.type = {line.data, name_size},
                        .message = {rest.data, (size_t)(behind.data - rest.data) - strlen(end)},
                        .text = {line.data, (size_t)(behind.data - line.data)}};
    return true;
}

// Where the name begins that ends there; `end`: none does, or it is part of another word.
static size_t name_begin(struct slice line, size_t end) {
    size_t begin = end;
    while (begin > 0 && end - begin < DOTTED_MAX && is_name_byte(line.data[begin - 1]))
        begin--;
    bool apart = begin > 0 && memchr(" \t:]|=>", line.data[begin - 1], 8) != NULL;
    struct slice name = dotted_name((struct slice){line.data + begin, end - begin});
    return apart && name.size == end - begin && is_telling_name(last_part(name)) ? begin : end;
}

bool traceback_raised_within(struct slice line, struct raised *raised, struct slice *front) {
    line = front_of(line);
    for (size_t at = 1; at <= line.size && at <= TRACEBACK_FRONT_MAX + DOTTED_MAX; at++) {
        bool may_end = at == line.size || line.data[at] == ':' || line.data[at] == '(';
        // "Error", "Exception", "Interrupt", "Exit", "Barrier"
        if (!may_end || memchr("rnt", line.data[at - 1], 3) == NULL)
            continue;
        size_t begin = name_begin(line, at);
        struct slice own = text_from(line, begin);
        if (begin == at || !(traceback_raised(own, false, raised) ||
                             (at < line.size && read_repr(own, at - begin, raised))))
            continue;
        *front = (struct slice){line.data, begin};
        return begin <= TRACEBACK_FRONT_MAX;
    }
    return false;
}

// Ends of others, handed on: they tell no reason.
static bool is_wrapper(const struct raised *raised) {
    static const struct slice names[] = {
        {"ChildFailedError", 16},       {"WorkerCrashedError", 18}, {"ProcessRaisedException", 22},
        {"ProcessExitedException", 22}, {"ExceptionGroup", 14},     {"BaseExceptionGroup", 18},
        {"WorkerGroupError", 16},
    };
    struct slice part = last_part(text_until(raised->type, '('));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(part, names[i]))
            return true;
    struct slice behind;
    if (text_begins(part, SLICE("RayTaskError")) || text_begins(part, SLICE("RayActorError")) ||
        text_begins(raised->message, SLICE("The actor died because of an error raised in its cr")))
        return true;
    return text_begins(raised->message, SLICE("Caught ")) &&
           (text_find(raised->message, SLICE(" in DataLoader worker process "), &behind) ||
            text_find(raised->message, SLICE(" in replica "), &behind));
}

// -- lines ----------------------------------------------------------------------------------------

// Lines of groups of exceptions stand behind bars: "  | ValueError: x", "  +-+------- 1 -----".
static struct slice without_bars(struct slice line) {
    struct slice rest = line;
    text_skip_blanks(&rest);
    if (rest.size == line.size || rest.size == 0 || (rest.data[0] != '|' && rest.data[0] != '+'))
        return line;
    if (text_skip(&rest, SLICE("| ")) || text_skip(&rest, SLICE("+ ")))
        return rest;
    return line;
}

static bool is_link(struct slice line) {
    static const struct slice links[] = {
        {"During handling of the above exception, another", 47},
        {"The above exception was the direct cause of", 43},
        {"-- Process ", 11},
    };
    return BEGINS_ANY(line, links);
}

// "EJ0001: ", "ERR02200 ": what CANN and torch_npu write below their one sentence says whose it is.
static bool is_npu_code(struct slice line) {
    size_t letters = 0, digits = 0;
    while (letters < line.size && is_upper(line.data[letters]))
        letters++;
    while (letters + digits < line.size && text_is_digit(line.data[letters + digits]))
        digits++;
    char behind = letters + digits < line.size ? line.data[letters + digits] : '\0';
    return line.size > 0 && line.data[0] == 'E' &&
           ((letters == 2 && digits == 4 && behind == ':') ||
            (letters == 3 && digits == 5 && behind == ' '));
}

static bool is_tail(struct slice line) {
    static const struct slice tails[] = {
        {"CUDA kernel errors might", 24},
        {"HIP kernel errors might", 23},
        {"For debugging consider passing", 30},
        {"Compile with `TORCH_USE_", 24},
        {"Device-side assertion", 21},
        {"Search for `cuda", 16},
        {"Exception raised from ", 22},
        {"frame #", 7},
        {"<omitting python frames>", 24},
        {"C++ CapturedTraceback:", 22},
        {"nccl", 4},
        {"Last error:", 11},
    };
    return BEGINS_ANY(line, tails) || is_npu_code(line) ||
           (line.size > 1 && line.data[0] == '#' && text_is_digit(line.data[1]));
}

enum traceback_line traceback_line(struct slice line, bool inside) {
    struct slice own = without_bars(front_of(line));
    struct slice words = text_trim(own);
    struct raised raised;
    if (words.size == 0)
        return TRACEBACK_BLANK;
    if (ends_with(words, HEAD))
        return TRACEBACK_HEAD;
    if (own.data[0] == ' ' || own.data[0] == '\t')
        return TRACEBACK_FRAME;
    if (is_link(own))
        return TRACEBACK_LINK;
    if (is_tail(own))
        return TRACEBACK_TAIL;
    return traceback_raised(own, inside, &raised) ? TRACEBACK_FINAL : TRACEBACK_OTHER;
}

bool traceback_place(struct slice line, struct traceback_place *place) {
    text_skip_blanks(&line);
    if (!text_skip(&line, SLICE("File \"")))
        return false;
    place->file = text_until(line, '"');
    line = text_from(line, place->file.size);
    if (!text_skip(&line, SLICE("\", line ")))
        return false;
    uint64_t number;
    place->line = line;
    if (!text_take_number(&line, 1, 9, &number))
        return false;
    place->line.size -= line.size;
    if (!text_skip(&line, SLICE(", in ")) && !text_skip(&line, SLICE(" in ")))
        return false;
    place->function = text_trim(line);
    return place->function.size > 0;
}

struct slice traceback_place_text(struct slice line, struct arena *arena) {
    struct traceback_place place;
    if (!traceback_place(line, &place))
        return (struct slice){NULL, 0};
    size_t size = place.function.size + place.file.size + place.line.size + 4;
    char *text = arena_take(arena, size);
    const struct slice parts[] = {place.function, SLICE(" ("), place.file,
                                  SLICE(":"),     place.line,  SLICE(")")};
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memcpy(text + used, parts[i].data, parts[i].size);
        used += parts[i].size;
    }
    assert(used == size);
    return (struct slice){text, size};
}

// -- the whole ------------------------------------------------------------------------------------

struct reading_state {
    struct traceback *out;
    struct slice place;
    bool inside;       // no exception since the last head
    bool bare;         // a head, and nothing of its own yet
    bool growing;      // the last exception's message may run on
    bool within;       // what comes is told by the last exception, a wrapper
    const char *grown; // the text that runs on
};

static void take_raised(struct reading_state *state, const struct raised *raised) {
    struct traceback *out = state->out;
    bool wrapper = is_wrapper(raised);
    if (out->count == 0 || (out->only_wrapped && !wrapper)) {
        out->reason = *raised;
        out->reason.place = state->place;
        out->only_wrapped = wrapper;
    }
    if (!state->within) {
        out->last = *raised;
        out->last.place = state->place;
    }
    out->count++;
    state->within = state->within || wrapper;
    state->place = (struct slice){NULL, 0};
    state->inside = false;
    state->growing = true;
    state->grown = raised->text.data;
}

// What belongs to a message is its text up to the end of this line.
static void grow(const struct reading_state *state, struct slice line) {
    struct raised *both[] = {&state->out->reason, &state->out->last};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        if (both[i]->text.data == state->grown)
            both[i]->text.size = (size_t)(line.data + line.size - state->grown);
}

static void take_line(struct reading_state *state, struct slice line) {
    struct slice own = without_bars(line);
    struct traceback_place place;
    struct raised raised;
    switch (traceback_line(line, state->inside)) {
    case TRACEBACK_HEAD:
        state->out->mixed = state->out->mixed || state->bare;
        state->inside = state->bare = true;
        state->growing = false;
        return;
    case TRACEBACK_FRAME:
        state->bare = false;
        if (state->growing && traceback_goes_on(state->out->last.message)) {
            grow(state, line);
            state->growing = false;
            return;
        }
        if (state->inside && traceback_place(own, &place))
            state->place = own;
        return;
    case TRACEBACK_FINAL:
        if (traceback_raised(own, state->inside, &raised))
            take_raised(state, &raised);
        state->bare = false;
        return;
    case TRACEBACK_LINK:
        state->growing = false;
        state->inside = true;
        if (!text_begins(own, SLICE("-- Process ")))
            state->within = false;
        return;
    case TRACEBACK_TAIL:
    case TRACEBACK_OTHER:
        if (state->growing)
            grow(state, line);
        return;
    case TRACEBACK_BLANK:
        return;
    }
}

bool traceback_goes_on(struct slice message) {
    return message.size > 1 && message.data[message.size - 1] == ':';
}

void traceback_read(struct slice text, struct traceback *traceback) {
    *traceback = (struct traceback){.only_wrapped = false};
    struct reading_state state = {.out = traceback};
    while (text.size > 0)
        take_line(&state, text_take_line(&text));
    traceback->unfinished = state.inside;
    assert(traceback->count > 0 || traceback->reason.type.data == NULL);
}

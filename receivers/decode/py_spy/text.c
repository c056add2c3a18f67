// SPDX-License-Identifier: Apache-2.0
// The text of a dump: "Process 24100: python3 train.py", "Python v3.11.7 (…)", then for each thread
// a line and its frames, which may be followed by arguments and locals. It is gathered and read
// thread by thread. The indentation may have been taken away by a transport. O(dump).
#include "base/text/cut.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/py_spy/py_spy.h"
#include "receivers/decode/py_spy/stack.h"

enum { DIGITS_MAX = 18, FRAME_INDENT = 4, COMMAND_MAX = 1024 };

// "Process 24100: python3 train.py": number and command line.
static bool read_process(struct slice line, uint64_t *pid, struct slice *command) {
    if (!text_skip(&line, SLICE("Process ")) || !text_take_number(&line, 1, DIGITS_MAX, pid) ||
        !text_skip(&line, SLICE(": ")))
        return false;
    *command = text_trim(line);
    if (command->size > COMMAND_MAX) // each thread gets it
        command->size = COMMAND_MAX;
    return true;
}

static size_t indent_of(struct slice line) {
    size_t size = 0;
    while (size < line.size && line.data[size] == ' ')
        size++;
    return size;
}

// "all_reduce (train.py:6)", "clock_nanosleep (libc.so.6)".
static bool is_frame(struct slice line) {
    size_t indent = indent_of(line);
    struct slice text = text_trim(line), file;
    if (text.size == 0 || text.data[text.size - 1] != ')' ||
        (indent != 0 && indent != FRAME_INDENT) || !text_find(text, SLICE(" ("), &file))
        return false;
    // A local variable is "name: value".
    struct slice name = {text.data, (size_t)(file.data - text.data)};
    return indent == FRAME_INDENT || memmem(name.data, name.size, ": ", 2) == NULL;
}

static bool is_values_heading(struct slice line) {
    line = text_trim(line);
    return slice_equal(line, SLICE("Arguments:")) || slice_equal(line, SLICE("Locals:"));
}

// "n: 0", without the indentation that tells it from other lines.
static bool is_value(struct slice line) {
    size_t size = 0;
    while (size < line.size && (text_is_digit(line.data[size]) || line.data[size] == '_' ||
                                (line.data[size] | ' ') >= 'a'))
        size++;
    return size > 0 && text_begins(text_from(line, size), SLICE(": "));
}

static bool is_thread(struct slice line) {
    return text_begins(line, SLICE("Thread ")) && line.size > 7 && text_is_digit(line.data[7]);
}

static struct slice last_line(struct slice text) {
    size_t at = text.size;
    while (at > 0 && text.data[at - 1] != '\n')
        at--;
    return text_from(text, at);
}

static enum read_result read_dump(const struct frame *frame, struct slice message,
                                  struct reading *reading) {
    uint64_t pid;
    struct slice command;
    (void)frame;
    (void)reading;
    return read_process(message, &pid, &command) ? READ_BEGIN : READ_NOT;
}

static enum block_step more_dump(struct slice so_far, uint32_t count, const struct frame *frame,
                                 struct slice message) {
    (void)frame;
    if (text_trim(message).size == 0)
        return BLOCK_PASS;
    if (count == 1)
        return text_begins(message, SLICE("Python v")) ? BLOCK_TAKE : BLOCK_OVER;
    if (indent_of(message) >= FRAME_INDENT || is_thread(message) || is_frame(message) ||
        is_values_heading(message) || text_begins(message, SLICE("Parent Process ")))
        return BLOCK_TAKE;
    if (!is_value(message))
        return BLOCK_OVER;
    struct slice last = last_line(so_far);
    return is_values_heading(last) || is_value(last) ? BLOCK_TAKE : BLOCK_OVER;
}

// Behind "Thread ": "24100 (idle): "MainThread"".
struct thread_line {
    struct slice id, state, name;
};

static struct thread_line read_thread(struct slice line) {
    struct thread_line thread = {.id = text_until_any(line, " :")};
    line = text_from(line, thread.id.size);
    if (text_skip(&line, SLICE(" (")))
        thread.state = text_take(&line, text_until(line, ')').size);
    text_skip_char(&line, ')');
    if (text_skip(&line, SLICE(": \""))) {
        thread.name = text_trim(line);
        if (thread.name.size > 0 && thread.name.data[thread.name.size - 1] == '"')
            thread.name.size--;
    }
    return thread;
}

// Past the lines of the thread at hand, whose frames go to the stack.
static void take_frames(struct slice *rest, struct stack *stack) {
    while (rest->size > 0) {
        struct slice after = *rest;
        struct slice line = text_take_line(&after);
        if (is_thread(line))
            return;
        if (is_frame(line))
            stack_add(stack, text_trim(line));
        *rest = after;
    }
}

static enum read_result next_thread(struct slice text, struct block_walk *walk, bool cut,
                                    const struct frame *frame, struct reading *reading) {
    (void)cut;
    (void)frame;
    uint64_t pid = 0, id;
    struct slice command = {NULL, 0};
    struct slice rest = text_from(text, walk->at);
    struct slice line = text_take_line(&rest);
    struct stack stack = {.size = 0};
    read_process(text_until(text, '\n'), &pid, &command);
    if (!is_thread(line)) {
        walk->at = text.size - rest.size;
        return READ_OTHER;
    }
    struct thread_line thread = read_thread(text_from(line, 7));
    take_frames(&rest, &stack);
    walk->at = text.size - rest.size;
    bool is_main = slice_equal(thread.name, SLICE("MainThread")) ||
                   (text_number(thread.id, DIGITS_MAX, &id) && id == pid);
    if (stack.frame.data == NULL || !stack_begin(reading, thread.name, is_main, thread.state))
        return READ_OTHER;
    reading_number(reading, FACT_PID, (int64_t)pid);
    if (command.size > 0)
        reading_text(reading, FACT_PROCESS, command);
    stack_facts(reading, &stack);
    return READ_EVENT;
}

const struct line_reader READER_PY_SPY = {
    .name = "py_spy", .read = read_dump, .more = more_dump, .next = next_thread};

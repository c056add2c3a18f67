// SPDX-License-Identifier: Apache-2.0
// A thread of a dump in JSON. One pass over the object, one over its frames.
#include "base/text/cut.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/tokens.h"
#include "receivers/decode/py_spy/py_spy.h"
#include "receivers/decode/py_spy/stack.h"

#include <stdio.h>

#define ROW(name, slot)                                                                            \
    { {(name), sizeof(name) - 1}, (slot), NULL }
#define INNER(name, slot, shape)                                                                   \
    { {(name), sizeof(name) - 1}, (slot), &(shape) }

enum { FRAMES_MAX = 128 };

enum thread_slot {
    SLOT_PID,
    SLOT_NAME,
    SLOT_THREAD,
    SLOT_ACTIVE,
    SLOT_GIL,
    SLOT_FRAMES,
    SLOT_COMMAND,
    SLOT_COUNT
};
static const struct json_shape_row process_rows[] = {ROW("command_line", SLOT_COMMAND)};
static const struct json_shape process_shape = JSON_SHAPE(process_rows);
static const struct json_shape_row thread_rows[] = {
    ROW("pid", SLOT_PID),
    ROW("thread_name", SLOT_NAME),
    ROW("os_thread_id", SLOT_THREAD),
    ROW("active", SLOT_ACTIVE),
    ROW("owns_gil", SLOT_GIL),
    ROW("frames", SLOT_FRAMES),
    INNER("process_info", JSON_NO_SLOT, process_shape),
};
static const struct json_shape thread_shape = JSON_SHAPE(thread_rows);

enum frame_slot { SLOT_FUNCTION, SLOT_SHORT, SLOT_FILE, SLOT_LINE, FRAME_SLOT_COUNT };
static const struct json_shape_row frame_rows[] = {
    ROW("name", SLOT_FUNCTION),
    ROW("short_filename", SLOT_SHORT),
    ROW("filename", SLOT_FILE),
    ROW("line", SLOT_LINE),
};
static const struct json_shape frame_shape = JSON_SHAPE(frame_rows);

struct py_spy_state {
    struct decoder_input input;
};

// "all_reduce (train.py:6)", as the text has it.
static struct slice frame_text(const struct token *item, struct arena *arena) {
    struct token slots[FRAME_SLOT_COUNT] = {0};
    struct json_fault json;
    json_shape_read(&frame_shape, item->text, item->text + item->size, 0, slots, &json);
    struct slice name = token_text(&slots[SLOT_FUNCTION], arena);
    struct slice file = token_text(&slots[SLOT_SHORT], arena);
    int64_t line = 0;
    if (file.data == NULL)
        file = token_text(&slots[SLOT_FILE], arena);
    if (file.data == NULL)
        file = SLICE("?");
    if (name.data == NULL)
        name = SLICE("?");
    token_number(&slots[SLOT_LINE], &line);
    size_t room = name.size + file.size + 32;
    char *text = arena_take(arena, room);
    int size = line > 0 ? snprintf(text, room, "%.*s (%.*s:%lld)", (int)name.size, name.data,
                                   (int)file.size, file.data, (long long)line)
                        : snprintf(text, room, "%.*s (%.*s)", (int)name.size, name.data,
                                   (int)file.size, file.data);
    return (struct slice){text, (size_t)size};
}

static void take_frames(struct stack *stack, const struct token *frames, struct arena *arena) {
    struct token item;
    struct json_items items = json_items_of(frames);
    for (int i = 0; i < FRAMES_MAX && json_items_next(&items, &item); i++)
        if (item.kind == TOKEN_OBJECT)
            stack_add(stack, frame_text(&item, arena));
}

static struct slice state_of(const struct token *slots) {
    if (slots[SLOT_ACTIVE].kind != TOKEN_TRUE)
        return slots[SLOT_GIL].kind == TOKEN_TRUE ? SLICE("idle+gil") : SLICE("idle");
    return slots[SLOT_GIL].kind == TOKEN_TRUE ? SLICE("active+gil") : SLICE("active");
}

static void begin(void *memory, const struct decoder_input *input) {
    struct py_spy_state *state = memory;
    state->input = *input;
    state->input.tail = (struct slice){NULL, 0};
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    const struct py_spy_state *state = memory;
    struct token slots[SLOT_COUNT] = {0};
    struct json_fault json;
    struct reading reading = {.arena = arena};
    struct stack stack = {.size = 0};
    struct frame frame;
    int64_t pid = -1, thread = -2;
    if (!json_shape_read_all(&thread_shape, record, slots, &json))
        return refuse_json(fault, record, &json);
    if (slots[SLOT_FRAMES].kind != TOKEN_ARRAY || !token_number(&slots[SLOT_PID], &pid))
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("frames, pid"),
                         "not there as an array and a number; a thread of py-spy has both");
    token_number(&slots[SLOT_THREAD], &thread);
    struct slice name = token_text(&slots[SLOT_NAME], arena);
    bool is_main = slice_equal(name, SLICE("MainThread")) || thread == pid;
    if (!stack_begin(&reading, name, is_main, state_of(slots)))
        return DECODE_NOTHING;
    take_frames(&stack, &slots[SLOT_FRAMES], arena);
    if (stack.frame.data == NULL)
        return DECODE_NOTHING;
    reading_number(&reading, FACT_PID, pid);
    reading_token_text(&reading, FACT_PROCESS, &slots[SLOT_COMMAND]);
    stack_facts(&reading, &stack);
    frame_clear(&frame, record, event->position);
    return reading_finish(&reading, &frame, &state->input, record, event, fault);
}

const struct decoder_type decoder_py_spy = {
    .name = "py_spy",
    .state_size = sizeof(struct py_spy_state),
    .begin = begin,
    .decode = decode,
};

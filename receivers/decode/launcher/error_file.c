// SPDX-License-Identifier: Apache-2.0
// One pass over the document, and one over its message. Facts: PyTorch,
// torch/distributed/elastic/multiprocessing/errors/error_handler.py.
#include "receivers/decode/launcher/error_file.h"

#include "base/intern.h"
#include "base/text/cut.h"
#include "receivers/decode/app_log/exception.h"
#include "receivers/decode/app_log/traceback.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/keys.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/launcher/summary.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

struct error_file_state {
    struct decoder_input input;
};

enum slot {
    SLOT_MESSAGE,
    SLOT_TEXT,
    SLOT_INFO,
    SLOT_TIME,
    SLOT_STACK,
    SLOT_CODE,
    SLOT_OUTER_TIME,
    SLOT_COUNT
};

static const struct json_shape_row INFO_ROWS[] = {
    {{"timestamp", 9}, SLOT_TIME, NULL},
    {{"py_callstack", 12}, SLOT_STACK, NULL},
};
static const struct json_shape INFO = JSON_SHAPE(INFO_ROWS);
static const struct json_shape_row MESSAGE_ROWS[] = {
    {{"message", 7}, SLOT_TEXT, NULL},
    {{"extraInfo", 9}, SLOT_INFO, &INFO},
    {{"errorCode", 9}, SLOT_CODE, NULL},
};
static const struct json_shape MESSAGE = JSON_SHAPE(MESSAGE_ROWS);
static const struct json_shape_row ROWS[] = {
    {{"message", 7}, SLOT_MESSAGE, &MESSAGE},
    {{"timestamp", 9}, SLOT_OUTER_TIME, NULL},
};
static const struct json_shape SHAPE = JSON_SHAPE(ROWS);

// -- the path -------------------------------------------------------------------------------------

// The last part of the path, which loses it; empty: there is none.
static struct slice take_last_part(struct slice *path) {
    const char *slash = path->size == 0 ? NULL : memrchr(path->data, '/', path->size);
    size_t from = slash == NULL ? 0 : (size_t)(slash - path->data) + 1;
    struct slice part = text_from(*path, from);
    path->size = from == 0 ? 0 : from - 1;
    return part;
}

// -1: the path does not say it.
struct place {
    int64_t local_rank, attempt;
};

static struct place place_of(struct slice path) {
    struct place place = {-1, -1};
    uint64_t number;
    if (!slice_equal(take_last_part(&path), SLICE("error.json")))
        return place;
    if (!text_number(take_last_part(&path), 6, &number))
        return place;
    place.local_rank = (int64_t)number;
    struct slice attempt = take_last_part(&path);
    if (text_skip(&attempt, SLICE("attempt_")) && text_number(attempt, 6, &number))
        place.attempt = (int64_t)number;
    return place;
}

bool error_file_path(struct slice path) {
    return place_of(path).local_rank >= 0;
}

// -- the document ---------------------------------------------------------------------------------

// A text or a number of whole seconds; 0: neither.
static uint64_t time_of(const struct token *token) {
    uint64_t seconds;
    bool said = token->kind == TOKEN_STRING || token_is_integer(token);
    if (!said || !text_number(token_slice(token), 10, &seconds))
        return 0;
    return seconds * 1000000000;
}

static void set_exception(struct slice text, const struct forms *forms, const struct token *stack,
                          struct reading *reading) {
    struct arena *arena = reading->arena;
    struct traceback traceback;
    struct raised raised;
    if (!traceback_raised(text_until(text, '\n'), true, &raised)) {
        exception_message(text, reading);
        return;
    }
    traceback_read(text, &traceback);
    exception_facts(forms, traceback.count > 0 ? &traceback.reason : &raised, reading);
    exception_last(&traceback, reading);
    if (stack->kind != TOKEN_STRING)
        return;
    traceback_read(token_decode(stack, arena), &traceback);
    struct slice place = traceback_place_text(traceback.reason.place, arena);
    if (place.data != NULL)
        reading_text(reading, FACT_FRAME, place);
}

static void set_facts(struct slice path, const struct token *slots, const struct token *message,
                      const struct forms *forms, struct reading *reading) {
    struct place place = place_of(path);
    uint64_t time_ns = time_of(&slots[SLOT_TIME]);
    reading_begin(reading, OBSERVATION_ERROR_FILE);
    reading->time_ns = time_ns != 0 ? time_ns : time_of(&slots[SLOT_OUTER_TIME]);
    reading->slack_ns = 1000000000;
    set_exception(token_decode(message, reading->arena), forms, &slots[SLOT_STACK], reading);
    if (slots[SLOT_CODE].kind == TOKEN_INTEGER && slots[SLOT_CODE].integer >= -64 &&
        slots[SLOT_CODE].integer <= 255)
        launcher_set_exit(slots[SLOT_CODE].integer, reading);
    if (place.local_rank >= 0)
        reading_number(reading, FACT_LOCAL_RANK, place.local_rank);
    if (place.attempt >= 0)
        reading_number(reading, FACT_ATTEMPT, place.attempt);
    if (path.size > 0)
        reading_text(reading, FACT_ERROR_FILE, path);
}

// Right as far as it goes, but not whole.
static bool breaks_off(struct slice record) {
    struct json_keys keys;
    enum json_keys_step step = JSON_KEYS_MEMBER;
    if (text_trim(record).size == 0)
        return true;
    json_keys_begin(&keys, record, 0);
    while (step == JSON_KEYS_MEMBER)
        step = json_keys_next(&keys);
    return step == JSON_KEYS_CUT;
}

// Where the document ends too early, it was torn while it was written.
static enum decode_category refuse(struct slice record, const struct json_fault *json,
                                   struct decode_fault *fault) {
    if (breaks_off(record))
        return fault_set(fault, DECODE_TRUNCATED, SLICE(""),
                         "the error file breaks off: its process ended while it was written");
    if (json->why != NULL)
        return fault_json(fault, record, json);
    return fault_set(fault, DECODE_NOT_OBJECT, SLICE(""), "not a JSON object, as error files are");
}

// What the document says, with the frame's time, rank and host where it says none.
static enum decode_category read_document(struct slice document, struct slice path,
                                          const struct decoder_input *input, struct frame *frame,
                                          struct arena *arena, struct event *event,
                                          struct decode_fault *fault) {
    struct token slots[SLOT_COUNT] = {{.kind = TOKEN_NONE}};
    struct json_fault json = {.at = document.data};
    if (!json_shape_read_all(&SHAPE, document, slots, &json))
        return refuse(document, &json, fault);
    const struct token *message = &slots[SLOT_MESSAGE];
    if (message->kind == TOKEN_OBJECT)
        message = &slots[SLOT_TEXT];
    else if (!error_file_path(path))
        return DECODE_NOTHING;
    if (message->kind != TOKEN_STRING)
        return DECODE_NOTHING;
    struct reading reading = {.arena = arena};
    set_facts(path, slots, message, input->forms, &reading);
    frame->message = token_decode(message, arena);
    event->lines = 1;
    return reading_finish(&reading, frame, input, frame->message, event, fault);
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    const struct error_file_state *state = memory;
    struct frame frame;
    frame_clear(&frame, record, event->position);
    return read_document(record, state->input.path, &state->input, &frame, arena, event, fault);
}

// The keys of a tagged line; `event` gets its time, node, job and rank.
static enum decode_category read_tagged(struct slice object, struct arena *arena,
                                        struct token *path, struct token *document,
                                        struct event *event, struct decode_fault *fault) {
    struct tagged_keys keys;
    struct slice key;
    struct token value;
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value)) {
        if (slice_equal(key, SLICE("path")))
            *path = value;
        else if (slice_equal(key, SLICE("document")))
            *document = value;
    }
    bool readable = keys.at != NULL && keys.category == DECODE_OK;
    if (readable && document->kind == TOKEN_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("document"),
                         "not there; it holds the error file, as an object or as a text");
    if (readable && document->kind != TOKEN_OBJECT && document->kind != TOKEN_STRING)
        return fault_type(fault, SLICE("document"), document, "an object or a text");
    return tagged_keys_end(&keys, event, fault);
}

static struct slice text_of(const struct token *token, struct arena *arena) {
    if (token->kind == TOKEN_STRING)
        return token_decode(token, arena);
    return token->kind == TOKEN_OBJECT ? token_slice(token) : (struct slice){NULL, 0};
}

enum decode_category error_file_tagged(void *state, struct slice object, struct arena *arena,
                                       struct event *event, struct decode_fault *fault) {
    struct token path = {.kind = TOKEN_NONE}, document = {.kind = TOKEN_NONE};
    struct decoder_input input = {.observed_ns = 0};
    struct frame frame;
    (void)state;
    enum decode_category category = read_tagged(object, arena, &path, &document, event, fault);
    if (category != DECODE_OK)
        return category;
    frame_clear(&frame, object, event->position);
    frame.time_ns = event->time_ns;
    frame.rank = event->rank;
    if (event->node != STRING_NONE)
        frame.host = intern_slice(event->node);
    string_id job = event->job;
    struct slice name =
        path.kind == TOKEN_STRING ? token_decode(&path, arena) : (struct slice){NULL, 0};
    category = read_document(text_of(&document, arena), name, &input, &frame, arena, event, fault);
    event->job = job;
    return category;
}

static void begin(void *memory, const struct decoder_input *input) {
    struct error_file_state *state = memory;
    state->input = *input;
    state->input.tail = (struct slice){NULL, 0};
}

const struct decoder_type decoder_error_file = {
    .name = "error_file",
    .state_size = sizeof(struct error_file_state),
    .begin = begin,
    .decode = decode,
};

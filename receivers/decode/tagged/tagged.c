// SPDX-License-Identifier: Apache-2.0
// Hands each line to the decoder of its source. One pass over the object's own members for
// `source`, then the decoder of that source reads the line. Each has memory of its own behind the
// others'.
#include "receivers/decode/tagged/tagged.h"

#include "base/hash/hash.h"
#include "receivers/decode/dcgm/dcgm.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"
#include "receivers/decode/ib_counters/ib_counters.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/kubernetes/kubernetes.h"
#include "receivers/decode/launcher/error_file.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/log/log.h"
#include "receivers/decode/nccl_inspector/nccl_inspector.h"
#include "receivers/decode/nccl_ras/nccl_ras.h"
#include "receivers/decode/rank_map/rank_map.h"
#include "receivers/decode/sysfs_aer/sysfs_aer.h"

#include <stddef.h>

#define ROOM(size) ((size) / 8 + 1)

// Of the sources that remember something between lines.
struct tagged_state {
    uint64_t flight[ROOM(FLIGHT_STATE_SIZE)];
    uint64_t log[ROOM(LOG_STATE_SIZE)];
    uint64_t ras[ROOM(NCCL_RAS_STATE_SIZE)];
    uint64_t counters[ROOM(IB_COUNTERS_STATE_SIZE)];
    size_t last; // source of the last line, whose events may not have been given all
    uint64_t kubernetes[ROOM(KUBERNETES_STATE_SIZE)];
};

typedef enum decode_category tagged_decode(void *state, struct slice object, struct arena *arena,
                                           struct event *event, struct decode_fault *fault);

struct line_keys {
    struct token message, lines, program;
};

static void take_line_key(struct line_keys *keys, struct slice key, const struct token *value) {
    if (slice_equal(key, SLICE("message")))
        keys->message = *value;
    else if (slice_equal(key, SLICE("lines")))
        keys->lines = *value;
    else if (slice_equal(key, SLICE("program")))
        keys->program = *value;
}

static enum decode_category check_line_keys(const struct line_keys *keys,
                                            struct decode_fault *fault) {
    if (keys->lines.kind == TOKEN_ARRAY)
        return DECODE_OK;
    if (keys->lines.kind != TOKEN_NONE)
        return fault_type(fault, SLICE("lines"), &keys->lines, "an array of texts");
    if (keys->message.kind == TOKEN_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("message"),
                         "not there; it holds the line that was written");
    if (keys->message.kind != TOKEN_STRING)
        return fault_type(fault, SLICE("message"), &keys->message, "a text");
    return DECODE_OK;
}

// The texts with a newline between two.
static enum decode_category join_lines(const struct token *array, struct arena *arena,
                                       struct slice *text, struct decode_fault *fault) {
    char *out = arena_take(arena, array->size + 1);
    size_t size = 0;
    struct json_items items = json_items_of(array);
    for (struct token item; json_items_next(&items, &item);) {
        if (item.kind != TOKEN_STRING)
            return fault_type(fault, SLICE("lines"), &item, "an array of texts");
        struct slice line = token_decode(&item, arena);
        if (line.size > 0)
            memcpy(out + size, line.data, line.size);
        size += line.size;
        out[size++] = '\n';
    }
    *text = (struct slice){out, size > 0 ? size - 1 : 0};
    return DECODE_OK;
}

// A line of a log in the key `message`, without the prefix of a transport, or several of one report
// in `lines`.
static enum decode_category line_tagged(void *state, struct slice object, enum frame_origin origin,
                                        struct arena *arena, struct event *event,
                                        struct decode_fault *fault) {
    struct tagged_keys keys;
    struct slice key, text;
    struct token value;
    struct line_keys line = {{.kind = TOKEN_NONE}, {.kind = TOKEN_NONE}, {.kind = TOKEN_NONE}};
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value))
        take_line_key(&line, key, &value);
    bool readable = keys.at != NULL && keys.category == DECODE_OK;
    if (readable && check_line_keys(&line, fault) != DECODE_OK)
        return fault->category;
    bool lines = line.lines.kind == TOKEN_ARRAY;
    if (readable && lines && join_lines(&line.lines, arena, &text, fault) != DECODE_OK)
        return fault->category;
    uint64_t position = event->position;
    enum decode_category category = tagged_keys_end(&keys, event, fault);
    if (category != DECODE_OK)
        return category;
    struct frame frame;
    frame_clear(&frame, lines ? text : token_decode(&line.message, arena), position);
    frame.origin = origin;
    frame.time_ns = event->time_ns;
    frame.rank = event->rank;
    frame.job = event->job;
    frame.pod = keys.pod;
    frame.namespace = keys.namespace;
    if (line.program.kind == TOKEN_STRING)
        frame.program = token_decode(&line.program, arena);
    if (event->node != STRING_NONE)
        frame.host = intern_slice(event->node);
    frame.key = hash_slice(frame.pod) ^ event->node ^ (uint64_t)(uint32_t)frame.rank << 32;
    if (frame.program.size > 0)
        frame.key = hash_more(frame.key, frame.program.data, frame.program.size);
    frame.has_writer = true;
    return log_decode_message(state, &frame, lines, arena, event, fault);
}

static enum decode_category kernel_line_tagged(void *state, struct slice object,
                                               struct arena *arena, struct event *event,
                                               struct decode_fault *fault) {
    return line_tagged(state, object, ORIGIN_KERNEL, arena, event, fault);
}

static enum decode_category app_line_tagged(void *state, struct slice object, struct arena *arena,
                                            struct event *event, struct decode_fault *fault) {
    return line_tagged(state, object, ORIGIN_PROGRAM, arena, event, fault);
}

typedef enum decode_category tagged_next(void *state, struct arena *arena, struct event *event,
                                         struct decode_fault *fault);

// In the order in which they are listed in messages.
static const struct {
    struct slice source;
    size_t state;
    tagged_decode *decode;
    tagged_next *next; // NULL: a line is one event
} SOURCES[] = {
    {{"app_log", 7}, offsetof(struct tagged_state, log), app_line_tagged, log_next},
    {{"dcgm", 4}, 0, dcgm_tagged, NULL},
    {{"error_file", 10}, 0, error_file_tagged, NULL},
    {{"fr_dump", 7}, offsetof(struct tagged_state, flight), flight_tagged, NULL},
    {{"fr_entry", 8}, offsetof(struct tagged_state, flight), flight_tagged, NULL},
    {{"ib_counters", 11},
     offsetof(struct tagged_state, counters),
     ib_counters_tagged,
     ib_counters_next},
    {{"k8s_watch", 9},
     offsetof(struct tagged_state, kubernetes),
     kubernetes_tagged,
     kubernetes_next},
    {{"kmsg", 4}, offsetof(struct tagged_state, log), kernel_line_tagged, log_next},
    {{"launcher_log", 12}, offsetof(struct tagged_state, log), app_line_tagged, log_next},
    {{"nccl_inspector", 14}, 0, nccl_inspector_tagged, NULL},
    {{"nccl_ras", 8}, offsetof(struct tagged_state, ras), nccl_ras_tagged, nccl_ras_next},
    {{"rank_map", 8}, 0, rank_map_tagged, NULL},
    {{"slurm", 5}, offsetof(struct tagged_state, log), app_line_tagged, log_next},
    {{"sysfs_aer", 9}, 0, sysfs_aer_tagged, NULL},
};
enum { SOURCE_COUNT = sizeof SOURCES / sizeof *SOURCES };

bool tagged_knows(struct slice source) {
    for (size_t i = 0; i < SOURCE_COUNT; i++)
        if (slice_equal(source, SOURCES[i].source))
            return true;
    return false;
}

static const struct json_shape_row ROWS[] = {{{"source", 6}, 0, NULL}};
static const struct json_shape SHAPE = JSON_SHAPE(ROWS);
static const char KNOWN[] =
    "one of app_log, dcgm, error_file, fr_dump, fr_entry, ib_counters, k8s_watch, kmsg, "
    "launcher_log, nccl_inspector, nccl_ras, rank_map, slurm, sysfs_aer";

static enum decode_category refuse_source(const struct token *source, struct decode_fault *fault) {
    if (source->kind == TOKEN_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("source"), "not there; it says %s",
                         KNOWN);
    bool text = source->kind == TOKEN_STRING;
    return fault_found(fault, text ? DECODE_UNKNOWN_SOURCE : DECODE_WRONG_TYPE, SLICE("source"),
                       source, KNOWN);
}

static bool is_dump(const struct token *source) {
    return source->kind == TOKEN_STRING && token_equals(source, SLICE("fr_dump"));
}

static bool tell_refused(void *memory, struct slice start, struct slice why, struct arena *arena,
                         struct event *event) {
    struct token source = {.kind = TOKEN_NONE};
    struct json_fault ignored;
    (void)memory;
    (void)json_shape_read_all(&SHAPE, start, &source, &ignored);
    return is_dump(&source) && flight_tagged_tell_refused(start, why, arena, event);
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct token source = {.kind = TOKEN_NONE};
    struct json_fault json;
    if (!json_shape_read_all(&SHAPE, record, &source, &json)) {
        if (json.why != NULL) {
            fault_json(fault, record, &json);
            fault->told = is_dump(&source) &&
                          flight_tagged_tell_refused(record, slice_of(fault->detail), arena, event);
            return fault->category;
        }
        return fault_set(fault, DECODE_NOT_OBJECT, SLICE(""),
                         "not a JSON object; a tagged line is one, with a key \"source\"");
    }
    struct tagged_state *state = memory;
    log_new_record(state->log);
    for (size_t i = 0; source.kind == TOKEN_STRING && i < SOURCE_COUNT; i++)
        if (token_equals(&source, SOURCES[i].source)) {
            state->last = i;
            return SOURCES[i].decode((char *)memory + SOURCES[i].state, record, arena, event,
                                     fault);
        }
    return refuse_source(&source, fault);
}

static void begin(void *memory, const struct decoder_input *input) {
    log_begin(((struct tagged_state *)memory)->log, input, FORM_ANY);
}

static enum decode_category next(void *memory, struct arena *arena, struct event *event,
                                 struct decode_fault *fault) {
    struct tagged_state *state = memory;
    const size_t i = state->last;
    if (SOURCES[i].next != NULL && SOURCES[i].next != log_next) {
        enum decode_category category =
            SOURCES[i].next((char *)memory + SOURCES[i].state, arena, event, fault);
        if (category != DECODE_END)
            return category;
    }
    return log_next(state->log, arena, event, fault);
}

static bool holds(const void *memory) {
    return log_holds(((const struct tagged_state *)memory)->log);
}

static void finish(void *memory) {
    struct tagged_state *state = memory;
    kubernetes_finish(state->kubernetes);
    log_finish(state->log);
}

static void release(void *memory) {
    struct tagged_state *state = memory;
    log_release(state->log);
    nccl_ras_release(state->ras);
}

const struct decoder_type decoder_tagged = {
    .name = "tagged",
    .state_size = sizeof(struct tagged_state),
    .begin = begin,
    .decode = decode,
    .next = next,
    .holds = holds,
    .finish = finish,
    .tell_refused = tell_refused,
    .release = release,
};

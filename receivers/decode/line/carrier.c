// SPDX-License-Identifier: Apache-2.0
// Value by value; what one says that makes no sense is as if it were not there.
#include "receivers/decode/line/carrier.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/line/level.h"
#include "receivers/decode/line/place.h"
#include "receivers/decode/line/transport.h"
#include "receivers/decode/line/writer.h"

#include <stdio.h>

enum { NAME_MAX_SIZE = 253, KEYS_TOLD = 8 };

// The texts of an array of bytes, as the journal writes what is no UTF-8.
static struct slice bytes_of(const struct token *array, struct arena *arena) {
    char *out = arena_take(arena, array->size);
    size_t size = 0;
    struct json_items items = json_items_of(array);
    for (struct token item; json_items_next(&items, &item);)
        if (item.kind == TOKEN_INTEGER && item.integer >= 0 && item.integer <= 255)
            out[size++] = (char)item.integer;
    return (struct slice){out, size};
}

// Empty: it says nothing.
static struct slice text_of(const struct envelope *envelope, enum form_target target,
                            struct arena *arena) {
    struct token value;
    if (!envelope_value(envelope, target, &value))
        return (struct slice){NULL, 0};
    return value.kind == TOKEN_STRING ? token_decode(&value, arena) : token_slice(&value);
}

static bool is_name(struct slice text) {
    return text.size > 0 && text.size <= NAME_MAX_SIZE && text.data[0] != '{' &&
           text.data[0] != '[';
}

// "train[41]:", "train:"
static struct slice program_of(struct slice tag) {
    tag = text_until(tag, '[');
    if (tag.size > 0 && tag.data[tag.size - 1] == ':')
        tag.size--;
    return tag;
}

// The kernel's lines are said to be so by the transport and the program.
static void set_program(struct peel *peel, const struct envelope *envelope, struct arena *arena) {
    struct slice program = program_of(text_of(envelope, TARGET_PROGRAM, arena));
    struct slice transport = text_of(envelope, TARGET_TRANSPORT, arena);
    struct slice says = transport.size > 0 ? transport : program;
    if (is_name(program))
        peel->frame->program = program;
    if (says.size == 0)
        return;
    peel->kernel = slice_equal(says, SLICE("kernel"));
    peel->frame->origin = peel->kernel ? ORIGIN_KERNEL : ORIGIN_PROGRAM;
    if (peel->kernel && peel->tells == TELLS_NOTHING)
        peel->tells = TELLS_NO_DATE;
}

// What the name of the file says that the line was read from.
static void set_path(struct peel *peel, struct slice path) {
    struct frame place, *frame = peel->frame;
    if (path.size == 0)
        return;
    frame_clear(&place, path, 0);
    place_read(path, 0, &place);
    if (place.pod.data != NULL) {
        frame->pod = place.pod;
        frame->namespace = place.namespace;
        frame->container = place.container;
    }
    if (place.rank != RANK_NONE)
        frame->rank = place.rank;
    if (place.local_rank >= 0)
        frame->local_rank = place.local_rank;
    peel_named(peel, path, "path");
}

static void set_names(struct peel *peel, const struct envelope *envelope, struct arena *arena) {
    struct frame *frame = peel->frame;
    const struct {
        enum form_target target;
        struct slice *text;
        const char *kind; // of the writer's name
    } names[] = {{TARGET_POD, &frame->pod, "pod"},
                 {TARGET_NAMESPACE, &frame->namespace, "namespace"},
                 {TARGET_CONTAINER, &frame->container, "container"},
                 {TARGET_ADDRESS, &frame->address, "address"}};
    struct slice host = text_of(envelope, TARGET_HOST, arena);
    struct slice writer = text_of(envelope, TARGET_WRITER, arena);
    if (is_name(host))
        frame->host = host;
    if (is_name(writer))
        peel_named(peel, writer, "writer");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct slice text = text_of(envelope, names[i].target, arena);
        if (!is_name(text))
            continue;
        *names[i].text = text;
        peel_named(peel, text, names[i].kind);
    }
}

static void set_numbers(struct peel *peel, const struct envelope *envelope, struct arena *arena) {
    uint64_t number;
    bool writer = peel->writer; // what follows may be another transport's
    if (text_number(text_of(envelope, TARGET_RANK, arena), 9, &number))
        writer_set_rank(peel, number);
    if (text_number(text_of(envelope, TARGET_LOCAL_RANK, arena), 9, &number) &&
        number <= RANK_MAX) {
        peel->frame->local_rank = (int32_t)number;
        peel_numbered(peel, (int64_t)number, "local");
    }
    if (text_number(text_of(envelope, TARGET_PID, arena), 9, &number)) {
        peel->frame->pid = (int64_t)number;
        peel_numbered(peel, (int64_t)number, "pid");
    }
    peel->writer = writer;
}

// "stderr", "projects/p/logs/stderr"; of a line that the runtime cut also which part it is.
static void set_stream(struct peel *peel, const struct envelope *envelope, struct arena *arena) {
    struct slice stream = text_of(envelope, TARGET_STREAM, arena);
    struct slice part = text_of(envelope, TARGET_PART, arena);
    const char *slash = stream.size == 0 ? NULL : memrchr(stream.data, '/', stream.size);
    if (slash != NULL)
        stream = text_from(stream, (size_t)(slash - stream.data) + 1);
    bool error = slice_equal(stream, SLICE("stderr"));
    if (error || slice_equal(stream, SLICE("stdout")))
        peel_named(peel, stream, "stream");
    if (part.size == 0)
        return;
    bool more = text_begins(part, SLICE("P")) || slice_equal(part, SLICE("true"));
    peel->part = more ? PART_MORE : PART_WHOLE;
    peel->stream = error ? 2 : 1;
}

static void set_times(struct peel *peel, const struct envelope *envelope, struct arena *arena) {
    struct slice time = text_of(envelope, TARGET_TIME, arena);
    struct slice arrived = text_of(envelope, TARGET_ARRIVED, arena);
    uint64_t arrived_ns;
    if (time.size > 0 && envelope->form->is_utc && text_is_digit(time.data[time.size - 1]) &&
        memchr(time.data, ':', time.size) != NULL)
        time = slice_of(arena_format(arena, "%.*sZ", (int)time.size, time.data));
    if (time.size > 0)
        transport_set_time(peel, time);
    if (text_number(arrived, 19, &arrived_ns) && arrived_ns > 0 && arrived_ns <= INT64_MAX)
        peel->frame->observed_ns = arrived_ns;
}

// "ValueError: bad shard"; empty: not said.
static struct slice raised_of(const struct envelope *envelope, struct arena *arena) {
    struct slice type = text_of(envelope, TARGET_RAISED, arena);
    struct slice reason = text_of(envelope, TARGET_REASON, arena);
    if (!is_name(type))
        return (struct slice){NULL, 0};
    return slice_of(arena_format(arena, "%.*s: %.*s", (int)type.size, type.data, (int)reason.size,
                                 reason.data == NULL ? "" : reason.data));
}

static struct slice trace_of(const struct envelope *envelope, struct arena *arena) {
    struct token value;
    bool is_text = envelope_value(envelope, TARGET_TRACE, &value) && value.kind == TOKEN_STRING;
    return is_text ? token_decode(&value, arena) : (struct slice){NULL, 0};
}

static bool holds(struct slice text, struct slice part) {
    return part.size == 0 ||
           (text.size > 0 && memmem(text.data, text.size, part.data, part.size) != NULL);
}

// What a logger keeps of an exception beside the message stands on lines of its own behind it. ECS
// has the places without what Python writes above and below them.
static void add_raised(struct peel *peel, const struct envelope *envelope, struct arena *arena) {
    struct slice message = text_trim(peel->text);
    struct slice trace = trace_of(envelope, arena), raised = raised_of(envelope, arena);
    bool has_trace = text_trim(trace).size > 0 && !holds(message, text_trim(trace));
    bool is_bare = has_trace && text_begins(trace, SLICE("  File \""));
    const struct slice parts[] = {
        message,
        is_bare ? SLICE("\nTraceback (most recent call last):") : SLICE(""),
        has_trace ? SLICE("\n") : SLICE(""),
        has_trace ? trace : SLICE(""),
        holds(message, raised) || holds(trace, raised) ? SLICE("") : SLICE("\n"),
        holds(message, raised) || holds(trace, raised) ? SLICE("") : raised,
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    size_t size = 0;
    for (int i = 0; i < PARTS; i++)
        size += parts[i].size;
    if (size == message.size)
        return;
    char *text = arena_take(arena, size);
    size = 0;
    for (int i = 0; i < PARTS; i++) {
        if (parts[i].size > 0)
            memcpy(text + size, parts[i].data, parts[i].size);
        size += parts[i].size;
    }
    peel->text = (struct slice){text, size};
}

bool carrier_set(struct peel *peel, const struct envelope *envelope, struct arena *arena) {
    struct token message;
    if (!envelope_value(envelope, TARGET_MESSAGE, &message))
        return false;
    set_times(peel, envelope, arena);
    set_program(peel, envelope, arena);
    set_path(peel, text_of(envelope, TARGET_PATH, arena));
    set_names(peel, envelope, arena);
    set_numbers(peel, envelope, arena);
    set_stream(peel, envelope, arena);
    peel->text = message.kind == TOKEN_STRING  ? token_decode(&message, arena)
                 : message.kind == TOKEN_ARRAY ? bytes_of(&message, arena)
                                               : token_slice(&message);
    if (envelope->form->has_blank)
        peel_blank(peel);
    enum frame_level level =
        level_of_text(text_of(envelope, TARGET_LEVEL, arena), envelope->form->scale);
    if (level != LEVEL_NOT_SAID)
        peel->frame->level = level;
    add_raised(peel, envelope, arena);
    return true;
}

enum decode_category carrier_refuse(struct slice object, struct decode_fault *fault) {
    struct json_pairs pairs = json_pairs_of(object);
    struct token key, value;
    char names[160] = "";
    size_t size = 0;
    int count = 0;
    for (; json_pairs_next(&pairs, &key, &value); count++) {
        if (count >= KEYS_TOLD || size + key.size + 3 >= sizeof names)
            continue;
        size += (size_t)snprintf(names + size, sizeof names - size, "%s%.*s", size > 0 ? ", " : "",
                                 (int)key.size, key.text);
    }
    return fault_set(fault, DECODE_UNKNOWN_ENVELOPE, SLICE(""),
                     "an object with keys %s%s: no envelope is known with these", names,
                     count > KEYS_TOLD ? ", …" : "");
}

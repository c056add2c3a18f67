// SPDX-License-Identifier: Apache-2.0
// One pass over the fields; few of them matter.
#include "receivers/decode/line/journal.h"

#include "base/text/cut.h"
#include "base/text/log_time.h"
#include "base/text/rfc3339.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/line/level.h"

#include <assert.h>

enum field {
    FIELD_MESSAGE,
    FIELD_TIME,
    FIELD_HOST,
    FIELD_TRANSPORT,
    FIELD_PROGRAM,
    FIELD_PRIORITY,
    FIELD_CONTAINER,
    FIELD_LOG, // the following three are Docker's
    FIELD_STREAM,
    FIELD_DOCKER_TIME,
    FIELD_COUNT
};

static const struct slice FIELDS[FIELD_COUNT] = {
    [FIELD_MESSAGE] = {"MESSAGE", 7},
    [FIELD_TIME] = {"__REALTIME_TIMESTAMP", 20},
    [FIELD_HOST] = {"_HOSTNAME", 9},
    [FIELD_TRANSPORT] = {"_TRANSPORT", 10},
    [FIELD_PROGRAM] = {"SYSLOG_IDENTIFIER", 17},
    [FIELD_PRIORITY] = {"PRIORITY", 8},
    [FIELD_CONTAINER] = {"CONTAINER_ID", 12},
    [FIELD_LOG] = {"log", 3},
    [FIELD_STREAM] = {"stream", 6},
    [FIELD_DOCKER_TIME] = {"time", 4},
};

static enum field find_field(struct slice key) {
    enum field field = 0;
    while (field < FIELD_COUNT && !slice_equal(key, FIELDS[field]))
        field++;
    return field;
}

// Microseconds in decimal digits; 0 when they are none or too many.
static uint64_t read_time(struct slice text) {
    uint64_t usec;
    return text_number(text, 17, &usec) && usec <= (uint64_t)INT64_MAX / 1000 ? usec * 1000 : 0;
}

// -- Export ---------------------------------------------------------------------------------------

static uint32_t keep(char *to, size_t max, struct slice value) {
    size_t size = value.size < max ? value.size : max;
    if (size > 0)
        memcpy(to, value.data, size);
    return (uint32_t)size;
}

// Both the transport and the identifier say it of the kernel's own lines.
static void set_origin(enum frame_origin *origin, struct slice value) {
    if (!slice_equal(value, SLICE("kernel")))
        *origin = ORIGIN_PROGRAM;
    else if (*origin == ORIGIN_UNKNOWN)
        *origin = ORIGIN_KERNEL;
}

static void set_field(struct journal_export *journal, struct slice key, struct slice value) {
    switch (find_field(key)) {
    case FIELD_MESSAGE:
        journal->has_message = true;
        journal->cut = value.size > JOURNAL_MESSAGE_MAX;
        journal->message_size = keep(journal->message, JOURNAL_MESSAGE_MAX, value);
        break;
    case FIELD_TIME:
        journal->has_time = true;
        journal->unix_ns = read_time(value);
        break;
    case FIELD_HOST:
        journal->has_host = value.size > 0;
        journal->host_size = keep(journal->host, JOURNAL_HOST_MAX, value);
        break;
    case FIELD_PROGRAM:
        journal->has_program = true;
        journal->program_size = keep(journal->program, JOURNAL_HOST_MAX, value);
        set_origin(&journal->origin, value);
        break;
    case FIELD_TRANSPORT:
        set_origin(&journal->origin, value);
        break;
    default:
        break;
    }
}

// Bytes of a binary field; behind the last one stands a newline.
static void binary_bytes(struct journal_export *journal, struct slice bytes) {
    assert(journal->value_size <= JOURNAL_MESSAGE_MAX);
    for (size_t i = 0; i < bytes.size && journal->in_binary; i++) {
        unsigned char byte = (unsigned char)bytes.data[i];
        if (journal->length_bytes < 8) {
            journal->binary_left |= (uint64_t)byte << (8 * journal->length_bytes++);
            continue;
        }
        if (journal->binary_left == 0) {
            journal->in_binary = false;
            break;
        }
        journal->binary_left--;
        if (journal->value_size < JOURNAL_MESSAGE_MAX)
            journal->value[journal->value_size++] = (char)byte;
    }
    if (!journal->in_binary)
        set_field(journal, (struct slice){journal->key, journal->key_size},
                  (struct slice){journal->value, journal->value_size});
}

static void take_line(struct journal_export *journal, struct slice line) {
    struct slice value;
    if (text_find(line, SLICE("="), &value)) {
        set_field(journal, text_until(line, '='), value);
        return;
    }
    journal->in_binary = true;
    journal->length_bytes = journal->value_size = 0;
    journal->binary_left = 0;
    journal->key_size = keep(journal->key, JOURNAL_KEY_MAX, line);
}

static bool starts_export(struct slice line) {
    return text_begins(line, SLICE("__CURSOR=")) ||
           text_begins(line, SLICE("__REALTIME_TIMESTAMP="));
}

bool journal_export_owns(const struct journal_export *journal, struct slice line) {
    return journal->active || starts_export(line);
}

// Whether the line is the first of another record.
static bool starts_next(const struct journal_export *journal, struct slice line) {
    if (journal->lines == 0)
        return false;
    if (text_begins(line, SLICE("__CURSOR=")))
        return !journal->in_binary || text_begins(line, SLICE("__CURSOR=s="));
    return !journal->in_binary && journal->has_time &&
           text_begins(line, SLICE("__REALTIME_TIMESTAMP="));
}

bool journal_export_end(struct journal_export *journal, struct arena *arena,
                        struct journal_record *record) {
    assert(journal->message_size <= JOURNAL_MESSAGE_MAX && journal->host_size <= JOURNAL_HOST_MAX);
    if (journal->lines == 0)
        return false;
    *record = (struct journal_record){.origin = journal->origin,
                                      .time_ns = journal->unix_ns,
                                      .cut = journal->cut || journal->in_binary,
                                      .position = journal->position,
                                      .lines = journal->lines};
    // Of a record whose beginning was not seen nothing can be told.
    if (journal->has_message && journal->has_time)
        record->message =
            arena_copy(arena, (struct slice){journal->message, journal->message_size});
    if (journal->has_host)
        record->host = arena_copy(arena, (struct slice){journal->host, journal->host_size});
    if (journal->has_program)
        record->program =
            arena_copy(arena, (struct slice){journal->program, journal->program_size});
    journal->has_message = journal->has_host = journal->has_program = false;
    journal->has_time = journal->cut = journal->in_binary = false;
    journal->origin = ORIGIN_UNKNOWN;
    journal->unix_ns = 0;
    journal->lines = 0;
    journal->message_size = journal->host_size = journal->program_size = 0;
    return true;
}

bool journal_export_line(struct journal_export *journal, struct slice line, uint64_t position,
                         struct arena *arena, struct journal_record *record) {
    bool ended = false;
    journal->active = true;
    if (starts_next(journal, line))
        ended = journal_export_end(journal, arena, record);
    if (journal->lines++ == 0)
        journal->position = position;
    if (journal->in_binary) {
        binary_bytes(journal, line);
        binary_bytes(journal, SLICE("\n"));
    } else if (line.size == 0) {
        assert(!ended);
        ended = journal_export_end(journal, arena, record);
    } else {
        take_line(journal, line);
    }
    return ended;
}

// -- JSON -----------------------------------------------------------------------------------------

// Text that is no UTF-8 comes as an array of its bytes, a field that stands twice as one of texts:
// the first is taken.
static enum decode_category read_array(const struct token *array, enum field field,
                                       struct arena *arena, struct slice *text,
                                       struct decode_fault *fault) {
    char *out = arena_take(arena, array->size);
    size_t size = 0;
    struct json_items items = json_items_of(array);
    for (struct token item; json_items_next(&items, &item);) {
        if (item.kind == TOKEN_STRING && size == 0) {
            *text = token_decode(&item, arena);
            return DECODE_OK;
        }
        if (item.kind != TOKEN_INTEGER || item.integer < 0 || item.integer > 255)
            return fault_set(fault, DECODE_WRONG_TYPE, FIELDS[field],
                             "found an array with something else than bytes, expected a text or an "
                             "array of the numbers 0 to 255");
        out[size++] = (char)item.integer;
    }
    *text = (struct slice){out, size};
    return DECODE_OK;
}

static void set_member(enum field field, struct slice text, struct journal_record *record) {
    switch (field) {
    case FIELD_MESSAGE:
        record->message = text;
        break;
    case FIELD_TIME:
        record->time_ns = read_time(text);
        break;
    case FIELD_HOST:
        if (text.size > 0)
            record->host = text;
        break;
    case FIELD_PROGRAM:
        record->program = text;
        set_origin(&record->origin, text);
        break;
    case FIELD_TRANSPORT:
        set_origin(&record->origin, text);
        break;
    case FIELD_PRIORITY:
        record->level = level_of_text(text, SCALE_SYSLOG);
        break;
    case FIELD_LOG:
        record->message = text;
        record->is_container = true;
        break;
    case FIELD_STREAM:
        record->stream = text;
        break;
    case FIELD_DOCKER_TIME:
        if (rfc3339_parse(text, &record->time_ns, NULL) != RFC3339_OK ||
            record->time_ns > INT64_MAX)
            record->time_ns = 0;
        break;
    default:
        break;
    }
}

static enum decode_category take_member(enum field field, const struct token *value,
                                        struct arena *arena, struct journal_record *record,
                                        struct decode_fault *fault) {
    struct slice text = {NULL, 0};
    if (value->kind == TOKEN_NULL)
        return DECODE_OK;
    if (value->kind == TOKEN_INTEGER && field == FIELD_TIME)
        text = token_slice(value);
    else if (value->kind == TOKEN_STRING)
        text = token_decode(value, arena);
    else if (value->kind == TOKEN_ARRAY && field < FIELD_LOG) {
        if (read_array(value, field, arena, &text, fault) != DECODE_OK)
            return fault->category;
    } else if (field == FIELD_MESSAGE || field == FIELD_TIME)
        return fault_type(fault, FIELDS[field], value, "a text");
    else
        return DECODE_OK;
    set_member(field, text, record);
    return DECODE_OK;
}

bool journal_is_json(struct slice line) {
    return text_begins(line, SLICE("{\"log\":")) ||
           memmem(line.data, line.size, "\"MESSAGE\"", 9) != NULL ||
           memmem(line.data, line.size, "\"__REALTIME_TIMESTAMP\"", 22) != NULL ||
           memmem(line.data, line.size, "\"log\"", 5) != NULL;
}

enum decode_category journal_json_read(struct slice line, struct arena *arena,
                                       struct journal_record *record, struct decode_fault *fault) {
    struct json_members members = {.first = true};
    struct json_fault json;
    struct token key, value;
    bool known = false, other = false, said = false, by_stream = false;
    const char *end = line.data + line.size;
    const char *at = json_skip_space(line.data, end);
    *record = (struct journal_record){.lines = 1};
    while ((at = json_next_member(&members, at, end, &key, &json)) != NULL && !members.done) {
        at = json_scan_value(at, end, 1, &value, &json);
        enum field field = at == NULL ? FIELD_COUNT : find_field(token_slice(&key));
        if (field == FIELD_COUNT) {
            other = other || !slice_equal(token_slice(&key), SLICE("attrs"));
            continue;
        }
        said = said || field == FIELD_MESSAGE;
        by_stream =
            by_stream || field == FIELD_CONTAINER ||
            (field == FIELD_TRANSPORT && value.size == 6 && memcmp(value.text, "stdout", 6) == 0);
        known = known || field == FIELD_MESSAGE || field == FIELD_TIME || field == FIELD_LOG;
        enum decode_category category = take_member(field, &value, arena, record, fault);
        if (category != DECODE_OK)
            return category;
    }
    at = json_read_end(at, end, &json);
    if (at == NULL)
        return fault_json(fault, line, &json);
    if (by_stream) // the priority is that of stdout or stderr
        record->level = LEVEL_NOT_SAID;
    // Other carriers have a "log" or a "MESSAGE", too (rows/envelopes.forms).
    if (!known || (record->is_container && (other || record->time_ns == 0)) ||
        (!record->is_container && (record->time_ns == 0 || !said)))
        return DECODE_NOTHING;
    return DECODE_OK;
}

// -- dmesg --json ---------------------------------------------------------------------------------

bool dmesg_json_owns(struct dmesg_json *dmesg, struct slice line) {
    if (line.size == 0 || line.size > JOURNAL_MESSAGE_MAX * 2)
        return dmesg->active;
    struct slice text = text_trim(line);
    if (!dmesg->active && text_skip(&text, SLICE("\"dmesg\":"))) {
        text_skip_blanks(&text);
        dmesg->active = slice_equal(text, SLICE("["));
        return false;
    }
    return dmesg->active;
}

// "100.000001", as microseconds.
static bool read_seconds(struct slice text, uint64_t *usec) {
    uint64_t ns;
    if (!log_time_seconds(&text, &ns))
        return false;
    *usec = ns / 1000;
    return true;
}

static bool read_text(struct slice text, struct dmesg_json *dmesg, struct arena *arena) {
    struct json_fault json;
    struct token value;
    if (json_scan_value(text.data, text.data + text.size, 1, &value, &json) == NULL ||
        value.kind != TOKEN_STRING)
        return false;
    struct slice message = token_decode(&value, arena);
    dmesg->cut = message.size > JOURNAL_MESSAGE_MAX;
    dmesg->message_size = keep(dmesg->message, JOURNAL_MESSAGE_MAX, message);
    return true;
}

bool dmesg_json_end(struct dmesg_json *dmesg, struct arena *arena, struct journal_record *record) {
    if (dmesg->lines == 0)
        return false;
    *record = (struct journal_record){.origin = dmesg->priority >> 3 == 0 ? ORIGIN_KERNEL
                                                                          : ORIGIN_PROGRAM,
                                      .boot_us = dmesg->boot_us,
                                      .has_boot = dmesg->has_time,
                                      .cut = dmesg->cut,
                                      .position = dmesg->position,
                                      .lines = dmesg->lines};
    if (dmesg->has_message)
        record->message = arena_copy(arena, (struct slice){dmesg->message, dmesg->message_size});
    dmesg->has_message = dmesg->has_time = dmesg->cut = false;
    dmesg->priority = 0;
    dmesg->lines = 0;
    return true;
}

bool dmesg_json_line(struct dmesg_json *dmesg, struct slice line, uint64_t position,
                     struct arena *arena, struct journal_record *record) {
    struct slice text = text_trim(line);
    if (dmesg->lines++ == 0)
        dmesg->position = position;
    if (text_begins(text, SLICE("]")))
        dmesg->active = false;
    if (text_begins(text, SLICE("}")) || text_begins(text, SLICE("]")))
        return dmesg_json_end(dmesg, arena, record);
    if (text_skip(&text, SLICE("\"pri\":"))) {
        text_skip_blanks(&text);
        text_take_number(&text, 1, 4, &dmesg->priority);
    } else if (text_skip(&text, SLICE("\"time\":"))) {
        dmesg->has_time = read_seconds(text, &dmesg->boot_us);
    } else if (text_skip(&text, SLICE("\"msg\":"))) {
        text_skip_blanks(&text);
        dmesg->has_message = read_text(text, dmesg, arena);
    }
    return false;
}

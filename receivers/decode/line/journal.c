// SPDX-License-Identifier: Apache-2.0
// What does a record of the journal say that the kernel said, and when? One pass over the fields;
// five of them matter.
#include "receivers/decode/line/journal.h"

#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"

enum field { FIELD_MESSAGE, FIELD_TIME, FIELD_HOST, FIELD_TRANSPORT, FIELD_PROGRAM, FIELD_COUNT };

static const struct slice FIELDS[FIELD_COUNT] = {
    [FIELD_MESSAGE] = {"MESSAGE", 7},
    [FIELD_TIME] = {"__REALTIME_TIMESTAMP", 20},
    [FIELD_HOST] = {"_HOSTNAME", 9},
    [FIELD_TRANSPORT] = {"_TRANSPORT", 10},
    [FIELD_PROGRAM] = {"SYSLOG_IDENTIFIER", 17},
};

static enum field find_field(struct slice key) {
    enum field field = 0;
    while (field < FIELD_COUNT && !slice_equal(key, FIELDS[field]))
        field++;
    return field;
}

// Microseconds in decimal digits; 0 when they are none or too many.
static uint64_t read_time(struct slice text) {
    uint64_t usec = 0;
    if (text.size == 0 || text.size > 17)
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return 0;
        usec = usec * 10 + (uint64_t)(text.data[i] - '0');
    }
    return usec > UINT64_MAX / 1000 ? 0 : usec * 1000;
}

// -- Export ---------------------------------------------------------------------------------------

static uint32_t keep(char *to, size_t max, struct slice value) {
    size_t size = value.size < max ? value.size : max;
    if (size > 0)
        memcpy(to, value.data, size);
    return (uint32_t)size;
}

static void set_field(struct journal_export *journal, struct slice key, struct slice value) {
    switch (find_field(key)) {
    case FIELD_MESSAGE:
        journal->has_message = true;
        journal->message_size = keep(journal->message, JOURNAL_MESSAGE_MAX, value);
        break;
    case FIELD_TIME:
        journal->unix_ns = read_time(value);
        break;
    case FIELD_HOST:
        journal->has_host = value.size > 0;
        journal->host_size = keep(journal->host, JOURNAL_HOST_MAX, value);
        break;
    case FIELD_TRANSPORT:
    case FIELD_PROGRAM:
        // Both say it of the kernel's own lines.
        journal->has_origin = true;
        journal->is_foreign = journal->is_foreign || !slice_equal(value, SLICE("kernel"));
        break;
    default:
        break;
    }
}

static void begin_record(struct journal_export *journal) {
    journal->handed_on = journal->has_message = journal->has_host = false;
    journal->has_origin = journal->is_foreign = false;
    journal->unix_ns = 0;
    journal->message_size = journal->host_size = 0;
}

static bool hand_on(struct journal_export *journal, struct arena *arena,
                    struct kernel_record *record) {
    if (journal->handed_on || !journal->has_message)
        return false;
    journal->handed_on = true;
    *record =
        (struct kernel_record){.unix_ns = journal->unix_ns, .is_foreign = journal->is_foreign};
    record->text = arena_copy(arena, (struct slice){journal->message, journal->message_size});
    if (journal->has_host)
        record->host = arena_copy(arena, (struct slice){journal->host, journal->host_size});
    return true;
}

static bool is_whole(const struct journal_export *journal) {
    return journal->has_message && journal->has_host && journal->has_origin &&
           journal->unix_ns != 0;
}

// Bytes of a binary field; behind the last one stands a newline.
static void binary_bytes(struct journal_export *journal, struct slice bytes) {
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
    const char *equals = memchr(line.data, '=', line.size);
    if (equals != NULL) {
        size_t size = (size_t)(equals - line.data);
        set_field(journal, (struct slice){line.data, size},
                  (struct slice){equals + 1, line.size - size - 1});
        return;
    }
    journal->in_binary = true;
    journal->length_bytes = journal->value_size = 0;
    journal->binary_left = 0;
    journal->key_size = keep(journal->key, JOURNAL_KEY_MAX, line);
}

// "NAME=", as no line of another transport begins.
static bool is_field(struct slice line) {
    size_t size = 0;
    while (size < line.size &&
           ((line.data[size] >= 'A' && line.data[size] <= 'Z') ||
            (line.data[size] >= '0' && line.data[size] <= '9') || line.data[size] == '_'))
        size++;
    return size > 0 && size < line.size && line.data[size] == '=';
}

bool journal_export_line(struct journal_export *journal, struct slice line, struct arena *arena,
                         struct kernel_record *record, bool *complete) {
    static const struct slice start = {"__CURSOR=", 9};
    bool starts = line.size >= start.size && memcmp(line.data, start.data, start.size) == 0;
    *complete = false;
    if (!journal->active && !starts)
        return is_field(line);
    journal->active = true;
    if (journal->in_binary) {
        binary_bytes(journal, line);
        binary_bytes(journal, SLICE("\n"));
    } else if (starts || line.size == 0) {
        *complete = hand_on(journal, arena, record);
        begin_record(journal);
        return true;
    } else {
        take_line(journal, line);
    }
    if (is_whole(journal))
        *complete = hand_on(journal, arena, record);
    return true;
}

// -- JSON -----------------------------------------------------------------------------------------

// Text that is no UTF-8 comes as an array of its bytes.
static enum decode_category read_bytes(const struct token *array, struct arena *arena,
                                       struct slice *text, struct decode_fault *fault) {
    char *out = arena_take(arena, array->size);
    size_t size = 0;
    const char *at = array->text + 1, *end = array->text + array->size;
    struct json_fault ignored;
    while ((at = json_skip_space(at, end)) < end && *at != ']') {
        struct token number;
        at = json_scan_value(at, end, 2, &number, &ignored);
        if (at == NULL || number.kind != TOKEN_INTEGER || number.integer < 0 ||
            number.integer > 255)
            return fault_set(fault, DECODE_WRONG_TYPE, SLICE("MESSAGE"),
                             "found an array with something else than bytes, expected a text or an "
                             "array of the numbers 0 to 255");
        out[size++] = (char)number.integer;
        at = json_skip_space(at, end);
        if (at < end && *at == ',')
            at++;
    }
    *text = (struct slice){out, size};
    return DECODE_OK;
}

static enum decode_category take_member(enum field field, const struct token *value,
                                        struct arena *arena, struct kernel_record *record,
                                        struct decode_fault *fault) {
    if (value->kind == TOKEN_NULL)
        return DECODE_OK;
    if (field == FIELD_MESSAGE && value->kind == TOKEN_ARRAY)
        return read_bytes(value, arena, &record->text, fault);
    if (field == FIELD_TIME && value->kind == TOKEN_INTEGER) {
        record->unix_ns = read_time(token_slice(value));
        return DECODE_OK;
    }
    // A field that stands twice comes as an array; only the message matters so much.
    if (value->kind != TOKEN_STRING)
        return field == FIELD_MESSAGE || field == FIELD_TIME
                   ? fault_type(fault, FIELDS[field], value, "a text")
                   : DECODE_OK;
    struct slice text = token_decode(value, arena);
    if (field == FIELD_MESSAGE)
        record->text = text;
    else if (field == FIELD_TIME)
        record->unix_ns = read_time(text);
    else if (field == FIELD_HOST && text.size > 0)
        record->host = text;
    else if (field == FIELD_TRANSPORT || field == FIELD_PROGRAM)
        record->is_foreign = record->is_foreign || !slice_equal(text, SLICE("kernel"));
    return DECODE_OK;
}

enum decode_category journal_json_read(struct slice line, struct arena *arena,
                                       struct kernel_record *record, struct decode_fault *fault) {
    struct json_members members = {.first = true};
    struct json_fault json;
    struct token key, value;
    const char *end = line.data + line.size;
    const char *at = json_skip_space(line.data, end);
    *record = (struct kernel_record){0};
    while ((at = json_next_member(&members, at, end, &key, &json)) != NULL && !members.done) {
        at = json_scan_value(at, end, 1, &value, &json);
        if (at == NULL)
            break;
        enum field field = find_field(token_slice(&key));
        if (field == FIELD_COUNT)
            continue;
        enum decode_category category = take_member(field, &value, arena, record, fault);
        if (category != DECODE_OK)
            return category;
    }
    if (at == NULL)
        return fault_json(fault, line, &json);
    at = json_skip_space(at, end);
    if (at != end) {
        json_fail(&json, at, "more than white space after the object");
        return fault_json(fault, line, &json);
    }
    return DECODE_OK;
}

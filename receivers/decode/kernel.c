// SPDX-License-Identifier: Apache-2.0
// Which lines of a kernel log does a detector look for, and what do they say?
//
// The transport's prefix is cut, then the text is offered to the two parsers; what neither knows is
// nothing. Only a line that is handed on is copied (when it is no UTF-8) and has its host made a
// number. O(line), arena memory for what is handed on.
#include "receivers/decode/kernel.h"

#include "base/text/utf8.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/kernel_log/aer.h"
#include "receivers/decode/kernel_log/xid.h"
#include "receivers/decode/line/journal.h"

// The lines that tell of a lost GPU stand close together.
static const uint64_t LOST_GPU_SPAN_NS = UINT64_C(2000000000);

// The first of those lines names the GPU, the last says that it is lost.
struct lost_gpu {
    pci_address address; // where `since_ns` is not 0
    uint64_t time_ns;    // 0: none
    string_id node;
};

struct kernel_log {
    uint64_t observed_ns;
    uint64_t boot_ns;
    string_id node;
    struct lost_gpu lost;
    struct journal_export journal;
};

_Static_assert(sizeof(struct lost_gpu) <= KERNEL_STATE_SIZE, "what kernel_tagged remembers");

// The text itself when it is UTF-8, else a copy with a question mark for each byte that is not.
static struct slice clean_text(struct slice text, struct arena *arena) {
    uint32_t code;
    size_t at = 0, length;
    while (at < text.size && (length = utf8_decode(text, at, &code)) > 0)
        at += length;
    if (at == text.size)
        return text;
    struct slice copy = arena_copy(arena, text);
    char *bytes = (char *)(uintptr_t)copy.data;
    while (at < copy.size) {
        length = utf8_decode(copy, at, &code);
        if (length == 0)
            bytes[at] = '?';
        at += length == 0 ? 1 : length;
    }
    return copy;
}

static enum kernel_xid_parse parse(struct slice text, struct kernel_line *line) {
    enum kernel_xid_parse parsed = kernel_xid_parse(text, line);
    if (parsed != KERNEL_XID_NONE)
        return parsed;
    return kernel_aer_parse(text, line) ? KERNEL_XID_LINE : KERNEL_XID_NONE;
}

// What the text says; false when it is nothing that a detector looks for.
static bool read_text(struct slice text, struct arena *arena, struct kernel_line *line,
                      enum kernel_xid_parse *parsed) {
    *line = (struct kernel_line){.address = PCI_NONE, .port = PCI_NONE, .pid = -1};
    *parsed = parse(text, line);
    if (*parsed == KERNEL_XID_NONE)
        return false;
    struct slice clean = clean_text(text, arena);
    if (clean.data != text.data) {
        *line = (struct kernel_line){.address = PCI_NONE, .port = PCI_NONE, .pid = -1};
        *parsed = parse(clean, line);
    }
    line->text = clean;
    return *parsed != KERNEL_XID_NONE;
}

// Joins the lines that tell of a lost GPU; false for the first, which says nothing by itself.
static bool join_lost(struct lost_gpu *lost, enum kernel_xid_parse parsed,
                      const struct event *event, struct kernel_line *line) {
    if (parsed == KERNEL_XID_FIRST) {
        *lost = (struct lost_gpu){line->address, event->time_ns, event->node};
        return false;
    }
    if (parsed != KERNEL_XID_LAST)
        return true;
    uint64_t apart_ns = event->time_ns > lost->time_ns ? event->time_ns - lost->time_ns
                                                       : lost->time_ns - event->time_ns;
    if (lost->time_ns != 0 && lost->node == event->node && apart_ns <= LOST_GPU_SPAN_NS)
        line->address = lost->address;
    *lost = (struct lost_gpu){0};
    return line->address != PCI_NONE;
}

static void set_payload(struct event *event, const struct kernel_line *line, struct arena *arena) {
    struct kernel_line *payload = arena_take(arena, sizeof *payload);
    *payload = *line;
    event->kind = EVENT_KERNEL;
    event->rank = RANK_NONE;
    event->kernel = payload;
}

static bool time_of(const struct kernel_log *log, const struct kernel_record *record,
                    uint64_t *time_ns) {
    *time_ns = record->unix_ns;
    if (*time_ns == 0 && record->has_since_boot && log->boot_ns != 0 &&
        record->since_boot_ns <= UINT64_MAX - log->boot_ns)
        *time_ns = log->boot_ns + record->since_boot_ns;
    return *time_ns != 0;
}

static enum decode_category refuse_time(const struct kernel_record *record,
                                        struct decode_fault *fault) {
    if (record->has_since_boot)
        return fault_set(fault, DECODE_MISSING_TIMESTAMP, SLICE(""),
                         "only the time since boot, and it is not known when that was: use "
                         "`dmesg --time-format iso` or `journalctl -k -o json`");
    if (record->has_day_only)
        return fault_set(fault, DECODE_MISSING_TIMESTAMP, SLICE(""),
                         "a date without a year, and the age of the input is not known: use "
                         "`journalctl -k -o json`");
    return fault_set(fault, DECODE_MISSING_TIMESTAMP, SLICE(""),
                     "no time in front of the kernel's text: use `dmesg --time-format iso` or "
                     "`journalctl -k -o json`");
}

static enum decode_category read_record(struct kernel_log *log, const struct kernel_record *record,
                                        struct arena *arena, struct event *event,
                                        struct decode_fault *fault) {
    struct kernel_line line;
    enum kernel_xid_parse parsed;
    bool has_time = time_of(log, record, &event->time_ns);
    if (record->text.data == NULL || record->is_foreign ||
        !read_text(record->text, arena, &line, &parsed))
        return DECODE_NOTHING;
    if (!has_time)
        return refuse_time(record, fault);
    event->node = log->node;
    if (record->host.size > 0)
        event->node = intern(clean_text(record->host, arena));
    if (event->node == STRING_REFUSED)
        return fault_set(fault, DECODE_LIMIT, SLICE("host"),
                         "a new name, and the bound on distinct names is reached");
    if (!join_lost(&log->lost, parsed, event, &line))
        return DECODE_NOTHING;
    if (record->has_since_boot)
        line.boot_us = record->since_boot_ns / 1000;
    set_payload(event, &line, arena);
    return DECODE_OK;
}

static void begin(void *state, const struct decoder_input *input) {
    struct kernel_log *log = state;
    log->observed_ns = input->observed_ns;
    if (input->tail.size > 0 && !kernel_log_boot_of(input->tail, input->observed_ns, &log->boot_ns))
        log->boot_ns = 0;
}

void kernel_log_set_place(void *state, uint64_t boot_ns, string_id node) {
    struct kernel_log *log = state;
    log->boot_ns = boot_ns;
    log->node = node;
}

bool kernel_log_boot_of(struct slice tail, uint64_t observed_ns, uint64_t *boot_ns) {
    while (tail.size > 0) {
        const char *newline = memrchr(tail.data, '\n', tail.size);
        size_t from = newline == NULL ? 0 : (size_t)(newline - tail.data) + 1;
        struct kernel_record record;
        kernel_record_read((struct slice){tail.data + from, tail.size - from}, 0, &record);
        if (record.has_since_boot && record.since_boot_ns < observed_ns) {
            *boot_ns = observed_ns - record.since_boot_ns;
            return true;
        }
        tail.size = from == 0 ? 0 : from - 1;
    }
    return false;
}

static enum decode_category decode(void *state, struct slice line, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct kernel_log *log = state;
    struct kernel_record record;
    bool complete;
    event->time_ns = 0;
    event->job = event->node = STRING_NONE;
    while (line.size > 0 && !log->journal.in_binary && line.data[line.size - 1] == '\r')
        line.size--;
    if (journal_export_line(&log->journal, line, arena, &record, &complete))
        return complete ? read_record(log, &record, arena, event, fault) : DECODE_NOTHING;
    if (line.size > 0 && line.data[0] == '{') {
        enum decode_category category = journal_json_read(line, arena, &record, fault);
        if (category != DECODE_OK)
            return category;
    } else {
        kernel_record_read(line, log->observed_ns, &record);
    }
    return read_record(log, &record, arena, event, fault);
}

const struct decoder_type decoder_kernel_log = {
    .name = "kernel_log",
    .state_size = sizeof(struct kernel_log),
    .begin = begin,
    .decode = decode,
};

enum decode_category kernel_tagged(void *state, struct slice object, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct tagged_keys keys;
    struct slice key;
    struct token value, message = {0};
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value))
        if (slice_equal(key, SLICE("message")))
            message = value;
    enum decode_category category = tagged_keys_end(&keys, event, fault);
    if (category != DECODE_OK)
        return category;
    if (message.kind == TOKEN_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("message"),
                         "a line of the kernel log must have it: the kernel's own text");
    if (message.kind != TOKEN_STRING)
        return fault_type(fault, SLICE("message"), &message, "a text");
    struct kernel_line line;
    enum kernel_xid_parse parsed;
    if (!read_text(token_decode(&message, arena), arena, &line, &parsed) ||
        !join_lost(state, parsed, event, &line))
        return DECODE_NOTHING;
    int32_t rank = event->rank;
    set_payload(event, &line, arena);
    event->rank = rank;
    return DECODE_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Reads how many errors of each kind a PCI device had: lines of a name and a number; the name may
// hold spaces. Unknown names are kept as they are, beyond AER_COUNTERS_MAX they are left out.
#include "receivers/decode/sysfs_aer/sysfs_aer.h"

#include "base/text/cut.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"

#include <assert.h>

enum { COUNT_DIGITS_MAX = 20 };
enum aer_file { FILE_CORRECTABLE, FILE_NONFATAL, FILE_FATAL, FILE_COUNT };
static const struct slice FILE_NAMES[FILE_COUNT] = {
    {"aer_dev_correctable", 19}, {"aer_dev_nonfatal", 16}, {"aer_dev_fatal", 13}};

// What the kernel's documentation calls it, and what the kernel prints.
static const struct {
    const char *documented, *printed;
} SPELLINGS[] = {
    {"Receiver Error", "RxErr"},
    {"Bad TLP", "BadTLP"},
    {"Bad DLLP", "BadDLLP"},
    {"RELAY_NUM Rollover", "Rollover"},
    {"REPLAY_NUM Rollover", "Rollover"},
    {"Replay Timer Timeout", "Timeout"},
    {"Advisory Non-Fatal", "NonFatalErr"},
    {"Advisory Non-Fatal Error", "NonFatalErr"},
    {"Corrected Internal Error", "CorrIntErr"},
    {"Header Log Overflow", "HeaderOF"},
    {"Data Link Protocol", "DLP"},
    {"Surprise Down Error", "SDES"},
    {"Poisoned TLP", "TLP"},
    {"Flow Control Protocol", "FCP"},
    {"Completion Timeout", "CmpltTO"},
    {"Completer Abort", "CmpltAbrt"},
    {"Unexpected Completion", "UnxCmplt"},
    {"Receiver Overflow", "RxOF"},
    {"Malformed TLP", "MalfTLP"},
    {"End to end CRC", "ECRC"},
    {"Unsupported Request", "UnsupReq"},
    {"ACS Violation", "ACSViol"},
    {"Uncorrectable Internal Error", "UncorrIntErr"},
    {"MC Blocked TLP", "BlockedTLP"},
    {"AtomicOp Egress Blocked", "AtomicOpBlocked"},
    {"TLP Prefix Blocked", "TLPBlockedErr"},
    {"TLP Prefix Blocked Error", "TLPBlockedErr"},
    {"Poisoned TLP Egress Blocked", "PoisonTLPBlocked"},
};

static struct slice printed_name(struct slice name) {
    for (size_t i = 0; i < sizeof SPELLINGS / sizeof SPELLINGS[0]; i++)
        if (slice_equal(name, slice_of(SPELLINGS[i].documented)))
            return slice_of(SPELLINGS[i].printed);
    return name;
}

// One file's part of the counters.
struct part {
    struct aer_counter *counters;
    uint32_t *count;
    uint64_t *total;
    bool *has;
};

static struct part part_of(struct aer_counters *counters, enum aer_file file) {
    assert(file < FILE_COUNT);
    if (file == FILE_CORRECTABLE)
        return (struct part){counters->correctable, &counters->correctable_count,
                             &counters->correctable_total, &counters->has_correctable};
    if (file == FILE_NONFATAL)
        return (struct part){counters->nonfatal, &counters->nonfatal_count,
                             &counters->nonfatal_total, &counters->has_nonfatal};
    return (struct part){counters->fatal, &counters->fatal_count, &counters->fatal_total,
                         &counters->has_fatal};
}

// Splits "name 12"; false when no number stands at the end.
static bool split_line(struct slice line, struct slice *name, uint64_t *count) {
    size_t at = line.size;
    while (at > 0 && text_is_digit(line.data[at - 1]))
        at--;
    *name = text_trim((struct slice){line.data, at});
    return name->size > 0 && name->size < at &&
           text_number(text_from(line, at), COUNT_DIGITS_MAX, count);
}

static enum decode_category parse_file(struct slice text, enum aer_file file,
                                       struct aer_counters *counters, struct decode_fault *fault) {
    struct part part = part_of(counters, file);
    *part.count = 0;
    *part.total = 0;
    *part.has = true;
    unsigned number = 0, found = 0;
    while (text.size > 0) {
        struct slice line = text_trim(text_take_line(&text));
        number++;
        if (line.size == 0)
            continue;
        struct slice name;
        uint64_t count;
        if (!split_line(line, &name, &count))
            return fault_set(fault, DECODE_WRONG_TYPE, FILE_NAMES[file],
                             "line %u is not a name and a whole number such as \"RxErr 12\"",
                             number);
        found++;
        if (text_begins(name, SLICE("TOTAL_ERR_")))
            *part.total = count;
        else if (*part.count < AER_COUNTERS_MAX)
            part.counters[(*part.count)++] = (struct aer_counter){printed_name(name), count};
    }
    if (found == 0)
        return fault_set(fault, DECODE_MISSING_FIELD, FILE_NAMES[file],
                         "no counter in it; a line looks like \"RxErr 12\"");
    return DECODE_OK;
}

static void fill_event(struct event *event, const struct aer_counters *counters) {
    event->kind = EVENT_AER_COUNTERS;
    event->aer = counters;
}

// -- Tagged lines ---------------------------------------------------------------------------------

struct aer_keys {
    struct token files[FILE_COUNT], pci_bus_id;
};

static enum decode_category parse_keys(const struct aer_keys *keys, struct arena *arena,
                                       struct aer_counters *counters, struct decode_fault *fault) {
    if (keys->pci_bus_id.kind == TOKEN_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("pci_bus_id"),
                         "the device is not named; it is written like 0000:29:00.0");
    if (keys->pci_bus_id.kind != TOKEN_STRING)
        return fault_type(fault, SLICE("pci_bus_id"), &keys->pci_bus_id, "a text");
    struct slice address = token_decode(&keys->pci_bus_id, arena);
    if (!pci_parse(address, &counters->address))
        return fault_limit(fault, SLICE("pci_bus_id"), &keys->pci_bus_id,
                           "an address like 0000:29:00.0");
    for (enum aer_file file = 0; file < FILE_COUNT; file++) {
        const struct token *token = &keys->files[file];
        if (token->kind == TOKEN_NONE || token->kind == TOKEN_NULL)
            continue;
        if (token->kind != TOKEN_STRING)
            return fault_type(fault, FILE_NAMES[file], token, "the text of the file");
        enum decode_category category =
            parse_file(token_decode(token, arena), file, counters, fault);
        if (category != DECODE_OK)
            return category;
    }
    if (!counters->has_correctable && !counters->has_nonfatal && !counters->has_fatal)
        return fault_set(fault, DECODE_MISSING_FIELD,
                         SLICE("aer_dev_correctable, aer_dev_fatal, aer_dev_nonfatal"),
                         "none of the counter files is there; at least one must be");
    return DECODE_OK;
}

enum decode_category sysfs_aer_tagged(void *state, struct slice object, struct arena *arena,
                                      struct event *event, struct decode_fault *fault) {
    (void)state;
    struct aer_counters *counters = arena_zero(arena, 1, sizeof *counters);
    struct aer_keys keys = {0};
    struct tagged_keys common;
    struct slice key;
    struct token value;
    tagged_keys_begin(&common, object, arena);
    while (tagged_keys_next(&common, &key, &value)) {
        if (slice_equal(key, SLICE("pci_bus_id")))
            keys.pci_bus_id = value;
        for (enum aer_file file = 0; file < FILE_COUNT; file++)
            if (slice_equal(key, FILE_NAMES[file]))
                keys.files[file] = value;
    }
    enum decode_category category = tagged_keys_end(&common, event, fault);
    if (category == DECODE_OK)
        category = parse_keys(&keys, arena, counters, fault);
    if (category == DECODE_OK)
        fill_event(event, counters);
    return category;
}

// -- Files ----------------------------------------------------------------------------------------

struct file_state {
    uint64_t observed_ns;
    pci_address address; // PCI_NONE: the path does not say
    enum aer_file file;
};

static struct slice last_part(struct slice *path) {
    size_t at = path->size;
    while (at > 0 && path->data[at - 1] != '/')
        at--;
    struct slice part = {path->data + at, path->size - at};
    path->size = at == 0 ? 0 : at - 1;
    return part;
}

static void file_begin(void *state, const struct decoder_input *input) {
    struct file_state *self = state;
    struct slice path = input->path;
    struct slice name = last_part(&path);
    struct slice folder = path.size == 0 ? path : last_part(&path);
    *self = (struct file_state){.observed_ns = input->observed_ns, .address = PCI_NONE};
    pci_address address;
    for (enum aer_file file = 0; file < FILE_COUNT; file++)
        if (slice_equal(name, FILE_NAMES[file]) && pci_parse(folder, &address)) {
            self->address = address;
            self->file = file;
        }
}

static enum decode_category file_decode(void *state, struct slice record, struct arena *arena,
                                        struct event *event, struct decode_fault *fault) {
    const struct file_state *self = state;
    if (self->address == PCI_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("path"),
                         "the path does not name device and kind; one ends in "
                         "0000:29:00.0/aer_dev_fatal");
    if (self->observed_ns == 0)
        return fault_set(fault, DECODE_MISSING_TIMESTAMP, SLICE(""),
                         "when the file was read is not known");
    struct aer_counters *counters = arena_zero(arena, 1, sizeof *counters);
    counters->address = self->address;
    enum decode_category category = parse_file(record, self->file, counters, fault);
    if (category != DECODE_OK)
        return category;
    event->time_ns = self->observed_ns;
    event->job = event->node = STRING_NONE;
    event->rank = RANK_NONE;
    fill_event(event, counters);
    return DECODE_OK;
}

const struct decoder_type decoder_sysfs_aer = {.name = "sysfs_aer",
                                               .state_size = sizeof(struct file_state),
                                               .begin = file_begin,
                                               .decode = file_decode};

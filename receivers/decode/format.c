// SPDX-License-Identifier: Apache-2.0
// Recognises the kind of an input.
//
// Magic bytes first; then the shape of the JSON that begins there (lines, array, object over
// several lines); then the top-level keys of the first record that has telling ones, in a fixed
// order of formats; last, text that is no JSON. Looks at 64 lines or 1 MiB at most, one pass a
// record, no memory of its own. Of a long Flight Recorder dump only what comes before its entries
// is looked at.
#include "receivers/decode/format.h"

#include "base/text/cut.h"
#include "receivers/decode/flight_recorder/dump_path.h"
#include "receivers/decode/forms/envelope.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/json/keys.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/launcher/error_file.h"
#include "receivers/decode/line/utf16.h"
#include "receivers/decode/split.h"
#include "receivers/decode/tagged/tagged.h"

#include <assert.h>

// Keys that tell formats apart, as bits.
enum telling_key {
    KEY_SOURCE = 1 << 0,
    KEY_EV = 1 << 1,
    KEY_API_VERSION = 1 << 2, // or kind
    KEY_TYPE = 1 << 3,
    KEY_OBJECT = 1 << 4,
    KEY_ENTRIES = 1 << 5, // or pg_config
    KEY_SCHEMA_VERSION = 1 << 6,
    KEY_EVENTS = 1 << 7, // events or telemetry_events, an array
    KEY_MEMORY = 1 << 8, // what a legacy record measures
    KEY_EVENT = 1 << 9,  // what only an event has
    KEY_SIDECAR = 1 << 10,
    KEY_VERDICT = 1 << 11,
    KEY_PATH = 1 << 12,
    KEY_CATEGORY = 1 << 13,
    KEY_RECORD = 1 << 14,
    KEY_FIELDS = 1 << 15,
    KEY_GPU = 1 << 16, // names a GPU
    KEY_RANK = 1 << 17,
    KEY_JOURNAL = 1 << 18,
    KEY_ITEMS = 1 << 19,     // an array
    KEY_CONTAINER = 1 << 20, // a line as Docker writes it
    KEY_DMESG = 1 << 21,     // what `dmesg --json` prints, an array
    KEY_MESSAGE = 1 << 22,   // an object
    KEY_RAS = 1 << 24,       // of NCCL's RAS
    KEY_HEADER = 1 << 25,    // with the next: of NCCL's Inspector
    KEY_METADATA = 1 << 26,
    KEY_STACK = 1 << 27, // of py-spy
    KEY_CLOUD_EVENT = 1 << 23,
    KEY_PLACE = 1 << 28, // where a process is
    KEY_WORDS = 1 << 29, // a line that a program wrote
    KEY_OTHER = 1 << 30, // none of these, nor of a rank map
};
#define KEY_QUERY_RESULT (1U << 31) // of Prometheus' API

static const struct {
    struct slice name;
    unsigned bits;
} telling_keys[] = {
    {{"source", 6}, KEY_SOURCE},
    {{"ev", 2}, KEY_EV},
    {{"apiVersion", 10}, KEY_API_VERSION},
    {{"kind", 4}, KEY_API_VERSION},
    {{"type", 4}, KEY_TYPE},
    {{"object", 6}, KEY_OBJECT},
    {{"entries", 7}, KEY_ENTRIES},
    {{"pg_config", 9}, KEY_ENTRIES},
    {{"schema_version", 14}, KEY_SCHEMA_VERSION},
    {{"memory_allocated", 16}, KEY_MEMORY},
    {{"memory_mb", 9}, KEY_MEMORY},
    {{"device_used_bytes", 17}, KEY_MEMORY},
    {{"event_type", 10}, KEY_EVENT | KEY_OTHER},
    {{"timestamp_ns", 12}, KEY_EVENT},
    {{"format", 6}, KEY_SIDECAR},
    {{"sessions", 8}, KEY_SIDECAR},
    {{"segments", 8}, KEY_SIDECAR},
    {{"bundle_name", 11}, KEY_SIDECAR},
    {{"files", 5}, KEY_SIDECAR},
    {{"profiles", 8}, KEY_SIDECAR},
    {{"artifacts", 9}, KEY_SIDECAR},
    {{"path", 4}, KEY_PATH},
    {{"category", 8}, KEY_CATEGORY},
    {{"record", 6}, KEY_RECORD},
    {{"fields", 6}, KEY_FIELDS},
    {{"UUID", 4}, KEY_GPU},
    {{"pci_bus_id", 10}, KEY_GPU},
    {{"rank", 4}, KEY_RANK},
    {{"local_rank", 10}, 0},
    {{"gpu", 3}, 0},
    {{"job_id", 6}, 0},
    {{"k8s.job.name", 12}, 0},
    {{"observed_time_ns", 16}, 0},
    {{"k8s.node.name", 13}, KEY_PLACE},
    {{"host.name", 9}, KEY_PLACE},
    {{"k8s.pod.name", 12}, KEY_PLACE},
    {{"k8s.namespace.name", 18}, KEY_PLACE},
    {{"process.pid", 11}, KEY_PLACE},
    {{"message", 7}, KEY_WORDS},
    {{"msg", 3}, KEY_WORDS},
    {{"body", 4}, KEY_WORDS},
    {{"text", 4}, KEY_WORDS},
    {{"__REALTIME_TIMESTAMP", 20}, KEY_JOURNAL},
    {{"log", 3}, KEY_CONTAINER},
    {{"communicators", 13}, KEY_RAS},
    {{"header", 6}, KEY_HEADER},
    {{"metadata", 8}, KEY_METADATA},
    {{"coll_perf", 9}, KEY_HEADER | KEY_METADATA},
    {{"p2p_perf", 8}, KEY_HEADER | KEY_METADATA},
    {{"owns_gil", 8}, KEY_STACK},
    {{"specversion", 11}, KEY_CLOUD_EVENT},
};

// {"resultType": …
static bool is_query_result(const struct json_keys *keys) {
    struct slice text = text_from(keys->text, keys->at);
    if (!text_skip_char(&text, '{'))
        return false;
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\n'))
        text = text_from(text, 1);
    return text_begins(text, SLICE("\"resultType\""));
}

static unsigned key_bits(const struct json_keys *keys) {
    struct slice key = keys->key, text;
    if (keys->value_first == '[' &&
        (slice_equal(key, SLICE("events")) || slice_equal(key, SLICE("telemetry_events"))))
        return KEY_EVENTS;
    if (keys->value_first == '[' && slice_equal(key, SLICE("items")))
        return KEY_ITEMS;
    if (keys->value_first == '[' && slice_equal(key, SLICE("dmesg")))
        return KEY_DMESG;
    if (keys->value_first == '{' && slice_equal(key, SLICE("data")))
        return is_query_result(keys) ? KEY_QUERY_RESULT : KEY_OTHER;
    if (keys->value_first == '{' && slice_equal(key, SLICE("message")))
        return KEY_MESSAGE;
    // A Kubernetes Event has an object under this key.
    if (slice_equal(key, SLICE("source")) && keys->value_first != '"')
        return 0;
    if (text_begins(key, SLICE("allocator_")))
        return KEY_MEMORY;
    if (slice_equal(key, SLICE("event")) && keys->value_first == '"')
        return json_keys_text(keys, &text) && text_begins(text, SLICE("PEER_")) ? KEY_RAS : 0;
    if (slice_equal(key, SLICE("schema")) && keys->value_first == '"' &&
        json_keys_text(keys, &text) && text_begins(text, SLICE("culprit.verdict.")))
        return KEY_VERDICT;
    for (size_t i = 0; i < sizeof telling_keys / sizeof telling_keys[0]; i++) {
        if (slice_equal(key, telling_keys[i].name))
            return telling_keys[i].bits;
    }
    return KEY_OTHER;
}

static bool all_of(unsigned bits, unsigned wanted) {
    return (bits & wanted) == wanted;
}

// Of a rank map only the rank must be there. Who says a GPU or a place of it may say more; else
// nothing else stands there, since programs write objects of their own.
static bool is_rank_map(unsigned bits) {
    if ((bits & KEY_RANK) == 0)
        return false;
    bool is_only_map = (bits & ~(unsigned)(KEY_RANK | KEY_PLACE | KEY_EVENT)) == 0;
    return is_only_map || (bits & KEY_GPU) != 0 ||
           (bits & (KEY_PLACE | KEY_WORDS | KEY_MESSAGE)) == KEY_PLACE;
}

static enum format_kind kind_of_keys(unsigned bits) {
    if ((bits & KEY_VERDICT) != 0)
        return FORMAT_VERDICTS;
    if (all_of(bits, KEY_PATH | KEY_CATEGORY | KEY_RECORD))
        return FORMAT_QUARANTINE;
    if (all_of(bits, KEY_CLOUD_EVENT | KEY_TYPE)) // it has a `source` too
        return FORMAT_NVSENTINEL;
    if ((bits & KEY_QUERY_RESULT) != 0)
        return FORMAT_PROMETHEUS;
    if ((bits & KEY_SOURCE) != 0)
        return FORMAT_TAGGED_LINES;
    if ((bits & KEY_EV) != 0)
        return FORMAT_SPANS;
    if ((bits & KEY_API_VERSION) != 0 || all_of(bits, KEY_TYPE | KEY_OBJECT))
        return FORMAT_KUBERNETES;
    if ((bits & KEY_ENTRIES) != 0)
        return FORMAT_FLIGHT_RECORDER;
    if ((bits & KEY_SCHEMA_VERSION) != 0)
        return all_of(bits, KEY_SIDECAR) && (bits & KEY_EVENT) == 0 ? FORMAT_SIDECAR
                                                                    : FORMAT_STORMLOG;
    if ((bits & (KEY_EVENTS | KEY_MEMORY)) != 0)
        return FORMAT_STORMLOG;
    if ((bits & KEY_RAS) != 0)
        return FORMAT_NCCL_RAS;
    // The last line of a file may break off in front of the operation.
    if (all_of(bits, KEY_HEADER | KEY_METADATA))
        return FORMAT_NCCL_INSPECTOR;
    if ((bits & KEY_STACK) != 0)
        return FORMAT_PY_SPY;
    if ((bits & (KEY_JOURNAL | KEY_CONTAINER)) != 0)
        return FORMAT_LOG;
    if (all_of(bits, KEY_FIELDS | KEY_GPU))
        return FORMAT_DCGM;
    if (is_rank_map(bits))
        return FORMAT_RANK_MAP;
    if ((bits & KEY_MESSAGE) != 0)
        return FORMAT_ERROR_FILE;
    return FORMAT_UNKNOWN;
}

// What was found of one value at the beginning of a text.
struct value_look {
    enum json_keys_step end; // WHOLE, CUT or WRONG; MEMBER: not looked at further
    size_t after;            // where it ended
    unsigned bits;           // telling keys among those of the value itself
    bool tagged;             // `source` is one of a tagged line
};

// So long a text is looked at no further than to the entries or groups of a dump. A shorter one is
// looked at to its end: it may still be written.
enum { LONG_DUMP = 64 << 10 };

static bool is_tag(const struct json_keys *keys) {
    struct slice source;
    return keys->value_first == '"' && json_keys_text(keys, &source) && tagged_knows(source);
}

static struct value_look look_at_value(struct slice text, size_t at, bool up_to_dump) {
    struct json_keys keys;
    json_keys_begin(&keys, text, at);
    struct value_look look = {.end = JSON_KEYS_MEMBER};
    while ((look.end = json_keys_next(&keys)) == JSON_KEYS_MEMBER) {
        if (keys.key_depth != 1)
            continue;
        unsigned bits = key_bits(&keys);
        bool is_list = keys.value_first == '[' || keys.value_first == '{';
        look.bits |= bits;
        if (bits == KEY_SOURCE)
            look.tagged = is_tag(&keys);
        if (up_to_dump && bits == KEY_ENTRIES && is_list &&
            kind_of_keys(look.bits) == FORMAT_FLIGHT_RECORDER)
            break;
    }
    look.after = keys.at;
    return look;
}

// Whether a carrier of logs packed a line, or several, in the object; or whether it holds a message
// at least, of which the decoder tells that nobody knows its keys. Of what says its kind by other
// keys only that which may be a carrier's, too.
static bool is_carried(const struct value_look *look, enum format_kind kind, struct slice object,
                       const struct forms *forms) {
    struct envelope envelope;
    struct json_fault ignored;
    unsigned bits = look->bits;
    bool may_be = kind == FORMAT_UNKNOWN || kind == FORMAT_ERROR_FILE ||
                  (kind == FORMAT_TAGGED_LINES && !look->tagged) ||
                  (kind == FORMAT_STORMLOG && (bits & ~(unsigned)KEY_OTHER) == KEY_EVENTS);
    if (!may_be || (bits & KEY_EVENT) != 0 ||
        !envelope_open(&envelope, forms_envelopes(forms), object, &ignored))
        return false;
    return envelope.form != NULL || (kind == FORMAT_UNKNOWN && envelope.has_words);
}

static size_t space_end(struct slice text, size_t at) {
    return (size_t)(json_skip_space(text.data + at, text.data + text.size) - text.data);
}

// -- text that is no JSON -----------------------------------------------------------------------

static bool is_number_until(struct slice line, size_t at, char stop) {
    size_t from = at;
    while (at < line.size &&
           (text_is_digit(line.data[at]) || line.data[at] == '.' || line.data[at] == ' '))
        at++;
    return at > from && at < line.size && line.data[at] == stop;
}

// "[   12.345678] …", "<6>[ …", "6,812,12345678,-;…", "Jan 31 09:15:04 node kernel: …", what
// journalctl exports, or a line of the driver without any prefix.
static bool is_kernel_line(struct slice line) {
    size_t at = 0;
    if (text_begins(line, SLICE("NVRM: ")) || text_begins(line, SLICE("__CURSOR=")))
        return true;
    if (line.size > 3 && line.data[0] == '<' && is_number_until(line, 1, '>'))
        at = (size_t)((const char *)memchr(line.data, '>', line.size) - line.data) + 1;
    if (at < line.size && line.data[at] == '[' && is_number_until(line, at + 1, ']'))
        return true;
    const char *semicolon = memchr(line.data, ';', line.size);
    if (semicolon != NULL && text_is_digit(line.data[0])) {
        unsigned commas = 0;
        for (const char *c = line.data; c < semicolon; c++)
            commas += *c == ',';
        if (commas >= 3)
            return true;
    }
    return memmem(line.data, line.size, " kernel: ", 9) != NULL;
}

// "RxErr 0" or "Receiver Error 12", and no more on the line: the beginning of a counter file.
static bool is_aer_count(struct slice line) {
    static const struct slice starts[] = {{"RxErr ", 6},      {"Receiver Error ", 15},
                                          {"Undefined ", 10}, {"TOTAL_ERR_", 10},
                                          {"DLP ", 4},        {"SDES ", 5},
                                          {"TLP ", 4},        {"FCP ", 4}};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (text_begins(line, starts[i]))
            return text_is_digit(line.data[line.size - 1]);
    return false;
}

// A control character that no text has: tabs, ends of lines and pages, backspaces, bells and the
// escapes of terminals stand in logs.
static bool is_no_text(unsigned char byte) {
    return byte == 0x7f || (byte < ' ' && byte != 0x1b && (byte < '\a' || byte > '\r'));
}

// Bytes of any value have a control character in nine, texts in any encoding of bytes hardly one:
// what is no UTF-8 may be an older encoding. A hole of equal bytes in a log counts as one.
static bool is_binary(struct slice text) {
    enum { STRAY_MAX = 4, TEXT_PER_CONTROL = 20 };
    size_t controls = 0;
    for (size_t i = 0; i < text.size; i++)
        controls +=
            is_no_text((unsigned char)text.data[i]) && (i == 0 || text.data[i] != text.data[i - 1]);
    return controls > STRAY_MAX && controls > text.size / TEXT_PER_CONTROL;
}

static enum format_kind kind_of_text(struct slice line) {
    if (memchr(line.data, 0, line.size) != NULL)
        return FORMAT_BINARY;
    // An object whose keys say nothing.
    if (text_begins(line, SLICE("{\"")) || text_begins(line, SLICE("{}")))
        return FORMAT_UNKNOWN;
    if (text_begins(line, SLICE("# HELP ")) || text_begins(line, SLICE("# TYPE ")))
        return FORMAT_METRICS_TEXT;
    if (is_aer_count(line))
        return FORMAT_AER_COUNTERS;
    return is_kernel_line(line) ? FORMAT_KERNEL_LOG : FORMAT_LOG;
}

// What is known beside the bytes.
struct hints {
    enum format_kind forced;
    const struct forms *forms;
};

// -- layouts ------------------------------------------------------------------------------------

static struct format_guess decided(enum format_kind kind, enum format_layout layout) {
    return (struct format_guess){true, kind, layout};
}

// A line that is a record: FORMAT_UNKNOWN when it is none or says nothing.
static enum format_kind kind_of_line(struct slice line, bool cut, const struct forms *forms) {
    if (line.size == 0 || line.data[0] != '{')
        return FORMAT_UNKNOWN;
    struct value_look look = look_at_value(line, 0, false);
    bool usable =
        look.end == JSON_KEYS_WHOLE ? look.after == line.size : cut && look.end == JSON_KEYS_CUT;
    enum format_kind kind = usable ? kind_of_keys(look.bits) : FORMAT_UNKNOWN;
    return usable && is_carried(&look, kind, line, forms) ? FORMAT_LOG : kind;
}

static struct format_guess guess_lines(struct slice head, bool final, const struct hints *hints) {
    if (hints->forced != FORMAT_UNKNOWN)
        return decided(hints->forced, LAYOUT_LINES);
    enum format_kind text_kind = FORMAT_UNKNOWN;
    unsigned seen = 0;
    size_t at = 0;
    while (at < head.size && seen < FORMAT_LINES_MAX) {
        const char *newline = memchr(head.data + at, '\n', head.size - at);
        if (newline == NULL && !final)
            break;
        size_t end = newline == NULL ? head.size : (size_t)(newline - head.data);
        struct slice line = text_trim((struct slice){head.data + at, end - at});
        at = end + 1;
        if (line.size == 0)
            continue;
        enum format_kind kind = kind_of_line(line, newline == NULL, hints->forms);
        if (kind != FORMAT_UNKNOWN)
            return decided(kind, LAYOUT_LINES);
        if (seen++ == 0)
            text_kind = kind_of_text(line);
    }
    size_t looked_at = at < head.size ? at : head.size;
    if (is_binary((struct slice){head.data, looked_at}))
        text_kind = FORMAT_BINARY;
    struct format_guess guess = decided(text_kind, LAYOUT_LINES);
    guess.decided = final || seen == FORMAT_LINES_MAX;
    return guess;
}

// An array of objects: the first records that are whole. One that is wrong says nothing.
static struct format_guess guess_records(struct slice head, bool final, const struct forms *forms) {
    struct splitter split;
    splitter_begin(&split, LAYOUT_ARRAY, FORMAT_HEAD_MAX);
    enum split_step step = SPLIT_EMPTY;
    for (unsigned items = 0; items < FORMAT_LINES_MAX; items++) {
        struct slice record = {NULL, 0};
        step = splitter_next(&split, head, &record);
        if (step == SPLIT_MORE && final)
            record = (struct slice){head.data + splitter_used(&split),
                                    head.size - splitter_used(&split)};
        enum format_kind kind = kind_of_line(record, step == SPLIT_MORE, forms);
        if (kind != FORMAT_UNKNOWN)
            return decided(kind, LAYOUT_ARRAY);
        if (step == SPLIT_MORE || step == SPLIT_FAULT)
            break;
    }
    struct format_guess guess = decided(FORMAT_UNKNOWN, LAYOUT_ARRAY);
    guess.decided = final || step != SPLIT_MORE || splitter_end(&split) == NULL;
    return guess;
}

// `at` is the opening bracket. Text lines may begin with one too: an array of records shows a brace
// or its end next.
static struct format_guess guess_array(struct slice head, size_t at, bool final,
                                       const struct hints *hints) {
    size_t next = space_end(head, at + 1);
    enum format_kind kind = hints->forced == FORMAT_UNKNOWN ? FORMAT_STORMLOG : hints->forced;
    if (next == head.size) {
        struct format_guess guess = decided(kind, LAYOUT_ARRAY);
        guess.decided = final;
        return guess;
    }
    if (head.data[next] == ']')
        return decided(kind, LAYOUT_ARRAY);
    if (head.data[next] != '{')
        return guess_lines(head, final, hints);
    if (hints->forced != FORMAT_UNKNOWN)
        return decided(hints->forced, LAYOUT_ARRAY);
    return guess_records(head, final, hints->forms);
}

// Kinds of which an input is one record, however it looks.
static bool is_one_record(enum format_kind kind) {
    return kind == FORMAT_FLIGHT_RECORDER || kind == FORMAT_PICKLE || kind == FORMAT_METRICS_TEXT ||
           kind == FORMAT_AER_COUNTERS;
}

// Whether nothing but blanks stands between `at` and the end of the line, which is there.
static bool ends_line(struct slice head, size_t at, bool final) {
    while (at < head.size && head.data[at] != '\n') {
        if (head.data[at] != ' ' && head.data[at] != '\t' && head.data[at] != '\r')
            return false;
        at++;
    }
    return at < head.size || final;
}

// `at` is the opening brace: a line, a record over several lines, or a wrapper of either kind.
static struct format_guess guess_object(struct slice head, size_t at, bool final,
                                        const struct hints *hints) {
    bool up_to_dump =
        (hints->forced == FORMAT_UNKNOWN || hints->forced == FORMAT_FLIGHT_RECORDER) &&
        head.size >= LONG_DUMP;
    struct value_look look = look_at_value(head, at, up_to_dump);
    if (look.end == JSON_KEYS_MEMBER)
        return decided(FORMAT_FLIGHT_RECORDER, LAYOUT_WHOLE);
    // Two versions of RAS leave commas out.
    if (look.end == JSON_KEYS_WRONG && kind_of_keys(look.bits) == FORMAT_NCCL_RAS)
        return decided(FORMAT_NCCL_RAS, LAYOUT_OBJECT);
    if (look.end == JSON_KEYS_WRONG)
        return guess_lines(head, final, hints);
    bool list = all_of(look.bits, KEY_ITEMS | KEY_API_VERSION);
    bool wrapper = list || (look.bits & (KEY_EVENTS | KEY_SCHEMA_VERSION)) == KEY_EVENTS;
    if ((look.bits & KEY_DMESG) != 0) // read line by line
        return decided(hints->forced != FORMAT_UNKNOWN ? hints->forced : FORMAT_KERNEL_LOG,
                       LAYOUT_LINES);
    bool several_lines = memchr(head.data + at, '\n', look.after - at) != NULL;
    enum format_kind kind =
        hints->forced != FORMAT_UNKNOWN ? hints->forced : kind_of_keys(look.bits);
    if (look.end == JSON_KEYS_WHOLE && hints->forced == FORMAT_UNKNOWN &&
        is_carried(&look, kind, (struct slice){head.data + at, look.after - at}, hints->forms)) {
        kind = FORMAT_LOG;
        wrapper = false;
    }
    if (look.end == JSON_KEYS_CUT && !final)
        return (struct format_guess){.decided = list || (wrapper && kind == FORMAT_STORMLOG) ||
                                                is_one_record(hints->forced),
                                     .kind = kind,
                                     .layout = LAYOUT_WRAPPER};
    if (wrapper)
        return decided(kind, LAYOUT_WRAPPER);
    // Whoever writes it in one line need not end that with a newline.
    if (look.end == JSON_KEYS_WHOLE && is_one_record(kind))
        return decided(kind, LAYOUT_WHOLE);
    if (!several_lines && kind != FORMAT_UNKNOWN && ends_line(head, look.after, final))
        return decided(kind, LAYOUT_LINES);
    if (!several_lines)
        return guess_lines(head, final, hints);
    // A first line that broke off can look like the beginning of an object over several lines.
    bool doubtful = look.end == JSON_KEYS_CUT || kind == FORMAT_UNKNOWN;
    const struct hints unforced = {FORMAT_UNKNOWN, hints->forms};
    struct format_guess lines = guess_lines(head, final, &unforced);
    if (doubtful && lines.kind == FORMAT_STORMLOG)
        return lines;
    return decided(kind, LAYOUT_OBJECT);
}

static struct format_guess guess_kind(struct slice head, bool final, const struct hints *hints) {
    if (head.size >= 2 && memcmp(head.data, "\x1f\x8b", 2) == 0)
        return decided(FORMAT_GZIP, LAYOUT_LINES);
    // UTF-16, of which the reader of lines tells what is to be done.
    if (hints->forced == FORMAT_UNKNOWN && utf16_told(head) != UTF16_NOT)
        return decided(FORMAT_LOG, LAYOUT_LINES);
    bool may_be_pickle = hints->forced == FORMAT_UNKNOWN || hints->forced == FORMAT_FLIGHT_RECORDER;
    if (may_be_pickle && head.size >= 2 && head.data[0] == '\x80' && head.data[1] >= 2 &&
        head.data[1] <= 5)
        return decided(FORMAT_PICKLE, LAYOUT_WHOLE);
    size_t at = space_end(head, 0);
    if (at == head.size || (head.size == 1 && !final))
        return (struct format_guess){.decided = final, .kind = FORMAT_UNKNOWN};
    if (head.data[at] == '[')
        return guess_array(head, at, final, hints);
    if (head.data[at] == '{')
        return guess_object(head, at, final, hints);
    return guess_lines(head, final, hints);
}

struct format_guess format_guess_by(struct slice head, bool whole, enum format_kind forced,
                                    const struct forms *forms) {
    const struct hints hints = {forced, forms == NULL ? forms_builtin() : forms};
    bool final = whole || head.size >= FORMAT_HEAD_MAX;
    struct format_guess guess = guess_kind(head, final, &hints);
    if (is_one_record(guess.kind) || forced == FORMAT_ERROR_FILE)
        guess.layout = LAYOUT_WHOLE;
    return guess;
}

struct format_guess format_guess(struct slice head, bool whole, enum format_kind forced) {
    return format_guess_by(head, whole, forced, NULL);
}

const char *format_packing(struct slice head) {
    static const struct {
        const char *begin;
        size_t size;
        const char *what;
    } PACKINGS[] = {
        {"\x28\xb5\x2f\xfd", 4, "compressed by zstd: decompress it first (zstd -d)"},
        {"\xfd"
         "7zXZ",
         5, "compressed by xz: decompress it first (xz -d)"},
        {"BZh", 3, "compressed by bzip2: decompress it first (bzip2 -d)"},
        {"\x04\x22\x4d\x18", 4, "compressed by lz4: decompress it first (lz4 -d)"},
        {"PK\x03\x04", 4, "a zip archive: unpack it first (unzip)"},
        {"7z\xbc\xaf", 4, "a 7z archive: unpack it first (7z x)"},
    };
    for (size_t i = 0; i < sizeof PACKINGS / sizeof PACKINGS[0]; i++)
        if (text_begins(head, (struct slice){PACKINGS[i].begin, PACKINGS[i].size}))
            return PACKINGS[i].what;
    return NULL;
}

bool format_is_open(struct format_guess guess, struct slice head) {
    return guess.decided && guess.layout == LAYOUT_LINES && format_packing(head) == NULL &&
           (guess.kind == FORMAT_UNKNOWN || guess.kind == FORMAT_BINARY);
}

size_t format_looked_at(struct slice head) {
    const char *at = head.data, *end = head.data + head.size;
    for (unsigned i = 0; i < FORMAT_LINES_MAX && at < end; i++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL)
            return i == 0 ? head.size : (size_t)(at - head.data);
        at = newline + 1;
    }
    return (size_t)(at - head.data);
}

enum format_kind format_of_path(struct slice path) {
    return error_file_path(path)    ? FORMAT_ERROR_FILE
           : flight_dump_path(path) ? FORMAT_FLIGHT_RECORDER
                                    : FORMAT_UNKNOWN;
}

const char *format_name(enum format_kind kind) {
    assert((size_t)kind <= FORMAT_BINARY);
    static const char *const names[] = {
        [FORMAT_UNKNOWN] = "nothing that is known",
        [FORMAT_STORMLOG] = "stormlog telemetry",
        [FORMAT_GZIP] = "gzip data",
        [FORMAT_PICKLE] = "a Python pickle",
        [FORMAT_TAGGED_LINES] = "tagged lines of several sources",
        [FORMAT_SPANS] = "a stream of spans",
        [FORMAT_KUBERNETES] = "Kubernetes objects or events",
        [FORMAT_FLIGHT_RECORDER] = "a PyTorch Flight Recorder dump",
        [FORMAT_SIDECAR] = "a stormlog manifest or report, which holds no events",
        [FORMAT_METRICS_TEXT] = "metrics in exporter text",
        [FORMAT_KERNEL_LOG] = "a kernel log",
        [FORMAT_DCGM] = "samples of GPUs",
        [FORMAT_AER_COUNTERS] = "a file of PCIe error counters",
        [FORMAT_RANK_MAP] = "a rank map",
        [FORMAT_APP_LOG] = "the log of a training process",
        [FORMAT_LOG] = "lines of a log",
        [FORMAT_ERROR_FILE] = "an error file of torchelastic",
        [FORMAT_NCCL_RAS] = "a document of NCCL RAS",
        [FORMAT_NCCL_INSPECTOR] = "operations of NCCL Inspector",
        [FORMAT_PY_SPY] = "a dump of py-spy",
        [FORMAT_VERDICTS] = "verdicts of culprit itself",
        [FORMAT_QUARANTINE] = "a quarantine file of culprit itself",
        [FORMAT_NVSENTINEL] = "CloudEvents of NVSentinel",
        [FORMAT_PROMETHEUS] = "an answer of Prometheus' API",
        [FORMAT_BINARY] = "bytes that are no text",
    };
    return names[kind];
}

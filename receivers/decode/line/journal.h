// SPDX-License-Identifier: Apache-2.0
// Records of systemd's journal: `journalctl -o json` (an object a line) and `-o export` (a field a
// line, an empty line behind each record).
//
// Of an export the receiver hands over single lines, so its records are put together here. A record
// begins at "__CURSOR=". It is handed on as soon as its message, time, host and origin are known,
// at the latest at the empty line or the next "__CURSOR=": a receiver may leave empty lines out. A
// field that holds newlines or bytes that are no text is a line with its name, eight bytes of
// length and the bytes; cut at newlines by the receiver, they are joined again. Source: systemd,
// "Journal Export Formats".
#pragma once

#include "base/arena.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/line/transport.h"

enum { JOURNAL_MESSAGE_MAX = 2048, JOURNAL_HOST_MAX = 256, JOURNAL_KEY_MAX = 32 };

// A record that is being put together; all zero at first.
struct journal_export {
    bool active;      // the source is an export
    bool handed_on;   // what is here was: the rest of the record is passed over
    bool has_message; // the fields below are there
    bool has_host;
    bool has_origin;
    bool is_foreign;
    uint64_t unix_ns;
    uint32_t message_size; // at most JOURNAL_MESSAGE_MAX, longer ones are cut
    uint32_t host_size;
    char message[JOURNAL_MESSAGE_MAX];
    char host[JOURNAL_HOST_MAX];
    // A binary field: its name, how many bytes of the length were read, the bytes still to come.
    bool in_binary;
    uint32_t length_bytes;
    uint64_t binary_left;
    uint64_t binary_size;
    uint32_t key_size;
    char key[JOURNAL_KEY_MAX];
    uint32_t value_size;
    char value[JOURNAL_MESSAGE_MAX];
};

// True when the line is one of an export. `*complete`: `record` is filled, its slices lie in
// `arena`.
bool journal_export_line(struct journal_export *journal, struct slice line, struct arena *arena,
                         struct kernel_record *record, bool *complete);
// An object of `-o json`; slices lie in `line` or `arena`. DECODE_OK, or why it is refused.
enum decode_category journal_json_read(struct slice line, struct arena *arena,
                                       struct kernel_record *record, struct decode_fault *fault);

// SPDX-License-Identifier: Apache-2.0
// Records of which a line is only the wrapping, or a part: systemd's journal (`journalctl -o json`,
// an object a line, and `-o export`, a field a line), Docker's json-file, and `dmesg --json`.
//
// Of an export the receiver hands over single lines, so its records are put together here. A record
// begins at "__CURSOR=", or at a field of the journal's own that the record at hand has already,
// and ends at the empty line or where the next begins: a receiver may leave empty lines out. A
// field that holds newlines or bytes that are no text is a line with its name, eight bytes of
// length and the bytes; cut at newlines by the receiver, they are joined again. Source: systemd,
// "Journal Export Formats".
#pragma once

#include "base/arena.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/line/frame.h"

enum { JOURNAL_MESSAGE_MAX = 4096, JOURNAL_HOST_MAX = 256, JOURNAL_KEY_MAX = 32 };

// What a record says; data NULL: not said.
struct journal_record {
    struct slice message, host, program;
    enum frame_origin origin;
    enum frame_level level;
    uint64_t time_ns; // 0: not said
    uint64_t boot_us; // where `has_boot`
    bool has_boot;
    bool cut;          // the message is longer than what is kept of it
    bool is_container; // Docker's: `stream` is said, and a message without newline goes on
    struct slice stream;
    uint64_t position; // first of its lines
    uint32_t lines;
};

// A record that is being put together; all zero at first.
struct journal_export {
    bool active; // the source is an export
    bool has_message, has_host, has_program, has_time;
    bool cut;
    enum frame_origin origin;
    uint64_t unix_ns;
    uint64_t position;
    uint32_t lines;
    uint32_t message_size; // at most JOURNAL_MESSAGE_MAX, longer ones are cut
    uint32_t host_size, program_size;
    char message[JOURNAL_MESSAGE_MAX];
    char host[JOURNAL_HOST_MAX];
    char program[JOURNAL_HOST_MAX];
    // A binary field: its name, how many bytes of the length were read, the bytes still to come.
    bool in_binary;
    uint32_t length_bytes;
    uint64_t binary_left;
    uint32_t key_size;
    char key[JOURNAL_KEY_MAX];
    uint32_t value_size;
    char value[JOURNAL_MESSAGE_MAX];
};

// Whether the line begins an export, or is one of it when one is active.
bool journal_export_owns(const struct journal_export *journal, struct slice line);
// Takes a line of an export. True: it ended the record before it, and `record` is that; its slices
// lie in `arena`.
bool journal_export_line(struct journal_export *journal, struct slice line, uint64_t position,
                         struct arena *arena, struct journal_record *record);
// The record at hand, as far as it came; false: there is none.
bool journal_export_end(struct journal_export *journal, struct arena *arena,
                        struct journal_record *record);

// Whether an object looks like a record of the journal or of Docker.
bool journal_is_json(struct slice line);
// DECODE_OK, DECODE_NOTHING (another object), or why it is refused. Slices lie in `line` or
// `arena`.
enum decode_category journal_json_read(struct slice line, struct arena *arena,
                                       struct journal_record *record, struct decode_fault *fault);

// `dmesg --json`: one document over many lines, of which each has one field.
struct dmesg_json {
    bool active;
    bool has_message, has_time;
    uint64_t priority, boot_us;
    uint64_t position;
    uint32_t lines;
    uint32_t message_size;
    bool cut;
    char message[JOURNAL_MESSAGE_MAX];
};
// The line `"dmesg": [` begins it. False: the line is none of such a document.
bool dmesg_json_owns(struct dmesg_json *dmesg, struct slice line);
// True: the line ended a record, and `record` is that.
bool dmesg_json_line(struct dmesg_json *dmesg, struct slice line, uint64_t position,
                     struct arena *arena, struct journal_record *record);
bool dmesg_json_end(struct dmesg_json *dmesg, struct arena *arena, struct journal_record *record);

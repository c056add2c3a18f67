// SPDX-License-Identifier: Apache-2.0
// What the readers of both encodings of a Flight Recorder dump share.
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/json/block.h"
#include "receivers/decode/json/scan.h"

// What a field of an entry holds.
enum flight_kind {
    FLIGHT_OTHER,    // read and not kept
    FLIGHT_INTEGER,  // int64_t; times are missing when they are not positive
    FLIGHT_SEQUENCE, // one for both kinds, before format 2.2: counts when there is no other
    FLIGHT_FLAG,
    FLIGHT_NAME,
    FLIGHT_STATE,
    FLIGHT_SHAPES, // a list of sizes or dtypes
    FLIGHT_GROUP,  // a list of name and description
};

struct flight_field {
    struct json_key key;
    enum flight_kind kind;
    uint32_t offset; // in struct flight_entry
};
// As PyTorch writes them; all others are FLIGHT_FIELDS[0].
enum { FLIGHT_FIELD_COUNT = 23 };
extern const struct flight_field FLIGHT_FIELDS[FLIGHT_FIELD_COUNT];

const struct flight_field *flight_field_find(struct slice name);
// Keeps a value that is neither a list of shapes nor a group. NULL, or what was expected.
const char *flight_entry_take(struct flight_entry *entry, const struct flight_field *field,
                              const struct token *value, struct arena *arena);
// A number, also one in quotes; null leaves the value as it is. False for anything else.
bool flight_integer_of(const struct token *token, int64_t *value);
// A value of entry `index` is of another kind than `expected`.
void flight_refuse(struct decode_fault *fault, uint32_t index, const struct flight_field *field,
                   const struct token *found, const char *expected);

// What is known of a source, at the beginning of every decoder's state.
struct flight_source {
    uint64_t observed_ns;
    struct slice node;  // where its rank ran, as its folder says; empty: not known
    int32_t rank_after; // the rank + 1; 0: not known
    bool is_file;
    uint32_t entry_hint; // how many entries the dump before had
};
void flight_begin(void *state, const struct decoder_input *input);
void flight_written(void *state, uint64_t written_ns);

// A growing list of entries in an arena.
struct flight_entries {
    struct flight_entry *items;
    uint32_t count, capacity;
};
// A zeroed entry at the end; valid until the next call.
struct flight_entry *flight_entries_add(struct flight_entries *entries, uint32_t hint,
                                        struct arena *arena);
// Derives what depends on several fields; false when the entry names no group or no sequence number
// and so can be joined with nothing.
bool flight_entry_finish(struct flight_entry *entry);

// "[0, 1, 2]" as ascending ranks without repeats; NULL and 0 when it is no such list.
const int32_t *flight_members_parse(struct slice text, uint32_t *count, struct arena *arena);
// Puts ranks in ascending order, without repeats; returns how many are left.
uint32_t flight_members_sort(int32_t *ranks, uint32_t count, struct arena *arena);

// Checks the version and fills what follows from the entries, then the event. `entries_seen`: how
// many there were, with those that could not be used.
enum decode_category flight_finish(const struct flight_source *source, struct flight_dump *dump,
                                   uint32_t entries_seen, struct event *event,
                                   struct decode_fault *fault);

// A dump as it was read, before it is known whose it is: what decoder_type.parse gives.
struct flight_parsed {
    struct flight_dump dump;
    uint32_t entries_seen;       // as for flight_finish
    char why[DECODE_DETAIL_MAX]; // what `dump.unreadable` points to
};
// One of nothing yet.
struct flight_parsed *flight_parsed_new(struct arena *arena);
// The event of a dump that could not be read: it was there, of `parsed->dump.rank`, which must be
// known, and what else was read of it goes. It has no time of its own but that of its file. `why`
// lives as long as the event.
void flight_make_refused(const struct flight_source *source, struct flight_parsed *parsed,
                         struct slice why, struct event *event);
// Of a dump that is refused, as `fault` says: makes the event that tells that it was there, if it
// is known whose it is (`parsed->dump.rank`). Returns the category.
enum decode_category flight_refuse_dump(const struct flight_source *source,
                                        struct flight_parsed *parsed, struct event *event,
                                        struct decode_fault *fault);
// The same of a file's, by its source.
enum decode_category flight_refuse_file(const struct flight_source *source,
                                        struct flight_parsed *parsed, struct event *event,
                                        struct decode_fault *fault);
// As decoder_type.tell_refused; `state` begins with a struct flight_source.
bool flight_tell_refused(void *state, struct slice start, struct slice why, struct arena *arena,
                         struct event *event);
// As decoder_type.decode_parsed; `state` begins with a struct flight_source.
enum decode_category flight_decode_parsed(void *state, void *parsed, struct event *event,
                                          struct decode_fault *fault);

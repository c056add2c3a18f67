// SPDX-License-Identifier: Apache-2.0
// What the readers of both encodings of a Flight Recorder dump share.
#pragma once

#include "receivers/decode/flight_recorder/flight_recorder.h"

// Fields of an entry. What is read but not kept has FLIGHT_FIELD_OTHER.
enum flight_field {
    FLIGHT_FIELD_OTHER,
    FLIGHT_FIELD_RECORD_ID,
    FLIGHT_FIELD_GROUP,
    FLIGHT_FIELD_COLLECTIVE,
    FLIGHT_FIELD_P2P,
    FLIGHT_FIELD_NAME,
    FLIGHT_FIELD_CREATED,
    FLIGHT_FIELD_STARTED,
    FLIGHT_FIELD_COMPLETED,
    FLIGHT_FIELD_STATE,
    FLIGHT_FIELD_RETIRED,
    FLIGHT_FIELD_IS_P2P,
    FLIGHT_FIELD_TIMEOUT,
    FLIGHT_FIELD_INPUT_SIZES,
    FLIGHT_FIELD_OUTPUT_SIZES,
    FLIGHT_FIELD_INPUT_DTYPES,
    FLIGHT_FIELD_OUTPUT_DTYPES,
    FLIGHT_FIELD_SEQ_ID, // before format 2.2: both sequences in one
    FLIGHT_FIELD_COUNT
};

extern const struct slice FLIGHT_FIELD_NAMES[FLIGHT_FIELD_COUNT];
enum flight_field flight_field_find(struct slice name);
// Where an integer field lies in the entry, or NULL when the field is none. Times are missing when
// they are not positive.
int64_t *flight_entry_integer(struct flight_entry *entry, enum flight_field field);
// Where a text of sizes or dtypes lies, or NULL.
struct slice *flight_entry_shapes(struct flight_entry *entry, enum flight_field field);
bool *flight_entry_flag(struct flight_entry *entry, enum flight_field field);

// What is known of a source, at the beginning of every decoder's state.
struct flight_source {
    uint64_t observed_ns;
    int32_t rank_after; // the rank + 1; 0: not known
    bool is_file;
    uint32_t entry_hint; // how many entries the dump before had
};
void flight_begin(void *state, const struct decoder_input *input);

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

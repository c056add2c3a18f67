// SPDX-License-Identifier: Apache-2.0
// What the parts of the JSON reader for Flight Recorder dumps share.
#pragma once

#include "receivers/decode/flight_recorder/parts.h"
#include "receivers/decode/json/scan.h"

enum {
    FLIGHT_KEYS_LEARNT = 32,
    FLIGHT_SHAPES_SEEN = 8, // by field: each of the four has a place of its own
    FLIGHT_GROUPS_SEEN = 8,
};

struct flight_memory {
    struct flight_source source;
    uint8_t order[FLIGHT_KEYS_LEARNT]; // fields of the entry before; 0: nothing learnt
};

// A value as it was written and what it was read as.
struct flight_seen_shapes {
    struct slice raw, compact;
};
struct flight_seen_group {
    struct slice raw, name, desc;
};

struct flight_reader {
    const char *end;
    struct arena *arena;
    struct flight_memory *memory;
    struct decode_fault *fault;
    struct json_fault json;
    bool refused; // `fault` says why; else a NULL position means broken JSON
    struct flight_seen_shapes shapes[FLIGHT_SHAPES_SEEN];
    struct flight_seen_group groups[FLIGHT_GROUPS_SEEN];
    uint32_t group_next;
    uint32_t entry; // its number, for faults
};

// Past the entry that begins at `at`, or the list of them; NULL: `refused`, or `json` says why.
const char *flight_read_entry(struct flight_reader *reader, const char *at,
                              struct flight_entry *entry);
const char *flight_read_entries(struct flight_reader *reader, const char *at,
                                struct flight_entries *entries);

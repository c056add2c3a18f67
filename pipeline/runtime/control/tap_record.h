// SPDX-License-Identifier: Apache-2.0
// One event on its way to who watches: a copy that needs nothing of the batch, and its JSON.
//
// Names are ids of interned strings, which live as long as the process; the record as it came, and
// the facts of an observation, are copied behind the header, up to TAP_RAW_MAX and TAP_TEXT_MAX
// bytes.
#pragma once

#include "base/buffer.h"
#include "pipeline/model/event.h"
#include "pipeline/model/observation.h"

enum {
    TAP_RAW_MAX = 4096,  // bytes of a record as it came
    TAP_TEXT_MAX = 1024, // of a fact
};

struct tap_event {
    struct event event; // its pointers are not to be followed
    uint32_t class;     // event_class
    string_id path;     // of its input, as the sender named it when it came through another culprit
    uint32_t raw_size;  // of the record as it came
    uint32_t raw_kept;  // bytes of it that were copied
    uint32_t fact_count;
};

// How many bytes the copy takes, a multiple of 8.
size_t tap_event_size(const struct event *event);
// Writes the copy; `room` is aligned to 8 and has tap_event_size bytes.
void tap_event_copy(const struct event *event, void *room);
// {"event":"xid","time":…,"job":…,"node":…,"rank":…,"source":…,"position":…,"format":…,
// "facts":{…},"record":"…"} and a newline. What is not known is not there.
void tap_event_encode(const void *copy, struct buffer *out);

// SPDX-License-Identifier: Apache-2.0
// Inside the telemetry decoder: what all recent records of a source have in common.
//
// The lines of one source differ in a few values and repeat the rest byte for byte. A template is a
// record that was decoded the general way, cut into runs of text that stay and fields that change
// between them. A record that has the runs needs only those fields read; everything else is the
// template's. It can only accept: whatever does not fit is left to the general way, which knows the
// order of faults.
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/telemetry/fields.h"

enum { TEMPLATE_TEXT_MAX = 1280 };

// Text that stays, and the field that changes behind it; FIELD_UNKNOWN behind the last one.
struct template_run {
    uint16_t start; // in the template's text, a multiple of JSON_BLOCK
    uint16_t size;
    uint16_t rest; // bits of the bytes behind the last whole block
    uint16_t field;
};

// Where the value of a field stands that does not change.
struct template_place {
    uint16_t run;
    uint16_t offset; // from the start of the run
    uint16_t size;
};

struct telemetry_template {
    bool ready;
    bool session_from_metadata; // the record has no session_id of its own
    bool inferred;              // there is no capability block
    uint8_t run_count;
    uint32_t seen;      // fields of the record; 0: nothing was learnt
    uint32_t changing;  // fields that were seen to change; only grows
    uint32_t supported; // counters that the capability block allows
    int32_t score;      // of its success so far
    uint32_t delay;     // records that will pass before learning after the next failure
    uint32_t countdown; // records to pass before learning
    struct telemetry values;
    struct template_place places[FIELD_COUNT];
    struct template_run runs[FIELD_COUNT + 1];
    char text[TEMPLATE_TEXT_MAX];
};

struct telemetry_state;

// Decodes a record that fits into `telemetry`; false when it does not, and nothing has happened.
bool telemetry_template_decode(struct telemetry_state *state, struct slice record,
                               struct arena *arena, struct telemetry *telemetry);
// Told of each record that did not fit and was then scanned and accepted the general way; makes it
// the template when that promises more.
void telemetry_template_learn(struct telemetry_state *state, struct slice record,
                              const struct telemetry *telemetry);

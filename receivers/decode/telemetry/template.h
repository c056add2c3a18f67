// SPDX-License-Identifier: Apache-2.0
// Inside the telemetry decoder: what all recent records of a source have in common.
//
// The lines of one source differ in a few values and repeat the rest byte for byte. A template is a
// record that was decoded the general way, cut into runs of text that stay and fields that change
// between them. A record that has the runs needs only those fields read; everything else is the
// template's. It can only accept: whatever does not fit is left to the general way, which knows the
// order of faults.
#pragma once

#include "receivers/decode/telemetry/record.h"

// Decodes a record that fits into `telemetry`; false when it does not, and nothing has happened.
bool telemetry_template_decode(struct telemetry_state *state, struct slice record,
                               struct arena *arena, struct telemetry *telemetry);
// Told of each record that did not fit and was then scanned and accepted the general way; makes it
// the template when that promises more.
void telemetry_template_learn(struct telemetry_state *state, struct slice record,
                              const struct telemetry *telemetry);

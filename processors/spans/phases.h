// SPDX-License-Identifier: Apache-2.0
// Makes spans of the phase boundaries of training processes.
//
// Boundaries wait until a moment is evaluated and then take effect in the order of their times, so
// that nothing depends on how they arrived. One thread.
#pragma once

#include "pipeline/model/telemetry_event.h"
#include "processors/spans/phase_rows.h"

// Keeps a boundary (telemetry->scope is not NULL) until its moment is evaluated.
void span_phases_add(struct span_phases *phases, const struct telemetry *telemetry);
// Lets those up to `until_ns` take effect, in the order of time, rank, sequence.
void span_phases_judge(struct span_phases *phases, uint64_t until_ns);

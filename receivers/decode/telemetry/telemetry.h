// SPDX-License-Identifier: Apache-2.0
// The decoder of stormlog telemetry: one JSON object a record, schema v2, v3, v4 or legacy.
//
// Accepts and refuses what the loader of stormlog 0.4.3 does, and names the same first fault, but
// for culprit's own limits: integers beyond int64 (timestamps: uint64), ranks and world sizes
// beyond RANK_MAX, and objects nested more than 64 deep.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_stormlog;

// Puts ids in the place of the numbers that intern_postpone gave the names of such an event;
// `names`: by their order. False: the limit on distinct names refused one of them.
bool telemetry_settle_names(struct event *event, const string_id *names);

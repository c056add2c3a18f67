// SPDX-License-Identifier: Apache-2.0
// The phase boundary in a record's metadata.phase_scope.
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/json/scan.h"

// Reads `object`, a scanned value of any kind. *scope is NULL when it is no boundary that the
// reference's replay accepts, which is no fault; otherwise it lies in `arena`. The only fault is
// DECODE_LIMIT, when no more distinct names are taken.
enum decode_category phase_scope_read(const struct token *object, bool enter, struct arena *arena,
                                      const struct phase_scope **scope, struct decode_fault *fault);

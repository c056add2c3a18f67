// SPDX-License-Identifier: Apache-2.0
// The whole configuration language as a JSON Schema, for editors.
#pragma once

#include "pipeline/component/component.h"

// Writes one JSON document (draft 2020-12, indented, newline at the end) that describes every key a
// configuration of these components may have. An editor checks less than plan_build does: not which
// stages fit together, nor ranges of durations and sizes.
void schema_write(struct component_set components, struct buffer *out);

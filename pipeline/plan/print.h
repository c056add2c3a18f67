// SPDX-License-Identifier: Apache-2.0
// The configuration that is in effect, as YAML.
#pragma once

#include "pipeline/plan/plan.h"

// Writes every option of every component and pipeline with its value, and behind each a comment
// that says where it was written: "# culprit.yaml:14", "# --set" or "# default". Presets are
// written out, `tests` left out. Secrets are shown as [REDACTED], values from ${file:…} as they
// were written. Secrets apart, the text is a configuration that gives the same plan. Same plan,
// same bytes.
void plan_print(const struct plan *plan, struct buffer *out);

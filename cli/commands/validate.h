// SPDX-License-Identifier: Apache-2.0
// The work of `culprit validate`, which `run --dry-run` does too.
#pragma once

#include "cli/plan_load.h"

enum validate_format { VALIDATE_TEXT, VALIDATE_JSON };

// Text: problems and warnings on standard error, pipelines and what they guarantee on standard
// output. JSON: one document on standard output. 0 when it is right, 78 when not, or the code of
// what kept it from being read.
int validate_config(struct invocation *invocation, const struct plan_request *request,
                    enum validate_format format);

// SPDX-License-Identifier: Apache-2.0
// Rows of what logs say, made of the files that a configuration or a command line names.
#pragma once

#include "pipeline/plan/plan.h"

// What plan_build makes rows with. Problems stand at file, line and column of the row, or where the
// file is named when it cannot be read; the first of each file.
extern const struct form_maker FORM_FILES;

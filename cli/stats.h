// SPDX-License-Identifier: Apache-2.0
// What became of each line of each input, as one JSON document (`analyze --stats`).
#pragma once

#include "base/status.h"
#include "pipeline/runtime/run_report.h"

// Replaces the file at `path` whole; "-" is standard output. For each source
// lines = blank + event_lines + refused + other.
enum status stats_write(const char *path, const struct report *report,
                        struct error *error) MUST_USE;

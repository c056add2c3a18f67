// SPDX-License-Identifier: Apache-2.0
// Writes a line of a log as a tagged line (tagged.h), so that whoever is given it knows when and
// where it was written: receivers that read records make their lines so, and what is forwarded of a
// report of several lines is such a line, too.
#pragma once

#include "base/buffer.h"
#include "pipeline/model/event.h"

struct tagged_line {
    bool kernel;      // `source` is kmsg, else app_log
    uint64_t time_ns; // Unix, at most INT64_MAX
    int32_t rank;     // RANK_NONE: not said
    // Empty: not said.
    struct slice node, pod, namespace, job, program;
    struct slice message; // one line or, with `lines`, several with a newline between two
    bool lines;
};

// Appends one JSON object without newline. Bytes of the texts that are no UTF-8 become U+FFFD. Of
// `program` nothing is written where it is the kernel's line.
void tagged_line_append(const struct tagged_line *line, struct buffer *out);

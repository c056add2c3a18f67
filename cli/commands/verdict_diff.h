// SPDX-License-Identifier: Apache-2.0
// Compares two lists of verdicts, as JSON Lines: whether they are the same bytes, and if not, which
// verdict differs in which field.
#pragma once

#include "base/buffer.h"
#include "base/status.h"

struct verdict_diff {
    uint32_t expected_count; // lines
    uint32_t got_count;
    uint32_t differing;  // in both, with other contents
    uint32_t missing;    // expected only
    uint32_t unexpected; // got only
    bool equal;          // byte for byte
};

enum { VERDICT_LINES_MAX = 1000000 };

// Appends a readable difference to `out`: nothing when they are equal. A verdict is found again by
// its id and, when an id has several lines, by their order. STATUS_BAD_DATA when a line of
// `expected` is not a JSON object with an id (`expected_name:LINE` in the message), STATUS_LIMIT
// when there are more than VERDICT_LINES_MAX lines.
enum status verdict_diff_compare(struct verdict_diff *diff, struct buffer *out,
                                 struct slice expected, const char *expected_name, struct slice got,
                                 struct error *error) MUST_USE;

// SPDX-License-Identifier: Apache-2.0
// What a tree of spans answers, as one JSON document on one line: docs/spans.md names its members.
#pragma once

#include "base/buffer.h"
#include "pipeline/model/span_report.h"

// Appends the document and its newline. Every span is asked once, in order of creation, so the cost
// is about that of all their trees; memory: one span's answer at a time.
void span_document_encode(const struct span_report *report, struct buffer *out);

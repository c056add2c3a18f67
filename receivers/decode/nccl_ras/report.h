// SPDX-License-Identifier: Apache-2.0
// Walks through a whole answer of RAS in text: its sections one after another, the lines of each
// by READER_RAS_REPORT. Nothing is copied. O(text).
#pragma once

#include "receivers/decode/line/reader.h"
#include "receivers/decode/line/reading.h"

struct ras_report {
    struct slice rest;    // behind the section at hand
    struct slice section; // size 0: none
    struct block_walk walk;
};

// Whether it is such an answer: it begins with the version of NCCL.
bool ras_report_is(struct slice text);
void ras_report_begin(struct ras_report *report, struct slice text);
// What the next line says that says anything: READ_EVENT or READ_REFUSED, with the line in `line`;
// READ_NOT: there is none.
enum read_result ras_report_next(struct ras_report *report, struct reading *reading,
                                 struct slice *line);

// SPDX-License-Identifier: Apache-2.0
// What was taken in, refused and left out, over all receivers: for the closing words of analyze.
#pragma once

#include "base/buffer.h"
#include "base/thread.h"
#include "pipeline/component/decoder.h"
#include "pipeline/runtime/run_report.h"

#include <stdatomic.h>

struct intake {
    atomic_uint_fast64_t accepted;
    atomic_uint_fast64_t refused;
    atomic_uint_fast64_t refused_by[DECODE_CATEGORY_COUNT];
    atomic_uint_fast64_t done_bytes;
    atomic_uint_fast64_t total_bytes;
    struct lock lock; // guards what follows
    struct report_refusal refusals[REPORT_REFUSALS_MAX];
    uint32_t refusal_count;
    char *notes[REPORT_NOTES_MAX];
    uint32_t note_count;
    uint64_t notes_dropped;
    char *missing[REPORT_NOTES_MAX]; // paths
    uint32_t missing_count;
};

void intake_init(struct intake *intake);
void intake_release(struct intake *intake);
// Any thread. `path` must live as long as the intake.
void intake_refuse(struct intake *intake, struct slice path, uint64_t position,
                   const struct decode_fault *fault);
void intake_note(struct intake *intake, const char *text);
void intake_missing(struct intake *intake, struct slice path);
// Adds what is known to the report; its texts are copies.
void intake_report(struct intake *intake, struct report *report);

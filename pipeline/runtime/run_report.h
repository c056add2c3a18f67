// SPDX-License-Identifier: Apache-2.0
// What a run read, skipped, refused and found, for people.
#pragma once

#include "pipeline/component/feed.h"
#include "pipeline/model/verdict.h"

// One input, for people. `path` and `format` live as long as the service.
struct report_source {
    struct slice path;
    struct source_figures figures;
    const bool *taken; // by event_class: whether somebody looks at them; NULL: at all
};

// A record that was refused: where, and why in words ("run.jsonl:812: pid: …").
struct report_refusal {
    struct slice path;
    uint64_t position;
    struct decode_fault fault;
};

// What was read, skipped and refused; a snapshot that the caller releases.
struct report {
    struct report_source *sources;
    uint32_t source_count;
    uint64_t accepted;
    uint64_t refused;
    uint64_t refused_by[DECODE_CATEGORY_COUNT];
    uint64_t bytes;
    struct report_refusal *refusals; // the first of them, at most REPORT_REFUSALS_MAX
    uint32_t refusal_count;
    char **notes; // inputs that were left out and why, at most REPORT_NOTES_MAX; complete sentences
    uint32_t note_count;
    uint64_t notes_dropped;
    uint32_t missing_count; // inputs that were named and are not there
    uint64_t done_bytes;    // progress
    uint64_t total_bytes;
    uint64_t verdict_count[SEVERITY_CRITICAL + 1]; // last state of each verdict, by severity
    // With inputs that end: what was found, pipeline by pipeline. The headlines are the service's.
    struct verdict_title *verdicts;
    uint32_t title_count;
};

enum { REPORT_REFUSALS_MAX = 64, REPORT_NOTES_MAX = 256 };

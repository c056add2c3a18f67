// SPDX-License-Identifier: Apache-2.0
// Runs one test of a configuration: its inputs through its pipeline, once.
#pragma once

#include "base/status.h"
#include "pipeline/model/verdict.h"
#include "pipeline/plan/tests.h"

// A verdict that was found. Texts live in the arena of the run.
struct found_entity {
    const char *kind, *name;
    enum entity_role role;
};

struct found_verdict {
    const char *id, *pattern, *kind, *headline;
    const char *job; // "": none
    enum severity severity;
    enum verdict_state state;
    int confidence;
    bool root;
    const struct found_entity *entities;
    uint32_t entity_count;
};

struct test_run {
    struct arena *arena;            // the caller's; holds all below
    struct found_verdict *verdicts; // the last state of each, in the order in which they came
    uint32_t verdict_count;
    uint64_t accepted, refused; // events, records
    const char **refusals;      // "run.jsonl:812: pid: …", the first TEST_SHOWN_MAX
    uint32_t refusal_count;
    // An input is missing, a file that it names or a text was not read, or not to its end, or none
    // was.
    bool unread;
    const char **notes; // which, and why; the first TEST_SHOWN_MAX
    uint32_t note_count;
};

enum { TEST_SHOWN_MAX = 10 };

// Reads the inputs of the test in place of the pipeline's receivers. Its exporters and all
// extensions are left alone, so no store, socket or file of theirs is touched. Texts are put into
// files of a folder of their own below TMPDIR, which is gone afterwards and in no message. Any
// status but STATUS_OK: nothing could be read, or the test could not be run.
enum status test_run(struct test_run *run, const struct plan *plan, const struct plan_test *test,
                     struct error *error) MUST_USE;

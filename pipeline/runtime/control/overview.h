// SPDX-License-Identifier: Apache-2.0
// What a pipeline says of itself to those who look from outside: how far it has come, its jobs, the
// incidents that are open.
//
// The pipeline writes it, at an evaluation, under a lock of its own that a reader holds only while
// it copies: nobody who looks waits for an evaluation, and no evaluation for who looks. A fixed
// size, 30 KiB; nothing is allocated.
#pragma once

#include "base/thread.h"
#include "pipeline/model/batch.h"

enum { OVERVIEW_JOBS_MAX = 64, OVERVIEW_INCIDENTS_MAX = 64, OVERVIEW_MISSING_MAX = 8 };

struct overview_job {
    string_id job;
    uint32_t rank_count; // that were heard of
    uint32_t missing_count;
    int32_t missing[OVERVIEW_MISSING_MAX]; // the lowest of those that were not
    int64_t world_size;                    // 0: not known
    uint64_t event_count;                  // of its telemetry
    uint64_t as_of_ns;                     // when it was evaluated last, in event time
};

// A verdict that is open and no consequence of another.
struct overview_incident {
    char id[VERDICT_ID_SIZE];
    const char *pattern; // static text
    enum severity severity;
    string_id job;
    uint64_t start_ns;
    uint32_t headline_size;
    char headline[VERDICT_HEADLINE_MAX];
};

// What a reader gets.
struct overview_state {
    uint64_t judged_ns; // evaluated up to here; 0: not yet, UINT64_MAX: to the end of what came
    struct overview_job jobs[OVERVIEW_JOBS_MAX];
    uint32_t job_count;
    bool jobs_left_out;                                         // there was no room for all
    struct overview_incident incidents[OVERVIEW_INCIDENTS_MAX]; // in no order
    uint32_t incident_count;
    bool incidents_left_out;
    uint64_t open[SEVERITY_CRITICAL + 1]; // verdicts that are open, consequences too
};

struct overview {
    struct lock lock; // guards `view`
    struct overview_state view;
    // The pipeline's own: the verdicts that were open at the start are in it; so are the numbers.
    bool learnt, counted;
    // Without the lock.
    atomic_uint_fast64_t newest_ns; // of all events; 0: none yet
    atomic_uint_fast64_t due_count; // evaluations that wait
    atomic_uint_fast32_t holder;    // path of the source that holds the watermark back
    atomic_uint_fast64_t source_count;
};

void overview_init(struct overview *overview);
void overview_release(struct overview *overview);
// Behind the last stage of an evaluation, once before (`all`) the verdicts that are as they were
// put out last were taken out: those say what was open before a restart.
void overview_learn(struct overview *overview, const struct batch *batch);
// … and once after: `open` are the verdicts that are open, by severity, NULL: as before.
void overview_note(struct overview *overview, const struct batch *batch, const uint64_t *open);
// Any thread.
void overview_read(struct overview *overview, struct overview_state *view);

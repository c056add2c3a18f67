// SPDX-License-Identifier: Apache-2.0
// What one pipeline hands from stage to stage: events, the time, and what the stages added.
//
// Time and the end travel inside: a batch with no events and `evaluate` set asks the stages to
// judge everything up to `as_of_ns`; `last` says that nothing comes after. Stages append, none
// edits.
#pragma once

#include "base/arena.h"
#include "pipeline/model/evaluation.h"
#include "pipeline/model/event.h"
#include "pipeline/model/span_report.h"
#include "pipeline/model/verdict.h"

enum job_mode {
    JOB_AUTO, // the job with the most samples
    JOB_EACH, // every job by itself
    JOB_NAMED,
};

// job_filter: which jobs are looked at. The choice under JOB_AUTO is made at an evaluation.
struct job_choice {
    enum job_mode mode;
    string_id name;    // JOB_NAMED
    uint32_t max_jobs; // under AUTO and EACH: known at the same time
    uint64_t idle_ns;  // live: a job without a sample for so long is forgotten; 0: never
};

// Jobs that are forgotten with this batch: what a stage keeps of them goes before it looks at the
// evaluations, in which they are not. Their numbers are given to others from the next batch on.
struct forgotten_job {
    string_id job;
    uint32_t slot; // evaluation.job_slot
};

struct forgotten_process {
    string_id session; // STRING_NONE: known by host and pid, which are else empty
    string_id host;
    int64_t pid;
};

struct forgotten {
    bool everything;                  // all jobs ever seen; the lists below are empty
    const struct forgotten_job *jobs; // ascending by `job`
    uint32_t job_count;
    const uint32_t *slots; // of their ranks: rank_view.slot
    uint32_t slot_count;
    const struct forgotten_process *processes; // who wrote their samples, in no order
    uint32_t process_count;
};

struct verdict_list {
    struct verdict *items;
    uint32_t count;
    uint32_t capacity;
};

struct node_names;

struct batch {
    const struct event *events;
    uint32_t event_count;
    uint32_t kinds;      // 1 << enum event_kind of those that may be among them
    struct arena *arena; // lives until this batch has gone through its pipeline

    bool evaluate;
    // The newest time of any event that this pipeline has seen, this batch included; 0: none yet.
    uint64_t newest_ns;
    uint64_t as_of_ns; // UINT64_MAX with `last`
    bool last;
    bool rests; // live: all inputs are silent, so for now no other evaluation follows
    // With `last` over inputs that end: paths that were named and where nothing could be read.
    const struct slice *missing_inputs;
    uint32_t missing_count;
    // The same: all paths, where nothing stood in any of them but blank lines; else none.
    const struct slice *empty_inputs;
    uint32_t empty_count;
    uint64_t refused_count; // the same: records that were refused
    bool ordered; // arrival order is defined (files in path order); false in a live pipeline

    // By event_class: whether a processor of this pipeline takes such events. NULL: not known.
    const bool *taken;

    // Which names of nodes mean one node (pipeline/component/node_names.h); events hold keys of it.
    // NULL: names are what they are.
    const struct node_names *names;

    // Added on the way:
    uint64_t *selected; // job_filter: one bit an event; NULL: all are selected
    const struct job_choice *job_choice;
    struct evaluation *evaluations; // rank_group: one a job that changed; with `last` at least one
    uint32_t evaluation_count;
    const struct forgotten *forgotten; // rank_group; NULL: none
    struct verdict_list verdicts;
    bool recalled;                 // of the verdicts, some that did not change (verdict.recalled)
    struct span_report_list spans; // spans: at an evaluation
};

static inline bool batch_selects(const struct batch *batch, uint32_t index) {
    assert(index < batch->event_count);
    return batch->selected == NULL || (batch->selected[index / 64] >> (index % 64) & 1) != 0;
}

// Appends a copy of the struct; its texts must live as long as the batch's arena.
void batch_append_verdict(struct batch *batch, const struct verdict *verdict);
// Writes into the verdict which inputs it does without: the attribute culprit.missing_inputs.
void batch_mark_incomplete(struct batch *batch, struct verdict *verdict);
// Takes out the verdicts that are as they were put out last, but for those that are recalled:
// behind the last stage.
void batch_drop_unchanged(struct batch *batch);
// Appends a note, written as printf does, to the evaluation; in the batch's arena.
void evaluation_note(struct evaluation *evaluation, struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same with the text `before` and a list of ranks behind it: "1, 4." Nothing without ranks.
void evaluation_note_ranks(struct evaluation *evaluation, struct arena *arena, const char *before,
                           const int32_t *ranks, uint32_t count);

// SPDX-License-Identifier: Apache-2.0
// The parts of slow_rank: what names of phases mean (names.c), which phase begins a step (cycle.c),
// boundaries in order and what a process did in a step (steps.c), one step of a job weighed
// (weigh.c), what comes of many (find.c), the verdict (verdict.c).
//
// All times are Unix nanoseconds, durations of phases microseconds in 32 bits (71 minutes at most).
// One thread.
#pragma once

#include "pipeline/model/telemetry_event.h"
#include "processors/cluster/detector.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/verdict_builder.h"

enum {
    PHASES_MAX = 16,     // different names within the steps of one job; others are not looked at
    MARKS_MAX = 64,      // steps that are remembered of each process: window · windows
    WINDOW_MAX = 32,     // steps
    CHECKPOINTS_MAX = 8, // of each process
    PENDING_MAX = 8,     // steps of a job that are not judged yet
    PHASE_NONE_BLAMED = 255,
};

struct slow_config {
    int64_t window, windows, warm_up, checkpoints;
    double min_share, min_ratio, checkpoint_ratio, stall_ratio;
    const char *step_phase; // NULL: the usual names
    int64_t confidence, stall_confidence;
    int64_t max_waiting, max_processes, max_jobs, max_findings;
};

// -- Names (names.c) ------------------------------------------------------------------------------

enum phase_class {
    PHASE_COMPUTE,
    PHASE_INPUT,
    PHASE_CHECKPOINT,
    PHASE_WAIT,     // for other ranks
    PHASE_BACKWARD, // own work only where the steps have a phase for waiting: else gradients are
                    // exchanged in it, so that it holds the wait
    PHASE_OTHER,    // evaluation, logging: what not every rank does
};

enum { PHASE_NAME_MAX = 48 };
// The last part of a label in lower case, without a number at its end: "epoch 0 / step 3" is
// "step". STRING_NONE: there is no room for more names.
string_id phase_name(string_id label);
enum phase_class phase_class_of(string_id name);
bool phase_is_step(const struct slow_config *config, string_id name);
// Where no scope is named as a step, whether one may begin with this phase: what comes in every
// step.
bool phase_may_begin_step(string_id name);

// -- Rows -----------------------------------------------------------------------------------------

// A boundary that waits until an evaluation has reached its time.
struct boundary {
    uint32_t chain; // the table's own
    uint32_t live;
    uint64_t time_ns;
    int64_t sequence;
    int64_t thread;
    string_id job, session, node, name;
    int32_t rank;
    uint32_t depth;
    uint32_t is_enter;
    uint32_t reserved;
};

// How long a process took over what, of one step.
struct step_times {
    uint64_t begin_ns;
    uint32_t period_us; // to the begin of the next
    uint32_t is_whole;  // no boundary was missed, and the process is warm
    uint32_t phase_us[PHASES_MAX];
};

// The process of a rank: a session.
struct process {
    struct row_head head;
    string_id job, session; // the key, with:
    int32_t rank;
    // How often it entered each phase of the job and how deep, while it is not known which of them
    // begins a step. Of a new job the counts are 0.
    uint8_t entered[PHASES_MAX], depths[PHASES_MAX];
    string_id node;
    uint32_t serial;                  // of all processes; parts name it by that and its row
    uint32_t job_serial;              // of the job's row that it knows
    uint32_t steps;                   // that it began
    uint32_t in_step;                 // within the scope of the step; else behind it
    uint32_t unmarked;                // phases that it entered since it began a step
    uint32_t step;                    // the job's number of the step that it is in
    uint32_t depth;                   // of the scope of its steps
    int64_t thread;                   // of its steps
    uint64_t seen_ns;                 // its last boundary
    uint64_t open_ns;                 // the outermost scope in the step that is open …
    uint64_t inner_ns;                // … the wait within that …
    uint64_t waited_ns;               // … and how long it waited in there before
    uint32_t open_depth, inner_depth; // 0: none
    string_id open_name, inner_name;
    struct step_times now;
    // What came of the last steps of the job, by their number modulo MARKS_MAX.
    uint32_t marked_until; // steps before this one have a mark
    uint32_t reserved;
    uint64_t begin_ns[MARKS_MAX];
    uint8_t blamed[MARKS_MAX]; // a phase, or PHASE_NONE_BLAMED
    // The same of its last checkpoints.
    uint32_t saved;
    uint32_t slow_saves; // bits, the last one lowest
    uint64_t save_ns[CHECKPOINTS_MAX];
    uint64_t finding_ns, save_finding_ns; // onset of the finding that is open; 0: none
    uint32_t finding_phase, save_phase;   // what it names
};

// A step of a process that has passed it, until the job's step is judged.
struct step_part {
    uint32_t next; // of the same step; of a freed row the table's own
    uint32_t process, serial;
    int32_t rank;
    string_id session, node;
    struct step_times times;
};

struct pending_step {
    uint32_t begun, done; // processes
    struct row_list parts;
};

struct slow_job {
    struct row_head head;
    string_id job;
    uint64_t seen_ns;
    uint32_t first, end; // steps that are not judged yet
    uint32_t expected;   // processes in the step that was judged last
    uint32_t judged;     // steps with at least two processes
    uint32_t phase_count;
    string_id first_phase;       // that begins a step; STRING_NONE: not known, or scopes are steps
    uint32_t has_step_scopes;    // scopes are named as steps
    uint32_t serial;             // of all jobs, anew when other steps begin
    uint32_t phases[PHASES_MAX]; // rows
    struct pending_step pending[PENDING_MAX];
};

// A phase of a job: how long it takes the fastest process.
struct slow_phase {
    struct row_head head;
    string_id job, name;
    uint32_t class; // enum phase_class
    uint32_t seen;  // steps, until the usual time is known
    uint32_t usual_us;
    uint32_t least_us[WINDOW_MAX];
    uint32_t reserved;
    uint64_t high_bits; // steps in which it took longer, the last one lowest
    uint64_t since_ns;  // the first of them: begin of the step of this process
    string_id since_session;
    int32_t since_rank;
    uint64_t finding_ns; // onset of the finding that is open; 0: none
};

enum slow_kind { SLOW_COMPUTE, SLOW_INPUT, SLOW_CHECKPOINT, COMMON_STALL };

struct slow_finding {
    struct row_head head;
    // The key; STRING_NONE and RANK_NONE for COMMON_STALL.
    string_id job, session;
    int32_t rank;
    string_id phase;
    uint32_t kind; // enum slow_kind
    uint32_t onset_low, onset_high;
    string_id node;
    uint64_t onset_ns; // the same as one number
    uint32_t ended;
    // Where it began, and the last step in which it was so.
    string_id first_session, last_session;
    int32_t first_rank, last_rank;
    uint64_t last_ns;
    uint32_t own_us, others_us, wait_us, others_wait_us;
    // Who waited longest in that step.
    string_id victim_session;
    int32_t victim_rank;
    uint64_t victim_ns; // 0: nobody
    uint32_t victim_wait_us;
    uint32_t steps; // in which it was so since it was found
    uint64_t own_sum_us, others_sum_us;
};

struct slow_rank {
    struct detector_base base;
    struct slow_config config;
    struct table waiting;        // struct boundary
    struct keyed_rows processes; // struct process
    struct table parts;          // struct step_part
    struct keyed_rows jobs;      // struct slow_job
    struct keyed_rows phases;    // struct slow_phase
    struct keyed_rows findings;  // struct slow_finding
    struct row_bound process_bound, finding_bound;
    struct {
        uint32_t serial;
        uint32_t reserved;
        uint64_t jobs_evicted;
    } count;
};

extern const struct row_type BOUNDARY_ROWS, PROCESS_ROWS, STEP_PART_ROWS, SLOW_JOB_ROWS,
    SLOW_PHASE_ROWS, SLOW_FINDING_ROWS;

// -- Steps (steps.c) ------------------------------------------------------------------------------

// Keeps the boundary of a phase until it is due.
void slow_take(struct slow_rank *self, const struct event *event, struct arena *scratch);
// Reads boundaries up to `until_ns`, in order, and judges the steps that are over.
void slow_read(struct slow_rank *self, uint64_t until_ns, struct arena *scratch);

// The phase's number among those of the job; PHASES_MAX: there are too many.
uint32_t slow_phase_of(struct slow_rank *self, struct slow_job *job, string_id name);
// The job's steps begin with another phase from here on: forgets those that are not judged, and
// what is usual.
void slow_begin_anew(struct slow_rank *self, struct slow_job *job);

// -- Which phase begins a step (cycle.c) ----------------------------------------------------------

// Whether the process begins a step with the phase that it enters here.
bool slow_begins_step(struct slow_rank *self, struct slow_job *job, struct process *process,
                      const struct boundary *at);

// -- One step (weigh.c) ---------------------------------------------------------------------------

// Weighs the processes that passed a step. O(processes · (phases + log processes)).
void slow_weigh(struct slow_rank *self, struct slow_job *job, const struct row_list *parts,
                struct arena *scratch);

static inline struct slow_phase *slow_phase_at(const struct slow_rank *self,
                                               const struct slow_job *job, uint32_t index) {
    assert(index < job->phase_count);
    return table_row(&self->phases.table, job->phases[index]);
}

// -- What comes of many (find.c) ------------------------------------------------------------------

// What was weighed of one process in one step.
struct weighed {
    const struct step_part *part;
    struct process *process; // NULL: forgotten
    uint32_t own_us, others_us;
    uint32_t wait_us, others_wait_us;
    const struct step_part *victim; // who waited longest, or NULL
    uint32_t victim_wait_us;
    uint32_t phase; // that made the difference, or PHASE_NONE_BLAMED: it held up nobody
};

// Marks the job's step `number` of the process, and opens or ends what follows from it.
void slow_mark(struct slow_rank *self, struct slow_job *job, const struct weighed *weighed,
               uint32_t number, struct arena *scratch);
// The same for a checkpoint that others took as well.
void slow_mark_checkpoint(struct slow_rank *self, struct slow_job *job,
                          const struct weighed *weighed, struct arena *scratch);
// How long the phase took the fastest process; `high`: longer than usual.
void slow_mark_stall(struct slow_rank *self, struct slow_job *job, uint32_t phase,
                     const struct step_part *least, bool high, struct arena *scratch);

// -- Verdict (verdict.c) --------------------------------------------------------------------------

// `node`: the key of the node's name in this pipeline, or STRING_NONE.
void slow_verdict(const struct slow_rank *self, const struct slow_finding *finding, string_id node,
                  struct verdict_builder *builder);

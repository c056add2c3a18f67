// SPDX-License-Identifier: Apache-2.0
// One pipeline at work: hands batches from stage to stage and decides when it is time to judge.
//
// Live, it is judged at multiples of evaluate_every in event time, each as soon as the watermark
// has passed it and before the event that moved it there, over the samples up to that moment: the
// result does not depend on how events were batched or raced. The watermark is the newest event of
// the source that is furthest behind, less allowed_lateness; a source that was silent for
// idle_timeout does not hold it back, nor one that was read to its end and has been silent for
// caught_up_timeout. When that is true of all, what came is judged without waiting. With inputs
// that end it is judged once, at the end. A time that stands alone far ahead moves neither the
// watermark nor the moments on (now/now.h). All calls under the runner's lock.
#pragma once

#include "base/table/row_index.h"
#include "base/table/table.h"
#include "pipeline/component/node_names.h"
#include "pipeline/runtime/control/overview.h"
#include "pipeline/runtime/control/tap.h"
#include "pipeline/runtime/feed/feed_run.h"
#include "pipeline/runtime/now/watch.h"
#include "pipeline/runtime/now/zone.h"
#include "pipeline/runtime/sender.h"

struct runner_stage {
    const struct component_type *type;
    void *instance;
    atomic_uint_fast64_t incoming; // events
    atomic_uint_fast64_t filtered; // … that it left out: they are of other jobs
};

// How far one source has come in this pipeline.
struct runner_source {
    uint32_t chained;   // what the table puts there when the row is freed
    uint32_t in_use;    // 0: a row to be used again
    string_id receiver; // "file/ranks"
    string_id path;
    struct source_position position; // everything up to here has gone through
    struct source_position pending;  // … and is part of the checkpoint under way
    struct source_position safe;     // … and is durable
    uint64_t newest_ns;              // of its events; 0 none yet
    uint64_t last_seen_ns;           // monotonic: means nothing in another process
    uint64_t told;   // number up to which its records were told: `position` may lie before
    uint32_t left;   // does not hold the watermark back
    uint32_t at_end; // everything of it that is there has been read; nothing in another process
};

// Whether more may come of what the sources have to say now.
enum runner_rest {
    RUNNER_ACTIVE, // or there is nothing to judge by it
    RUNNER_QUIET,  // all were read to their end, and that has not been judged yet
    RUNNER_SILENT, // all are silent, and that has not been judged yet
};

// What a runner remembers beside its tables.
struct runner_state {
    uint64_t judged_ns;    // the last moment
    uint64_t newest_ns;    // of all events
    uint64_t now_ns;       // of those that do not stand alone far ahead: never goes back
    uint64_t rest_unix_ns; // the time of day when all inputs fell quiet or silent last
    uint32_t due_count;
    bool judged_any;
    bool idle_judged; // silent inputs have been judged to their end
    uint8_t rest_due; // enum runner_rest that was about to be judged when this was saved: first
};

#define RUNNER_MAGIC UINT32_C(0x52756e72)

struct runner {
    uint32_t magic; // RUNNER_MAGIC
    const struct plan_pipeline *plan;
    uint32_t batch_size;
    bool once;
    struct lock lock;
    struct runner_stage *stages;
    uint32_t stage_count;
    bool *taken; // by event_class: a stage takes such events
    struct sender **senders;
    uint32_t sender_count;
    struct arena arena;
    struct runner_state state;
    uint64_t *due; // moments to judge, ascending: multiples of evaluate_every
    uint32_t due_capacity;
    struct table due_saved;        // a copy of them, made for a checkpoint
    struct table tally;            // last severity of each verdict
    struct table sources;          // struct runner_source; none with `once`
    struct clock_watch watch;      // its clocks: one a source, under the same number
    struct row_index source_index; // by receiver and path
    struct node_names names;
    struct zone_evidence zones; // with `once`
    uint32_t holder;            // row of the source that held the watermark back last
    uint64_t holder_newest_ns;
    uint64_t holder_ns;     // … at that time
    uint32_t holds;         // receivers that have not caught up yet: nothing is judged before …
    uint64_t hold_until_ns; // … but not for longer than this (monotonic)
    uint64_t looked_ns;     // its clock, monotonic: as of the last runner_advance
    uint64_t compared_ns;   // … when the sources were compared with one another
    uint64_t look_ns;       // … when the main thread looks next, unless it is woken
    bool quiet_judged;      // that all were read to their end
    bool changed;           // since the last checkpoint
    atomic_uint_fast64_t consumed; // events
    atomic_uint_fast64_t evaluations;
    struct overview overview; // for those who look from outside; not with `once`
    struct tap_set taps;
    // With inputs that end: those that were named and are not there, told with the last batch, and
    // what was found by it.
    const struct slice *missing_inputs;
    uint32_t missing_count;
    struct verdict_title *titles;
    uint32_t title_count;
};

void runner_init(struct runner *runner, const struct plan_pipeline *plan, uint32_t batch_size,
                 bool once);
void runner_release(struct runner *runner);
// Once its stages are there.
void runner_stages_ready(struct runner *runner);
// Its own tables, for a checkpoint; runner_prepare_state before each save.
void runner_state_list(struct runner *runner, struct state_list *list);
void runner_prepare_state(struct runner *runner);
// After they were loaded. `same_clock`: by the process that saved them, so that what was silent
// then still is; else all sources count as heard of now.
void runner_restored(struct runner *runner, uint64_t monotonic_ns, bool same_clock);

// The longest way that one event may move the time on by itself; UINT64_MAX: any.
uint64_t runner_max_jump(const struct runner *runner);
// The first time after this one by which a moment can be passed: a multiple of evaluate_every and
// allowed_lateness. Any thread.
uint64_t runner_turn(const struct runner *runner, uint64_t time_ns);

// The row of a source, made when new.
uint32_t runner_source_row(struct runner *runner, string_id receiver, struct slice path);
// It no longer holds the watermark back; with `forget` its row is given back.
void runner_source_leave(struct runner *runner, uint32_t row, bool forget);
struct runner_source *runner_source_at(const struct runner *runner, uint32_t row);

// A delivery goes through; `rows` are the sources' rows, in the order of delivery->touched. Live,
// the first event that can pass a moment waits until that one is judged: what came to a moment does
// not depend on where deliveries end, as long as only the last record of each reaches a turn.
void runner_consume(struct runner *runner, const struct delivery *delivery, const uint32_t *rows);
// Judges what has become due by the watermark; cheap when nothing has. What it returns is for
// runner_judge_rest.
enum runner_rest runner_advance(struct runner *runner, uint64_t monotonic_ns);
// All inputs are quiet or silent, at state.rest_unix_ns: judges everything that came. When they are
// silent, it also gives a first name time to settle.
void runner_judge_rest(struct runner *runner, enum runner_rest rest);
// When runner_advance may have something to do next without any delivery; UINT64_MAX: never. Later
// than its last look, unless that returned something to be judged.
uint64_t runner_next_look(const struct runner *runner);
// Whether the main thread has to look at this source earlier than it means to.
bool runner_looks_late(const struct runner *runner, uint32_t row);
// feed_settle_zone; with `once`.
int32_t runner_settle_zone(struct runner *runner, struct slice path,
                           const struct local_times *times);
// Nothing comes after.
void runner_finish(struct runner *runner);
// Verdicts by their last severity: all that were put out, and those of them that are not over.
void runner_tally(const struct runner *runner, uint64_t counts[SEVERITY_CRITICAL + 1]);
void runner_tally_open(const struct runner *runner, uint64_t counts[SEVERITY_CRITICAL + 1]);
// Whether an exporter's queue is full; whether all stages take input. Any thread, without the lock.
bool runner_is_full(const struct runner *runner);
bool runner_admits(const struct runner *runner);

// SPDX-License-Identifier: Apache-2.0
// What a runner remembers, and what the files that it is made of have for one another: runner.c
// hands batches on, runner_time.c decides when it is time to judge.
#pragma once

#include "base/table/row_index.h"
#include "base/table/table.h"
#include "pipeline/component/feed.h"
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
    const struct slice *empty_inputs; // all of them, where nothing stood in any
    uint32_t empty_count;
    uint64_t refused_count; // records
    struct verdict_title *titles;
    uint32_t title_count;
};

// -- between its files ---------------------------------------------------------------------------

// The batch goes through all stages, and to the senders.
void runner_pass(struct runner *runner, struct batch *batch);
// Makes the moments of the events due. Up to the first event that can pass a moment, when it stops
// there: the number of events noted.
uint32_t runner_note_moments(struct runner *runner, const struct event *events, uint32_t count,
                             bool stops);
// How far it has come, for those who look while it waits.
void runner_note_progress(struct runner *runner);

// SPDX-License-Identifier: Apache-2.0
// One pipeline at work: hands batches from stage to stage and decides when it is time to judge.
//
// Live, it is judged at multiples of evaluate_every in event time, each as soon as the watermark
// has passed it, over the samples up to that moment: the result does not depend on how events were
// batched or raced. With inputs that end it is judged once, at the end.
#pragma once

#include "pipeline/sender.h"

struct runner_stage {
    const struct component_type *type;
    void *instance;
};

struct runner {
    const struct plan_pipeline *plan;
    bool once;
    pthread_mutex_t lock;
    struct runner_stage *stages;
    uint32_t stage_count;
    struct sender **senders;
    uint32_t sender_count;
    struct arena arena;
    uint64_t *due; // moments to judge, ascending: multiples of evaluate_every
    uint32_t due_count;
    uint32_t due_capacity;
    uint64_t judged_ns; // the last one
    bool judged_any;
    bool idle_judged;   // silent inputs have been judged to their end
    uint64_t newest_ns; // of all events
    struct table tally; // last severity of each verdict
};

void runner_init(struct runner *runner, const struct plan_pipeline *plan, bool once);
void runner_release(struct runner *runner);
// A batch of events goes through. Under the runner's lock, like the calls below.
void runner_consume(struct runner *runner, const struct event *events, uint32_t count);
// No older event is expected than this: judges what has become due.
void runner_advance(struct runner *runner, uint64_t watermark_ns);
// All inputs are silent: judges everything that came and gives a first name time to settle.
void runner_idle(struct runner *runner);
// Nothing comes after.
void runner_finish(struct runner *runner);
void runner_tally(const struct runner *runner, uint64_t counts[SEVERITY_CRITICAL + 1]);

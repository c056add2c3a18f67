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

#include "pipeline/runtime/runner_state.h"

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
// feed_may_settle_zone; with `once`.
bool runner_may_settle_zone(struct runner *runner);
// feed_latest_ns; with `once`.
uint64_t runner_latest_ns(const struct runner *runner);
// Nothing comes after.
void runner_finish(struct runner *runner);
// Verdicts by their last severity: all that were put out, and those of them that are not over.
void runner_tally(const struct runner *runner, uint64_t counts[SEVERITY_CRITICAL + 1]);
void runner_tally_open(const struct runner *runner, uint64_t counts[SEVERITY_CRITICAL + 1]);
// Whether an exporter's queue is full; whether all stages take input. Any thread, without the lock.
bool runner_is_full(const struct runner *runner);
bool runner_admits(const struct runner *runner);

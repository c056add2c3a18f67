// SPDX-License-Identifier: Apache-2.0
// Each event's time names the moment at which it is first judged: the next multiple of
// evaluate_every. Those moments are kept in a small sorted list (no gap in the data costs an
// evaluation) and served in order as the watermark passes them. Cost: one comparison an event,
// nearly always.
#include "pipeline/runner.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { RUNNER_ARENA_BLOCK = 256 * 1024, DUE_MAX = 65536 };

struct tally_row {
    uint64_t id;
    enum severity severity;
};

void runner_init(struct runner *runner, const struct plan_pipeline *plan, bool once) {
    *runner = (struct runner){.plan = plan, .once = once};
    pthread_mutex_init(&runner->lock, NULL);
    arena_init(&runner->arena, RUNNER_ARENA_BLOCK);
    table_init(&runner->tally, "runner.tally", sizeof(struct tally_row), 64);
}

void runner_release(struct runner *runner) {
    memory_give(runner->stages);
    memory_give(runner->senders);
    memory_give(runner->due);
    arena_release(&runner->arena);
    table_release(&runner->tally);
    pthread_mutex_destroy(&runner->lock);
}

static uint64_t tally_id(const struct verdict *verdict) {
    // The id ends in 16 hex digits of a hash.
    const char *colon = strrchr(verdict->id, ':');
    return colon == NULL ? 0 : strtoull(colon + 1, NULL, 16);
}

static void count_verdict(struct runner *runner, const struct verdict *verdict) {
    uint64_t id = tally_id(verdict);
    for (uint32_t i = 0; i < runner->tally.used; i++) {
        struct tally_row *row = table_row(&runner->tally, i);
        if (row->id == id) {
            row->severity = verdict->severity;
            return;
        }
    }
    if (runner->tally.used == DUE_MAX)
        return;
    struct tally_row *row = table_row(&runner->tally, table_add(&runner->tally));
    *row = (struct tally_row){id, verdict->severity};
}

void runner_tally(const struct runner *runner, uint64_t counts[SEVERITY_CRITICAL + 1]) {
    for (uint32_t i = 0; i < runner->tally.used; i++)
        counts[((const struct tally_row *)table_row(&runner->tally, i))->severity]++;
}

static void pass(struct runner *runner, struct batch *batch) {
    arena_reset(&runner->arena);
    batch->arena = &runner->arena;
    batch->ordered = runner->once;
    for (uint32_t i = 0; i < runner->stage_count; i++)
        runner->stages[i].type->processor.consume(runner->stages[i].instance, batch);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        count_verdict(runner, &batch->verdicts.items[i]);
    for (uint32_t i = 0; i < runner->sender_count; i++)
        sender_consume(runner->senders[i], batch);
}

static void judge(struct runner *runner, uint64_t as_of_ns, bool last) {
    struct batch batch = {.evaluate = true, .as_of_ns = as_of_ns, .last = last};
    runner->judged_ns = as_of_ns;
    runner->judged_any = true;
    pass(runner, &batch);
}

// The first multiple of evaluate_every at or after `time_ns`; the end of time stays as it is.
static uint64_t moment_after(const struct runner *runner, uint64_t time_ns) {
    uint64_t every = (uint64_t)runner->plan->timing.evaluate_every.ns;
    assert(every > 0);
    uint64_t rest = time_ns % every;
    if (rest == 0)
        return time_ns;
    return time_ns > UINT64_MAX - every ? UINT64_MAX - 1 : time_ns - rest + every;
}

static void add_due(struct runner *runner, uint64_t moment_ns) {
    uint32_t at = runner->due_count;
    while (at > 0 && runner->due[at - 1] > moment_ns)
        at--;
    if (at > 0 && runner->due[at - 1] == moment_ns)
        return;
    if (runner->due_count == DUE_MAX) {
        // Too many moments wait (clocks years apart): the earliest is left to the one after it.
        if (at == 0)
            return;
        memmove(runner->due, runner->due + 1, (DUE_MAX - 1) * sizeof *runner->due);
        runner->due_count--;
        at--;
    }
    if (runner->due_count == runner->due_capacity) {
        runner->due_capacity = runner->due_capacity == 0 ? 64 : runner->due_capacity * 2;
        runner->due = memory_resize(runner->due, runner->due_capacity * sizeof *runner->due);
    }
    memmove(runner->due + at + 1, runner->due + at, (runner->due_count - at) * sizeof *runner->due);
    runner->due[at] = moment_ns;
    runner->due_count++;
}

static void note_moments(struct runner *runner, const struct event *events, uint32_t count) {
    uint64_t every = (uint64_t)runner->plan->timing.evaluate_every.ns;
    uint64_t moment = 0; // of the event before, which most events share
    for (uint32_t i = 0; i < count; i++) {
        uint64_t time_ns = events[i].time_ns;
        if (time_ns > runner->newest_ns)
            runner->newest_ns = time_ns;
        if (time_ns <= moment && moment - time_ns < every)
            continue;
        moment = moment_after(runner, time_ns);
        // What comes after its moment was judged is judged with the next.
        if (!runner->judged_any || moment > runner->judged_ns)
            add_due(runner, moment);
        else
            add_due(runner, moment_after(runner, runner->judged_ns + 1));
    }
}

void runner_consume(struct runner *runner, const struct event *events, uint32_t count) {
    if (!runner->once)
        note_moments(runner, events, count);
    runner->idle_judged = false;
    struct batch batch = {.events = events, .event_count = count};
    pass(runner, &batch);
}

void runner_advance(struct runner *runner, uint64_t watermark_ns) {
    while (runner->due_count > 0 && runner->due[0] <= watermark_ns) {
        uint64_t moment = runner->due[0];
        runner->due_count--;
        memmove(runner->due, runner->due + 1, runner->due_count * sizeof *runner->due);
        judge(runner, moment, false);
    }
}

void runner_idle(struct runner *runner) {
    if (runner->idle_judged)
        return;
    runner->idle_judged = true;
    runner_advance(runner, UINT64_MAX);
    uint64_t settle = (uint64_t)runner->plan->timing.settle.ns;
    if (runner->judged_any && runner->judged_ns < UINT64_MAX - settle - 1)
        judge(runner, moment_after(runner, runner->judged_ns + settle + 1), false);
}

void runner_finish(struct runner *runner) {
    judge(runner, UINT64_MAX, true);
}

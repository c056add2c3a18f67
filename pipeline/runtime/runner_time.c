// SPDX-License-Identifier: Apache-2.0
// When a pipeline is judged. Each event's time names the moment at which it is first judged: the
// next multiple of evaluate_every. Those moments are kept in a small sorted list (no gap in the
// data costs an evaluation) and served in order as the watermark passes them. Cost: one comparison
// an event, nearly always. Finding the watermark walks the sources, but not again before the one
// that held it back has moved.
#include "pipeline/runtime/runner.h"

#include "base/memory.h"
#include "pipeline/model/batch.h"
#include "pipeline/runtime/now/now.h"
#include "pipeline/runtime/now/times.h"

#include <assert.h>

enum { DUE_MAX = 65536 };

static const uint64_t COMPARE_NS = 1000000000; // how often sources are compared, at most

static void judge(struct runner *runner, uint64_t as_of_ns, bool last, bool rests) {
    assert(lock_is_held(&runner->lock));
    assert(last || !runner->state.judged_any || as_of_ns >= runner->state.judged_ns);
    struct batch batch = {.evaluate = true, .as_of_ns = as_of_ns, .last = last, .rests = rests};
    if (last) {
        batch.missing_inputs = runner->missing_inputs;
        batch.missing_count = runner->missing_count;
        batch.empty_inputs = runner->empty_inputs;
        batch.empty_count = runner->empty_count;
        batch.refused_count = runner->refused_count;
    }
    runner->state.judged_ns = as_of_ns;
    runner->state.judged_any = true;
    runner->changed = true;
    atomic_fetch_add_explicit(&runner->evaluations, 1, memory_order_relaxed);
    runner_pass(runner, &batch);
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
    assert(runner->state.due_count <= runner->due_capacity);
    uint32_t at = runner->state.due_count;
    while (at > 0 && runner->due[at - 1] > moment_ns)
        at--;
    if (at > 0 && runner->due[at - 1] == moment_ns)
        return;
    if (runner->state.due_count == DUE_MAX) {
        // Too many moments wait (clocks years apart): the earliest is left to the one after it.
        if (at == 0)
            return;
        memmove(runner->due, runner->due + 1, (DUE_MAX - 1) * sizeof *runner->due);
        runner->state.due_count--;
        at--;
    }
    runner->due = memory_room(runner->due, &runner->due_capacity, runner->state.due_count,
                              sizeof *runner->due);
    memmove(runner->due + at + 1, runner->due + at,
            (runner->state.due_count - at) * sizeof *runner->due);
    runner->due[at] = moment_ns;
    runner->state.due_count++;
}

static uint64_t lateness_of(const struct runner *runner) {
    return (uint64_t)runner->plan->timing.allowed_lateness.ns;
}

// The time by which the first moment is passed; UINT64_MAX: there is none.
static uint64_t first_turn(const struct runner *runner) {
    return runner->state.due_count == 0 ? UINT64_MAX : runner->due[0] + lateness_of(runner);
}

uint64_t runner_turn(const struct runner *runner, uint64_t time_ns) {
    assert(runner->magic == RUNNER_MAGIC);
    uint64_t every = (uint64_t)runner->plan->timing.evaluate_every.ns,
             lateness = lateness_of(runner);
    if (time_ns < lateness)
        return lateness;
    uint64_t over = every - (time_ns - lateness) % every;
    return time_ns > UINT64_MAX - over ? UINT64_MAX : time_ns + over;
}

uint32_t runner_note_moments(struct runner *runner, const struct event *events, uint32_t count,
                             bool stops) {
    assert(!runner->once);
    uint64_t every = (uint64_t)runner->plan->timing.evaluate_every.ns;
    uint64_t moment = 0; // of the event before, which most events share
    uint64_t turn = stops ? first_turn(runner) : UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t time_ns = events[i].time_ns;
        if (events[i].timeless)
            continue;
        if (time_ns >= turn)
            return i;
        if (time_ns <= moment && moment - time_ns < every)
            continue;
        moment = moment_after(runner, time_ns);
        // What comes after its moment was judged is judged with the next.
        if (!runner->state.judged_any || moment > runner->state.judged_ns)
            add_due(runner, moment);
        else
            add_due(runner, moment_after(runner, runner->state.judged_ns + 1));
        turn = stops ? first_turn(runner) : UINT64_MAX;
    }
    return count;
}

uint64_t runner_max_jump(const struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC);
    return watch_max_jump(&runner->watch);
}

// Brings state.now_ns up to what the sources say by now.
static void find_now(struct runner *runner, enum now_end end, uint64_t unix_ns) {
    assert(lock_is_held(&runner->lock));
    arena_reset(&runner->arena);
    uint64_t now = watch_now(&runner->watch, end, unix_ns, &runner->arena);
    if (now > runner->state.now_ns)
        runner->state.now_ns = now;
}

// The first moment at which the source is silent if nothing more comes from it.
static uint64_t silent_at(const struct runner *runner, const struct runner_source *source) {
    return source->last_seen_ns + (uint64_t)runner->plan->timing.idle_timeout.ns + 1;
}

// The first moment at which it holds nothing back any more.
static uint64_t passed_at(const struct runner *runner, const struct runner_source *source) {
    const struct pipeline_timing *timing = &runner->plan->timing;
    int64_t rest_ns = timing->caught_up_timeout.ns;
    if (timing->allowed_lateness.ns > rest_ns)
        rest_ns = timing->allowed_lateness.ns;
    if (!source->at_end || timing->idle_timeout.ns < rest_ns)
        return silent_at(runner, source);
    return source->last_seen_ns + (uint64_t)rest_ns + 1;
}

static bool is_speaking(const struct runner *runner, const struct runner_source *source,
                        uint64_t monotonic_ns) {
    return source->in_use && !source->left && silent_at(runner, source) > monotonic_ns;
}

static bool is_active(const struct runner *runner, const struct runner_source *source,
                      uint64_t monotonic_ns) {
    return source->in_use && !source->left && passed_at(runner, source) > monotonic_ns;
}

// The newest event of the active source that is furthest behind; UINT64_MAX when none is active.
static uint64_t lowest_active(struct runner *runner, uint64_t monotonic_ns) {
    if (runner->holder < runner->sources.used) {
        const struct runner_source *holder = runner_source_at(runner, runner->holder);
        // A time of its own that waits for company gets it from another source.
        if (holder->newest_ns == runner->holder_newest_ns &&
            holder->newest_ns == runner->holder_ns && is_active(runner, holder, monotonic_ns))
            return runner->holder_ns;
    }
    find_now(runner, NOW_GOES_ON, 0);
    uint64_t lowest = UINT64_MAX;
    runner->holder = TABLE_NO_ROW;
    for (uint32_t i = 0; i < runner->sources.used; i++) {
        const struct runner_source *source = runner_source_at(runner, i);
        if (!is_active(runner, source, monotonic_ns))
            continue;
        uint64_t reached =
            source_times_until(&watch_clock(&runner->watch, i)->times, runner->state.now_ns);
        if (reached >= lowest)
            continue;
        lowest = runner->holder_ns = reached;
        runner->holder_newest_ns = source->newest_ns;
        runner->holder = i;
    }
    return lowest;
}

static bool is_compared(void *context, uint32_t row) {
    const struct runner *runner = context;
    return row < runner->sources.used &&
           is_speaking(runner, runner_source_at(runner, row), runner->looked_ns);
}

static void compare_sources(struct runner *runner, uint64_t monotonic_ns) {
    runner->compared_ns = monotonic_ns;
    arena_reset(&runner->arena);
    watch_offsets(&runner->watch, is_compared, runner, &runner->arena);
}

static void judge_due(struct runner *runner, uint64_t watermark_ns) {
    assert(lock_is_held(&runner->lock));
    uint32_t done = 0;
    while (done < runner->state.due_count && runner->due[done] <= watermark_ns)
        judge(runner, runner->due[done++], false, false);
    runner->state.due_count -= done;
    if (done > 0)
        memmove(runner->due, runner->due + done, runner->state.due_count * sizeof *runner->due);
    runner_note_progress(runner);
}

static bool holds(const struct runner *runner, uint64_t monotonic_ns) {
    return runner->holds > 0 && monotonic_ns < runner->hold_until_ns;
}

// When the last of the sources is silent: 0 when none is there that holds back.
static uint64_t all_silent_at(const struct runner *runner) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < runner->sources.used; i++) {
        const struct runner_source *source = runner_source_at(runner, i);
        if (source->in_use && !source->left && silent_at(runner, source) > last)
            last = silent_at(runner, source);
    }
    return last;
}

enum runner_rest runner_advance(struct runner *runner, uint64_t monotonic_ns) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(lock_is_held(&runner->lock));
    // A delivery brings the time when its first event came, which others may have passed meanwhile.
    if (monotonic_ns > runner->looked_ns)
        runner->looked_ns = monotonic_ns;
    monotonic_ns = runner->looked_ns;
    if (runner->state.idle_judged || runner->state.newest_ns == 0 || holds(runner, monotonic_ns))
        return RUNNER_ACTIVE;
    if (monotonic_ns - runner->compared_ns >= COMPARE_NS)
        compare_sources(runner, monotonic_ns);
    // As long as no event is newer than the first moment, no watermark has passed it.
    uint64_t lateness = lateness_of(runner);
    bool possible = runner->state.due_count > 0 && runner->state.newest_ns >= lateness &&
                    runner->state.newest_ns - lateness >= runner->due[0];
    if (!possible && runner->holder < runner->sources.used &&
        is_active(runner, runner_source_at(runner, runner->holder), monotonic_ns))
        return RUNNER_ACTIVE;
    uint64_t lowest = lowest_active(runner, monotonic_ns);
    if (lowest != UINT64_MAX) {
        if (lowest > lateness)
            judge_due(runner, lowest - lateness);
        return RUNNER_ACTIVE;
    }
    if (all_silent_at(runner) <= monotonic_ns)
        return RUNNER_SILENT;
    runner->quiet_judged = runner->quiet_judged || runner->state.due_count == 0;
    return runner->quiet_judged ? RUNNER_ACTIVE : RUNNER_QUIET;
}

void runner_judge_rest(struct runner *runner, enum runner_rest rest) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(lock_is_held(&runner->lock));
    runner->state.rest_due = RUNNER_ACTIVE;
    if (rest == RUNNER_ACTIVE || runner->state.idle_judged || runner->state.newest_ns == 0)
        return;
    runner->quiet_judged = true;
    runner->state.idle_judged = rest == RUNNER_SILENT;
    find_now(runner, rest == RUNNER_SILENT ? NOW_ENDS : NOW_RESTS, runner->state.rest_unix_ns);
    // What came after its moment had been judged is due with the next one.
    uint64_t until = runner->state.now_ns;
    if (runner->state.judged_any && runner->state.judged_ns >= until)
        until = runner->state.judged_ns + 1;
    judge_due(runner, moment_after(runner, until));
    if (rest != RUNNER_SILENT)
        return;
    uint64_t settle = (uint64_t)runner->plan->timing.settle.ns;
    if (runner->state.judged_any && runner->state.judged_ns < UINT64_MAX - settle - 1)
        judge(runner, moment_after(runner, runner->state.judged_ns + settle + 1), false, true);
}

uint64_t runner_next_look(const struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(lock_is_held(&runner->lock));
    if (runner->state.idle_judged || runner->state.newest_ns == 0)
        return UINT64_MAX;
    if (holds(runner, runner->looked_ns))
        return runner->hold_until_ns;
    // What was silent at the last look was taken into account there, and means nothing until it
    // speaks again.
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < runner->sources.used; i++) {
        const struct runner_source *source = runner_source_at(runner, i);
        if (is_active(runner, source, runner->looked_ns) && passed_at(runner, source) < next)
            next = passed_at(runner, source);
    }
    if (next == UINT64_MAX)
        next = runner->quiet_judged ? all_silent_at(runner) : runner->looked_ns;
    return next > runner->looked_ns ? next : runner->looked_ns;
}

bool runner_looks_late(const struct runner *runner, uint32_t row) {
    assert(runner->magic == RUNNER_MAGIC);
    const struct runner_source *source = runner_source_at(runner, row);
    // Nothing is judged before all have caught up, which ends the sleep by itself.
    return source->at_end && !source->left && !holds(runner, runner->looked_ns) &&
           passed_at(runner, source) < runner->look_ns;
}

void runner_finish(struct runner *runner) {
    assert(runner->magic == RUNNER_MAGIC);
    assert(lock_is_held(&runner->lock));
    find_now(runner, NOW_ENDS, 0);
    if (runner->once)
        watch_offsets_at_end(&runner->watch, &runner->arena);
    judge(runner, UINT64_MAX, true, false);
}

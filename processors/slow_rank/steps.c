// SPDX-License-Identifier: Apache-2.0
// Makes steps of boundaries: what a process did from the begin of one step to that of the next, and
// which steps of different processes are one step of the job. A step begins with a scope that is
// named as one, else with a phase that comes again and again (cycle.c).
//
// Boundaries wait until an evaluation reaches their time, so that their order does not matter. Of a
// process only one thread counts, that of its steps, and of nested scopes the outermost within the
// step; a wait inside one is taken out of it. A process is in the newest step of its job when it
// begins one, or begins a newer one itself: synchronised ranks are never further apart, and clocks
// that differ shift a process by the same number of steps each time. A job's step is judged when
// all processes have passed it, or when it lies PENDING_MAX steps back. Cost: O(log) a boundary.
#include "processors/slow_rank/parts.h"

#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/due_rows.h"

struct process_key {
    string_id job, session;
    int32_t rank;
};
_Static_assert(offsetof(struct process, entered) ==
                   sizeof(struct row_head) + sizeof(struct process_key),
               "the key lies in the row as in struct process_key");

struct phase_key {
    string_id job, name;
};
_Static_assert(offsetof(struct slow_phase, class) ==
                   sizeof(struct row_head) + sizeof(struct phase_key),
               "the key lies in the row as in struct phase_key");

const struct row_type BOUNDARY_ROWS = ROW_TYPE(
    struct boundary, 256, offsetof(struct boundary, job), offsetof(struct boundary, session),
    offsetof(struct boundary, node), offsetof(struct boundary, name));
const struct row_type PROCESS_ROWS = {
    .size = sizeof(struct process),
    .key_size = sizeof(struct process_key),
    .rows_per_chunk = 16,
    .strings = {offsetof(struct process, job), offsetof(struct process, session),
                offsetof(struct process, node), offsetof(struct process, open_name),
                offsetof(struct process, inner_name)},
};
const struct row_type STEP_PART_ROWS = ROW_TYPE(
    struct step_part, 64, offsetof(struct step_part, session), offsetof(struct step_part, node));
const struct row_type SLOW_JOB_ROWS = {
    .size = sizeof(struct slow_job),
    .key_size = sizeof(string_id),
    .rows_per_chunk = 8,
    .strings = {offsetof(struct slow_job, job), offsetof(struct slow_job, first_phase)},
};
const struct row_type SLOW_PHASE_ROWS = {
    .size = sizeof(struct slow_phase),
    .key_size = sizeof(struct phase_key),
    .rows_per_chunk = 16,
    .strings = {offsetof(struct slow_phase, job), offsetof(struct slow_phase, name),
                offsetof(struct slow_phase, since_session)},
};

// -- Jobs -----------------------------------------------------------------------------------------

void slow_begin_anew(struct slow_rank *self, struct slow_job *job) {
    for (uint32_t i = 0; i < PENDING_MAX; i++) {
        table_free_list(&self->parts, offsetof(struct step_part, next),
                        &job->pending[i].parts.first);
        job->pending[i] = (struct pending_step){.parts = ROW_LIST_EMPTY};
    }
    for (uint32_t i = 0; i < job->phase_count; i++) {
        slow_phase_at(self, job, i)->seen = 0;
        slow_phase_at(self, job, i)->high_bits = 0;
    }
    job->first = job->end;
    job->expected = 0;
    job->serial = ++self->count.serial;
}

static void forget_job(struct slow_rank *self, struct slow_job *job) {
    slow_begin_anew(self, job);
    for (uint32_t i = 0; i < job->phase_count; i++)
        keyed_rows_remove(&self->phases, slow_phase_at(self, job, i));
    keyed_rows_remove(&self->jobs, job);
    self->count.jobs_evicted++;
}

static struct slow_job *job_of(struct slow_rank *self, string_id id, uint64_t now_ns) {
    struct slow_job *job = keyed_rows_find(&self->jobs, &id);
    if (job == NULL) {
        if (keyed_rows_count(&self->jobs) >= (uint32_t)self->config.max_jobs)
            forget_job(self, rows_oldest(&self->jobs, offsetof(struct slow_job, seen_ns)));
        job = keyed_rows_add(&self->jobs, &id);
        for (uint32_t i = 0; i < PENDING_MAX; i++)
            job->pending[i].parts = ROW_LIST_EMPTY;
        job->serial = ++self->count.serial;
    }
    job->seen_ns = now_ns;
    return job;
}

uint32_t slow_phase_of(struct slow_rank *self, struct slow_job *job, string_id name) {
    for (uint32_t i = 0; i < job->phase_count; i++)
        if (slow_phase_at(self, job, i)->name == name)
            return i;
    if (job->phase_count == PHASES_MAX || name == STRING_NONE)
        return PHASES_MAX;
    struct phase_key key = {job->job, name};
    struct slow_phase *phase = keyed_rows_add(&self->phases, &key);
    phase->class = phase_class_of(name);
    job->phases[job->phase_count] = keyed_rows_number(&self->phases, phase);
    return job->phase_count++;
}

static struct pending_step *pending_at(struct slow_job *job, uint32_t step) {
    assert(step >= job->first && step < job->end && job->end - job->first <= PENDING_MAX);
    return &job->pending[step % PENDING_MAX];
}

static void judge_first(struct slow_rank *self, struct slow_job *job, struct arena *scratch) {
    struct pending_step *step = pending_at(job, job->first);
    slow_weigh(self, job, &step->parts, scratch);
    job->expected = step->done;
    table_free_list(&self->parts, offsetof(struct step_part, next), &step->parts.first);
    *step = (struct pending_step){.parts = ROW_LIST_EMPTY};
    job->first++;
}

static void judge_passed(struct slow_rank *self, struct slow_job *job, struct arena *scratch) {
    while (job->first < job->end) {
        const struct pending_step *step = pending_at(job, job->first);
        if (step->done == 0 || step->done < step->begun || step->done < job->expected)
            return;
        judge_first(self, job, scratch);
    }
}

// -- Processes ------------------------------------------------------------------------------------

static uint32_t micros(uint64_t from_ns, uint64_t to_ns) {
    uint64_t us = to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void add_time(struct slow_rank *self, struct slow_job *job, struct process *process,
                     string_id name, uint64_t length_ns) {
    uint32_t phase = slow_phase_of(self, job, name);
    if (phase == PHASES_MAX)
        return;
    uint32_t more = micros(0, length_ns), *sum = &process->now.phase_us[phase];
    *sum = *sum > UINT32_MAX - more ? UINT32_MAX : *sum + more;
}

static void drop_open(struct process *process) {
    process->open_depth = process->inner_depth = 0;
    process->waited_ns = 0;
}

static void pass_step(struct slow_rank *self, struct slow_job *job, struct process *process,
                      uint64_t now_ns) {
    if (process->step < job->first)
        return; // it was judged without this process
    assert(process->step < job->end);
    process->now.period_us = micros(process->now.begin_ns, now_ns);
    process->now.is_whole &= process->steps > (uint32_t)self->config.warm_up;
    struct pending_step *step = pending_at(job, process->step);
    uint32_t number = table_add(&self->parts);
    *(struct step_part *)table_row(&self->parts, number) =
        (struct step_part){.process = keyed_rows_number(&self->processes, process),
                           .serial = process->serial,
                           .rank = process->rank,
                           .session = process->session,
                           .node = process->node,
                           .times = process->now};
    table_append(&self->parts, offsetof(struct step_part, next), &step->parts, number);
    step->done++;
}

// Also when its job was forgotten in between, or has other steps from here on.
static void begin_process(struct slow_rank *self, const struct slow_job *job,
                          struct process *process, int64_t thread) {
    size_t kept = job->first_phase == STRING_NONE ? offsetof(struct process, entered)
                                                  : offsetof(struct process, node);
    memset((char *)process + kept, 0, sizeof *process - kept);
    process->serial = ++self->count.serial;
    process->job_serial = job->serial;
    process->marked_until = job->judged;
    process->thread = thread;
    memset(process->blamed, PHASE_NONE_BLAMED, sizeof process->blamed);
}

static void begin_step(struct slow_rank *self, struct slow_job *job, struct process *process,
                       const struct boundary *at, struct arena *scratch) {
    bool has_step = process->steps > 0;
    uint32_t last = process->step;
    // A scope that is still open is what the step stands in.
    drop_open(process);
    if (has_step)
        pass_step(self, job, process, at->time_ns);
    bool newer = job->first == job->end || (has_step && last + 1 >= job->end);
    if (newer && job->end - job->first == PENDING_MAX)
        judge_first(self, job, scratch);
    if (newer)
        job->pending[job->end++ % PENDING_MAX] = (struct pending_step){.parts = ROW_LIST_EMPTY};
    process->step = job->end - 1;
    pending_at(job, process->step)->begun++;
    process->steps++;
    process->in_step = 1;
    process->unmarked = 0;
    process->depth = at->depth;
    process->thread = at->thread;
    process->now = (struct step_times){.begin_ns = at->time_ns, .is_whole = 1};
    judge_passed(self, job, scratch);
}

static void enter(struct process *process, const struct boundary *at) {
    if (process->open_depth > 0 && at->depth <= process->open_depth) {
        // The end of the other was missed.
        process->now.is_whole = 0;
        drop_open(process);
    }
    if (process->open_depth == 0) {
        // Within the scope of a step whose begin was missed.
        process->now.is_whole &= process->in_step != 0 || at->depth <= process->depth;
        process->open_depth = at->depth;
        process->open_name = at->name;
        process->open_ns = at->time_ns;
    } else if (process->inner_depth == 0 && phase_class_of(at->name) == PHASE_WAIT) {
        process->inner_depth = at->depth;
        process->inner_name = at->name;
        process->inner_ns = at->time_ns;
    }
}

static void leave(struct slow_rank *self, struct slow_job *job, struct process *process,
                  const struct boundary *at) {
    if (process->inner_depth == at->depth && process->inner_name == at->name) {
        uint64_t length_ns = at->time_ns - process->inner_ns;
        bool within_wait = phase_class_of(process->open_name) == PHASE_WAIT;
        if (!within_wait)
            add_time(self, job, process, at->name, length_ns);
        process->waited_ns += within_wait ? 0 : length_ns;
        process->inner_depth = 0;
    } else if (process->open_depth == at->depth && process->open_name == at->name) {
        uint64_t length_ns = at->time_ns - process->open_ns;
        add_time(self, job, process, at->name,
                 length_ns > process->waited_ns ? length_ns - process->waited_ns : 0);
        drop_open(process);
    }
}

static bool is_repeat_of_step(const struct slow_rank *self, const struct slow_job *job,
                              const struct process *process, const struct boundary *at) {
    return at->is_enter != 0 && process->steps > 0 && at->time_ns == process->now.begin_ns &&
           (phase_is_step(&self->config, at->name) || at->name == job->first_phase);
}

static void enter_phase(struct slow_rank *self, struct slow_job *job, struct process *process,
                        const struct boundary *at, struct arena *scratch) {
    bool begins = slow_begins_step(self, job, process, at);
    if (process->job_serial != job->serial) {
        begin_process(self, job, process, at->thread);
        process->seen_ns = at->time_ns;
        process->node = at->node;
    }
    bool outer = process->steps == 0 || process->in_step == 0 || at->depth <= process->depth;
    if (begins && outer)
        begin_step(self, job, process, at, scratch);
    bool is_within = !(begins && outer) || at->name == job->first_phase;
    if (process->steps > 0 && is_within)
        enter(process, at);
}

static void read_boundary(struct slow_rank *self, const struct boundary *at,
                          struct arena *scratch) {
    struct process_key key = {at->job, at->session, at->rank};
    bool is_step = phase_is_step(&self->config, at->name);
    struct process *process = keyed_rows_find(&self->processes, &key);
    // Without a step there is nothing to compare.
    bool may_begin = at->is_enter != 0 && (is_step || self->config.step_phase == NULL);
    if (process == NULL && !may_begin)
        return;
    struct slow_job *job = job_of(self, at->job, at->time_ns);
    if (process == NULL)
        process = row_bound_take(&self->processes, &self->process_bound, &key,
                                 offsetof(struct process, seen_ns), scratch);
    if (process->job_serial != job->serial)
        begin_process(self, job, process, at->thread);
    // What comes too late to be put in order is left out, and so is a repeat.
    if (at->time_ns < process->seen_ns || is_repeat_of_step(self, job, process, at))
        return;
    process->seen_ns = at->time_ns;
    process->node = at->node;
    if (at->thread != process->thread && (process->steps > 0 || !is_step))
        return;
    if (at->is_enter != 0) {
        enter_phase(self, job, process, at, scratch);
    } else if (is_step && process->in_step != 0 && at->depth == process->depth) {
        process->now.is_whole &= process->open_depth == 0;
        process->in_step = 0;
        drop_open(process);
    } else {
        leave(self, job, process, at);
    }
}

// -- The queue ------------------------------------------------------------------------------------

void slow_take(struct slow_rank *self, const struct event *event, struct arena *scratch) {
    const struct telemetry *telemetry = event->telemetry;
    const struct phase_scope *scope = telemetry->scope;
    assert(scope != NULL);
    if (table_live(&self->waiting) >= (uint32_t)self->config.max_waiting)
        slow_read(self, UINT64_MAX, scratch);
    uint32_t number = table_add(&self->waiting);
    *(struct boundary *)table_row(&self->waiting, number) =
        (struct boundary){.live = 1,
                          .time_ns = telemetry->timestamp_ns,
                          .sequence = scope->sequence,
                          .thread = scope->thread_id,
                          .job = event->job,
                          .session = telemetry->session,
                          .node = telemetry->host,
                          .name = phase_name(scope->label),
                          .rank = telemetry->rank,
                          .depth = scope->depth,
                          .is_enter = telemetry->type == TELEMETRY_PHASE_ENTER};
}

static bool is_due(const void *row, uint64_t until_ns) {
    const struct boundary *boundary = row;
    return boundary->live != 0 && boundary->time_ns <= until_ns;
}

static int compare_boundaries(const void *left, const void *right) {
    const struct boundary *a = ((const struct due_row *)left)->row;
    const struct boundary *b = ((const struct due_row *)right)->row;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    int order = COMPARE_KEYS(COMPARE(a->rank, b->rank), compare_strings(a->job, b->job),
                             compare_strings(a->session, b->session),
                             COMPARE(a->sequence, b->sequence), COMPARE(a->is_enter, b->is_enter));
    // Of scopes without a sequence that end at once the inner one ends first.
    return order != 0
               ? order
               : COMPARE_KEYS(a->is_enter != 0 ? COMPARE(a->depth, b->depth)
                                               : COMPARE(b->depth, a->depth),
                              COMPARE(a->thread, b->thread), compare_strings(a->name, b->name),
                              compare_strings(a->node, b->node));
}

static bool is_repeat(const struct due_rows *due, uint32_t i) {
    return i > 0 && compare_boundaries(&due->items[i - 1], &due->items[i]) == 0;
}

void slow_read(struct slow_rank *self, uint64_t until_ns, struct arena *scratch) {
    struct due_rows due =
        due_rows_sorted(&self->waiting, is_due, until_ns, scratch, compare_boundaries);
    for (uint32_t i = 0; i < due.count; i++)
        if (!is_repeat(&due, i))
            read_boundary(self, due.items[i].row, scratch);
    for (uint32_t i = 0; i < due.count; i++) {
        ((struct boundary *)due.items[i].row)->live = 0;
        table_free(&self->waiting, due.items[i].number);
    }
}

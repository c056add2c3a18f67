// SPDX-License-Identifier: Apache-2.0
// Which phase begins a step where no scope is named as one: the outermost that comes again and
// again, of several the one that comes least often (what accumulates gradients repeats a part of a
// step), else the one that came first. Each process counts until one phase has begun LEARNED_AFTER
// of its steps; what it finds holds for the job. Cost: O(phases) a boundary.
#include "processors/slow_rank/parts.h"

enum {
    AGAIN_MIN = 4,      // times; what comes less often may be the program's beginning
    LEARNED_AFTER = 32, // steps
    // Phases without a step: the job does something else now. Evaluation may be long, but once.
    UNMARKED_MAX = 64,
    UNMARKED_LEARNED_MAX = 1024,
};

static uint32_t first_phase_of(const struct slow_rank *self, const struct slow_job *job) {
    for (uint32_t i = 0; i < job->phase_count; i++)
        if (slow_phase_at(self, job, i)->name == job->first_phase)
            return i;
    return PHASES_MAX;
}

// Whether steps that begin with the phase are more those of the job than those known.
static bool fits_better(const struct process *process, uint32_t phase, uint32_t known) {
    if (known == PHASES_MAX)
        return true;
    uint32_t times = process->entered[phase], known_times = process->entered[known];
    if (known_times < AGAIN_MIN || process->depths[phase] > process->depths[known])
        return false;
    return process->depths[phase] < process->depths[known] || 2 * times <= known_times;
}

static void count_phase(struct slow_rank *self, struct slow_job *job, struct process *process,
                        const struct boundary *at) {
    uint32_t known = first_phase_of(self, job);
    bool is_learned = known != PHASES_MAX && process->entered[known] >= LEARNED_AFTER;
    if (known != PHASES_MAX &&
        ++process->unmarked > (is_learned ? UNMARKED_LEARNED_MAX : UNMARKED_MAX)) {
        job->first_phase = STRING_NONE;
        slow_begin_anew(self, job);
        return;
    }
    if (is_learned)
        return;
    uint32_t phase = slow_phase_of(self, job, at->name);
    if (phase == PHASES_MAX || process->entered[phase] == UINT8_MAX)
        return;
    uint8_t depth = at->depth < UINT8_MAX ? (uint8_t)at->depth : UINT8_MAX;
    if (process->entered[phase]++ == 0 || depth < process->depths[phase])
        process->depths[phase] = depth;
    if (process->entered[phase] < AGAIN_MIN || phase == known || !phase_may_begin_step(at->name) ||
        !fits_better(process, phase, known))
        return;
    job->first_phase = at->name;
    slow_begin_anew(self, job);
}

bool slow_begins_step(struct slow_rank *self, struct slow_job *job, struct process *process,
                      const struct boundary *at) {
    if (phase_is_step(&self->config, at->name)) {
        if (job->first_phase != STRING_NONE)
            slow_begin_anew(self, job);
        job->first_phase = STRING_NONE;
        job->has_step_scopes = 1;
        return true;
    }
    if (self->config.step_phase != NULL || job->has_step_scopes != 0)
        return false;
    count_phase(self, job, process, at);
    return at->name == job->first_phase;
}

// SPDX-License-Identifier: Apache-2.0
// Weighs the processes in one step of a job: whose own work was longer than that of the others
// while it waited less, whose checkpoint, and what took all of them longer than usual.
//
// Own work is input and computing; wait is all of the step that is neither work, evaluation nor
// checkpoint. A process holds up the others when its own work is `min_ratio` times the median of
// the others, none works much longer, and the others wait longer than it by at least half of what
// it works longer. Where nobody waits, the work is not synchronised.
#include "base/sort.h"
#include "processors/slow_rank/parts.h"

// Of processes that hold up the others together, those within a sixteenth of the slowest.
enum { NEAR_SLOWEST = 16 };

struct step {
    const struct step_part **parts; // whole ones
    uint32_t count;
    bool is_common[PHASES_MAX]; // at least half of them, and two, have this phase
    bool is_own[PHASES_MAX];    // and it is own work
    bool is_busy[PHASES_MAX];   // own work or not, it is no wait
    enum phase_class class[PHASES_MAX];
    uint32_t phase_count;
    uint32_t *sorted[PHASES_MAX]; // times of all parts in this phase; NULL: not needed yet
    struct arena *scratch;
};

static uint32_t added(uint32_t a, uint32_t b) {
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static uint32_t less(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

// The upper median of all but this one of the sorted values.
static uint32_t median_of_others(const uint32_t *sorted, uint32_t count, uint32_t value) {
    assert(count >= 2);
    uint32_t middle = (count - 1) / 2;
    return value <= sorted[middle] ? sorted[middle + 1] : sorted[middle];
}

static void gather(const struct slow_rank *self, const struct slow_job *job,
                   const struct row_list *parts, struct step *step, struct arena *scratch) {
    const struct step_part *part;
    uint32_t count = 0;
    for (uint32_t row = parts->first; row != TABLE_NO_ROW; row = part->next) {
        part = table_row(&self->parts, row);
        count++;
    }
    *step = (struct step){.parts = arena_take(scratch, (count + 1) * sizeof *step->parts),
                          .phase_count = job->phase_count,
                          .scratch = scratch};
    for (uint32_t row = parts->first; row != TABLE_NO_ROW; row = part->next) {
        part = table_row(&self->parts, row);
        if (part->times.is_whole != 0)
            step->parts[step->count++] = part;
    }
}

static void classify(const struct slow_rank *self, const struct slow_job *job, struct step *step) {
    bool has_wait = false;
    for (uint32_t p = 0; p < step->phase_count; p++) {
        uint32_t have = 0;
        for (uint32_t i = 0; i < step->count; i++)
            have += step->parts[i]->times.phase_us[p] > 0;
        step->class[p] = (enum phase_class)slow_phase_at(self, job, p)->class;
        step->is_common[p] = have >= 2 && 2 * have >= step->count;
        has_wait = has_wait || (step->is_common[p] && step->class[p] == PHASE_WAIT);
    }
    for (uint32_t p = 0; p < step->phase_count; p++) {
        enum phase_class class = step->class[p];
        bool works =
            class == PHASE_COMPUTE || class == PHASE_INPUT || (class == PHASE_BACKWARD && has_wait);
        step->is_own[p] = works && step->is_common[p];
        step->is_busy[p] = works || class == PHASE_CHECKPOINT || class == PHASE_OTHER;
    }
}

static uint32_t sum_of(const struct step *step, const struct step_part *part,
                       const bool *is_counted) {
    uint32_t sum = 0;
    for (uint32_t p = 0; p < step->phase_count; p++)
        sum = added(sum, is_counted[p] ? part->times.phase_us[p] : 0);
    return sum;
}

static void sort_times(uint32_t *times, uint32_t count, struct arena *scratch) {
    sort_stable(times, count, sizeof *times, scratch, compare_by_u32);
}

static uint32_t phase_of_others(struct step *step, uint32_t phase, uint32_t value) {
    if (step->sorted[phase] == NULL) {
        uint32_t *times = step->sorted[phase] =
            arena_take(step->scratch, step->count * sizeof *times);
        for (uint32_t i = 0; i < step->count; i++)
            times[i] = step->parts[i]->times.phase_us[phase];
        sort_times(times, step->count, step->scratch);
    }
    return median_of_others(step->sorted[phase], step->count, value);
}

// The phase of these in which it took longest against the others.
static uint32_t largest_excess(struct step *step, const struct step_part *part,
                               const bool *is_counted) {
    uint32_t found = PHASE_NONE_BLAMED, most = 0;
    for (uint32_t p = 0; p < step->phase_count; p++) {
        uint32_t own = part->times.phase_us[p];
        if (!is_counted[p] || own <= most)
            continue;
        uint32_t excess = less(own, phase_of_others(step, p, own));
        if (excess > most) {
            most = excess;
            found = p;
        }
    }
    return found;
}

static struct process *process_of(const struct slow_rank *self, const struct step_part *part) {
    struct process *process = table_row(&self->processes.table, part->process);
    return process->head.live != 0 && process->serial == part->serial ? process : NULL;
}

// -- Own work -------------------------------------------------------------------------------------

static bool comes_before(const struct step_part *a, const struct step_part *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->times.begin_ns < b->times.begin_ns;
}

static void find_victim(struct weighed *list, uint32_t count) {
    const struct weighed *victim = &list[0];
    for (uint32_t i = 1; i < count; i++)
        if (list[i].wait_us > victim->wait_us ||
            (list[i].wait_us == victim->wait_us && comes_before(list[i].part, victim->part)))
            victim = &list[i];
    for (uint32_t i = 0; i < count; i++) {
        list[i].victim = list[i].part == victim->part ? NULL : victim->part;
        list[i].victim_wait_us = victim->wait_us;
    }
}

static bool holds_up(const struct slow_rank *self, const struct weighed *weighed,
                     uint32_t longest_us) {
    uint32_t excess_us = less(weighed->own_us, weighed->others_us);
    return excess_us > 0 &&
           (double)weighed->own_us >= self->config.min_ratio * (double)weighed->others_us &&
           longest_us - weighed->own_us <= longest_us / NEAR_SLOWEST &&
           added(weighed->wait_us, excess_us / 2) <= weighed->others_wait_us;
}

static void weigh_work(struct slow_rank *self, struct slow_job *job, struct step *step,
                       struct arena *scratch) {
    uint32_t count = step->count, longest_us = 0, number = job->judged++;
    struct weighed *list = arena_zero(scratch, count, sizeof *list);
    uint32_t *works = arena_take(scratch, count * sizeof *works);
    uint32_t *waits = arena_take(scratch, count * sizeof *waits);
    for (uint32_t i = 0; i < count; i++) {
        const struct step_part *part = step->parts[i];
        list[i].part = part;
        list[i].process = process_of(self, part);
        list[i].phase = PHASE_NONE_BLAMED;
        list[i].own_us = works[i] = sum_of(step, part, step->is_own);
        list[i].wait_us = waits[i] = less(part->times.period_us, sum_of(step, part, step->is_busy));
        longest_us = list[i].own_us > longest_us ? list[i].own_us : longest_us;
    }
    sort_times(works, count, scratch);
    sort_times(waits, count, scratch);
    for (uint32_t i = 0; i < count; i++) {
        list[i].others_us = median_of_others(works, count, list[i].own_us);
        list[i].others_wait_us = median_of_others(waits, count, list[i].wait_us);
    }
    find_victim(list, count);
    for (uint32_t i = 0; i < count; i++) {
        if (holds_up(self, &list[i], longest_us))
            list[i].phase = largest_excess(step, step->parts[i], step->is_own);
        if (list[i].process != NULL)
            slow_mark(self, job, &list[i], number, scratch);
    }
}

// -- Checkpoints ----------------------------------------------------------------------------------

static void weigh_checkpoints(struct slow_rank *self, struct slow_job *job, const struct step *step,
                              struct arena *scratch) {
    bool is_saved[PHASES_MAX], any = false;
    for (uint32_t p = 0; p < PHASES_MAX; p++) {
        is_saved[p] = step->is_common[p] && step->class[p] == PHASE_CHECKPOINT;
        any = any || is_saved[p];
    }
    if (!any)
        return;
    struct step savers = *step;
    memset(savers.sorted, 0, sizeof savers.sorted);
    savers.parts = arena_take(scratch, step->count * sizeof *savers.parts);
    savers.count = 0;
    for (uint32_t i = 0; i < step->count; i++)
        if (sum_of(step, step->parts[i], is_saved) > 0)
            savers.parts[savers.count++] = step->parts[i];
    uint32_t *sums = arena_take(scratch, savers.count * sizeof *sums);
    for (uint32_t i = 0; i < savers.count; i++)
        sums[i] = sum_of(&savers, savers.parts[i], is_saved);
    sort_times(sums, savers.count, scratch);
    for (uint32_t i = 0; i < savers.count; i++) {
        uint32_t own_us = sum_of(&savers, savers.parts[i], is_saved);
        uint32_t others_us = median_of_others(sums, savers.count, own_us);
        struct weighed weighed = {.part = savers.parts[i],
                                  .process = process_of(self, savers.parts[i]),
                                  .own_us = own_us,
                                  .others_us = others_us,
                                  .phase = PHASE_NONE_BLAMED};
        if ((double)own_us >= self->config.checkpoint_ratio * (double)others_us)
            weighed.phase = largest_excess(&savers, savers.parts[i], is_saved);
        if (weighed.process != NULL)
            slow_mark_checkpoint(self, job, &weighed, scratch);
    }
}

// -- What took all of them longer -----------------------------------------------------------------

// Until it is known what is usual, false.
static bool is_usual_known(const struct slow_rank *self, struct slow_phase *phase,
                           uint32_t least_us, struct arena *scratch) {
    uint32_t window = (uint32_t)self->config.window;
    if (phase->seen >= window)
        return true;
    phase->least_us[phase->seen++] = least_us;
    if (phase->seen < window)
        return false;
    sort_times(phase->least_us, window, scratch);
    phase->usual_us = phase->least_us[window / 2];
    return false;
}

static const struct step_part *fastest(const struct step *step, uint32_t phase) {
    const struct step_part *least = NULL;
    for (uint32_t i = 0; i < step->count; i++) {
        const struct step_part *part = step->parts[i];
        uint32_t us = part->times.phase_us[phase];
        if (us == 0)
            continue;
        if (least == NULL || us < least->times.phase_us[phase] ||
            (us == least->times.phase_us[phase] && comes_before(part, least)))
            least = part;
    }
    return least;
}

static uint32_t median_period(const struct step *step) {
    uint32_t *periods = arena_take(step->scratch, step->count * sizeof *periods);
    for (uint32_t i = 0; i < step->count; i++)
        periods[i] = step->parts[i]->times.period_us;
    sort_times(periods, step->count, step->scratch);
    return periods[step->count / 2];
}

static bool is_computing(enum phase_class class) {
    return class == PHASE_COMPUTE || class == PHASE_BACKWARD;
}

static void weigh_stalls(struct slow_rank *self, struct slow_job *job, const struct step *step,
                         struct arena *scratch) {
    const struct step_part *least[PHASES_MAX];
    bool high[PHASES_MAX], known[PHASES_MAX], other_is_steady = false;
    double matters_us = (self->config.min_ratio - 1) * (double)median_period(step);
    for (uint32_t p = 0; p < step->phase_count; p++) {
        known[p] = high[p] = false;
        // What holds the wait takes the fastest as long as its own work takes the slowest.
        bool holds_wait = step->class[p] == PHASE_BACKWARD && !step->is_own[p];
        if (!step->is_common[p] || step->class[p] == PHASE_OTHER || holds_wait)
            continue;
        struct slow_phase *phase = slow_phase_at(self, job, p);
        least[p] = fastest(step, p);
        uint32_t us = least[p]->times.phase_us[p];
        known[p] = is_usual_known(self, phase, us, scratch);
        bool longer = known[p] && (double)us >= self->config.stall_ratio * (double)phase->usual_us;
        high[p] = longer && (double)(us - phase->usual_us) >= matters_us;
        other_is_steady = other_is_steady || (is_computing(step->class[p]) && known[p] && !longer);
    }
    for (uint32_t p = 0; p < step->phase_count; p++) {
        // When all computing takes longer there is more to compute.
        bool stalls = high[p] && (!is_computing(step->class[p]) || other_is_steady);
        if (known[p])
            slow_mark_stall(self, job, p, least[p], stalls, scratch);
    }
}

void slow_weigh(struct slow_rank *self, struct slow_job *job, const struct row_list *parts,
                struct arena *scratch) {
    struct step step;
    gather(self, job, parts, &step, scratch);
    if (step.count < 2)
        return;
    classify(self, job, &step);
    weigh_work(self, job, &step, scratch);
    weigh_checkpoints(self, job, &step, scratch);
    weigh_stalls(self, job, &step, scratch);
}

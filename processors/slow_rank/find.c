// SPDX-License-Identifier: Apache-2.0
// What comes of many steps: a process that held up the others in most of the last ones, a phase
// that took all of them longer in most of the last ones.
//
// One window of steps is a matter of chance among many ranks and hours, so a rank must be slow in
// `windows` of them, one behind the other. A finding ends when less than half of that holds in one
// window; a process that is gone leaves its finding as it stands.
#include "processors/slow_rank/parts.h"

struct finding_key {
    string_id job, session;
    int32_t rank;
    string_id phase;
    uint32_t kind, onset_low, onset_high;
};
_Static_assert(offsetof(struct slow_finding, node) ==
                   sizeof(struct row_head) + sizeof(struct finding_key),
               "the key lies in the row as in struct finding_key");

const struct row_type SLOW_FINDING_ROWS = {
    .size = sizeof(struct slow_finding),
    .key_size = sizeof(struct finding_key),
    .rows_per_chunk = 16,
    .strings = {offsetof(struct slow_finding, job), offsetof(struct slow_finding, session),
                offsetof(struct slow_finding, phase), offsetof(struct slow_finding, node),
                offsetof(struct slow_finding, first_session),
                offsetof(struct slow_finding, last_session),
                offsetof(struct slow_finding, victim_session)},
};

static struct finding_key key_of(string_id job, const struct process *process, string_id phase,
                                 enum slow_kind kind, uint64_t onset_ns) {
    return (struct finding_key){.job = job,
                                .session = process == NULL ? STRING_NONE : process->session,
                                .rank = process == NULL ? RANK_NONE : process->rank,
                                .phase = phase,
                                .kind = kind,
                                .onset_low = (uint32_t)onset_ns,
                                .onset_high = (uint32_t)(onset_ns >> 32)};
}

static bool is_most(const struct slow_rank *self, uint32_t hits, int64_t of) {
    return (double)hits >= self->config.min_share * (double)of - 1e-9;
}

static bool is_over(const struct slow_rank *self, uint32_t hits, int64_t of) {
    return 2 * (double)hits < self->config.min_share * (double)of - 1e-9;
}

static void end_finding(struct slow_rank *self, const struct finding_key *key) {
    struct slow_finding *finding = keyed_rows_find(&self->findings, key);
    if (finding != NULL)
        finding->ended = 1;
}

// NULL: it was forgotten.
static struct slow_finding *tell_last(struct slow_rank *self, const struct finding_key *key,
                                      const struct weighed *weighed) {
    struct slow_finding *finding = keyed_rows_find(&self->findings, key);
    if (finding == NULL)
        return NULL;
    const struct step_part *part = weighed->part;
    finding->last_session = part->session;
    finding->last_rank = part->rank;
    finding->last_ns = part->times.begin_ns;
    finding->node = part->node;
    finding->own_us = weighed->own_us;
    finding->others_us = weighed->others_us;
    finding->wait_us = weighed->wait_us;
    finding->others_wait_us = weighed->others_wait_us;
    finding->own_sum_us += weighed->own_us;
    finding->others_sum_us += weighed->others_us;
    finding->steps++;
    const struct step_part *victim = weighed->victim;
    finding->victim_ns = victim == NULL ? 0 : victim->times.begin_ns;
    finding->victim_session = victim == NULL ? STRING_NONE : victim->session;
    finding->victim_rank = victim == NULL ? RANK_NONE : victim->rank;
    finding->victim_wait_us = weighed->victim_wait_us;
    return finding;
}

static void open_finding(struct slow_rank *self, const struct finding_key *key,
                         const struct weighed *weighed, struct arena *scratch) {
    struct slow_finding *finding = row_bound_take(&self->findings, &self->finding_bound, key,
                                                  offsetof(struct slow_finding, last_ns), scratch);
    finding->ended = 0;
    finding->onset_ns = (uint64_t)key->onset_high << 32 | key->onset_low;
    tell_last(self, key, weighed);
    finding->first_session = finding->last_session;
    finding->first_rank = finding->last_rank;
}

// -- A rank that is slow --------------------------------------------------------------------------

// Of the last `of` steps before `until`, those in which it held up the others.
static uint32_t count_blamed(const struct process *process, uint32_t until, int64_t of) {
    uint32_t hits = 0;
    for (int64_t i = 1; i <= of && i <= (int64_t)until; i++)
        hits += process->blamed[(until - (uint32_t)i) % MARKS_MAX] != PHASE_NONE_BLAMED;
    return hits;
}

// The first of the last `of` steps in which it held up the others, and from which on it did so in
// most of a window: what was chance before is no begin.
static uint64_t onset_of(const struct slow_rank *self, const struct process *process,
                         uint32_t until, int64_t of) {
    int64_t window = self->config.window;
    uint64_t onset_ns = 0;
    for (int64_t i = window; i <= of && i <= (int64_t)until; i++) {
        uint32_t at = until - (uint32_t)i;
        if (process->blamed[at % MARKS_MAX] != PHASE_NONE_BLAMED &&
            is_most(self, count_blamed(process, at + (uint32_t)window, window), window))
            onset_ns = process->begin_ns[at % MARKS_MAX];
    }
    if (onset_ns != 0)
        return onset_ns;
    // The last window begins with a step in which it did not.
    for (int64_t i = 1; i <= window && i <= (int64_t)until; i++)
        if (process->blamed[(until - (uint32_t)i) % MARKS_MAX] != PHASE_NONE_BLAMED)
            onset_ns = process->begin_ns[(until - (uint32_t)i) % MARKS_MAX];
    return onset_ns;
}

// The phase that made the difference most often, of equal ones the first of the job.
static uint32_t blamed_most(const struct process *process, uint32_t until, int64_t of) {
    uint32_t hits[PHASES_MAX] = {0}, most = 0;
    for (int64_t i = 1; i <= of && i <= (int64_t)until; i++) {
        uint32_t at = (until - (uint32_t)i) % MARKS_MAX;
        if (process->blamed[at] != PHASE_NONE_BLAMED)
            hits[process->blamed[at]]++;
    }
    for (uint32_t p = 1; p < PHASES_MAX; p++)
        most = hits[p] > hits[most] ? p : most;
    return most;
}

static enum slow_kind kind_of(const struct slow_phase *phase) {
    return phase->class == PHASE_INPUT ? SLOW_INPUT : SLOW_COMPUTE;
}

static void put_mark(struct process *process, const struct weighed *weighed, uint32_t number) {
    uint32_t from = process->marked_until;
    if (number - from > MARKS_MAX)
        from = number - MARKS_MAX;
    for (; from < number; from++)
        process->blamed[from % MARKS_MAX] = PHASE_NONE_BLAMED;
    process->begin_ns[number % MARKS_MAX] = weighed->part->times.begin_ns;
    process->blamed[number % MARKS_MAX] = (uint8_t)weighed->phase;
    process->marked_until = number + 1;
}

void slow_mark(struct slow_rank *self, struct slow_job *job, const struct weighed *weighed,
               uint32_t number, struct arena *scratch) {
    struct process *process = weighed->process;
    const struct slow_config *config = &self->config;
    bool slow = weighed->phase != PHASE_NONE_BLAMED;
    put_mark(process, weighed, number);
    if (!slow && process->finding_ns == 0)
        return;
    uint32_t until = number + 1, hits = count_blamed(process, until, config->window);
    if (process->finding_ns != 0) {
        const struct slow_phase *phase = slow_phase_at(self, job, process->finding_phase);
        struct finding_key key =
            key_of(job->job, process, phase->name, kind_of(phase), process->finding_ns);
        if (slow)
            tell_last(self, &key, weighed);
        if (!is_over(self, hits, config->window))
            return;
        end_finding(self, &key);
        process->finding_ns = 0;
        return;
    }
    int64_t span = config->window * config->windows;
    if (!is_most(self, hits, config->window) ||
        !is_most(self, count_blamed(process, until, span), span))
        return;
    process->finding_phase = blamed_most(process, until, span);
    process->finding_ns = onset_of(self, process, until, span);
    const struct slow_phase *phase = slow_phase_at(self, job, process->finding_phase);
    struct finding_key key =
        key_of(job->job, process, phase->name, kind_of(phase), process->finding_ns);
    open_finding(self, &key, weighed, scratch);
}

// -- Checkpoints ----------------------------------------------------------------------------------

static uint32_t bits_of(uint64_t bits, int64_t last) {
    return (uint32_t)__builtin_popcountll(last >= 64 ? bits : bits & ((UINT64_C(1) << last) - 1));
}

void slow_mark_checkpoint(struct slow_rank *self, struct slow_job *job,
                          const struct weighed *weighed, struct arena *scratch) {
    struct process *process = weighed->process;
    int64_t window = self->config.checkpoints;
    bool slow = weighed->phase != PHASE_NONE_BLAMED;
    process->save_ns[process->saved++ % CHECKPOINTS_MAX] = weighed->part->times.begin_ns;
    process->slow_saves = process->slow_saves << 1 | slow;
    uint32_t hits = bits_of(process->slow_saves, window);
    if (process->save_finding_ns != 0) {
        const struct slow_phase *phase = slow_phase_at(self, job, process->save_phase);
        struct finding_key key =
            key_of(job->job, process, phase->name, SLOW_CHECKPOINT, process->save_finding_ns);
        if (slow)
            tell_last(self, &key, weighed);
        if (is_over(self, hits, window)) {
            end_finding(self, &key);
            process->save_finding_ns = 0;
        }
        return;
    }
    if (!slow || process->saved < (uint32_t)window || !is_most(self, hits, window))
        return;
    uint32_t first = 0;
    for (uint32_t i = 0; i < (uint32_t)window; i++)
        first = (process->slow_saves >> i & 1) != 0 ? i : first;
    process->save_finding_ns = process->save_ns[(process->saved - 1 - first) % CHECKPOINTS_MAX];
    process->save_phase = weighed->phase;
    const struct slow_phase *phase = slow_phase_at(self, job, process->save_phase);
    struct finding_key key =
        key_of(job->job, process, phase->name, SLOW_CHECKPOINT, process->save_finding_ns);
    open_finding(self, &key, weighed, scratch);
}

// -- All alike ------------------------------------------------------------------------------------

// What is usual changes slowly: by a sixteenth of the difference a step.
static void follow_usual(struct slow_phase *phase, uint32_t least_us) {
    if (least_us > phase->usual_us)
        phase->usual_us += (least_us - phase->usual_us) / 16;
    else
        phase->usual_us -= (phase->usual_us - least_us) / 16;
}

void slow_mark_stall(struct slow_rank *self, struct slow_job *job, uint32_t index,
                     const struct step_part *least, bool high, struct arena *scratch) {
    struct slow_phase *phase = slow_phase_at(self, job, index);
    int64_t window = self->config.window;
    uint32_t least_us = least->times.phase_us[index];
    if (high && bits_of(phase->high_bits, window) == 0) {
        phase->since_ns = least->times.begin_ns;
        phase->since_session = least->session;
        phase->since_rank = least->rank;
    }
    phase->high_bits = phase->high_bits << 1 | high;
    uint32_t hits = bits_of(phase->high_bits, window);
    struct weighed weighed = {.part = least, .own_us = least_us, .others_us = phase->usual_us};
    if (phase->finding_ns != 0) {
        struct finding_key key =
            key_of(job->job, NULL, phase->name, COMMON_STALL, phase->finding_ns);
        if (high)
            tell_last(self, &key, &weighed);
        if (is_over(self, hits, window)) {
            end_finding(self, &key);
            phase->finding_ns = 0;
        }
        return;
    }
    if (!high && hits == 0)
        follow_usual(phase, least_us);
    if (!high || !is_most(self, hits, window))
        return;
    phase->finding_ns = phase->since_ns;
    struct finding_key key = key_of(job->job, NULL, phase->name, COMMON_STALL, phase->finding_ns);
    open_finding(self, &key, &weighed, scratch);
    struct slow_finding *finding = keyed_rows_find(&self->findings, &key);
    finding->first_session = phase->since_session;
    finding->first_rank = phase->since_rank;
}

// SPDX-License-Identifier: Apache-2.0
// Finds what each suspect was doing when its memory began to grow, and reports the verdict. Keeps
// the phase boundaries of every process (store.h), answers for each suspect's moment, and reports
// what first_cause found as a verdict: open, updated, and resolved when growth falls back or
// another rank turns out to be first. A verdict of an earlier generation stays as it was. Cost: one
// boundary is kept once; an evaluation replays the boundaries of the suspects' processes.
#include "pipeline/component/component.h"

#include "pipeline/component/verdict_ledger.h"
#include "processors/phase_attribution/store.h"
#include "processors/phase_attribution/verdict.h"

#include <assert.h>

struct phase_attribution_config {
    struct duration retention;
};

// The rank that the last verdict about a job named, to resolve it when it no longer stands; row i
// belongs to slot i of rank_group's jobs.
struct named_rank {
    uint32_t slot;
    string_id job; // that it is about: the pool gets its name later
    uint32_t generation;
    bool named;
    enum cause_kind kind;
    struct suspect suspect;
    int64_t growth_bytes;
    int64_t median_other_growth_bytes;
    double excess_ratio;
};

struct phase_attributor {
    struct phase_store store;
    struct table named;
    struct verdict_ledger ledger;
    int64_t retention_ns; // DURATION_SPECIAL: all
    bool live;
    struct arena scratch;
};

static const struct row_type NAMED =
    ROW_TYPE(struct named_rank, 16, offsetof(struct named_rank, job));
static const struct state_row STATE[] = {
    STATE_PART(struct phase_attributor, store, "phase_attribution.store", phase_store_part),
    STATE_ROWS(struct phase_attributor, named, "phase_attribution.named", NAMED),
};

static const struct option OPTIONS[] = {
    OPTION(struct phase_attribution_config, retention, OPTION_DURATION, .default_value = "10m",
           .min = 1, .max = 31536000, .special = "all",
           .help = "how far back ended scopes are kept, in event time; open ones always are, and "
                   "inputs that end are kept whole"),
};

enum { SCRATCH_BLOCK = 64 * 1024 };

static enum status attributor_start(void *instance, const void *config,
                                    const struct component_context *context, struct error *error) {
    struct phase_attributor *self = instance;
    (void)error;
    verdict_ledger_init(&self->ledger, "phase_attribution.verdicts");
    arena_init(&self->scratch, SCRATCH_BLOCK);
    self->retention_ns = ((const struct phase_attribution_config *)config)->retention.ns;
    self->live = !context->once;
    return STATUS_OK;
}

static void attributor_stop(void *instance) {
    struct phase_attributor *self = instance;
    verdict_ledger_release(&self->ledger);
    arena_release(&self->scratch);
}

static struct phase_attribution *attribute(const struct phase_attributor *self,
                                           const struct evaluation *evaluation,
                                           const struct suspect_list *suspects, bool distinct,
                                           struct arena *arena) {
    struct phase_attribution *phases = arena_zero(arena, suspects->count + 1, sizeof *phases);
    for (uint32_t i = 0; i < suspects->count; i++) {
        const struct suspect *suspect = &suspects->items[i];
        assert(suspect->index < evaluation->rank_count);
        const struct origin *origin = table_row(&evaluation->store->origins, suspect->spike.origin);
        int32_t rank = evaluation->ranks[suspect->index].series->rank;
        phases[i] = phase_store_resolve(&self->store, origin, rank, suspect->spike.time_ns,
                                        distinct, arena);
    }
    return phases;
}

static struct named_rank *named_of(struct phase_attributor *self,
                                   const struct evaluation *evaluation) {
    while (self->named.used <= evaluation->job_slot)
        table_add(&self->named);
    struct named_rank *named = table_row(&self->named, evaluation->job_slot);
    if (named->job != evaluation->job)
        *named = (struct named_rank){.job = evaluation->job};
    return named;
}

static bool find_slot(const struct evaluation *evaluation, uint32_t slot, uint32_t *index) {
    for (*index = 0; *index < evaluation->rank_count; ++*index)
        if (evaluation->ranks[*index].slot == slot)
            return true;
    return false;
}

static void report(struct phase_attributor *self, struct batch *batch,
                   const struct memory_finding *finding, bool ended) {
    struct verdict verdict;
    memory_verdict_build(finding, batch->arena, &verdict);
    verdict_ledger_report(&self->ledger, batch, &verdict, ended, memory_verdict_weight(finding));
}

// Ends the verdict about a rank that was named before: as a swing when nothing of it stayed, else
// because another rank was first.
static void resolve_named(struct phase_attributor *self, struct batch *batch,
                          const struct evaluation *evaluation, struct named_rank *named,
                          const struct cause *now) {
    uint32_t index;
    assert(named->named);
    named->named = false;
    if (!find_slot(evaluation, named->slot, &index))
        return;
    struct suspect suspect = named->suspect;
    suspect.index = index;
    const struct rank_spike *spikes = &evaluation->spikes[index];
    bool stayed = (spikes->kept.found || spikes->creep.found) && now != NULL;
    struct cause cause = {
        .kind = stayed ? named->kind : CAUSE_SWING,
        .suspects = {.items = &suspect, .count = 1, .candidate_count = 1},
        .growth_bytes = named->growth_bytes,
        .median_other_growth_bytes = named->median_other_growth_bytes,
        .excess_ratio = named->excess_ratio,
        .sole_earliest = true,
        .generation = named->generation,
    };
    struct memory_finding finding = {
        evaluation, &cause, attribute(self, evaluation, &cause.suspects, true, batch->arena),
        stayed, 0};
    if (stayed)
        finding.replaced_by = evaluation->ranks[now->suspects.items[0].index].series->rank;
    report(self, batch, &finding, true);
}

static void report_cause(struct phase_attributor *self, struct batch *batch,
                         const struct evaluation *evaluation, struct named_rank *named) {
    const struct cause *cause = evaluation->cause;
    const struct suspect *first = &cause->suspects.items[0];
    *named = (struct named_rank){.job = evaluation->job,
                                 .slot = evaluation->ranks[first->index].slot,
                                 .generation = cause->generation,
                                 .named = true,
                                 .kind = cause->kind,
                                 .suspect = *first,
                                 .growth_bytes = cause->growth_bytes,
                                 .median_other_growth_bytes = cause->median_other_growth_bytes,
                                 .excess_ratio = cause->excess_ratio};
    struct memory_finding finding = {evaluation, cause, evaluation->cause_phases, false, 0};
    report(self, batch, &finding, cause->kind == CAUSE_SWING);
}

static void judge(struct phase_attributor *self, struct batch *batch,
                  const struct evaluation *evaluation) {
    const struct cause *cause = evaluation->cause;
    if (evaluation->rank_count == 0)
        return;
    struct named_rank *named = named_of(self, evaluation);
    bool settled = cause != NULL && cause->settled;
    if (cause != NULL && !settled)
        return;
    bool same_generation = named->named && named->generation == evaluation->generation;
    bool same_rank =
        settled && evaluation->ranks[cause->suspects.items[0].index].slot == named->slot;
    if (same_generation && !same_rank)
        resolve_named(self, batch, evaluation, named, cause);
    if (settled)
        report_cause(self, batch, evaluation, named);
}

static void evaluate(struct phase_attributor *self, struct batch *batch,
                     struct evaluation *evaluation) {
    // For the summary what came again counts again where inputs end, and only there.
    if (evaluation->suspects != NULL)
        evaluation->suspect_phases =
            attribute(self, evaluation, evaluation->suspects, self->live, batch->arena);
    if (evaluation->cause != NULL)
        evaluation->cause_phases =
            attribute(self, evaluation, &evaluation->cause->suspects, true, batch->arena);
    if (self->store.kept.tracks_left_out)
        evaluation_note(evaluation, batch->arena,
                        "Too many processes reported phases; some were dropped.");
    judge(self, batch, evaluation);
}

static void expire(struct phase_attributor *self, uint64_t now_ns) {
    uint64_t retention_ns = (uint64_t)self->retention_ns;
    if (!self->live || self->retention_ns == DURATION_SPECIAL || now_ns < retention_ns)
        return;
    arena_reset(&self->scratch);
    phase_store_expire(&self->store, now_ns - retention_ns, &self->scratch);
}

static void forget(struct phase_attributor *self, const struct batch *batch) {
    const struct forgotten *forgotten = batch->forgotten;
    if (forgotten->everything)
        table_release(&self->named);
    for (uint32_t i = 0; i < forgotten->job_count; i++)
        if (forgotten->jobs[i].slot < self->named.used)
            memset(table_row(&self->named, forgotten->jobs[i].slot), 0, sizeof(struct named_rank));
    phase_store_forget(&self->store, forgotten, batch->as_of_ns, batch->arena);
    verdict_ledger_forget(&self->ledger, forgotten);
}

static void attributor_state(void *instance, struct state_list *list) {
    verdict_ledger_state(&((struct phase_attributor *)instance)->ledger, list);
}

static void attributor_restored(void *instance) {
    verdict_ledger_restored(&((struct phase_attributor *)instance)->ledger);
}

static void attributor_consume(void *instance, struct batch *batch) {
    struct phase_attributor *self = instance;
    // Of all jobs, as the reference has it: a process is told by its session and rank.
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch->events[i].kind == EVENT_TELEMETRY && batch->events[i].telemetry->scope != NULL)
            phase_store_add(&self->store, batch->events[i].telemetry);
    if (!batch->evaluate)
        return;
    if (batch->forgotten != NULL)
        forget(self, batch);
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        evaluate(self, batch, &batch->evaluations[i]);
    if (!batch->last)
        expire(self, batch->as_of_ns);
}

static const char *const EXPLAINS[] = {"pod_evicted", "nccl_hang", NULL};
static const char *const EXPLAINS_RANK[] = {"first_exit", NULL};
static const struct verdict_pattern PATTERNS[] = {{.name = "memory_first_cause",
                                                   .explains = EXPLAINS,
                                                   .explains_rank = EXPLAINS_RANK,
                                                   .kind = "leak"}};

const struct component_type processor_phase_attribution = {
    .name = "phase_attribution",
    .summary = "Finds what the suspects were doing and reports the verdict.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_MEMORY | 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct phase_attribution_config),
    .instance_size = sizeof(struct phase_attributor),
    .needs = FACT_SUSPECTS | FACT_SERIES,
    .gives = FACT_PHASES | FACT_VERDICTS,
    .patterns = PATTERNS,
    .pattern_count = OPTION_COUNT(PATTERNS),
    .start = attributor_start,
    .stop = attributor_stop,
    .state_rows = STATE,
    .state_row_count = STATE_ROW_COUNT(STATE),
    .state = attributor_state,
    .restored = attributor_restored,
    .processor = {.consume = attributor_consume},
};

// SPDX-License-Identifier: Apache-2.0
// Finds which rank holds up the others though nothing hangs, and what takes all of them longer.
//
// In work that is synchronised the slow rank is the one that waits least: it works longest and
// waits shortest. Boundaries of phases are put in order and made into steps (steps.c), each step is
// weighed once (weigh.c), and what holds in most of the last steps is a finding (find.c). Cost:
// O(log) a boundary whatever the number of ranks, O(findings) an evaluation. Memory: 910 bytes
// a process and 104 for each of its steps that is not judged yet, of which there are one or two,
// and 64 for each boundary that waits.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "config/problem.h"
#include "pipeline/component/node_names.h"
#include "processors/cluster/compare.h"
#include "processors/slow_rank/parts.h"

#include <inttypes.h>

#define SLOW_OPTION(field, kind, ...) OPTION(struct slow_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    SLOW_OPTION(window, OPTION_INT, .default_value = "10", .min = 4, .max = 32,
                .help = "steps of a window"),
    SLOW_OPTION(windows, OPTION_INT, .default_value = "3", .min = 1, .max = 16,
                .help = "a rank is slow in so many windows, one behind the other; one alone can be "
                        "chance"),
    SLOW_OPTION(min_share, OPTION_RATIO, .default_value = "0.8", .min = 0.5, .max = 1,
                .help = "share of the steps of a window in which it must hold"),
    SLOW_OPTION(min_ratio, OPTION_RATIO, .default_value = "1.1", .min = 1.01, .max = 100,
                .help = "own work of a slow rank, in times of the median of the others"),
    SLOW_OPTION(warm_up, OPTION_INT, .default_value = "2", .max = 1000,
                .help = "first steps of a process that do not count"),
    SLOW_OPTION(checkpoints, OPTION_INT, .default_value = "5", .min = 2, .max = 8,
                .help = "checkpoints of a window"),
    SLOW_OPTION(checkpoint_ratio, OPTION_RATIO, .default_value = "1.5", .min = 1.01, .max = 100,
                .help = "time that a slow rank takes over a checkpoint, in times of the median of "
                        "the others"),
    SLOW_OPTION(stall_ratio, OPTION_RATIO, .default_value = "1.5", .min = 1.01, .max = 100,
                .help = "a phase that takes the fastest rank so many times as long as usual takes "
                        "all of them longer"),
    SLOW_OPTION(step_phase, OPTION_TEXT,
                .help = "name of the phase that is one step, in lower case and without its number; "
                        "otherwise step, train_step, training_step, iteration, iter, "
                        "train_iteration, or what comes again and again"),
    SLOW_OPTION(confidence, OPTION_INT, .default_value = "75", .min = 5, .max = 97,
                .help = "percent, for a slow rank"),
    SLOW_OPTION(stall_confidence, OPTION_INT, .default_value = "60", .min = 5, .max = 97,
                .help = "percent, for what takes all ranks longer"),
    SLOW_OPTION(max_waiting, OPTION_INT, .default_value = "1048576", .min = 16, .max = 16777216,
                .help = "boundaries that wait to be put in order; with more, all that wait are "
                        "read at once"),
    SLOW_OPTION(max_processes, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
                .help = "processes that are kept; those told of least recently go first"),
    SLOW_OPTION(max_jobs, OPTION_INT, .default_value = "64", .min = 1, .max = 65536,
                .help = "jobs that are kept; those told of least recently go first"),
    SLOW_OPTION(max_findings, OPTION_INT, .default_value = "4096", .min = 16, .max = 1048576,
                .help = "findings that are kept; the oldest go first"),
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct slow_rank, waiting, "slow_rank.waiting", BOUNDARY_ROWS),
    STATE_ROWS(struct slow_rank, processes, "slow_rank.processes", PROCESS_ROWS),
    STATE_ROWS(struct slow_rank, parts, "slow_rank.parts", STEP_PART_ROWS),
    STATE_ROWS(struct slow_rank, jobs, "slow_rank.jobs", SLOW_JOB_ROWS),
    STATE_ROWS(struct slow_rank, phases, "slow_rank.phases", SLOW_PHASE_ROWS),
    STATE_ROWS(struct slow_rank, findings, "slow_rank.findings", SLOW_FINDING_ROWS),
    STATE_STRUCT(struct slow_rank, count, "slow_rank.count"),
    STATE_PART(struct slow_rank, base.ledger, "slow_rank.verdicts", VERDICT_LEDGER),
};

static int compare_findings(const void *left, const void *right) {
    const struct slow_finding *a = *(struct slow_finding *const *)left;
    const struct slow_finding *b = *(struct slow_finding *const *)right;
    return COMPARE_KEYS(COMPARE(a->onset_ns, b->onset_ns), COMPARE(a->rank, b->rank),
                        COMPARE(a->kind, b->kind), compare_strings(a->job, b->job),
                        compare_strings(a->session, b->session),
                        compare_strings(a->phase, b->phase));
}

static void report(struct slow_rank *self, struct batch *batch, struct slow_finding *finding) {
    string_id node = finding->node;
    if (node != STRING_NONE && batch->names != NULL)
        node = node_names_find(batch->names, node);
    struct verdict_builder builder = {.arena = batch->arena};
    slow_verdict(self, finding, node, &builder);
    verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, finding->ended != 0, 0);
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct slow_rank *self = instance;
    slow_read(self, now_ns, batch->arena);
    struct slow_finding *finding,
        **list = arena_take(batch->arena, (keyed_rows_count(&self->findings) + 1) * sizeof *list);
    uint32_t count = 0;
    for (uint32_t at = 0; (finding = keyed_rows_next(&self->findings, &at)) != NULL;)
        list[count++] = finding;
    sort_stable(list, count, sizeof *list, batch->arena, compare_findings);
    for (uint32_t i = 0; i < count; i++) {
        report(self, batch, list[i]);
        if (list[i]->ended != 0)
            keyed_rows_remove(&self->findings, list[i]);
    }
    detector_count_evicted(&self->base, self->process_bound.evicted + self->finding_bound.evicted +
                                            self->count.jobs_evicted);
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    if (event->kind == EVENT_TELEMETRY && event->telemetry->scope != NULL)
        slow_take(instance, event, scratch);
}

static void slow_validate(const void *config, struct problem_list *problems) {
    const struct slow_config *given = config;
    int64_t steps = given->window * given->windows;
    if (steps > MARKS_MAX)
        problem_add(problems, "windows",
                    "with window %" PRId64 " they are %" PRId64 " steps; at most %d are remembered",
                    given->window, steps, MARKS_MAX);
}

static enum status slow_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct slow_rank *self = instance;
    (void)error;
    self->config = *(const struct slow_config *)config;
    self->process_bound.max = (uint32_t)self->config.max_processes;
    self->finding_bound.max = (uint32_t)self->config.max_findings;
    return detector_begin(&self->base, "slow_rank", context, take, judge);
}

static const struct verdict_pattern PATTERNS[] = {{.name = "slow_rank"}};
static const struct evidence_prefix EVIDENCE[] = {{"step:", EVENT_TELEMETRY}};

const struct component_type processor_slow_rank = {
    .name = "slow_rank",
    .summary = "Finds the rank that holds up the others though nothing hangs.",
    .stability = STABILITY_ALPHA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_TELEMETRY,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .validate = slow_validate,
    .start = slow_start,
    DETECTOR_FIELDS(struct slow_rank, struct slow_config),
};

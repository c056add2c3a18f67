// SPDX-License-Identifier: Apache-2.0
// Finds the rank that holds up the others in a collective operation.
//
// Keeps what Flight Recorder dumps and entries say (store.h), judges it at each evaluation
// (judge.h), and says what it finds: open, updated, and resolved when the operation went on or its
// group was forgotten. Only event time counts: now is the newest time seen. Cost: each entry once;
// an evaluation walks the members of groups in which somebody waits.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/nccl_hang/lines.h"
#include "processors/nccl_hang/ras.h"
#include "processors/nccl_hang/refusal.h"
#include "processors/nccl_hang/stack.h"
#include "processors/nccl_hang/verdict.h"

struct nccl_hang {
    struct detector_base base;
    struct hang_config config;
    struct hang_store store;
    struct keyed_rows said;
};

enum { MAX_SAID = LEDGER_VERDICTS_MAX, MAX_STACKS = 4096 };

#define HANG_OPTION(field, kind, ...) OPTION(struct hang_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    HANG_OPTION(stuck_after, OPTION_DURATION, .default_value = "60s", .min = 1, .max = 86400,
                .help = "an operation that lasts longer hangs; long barriers around checkpoints "
                        "need more"),
    HANG_OPTION(dump_means_hang, OPTION_BOOL, .default_value = "true",
                .help = "what is not completed in a dump that is a file of its own hangs, however "
                        "young: such dumps are written because something hung"),
    HANG_OPTION(lines_apart, OPTION_DURATION, .default_value = "10m", .min = 1, .max = 86400,
                .help = "lines of watchdogs that lie further apart tell of two hangs"),
    HANG_OPTION(forget_after, OPTION_DURATION, .default_value = "24h", .min = 60, .max = 31536000,
                .special = "never",
                .help = "live: groups and ranks of which nothing came for so long, in event time, "
                        "are forgotten, and their verdicts resolved"),
    HANG_OPTION(max_groups, OPTION_INT, .default_value = "16384", .min = 16, .max = 1048576,
                .help = "process groups to keep; those heard of least recently are forgotten"),
    HANG_OPTION(max_ranks, OPTION_INT, .default_value = "65536", .min = 16, .max = 1048576,
                .help = "ranks to keep, in all and in a group"),
    HANG_OPTION(max_entries, OPTION_INT, .default_value = "262144", .min = 1024, .max = 16777216,
                .help = "members of groups, and operations under way, to keep; the groups heard of "
                        "least recently are forgotten"),
    HANG_OPTION(max_pending, OPTION_INT, .default_value = "64", .min = 2, .max = 4096,
                .help = "operations under way to keep of one rank in one group; the oldest stay"),
    HANG_OPTION(confidence_missing_rank, OPTION_INT, .default_value = "85", .max = 100,
                .help = "in percent, when a rank never called the operation"),
    HANG_OPTION(confidence_mismatch, OPTION_INT, .default_value = "85", .max = 100,
                .help = "the same, when ranks called different operations, sizes or data types"),
    HANG_OPTION(confidence_not_started, OPTION_INT, .default_value = "80", .max = 100,
                .help = "the same, when ranks called it and did not start it"),
    HANG_OPTION(confidence_missing_peer, OPTION_INT, .default_value = "75", .max = 100,
                .help = "the same, when a rank never came to a send or recv"),
    HANG_OPTION(confidence_not_completed, OPTION_INT, .default_value = "70", .max = 100,
                .help = "the same, when one rank did not complete what the others completed"),
    HANG_OPTION(confidence_all_started, OPTION_INT, .default_value = "55", .max = 100,
                .help = "the same, when all came to it and none to its end"),
    HANG_OPTION(confidence_missing_dump, OPTION_INT, .default_value = "40", .max = 100,
                .help = "the same, when nothing is known of a rank"),
    HANG_OPTION(confidence_past_timeout, OPTION_INT, .default_value = "8", .max = 100,
                .help = "added when the operation is past its own timeout"),
    HANG_OPTION(confidence_without_dump, OPTION_INT, .default_value = "15", .max = 100,
                .help = "taken off for each full quarter of the members that left no dump"),
};

KEYED_ROW_CHECK(struct hang_said, id);
static const struct row_type SAID = {
    .size = sizeof(struct hang_said),
    .key_size = VERDICT_ID_SIZE,
    .rows_per_chunk = 16,
    .strings = {offsetof(struct hang_said, job), offsetof(struct hang_said, group_name),
                offsetof(struct hang_said, group_desc), offsetof(struct hang_said, operation)},
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct nccl_hang, store.groups, "nccl_hang.groups", HANG_GROUP_ROWS),
    STATE_ROWS(struct nccl_hang, store.members, "nccl_hang.members", HANG_MEMBER_ROWS),
    STATE_ROWS(struct nccl_hang, store.sources, "nccl_hang.sources", HANG_SOURCE_ROWS),
    STATE_ROWS(struct nccl_hang, store.ranks, "nccl_hang.ranks", HANG_RANK_ROWS),
    STATE_ROWS(struct nccl_hang, store.sets, "nccl_hang.sets", HANG_SET_ROWS),
    STATE_ROWS(struct nccl_hang, store.opens, "nccl_hang.opens", HANG_OPEN_ROWS),
    STATE_ROWS(struct nccl_hang, store.chunks, "nccl_hang.set_ranks", HANG_CHUNK_ROWS),
    STATE_ROWS(struct nccl_hang, store.lines, "nccl_hang.lines", HANG_LINE_ROWS),
    STATE_ROWS(struct nccl_hang, store.timeouts, "nccl_hang.timeouts", HANG_TIMEOUT_ROWS),
    STATE_ROWS(struct nccl_hang, store.ras, "nccl_hang.ras", HANG_RAS_ROWS),
    STATE_ROWS(struct nccl_hang, store.processes, "nccl_hang.processes", HANG_PROCESS_ROWS),
    STATE_ROWS(struct nccl_hang, store.stacks, "nccl_hang.stacks", HANG_STACK_ROWS),
    STATE_ROWS(struct nccl_hang, store.refusals, "nccl_hang.refusals", HANG_REFUSAL_ROWS),
    STATE_ROWS(struct nccl_hang, said, "nccl_hang.said", SAID),
    STATE_PART(struct nccl_hang, base.ledger, "nccl_hang.verdicts", VERDICT_LEDGER),
};

// What is news although nothing else changed: better evidence, and where ranks stood.
static uint64_t weight_of(const struct hang_finding *finding) {
    uint64_t weight = finding->by_ras ? 1 : finding->from_lines ? 2 : 3;
    for (uint32_t i = 0; i < finding->seat_count; i++)
        weight += finding->seats[i].stack == NULL ? 0 : 4;
    return weight;
}

static void report(struct nccl_hang *self, struct batch *batch, const struct hang_finding *finding,
                   struct verdict *verdict) {
    struct hang_said *said = keyed_rows_find(&self->said, verdict->id);
    // Where nobody is to blame, what would tell who is may be missing.
    if (said == NULL && finding->culprit_count == 0 && self->base.live &&
        verdict_ledger_waits(&self->base.ledger, batch, verdict, self->base.patience_ns))
        return;
    if (said == NULL && keyed_rows_count(&self->said) < MAX_SAID)
        said = keyed_rows_add(&self->said, verdict->id);
    if (said != NULL)
        hang_said_fill(said, finding, verdict);
    verdict_ledger_report(&self->base.ledger, batch, verdict, false, weight_of(finding));
}

static void report_all(struct nccl_hang *self, struct batch *batch,
                       const struct hang_findings *findings) {
    struct verdict_builder *builders =
        arena_zero(batch->arena, findings->count + 1, sizeof *builders);
    for (uint32_t i = 0; i < findings->count; i++) {
        builders[i].arena = batch->arena;
        hang_verdict_build(&self->store, &findings->items[i], &self->config, &builders[i]);
    }
    // Only now each has an id.
    for (uint32_t i = 0; i < findings->count; i++) {
        hang_verdict_relate(&findings->items[i], builders, &builders[i].verdict);
        report(self, batch, &findings->items[i], &builders[i].verdict);
    }
}

static int compare_said(const void *left, const void *right) {
    const struct hang_said *a = *(struct hang_said *const *)left;
    const struct hang_said *b = *(struct hang_said *const *)right;
    int order = COMPARE(a->start_ns, b->start_ns);
    return order != 0 ? order : strcmp(a->id, b->id);
}

// What was said before and was not found again.
static void resolve(struct nccl_hang *self, struct batch *batch) {
    uint32_t at = 0, count = 0;
    struct hang_said *said,
        **over = arena_take(batch->arena, (keyed_rows_count(&self->said) + 1) * sizeof *over);
    while ((said = keyed_rows_next(&self->said, &at)) != NULL) {
        if (!said->standing)
            over[count++] = said;
        said->standing = false;
    }
    sort_stable(over, count, sizeof *over, batch->arena, compare_said);
    for (uint32_t i = 0; i < count; i++) {
        struct verdict_builder builder = {.arena = batch->arena};
        hang_verdict_end(over[i], &builder);
        verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, true, 0);
        keyed_rows_remove(&self->said, over[i]);
    }
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct nccl_hang *self = instance;
    hang_store_take(&self->store, event, scratch);
    hang_refusal_take(&self->store, event, scratch);
    hang_lines_take(&self->store, event, scratch);
    hang_ras_take(&self->store, event, scratch);
    hang_stack_take(&self->store, event, scratch);
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct nccl_hang *self = instance;
    uint64_t kept_ns = duration_ns(self->config.forget_after); // DURATION_SPECIAL: for ever
    if (self->base.live && now_ns > kept_ns)
        hang_store_expire(&self->store, now_ns - kept_ns);
    struct hang_findings findings = hang_judge(&self->store, &self->config, now_ns, batch->arena);
    report_all(self, batch, &findings);
    resolve(self, batch);
    const struct hang_store *store = &self->store;
    detector_count_evicted(
        &self->base, store->evicted + store->line_bound.evicted + store->timeout_bound.evicted +
                         store->ras_bound.evicted + store->process_bound.evicted +
                         store->stack_bound.evicted + store->refusal_bound.evicted);
}

static enum status hang_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct nccl_hang *self = instance;
    (void)error;
    self->config = *(const struct hang_config *)config;
    self->store.max_groups = (uint32_t)self->config.max_groups;
    self->store.max_ranks = (uint32_t)self->config.max_ranks;
    self->store.max_entries = (uint32_t)self->config.max_entries;
    self->store.max_pending = (uint32_t)self->config.max_pending;
    self->store.stuck_after_ns = duration_ns(self->config.stuck_after);
    self->store.line_bound.max = self->store.timeout_bound.max = (uint32_t)self->config.max_ranks;
    self->store.ras_bound.max = self->store.process_bound.max = (uint32_t)self->config.max_ranks;
    self->store.stack_bound.max = MAX_STACKS;
    self->store.refusal_bound.max = (uint32_t)self->config.max_ranks;
    return detector_begin(&self->base, "nccl_hang", context, take, judge);
}

static const struct verdict_pattern PATTERNS[] = {{.name = "nccl_hang"}};
static const struct evidence_prefix EVIDENCE[] = {{"fr:", EVENT_FLIGHT},
                                                  {"watchdog:", EVENT_APP_LINE},
                                                  {"ras:", EVENT_OBSERVATION},
                                                  {"stack:", EVENT_OBSERVATION}};

static const uint8_t OBSERVATIONS[] = {
    OBSERVATION_WATCHDOG_DUMP, OBSERVATION_RAS_RANK,       OBSERVATION_RAS_MISSING,
    OBSERVATION_RAS_MISMATCH,  OBSERVATION_INSPECTOR_COLL, OBSERVATION_STACK,
    OBSERVATION_NONE};

const struct component_type processor_nccl_hang = {
    .name = "nccl_hang",
    .summary = "Finds the rank that holds up the others in a collective operation.",
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_ALL,
    .takes =
        1u << EVENT_FLIGHT | 1u << EVENT_RANK_MAP | 1u << EVENT_APP_LINE | 1u << EVENT_OBSERVATION,
    .observations = OBSERVATIONS,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = hang_start,
    DETECTOR_FIELDS(struct nccl_hang, struct hang_config),
};

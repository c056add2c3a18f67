// SPDX-License-Identifier: Apache-2.0
// Which rank holds up the others in a collective operation?
//
// Keeps what Flight Recorder dumps and entries say (nccl_hang_store.h), judges it at each
// evaluation (nccl_hang_judge.h), and says what it finds: open, updated, and resolved when the
// operation went on or its group was forgotten. Only event time counts: now is the newest time
// seen. Cost: each entry once; an evaluation walks the members of groups in which somebody waits.
#include "processors/nccl_hang.h"

#include "base/metrics/metrics.h"
#include "base/sort.h"
#include "pipeline/component/verdict_ledger.h"
#include "processors/nccl_hang/verdict.h"

struct nccl_hang_config {
    struct duration stuck_after;
    bool dump_means_hang;
    struct duration forget_after;
    int64_t max_groups, max_ranks, max_entries, max_pending;
    struct hang_confidence confidence;
};

struct nccl_hang {
    struct nccl_hang_config config;
    struct hang_store store;
    struct keyed_rows said;
    struct verdict_ledger ledger;
    bool once; // inputs that end: nothing is forgotten
    struct metric *evicted;
    uint64_t evicted_told;
};

enum { MAX_SAID = LEDGER_VERDICTS_MAX };

#define FIELD(field) offsetof(struct nccl_hang_config, field)
#define PERCENT(field, value, what)                                                                \
    {                                                                                              \
        .name = "confidence_" #field, .type = OPTION_INT, .offset = FIELD(confidence.field),       \
        .default_value = (value), .min = 0, .max = 100, .help = (what)                             \
    }

static const struct option OPTIONS[] = {
    {.name = "stuck_after",
     .type = OPTION_DURATION,
     .offset = FIELD(stuck_after),
     .default_value = "60s",
     .min = 1,
     .max = 86400,
     .help = "an operation that lasts longer hangs; long barriers around checkpoints need more"},
    {.name = "dump_means_hang",
     .type = OPTION_BOOL,
     .offset = FIELD(dump_means_hang),
     .default_value = "true",
     .help = "what is not completed in a dump that is a file of its own hangs, however young: such "
             "dumps are written because something hung"},
    {.name = "forget_after",
     .type = OPTION_DURATION,
     .offset = FIELD(forget_after),
     .default_value = "24h",
     .min = 60,
     .max = 31536000,
     .special = "never",
     .help = "live: groups and ranks of which nothing came for so long, in event time, are "
             "forgotten, and their verdicts resolved"},
    {.name = "max_groups",
     .type = OPTION_INT,
     .offset = FIELD(max_groups),
     .default_value = "16384",
     .min = 16,
     .max = 1048576,
     .help = "process groups to keep; those heard of least recently are forgotten"},
    {.name = "max_ranks",
     .type = OPTION_INT,
     .offset = FIELD(max_ranks),
     .default_value = "65536",
     .min = 16,
     .max = 1048576,
     .help = "ranks to keep, in all and in a group"},
    {.name = "max_entries",
     .type = OPTION_INT,
     .offset = FIELD(max_entries),
     .default_value = "262144",
     .min = 1024,
     .max = 16777216,
     .help = "members of groups, and operations under way, to keep; the groups heard of least "
             "recently are forgotten"},
    {.name = "max_pending",
     .type = OPTION_INT,
     .offset = FIELD(max_pending),
     .default_value = "64",
     .min = 2,
     .max = 4096,
     .help = "operations under way to keep of one rank in one group; the oldest stay"},
    PERCENT(missing_rank, "85", "in percent, when a rank never called the operation"),
    PERCENT(mismatch, "85",
            "the same, when ranks called different operations, sizes or data types"),
    PERCENT(not_started, "80", "the same, when ranks called it and did not start it"),
    PERCENT(missing_peer, "75", "the same, when a rank never came to a send or recv"),
    PERCENT(not_completed, "70",
            "the same, when one rank did not complete what the others completed"),
    PERCENT(all_started, "55", "the same, when all came to it and none to its end"),
    PERCENT(missing_dump, "40", "the same, when nothing is known of a rank"),
    PERCENT(past_timeout, "8", "added when the operation is past its own timeout"),
    PERCENT(without_dump, "15", "taken off for each full quarter of the members that left no dump"),
};

static const struct metric_family EVICTED = {
    .name = "culprit_detector_evicted_total",
    .help = "Entries that a detector forgot because a bound was reached.",
    .type = METRIC_COUNTER,
};

static enum status hang_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct nccl_hang *self = instance;
    (void)error;
    self->once = context->once;
    self->config = *(const struct nccl_hang_config *)config;
    hang_store_init(&self->store);
    self->store.max_groups = (uint32_t)self->config.max_groups;
    self->store.max_ranks = (uint32_t)self->config.max_ranks;
    self->store.max_entries = (uint32_t)self->config.max_entries;
    self->store.max_pending = (uint32_t)self->config.max_pending;
    keyed_rows_init(&self->said, "nccl_hang.said", sizeof(struct hang_said), VERDICT_ID_SIZE, 16);
    verdict_ledger_init(&self->ledger, "nccl_hang.verdicts");
    self->evicted = METRIC(&EVICTED, "detector", "nccl_hang");
    return STATUS_OK;
}

static void hang_stop(void *instance) {
    struct nccl_hang *self = instance;
    hang_store_release(&self->store);
    keyed_rows_release(&self->said);
    verdict_ledger_release(&self->ledger);
}

static void hang_state(void *instance, struct state_list *list) {
    struct nccl_hang *self = instance;
    hang_store_state(&self->store, list);
    struct state_entry *said = state_list_table(list, &self->said.table);
    state_entry_string(said, offsetof(struct hang_said, job));
    state_entry_string(said, offsetof(struct hang_said, group_name));
    state_entry_string(said, offsetof(struct hang_said, group_desc));
    state_entry_string(said, offsetof(struct hang_said, operation));
    verdict_ledger_state(&self->ledger, list);
}

static void hang_restored(void *instance) {
    struct nccl_hang *self = instance;
    hang_store_restored(&self->store);
    keyed_rows_restored(&self->said);
    verdict_ledger_restored(&self->ledger);
}

static void report(struct nccl_hang *self, struct batch *batch,
                   const struct hang_finding *finding) {
    struct verdict verdict;
    hang_verdict_build(&self->store, finding, &self->config.confidence, batch->arena, &verdict);
    struct hang_said *said = keyed_rows_find(&self->said, verdict.id);
    if (said == NULL && keyed_rows_count(&self->said) < MAX_SAID)
        said = keyed_rows_add(&self->said, verdict.id);
    if (said != NULL)
        hang_said_fill(said, finding, &verdict);
    verdict_ledger_report(&self->ledger, batch, &verdict, false, 0);
}

static int compare_said(const void *a, const void *b) {
    const struct hang_said *first = *(struct hang_said *const *)a;
    const struct hang_said *second = *(struct hang_said *const *)b;
    if (first->start_ns != second->start_ns)
        return first->start_ns < second->start_ns ? -1 : 1;
    return strcmp(first->id, second->id);
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
        struct verdict verdict;
        hang_verdict_end(over[i], batch->arena, &verdict);
        verdict_ledger_report(&self->ledger, batch, &verdict, true, 0);
        keyed_rows_remove(&self->said, over[i]);
    }
}

static void judge(struct nccl_hang *self, struct batch *batch) {
    uint64_t now_ns = batch->as_of_ns < batch->newest_ns ? batch->as_of_ns : batch->newest_ns;
    const struct hang_rules rules = {
        .stuck_after_ns = (uint64_t)self->config.stuck_after.ns,
        .dump_means_hang = self->config.dump_means_hang,
        .now_ns = now_ns,
    };
    if (!self->once && self->config.forget_after.ns != DURATION_SPECIAL &&
        now_ns > (uint64_t)self->config.forget_after.ns)
        hang_store_expire(&self->store, now_ns - (uint64_t)self->config.forget_after.ns);
    struct hang_findings findings = hang_judge(&self->store, &rules, batch->arena);
    for (uint32_t i = 0; i < findings.count; i++)
        report(self, batch, &findings.items[i]);
    resolve(self, batch);
}

static void hang_consume(void *instance, struct batch *batch) {
    struct nccl_hang *self = instance;
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch_selects(batch, i))
            hang_store_take(&self->store, &batch->events[i], batch->arena);
    if (batch->evaluate)
        judge(self, batch);
    if (self->store.evicted != self->evicted_told) {
        metric_add(self->evicted, self->store.evicted - self->evicted_told);
        self->evicted_told = self->store.evicted;
    }
}

const struct component_type processor_nccl_hang = {
    .name = "nccl_hang",
    .summary = "Finds the rank that holds up the others in a collective operation.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct nccl_hang_config),
    .instance_size = sizeof(struct nccl_hang),
    .takes = 1u << EVENT_FLIGHT | 1u << EVENT_RANK_MAP,
    .gives = FACT_VERDICTS,
    .start = hang_start,
    .stop = hang_stop,
    .state = hang_state,
    .restored = hang_restored,
    .processor = {.consume = hang_consume},
};

// SPDX-License-Identifier: Apache-2.0
// Which pods were taken off a node because a GPU of it failed?
//
// Keeps the Xids of each node (kernel lines, and changes of the metric of the last Xid), which pods
// were removed, and which node each ran on. At an evaluation each removal is joined with the Xid
// that can have led to it. Cost: O(1) an event; O(Xids · log + removals · Xids of the node in the
// window) an evaluation. Memory: bounded rows of 64 to 2,000 bytes, the oldest go first.
#include "processors/xid_correlation.h"

#include "base/metrics/metrics.h"
#include "base/sort.h"
#include "pipeline/component/verdict_ledger.h"
#include "processors/cluster/gpu_names.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/sample_queue.h"
#include "processors/xid_correlation/parts.h"

struct xid_correlation_config {
    struct duration window, skew, burst, gap_free, gap_step;
    int64_t confidence, gauge_confidence;
    int64_t low_penalty, gap_penalty_max, no_gpu_penalty;
    int64_t max_xids, max_pods, max_removals, max_gpus, max_samples;
};

// The metric of the last Xid of one GPU, up to the last evaluation.
struct gauge {
    struct row_head head;
    string_id node;   // the key: up to `uuid`
    uint64_t address; // PCI_NONE where the UUID is known
    string_id uuid;   // or STRING_NONE
    uint32_t unused;
    uint64_t time_ns;
    int64_t value;
};

struct gauge_key {
    string_id node;
    uint64_t address;
    string_id uuid;
} __attribute__((packed));
_Static_assert(offsetof(struct gauge, unused) == sizeof(struct row_head) + sizeof(struct gauge_key),
               "the key lies in the row as in struct gauge_key");

struct xid_correlation {
    struct xid_rules rules;
    struct xid_log xids;
    struct pod_map pods;
    struct removal_table removals;
    struct gpu_names names;
    struct sample_queue samples;
    struct keyed_rows gauges;
    uint32_t max_gpus;
    uint64_t gauges_evicted;
    struct verdict_ledger ledger;
    struct metric *evicted_metric;
    uint64_t evicted_told;
    bool live;
};

#define FIELD(name) offsetof(struct xid_correlation_config, name)

static const struct option OPTIONS[] = {
    {.name = "window",
     .type = OPTION_DURATION,
     .offset = FIELD(window),
     .default_value = "10m",
     .min = 1,
     .max = 86400,
     .help = "an Xid may be so long before the pod's removal; after the loss of a node Kubernetes "
             "takes about 6 min to delete its pods"},
    {.name = "skew",
     .type = OPTION_DURATION,
     .offset = FIELD(skew),
     .default_value = "1s",
     .max = 60,
     .help = "and so long after it: clocks differ, and Kubernetes writes whole seconds"},
    {.name = "burst",
     .type = OPTION_DURATION,
     .offset = FIELD(burst),
     .default_value = "3m",
     .min = 1,
     .max = 3600,
     .help =
         "Xids of a node with no longer gap between them are one fault; its first one is named"},
    {.name = "confidence",
     .type = OPTION_INT,
     .offset = FIELD(confidence),
     .default_value = "90",
     .min = 5,
     .max = 97,
     .help = "percent, for an Xid that the kernel log tells of"},
    {.name = "gauge_confidence",
     .type = OPTION_INT,
     .offset = FIELD(gauge_confidence),
     .default_value = "60",
     .min = 5,
     .max = 97,
     .help = "percent, for an Xid that only the metric DCGM_FI_DEV_XID_ERRORS tells of"},
    {.name = "low_penalty",
     .type = OPTION_INT,
     .offset = FIELD(low_penalty),
     .default_value = "25",
     .max = 90,
     .help = "percent less for an Xid that the program can have caused as well"},
    {.name = "gap_free",
     .type = OPTION_DURATION,
     .offset = FIELD(gap_free),
     .default_value = "1m",
     .max = 86400,
     .help = "a gap between Xid and removal that costs no confidence"},
    {.name = "gap_step",
     .type = OPTION_DURATION,
     .offset = FIELD(gap_step),
     .default_value = "30s",
     .min = 0.001,
     .max = 86400,
     .help = "each such stretch beyond gap_free costs one percent"},
    {.name = "gap_penalty_max",
     .type = OPTION_INT,
     .offset = FIELD(gap_penalty_max),
     .default_value = "20",
     .max = 90,
     .help = "percent that a gap costs at most"},
    {.name = "no_gpu_penalty",
     .type = OPTION_INT,
     .offset = FIELD(no_gpu_penalty),
     .default_value = "15",
     .max = 90,
     .help = "percent less for a pod that asked for no GPU"},
    {.name = "max_xids",
     .type = OPTION_INT,
     .offset = FIELD(max_xids),
     .default_value = "65536",
     .min = 16,
     .max = 16777216,
     .help = "Xids that are kept; the oldest go first"},
    {.name = "max_pods",
     .type = OPTION_INT,
     .offset = FIELD(max_pods),
     .default_value = "65536",
     .min = 16,
     .max = 16777216,
     .help = "pods whose node is kept; those told of least recently go first"},
    {.name = "max_removals",
     .type = OPTION_INT,
     .offset = FIELD(max_removals),
     .default_value = "8192",
     .min = 16,
     .max = 1048576,
     .help = "removed pods that are kept; the oldest go first"},
    {.name = "max_gpus",
     .type = OPTION_INT,
     .offset = FIELD(max_gpus),
     .default_value = "65536",
     .min = 16,
     .max = 16777216,
     .help = "GPUs whose metric is kept; those told of least recently go first"},
    {.name = "max_samples",
     .type = OPTION_INT,
     .offset = FIELD(max_samples),
     .default_value = "1048576",
     .min = 16,
     .max = 16777216,
     .help = "samples of the metric that wait to be put in order; with more, later ones that are "
             "older than those are not looked at"},
};

static const struct metric_family EVICTED = {
    .name = "culprit_detector_evicted_total",
    .help = "Entries that a detector forgot because a bound was reached.",
    .type = METRIC_COUNTER,
};

enum { GAUGES_PER_CHUNK = 64, FIELD_XID = 0 };
static const enum gpu_field FIELDS[] = {[FIELD_XID] = GPU_XID};

static struct xid_rules rules_of(const struct xid_correlation_config *config) {
    return (struct xid_rules){
        .window_ns = (uint64_t)config->window.ns,
        .skew_ns = (uint64_t)config->skew.ns,
        .burst_ns = (uint64_t)config->burst.ns,
        .gap_free_ns = (uint64_t)config->gap_free.ns,
        .gap_step_ns = (uint64_t)config->gap_step.ns,
        .confidence = (int)config->confidence,
        .confidence_gauge = (int)config->gauge_confidence,
        .penalty_low = (int)config->low_penalty,
        .penalty_gap_max = (int)config->gap_penalty_max,
        .penalty_no_gpu = (int)config->no_gpu_penalty,
    };
}

static enum status correlation_start(void *instance, const void *config,
                                     const struct component_context *context, struct error *error) {
    struct xid_correlation *self = instance;
    const struct xid_correlation_config *given = config;
    (void)error;
    self->rules = rules_of(given);
    self->live = !context->once;
    self->max_gpus = (uint32_t)given->max_gpus;
    self->evicted_metric = METRIC(&EVICTED, "detector", "xid_correlation");
    xid_log_init(&self->xids, "xid_correlation.xids", (uint32_t)given->max_xids);
    pod_map_init(&self->pods, "xid_correlation.pods", "xid_correlation.pod_names",
                 (uint32_t)given->max_pods);
    removal_table_init(&self->removals, "xid_correlation.removals", (uint32_t)given->max_removals);
    gpu_names_init(&self->names, "xid_correlation.gpu_addresses", "xid_correlation.gpu_uuids");
    sample_queue_init(&self->samples, "xid_correlation.samples", FIELDS, 1,
                      (uint32_t)given->max_samples);
    keyed_rows_init(&self->gauges, "xid_correlation.gauges", sizeof(struct gauge),
                    sizeof(struct gauge_key), GAUGES_PER_CHUNK);
    verdict_ledger_init(&self->ledger, "xid_correlation.verdicts");
    return STATUS_OK;
}

static void correlation_stop(void *instance) {
    struct xid_correlation *self = instance;
    xid_log_release(&self->xids);
    pod_map_release(&self->pods);
    removal_table_release(&self->removals);
    gpu_names_release(&self->names);
    sample_queue_release(&self->samples);
    keyed_rows_release(&self->gauges);
    verdict_ledger_release(&self->ledger);
}

static void correlation_state(void *instance, struct state_list *list) {
    struct xid_correlation *self = instance;
    xid_log_state(&self->xids, list);
    pod_map_state(&self->pods, list);
    removal_table_state(&self->removals, list);
    gpu_names_state(&self->names, list);
    sample_queue_state(&self->samples, list);
    struct state_entry *entry = state_list_table(list, &self->gauges.table);
    state_entry_string(entry, offsetof(struct gauge, node));
    state_entry_string(entry, offsetof(struct gauge, uuid));
    verdict_ledger_state(&self->ledger, list);
}

static void correlation_restored(void *instance) {
    struct xid_correlation *self = instance;
    xid_log_restored(&self->xids);
    pod_map_restored(&self->pods);
    removal_table_restored(&self->removals);
    gpu_names_restored(&self->names);
    keyed_rows_restored(&self->gauges);
    verdict_ledger_restored(&self->ledger);
}

// -- The metric -----------------------------------------------------------------------------------

static struct gauge *gauge_of(struct xid_correlation *self, const struct queued_sample *sample,
                              struct arena *arena) {
    bool named = sample->uuid != STRING_NONE;
    struct gauge_key key = {sample->node, named ? PCI_NONE : sample->address, sample->uuid};
    struct gauge *gauge = keyed_rows_find(&self->gauges, &key);
    if (gauge != NULL)
        return gauge;
    self->gauges_evicted +=
        row_bound_make_room(&self->gauges, self->max_gpus, offsetof(struct gauge, time_ns), arena);
    return keyed_rows_add(&self->gauges, &key);
}

// The first sample is what was there before; after it a new code is an Xid, the same one is not.
static void take_gauge(struct xid_correlation *self, const struct queued_sample *sample,
                       struct arena *arena) {
    struct gauge *gauge = gauge_of(self, sample, arena);
    int64_t value = sample->value[FIELD_XID];
    if (gauge->time_ns != 0 && sample->time_ns <= gauge->time_ns)
        return;
    pci_address address = sample->address;
    if (address == PCI_NONE)
        address = gpu_names_address(&self->names, sample->node, sample->uuid);
    bool changed = gauge->time_ns != 0 && value != gauge->value && value > 0 && value < UINT32_MAX;
    if (changed && address != PCI_NONE && xid_correlation_wants((uint32_t)value))
        xid_log_take_gauge(&self->xids, sample->node, sample->uuid, address, (uint32_t)value,
                           (uint32_t)gauge->value, sample->time_ns, arena);
    gauge->time_ns = sample->time_ns;
    gauge->value = value;
}

static void take_samples(struct xid_correlation *self, uint64_t until_ns, struct arena *arena) {
    uint32_t count;
    const struct queued_sample **due = sample_queue_due(&self->samples, until_ns, arena, &count);
    for (uint32_t i = 0; i < count; i++)
        take_gauge(self, due[i], arena);
    sample_queue_drop(&self->samples, due, count);
}

// -- Judging --------------------------------------------------------------------------------------

// What explains the removal without an Xid: the scheduler's choice, a node short of something, or
// the pod's own limit.
static bool is_explained(const struct removal *removal) {
    return removal->cause == REMOVAL_PREEMPTED ||
           (removal->cause == REMOVAL_EVICTED && removal->pressure != 0);
}

static struct removal *list_removals(struct xid_correlation *self, uint64_t now_ns,
                                     struct arena *arena, uint32_t *count) {
    struct pod_removal *row;
    struct removal *list =
        arena_take(arena, (keyed_rows_count(&self->removals.rows) + 1) * sizeof *list);
    *count = 0;
    for (uint32_t at = 0; (row = removal_table_next(&self->removals, &at)) != NULL;)
        if (pod_removal_read(row, &list[*count]) && list[*count].time_ns <= now_ns)
            ++*count;
    sort_stable(list, *count, sizeof *list, arena, removal_compare);
    return list;
}

// Xids that could have been joined with it are gone: what was said of it stays.
static bool is_past(const struct xid_correlation *self, const struct removal *removal) {
    return removal->row->judged != 0 &&
           removal->time_ns < self->xids.horizon_ns + self->rules.window_ns + self->rules.burst_ns;
}

static void judge_removal(struct xid_correlation *self, struct batch *batch,
                          struct removal *removal, const struct xid_entry *const *xids,
                          uint32_t xid_count, uint64_t now_ns) {
    struct pod_place place = {0};
    struct xid_choice choice;
    removal_locate(removal, &self->pods, &place);
    bool joined =
        removal->stands && !is_explained(removal) && removal->node != STRING_NONE &&
        xid_choose(&self->rules, xids, xid_count, removal->node, removal->time_ns, now_ns, &choice);
    if ((!joined && removal->row->judged == 0) || (removal->stands && is_past(self, removal)))
        return;
    struct xid_finding finding = {
        .removal = removal, .place = &place, .choice = joined ? &choice : NULL};
    if (joined) {
        finding.uuid = choice.anchor->uuid != STRING_NONE
                           ? choice.anchor->uuid
                           : gpu_names_uuid(&self->names, removal->node, choice.anchor->address);
    }
    struct verdict verdict;
    xid_verdict_build(&self->rules, &finding, batch->arena, &verdict);
    verdict_ledger_report(&self->ledger, batch, &verdict, !joined, 0);
    removal->row->judged = joined;
}

static void tell_evictions(struct xid_correlation *self) {
    uint64_t evicted = self->xids.evicted + self->pods.evicted + self->removals.evicted +
                       self->names.evicted + self->gauges_evicted;
    metric_add(self->evicted_metric, evicted - self->evicted_told);
    self->evicted_told = evicted;
}

static void judge(struct xid_correlation *self, struct batch *batch) {
    uint64_t now_ns = batch->as_of_ns < batch->newest_ns ? batch->as_of_ns : batch->newest_ns;
    uint32_t xid_count, count;
    take_samples(self, now_ns, batch->arena);
    const struct xid_entry **xids = xid_log_sort(&self->xids, batch->arena, &xid_count);
    struct removal *list = list_removals(self, now_ns, batch->arena, &count);
    for (uint32_t i = 0; i < count; i++)
        judge_removal(self, batch, &list[i], xids, xid_count, now_ns);
    // Twice the window, so that a removal that is told late still finds its Xid.
    uint64_t kept_ns = 2 * (self->rules.window_ns + self->rules.burst_ns);
    if (self->live && now_ns > kept_ns)
        xid_log_expire(&self->xids, now_ns - kept_ns);
    tell_evictions(self);
}

static void take_event(struct xid_correlation *self, const struct event *event,
                       struct arena *arena) {
    uint32_t at = 0;
    switch (event->kind) {
    case EVENT_KERNEL:
        gpu_names_take(&self->names, event, arena);
        if (event->node != STRING_NONE)
            xid_log_take(&self->xids, event, xid_correlation_wants, arena);
        break;
    case EVENT_GPU_SAMPLE:
        gpu_names_take(&self->names, event, arena);
        while (!sample_queue_take(&self->samples, event, &at))
            take_samples(self, UINT64_MAX, arena);
        break;
    case EVENT_RANK_MAP:
        gpu_names_take(&self->names, event, arena);
        break;
    case EVENT_KUBERNETES:
        pod_map_take(&self->pods, event, arena);
        removal_table_take(&self->removals, event, arena);
        break;
    default:
        break;
    }
}

static void correlation_consume(void *instance, struct batch *batch) {
    struct xid_correlation *self = instance;
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch_selects(batch, i))
            take_event(self, &batch->events[i], batch->arena);
    if (batch->evaluate)
        judge(self, batch);
}

const struct component_type processor_xid_correlation = {
    .name = "xid_correlation",
    .summary = "Finds pods that were taken off a node because of an Xid of one of its GPUs.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_ALPHA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct xid_correlation_config),
    .instance_size = sizeof(struct xid_correlation),
    .takes =
        1u << EVENT_KERNEL | 1u << EVENT_GPU_SAMPLE | 1u << EVENT_RANK_MAP | 1u << EVENT_KUBERNETES,
    .gives = FACT_VERDICTS,
    .start = correlation_start,
    .stop = correlation_stop,
    .state = correlation_state,
    .restored = correlation_restored,
    .processor = {.consume = correlation_consume},
};

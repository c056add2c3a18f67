// SPDX-License-Identifier: Apache-2.0
// Finds pods that were taken off a node because a GPU of it failed.
//
// Keeps the Xids of each node (kernel lines, and changes of the metric of the last Xid), which pods
// were removed, and which node each ran on. At an evaluation each removal is joined with the Xid
// that can have led to it. Cost: O(1) an event; O(Xids · log + removals · Xids of the node in the
// window) an evaluation. Memory: bounded rows of 64 to 2,000 bytes, the oldest go first.
#include "pipeline/component/component.h"

#include "pipeline/model/node_event.h"
#include "processors/cluster/gpu_names.h"
#include "processors/cluster/pod_map.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/cluster/xid_gauge.h"
#include "processors/xid_correlation/parts.h"

struct xid_correlation {
    struct detector_base base;
    struct xid_config config;
    struct xid_log xids;
    struct pod_map pods;
    struct removal_table removals;
    struct gpu_names names;
    struct xid_gauges gauges;
};

#define XID_OPTION(field, kind, ...) OPTION(struct xid_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    XID_OPTION(window, OPTION_DURATION, .default_value = "10m", .min = 1, .max = 86400,
               .help = "an Xid may be so long before the pod's removal; after the loss of a node "
                       "Kubernetes takes about 6 min to delete its pods"),
    XID_OPTION(skew, OPTION_DURATION, .default_value = "1s", .max = 60,
               .help = "and so long after it: clocks differ, and Kubernetes writes whole seconds"),
    XID_OPTION(burst, OPTION_DURATION, .default_value = "3m", .min = 1, .max = 3600,
               .help = "Xids of a node with no longer gap between them are one fault; its first "
                       "one is named"),
    XID_OPTION(confidence, OPTION_INT, .default_value = "90", .min = 5, .max = 97,
               .help = "percent, for an Xid that the kernel log tells of"),
    XID_OPTION(gauge_confidence, OPTION_INT, .default_value = "60", .min = 5, .max = 97,
               .help = "percent, for an Xid that only the metric DCGM_FI_DEV_XID_ERRORS tells of"),
    XID_OPTION(low_penalty, OPTION_INT, .default_value = "25", .max = 90,
               .help = "percent less for an Xid that the program can have caused as well"),
    XID_OPTION(gap_free, OPTION_DURATION, .default_value = "1m", .max = 86400,
               .help = "a gap between Xid and removal that costs no confidence"),
    XID_OPTION(gap_step, OPTION_DURATION, .default_value = "30s", .min = 0.001, .max = 86400,
               .help = "each such stretch beyond gap_free costs one percent"),
    XID_OPTION(gap_penalty_max, OPTION_INT, .default_value = "20", .max = 90,
               .help = "percent that a gap costs at most"),
    XID_OPTION(no_gpu_penalty, OPTION_INT, .default_value = "15", .max = 90,
               .help = "percent less for a pod that asked for no GPU"),
    XID_OPTION(max_xids, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
               .help = "Xids that are kept; the oldest go first"),
    XID_OPTION(max_pods, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
               .help = "pods whose node is kept; those told of least recently go first"),
    XID_OPTION(max_removals, OPTION_INT, .default_value = "8192", .min = 16, .max = 1048576,
               .help = "removed pods that are kept; the oldest go first"),
    XID_OPTION(max_gpus, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
               .help = "GPUs whose metric is kept; those told of least recently go first"),
    XID_OPTION(max_samples, OPTION_INT, .default_value = "1048576", .min = 16, .max = 16777216,
               .help = "samples of the metric that wait to be put in order; with more, later ones "
                       "that are older than those are not looked at"),
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct xid_correlation, xids.rows, "xid_correlation.xids", XID_LOG_ROWS),
    STATE_STRUCT(struct xid_correlation, xids.bound.horizon_ns, "xid_horizon"),
    STATE_ROWS(struct xid_correlation, pods.by_uid, "xid_correlation.pods", POD_ROWS),
    STATE_ROWS(struct xid_correlation, pods.by_name, "xid_correlation.pod_names", POD_ROWS),
    STATE_ROWS(struct xid_correlation, removals.rows, "xid_correlation.removals", REMOVAL_ROWS),
    STATE_ROWS(struct xid_correlation, names.by_address, "xid_correlation.gpu_addresses",
               GPU_ADDRESS_ROWS),
    STATE_ROWS(struct xid_correlation, names.by_uuid, "xid_correlation.gpu_uuids", GPU_UUID_ROWS),
    STATE_ROWS(struct xid_correlation, gauges.samples.rows, "xid_correlation.samples",
               XID_GAUGE_SAMPLE_ROWS),
    STATE_ROWS(struct xid_correlation, gauges.rows, "xid_correlation.gauges", XID_GAUGE_ROWS),
    STATE_PART(struct xid_correlation, base.ledger, "xid_correlation.verdicts", VERDICT_LEDGER),
};

// What explains the removal without an Xid: the scheduler's choice, a node short of something, or
// the pod's own limit.
static bool is_explained(const struct removal *removal) {
    return removal->cause == REMOVAL_PREEMPTED ||
           (removal->cause == REMOVAL_EVICTED && removal->pressure != 0);
}

// Xids that could have been joined with it are gone: what was said of it stays.
static bool is_past(const struct xid_correlation *self, const struct removal *removal) {
    return removal->row->judged != 0 && removal->time_ns < self->xids.bound.horizon_ns +
                                                               duration_ns(self->config.window) +
                                                               duration_ns(self->config.burst);
}

static void judge_removal(struct xid_correlation *self, struct batch *batch,
                          struct removal *removal, const struct xid_entry *const *xids,
                          uint32_t xid_count, uint64_t now_ns) {
    assert(removal->time_ns <= now_ns);
    struct pod_place place = {0};
    struct xid_choice choice;
    removal_locate(removal, &self->pods, &place);
    bool joined = removal->stands && !is_explained(removal) && removal->node != STRING_NONE &&
                  xid_choose(&self->config, xids, xid_count, removal->node, removal->time_ns,
                             now_ns, &choice);
    if ((!joined && removal->row->judged == 0) || (removal->stands && is_past(self, removal)))
        return;
    struct xid_finding finding = {
        .removal = removal, .place = &place, .choice = joined ? &choice : NULL};
    if (joined) {
        finding.uuid = choice.anchor->uuid != STRING_NONE
                           ? choice.anchor->uuid
                           : gpu_names_uuid(&self->names, removal->node, choice.anchor->address);
    }
    struct verdict_builder builder = {.arena = batch->arena};
    xid_verdict_build(&self->config, &finding, &builder);
    verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, !joined, 0);
    removal->row->judged = joined;
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct xid_correlation *self = instance;
    uint32_t xid_count = 0, count;
    xid_gauges_read(&self->gauges, now_ns, batch->arena);
    struct removal *list = removal_table_sorted(&self->removals, now_ns, batch->arena, &count);
    const struct xid_entry **xids =
        count == 0 ? NULL : xid_log_sort(&self->xids, batch->arena, &xid_count);
    for (uint32_t i = 0; i < count; i++)
        judge_removal(self, batch, &list[i], xids, xid_count, now_ns);
    // Twice the window, so that a removal that is told late still finds its Xid.
    uint64_t kept_ns = 2 * (duration_ns(self->config.window) + duration_ns(self->config.burst));
    if (self->base.live && now_ns > kept_ns)
        xid_log_expire(&self->xids, now_ns - kept_ns);
    detector_count_evicted(&self->base, self->xids.bound.evicted + self->pods.bound.evicted +
                                            self->removals.bound.evicted +
                                            self->names.bound.evicted + self->gauges.bound.evicted);
}

static void take(void *instance, const struct event *event, struct arena *arena) {
    struct xid_correlation *self = instance;
    gpu_names_take(&self->names, event, arena);
    if (event->kind == EVENT_KERNEL && event->node != STRING_NONE)
        xid_log_take(&self->xids, event, xid_correlation_wants, arena);
    if (event->kind == EVENT_GPU_SAMPLE)
        xid_gauges_take(&self->gauges, event, arena);
    if (event->kind == EVENT_KUBERNETES) {
        pod_map_take(&self->pods, event, arena);
        removal_table_take(&self->removals, event, arena);
    }
}

static enum status correlation_start(void *instance, const void *config,
                                     const struct component_context *context, struct error *error) {
    struct xid_correlation *self = instance;
    (void)error;
    self->config = *(const struct xid_config *)config;
    self->xids.bound.max = (uint32_t)self->config.max_xids;
    self->pods.bound.max = (uint32_t)self->config.max_pods;
    self->removals.bound.max = (uint32_t)self->config.max_removals;
    self->names.bound.max = GPU_NAMES_MAX;
    xid_gauges_start(&self->gauges, &self->xids, &self->names, xid_correlation_wants,
                     (uint32_t)self->config.max_gpus, (uint32_t)self->config.max_samples);
    return detector_begin(&self->base, "xid_correlation", context, take, judge);
}

static const char *const EXPLAINS[] = {"nccl_hang", "pod_evicted", "first_exit", NULL};
static const struct verdict_pattern PATTERNS[] = {
    {.name = "xid_correlation", .explains = EXPLAINS}};
static const struct evidence_prefix EVIDENCE[] = {{"xid:", EVENT_KERNEL}};

const struct component_type processor_xid_correlation = {
    .name = "xid_correlation",
    .summary = "Finds pods that were taken off a node because of an Xid of one of its GPUs.",
    .stability = STABILITY_ALPHA,
    .presets = 1u << PRESET_ALL,
    .takes =
        1u << EVENT_KERNEL | 1u << EVENT_GPU_SAMPLE | 1u << EVENT_RANK_MAP | 1u << EVENT_KUBERNETES,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = correlation_start,
    DETECTOR_FIELDS(struct xid_correlation, struct xid_config),
};

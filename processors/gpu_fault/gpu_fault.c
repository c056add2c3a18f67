// SPDX-License-Identifier: Apache-2.0
// Finds GPUs that failed, whoever noticed.
//
// Keeps the Xids that are no link's (kernel lines, and changes of the metric of the last Xid), and
// what AMD's driver says. At an evaluation they are gathered
// into faults, one a GPU and burst; the gravest thing in it names it. GPUs of a node that are lost
// at once are told as one. It stands behind the other detectors and leaves alone what the verdict
// of one of them tells of. A fault that was found has a row, so that its id stays. Cost: O(1) an
// event, O(rows · log + evidence · log) an evaluation. Memory: bounded rows of 100 to 300 bytes.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/told_by.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/gpu_fault/parts.h"

struct fault_key {
    string_id node;
    uint64_t address;
    uint64_t anchor_ns;
} __attribute__((packed));
_Static_assert(offsetof(struct told_fault, first_ns) ==
                   sizeof(struct row_head) + sizeof(struct fault_key),
               "the key lies in the row as in struct fault_key");

#define FAULT_OPTION(field, kind, ...) OPTION(struct gpu_fault_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    FAULT_OPTION(burst, OPTION_DURATION, .default_value = "3m", .min = 1, .max = 3600,
                 .help = "what a GPU says with no longer gap is one fault"),
    FAULT_OPTION(together, OPTION_DURATION, .default_value = "1m", .max = 3600,
                 .help = "GPUs of one node that are lost no further apart are one fault of the "
                         "node"),
    FAULT_OPTION(remember, OPTION_DURATION, .default_value = "30m", .min = 60, .max = 86400,
                 .help = "how long another detector's verdict may still take a fault over; after "
                         "that it stays as it was"),
    FAULT_OPTION(application, OPTION_BOOL, .default_value = "false",
                 .help = "also report, as info, Xids that programs cause (13, 31, 43, 45 …)"),
    FAULT_OPTION(confidence, OPTION_INT, .default_value = "90", .min = 5, .max = 97,
                 .help = "percent, for a fault that the kernel log tells of"),
    FAULT_OPTION(gauge_confidence, OPTION_INT, .default_value = "60", .min = 5, .max = 97,
                 .help = "percent, for one that only the metric DCGM_FI_DEV_XID_ERRORS tells of"),
    FAULT_OPTION(low_penalty, OPTION_INT, .default_value = "25", .max = 90,
                 .help = "percent less for an Xid that the program can have caused as well"),
    FAULT_OPTION(max_xids, OPTION_INT, .default_value = "16384", .min = 16, .max = 16777216,
                 .help = "Xids that are kept; the oldest go first"),
    FAULT_OPTION(max_amd, OPTION_INT, .default_value = "16384", .min = 16, .max = 16777216,
                 .help = "lines of AMD's driver that are kept; the oldest go first"),
    FAULT_OPTION(max_gpus, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
                 .help = "GPUs whose metric is kept; those told of least recently go first"),
    FAULT_OPTION(max_samples, OPTION_INT, .default_value = "1048576", .min = 16, .max = 16777216,
                 .help = "samples of the metric that wait to be put in order; with more, later "
                         "ones that are older than those are not looked at"),
    FAULT_OPTION(max_faults, OPTION_INT, .default_value = "4096", .min = 16, .max = 1048576,
                 .help = "faults that are kept; the oldest go first"),
};

static const struct row_type FAULT_ROWS = {
    .size = sizeof(struct told_fault),
    .key_size = sizeof(struct fault_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct told_fault, node)},
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct gpu_fault, xids.rows, "gpu_fault.xids", XID_LOG_ROWS),
    STATE_STRUCT(struct gpu_fault, xids.bound.horizon_ns, "xid_horizon"),
    STATE_ROWS(struct gpu_fault, amd.rows, "gpu_fault.amd", AMD_LINE_ROWS),
    STATE_STRUCT(struct gpu_fault, amd.bound.horizon_ns, "amd_horizon"),
    STATE_ROWS(struct gpu_fault, names.by_address, "gpu_fault.gpu_addresses", GPU_ADDRESS_ROWS),
    STATE_ROWS(struct gpu_fault, names.by_uuid, "gpu_fault.gpu_uuids", GPU_UUID_ROWS),
    STATE_ROWS(struct gpu_fault, gauges.samples.rows, "gpu_fault.samples", XID_GAUGE_SAMPLE_ROWS),
    STATE_ROWS(struct gpu_fault, gauges.rows, "gpu_fault.gauges", XID_GAUGE_ROWS),
    STATE_ROWS(struct gpu_fault, faults, "gpu_fault.faults", FAULT_ROWS),
    STATE_PART(struct gpu_fault, base.ledger, "gpu_fault.verdicts", VERDICT_LEDGER),
};

// -- Faults that were found before ----------------------------------------------------------------

struct fault_list {
    struct told_fault **items; // by GPU
    uint32_t count;
};

static int compare_gpus(const struct told_fault *fault, string_id node, uint64_t address) {
    return COMPARE_KEYS(COMPARE(fault->node, node), COMPARE(fault->address, address));
}

static int compare_faults(const void *left, const void *right) {
    const struct told_fault *a = *(struct told_fault *const *)left;
    const struct told_fault *b = *(struct told_fault *const *)right;
    int order = compare_gpus(a, b->node, b->address);
    return order != 0 ? order : COMPARE(a->anchor_ns, b->anchor_ns);
}

static struct fault_list list_faults(const struct gpu_fault *self, struct arena *arena) {
    struct told_fault *fault;
    struct fault_list list = {
        arena_take(arena, (keyed_rows_count(&self->faults) + 1) * sizeof *list.items), 0};
    for (uint32_t at = 0; (fault = keyed_rows_next(&self->faults, &at)) != NULL;) {
        fault->seen = 0;
        list.items[list.count++] = fault;
    }
    sort_stable(list.items, list.count, sizeof *list.items, arena, compare_faults);
    return list;
}

// NULL: this burst is a fault that was not found before.
static struct told_fault *find_fault(const struct gpu_fault *self, const struct fault_list *list,
                                     const struct fault_burst *burst) {
    string_id node = burst->anchor->node;
    uint64_t address = burst->anchor->address, gap_ns = duration_ns(self->config.burst);
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_gpus(list->items[middle], node, address) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < list->count && compare_gpus(list->items[low], node, address) == 0; low++) {
        struct told_fault *fault = list->items[low];
        bool apart =
            burst->first_ns > fault->last_ns + gap_ns || fault->first_ns > burst->last_ns + gap_ns;
        if (!apart && fault->seen == 0)
            return fault;
    }
    return NULL;
}

static struct told_fault *add_fault(struct gpu_fault *self, const struct fault_burst *burst,
                                    struct arena *arena) {
    struct fault_key key = {burst->anchor->node, burst->anchor->address, burst->first_ns};
    struct told_fault *fault = row_bound_take(&self->faults, &self->fault_bound, &key,
                                              offsetof(struct told_fault, last_ns), arena);
    if (fault->first_ns == 0)
        fault->first_ns = burst->first_ns;
    return fault;
}

// -- Judging --------------------------------------------------------------------------------------

// Those whose verdicts tell of the failure of a GPU, and more of it than we do.
static const char *const OTHERS[] = {"xid_correlation", "hbm_ecc", "pcie_aer", NULL};

// What no longer stands does not tell of it. A memory error or a link that is well again was still
// what happened; only a removal that is laid to something else was not.
static void forget_teller(struct told_fault *fault, const struct batch *batch) {
    static const char withdrawn[] = "xid_correlation:";
    if (strncmp(fault->told_by, withdrawn, sizeof withdrawn - 1) == 0 &&
        told_by_ended(batch, fault->told_by))
        memset(fault->told_by, 0, sizeof fault->told_by);
}

static void find_teller(struct told_fault *fault, const struct fault_burst *burst,
                        const struct told_by *told, struct arena *arena) {
    for (uint32_t i = 0; i < burst->count && fault->told_by[0] == '\0' && told->count > 0; i++) {
        if (burst->items[i].kind == FAULT_NONE)
            continue;
        const struct verdict *by = told_by_find(told, fault_item_uid(&burst->items[i], arena));
        if (by != NULL)
            memcpy(fault->told_by, by->id, sizeof fault->told_by);
    }
}

static void report(struct gpu_fault *self, struct batch *batch, struct told_fault *fault,
                   const struct fault_burst *burst, const char *told_by) {
    bool ended = told_by[0] != '\0';
    if (ended && fault->told == 0)
        return;
    struct verdict_builder builder = {.arena = batch->arena};
    gpu_fault_verdict(self, fault, burst, told_by, &builder);
    detector_report(&self->base, batch, &builder, ended);
    fault->told = !ended;
}

static bool is_told_elsewhere(const struct loss_group *group) {
    for (uint32_t i = 0; i < group->count; i++)
        if (group->members[i]->fault->told_by[0] == '\0')
            return false;
    return true;
}

// As one, unless other detectors tell of all of them. Where one of them is forgotten, what was said
// stays.
static void report_together(struct gpu_fault *self, struct batch *batch, struct loss_group *group) {
    struct verdict_builder builder = {.arena = batch->arena};
    struct told_fault *first = gpu_fault_group_first(group);
    bool is_old = group->count == 1, ended = is_told_elsewhere(group);
    group->is_told = true;
    for (uint32_t i = 0; i < group->count; i++)
        is_old |= group->members[i]->is_stale;
    if (first == NULL || is_old)
        return;
    if (!ended) {
        gpu_fault_together_verdict(self, group, first, &builder);
        detector_report(&self->base, batch, &builder, false);
    }
    for (uint32_t i = 0; i < group->count; i++) {
        struct told_fault *fault = group->members[i]->fault;
        if (ended)
            report(self, batch, fault, group->members[i]->burst, fault->told_by);
        else if (fault != first)
            report(self, batch, fault, group->members[i]->burst, builder.verdict.id);
        else
            fault->told = 1;
        fault->with_ns = ended ? 0 : first->anchor_ns;
        fault->with_address = ended ? 0 : first->address;
    }
}

static uint64_t horizon_of(const struct gpu_fault *self) {
    uint64_t xid_ns = self->xids.bound.horizon_ns, amd_ns = self->amd.bound.horizon_ns;
    return xid_ns > amd_ns ? xid_ns : amd_ns;
}

static struct judged_burst know_burst(struct gpu_fault *self, struct batch *batch,
                                      const struct fault_list *list,
                                      const struct fault_burst *burst, const struct told_by *told) {
    struct told_fault *fault = find_fault(self, list, burst);
    if (fault == NULL)
        fault = add_fault(self, burst, batch->arena);
    fault->seen = 1;
    fault->first_ns = fault->first_ns < burst->first_ns ? fault->first_ns : burst->first_ns;
    fault->last_ns = fault->last_ns > burst->last_ns ? fault->last_ns : burst->last_ns;
    // Of an old fault some evidence is gone: what was said stays.
    bool is_stale = fault->first_ns < horizon_of(self);
    if (!is_stale) {
        forget_teller(fault, batch);
        find_teller(fault, burst, told, batch->arena);
    }
    return (struct judged_burst){
        .burst = burst, .fault = fault, .anchor_ns = fault->anchor_ns, .is_stale = is_stale};
}

// Drops those whose row went for one that was made later; returns how many are left.
static uint32_t keep_known(struct judged_burst *judged, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct told_fault *fault = judged[i].fault;
        const struct fault_item *anchor = judged[i].burst->anchor;
        if (fault->head.live != 0 && fault->node == anchor->node &&
            fault->address == anchor->address && fault->anchor_ns == judged[i].anchor_ns)
            judged[kept++] = judged[i];
    }
    return kept;
}

static void judge_bursts(struct gpu_fault *self, struct batch *batch,
                         const struct fault_bursts *bursts) {
    struct arena *arena = batch->arena;
    struct told_by told = told_by_gather(batch, OTHERS, arena);
    struct fault_list list = list_faults(self, arena);
    struct judged_burst *judged = arena_take(arena, (bursts->count + 1) * sizeof *judged);
    for (uint32_t i = 0; i < bursts->count; i++)
        judged[i] = know_burst(self, batch, &list, &bursts->items[i], &told);
    uint32_t count = keep_known(judged, bursts->count);
    gpu_fault_group(&self->config, judged, count, arena);
    for (uint32_t i = 0; i < count; i++) {
        struct loss_group *group = judged[i].group;
        if (group != NULL && !group->is_told)
            report_together(self, batch, group);
        else if (group == NULL && !judged[i].is_stale)
            report(self, batch, judged[i].fault, judged[i].burst, judged[i].fault->told_by);
    }
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct gpu_fault *self = instance;
    uint64_t kept_ns = duration_ns(self->config.remember) + duration_ns(self->config.burst);
    xid_gauges_read(&self->gauges, now_ns, batch->arena);
    struct fault_bursts bursts = gpu_fault_find(self, now_ns, batch->arena);
    judge_bursts(self, batch, &bursts);
    if (self->base.live && now_ns > kept_ns) {
        xid_log_expire(&self->xids, now_ns - kept_ns);
        row_bound_expire(&self->amd.rows, &self->amd.bound, offsetof(struct amd_line, time_ns),
                         now_ns - kept_ns);
    }
    detector_count_evicted(&self->base, self->xids.bound.evicted + self->amd.bound.evicted +
                                            self->names.bound.evicted + self->gauges.bound.evicted +
                                            self->fault_bound.evicted);
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct gpu_fault *self = instance;
    gpu_names_take(&self->names, event, scratch);
    if (event->kind == EVENT_KERNEL)
        xid_log_take(&self->xids, event, gpu_fault_wants, scratch);
    if (event->kind == EVENT_GPU_SAMPLE)
        xid_gauges_take(&self->gauges, event, scratch);
    if (event->kind == EVENT_OBSERVATION)
        amd_log_take(&self->amd, event, scratch);
}

static enum status fault_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    struct gpu_fault *self = instance;
    (void)error;
    self->config = *(const struct gpu_fault_config *)config;
    self->xids.bound.max = (uint32_t)self->config.max_xids;
    self->amd.bound.max = (uint32_t)self->config.max_amd;
    self->fault_bound.max = (uint32_t)self->config.max_faults;
    self->names.bound.max = GPU_NAMES_MAX;
    xid_gauges_start(&self->gauges, &self->xids, &self->names, gpu_fault_wants,
                     (uint32_t)self->config.max_gpus, (uint32_t)self->config.max_samples);
    self->base.takes_undated = true;
    return detector_begin(&self->base, "gpu_fault", context, take, judge);
}

static const char *const EXPLAINS[] = {"nccl_hang",  "pod_evicted", "fabric_link",
                                       "node_fault", "first_exit",  NULL};
static const struct verdict_pattern PATTERNS[] = {{.name = "gpu_fault", .explains = EXPLAINS}};
static const uint8_t OBSERVATIONS[] = {OBSERVATION_GPU_HANG, OBSERVATION_GPU_RESET,
                                       OBSERVATION_GPU_HARDWARE_ERROR, OBSERVATION_NONE};
static const struct evidence_prefix EVIDENCE[] = {{"amdgpu:", EVENT_OBSERVATION}};

const struct component_type processor_gpu_fault = {
    .name = "gpu_fault",
    .summary = "Finds GPUs that failed, whoever noticed.",
    .stability = STABILITY_ALPHA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_KERNEL | 1u << EVENT_GPU_SAMPLE | 1u << EVENT_RANK_MAP |
             1u << EVENT_OBSERVATION,
    .observations = OBSERVATIONS,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = fault_start,
    DETECTOR_FIELDS(struct gpu_fault, struct gpu_fault_config),
};

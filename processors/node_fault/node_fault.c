// SPDX-License-Identifier: Apache-2.0
// Finds machines of which a part failed, by lines that say so: kernel, memory, GPUs that no Xid
// tells of, the NVLink fabric, the IOMMU.
//
// Keeps what is said; at an evaluation that is put together by node, part and burst, and the
// gravest cause names the fault (causes.c). A fault that was found has a row, so that its id stays.
// Cost: O(1) an event, O(rows · log) an evaluation. Memory: bounded rows of 60 to 300 bytes.
#include "pipeline/component/component.h"

#include "pipeline/model/observation.h"
#include "processors/node_fault/parts.h"

struct node_fault {
    struct detector_base base;
    struct node_fault_config config;
    struct node_log log;
    struct keyed_rows faults; // struct told_node
    struct row_bound fault_bound;
};

struct told_key {
    string_id node;
    uint64_t began_ns;
    uint32_t part;
} __attribute__((packed));
_Static_assert(offsetof(struct told_node, seen) ==
                   sizeof(struct row_head) + sizeof(struct told_key),
               "the key lies in the row as in struct told_key");

#define FAULT_OPTION(field, kind, ...) OPTION(struct node_fault_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    FAULT_OPTION(burst, OPTION_DURATION, .default_value = "3m", .min = 1, .max = 3600,
                 .help = "what a part of a node says with no longer gap is one fault"),
    FAULT_OPTION(remember, OPTION_DURATION, .default_value = "30m", .min = 60, .max = 86400,
                 .help = "how long what was said is kept; a fault that was told stays as it was"),
    FAULT_OPTION(confidence, OPTION_INT, .default_value = "88", .min = 5, .max = 97,
                 .help = "percent"),
    FAULT_OPTION(max_said, OPTION_INT, .default_value = "16384", .min = 16, .max = 1048576,
                 .help = "lines that are kept, 300 bytes each; the oldest go first"),
    FAULT_OPTION(max_faults, OPTION_INT, .default_value = "4096", .min = 16, .max = 1048576,
                 .help = "faults that are known; the oldest go first"),
};

static const struct row_type FAULT_ROWS = {
    .size = sizeof(struct told_node),
    .key_size = sizeof(struct told_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct told_node, node)},
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct node_fault, log.rows, "node_fault.said", NODE_SAID_ROWS),
    STATE_STRUCT(struct node_fault, log.bound.horizon_ns, "said_horizon"),
    STATE_ROWS(struct node_fault, faults, "node_fault.faults", FAULT_ROWS),
    STATE_PART(struct node_fault, base.ledger, "node_fault.verdicts", VERDICT_LEDGER),
};

static bool is_same(const struct told_node *told, const struct node_burst *burst, uint64_t gap_ns) {
    return told->node == burst->anchor->node &&
           told->part == (uint32_t)node_said_cause(burst->anchor)->part && told->seen == 0 &&
           burst->first_ns <= told->last_ns + gap_ns && told->first_ns <= burst->last_ns + gap_ns;
}

// Of several the one that began first. Few faults stand at a time.
static struct told_node *find_told(struct node_fault *self, const struct node_burst *burst) {
    struct told_node *told, *best = NULL;
    for (uint32_t at = 0; (told = keyed_rows_next(&self->faults, &at)) != NULL;)
        if (is_same(told, burst, duration_ns(self->config.burst)) &&
            (best == NULL || told->began_ns < best->began_ns))
            best = told;
    return best;
}

static struct told_node *know(struct node_fault *self, const struct node_burst *burst,
                              struct arena *scratch) {
    struct told_node *told = find_told(self, burst);
    if (told == NULL) {
        struct told_key key = {burst->anchor->node, burst->first_ns,
                               (uint32_t)node_said_cause(burst->anchor)->part};
        told = row_bound_take(&self->faults, &self->fault_bound, &key,
                              offsetof(struct told_node, last_ns), scratch);
        told->first_ns = burst->first_ns;
    }
    told->seen = 1;
    told->first_ns = told->first_ns < burst->first_ns ? told->first_ns : burst->first_ns;
    told->last_ns = told->last_ns > burst->last_ns ? told->last_ns : burst->last_ns;
    return told;
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct node_fault *self = instance;
    struct node_bursts bursts = node_fault_find(&self->log, &self->config, now_ns, batch->arena);
    struct told_node *told;
    for (uint32_t at = 0; (told = keyed_rows_next(&self->faults, &at)) != NULL;)
        told->seen = 0;
    for (uint32_t i = 0; i < bursts.count; i++) {
        told = know(self, &bursts.items[i], batch->arena);
        // Of an old fault some evidence is gone: what was said stays.
        if (told->first_ns < self->log.bound.horizon_ns)
            continue;
        struct verdict_builder builder = {.arena = batch->arena};
        node_fault_verdict(&self->config, told, &bursts.items[i], &builder);
        detector_report(&self->base, batch, &builder, false);
    }
    uint64_t kept_ns = duration_ns(self->config.remember) + duration_ns(self->config.burst);
    if (self->base.live && now_ns > kept_ns)
        row_bound_expire(&self->log.rows, &self->log.bound, offsetof(struct node_said, time_ns),
                         now_ns - kept_ns);
    detector_count_evicted(&self->base, self->log.bound.evicted + self->fault_bound.evicted);
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct node_fault *self = instance;
    if (event->kind == EVENT_OBSERVATION)
        node_log_take(&self->log, event, scratch);
}

static enum status node_fault_start(void *instance, const void *config,
                                    const struct component_context *context, struct error *error) {
    struct node_fault *self = instance;
    (void)error;
    self->config = *(const struct node_fault_config *)config;
    self->log.bound.max = (uint32_t)self->config.max_said;
    self->fault_bound.max = (uint32_t)self->config.max_faults;
    self->base.takes_undated = true;
    return detector_begin(&self->base, "node_fault", context, take, judge);
}

static const char *const EXPLAINS[] = {"nccl_hang",  "pod_evicted", "fabric_link",
                                       "first_exit", "slow_rank",   NULL};
static const struct verdict_pattern PATTERNS[] = {{.name = "node_fault", .explains = EXPLAINS}};
static const struct evidence_prefix EVIDENCE[] = {{"node_fault:", EVENT_OBSERVATION}};
static const uint8_t OBSERVATIONS[] = {OBSERVATION_KERNEL_PANIC,   OBSERVATION_KERNEL_OOPS,
                                       OBSERVATION_HARD_LOCKUP,    OBSERVATION_MACHINE_CHECK,
                                       OBSERVATION_MEMORY_ERROR,   OBSERVATION_NODE_FAULT,
                                       OBSERVATION_NODE_CONDITION, OBSERVATION_NONE};

const struct component_type processor_node_fault = {
    .name = "node_fault",
    .summary = "Finds machines of which a part failed: kernel, memory, devices, the fabric.",
    .stability = STABILITY_ALPHA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_OBSERVATION,
    .observations = OBSERVATIONS,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = node_fault_start,
    DETECTOR_FIELDS(struct node_fault, struct node_fault_config),
};

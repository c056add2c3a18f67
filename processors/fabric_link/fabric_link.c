// SPDX-License-Identifier: Apache-2.0
// Finds links of the fabric that fail: network cards and their ports, NVLink, NVSwitches.
//
// Keeps what lines say of links, and what counters and states of ports did. At an evaluation that
// is put together by card, or by node for NVLink, and judged. A fault that was found has a row, so
// that its id stays. Cost: O(1) an event, O(rows) an evaluation (group_sort.h). Memory: bounded
// rows of 40 to 300 bytes.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/told_by.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/fabric_link/parts.h"

struct told_key {
    string_id node;
    uint64_t address;
    uint64_t anchor_ns;
    string_id device;
} __attribute__((packed));
_Static_assert(offsetof(struct told_link, told) ==
                   sizeof(struct row_head) + sizeof(struct told_key),
               "the key lies in the row as in struct told_key");

#define FABRIC_OPTION(field, kind, ...) OPTION(struct fabric_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    FABRIC_OPTION(settle, OPTION_DURATION, .default_value = "10s", .max = 3600,
                  .help = "a link that is up again sooner is not down; links bounce when a job "
                          "starts"),
    FABRIC_OPTION(window, OPTION_DURATION, .default_value = "1h", .min = 1, .max = 604800,
                  .help = "flaps and errors are counted over so long"),
    FABRIC_OPTION(flaps, OPTION_INT, .default_value = "3", .min = 2, .max = 1000000,
                  .help = "a link that goes down so often in the window flaps"),
    FABRIC_OPTION(errors, OPTION_INT, .default_value = "120", .min = 1, .max = 1e15,
                  .help = "more errors of a port than this in the window are too many"),
    FABRIC_OPTION(nonfatal_errors, OPTION_INT, .default_value = "10", .min = 1, .max = 1000000,
                  .help = "so many errors of NVLink that were recovered from, in one burst of a "
                          "node, are too many"),
    FABRIC_OPTION(burst, OPTION_DURATION, .default_value = "3m", .min = 1, .max = 3600,
                  .help = "errors of NVLink on one node with no longer gap are one fault"),
    FABRIC_OPTION(remember, OPTION_DURATION, .default_value = "30m", .min = 60, .max = 86400,
                  .help = "how long another detector's verdict may still take a fault over; after "
                          "that it stays as it was"),
    FABRIC_OPTION(confidence_down, OPTION_INT, .default_value = "88", .min = 5, .max = 97,
                  .help = "confidence of link_down"),
    FABRIC_OPTION(confidence_flapping, OPTION_INT, .default_value = "85", .min = 5, .max = 97,
                  .help = "confidence of link_flapping"),
    FABRIC_OPTION(confidence_errors, OPTION_INT, .default_value = "75", .min = 5, .max = 97,
                  .help = "confidence of link_errors"),
    FABRIC_OPTION(confidence_nvlink, OPTION_INT, .default_value = "88", .min = 5, .max = 97,
                  .help = "confidence of nvlink_error and nvswitch_error"),
    FABRIC_OPTION(max_said, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
                  .help = "lines and changes of counters that are kept; the oldest go first"),
    FABRIC_OPTION(max_ports, OPTION_INT, .default_value = "262144", .min = 16, .max = 16777216,
                  .help = "counters of ports whose last value is kept; those told of least "
                          "recently go first"),
    FABRIC_OPTION(max_waiting, OPTION_INT, .default_value = "1048576", .min = 16, .max = 16777216,
                  .help = "samples that wait to be put in order; with more, later ones that are "
                          "older than those are not looked at"),
    FABRIC_OPTION(max_faults, OPTION_INT, .default_value = "4096", .min = 16, .max = 1048576,
                  .help = "faults that are kept; the oldest go first"),
};

static const struct row_type FAULT_ROWS = {
    .size = sizeof(struct told_link),
    .key_size = sizeof(struct told_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct told_link, node), offsetof(struct told_link, device)},
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct fabric_link, log.rows, "fabric_link.said", LINK_SAID_ROWS),
    STATE_STRUCT(struct fabric_link, log.bound.horizon_ns, "said_horizon"),
    STATE_ROWS(struct fabric_link, log.names, "fabric_link.names", CARD_NAME_ROWS),
    STATE_ROWS(struct fabric_link, log.restarts, "fabric_link.restarts", RESTART_ROWS),
    STATE_ROWS(struct fabric_link, counters.waiting, "fabric_link.waiting", PORT_SAMPLE_ROWS),
    STATE_ROWS(struct fabric_link, counters.ports, "fabric_link.ports", PORT_ROWS),
    STATE_ROWS(struct fabric_link, faults, "fabric_link.faults", FAULT_ROWS),
    STATE_PART(struct fabric_link, base.ledger, "fabric_link.verdicts", VERDICT_LEDGER),
};

// -- Faults that were found before ----------------------------------------------------------------

struct told_list {
    struct told_link **items; // by place
    uint32_t count;
};

static int compare_place(const struct told_link *told, const struct fabric_fault *fault) {
    return COMPARE_KEYS(COMPARE(told->node, fault->node), COMPARE(told->address, fault->address),
                        COMPARE(told->device, fault->device));
}

static int compare_told(const void *left, const void *right) {
    const struct told_link *a = *(struct told_link *const *)left;
    const struct told_link *b = *(struct told_link *const *)right;
    return COMPARE_KEYS(COMPARE(a->node, b->node), COMPARE(a->address, b->address),
                        COMPARE(a->device, b->device), COMPARE(a->anchor_ns, b->anchor_ns));
}

static struct told_list list_told(const struct fabric_link *self, struct arena *arena) {
    struct told_link *told;
    struct told_list list = {
        arena_take(arena, (keyed_rows_count(&self->faults) + 1) * sizeof *list.items), 0};
    for (uint32_t at = 0; (told = keyed_rows_next(&self->faults, &at)) != NULL;) {
        told->seen = 0;
        list.items[list.count++] = told;
    }
    sort_stable(list.items, list.count, sizeof *list.items, arena, compare_told);
    return list;
}

static uint64_t gap_of(const struct fabric_link *self, const struct fabric_fault *fault) {
    return duration_ns(fault->kind >= FABRIC_NVLINK ? self->config.burst : self->config.window);
}

// NULL: it was not found before.
static struct told_link *find_told(const struct fabric_link *self, const struct told_list *list,
                                   const struct fabric_fault *fault) {
    uint64_t gap_ns = gap_of(self, fault);
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_place(list->items[middle], fault) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < list->count && compare_place(list->items[low], fault) == 0; low++) {
        struct told_link *told = list->items[low];
        bool apart =
            fault->first_ns > told->last_ns + gap_ns || told->first_ns > fault->last_ns + gap_ns;
        if (!apart && told->seen == 0)
            return told;
    }
    return NULL;
}

static struct told_link *add_told(struct fabric_link *self, const struct fabric_fault *fault,
                                  struct arena *arena) {
    struct told_key key = {fault->node, fault->address, fault->anchor->time_ns, fault->device};
    struct told_link *told = row_bound_take(&self->faults, &self->fault_bound, &key,
                                            offsetof(struct told_link, last_ns), arena);
    if (told->first_ns == 0)
        told->first_ns = fault->first_ns;
    return told;
}

// -- Judging --------------------------------------------------------------------------------------

// An eviction that is laid to an Xid of NVLink tells of it.
static const char *const OTHERS[] = {"xid_correlation", NULL};

static void find_teller(struct told_link *told, const struct fabric_fault *fault,
                        const struct batch *batch, const struct told_by *others) {
    if (told->told_by[0] != '\0' && told_by_ended(batch, told->told_by))
        memset(told->told_by, 0, sizeof told->told_by);
    for (uint32_t i = 0; i < fault->count && told->told_by[0] == '\0' && others->count > 0; i++) {
        if (fault->items[i].what != LINK_XID)
            continue;
        const struct verdict *by =
            told_by_find(others, link_item_uid(&fault->items[i], batch->arena));
        if (by != NULL)
            memcpy(told->told_by, by->id, sizeof told->told_by);
    }
}

static void judge_fault(struct fabric_link *self, struct batch *batch, const struct told_list *list,
                        const struct fabric_fault *fault, const struct told_by *others) {
    struct told_link *told = find_told(self, list, fault);
    if (told == NULL)
        told = add_told(self, fault, batch->arena);
    told->seen = 1;
    told->first_ns = told->first_ns < fault->first_ns ? told->first_ns : fault->first_ns;
    told->last_ns = told->last_ns > fault->last_ns ? told->last_ns : fault->last_ns;
    // Of an old fault some evidence is gone: what was said stays, unless it became worse.
    if (told->first_ns < self->log.bound.horizon_ns && fault->kind <= (enum fabric_kind)told->kind)
        return;
    told->kind = fault->kind;
    find_teller(told, fault, batch, others);
    bool ended = told->told_by[0] != '\0';
    if (ended && told->told == 0)
        return;
    struct verdict_builder builder = {.arena = batch->arena};
    fabric_verdict(&self->config, told, fault, &builder);
    detector_report(&self->base, batch, &builder, ended);
    told->told = !ended;
}

static uint64_t kept_ns(const struct fabric_link *self) {
    uint64_t window_ns = 2 * duration_ns(self->config.window);
    uint64_t taken_ns = duration_ns(self->config.remember) + duration_ns(self->config.burst);
    return window_ns > taken_ns ? window_ns : taken_ns;
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct fabric_link *self = instance;
    port_counters_read(&self->counters, &self->log, now_ns, batch->arena);
    struct fabric_faults faults = fabric_find(self, now_ns, batch->arena);
    struct told_by others = told_by_gather(batch, OTHERS, batch->arena);
    struct told_list list = list_told(self, batch->arena);
    for (uint32_t i = 0; i < faults.count; i++)
        judge_fault(self, batch, &list, &faults.items[i], &others);
    if (self->base.live && now_ns > kept_ns(self)) {
        uint64_t before_ns = now_ns - kept_ns(self);
        row_bound_expire(&self->log.rows, &self->log.bound, offsetof(struct link_said, time_ns),
                         before_ns);
        row_bound_expire(&self->log.restarts, &self->log.restart_bound,
                         offsetof(struct restart, time_ns), before_ns);
    }
    detector_count_evicted(&self->base, self->log.bound.evicted + self->log.name_bound.evicted +
                                            self->log.restart_bound.evicted +
                                            self->counters.bound.evicted +
                                            self->fault_bound.evicted);
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct fabric_link *self = instance;
    link_log_take(&self->log, event, scratch);
    if (event->kind == EVENT_OBSERVATION)
        port_counters_take(&self->counters, &self->log, event, scratch);
}

static enum status fabric_start(void *instance, const void *config,
                                const struct component_context *context, struct error *error) {
    struct fabric_link *self = instance;
    (void)error;
    self->config = *(const struct fabric_config *)config;
    self->log.bound.max = (uint32_t)self->config.max_said;
    self->counters.bound.max = (uint32_t)self->config.max_ports;
    self->counters.waiting_max = (uint32_t)self->config.max_waiting;
    self->fault_bound.max = (uint32_t)self->config.max_faults;
    self->base.takes_undated = true;
    return detector_begin(&self->base, "fabric_link", context, take, judge);
}

static const char *const EXPLAINS[] = {"nccl_hang", "first_exit", "slow_rank", NULL};
static const struct verdict_pattern PATTERNS[] = {{.name = "fabric_link", .explains = EXPLAINS}};
static const struct evidence_prefix EVIDENCE[] = {
    {"link:", EVENT_OBSERVATION}, {"ib:", EVENT_OBSERVATION}, {"sxid:", EVENT_KERNEL}};
static const uint8_t OBSERVATIONS[] = {
    OBSERVATION_NIC_LINK,       OBSERVATION_NIC_MODULE,      OBSERVATION_NIC_HEALTH,
    OBSERVATION_NIC_COMMAND,    OBSERVATION_NETDEV_WATCHDOG, OBSERVATION_NCCL_PORT_ERROR,
    OBSERVATION_NCCL_NET_ERROR, OBSERVATION_HEALTH_EVENT,    OBSERVATION_IB_COUNTER,
    OBSERVATION_IB_STATE,       OBSERVATION_NODE_STATE,      OBSERVATION_NONE};

const struct component_type processor_fabric_link = {
    .name = "fabric_link",
    .summary = "Finds links of the fabric that fail: network cards, NVLink, NVSwitches.",
    .stability = STABILITY_ALPHA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_KERNEL | 1u << EVENT_OBSERVATION,
    .observations = OBSERVATIONS,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = fabric_start,
    DETECTOR_FIELDS(struct fabric_link, struct fabric_config),
};

// SPDX-License-Identifier: Apache-2.0
// Finds why pods were taken away.
//
// Gathers removals (processors/cluster/pod_removal.h), the nodes' pressure conditions
// (node_conditions.h) and who runs where (processors/cluster/pod_map.h); at an evaluation each
// removal is joined with the nearest condition and reported. Cost: O(1) an object; an evaluation
// looks at each removal that is kept, and builds a verdict for those that changed or are younger
// than `retention`.
#include "pipeline/component/component.h"

#include "pipeline/model/node_event.h"
#include "processors/cluster/pod_map.h"
#include "processors/pod_evicted/verdict.h"

struct pod_evicted {
    struct detector_base base;
    struct pod_evicted_config config;
    struct removal_table removals;
    struct pod_map pods;
    struct node_conditions conditions;
};

#define POD_OPTION(field, kind, ...) OPTION(struct pod_evicted_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    POD_OPTION(window, OPTION_DURATION, .default_value = "5m", .min = 1, .max = 86400,
               .help = "how long before the eviction a node's condition may have become True to be "
                       "its cause"),
    POD_OPTION(skew, OPTION_DURATION, .default_value = "1s", .max = 60,
               .help = "how long after the eviction it may have, since Kubernetes writes whole "
                       "seconds"),
    POD_OPTION(retention, OPTION_DURATION, .default_value = "1h", .min = 60, .max = 604800,
               .help = "how long an eviction is told to the stages behind (incident) at each "
                       "evaluation; afterwards only when something about it changes"),
    POD_OPTION(sustained, OPTION_BOOL, .default_value = "false",
               .help = "show a condition that has been True for longer than the window as context; "
                       "the verdict stays partial"),
    POD_OPTION(taint, OPTION_BOOL, .default_value = "false",
               .help = "also report pods that the taint manager took away (kind taint)"),
    POD_OPTION(preempted, OPTION_BOOL, .default_value = "false",
               .help = "also report pods that were preempted (kind preempted)"),
    POD_OPTION(api_eviction, OPTION_BOOL, .default_value = "false",
               .help = "also report pods that were taken away through the eviction API (kind "
                       "api_eviction)"),
    POD_OPTION(confidence_full, OPTION_INT, .default_value = "90", .max = 100,
               .help = "confidence when the node's condition was seen"),
    POD_OPTION(confidence_partial, OPTION_INT, .default_value = "60", .max = 100,
               .help = "confidence when it was not"),
    POD_OPTION(confidence_pod_limit, OPTION_INT, .default_value = "85", .max = 100,
               .help = "confidence that the pod passed a limit of its own"),
    POD_OPTION(confidence_other, OPTION_INT, .default_value = "80", .max = 100,
               .help = "confidence of the kinds that are off by default"),
    POD_OPTION(unknown_pressure_penalty, OPTION_INT, .default_value = "20", .max = 100,
               .help = "taken off when the kubelet did not say what was short"),
    POD_OPTION(max_removals, OPTION_INT, .default_value = "8192", .min = 16, .max = 1048576,
               .help = "pods that were taken away to keep; the oldest are forgotten"),
    POD_OPTION(max_pods, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
               .help = "pods whose node to keep; those told of least recently are forgotten"),
    POD_OPTION(max_conditions, OPTION_INT, .default_value = "16384", .min = 16, .max = 1048576,
               .help = "conditions of nodes to keep (three a node); those told of least recently "
                       "are forgotten"),
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct pod_evicted, removals.rows, "pod_evicted.removals", REMOVAL_ROWS),
    STATE_ROWS(struct pod_evicted, pods.by_uid, "pod_evicted.pods_by_uid", POD_ROWS),
    STATE_ROWS(struct pod_evicted, pods.by_name, "pod_evicted.pods_by_name", POD_ROWS),
    STATE_ROWS(struct pod_evicted, conditions.rows, "pod_evicted.conditions", CONDITION_ROWS),
    STATE_PART(struct pod_evicted, base.ledger, "pod_evicted.verdicts", VERDICT_LEDGER),
};

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct pod_evicted *self = instance;
    if (event->kind != EVENT_KUBERNETES)
        return;
    pod_map_take(&self->pods, event, scratch);
    node_conditions_take(&self->conditions, event, scratch);
    removal_table_take(&self->removals, event, scratch);
}

// "Evicted pod: SpotInterruption", "Evicted pod: Interrupted".
static bool is_reclaimed(const struct removal *removal) {
    static const char *const words[] = {"nterrupt", "eclaim", "Spot", "spot_", "reempt"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (removal->note.size > 0 &&
            memmem(removal->note.data, removal->note.size, words[i], strlen(words[i])) != NULL)
            return removal->cause == REMOVAL_API;
    return false;
}

// False when this cause is not asked for.
static bool kind_of(const struct pod_evicted *self, const struct removal *removal,
                    enum eviction_kind *kind) {
    assert(removal->cause < REMOVAL_CAUSE_COUNT);
    const struct {
        enum eviction_kind kind;
        bool asked;
    } kinds[REMOVAL_CAUSE_COUNT] = {
        [REMOVAL_EVICTED] = {(removal->pressure & PRESSURE_LIMIT) != 0 ? EVICTION_POD_LIMIT
                                                                       : EVICTION_NODE_PRESSURE,
                             true},
        [REMOVAL_TAINT] = {EVICTION_TAINT, self->config.taint},
        [REMOVAL_PREEMPTED] = {EVICTION_PREEMPTED, self->config.preempted},
        [REMOVAL_API] = {EVICTION_API, self->config.api_eviction},
    };
    if (is_reclaimed(removal)) {
        *kind = EVICTION_RECLAIMED;
        return true;
    }
    *kind = kinds[removal->cause].kind;
    return kinds[removal->cause].asked;
}

static bool may_be(uint32_t pressure, enum node_condition condition) {
    static const uint32_t bits[] = {[NODE_MEMORY] = PRESSURE_MEMORY,
                                    [NODE_DISK] = PRESSURE_DISK | PRESSURE_INODES,
                                    [NODE_PIDS] = PRESSURE_PIDS};
    return pressure == 0 || (pressure & bits[condition]) != 0;
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

// The node's condition that explains it: the nearest of those that the text names; where it names
// none, the only one that is True in the window.
static void join(const struct pod_evicted *self, struct eviction_finding *finding) {
    assert(finding->transition == NULL && finding->sustained == NULL);
    const struct removal *removal = finding->removal;
    struct pressure_window window = {duration_ns(self->config.window),
                                     duration_ns(self->config.skew)};
    uint32_t found = 0;
    if (finding->kind != EVICTION_NODE_PRESSURE || removal->node == STRING_NONE)
        return;
    for (uint32_t i = 0; i < NODE_CONDITION_COUNT; i++) {
        enum node_condition condition = (enum node_condition)i;
        if (!may_be(removal->pressure, condition))
            continue;
        const struct transition *older;
        const struct transition *transition = node_conditions_find(
            &self->conditions, removal->node, condition, removal->time_ns, window, &older);
        found += transition != NULL;
        if (transition != NULL && (finding->transition == NULL ||
                                   distance(transition->time_ns, removal->time_ns) <
                                       distance(finding->transition->time_ns, removal->time_ns))) {
            finding->transition = transition;
            finding->condition = condition;
        }
        if (older != NULL &&
            (finding->sustained == NULL || older->time_ns > finding->sustained->time_ns)) {
            finding->sustained = older;
            finding->sustained_condition = condition;
        }
    }
    if (removal->pressure == 0 && found > 1)
        finding->transition = NULL;
    // It counts only where the text says which condition it would be.
    if (finding->transition != NULL || removal->pressure == 0)
        finding->sustained = NULL;
    finding->show_sustained = finding->sustained != NULL && self->config.sustained;
}

static void report(struct pod_evicted *self, struct batch *batch,
                   const struct eviction_finding *finding, uint64_t now_ns) {
    assert(finding->removal->time_ns <= now_ns);
    struct pod_removal *row = finding->removal->row;
    uint64_t hash = finding->cancelled ? 0 : eviction_finding_hash(finding);
    uint64_t age_ns = now_ns - finding->removal->time_ns;
    if (row->judged == hash && age_ns > duration_ns(self->config.retention))
        return;
    row->judged = hash;
    struct verdict_builder builder = {.arena = batch->arena};
    eviction_verdict_build(finding, &self->config, &builder);
    uint64_t weight = finding->transition != NULL ? finding->transition->time_ns : 0;
    verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, finding->cancelled, weight);
}

static void judge_removal(struct pod_evicted *self, struct batch *batch, struct removal *removal,
                          uint64_t now_ns) {
    struct pod_place place;
    struct eviction_finding finding = {.removal = removal, .place = &place};
    bool stands = removal->stands && kind_of(self, removal, &finding.kind);
    if (!stands) {
        // Nothing was said of it, or it is a kind that cannot have been reported.
        if (removal->row->judged == 0)
            return;
        finding.cancelled = true;
        kind_of(self, removal, &finding.kind);
    }
    removal_locate(removal, &self->pods, &place);
    if (stands)
        join(self, &finding);
    report(self, batch, &finding, now_ns);
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct pod_evicted *self = instance;
    uint32_t count;
    struct removal *removals = removal_table_sorted(&self->removals, now_ns, batch->arena, &count);
    for (uint32_t i = 0; i < count; i++)
        judge_removal(self, batch, &removals[i], now_ns);
    detector_count_evicted(&self->base, self->removals.bound.evicted + self->pods.bound.evicted +
                                            self->conditions.bound.evicted);
}

static enum status start(void *instance, const void *config,
                         const struct component_context *context, struct error *error) {
    struct pod_evicted *self = instance;
    (void)error;
    self->config = *(const struct pod_evicted_config *)config;
    self->removals.bound.max = (uint32_t)self->config.max_removals;
    self->pods.bound.max = (uint32_t)self->config.max_pods;
    self->conditions.bound.max = (uint32_t)self->config.max_conditions;
    return detector_begin(&self->base, "pod_evicted", context, take, judge);
}

static const char *const EXPLAINS[] = {"nccl_hang", "first_exit", NULL};
static const struct verdict_pattern PATTERNS[] = {{.name = "pod_evicted", .explains = EXPLAINS}};
static const struct evidence_prefix EVIDENCE[] = {{"k8s-event:", EVENT_KUBERNETES},
                                                  {"node-condition:", EVENT_KUBERNETES}};

const struct component_type processor_pod_evicted = {
    .name = "pod_evicted",
    .summary = "Says why pods were evicted: pressure on their node or a limit of their own.",
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_KUBERNETES,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = start,
    DETECTOR_FIELDS(struct pod_evicted, struct pod_evicted_config),
};

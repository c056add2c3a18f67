// SPDX-License-Identifier: Apache-2.0
// Why was a pod taken away? Gathers removals (pod_removal.h), the nodes' pressure conditions
// (node_conditions.h) and who runs where (pod_map.h); at an evaluation each removal is joined with
// the nearest condition and reported. Cost: O(1) an object; an evaluation looks at each removal
// that is kept, and builds a verdict for those that changed or are younger than `retention`.
#include "processors/pod_evicted.h"

#include "base/metrics/metrics.h"
#include "base/sort.h"
#include "pipeline/component/verdict_ledger.h"
#include "pipeline/model/node_event.h"
#include "processors/pod_evicted/verdict.h"

struct pod_evicted_config {
    struct duration window;
    struct duration skew;
    struct duration retention;
    bool sustained;
    bool taint;
    bool preempted;
    bool api_eviction;
    int64_t confidence_full;
    int64_t confidence_partial;
    int64_t confidence_pod_limit;
    int64_t confidence_other;
    int64_t unknown_pressure_penalty;
    int64_t max_removals;
    int64_t max_pods;
    int64_t max_conditions;
};

struct pod_evicted {
    struct removal_table removals;
    struct pod_map pods;
    struct node_conditions conditions;
    struct verdict_ledger ledger;
    struct pod_evicted_config config; // flat: numbers only
    struct metric *evicted;
    uint64_t evicted_told;
};

#define FIELD(name) offsetof(struct pod_evicted_config, name)
#define CONFIDENCE(option, value, words)                                                           \
    {                                                                                              \
        .name = #option, .type = OPTION_INT, .offset = FIELD(option), .default_value = (value),    \
        .min = 0, .max = 100, .help = (words)                                                      \
    }
#define SWITCH(option, words)                                                                      \
    {                                                                                              \
        .name = #option, .type = OPTION_BOOL, .offset = FIELD(option), .default_value = "false",   \
        .help = (words)                                                                            \
    }

static const struct option OPTIONS[] = {
    {.name = "window",
     .type = OPTION_DURATION,
     .offset = FIELD(window),
     .default_value = "5m",
     .min = 1,
     .max = 86400,
     .help =
         "how long before the eviction a node's condition may have become True to be its cause"},
    {.name = "skew",
     .type = OPTION_DURATION,
     .offset = FIELD(skew),
     .default_value = "1s",
     .min = 0,
     .max = 60,
     .help = "how long after the eviction it may have, since Kubernetes writes whole seconds"},
    {.name = "retention",
     .type = OPTION_DURATION,
     .offset = FIELD(retention),
     .default_value = "1h",
     .min = 60,
     .max = 604800,
     .help = "how long an eviction is told to the stages behind (incident) at each evaluation; "
             "afterwards only when something about it changes"},
    SWITCH(sustained,
           "show a condition that has been True for longer than the window as context; the verdict "
           "stays partial"),
    SWITCH(taint, "also report pods that the taint manager took away (kind taint)"),
    SWITCH(preempted, "also report pods that were preempted (kind preempted)"),
    SWITCH(api_eviction,
           "also report pods that were taken away through the eviction API (kind api_eviction)"),
    CONFIDENCE(confidence_full, "90", "confidence when the node's condition was seen"),
    CONFIDENCE(confidence_partial, "60", "confidence when it was not"),
    CONFIDENCE(confidence_pod_limit, "85", "confidence that the pod passed a limit of its own"),
    CONFIDENCE(confidence_other, "80", "confidence of the kinds that are off by default"),
    CONFIDENCE(unknown_pressure_penalty, "20",
               "taken off when the kubelet did not say what was short"),
    {.name = "max_removals",
     .type = OPTION_INT,
     .offset = FIELD(max_removals),
     .default_value = "8192",
     .min = 16,
     .max = 1048576,
     .help = "pods that were taken away to keep; the oldest are forgotten"},
    {.name = "max_pods",
     .type = OPTION_INT,
     .offset = FIELD(max_pods),
     .default_value = "65536",
     .min = 16,
     .max = 16777216,
     .help = "pods whose node to keep; those told of least recently are forgotten"},
    {.name = "max_conditions",
     .type = OPTION_INT,
     .offset = FIELD(max_conditions),
     .default_value = "16384",
     .min = 16,
     .max = 1048576,
     .help = "conditions of nodes to keep (three a node); those told of least recently are "
             "forgotten"},
};

static const struct metric_family EVICTED = {
    .name = "culprit_detector_evicted_total",
    .help = "Entries that a detector forgot because a bound was reached.",
    .type = METRIC_COUNTER,
};

static enum status start(void *instance, const void *config,
                         const struct component_context *context, struct error *error) {
    struct pod_evicted *self = instance;
    (void)context;
    (void)error;
    self->config = *(const struct pod_evicted_config *)config;
    removal_table_init(&self->removals, "pod_evicted.removals",
                       (uint32_t)self->config.max_removals);
    pod_map_init(&self->pods, "pod_evicted.pods_by_uid", "pod_evicted.pods_by_name",
                 (uint32_t)self->config.max_pods);
    node_conditions_init(&self->conditions, "pod_evicted.conditions",
                         (uint32_t)self->config.max_conditions);
    verdict_ledger_init(&self->ledger, "pod_evicted.verdicts");
    self->evicted = METRIC(&EVICTED, "detector", "pod_evicted");
    return STATUS_OK;
}

static void stop(void *instance) {
    struct pod_evicted *self = instance;
    removal_table_release(&self->removals);
    pod_map_release(&self->pods);
    node_conditions_release(&self->conditions);
    verdict_ledger_release(&self->ledger);
}

static void state(void *instance, struct state_list *list) {
    struct pod_evicted *self = instance;
    removal_table_state(&self->removals, list);
    pod_map_state(&self->pods, list);
    node_conditions_state(&self->conditions, list);
    verdict_ledger_state(&self->ledger, list);
}

static void restored(void *instance) {
    struct pod_evicted *self = instance;
    removal_table_restored(&self->removals);
    pod_map_restored(&self->pods);
    node_conditions_restored(&self->conditions);
    verdict_ledger_restored(&self->ledger);
}

static void gather(struct pod_evicted *self, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (event->kind != EVENT_KUBERNETES || !batch_selects(batch, i))
            continue;
        pod_map_take(&self->pods, event, batch->arena);
        node_conditions_take(&self->conditions, event, batch->arena);
        removal_table_take(&self->removals, event, batch->arena);
    }
}

// False when this cause is not asked for.
static bool kind_of(const struct pod_evicted *self, const struct removal *removal,
                    enum eviction_kind *kind) {
    switch (removal->cause) {
    case REMOVAL_EVICTED:
        *kind =
            (removal->pressure & PRESSURE_LIMIT) != 0 ? EVICTION_POD_LIMIT : EVICTION_NODE_PRESSURE;
        return true;
    case REMOVAL_TAINT:
        *kind = EVICTION_TAINT;
        return self->config.taint;
    case REMOVAL_PREEMPTED:
        *kind = EVICTION_PREEMPTED;
        return self->config.preempted;
    case REMOVAL_API:
        *kind = EVICTION_API;
        return self->config.api_eviction;
    default:
        return false;
    }
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
    const struct removal *removal = finding->removal;
    struct pressure_window window = {(uint64_t)self->config.window.ns,
                                     (uint64_t)self->config.skew.ns};
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
    const struct eviction_confidence confidence = {
        .full = self->config.confidence_full,
        .partial = self->config.confidence_partial,
        .pod_limit = self->config.confidence_pod_limit,
        .other = self->config.confidence_other,
        .unknown_pressure = self->config.unknown_pressure_penalty,
    };
    struct pod_removal *row = finding->removal->row;
    uint64_t hash = finding->cancelled ? 0 : eviction_finding_hash(finding);
    uint64_t age_ns = now_ns - finding->removal->time_ns;
    if (row->judged == hash && age_ns > (uint64_t)self->config.retention.ns)
        return;
    row->judged = hash;
    struct verdict verdict;
    eviction_verdict_build(finding, &confidence, batch->arena, &verdict);
    uint64_t weight = finding->transition != NULL ? finding->transition->time_ns : 0;
    verdict_ledger_report(&self->ledger, batch, &verdict, finding->cancelled, weight);
}

static void judge(struct pod_evicted *self, struct batch *batch, struct removal *removal,
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

static void tell_evicted(struct pod_evicted *self) {
    uint64_t evicted = self->removals.evicted + self->pods.evicted + self->conditions.evicted;
    if (evicted > self->evicted_told)
        metric_add(self->evicted, evicted - self->evicted_told);
    self->evicted_told = evicted;
}

static void consume(void *instance, struct batch *batch) {
    struct pod_evicted *self = instance;
    gather(self, batch);
    tell_evicted(self);
    if (!batch->evaluate)
        return;
    uint64_t now_ns = batch->as_of_ns < batch->newest_ns ? batch->as_of_ns : batch->newest_ns;
    uint32_t count = 0, at = 0;
    struct removal *removals =
        arena_take(batch->arena, (keyed_rows_count(&self->removals.rows) + 1) * sizeof *removals);
    struct pod_removal *row;
    while ((row = removal_table_next(&self->removals, &at)) != NULL)
        if (pod_removal_read(row, &removals[count]) && removals[count].time_ns <= now_ns)
            count++;
    sort_stable(removals, count, sizeof *removals, batch->arena, removal_compare);
    for (uint32_t i = 0; i < count; i++)
        judge(self, batch, &removals[i], now_ns);
}

const struct component_type processor_pod_evicted = {
    .name = "pod_evicted",
    .summary = "Says why pods were evicted: pressure on their node or a limit of their own.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct pod_evicted_config),
    .instance_size = sizeof(struct pod_evicted),
    .takes = 1u << EVENT_KUBERNETES,
    .gives = FACT_VERDICTS,
    .start = start,
    .stop = stop,
    .state = state,
    .restored = restored,
    .processor = {.consume = consume},
};

// SPDX-License-Identifier: Apache-2.0
// Which PCI Express links fail? See README.md for the rules. At an evaluation what happened up to
// now is taken in order of time (pcie_aer_facts.c); each incident that stands is a verdict.
// O(what waits · log + incidents) an evaluation.
#include "processors/pcie_aer.h"

#include "base/metrics/metrics.h"
#include "base/sort.h"
#include "pipeline/component/verdict_ledger.h"
#include "processors/pcie_aer/verdict.h"

struct pcie_aer_config {
    struct duration gather, outcome, hold, silence, minute;
    int64_t minutes, link_samples, default_limit, max_devices, max_waiting;
    double busy_percent;
    int64_t confidence_fatal, confidence_nonfatal, confidence_storm, confidence_degraded;
    int64_t xid_bonus, port_only_penalty, counter_only_penalty;
};

struct pcie_aer {
    struct aer_facts facts;
    struct aer_confidence confidence;
    struct verdict_ledger ledger;
    struct metric *evicted;
};

#define FIELD(name) offsetof(struct pcie_aer_config, name)
#define PERCENT(field, value, text)                                                                \
    {                                                                                              \
        .name = #field, .type = OPTION_INT, .offset = FIELD(field), .default_value = (value),      \
        .min = 0, .max = 97, .help = (text)                                                        \
    }

static const struct option OPTIONS[] = {
    {.name = "gather",
     .type = OPTION_DURATION,
     .offset = FIELD(gather),
     .default_value = "50ms",
     .min = 0.001,
     .max = 10,
     .help = "lines of one device that come within this time of the first are one report"},
    {.name = "outcome",
     .type = OPTION_DURATION,
     .offset = FIELD(outcome),
     .default_value = "1m",
     .min = 0,
     .max = 3600,
     .help = "how long after a report its recovery, or Xid 79 or 167, belongs to it"},
    {.name = "hold",
     .type = OPTION_DURATION,
     .offset = FIELD(hold),
     .default_value = "24h",
     .min = 1,
     .max = 31536000,
     .help = "how long an uncorrectable error stands after its last report; a later one is another "
             "verdict"},
    {.name = "minute",
     .type = OPTION_DURATION,
     .offset = FIELD(minute),
     .default_value = "1m",
     .min = 1,
     .max = 3600,
     .help = "the time over which corrected errors are held against the limit"},
    {.name = "minutes",
     .type = OPTION_INT,
     .offset = FIELD(minutes),
     .default_value = "2",
     .min = 1,
     .max = 1000,
     .help = "how many of those in a row must be over the limit to make a storm, and under it to "
             "end one"},
    {.name = "default_limit",
     .type = OPTION_INT,
     .offset = FIELD(default_limit),
     .default_value = "31",
     .min = 0,
     .max = 1000000000,
     .help =
         "corrected errors in that time that a link may have whose generation and width are not "
         "known"},
    {.name = "silence",
     .type = OPTION_DURATION,
     .offset = FIELD(silence),
     .default_value = "10m",
     .min = 1,
     .max = 86400,
     .help = "a storm or a degraded link is over when nothing was read for so long"},
    {.name = "link_samples",
     .type = OPTION_INT,
     .offset = FIELD(link_samples),
     .default_value = "2",
     .min = 1,
     .max = 1000,
     .help = "readings in a row that make a link a degraded one, or a good one again"},
    {.name = "busy_percent",
     .type = OPTION_RATIO,
     .offset = FIELD(busy_percent),
     .default_value = "50",
     .min = 0,
     .max = 100,
     .help = "utilization above which a GPU's link should run at its highest generation"},
    PERCENT(confidence_fatal, "85", "confidence of uncorrectable_fatal"),
    PERCENT(confidence_nonfatal, "80", "confidence of uncorrectable_nonfatal"),
    PERCENT(confidence_storm, "80", "confidence of correctable_storm"),
    PERCENT(confidence_degraded, "75", "confidence of link_degraded"),
    PERCENT(xid_bonus, "10", "added where the GPU was lost afterwards"),
    PERCENT(port_only_penalty, "30", "taken off where only a port told of the error"),
    PERCENT(counter_only_penalty, "15", "taken off where a counter grew and the log says nothing"),
    {.name = "max_devices",
     .type = OPTION_INT,
     .offset = FIELD(max_devices),
     .default_value = "65536",
     .min = 1,
     .max = 1048576,
     .help = "devices to keep; those heard of least recently are forgotten"},
    {.name = "max_waiting",
     .type = OPTION_INT,
     .offset = FIELD(max_waiting),
     .default_value = "1048576",
     .min = 1024,
     .max = 67108864,
     .help =
         "lines and readings to keep until they are judged, 80 bytes each; when there are more, "
         "the earlier half is taken before all lines of its time have come"},
};

static const struct metric_family EVICTED = {
    .name = "culprit_detector_evicted_total",
    .help = "Entries that a detector forgot because a bound was reached.",
    .type = METRIC_COUNTER,
};

static enum status pcie_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct pcie_aer *self = instance;
    const struct pcie_aer_config *given = config;
    (void)context;
    (void)error;
    struct aer_rules rules = {.gather_ns = (uint64_t)given->gather.ns,
                              .minute_ns = (uint64_t)given->minute.ns,
                              .outcome_ns = (uint64_t)given->outcome.ns,
                              .hold_ns = (uint64_t)given->hold.ns,
                              .silence_ns = (uint64_t)given->silence.ns,
                              .minutes = (uint32_t)given->minutes,
                              .link_samples = (uint32_t)given->link_samples,
                              .limit = (uint32_t)given->default_limit,
                              .busy_percent = given->busy_percent,
                              .max_devices = (uint32_t)given->max_devices,
                              .max_waiting = (uint32_t)given->max_waiting};
    self->confidence = (struct aer_confidence){.fatal = (int)given->confidence_fatal,
                                               .nonfatal = (int)given->confidence_nonfatal,
                                               .storm = (int)given->confidence_storm,
                                               .degraded = (int)given->confidence_degraded,
                                               .with_xid = (int)given->xid_bonus,
                                               .port_only = (int)given->port_only_penalty,
                                               .by_counter = (int)given->counter_only_penalty};
    aer_facts_init(&self->facts, &rules);
    verdict_ledger_init(&self->ledger, "pcie_aer.verdicts");
    self->evicted = METRIC(&EVICTED, "detector", "pcie_aer");
    return STATUS_OK;
}

static void pcie_stop(void *instance) {
    struct pcie_aer *self = instance;
    aer_facts_release(&self->facts);
    verdict_ledger_release(&self->ledger);
}

static void pcie_state(void *instance, struct state_list *list) {
    struct pcie_aer *self = instance;
    aer_facts_state(&self->facts, list);
    verdict_ledger_state(&self->ledger, list);
}

static void pcie_restored(void *instance) {
    struct pcie_aer *self = instance;
    aer_facts_restored(&self->facts);
    verdict_ledger_restored(&self->ledger);
}

struct listed {
    uint32_t row;
    const struct aer_incident *incident;
    const struct aer_device *device;
    uint64_t start_ns;
};

static int compare_listed(const void *a, const void *b) {
    const struct listed *first = a, *second = b;
    if (first->start_ns != second->start_ns)
        return first->start_ns < second->start_ns ? -1 : 1;
    int order = slice_compare(intern_slice(first->device->key.node),
                              intern_slice(second->device->key.node));
    if (order == 0 && first->device->key.function != second->device->key.function)
        order = first->device->key.function < second->device->key.function ? -1 : 1;
    return order != 0 ? order : (int)first->incident->kind - (int)second->incident->kind;
}

static struct listed *list_incidents(const struct aer_facts *facts, struct arena *arena,
                                     uint32_t *count) {
    struct listed *list = arena_take(arena, (facts->incidents.used + 1) * sizeof *list);
    *count = 0;
    for (uint32_t row = 0; row < facts->incidents.used; row++) {
        const struct aer_incident *incident = aer_incident_at(facts, row);
        if (incident->live == 0)
            continue;
        uint64_t start_ns = incident->first_ns;
        if (incident->kind == INCIDENT_STORM && incident->report_ns != 0 &&
            incident->report_ns < start_ns)
            start_ns = incident->report_ns;
        list[(*count)++] =
            (struct listed){row, incident, aer_device_at(facts, incident->device), start_ns};
    }
    sort_stable(list, *count, sizeof *list, arena, compare_listed);
    return list;
}

static void report(struct pcie_aer *self, struct batch *batch) {
    uint32_t count;
    const struct listed *list = list_incidents(&self->facts, batch->arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct verdict_draft draft = {.arena = batch->arena};
        aer_verdict(&self->facts, list[i].incident, &self->confidence, &draft);
        bool ended = list[i].incident->ended;
        verdict_ledger_report(&self->ledger, batch, &draft.verdict, ended, 0);
        if (ended)
            aer_incident_forget(&self->facts, list[i].row);
    }
}

static void pcie_consume(void *instance, struct batch *batch) {
    struct pcie_aer *self = instance;
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch_selects(batch, i))
            aer_facts_add(&self->facts, &batch->events[i], batch->arena);
    if (batch->evaluate) {
        uint64_t now = batch->as_of_ns < batch->newest_ns ? batch->as_of_ns : batch->newest_ns;
        aer_facts_advance(&self->facts, now, batch->last, batch->arena);
        report(self, batch);
    }
    metric_add(self->evicted, self->facts.evicted);
    self->facts.evicted = 0;
}

const struct component_type processor_pcie_aer = {
    .name = "pcie_aer",
    .summary = "Names PCI Express devices whose links fail or err too often.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct pcie_aer_config),
    .instance_size = sizeof(struct pcie_aer),
    .takes = 1u << EVENT_KERNEL | 1u << EVENT_AER_COUNTERS | 1u << EVENT_GPU_SAMPLE |
             1u << EVENT_RANK_MAP,
    .gives = FACT_VERDICTS,
    .start = pcie_start,
    .stop = pcie_stop,
    .state = pcie_state,
    .restored = pcie_restored,
    .processor = {.consume = pcie_consume},
};

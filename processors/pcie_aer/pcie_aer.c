// SPDX-License-Identifier: Apache-2.0
// Names PCI Express links that fail. See README.md for the rules. At an evaluation what happened up
// to now is taken in order of time (facts.c); each incident that stands is a verdict.
// O(what waits · log + incidents) an evaluation.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/pcie_aer/verdict.h"

struct pcie_aer {
    struct detector_base base;
    struct aer_config config;
    struct aer_facts facts;
};

#define AER_OPTION(field, kind, ...) OPTION(struct aer_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    AER_OPTION(gather, OPTION_DURATION, .default_value = "50ms", .min = 0.001, .max = 10,
               .help = "lines of one device that come within this time of the first are one "
                       "report"),
    AER_OPTION(outcome, OPTION_DURATION, .default_value = "1m", .max = 3600,
               .help = "how long after a report its recovery, or Xid 79 or 167, belongs to it"),
    AER_OPTION(hold, OPTION_DURATION, .default_value = "24h", .min = 1, .max = 31536000,
               .help =
                   "how long an uncorrectable error stands after its last report, live; a later "
                   "one is another verdict"),
    AER_OPTION(minute, OPTION_DURATION, .default_value = "1m", .min = 1, .max = 3600,
               .help = "the time over which corrected errors are held against the limit"),
    AER_OPTION(minutes, OPTION_INT, .default_value = "2", .min = 1, .max = 1000,
               .help = "how many of those in a row must be over the limit to make a storm, and "
                       "under it to end one"),
    AER_OPTION(default_limit, OPTION_INT, .default_value = "31", .max = 1000000000,
               .help = "corrected errors in that time that a link may have whose generation and "
                       "width are not known"),
    AER_OPTION(silence, OPTION_DURATION, .default_value = "10m", .min = 1, .max = 86400,
               .help = "live: a storm or a degraded link of which nothing was read for so long is "
                       "given up"),
    AER_OPTION(link_samples, OPTION_INT, .default_value = "2", .min = 1, .max = 1000,
               .help = "readings in a row that make a link a degraded one, or a good one again"),
    AER_OPTION(busy_percent, OPTION_RATIO, .default_value = "50", .max = 100,
               .help = "utilization above which a GPU's link should run at its highest "
                       "generation"),
    AER_OPTION(confidence_fatal, OPTION_INT, .default_value = "85", .max = 97,
               .help = "confidence of uncorrectable_fatal"),
    AER_OPTION(confidence_nonfatal, OPTION_INT, .default_value = "80", .max = 97,
               .help = "confidence of uncorrectable_nonfatal"),
    AER_OPTION(confidence_storm, OPTION_INT, .default_value = "80", .max = 97,
               .help = "confidence of correctable_storm"),
    AER_OPTION(confidence_degraded, OPTION_INT, .default_value = "75", .max = 97,
               .help = "confidence of link_degraded"),
    AER_OPTION(xid_bonus, OPTION_INT, .default_value = "10", .max = 97,
               .help = "added where the GPU was lost afterwards"),
    AER_OPTION(port_only_penalty, OPTION_INT, .default_value = "30", .max = 97,
               .help = "taken off where only a port told of the error"),
    AER_OPTION(counter_only_penalty, OPTION_INT, .default_value = "15", .max = 97,
               .help = "taken off where a counter grew and the log says nothing"),
    AER_OPTION(max_devices, OPTION_INT, .default_value = "65536", .min = 1, .max = 1048576,
               .help = "devices to keep; those heard of least recently are forgotten"),
    AER_OPTION(max_waiting, OPTION_INT, .default_value = "1048576", .min = 1024, .max = 67108864,
               .help =
                   "lines and readings to keep until they are judged, 80 bytes each; when there "
                   "are more, the earlier half is taken before all lines of its time have "
                   "come"),
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct pcie_aer, facts.waiting, "pcie_aer.waiting", AER_FACT_ROWS),
    STATE_ROWS(struct pcie_aer, facts.devices, "pcie_aer.devices", AER_DEVICE_ROWS),
    STATE_ROWS(struct pcie_aer, facts.incidents, "pcie_aer.incidents", AER_INCIDENT_ROWS),
    STATE_PART(struct pcie_aer, base.ledger, "pcie_aer.verdicts", VERDICT_LEDGER),
};

static void pcie_restored(void *instance) {
    aer_facts_restored(&((struct pcie_aer *)instance)->facts);
}

struct listed {
    uint32_t row;
    const struct aer_incident *incident;
    const struct aer_device *device;
    uint64_t start_ns;
};

static int compare_listed(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    int order = COMPARE(a->start_ns, b->start_ns);
    if (order == 0)
        order = compare_strings(a->device->key.node, b->device->key.node);
    return order != 0 ? order
                      : COMPARE_KEYS(COMPARE(a->device->key.function, b->device->key.function),
                                     COMPARE(a->incident->kind, b->incident->kind));
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
        struct aer_incident *incident = aer_incident_at(&self->facts, list[i].row);
        // One verdict a device: the others are evidence of the gravest, while that stands.
        bool leads = aer_incident_lead(&self->facts, list[i].device) == incident;
        if (leads || incident->ended || incident->reported) {
            struct verdict_builder builder = {.arena = batch->arena};
            aer_verdict_build(&self->facts, incident, &builder);
            detector_report(&self->base, batch, &builder, !leads);
        }
        incident->reported = leads;
        if (incident->ended)
            aer_incident_forget(&self->facts, list[i].row);
    }
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    aer_facts_add(&((struct pcie_aer *)instance)->facts, event, scratch);
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct pcie_aer *self = instance;
    aer_facts_advance(&self->facts, now_ns, batch->last, batch->arena);
    report(self, batch);
    detector_count_evicted(&self->base, self->facts.evicted);
}

static enum status pcie_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct pcie_aer *self = instance;
    (void)error;
    self->config = *(const struct aer_config *)config;
    aer_facts_start(&self->facts, &self->config);
    self->facts.live = !context->once;
    self->base.takes_undated = true;
    return detector_begin(&self->base, "pcie_aer", context, take, judge);
}

static const char *const EXPLAINS[] = {"xid_correlation", "hbm_ecc",   "nccl_hang",
                                       "pod_evicted",     "gpu_fault", "fabric_link",
                                       "first_exit",      "slow_rank", NULL};
static const struct verdict_pattern PATTERNS[] = {{.name = "pcie_aer", .explains = EXPLAINS}};
static const uint8_t OBSERVATIONS[] = {OBSERVATION_MACHINE_CHECK, OBSERVATION_NONE};
static const struct evidence_prefix EVIDENCE[] = {{"aer:", EVENT_KERNEL},
                                                  {"sysfs:", EVENT_AER_COUNTERS}};

const struct component_type processor_pcie_aer = {
    .name = "pcie_aer",
    .summary = "Names PCI Express devices whose links fail or err too often.",
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_KERNEL | 1u << EVENT_AER_COUNTERS | 1u << EVENT_GPU_SAMPLE |
             1u << EVENT_RANK_MAP | 1u << EVENT_OBSERVATION,
    .observations = OBSERVATIONS,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = pcie_start,
    .restored = pcie_restored,
    DETECTOR_FIELDS(struct pcie_aer, struct aer_config),
};

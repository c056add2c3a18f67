// SPDX-License-Identifier: Apache-2.0
// Finds links with more corrected errors than a healthy one, or slower than they could be.
//
// A counter is looked at by the minute: from a mark to the first reading a minute or more behind
// it. What grew in between, for a minute, is held against the limit that DCGM's health checks have
// for this generation and width. The first reading is the baseline, and so is one that fell.
#include "processors/pcie_aer/facts.h"

enum { CENTS = 100 };

// A reading may come a little early: scrapes are not exact.
#define MINUTE_SLACK(minute_ns) ((minute_ns) / 20)

uint32_t aer_limit(const struct aer_facts *facts, const struct aer_device *device) {
    // Corrected errors a minute and lane, times 100. Source: NVIDIA DCGM, DcgmHealthWatch.cpp.
    static const uint32_t RATES[] = {0, 15, 30, 48, 96, 192, 384};
    int generation = device->link[LINK_MAX_GENERATION], width = device->link[LINK_MAX_WIDTH];
    if (generation <= 0)
        generation = device->link[LINK_GENERATION];
    if (width <= 0)
        width = device->link[LINK_WIDTH];
    if (generation <= 0 || generation >= (int)(sizeof RATES / sizeof *RATES) || width <= 0)
        return (uint32_t)facts->config->default_limit;
    return (RATES[generation] * (uint32_t)width + CENTS - 1) / CENTS;
}

// -- Storms ---------------------------------------------------------------------------------------

static void set_mark(struct aer_tracker *tracker, uint64_t time_ns, uint64_t value) {
    tracker->mark_ns = tracker->last_ns = time_ns;
    tracker->mark_value = tracker->last_value = value;
    tracker->report_ns = 0;
    tracker->report_bits = 0;
}

// How the counter's field was spelled; 0 where it is none of DCGM's.
static uint8_t spelling_of(const struct aer_fact *fact, enum aer_source source) {
    if (fact == NULL || fact->kind != AER_FACT_GPU)
        return 0;
    assert(source == SOURCE_REPLAYS || source == SOURCE_CORRECTABLE);
    return aer_spelling(fact, source == SOURCE_REPLAYS ? LINK_VALUES : LINK_VALUES + 1);
}

static void begin_storm(struct aer_facts *facts, struct aer_device *device, enum aer_source source,
                        uint32_t limit) {
    assert(aer_incident_of(facts, device, INCIDENT_STORM) == NULL);
    struct aer_tracker *tracker = &device->trackers[source];
    struct aer_incident *incident = aer_incident_open(facts, device, INCIDENT_STORM);
    incident->source = (uint8_t)source;
    incident->first_ns = tracker->over_ns;
    incident->since_ns = tracker->over_since_ns;
    incident->first_spelled[0] = (uint8_t)tracker->over_spelled;
    incident->report_ns = tracker->over_report_ns;
    incident->limit = limit;
    incident->port = device->port;
}

static void go_on(struct aer_incident *incident, const struct aer_tracker *tracker,
                  uint64_t time_ns, uint64_t value, uint8_t spelling) {
    assert(incident->live != 0);
    incident->last_ns = time_ns;
    incident->last_spelled[0] = spelling;
    incident->rate = tracker->rate;
    incident->top_rate = tracker->top_rate;
    incident->bits |= tracker->over_bits | tracker->report_bits;
    incident->count = value - tracker->over_from;
}

static uint32_t rate_of(const struct aer_facts *facts, const struct aer_tracker *tracker,
                        uint64_t time_ns, uint64_t value) {
    double rate = (double)(value - tracker->mark_value) * (double)facts->config->minute.ns /
                  (double)(time_ns - tracker->mark_ns);
    return rate >= 4e9 ? UINT32_MAX : (uint32_t)(rate + 0.5);
}

static bool has_counter(const struct aer_device *device) {
    return device->trackers[SOURCE_SYSFS].last_ns != 0 ||
           device->trackers[SOURCE_CORRECTABLE].last_ns != 0 ||
           device->trackers[SOURCE_REPLAYS].last_ns != 0;
}

// `fact`: what the value stood in; NULL: a line of the log.
static void take_minute(struct aer_facts *facts, struct aer_device *device, enum aer_source source,
                        uint64_t time_ns, uint64_t value, const struct aer_fact *fact) {
    assert(time_ns > device->trackers[source].mark_ns);
    struct aer_tracker *tracker = &device->trackers[source];
    struct aer_incident *incident = aer_incident_of(facts, device, INCIDENT_STORM);
    bool is_mine = incident != NULL && incident->source == source;
    uint32_t limit = aer_limit(facts, device);
    tracker->rate = rate_of(facts, tracker, time_ns, value);
    if (tracker->rate <= limit) {
        tracker->over = 0;
        tracker->over_bits = 0;
        tracker->top_rate = 0;
        if (++tracker->under >= facts->config->minutes && is_mine)
            aer_incident_end(facts, device, INCIDENT_STORM);
        return;
    }
    tracker->under = 0;
    if (tracker->over++ == 0 && !is_mine) {
        tracker->over_ns = time_ns;
        tracker->over_spelled = spelling_of(fact, source);
        // The line at the mark of the log is the first of the storm.
        tracker->over_from = tracker->mark_value - (source == SOURCE_LOG);
        tracker->over_since_ns = tracker->mark_ns;
        tracker->over_report_ns = tracker->report_ns;
    }
    if (tracker->rate > tracker->top_rate)
        tracker->top_rate = tracker->rate;
    tracker->over_bits |= tracker->report_bits;
    if (incident == NULL && tracker->over >= facts->config->minutes &&
        (source != SOURCE_LOG || !has_counter(device))) {
        begin_storm(facts, device, source, limit);
        incident = aer_incident_of(facts, device, INCIDENT_STORM);
        is_mine = true;
    }
    if (is_mine)
        go_on(incident, tracker, time_ns, value, spelling_of(fact, source));
}

static void take_value(struct aer_facts *facts, struct aer_device *device, enum aer_source source,
                       uint64_t time_ns, uint64_t value, const struct aer_fact *fact) {
    assert(source < SOURCE_COUNT);
    struct aer_tracker *tracker = &device->trackers[source];
    if (tracker->last_ns != 0 && time_ns <= tracker->last_ns)
        return;
    if (tracker->last_ns == 0 || value < tracker->last_value) {
        // A storm goes on counting from the new beginning.
        tracker->over_from += value - tracker->last_value;
        set_mark(tracker, time_ns, value);
        tracker->over = tracker->under = 0;
        return;
    }
    tracker->last_ns = time_ns;
    tracker->last_value = value;
    uint64_t minute_ns = duration_ns(facts->config->minute);
    if (time_ns - tracker->mark_ns < minute_ns - MINUTE_SLACK(minute_ns))
        return;
    take_minute(facts, device, source, time_ns, value, fact);
    set_mark(tracker, time_ns, value);
}

// The log is rate limited, so what it shows is the least that happened.
void aer_corrected_take(struct aer_facts *facts, struct aer_device *device, uint64_t time_ns,
                        uint32_t bits) {
    for (unsigned source = 0; source < SOURCE_COUNT; source++) {
        struct aer_tracker *tracker = &device->trackers[source];
        if (tracker->report_ns == 0 || time_ns < tracker->report_ns)
            tracker->report_ns = time_ns;
        tracker->report_bits |= bits;
    }
    take_value(facts, device, SOURCE_LOG, time_ns, ++device->reports, NULL);
    struct aer_tracker *log = &device->trackers[SOURCE_LOG];
    if (log->mark_ns == time_ns) {
        log->report_ns = time_ns;
        log->report_bits = bits;
    }
}

static const enum aer_severity SEVERITIES[COUNT_KINDS] = {[COUNT_CORRECTABLE] = AER_CORRECTABLE,
                                                          [COUNT_NONFATAL] = AER_NONFATAL,
                                                          [COUNT_FATAL] = AER_FATAL};

void aer_counters_take(struct aer_facts *facts, struct aer_device *device,
                       const struct aer_fact *fact) {
    assert(fact->kind == AER_FACT_COUNTERS);
    if ((fact->counters.has & 1u << COUNT_CORRECTABLE) != 0)
        take_value(facts, device, SOURCE_SYSFS, fact->time_ns,
                   fact->counters.count[COUNT_CORRECTABLE], fact);
    for (unsigned kind = COUNT_NONFATAL; kind < COUNT_KINDS; kind++) {
        uint64_t count = fact->counters.count[kind], since_ns = device->count_ns[kind];
        if ((fact->counters.has & 1u << kind) == 0 || fact->time_ns <= since_ns)
            continue;
        if (since_ns != 0 && count > device->count[kind])
            aer_report_count(facts, device, SEVERITIES[kind], count - device->count[kind], since_ns,
                             fact->time_ns);
        device->count[kind] = count;
        device->count_ns[kind] = fact->time_ns;
    }
}

// -- The link -------------------------------------------------------------------------------------

enum link_state { LINK_UNKNOWN, LINK_GOOD, LINK_BAD };

// A link that idles goes to a lower generation by itself, never to a smaller width.
static enum link_state judge_link(const struct aer_facts *facts, const struct aer_fact *fact) {
    const int16_t *link = fact->gpu.link;
    unsigned has = fact->gpu.has;
    const unsigned widths = 1u << LINK_WIDTH | 1u << LINK_MAX_WIDTH;
    const unsigned generations = 1u << LINK_GENERATION | 1u << LINK_MAX_GENERATION;
    bool knows_width = (has & widths) == widths && link[LINK_WIDTH] > 0;
    bool knows_generation = (has & generations) == generations && link[LINK_GENERATION] > 0;
    if (knows_width && link[LINK_WIDTH] < link[LINK_MAX_WIDTH])
        return LINK_BAD;
    if (knows_generation && link[LINK_GENERATION] < link[LINK_MAX_GENERATION])
        return (has & 1u << LINK_UTILIZATION) != 0 &&
                       link[LINK_UTILIZATION] > facts->config->busy_percent
                   ? LINK_BAD
                   : LINK_UNKNOWN;
    return knows_width || knows_generation ? LINK_GOOD : LINK_UNKNOWN;
}

static void take_link(struct aer_facts *facts, struct aer_device *device,
                      const struct aer_fact *fact) {
    enum link_state state = judge_link(facts, fact);
    if (state == LINK_UNKNOWN)
        return;
    struct aer_incident *incident = aer_incident_of(facts, device, INCIDENT_DEGRADED);
    uint64_t before_ns = device->link_ns;
    device->link_ns = fact->time_ns;
    if (state == LINK_GOOD) {
        device->bad_links = 0;
        if (++device->good_links >= facts->config->link_samples)
            aer_incident_end(facts, device, INCIDENT_DEGRADED);
        return;
    }
    device->good_links = 0;
    if (device->bad_links++ == 0 && incident == NULL) {
        device->bad_ns = fact->time_ns;
        device->bad_since_ns = before_ns;
        device->bad_spelled[0] = aer_spelling(fact, LINK_WIDTH);
        device->bad_spelled[1] = aer_spelling(fact, LINK_GENERATION);
    }
    if (incident == NULL && device->bad_links >= facts->config->link_samples) {
        incident = aer_incident_open(facts, device, INCIDENT_DEGRADED);
        incident->first_ns = device->bad_ns;
        incident->since_ns = device->bad_since_ns;
        incident->port = device->port;
        memcpy(incident->link, device->link, sizeof incident->link);
        memcpy(incident->first_spelled, device->bad_spelled, sizeof incident->first_spelled);
    }
    if (incident == NULL)
        return;
    incident->last_ns = fact->time_ns;
    incident->last_spelled[0] = aer_spelling(fact, LINK_WIDTH);
    incident->last_spelled[1] = aer_spelling(fact, LINK_GENERATION);
}

void aer_gpu_take(struct aer_facts *facts, struct aer_device *device, const struct aer_fact *fact) {
    assert(fact->kind == AER_FACT_GPU);
    int16_t xid = device->link[LINK_XID];
    for (unsigned i = 0; i < LINK_VALUES; i++)
        if ((fact->gpu.has & 1u << i) != 0)
            device->link[i] = fact->gpu.link[i];
    take_link(facts, device, fact);
    if ((fact->gpu.has & GPU_HAS_CORRECTABLE) != 0)
        take_value(facts, device, SOURCE_CORRECTABLE, fact->time_ns, fact->gpu.correctable, fact);
    if ((fact->gpu.has & GPU_HAS_REPLAYS) != 0)
        take_value(facts, device, SOURCE_REPLAYS, fact->time_ns, fact->gpu.replays, fact);
    // The gauge holds the last code for ever: only a change says anything.
    int16_t now = device->link[LINK_XID];
    if (xid >= 0 && now != xid && (now == 79 || now == 167))
        aer_xid_take(facts, device, fact->time_ns, (uint16_t)now, fact);
}

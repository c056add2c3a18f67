// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/now/zone.h"

#include "pipeline/model/node_event.h"
#include "pipeline/runtime/now/now.h"

#include <assert.h>

static const int64_t SECOND_NS = 1000000000;
static const int64_t QUARTER_NS = INT64_C(15) * 60 * 1000000000;
enum {
    ROWS_PER_CHUNK = 64,
    QUARTERS_WEST = -12 * 4, // zones go from -12:00 to +14:00
    QUARTERS_EAST = 14 * 4,
    QUARTERS_OF_HOUR = 4,
    PAIR_SLACK_S = 30,    // clocks of a node and of what samples it
    PAIR_GAP_S = 10 * 60, // between samples; a longer one says too little
    SPAN_SLACK_S = 2 * 60,
    SOURCES_MIN = 2,
    EVENTS_MIN = 5, // of a source that counts
    LINES_MIN = 8,  // of the logs
};

// What a device's newest sample said.
struct counter_row {
    uint32_t chained; // what the table puts there
    string_id node;
    pci_address address;
    uint32_t what; // 0: the GPU's last Xid; else errors, as in local_fact.code
    uint64_t time_ns;
    uint64_t gap_ns; // between this sample and the one before it
    uint64_t value;
};

struct change_row {
    uint32_t chained;
    string_id node;
    pci_address address;
    uint64_t after_ns, by_ns; // it came between these
    uint32_t code;
};

void zone_evidence_init(struct zone_evidence *evidence) {
    *evidence = (struct zone_evidence){0};
    table_init(&evidence->counters, "zone.counters", sizeof(struct counter_row), ROWS_PER_CHUNK);
    table_init(&evidence->changes, "zone.changes", sizeof(struct change_row), ROWS_PER_CHUNK);
}

void zone_evidence_release(struct zone_evidence *evidence) {
    table_release(&evidence->counters);
    table_release(&evidence->changes);
    row_index_release(&evidence->index);
}

// -- samples ------------------------------------------------------------------------------------

static uint32_t counter_hash(string_id node, pci_address address, uint32_t what) {
    return row_hash(row_hash(node, what), address);
}

// NULL: there is none.
static struct counter_row *find_counter(const struct zone_evidence *evidence, string_id node,
                                        pci_address address, uint32_t what) {
    uint32_t at = 0, row;
    while ((row = row_index_next(&evidence->index, counter_hash(node, address, what), &at)) !=
           TABLE_NO_ROW) {
        struct counter_row *counter = table_row(&evidence->counters, row);
        if (counter->node == node && counter->address == address && counter->what == what)
            return counter;
    }
    return NULL;
}

// The device's row, made when new; NULL: there are too many.
static struct counter_row *counter_row(struct zone_evidence *evidence, string_id node,
                                       pci_address address, uint32_t what) {
    struct counter_row *counter = find_counter(evidence, node, address, what);
    if (counter != NULL)
        return counter;
    if (evidence->counters.used == ZONE_COUNTERS_MAX)
        return NULL;
    uint32_t row = table_add(&evidence->counters);
    row_index_put(&evidence->index, counter_hash(node, address, what), row);
    counter = table_row(&evidence->counters, row);
    *counter = (struct counter_row){.node = node, .address = address, .what = what};
    return counter;
}

static void note_change(struct zone_evidence *evidence, const struct counter_row *before,
                        uint64_t time_ns, uint32_t code) {
    if (evidence->changes.used == ZONE_CHANGES_MAX)
        return;
    struct change_row *change = table_row(&evidence->changes, table_add(&evidence->changes));
    *change = (struct change_row){.node = before->node,
                                  .address = before->address,
                                  .after_ns = before->time_ns,
                                  .by_ns = time_ns,
                                  .code = code};
}

// `what` as in counter_row. Samples that come late are left out.
static void note_value(struct zone_evidence *evidence, const struct event *event, string_id node,
                       pci_address address, uint32_t what, uint64_t value) {
    pci_address device = pci_device(address);
    if (node == STRING_NONE || device == PCI_NONE || event->time_ns == 0)
        return;
    struct counter_row *row = counter_row(evidence, node, device, what);
    if (row == NULL || event->time_ns < row->time_ns)
        return;
    if (row->time_ns != 0 && what == 0 && value != 0 && value != row->value)
        note_change(evidence, row, event->time_ns, (uint32_t)value);
    if (row->time_ns != 0 && what != 0 && value > row->value)
        note_change(evidence, row, event->time_ns, what);
    row->gap_ns = row->time_ns == 0 ? 0 : event->time_ns - row->time_ns;
    row->time_ns = event->time_ns;
    row->value = value;
}

static void note_samples(struct zone_evidence *evidence, const struct event *event) {
    for (uint32_t i = 0; i < event->gpus->count; i++) {
        const struct gpu_sample *sample = &event->gpus->samples[i];
        double value = sample->value[GPU_XID];
        if ((sample->present >> GPU_XID & 1) != 0)
            note_value(evidence, event, sample->node != STRING_NONE ? sample->node : event->node,
                       sample->address, 0, value >= 1 && value < LOCAL_AER ? (uint64_t)value : 0);
    }
}

static void note_errors(struct zone_evidence *evidence, const struct event *event) {
    const struct aer_counters *aer = event->aer;
    if (aer->has_correctable)
        note_value(evidence, event, event->node, aer->address, LOCAL_AER + AER_CORRECTABLE,
                   aer->correctable_total);
    if (aer->has_nonfatal)
        note_value(evidence, event, event->node, aer->address, LOCAL_AER + AER_NONFATAL,
                   aer->nonfatal_total);
    if (aer->has_fatal)
        note_value(evidence, event, event->node, aer->address, LOCAL_AER + AER_FATAL,
                   aer->fatal_total);
}

void zone_evidence_note(struct zone_evidence *evidence, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (event->kind == EVENT_GPU_SAMPLE)
            note_samples(evidence, event);
        else if (event->kind == EVENT_AER_COUNTERS)
            note_errors(evidence, event);
    }
}

// -- the same fact in both -----------------------------------------------------------------------

struct votes {
    uint32_t none; // pairs that fit as they are
    uint32_t count;
    int32_t quarters; // of the first
    bool differ;
};

// By how much the log is ahead, if that is the zone of some place.
static bool apart(const struct local_fact *fact, const struct change_row *change,
                  int32_t *quarters) {
    int64_t slack_ns = PAIR_SLACK_S * SECOND_NS;
    int64_t low_ns = (int64_t)(fact->time_ns - change->by_ns) - slack_ns;
    int64_t high_ns = (int64_t)(fact->time_ns - change->after_ns) + slack_ns;
    // The largest quarter at or below `high`.
    int64_t found = high_ns / QUARTER_NS - (high_ns % QUARTER_NS < 0);
    if (found * QUARTER_NS < low_ns || found < QUARTERS_WEST || found > QUARTERS_EAST)
        return false;
    *quarters = (int32_t)found;
    return true;
}

// What one change says: it may come more than once in the log.
static void vote(struct votes *votes, const struct change_row *change,
                 const struct node_names *names, const struct local_times *times) {
    uint32_t count = 0;
    int32_t first = 0, quarters;
    bool differ = false;
    for (uint32_t i = 0; i < times->fact_count; i++) {
        const struct local_fact *fact = &times->facts[i];
        if (fact->code != change->code || pci_device(fact->address) != change->address ||
            node_names_find(names, fact->node) != change->node || !apart(fact, change, &quarters))
            continue;
        if (quarters == 0) {
            votes->none++;
            return;
        }
        differ = differ || (count > 0 && quarters != first);
        first = quarters;
        count++;
    }
    if (count == 0 || differ)
        return;
    votes->differ = votes->differ || (votes->count > 0 && votes->quarters != first);
    votes->quarters = first;
    votes->count++;
}

// The newest sample of any GPU of the node.
static uint64_t newest_of(const struct zone_evidence *evidence, string_id node) {
    uint64_t newest_ns = 0;
    for (uint32_t i = 0; i < evidence->counters.used; i++) {
        const struct counter_row *row = table_row(&evidence->counters, i);
        if (row->what == 0 && row->node == node && row->time_ns > newest_ns)
            newest_ns = row->time_ns;
    }
    return newest_ns;
}

// Whether an earlier fact is the same of the same device.
static bool is_repeated(const struct local_times *times, uint32_t at) {
    const struct local_fact *fact = &times->facts[at];
    for (uint32_t i = 0; i < at; i++)
        if (times->facts[i].code == fact->code && times->facts[i].node == fact->node &&
            times->facts[i].address == fact->address)
            return true;
    return false;
}

// A GPU that fell off the bus has no further samples, while those of its node go on.
static void vote_lost(struct votes *votes, const struct zone_evidence *evidence,
                      const struct node_names *names, const struct local_times *times) {
    enum { LOST_CODE = 79, GAPS = 3 };
    for (uint32_t i = 0; i < times->fact_count; i++) {
        const struct local_fact *fact = &times->facts[i];
        if (fact->code != LOST_CODE || is_repeated(times, i))
            continue;
        const struct counter_row *row = find_counter(evidence, node_names_find(names, fact->node),
                                                     pci_device(fact->address), 0);
        if (row == NULL || row->gap_ns == 0 || row->gap_ns > (uint64_t)(PAIR_GAP_S * SECOND_NS) ||
            newest_of(evidence, row->node) < row->time_ns + GAPS * row->gap_ns)
            continue;
        struct change_row lost = {.node = row->node,
                                  .address = row->address,
                                  .after_ns = row->time_ns,
                                  .by_ns = row->time_ns + row->gap_ns,
                                  .code = LOST_CODE};
        vote(votes, &lost, names, times);
    }
}

static struct votes votes_of(const struct zone_evidence *evidence, const struct node_names *names,
                             const struct local_times *times) {
    struct votes votes = {0};
    for (uint32_t i = 0; i < evidence->changes.used; i++) {
        const struct change_row *change = table_row(&evidence->changes, i);
        if (change->by_ns - change->after_ns <= (uint64_t)(PAIR_GAP_S * SECOND_NS))
            vote(&votes, change, names, times);
    }
    vote_lost(&votes, evidence, names, times);
    return votes;
}

// -- where the logs fit -------------------------------------------------------------------------

struct span {
    uint64_t first_ns, last_ns;
    uint32_t sources;
};

// What the other inputs span, without times that stand alone.
static struct span span_of(struct table *clocks) {
    struct span span = {.first_ns = UINT64_MAX};
    for (uint32_t i = 0; i < clocks->used; i++) {
        const struct source_clock *clock = table_row(clocks, i);
        const struct source_times *times = &clock->times;
        uint32_t sure = source_times_sure(times);
        if (clock->offset.events < EVENTS_MIN || sure == times->count)
            continue;
        uint64_t first_ns = times->runs[0].low, last_ns = times->runs[sure].high;
        span.first_ns = first_ns < span.first_ns ? first_ns : span.first_ns;
        span.last_ns = last_ns > span.last_ns ? last_ns : span.last_ns;
        span.sources++;
    }
    return span;
}

uint64_t zone_latest_ns(const struct table *clocks) {
    uint64_t latest_ns = 0;
    for (uint32_t i = 0; i < clocks->used; i++) {
        const struct source_clock *clock = table_row(clocks, i);
        const struct source_times *times = &clock->times;
        uint32_t sure = source_times_sure(times);
        if (sure < times->count && times->runs[sure].high > latest_ns)
            latest_ns = times->runs[sure].high;
    }
    return latest_ns;
}

static bool fits(const struct local_times *times, const struct span *span, int32_t quarters) {
    int64_t slack_ns = SPAN_SLACK_S * SECOND_NS, moved_ns = quarters * QUARTER_NS;
    return (int64_t)times->first_ns - moved_ns >= (int64_t)span->first_ns - slack_ns &&
           (int64_t)times->last_ns - moved_ns <= (int64_t)span->last_ns + slack_ns;
}

// The only zone in which they fit; 0: there is none, there are several, or too little is known.
static int32_t only_fit(const struct local_times *times, const struct span *span) {
    if (span->sources < SOURCES_MIN || times->lines < LINES_MIN ||
        times->last_ns - times->first_ns < (span->last_ns - span->first_ns) / 2)
        return 0;
    int32_t found = 0;
    for (int32_t quarters = QUARTERS_WEST; quarters <= QUARTERS_EAST; quarters++) {
        if (!fits(times, span, quarters))
            continue;
        if (quarters == 0 || found != 0)
            return 0;
        found = quarters;
    }
    return found;
}

bool zone_may_settle(const struct zone_evidence *evidence, struct table *clocks) {
    return evidence->counters.used > 0 || span_of(clocks).sources >= SOURCES_MIN;
}

struct zone_finding zone_settle(const struct zone_evidence *evidence, struct table *clocks,
                                const struct node_names *names, const struct local_times *times) {
    assert(times->last_ns <= INT64_MAX);
    struct votes votes = votes_of(evidence, names, times);
    if (votes.none > 0 || votes.differ)
        return (struct zone_finding){0};
    if (votes.count > 1 || (votes.count == 1 && votes.quarters % QUARTERS_OF_HOUR == 0))
        return (struct zone_finding){.quarters = votes.quarters, .by_facts = true};
    struct span span = span_of(clocks);
    return (struct zone_finding){.quarters = only_fit(times, &span)};
}

// SPDX-License-Identifier: Apache-2.0
// What every detector is: it takes events, and judges at an evaluation what they come to.
//
// The instance begins with a struct detector_base, its state rows hold the base's ledger
// (STATE_PART(struct x, base.ledger, "x.verdicts", VERDICT_LEDGER)), its `start` ends with
// detector_begin, and its component_type has DETECTOR_FIELDS. docs/adding.md shows a whole one.
#pragma once

#include "base/metrics/metrics.h"
#include "pipeline/component/component.h"
#include "pipeline/component/verdict_ledger.h"
#include "processors/cluster/verdict_builder.h"

enum { DETECTOR_MAGIC = 0xde7ec704 };

struct detector_base {
    uint32_t magic;
    bool live; // the input has no end: what is old is forgotten
    // Set after detector_begin by detectors of what machines say: at the end of the input the
    // evaluation is as of the latest time that is that of a file, too, where that is later.
    bool takes_undated;
    uint64_t undated_ns;      // that time; 0: every line says its own
    uint64_t undated_from_ns; // of lines of the same file the earliest
    struct verdict_ledger ledger;
    // How long a finding that rests on what has not come waits for it, live (verdict_ledger_waits).
    uint64_t patience_ns;
    // Each event that is selected, of any kind. `scratch` is gone with the batch.
    void (*take)(void *instance, const struct event *event, struct arena *scratch);
    // Reports to the ledger what holds at `now_ns`: the time of the newest event, and not after
    // the batch's as_of_ns. What came later is not there yet.
    void (*judge)(void *instance, struct batch *batch, uint64_t now_ns);
    struct metric *evicted;
    uint64_t evicted_told;
};

// `name`: of the component; static text. Returns STATUS_OK.
enum status detector_begin(struct detector_base *base, const char *name,
                           const struct component_context *context,
                           void (*take)(void *, const struct event *, struct arena *),
                           void (*judge)(void *, struct batch *, uint64_t));
// Reports to the ledger a verdict that rests on what has the time of a file, as one whose time is
// not known; any other as it is (verdict_ledger_report).
void detector_report(struct detector_base *base, struct batch *batch,
                     struct verdict_builder *builder, bool ended);
// processor.consume of detectors.
void detector_consume(void *instance, struct batch *batch);
// `evicted`: rows that went because of a bound since the start. Counted in
// culprit_detector_evicted_total.
void detector_count_evicted(struct detector_base *base, uint64_t evicted);

// What the component_type of a detector says alike: its file has OPTIONS, STATE and PATTERNS.
#define DETECTOR_FIELDS(instance, config)                                                          \
    .kind = COMPONENT_PROCESSOR, .gives = FACT_VERDICTS, .options = OPTIONS,                       \
    .option_count = OPTION_COUNT(OPTIONS), .config_size = sizeof(config),                          \
    .instance_size = sizeof(instance), .patterns = PATTERNS,                                       \
    .pattern_count = OPTION_COUNT(PATTERNS), .state_rows = STATE,                                  \
    .state_row_count = OPTION_COUNT(STATE), .processor = {.consume = detector_consume}

static inline uint64_t duration_ns(struct duration duration) {
    assert(duration.ns >= 0);
    return (uint64_t)duration.ns;
}

// SPDX-License-Identifier: Apache-2.0
// Hands events and evaluations to a detector, and counts what it forgot.
#include "processors/cluster/detector.h"

static const struct metric_family EVICTED = {
    .name = "culprit_detector_evicted_total",
    .help = "Entries that a detector forgot because a bound was reached.",
    .type = METRIC_COUNTER,
};

// Longer than collectors commonly gather before they send (OpenTelemetry's SDKs 1 s to 5 s). When
// inputs fall silent the time goes on by `settle`, and no further.
static uint64_t patience_of(const struct pipeline_timing *timing) {
    static const uint64_t PATIENCE_NS = UINT64_C(6000000000);
    uint64_t settle_ns = timing == NULL ? PATIENCE_NS : duration_ns(timing->settle);
    return settle_ns < PATIENCE_NS ? settle_ns : PATIENCE_NS;
}

enum status detector_begin(struct detector_base *base, const char *name,
                           const struct component_context *context,
                           void (*take)(void *, const struct event *, struct arena *),
                           void (*judge)(void *, struct batch *, uint64_t)) {
    assert(take != NULL && judge != NULL && base->ledger.magic == VERDICT_LEDGER_MAGIC);
    base->magic = DETECTOR_MAGIC;
    base->live = !context->once;
    base->patience_ns = patience_of(context->timing);
    base->take = take;
    base->judge = judge;
    base->evicted = METRIC(&EVICTED, "detector", name);
    return STATUS_OK;
}

void detector_consume(void *instance, struct batch *batch) {
    struct detector_base *base = instance;
    assert(base->magic == DETECTOR_MAGIC);
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch_selects(batch, i))
            base->take(instance, &batch->events[i], batch->arena);
    if (batch->evaluate)
        base->judge(instance, batch,
                    batch->as_of_ns < batch->newest_ns ? batch->as_of_ns : batch->newest_ns);
}

void detector_count_evicted(struct detector_base *base, uint64_t evicted) {
    assert(base->magic == DETECTOR_MAGIC);
    assert(evicted >= base->evicted_told);
    metric_add(base->evicted, evicted - base->evicted_told);
    base->evicted_told = evicted;
}

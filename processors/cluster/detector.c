// SPDX-License-Identifier: Apache-2.0
// Hands events and evaluations to a detector, and counts what it forgot.
#include "processors/cluster/detector.h"

static const struct metric_family EVICTED = {
    .name = "culprit_detector_evicted_total",
    .help = "Entries that a detector forgot because a bound was reached.",
    .type = METRIC_COUNTER,
};

enum status detector_begin(struct detector_base *base, const char *name,
                           const struct component_context *context,
                           void (*take)(void *, const struct event *, struct arena *),
                           void (*judge)(void *, struct batch *, uint64_t)) {
    assert(take != NULL && judge != NULL && base->ledger.magic == VERDICT_LEDGER_MAGIC);
    base->magic = DETECTOR_MAGIC;
    base->live = !context->once;
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

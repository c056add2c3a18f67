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

// Lines of one file that say no time lie that close together.
#define FILE_NS UINT64_C(1000000000)

static void note_time(struct detector_base *base, const struct event *event) {
    bool is_said = event->kind == EVENT_KERNEL || event->kind == EVENT_OBSERVATION;
    if (!is_said || !event->timeless || event->time_of != TIME_OF_FILE ||
        event->time_ns <= base->undated_ns)
        return;
    if (event->time_ns - base->undated_ns > FILE_NS)
        base->undated_from_ns = event->time_ns;
    base->undated_ns = event->time_ns;
}

static uint64_t time_of_judging(const struct detector_base *base, const struct batch *batch) {
    uint64_t now_ns = batch->as_of_ns < batch->newest_ns ? batch->as_of_ns : batch->newest_ns;
    bool is_whole = batch->last && !base->live;
    return is_whole && base->undated_ns > now_ns ? base->undated_ns : now_ns;
}

void detector_consume(void *instance, struct batch *batch) {
    struct detector_base *base = instance;
    assert(base->magic == DETECTOR_MAGIC);
    for (uint32_t i = 0; i < batch->event_count; i++) {
        if (!batch_selects(batch, i))
            continue;
        if (base->takes_undated)
            note_time(base, &batch->events[i]);
        base->take(instance, &batch->events[i], batch->arena);
    }
    if (batch->evaluate)
        base->judge(instance, batch, time_of_judging(base, batch));
}

static bool is_undated(const struct detector_base *base, uint64_t time_ns) {
    return base->undated_ns != 0 && time_ns >= base->undated_from_ns && time_ns <= base->undated_ns;
}

// Times that only keep lines in their order are told to nobody.
static void tell_undated(const struct detector_base *base, struct verdict *verdict,
                         struct arena *arena) {
    struct evidence *evidence = arena_take(arena, verdict->evidence_count * sizeof *evidence + 1);
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        evidence[i] = verdict->evidence[i];
        if (is_undated(base, evidence[i].time_ns)) {
            evidence[i].time_ns = 0;
            evidence[i].has_time = false;
        }
    }
    verdict->evidence = evidence;
    if (is_undated(base, verdict->end_ns))
        verdict->end_ns = verdict->start_ns;
    if (verdict_attribute(verdict, "culprit.time_of") == NULL)
        verdict_add_attribute(verdict, "culprit.time_of", slice_of(time_of_name(TIME_OF_FILE)),
                              arena);
}

void detector_report(struct detector_base *base, struct batch *batch,
                     struct verdict_builder *builder, bool ended) {
    struct verdict *verdict = &builder->verdict;
    if (is_undated(base, verdict->start_ns))
        tell_undated(base, verdict, builder->arena);
    verdict_ledger_report(&base->ledger, batch, verdict, ended, 0);
}

void detector_count_evicted(struct detector_base *base, uint64_t evicted) {
    assert(base->magic == DETECTOR_MAGIC);
    assert(evicted >= base->evicted_told);
    metric_add(base->evicted, evicted - base->evicted_told);
    base->evicted_told = evicted;
}

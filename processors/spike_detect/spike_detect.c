// SPDX-License-Identifier: Apache-2.0
// Finds where each rank's memory begins to grow: the first window of growth that reaches
// max(min_growth, min_ratio of its highest use), as stormlog's cross-rank analysis has it, and the
// first such window of the job's generation that did not fall back, which is what people mean by a
// leak. Cost: amortised constant a sample (growth_scan.h). Memory: one row of scans a rank.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "base/table/table.h"
#include "pipeline/model/series.h"
#include "processors/spike_detect/low_steps.h"

#include <assert.h>

struct spike_detect_config {
    struct byte_size min_growth;
    double min_ratio;
};

// Row i of the table belongs to slot i of rank_group.
struct rank_scans {
    bool begun;
    uint32_t revision;
    uint32_t generation;
    uint64_t generation_ns;
    int64_t threshold_bytes;
    struct first_scan first;
    struct first_scan first_of_generation;
    struct kept_scan kept;
    struct low_steps lows;
};

struct spike_detect {
    struct table scans;
    struct table lows;
    struct spike_detect_config config;
};

static const struct row_type SCANS = ROW_TYPE(struct rank_scans, 64);
static const struct row_type LOWS = ROW_TYPE(struct low_step, 256);

// Row i of the scans belongs to slot i, and rows hold no pointers.
static const struct state_row STATE[] = {
    STATE_ROWS(struct spike_detect, scans, "spike_detect.scans", SCANS),
    STATE_ROWS(struct spike_detect, lows, "spike_detect.lows", LOWS),
};

enum { STEPS_A_THRESHOLD = 8 };

static const struct option OPTIONS[] = {
    OPTION(struct spike_detect_config, min_growth, OPTION_SIZE, .default_value = "64MiB", .min = 1,
           .max = 1099511627776.0, .help = "growth below this is never a spike"),
    OPTION(struct spike_detect_config, min_ratio, OPTION_RATIO, .default_value = "0.10", .max = 1,
           .help = "growth below this share of the rank's highest use is no spike"),
};

static enum status spike_detect_start(void *instance, const void *config,
                                      const struct component_context *context,
                                      struct error *error) {
    (void)context;
    (void)error;
    ((struct spike_detect *)instance)->config = *(const struct spike_detect_config *)config;
    return STATUS_OK;
}

// A plain IEEE product, truncated, as the reference computes it.
static int64_t threshold_of(const struct spike_detect *self, int64_t max_used_bytes) {
    double share = (double)max_used_bytes * self->config.min_ratio;
    int64_t ratio_bytes = share >= 0x1p63 ? INT64_MAX : (int64_t)share;
    int64_t least_bytes = (int64_t)self->config.min_growth.bytes;
    return ratio_bytes > least_bytes ? ratio_bytes : least_bytes;
}

static struct rank_scans *scans_of(struct spike_detect *self, uint32_t slot) {
    while (self->scans.used <= slot) {
        struct rank_scans *added = table_row(&self->scans, table_add(&self->scans));
        added->lows.newest = TABLE_NO_ROW;
    }
    return table_row(&self->scans, slot);
}

// Starts again what no longer stands: after a late sample everything, in a new generation its own.
static void begin_scans(struct spike_detect *self, struct rank_scans *scans,
                        const struct evaluation *evaluation, const struct rank_view *view) {
    bool void_all = !scans->begun || scans->revision != view->series->revision;
    if (void_all)
        first_scan_begin(&scans->first, series_begin(view->series));
    if (void_all || scans->generation != evaluation->generation ||
        scans->generation_ns != view->generation_ns) {
        struct series_cursor at = series_begin(view->series);
        if (evaluation->generation > 0)
            at = series_seek(evaluation->store, view->series, view->generation_ns);
        first_scan_begin(&scans->first_of_generation, at);
        kept_scan_begin(&scans->kept, at);
        low_steps_begin(&scans->lows, &self->lows, at);
    }
    if (void_all)
        scans->threshold_bytes = 0;
    scans->begun = true;
    scans->revision = view->series->revision;
    scans->generation = evaluation->generation;
    scans->generation_ns = view->generation_ns;
}

static int compare_moments(const void *left, const void *right) {
    return COMPARE(*(const __int128 *)left, *(const __int128 *)right);
}

// Up to when most ranks were heard, on the generation's aligned clock: what one rank did after the
// others fell silent cannot be compared.
static __int128 common_end(const struct evaluation *evaluation, struct arena *arena) {
    __int128 *ends = arena_take(arena, (evaluation->rank_count + 1) * sizeof *ends);
    uint32_t count = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (evaluation->ranks[i].in_generation)
            ends[count++] =
                evaluation->ranks[i].last_ns - evaluation->alignment[i].generation_offset_ns;
    if (count == 0)
        return 0;
    sort_stable(ends, count, sizeof *ends, arena, compare_moments);
    return ends[(count - 1) / 2];
}

static void detect_creep(struct spike_detect *self, struct rank_scans *scans,
                         const struct growth_source *source, __int128 end_ns,
                         struct rank_spike *out) {
    low_steps_advance(&scans->lows, &self->lows, source,
                      scans->threshold_bytes / STEPS_A_THRESHOLD);
    uint64_t end = end_ns < 0 ? 0 : end_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)end_ns;
    out->creep = low_steps_creep(&scans->lows, &self->lows, end, scans->threshold_bytes,
                                 &out->low_growth_bytes);
}

static void detect(struct spike_detect *self, const struct evaluation *evaluation,
                   const struct rank_view *view, __int128 end_ns, struct rank_spike *out) {
    struct rank_scans *scans = scans_of(self, view->slot);
    assert(evaluation->alignment != NULL);
    begin_scans(self, scans, evaluation, view);
    int64_t threshold = threshold_of(self, view->max_used_bytes);
    if (threshold < scans->threshold_bytes)
        threshold = scans->threshold_bytes;
    assert(threshold > 0);
    scans->threshold_bytes = threshold;
    struct growth_source source = {evaluation->store, view->series, evaluation->as_of_ns};
    first_scan_advance(&scans->first, &source, threshold);
    out->threshold_bytes = threshold;
    out->first = first_scan_spike(&scans->first);
    if (!view->in_generation)
        return;
    if (evaluation->generation == 0) {
        out->first_of_generation = out->first;
    } else {
        first_scan_advance(&scans->first_of_generation, &source, threshold);
        out->first_of_generation = first_scan_spike(&scans->first_of_generation);
    }
    kept_scan_advance(&scans->kept, &source, threshold);
    if (kept_scan_excess(&scans->kept) >= threshold / 2)
        out->kept = kept_scan_spike(&scans->kept);
    detect_creep(self, scans, &source, end_ns, out);
}

static void forget(struct spike_detect *self, const struct forgotten *forgotten) {
    if (forgotten->everything) {
        table_release(&self->scans);
        table_release(&self->lows);
    }
    for (uint32_t i = 0; i < forgotten->slot_count; i++) {
        if (forgotten->slots[i] >= self->scans.used)
            continue;
        struct rank_scans *scans = table_row(&self->scans, forgotten->slots[i]);
        low_steps_begin(&scans->lows, &self->lows, (struct series_cursor){0});
        *scans = (struct rank_scans){.lows = scans->lows};
    }
}

static void spike_detect_consume(void *instance, struct batch *batch) {
    struct spike_detect *self = instance;
    if (batch->forgotten != NULL)
        forget(self, batch->forgotten);
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        struct evaluation *evaluation = &batch->evaluations[i];
        struct rank_spike *spikes =
            arena_zero(batch->arena, evaluation->rank_count, sizeof *spikes);
        __int128 end_ns = common_end(evaluation, batch->arena);
        for (uint32_t j = 0; j < evaluation->rank_count; j++)
            detect(self, evaluation, &evaluation->ranks[j],
                   end_ns + evaluation->alignment[j].generation_offset_ns, &spikes[j]);
        evaluation->spikes = spikes;
    }
}

const struct component_type processor_spike_detect = {
    .name = "spike_detect",
    .summary = "Finds where each rank's memory begins to grow.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_MEMORY | 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct spike_detect_config),
    .instance_size = sizeof(struct spike_detect),
    .needs = FACT_SERIES | FACT_ALIGNMENT,
    .gives = FACT_SPIKES,
    .start = spike_detect_start,
    .state_rows = STATE,
    .state_row_count = STATE_ROW_COUNT(STATE),
    .processor = {.consume = spike_detect_consume},
};

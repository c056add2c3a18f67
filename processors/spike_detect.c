// SPDX-License-Identifier: Apache-2.0
// Where does a rank's memory begin to grow? For each rank the first window of growth that reaches
// max(min_growth, min_ratio of its highest use), as stormlog's cross-rank analysis has it, and the
// first such window of the job's generation that did not fall back, which is what people mean by a
// leak. Cost: amortised constant a sample (growth_scan.h). Memory: one row of scans a rank.
#include "processors/spike_detect.h"

#include "base/table.h"
#include "processors/growth_scan.h"

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
};

struct spike_detect {
    struct table scans;
    int64_t min_growth_bytes;
    double min_ratio;
};

static const struct option OPTIONS[] = {
    {.name = "min_growth",
     .type = OPTION_SIZE,
     .offset = offsetof(struct spike_detect_config, min_growth),
     .default_value = "64MiB",
     .min = 1,
     .max = 1099511627776.0,
     .help = "growth below this is never a spike"},
    {.name = "min_ratio",
     .type = OPTION_RATIO,
     .offset = offsetof(struct spike_detect_config, min_ratio),
     .default_value = "0.10",
     .min = 0,
     .max = 1,
     .help = "growth below this share of the rank's highest use is no spike"},
};

static enum status spike_detect_start(void *instance, const void *config,
                                      const struct component_context *context,
                                      struct error *error) {
    struct spike_detect *self = instance;
    const struct spike_detect_config *options = config;
    (void)context;
    (void)error;
    table_init(&self->scans, "spike_detect.scans", sizeof(struct rank_scans), 64);
    self->min_growth_bytes = (int64_t)options->min_growth.bytes;
    self->min_ratio = options->min_ratio;
    return STATUS_OK;
}

static void spike_detect_stop(void *instance) {
    table_release(&((struct spike_detect *)instance)->scans);
}

// A plain IEEE product, truncated, as the reference computes it.
static int64_t threshold_of(const struct spike_detect *self, int64_t max_used_bytes) {
    double share = (double)max_used_bytes * self->min_ratio;
    int64_t ratio_bytes = share >= 0x1p63 ? INT64_MAX : (int64_t)share;
    return ratio_bytes > self->min_growth_bytes ? ratio_bytes : self->min_growth_bytes;
}

static struct rank_scans *scans_of(struct spike_detect *self, uint32_t slot) {
    while (self->scans.used <= slot)
        table_add(&self->scans);
    return table_row(&self->scans, slot);
}

// Starts again what no longer stands: after a late sample everything, in a new generation its own.
static void begin_scans(struct rank_scans *scans, const struct evaluation *evaluation,
                        const struct rank_view *view) {
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
    }
    if (void_all)
        scans->threshold_bytes = 0;
    scans->begun = true;
    scans->revision = view->series->revision;
    scans->generation = evaluation->generation;
    scans->generation_ns = view->generation_ns;
}

static void detect(struct spike_detect *self, const struct evaluation *evaluation,
                   const struct rank_view *view, struct rank_spike *out) {
    struct rank_scans *scans = scans_of(self, view->slot);
    begin_scans(scans, evaluation, view);
    int64_t threshold = threshold_of(self, view->max_used_bytes);
    if (threshold < scans->threshold_bytes)
        threshold = scans->threshold_bytes;
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
    out->kept = kept_scan_spike(&scans->kept);
}

static void spike_detect_consume(void *instance, struct batch *batch) {
    struct spike_detect *self = instance;
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        struct evaluation *evaluation = &batch->evaluations[i];
        struct rank_spike *spikes =
            arena_zero(batch->arena, evaluation->rank_count, sizeof *spikes);
        for (uint32_t j = 0; j < evaluation->rank_count; j++)
            detect(self, evaluation, &evaluation->ranks[j], &spikes[j]);
        evaluation->spikes = spikes;
    }
}

const struct component_type processor_spike_detect = {
    .name = "spike_detect",
    .summary = "Finds where each rank's memory begins to grow.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct spike_detect_config),
    .instance_size = sizeof(struct spike_detect),
    .needs = FACT_SERIES,
    .gives = FACT_SPIKES,
    .start = spike_detect_start,
    .stop = spike_detect_stop,
    .processor = {.consume = spike_detect_consume},
};

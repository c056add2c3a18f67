// SPDX-License-Identifier: Apache-2.0
// Names GPUs that are slowed by heat. See README.md for the rules. At an evaluation the samples up
// to now are taken in order of time (window.c); what began and has not ended is a verdict, and GPUs
// of a node that began together are one. O(samples + incidents · log) an evaluation.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "config/problem.h"
#include "processors/cluster/compare.h"
#include "processors/thermal_throttle/verdict.h"

#include <math.h>
#include <stdlib.h>

struct thermal_throttle {
    struct detector_base base;
    struct thermal_config config;
    struct thermal_window window;
    struct metric *late;
    uint64_t late_told;
};

#define THERMAL_OPTION(field, kind, ...) OPTION(struct thermal_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    THERMAL_OPTION(window, OPTION_DURATION, .default_value = "10m", .min = 10, .max = 86400,
                   .help = "how far back samples are looked at together"),
    THERMAL_OPTION(min_samples, OPTION_INT, .default_value = "3", .min = 1, .max = 100000,
                   .help = "hot samples in the window that make a GPU a slowed one …"),
    THERMAL_OPTION(min_time, OPTION_DURATION, .default_value = "1m", .max = 86400,
                   .help = "… and the time that they stand for together"),
    THERMAL_OPTION(max_gap, OPTION_DURATION, .default_value = "1m", .min = 1, .max = 3600,
                   .help = "a sample stands for the time until the next one, but for no longer "
                           "than this; clocks older than this are not compared"),
    THERMAL_OPTION(counter_share, OPTION_RATIO, .default_value = "0.1", .min = 0.001, .max = 1,
                   .help = "part of the window lost to heat by the violation counters that makes a "
                           "GPU a slowed one"),
    THERMAL_OPTION(clock_share, OPTION_RATIO, .default_value = "0.1", .min = 0.001, .max = 1,
                   .help = "how much lower than the median of the node's other GPUs an SM clock is "
                           "worth telling"),
    THERMAL_OPTION(slowdown_margin, OPTION_INT, .default_value = "-2", .min = -100, .max = 100,
                   .help = "margin in degrees Celsius (DCGM field 153) at or under which a GPU "
                           "slows down"),
    THERMAL_OPTION(slowdown_margins, OPTION_TEXT_LIST,
                   .help = "the same for models, as \"PART OF THE NAME=DEGREES\", the first that "
                           "fits; at most 64"),
    THERMAL_OPTION(node_min_gpus, OPTION_INT, .default_value = "3", .min = 2, .max = 64,
                   .help = "slowed GPUs that make it the node's cooling …"),
    THERMAL_OPTION(node_share, OPTION_RATIO, .default_value = "0.5", .min = 0.01, .max = 1,
                   .help = "… when they are this part of the GPUs of the node that were seen …"),
    THERMAL_OPTION(node_spread, OPTION_DURATION, .default_value = "3m", .max = 86400,
                   .help = "… and began within this time"),
    THERMAL_OPTION(confidence_hw, OPTION_INT, .default_value = "88", .min = 5, .max = 97,
                   .help = "confidence of hw_thermal"),
    THERMAL_OPTION(confidence_sw, OPTION_INT, .default_value = "80", .min = 5, .max = 97,
                   .help = "confidence of sw_thermal"),
    THERMAL_OPTION(confidence_memory, OPTION_INT, .default_value = "82", .min = 5, .max = 97,
                   .help = "confidence of memory_thermal"),
    THERMAL_OPTION(confidence_node, OPTION_INT, .default_value = "85", .min = 5, .max = 97,
                   .help = "confidence of node_cooling"),
    THERMAL_OPTION(confidence_counter, OPTION_INT, .default_value = "60", .min = 5, .max = 97,
                   .help = "confidence where the clock reasons are not exported"),
    THERMAL_OPTION(max_gpus, OPTION_INT, .default_value = "65536", .min = 1, .max = 1048576,
                   .help = "GPUs to keep; those heard of least recently are forgotten"),
    THERMAL_OPTION(max_samples, OPTION_INT, .default_value = "1048576", .min = 1024,
                   .max = 67108864,
                   .help = "samples to keep, 96 bytes each; when half as many wait to be judged, "
                           "the earlier ones are taken before all lines of their time have come"),
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct thermal_throttle, window.gpus, "thermal_throttle.gpus", THERMAL_GPU_ROWS),
    STATE_ROWS(struct thermal_throttle, window.nodes, "thermal_throttle.nodes", THERMAL_NODE_ROWS),
    STATE_ROWS(struct thermal_throttle, window.samples, "thermal_throttle.samples",
               THERMAL_SAMPLE_ROWS),
    STATE_ROWS(struct thermal_throttle, window.incidents, "thermal_throttle.incidents",
               THERMAL_INCIDENT_ROWS),
    STATE_PART(struct thermal_throttle, base.ledger, "thermal_throttle.verdicts", VERDICT_LEDGER),
};

static const struct metric_family LATE = {
    .name = "culprit_detector_late_total",
    .help = "Samples that came when their time had been judged, and were left out.",
    .type = METRIC_COUNTER,
};

// "H100=-2"; false when it is not of that form.
static bool read_model(const char *text, struct thermal_model *model) {
    const char *equals = strrchr(text, '=');
    char *end;
    if (equals == NULL || equals == text || equals[1] == '\0')
        return false;
    double margin = strtod(equals + 1, &end);
    *model = (struct thermal_model){text, (int)(equals - text), (float)margin};
    return *end == '\0' && isfinite(margin) && fabs(margin) <= 100;
}

static void thermal_validate(const void *config, struct problem_list *problems) {
    const struct thermal_config *self = config;
    struct thermal_model model;
    if (self->slowdown_margins.count > THERMAL_MODELS_MAX)
        problem_add(problems, "slowdown_margins", "%u models; at most %d are allowed",
                    self->slowdown_margins.count, THERMAL_MODELS_MAX);
    for (uint32_t i = 0; i < self->slowdown_margins.count; i++)
        if (!read_model(self->slowdown_margins.items[i], &model))
            problem_add(problems, "slowdown_margins",
                        "\"%s\" is no model and margin; write it like \"H100=-2\", with at most "
                        "100 degrees",
                        self->slowdown_margins.items[i]);
}

static void thermal_restored(void *instance) {
    thermal_window_restored(&((struct thermal_throttle *)instance)->window);
}

// -- Incidents in order ---------------------------------------------------------------------------

struct listed {
    uint32_t row;
    struct thermal_incident *incident;
    const struct thermal_gpu *gpu;
};

static int compare_nodes(const struct listed *a, const struct listed *b) {
    return compare_strings(a->gpu->key.node, b->gpu->key.node);
}

static int compare_starts(const struct listed *a, const struct listed *b) {
    return COMPARE(a->incident->start_ns, b->incident->start_ns);
}

static int compare_gpus(const struct listed *a, const struct listed *b) {
    int order = COMPARE(a->gpu->key.device, b->gpu->key.device);
    return order != 0 ? order : compare_strings(a->gpu->key.uuid, b->gpu->key.uuid);
}

static int compare_by_start(const void *a, const void *b) {
    int order = compare_starts(a, b);
    order = order != 0 ? order : compare_nodes(a, b);
    return order != 0 ? order : compare_gpus(a, b);
}

static int compare_by_node(const void *a, const void *b) {
    int order = compare_nodes(a, b);
    order = order != 0 ? order : compare_starts(a, b);
    return order != 0 ? order : compare_gpus(a, b);
}

static struct listed *list_incidents(const struct thermal_window *window, struct arena *arena,
                                     uint32_t *count) {
    struct listed *list = arena_take(arena, (window->incidents.used + 1) * sizeof *list);
    *count = 0;
    for (uint32_t row = 0; row < window->incidents.used; row++) {
        struct thermal_incident *incident = thermal_incident_at(window, row);
        if (incident->live != 0)
            list[(*count)++] =
                (struct listed){row, incident, thermal_gpu_at(window, incident->gpu)};
    }
    return list;
}

// One node's part of the list that is sorted by node: how many follow list[0] on the same node
// and began near enough to it.
static uint32_t count_near(const struct thermal_throttle *self, const struct listed *list,
                           uint32_t count) {
    assert(count > 0);
    uint32_t near = 1;
    while (near < count && list[near].gpu->key.node == list[0].gpu->key.node &&
           list[near].incident->start_ns - list[0].incident->start_ns <=
               duration_ns(self->config.node_spread))
        near++;
    return near;
}

// Puts incidents of one node that began together into one group, led by the first of them. Who is
// in one stays there.
static void find_group(const struct thermal_throttle *self, struct listed *list, uint32_t count) {
    assert(count > 0 && list[0].incident->live != 0);
    struct listed *first = &list[0];
    bool stands = first->incident->leader == first->row;
    if (!stands && first->incident->leader != TABLE_NO_ROW)
        return;
    uint32_t found = 0, near = count_near(self, list, count);
    for (uint32_t i = 0; i < near; i++)
        found += list[i].incident->leader == TABLE_NO_ROW;
    uint32_t gpus = thermal_node_gpus(&self->window, first->gpu->key.node);
    if (!stands && (found < self->config.node_min_gpus ||
                    (double)found < self->config.node_share * (double)gpus))
        return;
    for (uint32_t i = 0; i < near; i++)
        if (list[i].incident->leader == TABLE_NO_ROW)
            list[i].incident->leader = first->row;
}

// -- Verdicts -------------------------------------------------------------------------------------

static void report_gpu(struct thermal_throttle *self, struct batch *batch,
                       const struct listed *item, bool ended) {
    struct verdict_builder builder = {.arena = batch->arena};
    thermal_verdict_gpu(&self->window, item->incident, &builder);
    verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, ended, 0);
    item->incident->reported = !ended;
}

// list[0] leads. True when all of the group have ended.
static bool report_node(struct thermal_throttle *self, struct batch *batch,
                        const struct listed *list, uint32_t count) {
    assert(count > 0 && list[0].incident->leader == list[0].row);
    uint32_t member_count = 0, near = count_near(self, list, count);
    uint32_t *members = arena_take(batch->arena, near * sizeof *members);
    bool ended = true;
    for (uint32_t i = 0; i < near; i++)
        if (list[i].incident->leader == list[0].row) {
            members[member_count++] = list[i].row;
            ended = ended && list[i].incident->ended != THERMAL_STANDS;
        }
    struct verdict_builder builder = {.arena = batch->arena};
    thermal_verdict_node(&self->window, members, member_count, &builder);
    verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, ended, 0);
    return ended;
}

static void report(struct thermal_throttle *self, struct batch *batch) {
    uint32_t count, used = self->window.incidents.used + 1;
    struct listed *by_node = list_incidents(&self->window, batch->arena, &count);
    struct listed *list = arena_take(batch->arena, (count + 1) * sizeof *list);
    memcpy(list, by_node, count * sizeof *list);
    sort_stable(by_node, count, sizeof *by_node, batch->arena, compare_by_node);
    sort_stable(list, count, sizeof *list, batch->arena, compare_by_start);
    uint32_t *place = arena_take(batch->arena, used * sizeof *place);
    bool *over = arena_zero(batch->arena, used, sizeof *over);
    for (uint32_t i = 0; i < count; i++) {
        place[by_node[i].row] = i;
        find_group(self, by_node + i, count - i);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct thermal_incident *incident = list[i].incident;
        uint32_t row = list[i].row, at = place[row];
        if (incident->leader == row)
            over[row] = report_node(self, batch, by_node + at, count - at);
        if (incident->leader == TABLE_NO_ROW)
            report_gpu(self, batch, &list[i], incident->ended != THERMAL_STANDS);
        else if (incident->reported)
            report_gpu(self, batch, &list[i], true);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct thermal_incident *incident = list[i].incident;
        if (incident->leader == TABLE_NO_ROW ? incident->ended != THERMAL_STANDS
                                             : over[incident->leader])
            thermal_incident_forget(&self->window, list[i].row);
    }
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct thermal_throttle *self = instance;
    if (event->kind != EVENT_GPU_SAMPLE)
        return;
    for (uint32_t i = 0; i < event->gpus->count; i++)
        thermal_window_add(&self->window, &event->gpus->samples[i], event->job, scratch);
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct thermal_throttle *self = instance;
    thermal_window_advance(&self->window, now_ns, batch->arena);
    report(self, batch);
    detector_count_evicted(&self->base, self->window.evicted);
    metric_add(self->late, self->window.late - self->late_told);
    self->late_told = self->window.late;
}

static enum status thermal_start(void *instance, const void *config,
                                 const struct component_context *context, struct error *error) {
    struct thermal_throttle *self = instance;
    struct thermal_window *window = &self->window;
    (void)error;
    self->config = *(const struct thermal_config *)config;
    window->config = &self->config;
    window->live = !context->once;
    const struct text_list *margins = &self->config.slowdown_margins;
    for (uint32_t i = 0; i < margins->count && i < THERMAL_MODELS_MAX; i++)
        window->model_count += read_model(margins->items[i], &window->models[window->model_count]);
    self->late = METRIC(&LATE, "detector", "thermal_throttle");
    return detector_begin(&self->base, "thermal_throttle", context, take, judge);
}

static const char *const EXPLAINS[] = {"xid_correlation", "pod_evicted", "gpu_fault", "slow_rank",
                                       NULL};
static const struct verdict_pattern PATTERNS[] = {
    {.name = "thermal_throttle", .explains = EXPLAINS}};
static const struct evidence_prefix EVIDENCE[] = {{"dcgm:", EVENT_GPU_SAMPLE}};

const struct component_type processor_thermal_throttle = {
    .name = "thermal_throttle",
    .summary = "Names GPUs, and nodes, that are slowed by heat.",
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_GPU_SAMPLE,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .validate = thermal_validate,
    .start = thermal_start,
    .restored = thermal_restored,
    DETECTOR_FIELDS(struct thermal_throttle, struct thermal_config),
};

// SPDX-License-Identifier: Apache-2.0
// Which GPUs are slowed by heat? See README.md for the rules. At an evaluation the
// samples up to now are taken in order of time (thermal_window.c); what began and has not ended is
// a verdict, and GPUs of a node that began together are one. O(samples + incidents · log) an
// evaluation.
#include "processors/thermal_throttle.h"

#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "base/sort.h"
#include "pipeline/component/verdict_ledger.h"
#include "processors/thermal_throttle/verdict.h"

#include <math.h>
#include <stdlib.h>

enum { MODELS_MAX = 64 };

struct thermal_config {
    struct duration window, min_time, max_gap, node_spread;
    int64_t min_samples, node_min_gpus, slowdown_margin, max_gpus, max_samples;
    double counter_share, clock_share, node_share;
    struct text_list slowdown_margins;
    int64_t confidence_hw, confidence_sw, confidence_memory, confidence_counter, confidence_node;
};

struct thermal_throttle {
    struct thermal_config config;
    struct thermal_confidence confidence;
    struct thermal_window window;
    struct thermal_model models[MODELS_MAX];
    struct verdict_ledger ledger;
    struct metric *evicted, *late;
};

#define FIELD(name) offsetof(struct thermal_config, name)
#define CONFIDENCE(field, value, text)                                                             \
    {                                                                                              \
        .name = #field, .type = OPTION_INT, .offset = FIELD(field), .default_value = (value),      \
        .min = 5, .max = 97, .help = (text)                                                        \
    }

static const struct option OPTIONS[] = {
    {.name = "window",
     .type = OPTION_DURATION,
     .offset = FIELD(window),
     .default_value = "10m",
     .min = 10,
     .max = 86400,
     .help = "how far back samples are looked at together"},
    {.name = "min_samples",
     .type = OPTION_INT,
     .offset = FIELD(min_samples),
     .default_value = "3",
     .min = 1,
     .max = 100000,
     .help = "hot samples in the window that make a GPU a slowed one …"},
    {.name = "min_time",
     .type = OPTION_DURATION,
     .offset = FIELD(min_time),
     .default_value = "1m",
     .min = 0,
     .max = 86400,
     .help = "… and the time that they stand for together"},
    {.name = "max_gap",
     .type = OPTION_DURATION,
     .offset = FIELD(max_gap),
     .default_value = "1m",
     .min = 1,
     .max = 3600,
     .help = "a sample stands for the time until the next one, but for no longer than this; clocks "
             "older than this are not compared"},
    {.name = "counter_share",
     .type = OPTION_RATIO,
     .offset = FIELD(counter_share),
     .default_value = "0.1",
     .min = 0.001,
     .max = 1,
     .help = "part of the window lost to heat by the violation counters that makes a GPU a slowed "
             "one"},
    {.name = "clock_share",
     .type = OPTION_RATIO,
     .offset = FIELD(clock_share),
     .default_value = "0.1",
     .min = 0.001,
     .max = 1,
     .help =
         "how much lower than the median of the node's other GPUs an SM clock is worth telling"},
    {.name = "slowdown_margin",
     .type = OPTION_INT,
     .offset = FIELD(slowdown_margin),
     .default_value = "-2",
     .min = -100,
     .max = 100,
     .help = "margin in degrees Celsius (DCGM field 153) at or under which a GPU slows down"},
    {.name = "slowdown_margins",
     .type = OPTION_TEXT_LIST,
     .offset = FIELD(slowdown_margins),
     .help = "the same for models, as \"PART OF THE NAME=DEGREES\", the first that fits; at most "
             "64"},
    {.name = "node_min_gpus",
     .type = OPTION_INT,
     .offset = FIELD(node_min_gpus),
     .default_value = "3",
     .min = 2,
     .max = 64,
     .help = "slowed GPUs that make it the node's cooling …"},
    {.name = "node_share",
     .type = OPTION_RATIO,
     .offset = FIELD(node_share),
     .default_value = "0.5",
     .min = 0.01,
     .max = 1,
     .help = "… when they are this part of the GPUs of the node that were seen …"},
    {.name = "node_spread",
     .type = OPTION_DURATION,
     .offset = FIELD(node_spread),
     .default_value = "3m",
     .min = 0,
     .max = 86400,
     .help = "… and began within this time"},
    CONFIDENCE(confidence_hw, "88", "confidence of hw_thermal"),
    CONFIDENCE(confidence_sw, "80", "confidence of sw_thermal"),
    CONFIDENCE(confidence_memory, "82", "confidence of memory_thermal"),
    CONFIDENCE(confidence_node, "85", "confidence of node_cooling"),
    CONFIDENCE(confidence_counter, "60", "confidence where the clock reasons are not exported"),
    {.name = "max_gpus",
     .type = OPTION_INT,
     .offset = FIELD(max_gpus),
     .default_value = "65536",
     .min = 1,
     .max = 1048576,
     .help = "GPUs to keep; those heard of least recently are forgotten"},
    {.name = "max_samples",
     .type = OPTION_INT,
     .offset = FIELD(max_samples),
     .default_value = "1048576",
     .min = 1024,
     .max = 67108864,
     .help =
         "samples to keep, 96 bytes each; when half as many wait to be judged, the earlier ones "
         "are taken before all lines of their time have come"},
};

static const struct metric_family EVICTED = {
    .name = "culprit_detector_evicted_total",
    .help = "Entries that a detector forgot because a bound was reached.",
    .type = METRIC_COUNTER,
};
static const struct metric_family LATE = {
    .name = "culprit_detector_late_total",
    .help = "Samples that came when their time had been judged, and were left out.",
    .type = METRIC_COUNTER,
};

// "H100=-2"; false when it is not of that form.
static bool read_model(const char *text, struct thermal_model *model, size_t *name_size) {
    const char *equals = strrchr(text, '=');
    char *end;
    if (equals == NULL || equals == text || equals[1] == '\0')
        return false;
    double margin = strtod(equals + 1, &end);
    *name_size = (size_t)(equals - text);
    model->margin_c = (float)margin;
    return *end == '\0' && isfinite(margin) && fabs(margin) <= 100;
}

static void thermal_validate(const void *config, struct problem_list *problems) {
    const struct thermal_config *self = config;
    struct thermal_model model;
    size_t size;
    if (self->slowdown_margins.count > MODELS_MAX)
        problem_add(problems, "slowdown_margins", "%u models; at most %d are allowed",
                    self->slowdown_margins.count, MODELS_MAX);
    for (uint32_t i = 0; i < self->slowdown_margins.count; i++)
        if (!read_model(self->slowdown_margins.items[i], &model, &size))
            problem_add(problems, "slowdown_margins",
                        "\"%s\" is no model and margin; write it like \"H100=-2\", with at most "
                        "100 degrees",
                        self->slowdown_margins.items[i]);
}

static void start_models(struct thermal_throttle *self, struct thermal_rules *rules) {
    for (uint32_t i = 0; i < self->config.slowdown_margins.count && i < MODELS_MAX; i++) {
        size_t size;
        const char *text = self->config.slowdown_margins.items[i];
        if (!read_model(text, &self->models[rules->model_count], &size))
            continue;
        self->models[rules->model_count++].part = memory_copy_text(text, size);
    }
    rules->models = self->models;
}

static enum status thermal_start(void *instance, const void *config,
                                 const struct component_context *context, struct error *error) {
    struct thermal_throttle *self = instance;
    (void)context;
    (void)error;
    self->config = *(const struct thermal_config *)config;
    const struct thermal_config *given = &self->config;
    struct thermal_rules rules = {.window_ns = (uint64_t)given->window.ns,
                                  .min_time_ns = (uint64_t)given->min_time.ns,
                                  .max_gap_ns = (uint64_t)given->max_gap.ns,
                                  .min_samples = (uint32_t)given->min_samples,
                                  .counter_share = given->counter_share,
                                  .clock_share = given->clock_share,
                                  .slowdown_margin_c = (float)given->slowdown_margin,
                                  .max_gpus = (uint32_t)given->max_gpus,
                                  .max_samples = (uint32_t)given->max_samples};
    start_models(self, &rules);
    self->confidence =
        (struct thermal_confidence){.of = {[THERMAL_HARDWARE] = (int)given->confidence_hw,
                                           [THERMAL_SOFTWARE] = (int)given->confidence_sw,
                                           [THERMAL_MEMORY_HOT] = (int)given->confidence_memory,
                                           [THERMAL_BY_COUNTER] = (int)given->confidence_counter,
                                           [THERMAL_NODE] = (int)given->confidence_node}};
    thermal_window_init(&self->window, &rules);
    verdict_ledger_init(&self->ledger, "thermal_throttle.verdicts");
    self->evicted = METRIC(&EVICTED, "detector", "thermal_throttle");
    self->late = METRIC(&LATE, "detector", "thermal_throttle");
    return STATUS_OK;
}

static void thermal_stop(void *instance) {
    struct thermal_throttle *self = instance;
    thermal_window_release(&self->window);
    verdict_ledger_release(&self->ledger);
    for (uint32_t i = 0; i < self->window.rules.model_count; i++)
        memory_give((void *)(uintptr_t)self->models[i].part);
    self->window.rules.model_count = 0;
}

static void thermal_state(void *instance, struct state_list *list) {
    struct thermal_throttle *self = instance;
    thermal_window_state(&self->window, list);
    verdict_ledger_state(&self->ledger, list);
}

static void thermal_restored(void *instance) {
    struct thermal_throttle *self = instance;
    thermal_window_restored(&self->window);
    verdict_ledger_restored(&self->ledger);
}

// -- Incidents in order ---------------------------------------------------------------------------

struct listed {
    uint32_t row;
    struct thermal_incident *incident;
    const struct thermal_gpu *gpu;
};

static int compare_nodes(const struct listed *first, const struct listed *second) {
    return slice_compare(intern_slice(first->gpu->key.node), intern_slice(second->gpu->key.node));
}

static int compare_starts(const struct listed *first, const struct listed *second) {
    uint64_t a = first->incident->start_ns, b = second->incident->start_ns;
    return (a > b) - (a < b);
}

static int compare_gpus(const struct listed *first, const struct listed *second) {
    pci_address a = first->gpu->key.device, b = second->gpu->key.device;
    if (a != b)
        return a < b ? -1 : 1;
    return slice_compare(intern_slice(first->gpu->key.uuid), intern_slice(second->gpu->key.uuid));
}

static int compare_by_start(const void *a, const void *b) {
    int order = compare_starts(a, b);
    if (order == 0)
        order = compare_nodes(a, b);
    return order != 0 ? order : compare_gpus(a, b);
}

static int compare_by_node(const void *a, const void *b) {
    int order = compare_nodes(a, b);
    if (order == 0)
        order = compare_starts(a, b);
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
    uint32_t near = 1;
    while (near < count && list[near].gpu->key.node == list[0].gpu->key.node &&
           list[near].incident->start_ns - list[0].incident->start_ns <=
               (uint64_t)self->config.node_spread.ns)
        near++;
    return near;
}

// Puts incidents of one node that began together into one group, led by the first of them. Who is
// in one stays there.
static void find_group(const struct thermal_throttle *self, struct listed *list, uint32_t count) {
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
    struct verdict_draft draft = {.arena = batch->arena};
    thermal_verdict_gpu(&self->window, item->incident, &self->confidence, &draft);
    verdict_ledger_report(&self->ledger, batch, &draft.verdict, ended, 0);
    item->incident->reported = !ended;
}

// list[0] leads. True when all of the group have ended.
static bool report_node(struct thermal_throttle *self, struct batch *batch,
                        const struct listed *list, uint32_t count) {
    uint32_t member_count = 0, near = count_near(self, list, count);
    uint32_t *members = arena_take(batch->arena, near * sizeof *members);
    bool ended = true;
    for (uint32_t i = 0; i < near; i++)
        if (list[i].incident->leader == list[0].row) {
            members[member_count++] = list[i].row;
            ended = ended && list[i].incident->ended;
        }
    struct verdict_draft draft = {.arena = batch->arena};
    thermal_verdict_node(&self->window, members, member_count, ended, &self->confidence, &draft);
    verdict_ledger_report(&self->ledger, batch, &draft.verdict, ended, 0);
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
            report_gpu(self, batch, &list[i], incident->ended != 0);
        else if (incident->reported)
            report_gpu(self, batch, &list[i], true);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct thermal_incident *incident = list[i].incident;
        if (incident->leader == TABLE_NO_ROW ? incident->ended != 0 : over[incident->leader])
            thermal_incident_forget(&self->window, list[i].row);
    }
}

static void gather(struct thermal_throttle *self, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (event->kind != EVENT_GPU_SAMPLE || !batch_selects(batch, i))
            continue;
        for (uint32_t j = 0; j < event->gpus->count; j++)
            thermal_window_add(&self->window, &event->gpus->samples[j], event->job, batch->arena);
    }
}

static void thermal_consume(void *instance, struct batch *batch) {
    struct thermal_throttle *self = instance;
    gather(self, batch);
    if (batch->evaluate) {
        uint64_t now = batch->as_of_ns < batch->newest_ns ? batch->as_of_ns : batch->newest_ns;
        thermal_window_advance(&self->window, now, batch->arena);
        report(self, batch);
    }
    metric_add(self->evicted, self->window.evicted);
    metric_add(self->late, self->window.late);
    self->window.evicted = self->window.late = 0;
}

const struct component_type processor_thermal_throttle = {
    .name = "thermal_throttle",
    .summary = "Names GPUs, and nodes, that are slowed by heat.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct thermal_config),
    .instance_size = sizeof(struct thermal_throttle),
    .takes = 1u << EVENT_GPU_SAMPLE,
    .gives = FACT_VERDICTS,
    .validate = thermal_validate,
    .start = thermal_start,
    .stop = thermal_stop,
    .state = thermal_state,
    .restored = thermal_restored,
    .processor = {.consume = thermal_consume},
};

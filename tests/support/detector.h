// SPDX-License-Identifier: Apache-2.0
// For tests of detectors: one processor by itself, with its options as a configuration would set
// them, fed with events in batches. What it says is kept as lines of JSON.
#pragma once

#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "pipeline/component/component.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct detector {
    const struct component_type *type;
    void *config;
    void *instance;
    struct arena arena; // of the batch at hand
    uint64_t newest_ns;
    struct buffer lines; // of all evaluations, until detector_lines_reset
    uint32_t verdict_count;
};

static inline void detector_set(struct detector *detector, const char *name, const char *value) {
    char why[160];
    for (size_t i = 0; i < detector->type->option_count; i++) {
        const struct option *row = &detector->type->options[i];
        void *field = (char *)detector->config + row->offset;
        if (strcmp(row->name, name) != 0)
            continue;
        switch (row->type) {
        case OPTION_BOOL:
            *(bool *)field = strcmp(value, "true") == 0;
            return;
        case OPTION_INT:
            *(int64_t *)field = strtoll(value, NULL, 10);
            return;
        case OPTION_RATIO:
            *(double *)field = strtod(value, NULL);
            return;
        case OPTION_DURATION:
            if (row->special != NULL && strcmp(value, row->special) == 0)
                ((struct duration *)field)->ns = DURATION_SPECIAL;
            else
                ck_assert_msg(option_parse_duration(value, field, why), "%s: %s", name, why);
            return;
        case OPTION_SIZE:
            ck_assert_msg(option_parse_size(value, field, why), "%s: %s", name, why);
            return;
        case OPTION_TEXT:
            *(const char **)field = value;
            return;
        default:
            ck_abort_msg("options of the type of %s cannot be set here", name);
        }
    }
    ck_abort_msg("there is no option %s", name);
}

// With the defaults of all options; set others, then call detector_start.
static inline struct detector detector_open(const struct component_type *type) {
    struct detector detector = {.type = type,
                                .config = memory_zero(1, type->config_size),
                                .instance = memory_zero(1, type->instance_size)};
    arena_init(&detector.arena, 64 << 10);
    buffer_init(&detector.lines, 64 << 20);
    for (size_t i = 0; i < type->option_count; i++)
        if (type->options[i].default_value != NULL)
            detector_set(&detector, type->options[i].name, type->options[i].default_value);
    return detector;
}

static inline void detector_start_as(struct detector *detector, bool once) {
    struct component_context context = {
        .id = detector->type->name, .site = detector->type->name, .once = once};
    struct error error = {0};
    ck_assert_int_eq(
        component_start(detector->type, detector->instance, detector->config, &context, &error),
        STATUS_OK);
}

static inline void detector_start(struct detector *detector) {
    detector_start_as(detector, true);
}

static inline void detector_close(struct detector *detector) {
    component_stop(detector->type, detector->instance);
    memory_give(detector->instance);
    memory_give(detector->config);
    arena_release(&detector->arena);
    buffer_release(&detector->lines);
}

static inline void detector_keep(struct detector *detector, struct batch *batch) {
    batch_drop_unchanged(batch);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        verdict_encode(&batch->verdicts.items[i], &detector->lines);
    detector->verdict_count += batch->verdicts.count;
}

// Events made in detector->arena or elsewhere; the arena is reset afterwards.
static inline void detector_feed(struct detector *detector, const struct event *events,
                                 uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (events[i].time_ns > detector->newest_ns)
            detector->newest_ns = events[i].time_ns;
    struct batch batch = {.events = events,
                          .event_count = count,
                          .arena = &detector->arena,
                          .newest_ns = detector->newest_ns};
    detector->type->processor.consume(detector->instance, &batch);
    detector_keep(detector, &batch);
    arena_reset(&detector->arena);
}

static inline void detector_judge(struct detector *detector, uint64_t as_of_ns, bool last) {
    struct batch batch = {.arena = &detector->arena,
                          .newest_ns = detector->newest_ns,
                          .evaluate = true,
                          .as_of_ns = as_of_ns,
                          .last = last};
    detector->type->processor.consume(detector->instance, &batch);
    detector_keep(detector, &batch);
    arena_reset(&detector->arena);
}

static inline void detector_finish(struct detector *detector) {
    detector_judge(detector, UINT64_MAX, true);
}

static inline void detector_lines_reset(struct detector *detector) {
    buffer_reset(&detector->lines);
    detector->verdict_count = 0;
}

// The lines so far, with a zero behind them.
static inline const char *detector_lines(struct detector *detector) {
    buffer_append_char(&detector->lines, '\0');
    detector->lines.size--;
    ck_assert(!detector->lines.failed);
    return detector->lines.data;
}

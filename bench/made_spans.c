// SPDX-License-Identifier: Apache-2.0
#include "bench/made_spans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { PHASES = 4, STEPS_AN_EPOCH = 10, ID_MAX = 64 };
static const char *const phases[PHASES] = {"load", "forward", "backward", "optimizer"};
static const double START_S = 1700000000.0;
static const double BETWEEN_LINES_S = 0.0005;

struct text {
    char *at;
    char *end;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int size = vsnprintf(text->at, (size_t)(text->end - text->at), format, list);
    va_end(list);
    assert(size > 0 && size < text->end - text->at);
    text->at += size;
}

static uint32_t steps_of(uint32_t leaves) {
    return (leaves + PHASES - 1) / PHASES;
}

static uint32_t spans_of(uint32_t leaves) {
    uint32_t steps = steps_of(leaves);
    return 1 + (steps + STEPS_AN_EPOCH - 1) / STEPS_AN_EPOCH + steps + leaves;
}

struct made_spans made_spans_of(uint32_t ranks, uint32_t spans) {
    assert(ranks >= 1 && ranks <= MADE_SPAN_RANKS_MAX);
    assert(spans >= MADE_SPANS_MIN && spans <= MADE_SPANS_MAX);
    uint32_t leaves = MADE_SPANS_KEPT + 1; // a key must be forgotten before it comes again
    while (spans_of(leaves) < spans)
        leaves++;
    return (struct made_spans){ranks, leaves};
}

uint32_t made_spans_count(const struct made_spans *job) {
    return spans_of(job->leaves);
}

uint64_t made_spans_first(const struct made_spans *job) {
    return 1 + job->ranks + UINT64_C(3) * job->leaves;
}

uint64_t made_spans_opening(const struct made_spans *job) {
    return 2 + UINT64_C(3) * job->ranks;
}

// The phase's id, which is its group's name, too.
static const char *leaf_id(uint64_t leaf, char out[ID_MAX]) {
    uint64_t step = leaf / PHASES;
    snprintf(out, ID_MAX, "run/e%" PRIu64 "/s%" PRIu64 "/%s", step / STEPS_AN_EPOCH, step,
             phases[leaf % PHASES]);
    return out;
}

static void put_event(struct text *text, const char *kind, double time_s) {
    put(text, "{\"ev\":\"%s\",\"ts\":%.4f", kind, time_s);
}

static void put_tasks(struct text *text, double time_s, uint64_t leaf, uint32_t ranks) {
    char id[ID_MAX];
    uint64_t step = leaf / PHASES, epoch = step / STEPS_AN_EPOCH;
    leaf_id(leaf, id);
    put_event(text, "tasks", time_s);
    put(text,
        ",\"group\":\"%s\",\"span\":{\"name\":[\"train\",\"epoch-%" PRIu64 "\",\"step-%" PRIu64
        "\",\"%s\"],\"ids\":[\"run\",\"run/e%" PRIu64 "\",\"run/e%" PRIu64 "/s%" PRIu64
        "\",\"%s\"]},\"tasks\":[",
        id, epoch, step, phases[leaf % PHASES], epoch, epoch, step, id);
    for (uint32_t rank = 0; rank < ranks; rank++)
        put(text, "%s\"%s/r%" PRIu32 "\"", rank == 0 ? "" : ",", id, rank);
    put(text, "]}");
}

static void put_transition(struct text *text, double time_s, uint64_t leaf, uint64_t rank,
                           const char *to) {
    char id[ID_MAX];
    put_event(text, "transition", time_s);
    put(text, ",\"key\":\"%s/r%" PRIu64 "\",\"to\":\"%s\"", leaf_id(leaf, id), rank, to);
}

static void put_done(struct text *text, double time_s, uint64_t leaf, uint64_t rank,
                     uint64_t number) {
    double compute_s = 0.01 + (double)(number * 7919 % 1000) * 1e-5;
    put_transition(text, time_s, leaf, rank, "memory");
    put(text, ",\"nbytes\":%" PRIu64 ",\"actions\":[[\"compute\",%.6f,%.6f],",
        4096 + number % 1000 * 512, time_s - 0.004 - compute_s, time_s - 0.004);
    put(text, "[\"transfer\",%.6f,%.6f]]}", time_s - 0.004, time_s);
}

static void put_metrics(struct text *text, double time_s, uint64_t leaf, uint64_t number,
                        uint32_t ranks) {
    char id[ID_MAX];
    const char *phase = phases[leaf % PHASES];
    leaf_id(leaf, id);
    put_event(text, "metrics", time_s);
    put(text, ",\"worker\":\"rank-%" PRIu64 "\",\"data\":[", number % ranks);
    put(text, "[\"execute\",\"%s\",\"%s\",\"gpu\",\"seconds\",%.6f],", id, phase,
        (double)(number % 4096) * 1e-5);
    put(text, "[\"execute\",\"%s\",\"%s\",\"nccl-wait\",\"seconds\",%.6f],", id, phase,
        (double)(number % 512) * 1e-5);
    put(text, "[\"execute\",\"%s\",\"%s\",\"memory-read\",\"bytes\",%" PRIu64 "]]}", id, phase,
        number % 65536);
}

static void put_making(struct text *text, double time_s, uint64_t number) {
    uint64_t leaf = number / 3;
    if (number % 3 == 0) {
        put_tasks(text, time_s, leaf, 1);
        return;
    }
    put_transition(text, time_s, leaf, 0, number % 3 == 1 ? "memory" : "forgotten");
    put(text, "}");
}

static void put_opened(struct text *text, const struct made_spans *job, double time_s,
                       uint64_t number) {
    uint64_t opening = number / made_spans_opening(job), at = number % made_spans_opening(job);
    uint64_t leaf = opening % job->leaves;
    if (at == 0) {
        put_tasks(text, time_s, leaf, job->ranks);
    } else if (at <= job->ranks) {
        put_transition(text, time_s, leaf, at - 1, "processing");
        put(text, "}");
    } else if (at <= 2 * job->ranks) {
        put_done(text, time_s, leaf, at - job->ranks - 1, number);
    } else if (at == 2 * job->ranks + 1 || opening < MADE_SPANS_KEPT) {
        put_metrics(text, time_s, leaf, number, job->ranks);
    } else {
        put_transition(text, time_s, (opening - MADE_SPANS_KEPT) % job->leaves,
                       at - 2 * job->ranks - 2, "forgotten");
        put(text, "}");
    }
}

size_t made_span_line(const struct made_spans *job, uint64_t number, char *out) {
    struct text text = {out, out + MADE_SPAN_LINE_MAX};
    double time_s = START_S + (double)number * BETWEEN_LINES_S;
    uint64_t first = made_spans_first(job);
    if (number == 0) {
        put_event(&text, "start", time_s);
        put(&text, "}");
    } else if (number <= job->ranks) {
        put_event(&text, "join", time_s);
        put(&text, ",\"worker\":\"rank-%" PRIu64 "\",\"nthreads\":1}", number - 1);
    } else if (number < first) {
        put_making(&text, time_s, number - 1 - job->ranks);
    } else {
        put_opened(&text, job, time_s, number - first);
    }
    put(&text, "\n");
    return (size_t)(text.at - out);
}

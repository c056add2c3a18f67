// SPDX-License-Identifier: Apache-2.0
// The JSON exporter: what it writes, and when.
//
// Verdicts: a line each, as they come. Summary: a document for each job at every evaluation.
// Timeline: a document for each job at the last one. Spans: a document for each tree, on a line of
// its own, on an interval and at the end. Documents go to a file that is replaced whole; on
// standard output there is one round of them, at the end, but for spans. Memory: one verdict line,
// and with every job by itself one summary a job.
#include "exporters/json/json.h"

#include "base/sort.h"
#include "config/problem.h"
#include "exporters/json/span_document.h"
#include "exporters/output/output.h"
#include "exporters/report/story.h"

#include <assert.h>
#include <stdlib.h>

enum json_content {
    CONTENT_VERDICTS,
    CONTENT_SUMMARY,
    CONTENT_TIMELINE,
    CONTENT_LAST_VERDICT,
    CONTENT_SPANS
};

struct rotation_config {
    struct byte_size max_size;
    int64_t max_backups;
};

struct json_config {
    const char *path;
    int content; // enum json_content
    struct duration interval;
    struct rotation_config rotation;
    bool fsync;
    struct route_config route; // `match` alone: what is kept in a file disturbs nobody
    struct sending_config sending;
};

// What the slot holds.
struct last_verdict {
    int64_t severity;
    bool told;
};

// Which multiple of the interval was told of last, in event time; 0: none yet.
struct told_spans {
    uint64_t round;
};

struct json_exporter {
    struct output output;
    const struct json_config *config;
    struct buffer line; // one verdict
    struct summary_cache summaries;
    struct last_verdict last;
    struct told_spans told;
};
OUTPUT_COMES_FIRST(struct json_exporter);

// No line is longer than this: the schema's limits, every character as two escapes.
enum { JSON_LINE_MAX = 16 * 1024 * 1024 };

static const char *const CONTENTS[] = {"verdicts",     "summary", "timeline",
                                       "last_verdict", "spans",   NULL};

static const struct option ROTATION_OPTIONS[] = {
    OPTION(struct rotation_config, max_size, OPTION_SIZE, .default_value = "100MiB", .min = 1024,
           .max = 1e15,
           .help = "verdicts: a file that would grow beyond this is renamed and a new one begun"),
    OPTION(struct rotation_config, max_backups, OPTION_INT, .default_value = "100", .min = 0,
           .max = 100000, .help = "verdicts: renamed files that are kept, path.1 the newest"),
};

static const struct option OPTIONS[] = {
    OPTION(struct json_config, path, OPTION_TEXT, .claim = CLAIM_FILE, .default_value = "-",
           .help = "file to write, or - for standard output"),
    OPTION(
        struct json_config, content, OPTION_CHOICE, .default_value = "verdicts",
        .choices = CONTENTS,
        .help =
            "verdicts: a line for each finding and each change of one; summary: the cross-rank "
            "summary of each job; timeline: all samples of each job in order of aligned time; "
            "last_verdict: one line of at most 4096 bytes with the gravest finding, written over "
            "the one before, for a termination log; spans: what each tree of spans answers, one "
            "line a tree"),
    OPTION(
        struct json_config, interval, OPTION_DURATION, .default_value = "1m", .min = 0.01,
        .max = 31536000, .special = "never",
        .help =
            "spans: how often they are written while the input goes on, in event time; never: at "
            "the end only. The end is always told"),
    OPTION(struct json_config, rotation, OPTION_GROUP, .rows = ROTATION_OPTIONS,
           .row_count = OPTION_COUNT(ROTATION_OPTIONS),
           .help = "how a file of verdicts is kept from growing without end"),
    OPTION(struct json_config, fsync, OPTION_BOOL, .default_value = "true",
           .help = "wait until what was written to a file is safe on the disk"),
    ROUTE_MATCH_OPTION(struct json_config, route, route_match_rows),
    SENDING_OPTIONS(struct json_config, sending, "5s"),
};

static void json_validate(const void *given, struct problem_list *problems) {
    const struct json_config *config = given;
    bool verdicts = config->content == CONTENT_VERDICTS || config->content == CONTENT_LAST_VERDICT;
    if (!verdicts && !route_is_default(&config->route))
        problem_add(problems, "match", "only verdicts and last_verdict can be chosen from, not %s",
                    CONTENTS[config->content]);
}

static enum status json_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct json_exporter *self = instance;
    const struct json_config *given = self->config = config;
    buffer_init(&self->line, JSON_LINE_MAX);
    struct output_options options = {
        .path = given->path,
        .mode = given->content == CONTENT_VERDICTS       ? OUTPUT_LINES
                : given->content == CONTENT_LAST_VERDICT ? OUTPUT_SLOT
                                                         : OUTPUT_DOCUMENT,
        .max_size = given->rotation.max_size.bytes,
        .max_backups = given->rotation.max_backups,
        .sync = given->fsync,
        .site = context->site,
    };
    return output_open(&self->output, &options, error);
}

static void json_stop(void *instance) {
    struct json_exporter *self = instance;
    output_close(&self->output);
    buffer_release(&self->line);
    summary_cache_release(&self->summaries);
}

// In the order of the reports: each incident from its root on. Each line goes out in one piece, so
// that no request ends inside one.
static void verdicts_encode(struct json_exporter *self, const struct batch *batch,
                            struct buffer *out) {
    struct story_list stories = {.count = 0};
    if (batch->verdicts.count > 0)
        stories = stories_make(batch->verdicts.items, batch->verdicts.count, batch->arena);
    for (uint32_t i = 0; i < stories.count; i++)
        for (uint32_t j = 0; j < stories.items[i].count; j++) {
            buffer_reset(&self->line);
            verdict_encode(stories.items[i].steps[j], &self->line);
            assert(!self->line.failed);
            buffer_append(out, buffer_slice(&self->line));
        }
}

// Evidence is left out, and what else is needed for the line to fit.
static void short_encode(struct json_exporter *self, const struct verdict *verdict) {
    enum { TERMINATION_LOG_MAX = 4096 };
    struct verdict shortened = *verdict;
    shortened.evidence_dropped += verdict->evidence_count;
    shortened.evidence_count = shortened.attribute_count = 0;
    for (;;) {
        buffer_reset(&self->line);
        verdict_encode(&shortened, &self->line);
        assert(!self->line.failed);
        if (self->line.size <= TERMINATION_LOG_MAX)
            return;
        if (shortened.entity_count > 0) {
            shortened.entities_dropped += shortened.entity_count - shortened.entity_count / 2;
            shortened.entity_count /= 2;
        } else {
            shortened.remediation.size /= 2;
        }
    }
}

// The gravest finding that stands; of equally grave ones the last that was told.
static void last_verdict_encode(struct json_exporter *self, const struct batch *batch,
                                struct buffer *out) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        if (self->last.told && (int64_t)verdict->severity < self->last.severity)
            continue;
        self->last = (struct last_verdict){.told = true, .severity = verdict->severity};
        short_encode(self, verdict);
        buffer_append(out, buffer_slice(&self->line));
    }
}

static int job_compare(const void *left, const void *right) {
    const struct evaluation *a = *(const struct evaluation *const *)left;
    const struct evaluation *b = *(const struct evaluation *const *)right;
    return COMPARE_KEYS(COMPARE(a->job != STRING_NONE, b->job != STRING_NONE),
                        slice_compare(intern_slice(a->job), intern_slice(b->job)));
}

// The batch's evaluations by the bytes of the job's name, the nameless first.
static const struct evaluation **evaluations_sorted(const struct batch *batch) {
    uint32_t count = batch->evaluation_count;
    const struct evaluation **sorted = arena_take(batch->arena, count * sizeof *sorted);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &batch->evaluations[i];
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, job_compare);
    return sorted;
}

static void summaries_encode(struct json_exporter *self, const struct batch *batch,
                             struct buffer *out) {
    bool wanted = batch->last || !self->output.is_stream;
    const struct evaluation **sorted = evaluations_sorted(batch);
    if (wanted && batch->evaluation_count > 0)
        output_begin_document(&self->output, out);
    bool each = batch->job_choice != NULL && batch->job_choice->mode == JOB_EACH;
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        if (each)
            summary_cache_update(&self->summaries, sorted[i], batch->job_choice->max_jobs);
        else if (wanted)
            summary_encode(sorted[i], out);
    }
    if (each && wanted && batch->evaluation_count > 0)
        summary_cache_encode(&self->summaries, out);
}

static void timelines_encode(struct json_exporter *self, const struct batch *batch,
                             struct buffer *out) {
    const struct evaluation **sorted = evaluations_sorted(batch);
    if (batch->evaluation_count > 0)
        output_begin_document(&self->output, out);
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        timeline_encode(sorted[i], batch->arena, out);
}

// Due at the end, and at the first evaluation of each stretch of the interval.
static bool spans_are_due(struct json_exporter *self, const struct batch *batch) {
    if (batch->last)
        return true;
    if (self->config->interval.ns == DURATION_SPECIAL)
        return false;
    uint64_t round = batch->as_of_ns / (uint64_t)self->config->interval.ns;
    if (round <= self->told.round)
        return false;
    self->told.round = round;
    return true;
}

static void spans_encode(struct json_exporter *self, const struct batch *batch,
                         struct buffer *out) {
    if (batch->spans.count == 0 || !spans_are_due(self, batch))
        return;
    output_begin_document(&self->output, out);
    for (uint32_t i = 0; i < batch->spans.count; i++)
        span_document_encode(&batch->spans.items[i], out);
}

static void json_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct json_exporter *self = instance;
    int content = self->config->content;
    if (content == CONTENT_VERDICTS)
        verdicts_encode(self, batch, out);
    else if (content == CONTENT_LAST_VERDICT)
        last_verdict_encode(self, batch, out);
    else if (content == CONTENT_SUMMARY && batch->evaluate)
        summaries_encode(self, batch, out);
    else if (content == CONTENT_TIMELINE && batch->last)
        timelines_encode(self, batch, out);
    else if (content == CONTENT_SPANS && batch->evaluate)
        spans_encode(self, batch, out);
}

static uint32_t json_needs(const void *config) {
    bool spans = ((const struct json_config *)config)->content == CONTENT_SPANS;
    return spans ? FACT_SPANS : FACT_VERDICTS;
}

static const struct sending_config *json_sending(const void *config) {
    return &((const struct json_config *)config)->sending;
}

static const struct route_config *json_route(const void *config) {
    return &((const struct json_config *)config)->route;
}

static const struct state_row STATE[] = {
    STATE_STRUCT(struct json_exporter, last, "last_verdict"),
    STATE_STRUCT(struct json_exporter, told, "told_spans"),
};

static const struct component_alias aliases[] = {
    {"file", "it writes verdicts to a file, as JSON Lines"},
};

const struct component_type exporter_json = {
    .name = "json",
    .summary = "Writes verdicts as JSON Lines, or summaries, timelines or spans as JSON documents.",
    .aliases = aliases,
    .alias_count = sizeof aliases / sizeof aliases[0],
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct json_config),
    .instance_size = sizeof(struct json_exporter),
    .needs = FACT_VERDICTS,
    .validate = json_validate,
    .start = json_start,
    .stop = json_stop,
    .state_rows = STATE,
    .state_row_count = OPTION_COUNT(STATE),
    .exporter = {.needs = json_needs,
                 .encode = json_encode,
                 .send = output_send,
                 .delivered = output_delivered,
                 .resume = output_resume,
                 .sending = json_sending,
                 .route = json_route},
};

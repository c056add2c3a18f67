// SPDX-License-Identifier: Apache-2.0
// Shows where a job's thread time went. Keeps a tree of spans for each span stream and for each
// job's phases, and reports them at an evaluation; exporters ask them
// (pipeline/model/span_report.h). Events of a stream take effect as they come, phase boundaries
// when their moment is evaluated.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "processors/spans/phase_report.h"
#include "processors/spans/phases.h"
#include "processors/spans/queries.h"

#include <assert.h>
#include <stdarg.h>

struct spans_config {
    int64_t max_spans;
    int64_t max_tasks;
    int64_t max_trees;
    struct byte_size max_text;
    bool phases;
    int64_t max_phase_spans;
    int64_t threads_per_rank;
    const char *queries;
};

struct spans {
    struct span_forest forest;
    struct span_phases phases;
    struct span_queries queries;
    bool takes_phases;
};

static const struct state_row STATE[] = {
    STATE_PART(struct spans, forest, "spans.forest", span_forest_part),
    STATE_PART(struct spans, phases, "spans.phases", span_phases_part),
};

static const struct option OPTIONS[] = {
    OPTION(struct spans_config, max_spans, OPTION_INT, .default_value = "100000", .min = 16,
           .max = 100000000,
           .help = "spans that are kept at the same time; beyond it the oldest finished ones are "
                   "folded into the totals of their parents, with a note"),
    OPTION(struct spans_config, max_tasks, OPTION_INT, .default_value = "1000000", .min = 16,
           .max = 1000000000,
           .help = "tasks that are kept at the same time; beyond it ended ones of the oldest "
                   "spans lose their keys, with a note"),
    OPTION(struct spans_config, max_trees, OPTION_INT, .default_value = "64", .min = 1,
           .max = 65536,
           .help = "streams and jobs that are kept; beyond it the least recently updated one is "
                   "dropped"),
    OPTION(struct spans_config, max_text, OPTION_SIZE, .default_value = "256MiB", .min = 65536,
           .max = INT64_C(1) << 40,
           .help = "bytes of keys, ids, names and code together; events are refused beyond that"),
    OPTION(struct spans_config, phases, OPTION_BOOL, .default_value = "true",
           .help = "make spans of the phases of training telemetry: ranks are workers"),
    OPTION(struct spans_config, max_phase_spans, OPTION_INT, .default_value = "10000", .min = 16,
           .max = 100000000,
           .help = "spans of a job's phases that are kept; older ones are folded into the totals "
                   "of their parents"),
    OPTION(struct spans_config, threads_per_rank, OPTION_INT, .default_value = "1", .min = 1,
           .max = 1000000,
           .help = "threads that a rank counts as: with 1, thread time is in rank seconds; with "
                   "the number of its GPUs, in GPU seconds"),
    OPTION(struct spans_config, queries, OPTION_TEXT,
           .help = "a JSON file of questions to answer, for inputs that end (docs/spans.md)"),
};

static enum status spans_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    struct spans *self = instance;
    const struct spans_config *options = config;
    self->forest.limits = (struct span_limits){.spans = (uint32_t)options->max_spans,
                                               .tasks = (uint32_t)options->max_tasks,
                                               .trees = (uint32_t)options->max_trees,
                                               .text_bytes = options->max_text.bytes};
    self->phases.forest = &self->forest;
    self->phases.threads = options->threads_per_rank;
    self->phases.spans_kept = (uint32_t)options->max_phase_spans;
    self->takes_phases = options->phases;
    if (options->queries == NULL)
        return STATUS_OK;
    if (!context->once)
        return error_set(error, STATUS_CONFIG,
                         "queries: is for inputs that end (analyze, run --once); a live pipeline "
                         "shows its spans at every evaluation");
    return span_queries_load(&self->queries, options->queries, error);
}

static void spans_stop(void *instance) {
    span_queries_release(&((struct spans *)instance)->queries);
}

// -- events -------------------------------------------------------------------------------------

static void take_span_event(struct spans *self, const struct event *event) {
    struct span_tree_key key = {.source = event->source};
    struct span_tree_row *row = span_forest_recent(&self->forest, key, event->time_ns);
    struct span_tree tree = {&self->forest, row};
    if (event->job != STRING_NONE)
        row->job = event->job;
    if (self->queries.count > 0) {
        span_settle(&self->forest);
        span_queries_reach(&self->queries, &tree, event->position);
    }
    span_apply(&self->forest, row, event->span, event->position);
}

static bool is_tasks(const struct batch *batch, uint32_t index) {
    const struct event *event = &batch->events[index];
    return event->kind == EVENT_SPAN && event->span->kind == SPAN_TASKS;
}

// What a line of tasks needs is fetched while those since the one before it are applied; `*next` is
// where it stands.
static void fetch_ahead(struct spans *self, const struct batch *batch, uint32_t at,
                        uint32_t *next) {
    if (at < *next) {
        span_ahead_step(&self->forest);
        return;
    }
    for (*next = at + 1; *next < batch->event_count; ++*next) {
        if (is_tasks(batch, *next)) {
            span_ahead_begin(&self->forest, batch->events[*next].span, *next - at);
            return;
        }
    }
}

static void take_events(struct spans *self, const struct batch *batch) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (!batch_selects(batch, i))
            continue;
        if (event->kind == EVENT_SPAN) {
            take_span_event(self, event);
            fetch_ahead(self, batch, i, &next);
        } else if (event->kind == EVENT_TELEMETRY && self->takes_phases &&
                   event->telemetry->scope != NULL) {
            span_phases_add(&self->phases, event->telemetry);
        }
    }
    span_ahead_end(&self->forest);
    span_settle(&self->forest);
}

// -- reports ------------------------------------------------------------------------------------

static void copy_refused(const struct spans *self, const struct span_tree_row *row,
                         struct arena *arena, struct span_report *report) {
    struct span_refused *items = arena_take(arena, row->listed * sizeof *items + 1);
    const struct span_refused_row *refused;
    for (uint32_t at = row->refusals.first; at != TABLE_NO_ROW; at = refused->next) {
        refused = span_refused_at(&self->forest, at);
        items[report->refused_count++] =
            (struct span_refused){refused->line, refused->entry, refused->refusal};
    }
    assert(report->refused_count == row->listed);
    report->refused = items;
    report->refused_not_listed = row->refused - row->listed;
}

static void copy_history(const struct spans *self, const struct span_tree_row *row,
                         struct arena *arena, struct span_report *report) {
    struct span_thread_point *items = arena_take(arena, row->point_count * sizeof *items + 1);
    const struct span_point_row *point;
    for (uint32_t at = row->points.first; at != TABLE_NO_ROW; at = point->next) {
        point = span_point_at(&self->forest, at);
        items[report->history_count++] = (struct span_thread_point){point->time_s, point->threads};
    }
    assert(report->history_count == row->point_count);
    report->history = items;
}

__attribute__((format(printf, 3, 4))) static void
note(struct span_report *report, struct arena *arena, const char *format, ...) {
    assert(report->note_count < sizeof report->notes / sizeof report->notes[0]);
    va_list arguments;
    va_start(arguments, format);
    report->notes[report->note_count++] = slice_of(arena_format_list(arena, format, arguments));
    va_end(arguments);
}

static void add_notes(const struct spans *self, const struct span_tree_row *row,
                      struct arena *arena, struct span_report *report) {
    if (row->folded > 0)
        note(report, arena,
             "%llu finished spans were folded into the totals of their parents to bound memory "
             "(%s).",
             (unsigned long long)row->folded,
             report->from_telemetry ? "max_phase_spans" : "max_spans");
    if (row->dropped_tasks > 0)
        note(report, arena,
             "%llu ended tasks lost their keys to bound memory (max_tasks); later events of them "
             "were refused.",
             (unsigned long long)row->dropped_tasks);
    if (row->points_left_out > 0)
        note(report, arena,
             "%u changes of the number of threads were merged with the one before: there were too "
             "many.",
             row->points_left_out);
    if (report->from_telemetry && self->phases.kept.left_out > 0)
        note(report, arena, "%llu phase boundaries were dropped: there was no room.",
             (unsigned long long)self->phases.kept.left_out);
}

static void answer_queries(struct spans *self, const struct span_tree *tree,
                           struct span_report *report) {
    if (self->queries.now_s > 0)
        report->now_s = self->queries.now_s;
    span_queries_reach(&self->queries, tree, UINT64_MAX);
    report->queries = span_queries_answers(&self->queries, tree);
    report->query_count = self->queries.count;
}

static void make_report(struct spans *self, struct span_tree_row *row, struct batch *batch,
                        struct span_report *report) {
    struct arena *arena = batch->arena;
    struct span_tree *tree = arena_take(arena, sizeof *tree);
    *tree = (struct span_tree){&self->forest, row};
    *report = (struct span_report){.job = row->job,
                                   .from_telemetry = row->key.source == STRING_NONE,
                                   .started = row->started != 0,
                                   .accepted = row->accepted,
                                   .now_s = row->now_s,
                                   .span_count = row->span_count,
                                   .folded = row->folded,
                                   .task_count = row->task_count,
                                   .tree = tree,
                                   .ask = &span_asker};
    if (!report->from_telemetry)
        report->source = intern_slice(row->key.source);
    copy_refused(self, row, arena, report);
    copy_history(self, row, arena, report);
    add_notes(self, row, arena, report);
    report->phases = span_phases_of(&self->phases, row, arena, &report->phase_count);
    if (batch->last)
        answer_queries(self, tree, report);
}

static int compare_trees(const void *left, const void *right) {
    const struct span_tree_key *a = &(*(const struct span_tree_row *const *)left)->key;
    const struct span_tree_key *b = &(*(const struct span_tree_row *const *)right)->key;
    return COMPARE_KEYS(slice_compare(intern_slice(a->source), intern_slice(b->source)),
                        slice_compare(intern_slice(a->job), intern_slice(b->job)));
}

static void report_trees(struct spans *self, struct batch *batch) {
    uint32_t count = 0, most = keyed_rows_count(&self->forest.trees);
    struct span_tree_row *tree;
    struct span_tree_row **trees = arena_take(batch->arena, most * sizeof(void *));
    for (uint32_t at = 0; (tree = keyed_rows_next(&self->forest.trees, &at)) != NULL;)
        trees[count++] = tree;
    sort_stable(trees, count, sizeof(void *), batch->arena, compare_trees);
    struct span_report *reports = arena_take(batch->arena, count * sizeof *reports);
    for (uint32_t i = 0; i < count; i++)
        make_report(self, trees[i], batch, &reports[i]);
    batch->spans = (struct span_report_list){reports, count};
}

static void spans_consume(void *instance, struct batch *batch) {
    struct spans *self = instance;
    take_events(self, batch);
    if (!batch->evaluate)
        return;
    if (batch->forgotten != NULL)
        span_phases_forget(&self->phases, batch->forgotten);
    span_phases_judge(&self->phases, batch->as_of_ns);
    report_trees(self, batch);
}

const struct component_type processor_spans = {
    .name = "spans",
    .summary = "Keeps trees of spans; reports where thread time went and which ranks lag.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct spans_config),
    .instance_size = sizeof(struct spans),
    .takes = 1u << EVENT_SPAN | 1u << EVENT_TELEMETRY,
    .gives = FACT_SPANS,
    .start = spans_start,
    .stop = spans_stop,
    .state_rows = STATE,
    .state_row_count = STATE_ROW_COUNT(STATE),
    .processor = {.consume = spans_consume},
};

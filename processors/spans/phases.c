// SPDX-License-Identifier: Apache-2.0
// Turns boundaries, in order of time, into the events of a span stream (apply.c). Of each opening
// of a phase the visits of its ranks are kept until all have left, and are then added up. O(log) a
// boundary for the order, O(depth) for its effect.
#include "processors/spans/phases.h"

#include "base/sort.h"
#include "pipeline/model/span_event.h"
#include "processors/spans/phase_report.h"

#include <assert.h>
#include <stdio.h>

enum {
    WAITING_MAX = 1 << 20,
    // Openings of a phase that not all ranks have been in: above the first number those that nobody
    // is in are added up, above the second all.
    IDLE_OPENINGS_KEPT = 16,
    OPENINGS_KEPT = 64,
};

void span_phases_add(struct span_phases *phases, const struct telemetry *telemetry) {
    assert(telemetry->scope != NULL);
    if (table_live(&phases->waiting) >= WAITING_MAX) {
        phases->kept.left_out++;
        return;
    }
    struct boundary_row *row = table_row(&phases->waiting, table_add(&phases->waiting));
    *row = (struct boundary_row){
        .in_use = 1,
        .job = telemetry->job,
        .label = telemetry->scope->label,
        .session = telemetry->session,
        .rank = telemetry->rank,
        .world = telemetry->world_size,
        .depth = telemetry->scope->depth,
        .is_enter = telemetry->type == TELEMETRY_PHASE_ENTER,
        .time_ns = telemetry->timestamp_ns,
        .sequence = telemetry->scope->sequence,
        .thread = telemetry->scope->thread_id,
    };
}

// -- texts --------------------------------------------------------------------------------------

static struct slice job_text(string_id job) {
    return job == STRING_NONE ? SLICE("job") : intern_slice(job);
}

// -- visits -------------------------------------------------------------------------------------

// One boundary on its way.
struct crossing {
    struct span_phases *phases;
    struct span_tree_row *tree;
    struct phase_job *job;
    uint32_t label_row;
    struct phase_label *label;
    struct phase_rank *rank;
    const struct boundary_row *boundary;
    double time_s;
};

static void apply(struct crossing *crossing, struct span_event *event) {
    event->time_s = crossing->time_s;
    if (span_apply(crossing->phases->forest, crossing->tree, event, 0) != SPAN_ACCEPTED)
        crossing->phases->kept.left_out++;
    span_settle(crossing->phases->forest);
}

static struct slice span_of(struct crossing *crossing, const struct phase_opening *opening) {
    return phase_opening_id(intern_slice(crossing->label->key.label), &opening->key,
                            &crossing->phases->scratch);
}

static long long thread_of(const struct phase_rank_key *key) {
    return (long long)((uint64_t)key->thread[1] << 32 | key->thread[0]);
}

static struct slice task_of(struct crossing *crossing, struct slice span) {
    struct arena *arena = &crossing->phases->scratch;
    const struct phase_rank *rank = crossing->rank;
    return slice_of(arena_format(arena, "%.*s/r%d/t%lld", (int)span.size, span.data, rank->key.rank,
                                 thread_of(&rank->key)));
}

static void move_task(struct crossing *crossing, const struct phase_opening *opening,
                      enum task_state to, const struct span_action *action) {
    struct span_event event = {.kind = SPAN_TRANSITION,
                               .to = to,
                               .nbytes = -1,
                               .actions = action,
                               .action_count = action != NULL};
    event.key = task_of(crossing, span_of(crossing, opening));
    apply(crossing, &event);
}

// Ends the visit that the rank is on; `exit_ns` 0: nobody saw it end.
static void end_visit(struct crossing *crossing, uint64_t exit_ns) {
    struct span_phases *phases = crossing->phases;
    struct phase_rank *rank = crossing->rank;
    struct phase_visit *visit = table_row(&phases->visits, rank->visit);
    struct phase_opening *opening = table_row(&phases->openings.table, visit->opening);
    rank->visit = TABLE_NO_ROW;
    assert(opening->inside > 0 && visit->inside);
    opening->inside--;
    visit->inside = 0;
    if (exit_ns == 0) {
        move_task(crossing, opening, TASK_ERRED, NULL);
        return;
    }
    visit->exit_ns = exit_ns > visit->enter_ns ? exit_ns : visit->enter_ns;
    visit->whole = 1;
    struct span_action action = {SLICE("compute"), (double)visit->enter_ns / 1e9,
                                 (double)visit->exit_ns / 1e9};
    move_task(crossing, opening, TASK_MEMORY, &action);
}

// The id of the opening that the rank is in, or was in last, of the phase `label`.
static struct slice outer_id(struct crossing *crossing, struct slice label) {
    struct span_phases *phases = crossing->phases;
    struct phase_label_key key = {crossing->label->key.job, intern_find(label)};
    const struct phase_label *outer = keyed_rows_find(&phases->labels, &key);
    const struct phase_rank *rank = NULL;
    if (outer != NULL) {
        struct phase_rank_key rank_key = crossing->rank->key;
        rank_key.label = keyed_rows_number(&phases->labels, outer);
        rank = keyed_rows_find(&phases->ranks, &rank_key);
    }
    struct phase_opening_key opening = {0, 0, 0};
    if (rank != NULL)
        opening = (struct phase_opening_key){0, rank->restarts, rank->number};
    return phase_opening_id(label, &opening, &phases->scratch);
}

// The annotation of the opening: the job, then each part of the label with its opening.
static struct span_annotation *annotate(struct crossing *crossing, struct slice id) {
    struct arena *arena = &crossing->phases->scratch;
    struct slice label = intern_slice(crossing->label->key.label);
    uint32_t depth = crossing->boundary->depth;
    uint32_t parts = phase_depth(label) == depth && depth < SPAN_DEPTH_MAX ? depth : 1;
    struct slice *tags = arena_take(arena, (parts + 1) * sizeof *tags);
    struct slice *ids = arena_take(arena, (parts + 1) * sizeof *ids);
    tags[0] = ids[0] = job_text(crossing->boundary->job);
    size_t begin = 0;
    for (uint32_t i = 1; i < parts; i++) {
        const char *end = memmem(label.data + begin, label.size - begin, " / ", 3);
        assert(end != NULL && "phase_depth counted it");
        tags[i] = (struct slice){label.data + begin, (size_t)(end - label.data) - begin};
        ids[i] = outer_id(crossing, (struct slice){label.data, (size_t)(end - label.data)});
        begin = (size_t)(end - label.data) + 3;
    }
    tags[parts] = (struct slice){label.data + begin, label.size - begin};
    ids[parts] = id;
    struct span_annotation *annotation = arena_take(arena, sizeof *annotation);
    *annotation = (struct span_annotation){tags, ids, parts + 1};
    return annotation;
}

static struct phase_opening *opening_of(struct crossing *crossing) {
    struct span_phases *phases = crossing->phases;
    struct phase_opening_key key = {crossing->label_row, crossing->rank->restarts,
                                    crossing->rank->number};
    bool is_new;
    struct phase_opening *opening = keyed_rows_get(&phases->openings, &key, &is_new);
    if (is_new) {
        opening->first_visit = TABLE_NO_ROW;
        table_append(&phases->openings.table, offsetof(struct phase_opening, next),
                     &crossing->label->waiting, keyed_rows_number(&phases->openings, opening));
        crossing->label->kept++;
    }
    return opening;
}

static void begin_visit(struct crossing *crossing) {
    assert(crossing->rank->visit == TABLE_NO_ROW && crossing->boundary->is_enter);
    struct span_phases *phases = crossing->phases;
    struct phase_opening *opening = opening_of(crossing);
    uint32_t row = table_add(&phases->visits);
    *(struct phase_visit *)table_row(&phases->visits, row) =
        (struct phase_visit){.next = opening->first_visit,
                             .opening = keyed_rows_number(&phases->openings, opening),
                             .rank = keyed_rows_number(&phases->ranks, crossing->rank),
                             .enter_ns = crossing->boundary->time_ns,
                             .inside = 1};
    opening->first_visit = row;
    opening->visits++;
    opening->inside++;
    crossing->rank->visit = row;
    struct slice id = span_of(crossing, opening);
    struct span_task task = {.key = task_of(crossing, id),
                             .group = id,
                             .annotation = annotate(crossing, id),
                             .nbytes = -1};
    struct span_event event = {.kind = SPAN_TASKS, .tasks = &task, .task_count = 1};
    apply(crossing, &event);
    move_task(crossing, opening, TASK_PROCESSING, NULL);
}

// -- openings -----------------------------------------------------------------------------------

static void settle_opening(struct crossing *crossing, struct phase_opening *opening) {
    assert(crossing->label->kept > 0 && opening->key.label == crossing->label_row);
    struct span_phases *phases = crossing->phases;
    struct span_forest *forest = phases->forest;
    struct slice id = span_of(crossing, opening);
    // Who is still inside is not waited for any longer.
    for (uint32_t at = opening->first_visit; at != TABLE_NO_ROW;) {
        const struct phase_visit *visit = table_row(&phases->visits, at);
        struct crossing late = *crossing;
        late.rank = table_row(&phases->ranks.table, visit->rank);
        if (visit->inside)
            end_visit(&late, 0);
        at = visit->next;
    }
    struct phase_measure measure;
    phase_measure(phases, crossing->tree, opening, id, &phases->scratch, &measure);
    crossing->label->openings++;
    crossing->label->thread_s += measure.thread_s;
    crossing->label->busy_s += measure.busy_s;
    for (uint32_t i = 0; i < measure.count; i++) {
        struct phase_rank *rank = table_row(&phases->ranks.table, measure.visits[i].row);
        rank->sums.openings++;
        rank->sums.slowest += measure.visits[i].sums.slowest;
        rank->sums.busy_s += measure.visits[i].sums.busy_s;
        rank->sums.lag_s += measure.visits[i].sums.lag_s;
    }
    uint32_t span = span_find(forest, crossing->tree, id);
    if (span != SPAN_NONE)
        span_forget_tasks(forest, span);
    phase_opening_remove(phases, crossing->label, opening);
    if (crossing->tree->span_count > phases->spans_kept)
        span_fold_tree(forest, crossing->tree, phases->spans_kept / 8 + 1);
}

// Adds up what is complete, and the oldest when there are too many.
static void settle(struct crossing *crossing, struct phase_opening *opening) {
    struct table *openings = &crossing->phases->openings.table;
    if (opening != NULL && opening->inside == 0 && opening->visits >= crossing->job->ranks &&
        opening->visits >= crossing->job->world)
        settle_opening(crossing, opening);
    while (crossing->label->kept > IDLE_OPENINGS_KEPT) {
        struct phase_opening *oldest = table_row(openings, crossing->label->waiting.first);
        if (oldest->inside > 0 && crossing->label->kept <= OPENINGS_KEPT)
            break;
        settle_opening(crossing, oldest);
    }
}

// -- boundaries ---------------------------------------------------------------------------------

// The job's tree begins, and the rank joins, with the first boundary.
static void introduce(struct crossing *crossing) {
    struct span_forest *forest = crossing->phases->forest;
    char worker[32];
    int size = snprintf(worker, sizeof worker, "rank %d", crossing->boundary->rank);
    struct slice name = {worker, (size_t)size};
    if (!crossing->tree->started) {
        struct span_event begin = {.kind = SPAN_START};
        apply(crossing, &begin);
    }
    uint32_t tree = keyed_rows_number(&forest->trees, crossing->tree);
    if (span_find_row(forest, &forest->workers, tree, name) != NULL)
        return;
    struct span_event join = {
        .kind = SPAN_JOIN, .worker = name, .threads = crossing->phases->threads};
    apply(crossing, &join);
    crossing->job->ranks++;
}

static void cross(struct span_phases *phases, const struct boundary_row *boundary) {
    struct crossing crossing = {
        .phases = phases, .boundary = boundary, .time_s = (double)boundary->time_ns / 1e9};
    struct span_tree_key tree = {STRING_NONE, boundary->job};
    bool is_new;
    arena_reset(&phases->scratch);
    crossing.job = keyed_rows_get(&phases->jobs, &boundary->job, &is_new);
    crossing.tree = span_forest_tree(phases->forest, tree, boundary->time_ns);
    crossing.tree->job = boundary->job;
    if (boundary->world > (int64_t)crossing.job->world)
        crossing.job->world = (uint32_t)boundary->world;
    introduce(&crossing);
    struct phase_label_key label = {keyed_rows_number(&phases->jobs, crossing.job),
                                    boundary->label};
    crossing.label = keyed_rows_get(&phases->labels, &label, &is_new);
    if (is_new)
        crossing.label->waiting = ROW_LIST_EMPTY;
    crossing.label_row = keyed_rows_number(&phases->labels, crossing.label);
    struct phase_rank_key rank = {
        crossing.label_row,
        boundary->rank,
        {(uint32_t)boundary->thread, (uint32_t)((uint64_t)boundary->thread >> 32)}};
    crossing.rank = keyed_rows_get(&phases->ranks, &rank, &is_new);
    if (is_new)
        crossing.rank->visit = TABLE_NO_ROW;
    struct phase_opening *opening = NULL;
    if (crossing.rank->visit != TABLE_NO_ROW) {
        const struct phase_visit *visit = table_row(&phases->visits, crossing.rank->visit);
        opening = table_row(&phases->openings.table, visit->opening);
        end_visit(&crossing, boundary->is_enter ? 0 : boundary->time_ns);
    }
    if (boundary->is_enter) {
        if (crossing.rank->session != boundary->session && crossing.rank->number > 0) {
            crossing.rank->restarts++;
            crossing.rank->number = 0;
        }
        crossing.rank->session = boundary->session;
        crossing.rank->number++;
        begin_visit(&crossing);
    }
    settle(&crossing, opening);
}

static int compare_rows(const void *a, const void *b) {
    const struct boundary_row *left = *(const struct boundary_row *const *)a;
    const struct boundary_row *right = *(const struct boundary_row *const *)b;
    return COMPARE_KEYS(COMPARE(left->time_ns, right->time_ns), COMPARE(left->rank, right->rank),
                        COMPARE(left->sequence, right->sequence),
                        COMPARE(right->is_enter, left->is_enter),
                        COMPARE(left->thread, right->thread),
                        slice_compare(intern_slice(left->label), intern_slice(right->label)));
}

void span_phases_judge(struct span_phases *phases, uint64_t until_ns) {
    if (table_live(&phases->waiting) == 0)
        return;
    arena_reset(&phases->order);
    struct boundary_row **due =
        arena_take(&phases->order, table_live(&phases->waiting) * sizeof(struct boundary_row *));
    uint32_t count = 0;
    for (uint32_t i = 0; i < phases->waiting.used; i++) {
        struct boundary_row *row = table_row(&phases->waiting, i);
        if (row->in_use && row->time_ns <= until_ns) {
            due[count++] = row;
            row->number = i;
        }
    }
    sort_stable(due, count, sizeof(struct boundary_row *), &phases->order, compare_rows);
    for (uint32_t i = 0; i < count; i++)
        cross(phases, due[i]);
    for (uint32_t i = 0; i < count; i++) {
        assert(due[i]->in_use && due[i]->time_ns <= until_ns);
        due[i]->in_use = 0;
        table_free(&phases->waiting, due[i]->number);
    }
}

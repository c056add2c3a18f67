// SPDX-License-Identifier: Apache-2.0
// Who was in which phase, and for how long? Boundaries in order of time become the events of a span
// stream (span_apply.c); of each opening of a phase the visits of its ranks are kept until all have
// left, and are then added up. O(log) a boundary for the order, O(depth) for its effect.
#include "processors/spans/phases.h"

#include "base/sort.h"
#include "processors/spans/phase_rows.h"

#include <stdio.h>

enum {
    SCRATCH_BLOCK = 64 * 1024,
    WAITING_MAX = 1 << 20,
    // Openings of a phase that not all ranks have been in: above the first number those that nobody
    // is in are added up, above the second all.
    IDLE_OPENINGS_KEPT = 16,
    OPENINGS_KEPT = 64,
};

void span_phases_init(struct span_phases *phases, struct span_forest *forest, int64_t threads,
                      uint32_t spans_kept) {
    *phases = (struct span_phases){.forest = forest, .threads = threads, .spans_kept = spans_kept};
    table_init(&phases->waiting, "spans.boundaries", sizeof(struct boundary_row), 256);
    keyed_rows_init(&phases->jobs, "spans.jobs", sizeof(struct phase_job), sizeof(string_id), 8);
    keyed_rows_init(&phases->labels, "spans.labels", sizeof(struct phase_label),
                    sizeof(struct phase_label_key), 32);
    keyed_rows_init(&phases->ranks, "spans.phase_ranks", sizeof(struct phase_rank),
                    sizeof(struct phase_rank_key), 64);
    keyed_rows_init(&phases->openings, "spans.openings", sizeof(struct phase_opening),
                    sizeof(struct phase_opening_key), 64);
    table_init(&phases->visits, "spans.visits", sizeof(struct phase_visit), 256);
    arena_init(&phases->scratch, SCRATCH_BLOCK);
    arena_init(&phases->order, SCRATCH_BLOCK);
}

void span_phases_release(struct span_phases *phases) {
    table_release(&phases->waiting);
    keyed_rows_release(&phases->jobs);
    keyed_rows_release(&phases->labels);
    keyed_rows_release(&phases->ranks);
    keyed_rows_release(&phases->openings);
    table_release(&phases->visits);
    arena_release(&phases->scratch);
    arena_release(&phases->order);
}

void span_phases_state(struct span_phases *phases, struct state_list *list) {
    struct state_entry *waiting = state_list_table(list, &phases->waiting);
    state_entry_string(waiting, offsetof(struct boundary_row, job));
    state_entry_string(waiting, offsetof(struct boundary_row, label));
    state_entry_string(waiting, offsetof(struct boundary_row, session));
    struct state_entry *jobs = state_list_table(list, &phases->jobs.table);
    state_entry_string(jobs, offsetof(struct phase_job, job));
    struct state_entry *labels = state_list_table(list, &phases->labels.table);
    state_entry_string(labels, offsetof(struct phase_label, key.label));
    struct state_entry *ranks = state_list_table(list, &phases->ranks.table);
    state_entry_string(ranks, offsetof(struct phase_rank, session));
    state_list_table(list, &phases->openings.table);
    state_list_table(list, &phases->visits);
    state_list_struct(list, "spans.phases", &phases->kept, sizeof phases->kept);
}

void span_phases_restored(struct span_phases *phases) {
    keyed_rows_restored(&phases->jobs);
    keyed_rows_restored(&phases->labels);
    keyed_rows_restored(&phases->ranks);
    keyed_rows_restored(&phases->openings);
}

void span_phases_add(struct span_phases *phases, const struct telemetry *telemetry) {
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

// The annotation of the opening: the job, then each part of the label with the opening that the
// rank is in or was in last.
static struct span_annotation *annotate(struct crossing *crossing, struct slice id) {
    struct span_phases *phases = crossing->phases;
    struct arena *arena = &phases->scratch;
    struct slice label = intern_slice(crossing->label->key.label);
    uint32_t depth = crossing->boundary->depth, parts = 1;
    for (size_t i = 0; i + 3 <= label.size; i++)
        parts += memcmp(label.data + i, " / ", 3) == 0;
    if (parts != depth || depth >= SPAN_DEPTH_MAX)
        parts = 1;
    struct slice *tags = arena_take(arena, (parts + 1) * sizeof *tags);
    struct slice *ids = arena_take(arena, (parts + 1) * sizeof *ids);
    tags[0] = ids[0] = job_text(crossing->boundary->job);
    size_t begin = 0;
    for (uint32_t i = 1; i <= parts; i++) {
        size_t end = begin;
        while (end < label.size &&
               (parts == 1 || end + 3 > label.size || memcmp(label.data + end, " / ", 3) != 0))
            end++;
        tags[i] = (struct slice){label.data + begin, end - begin};
        struct slice prefix = {label.data, end};
        begin = end + 3;
        struct phase_label_key key = {crossing->label->key.job, intern_find(prefix)};
        const struct phase_label *outer = keyed_rows_find(&phases->labels, &key);
        const struct phase_rank *rank = NULL;
        if (outer != NULL) {
            struct phase_rank_key rank_key = crossing->rank->key;
            rank_key.label = keyed_rows_number(&phases->labels, outer);
            rank = keyed_rows_find(&phases->ranks, &rank_key);
        }
        struct phase_opening_key outer_key = {0, rank == NULL ? 0 : rank->restarts,
                                              rank == NULL ? 0 : rank->number};
        ids[i] = phase_opening_id(prefix, &outer_key, arena);
    }
    ids[parts] = id;
    struct span_annotation *annotation = arena_take(arena, sizeof *annotation);
    *annotation = (struct span_annotation){tags, ids, parts + 1};
    return annotation;
}

static struct phase_opening *opening_of(struct crossing *crossing) {
    struct span_phases *phases = crossing->phases;
    struct phase_opening_key key = {crossing->label_row, crossing->rank->restarts,
                                    crossing->rank->number};
    struct phase_opening *opening = keyed_rows_find(&phases->openings, &key);
    if (opening != NULL)
        return opening;
    opening = keyed_rows_add(&phases->openings, &key);
    opening->next = opening->first_visit = TABLE_NO_ROW;
    uint32_t row = keyed_rows_number(&phases->openings, opening);
    if (crossing->label->last_opening == TABLE_NO_ROW)
        crossing->label->first_opening = row;
    else
        ((struct phase_opening *)table_row(&phases->openings.table, crossing->label->last_opening))
            ->next = row;
    crossing->label->last_opening = row;
    crossing->label->kept++;
    return opening;
}

static void begin_visit(struct crossing *crossing) {
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
        struct phase_rank *rank = table_row(&phases->ranks.table, measure.visits[i].rank);
        phase_rank_add(&rank->sums, &measure.visits[i]);
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
        struct phase_opening *oldest = table_row(openings, crossing->label->first_opening);
        if (oldest->inside > 0 && crossing->label->kept <= OPENINGS_KEPT)
            break;
        settle_opening(crossing, oldest);
    }
}

// -- boundaries ---------------------------------------------------------------------------------

static struct phase_job *job_of(struct span_phases *phases, string_id job) {
    struct phase_job *row = keyed_rows_find(&phases->jobs, &job);
    return row != NULL ? row : keyed_rows_add(&phases->jobs, &job);
}

static struct phase_label *label_of(struct span_phases *phases, const struct phase_label_key *key) {
    struct phase_label *label = keyed_rows_find(&phases->labels, key);
    if (label != NULL)
        return label;
    label = keyed_rows_add(&phases->labels, key);
    label->first_opening = label->last_opening = TABLE_NO_ROW;
    return label;
}

static struct phase_rank *rank_of(struct span_phases *phases, const struct phase_rank_key *key) {
    struct phase_rank *rank = keyed_rows_find(&phases->ranks, key);
    if (rank != NULL)
        return rank;
    rank = keyed_rows_add(&phases->ranks, key);
    rank->visit = TABLE_NO_ROW;
    return rank;
}

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
    struct span_named_key key = {keyed_rows_number(&forest->trees, crossing->tree),
                                 span_names_find(&forest->names, name)};
    if (key.name != NAME_NONE && keyed_rows_find(&forest->workers, &key) != NULL)
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
    arena_reset(&phases->scratch);
    crossing.job = job_of(phases, boundary->job);
    crossing.tree = span_forest_tree(phases->forest, tree, boundary->time_ns);
    crossing.tree->job = boundary->job;
    if (boundary->world > (int64_t)crossing.job->world)
        crossing.job->world = (uint32_t)boundary->world;
    introduce(&crossing);
    struct phase_label_key label = {keyed_rows_number(&phases->jobs, crossing.job),
                                    boundary->label};
    crossing.label = label_of(phases, &label);
    crossing.label_row = keyed_rows_number(&phases->labels, crossing.label);
    struct phase_rank_key rank = {
        crossing.label_row,
        boundary->rank,
        {(uint32_t)boundary->thread, (uint32_t)((uint64_t)boundary->thread >> 32)}};
    crossing.rank = rank_of(phases, &rank);
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
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->sequence != right->sequence)
        return left->sequence < right->sequence ? -1 : 1;
    if (left->is_enter != right->is_enter)
        return left->is_enter ? -1 : 1;
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    return slice_compare(intern_slice(left->label), intern_slice(right->label));
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
        due[i]->in_use = 0;
        table_free(&phases->waiting, due[i]->number);
    }
}

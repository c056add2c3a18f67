// SPDX-License-Identifier: Apache-2.0
// What do openings of phases come to, and which ranks lag in them? Medians by sorting the visits of
// one opening; a report adds what is still open to what was added up before.
#include "processors/spans/phase_rows.h"

#include "base/sort.h"

struct slice phase_opening_id(struct slice label, const struct phase_opening_key *key,
                              struct arena *arena) {
    if (key->restarts == 0)
        return slice_of(arena_format(arena, "%.*s#%u", (int)label.size, label.data, key->number));
    return slice_of(arena_format(arena, "%.*s#%u.%u", (int)label.size, label.data,
                                 key->restarts + 1, key->number));
}

// -- an opening ---------------------------------------------------------------------------------

static int compare_numbers(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, uint32_t count, struct arena *arena) {
    if (count == 0)
        return 0;
    sort_stable(values, count, sizeof *values, arena, compare_numbers);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

void phase_measure(const struct span_phases *phases, const struct span_tree_row *tree,
                   const struct phase_opening *opening, struct slice id, struct arena *arena,
                   struct phase_measure *measure) {
    const struct phase_visit *visit;
    struct visit_measure *visits = arena_zero(arena, opening->visits + 1, sizeof *visits);
    double *ended = arena_take(arena, (opening->visits + 1) * sizeof *ended);
    uint32_t ended_count = 0, last = 0;
    uint64_t last_ns = 0;
    *measure = (struct phase_measure){.visits = visits};
    for (uint32_t at = opening->first_visit; at != TABLE_NO_ROW; at = visit->next) {
        visit = table_row(&phases->visits, at);
        struct visit_measure *one = &visits[measure->count];
        one->rank = visit->rank;
        one->inside = visit->inside != 0;
        if (visit->whole) {
            one->busy_s = (double)(visit->exit_ns - visit->enter_ns) / 1e9;
            ended[ended_count++] = one->busy_s;
        } else if (visit->inside && tree->now_s > (double)visit->enter_ns / 1e9) {
            one->busy_s = tree->now_s - (double)visit->enter_ns / 1e9;
        }
        if (visit->whole && visit->exit_ns > last_ns) {
            last_ns = visit->exit_ns;
            last = measure->count;
        }
        measure->busy_s += one->busy_s;
        measure->count++;
    }
    double middle = median(ended, ended_count, arena);
    for (uint32_t i = 0; ended_count > 1 && i < measure->count; i++)
        if (visits[i].busy_s > middle)
            visits[i].lag_s = visits[i].busy_s - middle;
    visits[last].slowest = ended_count > 1 && ended_count == measure->count;
    uint32_t span = span_find(phases->forest, tree, id);
    if (span == SPAN_NONE)
        return;
    struct span_answer answer;
    struct span_tree handle = {phases->forest, tree};
    span_answer_one(&handle, span, tree->now_s, arena, &answer);
    measure->thread_s = answer.active_cpu_s;
}

void phase_rank_add(struct phase_rank_sums *sums, const struct visit_measure *visit) {
    sums->openings++;
    sums->slowest += visit->slowest;
    sums->busy_s += visit->busy_s;
    sums->lag_s += visit->lag_s;
}

void phase_opening_remove(struct span_phases *phases, struct phase_label *label,
                          struct phase_opening *opening) {
    uint32_t row = keyed_rows_number(&phases->openings, opening), before = TABLE_NO_ROW;
    uint32_t *link = &label->first_opening;
    while (*link != row) {
        before = *link;
        link = &((struct phase_opening *)table_row(&phases->openings.table, before))->next;
    }
    *link = opening->next;
    if (label->last_opening == row)
        label->last_opening = before;
    label->kept--;
    for (uint32_t at = opening->first_visit; at != TABLE_NO_ROW;) {
        const struct phase_visit *visit = table_row(&phases->visits, at);
        uint32_t next = visit->next;
        table_free(&phases->visits, at);
        at = next;
    }
    keyed_rows_remove(&phases->openings, opening);
}

// -- a report -----------------------------------------------------------------------------------

// A label of the job on its way into the report.
struct listed {
    const struct phase_label *label;
    struct slice text;
    struct span_phase *phase;
    struct span_phase_rank *ranks;
    uint32_t rank_count;
};

static int compare_listed(const void *a, const void *b) {
    return slice_compare(((const struct listed *)a)->text, ((const struct listed *)b)->text);
}

static int compare_rank(const void *a, const void *b) {
    const struct span_phase_rank *left = a, *right = b;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static int compare_lag(const void *a, const void *b) {
    const struct span_phase_rank *left = a, *right = b;
    if (left->lag_s != right->lag_s)
        return left->lag_s > right->lag_s ? -1 : 1;
    return compare_rank(a, b);
}

static uint32_t list_labels(const struct span_phases *phases, uint32_t job, struct listed *list) {
    const struct phase_label *label;
    uint32_t count = 0;
    for (uint32_t at = 0; (label = keyed_rows_next(&phases->labels, &at)) != NULL;) {
        if (label->key.job != job)
            continue;
        if (list != NULL)
            list[count] = (struct listed){.label = label, .text = intern_slice(label->key.label)};
        count++;
    }
    return count;
}

// Sums of every rank of these labels. `sums_of[row]` is where those of a rank's row stand.
static void list_ranks(const struct span_phases *phases, struct listed **listed_of,
                       struct span_phase_rank **sums_of, struct arena *arena) {
    const struct phase_rank *rank;
    for (uint32_t at = 0; (rank = keyed_rows_next(&phases->ranks, &at)) != NULL;)
        if (listed_of[rank->key.label] != NULL)
            listed_of[rank->key.label]->rank_count++;
    for (uint32_t at = 0; (rank = keyed_rows_next(&phases->ranks, &at)) != NULL;) {
        struct listed *listed = listed_of[rank->key.label];
        if (listed == NULL)
            continue;
        if (listed->ranks == NULL) {
            listed->ranks = arena_take(arena, listed->rank_count * sizeof *listed->ranks);
            listed->rank_count = 0;
        }
        struct span_phase_rank *sums = &listed->ranks[listed->rank_count++];
        *sums = (struct span_phase_rank){.rank = rank->key.rank,
                                         .openings = rank->sums.openings,
                                         .slowest = rank->sums.slowest,
                                         .busy_s = rank->sums.busy_s,
                                         .lag_s = rank->sums.lag_s};
        sums_of[at - 1] = sums;
    }
}

static void add_open(const struct span_phases *phases, const struct span_tree_row *tree,
                     struct listed *listed, struct span_phase_rank **sums_of, struct arena *arena) {
    struct span_phase *phase = listed->phase;
    const struct phase_opening *opening;
    for (uint32_t at = listed->label->first_opening; at != TABLE_NO_ROW; at = opening->next) {
        struct phase_measure measure;
        opening = table_row(&phases->openings.table, at);
        phase_measure(phases, tree, opening, phase_opening_id(listed->text, &opening->key, arena),
                      arena, &measure);
        phase->openings++;
        phase->thread_s += measure.thread_s;
        phase->busy_s += measure.busy_s;
        for (uint32_t i = 0; i < measure.count; i++) {
            struct span_phase_rank *sums = sums_of[measure.visits[i].rank];
            sums->openings++;
            sums->slowest += measure.visits[i].slowest;
            sums->busy_s += measure.visits[i].busy_s;
            sums->lag_s += measure.visits[i].lag_s;
            sums->inside |= measure.visits[i].inside;
        }
    }
}

// Threads of one rank count together.
static void finish_phase(struct listed *listed, struct arena *arena) {
    struct span_phase_rank *ranks = listed->ranks;
    uint32_t kept = 0;
    sort_stable(ranks, listed->rank_count, sizeof *ranks, arena, compare_rank);
    for (uint32_t i = 0; i < listed->rank_count; i++) {
        if (kept == 0 || ranks[kept - 1].rank != ranks[i].rank) {
            ranks[kept++] = ranks[i];
            continue;
        }
        ranks[kept - 1].openings += ranks[i].openings;
        ranks[kept - 1].slowest += ranks[i].slowest;
        ranks[kept - 1].busy_s += ranks[i].busy_s;
        ranks[kept - 1].lag_s += ranks[i].lag_s;
        ranks[kept - 1].inside |= ranks[i].inside;
    }
    sort_stable(ranks, kept, sizeof *ranks, arena, compare_lag);
    listed->phase->ranks = ranks;
    listed->phase->rank_count = kept;
    double idle_s = listed->phase->thread_s - listed->phase->busy_s;
    listed->phase->idle_s = idle_s > 0 ? idle_s : 0;
}

static uint32_t depth_of(struct slice label) {
    uint32_t parts = 1;
    for (size_t i = 0; i + 3 <= label.size; i++)
        parts += memcmp(label.data + i, " / ", 3) == 0;
    return parts;
}

const struct span_phase *span_phases_of(const struct span_phases *phases,
                                        const struct span_tree_row *tree, struct arena *arena,
                                        uint32_t *count) {
    const struct phase_job *job = keyed_rows_find(&phases->jobs, &tree->key.job);
    *count = 0;
    if (tree->key.source != STRING_NONE || job == NULL)
        return NULL;
    uint32_t row = keyed_rows_number(&phases->jobs, job);
    *count = list_labels(phases, row, NULL);
    struct listed *list = arena_take(arena, *count * sizeof *list + 1);
    struct span_phase *items = arena_zero(arena, *count + 1, sizeof *items);
    struct listed **listed_of =
        arena_zero(arena, phases->labels.table.used + 1, sizeof(struct listed *));
    struct span_phase_rank **sums_of =
        arena_zero(arena, phases->ranks.table.used + 1, sizeof(struct span_phase_rank *));
    list_labels(phases, row, list);
    sort_stable(list, *count, sizeof *list, arena, compare_listed);
    for (uint32_t i = 0; i < *count; i++) {
        listed_of[keyed_rows_number(&phases->labels, list[i].label)] = &list[i];
        list[i].phase = &items[i];
        items[i] = (struct span_phase){.label = list[i].text,
                                       .depth = depth_of(list[i].text),
                                       .openings = list[i].label->openings,
                                       .thread_s = list[i].label->thread_s,
                                       .busy_s = list[i].label->busy_s};
    }
    list_ranks(phases, listed_of, sums_of, arena);
    for (uint32_t i = 0; i < *count; i++) {
        add_open(phases, tree, &list[i], sums_of, arena);
        finish_phase(&list[i], arena);
    }
    return items;
}

// -- forgetting ---------------------------------------------------------------------------------

static void forget_label(struct span_phases *phases, struct phase_label *label) {
    uint32_t row = keyed_rows_number(&phases->labels, label);
    struct phase_rank *rank;
    while (label->first_opening != TABLE_NO_ROW)
        phase_opening_remove(phases, label,
                             table_row(&phases->openings.table, label->first_opening));
    for (uint32_t at = 0; (rank = keyed_rows_next(&phases->ranks, &at)) != NULL;)
        if (rank->key.label == row)
            keyed_rows_remove(&phases->ranks, rank);
    keyed_rows_remove(&phases->labels, label);
}

static void forget_job(struct span_phases *phases, struct phase_job *job) {
    struct span_tree_key key = {STRING_NONE, job->job};
    uint32_t row = keyed_rows_number(&phases->jobs, job);
    struct phase_label *label;
    for (uint32_t at = 0; (label = keyed_rows_next(&phases->labels, &at)) != NULL;)
        if (label->key.job == row)
            forget_label(phases, label);
    for (uint32_t i = 0; i < phases->waiting.used; i++) {
        struct boundary_row *boundary = table_row(&phases->waiting, i);
        if (boundary->in_use == 0 || boundary->job != job->job)
            continue;
        boundary->in_use = 0;
        table_free(&phases->waiting, i);
    }
    struct span_tree_row *tree = keyed_rows_find(&phases->forest->trees, &key);
    if (tree != NULL)
        span_forest_drop_tree(phases->forest, tree);
    keyed_rows_remove(&phases->jobs, job);
}

void span_phases_forget(struct span_phases *phases, const struct forgotten *forgotten) {
    struct phase_job *job;
    for (uint32_t at = 0;
         forgotten->everything && (job = keyed_rows_next(&phases->jobs, &at)) != NULL;)
        forget_job(phases, job);
    for (uint32_t i = 0; i < forgotten->job_count; i++) {
        job = keyed_rows_find(&phases->jobs, &forgotten->jobs[i].job);
        if (job != NULL)
            forget_job(phases, job);
    }
}

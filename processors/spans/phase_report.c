// SPDX-License-Identifier: Apache-2.0
// Measures openings of phases and finds the ranks that lag in them. Medians by sorting the visits
// of one opening; a report adds what is still open to what was added up before.
#include "processors/spans/phase_report.h"

#include "base/sort.h"
#include "processors/spans/answer.h"

#include <assert.h>

// -- an opening ---------------------------------------------------------------------------------

static double median(double *values, uint32_t count, struct arena *arena) {
    if (count == 0)
        return 0;
    sort_stable(values, count, sizeof *values, arena, compare_by_double);
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
        one->row = visit->rank;
        one->sums.openings = 1;
        one->sums.inside = visit->inside != 0;
        if (visit->whole) {
            assert(visit->exit_ns >= visit->enter_ns);
            one->sums.busy_s = (double)(visit->exit_ns - visit->enter_ns) / 1e9;
            ended[ended_count++] = one->sums.busy_s;
        } else if (visit->inside && tree->now_s > (double)visit->enter_ns / 1e9) {
            one->sums.busy_s = tree->now_s - (double)visit->enter_ns / 1e9;
        }
        if (visit->whole && visit->exit_ns > last_ns) {
            last_ns = visit->exit_ns;
            last = measure->count;
        }
        measure->busy_s += one->sums.busy_s;
        measure->count++;
    }
    assert(measure->count == opening->visits);
    double middle = median(ended, ended_count, arena);
    for (uint32_t i = 0; ended_count > 1 && i < measure->count; i++)
        if (visits[i].sums.busy_s > middle)
            visits[i].sums.lag_s = visits[i].sums.busy_s - middle;
    visits[last].sums.slowest = ended_count > 1 && ended_count == measure->count;
    uint32_t span = span_find(phases->forest, tree, id);
    if (span == SPAN_NONE)
        return;
    struct span_answer answer;
    struct span_tree handle = {phases->forest, tree};
    span_answer_one(&handle, span, tree->now_s, arena, &answer);
    measure->thread_s = answer.active_cpu_s;
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

static int compare_lag(const void *a, const void *b) {
    const struct span_phase_rank *left = a, *right = b;
    return COMPARE_KEYS(COMPARE(right->lag_s, left->lag_s), COMPARE(left->rank, right->rank));
}

static void add_sums(struct span_phase_rank *into, const struct span_phase_rank *from) {
    into->openings += from->openings;
    into->slowest += from->slowest;
    into->busy_s += from->busy_s;
    into->lag_s += from->lag_s;
    into->inside |= from->inside;
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
    for (uint32_t at = listed->label->waiting.first; at != TABLE_NO_ROW; at = opening->next) {
        struct phase_measure measure;
        opening = table_row(&phases->openings.table, at);
        phase_measure(phases, tree, opening, phase_opening_id(listed->text, &opening->key, arena),
                      arena, &measure);
        phase->openings++;
        phase->thread_s += measure.thread_s;
        phase->busy_s += measure.busy_s;
        for (uint32_t i = 0; i < measure.count; i++)
            add_sums(sums_of[measure.visits[i].row], &measure.visits[i].sums);
    }
}

// Threads of one rank count together.
static void finish_phase(struct listed *listed, struct arena *arena) {
    struct span_phase_rank *ranks = listed->ranks;
    uint32_t kept = 0;
    _Static_assert(offsetof(struct span_phase_rank, rank) == 0, "for compare_by_i32");
    sort_stable(ranks, listed->rank_count, sizeof *ranks, arena, compare_by_i32);
    for (uint32_t i = 0; i < listed->rank_count; i++) {
        if (kept > 0 && ranks[kept - 1].rank == ranks[i].rank)
            add_sums(&ranks[kept - 1], &ranks[i]);
        else
            ranks[kept++] = ranks[i];
    }
    sort_stable(ranks, kept, sizeof *ranks, arena, compare_lag);
    listed->phase->ranks = ranks;
    listed->phase->rank_count = kept;
    double idle_s = listed->phase->thread_s - listed->phase->busy_s;
    listed->phase->idle_s = idle_s > 0 ? idle_s : 0;
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
                                       .depth = phase_depth(list[i].text),
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

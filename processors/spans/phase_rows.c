// SPDX-License-Identifier: Apache-2.0
// Keeps the rows of phases, and forgets those of jobs that are gone. Forgetting costs O(rows), the
// rest O(openings of a label that are not added up yet), which are few.
#include "processors/spans/phase_rows.h"

#include <assert.h>

enum { SCRATCH_BLOCK = 64 * 1024 };

static const struct row_type BOUNDARIES =
    ROW_TYPE(struct boundary_row, 256, offsetof(struct boundary_row, job),
             offsetof(struct boundary_row, label), offsetof(struct boundary_row, session));
static const struct row_type JOBS =
    KEYED_ROW_TYPE(struct phase_job, job, 8, offsetof(struct phase_job, job));
static const struct row_type LABELS =
    KEYED_ROW_TYPE(struct phase_label, key, 32, offsetof(struct phase_label, key.label));
static const struct row_type RANKS =
    KEYED_ROW_TYPE(struct phase_rank, key, 64, offsetof(struct phase_rank, session));
static const struct row_type OPENINGS = KEYED_ROW_TYPE(struct phase_opening, key, 64);
static const struct row_type VISITS = ROW_TYPE(struct phase_visit, 256);

static const struct state_row STATE[] = {
    STATE_ROWS(struct span_phases, waiting, "spans.boundaries", BOUNDARIES),
    STATE_ROWS(struct span_phases, jobs, "spans.jobs", JOBS),
    STATE_ROWS(struct span_phases, labels, "spans.labels", LABELS),
    STATE_ROWS(struct span_phases, ranks, "spans.phase_ranks", RANKS),
    STATE_ROWS(struct span_phases, openings, "spans.openings", OPENINGS),
    STATE_ROWS(struct span_phases, visits, "spans.visits", VISITS),
    STATE_STRUCT(struct span_phases, kept, "spans.phases"),
};

static void phases_init(void *part, const char *name) {
    struct span_phases *phases = part;
    (void)name;
    arena_init(&phases->scratch, SCRATCH_BLOCK);
    arena_init(&phases->order, SCRATCH_BLOCK);
}

static void phases_release(void *part) {
    struct span_phases *phases = part;
    arena_release(&phases->scratch);
    arena_release(&phases->order);
}

const struct state_part span_phases_part = {.rows = STATE,
                                            .row_count = STATE_ROW_COUNT(STATE),
                                            .init = phases_init,
                                            .release = phases_release};

uint32_t phase_depth(struct slice label) {
    uint32_t parts = 1;
    for (size_t at = 0; at + 3 <= label.size; at++)
        if (memcmp(label.data + at, " / ", 3) == 0) {
            parts++;
            at += 2; // separators do not overlap
        }
    return parts;
}

struct slice phase_opening_id(struct slice label, const struct phase_opening_key *key,
                              struct arena *arena) {
    if (key->restarts == 0)
        return slice_of(arena_format(arena, "%.*s#%u", (int)label.size, label.data, key->number));
    return slice_of(arena_format(arena, "%.*s#%u.%u", (int)label.size, label.data,
                                 key->restarts + 1, key->number));
}

void phase_opening_remove(struct span_phases *phases, struct phase_label *label,
                          struct phase_opening *opening) {
    uint32_t row = keyed_rows_number(&phases->openings, opening), before = TABLE_NO_ROW;
    uint32_t *link = &label->waiting.first;
    assert(label->kept > 0);
    while (*link != row) {
        before = *link;
        link = &((struct phase_opening *)table_row(&phases->openings.table, before))->next;
    }
    *link = opening->next;
    if (label->waiting.last == row)
        label->waiting.last = before;
    label->kept--;
    table_free_list(&phases->visits, offsetof(struct phase_visit, next), &opening->first_visit);
    keyed_rows_remove(&phases->openings, opening);
}

static void forget_label(struct span_phases *phases, struct phase_label *label) {
    uint32_t row = keyed_rows_number(&phases->labels, label);
    struct phase_rank *rank;
    while (label->waiting.first != TABLE_NO_ROW)
        phase_opening_remove(phases, label,
                             table_row(&phases->openings.table, label->waiting.first));
    for (uint32_t at = 0; (rank = keyed_rows_next(&phases->ranks, &at)) != NULL;)
        if (rank->key.label == row)
            keyed_rows_remove(&phases->ranks, rank);
    keyed_rows_remove(&phases->labels, label);
}

static void forget_job(struct span_phases *phases, struct phase_job *job) {
    struct span_tree_key key = {STRING_NONE, job->job};
    uint32_t row = keyed_rows_number(&phases->jobs, job);
    assert(phases->forest != NULL);
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

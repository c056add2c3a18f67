// SPDX-License-Identifier: Apache-2.0
// Records verdicts on the board.
//
// The first word of one that was not open counts it and measures its latency; later ones put its
// labels and figures right; resolved, its row goes. A verdict that finds no room is remembered
// without series, so that it is known when it changes or ends. One look-up a verdict.
#include "exporters/prometheus/board_parts.h"

#include <stdio.h>

const double board_bounds[BOARD_BUCKETS] = {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};

// Whom a verdict blames: its culprits, or its one suspect. Several suspects and no culprit: nobody.
static bool blames_nobody(const struct verdict *verdict) {
    return verdict->entity_count > 1 && verdict->entities[0].role != ROLE_CULPRIT;
}

// The first culprit of this kind, or who is suspected alone; they come first.
static struct slice blamed(const struct verdict *verdict, const char *kind) {
    if (blames_nobody(verdict))
        return (struct slice){"", 0};
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role == verdict->entities[0].role && entity->role != ROLE_VICTIM &&
            strcmp(entity->kind, kind) == 0)
            return entity->name;
    }
    return (struct slice){"", 0};
}

static struct slice attribute(const struct verdict *verdict, const char *key) {
    for (uint32_t i = 0; i < verdict->attribute_count && !blames_nobody(verdict); i++)
        if (strcmp(verdict->attributes[i].key, key) == 0)
            return verdict->attributes[i].value;
    return (struct slice){"", 0};
}

static string_id node_of(const struct verdict *verdict) {
    struct slice node = blamed(verdict, "node");
    if (node.size == 0)
        node = attribute(verdict, "k8s.node.name");
    if (node.size == 0)
        node = attribute(verdict, "host.name");
    return board_label(node);
}

static void count(struct board *board, string_id job, const struct verdict *verdict, bool known) {
    struct counter_key key = {.job = job,
                              .pattern = board_label(slice_of(verdict->pattern)),
                              .kind = board_label(slice_of(verdict->kind)),
                              .severity = (uint32_t)verdict->severity};
    struct counter_row *row = keyed_rows_find(&board->counters, &key);
    if (row == NULL && known && board_take_series(board, 1))
        row = keyed_rows_add(&board->counters, &key);
    if (row != NULL) {
        row->count++;
        return;
    }
    board->folded.verdicts++;
    board->overflow_count++;
}

static void observe(struct board *board, const struct verdict *verdict, uint64_t unix_ns) {
    string_id pattern = board_label(slice_of(verdict->pattern));
    struct pattern_row *row = keyed_rows_find(&board->patterns, &pattern);
    if (row == NULL && board_take_series(board, BOARD_PATTERN_SERIES))
        row = keyed_rows_add(&board->patterns, &pattern);
    struct latency *latency = row == NULL ? &board->folded.latency : &row->latency;
    board->overflow_count += row == NULL;
    double value_s =
        unix_ns > verdict->end_ns ? exposition_quotient(unix_ns - verdict->end_ns, 1000000000) : 0;
    uint32_t bucket = 0;
    while (bucket < BOARD_BUCKETS && value_s > board_bounds[bucket])
        bucket++;
    assert(bucket <= BOARD_BUCKETS && value_s >= 0);
    latency->counts[bucket]++;
    latency->sum_s += value_s;
    struct latency_exemplar *exemplar = &latency->exemplars[bucket];
    snprintf(exemplar->id, sizeof exemplar->id, "%s", verdict->id);
    exemplar->value_s = value_s;
    exemplar->time_s = exposition_quotient(unix_ns, 1000000000);
}

// Fills in what may change while it is open, and says whether its labels did.
static void describe(struct board *board, struct open_row *row, const struct verdict *verdict) {
    struct open_row before = *row;
    assert(row->head.live);
    row->pattern = board_label(slice_of(verdict->pattern));
    row->kind = board_label(slice_of(verdict->kind));
    row->rank = board_label(blamed(verdict, "rank"));
    row->node = node_of(verdict);
    row->phase = board_label(attribute(verdict, "culprit.phase"));
    row->severity = (uint32_t)verdict->severity;
    row->confidence = verdict->confidence;
    row->start_ns = verdict->start_ns;
    if (before.pattern != row->pattern || before.kind != row->kind || before.rank != row->rank ||
        before.node != row->node || before.phase != row->phase || before.severity != row->severity)
        board->sorted = false;
}

static void move_to_job(struct board *board, struct open_row *row, struct job_row *job,
                        string_id name) {
    if (row->counted && row->job == name)
        return;
    struct job_row *former = row->counted ? keyed_rows_find(&board->jobs, &row->job) : NULL;
    assert(former == NULL || former->open > 0);
    if (former != NULL)
        former->open--;
    row->job = name;
    row->counted = job != NULL;
    if (job != NULL)
        job->open++;
    board->sorted = false;
}

void board_verdict(struct board *board, const struct verdict *verdict, struct board_moment now) {
    char id[BOARD_ID_SIZE] = {0};
    snprintf(id, sizeof id, "%s", verdict->id);
    string_id name = board_label_id(verdict->job);
    struct job_row *job = board_job(board, name, now.monotonic_ns);
    struct open_row *row = keyed_rows_find(&board->open, id);
    if (verdict->state == VERDICT_RESOLVED) {
        if (row != NULL)
            board_close(board, row);
        return;
    }
    bool opens = row == NULL;
    if (opens && keyed_rows_count(&board->open) < BOARD_OPEN_MAX)
        row = keyed_rows_add(&board->open, id);
    // Of one that is not remembered only the verdict itself can say whether it is new.
    if (opens && (row != NULL || verdict->state == VERDICT_OPEN)) {
        count(board, name, verdict, job != NULL);
        if (board->live)
            observe(board, verdict, now.unix_ns);
    }
    if (row == NULL) {
        board->overflow_count += BOARD_OPEN_SERIES;
        return;
    }
    move_to_job(board, row, job, name);
    describe(board, row, verdict);
    if (!row->admitted)
        row->admitted = row->counted && board_take_series(board, BOARD_OPEN_SERIES);
    if (!row->admitted)
        board->overflow_count += BOARD_OPEN_SERIES;
}

void board_unfold(struct board *board) {
    uint32_t at = 0;
    if (board->max_series - board->series_count < BOARD_OPEN_SERIES)
        return;
    for (struct open_row *row; (row = keyed_rows_next(&board->open, &at)) != NULL;)
        if (!row->admitted && row->counted)
            row->admitted = board_take_series(board, BOARD_OPEN_SERIES);
    assert(board->series_count <= board->max_series);
}

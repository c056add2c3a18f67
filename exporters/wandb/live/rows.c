// SPDX-License-Identifier: Apache-2.0
// Writes samples as history rows.
//
// Event time is cut into stretches of row_interval; the last sample of each rank in each stretch
// that has passed becomes a row, by its own time and then by rank, so that rows of all evaluations
// are in order of time. O(new samples), and a sort of the rows.
#include "base/sort.h"
#include "exporters/report/page/parts.h"
#include "exporters/wandb/live/live.h"
#include "exporters/wandb/metrics.h"
#include "exporters/wandb/table.h"
#include "pipeline/model/series.h"

#include <stdio.h>
#include <stdlib.h>

static int compare_chosen(const void *left, const void *right) {
    const struct live_chosen *a = left;
    const struct live_chosen *b = right;
    return COMPARE_KEYS(COMPARE(a->sample->time_ns, b->sample->time_ns), COMPARE(a->rank, b->rank));
}

// Where time is cut: longer stretches when there would be too many of them at once.
struct grid {
    uint64_t from_ns, until_ns; // samples from here, before there
    uint64_t step_ns;
};

static struct grid make_grid(const struct live *live, const struct live_run *run,
                             const struct evaluation *evaluation, uint64_t seen_ns,
                             uint64_t until_ns) {
    assert(live->config->row_interval.ns > 0);
    struct grid grid = {.step_ns = (uint64_t)live->config->row_interval.ns};
    grid.from_ns = run->said_until_ns > 0 ? run->said_until_ns
                                          : run->started_ns - run->started_ns % grid.step_ns;
    // What is before a later start of the job belongs to another run.
    if (!live->once && run->generation > 0 && grid.from_ns < run->started_ns)
        grid.from_ns = run->started_ns;
    grid.until_ns = evaluation->last ? seen_ns + 1 : seen_ns - seen_ns % grid.step_ns;
    if (until_ns != UINT64_MAX)
        grid.until_ns = until_ns;
    if (grid.until_ns <= grid.from_ns)
        return (struct grid){0};
    uint64_t stretches = (grid.until_ns - grid.from_ns) / grid.step_ns;
    grid.step_ns *= stretches / LIVE_BUCKETS_MAX + 1;
    return grid;
}

static bool is_among(const struct suspect_list *suspects, uint32_t index) {
    for (uint32_t i = 0; suspects != NULL && i < suspects->count; i++)
        if (suspects->items[i].index == index)
            return true;
    return false;
}

// The summary's, or the verdict's.
static bool is_suspect(const struct evaluation *evaluation, uint32_t index) {
    return is_among(evaluation->suspects, index) ||
           (evaluation->cause != NULL && is_among(&evaluation->cause->suspects, index));
}

static void add(struct live_choice *choice, struct live_chosen item) {
    if (choice->count == choice->capacity) {
        choice->capacity = choice->capacity == 0 ? 256 : choice->capacity * 2;
        struct live_chosen *items =
            arena_take(choice->arena, choice->capacity * sizeof *choice->items);
        if (choice->count > 0)
            memcpy(items, choice->items, choice->count * sizeof *items);
        choice->items = items;
    }
    assert(choice->count < choice->capacity);
    choice->items[choice->count++] = item;
}

static void choose(struct live_choice *choice, const struct evaluation *evaluation, uint32_t index,
                   const struct grid *grid) {
    assert(grid->step_ns > 0 && grid->from_ns < grid->until_ns);
    const struct rank_series *series = evaluation->ranks[index].series;
    struct series_cursor cursor = series_seek(evaluation->store, series, grid->from_ns);
    struct live_chosen last = {.sample = NULL};
    const struct sample *rows;
    uint32_t count;
    while ((count = series_next_run(evaluation->store, series, &cursor, grid->until_ns - 1,
                                    &rows)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            if (rows[i].time_ns < grid->from_ns)
                continue;
            uint64_t stretch = rows[i].time_ns / grid->step_ns;
            if (last.sample != NULL && stretch != last.stretch)
                add(choice, last);
            last = (struct live_chosen){stretch, series->rank, &rows[i]};
        }
    }
    if (last.sample != NULL)
        add(choice, last);
}

static void member(struct buffer *members, const char *name, int32_t rank,
                   struct wandb_cell value) {
    char key[64];
    snprintf(key, sizeof key, "%s/rank_%d", name, rank);
    wandb_member(members, key, value);
}

void live_put_elapsed(struct buffer *members, const struct live_run *run, uint64_t time_ns) {
    uint64_t since = time_ns > run->started_ns ? time_ns - run->started_ns : 0;
    wandb_member(members, WANDB_STEP_METRIC, cell_number((double)since / 1e9));
}

static void say(struct live *live, const struct live_run *run, const struct evaluation *evaluation,
                const struct live_chosen *chosen, struct wandb_writer *writer) {
    const struct sample *sample = chosen->sample;
    struct buffer *members = &live->members;
    int32_t rank = chosen->rank;
    buffer_reset(members);
    live_put_elapsed(members, run, sample->time_ns);
    member(members, "device_used_bytes", rank, cell_int(sample->used_bytes));
    if ((sample->flags & SAMPLE_ALLOCATED_NULL) == 0)
        member(members, "allocated_bytes", rank, cell_int(sample->allocated_bytes));
    if ((sample->flags & SAMPLE_RESERVED_NULL) == 0)
        member(members, "reserved_bytes", rank, cell_int(sample->reserved_bytes));
    int64_t total = page_notes_device_bytes(live->notes, evaluation->job, rank);
    if (total > 0)
        member(members, "utilization_percent", rank,
               cell_number((double)sample->used_bytes / (double)total * 100));
    wandb_say(writer, &(struct wandb_record){.kind = WANDB_ROW,
                                             .time_ns = sample->time_ns,
                                             .members = buffer_slice(members)});
}

static int compare_by_rank(const void *left, const void *right) {
    const struct live_chosen *a = left;
    const struct live_chosen *b = right;
    return COMPARE_KEYS(COMPARE(a->rank, b->rank), COMPARE(a->sample->time_ns, b->sample->time_ns));
}

static bool gets_rows(const struct live *live, const struct evaluation *evaluation,
                      uint32_t index) {
    return index < (uint64_t)live->config->max_ranks || is_suspect(evaluation, index);
}

void live_choose_held(const struct live *live, const struct live_run *run,
                      const struct evaluation *evaluation, uint64_t until_ns, uint32_t room,
                      struct live_choice *choice) {
    uint64_t first_ns = UINT64_MAX;
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        struct series_cursor cursor = series_begin(evaluation->ranks[i].series);
        const struct sample *first =
            series_next(evaluation->store, evaluation->ranks[i].series, &cursor, until_ns);
        if (!gets_rows(live, evaluation, i) || first == NULL)
            continue;
        ranks++;
        if (first->time_ns < first_ns)
            first_ns = first->time_ns;
    }
    if (first_ns < run->started_ns)
        first_ns = run->started_ns;
    if (ranks == 0 || ranks * 2 > room || first_ns > until_ns)
        return;
    // A rank has at most one in each stretch, of which the range may touch one more.
    uint32_t points = room / ranks - 1;
    struct grid grid = {first_ns, until_ns + 1, (until_ns + 1 - first_ns) / points + 1};
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (gets_rows(live, evaluation, i))
            choose(choice, evaluation, i, &grid);
    if (choice->count > 1)
        qsort(choice->items, choice->count, sizeof *choice->items, compare_by_rank);
}

void live_say_rows(struct live *live, struct live_run *run, const struct evaluation *evaluation,
                   uint64_t until_ns, struct arena *arena, struct wandb_writer *writer) {
    struct grid grid = make_grid(live, run, evaluation, writer->time_ns, until_ns);
    if (grid.step_ns == 0)
        return;
    struct live_choice choice = {.arena = arena};
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (gets_rows(live, evaluation, i))
            choose(&choice, evaluation, i, &grid);
    if (choice.count > 1)
        qsort(choice.items, choice.count, sizeof *choice.items, compare_chosen);
    for (size_t i = 0; i < choice.count; i++)
        say(live, run, evaluation, &choice.items[i], writer);
    run->said_until_ns = grid.until_ns;
}

// SPDX-License-Identifier: Apache-2.0
// Writes the memory of all ranks as the table of one chart.
//
// W&B makes a panel of its own of every key, which for 64 ranks are 256: these are hidden, and one
// chart has a line for each rank that gets rows, over the samples that are held. At most
// CHART_ROWS_MAX points, the last sample of each of equal stretches; sent with the findings, and
// else at every tenth table_interval. Costs a look at each of those samples.
#include "exporters/wandb/live/live.h"
#include "exporters/wandb/table.h"

#include <stdio.h>

enum { CHART_ROWS_MAX = 4096, INTERVALS = 10 };
#define CHART_KEY   "culprit_memory_by_rank"
#define BYTES_A_GIB 1073741824.0

static const char *const COLUMNS[] = {"step", "lineKey", "lineVal"};

void live_put_chart(struct buffer *visualize) {
    wandb_chart_member(visualize, CHART_KEY, "Memory used by each rank, GiB",
                       "seconds since the job started");
}

static bool is_due(const struct live *live, const struct live_run *run, bool with_findings,
                   uint64_t now_ns) {
    uint64_t wait_ns = INTERVALS * (uint64_t)live->config->table_interval.ns;
    return run->chart_ns == 0 || with_findings || now_ns >= run->chart_ns + wait_ns;
}

static void say_table(const struct live_run *run, const struct live_choice *choice,
                      struct wandb_writer *writer) {
    struct wandb_table table = {0};
    char name[32];
    wandb_table_begin(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (size_t i = 0; i < choice->count; i++) {
        const struct sample *sample = choice->items[i].sample;
        uint64_t since = sample->time_ns > run->started_ns ? sample->time_ns - run->started_ns : 0;
        snprintf(name, sizeof name, "rank %d", choice->items[i].rank);
        WANDB_TABLE_ROW(&table, cell_number((double)since / 1e9), cell_text(name),
                        cell_number((double)sample->used_bytes / BYTES_A_GIB));
    }
    wandb_table_end(&table);
    (void)wandb_table_say(&table, CHART_KEY "_table", writer);
    wandb_table_release(&table);
}

void live_say_chart(struct live *live, struct live_run *run, const struct evaluation *evaluation,
                    bool with_findings, struct arena *arena, struct wandb_writer *writer) {
    assert(run->begun && evaluation->rank_count > 0);
    if (!live->config->log_tables || !is_due(live, run, with_findings, writer->time_ns))
        return;
    struct live_choice choice = {.arena = arena};
    live_choose_held(live, run, evaluation, writer->time_ns, CHART_ROWS_MAX, &choice);
    if (choice.count == 0)
        return;
    assert(choice.count <= CHART_ROWS_MAX);
    if (!run->has_chart) {
        run->has_chart = true;
        live_say_run(live, run, (struct slice){"", 0}, writer);
    }
    say_table(run, &choice, writer);
    run->chart_ns = writer->time_ns;
}

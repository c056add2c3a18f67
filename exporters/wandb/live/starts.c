// SPDX-License-Identifier: Apache-2.0
// Names the start of a job that a run stands for.
//
// Launchers reuse the names of jobs (torchrun's default is "none"), so a run is named by the job,
// the time of its first sample and the session that wrote it: whoever reads the same input again
// finds the same run, and another start of the job is another one. Inputs that end are one run,
// named by the first start in them. Costs a pass over the ranks and a look into one's series.
#include "exporters/wandb/live/live.h"
#include "pipeline/model/batch.h"
#include "pipeline/model/series.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t live_generation_ns(const struct evaluation *evaluation) {
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (evaluation->ranks[i].in_generation && evaluation->ranks[i].generation_ns < first)
            first = evaluation->ranks[i].generation_ns;
    return first;
}

static void set_start(struct live_run *run, struct slice session, uint64_t time_ns) {
    assert(run->start[0] == '\0');
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, time_ns);
    const struct slice parts[] = {intern_slice(run->job), session, slice_of(text)};
    digest_id(parts, sizeof parts / sizeof parts[0], run->start);
}

// Who wrote the rank's first sample of then; empty when it has expired or names no session.
static struct slice session_at(const struct evaluation *evaluation, const struct rank_view *view,
                               uint64_t time_ns) {
    const struct series_store *store = evaluation->store;
    struct series_cursor cursor = series_seek(store, view->series, time_ns);
    const struct sample *sample = series_next(store, view->series, &cursor, evaluation->as_of_ns);
    if (sample == NULL || sample->time_ns != time_ns)
        return (struct slice){"", 0};
    return intern_slice(series_origin(store, sample)->session);
}

static void name_by_samples(struct live *live, struct live_run *run,
                            const struct evaluation *evaluation) {
    assert(evaluation->rank_count > 0);
    const struct rank_view *earliest = NULL;
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_view *view = &evaluation->ranks[i];
        uint64_t time_ns = live->once ? view->first_ns : view->generation_ns;
        if ((live->once || view->in_generation) && time_ns < first_ns) {
            first_ns = time_ns;
            earliest = view;
        }
    }
    assert(earliest != NULL);
    set_start(run, session_at(evaluation, earliest, first_ns), first_ns);
    run->started_ns = first_ns;
    run->generation = evaluation->generation;
}

// A job of which only verdicts tell: the earliest names it.
static bool name_by_verdicts(struct live *live, struct live_run *run) {
    const struct live_verdict *row, *first = NULL;
    uint32_t at = 0;
    while ((row = keyed_rows_next(&live->verdicts, &at)) != NULL)
        if (row->job == run->job && (first == NULL || row->order < first->order))
            first = row;
    if (first == NULL)
        return false;
    set_start(run, slice_of(first->id), first->start_ns);
    run->started_ns = first->start_ns;
    run->generation = LIVE_GENERATION_NONE;
    return true;
}

bool live_name_start(struct live *live, struct live_run *run, const struct batch *batch,
                     const struct evaluation *evaluation) {
    if (run->start[0] != '\0')
        return true;
    if (evaluation != NULL) {
        name_by_samples(live, run, evaluation);
    } else if (live_spans_until(batch, run->job) > 0) {
        run->started_ns = live_spans_begin(batch, run->job);
        run->generation = LIVE_GENERATION_NONE;
        set_start(run, (struct slice){"", 0}, run->started_ns);
    } else {
        return name_by_verdicts(live, run);
    }
    assert(run->start[0] != '\0');
    return true;
}

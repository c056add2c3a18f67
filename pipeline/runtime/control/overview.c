// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/control/overview.h"

#include "base/text/cut.h"

#include <assert.h>

void overview_init(struct overview *overview) {
    *overview = (struct overview){.learnt = false};
    lock_init(&overview->lock);
}

void overview_release(struct overview *overview) {
    lock_destroy(&overview->lock);
}

// -- jobs -----------------------------------------------------------------------------------------

static void forget_job(struct overview_state *view, string_id job) {
    for (uint32_t i = 0; i < view->job_count; i++)
        if (view->jobs[i].job == job)
            view->jobs[i--] = view->jobs[--view->job_count];
}

static void forget_jobs(struct overview_state *view, const struct forgotten *forgotten) {
    if (forgotten == NULL)
        return;
    if (forgotten->everything)
        view->job_count = 0;
    for (uint32_t i = 0; i < forgotten->job_count; i++)
        forget_job(view, forgotten->jobs[i].job);
    view->jobs_left_out = view->jobs_left_out && view->job_count > 0;
}

// NULL: there is no room.
static struct overview_job *find_job(struct overview_state *view, string_id job) {
    assert(view->job_count <= OVERVIEW_JOBS_MAX);
    for (uint32_t i = 0; i < view->job_count; i++)
        if (view->jobs[i].job == job)
            return &view->jobs[i];
    return view->job_count == OVERVIEW_JOBS_MAX ? NULL : &view->jobs[view->job_count++];
}

static void note_job(struct overview_state *view, const struct evaluation *evaluation) {
    if (evaluation->rank_count == 0)
        return;
    struct overview_job *job = find_job(view, evaluation->job);
    view->jobs_left_out = view->jobs_left_out || job == NULL;
    if (job == NULL)
        return;
    // Without `align` nobody has said how many ranks there are.
    bool claimed = evaluation->world_size == 0 && evaluation->claimed_world_size > 1;
    *job = (struct overview_job){.job = evaluation->job,
                                 .rank_count = evaluation->rank_count,
                                 .missing_count = evaluation->missing_count,
                                 .world_size = claimed ? evaluation->claimed_world_size
                                                       : evaluation->world_size,
                                 .event_count = evaluation->event_count,
                                 .as_of_ns = evaluation->as_of_ns};
    for (uint32_t i = 0; i < evaluation->missing_count && i < OVERVIEW_MISSING_MAX; i++)
        job->missing[i] = evaluation->missing_ranks[i];
}

// -- incidents ------------------------------------------------------------------------------------

static struct overview_incident *find_incident(struct overview_state *view, const char *id) {
    assert(view->incident_count <= OVERVIEW_INCIDENTS_MAX);
    for (uint32_t i = 0; i < view->incident_count; i++)
        if (strcmp(view->incidents[i].id, id) == 0)
            return &view->incidents[i];
    return NULL;
}

// The one that makes room for a graver one; NULL: none is less grave.
static struct overview_incident *least_grave(struct overview_state *view, enum severity severity) {
    struct overview_incident *least = &view->incidents[0];
    for (uint32_t i = 1; i < view->incident_count; i++)
        if (view->incidents[i].severity < least->severity)
            least = &view->incidents[i];
    return least->severity < severity ? least : NULL;
}

static void fill_incident(struct overview_incident *incident, const struct verdict *verdict) {
    *incident = (struct overview_incident){.pattern = verdict->pattern,
                                           .severity = verdict->severity,
                                           .job = verdict->job,
                                           .start_ns = verdict->start_ns};
    memcpy(incident->id, verdict->id, sizeof incident->id);
    struct slice kept =
        text_shorten(verdict->headline, sizeof incident->headline, TEXT_BYTES, incident->headline);
    incident->headline_size = (uint32_t)kept.size;
    if (kept.size > 0 && kept.data != incident->headline)
        memcpy(incident->headline, kept.data, kept.size);
}

static void note_verdict(struct overview_state *view, const struct verdict *verdict) {
    struct overview_incident *incident = find_incident(view, verdict->id);
    if (verdict->state == VERDICT_RESOLVED || !verdict_is_root(verdict)) {
        if (incident != NULL)
            *incident = view->incidents[--view->incident_count];
        return;
    }
    if (incident == NULL && view->incident_count < OVERVIEW_INCIDENTS_MAX)
        incident = &view->incidents[view->incident_count++];
    if (incident == NULL) {
        view->incidents_left_out = true;
        incident = least_grave(view, verdict->severity);
    }
    if (incident != NULL)
        fill_incident(incident, verdict);
}

// -- both -----------------------------------------------------------------------------------------

void overview_learn(struct overview *overview, const struct batch *batch) {
    if (overview->learnt || !batch->evaluate)
        return;
    overview->learnt = true;
    lock_take(&overview->lock);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (batch->verdicts.items[i].unchanged)
            note_verdict(&overview->view, &batch->verdicts.items[i]);
    lock_release(&overview->lock);
}

void overview_note(struct overview *overview, const struct batch *batch, const uint64_t *open) {
    if (!batch->evaluate)
        return;
    lock_take(&overview->lock);
    struct overview_state *view = &overview->view;
    view->judged_ns = batch->as_of_ns;
    forget_jobs(view, batch->forgotten);
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        note_job(view, &batch->evaluations[i]);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        note_verdict(view, &batch->verdicts.items[i]);
    for (int i = 0; i <= (int)SEVERITY_CRITICAL && open != NULL; i++)
        view->open[i] = open[i];
    lock_release(&overview->lock);
}

void overview_read(struct overview *overview, struct overview_state *view) {
    assert(!lock_is_held(&overview->lock));
    lock_take(&overview->lock);
    *view = overview->view;
    lock_release(&overview->lock);
}

// SPDX-License-Identifier: Apache-2.0
// What follows from a stop: who ended because of one, and when it was the whole job that was told.
#include "processors/first_exit/view.h"

#define SECOND_NS UINT64_C(1000000000)
// Who stops a job tells its nodes one after another: within so long whatever happens on them
// meanwhile, and as long as Kubernetes gives a pod to end (30 s) where nothing does.
#define STOP_AT_ONCE_NS SECOND_NS
#define STOP_SPREAD_NS  (30 * SECOND_NS)

// Whom a stop stopped: the ranks of a pod, of a node, or all.
static bool is_scope_of(const struct exit_note *stop, const struct exit_candidate *ended,
                        string_id unit) {
    if (note_kind(stop) == OBSERVATION_LAUNCHER_TOLD_TO_STOP)
        return ended->node != STRING_NONE && stop->node == ended->node;
    if (is_of_cluster(stop))
        return stop->unit != STRING_NONE && stop->unit == unit;
    if (note_is_node_loss(stop))
        return stop->node != STRING_NONE && stop->node == ended->node;
    return note_is_job_stop(stop);
}

// What ended behind a stop ended because of it; so did a launcher that was told to stop by Slurm.
bool exit_was_stopped(const struct round_view *view, const struct exit_candidate *ended) {
    const struct exit_list *list = view->list;
    bool is_launcher = ended->process == NO_PROCESS;
    string_id unit = is_launcher ? ended->reason->unit : list->processes[ended->process].unit;
    for (uint32_t i = 0; i < list->other_count; i++) {
        const struct exit_note *stop = list->others[i];
        enum exit_kind kind = view->others[i];
        bool is_stop = kind == EXIT_PREEMPTED || kind == EXIT_TIME_LIMIT || kind == EXIT_NODE_LOST;
        bool is_known = !note_is(stop, NOTE_TIMELESS) && ended->high_ns != UINT64_MAX;
        if (is_stop && is_known && stop != ended->reason && is_scope_of(stop, ended, unit) &&
            (!is_launcher || note_kind(stop) != OBSERVATION_LAUNCHER_TOLD_TO_STOP) &&
            ended->high_ns + EXIT_POLL_NS >= stop->time_ns)
            return true;
    }
    return false;
}

static bool is_stop_of_node(const struct exit_candidate *candidate) {
    return candidate->node != STRING_NONE && candidate->reason != NULL &&
           note_kind(candidate->reason) == OBSERVATION_LAUNCHER_TOLD_TO_STOP;
}

// Whether the node was told to stop with the one that was told at `first_ns`. Much later, or behind
// an end on it, it may have been told because the job had come to its end by then.
static bool is_one_stop(const struct round_view *view, const struct exit_candidate *stop,
                        uint64_t first_ns) {
    assert(stop->node != STRING_NONE && stop->low_ns >= first_ns);
    const struct node_view *node = view_node(view, stop->node);
    uint64_t later_ns = stop->low_ns - first_ns;
    bool is_quiet = node->node == STRING_NONE || node->ended_ns >= stop->low_ns;
    return later_ns <= STOP_AT_ONCE_NS || (later_ns <= STOP_SPREAD_NS && is_quiet);
}

static bool is_undated_stop(const struct exit_candidate *candidate) {
    return candidate->kind == EXIT_PREEMPTED && candidate->process == NO_PROCESS &&
           candidate->unit == STRING_NONE && candidate->reason != NULL &&
           note_kind(candidate->reason) == OBSERVATION_JOB_STOPPED &&
           note_is(candidate->reason, NOTE_TIMELESS);
}

// A job whose node was lost is stopped for that: where nobody says when, that is one end.
static uint32_t join_losses(struct exit_candidate *candidates, uint32_t count) {
    uint32_t kept = 0, lost = 0;
    while (lost < count &&
           (candidates[lost].kind != EXIT_NODE_LOST || candidates[lost].ground != GROUND_WORDS))
        lost++;
    if (lost == count)
        return count;
    struct exit_candidate *loss = &candidates[lost];
    for (uint32_t i = 0; i < count; i++)
        if (is_undated_stop(&candidates[i]) && loss->also_count < ALSO_MAX)
            loss->also[loss->also_count++] = candidates[i].reason;
    for (uint32_t i = 0; i < count; i++)
        if (!is_undated_stop(&candidates[i]))
            candidates[kept++] = candidates[i];
    return kept;
}

uint32_t exits_join_stops(const struct round_view *view, struct exit_candidate *candidates,
                          uint32_t count) {
    uint64_t first_ns = UINT64_MAX;
    uint32_t nodes = 0, told = 0, told_of_round = 0, kept = 0;
    struct exit_candidate *job = NULL;
    count = join_losses(candidates, count);
    for (uint32_t i = 0; i < count; i++)
        if (is_stop_of_node(&candidates[i]) && candidates[i].low_ns < first_ns)
            first_ns = candidates[i].low_ns;
    for (uint32_t i = 0; i < count; i++)
        if (is_stop_of_node(&candidates[i]) && is_one_stop(view, &candidates[i], first_ns)) {
            told++;
            told_of_round += view_node(view, candidates[i].node)->node != STRING_NONE;
        }
    for (uint32_t slot = 0; slot < view->node_slots; slot++)
        nodes += view->nodes[slot].node != STRING_NONE;
    if (told < 2 || told_of_round < nodes)
        return count;
    for (uint32_t i = 0; i < count; i++) {
        const struct exit_candidate stop = candidates[i];
        if (!is_stop_of_node(&stop) || !is_one_stop(view, &stop, first_ns)) {
            candidates[kept++] = stop;
        } else if (job == NULL) {
            job = &candidates[kept++];
            *job = stop;
        } else {
            job->low_ns = stop.low_ns < job->low_ns ? stop.low_ns : job->low_ns;
            job->high_ns = stop.high_ns < job->high_ns ? stop.high_ns : job->high_ns;
            if (job->also_count < ALSO_MAX)
                job->also[job->also_count++] = stop.reason;
        }
    }
    job->node = STRING_NONE;
    return kept;
}

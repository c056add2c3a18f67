// SPDX-License-Identifier: Apache-2.0
// Finds the first of the ends that nobody else brought about.
//
// Ends are ordered by time where the times say so; of those that may have been at one moment the
// one that is best founded is taken. Where nobody ended by himself, one who is silent while others
// lost a peer is named, with little confidence; a wait that was too long names nobody here.
#include "processors/first_exit/decide.h"
#include "processors/first_exit/view.h"

#define SECOND_NS UINT64_C(1000000000)
// A node counts as silent that long after its last word, at most.
#define NODE_GRACE_NS (60 * SECOND_NS)
// Its peers miss it within so long: NCCL waits 10 min unless told otherwise.
#define NODE_MISSED_NS (15 * 60 * SECOND_NS)

// -- candidates -----------------------------------------------------------------------------------

static struct exit_candidate of_process(const struct round_view *view, uint32_t i) {
    const struct exit_process *process = process_at(view, i);
    struct exit_candidate candidate = {.process = view->first + i,
                                       .node = process->node,
                                       .kind = process->kind,
                                       .ground = process->ground,
                                       .reason = process->reason,
                                       .low_ns = process->low_ns,
                                       .high_ns = process->high_ns};
    if (candidate.high_ns == 0)
        candidate.high_ns = UINT64_MAX;
    uint64_t reaction =
        process->node == STRING_NONE ? UINT64_MAX : view_node(view, process->node)->reaction_ns;
    if (reaction < candidate.high_ns) {
        candidate.high_ns = reaction;
        if (candidate.low_ns == 0 || candidate.low_ns > reaction)
            candidate.low_ns = reaction - EXIT_POLL_NS;
    }
    return candidate;
}

// -- nodes, pods and jobs -------------------------------------------------------------------------

static enum exit_kind kind_of_cancel(const struct exit_note *note) {
    struct slice reason = note_reason(note);
    if (note_is(note, NOTE_VICTIM))
        return EXIT_NONE;
    if (slice_equal(reason, SLICE("TIME LIMIT")))
        return EXIT_TIME_LIMIT;
    if (slice_equal(reason, SLICE("PREEMPTION")) || slice_equal(reason, SLICE("JOB REQUEUE")))
        return EXIT_PREEMPTED;
    return slice_equal(reason, SLICE("NODE FAILURE")) ? EXIT_NODE_LOST : EXIT_NONE;
}

// What the reasons of objects and states of sacct say.
static enum exit_kind kind_of_reason(const struct exit_note *note) {
    static const struct {
        enum observation_kind of;
        const char *reason;
        enum exit_kind kind;
    } REASONS[] = {
        {OBSERVATION_SLURM_STATE, "TIMEOUT", EXIT_TIME_LIMIT},
        {OBSERVATION_SLURM_STATE, "DEADLINE", EXIT_TIME_LIMIT},
        {OBSERVATION_SLURM_STATE, "PREEMPTED", EXIT_PREEMPTED},
        {OBSERVATION_SLURM_STATE, "NODE_FAIL", EXIT_NODE_LOST},
        {OBSERVATION_SLURM_STATE, "BOOT_FAIL", EXIT_NODE_LOST},
        {OBSERVATION_SLURM_STATE, "OUT_OF_MEMORY", EXIT_HOST_OOM},
        {OBSERVATION_SLURM_TASK_EXIT, "Out Of Memory", EXIT_HOST_OOM},
        {OBSERVATION_JOB_STOPPED, "time_limit", EXIT_TIME_LIMIT},
        {OBSERVATION_JOB_STOPPED, "memory", EXIT_HOST_OOM},
        {OBSERVATION_JOB_STOPPED, "preempted", EXIT_PREEMPTED},
        {OBSERVATION_JOB_STOPPED, "cancelled", EXIT_PREEMPTED},
        {OBSERVATION_POD_DISRUPTION, "PreemptionByScheduler", EXIT_PREEMPTED},
        {OBSERVATION_POD_DISRUPTION, "Preempting", EXIT_PREEMPTED},
        {OBSERVATION_POD_DISRUPTION, "Preempted", EXIT_PREEMPTED},
        {OBSERVATION_POD_DISRUPTION, "NodeLost", EXIT_NODE_LOST},
        {OBSERVATION_POD_DISRUPTION, "NodeShutdown", EXIT_NODE_LOST},
        {OBSERVATION_POD_DISRUPTION, "Terminated", EXIT_NODE_LOST}, // with its node
        {OBSERVATION_POD_DISRUPTION, "DeletionByPodGC", EXIT_NODE_LOST},
        {OBSERVATION_NODE_CONDITION, "Unknown", EXIT_NODE_LOST},
        {OBSERVATION_NODE_CONDITION, "NodeNotReady", EXIT_NODE_LOST},
    };
    for (size_t i = 0; i < sizeof REASONS / sizeof *REASONS; i++)
        if (REASONS[i].of == note_kind(note) &&
            slice_equal(note_reason(note), slice_of(REASONS[i].reason)))
            return REASONS[i].kind;
    return EXIT_NONE;
}

static bool missed_behind(const struct exit_process *process, const struct exit_note *note) {
    return process->missed_peer &&
           (process->high_ns == 0 ||
            (process->high_ns + NODE_GRACE_NS >= note->time_ns &&
             process->low_ns <= note->time_ns + note->slack_ns + NODE_MISSED_NS));
}

// Objects of the cluster tell of all pods and nodes: those of the round count. That a node was
// silent for a while counts only where others missed its ranks and nothing was written on it later:
// else these went on, and what ended them came afterwards.
static bool concerns(const struct round_view *view, const struct exit_note *note) {
    bool is_condition = note_kind(note) == OBSERVATION_NODE_CONDITION;
    bool is_place = !is_of_cluster(note), is_end = !is_condition;
    bool went_on = is_condition && note->node != STRING_NONE &&
                   view_node(view, note->node)->last_ns > note->time_ns + note->slack_ns;
    for (uint32_t i = 0; i < view->count; i++) {
        const struct exit_process *process = process_at(view, i);
        is_place |= note->unit != STRING_NONE
                        ? process->unit == note->unit
                        : note->node != STRING_NONE && process->node == note->node;
        is_end |= is_condition && missed_behind(process, note);
    }
    return is_place && is_end && !went_on;
}

static enum exit_kind kind_of_other(const struct round_view *view, const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
        return EXIT_PREEMPTED;
    case OBSERVATION_SLURM_CANCELLED:
        return kind_of_cancel(note);
    case OBSERVATION_SLURM_OOM:
        return EXIT_HOST_OOM;
    case OBSERVATION_SLURM_NODE_FAILURE:
        return EXIT_NODE_LOST;
    case OBSERVATION_NODE_LOST: // a launcher that lost one and does not say which may mean any end
        return note->node != STRING_NONE || note->text_size > 0 ? EXIT_NODE_LOST : EXIT_NONE;
    default:
        return concerns(view, note) ? kind_of_reason(note) : EXIT_NONE;
    }
}

// Nobody ended by himself, lost a peer, or is known to have been stopped.
static bool is_untroubled(const struct round_view *view) {
    for (uint32_t i = 0; i < view->count; i++)
        if (process_at(view, i)->kind != EXIT_NONE || process_at(view, i)->missed_peer)
            return false;
    for (uint32_t i = 0; i < view->list->other_count; i++)
        if (view->others[i] != EXIT_NONE)
            return false;
    return true;
}

// A launcher that raises the signal which it got was stopped. Where ranks are in trouble as well
// that may be since the job had come to its end by then.
static void see_signals(struct round_view *view) {
    const struct exit_list *list = view->list;
    bool counts = is_untroubled(view);
    for (uint32_t i = 0; counts && i < list->other_count; i++)
        if (list->other_rounds[i] == view->round &&
            note_kind(list->others[i]) == OBSERVATION_EXCEPTION && list->others[i]->signal > 0)
            view->others[i] = EXIT_PREEMPTED;
}

// A job that somebody stopped was not ended by a node that was silent before.
static void see_others(struct round_view *view, struct arena *arena) {
    const struct exit_list *list = view->list;
    bool was_stopped = false;
    view->others = arena_zero(arena, list->other_count + 1, sizeof *view->others);
    for (uint32_t i = 0; i < list->other_count; i++) {
        if (list->other_rounds[i] == view->round)
            view->others[i] = kind_of_other(view, list->others[i]);
        was_stopped |= view->others[i] == EXIT_PREEMPTED || view->others[i] == EXIT_TIME_LIMIT;
    }
    for (uint32_t i = 0; was_stopped && i < list->other_count; i++)
        if (note_kind(list->others[i]) == OBSERVATION_NODE_CONDITION)
            view->others[i] = EXIT_NONE;
    see_signals(view);
}

// The only process of the pod; NO_PROCESS: there are several.
static uint32_t only_of_unit(const struct round_view *view, string_id unit) {
    uint32_t found = NO_PROCESS;
    for (uint32_t i = 0; i < view->count && unit != STRING_NONE; i++) {
        if (process_at(view, i)->unit != unit || process_at(view, i)->is_unit)
            continue;
        if (found != NO_PROCESS)
            return NO_PROCESS;
        found = view->first + i;
    }
    return found;
}

static string_id node_of_unit(const struct round_view *view, string_id unit) {
    string_id node = STRING_NONE;
    for (uint32_t i = 0; i < view->count && unit != STRING_NONE; i++)
        if (process_at(view, i)->unit == unit && process_at(view, i)->node != STRING_NONE)
            node = process_at(view, i)->node;
    return node;
}

// Of a node it is the node, of a pod that was preempted its rank, and of a job neither.
static struct exit_candidate of_other(const struct round_view *view, const struct exit_note *note,
                                      enum exit_kind kind) {
    struct exit_candidate candidate = {.process = NO_PROCESS,
                                       .node = note->node,
                                       .kind = kind,
                                       .ground = GROUND_WORDS,
                                       .reason = note,
                                       .low_ns = note->time_ns,
                                       .high_ns = note->time_ns + note->slack_ns};
    if (is_of_cluster(note) && kind == EXIT_PREEMPTED) {
        candidate.unit = note->unit;
        candidate.process = only_of_unit(view, note->unit);
    }
    if (note->unit != STRING_NONE && candidate.node == STRING_NONE)
        candidate.node = node_of_unit(view, note->unit);
    if (note_kind(note) == OBSERVATION_SLURM_STATE && kind != EXIT_NODE_LOST)
        candidate.node = STRING_NONE;
    if (note_kind(note) == OBSERVATION_NODE_CONDITION) {
        candidate.ground = GROUND_CODE;
        candidate.low_ns = note->time_ns > NODE_GRACE_NS ? note->time_ns - NODE_GRACE_NS : 0;
    }
    if (note_is(note, NOTE_TIMELESS)) {
        candidate.low_ns = 0;
        candidate.high_ns = UINT64_MAX;
    }
    return candidate;
}

static bool is_same_loss(const struct exit_candidate *a, const struct exit_candidate *b) {
    return a->kind == b->kind && a->process == b->process && a->unit == b->unit &&
           (a->node == b->node ||
            (a->kind == EXIT_NODE_LOST && (a->node == STRING_NONE || b->node == STRING_NONE)));
}

static bool says_status(const struct exit_note *note) {
    return note->signal >= 0 || note->exit_code >= 0;
}

// What several lines and objects tell of is one; the earliest of the best founded speaks, and of
// the loss of a node who names it.
static void add_other(struct exit_candidate *candidates, uint32_t *count,
                      const struct exit_candidate *found) {
    for (uint32_t i = 0; i < *count; i++) {
        struct exit_candidate *known = &candidates[i];
        if (known->reason == NULL || !is_same_loss(known, found))
            continue;
        bool is_better = found->ground != known->ground ? found->ground > known->ground
                         : found->high_ns != known->high_ns
                             ? found->high_ns < known->high_ns
                             : says_status(found->reason) && !says_status(known->reason);
        uint64_t low_ns = known->low_ns < found->low_ns ? known->low_ns : found->low_ns;
        uint64_t high_ns = known->high_ns < found->high_ns ? known->high_ns : found->high_ns;
        string_id node = known->node != STRING_NONE ? known->node : found->node;
        if (known->also_count < ALSO_MAX)
            known->also[known->also_count++] = is_better ? known->reason : found->reason;
        if (is_better) {
            known->ground = found->ground;
            known->reason = found->reason;
        }
        known->low_ns = low_ns;
        known->high_ns = high_ns;
        known->node = node;
        return;
    }
    candidates[(*count)++] = *found;
}

// srun lists all tasks of a node as killed when it gives up.
static bool says_code_only(const struct exit_process *process) {
    return process->ground == GROUND_CODE &&
           (process->kind == EXIT_CODE ||
            (process->kind == EXIT_KILLED &&
             note_kind(process->reason) == OBSERVATION_SLURM_TASK_EXIT));
}

// What could not be started left with codes that say nothing of who is to blame.
static bool could_not_start(const struct round_view *view) {
    const struct exit_list *list = view->list;
    for (uint32_t i = 0; i < list->other_count; i++)
        if (list->other_rounds[i] == view->round &&
            note_kind(list->others[i]) == OBSERVATION_LAUNCH_FAILED)
            return true;
    return false;
}

// Whether the log tells above the stop that a process had left with a code.
static bool had_left(const struct round_view *view, const struct exit_note *stop) {
    for (uint32_t i = 0; i < view->count; i++) {
        const struct exit_process *process = process_at(view, i);
        for (uint32_t j = 0; j < process->note_count; j++) {
            const struct exit_note *note = process->notes[j];
            if (note_kind(note) == OBSERVATION_SLURM_TASK_EXIT && note->exit_code > 0 &&
                note->key.source == stop->key.source && note_position(note) < note_position(stop))
                return true;
        }
    }
    return false;
}

// A stop whose line stands behind that of an end, in one log, came later. Neither needs a time.
static bool came_later(const struct round_view *view, const struct exit_note *stop,
                       const struct exit_candidate *candidates, uint32_t count) {
    if (note_kind(stop) == OBSERVATION_JOB_STOPPED && note_is(stop, NOTE_TIMELESS) &&
        had_left(view, stop))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        const struct exit_note *end = candidates[i].reason;
        if (note_kind(stop) == OBSERVATION_JOB_STOPPED && note_is(stop, NOTE_TIMELESS) &&
            end != NULL && end->key.source == stop->key.source &&
            note_position(end) < note_position(stop))
            return true;
    }
    return false;
}

// Slurm tells of a task whose memory ran out, and of its node and its job that tasks were killed
// for that: where it is known who was, that is one end.
static bool is_told_of_process(struct exit_candidate *candidates, uint32_t count,
                               const struct exit_candidate *found) {
    for (uint32_t i = 0; i < count && found->kind == EXIT_HOST_OOM; i++) {
        struct exit_candidate *known = &candidates[i];
        if (known->kind != EXIT_HOST_OOM || !exit_agrees(known->node, found->node))
            continue;
        if (known->also_count < ALSO_MAX)
            known->also[known->also_count++] = found->reason;
        if (found->high_ns < known->high_ns)
            known->high_ns = found->high_ns;
        return true;
    }
    return false;
}

static uint32_t list_candidates(const struct round_view *view, struct exit_candidate *candidates) {
    const struct exit_list *list = view->list;
    uint32_t count = 0, others;
    bool no_start = could_not_start(view);
    for (uint32_t i = 0; i < view->count; i++) {
        const struct exit_process *process = process_at(view, i);
        if (process->kind == EXIT_NONE || (no_start && says_code_only(process)))
            continue;
        candidates[count] = of_process(view, i);
        count += !exit_was_stopped(view, &candidates[count]);
    }
    others = count;
    for (uint32_t i = 0; i < list->other_count; i++) {
        const struct exit_note *note = list->others[i];
        enum exit_kind kind = view->others[i];
        if (kind == EXIT_NONE || came_later(view, note, candidates, others))
            continue;
        struct exit_candidate found = of_other(view, note, kind);
        uint32_t own = count - others;
        if (note_kind(note) == OBSERVATION_LAUNCHER_TOLD_TO_STOP && exit_was_stopped(view, &found))
            continue;
        if (is_told_of_process(candidates, others, &found))
            continue;
        add_other(candidates + others, &own, &found);
        count = others + own;
    }
    return others + exits_join_stops(view, candidates + others, count - others);
}

static bool is_line_of_srun(const struct exit_note *note) {
    return note != NULL && note_kind(note) == OBSERVATION_SLURM_TASK_EXIT &&
           note_is(note, NOTE_TIMELESS);
}

// Lines of one log have no time, but their order.
static uint32_t keep_first_line(struct exit_candidate *candidates, uint32_t count) {
    const struct exit_note *first = count == 0 ? NULL : candidates[0].reason;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct exit_note *note = candidates[i].reason;
        if (!is_line_of_srun(note) || note->key.source != first->key.source)
            return count;
        first = note_position(note) < note_position(first) ? note : first;
    }
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i].reason == first)
            candidates[kept++] = candidates[i];
    return kept;
}

// Keeps those that may have been first, and of them those that are founded best.
static uint32_t keep_first(struct exit_candidate *candidates, uint32_t count) {
    uint64_t first = UINT64_MAX;
    enum exit_ground best = GROUND_SILENCE;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        first = candidates[i].high_ns < first ? candidates[i].high_ns : first;
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i].low_ns <= first && candidates[i].ground > best)
            best = candidates[i].ground;
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i].low_ns <= first &&
            (candidates[i].ground == best ||
             (best == GROUND_WORDS && candidates[i].ground == GROUND_KERNEL)))
            candidates[kept++] = candidates[i];
    return keep_first_line(candidates, kept);
}

// Several that left with a code, and nobody says why: their logs are not there, and any of them may
// be a victim.
static bool are_mute(const struct exit_candidate *candidates, uint32_t count) {
    uint32_t mute = 0;
    for (uint32_t i = 0; i < count; i++)
        mute += candidates[i].ground == GROUND_CODE && candidates[i].kind == EXIT_CODE &&
                !is_line_of_srun(candidates[i].reason);
    return mute > 1;
}

// -- silence --------------------------------------------------------------------------------------

static bool is_silent(const struct exit_process *process) {
    return process->placed && process->note_count == 0;
}

static bool an_agent_lost_the_store(const struct round_view *view, string_id but_of) {
    const struct exit_list *list = view->list;
    for (uint32_t i = 0; i < list->other_count; i++) {
        const struct exit_note *note = list->others[i];
        if (list->other_rounds[i] == view->round && note->node != STRING_NONE &&
            note->node != but_of &&
            (note_kind(note) == OBSERVATION_STORE_LOST ||
             (note_kind(note) == OBSERVATION_EXCEPTION && note->signal < 0)))
            return true;
    }
    return false;
}

static struct exit_candidate by_silence(uint32_t process, string_id node, enum exit_kind kind) {
    return (struct exit_candidate){.process = process,
                                   .node = node,
                                   .kind = kind,
                                   .ground = GROUND_SILENCE,
                                   .high_ns = UINT64_MAX};
}

struct silence {
    uint32_t silent, silent_process; // processes of which nothing is told
    uint32_t silent_nodes, mute_nodes;
    string_id silent_node; // none of its processes tells anything
    string_id mute_node;   // its processes do, its launcher does not
    bool lost_peer, has_victims;
};

static struct silence listen(const struct round_view *view) {
    struct silence silence = {.silent_node = STRING_NONE, .mute_node = STRING_NONE};
    for (uint32_t i = 0; i < view->count; i++) {
        const struct exit_process *process = process_at(view, i);
        silence.lost_peer = silence.lost_peer || process->lost_peer;
        silence.has_victims = silence.has_victims || process->victim;
        if (is_silent(process)) {
            silence.silent++;
            silence.silent_process = view->first + i;
        }
    }
    for (uint32_t slot = 0; slot < view->node_slots; slot++) {
        const struct node_view *node = &view->nodes[slot];
        if (node->node == STRING_NONE)
            continue;
        if (!node->has_words) {
            silence.silent_nodes++;
            silence.silent_node = node->node;
        } else if (!node->has_launcher) {
            silence.mute_nodes++;
            silence.mute_node = node->node;
        }
    }
    return silence;
}

// Who must have been it because all others are accounted for. Who is silent among ranks of several
// jobs may be of one that is well.
static bool find_silent(const struct round_view *view, struct exit_decision *decision,
                        struct exit_candidate *found, struct arena *arena) {
    struct silence silence = listen(view);
    if (!silence.has_victims || view->list->rounds[view->round].is_mixed)
        return false;
    if (silence.silent_nodes == 1) {
        *found = by_silence(NO_PROCESS, silence.silent_node, EXIT_NODE_LOST);
        return true;
    }
    if (!silence.lost_peer || silence.silent_nodes > 0)
        return false;
    if (silence.silent == 1) {
        string_id node = view->list->processes[silence.silent_process].node;
        *found = by_silence(silence.silent_process, node, EXIT_CODE);
        return node != STRING_NONE && view_node(view, node)->has_launcher;
    }
    uint32_t quiet = silence.silent > 0 ? NO_PROCESS : exits_find_quiet(view, arena);
    if (quiet != NO_PROCESS) {
        *found = by_silence(quiet, view->list->processes[quiet].node, EXIT_CODE);
        return true;
    }
    if (silence.silent > 0 || silence.mute_nodes != 1 ||
        !an_agent_lost_the_store(view, silence.mute_node))
        return false;
    *found = by_silence(NO_PROCESS, silence.mute_node, EXIT_NODE_LOST);
    decision->of_launcher = true;
    return true;
}

// -- the decision ---------------------------------------------------------------------------------

static bool anybody_ended(const struct round_view *view) {
    for (uint32_t i = 0; i < view->count; i++)
        if (process_at(view, i)->ended || process_at(view, i)->victim)
            return true;
    for (uint32_t i = 0; i < view->list->other_count; i++)
        if (view->others[i] != EXIT_NONE)
            return true;
    return false;
}

static uint64_t time_of(const struct exit_candidate *candidate) {
    if (candidate->high_ns != UINT64_MAX)
        return candidate->low_ns > 0 && candidate->reason != NULL && candidate->reason->slack_ns > 0
                   ? candidate->low_ns
                   : candidate->high_ns;
    return candidate->reason != NULL ? candidate->reason->time_ns : 0;
}

static void decide(const struct round_view *view, struct exit_decision *decision,
                   struct arena *arena) {
    struct exit_candidate *candidates =
        arena_take(arena, (view->count + view->list->other_count + 1) * sizeof *candidates);
    uint32_t count = list_candidates(view, candidates), all_count = count;
    struct exit_candidate *all = arena_take(arena, (count + 1) * sizeof *all);
    bool is_mute = are_mute(candidates, count);
    memcpy(all, candidates, count * sizeof *all);
    count = keep_first(candidates, count);
    decision->round = view->round;
    const struct exit_candidate *odd =
        count == 0 ? NULL : exits_find_odd(view, all, all_count, &candidates[0]);
    if (odd != NULL) {
        candidates[0] = *odd;
        count = 1;
        decision->is_odd = true;
    }
    struct exit_candidate pair[2];
    bool is_pair = count > 0 && exits_find_pair(view, all, all_count, &candidates[0], pair);
    if (is_pair) {
        memcpy(candidates, pair, sizeof pair);
        count = 2;
    }
    decision->scope =
        exits_find_scope(view, all, &all_count, candidates, odd == NULL && !is_pair ? count : 0);
    if (decision->scope != SCOPE_ONE) {
        candidates = all;
        count = all_count;
    }
    if (count == 0 && find_silent(view, decision, &candidates[0], arena))
        count = 1;
    if (count == 0)
        return;
    decision->found = true;
    decision->tied = count > 1;
    decision->candidates = candidates;
    decision->candidate_count = count;
    decision->kind = candidates[0].kind;
    decision->ground = candidates[0].ground;
    decision->is_alone = !anybody_ended(view);
    decision->is_doubtful = is_mute && candidates[0].ground == GROUND_CODE;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t time_ns = time_of(&candidates[i]);
        if (time_ns != 0 && (decision->time_ns == 0 || time_ns < decision->time_ns))
            decision->time_ns = time_ns;
    }
}

static bool has_ended(const struct exit_list *list, uint32_t round) {
    for (uint32_t i = 0; i < list->process_count; i++)
        if (list->processes[i].round == round &&
            (list->processes[i].ended || list->processes[i].victim))
            return true;
    return false;
}

struct exit_decision *exits_decide(struct exit_list *list, struct arena *arena) {
    struct exit_decision *decisions = arena_zero(arena, list->round_count + 1, sizeof *decisions);
    uint32_t first = 0;
    for (uint32_t round = 0; round < list->round_count; round++) {
        struct round_view view = {.list = list, .round = round, .first = first};
        while (first + view.count < list->process_count &&
               list->processes[first + view.count].round == round)
            view.count++;
        first += view.count;
        view_see_nodes(&view, arena);
        see_others(&view, arena);
        decide(&view, &decisions[round], arena);
    }
    // A job that was started again is over that end, unless the next start came to nothing. Where
    // jobs are mixed, what looks like it may be another one.
    for (uint32_t round = 0; round + 1 < list->round_count; round++)
        decisions[round].is_over = list->rounds[round + 1].job == list->rounds[round].job &&
                                   !list->rounds[round + 1].is_mixed &&
                                   (decisions[round + 1].found || !has_ended(list, round + 1));
    return decisions;
}

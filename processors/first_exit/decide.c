// SPDX-License-Identifier: Apache-2.0
// Finds the first of the ends that nobody else brought about.
//
// Ends are ordered by time where the times say so; of those that may have been at one moment the
// one that is best founded is taken. Where nobody ended by himself, one who is silent while others
// lost a peer is named, with little confidence; a wait that was too long names nobody here.
#include "processors/first_exit/decide.h"

#define SECOND_NS UINT64_C(1000000000)
#define POLL_NS   (3 * SECOND_NS / 10)

// What the processes of a node say together.
struct node_view {
    string_id node;
    uint64_t reaction_ns; // when its launcher first did something about an end; UINT64_MAX: unknown
    bool has_launcher;    // a launcher told of its processes
    bool has_words;       // anybody told of them
};

struct round_view {
    const struct exit_list *list;
    uint32_t round;
    uint32_t first, count; // of the processes, which are sorted by round
    struct node_view *nodes;
    uint32_t node_slots; // a power of two; those that are free have the node STRING_NONE
};

static const struct exit_process *process_at(const struct round_view *view, uint32_t i) {
    assert(i < view->count);
    return &view->list->processes[view->first + i];
}

static bool is_launchers(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_LAUNCHER_FAILED ||
           note_kind(note) == OBSERVATION_LAUNCHER_SIGNAL ||
           note_kind(note) == OBSERVATION_LAUNCHER_SUMMARY;
}

static struct node_view *node_at(const struct round_view *view, string_id node) {
    uint32_t slot = node * UINT32_C(2654435761) & (view->node_slots - 1);
    while (view->nodes[slot].node != STRING_NONE && view->nodes[slot].node != node)
        slot = (slot + 1) & (view->node_slots - 1);
    return &view->nodes[slot];
}

static void see_note(struct node_view *node, const struct exit_note *note) {
    node->has_words = true;
    if (!is_launchers(note))
        return;
    node->has_launcher = true;
    if (note->slack_ns == 0 && !note_is(note, NOTE_TIMELESS) && note->time_ns < node->reaction_ns)
        node->reaction_ns = note->time_ns;
}

static void see_nodes(struct round_view *view, struct arena *arena) {
    view->node_slots = 8;
    while (view->node_slots < 2 * view->count)
        view->node_slots *= 2;
    view->nodes = arena_zero(arena, view->node_slots, sizeof *view->nodes);
    for (uint32_t i = 0; i < view->count; i++) {
        const struct exit_process *process = process_at(view, i);
        if (process->node == STRING_NONE)
            continue;
        struct node_view *node = node_at(view, process->node);
        if (node->node == STRING_NONE)
            *node = (struct node_view){.node = process->node, .reaction_ns = UINT64_MAX};
        for (uint32_t j = 0; j < process->note_count; j++)
            see_note(node, process->notes[j]);
    }
}

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
        process->node == STRING_NONE ? UINT64_MAX : node_at(view, process->node)->reaction_ns;
    if (reaction < candidate.high_ns) {
        candidate.high_ns = reaction;
        if (candidate.low_ns == 0 || candidate.low_ns > reaction)
            candidate.low_ns = reaction - POLL_NS;
    }
    return candidate;
}

static struct exit_candidate of_other(const struct exit_note *note, enum exit_kind kind) {
    return (struct exit_candidate){.process = NO_PROCESS,
                                   .node = note->node,
                                   .kind = kind,
                                   .ground = GROUND_WORDS,
                                   .reason = note,
                                   .low_ns = note->time_ns,
                                   .high_ns = note->time_ns + note->slack_ns};
}

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

static enum exit_kind kind_of_other(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
        return EXIT_PREEMPTED;
    case OBSERVATION_SLURM_CANCELLED:
        return kind_of_cancel(note);
    case OBSERVATION_SLURM_OOM:
        return EXIT_HOST_OOM;
    case OBSERVATION_SLURM_NODE_FAILURE:
        return EXIT_NODE_LOST;
    default:
        return EXIT_NONE;
    }
}

// What ended on a node whose launcher had been told to stop ended because of that.
static bool is_told_to_stop(const struct round_view *view, const struct exit_candidate *ended) {
    const struct exit_list *list = view->list;
    for (uint32_t i = 0; i < list->other_count; i++)
        if (list->other_rounds[i] == view->round && ended->node != STRING_NONE &&
            note_kind(list->others[i]) == OBSERVATION_LAUNCHER_TOLD_TO_STOP &&
            list->others[i]->node == ended->node &&
            ended->high_ns + POLL_NS >= list->others[i]->time_ns)
            return true;
    return false;
}

static uint32_t list_candidates(const struct round_view *view, struct exit_candidate *candidates) {
    const struct exit_list *list = view->list;
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        if (process_at(view, i)->kind == EXIT_NONE)
            continue;
        candidates[count] = of_process(view, i);
        count += !is_told_to_stop(view, &candidates[count]);
    }
    for (uint32_t i = 0; i < list->other_count; i++)
        if (list->other_rounds[i] == view->round && kind_of_other(list->others[i]) != EXIT_NONE)
            candidates[count++] = of_other(list->others[i], kind_of_other(list->others[i]));
    return count;
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
    return kept;
}

// Several that left with a code, and nobody says why: their logs are not there, and any of them may
// be a victim.
static bool are_mute(const struct exit_candidate *candidates, uint32_t count) {
    uint32_t mute = 0;
    for (uint32_t i = 0; i < count; i++)
        mute += candidates[i].ground == GROUND_CODE && candidates[i].kind == EXIT_CODE;
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

// Who must have been it because all others are accounted for.
static bool find_silent(const struct round_view *view, struct exit_decision *decision,
                        struct exit_candidate *found) {
    struct silence silence = listen(view);
    if (!silence.has_victims)
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
        return node != STRING_NONE && node_at(view, node)->has_launcher;
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
        if (view->list->other_rounds[i] == view->round &&
            kind_of_other(view->list->others[i]) != EXIT_NONE)
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
    uint32_t count = list_candidates(view, candidates);
    bool is_mute = are_mute(candidates, count);
    count = keep_first(candidates, count);
    decision->round = view->round;
    if (count == 0 && find_silent(view, decision, &candidates[0]))
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

struct exit_decision *exits_decide(const struct exit_list *list, struct arena *arena) {
    struct exit_decision *decisions = arena_zero(arena, list->round_count + 1, sizeof *decisions);
    uint32_t first = 0;
    for (uint32_t round = 0; round < list->round_count; round++) {
        struct round_view view = {.list = list, .round = round, .first = first};
        while (first + view.count < list->process_count &&
               list->processes[first + view.count].round == round)
            view.count++;
        first += view.count;
        see_nodes(&view, arena);
        decide(&view, &decisions[round], arena);
    }
    // A job that was started again is over that end, unless the next start came to nothing.
    for (uint32_t round = 0; round + 1 < list->round_count; round++)
        decisions[round].is_over = list->rounds[round + 1].job == list->rounds[round].job &&
                                   (decisions[round + 1].found || !has_ended(list, round + 1));
    return decisions;
}

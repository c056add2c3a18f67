// SPDX-License-Identifier: Apache-2.0
// Gathers what the processes of a round say of their nodes.
#include "processors/first_exit/view.h"

static bool is_launchers(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_LAUNCHER_FAILED ||
           note_kind(note) == OBSERVATION_LAUNCHER_SIGNAL ||
           note_kind(note) == OBSERVATION_LAUNCHER_SUMMARY;
}

struct node_view *view_node(const struct round_view *view, string_id node) {
    uint32_t slot = node * UINT32_C(2654435761) & (view->node_slots - 1);
    while (view->nodes[slot].node != STRING_NONE && view->nodes[slot].node != node)
        slot = (slot + 1) & (view->node_slots - 1);
    return &view->nodes[slot];
}

// Written on the node itself, not by the cluster or by Slurm.
static bool is_of_node(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_SLURM_CANCELLED:
    case OBSERVATION_SLURM_OOM:
    case OBSERVATION_SLURM_TASK_EXIT:
    case OBSERVATION_SLURM_NODE_FAILURE:
    case OBSERVATION_SLURM_STATE:
    case OBSERVATION_NODE_LOST:
    case OBSERVATION_JOB_STOPPED:
    case OBSERVATION_LAUNCH_FAILED:
    case OBSERVATION_CONTAINER_TERMINATED:
    case OBSERVATION_POD_DISRUPTION:
    case OBSERVATION_NODE_CONDITION:
        return false;
    default:
        return !note_is(note, NOTE_TIMELESS);
    }
}

static void see_note(struct node_view *node, const struct exit_note *note) {
    node->has_words = true;
    if (is_of_node(note) && note->time_ns > node->last_ns)
        node->last_ns = note->time_ns;
    if (!is_launchers(note))
        return;
    node->has_launcher = true;
    if (note->slack_ns == 0 && !note_is(note, NOTE_TIMELESS) && note->time_ns < node->reaction_ns)
        node->reaction_ns = note->time_ns;
}

void view_see_nodes(struct round_view *view, struct arena *arena) {
    view->node_slots = 8;
    while (view->node_slots < 2 * view->count)
        view->node_slots *= 2;
    view->nodes = arena_zero(arena, view->node_slots, sizeof *view->nodes);
    for (uint32_t i = 0; i < view->count; i++) {
        const struct exit_process *process = process_at(view, i);
        if (process->node == STRING_NONE)
            continue;
        struct node_view *node = view_node(view, process->node);
        if (node->node == STRING_NONE)
            *node = (struct node_view){
                .node = process->node, .reaction_ns = UINT64_MAX, .ended_ns = UINT64_MAX};
        if ((process->ended || process->victim) && process->high_ns != 0 &&
            process->high_ns < node->ended_ns)
            node->ended_ns = process->high_ns;
        for (uint32_t j = 0; j < process->note_count; j++)
            see_note(node, process->notes[j]);
    }
}

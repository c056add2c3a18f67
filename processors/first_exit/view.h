// SPDX-License-Identifier: Apache-2.0
// What is known of one round, while its first end is looked for (decide.c, stops.c). Lives in the
// arena of the evaluation.
#pragma once

#include "processors/first_exit/ends.h"

// A launcher looks so often for ends.
#define EXIT_POLL_NS UINT64_C(300000000)

// What the processes of a node say together.
struct node_view {
    string_id node;
    uint64_t reaction_ns; // when its launcher first did something about an end; UINT64_MAX: unknown
    bool has_launcher;    // a launcher told of its processes
    bool has_words;       // anybody told of them
    uint64_t last_ns;     // of what was written on it; 0: nothing of which the time is known
    uint64_t ended_ns;    // the first end of a process of it of which the time is known; UINT64_MAX
};

struct round_view {
    struct exit_list *list;
    uint32_t round;
    uint32_t first, count; // of the processes, which are sorted by round
    struct node_view *nodes;
    uint32_t node_slots;    // a power of two; those that are free have the node STRING_NONE
    enum exit_kind *others; // what each of the list's others tells of this round
};

static inline const struct exit_process *process_at(const struct round_view *view, uint32_t i) {
    assert(i < view->count);
    return &view->list->processes[view->first + i];
}

// The node of this name, or the free place of it. O(1).
struct node_view *view_node(const struct round_view *view, string_id node);
// Gathers what the processes say of their nodes. O(their notes).
void view_see_nodes(struct round_view *view, struct arena *arena);

static inline bool is_of_cluster(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_POD_DISRUPTION ||
           note_kind(note) == OBSERVATION_NODE_CONDITION;
}

// -- Stops (stops.c) ------------------------------------------------------------------------------

// Whether it ended because of a stop: what ended behind one did, and so did a launcher that was
// told to stop by Slurm. O(others of the list).
bool exit_was_stopped(const struct round_view *view, const struct exit_candidate *ended);
// Where all nodes were told to stop one after another, the job was, and none of them is to blame.
// Returns how many candidates are left. O(count + nodes).
uint32_t exits_join_stops(const struct round_view *view, struct exit_candidate *candidates,
                          uint32_t count);

// -- Silence (quiet.c) ----------------------------------------------------------------------------

// The only rank that counted, as others did, and then wrote nothing more, while all others tell how
// they went. It becomes a process of the list; NO_PROCESS: there is none such.
// O(processes of the round + writers).
uint32_t exits_find_quiet(const struct round_view *view, struct arena *arena);

// -- The same everywhere (alike.c) ----------------------------------------------------------------

// Whether all ranks that are known, or all of one node, raised what those did that were `first`.
// `candidates` are then those that did; where the answer is SCOPE_ONE they are not to be used any
// more. O(candidates + processes of the round).
enum exit_scope exits_find_scope(const struct round_view *view, struct exit_candidate *candidates,
                                 uint32_t *count, const struct exit_candidate *first,
                                 uint32_t first_count);
// The rank that all who tell of a mismatch of collectives tell of, when `first` does; NULL: there
// are two, or none. O(candidates).
const struct exit_candidate *exits_find_odd(const struct round_view *view,
                                            const struct exit_candidate *candidates, uint32_t count,
                                            const struct exit_candidate *first);
// The two ranks that `first` says to collide (one GPU, two versions of NCCL), where both have ended
// so. O(candidates).
bool exits_find_pair(const struct round_view *view, const struct exit_candidate *candidates,
                     uint32_t count, const struct exit_candidate *first,
                     struct exit_candidate pair[2]);

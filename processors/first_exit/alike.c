// SPDX-License-Identifier: Apache-2.0
// Finds out whether those who ended first are all who could, and ended in the same way: then no
// rank is to blame but the program, what they all read, or the node that they run on. And which
// rank it is that all others say to have called another collective than they did.
#include "base/text/cut.h"
#include "processors/first_exit/view.h"

static bool same_but_numbers(struct slice a, struct slice b) {
    size_t size;
    return text_begins_like(a, b, &size) && size == a.size;
}

bool exit_notes_alike(const struct exit_note *a, const struct exit_note *b) {
    return slice_equal(note_type(a), note_type(b)) && same_but_numbers(note_text(a), note_text(b));
}

// -- all of a round -------------------------------------------------------------------------------

static bool says_exception(const struct exit_candidate *candidate) {
    return candidate->process != NO_PROCESS && candidate->ground == GROUND_WORDS &&
           candidate->reason != NULL && candidate->reason->type_size > 0 &&
           (candidate->kind == EXIT_EXCEPTION || candidate->kind == EXIT_CUDA_ERROR ||
            candidate->kind == EXIT_CUDA_OOM);
}

static bool are_alike(const struct exit_candidate *a, const struct exit_candidate *b) {
    return says_exception(a) && says_exception(b) && a->kind == b->kind &&
           exit_notes_alike(a->reason, b->reason);
}

// Of the processes of the round that are known.
struct others {
    bool any;       // there are some that did not end so
    bool on_node;   // some of these are on the node of those that did, or it is not known where
    bool has_words; // something is told of one elsewhere
};

// Candidates stand in the order of the processes.
static struct others see_others(const struct round_view *view, const struct exit_candidate *same,
                                uint32_t count) {
    struct others others = {false, false, false};
    for (uint32_t i = 0, next = 0; i < view->count; i++) {
        const struct exit_process *process = process_at(view, i);
        if (next < count && same[next].process == view->first + i) {
            next++;
            continue;
        }
        if ((process->note_count == 0 && !process->placed) || process->is_unit)
            continue;
        others.any = true;
        others.on_node |= exit_agrees(process->node, same[0].node);
        others.has_words |= process->note_count > 0;
    }
    return others;
}

// Whether these are the ranks from 0 on: none is missing among them.
static bool are_from_zero(const struct round_view *view, const struct exit_candidate *same,
                          uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        int32_t rank = view->list->processes[same[i].process].rank;
        if (rank < 0 || (uint32_t)rank >= count)
            return false;
    }
    return true;
}

static bool are_on_one_node(const struct exit_candidate *same, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (same[i].node == STRING_NONE || same[i].node != same[0].node)
            return false;
    return true;
}

// Keeps those that tell of the same exception; returns how many.
static uint32_t keep_alike(struct exit_candidate *candidates, uint32_t count,
                           const struct exit_candidate *model) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (are_alike(&candidates[i], model))
            candidates[kept++] = candidates[i];
    return kept;
}

enum exit_scope exits_find_scope(const struct round_view *view, struct exit_candidate *candidates,
                                 uint32_t *count, const struct exit_candidate *first,
                                 uint32_t first_count) {
    for (uint32_t i = 0; i < first_count; i++)
        if (!are_alike(&first[i], &first[0]))
            return SCOPE_ONE;
    *count = first_count == 0 ? 0 : keep_alike(candidates, *count, &first[0]);
    if (*count < 2)
        return SCOPE_ONE;
    struct others others = see_others(view, candidates, *count);
    if (!others.any && are_from_zero(view, candidates, *count))
        return SCOPE_ALL;
    if (!are_on_one_node(candidates, *count) || others.on_node)
        return SCOPE_ONE;
    return others.has_words ? SCOPE_NODE_ALONE : SCOPE_NODE;
}

// -- the odd one ----------------------------------------------------------------------------------

static bool take_rank(struct slice *text, struct slice before, int32_t *rank) {
    uint64_t number;
    if (!text_find(*text, before, text) || !text_take_number(text, 1, 9, &number))
        return false;
    *rank = (int32_t)number;
    return true;
}

// "Detected mismatch between collectives on ranks. Rank 4 is running collective: …, but Rank 5 is
// running collective: …"
static bool reads_mismatch(const struct exit_candidate *candidate, int32_t ranks[2]) {
    struct slice text;
    return candidate->process != NO_PROCESS && candidate->reason != NULL &&
           text_find(note_text(candidate->reason), SLICE("mismatch between collectives"), &text) &&
           take_rank(&text, SLICE("Rank "), &ranks[0]) &&
           take_rank(&text, SLICE("but Rank "), &ranks[1]);
}

static const struct exit_candidate *of_rank(const struct round_view *view,
                                            const struct exit_candidate *candidates, uint32_t count,
                                            int32_t rank) {
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i].process != NO_PROCESS &&
            view->list->processes[candidates[i].process].rank == rank)
            return &candidates[i];
    return NULL;
}

const struct exit_candidate *exits_find_odd(const struct round_view *view,
                                            const struct exit_candidate *candidates, uint32_t count,
                                            const struct exit_candidate *first) {
    int32_t in_all[2], said[2];
    if (!reads_mismatch(first, in_all))
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < 2 && reads_mismatch(&candidates[i], said); j++)
            if (in_all[j] != said[0] && in_all[j] != said[1])
                in_all[j] = RANK_NONE;
    bool is_one = (in_all[0] < 0) != (in_all[1] < 0);
    return is_one ? of_rank(view, candidates, count, in_all[0] < 0 ? in_all[1] : in_all[0]) : NULL;
}

// -- two that are named ---------------------------------------------------------------------------

// What NCCL finds in the data of all ranks, so that each of them says it of two.
static bool reads_pair(const struct exit_candidate *candidate, int32_t ranks[2]) {
    static const struct {
        struct slice before, between;
    } PAIRS[] = {{{"Duplicate GPU detected : rank ", 30}, {"and rank ", 9}},
                 {{"Mismatched NCCL version detected : rank ", 40}, {" rank ", 6}}};
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS && candidate->reason != NULL; i++) {
        struct slice text = note_text(candidate->reason);
        if (take_rank(&text, PAIRS[i].before, &ranks[0]) &&
            take_rank(&text, PAIRS[i].between, &ranks[1]))
            return true;
    }
    return false;
}

bool exits_find_pair(const struct round_view *view, const struct exit_candidate *candidates,
                     uint32_t count, const struct exit_candidate *first,
                     struct exit_candidate pair[2]) {
    int32_t ranks[2];
    if (!reads_pair(first, ranks) || ranks[0] == ranks[1])
        return false;
    int32_t low = ranks[0] < ranks[1] ? ranks[0] : ranks[1];
    const struct exit_candidate *of_low = of_rank(view, candidates, count, low);
    const struct exit_candidate *of_high =
        of_rank(view, candidates, count, ranks[0] + ranks[1] - low);
    if (of_low == NULL || of_high == NULL)
        return false;
    pair[0] = *of_low;
    pair[1] = *of_high;
    return true;
}

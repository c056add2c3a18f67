// SPDX-License-Identifier: Apache-2.0
// Finds the rank that counted and then fell silent, while all others tell that they lost a peer.
//
// A process that is killed writes nothing more: in logs alone it is the one that says nothing. That
// is so only where its log is there, as what it counted shows, where others counted, too, and where
// no rank is missing.
#include "processors/cluster/progress_log.h"
#include "processors/first_exit/view.h"

// Ranks as bits.
struct rank_set {
    uint64_t *words;
    int32_t limit; // ranks below it have room
};

static struct rank_set set_make(int32_t limit, struct arena *arena) {
    size_t words = (size_t)limit / 64 + 1;
    return (struct rank_set){arena_zero(arena, words, sizeof(uint64_t)), limit};
}

static bool set_has(const struct rank_set *set, int32_t rank) {
    return rank >= 0 && rank < set->limit && (set->words[rank / 64] >> rank % 64 & 1) != 0;
}

static void set_add(struct rank_set *set, int32_t rank) {
    if (rank >= 0 && rank < set->limit)
        set->words[rank / 64] |= UINT64_C(1) << rank % 64;
}

static int32_t rank_of(const struct exit_list *list, const struct progress_row *row) {
    return row->rank >= 0 ? row->rank : exit_writer_of(list->writers, row->key.source);
}

// Who told anything, and until when; false: it is not known who some of them are.
static bool see_heard(const struct round_view *view, struct rank_set *heard, uint64_t *until_ns) {
    *until_ns = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        const struct exit_process *process = process_at(view, i);
        if (process->note_count > 0 && process->rank < 0)
            return false;
        if (process->note_count > 0)
            set_add(heard, process->rank);
        for (uint32_t j = 0; j < process->note_count; j++)
            if (!note_is(process->notes[j], NOTE_TIMELESS) &&
                process->notes[j]->time_ns > *until_ns)
                *until_ns = process->notes[j]->time_ns;
    }
    return true;
}

// More ranks than these have processes and writers would leave some missing.
static int32_t count_writers(const struct round_view *view) {
    int32_t count = (int32_t)view->count;
    for (uint32_t at = 0; progress_next_writer(view->list->progress, &at) != NULL;)
        count++;
    return count;
}

// It counts as well as the others until they end. One that is done left when its work was.
static bool has_stopped(const struct progress_row *row, uint64_t until_ns) {
    bool is_later = !row->timeless && until_ns != 0 && row->time_ns > until_ns;
    return row->key.state != PROGRESS_DONE && !is_later;
}

static uint32_t add_process(struct exit_list *list, const struct progress_row *row, int32_t rank,
                            uint32_t round) {
    if (list->quiet_count == QUIET_MAX)
        return NO_PROCESS;
    list->quiet_count++;
    list->processes[list->process_count] = (struct exit_process){.node = row->node,
                                                                 .job = list->rounds[round].job,
                                                                 .pid = row->pid,
                                                                 .rank = rank,
                                                                 .local_rank = row->local_rank,
                                                                 .gpu = PCI_NONE,
                                                                 .round = round};
    return list->process_count++;
}

// Whether a row is of the only rank that is quiet so far; `others_count`: or of one that is heard.
static bool take_writer(const struct round_view *view, const struct rank_set *heard,
                        uint64_t until_ns, const struct progress_row *row,
                        const struct progress_row **quiet, bool *others_count) {
    int32_t rank = rank_of(view->list, row);
    if (rank < 0 || !exit_agrees(row->job, view->list->rounds[view->round].job))
        return true;
    if (set_has(heard, rank)) {
        *others_count = true;
        return true;
    }
    bool is_other = *quiet != NULL && rank_of(view->list, *quiet) != rank;
    *quiet = row;
    return rank < heard->limit && has_stopped(row, until_ns) && !is_other;
}

// The ranks that are heard, and this one, are those from 0 on.
static bool is_last_missing(const struct rank_set *heard, int32_t rank) {
    int32_t last = rank;
    for (int32_t i = rank; i < heard->limit; i++)
        last = set_has(heard, i) ? i : last;
    for (int32_t i = 0; i <= last; i++)
        if (i != rank && !set_has(heard, i))
            return false;
    return true;
}

uint32_t exits_find_quiet(const struct round_view *view, struct arena *arena) {
    struct exit_list *list = view->list;
    string_id job = list->rounds[view->round].job;
    // What was counted last is of the last start.
    bool is_last = view->round + 1 == list->round_count || list->rounds[view->round + 1].job != job;
    struct rank_set heard = set_make(count_writers(view), arena);
    const struct progress_row *row, *quiet = NULL;
    uint64_t until_ns = 0;
    bool others_count = false;
    if (!is_last || !see_heard(view, &heard, &until_ns))
        return NO_PROCESS;
    for (uint32_t at = 0; (row = progress_next_writer(list->progress, &at)) != NULL;)
        if (!take_writer(view, &heard, until_ns, row, &quiet, &others_count))
            return NO_PROCESS;
    if (quiet == NULL || !others_count || !is_last_missing(&heard, rank_of(list, quiet)))
        return NO_PROCESS;
    return add_process(list, quiet, rank_of(list, quiet), view->round);
}

// SPDX-License-Identifier: Apache-2.0
// To which start of its job each process belongs. O(processes log processes).
#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/first_exit/ends.h"

enum { BUCKETS = 4096 };

// The ranks of one start are told of within so long, and a job that starts anew on other nodes
// needs longer for it.
#define ONE_START_NS (60 * UINT64_C(1000000000))

static uint64_t begin_of(const struct exit_process *process) {
    uint64_t begin = process->start_ns;
    for (uint32_t i = 0; i < process->note_count && process->start_ns == 0; i++)
        if (!note_is(process->notes[i], NOTE_TIMELESS) &&
            (begin == 0 || process->notes[i]->time_ns < begin))
            begin = process->notes[i]->time_ns;
    return begin;
}

static int compare_begins(const void *left, const void *right) {
    const struct exit_process *a = left, *b = right;
    int order = compare_strings(a->job, b->job);
    if (order == 0)
        order = COMPARE_KEYS(COMPARE(a->turn, b->turn), COMPARE(begin_of(a), begin_of(b)),
                             COMPARE(a->rank, b->rank), COMPARE(b->placed, a->placed));
    if (order == 0)
        order = compare_strings(a->node, b->node);
    return order != 0
               ? order
               : COMPARE_KEYS(COMPARE(a->local_rank, b->local_rank), COMPARE(a->pid, b->pid));
}

static bool same_seat(const struct exit_process *a, const struct exit_process *b) {
    if (a->rank >= 0 && b->rank >= 0)
        return a->rank == b->rank;
    return a->local_rank >= 0 && a->local_rank == b->local_rank && a->node != STRING_NONE &&
           a->node == b->node;
}

static bool has_seat(const struct exit_process *process) {
    return process->rank >= 0 || (process->local_rank >= 0 && process->node != STRING_NONE);
}

struct seats {
    uint32_t heads[BUCKETS]; // of processes that sit, by their next_by_rank
};

static uint32_t bucket_of(const struct exit_process *process, uint32_t round) {
    uint64_t seat =
        process->rank >= 0 ? (uint64_t)process->rank << 1 : (uint64_t)process->node << 1 | 1;
    uint64_t hash = (seat * 0x9e3779b97f4a7c15u ^ round) * 0xff51afd7ed558ccdu;
    return (uint32_t)(hash >> 40) % BUCKETS;
}

// A rank that runs on two nodes at once is of two jobs. So it may be where nobody said when, and
// where the job is said of but one of two such starts.
static bool is_of_other_job(const struct exit_process *a, const struct exit_process *b) {
    uint64_t apart =
        a->start_ns > b->start_ns ? a->start_ns - b->start_ns : b->start_ns - a->start_ns;
    bool is_dated = a->start_ns != 0 && b->start_ns != 0;
    if (!is_dated && (!a->placed || !b->placed))
        return false;
    bool is_elsewhere = !exit_agrees(a->node, b->node);
    return is_dated ? is_elsewhere && apart <= ONE_START_NS
                    : is_elsewhere || a->adopted != b->adopted;
}

// Takes the process's seat in the round; false: somebody sits there.
static bool sit_down(struct exit_list *list, struct seats *seats, uint32_t at, uint32_t round) {
    struct exit_process *process = &list->processes[at];
    uint32_t *head = &seats->heads[bucket_of(process, round)];
    for (uint32_t other = *head; other != NO_PROCESS; other = list->processes[other].next_by_rank)
        if (list->processes[other].round == round && same_seat(&list->processes[other], process)) {
            list->rounds[round].is_mixed |= is_of_other_job(&list->processes[other], process);
            return false;
        }
    process->next_by_rank = *head;
    *head = at;
    return true;
}

// -- starts that nobody dated ---------------------------------------------------------------------

static bool is_undated(const struct exit_process *process) {
    return process->placed && process->start_ns == 0 && process->rank >= 0;
}

static int compare_ranks(const void *left, const void *right) {
    const struct exit_process *a = *(struct exit_process *const *)left;
    const struct exit_process *b = *(struct exit_process *const *)right;
    return COMPARE_KEYS(COMPARE(a->rank, b->rank), COMPARE(a->pid, b->pid));
}

// Of processes on several nodes: those of which nothing is told came first, so that what ended is
// not taken for over.
static int compare_ends(const void *left, const void *right) {
    const struct exit_process *a = *(struct exit_process *const *)left;
    const struct exit_process *b = *(struct exit_process *const *)right;
    int order = COMPARE_KEYS(COMPARE(a->note_count > 0, b->note_count > 0),
                             COMPARE(begin_of(a), begin_of(b)));
    return order != 0 ? order : compare_strings(a->node, b->node);
}

// The processes of one rank, by pid: on one node these grow from start to start.
static void set_turns_of_rank(struct exit_process **starts, uint32_t count, struct arena *arena) {
    bool several_nodes = false;
    for (uint32_t i = 1; i < count; i++)
        several_nodes |= starts[i]->node != starts[0]->node;
    if (several_nodes)
        sort_stable(starts, count, sizeof *starts, arena, compare_ends);
    for (uint32_t i = 0; i < count; i++)
        starts[i]->turn = i;
}

static uint64_t end_of(const struct exit_process *process) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < process->note_count; i++)
        if (!note_is(process->notes[i], NOTE_TIMELESS) && process->notes[i]->time_ns > end)
            end = process->notes[i]->time_ns;
    return end;
}

// Who is in no rank map is of the first start that had not ended before it; in doubt of the last.
static void set_turns_of_others(struct exit_process *processes, uint32_t count, uint32_t turns,
                                struct arena *arena) {
    uint64_t *ends = arena_zero(arena, turns, sizeof *ends);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = is_undated(&processes[i]) ? end_of(&processes[i]) : 0;
        if (end > ends[processes[i].turn])
            ends[processes[i].turn] = end;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t begin = begin_of(&processes[i]);
        if (is_undated(&processes[i]))
            continue;
        while (processes[i].turn + 1 < turns &&
               (begin == 0 || begin > ends[processes[i].turn] + ONE_START_NS))
            processes[i].turn++;
    }
}

// Of one job. Returns how many starts the rank has that has most.
static uint32_t set_turns_of_job(struct exit_process *processes, uint32_t count,
                                 struct arena *arena) {
    struct exit_process **starts = arena_take(arena, (count + (size_t)1) * sizeof *starts);
    uint32_t undated = 0, turns = 1;
    for (uint32_t i = 0; i < count; i++)
        if (is_undated(&processes[i]))
            starts[undated++] = &processes[i];
    sort_stable(starts, undated, sizeof *starts, arena, compare_ranks);
    for (uint32_t from = 0, to; from < undated; from = to) {
        for (to = from + 1; to < undated && starts[to]->rank == starts[from]->rank;)
            to++;
        set_turns_of_rank(starts + from, to - from, arena);
        turns = to - from > turns ? to - from : turns;
    }
    if (turns > 1)
        set_turns_of_others(processes, count, turns, arena);
    return turns;
}

// Of processes that are sorted by job; false: there is nothing to order.
static bool set_turns(struct exit_list *list, struct arena *arena) {
    bool several = false;
    for (uint32_t from = 0, to; from < list->process_count; from = to) {
        for (to = from + 1;
             to < list->process_count && list->processes[to].job == list->processes[from].job;)
            to++;
        several |= set_turns_of_job(list->processes + from, to - from, arena) > 1;
    }
    return several;
}

// -- rounds ---------------------------------------------------------------------------------------

// Who names no job is of the only one that is named.
static void set_jobs(struct exit_list *list) {
    string_id job = STRING_NONE;
    for (uint32_t i = 0; i < list->process_count; i++) {
        string_id said = list->processes[i].job;
        if (said != STRING_NONE && job != STRING_NONE && said != job)
            return;
        job = said != STRING_NONE ? said : job;
    }
    for (uint32_t i = 0; i < list->process_count; i++) {
        list->processes[i].adopted = list->processes[i].job != job;
        list->processes[i].job = job;
    }
}

static void begin_round(struct exit_list *list, const struct exit_process *process) {
    struct exit_round *round = &list->rounds[list->round_count];
    bool is_new_job = list->round_count == 0 || round[-1].job != process->job;
    *round = (struct exit_round){.job = process->job,
                                 .start_ns = process->start_ns,
                                 .ordinal = is_new_job ? 0 : round[-1].ordinal + 1};
    list->round_count++;
}

// A job's processes in order of time: who finds his seat taken begins the next round.
static void set_rounds(struct exit_list *list, struct arena *arena) {
    struct seats *seats = arena_take(arena, sizeof *seats);
    set_jobs(list);
    sort_stable(list->processes, list->process_count, sizeof *list->processes, arena,
                compare_begins);
    if (set_turns(list, arena))
        sort_stable(list->processes, list->process_count, sizeof *list->processes, arena,
                    compare_begins);
    memset(seats->heads, 0xff, sizeof seats->heads);
    list->rounds = arena_take(arena, (list->process_count + 1) * sizeof *list->rounds);
    for (uint32_t i = 0; i < list->process_count; i++) {
        struct exit_process *process = &list->processes[i];
        if (list->round_count == 0 || list->rounds[list->round_count - 1].job != process->job)
            begin_round(list, process);
        if (has_seat(process) && !sit_down(list, seats, i, list->round_count - 1)) {
            bool is_mixed = list->rounds[list->round_count - 1].is_mixed;
            begin_round(list, process);
            list->rounds[list->round_count - 1].is_mixed = is_mixed;
            bool is_free = sit_down(list, seats, i, list->round_count - 1);
            assert(is_free);
            (void)is_free;
        }
        process->round = list->round_count - 1;
    }
    // What is told of nodes alone is a round, too.
    if (list->round_count == 0 && list->other_count > 0)
        list->rounds[list->round_count++] = (struct exit_round){.job = list->others[0]->job};
}

static bool may_speak_of(const struct exit_list *list, const struct exit_note *note,
                         const struct exit_process *process) {
    return exit_agrees(note->job, process->job) && exit_agrees(note->node, process->node) &&
           (note->unit == STRING_NONE || process->unit == note->unit) &&
           (note_is(note, NOTE_TIMELESS) ||
            list->rounds[process->round].start_ns <= note->time_ns + note->slack_ns);
}

// A line of srun, which stands in the output of its job, about a node of which nothing else is
// known: it is of the job where there is but one.
static bool is_of_only_job(const struct exit_list *list, const struct exit_note *note) {
    if (!note_is_node_loss(note) || !note_is(note, NOTE_TIMELESS) ||
        list->rounds[0].job != list->rounds[list->round_count - 1].job)
        return false;
    for (uint32_t i = 0; i < list->process_count; i++)
        if (list->processes[i].node == note->node)
            return false;
    return exit_agrees(note->job, list->rounds[0].job);
}

// A line about a node is about all jobs on it; any other that names neither job nor pod is of a job
// only where it can be of no other.
static bool names_its_job(const struct exit_note *note) {
    return note->job != STRING_NONE || note->unit != STRING_NONE ||
           note_kind(note) == OBSERVATION_NODE_CONDITION || note_is_node_loss(note);
}

// The last round of those that the note may speak of; NO_ROUND: none, or nobody knows of which job.
static uint32_t find_round(const struct exit_list *list, const struct exit_note *note) {
    uint32_t round = NO_ROUND;
    for (uint32_t at = 0; at < list->process_count; at++) {
        const struct exit_process *process = &list->processes[at];
        if (!may_speak_of(list, note, process))
            continue;
        if (round != NO_ROUND && list->rounds[round].job != process->job && !names_its_job(note))
            return NO_ROUND;
        round = process->round;
    }
    return round;
}

// Of the last round that had begun, of a job that the node takes part in. A line without a time is
// read at some time after it was written: of the last.
static void set_other_rounds(struct exit_list *list, struct arena *arena) {
    list->other_rounds = arena_zero(arena, list->other_count + 1, sizeof *list->other_rounds);
    for (uint32_t i = 0; i < list->other_count; i++)
        list->other_rounds[i] = list->process_count == 0 ? 0 : find_round(list, list->others[i]);
    for (uint32_t i = 0; i < list->other_count; i++) {
        if (list->other_rounds[i] == NO_ROUND && is_of_only_job(list, list->others[i]))
            list->other_rounds[i] = list->round_count - 1;
    }
}

void exits_set_rounds(struct exit_list *list, struct arena *arena) {
    set_rounds(list, arena);
    set_other_rounds(list, arena);
}

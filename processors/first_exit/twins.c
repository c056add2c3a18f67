// SPDX-License-Identifier: Apache-2.0
// One end that is told twice: by a process that does not say its rank, and by its launcher or by
// another log that does.
//
// A crash handler knows the node and the pid, a launcher the rank: where one such process and one
// such rank ended by the same signal, they are one. Where more ranks did, the process is one of
// them, and nothing is lost with it. O(processes^2) of those without a rank, which are few.
#include "processors/first_exit/join.h"

// A launcher sees an end so soon after the process wrote of it.
#define SEEN_NS (60 * UINT64_C(1000000000))

// How many processes without a rank are compared with the others.
enum { NAMELESS_MAX = 64 };

static bool is_nameless(const struct exit_process *process) {
    return !process->placed && !process->is_unit && process->rank < 0 && process->local_rank < 0 &&
           process->unit == STRING_NONE;
}

// By whom an end by a signal is told.
enum teller { BY_NOBODY, BY_ITSELF, BY_LAUNCHER };

static enum teller teller_of(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_KILLED:
        return BY_ITSELF;
    case OBSERVATION_LAUNCHER_FAILED:
    case OBSERVATION_LAUNCHER_SIGNAL:
    case OBSERVATION_LAUNCHER_SUMMARY:
    case OBSERVATION_SLURM_TASK_EXIT:
        return BY_LAUNCHER;
    default:
        return BY_NOBODY;
    }
}

static int32_t signal_of(const struct exit_note *note) {
    enum { CODE_BASE = 128, SIGNALS = 64 };
    if (note->signal > 0)
        return note->signal;
    int32_t signal = note->exit_code - CODE_BASE;
    return signal > 0 && signal <= SIGNALS ? signal : 0;
}

// The note that tells of an end by a signal, where all that tell of one are told by `teller`.
static const struct exit_note *only_end(const struct exit_process *process, enum teller teller) {
    const struct exit_note *end = NULL;
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        if (teller_of(note) == BY_NOBODY)
            continue;
        if (teller_of(note) != teller || signal_of(note) == 0)
            return NULL;
        end = end == NULL ? note : end;
    }
    return end;
}

static bool is_at_one_time(const struct exit_note *a, const struct exit_note *b) {
    uint64_t apart = a->time_ns > b->time_ns ? a->time_ns - b->time_ns : b->time_ns - a->time_ns;
    return note_is(a, NOTE_TIMELESS) || note_is(b, NOTE_TIMELESS) || apart <= SEEN_NS;
}

// They stand in one log, or both name the node.
static bool is_near(const struct exit_process *a, const struct exit_note *by_a,
                    const struct exit_process *b, const struct exit_note *by_b) {
    bool same_log = by_a->key.source == by_b->key.source;
    bool same_node = a->node != STRING_NONE && a->node == b->node;
    return exit_agrees(a->job, b->job) && exit_agrees(a->node, b->node) && (same_log || same_node);
}

static bool is_same_end(const struct exit_process *nameless, const struct exit_process *other) {
    const struct exit_note *own = only_end(nameless, BY_ITSELF);
    const struct exit_note *seen = own == NULL ? NULL : only_end(other, BY_LAUNCHER);
    return seen != NULL && signal_of(own) == signal_of(seen) && is_at_one_time(own, seen) &&
           (nameless->pid < 0 || other->pid < 0) && is_near(nameless, own, other, seen);
}

// All that the process says, the other says in the same words.
static bool is_same_words(const struct exit_process *nameless, const struct exit_process *other) {
    if (nameless->pid >= 0 || !exit_agrees(nameless->job, other->job) ||
        !exit_agrees(nameless->node, other->node) || is_nameless(other))
        return false;
    for (uint32_t i = 0; i < nameless->note_count; i++) {
        bool is_told = false;
        for (uint32_t j = 0; j < other->note_count && !is_told; j++)
            is_told = note_same_words(nameless->notes[i], other->notes[j]) &&
                      is_at_one_time(nameless->notes[i], other->notes[j]);
        if (!is_told)
            return false;
    }
    return nameless->note_count > 0;
}

struct twins {
    uint32_t nameless, others, first; // `first` of the others
};

// Of the process's end: how many without a rank tell of such a one, and how many it may be.
static struct twins count_twins(const struct exit_list *list, uint32_t at) {
    struct twins twins = {.first = NO_PROCESS};
    const struct exit_note *own = only_end(&list->processes[at], BY_ITSELF);
    for (uint32_t i = 0; i < list->process_count; i++) {
        const struct exit_process *other = &list->processes[i];
        const struct exit_note *end = is_nameless(other) ? only_end(other, BY_ITSELF) : NULL;
        twins.nameless += own != NULL && end != NULL && signal_of(end) == signal_of(own) &&
                          is_near(&list->processes[at], own, other, end);
        if (i == at || !is_same_end(&list->processes[at], other))
            continue;
        twins.first = twins.others++ == 0 ? i : twins.first;
    }
    return twins;
}

static void take_notes(struct exit_process *into, const struct exit_process *from) {
    for (uint32_t i = 0; i < from->note_count && into->note_count < NOTES_OF_PROCESS; i++)
        into->notes[into->note_count++] = from->notes[i];
    into->pid = into->pid < 0 ? from->pid : into->pid;
    into->node = into->node == STRING_NONE ? from->node : into->node;
    into->job = into->job == STRING_NONE ? from->job : into->job;
}

// Whether what the process tells is told of others; what it tells goes to the one that it is.
static bool is_twin(struct exit_list *list, uint32_t at) {
    struct exit_process *process = &list->processes[at];
    struct twins twins = count_twins(list, at);
    if (twins.others == 1 && twins.nameless == 1)
        take_notes(&list->processes[twins.first], process);
    bool is_told = twins.others > 0 && twins.nameless <= twins.others;
    for (uint32_t i = 0; i < list->process_count && !is_told; i++)
        is_told = i != at && is_same_words(process, &list->processes[i]);
    return is_told;
}

void exits_join_twins(struct exit_list *list) {
    bool is_gone[NAMELESS_MAX] = {0};
    uint32_t nameless[NAMELESS_MAX], count = 0, kept = 0, next = 0;
    for (uint32_t i = 0; i < list->process_count && count < NAMELESS_MAX; i++)
        if (is_nameless(&list->processes[i]) && list->processes[i].note_count > 0)
            nameless[count++] = i;
    for (uint32_t i = 0; i < count; i++)
        is_gone[i] = is_twin(list, nameless[i]);
    for (uint32_t i = 0; i < list->process_count; i++) {
        bool is_known = next < count && nameless[next] == i;
        if (!is_known || !is_gone[next])
            list->processes[kept++] = list->processes[i];
        next += is_known;
    }
    list->process_count = kept;
}

// SPDX-License-Identifier: Apache-2.0
// Finds the process that is meant: by job, node, pid, rank, local rank, pod, log and time.
#include "processors/first_exit/join.h"

#include "base/hash/hash.h"

enum { SIGNAL_SEGV = 11 };

// The end of a process is seen by its launcher so soon after the kernel's line.
#define KILL_SEEN_NS (60 * UINT64_C(1000000000))

// Ranks whose starts are no further apart run at the same time.
#define ONE_START_NS (60 * UINT64_C(1000000000))

static uint32_t *next_of(struct exit_process *process, enum chain chain) {
    uint32_t *const links[CHAINS] = {&process->next_by_rank, &process->next_by_pid,
                                     &process->next_by_local, &process->next_by_unit};
    return links[chain];
}

static uint32_t bucket_of(enum chain chain, string_id name, int64_t number) {
    uint64_t hash = ((uint64_t)name * 0x9e3779b97f4a7c15u) ^ ((uint64_t)number + chain);
    hash *= 0xff51afd7ed558ccdu;
    return (uint32_t)(hash >> 40) % BUCKETS;
}

static void link_process(struct gathering *gathering, uint32_t at, enum chain chain, string_id name,
                         int64_t number) {
    uint32_t *head = &gathering->heads[chain][bucket_of(chain, name, number)];
    *next_of(&gathering->list->processes[at], chain) = *head;
    *head = at;
}

// -- processes ------------------------------------------------------------------------------------

// What was not known of it yet.
void join_learn(struct gathering *gathering, uint32_t at, const struct identity *said) {
    struct exit_process *process = &gathering->list->processes[at];
    if (process->node == STRING_NONE)
        process->node = said->node;
    if (process->rank < 0 && said->rank >= 0) {
        process->rank = said->rank;
        link_process(gathering, at, BY_RANK, STRING_NONE, said->rank);
    }
    if (process->pid < 0 && said->pid >= 0) {
        process->pid = said->pid;
        link_process(gathering, at, BY_PID, STRING_NONE, said->pid);
    }
    if (process->local_rank < 0)
        process->local_rank = said->local_rank;
    if (process->local_rank >= 0 && process->node != STRING_NONE && !process->is_local) {
        process->is_local = true;
        link_process(gathering, at, BY_LOCAL, process->node, process->local_rank);
    }
    if (process->unit == STRING_NONE && said->unit != STRING_NONE) {
        process->unit = said->unit;
        process->unit_hash = hash_slice(intern_slice(said->unit));
        link_process(gathering, at, BY_UNIT, STRING_NONE, (int64_t)process->unit_hash);
    }
}

uint32_t join_add(struct gathering *gathering, const struct identity *said) {
    struct exit_list *list = gathering->list;
    assert(list->process_count < gathering->capacity);
    uint32_t at = list->process_count++;
    list->processes[at] = (struct exit_process){.job = said->job,
                                                .source = said->source,
                                                .pid = -1,
                                                .rank = RANK_NONE,
                                                .local_rank = -1,
                                                .gpu = PCI_NONE};
    join_learn(gathering, at, said);
    return at;
}

static bool agrees_number(int64_t known, int64_t said) {
    return known < 0 || said < 0 || known == said;
}

static uint64_t away(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

// Whether its launcher, or who else saw it end, says that at that time the process ended by the
// signal that comes with what the note tells.
bool join_seen_to_end(const struct exit_process *process, const struct exit_note *at) {
    bool is_fault = note_kind(at) == OBSERVATION_SEGFAULT || note_kind(at) == OBSERVATION_TRAP;
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        bool is_timed = !note_is(note, NOTE_TIMELESS) && !note_is(at, NOTE_TIMELESS);
        if (note_ended_by(note, is_fault ? SIGNAL_SEGV : SIGNAL_KILL) &&
            (!is_timed || away(note->time_ns, at->time_ns) <= KILL_SEEN_NS))
            return true;
    }
    return false;
}

// A pid of the host says nothing of processes in pods, unless somebody saw the one with this number
// end then: some pods share the pids of their host.
static bool has_pid(const struct exit_process *process, const struct identity *said) {
    return process->pid == said->pid && (said->by_kernel == NULL || process->unit == STRING_NONE ||
                                         join_seen_to_end(process, said->by_kernel));
}

// Pods: a rank map may say the name without its namespace.
static bool agrees_unit(string_id known, string_id said) {
    if (exit_agrees(known, said))
        return true;
    struct slice a = intern_slice(known), b = intern_slice(said);
    struct slice longer = a.size > b.size ? a : b, name = a.size > b.size ? b : a;
    size_t before = longer.size - name.size;
    return before > 0 && longer.data[before - 1] == '/' &&
           memcmp(longer.data + before, name.data, name.size) == 0;
}

// The next process at or behind `at` of its chain that can be the one that is said.
uint32_t join_next(const struct gathering *gathering, enum chain chain, uint32_t at,
                   const struct identity *said) {
    for (; at != NO_PROCESS; at = *next_of(&gathering->list->processes[at], chain)) {
        const struct exit_process *process = &gathering->list->processes[at];
        bool same = chain == BY_RANK  ? process->rank == said->rank
                    : chain == BY_PID ? has_pid(process, said)
                    : chain == BY_LOCAL
                        ? process->local_rank == said->local_rank && process->node == said->node
                        : process->unit_hash == said->unit_hash;
        if (same && exit_agrees(process->job, said->job) &&
            exit_agrees(process->node, said->node) && agrees_unit(process->unit, said->unit) &&
            agrees_number(process->rank, said->rank) && agrees_number(process->pid, said->pid))
            return at;
    }
    return NO_PROCESS;
}

uint32_t join_first(const struct gathering *gathering, enum chain chain, string_id name,
                    int64_t number, const struct identity *said) {
    return join_next(gathering, chain, gathering->heads[chain][bucket_of(chain, name, number)],
                     said);
}

// -- jobs and nodes -------------------------------------------------------------------------------

// Everybody is of the only job that is named.
static struct job_nodes *nodes_of(struct gathering *gathering, string_id job) {
    return &gathering->nodes[gathering->several_jobs ? job % JOB_SLOTS : 0];
}

void join_see_job(struct gathering *gathering, string_id job) {
    gathering->several_jobs |=
        job != STRING_NONE && gathering->job != STRING_NONE && job != gathering->job;
    gathering->job = job != STRING_NONE ? job : gathering->job;
}

void join_see_node(struct gathering *gathering, string_id job, string_id node) {
    struct job_nodes *nodes = nodes_of(gathering, job);
    if (node == STRING_NONE)
        return;
    if (nodes->node == STRING_NONE)
        *nodes = (struct job_nodes){job, node, false};
    nodes->several |= nodes->node != node || (gathering->several_jobs && nodes->job != job);
}

// The processes that match what is said.
struct matches {
    bool of_job;   // some are of the very job that is said, or name none, as it does: these count
    bool on_node;  // all of these are known to be on the node that is said
    bool in_log;   // the same log has told of all of these
    bool is_mixed; // they are of several jobs
    bool several;  // they are several ranks, or on several nodes
};

static bool is_other_process(const struct exit_process *a, const struct exit_process *b) {
    return (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank) || !exit_agrees(a->node, b->node);
}

// Both name the same job, or none where several are named.
static bool names_job_of(const struct gathering *gathering, const struct exit_process *process,
                         const struct identity *said) {
    return !gathering->several_jobs || process->job == said->job;
}

// A launcher's log names its own processes by their numbers, and not its node in each line.
static bool is_told_in(const struct exit_process *process, string_id log) {
    for (uint32_t i = 0; i < process->note_count; i++)
        if (process->notes[i]->key.source == log)
            return log != STRING_NONE && log != STRING_REFUSED;
    return false;
}

static struct matches see_matches(const struct gathering *gathering, enum chain chain, uint32_t at,
                                  const struct identity *said) {
    struct matches matches = {.on_node = true, .in_log = true};
    const struct exit_process *first = NULL;
    for (at = join_next(gathering, chain, at, said); at != NO_PROCESS;
         at = join_next(gathering, chain, *next_of(&gathering->list->processes[at], chain), said)) {
        const struct exit_process *process = &gathering->list->processes[at];
        if (names_job_of(gathering, process, said) && !matches.of_job) {
            matches = (struct matches){.of_job = true, .on_node = true, .in_log = true};
            first = NULL;
        }
        if (matches.of_job && !names_job_of(gathering, process, said))
            continue;
        first = first == NULL ? process : first;
        matches.on_node &= process->node != STRING_NONE && process->node == said->node;
        matches.in_log &= is_told_in(process, said->log);
        matches.is_mixed |= gathering->several_jobs && process->job != first->job;
        matches.several |= is_other_process(process, first);
    }
    return matches;
}

// Whether the matches are beyond doubt those of what is said. Who names no job is of a job only
// where no other has a match, and takes nothing of several jobs but on its own node or in its own
// log. Numbers of processes are those of a node: where none is named, the log is the same, or there
// is but one node, and one match.
static bool are_clear(struct gathering *gathering, enum chain chain, struct matches matches,
                      const struct identity *said) {
    bool same_job = !gathering->several_jobs || (matches.of_job && said->job != STRING_NONE);
    if (matches.is_mixed)
        return false;
    if (matches.on_node || chain == BY_UNIT)
        return true;
    if (matches.in_log && !matches.several)
        return true;
    if (chain == BY_PID)
        return same_job && !matches.several && !nodes_of(gathering, said->job)->several;
    return matches.of_job || said->job == STRING_NONE || !gathering->several_jobs;
}

// -- which of several starts ----------------------------------------------------------------------

// The launcher saw the process end by the signal that the line tells of.
static bool saw_signal(const struct exit_note *by_launcher, const struct exit_note *note) {
    return note->signal > 0 && by_launcher->signal == note->signal;
}

// How badly the note goes with the process: lower is better.
uint64_t join_distance(const struct exit_process *process, const struct exit_note *note) {
    const uint64_t far = UINT64_MAX / 4;
    uint64_t position = note_position(note), best = 3 * far;
    if (!note_is(note, NOTE_TIMELESS)) {
        if (process->start_ns != 0)
            return process->start_ns <= note->time_ns + note->slack_ns
                       ? note->time_ns + note->slack_ns - process->start_ns
                       : far + (process->start_ns - note->time_ns);
        for (uint32_t i = 0; i < process->note_count; i++)
            if (!note_is(process->notes[i], NOTE_TIMELESS) &&
                away(process->notes[i]->time_ns, note->time_ns) < best)
                best = away(process->notes[i]->time_ns, note->time_ns);
        return best;
    }
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *other = process->notes[i];
        uint64_t at = note_position(other), here = 3 * far;
        if (other->key.source == note->key.source && kind_is_launchers(note_kind(other)))
            here = at > position ? at - position : far + (position - at);
        else if (note_same_words(other, note) ||
                 (kind_is_launchers(note_kind(other)) && saw_signal(other, note)))
            here = far / 2;
        else if (kind_is_launchers(note_kind(other)))
            here = 2 * far; // it ended, at least
        best = here < best ? here : best;
    }
    return best;
}

// Of equal ones the one that began last.
static bool is_nearer(const struct exit_process *process, uint64_t here,
                      const struct exit_process *best, uint64_t nearest) {
    return here != nearest ? here < nearest : process->start_ns > best->start_ns;
}

// Starts of a rank on two nodes, of which nobody said when they were.
static bool is_elsewhere(const struct exit_process *a, const struct exit_process *b) {
    return a->start_ns == 0 && b->start_ns == 0 && !exit_agrees(a->node, b->node);
}

// Whether another rank has the same number at the time, as in the pods of one node.
static bool shares_pid(const struct gathering *gathering, uint32_t at,
                       const struct identity *said) {
    const struct exit_process *processes = gathering->list->processes;
    uint32_t other = join_first(gathering, BY_PID, STRING_NONE, said->pid, said);
    while (other != NO_PROCESS) {
        if (is_other_process(&processes[other], &processes[at]) &&
            away(processes[other].start_ns, processes[at].start_ns) <= ONE_START_NS)
            return true;
        other = join_next(gathering, BY_PID, processes[other].next_by_pid, said);
    }
    return false;
}

// `note` NULL: the first of them. NO_PROCESS also where it may be on either of two nodes.
uint32_t join_nearest(struct gathering *gathering, enum chain chain, string_id name, int64_t number,
                      const struct identity *said, const struct exit_note *note) {
    const struct exit_process *processes = gathering->list->processes;
    uint32_t at = join_first(gathering, chain, name, number, said), best = NO_PROCESS;
    struct matches matches = see_matches(gathering, chain, at, said);
    uint64_t nearest = 0;
    bool is_tie = false;
    if (at == NO_PROCESS || !are_clear(gathering, chain, matches, said))
        return NO_PROCESS;
    for (; at != NO_PROCESS;
         at = join_next(gathering, chain, *next_of(&gathering->list->processes[at], chain), said)) {
        if (matches.of_job && !names_job_of(gathering, &processes[at], said))
            continue;
        uint64_t here = note == NULL ? 0 : join_distance(&processes[at], note);
        bool is_first = best == NO_PROCESS;
        if (is_first ||
            (note != NULL && is_nearer(&processes[at], here, &processes[best], nearest))) {
            nearest = here;
            best = at;
            is_tie = false;
        } else {
            is_tie |= here == nearest && is_elsewhere(&processes[at], &processes[best]);
        }
    }
    bool is_shared = chain == BY_PID && matches.several && shares_pid(gathering, best, said);
    return (is_tie && note != NULL) || is_shared ? NO_PROCESS : best;
}

// SPDX-License-Identifier: Apache-2.0
// Joins what is told of one process.
#include "processors/first_exit/ends.h"

#include "base/hash/hash.h"
#include "base/sort.h"
#include "base/table/keyed_rows.h"
#include "processors/cluster/compare.h"

enum { BUCKETS = 4096, JOB_SLOTS = 1024, SIGNAL_KILL = 9, SIGNAL_SEGV = 11 };
// Processes that are known from lists of tasks alone.
enum { TASKS_MAX = 65536 };

// The end of a process is seen by its launcher so soon after the kernel's line.
#define KILL_SEEN_NS (60 * UINT64_C(1000000000))

// Ranks whose starts are no further apart run at the same time.
#define ONE_START_NS (60 * UINT64_C(1000000000))

enum chain { BY_RANK, BY_PID, BY_LOCAL, BY_UNIT, CHAINS };

// The nodes of a job.
struct job_nodes {
    string_id job, node; // the first that was told
    bool several;        // there are others, or another job has the same slot
};

struct gathering {
    struct exit_list *list;
    uint32_t heads[CHAINS][BUCKETS];
    struct job_nodes nodes[JOB_SLOTS]; // where there is but one job, all are the first's
    string_id job;                     // the first that is named
    bool several_jobs;
    uint32_t capacity, tasks_left;
    bool tasks_are_ranks; // Slurm started the ranks, not launchers of theirs
};

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

struct identity {
    string_id job, node, unit, source;
    string_id log; // that tells of it; STRING_NONE: it is no line of one
    uint64_t unit_hash;
    int64_t pid;
    const struct exit_note *by_kernel; // the pid is that of the host; NULL: it is the process's own
    int32_t rank, local_rank;
};

// What was not known of it yet.
static void learn(struct gathering *gathering, uint32_t at, const struct identity *said) {
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

static uint32_t add_process(struct gathering *gathering, const struct identity *said) {
    struct exit_list *list = gathering->list;
    assert(list->process_count < gathering->capacity);
    uint32_t at = list->process_count++;
    list->processes[at] = (struct exit_process){.job = said->job,
                                                .source = said->source,
                                                .pid = -1,
                                                .rank = RANK_NONE,
                                                .local_rank = -1,
                                                .gpu = PCI_NONE};
    learn(gathering, at, said);
    return at;
}

static bool agrees_number(int64_t known, int64_t said) {
    return known < 0 || said < 0 || known == said;
}

static uint64_t away(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

static bool ended_by(const struct exit_note *note, int32_t signal) {
    enum { CODE_BASE = 128 };
    return note->signal == signal || note->exit_code == CODE_BASE + signal;
}

// Whether its launcher, or who else saw it end, says that at that time the process ended by the
// signal that comes with what the note tells.
static bool was_seen_to_end(const struct exit_process *process, const struct exit_note *at) {
    bool is_fault = note_kind(at) == OBSERVATION_SEGFAULT || note_kind(at) == OBSERVATION_TRAP;
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        bool is_timed = !note_is(note, NOTE_TIMELESS) && !note_is(at, NOTE_TIMELESS);
        if (ended_by(note, is_fault ? SIGNAL_SEGV : SIGNAL_KILL) &&
            (!is_timed || away(note->time_ns, at->time_ns) <= KILL_SEEN_NS))
            return true;
    }
    return false;
}

// A pid of the host says nothing of processes in pods, unless somebody saw the one with this number
// end then: some pods share the pids of their host.
static bool has_pid(const struct exit_process *process, const struct identity *said) {
    return process->pid == said->pid && (said->by_kernel == NULL || process->unit == STRING_NONE ||
                                         was_seen_to_end(process, said->by_kernel));
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
static uint32_t next_match(const struct gathering *gathering, enum chain chain, uint32_t at,
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

static uint32_t first_match(const struct gathering *gathering, enum chain chain, string_id name,
                            int64_t number, const struct identity *said) {
    return next_match(gathering, chain, gathering->heads[chain][bucket_of(chain, name, number)],
                      said);
}

// -- jobs and nodes -------------------------------------------------------------------------------

// Everybody is of the only job that is named.
static struct job_nodes *nodes_of(struct gathering *gathering, string_id job) {
    return &gathering->nodes[gathering->several_jobs ? job % JOB_SLOTS : 0];
}

static void see_job(struct gathering *gathering, string_id job) {
    gathering->several_jobs |=
        job != STRING_NONE && gathering->job != STRING_NONE && job != gathering->job;
    gathering->job = job != STRING_NONE ? job : gathering->job;
}

static void see_node(struct gathering *gathering, string_id job, string_id node) {
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
    for (at = next_match(gathering, chain, at, said); at != NO_PROCESS;
         at =
             next_match(gathering, chain, *next_of(&gathering->list->processes[at], chain), said)) {
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

static bool is_launchers(enum observation_kind kind) {
    return kind == OBSERVATION_LAUNCHER_FAILED || kind == OBSERVATION_LAUNCHER_SIGNAL ||
           kind == OBSERVATION_LAUNCHER_SUMMARY;
}

// The launcher saw the process end by the signal that the line tells of.
static bool saw_signal(const struct exit_note *by_launcher, const struct exit_note *note) {
    return note->signal > 0 && by_launcher->signal == note->signal;
}

static bool same_words(const struct exit_note *a, const struct exit_note *b) {
    return a->text_size > 0 && slice_equal(note_text(a), note_text(b));
}

// How badly the note goes with the process: lower is better.
static uint64_t distance(const struct exit_process *process, const struct exit_note *note) {
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
        if (other->key.source == note->key.source && is_launchers(note_kind(other)))
            here = at > position ? at - position : far + (position - at);
        else if (same_words(other, note) ||
                 (is_launchers(note_kind(other)) && saw_signal(other, note)))
            here = far / 2;
        else if (is_launchers(note_kind(other)))
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
    uint32_t other = first_match(gathering, BY_PID, STRING_NONE, said->pid, said);
    while (other != NO_PROCESS) {
        if (is_other_process(&processes[other], &processes[at]) &&
            away(processes[other].start_ns, processes[at].start_ns) <= ONE_START_NS)
            return true;
        other = next_match(gathering, BY_PID, processes[other].next_by_pid, said);
    }
    return false;
}

// `note` NULL: the first of them. NO_PROCESS also where it may be on either of two nodes.
static uint32_t nearest_match(struct gathering *gathering, enum chain chain, string_id name,
                              int64_t number, const struct identity *said,
                              const struct exit_note *note) {
    const struct exit_process *processes = gathering->list->processes;
    uint32_t at = first_match(gathering, chain, name, number, said), best = NO_PROCESS;
    struct matches matches = see_matches(gathering, chain, at, said);
    uint64_t nearest = 0;
    bool is_tie = false;
    if (at == NO_PROCESS || !are_clear(gathering, chain, matches, said))
        return NO_PROCESS;
    for (; at != NO_PROCESS;
         at =
             next_match(gathering, chain, *next_of(&gathering->list->processes[at], chain), said)) {
        if (matches.of_job && !names_job_of(gathering, &processes[at], said))
            continue;
        uint64_t here = note == NULL ? 0 : distance(&processes[at], note);
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

// -- notes ----------------------------------------------------------------------------------------

// The pid in these is not that of the process that wrote the line, or not of one of the job.
static bool has_own_pid(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_WORKER_KILLED:
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
        return false;
    case OBSERVATION_EXCEPTION:
        return note->rank >= 0 || note->local_rank >= 0;
    default:
        return note->pid >= 0;
    }
}

static bool is_of_kernel(enum observation_kind kind) {
    return kind == OBSERVATION_OOM_KILL || kind == OBSERVATION_TRAP || kind == OBSERVATION_SEGFAULT;
}

static struct identity identity_of(const struct exit_note *note, const struct note_where *where) {
    bool of_kernel = is_of_kernel(note_kind(note));
    struct identity said = {.job = note->job,
                            .log = note->key.source,
                            .node = note->node,
                            .unit = note->unit,
                            .unit_hash = where->unit,
                            .pid = has_own_pid(note) ? note->pid : -1,
                            .by_kernel = of_kernel ? note : NULL,
                            .rank = note->rank,
                            .local_rank = note->local_rank};
    if (of_kernel && where->is_contained)
        said.pid = -1;
    return said;
}

// Lines of the node or the job, not of a process of it.
static bool is_of_nobody(const struct gathering *gathering, const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
    case OBSERVATION_SLURM_CANCELLED:
    case OBSERVATION_SLURM_OOM:
    case OBSERVATION_SLURM_NODE_FAILURE:
    case OBSERVATION_SLURM_STATE:
    case OBSERVATION_POD_DISRUPTION:
    case OBSERVATION_NODE_CONDITION:
        return true;
    case OBSERVATION_SLURM_TASK_EXIT:
        return !gathering->tasks_are_ranks;
    case OBSERVATION_STORE_LOST:
        return note->rank < 0 && note->local_rank < 0;
    case OBSERVATION_EXCEPTION: // of an agent
        return note->rank < 0 && note->local_rank < 0 && note_is(note, NOTE_VICTIM);
    default:
        return false;
    }
}

// When each kind is looked at: first what says who is who.
static int turn_of(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_SUMMARY:
        return 0;
    case OBSERVATION_LAUNCHER_FAILED:
        return 1;
    case OBSERVATION_LAUNCHER_SIGNAL:
        return 2;
    default:
        return note_is(note, NOTE_TIMELESS) ? 4 : 3;
    }
}

// -- who of a pod ---------------------------------------------------------------------------------

static uint32_t first_of_unit(const struct gathering *gathering, const struct identity *said) {
    return first_match(gathering, BY_UNIT, STRING_NONE, (int64_t)said->unit_hash, said);
}

static uint32_t next_of_unit(const struct gathering *gathering, uint32_t at,
                             const struct identity *said) {
    return next_match(gathering, BY_UNIT, gathering->list->processes[at].next_by_unit, said);
}

static bool is_other_rank(const struct exit_process *a, const struct exit_process *b) {
    if (a->rank >= 0 && b->rank >= 0)
        return a->rank != b->rank;
    return a->local_rank >= 0 && b->local_rank >= 0 && a->local_rank != b->local_rank;
}

// The only rank of the pod that was killed at that time; NO_PROCESS: none, or several.
static uint32_t killed_member(const struct gathering *gathering, const struct identity *said,
                              const struct exit_note *note) {
    const struct exit_process *processes = gathering->list->processes;
    uint32_t found = NO_PROCESS;
    for (uint32_t at = first_of_unit(gathering, said); at != NO_PROCESS;
         at = next_of_unit(gathering, at, said)) {
        if (processes[at].is_unit || !was_seen_to_end(&processes[at], note))
            continue;
        if (found != NO_PROCESS && is_other_rank(&processes[at], &processes[found]))
            return NO_PROCESS;
        if (found == NO_PROCESS ||
            distance(&processes[at], note) < distance(&processes[found], note))
            found = at;
    }
    return found;
}

static bool tells_kill(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_OOM_KILL || ended_by(note, SIGNAL_KILL);
}

// The pod of several ranks as a whole.
static uint32_t whole_pod(struct gathering *gathering, const struct identity *said,
                          uint32_t member) {
    struct exit_process *processes = gathering->list->processes;
    for (uint32_t at = first_of_unit(gathering, said); at != NO_PROCESS;
         at = next_of_unit(gathering, at, said))
        if (processes[at].is_unit)
            return at;
    struct identity whole = *said;
    whole.unit = processes[member].unit;
    uint32_t at = add_process(gathering, &whole);
    processes[at].is_unit = true;
    return at;
}

// Of a pod with one rank that rank; of one with several the one that was killed then, where that is
// what the note tells; else the pod itself.
static uint32_t find_member(struct gathering *gathering, const struct exit_note *note,
                            const struct identity *said) {
    uint32_t best =
        nearest_match(gathering, BY_UNIT, STRING_NONE, (int64_t)said->unit_hash, said, note);
    if (best == NO_PROCESS || said->rank >= 0 || said->local_rank >= 0 || said->pid >= 0)
        return best;
    const struct exit_process *processes = gathering->list->processes;
    bool several = processes[best].is_unit;
    for (uint32_t at = first_of_unit(gathering, said); at != NO_PROCESS && !several;
         at = next_of_unit(gathering, at, said))
        several = is_other_rank(&processes[at], &processes[best]);
    if (!several)
        return best;
    uint32_t killed = tells_kill(note) ? killed_member(gathering, said, note) : NO_PROCESS;
    return killed != NO_PROCESS ? killed : whole_pod(gathering, said, best);
}

static uint32_t find_process(struct gathering *gathering, const struct exit_note *note,
                             const struct identity *said) {
    uint32_t at = NO_PROCESS;
    if (said->pid >= 0)
        at = nearest_match(gathering, BY_PID, STRING_NONE, said->pid, said, note);
    if (at == NO_PROCESS && said->rank >= 0)
        at = nearest_match(gathering, BY_RANK, STRING_NONE, said->rank, said, note);
    if (at == NO_PROCESS && said->local_rank >= 0 && said->node != STRING_NONE)
        at = nearest_match(gathering, BY_LOCAL, said->node, said->local_rank, said, note);
    if (at == NO_PROCESS && said->unit_hash != 0)
        at = find_member(gathering, note, said);
    return at;
}

// Nobody is named: another log may have the same words with a name.
static bool is_told_elsewhere(const struct exit_list *list, const struct exit_note *note) {
    for (uint32_t i = 0; i < list->process_count; i++)
        for (uint32_t j = 0; j < list->processes[i].note_count; j++)
            if (exit_agrees(list->processes[i].job, note->job) &&
                same_words(list->processes[i].notes[j], note))
                return true;
    return false;
}

static uint32_t find_anonymous(const struct exit_list *list, const struct exit_note *note) {
    for (uint32_t i = 0; i < list->process_count; i++)
        if (list->processes[i].source == note->key.source &&
            agrees_number(list->processes[i].local_rank, note->local_rank) &&
            exit_agrees(list->processes[i].job, note->job))
            return i;
    return NO_PROCESS;
}

static void attach(struct gathering *gathering, uint32_t at, const struct identity *said,
                   const struct exit_note *note) {
    struct exit_process *process = &gathering->list->processes[at];
    learn(gathering, at, said);
    if (process->job == STRING_NONE)
        process->job = note->job;
    if (process->note_count < NOTES_OF_PROCESS)
        process->notes[process->note_count++] = note;
}

static void keep_other(struct exit_list *list, const struct exit_note *note) {
    list->others[list->other_count++] = note;
}

// Each task that is listed is a rank.
static void place_tasks(struct gathering *gathering, const struct exit_note *note,
                        struct identity *said) {
    for (uint32_t i = 0; i < note->range_count; i++)
        for (int32_t task = note->ranges[i].first; task <= note->ranges[i].last; task++) {
            said->rank = task;
            uint32_t at = find_process(gathering, note, said);
            if (at == NO_PROCESS && gathering->tasks_left-- == 0)
                return;
            attach(gathering, at == NO_PROCESS ? add_process(gathering, said) : at, said, note);
        }
}

static void place_note(struct gathering *gathering, const struct exit_note *note,
                       const struct note_where *where) {
    struct exit_list *list = gathering->list;
    struct identity said = identity_of(note, where);
    if (note_kind(note) == OBSERVATION_SLURM_TASK_EXIT) {
        place_tasks(gathering, note, &said);
        return;
    }
    if (note_kind(note) == OBSERVATION_OOM_KILL && gathering->tasks_are_ranks && said.rank < 0)
        said.rank = note->task;
    uint32_t at = find_process(gathering, note, &said);
    bool is_named = said.pid >= 0 || said.rank >= 0 || said.unit != STRING_NONE ||
                    (said.local_rank >= 0 && said.node != STRING_NONE);
    if (at == NO_PROCESS && is_of_kernel(note_kind(note)) && said.rank < 0 && said.local_rank < 0) {
        keep_other(list, note); // of no process of a job, as far as is known
        return;
    }
    if (at == NO_PROCESS && !is_named) {
        if (note_is(note, NOTE_VICTIM) || is_told_elsewhere(list, note))
            return;
        said.source = note->key.source;
        at = find_anonymous(list, note);
    }
    if (at == NO_PROCESS)
        at = add_process(gathering, &said);
    attach(gathering, at, &said, note);
}

// -- order ----------------------------------------------------------------------------------------

static int compare_notes(const void *left, const void *right) {
    const struct exit_note *a = *(const struct exit_note *const *)left;
    const struct exit_note *b = *(const struct exit_note *const *)right;
    return COMPARE_KEYS(COMPARE(turn_of(a), turn_of(b)), exit_notes_compare(a, b));
}

static int compare_places(const void *left, const void *right) {
    const struct exit_place *a = *(const struct exit_place *const *)left;
    const struct exit_place *b = *(const struct exit_place *const *)right;
    int order = COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->key.rank, b->key.rank));
    if (order == 0)
        order = compare_strings(a->key.node, b->key.node);
    if (order == 0)
        order = compare_strings(a->key.job, b->key.job);
    return order != 0 ? order : COMPARE(place_pid(a), place_pid(b));
}

// Hosts of telemetry stand there as they were told.
static string_id known_name(const struct node_names *names, string_id name) {
    string_id known =
        names == NULL || name == STRING_NONE ? STRING_NONE : node_names_find(names, name);
    return known == STRING_NONE ? name : known;
}

static void see_jobs(struct gathering *gathering, const struct exit_notes *from,
                     const struct node_names *names) {
    const struct exit_list *list = gathering->list;
    const struct exit_place *place;
    for (uint32_t at = 0; (place = keyed_rows_next(&from->places, &at)) != NULL;)
        see_job(gathering, place->key.job);
    for (uint32_t i = 0; i < list->note_count; i++)
        see_job(gathering, list->notes[i]->job);
    for (uint32_t at = 0; (place = keyed_rows_next(&from->places, &at)) != NULL;)
        see_node(gathering, place->key.job, known_name(names, place->key.node));
    for (uint32_t i = 0; i < list->note_count; i++)
        if (list->notes[i]->rank >= 0 || list->notes[i]->local_rank >= 0)
            see_node(gathering, list->notes[i]->job, list->notes[i]->node);
}

// A rank map and telemetry may both tell of a process.
static void add_places(struct gathering *gathering, const struct exit_notes *from,
                       const struct node_names *names, uint64_t now_ns, struct arena *arena) {
    uint32_t count = 0;
    const struct exit_place *place,
        **places = arena_take(arena, (keyed_rows_count(&from->places) + 1) * sizeof *places);
    for (uint32_t at = 0; (place = keyed_rows_next(&from->places, &at)) != NULL;)
        if (place->time_ns <= now_ns)
            places[count++] = place;
    sort_stable(places, count, sizeof *places, arena, compare_places);
    for (uint32_t i = 0; i < count; i++) {
        const struct identity said = {.job = places[i]->key.job,
                                      .node = known_name(names, places[i]->key.node),
                                      .unit = places[i]->unit,
                                      .pid = place_pid(places[i]),
                                      .rank = places[i]->key.rank,
                                      .local_rank = places[i]->local_rank};
        uint32_t at = nearest_match(gathering, BY_RANK, STRING_NONE, said.rank, &said, NULL);
        if (at == NO_PROCESS)
            at = add_process(gathering, &said);
        else
            learn(gathering, at, &said);
        struct exit_process *process = &gathering->list->processes[at];
        process->start_ns = process->start_ns == 0 ? places[i]->time_ns : process->start_ns;
        process->job = process->job == STRING_NONE ? places[i]->key.job : process->job;
        process->placed = true;
        if (process->gpu == PCI_NONE)
            process->gpu = places[i]->gpu;
        if (process->gpu == PCI_NONE && places[i]->uuid != STRING_NONE)
            process->gpu = gpu_names_address(&from->gpus, said.node, places[i]->uuid);
    }
}

// -- tasks and hosts of Slurm ---------------------------------------------------------------------

// Where launchers tell of processes, and where a rank is known to be elsewhere than its task, tasks
// are launchers.
static bool tasks_are_ranks(struct gathering *gathering) {
    const struct exit_list *list = gathering->list;
    for (uint32_t i = 0; i < list->note_count; i++) {
        const struct exit_note *note = list->notes[i];
        if (is_launchers(note_kind(note)) || note_kind(note) == OBSERVATION_ERROR_FILE ||
            note_kind(note) == OBSERVATION_LAUNCHER_TOLD_TO_STOP)
            return false;
        if (note_kind(note) != OBSERVATION_SLURM_TASK_EXIT || note->node == STRING_NONE)
            continue;
        for (uint32_t j = 0; j < note->range_count; j++) {
            struct identity said = {.pid = -1, .rank = note->ranges[j].first, .local_rank = -1};
            uint32_t any = first_match(gathering, BY_RANK, STRING_NONE, said.rank, &said);
            said.node = note->node;
            if (any != NO_PROCESS &&
                first_match(gathering, BY_RANK, STRING_NONE, said.rank, &said) == NO_PROCESS)
                return false;
        }
    }
    return true;
}

static uint32_t count_tasks(const struct exit_list *list) {
    int64_t count = 0;
    for (uint32_t i = 0; i < list->note_count; i++)
        for (uint32_t j = 0; j < list->notes[i]->range_count; j++)
            count += (int64_t)list->notes[i]->ranges[j].last - list->notes[i]->ranges[j].first + 1;
    return count > TASKS_MAX ? TASKS_MAX : (uint32_t)count;
}

static uint32_t count_hosts(const struct exit_list *list) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->note_count; i++)
        count += note_kind(list->notes[i]) == OBSERVATION_SLURM_NODE_FAILURE ? HOSTS_MAX : 1;
    return count;
}

// A list of nodes is told as a note about each of them.
static void keep_hosts(struct exit_list *list, const struct exit_note *note,
                       const struct node_names *names, struct arena *arena) {
    string_id hosts[HOSTS_MAX];
    uint32_t count = 0;
    if (note_kind(note) == OBSERVATION_SLURM_NODE_FAILURE && note->node == STRING_NONE)
        count = exit_hosts_read(note_text(note), hosts);
    if (count == 0)
        keep_other(list, note);
    for (uint32_t i = 0; i < count; i++) {
        struct exit_note *copy = arena_take(arena, sizeof *copy);
        *copy = *note;
        copy->node = known_name(names, hosts[i]);
        keep_other(list, copy);
    }
}

static void sort_notes(struct exit_list *list, const struct exit_notes *from, uint64_t now_ns,
                       struct arena *arena) {
    const struct exit_note *note;
    list->notes = arena_take(arena, (keyed_rows_count(&from->notes) + 1) * sizeof *list->notes);
    for (uint32_t at = 0; (note = keyed_rows_next(&from->notes, &at)) != NULL;)
        if (note_is(note, NOTE_TIMELESS) || note->time_ns <= now_ns)
            list->notes[list->note_count++] = note;
    sort_stable(list->notes, list->note_count, sizeof *list->notes, arena, compare_notes);
}

void exits_gather(const struct exit_notes *from, const struct node_names *names, uint64_t now_ns,
                  struct exit_list *list, struct arena *arena) {
    struct gathering *gathering = arena_take(arena, sizeof *gathering);
    *list = (struct exit_list){0};
    *gathering = (struct gathering){.list = list};
    memset(gathering->heads, 0xff, sizeof gathering->heads);
    sort_notes(list, from, now_ns, arena);
    gathering->tasks_left = count_tasks(list);
    gathering->capacity =
        keyed_rows_count(&from->places) + list->note_count + gathering->tasks_left;
    list->processes = arena_take(arena, (gathering->capacity + 1) * sizeof *list->processes);
    list->others = arena_take(arena, (count_hosts(list) + 1) * sizeof *list->others);
    list->xids = xid_log_sort(&from->xids, arena, &list->xid_count);
    see_jobs(gathering, from, names);
    add_places(gathering, from, names, now_ns, arena);
    gathering->tasks_are_ranks = tasks_are_ranks(gathering);
    const struct note_where *where = exits_find_where(from, list, arena);
    for (uint32_t i = 0; i < list->note_count; i++) {
        if (is_of_nobody(gathering, list->notes[i]))
            keep_hosts(list, list->notes[i], names, arena);
        else
            place_note(gathering, list->notes[i], &where[i]);
    }
    exits_set_rounds(list, arena);
}

// SPDX-License-Identifier: Apache-2.0
// From notes and places to processes, their ends, and the starts of the job that these belong to.
//
// All of it lies in the arena of one evaluation. Processes are joined by node and pid, else by
// rank, else by node and local rank, else by pod; never across jobs. The kernel's pids are those of
// the host: what it says of a process in a container is joined by the pod that the container is of;
// which of several starts a line without a time belongs to, the launcher's lines of the same file
// say. A round is one start of a job: a rank that is there twice begins a new one. O(notes log
// notes).
#pragma once

#include "pipeline/component/node_names.h"
#include "processors/first_exit/notes.h"

enum exit_kind {
    EXIT_NONE,
    EXIT_HOST_OOM,
    EXIT_CUDA_OOM,
    EXIT_CUDA_ERROR,
    EXIT_EXCEPTION,
    EXIT_SEGFAULT,
    EXIT_KILLED,
    EXIT_CODE,
    EXIT_TIME_LIMIT,
    EXIT_PREEMPTED,
    EXIT_NODE_LOST,
    EXIT_KINDS
};

// How well an end is founded, from bad to good.
enum exit_ground {
    GROUND_SILENCE,
    GROUND_CODE,   // an exit code or a signal, and no word why
    GROUND_KERNEL, // the kernel or the container runtime
    GROUND_WORDS,  // somebody wrote why
};

enum { NOTES_OF_PROCESS = 12, NO_PROCESS = UINT32_MAX, NO_ROUND = UINT32_MAX };

// Processes that are known by what they counted alone: of the last rounds, one of each.
enum { QUIET_MAX = 16 };

struct exit_process {
    string_id node, job, unit, source; // source: of a log whose writer nobody names
    int64_t pid;                       // -1: not known
    int32_t rank, local_rank;          // -1: not known
    uint64_t start_ns;                 // 0: not known
    uint64_t unit_hash;                // of the pod's name; 0: not known
    uint64_t gpu;                      // PCI_NONE: not known
    uint32_t turn; // which of the rank's starts, where nobody said when they were
    uint32_t round;
    uint32_t next_by_rank, next_by_pid, next_by_local, next_by_unit;
    const struct exit_note *notes[NOTES_OF_PROCESS]; // the first of them
    uint32_t note_count;
    bool placed;   // a rank map or telemetry tells of it
    bool adopted;  // it is of the only job that is named, which nobody said of it
    bool is_unit;  // a pod of several ranks, as a whole
    bool is_local; // its node and local rank are known
    // What is concluded of them, by exits_weigh:
    enum exit_kind kind; // of its own end; EXIT_NONE: it has none
    enum exit_ground ground;
    const struct exit_note *reason; // what says so
    bool ended, victim;
    bool lost_peer;           // it says that a peer closed the connection
    bool missed_peer;         // that, or that it waited too long for one
    uint64_t low_ns, high_ns; // it ended in between; 0: no time is known
};

// One start of a job.
struct exit_round {
    string_id job;
    uint64_t start_ns; // 0: not known
    uint32_t ordinal;  // of the job's, from 0
    bool is_mixed;     // it holds ranks of several jobs that nobody tells apart
};

struct exit_list {
    const struct exit_note **notes; // sorted by what they say
    uint32_t note_count;
    struct exit_process *processes; // behind them is room for QUIET_MAX more
    uint32_t process_count, quiet_count;
    struct exit_round *rounds;
    uint32_t round_count;
    // Of lines that speak of a node or of the job.
    const struct exit_note **others;
    uint32_t *other_rounds;
    uint32_t other_count;
    const struct xid_entry **xids; // by node and time
    uint32_t xid_count;
    const struct progress_index *progress;
    const struct exit_writers *writers;
    const struct exit_note **ends; // that tell of an end or a stop, by source and position
    uint32_t end_count;
};

enum { ALSO_MAX = 6 };

// One end that nobody else brought about: of a process, of a node, or of the whole job.
struct exit_candidate {
    uint32_t process; // NO_PROCESS: a node's, a pod's or the job's
    string_id node;
    string_id unit; // of a pod that was preempted; else STRING_NONE
    enum exit_kind kind;
    enum exit_ground ground;
    const struct exit_note *reason;         // NULL: silence
    const struct exit_note *also[ALSO_MAX]; // what else tells of the same
    uint32_t also_count;
    uint64_t low_ns, high_ns; // it was in between; 0 and UINT64_MAX: not known
};

// Whose fault an exception is that several raised alike.
enum exit_scope {
    SCOPE_ONE,        // of those that are named
    SCOPE_ALL,        // of no rank: all raised it
    SCOPE_NODE,       // all of a node did, and nothing is told of others
    SCOPE_NODE_ALONE, // all of a node did, and ranks elsewhere ended in other ways, or as victims
};

// What is told up to `now_ns`, and lines whose time is not known. `names`: of nodes, or NULL.
void exits_gather(const struct exit_notes *from, const struct node_names *names, uint64_t now_ns,
                  struct exit_list *list, struct arena *arena);
// rounds.c: sorts the processes, and tells to which start each belongs.
void exits_set_rounds(struct exit_list *list, struct arena *arena);
static inline bool exit_agrees(string_id known, string_id said) {
    return known == STRING_NONE || said == STRING_NONE || known == said;
}
// That somebody ended or was stopped, not only what went wrong.
bool exit_note_tells_end(const struct exit_note *note);
// Fills what is concluded of each process.
void exits_weigh(struct exit_list *list);
// alike.c: whether two tell of the same exception: its type, and its message but for numbers.
bool exit_notes_alike(const struct exit_note *a, const struct exit_note *b);

// -- where.c --------------------------------------------------------------------------------------

// In which pod it was what a note tells of.
struct note_where {
    uint64_t unit;     // hash of its name; 0: not known
    bool is_contained; // in some container
};

// Of each note of the list. A kernel tells of one kill in two lines, of which one knows the
// container. O(notes).
const struct note_where *exits_find_where(const struct exit_notes *from,
                                          const struct exit_list *list, struct arena *arena);

// -- logs.c ---------------------------------------------------------------------------------------

// What the launchers of each log say of whom they started. Labels of srun part a log. O(notes).
struct exit_logs;
const struct exit_logs *exits_see_logs(const struct exit_list *list, struct arena *arena);
// On which node the processes of the note's log run; STRING_NONE: nobody says, or on several.
string_id exit_log_node(const struct exit_logs *logs, const struct exit_note *note);
// Which rank the note's local rank is there; RANK_NONE: nobody says, or several.
int32_t exit_log_rank(const struct exit_logs *logs, const struct exit_note *note);

// -- writers.c ------------------------------------------------------------------------------------

// Which rank each log is of, where each process of a job has one of its own. O(n log n).
struct exit_writers;
const struct exit_writers *exits_see_writers(const struct exit_list *list, struct arena *arena);
// RANK_NONE: nobody says, or the log is of several.
int32_t exit_writer_of(const struct exit_writers *writers, string_id source);

// -- hosts.c --------------------------------------------------------------------------------------

enum { HOSTS_MAX = 64 };
// Slurm's list "r2-g[13-14,17],login1", of which no more than HOSTS_MAX are told; returns how many.
uint32_t exit_hosts_read(struct slice list, string_id hosts[HOSTS_MAX]);

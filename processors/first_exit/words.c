// SPDX-License-Identifier: Apache-2.0
// What is told of an end, in words.
#include "processors/first_exit/words.h"

#include "base/text/cut.h"
#include "processors/cluster/xid_text.h"

#include <inttypes.h>
#include <signal.h>

enum { STATUS_TEXT_MAX = 400 };

static const char *signal_name(int32_t signal, struct arena *arena) {
    static const struct {
        int32_t signal;
        const char *name;
    } NAMES[] = {{1, "SIGHUP"},   {2, "SIGINT"},   {3, "SIGQUIT"}, {4, "SIGILL"},  {5, "SIGTRAP"},
                 {6, "SIGABRT"},  {7, "SIGBUS"},   {8, "SIGFPE"},  {9, "SIGKILL"}, {11, "SIGSEGV"},
                 {13, "SIGPIPE"}, {15, "SIGTERM"}, {24, "SIGXCPU"}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].signal == signal)
            return NAMES[i].name;
    return arena_format(arena, "signal %" PRId32, signal);
}

// -- what is said of an end -----------------------------------------------------------------------

// "IndexError: index out of range in self"; "" without words.
static const char *words_of(const struct exit_note *note, size_t max, struct arena *arena) {
    const char *text = text_shown(note_text(note), max, arena);
    if (note->type_size == 0)
        return text;
    return arena_format(arena, "%.*s%s%s", (int)note->type_size, note->type,
                        text[0] != '\0' ? ": " : "", text);
}

// "; its last line: heat: residual is NaN"; "" where that is not known.
static const char *last_line_words(const struct exit_note *note, size_t max, struct arena *arena) {
    if (note == NULL || !note_is(note, NOTE_WROTE_LAST))
        return "";
    return arena_format(arena, "; its last line: %s", text_shown(note_text(note), max, arena));
}

// A shell tells of a signal N by the code 128 + N.
static int32_t status_signal(const struct exit_note *note) {
    enum { BASE = 128, SIGNAL_MAX = 64 };
    if (note->signal >= 0)
        return note->signal;
    return note->exit_code > BASE && note->exit_code <= BASE + SIGNAL_MAX ? note->exit_code - BASE
                                                                          : -1;
}

static const char *status_words(const struct exit_note *note, struct arena *arena) {
    if (note_is_missing(note))
        return arena_format(arena, "%.*s", (int)note->reason_size, note->reason);
    if (note_kind(note) == OBSERVATION_PEER_LOST)
        return "was lost to the others";
    int32_t signal = status_signal(note);
    if (signal > 0)
        return arena_format(arena, "ended by %s", signal_name(signal, arena));
    if (note->exit_code >= 0)
        return arena_format(arena, "left with exit code %" PRId32, note->exit_code);
    if (slice_equal(note_reason(note), SLICE("Out Of Memory")))
        return "was killed because memory ran out";
    if (note_kind(note) == OBSERVATION_LAUNCHER_FAILED && note->reason_size > 0)
        return arena_format(arena, "%.*s", (int)note->reason_size, note->reason);
    if (note->type_size > 0)
        return arena_format(arena, "raised %s", words_of(note, STATUS_TEXT_MAX, arena));
    const char *words = words_of(note, STATUS_TEXT_MAX, arena);
    return words[0] == '\0' ? "ended" : arena_format(arena, "ended: %s", words);
}

static bool has_reason(const struct exit_note *note, const char *reason) {
    return slice_equal(note_reason(note), slice_of(reason));
}

// That memory ran out, where the kind of the note does not say it already.
static bool tells_memory(const struct exit_note *note) {
    return has_reason(note, "OOMKilled") || has_reason(note, "Out Of Memory") ||
           has_reason(note, "OUT_OF_MEMORY");
}

static const char *preempted_words(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_POD_DISRUPTION:
        return "was preempted: its place was needed for another pod";
    case OBSERVATION_SLURM_CANCELLED:
    case OBSERVATION_SLURM_STATE:
        return has_reason(note, "JOB REQUEUE") ? "was requeued by Slurm" : "was preempted by Slurm";
    case OBSERVATION_JOB_STOPPED:
        return has_reason(note, "preempted") ? "was preempted" : "was cancelled from outside";
    default:
        return "was told to stop from outside";
    }
}

static const char *lost_words(const struct exit_decision *decision,
                              const struct exit_candidate *candidate) {
    const struct exit_note *note = candidate->reason;
    if (decision->of_launcher)
        return "lost its launcher";
    if (note == NULL)
        return "went away without a word";
    if (candidate->node == STRING_NONE)
        return "lost a node";
    if (note_kind(note) == OBSERVATION_NODE_CONDITION)
        return "stopped answering the cluster";
    bool is_planned = has_reason(note, "NodeShutdown") || has_reason(note, "Terminated");
    return is_planned ? "was shut down" : "was lost";
}

const char *exit_candidate_words(const struct exit_decision *decision,
                                 const struct exit_candidate *candidate, size_t max,
                                 struct arena *arena) {
    const struct exit_note *note = candidate->reason;
    const char *words;
    switch (candidate->kind) {
    case EXIT_HOST_OOM:
        return "was killed because memory ran out";
    case EXIT_SEGFAULT:
        return note->reason_size > 0 ? arena_format(arena, "crashed (SIGSEGV) in %.*s",
                                                    (int)note->reason_size, note->reason)
                                     : "crashed (SIGSEGV)";
    case EXIT_KILLED:
        return status_signal(note) > 0 ? status_words(note, arena) : "aborted";
    case EXIT_CODE:
        return note == NULL ? "ended without a word"
                            : arena_format(arena, "%s%s", status_words(note, arena),
                                           last_line_words(note, max, arena));
    case EXIT_TIME_LIMIT:
        return "reached its time limit";
    case EXIT_PREEMPTED:
        return preempted_words(note);
    case EXIT_NODE_LOST:
        return lost_words(decision, candidate);
    default:
        words = words_of(note, max, arena);
        return words[0] == '\0' ? "raised an exception" : arena_format(arena, "raised %s", words);
    }
}

// Where the line has no words of its own.
static const char *kind_words(enum observation_kind kind) {
    static const struct {
        enum observation_kind kind;
        const char *words;
    } ROWS[] = {
        {OBSERVATION_ABORT, "it aborted"},
        {OBSERVATION_COLLECTIVE_TIMEOUT, "a collective took too long"},
        {OBSERVATION_CONTAINER_TERMINATED, "its container ended"},
        {OBSERVATION_CUDA_ERROR, "it had a CUDA error"},
        {OBSERVATION_CUDA_OOM, "it ran out of GPU memory"},
        {OBSERVATION_ERROR_FILE, "it left an error file"},
        {OBSERVATION_EXCEPTION, "it raised an exception"},
        {OBSERVATION_KILLED, "it was killed"},
        {OBSERVATION_LAUNCHER_SUMMARY, "its launcher says that it failed"},
        {OBSERVATION_NCCL_ERROR, "NCCL reports an error"},
        {OBSERVATION_NCCL_NET_ERROR, "NCCL reports an error of the network"},
        {OBSERVATION_NCCL_PEER_CLOSED, "it lost the connection to a peer"},
        {OBSERVATION_PEER_CLOSED, "it lost the connection to a peer"},
        {OBSERVATION_PEER_LOST, "the others lost it"},
        {OBSERVATION_RENDEZVOUS_TIMEOUT, "the others did not join in time"},
        {OBSERVATION_SLURM_TASK_EXIT, "Slurm says that it ended"},
        {OBSERVATION_STORE_LOST, "it lost the connection to the store"},
        {OBSERVATION_WATCHDOG_END, "its watchdog ended it"},
        {OBSERVATION_WATCHDOG_TERMINATED, "its watchdog stopped with an error"},
        {OBSERVATION_WORKER_KILLED, "a worker of its data loader was killed"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (ROWS[i].kind == kind)
            return ROWS[i].words;
    return observation_name(kind);
}

static const char *lost_daemon_words(const struct exit_note *note, struct arena *arena) {
    const char *how = "";
    if (status_signal(note) > 0)
        how = arena_format(arena, ", which was killed by %s",
                           signal_name(status_signal(note), arena));
    if (note->exit_code >= 0)
        how = arena_format(arena, "%s (exit status %" PRId32 ")", how, note->exit_code);
    if (note->text_size > 0 && note->node != STRING_NONE)
        how =
            arena_format(arena, "%s: %s", how, text_shown(note_text(note), STATUS_TEXT_MAX, arena));
    return arena_format(arena, "its launcher lost the daemon on it%s", how);
}

static const char *stop_words(const struct exit_note *note) {
    return has_reason(note, "time_limit") ? "it was stopped at its time limit"
           : has_reason(note, "memory")   ? "it was stopped because it took more memory than it may"
           : has_reason(note, "preempted") ? "it was stopped for another"
                                           : "it was stopped from outside";
}

static const char *lost_peer_words(const struct exit_note *note, size_t max, struct arena *arena) {
    if (note_is_missing(note))
        return arena_format(arena, "the others say that it %s", status_words(note, arena));
    if (note_has_words(note))
        return arena_format(arena, "others say of it: %s", words_of(note, max, arena));
    return kind_words(OBSERVATION_PEER_LOST);
}

const char *exit_note_words(const struct exit_note *note, size_t max, struct arena *arena) {
    switch (note_kind(note)) {
    case OBSERVATION_OOM_KILL:
        return "the kernel killed it because memory ran out";
    case OBSERVATION_PEER_LOST:
        return lost_peer_words(note, max, arena);
    case OBSERVATION_LAUNCHER_SIGNAL:
        return arena_format(arena, "its launcher sent it %s", signal_name(note->signal, arena));
    case OBSERVATION_LAUNCHER_FAILED:
        return arena_format(arena, "its launcher says that it %s", status_words(note, arena));
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
        return arena_format(arena, "its launcher was sent %s", signal_name(note->signal, arena));
    case OBSERVATION_SLURM_CANCELLED:
        return arena_format(arena, "Slurm cancelled it: %.*s", (int)note->reason_size,
                            note->reason);
    case OBSERVATION_SLURM_NODE_FAILURE:
        return "Slurm lost it: the node failed or does not respond";
    case OBSERVATION_NODE_LOST:
        return lost_daemon_words(note, arena);
    case OBSERVATION_JOB_STOPPED:
        return stop_words(note);
    case OBSERVATION_SLURM_STATE:
        return arena_format(arena, "sacct says %.*s", (int)note->reason_size, note->reason);
    case OBSERVATION_POD_DISRUPTION:
        return arena_format(arena, "Kubernetes took it away: %.*s", (int)note->reason_size,
                            note->reason);
    case OBSERVATION_NODE_CONDITION:
        return arena_format(arena, "Kubernetes says that the node is not ready: %.*s",
                            (int)note->reason_size, note->reason);
    case OBSERVATION_SLURM_OOM:
        return "Slurm found tasks that were killed because memory ran out";
    case OBSERVATION_SEGFAULT:
    case OBSERVATION_TRAP:
        return note->reason_size > 0
                   ? arena_format(arena, "it crashed in %.*s", (int)note->reason_size, note->reason)
                   : "it crashed (SIGSEGV)";
    default:
        break;
    }
    if (note_has_words(note))
        return words_of(note, max, arena);
    if (tells_memory(note))
        return note_kind(note) == OBSERVATION_CONTAINER_TERMINATED
                   ? "its container was killed because memory ran out"
                   : "Slurm says that it ran out of memory";
    return note->signal >= 0 || note->exit_code >= 0 ? status_words(note, arena)
                                                     : kind_words(note_kind(note));
}

// -- what several say alike -----------------------------------------------------------------------

// What the words of a note say of an end, whoever says it.
struct said {
    int32_t signal, code; // -1: not said
    bool memory;          // it ran out
    const char *of_place; // who says so of a node or a job; NULL: it is no such note
    struct slice detail;  // in which library, by which exception
    struct slice text;
};

static struct said by_status(const struct exit_note *note) {
    int32_t signal = status_signal(note);
    return (struct said){.signal = signal, .code = signal > 0 ? -1 : note->exit_code};
}

static struct said by_memory(void) {
    return (struct said){.signal = SIGKILL, .code = -1, .memory = true};
}

// Of a candidate all notes on its place are of one kind of end: they differ by who says it.
static struct said of_place(const char *who, struct slice detail) {
    return (struct said){.signal = -1, .code = -1, .of_place = who, .detail = detail};
}

static struct said said_by_writer(const struct exit_note *note) {
    if (note_has_words(note))
        return (struct said){
            .signal = -1, .code = -1, .detail = note_type(note), .text = note_text(note)};
    if (tells_memory(note))
        return by_memory();
    struct said said = by_status(note);
    if (note_kind(note) == OBSERVATION_ABORT && said.signal < 0)
        said.signal = SIGABRT;
    return said;
}

static struct said said_by(const struct exit_note *note) {
    struct said nothing = {.signal = -1, .code = -1};
    switch (note_kind(note)) {
    case OBSERVATION_OOM_KILL:
    case OBSERVATION_SLURM_OOM:
        return by_memory();
    case OBSERVATION_SEGFAULT:
    case OBSERVATION_TRAP:
        nothing.signal = note->signal > 0 ? note->signal : SIGSEGV;
        nothing.detail = note_reason(note);
        return nothing;
    case OBSERVATION_LAUNCHER_FAILED:
        return by_status(note);
    case OBSERVATION_SLURM_CANCELLED:
        return of_place("Slurm", has_reason(note, "JOB REQUEUE") ? note_reason(note) : SLICE(""));
    case OBSERVATION_SLURM_NODE_FAILURE:
        return of_place("Slurm", SLICE(""));
    case OBSERVATION_SLURM_STATE:
        return tells_memory(note) ? by_memory() : of_place("Slurm", SLICE(""));
    case OBSERVATION_NODE_CONDITION:
        return of_place("node", SLICE(""));
    case OBSERVATION_POD_DISRUPTION:
        return of_place("pod", text_begins(note_reason(note), SLICE("Preempt"))
                                   ? SLICE("")
                                   : note_reason(note));
    case OBSERVATION_LAUNCHER_SIGNAL: // by which signal it was told to end, not that it ended
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
        return nothing;
    default:
        return said_by_writer(note);
    }
}

static bool holds(struct slice known, struct slice said) {
    return said.size == 0 || slice_equal(known, said);
}

bool exit_note_covers(const struct exit_note *note, const struct exit_note *other) {
    struct said known = said_by(note), said = said_by(other);
    bool is_empty = said.signal < 0 && said.code < 0 && said.of_place == NULL &&
                    said.detail.size == 0 && said.text.size == 0;
    bool same_place = said.of_place == NULL ||
                      (known.of_place != NULL && strcmp(known.of_place, said.of_place) == 0);
    return !is_empty && same_place && (said.signal < 0 || said.signal == known.signal) &&
           (said.code < 0 || said.code == known.code) && (!said.memory || known.memory) &&
           holds(known.detail, said.detail) && holds(known.text, said.text);
}

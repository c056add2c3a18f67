// SPDX-License-Identifier: Apache-2.0
// What is to be done about an end: by the cause that an exception's words tell of
// (tables/causes.tsv), by the signal, else by the kind of end.
#include "processors/cluster/causes.h"
#include "processors/first_exit/join.h"
#include "processors/first_exit/words.h"

static const struct exit_advice BY_KIND[EXIT_KINDS] = {
    [EXIT_HOST_OOM] = {"fix_workload",
                       "Give {who} more memory, or let it use less: fewer or "
                       "smaller data loader workers, less caching, no leak."},
    [EXIT_CUDA_OOM] = {"fix_workload",
                       "Let {who} use less GPU memory (smaller batches, "
                       "checkpointed activations), or find what else holds it."},
    [EXIT_CUDA_ERROR] = {"inspect_rank",
                         "Look for an Xid of the GPU of {who} in the kernel log; "
                         "without one, run it with CUDA_LAUNCH_BLOCKING=1."},
    [EXIT_EXCEPTION] = {"fix_workload",
                        "Read the traceback of {who}; what the other ranks say "
                        "follows from its end."},
    [EXIT_SEGFAULT] = {"inspect_rank",
                       "Get a core dump or the stack of {who} "
                       "(PYTHONFAULTHANDLER=1); look at native libraries."},
    [EXIT_KILLED] = {"inspect_rank",
                     "Find out who sent the signal to {who}: a person, a launcher or a "
                     "limit of the machine."},
    [EXIT_CODE] = {"inspect_rank",
                   "Look at what {who} wrote last, and for sys.exit and os._exit "
                   "in the program."},
    [EXIT_TIME_LIMIT] = {"restart_app",
                         "Ask for more time, or save checkpoints before the limit "
                         "and go on from the last one."},
    [EXIT_PREEMPTED] = {"restart_app",
                        "Nothing is broken in the job: start it again; find out "
                        "who stopped {who} if that was not meant."},
    [EXIT_NODE_LOST] = {"drain_node",
                        "Look whether {who} is up, and at its network and console; "
                        "keep jobs away from it until that is known."},
};

static const struct {
    int32_t signal;
    struct exit_advice advice;
} BY_SIGNAL[] = {
    {6,
     {"inspect_rank",
      "Look at what {who} wrote just before: it aborted itself, most often for a failed check, a "
      "watchdog, or a broken heap. PYTHONFAULTHANDLER=1 gives its stack."}},
    {7,
     {"inspect_rank",
      "Look whether /dev/shm of {who} is full or a file that it maps was cut, and in the kernel "
      "log for failed memory."}},
    {9,
     {"inspect_rank",
      "Look for the out-of-memory killer where {who} ran: in the kernel log (journalctl -k), and "
      "at the memory limit of the container. Without one, somebody else killed it."}},
};

static const struct exit_advice OF_LAST_LINE = {
    "inspect_rank",
    "Find where the program writes the last line of {who}, and what it does next: it ended by "
    "itself there (exit, sys.exit, MPI_Abort)."};
static const struct exit_advice OF_ALL = {
    "fix_workload",
    "Mend the program, its arguments, or what all ranks read: each of them raised "
    "this, so a restart as it is ends in the same way."};
static const struct exit_advice OF_ODD = {
    "fix_workload",
    "Find what {who} does in another way than the other ranks: a branch that it "
    "takes alone, or data of another length."};
static const struct exit_advice OF_MISSING = {
    "inspect_rank",
    "Look at what {who} did instead and whether it was started at all: in its own log, and with "
    "py-spy while it still runs."};
static const struct exit_advice OF_NODE = {
    "drain_node",
    "Keep jobs away from {node} until it is mended: its ranks raised this and no "
    "others did. Compare what is installed and mounted there with another node."};

static const struct cause_row *cause_of(const struct exit_decision *decision) {
    const struct exit_note *note = decision->candidates[0].reason;
    bool may_tell = decision->kind == EXIT_EXCEPTION || decision->kind == EXIT_CUDA_OOM ||
                    decision->kind == EXIT_CUDA_ERROR;
    return note == NULL || !may_tell ? NULL : cause_find(note_type(note), note_text(note));
}

static struct exit_advice by_cause(const struct exit_decision *decision,
                                   const struct cause_row *cause, struct arena *arena) {
    if (decision->scope == SCOPE_NODE_ALONE && decision->kind != EXIT_CUDA_OOM)
        return (struct exit_advice){
            "drain_node",
            arena_format(arena, "%s Until then keep jobs away from {node}: no others raised this.",
                         cause->advice)};
    bool is_of_all = decision->scope != SCOPE_ONE && cause->restart == RESTART_IN_VAIN;
    return (struct exit_advice){
        cause->action, is_of_all ? arena_format(arena,
                                                "%s Each of them raised this, so a restart as it "
                                                "is ends in the same way.",
                                                cause->advice)
                                 : cause->advice};
}

static const struct exit_advice *by_signal(const struct exit_note *note) {
    for (size_t i = 0; i < sizeof BY_SIGNAL / sizeof *BY_SIGNAL; i++)
        if (note != NULL && note_ended_by(note, BY_SIGNAL[i].signal))
            return &BY_SIGNAL[i].advice;
    return &BY_KIND[EXIT_KILLED];
}

static bool wrote_last(const struct exit_decision *decision) {
    const struct exit_note *note = decision->candidates[0].reason;
    return note != NULL && note_is(note, NOTE_WROTE_LAST);
}

struct exit_advice exit_advice(const struct exit_decision *decision, struct arena *arena) {
    const struct cause_row *cause = cause_of(decision);
    if (decision->is_odd)
        return OF_ODD;
    if (exit_is_missing(decision))
        return OF_MISSING;
    if (cause != NULL)
        return by_cause(decision, cause, arena);
    if (decision->scope == SCOPE_NODE_ALONE && decision->kind != EXIT_CUDA_OOM)
        return OF_NODE;
    if (decision->scope != SCOPE_ONE && decision->kind == EXIT_EXCEPTION)
        return OF_ALL;
    if (decision->kind == EXIT_CODE && wrote_last(decision))
        return OF_LAST_LINE;
    return decision->kind == EXIT_KILLED ? *by_signal(decision->candidates[0].reason)
                                         : BY_KIND[decision->kind];
}

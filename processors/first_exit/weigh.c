// SPDX-License-Identifier: Apache-2.0
// Tells ends that a process came to by itself from those that another's end or the launcher brought
// about.
#include "base/text/cut.h"
#include "processors/first_exit/join.h"

enum {
    SIGNAL_HANGUP = 1,
    SIGNAL_INT = 2,
    SIGNAL_ILL = 4,
    SIGNAL_ABORT = 6,
    SIGNAL_BUS = 7,
    SIGNAL_FPE = 8,
    SIGNAL_SEGV = 11,
    SIGNAL_TERM = 15
};

#define SECOND_NS UINT64_C(1000000000)
// An agent looks after its processes so often.
#define POLL_NS (3 * SECOND_NS / 10)

static bool has_words(const struct exit_note *note, const char *words) {
    return note->text_size > 0 && memmem(note->text, note->text_size, words, strlen(words)) != NULL;
}

// What an exception is, wherever it is told.
static enum exit_kind exception_kind(const struct exit_note *note) {
    struct slice type = note_type(note);
    if (memmem(type.data, type.size, "OutOfMemoryError", 16) != NULL ||
        has_words(note, "CUDA out of memory") || has_words(note, "CUDA error: out of memory"))
        return EXIT_CUDA_OOM;
    return has_words(note, "CUDA error: ") ? EXIT_CUDA_ERROR : EXIT_EXCEPTION;
}

struct finding {
    enum exit_kind kind;
    enum exit_ground ground;
};

static struct finding by_signal(int32_t signal) {
    if (signal == SIGNAL_TERM || signal == SIGNAL_INT || signal == SIGNAL_HANGUP)
        return (struct finding){EXIT_NONE, GROUND_SILENCE};
    return (struct finding){signal == SIGNAL_SEGV ? EXIT_SEGFAULT : EXIT_KILLED, GROUND_CODE};
}

static struct finding by_code(int32_t code) {
    enum { BASE = 128 };
    if (code > BASE && code < BASE + 65)
        return by_signal(code - BASE);
    return (struct finding){code > 0 ? EXIT_CODE : EXIT_NONE, GROUND_CODE};
}

static struct finding by_status(const struct exit_note *note) {
    if (note->signal > 0)
        return by_signal(note->signal);
    return by_code(note->exit_code);
}

static struct finding of_container(const struct exit_note *note) {
    if (slice_equal(note_reason(note), SLICE("OOMKilled")))
        return (struct finding){EXIT_HOST_OOM, GROUND_KERNEL};
    if (slice_equal(note_reason(note), SLICE("ContainerStatusUnknown")))
        return (struct finding){EXIT_NONE, GROUND_SILENCE};
    if (note->type_size > 0)
        return (struct finding){exception_kind(note), GROUND_WORDS};
    return by_status(note);
}

static struct finding of_task(const struct exit_note *note) {
    if (slice_equal(note_reason(note), SLICE("Out Of Memory")))
        return (struct finding){EXIT_HOST_OOM, GROUND_KERNEL};
    return by_status(note);
}

// In words, and neither by a code nor by a signal.
static bool says_how(const struct exit_note *note) {
    return note->reason_size > 0 && note->signal < 0 && note->exit_code < 0;
}

// Who tells of another's end may know no more than that it ended.
static struct finding of_report(const struct exit_note *note) {
    if (note->signal > 0 || note->exit_code >= 0 ||
        slice_equal(note_reason(note), SLICE("Out Of Memory")))
        return of_task(note);
    if (note->type_size > 0)
        return (struct finding){exception_kind(note), GROUND_WORDS};
    return (struct finding){EXIT_CODE, GROUND_CODE};
}

// What a note says of an end that was the process's own; EXIT_NONE: nothing.
static struct finding find_own(const struct exit_note *note) {
    if (note_is(note, NOTE_VICTIM))
        return (struct finding){EXIT_NONE, GROUND_SILENCE};
    switch (note_kind(note)) {
    case OBSERVATION_OOM_KILL:
        return (struct finding){EXIT_HOST_OOM, GROUND_KERNEL};
    case OBSERVATION_SEGFAULT:
    case OBSERVATION_TRAP:
        return (struct finding){EXIT_SEGFAULT,
                                note_is(note, NOTE_TIMELESS) ? GROUND_WORDS : GROUND_KERNEL};
    case OBSERVATION_CUDA_OOM:
        return (struct finding){EXIT_CUDA_OOM, GROUND_WORDS};
    case OBSERVATION_CUDA_ERROR:
        return (struct finding){EXIT_CUDA_ERROR, GROUND_WORDS};
    case OBSERVATION_WORKER_KILLED:
        return (struct finding){EXIT_EXCEPTION, GROUND_WORDS};
    case OBSERVATION_EXCEPTION:
    case OBSERVATION_ERROR_FILE:
    case OBSERVATION_NCCL_ERROR:
    case OBSERVATION_WATCHDOG_TERMINATED: // by an error of its own GPU
        return (struct finding){exception_kind(note), GROUND_WORDS};
    case OBSERVATION_LAUNCHER_SUMMARY:
        return note->type_size > 0 ? (struct finding){exception_kind(note), GROUND_WORDS}
                                   : by_status(note);
    case OBSERVATION_ABORT:
        return note->type_size > 0 ? (struct finding){EXIT_EXCEPTION, GROUND_WORDS}
                                   : (struct finding){EXIT_KILLED, GROUND_CODE};
    case OBSERVATION_LAUNCHER_FAILED:
        return of_report(note);
    case OBSERVATION_PEER_LOST:
        return (struct finding){EXIT_CODE, note_is_missing(note) ? GROUND_KERNEL : GROUND_CODE};
    case OBSERVATION_KILLED:
        return by_status(note);
    case OBSERVATION_SLURM_TASK_EXIT:
        return of_task(note);
    case OBSERVATION_CONTAINER_TERMINATED:
        return of_container(note);
    default:
        return (struct finding){EXIT_NONE, GROUND_SILENCE};
    }
}

// That a process ended, not only what went wrong in it.
static bool tells_end(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_OOM_KILL:
    case OBSERVATION_SEGFAULT:
    case OBSERVATION_TRAP:
    case OBSERVATION_ERROR_FILE:
    case OBSERVATION_LAUNCHER_SUMMARY:
    case OBSERVATION_LAUNCHER_FAILED:
    case OBSERVATION_LAUNCHER_SIGNAL:
    case OBSERVATION_KILLED:
    case OBSERVATION_ABORT:
    case OBSERVATION_SLURM_TASK_EXIT:
    case OBSERVATION_CONTAINER_TERMINATED:
    case OBSERVATION_PEER_LOST:
        return true;
    case OBSERVATION_WATCHDOG_TERMINATED:
        return !note_is(note, NOTE_VICTIM);
    default:
        return false;
    }
}

bool exit_note_tells_end(const struct exit_note *note) {
    return tells_end(note) || note_is_job_stop(note) ||
           note_kind(note) == OBSERVATION_LAUNCHER_TOLD_TO_STOP;
}

// Whether the line says that a connection to another was lost, as against a wait that was too long.
static bool tells_lost_peer(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_PEER_CLOSED:
    case OBSERVATION_NCCL_PEER_CLOSED:
    case OBSERVATION_NCCL_NET_ERROR:
        return true;
    default:
        return false;
    }
}

static bool is_better(struct finding found, const struct exit_note *note,
                      const struct exit_process *process) {
    if (process->kind == EXIT_NONE || found.ground != process->ground)
        return process->kind == EXIT_NONE || found.ground > process->ground;
    if (note_is_missing(note) != note_is_missing(process->reason))
        return note_is_missing(process->reason); // what it says of itself
    if ((found.kind == EXIT_EXCEPTION) != (process->kind == EXIT_EXCEPTION))
        return process->kind == EXIT_EXCEPTION; // what is said more exactly
    return note->text_size > process->reason->text_size;
}

// A time of whole seconds says that it ended within them, a launcher or a kernel that it had ended
// by then: it may have taken long from the first word of it to the last.
static void take_time(struct exit_process *process, const struct exit_note *note) {
    uint64_t high = note->time_ns + note->slack_ns;
    if (note_is(note, NOTE_TIMELESS) || !tells_end(note))
        return;
    uint64_t low = note->slack_ns > 0 ? note->time_ns : note->time_ns - POLL_NS;
    if (process->high_ns == 0 || high < process->high_ns)
        process->high_ns = high;
    // A summary that knows no reason has but the launcher's time, in whole seconds.
    bool is_copy = note_kind(note) == OBSERVATION_LAUNCHER_SUMMARY && note->type_size == 0;
    if (!is_copy && (process->low_ns == 0 || low < process->low_ns))
        process->low_ns = low;
}

// Whether the process said later, or said of its end, that it lost its peers: then what it raised
// before was caught.
static bool was_caught(const struct exit_process *process) {
    const struct exit_note *reason = process->reason;
    if (process->ground != GROUND_WORDS || note_kind(reason) == OBSERVATION_ERROR_FILE ||
        note_kind(reason) == OBSERVATION_LAUNCHER_SUMMARY)
        return false;
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        if (!note_is(note, NOTE_VICTIM) || note->type_size == 0)
            continue;
        if (note_kind(note) == OBSERVATION_ERROR_FILE ||
            note_kind(note) == OBSERVATION_LAUNCHER_SUMMARY ||
            (note->key.source == reason->key.source && note_position(note) > note_position(reason)))
            return true;
    }
    return false;
}

// -- what was survived ----------------------------------------------------------------------------

// Where the next end is told in the log of the note; 0: none is.
static uint64_t next_end(const struct exit_list *list, const struct exit_note *note) {
    uint32_t low = 0, high = list->end_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct exit_note *end = list->ends[middle];
        if (end->key.source < note->key.source ||
            (end->key.source == note->key.source && note_position(end) <= note_position(note)))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < list->end_count && list->ends[low]->key.source == note->key.source;
    return found ? note_position(list->ends[low]) : 0;
}

// What was counted behind these words of the process.
static struct progress_after counted_after(const struct exit_list *list,
                                           const struct exit_process *process,
                                           const struct exit_note *note) {
    struct progress_who who = {.source = note->key.source,
                               .job = note->job,
                               .node = note->node,
                               .position = note_position(note),
                               .time_ns = note_is(note, NOTE_TIMELESS) ? 0 : note->time_ns,
                               .until_position = next_end(list, note),
                               .until_ns = process->high_ns,
                               .pid = note->pid >= 0 ? note->pid : process->pid,
                               .rank = note->rank >= 0 ? note->rank : process->rank,
                               .local_rank =
                                   note->local_rank >= 0 ? note->local_rank : process->local_rank,
                               .task = note->task};
    return progress_after(list->progress, &who);
}

static bool is_nobodys(const struct exit_process *process) {
    return process->source != STRING_NONE && process->rank < 0 && process->local_rank < 0 &&
           process->pid < 0 && process->unit == STRING_NONE;
}

// Words after which the process went on counting: it caught what it raised, or found its peer
// again. Of a log that names nobody another may have counted: so long after it all of its job did.
static bool was_survived(const struct exit_list *list, const struct exit_process *process,
                         const struct exit_note *note) {
    bool is_wait = note_is_missing(note); // which may end
    if (tells_end(note) && !is_wait)
        return false;
    struct progress_after after = counted_after(list, process, note);
    return after.own > 0 || ((is_wait || is_nobodys(process)) && progress_survived(&after));
}

static void weigh(const struct exit_list *list, struct exit_process *process) {
    bool told_to_end = false, is_victim = false;
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        if (was_survived(list, process, note))
            continue;
        struct finding found = find_own(note);
        process->ended = process->ended || tells_end(note);
        if (note_kind(note) == OBSERVATION_LAUNCHER_SIGNAL)
            told_to_end = true;
        else if (note_is(note, NOTE_VICTIM))
            is_victim = true;
        process->lost_peer = process->lost_peer || tells_lost_peer(note);
        if (found.kind != EXIT_NONE && is_better(found, note, process)) {
            process->kind = found.kind;
            process->ground = found.ground;
            process->reason = note;
        }
        take_time(process, note);
    }
    if (process->low_ns == 0 && process->high_ns != 0)
        process->low_ns = process->high_ns - SECOND_NS;
    process->victim = is_victim || told_to_end;
    process->missed_peer = is_victim;
    // A launcher in it left because one of its ranks did.
    if (process->is_unit && (process->kind == EXIT_CODE || process->kind == EXIT_EXCEPTION)) {
        process->kind = EXIT_NONE;
        process->victim = true;
    }
    // A code says nothing about somebody who lost a peer or was told to end; words do, but for
    // those of an abort, which is how a collective library ends a process that lost its peers.
    if (process->kind != EXIT_NONE && was_caught(process))
        process->kind = EXIT_NONE;
    bool is_abort = process->kind != EXIT_NONE && note_kind(process->reason) == OBSERVATION_ABORT;
    if (process->victim && (process->ground < GROUND_KERNEL || (is_abort && is_victim)))
        process->kind = EXIT_NONE;
}

// srun lists tasks as killed that a stop ended, whoever asked for it: its lines have no time, but
// their order.
static bool was_killed_by_stop(const struct exit_list *list, const struct exit_note *note) {
    if (note_kind(note) != OBSERVATION_SLURM_TASK_EXIT || note->signal != SIGNAL_KILL)
        return false;
    for (uint32_t i = 0; i < list->other_count; i++) {
        const struct exit_note *stop = list->others[i];
        if (note_is_job_stop(stop) && stop->key.source == note->key.source &&
            note_position(stop) < note_position(note))
            return true;
    }
    return false;
}

// -- an exception that names nobody ---------------------------------------------------------------

// What a traceback tells of.
static bool tells_exception(const struct exit_note *note) {
    enum observation_kind kind = note_kind(note);
    return kind == OBSERVATION_EXCEPTION || kind == OBSERVATION_CUDA_ERROR ||
           kind == OBSERVATION_CUDA_OOM;
}

// A process of which its own words are all that is known, and they tell of exceptions alone.
static bool is_nameless(const struct exit_process *process) {
    bool is_all = is_nobodys(process) && process->note_count > 0 && process->kind != EXIT_NONE;
    for (uint32_t i = 0; i < process->note_count && is_all; i++)
        is_all = tells_exception(process->notes[i]);
    return is_all;
}

// The exceptions of a log that do not say whose they are.
struct nameless {
    uint32_t count;
    bool differ;      // they are of several kinds
    bool has_victims; // others are of processes that lost a peer
};

static struct nameless see_nameless(const struct exit_list *list,
                                    const struct exit_process *words) {
    struct nameless nameless = {0};
    for (uint32_t i = 0; i < list->note_count; i++) {
        const struct exit_note *note = list->notes[i];
        if (note->key.source != words->source || note->rank >= 0 || note->local_rank >= 0)
            continue;
        nameless.has_victims |= note_is(note, NOTE_VICTIM) && note->type_size > 0;
        if (!tells_exception(note) || note_is(note, NOTE_VICTIM))
            continue;
        nameless.count++;
        nameless.differ |= !exit_notes_alike(note, words->reason);
    }
    return nameless;
}

// What the program's own handler of a signal wrote.
static bool tells_signal(const struct exit_note *words, int32_t signal) {
    static const struct {
        int32_t signal;
        const char *words;
    } SIGNALS[] = {{SIGNAL_ILL, "Illegal instruction"},
                   {SIGNAL_ABORT, "Process abort signal"},
                   {SIGNAL_BUS, "Access to an undefined portion of a memory object"},
                   {SIGNAL_BUS, "Bus error"},
                   {SIGNAL_FPE, "Erroneous arithmetic operation"},
                   {SIGNAL_SEGV, "Segmentation fault"}};
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
        if (SIGNALS[i].signal == signal && has_words(words, SIGNALS[i].words))
            return true;
    return false;
}

// Its launcher says that it ended as a program does behind these words, and nobody says why.
static bool lacks_words(const struct exit_process *process, const struct exit_process *words) {
    const struct exit_note *reason = process->reason;
    return process->kind != EXIT_NONE && process->ground == GROUND_CODE &&
           reason->key.source == words->source &&
           (note_kind(reason) == OBSERVATION_LAUNCHER_FAILED ||
            note_kind(reason) == OBSERVATION_LAUNCHER_SUMMARY ||
            note_kind(reason) == OBSERVATION_SLURM_TASK_EXIT) &&
           (process->kind == EXIT_CODE ? reason->exit_code == 1 || says_how(reason)
                                       : tells_signal(words->reason, reason->signal));
}

// Its watchdog found the same error: what the GPU does comes up there as well.
static bool is_watched(const struct exit_process *process, const struct exit_process *words) {
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        if (note_kind(note) == OBSERVATION_WATCHDOG_TERMINATED &&
            note->key.source == words->source && note->text_size > 0 &&
            text_begins(note_text(words->reason), note_text(note)))
            return true;
    }
    return false;
}

// The only one of which that is so; NULL: none, or several.
static struct exit_process *watched(const struct exit_list *list,
                                    const struct exit_process *words) {
    struct exit_process *found = NULL;
    for (uint32_t i = 0; i < list->process_count; i++) {
        if (!is_watched(&list->processes[i], words))
            continue;
        if (found != NULL)
            return NULL;
        found = &list->processes[i];
    }
    return found;
}

static void give_words(struct exit_process *process, const struct exit_process *words) {
    process->kind = words->kind;
    process->ground = words->ground;
    process->reason = words->reason;
    if (process->note_count < NOTES_OF_PROCESS)
        process->notes[process->note_count++] = words->reason;
}

static void forget_words(struct exit_process *words) {
    words->kind = EXIT_NONE;
    words->ended = words->victim = words->missed_peer = false;
    words->note_count = 0;
}

// A traceback without a prefix is that of the only rank which the launcher, in the same log, says
// to have failed: torch 2.1 and mpi4py write none. Several that say the same are those of all ranks
// that failed, where there are as many, or where no rank says that it lost a peer: people paste a
// part of a log. Where they differ, or may be of fewer, each stays a process of its own.
static void name_nameless(struct exit_list *list, struct exit_process *words) {
    struct nameless nameless = see_nameless(list, words);
    struct exit_process *by_watchdog = nameless.count == 1 ? watched(list, words) : NULL;
    if (by_watchdog != NULL) {
        give_words(by_watchdog, words);
        forget_words(words);
        return;
    }
    uint32_t all = 0, of_round = 0;
    for (uint32_t i = 0; i < list->process_count; i++) {
        bool lacks = lacks_words(&list->processes[i], words);
        all += lacks;
        of_round += lacks && list->processes[i].round == words->round;
    }
    bool is_one = nameless.count == 1 && of_round == 1;
    bool are_all =
        nameless.count > 1 && all > 0 && (all <= nameless.count || !nameless.has_victims);
    if (nameless.differ || (!is_one && !are_all))
        return;
    for (uint32_t i = 0; i < list->process_count; i++) {
        struct exit_process *process = &list->processes[i];
        if (lacks_words(process, words) && (are_all || process->round == words->round))
            give_words(process, words);
    }
    forget_words(words);
}

// -- an end that names nobody ---------------------------------------------------------------------

// How somebody ends who says this of a peer or of a wait: a watchdog aborts its process, an
// exception ends in code 1, and who waits may be ended in any way.
static bool may_end_as(const struct exit_note *words, const struct exit_note *end) {
    bool is_abort = note_ended_by(end, SIGNAL_ABORT), is_code = end->exit_code == 1;
    switch (note_kind(words)) {
    case OBSERVATION_WATCHDOG_END:
    case OBSERVATION_WATCHDOG_TERMINATED:
        return is_abort;
    case OBSERVATION_COLLECTIVE_TIMEOUT:
    case OBSERVATION_RENDEZVOUS_TIMEOUT:
        return is_abort || is_code ||
               (note_kind(end) == OBSERVATION_KILLED && note_ended_by(end, SIGNAL_KILL));
    case OBSERVATION_PEER_LOST:
        return is_abort || is_code;
    default:
        return tells_lost_peer(words) && (words->type_size > 0 ? is_code : is_abort);
    }
}

// The rank of a local rank is the same on the first node, and on others beyond all of the first.
static bool may_be_rank(int32_t rank, int32_t local_rank) {
    return rank < 0 || local_rank < 0 || rank == local_rank || rank - local_rank > local_rank;
}

// Words of a victim, above the end in its log, that nobody else is known to have said. Those about
// a lost peer name that one.
static bool may_have_said(const struct exit_process *process, const struct exit_note *words) {
    const struct exit_note *end = process->reason;
    bool names_peer = note_kind(words) == OBSERVATION_PEER_LOST;
    return (note_is(words, NOTE_VICTIM) || names_peer) && words->key.source == end->key.source &&
           note_position(words) < note_position(end) && exit_agrees(words->job, process->job) &&
           exit_agrees(words->node, process->node) &&
           (words->local_rank < 0 || process->local_rank < 0 ||
            words->local_rank == process->local_rank) &&
           (words->pid < 0 || process->pid < 0 || words->pid == process->pid) &&
           (names_peer || may_be_rank(words->rank, process->local_rank)) && may_end_as(words, end);
}

// Its launcher, or who else saw it end, told how.
static bool was_seen_to_end(const struct exit_process *process) {
    for (uint32_t i = 0; i < process->note_count; i++) {
        enum observation_kind kind = note_kind(process->notes[i]);
        if (kind_is_launchers(kind) || kind == OBSERVATION_SLURM_TASK_EXIT ||
            kind == OBSERVATION_CONTAINER_TERMINATED)
            return true;
    }
    return false;
}

static bool has_said(const struct exit_list *list, const struct exit_process *process) {
    for (uint32_t i = 0; i < list->process_count; i++) {
        const struct exit_process *other = &list->processes[i];
        bool may_be = !was_seen_to_end(other);
        for (uint32_t j = 0; j < other->note_count && may_be; j++)
            if (may_have_said(process, other->notes[j]))
                return true;
    }
    for (uint32_t i = 0; i < list->note_count; i++) {
        const struct exit_note *note = list->notes[i];
        bool is_nameless = note->rank < 0 && note->local_rank < 0;
        if ((is_nameless || note_kind(note) == OBSERVATION_PEER_LOST) &&
            may_have_said(process, note))
            return true;
    }
    return false;
}

static bool left_with_code_1(const struct exit_process *process, string_id log) {
    for (uint32_t i = 0; i < process->note_count; i++)
        if (process->notes[i]->key.source == log && process->notes[i]->exit_code == 1)
            return true;
    return false;
}

// The only traceback of the log that names nobody, above the end, tells of a lost peer or a wait,
// and nobody else is told to have left as one does behind a traceback: then it was this one's.
static bool has_only_traceback(const struct exit_list *list, const struct exit_process *process) {
    string_id log = process->reason->key.source;
    uint32_t tracebacks = 0, left = 0;
    for (uint32_t i = 0; i < list->note_count; i++) {
        const struct exit_note *note = list->notes[i];
        bool is_nameless = note->key.source == log && note->rank < 0 && note->local_rank < 0 &&
                           note->task < 0 && note->type_size > 0;
        if (is_nameless &&
            (!note_is(note, NOTE_VICTIM) || note_position(note) > note_position(process->reason)))
            return false;
        tracebacks += is_nameless;
    }
    for (uint32_t i = 0; i < list->process_count; i++)
        left += left_with_code_1(&list->processes[i], log);
    return tracebacks == 1 && left == 1 && left_with_code_1(process, log);
}

// An end of which only the code or signal is told is that of a victim where one said above it in
// the log what ends so, and nobody knows how that one ended: where it is not told whose end it was,
// or nobody else can have said so.
static void forget_end_of_victim(const struct exit_list *list, struct exit_process *process) {
    bool is_mute = process->unit == STRING_NONE && process->ground == GROUND_CODE &&
                   (process->kind == EXIT_KILLED || process->kind == EXIT_CODE);
    if (!is_mute ||
        (process->rank < 0 ? !has_said(list, process) : !has_only_traceback(list, process)))
        return;
    process->kind = EXIT_NONE;
    process->victim = process->missed_peer = true;
}

// -- a pod and the ranks in it --------------------------------------------------------------------

// Pods are the hosts of what runs in them, under their names.
static bool is_host(string_id unit, string_id node) {
    struct slice name = intern_slice(unit), host = intern_slice(node);
    size_t before = name.size - host.size;
    return node != STRING_NONE && name.size >= host.size &&
           memcmp(name.data + before, host.data, host.size) == 0 &&
           (before == 0 || name.data[before - 1] == '/');
}

// The code of a pod is that of a launcher in it, which left because one of its ranks did: these
// tell why, also where nobody but their host says that they are of the pod.
static void forget_end_of_pod(const struct exit_list *list, struct exit_process *pod) {
    if (pod->kind != EXIT_CODE || pod->rank >= 0 || pod->unit == STRING_NONE)
        return;
    for (uint32_t i = 0; i < list->process_count; i++) {
        const struct exit_process *process = &list->processes[i];
        if (process == pod || process->round != pod->round || !is_host(pod->unit, process->node) ||
            (process->kind == EXIT_NONE && !process->victim))
            continue;
        pod->kind = EXIT_NONE;
        pod->victim = true;
        return;
    }
}

// Where nothing says that anybody ended, a job that goes on counting has survived what was raised
// in it, whoever counts.
static void forget_survived(struct exit_list *list, uint32_t first, uint32_t end) {
    for (uint32_t i = 0; i < list->other_count; i++)
        if (list->other_rounds[i] == list->processes[first].round)
            return;
    for (uint32_t i = first; i < end; i++)
        if (list->processes[i].ended)
            return;
    for (uint32_t i = first; i < end; i++) {
        struct exit_process *process = &list->processes[i];
        if (process->kind == EXIT_NONE)
            continue;
        struct progress_after after = counted_after(list, process, process->reason);
        if (progress_went_on(&after))
            process->kind = EXIT_NONE;
    }
}

static void forget_all_survived(struct exit_list *list) {
    for (uint32_t first = 0, end = 0; first < list->process_count; first = end) {
        while (end < list->process_count &&
               list->processes[end].round == list->processes[first].round)
            end++;
        forget_survived(list, first, end);
    }
}

void exits_weigh(struct exit_list *list) {
    for (uint32_t i = 0; i < list->process_count; i++) {
        struct exit_process *process = &list->processes[i];
        weigh(list, process);
        if (process->kind == EXIT_KILLED && was_killed_by_stop(list, process->reason))
            process->kind = EXIT_NONE;
    }
    for (uint32_t i = 0; i < list->process_count; i++)
        if (is_nameless(&list->processes[i]))
            name_nameless(list, &list->processes[i]);
    for (uint32_t i = 0; i < list->process_count; i++) {
        forget_end_of_victim(list, &list->processes[i]);
        forget_end_of_pod(list, &list->processes[i]);
    }
    forget_all_survived(list);
}

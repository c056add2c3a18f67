// SPDX-License-Identifier: Apache-2.0
// Whether a restart helps after an end: by its kind, and by what was said of it.
#include "processors/cluster/causes.h"
#include "processors/first_exit/decide.h"
#include "processors/first_exit/join.h"

static enum restart of_stop(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
        return RESTART_STOPPED;
    case OBSERVATION_JOB_STOPPED:
        return slice_equal(note_reason(note), SLICE("preempted")) ? RESTART_HELPS : RESTART_STOPPED;
    default: // Slurm and Kubernetes gave its place to another
        return RESTART_HELPS;
    }
}

static enum restart of_exception(const struct exit_decision *decision) {
    const struct exit_note *note = decision->candidates[0].reason;
    const struct cause_row *cause = cause_find(note_type(note), note_text(note));
    enum restart by_words = cause == NULL ? RESTART_UNKNOWN : cause->restart;
    if (decision->scope == SCOPE_NODE_ALONE)
        return RESTART_ELSEWHERE;
    if (by_words == RESTART_ELSEWHERE && decision->scope == SCOPE_ALL)
        return RESTART_IN_VAIN;
    bool is_known = cause != NULL || decision->kind == EXIT_CUDA_ERROR;
    return is_known ? by_words : RESTART_IN_VAIN;
}

static enum restart of_signal(const struct exit_note *note) {
    enum { SIGNAL_BUS = 7 };
    return note_ended_by(note, SIGNAL_BUS) ? RESTART_IN_VAIN : RESTART_UNKNOWN;
}

enum restart exit_restart(const struct exit_decision *decision) {
    const struct exit_note *note = decision->candidates[0].reason;
    switch (decision->kind) {
    case EXIT_HOST_OOM:
        return RESTART_IN_VAIN;
    case EXIT_CUDA_OOM:
    case EXIT_CUDA_ERROR:
    case EXIT_EXCEPTION:
        return of_exception(decision);
    case EXIT_KILLED:
        return of_signal(note);
    case EXIT_TIME_LIMIT:
        return RESTART_STOPPED;
    case EXIT_PREEMPTED:
        return of_stop(note);
    case EXIT_NODE_LOST:
        return RESTART_ELSEWHERE;
    default:
        return RESTART_UNKNOWN;
    }
}

// SPDX-License-Identifier: Apache-2.0
// The processes that are known while notes are joined with them, found by what a line says of one.
//
// Lies in the arena of one evaluation. Chains of equal hashes; a look-up is O(processes that share
// the number).
#pragma once

#include "processors/first_exit/ends.h"

enum { BUCKETS = 4096, JOB_SLOTS = 1024, SIGNAL_KILL = 9 };

enum chain { BY_RANK, BY_PID, BY_LOCAL, BY_UNIT, CHAINS };

// The nodes of a job.
struct job_nodes {
    string_id job, node; // the first that was told
    bool several;        // there are others, or another job has the same slot
};

struct gathering {
    struct exit_list *list;
    const struct exit_logs *logs;
    uint32_t heads[CHAINS][BUCKETS];
    struct job_nodes nodes[JOB_SLOTS]; // where there is but one job, all are the first's
    string_id job;                     // the first that is named
    bool several_jobs;
    uint32_t capacity, tasks_left;
    bool tasks_are_ranks; // Slurm started the ranks, not launchers of theirs
};

struct identity {
    string_id job, node, unit, source;
    string_id log; // that tells of it; STRING_NONE: it is no line of one
    uint64_t unit_hash;
    int64_t pid;
    const struct exit_note *by_kernel; // the pid is that of the host; NULL: it is the process's own
    int32_t rank, local_rank;
};

// First all jobs that there are, then the nodes of each.
void join_see_job(struct gathering *gathering, string_id job);
void join_see_node(struct gathering *gathering, string_id job, string_id node);

uint32_t join_add(struct gathering *gathering, const struct identity *said);
// What was not known of it yet.
void join_learn(struct gathering *gathering, uint32_t at, const struct identity *said);

// The processes of a chain that can be the one that is said, one after the other; NO_PROCESS: no
// more.
uint32_t join_first(const struct gathering *gathering, enum chain chain, string_id name,
                    int64_t number, const struct identity *said);
uint32_t join_next(const struct gathering *gathering, enum chain chain, uint32_t at,
                   const struct identity *said);
// The one that goes best with the note; `note` NULL: the first of them. NO_PROCESS also where it
// may be on either of two nodes, or another job's.
uint32_t join_nearest(struct gathering *gathering, enum chain chain, string_id name, int64_t number,
                      const struct identity *said, const struct exit_note *note);
// How badly the note goes with the process: lower is better.
uint64_t join_distance(const struct exit_process *process, const struct exit_note *note);
// Whether its launcher, or who else saw it end, says that at that time the process ended by the
// signal that comes with what the note tells.
bool join_seen_to_end(const struct exit_process *process, const struct exit_note *at);

static inline bool note_ended_by(const struct exit_note *note, int32_t signal) {
    enum { CODE_BASE = 128 };
    return note->signal == signal || note->exit_code == CODE_BASE + signal;
}

static inline bool kind_is_launchers(enum observation_kind kind) {
    return kind == OBSERVATION_LAUNCHER_FAILED || kind == OBSERVATION_LAUNCHER_SIGNAL ||
           kind == OBSERVATION_LAUNCHER_SUMMARY;
}

static inline bool note_same_words(const struct exit_note *a, const struct exit_note *b) {
    return a->text_size > 0 && slice_equal(note_text(a), note_text(b));
}

// twins.c: parts with processes whose end is told of another, too.
void exits_join_twins(struct exit_list *list);

// SPDX-License-Identifier: Apache-2.0
// Does one large task on several threads: the task is cut into pieces, which are taken one by one
// by whoever is free, the caller among them. Meant for tasks of a millisecond and more; what is
// smaller is one piece, and stays on the caller's thread.
//
// Threads are started with the first task of more than one piece and sleep between tasks, so that
// a process that never has a large task has none. Where a thread cannot be started, there are
// fewer.
//
// Which worker gets which piece is a race: what a piece writes is its own, and what workers gather
// must not depend on how pieces were shared out, or is put together by piece.
#pragma once

#include "base/arena.h"

#include <stdint.h>

enum { WORKERS_MAX = 64, PIECES_PER_WORKER = 4, PIECES_MAX = WORKERS_MAX * PIECES_PER_WORKER };

struct workers;

// `threads`: at most, the caller's among them, 1 to WORKERS_MAX.
struct workers *workers_new(uint32_t threads);
void workers_free(struct workers *workers); // nothing runs; NULL is fine

// How many pieces may be under way at once; `worker` of a run is below. At least 1; without workers
// (NULL) it is 1. The same for the life of the workers, so scratch memory may be kept by worker.
uint32_t workers_count(const struct workers *workers);

// Calls run(context, piece, worker) once for each piece from 0 to pieces - 1, with what the caller
// wrote before to be seen there, and returns when all have returned; the caller sees what they
// wrote. No two calls at a time have the same worker. The caller's is 0; a single piece is always
// the caller's. One task at a time: not from two threads, not from within `run`. `run` may take
// and give memory (base/memory.h).
void workers_run(struct workers *workers, uint32_t pieces,
                 void (*run)(void *context, uint32_t piece, uint32_t worker), void *context);

// Into how many pieces a task is cut well: each with `piece_weight` of its weight at least, at most
// PIECES_PER_WORKER for each worker, and not more than it has items. From 1, which it is where
// there is one worker, to PIECES_MAX.
uint32_t workers_pieces(const struct workers *workers, uint64_t weight, uint64_t piece_weight,
                        uint32_t items);

// The first item of a piece, where `items` items are cut into `pieces` pieces of equal size, as far
// as that goes; of `piece` = `pieces`: the end of the last.
static inline uint32_t piece_begin(uint32_t items, uint32_t pieces, uint32_t piece) {
    return (uint32_t)((uint64_t)items * piece / pieces);
}

// Memory that pieces take for what outlives the task: the caller's own arena, and one for each
// other worker. All zero: empty.
struct worker_arenas {
    struct arena *callers;
    struct arena others[WORKERS_MAX];
};

// Begins a round: what was taken in the round before from arenas of others is gone. `callers` is
// the caller's.
void worker_arenas_begin(struct worker_arenas *arenas, struct arena *callers);
void worker_arenas_release(struct worker_arenas *arenas);

static inline struct arena *worker_arena(struct worker_arenas *arenas, uint32_t worker) {
    return worker == 0 ? arenas->callers : &arenas->others[worker];
}

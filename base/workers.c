// SPDX-License-Identifier: Apache-2.0
// A task stands open from its begin until the caller finds no piece left. A thread that wakes up
// meanwhile enters it, one that wakes up later finds it closed; the caller then waits for those
// that entered, not for those that slept on.
//
// Waking a thread takes longer than many a task, and tasks mostly come one soon after the other: so
// they wait by wakeups.
#include "base/workers.h"

#include "base/cores.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>

struct worker {
    struct workers *all;
    uint32_t number;
    pthread_t thread;
};

struct task {
    uint32_t pieces;
    void (*run)(void *context, uint32_t piece, uint32_t worker);
    void *context;
};

struct workers {
    uint32_t thread_max;
    uint32_t started; // threads, the caller's among them
    int core;         // the caller's when it opened the last task; -1: none yet
    struct worker *threads;
    struct lock lock;
    struct wakeup work; // a task was opened, or it is time to end
    struct wakeup done; // the last one that had entered has left
    // By the lock:
    struct task task; // stands while somebody is inside
    bool open;
    bool ending;
    uint64_t opened; // tasks so far
    uint32_t inside; // threads in the task, without the caller's

    atomic_uint_fast64_t next_piece; // wider than a piece: each worker takes one too many
};

struct workers *workers_new(uint32_t threads) {
    assert(threads >= 1 && threads <= WORKERS_MAX);
    struct workers *workers = memory_zero(1, sizeof *workers);
    workers->thread_max = threads;
    workers->started = 1;
    workers->core = -1;
    lock_init(&workers->lock);
    wakeup_init(&workers->work);
    wakeup_init(&workers->done);
    return workers;
}

uint32_t workers_count(const struct workers *workers) {
    return workers == NULL ? 1 : workers->thread_max;
}

uint32_t workers_pieces(const struct workers *workers, uint64_t weight, uint64_t piece_weight,
                        uint32_t items) {
    assert(piece_weight > 0);
    uint32_t count = workers_count(workers);
    uint64_t pieces = weight / piece_weight, most = (uint64_t)count * PIECES_PER_WORKER;
    if (pieces > most)
        pieces = most;
    if (pieces > items)
        pieces = items;
    return pieces < 1 || count == 1 ? 1 : (uint32_t)pieces;
}

static void take_pieces(struct workers *workers, const struct task *task, uint32_t worker) {
    assert(worker < workers->thread_max);
    for (;;) {
        uint64_t piece = atomic_fetch_add_explicit(&workers->next_piece, 1, memory_order_relaxed);
        if (piece >= task->pieces)
            return;
        task->run(task->context, (uint32_t)piece, worker);
    }
}

static void *worker_thread(void *argument) {
    const struct worker *worker = argument;
    struct workers *workers = worker->all;
    uint64_t seen = 0;
    thread_name("work", "evaluation");
    lock_take(&workers->lock);
    while (!workers->ending) {
        if (!workers->open || workers->opened == seen) {
            wakeup_wait(&workers->work, &workers->lock);
            continue;
        }
        seen = workers->opened;
        struct task task = workers->task;
        workers->inside++;
        lock_release(&workers->lock);
        take_pieces(workers, &task, worker->number);
        lock_take(&workers->lock);
        if (--workers->inside == 0)
            wakeup_one(&workers->done, &workers->lock);
    }
    lock_release(&workers->lock);
    return NULL;
}

static void ready_threads(struct workers *workers) {
    uint32_t before = workers->started;
    if (workers->threads == NULL)
        workers->threads = memory_zero(workers->thread_max, sizeof *workers->threads);
    for (; workers->started < workers->thread_max; workers->started++) {
        struct worker *worker = &workers->threads[workers->started];
        *worker = (struct worker){.all = workers, .number = workers->started};
        // What cannot be started now is tried again with the next task.
        if (pthread_create(&worker->thread, NULL, worker_thread, worker) != 0)
            break;
    }
    bool changed = core_changed(&workers->core);
    for (uint32_t i = changed ? 1 : before; i < workers->started && workers->core >= 0; i++)
        core_avoid(workers->core, workers->threads[i].thread);
}

static void open_task(struct workers *workers, const struct task *task) {
    lock_take(&workers->lock);
    assert(!workers->open && workers->inside == 0);
    workers->task = *task;
    workers->open = true;
    workers->opened++;
    atomic_store_explicit(&workers->next_piece, 0, memory_order_relaxed);
    wakeup_all_release(&workers->work, &workers->lock);
}

static void close_task(struct workers *workers) {
    lock_take(&workers->lock);
    workers->open = false;
    while (workers->inside > 0)
        wakeup_wait(&workers->done, &workers->lock);
    lock_release(&workers->lock);
}

void workers_run(struct workers *workers, uint32_t pieces,
                 void (*run)(void *context, uint32_t piece, uint32_t worker), void *context) {
    if (pieces < 2 || workers_count(workers) < 2) {
        for (uint32_t i = 0; i < pieces; i++)
            run(context, i, 0);
        return;
    }
    ready_threads(workers);
    struct task task = {.pieces = pieces, .run = run, .context = context};
    open_task(workers, &task);
    take_pieces(workers, &task, 0);
    close_task(workers);
}

void workers_free(struct workers *workers) {
    if (workers == NULL)
        return;
    lock_take(&workers->lock);
    assert(!workers->open && workers->inside == 0);
    workers->ending = true;
    wakeup_all(&workers->work, &workers->lock);
    lock_release(&workers->lock);
    for (uint32_t i = 1; i < workers->started; i++)
        pthread_join(workers->threads[i].thread, NULL);
    lock_destroy(&workers->lock);
    wakeup_destroy(&workers->work);
    wakeup_destroy(&workers->done);
    memory_give(workers->threads);
    memory_give(workers);
}

enum { ARENA_BLOCK = 64 * 1024 };

void worker_arenas_begin(struct worker_arenas *arenas, struct arena *callers) {
    assert(callers != NULL);
    arenas->callers = callers;
    for (uint32_t i = 1; i < WORKERS_MAX; i++) {
        if (arenas->others[i].block_size == 0)
            arena_init(&arenas->others[i], ARENA_BLOCK);
        arena_reset(&arenas->others[i]);
    }
}

void worker_arenas_release(struct worker_arenas *arenas) {
    for (uint32_t i = 1; i < WORKERS_MAX; i++)
        arena_release(&arenas->others[i]);
}

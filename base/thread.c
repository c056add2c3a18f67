// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

static const uint64_t SECOND_NS = 1000000000, LOOK_OUT_NS = 200000;

void thread_name(const char *what, const char *of) {
    char name[16];
    snprintf(name, sizeof name, "%.4s %.10s", what, of);
    // A name that cannot be set changes nothing.
    (void)pthread_setname_np(pthread_self(), name);
}

// -- locks --------------------------------------------------------------------------------------

// An address that only this thread has.
static uintptr_t thread_mark(void) {
    static _Thread_local char mark;
    return (uintptr_t)&mark;
}

static void holder_set(struct lock *lock, uintptr_t holder) {
    atomic_store_explicit(&lock->holder, holder, memory_order_relaxed);
}

void lock_init(struct lock *lock) {
    int failure = pthread_mutex_init(&lock->mutex, NULL);
    assert(failure == 0);
    holder_set(lock, 0);
}

void lock_destroy(struct lock *lock) {
    assert(atomic_load_explicit(&lock->holder, memory_order_relaxed) == 0);
    pthread_mutex_destroy(&lock->mutex);
}

void lock_take(struct lock *lock) {
    assert(!lock_is_held(lock));
    int failure = pthread_mutex_lock(&lock->mutex);
    assert(failure == 0);
    holder_set(lock, thread_mark());
}

void lock_release(struct lock *lock) {
    assert(lock_is_held(lock));
    holder_set(lock, 0);
    pthread_mutex_unlock(&lock->mutex);
}

bool lock_take_within(struct lock *lock, uint64_t timeout_ns) {
    assert(!lock_is_held(lock));
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t end = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(end / SECOND_NS);
    until.tv_nsec = (long)(end % SECOND_NS);
    if (pthread_mutex_timedlock(&lock->mutex, &until) != 0)
        return false;
    holder_set(lock, thread_mark());
    return true;
}

bool lock_is_held(const struct lock *lock) {
    return atomic_load_explicit(&lock->holder, memory_order_relaxed) == thread_mark();
}

// -- conditions ---------------------------------------------------------------------------------

void cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int failure = pthread_cond_init(cond, &attributes);
    assert(failure == 0);
    pthread_condattr_destroy(&attributes);
}

void cond_wait(pthread_cond_t *cond, struct lock *lock) {
    (void)cond_wait_until(cond, lock, UINT64_MAX);
}

bool cond_wait_until(pthread_cond_t *cond, struct lock *lock, uint64_t until_ns) {
    struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND_NS),
                             .tv_nsec = (long)(until_ns % SECOND_NS)};
    assert(lock_is_held(lock));
    holder_set(lock, 0);
    int failure = until_ns == UINT64_MAX ? pthread_cond_wait(cond, &lock->mutex)
                                         : pthread_cond_timedwait(cond, &lock->mutex, &until);
    assert(failure == 0 || failure == ETIMEDOUT);
    holder_set(lock, thread_mark());
    return failure != ETIMEDOUT;
}

// -- wakeups ------------------------------------------------------------------------------------

void wakeup_init(struct wakeup *wakeup) {
    cond_init(&wakeup->cond);
    atomic_init(&wakeup->count, 0);
}

void wakeup_destroy(struct wakeup *wakeup) {
    pthread_cond_destroy(&wakeup->cond);
}

// By the lock: else it could come, and wake nobody, between the last look of who waits and its
// sleep.
static void count_up(struct wakeup *wakeup, const struct lock *lock) {
    assert(lock_is_held(lock));
    atomic_fetch_add_explicit(&wakeup->count, 1, memory_order_relaxed);
}

void wakeup_one(struct wakeup *wakeup, const struct lock *lock) {
    count_up(wakeup, lock);
    pthread_cond_signal(&wakeup->cond);
}

void wakeup_all(struct wakeup *wakeup, const struct lock *lock) {
    count_up(wakeup, lock);
    pthread_cond_broadcast(&wakeup->cond);
}

void wakeup_all_release(struct wakeup *wakeup, struct lock *lock) {
    count_up(wakeup, lock);
    lock_release(lock);
    pthread_cond_broadcast(&wakeup->cond);
}

// Lets the other thread of the same core go on.
static inline void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static bool has_come(const struct wakeup *wakeup, uint64_t seen) {
    return atomic_load_explicit(&wakeup->count, memory_order_relaxed) != seen;
}

static void look_out(const struct wakeup *wakeup, uint64_t seen) {
    enum { LOOKS = 64 }; // between two looks at the clock
    uint64_t until_ns = clock_monotonic_ns() + LOOK_OUT_NS;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (has_come(wakeup, seen))
                return;
            pause_a_moment();
        }
    } while (clock_monotonic_ns() < until_ns);
}

void wakeup_wait(struct wakeup *wakeup, struct lock *lock) {
    uint64_t seen = atomic_load_explicit(&wakeup->count, memory_order_relaxed);
    lock_release(lock);
    look_out(wakeup, seen);
    lock_take(lock);
    if (!has_come(wakeup, seen))
        cond_wait(&wakeup->cond, lock);
}

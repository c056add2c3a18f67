// SPDX-License-Identifier: Apache-2.0
// Names of threads, a mutex that knows its holder, conditions that wait by the monotonic clock, and
// wakeups, whose waiters look out before they sleep.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// The calling thread is called "in file/ranks", as far as the system's 15 bytes go, for those who
// look at a process from outside (top -H, gdb, perf).
void thread_name(const char *what, const char *of);

// A mutex, not recursive. Taking one that the thread holds already and releasing one that it does
// not hold end the process, as every mistake of ours does. Cost: one relaxed store beside each of
// the mutex's own operations.
struct lock {
    pthread_mutex_t mutex;
    atomic_uintptr_t holder; // marks the thread; 0: nobody
};

// For a lock of static storage; others need lock_init.
#define LOCK_INITIALIZER                                                                           \
    { .mutex = PTHREAD_MUTEX_INITIALIZER }

void lock_init(struct lock *lock);
void lock_destroy(struct lock *lock); // nobody holds it
void lock_take(struct lock *lock);
void lock_release(struct lock *lock);
// False when nobody gave it within the time.
bool lock_take_within(struct lock *lock, uint64_t timeout_ns);
// Whether the calling thread holds it; for assertions.
bool lock_is_held(const struct lock *lock);

// A condition for the calls below.
void cond_init(pthread_cond_t *cond);
// The calling thread holds the lock, and holds it again when they return. A wait may end early.
void cond_wait(pthread_cond_t *cond, struct lock *lock);
// False once clock_monotonic_ns() has reached `until_ns`; UINT64_MAX: waits for ever.
bool cond_wait_until(pthread_cond_t *cond, struct lock *lock, uint64_t until_ns);

// What threads wait for that mostly comes in a moment: sleeping and being woken would take longer
// than the wait. So they look out for it first, for a fifth of a millisecond.
struct wakeup {
    pthread_cond_t cond;
    atomic_uint_fast64_t count;
};

void wakeup_init(struct wakeup *wakeup);
void wakeup_destroy(struct wakeup *wakeup); // nobody waits
// The calling thread holds the lock, by which it changed what they wait for.
void wakeup_one(struct wakeup *wakeup, const struct lock *lock); // of those that sleep
void wakeup_all(struct wakeup *wakeup, const struct lock *lock);
// Likewise, and releases the lock, so that who wakes up finds it free.
void wakeup_all_release(struct wakeup *wakeup, struct lock *lock);
// The calling thread holds the lock, and holds it again when it returns. It may do so early.
void wakeup_wait(struct wakeup *wakeup, struct lock *lock);

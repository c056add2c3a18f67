// SPDX-License-Identifier: Apache-2.0
// A lock knows its holder, ends the process where it is used wrongly, and waits no longer than it
// is told to; nobody sleeps past a wakeup.
#include "base/thread.h"

#include "base/clock.h"

#include <check.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

static struct lock lock = LOCK_INITIALIZER;
static pthread_cond_t cond;
static atomic_bool is_there, may_end;

static void *hold(void *argument) {
    (void)argument;
    lock_take(&lock);
    atomic_store(&is_there, true);
    while (!atomic_load(&may_end))
        clock_sleep_ns(1000000);
    lock_release(&lock);
    return NULL;
}

START_TEST(a_lock_knows_who_holds_it) {
    pthread_t thread;
    ck_assert(!lock_is_held(&lock));
    lock_take(&lock);
    ck_assert(lock_is_held(&lock));
    lock_release(&lock);
    atomic_store(&is_there, false);
    atomic_store(&may_end, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold, NULL), 0);
    while (!atomic_load(&is_there))
        clock_sleep_ns(1000000);
    ck_assert(!lock_is_held(&lock)); // by this thread
    ck_assert(!lock_take_within(&lock, 1000000));
    atomic_store(&may_end, true);
    pthread_join(thread, NULL);
    ck_assert(lock_take_within(&lock, 0));
    ck_assert(lock_is_held(&lock));
    lock_release(&lock);
}
END_TEST

static void *wake(void *argument) {
    (void)argument;
    lock_take(&lock);
    atomic_store(&is_there, true);
    pthread_cond_signal(&cond);
    lock_release(&lock);
    return NULL;
}

START_TEST(a_condition_waits_and_holds_the_lock_again) {
    pthread_t thread;
    cond_init(&cond);
    lock_take(&lock);
    uint64_t from = clock_monotonic_ns();
    ck_assert(!cond_wait_until(&cond, &lock, from + 20000000));
    ck_assert_uint_ge(clock_monotonic_ns(), from + 20000000);
    ck_assert(lock_is_held(&lock));
    atomic_store(&is_there, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, wake, NULL), 0);
    while (!atomic_load(&is_there))
        cond_wait(&cond, &lock);
    ck_assert(lock_is_held(&lock));
    lock_release(&lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&cond);
}
END_TEST

enum { WAITERS = 3 };
static struct wakeup wakeup;
static unsigned turn, arrived; // by the lock

// Waits for turns 1 to 3, one after the other.
static void *wait_for_turns(void *argument) {
    (void)argument;
    lock_take(&lock);
    for (unsigned wanted = 1; wanted <= 3; wanted++) {
        arrived++;
        while (turn < wanted)
            wakeup_wait(&wakeup, &lock);
        ck_assert(lock_is_held(&lock));
    }
    lock_release(&lock);
    return NULL;
}

static void turn_to(unsigned number, uint64_t after_ns) {
    for (bool all = false; !all;) {
        sched_yield(); // no sleep: the last one looks out for a moment only
        lock_take(&lock);
        all = arrived == number * WAITERS;
        lock_release(&lock);
    }
    if (after_ns > 0)
        clock_sleep_ns(after_ns);
    lock_take(&lock);
    turn = number;
    if (number == 1) {
        wakeup_all_release(&wakeup, &lock);
        return;
    }
    for (int i = 0; i < WAITERS && number == 2; i++)
        wakeup_one(&wakeup, &lock);
    if (number == 3)
        wakeup_all(&wakeup, &lock);
    lock_release(&lock);
}

// Told while they look out, and when they have long been asleep.
START_TEST(a_wakeup_reaches_who_looks_out_and_who_sleeps) {
    static const uint64_t after_ns[] = {0, 20000000};
    pthread_t threads[WAITERS];
    wakeup_init(&wakeup);
    turn = arrived = 0;
    for (int i = 0; i < WAITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_for_turns, NULL), 0);
    turn_to(1, after_ns[_i]);
    turn_to(2, after_ns[_i]);
    turn_to(3, after_ns[_i]);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    wakeup_destroy(&wakeup);
}
END_TEST

// Each of these is a mistake that would else be a deadlock or a race.
START_TEST(a_lock_used_wrongly_ends_the_process) {
    struct lock other;
    lock_init(&other);
    switch (_i) {
    case 0:
        lock_release(&other);
        break;
    case 1:
        lock_take(&other);
        lock_take(&other);
        break;
    case 2:
        lock_take(&other);
        lock_destroy(&other);
        break;
    default:
        cond_init(&cond);
        cond_wait(&cond, &other);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("thread");
    TCase *tests = tcase_create("thread");
    tcase_add_test(tests, a_lock_knows_who_holds_it);
    tcase_add_test(tests, a_condition_waits_and_holds_the_lock_again);
    tcase_add_loop_test(tests, a_wakeup_reaches_who_looks_out_and_who_sleeps, 0, 2);
    tcase_add_loop_test_raise_signal(tests, a_lock_used_wrongly_ends_the_process, SIGABRT, 0, 4);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

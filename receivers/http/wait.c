// SPDX-License-Identifier: Apache-2.0
// Answers requests once the store has them for good.
//
// The listener's threads do not wait: a request rests here while others come, so that all of them
// share the next commit. One thread waits for the lowest ticket and then answers all that are
// durable. What takes longer than 10 s is answered with 503: it may be sent again.
#include "base/clock.h"
#include "base/memory.h"
#include "receivers/http/receiver.h"

#include <assert.h>
#include <signal.h>

#define LOOK_NS 500000000ull // of one wait, so that each deadline is kept well enough

static void say_not_stored(const struct http_waiting *waiting) {
    static const char message[] =
        "The store could not write this in time: send it again, with the same Idempotency-Key.";
    struct http_response *response = waiting->response;
    buffer_reset(&response->body);
    response->retry_after_s = 1;
    response->status = 503;
    http_write_fault(waiting->form, "not_stored", message, response);
}

// Takes those out that can be answered; others keep their places in order.
static uint32_t take_ready(struct http_receiver *receiver, struct http_waiting *ready,
                           uint32_t max) {
    struct http_completer *completer = &receiver->completer;
    assert(lock_is_held(&completer->lock));
    uint64_t durable = storage_durable(receiver->store);
    uint64_t now = clock_monotonic_ns();
    uint32_t count = 0, left = 0;
    for (uint32_t i = 0; i < completer->count; i++) {
        const struct http_waiting *waiting = &completer->items[i];
        bool stored = waiting->ticket <= durable;
        if (count < max && (stored || now >= waiting->until_ns)) {
            ready[count] = *waiting;
            if (!stored)
                say_not_stored(waiting);
            count++;
        } else {
            completer->items[left++] = *waiting;
        }
    }
    completer->count = left;
    return count;
}

enum { ANSWERS_AT_ONCE = 64 };

static void *run(void *context) {
    struct http_receiver *receiver = http_receiver_of(context);
    struct http_completer *completer = &receiver->completer;
    struct http_waiting ready[ANSWERS_AT_ONCE];
    lock_take(&completer->lock);
    while (!completer->ending || completer->count > 0) {
        if (completer->count == 0) {
            cond_wait(&completer->changed, &completer->lock);
            continue;
        }
        uint64_t ticket = UINT64_MAX;
        for (uint32_t i = 0; i < completer->count; i++)
            if (completer->items[i].ticket < ticket)
                ticket = completer->items[i].ticket;
        lock_release(&completer->lock);
        struct error error;
        // Whatever it says, what is durable is looked at below.
        enum status status = storage_wait(receiver->store, ticket, LOOK_NS, &error);
        (void)status;
        lock_take(&completer->lock);
        uint32_t count = take_ready(receiver, ready, ANSWERS_AT_ONCE);
        lock_release(&completer->lock);
        for (uint32_t i = 0; i < count; i++)
            http_answer(ready[i].exchange);
        lock_take(&completer->lock);
    }
    lock_release(&completer->lock);
    return NULL;
}

enum status http_completer_start(struct http_receiver *receiver, struct error *error) {
    struct http_completer *completer = &receiver->completer;
    lock_init(&completer->lock);
    cond_init(&completer->changed);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int os_error = pthread_create(&completer->thread, NULL, run, receiver);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (os_error == 0) {
        completer->running = true;
        return STATUS_OK;
    }
    pthread_cond_destroy(&completer->changed);
    lock_destroy(&completer->lock);
    return error_set_os(error, STATUS_OS, os_error, "a thread for answers cannot be started");
}

void http_completer_add(struct http_receiver *receiver, const struct http_waiting *waiting) {
    assert(waiting->ticket > 0 && receiver->completer.running);
    struct http_completer *completer = &receiver->completer;
    lock_take(&completer->lock);
    completer->items = memory_room(completer->items, &completer->capacity, completer->count,
                                   sizeof *completer->items);
    completer->items[completer->count++] = *waiting;
    pthread_cond_signal(&completer->changed);
    lock_release(&completer->lock);
}

void http_completer_stop(struct http_receiver *receiver) {
    struct http_completer *completer = &receiver->completer;
    if (!completer->running)
        return;
    lock_take(&completer->lock);
    completer->ending = true;
    pthread_cond_signal(&completer->changed);
    lock_release(&completer->lock);
    pthread_join(completer->thread, NULL);
    pthread_cond_destroy(&completer->changed);
    lock_destroy(&completer->lock);
    memory_give(completer->items);
    *completer = (struct http_completer){.running = false};
}

// SPDX-License-Identifier: Apache-2.0
// Waits before the start.
//
// The signals that a running service handles are blocked meanwhile and taken by sigtimedwait, with
// what is left of the delay as its timeout. Nothing is read or opened before: a mistake in the
// configuration, or a port that is taken, is met after the delay.
#include "cli/start_delay.h"

#include "base/clock.h"
#include "config/option.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

enum status start_delay_parse(const char *text, uint64_t *delay_ns, struct error *error) {
    assert(text != NULL && delay_ns != NULL);
    struct duration delay;
    char why[160];
    if (!option_parse_duration(text, &delay, why))
        return error_set(error, STATUS_USAGE, "--start-delay: %s", why);
    assert(delay.ns >= 0);
    if ((uint64_t)delay.ns > (uint64_t)START_DELAY_MAX_S * NS_PER_S)
        return error_set(error, STATUS_USAGE, "--start-delay is at most 15m, not \"%s\"", text);
    *delay_ns = (uint64_t)delay.ns;
    return STATUS_OK;
}

static int next_signal(const sigset_t *set, uint64_t wait_ns) {
    assert(wait_ns <= (uint64_t)START_DELAY_MAX_S * NS_PER_S);
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / NS_PER_S),
                            .tv_nsec = (long)(wait_ns % NS_PER_S)};
    return sigtimedwait(set, NULL, &wait);
}

enum status start_delay_wait(uint64_t delay_ns) {
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    uint64_t now = clock_monotonic_ns(), end = now + delay_ns;
    enum status status = STATUS_OK;
    for (; now < end && status == STATUS_OK; now = clock_monotonic_ns()) {
        int number = next_signal(&set, end - now);
        if (number == SIGTERM || number == SIGINT)
            status = STATUS_STOPPED;
        else if (number < 0 && errno != EAGAIN && errno != EINTR)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

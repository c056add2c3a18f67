// SPDX-License-Identifier: Apache-2.0
// Handles the signals that stop, reload and dump.
//
// All signals are taken by one thread through a signalfd, so that nothing runs in the middle of
// something else and a message can be logged. An eventfd ends that thread.
#include "cli/stop_signals.h"

#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SIGNALS_MAGIC = 0x5349474e };

static sigset_t watched_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR2);
    return set;
}

static void take_stop(struct stop_signals *signals, int number) {
    assert(lock_is_held(&signals->lock));
    if (signals->stop_asked)
        _exit(128 + number);
    signals->stop_asked = true;
    if (signals->service != NULL)
        service_ask_stop(signals->service);
    log_write(LOG_INFO, (struct log_site){.code = "C1002"},
              "SIG%s: stopping after processing what has been read", sigabbrev_np(number));
}

static void take_signal(struct stop_signals *signals, int number) {
    assert(number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGUSR2);
    lock_take(&signals->lock);
    if (number == SIGHUP) {
        if (signals->service != NULL)
            service_ask_reload(signals->service);
        else
            signals->reload_asked = true;
    } else if (number == SIGUSR2) {
        if (signals->service != NULL)
            service_dump(signals->service);
    } else {
        take_stop(signals, number);
    }
    lock_release(&signals->lock);
}

static void *watch(void *context) {
    struct stop_signals *signals = context;
    assert(signals->magic == SIGNALS_MAGIC);
    struct pollfd events[] = {{.fd = signals->signal_descriptor, .events = POLLIN},
                              {.fd = signals->end_descriptor, .events = POLLIN}};
    while (poll(events, 2, -1) >= 0 || errno == EINTR) {
        if (events[1].revents != 0)
            break;
        struct signalfd_siginfo info;
        if (events[0].revents != 0 &&
            read(signals->signal_descriptor, &info, sizeof info) == (ssize_t)sizeof info)
            take_signal(signals, (int)info.ssi_signo);
    }
    return NULL;
}

enum status stop_signals_start(struct stop_signals *signals, struct error *error) {
    sigset_t set = watched_signals();
    *signals = (struct stop_signals){.magic = SIGNALS_MAGIC};
    lock_init(&signals->lock);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signals->signal_descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    signals->end_descriptor = eventfd(0, EFD_CLOEXEC);
    int os_error = errno;
    if (signals->signal_descriptor >= 0 && signals->end_descriptor >= 0) {
        os_error = pthread_create(&signals->thread, NULL, watch, signals);
        if (os_error == 0)
            return STATUS_OK;
    }
    if (signals->signal_descriptor >= 0)
        close(signals->signal_descriptor);
    if (signals->end_descriptor >= 0)
        close(signals->end_descriptor);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    lock_destroy(&signals->lock);
    return error_set_os(error, STATUS_OS, os_error, "cannot watch signals");
}

void stop_signals_watch(struct stop_signals *signals, struct service *service) {
    assert(signals->magic == SIGNALS_MAGIC);
    lock_take(&signals->lock);
    signals->service = service;
    if (signals->stop_asked && service != NULL)
        service_ask_stop(service);
    if (signals->reload_asked && service != NULL) {
        signals->reload_asked = false;
        service_ask_reload(service);
    }
    lock_release(&signals->lock);
}

void stop_signals_end(struct stop_signals *signals) {
    assert(signals->magic == SIGNALS_MAGIC);
    eventfd_write(signals->end_descriptor, 1);
    pthread_join(signals->thread, NULL);
    close(signals->signal_descriptor);
    close(signals->end_descriptor);
    lock_destroy(&signals->lock);
}

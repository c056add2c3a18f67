// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT stop a service gracefully; a second one ends the process at once with 128 + n.
// SIGHUP asks the service for a reload, SIGUSR2 for its state in the log.
#pragma once

#include "base/thread.h"
#include "pipeline/runtime/service.h"

struct stop_signals {
    uint32_t magic;          // checked where the thread gets it back
    struct lock lock;        // of the three below
    struct service *service; // NULL while it starts
    bool stop_asked;
    bool reload_asked; // while there was no service to ask
    pthread_t thread;
    int signal_descriptor;
    int end_descriptor;
};

// From here on the signals do what is said above, in this process and all its threads. Before any
// other thread: the signals are blocked in the calling one and in those it starts.
enum status stop_signals_start(struct stop_signals *signals, struct error *error) MUST_USE;
// The service that is to be stopped; at once when a signal came while there was none. NULL: none
// for now. It must outlive the next call, or stop_signals_end.
void stop_signals_watch(struct stop_signals *signals, struct service *service);
void stop_signals_end(struct stop_signals *signals);

// SPDX-License-Identifier: Apache-2.0
// One line on the terminal that says how far a long read has come: bytes done and to do, the rate,
// the time left. Drawn only when the work takes longer than a second and standard error is a
// terminal; wiped when the work is done.
#pragma once

#include "base/thread.h"
#include "pipeline/runtime/service.h"

struct progress {
    uint32_t magic; // of a thread that was started: checked where it comes back
    struct service *service;
    pthread_t thread;
    struct lock lock;
    pthread_cond_t ended_changed;
    bool running; // the thread was started
    bool ended;   // under the lock
};

// Does nothing when `wanted` is false or standard error is no terminal.
void progress_start(struct progress *progress, struct service *service, bool wanted);
// Wipes the line and ends the thread. After this nothing of it writes any more.
void progress_stop(struct progress *progress);
// The line without its control sequences: "412.0 MiB of 1.2 GiB (34 %), 380.1 MiB/s, 2 s left".
// `done` of `total` bytes (0: unknown) after `elapsed_ns`. With both unknown (standard input):
// "for 3 s".
void progress_format(struct buffer *out, uint64_t done_bytes, uint64_t total_bytes,
                     uint64_t elapsed_ns);

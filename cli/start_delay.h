// SPDX-License-Identifier: Apache-2.0
// A wait before the start, so that whoever watches the process sees it running even when the start
// fails. Kubernetes starts a pod's containers only after it has seen a sidecar running.
#pragma once

#include "base/status.h"

#include <stdint.h>

enum { START_DELAY_MAX_S = 15 * 60 };

// "5s" -> nanoseconds, at most START_DELAY_MAX_S. STATUS_USAGE with a sentence otherwise.
enum status start_delay_parse(const char *text, uint64_t *delay_ns, struct error *error) MUST_USE;
// Waits. STATUS_STOPPED at once when SIGTERM or SIGINT comes meanwhile; SIGHUP and SIGUSR2 do
// nothing. For the main thread, before any other thread is started.
enum status start_delay_wait(uint64_t delay_ns) MUST_USE;

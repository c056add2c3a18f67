// SPDX-License-Identifier: Apache-2.0
// The standard figures of a process, as Prometheus names them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum process_figure {
    PROCESS_CPU_NS,
    PROCESS_MAX_FDS,
    PROCESS_OPEN_FDS,
    PROCESS_RESIDENT_BYTES,
    PROCESS_START_NS, // Unix
    PROCESS_THREADS,
    PROCESS_VIRTUAL_BYTES,
    PROCESS_FIGURES
};

struct process_figures {
    uint64_t values[PROCESS_FIGURES];
    bool known[PROCESS_FIGURES]; // false: it could not be read
};

// Three reads below /proc/self. Any thread.
void process_figures_read(struct process_figures *figures);

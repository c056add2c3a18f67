// SPDX-License-Identifier: Apache-2.0
// How culprit is doing, component by component: for health checks and status pages. Any thread.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum component_state {
    COMPONENT_STARTING,
    COMPONENT_OK,
    COMPONENT_RECOVERABLE, // it tries again by itself
    COMPONENT_PERMANENT,   // it will not work again without a person, the others go on
    COMPONENT_FATAL,       // culprit ends because of it
    COMPONENT_STOPPING,
    COMPONENT_STOPPED,
};
const char *component_state_name(enum component_state state); // "StatusOK", as in the Collector

enum { STATUS_SENTENCE_MAX = 256 };

struct component_status {
    char id[160];       // "exporter/json"
    char pipeline[128]; // "" for what belongs to none or to several
    enum component_state state;
    char sentence[STATUS_SENTENCE_MAX]; // what is wrong; "" when nothing is
    uint64_t since_unix_ns;             // when it came into this state
};

struct service_health {
    bool live;              // the main loop turned within 30 s
    bool started;           // everything runs
    bool ready;             // started, not stopping, the store can be written
    bool last_config_taken; // false after a reload that was refused
    uint64_t up_since_unix_ns;
    char sentence[STATUS_SENTENCE_MAX]; // why not ready, or what is degraded; "" when all is well
};

struct service_status {
    void *context;
    void (*health)(void *context, struct service_health *health);
    // Fills at most `max`; returns how many there are.
    uint32_t (*components)(void *context, struct component_status *statuses, uint32_t max);
};

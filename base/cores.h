// SPDX-License-Identifier: Apache-2.0
// How many cores this process may use, and who runs where.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// By its CPU affinity and the least CPU limit of its control groups, rounded up; at least 1. Looked
// up each time.
uint32_t cores_usable(void);

// What a limit in the words of cpu.max ("200000 100000", "max 100000") comes to, rounded up; 0: no
// limit, or not such words. For tests.
uint32_t cores_of_limit(const char *text);
// The least limit of its control groups; 0: no limit. `root`: see base/control_group.h. For tests.
uint32_t cores_of_groups(const char *root);

// Threads that help another one are of use only on other cores than its own. Linux mostly sees to
// that by itself; a guest of KVM, for which a core that sleeps looks like one that others have
// taken (vcpu_is_preempted), wakes a thread on the core of the one that woke it, and the two take
// turns there. So whoever has helpers calls the first of these each time it wakes them, and the
// second for each of them when it says so.
//
// Whether the calling thread runs on another core than `*core`, which is -1 at first and is set.
bool core_changed(int *core);
// Keeps a thread off this core, if it leaves it any other that the calling thread may use.
void core_avoid(int core, pthread_t thread);

// SPDX-License-Identifier: Apache-2.0
// A limit is a quota of time in each period, of the process's control group or one around it:
// https://docs.kernel.org/admin-guide/cgroup-v2.html, and cpu.cfs_quota_us of version 1.
#include "base/cores.h"

#include "base/control_group.h"

#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static uint32_t round_up(uint64_t quota, uint64_t period) {
    assert(period > 0);
    uint64_t cores = quota / period + (quota % period != 0);
    return cores == 0 ? 1 : cores > UINT32_MAX ? UINT32_MAX : (uint32_t)cores;
}

uint32_t cores_of_limit(const char *text) {
    assert(text != NULL);
    uint64_t quota, period;
    if (sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) != 2 || period == 0)
        return 0;
    return round_up(quota, period);
}

// Lowers `*least` (0: no limit) to what this group allows.
static void look_at_cores(void *context, const char *folder) {
    uint32_t *least = context, limit = 0;
    char quota[64], period[64], both[sizeof quota + sizeof period + 1];
    if (control_group_text(folder, "cpu.max", quota, sizeof quota)) {
        limit = cores_of_limit(quota);
    } else if (control_group_text(folder, "cpu.cfs_quota_us", quota, sizeof quota) &&
               control_group_text(folder, "cpu.cfs_period_us", period, sizeof period) &&
               quota[0] != '-') {
        snprintf(both, sizeof both, "%s %s", quota, period);
        limit = cores_of_limit(both);
    }
    if (limit > 0 && (*least == 0 || limit < *least))
        *least = limit;
}

uint32_t cores_of_groups(const char *root) {
    uint32_t least = 0;
    control_groups_each(root, "cpu", look_at_cores, &least);
    return least;
}

uint32_t cores_usable(void) {
    cpu_set_t set;
    long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                             : sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t cores = count < 1 ? 1 : (uint32_t)count;
    uint32_t limit = cores_of_groups("");
    return limit > 0 && limit < cores ? limit : cores;
}

bool core_changed(int *core) {
    int now = sched_getcpu();
    bool changed = now >= 0 && now != *core;
    if (changed)
        *core = now;
    return changed;
}

void core_avoid(int core, pthread_t thread) {
    assert(core >= 0);
    cpu_set_t set; // with more cores than fit, threads stay where they are
    if (core >= CPU_SETSIZE || sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    CPU_CLR((size_t)core, &set);
    if (CPU_COUNT(&set) > 0)
        (void)pthread_setaffinity_np(thread, sizeof set, &set);
}

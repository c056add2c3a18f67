// SPDX-License-Identifier: Apache-2.0
// The limit is that of the control group that the process sees as its root (cgroup v2 in a
// container, or the same file of cgroup v1): https://docs.kernel.org/admin-guide/cgroup-v2.html
#include "base/cores.h"

#include <assert.h>
#include <fcntl.h>
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

static bool read_text(const char *path, char *text, size_t room) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    ssize_t got = read(descriptor, text, room - 1);
    close(descriptor);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

// 0: no limit.
static uint32_t group_limit(void) {
    char quota[64], period[64], both[sizeof quota + sizeof period + 1];
    if (read_text("/sys/fs/cgroup/cpu.max", quota, sizeof quota))
        return cores_of_limit(quota);
    if (!read_text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota) || quota[0] == '-' ||
        !read_text("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period))
        return 0;
    snprintf(both, sizeof both, "%s %s", quota, period);
    return cores_of_limit(both);
}

uint32_t cores_usable(void) {
    cpu_set_t set;
    long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                             : sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t cores = count < 1 ? 1 : (uint32_t)count;
    uint32_t limit = group_limit();
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

// SPDX-License-Identifier: Apache-2.0
// Reads what the process itself costs.
//
// One read of /proc/self/stat gives times, threads and memory; the descriptors are counted by the
// size of /proc/self/fd, which Linux tells since 6.2, before that by listing it. Source: proc(5);
// names: Prometheus, "writing client libraries".
#include "base/metrics/process.h"

#include "base/clock.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NANOSECONDS = 1000000000 };

static void put(struct process_figures *figures, enum process_figure figure, uint64_t value) {
    assert(figure < PROCESS_FIGURES && !figures->known[figure]);
    figures->values[figure] = value;
    figures->known[figure] = true;
}

// Fields of /proc/self/stat as proc(5) numbers them, from 3, which comes first behind the name.
enum { FIELD_FIRST = 3, FIELD_THREADS = 20, FIELD_START = 22, FIELD_VIRTUAL, FIELD_RESIDENT };

static void put_start(struct process_figures *figures, uint64_t start_ticks) {
    struct timespec boot;
    long per_second = sysconf(_SC_CLK_TCK);
    if (per_second <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return;
    uint64_t up_ns = (uint64_t)boot.tv_sec * NANOSECONDS + (uint64_t)boot.tv_nsec;
    uint64_t start_ns = start_ticks * (NANOSECONDS / (uint64_t)per_second);
    put(figures, PROCESS_START_NS, clock_unix_ns() - (up_ns > start_ns ? up_ns - start_ns : 0));
}

static void put_stat(struct process_figures *figures, char *text) {
    char *rest = strrchr(text, ')'); // the name before it may hold anything
    char *word;
    if (rest == NULL)
        return;
    rest++;
    for (int field = FIELD_FIRST; (word = strsep(&rest, " ")) != NULL;) {
        if (*word == '\0')
            continue;
        uint64_t value = strtoull(word, NULL, 10);
        if (field == FIELD_THREADS)
            put(figures, PROCESS_THREADS, value);
        else if (field == FIELD_START)
            put_start(figures, value);
        else if (field == FIELD_VIRTUAL)
            put(figures, PROCESS_VIRTUAL_BYTES, value);
        else if (field == FIELD_RESIDENT)
            put(figures, PROCESS_RESIDENT_BYTES, value * (uint64_t)sysconf(_SC_PAGESIZE));
        field++;
    }
}

static void read_stat(struct process_figures *figures) {
    char text[2048];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0)
        return;
    text[size] = '\0';
    put_stat(figures, text);
}

static void count_descriptors(struct process_figures *figures) {
    struct stat status;
    if (stat("/proc/self/fd", &status) == 0 && status.st_size > 0) {
        put(figures, PROCESS_OPEN_FDS, (uint64_t)status.st_size);
        return;
    }
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    put(figures, PROCESS_OPEN_FDS, count > 0 ? count - 1 : 0); // without the listing's own
}

void process_figures_read(struct process_figures *figures) {
    struct timespec used;
    struct rlimit limit;
    *figures = (struct process_figures){0};
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
        put(figures, PROCESS_CPU_NS, (uint64_t)used.tv_sec * NANOSECONDS + (uint64_t)used.tv_nsec);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        put(figures, PROCESS_MAX_FDS, limit.rlim_cur);
    read_stat(figures);
    count_descriptors(figures);
}

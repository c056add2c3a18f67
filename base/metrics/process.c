// SPDX-License-Identifier: Apache-2.0
// What does the process itself cost?
//
// One read of /proc/self/stat gives times, threads and memory; the descriptors are counted by the
// size of /proc/self/fd, which Linux tells since 6.2, before that by listing it. Source: proc(5);
// names: Prometheus, "writing client libraries".
#include "base/metrics/process.h"

#include "base/clock.h"
#include "base/metrics/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NANOSECONDS = 1000000000 };

static const struct metric_family CPU = {
    .name = "process_cpu_seconds_total",
    .help = "Processor time spent, by user and system together.",
    .type = METRIC_COUNTER,
    .divisor = NANOSECONDS,
};
static const struct metric_family MAX_FDS = {
    .name = "process_max_fds",
    .help = "File descriptors that may be open at once.",
    .type = METRIC_GAUGE,
};
static const struct metric_family OPEN_FDS = {
    .name = "process_open_fds",
    .help = "File descriptors that are open.",
    .type = METRIC_GAUGE,
};
static const struct metric_family RESIDENT = {
    .name = "process_resident_memory_bytes",
    .help = "Resident memory.",
    .type = METRIC_GAUGE,
};
static const struct metric_family START = {
    .name = "process_start_time_seconds",
    .help = "When the process started, in Unix time.",
    .type = METRIC_GAUGE,
    .divisor = NANOSECONDS,
};
static const struct metric_family THREADS = {
    .name = "process_threads",
    .help = "Threads of the process.",
    .type = METRIC_GAUGE,
};
static const struct metric_family VIRTUAL = {
    .name = "process_virtual_memory_bytes",
    .help = "Virtual memory.",
    .type = METRIC_GAUGE,
};

static void put(const struct metric_family *family, uint64_t value) {
    metric_set(METRIC_PLAIN(family), value);
}

// Fields of /proc/self/stat as proc(5) numbers them, from 3, which comes first behind the name.
enum { FIELD_FIRST = 3, FIELD_THREADS = 20, FIELD_START = 22, FIELD_VIRTUAL, FIELD_RESIDENT };

static void put_start(uint64_t start_ticks) {
    struct timespec boot;
    long per_second = sysconf(_SC_CLK_TCK);
    // The time of day may be set later; what was worked out first stays.
    if (per_second <= 0 || metric_value(METRIC_PLAIN(&START)) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return;
    uint64_t up_ns = (uint64_t)boot.tv_sec * NANOSECONDS + (uint64_t)boot.tv_nsec;
    uint64_t start_ns = start_ticks * (NANOSECONDS / (uint64_t)per_second);
    put(&START, clock_unix_ns() - (up_ns > start_ns ? up_ns - start_ns : 0));
}

static void put_stat(char *text) {
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
            put(&THREADS, value);
        else if (field == FIELD_START)
            put_start(value);
        else if (field == FIELD_VIRTUAL)
            put(&VIRTUAL, value);
        else if (field == FIELD_RESIDENT)
            put(&RESIDENT, value * (uint64_t)sysconf(_SC_PAGESIZE));
        field++;
    }
}

static void read_stat(void) {
    char text[2048];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0)
        return;
    text[size] = '\0';
    put_stat(text);
}

static void count_descriptors(void) {
    struct stat status;
    if (stat("/proc/self/fd", &status) == 0 && status.st_size > 0) {
        put(&OPEN_FDS, (uint64_t)status.st_size);
        return;
    }
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    put(&OPEN_FDS, count > 0 ? count - 1 : 0); // without the listing's own
}

void metrics_collect_process(void) {
    struct timespec used;
    struct rlimit limit;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
        put(&CPU, (uint64_t)used.tv_sec * NANOSECONDS + (uint64_t)used.tv_nsec);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        put(&MAX_FDS, limit.rlim_cur);
    read_stat();
    count_descriptors();
}

// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static const uint64_t NS_PER_SECOND = 1000000000;

static uint64_t clock_read(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t clock_unix_ns(void) {
    return clock_read(CLOCK_REALTIME);
}

uint64_t clock_monotonic_ns(void) {
    return clock_read(CLOCK_MONOTONIC);
}

void clock_sleep_ns(uint64_t duration_ns) {
    struct timespec left = {.tv_sec = (time_t)(duration_ns / NS_PER_SECOND),
                            .tv_nsec = (long)(duration_ns % NS_PER_SECOND)};
    nanosleep(&left, NULL);
}

void clock_format_rfc3339(uint64_t unix_ns, char out[CLOCK_RFC3339_MAX]) {
    time_t seconds = (time_t)(unix_ns / NS_PER_SECOND);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t used = strftime(out, CLOCK_RFC3339_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + used, CLOCK_RFC3339_MAX - used, ".%09uZ", (unsigned)(unix_ns % NS_PER_SECOND));
}

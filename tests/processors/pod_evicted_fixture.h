// SPDX-License-Identifier: Apache-2.0
// For tests of pod_evicted: a cluster, the detector, and what its lines say.
#pragma once

#include "processors/pod_evicted.h"
#include "processors/pod_removal.h"
#include "tests/processors/cluster.h"
#include "tests/support/detector.h"
#include "tests/support/schema_check.h"

static struct cluster cluster;
static struct detector detector;
static const char LOW_MEMORY[] = "The node was low on resource: memory. Threshold quantity: 100Mi";
static const char LOW_DISK[] = "The node was low on resource: ephemeral-storage. ";

static inline void setup(void) {
    cluster.count = 0;
    detector = detector_open(&processor_pod_evicted);
}

static inline void teardown(void) {
    detector_close(&detector);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// All events in one batch, judged at the end.
static inline const char *run(void) {
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_finish(&detector);
    return detector_lines(&detector);
}

static inline void says(const char *lines, const char *words) {
    ck_assert_msg(strstr(lines, words) != NULL, "\"%s\" is not in: %s", words, lines);
}

static inline void says_not(const char *lines, const char *words) {
    ck_assert_msg(strstr(lines, words) == NULL, "\"%s\" is in: %s", words, lines);
}

static const char SCHEMA[] = TESTS_DIR "/../docs/verdict.schema.json";

// SPDX-License-Identifier: Apache-2.0
// For tests of a detector over what happens in a made-up cluster, and of what its lines say.
#pragma once

#include "tests/processors/node_lines.h"
#include "tests/support/schema_check.h"

static const char SCHEMA[] = TESTS_DIR "/../docs/verdict.schema.json";
static struct cluster cluster;
static struct detector detector;

static inline void fixture_begin(const struct component_type *type) {
    cluster.count = 0;
    detector = detector_open(type);
}

static inline void teardown(void) {
    detector_close(&detector);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// All events in one batch, judged at the end. The lines are as the schema says.
static inline const char *run(void) {
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_finish(&detector);
    const char *lines = detector_lines(&detector);
    if (detector.verdict_count > 0)
        schema_check_lines(SCHEMA, lines);
    return lines;
}

static inline void says(const char *lines, const char *words) {
    ck_assert_msg(strstr(lines, words) != NULL, "\"%s\" is not in: %s", words, lines);
}

static inline void says_not(const char *lines, const char *words) {
    ck_assert_msg(strstr(lines, words) == NULL, "\"%s\" is in: %s", words, lines);
}

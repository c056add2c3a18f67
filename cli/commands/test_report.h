// SPDX-License-Identifier: Apache-2.0
// Prints what became of the tests of a configuration: for people, as JSON, for JUnit's readers.
#pragma once

#include "cli/commands/test_match.h"

enum test_format { TEST_TEXT, TEST_JSON, TEST_JUNIT };

struct test_result {
    const struct plan_test *test;
    const char *pipeline; // its name
    struct test_differences differences;
    uint64_t event_count;
    uint32_t verdict_count; // found
};

static inline bool test_passed(const struct test_result *result) {
    return result->differences.total == 0;
}

// A line for the test, and one for each thing that differs. Text only.
void test_result_print(const struct test_result *result, struct buffer *out);
// "3 tests, 1 failed", or the whole document. Without wall times: the same tests, the same bytes.
void test_results_print(const struct test_result *results, uint32_t count, enum test_format format,
                        struct buffer *out);

// SPDX-License-Identifier: Apache-2.0
// Compares the verdicts that a test found with those that it expects.
#pragma once

#include "cli/commands/test_run.h"
#include "config/problem.h"

enum difference_kind {
    DIFFERENCE_INPUT,      // nothing could be read, or the test could not be run
    DIFFERENCE_REFUSED,    // another number of records was refused
    DIFFERENCE_DIFFERS,    // a verdict is not as expected
    DIFFERENCE_MISSING,    // an expected verdict was not found
    DIFFERENCE_UNEXPECTED, // a verdict that nobody expected
};

struct test_difference {
    enum difference_kind kind;
    const char *text;      // one line
    const char *verdict;   // "nccl_hang:0f3a…: HEADLINE" of the verdict that is meant; NULL: none
    struct location where; // of the expectation; `line` 0: none
};

struct test_differences {
    struct arena *arena; // holds all texts
    struct test_difference *items;
    uint32_t count; // kept, at most TEST_DIFFERENCES_MAX
    uint32_t total;
};

enum { TEST_DIFFERENCES_MAX = 200 };

// "missing": a word for each kind, as it is printed.
const char *difference_name(enum difference_kind kind);

// What differs, of a run that ended well. Each expectation takes one verdict that fits, so that as
// many as possible have one; of the others each is told of with the verdict of its pattern that is
// nearest, if any is left. O(expectations * verdicts * expectations).
void test_compare(struct test_differences *out, const struct plan_test *test,
                  const struct test_run *run);
// Adds one line.
void test_differs(struct test_differences *out, enum difference_kind kind, struct location where,
                  const char *verdict, const char *text);

// SPDX-License-Identifier: Apache-2.0
// `tests` of a configuration: recorded or made-up input, and the verdicts that a pipeline is
// expected to make of it. plan_build checks them, `culprit test` runs them; nothing else looks at
// them.
#pragma once

#include "pipeline/plan/rows.h"

enum {
    PLAN_TESTS_MAX = 1000,
    PLAN_TEST_INPUTS_MAX = 64,
    PLAN_TEST_EXPECTED_MAX = 256,
    PLAN_TEST_ENTITIES_MAX = 256, // names of one role in one expectation
    PLAN_TEST_NAME_MAX = 255,     // bytes of the name of an inline text
};

// Which verdicts may be found beside those expected.
enum plan_test_others { OTHERS_NONE, OTHERS_CONSEQUENCES, OTHERS_ANY };

struct plan_test_entity {
    const char *kind; // "rank"
    const char *name; // "3"
};

// Whom a verdict names in one role. `given` and empty: nobody.
struct plan_test_entities {
    bool given;
    const struct plan_test_entity *items;
    uint32_t count;
};

// What one verdict must be like; what is not given may be anything.
struct plan_test_expectation {
    const char *pattern;
    const char *kind;     // NULL: any
    const char *job;      // NULL: any
    const char *headline; // a part of it; NULL: any
    int severity;         // enum severity + 1; 0: any
    int state;            // enum verdict_state + 1; 0: any
    int64_t confidence;   // at least
    bool root, root_given;
    struct plan_test_entities entities[ROLE_VICTIM + 1]; // by enum entity_role
    struct location where;
};

// One receiver's worth of input: a component of the type that reads files, with the options of the
// receiver that it stands for.
struct plan_test_input {
    struct plan_component component;
    const char *text; // inline: to be put into a file `name`, which `include` names; NULL: files
    const char *name;
    uint64_t written_ns; // when the text was written last
};

struct plan_test {
    const char *name;
    struct location where;
    uint32_t pipeline; // of plan.pipelines
    const struct plan_test_input *inputs;
    uint32_t input_count;
    const struct plan_test_expectation *expected;
    uint32_t expected_count;
    int others;      // enum plan_test_others
    int64_t refused; // records that are refused
};

// The keys of a test without `inputs` and `expect`, and those of one that is expected.
extern const struct option_rows PLAN_TEST_ROWS, PLAN_EXPECT_ROWS;
// The keys of an input: own ones, and options of the file receiver. For help and schema: `offset`
// means nothing. Returns how many.
enum { PLAN_TEST_INPUT_ROWS_MAX = 24 };
size_t plan_test_input_rows(struct component_set set, struct option rows[PLAN_TEST_INPUT_ROWS_MAX]);

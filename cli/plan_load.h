// SPDX-License-Identifier: Apache-2.0
// A configuration from the command line to a plan, with everything that is wrong with it said.
#pragma once

#include "cli/command.h"
#include "config/problem.h"
#include "pipeline/plan/plan.h"

struct plan_request {
    struct word_list files; // --config
    struct word_list sets;  // --set
    struct word_list forms; // --forms
    const char *text;       // instead of files
    const char *text_name;
    bool no_environment;
    bool check_places; // see struct plan_input, both
    bool ends_unused;
    bool quiet; // warnings are not said
};

#define SET_ARGUMENT(owner)                                                                        \
    ARGUMENT("set", owner, sets, ARGUMENT_LIST, .value_name = "KEY=VALUE", .assignment = true,     \
             .help = "override one key, such as processors.spike_detect.min_growth=128MiB")

// 0 and a plan that the caller releases, or an exit code, with every problem on standard error.
int plan_load(struct plan *plan, const struct plan_request *request, struct invocation *invocation);
// All that is wrong with a configuration.
struct findings {
    enum status status; // of plan_build
    struct problem_list problems;
    struct problem_list warnings;
    struct error error; // when it could not even be read
    struct arena arena;
};

// The same, but prints nothing. The caller calls findings_release, whatever the status.
enum status plan_load_quietly(struct plan *plan, const struct plan_request *request,
                              struct findings *findings);
void findings_release(struct findings *findings);
// Prints the plan as it takes effect to standard output. 0, or an exit code as plan_load.
int plan_load_and_print(const struct plan_request *request, struct invocation *invocation);

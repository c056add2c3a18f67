// SPDX-License-Identifier: Apache-2.0
// A configuration from the command line to a plan, with everything that is wrong with it said.
#pragma once

#include "cli/command.h"
#include "pipeline/plan/plan.h"

struct plan_request {
    struct word_list files; // --config
    struct word_list sets;  // --set
    const char *text;       // instead of files
    const char *text_name;
    bool no_environment;
    bool check_places; // see struct plan_input, both
    bool ends_unused;
    bool quiet; // warnings are not said
};

// 0 and a plan that the caller releases, or an exit code, with every problem on standard error.
int plan_load(struct plan *plan, const struct plan_request *request, struct invocation *invocation);
// The same without a word: what is wrong is in `problems` and `warnings`, or, when the
// configuration could not even be read, in `error`.
enum status plan_load_quietly(struct plan *plan, const struct plan_request *request,
                              struct problem_list *problems, struct problem_list *warnings,
                              struct error *error) MUST_USE;

// SPDX-License-Identifier: Apache-2.0
// Is the configuration right, and if not, what is all that is wrong with it?
#include "cli/plan_load.h"

#include "cli/component_list.h"

enum { PROBLEM_ARENA_BLOCK = 16 * 1024 };

enum status plan_load_quietly(struct plan *plan, const struct plan_request *request,
                              struct problem_list *problems, struct problem_list *warnings,
                              struct error *error) {
    struct plan_input input = {.components = component_list(),
                               .files = request->files.items,
                               .file_count = request->files.count,
                               .text = request->text,
                               .text_name = request->text_name,
                               .sets = request->sets.items,
                               .set_count = request->sets.count,
                               .no_environment = request->no_environment,
                               .check_places = request->check_places,
                               .ends_unused = request->ends_unused};
    return plan_build(plan, &input, problems, warnings, error);
}

int plan_load(struct plan *plan, const struct plan_request *request,
              struct invocation *invocation) {
    struct arena arena;
    arena_init(&arena, PROBLEM_ARENA_BLOCK);
    struct problem_list problems, warnings;
    problem_list_init(&problems, &arena);
    problem_list_init(&warnings, &arena);
    struct error error = {0};
    enum status status = plan_load_quietly(plan, request, &problems, &warnings, &error);
    problem_list_print(&problems, invocation->err);
    if (!request->quiet)
        problem_list_print(&warnings, invocation->err);
    int code = status_exit_code(status);
    if (status != STATUS_OK && problems.count == 0)
        code = invocation_fail(invocation, &error);
    invocation_say(invocation);
    arena_release(&arena);
    return code;
}

// SPDX-License-Identifier: Apache-2.0
// Loads a configuration and reports everything that is wrong with it.
#include "cli/plan_load.h"

#include "cli/component_list.h"
#include "cli/form_files.h"
#include "config/problem.h"
#include "pipeline/plan/print.h"

#include <assert.h>

enum { PROBLEM_ARENA_BLOCK = 16 * 1024 };

enum status plan_load_quietly(struct plan *plan, const struct plan_request *request,
                              struct findings *findings) {
    assert(plan != NULL && (request->files.count == 0) != (request->text == NULL));
    struct plan_input input = {.components = component_list(),
                               .files = request->files.items,
                               .file_count = request->files.count,
                               .text = request->text,
                               .text_name = request->text_name,
                               .sets = request->sets.items,
                               .set_count = request->sets.count,
                               .form_maker = &FORM_FILES,
                               .form_files = request->forms.items,
                               .form_file_count = request->forms.count,
                               .no_environment = request->no_environment,
                               .check_places = request->check_places,
                               .ends_unused = request->ends_unused};
    *findings = (struct findings){0};
    arena_init(&findings->arena, PROBLEM_ARENA_BLOCK);
    problem_list_init(&findings->problems, &findings->arena);
    problem_list_init(&findings->warnings, &findings->arena);
    findings->status =
        plan_build(plan, &input, &findings->problems, &findings->warnings, &findings->error);
    return findings->status;
}

void findings_release(struct findings *findings) {
    arena_release(&findings->arena);
}

int plan_load(struct plan *plan, const struct plan_request *request,
              struct invocation *invocation) {
    struct findings findings;
    enum status status = plan_load_quietly(plan, request, &findings);
    problem_list_print(&findings.problems, invocation->err);
    if (!request->quiet)
        problem_list_print(&findings.warnings, invocation->err);
    int code = status_exit_code(status);
    if (status != STATUS_OK && findings.problems.count == 0)
        code = invocation_fail(invocation, &findings.error);
    invocation_say(invocation);
    findings_release(&findings);
    return code;
}

int plan_load_and_print(const struct plan_request *request, struct invocation *invocation) {
    struct plan plan;
    int code = plan_load(&plan, request, invocation);
    if (code != 0)
        return code;
    plan_print(&plan, invocation->out);
    plan_release(&plan);
    return 0;
}

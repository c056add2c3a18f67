// SPDX-License-Identifier: Apache-2.0
// Any text as a configuration of the real components: plan_build must come back, with a plan or
// with problems, and what it prints of a good plan must be a good configuration again.
#include "base/memory.h"
#include "cli/component_list.h"
#include "pipeline/plan_print.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

// libfyaml 0.7.12 loses 2 KiB of its own when it gives up on some broken texts
// (seeds/config/lost_by_library.yaml). A process reads its configuration once.
const char *__lsan_default_suppressions(void) {
    return "leak:libfyaml.so";
}

enum { ARENA_BLOCK = 4096, PRINT_MAX = 64 << 20 };

struct attempt {
    struct arena arena;
    struct problem_list problems, warnings;
    struct plan plan;
    enum status status;
};

static void attempt_begin(struct attempt *attempt, const char *text) {
    arena_init(&attempt->arena, ARENA_BLOCK);
    problem_list_init(&attempt->problems, &attempt->arena);
    problem_list_init(&attempt->warnings, &attempt->arena);
    struct plan_input input = {.components = component_list(),
                               .text = text,
                               .text_name = "fuzz.yaml",
                               .no_environment = true};
    struct error error;
    attempt->status =
        plan_build(&attempt->plan, &input, &attempt->problems, &attempt->warnings, &error);
}

static void attempt_end(struct attempt *attempt) {
    plan_release(&attempt->plan);
    arena_release(&attempt->arena);
}

// Prints the plan and reads it again. Texts that were not looked up are printed as plain texts.
static void print_again(const struct plan *plan) {
    struct buffer out;
    buffer_init(&out, PRINT_MAX);
    plan_print(plan, &out);
    buffer_append_char(&out, '\0');
    if (!out.failed && out.size < (1 << 20)) {
        struct attempt again;
        attempt_begin(&again, out.data);
        if (again.status != STATUS_OK)
            abort();
        attempt_end(&again);
    }
    buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = memory_copy_text((const char *)data, size);
    struct attempt attempt;
    attempt_begin(&attempt, text);
    if ((attempt.status == STATUS_OK) != (attempt.problems.count == 0))
        abort();
    struct buffer shown;
    buffer_init(&shown, PRINT_MAX);
    problem_list_print(&attempt.problems, &shown);
    if (attempt.status == STATUS_OK)
        print_again(&attempt.plan);
    buffer_release(&shown);
    attempt_end(&attempt);
    memory_give(text);
    return 0;
}

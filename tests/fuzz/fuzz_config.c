// SPDX-License-Identifier: Apache-2.0
// Any text as a configuration of the real components: plan_build must come back, with a plan or
// with problems, `culprit validate` must say the same, and what is printed of a good plan must be a
// good configuration again.
//
// The input is the text; behind a zero byte each, what --set is given.
#include "cli/commands/validate.h"
#include "cli/component_list.h"
#include "pipeline/plan/print.h"
#include "receivers/decode/json/scan.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>

const char *__lsan_default_suppressions(void);

// libfyaml 0.7.12 loses 2 KiB of its own when it gives up on some broken texts
// (seeds/config/lost_by_library.yaml). A process reads its configuration once.
const char *__lsan_default_suppressions(void) {
    return "leak:libfyaml.so";
}

enum { ARENA_BLOCK = 4096, PRINT_MAX = 64 << 20, SETS_MAX = 4 };

struct attempt {
    struct arena arena;
    struct problem_list problems, warnings;
    struct plan plan;
    enum status status;
};

static void attempt_begin(struct attempt *attempt, const char *text, const struct word_list *sets) {
    arena_init(&attempt->arena, ARENA_BLOCK);
    problem_list_init(&attempt->problems, &attempt->arena);
    problem_list_init(&attempt->warnings, &attempt->arena);
    struct plan_input input = {.components = component_list(),
                               .text = text,
                               .text_name = "fuzz.yaml",
                               .sets = sets->items,
                               .set_count = sets->count,
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
// What may hold secrets is not printed, and what stands for it need not be right in its place (a
// URL).
static void print_again(const struct plan *plan) {
    struct buffer out;
    buffer_init(&out, PRINT_MAX);
    plan_print(plan, &out);
    buffer_append_char(&out, '\0');
    if (!out.failed && out.size < (1 << 20)) {
        struct attempt again;
        attempt_begin(&again, out.data, &(struct word_list){NULL, 0});
        require(again.status == STATUS_OK || strstr(out.data, "[REDACTED]") != NULL);
        attempt_end(&again);
    }
    buffer_release(&out);
}

// The command's answer, as JSON, must be that of the plan.
static void require_validates(const struct attempt *attempt, const char *text,
                              const struct word_list *sets) {
    struct buffer out, err;
    struct invocation invocation = {.command = &command_validate, .out = &out, .err = &err};
    struct plan_request request = {
        .text = text, .text_name = "fuzz.yaml", .sets = *sets, .no_environment = true};
    buffer_init(&out, PRINT_MAX);
    buffer_init(&err, PRINT_MAX);
    int code = validate_config(&invocation, &request, VALIDATE_JSON);
    require(code == status_exit_code(attempt->status) && !out.failed);
    json_t *said = json_loadb(out.data, out.size, JSON_ALLOW_NUL, NULL);
    if (said != NULL) {
        size_t problems = json_array_size(json_object_get(said, "problems"));
        require(json_is_true(json_object_get(said, "valid")) == (attempt->status == STATUS_OK));
        require(problems == attempt->problems.count);
    } else {
        // jansson takes no half of a surrogate pair, which --set may hold and which is repeated.
        struct token token;
        struct json_fault fault;
        const char *end = out.data + out.size - 1;
        require(memmem(out.data, out.size, "\\ud", 3) != NULL);
        require(json_scan_value(out.data, end, 0, &token, &fault) == end);
    }
    json_decref(said);
    buffer_release(&out);
    buffer_release(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = memory_copy_text((const char *)data, size);
    const char *items[SETS_MAX];
    struct word_list sets = {items, 0};
    for (const char *end = text + strlen(text); end < text + size && sets.count < SETS_MAX;
         end += 1 + strlen(end + 1))
        items[sets.count++] = end + 1;
    struct attempt attempt;
    attempt_begin(&attempt, text, &sets);
    require((attempt.status == STATUS_OK) == (attempt.problems.count == 0));
    struct buffer shown;
    buffer_init(&shown, PRINT_MAX);
    problem_list_print(&attempt.problems, &shown);
    if (attempt.status == STATUS_OK)
        print_again(&attempt.plan);
    require_validates(&attempt, text, &sets);
    buffer_release(&shown);
    attempt_end(&attempt);
    memory_give(text);
    return 0;
}

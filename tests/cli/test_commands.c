// SPDX-License-Identifier: Apache-2.0
// The table of commands and their help; what analyze and replay make of a user's pipeline.
#include "base/memory.h"
#include "cli/command.h"
#include "cli/component_list.h"
#include "cli/plan_ends.h"

#include <check.h>
#include <stdio.h>

static struct arena arena;
static struct buffer out, err;
static struct invocation invocation;
static char said[65536]; // on standard error
static size_t said_size;

static bool say(void *context, struct slice bytes) {
    (void)context;
    ck_assert_uint_lt(said_size + bytes.size, sizeof said);
    memcpy(said + said_size, bytes.data, bytes.size);
    said_size += bytes.size;
    said[said_size] = '\0';
    return true;
}

static void setup(void) {
    arena_init(&arena, 4096);
    buffer_init(&out, 1 << 20);
    buffer_init_drained(&err, 4096, say, NULL);
    said_size = 0;
    said[0] = '\0';
    invocation =
        (struct invocation){.command = &command_analyze, .arena = &arena, .out = &out, .err = &err};
}

static void teardown(void) {
    arena_release(&arena);
    buffer_release(&out);
    buffer_release(&err);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// -- the table ----------------------------------------------------------------------------------

START_TEST(each_command_is_found_by_its_name) {
    struct command_list list = command_list();
    ck_assert_uint_ge(list.count, 9);
    for (size_t i = 0; i < list.count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", list.items[i]->name);
        char *space = strchr(name, ' ');
        char *argv[] = {name, space == NULL ? "x" : space + 1};
        if (space != NULL)
            *space = '\0';
        int words = 0;
        ck_assert_ptr_eq(command_find(2, argv, &words), list.items[i]);
        ck_assert_int_eq(words, space == NULL ? 1 : 2);
    }
}
END_TEST

START_TEST(half_a_name_is_no_command) {
    char *config[] = {"config"}, *analyz[] = {"analyz"}, *long_one[] = {"analyzer"};
    int words = 0;
    ck_assert_ptr_null(command_find(1, config, &words));
    ck_assert_ptr_null(command_find(1, analyz, &words));
    ck_assert_ptr_null(command_find(1, long_one, &words));
    ck_assert_ptr_null(command_find(0, NULL, &words));
    ck_assert(command_is_group("config"));
    ck_assert(!command_is_group("conf"));
    ck_assert(!command_is_group("analyze"));
    ck_assert_str_eq(command_nearest("analyse"), "analyze");
}
END_TEST

// Whether the words of `text` stand in `whole` one after another, however its lines are broken.
static bool has_words(const char *whole, const char *text) {
    for (; *whole != '\0'; whole++) {
        const char *at = whole, *wanted = text;
        while (*wanted != '\0' && (*at == *wanted || (*at == '\n' && *wanted == ' '))) {
            at += 1 + strspn(at + 1, *at == '\n' && *wanted == ' ' ? " " : "");
            wanted++;
        }
        if (*wanted == '\0')
            return true;
    }
    return false;
}

START_TEST(help_of_each_command_is_whole) {
    struct command_list list = command_list();
    for (size_t i = 0; i < list.count; i++) {
        const struct command *command = list.items[i];
        buffer_reset(&out);
        help_print_command(&out, command);
        buffer_append_char(&out, '\0');
        ck_assert(!out.failed);
        ck_assert_msg(has_words(out.data, command->description), "%s", command->name);
        ck_assert_ptr_nonnull(strstr(out.data, command->examples));
        ck_assert_msg(has_words(out.data, command->exit_codes), "%s", command->name);
        ck_assert_ptr_nonnull(strstr(out.data, "--help"));
        for (size_t row = 0; row < command->row_count; row++) {
            char option[64];
            snprintf(option, sizeof option, "--%s", command->rows[row].name);
            ck_assert_msg(strstr(out.data, option) != NULL, "%s %s", command->name, option);
        }
    }
}
END_TEST

START_TEST(a_message_cannot_move_the_cursor) {
    struct error error = {.status = STATUS_IO, .message = "x\033[2Jy\nz"};
    ck_assert_int_eq(invocation_fail(&invocation, &error), 74);
    ck_assert_str_eq(said, "culprit analyze: x\\x1b[2Jy\\x0az\n");
}
END_TEST

START_TEST(a_place_that_is_not_there_is_an_output_at_the_start) {
    struct error error = {.status = STATUS_NOT_FOUND, .message = "x"};
    ck_assert_int_eq(invocation_fail(&invocation, &error), 66);
    ck_assert_int_eq(invocation_fail_start(&invocation, &error), 73);
    error.status = STATUS_DENIED;
    ck_assert_int_eq(invocation_fail_start(&invocation, &error), 77);
}
END_TEST

// -- the ends of a pipeline ---------------------------------------------------------------------

static const char user_text[] =
    "receivers: {file: {include: [/a]}}\n"
    "exporters: {json: {content: timeline, path: /nowhere/t.json}}\n"
    "processors: {spike_detect: {min_growth: 1GiB}}\n"
    "service:\n"
    "  batch_size: 7\n"
    "  pipelines:\n"
    "    first: {receivers: [file], preset: memory, exporters: [json], settle: 3s}\n"
    "    second: {receivers: [file], preset: memory, exporters: [json]}\n";

static const char *const words[] = {"/x/\xff", "${env:NO_SUCH_VARIABLE}", "*"};
static const struct word_list paths = {words, 3};

static int load(struct plan *plan, const struct plan *ends, const char *text, const char *name) {
    struct plan_request request = {.text = text, .text_name = "user.yaml"};
    return plan_load_between(plan, ends, &request, name, &invocation);
}

START_TEST(a_pipeline_gets_other_ends) {
    struct plan ends, plan;
    ck_assert_int_eq(plan_load_default(&ends, ANALYZE_VERDICTS, NULL, NULL,
                                       &(struct plan_request){0}, &invocation),
                     0);
    plan_set(&ends, COMPONENT_RECEIVER, NULL, "include", paths);
    ck_assert_int_eq(load(&plan, &ends, user_text, "first"), 0);
    ck_assert_str_eq(said, "");
    plan_set_text(&plan, COMPONENT_EXPORTER, NULL, "path", "/tmp/v");

    ck_assert_uint_eq(plan.pipeline_count, 1);
    const struct plan_pipeline *pipeline = &plan.pipelines[0];
    ck_assert_str_eq(pipeline->name, "first");
    ck_assert_int_eq(pipeline->timing.settle.ns, INT64_C(3000000000));
    ck_assert_int_eq(plan.settings.batch_size, 7);
    ck_assert_uint_eq(pipeline->processor_count, 6);
    ck_assert_uint_eq(pipeline->receiver_count, 1);
    ck_assert_uint_eq(pipeline->exporter_count, 1);
    ck_assert_uint_ge(pipeline->receivers[0], plan.component_count - ends.component_count);

    uint32_t used = 0;
    for (uint32_t i = 0; i < plan.component_count; i++)
        used += plan.components[i].used;
    ck_assert_uint_eq(used, 8); // the user's receiver and exporter are left out

    // The paths are values: none of their bytes was read as anything.
    const struct plan_component *receiver = &plan.components[pipeline->receivers[0]];
    const struct option *row = receiver->type->options;
    while (strcmp(row->name, "include") != 0)
        row++;
    const struct text_list *include = (const void *)((const char *)receiver->config + row->offset);
    ck_assert_uint_eq(include->count, 3);
    ck_assert_ptr_eq(include->items[0], words[0]);
    ck_assert_str_eq(include->items[1], "${env:NO_SUCH_VARIABLE}");
    plan_release(&plan);
    plan_release(&ends);
}
END_TEST

START_TEST(without_a_name_it_is_the_first_and_that_is_said) {
    struct plan ends, plan;
    ck_assert_int_eq(
        plan_load_default(&ends, ANALYZE_TEXT, NULL, NULL, &(struct plan_request){0}, &invocation),
        0);
    ck_assert_int_eq(load(&plan, &ends, user_text, NULL), 0);
    ck_assert_str_eq(plan.pipelines[0].name, "first");
    ck_assert_ptr_nonnull(strstr(said, "the first of 2 pipelines, \"first\""));
    plan_release(&plan);
    ck_assert_int_eq(load(&plan, &ends, user_text, "third"), 64);
    ck_assert_ptr_nonnull(strstr(said,
                                 "unknown pipeline \"third\"; the configuration has \"first\", "
                                 "\"second\""));
    plan_release(&ends);
}
END_TEST

START_TEST(an_exporter_that_lacks_its_facts_is_refused) {
    static const char text[] =
        "receivers: {file: {include: [/a]}}\n"
        "exporters: {json: {content: timeline}}\n"
        "processors: {job_filter: {}, rank_group: {}}\n"
        "service: {pipelines: {p: {receivers: [file], processors: [job_filter, rank_group],\n"
        "                          exporters: [json]}}}\n";
    struct plan ends, plan;
    ck_assert_int_eq(
        plan_load_default(&ends, ANALYZE_TEXT, NULL, NULL, &(struct plan_request){0}, &invocation),
        0);
    ck_assert_int_eq(load(&plan, &ends, text, NULL), 78);
    ck_assert_ptr_nonnull(strstr(said, "verdicts"));
    plan_release(&ends);
}
END_TEST

static uint32_t preset_count(enum preset preset) {
    uint32_t count = 0;
    struct component_set set = component_list();
    for (size_t i = 0; i < set.count; i++)
        count += (set.types[i]->presets & 1u << preset) != 0;
    return count;
}

START_TEST(each_default_pipeline_is_right) {
    for (int output = ANALYZE_TEXT; output <= ANALYZE_VERDICTS; output++) {
        struct plan plan;
        ck_assert_int_eq(plan_load_default(&plan, (enum analyze_output)output,
                                           output == ANALYZE_TEXT ? NULL : "/tmp/\xff.html", NULL,
                                           &(struct plan_request){0}, &invocation),
                         0);
        ck_assert_str_eq(said, "");
        ck_assert_uint_eq(plan.pipelines[0].processor_count, preset_count(PRESET_ALL));
        ck_assert_uint_eq(plan.pipelines[0].exporter_count, output == ANALYZE_TEXT ? 1 : 2);
        plan_release(&plan);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("commands");
    TCase *tests = tcase_create("commands");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, each_command_is_found_by_its_name);
    tcase_add_test(tests, half_a_name_is_no_command);
    tcase_add_test(tests, help_of_each_command_is_whole);
    tcase_add_test(tests, a_message_cannot_move_the_cursor);
    tcase_add_test(tests, a_place_that_is_not_there_is_an_output_at_the_start);
    tcase_add_test(tests, a_pipeline_gets_other_ends);
    tcase_add_test(tests, without_a_name_it_is_the_first_and_that_is_said);
    tcase_add_test(tests, an_exporter_that_lacks_its_facts_is_refused);
    tcase_add_test(tests, each_default_pipeline_is_right);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

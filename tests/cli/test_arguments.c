// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include "base/memory.h"

#include <check.h>

struct options {
    bool quiet;
    bool verbose;
    const char *name;
    struct word_list sets;
    int output;
};

static const char *const outputs[] = {"text", "summary", "verdicts", NULL};

static const struct argument rows[] = {
    {.name = "quiet",
     .letter = 'q',
     .type = ARGUMENT_FLAG,
     .offset = offsetof(struct options, quiet),
     .help = "say nothing"},
    {.name = "verbose",
     .letter = 'v',
     .type = ARGUMENT_FLAG,
     .offset = offsetof(struct options, verbose),
     .help = "say more"},
    {.name = "name",
     .letter = 'n',
     .type = ARGUMENT_TEXT,
     .offset = offsetof(struct options, name),
     .value_name = "NAME",
     .help = "a name"},
    {.name = "set",
     .type = ARGUMENT_LIST,
     .offset = offsetof(struct options, sets),
     .value_name = "K=V",
     .assignment = true,
     .help = "a key, with a help text that is so long that it does not fit into what is left of "
             "its line and has to go on in the next one"},
    {.name = "output",
     .type = ARGUMENT_CHOICE,
     .offset = offsetof(struct options, output),
     .choices = outputs,
     .help = "what is printed"},
};
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static struct arena arena;
static struct options options;
static struct arguments arguments;
static struct error error;

static void setup(void) {
    arena_init(&arena, 4096);
    options = (struct options){0};
    error = (struct error){0};
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define PARSE(...) parse((char *[]){__VA_ARGS__, NULL})

static enum status parse(char **words) {
    int count = 0;
    while (words[count] != NULL)
        count++;
    return arguments_parse(&arguments, &options, rows, ROW_COUNT, count, words, &arena, &error);
}

START_TEST(values_come_with_or_without_equals) {
    ck_assert_int_eq(PARSE("--name", "a", "--set=x=1", "--set", "y=2", "--output=summary", "-q"),
                     STATUS_OK);
    ck_assert_str_eq(options.name, "a");
    ck_assert_uint_eq(options.sets.count, 2);
    ck_assert_str_eq(options.sets.items[0], "x=1");
    ck_assert_str_eq(options.sets.items[1], "y=2");
    ck_assert_int_eq(options.output, 1);
    ck_assert(options.quiet);
    ck_assert_uint_eq(arguments.operands.count, 0);
}
END_TEST

START_TEST(the_last_text_wins) {
    ck_assert_int_eq(PARSE("-na", "-n", "b", "--name="), STATUS_OK);
    ck_assert_str_eq(options.name, "");
}
END_TEST

START_TEST(options_and_operands_mix) {
    ck_assert_int_eq(PARSE("one", "--quiet", "-", "two", "--", "--name", "--", "-q"), STATUS_OK);
    ck_assert_uint_eq(arguments.operands.count, 6);
    ck_assert_str_eq(arguments.operands.items[0], "one");
    ck_assert_str_eq(arguments.operands.items[1], "-");
    ck_assert_str_eq(arguments.operands.items[3], "--name");
    ck_assert_str_eq(arguments.operands.items[4], "--");
    ck_assert_str_eq(arguments.operands.items[5], "-q");
    ck_assert_ptr_null(options.name);
}
END_TEST

START_TEST(letters_stand_in_one_word) {
    ck_assert_int_eq(PARSE("-qv"), STATUS_OK);
    ck_assert(options.quiet && options.verbose);
    options = (struct options){0};
    ck_assert_int_eq(PARSE("-vn", "a", "one"), STATUS_OK);
    ck_assert(options.verbose && !options.quiet);
    ck_assert_str_eq(options.name, "a");
    ck_assert_uint_eq(arguments.operands.count, 1);
    ck_assert_int_eq(PARSE("-qnv"), STATUS_OK); // what follows is the value
    ck_assert_str_eq(options.name, "v");
    ck_assert_int_eq(PARSE("-qh"), STATUS_OK);
    ck_assert(arguments.help_wanted);
    ck_assert_int_eq(PARSE("-qx"), STATUS_USAGE);
    ck_assert_str_eq(error.message, "unknown option -x in -qx; long options begin with two dashes");
    ck_assert_int_eq(PARSE("-vq=1"), STATUS_USAGE);
    ck_assert_str_eq(error.message, "--quiet takes no value, but \"1\" was given");
}
END_TEST

START_TEST(an_assignment_has_a_key_and_an_equals) {
    ck_assert_int_eq(PARSE("--set", "a.b\\.c.d=", "--set=a=b=c"), STATUS_OK);
    ck_assert_uint_eq(options.sets.count, 2);
    options = (struct options){0};
    ck_assert_int_eq(PARSE("--set", "a=1", "--set", "hunter2"), STATUS_USAGE);
    ck_assert_str_eq(error.message, "--set number 2 has no '='; write --set K=V");
    static char *const wrong[] = {"=1", ".a=1", "a.=1", "a..b=1", "a.\\..b.=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options = (struct options){0};
        ck_assert_int_eq(PARSE("--set", wrong[i]), STATUS_USAGE);
        ck_assert_str_eq(error.message, "--set number 1 has no whole key; write --set K=V");
    }
}
END_TEST

START_TEST(a_value_may_look_like_an_option) {
    ck_assert_int_eq(PARSE("--name", "--quiet"), STATUS_OK);
    ck_assert_str_eq(options.name, "--quiet");
    ck_assert(!options.quiet);
}
END_TEST

START_TEST(an_unknown_option_names_the_nearest) {
    ck_assert_int_eq(PARSE("--ouptut", "text"), STATUS_USAGE);
    ck_assert_str_eq(error.message, "unknown option --ouptut; did you mean --output?");
    ck_assert_int_eq(PARSE("--zzzzzzzzzzzzzz"), STATUS_USAGE);
    ck_assert_str_eq(error.message, "unknown option --zzzzzzzzzzzzzz");
    ck_assert_int_eq(PARSE("-x"), STATUS_USAGE);
    ck_assert_ptr_nonnull(strstr(error.message, "-x"));
    // Names are not abbreviated.
    ck_assert_int_eq(PARSE("--qui"), STATUS_USAGE);
}
END_TEST

START_TEST(a_wrong_choice_names_all_of_them) {
    ck_assert_int_eq(PARSE("--output", "sumary"), STATUS_USAGE);
    ck_assert_str_eq(error.message,
                     "--output takes text, summary or verdicts, not \"sumary\"; did "
                     "you mean summary?");
    ck_assert_int_eq(PARSE("--output="), STATUS_USAGE);
}
END_TEST

START_TEST(a_missing_or_needless_value_is_refused) {
    ck_assert_int_eq(PARSE("--name"), STATUS_USAGE);
    ck_assert_str_eq(error.message, "--name needs a value: write --name NAME");
    ck_assert_int_eq(PARSE("-n"), STATUS_USAGE);
    ck_assert_int_eq(PARSE("--quiet=yes"), STATUS_USAGE);
    ck_assert_str_eq(error.message, "--quiet takes no value, but \"yes\" was given");
    ck_assert_int_eq(PARSE("--output"), STATUS_USAGE);
    ck_assert_str_eq(error.message, "--output needs a value: write --output text|summary|verdicts");
}
END_TEST

START_TEST(a_required_option_is_missed_unless_help_is_wanted) {
    struct argument required[] = {rows[2]};
    required[0].required = true;
    char *nothing[] = {"word", NULL};
    ck_assert_int_eq(arguments_parse(&arguments, &options, required, 1, 1, nothing, &arena, &error),
                     STATUS_USAGE);
    ck_assert_str_eq(error.message, "--name is missing: write --name NAME");
    char *help[] = {"-h", NULL};
    ck_assert_int_eq(arguments_parse(&arguments, &options, required, 1, 1, help, &arena, &error),
                     STATUS_OK);
    ck_assert(arguments.help_wanted);
}
END_TEST

START_TEST(help_after_the_options_end_is_an_operand) {
    ck_assert_int_eq(PARSE("--", "--help"), STATUS_OK);
    ck_assert(!arguments.help_wanted);
    ck_assert_uint_eq(arguments.operands.count, 1);
}
END_TEST

START_TEST(help_is_wrapped_and_complete) {
    struct buffer out;
    buffer_init(&out, 16384);
    arguments_print(&out, rows, ROW_COUNT);
    buffer_append_char(&out, '\0');
    for (size_t i = 0; i < ROW_COUNT; i++)
        ck_assert_ptr_nonnull(strstr(out.data, rows[i].name));
    ck_assert_ptr_nonnull(strstr(out.data, "  -q, --quiet               say nothing\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "      --output text|summary|verdicts\n"));
    for (const char *line = out.data; *line != '\0';) {
        const char *end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        ck_assert_int_le(end - line, 80);
        ck_assert(end == line || end[-1] != ' ');
        line = end + 1;
    }
    buffer_release(&out);
}
END_TEST

START_TEST(usage_shows_what_must_be_given) {
    struct argument some[] = {rows[0], rows[2], rows[3]};
    some[1].required = some[2].required = true;
    struct buffer out;
    buffer_init(&out, 1024);
    arguments_print_required(&out, some, 3);
    ck_assert(slice_equal(buffer_slice(&out), SLICE(" --name NAME --set K=V…")));
    buffer_release(&out);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("arguments");
    TCase *tests = tcase_create("arguments");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, values_come_with_or_without_equals);
    tcase_add_test(tests, the_last_text_wins);
    tcase_add_test(tests, options_and_operands_mix);
    tcase_add_test(tests, letters_stand_in_one_word);
    tcase_add_test(tests, an_assignment_has_a_key_and_an_equals);
    tcase_add_test(tests, a_value_may_look_like_an_option);
    tcase_add_test(tests, an_unknown_option_names_the_nearest);
    tcase_add_test(tests, a_wrong_choice_names_all_of_them);
    tcase_add_test(tests, a_missing_or_needless_value_is_refused);
    tcase_add_test(tests, a_required_option_is_missed_unless_help_is_wanted);
    tcase_add_test(tests, help_after_the_options_end_is_an_operand);
    tcase_add_test(tests, help_is_wrapped_and_complete);
    tcase_add_test(tests, usage_shows_what_must_be_given);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

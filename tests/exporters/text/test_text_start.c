// SPDX-License-Identifier: Apache-2.0
// The text exporter as a component: how it finds out about terminal and locale, and when it writes.
#include "cli/component_list.h"
#include "exporters/report/text/report.h"
#include "tests/exporters/sample_evaluation.h"
#include "tests/exporters/scratch.h"

#include <pty.h>
#include <sys/ioctl.h>

static char config[256];
static char instance[1024];
static struct sample_evaluation sample;
static struct buffer out;
static int saved_stdout, terminal, terminal_end;

static void *config_field(const char *name) {
    for (size_t i = 0; i < exporter_text.option_count; i++)
        if (strcmp(exporter_text.options[i].name, name) == 0)
            return config + exporter_text.options[i].offset;
    ck_abort_msg("no option %s", name);
    return NULL;
}

enum color { AUTO, ALWAYS, NEVER };

static void start(const char *path, enum color color, int64_t width) {
    ck_assert_uint_le(exporter_text.config_size, sizeof config);
    ck_assert_uint_le(exporter_text.instance_size, sizeof instance);
    component_stop(&exporter_text, instance);
    memset(instance, 0, sizeof instance);
    *(const char **)config_field("path") = path;
    *(int *)config_field("color") = (int)color;
    *(int64_t *)config_field("width") = width;
    *(bool *)config_field("verbose") = true;
    struct component_context context = {.id = "text", .site = "exporter/text"};
    struct error error = {0};
    enum status status = component_start(&exporter_text, instance, config, &context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void setup(void) {
    scratch_make();
    buffer_init(&out, 1 << 20);
    sample_init(&sample, SLICE("j"));
    for (int32_t rank = 0; rank < 2; rank++) {
        uint32_t index = sample_rank(&sample, rank, SLICE("h\xc3\xa9"), 1);
        for (uint64_t i = 0; i < 50; i++)
            sample_add(&sample, index, i * 100000000, (int64_t)(100 + i));
    }
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    struct winsize size = {.ws_row = 24, .ws_col = 120};
    ck_assert_int_eq(openpty(&terminal, &terminal_end, NULL, NULL, &size), 0);
    saved_stdout = dup(STDOUT_FILENO);
}

static void teardown(void) {
    dup2(saved_stdout, STDOUT_FILENO);
    close(saved_stdout);
    close(terminal);
    close(terminal_end);
    component_stop(&exporter_text, instance);
    sample_release(&sample);
    buffer_release(&out);
    intern_release();
    scratch_remove();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char *encode(const struct batch *batch) {
    buffer_reset(&out);
    exporter_text.exporter.encode(instance, batch, &out);
    ck_assert(buffer_finish(&out));
    buffer_append_char(&out, '\0');
    return out.data;
}

static bool has_color(void) {
    struct batch batch = sample_batch(&sample);
    return strchr(encode(&batch), '\x1b') != NULL;
}

// Columns of the first row of the drawing.
static size_t row_columns(void) {
    struct batch batch = sample_batch(&sample);
    const char *row = strstr(encode(&batch), "  rank 0  ");
    size_t columns = 0;
    for (; *row != '\n'; row++)
        columns += ((unsigned char)*row & 0xc0) != 0x80;
    return columns;
}

// Live, the last batch holds only what changed with it: what was found before is in the report.
START_TEST(found_before_the_end) {
    start("-", NEVER, 80);
    struct verdict lost = {.id = "gpu_fault:0123456789abcdef",
                           .pattern = "gpu_fault",
                           .kind = "gpu_lost",
                           .severity = SEVERITY_CRITICAL,
                           .confidence = 90,
                           .headline = SLICE("GPU 3b was lost"),
                           .remediation = SLICE("Drain it."),
                           .action = "drain_node"};
    struct batch found = sample_batch(&sample), last = found;
    found.last = false;
    found.verdicts.items = &lost;
    found.verdicts.count = 1;
    ck_assert_str_eq(encode(&found), "");
    ck_assert_ptr_nonnull(strstr(encode(&last), "GPU 3b was lost"));
}
END_TEST

START_TEST(colors) {
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    dup2(pipes[1], STDOUT_FILENO);
    start("-", AUTO, 0);
    bool piped = has_color();
    start("-", ALWAYS, 0);
    bool always = has_color();
    dup2(terminal_end, STDOUT_FILENO);
    start("-", AUTO, 0);
    bool on_terminal = has_color();
    start("-", NEVER, 0);
    bool never = has_color();
    setenv("NO_COLOR", "", 1);
    start("-", AUTO, 0);
    bool no_color_empty = has_color();
    setenv("NO_COLOR", "1", 1);
    start("-", AUTO, 0);
    bool no_color = has_color();
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    start("-", AUTO, 0);
    bool dumb = has_color();
    setenv("TERM", "xterm", 1);
    start(scratch_path("report.txt"), AUTO, 0);
    bool file = has_color();
    dup2(saved_stdout, STDOUT_FILENO);
    close(pipes[0]);
    close(pipes[1]);
    ck_assert(!piped);
    ck_assert(always);
    ck_assert(on_terminal);
    ck_assert(!never);
    ck_assert(no_color_empty);
    ck_assert(!no_color);
    ck_assert(!dumb);
    ck_assert(!file);
}
END_TEST

START_TEST(widths) {
    start(scratch_path("report.txt"), NEVER, 0);
    size_t in_file = row_columns();
    start("-", NEVER, 60);
    size_t given = row_columns();
    dup2(terminal_end, STDOUT_FILENO);
    start("-", NEVER, 0);
    size_t on_terminal = row_columns();
    struct winsize tiny = {.ws_row = 24, .ws_col = 3};
    ioctl(terminal_end, TIOCSWINSZ, &tiny);
    start("-", NEVER, 0);
    size_t on_tiny = row_columns();
    struct winsize unknown = {0};
    ioctl(terminal_end, TIOCSWINSZ, &unknown);
    start("-", NEVER, 0);
    size_t on_unknown = row_columns();
    dup2(saved_stdout, STDOUT_FILENO);
    ck_assert_uint_eq(on_terminal - in_file, 40);
    ck_assert_uint_eq(in_file - given, 20);
    ck_assert_uint_eq(in_file - on_tiny, 40);
    ck_assert_uint_eq(on_unknown, in_file);
}
END_TEST

struct locale_case {
    const char *lc_all, *lc_ctype, *lang;
    bool utf8;
};
static const struct locale_case locale_cases[] = {
    {"C.UTF-8", "C", "C", true},    {"en_GB.utf8", NULL, NULL, true}, {"C", "C.UTF-8", "C", false},
    {"", "de_DE.UTF-8", "C", true}, {NULL, NULL, "C.UTF-8", true},    {NULL, NULL, "POSIX", false},
    {NULL, NULL, NULL, false},      {NULL, "", "ja_JP.eucJP", false},
};

static void environment_set(const char *name, const char *value) {
    if (value == NULL)
        unsetenv(name);
    else
        setenv(name, value, 1);
}

START_TEST(locales) {
    environment_set("LC_ALL", locale_cases[_i].lc_all);
    environment_set("LC_CTYPE", locale_cases[_i].lc_ctype);
    environment_set("LANG", locale_cases[_i].lang);
    start("-", NEVER, 80);
    struct batch batch = sample_batch(&sample);
    const char *text = encode(&batch);
    bool utf8 = false;
    for (const char *at = text; *at != '\0'; at++)
        utf8 |= (unsigned char)*at >= 0x80;
    ck_assert_int_eq(utf8, locale_cases[_i].utf8);
}
END_TEST

START_TEST(only_at_the_end) {
    start("-", NEVER, 80);
    struct batch batch = sample_batch(&sample);
    batch.last = false;
    ck_assert_str_eq(encode(&batch), "");
    batch.last = true;
    batch.evaluate = false;
    ck_assert_str_eq(encode(&batch), "");
}
END_TEST

START_TEST(report_in_a_file) {
    start(scratch_path("report.txt"), NEVER, 80);
    struct batch batch = sample_batch(&sample);
    buffer_reset(&out);
    exporter_text.exporter.encode(instance, &batch, &out);
    struct request request = {.bytes = buffer_slice(&out), .complete = true, .last = true};
    struct send_outcome outcome = {0};
    struct error error;
    ck_assert_int_eq(exporter_text.exporter.send(instance, &request, &outcome, &error), STATUS_OK);
    struct text_style style = {.utf8 = true, .width = 80, .verbose = true};
    struct seen seen = {0};
    buffer_reset(&out);
    text_report_append(&batch, &style, &seen, &out);
    buffer_append_char(&out, '\0');
    ck_assert_pstr_eq(scratch_read("report.txt"), out.data);
}
END_TEST

START_TEST(narrow_widths_are_refused) {
    struct arena arena;
    arena_init(&arena, 4096);
    struct problem_list problems;
    problem_list_init(&problems, &arena);
    static const int64_t given[] = {0, 1, 39, 40, 400};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        problems.count = 0;
        *(int64_t *)config_field("width") = given[i];
        exporter_text.validate(config, &problems);
        ck_assert_uint_eq(problems.count, given[i] > 0 && given[i] < 40);
    }
    arena_release(&arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("text_start");
    TCase *cases = tcase_create("text_start");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, found_before_the_end);
    tcase_add_test(cases, colors);
    tcase_add_test(cases, widths);
    tcase_add_loop_test(cases, locales, 0, 8);
    tcase_add_test(cases, only_at_the_end);
    tcase_add_test(cases, report_in_a_file);
    tcase_add_test(cases, narrow_widths_are_refused);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

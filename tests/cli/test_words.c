// SPDX-License-Identifier: Apache-2.0
// What is said in words: figures, progress, the closing words of analyze, the default
// configuration.
#include "base/memory.h"
#include "cli/closing_words.h"
#include "cli/default_config.h"
#include "cli/figures.h"
#include "cli/progress.h"

#include <check.h>
#include <stdio.h>

static struct buffer out;

static void setup(void) {
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    buffer_release(&out);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// What was appended since the last call.
static const char *taken(void) {
    static char text[8192];
    ck_assert(!out.failed);
    ck_assert_uint_lt(out.size, sizeof text);
    memcpy(text, out.data == NULL ? "" : out.data, out.size);
    text[out.size] = '\0';
    buffer_reset(&out);
    return text;
}

START_TEST(sizes) {
    figures_append_bytes(&out, 1153434);
    ck_assert_str_eq(taken(), "1.10 MiB");
    figures_append_bytes(&out, UINT64_MAX);
    ck_assert_str_eq(taken(), "8.00 EiB");
}
END_TEST

START_TEST(counts) {
    figures_append_count(&out, 1, "file");
    figures_append_count(&out, 0, " event");
    ck_assert_str_eq(taken(), "1 file0  events");
}
END_TEST

START_TEST(progress_line) {
    progress_format(&out, 100 << 20, 400 << 20, UINT64_C(2000000000));
    ck_assert_str_eq(taken(), "100.0 MiB of 400.0 MiB (25 %), 50.0 MiB/s, 6 s left");
    progress_format(&out, 100 << 20, 0, UINT64_C(1000000000));
    ck_assert_str_eq(taken(), "100.0 MiB, 100.0 MiB/s");
    progress_format(&out, 0, 0, UINT64_C(3000000000));
    ck_assert_str_eq(taken(), "for 3 s");
    progress_format(&out, 0, 1 << 20, 0);
    ck_assert_str_eq(taken(), "0 B of 1.00 MiB (0 %), 0 B/s");
    // More was read than was thought to be there: a file grew, or it was compressed.
    progress_format(&out, 3072, 1024, UINT64_C(1000000000));
    ck_assert_str_eq(taken(), "3.00 KiB, 3.00 KiB/s");
}
END_TEST

// -- closing words ------------------------------------------------------------------------------

START_TEST(closing_words_of_a_clean_run) {
    struct report_source sources[4] = {{.path = SLICE("a")}};
    struct report report = {
        .sources = sources, .source_count = 4, .accepted = 812, .bytes = 1153434};
    closing_words_append(&out, &report);
    ck_assert_str_eq(taken(), "read 4 files, 812 events, 1.10 MiB\n");
    ck_assert_int_eq(closing_exit_code(&report, false), 0);
}
END_TEST

START_TEST(closing_words_name_what_was_refused) {
    struct report_source sources[2] = {
        {.path = SLICE("a.jsonl"), .figures = {.bytes = 10}},
        {.path = SLICE("b.txt"), .figures = {.bytes = 7, .unread = true}},
    };
    struct report_refusal refusals[12];
    for (uint64_t i = 0; i < 12; i++)
        refusals[i] = (struct report_refusal){.path = SLICE("a\033.jsonl"),
                                              .position = i + 1,
                                              .fault = {.category = DECODE_WRONG_TYPE,
                                                        .field = "pid",
                                                        .detail = "is a text, not a number"}};
    refusals[0].path = SLICE("-");
    refusals[1].fault = (struct decode_fault){.category = DECODE_BAD_JSON};
    char note[] = "manifest.json: not read";
    char *notes[] = {note};
    struct report report = {.sources = sources,
                            .source_count = 2,
                            .accepted = 1,
                            .bytes = 17,
                            .refused = 20,
                            .refusals = refusals,
                            .refusal_count = 12,
                            .notes = notes,
                            .note_count = 1,
                            .notes_dropped = 3};
    report.refused_by[DECODE_BAD_JSON] = 1;
    report.refused_by[DECODE_WRONG_TYPE] = 19;
    closing_words_append(&out, &report);
    const char *text = taken();
    ck_assert_ptr_nonnull(strstr(text, "refused 20 records: wrong_type 19, bad_json 1\n"));
    ck_assert_ptr_nonnull(strstr(text,
                                 "  (standard input):1: pid: is a text, not a number\n"
                                 "  a\\x1b.jsonl:2: bad_json\n"
                                 "  a\\x1b.jsonl:3: pid: is a text, not a number\n"));
    ck_assert_ptr_nonnull(strstr(text, ":10: pid: is a text, not a number\n  … and 10 more\n"));
    ck_assert_ptr_nonnull(strstr(text, "read 1 file, 1 event, 10 B; left out 1 file\n"));
    ck_assert_ptr_nonnull(strstr(text, "manifest.json: not read\n  … and 3 more\n"));
    ck_assert_ptr_null(strchr(text, 0x1b));
}
END_TEST

START_TEST(exit_code_says_what_was_read) {
    struct report_source source = {.path = SLICE("a")};
    struct report report = {.sources = &source};
    ck_assert_int_eq(closing_exit_code(&report, false), 66);
    report.source_count = 1;
    ck_assert_int_eq(closing_exit_code(&report, false), 0); // an empty file
    report.refused = 1;
    ck_assert_int_eq(closing_exit_code(&report, false), 65);
    report.accepted = 1;
    ck_assert_int_eq(closing_exit_code(&report, false), 0);
    // Something was read, and something that was named is not there.
    report.missing_count = 1;
    ck_assert_int_eq(closing_exit_code(&report, false), 66);
    ck_assert_int_eq(closing_exit_code(&report, true), 0);
    report.accepted = 0;
    ck_assert_int_eq(closing_exit_code(&report, true), 65);
}
END_TEST

START_TEST(exit_code_says_what_could_not_be_read) {
    struct report_source sources[2] = {
        {.path = SLICE("/nowhere/at/all"), .figures = {.unread = true}},
        {.path = SLICE("a.txt"), .figures = {.unread = true, .bytes = 9}},
    };
    struct report report = {.sources = sources, .source_count = 1};
    ck_assert_int_eq(closing_exit_code(&report, false), 66);
    report.source_count = 2;
    ck_assert_int_eq(closing_exit_code(&report, false), 65);
    // One that is empty is enough to have read something.
    sources[1] = (struct report_source){.path = SLICE("empty")};
    ck_assert_int_eq(closing_exit_code(&report, false), 0);
}
END_TEST

// A log that nothing is told of was read all the same; what is beside it changes nothing.
START_TEST(exit_code_of_text_that_says_nothing) {
    struct report_source sources[2] = {
        {.path = SLICE("job.log"), .figures = {.bytes = 90, .other = 3, .format = "log"}},
        {.path = SLICE("b"), .figures = {.unread = true, .bytes = 9}},
    };
    struct report report = {.sources = sources, .source_count = 1};
    ck_assert_int_eq(closing_exit_code(&report, false), 0);
    sources[0].figures.format = "kernel_log";
    ck_assert_int_eq(closing_exit_code(&report, false), 0);
    report.source_count = 2;
    ck_assert_int_eq(closing_exit_code(&report, false), 0);
    sources[1].figures = (struct source_figures){0};
    ck_assert_int_eq(closing_exit_code(&report, false), 0);
    // A few records of it that were refused do not make it another thing, most do.
    report.refused = sources[0].figures.refused = 2;
    ck_assert_int_eq(closing_exit_code(&report, false), 0);
    report.refused = sources[0].figures.refused = 3;
    ck_assert_int_eq(closing_exit_code(&report, false), 65);
    // An empty file beside one that nobody understands does not make that right.
    sources[0].figures = (struct source_figures){.unread = true, .bytes = 9};
    report.refused = 0;
    ck_assert_int_eq(closing_exit_code(&report, false), 65);
}
END_TEST

START_TEST(logs_that_say_nothing_are_one_line) {
    struct report_source sources[5] = {
        {.path = SLICE("a"), .figures = {.accepted = 1, .other = 2}}};
    struct report report = {.sources = sources, .source_count = 2, .accepted = 1, .bytes = 7};
    static const char *const names[] = {"", "b.log", "c.log", "d.log", "e.log"};
    for (int i = 1; i < 5; i++)
        sources[i] = (struct report_source){.path = slice_of(names[i]),
                                            .figures = {.other = 1, .format = "log"}};
    closing_words_append(&out, &report);
    ck_assert_str_eq(taken(),
                     "read 2 files, 1 event, 7 B\n3 lines are of no interest\n"
                     "b.log: read as a log, and its only line is of no interest; if it is "
                     "something else, name that with --format\n");
    report.source_count = 5;
    sources[0].figures.other = 0; // then one line says it all
    closing_words_append(&out, &report);
    ck_assert_str_eq(taken(),
                     "read 5 files, 1 event, 7 B\n"
                     "4 files (b.log, c.log, d.log, …) read as logs, and none of their 4 lines "
                     "is of interest; if they are something else, name that with "
                     "--format\n");
}
END_TEST

START_TEST(notes_with_one_reason_are_one_line) {
    char *notes[] = {"a: not read: no rights",     "b: it was cut",
                     "c: not read: no rights",     "d: not read: unknown",
                     "e\x1b: not read: no rights", "f: not read: no rights"};
    struct report_source source = {.path = SLICE("a"), .figures = {.accepted = 1}};
    struct report report = {
        .sources = &source, .source_count = 1, .accepted = 1, .notes = notes, .note_count = 6};
    closing_words_append(&out, &report);
    ck_assert_str_eq(taken(),
                     "read 1 file, 1 event, 0 B\n"
                     "a, c, e\\x1b, … (4 files): not read: no rights\n"
                     "b: it was cut\n"
                     "d: not read: unknown\n");
}
END_TEST

// -- default configuration ----------------------------------------------------------------------

static const char *quoted(struct slice text) {
    ck_assert(yaml_append_quoted(&out, text));
    return taken();
}

START_TEST(paths_are_quoted_for_yaml) {
    ck_assert_str_eq(quoted(SLICE("/a b: #c")), "\"/a b: #c\"");
    ck_assert_str_eq(quoted(SLICE("q\"\\${env:X}")), "\"q\\\"\\\\$${env:X}\"");
    ck_assert_str_eq(quoted(SLICE("a\tb\nc\x7f")), "\"a\\u0009b\\u000ac\\u007f\"");
    ck_assert_str_eq(quoted(SLICE("\u00e9\u2028\ufeff")), "\"\u00e9\\u2028\\ufeff\"");
    ck_assert(!yaml_append_quoted(&out, SLICE("a\xff")));
    ck_assert(!yaml_append_quoted(&out, SLICE("\xed\xa0\x80"))); // a surrogate
}
END_TEST

START_TEST(default_config_lists_the_paths) {
    struct error error = {0};
    const char *const paths[] = {"/x/$1", "*.jsonl"}, *const bytes_only[] = {"/x/\xff"};
    struct default_config config = {.output = ANALYZE_SUMMARY, .paths = {paths, 2}};
    ck_assert_int_eq(default_config_write(&out, &config, &error), STATUS_OK);
    const char *text = taken();
    ck_assert_ptr_nonnull(
        strstr(text, "    include:\n      - \"/x/$$1\"\n      - \"*.jsonl\"\n    start_at:"));
    ck_assert_ptr_nonnull(strstr(text, "content: summary\n"));
    ck_assert_ptr_nonnull(strstr(text, "exporters: [json]\n"));
    ck_assert_ptr_null(strstr(text, "forms:"));
    config = (struct default_config){.paths = {bytes_only, 1}};
    ck_assert_int_eq(default_config_write(&out, &config, &error), STATUS_BAD_DATA);
    ck_assert_ptr_nonnull(strstr(error.message, "/x/\\xff"));
    buffer_reset(&out);
    config = (struct default_config){.html = "$a.html", .paths = {paths, 2}, .forms = {paths, 1}};
    ck_assert_int_eq(default_config_write(&out, &config, &error), STATUS_OK);
    text = taken();
    ck_assert_ptr_nonnull(strstr(text, "  html:\n    path: \"$$a.html\"\n"));
    ck_assert_ptr_nonnull(strstr(text, "exporters: [text, html]\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nforms:\n  - \"/x/$$1\"\n"));
    config = (struct default_config){.html = "\xff.html", .paths = {paths, 2}};
    ck_assert_int_eq(default_config_write(&out, &config, &error), STATUS_BAD_DATA);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("words");
    TCase *tests = tcase_create("words");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, sizes);
    tcase_add_test(tests, counts);
    tcase_add_test(tests, progress_line);
    tcase_add_test(tests, closing_words_of_a_clean_run);
    tcase_add_test(tests, closing_words_name_what_was_refused);
    tcase_add_test(tests, exit_code_says_what_was_read);
    tcase_add_test(tests, exit_code_says_what_could_not_be_read);
    tcase_add_test(tests, exit_code_of_text_that_says_nothing);
    tcase_add_test(tests, logs_that_say_nothing_are_one_line);
    tcase_add_test(tests, notes_with_one_reason_are_one_line);
    tcase_add_test(tests, paths_are_quoted_for_yaml);
    tcase_add_test(tests, default_config_lists_the_paths);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

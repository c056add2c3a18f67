// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/verdict_diff.h"

#include "base/memory.h"

#include <check.h>

static struct verdict_diff diff;
static struct buffer out;
static struct error error;

static void setup(void) {
    buffer_init(&out, 1 << 20);
    error = (struct error){0};
}

static void teardown(void) {
    buffer_release(&out);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// What is said of the difference.
static const char *said(const char *expected, const char *got) {
    buffer_reset(&out);
    ck_assert_int_eq(
        verdict_diff_compare(&diff, &out, slice_of(expected), "want.jsonl", slice_of(got), &error),
        STATUS_OK);
    buffer_append_char(&out, '\0');
    ck_assert(!out.failed);
    return out.data;
}

#define A "{\"id\":\"m:1\",\"state\":\"open\",\"severity\":\"error\",\"headline\":\"rank 1\"}\n"
#define B "{\"id\":\"m:2\",\"state\":\"open\",\"severity\":\"info\",\"headline\":\"rank 2\"}\n"

START_TEST(equal_bytes_say_nothing) {
    ck_assert_str_eq(said(A B, A B), "");
    ck_assert(diff.equal);
    ck_assert_uint_eq(diff.got_count, 2);
    ck_assert_str_eq(said("", ""), "");
    ck_assert(diff.equal);
    ck_assert_uint_eq(diff.expected_count, 0);
}
END_TEST

START_TEST(a_field_that_differs_is_shown) {
    const char *got =
        "{\"id\":\"m:1\",\"state\":\"open\",\"severity\":\"warning\","
        "\"headline\":\"rank 1\"}\n";
    ck_assert_str_eq(said(A, got),
                     "differs: m:1\n  - severity: \"error\"\n"
                     "  + severity: \"warning\"\n");
    ck_assert(!diff.equal);
    ck_assert_uint_eq(diff.differing, 1);
    ck_assert_uint_eq(diff.missing + diff.unexpected, 0);
}
END_TEST

START_TEST(lists_and_objects_are_shown_item_by_item) {
    const char *expected =
        "{\"id\":\"a\",\"entities\":[{\"name\":\"0\"},{\"name\":\"1\"}],"
        "\"attributes\":{\"x\":\"1\",\"y\":\"2\"},\"old\":1}\n";
    const char *got =
        "{\"id\":\"a\",\"entities\":[{\"name\":\"0\"},{\"name\":\"2\"},{\"n\":3}],"
        "\"attributes\":{\"x\":\"1\",\"y\":\"3\",\"z\":\"4\"},\"new\":[]}\n";
    ck_assert_str_eq(said(expected, got),
                     "differs: a\n"
                     "  - entities[1]: {\"name\":\"1\"}\n"
                     "  + entities[1]: {\"name\":\"2\"}\n"
                     "  + entities[2]: {\"n\":3}\n"
                     "  - attributes.y: \"2\"\n"
                     "  + attributes.y: \"3\"\n"
                     "  + attributes.z: \"4\"\n"
                     "  - old: 1\n"
                     "  + new: []\n");
}
END_TEST

START_TEST(missing_and_unexpected_verdicts_are_named) {
    ck_assert_str_eq(said(A, B),
                     "missing: m:1\n  - severity: \"error\"\n  - headline: \"rank 1\"\n"
                     "unexpected: m:2\n  + severity: \"info\"\n"
                     "  + headline: \"rank 2\"\n");
    ck_assert_uint_eq(diff.missing, 1);
    ck_assert_uint_eq(diff.unexpected, 1);
    ck_assert_uint_eq(diff.differing, 0);
}
END_TEST

START_TEST(lines_of_one_id_pair_by_their_order) {
    const char *expected =
        "{\"id\":\"a\",\"state\":\"open\"}\n{\"id\":\"a\",\"state\":\"updated\"}\n";
    const char *got = "{\"id\":\"a\",\"state\":\"open\"}\n{\"id\":\"a\",\"state\":\"resolved\"}\n";
    ck_assert_str_eq(said(expected, got),
                     "differs: a, line 2 of it (updated)\n"
                     "  - state: \"updated\"\n  + state: \"resolved\"\n");
    said(expected, "{\"id\":\"a\",\"state\":\"open\"}\n");
    ck_assert_uint_eq(diff.missing, 1);
    ck_assert_uint_eq(diff.differing, 0);
}
END_TEST

START_TEST(order_and_spelling_count) {
    ck_assert_ptr_nonnull(strstr(said(A B, B A), "in another order"));
    ck_assert(!diff.equal);
    ck_assert_ptr_nonnull(strstr(said("{\"id\":\"a\",\"x\":1}\n", "{\"x\":1,\"id\":\"a\"}\n"),
                                 "the fields are equal"));
    ck_assert(!diff.equal);
    ck_assert_ptr_nonnull(strstr(said("{\"id\":\"a\"}", "{\"id\":\"a\"}\n"), "other line ends"));
    ck_assert(!diff.equal);
}
END_TEST

START_TEST(text_is_harmless_for_a_terminal) {
    const char *text = said("", "{\"id\":\"a\\u001b[2J\",\"headline\":\"x\\u0007\"}\n");
    ck_assert_ptr_null(strchr(text, 0x1b));
    ck_assert_ptr_null(strchr(text, 0x07));
    ck_assert_ptr_nonnull(strstr(text, "a\\x1b[2J"));
}
END_TEST

START_TEST(what_is_no_verdict_is_refused_with_its_line) {
    struct slice none = SLICE("");
    ck_assert_int_eq(
        verdict_diff_compare(&diff, &out, slice_of(A "nonsense\n"), "want.jsonl", none, &error),
        STATUS_BAD_DATA);
    ck_assert_ptr_nonnull(strstr(error.message, "want.jsonl:2: "));
    ck_assert_int_eq(
        verdict_diff_compare(&diff, &out, slice_of(A "\n[1]\n"), "want.jsonl", none, &error),
        STATUS_BAD_DATA);
    ck_assert_str_eq(error.message, "want.jsonl:3: not a verdict: expected an object with an id");
    ck_assert_int_eq(verdict_diff_compare(&diff, &out, slice_of("{\"id\":7}"), "w", none, &error),
                     STATUS_BAD_DATA);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("verdict_diff");
    TCase *tests = tcase_create("verdict_diff");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, equal_bytes_say_nothing);
    tcase_add_test(tests, a_field_that_differs_is_shown);
    tcase_add_test(tests, lists_and_objects_are_shown_item_by_item);
    tcase_add_test(tests, missing_and_unexpected_verdicts_are_named);
    tcase_add_test(tests, lines_of_one_id_pair_by_their_order);
    tcase_add_test(tests, order_and_spelling_count);
    tcase_add_test(tests, text_is_harmless_for_a_terminal);
    tcase_add_test(tests, what_is_no_verdict_is_refused_with_its_line);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

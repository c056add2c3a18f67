// SPDX-License-Identifier: Apache-2.0
#include "tests/config/yaml/document_fixture.h"
#include "tests/support/temporary.h"

#include <sys/stat.h>
#include <unistd.h>

static char directory[64];

static char path[sizeof directory + 8]; // the one file of a test

static void file_with(const char *bytes, size_t size) {
    snprintf(path, sizeof path, "%s/value", directory);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static struct node *expanded(const char *text, bool no_environment) {
    problem_list_init(&problems, &arena);
    struct node *root = parse(text);
    ck_assert_ptr_nonnull(root);
    document_expand(root, &arena, NULL, NULL, no_environment, &problems);
    return root;
}

static void expands(const char *value, const char *expected) {
    const struct node *root = expanded(arena_format(&arena, "k: {v: \"%s\"}\n", value), false);
    ck_assert_str_eq(problems_text(), "");
    ck_assert_str_eq(document_find(root, "k.v")->text, expected);
    ck_assert_str_eq(document_find(root, "k.v")->written, value);
}

static void expansion_fails(const char *value, const char *expected) {
    const struct node *root = expanded(arena_format(&arena, "k: {v: \"%s\"}\n", value), false);
    ck_assert_str_eq(problems_text(), arena_format(&arena, "c.yaml:1:8: k.v: %s\n", expected));
    ck_assert(document_find(root, "k.v")->unknown);
}

START_TEST(environment) {
    setenv("CULPRIT_TEST_A", "one: [two]", 1);
    setenv("CULPRIT_TEST_EMPTY", "", 1);
    setenv("CULPRIT_TEST_DOLLAR", "${env:HOME}$$", 1);
    unsetenv("CULPRIT_TEST_NONE");
    expands("${env:CULPRIT_TEST_A}", "one: [two]");
    expands("x${env:CULPRIT_TEST_A}y", "xone: [two]y");
    expands("${env:CULPRIT_TEST_EMPTY}", "");
    expands("${env:CULPRIT_TEST_EMPTY:-d}", "d");
    expands("${env:CULPRIT_TEST_NONE:-https://a:1/b}", "https://a:1/b");
    expands("${env:CULPRIT_TEST_NONE:-}", "");
    expands("${env:CULPRIT_TEST_A:-d}", "one: [two]");
    expands("${env:CULPRIT_TEST_DOLLAR}", "${env:HOME}$$");
    expands("$$", "$");
    expands("$${env:X}", "${env:X}");
    expands("a$$b$$$$c", "a$b$$c");
    const struct node *root = expanded("k: ${env:CULPRIT_TEST_A}\nl: [a, \"b\"]\n", false);
    ck_assert(document_find(root, "k")->expanded);
    ck_assert(!document_find(root, "k")->from_file);
    ck_assert(!document_find(root, "l[1]")->expanded);
}
END_TEST

START_TEST(refused) {
    expansion_fails("${env:CULPRIT_TEST_NONE}",
                    "environment variable CULPRIT_TEST_NONE is not set; set it or write "
                    "${env:CULPRIT_TEST_NONE:-default}");
    expansion_fails("$HOME",
                    "'$HOME' is not expanded; write ${env:HOME}, or $$HOME for a dollar sign");
    expansion_fails("${HOME}", "'${HOME}' is not expanded; write ${env:HOME}");
    expansion_fails("5$", "a single dollar sign; write $$ for one");
    expansion_fails("$5", "a single dollar sign; write $$ for one");
    expansion_fails("${env:A", "'${' without its '}'; write $$ for a dollar sign");
    expansion_fails("${env:}",
                    "'${env:}' does not name a variable; write ${env:NAME} or "
                    "${env:NAME:-default}");
    expansion_fails("${env:A-b}",
                    "'${env:A-b}' does not name a variable; write ${env:NAME} or "
                    "${env:NAME:-default}");
    expansion_fails("${env:1A}",
                    "'${env:1A}' does not name a variable; write ${env:NAME} or "
                    "${env:NAME:-default}");
    expansion_fails("${env:A:-${env:B}}",
                    "a reference inside a reference is not expanded; use one");
    expansion_fails("${yaml:x}",
                    "'${' is followed by neither env: nor file:; write $$ for a dollar sign");
    expansion_fails("${}",
                    "'${' is followed by neither env: nor file:; write $$ for a dollar sign");
    expansion_fails("${file:key}",
                    "'${file:key}' needs an absolute path; write ${file:/path/to/it}");
    expansion_fails("${file:}", "'${file:}' needs an absolute path; write ${file:/path/to/it}");
}
END_TEST

START_TEST(paths_in_messages) {
    expanded("a: [{b: $X}, $Y]\nc: {d: {e: $Z}}\n", false);
    ck_assert_str_eq(
        problems_text(),
        "c.yaml:1:9: a[0].b: '$X' is not expanded; write ${env:X}, or $$X for a dollar sign\n"
        "c.yaml:1:14: a[1]: '$Y' is not expanded; write ${env:Y}, or $$Y for a dollar sign\n"
        "c.yaml:2:12: c.d.e: '$Z' is not expanded; write ${env:Z}, or $$Z for a dollar sign\n");
}
END_TEST

static void file_expands(const char *bytes, size_t size, const char *expected) {
    file_with(bytes, size);
    expands(arena_format(&arena, "${file:%s}", path), expected);
}

START_TEST(files) {
    temporary_path(directory, sizeof directory, "expand");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    file_expands("secret\n", 7, "secret");
    file_expands("secret\r\n", 8, "secret");
    file_expands("secret\n\n", 8, "secret\n");
    file_expands("a: b$c", 6, "a: b$c");
    file_expands("", 0, "");
    file_expands("\n", 1, "");
    file_expands("\xef\xbb\xbfsecret\r\n", 11, "secret");
    file_with("a\0b", 3);
    expansion_fails(arena_format(&arena, "${file:%s}", path),
                    arena_format(&arena, "file '%s' holds a zero byte; it must be text", path));
    char *large = arena_take(&arena, DOCUMENT_FILE_VALUE_MAX + 1);
    memset(large, 'x', DOCUMENT_FILE_VALUE_MAX + 1);
    file_with(large, DOCUMENT_FILE_VALUE_MAX + 1);
    expansion_fails(arena_format(&arena, "${file:%s}", path),
                    arena_format(&arena, "file '%s' is longer than 65536 bytes", path));
    file_with(large, DOCUMENT_FILE_VALUE_MAX);
    const struct node *root = expanded(arena_format(&arena, "k: ${file:%s}\n", path), false);
    ck_assert_uint_eq(strlen(document_find(root, "k")->text), DOCUMENT_FILE_VALUE_MAX);
    ck_assert(document_find(root, "k")->from_file);
    unlink(path);
    expansion_fails(
        arena_format(&arena, "${file:%s}", path),
        arena_format(&arena, "file '%s' cannot be read: No such file or directory", path));
    expansion_fails(arena_format(&arena, "${file:%s}", directory),
                    arena_format(&arena, "'%s' is not a regular file", directory));
    // A pipe without a writer must not hold the start back.
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expansion_fails(arena_format(&arena, "${file:%s}", path),
                    arena_format(&arena, "'%s' is not a regular file", path));
    unlink(path);
    rmdir(directory);
}
END_TEST

START_TEST(nothing_looked_up) {
    const struct node *root = expanded(
        "a: ${env:CULPRIT_TEST_NONE}\nb: ${file:/no/such}\nc: ${env:HOME:-d}\nd: $$x\n", true);
    ck_assert_str_eq(problems_text(), "");
    ck_assert_str_eq(shown(root), "{a:${env:CULPRIT_TEST_NONE},b:${file:/no/such},c:d,d:$x}");
    ck_assert(document_find(root, "a")->unknown);
    ck_assert(document_find(root, "b")->unknown);
    ck_assert(!document_find(root, "c")->unknown);
    expanded("a: $X\n", true);
    ck_assert_uint_eq(problems.count, 1);
}
END_TEST

// Below the named keys nothing is looked up; what an alias shares with another part is.
START_TEST(unused_parts_are_not_looked_up) {
    static const char *const UNUSED[] = {"receivers", "exporters", NULL};
    problem_list_init(&problems, &arena);
    struct node *root = parse(
        "receivers: {r: {a: \"${env:CULPRIT_TEST_NONE}\", b: &b "
        "\"${env:CULPRIT_TEST_A}\", c: \"${env:CULPRIT_TEST_NONE:-d}\"}}\n"
        "processors: {receivers: \"${env:CULPRIT_TEST_A}\", b: *b, "
        "e: \"${env:CULPRIT_TEST_NONE}\"}\n"
        "exporters: \"${file:/nowhere/at/all}\"\n");
    setenv("CULPRIT_TEST_A", "one", 1);
    document_expand(root, &arena, UNUSED, NULL, false, &problems);
    ck_assert(document_find(root, "receivers.r.a")->unknown);
    ck_assert_str_eq(document_find(root, "receivers.r.b")->text, "one");
    ck_assert_str_eq(document_find(root, "receivers.r.c")->text, "d");
    ck_assert_str_eq(document_find(root, "processors.receivers")->text, "one");
    ck_assert_str_eq(document_find(root, "processors.b")->text, "one");
    ck_assert(document_find(root, "exporters")->unknown);
    ck_assert_uint_eq(problems.count, 1);
    ck_assert_str_eq(problems.items[0].key, "processors.e");
    unsetenv("CULPRIT_TEST_A");
}
END_TEST

// Below a literal key a dollar sign is one, also where nothing is looked up.
START_TEST(literal_parts_stay_as_they_are) {
    static const char *const LITERAL[] = {"tests", NULL}, *const UNUSED[] = {"exporters", NULL};
    problem_list_init(&problems, &arena);
    struct node *root = parse(
        "tests: [{text: \"$ ${x} $$ ${env:CULPRIT_TEST_NONE}\"}]\n"
        "processors: {tests: $$}\nexporters: $$\n");
    document_expand(root, &arena, UNUSED, LITERAL, false, &problems);
    ck_assert_str_eq(document_find(root, "tests[0].text")->text,
                     "$ ${x} $$ ${env:CULPRIT_TEST_NONE}");
    ck_assert(!document_find(root, "tests[0].text")->expanded);
    ck_assert_str_eq(document_find(root, "processors.tests")->text, "$");
    ck_assert_str_eq(document_find(root, "exporters")->text, "$");
    ck_assert_uint_eq(problems.count, 0);
}
END_TEST

// Shared by an alias, a text is filled in once, not twice.
START_TEST(aliased_texts) {
    const struct node *root = expanded("a: &x $$$$\nb: *x\nc: *x\n", false);
    ck_assert_str_eq(shown(root), "{a:$$,b:$$,c:$$}");
}
END_TEST

START_TEST(bounded_together) {
    char *value = arena_take(&arena, 100001);
    memset(value, 'v', 100000);
    value[100000] = '\0';
    setenv("CULPRIT_TEST_LARGE", value, 1);
    struct buffer text;
    buffer_init(&text, 1 << 20);
    for (int i = 0; i < 100; i++)
        buffer_append_format(&text, "k%d: ${env:CULPRIT_TEST_LARGE}\n", i);
    buffer_append_char(&text, '\0');
    expanded(text.data, false);
    ck_assert_uint_gt(problems.count, 0);
    ck_assert_str_eq(problems.items[0].text, "all expanded values together exceed 8388608 bytes");
    unsetenv("CULPRIT_TEST_LARGE");
    buffer_release(&text);
}
END_TEST

static void add_tests(TCase *cases) {
    tcase_add_test(cases, environment);
    tcase_add_test(cases, refused);
    tcase_add_test(cases, paths_in_messages);
    tcase_add_test(cases, files);
    tcase_add_test(cases, nothing_looked_up);
    tcase_add_test(cases, unused_parts_are_not_looked_up);
    tcase_add_test(cases, literal_parts_stay_as_they_are);
    tcase_add_test(cases, aliased_texts);
    tcase_add_test(cases, bounded_together);
}

int main(void) {
    return run_suite("document_expand", add_tests);
}

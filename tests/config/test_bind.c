// SPDX-License-Identifier: Apache-2.0
#include "config/bind.h"

#include "tests/config/yaml/document_fixture.h"

struct rotation {
    struct byte_size max_size;
    int64_t max_backups;
};

struct login {
    const char *user;
    struct secret password;
};

struct config {
    struct text_list include;
    struct text_list exclude;
    const char *path;
    const char *name;
    bool fsync;
    int64_t count;
    int64_t any;
    double ratio;
    struct duration wait;
    struct duration retention;
    struct byte_size line;
    int mode;
    struct secret key;
    struct rotation rotation;
    struct login login;
};

static const char *const MODES[] = {"verdicts", "summary", "timeline", NULL};

static const struct option ROTATION[] = {
    {.name = "max_size",
     .type = OPTION_SIZE,
     .offset = offsetof(struct rotation, max_size),
     .default_value = "100MiB",
     .min = 1024,
     .max = 1 << 30},
    {.name = "max_backups",
     .type = OPTION_INT,
     .offset = offsetof(struct rotation, max_backups),
     .default_value = "100",
     .max = 1000},
};

static const struct option LOGIN[] = {
    {.name = "user",
     .type = OPTION_TEXT,
     .offset = offsetof(struct login, user),
     .required = true,
     .help = "who writes"},
    {.name = "password", .type = OPTION_SECRET, .offset = offsetof(struct login, password)},
};

#define ROW(field, kind, ...)                                                                      \
    { .name = #field, .type = kind, .offset = offsetof(struct config, field), __VA_ARGS__ }

static const struct option ROWS[] = {
    ROW(include, OPTION_TEXT_LIST, .required = true, .help = "what to read"),
    ROW(exclude, OPTION_TEXT_LIST, .default_value = "[\"*.gz\", b]"),
    ROW(path, OPTION_TEXT, .default_value = "-"),
    ROW(name, OPTION_TEXT, ),
    ROW(fsync, OPTION_BOOL, .default_value = "true"),
    ROW(count, OPTION_INT, .default_value = "5", .min = 1, .max = 10),
    ROW(any, OPTION_INT, ),
    ROW(ratio, OPTION_RATIO, .default_value = "0.10", .max = 1),
    ROW(wait, OPTION_DURATION, .default_value = "10s", .min = 0.01, .max = 3600),
    ROW(retention, OPTION_DURATION, .default_value = "all", .special = "all"),
    ROW(line, OPTION_SIZE, .default_value = "1MiB", .min = 1024, .max = 1 << 24),
    ROW(mode, OPTION_CHOICE, .default_value = "summary", .choices = MODES),
    ROW(key, OPTION_SECRET, ),
    ROW(rotation, OPTION_GROUP, .rows = ROTATION, .row_count = 2),
    ROW(login, OPTION_GROUP, .rows = LOGIN, .row_count = 2),
};

static struct problem_list warnings;
static struct config config;

static bool bind_node(const struct node *node) {
    struct binder binder = {&arena, &problems, &warnings};
    struct bind_source source = {.node = node, .key = "x.y", .where = {"c.yaml", 1, 1}};
    memset(&config, 0, sizeof config);
    problem_list_init(&warnings, &arena);
    return bind_options(&binder, ROWS, OPTION_COUNT(ROWS), &source, &config);
}

static bool bind(const char *text) {
    problem_list_init(&problems, &arena);
    struct node *root = parse(text);
    document_expand(root, &arena, NULL, NULL, false, &problems);
    return bind_node(root);
}

START_TEST(defaults) {
    ck_assert(bind("include: a\n"));
    ck_assert_str_eq(problems_text(), "");
    ck_assert_uint_eq(config.include.count, 1);
    ck_assert_str_eq(config.include.items[0], "a");
    ck_assert_uint_eq(config.exclude.count, 2);
    ck_assert_str_eq(config.exclude.items[0], "*.gz");
    ck_assert_str_eq(config.exclude.items[1], "b");
    ck_assert_str_eq(config.path, "-");
    ck_assert_ptr_null(config.name);
    ck_assert(config.fsync);
    ck_assert_int_eq(config.count, 5);
    ck_assert_int_eq(config.any, 0);
    ck_assert_double_eq(config.ratio, 0.10);
    ck_assert_int_eq(config.wait.ns, INT64_C(10000000000));
    ck_assert_int_eq(config.retention.ns, DURATION_SPECIAL);
    ck_assert_uint_eq(config.line.bytes, 1 << 20);
    ck_assert_int_eq(config.mode, 1);
    ck_assert_ptr_null(secret_reveal(config.key));
    ck_assert_uint_eq(config.rotation.max_size.bytes, 100 << 20);
    ck_assert_int_eq(config.rotation.max_backups, 100);
    ck_assert_ptr_null(config.login.user);
}
END_TEST

START_TEST(values) {
    setenv("CULPRIT_TEST_COUNT", "7", 1);
    ck_assert(
        bind("include: [a, \"b c\", \"3\"]\nexclude: []\npath: \"true\"\nname: \"\"\nfsync: false\n"
             "count: \"${env:CULPRIT_TEST_COUNT}\"\nany: -9223372036854775808\nratio: 1e-3\n"
             "wait: \"1h\"\nretention: 1m30s\nline: 64KiB\nmode: timeline\n"
             "key: ${env:CULPRIT_TEST_COUNT}\nrotation:\n"
             "login: {user: me, password: \"${env:CULPRIT_TEST_COUNT}\"}\n"));
    ck_assert_str_eq(problems_text(), "");
    ck_assert_uint_eq(warnings.count, 0);
    ck_assert_uint_eq(config.include.count, 3);
    ck_assert_str_eq(config.include.items[2], "3");
    ck_assert_uint_eq(config.exclude.count, 0);
    ck_assert_str_eq(config.path, "true");
    ck_assert_str_eq(config.name, "");
    ck_assert(!config.fsync);
    ck_assert_int_eq(config.count, 7);
    ck_assert_int_eq(config.any, INT64_MIN);
    ck_assert_double_eq(config.ratio, 0.001);
    ck_assert_int_eq(config.wait.ns, INT64_C(3600000000000));
    ck_assert_int_eq(config.retention.ns, INT64_C(90000000000));
    ck_assert_uint_eq(config.line.bytes, 65536);
    ck_assert_int_eq(config.mode, 2);
    ck_assert_str_eq(secret_reveal(config.key), "7");
    ck_assert_str_eq(config.login.user, "me");
    ck_assert_str_eq(secret_reveal(config.login.password), "7");
}
END_TEST

// One wrong value beside a good `include`; the field then holds its default.
static void wrong(const char *text, const char *expected) {
    ck_assert_msg(!bind(arena_format(&arena, "include: a\n%s\n", text)), "%s was taken", text);
    ck_assert_str_eq(problems_text(), arena_format(&arena, "c.yaml:2:%s\n", expected));
    ck_assert_int_eq(config.count, 5);
    ck_assert_int_eq(config.mode, 1);
    ck_assert_int_eq(config.wait.ns, INT64_C(10000000000));
}

START_TEST(wrong_values) {
    wrong("count: 0", "8: x.y.count: '0' is out of range; it must be between 1 and 10");
    wrong("count: 11", "8: x.y.count: '11' is out of range; it must be between 1 and 10");
    wrong("count: 99999999999999999999",
          "8: x.y.count: '99999999999999999999' is out of range; it must be between 1 and 10");
    wrong("count: 1.5", "8: x.y.count: '1.5' is not a whole number");
    wrong("count: 0x7", "8: x.y.count: '0x7' is not a whole number");
    wrong("count: '7'", "8: x.y.count: '7' is quoted; write the number without quotes");
    wrong("count: [7]", "8: x.y.count: must be a whole number, not a list");
    wrong("count: {}", "8: x.y.count: must be a whole number, not a map");
    wrong("count:", "1: x.y.count: is empty; give it a whole number or remove the key");
    wrong("any: 9223372036854775808",
          "6: x.y.any: '9223372036854775808' is too large; it must be below 2^63");
    wrong("fsync: yes", "8: x.y.fsync: 'yes' is neither true nor false");
    wrong("fsync: \"true\"", "8: x.y.fsync: 'true' is quoted; write the word without quotes");
    wrong("ratio: 1.01", "8: x.y.ratio: '1.01' is out of range; it must be between 0 and 1");
    wrong("ratio: nan", "8: x.y.ratio: 'nan' is not a number");
    wrong("ratio: 0x1p3", "8: x.y.ratio: '0x1p3' is not a number");
    wrong("ratio: 1.2.3", "8: x.y.ratio: '1.2.3' is not a number");
    wrong("ratio: 25%", "8: x.y.ratio: '25%' is not a number; write 0.25 for 25%");
    wrong("wait: 1ms", "7: x.y.wait: '1ms' is out of range; it must be between 10ms and 1h");
    wrong("wait: 5", "7: x.y.wait: '5' has no unit; write 5s or 5ms");
    wrong("wait: all",
          "7: x.y.wait: 'all' is not a valid duration; write it like 300ms, 5s or 1h30m");
    wrong("retention: never",
          "12: x.y.retention: 'never' is not a valid duration; write it like 300ms, 5s "
          "or 1h30m, or all");
    wrong("line: 10MB", "7: x.y.line: '10MB' has a unit that is not used here; use MiB: 10MiB");
    wrong("line: 1GiB", "7: x.y.line: '1GiB' is out of range; it must be between 1KiB and 16MiB");
    wrong("mode: sumary",
          "7: x.y.mode: 'sumary' is not one of them; did you mean 'summary'? It "
          "must be verdicts, summary or timeline");
    wrong("mode: xyz",
          "7: x.y.mode: 'xyz' is not one of them; it must be verdicts, summary or "
          "timeline");
    wrong("path: [a]", "7: x.y.path: must be a text, not a list");
    wrong("path: ~", "1: x.y.path: is empty; give it a text or remove the key");
    wrong("exclude: [a, [b]]", "14: x.y.exclude[1]: is a list; each item must be a text");
    wrong("exclude: [~]", "11: x.y.exclude[0]: is empty; each item must be a text");
    wrong("exclude: {a: 1}", "10: x.y.exclude: must be a list of texts, not a map");
    wrong("rotation: 5", "11: x.y.rotation: must be a map of options, not a text");
    wrong("rotation: {max_backups: -1}",
          "25: x.y.rotation.max_backups: '-1' is out of range; it must be between 0 and 1000");
    wrong("login: {}", "1: x.y.login.user: is required (text): who writes");
    wrong("login:", "1: x.y.login.user: is required (text): who writes");
}
END_TEST

START_TEST(unknown_keys) {
    ck_assert(bind("include: a\nexlude: b\n"));
    ck_assert_str_eq(problems_text(),
                     "c.yaml:2:1: x.y.exlude: unknown key; did you mean "
                     "'exclude'?\n");
    ck_assert(bind("include: a\nrotation: {max_sise: 1KiB}\n"));
    ck_assert_str_eq(problems_text(),
                     "c.yaml:2:12: x.y.rotation.max_sise: unknown key; did you mean 'max_size'? "
                     "Valid keys: max_size, max_backups\n");
    ck_assert(bind("include: a\nmax_size: 1KiB\n"));
    ck_assert_str_eq(problems_text(),
                     "c.yaml:2:1: x.y.max_size: unknown key; did you mean 'rotation.max_size'?\n");
    ck_assert(bind("include: a\nrotation: {zzz: 1}\n"));
    ck_assert_str_eq(problems_text(),
                     "c.yaml:2:12: x.y.rotation.zzz: unknown key; valid keys: "
                     "max_size, max_backups\n");
}
END_TEST

START_TEST(missing_keys) {
    ck_assert(!bind("{}"));
    ck_assert_str_eq(problems_text(),
                     "c.yaml:1:1: x.y.include: is required (list of texts): what to read\n");
    problem_list_init(&problems, &arena);
    ck_assert(!bind_node(NULL));
    ck_assert_uint_eq(problems.count, 1);
    ck_assert_int_eq(config.count, 5);
}
END_TEST

// What stands below a misspelt key is checked, and nothing is missed that it holds.
START_TEST(misspelt_keys) {
    ck_assert(!bind("inclde: [a]\nrotaton: {max_size: 1, max_bakups: 3}\n"));
    ck_assert_str_eq(problems_text(),
                     "c.yaml:1:1: x.y.inclde: unknown key; did you mean 'include'?\n"
                     "c.yaml:2:1: x.y.rotaton: unknown key; did you mean 'rotation'?\n"
                     "c.yaml:2:21: x.y.rotation.max_size: '1' has no unit; write 1B, 1KiB or 1MiB\n"
                     "c.yaml:2:24: x.y.rotation.max_bakups: unknown key; did you mean "
                     "'max_backups'? Valid keys: max_size, max_backups\n");
    // One that stands there as well is not taken twice.
    problem_list_init(&problems, &arena);
    ck_assert(bind("include: [a]\ninclde: {b: c}\n"));
    ck_assert_str_eq(problems_text(),
                     "c.yaml:2:1: x.y.inclde: unknown key; did you mean 'include'?\n");
}
END_TEST

START_TEST(all_at_once) {
    ck_assert(!bind("count: 0\nfsnc: 1\nmode: x\nrotation: {max_size: 1}\n"));
    ck_assert_str_eq(problems_text(),
                     "c.yaml:1:1: x.y.include: is required (list of texts): what to read\n"
                     "c.yaml:1:8: x.y.count: '0' is out of range; it must be between 1 and 10\n"
                     "c.yaml:2:1: x.y.fsnc: unknown key; did you mean 'fsync'?\n"
                     "c.yaml:2:7: x.y.fsync: '1' is neither true nor false\n"
                     "c.yaml:3:7: x.y.mode: 'x' is not one of them; it must be verdicts, summary "
                     "or timeline\n"
                     "c.yaml:4:22: x.y.rotation.max_size: '1' has no unit; write 1B, 1KiB or "
                     "1MiB\n");
}
END_TEST

// What ${…} stands for may be a secret put in the wrong place.
START_TEST(secrets_stay_hidden) {
    setenv("CULPRIT_TEST_SECRET", "hunter2", 1);
    ck_assert(
        !bind("include: a\ncount: ${env:CULPRIT_TEST_SECRET}\nwait: "
              "${env:CULPRIT_TEST_SECRET}\nline: ${env:CULPRIT_TEST_SECRET}\nmode: "
              "${env:CULPRIT_TEST_SECRET}\nfsync: ${env:CULPRIT_TEST_SECRET}\nratio: "
              "${env:CULPRIT_TEST_SECRET}\nkey: [hunter2]\n"));
    const char *text = problems_text();
    ck_assert_uint_eq(problems.count, 7);
    ck_assert_ptr_null(strstr(text, "hunter2"));
    ck_assert_ptr_nonnull(strstr(text,
                                 "c.yaml:2:8: x.y.count: '${env:CULPRIT_TEST_SECRET}' is not a "
                                 "whole number\n"));
    ck_assert_ptr_nonnull(strstr(text, "does not give a duration like 300ms or 1h30m\n"));
    ck_assert(bind("include: a\nkey: hunter2\n"));
    ck_assert_uint_eq(warnings.count, 1);
    ck_assert_str_eq(warnings.items[0].text,
                     "a secret in plain text; prefer ${file:/path/to/it} or ${env:NAME}");
    ck_assert_uint_eq(warnings.items[0].where.line, 2);
}
END_TEST

START_TEST(not_looked_up) {
    struct node *root = parse(
        "include: [\"${env:A}\"]\ncount: ${env:A}\npath: ${env:A}\nmode: "
        "${env:A}\nkey: ${file:/a}\nlogin: {user: \"${env:A}\"}\n");
    document_expand(root, &arena, NULL, NULL, true, &problems);
    ck_assert(bind_node(root));
    ck_assert_str_eq(problems_text(), "");
    ck_assert_uint_eq(warnings.count, 0);
    ck_assert_int_eq(config.count, 5);
    ck_assert_int_eq(config.mode, 1);
    ck_assert_str_eq(config.path, "${env:A}");
    ck_assert_str_eq(config.include.items[0], "${env:A}");
    ck_assert_str_eq(secret_reveal(config.key), "${file:/a}");
}
END_TEST

START_TEST(long_values_are_cut_between_characters) {
    char text[400] = "include: a\ncount: ";
    for (int i = 0; i < 50; i++)
        strcat(text, "\u20ac");
    ck_assert(!bind(text));
    ck_assert_ptr_nonnull(strstr(problems.items[0].text, "\u20ac'... is not a whole number"));
    ck_assert_ptr_null(strstr(problems_text(), "\\x"));
}
END_TEST

static void add_tests(TCase *cases) {
    tcase_add_test(cases, defaults);
    tcase_add_test(cases, values);
    tcase_add_test(cases, wrong_values);
    tcase_add_test(cases, unknown_keys);
    tcase_add_test(cases, missing_keys);
    tcase_add_test(cases, misspelt_keys);
    tcase_add_test(cases, all_at_once);
    tcase_add_test(cases, secrets_stay_hidden);
    tcase_add_test(cases, not_looked_up);
    tcase_add_test(cases, long_values_are_cut_between_characters);
}

int main(void) {
    return run_suite("bind", add_tests);
}

// SPDX-License-Identifier: Apache-2.0
#include "tests/config/yaml/document_fixture.h"

static void merged(const char *base, const char *over, const char *expected) {
    struct node *below = parse(base), *above = parse(over);
    const char *base_before = shown(below), *over_before = shown(above);
    ck_assert_str_eq(shown(document_merge(&arena, below, above)), expected);
    ck_assert_str_eq(shown(below), base_before);
    ck_assert_str_eq(shown(above), over_before);
}

START_TEST(merging) {
    merged("{}", "{a: 1}", "{a:1}");
    merged("{a: 1}", "{}", "{a:1}");
    merged("{a: 1, b: 2}", "{b: 3, c: 4}", "{a:1,b:3,c:4}");
    merged("{a: {b: {c: 1, d: 2}, e: 3}}", "{a: {b: {d: 5}}}", "{a:{b:{c:1,d:5},e:3}}");
    merged("{a: [1, 2, 3]}", "{a: [4]}", "{a:[4]}");
    merged("{a: {b: 1}}", "{a: 2}", "{a:2}");
    merged("{a: 2}", "{a: {b: 1}}", "{a:{b:1}}");
    merged("{a: {b: 1}}", "{a: ~}", "{a:~}");
    merged("{a: &x {k: 1}, b: *x}", "{a: {k: 2}}", "{a:{k:2},b:{k:1}}");
}
END_TEST

START_TEST(joined_maps_keep_their_first_place) {
    struct node *below = parse("exporters:\n  json:\n    path: a\n");
    struct node *above = document_parse(
        &arena, "o.yaml", SLICE("exporters: {json: {fsync: true, path: b}}"), &problems);
    struct node *root = document_merge(&arena, below, above);
    place_is(document_locate(root, "exporters.json"), 2, 3);
    ck_assert_str_eq(document_locate(root, "exporters.json.path").file, "o.yaml");
    ck_assert_uint_eq(document_locate(root, "exporters.json.fsync").column, 27);
    ck_assert_ptr_eq(document_merge(&arena, NULL, above), above);
    ck_assert_ptr_eq(document_merge(&arena, below, NULL), below);
}
END_TEST

static void set_gives(const char *assignment, const char *expected) {
    problem_list_init(&problems, &arena);
    struct node *root = parse("a: {b: 1, c: [2]}\n");
    root = document_set(&arena, root, assignment, 1, &problems);
    ck_assert_str_eq(problems_text(), "");
    ck_assert_str_eq(shown(root), expected);
}

START_TEST(setting) {
    set_gives("a.b=2", "{a:{b:2,c:[2]}}");
    set_gives("a.d.e=x=y", "{a:{b:1,c:[2],d:{e:x=y}}}");
    set_gives("a.c=[1, \"two\"]", "{a:{b:1,c:[1,'two']}}");
    set_gives("a.c={k: v}", "{a:{b:1,c:{k:v}}}");
    set_gives("a={}", "{a:{b:1,c:[2]}}");
    set_gives("a=", "{a:~}");
    set_gives("a.b=\"\"", "{a:{b:'',c:[2]}}");
    set_gives("x\\.y.z=1", "{a:{b:1,c:[2]},x.y:{z:1}}");
    set_gives("a.b=${env:X}", "{a:{b:${env:X},c:[2]}}");
    struct node *root = document_set(&arena, parse("{}"), "k.l=1", 1, &problems);
    ck_assert_ptr_null(document_locate(root, "k.l").file);
}
END_TEST

static void set_fails(const char *assignment, const char *expected) {
    problem_list_init(&problems, &arena);
    struct node *root = parse("a: 1\n");
    ck_assert_ptr_eq(document_set(&arena, root, assignment, 3, &problems), root);
    ck_assert_str_eq(problems_text(), expected);
}

START_TEST(setting_refused) {
    static const char *const EMPTY =
        "--set: assignment 3 has an empty key, a key over 256 bytes or over 64 keys; write --set "
        "key.path=value, with \\. for a dot inside a key\n";
    set_fails("a", "--set: assignment 3 has no '='; write --set key.path=value\n");
    set_fails("", "--set: assignment 3 has no '='; write --set key.path=value\n");
    set_fails("=1", EMPTY);
    set_fails("a.=1", EMPTY);
    set_fails(".a=1", EMPTY);
    set_fails("a..b=1", EMPTY);
    set_fails(
        "1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1."
        "1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1=x",
        EMPTY);
    set_fails("a=[hunter2", "--set: not YAML: flow sequence without a closing bracket\n");
    set_fails("a=*hunter",
              "--set: alias '*hunter' has no anchor before it; quote the text if it "
              "is none\n");
}
END_TEST

static void add_tests(TCase *cases) {
    tcase_add_test(cases, merging);
    tcase_add_test(cases, joined_maps_keep_their_first_place);
    tcase_add_test(cases, setting);
    tcase_add_test(cases, setting_refused);
}

int main(void) {
    return run_suite("document_merge", add_tests);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "config/problem.h"

#include <check.h>
#include <stdlib.h>

static struct arena arena;
static struct problem_list list;
static struct buffer out;

static void setup(void) {
    arena_init(&arena, 4096);
    problem_list_init(&list, &arena);
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    buffer_release(&out);
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void printed(const char *expected) {
    problem_list_print(&list, &out);
    buffer_append_char(&out, '\0');
    ck_assert_str_eq(out.data, expected);
}

START_TEST(order_of_places) {
    problem_add_at(&list, (struct location){"b.yaml", 2, 1}, "k", "fifth");
    problem_add_at(&list, (struct location){0}, "k", "last of all");
    problem_add_at(&list, (struct location){"a.yaml", 10, 1}, "k", "fourth");
    problem_add_at(&list, (struct location){"a.yaml", 9, 7}, "", "second");
    problem_add_at(&list, (struct location){"a.yaml", 9, 7}, "k", "third: as it came");
    problem_add_at(&list, (struct location){"a.yaml", 9, 6}, "k.j", "first of %d", 6);
    printed(
        "a.yaml:9:6: k.j: first of 6\n"
        "a.yaml:9:7: second\n"
        "a.yaml:9:7: k: third: as it came\n"
        "a.yaml:10:1: k: fourth\n"
        "b.yaml:2:1: k: fifth\n"
        "--set: k: last of all\n");
}
END_TEST

static struct location locate(void *context, const char *key) {
    ck_assert_str_eq(key, "processors.align.max");
    return *(const struct location *)context;
}

START_TEST(prefix_and_place) {
    struct location place = {"a.yaml", 3, 4};
    list.prefix = "processors.align.";
    list.locate = locate;
    list.locate_context = &place;
    problem_add(&list, "max", "is %s", "wrong");
    printed("a.yaml:3:4: processors.align.max: is wrong\n");
}
END_TEST

START_TEST(texts_outlive_their_sources) {
    char file[] = "a.yaml", key[] = "key";
    problem_add_at(&list, (struct location){file, 1, 1}, key, "%s", key);
    file[0] = key[0] = '?';
    printed("a.yaml:1:1: key: key\n");
}
END_TEST

START_TEST(nothing_moves_the_cursor) {
    problem_add_at(&list, (struct location){"a.yaml", 1, 1}, "k\n",
                   "'\033[31m' is not a valid size");
    printed("a.yaml:1:1: k\\x0a: '\\x1b[31m' is not a valid size\n");
}
END_TEST

START_TEST(bounded) {
    for (uint32_t i = 0; i < 1000; i++)
        problem_add_at(&list, (struct location){"a.yaml", i + 1, 1}, "k", "%u", i);
    ck_assert_uint_eq(list.count, 200);
    ck_assert(problem_list_full(&list));
    ck_assert_str_eq(list.items[198].text, "198");
    ck_assert_str_eq(list.items[199].text, "and more from here on; fix these first");
    ck_assert_uint_eq(list.items[199].where.line, 200);
}
END_TEST

START_TEST(long_texts_are_cut) {
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    problem_add_at(&list, (struct location){0}, "k", "%s", text);
    ck_assert_uint_lt(strlen(list.items[0].text), 1024);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("problem");
    TCase *cases = tcase_create("problem");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, order_of_places);
    tcase_add_test(cases, prefix_and_place);
    tcase_add_test(cases, texts_outlive_their_sources);
    tcase_add_test(cases, nothing_moves_the_cursor);
    tcase_add_test(cases, bounded);
    tcase_add_test(cases, long_texts_are_cut);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

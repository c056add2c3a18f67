// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"
#include "base/memory.h"

#include <check.h>

static struct arena arena;

static void setup(void) {
    arena_init(&arena, 256);
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(aligned_and_apart) {
    char *last = NULL;
    for (size_t size = 0; size < 200; size++) {
        char *taken = arena_take(&arena, size);
        ck_assert_uint_eq((uintptr_t)taken % 16, 0);
        memset(taken, (int)size, size);
        if (last != NULL && size > 1)
            ck_assert_int_eq(last[size - 2], (char)(size - 1));
        last = taken;
    }
}
END_TEST

START_TEST(larger_than_a_block) {
    char *large = arena_take(&arena, 10000);
    memset(large, 1, 10000);
    char *small = arena_take(&arena, 16);
    memset(small, 2, 16);
    ck_assert_int_eq(large[9999], 1);
}
END_TEST

static void one_round(void) {
    for (int i = 0; i < 50; i++)
        memset(arena_take(&arena, 100), i, 100);
    memset(arena_take(&arena, 1000), 1, 1000);
}

START_TEST(warm_allocates_nothing) {
    one_round();
    for (int i = 0; i < 5; i++) {
        arena_reset(&arena);
        uint64_t before = memory_figures().allocations;
        one_round();
        ck_assert_uint_eq(memory_figures().allocations, before);
    }
}
END_TEST

START_TEST(zeroed_after_reset) {
    memset(arena_take(&arena, 64), 0xff, 64);
    arena_reset(&arena);
    const char *bytes = arena_zero(&arena, 8, 8);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(bytes[i], 0);
    ck_assert_ptr_nonnull(arena_zero(&arena, 0, 8));
    ck_assert_ptr_nonnull(arena_zero(&arena, 8, 0));
}
END_TEST

START_TEST(texts) {
    char bytes[] = "hello";
    struct slice copy = arena_copy(&arena, slice_of(bytes));
    const char *text = arena_text(&arena, (struct slice){bytes, 4});
    bytes[0] = 'J';
    ck_assert(slice_equal(copy, SLICE("hello")));
    ck_assert_int_eq(copy.data[5], '\0');
    ck_assert_str_eq(text, "hell");
    ck_assert_str_eq(arena_text(&arena, (struct slice){NULL, 0}), "");
    ck_assert_str_eq(arena_format(&arena, "%s=%d", "rank", 7), "rank=7");
    char *wide = arena_format(&arena, "%01000d", 5);
    ck_assert_uint_eq(strlen(wide), 1000);
    ck_assert_int_eq(wide[999], '5');
}
END_TEST

START_TEST(release_and_go_on) {
    arena_take(&arena, 100);
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
    arena_reset(&arena);
    ck_assert_str_eq(arena_text(&arena, SLICE("again")), "again");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("arena");
    TCase *cases = tcase_create("arena");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, aligned_and_apart);
    tcase_add_test(cases, larger_than_a_block);
    tcase_add_test(cases, warm_allocates_nothing);
    tcase_add_test(cases, zeroed_after_reset);
    tcase_add_test(cases, texts);
    tcase_add_test(cases, release_and_go_on);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/intern.h"
#include "base/memory.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_MAX (UINT64_C(256) << 20)

static void teardown(void) {
    intern_release();
    intern_set_max_bytes(DEFAULT_MAX);
}

START_TEST(none_is_not_the_empty_string) {
    ck_assert_uint_eq(intern_find(SLICE("")), STRING_NONE);
    string_id empty = intern(SLICE(""));
    ck_assert_uint_ne(empty, STRING_NONE);
    ck_assert_uint_ne(empty, STRING_REFUSED);
    ck_assert_uint_eq(intern((struct slice){NULL, 0}), empty);
    ck_assert_uint_eq(intern_slice(empty).size, 0);
    ck_assert_uint_eq(intern_slice(STRING_NONE).size, 0);
    ck_assert_int_eq(intern_slice(STRING_NONE).data[0], '\0');
}
END_TEST

START_TEST(same_bytes_same_id) {
    string_id a = intern(SLICE("node-a"));
    char copy[] = "xnode-a";
    ck_assert_uint_eq(intern((struct slice){copy + 1, 6}), a);
    ck_assert_uint_ne(intern(SLICE("node-b")), a);
    ck_assert_uint_ne(intern(SLICE("node-")), a);
    ck_assert_uint_ne(intern((struct slice){"node-a\0", 7}), a);
    ck_assert_uint_eq(intern_find(SLICE("node-a")), a);
    ck_assert_uint_eq(intern_find(SLICE("node-c")), STRING_NONE);
    ck_assert_str_eq(intern_slice(a).data, "node-a");
}
END_TEST

// A name that is expected gets the id that it would get without, whether its hash was made before
// there was a table or before the table grew, and the interned bytes stand for it.
START_TEST(expected_names_get_the_same_ids) {
    struct slice first = SLICE("first");
    uint64_t early = intern_expect(first);
    intern_approach(early);
    string_id id = intern_expected(&first, early);
    ck_assert_uint_eq(intern(SLICE("first")), id);
    ck_assert_ptr_eq(first.data, intern_slice(id).data);

    char copy[] = "second";
    struct slice second = {copy, 6};
    uint64_t hash = intern_expect(second);
    intern_approach(hash);
    for (unsigned i = 0; i < 5000; i++) {
        char name[16];
        intern((struct slice){name, (size_t)snprintf(name, sizeof name, "n%u", i)});
    }
    string_id known = intern(SLICE("second"));
    ck_assert_uint_eq(intern_expected(&second, hash), known);
    ck_assert_ptr_eq(second.data, intern_slice(known).data);
    ck_assert_uint_eq(intern_count(), known);
    struct slice again = SLICE("first");
    intern_approach(intern_expect(again));
    ck_assert_uint_eq(intern_expected(&again, intern_expect(again)), id);

    struct slice third = SLICE("third");
    intern_known_only(true);
    ck_assert_uint_eq(intern_expected(&third, intern_expect(third)), STRING_REFUSED);
    ck_assert_uint_eq(intern_find(third), STRING_NONE);
    intern_known_only(false);
}
END_TEST

START_TEST(names_are_postponed) {
    static struct intern_later later;
    struct arena arena;
    arena_init(&arena, 4096);
    later.arena = &arena;
    string_id known = intern(SLICE("known"));
    char text[] = "later";
    intern_postpone(&later);
    ck_assert_uint_eq(intern(SLICE("known")), known);
    ck_assert_uint_eq(intern((struct slice){text, 5}), INTERN_LATER_FIRST);
    struct slice other = SLICE("other");
    string_id second = intern_expected(&other, intern_expect(other));
    ck_assert_uint_eq(second, INTERN_LATER_FIRST + 1);
    ck_assert(intern_is_later(second) && !intern_is_later(known));
    text[0] = 'L'; // the names are copies
    ck_assert_uint_eq(intern(SLICE("later")), INTERN_LATER_FIRST);
    ck_assert(slice_equal(intern_slice(second), SLICE("other")));
    for (unsigned i = 2; i < INTERN_LATER_MAX + 3; i++) {
        char name[16];
        string_id id = intern((struct slice){name, (size_t)snprintf(name, sizeof name, "n%u", i)});
        ck_assert_uint_eq(id, i < INTERN_LATER_MAX ? INTERN_LATER_FIRST + i : STRING_REFUSED);
    }
    intern_postpone(NULL);
    ck_assert_uint_eq(intern_count(), known);
    ck_assert_uint_eq(later.count, INTERN_LATER_MAX);
    ck_assert_uint_eq(intern(later.names[0]), known + 1);
    ck_assert(slice_equal(intern_slice(known + 1), SLICE("later")));
    arena_release(&arena);
}
END_TEST

START_TEST(what_came_behind_a_name_is_remembered) {
    const char *names[] = {"run-r0", "", "a name that is longer than the others"};
    struct slice texts[3];
    string_id ids[3];
    for (unsigned i = 0; i < 3; i++) {
        ids[i] = intern(slice_of(names[i]));
        texts[i] = intern_slice(ids[i]);
    }
    ck_assert_ptr_null(intern_follow(texts[0], texts[1]));
    ck_assert_ptr_null(intern_follow(texts[1], texts[2]));
    const struct intern_entry *next = intern_follow(texts[2], texts[0]);
    for (unsigned i = 1; i <= 6; i++) { // around twice
        ck_assert_ptr_nonnull(next);
        ck_assert_uint_eq(next->id, ids[i % 3]);
        ck_assert_ptr_eq(next->bytes, texts[i % 3].data);
        ck_assert_uint_eq(next->size, texts[i % 3].size);
        next = intern_next(next);
    }
    // The last one counts, also when it is the name itself.
    next = intern_follow(texts[0], texts[2]);
    ck_assert_uint_eq(next->id, ids[0]);
    ck_assert_uint_eq(intern_next(next)->id, ids[2]);
    next = intern_follow(texts[1], texts[1]);
    ck_assert_uint_eq(next->id, ids[1]);
}
END_TEST

// Every length around the steps of the hash, in blocks that end exactly where the string ends, so
// that a read past the end is seen by the sanitizer; each differs from the next in one byte.
START_TEST(lengths_and_single_bytes) {
    for (size_t size = 1; size <= 70; size++) {
        char *text = malloc(size);
        memset(text, 'a', size);
        string_id base = intern((struct slice){text, size});
        for (size_t at = 0; at < size; at++) {
            text[at] = 'b';
            string_id other = intern((struct slice){text, size});
            ck_assert_uint_ne(other, base);
            ck_assert(slice_equal(intern_slice(other), (struct slice){text, size}));
            text[at] = 'a';
        }
        ck_assert_uint_eq(intern_find((struct slice){text, size}), base);
        free(text);
    }
}
END_TEST

START_TEST(many_strings_through_growth) {
    enum { COUNT = 100000 };
    static string_id ids[COUNT];
    char text[32];
    struct slice first = intern_slice(intern(SLICE("string 0")));
    for (int i = 0; i < COUNT; i++) {
        int size = snprintf(text, sizeof text, "string %d", i);
        ids[i] = intern((struct slice){text, (size_t)size});
        ck_assert_uint_eq(ids[i], (string_id)i + 1);
    }
    for (int i = 0; i < COUNT; i++) {
        int size = snprintf(text, sizeof text, "string %d", i);
        ck_assert_uint_eq(intern_find((struct slice){text, (size_t)size}), ids[i]);
        ck_assert(slice_equal(intern_slice(ids[i]), (struct slice){text, (size_t)size}));
        ck_assert_int_eq(intern_slice(ids[i]).data[size], '\0');
    }
    ck_assert_ptr_eq(intern_slice(1).data, first.data);
}
END_TEST

START_TEST(known_strings_allocate_nothing) {
    string_id id = intern(SLICE("3731184b-007f-4105-99c6-57cf6b1b244c"));
    uint64_t before = memory_figures().allocations;
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(intern(SLICE("3731184b-007f-4105-99c6-57cf6b1b244c")), id);
    ck_assert_uint_eq(intern_find(SLICE("unknown")), STRING_NONE);
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

START_TEST(bound_on_bytes) {
    intern_set_max_bytes(2 * (48 + 10));
    string_id a = intern(SLICE("aaaaaaaaaa"));
    ck_assert_uint_ne(a, STRING_REFUSED);
    ck_assert_uint_eq(intern(SLICE("bbbbbbbbbbb")), STRING_REFUSED);
    ck_assert_uint_ne(intern(SLICE("bbbbbbbbbb")), STRING_REFUSED);
    ck_assert_uint_eq(intern(SLICE("")), STRING_REFUSED);
    ck_assert_uint_eq(intern(SLICE("aaaaaaaaaa")), a);
}
END_TEST

START_TEST(release_gives_everything_back) {
    intern_release();
    uint64_t before = memory_figures().live_bytes;
    for (int i = 0; i < 10000; i++)
        intern((struct slice){(char *)&i, sizeof i});
    ck_assert_uint_gt(memory_figures().live_bytes, before);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, before);
    ck_assert_uint_eq(intern(SLICE("first again")), 1);
}
END_TEST

enum { THREADS = 4, SHARED = 20000 };
static string_id seen[THREADS][SHARED];

// Each thread starts elsewhere in the same list, so that all of them insert and find at once.
static void *thread_run(void *argument) {
    size_t thread = (size_t)(uintptr_t)argument;
    char text[40];
    for (size_t n = 0; n < SHARED; n++) {
        size_t i = (n + thread * (SHARED / THREADS)) % SHARED;
        int size = snprintf(text, sizeof text, "shared string number %zu", i);
        string_id id = intern((struct slice){text, (size_t)size});
        seen[thread][i] = id;
        if (!slice_equal(intern_slice(id), (struct slice){text, (size_t)size}) ||
            intern_find((struct slice){text, (size_t)size}) != id)
            return "a string came back changed";
    }
    return NULL;
}

START_TEST(threads_agree) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, thread_run, (void *)(uintptr_t)i), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *fault;
        pthread_join(threads[i], &fault);
        ck_assert_ptr_null(fault);
    }
    static bool used[SHARED + 1];
    for (size_t i = 0; i < SHARED; i++) {
        for (size_t thread = 1; thread < THREADS; thread++)
            ck_assert_uint_eq(seen[thread][i], seen[0][i]);
        ck_assert_uint_le(seen[0][i], SHARED);
        ck_assert(!used[seen[0][i]]);
        used[seen[0][i]] = true;
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("intern");
    TCase *cases = tcase_create("intern");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_test(cases, none_is_not_the_empty_string);
    tcase_add_test(cases, same_bytes_same_id);
    tcase_add_test(cases, expected_names_get_the_same_ids);
    tcase_add_test(cases, names_are_postponed);
    tcase_add_test(cases, what_came_behind_a_name_is_remembered);
    tcase_add_test(cases, lengths_and_single_bytes);
    tcase_add_test(cases, many_strings_through_growth);
    tcase_add_test(cases, known_strings_allocate_nothing);
    tcase_add_test(cases, bound_on_bytes);
    tcase_add_test(cases, release_gives_everything_back);
    tcase_add_test(cases, threads_agree);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

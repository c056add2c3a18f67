// SPDX-License-Identifier: Apache-2.0
// text_position against memmem: texts and words of all small sizes, each in memory of just its size
// so that a sanitizer sees what is read beyond it.
#include "base/text/find.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 90, ROUNDS = 40 };

static uint32_t number = 1;

static uint32_t next(uint32_t below) {
    number = number * 1664525 + 1013904223;
    return (number >> 16) % below;
}

// Few different bytes, so that much is nearly there.
static char *make(size_t size, uint32_t letters) {
    char *text = malloc(size > 0 ? size : 1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + next(letters));
    return text;
}

START_TEST(finds_what_memmem_finds) {
    uint32_t found = 0;
    for (size_t size = 1; size <= TEXT_MAX; size++)
        for (size_t round = 0; round < ROUNDS; round++) {
            uint32_t letters = 1 + next(3);
            size_t wanted_size = 1 + next(round % 2 == 0 ? 6 : TEXT_MAX);
            char *text = make(size, letters), *wanted = make(wanted_size, letters);
            const char *expected = memmem(text, size, wanted, wanted_size);
            ck_assert_ptr_eq(
                text_position((struct slice){text, size}, (struct slice){wanted, wanted_size}),
                expected);
            found += expected != NULL;
            free(text);
            free(wanted);
        }
    // Both ways often enough.
    ck_assert_uint_gt(found, TEXT_MAX * ROUNDS / 8);
    ck_assert_uint_lt(found, TEXT_MAX * ROUNDS * 7 / 8);
}
END_TEST

START_TEST(finds_at_each_place) {
    for (size_t size = 5; size <= TEXT_MAX; size++)
        for (size_t at = 0; at + 5 <= size; at++) {
            char *text = malloc(size);
            memset(text, '-', size);
            memcpy(text + at,
                   "\xff"
                   "rd\0\x80",
                   5);
            ck_assert_ptr_eq(text_position((struct slice){text, size}, (struct slice){"\xff"
                                                                                      "rd\0\x80",
                                                                                      5}),
                             text + at);
            free(text);
        }
}
END_TEST

START_TEST(nothing_is_found_in_nothing) {
    ck_assert_ptr_null(text_position((struct slice){NULL, 0}, slice_of("a")));
    ck_assert_ptr_null(text_position((struct slice){NULL, 0}, slice_of("")));
    ck_assert_ptr_null(text_position(slice_of("ab"), slice_of("abc")));
    const char *text = "ab";
    ck_assert_ptr_eq(text_position(slice_of(text), slice_of("")), text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("find");
    TCase *cases = tcase_create("find");
    tcase_add_test(cases, finds_what_memmem_finds);
    tcase_add_test(cases, finds_at_each_place);
    tcase_add_test(cases, nothing_is_found_in_nothing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

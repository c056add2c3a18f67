// SPDX-License-Identifier: Apache-2.0
// What stands in front of the lines of a traceback and is no prefix that a row knows.
#include "receivers/decode/line/head.h"

#include <check.h>

enum { BEGINNINGS = 34 }; // bytes of "Traceback (most recent call last):"

static struct head_seen seen;
static struct frame frame;
static struct peel peel;

static void peel_line(const char *line) {
    frame_clear(&frame, slice_of(line), 1);
    peel = (struct peel){.frame = &frame, .text = frame.message, .key = HASH_START};
    head_peel(&peel, &seen);
}

static uint64_t key_of(const char *line) {
    peel_line(line);
    return peel.key;
}

static void setup(void) {
    seen = (struct head_seen){0};
}

// Who writes is told from the second traceback on; the first may be another text.
START_TEST(names_the_writer_without_its_time) {
    peel_line("10:11:12 n1 T Traceback (most recent call last):");
    ck_assert(!frame.has_writer);
    peel_line("10:11:12 n1 T   File \"a.py\", line 1, in f");
    ck_assert(!frame.has_writer);
    uint64_t first = key_of("10:11:13 n1 T Traceback (most recent call last):");
    ck_assert(frame.has_writer);
    ck_assert_uint_ne(first, HASH_START);
    ck_assert_uint_eq(first, key_of("10:11:59 n1 T KeyError: 3"));
    ck_assert(slice_equal(peel.text, SLICE("KeyError: 3")));
    ck_assert_uint_ne(first, key_of("10:11:59 n2 T KeyError: 3"));
    ck_assert_uint_eq(HASH_START, key_of("KeyError: 3"));
}
END_TEST

START_TEST(a_date_in_front_of_the_time_names_nobody) {
    peel_line("0105 10:11:12.5 n1] Traceback (most recent call last):");
    peel_line("0105 10:11:12.5 n1]   File \"a.py\", line 1, in f");
    uint64_t first = key_of("0105 10:11:13.5 n1] Traceback (most recent call last):");
    ck_assert_uint_eq(first, key_of("0106 00:00:01.7 n1] KeyError: 3"));
    ck_assert_uint_ne(first, key_of("0106 00:00:01.7 n2] KeyError: 3"));
}
END_TEST

START_TEST(another_shape_is_not_certain) {
    peel_line("n1: Traceback (most recent call last):");
    peel_line("n1:   File \"a.py\", line 1, in f");
    peel_line("n1: Traceback (most recent call last):");
    ck_assert(frame.has_writer);
    peel_line("node 1: Traceback (most recent call last):");
    ck_assert(!frame.has_writer);
    peel_line("n1: KeyError: 3");
    ck_assert(slice_equal(peel.text, SLICE("n1: KeyError: 3")));
}
END_TEST

START_TEST(what_is_too_long_is_no_head) {
    static char line[HEAD_SIZE_MAX + 1 + BEGINNINGS + 1];
    memset(line, 'x', HEAD_SIZE_MAX + 1);
    memcpy(line + HEAD_SIZE_MAX + 1, "Traceback (most recent call last):", BEGINNINGS);
    peel_line(line);
    ck_assert_uint_eq(seen.size, 0);
    peel_line(line + 1);
    ck_assert_uint_eq(seen.size, HEAD_SIZE_MAX);
    peel_line("Traceback (most recent call last):");
    ck_assert_uint_eq(seen.size, HEAD_SIZE_MAX);
}
END_TEST

// The beginning was cut off: a place in the traceback has words of its own, too.
START_TEST(a_place_tells_the_head) {
    peel_line("ERROR 01-05 10:11:12 [core.py:390]   File \"a.py\", line 1, in f");
    ck_assert(slice_equal(peel.text, SLICE("  File \"a.py\", line 1, in f")));
    peel_line("ERROR 01-05 10:11:13 [core.py:391] KeyError: 3");
    ck_assert(slice_equal(peel.text, SLICE("KeyError: 3")));
    peel_line("  | File \"a.py\", line 1, in f");
    ck_assert(slice_equal(peel.text, SLICE("  | File \"a.py\", line 1, in f")));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("head");
    TCase *tests = tcase_create("head");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, a_place_tells_the_head);
    tcase_add_test(tests, names_the_writer_without_its_time);
    tcase_add_test(tests, a_date_in_front_of_the_time_names_nobody);
    tcase_add_test(tests, another_shape_is_not_certain);
    tcase_add_test(tests, what_is_too_long_is_no_head);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

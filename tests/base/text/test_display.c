// SPDX-License-Identifier: Apache-2.0
#include "base/text/display.h"

#include <check.h>

struct shown_case {
    struct slice text;
    const char *shown;
    size_t columns;
};

static const struct shown_case shown_cases[] = {
    {{"", 0}, "", 0},
    {{"step / backward", 15}, "step / backward", 15},
    {{"a\n\r\tb", 5}, "a\\x0a\\x0d\\x09b", 14},
    {{"\x1b[31mred", 8}, "\\x1b[31mred", 11},
    {{"\0\x7f", 2}, "\\x00\\x7f", 8},
    {{"\xc2\x9b"
      "1m",
      4},
     "\\u009b1m",
     8}, // C1 control sequence
    {{"\xe2\x80\xae"
      "cba",
      6},
     "\\u202ecba",
     9},                                                       // right-to-left override
    {{"\xe2\x81\xa6x\xe2\x81\xa9", 7}, "\\u2066x\\u2069", 13}, // isolates
    {{"\xe2\x80\xa8\xe2\x80\xa9", 6}, "\\u2028\\u2029", 12},   // separators
    {{"\xef\xbb\xbf", 3}, "\\ufeff", 6},                       // byte order mark
    {{"\xed\xa0\x80", 3}, "\\ud800", 6},                       // surrogate
    {{"\xff\xc3(", 3}, "\\xff\\xc3(", 9},                      // not UTF-8
    {{"\xe2\x82", 2}, "\\xe2\\x82", 8},                        // cut short
    {{"\xf3\xa0\x81\x81", 4}, "\\ue0041", 7},                  // tag
    {{"Gr\xc3\xbc\xc3\x9f"
      "e",
      7},
     "Gr\xc3\xbc\xc3\x9f"
     "e",
     5},
    {{"\xe8\xa8\x93\xe7\xb7\xb4", 6}, "\xe8\xa8\x93\xe7\xb7\xb4", 4}, // wide
    {{"e\xcc\x81", 3}, "e\xcc\x81", 1},                               // combining
    {{"\xf0\x9f\x98\x80", 4}, "\xf0\x9f\x98\x80", 2},
};
enum { SHOWN_CASES = sizeof shown_cases / sizeof shown_cases[0] };

static struct buffer out;

static void setup(void) {
    buffer_init(&out, 4096);
}

static void teardown(void) {
    buffer_release(&out);
}

#define CHECK_OUT(expected)                                                                        \
    do {                                                                                           \
        ck_assert(buffer_finish(&out));                                                            \
        buffer_append_char(&out, '\0');                                                            \
        ck_assert_str_eq(out.data, expected);                                                      \
        buffer_reset(&out);                                                                        \
    } while (0)

START_TEST(shown) {
    display_append(&out, shown_cases[_i].text, 0);
    CHECK_OUT(shown_cases[_i].shown);
    ck_assert_uint_eq(display_columns(shown_cases[_i].text), shown_cases[_i].columns);
}
END_TEST

START_TEST(cut) {
    display_append(&out, SLICE("12345"), 5);
    CHECK_OUT("12345");
    display_append(&out, SLICE("ab cdefgh"), 8);
    CHECK_OUT("ab \xe2\x80\xa6");
    display_append(&out, SLICE("abcdef"), 5);
    CHECK_OUT("ab\xe2\x80\xa6");
    display_append(&out, SLICE("\n\n"), 8);
    CHECK_OUT("\\x0a\\x0a");
    display_append(&out, SLICE("a word\nand more"), 12);
    CHECK_OUT("a \xe2\x80\xa6");
    display_append(&out, SLICE("\xc3\xa9\xc3\xa9\xc3\xa9"), 5);
    CHECK_OUT("\xc3\xa9\xe2\x80\xa6");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("display");
    TCase *cases = tcase_create("display");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, shown, 0, SHOWN_CASES);
    tcase_add_test(cases, cut);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

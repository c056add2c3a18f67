// SPDX-License-Identifier: Apache-2.0
// Texts that are longer than their place: what is shown of them, and that nothing of it is wrong.
#include "base/text/cut.h"
#include "base/text/utf8.h"

#include <check.h>
#include <stdlib.h>

enum { ROOM = 4096 };
static char room[ROOM];

static const char *shortened(const char *text, size_t max, enum text_unit unit) {
    static char copy[ROOM];
    memset(room, '#', sizeof room);
    struct slice kept = text_shorten(slice_of(text), max, unit, room);
    ck_assert_uint_lt(kept.size, ROOM);
    memcpy(copy, kept.data, kept.size);
    copy[kept.size] = '\0';
    return copy;
}

START_TEST(what_fits_stays) {
    const char *text = "as long as its place";
    ck_assert_ptr_eq(text_shorten(slice_of(text), 20, TEXT_BYTES, room).data, text);
    ck_assert_ptr_eq(text_shorten(slice_of(text), 20, TEXT_CHARACTERS, room).data, text);
    ck_assert_str_eq(shortened("", 8, TEXT_BYTES), "");
    ck_assert_str_eq(shortened("äöüäöüäö", 8, TEXT_CHARACTERS), "äöüäöüäö");
}
END_TEST

// Of each text at each length: whole words of it, then the mark.
START_TEST(words_stay_whole) {
    static const char *const TEXTS[] = {
        "Connection closed by peer [10.0.0.12]:17567. This is typically caused by a remote end",
        "GPU 0 has 79.15 GiB of which 12.88 MiB is free. Process 918273 has 76.90 GiB in use",
        "naïve café Привет мир and more words after 1,048,576 of them"};
    const char *text = TEXTS[_i];
    for (size_t max = 45; max < strlen(text); max++) {
        const char *kept = shortened(text, max, TEXT_BYTES);
        ck_assert_uint_le(strlen(kept), max);
        const char *mark = strstr(kept, " …");
        ck_assert_msg(mark != NULL && mark[strlen(" …")] == '\0', "%zu: %s", max, kept);
        size_t size = (size_t)(mark - kept);
        ck_assert_msg(memcmp(kept, text, size) == 0, "%zu: %s", max, kept);
        ck_assert_msg(strchr(" ,;:", text[size]) != NULL, "%zu: %s", max, kept);
    }
}
END_TEST

START_TEST(an_address_is_whole_or_left_out) {
    const char *text = "Connection closed by peer [10.0.0.12]:17567. This is typical";
    ck_assert_str_eq(shortened(text, 51, TEXT_CHARACTERS),
                     "Connection closed by peer [10.0.0.12]:17567. This …");
    ck_assert_str_eq(shortened(text, 43, TEXT_CHARACTERS), "Connection closed by peer …");
    ck_assert_str_eq(shortened("one, two (three)", 12, TEXT_CHARACTERS), "one, two …");
    ck_assert_str_eq(shortened("one, two (three)", 8, TEXT_CHARACTERS), "one …");
    ck_assert_str_eq(shortened("one two …; three four", 15, TEXT_CHARACTERS), "one two …");
}
END_TEST

// A path says most at its end, and so does the name of one of many pods.
START_TEST(a_long_word_shows_its_end) {
    ck_assert_str_eq(shortened("cannot open /mnt/data/sets/2026/11/27/train/shards/0017.tar", 40,
                               TEXT_CHARACTERS),
                     "cannot open …/27/train/shards/0017.tar");
    ck_assert_str_eq(
        shortened("cannot open /mnt/data/sets/2026/11/27/train/shards/0017.tar: no space", 40,
                  TEXT_CHARACTERS),
        "cannot open …/train/shards/0017.tar: …");
    ck_assert_str_eq(shortened("train-of-a-very-long-name-worker-0017", 16, TEXT_CHARACTERS),
                     "…-worker-0017");
    ck_assert_str_eq(shortened("aaaaaaaaaaaaaaaaaaaaaaaaaaaa:10.0.0.12:17567", 20, TEXT_CHARACTERS),
                     "…:10.0.0.12:17567");
    ck_assert_str_eq(shortened("aaaaaaaaaaaaaaaaaaaaaaaaaaaa:10.0.0.12:17567", 17, TEXT_CHARACTERS),
                     "aaaaaaaaaaaaaaaa…");
}
END_TEST

START_TEST(a_word_without_signs_is_cut_but_no_number) {
    ck_assert_str_eq(shortened("abcdefghijklmnop", 8, TEXT_CHARACTERS), "abcdefg…");
    ck_assert_str_eq(shortened("abc1234567890123", 8, TEXT_CHARACTERS), "abc…");
    ck_assert_str_eq(shortened("abcdefghijklmnop...", 8, TEXT_CHARACTERS), "abcdefg…");
    ck_assert_str_eq(shortened("1234567890123456", 8, TEXT_CHARACTERS), "…");
    ck_assert_str_eq(shortened("3.14159265358979", 8, TEXT_CHARACTERS), "…");
}
END_TEST

START_TEST(scripts_without_blanks_are_cut_between_characters) {
    ck_assert_str_eq(shortened("显存不足无法分配更多的内存", 8, TEXT_CHARACTERS), "显存不足无法 …");
    ck_assert_str_eq(shortened("显存不足无法分配更多的内存", 20, TEXT_BYTES), "显存不足无 …");
}
END_TEST

// The end of what is too long for a name is not looked for.
START_TEST(the_work_is_bounded) {
    static char text[1 << 20];
    memset(text, 'a', sizeof text);
    text[sizeof text - 10] = '/';
    struct slice kept = text_shorten((struct slice){text, sizeof text}, 10, TEXT_BYTES, room);
    ck_assert_uint_eq(kept.size, 10);
    ck_assert(text_begins(kept, SLICE("aaaaaaa")));
}
END_TEST

// Any bytes: bounded, and whole characters where they were.
START_TEST(any_bytes) {
    srand(7);
    static const char *const PARTS[] = {"a", "9",  " ",    ":",        "/",
                                        "é", "显", "\xff", "\xf0\x9f", "\n"};
    for (int turn = 0; turn < 20000; turn++) {
        char text[256] = "";
        int parts = rand() % 60;
        bool valid = true;
        for (int i = 0; i < parts; i++)
            strcat(text, PARTS[rand() % 10]);
        valid = utf8_is_valid(slice_of(text));
        size_t max = TEXT_SHORTEST + (size_t)(rand() % 44);
        enum text_unit unit = rand() % 2 == 0 ? TEXT_BYTES : TEXT_CHARACTERS;
        char *exact = malloc(unit == TEXT_BYTES ? max : TEXT_ROOM(max));
        struct slice kept = text_shorten(slice_of(text), max, unit, exact);
        ck_assert(!valid || utf8_is_valid(kept));
        ck_assert(unit == TEXT_CHARACTERS || kept.size <= max);
        ck_assert_uint_eq(utf8_cut(kept, max).size, kept.size);
        free(exact);
    }
}
END_TEST

// -1: the text begins otherwise.
static const struct {
    const char *text, *start;
    int size;
} LIKES[] = {
    {"", "", 0},       {"a", "", 0},        {"", "a", -1},      {"ab", "a", 1},
    {"a12b", "a3", 3}, {"a1b", "a123b", 3}, {"ab", "a1b", -1},  {"a1b", "ab", -1},
    {"12", "3", 2},    {"12:07", "9:1", 5}, {"1-2", "1.2", -1}, {"a1", "a1b", -1},
};

START_TEST(a_beginning_may_have_other_numbers) {
    size_t size = 99;
    bool is_like = text_begins_like(slice_of(LIKES[_i].text), slice_of(LIKES[_i].start), &size);
    ck_assert_int_eq(is_like ? (int)size : -1, LIKES[_i].size);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cut");
    TCase *cases = tcase_create("cut");
    tcase_add_test(cases, what_fits_stays);
    tcase_add_loop_test(cases, words_stay_whole, 0, 3);
    tcase_add_test(cases, an_address_is_whole_or_left_out);
    tcase_add_test(cases, a_long_word_shows_its_end);
    tcase_add_test(cases, a_word_without_signs_is_cut_but_no_number);
    tcase_add_test(cases, scripts_without_blanks_are_cut_between_characters);
    tcase_add_test(cases, the_work_is_bounded);
    tcase_add_loop_test(cases, a_beginning_may_have_other_numbers, 0, sizeof LIKES / sizeof *LIKES);
    tcase_add_test(cases, any_bytes);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

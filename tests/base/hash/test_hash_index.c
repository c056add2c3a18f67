// SPDX-License-Identifier: Apache-2.0
#include "base/hash/hash_index.h"

#include "base/memory.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

enum { ITEMS = 2000 };

static struct hash_index index_;
static uint64_t hashes[ITEMS];

static void setup(void) {
    index_ = (struct hash_index){0};
}

static void teardown(void) {
    hash_index_release(&index_);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static bool is_there(uint32_t item) {
    uint32_t probe = 0, found;
    while ((found = hash_index_next(&index_, hashes[item], &probe)) != HASH_INDEX_NONE)
        if (found == item)
            return true;
    return false;
}

START_TEST(an_empty_one_finds_nothing) {
    uint32_t probe = 0;
    ck_assert_uint_eq(hash_index_next(&index_, 1, &probe), HASH_INDEX_NONE);
    hash_index_clear(&index_);
    hash_index_add(&index_, 1, 7);
    hash_index_clear(&index_);
    ck_assert_uint_eq(hash_index_next(&index_, 1, &probe), HASH_INDEX_NONE);
}
END_TEST

// Against an array of flags: items share hashes, and hashes share slots at the table's end.
START_TEST(what_was_added_is_found_until_it_is_removed) {
    bool there[ITEMS] = {false};
    for (uint32_t i = 0; i < ITEMS; i++)
        hashes[i] = i % 3 == 0 ? 63 + i % 5 : (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
    srand(1);
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t item = (uint32_t)rand() % ITEMS;
        if (there[item])
            hash_index_remove(&index_, hashes[item], item);
        else
            hash_index_add(&index_, hashes[item], item);
        there[item] = !there[item];
        uint32_t other = (uint32_t)rand() % ITEMS;
        ck_assert_int_eq(is_there(item), there[item]);
        ck_assert_int_eq(is_there(other), there[other]);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        ck_assert_int_eq(is_there(i), there[i]);
        count += there[i];
    }
    ck_assert_uint_eq(index_.rows.count, count);
}
END_TEST

// Keys of numbers, of which any two may differ in one place only, are dealt out over the places of
// a table of as many.
START_TEST(numbers_are_dealt_out) {
    enum { NUMBERS = 4096, WORDS = 9, LONGEST = 12 };
    static const uint32_t usual[WORDS] = {7, 1, 0, 3, 0, 0, 12, 5, 9};
    for (size_t words = 1; words <= WORDS; words++) {
        for (size_t place = 0; place < words; place++) {
            for (unsigned shift = 0; shift <= 20; shift += 10) {
                static uint32_t key[WORDS];
                memcpy(key, usual, sizeof key);
                uint8_t counts[NUMBERS] = {0};
                for (uint32_t i = 0; i < NUMBERS; i++) {
                    key[place] = i << shift;
                    uint32_t hash = hash_folded(hash_words(key, words * sizeof *key));
                    ck_assert_msg(++counts[hash % NUMBERS] <= LONGEST, "%zu words, %zu, %u", words,
                                  place, shift);
                }
            }
        }
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("hash_index");
    TCase *test = tcase_create("index");
    tcase_add_checked_fixture(test, setup, teardown);
    tcase_add_test(test, numbers_are_dealt_out);
    tcase_add_test(test, an_empty_one_finds_nothing);
    tcase_add_test(test, what_was_added_is_found_until_it_is_removed);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Values at known paths: found in any order, the last of a repeated key, others passed over.
#include "base/memory.h"
#include "receivers/decode/json/shape.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOT_A, SLOT_B, SLOT_INNER, SLOT_DEEP, SLOT_COUNT };

static const struct json_shape_row deep_rows[] = {{{"deep", 4}, SLOT_DEEP, NULL}};
static const struct json_shape deep = JSON_SHAPE(deep_rows);
static const struct json_shape_row inner_rows[] = {{{"b", 1}, SLOT_B, NULL},
                                                   {{"further", 7}, JSON_NO_SLOT, &deep}};
static const struct json_shape inner = JSON_SHAPE(inner_rows);
static const struct json_shape_row rows[] = {{{"a", 1}, SLOT_A, NULL},
                                             {{"inner", 5}, SLOT_INNER, &inner}};
static const struct json_shape shape = JSON_SHAPE(rows);

static struct token slots[SLOT_COUNT];
static struct json_fault fault;

static bool read(const char *text) {
    memset(slots, 0, sizeof slots);
    return json_shape_read_all(&shape, slice_of(text), slots, &fault);
}

static void is(int slot, const char *text) {
    struct slice got = token_slice(&slots[slot]);
    ck_assert_msg(slice_equal(got, slice_of(text)), "slot %d is %.*s", slot, (int)got.size,
                  got.data);
}

START_TEST(picked) {
    ck_assert(
        read(" {\"x\":[{\"a\":1}],\"inner\":{\"a\":2,\"further\":{\"deep\":[1, 2]},"
             "\"b\":\"t\"},\"a\":null} "));
    ck_assert_uint_eq(slots[SLOT_A].kind, TOKEN_NULL);
    is(SLOT_B, "t");
    is(SLOT_DEEP, "[1, 2]");
    ck_assert_uint_eq(slots[SLOT_INNER].kind, TOKEN_OBJECT);
    is(SLOT_INNER, "{\"a\":2,\"further\":{\"deep\":[1, 2]},\"b\":\"t\"}");
}
END_TEST

START_TEST(absent_and_of_another_kind) {
    ck_assert(read("{\"inner\":7,\"A\":1}"));
    ck_assert_uint_eq(slots[SLOT_A].kind, TOKEN_NONE);
    ck_assert_uint_eq(slots[SLOT_B].kind, TOKEN_NONE);
    is(SLOT_INNER, "7");
    ck_assert(read("{}"));
    ck_assert_uint_eq(slots[SLOT_INNER].kind, TOKEN_NONE);
}
END_TEST

START_TEST(the_last_of_a_repeated_key) {
    ck_assert(read("{\"a\":1,\"\\u0061\":2}"));
    is(SLOT_A, "2");
}
END_TEST

START_TEST(wrong_texts) {
    static const char *const not_json[] = {"{",         "{\"a\":}", "{\"a\":1,}",
                                           "{\"a\" 1}", "{} {}",    "{\"inner\":{\"b\":01}}"};
    for (size_t i = 0; i < sizeof not_json / sizeof *not_json; i++) {
        ck_assert_msg(!read(not_json[i]), "%s", not_json[i]);
        ck_assert_ptr_ne(fault.why, NULL);
    }
    static const char *const no_object[] = {"", " ", "[]", "7", "null"};
    for (size_t i = 0; i < sizeof no_object / sizeof *no_object; i++) {
        ck_assert(!read(no_object[i]));
        ck_assert_ptr_eq(fault.why, NULL);
    }
}
END_TEST

START_TEST(depth_is_bounded) {
    char text[400];
    for (int depth = 60; depth < 70; depth++) {
        size_t size = (size_t)snprintf(text, sizeof text, "{\"inner\":{\"x\":");
        for (int i = 0; i < depth - 2; i++)
            text[size++] = '[';
        for (int i = 0; i < depth - 2; i++)
            text[size++] = ']';
        snprintf(text + size, sizeof text - size, "}}");
        ck_assert_int_eq(read(text), depth <= JSON_SCAN_DEPTH_MAX);
    }
}
END_TEST

START_TEST(items) {
    ck_assert(read("{\"a\":[ 1 , {\"x\":[2]},\"three\" ]}"));
    struct json_items walk = json_items_of(&slots[SLOT_A]);
    struct token item;
    ck_assert(json_items_next(&walk, &item) && item.integer == 1);
    ck_assert(json_items_next(&walk, &item) && item.kind == TOKEN_OBJECT);
    ck_assert(json_items_next(&walk, &item) && token_equals(&item, SLICE("three")));
    ck_assert(!json_items_next(&walk, &item));
    ck_assert(!json_items_next(&walk, &item));
    ck_assert(read("{\"a\":[ ]}"));
    walk = json_items_of(&slots[SLOT_A]);
    ck_assert(!json_items_next(&walk, &item));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("json_shape");
    TCase *cases = tcase_create("json_shape");
    tcase_add_test(cases, picked);
    tcase_add_test(cases, absent_and_of_another_kind);
    tcase_add_test(cases, the_last_of_a_repeated_key);
    tcase_add_test(cases, wrong_texts);
    tcase_add_test(cases, depth_is_bounded);
    tcase_add_test(cases, items);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

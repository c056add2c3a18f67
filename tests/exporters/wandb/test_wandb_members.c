// SPDX-License-Identifier: Apache-2.0
// Objects taken apart as text, and values by key.
#include "exporters/wandb/members.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static char *split(const char *text) {
    static char out[1024];
    struct slice members = slice_of(text), key, value;
    size_t used = 0;
    out[0] = '\0';
    while (wandb_member_next(&members, &key, &value))
        used += (size_t)snprintf(out + used, sizeof out - used, "%.*s=%.*s;", (int)key.size,
                                 key.data, (int)value.size, value.data);
    snprintf(out + used, sizeof out - used, "%s", members.size > 0 ? "rest" : "");
    return out;
}

START_TEST(members_are_found) {
    ck_assert_str_eq(split(""), "");
    ck_assert_str_eq(split("\"a\":1,\"b\":NaN,\"c\":-Infinity"),
                     "\"a\"=1;\"b\"=NaN;\"c\"=-Infinity;");
    ck_assert_str_eq(split(" \"a\" : {\"x\":[1,2,{}]} ,\n\"b\":\"}],{\\\"\" "),
                     "\"a\"={\"x\":[1,2,{}]};\"b\"=\"}],{\\\"\";");
    ck_assert_str_eq(split("\"a\\\\\":\"\\\\\""), "\"a\\\\\"=\"\\\\\";");
    static const char *const broken[] = {"\"a\":",   "\"a",      "\"a\":[1", "\"a\":}",
                                         "\"a\":\"", "a:1",      "\"a\" 1",  "\"a\":{]]",
                                         "\"a\":1}", "\"a\":,2", "\"a\\"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        ck_assert_str_eq(strchr(split(broken[i]), '=') == NULL ? "none" : broken[i], "none");
}
END_TEST

START_TEST(objects_and_numbers) {
    struct slice inside = wandb_object_inside(SLICE(" {\"a\":{\"b\":2.5},\"c\":\"7\"} "));
    ck_assert_uint_gt(inside.size, 0);
    struct slice deeper = wandb_object_inside(wandb_member_find(inside, "a"));
    ck_assert(wandb_member_number_or(deeper, "b", -1) == 2.5);
    ck_assert(wandb_member_number_or(inside, "c", -1) == -1);
    ck_assert(wandb_member_number_or(inside, "d", -1) == -1);
    ck_assert(wandb_member_number_or(SLICE("\"n\":NaN"), "n", -1) == -1);
    ck_assert_uint_eq(wandb_object_inside(SLICE("[1]")).size, 0);
    ck_assert_uint_eq(wandb_object_inside(SLICE("{")).size, 0);
    ck_assert_uint_eq(wandb_object_inside(SLICE("")).size, 0);
}
END_TEST

START_TEST(later_values_win) {
    struct wandb_values values = {0};
    struct buffer out;
    buffer_init(&out, 1 << 24);
    wandb_values_append(&values, &out);
    ck_assert(slice_equal(buffer_slice(&out), SLICE("{}")));
    wandb_values_apply(&values, SLICE("\"a\":1,\"b\":NaN,\"\\u00e9\":null,\"c\":3"), false);
    wandb_values_apply(&values, SLICE("\"a\":[22,22],\"\xc3\xa9\":5,\"c\":NaN"), true);
    buffer_reset(&out);
    wandb_values_append(&values, &out);
    ck_assert_msg(slice_equal(buffer_slice(&out), SLICE("{\"a\":[22,22],\"b\":NaN,\"\\u00e9\":5}")),
                  "%.*s", (int)out.size, out.data);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 3000; i++) {
            char key[32], value[32];
            snprintf(key, sizeof key, "\"key%u\"", i);
            snprintf(value, sizeof value, "%u", i * (round + 1));
            ck_assert(wandb_values_set(&values, slice_of(key), slice_of(value)));
        }
    buffer_reset(&out);
    wandb_values_append(&values, &out);
    struct slice inside = wandb_object_inside(buffer_slice(&out));
    ck_assert(wandb_member_number_or(inside, "key2999", 0) == 5998);
    ck_assert(wandb_member_number_or(inside, "key1", 0) == 2);
    buffer_release(&out);
    wandb_values_release(&values);
}
END_TEST

START_TEST(values_are_bounded) {
    struct wandb_values values = {0};
    size_t size = WANDB_VALUES_BYTES_MAX / 3;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, '1', size);
    struct slice large = {text, size};
    ck_assert(wandb_values_set(&values, SLICE("\"a\""), large));
    ck_assert(wandb_values_set(&values, SLICE("\"b\""), large));
    ck_assert(!wandb_values_set(&values, SLICE("\"c\""), large));
    ck_assert(wandb_values_set(&values, SLICE("\"b\""), SLICE("1")));
    ck_assert(wandb_values_set(&values, SLICE("\"c\""), large));
    wandb_values_release(&values);
    free(text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("wandb_members");
    TCase *cases = tcase_create("members");
    tcase_add_test(cases, members_are_found);
    tcase_add_test(cases, objects_and_numbers);
    tcase_add_test(cases, later_values_win);
    tcase_add_test(cases, values_are_bounded);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

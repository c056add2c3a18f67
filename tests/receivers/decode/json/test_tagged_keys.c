// SPDX-License-Identifier: Apache-2.0
// The keys that every tagged line has: what is taken, what is handed on, what is refused.
#include "base/memory.h"
#include "receivers/decode/json/tagged_keys.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct arena arena;
static struct tagged_keys keys;
static struct event event;
static struct decode_fault fault;
static char others[1024]; // the keys that were handed on, each with a blank

static void setup(void) {
    arena_init(&arena, 4096);
}

static void teardown(void) {
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static enum decode_category read(struct slice object) {
    struct slice key;
    struct token value;
    char *copy = malloc(object.size == 0 ? 1 : object.size);
    if (object.size > 0)
        memcpy(copy, object.data, object.size);
    event = (struct event){0};
    fault = (struct decode_fault){0};
    others[0] = '\0';
    tagged_keys_begin(&keys, (struct slice){copy, object.size}, &arena);
    while (tagged_keys_next(&keys, &key, &value)) {
        strncat(others, key.data, key.size);
        strcat(others, " ");
    }
    enum decode_category category = tagged_keys_end(&keys, &event, &fault);
    if (category == DECODE_OK && keys.pod.data != NULL)
        keys.pod = arena_copy(&arena, keys.pod);
    free(copy);
    return category;
}

START_TEST(all_of_them) {
    ck_assert_int_eq(
        read(SLICE(" {\"source\":\"kmsg\",\"timestamp_ns\":1794992500482000001,"
                   "\"observed_time_ns\":7,\"k8s.node.name\":\"n\",\"host.name\":\"h\","
                   "\"k8s.pod.name\":\"p\\u0061\",\"k8s.namespace.name\":\"s\",\"rank\":3,"
                   "\"job_id\":\"j\",\"k8s.job.name\":\"k\",\"x\":{\"rank\":9},\"y\":[1]} ")),
        DECODE_OK);
    ck_assert_uint_eq(event.time_ns, UINT64_C(1794992500482000001));
    ck_assert_uint_eq(keys.time_ns, event.time_ns);
    ck_assert_uint_eq(keys.observed_ns, 7);
    ck_assert_uint_eq(event.node, intern_find(SLICE("n")));
    ck_assert_uint_eq(event.job, intern_find(SLICE("j")));
    ck_assert_int_eq(event.rank, 3);
    ck_assert(slice_equal(keys.pod, SLICE("pa")));
    ck_assert_uint_eq(keys.namespace.size, 1);
    ck_assert_str_eq(others, "x y ");
}
END_TEST

START_TEST(second_names_stand_in) {
    ck_assert_int_eq(read(SLICE("{\"host.name\":\"h\",\"observed_time_ns\":18446744073709551615,"
                                "\"k8s.job.name\":\"k\",\"k8s.node.name\":\"\",\"job_id\":null}")),
                     DECODE_OK);
    ck_assert_uint_eq(event.time_ns, UINT64_MAX);
    ck_assert_uint_eq(event.node, intern_find(SLICE("h")));
    ck_assert_uint_eq(event.job, intern_find(SLICE("k")));
    ck_assert_int_eq(event.rank, RANK_NONE);
    ck_assert_ptr_null(keys.pod.data);
}
END_TEST

START_TEST(the_last_of_a_repeated_key_counts) {
    ck_assert_int_eq(read(SLICE("{\"timestamp_ns\":1,\"rank\":1,\"host.name\":\"a\",\"rank\":null,"
                                "\"host.name\":\"b\",\"timestamp_ns\":2}")),
                     DECODE_OK);
    ck_assert_uint_eq(event.time_ns, 2);
    ck_assert_int_eq(event.rank, RANK_NONE);
    ck_assert_uint_eq(event.node, intern_find(SLICE("b")));
}
END_TEST

static const struct {
    const char *object;
    enum decode_category category;
    const char *field;
} WRONG[] = {
    {"", DECODE_NOT_OBJECT, ""},
    {"[]", DECODE_NOT_OBJECT, ""},
    {"{}", DECODE_MISSING_TIMESTAMP, "timestamp_ns"},
    {"{\"timestamp_ns\":null}", DECODE_MISSING_TIMESTAMP, "timestamp_ns"},
    {"{\"timestamp_ns\":0}", DECODE_OUT_OF_RANGE, "timestamp_ns"},
    {"{\"timestamp_ns\":-1}", DECODE_OUT_OF_RANGE, "timestamp_ns"},
    {"{\"observed_time_ns\":18446744073709551616}", DECODE_OUT_OF_RANGE, "observed_time_ns"},
    {"{\"timestamp_ns\":\"5\"}", DECODE_WRONG_TYPE, "timestamp_ns"},
    {"{\"timestamp_ns\":5.0}", DECODE_WRONG_TYPE, "timestamp_ns"},
    {"{\"timestamp_ns\":5,\"rank\":\"1\"}", DECODE_WRONG_TYPE, "rank"},
    {"{\"timestamp_ns\":5,\"rank\":-1}", DECODE_OUT_OF_RANGE, "rank"},
    {"{\"timestamp_ns\":5,\"rank\":2147483647}", DECODE_OUT_OF_RANGE, "rank"},
    {"{\"timestamp_ns\":5,\"k8s.pod.name\":5}", DECODE_WRONG_TYPE, "k8s.pod.name"},
    {"{\"timestamp_ns\":5,\"host.name\":[]}", DECODE_WRONG_TYPE, "host.name"},
    {"{\"timestamp_ns\":5,\"rank\":[]", DECODE_BAD_JSON, ""},
    {"{\"timestamp_ns\":5}x", DECODE_BAD_JSON, ""},
    {"{\"timestamp_ns\":5,}", DECODE_BAD_JSON, ""},
};

START_TEST(wrong_ones) {
    ck_assert_int_eq(read(slice_of(WRONG[_i].object)), WRONG[_i].category);
    ck_assert_str_eq(fault.field, WRONG[_i].field);
    ck_assert_str_ne(fault.detail, "");
    ck_assert_uint_eq(intern_count(), 0);
}
END_TEST

START_TEST(names_have_a_bound) {
    char object[512];
    snprintf(object, sizeof object, "{\"timestamp_ns\":5,\"k8s.node.name\":\"%0253d\"}", 0);
    ck_assert_int_eq(read(slice_of(object)), DECODE_OK);
    snprintf(object, sizeof object, "{\"timestamp_ns\":5,\"k8s.node.name\":\"%0254d\"}", 0);
    ck_assert_int_eq(read(slice_of(object)), DECODE_OUT_OF_RANGE);
    ck_assert_str_eq(fault.field, "k8s.node.name");
}
END_TEST

START_TEST(every_prefix_is_refused) {
    const char *object = "{\"timestamp_ns\":5,\"k8s.pod.name\":\"a\\u00e9\",\"x\":[{}],\"rank\":1}";
    for (size_t size = 0; size < strlen(object); size++) {
        enum decode_category category = read((struct slice){object, size});
        ck_assert_int_eq(category, size == 0 ? DECODE_NOT_OBJECT : DECODE_BAD_JSON);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tagged_keys");
    TCase *cases = tcase_create("keys");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, all_of_them);
    tcase_add_test(cases, second_names_stand_in);
    tcase_add_test(cases, the_last_of_a_repeated_key_counts);
    tcase_add_loop_test(cases, wrong_ones, 0, sizeof WRONG / sizeof *WRONG);
    tcase_add_test(cases, names_have_a_bound);
    tcase_add_test(cases, every_prefix_is_refused);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

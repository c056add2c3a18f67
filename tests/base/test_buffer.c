// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"
#include "base/memory.h"

#include <check.h>
#include <stdlib.h>

static struct buffer buffer;

static void teardown(void) {
    buffer_release(&buffer);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define CHECK_BYTES(expected)                                                                      \
    ck_assert_msg(slice_equal(buffer_slice(&buffer), SLICE(expected)), "it holds %.*s",            \
                  (int)buffer.size, buffer.data)

START_TEST(numbers) {
    buffer_init(&buffer, 1000);
    buffer_append_uint(&buffer, 0);
    buffer_append_char(&buffer, ' ');
    buffer_append_uint(&buffer, UINT64_MAX);
    buffer_append_char(&buffer, ' ');
    buffer_append_int(&buffer, INT64_MIN);
    buffer_append_char(&buffer, ' ');
    buffer_append_int(&buffer, 42);
    buffer_append_char(&buffer, ' ');
    buffer_append_int128(&buffer, -((__int128)1 << 126) * 2);
    buffer_append_char(&buffer, ' ');
    buffer_append_int128(&buffer, 0);
    buffer_append_char(&buffer, ' ');
    buffer_append_int128(&buffer, UINT64_MAX);
    buffer_append_char(&buffer, ' ');
    buffer_append_int128(&buffer, (__int128)UINT64_MAX + 1);
    ck_assert(buffer_finish(&buffer));
    CHECK_BYTES(
        "0 18446744073709551615 -9223372036854775808 42 "
        "-170141183460469231731687303715884105728 0 18446744073709551615 18446744073709551616");
}
END_TEST

START_TEST(format_short_and_long) {
    buffer_init(&buffer, 4096);
    buffer_append_format(&buffer, "%d-%s;", 7, "x");
    CHECK_BYTES("7-x;");
    buffer_append_format(&buffer, "%0511d", 1);
    buffer_append_format(&buffer, "%0512d", 2);
    buffer_append_format(&buffer, "%02000d", 3);
    ck_assert(buffer_finish(&buffer));
    ck_assert_uint_eq(buffer.size, 4 + 511 + 512 + 2000);
    ck_assert_int_eq(buffer.data[4 + 510], '1');
    ck_assert_int_eq(buffer.data[4 + 511 + 511], '2');
    ck_assert_int_eq(buffer.data[buffer.size - 1], '3');
}
END_TEST

START_TEST(maximum_is_sticky) {
    buffer_init(&buffer, 5);
    buffer_append_text(&buffer, "12345");
    ck_assert(buffer_finish(&buffer));
    buffer_append(&buffer, (struct slice){NULL, 0});
    ck_assert(!buffer.failed);
    buffer_append_char(&buffer, '6');
    ck_assert(buffer.failed);
    ck_assert(!buffer_finish(&buffer));
    buffer_append(&buffer, SLICE(""));
    CHECK_BYTES("12345");
    buffer_reset(&buffer);
    buffer_append_text(&buffer, "ab");
    ck_assert(buffer_finish(&buffer));
    CHECK_BYTES("ab");
}
END_TEST

START_TEST(growth_keeps_bytes) {
    buffer_init(&buffer, 100000);
    for (unsigned i = 0; i < 100000; i++)
        buffer_append_char(&buffer, (char)('a' + i % 23));
    ck_assert(buffer_finish(&buffer));
    ck_assert_uint_eq(buffer.size, 100000);
    for (unsigned i = 0; i < 100000; i++)
        ck_assert_int_eq(buffer.data[i], 'a' + (int)(i % 23));
    ck_assert_uint_le(buffer.capacity, 100000);
}
END_TEST

struct sink {
    char bytes[4096];
    size_t size;
    size_t largest;
    unsigned calls;
    unsigned fail_at; // the call that fails; 0: none
};

static bool sink_take(void *context, struct slice bytes) {
    struct sink *sink = context;
    if (++sink->calls == sink->fail_at)
        return false;
    ck_assert_uint_le(sink->size + bytes.size, sizeof sink->bytes);
    memcpy(sink->bytes + sink->size, bytes.data, bytes.size);
    sink->size += bytes.size;
    if (bytes.size > sink->largest)
        sink->largest = bytes.size;
    return true;
}

START_TEST(room_is_made_in_one_step) {
    buffer_init(&buffer, 5000);
    buffer_append_char(&buffer, 'x');
    buffer_reserve(&buffer, 3000);
    const char *before = buffer.data;
    for (int i = 0; i < 3000; i++)
        buffer_append_char(&buffer, 'y');
    ck_assert_ptr_eq(buffer.data, before);
    ck_assert_uint_eq(buffer.size, 3001);
    buffer_reserve(&buffer, SIZE_MAX); // more than it may hold
    ck_assert(!buffer.failed);
    ck_assert_uint_eq(buffer.capacity, 5000);
}
END_TEST

START_TEST(drain_takes_blocks) {
    struct sink sink = {0};
    buffer_init_drained(&buffer, 10, sink_take, &sink);
    for (int i = 0; i < 25; i++)
        buffer_append_char(&buffer, (char)('a' + i));
    ck_assert_uint_eq(sink.calls, 2);
    buffer_append_text(&buffer, "-a text longer than a block-");
    buffer_append_text(&buffer, "end");
    ck_assert(buffer_finish(&buffer));
    ck_assert(slice_equal((struct slice){sink.bytes, sink.size},
                          SLICE("abcdefghijklmnopqrstuvwxy-a text longer than a block-end")));
    ck_assert_uint_le(buffer.capacity, 10);
    ck_assert_uint_eq(buffer.size, 0);
    unsigned calls = sink.calls;
    ck_assert(buffer_finish(&buffer));
    ck_assert_uint_eq(sink.calls, calls);
}
END_TEST

START_TEST(drain_that_fails) {
    struct sink sink = {.fail_at = 2};
    buffer_init_drained(&buffer, 4, sink_take, &sink);
    for (int i = 0; i < 40; i++)
        buffer_append_char(&buffer, 'x');
    ck_assert(!buffer_finish(&buffer));
    ck_assert_uint_eq(sink.size, 4);
    ck_assert_uint_eq(sink.calls, 2);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("buffer");
    TCase *cases = tcase_create("buffer");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_test(cases, numbers);
    tcase_add_test(cases, format_short_and_long);
    tcase_add_test(cases, maximum_is_sticky);
    tcase_add_test(cases, growth_keeps_bytes);
    tcase_add_test(cases, room_is_made_in_one_step);
    tcase_add_test(cases, drain_takes_blocks);
    tcase_add_test(cases, drain_that_fails);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

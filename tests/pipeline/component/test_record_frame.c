// SPDX-License-Identifier: Apache-2.0
// Frames come out as they went in, and nothing that is not whole is one.
#include "pipeline/component/record_frame.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct buffer out;

static void setup(void) {
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    buffer_release(&out);
}

static struct record_frame some_frame(void) {
    struct record_frame frame = {.sequence = UINT64_C(0x0102030405060708), .value = {"\0a\nb", 4}};
    record_frame_add(&frame, RECORD_JOB, SLICE("job"));
    record_frame_add(&frame, RECORD_NODE, SLICE(""));
    return frame;
}

START_TEST(comes_out_as_it_went_in) {
    struct record_frame frame = some_frame(), read;
    for (int i = 0; i < 3; i++) {
        frame.key = i == 0 ? (struct slice){NULL, 0} : i == 1 ? SLICE("") : SLICE("key");
        buffer_reset(&out);
        record_frame_write(&frame, &out);
        record_frame_write(&frame, &out);
        struct slice bytes = buffer_slice(&out), skipped = bytes;
        for (int j = 0; j < 2; j++) {
            ck_assert(record_frame_read(&bytes, &read) && record_frame_skip(&skipped));
            ck_assert_ptr_eq(bytes.data, skipped.data);
            ck_assert_uint_eq(read.sequence, frame.sequence);
            ck_assert_int_eq(read.key.data == NULL, i == 0);
            ck_assert(slice_equal(read.key, frame.key) && slice_equal(read.value, frame.value));
            ck_assert_uint_eq(read.header_count, 2);
            ck_assert(slice_equal(read.headers[0].name, SLICE(RECORD_JOB)));
            ck_assert(slice_equal(read.headers[0].value, SLICE("job")));
            ck_assert_uint_eq(read.headers[1].value.size, 0);
        }
        ck_assert_uint_eq(bytes.size, 0);
    }
}
END_TEST

// What does not fit what is put together first, at each place of its end.
START_TEST(long_headers) {
    static char text[3000];
    memset(text, 'h', sizeof text);
    for (size_t size = 0; size <= sizeof text; size += size < 900 || size > 1100 ? 100 : 1) {
        struct record_frame frame = {.sequence = 1, .key = {text, size}, .value = SLICE("value")};
        record_frame_add(&frame, RECORD_PATH, (struct slice){text, size});
        record_frame_add(&frame, RECORD_JOB, SLICE("job"));
        record_frame_add(&frame, RECORD_NODE, (struct slice){text, size});
        buffer_reset(&out);
        record_frame_write(&frame, &out);
        struct slice bytes = buffer_slice(&out);
        struct record_frame read;
        ck_assert(record_frame_read(&bytes, &read));
        ck_assert_uint_eq(bytes.size, 0);
        ck_assert(slice_equal(read.key, frame.key) && slice_equal(read.value, frame.value));
        ck_assert_uint_eq(read.header_count, 3);
        for (uint32_t i = 0; i < 3; i++)
            ck_assert(slice_equal(read.headers[i].name, frame.headers[i].name) &&
                      slice_equal(read.headers[i].value, frame.headers[i].value));
    }
}
END_TEST

// The layout is what other programs read: it does not change.
START_TEST(layout) {
    struct record_frame frame = {.sequence = 2, .value = SLICE("v")};
    record_frame_add(&frame, "n", SLICE("x"));
    record_frame_write(&frame, &out);
    static const char wanted[] =
        "\x1f\0\0\0"
        "\2\0\0\0\0\0\0\0"
        "\xff\xff\xff\xff"
        "\1\0\0\0"
        "\1\0\0\0n"
        "\1\0\0\0x"
        "\1\0\0\0v";
    ck_assert_uint_eq(out.size, sizeof wanted - 1);
    ck_assert_mem_eq(out.data, wanted, sizeof wanted - 1);
}
END_TEST

START_TEST(what_is_not_whole_is_refused) {
    struct record_frame frame = some_frame(), read;
    record_frame_write(&frame, &out);
    for (size_t size = 0; size < out.size; size++) {
        char *copy = malloc(size + 1); // so that a read behind it is found
        memcpy(copy, out.data, size);
        struct slice bytes = {copy, size};
        ck_assert(!record_frame_read(&bytes, &read) && !record_frame_skip(&bytes));
        ck_assert(bytes.data == copy && bytes.size == size);
        free(copy);
    }
    // Each byte of the numbers changed: never beyond the frame.
    for (size_t i = 0; i < out.size; i++) {
        char *copy = malloc(out.size);
        memcpy(copy, out.data, out.size);
        copy[i] = (char)(copy[i] ^ 0x80);
        struct slice bytes = {copy, out.size};
        if (record_frame_read(&bytes, &read))
            ck_assert(read.value.data + read.value.size == copy + out.size);
        free(copy);
    }
}
END_TEST

START_TEST(number_0_is_none) {
    static const char zero[] =
        "\x14\0\0\0"
        "\0\0\0\0\0\0\0\0"
        "\xff\xff\xff\xff"
        "\0\0\0\0"
        "\0\0\0\0";
    struct slice bytes = {zero, sizeof zero - 1};
    struct record_frame read;
    ck_assert(!record_frame_read(&bytes, &read));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("record_frame");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, comes_out_as_it_went_in);
    tcase_add_test(tests, long_headers);
    tcase_add_test(tests, layout);
    tcase_add_test(tests, what_is_not_whole_is_refused);
    tcase_add_test(tests, number_0_is_none);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

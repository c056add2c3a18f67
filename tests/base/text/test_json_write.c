// SPDX-License-Identifier: Apache-2.0
// Expected texts are what Python's json.dumps prints for the same values.
#include "base/text/json_write.h"

#include <check.h>
#include <math.h>

static struct buffer out;
static struct json_writer json;

static void setup(void) {
    buffer_init(&out, 1 << 20);
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

// json.dumps(document, indent=indent, separators=(",", ":") when compact)
static void document_write(unsigned indent) {
    json_begin(&json, &out, indent);
    json_object_open(&json);
    json_key(&json, "empty list");
    json_array_open(&json);
    json_array_close(&json);
    json_key(&json, "empty object");
    json_object_open(&json);
    json_object_close(&json);
    json_key(&json, "list");
    json_array_open(&json);
    json_int(&json, -1);
    json_array_open(&json);
    json_put_null(&json);
    json_array_close(&json);
    json_object_open(&json);
    json_key_slice(&json, SLICE("k\n"));
    json_bool(&json, true);
    json_key(&json, "");
    json_bool(&json, false);
    json_object_close(&json);
    json_array_open(&json);
    json_array_close(&json);
    json_array_close(&json);
    json_key(&json, "raw");
    json_raw(&json, SLICE("1.5e3"));
    json_key(&json, "text");
    json_text(&json, "a/b");
    json_object_close(&json);
}

START_TEST(compact) {
    document_write(0);
    CHECK_OUT(
        "{\"empty list\":[],\"empty object\":{},\"list\":[-1,[null],{\"k\\n\":true,\"\":false}"
        ",[]],\"raw\":1.5e3,\"text\":\"a/b\"}");
}
END_TEST

START_TEST(indented) {
    document_write(2);
    CHECK_OUT(
        "{\n"
        "  \"empty list\": [],\n"
        "  \"empty object\": {},\n"
        "  \"list\": [\n"
        "    -1,\n"
        "    [\n"
        "      null\n"
        "    ],\n"
        "    {\n"
        "      \"k\\n\": true,\n"
        "      \"\": false\n"
        "    },\n"
        "    []\n"
        "  ],\n"
        "  \"raw\": 1.5e3,\n"
        "  \"text\": \"a/b\"\n"
        "}");
}
END_TEST

START_TEST(lone_values) {
    json_begin(&json, &out, 2);
    json_array_open(&json);
    json_array_close(&json);
    CHECK_OUT("[]");
    json_begin(&json, &out, 4);
    json_text(&json, "");
    CHECK_OUT("\"\"");
}
END_TEST

START_TEST(numbers) {
    json_begin(&json, &out, 0);
    json_array_open(&json);
    json_int(&json, 0);
    json_int(&json, INT64_MIN);
    json_int(&json, INT64_MAX);
    json_uint(&json, UINT64_MAX);
    json_int128(&json, (__int128)UINT64_MAX * 10);
    json_int128(&json, -((__int128)1 << 126) * 2);
    json_array_close(&json);
    CHECK_OUT(
        "[0,-9223372036854775808,9223372036854775807,18446744073709551615,"
        "184467440737095516150,-170141183460469231731687303715884105728]");
}
END_TEST

struct text_case {
    struct slice text;
    const char *written;
};

static const struct text_case text_cases[] = {
    {{"\"\\/", 3}, "\"\\\"\\\\/\""},
    {{"\b\f\n\r\t", 5}, "\"\\b\\f\\n\\r\\t\""},
    {{"\0\x01\x1f ~\x7f", 6}, "\"\\u0000\\u0001\\u001f ~\\u007f\""},
    {{"\xc2\x80\xc3\xa9\xdf\xbf", 6}, "\"\\u0080\\u00e9\\u07ff\""},
    {{"\xe0\xa0\x80\xe2\x80\xa8\xef\xbf\xbf", 9}, "\"\\u0800\\u2028\\uffff\""},
    {{"\xf0\x90\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf", 12},
     "\"\\ud800\\udc00\\ud83d\\ude00\\udbff\\udfff\""},
    {{"\xed\xa0\x80|\xed\xbf\xbf", 7}, "\"\\ud800|\\udfff\""}, // lone surrogates, kept
    {{"a\x80z", 3}, "\"a\\ufffdz\""},                          // continuation without a lead
    {{"\xc3", 1}, "\"\\ufffd\""},                              // cut short
    {{"\xe2\x82", 2}, "\"\\ufffd\\ufffd\""},
    {{"\xc3(", 2}, "\"\\ufffd(\""},
    {{"\xc0\xaf", 2}, "\"\\ufffd\\ufffd\""}, // not the shortest form
    {{"\xe0\x80\xaf", 3}, "\"\\ufffd\\ufffd\\ufffd\""},
    {{"\xf0\x80\x80\xaf", 4}, "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
    {{"\xf4\x90\x80\x80", 4}, "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, // above U+10FFFF
    {{"\xff\xfe", 2}, "\"\\ufffd\\ufffd\""},
};
enum { TEXT_CASES = sizeof text_cases / sizeof text_cases[0] };

START_TEST(texts) {
    json_append_string(&out, text_cases[_i].text);
    CHECK_OUT(text_cases[_i].written);
}
END_TEST

START_TEST(doubles) {
    static const struct {
        double value;
        const char *expected;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {1700000000.0, "1700000000.0"},
        {1700000011.997045, "1700000011.997045"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {-2.5, "-2.5"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.00001, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {1e15, "1000000000000000.0"},
        {1234567890123456.5, "1234567890123456.5"},
        {9007199254740992.0, "9007199254740992.0"},
        {1e16, "1e+16"},
        {12345678901234568.0, "1.2345678901234568e+16"},
        {1e22, "1e+22"},
        {1e100, "1e+100"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {5e-324, "5e-324"},
        {335.74045181274414, "335.74045181274414"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
        {NAN, "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_begin(&json, &out, 0);
        json_double(&json, cases[i].value);
        CHECK_OUT(cases[i].expected);
    }
}
END_TEST

START_TEST(deepest) {
    json_begin(&json, &out, 0);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        json_array_open(&json);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        json_array_close(&json);
    CHECK_OUT("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
}
END_TEST

START_TEST(failed_buffer_stays_failed) {
    struct buffer small;
    buffer_init(&small, 8);
    json_begin(&json, &small, 0);
    json_array_open(&json);
    json_text(&json, "longer than eight bytes");
    json_array_close(&json);
    ck_assert(!buffer_finish(&small));
    buffer_release(&small);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("json_write");
    TCase *cases = tcase_create("json_write");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, compact);
    tcase_add_test(cases, indented);
    tcase_add_test(cases, lone_values);
    tcase_add_test(cases, numbers);
    tcase_add_loop_test(cases, texts, 0, TEXT_CASES);
    tcase_add_test(cases, doubles);
    tcase_add_test(cases, deepest);
    tcase_add_test(cases, failed_buffer_stays_failed);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

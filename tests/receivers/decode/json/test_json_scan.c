// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"
#include "tests/receivers/decode/decode_support.h"

#include <jansson.h>

static struct guarded guarded;

static void setup(void) {
    guarded = guarded_open(1 << 16);
}

static void teardown(void) {
    guarded_close(&guarded);
}

// One whole value with white space around it, at the end of a page.
static bool scan(struct slice text, struct token *token, struct json_fault *fault) {
    struct slice placed = guarded_put(&guarded, text);
    const char *end = placed.data + placed.size;
    const char *at = json_scan_value(json_skip_space(placed.data, end), end, 0, token, fault);
    if (at == NULL)
        return false;
    ck_assert(at <= end);
    return json_skip_space(at, end) == end;
}

static bool accepts(struct slice text) {
    struct token token;
    struct json_fault fault = {0};
    return scan(text, &token, &fault);
}

START_TEST(what_is_json) {
    static const char *const texts[] = {
        "0",
        "-0",
        "-1",
        "10",
        "9223372036854775807",
        "1.5",
        "1e5",
        "1E+5",
        "1e-5",
        "0.0",
        "-0.0e0",
        "123456789012345678901234567890",
        "null",
        "true",
        "false",
        "NaN",
        "Infinity",
        "-Infinity",
        "\"\"",
        "\"a\"",
        "\"\\u0000\\ud800\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,2]",
        "[[],{},[{}]]",
        "{\"a\":1,\"a\":2}",
        " \t\r\n[ 1 , {\"b\" : [ ] } ]\n",
        "\"0123456789abcdef\"",
        "\"0123456789abcdef0123456789abcdef\"",
        "{\"\":{\"\":\"\"}}",
        "\"\x7f\"",
        "\"\xc2\x80\"",
        "\"\xdf\xbf\"",
        "\"\xe0\xa0\x80\"",
        "\"\xed\x9f\xbf\"",
        "\"\xee\x80\x80\"",
        "\"\xf0\x90\x80\x80\"",
        "\"\xf4\x8f\xbf\xbf\"",
        "\"\xef\xbb\xbf\"",
        "[1.0,2e3 ,-4 ]",
        "[12345678,123456789012345 ,1234567890123456]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(accepts(slice_of(texts[i])), "%s", texts[i]);
}
END_TEST

START_TEST(what_is_not_json) {
    static const char *const texts[] = {
        "",
        " ",
        "01",
        "-01",
        "00",
        "-",
        "+1",
        ".5",
        "1.",
        "1.e5",
        "1e",
        "1e+",
        "0x1",
        "1 2",
        "nul",
        "nulll",
        "True",
        "nan",
        "-NaN",
        "+Infinity",
        "Infinit",
        "\"",
        "\"a",
        "\"\\",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\x41\"",
        "\"\\U0041\"",
        "\"\\'\"",
        "'a'",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\x01\"",
        "\"\x1f\"",
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,\"a\":1}",
        "{\"a\" 1}",
        "{a:1}",
        "{1:2}",
        "{\"a\":1]",
        "[]]",
        "{}}",
        "{\"a\":1 \"b\":2}",
        "\xef\xbb\xbf{}",
        "\v1",
        "\f1",
        "1\v",
        "\xc2\xa0"
        "1",
        "\"\x80\"",
        "\"\xbf\"",
        "\"\xc0\xaf\"",
        "\"\xc1\xbf\"",
        "\"\xc2\"",
        "\"\xc2"
        "a\"",
        "\"\xe0\x9f\xbf\"",
        "\"\xed\xa0\x80\"",
        "\"\xed\xbf\xbf\"",
        "\"\xe2\x82\"",
        "\"\xf0\x8f\xbf\xbf\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xf5\x80\x80\x80\"",
        "\"\xff\"",
        "\"\xf0\x90\x80\"",
        "\"0123456789abcde\x80\"",
        "\"0123456789abcdef\x1f\"",
        "[1e]",
        "/**/1",
        "\xc2",
        "\xed\xa0\x80",
        "[012]",
        "[-]",
        "[1.2.3]",
        "[--1]",
        "[12345678901234567890.]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(!accepts(slice_of(texts[i])), "%s", texts[i]);
    ck_assert(!accepts((struct slice){"1\0", 2}));
    ck_assert(!accepts((struct slice){"\"\0\"", 3}));
    ck_assert(!accepts((struct slice){"[\0]", 3}));
}
END_TEST

START_TEST(a_fault_says_where) {
    static const struct {
        const char *text;
        size_t at;
    } cases[] = {
        {"[1,2,x]", 5},   {"{\"a\":01}", 5}, {"\"ab\ncd\"", 3}, {"{\"a\":1,}", 7},
        {"[\"\\q\"]", 2}, {"[1", 2},         {"\"abc", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct token token;
        struct json_fault fault = {0};
        ck_assert(!scan(slice_of(cases[i].text), &token, &fault));
        const char *start = guarded.pages + guarded.size - strlen(cases[i].text);
        ck_assert_msg((size_t)(fault.at - start) == cases[i].at, "%s: %td", cases[i].text,
                      fault.at - start);
        ck_assert_uint_gt(strlen(fault.why), 0);
    }
}
END_TEST

// `depth` containers in one another, of the kinds that the bits of `objects` say.
static struct slice nested(unsigned depth, uint64_t objects) {
    static char text[2048];
    size_t size = 0;
    for (unsigned i = 0; i < depth; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s",
                                 (objects >> i % 64 & 1) != 0 ? "{\"k\":" : "[");
    text[size++] = '1';
    for (unsigned i = depth; i-- > 0;)
        text[size++] = (objects >> i % 64 & 1) != 0 ? '}' : ']';
    return (struct slice){text, size};
}

START_TEST(nesting_is_bounded) {
    static const uint64_t kinds[] = {0, UINT64_MAX, UINT64_C(0xaaaaaaaaaaaaaaaa),
                                     UINT64_C(0x123456789abcdef0)};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ck_assert(accepts(nested(1, kinds[i])));
        ck_assert(accepts(nested(63, kinds[i])));
        ck_assert(accepts(nested(64, kinds[i])));
        ck_assert(!accepts(nested(65, kinds[i])));
        ck_assert(!accepts(nested(300, kinds[i])));
    }
    // The closing bracket must be that of the innermost one, at every depth.
    struct slice deep = nested(64, UINT64_C(0x123456789abcdef0));
    char *copy = memory_copy_text(deep.data, deep.size);
    for (size_t at = deep.size - 64; at < deep.size; at++) {
        copy[at] = copy[at] == '}' ? ']' : '}';
        ck_assert(!accepts((struct slice){copy, deep.size}));
        copy[at] = copy[at] == '}' ? ']' : '}';
    }
    memory_give(copy);
}
END_TEST

static void check_number(const char *digits, enum token_kind kind, uint64_t bits) {
    // With a comma right behind and room for whole blocks, and at the very end of the text.
    char roomy[128];
    snprintf(roomy, sizeof roomy, "[%s,\"some text behind the number\"]", digits);
    struct slice placed = guarded_put(&guarded, slice_of(roomy));
    struct token token;
    struct json_fault fault;
    const char *end = placed.data + placed.size;
    ck_assert_ptr_nonnull(json_scan_number(placed.data + 1, end, &token, &fault));
    for (unsigned pass = 0; pass < 2; pass++) {
        ck_assert_msg(token.kind == kind, "%s has kind %u", digits, token.kind);
        assert_text(token_slice(&token), digits);
        if (kind == TOKEN_INTEGER || kind == TOKEN_UNSIGNED)
            ck_assert_uint_eq((uint64_t)token.integer, bits);
        ck_assert(scan(slice_of(digits), &token, &fault));
    }
}

START_TEST(integers_of_every_length) {
    char text[64];
    uint64_t value = 0;
    for (unsigned length = 1; length <= 19; length++) {
        value = value * 10 + length % 10;
        snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        ck_assert_uint_eq(strlen(text), length);
        check_number(text, TOKEN_INTEGER, value);
        snprintf(text, sizeof text, "-%llu", (unsigned long long)value);
        check_number(text, TOKEN_INTEGER, 0 - value);
    }
    check_number("0", TOKEN_INTEGER, 0);
    check_number("-0", TOKEN_INTEGER, 0);
    check_number("9223372036854775807", TOKEN_INTEGER, INT64_MAX);
    check_number("9223372036854775808", TOKEN_UNSIGNED, UINT64_C(1) << 63);
    check_number("9999999999999999999", TOKEN_UNSIGNED, UINT64_C(9999999999999999999));
    check_number("18446744073709551615", TOKEN_UNSIGNED, UINT64_MAX);
    check_number("18446744073709551616", TOKEN_HUGE, 0);
    check_number("100000000000000000000000000000000000", TOKEN_HUGE, 0);
    check_number("-9223372036854775808", TOKEN_INTEGER, UINT64_C(1) << 63);
    check_number("-9223372036854775809", TOKEN_HUGE, 0);
    check_number("-18446744073709551616", TOKEN_HUGE, 0);
    check_number("12.5", TOKEN_DECIMAL, 0);
    check_number("123456789012e3", TOKEN_DECIMAL, 0);
    check_number("1234567890123456789E3", TOKEN_DECIMAL, 0);
}
END_TEST

static bool has(const char *text, size_t size, const char *part) {
    return memmem(text, size, part, strlen(part)) != NULL;
}

// What Python's json accepts and jansson does not, by what the text holds.
static bool beyond_jansson(struct slice text, const json_error_t *error) {
    switch (json_error_code(error)) {
    case json_error_numeric_overflow: // integers beyond int64, decimals beyond double
        return true;
    case json_error_invalid_syntax: // a lone surrogate, or a word that it does not know
        return has(text.data, text.size, "\\ud") || has(text.data, text.size, "\\uD") ||
               has(text.data, text.size, "NaN") || has(text.data, text.size, "Infinity");
    default:
        return false;
    }
}

static void check_against_jansson(struct slice text, unsigned *accepted) {
    json_error_t error;
    struct token token;
    struct json_fault fault;
    json_t *theirs = json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    bool ours = scan(text, &token, &fault);
    *accepted += ours;
    if (theirs != NULL)
        ck_assert_msg(ours, "jansson accepts %.*s", (int)text.size, text.data);
    else if (ours)
        ck_assert_msg(beyond_jansson(text, &error), "jansson says %s to %.*s", error.text,
                      (int)text.size, text.data);
    if (theirs != NULL && json_is_integer(theirs)) {
        ck_assert_uint_eq(token.kind, TOKEN_INTEGER);
        ck_assert_int_eq(token.integer, json_integer_value(theirs));
    }
    if (theirs != NULL && json_is_string(theirs)) {
        struct arena arena;
        arena_init(&arena, 4096);
        struct slice expected = {json_string_value(theirs), json_string_length(theirs)};
        ck_assert_msg(slice_equal(token_decode(&token, &arena), expected), "%.*s", (int)text.size,
                      text.data);
        arena_release(&arena);
    }
    json_decref(theirs);
}

static const char *const pieces[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\"a\"",
    "\"key\"",
    " ",
    "\n",
    "\t",
    "0",
    "-",
    "1",
    "12.5",
    "e5",
    "E-3",
    "null",
    "true",
    "false",
    "NaN",
    "Infinity",
    "\\",
    "\\n",
    "\\u0041",
    "\\ud83d",
    "\\ude00",
    "\\u00",
    "\xc3\xa9",
    "\xf0\x9f\x98\x80",
    "\xed\xa0\x80",
    "\xff",
    "\x01",
    "\x7f",
    "abcdefghijklmnop",
    "12345678901234567",
    "9223372036854775808",
    "{\"a\":[1,2,{\"b\":null}]}",
    "\"\\ud83d\\ude00\"",
    "\"\\u0000\"",
    "\"text with \\\"quotes\\\" in it\"",
    "[]",
    "{}",
    "-0",
};

START_TEST(mutated_text_against_jansson) {
    static const char seeds[][160] = {
        "{\"a\":1,\"b\":[true,false,null],\"c\":{\"d\":\"e\\u0041\\n\"},\"f\":-12.5e3}",
        "[1, 22, 333, 4444, 123456789012, 1760000000000000000, -9223372036854775808]",
        "\"a string with \\ud83d\\ude00 and \xc3\xa9 and plain text behind it all\"",
        "-1760000000000000000",
        "{\"deep\": [[[[[[{\"x\": [{}, [], \"\"]}]]]]]]}",
    };
    uint64_t state = UINT64_C(0x2545f4914f6cdd1d);
    unsigned accepted = 0;
    for (unsigned round = 0; round < 60000; round++) {
        char text[1024];
        const char *from = seeds[random_next(&state) % (sizeof seeds / sizeof *seeds)];
        size_t size = strlen(from);
        memcpy(text, from, size);
        for (uint64_t left = random_next(&state) % 4; left > 0; left--) {
            const char *piece = pieces[random_next(&state) % (sizeof pieces / sizeof *pieces)];
            size_t length = strlen(piece), at = random_next(&state) % (size + 1);
            size_t gone = random_next(&state) % 3;
            gone = gone > size - at ? size - at : gone;
            memmove(text + at + length, text + at + gone, size - at - gone);
            memcpy(text + at, piece, length);
            size = size - gone + length;
        }
        check_against_jansson((struct slice){text, size}, &accepted);
    }
    ck_assert_uint_gt(accepted, 15000);
    ck_assert_uint_lt(accepted, 50000);
}
END_TEST

START_TEST(texts_built_from_pieces_against_jansson) {
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    unsigned accepted = 0;
    for (unsigned round = 0; round < 60000; round++) {
        char text[1024];
        size_t size = 0;
        for (uint64_t left = random_next(&state) % 7; left > 0; left--) {
            const char *piece = pieces[random_next(&state) % (sizeof pieces / sizeof *pieces)];
            memcpy(text + size, piece, strlen(piece));
            size += strlen(piece);
        }
        check_against_jansson((struct slice){text, size}, &accepted);
    }
    ck_assert_uint_gt(accepted, 500);
}
END_TEST

START_TEST(members_one_by_one) {
    const char *text = " {\"a\" : 1, \"b\\u0063\":[2,3] ,\"a\":\"x\"}";
    const char *end = text + strlen(text), *at = json_skip_space(text, end);
    struct json_members members = {.first = true};
    struct token key, value;
    struct json_fault fault;
    static const char *const keys[] = {"a", "bc", "a"};
    static const char *const values[] = {"1", "[2,3]", "x"};
    for (unsigned i = 0; i < 3; i++) {
        at = json_next_member(&members, at, end, &key, &fault);
        ck_assert_ptr_nonnull(at);
        ck_assert(!members.done);
        ck_assert(token_equals(&key, slice_of(keys[i])));
        at = json_scan_value(at, end, 1, &value, &fault);
        ck_assert_ptr_nonnull(at);
        assert_text(token_slice(&value), values[i]);
    }
    at = json_next_member(&members, at, end, &key, &fault);
    ck_assert(members.done);
    ck_assert_ptr_eq(at, end);
}
END_TEST

START_TEST(text_functions) {
    struct token plain = {.text = "metadata_x", .size = 10, .kind = TOKEN_STRING};
    struct token escaped = {
        .text = "m\\u0065tadata_\\ud83d\\ude00", .size = 26, .kind = TOKEN_STRING, .escaped = 1};
    ck_assert(token_starts_with(&plain, SLICE("metadata_")));
    ck_assert(token_starts_with(&escaped, SLICE("metadata_")));
    ck_assert(!token_starts_with(&escaped, SLICE("metadatax")));
    ck_assert(!token_starts_with(&plain, SLICE("metadata_xy")));
    ck_assert(token_equals(&escaped, SLICE("metadata_\xf0\x9f\x98\x80")));
    ck_assert(!token_equals(&escaped, SLICE("metadata_")));
    ck_assert(!token_equals(&plain, SLICE("metadata_y")));
    assert_text(text_strip(SLICE(" \xe2\x80\x83 a b\x1f")), "a b");
    ck_assert_uint_eq(text_strip(SLICE(" \t")).size, 0);
    ck_assert_uint_eq(text_strip(SLICE("")).size, 0);
    assert_text(text_strip(SLICE("\xed\xa0\x80 ")), "\xed\xa0\x80");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("json_scan");
    TCase *tcase = tcase_create("text");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_is_json);
    tcase_add_test(tcase, what_is_not_json);
    tcase_add_test(tcase, a_fault_says_where);
    tcase_add_test(tcase, nesting_is_bounded);
    tcase_add_test(tcase, integers_of_every_length);
    tcase_add_test(tcase, mutated_text_against_jansson);
    tcase_add_test(tcase, texts_built_from_pieces_against_jansson);
    tcase_add_test(tcase, members_one_by_one);
    tcase_add_test(tcase, text_functions);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

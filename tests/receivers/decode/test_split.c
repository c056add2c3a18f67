// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/split.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { OUT_MAX = 1 << 16 };

// What the splitter made of a document that came in pieces: records joined by "|".
struct outcome {
    char out[OUT_MAX];
    size_t size;
    const char *end; // splitter_end
    enum split_step last;
    uint64_t item;
    uint64_t fault_at;
    char summary[256];
};

static void put(struct outcome *outcome, struct slice text) {
    ck_assert_uint_lt(outcome->size + text.size + 2, OUT_MAX);
    memcpy(outcome->out + outcome->size, text.data, text.size);
    outcome->size += text.size;
    outcome->out[outcome->size++] = '|';
    outcome->out[outcome->size] = '\0';
}

// Gives the document in pieces that end at `cuts`; each window is a fresh copy, so that reading
// outside of it or keeping pointers into it shows.
static void split_in_pieces(struct outcome *outcome, enum format_layout layout,
                            struct slice document, const size_t *cuts, size_t cut_count,
                            size_t record_max) {
    memset(outcome, 0, sizeof *outcome);
    struct splitter split;
    splitter_begin(&split, layout, record_max);
    size_t kept_from = 0;
    enum split_step step = SPLIT_MORE;
    for (size_t piece = 0; piece <= cut_count && step != SPLIT_FAULT; piece++) {
        size_t end = piece < cut_count ? cuts[piece] : document.size;
        size_t size = end - kept_from;
        char *copy = malloc(size == 0 ? 1 : size);
        memcpy(copy, document.data + kept_from, size);
        struct slice window = {copy, size}, record = {NULL, 0};
        while ((step = splitter_next(&split, window, &record)) != SPLIT_MORE &&
               step != SPLIT_FAULT) {
            if (step == SPLIT_EMPTY)
                record = SLICE("(empty)");
            put(outcome, step == SPLIT_TOO_LONG ? SLICE("(long)") : record);
        }
        if (step == SPLIT_MORE) {
            size_t used = splitter_used(&split);
            kept_from += used;
            splitter_drop(&split, used);
            ck_assert_uint_le(end - kept_from, record_max);
        }
        free(copy);
    }
    outcome->last = step;
    outcome->end = splitter_end(&split);
    outcome->item = split.item;
    outcome->fault_at = split.fault_at;
    snprintf(outcome->summary, sizeof outcome->summary, "%.*s", (int)split.summary.size,
             split.summary.size == 0 ? "" : split.summary.data);
}

static struct outcome *whole(enum format_layout layout, const char *text) {
    static struct outcome outcome;
    split_in_pieces(&outcome, layout, slice_of(text), NULL, 0, 1000);
    return &outcome;
}

// The same records wherever the document is cut in two, and when it comes byte by byte.
static void check_everywhere(enum format_layout layout, const char *text, const char *expected) {
    static struct outcome outcome;
    struct slice document = slice_of(text);
    ck_assert_str_eq(whole(layout, text)->out, expected);
    const char *end = whole(layout, text)->end;
    size_t every[512];
    ck_assert_uint_lt(document.size, 512);
    for (size_t cut = 0; cut <= document.size; cut++) {
        every[cut] = cut;
        split_in_pieces(&outcome, layout, document, &cut, 1, 1000);
        ck_assert_msg(strcmp(outcome.out, expected) == 0, "cut at %zu: %s", cut, outcome.out);
        ck_assert_ptr_eq(outcome.end, end);
    }
    split_in_pieces(&outcome, layout, document, every, document.size, 1000);
    ck_assert_str_eq(outcome.out, expected);
    ck_assert_ptr_eq(outcome.end, end);
}

START_TEST(array_at_every_cut) {
    check_everywhere(LAYOUT_ARRAY,
                     " [ {\"a\": [1, {\"b\": \"x]}\\\"{\"}], \"c\": \"\\\\\"} ,\n{}\r\n,"
                     "{\"k\":\"0123456789abcdef0123456789abcdef\"}\t] \n",
                     "{\"a\": [1, {\"b\": \"x]}\\\"{\"}], \"c\": \"\\\\\"}|{}|"
                     "{\"k\":\"0123456789abcdef0123456789abcdef\"}|");
    ck_assert_ptr_null(whole(LAYOUT_ARRAY, "[{}]")->end);
}
END_TEST

START_TEST(empty_arrays_are_whole) {
    static const char *const texts[] = {"[]", " [ ] ", "[\n]\n"};
    for (size_t i = 0; i < 3; i++) {
        check_everywhere(LAYOUT_ARRAY, texts[i], "");
        ck_assert_ptr_null(whole(LAYOUT_ARRAY, texts[i])->end);
    }
}
END_TEST

START_TEST(records_that_are_no_objects_are_handed_on) {
    check_everywhere(LAYOUT_ARRAY, "[1, \"a,b\", null ,[2,3], true]", "1|\"a,b\"|null|[2,3]|true|");
    check_everywhere(LAYOUT_ARRAY, "[{\"a\" 1},{bad},{}]", "{\"a\" 1}|{bad}|{}|");
}
END_TEST

START_TEST(nothing_between_commas_is_an_item) {
    check_everywhere(LAYOUT_ARRAY, "[,{}]", "(empty)|{}|");
    check_everywhere(LAYOUT_ARRAY, "[{},,{}]", "{}|(empty)|{}|");
    ck_assert_uint_eq(whole(LAYOUT_ARRAY, "[{},,{}]")->item, 3);
}
END_TEST

START_TEST(wrapper_at_every_cut) {
    check_everywhere(LAYOUT_WRAPPER,
                     "{\"x\": {\"events\": [{\"no\":1}]}, \"session_summary\": {\"session_id\": "
                     "\"s-1\"}, \"n\": 12, \"telemetry_events\": [{\"a\":1}, {\"b\":2}], \"y\":"
                     "\"}\"}\n",
                     "{\"a\":1}|{\"b\":2}|");
    struct outcome *outcome =
        whole(LAYOUT_WRAPPER, "{\"events\":[{}],\"session_summary\":{\"session_id\":\"s\"} }");
    ck_assert_str_eq(outcome->summary, "{\"session_id\":\"s\"}");
    ck_assert_ptr_null(outcome->end);
    check_everywhere(LAYOUT_WRAPPER, "{\"events\": []}", "");
    check_everywhere(LAYOUT_WRAPPER, "{\"events\": null, \"telemetry_events\":[{}]}", "{}|");
}
END_TEST

START_TEST(long_keys_are_no_known_keys) {
    check_everywhere(LAYOUT_WRAPPER,
                     "{\"events0123456789012345678901234567890123456789\":[{\"no\":1}],"
                     "\"ev\\\"ents\":[{}],\"events\":[{}]}",
                     "{}|");
}
END_TEST

START_TEST(objects_one_after_another) {
    check_everywhere(LAYOUT_OBJECT, "{\n \"a\": 1\n}\n", "{\n \"a\": 1\n}|");
    check_everywhere(LAYOUT_OBJECT, "{\n}{\n}\n[\n1]", "{\n}|{\n}|[\n1]|");
}
END_TEST

START_TEST(a_record_too_long_is_said_once) {
    char document[4096];
    int size =
        snprintf(document, sizeof document, "[{\"a\":1},{\"long\":\"%0500d\"},{\"b\":2}]", 7);
    static struct outcome outcome;
    for (size_t step = 1; step < 64; step += 7) {
        size_t cuts[4096], count = 0;
        for (size_t at = step; at < (size_t)size; at += step)
            cuts[count++] = at;
        split_in_pieces(&outcome, LAYOUT_ARRAY, (struct slice){document, (size_t)size}, cuts, count,
                        100);
        ck_assert_str_eq(outcome.out, "{\"a\":1}|(long)|{\"b\":2}|");
        ck_assert_uint_eq(outcome.item, 3);
        ck_assert_ptr_null(outcome.end);
    }
}
END_TEST

START_TEST(a_record_of_just_the_bound_passes) {
    static struct outcome outcome;
    split_in_pieces(&outcome, LAYOUT_ARRAY, SLICE("[{\"a\":12}]"), NULL, 0, 8);
    ck_assert_str_eq(outcome.out, "{\"a\":12}|");
    split_in_pieces(&outcome, LAYOUT_ARRAY, SLICE("[{\"a\":12}]"), NULL, 0, 7);
    ck_assert_str_eq(outcome.out, "(long)|");
}
END_TEST

START_TEST(faults_say_where) {
    static const struct {
        enum format_layout layout;
        const char *text;
        const char *records;
        uint64_t at;
        const char *why;
    } cases[] = {
        {LAYOUT_ARRAY, "[{}] x", "{}|", 5, "follows after the end"},
        {LAYOUT_ARRAY, "[{}]]", "{}|", 4, "follows after the end"},
        {LAYOUT_ARRAY, "[{} {}]", "{}|", 4, "a comma is missing"},
        {LAYOUT_ARRAY, "[{},]", "{}|", 4, "in front of the closing"},
        {LAYOUT_ARRAY, "[}", "", 1, "a brace closes"},
        {LAYOUT_ARRAY, "{}", "", 0, "expected an array"},
        {LAYOUT_WRAPPER, "[]", "", 0, "expected an object"},
        {LAYOUT_WRAPPER, "{\"events\":[{}]}{", "{}|", 15, "follows after the end"},
        {LAYOUT_WRAPPER, "{\"a\" 1}", "", 5, "a colon is missing"},
        {LAYOUT_WRAPPER, "{\"a\":1 \"b\":2}", "", 7, "a comma is missing"},
        {LAYOUT_WRAPPER, "{\"a\":,\"b\":2}", "", 5, "has no value"},
        {LAYOUT_WRAPPER, "{1:2}", "", 1, "a key is missing"},
        {LAYOUT_OBJECT, "{} garbage", "{}|", 3, "expected a record"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_everywhere(cases[i].layout, cases[i].text, cases[i].records);
        struct outcome *outcome = whole(cases[i].layout, cases[i].text);
        ck_assert_int_eq(outcome->last, SPLIT_FAULT);
        ck_assert_uint_eq(outcome->fault_at, cases[i].at);
        ck_assert_msg(strstr(outcome->end, cases[i].why) != NULL, "%s: %s", cases[i].text,
                      outcome->end);
    }
}
END_TEST

START_TEST(every_cut_short_document_is_said) {
    static const char text[] = "{\"k\":1,\"events\":[{\"a\":\"b\"},{}]}";
    char part[sizeof text];
    for (size_t size = 1; size < sizeof text - 1; size++) {
        snprintf(part, sizeof part, "%.*s", (int)size, text);
        ck_assert_msg(whole(LAYOUT_WRAPPER, part)->end != NULL, "%s", part);
    }
    ck_assert_ptr_null(whole(LAYOUT_WRAPPER, text)->end);
    ck_assert_str_eq(whole(LAYOUT_ARRAY, "[{\"a\":1},{\"b\"")->out, "{\"a\":1}|");
    ck_assert_ptr_nonnull(whole(LAYOUT_ARRAY, "[{\"a\":1},{\"b\"")->end);
    ck_assert_ptr_null(whole(LAYOUT_ARRAY, "")->end);
    ck_assert_ptr_null(whole(LAYOUT_OBJECT, " ")->end);
}
END_TEST

START_TEST(depth_is_no_matter) {
    enum { DEPTH = 100000 };
    char *text = malloc(2 * DEPTH + 3);
    memset(text, '[', DEPTH + 1);
    memset(text + DEPTH + 1, ']', DEPTH + 1);
    static struct outcome outcome;
    split_in_pieces(&outcome, LAYOUT_ARRAY, (struct slice){text, 2 * DEPTH + 2}, NULL, 0, 1000);
    ck_assert_str_eq(outcome.out, "(long)|");
    ck_assert_ptr_null(outcome.end);
    free(text);
}
END_TEST

START_TEST(random_bytes_do_no_harm) {
    static const char letters[] = "[]{},:\"\\ \n1ae";
    static struct outcome outcome;
    srand(7);
    for (int round = 0; round < 20000; round++) {
        char text[48];
        size_t size = (size_t)rand() % sizeof text, cut = size == 0 ? 0 : (size_t)rand() % size;
        for (size_t i = 0; i < size; i++)
            text[i] = letters[(size_t)rand() % (sizeof letters - 1)];
        enum format_layout layout = (enum format_layout)(LAYOUT_ARRAY + rand() % 3);
        struct slice document = {text, size};
        split_in_pieces(&outcome, layout, document, NULL, 0, 1000);
        static struct outcome other;
        split_in_pieces(&other, layout, document, &cut, 1, 1000);
        ck_assert_str_eq(outcome.out, other.out);
        ck_assert_int_eq(outcome.last, other.last);
        ck_assert_ptr_eq(outcome.end, other.end);
        ck_assert_uint_eq(outcome.fault_at, other.fault_at);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("split");
    TCase *tcase = tcase_create("split");
    tcase_add_test(tcase, array_at_every_cut);
    tcase_add_test(tcase, empty_arrays_are_whole);
    tcase_add_test(tcase, records_that_are_no_objects_are_handed_on);
    tcase_add_test(tcase, nothing_between_commas_is_an_item);
    tcase_add_test(tcase, wrapper_at_every_cut);
    tcase_add_test(tcase, long_keys_are_no_known_keys);
    tcase_add_test(tcase, objects_one_after_another);
    tcase_add_test(tcase, a_record_too_long_is_said_once);
    tcase_add_test(tcase, a_record_of_just_the_bound_passes);
    tcase_add_test(tcase, faults_say_where);
    tcase_add_test(tcase, every_cut_short_document_is_said);
    tcase_add_test(tcase, depth_is_no_matter);
    tcase_add_test(tcase, random_bytes_do_no_harm);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

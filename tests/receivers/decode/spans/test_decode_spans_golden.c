// SPDX-License-Identifier: Apache-2.0
// Span streams that were recorded or made for the format: each line gets the code that a line alone
// can get, and no way to break one does harm.
#include "pipeline/model/span_event.h"
#include "receivers/decode/spans/spans.h"
#include "tests/receivers/decode/decode_record.h"

#include <glob.h>
#include <jansson.h>

static struct decoded decoded;
static glob_t streams;

static void setup(void) {
    decoded = decoded_open(&decoder_spans, 99);
    ck_assert_int_eq(glob(TESTS_DIR "/golden/spans/*/events.jsonl", 0, NULL, &streams), 0);
    ck_assert_uint_ge(streams.gl_pathc, 39);
}

static void teardown(void) {
    globfree(&streams);
    decoded_close(&decoded);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// The code that expected.json gives to a line, or to an entry of it (-1: none); NULL: accepted.
static const char *expected_code(json_t *expected, size_t line, json_int_t entry) {
    size_t index;
    json_t *refused;
    json_array_foreach(json_object_get(expected, "rejected"), index, refused) {
        json_t *at = json_object_get(refused, "entry");
        if ((size_t)json_integer_value(json_object_get(refused, "line")) == line &&
            (at == NULL ? -1 : json_integer_value(at)) == entry)
            return json_string_value(json_object_get(refused, "code"));
    }
    return NULL;
}

// Codes of what only the state of the stream can tell.
static bool depends_on_state(const char *code, const struct span_event *span) {
    static const char *const codes[] = {"not-started",    "already-started", "duplicate-worker",
                                        "unknown-worker", "group-mismatch",  "unknown-task",
                                        "unknown-span"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    return strcmp(code, "bad-span") == 0 && span->default_id.data != NULL; // in use
}

static void check_code(const char *code, enum span_refusal refusal, const char *place,
                       size_t line) {
    bool state = code == NULL || depends_on_state(code, decoded.event.span);
    const char *wanted = state ? "accepted" : code;
    ck_assert_msg(strcmp(span_refusal_name(refusal), wanted) == 0, "%s:%zu: %s, not %s (%s: %s)",
                  place, line, span_refusal_name(refusal), wanted, decoded.fault.field,
                  decoded.fault.detail);
}

static void check_line(json_t *expected, struct slice record, const char *place, size_t line) {
    decoded_run(&decoded, record);
    const struct span_event *span = decoded.event.span;
    check_code(expected_code(expected, line, -1), span->refused, place, line);
    for (uint32_t i = 0; i < span->metric_count; i++)
        check_code(expected_code(expected, line, span->metrics[i].entry), span->metrics[i].refused,
                   place, line);
}

static struct slice next_line(FILE *file, char **text, size_t *capacity) {
    ssize_t size = getline(text, capacity, file);
    while (size > 0 && (*text)[size - 1] == '\n')
        size--;
    return (struct slice){size < 0 ? NULL : *text, size < 0 ? 0 : (size_t)size};
}

static bool is_blank(struct slice line) {
    for (size_t i = 0; i < line.size; i++)
        if (line.data[i] != ' ')
            return false;
    return true;
}

START_TEST(codes) {
    size_t lines = 0;
    for (size_t i = 0; i < streams.gl_pathc; i++) {
        char path[4096], *text = NULL;
        size_t capacity = 0;
        const char *place = streams.gl_pathv[i];
        snprintf(path, sizeof path, "%.*sexpected.json", (int)(strlen(place) - 12), place);
        json_t *expected = json_load_file(path, 0, NULL);
        FILE *file = fopen(place, "r");
        ck_assert_msg(expected != NULL && file != NULL, "%s", path);
        struct slice record;
        for (size_t line = 1; (record = next_line(file, &text, &capacity)).data != NULL; line++) {
            if (is_blank(record))
                continue;
            check_line(expected, record, place, line);
            lines++;
        }
        free(text);
        fclose(file);
        json_decref(expected);
    }
    ck_assert_uint_gt(lines, 2000);
}
END_TEST

// Every prefix and many changes of lines that are not too long; those of the long streams are much
// alike.
START_TEST(broken_lines_are_survived) {
    static const char *const lines[] = {
        "{\"ev\":\"tasks\",\"ts\":1700000001.5,\"group\":\"g\\u00e9\",\"span\":{\"name\":[\"a\","
        "\"b\"],\"ids\":[\"a\",\"\\ud83d\\ude80\"]},\"tasks\":[\"k\",{\"key\":\"l\",\"group\":"
        "\"h\",\"span\":{\"name\":[\"z\"],\"ids\":[\"z\"]}}],\"code\":[{\"code\":\"f\\n\","
        "\"lineno_frame\":-7}],\"collections\":[{\"a\":[1e3]}],\"default_id\":\"d\"}",
        "{\"ev\":\"data\",\"ts\":1e9,\"tasks\":[{\"key\":\"k\",\"group\":\"g\",\"nbytes\":100}]}",
        "{\"ev\":\"transition\",\"ts\":1700000005.0,\"key\":\"k\",\"to\":\"memory\",\"nbytes\":"
        "4096,\"actions\":[[\"compute\",1700000002.25,1700000004.75]]}",
        "{\"ev\":\"metrics\",\"ts\":2,\"data\":[[\"execute\",\"b\",\"g\\\"\",\"seconds\",0.5],"
        "[\"p2p\",\"b\",\"count\",-2],[\"latency\",1],[]]}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        decoded_torture(&decoded, lines[i]);
}
END_TEST

START_TEST(prefixes_are_not_taken) {
    char *text = NULL;
    size_t capacity = 0, taken = 0;
    for (size_t i = 0; i < streams.gl_pathc; i++) {
        FILE *file = fopen(streams.gl_pathv[i], "r");
        struct slice record;
        for (int line = 0; line < 20; line++) {
            record = next_line(file, &text, &capacity);
            if (record.data == NULL || record.size > 600 ||
                decoded_run(&decoded, record) != DECODE_OK)
                continue;
            for (size_t size = 0; size < record.size; size++)
                ck_assert_int_gt(decoded_run(&decoded, (struct slice){record.data, size}),
                                 DECODE_OK);
            taken++;
        }
        fclose(file);
    }
    free(text);
    ck_assert_uint_gt(taken, 200);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_spans_golden");
    TCase *cases = tcase_create("decode_spans_golden");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, codes);
    tcase_add_test(cases, broken_lines_are_survived);
    tcase_add_test(cases, prefixes_are_not_taken);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

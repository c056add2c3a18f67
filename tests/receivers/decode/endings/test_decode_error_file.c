// SPDX-License-Identifier: Apache-2.0
// Error files of torchelastic: what they say, what the path says, and what is none.
#include "receivers/decode/formats.h"
#include "receivers/decode/launcher/error_file.h"
#include "tests/receivers/decode/endings/endings_fixture.h"

static struct told told;
static struct decode_fault fault;

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static enum decode_category decode_by(const struct decoder_type *decoder, const char *path,
                                      struct slice text) {
    struct decoder_input input = {.path = slice_of(path), .observed_ns = OBSERVED, .is_file = true};
    struct event event = {.position = 1, .rank = RANK_NONE};
    struct arena arena;
    char *copy = memory_take(text.size + (text.size == 0));
    memcpy(copy, text.data, text.size);
    void *state = memory_zero(1, decoder->state_size);
    arena_init(&arena, 4096);
    fault = (struct decode_fault){0};
    decoder->begin(state, &input);
    enum decode_category category =
        decoder->decode(state, (struct slice){copy, text.size}, &arena, &event, &fault);
    if (category == DECODE_OK)
        tell_event(&told, &event);
    if (decoder->release != NULL)
        decoder->release(state);
    memory_give(state);
    memory_give(copy);
    arena_release(&arena);
    return category;
}

#define PATH "/tmp/te/none_ab12cd/attempt_1/3/error.json"
#define NESTED                                                                                     \
    "{\"message\": {\"message\": \"RuntimeError: CUDA error: an illegal memory access\", "         \
    "\"extraInfo\": {\"py_callstack\": \"Traceback (most recent call last):\\n  File "             \
    "\\\"/w/t.py\\\", line 355, in wrapper\\n    f()\\nRuntimeError: CUDA error: an illegal\\n\"," \
    " \"timestamp\": \"1773453017\"}}}"

static const struct {
    const char *path, *text, *event;
} FILES[] = {
    {PATH, NESTED,
     "1+1 error_file | at=1773453017.000 | local_rank=3 | exception=RuntimeError | message=CUDA "
     "error: an illegal memory access | error_file=" PATH
     " | attempt=1 | victim=no | frame=wrapper (/w/t.py:355)"},
    {"x", NESTED,
     "1+1 error_file | at=1773453017.000 | exception=RuntimeError | message=CUDA error: an illegal "
     "memory access | error_file=x | victim=no | frame=wrapper (/w/t.py:355)"},
    {"/e/attempt_0/0/error.json", "{\"message\": \"worker gave up: quota used up\"}",
     "1+1 error_file | local_rank=0 | message=worker gave up: quota used up | "
     "error_file=/e/attempt_0/0/error.json | attempt=0"},
    {"/e/5/error.json", " {\"message\": \"KeyError: 1\\n\", \"timestamp\": 1773453018}\n",
     "1+1 error_file | at=1773453018.000 | local_rank=5 | exception=KeyError | message=1 | "
     "error_file=/e/5/error.json | victim=no"},
    {"x",
     "{\"message\": {\"message\": \"SignalException: Process 991 got signal: 15\", \"extraInfo\": "
     "{\"timestamp\": 1773453017}, \"errorCode\": -15}}",
     "1+1 error_file | at=1773453017.000 | pid=991 | signal=15 | exception=SignalException | "
     "message=Process 991 got signal: 15 | error_file=x | victim=yes"},
    {"x",
     "{\"message\": {\"message\": \"RuntimeError: Caught KeyError in DataLoader worker process "
     "1.\\nOriginal Traceback (most recent call last):\\n  File \\\"a.py\\\", line 1, in "
     "f\\nKeyError: 'x'\\n\", \"extraInfo\": {\"timestamp\": \"soon\"}, \"errorCode\": 1e9}}",
     "1+1 error_file | exception=KeyError | last_exception=RuntimeError | last_message=Caught "
     "KeyError in DataLoader worker process 1. | message='x' | error_file=x | victim=no"},
};

START_TEST(files) {
    struct slice text = slice_of(FILES[_i].text);
    const struct decoder_type *decoders[] = {&decoder_error_file, &decoder_any};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(decode_by(decoders[i], FILES[_i].path, text), DECODE_OK);
        ck_assert_str_eq(told.text, FILES[_i].event);
    }
}
END_TEST

// A file that was torn while it was written says nothing, at whatever byte.
START_TEST(torn) {
    struct slice text = slice_of(NESTED);
    for (size_t size = 0; size < text.size; size++) {
        ck_assert_int_eq(decode_by(&decoder_error_file, PATH, (struct slice){text.data, size}),
                         DECODE_TRUNCATED);
        ck_assert_uint_gt(strlen(fault.detail), 0);
    }
}
END_TEST

START_TEST(others) {
    static const struct {
        const char *path, *text;
        enum decode_category category;
    } rows[] = {
        {"x", "{\"message\": \"no error file's path\"}", DECODE_NOTHING},
        {"x", "{\"message\": {\"level\": 3}}", DECODE_NOTHING},
        {PATH, "{\"message\": 3}", DECODE_NOTHING},
        {PATH, "{}", DECODE_NOTHING},
        {PATH, "[1]", DECODE_NOT_OBJECT},
        {PATH, "{\"message\": x}", DECODE_BAD_JSON},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_int_eq(decode_by(&decoder_error_file, rows[i].path, slice_of(rows[i].text)),
                         rows[i].category);
}
END_TEST

// {"source": "error_file", …}: the line has what the document has not.
START_TEST(tagged) {
    static const struct {
        const char *line, *event;
    } rows[] = {
        {"{\"source\":\"error_file\",\"timestamp_ns\":1773453019000000000,\"path\":\"" PATH
         "\",\"document\":{\"message\":\"KeyError: 1\"},\"rank\":7,\"host.name\":\"n\"}",
         "1+1 error_file | at=1773453019.000 | rank=7 | node=n | local_rank=3 | exception=KeyError "
         "| message=1 | error_file=" PATH " | attempt=1 | victim=no"},
        {"{\"document\":\"{\\\"message\\\":{\\\"message\\\":\\\"KeyError: 1\\\"}}\","
         "\"timestamp_ns\":1773453019000000000,\"source\":\"error_file\"}",
         "1+1 error_file | at=1773453019.000 | exception=KeyError | message=1 | victim=no"},
        {"{\"source\":\"error_file\",\"timestamp_ns\":5}", NULL},
        {"{\"source\":\"error_file\",\"timestamp_ns\":5,\"document\":4}", NULL},
        {"{\"source\":\"error_file\",\"timestamp_ns\":5,\"document\":\"{\"}", NULL},
        {"{\"source\":\"error_file\",\"document\":{\"message\":{\"message\":\"x\"}}}", NULL},
    };
    static const enum decode_category refusals[] = {
        DECODE_OK,         DECODE_OK,        DECODE_MISSING_FIELD,
        DECODE_WRONG_TYPE, DECODE_TRUNCATED, DECODE_MISSING_TIMESTAMP};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum decode_category category = decode_by(&decoder_any, "http", slice_of(rows[i].line));
        ck_assert_int_eq(category, refusals[i]);
        if (rows[i].event != NULL)
            ck_assert_str_eq(told.text, rows[i].event);
    }
}
END_TEST

START_TEST(paths) {
    static const char *const right[] = {PATH, "0/error.json", "/a/attempt_x/12/error.json"};
    static const char *const wrong[] = {
        "", "error.json", "/a/error.json", "/a/3/errors.json", "/a/3x/error.json", "//error.json"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        ck_assert(error_file_path(slice_of(right[i])));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert(!error_file_path(slice_of(wrong[i])));
    ck_assert_int_eq(format_of_path(slice_of(PATH)), FORMAT_ERROR_FILE);
    ck_assert_int_eq(format_guess(slice_of("{\"message\""), true, FORMAT_ERROR_FILE).layout,
                     LAYOUT_WHOLE);
    struct format_guess guess = format_guess(slice_of(NESTED), true, FORMAT_UNKNOWN);
    ck_assert_int_eq(guess.kind, FORMAT_ERROR_FILE);
    guess = format_guess(slice_of("{\"message\": \"x\"}"), true, FORMAT_UNKNOWN);
    ck_assert_int_ne(guess.kind, FORMAT_ERROR_FILE);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("error_file");
    TCase *cases = tcase_create("error_file");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, files, 0, sizeof FILES / sizeof *FILES);
    tcase_add_test(cases, torn);
    tcase_add_test(cases, others);
    tcase_add_test(cases, tagged);
    tcase_add_test(cases, paths);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

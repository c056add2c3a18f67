// SPDX-License-Identifier: Apache-2.0
// Dumps of a small program, as py-spy 0.4.2 wrote them (data/): text, with locals, with native
// frames, JSON; and made ones.
#include "receivers/decode/formats.h"
#include "receivers/decode/log/log.h"
#include "receivers/decode/py_spy/py_spy.h"
#include "tests/receivers/decode/observed.h"

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// The text of data/NAME, with a zero behind it.
static char *read_data(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/receivers/decode/py_spy/data/%s", TESTS_DIR, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    enum { SIZE = 1 << 16 };
    char *text = memory_take(SIZE);
    size_t size = fread(text, 1, SIZE - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

#define MAIN                                                                                       \
    "all_reduce (train.py:6) < step (train.py:8) < Trainer.fit (train.py:12) < <module> "          \
    "(train.py:18)"
#define SPIN                                                                                       \
    "spin (train.py:16) < Thread.run (threading.py:982) < Thread._bootstrap_inner "                \
    "(threading.py:1045) < Thread._bootstrap (threading.py:1002)"
#define WHO " pid=24100 process=/usr/bin/python3 train.py --epochs 3 thread="

static const struct {
    const char *name, *expected;
} DUMPS[] = {
    {"dump.txt",
     "4+5 stack -" WHO "MainThread state=idle stack=" MAIN " frame=all_reduce (train.py:6)\n"
     "16+5 stack -" WHO "Thread-1 (spin) state=active+gil stack=" SPIN
     " frame=spin (train.py:16)\n"},
    {"locals.txt",
     "4+13 stack -" WHO "MainThread state=idle stack=" MAIN " frame=all_reduce (train.py:6)\n"
     "41+13 stack -" WHO "Thread-1 (spin) state=active+gil stack=" SPIN
     " frame=spin (train.py:16)\n"},
    {"native.txt",
     "4+8 stack -" WHO "MainThread state=idle stack=clock_nanosleep (libc.so.6) < time_sleep "
     "(libpython3.11.so.1.0) < " MAIN
     " < 0x7fa87ec4524a (libc.so.6) frame=all_reduce (train.py:6)\n"
     "26+8 stack -" WHO "Thread-1 (spin) state=active+gil stack=" SPIN
     " < thread_run (libpython3.11.so.1.0) < 0x7fa87eca71f5 (libc.so.6) < 0x7fa87ed278ec "
     "(libc.so.6) frame=spin (train.py:16)\n"},
};

START_TEST(dumps) {
    char *text = read_data(DUMPS[_i].name);
    observed_check(&decoder_log, text, DUMPS[_i].expected);
    // Without the indentation.
    char *to = text;
    bool front = true;
    for (const char *from = text; *from != '\0'; from++) {
        if (!front || *from != ' ')
            *to++ = *from;
        front = *from == '\n' || (front && *from == ' ');
    }
    *to = '\0';
    ck_assert_str_eq(observed_lines(&decoder_log, slice_of(text))->text, DUMPS[_i].expected);
    memory_give(text);
}
END_TEST

static const struct {
    const char *lines, *expected;
} TEXTS[] = {
    {"Process 7: a\nPython v3.9.1 (a)\n\nThread 0x7F10 (active): \"MainThread\"\n    f (x.py:1)\n"
     "Process 8: b\nPython v3.9.1 (b)\nParent Process 7: a\n\nThread 8 (idle)\n    g (y.py:2)\n"
     "step: 12\nThread 9 (active+gil)\n    g (y.py:2)\n",
     "4+2 stack - pid=7 process=a thread=MainThread state=active stack=f (x.py:1) frame=f "
     "(x.py:1)\n"
     "10+2 stack - pid=8 process=b state=idle stack=g (y.py:2) frame=g (y.py:2)\n"},
    {"Process 7: done\nstep 12\n", ""},
    {"Process 7: done\nPython v3.9.1 (a)\nThread 7 (idle): \"MainThread\"\n", ""},
};

START_TEST(texts) {
    observed_check(&decoder_log, TEXTS[_i].lines, TEXTS[_i].expected);
}
END_TEST

// Longer than what is gathered: later threads are told of all the same, and stacks are cut.
START_TEST(long_dumps) {
    enum { THREADS = 300, FRAMES = 5 };
    char *text = memory_take(1 << 20);
    size_t size = (size_t)sprintf(text, "Process 7: a\nPython v3.9.1 (a)\n");
    for (int i = 0; i < THREADS; i++) {
        size += (size_t)sprintf(text + size, "Thread %d (active+gil): \"t%d\"\n", i + 8, i);
        for (int k = 0; k < FRAMES; k++)
            size += (size_t)sprintf(text + size, "    %0*d (x.py:%d)\n", 290, k, k + 1);
    }
    const struct observed *observed = observed_lines(&decoder_log, (struct slice){text, size});
    ck_assert_ptr_ne(strstr(observed->text, " thread=t1 "), NULL);
    ck_assert_ptr_ne(strstr(observed->text, " thread=t299 "), NULL);
    ck_assert_ptr_ne(strstr(observed->text, " < ... frame="), NULL);
    memory_give(text);
}
END_TEST

START_TEST(json) {
    char *text = read_data("dump.json");
    struct slice whole = slice_of(text), record;
    struct format_guess guess = format_guess(whole, true, FORMAT_UNKNOWN);
    ck_assert_int_eq(guess.kind, FORMAT_PY_SPY);
    ck_assert_int_eq(guess.layout, LAYOUT_ARRAY);
    static const char *const expected[] = {
        "1+1 stack - pid=24100 thread=Thread-1 (spin) state=active+gil stack=" SPIN
        " frame=spin (train.py:16)\n",
        "",
        "1+1 stack - pid=24100 thread=MainThread state=idle stack=" MAIN
        " frame=all_reduce (train.py:6)\n",
    };
    struct splitter split;
    splitter_begin(&split, LAYOUT_ARRAY, 1 << 20);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(splitter_next(&split, whole, &record), SPLIT_RECORD);
        ck_assert_str_eq(observed_whole(&decoder_py_spy, record)->text, expected[i]);
        ck_assert_str_eq(observed_whole(&decoder_any, record)->text, expected[i]);
        for (size_t size = 1; size < record.size; size++)
            ck_assert_str_eq(
                observed_whole(&decoder_py_spy, (struct slice){record.data, size})->text,
                "1 refused truncated\n");
    }
    memory_give(text);
}
END_TEST

static const struct {
    const char *text, *expected;
} OBJECTS[] = {
    {"{\"pid\":7,\"os_thread_id\":7,\"thread_name\":null,\"active\":true,\"owns_gil\":false,"
     "\"frames\":[{\"name\":\"f\",\"filename\":\"/a/b.so\",\"short_filename\":null,\"line\":0},3],"
     "\"process_info\":{\"pid\":7,\"command_line\":\"python t.py\"}}",
     "1+1 stack - pid=7 process=python t.py state=active stack=f (/a/b.so) frame=f (/a/b.so)\n"},
    {"{\"pid\":7,\"os_thread_id\":7,\"owns_gil\":false,\"frames\":[]}", ""},
    {"{\"pid\":7,\"owns_gil\":false,\"frames\":7}", "1 refused missing_field\n"},
    {"{\"frames\":[]}", "1 refused missing_field\n"},
    {"[1]", "1 refused not_object\n"},
    {"{\"frames\":[}", "1 refused bad_json\n"},
};

START_TEST(objects) {
    ck_assert_str_eq(observed_whole(&decoder_py_spy, slice_of(OBJECTS[_i].text))->text,
                     OBJECTS[_i].expected);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("py_spy");
    TCase *cases = tcase_create("py_spy");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, dumps, 0, sizeof DUMPS / sizeof *DUMPS);
    tcase_add_loop_test(cases, texts, 0, sizeof TEXTS / sizeof *TEXTS);
    tcase_add_test(cases, long_dumps);
    tcase_add_test(cases, json);
    tcase_add_loop_test(cases, objects, 0, sizeof OBJECTS / sizeof *OBJECTS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

// SPDX-License-Identifier: Apache-2.0
// Standard error is a pipe here: what was written is read back and compared without its times.
#include "base/log.h"
#include "base/memory.h"

#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int saved_stderr;
static FILE *captured;
static uint64_t now_ns;
static char text[1 << 16];

static uint64_t clock_of_test(void) {
    return now_ns;
}

static void setup(void) {
    captured = tmpfile();
    ck_assert_ptr_nonnull(captured);
    saved_stderr = dup(STDERR_FILENO);
    dup2(fileno(captured), STDERR_FILENO);
    now_ns = UINT64_C(1000000000000);
    log_use_clock(clock_of_test);
    log_configure(LOG_INFO, LOG_CONSOLE);
}

static void teardown(void) {
    log_flush();
    log_use_clock(NULL);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    fclose(captured);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// What was written since the last call.
static const char *written(void) {
    static off_t seen;
    off_t end = lseek(fileno(captured), 0, SEEK_END);
    if (end < seen)
        seen = 0;
    ssize_t size = pread(fileno(captured), text, sizeof text - 1, seen);
    ck_assert_int_ge(size, 0);
    text[size] = '\0';
    seen = end;
    return text;
}

// Lines without their first word, the time.
static const char *written_untimed(void) {
    static char out[1 << 16];
    size_t used = 0;
    out[0] = '\0';
    char *rest = NULL;
    written();
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        ck_assert_uint_gt(strlen(line), 31);
        ck_assert_int_eq(line[29], 'Z');
        used += (size_t)snprintf(out + used, sizeof out - used, "%s\n", line + 31);
    }
    return out;
}

static const struct log_site site = {"C1203", "receiver/file/ranks"};
static const struct log_site other_site = {"C1203", "receiver/file/more"};
static const struct log_site plain_site = {"C1000", NULL};

START_TEST(console_lines) {
    log_write(LOG_WARN, site, "line %d is bad.", 7);
    log_write(LOG_INFO, plain_site, "started.");
    ck_assert_str_eq(written_untimed(),
                     "warn  C1203 receiver/file/ranks: line 7 is bad.\n"
                     "info  C1000 started.\n");
}
END_TEST

START_TEST(levels) {
    ck_assert(!log_enabled(LOG_DEBUG));
    ck_assert(log_enabled(LOG_INFO));
    log_write(LOG_DEBUG, plain_site, "not said");
    ck_assert_str_eq(written(), "");
    log_configure(LOG_ERROR, LOG_CONSOLE);
    log_write(LOG_WARN, plain_site, "not said");
    log_write(LOG_ERROR, plain_site, "said");
    ck_assert_str_eq(written_untimed(), "error C1000 said\n");
}
END_TEST

START_TEST(repeats_are_counted) {
    for (int i = 1; i <= 5; i++)
        log_write(LOG_WARN, site, "line %d", i);
    log_write(LOG_WARN, other_site, "elsewhere");
    ck_assert_str_eq(written_untimed(),
                     "warn  C1203 receiver/file/ranks: line 1\n"
                     "warn  C1203 receiver/file/more: elsewhere\n");
    now_ns += UINT64_C(9999999999);
    log_write(LOG_ERROR, site, "line 6");
    ck_assert_str_eq(written_untimed(), "");
    now_ns += 1; // 10 s after the first: the window has ended
    log_write(LOG_WARN, plain_site, "anything");
    ck_assert_str_eq(written_untimed(),
                     "error C1203 receiver/file/ranks: line 6 (5 more in 10 s)\n"
                     "warn  C1000 anything\n");
    log_write(LOG_WARN, site, "line 7");
    ck_assert_str_eq(written_untimed(), "warn  C1203 receiver/file/ranks: line 7\n");
    log_flush();
    ck_assert_str_eq(written_untimed(), "");
}
END_TEST

// Three mistakes of one reload have one code.
START_TEST(each_text_is_said) {
    log_write(LOG_ERROR, site, "one mistake at 1:2");
    log_write(LOG_ERROR, site, "another mistake at 1:2");
    log_write(LOG_ERROR, site, "one mistake at 3:4");
    ck_assert_str_eq(written_untimed(),
                     "error C1203 receiver/file/ranks: one mistake at 1:2\n"
                     "error C1203 receiver/file/ranks: another mistake at 1:2\n");
    log_flush();
    ck_assert_str_eq(written_untimed(),
                     "error C1203 receiver/file/ranks: one mistake at 3:4 (1 more in 10 s)\n");
}
END_TEST

START_TEST(texts_without_an_end_are_held_back) {
    for (char name[] = "a"; name[0] <= 'z'; name[0]++)
        log_write(LOG_WARN, site, "%s", name);
    size_t lines = 0;
    for (const char *at = written(); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_uint_eq(lines, 16);
    log_flush();
    ck_assert_str_eq(written_untimed(), "warn  C1203 receiver/file/ranks: z (10 more in 10 s)\n");
}
END_TEST

START_TEST(a_look_says_what_is_over) {
    log_write(LOG_WARN, site, "a 1");
    log_write(LOG_WARN, site, "a 2");
    written();
    log_look();
    ck_assert_str_eq(written_untimed(), "");
    now_ns += UINT64_C(10000000000);
    log_look();
    ck_assert_str_eq(written_untimed(), "warn  C1203 receiver/file/ranks: a 2 (1 more in 10 s)\n");
    log_look();
    ck_assert_str_eq(written_untimed(), "");
}
END_TEST

START_TEST(flush_says_and_forgets) {
    log_write(LOG_WARN, site, "a 1");
    log_write(LOG_WARN, site, "a 2");
    written();
    log_flush();
    ck_assert_str_eq(written_untimed(), "warn  C1203 receiver/file/ranks: a 2 (1 more in 10 s)\n");
    log_write(LOG_WARN, site, "c");
    ck_assert_str_eq(written_untimed(), "warn  C1203 receiver/file/ranks: c\n");
}
END_TEST

START_TEST(more_sites_than_windows) {
    char component[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 200; i++) {
            snprintf(component, sizeof component, "receiver/file/%d", i);
            log_write(LOG_WARN, (struct log_site){"C1", component}, "x");
        }
    }
    written();
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_uint_eq(lines, 400); // each window was closed early, nothing was lost
}
END_TEST

START_TEST(nothing_in_a_message_acts) {
    log_write(LOG_WARN, plain_site, "host \x1b[2J\nwarn fake \xe2\x80\xae \xff.");
    ck_assert_str_eq(written_untimed(), "warn  C1000 host \\x1b[2J\\x0awarn fake \\u202e \\xff.\n");
}
END_TEST

START_TEST(long_messages_are_cut_between_characters) {
    static char message[3000];
    for (size_t shift = 0; shift < 3; shift++) {
        message[0] = '\0';
        for (size_t i = 0; i < shift; i++)
            strcat(message, "x");
        for (size_t i = 0; i < 900; i++)
            strcat(message, "\xe2\x82\xac");
        log_flush();
        written();
        log_write(LOG_WARN, plain_site, "%s", message);
        const char *line = written_untimed();
        ck_assert_ptr_null(strstr(line, "\\x"));
        size_t size = strlen(line);
        ck_assert_str_eq(line + size - 4, "...\n");
        ck_assert_uint_le(size, 1024 + 16);
        ck_assert_uint_ge(size, 1000);
    }
}
END_TEST

static const char *field(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

START_TEST(json_lines) {
    log_configure(LOG_INFO, LOG_JSON);
    log_write(LOG_WARN, site, "a \"quoted\" \n line");
    log_write(LOG_WARN, site, "a \"quoted\" \n line");
    json_t *line = json_loads(written(), 0, NULL);
    ck_assert_ptr_nonnull(line);
    ck_assert_uint_eq(json_object_size(line), 5);
    ck_assert_uint_eq(strlen(field(line, "ts")), 30);
    ck_assert_str_eq(field(line, "level"), "warn");
    ck_assert_str_eq(field(line, "code"), "C1203");
    ck_assert_str_eq(field(line, "msg"), "a \"quoted\" \n line");
    ck_assert_str_eq(field(line, "component"), "receiver/file/ranks");
    json_decref(line);
    log_flush();
    line = json_loads(written(), 0, NULL);
    ck_assert_ptr_nonnull(line);
    ck_assert_str_eq(field(line, "msg"), "a \"quoted\" \n line");
    ck_assert_int_eq(json_integer_value(json_object_get(line, "suppressed")), 1);
    json_decref(line);
    log_write(LOG_INFO, plain_site, "no component");
    line = json_loads(written(), 0, NULL);
    ck_assert_ptr_null(json_object_get(line, "component"));
    json_decref(line);
}
END_TEST

START_TEST(auto_is_json_when_not_a_terminal) {
    log_configure(LOG_INFO, LOG_AUTO);
    log_write(LOG_INFO, plain_site, "x");
    ck_assert_int_eq(written()[0], '{');
}
END_TEST

static void *thread_run(void *argument) {
    const char *component = argument;
    for (int i = 0; i < 500; i++)
        log_write(LOG_WARN, (struct log_site){"C1", component}, "message");
    return NULL;
}

START_TEST(threads_log_together) {
    static const char *const names[] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, thread_run, (void *)(uintptr_t)names[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    log_flush();
    written();
    for (int i = 0; i < 4; i++) {
        char first[64], last[64];
        snprintf(first, sizeof first, "%s: message\n", names[i]);
        snprintf(last, sizeof last, "%s: message (499 more in 10 s)\n", names[i]);
        ck_assert_ptr_nonnull(strstr(text, first));
        ck_assert_ptr_nonnull(strstr(text, last));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("log");
    TCase *cases = tcase_create("log");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, console_lines);
    tcase_add_test(cases, levels);
    tcase_add_test(cases, repeats_are_counted);
    tcase_add_test(cases, each_text_is_said);
    tcase_add_test(cases, texts_without_an_end_are_held_back);
    tcase_add_test(cases, a_look_says_what_is_over);
    tcase_add_test(cases, flush_says_and_forgets);
    tcase_add_test(cases, more_sites_than_windows);
    tcase_add_test(cases, nothing_in_a_message_acts);
    tcase_add_test(cases, long_messages_are_cut_between_characters);
    tcase_add_test(cases, json_lines);
    tcase_add_test(cases, auto_is_json_when_not_a_terminal);
    tcase_add_test(cases, threads_log_together);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

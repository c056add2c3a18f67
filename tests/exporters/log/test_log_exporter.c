// SPDX-License-Identifier: Apache-2.0
// Verdicts in the log: which, at which level, with which keys, and that nothing in them breaks a
// line. Standard error is a file here.
#include "base/log.h"
#include "cli/component_list.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES_MAX = 8 };

static char instance[256];
static struct buffer out;
static struct arena arena;
static struct verdict items[LINES_MAX];
static struct batch batch;
static json_t *lines[LINES_MAX];
static size_t line_count;

static void start(void) {
    static char config[512];
    ck_assert_uint_le(exporter_log.config_size, sizeof config);
    ck_assert_uint_le(exporter_log.instance_size, sizeof instance);
    memset(instance, 0, sizeof instance);
    struct component_context context = {.id = "log", .site = "exporter/log"};
    struct error error = {0};
    ck_assert_int_eq(component_start(&exporter_log, instance, config, &context, &error), STATUS_OK);
}

static void setup(void) {
    arena_init(&arena, 4096);
    buffer_init(&out, 1 << 20);
    batch = (struct batch){.arena = &arena, .verdicts = {.items = items}};
    log_configure(LOG_INFO, LOG_JSON);
    start();
}

static void teardown(void) {
    component_stop(&exporter_log, instance);
    for (size_t i = 0; i < line_count; i++)
        json_decref(lines[i]);
    line_count = 0;
    buffer_release(&out);
    arena_release(&arena);
    log_flush();
}

static void found(enum severity severity, enum verdict_state state, const char *headline) {
    struct verdict *verdict = &items[batch.verdicts.count++];
    *verdict = (struct verdict){.pattern = "nccl_hang",
                                .job = intern(SLICE("job \"a\"")),
                                .severity = severity,
                                .state = state,
                                .confidence = 80,
                                .headline = slice_of(headline)};
    snprintf(verdict->id, sizeof verdict->id, "nccl_hang:%u", batch.verdicts.count);
}

// Encodes and sends what was found, and reads the log lines.
static void deliver(void) {
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    exporter_log.exporter.encode(instance, &batch, &out);
    struct request request = {.bytes = buffer_slice(&out), .complete = true, .last = true};
    struct send_outcome outcome = {0};
    struct error error = {0};
    enum status status = exporter_log.exporter.send(instance, &request, &outcome, &error);
    dup2(saved, STDERR_FILENO);
    close(saved);
    ck_assert_int_eq(status, STATUS_OK);
    rewind(file);
    char line[4096];
    while (fgets(line, sizeof line, file) != NULL) {
        ck_assert_uint_lt(line_count, LINES_MAX);
        json_error_t json_error;
        lines[line_count] = json_loads(line, 0, &json_error);
        ck_assert_msg(lines[line_count] != NULL, "%s: %s", json_error.text, line);
        line_count++;
    }
    fclose(file);
}

static const char *member(size_t line, const char *key) {
    ck_assert_uint_lt(line, line_count);
    const char *value = json_string_value(json_object_get(lines[line], key));
    return value == NULL ? "" : value;
}

START_TEST(the_severity_decides_the_level) {
    found(SEVERITY_CRITICAL, VERDICT_OPEN, "a");
    found(SEVERITY_ERROR, VERDICT_UPDATED, "b");
    found(SEVERITY_WARNING, VERDICT_OPEN, "c");
    found(SEVERITY_INFO, VERDICT_OPEN, "d");
    found(SEVERITY_ERROR, VERDICT_RESOLVED, "e");
    deliver();
    static const char *const LEVELS[] = {"error", "error", "warn", "info", "info"};
    static const char *const MESSAGES[] = {
        "a (nccl_hang:1, confidence 80 %)", "b (nccl_hang:2, confidence 80 %)",
        "c (nccl_hang:3, confidence 80 %)", "d (nccl_hang:4, confidence 80 %)",
        "resolved: e (nccl_hang:5, confidence 80 %)"};
    ck_assert_uint_eq(line_count, 5); // each of them, though all came within 10 s
    for (size_t i = 0; i < line_count; i++) {
        ck_assert_str_eq(member(i, "level"), LEVELS[i]);
        ck_assert_str_eq(member(i, "msg"), MESSAGES[i]);
        ck_assert_str_eq(member(i, "code"), "C3701");
        ck_assert_str_eq(member(i, "component"), "exporter/log");
        ck_assert_str_eq(member(i, "pattern"), "nccl_hang");
        ck_assert_str_eq(member(i, "job_id"), "job \"a\"");
    }
    ck_assert_str_eq(member(1, "verdict_id"), "nccl_hang:2");
    ck_assert_str_eq(member(1, "state"), "updated");
    ck_assert_str_eq(member(0, "severity"), "critical");
}
END_TEST

START_TEST(text_from_events_stays_in_its_field) {
    found(SEVERITY_ERROR, VERDICT_OPEN,
          "node\nb\x1f"
          "c\x1b[31m \xff");
    deliver();
    ck_assert_uint_eq(line_count, 1);
    ck_assert_str_eq(member(0, "msg"),
                     "node\\x0ab\\x1fc\\x1b[31m \\xff (nccl_hang:1, confidence 80 %)");
    ck_assert_str_eq(member(0, "pattern"), "nccl_hang");
}
END_TEST

START_TEST(a_verdict_without_a_job_has_no_such_key) {
    found(SEVERITY_ERROR, VERDICT_OPEN, "a");
    items[0].job = STRING_NONE;
    deliver();
    ck_assert_ptr_null(json_object_get(lines[0], "job_id"));
    ck_assert_str_eq(member(0, "severity"), "error");
}
END_TEST

START_TEST(the_log_level_decides_what_is_written) {
    log_configure(LOG_ERROR, LOG_JSON);
    found(SEVERITY_WARNING, VERDICT_OPEN, "a");
    found(SEVERITY_ERROR, VERDICT_OPEN, "b");
    deliver();
    ck_assert_uint_eq(line_count, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("log exporter");
    TCase *tests = tcase_create("log exporter");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_severity_decides_the_level);
    tcase_add_test(tests, text_from_events_stays_in_its_field);
    tcase_add_test(tests, a_verdict_without_a_job_has_no_such_key);
    tcase_add_test(tests, the_log_level_decides_what_is_written);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

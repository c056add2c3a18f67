// SPDX-License-Identifier: Apache-2.0
// Every recorded line is accepted, and says what jansson reads in it.
#include "tests/receivers/decode/decode_support.h"

#include <glob.h>
#include <jansson.h>

static struct decoding decoding;

static void setup(void) {
    decoding = decoding_open();
}

static void teardown(void) {
    decoding_close(&decoding);
    intern_release();
}

static void check_integer(const json_t *object, const char *key, int64_t value) {
    const json_t *expected = json_object_get(object, key);
    ck_assert_msg(json_is_integer(expected) && json_integer_value(expected) == value, "%s is %lld",
                  key, (long long)value);
}

static void check_counter(const json_t *object, const char *key, const struct telemetry *telemetry,
                          uint32_t counter, int64_t value) {
    bool null = (telemetry->null_counters & counter) != 0;
    ck_assert_msg(json_is_null(json_object_get(object, key)) == null, "%s", key);
    if (!null)
        check_integer(object, key, value);
}

// Null and absent stand for no text.
static void check_string(const json_t *value, struct slice text, bool none) {
    ck_assert_int_eq(!json_is_string(value), none);
    if (none)
        return;
    struct slice expected = {json_string_value(value), json_string_length(value)};
    ck_assert_msg(slice_equal(text, expected), "\"%.*s\"", (int)text.size, text.data);
}

static void check_name(const json_t *object, const char *key, string_id id) {
    check_string(json_object_get(object, key), intern_slice(id), id == STRING_NONE);
}

static void check_counters(const json_t *object, const struct telemetry *t) {
    check_counter(object, "allocator_allocated_bytes", t, COUNTER_ALLOCATED, t->allocated_bytes);
    check_counter(object, "allocator_reserved_bytes", t, COUNTER_RESERVED, t->reserved_bytes);
    check_counter(object, "allocator_active_bytes", t, COUNTER_ACTIVE, t->active_bytes);
    check_counter(object, "allocator_inactive_bytes", t, COUNTER_INACTIVE, t->inactive_bytes);
    check_counter(object, "allocator_change_bytes", t, COUNTER_CHANGE, t->change_bytes);
    check_counter(object, "device_used_bytes", t, COUNTER_DEVICE_USED, t->device_used_bytes);
    check_counter(object, "device_free_bytes", t, COUNTER_DEVICE_FREE, t->device_free_bytes);
    check_counter(object, "device_total_bytes", t, COUNTER_DEVICE_TOTAL, t->device_total_bytes);
}

static void check_phase(const json_t *metadata, const struct telemetry *telemetry) {
    const json_t *scope = json_object_get(metadata, "phase_scope");
    if (telemetry->scope == NULL || scope == NULL)
        return;
    const json_t *thread = json_object_get(scope, "thread_id");
    check_string(json_object_get(scope, "scope_id"), telemetry->scope->scope_id, false);
    check_name(scope, "thread_name", telemetry->scope->thread_name);
    if (json_is_integer(thread))
        ck_assert_int_eq(json_integer_value(thread), telemetry->scope->thread_id);
}

static void check_versioned(const json_t *object, const struct telemetry *telemetry) {
    check_integer(object, "schema_version", telemetry->schema_version);
    check_integer(object, "timestamp_ns", (int64_t)telemetry->timestamp_ns);
    check_integer(object, "sampling_interval_ms", telemetry->sampling_interval_ms);
    check_integer(object, "pid", telemetry->pid);
    check_integer(object, "device_id", telemetry->device_id);
    check_name(object, "event_type", telemetry->event_type);
    check_name(object, "collector", telemetry->collector);
    check_name(object, "host", telemetry->host);
    check_name(object, "job_id", telemetry->job);
    if (json_object_get(object, "rank") != NULL)
        check_integer(object, "rank", telemetry->rank);
    if (json_object_get(object, "world_size") != NULL)
        check_integer(object, "world_size", telemetry->world_size);
    if (json_is_string(json_object_get(object, "session_id")))
        check_name(object, "session_id", telemetry->session);
    check_counters(object, telemetry);
    check_string(json_object_get(object, "context"), telemetry->context,
                 telemetry->context.data == NULL);
    const json_t *metadata = json_object_get(object, "metadata");
    json_t *read = json_loadb(telemetry->metadata.data, telemetry->metadata.size, 0, NULL);
    ck_assert(json_equal(read, metadata));
    json_decref(read);
    check_phase(metadata, telemetry);
}

// jansson cannot say everything that Python's json accepts.
static bool beyond_jansson(struct slice line) {
    return memmem(line.data, line.size, "\\ud", 3) != NULL ||
           memmem(line.data, line.size, "NaN", 3) != NULL;
}

static void check_line(const char *path, struct slice line, bool whole, unsigned *accepted,
                       unsigned *torn) {
    const struct telemetry *telemetry = decoding_run(&decoding, line);
    if (telemetry == NULL && !whole && decoding.category == DECODE_BAD_JSON) {
        ++*torn;
        return;
    }
    ck_assert_msg(telemetry != NULL, "%s: %s: %s", path, decoding.fault.field,
                  decoding.fault.detail);
    ++*accepted;
    json_t *object = json_loadb(line.data, line.size, JSON_ALLOW_NUL, NULL);
    ck_assert_msg(object != NULL || beyond_jansson(line), "%s: jansson refuses %.*s", path,
                  (int)line.size, line.data);
    if (json_object_get(object, "schema_version") != NULL)
        check_versioned(object, telemetry);
    json_decref(object);
    arena_reset(&decoding.arena);
}

static void check_files(const char *pattern, unsigned *accepted, unsigned *torn) {
    glob_t found;
    *accepted = *torn = 0;
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct slice file = file_read(found.gl_pathv[i]), rest = file, line;
        bool whole;
        memset(decoding.state, 0, decoder_stormlog.state_size);
        while (next_line(&rest, &line, &whole))
            check_line(found.gl_pathv[i], line, whole, accepted, torn);
        memory_give((char *)(uintptr_t)file.data);
    }
    globfree(&found);
}

START_TEST(golden_cases) {
    unsigned accepted, torn;
    check_files(TESTS_DIR "/golden/first_cause/*/events.jsonl", &accepted, &torn);
    ck_assert_uint_gt(accepted, 1000);
    ck_assert_uint_eq(torn, 0);
}
END_TEST

START_TEST(real_recordings) {
    unsigned accepted, torn;
    check_files(TESTS_DIR "/golden/real/*/rank*/segment-*.jsonl", &accepted, &torn);
    ck_assert_uint_gt(accepted, 1000);
    ck_assert_uint_eq(torn, 1); // torn-line-rank3
}
END_TEST

int main(void) {
    Suite *suite = suite_create("telemetry_decode_corpus");
    TCase *tcase = tcase_create("files");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, golden_cases);
    tcase_add_test(tcase, real_recordings);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

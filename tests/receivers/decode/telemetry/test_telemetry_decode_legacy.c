// SPDX-License-Identifier: Apache-2.0
#include "tests/receivers/decode/decode_support.h"

static struct decoding decoding;

static void setup(void) {
    decoding = decoding_open();
}

static void teardown(void) {
    decoding_close(&decoding);
    intern_release();
}

static const struct telemetry *accept(const char *record) {
    const struct telemetry *telemetry = decoding_run(&decoding, slice_of(record));
    ck_assert_msg(telemetry != NULL, "%s is refused: %s %s: %s", record,
                  decode_category_name(decoding.category), decoding.fault.field,
                  decoding.fault.detail);
    ck_assert_int_eq(telemetry->schema_version, 1);
    return telemetry;
}

static void refuse(const char *record, enum decode_category category, const char *field) {
    ck_assert_msg(decoding_run(&decoding, slice_of(record)) == NULL, "%s is accepted", record);
    ck_assert_str_eq(decode_category_name(decoding.category), decode_category_name(category));
    ck_assert_str_eq(decoding.fault.field, field);
}

START_TEST(a_minimal_record_gets_the_defaults) {
    const struct telemetry *telemetry = accept("{\"timestamp\": 1}");
    ck_assert_uint_eq(telemetry->timestamp_ns, 1000000000);
    assert_name(telemetry->event_type, "sample");
    ck_assert_int_eq(telemetry->type, TELEMETRY_SAMPLE);
    assert_name(telemetry->collector, "legacy.unknown");
    assert_name(telemetry->host, "unknown");
    ck_assert_uint_eq(telemetry->job, STRING_NONE);
    ck_assert_uint_eq(telemetry->session, STRING_NONE);
    ck_assert_int_eq(telemetry->pid, -1);
    ck_assert_int_eq(telemetry->device_id, -1);
    ck_assert_int_eq(telemetry->rank, 0);
    ck_assert_int_eq(telemetry->world_size, 1);
    ck_assert_uint_eq(telemetry->null_counters, COUNTER_ACTIVE | COUNTER_INACTIVE |
                                                    COUNTER_DEVICE_FREE | COUNTER_DEVICE_TOTAL);
    ck_assert_ptr_null(telemetry->context.data);
    assert_text(telemetry->metadata, "{}");
    ck_assert_double_eq(telemetry->tracker->timestamp_s, 1.0);
}
END_TEST

START_TEST(seconds_become_nanoseconds_as_doubles_do) {
    static const struct {
        const char *seconds;
        uint64_t time_ns;
    } cases[] = {
        {"1795248785.98807987", UINT64_C(1795248785988079872)},
        {"1.5", 1500000000},
        {"0.1", 100000000},
        {"1e-10", 0},
        {"-1e-10", 0},
        {"-0.0", 0},
        {"9007199254740993e-6", UINT64_C(9007199254740993024)},
        {"1760000000.1234567890123456789", UINT64_C(1760000000123456768)},
        {"18446744073.709549", UINT64_C(18446744073709549568)},
        {"1E1", UINT64_C(10000000000)},
    };
    char record[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(record, sizeof record, "{\"timestamp\": %s}", cases[i].seconds);
        const struct telemetry *telemetry = accept(record);
        ck_assert_msg(telemetry->timestamp_ns == cases[i].time_ns, "%s gives %llu",
                      cases[i].seconds, (unsigned long long)telemetry->timestamp_ns);
        ck_assert(telemetry->tracker->timestamp_s >= strtod(cases[i].seconds, NULL));
    }
}
END_TEST

START_TEST(timestamps_that_are_refused) {
    refuse("{\"timestamp\": 1e400}", DECODE_OUT_OF_RANGE, "timestamp");
    refuse("{\"timestamp\": 1e300}", DECODE_OUT_OF_RANGE, "timestamp");
    refuse("{\"timestamp\": 18446744073.71}", DECODE_OUT_OF_RANGE, "timestamp");
    refuse("{\"timestamp\": -1e-9}", DECODE_OUT_OF_RANGE, "timestamp_ns");
    refuse("{\"timestamp_ns\": -1}", DECODE_OUT_OF_RANGE, "timestamp_ns");
    refuse("{\"timestamp_ns\": null, \"timestamp\": 1}", DECODE_WRONG_TYPE, "timestamp_ns");
    refuse("{\"timestamp_ns\": 18446744073709551616}", DECODE_OUT_OF_RANGE, "timestamp_ns");
    // Types are looked at before the sign.
    refuse("{\"timestamp\": -5, \"memory_allocated\": \"x\"}", DECODE_WRONG_TYPE,
           "memory_allocated");
    ck_assert_uint_eq(accept("{\"timestamp_ns\": 18446744073709551615}")->timestamp_ns, UINT64_MAX);
    // The raw seconds are kept beside a timestamp in nanoseconds.
    ck_assert_double_eq(accept("{\"timestamp_ns\": 7, \"timestamp\": 2.5}")->tracker->timestamp_s,
                        2.5);
    ck_assert(isnan(accept("{\"timestamp_ns\": 7, \"timestamp\": \"x\"}")->tracker->timestamp_s));
}
END_TEST

START_TEST(devices_by_their_text) {
    static const struct {
        const char *members;
        int64_t device_id;
    } cases[] = {
        {"\"device\":\"cuda:3\"", 3},
        {"\"device\":\"a:b:012\"", 12},
        {"\"device\":\"CPU:1\"", -1},
        {"\"device\":\"xcPuy\",\"memory_mb\":1", -1},
        {"\"device\":\"/GPU\"", 0},
        {"\"device\":\"/gpu:x\"", 0},
        {"\"device\":\"gpu\"", -1},
        {"\"device\":\"cuda:\"", -1},
        {"\"device\":\"7\"", -1},
        {"\"device\":\"cuda:x\",\"memory_mb\":1", 0},
        {"\"device\":5,\"memory_mb\":1", 0},
        {"\"device\":\"cuda:3\",\"device_id\":-8", -8},
        {"\"device\":\"cuda\\u003a4\"", 4},
        {"\"device\":\"\"", -1},
    };
    char record[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(record, sizeof record, "{\"timestamp\":1,%s}", cases[i].members);
        ck_assert_msg(accept(record)->device_id == cases[i].device_id, "%s", record);
    }
    refuse("{\"timestamp\":1,\"device_id\":null}", DECODE_WRONG_TYPE, "device_id");
    refuse("{\"timestamp\":1,\"device\":\"cuda:9223372036854775808\"}", DECODE_OUT_OF_RANGE,
           "device");
}
END_TEST

START_TEST(what_a_tracker_wrote_itself) {
    const struct tracker_record *tracker =
        accept(
            "{\"timestamp\":1,\"memory_allocated\":1,\"allocator_allocated_bytes\":2,"
            "\"allocator_reserved_bytes\":9,\"device_used\":true,\"device_used_bytes\":-0,"
            "\"device_total\":null,\"rank\":3,\"world_size\":4,\"job_id\":\"j\",\"context\":\"c\"}")
            ->tracker;
    ck_assert_int_eq(tracker->counters[TRACKER_ALLOCATED], 1);
    ck_assert_int_eq(tracker->counters[TRACKER_RESERVED], 9);
    ck_assert_int_eq(tracker->counters[TRACKER_DEVICE_USED], 0);
    ck_assert_uint_eq(tracker->present, 1u << TRACKER_ALLOCATED | 1u << TRACKER_RESERVED |
                                            1u << TRACKER_DEVICE_USED | 1u << TRACKER_RANK |
                                            1u << TRACKER_JOB | 1u << TRACKER_CONTEXT);
    // Defaults and other places count for the normalised form alone.
    const struct telemetry *telemetry = accept(
        "{\"timestamp\":1,\"message\":\"m\",\"memory_mb\":1,\"total_memory\":2000000,"
        "\"metadata\":{\"rank\":1,\"world_size\":2,\"job_id\":\"j\"},"
        "\"device_used\":9223372036854775808,\"rank\":null}");
    ck_assert_int_eq(telemetry->rank, 1);
    ck_assert_uint_eq(telemetry->tracker->present, 0);
}
END_TEST

START_TEST(counters_from_where_they_are) {
    const struct telemetry *telemetry = accept(
        "{\"timestamp\":1,\"memory_allocated\":10,\"memory_reserved\":20,"
        "\"memory_change\":-3,\"total_memory\":100,\"device_used\":7,\"memory_mb\":1}");
    ck_assert_int_eq(telemetry->allocated_bytes, 10);
    ck_assert_int_eq(telemetry->reserved_bytes, 20);
    ck_assert_int_eq(telemetry->change_bytes, -3);
    ck_assert_int_eq(telemetry->device_used_bytes, 10);
    ck_assert_int_eq(telemetry->device_total_bytes, 100);
    ck_assert_int_eq(telemetry->device_free_bytes, 90);
    telemetry =
        accept("{\"timestamp\":1,\"memory_mb\":1.5,\"metadata\":{\"device_total\":5000000}}");
    ck_assert_int_eq(telemetry->allocated_bytes, 1572864);
    ck_assert_int_eq(telemetry->reserved_bytes, 1572864);
    ck_assert_int_eq(telemetry->device_total_bytes, 5000000);
    telemetry = accept(
        "{\"timestamp\":1,\"device_used_bytes\":8,\"total_bytes\":null,"
        "\"metadata\":{\"total_memory\":9},\"allocator_active_bytes\":4}");
    ck_assert_int_eq(telemetry->allocated_bytes, 8);
    ck_assert_int_eq(telemetry->active_bytes, 4);
    ck_assert((telemetry->null_counters & COUNTER_DEVICE_TOTAL) != 0);
    telemetry = accept(
        "{\"timestamp\":1,\"memory_allocated\":30,\"device_used_bytes\":5,"
        "\"device_total_bytes\":20,\"device_free_bytes\":null}");
    ck_assert((telemetry->null_counters & COUNTER_DEVICE_FREE) != 0);
}
END_TEST

START_TEST(counters_that_are_refused) {
    refuse("{\"timestamp\":1,\"memory_mb\":NaN}", DECODE_OUT_OF_RANGE, "memory_mb");
    refuse("{\"timestamp\":1,\"memory_mb\":1e30}", DECODE_OUT_OF_RANGE, "memory_mb");
    refuse("{\"timestamp\":1,\"memory_mb\":-1}", DECODE_OUT_OF_RANGE, "allocator_allocated_bytes");
    refuse("{\"timestamp\":1,\"device_used_bytes\":null}", DECODE_WRONG_TYPE, "device_used_bytes");
    refuse(
        "{\"timestamp\":1,\"device_used_bytes\":-9223372036854775808,"
        "\"total_memory\":9223372036854775807}",
        DECODE_OUT_OF_RANGE, "allocator_allocated_bytes");
    refuse(
        "{\"timestamp\":1,\"memory_allocated\":1,\"device_used_bytes\":-9223372036854775808,"
        "\"total_memory\":9223372036854775807}",
        DECODE_OUT_OF_RANGE, "device_used_bytes");
    refuse("{\"timestamp\":1,\"metadata\":{\"total_bytes\":\"x\"}}", DECODE_WRONG_TYPE,
           "total_bytes");
    refuse("{\"timestamp\":1,\"memory_reserved\":9223372036854775808}", DECODE_OUT_OF_RANGE,
           "memory_reserved");
    ck_assert_int_eq(accept("{\"timestamp\":1,\"memory_mb\":\"x\"}")->allocated_bytes, 0);
}
END_TEST

START_TEST(collectors_by_backend) {
    static const struct {
        const char *members, *collector;
    } cases[] = {
        {"\"collector\":\"mine\",\"backend\":\"cuda\"", "mine"},
        {"\"collector\":\" \",\"backend\":\" CuDA\\u2003\"", "stormlog.cuda_tracker"},
        {"\"collector\":7,\"metadata\":{\"backend\":\"rocm\"}", "stormlog.rocm_tracker"},
        {"\"backend\":null,\"metadata\":{\"backend\":\"rocm\"}", "legacy.unknown"},
        {"\"metadata_backend\":\"mps\",\"metadata\":{\"backend\":\"cpu\"}", "stormlog.mps_tracker"},
        {"\"backend\":\"tpu\",\"memory_mb\":\"x\"", "stormlog.tensorflow.memory_tracker"},
        {"\"memory_allocated\":1", "stormlog.cpu_tracker"},
        {"\"memory_allocated\":1,\"device_id\":0", "stormlog.cuda_tracker"},
    };
    char record[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(record, sizeof record, "{\"timestamp\":1,%s}", cases[i].members);
        assert_name(accept(record)->collector, cases[i].collector);
    }
}
END_TEST

START_TEST(identity_from_record_then_metadata) {
    const struct telemetry *telemetry = accept(
        "{\"timestamp\":1,\"rank\":null,\"world_size\":8,\"metadata\":{\"rank\":3,"
        "\"local_rank\":1,\"world_size\":2,\"job_id\":\"j\",\"session_id\":\"s\","
        "\"pid\":77,\"host\":\"h\"}}");
    ck_assert_int_eq(telemetry->rank, 3);
    ck_assert_int_eq(telemetry->local_rank, 1);
    ck_assert_int_eq(telemetry->world_size, 8);
    ck_assert_int_eq(telemetry->pid, 77);
    assert_name(telemetry->job, "j");
    assert_name(telemetry->session, "s");
    assert_name(telemetry->host, "h");
    telemetry = accept(
        "{\"timestamp\":1,\"metadata_rank\":1,\"metadata\":{\"rank\":\"x\"},"
        "\"met\\u0061data_world_size\":2,\"\\u006detadata_\\u0070id\":5}");
    ck_assert_int_eq(telemetry->rank, 1);
    ck_assert_int_eq(telemetry->local_rank, 1);
    ck_assert_int_eq(telemetry->world_size, 2);
    ck_assert_int_eq(telemetry->pid, 5);
    refuse("{\"timestamp\":1,\"metadata\":{\"rank\":true}}", DECODE_WRONG_TYPE, "rank");
    refuse("{\"timestamp\":1,\"metadata\":{\"world_size\":0}}", DECODE_OUT_OF_RANGE, "world_size");
    refuse("{\"timestamp\":1,\"metadata\":{\"job_id\":\"\"}}", DECODE_EMPTY_STRING, "job_id");
    refuse("{\"timestamp\":1,\"local_rank\":1}", DECODE_IDENTITY_CONFLICT, "local_rank");
    refuse("{\"timestamp\":1,\"rank\":2147483647,\"world_size\":2147483648}", DECODE_OUT_OF_RANGE,
           "rank");
}
END_TEST

START_TEST(texts_from_where_they_are) {
    const struct telemetry *telemetry =
        accept("{\"timestamp\":1,\"type\":\"peak\",\"message\":\"m\\n\"}");
    assert_name(telemetry->event_type, "peak");
    assert_text(telemetry->context, "m\n");
    ck_assert_ptr_null(
        accept("{\"timestamp\":1,\"context\":null,\"message\":\"m\"}")->context.data);
    refuse("{\"timestamp\":1,\"event_type\":null,\"type\":\"x\"}", DECODE_EMPTY_STRING,
           "event_type");
    refuse("{\"timestamp\":1,\"metadata\":{\"host\":5}}", DECODE_WRONG_TYPE, "host");
    refuse("{\"timestamp\":1,\"metadata\":{\"pid\":null}}", DECODE_WRONG_TYPE, "pid");
    refuse("{\"timestamp\":1,\"metadata\":3}", DECODE_WRONG_TYPE, "metadata");
    refuse("{\"timestamp\":1,\"sampling_interval_ms\":-1}", DECODE_OUT_OF_RANGE,
           "sampling_interval_ms");
    refuse("{\"timestamp\":1,\"pid\":-2}", DECODE_OUT_OF_RANGE, "pid");
    assert_text(accept("{\"timestamp\":1,\"metadata\":null}")->metadata, "{}");
    assert_text(accept("{\"timestamp\":1,\"metadata\": {\"a\" : 1},\"metadata_b\":2}")->metadata,
                "{\"a\" : 1}");
}
END_TEST

START_TEST(metadata_rules_hold_for_legacy_records_too) {
    refuse("{\"timestamp\":1,\"metadata_memory_capabilities\":[]}", DECODE_WRONG_TYPE,
           "metadata.memory_capabilities");
    refuse("{\"timestamp\":1,\"metadata\":{" CAPABILITIES("false") "}}", DECODE_CAPABILITY_CONFLICT,
           "allocator_reserved_bytes");
    accept("{\"timestamp\":1,\"metadata\":{" CAPABILITIES("true") "}}");
    refuse("{\"timestamp\":1,\"metadata_sampling_source\":\"\\t\"}", DECODE_EMPTY_STRING,
           "metadata.memory_capabilities.sampling_source");
    const struct telemetry *telemetry = accept(
        "{\"timestamp\":1,\"type\":\"phase_exit\",\"metadata_phase_scope\":{\"action\":"
        "\"exit\",\"name\":\"n\",\"path\":[\"a\",\"b\"],\"scope_id\":\"i\","
        "\"thread_id\":1,\"sequence\":2,\"thread_name\":\"t\"}}");
    ck_assert_ptr_nonnull(telemetry->scope);
    assert_name(telemetry->scope->label, "a / b");
}
END_TEST

START_TEST(a_null_version_is_not_legacy) {
    refuse("{\"timestamp\":1,\"schema_version\":null}", DECODE_WRONG_TYPE, "schema_version");
    refuse("{\"timestamp\":1,\"schema_\\u0076ersion\":1}", DECODE_UNSUPPORTED_VERSION, "1");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("telemetry_decode_legacy");
    TCase *tcase = tcase_create("records");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_minimal_record_gets_the_defaults);
    tcase_add_test(tcase, seconds_become_nanoseconds_as_doubles_do);
    tcase_add_test(tcase, timestamps_that_are_refused);
    tcase_add_test(tcase, devices_by_their_text);
    tcase_add_test(tcase, what_a_tracker_wrote_itself);
    tcase_add_test(tcase, counters_from_where_they_are);
    tcase_add_test(tcase, counters_that_are_refused);
    tcase_add_test(tcase, collectors_by_backend);
    tcase_add_test(tcase, identity_from_record_then_metadata);
    tcase_add_test(tcase, texts_from_where_they_are);
    tcase_add_test(tcase, metadata_rules_hold_for_legacy_records_too);
    tcase_add_test(tcase, a_null_version_is_not_legacy);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

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

static const struct telemetry *accept(struct slice record) {
    const struct telemetry *telemetry = decoding_run_fresh(&decoding, record);
    ck_assert_msg(telemetry != NULL, "refused: %s %s: %s", decode_category_name(decoding.category),
                  decoding.fault.field, decoding.fault.detail);
    return telemetry;
}

static void refuse(struct slice record, enum decode_category category, const char *field) {
    decoding_run_fresh(&decoding, record);
    ck_assert_str_eq(decode_category_name(decoding.category), decode_category_name(category));
    ck_assert_int_eq(decoding.fault.category, category);
    ck_assert_str_eq(decoding.fault.field, field);
    ck_assert_uint_gt(strlen(decoding.fault.detail), 0);
}

// One row of reasons.tsv: name, load, category, field.
static void check_row(char *row) {
    char *cursor = row, *columns[4], path[512];
    for (unsigned i = 0; i < 4; i++)
        columns[i] = strsep(&cursor, "\t");
    snprintf(path, sizeof path, TESTS_DIR "/golden/telemetry_invalid/%s.json", columns[0]);
    struct slice record = file_read(path);
    const struct telemetry *telemetry = decoding_run(&decoding, record);
    if (strcmp(columns[1], "accepted") == 0) {
        ck_assert_msg(telemetry != NULL, "%s is refused: %s", columns[0], decoding.fault.detail);
    } else {
        ck_assert_msg(telemetry == NULL, "%s is accepted", columns[0]);
        const char *field = strcmp(columns[3], "-") == 0 ? "" : columns[3];
        ck_assert_str_eq(decode_category_name(decoding.category), columns[2]);
        ck_assert_str_eq(decoding.fault.field, field);
    }
    memory_give((char *)(uintptr_t)record.data);
}

START_TEST(golden_records_get_the_reference_verdict) {
    struct slice table = file_read(TESTS_DIR "/golden/telemetry_invalid/reasons.tsv");
    struct slice rest = table, line;
    bool whole;
    unsigned rows = 0;
    ck_assert(next_line(&rest, &line, &whole)); // the header
    while (next_line(&rest, &line, &whole)) {
        char *row = memory_copy_text(line.data, line.size);
        check_row(row);
        memory_give(row);
        rows++;
    }
    ck_assert_uint_eq(rows, 168);
    memory_give((char *)(uintptr_t)table.data);
}
END_TEST

START_TEST(all_fields_arrive) {
    const struct telemetry *telemetry = accept(RECORD("allocator_active_bytes", "7"));
    ck_assert_int_eq(decoding.event.kind, EVENT_TELEMETRY);
    ck_assert_uint_eq(decoding.event.time_ns, UINT64_C(1760000000000000000));
    ck_assert_uint_eq(decoding.event.job, telemetry->job);
    ck_assert_uint_eq(decoding.event.node, telemetry->host);
    ck_assert_int_eq(decoding.event.rank, 1);
    ck_assert_int_eq(telemetry->schema_version, 3);
    ck_assert_int_eq(telemetry->type, TELEMETRY_SAMPLE);
    assert_name(telemetry->session, "sess-1");
    assert_name(telemetry->event_type, "sample");
    assert_name(telemetry->collector, "stormlog.cuda_tracker");
    assert_name(telemetry->host, "node0");
    assert_name(telemetry->job, "job-a");
    ck_assert_int_eq(telemetry->local_rank, 1);
    ck_assert_int_eq(telemetry->world_size, 2);
    ck_assert_int_eq(telemetry->pid, 4001);
    ck_assert_int_eq(telemetry->device_id, 0);
    ck_assert_int_eq(telemetry->sampling_interval_ms, 100);
    ck_assert_int_eq(telemetry->allocated_bytes, 966367641);
    ck_assert_int_eq(telemetry->reserved_bytes, 1020054732);
    ck_assert_int_eq(telemetry->active_bytes, 7);
    ck_assert_int_eq(telemetry->change_bytes, -5);
    ck_assert_int_eq(telemetry->device_used_bytes, 1073741824);
    ck_assert_int_eq(telemetry->device_free_bytes, INT64_C(84825604096));
    ck_assert_int_eq(telemetry->device_total_bytes, INT64_C(85899345920));
    ck_assert_uint_eq(telemetry->null_counters, COUNTER_INACTIVE);
    assert_text(telemetry->context, "ok");
    assert_text(telemetry->metadata, "{\"backend\": \"cuda\"}");
    ck_assert_ptr_null(telemetry->scope);
    ck_assert_ptr_null(telemetry->tracker);
}
END_TEST

START_TEST(identity_defaults) {
    const struct telemetry *telemetry =
        accept(RECORD("rank", NULL, "local_rank", NULL, "world_size", NULL, "job_id", "null"));
    ck_assert_int_eq(telemetry->rank, 0);
    ck_assert_int_eq(telemetry->world_size, 1);
    ck_assert_uint_eq(telemetry->job, STRING_NONE);
    telemetry = accept(RECORD("rank", "5", "local_rank", NULL, "world_size", "8"));
    ck_assert_int_eq(telemetry->local_rank, 5);
}
END_TEST

START_TEST(integers_up_to_the_limits) {
    const struct telemetry *telemetry =
        accept(RECORD("timestamp_ns", "18446744073709551615", "pid", "9223372036854775807",
                      "device_id", "-9223372036854775808", "allocator_change_bytes", "-0"));
    ck_assert_uint_eq(telemetry->timestamp_ns, UINT64_MAX);
    ck_assert_uint_eq(decoding.event.time_ns, UINT64_MAX);
    ck_assert_int_eq(telemetry->pid, INT64_MAX);
    ck_assert_int_eq(telemetry->device_id, INT64_MIN);
    ck_assert_int_eq(telemetry->change_bytes, 0);
    telemetry = accept(RECORD("rank", "2147483645", "local_rank", "0", "world_size", "2147483646"));
    ck_assert_int_eq(telemetry->rank, RANK_MAX - 1);
}
END_TEST

START_TEST(integers_beyond_the_limits) {
    refuse(RECORD("timestamp_ns", "18446744073709551616"), DECODE_OUT_OF_RANGE, "timestamp_ns");
    ck_assert_ptr_nonnull(strstr(decoding.fault.detail, "18446744073709551615"));
    refuse(RECORD("pid", "9223372036854775808"), DECODE_OUT_OF_RANGE, "pid");
    ck_assert_ptr_nonnull(strstr(decoding.fault.detail, "9223372036854775807"));
    refuse(RECORD("device_id", "-9223372036854775809"), DECODE_OUT_OF_RANGE, "device_id");
    refuse(RECORD("device_total_bytes", "99999999999999999999999"), DECODE_OUT_OF_RANGE,
           "device_total_bytes");
    refuse(RECORD("rank", "2147483647", "world_size", "2147483647"), DECODE_OUT_OF_RANGE, "rank");
    refuse(RECORD("world_size", "2147483647"), DECODE_OUT_OF_RANGE, "world_size");
    ck_assert_ptr_nonnull(strstr(decoding.fault.detail, "2147483646"));
    refuse(RECORD("schema_version", "99999999999999999999999"), DECODE_UNSUPPORTED_VERSION,
           "99999999999999999999999");
    refuse(RECORD("schema_version", "-0"), DECODE_UNSUPPORTED_VERSION, "0");
}
END_TEST

START_TEST(session_comes_from_the_record_else_the_metadata) {
    static const struct {
        const char *version, *own, *metadata, *expected;
    } cases[] = {
        {"3", "\"own\"", "{\"session_id\":\"meta\"}", "own"},
        {"3", NULL, "{\"session_id\":\"meta\"}", "meta"},
        {"4", "null", "{\"session_id\":\"meta\"}", "meta"},
        {"2", NULL, "{\"session_id\":\"meta\"}", "meta"},
        {"3", "\" \\t\"", "{\"session_id\":\"meta\"}", NULL},
        {"3", "7", "{\"session_id\":\"meta\"}", NULL},
        {"3", NULL, "{\"session_id\":\" \"}", NULL},
        {"3", NULL, "{\"session_id\":{}}", NULL},
        {"3", NULL, "{\"session_id\":\"a\",\"session_id\":\"b\"}", "b"},
        {"3", NULL, "{}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct telemetry *telemetry =
            accept(RECORD("schema_version", cases[i].version, "session_id", cases[i].own,
                          "metadata", cases[i].metadata));
        ck_assert_int_eq(telemetry->session == STRING_NONE, cases[i].expected == NULL);
        if (cases[i].expected != NULL)
            assert_name(telemetry->session, cases[i].expected);
    }
}
END_TEST

START_TEST(escapes_are_resolved) {
    const struct telemetry *telemetry =
        accept(RECORD("host", "\"n\\u006f\\u00e9\"", "context",
                      "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\ud83d\\ude00\\ud800x\\udc00\"",
                      "job_id", "\"\\ud83d\\u0041\""));
    assert_name(telemetry->host, "no\xc3\xa9");
    assert_text(telemetry->context, "\"\\/\b\f\n\r\tA\xf0\x9f\x98\x80\xed\xa0\x80x\xed\xb0\x80");
    assert_name(telemetry->job,
                "\xed\xa0\xbd"
                "A");
    ck_assert_uint_eq(accept(RECORD("context", "\"a\\u0000b\""))->context.size, 3);
    assert_text(accept(RECORD("context", "\"\\udc00\\udc01\\ud800\\ud801\\udc00\""))->context,
                "\xed\xb0\x80\xed\xb0\x81\xed\xa0\x80\xf0\x90\x90\x80");
}
END_TEST

START_TEST(escaped_keys_are_the_same_keys) {
    struct slice record = RECORD("host", NULL, "ho\\u0073t", "\"here\"");
    assert_name(accept(record)->host, "here");
    refuse(RECORD("h\\u006fstess", "1"), DECODE_UNKNOWN_FIELD, "hostess");
    refuse(RECORD("", "1"), DECODE_UNKNOWN_FIELD, "");
}
END_TEST

START_TEST(context_null_and_empty_differ) {
    ck_assert_ptr_null(accept(RECORD("context", "null"))->context.data);
    const struct telemetry *telemetry = accept(RECORD("context", "\"\""));
    ck_assert_ptr_nonnull(telemetry->context.data);
    ck_assert_uint_eq(telemetry->context.size, 0);
    assert_text(accept(RECORD("context", "\" \""))->context, " ");
}
END_TEST

START_TEST(the_last_of_a_repeated_key_counts) {
    assert_name(accept(RECORD("metadata", "{}", "host\":3,\"host", "\"x\""))->host, "x");
    refuse(RECORD("metadata", "{}", "pid\":1,\"pid", "\"x\""), DECODE_WRONG_TYPE, "pid");
    const struct telemetry *telemetry =
        accept(RECORD("metadata", "[],\"metadata\":{\"session_id\":1}"));
    assert_text(telemetry->metadata, "{\"session_id\":1}");
    refuse(RECORD("metadata", "{\"memory_capabilities\":7," CAPABILITIES(
                                  "true") "},"
                                          "\"metadata\":{\"memory_capabilities\":7}"),
           DECODE_WRONG_TYPE, "metadata.memory_capabilities");
}
END_TEST

START_TEST(event_types_fold_like_the_reference) {
    static const struct {
        const char *text;
        enum telemetry_type type;
    } cases[] = {
        {"\"sample\"", TELEMETRY_SAMPLE},
        {"\"SaMpLe\"", TELEMETRY_SAMPLE},
        {"\"\xc5\xbf"
         "ample\"",
         TELEMETRY_SAMPLE},
        {"\"\\u017fAMPLE\"", TELEMETRY_SAMPLE},
        {"\"sample \"", TELEMETRY_OTHER},
        {"\"samples\"", TELEMETRY_OTHER},
        {"\"\\u0073ample\"", TELEMETRY_SAMPLE},
        {"\"s\"", TELEMETRY_OTHER},
        {"\"\xc5\xbe"
         "ample\"",
         TELEMETRY_OTHER},
        {"\"phase_enter\"", TELEMETRY_PHASE_ENTER},
        {"\"phase_exit\"", TELEMETRY_PHASE_EXIT},
        {"\"Phase_enter\"", TELEMETRY_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(accept(RECORD("event_type", cases[i].text))->type, cases[i].type);
}
END_TEST

START_TEST(blank_means_what_python_strips) {
    static const char *const spaces[] = {"\\t",     "\\u000b", "\\f",     "\\u001c",
                                         "\\u001f", " ",       "\\u0085", "\xc2\xa0",
                                         "\\u1680", "\\u2000", "\\u200a", "\\u2028",
                                         "\\u2029", "\\u202f", "\\u205f", "\xe3\x80\x80"};
    static const char *const others[] = {"\\u0000", "\\u001b", "\\u200b", "\\u180e",
                                         "\\ufeff", "\\ud800", "\\u007f", "\\u0086"};
    char text[32];
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        snprintf(text, sizeof text, "\"%s\"", spaces[i]);
        refuse(RECORD("host", text), DECODE_EMPTY_STRING, "host");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(text, sizeof text, "\" %s\"", others[i]);
        accept(RECORD("host", text));
    }
}
END_TEST

START_TEST(unknown_keys_are_sorted_and_cut) {
    refuse(RECORD("zeta", "1", "alpha", "{}", "\\u0062eta", "[]", "zeta", "2"),
           DECODE_UNKNOWN_FIELD, "alpha, beta, zeta");
    char text[RECORD_TEXT_MAX] = "{}";
    size_t size = 2;
    for (int i = 299; i >= 0; i--)
        size += (size_t)snprintf(text + size, sizeof text - size, ",\"k%03d\":%d", i, i);
    refuse(RECORD("metadata", text), DECODE_UNKNOWN_FIELD, decoding.fault.field);
    ck_assert_uint_eq(strlen(decoding.fault.field), DECODE_FIELD_MAX - 1);
    ck_assert_int_eq(strncmp(decoding.fault.field, "k000, k001, k002, ", 18), 0);
}
END_TEST

START_TEST(faults_say_what_was_found) {
    refuse(RECORD("pid", "5.0"), DECODE_WRONG_TYPE, "pid");
    ck_assert_str_eq(decoding.fault.detail, "found the decimal number 5.0, expected an integer");
    refuse(RECORD("pid", "[1]"), DECODE_WRONG_TYPE, "pid");
    ck_assert_str_eq(decoding.fault.detail, "found an array, expected an integer");
    refuse(RECORD("pid", "\"0123456789012345678901234567890123456789abc\""), DECODE_WRONG_TYPE,
           "pid");
    ck_assert_str_eq(decoding.fault.detail,
                     "found the text \"0123456789012345678901234567890123456789...\", expected an "
                     "integer");
    // A character is not cut in two: 39 letters, then one of two bytes.
    refuse(RECORD("pid", "\"012345678901234567890123456789012345678\xc3\xa9z\""), DECODE_WRONG_TYPE,
           "pid");
    ck_assert_str_eq(decoding.fault.detail,
                     "found the text \"012345678901234567890123456789012345678...\", expected an "
                     "integer");
    struct slice broken = SLICE("{\"schema_version\": 3, \"pid\": 01}");
    refuse(broken, DECODE_BAD_JSON, "");
    ck_assert_uint_eq(decoding.fault.offset, 29);
}
END_TEST

START_TEST(capabilities_are_inferred_without_a_block) {
    accept(RECORD("schema_version", "4", "allocator_allocated_bytes", "null",
                  "allocator_change_bytes", "null", "metadata", "{}"));
    refuse(RECORD("schema_version", "4", "allocator_allocated_bytes", "null", "metadata", "{}"),
           DECODE_CAPABILITY_CONFLICT, "allocator_change_bytes");
    refuse(RECORD("metadata", "{\"sampling_source\":\"\"}"), DECODE_EMPTY_STRING,
           "metadata.memory_capabilities.sampling_source");
    accept(RECORD("metadata", "{\"sampling_source\":null}"));
    accept(RECORD("metadata", "{\"sampling_source\":\"\"," CAPABILITIES("true") "}"));
}
END_TEST

START_TEST(a_block_that_was_seen_is_still_compared_with_the_counters) {
    const char *block = "{" CAPABILITIES("false") "}";
    const char *null_reserved[] = {
        "schema_version", "4", "allocator_reserved_bytes", "null", "metadata", block, NULL, NULL};
    ck_assert_ptr_nonnull(decoding_run_fresh(&decoding, record_with(null_reserved)));
    ck_assert_ptr_null(decoding_run(&decoding, RECORD("schema_version", "4", "metadata", block)));
    ck_assert_int_eq(decoding.category, DECODE_CAPABILITY_CONFLICT);
    ck_assert_str_eq(decoding.fault.field, "allocator_reserved_bytes");
}
END_TEST

static const struct phase_scope *scope_of(const char *type, const char *scope) {
    char metadata[2048];
    snprintf(metadata, sizeof metadata, "{\"phase_scope\":%s}", scope);
    return accept(RECORD("event_type", type, "metadata", metadata))->scope;
}

#define SCOPE_WITH(action, name, path, thread, sequence, more)                                     \
    "{\"action\":\"" action "\",\"name\":" name ",\"path\":" path                                  \
    ",\"scope_id\":\"s:1\","                                                                       \
    "\"thread_id\":" thread ",\"sequence\":" sequence ",\"thread_name\":\"Main\"" more "}"

START_TEST(phase_boundaries_arrive) {
    const struct phase_scope *scope = scope_of(
        "\"phase_enter\"",
        SCOPE_WITH("enter", "\"fw\"", "[\"epoch\", 3, \"\", \"st\\u00e9p\", \" \", null, [\"x\"]]",
                   "140484628843392", "7", ",\"parent_scope_id\":null"));
    ck_assert_ptr_nonnull(scope);
    assert_name(scope->label, "epoch / st\xc3\xa9p /  ");
    ck_assert_uint_eq(scope->depth, 3);
    assert_text(scope->scope_id, "s:1");
    ck_assert_int_eq(scope->thread_id, INT64_C(140484628843392));
    ck_assert_int_eq(scope->sequence, 7);
    ck_assert(!scope->thread_id_is_bool && !scope->sequence_is_bool);
    assert_name(scope->thread_name, "Main");
    scope = scope_of("\"phase_exit\"", SCOPE_WITH("exit", "\"x\"", "[\"a\"]", "true", "false",
                                                  ",\"scope_id\":\"\",\"thread_name\":\"\""));
    ck_assert_ptr_nonnull(scope);
    ck_assert(scope->thread_id_is_bool && scope->sequence_is_bool);
    ck_assert_int_eq(scope->thread_id, 1);
    ck_assert_int_eq(scope->sequence, 0);
    ck_assert_uint_eq(scope->scope_id.size, 0);
    assert_name(scope->thread_name, "");
    ck_assert_uint_ne(scope->thread_name, STRING_NONE);
}
END_TEST

START_TEST(malformed_boundaries_are_none) {
    static const struct {
        const char *type, *scope;
    } cases[] = {
        {"\"phase_exit\"", SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1", "1", "")},
        {"\"sample\"", SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1", "1", "")},
        {"\"Phase_enter\"", SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1", "1", "")},
        {"\"phase_enter\"", SCOPE_WITH("enter", "\" \"", "[\"a\"]", "1", "1", "")},
        {"\"phase_enter\"", SCOPE_WITH("enter", "3", "[\"a\"]", "1", "1", "")},
        {"\"phase_enter\"", SCOPE_WITH("enter", "\"n\"", "[]", "1", "1", "")},
        {"\"phase_enter\"", SCOPE_WITH("enter", "\"n\"", "[\"\", 4]", "1", "1", "")},
        {"\"phase_enter\"", SCOPE_WITH("enter", "\"n\"", "\"a\"", "1", "1", "")},
        {"\"phase_enter\"", SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1.0", "1", "")},
        {"\"phase_enter\"", SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1", "null", "")},
        {"\"phase_enter\"",
         SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "9223372036854775808", "1", "")},
        {"\"phase_enter\"",
         SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1", "-9223372036854775809", "")},
        {"\"phase_enter\"",
         SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1", "1", ",\"parent_scope_id\":4")},
        {"\"phase_enter\"",
         SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1", "1", ",\"scope_id\":null")},
        {"\"phase_enter\"",
         SCOPE_WITH("enter", "\"n\"", "[\"a\"]", "1", "1", ",\"thread_name\":null")},
        {"\"phase_enter\"", "[]"},
        {"\"phase_enter\"", "{}"},
        {"\"phase_enter\"", "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(scope_of(cases[i].type, cases[i].scope) == NULL, "case %zu", i);
    ck_assert_ptr_null(accept(RECORD("event_type", "\"phase_enter\""))->scope);
}
END_TEST

START_TEST(the_bound_on_names_is_a_fault) {
    intern_set_max_bytes(600);
    char host[800];
    memset(host, 'h', sizeof host);
    host[0] = host[sizeof host - 2] = '"';
    host[sizeof host - 1] = '\0';
    refuse(RECORD("host", host), DECODE_LIMIT, "host");
    accept(RECORD("host", "\"h\""));
    char scope[1200];
    snprintf(scope, sizeof scope, SCOPE_WITH("enter", "\"n\"", "[%s]", "1", "1", ""), host);
    char metadata[1400];
    snprintf(metadata, sizeof metadata, "{\"phase_scope\":%s}", scope);
    refuse(RECORD("host", "\"h\"", "event_type", "\"phase_enter\"", "metadata", metadata),
           DECODE_LIMIT, "metadata.phase_scope.path");
    intern_set_max_bytes(UINT64_C(256) << 20);
}
END_TEST

START_TEST(refused_records_add_no_names) {
    refuse(RECORD("host", "\"never kept\"", "context", "4"), DECODE_WRONG_TYPE, "context");
    ck_assert_uint_eq(intern_find(SLICE("never kept")), STRING_NONE);
    accept(RECORD("pid", "1"));
    decoding_run(&decoding, RECORD("pid", "2", "host", "\"a\""));
    decoding_run(&decoding, RECORD("pid", "3", "host", "\"b\"", "rank", "0"));
    ck_assert_ptr_null(decoding_run(&decoding, RECORD("host", "\"nor this\"", "rank", "7")));
    ck_assert_uint_eq(intern_find(SLICE("nor this")), STRING_NONE);
}
END_TEST

START_TEST(every_category_has_a_name) {
    for (int i = 0; i < DECODE_CATEGORY_COUNT; i++) {
        ck_assert_uint_gt(strlen(decode_category_name((enum decode_category)i)), 0);
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(decode_category_name((enum decode_category)i),
                             decode_category_name((enum decode_category)k));
    }
    ck_assert_str_eq(decode_category_name(DECODE_TOO_LONG), "too_long");
    ck_assert_str_eq(decode_category_name(DECODE_TORN), "torn");
    ck_assert_str_eq(decode_category_name(DECODE_LIMIT), "limit");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("telemetry_decode");
    TCase *tcase = tcase_create("records");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, golden_records_get_the_reference_verdict);
    tcase_add_test(tcase, all_fields_arrive);
    tcase_add_test(tcase, identity_defaults);
    tcase_add_test(tcase, integers_up_to_the_limits);
    tcase_add_test(tcase, integers_beyond_the_limits);
    tcase_add_test(tcase, session_comes_from_the_record_else_the_metadata);
    tcase_add_test(tcase, escapes_are_resolved);
    tcase_add_test(tcase, escaped_keys_are_the_same_keys);
    tcase_add_test(tcase, context_null_and_empty_differ);
    tcase_add_test(tcase, the_last_of_a_repeated_key_counts);
    tcase_add_test(tcase, event_types_fold_like_the_reference);
    tcase_add_test(tcase, blank_means_what_python_strips);
    tcase_add_test(tcase, unknown_keys_are_sorted_and_cut);
    tcase_add_test(tcase, faults_say_what_was_found);
    tcase_add_test(tcase, capabilities_are_inferred_without_a_block);
    tcase_add_test(tcase, a_block_that_was_seen_is_still_compared_with_the_counters);
    tcase_add_test(tcase, phase_boundaries_arrive);
    tcase_add_test(tcase, malformed_boundaries_are_none);
    tcase_add_test(tcase, the_bound_on_names_is_a_fault);
    tcase_add_test(tcase, refused_records_add_no_names);
    tcase_add_test(tcase, every_category_has_a_name);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// SPDX-License-Identifier: Apache-2.0
#include "tests/receivers/decode/otlp/otlp_support.h"

enum { MESSAGE_MAX = 4096 };

// A protobuf message put together by hand.
struct message {
    size_t size;
    unsigned char bytes[MESSAGE_MAX];
};

static struct guarded guarded;
static struct seen seen;

static void setup(void) {
    guarded = guarded_open(1 << 20);
    arena_init(&seen.arena, 4096);
}

static void teardown(void) {
    arena_release(&seen.arena);
    guarded_close(&guarded);
    intern_release();
}

static void put_byte(struct message *message, unsigned byte) {
    ck_assert_uint_lt(message->size, MESSAGE_MAX);
    message->bytes[message->size++] = (unsigned char)byte;
}

static void put_varint(struct message *message, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        put_byte(message, (unsigned)(value & 0x7f) | 0x80);
    put_byte(message, (unsigned)value);
}

static void put_number(struct message *message, uint32_t field, uint64_t value) {
    put_varint(message, (uint64_t)field << 3);
    put_varint(message, value);
}

static void put_fixed64(struct message *message, uint32_t field, uint64_t value) {
    put_varint(message, (uint64_t)field << 3 | 1);
    for (unsigned i = 0; i < 8; i++)
        put_byte(message, (unsigned)(value >> 8 * i & 0xff));
}

static void put_bytes(struct message *message, uint32_t field, const void *bytes, size_t size) {
    put_varint(message, (uint64_t)field << 3 | 2);
    put_varint(message, size);
    for (size_t i = 0; i < size; i++)
        put_byte(message, ((const unsigned char *)bytes)[i]);
}

static void put_text(struct message *message, uint32_t field, const char *text) {
    put_bytes(message, field, text, strlen(text));
}

static void put_message(struct message *message, uint32_t field, const struct message *inner) {
    put_bytes(message, field, inner->bytes, inner->size);
}

static struct message any_int(int64_t value) {
    struct message any = {0};
    put_number(&any, 3, (uint64_t)value);
    return any;
}

static struct message any_text(const char *text) {
    struct message any = {0};
    put_text(&any, 1, text);
    return any;
}

static struct message pair(const char *key, struct message any) {
    struct message made = {0};
    put_text(&made, 1, key);
    put_message(&made, 2, &any);
    return made;
}

static void put_attribute(struct message *log, const char *key, struct message any) {
    struct message made = pair(key, any);
    put_message(log, 6, &made);
}

// A log record that is telemetry with one more attribute.
static struct message telemetry_log(const char *key, struct message any) {
    struct message log = {0};
    put_attribute(&log, "memory_mb", any_int(1));
    put_attribute(&log, key, any);
    return log;
}

static struct message request(const struct message *log) {
    struct message scope = {0}, resource = {0}, made = {0};
    put_message(&scope, 2, log);
    put_message(&resource, 2, &scope);
    put_message(&made, 1, &resource);
    return made;
}

static void read_message(const struct message *message) {
    seen_read(&seen, &guarded, otlp_logs_protobuf,
              (struct slice){(const char *)message->bytes, message->size});
}

static void becomes(const struct message *log, const char *expected) {
    struct message made = request(log);
    read_message(&made);
    ck_assert_msg(seen.status == STATUS_OK, "%s", seen.error.message);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_msg(seen.refusals[0] == NULL, "%s", seen.refusals[0]);
    assert_record(seen.records[0], expected);
}

static void is_malformed(const struct message *log, const char *why) {
    struct message made = request(log);
    read_message(&made);
    ck_assert_int_eq(seen.status, STATUS_BAD_DATA);
    ck_assert_msg(strstr(seen.error.message, why) != NULL, "\"%s\" instead of \"%s\"",
                  seen.error.message, why);
}

START_TEST(both_encodings_of_a_real_request_agree) {
    struct slice binary = file_read(TESTS_DIR "/receivers/decode/otlp/data/logs.pb");
    struct slice text = file_read(TESTS_DIR "/receivers/decode/otlp/data/logs.json");
    static struct seen other;
    arena_init(&other.arena, 4096);
    struct guarded place = guarded_open(1 << 20);
    seen_read(&seen, &guarded, otlp_logs_protobuf, binary);
    seen_read(&other, &place, otlp_logs_json, text);
    ck_assert_msg(seen.status == STATUS_OK, "%s", seen.error.message);
    ck_assert_msg(other.status == STATUS_OK, "%s", other.error.message);
    ck_assert_uint_eq(seen.count, 7);
    ck_assert_uint_eq(other.count, 7);
    for (unsigned i = 0; i < 7; i++) {
        if (seen.records[i].data == NULL) {
            ck_assert_str_eq(seen.refusals[i], other.refusals[i]);
            continue;
        }
        json_t *a = parse_record(seen.records[i]), *b = parse_record(other.records[i]);
        ck_assert_msg(json_equal(a, b), "log record %u", i);
        json_decref(a);
        json_decref(b);
    }
    arena_release(&other.arena);
    guarded_close(&place);
    memory_give((char *)(uintptr_t)binary.data);
    memory_give((char *)(uintptr_t)text.data);
}
END_TEST

// What the SDK sent arrives as events, through the decoder that reads files.
START_TEST(a_real_request_becomes_events) {
    static const struct {
        uint64_t timestamp_ns;
        int rank;
        const char *job;
        const char *host;
        int64_t used;
    } rows[] = {
        {1760000000000000000, 0, "llama-70b", "node0", 1 << 30},
        {1760000000000000000, 1, "llama-70b", "node0", 1 << 30},
        {1760000000100000000, 1, "llama-70b-set", "node-from-resource", 1 << 30},
        {1760000000200000000, 0, "llama-70b", "node0", (1 << 30) + 5},
        {0, 0, NULL, NULL, 0}, // a plain log line
        {1760000000200000000, 0, "llama-70b", "node0", 1 << 30},
        {0, 0, NULL, NULL, 0},
    };
    struct slice binary = file_read(TESTS_DIR "/receivers/decode/otlp/data/logs.pb");
    struct decoding decoding = decoding_open();
    seen_read(&seen, &guarded, otlp_logs_protobuf, binary);
    ck_assert_uint_eq(seen.count, sizeof rows / sizeof *rows);
    for (unsigned i = 0; i < seen.count; i++) {
        if (rows[i].job == NULL) {
            ck_assert_ptr_null(seen.refusals[i]);
            ck_assert_ptr_nonnull(
                memmem(seen.records[i].data, seen.records[i].size, "{\"otlp\":\"log\"", 13));
            continue;
        }
        const struct telemetry *telemetry = decoding_run(&decoding, seen.records[i]);
        ck_assert_msg(telemetry != NULL, "%u: %s %s", i, decoding.fault.field,
                      decoding.fault.detail);
        ck_assert_uint_eq(telemetry->timestamp_ns, rows[i].timestamp_ns);
        ck_assert_int_eq(telemetry->rank, rows[i].rank);
        ck_assert_int_eq(telemetry->local_rank, rows[i].rank);
        ck_assert_int_eq(telemetry->device_used_bytes, rows[i].used);
        ck_assert_int_eq(telemetry->type, TELEMETRY_SAMPLE);
        assert_name(telemetry->job, rows[i].job);
        assert_name(telemetry->host, rows[i].host);
        assert_text(telemetry->context, i == 3 ? "step finished" : "Collected telemetry sample.");
    }
    decoding_close(&decoding);
    memory_give((char *)(uintptr_t)binary.data);
}
END_TEST

START_TEST(every_cut_is_told) {
    struct slice binary = file_read(TESTS_DIR "/receivers/decode/otlp/data/logs.pb");
    for (size_t size = 1; size < binary.size; size++) {
        seen_read(&seen, &guarded, otlp_logs_protobuf, (struct slice){binary.data, size});
        ck_assert_msg(seen.status == STATUS_BAD_DATA, "cut at byte %zu", size);
    }
    memory_give((char *)(uintptr_t)binary.data);
    struct message empty = {0};
    read_message(&empty); // a request without anything
    ck_assert_int_eq(seen.status, STATUS_OK);
    ck_assert_uint_eq(seen.count, 0);
}
END_TEST

// Each byte of a real request replaced by each of a few others: answered, and nothing read outside.
START_TEST(changed_bytes_are_answered) {
    struct slice binary = file_read(TESTS_DIR "/receivers/decode/otlp/data/logs.pb");
    char *changed = memory_take(binary.size);
    static const unsigned char others[] = {0x00, 0x01, 0x0a, 0x12, 0x7f, 0x80, 0xff};
    memcpy(changed, binary.data, binary.size);
    unsigned wrong = 0, right = 0;
    for (size_t i = 0; i < binary.size; i++) {
        for (size_t k = 0; k < sizeof others; k++) {
            changed[i] = (char)others[k];
            seen_read(&seen, &guarded, otlp_logs_protobuf, (struct slice){changed, binary.size});
            wrong += seen.status == STATUS_BAD_DATA;
            right += seen.status == STATUS_OK;
        }
        changed[i] = binary.data[i];
    }
    ck_assert_uint_gt(wrong, 0);
    ck_assert_uint_gt(right, 0);
    ck_assert_uint_eq(wrong + right, binary.size * sizeof others);
    memory_give(changed);
    memory_give((char *)(uintptr_t)binary.data);
}
END_TEST

START_TEST(values_keep_their_types) {
    struct message any = any_int(INT64_MIN);
    struct message log = telemetry_log("x", any);
    becomes(&log, "{\"memory_mb\":1,\"x\":-9223372036854775808}");

    any = (struct message){0};
    double number = 0.1;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_fixed64(&any, 4, bits);
    log = telemetry_log("x", any);
    becomes(&log, "{\"memory_mb\":1,\"x\":0.1}");

    any = (struct message){0};
    put_number(&any, 2, 1);
    log = telemetry_log("x", any);
    becomes(&log, "{\"memory_mb\":1,\"x\":true}");

    static const struct {
        const char *bytes;
        const char *expected;
    } rows[] = {
        {"", "{\"memory_mb\":1,\"x\":\"\"}"},
        {"f", "{\"memory_mb\":1,\"x\":\"Zg==\"}"},
        {"fo", "{\"memory_mb\":1,\"x\":\"Zm8=\"}"},
        {"foo", "{\"memory_mb\":1,\"x\":\"Zm9v\"}"},
        {"\xff\xfe\xfd\xfc", "{\"memory_mb\":1,\"x\":\"//79/A==\"}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        any = (struct message){0};
        put_text(&any, 7, rows[i].bytes);
        log = telemetry_log("x", any);
        becomes(&log, rows[i].expected);
    }
    log = telemetry_log("x", (struct message){0});
    becomes(&log, "{\"memory_mb\":1,\"x\":null}");
    log = telemetry_log("x", any_text("\"\\\n\xc3\xa9\xf0\x9f\x98\x80"));
    becomes(&log, "{\"memory_mb\":1,\"x\":\"\\\"\\\\\\n\\u00e9\\ud83d\\ude00\"}");
}
END_TEST

START_TEST(containers_nest) {
    struct message array = {0}, any = {0}, list = {0}, inner = {0}, item = any_int(3);
    put_message(&array, 1, &item);
    put_bytes(&array, 1, "", 0);
    struct message entry = pair("k", any_text("v"));
    put_message(&list, 1, &entry);
    put_message(&inner, 6, &list);
    put_message(&array, 1, &inner);
    put_message(&any, 5, &array);
    struct message log = telemetry_log("x", any);
    becomes(&log, "{\"memory_mb\":1,\"x\":[3,null,{\"k\":\"v\"}]}");

    any = any_int(1);
    for (unsigned depth = 1; depth <= OTLP_DEPTH_MAX + 1; depth++) {
        struct message values = {0}, outer = {0};
        entry = pair("k", any);
        put_message(&values, 1, &entry);
        put_message(&outer, 6, &values);
        any = outer;
        log = telemetry_log("x", any);
        struct message made = request(&log);
        read_message(&made);
        ck_assert_int_eq(seen.status, depth <= OTLP_DEPTH_MAX ? STATUS_OK : STATUS_BAD_DATA);
    }
    ck_assert_ptr_nonnull(strstr(seen.error.message, "more than 16 deep"));
}
END_TEST

START_TEST(unknown_fields_are_passed_over) {
    struct message log = {0};
    put_number(&log, 2, 9); // severity
    put_number(&log, 900, UINT64_MAX);
    put_fixed64(&log, 901, 7);
    put_text(&log, 902, "later");
    put_varint(&log, 8 << 3 | 5); // flags, 32 bits
    for (unsigned i = 0; i < 4; i++)
        put_byte(&log, i);
    put_number(&log, 5, 3);  // the body with another wire type
    put_number(&log, 1, 44); // the time too
    put_attribute(&log, "memory_mb", any_int(1));
    becomes(&log, "{\"memory_mb\":1}");
    struct message any = any_int(4);
    put_text(&any, 99, "later");
    log = telemetry_log("x", any);
    becomes(&log, "{\"memory_mb\":1,\"x\":4}");
}
END_TEST

START_TEST(the_last_of_two_counts) {
    struct message any = any_int(4);
    put_text(&any, 1, "text");
    struct message log = telemetry_log("x", any);
    put_attribute(&log, "memory_mb", any_int(2));
    struct message first = any_text("{\"memory_mb\":3}"), last = any_text("note");
    put_message(&log, 5, &first);
    put_message(&log, 5, &last);
    becomes(&log, "{\"memory_mb\":2,\"x\":\"text\",\"context\":\"note\"}");
}
END_TEST

START_TEST(times_names_and_the_resource_fill_what_is_missing) {
    struct message log = {0}, resource = {0}, scope = {0}, logs = {0}, made = {0};
    struct message body = any_text("{\"memory_mb\":3}");
    put_message(&log, 5, &body);
    put_fixed64(&log, 11, 18);
    put_fixed64(&log, 1, 17);
    put_text(&log, 12, "culprit.sample");
    struct message host = pair("host.name", any_text("n\"1"));
    struct message pid = pair("process.pid", any_int(77));
    struct message job = pair("k8s.job.name", any_text("j"));
    put_message(&resource, 1, &host);
    put_message(&resource, 1, &pid);
    put_message(&resource, 1, &job);
    put_message(&scope, 2, &log);
    put_message(&logs, 2, &scope); // before the resource
    put_message(&logs, 1, &resource);
    put_message(&made, 1, &logs);
    read_message(&made);
    ck_assert_int_eq(seen.status, STATUS_OK);
    assert_record(seen.records[0],
                  "{\"memory_mb\":3,\"timestamp_ns\":17,\"event_type\":\"sample\","
                  "\"host\":\"n\\\"1\",\"pid\":77,\"job_id\":\"j\"}");
}
END_TEST

START_TEST(what_is_not_protobuf_is_told) {
    struct message log = {0};
    put_byte(&log, 0x00);
    is_malformed(&log, "a field number that protobuf does not have");
    log = (struct message){0};
    put_byte(&log, 5 << 3 | 3);
    is_malformed(&log, "a wire type that OTLP does not use");
    log = (struct message){0};
    put_byte(&log, 5 << 3 | 7);
    is_malformed(&log, "a wire type that OTLP does not use");
    log = (struct message){0};
    put_byte(&log, 2 << 3);
    for (unsigned i = 0; i < 9; i++)
        put_byte(&log, 0xff);
    put_byte(&log, 0x02);
    is_malformed(&log, "a number of more than 64 bits");
    log = (struct message){0};
    put_byte(&log, 2 << 3);
    put_byte(&log, 0x80);
    is_malformed(&log, "the message ends inside a number");
    log = (struct message){0};
    put_byte(&log, 1 << 3 | 1);
    put_byte(&log, 0);
    is_malformed(&log, "the message ends inside a number");
    log = (struct message){0};
    put_varint(&log, 5 << 3 | 2);
    put_varint(&log, UINT64_MAX);
    is_malformed(&log, "longer than what is left");
    log = (struct message){0};
    put_varint(&log, UINT64_C(1) << 35);
    put_byte(&log, 0);
    is_malformed(&log, "a field number that protobuf does not have");

    static const char *const texts[] = {"\xff", "\xc3", "\xed\xa0\x80", "12345678\xc0\x80",
                                        "\xf4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        log = telemetry_log("x", any_text(texts[i]));
        is_malformed(&log, "bytes that are not UTF-8");
        log = telemetry_log(texts[i], any_int(1));
        is_malformed(&log, "bytes that are not UTF-8");
        log = (struct message){0};
        put_text(&log, 12, texts[i]);
        is_malformed(&log, "bytes that are not UTF-8");
    }
    // JSON sent as protobuf.
    seen_read(&seen, &guarded, otlp_logs_protobuf, SLICE("{\"resourceLogs\":[]}"));
    ck_assert_int_eq(seen.status, STATUS_BAD_DATA);
    ck_assert_ptr_nonnull(
        strstr(seen.error.message, "in protobuf: at byte 0, after 0 log records"));
}
END_TEST

START_TEST(other_bodies_are_refused) {
    struct message bodies[4] = {any_int(3), any_text(""), {0}, {0}};
    put_text(&bodies[2], 7, "{\"memory_mb\":3}");
    put_text(&bodies[3], 5, "");
    static const char *const why[] = {"neither text nor a map", "text that is not a JSON object",
                                      "its body is bytes", "neither text nor a map"};
    for (unsigned i = 0; i < 4; i++) {
        struct message log = {0};
        put_message(&log, 5, &bodies[i]);
        struct message made = request(&log);
        read_message(&made);
        ck_assert_int_eq(seen.status, STATUS_OK);
        ck_assert_uint_eq(seen.count, 1);
        ck_assert_msg(strstr(seen.refusals[0], why[i]) != NULL, "%s", seen.refusals[0]);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("otlp_protobuf");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, both_encodings_of_a_real_request_agree);
    tcase_add_test(tcase, a_real_request_becomes_events);
    tcase_add_test(tcase, every_cut_is_told);
    tcase_add_test(tcase, changed_bytes_are_answered);
    tcase_add_test(tcase, values_keep_their_types);
    tcase_add_test(tcase, containers_nest);
    tcase_add_test(tcase, unknown_fields_are_passed_over);
    tcase_add_test(tcase, the_last_of_two_counts);
    tcase_add_test(tcase, times_names_and_the_resource_fill_what_is_missing);
    tcase_add_test(tcase, what_is_not_protobuf_is_told);
    tcase_add_test(tcase, other_bodies_are_refused);
    Suite *suite = suite_create("otlp_protobuf");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

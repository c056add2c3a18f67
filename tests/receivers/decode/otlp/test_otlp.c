// SPDX-License-Identifier: Apache-2.0
#include "tests/receivers/decode/otlp/otlp_support.h"

static struct guarded guarded;
static struct seen seen;

static void setup(void) {
    guarded = guarded_open(4 << 20);
    arena_init(&seen.arena, 4096);
}

static void teardown(void) {
    arena_release(&seen.arena);
    guarded_close(&guarded);
    intern_release();
}

static void read_text(struct slice body) {
    seen_read(&seen, &guarded, otlp_logs_json, body);
}

// A request of one log record with these members, and a resource with these attributes.
static struct slice request(const char *attributes, const char *members) {
    static char text[65536];
    int size = snprintf(text, sizeof text,
                        "{\"resourceLogs\":[{\"resource\":{\"attributes\":[%s]},\"scopeLogs\":[{"
                        "\"logRecords\":[{%s}]}]}]}",
                        attributes, members);
    ck_assert_uint_lt((size_t)size, sizeof text);
    return (struct slice){text, (size_t)size};
}

static void read_one(const char *attributes, const char *members) {
    read_text(request(attributes, members));
    ck_assert_msg(seen.status == STATUS_OK, "%s", seen.error.message);
    ck_assert_uint_eq(seen.count, 1);
}

static void becomes(const char *members, const char *expected) {
    read_one("", members);
    ck_assert_msg(seen.refusals[0] == NULL, "%s: %s", members, seen.refusals[0]);
    assert_record(seen.records[0], expected);
}

static void becomes_with(const char *attributes, const char *members, const char *expected) {
    read_one(attributes, members);
    assert_record(seen.records[0], expected);
}

static void is_refused(const char *members, const char *why) {
    read_one("", members);
    ck_assert_msg(seen.refusals[0] != NULL, "%s is taken", members);
    ck_assert_msg(strstr(seen.refusals[0], why) != NULL, "\"%s\" instead of \"%s\"",
                  seen.refusals[0], why);
}

#define TEXT(key, text)   "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" text "\"}}"
#define INT(key, number)  "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" number "\"}}"
#define BODY(text)        "\"body\":{\"stringValue\":\"" text "\"}"
#define MAP(pairs)        "\"body\":{\"kvlistValue\":{\"values\":[" pairs "]}}"
#define ATTRIBUTES(pairs) "\"attributes\":[" pairs "]"
#define USED              INT("device_used_bytes", "7")

START_TEST(text_that_is_an_object_is_the_record) {
    becomes(BODY("{\\\"memory_mb\\\":5,\\\"a\\\":[1,{}]}"), "{\"memory_mb\":5,\"a\":[1,{}]}");
    becomes(BODY(" \\n{\\\"memory_mb\\\" : 5 }\\t"), "{\"memory_mb\":5}");
    becomes(MAP(USED), "{\"device_used_bytes\":7}");
}
END_TEST

START_TEST(a_body_wins_over_attributes_and_those_over_the_resource) {
    const char *host = TEXT("host.name", "r") "," INT("process.pid", "5");
    becomes_with(host, MAP(USED), "{\"device_used_bytes\":7,\"host\":\"r\",\"pid\":5}");
    becomes_with(host, MAP(USED) "," ATTRIBUTES(TEXT("host", "a")),
                 "{\"device_used_bytes\":7,\"host\":\"a\",\"pid\":5}");
    becomes_with(host, MAP(USED "," TEXT("host", "b")) "," ATTRIBUTES(TEXT("host", "a")),
                 "{\"device_used_bytes\":7,\"host\":\"b\",\"pid\":5}");
    // In whatever order they come.
    becomes_with(
        host, ATTRIBUTES(TEXT("host", "a") "," INT("pid", "1")) "," MAP(USED "," TEXT("host", "b")),
        "{\"device_used_bytes\":7,\"host\":\"b\",\"pid\":1}");
    becomes(ATTRIBUTES(INT("rank", "1")) "," BODY("{\\\"memory_mb\\\":1,\\\"rank\\\":2}"),
            "{\"memory_mb\":1,\"rank\":2}");
}
END_TEST

START_TEST(the_resource_is_found_wherever_it_stands) {
    read_text(SLICE("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{" MAP(
        USED) "}]}],"
              "\"resource\":{\"attributes\":[" TEXT(
                  "host.name", "late") "]}},"
                                       "{\"scopeLogs\":[{\"logRecords\":[{" MAP(
                                           USED) "}]},{\"logRecords\":[{" MAP(USED) "}]}]}]}"));
    ck_assert_int_eq(seen.status, STATUS_OK);
    ck_assert_uint_eq(seen.count, 3);
    assert_record(seen.records[0], "{\"device_used_bytes\":7,\"host\":\"late\"}");
    assert_record(seen.records[1], "{\"device_used_bytes\":7}"); // the next resource says nothing
    assert_record(seen.records[2], "{\"device_used_bytes\":7}");
}
END_TEST

START_TEST(a_job_is_named_by_the_resource_when_the_record_names_none) {
    const char *all =
        TEXT("k8s.job.name", "job") "," TEXT("k8s.pod.label.jobset.sigs.k8s.io/jobset-name", "set");
    becomes_with(all, MAP(USED), "{\"device_used_bytes\":7,\"job_id\":\"set\"}");
    becomes_with(TEXT("k8s.job.name", "job"), MAP(USED),
                 "{\"device_used_bytes\":7,\"job_id\":\"job\"}");
    becomes_with(TEXT("culprit.job_id", "own") "," TEXT("k8s.job.name", "job"), MAP(USED),
                 "{\"device_used_bytes\":7,\"job_id\":\"own\"}");
    becomes_with(all, MAP(USED "," TEXT("job_id", "body")),
                 "{\"device_used_bytes\":7,\"job_id\":\"body\"}");
    becomes_with(all, MAP(USED ",{\"key\":\"job_id\",\"value\":{}}"),
                 "{\"device_used_bytes\":7,\"job_id\":\"set\"}");
    becomes_with(all, BODY("{\\\"memory_mb\\\":1,\\\"job_id\\\":null}"),
                 "{\"memory_mb\":1,\"job_id\":\"set\"}");
    becomes(BODY("{\\\"memory_mb\\\":1,\\\"job_id\\\":null}"), "{\"memory_mb\":1,\"job_id\":null}");
    // What is not a name is not taken for one.
    becomes_with(INT("host.name", "3") "," TEXT("process.pid", "x") "," TEXT("k8s.job.name", ""),
                 MAP(USED), "{\"device_used_bytes\":7}");
}
END_TEST

START_TEST(a_name_that_is_too_long_is_not_taken) {
    char attribute[512], name[OTLP_NAME_MAX + 2], expected[512];
    memset(name, 'n', sizeof name);
    name[OTLP_NAME_MAX + 1] = '\0';
    snprintf(attribute, sizeof attribute, TEXT("host.name", "%s"), name);
    becomes_with(attribute, MAP(USED), "{\"device_used_bytes\":7}");
    name[OTLP_NAME_MAX] = '\0';
    snprintf(attribute, sizeof attribute, TEXT("host.name", "%s"), name);
    snprintf(expected, sizeof expected, "{\"device_used_bytes\":7,\"host\":\"%s\"}", name);
    becomes_with(attribute, MAP(USED), expected);
}
END_TEST

START_TEST(prefixes_are_cut_and_foreign_names_left_out) {
    becomes(ATTRIBUTES(INT("culprit.memory_mb", "1") "," INT("stormlog.rank", "2") "," TEXT(
                "code.function.name", "f") "," TEXT("step", "s") "," TEXT("", "no name")),
            "{\"memory_mb\":1,\"rank\":2,\"step\":\"s\"}");
    becomes(ATTRIBUTES(INT("memory_mb", "1") "," TEXT("stormlog.a.b", "kept")),
            "{\"memory_mb\":1,\"a.b\":\"kept\"}");
    // The names of a body's fields are taken as they are.
    becomes(MAP(USED "," TEXT("culprit.rank", "x")),
            "{\"device_used_bytes\":7,\"culprit.rank\":\"x\"}");
}
END_TEST

START_TEST(time_comes_from_the_log_record_when_missing) {
    becomes("\"timeUnixNano\":\"17\",\"observedTimeUnixNano\":\"18\"," MAP(USED),
            "{\"device_used_bytes\":7,\"timestamp_ns\":17}");
    becomes("\"timeUnixNano\":\"0\",\"observedTimeUnixNano\":18," MAP(USED),
            "{\"device_used_bytes\":7,\"timestamp_ns\":18}");
    becomes("\"timeUnixNano\":17," MAP(USED "," INT("timestamp_ns", "3")),
            "{\"device_used_bytes\":7,\"timestamp_ns\":3}");
    becomes("\"timeUnixNano\":17," BODY("{\\\"memory_mb\\\":1,\\\"timestamp\\\":2.5}"),
            "{\"memory_mb\":1,\"timestamp\":2.5}");
    read_one("", "\"timeUnixNano\":18446744073709551615," MAP(USED));
    ck_assert_ptr_nonnull(
        memmem(seen.records[0].data, seen.records[0].size, "18446744073709551615", 20));
}
END_TEST

START_TEST(the_event_name_is_the_event_type_when_missing) {
    becomes("\"eventName\":\"stormlog.sample\"," MAP(USED),
            "{\"device_used_bytes\":7,\"event_type\":\"sample\"}");
    becomes("\"eventName\":\"a\"," MAP(USED) "," ATTRIBUTES(TEXT("event.name", "b")),
            "{\"device_used_bytes\":7,\"event_type\":\"a\"}");
    becomes(MAP(USED) "," ATTRIBUTES(TEXT("event.name", "culprit.b")),
            "{\"device_used_bytes\":7,\"event_type\":\"b\"}");
    becomes("\"eventName\":\"a\"," MAP(USED "," TEXT("event_type", "c")),
            "{\"device_used_bytes\":7,\"event_type\":\"c\"}");
    becomes("\"eventName\":\"a\"," MAP(USED "," TEXT("type", "c")),
            "{\"device_used_bytes\":7,\"type\":\"c\"}");
    becomes("\"eventName\":null," MAP(USED), "{\"device_used_bytes\":7}");
}
END_TEST

START_TEST(text_beside_telemetry_attributes_is_the_context) {
    becomes(BODY("step \\\"3\\\"") "," ATTRIBUTES(USED),
            "{\"device_used_bytes\":7,\"context\":\"step \\\"3\\\"\"}");
    becomes(BODY("x") "," ATTRIBUTES(USED "," TEXT("context", "y")),
            "{\"device_used_bytes\":7,\"context\":\"y\"}");
    becomes("\"body\":{\"intValue\":3}," ATTRIBUTES(USED), "{\"device_used_bytes\":7}");
}
END_TEST

START_TEST(values_keep_their_types) {
#define FIELD(value) MAP(USED ",{\"key\":\"x\",\"value\":" value "}")
#define IS(value)    "{\"device_used_bytes\":7,\"x\":" value "}"
    static const struct {
        const char *value;
        const char *json;
    } rows[] = {
        {FIELD("{\"intValue\":\"-9223372036854775808\"}"), IS("-9223372036854775808")},
        {FIELD("{\"intValue\":9223372036854775807}"), IS("9223372036854775807")},
        {FIELD("{\"doubleValue\":1}"), IS("1.0")},
        {FIELD("{\"doubleValue\":0.1}"), IS("0.1")},
        {FIELD("{\"doubleValue\":\"1e300\"}"), IS("1e+300")},
        {FIELD("{\"boolValue\":true}"), IS("true")},
        {FIELD("{\"boolValue\":false}"), IS("false")},
        {FIELD("{}"), IS("null")},
        {FIELD("null"), IS("null")},
        {FIELD("{\"stringValue\":null}"), IS("null")},
        {FIELD("{\"futureValue\":[1,{}]}"), IS("null")},
        {FIELD("{\"stringValue\":\"\"}"), IS("\"\"")},
        {FIELD("{\"stringValue\":\"a\\u00e9\\n\"}"), IS("\"a\\u00e9\\n\"")},
        {FIELD("{\"bytesValue\":\"-_\\/+\"}"), IS("\"+//+\"")},
        {FIELD("{\"bytesValue\":\"aGk\"}"), IS("\"aGk=\"")},
        {FIELD("{\"bytesValue\":\"aA==\"}"), IS("\"aA==\"")},
        {FIELD("{\"bytesValue\":\"\"}"), IS("\"\"")},
        {FIELD("{\"arrayValue\":{}}"), IS("[]")},
        {FIELD("{\"arrayValue\":{\"values\":null}}"), IS("[]")},
        {FIELD("{\"kvlistValue\":{\"values\":[]}}"), IS("{}")},
        {FIELD("{\"arrayValue\":{\"values\":[{\"intValue\":1},{},{\"arrayValue\":{\"values\":[{"
               "\"boolValue\":true}]}},{\"kvlistValue\":{\"values\":[{\"value\":{\"stringValue\":"
               "\"v\"},\"key\":\"k\"},{\"key\":\"l\"}]}}]}}"),
         IS("[1,null,[true],{\"k\":\"v\",\"l\":null}]")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        becomes(rows[i].value, rows[i].json);
    read_one("", FIELD("{\"doubleValue\":\"-Infinity\"}"));
    ck_assert_ptr_nonnull(memmem(seen.records[0].data, seen.records[0].size, ":-Infinity", 10));
    read_one("", FIELD("{\"doubleValue\":\"NaN\"}"));
    ck_assert_ptr_nonnull(memmem(seen.records[0].data, seen.records[0].size, ":NaN", 4));
}
END_TEST

START_TEST(text_is_a_line_of_a_log) {
    static const char want[] = "{\"otlp\":\"log\",\"timeUnixNano\":\"1767607872345678901\",";
    static const char body[] = "\"body\":\"  [rank3]: loss 2.3\"";
    read_one("", "\"timeUnixNano\":\"1767607872345678901\"," BODY("  [rank3]: loss 2.3"));
    struct slice record = seen.records[0];
    ck_assert_ptr_nonnull(record.data);
    ck_assert_msg(memmem(record.data, record.size, want, sizeof want - 1) == record.data, "%.*s",
                  (int)record.size, record.data);
    ck_assert_ptr_nonnull(memmem(record.data, record.size, body, sizeof body - 1));
}
END_TEST

START_TEST(refusals_say_why) {
    is_refused(BODY(""), "text that is not a JSON object");
    is_refused("\"severityNumber\":9", "it has no body");
    is_refused("\"body\":{\"intValue\":3}", "neither text nor a map");
    is_refused("\"body\":{\"arrayValue\":{}}", "neither text nor a map");
    is_refused("\"body\":{\"bytesValue\":\"aGk=\"}", "its body is bytes");
    is_refused(MAP(TEXT("level", "info")), "a field that only telemetry has");
    is_refused(BODY("{\\\"level\\\":1}") "," ATTRIBUTES(INT("step", "1")),
               "such as schema_version");
    is_refused(BODY("{\\\"memory_mb\\\":1"), "begins like a JSON object but is none");
    is_refused(BODY("{\\\"memory_mb\\\":1} x"), "something follows the object, at byte 16");
    is_refused(BODY("{\\\"memory_mb\\\":1,}"), "no key in quotes");
    is_refused(BODY("{\\\"memory_mb\\\":1,\\\"a\\\":\\\"\\\\ud800"), "ends inside a string");
}
END_TEST

START_TEST(a_refused_log_record_leaves_the_others) {
    read_text(SLICE("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{" BODY("") "},{" MAP(
        USED) "},{},{" BODY("{\\\"memory_mb\\\":2}") "}]}]}]}"));
    ck_assert_uint_eq(seen.count, 4);
    ck_assert_ptr_nonnull(seen.refusals[0]);
    assert_record(seen.records[1], "{\"device_used_bytes\":7}");
    ck_assert_ptr_nonnull(seen.refusals[2]);
    assert_record(seen.records[3], "{\"memory_mb\":2}");
}
END_TEST

START_TEST(unknown_and_empty_parts_are_passed_over) {
    static const char *const bodies[] = {
        "{}",
        " { } ",
        "{\"resourceLogs\":null}",
        "{\"resourceLogs\":[]}",
        "{\"resource_logs\":[{}],\"x\":[[{\"y\":1}]]}",
        "{\"resourceLogs\":[{}]}",
        "{\"resourceLogs\":[{\"resource\":null,\"scopeLogs\":null,\"schemaUrl\":\"u\"}]}",
        "{\"resourceLogs\":[{\"resource\":{\"attributes\":null,\"droppedAttributesCount\":1}}]}",
        "{\"resourceLogs\":[{\"scopeLogs\":[{\"scope\":{\"name\":\"n\"},\"logRecords\":null}]}]}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        read_text(slice_of(bodies[i]));
        ck_assert_msg(seen.status == STATUS_OK && seen.count == 0, "%s: %s", bodies[i],
                      seen.error.message);
    }
    becomes(
        "\"severityNumber\":9,\"severityText\":\"INFO\",\"traceId\":\"00ff\",\"flags\":1,"
        "\"attributes\":null,\"future\":{\"body\":[1]}," MAP(USED),
        "{\"device_used_bytes\":7}");
    becomes("\"\\u0062ody\":{\"kvlist\\u0056alue\":{\"values\":[" USED "]}}",
            "{\"device_used_bytes\":7}");
    // Of a member that comes twice the last counts.
    becomes(BODY("{\\\"memory_mb\\\":1,\\\"rank\\\":1}") "," MAP(USED),
            "{\"device_used_bytes\":7}");
}
END_TEST

START_TEST(malformed_requests_take_nothing) {
    static const struct {
        const char *body;
        const char *why;
    } rows[] = {
        {"", "at byte 0, after 0 log records: no JSON object"},
        {"[]", "no JSON object"},
        {"{", "no key in quotes"},
        {"{} x", "at byte 3"},
        {"{\"resourceLogs\":{}}", "at byte 16, after 0 log records: something else where an array"},
        {"{\"resourceLogs\":[3]}", "where an object must be"},
        {"{\"resourceLogs\":[{\"resource\":3}]}", "where an object must be"},
        {"{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{},7]}]}]}", "after 1 log records"},
        {"{\"resourceLogs\":[{}", "no comma or closing bracket"},
        {"{\"resourceLogs\":[{},]}", "where an object must be"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        read_text(slice_of(rows[i].body));
        ck_assert_int_eq(seen.status, STATUS_BAD_DATA);
        ck_assert_msg(strstr(seen.error.message, rows[i].why) != NULL, "%s: %s", rows[i].body,
                      seen.error.message);
    }
    static const char *const members[] = {
        "\"timeUnixNano\":\"x\"",
        "\"timeUnixNano\":-1",
        "\"timeUnixNano\":1.5",
        "\"timeUnixNano\":18446744073709551616",
        "\"observedTimeUnixNano\":[]",
        "\"timeUnixNano\":\"1 \"",
        "\"timeUnixNano\":\"\"",
        "\"eventName\":3",
        "\"body\":\"text\"",
        "\"body\":{\"stringValue\":3}",
        "\"body\":{\"intValue\":\"3.0\"}",
        "\"body\":{\"intValue\":9223372036854775808}",
        "\"body\":{\"doubleValue\":\"a\"}",
        "\"body\":{\"doubleValue\":true}",
        "\"body\":{\"boolValue\":\"true\"}",
        "\"body\":{\"bytesValue\":\"a\"}",
        "\"body\":{\"bytesValue\":\"a?==\"}",
        "\"body\":{\"bytesValue\":\"aaa==\"}",
        "\"body\":{\"bytesValue\":[]}",
        "\"body\":{\"arrayValue\":[]}",
        "\"body\":{\"arrayValue\":{\"values\":{}}}",
        "\"body\":{\"arrayValue\":{\"values\":[3]}}",
        "\"body\":{\"kvlistValue\":3}",
        "\"body\":{\"kvlistValue\":{\"values\":[3]}}",
        "\"attributes\":{}",
        "\"attributes\":[3]",
        "\"attributes\":[{\"key\":3}]",
        "\"attributes\":[{\"key\":\"a.b\",\"value\":{\"arrayValue\":{\"values\":[3]}}}]",
        "\"attributes\":[{\"key\":\"event.name\",\"value\":{\"arrayValue\":{\"values\":[3]}}}]",
        "\"body\":{\"stringValue\":\"\xff\"}",
        "\"body\":{\"stringValue\":\"\x01\"}",
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        read_text(request("", members[i]));
        ck_assert_msg(seen.status == STATUS_BAD_DATA, "%s is taken", members[i]);
    }
    read_text(request("{\"key\":\"a\",\"value\":{\"boolValue\":1}}", ""));
    ck_assert_int_eq(seen.status, STATUS_BAD_DATA);
}
END_TEST

START_TEST(limits_hold) {
    // One array more than may stand in another.
    char members[4096] = "", value[4096] = "{\"intValue\":1}", next[4096];
    for (unsigned depth = 1; depth <= OTLP_DEPTH_MAX + 1; depth++) {
        snprintf(next, sizeof next, "{\"arrayValue\":{\"values\":[%.3000s]}}", value);
        memcpy(value, next, sizeof value);
        snprintf(members, sizeof members,
                 "\"attributes\":[" USED ",{\"key\":\"x\",\"value\":%.3000s}]", value);
        read_text(request("", members));
        ck_assert_int_eq(seen.status, depth <= OTLP_DEPTH_MAX ? STATUS_OK : STATUS_BAD_DATA);
    }
    ck_assert_ptr_nonnull(strstr(seen.error.message, "more than 16 deep"));
    // Fields.
    for (unsigned fields = OTLP_FIELDS_MAX; fields <= OTLP_FIELDS_MAX + 1; fields++) {
        char many[16384];
        size_t size = (size_t)snprintf(many, sizeof many, "\"attributes\":[" USED);
        for (unsigned i = 1; i < fields; i++)
            size += (size_t)snprintf(many + size, sizeof many - size, "," INT("f%u", "1"), i);
        snprintf(many + size, sizeof many - size, "]");
        read_one("", many);
        ck_assert((seen.refusals[0] == NULL) == (fields == OTLP_FIELDS_MAX));
    }
    ck_assert_ptr_nonnull(strstr(seen.refusals[0], "more than 128 fields"));
    char text[4096] = BODY("{\\\"memory_mb\\\":1");
    size_t size = strlen(text) - 2; // into the text
    for (unsigned i = 0; i < OTLP_FIELDS_MAX; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, ",\\\"f%u\\\":1", i);
    snprintf(text + size, sizeof text - size, "}\"}");
    is_refused(text, "more than 128 fields");
}
END_TEST

// A request whose one log record has a text of `size` bytes in the place of the hash sign.
static void read_large(const char *members, size_t size) {
    struct slice head = request("", members);
    const char *hash = memchr(head.data, '#', head.size);
    size_t before = (size_t)(hash - head.data), after = head.size - before - 1;
    char *text = memory_take(head.size + size);
    memcpy(text, head.data, before);
    memset(text + before, 'x', size);
    memcpy(text + before + size, hash + 1, after);
    read_text((struct slice){text, before + size + after});
    ck_assert_int_eq(seen.status, STATUS_OK);
    memory_give(text);
}

START_TEST(a_record_has_a_greatest_size) {
    static const char *const members[] = {
        ATTRIBUTES(USED "," TEXT("x", "#")),
        MAP(USED "," TEXT("x", "#")),
        BODY("{\\\"memory_mb\\\":1,\\\"x\\\":\\\"#\\\"}"),
        BODY("{\\\"memory_mb\\\":1,\\\"x\\\":\\\"#\\\"}") "," ATTRIBUTES(INT("rank", "1")),
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        read_large(members[i], OTLP_RECORD_MAX - 100);
        ck_assert_msg(seen.refusals[0] == NULL, "%s: %s", members[i], seen.refusals[0]);
        read_large(members[i], OTLP_RECORD_MAX);
        ck_assert_str_eq(seen.refusals[0], "it is larger than 1 MiB");
    }
    // What is not used may be as large as it likes.
    read_large(ATTRIBUTES(USED "," TEXT("code.stacktrace", "#")), OTLP_RECORD_MAX);
    assert_record(seen.records[0], "{\"device_used_bytes\":7}");
}
END_TEST

START_TEST(the_number_of_log_records_is_bounded) {
    size_t size = 0, count = OTLP_RECORDS_MAX;
    char *text = memory_take(3 * (count + 1) + 256);
    memcpy(text, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[", 46);
    size = 46;
    for (size_t i = 0; i < count; i++) {
        memcpy(text + size, i == 0 ? " {}" : ",{}", 3);
        size += 3;
    }
    memcpy(text + size, "]}]}]}   ", 9);
    read_text((struct slice){text, size + 6});
    ck_assert_int_eq(seen.status, STATUS_OK);
    ck_assert_uint_eq(seen.count, count);
    memcpy(text + size, ",{}]}]}]}", 9);
    read_text((struct slice){text, size + 9});
    ck_assert_int_eq(seen.status, STATUS_BAD_DATA);
    ck_assert_ptr_nonnull(strstr(seen.error.message, "more than 262144 log records"));
    memory_give(text);
}
END_TEST

START_TEST(small_requests_cannot_grow_without_bound) {
    // Each short record repeats two long names of its resource.
    char name[OTLP_NAME_MAX + 1], attributes[1024];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(attributes, sizeof attributes,
             TEXT("host.name", "%s") "," TEXT("culprit.job_id", "%s"), name, name);
    enum { RECORDS = 2000 };
    char *text = memory_take(RECORDS * 128);
    size_t size = (size_t)sprintf(text,
                                  "{\"resourceLogs\":[{\"resource\":{\"attributes\":[%s]},"
                                  "\"scopeLogs\":[{\"logRecords\":[{}",
                                  attributes);
    for (unsigned i = 0; i < RECORDS; i++)
        size += (size_t)sprintf(text + size, ",{" ATTRIBUTES(INT("memory_mb", "1")) "}");
    size += (size_t)sprintf(text + size, "]}]}]}");
    read_text((struct slice){text, size});
    ck_assert_uint_eq(seen.count, RECORDS + 1);
    ck_assert_uint_gt(seen.refused, 1);
    ck_assert_uint_lt(seen.refused, RECORDS);
    ck_assert_uint_le(seen.size, 4 * size + (64 << 10));
    memory_give(text);
}
END_TEST

START_TEST(every_cut_is_told) {
    struct slice body = file_read(TESTS_DIR "/receivers/decode/otlp/data/logs.json");
    size_t whole = body.size;
    while (body.data[whole - 1] != '}')
        whole--;
    for (size_t size = 0; size < whole; size++) {
        read_text((struct slice){body.data, size});
        ck_assert_msg(seen.status == STATUS_BAD_DATA, "cut at byte %zu", size);
    }
    read_text((struct slice){body.data, whole});
    ck_assert_int_eq(seen.status, STATUS_OK);
    memory_give((char *)(uintptr_t)body.data);
}
END_TEST

START_TEST(a_warm_arena_allocates_nothing) {
    struct slice body = SLICE("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{" BODY(
        "{\\\"memory_mb\\\":1}") "}]}]}]}");
    read_text(body);
    uint64_t allocations = memory_figures().allocations;
    for (unsigned i = 0; i < 100; i++)
        read_text(body);
    ck_assert_uint_eq(memory_figures().allocations, allocations);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("otlp");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, text_that_is_an_object_is_the_record);
    tcase_add_test(tcase, a_body_wins_over_attributes_and_those_over_the_resource);
    tcase_add_test(tcase, the_resource_is_found_wherever_it_stands);
    tcase_add_test(tcase, a_job_is_named_by_the_resource_when_the_record_names_none);
    tcase_add_test(tcase, a_name_that_is_too_long_is_not_taken);
    tcase_add_test(tcase, prefixes_are_cut_and_foreign_names_left_out);
    tcase_add_test(tcase, time_comes_from_the_log_record_when_missing);
    tcase_add_test(tcase, the_event_name_is_the_event_type_when_missing);
    tcase_add_test(tcase, text_beside_telemetry_attributes_is_the_context);
    tcase_add_test(tcase, values_keep_their_types);
    tcase_add_test(tcase, text_is_a_line_of_a_log);
    tcase_add_test(tcase, refusals_say_why);
    tcase_add_test(tcase, a_refused_log_record_leaves_the_others);
    tcase_add_test(tcase, unknown_and_empty_parts_are_passed_over);
    tcase_add_test(tcase, malformed_requests_take_nothing);
    tcase_add_test(tcase, limits_hold);
    tcase_add_test(tcase, a_record_has_a_greatest_size);
    tcase_add_test(tcase, the_number_of_log_records_is_bounded);
    tcase_add_test(tcase, small_requests_cannot_grow_without_bound);
    tcase_add_test(tcase, every_cut_is_told);
    tcase_add_test(tcase, a_warm_arena_allocates_nothing);
    Suite *suite = suite_create("otlp");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

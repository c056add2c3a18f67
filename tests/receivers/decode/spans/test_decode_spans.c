// SPDX-License-Identifier: Apache-2.0
// One line of a span stream: every value of every kind, and every way to be refused.
#include "pipeline/model/span_event.h"
#include "receivers/decode/spans/spans.h"
#include "tests/receivers/decode/decode_record.h"

static struct decoded decoded;

static void setup(void) {
    decoded = decoded_open(&decoder_spans, 99);
}

static void teardown(void) {
    decoded_close(&decoded);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const struct span_event *taken(const char *record, enum span_event_kind kind) {
    decoded_ok(&decoded, record);
    const struct event *event = &decoded.event;
    ck_assert_int_eq(event->kind, EVENT_SPAN);
    ck_assert_int_eq(event->rank, RANK_NONE);
    ck_assert_uint_eq(event->job, STRING_NONE);
    ck_assert(!event->timeless && !decoded.fault.told);
    ck_assert_int_eq(event->span->refused, SPAN_ACCEPTED);
    ck_assert_int_eq(event->span->kind, kind);
    return event->span;
}

// Whatever is wrong, the stage is told.
static const struct span_event *refused_as(const char *record, enum span_refusal refusal) {
    decoded_run(&decoded, slice_of(record));
    const struct event *event = &decoded.event;
    ck_assert_msg(decoded.category > DECODE_OK && event->span->refused == refusal,
                  "%s, %s in %s: %s", span_refusal_name(event->span->refused), decoded.fault.field,
                  record, decoded.fault.detail);
    ck_assert(decoded.fault.told && event->timeless && event->time_ns == 0);
    ck_assert_int_eq(event->kind, EVENT_SPAN);
    ck_assert_int_eq(event->rank, RANK_NONE);
    ck_assert_uint_eq(event->job, STRING_NONE);
    ck_assert_uint_eq(event->node, STRING_NONE);
    return event->span;
}

START_TEST(workers_and_threads) {
    const struct span_event *span = taken("{\"ev\":\"start\",\"ts\":5}", SPAN_START);
    ck_assert_int_eq(span->threads, 0);
    ck_assert_double_eq(span->time_s, 5);
    span = taken("{\"nthreads\":7,\"ts\":1700000000.25,\"more\":[1e308],\"ev\":\"start\"}",
                 SPAN_START);
    ck_assert_int_eq(span->threads, 7);
    ck_assert_uint_eq(decoded.event.time_ns, UINT64_C(1700000000250000000));
    span = taken("{\"ev\":\"join\",\"ts\":1,\"worker\":\"w\\u00e9\",\"nthreads\":0}", SPAN_JOIN);
    decoded_text(span->worker, "w\xc3\xa9");
    span = taken("{\"ev\":\"leave\",\"ts\":1,\"worker\":\"w\",\"nthreads\":\"x\"}", SPAN_LEAVE);
    decoded_text(span->worker, "w");
    span = taken("{\"ev\":\"threads\",\"ts\":1,\"total\":9223372036854775807}", SPAN_THREADS);
    ck_assert_int_eq(span->threads, INT64_MAX);
}
END_TEST

START_TEST(times) {
    static const struct {
        const char *text;
        double time_s;
        uint64_t time_ns;
    } cases[] = {
        {"1e-300", 1e-300, 1},
        {"1700000001.1234567", 1700000001.1234567, UINT64_C(1700000001123456717)},
        {"1700000001.1234567000000000001", 1700000001.1234567, UINT64_C(1700000001123456717)},
        {"17e8", 1.7e9, UINT64_C(1700000000000000000)},
        {"18446744072", 18446744072.0, UINT64_C(18446744072000000000)},
        {"18446744073", 18446744073.0, UINT64_MAX},
        {"100000000000", 1e11, UINT64_MAX},
    };
    char record[128];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(record, sizeof record, "{\"ev\":\"start\",\"ts\":%s}", cases[i].text);
        decoded_ok(&decoded, record);
        ck_assert_double_eq(decoded.event.span->time_s, cases[i].time_s);
        ck_assert_uint_eq(decoded.event.time_ns, cases[i].time_ns);
        ck_assert(decoded.event.timeless == (cases[i].time_ns == UINT64_MAX));
    }
}
END_TEST

static void check_path(const struct span_annotation *annotation, const char *tags,
                       const char *ids) {
    char text[2][256] = {"", ""};
    ck_assert_ptr_nonnull(annotation);
    for (uint32_t i = 0; i < annotation->count; i++) {
        const struct slice parts[2] = {annotation->tags[i], annotation->ids[i]};
        for (int j = 0; j < 2; j++)
            snprintf(text[j] + strlen(text[j]), sizeof text[j] - strlen(text[j]), "/%.*s",
                     (int)parts[j].size, parts[j].data);
    }
    ck_assert_str_eq(text[0], tags);
    ck_assert_str_eq(text[1], ids);
}

START_TEST(tasks) {
    const struct span_event *span = taken(
        "{\"ev\":\"tasks\",\"ts\":1,\"group\":\"g\",\"span\":{\"name\":[\"a\",\"\"],"
        "\"ids\":[\"i\",\"j\"]},\"tasks\":[\"k\",{\"key\":\"l\",\"group\":\"h\",\"span\":"
        "null,\"nbytes\":\"not read\"},{\"key\":\"k\",\"group\":null,\"span\":{\"ids\":"
        "[\"x\"],\"name\":[\"y\"],\"more\":1}},{\"span\":{},\"span\":null,\"key\":\"m\"}],"
        "\"default_id\":\"d\",\"collections\":[ {\"z\":[1.0,null]} , {}\t],\"code\":[]}",
        SPAN_TASKS);
    ck_assert_uint_eq(span->task_count, 4);
    check_path(span->tasks[0].annotation, "/a/", "/i/j");
    decoded_text(span->tasks[1].key, "l");
    decoded_text(span->tasks[1].group, "h");
    ck_assert_ptr_null(span->tasks[1].annotation);
    ck_assert_int_eq(span->tasks[1].nbytes, -1);
    decoded_text(span->tasks[2].group, "g");
    check_path(span->tasks[2].annotation, "/y", "/x");
    ck_assert_ptr_null(span->tasks[3].annotation);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(span->tasks[i].first, i == 2 ? 0 : i);
    decoded_text(span->default_id, "d");
    decoded_text(span->collections, "{\"z\":[1.0,null]} , {}");
    decoded_text(span->code, NULL);
    span = taken(
        "{\"ev\":\"tasks\",\"ts\":1,\"tasks\":[],\"collections\":[ ],\"span\":null,"
        "\"group\":null,\"code\":null,\"default_id\":null}",
        SPAN_TASKS);
    ck_assert_uint_eq(span->task_count, 0);
    decoded_text(span->collections, "");
    decoded_text(span->default_id, NULL);
    span = taken("{\"ev\":\"tasks\",\"ts\":1,\"tasks\":[],\"collections\":null}", SPAN_TASKS);
    decoded_text(span->collections, NULL);
}
END_TEST

START_TEST(data) {
    const struct span_event *span = taken(
        "{\"ev\":\"data\",\"ts\":1,\"group\":\"g\",\"span\":7,\"code\":7,\"tasks\":[\"k\","
        "{\"key\":\"l\",\"nbytes\":0,\"span\":7}]}",
        SPAN_DATA);
    ck_assert_uint_eq(span->task_count, 2);
    ck_assert_int_eq(span->tasks[0].nbytes, -1);
    ck_assert_int_eq(span->tasks[1].nbytes, 0);
    ck_assert_ptr_null(span->tasks[1].annotation);
}
END_TEST

// The same stack, however it is written, is the same text.
START_TEST(code) {
    const struct span_event *span = taken(
        "{\"ev\":\"tasks\",\"ts\":1,\"tasks\":[],\"code\":[{\"lineno_relative\":-3,"
        "\"code\":\"f(\\u0022\\u2603\\/\\u007F\\u000a\\u0001\\\")\",\"lineno_frame\":-0,"
        "\"filename\":null,\"more\":{}}]}",
        SPAN_TASKS);
    decoded_text(span->code,
                 "[{\"code\":\"f(\\\"\xe2\x98\x83/\x7f\\n\\u0001\\\")\",\"filename\":\"\","
                 "\"lineno_frame\":0,\"lineno_relative\":-3}]");
    span = taken(
        "{\"ev\":\"tasks\",\"ts\":1,\"tasks\":[],\"code\":[{\"code\":\"\"},{\"code\":"
        "\"b\",\"filename\":\"t.py\",\"lineno_frame\":1,\"lineno_relative\":2}]}",
        SPAN_TASKS);
    decoded_text(span->code,
                 "[{\"code\":\"\",\"filename\":\"\",\"lineno_frame\":0,\"lineno_relative\":0},"
                 "{\"code\":\"b\",\"filename\":\"t.py\",\"lineno_frame\":1,\"lineno_relative\":"
                 "2}]");
}
END_TEST

START_TEST(transition) {
    const struct span_event *span = taken(
        "{\"ev\":\"transition\",\"ts\":2,\"key\":\"k\",\"to\":\"memory\",\"nbytes\":12,"
        "\"actions\":[[\"compute\",1.5,-2],[\"transfer\",1e11,-1e11]]}",
        SPAN_TRANSITION);
    decoded_text(span->key, "k");
    ck_assert_int_eq(span->to, TASK_MEMORY);
    ck_assert_int_eq(span->nbytes, 12);
    ck_assert_uint_eq(span->action_count, 2);
    decoded_text(span->actions[0].name, "compute");
    ck_assert_double_eq(span->actions[0].start_s, 1.5);
    ck_assert_double_eq(span->actions[0].stop_s, -2);
    ck_assert_double_eq(span->actions[1].stop_s, -1e11);
    for (int state = 0; state < TASK_STATE_COUNT; state++) {
        char record[128];
        snprintf(record, sizeof record,
                 "{\"ev\":\"transition\",\"ts\":2,\"key\":\"k\",\"to\":\"%s\",\"nbytes\":null,"
                 "\"actions\":null}",
                 task_state_name((enum task_state)state));
        span = taken(record, SPAN_TRANSITION);
        ck_assert_int_eq(span->to, state);
        ck_assert_int_eq(span->nbytes, -1);
        ck_assert_uint_eq(span->action_count, 0);
    }
}
END_TEST

static const struct {
    const char *entry;
    enum span_refusal refused; // SPAN_REFUSAL_COUNT: dropped
    const char *key;
    bool known, whole;
} METRICS[] = {
    {"[\"execute\",\"s\",\"p\",\"gpu\",\"seconds\",0.5]", SPAN_ACCEPTED,
     "[\"execute\",\"p\",\"gpu\",\"seconds\"]", true, false},
    {"[\"p2p\",\"s\",\"seconds\",-1]", SPAN_ACCEPTED, "[\"p2p\",\"seconds\"]", false, true},
    {"[\"execute\",\"s\",\"seconds\",2]", SPAN_ACCEPTED, "[\"execute\",\"seconds\"]", true, true},
    {"[\"execute\",\"seconds\",2]", SPAN_ACCEPTED, "[\"execute\"]", false, true},
    {"[\"exec\\u0075te\",\"s\",\"\\u0022\",\"\",2]", SPAN_ACCEPTED, "[\"execute\",\"\\\"\",\"\"]",
     false, true},
    {"[\"execute\",\"s\",\"seconds\",\"x\",2]", SPAN_ACCEPTED, "[\"execute\",\"seconds\",\"x\"]",
     false, true},
    {"[\"latency\",0.5]", SPAN_REFUSAL_COUNT, NULL, false, false},
    {"[\"latency\",[],{}]", SPAN_REFUSAL_COUNT, NULL, false, false},
    {"[\"execute\\u0000\",\"s\",1]", SPAN_REFUSAL_COUNT, NULL, false, false},
    {"[]", SPAN_BAD_ENTRY, NULL, false, false},
    {"[\"latency\"]", SPAN_BAD_ENTRY, NULL, false, false},
    {"[1,\"s\",1]", SPAN_BAD_ENTRY, NULL, false, false},
    {"{\"execute\":1}", SPAN_BAD_ENTRY, NULL, false, false},
    {"\"execute\"", SPAN_BAD_ENTRY, NULL, false, false},
    {"[\"execute\",1]", SPAN_BAD_ENTRY, NULL, false, false},
    {"[\"execute\",null,1]", SPAN_BAD_ENTRY, NULL, false, false},
    {"[\"execute\",\"s\",\"p\",true]", SPAN_BAD_ENTRY, NULL, false, false},
    {"[\"execute\",\"s\",\"p\",\"1\"]", SPAN_BAD_ENTRY, NULL, false, false},
    {"[\"execute\",\"s\",5,\"seconds\",1]", SPAN_BAD_ENTRY, NULL, false, false},
    {"[\"execute\",\"s\",\"a\\u0000\",1]", SPAN_BAD_ENTRY, NULL, false, false},
    {"[\"execute\",\"s\\u0000\",\"a\",1]", SPAN_BAD_ENTRY, NULL, false, false},
};

START_TEST(metrics) {
    char record[256];
    // Between two others, which are not touched by it.
    snprintf(record, sizeof record,
             "{\"ev\":\"metrics\",\"ts\":2,\"worker\":5,\"data\":[[\"p2p\",\"a\",1],%s,"
             "[\"p2p\",\"b\",1e-3]]}",
             METRICS[_i].entry);
    const struct span_event *span = taken(record, SPAN_METRICS);
    bool dropped = METRICS[_i].refused == SPAN_REFUSAL_COUNT;
    ck_assert_uint_eq(span->metric_count, dropped ? 2 : 3);
    ck_assert_uint_eq(span->metrics[0].entry, 0);
    const struct span_metric *last = &span->metrics[span->metric_count - 1];
    ck_assert_uint_eq(last->entry, 2);
    decoded_text(last->span_id, "b");
    ck_assert(!last->whole && last->number == 1e-3);
    if (dropped)
        return;
    const struct span_metric *metric = &span->metrics[1];
    ck_assert_uint_eq(metric->entry, 1);
    ck_assert_int_eq(metric->refused, METRICS[_i].refused);
    if (metric->refused != SPAN_ACCEPTED)
        return;
    decoded_text(metric->key, METRICS[_i].key);
    ck_assert(metric->is_known_time == METRICS[_i].known && metric->whole == METRICS[_i].whole);
}
END_TEST

// What a refusal leaves of the tasks: those whose groups were found right before it.
START_TEST(tasks_before_a_refusal) {
#define BEGIN "{\"ev\":\"tasks\",\"ts\":1,\"group\":\"g\",\"tasks\":[\"a\",\"a\","
    static const struct {
        const char *record;
        enum span_refusal refused;
        uint32_t tasks;
    } cases[] = {
        {BEGIN "7]}", SPAN_BAD_FIELD, 2},
        {BEGIN "{\"key\":\"a\",\"group\":\"\"}]}", SPAN_BAD_FIELD, 2},
        {BEGIN "{\"key\":\"a\",\"span\":0}]}", SPAN_BAD_SPAN, 3},
        {BEGIN "\"b\"],\"code\":0}", SPAN_BAD_FIELD, 3},
        {BEGIN "\"b\"],\"collections\":0}", SPAN_BAD_FIELD, 3},
        {BEGIN "\"b\"],\"default_id\":0}", SPAN_BAD_SPAN, 3},
        {BEGIN "\"b\"],\"span\":0}", SPAN_BAD_SPAN, 0},
        {"{\"ev\":\"data\",\"ts\":1,\"tasks\":[{\"key\":\"a\",\"group\":\"g\",\"nbytes\":-1}]}",
         SPAN_BAD_FIELD, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct span_event *span = refused_as(cases[i].record, cases[i].refused);
        ck_assert(!span->refused_early);
        ck_assert_uint_eq(span->task_count, cases[i].tasks);
        for (uint32_t task = 0; task < span->task_count; task++) {
            decoded_text(span->tasks[task].group, "g");
            ck_assert_uint_eq(span->tasks[task].first,
                              slice_equal(span->tasks[task].key, SLICE("a")) ? 0 : task);
        }
    }
}
END_TEST

#define JOIN(fields)   "{\"ev\":\"join\",\"ts\":1," fields "}"
#define TASKS(fields)  "{\"ev\":\"tasks\",\"ts\":1,\"group\":\"g\"," fields "}"
#define SPAN(span)     TASKS("\"tasks\":[\"k\"],\"span\":" span)
#define TO(fields)     "{\"ev\":\"transition\",\"ts\":1,\"key\":\"k\"," fields "}"
#define ACTION(action) TO("\"to\":\"memory\",\"actions\":[" action "]")

static const struct {
    const char *record;
    enum span_refusal refused;
    enum decode_category category;
    const char *field, *words;
} REFUSED[] = {
    {"[]", SPAN_BAD_JSON, DECODE_NOT_OBJECT, "", "not a JSON object"},
    {"\xef\xbb\xbf{}", SPAN_BAD_JSON, DECODE_NOT_OBJECT, "", "not a JSON object"},
    {"{\"ev\":\"start\"", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "no comma or closing brace"},
    {"{} x", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "more than white space"},
    {"{\"a\":NaN}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "NaN or Infinity"},
    {"{\"a\":[-Infinity]}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "NaN or Infinity"},
    {"{\"a\":1e999}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "beyond a double"},
    {"{\"a\":[{\"b\":-1E+400}]}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "beyond a double"},
    {"{\"a\":9223372036854775808}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "beyond 64 bits"},
    {"{\"a\":[-9223372036854775809]}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "beyond 64 bits"},
    {"{\"a\":\"\\ud800\"}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "half a surrogate pair"},
    {"{\"a\":[\"x\\\\\\udC00\\ud83d\"]}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "half a surrogate"},
    {"{\"\\ud83d\\ud83d\":1}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "half a surrogate pair"},
    {"{\"a\":{\"\\udc00\":1}}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "half a surrogate pair"},
    {"{\"a\":\"\xed\xa0\x80\"}", SPAN_BAD_JSON, DECODE_BAD_JSON, "", "not UTF-8"},
    {"{\"ts\":1}", SPAN_BAD_EVENT, DECODE_MISSING_FIELD, "ev", "bad-event: not there"},
    {"{\"ev\":5}", SPAN_BAD_EVENT, DECODE_WRONG_TYPE, "ev", "found the integer 5"},
    {"{\"ev\":\"Start\",\"ts\":1}", SPAN_BAD_EVENT, DECODE_OUT_OF_RANGE, "ev", "\"Start\""},
    {"{\"ev\":\"start\",\"ts\":0}", SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "ts", "found 0"},
    {"{\"ev\":\"start\",\"ts\":1,\"ts\":true}", SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "ts", "true"},
    {"{\"ev\":\"start\",\"ts\":100000000001}", SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "ts", "1e+11"},
    {"{\"ev\":\"start\",\"ts\":1,\"nthreads\":null}", SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "nthreads",
     "found null"},
    {"{\"ev\":\"start\",\"ts\":1,\"nthreads\":2.0}", SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "nthreads",
     "found the decimal number 2.0"},
    {"{\"ev\":\"threads\",\"ts\":1,\"total\":-1}", SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "total",
     "found -1"},
    {JOIN("\"worker\":\"\",\"nthreads\":1"), SPAN_BAD_FIELD, DECODE_EMPTY_STRING, "worker",
     "empty"},
    {JOIN("\"worker\":\"a\\u0000\",\"nthreads\":1"), SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "worker",
     "U+0000"},
    {JOIN("\"worker\":\"a\""), SPAN_BAD_FIELD, DECODE_MISSING_FIELD, "nthreads", "not there"},
    {TASKS("\"tasks\":{}"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "tasks", "found an object"},
    {SPAN("[]"), SPAN_BAD_SPAN, DECODE_WRONG_TYPE, "span", "found an array"},
    {SPAN("{\"name\":[\"a\"]}"), SPAN_BAD_SPAN, DECODE_MISSING_FIELD, "span.ids", "not there"},
    {SPAN("{\"name\":[],\"ids\":[]}"), SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE, "span", "0 names"},
    {SPAN("{\"name\":[\"a\",\"b\"],\"ids\":[\"a\"]}"), SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE, "span",
     "2 names and 1 ids"},
    {SPAN("{\"name\":[\"a\\u0000\"],\"ids\":[\"a\"]}"), SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE,
     "span.name", "U+0000"},
    {SPAN("{\"name\":[\"a\"],\"ids\":[\"\"]}"), SPAN_BAD_SPAN, DECODE_EMPTY_STRING, "span.ids",
     "empty"},
    {SPAN("{\"name\":[\"a\"],\"ids\":[\"(merged)\"]}"), SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE,
     "span.ids", "(merged)"},
    {SPAN("{\"name\":[\"a\",\"b\",\"c\"],\"ids\":[\"s\",\"t\",\"\\u0073\"]}"), SPAN_BAD_SPAN,
     DECODE_IDENTITY_CONFLICT, "span.ids", "ids 1 and 3"},
    {TASKS("\"tasks\":[\"k\"],\"span\":0,\"group\":0"), SPAN_BAD_SPAN, DECODE_WRONG_TYPE, "span",
     "found the integer 0"},
    {TASKS("\"tasks\":[],\"group\":\"\""), SPAN_BAD_FIELD, DECODE_EMPTY_STRING, "group", "empty"},
    {TASKS("\"tasks\":[\"k\",null]"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "tasks[1]", "null"},
    {TASKS("\"tasks\":[{}]"), SPAN_BAD_FIELD, DECODE_MISSING_FIELD, "tasks[0].key", "not there"},
    {TASKS("\"tasks\":[\"k\"],\"group\":null"), SPAN_BAD_FIELD, DECODE_MISSING_FIELD,
     "tasks[0].group", "neither the task nor the event"},
    {TASKS("\"tasks\":[{\"key\":\"k\",\"span\":{\"ids\":[]}}]"), SPAN_BAD_SPAN,
     DECODE_MISSING_FIELD, "tasks[0].span.name", "not there"},
    {TASKS("\"tasks\":[],\"code\":{}"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "code", "an object"},
    {TASKS("\"tasks\":[],\"code\":[{\"code\":\"\"},5]"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE,
     "code[1]", "the integer 5"},
    {TASKS("\"tasks\":[],\"code\":[{\"filename\":\"x\"}]"), SPAN_BAD_FIELD, DECODE_MISSING_FIELD,
     "code[0].code", "not there"},
    {TASKS("\"tasks\":[],\"code\":[{\"code\":\"\",\"lineno_relative\":1.0}]"), SPAN_BAD_FIELD,
     DECODE_WRONG_TYPE, "code[0].lineno_relative", "1.0"},
    {TASKS("\"tasks\":[],\"collections\":[{},1]"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE,
     "collections[1]", "the integer 1"},
    {TASKS("\"tasks\":[],\"default_id\":\"\""), SPAN_BAD_SPAN, DECODE_EMPTY_STRING, "default_id",
     "empty"},
    {TASKS("\"tasks\":[],\"default_id\":\"(merged)\""), SPAN_BAD_SPAN, DECODE_OUT_OF_RANGE,
     "default_id", "(merged)"},
    {TASKS("\"tasks\":[],\"default_id\":\"b\",\"span\":{\"name\":[\"\",\"\"],\"ids\":[\"a\","
           "\"b\"]}"),
     SPAN_BAD_SPAN, DECODE_IDENTITY_CONFLICT, "default_id", "same event"},
    {TASKS("\"tasks\":[{\"key\":\"k\",\"span\":{\"name\":[\"\"],\"ids\":[\"b\"]}}],\"default_id\":"
           "\"b\""),
     SPAN_BAD_SPAN, DECODE_IDENTITY_CONFLICT, "default_id", "same event"},
    {TO("\"key\":\"\",\"to\":\"memory\""), SPAN_BAD_FIELD, DECODE_EMPTY_STRING, "key", "empty"},
    {TO("\"to\":null"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "to", "found null"},
    {TO("\"to\":\"memory\\u0000\""), SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "to", "U+0000"},
    {TO("\"to\":\"\""), SPAN_BAD_STATE, DECODE_OUT_OF_RANGE, "to", "no-worker"},
    {TO("\"to\":\"running\",\"nbytes\":-1"), SPAN_BAD_STATE, DECODE_OUT_OF_RANGE, "to", "running"},
    {TO("\"to\":\"waiting\",\"nbytes\":3"), SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "nbytes",
     "goes to waiting"},
    {TO("\"to\":\"erred\",\"actions\":[]"), SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "actions",
     "goes to erred"},
    {TO("\"to\":\"memory\",\"nbytes\":1.0"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "nbytes", "1.0"},
    {ACTION("[\"a\",1,2],[\"a\",1]"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "actions[1]", "three"},
    {ACTION("[\"a\",1,2,3]"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "actions[0]", "three"},
    {ACTION("[\"\",1,2]"), SPAN_BAD_FIELD, DECODE_EMPTY_STRING, "actions[0]", "empty"},
    {ACTION("[\"a\",1,\"2\"]"), SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "actions[0]", "the text \"2\""},
    {ACTION("[\"a\",-1.1e11,2]"), SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "actions[0]", "-1.1e+11"},
    {"{\"ev\":\"metrics\",\"ts\":1}", SPAN_BAD_FIELD, DECODE_MISSING_FIELD, "data", "not there"},
    {"{\"ev\":\"data\",\"ts\":1,\"group\":\"g\",\"tasks\":[{\"key\":\"k\",\"nbytes\":null}]}",
     SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "tasks[0].nbytes", "found null"},
};

START_TEST(refused) {
    const struct span_event *span = refused_as(REFUSED[_i].record, REFUSED[_i].refused);
    bool early = REFUSED[_i].refused <= SPAN_BAD_EVENT || strcmp(REFUSED[_i].field, "ts") == 0;
    ck_assert(span->refused_early == early);
    ck_assert((span->kind == SPAN_NO_KIND) == (REFUSED[_i].refused <= SPAN_BAD_EVENT));
    decoded_refused(&decoded, REFUSED[_i].record, REFUSED[_i].category, REFUSED[_i].field,
                    REFUSED[_i].words);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_spans");
    TCase *cases = tcase_create("decode_spans");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, workers_and_threads);
    tcase_add_test(cases, times);
    tcase_add_test(cases, tasks);
    tcase_add_test(cases, data);
    tcase_add_test(cases, code);
    tcase_add_test(cases, transition);
    tcase_add_loop_test(cases, metrics, 0, sizeof METRICS / sizeof *METRICS);
    tcase_add_test(cases, tasks_before_a_refusal);
    tcase_add_loop_test(cases, refused, 0, sizeof REFUSED / sizeof *REFUSED);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

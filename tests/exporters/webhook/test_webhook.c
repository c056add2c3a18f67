// SPDX-License-Identifier: Apache-2.0
// The webhook exporter against a small HTTP server: what the bodies are, and what becomes of a
// verdict with each kind of answer.
#include "cli/component_list.h"
#include "pipeline/component/sending.h"
#include "tests/support/http_sink.h"
#include "tests/support/temporary.h"

#include <jansson.h>

enum { VERDICTS_MAX = 4 };

static union {
    char bytes[4096];
    max_align_t aligned;
} config, instance;
static struct buffer out;
static struct arena arena;
static struct verdict items[VERDICTS_MAX];
static struct batch batch;
static struct http_sink sink;
static struct send_outcome outcome;
static struct error error;

// The field of an option, "auth.bearer_token_file".
static void *field(const char *path) {
    const struct option *rows = exporter_webhook.options;
    size_t count = exporter_webhook.option_count, offset = 0;
    for (;;) {
        size_t size = strcspn(path, "."), i = 0;
        while (i < count && (strncmp(rows[i].name, path, size) != 0 || rows[i].name[size] != '\0'))
            i++;
        ck_assert_msg(i < count, "no option %s", path);
        offset += rows[i].offset;
        if (path[size] == '\0')
            return config.bytes + offset;
        count = rows[i].row_count;
        rows = rows[i].rows;
        path += size + 1;
    }
}

static enum status start(const char *template) {
    ck_assert_uint_le(exporter_webhook.config_size, sizeof config);
    ck_assert_uint_le(exporter_webhook.instance_size, sizeof instance);
    memset(&instance, 0, sizeof instance);
    *(const char **)field("endpoint") = sink.url;
    ((struct duration *)field("timeout"))->ns = INT64_C(5000000000);
    static const char *const NAMES[] = {"verdict", "cloudevents", "slack"};
    for (int i = 0; i < 3; i++)
        if (strcmp(NAMES[i], template) == 0)
            *(int *)field("template") = i;
    struct component_context context = {.id = "webhook", .site = "exporter/webhook"};
    error = (struct error){0};
    return component_start(&exporter_webhook, &instance, &config, &context, &error);
}

static void setup(void) {
    memset(&config, 0, sizeof config);
    arena_init(&arena, 4096);
    buffer_init(&out, 1 << 24);
    batch = (struct batch){.arena = &arena, .verdicts = {.items = items}};
}

static void teardown(void) {
    component_stop(&exporter_webhook, &instance);
    http_sink_stop(&sink);
    buffer_release(&out);
    arena_release(&arena);
}

static struct verdict *found(const char *headline) {
    struct verdict *verdict = &items[batch.verdicts.count++];
    *verdict = (struct verdict){.pattern = "nccl_hang",
                                .kind = "hang",
                                .action = "none",
                                .job = intern(SLICE("job <a>")),
                                .severity = SEVERITY_ERROR,
                                .confidence = 80,
                                .start_ns = UINT64_C(1700000000000000000),
                                .end_ns = UINT64_C(1700000001500000000),
                                .headline = slice_of(headline),
                                .remediation = SLICE("look & see")};
    snprintf(verdict->id, sizeof verdict->id, "nccl_hang:%u", batch.verdicts.count);
    return verdict;
}

static enum status deliver(struct slice bytes) {
    struct request request = {.bytes = bytes, .complete = true};
    outcome = (struct send_outcome){0};
    return exporter_webhook.exporter.send(&instance, &request, &outcome, &error);
}

static enum status encode_and_deliver(void) {
    buffer_reset(&out);
    exporter_webhook.exporter.encode(&instance, &batch, &out);
    return deliver(buffer_slice(&out));
}

static json_t *body_of(size_t request) {
    json_error_t json_error;
    json_t *json = json_loads(sink.requests[request].body, 0, &json_error);
    ck_assert_msg(json != NULL, "%s: %s", json_error.text, sink.requests[request].body);
    return json;
}

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text == NULL ? "" : text;
}

START_TEST(a_request_a_verdict) {
    http_sink_start(&sink, NULL, 0);
    ck_assert_int_eq(start("verdict"), STATUS_OK);
    found("one");
    found("two\nlines");
    ck_assert_int_eq(encode_and_deliver(), STATUS_OK);
    ck_assert_uint_eq(outcome.taken, out.size);
    ck_assert_uint_eq(sink.count, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(sink.requests[i].method, "POST");
        ck_assert_str_eq(sink_header(&sink.requests[i], "Content-Type"), "application/json");
        json_t *json = body_of(i);
        ck_assert_str_eq(text_of(json, "schema"), "culprit.verdict.v1");
        ck_assert_str_eq(text_of(json, "headline"), i == 0 ? "one" : "two\nlines");
        json_decref(json);
    }
}
END_TEST

START_TEST(cloud_events) {
    http_sink_start(&sink, NULL, 0);
    ck_assert_int_eq(start("cloudevents"), STATUS_OK);
    struct verdict *verdict = found("one");
    ck_assert_int_eq(encode_and_deliver(), STATUS_OK);
    ck_assert_int_eq(encode_and_deliver(), STATUS_OK); // the same once more
    verdict->state = VERDICT_UPDATED;
    ck_assert_int_eq(encode_and_deliver(), STATUS_OK);
    ck_assert_uint_eq(sink.count, 3);
    ck_assert_str_eq(sink_header(&sink.requests[0], "Content-Type"),
                     "application/cloudevents+json");
    json_t *first = body_of(0), *again = body_of(1), *changed = body_of(2);
    ck_assert_str_eq(text_of(first, "specversion"), "1.0");
    ck_assert_str_eq(text_of(first, "type"), "culprit.verdict.v1");
    ck_assert_str_eq(text_of(first, "source"), "/culprit");
    ck_assert_str_eq(text_of(first, "subject"), "nccl_hang:1");
    ck_assert_str_eq(text_of(first, "time"), "2023-11-14T22:13:21.5Z");
    ck_assert_str_eq(text_of(first, "datacontenttype"), "application/json");
    ck_assert_str_eq(text_of(json_object_get(first, "data"), "headline"), "one");
    ck_assert_str_eq(text_of(first, "id"), text_of(again, "id"));
    ck_assert_str_ne(text_of(first, "id"), text_of(changed, "id"));
    json_decref(first);
    json_decref(again);
    json_decref(changed);
}
END_TEST

START_TEST(slack_messages) {
    http_sink_start(&sink, NULL, 0);
    ck_assert_int_eq(start("slack"), STATUS_OK);
    found("rank 1 > rank 0 <!channel>");
    found("no job")->job = STRING_NONE;
    ck_assert_int_eq(encode_and_deliver(), STATUS_OK);
    json_t *json = body_of(0);
    ck_assert_str_eq(text_of(json, "text"),
                     "*rank 1 &gt; rank 0 &lt;!channel&gt;*\n"
                     "error, open, confidence 80 %, job job &lt;a&gt;\n"
                     "look &amp; see\n`nccl_hang:1`");
    ck_assert_uint_eq(json_object_size(json), 1);
    json_decref(json);
    json = body_of(1);
    ck_assert_ptr_nonnull(strstr(text_of(json, "text"), "job unknown\n"));
    json_decref(json);
}
END_TEST

START_TEST(what_is_refused_is_one_verdict) {
    static const struct sink_answer script[] = {
        {.status = 200}, {.status = 400, .body = "no such field"}, {.status = 200}};
    http_sink_start(&sink, script, 3);
    ck_assert_int_eq(start("verdict"), STATUS_OK);
    found("a");
    found("b");
    found("c");
    ck_assert_int_ne(encode_and_deliver(), STATUS_OK);
    size_t line = out.size / 3; // all are of one length
    ck_assert_uint_eq(outcome.taken, line);
    ck_assert_uint_eq(outcome.refused, line);
    ck_assert(!outcome.sink_dead);
    ck_assert_ptr_nonnull(strstr(error.message, "no such field"));
    ck_assert_int_eq(deliver((struct slice){out.data + 2 * line, line}), STATUS_OK);
    ck_assert_uint_eq(sink.count, 3);
}
END_TEST

START_TEST(what_may_pass_later_comes_again) {
    static const struct sink_answer script[] = {{.status = 200},
                                                {.status = 429, .headers = "Retry-After: 7\r\n"},
                                                {.status = 0},
                                                {.status = 503},
                                                {.status = 200}};
    http_sink_start(&sink, script, 5);
    ck_assert_int_eq(start("verdict"), STATUS_OK);
    found("a");
    found("b");
    ck_assert_int_eq(encode_and_deliver(), STATUS_IO);
    size_t line = out.size / 2;
    ck_assert_uint_eq(outcome.taken, line);
    ck_assert_uint_eq(outcome.refused, 0);
    ck_assert_uint_eq(outcome.retry_after_ns, UINT64_C(7000000000));
    struct slice rest = {out.data + line, line};
    for (int i = 0; i < 2; i++) { // no answer at all, 503
        ck_assert_int_eq(deliver(rest), STATUS_IO);
        ck_assert_uint_eq(outcome.taken, 0);
        ck_assert_uint_eq(outcome.refused, 0);
        ck_assert_uint_eq(outcome.retry_after_ns, 0);
    }
    ck_assert_int_eq(deliver(rest), STATUS_OK);
}
END_TEST

// What is said of the address or the token may be put right while the verdict waits.
START_TEST(statuses_that_refuse) {
    static const struct {
        int status;
        bool refuses;
    } CASES[] = {{302, false}, {400, true},  {401, false}, {403, false}, {404, false},
                 {405, false}, {410, false}, {413, true},  {422, true},  {501, false}};
    enum { COUNT = sizeof CASES / sizeof CASES[0] };
    struct sink_answer script[COUNT] = {{0}};
    for (int i = 0; i < COUNT; i++)
        script[i] = (struct sink_answer){.status = CASES[i].status,
                                         .headers = "Location: http://127.0.0.1:1/\r\n"};
    http_sink_start(&sink, script, COUNT);
    ck_assert_int_eq(start("verdict"), STATUS_OK);
    found("a");
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(encode_and_deliver(), STATUS_IO);
        ck_assert_msg(outcome.refused == (CASES[i].refuses ? out.size : 0) && !outcome.sink_dead,
                      "%d", CASES[i].status);
    }
}
END_TEST

// A server that knows the new token before it is read here costs no verdict.
START_TEST(headers_and_a_token_that_changes) {
    static const struct sink_answer script[] = {{.status = 200}, {.status = 401}, {.status = 200}};
    http_sink_start(&sink, script, 3);
    char token[64];
    temporary_path(token, sizeof token, "token");
    FILE *file = fopen(token, "w");
    fputs("first\n", file);
    fclose(file);
    *(const char **)field("auth.bearer_token_file") = token;
    static const char *const headers[] = {"X-Team: night"};
    *(struct text_list *)field("headers") = (struct text_list){headers, 1};
    ck_assert_int_eq(start("verdict"), STATUS_OK);
    found("a");
    ck_assert_int_eq(encode_and_deliver(), STATUS_OK);
    ck_assert_str_eq(sink_header(&sink.requests[0], "Authorization"), "Bearer first");
    ck_assert_str_eq(sink_header(&sink.requests[0], "X-Team"), "night");
    file = fopen(token, "w");
    fputs("the-second-one\n", file);
    fclose(file);
    ck_assert_int_eq(encode_and_deliver(), STATUS_IO);
    ck_assert_uint_eq(outcome.refused, 0);
    ck_assert_int_eq(deliver(buffer_slice(&out)), STATUS_OK);
    ck_assert_str_eq(sink_header(&sink.requests[2], "Authorization"), "Bearer the-second-one");
    unlink(token);
}
END_TEST

START_TEST(a_message_shows_no_secret) {
    static const struct sink_answer script[] = {{.status = 403, .body = "key T0/s3cret unknown"}};
    http_sink_start(&sink, script, 1);
    char url[128];
    snprintf(url, sizeof url, "%s/services/T0/s3cret?token=abcdef", sink.url);
    ck_assert_int_eq(start("slack"), STATUS_OK);
    component_stop(&exporter_webhook, &instance);
    memset(&instance, 0, sizeof instance);
    *(const char **)field("endpoint") = url;
    struct component_context context = {.id = "webhook", .site = "exporter/webhook"};
    ck_assert_int_eq(component_start(&exporter_webhook, &instance, &config, &context, &error),
                     STATUS_OK);
    found("a");
    ck_assert_int_eq(encode_and_deliver(), STATUS_IO);
    ck_assert_str_eq(sink.requests[0].path, "/services/T0/s3cret?token=abcdef");
    ck_assert_ptr_null(strstr(error.message, "abcdef"));
    ck_assert_ptr_null(strstr(error.message, "/services"));
    ck_assert_ptr_nonnull(strstr(error.message, "403"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("webhook");
    TCase *tests = tcase_create("webhook");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_request_a_verdict);
    tcase_add_test(tests, cloud_events);
    tcase_add_test(tests, slack_messages);
    tcase_add_test(tests, what_is_refused_is_one_verdict);
    tcase_add_test(tests, what_may_pass_later_comes_again);
    tcase_add_test(tests, statuses_that_refuse);
    tcase_add_test(tests, headers_and_a_token_that_changes);
    tcase_add_test(tests, a_message_shows_no_secret);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// The HTTP receiver on a fake feed: what clients are told and what reaches the feed.
#include "tests/receivers/http/http_fixture.h"

// -- bodies -------------------------------------------------------------------------------------

START_TEST(all_layouts_are_taken) {
    start();
    check_post(JSON, R(1), 202, 1, 0);
    check_post(JSON, "[" R(2) "," R(3) "]", 202, 2, 0);
    check_post(LINES, R(4) "\n" R(5) "\n", 202, 2, 0);
    check_post(LINES, R(6) "\r\n\r\n" R(7), 202, 2, 0);
    // Lines under the name of JSON, an object over several lines, and a wrapper.
    check_post(JSON, R(8) "\n" R(9) "\n", 202, 2, 0);
    check_post(JSON, "{\n \"timestamp\": 10.5,\n \"memory_allocated\": 10\n}", 202, 1, 0);
    check_post(JSON, "{\"events\": [" R(11) ", " R(12) "]}", 202, 2, 0);
    check_post("Content-Type: application/jsonl\r\n", R(13) "\n", 202, 1, 0);
    check_post("Content-Type: application/json-lines\r\n", R(14) "\n", 202, 1, 0);
    check_post("Content-Type: application/json; charset=utf-8\r\n", R(15), 202, 1, 0);
    check_post(JSON, "[]", 202, 0, 0);
    ck_assert_uint_eq(fake_feed_accepted(feed, "http/test"), 15);
    stop();
}
END_TEST

START_TEST(gzip_is_taken) {
    start();
    static const char text[] = R(1) "\n" R(2) "\n";
    size_t size;
    char *gzip = client_gzip(text, sizeof text - 1, &size);
    struct answer answer =
        client_ask(port(), "POST", "/v1/events", LINES "Content-Encoding: gzip\r\n", gzip, size);
    ck_assert_int_eq(answer.status, 202);
    answer_free(&answer);
    free(gzip);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 2);
    stop();
}
END_TEST

START_TEST(wrong_records_are_named) {
    start();
    struct answer answer = post("/v1/events", LINES, R(1) "\n{\"nonsense\n{\"a\":3.5}\n" R(4) "\n");
    ck_assert_int_eq(answer.status, 202);
    json_t *json = json_of(&answer);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "accepted")), 2);
    json_t *rejected = json_object_get(json, "rejected");
    ck_assert_uint_eq(json_array_size(rejected), 2);
    json_t *first = json_array_get(rejected, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(first, "index")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(first, "code")), "bad_json");
    ck_assert_ptr_nonnull(json_object_get(first, "message"));
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(rejected, 1), "index")), 2);
    json_decref(json);
    answer_free(&answer);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 2);
    stop();
}
END_TEST

START_TEST(nothing_right_is_400) {
    start();
    check_post(LINES, "{\"nonsense\n", 400, 0, 1);
    check_post(JSON, "[" R(1) ", {\"a\":1}", 202, 1, 2); // one is wrong, and the end is missing
    check_post(JSON, "[{\"a\":1}]", 400, 0, 1);
    check_error(LINES, "", 400, "empty");
    check_error(LINES, " \n\n", 400, "empty");
    check_error(JSON, "{\"schema\":\"culprit.verdict.v1\"}", 400, "unknown_format");
    check_error("Content-Type: text/html\r\n", R(1), 415, "unsupported_media_type");
    stop();
}
END_TEST

START_TEST(only_the_first_hundred_are_listed) {
    start();
    char *body = malloc(1 << 16);
    size_t used = 0;
    for (int i = 0; i < 250; i++)
        used += (size_t)sprintf(body + used, "{\"wrong\":%d}\n", i);
    struct answer answer = post("/v1/events", LINES, body);
    ck_assert_int_eq(answer.status, 400);
    json_t *json = json_of(&answer);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "rejected")), 100);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "rejected_count")), 250);
    json_decref(json);
    answer_free(&answer);
    free(body);
    stop();
}
END_TEST

START_TEST(long_records_are_left_out) {
    start();
    static char body[20000];
    sprintf(body, "%s\n{\"timestamp\":2.5,\"memory_allocated\":2,\"context\":\"%05000d\"}\n%s\n",
            R(1), 0, R(3));
    check_post(LINES, body, 202, 2, 1);
    sprintf(body, "[%s,{\"timestamp\":2.5,\"memory_allocated\":2,\"context\":\"%05000d\"},%s]",
            R(1), 0, R(3));
    check_post(JSON, body, 202, 2, 1);
    ck_assert_uint_eq(fake_feed_refused(feed, DECODE_TOO_LONG), 2);
    stop();
}
END_TEST

START_TEST(limits_of_requests) {
    start();
    char *body = malloc((1 << 20) + 2);
    memset(body, ' ', (1 << 20) + 1);
    body[(1 << 20) + 1] = '\0';
    check_error(LINES, body, 413, "too_large");
    free(body);
    stop();
}
END_TEST

START_TEST(quarantine_gets_what_is_refused) {
    static char path[256];
    snprintf(path, sizeof path, "%s/refused.jsonl", folder);
    config.records.quarantine = path;
    start();
    check_post(LINES, R(1) "\n{\"nonsense\n", 202, 1, 1);
    check_post(LINES, "{\"more nonsense\n", 400, 0, 1);
    stop();
    json_error_t json_error;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    static const char *const texts[] = {"{\"nonsense", "{\"more nonsense"};
    static const int positions[] = {2, 3};
    for (int i = 0; i < 2; i++) {
        json_t *line = json_loadf(file, JSON_DISABLE_EOF_CHECK, &json_error);
        ck_assert_ptr_nonnull(line);
        ck_assert_str_eq(json_string_value(json_object_get(line, "record")), texts[i]);
        ck_assert_str_eq(json_string_value(json_object_get(line, "path")), "http/test");
        ck_assert_int_eq(json_integer_value(json_object_get(line, "position")), positions[i]);
        json_decref(line);
    }
    fclose(file);
}
END_TEST

START_TEST(answers_are_counted) {
    static const struct metric_family family = {
        .name = "culprit_http_server_requests_total", .help = "", .type = METRIC_COUNTER};
    start();
    check_post(LINES, R(1), 202, 1, 0);
    check_post(LINES, R(2), 202, 1, 0);
    check_error(LINES, "", 400, "empty");
    check_error("Content-Type: text/html\r\n", R(1), 415, "unsupported_media_type");
    stop();
    static const char *const wanted[][2] = {{"202", "2"}, {"400", "1"}, {"415", "1"}, {"503", "0"}};
    for (int i = 0; i < 4; i++) {
        const struct metric *metric =
            METRIC(&family, "receiver", "http/test", "code", wanted[i][0]);
        ck_assert_uint_eq(metric_value(metric), strtoul(wanted[i][1], NULL, 10));
    }
}
END_TEST

START_TEST(job_is_stamped) {
    config.records.job_id = "a job";
    start();
    ck_assert(slice_equal(intern_slice(feed->stamped), SLICE("a job")));
    stop();
}
END_TEST

// -- decoded ahead ------------------------------------------------------------------------------

// Telemetry as stormlog writes it, which is decoded before the intake lock is taken.
static size_t write_sample(char *out, size_t size, int number, const char *job) {
    return (size_t)snprintf(
        out, size,
        "{\"schema_version\":3,\"session_id\":\"s-1\",\"timestamp_ns\":%d000000000,"
        "\"event_type\":\"sample\",\"collector\":\"stormlog.cuda_tracker\","
        "\"sampling_interval_ms\":1000,\"pid\":1,\"host\":\"node1\",\"job_id\":\"%s\",\"rank\":0,"
        "\"local_rank\":0,\"world_size\":8,\"device_id\":0,\"allocator_allocated_bytes\":1,"
        "\"allocator_reserved_bytes\":1,\"allocator_active_bytes\":null,"
        "\"allocator_inactive_bytes\":null,\"allocator_change_bytes\":0,\"device_used_bytes\":1,"
        "\"device_free_bytes\":1,\"device_total_bytes\":2,\"context\":null,\"metadata\":{}}\n",
        number, job);
}

static const char WRONG[] = "{\"schema_version\":3,\"session_id\":7}\n";

// What came in order, each with its own position; those of kind "w" are refused.
static void check_order(uint32_t first, uint32_t count, const char *kinds) {
    for (uint32_t i = 0; i < count; i++) {
        const struct fake_record *record = &feed->records[first + i];
        ck_assert_uint_eq(record->position, first + i + 1);
        ck_assert_msg((record->category == DECODE_OK) == (kinds[i] != 'w'), "%u", i);
    }
}

START_TEST(telemetry_is_decoded_ahead) {
    static const char kinds[] = "tttwtltt"; // telemetry, wrong, legacy
    char body[8192];
    size_t used = 0;
    for (size_t i = 0; i < sizeof kinds - 1; i++)
        used += kinds[i] == 't'
                    ? write_sample(body + used, sizeof body - used, (int)i + 1, "ahead-job")
                    : (size_t)sprintf(body + used, "%s", kinds[i] == 'w' ? WRONG : R(6) "\n");
    start();
    // The names are new: who takes the records gives them their numbers.
    check_post(LINES, body, 202, 7, 1);
    ck_assert_uint_eq(feed->foreseen_count, 0);
    check_order(0, 8, kinds);
    check_post(LINES, body, 202, 7, 1);
    ck_assert_uint_eq(feed->foreseen_count, 6);
    check_order(8, 8, kinds);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 2);
    ck_assert_uint_eq(feed->sources[0]->flushed.detail[0], 16);
    struct answer answer = post("/v1/events", LINES, body);
    json_t *json = json_of(&answer);
    json_t *wrong = json_array_get(json_object_get(json, "rejected"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(wrong, "index")), 3);
    json_decref(json);
    answer_free(&answer);
    stop();
}
END_TEST

// A name that only a request which is not taken has stays without a number.
START_TEST(what_is_not_taken_gives_no_numbers) {
    char body[1024];
    start();
    write_sample(body, sizeof body, 1, "job-of-the-first");
    check_key("ahead", body, 202, 1, false);
    write_sample(body, sizeof body, 1, "job-of-a-repeat");
    check_key("ahead", body, 202, 1, true);
    ck_assert_uint_eq(intern_find(SLICE("job-of-a-repeat")), STRING_NONE);
    atomic_store(&feed->blocked, true);
    check_error(LINES, body, 503, "busy");
    ck_assert_uint_eq(intern_find(SLICE("job-of-a-repeat")), STRING_NONE);
    atomic_store(&feed->blocked, false);
    check_post(LINES, body, 202, 1, 0);
    ck_assert_uint_ne(intern_find(SLICE("job-of-a-repeat")), STRING_NONE);
    stop();
}
END_TEST

// More than is decoded ahead of one request, in several entries, without memory once warm.
START_TEST(large_requests_are_decoded_ahead_in_part) {
    enum { COUNT = 5000, AHEAD = 1024 };
    config.threads = 1;
    config.max_request_size.bytes = 4 << 20;
    size_t size = (size_t)COUNT * 700, used = 0;
    char *body = malloc(size);
    for (int i = 0; i < COUNT; i++)
        used += write_sample(body + used, size - used, i + 1, "ahead-job");
    start();
    check_post(LINES, body, 202, COUNT, 0);
    uint32_t before = feed->foreseen_count;
    check_post(LINES, body, 202, COUNT, 0);
    ck_assert_uint_eq(feed->foreseen_count, before + AHEAD);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 4);
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct fake_record *record = &feed->records[COUNT + i];
        ck_assert_uint_eq(record->position, COUNT + i + 1);
        ck_assert_str_eq(record->text, feed->records[i].text);
    }
    free(body);
    stop();
}
END_TEST

enum { CLIENTS = 8, CLIENT_REQUESTS = 25, CLIENT_RECORDS = 4 };

// Each second request has a name that was not there before.
static void *post_telemetry(void *number) {
    int client = *(const int *)number;
    int descriptor = client_connect(port());
    for (int i = 0; i < CLIENT_REQUESTS; i++) {
        char job[32], body[4096];
        size_t used = 0;
        snprintf(job, sizeof job, "job-%d-%d", client, i / 2);
        for (int record = 1; record <= CLIENT_RECORDS; record++)
            used += write_sample(body + used, sizeof body - used, record, job);
        client_request(descriptor, "POST", "/v1/events", LINES, body, used);
        struct answer answer = client_answer(descriptor, false);
        ck_assert_int_eq(answer.status, 202);
        ck_assert_int_eq(number_of(&answer, "accepted"), CLIENT_RECORDS);
        answer_free(&answer);
    }
    close(descriptor);
    return NULL;
}

// Requests that are decoded at once are taken one after the other, each whole and in its order.
START_TEST(many_clients_with_telemetry) {
    pthread_t threads[CLIENTS];
    int clients[CLIENTS];
    config.threads = 4;
    start();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, post_telemetry, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    uint32_t count = CLIENTS * CLIENT_REQUESTS * CLIENT_RECORDS;
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), count);
    ck_assert_uint_ge(feed->foreseen_count, CLIENTS * (CLIENT_REQUESTS / 2) * CLIENT_RECORDS);
    for (uint32_t i = 0; i < count; i++) {
        const struct fake_record *record = &feed->records[i];
        const struct fake_record *first = &feed->records[i - i % CLIENT_RECORDS];
        char time[40];
        snprintf(time, sizeof time, "\"timestamp_ns\":%u000000000,", i % CLIENT_RECORDS + 1);
        ck_assert_uint_eq(record->position, i + 1);
        ck_assert_ptr_nonnull(strstr(record->text, time));
        const char *job = strstr(first->text, "\"job_id\":");
        ck_assert_int_eq(strncmp(strstr(record->text, "\"job_id\":"), job, strcspn(job, ",")), 0);
    }
    stop();
}
END_TEST

// -- positions ----------------------------------------------------------------------------------

// Large requests are several entries; positions rise by one with each, none is left half done.
START_TEST(entries_and_positions) {
    start();
    char *body = malloc(1 << 20);
    size_t used = 0;
    for (int i = 0; i < 10000; i++)
        used += (size_t)sprintf(body + used, "{\"timestamp\":%d.5,\"memory_allocated\":1}\n", i);
    check_post(LINES, body, 202, 10000, 0);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 3);
    ck_assert_uint_eq(feed->sources[0]->flushed.detail[0], 10000);
    ck_assert_uint_eq(feed->records[9999].position, 10000);
    check_post(LINES, R(1), 202, 1, 0);
    ck_assert_uint_eq(feed->sources[0]->flushed.number, 4);
    ck_assert_uint_eq(feed->records[10000].position, 10001);
    free(body);
    stop();
}
END_TEST

START_TEST(blocked_pipelines_put_off) {
    start();
    atomic_store(&feed->blocked, true);
    struct answer answer = post("/v1/events", LINES, R(1));
    ck_assert_int_eq(answer.status, 503);
    int retry = atoi(answer_header(&answer, "Retry-After"));
    ck_assert(retry >= 1 && retry <= 10);
    answer_free(&answer);
    atomic_store(&feed->blocked, false);
    check_post(LINES, R(1), 202, 1, 0);
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), 1);
    stop();
}
END_TEST

START_TEST(before_it_runs_it_puts_off) {
    memset(&receiver, 0, sizeof receiver);
    ck_assert_int_eq(component_start(&receiver_http, &receiver, &config, &context, &error),
                     STATUS_OK);
    check_error(LINES, R(1), 503, "busy");
    component_stop(&receiver_http, &receiver);
}
END_TEST

// Once warm, a request takes no memory of our own.
START_TEST(steady_state_allocates_nothing) {
    config.threads = 1;
    start();
    size_t size;
    char text[4096] = R(1) "\n" R(2) "\n" R(3) "\n";
    size_t used = strlen(text);
    for (int i = 1; i <= 4; i++)
        used += write_sample(text + used, sizeof text - used, i, "ahead-job");
    char *gzip = client_gzip(text, used, &size);
    int descriptor = client_connect(port());
    uint64_t before = 0;
    for (int i = 0; i < 60; i++) {
        if (i == 20)
            before = memory_figures().allocations;
        client_request(descriptor, "POST", "/v1/events", LINES "Content-Encoding: gzip\r\n", gzip,
                       size);
        struct answer answer = client_answer(descriptor, false);
        ck_assert_int_eq(answer.status, 202);
        answer_free(&answer);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
    close(descriptor);
    free(gzip);
    stop();
}
END_TEST

START_TEST(many_clients) {
    start();
    post_from_many();
    stop();
}
END_TEST

// -- OTLP ---------------------------------------------------------------------------------------

static char *read_whole(const char *name, size_t *size) {
    char path[512];
    snprintf(path, sizeof path, TESTS_DIR "/receivers/decode/otlp/data/%s", name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    char *bytes = calloc(1, 1 << 20);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

START_TEST(otlp_in_both_encodings) {
    start();
    size_t size;
    char *body = read_whole("logs.json", &size);
    struct answer answer = client_ask(port(), "POST", "/v1/logs", JSON, body, size);
    ck_assert_msg(answer.status == 200, "%d %s", answer.status, answer.body);
    ck_assert_str_eq(answer_header(&answer, "Content-Type"), "application/json");
    json_decref(json_of(&answer));
    answer_free(&answer);
    free(body);
    uint32_t from_json = fake_feed_accepted(feed, NULL);
    ck_assert_uint_gt(from_json, 0);
    body = read_whole("logs.pb", &size);
    answer = client_ask(port(), "POST", "/v1/logs", "Content-Type: application/x-protobuf\r\n",
                        body, size);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer_header(&answer, "Content-Type"), "application/x-protobuf");
    answer_free(&answer);
    ck_assert_uint_gt(fake_feed_accepted(feed, NULL), from_json);
    free(body);
    stop();
}
END_TEST

START_TEST(otlp_partial_success) {
    start();
    static const char body[] =
        "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":["
        "{\"body\":{\"stringValue\":\"{\\\"timestamp\\\":1.5,\\\"memory_allocated\\\":1}\"}},"
        "{\"body\":{\"stringValue\":\"{\\\"a\\\":2.5}\"}}]}]}]}";
    struct answer answer = post("/v1/logs", JSON, body);
    ck_assert_msg(answer.status == 200, "%s", answer.body);
    json_t *json = json_of(&answer);
    json_t *partial = json_object_get(json, "partialSuccess");
    ck_assert_msg(partial != NULL, "%s", answer.body);
    ck_assert_str_eq(json_string_value(json_object_get(partial, "rejectedLogRecords")), "1");
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(partial, "errorMessage")), "log record 1"));
    json_decref(json);
    answer_free(&answer);
    answer = post("/v1/logs", JSON, "{}");
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "{}");
    answer_free(&answer);
    stop();
}
END_TEST

START_TEST(otlp_errors_are_statuses) {
    start();
    struct answer answer = post("/v1/logs", JSON, "nonsense");
    ck_assert_int_eq(answer.status, 400);
    ck_assert_int_eq(number_of(&answer, "code"), 3);
    answer_free(&answer);
    static const char protobuf[] = "Content-Type: application/x-protobuf\r\n";
    answer = post("/v1/logs", protobuf, "nonsense");
    ck_assert_int_eq(answer.status, 400);
    ck_assert_str_eq(answer_header(&answer, "Content-Type"), "application/x-protobuf");
    // Field 1, a varint: 3; field 2, bytes.
    ck_assert_int_eq(memcmp(answer.body, "\x08\x03\x12", 3), 0);
    answer_free(&answer);
    // What the listener refuses is in the same form.
    atomic_store(&feed->blocked, true);
    answer = post("/v1/logs", JSON, "{}");
    ck_assert_int_eq(answer.status, 503);
    ck_assert_int_eq(number_of(&answer, "code"), 14);
    ck_assert_ptr_nonnull(answer_header(&answer, "Retry-After"));
    answer_free(&answer);
    stop();
}
END_TEST

// -- options ------------------------------------------------------------------------------------

START_TEST(options_that_do_not_fit) {
    struct arena arena;
    arena_init(&arena, 4096);
    struct problem_list problems;
    problem_list_init(&problems, &arena);
    receiver_http.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, 0);
    config.endpoint = "nowhere";
    config.records.job_id = "";
    config.max_record_size.bytes = 2 << 20;
    config.max_pending_size.bytes = 1 << 20;
    config.tls.cert_file = "x";
    receiver_http.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, 5);
    arena_release(&arena);
}
END_TEST

START_TEST(a_taken_port_is_an_early_error) {
    start();
    static char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", port());
    struct http_config second = config;
    second.endpoint = endpoint;
    static struct http_receiver other;
    struct error other_error;
    ck_assert_int_eq(component_start(&receiver_http, &other, &second, &context, &other_error),
                     STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(other_error.message, endpoint));
    component_stop(&receiver_http, &other);
    stop();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, all_layouts_are_taken);
    tcase_add_test(cases, gzip_is_taken);
    tcase_add_test(cases, wrong_records_are_named);
    tcase_add_test(cases, nothing_right_is_400);
    tcase_add_test(cases, only_the_first_hundred_are_listed);
    tcase_add_test(cases, long_records_are_left_out);
    tcase_add_test(cases, limits_of_requests);
    tcase_add_test(cases, quarantine_gets_what_is_refused);
    tcase_add_test(cases, answers_are_counted);
    tcase_add_test(cases, job_is_stamped);
    tcase_add_test(cases, telemetry_is_decoded_ahead);
    tcase_add_test(cases, what_is_not_taken_gives_no_numbers);
    tcase_add_test(cases, large_requests_are_decoded_ahead_in_part);
    tcase_add_test(cases, many_clients_with_telemetry);
    tcase_add_test(cases, entries_and_positions);
    tcase_add_test(cases, blocked_pipelines_put_off);
    tcase_add_test(cases, before_it_runs_it_puts_off);
    tcase_add_test(cases, steady_state_allocates_nothing);
    tcase_add_test(cases, many_clients);
    tcase_add_test(cases, otlp_in_both_encodings);
    tcase_add_test(cases, otlp_partial_success);
    tcase_add_test(cases, otlp_errors_are_statuses);
    tcase_add_test(cases, options_that_do_not_fit);
    tcase_add_test(cases, a_taken_port_is_an_early_error);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

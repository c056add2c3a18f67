// SPDX-License-Identifier: Apache-2.0
// Streamed answers: pieces, ends of all kinds, time limits, and what no message shows.
#include "base/http/stream.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tests/support/http_sink.h"

#include <fcntl.h>

#define SECOND 1000000000ull

static struct http_sink sink;
static struct http_streams *streams;
static struct error error;
static uint64_t live_before;

struct taken {
    char text[256];
    size_t size, stop_at; // 0: never
};

static bool take(void *context, struct slice bytes) {
    struct taken *taken = context;
    ck_assert_uint_lt(taken->size + bytes.size, sizeof taken->text);
    memcpy(taken->text + taken->size, bytes.data, bytes.size);
    taken->size += bytes.size;
    return taken->stop_at == 0 || taken->size < taken->stop_at;
}

static void open_streams(void) {
    live_before = memory_figures().live_bytes;
    ck_assert_msg(http_streams_open(&streams, &error) == STATUS_OK, "%s", error.message);
}

static void finish(void) {
    http_streams_close(streams);
    ck_assert_uint_eq(memory_figures().live_bytes, live_before);
}

static struct http_stream *send_to(const char *url, struct taken *taken, uint64_t timeout_ns) {
    static const struct http_client_tls tls = {.ca_file = NULL};
    static const char *const headers[] = {"Accept: application/json", "no header"};
    struct http_stream_options options = {.url = url,
                                          .headers = headers,
                                          .header_count = 2,
                                          .bearer_token = "a-secret-token",
                                          .tls = &tls,
                                          .timeout_ns = timeout_ns,
                                          .take = take,
                                          .context = taken,
                                          .reply_max = 32};
    struct http_stream *stream = NULL;
    ck_assert_msg(http_stream_begin(streams, &stream, &options, &error) == STATUS_OK, "%s",
                  error.message);
    return stream;
}

static struct http_stream *wait_for_one(void) {
    struct http_stream *stream = NULL;
    for (int i = 0; i < 600 && stream == NULL; i++) {
        http_streams_wait(streams, -1, SECOND / 20);
        stream = http_streams_ended(streams);
    }
    ck_assert_ptr_nonnull(stream);
    return stream;
}

START_TEST(answers) {
    static const struct sink_answer script[] = {
        {.status = 200, .body = "first\nsecond\n"},
        {.status = 429, .headers = "Retry-After: 7\r\n", .body = "too many requests, please wait"},
        {.status = 500, .body = "more than the thirty-two bytes that are kept of it"},
        {.status = 200, .body = "cut", .claimed_size = 100},
        {.status = 0}};
    struct taken taken[5] = {{.size = 0}};
    open_streams();
    http_sink_start(&sink, script, 5);
    for (size_t i = 0; i < 5; i++) {
        struct http_stream *stream = send_to(sink.url, &taken[i], 20 * SECOND);
        ck_assert_ptr_eq(wait_for_one(), stream);
        ck_assert_ptr_eq(http_stream_context(stream), &taken[i]);
        struct http_stream_result result = http_stream_result(stream);
        ck_assert_int_eq(result.status, script[i].status);
        ck_assert(result.whole == (i < 3));
        ck_assert(!result.stopped);
        ck_assert((result.problem[0] != '\0') == (i >= 3));
        ck_assert_uint_eq(result.retry_after_ns, i == 1 ? 7 * SECOND : 0);
        ck_assert_uint_eq(result.reply.size, i == 1 ? 30 : i == 2 ? 32 : 0);
        http_stream_free(stream);
    }
    ck_assert_str_eq(taken[0].text, "first\nsecond\n");
    ck_assert_str_eq(taken[3].text, "cut");
    ck_assert_uint_eq(taken[1].size + taken[2].size, 0);
    ck_assert_str_eq(sink_header(&sink.requests[0], "Authorization"), "Bearer a-secret-token");
    ck_assert_ptr_null(strstr(sink.requests[0].head, "no header"));
    http_sink_stop(&sink);
    finish();
}
END_TEST

START_TEST(taker_ends_it) {
    static const struct sink_answer script[] = {{.status = 200, .body = "enough of it"}};
    struct taken taken = {.stop_at = 3};
    open_streams();
    http_sink_start(&sink, script, 1);
    struct http_stream *stream = send_to(sink.url, &taken, 20 * SECOND);
    ck_assert_ptr_eq(wait_for_one(), stream);
    ck_assert(http_stream_result(stream).stopped && !http_stream_result(stream).whole);
    ck_assert_int_eq(http_stream_status(stream), 200);
    http_stream_free(stream);
    http_sink_stop(&sink);
    finish();
}
END_TEST

// A server that says nothing is given up when the time is over, and not before.
START_TEST(silence) {
    static const struct sink_answer script[] = {{.status = 200, .delay_ms = 60000}};
    struct taken taken = {.size = 0};
    open_streams();
    http_sink_start(&sink, script, 1);
    uint64_t begun = clock_monotonic_ns();
    struct http_stream *stream = send_to(sink.url, &taken, SECOND / 2);
    ck_assert_ptr_eq(wait_for_one(), stream);
    ck_assert_uint_ge(clock_monotonic_ns() - begun, SECOND / 2 - SECOND / 100);
    struct http_stream_result result = http_stream_result(stream);
    ck_assert_int_eq(result.status, 0);
    ck_assert_msg(strstr(result.problem, "timed out") != NULL, "%s", result.problem);
    ck_assert_ptr_null(strstr(result.problem, "a-secret-token"));
    http_stream_free(stream);
    http_sink_stop(&sink);
    finish();
}
END_TEST

// A descriptor that is readable ends the waiting; what is under way can be given up.
START_TEST(stopped_while_waiting) {
    static const struct sink_answer script[] = {{.status = 200, .delay_ms = 60000}};
    struct taken taken = {.size = 0};
    int ends[2];
    open_streams();
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    http_sink_start(&sink, script, 1);
    struct http_stream *stream = send_to(sink.url, &taken, 3600 * SECOND);
    for (int i = 0; i < 100; i++)
        http_streams_wait(streams, ends[0], 3600 * SECOND);
    ck_assert_ptr_null(http_streams_ended(streams));
    http_stream_free(stream);
    http_sink_stop(&sink);
    close(ends[0]);
    close(ends[1]);
    finish();
}
END_TEST

START_TEST(wrong_requests) {
    static const char *const urls[] = {"ftp://127.0.0.1/", "http://", "http://u:p@127.0.0.1/"};
    struct http_client_tls tls = {.ca_file = NULL};
    struct http_stream_options options = {
        .tls = &tls, .timeout_ns = SECOND, .take = take, .reply_max = 1};
    struct http_stream *stream = NULL;
    open_streams();
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        options.url = urls[i];
        ck_assert_int_eq(http_stream_begin(streams, &stream, &options, &error), STATUS_CONFIG);
    }
    options.url = "https://127.0.0.1:1/";
    tls.ca_file = "/nowhere/ca.crt";
    ck_assert_int_eq(http_stream_begin(streams, &stream, &options, &error), STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "ca_file"));
    ck_assert_ptr_null(stream);
    finish();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_stream");
    TCase *cases = tcase_create("stream");
    tcase_add_test(cases, answers);
    tcase_add_test(cases, taker_ends_it);
    tcase_add_test(cases, silence);
    tcase_add_test(cases, stopped_while_waiting);
    tcase_add_test(cases, wrong_requests);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

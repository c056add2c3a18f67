// SPDX-License-Identifier: Apache-2.0
// The HTTP client: what goes out, what a reply means, and what no message shows.
#include "base/http/client.h"

#include "base/clock.h"
#include "base/http/url.h"
#include "base/memory.h"
#include "tests/support/http_sink.h"
#include "tests/support/temporary.h"

#include <fcntl.h>
#include <sys/stat.h>

#define SECOND 1000000000ull

static struct http_sink sink;
static struct http_client *client;
static struct error error;
static uint64_t live_before;

static struct http_client_options options_for(const char *url) {
    return (struct http_client_options){
        .url = url, .timeout_ns = 20 * SECOND, .reply_max = 1 << 20};
}

static void open_with(const struct http_client_options *options) {
    live_before = memory_figures().live_bytes;
    ck_assert_msg(http_client_open(&client, options, &error) == STATUS_OK, "%s", error.message);
}

static void finish(void) {
    http_client_close(client);
    http_sink_stop(&sink);
    ck_assert_uint_eq(memory_figures().live_bytes, live_before);
}

static enum http_class post(const char *body) {
    struct http_call call = {.method = "POST", .body = slice_of(body)};
    return http_client_send(client, &call, &error);
}

static void check_message(const char *wanted) {
    ck_assert_msg(strstr(error.message, wanted) != NULL, "%s", error.message);
}

static void check_silent(const char *secret) {
    ck_assert_msg(strstr(error.message, secret) == NULL, "%s", error.message);
}

START_TEST(urls_of_an_api) {
    static const char *const cases[][2] = {
        {"http://h:1", "http://h:1/api/v2/alerts"},
        {"http://h:1//", "http://h:1/api/v2/alerts"},
        {"https://h/am", "https://h/am/api/v2/alerts"},
        {"https://h/am/api/v2/alerts", "https://h/am/api/v2/alerts"},
        {"https://h/am/api/v2/alerts/", "https://h/am/api/v2/alerts"},
        {"https://h/api/v2/alerts2", "https://h/api/v2/alerts2/api/v2/alerts"},
    };
    char url[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert(http_url_of_api(url, sizeof url, cases[i][0], "/api/v2/alerts"));
        ck_assert_str_eq(url, cases[i][1]);
    }
    ck_assert(!http_url_of_api(url, 24, "http://h:1", "/api/v2/alerts"));
    ck_assert(http_url_of_api(url, 25, "http://h:1", "/api/v2/alerts"));
}
END_TEST

START_TEST(classes) {
    static const struct {
        long status;
        enum http_class class;
    } cases[] = {{200, HTTP_OK},      {204, HTTP_OK},      {302, HTTP_DEAD},    {400, HTTP_REFUSED},
                 {401, HTTP_DEAD},    {403, HTTP_DEAD},    {404, HTTP_DEAD},    {408, HTTP_RETRY},
                 {410, HTTP_DEAD},    {413, HTTP_REFUSED}, {422, HTTP_REFUSED}, {425, HTTP_RETRY},
                 {429, HTTP_RETRY},   {500, HTTP_RETRY},   {501, HTTP_DEAD},    {502, HTTP_RETRY},
                 {503, HTTP_RETRY},   {504, HTTP_RETRY},   {505, HTTP_DEAD},    {0, HTTP_RETRY},
                 {418, HTTP_REFUSED}, {599, HTTP_RETRY}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(http_class_of(cases[i].status) == cases[i].class, "%ld", cases[i].status);
}
END_TEST

START_TEST(urls) {
    ck_assert_ptr_null(http_url_problem("https://example.org/hook?x=1#y"));
    ck_assert_ptr_null(http_url_problem("http://[::1]:80"));
    ck_assert_ptr_nonnull(http_url_problem("example.org"));
    ck_assert_ptr_nonnull(http_url_problem("ftp://example.org"));
    ck_assert_ptr_nonnull(http_url_problem("https://"));
    ck_assert_ptr_nonnull(http_url_problem("https:///path"));
    ck_assert_ptr_nonnull(http_url_problem("https://:80/"));
    ck_assert_ptr_nonnull(http_url_problem("https://me:word@example.org/"));
    ck_assert_ptr_nonnull(http_url_problem("https://example.org/a b"));
    ck_assert_ptr_nonnull(http_url_problem("https://example.org/\r\nX: y"));
    ck_assert_ptr_null(http_url_problem("https://example.org/who@where"));
    ck_assert(slice_equal(http_url_origin("https://h:1/p?q"), SLICE("https://h:1")));
    ck_assert(slice_equal(http_url_origin("https://me:word@h/p"), SLICE("h")));
    ck_assert(http_url_is_exposed("http://example.org/"));
    ck_assert(!http_url_is_exposed("https://example.org/"));
    ck_assert(!http_url_is_exposed("http://localhost:8080/"));
    ck_assert(!http_url_is_exposed("http://[::1]/"));
    ck_assert(!http_url_is_exposed("http://127.0.0.1/"));
}
END_TEST

START_TEST(a_request_goes_out_as_given) {
    static const char *const all[] = {"X-Key: a value", "X-Two: 2"};
    static const char *const own[] = {"Content-Type: application/json", "no header",
                                      "X-Split: a\r\nX-Bad: b"};
    http_sink_start(&sink, (struct sink_answer[]){{.status = 200, .body = "thanks"}}, 1);
    char url[128];
    snprintf(url, sizeof url, "%s/hook?a=b", sink.url);
    struct http_client_options options = options_for(url);
    options.headers = all;
    options.header_count = 2;
    open_with(&options);
    struct http_call call = {
        .method = "POST", .headers = own, .header_count = 3, .body = SLICE("{\"a\":1}")};
    ck_assert_int_eq(http_client_send(client, &call, &error), HTTP_OK);
    const struct http_reply *reply = http_client_reply(client);
    ck_assert_int_eq(reply->status, 200);
    ck_assert(reply->whole);
    ck_assert(slice_equal(buffer_slice(&reply->body), SLICE("thanks")));
    ck_assert(slice_equal(http_client_header(client, "content-length"), SLICE("6")));
    ck_assert_uint_eq(http_client_header(client, "X-None").size, 0);
    const struct sink_request *got = &sink.requests[0];
    ck_assert_str_eq(got->method, "POST");
    ck_assert_str_eq(got->path, "/hook?a=b");
    ck_assert_str_eq(got->body, "{\"a\":1}");
    ck_assert_str_eq(sink_header(got, "X-Key"), "a value");
    ck_assert_str_eq(sink_header(got, "X-Two"), "2");
    ck_assert_str_eq(sink_header(got, "Content-Type"), "application/json");
    ck_assert_str_eq(sink_header(got, "User-Agent"), "culprit");
    ck_assert_ptr_null(sink_header(got, "X-Bad"));
    ck_assert_ptr_null(sink_header(got, "Expect"));
    ck_assert_ptr_null(sink_header(got, "Authorization"));
    finish();
}
END_TEST

START_TEST(methods_and_bodies) {
    http_sink_start(&sink, NULL, 0);
    struct http_client_options options = options_for(sink.url);
    options.user = "api";
    options.password = "hidden-password";
    open_with(&options);
    char path[128];
    temporary_path(path, sizeof path, "client");
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, "0123456789", 10), 10);
    const struct http_call calls[] = {
        {.method = "GET"},
        {.method = "POST"},
        {.method = "PUT", .file = file, .file_offset = 3, .file_size = 4},
        {.method = "DELETE"},
        {.method = "GET"},
        {.method = "PATCH", .body = SLICE("body")},
    };
    static const char *const bodies[] = {"", "", "3456", "", "", "body"};
    for (size_t i = 0; i < 6; i++) {
        ck_assert_msg(http_client_send(client, &calls[i], &error) == HTTP_OK, "%s", error.message);
        ck_assert_str_eq(sink.requests[i].method, calls[i].method);
        ck_assert_str_eq(sink.requests[i].body, bodies[i]);
        // base64 of api:hidden-password
        ck_assert_str_eq(sink_header(&sink.requests[i], "Authorization"),
                         "Basic YXBpOmhpZGRlbi1wYXNzd29yZA==");
    }
    ck_assert_str_eq(sink_header(&sink.requests[1], "Content-Length"), "0");
    // A file that is shorter than was said.
    struct http_call call = {.method = "PUT", .file = file, .file_offset = 8, .file_size = 4};
    ck_assert_int_eq(http_client_send(client, &call, &error), HTTP_RETRY);
    close(file);
    unlink(path);
    finish();
}
END_TEST

START_TEST(replies_are_judged) {
    static const struct sink_answer script[] = {
        {.status = 503, .headers = "Retry-After: 7\r\n"},
        {.status = 429, .headers = "retry-after:  9999999 \r\n"},
        {.status = 503, .headers = "Retry-After: Fri, 01 Jan 2100 00:00:00 GMT\r\n"},
        {.status = 503, .headers = "Retry-After: Fri, 01 Jan 1999 00:00:00 GMT\r\n"},
        {.status = 503, .headers = "Retry-After: soon\r\n"},
        {.status = 400, .body = "no such\nfield"},
        {.status = 401},
        {.status = 302, .headers = "Location: http://127.0.0.1:1/\r\n"},
        {.status = 0},
        {.status = 200, .body = "half", .claimed_size = 8},
        {.status = 200},
    };
    static const struct {
        enum http_class class;
        uint64_t wait_ns;
        const char *message;
    } wanted[] = {
        {HTTP_RETRY, 7 * SECOND, "answers 503"},
        {HTTP_RETRY, 3600 * SECOND, "answers 429"},
        {HTTP_RETRY, 3600 * SECOND, ""},
        {HTTP_RETRY, 0, ""},
        {HTTP_RETRY, 0, ""},
        {HTTP_REFUSED, 0, "answers 400: no such field"},
        {HTTP_DEAD, 0, "answers 401"},
        {HTTP_DEAD, 0, "answers 302; redirects are not followed"},
        {HTTP_RETRY, 0, "Empty reply"},
        {HTTP_OK, 0, ""},
        {HTTP_OK, 0, ""},
    };
    size_t count = sizeof script / sizeof script[0];
    http_sink_start(&sink, script, count);
    struct http_client_options options = options_for(sink.url);
    open_with(&options);
    for (size_t i = 0; i < count; i++) {
        error.message[0] = '\0';
        ck_assert_msg(post("x") == wanted[i].class, "%zu: %s", i, error.message);
        ck_assert_uint_eq(http_client_reply(client)->retry_after_ns, wanted[i].wait_ns);
        check_message(wanted[i].message);
        ck_assert(http_client_reply(client)->whole == (i != 8 && i != 9));
    }
    finish();
}
END_TEST

START_TEST(long_replies) {
    static char body[5000];
    memset(body, 'y', sizeof body - 1);
    static struct sink_answer script[] = {{.status = 200, .body = body}};
    http_sink_start(&sink, script, 1);
    struct http_client_options options = options_for(sink.url);
    options.reply_max = 4096;
    open_with(&options);
    ck_assert_int_eq(post("x"), HTTP_OK);
    ck_assert_uint_eq(http_client_reply(client)->body.size, 4096);
    http_client_close(client);
    options.refuses_long_replies = true;
    ck_assert_int_eq(http_client_open(&client, &options, &error), STATUS_OK);
    ck_assert_int_eq(post("x"), HTTP_RETRY);
    check_message("the answer has more than");
    finish();
}
END_TEST

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

START_TEST(token_files) {
    static const struct sink_answer script[] = {{.status = 200}, {.status = 401}, {.status = 401}};
    char path[128], other[160];
    temporary_path(path, sizeof path, "token");
    close(mkstemp(path));
    snprintf(other, sizeof other, "%s.new", path);
    http_sink_start(&sink, script, 3);
    struct http_client_options options = options_for(sink.url);
    options.bearer_token_file = path;
    ck_assert_int_eq(http_client_open(&client, &options, &error), STATUS_CONFIG);
    check_message("is empty");
    write_text(path, "two words\n");
    ck_assert_int_eq(http_client_open(&client, &options, &error), STATUS_CONFIG);
    check_message("white space");
    check_silent("two words");
    for (int big = 0; big < 2; big++) { // as editors of Windows write it
        FILE *file = fopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fwrite(big ? "\0t\0o\0k" : "t\0o\0k\0", 1, 6, file), 6);
        fclose(file);
        ck_assert_int_eq(http_client_open(&client, &options, &error), STATUS_CONFIG);
        check_message("is UTF-16");
    }
    write_text(path, "\xff\xfe");
    ck_assert_int_eq(http_client_open(&client, &options, &error), STATUS_CONFIG);
    check_message("is UTF-16");
    write_text(path, "\xef\xbb\xbf\r\n");
    ck_assert_int_eq(http_client_open(&client, &options, &error), STATUS_CONFIG);
    check_message("is empty");
    write_text(path,
               "\xef\xbb\xbf"
               "first-token\r\n");
    open_with(&options);
    ck_assert_int_eq(post("x"), HTTP_OK);
    ck_assert_str_eq(sink_header(&sink.requests[0], "Authorization"), "Bearer first-token");
    // Refused, with another token in the file by now: worth another try.
    write_text(other, "second-token");
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert_int_eq(post("x"), HTTP_RETRY);
    check_message("the token file has changed");
    ck_assert_int_eq(post("x"), HTTP_DEAD);
    ck_assert_str_eq(sink_header(&sink.requests[2], "Authorization"), "Bearer second-token");
    // Without the file the old token stays.
    unlink(path);
    ck_assert_int_eq(post("x"), HTTP_DEAD);
    ck_assert_str_eq(sink_header(&sink.requests[3], "Authorization"), "Bearer second-token");
    finish();
}
END_TEST

START_TEST(messages_keep_secrets) {
    static const char *const headers[] = {"X-Api-Key: header-secret-1"};
    static const struct sink_answer script[] = {
        {.status = 400,
         .body = "T0/B1/pathsecret header-secret-1 token-secret-2 Bearer token-secret-2 fine"}};
    http_sink_start(&sink, script, 1);
    char url[128];
    snprintf(url, sizeof url, "%s/services/T0/B1/pathsecret", sink.url);
    struct http_client_options options = options_for(url);
    options.headers = headers;
    options.header_count = 1;
    options.bearer_token = "token-secret-2";
    open_with(&options);
    ck_assert_int_eq(post("x"), HTTP_REFUSED);
    check_silent("pathsecret");
    check_silent("header-secret-1");
    check_silent("token-secret-2");
    check_message("fine");
    ck_assert_str_eq(sink_header(&sink.requests[0], "Authorization"), "Bearer token-secret-2");
    http_sink_stop(&sink);
    // Nobody there: no path either.
    ck_assert_int_eq(post("x"), HTTP_RETRY);
    check_silent("pathsecret");
    http_client_close(client);
    options = options_for("http://h\nX: y");
    ck_assert_int_eq(http_client_open(&client, &options, &error), STATUS_CONFIG);
    options = options_for(url);
    options.tls.ca_file = "/nowhere/ca.pem";
    ck_assert_int_eq(http_client_open(&client, &options, &error), STATUS_CONFIG);
    check_message("ca_file /nowhere/ca.pem cannot be read");
    ck_assert_uint_eq(memory_figures().live_bytes, live_before);
}
END_TEST

START_TEST(too_slow) {
    static const struct sink_answer script[] = {{.status = 200, .delay_ms = 60000}};
    http_sink_start(&sink, script, 1);
    struct http_client_options options = options_for(sink.url);
    options.timeout_ns = SECOND / 5;
    open_with(&options);
    uint64_t begin = clock_monotonic_ns();
    ck_assert_int_eq(post("x"), HTTP_RETRY);
    ck_assert_int_eq(error.status, STATUS_IO);
    ck_assert_uint_lt(clock_monotonic_ns() - begin, 55 * SECOND);
    finish();
}
END_TEST

static Suite *suite(void) {
    Suite *result = suite_create("http_client");
    TCase *test = tcase_create("http_client");
    tcase_add_test(test, urls_of_an_api);
    tcase_add_test(test, classes);
    tcase_add_test(test, urls);
    tcase_add_test(test, a_request_goes_out_as_given);
    tcase_add_test(test, methods_and_bodies);
    tcase_add_test(test, replies_are_judged);
    tcase_add_test(test, long_replies);
    tcase_add_test(test, token_files);
    tcase_add_test(test, messages_keep_secrets);
    tcase_add_test(test, too_slow);
    suite_add_tcase(result, test);
    return result;
}

int main(void) {
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

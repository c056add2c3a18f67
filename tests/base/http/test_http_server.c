// SPDX-License-Identifier: Apache-2.0
// The listener against real sockets: what it answers and what it refuses.
#include "tests/base/http/http_server_fixture.h"

// -- what is answered ---------------------------------------------------------------------------

START_TEST(body_query_and_headers_arrive) {
    start();
    struct answer answer = ask("POST", "/echo?a=1&b=%20", "X-Name: me\r\n", "hello");
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "POST /echo ?a=1&b=%20 me 5 hello");
    ck_assert_str_eq(answer_header(&answer, "Content-Type"), "text/plain; charset=utf-8");
    answer_free(&answer);
    answer = ask("GET", "/echo", "", NULL);
    ck_assert_str_eq(answer.body, "GET /echo ? - 0 ");
    answer_free(&answer);
    ck_assert_int_eq(atomic_load(&statuses[200]), 2);
}
END_TEST

START_TEST(one_connection_serves_many_requests) {
    start();
    int descriptor = client_connect(http_server_port(server));
    for (int i = 0; i < 50; i++) {
        client_request(descriptor, "POST", "/echo", "", "hello", 5);
        struct answer answer = client_answer(descriptor, false);
        ck_assert_int_eq(answer.status, 200);
        answer_free(&answer);
        // A refused small request does not end the connection either.
        client_request(descriptor, "PUT", "/echo", "", "hello", 5);
        answer = client_answer(descriptor, false);
        ck_assert_int_eq(answer.status, 405);
        answer_free(&answer);
    }
    // In steady state nothing of our own is allocated for a request.
    uint64_t before = memory_figures().allocations;
    for (int i = 0; i < 50; i++) {
        client_request(descriptor, "POST", "/echo", "", "hello", 5);
        struct answer answer = client_answer(descriptor, false);
        answer_free(&answer);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
    close(descriptor);
}
END_TEST

START_TEST(chunked_body_is_joined) {
    start();
    int descriptor = client_connect(http_server_port(server));
    client_send_text(descriptor,
                     "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
    struct answer answer = client_answer(descriptor, false);
    ck_assert_str_eq(answer.body, "POST /echo ? - 7 abcdefg");
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(head_is_get_without_body) {
    start();
    struct answer answer = ask("HEAD", "/large", "", NULL);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer_header(&answer, "Content-Length"), "40000");
    answer_free(&answer);
    answer = ask("HEAD", "/echo", "", NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
}
END_TEST

START_TEST(answers_are_compressed_when_asked) {
    start();
    static const struct {
        const char *accept;
        bool gzip;
    } cases[] = {{"", false},
                 {"Accept-Encoding: gzip\r\n", true},
                 {"Accept-Encoding: deflate, gzip;q=0.5\r\n", true},
                 {"Accept-Encoding: gzip;q=0\r\n", false},
                 {"Accept-Encoding: *\r\n", true},
                 {"Accept-Encoding: gzip; q=0, *\r\n", false},
                 {"Accept-Encoding: br\r\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answer answer = ask("GET", "/large", cases[i].accept, NULL);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(answer_header(&answer, "Vary"), "Accept-Encoding");
        ck_assert_msg((answer_header(&answer, "Content-Encoding") != NULL) == cases[i].gzip, "%s",
                      cases[i].accept);
        if (cases[i].gzip) {
            static char plain[50000];
            z_stream stream = {.next_in = (unsigned char *)answer.body,
                               .avail_in = (unsigned)answer.size,
                               .next_out = (unsigned char *)plain,
                               .avail_out = sizeof plain};
            inflateInit2(&stream, 31);
            ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
            ck_assert_uint_eq(stream.total_out, 40000);
            inflateEnd(&stream);
        }
        answer_free(&answer);
    }
}
END_TEST

// -- what is refused ----------------------------------------------------------------------------

START_TEST(another_path_and_what_is_there_are_named) {
    start();
    struct answer answer = ask("POST", "/v1/traces", "", "x");
    ck_assert_int_eq(answer.status, 404);
    ck_assert_msg(strstr(answer.body, "There is nothing at /v1/traces; what is there: ") != NULL &&
                      strstr(answer.body, "/echo") != NULL && strstr(answer.body, "/json") != NULL,
                  "%s", answer.body);
    answer_free(&answer);
}
END_TEST

// What a gRPC client sends first (RFC 9113, 3.4).
START_TEST(http2_is_refused_and_said) {
    log_to_file();
    start();
    int descriptor = client_connect(http_server_port(server));
    client_send_text(descriptor, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 505);
    answer_free(&answer);
    close(descriptor);
    EVENTUALLY(log_says("a client that speaks HTTP/2, as gRPC does, was refused"));
}
END_TEST

START_TEST(paths_and_methods) {
    start();
    check_refused("GET", "/nowhere", "", NULL, 404, "not_found");
    check_refused("GET", "/echo/", "", NULL, 404, "not_found");
    check_refused("PUT", "/echo", "", "x", 405, "method_not_allowed");
    struct answer answer = ask("DELETE", "/echo", "", NULL);
    ck_assert_str_eq(answer_header(&answer, "Allow"), "GET, POST");
    answer_free(&answer);
    answer = ask("HEAD", "/json", "", NULL);
    ck_assert_int_eq(answer.status, 405);
    answer_free(&answer);
}
END_TEST

static void check_message(const char *headers, const char *says) {
    struct answer answer = ask("POST", "/json", headers, "{}");
    ck_assert_int_eq(answer.status, 415);
    ck_assert_msg(strstr(answer.body, says) != NULL, "%s", answer.body);
    answer_free(&answer);
}

START_TEST(a_415_names_what_it_got) {
    start();
    check_message("Content-Type: text/plain; charset=utf-8\r\n",
                  "Content-Type is \\\"text/plain; charset=utf-8\\\"; this path takes "
                  "application/json application/x-ndjson.");
    check_message("", "The request has no Content-Type; this path takes application/json");
    check_message("Content-Type: application/json\r\nContent-Encoding: zstd\r\n",
                  "Content-Encoding is \\\"zstd\\\"; gzip and identity are taken.");
    char headers[1200], wanted[200];
    snprintf(headers, sizeof headers, "Content-Type: %01000d\r\n", 0);
    snprintf(wanted, sizeof wanted, "\\\"%080d\\\"; this path takes", 0);
    check_message(headers, wanted);
}
END_TEST

START_TEST(content_types_and_encodings) {
    start();
    check_refused("POST", "/json", "", "{}", 415, "unsupported_media_type");
    check_refused("POST", "/json", "Content-Type: text/plain\r\n", "{}", 415,
                  "unsupported_media_type");
    check_refused("POST", "/json", "Content-Type: application/jso\r\n", "{}", 415,
                  "unsupported_media_type");
    check_refused("POST", "/echo", "Content-Encoding: br\r\n", "{}", 415, "unsupported_encoding");
    struct answer answer = ask("POST", "/echo", "Content-Encoding: zstd\r\n", "{}");
    ck_assert_str_eq(answer_header(&answer, "Accept-Encoding"), "gzip, identity");
    answer_free(&answer);
    static const char *const taken[] = {"Content-Type: application/json\r\n",
                                        "Content-Type: Application/JSON ; charset=utf-8\r\n",
                                        "Content-Type: application/x-ndjson\r\n"};
    for (int i = 0; i < 3; i++) {
        answer = ask("POST", "/json", taken[i], "{}");
        ck_assert_msg(answer.status == 200, "%s", taken[i]);
        answer_free(&answer);
    }
}
END_TEST

START_TEST(broken_requests) {
    start();
    static const char bad_length[] =
        "POST /echo HTTP/1.1\r\nHost: t\r\n"
        "Content-Length: many\r\n\r\n";
    static const char *const broken[] = {"nonsense\r\n\r\n", "GET /echo HTTP/1.1\r\n\r\n",
                                         bad_length};
    for (int i = 0; i < 3; i++) {
        int descriptor = client_connect(http_server_port(server));
        client_send_text(descriptor, broken[i]);
        struct answer answer = client_answer(descriptor, false);
        // No answer at all is fine for what is no HTTP.
        ck_assert_msg(answer.status == 400 || (i == 0 && answer.status == 0), "%s: %d", broken[i],
                      answer.status);
        answer_free(&answer);
        close(descriptor);
    }
    char *head = malloc(70000);
    memset(head, 'a', 70000);
    memcpy(head, "X: ", 3);
    memcpy(head + 69990, "\r\n\r\n", 5);
    int descriptor = client_connect(http_server_port(server));
    client_send_text(descriptor, "GET /echo HTTP/1.1\r\nHost: t\r\n");
    client_send(descriptor, head, 69994);
    struct answer answer = client_answer(descriptor, false);
    ck_assert_msg(answer.status == 431 || answer.status == 413 || answer.status == 0, "%d",
                  answer.status);
    answer_free(&answer);
    close(descriptor);
    free(head);
    ck_assert_int_eq(atomic_load(&handled), 0);
}
END_TEST

// What ends in two places is refused, and what stands behind it is not read as a request.
START_TEST(bodies_of_two_lengths) {
    start();
    static const char *const two[] = {
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
        "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\nhello",
        "Content-Length : 5\r\n\r\nhello",
    };
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        int descriptor = client_connect(http_server_port(server));
        client_send_text(descriptor, "POST /echo HTTP/1.1\r\nHost: t\r\n");
        client_send_text(descriptor, two[i]);
        client_send_text(descriptor, "GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
        struct answer answer = client_answer(descriptor, false);
        ck_assert_msg(answer.status == 400, "%zu: %d", i, answer.status);
        answer_free(&answer);
        answer = client_answer(descriptor, false);
        ck_assert_msg(answer.status == 0, "%zu: a second answer, %d", i, answer.status);
        answer_free(&answer);
        close(descriptor);
    }
    ck_assert_int_eq(atomic_load(&handled), 0);
}
END_TEST

START_TEST(too_large_before_the_body_is_sent) {
    start();
    int descriptor = client_connect(http_server_port(server));
    // Not a byte of the body is sent: the answer must come all the same.
    client_send_text(descriptor,
                     "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1048577\r\n\r\n");
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 413);
    ck_assert_ptr_nonnull(strstr(answer.body, "1048577 bytes, 1048576 are allowed"));
    ck_assert_str_eq(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(too_large_while_the_body_is_sent) {
    start();
    size_t size = 8 << 20;
    char *body = calloc(1, size);
    // A client that sends everything before it looks gets the answer too, again and again.
    for (int i = 0; i < 5; i++) {
        struct answer answer =
            client_ask(http_server_port(server), "POST", "/echo", "", body, size);
        ck_assert_int_eq(answer.status, 413);
        answer_free(&answer);
    }
    free(body);
    ck_assert_int_eq(atomic_load(&handled), 0);
}
END_TEST

START_TEST(too_large_in_chunks) {
    start();
    char *chunk = calloc(1, 65536);
    int descriptor = client_connect(http_server_port(server));
    client_send_text(descriptor,
                     "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 17; i++) {
        client_send_text(descriptor, "10000\r\n");
        client_send(descriptor, chunk, 65536);
        client_send_text(descriptor, "\r\n");
    }
    client_send_text(descriptor, "0\r\n\r\n");
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 413);
    answer_free(&answer);
    close(descriptor);
    // One that never ends is cut off.
    descriptor = client_connect(http_server_port(server));
    client_send_text(descriptor,
                     "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 100; i++) {
        client_send_text(descriptor, "10000\r\n");
        client_send(descriptor, chunk, 65536);
        client_send_text(descriptor, "\r\n");
    }
    answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 0);
    answer_free(&answer);
    close(descriptor);
    free(chunk);
    ck_assert_int_eq(atomic_load(&handled), 0);
}
END_TEST

START_TEST(gzip_bodies) {
    start();
    static const char text[] = "some text, some text, some text, some text";
    size_t size;
    char *gzip = client_gzip(text, sizeof text - 1, &size);
    char *two = malloc(2 * size + 4);
    memcpy(two, gzip, size);
    memcpy(two + size, gzip, size);
    memcpy(two + 2 * size, "junk", 4);
    static const char header[] = "Content-Encoding: gzip\r\n";
    uint16_t port = http_server_port(server);
    struct answer answer = client_ask(port, "POST", "/echo", header, gzip, size);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, text));
    answer_free(&answer);
    answer = client_ask(port, "POST", "/echo", header, two, 2 * size);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, " 84 "));
    answer_free(&answer);
    atomic_store(&handled, 0);
    // Cut off, with junk behind, empty, and no gzip at all.
    struct {
        const char *bytes;
        size_t size;
    } bad[] = {{gzip, size - 1}, {gzip, 5}, {two, 2 * size + 4},
               {two, size + 1},  {gzip, 0}, {text, sizeof text - 1}};
    for (int i = 0; i < 6; i++) {
        answer = client_ask(port, "POST", "/echo", header, bad[i].bytes, bad[i].size);
        ck_assert_msg(answer.status == 400, "case %d: %d", i, answer.status);
        ck_assert_ptr_nonnull(strstr(answer.body, "\"bad_gzip\""));
        if (bad[i].size == 0)
            ck_assert_ptr_nonnull(strstr(answer.body, "it ends too early"));
        answer_free(&answer);
    }
    ck_assert_int_eq(atomic_load(&handled), 0);
    free(two);
    free(gzip);
}
END_TEST

START_TEST(gzip_bombs_stop_at_the_limit) {
    start();
    static const char header[] = "Content-Encoding: gzip\r\n";
    static const size_t sizes[] = {1 << 20, (1 << 20) + 1, 512 << 20};
    for (int i = 0; i < 3; i++) {
        char *zeros = calloc(1, sizes[i]);
        size_t size;
        char *gzip = client_gzip(zeros, sizes[i], &size);
        free(zeros);
        memory_reset_peak();
        struct answer answer =
            client_ask(http_server_port(server), "POST", "/echo", header, gzip, size);
        ck_assert_int_eq(answer.status, i == 0 ? 200 : 413);
        answer_free(&answer);
        free(gzip);
        ck_assert_uint_lt(memory_figures().peak_bytes - live_before, 6 << 20);
    }
}
END_TEST

START_TEST(bodies_in_memory_are_bounded) {
    options.max_pending_bytes = 600 << 10;
    start();
    char *body = calloc(1, 1 << 20);
    struct answer answer = client_ask(http_server_port(server), "POST", "/echo", "", body, 1 << 20);
    ck_assert_int_eq(answer.status, 503);
    ck_assert_str_eq(answer_header(&answer, "Retry-After"), "1");
    answer_free(&answer);
    answer = client_ask(http_server_port(server), "POST", "/echo", "", body, 200 << 10);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    free(body);
}
END_TEST

START_TEST(owner_may_put_off) {
    start();
    atomic_store(&admit_status, 503);
    check_refused("POST", "/echo", "", "x", 503, "busy");
    atomic_store(&admit_status, 429);
    struct answer answer = ask("POST", "/echo", "", "x");
    ck_assert_int_eq(answer.status, 429);
    ck_assert_str_eq(answer_header(&answer, "Retry-After"), "7");
    answer_free(&answer);
    // With Expect the body is never asked for.
    int descriptor = client_connect(http_server_port(server));
    client_send_text(descriptor,
                     "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n"
                     "Expect: 100-continue\r\n\r\n");
    answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 429);
    answer_free(&answer);
    close(descriptor);
    atomic_store(&admit_status, 0);
    answer = ask("POST", "/echo", "", "x");
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
}
END_TEST

START_TEST(tokens) {
    options.bearer_token = "s3cret";
    start();
    check_refused("GET", "/echo", "", NULL, 401, "unauthorized");
    check_refused("GET", "/nowhere", "", NULL, 401, "unauthorized");
    static const char *const wrong[] = {
        "Authorization: Bearer s3cre\r\n",  "Authorization: Bearer s3crets\r\n",
        "Authorization: Bearer s3creT\r\n", "Authorization: Bearer s3crets3cret\r\n",
        "Authorization: Bearer \r\n",       "Authorization: Basic s3cret\r\n"};
    for (int i = 0; i < 6; i++)
        check_refused("GET", "/echo", wrong[i], NULL, 401, "unauthorized");
    struct answer answer = ask("GET", "/echo", "", NULL);
    ck_assert_str_eq(answer_header(&answer, "WWW-Authenticate"), "Bearer realm=\"culprit\"");
    answer_free(&answer);
    answer = ask("GET", "/echo", "Authorization: bearer s3cret\r\n", NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
}
END_TEST

START_TEST(token_files_are_read_again) {
    const char *path = in_folder("token");
    write_file(path, "one\n");
    options.bearer_token_file = path;
    start();
    struct answer answer = ask("GET", "/echo", "Authorization: Bearer one\r\n", NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    write_file(path, "second\n");
    int status = 0;
    for (int i = 0; i < 2000 && status != 200; i++) {
        answer = ask("GET", "/echo", "Authorization: Bearer second\r\n", NULL);
        status = answer.status;
        answer_free(&answer);
        usleep(50000);
    }
    ck_assert_int_eq(status, 200);
    answer = ask("GET", "/echo", "Authorization: Bearer one\r\n", NULL);
    ck_assert_int_eq(answer.status, 401);
    answer_free(&answer);
    // A file that is gone leaves the token standing.
    unlink(path);
    usleep(1100000);
    answer = ask("GET", "/echo", "Authorization: Bearer second\r\n", NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_server");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, body_query_and_headers_arrive);
    tcase_add_test(cases, one_connection_serves_many_requests);
    tcase_add_test(cases, chunked_body_is_joined);
    tcase_add_test(cases, head_is_get_without_body);
    tcase_add_test(cases, answers_are_compressed_when_asked);
    tcase_add_test(cases, another_path_and_what_is_there_are_named);
    tcase_add_test(cases, http2_is_refused_and_said);
    tcase_add_test(cases, paths_and_methods);
    tcase_add_test(cases, a_415_names_what_it_got);
    tcase_add_test(cases, content_types_and_encodings);
    tcase_add_test(cases, broken_requests);
    tcase_add_test(cases, bodies_of_two_lengths);
    tcase_add_test(cases, too_large_before_the_body_is_sent);
    tcase_add_test(cases, too_large_while_the_body_is_sent);
    tcase_add_test(cases, too_large_in_chunks);
    tcase_add_test(cases, gzip_bodies);
    tcase_add_test(cases, gzip_bombs_stop_at_the_limit);
    tcase_add_test(cases, bodies_in_memory_are_bounded);
    tcase_add_test(cases, owner_may_put_off);
    tcase_add_test(cases, tokens);
    tcase_add_test(cases, token_files_are_read_again);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

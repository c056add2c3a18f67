// SPDX-License-Identifier: Apache-2.0
// The listener against real sockets: time, answers that come later, endpoints, rest.
#include "tests/base/http/http_server_fixture.h"

// -- time ---------------------------------------------------------------------------------------

static void check_slow(const char *text, bool more) {
    int descriptor = client_connect(http_server_port(server));
    client_send_text(descriptor, text);
    // A byte now and then does not help.
    for (int i = 0; i < 6 && more; i++) {
        usleep(50000);
        client_send_text(descriptor, "a");
    }
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 408);
    ck_assert_ptr_nonnull(strstr(answer.body, "\"too_slow\""));
    answer_free(&answer);
    char byte;
    ck_assert_int_le(recv(descriptor, &byte, 1, 0), 0);
    close(descriptor);
}

START_TEST(slow_requests_end) {
    options.header_timeout_ns = SECOND / 5;
    options.body_timeout_ns = SECOND / 5;
    options.idle_timeout_ns = SECOND / 5;
    start();
    check_slow("", false);
    check_slow("GET /ec", true);
    check_slow("GET /echo HTTP/1.1\r\nHost: t\r\nX-A: ", true);
    check_slow("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n", true);
    ck_assert_int_eq(atomic_load(&statuses[408]), 4);
    // One that rests after a request just ends. The request has its time.
    http_server_stop(server, SECOND, false);
    options.header_timeout_ns = options.body_timeout_ns = 60 * SECOND;
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "GET", "/echo", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 0);
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(clients_that_do_not_read_end) {
    options.write_timeout_ns = SECOND / 5;
    start();
    int descriptor = client_connect(http_server_port(server));
    int small = 4096;
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int i = 0; i < 500; i++)
        client_send_text(descriptor, "GET /large HTTP/1.1\r\nHost: t\r\n\r\n");
    usleep(10000);
    for (int i = 0; http_server_connections(server) > 0 && i < 3000; i++)
        usleep(10000);
    ck_assert_uint_eq(http_server_connections(server), 0);
    close(descriptor);
}
END_TEST

// -- answers that come later --------------------------------------------------------------------

static struct http_exchange *wait_resting(void) {
    struct http_exchange *exchange = NULL;
    EVENTUALLY((exchange = atomic_exchange(&resting, NULL)) != NULL);
    return exchange;
}

START_TEST(a_resting_request_holds_up_nobody) {
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "POST", "/rest", "", "x", 1);
    struct http_exchange *exchange = wait_resting();
    // There is one thread.
    struct answer answer = ask("GET", "/echo", "", NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    resting_response->status = 202;
    buffer_append_text(&resting_response->body, "at last");
    http_answer(exchange);
    answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 202);
    ck_assert_str_eq(answer.body, "at last");
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(a_client_that_left_is_no_harm) {
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "POST", "/rest", "", "x", 1);
    struct http_exchange *exchange = wait_resting();
    close(descriptor);
    http_answer(exchange);
    struct answer answer = ask("GET", "/echo", "", NULL);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
}
END_TEST

// What only waits for its answer takes no room from requests that are being read.
START_TEST(resting_requests_hold_no_bodies) {
    enum { RESTING = 5, SIZE = 200000 };
    options.max_pending_bytes = 2 * SIZE;
    start();
    char *body = calloc(1, SIZE);
    int clients[RESTING];
    struct http_exchange *exchanges[RESTING];
    for (int i = 0; i < RESTING; i++) {
        clients[i] = client_connect(http_server_port(server));
        client_request(clients[i], "POST", "/rest", "", body, SIZE);
        exchanges[i] = wait_resting();
    }
    for (int i = 0; i < RESTING; i++) {
        http_answer(exchanges[i]);
        struct answer answer = client_answer(clients[i], false);
        ck_assert_int_eq(answer.status, 200);
        answer_free(&answer);
        close(clients[i]);
    }
    free(body);
}
END_TEST

static void *answer_soon(void *exchange) {
    usleep(200000);
    http_answer(exchange);
    return NULL;
}

START_TEST(stop_waits_for_answers) {
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "POST", "/rest", "", "x", 1);
    pthread_t thread;
    pthread_create(&thread, NULL, answer_soon, wait_resting());
    http_server_stop(server, 10 * SECOND, false);
    server = NULL;
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
    close(descriptor);
    pthread_join(thread, NULL);
}
END_TEST

// -- endpoints ----------------------------------------------------------------------------------

START_TEST(endpoint_texts) {
    static const char *const right[] = {"127.0.0.1:4318", "[::1]:0", "localhost:65535",
                                        "unix:/run/x.sock", "0.0.0.0:1"};
    static const char *const wrong[] = {
        "",      "4318",    ":4318", "host:",  "host:65536",     "host:12x", "::1:80",
        "[::1]", "[::1:80", "unix:", "unix:x", "http://host:80", "ho st:80", "host:999999"};
    struct endpoint endpoint;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        ck_assert_msg(endpoint_parse(right[i], &endpoint) == NULL, "%s", right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(endpoint_parse(wrong[i], &endpoint) != NULL, "%s", wrong[i]);
    ck_assert_ptr_null(endpoint_parse("[fe80::1]:80", &endpoint));
    ck_assert_str_eq(endpoint.host, "fe80::1");
    ck_assert_uint_eq(endpoint.port, 80);
    ck_assert(!endpoint_is_loopback(&endpoint));
    ck_assert_ptr_null(endpoint_parse("[::1]:80", &endpoint));
    ck_assert(endpoint_is_loopback(&endpoint));
}
END_TEST

static bool overlap(const char *one, const char *two) {
    struct endpoint a, b;
    ck_assert_ptr_null(endpoint_parse(one, &a));
    ck_assert_ptr_null(endpoint_parse(two, &b));
    ck_assert(endpoint_overlaps(&a, &b) == endpoint_overlaps(&b, &a));
    return endpoint_overlaps(&a, &b);
}

START_TEST(endpoints_that_overlap) {
    ck_assert(overlap("127.0.0.1:80", "127.0.0.1:80"));
    ck_assert(overlap("127.0.0.1:80", "0.0.0.0:80"));
    ck_assert(overlap("127.0.0.1:80", "[::]:80"));
    ck_assert(overlap("0.0.0.0:80", "[::]:80"));
    ck_assert(overlap("127.0.0.1:80", "127.1:80"));
    ck_assert(overlap("[::1]:80", "[0:0::1]:80"));
    ck_assert(overlap("localhost:80", "127.0.0.1:80"));
    ck_assert(overlap("localhost:80", "[::1]:80"));
    ck_assert(overlap("a.example:80", "0.0.0.0:80"));
    ck_assert(overlap("unix:/a", "unix:/a"));
    ck_assert(!overlap("127.0.0.1:80", "127.0.0.1:81"));
    ck_assert(!overlap("127.0.0.1:0", "127.0.0.1:0"));
    ck_assert(!overlap("127.0.0.1:80", "127.0.0.2:80"));
    ck_assert(!overlap("0.0.0.0:80", "[::1]:80"));
    ck_assert(!overlap("10.0.0.1:80", "localhost:80"));
    ck_assert(!overlap("a.example:80", "b.example:80"));
    ck_assert(!overlap("a.example:80", "10.0.0.1:80"));
    ck_assert(!overlap("unix:/a", "unix:/b"));
    ck_assert(!overlap("unix:/a", "127.0.0.1:80"));
}
END_TEST

START_TEST(a_port_that_is_taken_is_named) {
    // Another program's, as far as endpoint_listen knows.
    int foreign = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    ck_assert_int_eq(bind(foreign, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(foreign, 1), 0);
    ck_assert_int_eq(getsockname(foreign, (struct sockaddr *)&address, &size), 0);
    static char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", ntohs(address.sin_port));
    struct http_server_options second = options;
    second.endpoint = endpoint;
    struct http_server *other = NULL;
    ck_assert_int_eq(http_server_start(&other, &second, &error), STATUS_CANNOT_CREATE);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "another program already listens on port %u of 127.0.0.1",
             ntohs(address.sin_port));
    ck_assert_msg(strstr(error.message, wanted) != NULL, "%s", error.message);
    close(foreign);
    second.endpoint = "no-such-host.invalid:0";
    ck_assert_int_eq(http_server_start(&other, &second, &error), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, "no-such-host.invalid"));
}
END_TEST

// Nobody else is blamed for what this process holds; what it only keeps makes way.
START_TEST(a_port_of_our_own) {
    start();
    static char same[64], all[64];
    snprintf(same, sizeof same, "127.0.0.1:%u", http_server_port(server));
    snprintf(all, sizeof all, "0.0.0.0:%u", http_server_port(server));
    struct http_server_options second = options;
    struct http_server *other = NULL;
    const char *const endpoints[] = {same, all};
    for (int i = 0; i < 2; i++) {
        second.endpoint = endpoints[i];
        ck_assert_int_eq(http_server_start(&other, &second, &error), STATUS_CANNOT_CREATE);
        ck_assert_msg(strstr(error.message, "this culprit itself listens there already, at") !=
                          NULL,
                      "%s", error.message);
    }
    http_server_stop(server, 0, true);
    server = NULL;
    ck_assert_int_eq(http_server_start(&other, &second, &error), STATUS_OK);
    http_server_stop(other, 0, false);
    http_server_drop_kept();
}
END_TEST

START_TEST(unix_sockets) {
    const char *path = in_folder("x.sock");
    static char endpoint[256];
    snprintf(endpoint, sizeof endpoint, "unix:%s", path);
    options.endpoint = endpoint;
    // What a killed process leaves.
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    ck_assert_int_eq(bind(stale, (struct sockaddr *)&address, sizeof address), 0);
    close(stale);
    start();
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_uint_eq(about.st_mode & 0777, 0660);
    ck_assert_uint_eq(http_server_port(server), 0);
    int descriptor = client_connect_unix(path);
    client_request(descriptor, "POST", "/echo", "", "hello", 5);
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    close(descriptor);
    // One that is in use is not taken away.
    struct http_server *other = NULL;
    ck_assert_int_eq(http_server_start(&other, &options, &error), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, path));
    http_server_stop(server, 0, false);
    server = NULL;
    ck_assert_int_ne(stat(path, &about), 0);
    // Nor is a file that is no socket.
    write_file(path, "precious");
    ck_assert_int_eq(http_server_start(&other, &options, &error), STATUS_CANNOT_CREATE);
    ck_assert_int_eq(stat(path, &about), 0);
}
END_TEST

START_TEST(ipv6) {
    options.endpoint = "[::1]:0";
    options.max_connections = 1; // and more threads than that
    options.threads = 4;
    start();
    int descriptor = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons(http_server_port(server)),
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    ck_assert_int_eq(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    client_patience(descriptor);
    client_request(descriptor, "GET", "/echo", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    close(descriptor);
}
END_TEST

START_TEST(kept_sockets_refuse_nobody) {
    for (int round = 0; round < 2; round++) {
        const char *path = in_folder("k.sock");
        static char endpoint[256];
        snprintf(endpoint, sizeof endpoint, round == 0 ? "127.0.0.1:0" : "unix:%s", path);
        options.endpoint = endpoint;
        start();
        uint16_t port = http_server_port(server);
        http_server_stop(server, 0, true);
        // Between two servers a client can connect and wait.
        int descriptor = round == 0 ? client_connect(port) : client_connect_unix(path);
        client_request(descriptor, "GET", "/echo", "", NULL, 0);
        start();
        ck_assert_uint_eq(http_server_port(server), port);
        struct answer answer = client_answer(descriptor, false);
        ck_assert_int_eq(answer.status, 200);
        answer_free(&answer);
        close(descriptor);
        http_server_stop(server, 0, true);
        server = NULL;
        http_server_drop_kept();
        if (round == 1) {
            struct stat about;
            ck_assert_int_ne(stat(path, &about), 0);
        }
    }
}
END_TEST

// -- rest ----------------------------------------------------------------------------------------

// Once what was asked for is over.
static unsigned long quiet_wake_ups(int *threads) {
    unsigned long before, now = wake_ups(threads);
    do {
        before = now;
        usleep(200000);
        now = wake_ups(threads);
    } while (now != before);
    return now;
}

START_TEST(idle_listeners_sleep) {
    options.threads = 4;
    start();
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "GET", "/echo", "", NULL, 0);
    struct answer answer = client_answer(descriptor, false);
    answer_free(&answer);
    int threads;
    unsigned long before = quiet_wake_ups(&threads);
    ck_assert_int_eq(threads, 5);
    usleep(3000000);
    ck_assert_uint_le(wake_ups(&threads) - before, 1);
    close(descriptor);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_server_life");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, slow_requests_end);
    tcase_add_test(cases, clients_that_do_not_read_end);
    tcase_add_test(cases, a_resting_request_holds_up_nobody);
    tcase_add_test(cases, a_client_that_left_is_no_harm);
    tcase_add_test(cases, resting_requests_hold_no_bodies);
    tcase_add_test(cases, stop_waits_for_answers);
    tcase_add_test(cases, endpoint_texts);
    tcase_add_test(cases, endpoints_that_overlap);
    tcase_add_test(cases, a_port_that_is_taken_is_named);
    tcase_add_test(cases, a_port_of_our_own);
    tcase_add_test(cases, unix_sockets);
    tcase_add_test(cases, ipv6);
    tcase_add_test(cases, kept_sockets_refuse_nobody);
    tcase_add_test(cases, idle_listeners_sleep);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// SPDX-License-Identifier: Apache-2.0
// Streams of server-sent events: what a listener gets and when, who is dropped, how they end; and
// what a page for a browser needs of the listener: Basic authentication, Host, ETag.
#include "base/http/events.h"

#include "tests/base/http/http_server_fixture.h"

static struct http_events *events;
static atomic_int versions;

static void page(void *context, const struct http_request *request,
                 struct http_response *response) {
    static const char *const headers[] = {"X-Content-Type-Options", "nosniff", NULL};
    (void)context;
    response->headers = headers;
    snprintf(response->etag, sizeof response->etag, "v%d", atomic_load(&versions));
    if (!http_has_current(request, response->etag))
        buffer_append_text(&response->body, "the page");
}

static void events_setup(uint32_t max_listeners, uint64_t heartbeat_ns) {
    setup();
    atomic_store(&versions, 1);
    const struct http_events_options given = {.max_listeners = max_listeners,
                                              .heartbeat_ns = heartbeat_ns,
                                              .read_timeout_ns = 10 * SECOND,
                                              .retry_ms = 1500};
    ck_assert_int_eq(http_events_start(&events, &given, &error), STATUS_OK);
    options.paths[4] =
        (struct http_path){.path = "/events", .methods = "GET HEAD", .events = events};
    options.paths[5] = (struct http_path){.path = "/page", .methods = "GET HEAD", .handler = page};
    options.path_count = 6;
}

static void setup_calm(void) {
    events_setup(3, 3600 * SECOND);
}

static void setup_beating(void) {
    events_setup(3, SECOND / 50);
}

static void events_teardown(void) {
    http_server_stop(server, 0, false);
    server = NULL;
    http_events_stop(events);
    events = NULL;
    teardown();
}

static int listen_with(const char *headers) {
    int descriptor = client_connect(http_server_port(server));
    client_request(descriptor, "GET", "/events", headers, NULL, 0);
    return descriptor;
}

// Reads until `wanted` has come, and returns all that came; the frames of chunks are among it.
static const char *read_until(int descriptor, const char *wanted) {
    static char text[1 << 16];
    size_t used = 0;
    text[0] = '\0';
    while (strstr(text, wanted) == NULL) {
        ck_assert_uint_lt(used, sizeof text - 1);
        ssize_t got = recv(descriptor, text + used, sizeof text - 1 - used, 0);
        ck_assert_msg(got > 0, "no %s in: %s", wanted, text);
        used += (size_t)got;
        text[used] = '\0';
    }
    return text;
}

static void await_listeners(uint32_t wanted) {
    EVENTUALLY(http_events_listeners(events) == wanted);
}

static void await_end(int descriptor) {
    char text[4096];
    ssize_t got = 1;
    while (got > 0)
        got = recv(descriptor, text, sizeof text, 0);
    ck_assert_msg(got == 0 || errno == ECONNRESET, "%s", strerror(errno));
    close(descriptor);
}

START_TEST(messages_come_as_they_are_published) {
    start();
    int client = listen_with("");
    const char *head = read_until(client, "retry: 1500\n\n");
    ck_assert_ptr_nonnull(strstr(head, "HTTP/1.1 200"));
    ck_assert_ptr_nonnull(strstr(head, "Content-Type: text/event-stream\r\n"));
    ck_assert_ptr_nonnull(strstr(head, "Cache-Control: no-store\r\n"));
    for (int i = 0; i < 100; i++) {
        char id[16], wanted[64];
        snprintf(id, sizeof id, "n%d", i);
        http_events_publish(events, id, "page", "new");
        snprintf(wanted, sizeof wanted, "id: n%d\nevent: page\ndata: new\n\n", i);
        read_until(client, wanted);
    }
    close(client);
}
END_TEST

START_TEST(who_comes_gets_the_newest_unless_it_is_known) {
    start();
    http_events_publish(events, "a", "page", "1");
    http_events_publish(events, "b", "page", "2");
    int client = listen_with("");
    const char *text = read_until(client, "id: b\n");
    ck_assert_ptr_null(strstr(text, "id: a\n"));
    int again = listen_with("Last-Event-ID: b\r\n");
    read_until(again, "retry: 1500\n\n");
    http_events_publish(events, "c", "page", "3");
    text = read_until(again, "id: c\n");
    ck_assert_ptr_null(strstr(text, "id: b\n"));
    int old = listen_with("Last-Event-ID: a\r\n");
    read_until(old, "id: c\n");
    close(client);
    close(again);
    close(old);
}
END_TEST

START_TEST(heartbeats_come_and_who_left_is_forgotten) {
    start();
    int client = listen_with("");
    read_until(client, ":\n\n");
    await_listeners(1);
    close(client);
    await_listeners(0);
    client = listen_with("");
    read_until(client, ":\n\n");
    close(client);
}
END_TEST

START_TEST(listeners_are_bounded) {
    start();
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = listen_with("");
        read_until(clients[i], "retry:");
    }
    check_refused("GET", "/events", "", NULL, 503, "busy");
    ck_assert_uint_eq(http_events_listeners(events), 3);
    // Others are answered meanwhile, and who leaves makes room when the next one asks.
    struct answer other = ask("GET", "/page", "", NULL);
    ck_assert_int_eq(other.status, 200);
    answer_free(&other);
    close(clients[0]);
    int status = 503;
    for (int i = 0; i < 1000 && status == 503; i++) {
        int client = listen_with("");
        status = strncmp(read_until(client, "\r\n"), "HTTP/1.1 503", 12) == 0 ? 503 : 200;
        close(client);
        clock_sleep_ns(1000000);
    }
    ck_assert_int_eq(status, 200);
    close(clients[1]);
    close(clients[2]);
}
END_TEST

// On a unix socket the system says what the client has not read.
START_TEST(who_does_not_read_is_dropped) {
    const char *path = in_folder("events.sock");
    char endpoint[300];
    snprintf(endpoint, sizeof endpoint, "unix:%s", path);
    options.endpoint = endpoint;
    start();
    int client = client_connect_unix(path);
    client_request(client, "GET", "/events", "", NULL, 0);
    // Its count goes up and, without a byte being read, down again.
    EVENTUALLY(atomic_load(&statuses[200]) > 0);
    await_listeners(0);
    ck_assert_int_eq(atomic_load(&statuses[200]), 1);
    await_end(client);
}
END_TEST

START_TEST(slow_readers_get_the_newest_only) {
    start();
    int client = listen_with("");
    read_until(client, "retry:");
    // More than all buffers on the way hold: 20,000 messages of 512 bytes.
    char data[HTTP_EVENT_TEXT_MAX - 64];
    memset(data, 'x', sizeof data - 1);
    data[sizeof data - 1] = '\0';
    uint64_t before = memory_figures().live_bytes;
    for (int i = 0; i < 20000; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        http_events_publish(events, id, "page", data);
    }
    ck_assert_uint_le(memory_figures().live_bytes, before + (1 << 16));
    // It still gets the last one.
    char text[1 << 14] = "";
    size_t kept = 0;
    while (strstr(text, "id: n19999\n") == NULL) {
        // The end of what came before stays, for a message that came in two.
        size_t keep = kept < 64 ? kept : 64;
        memmove(text, text + kept - keep, keep);
        ssize_t got = recv(client, text + keep, sizeof text - 1 - keep, 0);
        ck_assert_int_gt(got, 0);
        kept = keep + (size_t)got;
        text[kept] = '\0';
    }
    close(client);
}
END_TEST

START_TEST(a_stop_ends_all_streams) {
    for (int round = 0; round < 20; round++) {
        start();
        int clients[3];
        for (int i = 0; i < 3; i++) {
            clients[i] = listen_with("");
            read_until(clients[i], "retry:");
        }
        http_events_publish(events, "x", "page", "new");
        uint64_t begun_ns = clock_monotonic_ns();
        http_server_stop(server, 100 * SECOND, false);
        server = NULL;
        ck_assert_uint_lt(clock_monotonic_ns() - begun_ns, 100 * SECOND);
        ck_assert_uint_eq(http_events_listeners(events), 0);
        for (int i = 0; i < 3; i++)
            await_end(clients[i]);
    }
}
END_TEST

static void *publish_on(void *context) {
    atomic_bool *go = context;
    for (int i = 0; atomic_load(go); i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        http_events_publish(events, id, "page", "new");
    }
    return NULL;
}

START_TEST(they_come_and_go_while_it_publishes) {
    options.threads = 2;
    start();
    atomic_bool go = true;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, publish_on, &go), 0);
    for (int i = 0; i < 100; i++) {
        int client = listen_with("");
        read_until(client, i % 2 == 0 ? "\r\n\r\n" : "HTTP/1.1");
        close(client);
    }
    int last = listen_with("");
    http_server_stop(server, 10 * SECOND, false);
    server = NULL;
    atomic_store(&go, false);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(http_events_listeners(events), 0);
    await_end(last);
}
END_TEST

START_TEST(only_get_and_head) {
    start();
    struct answer answer = ask("HEAD", "/events", "", NULL);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer_header(&answer, "Content-Type"), "text/event-stream");
    answer_free(&answer);
    ck_assert_uint_eq(http_events_listeners(events), 0);
    check_refused("POST", "/events", "", "x", 405, "method_not_allowed");
    check_refused("DELETE", "/page", "", NULL, 405, "method_not_allowed");
}
END_TEST

// -- what a page needs --------------------------------------------------------------------------

static int status_of(const char *path, const char *headers) {
    struct answer answer = ask("GET", path, headers, NULL);
    answer_free(&answer);
    return answer.status;
}

START_TEST(an_etag_saves_the_body) {
    start();
    struct answer answer = ask("GET", "/page", "", NULL);
    ck_assert_str_eq(answer_header(&answer, "ETag"), "\"v1\"");
    ck_assert_str_eq(answer_header(&answer, "X-Content-Type-Options"), "nosniff");
    ck_assert_str_eq(answer.body, "the page");
    answer_free(&answer);
    static const char *const same[] = {"\"v1\"", "W/\"v1\"", "\"v0\", \"v1\"", "*",
                                       "\"v0\" ,\t\"v1\""};
    static const char *const other[] = {"\"v0\"", "v1", "\"v11\"", "\"v\"", "", "\"v1", "W/v1"};
    char header[64];
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        snprintf(header, sizeof header, "If-None-Match: %s\r\n", same[i]);
        ck_assert_msg(status_of("/page", header) == 304, "%s", same[i]);
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        snprintf(header, sizeof header, "If-None-Match: %s\r\n", other[i]);
        ck_assert_msg(status_of("/page", header) == 200, "%s", other[i]);
    }
    atomic_store(&versions, 2);
    ck_assert_int_eq(status_of("/page", "If-None-Match: \"v1\"\r\n"), 200);
}
END_TEST

START_TEST(a_browser_shows_the_token_as_a_password) {
    options.bearer_token = "s3cret";
    start(); // not asked for Basic
    // "any:s3cret"
    ck_assert_int_eq(status_of("/page", "Authorization: Basic YW55OnMzY3JldA==\r\n"), 401);
    http_server_stop(server, 0, false);
    options.basic = true;
    start();
    struct answer answer = ask("GET", "/page", "", NULL);
    ck_assert_int_eq(answer.status, 401);
    ck_assert_str_eq(answer_header(&answer, "WWW-Authenticate"),
                     "Basic realm=\"culprit\", charset=\"UTF-8\"");
    answer_free(&answer);
    ck_assert_int_eq(status_of("/page", "Authorization: Basic YW55OnMzY3JldA==\r\n"), 200);
    ck_assert_int_eq(status_of("/page", "Authorization: basic  OnMzY3JldA==\r\n"), 200);
    ck_assert_int_eq(status_of("/page", "Authorization: Bearer s3cret\r\n"), 200);
    ck_assert_int_eq(status_of("/events", ""), 401);
    static const char *const wrong[] = {
        "Basic YW55OnMzY3JldDE=", // any:s3cret1
        "Basic YW55OnMzY3Jl",     // any:s3cre
        "Basic czNjcmV0",         // s3cret, no colon
        "Basic YW55Og==",         // any:
        "Basic",
        "Basic ",
        "Basic =",
        "Basic %%%%",
        "Basic YW55OnMzY3JldA==x",
        "Digest YW55OnMzY3JldA==",
    };
    char header[128];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(header, sizeof header, "Authorization: %s\r\n", wrong[i]);
        ck_assert_msg(status_of("/page", header) == 401, "%s", wrong[i]);
    }
    // Longer than any token is.
    char *long_one = malloc(9000);
    memset(long_one, 'A', 8999);
    memcpy(long_one, "Authorization: Basic ", 21);
    memcpy(long_one + 8996, "\r\n", 3);
    int client = client_connect(http_server_port(server));
    client_send_text(client, "GET /page HTTP/1.1\r\nHost: test\r\n");
    client_send_text(client, long_one);
    client_send_text(client, "\r\n");
    answer = client_answer(client, false);
    ck_assert_int_eq(answer.status, 401);
    answer_free(&answer);
    close(client);
    free(long_one);
}
END_TEST

static int status_for_host(const char *host) {
    int client = client_connect(http_server_port(server));
    char head[512];
    snprintf(head, sizeof head, "GET /page HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
             host);
    client_send_text(client, head);
    struct answer answer = client_answer(client, false);
    answer_free(&answer);
    close(client);
    return answer.status;
}

START_TEST(only_names_of_this_machine) {
    options.local_names = true;
    start();
    static const char *const right[] = {"localhost",  "localhost:8080", "LocalHost:1",
                                        "127.0.0.1",  "127.0.0.1:9465", "127.9.8.7:80",
                                        "[::1]:8080", "[::1]"};
    static const char *const wrong[] = {"example.org",
                                        "localhost.example.org",
                                        "example.org:80",
                                        "127.0.0.1.example.org",
                                        "128.0.0.1",
                                        "10.0.0.1:9465",
                                        "[::2]:80",
                                        "[::1",
                                        "localhost:80:80",
                                        "localhost:x",
                                        "",
                                        "127.0.0.1@example.org",
                                        "example.org#localhost",
                                        "0x7f.1",
                                        "127.1",
                                        "[::1]x"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        ck_assert_msg(status_for_host(right[i]) == 200, "%s", right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(status_for_host(wrong[i]) == 403 || status_for_host(wrong[i]) == 400, "%s",
                      wrong[i]);
    ck_assert_int_eq(status_for_host("example.org"), 403);
}
END_TEST

static TCase *case_of(const char *name, void (*before)(void)) {
    TCase *made = tcase_create(name);
    tcase_add_checked_fixture(made, before, events_teardown);
    return made;
}

int main(void) {
    Suite *suite = suite_create("http_events");
    TCase *calm = case_of("calm", setup_calm);
    tcase_add_test(calm, messages_come_as_they_are_published);
    tcase_add_test(calm, who_comes_gets_the_newest_unless_it_is_known);
    tcase_add_test(calm, listeners_are_bounded);
    tcase_add_test(calm, slow_readers_get_the_newest_only);
    tcase_add_test(calm, a_stop_ends_all_streams);
    tcase_add_test(calm, they_come_and_go_while_it_publishes);
    tcase_add_test(calm, only_get_and_head);
    tcase_add_test(calm, an_etag_saves_the_body);
    tcase_add_test(calm, a_browser_shows_the_token_as_a_password);
    tcase_add_test(calm, only_names_of_this_machine);
    suite_add_tcase(suite, calm);
    TCase *beating = case_of("beating", setup_beating);
    tcase_add_test(beating, heartbeats_come_and_who_left_is_forgotten);
    tcase_add_test(beating, who_does_not_read_is_dropped);
    suite_add_tcase(suite, beating);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// SPDX-License-Identifier: Apache-2.0
// Several clients side by side: one that is not answered holds up nobody, what becomes of a call is
// what one client alone would say, and all replies together are bounded.
#include "base/http/client_set.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tests/support/http_sink.h"

#define SECOND 1000000000ull
enum { CLIENTS = 3, REPLY_MAX = 1 << 20 };

static struct http_sink sinks[CLIENTS];
static struct http_client *clients[CLIENTS];
static struct http_client_set *set;
static struct error error;
static uint64_t live_before;
static const struct http_call GET = {.method = "GET"};

static void open_client(unsigned i, const char *url, uint64_t timeout_ns) {
    struct http_client_options options = {.url = url,
                                          .timeout_ns = timeout_ns,
                                          .reply_max = REPLY_MAX,
                                          .refuses_long_replies = true,
                                          .proxy = ""};
    ck_assert_msg(http_client_open(&clients[i], &options, &error) == STATUS_OK, "%s",
                  error.message);
}

static void begin(size_t bytes_max) {
    // libcurl's own, once.
    ck_assert_int_eq(http_client_set_open(&set, CLIENTS, bytes_max, &error), STATUS_OK);
    http_client_set_close(set);
    live_before = memory_figures().live_bytes;
    ck_assert_int_eq(http_client_set_open(&set, CLIENTS, bytes_max, &error), STATUS_OK);
}

static void finish(unsigned sink_count) {
    http_client_set_close(set);
    for (unsigned i = 0; i < CLIENTS; i++) {
        http_client_close(clients[i]);
        clients[i] = NULL;
    }
    for (unsigned i = 0; i < sink_count; i++)
        http_sink_stop(&sinks[i]);
    ck_assert_uint_eq(memory_figures().live_bytes, live_before);
}

// The next client whose call is over.
static unsigned wait_for(enum http_class *class) {
    struct http_client *client;
    uint64_t until_ns = clock_monotonic_ns() + 60 * SECOND;
    while ((client = http_client_set_next(set, class, &error)) == NULL) {
        ck_assert_msg(clock_monotonic_ns() < until_ns, "no call is over");
        http_client_set_wait(set, -1, SECOND);
    }
    unsigned i = 0;
    while (clients[i] != client)
        ck_assert_uint_lt(++i, CLIENTS);
    return i;
}

START_TEST(a_silent_one_holds_up_nobody) {
    enum http_class class;
    begin(4 * REPLY_MAX);
    http_sink_start(&sinks[0],
                    (struct sink_answer[]){{.status = 200, .body = "late", .delay_ms = 600000}}, 1);
    http_sink_start(&sinks[1],
                    (struct sink_answer[]){{.status = 200, .body = "one"},
                                           {.status = 503, .body = "busy"},
                                           {.status = 200, .body = "three"}},
                    3);
    open_client(0, sinks[0].url, 600 * SECOND);
    open_client(1, sinks[1].url, 60 * SECOND);
    http_client_set_begin(set, clients[0], &GET);
    static const char *const bodies[] = {"one", "busy", "three"};
    for (unsigned i = 0; i < 3; i++) {
        http_client_set_begin(set, clients[1], &GET);
        ck_assert_uint_eq(wait_for(&class), 1);
        ck_assert_int_eq(class, i == 1 ? HTTP_RETRY : HTTP_OK);
        const struct http_reply *reply = http_client_reply(clients[1]);
        ck_assert(slice_equal(buffer_slice(&reply->body), slice_of(bodies[i])));
        if (i == 1)
            ck_assert_msg(strstr(error.message, "answers 503: busy") != NULL, "%s", error.message);
    }
    // The first one's call is given up.
    finish(2);
}
END_TEST

START_TEST(calls_that_fail) {
    enum http_class class;
    begin(4 * REPLY_MAX);
    http_sink_start(&sinks[0], (struct sink_answer[]){{.status = 0}}, 1);
    open_client(0, sinks[0].url, 60 * SECOND);
    open_client(1, "http://127.0.0.1:1/", 60 * SECOND);
    static const struct http_call wrong = {.method = "GET", .url = "ftp://nowhere/"};
    open_client(2, "http://127.0.0.1:1/", 60 * SECOND);
    http_client_set_begin(set, clients[0], &GET);
    http_client_set_begin(set, clients[1], &GET);
    http_client_set_begin(set, clients[2], &wrong);
    // One that cannot even begin is over at once.
    ck_assert_uint_eq(wait_for(&class), 2);
    ck_assert_int_eq(class, HTTP_DEAD);
    ck_assert_msg(strstr(error.message, "must begin with") != NULL, "%s", error.message);
    unsigned seen = 0;
    for (unsigned i = 0; i < 2; i++) {
        seen |= 1u << wait_for(&class);
        ck_assert_int_eq(class, HTTP_RETRY);
        ck_assert_str_ne(error.message, "");
    }
    ck_assert_uint_eq(seen, 3);
    finish(1);
}
END_TEST

START_TEST(half_a_reply_and_one_beyond_the_bound) {
    enum http_class class;
    static char large[600 << 10];
    memset(large, 'x', sizeof large - 1);
    begin(1000 << 10);
    struct sink_answer half = {.status = 200, .body = large, .claimed_size = sizeof large + 1000};
    http_sink_start(&sinks[0], &half, 1);
    open_client(0, sinks[0].url, 60 * SECOND);
    http_client_set_begin(set, clients[0], &GET);
    ck_assert_uint_eq(wait_for(&class), 0);
    ck_assert_int_eq(class, HTTP_OK);
    ck_assert(!http_client_reply(clients[0])->whole);
    ck_assert_uint_eq(http_client_reply(clients[0])->body.size, sizeof large - 1);
    // Its memory can be lent; what it held is the borrower's.
    struct buffer body;
    buffer_init(&body, REPLY_MAX);
    http_client_swap_body(clients[0], &body);
    ck_assert_uint_eq(body.size, sizeof large - 1);
    ck_assert_uint_eq(http_client_reply(clients[0])->body.size, 0);
    buffer_release(&body);
    finish(1);
    // Less than one reply: none gets through.
    begin(100 << 10);
    http_sink_start(&sinks[0], (struct sink_answer[]){{.status = 200, .body = large}}, 1);
    open_client(0, sinks[0].url, 60 * SECOND);
    http_client_set_begin(set, clients[0], &GET);
    ck_assert_uint_eq(wait_for(&class), 0);
    ck_assert_int_eq(class, HTTP_RETRY);
    ck_assert(http_client_reply(clients[0])->body.failed);
    finish(1);
}
END_TEST

START_TEST(a_descriptor_ends_the_wait) {
    int ends[2];
    begin(REPLY_MAX);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    http_client_set_wait(set, ends[0], 600 * SECOND);
    close(ends[0]);
    close(ends[1]);
    finish(0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_client_set");
    TCase *cases = tcase_create("http_client_set");
    tcase_add_test(cases, a_silent_one_holds_up_nobody);
    tcase_add_test(cases, calls_that_fail);
    tcase_add_test(cases, half_a_reply_and_one_beyond_the_bound);
    tcase_add_test(cases, a_descriptor_ends_the_wait);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

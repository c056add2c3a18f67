// SPDX-License-Identifier: Apache-2.0
// How the listener takes connections: many at once, no more than its bounds, none for a while, and
// stops while clients come.
#include "tests/base/http/http_server_fixture.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// -- several at once ----------------------------------------------------------------------------

static void *hammer(void *context) {
    (void)context;
    int descriptor = client_connect(http_server_port(server));
    char *body = calloc(1, 100000);
    for (int i = 0; i < 100; i++) {
        client_request(descriptor, "POST", "/echo", "", body, (size_t)(i * 1000));
        struct answer answer = client_answer(descriptor, false);
        ck_assert_int_eq(answer.status, 200);
        answer_free(&answer);
    }
    free(body);
    close(descriptor);
    return NULL;
}

START_TEST(many_at_once) {
    options.threads = 4;
    start();
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, hammer, NULL);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&handled), 1600);
}
END_TEST

// -- bounds ---------------------------------------------------------------------------------------

START_TEST(connections_are_bounded) {
    options.max_connections = 4;
    options.max_connections_per_address = 2;
    start();
    uint16_t port = http_server_port(server);
    int first = client_connect(port), second = client_connect(port);
    client_request(first, "GET", "/echo", "", NULL, 0);
    client_request(second, "GET", "/echo", "", NULL, 0);
    struct answer answer = client_answer(first, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    answer = client_answer(second, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
    int third = client_connect(port);
    client_request(third, "GET", "/echo", "", NULL, 0);
    answer = client_answer(third, false);
    ck_assert_int_eq(answer.status, 0);
    answer_free(&answer);
    close(first);
    close(second);
    close(third);
}
END_TEST

// -- when none can be taken -----------------------------------------------------------------------

static atomic_uint accept_calls;

// In place of the C library's: the listener's calls are counted.
int accept4(int descriptor, struct sockaddr *address, socklen_t *size, int flags) {
    atomic_fetch_add(&accept_calls, 1);
    return (int)syscall(SYS_accept4, descriptor, address, size, flags);
}

static void check_answered(int descriptor) {
    struct answer answer = client_answer(descriptor, false);
    ck_assert_int_eq(answer.status, 200);
    answer_free(&answer);
}

// The bound is one of all threads together. Who is beyond it waits, and is not refused.
START_TEST(who_is_beyond_the_bound_waits) {
    enum { BOUND = 6, CLIENTS = 60 };
    options.max_connections = BOUND;
    options.threads = 4;
    start();
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect(http_server_port(server));
        client_request(clients[i], "GET", "/echo", "", NULL, 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        check_answered(clients[i]);
        ck_assert_uint_le(http_server_connections(server), BOUND);
        close(clients[i]);
    }
    ck_assert_int_eq(atomic_load(&handled), CLIENTS);
}
END_TEST

START_TEST(clients_wait_while_there_are_no_descriptors) {
    enum { LIMIT = 256 };
    int taken[LIMIT], count = 0, client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct rlimit few = {LIMIT, LIMIT};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    start();
    while ((taken[count] = dup(client)) >= 0)
        ck_assert_int_lt(++count, LIMIT);
    ck_assert_int_eq(errno, EMFILE);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    client_patience(client);
    client_request(client, "GET", "/echo", "", NULL, 0);
    uint64_t since_ns = clock_monotonic_ns();
    unsigned before = atomic_load(&accept_calls);
    usleep(300000);
    ck_assert_int_eq(atomic_load(&handled), 0);
    // Ten times a second it is tried again, and no more.
    unsigned calls = atomic_load(&accept_calls) - before;
    ck_assert_uint_le(calls, (clock_monotonic_ns() - since_ns) * 10 / SECOND + 2);
    while (count > 0)
        close(taken[--count]);
    check_answered(client);
    close(client);
}
END_TEST

// -- stops under load -----------------------------------------------------------------------------

static atomic_bool clients_end;
static uint16_t clients_port;

static void *come_and_go(void *answered_count) {
    while (!atomic_load(&clients_end)) {
        int descriptor = client_connect(clients_port);
        client_request(descriptor, "GET", "/echo", "", NULL, 0);
        struct answer answer = client_answer(descriptor, false);
        ck_assert(answer.status == 200 || answer.status == 0);
        atomic_fetch_add((atomic_uint *)answered_count, answer.status == 200);
        answer_free(&answer);
        close(descriptor);
    }
    return NULL;
}

// Where libmicrohttpd listened itself, one such stop in some 600 ended the process.
START_TEST(stops_while_clients_come) {
    enum { CLIENTS = 4, STOPS = 300 };
    pthread_t clients[CLIENTS];
    atomic_uint answered_count = 0;
    options.threads = 4;
    atomic_store(&clients_end, false);
    start();
    clients_port = http_server_port(server);
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_create(&clients[i], NULL, come_and_go, &answered_count), 0);
    for (int i = 0; i < STOPS; i++) {
        unsigned before = atomic_load(&answered_count);
        for (int j = 0; j < 10000 && atomic_load(&answered_count) < before + 4; j++)
            usleep(100);
        http_server_stop(server, SECOND, true);
        start();
        ck_assert_uint_eq(http_server_port(server), clients_port);
    }
    atomic_store(&clients_end, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    ck_assert_uint_ge(atomic_load(&answered_count), STOPS);
    http_server_stop(server, SECOND, true);
    server = NULL;
    http_server_drop_kept();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_server_connections");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, connections_are_bounded);
    tcase_add_test(cases, many_at_once);
    tcase_add_test(cases, who_is_beyond_the_bound_waits);
    tcase_add_test(cases, clients_wait_while_there_are_no_descriptors);
    tcase_add_test(cases, stops_while_clients_come);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

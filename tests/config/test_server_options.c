// SPDX-License-Identifier: Apache-2.0
// The options that listeners share: what is told of those that do not fit together.
#include "config/server_options.h"

#include <check.h>
#include <stdlib.h>

static struct arena arena;
static struct problem_list problems;

static void setup(void) {
    arena_init(&arena, 4096);
    problem_list_init(&problems, &arena);
}

static void teardown(void) {
    arena_release(&arena);
}

static void check_endpoint(const char *endpoint, const char *said) {
    problem_list_init(&problems, &arena);
    endpoint_check(endpoint, "endpoint", &problems);
    ck_assert_uint_eq(problems.count, said == NULL ? 0 : 1);
    if (said != NULL) {
        ck_assert_str_eq(problems.items[0].key, "endpoint");
        ck_assert_msg(strstr(problems.items[0].text, said) != NULL, "%s", problems.items[0].text);
    }
}

START_TEST(endpoints) {
    check_endpoint("127.0.0.1:4318", NULL);
    check_endpoint("[::]:4318", NULL);
    check_endpoint("unix:/run/culprit.sock", NULL);
    check_endpoint("4318", "4318 is a port without a host; write \"127.0.0.1:4318\" for");
    check_endpoint("localhost", "the port is missing");
    check_endpoint("host:70000", "0 to 65535");
    check_endpoint("::1:4318", "[ADDRESS]:PORT");
    check_endpoint("unix:run", "slash");
    check_endpoint(NULL, "empty");
}
END_TEST

START_TEST(local_endpoints) {
    ck_assert(endpoint_is_local("127.0.0.1:4318"));
    ck_assert(endpoint_is_local("127.8.0.1:4318"));
    ck_assert(endpoint_is_local("localhost:0"));
    ck_assert(endpoint_is_local("[::1]:1"));
    ck_assert(endpoint_is_local("unix:/x"));
    ck_assert(!endpoint_is_local("0.0.0.0:4318"));
    ck_assert(!endpoint_is_local("[::]:4318"));
    ck_assert(!endpoint_is_local("example.org:4318"));
    ck_assert(!endpoint_is_local("nonsense"));
}
END_TEST

static void check_security(struct tls_server_config tls, struct auth_server_config auth,
                           const char *key) {
    problem_list_init(&problems, &arena);
    server_security_check(&tls, &auth, &problems);
    ck_assert_uint_eq(problems.count, key == NULL ? 0 : 1);
    if (key != NULL)
        ck_assert_str_eq(problems.items[0].key, key);
}

START_TEST(what_does_not_fit_together) {
    struct tls_server_config no_tls = {.cert_file = NULL};
    struct auth_server_config no_auth = {.bearer_token_file = NULL};
    check_security(no_tls, no_auth, NULL);
    check_security((struct tls_server_config){"c", "k", NULL}, no_auth, NULL);
    check_security((struct tls_server_config){"c", "k", "a"}, no_auth, NULL);
    check_security((struct tls_server_config){"c", NULL, NULL}, no_auth, "tls.cert_file");
    check_security((struct tls_server_config){NULL, "k", NULL}, no_auth, "tls.key_file");
    check_security((struct tls_server_config){NULL, NULL, "a"}, no_auth, "tls.client_ca_file");
    check_security((struct tls_server_config){"c", "", NULL}, no_auth, "tls.key_file");
    check_security(no_tls, (struct auth_server_config){{"t"}, NULL}, NULL);
    check_security(no_tls, (struct auth_server_config){{NULL}, "f"}, NULL);
    check_security(no_tls, (struct auth_server_config){{"t"}, "f"}, "auth.bearer_token_file");
    check_security(no_tls, (struct auth_server_config){{""}, NULL}, "auth.bearer_token");
    check_security(no_tls, (struct auth_server_config){{"a b"}, NULL}, "auth.bearer_token");
    check_security(no_tls, (struct auth_server_config){{NULL}, ""}, "auth.bearer_token_file");
}
END_TEST

// A token must not stand in what is told of it.
START_TEST(tokens_are_not_told) {
    problem_list_init(&problems, &arena);
    struct tls_server_config tls = {.cert_file = NULL};
    struct auth_server_config auth = {{"hush hush"}, "f"};
    server_security_check(&tls, &auth, &problems);
    ck_assert_uint_eq(problems.count, 2);
    for (uint32_t i = 0; i < problems.count; i++)
        ck_assert_ptr_null(strstr(problems.items[i].text, "hush"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("server_options");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, endpoints);
    tcase_add_test(cases, local_endpoints);
    tcase_add_test(cases, what_does_not_fit_together);
    tcase_add_test(cases, tokens_are_not_told);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

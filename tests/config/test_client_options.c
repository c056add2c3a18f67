// SPDX-License-Identifier: Apache-2.0
// The options that HTTP clients share: what does not fit together, and what is handed on.
#include "config/client_options.h"

#include <check.h>
#include <stdlib.h>

static struct arena arena;
static struct problem_list problems;

static void setup(void) {
    arena_init(&arena, 4096);
}

static void teardown(void) {
    arena_release(&arena);
}

static void check(struct http_client_config config, const char *key) {
    if (config.endpoint == NULL)
        config.endpoint = "https://example.org/hush";
    problem_list_init(&problems, &arena);
    http_client_check(&config, &problems);
    ck_assert_uint_eq(problems.count, key == NULL ? 0 : 1);
    if (key == NULL)
        return;
    ck_assert_str_eq(problems.items[0].key, key);
    ck_assert_ptr_null(strstr(problems.items[0].text, "hush"));
}

static struct http_client_config with_header(const char *const *line) {
    return (struct http_client_config){.headers = {line, 1}};
}

START_TEST(what_does_not_fit_together) {
    check((struct http_client_config){.proxy_url = NULL}, NULL);
    check((struct http_client_config){.endpoint = "ftp://hush"}, "endpoint");
    check((struct http_client_config){.endpoint = "https://hush:hush@host/"}, "endpoint");
    check((struct http_client_config){.tls = {.cert_file = "c", .key_file = "k"}}, NULL);
    check((struct http_client_config){.tls = {.cert_file = "c"}}, "tls.cert_file");
    check((struct http_client_config){.tls = {.key_file = "k"}}, "tls.key_file");
    check((struct http_client_config){.auth = {{"t"}, NULL}}, NULL);
    check((struct http_client_config){.auth = {{NULL}, "f"}}, NULL);
    check((struct http_client_config){.auth = {{"t"}, "f"}}, "auth.bearer_token_file");
    check((struct http_client_config){.auth = {{""}, NULL}}, "auth.bearer_token");
    check((struct http_client_config){.auth = {{"hush hush"}, NULL}}, "auth.bearer_token");
    check(with_header((const char *[]){"X-Key: hush"}), NULL);
    check(with_header((const char *[]){"X-Key"}), "headers");
    check(with_header((const char *[]){": x"}), "headers");
    check(with_header((const char *[]){"X-Key: a\nhush: b"}), "headers");
}
END_TEST

START_TEST(options_of_the_client) {
    static const char *const lines[] = {"A: b"};
    struct http_client_config config = {.endpoint = "https://example.org/",
                                        .headers = {lines, 1},
                                        .proxy_url = "http://proxy",
                                        .tls = {.ca_file = "ca", .insecure_skip_verify = true},
                                        .auth = {{"token"}, NULL}};
    struct http_client_options options =
        http_client_options_of(&config, (struct duration){5000000000}, 4096);
    ck_assert_str_eq(options.url, "https://example.org/");
    ck_assert_str_eq(options.headers[0], "A: b");
    ck_assert_uint_eq(options.header_count, 1);
    ck_assert_str_eq(options.proxy, "http://proxy");
    ck_assert_str_eq(options.tls.ca_file, "ca");
    ck_assert(options.tls.insecure_skip_verify);
    ck_assert_str_eq(options.bearer_token, "token");
    ck_assert_uint_eq(options.timeout_ns, 5000000000);
    ck_assert_uint_eq(options.reply_max, 4096);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("client_options");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, what_does_not_fit_together);
    tcase_add_test(cases, options_of_the_client);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/text/redact.h"

#include "base/status.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *redacted(const char *given) {
    static char text[256];
    snprintf(text, sizeof text, "%s", given);
    redact_urls(text, sizeof text);
    return text;
}

START_TEST(urls) {
    static const char *const cases[][2] = {
        {"", ""},
        {"https://api.wandb.ai", "https://api.wandb.ai"},
        {"https://me:pass@host/x", "https://[REDACTED]@host/x"},
        {"https://me@host", "https://[REDACTED]@host"},
        {"a \"http://u:p@h:1/\" and ftp://:x@y.",
         "a \"http://[REDACTED]@h:1/\" and ftp://[REDACTED]@y."},
        {"http://u:p@q@h/", "http://[REDACTED]@h/"},
        {"http://u:p/a?s#s@h:80/x", "http://[REDACTED]@h:80/x"},
        {"https://host/a@b", "https://host/a@b"},
        {"https://host:8080/a@b", "https://host:8080/a@b"},
        {"https://[::1]:80/a@b", "https://[::1]:80/a@b"},
        {"http://host and me@home", "http://host and me@home"},
        {"http://@host", "http://@host"},
        {"://", "://"},
        {"https://[REDACTED]@host", "https://[REDACTED]@host"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(redacted(cases[i][0]), cases[i][1]);
}
END_TEST

START_TEST(addresses_without_a_scheme) {
    size_t at = 0;
    struct slice user;
    ck_assert(redact_find(SLICE("me:pass@proxy:3128"), true, &at, &user));
    ck_assert(slice_equal(user, SLICE("me:pass")));
    ck_assert(!redact_find(SLICE("me:pass@proxy:3128"), true, &at, &user));
    at = 0;
    ck_assert(!redact_find(SLICE("127.0.0.1:80"), true, &at, &user));
    at = 0;
    ck_assert(!redact_find(SLICE("me:pass@proxy:3128"), false, &at, &user));
    at = 0;
    ck_assert(redact_find(SLICE("http://me:pass@proxy"), true, &at, &user));
    ck_assert(slice_equal(user, SLICE("me:pass")));
}
END_TEST

START_TEST(small_buffers) {
    for (size_t capacity = 12; capacity < 40; capacity++) {
        char text[64] = "x", guard = 'g';
        snprintf(text, capacity, "http://u:p@h/abc");
        text[capacity] = guard;
        redact_urls(text, capacity);
        ck_assert_uint_lt(strlen(text), capacity);
        ck_assert_int_eq(text[capacity], guard);
        ck_assert_ptr_null(strstr(text, "u:p"));
    }
}
END_TEST

START_TEST(secrets) {
    char text[256] =
        "you sent 0123456789abcdef, I know 456789abX and 0123456 and 0123456789abcdef0123";
    redact_secret(text, sizeof text, "0123456789abcdef");
    ck_assert_str_eq(text,
                     "you sent [REDACTED], I know [REDACTED]X and 0123456 and [REDACTED]0123");
    char same[64] = "it is abc, abcabc";
    redact_secret(same, sizeof same, "abc");
    ck_assert_str_eq(same, "it is [REDACTED], [REDACTED][REDACTED]");
    redact_secret(same, sizeof same, NULL);
    redact_secret(same, sizeof same, "");
    ck_assert_str_eq(same, "it is [REDACTED], [REDACTED][REDACTED]");
}
END_TEST

START_TEST(errors_hold_none) {
    struct error error;
    error_set(&error, STATUS_CONFIG, "%s is wrong", "https://me:pass@host");
    ck_assert_str_eq(error.message, "https://[REDACTED]@host is wrong");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("redact");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, urls);
    tcase_add_test(cases, addresses_without_a_scheme);
    tcase_add_test(cases, small_buffers);
    tcase_add_test(cases, secrets);
    tcase_add_test(cases, errors_hold_none);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

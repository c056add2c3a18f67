// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <check.h>
#include <errno.h>
#include <string.h>

START_TEST(message_and_status) {
    struct error error = {0};
    ck_assert_int_eq(error_set(&error, STATUS_CONFIG, "%s is %d, which is not 1 to 9.", "x", 12),
                     STATUS_CONFIG);
    ck_assert_int_eq(error.status, STATUS_CONFIG);
    ck_assert_str_eq(error.message, "x is 12, which is not 1 to 9.");
    ck_assert_int_eq(error_set(NULL, STATUS_BUG, "nobody listens"), STATUS_BUG);
    ck_assert_int_eq(error_set_os(NULL, STATUS_IO, ENOENT, "nobody listens"), STATUS_NOT_FOUND);
}
END_TEST

START_TEST(long_messages_are_cut) {
    struct error error;
    char words[2 * ERROR_MESSAGE_MAX + 1] = "";
    while (strlen(words) + strlen("10.0.0.12:17567 ") < sizeof words)
        strcat(words, "10.0.0.12:17567 ");
    error_set(&error, STATUS_IO, "%s", words);
    ck_assert_uint_lt(strlen(error.message), ERROR_MESSAGE_MAX);
    ck_assert_str_eq(strrchr(error.message, '1'), "17567 \xe2\x80\xa6");
    // The reason is what matters.
    error_set_os(&error, STATUS_IO, EIO, "%s", words);
    ck_assert_uint_lt(strlen(error.message), ERROR_MESSAGE_MAX);
    ck_assert_str_eq(strrchr(error.message, '1'), "17567 \xe2\x80\xa6: Input/output error");
    error_set_os(&error, STATUS_IO, EIO, "%0*d", ERROR_MESSAGE_MAX - 4, 1);
    ck_assert_uint_lt(strlen(error.message), ERROR_MESSAGE_MAX);
    ck_assert_ptr_nonnull(strstr(error.message, ": Input/output error"));
}
END_TEST

struct os_case {
    int os_error;
    enum status status;
};
static const struct os_case os_cases[] = {
    {ENOENT, STATUS_NOT_FOUND}, {ENOTDIR, STATUS_NOT_FOUND}, {EACCES, STATUS_DENIED},
    {EPERM, STATUS_DENIED},     {EIO, STATUS_CANNOT_CREATE}, {ENOSPC, STATUS_CANNOT_CREATE},
};

START_TEST(errno_chooses) {
    struct error error;
    ck_assert_int_eq(
        error_set_os(&error, STATUS_CANNOT_CREATE, os_cases[_i].os_error, "open %s", "a.yaml"),
        os_cases[_i].status);
    ck_assert_int_eq(error.status, os_cases[_i].status);
    char expected[128] = "open a.yaml: ";
    strcat(expected, strerror(os_cases[_i].os_error));
    ck_assert_str_eq(error.message, expected);
}
END_TEST

START_TEST(exit_codes) {
    static const int codes[] = {
        [STATUS_OK] = 0,
        [STATUS_USAGE] = 64,
        [STATUS_CONFIG] = 78,
        [STATUS_BAD_DATA] = 65,
        [STATUS_NOT_FOUND] = 66,
        [STATUS_DENIED] = 77,
        [STATUS_CANNOT_CREATE] = 73,
        [STATUS_IO] = 74,
        [STATUS_AGAIN] = 75,
        [STATUS_OS] = 71,
        [STATUS_LIMIT] = 65,
        [STATUS_STOPPED] = 0,
        [STATUS_DIFFERS] = 1,
        [STATUS_BUG] = 70,
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        ck_assert_int_eq(status_exit_code((enum status)i), codes[i]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("status");
    TCase *cases = tcase_create("status");
    tcase_add_test(cases, message_and_status);
    tcase_add_test(cases, long_messages_are_cut);
    tcase_add_loop_test(cases, errno_chooses, 0, 6);
    tcase_add_test(cases, exit_codes);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

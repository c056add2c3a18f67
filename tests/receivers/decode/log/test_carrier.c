// SPDX-License-Identifier: Apache-2.0
// What a service says of a link several times in one second of syslog is no copy; what the kernel
// says is.
#include "receivers/decode/log/log.h"
#include "tests/receivers/decode/observed.h"

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static uint32_t count(const char *text, const char *wanted) {
    uint32_t found = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++)
        found++;
    return found;
}

#define LOST "Mar 17 06:18:06 vm-0 systemd-networkd[5398]: ib6: Lost carrier\n"
#define DOWN "Mar 17 06:18:06 vm-0 kernel: mlx5_core 0000:5c:00.0 ib6: Link down\n"

START_TEST(each_counts) {
    const struct observed *observed = observed_lines(&decoder_log, SLICE(LOST LOST LOST));
    ck_assert_uint_eq(count(observed->text, " nic_link "), 3);
    ck_assert_uint_eq(count(observed->text, " nic_link @1773728286000000000 "), 1);
    ck_assert_uint_eq(count(observed->text, " nic_link @1773728286000002000 "), 1);
}
END_TEST

START_TEST(copies_do_not) {
    const struct observed *observed = observed_lines(&decoder_log, SLICE(DOWN DOWN));
    ck_assert_uint_eq(count(observed->text, " nic_link "), 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("carrier");
    TCase *tcase = tcase_create("carrier");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, each_counts);
    tcase_add_test(tcase, copies_do_not);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

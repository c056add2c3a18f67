// SPDX-License-Identifier: Apache-2.0
// hbm_ecc over its golden cases, from their lines to its verdicts.
#include "processors/hbm_ecc.h"
#include "tests/support/detector_golden.h"

static const char *const CASES[] = {
    "contained_error_remap_pending",
    "partial_counters_only",
    "remap_failure_replace",
    "negative_old_counts_and_driver_reload",
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

static void teardown(void) {
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(golden) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/golden/detectors/hbm_ecc/%s", TESTS_DIR, CASES[_i]);
    golden_judge(&processor_hbm_ecc, folder, true);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("golden_hbm_ecc");
    TCase *cases = tcase_create("golden");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, golden, 0, CASE_COUNT);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

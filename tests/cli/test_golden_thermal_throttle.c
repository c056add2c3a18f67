// SPDX-License-Identifier: Apache-2.0
// thermal_throttle over its golden cases, from their lines to its verdicts.
#include "processors/thermal_throttle.h"
#include "tests/support/detector_golden.h"

static const char *const CASES[] = {
    "negative_power_and_idle",
    "one_gpu_hw_thermal",
    "partial_counter_only",
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

static void teardown(void) {
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(golden) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/golden/detectors/thermal_throttle/%s", TESTS_DIR,
             CASES[_i]);
    golden_judge(&processor_thermal_throttle, folder, true);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("golden_thermal_throttle");
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

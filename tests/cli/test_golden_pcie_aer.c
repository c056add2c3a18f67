// SPDX-License-Identifier: Apache-2.0
// pcie_aer over its golden cases, from their lines to its verdicts.
#include "processors/pcie_aer.h"
#include "tests/support/detector_golden.h"

static const char *const CASES[] = {
    "correctable_storm",
    "fatal_then_off_the_bus",
    "negative_rare_and_masked",
    "partial_port_report_only",
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

static void teardown(void) {
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(golden) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/golden/detectors/pcie_aer/%s", TESTS_DIR, CASES[_i]);
    golden_judge(&processor_pcie_aer, folder, true);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("golden_pcie_aer");
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

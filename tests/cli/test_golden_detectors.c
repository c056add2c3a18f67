// SPDX-License-Identifier: Apache-2.0
// Each detector over its golden cases, from their lines to its verdicts: every folder below
// golden/detectors/DETECTOR is one.
#include "processors/hbm_ecc.h"
#include "processors/nccl_hang.h"
#include "processors/pcie_aer.h"
#include "processors/pod_evicted.h"
#include "processors/thermal_throttle.h"
#include "processors/xid_correlation.h"
#include "tests/support/detector_golden.h"

#include <dirent.h>

static const char PLACE[] = TESTS_DIR "/golden/detectors";

static const struct component_type *const DETECTORS[] = {
    &processor_hbm_ecc,     &processor_nccl_hang,        &processor_pcie_aer,
    &processor_pod_evicted, &processor_thermal_throttle, &processor_xid_correlation,
};
enum { DETECTOR_COUNT = sizeof DETECTORS / sizeof *DETECTORS };

// Entries of a dump as they change: their order counts.
static const char IN_ORDER[] = "negative_slow_then_completed";

static void teardown(void) {
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static int is_named(const struct dirent *entry) {
    return strchr(entry->d_name, '.') == NULL;
}

static int folders(const char *place, struct dirent ***found) {
    int count = scandir(place, found, is_named, alphasort);
    ck_assert_msg(count > 0, "there is nothing in %s", place);
    return count;
}

START_TEST(golden) {
    const struct component_type *type = DETECTORS[_i];
    char place[1024], folder[1300];
    snprintf(place, sizeof place, "%s/%s", PLACE, type->name);
    struct dirent **cases;
    int count = folders(place, &cases);
    for (int i = 0; i < count; i++) {
        snprintf(folder, sizeof folder, "%s/%s", place, cases[i]->d_name);
        golden_judge(type, folder, strcmp(cases[i]->d_name, IN_ORDER) != 0);
        free(cases[i]);
    }
    free(cases);
}
END_TEST

// `incident` has a suite of its own.
START_TEST(no_folder_is_left_out) {
    struct dirent **found;
    int count = folders(PLACE, &found);
    for (int i = 0; i < count; i++) {
        bool known = strcmp(found[i]->d_name, "incident") == 0;
        for (size_t j = 0; j < DETECTOR_COUNT; j++)
            known = known || strcmp(found[i]->d_name, DETECTORS[j]->name) == 0;
        ck_assert_msg(known, "no detector is tested with %s", found[i]->d_name);
        free(found[i]);
    }
    ck_assert_int_eq(count, DETECTOR_COUNT + 1);
    free(found);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("golden_detectors");
    TCase *cases = tcase_create("golden");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, golden, 0, DETECTOR_COUNT);
    tcase_add_test(cases, no_folder_is_left_out);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Each detector over its golden cases, from their lines to its verdicts: every folder below
// golden/detectors/DETECTOR is one.
#include "cli/component_list.h"
#include "tests/support/detector_golden.h"

#include <dirent.h>
#include <unistd.h>

static const char PLACE[] = TESTS_DIR "/golden/detectors";

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

// Of one detector, whose name is that of the folder. `incident` has a suite of its own.
static void judge_folder(const char *name) {
    char place[1024], folder[1300];
    const struct component_type *type =
        component_find(component_list(), COMPONENT_PROCESSOR, slice_of(name));
    ck_assert_msg(type != NULL, "no detector is tested with %s", name);
    snprintf(place, sizeof place, "%s/%s", PLACE, name);
    struct dirent **cases;
    int count = folders(place, &cases);
    for (int i = 0; i < count; i++) {
        snprintf(folder, sizeof folder, "%s/%s", place, cases[i]->d_name);
        golden_judge(type, folder, strcmp(cases[i]->d_name, IN_ORDER) != 0);
        free(cases[i]);
    }
    free(cases);
}

// The names of the folders, of which each is a test.
static struct dirent **found;

START_TEST(golden) {
    if (strcmp(found[_i]->d_name, "incident") != 0)
        judge_folder(found[_i]->d_name);
}
END_TEST

// Every processor that gives verdicts by a pattern of its own has cases, but for the memory ones,
// whose cases are stormlog's.
START_TEST(no_detector_is_left_out) {
    struct component_set set = component_list();
    for (size_t i = 0; i < set.count; i++) {
        char place[1024];
        snprintf(place, sizeof place, "%s/%s", PLACE, set.types[i]->name);
        if (set.types[i]->pattern_count > 0 && strcmp(set.types[i]->name, "phase_attribution") != 0)
            ck_assert_msg(access(place, R_OK) == 0, "there are no cases in %s", place);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("golden_detectors");
    TCase *cases = tcase_create("golden");
    tcase_add_checked_fixture(cases, NULL, teardown);
    int count = scandir(PLACE, &found, is_named, alphasort);
    tcase_add_loop_test(cases, golden, 0, count);
    tcase_add_test(cases, no_detector_is_left_out);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    for (int i = 0; i < count; i++)
        free(found[i]);
    free(found);
    return failed == 0 ? 0 : 1;
}

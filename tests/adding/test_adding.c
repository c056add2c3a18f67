// SPDX-License-Identifier: Apache-2.0
// The example detector of docs/adding.md runs as any other: it reports, once, in an order that does
// not depend on that of the lines, and goes on after a restart.
#include "tests/adding/example_detector.c"
#include "tests/processors/cluster_fixture.h"

static void setup(void) {
    fixture_begin(&processor_xid_watch);
}

START_TEST(the_xid_is_reported_with_its_gpu) {
    node_xid(&cluster, 10, "gpu-node-1", "00000000:45:00", 79, "GPU has fallen off the bus.");
    node_xid(&cluster, 12, "gpu-node-1", "00000000:46:00", 63, "Row Remapper");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"pattern\":\"xid_watch\",\"kind\":\"reported\"");
    says(lines, "GPU 0000:45:00 of gpu-node-1 reported an Xid");
    says(lines, "\"uid\":\"xid:gpu-node-1:0000:45:00:79:");
    says(lines, "\"action\":\"drain_node\"");
}
END_TEST

START_TEST(an_option_says_which) {
    detector_set(&detector, "code", "63");
    node_xid(&cluster, 12, "gpu-node-1", "00000000:46:00", 63, "Row Remapper");
    says(run(), "GPU 0000:46:00 of gpu-node-1");
}
END_TEST

START_TEST(order_does_not_matter) {
    for (int i = 0; i < 5; i++)
        node_xid(&cluster, 10 - i, i % 2 == 0 ? "gpu-node-1" : "gpu-node-0", "00000000:45:00", 79,
                 "GPU has fallen off the bus.");
    char *first = NULL;
    for (uint64_t seed = 0; seed < 10; seed++) {
        node_shuffle(&cluster, seed);
        const char *lines = run();
        ck_assert_uint_eq(detector.verdict_count, 5);
        if (first == NULL)
            first = memory_copy_text(lines, strlen(lines));
        ck_assert_str_eq(lines, first);
        detector_close(&detector);
        detector = detector_open(&processor_xid_watch);
    }
    detector_start(&detector);
    memory_give(first);
}
END_TEST

START_TEST(what_was_reported_is_not_reported_again_after_a_restart) {
    node_xid(&cluster, 10, "gpu-node-1", "00000000:45:00", 79, "GPU has fallen off the bus.");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, detector.newest_ns, false);
    ck_assert_uint_eq(detector.verdict_count, 1);
    struct detector next = detector_open(&processor_xid_watch);
    detector_start(&next);
    detector_move_state(&detector, &next);
    detector_close(&detector);
    detector = next;
    detector_judge(&detector, detector.newest_ns, false);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("adding");
    TCase *cases = tcase_create("adding");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_xid_is_reported_with_its_gpu);
    tcase_add_test(cases, an_option_says_which);
    tcase_add_test(cases, order_does_not_matter);
    tcase_add_test(cases, what_was_reported_is_not_reported_again_after_a_restart);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

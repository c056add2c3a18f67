// SPDX-License-Identifier: Apache-2.0
// pod_evicted over time: any order of lines, live, kept over a restart, within its bounds.
#include "tests/processors/pod_evicted/pod_evicted_fixture.h"
#include "tests/processors/state_copy.h"

static void one_of_everything(void) {
    cluster_node(&cluster, 10, "n1", "MemoryPressure", "False");
    cluster_node(&cluster, 90, "n1", "MemoryPressure", "True");
    cluster_node(&cluster, 91, "n1", "DiskPressure", "True")->message = SLICE("b");
    cluster_node(&cluster, 91, "n1", "DiskPressure", "True")->message = SLICE("a");
    cluster_node(&cluster, 400, "n1", "MemoryPressure", "False");
    cluster_pod(&cluster, 5, "w-3", "n1");
    cluster_pod(&cluster, 5, "w-4", "n2");
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY);
    cluster_evicted(&cluster, 110, "e1", "w-1", "n1", LOW_MEMORY);
    cluster_evicted(&cluster, 105, "e0", "w-1", "n1", "");
    cluster_evicted(&cluster, 100, "e2", "w-2", "n1", LOW_DISK);
    cluster_evicted(&cluster, 100, "e3", "w-3", NULL, LOW_DISK)->component = SLICE("kubelet");
    cluster_event(&cluster, 40, "e4", "TaintManagerEviction", "w-4", NULL,
                  "Marking for deletion Pod train/w-4");
    cluster_event(&cluster, 41, "e5", "TaintManagerEviction", "w-4", NULL,
                  "Cancelling deletion of Pod train/w-4");
    cluster_event(&cluster, 45, "e6", "TaintManagerEviction", "w-4", NULL,
                  "Marking for deletion Pod train/w-4");
    cluster_event(&cluster, 46, "e6", "TaintManagerEviction", "w-4", NULL,
                  "Marking for deletion Pod train/w-4");
    struct kubernetes_object *pod = cluster_pod(&cluster, 120, "w-1", "n1");
    pod->status_reason = SLICE("Evicted");
    pod->status_message = cluster_text(LOW_MEMORY);
}

START_TEST(same_bytes_in_any_order_and_batch) {
    detector_set(&detector, "taint", "true");
    one_of_everything();
    char *first = strdup(run());
    says(first, "\"kind\":\"taint\"");
    says(first, "k8s-event:e6");
    uint64_t seed = 7;
    for (uint32_t round = 0; round < 200; round++) {
        struct event events[CLUSTER_EVENTS_MAX];
        memcpy(events, cluster.events, cluster.count * sizeof *events);
        for (uint32_t i = cluster.count; i > 1; i--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint32_t j = (uint32_t)(seed >> 33) % i;
            struct event event = events[i - 1];
            events[i - 1] = events[j];
            events[j] = event;
        }
        struct detector other = detector_open(&processor_pod_evicted);
        detector_set(&other, "taint", "true");
        detector_start(&other);
        uint32_t size = round % 5 + 1;
        for (uint32_t at = 0; at < cluster.count; at += size)
            detector_feed(&other, events + at,
                          cluster.count - at < size ? cluster.count - at : size);
        detector_finish(&other);
        ck_assert_str_eq(detector_lines(&other), first);
        detector_close(&other);
    }
    free(first);
}
END_TEST

START_TEST(a_cancelled_deletion_resolves_its_verdict) {
    detector_set(&detector, "taint", "true");
    detector_start(&detector);
    cluster_event(&cluster, 40, "e2", "TaintManagerEviction", "w-1", NULL,
                  "Marking for deletion Pod train/w-1");
    cluster_event(&cluster, 50, "e3", "TaintManagerEviction", "w-1", NULL,
                  "Cancelling deletion of Pod train/w-1");
    detector_feed(&detector, cluster.events, 1);
    detector_judge(&detector, cluster_time(45), false);
    says(detector_lines(&detector), "\"state\":\"open\"");
    detector_lines_reset(&detector);
    detector_feed(&detector, cluster.events + 1, 1);
    detector_judge(&detector, cluster_time(55), false);
    says(detector_lines(&detector), "\"state\":\"resolved\"");
    says(detector_lines(&detector), "stays on");
    schema_check_lines(SCHEMA, detector_lines(&detector));
    detector_lines_reset(&detector);
    detector_judge(&detector, cluster_time(65), false);
    detector_finish(&detector);
    ck_assert_str_eq(detector_lines(&detector), "");
}
END_TEST

START_TEST(live_verdict_opens_and_grows) {
    detector_start(&detector);
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY);
    cluster_node(&cluster, 95, "n1", "MemoryPressure", "True");
    cluster_pod(&cluster, 110, "w-9", "n1");
    detector_feed(&detector, cluster.events, 1);
    detector_judge(&detector, cluster_time(90), false);
    ck_assert_str_eq(detector_lines(&detector), ""); // it lies ahead
    detector_judge(&detector, cluster_time(100), false);
    says(detector_lines(&detector),
         "\"state\":\"open\",\"severity\":\"error\",\"completeness\":"
         "\"partial\"");
    char id[64];
    memcpy(id, strstr(detector_lines(&detector), "\"id\":"), 40);
    id[40] = '\0';
    detector_lines_reset(&detector);
    detector_judge(&detector, cluster_time(105), false);
    ck_assert_str_eq(detector_lines(&detector), ""); // nothing new
    detector_feed(&detector, cluster.events + 1, 2);
    detector_judge(&detector, cluster_time(110), false);
    says(detector_lines(&detector),
         "\"state\":\"updated\",\"severity\":\"error\",\"completeness\":"
         "\"full\"");
    says(detector_lines(&detector), id);
    detector_lines_reset(&detector);
    detector_judge(&detector, cluster_time(110), false);
    detector_finish(&detector);
    ck_assert_str_eq(detector_lines(&detector), "");
}
END_TEST

START_TEST(standing_verdicts_are_told_to_later_stages) {
    detector_start(&detector);
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY);
    cluster_pod(&cluster, 200, "w-9", "n1");
    cluster_pod(&cluster, 100 + 3602, "w-9", "n1");
    for (uint32_t i = 0; i < 3; i++) {
        detector_feed(&detector, cluster.events + i, 1);
        struct batch batch = {.arena = &detector.arena,
                              .newest_ns = detector.newest_ns,
                              .evaluate = true,
                              .as_of_ns = detector.newest_ns};
        processor_pod_evicted.processor.consume(detector.instance, &batch);
        ck_assert_uint_eq(batch.verdicts.count, i == 2 ? 0 : 1);
        ck_assert(i != 1 || batch.verdicts.items[0].unchanged);
        arena_reset(&detector.arena);
    }
}
END_TEST

START_TEST(bounds_let_the_oldest_go) {
    detector_set(&detector, "max_removals", "32");
    detector_start(&detector);
    static char names[500][16], uids[500][16];
    for (int i = 0; i < 500; i++) {
        snprintf(names[i], sizeof names[i], "w-%03d", i);
        snprintf(uids[i], sizeof uids[i], "e-%03d", i);
        cluster_evicted(&cluster, i, uids[i], names[i], "n1", LOW_MEMORY);
    }
    detector_feed(&detector, cluster.events, cluster.count);
    detector_finish(&detector);
    ck_assert_uint_le(detector.verdict_count, 32);
    ck_assert_uint_ge(detector.verdict_count, 28);
    says(detector_lines(&detector), "w-499");
    says_not(detector_lines(&detector), "w-100");
    const struct metric_family family = {.name = "culprit_detector_evicted_total",
                                         .help =
                                             "Entries that a detector forgot because a bound "
                                             "was reached.",
                                         .type = METRIC_COUNTER};
    ck_assert_uint_eq(metric_value(METRIC(&family, "detector", "pod_evicted")),
                      500 - detector.verdict_count);
}
END_TEST

START_TEST(nothing_is_allocated_once_warm) {
    detector_start(&detector);
    one_of_everything();
    for (uint32_t i = 0; i < 3; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, cluster_time(500), false);
    }
    uint64_t before = memory_figures().allocations;
    for (uint32_t i = 0; i < 10; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, cluster_time(500), false);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

// In what may as well be another process: strings get other numbers.
START_TEST(kept_state_goes_on_as_if_nothing_had_happened) {
    detector_set(&detector, "taint", "true");
    one_of_everything();
    uint32_t half = 11; // w-2 is told of only before it
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_finish(&detector);
    char *whole = strdup(detector_lines(&detector));
    detector_close(&detector);

    detector = detector_open(&processor_pod_evicted);
    detector_set(&detector, "taint", "true");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, half);
    struct state_list list = {0};
    struct state_copy copy = {0};
    component_list_state(&processor_pod_evicted, detector.instance, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_save(&copy, &list.entries[i]);
    uint64_t newest_ns = detector.newest_ns;
    detector_close(&detector);
    intern_release();
    intern(SLICE("other"));
    intern(SLICE("names"));

    detector = detector_open(&processor_pod_evicted);
    detector_set(&detector, "taint", "true");
    detector_start(&detector);
    detector.newest_ns = newest_ns;
    list = (struct state_list){0};
    component_list_state(&processor_pod_evicted, detector.instance, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_load(&copy, &copy.entries[i], &list.entries[i]);
    component_restored(&processor_pod_evicted, detector.instance);
    // The same second half, with the new numbers of its names.
    cluster.count = 0;
    one_of_everything();
    detector_feed(&detector, cluster.events + half, cluster.count - half);
    detector_finish(&detector);
    ck_assert_str_eq(detector_lines(&detector), whole);
    state_copy_release(&copy);
    free(whole);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pod_evicted_state");
    TCase *cases = tcase_create("pod_evicted_state");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, same_bytes_in_any_order_and_batch);
    tcase_add_test(cases, a_cancelled_deletion_resolves_its_verdict);
    tcase_add_test(cases, live_verdict_opens_and_grows);
    tcase_add_test(cases, standing_verdicts_are_told_to_later_stages);
    tcase_add_test(cases, bounds_let_the_oldest_go);
    tcase_add_test(cases, nothing_is_allocated_once_warm);
    tcase_add_test(cases, kept_state_goes_on_as_if_nothing_had_happened);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

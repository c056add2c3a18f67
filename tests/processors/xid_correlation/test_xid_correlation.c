// SPDX-License-Identifier: Apache-2.0
// xid_correlation: which removals are laid to which Xid, how surely, and which are not.
#include "cli/component_list.h"
#include "tests/processors/cluster_fixture.h"

static const char LOW_MEMORY[] = "The node was low on resource: memory. Threshold quantity: 100Mi";

static void setup(void) {
    fixture_begin(&processor_xid_correlation);
}

static void marked(double seconds, const char *pod) {
    static char uids[CLUSTER_EVENTS_MAX][32];
    snprintf(uids[cluster.count], sizeof uids[0], "e-%s", pod);
    cluster_event(&cluster, seconds, uids[cluster.count], "TaintManagerEviction", pod, NULL,
                  "Marking for deletion Pod");
}

START_TEST(one_xid_one_pod) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "GPU has fallen off the bus.");
    marked(136, "w-0");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"kind\":\"xid_then_eviction\",\"job_id\":\"llama-pt\",\"state\":\"open\","
         "\"severity\":\"critical\",\"completeness\":\"full\",\"confidence\":90");
    says(lines, "Pod train/w-0 was evicted from n1 36.0 s after Xid 79 on GPU 0000:9b:00");
    says(lines, "\"action\":\"drain_node\"");
    says(lines,
         "{\"kind\":\"gpu\",\"name\":\"n1/0000:9b:00\",\"role\":\"culprit\"},"
         "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"culprit\"},"
         "{\"kind\":\"pod\",\"name\":\"train/w-0\",\"role\":\"victim\"}");
    says(lines, "\"uid\":\"xid:n1:0000:9b:00:79:1794992500000000000\"");
    says(lines, "\"uid\":\"k8s-event:e-w-0\"");
    says(lines,
         "\"start_time_unix_nano\":\"1794992500000000000\","
         "\"end_time_unix_nano\":\"1794992536000000000\"");
}
END_TEST

START_TEST(one_xid_two_pods) {
    cluster_pod(&cluster, 0, "w-1", "n1");
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    marked(136, "w-1");
    marked(136, "w-0");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    // At one moment, by name.
    ck_assert(strstr(lines, "Pod train/w-0") < strstr(lines, "Pod train/w-1"));
}
END_TEST

START_TEST(two_nodes) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    cluster_pod(&cluster, 0, "w-1", "n2");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    node_xid(&cluster, 101, "n2", "0000:1b:00", 95, "");
    marked(110, "w-1");
    marked(120, "w-0");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "Pod train/w-1 was evicted from n2 9.00 s after Xid 95 on GPU 0000:1b:00");
    says(lines, "Pod train/w-0 was evicted from n1 20.0 s after Xid 79 on GPU 0000:9b:00");
    ck_assert(strstr(lines, "Pod train/w-1") < strstr(lines, "Pod train/w-0"));
}
END_TEST

START_TEST(other_nodes_do_not_join) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n2", "0000:9b:00", 79, "");
    node_xid(&cluster, 100, NULL, "0000:9b:00", 79, "");
    marked(110, "w-0");
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

static const struct {
    double xid, removal;
    uint32_t verdicts;
} EDGES[] = {
    {100, 700, 1},        // 600 s before
    {99.999999, 700, 0},  // a microsecond more
    {701, 700, 1},        // a second after: clocks and whole seconds
    {701.000001, 700, 0}, // more
    {700.999, 700, 1},    // inside the second
};

START_TEST(window_edges_and_skew) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, EDGES[_i].xid, "n1", "0000:9b:00", 79, "");
    marked(EDGES[_i].removal, "w-0");
    cluster_pod(&cluster, 2000, "w-9", "n9");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, EDGES[_i].verdicts);
    if (EDGES[_i].xid > EDGES[_i].removal && EDGES[_i].verdicts == 1)
        says(lines, "in the second of Xid 79");
}
END_TEST

static const uint32_t HARMLESS[] = {13, 31, 43, 63, 68, 92, 45, 137, 154, 171, 172, 149, 12345};

START_TEST(xids_that_take_no_pod_away) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", HARMLESS[_i], "NETIR_LINK_EVT Nonfatal");
    marked(110, "w-0");
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(burst_with_cleanup) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 99.9, "n1", "0000:9b:00", 45, "Ch 8");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 94, "Contained");
    node_xid(&cluster, 100.5, "n1", "0000:9b:00", 45, "Ch 9");
    node_xid(&cluster, 101, "n1", "0000:9b:00", 79, "");
    node_xid(&cluster, 102, "n1", "0000:9b:00", 79, "");
    node_line(&cluster, 103, "n1", "0000:9b:00", KERNEL_GPU_LOST);
    node_xid(&cluster, 104, "n1", "0000:9b:00", 13, "app");
    marked(110, "w-0");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    // The gravest, and of that the first; the others of the burst beside it, the program's not.
    says(lines, "after Xid 79");
    says(lines, "xid:n1:0000:9b:00:79:1794992501000000000");
    says(lines, "xid:n1:0000:9b:00:94:1794992500000000000");
    says(lines, "xid:n1:0000:9b:00:45:1794992499900000000");
    says_not(lines, ":79:1794992502");
    says_not(lines, ":79:1794992503");
    says_not(lines, ":13:");
}
END_TEST

START_TEST(last_burst_and_lowest_address) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:1b:00", 79, "");
    node_xid(&cluster, 281, "n1", "0000:9b:00", 79, "");
    node_xid(&cluster, 281, "n1", "0000:45:00", 95, "");
    node_xid(&cluster, 300, "n1", "0000:2b:00", 79, "");
    marked(400, "w-0");
    says(run(), "after Xid 95 on GPU 0000:45:00");
}
END_TEST

START_TEST(line_without_a_number) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_line(&cluster, 100, "n1", "0000:9b:00", KERNEL_GPU_LOST);
    marked(110, "w-0");
    const char *lines = run();
    says(lines, "xid:n1:0000:9b:00:79:1794992500000000000");
    says(lines, "\"completeness\":\"full\"");
}
END_TEST

static void gauge(double seconds, const char *node, const char *pci, int64_t code) {
    node_value(node_sample(&cluster, seconds, node, pci, "GPU-aaaa"), GPU_XID, code);
}

START_TEST(gauge_alone_keeps_its_value) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    gauge(30, "n1", "0000:45:00", 0);
    for (int i = 0; i < 20; i++)
        gauge(60 + 30 * i, "n1", "0000:45:00", 95);
    marked(90, "w-0");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"completeness\":\"partial\",\"confidence\":60");
    says(lines, "dcgm:n1:GPU-aaaa:DCGM_FI_DEV_XID_ERRORS:1794992460000000000");
    says_not(lines, "\"xid:");
    says(lines, "\"hw.id\":\"GPU-aaaa\"");
}
END_TEST

// A GPU that has a UUID is known by it, whether or not a sample tells its address.
START_TEST(gauge_that_learns_its_address) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    gauge(30, "n1", NULL, 0);
    gauge(60, "n1", "0000:45:00", 95);
    marked(90, "w-0");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "n1/0000:45:00");
}
END_TEST

// One without is known by its address: what another GPU of the node said before does not count.
START_TEST(gauges_without_a_uuid) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_value(node_sample(&cluster, 30, "n1", "0000:45:00", NULL), GPU_XID, 0);
    node_value(node_sample(&cluster, 60, "n1", "0000:c9:00", NULL), GPU_XID, 95);
    if (_i == 1)
        node_value(node_sample(&cluster, 70, "n1", "0000:45:00", NULL), GPU_XID, 95);
    marked(90, "w-0");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, (unsigned)_i);
    if (_i == 1)
        says(lines, "n1/0000:45:00");
}
END_TEST

START_TEST(gauge_that_was_there_before) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    gauge(30, "n1", "0000:45:00", 95);
    gauge(60, "n1", "0000:45:00", 95);
    gauge(70, "n1", "0000:45:00", 0);
    gauge(80, "n1", "0000:45:00", 13);
    marked(90, "w-0");
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(gauge_beside_a_line) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    gauge(30, "n1", "0000:45:00", 0);
    node_xid(&cluster, 50, "n1", "0000:45:00", 95, "Uncontained");
    gauge(60, "n1", "0000:45:00", 95);
    marked(90, "w-0");
    const char *lines = run();
    says(lines, "\"completeness\":\"full\",\"confidence\":90");
    says_not(lines, "DCGM_FI_DEV_XID_ERRORS");
}
END_TEST

START_TEST(gauge_without_an_address) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    struct kernel_line *line = node_line(&cluster, 1, "n1", "0000:45:00", KERNEL_GPU_UUID);
    line->uuid = SLICE("GPU-aaaa");
    gauge(30, "n1", NULL, 0);
    gauge(60, "n1", NULL, 95);
    marked(90, "w-0");
    says(run(), "\"name\":\"n1/0000:45:00\"");
}
END_TEST

START_TEST(no_pod_object_no_verdict) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    marked(110, "w-0");
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

static const struct {
    uint32_t code;
    const char *text;
    const char *action;
} RAISES[] = {
    {94, "", "restart_app"},
    {94, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "reset_gpu"},
    {94, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "drain_node"},
    {94, "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "reset_gpu"},
    {94, "GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)",
     "restart_app"},
    {79, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "drain_node"},
    {54, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
     "replace_hardware"},
};

START_TEST(recovery_text_raises_the_action) {
    char want[64];
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", RAISES[_i].code, "");
    if (RAISES[_i].text[0] != '\0')
        node_xid(&cluster, 101, "n1", "0000:9b:00", 154, RAISES[_i].text);
    // Of another GPU: says nothing.
    node_xid(&cluster, 102, "n1", "0000:1b:00", 154, "changed from 0x0 (None) to 0x2 (Reboot)");
    marked(110, "w-0");
    snprintf(want, sizeof want, "\"action\":\"%s\"", RAISES[_i].action);
    says(run(), want);
}
END_TEST

START_TEST(nvlink_needs_the_word_fatal) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 09");
    marked(110, "w-0");
    says(run(), "\"severity\":\"critical\"");
}
END_TEST

START_TEST(less_sure) {
    // An Xid that a program can cause, a pod without a GPU, 180 s: 4 steps beyond the first minute.
    cluster_pod(&cluster, 0, "w-0", "n1")->has_gpu = false;
    node_xid(&cluster, 100, "n1", "0000:9b:00", 39, "");
    marked(280, "w-0");
    const char *lines = run();
    says(lines, "\"confidence\":46");
    says(lines, "Check the program as well");
}
END_TEST

START_TEST(gap_costs_at_most_its_share) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    detector_set(&detector, "window", "1h");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    marked(3600, "w-0");
    says(run(), "\"confidence\":70");
}
END_TEST

START_TEST(what_is_explained_otherwise) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    cluster_pod(&cluster, 0, "w-1", "n1");
    cluster_pod(&cluster, 0, "w-2", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    cluster_evicted(&cluster, 110, "e1", "w-0", "n1", LOW_MEMORY);
    cluster_event(&cluster, 110, "e2", "Preempted", "w-1", NULL, "Preempted by pod x on node n1");
    cluster_event(&cluster, 110, "e3", "TaintManagerEviction", "w-2", NULL, "Marking for deletion");
    cluster_event(&cluster, 111, "e4", "TaintManagerEviction", "w-2", NULL,
                  "Cancelling deletion of Pod train/w-2");
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(kubelet_that_says_no_pressure) {
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    cluster_evicted(&cluster, 110, "e1", "w-0", "n1", "evicted");
    says(run(), "evicted by the kubelet: evicted");
}
END_TEST

START_TEST(cancelled_later_is_withdrawn) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    marked(110, "w-0");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, cluster_time(120), false);
    says(detector_lines(&detector), "\"state\":\"open\"");
    char id[64];
    snprintf(id, sizeof id, "%.38s", strstr(detector_lines(&detector), "\"id\":"));
    detector_lines_reset(&detector);
    cluster_event(&cluster, 130, "e9", "TaintManagerEviction", "w-0", NULL,
                  "Cancelling deletion of Pod train/w-0");
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_judge(&detector, cluster_time(140), false);
    says(detector_lines(&detector), "\"state\":\"resolved\"");
    says(detector_lines(&detector), id);
    schema_check_lines(SCHEMA, detector_lines(&detector));
    detector_lines_reset(&detector);
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(later_evidence_keeps_the_id) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    gauge(30, "n1", "0000:45:00", 0);
    gauge(60, "n1", "0000:45:00", 95);
    marked(90, "w-0");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, cluster_time(100), false);
    char id[64];
    snprintf(id, sizeof id, "%.38s", strstr(detector_lines(&detector), "\"id\":"));
    detector_lines_reset(&detector);
    node_xid(&cluster, 50, "n1", "0000:45:00", 95, "");
    detector_feed(&detector, &cluster.events[cluster.count - 1], 1);
    detector_judge(&detector, cluster_time(100), false);
    says(detector_lines(&detector), "\"state\":\"updated\"");
    says(detector_lines(&detector), "\"confidence\":90");
    says(detector_lines(&detector), id);
}
END_TEST

// Nothing is said of what comes after the moment that is judged.
START_TEST(judged_up_to_its_moment) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    marked(110, "w-0");
    cluster_pod(&cluster, 200, "w-9", "n9");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, cluster_time(105), false);
    ck_assert_uint_eq(detector.verdict_count, 0);
    detector_judge(&detector, cluster_time(115), false);
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

// A text that lives as long as the test.
static const char *kept(const char *text) {
    return intern_slice(intern(slice_of(text))).data;
}

// 128 nodes with an Xid each, seven pods on each.
static void fill_cluster(double from) {
    char text[32];
    for (int n = 0; n < 128; n++) {
        snprintf(text, sizeof text, "n%d", n);
        const char *node = kept(text);
        node_xid(&cluster, from + 100 + n * 0.1, node, "0000:9b:00", 79, "");
        for (int p = 0; p < 7; p++) {
            snprintf(text, sizeof text, "w-%d-%d", n, p);
            const char *pod = kept(text);
            cluster_pod(&cluster, from, pod, node);
            marked(from + 136 + p, pod);
        }
    }
}

START_TEST(many_pods_in_any_order) {
    fill_cluster(0);
    char *first = NULL;
    for (uint32_t round = 0; round < 4; round++) {
        if (round > 0)
            node_shuffle(&cluster, round);
        detector_start(&detector);
        for (uint32_t at = 0, size = round == 1 ? 1 : 7 + round; at < cluster.count; at += size)
            detector_feed(&detector, &cluster.events[at],
                          cluster.count - at < size ? cluster.count - at : size);
        detector_finish(&detector);
        ck_assert_uint_eq(detector.verdict_count, 896);
        if (first == NULL)
            first = memory_copy_text(detector_lines(&detector), detector.lines.size);
        ck_assert_str_eq(detector_lines(&detector), first);
        detector_close(&detector);
        detector = detector_open(&processor_xid_correlation);
    }
    // All are made alike.
    first[strchr(strchr(first, '\n') + 1, '\n') - first + 1] = '\0';
    schema_check_lines(SCHEMA, first);
    memory_give(first);
    detector_start(&detector);
}
END_TEST

START_TEST(nothing_is_allocated_when_warm) {
    fill_cluster(0);
    detector_start(&detector);
    uint64_t before = 0;
    for (int round = 0; round < 4; round++) {
        if (round == 2)
            before = memory_figures().allocations;
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
        detector_lines_reset(&detector);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

START_TEST(state_goes_over_a_crash) {
    cluster_pod(&cluster, 0, "w-0", "n1");
    node_xid(&cluster, 100, "n1", "0000:9b:00", 79, "");
    gauge(100, "n2", "0000:45:00", 0);
    cluster_pod(&cluster, 0, "w-1", "n2");
    marked(110, "w-0");
    detector_start(&detector);
    detector_feed(&detector, cluster.events, cluster.count);
    detector_judge(&detector, cluster_time(120), false);
    ck_assert_uint_eq(detector.verdict_count, 1);
    struct detector other = detector_open(&processor_xid_correlation);
    detector_start(&other);
    detector_move_state(&detector, &other);
    uint32_t from = cluster.count;
    gauge(130, "n2", "0000:45:00", 95);
    marked(140, "w-1");
    detector_feed(&other, &cluster.events[from], 2);
    detector_judge(&other, cluster_time(150), false);
    ck_assert_uint_eq(other.verdict_count, 1);
    says(detector_lines(&other), "Pod train/w-1");
    detector_close(&other);
}
END_TEST

START_TEST(bounds_hold) {
    detector_set(&detector, "max_xids", "16");
    detector_set(&detector, "max_samples", "16");
    detector_set(&detector, "max_gpus", "16");
    cluster_pod(&cluster, 0, "w-0", "n1");
    for (int i = 0; i < 200; i++) {
        node_xid(&cluster, 100 + i, "n1", "0000:9b:00", 79, "");
        gauge(100 + i, i % 2 == 0 ? "n2" : "n3", "0000:45:00", i);
    }
    marked(310, "w-0");
    says(run(), "after Xid 79");
    ck_assert_uint_eq(detector.verdict_count, 1);
    const struct metric_family family = {
        .name = "culprit_detector_evicted_total",
        .help = "Entries that a detector forgot because a bound was reached.",
        .type = METRIC_COUNTER};
    ck_assert_uint_gt(metric_value(METRIC(&family, "detector", "xid_correlation")), 100);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("xid_correlation");
    TCase *cases = tcase_create("verdicts");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, one_xid_one_pod);
    tcase_add_test(cases, one_xid_two_pods);
    tcase_add_test(cases, two_nodes);
    tcase_add_test(cases, other_nodes_do_not_join);
    tcase_add_loop_test(cases, window_edges_and_skew, 0, sizeof EDGES / sizeof *EDGES);
    tcase_add_loop_test(cases, xids_that_take_no_pod_away, 0, sizeof HARMLESS / sizeof *HARMLESS);
    tcase_add_test(cases, burst_with_cleanup);
    tcase_add_test(cases, last_burst_and_lowest_address);
    tcase_add_test(cases, line_without_a_number);
    tcase_add_test(cases, gauge_alone_keeps_its_value);
    tcase_add_test(cases, gauge_that_learns_its_address);
    tcase_add_loop_test(cases, gauges_without_a_uuid, 0, 2);
    tcase_add_test(cases, gauge_that_was_there_before);
    tcase_add_test(cases, gauge_beside_a_line);
    tcase_add_test(cases, gauge_without_an_address);
    tcase_add_test(cases, no_pod_object_no_verdict);
    tcase_add_loop_test(cases, recovery_text_raises_the_action, 0, sizeof RAISES / sizeof *RAISES);
    tcase_add_test(cases, nvlink_needs_the_word_fatal);
    tcase_add_test(cases, less_sure);
    tcase_add_test(cases, gap_costs_at_most_its_share);
    tcase_add_test(cases, what_is_explained_otherwise);
    tcase_add_test(cases, kubelet_that_says_no_pressure);
    tcase_add_test(cases, cancelled_later_is_withdrawn);
    tcase_add_test(cases, later_evidence_keeps_the_id);
    tcase_add_test(cases, judged_up_to_its_moment);
    tcase_add_test(cases, many_pods_in_any_order);
    tcase_add_test(cases, nothing_is_allocated_when_warm);
    tcase_add_test(cases, state_goes_over_a_crash);
    tcase_add_test(cases, bounds_hold);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

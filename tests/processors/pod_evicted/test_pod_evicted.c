// SPDX-License-Identifier: Apache-2.0
// pod_evicted: which evictions are told, with what evidence, in what order, and which are not.
#include "tests/processors/pod_evicted/pod_evicted_fixture.h"

START_TEST(full_verdict_names_condition_and_event) {
    cluster_node(&cluster, 300, "n5", "MemoryPressure", "True");
    cluster_evicted(&cluster, 312, "e1", "w-2", "n5", LOW_MEMORY);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"node_pressure\"");
    says(lines, "\"completeness\":\"full\",\"confidence\":90");
    says(lines, "\"headline\":\"Pod train/w-2 was evicted from n5 at 2026-11-18T09:05:12Z");
    says(lines, "\"uid\":\"node-condition:n5:MemoryPressure:2026-11-18T09:05:00Z\"");
    says(lines, "\"uid\":\"k8s-event:e1\"");
    says(lines, "{\"kind\":\"node\",\"name\":\"n5\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"pod\",\"name\":\"train/w-2\",\"role\":\"victim\"}");
    says(lines, "\"start_time_unix_nano\":\"1794992700000000000\"");
    says(lines, "\"end_time_unix_nano\":\"1794992712000000000\"");
}
END_TEST

START_TEST(partial_without_condition_still_names_the_node) {
    cluster_evicted(&cluster, 200, "e1", "w-7", "n6", LOW_DISK);
    const char *lines = run();
    says(lines, "\"completeness\":\"partial\",\"confidence\":60");
    says(lines, "\"remediation\":\"Node n6 ran short of ephemeral-storage");
    says_not(lines, "node-condition");
    says_not(lines, "emory");
}
END_TEST

START_TEST(remediation_begins_with_the_node_on_both_paths) {
    cluster_node(&cluster, 10, "n5", "MemoryPressure", "True");
    cluster_evicted(&cluster, 20, "e1", "w-1", "n5", LOW_MEMORY);
    cluster_evicted(&cluster, 30, "e2", "w-2", "n6", LOW_MEMORY);
    const char *lines = run();
    says(lines, "\"remediation\":\"Node n5 ");
    says(lines, "\"remediation\":\"Node n6 ");
}
END_TEST

START_TEST(other_removals_and_conditions_alone_say_nothing) {
    cluster_node(&cluster, 0, "n8", "MemoryPressure", "True");
    cluster_pod(&cluster, 0, "p-taint", "n8");
    cluster_event(&cluster, 30, "e1", "Preempted", "p-pre", NULL,
                  "Preempted by pod 1234 on node n8");
    cluster_event(&cluster, 40, "e2", "TaintManagerEviction", "p-taint", NULL,
                  "Marking for deletion Pod train/p-taint");
    cluster_event(&cluster, 50, "e3", "Killing", "p-kill", "n8", "Stopping container trainer");
    cluster_event(&cluster, 60, "e4", "BackOff", "p-kill", "n8", "Back-off restarting container");
    struct kubernetes_object *drained = cluster_pod(&cluster, 70, "p-drain", "n8");
    cluster_condition(&cluster, drained, "DisruptionTarget", "True", 70)->reason =
        SLICE("EvictionByEvictionAPI");
    struct kubernetes_object *shut = cluster_pod(&cluster, 80, "p-shut", "n8");
    shut->status_reason = SLICE("Terminated");
    cluster_condition(&cluster, shut, "DisruptionTarget", "True", 80)->reason =
        SLICE("TerminationByKubelet");
    ck_assert_str_eq(run(), "");
}
END_TEST

START_TEST(window_ends_where_it_says) {
    cluster_node(&cluster, 0, "in", "MemoryPressure", "True");
    cluster_node(&cluster, 0, "out", "MemoryPressure", "True");
    cluster_evicted(&cluster, 300, "e1", "w-in", "in", LOW_MEMORY);
    cluster_evicted(&cluster, 301, "e2", "w-out", "out", LOW_MEMORY);
    const char *lines = run();
    says(lines, "node-condition:in:");
    says_not(lines, "node-condition:out:");
    ck_assert_uint_eq(detector.verdict_count, 2);
}
END_TEST

START_TEST(window_can_be_set) {
    detector_set(&detector, "window", "10m");
    cluster_node(&cluster, 0, "out", "MemoryPressure", "True");
    cluster_evicted(&cluster, 301, "e2", "w-out", "out", LOW_MEMORY);
    says(run(), "node-condition:out:");
}
END_TEST

START_TEST(future_transition_never_joins) {
    cluster_node(&cluster, 101, "skew", "MemoryPressure", "True");
    cluster_node(&cluster, 102, "late", "MemoryPressure", "True");
    cluster_evicted(&cluster, 100, "e1", "w-1", "skew", LOW_MEMORY);
    cluster_evicted(&cluster, 100, "e2", "w-2", "late", LOW_MEMORY);
    const char *lines = run();
    says(lines, "node-condition:skew:");
    says_not(lines, "node-condition:late:");
}
END_TEST

START_TEST(a_false_in_between_ends_it) {
    cluster_node(&cluster, 10, "n1", "MemoryPressure", "True");
    cluster_node(&cluster, 50, "n1", "MemoryPressure", "False");
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY);
    says_not(run(), "node-condition");
}
END_TEST

START_TEST(of_two_transitions_the_nearest) {
    cluster_node(&cluster, 10, "n1", "MemoryPressure", "True");
    cluster_node(&cluster, 50, "n1", "MemoryPressure", "False");
    cluster_node(&cluster, 60, "n1", "MemoryPressure", "True");
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY);
    const char *lines = run();
    says(lines, "node-condition:n1:MemoryPressure:2026-11-18T09:01:00Z");
    says_not(lines, "2026-11-18T09:00:10Z");
}
END_TEST

START_TEST(another_condition_does_not_explain_it) {
    cluster_node(&cluster, 90, "n1", "DiskPressure", "True");
    cluster_node(&cluster, 90, "n2", "MemoryPressure", "True");
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY);
    says_not(run(), "node-condition");
}
END_TEST

START_TEST(sustained_pressure_is_partial_and_context_when_asked) {
    detector_set(&detector, "sustained", _i == 0 ? "false" : "true");
    cluster_node(&cluster, 0, "n1", "MemoryPressure", "True");
    cluster_evicted(&cluster, 1000, "e1", "w-1", "n1", LOW_MEMORY);
    const char *lines = run();
    says(lines, "\"completeness\":\"partial\",\"confidence\":60");
    says(lines, "\"start_time_unix_nano\":\"1794993400000000000\"");
    if (_i == 0)
        says_not(lines, "node-condition");
    else
        says(lines, "\"time_unix_nano\":\"1794992400000000000\",\"role\":\"context\"");
}
END_TEST

// Without a text it is not known which condition it would be.
START_TEST(sustained_pressure_says_nothing_of_an_empty_note) {
    detector_set(&detector, "sustained", "true");
    cluster_node(&cluster, 0, "n1", "DiskPressure", "True");
    cluster_evicted(&cluster, 1000, "e1", "w-1", "n1", "");
    const char *lines = run();
    says(lines, "No condition of the node was seen at that time");
    says_not(lines, "node-condition");
}
END_TEST

START_TEST(empty_note_joins_only_a_single_condition) {
    cluster_node(&cluster, 90, "one", "DiskPressure", "True");
    cluster_node(&cluster, 90, "two", "DiskPressure", "True");
    cluster_node(&cluster, 91, "two", "PIDPressure", "True");
    cluster_evicted(&cluster, 100, "e1", "w-1", "one", NULL);
    cluster_evicted(&cluster, 100, "e2", "w-2", "two", "");
    cluster_evicted(&cluster, 100, "e3", "w-3", "none", "");
    const char *lines = run();
    says(lines, "node-condition:one:DiskPressure:2026-11-18T09:01:30Z");
    says(lines, "\"completeness\":\"full\",\"confidence\":70");
    says_not(lines, "node-condition:two");
    says(lines, "\"completeness\":\"partial\",\"confidence\":40");
    says(lines, "from two at 2026-11-18T09:01:40Z; what was short is not said");
    says(lines, "\"remediation\":\"Node none evicted the pod without saying");
}
END_TEST

START_TEST(empty_condition_message_shows_the_reason) {
    struct kubernetes_condition *condition =
        cluster_node(&cluster, 90, "n1", "MemoryPressure", "True");
    condition->message = cluster_text(NULL);
    condition = cluster_node(&cluster, 90, "n2", "MemoryPressure", "True");
    condition->message = condition->reason = cluster_text("");
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY);
    cluster_evicted(&cluster, 100, "e2", "w-2", "n2", LOW_MEMORY);
    const char *lines = run();
    says(lines, "\"MemoryPressure of n1 became True (KubeletHasInsufficientMemory)\"");
    says(lines, "\"MemoryPressure of n2 became True\"");
}
END_TEST

START_TEST(own_limits_are_no_pressure) {
    static const char *const texts[] = {
        "Usage of EmptyDir volume \"cache\" exceeds the limit \"10Gi\". ",
        "Pod ephemeral local storage usage exceeds the total limit of containers 20Gi. ",
        "Container trainer exceeded its local ephemeral storage limit \"5Gi\". ",
    };
    cluster_node(&cluster, 90, "n1", "DiskPressure", "True");
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", texts[_i]);
    const char *lines = run();
    says(lines, "\"kind\":\"pod_limit\"");
    says(lines, "\"completeness\":\"full\",\"confidence\":85");
    says(lines, "{\"kind\":\"pod\",\"name\":\"train/w-1\",\"role\":\"culprit\"}");
    says_not(lines, "node-condition");
    says_not(lines, "{\"kind\":\"node\"");
    says(lines, "\"remediation\":\"Its node had room; ");
}
END_TEST

START_TEST(letters_of_the_note_in_any_case) {
    cluster_node(&cluster, 90, "n1", "MemoryPressure", "True");
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", "THE NODE WAS LOW ON RESOURCE: MEMORY. ");
    says(run(), "\"completeness\":\"full\",\"confidence\":90");
}
END_TEST

START_TEST(event_status_and_condition_count_once) {
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY);
    struct kubernetes_object *pod = cluster_pod(&cluster, 101, "w-1", "n1");
    pod->status_reason = SLICE("Evicted");
    pod->status_message = cluster_text(LOW_MEMORY);
    cluster_condition(&cluster, pod, "DisruptionTarget", "True", 99)->reason =
        SLICE("TerminationByKubelet");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "k8s-event:e1");
    says(lines, "2026-11-18T09:01:40Z");
}
END_TEST

START_TEST(pod_status_alone_is_enough) {
    struct kubernetes_object *pod = cluster_pod(&cluster, 101, "w-1", "n1");
    pod->status_reason = SLICE("Evicted");
    pod->status_message = cluster_text(LOW_MEMORY);
    struct kubernetes_object *other = cluster_pod(&cluster, 103, "w-2", "n1");
    other->status_reason = SLICE("Evicted");
    struct kubernetes_condition *condition =
        cluster_condition(&cluster, other, "DisruptionTarget", "True", 102);
    condition->reason = SLICE("TerminationByKubelet");
    condition->message = cluster_text(LOW_DISK);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "\"uid\":\"k8s-pod:uid-w-1\"");
    says(lines, "\"uid\":\"pod-condition:train/w-2:DisruptionTarget:2026-11-18T09:01:42Z\"");
}
END_TEST

START_TEST(count_growth_of_one_event_is_one_verdict) {
    for (int i = 0; i < 4; i++) {
        struct kubernetes_object *event =
            cluster_evicted(&cluster, 100 + 10 * i, "e1", "w-1", "n1", LOW_MEMORY);
        event->count = i + 1;
        event->watch = i == 0 ? WATCH_ADDED : WATCH_MODIFIED;
    }
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "2026-11-18T09:01:40Z");
}
END_TEST

START_TEST(deleted_objects_say_nothing) {
    cluster_evicted(&cluster, 100, "e1", "w-1", "n1", LOW_MEMORY)->watch = WATCH_DELETED;
    struct kubernetes_object *pod = cluster_pod(&cluster, 101, "w-2", "n1");
    pod->status_reason = SLICE("Evicted");
    pod->watch = WATCH_DELETED;
    cluster_node(&cluster, 190, "n2", "MemoryPressure", "True");
    cluster.objects[cluster.count - 1].watch = WATCH_DELETED;
    cluster_evicted(&cluster, 200, "e2", "w-3", "n2", LOW_MEMORY);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "train/w-3");
    says_not(lines, "node-condition");
}
END_TEST

START_TEST(node_comes_from_the_pod_when_the_event_has_none) {
    cluster_node(&cluster, 90, "n4", "MemoryPressure", "True");
    cluster_pod(&cluster, 10, "w-1", "n4");
    struct kubernetes_object *event = cluster_evicted(&cluster, 100, "e1", "w-1", NULL, LOW_MEMORY);
    event->component = SLICE("kubelet");
    cluster_evicted(&cluster, 101, "e2", "w-2", NULL, LOW_MEMORY);
    const char *lines = run();
    says(lines, "\"headline\":\"Pod train/w-1 was evicted from n4 ");
    says(lines, "node-condition:n4");
    says(lines, "\"remediation\":\"A node that no event names ran short of memory");
}
END_TEST

START_TEST(order_is_time_name_event) {
    cluster_evicted(&cluster, 200, "e5", "w-1", "n1", LOW_MEMORY);
    cluster_evicted(&cluster, 100, "e9", "w-b", "n1", LOW_MEMORY);
    cluster_evicted(&cluster, 100, "e8", "w-a", "n1", LOW_MEMORY);
    struct kubernetes_object *same = cluster_evicted(&cluster, 100, "e7", "w-b", "n1", LOW_MEMORY);
    same->object_uid = SLICE("another");
    const char *lines = run();
    const char *at = lines;
    static const char *const order[] = {"event:e8", "event:e7", "event:e9", "event:e5"};
    for (size_t i = 0; i < 4; i++) {
        at = strstr(at, order[i]);
        ck_assert_msg(at != NULL, "%s is not there in its place", order[i]);
    }
}
END_TEST

START_TEST(kinds_that_are_switched_on) {
    detector_set(&detector, "taint", "true");
    detector_set(&detector, "preempted", "true");
    detector_set(&detector, "api_eviction", "true");
    cluster_pod(&cluster, 0, "w-1", "n1");
    cluster_event(&cluster, 30, "e1", "Preempted", "w-0", NULL, "Preempted by pod 1 on node n8");
    cluster_event(&cluster, 40, "e2", "TaintManagerEviction", "w-1", NULL,
                  "Marking for deletion Pod train/w-1");
    struct kubernetes_object *pod = cluster_pod(&cluster, 70, "w-2", "n2");
    cluster_condition(&cluster, pod, "DisruptionTarget", "True", 70)->reason =
        SLICE("EvictionByEvictionAPI");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 3);
    says(lines, "Pod train/w-0 was preempted on n8 at 2026-11-18T09:00:30Z");
    says(lines, "Pod train/w-1 was taken off n1 at 2026-11-18T09:00:40Z because of a taint");
    says(lines, "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"suspect\"}");
    says(lines, "Pod train/w-2 was taken off n2 at 2026-11-18T09:01:10Z through the eviction API");
    says_not(lines, "\"role\":\"culprit\"");
}
END_TEST

// Who evicts decides: what a controller takes off a node says nothing of the node's pressure, and
// only a node that its cloud takes back is told of.
START_TEST(evicted_by_a_controller) {
    cluster_pod(&cluster, 0, "w-1", "n1");
    cluster_pod(&cluster, 0, "w-2", "n2");
    cluster_event(&cluster, 30, "e1", "Evicted", "w-1", NULL, "Evicted pod: SpotInterruption")
        ->component = SLICE("karpenter");
    cluster_event(&cluster, 31, "e2", "Evicted", "w-2", NULL, "Evicted pod: Underutilized")
        ->component = SLICE("karpenter");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"reclaimed\",\"state\":\"open\",\"severity\":\"warning\"");
    says(lines,
         "Node n1 was taken back by its cloud at 2026-11-18T09:00:30Z, and pod train/w-1 was "
         "evicted: Evicted pod: SpotInterruption");
    says(lines, "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"culprit\"}");
    says(lines, "\"action\":\"restart_app\"");
    says_not(lines, "Pressure");
}
END_TEST

START_TEST(names_of_any_length_fit_the_schema) {
    char pod[260], node[260], namespace[64];
    memset(pod, 'p', sizeof pod);
    memset(node, 'n', sizeof node);
    memset(namespace, 's', sizeof namespace);
    pod[253] = node[253] = namespace[63] = '\0';
    cluster_node(&cluster, 90, node, "MemoryPressure", "True");
    struct kubernetes_object *event = cluster_evicted(&cluster, 100, "e1", "w-1", node, LOW_MEMORY);
    event->object_name = slice_of(pod);
    event->object_namespace = slice_of(namespace);
    event->object_uid = event->uid = slice_of(pod);
    const char *lines = run();
    says(lines, "2026-11-18T09:01:40Z: short of memory");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pod_evicted");
    TCase *cases = tcase_create("pod_evicted");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, full_verdict_names_condition_and_event);
    tcase_add_test(cases, partial_without_condition_still_names_the_node);
    tcase_add_test(cases, remediation_begins_with_the_node_on_both_paths);
    tcase_add_test(cases, other_removals_and_conditions_alone_say_nothing);
    tcase_add_test(cases, window_ends_where_it_says);
    tcase_add_test(cases, window_can_be_set);
    tcase_add_test(cases, future_transition_never_joins);
    tcase_add_test(cases, a_false_in_between_ends_it);
    tcase_add_test(cases, of_two_transitions_the_nearest);
    tcase_add_test(cases, another_condition_does_not_explain_it);
    tcase_add_loop_test(cases, sustained_pressure_is_partial_and_context_when_asked, 0, 2);
    tcase_add_test(cases, sustained_pressure_says_nothing_of_an_empty_note);
    tcase_add_test(cases, empty_note_joins_only_a_single_condition);
    tcase_add_test(cases, empty_condition_message_shows_the_reason);
    tcase_add_loop_test(cases, own_limits_are_no_pressure, 0, 3);
    tcase_add_test(cases, letters_of_the_note_in_any_case);
    tcase_add_test(cases, event_status_and_condition_count_once);
    tcase_add_test(cases, pod_status_alone_is_enough);
    tcase_add_test(cases, count_growth_of_one_event_is_one_verdict);
    tcase_add_test(cases, deleted_objects_say_nothing);
    tcase_add_test(cases, node_comes_from_the_pod_when_the_event_has_none);
    tcase_add_test(cases, order_is_time_name_event);
    tcase_add_test(cases, kinds_that_are_switched_on);
    tcase_add_test(cases, evicted_by_a_controller);
    tcase_add_test(cases, names_of_any_length_fit_the_schema);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

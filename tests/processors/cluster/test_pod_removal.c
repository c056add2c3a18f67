// SPDX-License-Identifier: Apache-2.0
// pod_removal: what counts as a removal, what is merged, what a text says was short.
#include "base/memory.h"
#include "processors/cluster/pod_removal.h"
#include "tests/processors/cluster.h"

#include <check.h>

static struct cluster cluster;
static struct removal_table table;
static struct arena arena;

static void begin(void) {
    table = (struct removal_table){.bound.max = 64};
    keyed_rows_start(&table.rows, "removals", &REMOVAL_ROWS);
}

static void setup(void) {
    cluster.count = 0;
    arena_init(&arena, 4096);
    begin();
}

static void teardown(void) {
    keyed_rows_release(&table.rows);
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void take_all(void) {
    for (uint32_t i = 0; i < cluster.count; i++)
        removal_table_take(&table, &cluster.events[i], &arena);
}

// The only one there is.
static struct removal only(void) {
    struct removal removal;
    uint32_t at = 0;
    take_all();
    ck_assert_uint_eq(keyed_rows_count(&table.rows), 1);
    ck_assert(pod_removal_read(keyed_rows_next(&table.rows, &at), &removal));
    return removal;
}

static const struct {
    const char *text, *starved;
    uint32_t pressure;
} TEXTS[] = {
    {"The node was low on resource: memory. Threshold quantity: 100Mi", "", PRESSURE_MEMORY},
    {"the NODE was LOW on resource: MEMORY. ", "", PRESSURE_MEMORY},
    {"The node was low on resource: ephemeral-storage. ", "", PRESSURE_DISK},
    {"The node was low on resource: inodes. ", "", PRESSURE_INODES},
    {"The node was low on resource: pids. ", "", PRESSURE_PIDS},
    {"The node was low on resource: [DiskPressure]. ", "", PRESSURE_DISK},
    {"The node was low on resource: hugepages. Container x uses much memory.", "", 0},
    {"Pod The node had condition: [MemoryPressure]. ", "", PRESSURE_MEMORY},
    {"The node had condition: [DiskPressure, PIDPressure]. ", "", PRESSURE_DISK | PRESSURE_PIDS},
    {"The node had condition: [DiskPressure MemoryPressure]", "", PRESSURE_DISK | PRESSURE_MEMORY},
    {"The node had condition: [", "", 0},
    {"The node was low on resource: memory. ", "ephemeral-storage", PRESSURE_DISK},
    {"", "memory", PRESSURE_MEMORY},
    {"", "something", 0},
    {"", "", 0},
    {"Evicted because of memory pressure", "", PRESSURE_MEMORY},
    {"Evicted: DiskPressure", "", PRESSURE_DISK},
    {"nothing that we know", "", 0},
    {"memorypressured", "", 0},
    {"Usage of EmptyDir volume \"cache\" exceeds the limit \"1Gi\". ", "", PRESSURE_LIMIT},
    {"Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ", "",
     PRESSURE_LIMIT},
    {"Container a exceeded its local ephemeral storage limit \"1Gi\". ", "", PRESSURE_LIMIT},
    {"CONTAINER a EXCEEDED ITS LOCAL EPHEMERAL STORAGE LIMIT \"1Gi\". ", "memory", PRESSURE_LIMIT},
    {"The node was low on resource: memory. Container a exceeded its local ephemeral storage limit "
     "\"1Gi\".",
     "", PRESSURE_MEMORY},
};

START_TEST(texts) {
    ck_assert_uint_eq(pressure_read(slice_of(TEXTS[_i].text), slice_of(TEXTS[_i].starved)),
                      TEXTS[_i].pressure);
    // A text that is cut anywhere is read without harm.
    for (size_t size = 0; size < strlen(TEXTS[_i].text); size++) {
        char *cut = memory_take(size + 1);
        memcpy(cut, TEXTS[_i].text, size);
        pressure_read((struct slice){cut, size}, (struct slice){NULL, 0});
        memory_give(cut);
    }
}
END_TEST

START_TEST(an_event_says_who_when_where_and_why) {
    cluster_evicted(&cluster, 12, "e1", "w-0", "n1", "The node was low on resource: memory. ");
    struct removal removal = only();
    ck_assert(removal.stands && removal.whole_seconds);
    ck_assert_int_eq(removal.cause, REMOVAL_EVICTED);
    ck_assert_int_eq(removal.source, REMOVAL_BY_EVENT);
    ck_assert_uint_eq(removal.time_ns, cluster_time(12));
    ck_assert_uint_eq(removal.pressure, PRESSURE_MEMORY);
    ck_assert_str_eq(intern_slice(removal.node).data, "n1");
    ck_assert(slice_equal(removal.uid, SLICE("uid-w-0")));
    ck_assert(slice_equal(removal.event_uid, SLICE("e1")));
    ck_assert(strcmp(removal_pod_name(&removal, &arena), "train/w-0") == 0);
    ck_assert(strcmp(removal_evidence_uid(&removal, &arena), "k8s-event:e1") == 0);
}
END_TEST

START_TEST(an_event_is_preferred_to_a_condition_and_that_to_a_status) {
    struct kubernetes_object *pod = cluster_pod(&cluster, 30, "w-0", "n1");
    pod->status_reason = SLICE("Evicted");
    struct removal removal = only();
    ck_assert_int_eq(removal.source, REMOVAL_BY_STATUS);
    ck_assert_uint_eq(removal.time_ns, cluster_time(30));
    pod = cluster_pod(&cluster, 31, "w-0", "n1");
    pod->status_reason = SLICE("Evicted");
    cluster_condition(&cluster, pod, "DisruptionTarget", "True", 29)->reason =
        SLICE("TerminationByKubelet");
    removal = only();
    ck_assert_int_eq(removal.source, REMOVAL_BY_CONDITION);
    ck_assert_uint_eq(removal.time_ns, cluster_time(29));
    cluster_evicted(&cluster, 30, "e1", "w-0", "n1", "memory");
    removal = only();
    ck_assert_int_eq(removal.source, REMOVAL_BY_EVENT);
    ck_assert_uint_eq(removal.time_ns, cluster_time(30));
}
END_TEST

START_TEST(reasons_of_disruption) {
    static const struct {
        const char *reason;
        int cause;
    } reasons[] = {
        {"EvictionByEvictionAPI", REMOVAL_API},
        {"PreemptionByScheduler", REMOVAL_PREEMPTED},
        {"DeletionByTaintManager", REMOVAL_TAINT},
        {"DeletionByPodGC", REMOVAL_COLLECTED},
        {"SomethingElse", -1},
    };
    struct kubernetes_object *pod = cluster_pod(&cluster, 30, "w-0", "n1");
    struct kubernetes_condition *condition =
        cluster_condition(&cluster, pod, "DisruptionTarget", "True", 29);
    condition->reason = slice_of(reasons[_i].reason);
    if (reasons[_i].cause < 0) {
        take_all();
        ck_assert_uint_eq(keyed_rows_count(&table.rows), 0);
        return;
    }
    ck_assert_int_eq((int)only().cause, reasons[_i].cause);
    keyed_rows_release(&table.rows);
    begin();
    condition->status = SLICE("False");
    take_all();
    ck_assert_uint_eq(keyed_rows_count(&table.rows), 0);
}
END_TEST

// A kubelet also ends pods when its node shuts down.
START_TEST(termination_by_kubelet_needs_an_eviction) {
    struct kubernetes_object *pod = cluster_pod(&cluster, 30, "w-0", "n1");
    struct kubernetes_condition *condition =
        cluster_condition(&cluster, pod, "DisruptionTarget", "True", 29);
    condition->reason = SLICE("TerminationByKubelet");
    condition->message = SLICE("Pod was terminated in response to imminent node shutdown.");
    take_all();
    ck_assert_uint_eq(keyed_rows_count(&table.rows), 0);
    pod->status_reason = SLICE("Terminated");
    condition->message = SLICE("The node was low on resource: memory. ");
    take_all();
    ck_assert_uint_eq(keyed_rows_count(&table.rows), 0);
    pod->status_reason = cluster_text(NULL);
    ck_assert_uint_eq(only().pressure, PRESSURE_MEMORY);
}
END_TEST

static void mark(double seconds, const char *uid) {
    cluster_event(&cluster, seconds, uid, "TaintManagerEviction", "w-0", NULL,
                  "Marking for deletion Pod train/w-0");
}

static void cancel(double seconds) {
    cluster_event(&cluster, seconds, "c", "TaintManagerEviction", "w-0", NULL,
                  "Cancelling deletion of Pod train/w-0");
}

// Times of the taint manager's events, which name no uid, and of the Pods' conditions, which do.
static void mark_by_name(double seconds) {
    cluster_event(&cluster, seconds, NULL, "TaintManagerEviction", "w-0", NULL,
                  "Marking for deletion Pod train/w-0")
        ->object_uid = (struct slice){NULL, 0};
}

static void delete_with_uid(double seconds, const char *uid) {
    struct kubernetes_object *pod = cluster_pod(&cluster, seconds, "w-0", "n1");
    pod->uid = slice_of(uid);
    cluster_condition(&cluster, pod, "DisruptionTarget", "True", seconds)->reason =
        SLICE("DeletionByTaintManager");
}

static struct removal *read_all(uint32_t *count) {
    return removal_table_sorted(&table, cluster_time(3600), &arena, count);
}

START_TEST(what_is_told_without_a_uid_is_of_the_pod_with_one) {
    uint32_t count;
    // In either order, and of a pod that comes back under its name the nearer one.
    if (_i == 0)
        mark_by_name(10);
    delete_with_uid(11, "first");
    delete_with_uid(400, "second");
    mark_by_name(399);
    if (_i != 0)
        mark_by_name(10);
    take_all();
    struct removal *list = read_all(&count);
    ck_assert_uint_eq(count, 2);
    ck_assert(slice_equal(list[0].uid, SLICE("first")));
    ck_assert_uint_eq(list[0].time_ns, cluster_time(10));
    ck_assert(slice_equal(list[1].uid, SLICE("second")));
    ck_assert_uint_eq(list[1].time_ns, cluster_time(399));
    ck_assert_uint_eq(keyed_rows_count(&table.rows), 2);
}
END_TEST

// What was judged of the name alone is told once more, so that it can be taken back.
START_TEST(what_was_judged_without_a_uid_is_moved) {
    uint32_t count;
    mark_by_name(10);
    take_all();
    struct removal *list = read_all(&count);
    ck_assert_uint_eq(count, 1);
    ck_assert(list[0].stands && !list[0].moved);
    list[0].row->judged = 1;
    cluster.count = 0;
    delete_with_uid(11, "first");
    take_all();
    list = read_all(&count);
    ck_assert_uint_eq(count, 2);
    ck_assert(!list[0].stands && list[0].moved);
    ck_assert(list[1].stands && slice_equal(list[1].uid, SLICE("first")));
    list[0].row->judged = 0;
    read_all(&count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(keyed_rows_count(&table.rows), 1);
}
END_TEST

START_TEST(another_time_is_another_removal) {
    uint32_t count;
    mark_by_name(10);
    delete_with_uid(311, "first");
    take_all();
    read_all(&count);
    ck_assert_uint_eq(count, 2);
}
END_TEST

START_TEST(marks_and_cancellations_in_any_order) {
    mark(10, "m1");
    cancel(20);
    mark(30, "m2");
    mark(35, "m3");
    for (uint32_t i = 0; i < 24; i++) {
        uint32_t left[] = {0, 1, 2, 3}, code = i, at = 0;
        struct removal removal;
        keyed_rows_release(&table.rows);
        begin();
        for (uint32_t count = 4; count > 0; count--) {
            uint32_t pick = code % count;
            code /= count;
            removal_table_take(&table, &cluster.events[left[pick]], &arena);
            left[pick] = left[count - 1];
        }
        ck_assert(pod_removal_read(keyed_rows_next(&table.rows, &at), &removal));
        ck_assert(removal.stands);
        ck_assert(slice_equal(removal.event_uid, SLICE("m2")));
    }
}
END_TEST

START_TEST(a_cancelled_mark_does_not_stand) {
    mark(10, "m1");
    cancel(10);
    ck_assert(!only().stands);
}
END_TEST

START_TEST(only_a_cancellation_is_nothing) {
    struct removal removal;
    uint32_t at = 0;
    cancel(10);
    take_all();
    ck_assert(!pod_removal_read(keyed_rows_next(&table.rows, &at), &removal));
}
END_TEST

START_TEST(many_marks_keep_the_newest) {
    static char uids[50][16];
    for (int i = 49; i >= 0; i--) {
        snprintf(uids[i], sizeof uids[i], "m%02d", i);
        mark(i, uids[i]);
    }
    ck_assert(slice_equal(only().event_uid, SLICE("m46")));
}
END_TEST

START_TEST(a_preempted_pod_names_its_node) {
    cluster_event(&cluster, 30, "e1", "Preempted", "w-0", NULL,
                  "Preempted by pod db2c176e-58a6 on node gpu-node-08");
    struct removal removal = only();
    ck_assert_int_eq(removal.cause, REMOVAL_PREEMPTED);
    ck_assert_str_eq(intern_slice(removal.node).data, "gpu-node-08");
}
END_TEST

START_TEST(the_host_of_a_controller_is_no_node) {
    struct kubernetes_object *event =
        cluster_evicted(&cluster, 12, "e1", "w-0", "controller-host", "memory");
    event->component = SLICE("descheduler");
    ck_assert_uint_eq(only().node, STRING_NONE);
}
END_TEST

START_TEST(location_comes_from_the_map) {
    struct pod_map map = {.bound.max = 64};
    struct pod_place place;
    keyed_rows_start(&map.by_uid, "uid", &POD_ROWS);
    keyed_rows_start(&map.by_name, "name", &POD_ROWS);
    mark(10, "m1");
    cluster_pod(&cluster, 5, "w-0", "n3");
    struct removal removal = only();
    removal_locate(&removal, &map, &place);
    ck_assert_uint_eq(removal.node, STRING_NONE);
    pod_map_take(&map, &cluster.events[1], &arena);
    removal_locate(&removal, &map, &place);
    ck_assert_str_eq(intern_slice(removal.node).data, "n3");
    ck_assert_int_eq(place.gpu, POD_GPU_SOME);
    keyed_rows_release(&map.by_uid);
    keyed_rows_release(&map.by_name);
}
END_TEST

START_TEST(without_uids_pods_are_told_apart_by_name) {
    for (int i = 0; i < 3; i++) {
        struct kubernetes_object *event =
            cluster_evicted(&cluster, 10 + i, "e", i < 2 ? "w-0" : "w-1", "n1", "memory");
        event->object_uid = event->uid = cluster_text(NULL);
    }
    take_all();
    ck_assert_uint_eq(keyed_rows_count(&table.rows), 2);
    struct removal removal;
    for (uint32_t at = 0; at < 2;) {
        ck_assert(pod_removal_read(keyed_rows_next(&table.rows, &at), &removal));
        const char *uid = removal_evidence_uid(&removal, &arena);
        ck_assert_int_eq(strncmp(uid, "k8s-event:train/w-", 18), 0);
    }
}
END_TEST

START_TEST(zero_bytes_and_long_texts_are_cut) {
    static char text[2000];
    memset(text, 0xc3, sizeof text);
    struct kubernetes_object *event =
        cluster_evicted(&cluster, 12, "e1", "w-0", "n1", "The node was low on resource: memory. ");
    event->message = (struct slice){text, sizeof text};
    event->object_namespace = (struct slice){"a\0b", 3};
    struct removal removal = only();
    ck_assert_uint_lt(removal.note.size, REMOVAL_NOTE_MAX);
    ck_assert(slice_equal(removal.namespace, SLICE("a")));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pod_removal");
    TCase *cases = tcase_create("pod_removal");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, texts, 0, sizeof TEXTS / sizeof *TEXTS);
    tcase_add_test(cases, an_event_says_who_when_where_and_why);
    tcase_add_test(cases, an_event_is_preferred_to_a_condition_and_that_to_a_status);
    tcase_add_loop_test(cases, reasons_of_disruption, 0, 5);
    tcase_add_test(cases, termination_by_kubelet_needs_an_eviction);
    tcase_add_loop_test(cases, what_is_told_without_a_uid_is_of_the_pod_with_one, 0, 2);
    tcase_add_test(cases, what_was_judged_without_a_uid_is_moved);
    tcase_add_test(cases, another_time_is_another_removal);
    tcase_add_test(cases, marks_and_cancellations_in_any_order);
    tcase_add_test(cases, a_cancelled_mark_does_not_stand);
    tcase_add_test(cases, only_a_cancellation_is_nothing);
    tcase_add_test(cases, many_marks_keep_the_newest);
    tcase_add_test(cases, a_preempted_pod_names_its_node);
    tcase_add_test(cases, the_host_of_a_controller_is_no_node);
    tcase_add_test(cases, location_comes_from_the_map);
    tcase_add_test(cases, without_uids_pods_are_told_apart_by_name);
    tcase_add_test(cases, zero_bytes_and_long_texts_are_cut);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

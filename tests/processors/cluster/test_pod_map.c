// SPDX-License-Identifier: Apache-2.0
// pod_map: where a pod runs, told by Pods and by kubelets, in any order, within its bound.
#include "base/memory.h"
#include "pipeline/component/state.h"
#include "processors/cluster/pod_map.h"
#include "tests/processors/cluster.h"

#include <check.h>

static struct cluster cluster;
static struct pod_map map;
static struct arena arena;

static const struct state_row STATE[] = {
    STATE_ROWS(struct pod_map, by_uid, "uid", POD_ROWS),
    STATE_ROWS(struct pod_map, by_name, "name", POD_ROWS),
};

static void begin(void) {
    map = (struct pod_map){.bound.max = 64};
    state_rows_init(STATE, 2, &map);
}

static void setup(void) {
    cluster.count = 0;
    arena_init(&arena, 4096);
    begin();
}

static void teardown(void) {
    state_rows_release(STATE, 2, &map);
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void take_all(void) {
    for (uint32_t i = 0; i < cluster.count; i++)
        pod_map_take(&map, &cluster.events[i], &arena);
}

static const char *node_of(const char *uid, const char *name) {
    struct pod_place place;
    if (!pod_map_find(&map, cluster_text(uid), SLICE("train"), cluster_text(name), &place))
        return "(unknown)";
    return place.node == STRING_NONE ? "(none)" : intern_slice(place.node).data;
}

START_TEST(pods_tell_node_job_and_gpu) {
    struct pod_place place;
    cluster_pod(&cluster, 0, "w-0", "n1");
    cluster_pod(&cluster, 0, "w-1", NULL);
    cluster.objects[1].has_gpu = false;
    cluster.objects[1].job_label = cluster_text(NULL);
    take_all();
    ck_assert(pod_map_find(&map, SLICE("uid-w-0"), SLICE(""), SLICE(""), &place));
    ck_assert_str_eq(intern_slice(place.node).data, "n1");
    ck_assert_str_eq(intern_slice(place.job).data, "llama-pt");
    ck_assert_int_eq(place.gpu, POD_GPU_SOME);
    ck_assert(pod_map_find(&map, SLICE("uid-w-1"), SLICE(""), SLICE(""), &place));
    ck_assert_uint_eq(place.node, STRING_NONE);
    ck_assert_uint_eq(place.job, STRING_NONE);
    ck_assert_int_eq(place.gpu, POD_GPU_NONE);
    ck_assert(!pod_map_find(&map, SLICE("uid-w-2"), SLICE("train"), SLICE("w-2"), &place));
    ck_assert_int_eq(place.gpu, POD_GPU_UNKNOWN);
}
END_TEST

// A Pod in which no time stands, read later: what says when counts.
START_TEST(what_nobody_dated_is_older) {
    cluster_pod(&cluster, _i == 0 ? 0 : 9, "w-0", _i == 0 ? "n1" : "n2");
    cluster_pod(&cluster, _i == 0 ? 9 : 0, "w-0", _i == 0 ? "n2" : "n1");
    cluster.events[1 - _i].timeless = true;
    take_all();
    ck_assert_str_eq(node_of(NULL, "w-0"), "n1");
}
END_TEST

START_TEST(kubelets_tell_the_node_and_others_do_not) {
    struct pod_place place;
    cluster_event(&cluster, 1, "e1", "Pulled", "w-0", "n1", "x");
    struct kubernetes_object *other = cluster_event(&cluster, 2, "e2", "Evicted", "w-1", "n2", "x");
    other->component = SLICE("taint-eviction-controller");
    other = cluster_event(&cluster, 3, "e3", "Rebooted", "w-2", "n3", "x");
    other->object_kind = SLICE("Node");
    cluster_node(&cluster, 4, "n4", "MemoryPressure", "True");
    take_all();
    ck_assert_str_eq(node_of("uid-w-0", NULL), "n1");
    ck_assert(pod_map_find(&map, SLICE("uid-w-0"), SLICE(""), SLICE(""), &place));
    ck_assert_int_eq(place.gpu, POD_GPU_UNKNOWN);
    ck_assert_str_eq(node_of("uid-w-1", NULL), "(unknown)");
    ck_assert_str_eq(node_of("uid-w-2", NULL), "(unknown)");
}
END_TEST

START_TEST(schedulers_tell_where_they_put_it) {
    static const char *const messages[] = {
        "Successfully assigned train/w-0 to gpu-node-07",
        "Successfully assigned train/w-1 to gpu-node-08.",
        "Successfully assigned train/w-2",
        "Successfully assigned train/w-3 to somewhere else",
        "0/3 nodes are available to w-4",
        "Successfully assigned train/w-5 to ",
    };
    static const char *const nodes[] = {"gpu-node-07", "gpu-node-08", "(unknown)",
                                        "(unknown)",   "(unknown)",   "(unknown)"};
    static char names[6][8], uids[6][16];
    for (int i = 0; i < 6; i++) {
        snprintf(names[i], sizeof names[i], "w-%c", '0' + i);
        snprintf(uids[i], sizeof uids[i], "uid-w-%c", '0' + i);
        cluster_event(&cluster, i, "e", "Scheduled", names[i], NULL, messages[i])->component =
            SLICE("default-scheduler");
    }
    take_all();
    for (int i = 0; i < 6; i++)
        ck_assert_str_eq(node_of(uids[i], NULL), nodes[i]);
}
END_TEST

START_TEST(a_name_means_its_last_pod_but_not_to_who_knows_the_uid) {
    struct kubernetes_object *old = cluster_pod(&cluster, 1, "w-0", "n1");
    old->uid = SLICE("old");
    struct kubernetes_object *new = cluster_pod(&cluster, 9, "w-0", "n2");
    new->uid = SLICE("new");
    take_all();
    ck_assert_str_eq(node_of("old", "w-0"), "n1");
    ck_assert_str_eq(node_of("new", "w-0"), "n2");
    ck_assert_str_eq(node_of(NULL, "w-0"), "n2");
    ck_assert_str_eq(node_of("third", "w-0"), "(unknown)");
}
END_TEST

START_TEST(names_of_other_namespaces_are_others) {
    struct pod_place place;
    cluster_pod(&cluster, 1, "w-0", "n1");
    take_all();
    ck_assert(!pod_map_find(&map, SLICE(""), SLICE("trainw"), SLICE("-0"), &place));
    ck_assert(!pod_map_find(&map, SLICE(""), SLICE("other"), SLICE("w-0"), &place));
    ck_assert(pod_map_find(&map, SLICE(""), SLICE("train"), SLICE("w-0"), &place));
}
END_TEST

START_TEST(a_pod_that_waits_does_not_forget_its_node) {
    cluster_pod(&cluster, 1, "w-0", "n1");
    cluster_pod(&cluster, 5, "w-0", NULL);
    take_all();
    ck_assert_str_eq(node_of("uid-w-0", NULL), "n1");
}
END_TEST

START_TEST(order_does_not_matter) {
    cluster_pod(&cluster, 5, "w-0", "n1");
    cluster_pod(&cluster, 5, "w-0", "n2");
    cluster_pod(&cluster, 1, "w-0", "n3");
    cluster_pod(&cluster, 9, "w-0", NULL)->job_label = cluster_text(NULL);
    for (uint32_t i = 0; i < 24; i++) {
        uint32_t left[] = {0, 1, 2, 3}, code = i;
        state_rows_release(STATE, 2, &map);
        begin();
        for (uint32_t count = 4; count > 0; count--) {
            uint32_t pick = code % count;
            code /= count;
            pod_map_take(&map, &cluster.events[left[pick]], &arena);
            left[pick] = left[count - 1];
        }
        struct pod_place place;
        ck_assert(pod_map_find(&map, SLICE("uid-w-0"), SLICE(""), SLICE(""), &place));
        ck_assert_str_eq(intern_slice(place.node).data, "n2");
        ck_assert_uint_eq(place.job, STRING_NONE);
    }
}
END_TEST

START_TEST(the_bound_holds_and_the_newest_stay) {
    static char names[1000][16];
    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof names[i], "w-%d", i);
        cluster_pod(&cluster, i, names[i], "n1");
    }
    take_all();
    ck_assert_uint_le(keyed_rows_count(&map.by_uid), 64);
    ck_assert_uint_le(keyed_rows_count(&map.by_name), 64);
    ck_assert_uint_eq(map.bound.evicted,
                      2000 - keyed_rows_count(&map.by_uid) - keyed_rows_count(&map.by_name));
    ck_assert_str_eq(node_of("uid-w-999", NULL), "n1");
    ck_assert_str_eq(node_of("uid-w-950", NULL), "n1");
    ck_assert_str_eq(node_of("uid-w-100", NULL), "(unknown)");
}
END_TEST

START_TEST(state_names_its_strings) {
    struct state_list list = {0};
    state_rows_list(STATE, 2, &map, &list);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_uint_eq(list.entries[0].string_count, 2);
    cluster_pod(&cluster, 1, "w-0", "n1");
    take_all();
    // As after a load: the chains are made anew from the rows.
    state_rows_restored(STATE, 2, &map);
    ck_assert_str_eq(node_of("uid-w-0", NULL), "n1");
    ck_assert_str_eq(node_of(NULL, "w-0"), "n1");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pod_map");
    TCase *cases = tcase_create("pod_map");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, pods_tell_node_job_and_gpu);
    tcase_add_test(cases, kubelets_tell_the_node_and_others_do_not);
    tcase_add_loop_test(cases, what_nobody_dated_is_older, 0, 2);
    tcase_add_test(cases, schedulers_tell_where_they_put_it);
    tcase_add_test(cases, a_name_means_its_last_pod_but_not_to_who_knows_the_uid);
    tcase_add_test(cases, names_of_other_namespaces_are_others);
    tcase_add_test(cases, a_pod_that_waits_does_not_forget_its_node);
    tcase_add_test(cases, order_does_not_matter);
    tcase_add_test(cases, the_bound_holds_and_the_newest_stay);
    tcase_add_test(cases, state_names_its_strings);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// node_fault: which parts of machines failed, what names the fault, and what is none.
#include "cli/component_list.h"
#include "pipeline/model/observation.h"
#include "tests/processors/cluster_fixture.h"

static struct fact facts[CLUSTER_EVENTS_MAX][6];
static struct observation said[CLUSTER_EVENTS_MAX];

static void setup(void) {
    fixture_begin(&processor_node_fault);
}

static struct observation *seen(double seconds, const char *node, enum observation_kind kind,
                                const char *text) {
    struct observation *observation = &said[cluster.count];
    *observation =
        (struct observation){.kind = kind, .text = slice_of(text), .facts = facts[cluster.count]};
    node_event_add(&cluster, seconds, node, EVENT_OBSERVATION)->observation = observation;
    return observation;
}

// Facts stand in the order of their keys.
static void with(struct observation *observation, struct fact fact) {
    struct fact *list = facts[observation - said];
    uint32_t at = observation->fact_count++;
    for (; at > 0 && list[at - 1].key > fact.key; at--)
        list[at] = list[at - 1];
    list[at] = fact;
}

static void with_text(struct observation *observation, enum fact_key key, const char *text) {
    with(observation, (struct fact){.key = key, .text = slice_of(text)});
}

static struct observation *fault(double seconds, const char *node, const char *cause,
                                 const char *text) {
    struct observation *observation = seen(seconds, node, OBSERVATION_NODE_FAULT, text);
    with_text(observation, FACT_CAUSE, cause);
    return observation;
}

// An oops before a panic is one fault, which the panic names.
START_TEST(panic) {
    seen(100, "n1", OBSERVATION_KERNEL_OOPS, "BUG: unable to handle page fault");
    seen(100.1, "n1", OBSERVATION_KERNEL_PANIC, "Kernel panic - not syncing: Fatal exception");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"pattern\":\"node_fault\",\"kind\":\"kernel_panic\",\"state\":\"open\","
         "\"severity\":\"critical\",\"completeness\":\"full\",\"confidence\":88");
    says(lines, "Kernel panic on n1: Kernel panic - not syncing: Fatal exception");
    says(lines, "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"culprit\"}");
    says(lines, "\"uid\":\"node_fault:n1:kernel_oops::1794992500000000000\"");
    says(lines, "\"action\":\"drain_node\"");
}
END_TEST

static const struct {
    enum observation_kind kind;
    int corrected; // -1: not said
    const char *severity;
    bool is_pci;
    uint32_t verdicts;
} ERRORS[] = {
    {OBSERVATION_MEMORY_ERROR, 0, NULL, false, 1},
    {OBSERVATION_MEMORY_ERROR, 1, NULL, false, 0},
    {OBSERVATION_MACHINE_CHECK, 0, NULL, false, 1},
    {OBSERVATION_MACHINE_CHECK, 1, NULL, false, 0},
    {OBSERVATION_MACHINE_CHECK, -1, NULL, false, 0}, // "Machine check events logged"
    {OBSERVATION_MACHINE_CHECK, -1, "fatal", false, 1},
    {OBSERVATION_MACHINE_CHECK, -1, "recoverable", false, 1},
    {OBSERVATION_MACHINE_CHECK, -1, "corrected", false, 0},
    {OBSERVATION_MACHINE_CHECK, -1, "fatal", true, 0}, // pcie_aer's
    {OBSERVATION_SOFT_LOCKUP, -1, NULL, false, 0},
};

START_TEST(errors_that_were_not_corrected) {
    struct observation *line = seen(100, "n1", ERRORS[_i].kind, "as it stood");
    if (ERRORS[_i].corrected >= 0)
        with(line, (struct fact){.key = FACT_CORRECTED, .yes = ERRORS[_i].corrected == 1});
    if (ERRORS[_i].severity != NULL)
        with_text(line, FACT_SEVERITY, ERRORS[_i].severity);
    if (ERRORS[_i].is_pci)
        with(line, (struct fact){.key = FACT_PCI, .address = node_pci("0000:3b:00")});
    run();
    ck_assert_uint_eq(detector.verdict_count, ERRORS[_i].verdicts);
}
END_TEST

// A GPU that is called by a name, and one by its address and a name.
START_TEST(one_gpu) {
    with_text(fault(100, NULL, "gpu_firmware", "Heartbeat timed out"), FACT_DEVICE, "GPU6");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "GPU6 of an unnamed node does not answer");
    says(lines, "{\"kind\":\"gpu\",\"name\":\"GPU6\",\"role\":\"culprit\"}");
    says(lines, "\"completeness\":\"partial\"");
}
END_TEST

START_TEST(one_gpu_by_two_names) {
    with_text(fault(100, "n1", "gpu_unusable", "no answer"), FACT_DEVICE, "hl2");
    struct observation *line = fault(101, "n1", "gpu_unusable", "NOT usable");
    with(line, (struct fact){.key = FACT_GPU, .address = node_pci("0000:1a:00")});
    with_text(line, FACT_DEVICE, "hl2");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "GPU hl2 (0000:1a:00) of n1 could not be started");
    says(lines, "{\"kind\":\"gpu\",\"name\":\"n1/0000:1a:00\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(several_gpus) {
    with_text(fault(100, "n1", "gpu_unusable", "x"), FACT_DEVICE, "hl2");
    with_text(fault(100, "n1", "gpu_unusable", "x"), FACT_DEVICE, "hl4");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "2 GPUs of n1 could not be started");
    says(lines, "{\"kind\":\"node\",\"name\":\"n1\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"gpu\",\"name\":\"n1/hl4\",\"role\":\"suspect\"}");
}
END_TEST

// Without a node those are to blame of which the gravest was said.
START_TEST(several_gpus_of_an_unnamed_node) {
    with_text(fault(100, NULL, "gpu_worn", "x"), FACT_DEVICE, "GPU1");
    with_text(fault(100, NULL, "gpu_worn", "x"), FACT_DEVICE, "GPU2");
    with_text(fault(100, NULL, "gpu_repair_waits", "x"), FACT_DEVICE, "GPU4");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "{\"kind\":\"gpu\",\"name\":\"GPU2\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"gpu\",\"name\":\"GPU4\",\"role\":\"suspect\"}");
}
END_TEST

// Of a report of many lines its reader says what is wrong.
START_TEST(what_a_report_says) {
    struct observation *line = fault(100, "n1", "gpu_worn", "GPU 00000000:9B:00.0");
    with(line, (struct fact){.key = FACT_GPU, .address = node_pci("0000:9b:00")});
    with_text(line, FACT_MESSAGE, "Retired Pages: 61");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "GPU 0000:9b:00 of n1: memory is used up that replaces what failed: Retired Pages: "
         "61");
    says(lines, "\"action\":\"replace_hardware\"");
}
END_TEST

// The gravest names it, of pods as of other parts.
START_TEST(pods) {
    fault(100, "n1", "container_oom", "TaskOOM event");
    fault(110, "n1", "pods_evicted", "pod is evicted successfully");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"pods_evicted\"");
    says(lines, "\"action\":\"fix_workload\"");
}
END_TEST

// Parts fail by themselves, and what is further apart than the burst is another fault.
START_TEST(parts_and_bursts) {
    fault(100, "n1", "fabric_manager", "x");
    fault(100, "n1", "iommu", "x");
    fault(280, "n1", "fabric_manager", "x");
    fault(460.1, "n1", "fabric_manager", "x");
    fault(100, "n2", "fabric_manager", "x");
    fault(100, "n1", "no such cause", "x");
    seen(100, "n1", OBSERVATION_NODE_FAULT, "without a cause");
    run();
    ck_assert_uint_eq(detector.verdict_count, 4);
}
END_TEST

// What nothing dates is told, however new its file is, and whose time it has.
START_TEST(undated) {
    fault(100, "n1", "less_hardware", "Low RealMemory");
    cluster.events[cluster.count - 1].timeless = true;
    cluster.events[cluster.count - 1].time_of = TIME_OF_FILE;
    seen(50, "n2", OBSERVATION_KERNEL_PANIC, "Kernel panic - not syncing: x");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "\"culprit.time_of\":\"file\"");
}
END_TEST

static const struct {
    const char *cause, *restart; // NULL: nothing is said of it
} RESTARTS[] = {
    {"gpu_lost", "elsewhere"},
    {"container_oom", "in_vain"},
    {"power_supply", NULL},
};

START_TEST(whether_a_restart_helps) {
    fault(100, "n1", RESTARTS[_i].cause, "x");
    const char *lines = run();
    ck_assert_int_eq(strstr(lines, "culprit.restart") != NULL, RESTARTS[_i].restart != NULL);
    if (RESTARTS[_i].restart != NULL)
        says(lines, RESTARTS[_i].restart);
}
END_TEST

// Any order and size of batches gives the same.
START_TEST(any_order) {
    char *first = NULL;
    for (int i = 0; i < 12; i++) {
        fault(100 + i * 100, i % 2 == 0 ? "n1" : "n2", i % 3 == 0 ? "iommu" : "multicast", "x");
        with_text(fault(100 + i * 37, "n1", "gpu_lost", "y"), FACT_DEVICE, "GPU1");
    }
    for (uint32_t round = 0; round < 4; round++) {
        if (round > 0)
            node_shuffle(&cluster, round);
        detector_start(&detector);
        for (uint32_t at = 0, size = 1 + 6 * round; at < cluster.count; at += size)
            detector_feed(&detector, &cluster.events[at],
                          cluster.count - at < size ? cluster.count - at : size);
        detector_finish(&detector);
        if (first == NULL)
            first = memory_copy_text(detector_lines(&detector), detector.lines.size);
        else
            ck_assert_str_eq(detector_lines(&detector), first);
        detector_close(&detector);
        detector = detector_open(&processor_node_fault);
    }
    detector_start(&detector);
    memory_give(first);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("node_fault");
    TCase *cases = tcase_create("node_fault");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, panic);
    tcase_add_loop_test(cases, errors_that_were_not_corrected, 0, sizeof ERRORS / sizeof *ERRORS);
    tcase_add_test(cases, one_gpu);
    tcase_add_test(cases, one_gpu_by_two_names);
    tcase_add_test(cases, several_gpus);
    tcase_add_test(cases, several_gpus_of_an_unnamed_node);
    tcase_add_test(cases, what_a_report_says);
    tcase_add_test(cases, pods);
    tcase_add_test(cases, parts_and_bursts);
    tcase_add_test(cases, undated);
    tcase_add_loop_test(cases, whether_a_restart_helps, 0, sizeof RESTARTS / sizeof *RESTARTS);
    tcase_add_test(cases, any_order);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

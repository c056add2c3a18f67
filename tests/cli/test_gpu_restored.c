// SPDX-License-Identifier: Apache-2.0
// thermal_throttle, pcie_aer, gpu_fault and fabric_link go on after a restart as if there had been
// none, wherever it comes and whatever numbers the strings have in the new process.
#include "cli/component_list.h"
#include "tests/processors/state_copy.h"
#include "tests/support/detector_golden.h"

static const struct {
    const struct component_type *type;
    const char *name;
} CASES[] = {
    {&processor_pcie_aer, "pcie_aer/correctable_storm"},
    {&processor_pcie_aer, "pcie_aer/fatal_then_off_the_bus"},
    {&processor_pcie_aer, "pcie_aer/negative_rare_and_masked"},
    {&processor_pcie_aer, "pcie_aer/partial_port_report_only"},
    {&processor_gpu_fault, "gpu_fault/amd_reset_failed"},
    {&processor_gpu_fault, "gpu_fault/errors_then_lost"},
    {&processor_gpu_fault, "gpu_fault/partial_metric_only"},
    {&processor_fabric_link, "fabric_link/ethernet_flapping"},
    {&processor_fabric_link, "fabric_link/infiniband_port_down"},
    {&processor_fabric_link, "fabric_link/nvswitch_fatal"},
    {&processor_fabric_link, "fabric_link/symbol_errors_to_the_maximum"},
    {&processor_thermal_throttle, "thermal_throttle/negative_power_and_idle"},
    {&processor_thermal_throttle, "thermal_throttle/one_gpu_hw_thermal"},
    {&processor_thermal_throttle, "thermal_throttle/partial_counter_only"},
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

static void teardown(void) {
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void list_state(const struct detector *detector, struct state_list *list) {
    *list = (struct state_list){0};
    component_list_state(detector->type, detector->instance, list);
}

// Another process: the strings are forgotten, others come first.
static void restart(struct detector *detector) {
    struct state_copy copy = {0};
    struct state_list list;
    list_state(detector, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_save(&copy, &list.entries[i]);
    char *lines = memory_copy_text(detector->lines.data == NULL ? "" : detector->lines.data,
                                   detector->lines.size);
    size_t size = detector->lines.size;
    uint64_t newest_ns = detector->newest_ns;
    const struct component_type *type = detector->type;
    detector_close(detector);
    intern_release();
    intern(SLICE("another string"));
    intern(SLICE("and one more"));
    *detector = detector_open(type);
    detector_start(detector);
    list_state(detector, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_load(&copy, &copy.entries[i], &list.entries[i]);
    component_restored(type, detector->instance);
    detector->newest_ns = newest_ns;
    buffer_append(&detector->lines, (struct slice){lines, size});
    memory_give(lines);
    state_copy_release(&copy);
}

// Judged after each tenth line; with a restart behind line `cut`, or none.
static char *run(const struct component_type *type, const struct golden_case *golden,
                 uint32_t cut) {
    struct detector detector = detector_open(type);
    detector_start(&detector);
    void *state = memory_zero(1, decoder_tagged.state_size);
    for (uint32_t at = 0; at < golden->line_count; at++) {
        struct event events[GOLDEN_EVENTS_PER_LINE];
        uint32_t count = golden_decode(golden, at, state, &detector.arena, events);
        detector_feed(&detector, events, count);
        if (at % 10 == 9)
            detector_judge(&detector, detector.newest_ns - 1000000000, false);
        if (at + 1 == cut)
            restart(&detector);
    }
    detector_finish(&detector);
    const char *lines = detector_lines(&detector);
    char *kept = memory_copy_text(lines, strlen(lines));
    detector_close(&detector);
    decoder_tagged.release(state);
    memory_give(state);
    return kept;
}

START_TEST(anywhere) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/golden/detectors/%s", TESTS_DIR, CASES[_i].name);
    struct golden_case golden = golden_open(folder);
    char *whole = run(CASES[_i].type, &golden, 0);
    for (uint32_t cut = 1; cut < golden.line_count; cut++) {
        char *restarted = run(CASES[_i].type, &golden, cut);
        ck_assert_str_eq(restarted, whole);
        memory_give(restarted);
    }
    ck_assert((strstr(CASES[_i].name, "negative") != NULL) == (whole[0] == '\0'));
    memory_give(whole);
    golden_close(&golden);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("gpu_restored");
    TCase *cases = tcase_create("restart");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, anywhere, 0, CASE_COUNT);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// xid_correlation over the lines that a kernel may write of an Xid, from their text to its verdict.
#include "cli/component_list.h"
#include "tests/support/detector_golden.h"

static void teardown(void) {
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// What the kernel's text may look like, and the code that the pod's removal is laid to; 0: to none.
static const struct {
    const char *message;
    unsigned code;
} SHAPES[] = {
    {"NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s", 119},
    {"NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off", 79},
    {"NVRM: Xid (0000:9b:00): 79, GPU has fallen off the bus.", 79},
    {"NVRM: Xid (PCI:0000:9b:00 GPU-I:05): 94, pid=7, name=python3, Contained: SM", 94},
    {"NVRM: Xid (PCI:0000:9b:00): 46", 46},
    {"NVRM: Xid (PCI:0000:9b:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x1 0x2)", 149},
    {"NVRM: Xid (PCI:0000:9b:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 09 (0x1 0x2)", 0},
    {"NVRM: Xid (PCI:0000:9b:00): 48, pid=1, name=a,b,79, An uncorrectable error", 48},
    {"NVRM: Xid (PCI:0000:9b:00): 48, pid=1, name=pyth", 48},
    {"NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.", 79},
    {"NVRM: Xid (PCI:0000:9b:00): 154 (", 0},
    {"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1", 0},
    {"NVRM: Xid (PCI:0000:9b:00", 0},
    {"nvidia-nvswitch3: SXid (PCI:0000:9b:00.0): 20034, Fatal, Link 63", 0},
};

START_TEST(all_line_shapes) {
    char line[512], want[64];
    snprintf(line, sizeof line,
             "{\"source\":\"kmsg\",\"timestamp_ns\":1794992500000000000,\"host.name\":\"n1\","
             "\"message\":\"%s\"}",
             SHAPES[_i].message);
    struct slice lines[] = {
        SLICE("{\"source\":\"k8s_watch\",\"observed_time_ns\":1794992400000000000,\"type\":"
              "\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
              "\"name\":\"w-0\",\"namespace\":\"train\",\"uid\":\"u\"},\"spec\":{\"nodeName\":"
              "\"n1\",\"containers\":[{\"name\":\"t\",\"resources\":{\"limits\":{"
              "\"nvidia.com/gpu\":\"8\"}}}]}}}"),
        slice_of(line),
        SLICE("{\"source\":\"k8s_watch\",\"observed_time_ns\":1794992536000000000,\"type\":"
              "\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{"
              "\"name\":\"e\",\"namespace\":\"train\",\"uid\":\"e-1\"},\"involvedObject\":{"
              "\"kind\":\"Pod\",\"name\":\"w-0\",\"namespace\":\"train\",\"uid\":\"u\"},"
              "\"reason\":\"TaintManagerEviction\",\"message\":\"Marking for deletion Pod "
              "train/w-0\",\"lastTimestamp\":\"2026-11-18T09:02:16Z\"}}"),
    };
    struct golden_case story = {.lines = lines, .line_count = 3};
    struct detector detector = detector_open(&processor_xid_correlation);
    detector_start(&detector);
    golden_run(&story, &detector, 1);
    ck_assert_msg(detector.verdict_count == (SHAPES[_i].code != 0), "%s", SHAPES[_i].message);
    snprintf(want, sizeof want, "\"nvidia.xid.code\":\"%u\"", SHAPES[_i].code);
    if (SHAPES[_i].code != 0)
        ck_assert_ptr_nonnull(strstr(detector_lines(&detector), want));
    detector_close(&detector);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("xid_line_shapes");
    TCase *cases = tcase_create("shapes");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, all_line_shapes, 0, sizeof SHAPES / sizeof *SHAPES);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// The kernel log's decoder: what the driver's lines say, in every shape, and what broken ones do.
#include "receivers/decode/kernel_log/xid.h"
#include "tests/receivers/decode/kernel_log/kernel_fixture.h"

static struct kernel_source source;

static void setup(void) {
    source = kernel_open(KERNEL_MORNING);
}

static void teardown(void) {
    kernel_close(&source);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define STAMP "2026-01-31T09:15:04.5Z node1 kernel: "

static const struct {
    const char *line;
    const char *address;
    uint32_t code;
    int64_t pid;
    const char *process;
    const char *detail;
} XIDS[] = {
    {"NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting",
     "0000:9b:00.0", 119, 2024380, "nvidia-smi", "Timeout after 6s of waiting"},
    {"NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
     "0000:9b:00.0", 79, -1, "", "GPU has fallen off the bus."},
    {"NVRM: Xid (0000:03:00): 13, 0003 00000000 0000a1c0 00000518 00000000", "0000:03:00.0", 13, -1,
     "", "0003 00000000 0000a1c0 00000518 00000000"},
    {"NVRM: Xid (PCI:0000:45:00 GPU-I:05): 94, pid=51702, name=python3, Contained: SM (0x1,0x3)",
     "0000:45:00.0", 94, 51702, "python3", "Contained: SM (0x1,0x3)"},
    {"NVRM: Xid (PCI:0000:04:00): 46", "0000:04:00.0", 46, -1, "", ""},
    {"NVRM: Xid (PCI:0000:04:00): 46  ", "0000:04:00.0", 46, -1, "", ""},
    {"NVRM: Xid (PCI:0000:9b:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x1 0x2 0x3)",
     "0000:9b:00.0", 149, -1, "", "NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x1 0x2 0x3)"},
    {"NVRM: Xid (PCI:0000:9b:00): 149, pid=12, name=a b, NETIR_LINK_EVT Nonfatal", "0000:9b:00.0",
     149, 12, "a b", "NETIR_LINK_EVT Nonfatal"},
    {"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU "
     "Reset Required)",
     "0000:9b:00.0", 154, -1, "",
     "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"},
    {"NVRM: Xid (PCI:0000:c9:00): 64, pid=9001, name=my,prog, Row Remapper: Error", "0000:c9:00.0",
     64, 9001, "my,prog", "Row Remapper: Error"},
    // Cut in the name, and behind a key.
    {"NVRM: Xid (PCI:0000:c9:00): 64, pid=9001, name=pyth", "0000:c9:00.0", 64, 9001, "pyth", ""},
    {"NVRM: Xid (PCI:0000:c9:00): 64, pid=9001, name=", "0000:c9:00.0", 64, 9001, "", ""},
    {"NVRM: Xid (PCI:0000:c9:00): 64, pid=", "0000:c9:00.0", 64, -1, "", ""},
    {"NVRM: Xid (PCI:0000:c9:00): 64, pid=99999999999999999999, x", "0000:c9:00.0", 64, -1, "",
     "x"},
    {"NVRM: Xid (PCI:0001:0A:1F): 48,no blank", "0001:0a:1f.0", 48, -1, "", "no blank"},
    {"NVRM: Xid (PCI:00000000:9B:00.0): 48, x", "0000:9b:00.0", 48, -1, "", "x"},
    {"[drm] NVRM: Xid (PCI:0000:9b:00): 31, pid=1, name=a, MMU Fault: faulted @ 0x7f_10000000",
     "0000:9b:00.0", 31, 1, "a", "MMU Fault: faulted @ 0x7f_10000000"},
};

START_TEST(xid_shapes) {
    char line[512];
    snprintf(line, sizeof line, STAMP "%s", XIDS[_i].line);
    const struct kernel_line *taken = kernel_take_text(&source, line);
    ck_assert_msg(taken != NULL, "%s was not taken", XIDS[_i].line);
    ck_assert_int_eq(taken->kind, KERNEL_XID);
    kernel_check_address(taken->address, XIDS[_i].address);
    ck_assert_uint_eq(taken->code, XIDS[_i].code);
    ck_assert_int_eq(taken->pid, XIDS[_i].pid);
    kernel_check_text(taken->process, XIDS[_i].process);
    kernel_check_text(taken->detail, XIDS[_i].detail);
    ck_assert_uint_eq(source.event.time_ns, KERNEL_MORNING + 500000000);
    kernel_check_text(intern_slice(source.event.node), "node1");
    ck_assert_int_eq(source.event.rank, RANK_NONE);
}
END_TEST

static const char *const NOTHING[] = {
    "NVRM: Xid",
    "NVRM: Xid (",
    "NVRM: Xid (PCI:0000:9b:00)",
    "NVRM: Xid (PCI:0000:9b:00):",
    "NVRM: Xid (PCI:0000:9b:00): ",
    "NVRM: Xid (PCI:0000:9b:00): 154 (",
    "NVRM: Xid (PCI:0000:9b:00): 0, x",
    "NVRM: Xid (PCI:0000:9b:00): 7x, x",
    "NVRM: Xid (PCI:0000:9b:00): 9999999, x",
    "NVRM: Xid (PCI:0000:9b): 79, x",
    "NVRM: Xid (PCI:0000:9b:00 79, x",
    "NVRM: Xid (): 79, x",
    "NVRM: Xid (PCI:zzzz:9b:00): 79, x",
    "NVRM: GPU at PCI:0000:91:00: GPU-",
    "NVRM: GPU at PCI:0000:91:00: GPU-12",
    "NVRM: GPU at GPU-2944805f-144c-45a1",
    "NVRM: GPU at : GPU-2944805f-144c-45a1",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
    "NVRM: ",
    "NVRM: GPU has fallen off the bus",
    "nvidia-nvswitch3: SXid (PCI:0000:05:00.0)",
    "nvidia-nvswitch3: link is up",
    "usb 1-1: new high-speed USB device number 2",
    "",
    " ",
};

START_TEST(broken_and_other_lines_are_nothing) {
    char line[512];
    snprintf(line, sizeof line, STAMP "%s", NOTHING[_i]);
    ck_assert_ptr_null(kernel_take_text(&source, line));
    ck_assert_msg(source.category == DECODE_NOTHING, "%s: category %d", NOTHING[_i],
                  source.category);
    ck_assert_uint_eq(source.event.time_ns, KERNEL_MORNING + 500000000);
}
END_TEST

START_TEST(uuid_line) {
    const struct kernel_line *taken = kernel_take_text(
        &source, STAMP "NVRM: GPU at PCI:0000:91:00: GPU-2944805f-144c-45a1-a380-1e5d5fe81354");
    ck_assert_ptr_nonnull(taken);
    ck_assert_int_eq(taken->kind, KERNEL_GPU_UUID);
    kernel_check_address(taken->address, "0000:91:00.0");
    kernel_check_text(taken->uuid, "GPU-2944805f-144c-45a1-a380-1e5d5fe81354");
}
END_TEST

START_TEST(switch_line) {
    const struct kernel_line *taken = kernel_take_text(
        &source, STAMP "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM");
    ck_assert_ptr_nonnull(taken);
    ck_assert_int_eq(taken->kind, KERNEL_SXID);
    kernel_check_address(taken->address, "0000:05:00.0");
    ck_assert_uint_eq(taken->code, 20034);
    kernel_check_text(taken->detail, "Fatal, Link 63 LTSSM");
}
END_TEST

START_TEST(lost_gpu_without_a_number) {
    static const char *const lines[] = {
        STAMP "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.",
        STAMP "NVRM: GPU at PCI:0000:18:00.0 has fallen off the bus.",
        STAMP
        "NVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:2330) installed in this system has "
        "fallen off the bus and is not responding to commands.",
        STAMP
        "NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: (PCI ID: 10de:2330) installed\nNVRM: "
        "fallen off the bus and is not responding to commands.",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct kernel_line *taken = kernel_take_text(&source, lines[i]);
        ck_assert_msg(taken != NULL, "%s", lines[i]);
        ck_assert_int_eq(taken->kind, KERNEL_GPU_LOST);
        kernel_check_address(taken->address, "0000:18:00.0");
    }
}
END_TEST

START_TEST(lost_gpu_over_three_lines) {
    ck_assert_ptr_null(kernel_take_text(&source, STAMP "NVRM: The NVIDIA GPU 0000:18:00.0"));
    ck_assert_ptr_null(
        kernel_take_text(&source, STAMP "NVRM: (PCI ID: 10de:2330) installed in this system has"));
    const struct kernel_line *taken = kernel_take_text(
        &source, STAMP "NVRM: fallen off the bus and is not responding to commands.");
    ck_assert_ptr_nonnull(taken);
    ck_assert_int_eq(taken->kind, KERNEL_GPU_LOST);
    kernel_check_address(taken->address, "0000:18:00.0");
    // The first line counts once, for its own host, and for two seconds.
    ck_assert_ptr_null(kernel_take_text(&source, STAMP "NVRM: fallen off the bus"));
    ck_assert_ptr_null(kernel_take_text(&source, STAMP "NVRM: The NVIDIA GPU 0000:18:00.0"));
    ck_assert_ptr_null(
        kernel_take_text(&source, "2026-01-31T09:15:04.5Z node2 kernel: NVRM: fallen off the bus"));
    ck_assert_ptr_null(kernel_take_text(&source, STAMP "NVRM: The NVIDIA GPU 0000:18:00.0"));
    ck_assert_ptr_null(
        kernel_take_text(&source, "2026-01-31T09:15:07Z node1 kernel: NVRM: fallen off the bus"));
}
END_TEST

START_TEST(pcie_lines_go_to_their_parser) {
    const struct kernel_line *taken =
        kernel_take_text(&source, STAMP
                         "nvidia 0000:9b:00.0: AER: PCIe Bus Error: severity=Corrected, type=Data "
                         "Link Layer, (Receiver ID)");
    ck_assert_ptr_nonnull(taken);
    ck_assert_int_eq(taken->kind, KERNEL_AER);
    kernel_check_address(taken->address, "0000:9b:00.0");
}
END_TEST

START_TEST(bytes_that_are_no_text_become_question_marks) {
    const struct kernel_line *taken = kernel_take_text(
        &source, STAMP "NVRM: Xid (PCI:0000:9b:00): 48, pid=1, name=a\xff\xc3, b\x80 \xc3\xa9");
    ck_assert_ptr_nonnull(taken);
    kernel_check_text(taken->process, "a??");
    kernel_check_text(taken->detail, "b? \xc3\xa9");
}
END_TEST

START_TEST(tagged_line) {
    uint64_t state[KERNEL_STATE_SIZE / 8 + 1] = {0};
    const char *line =
        "{\"message\": \"NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has "
        "fallen off the bus.\", \"source\": \"kmsg\", \"host.name\": \"h\", \"k8s.node.name\": "
        "\"n7\", \"timestamp_ns\": 1794992500482000001, \"priority\": 3}";
    ck_assert_int_eq(
        kernel_tagged(state, slice_of(line), &source.arena, &source.event, &source.fault),
        DECODE_OK);
    ck_assert_uint_eq(source.event.time_ns, UINT64_C(1794992500482000001));
    kernel_check_text(intern_slice(source.event.node), "n7");
    ck_assert_uint_eq(source.event.kernel->code, 79);
    const char *faulty[] = {"{\"timestamp_ns\": 5}", "{\"timestamp_ns\": 5, \"message\": 7}",
                            "{\"message\": \"NVRM: Xid (PCI:0000:9b:00): 79\"}",
                            "{\"timestamp_ns\": 5, \"message\":"};
    const enum decode_category want[] = {DECODE_MISSING_FIELD, DECODE_WRONG_TYPE,
                                         DECODE_MISSING_TIMESTAMP, DECODE_BAD_JSON};
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(
            kernel_tagged(state, slice_of(faulty[i]), &source.arena, &source.event, &source.fault),
            want[i]);
    ck_assert_int_eq(kernel_tagged(state, SLICE("{\"timestamp_ns\": 5, \"message\": \"hello\"}"),
                                   &source.arena, &source.event, &source.fault),
                     DECODE_NOTHING);
    ck_assert_uint_eq(source.event.time_ns, 5);
}
END_TEST

START_TEST(every_prefix_is_survived) {
    for (size_t i = 0; i < sizeof XIDS / sizeof *XIDS; i++) {
        char line[512];
        snprintf(line, sizeof line, STAMP "%s", XIDS[i].line);
        for (size_t size = 0; size <= strlen(line); size++) {
            kernel_take(&source, (struct slice){line, size});
            ck_assert_msg(source.category == DECODE_OK || source.category == DECODE_NOTHING ||
                              source.category == DECODE_MISSING_TIMESTAMP,
                          "%.*s: category %d", (int)size, line, source.category);
        }
    }
}
END_TEST

START_TEST(random_bytes_are_survived) {
    static const char *const parts[] = {"NVRM: ",
                                        "Xid ",
                                        "(PCI:0000:9b:00)",
                                        ": ",
                                        "79",
                                        ", ",
                                        "pid=",
                                        "name=",
                                        "[ 12.5] ",
                                        "<3>",
                                        "{\"",
                                        "__CURSOR=",
                                        "MESSAGE",
                                        "=",
                                        "\n",
                                        "GPU at ",
                                        " GPU-",
                                        "fallen off the bus",
                                        "\xff",
                                        "Jan 31 09:15:04 ",
                                        "kernel: "};
    uint64_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        char line[256];
        size_t size = 0;
        for (int i = 0; i < 10; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            const char *part = parts[(seed >> 33) % (sizeof parts / sizeof *parts)];
            size_t length = strlen(part);
            if ((seed >> 20 & 7) == 0) {
                line[size++] = (char)(seed >> 40);
            } else {
                memcpy(line + size, part, length);
                size += length;
            }
        }
        kernel_take(&source, (struct slice){line, size});
        arena_reset(&source.arena);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_kernel");
    TCase *cases = tcase_create("lines");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, xid_shapes, 0, sizeof XIDS / sizeof *XIDS);
    tcase_add_loop_test(cases, broken_and_other_lines_are_nothing, 0,
                        sizeof NOTHING / sizeof *NOTHING);
    tcase_add_test(cases, uuid_line);
    tcase_add_test(cases, switch_line);
    tcase_add_test(cases, lost_gpu_without_a_number);
    tcase_add_test(cases, lost_gpu_over_three_lines);
    tcase_add_test(cases, pcie_lines_go_to_their_parser);
    tcase_add_test(cases, bytes_that_are_no_text_become_question_marks);
    tcase_add_test(cases, tagged_line);
    tcase_add_test(cases, every_prefix_is_survived);
    tcase_add_test(cases, random_bytes_are_survived);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

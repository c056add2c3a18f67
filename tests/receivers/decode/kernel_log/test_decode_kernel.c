// SPDX-License-Identifier: Apache-2.0
// The kernel log's decoder: what the driver's lines say, in every shape, and what broken ones do.
#include "receivers/decode/tagged/tagged.h"
#include "tests/receivers/decode/kernel_log/said.h"

// 2026-01-31T09:15:04Z
#define KERNEL_MORNING UINT64_C(1769850904000000000)

static struct said_source source;
static enum decode_category category;

static void setup(void) {
    source = said_open(&decoder_kernel_log);
}

static void teardown(void) {
    said_close(&source);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// The line lies in a block of its own size, so that a read past its end is seen; what is kept of it
// was copied.
static const struct kernel_line *take(struct slice line) {
    char *copy = malloc(line.size == 0 ? 1 : line.size);
    if (line.size > 0)
        memcpy(copy, line.data, line.size);
    source.event = (struct event){.position = 1, .rank = RANK_NONE};
    source.fault = (struct decode_fault){0};
    category = source.decoder->decode(source.state, (struct slice){copy, line.size}, &source.arena,
                                      &source.event, &source.fault);
    // A record may hold several lines; of those the first event is meant.
    for (enum decode_category more = category; more != DECODE_END;) {
        struct event event = {.position = 1, .rank = RANK_NONE};
        struct decode_fault fault = {0};
        more = source.decoder->next(source.state, &source.arena, &event, &fault);
        if (more == DECODE_OK && category == DECODE_HELD) {
            source.event = event;
            category = more;
        }
    }
    free(copy);
    return category == DECODE_OK && source.event.kind == EVENT_KERNEL ? source.event.kernel : NULL;
}

static const struct kernel_line *take_text(const char *line) {
    return take(slice_of(line));
}

static void check_text(struct slice text, const char *want) {
    ck_assert_msg(slice_equal(text, slice_of(want)), "\"%.*s\" is not \"%s\"", (int)text.size,
                  text.data == NULL ? "" : text.data, want);
}

static void check_address(pci_address address, const char *want) {
    char text[PCI_TEXT_MAX];
    ck_assert_uint_ne(address, PCI_NONE);
    pci_format_function(address, text);
    ck_assert_str_eq(text, want);
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
    {"NVRM: Xid (PCI:0000:9b:00): 154 (", "0000:9b:00.0", 154, -1, "", "("},
    // Cut in the number or the name, which may go on, and behind a key.
    {"NVRM: Xid (PCI:0000:c9:00): 64, pid=90", "0000:c9:00.0", 64, -1, "", ""},
    {"NVRM: Xid (PCI:0000:c9:00): 64, pid=9001,", "0000:c9:00.0", 64, -1, "", ""},
    {"NVRM: Xid (PCI:0000:c9:00): 64, pid=9001, name=pyth", "0000:c9:00.0", 64, 9001, "", ""},
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
    const struct kernel_line *taken = take_text(line);
    ck_assert_msg(taken != NULL, "%s was not taken", XIDS[_i].line);
    ck_assert_int_eq(taken->kind, KERNEL_XID);
    check_address(taken->address, XIDS[_i].address);
    ck_assert_uint_eq(taken->code, XIDS[_i].code);
    ck_assert_int_eq(taken->pid, XIDS[_i].pid);
    check_text(taken->process, XIDS[_i].process);
    check_text(taken->detail, XIDS[_i].detail);
    ck_assert_uint_eq(source.event.time_ns, KERNEL_MORNING + 500000000);
    check_text(intern_slice(source.event.node), "node1");
    ck_assert_int_eq(source.event.rank, RANK_NONE);
}
END_TEST

static const struct {
    const char *line;
    enum decode_category category;
} BROKEN[] = {
    {"NVRM: Xid", DECODE_TRUNCATED},
    {"NVRM: Xid (", DECODE_TRUNCATED},
    {"NVRM: Xid (PCI:0009:01:0", DECODE_TRUNCATED},
    {"NVRM: Xid (PCI:0000:9b:00)", DECODE_TRUNCATED},
    {"NVRM: Xid (PCI:0000:9b:00):", DECODE_TRUNCATED},
    {"NVRM: Xid (PCI:0000:9b:00): ", DECODE_TRUNCATED},
    {"nvidia-nvswitch3: SXid (PCI:0000:05:00.0)", DECODE_TRUNCATED},
    {"nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 2003", DECODE_TRUNCATED},
    {"nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fa", DECODE_NOTHING},
    {"nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Severity 1 Engine", DECODE_NOTHING},
    {"NVRM: Xid errors are in the handbook", DECODE_NOTHING},
    {"NVRM: Xid (PCI:0000:9b:00): 0, x", DECODE_NOTHING},
    {"NVRM: Xid (PCI:0000:9b:00): 7x, x", DECODE_NOTHING},
    {"NVRM: Xid (PCI:0000:9b:00): 9999999, x", DECODE_NOTHING},
    {"NVRM: Xid (PCI:0000:9b): 79, x", DECODE_NOTHING},
    {"NVRM: Xid (PCI:0000:9b:00 79, x", DECODE_NOTHING},
    {"NVRM: Xid (): 79, x", DECODE_NOTHING},
    {"NVRM: Xid (PCI:zzzz:9b:00): 79, x", DECODE_NOTHING},
    {"NVRM: GPU at PCI:0000:91:00: GPU-", DECODE_NOTHING},
    {"NVRM: GPU at PCI:0000:91:00: GPU-12", DECODE_NOTHING},
    {"NVRM: GPU at PCI:0000:91:00: GPU-2944805f-144c-45a1-a380-1e5d5fe8135", DECODE_NOTHING},
    {"NVRM: GPU at GPU-2944805f-144c-45a1-a380-1e5d5fe81354", DECODE_NOTHING},
    {"NVRM: GPU at : GPU-2944805f-144c-45a1-a380-1e5d5fe81354", DECODE_NOTHING},
    {"NVRM: loading firmware for GPU 0000:9b:00.0", DECODE_NOTHING},
    {"NVRM: ", DECODE_NOTHING},
    {"NVRM: GPU has fallen off the bus", DECODE_NOTHING},
    {"nvidia-nvswitch3: link is up", DECODE_NOTHING},
    {"usb 1-1: new high-speed USB device number 2", DECODE_NOTHING},
    {"", DECODE_NOTHING},
    {" ", DECODE_NOTHING},
};

START_TEST(broken_and_other_lines) {
    char line[512];
    snprintf(line, sizeof line, STAMP "%s", BROKEN[_i].line);
    ck_assert_ptr_null(take_text(line));
    ck_assert_msg(category == BROKEN[_i].category, "%s: category %d", BROKEN[_i].line, category);
    ck_assert(!decode_refused(category) || source.fault.detail[0] != '\0');
}
END_TEST

START_TEST(uuid_line) {
    const struct kernel_line *taken =
        take_text(STAMP "NVRM: GPU at PCI:0000:91:00: GPU-2944805f-144c-45a1-a380-1e5d5fe81354");
    ck_assert_ptr_nonnull(taken);
    ck_assert_int_eq(taken->kind, KERNEL_GPU_UUID);
    check_address(taken->address, "0000:91:00.0");
    check_text(taken->uuid, "GPU-2944805f-144c-45a1-a380-1e5d5fe81354");
}
END_TEST

START_TEST(switch_line) {
    const struct kernel_line *taken =
        take_text(STAMP "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM");
    ck_assert_ptr_nonnull(taken);
    ck_assert_int_eq(taken->kind, KERNEL_SXID);
    check_address(taken->address, "0000:05:00.0");
    ck_assert_uint_eq(taken->code, 20034);
    check_text(taken->detail, "Fatal, Link 63 LTSSM");
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
        const struct kernel_line *taken = take_text(lines[i]);
        ck_assert_msg(taken != NULL, "%s", lines[i]);
        ck_assert_int_eq(taken->kind, KERNEL_GPU_LOST);
        check_address(taken->address, "0000:18:00.0");
    }
}
END_TEST

START_TEST(pcie_lines_go_to_their_parser) {
    const struct kernel_line *taken =
        take_text(STAMP
                  "nvidia 0000:9b:00.0: AER: PCIe Bus Error: severity=Corrected, type=Data "
                  "Link Layer, (Receiver ID)");
    ck_assert_ptr_nonnull(taken);
    ck_assert_int_eq(taken->kind, KERNEL_AER);
    check_address(taken->address, "0000:9b:00.0");
}
END_TEST

START_TEST(bytes_that_are_no_text_become_question_marks) {
    const struct kernel_line *taken =
        take_text(STAMP "NVRM: Xid (PCI:0000:9b:00): 48, pid=1, name=a\xff\xc3, b\x80 \xc3\xa9");
    ck_assert_ptr_nonnull(taken);
    check_text(taken->process, "a??");
    check_text(taken->detail, "b? \xc3\xa9");
}
END_TEST

// The same words as a message with its time and node beside it.
START_TEST(tagged_line) {
    static const struct {
        const char *members;
        enum decode_category category;
    } faulty[] = {{"\"timestamp_ns\": 5}", DECODE_MISSING_FIELD},
                  {"\"timestamp_ns\": 5, \"message\": 7}", DECODE_WRONG_TYPE},
                  {"\"message\": \"NVRM: Xid (PCI:0000:9b:00): 79\"}", DECODE_MISSING_TIMESTAMP},
                  {"\"timestamp_ns\": 5, \"message\":", DECODE_BAD_JSON},
                  {"\"timestamp_ns\": 5, \"message\": \"NVRM: Xid (PCI:0000\"}", DECODE_TRUNCATED},
                  {"\"timestamp_ns\": 5, \"message\": \"hello\"}", DECODE_NOTHING}};
    static const char line[] =
        "{\"message\": \"NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has "
        "fallen off the bus.\", \"source\": \"kmsg\", \"host.name\": \"h\", \"k8s.node.name\": "
        "\"n7\", \"timestamp_ns\": 1794992500482000001, \"priority\": 3}";
    said_close(&source);
    source = said_open(&decoder_tagged);
    const struct kernel_line *taken = take(SLICE(line));
    ck_assert_ptr_nonnull(taken);
    ck_assert_uint_eq(source.event.time_ns, UINT64_C(1794992500482000001));
    check_text(intern_slice(source.event.node), "n7");
    ck_assert_uint_eq(taken->code, 79);
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"source\": \"kmsg\", %s", faulty[i].members);
        ck_assert_ptr_null(take_text(text));
        ck_assert_msg(category == faulty[i].category, "%s: category %d", text, category);
    }
}
END_TEST

START_TEST(every_prefix_is_survived) {
    for (size_t i = 0; i < sizeof XIDS / sizeof *XIDS; i++) {
        char line[512];
        snprintf(line, sizeof line, STAMP "%s", XIDS[i].line);
        for (size_t size = 0; size <= strlen(line); size++) {
            take((struct slice){line, size});
            ck_assert_msg(category == DECODE_OK || category == DECODE_NOTHING ||
                              category == DECODE_MISSING_TIMESTAMP || category == DECODE_TRUNCATED,
                          "%.*s: category %d", (int)size, line, category);
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
        take((struct slice){line, size});
        arena_reset(&source.arena);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_kernel");
    TCase *cases = tcase_create("lines");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, xid_shapes, 0, sizeof XIDS / sizeof *XIDS);
    tcase_add_loop_test(cases, broken_and_other_lines, 0, sizeof BROKEN / sizeof *BROKEN);
    tcase_add_test(cases, uuid_line);
    tcase_add_test(cases, switch_line);
    tcase_add_test(cases, lost_gpu_without_a_number);
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

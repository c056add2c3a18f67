// SPDX-License-Identifier: Apache-2.0
// kernel_aer_parse: every wording of the lines about PCI Express errors, and lines that are none.
#include "receivers/decode/kernel_log/aer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct kernel_line line;

static bool parse(const char *text) {
    memset(&line, 0xa5, sizeof line);
    line.pid = 77;
    return kernel_aer_parse(slice_of(text), &line);
}

static void is_at(pci_address address, const char *expected) {
    char text[PCI_TEXT_MAX] = "none";
    if (address != PCI_NONE)
        pci_format_function(address, text);
    ck_assert_str_eq(text, expected);
}

static void is_text(struct slice text, const char *expected) {
    ck_assert_uint_eq(text.size, strlen(expected));
    ck_assert_mem_eq(text.data, expected, text.size);
}

START_TEST(port_lines) {
    static const struct {
        const char *text, *sender;
        enum aer_severity severity;
        bool multiple;
    } rows[] = {
        {"pcieport 0000:9a:01.0: AER: Correctable error message received from 0000:9b:00.0",
         "0000:9b:00.0", AER_CORRECTABLE, false},
        {"pcieport 0000:9a:01.0: AER: Uncorrectable (Fatal) error message received from "
         "0000:9b:00.0",
         "0000:9b:00.0", AER_FATAL, false},
        {"pcieport 0000:9a:01.0: AER: Uncorrectable (Non-Fatal) error message received from "
         "0000:9b:00.0 (no details found)",
         "0000:9b:00.0", AER_NONFATAL, false},
        {"pcieport 0000:9a:01.0: AER: Multiple Correctable error message received from "
         "0000:9b:00.0",
         "0000:9b:00.0", AER_CORRECTABLE, true},
        {"pcieport 0000:9a:01.0: AER: Corrected error received: 0000:9b:00.0", "0000:9b:00.0",
         AER_CORRECTABLE, false},
        {"pcieport 0000:9a:01.0: AER: Multiple Uncorrected (Non-Fatal) error received: "
         "0000:9b:00.0",
         "0000:9b:00.0", AER_NONFATAL, true},
        {"pcieport 0000:9a:01.0: AER: Uncorrected (Fatal) error received: 0000:9b:00.0",
         "0000:9b:00.0", AER_FATAL, false},
        {"pcieport 0000:9a:01.0: AER: Corrected error received: id=ae00", "0000:ae:00.0",
         AER_CORRECTABLE, false},
        {"pcieport 10001:9a:01.0: AER: Multiple Corrected error received: id=00e5", "10001:00:1c.5",
         AER_CORRECTABLE, true},
        {"pcieport 0000:9a:01.0: AER: Corrected error received: id=nonsense", "none",
         AER_CORRECTABLE, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(parse(rows[i].text), "%s", rows[i].text);
        ck_assert_int_eq(line.kind, KERNEL_AER);
        ck_assert_int_eq(line.aer, AER_PORT);
        ck_assert_int_eq(line.severity, rows[i].severity);
        ck_assert_int_eq(line.multiple, rows[i].multiple);
        is_at(line.address, rows[i].sender);
        ck_assert(line.port != PCI_NONE);
        is_text(line.driver, "pcieport");
        ck_assert_int_eq(line.pid, 77);
    }
}
END_TEST

START_TEST(error_lines) {
    static const struct {
        const char *text, *layer;
        enum aer_severity severity;
    } rows[] = {
        {"nvidia 0000:9b:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, "
         "(Receiver ID)",
         "Physical Layer", AER_CORRECTABLE},
        {"nvidia 0000:9b:00.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), "
         "type=Transaction Layer, (Requester ID)",
         "Transaction Layer", AER_FATAL},
        {"nvidia 0000:9b:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, "
         "id=9b00(Transmitter ID)",
         "Data Link Layer", AER_CORRECTABLE},
        {"nvidia 0000:9b:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), "
         "type=Inaccessible, (Unregistered Agent ID)",
         "Inaccessible", AER_NONFATAL},
        {"nvidia 0000:9b:00.0: aer_layer=Transaction Layer, aer_agent=Receiver ID",
         "Transaction Layer", AER_SEVERITY_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(parse(rows[i].text), "%s", rows[i].text);
        ck_assert_int_eq(line.aer, AER_ERROR);
        ck_assert_int_eq(line.severity, rows[i].severity);
        is_text(line.layer, rows[i].layer);
        is_at(line.address, "0000:9b:00.0");
        ck_assert(line.port == PCI_NONE);
    }
}
END_TEST

START_TEST(status_lines) {
    ck_assert(
        parse("nvidia 0000:9b:00.0:   device [10de:2330] error "
              "status/mask=00040001/0000a000"));
    ck_assert_int_eq(line.aer, AER_STATUS);
    ck_assert_uint_eq(line.vendor, 0x10de);
    ck_assert_uint_eq(line.device, 0x2330);
    ck_assert_uint_eq(line.status, 0x40001);
    ck_assert_uint_eq(line.mask, 0xa000);
    ck_assert(
        parse("nvidia 0000:9b:00.0: AER:   device [10de:2330] error "
              "status/mask=ffffffff/00000000"));
    ck_assert_uint_eq(line.status, 0xffffffff);
    ck_assert(parse("mlx5_core 0000:c1:00.1: AER: aer_status: 0x00004000, aer_mask: 0x00002000"));
    ck_assert_int_eq(line.aer, AER_STATUS);
    ck_assert_uint_eq(line.status, 0x4000);
    ck_assert_uint_eq(line.mask, 0x2000);
    ck_assert_uint_eq(line.vendor, 0);
    ck_assert(parse("mlx5_core 0000:c1:00.1: aer_uncor_severity: 0x00462030"));
    ck_assert_int_eq(line.aer, AER_FATAL_BITS);
    ck_assert_uint_eq(line.status, 0x462030);
    ck_assert(!parse("nvidia 0000:9b:00.0:   device [10de:2330] error status/mask=00040001"));
    ck_assert(!parse("nvidia 0000:9b:00.0:   device [10de:12345] error status/mask=1/2"));
    ck_assert(!parse("nvidia 0000:9b:00.0:   device [10de:2330] error status/mask=123456789/0"));
}
END_TEST

START_TEST(bit_lines) {
    static const struct {
        const char *text, *name;
        int bit;
    } rows[] = {
        {"nvidia 0000:9b:00.0:    [ 0] RxErr                  (First)", "RxErr", 0},
        {"nvidia 0000:9b:00.0:    [ 6] BadTLP                ", "BadTLP", 6},
        {"nvidia 0000:9b:00.0: AER:    [18] MalfTLP                (First)", "MalfTLP", 18},
        {"nvidia 0000:9b:00.0:    [ 0] Receiver Error         (First)", "Receiver Error", 0},
        {"nvidia 0000:9b:00.0:    [12] Replay Timer Timeout  ", "Replay Timer Timeout", 12},
        {"nvidia 0000:9b:00.0:    [20] UnsupReq(First)", "UnsupReq", 20},
        {"nvidia 0000:9b:00.0:    [30] Unknown Error Bit", "Unknown Error Bit", 30},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(parse(rows[i].text), "%s", rows[i].text);
        ck_assert_int_eq(line.aer, AER_BIT);
        ck_assert_int_eq(line.bit, rows[i].bit);
        is_text(line.detail, rows[i].name);
    }
    ck_assert(!parse("nvidia 0000:9b:00.0:    [32] RxErr"));
    ck_assert(!parse("nvidia 0000:9b:00.0:    [ 0]"));
    ck_assert(!parse("nvidia 0000:9b:00.0:    [] RxErr"));
    ck_assert(!parse("   [ 0] RxErr                  (First)"));
}
END_TEST

START_TEST(other_lines) {
    static const struct {
        const char *text;
        enum aer_line aer;
    } rows[] = {
        {"nvidia 0000:9b:00.0:   TLP Header: 60000004 0000000f 00000001 9b000100", AER_HEADER},
        {"nvidia 0000:9b:00.0: AER:   TLP Header: 60000004 0000000f 00000001 9b000100", AER_HEADER},
        {"pcieport 0000:9a:01.0: AER: device recovery successful", AER_RECOVERED},
        {"pcieport 0000:9a:01.0: AER: Device recovery successful", AER_RECOVERED},
        {"pcieport 0000:9a:01.0: AER: device recovery failed", AER_FAILED},
        {"nvidia 0000:9b:00.0: AER: can't recover (no error_detected callback)", AER_FAILED},
        {"pcieport 0000:9a:01.0: AER: Root Port link has been reset (0)", AER_LINK_RESET},
        {"pcieport 0000:9a:01.0: AER: Root Port link has been reset", AER_LINK_RESET},
        {"pcieport 0000:9a:01.0: AER: Downstream Port link has been reset (0)", AER_LINK_RESET},
        {"pcieport 0000:9a:01.0: AER: Root Port link has been reset (-25)", AER_FAILED},
        {"pcieport 0000:9a:01.0: AER: subordinate device reset failed", AER_FAILED},
        {"pcieport 0000:28:01.0: aer_isr_one_error: 184 callbacks suppressed", AER_SUPPRESSED},
        {"aer_print_error: 12 callbacks suppressed", AER_SUPPRESSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(parse(rows[i].text), "%s", rows[i].text);
        ck_assert_int_eq(line.aer, rows[i].aer);
    }
}
END_TEST

START_TEST(dpc_lines) {
    ck_assert(parse("pcieport 0000:9a:01.0: DPC: containment event, status:0x1f05 source:0x9b00"));
    ck_assert_int_eq(line.aer, AER_DPC);
    ck_assert_int_eq(line.severity, AER_FATAL);
    is_at(line.port, "0000:9a:01.0");
    is_at(line.address, "0000:9b:00.0");
    ck_assert(
        parse("pcieport 0000:9a:01.0: DPC: containment event, status:0x1f03, ERR_NONFATAL "
              "received from 0000:9b:00.0"));
    ck_assert_int_eq(line.severity, AER_NONFATAL);
    is_at(line.address, "0000:9b:00.0");
    ck_assert(parse("pcieport 0000:9a:01.0: DPC: containment event, status:0x1f01 source:0x0000"));
    ck_assert_int_eq(line.severity, AER_FATAL);
    is_at(line.address, "0000:9a:01.0");
    ck_assert(
        parse("pcieport 0000:9a:01.0: DPC: containment event, status:0x1f07: software "
              "trigger"));
    ck_assert_int_eq(line.severity, AER_SEVERITY_UNKNOWN);
    is_at(line.address, "none");
    ck_assert(!parse("pcieport 0000:9a:01.0: DPC: error containment capabilities: Int Msg #0"));
}
END_TEST

START_TEST(lines_that_are_none) {
    static const char *const rows[] = {
        "",
        " ",
        "pcieport",
        "pcieport 0000:9a:01.0:",
        "pcieport 0000:9a:01.0: AER:",
        "pcieport 0000:9a:01.0: AER: enabled with IRQ 24",
        "pcieport 0000:9a:01.0: AER: Corrected error",
        "pcieport 0000:9a:01.0: AER: Nonsense error received: 0000:9b:00.0",
        "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>",
        "usb 1-1: can't recover",
        "nvme 0000:03:00.0: can't recover from this",
        "PCIe Bus Error: severity=Corrected, type=Physical Layer",
        "net_ratelimit: 10 callbacks suppressed",
        "a line that says aer: 3 callbacks suppressed",
        "e1000 0000:9b:00.0 eth0: [ 0] RxErr",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(!parse(rows[i]), "%s", rows[i]);
        ck_assert_int_eq(line.pid, 77);
    }
}
END_TEST

// Every prefix and every line with one byte changed, in memory of exactly its size.
START_TEST(survives_anything) {
    static const char *const rows[] = {
        "pcieport 0000:9a:01.0: AER: Multiple Corrected error received: id=ae00",
        "nvidia 0000:9b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data Link Layer",
        "nvidia 0000:9b:00.0:   device [10de:2330] error status/mask=00040001/0000a000",
        "nvidia 0000:9b:00.0: AER:    [18] MalfTLP                (First)",
        "pcieport 0000:9a:01.0: DPC: containment event, status:0x1f05 source:0x9b00",
        "mlx5_core 0000:c1:00.1: AER: aer_status: 0x00004000, aer_mask: 0x00002000",
        "pcieport 0000:9a:01.0: AER: Root Port link has been reset (0)",
        "pcieport 0000:28:01.0: aer_isr_one_error: 184 callbacks suppressed",
    };
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t size = strlen(rows[i]);
        for (size_t length = 0; length <= size; length++) {
            char *copy = malloc(length + (length == 0));
            ck_assert_ptr_nonnull(copy);
            memcpy(copy, rows[i], length);
            (void)kernel_aer_parse((struct slice){copy, length}, &line);
            for (unsigned round = 0; round < 40 && length > 0; round++) {
                seed = seed * 1103515245 + 12345;
                copy[(seed >> 8) % length] = (char)(seed >> 20);
                (void)kernel_aer_parse((struct slice){copy, length}, &line);
            }
            free(copy);
        }
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_kernel_aer");
    TCase *cases = tcase_create("lines");
    tcase_add_test(cases, port_lines);
    tcase_add_test(cases, error_lines);
    tcase_add_test(cases, status_lines);
    tcase_add_test(cases, bit_lines);
    tcase_add_test(cases, other_lines);
    tcase_add_test(cases, dpc_lines);
    tcase_add_test(cases, lines_that_are_none);
    tcase_add_test(cases, survives_anything);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

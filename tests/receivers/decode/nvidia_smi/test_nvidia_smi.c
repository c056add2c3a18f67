// SPDX-License-Identifier: Apache-2.0
// nvidia-smi -q as text and as XML: what is wrong with a GPU, and that a healthy one is quiet.
#include "receivers/decode/log/log.h"
#include "tests/receivers/decode/observed.h"

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define HEAD                                                                                       \
    "==============NVSMI LOG==============\n"                                                      \
    "\n"                                                                                           \
    "Timestamp                                 : Thu Mar 14 20:46:07 2024\n"                       \
    "Driver Version                            : 535.86.10\n"                                      \
    "\n"                                                                                           \
    "Attached GPUs                             : 2\n"
#define GPU "GPU 00000000:9B:00.0\n"

// What stands there in the lines of a GPU in front of it; the answer behind "gpu=00009b00 ".
static const struct {
    const char *lines, *expected;
} LINES[] = {
    {"    Retired Pages\n"
     "        Single Bit ECC                    : 60\n"
     "        Double Bit ECC                    : 5\n"
     "        Pending Page Blacklist            : No\n",
     "vendor=nvidia cause=gpu_worn message=Retired Pages: 65, of which 5 for double bit errors"},
    {"        Double Bit ECC                    : 15\n"
     "        Pending Page Blacklist            : Yes\n",
     "vendor=nvidia cause=gpu_worn message=Pending Page Blacklist: Yes, Retired Pages: 15, of "
     "which "
     "15 for double bit errors"},
    {"        Pending Page Blacklist            : Yes\n",
     "vendor=nvidia cause=gpu_repair_waits message=Pending Page Blacklist: Yes"},
    {"    Remapped Rows\n"
     "        Correctable Error                 : 1\n"
     "        Uncorrectable Error               : 2\n"
     "        Pending                           : Yes\n"
     "        Remapping Failure Occurred        : Yes\n",
     "vendor=nvidia cause=gpu_worn message=Pending: Yes, Remapping Failure Occurred: Yes"},
    {"    ECC Errors\n"
     "        Volatile\n"
     "            SRAM Correctable              : 2\n"
     "            DRAM Uncorrectable            : 3\n",
     "vendor=nvidia cause=gpu_hardware message=DRAM Uncorrectable: 3"},
    {"        HW Slowdown                       : Active\n"
     "            HW Thermal Slowdown           : Not Active\n"
     "            HW Power Brake Slowdown       : Active\n",
     "vendor=nvidia cause=power_brake message=HW Power Brake Slowdown: Active"},
    {"            HW Thermal Slowdown           : Active\n",
     "vendor=nvidia cause=gpu_hot message=HW Thermal Slowdown: Active"},
    {"            PCIe Generation\n"
     "                Max                       : 5\n"
     "                Current                   : 1\n"
     "            Link Width\n"
     "                Max                       : 16x\n"
     "                Current                   : 8x\n",
     "vendor=nvidia cause=pcie_narrow message=Current: 8x"},
    {"    GPU Recovery Action                   : Reset\n",
     "vendor=nvidia cause=gpu_needs_reset message=GPU Recovery Action: Reset"},
    {"    Fabric\n"
     "        State                             : Completed\n"
     "        Status                            : Insufficient Resources\n",
     "vendor=nvidia cause=nvlink_setup message=Status: Insufficient Resources"},
    {"        GPU Current Temp                  : Unknown Error\n",
     "vendor=nvidia cause=gpu_lost message=GPU Current Temp: Unknown Error"},
};

START_TEST(wrong) {
    char text[4096], expected[1024];
    snprintf(text, sizeof text, HEAD GPU "    Product Name : NVIDIA A100\n%s%s", LINES[_i].lines,
             "    Fan Speed                             : N/A\n");
    const struct observed *observed = observed_lines(&decoder_log, slice_of(text));
    snprintf(expected, sizeof expected, " gpu=00009b00 %s\n", LINES[_i].expected);
    ck_assert_ptr_ne(strstr(observed->text, " node_fault @1710449167000000000 "), NULL);
    ck_assert_msg(strstr(observed->text, expected) != NULL, "%s", observed->text);
}
END_TEST

#define HEALTHY                                                                                    \
    "    Performance State                     : P0\n"                                             \
    "    Fabric\n"                                                                                 \
    "        State                             : Completed\n"                                      \
    "        Status                            : Success\n"                                        \
    "        Health\n"                                                                             \
    "            Bandwidth                     : Full\n"                                           \
    "    Clocks Event Reasons\n"                                                                   \
    "        SW Power Cap                      : Active\n"                                         \
    "        HW Slowdown                       : Not Active\n"                                     \
    "            HW Power Brake Slowdown       : Not Active\n"                                     \
    "            Link Width\n"                                                                     \
    "                Max                       : 16x\n"                                            \
    "                Current                   : 16x\n"                                            \
    "    ECC Errors\n"                                                                             \
    "        Volatile\n"                                                                           \
    "            DRAM Uncorrectable            : 0\n"                                              \
    "        Aggregate\n"                                                                          \
    "            DRAM Uncorrectable            : 4\n"                                              \
    "            SRAM Threshold Exceeded       : No\n"                                             \
    "    Retired Pages\n"                                                                          \
    "        Single Bit ECC                    : N/A\n"                                            \
    "        Double Bit ECC                    : N/A\n"                                            \
    "        Pending Page Blacklist            : N/A\n"                                            \
    "    GPU Recovery Action                   : None\n"

// Two GPUs, of which the second is ill.
START_TEST(healthy) {
    const struct observed *observed =
        observed_lines(&decoder_log, slice_of(HEAD "GPU 00000000:1B:00.0\n" HEALTHY GPU HEALTHY
                                                   "    Reset Required : Yes\n"));
    ck_assert_ptr_ne(strstr(observed->text, " health_event @1710449167000000000 "), NULL);
    ck_assert_ptr_ne(strstr(observed->text, " gpu=00001b00 vendor=nvidia healthy=yes\n"), NULL);
    ck_assert_ptr_ne(
        strstr(observed->text,
               " gpu=00009b00 vendor=nvidia cause=gpu_needs_reset message=Reset Required: Yes\n"),
        NULL);
}
END_TEST

START_TEST(xml) {
    const struct observed *observed = observed_lines(
        &decoder_log, slice_of("<?xml version=\"1.0\" ?>\n"
                               "<nvidia_smi_log>\n"
                               "\t<timestamp>Thu Mar 14 20:46:07 2024</timestamp>\n"
                               "\t<gpu id=\"00000000:1B:00.0\">\n"
                               "\t\t<fabric>\n\t\t\t<state>N/A</state>\n\t\t</fabric>\n"
                               "\t</gpu>\n"
                               "\t<gpu id=\"00000000:9B:00.0\">\n"
                               "\t\t<retired_pages>\n"
                               "\t\t\t<double_bit_retirement>\n"
                               "\t\t\t\t<retired_count>17</retired_count>\n"
                               "\t\t\t</double_bit_retirement>\n"
                               "\t\t</retired_pages>\n"
                               "\t\t<remapped_rows>\n"
                               "\t\t\t<remapped_row_pending>Yes</remapped_row_pending>\n"
                               "\t\t</remapped_rows>\n"
                               "\t</gpu>\n"
                               "</nvidia_smi_log>\n"));
    ck_assert_ptr_ne(strstr(observed->text, " gpu=00001b00 vendor=nvidia healthy=yes\n"), NULL);
    ck_assert_msg(strstr(observed->text,
                         " gpu=00009b00 vendor=nvidia cause=gpu_worn "
                         "message=remapped_row_pending: Yes, Retired Pages: 17, of which 17 for "
                         "double bit errors\n") != NULL,
                  "%s", observed->text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nvidia_smi");
    TCase *tcase = tcase_create("nvidia_smi");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, wrong, 0, sizeof LINES / sizeof *LINES);
    tcase_add_test(tcase, healthy);
    tcase_add_test(tcase, xml);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// SPDX-License-Identifier: Apache-2.0
// Counters and states of network cards: lines of a path and a value, and tagged lines.
#include "receivers/decode/formats.h"
#include "receivers/decode/log/log.h"
#include "receivers/decode/tagged/tagged.h"
#include "tests/receivers/decode/observed.h"

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define CARD "/sys/class/infiniband/mlx5_0/ports/1/"

static const struct {
    const char *lines, *expected;
} ROWS[] = {
    {CARD "counters/link_downed:3\n" CARD "counters/symbol_error:65535\n" CARD
          "hw_counters/lifespan:12\n" CARD "state:1: DOWN\n"
          "/sys/class/infiniband/rdmap16s27/ports/1/hw_counters/unresponsive_remote_events:7\n"
          "/sys/class/infiniband/mlx5_1/ports/1/counters/port_rcv_errors:\n",
     "1+1 ib_counter - device=mlx5_0 port=1 counter=link_downed value=3\n"
     "2+1 ib_counter - device=mlx5_0 port=1 counter=symbol_error value=65535\n"
     "4+1 ib_state - device=mlx5_0 port=1 state=DOWN\n"
     "5+1 ib_counter - device=rdmap16s27 port=1 counter=unresponsive_remote_events value=7\n"
     "6 refused missing_value\n"},
    {"/host/sys/class/infiniband/mlx5_0/ports/12/phys_state:2: Polling\n" CARD
     "rate:400 Gb/sec (4X NDR)\n" CARD "counters/port_xmit_data:18446744073709551615\n"
     "/sys/class/infiniband/rdmap16s27/hw_counters/no_completion_cmds:1\n",
     "1+1 ib_state - device=mlx5_0 port=12 status=Polling\n"
     "3+1 ib_counter - device=mlx5_0 port=1 counter=port_xmit_data value=9223372036854775807\n"
     "4+1 ib_counter - device=rdmap16s27 counter=no_completion_cmds value=1\n"},
    {"/sys/class/net/eth0/carrier_changes:4\n/sys/class/net/eth0/statistics/rx_errors:9\n"
     "/sys/class/net/eth0/operstate:up\n/sys/class/net/eth0/speed:200000\n",
     "1+1 ib_counter - device=eth0 counter=carrier_changes value=4\n"
     "2+1 ib_counter - device=eth0 counter=rx_errors value=9\n"
     "3+1 ib_state - device=eth0 state=up\n"},
    {CARD "counters/link_downed:three\n" CARD "state:\n" CARD "counters/link_do\n",
     "1 refused wrong_type\n2 refused missing_value\n3 refused truncated\n"},
    {"/sys/class/net/eth0\n/sys/class/infiniband\n/sys/class/infiniband/:3\n" CARD "counters/:3\n"
     "grep: " CARD "counters/x: Invalid argument\n"
     "/sys/class/infiniband/mlx5_0/ports/all/state:1\n"
     "/sys/class/infiniband/mlx5_0 is there: good\n/sys/class/dmi/id:3\n",
     ""},
};

START_TEST(lines) {
    observed_check(&decoder_log, ROWS[_i].lines, ROWS[_i].expected);
}
END_TEST

#define TAG "{\"source\":\"ib_counters\",\"timestamp_ns\":1773453018000000000,"
#define AT  "@1773453018000000000"

static const struct {
    const char *text, *expected;
} TAGGED[] = {
    {TAG "\"host.name\":\"n1\",\"job_id\":\"j\",\"device\":\"mlx5_0\",\"port\":1,\"pci_bus_id\":"
         "\"0000:9b:00.0\",\"state\":\"4: ACTIVE\",\"phys_state\":\"5: LinkUp\",\"link_layer\":"
         "\"InfiniBand\",\"rate\":\"400 Gb/sec (4X NDR)\",\"counters\":{\"link_downed\":\"3\","
         "\"symbol_error\":7,\"bad\":\"many\",\"worse\":{}},\"hw_counters\":{\"lifespan\":\"12\","
         "\"out_of_sequence\":\"9\"}}",
     "1+1 ib_state " AT " host=n1 nic=00009b00 device=mlx5_0 port=1 state=ACTIVE status=LinkUp\n"
     "1+0 ib_counter " AT " host=n1 nic=00009b00 device=mlx5_0 port=1 counter=link_downed value=3\n"
     "1+0 ib_counter " AT
     " host=n1 nic=00009b00 device=mlx5_0 port=1 counter=symbol_error value=7\n"
     "1+0 ib_counter " AT
     " host=n1 nic=00009b00 device=mlx5_0 port=1 counter=out_of_sequence value=9\n"},
    {TAG "\"device\":\"mlx5_0\",\"hw_counters\":{\"a\\u0062c\":1}}",
     "1+1 ib_counter " AT " device=mlx5_0 counter=abc value=1\n"},
    {TAG "\"device\":\"mlx5_0\",\"counters\":{}}", ""},
    {TAG "\"device\":\"mlx5_0\"}", "1 refused missing_field\n"},
    {TAG "\"counters\":{\"a\":1}}", "1 refused missing_field\n"},
    {TAG "\"device\":3,\"counters\":{\"a\":1}}", "1 refused missing_field\n"},
    {"{\"source\":\"ib_counters\",\"device\":\"mlx5_0\",\"counters\":{\"a\":1}}",
     "1 refused missing_timestamp\n"},
};

START_TEST(tagged) {
    struct slice text = slice_of(TAGGED[_i].text);
    ck_assert_str_eq(observed_lines(&decoder_tagged, text)->text, TAGGED[_i].expected);
    ck_assert_str_eq(observed_lines(&decoder_any, text)->text, TAGGED[_i].expected);
    for (size_t size = 0; size < text.size; size++)
        observed_lines(&decoder_tagged, (struct slice){text.data, size});
}
END_TEST

// Events of a line that are still to come are not those of the next line.
START_TEST(several_tagged_lines) {
    const struct observed *observed = observed_lines(
        &decoder_tagged,
        SLICE(TAG "\"device\":\"a\",\"counters\":{\"x\":1,\"y\":2}}\n" TAG "\"device\":\"b\"}\n" TAG
                  "\"device\":\"c\",\"counters\":{\"x\":3}}\n"));
    ck_assert_str_eq(observed->text, "1+1 ib_counter " AT
                                     " device=a counter=x value=1\n"
                                     "1+0 ib_counter " AT
                                     " device=a counter=y value=2\n"
                                     "2 refused missing_field\n"
                                     "3+1 ib_counter " AT " device=c counter=x value=3\n");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ib_counters");
    TCase *cases = tcase_create("ib_counters");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, lines, 0, sizeof ROWS / sizeof *ROWS);
    tcase_add_loop_test(cases, tagged, 0, sizeof TAGGED / sizeof *TAGGED);
    tcase_add_test(cases, several_tagged_lines);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

// SPDX-License-Identifier: Apache-2.0
// Lines of several sources: each goes to the decoder of its source, wherever `source` stands.
#include "receivers/decode/tagged/tagged.h"
#include "tests/receivers/decode/decode_record.h"

static struct decoded decoded;

static void setup(void) {
    decoded = decoded_open(&decoder_tagged, 0);
}

static void teardown(void) {
    decoded_close(&decoded);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const struct {
    const char *line;
    enum event_kind kind;
} LINES[] = {
    {"{\"source\":\"k8s_watch\",\"observed_time_ns\":5,\"type\":\"ADDED\",\"object\":{\"kind\":"
     "\"Pod\",\"metadata\":{\"name\":\"w\"}}}",
     EVENT_KUBERNETES},
    {"{\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"w\",\"source\":\"kmsg\"}},\"type\":"
     "\"ADDED\",\"observed_time_ns\":5,\"sourc\\u0065\":\"k8s\\u005fwatch\"}",
     EVENT_KUBERNETES},
    {"{\"rank\":3,\"timestamp_ns\":5,\"pci_bus_id\":\"00000000:45:00.0\",\"source\":\"rank_map\"}",
     EVENT_RANK_MAP},
    {"{\"message\":\"[Rank 3] Watchdog caught collective operation timeout: x\",\"timestamp_ns\":5,"
     "\"source\":\"app_log\"}",
     EVENT_APP_LINE},
    {"{\"source\":\"kmsg\",\"timestamp_ns\":5,\"k8s.node.name\":\"n\",\"message\":\"NVRM: Xid "
     "(PCI:0000:45:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\"}",
     EVENT_KERNEL},
    {"{\"source\":\"dcgm\",\"timestamp_ns\":5,\"k8s.node.name\":\"n\",\"gpu\":\"0\",\"UUID\":"
     "\"GPU-1\",\"pci_bus_id\":\"00000000:45:00.0\",\"fields\":{\"DCGM_FI_DEV_XID_ERRORS\":79}}",
     EVENT_GPU_SAMPLE},
    {"{\"source\":\"sysfs_aer\",\"timestamp_ns\":5,\"k8s.node.name\":\"n\",\"pci_bus_id\":"
     "\"00000000:45:00.0\",\"aer_dev_correctable\":\"RxErr 5\\nTOTAL_ERR_COR 5\\n\"}",
     EVENT_AER_COUNTERS},
    {"{\"source\":\"fr_dump\",\"observed_time_ns\":5,\"rank\":0,\"dump\":{\"version\":\"2.10\","
     "\"pg_config\":{},\"pg_status\":{},\"entries\":[]}}",
     EVENT_FLIGHT},
    {"{\"source\":\"fr_entry\",\"observed_time_ns\":5,\"rank\":0,\"entry\":{\"record_id\":1,"
     "\"process_group\":[\"0\",\"default_pg\"],\"collective_seq_id\":1,\"profiling_name\":"
     "\"nccl:all_reduce\",\"state\":\"scheduled\",\"time_created_ns\":4,\"retired\":false,"
     "\"is_p2p\":false}}",
     EVENT_FLIGHT},
};

START_TEST(each_source_has_its_decoder) {
    decoded_ok(&decoded, LINES[_i].line);
    ck_assert_int_eq(decoded.event.kind, LINES[_i].kind);
    ck_assert_uint_eq(decoded.event.time_ns, 5);
}
END_TEST

START_TEST(one_after_another_they_do_not_disturb) {
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
            decoded_ok(&decoded,
                       LINES[(i * 4 + (size_t)round) % (sizeof LINES / sizeof *LINES)].line);
        }
    }
}
END_TEST

static const struct {
    const char *record;
    enum decode_category category;
    const char *words;
} REFUSED[] = {
    {"{\"source\":\"syslog\"}", DECODE_UNKNOWN_SOURCE,
     "found the text \"syslog\", expected one of app_log, dcgm, error_file, fr_dump, fr_entry, "
     "ib_counters, k8s_watch, kmsg, launcher_log, nccl_inspector, nccl_ras, rank_map, slurm, "
     "sysfs_aer"},
    {"{\"source\":\"ttttttttttttttttttttttttttttttttttttttt\xc3\xa4t\"}", DECODE_UNKNOWN_SOURCE,
     "\"ttttttttttttttttttttttttttttttttttttttt...\", expected one of app_log"},
    {"{\"source\":7}", DECODE_WRONG_TYPE, "the integer 7, expected one of app_log"},
    {"{\"message\":\"x\"}", DECODE_MISSING_FIELD, "one of app_log"},
    {"{\"a\":{\"source\":\"kmsg\"}}", DECODE_MISSING_FIELD, "not there"},
};

START_TEST(refused) {
    decoded_refused(&decoded, REFUSED[_i].record, REFUSED[_i].category, "source",
                    REFUSED[_i].words);
}
END_TEST

START_TEST(no_object) {
    decoded_refused(&decoded, "[1]", DECODE_NOT_OBJECT, "", "with a key \"source\"");
    decoded_refused(&decoded, "", DECODE_NOT_OBJECT, "", "with a key \"source\"");
    decoded_refused(&decoded, "{\"source\":\"kmsg\"", DECODE_BAD_JSON, "", "not JSON");
}
END_TEST

START_TEST(broken_lines_are_survived) {
    decoded_torture(&decoded, LINES[_i].line);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_tagged");
    TCase *cases = tcase_create("decode_tagged");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, each_source_has_its_decoder, 0, sizeof LINES / sizeof *LINES);
    tcase_add_test(cases, one_after_another_they_do_not_disturb);
    tcase_add_loop_test(cases, refused, 0, sizeof REFUSED / sizeof *REFUSED);
    tcase_add_test(cases, no_object);
    tcase_add_loop_test(cases, broken_lines_are_survived, 0, sizeof LINES / sizeof *LINES);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

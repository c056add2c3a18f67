// SPDX-License-Identifier: Apache-2.0
// Lines of several sources: each goes to the decoder of its source, wherever `source` stands.
#include "receivers/decode/tagged/tagged.h"

#include "pipeline/model/observation.h"
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

// Decodes records one after another, and what they hold; gives the last event.
static struct event told(struct decoded *source, const struct slice *records, size_t count) {
    struct event last = {0}, event;
    for (size_t i = 0; i <= count; i++) {
        event = (struct event){.position = i + 1, .lines = 1, .rank = RANK_NONE};
        enum decode_category category = DECODE_HELD;
        if (i < count)
            category = decoder_tagged.decode(source->state, records[i], &source->arena, &event,
                                             &source->fault);
        else
            decoder_tagged.finish(source->state);
        for (; category != DECODE_END;
             category = decoder_tagged.next(source->state, &source->arena, &event, &source->fault))
            if (category == DECODE_OK)
                last = event;
    }
    ck_assert_uint_ne(last.time_ns, 0);
    return last;
}

static const char OFF_THE_BUS[] =
    "{\"source\":\"kmsg\",\"timestamp_ns\":5,\"host.name\":\"n\",\"message\":\"NVRM: The NVIDIA "
    "GPU "
    "0000:1b:00.0\\nNVRM: (PCI ID: 10de:2330) installed in this system has\\nNVRM: fallen off the "
    "bus and is not responding to commands.\"}";

START_TEST(a_message_of_several_lines_is_parted) {
    struct event event = told(&decoded, (struct slice[]){slice_of(OFF_THE_BUS)}, 1);
    ck_assert_int_eq(event.kind, EVENT_KERNEL);
    ck_assert_int_eq(event.kernel->kind, KERNEL_GPU_LOST);
    ck_assert_uint_eq(event.lines, 1);
}
END_TEST

START_TEST(a_report_is_forwarded_with_time_and_node) {
    const struct slice lines[] = {
        SLICE(
            "{\"source\":\"kmsg\",\"timestamp_ns\":1773453017000000000,\"host.name\":\"n7\","
            "\"message\":"
            "\"Memory cgroup out of memory: Kill process 811 (pyth\\\"n3) score 1974 or sacrifice "
            "child\"}"),
        SLICE("{\"source\":\"kmsg\",\"timestamp_ns\":1773453017000001000,\"host.name\":\"n7\","
              "\"message\":"
              "\"Killed process 811 (pyth\\\"n3) total-vm:90000000kB, anon-rss:66000000kB, "
              "file-rss:1000kB, "
              "shmem-rss:0kB\"}")};
    struct event first = told(&decoded, lines, 2);
    ck_assert_int_eq(first.kind, EVENT_OBSERVATION);
    ck_assert_int_eq(first.observation->kind, OBSERVATION_OOM_KILL);
    ck_assert_int_eq(first.raw.data[0], '{');

    struct decoded other = decoded_open(&decoder_tagged, 0);
    struct event again = told(&other, &first.raw, 1);
    ck_assert_int_eq(again.kind, EVENT_OBSERVATION);
    ck_assert_int_eq(again.observation->kind, OBSERVATION_OOM_KILL);
    ck_assert_uint_eq(again.time_ns, first.time_ns);
    ck_assert_uint_eq(again.node, first.node);
    ck_assert(slice_equal(again.observation->text, first.observation->text));
    ck_assert_uint_eq(again.observation->fact_count, first.observation->fact_count);
    decoded_close(&other);
}
END_TEST

START_TEST(wrong_lines_are_refused) {
    decoded_refused(&decoded, "{\"source\":\"kmsg\",\"timestamp_ns\":5,\"lines\":\"x\"}",
                    DECODE_WRONG_TYPE, "lines", "an array of texts");
    decoded_refused(&decoded, "{\"source\":\"kmsg\",\"timestamp_ns\":5,\"lines\":[\"x\",7]}",
                    DECODE_WRONG_TYPE, "lines", "an array of texts");
    decoded_nothing(&decoded, "{\"source\":\"kmsg\",\"timestamp_ns\":5,\"lines\":[]}");
}
END_TEST

// Two programs of a node are two writers.
START_TEST(programs_are_told_apart) {
    const struct slice lines[] = {SLICE("{\"source\":\"app_log\",\"timestamp_ns\":5,\"host.name\":"
                                        "\"n\",\"program\":\"a\",\"message\":"
                                        "\"Traceback (most recent call last):\"}"),
                                  SLICE("{\"source\":\"app_log\",\"timestamp_ns\":5,\"host.name\":"
                                        "\"n\",\"program\":\"b\",\"message\":"
                                        "\"ValueError: of another\"}"),
                                  SLICE("{\"source\":\"app_log\",\"timestamp_ns\":5,\"host.name\":"
                                        "\"n\",\"program\":\"a\",\"message\":"
                                        "\"  File \\\"x.py\\\", line 1, in f\"}"),
                                  SLICE("{\"source\":\"app_log\",\"timestamp_ns\":5,\"host.name\":"
                                        "\"n\",\"program\":\"a\",\"message\":"
                                        "\"KeyError: mine\"}")};
    struct event event = told(&decoded, lines, 4);
    ck_assert_int_eq(event.kind, EVENT_OBSERVATION);
    ck_assert_ptr_nonnull(
        memmem(event.observation->text.data, event.observation->text.size, "mine", 4));
    ck_assert_ptr_null(
        memmem(event.observation->text.data, event.observation->text.size, "another", 7));
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
    tcase_add_test(cases, a_message_of_several_lines_is_parted);
    tcase_add_test(cases, a_report_is_forwarded_with_time_and_node);
    tcase_add_test(cases, wrong_lines_are_refused);
    tcase_add_test(cases, programs_are_told_apart);
    tcase_add_loop_test(cases, broken_lines_are_survived, 0, sizeof LINES / sizeof *LINES);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

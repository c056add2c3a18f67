// SPDX-License-Identifier: Apache-2.0
// Operations as NCCL's Inspector writes them, by themselves and in tagged lines.
#include "receivers/decode/formats.h"
#include "receivers/decode/nccl_inspector/nccl_inspector.h"
#include "receivers/decode/tagged/tagged.h"
#include "tests/receivers/decode/observed.h"

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define HEADER                                                                                     \
    "{\"header\":{\"id\":\"0x00c0ffee00a1b2\",\"comm_name\":\"dp\",\"rank\":2,\"n_ranks\":8,"      \
    "\"nnodes\":2},\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"\","   \
    "\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":1773453017748202,"        \
    "\"hostname\":\"node-07\",\"pid\":81202}"
#define COLLECTIVE                                                                                 \
    HEADER                                                                                         \
    ",\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":733,\"coll_msg_size_bytes\":"              \
    "1048576,\"coll_exec_time_us\":40912,\"coll_timing_source\":\"kernel_gpu\","                   \
    "\"coll_algobw_gbs\":277.2,\"coll_busbw_gbs\":485.1}}"
#define SENT                                                                                       \
    HEADER                                                                                         \
    ",\"p2p_perf\":{\"p2p\":\"Send\",\"p2p_sn\":12,\"p2p_peer\":3,\"p2p_msg_size_bytes\":"         \
    "4096,\"p2p_exec_time_us\":812,\"p2p_timing_source\":\"kernel_gpu\"}}"
#define WHO " @1773453017748202000 host=node-07 pid=81202 group_rank=2"
#define C   " communicator=0x00c0ffee00a1b2 group=dp"

static const struct {
    const char *lines, *expected;
} FILES[] = {
    {COLLECTIVE "\n" SENT "\n" HEADER ",\"coll_perf\":{\"coll\":\"Al",
     "1+1 inspector_coll" WHO C " op=AllReduce seq=733 size=8 exec_us=40912\n"
     "2+1 inspector_p2p" WHO " peer_rank=3" C " op=Send seq=12 size=8 exec_us=812\n"
     "3 refused truncated\n"},
    {"{\"header\":{\"id\":\"0x1\",\"comm_name\":\"unknown\",\"rank\":\"two\"},\"metadata\":{},"
     "\"coll_perf\":{}}",
     "1+1 inspector_coll - communicator=0x1\n"},
    {"{\"header\":{},\"metadata\":{},\"coll_perf\":3}", "1 refused missing_field\n"},
    {"{\"metadata\":{\"dump_timestamp_us\":9223372036854775807},\"p2p_perf\":{}}",
     "1 refused out_of_range\n"},
    {"{\"header\":{},\"metadata\":{]}", "1 refused bad_json\n"},
};

START_TEST(files) {
    struct slice text = slice_of(FILES[_i].lines);
    observed_check(&decoder_nccl_inspector, FILES[_i].lines, FILES[_i].expected);
    struct slice first = {text.data, strcspn(text.data, "\n")};
    if (first.size < text.size)
        for (size_t size = 1; size < first.size; size++) {
            const struct observed *observed =
                observed_whole(&decoder_nccl_inspector, (struct slice){text.data, size});
            ck_assert_str_eq(observed->text, "1 refused truncated\n");
        }
}
END_TEST

START_TEST(any_kind) {
    struct slice text = slice_of(FILES[0].lines);
    ck_assert_str_eq(observed_lines(&decoder_any, text)->text, FILES[0].expected);
    ck_assert_int_eq(format_guess(text, true, FORMAT_UNKNOWN).kind, FORMAT_NCCL_INSPECTOR);
}
END_TEST

#define TAG "{\"source\":\"nccl_inspector\",\"timestamp_ns\":1773453018000000000,"

static const struct {
    const char *text, *expected;
} TAGGED[] = {
    {TAG "\"host.name\":\"n1\",\"document\":" COLLECTIVE "}",
     "1+1 inspector_coll" WHO C " op=AllReduce seq=733 size=8 exec_us=40912\n"},
    {TAG "\"host.name\":\"n1\",\"header\":{\"rank\":1},\"coll_perf\":{\"coll\":\"Reduce\"}}",
     "1+1 inspector_coll @1773453018000000000 host=n1 group_rank=1 op=Reduce\n"},
    {TAG "\"document\":\"{\\\"p2p_perf\\\":{\\\"p2p_sn\\\":7}}\"}",
     "1+1 inspector_p2p @1773453018000000000 seq=7\n"},
    {TAG "\"document\":3}", "1 refused not_object\n"},
};

START_TEST(tagged) {
    struct slice text = slice_of(TAGGED[_i].text);
    ck_assert_str_eq(observed_lines(&decoder_tagged, text)->text, TAGGED[_i].expected);
    for (size_t size = 0; size < text.size; size++)
        observed_lines(&decoder_tagged, (struct slice){text.data, size});
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nccl_inspector");
    TCase *cases = tcase_create("nccl_inspector");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, files, 0, sizeof FILES / sizeof *FILES);
    tcase_add_test(cases, any_kind);
    tcase_add_loop_test(cases, tagged, 0, sizeof TAGGED / sizeof *TAGGED);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

// SPDX-License-Identifier: Apache-2.0
// What RAS answers: its text, its monitor, its JSON, whole and without the commas that two versions
// leave out; and the tagged forms.
#include "receivers/decode/formats.h"
#include "receivers/decode/line/gather.h"
#include "receivers/decode/log/log.h"
#include "receivers/decode/nccl_ras/nccl_ras.h"
#include "receivers/decode/tagged/tagged.h"
#include "tests/receivers/decode/observed.h"

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define AT "@1773453017000000000"
#define C  " communicator=0x51c0ffee00112233"

// -- text -----------------------------------------------------------------------------------------

static const struct {
    const char *lines, *expected;
} REPORTS[] = {
    {"NCCL version 2.27.3 compiled with CUDA 12.9\n"
     "\n"
     "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
     "    0         1         2         8        16        16   RUNNING  INCOMPLETE\n"
     "Errors\n"
     "======\n"
     "INCOMPLETE\n"
     "  Missing communicator data from 1 job process\n"
     "  Process 90012 on node 10.20.0.8 managing GPU 5\n"
     "\n"
     "#0-0 (51c0ffee00112233) INCOMPLETE\n"
     "  Missing communicator data from 1 rank\n"
     "  The missing rank: 13\n"
     "\n"
     "Warnings\n"
     "========\n"
     "\n"
     "#0-0 (51c0ffee00112233) MISMATCH\n"
     "  Communicator ranks have different AllReduce operation counts\n"
     "  14 ranks have launched up to operation 6650\n"
     "  Rank 3 has launched up to operation 6649 -- GPU 3 managed by process 81203 on node "
     "10.20.0.7\n"
     "  Rank 9 has not launched any operations -- [process information not found]\n",
     "9+1 ras_missing - host=10.20.0.8 pid=90012 cuda_device=5 nvml_device=5\n"
     "13+1 ras_missing - group_rank=13" C "\n"
     "19+2 ras_mismatch - count=6650" C " op=AllReduce\n"
     "21+1 ras_rank - host=10.20.0.7 pid=81203 group_rank=3 cuda_device=3 nvml_device=3"
     " count=6649" C " op=AllReduce\n"
     "22+1 ras_rank - group_rank=9 count=0" C " op=AllReduce\n"},
    {"DEAD\n"
     "  1 job process is considered dead (unreachable via the RAS network)\n"
     "  Process 90012 on node fd00::8 managing GPUs 0,1 (NVML 4,5)\n"
     "  [could not find information on 1 process]\n"
     "TIMEOUT\n"
     "  Encountered 2 communication timeouts while gathering communicator data\n",
     "3+1 ras_missing - host=fd00::8 pid=90012 considered_dead=yes\n"},
    {"#1-12 (0000000000000abc) INCOMPLETE\n"
     "  Missing communicator data from 3 ranks\n"
     "  Rank 21 -- GPU 0 (NVML 4) managed by process 7 on node 10.0.0.1\n"
     "  Rank 22 -- [process information not found]\n"
     "  The missing ranks: 23,24\n",
     "3+1 ras_missing - host=10.0.0.1 pid=7 group_rank=21 cuda_device=0 nvml_device=4 "
     "communicator=0x0000000000000abc\n"
     "4+1 ras_missing - group_rank=22 communicator=0x0000000000000abc\n"
     "5+1 ras_missing - tasks=23,24 communicator=0x0000000000000abc\n"},
    {"#0-0 (51c0ffee00112233) ERROR\n"
     "  Asynchronous errors on 3 ranks\n"
     "  2 ranks reported Remote process error\n"
     "  Rank 1 -- GPU 1 managed by process 7 on node 10.0.0.1\n"
     "  Rank 2 -- GPU 2 managed by process 8 on node 10.0.0.1\n"
     "  Rank 5 reported System error -- GPU 5 managed by process 9 on node 10.0.0.1\n",
     "4+1 ras_rank - host=10.0.0.1 pid=7 group_rank=1 cuda_device=1 nvml_device=1 "
     "error=Remote process error" C "\n"
     "5+1 ras_rank - host=10.0.0.1 pid=8 group_rank=2 cuda_device=2 nvml_device=2 "
     "error=Remote process error" C "\n"
     "6+1 ras_rank - host=10.0.0.1 pid=9 group_rank=5 cuda_device=5 nvml_device=5 "
     "error=System error" C "\n"},
    {"#0-0 (51c0ffee00112233) MISMATCH\n"
     "  Communicator ranks have different status\n"
     "  26 ranks have status NOCOMM\n"
     "  Rank 3 has status INIT -- GPU 3 managed by process 7 on node 10.0.0.1\n"
     "\n"
     "  Communicator ranks have different Broadcast operation counts\n"
     "  26 ranks have launched up to operation 7\n"
     "  2 ranks have not launched any operations\n"
     "  Rank 4 -- GPU 4 managed by process 8 on node 10.0.0.1\n"
     "  Communicator ranks have different collective operation counts\n"
     "  Rank 5 has launched up to operation 3 -- [process information not found]\n"
     "step 5 of 10\n",
     "2+2 ras_mismatch -" C "\n"
     "4+1 ras_rank - host=10.0.0.1 pid=7 group_rank=3 cuda_device=3 nvml_device=3 status=INIT" C
     "\n"
     "6+2 ras_mismatch - count=7" C " op=Broadcast\n"
     "9+1 ras_rank - host=10.0.0.1 pid=8 group_rank=4 cuda_device=4 nvml_device=4 count=0" C
     " op=Broadcast\n"
     "10+1 ras_mismatch -" C "\n"
     "11+1 ras_rank - group_rank=5 count=3" C "\n"},
    {"#0-0 (51c0ffee00112233) INCOMPLETE\n  Rank 21 -- GPU 0 managed by pro\n",
     "2 refused truncated\n"},
    {"INCOMPLETE\n  Process 90012 on node 10.20\n", "2 refused truncated\n"},
    {"INCOMPLETE\nRank 3 has nothing to do\n", ""},
    {"#0-0 (xyz) MISMATCH\n#1-1\n#\n", ""},
    {"#0-0 (51c0ffee00112233) MISMATCH\nstep 1\n"
     "  Communicator ranks have different AllReduce operation counts\nProcess 7: done\n"
     "  14 ranks have launched up to operation 6650\nRank 3 has nothing to do\n"
     "  Rank 9 has not launched any operations -- [process information not found]\nWarnings\n",
     "3+2 ras_mismatch - count=6650" C " op=AllReduce\n"
     "7+1 ras_rank - group_rank=9 count=0" C " op=AllReduce\n"},
    {"[2026-03-14 01:50:17] PEER_DEAD: Process 90012 on node 10.20.0.8 managing GPU 5\n"
     "[2026-03-14 01:50:17] PEER_NEW: Process 90100 on node 10.20.0.9 managing GPU 5 \n"
     "[2026-03-14 01:50:17] PEER_DEAD: 10.20.0.8<41234> \n"
     "[2026-03-14 01:50:17] PEER_CONNECTING: Process 1 on node 10.20.0.9 managing GPU 5\n"
     "[2026-03-14 01:50:17] PEER_DEAD: Proc\n",
     "1+1 ras_peer_dead " AT " host=10.20.0.8 pid=90012 cuda_device=5 nvml_device=5\n"
     "2+1 ras_peer_new " AT " host=10.20.0.9 pid=90100 cuda_device=5 nvml_device=5\n"
     "3+1 ras_peer_dead " AT " host=10.20.0.8\n"
     "5 refused truncated\n"},
};

START_TEST(reports) {
    observed_check(&decoder_log, REPORTS[_i].lines, REPORTS[_i].expected);
}
END_TEST

// A report that nothing follows is not waited for for ever.
START_TEST(reports_end) {
    const int counts[] = {GATHER_PASSED_MAX, GATHER_PASSED_MAX + 1};
    char *text = memory_take(1 << 16);
    size_t size = (size_t)sprintf(text, "#0-0 (51c0ffee00112233) INCOMPLETE\n");
    for (int i = 0; i < counts[_i]; i++)
        size += (size_t)sprintf(text + size, "step %d\n", i);
    size += (size_t)sprintf(text + size, "  The missing rank: 13\n");
    const struct observed *observed = observed_lines(&decoder_log, (struct slice){text, size});
    ck_assert_str_eq(observed->text, _i == 0 ? "502+1 ras_missing - group_rank=13" C "\n" : "");
    memory_give(text);
}
END_TEST

// -- documents ------------------------------------------------------------------------------------

#define DOCUMENT(comma)                                                                            \
    "{\n \"nccl_version\": \"2.28.9\",\n \"timestamp\": \"2026-03-14 01:50:17\",\n"                \
    " \"communicators\": [\n  {\n   \"hash\": \"0x51c0ffee00112233\",\n   \"size\": 3,\n"          \
    "   \"ranks\": [\n"                                                                            \
    "    {\"rank\": 0, \"host\": \"10.20.0.7\", \"pid\": 81200, \"cuda_dev\": 0, \"nvml_dev\": "   \
    "4,\n"                                                                                         \
    "     \"status\": {\"init_state\": 0, \"async_error\": 0, \"abort_flag\": false},\n"           \
    "     \"collective_counts\": {\n \"Broadcast\": 2,\n \"AllReduce\": 6650\n }\n    },\n"        \
    "    {\"rank\": 1, \"host\": \"10.20.0.7\", \"pid\": 81201, \"cuda_dev\": 0, \"nvml_dev\": "   \
    "5,\n"                                                                                         \
    "     \"status\": {\"init_state\": 7, \"async_error\": 6, \"abort_flag\": true}}\n   ],\n"     \
    "   \"missing_ranks\": [\n    {\"rank\": 2, \"host\": \"10.20.0.8\", \"pid\": 90012,\n"        \
    "     \"cuda_dev\": 0,\n     \"nvml_dev\": 0" comma                                            \
    "\n     \"status\": {\n"                                                                       \
    "      \"unresponsive\": true,\n      \"considered_dead\": false\n     }\n    }\n   ]\n  }\n"  \
    " ],\n \"ras\": {\"timeouts_count\": 1}\n}"

static const char RANKS[] = "1+1 ras_rank " AT
                            " host=10.20.0.7 pid=81200 group_rank=0 cuda_device=0 nvml_device=4 "
                            "status=RUNNING async_error=0 missing=no" C
                            " size=3 counts={\"Broadcast\":2,\"AllReduce\":6650} init_state=0\n"
                            "1+0 ras_rank " AT
                            " host=10.20.0.7 pid=81201 group_rank=1 cuda_device=0 nvml_device=5 "
                            "status=ABORT async_error=6 missing=no" C
                            " size=3 init_state=7\n"
                            "1+0 ras_rank " AT
                            " host=10.20.0.8 pid=90012 group_rank=2 cuda_device=0 nvml_device=0 "
                            "missing=yes unresponsive=yes considered_dead=no" C " size=3\n";

START_TEST(documents) {
    const struct decoder_type *types[] = {&decoder_nccl_ras, &decoder_any};
    struct slice text = slice_of(_i % 2 == 0 ? DOCUMENT(",") : DOCUMENT(""));
    const struct decoder_type *type = types[_i / 2];
    ck_assert_str_eq(observed_whole(type, text)->text, RANKS);
    struct slice crlf = observed_crlf(text);
    ck_assert_str_eq(observed_whole(type, crlf)->text, RANKS);
    memory_give((void *)(uintptr_t)crlf.data);
    for (size_t size = 0; size < text.size; size++) {
        const struct observed *observed =
            observed_whole(&decoder_nccl_ras, (struct slice){text.data, size});
        ck_assert_ptr_ne(strstr(observed->text, "1 refused "), NULL);
    }
}
END_TEST

START_TEST(documents_are_told_by_their_keys) {
    const char *texts[] = {DOCUMENT(","), DOCUMENT("")};
    for (int i = 0; i < 2; i++) {
        struct format_guess guess = format_guess(slice_of(texts[i]), true, FORMAT_UNKNOWN);
        ck_assert_int_eq(guess.kind, FORMAT_NCCL_RAS);
        ck_assert_int_eq(guess.layout, LAYOUT_OBJECT);
    }
}
END_TEST

#define MONITOR(event, peer)                                                                       \
    "{\n  \"timestamp\": \"2026-03-14 01:50:17\",\n  \"group\": \"LIFECYCLE\",\n  \"event\": "     \
    "\"" event "\",\n  \"peer\": {" peer "},\n  \"details\": \"\"\n}"

static const struct {
    const char *text, *expected;
} OBJECTS[] = {
    {MONITOR("PEER_DEAD",
             "\"host\": \"10.20.0.8\", \"pid\": 90012, \"cuda_devs\": [1], "
             "\"nvml_devs\": [5]"),
     "1+1 ras_peer_dead " AT " host=10.20.0.8 pid=90012 cuda_device=1 nvml_device=5\n"},
    {MONITOR("PEER_NEW",
             "\"host\": \"10.20.0.8\", \"pid\": 90012, \"cuda_devs\": [1,2], "
             "\"nvml_devs\": []"),
     "1+1 ras_peer_new " AT " host=10.20.0.8 pid=90012\n"},
    {MONITOR("PEER_DEAD", "\"addr\": \"10.20.0.8<41234>\""),
     "1+1 ras_peer_dead " AT " host=10.20.0.8\n"},
    {MONITOR("PEER_CONNECTING", ""), ""},
    {"{\"timestamp\":\"then\",\"communicators\":[]}", "1 refused bad_timestamp\n"},
    {"{\"communicators\":[]}", ""},
    {"{\"communicators\":[1,{\"ranks\":7},{\"ranks\":[3,{},{\"rank\":7}]}]}",
     "1+1 ras_rank - group_rank=7 missing=no\n"},
    {"{\"communicators\":3}", "1 refused missing_field\n"},
    {"[]", "1 refused not_object\n"},
    {"{\"communicators\":[}", "1 refused bad_json\n"},
    {"{\"communicators\":[", "1 refused truncated\n"},
};

START_TEST(objects) {
    ck_assert_str_eq(observed_whole(&decoder_nccl_ras, slice_of(OBJECTS[_i].text))->text,
                     OBJECTS[_i].expected);
}
END_TEST

#define SAID "@1773453018000000000"

static const struct {
    const char *text, *expected;
} TAGGED[] = {
    {"{\"source\":\"nccl_ras\",\"timestamp_ns\":1773453018000000000,\"host.name\":\"n1\","
     "\"document\":{\"timestamp\":\"2026-03-14 01:50:17\",\"communicators\":[{\"ranks\":[{\"rank\":"
     "1},{\"rank\":2}]}]}}",
     "1+1 ras_rank " SAID " group_rank=1 missing=no\n"
     "1+0 ras_rank " SAID " group_rank=2 missing=no\n"},
    {"{\"source\":\"nccl_ras\",\"timestamp_ns\":1773453018000000000,\"document\":"
     "\"{\\\"communicators\\\":[{\\\"ranks\\\":[],\\\"missing_ranks\\\":[{\\\"rank\\\":1,"
     "\\\"nvml_dev\\\":3 \\\"status\\\":{}},{\\\"rank\\\":2}]}]}\"}",
     "1+1 ras_rank " SAID " group_rank=1 nvml_device=3 missing=yes\n"
     "1+0 ras_rank " SAID " group_rank=2 missing=yes\n"},
    {"{\"source\":\"nccl_ras\",\"timestamp_ns\":1773453018000000000,\"document\":\"{]\"}",
     "1 refused bad_json\n"},
    {"{\"source\":\"nccl_ras\",\"communicators\":[]}", "1 refused missing_timestamp\n"},
    {"{\"source\":\"nccl_ras\",\"timestamp_ns\":1773453018000000000,\"communicators\":[{\"ranks\":["
     "{\"rank\":1}]}]}",
     "1+1 ras_rank " SAID " group_rank=1 missing=no\n"},
    // A whole answer in text; the second one breaks off.
    {"{\"source\":\"nccl_ras\",\"timestamp_ns\":1773453018000000000,\"document\":"
     "\"NCCL version 2.27.3 compiled with CUDA 12.9\\n\\nErrors\\n======\\n\\nDEAD\\n"
     "  1 job process is considered dead (unreachable via the RAS network)\\n"
     "  Process 90012 on node 10.20.0.8 managing GPU 5\\n\\n#0-0 (51c0ffee00112233) INCOMPLETE\\n"
     "  Missing communicator data from 1 rank\\n  The missing rank: 13\\n\\n"
     "Warnings\\n========\\n\\n#0-0 (51c0ffee00112233) MISMATCH\\n"
     "  Communicator ranks have different AllReduce operation counts\\n"
     "  14 ranks have launched up to operation 6650\\n"
     "  Rank 9 has not launched any operations -- [process information not found]\\n\\n\"}",
     "1+1 ras_missing " SAID
     " host=10.20.0.8 pid=90012 cuda_device=5 nvml_device=5 considered_dead=yes\n"
     "1+0 ras_missing " SAID " group_rank=13" C "\n"
     "1+0 ras_mismatch " SAID " count=6650" C " op=AllReduce\n"
     "1+0 ras_rank " SAID " group_rank=9 count=0" C " op=AllReduce\n"},
    {"{\"source\":\"nccl_ras\",\"timestamp_ns\":1773453018000000000,\"document\":"
     "\"NCCL version 2.27.3\\n#0-0 (51c0ffee00112233) INCOMPLETE\\n"
     "  Rank 3 -- GPU 3 managed by pro\"}",
     "1 refused truncated\n"},
    {"{\"source\":\"nccl_ras\",\"timestamp_ns\":1773453018000000000,\"document\":"
     "\"NCCL version 2.27.3\\nJob summary\\n\"}",
     ""},
    {"{\"source\":\"slurm\",\"timestamp_ns\":1773453018000000000,\"message\":\"srun: error: n1: "
     "task 3: Killed\"}",
     "1+1 slurm_task_exit " SAID " host=n1 task=3 tasks=3 signal=9\n"},
};

START_TEST(tagged) {
    struct slice text = slice_of(TAGGED[_i].text);
    ck_assert_str_eq(observed_lines(&decoder_tagged, text)->text, TAGGED[_i].expected);
    ck_assert_str_eq(observed_lines(&decoder_any, text)->text, TAGGED[_i].expected);
    for (size_t size = 0; size < text.size; size++)
        observed_lines(&decoder_tagged, (struct slice){text.data, size});
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nccl_ras");
    TCase *cases = tcase_create("nccl_ras");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, reports, 0, sizeof REPORTS / sizeof *REPORTS);
    tcase_add_loop_test(cases, reports_end, 0, 2);
    tcase_add_loop_test(cases, documents, 0, 4);
    tcase_add_test(cases, documents_are_told_by_their_keys);
    tcase_add_loop_test(cases, objects, 0, sizeof OBJECTS / sizeof *OBJECTS);
    tcase_add_loop_test(cases, tagged, 0, sizeof TAGGED / sizeof *TAGGED);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

// SPDX-License-Identifier: Apache-2.0
// What a Pod, a Node and a job object say has gone wrong, and that what is well gives nothing.
#include "receivers/decode/kubernetes/kubernetes.h"
#include "receivers/decode/kubernetes/last_words.h"
#include "tests/receivers/decode/decode_told.h"

static struct decoded decoded;
static struct buffer out;
static const uint64_t READ_NS = 7;

static void setup(void) {
    decoded = decoded_open(&decoder_kubernetes, READ_NS);
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    decoded_close(&decoded);
    buffer_release(&out);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

struct row {
    const char *record;
    const char *told;
};

// -- pods -----------------------------------------------------------------------------------------

#define POD(status)                                                                                \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"},\"spec\":"  \
    "{\"nodeName\":\"a\"},\"status\":{" status "}}"
#define CONTAINER(members) POD("\"containerStatuses\":[{\"name\":\"c\"," members "}]")
#define ENDED(members)     CONTAINER("\"restartCount\":3,\"state\":{\"terminated\":{" members "}}")
#define AT                 "\"finishedAt\":\"1970-01-01T00:00:02Z\""
#define SEEN               "kubernetes [7] @a\n"
#define END                "container_terminated 2000000000 @a pod=n/p container=c unit_uid=u"

static const struct row PODS[] = {
    // The exit code, and the signal in it.
    {ENDED("\"exitCode\":1," AT), SEEN END " exit_code=1 restarts=3\n"},
    {ENDED("\"exitCode\":128," AT), SEEN END " exit_code=128 restarts=3\n"},
    {ENDED("\"exitCode\":129," AT), SEEN END " signal=1 exit_code=129 restarts=3\n"},
    {ENDED("\"exitCode\":192," AT), SEEN END " signal=64 exit_code=192 restarts=3\n"},
    {ENDED("\"exitCode\":193," AT), SEEN END " exit_code=193 restarts=3\n"},
    {ENDED("\"exitCode\":255," AT), SEEN END " exit_code=255 restarts=3\n"},
    {ENDED("\"exitCode\":0,\"signal\":9," AT ",\"reason\":\"Error\""),
     SEEN END " signal=9 exit_code=0 reason=Error restarts=3\n"},
    {ENDED("\"exitCode\":143," AT), SEEN END " signal=15 exit_code=143 restarts=3 victim=yes\n"},
    {ENDED("\"exitCode\":137,\"reason\":\"OOMKilled\"," AT),
     SEEN END " signal=9 exit_code=137 reason=OOMKilled restarts=3\n"},
    {ENDED("\"exitCode\":137,\"reason\":\"ContainerStatusUnknown\"," AT),
     SEEN END " exit_code=137 reason=ContainerStatusUnknown restarts=3\n"},
    {ENDED("\"exitCode\":-1," AT), SEEN END " exit_code=-1 restarts=3\n"},
    {ENDED("\"exitCode\":\"137\"," AT), SEEN END " restarts=3\n"},
    // Good ends.
    {ENDED("\"exitCode\":0," AT), SEEN},
    {ENDED("\"exitCode\":0,\"reason\":\"Completed\"," AT), SEEN},
    {ENDED("\"exitCode\":0,\"reason\":\"OOMKilled\"," AT),
     SEEN END " exit_code=0 reason=OOMKilled restarts=3\n"},
    // Its time.
    {ENDED("\"exitCode\":1,\"finishedAt\":null"),
     SEEN "container_terminated [7] @a pod=n/p container=c unit_uid=u exit_code=1 restarts=3\n"},
    {ENDED("\"exitCode\":1,\"finishedAt\":\"0001-01-01T00:00:00Z\""),
     SEEN "container_terminated [7] @a pod=n/p container=c unit_uid=u exit_code=1 restarts=3\n"},
    // What it left behind.
    {ENDED("\"exitCode\":1,\"message\":\" no such file\\n\"," AT),
     SEEN END " exit_code=1 message=no such file restarts=3\n"},
    {ENDED("\"exitCode\":1,\"message\":\"Traceback (most recent call last):\\n  x\\nKeyError: "
           "'x'\\n\"," AT),
     SEEN END " exit_code=1 exception=KeyError message='x' restarts=3\n"},
    // Which container, and which run of it.
    {ENDED("\"exitCode\":1,\"containerID\":\"containerd://4be1\"," AT),
     SEEN "container_terminated 2000000000 @a pod=n/p container=c container_id=4be1 unit_uid=u "
          "exit_code=1 restarts=3\n"},
    {CONTAINER("\"restartCount\":3,\"state\":{\"running\":{}},\"lastState\":{\"terminated\":{"
               "\"exitCode\":1," AT "}}"),
     SEEN END " exit_code=1 restarts=2\n"},
    {CONTAINER("\"restartCount\":3,\"state\":{\"waiting\":{}},\"lastState\":{\"terminated\":{"
               "\"exitCode\":1," AT "}}"),
     SEEN END " exit_code=1 restarts=3\n"},
    {CONTAINER("\"restartCount\":3,\"state\":{\"terminated\":{\"exitCode\":2," AT
               "}},\"lastState\":{\"terminated\":{\"exitCode\":1,"
               "\"finishedAt\":\"1970-01-01T00:00:01Z\"}}"),
     SEEN END " exit_code=2 restarts=3\ncontainer_terminated 1000000000 @a pod=n/p container=c "
              "unit_uid=u exit_code=1 restarts=2\n"},
    {CONTAINER("\"restartCount\":3,\"state\":{\"terminated\":{\"exitCode\":1," AT
               "}},\"lastState\":{\"terminated\":{\"exitCode\":1," AT "}}"),
     SEEN END " exit_code=1 restarts=3\n"},
    {POD("\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{\"terminated\":{\"exitCode\":1," AT
         "}}}],\"containerStatuses\":[7,{\"name\":\"c\",\"state\":{\"waiting\":{}}}]"),
     SEEN "container_terminated 2000000000 @a pod=n/p container=i unit_uid=u exit_code=1\n"},
    // The kubelet's word, and the condition.
    {POD("\"reason\":\"OutOfnvidia.com/gpu\",\"message\":\"m\""),
     SEEN "pod_rejected [7] @a pod=n/p unit_uid=u reason=OutOfnvidia.com/gpu message=m\n"},
    {POD("\"reason\":\"NodeShutdown\""),
     SEEN "pod_disruption [7] @a pod=n/p unit_uid=u reason=NodeShutdown\n"},
    {POD("\"reason\":\"Evicted\""), SEEN},
    {POD("\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"False\"},{\"type\":\"Ready\","
         "\"status\":\"False\"}]"),
     SEEN},
    {POD("\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":\"r\"}]"),
     SEEN "pod_disruption [7] @a pod=n/p unit_uid=u reason=r\n"},
    {POD("\"containerStatuses\":7,\"initContainerStatuses\":{}"), SEEN},
};

START_TEST(pods) {
    ck_assert_str_eq(told(&decoded, PODS[_i].record, &out), PODS[_i].told);
}
END_TEST

// -- nodes ----------------------------------------------------------------------------------------

#define NODE(type, status, more)                                                                   \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":[{\"type\":"      \
    "\"" type "\",\"status\":\"" status "\"" more "}]}}"
#define CONDITION "node_condition [7] @a"

static const struct row NODES[] = {
    {NODE("Ready", "True", ""), SEEN},
    {NODE("Ready", "False", ""), SEEN CONDITION " status=False condition=Ready bad=yes\n"},
    {NODE("Ready", "Unknown", ""), SEEN CONDITION " status=Unknown condition=Ready bad=yes\n"},
    {NODE("MemoryPressure", "True", ""),
     SEEN CONDITION " status=True condition=MemoryPressure bad=yes\n"},
    {NODE("MemoryPressure", "Unknown", ""), SEEN},
    {NODE("KernelDeadlock", "False", ""), SEEN},
    {NODE("KernelReady", "True", ""), SEEN},
    {NODE("KernelReady", "False", ",\"reason\":\"KernelBug\",\"message\":\"m\""),
     SEEN CONDITION " reason=KernelBug message=m status=False condition=KernelReady bad=yes\n"},
    // Of those that a row of forms knows it says the cause.
    {NODE("AcceleratedHardwareReady", "False", ",\"reason\":\"NvidiaXID79Error\""),
     SEEN CONDITION " vendor=nvidia reason=NvidiaXID79Error cause=gpu_lost status=False "
                    "condition=AcceleratedHardwareReady xid=79 bad=yes\n"},
    {NODE("AcceleratedHardwareReady", "False", ",\"reason\":\"DCGMHealthCode122\""),
     SEEN "health_event [7] @a healthy=yes\n"},
    {NODE("XidCriticalError", "True", ",\"reason\":\"{\\\"79\\\":true}\""),
     SEEN CONDITION " vendor=nvidia reason={\"79\":true} cause=gpu_lost status=True "
                    "condition=XidCriticalError bad=yes\n"},
    {NODE("SysLogsXIDError", "True",
          ",\"reason\":\"SysLogsXIDErrorIsNotHealthy\",\"message\":\"ErrorCode:13 PCI:0000:1b:00 "
          "Recommended Action=NONE;ErrorCode:119 PCI:0000:9b:00 GPU_UUID:GPU-1\""),
     SEEN CONDITION " gpu=0000:9b:00 vendor=nvidia reason=SysLogsXIDErrorIsNotHealthy "
                    "cause=gpu_hardware code=119 status=True condition=SysLogsXIDError bad=yes\n"},
    {NODE("SysLogsXIDError", "True",
          ",\"reason\":\"SysLogsXIDErrorIsNotHealthy\",\"message\":\"ErrorCode:31 PCI:0000:9b:00 "
          "Recommended Action=NONE\""),
     SEEN "health_event [7] @a healthy=yes\n"},
    {NODE("SysLogsXIDError", "False", ",\"reason\":\"SysLogsXIDErrorIsHealthy\""),
     SEEN CONDITION " reason=SysLogsXIDErrorIsHealthy status=False condition=SysLogsXIDError\n"},
    {NODE("XidCriticalError", "True", ",\"reason\":\"{\\\"31\\\":true}\""),
     SEEN CONDITION " reason={\"31\":true} status=True condition=XidCriticalError bad=yes\n"},
    {NODE("GPUMissing", "False", ""), SEEN},
    {NODE("Odd", "False", ",\"reason\":\"XidError\""),
     SEEN CONDITION " reason=XidError status=False condition=Odd\n"},
    {NODE("", "True", ""), SEEN},
};

START_TEST(nodes) {
    ck_assert_str_eq(told(&decoded, NODES[_i].record, &out), NODES[_i].told);
}
END_TEST

// -- jobs -----------------------------------------------------------------------------------------

#define JOB(kind, more, type, status)                                                              \
    "{\"kind\":\"" kind "\",\"metadata\":{\"name\":\"j\",\"namespace\":\"n\"},\"status\":{" more   \
    "\"conditions\":[{\"type\":\"" type "\",\"status\":\"" status                                  \
    "\",\"lastTransitionTime\":"                                                                   \
    "\"1970-01-01T00:00:02Z\"}]}}"
#define BAD "job_condition 2000000000 job=n/j"

static const struct row JOBS[] = {
    {JOB("Job", "", "Failed", "True"), BAD " condition=Failed\n"},
    {JOB("Job", "", "FailureTarget", "True"), BAD " condition=FailureTarget\n"},
    {JOB("Job", "", "Failed", "False"), ""},
    {JOB("Job", "", "Complete", "True"), ""},
    {JOB("JobSet", "\"restarts\":3,", "Failed", "True"), BAD " condition=Failed restarts=3\n"},
    {JOB("PyTorchJob", "", "Restarting", "True"), BAD " condition=Restarting\n"},
    {JOB("TrainJob", "", "Suspended", "True"), BAD " condition=Suspended\n"},
    {JOB("CronJob", "", "Failed", "True"), ""},
};

START_TEST(jobs) {
    ck_assert_str_eq(told(&decoded, JOBS[_i].record, &out), JOBS[_i].told);
}
END_TEST

START_TEST(many_are_told_of) {
    enum { COUNT = 500 };
    struct buffer record;
    buffer_init(&record, 1 << 20);
    buffer_append_text(&record,
                       "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{"
                       "\"conditions\":[");
    for (int i = 0; i < COUNT; i++)
        buffer_append_format(&record, "%s{\"type\":\"T%d\",\"status\":\"True\"}", i == 0 ? "" : ",",
                             i);
    buffer_append_text(&record, "]}}");
    buffer_append_char(&record, '\0');
    const char *text = told(&decoded, record.data, &out);
    int lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_int_eq(lines, COUNT + 1);
    buffer_release(&record);
}
END_TEST

// What an object left over is gone when the next one is refused.
START_TEST(nothing_is_left_over) {
    decoded_ok(&decoded, PODS[0].record);
    decoded_refused(&decoded, "{\"kind\":", DECODE_BAD_JSON, "", "");
    ck_assert_int_eq(kubernetes_next(decoded.state, &decoded.arena, &decoded.event, &decoded.fault),
                     DECODE_END);
}
END_TEST

START_TEST(what_was_not_asked_for_is_given_up) {
    decoded_ok(&decoded, PODS[0].record);
    decoder_drop_held(&decoder_kubernetes, decoded.state, &decoded.arena);
    ck_assert_int_eq(kubernetes_next(decoded.state, &decoded.arena, &decoded.event, &decoded.fault),
                     DECODE_END);
}
END_TEST

START_TEST(without_any_time_it_is_refused_once) {
    decoded_close(&decoded);
    decoded = decoded_open(&decoder_kubernetes, 0);
    decoded_run(&decoded, SLICE("{\"kind\":\"Job\",\"status\":{\"conditions\":[{\"type\":\"Failed\""
                                ",\"status\":\"True\"},{\"type\":\"Suspended\",\"status\":"
                                "\"True\"}]}}"));
    ck_assert_int_eq(decoded.category, DECODE_MISSING_TIMESTAMP);
    ck_assert_int_eq(kubernetes_next(decoded.state, &decoded.arena, &decoded.event, &decoded.fault),
                     DECODE_END);
}
END_TEST

START_TEST(broken_objects_are_survived) {
    static const char *const records[] = {
        CONTAINER("\"restartCount\":3,\"state\":{\"terminated\":{\"exitCode\":2,\"message\":"
                  "\"Traceback (most recent call last):\\nE: x\"," AT
                  "}},\"lastState\":{\"terminated\":{\"exitCode\":1}}"),
        NODE("Odd", "True", ",\"reason\":\"XID7\""),
        JOB("JobSet", "\"restarts\":3,", "Failed", "True"),
    };
    decoded_torture(&decoded, records[_i]);
}
END_TEST

// -- last words -----------------------------------------------------------------------------------

#define HEAD "Traceback (most recent call last):\n  File \"x\", line 1\n"

static const struct {
    const char *text;
    const char *type; // NULL: none
    const char *words;
} WORDS[] = {
    {"", NULL, NULL},
    {"KeyError: 'x'", NULL, NULL},
    {HEAD, NULL, NULL},
    {HEAD "KeyError: 'x'", "KeyError", "'x'"},
    {HEAD "KeyboardInterrupt\n", "KeyboardInterrupt", ""},
    {HEAD "torch.AcceleratorError: CUDA error: y\nCUDA kernel errors", "torch.AcceleratorError",
     "CUDA error: y"},
    {HEAD "two words: x", NULL, NULL},
    {HEAD ".x: y", NULL, NULL},
    {"before\n" HEAD "A: 1\n\nDuring handling of it\n\n" HEAD "B: 2\n", "A", "1"},
    {HEAD "torch.ChildFailedError: 1\n" HEAD "B: 2\n", "B", "2"},
    {HEAD "ChildFailedError: 1\n", "ChildFailedError", "1"},
    {"[rank3]: Traceback (most recent call last):\n[rank3]:   File\n[rank3]: OSError: e\n",
     "OSError", "e"},
    {"[rank]: " HEAD "A: 1", NULL, NULL},
};

START_TEST(last_words) {
    struct slice type = {NULL, 0}, words = {NULL, 0};
    bool found = last_words_find(slice_of(WORDS[_i].text), &type, &words);
    ck_assert_int_eq(found, WORDS[_i].type != NULL);
    if (found) {
        decoded_text(type, WORDS[_i].type);
        decoded_text(words, WORDS[_i].words);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_kubernetes_walk");
    TCase *cases = tcase_create("decode_kubernetes_walk");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, pods, 0, sizeof PODS / sizeof *PODS);
    tcase_add_loop_test(cases, nodes, 0, sizeof NODES / sizeof *NODES);
    tcase_add_loop_test(cases, jobs, 0, sizeof JOBS / sizeof *JOBS);
    tcase_add_test(cases, many_are_told_of);
    tcase_add_test(cases, nothing_is_left_over);
    tcase_add_test(cases, what_was_not_asked_for_is_given_up);
    tcase_add_test(cases, without_any_time_it_is_refused_once);
    tcase_add_loop_test(cases, broken_objects_are_survived, 0, 3);
    tcase_add_loop_test(cases, last_words, 0, sizeof WORDS / sizeof *WORDS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

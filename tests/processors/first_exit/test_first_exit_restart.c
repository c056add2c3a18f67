// SPDX-License-Identifier: Apache-2.0
// first_exit: whether it helps to start the job again.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

static const struct {
    const char *type, *message, *restart;
} RAISED[] = {
    {"KeyError", "'label'", "in_vain"},
    {"OSError", "[Errno 5] Input/output error: '/scratch/a'", "elsewhere"},
    {"OSError", "[Errno 30] Read-only file system: '/local/a'", "elsewhere"},
    {"OSError", "[Errno 28] No space left on device", "in_vain"},
    {"BrokenPipeError", "[Errno 32] Broken pipe", "helps"},
    {"botocore.exceptions.ClientError", "An error occurred (SlowDown) when calling PutObject",
     "helps"},
    {"requests.exceptions.ConnectionError", "HTTPSConnectionPool(host='a'): Max retries exceeded",
     "helps"},
    {"RuntimeError", "CUDA error: uncorrectable ECC error encountered", "elsewhere"},
    {"RuntimeError", "CUDA error: device-side assert triggered", "in_vain"},
    {"RuntimeError", "CUDA error: an illegal memory access was encountered", "unknown"},
    {"torch.OutOfMemoryError",
     "CUDA out of memory. Process 39780 has 76.90 GiB memory in use. Of the allocated memory",
     "in_vain"},
    {"torch.OutOfMemoryError",
     "CUDA out of memory. Process 918273 has 76.90 GiB memory in use. Process 39780 has 1 GiB",
     "elsewhere"},
    {"torch.OutOfMemoryError",
     "CUDA out of memory. Including non-PyTorch memory, this process has 1 GiB memory in use. "
     "Process 918273 has 76.90 GiB memory in use.",
     "elsewhere"},
};

START_TEST(after_what_a_rank_raised) {
    char restart[64];
    start_job(0, 100);
    raise_in(60, "b", 2, RAISED[_i].type, RAISED[_i].message, false);
    leaves(60.7, "b", 102, FACT_EXIT_CODE, 1);
    const char *lines = run();
    snprintf(restart, sizeof restart, "\"culprit.restart\":\"%s\"", RAISED[_i].restart);
    says(lines, restart);
}
END_TEST

static const struct {
    enum observation_kind kind;
    enum fact_key key;
    const char *text; // NULL: `number`
    int64_t number;
    const char *restart;
} OTHERS[] = {
    {OBSERVATION_LAUNCHER_FAILED, FACT_SIGNAL, NULL, 7, "in_vain"},
    {OBSERVATION_LAUNCHER_FAILED, FACT_SIGNAL, NULL, 9, "unknown"},
    {OBSERVATION_LAUNCHER_FAILED, FACT_SIGNAL, NULL, 11, "unknown"},
    {OBSERVATION_LAUNCHER_FAILED, FACT_EXIT_CODE, NULL, 3, "unknown"},
    {OBSERVATION_SLURM_CANCELLED, FACT_REASON, "TIME LIMIT", 0, "stopped"},
    {OBSERVATION_SLURM_CANCELLED, FACT_REASON, "PREEMPTION", 0, "helps"},
    {OBSERVATION_JOB_STOPPED, FACT_CAUSE, "cancelled", 0, "stopped"},
    {OBSERVATION_JOB_STOPPED, FACT_CAUSE, "preempted", 0, "helps"},
    {OBSERVATION_JOB_STOPPED, FACT_CAUSE, "time_limit", 0, "stopped"},
    {OBSERVATION_JOB_STOPPED, FACT_CAUSE, "memory", 0, "in_vain"},
    {OBSERVATION_LAUNCHER_TOLD_TO_STOP, FACT_SIGNAL, NULL, 15, "stopped"},
    {OBSERVATION_NODE_LOST, FACT_PEER, "a", 0, "elsewhere"},
};

START_TEST(after_an_end_of_another_kind) {
    char restart[64];
    start_job(0, 100);
    bool of_rank = OTHERS[_i].kind == OBSERVATION_LAUNCHER_FAILED;
    struct event *event = say(60, "a", of_rank ? 1 : RANK_NONE, OTHERS[_i].kind);
    if (OTHERS[_i].text == NULL)
        add(event, OTHERS[_i].key, OTHERS[_i].number);
    else
        add_text(event, OTHERS[_i].key, OTHERS[_i].text);
    const char *lines = run();
    snprintf(restart, sizeof restart, "\"culprit.restart\":\"%s\"", OTHERS[_i].restart);
    says(lines, restart);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit_restart");
    TCase *cases = tcase_create("cases");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, after_what_a_rank_raised, 0, sizeof RAISED / sizeof *RAISED);
    tcase_add_loop_test(cases, after_an_end_of_another_kind, 0, sizeof OTHERS / sizeof *OTHERS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

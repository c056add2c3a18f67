// SPDX-License-Identifier: Apache-2.0
// What Slurm says of jobs that ended, in the order of old and new wordings, and sacct's tables.
#include "receivers/decode/log/log.h"
#include "tests/receivers/decode/observed.h"

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define ENDED "slurmstepd: error: *** STEP 88110.0 ON r2-g12 CANCELLED AT 2026-03-14T02:50:17"
#define AT    "@1773456617000000000"

static const struct {
    const char *lines, *expected;
} ROWS[] = {
    {ENDED " DUE TO TIME LIMIT ***",
     "1+1 slurm_cancelled " AT " job=88110 step=0 from_host=r2-g12 reason=TIME LIMIT\n"},
    {"slurmstepd: error: *** JOB 88111 ON r2-g13 CANCELLED AT 2026-03-14T02:50:17 DUE TO "
     "PREEMPTION ***",
     "1+1 slurm_cancelled " AT " job=88111 step=batch from_host=r2-g13 reason=PREEMPTION\n"},
    {ENDED " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
     "1+1 slurm_cancelled " AT " job=88110 step=0 from_host=r2-g12 reason=NODE FAILURE\n"},
    {ENDED " ***", "1+1 slurm_cancelled " AT " job=88110 step=0 from_host=r2-g12 victim=yes\n"},
    {ENDED " DUE to SIGNAL Terminated ***",
     "1+1 slurm_cancelled " AT
     " job=88110 step=0 from_host=r2-g12 signal=15 reason=SIGNAL victim=yes\n"},
    {ENDED " DUE TO TASK FAILURE ***",
     "1+1 slurm_cancelled " AT
     " job=88110 step=0 from_host=r2-g12 reason=TASK FAILURE victim=yes\n"},
    {"slurmstepd-r2-g17: error: *** STEP 88115.0 ON r2-g17 FAILED (non-zero exit code or other "
     "failure mode) ***",
     "1+1 slurm_cancelled - job=88115 step=0 from_host=r2-g17 reason=FAILED\n"},
    {"slurmstepd: error: *** STEP 1+1.0 STEPD TERMINATED ON n7 AT 2026-03-14T02:50:17 DUE TO JOB "
     "NOT ENDING WITH SIGNALS ***",
     "1+1 slurm_cancelled " AT " job=1+1 step=0 from_host=n7 reason=JOB NOT ENDING WITH SIGNALS\n"},
    {"*** JOB 7 CANCELLED AT 2026-03-14T02:50:17 ***",
     "1+1 slurm_cancelled " AT " job=7 step=batch victim=yes\n"},
    {ENDED " DUE", "1 refused truncated\n"},
    {"slurmstepd: error: *** STEP 88116.0 ON r2-g18 CANC", "1 refused truncated\n"},
    {"*** JOB 7 ON n1 CANCELLED AT yesterday ***", "1 refused bad_timestamp\n"},
    {"*** STEP one of the plan *** is done", ""},
    {"*** STEP 3 *** of the plan is done", ""},
    {"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.", ""},
    {"srun: Force Terminated StepId=88115.0", ""},
    {"slurmstepd: error: Detected 3 oom_kill events in StepId=88110.0. Some of the step tasks have "
     "been OOM Killed.",
     "1+1 slurm_oom - job=88110 step=0 count=3\n"},
    {"slurmstepd-n4: error: Detected 1 oom_kill event in StepId=88110. Some of the step tasks have "
     "been OOM Killed.",
     "1+1 slurm_oom - host=n4 job=88110 count=1\n"},
    {"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=88111.batch cgroup. Some of your "
     "processes may have been killed by the cgroup out-of-memory handler.",
     "1+1 slurm_oom - job=88111 step=batch count=1\n"},
    {"slurmstepd: error: Detected 2 oom-kill event(s) in step 9.extern cgroup.",
     "1+1 slurm_oom - job=9 step=extern count=2\n"},
    {"slurmstepd: error: Detected 3 oom_kill events in StepId=881", "1 refused truncated\n"},
    {"Detected 3 cards", ""},
    {"srun: error: r2-g12: task 12: Exited with exit code 1",
     "1+1 slurm_task_exit - host=r2-g12 task=12 tasks=12 exit_code=1\n"},
    {"srun: error: r2-g[13-14]: tasks 16-23,30: Killed",
     "1+1 slurm_task_exit - tasks=16-23,30 hosts=r2-g[13-14] signal=9\n"},
    {"srun: error: r2-g15: task 40: Segmentation fault (core dumped)",
     "1+1 slurm_task_exit - host=r2-g15 task=40 tasks=40 signal=11\n"},
    {"srun: error: r2-g16: task 41: Out Of Memory",
     "1+1 slurm_task_exit - host=r2-g16 task=41 tasks=41 reason=Out Of Memory\n"},
    {"srun: error: r2-g17: task 42: Terminated",
     "1+1 slurm_task_exit - host=r2-g17 task=42 tasks=42 signal=15 victim=yes\n"},
    {"srun: error: r2-g15: task 40: Segmentation fau", "1 refused truncated\n"},
    {"srun: error: r2-g15: task 40: Exited with exit co", "1 refused truncated\n"},
    {"srun: error: r2-g15: task 40", "1 refused truncated\n"},
    {"srun: error: r2-g15: task force: on its way", ""},
    {"srun: error: Node failure on r2-g18", "1+1 slurm_node_failure - host=r2-g18\n"},
    {"srun: error: Node r2-g18 is not responding", "1+1 slurm_node_failure - host=r2-g18\n"},
    {"Mar 14 02:50:17 head slurmctld[801]: error: Nodes r2-g[1-3] not responding, setting DOWN",
     NULL},
    {"Mar 14 02:50:17 head slurmctld[801]: error: Nodes r2-g[1-3] not responding", ""},
    {"srun: error: Unable to create step for job 88117: Requested node configuration is not "
     "available",
     "1+1 launch_failed - job=88117 role=report error=Requested node configuration is not "
     "available\n"},
    {"srun: error: Unable to confirm allocation for job 88117: Invalid job id specified", ""},
};

START_TEST(lines) {
    if (ROWS[_i].expected != NULL) {
        observed_check(&decoder_log, ROWS[_i].lines, ROWS[_i].expected);
        return;
    }
    // Whatever the transport makes of it, the hosts are those in the line, not who wrote it.
    const struct observed *observed = observed_lines(&decoder_log, slice_of(ROWS[_i].lines));
    ck_assert_ptr_ne(strstr(observed->text, " slurm_node_failure "), NULL);
    ck_assert_ptr_ne(strstr(observed->text, " hosts=r2-g[1-3]\n"), NULL);
    ck_assert_ptr_eq(strstr(observed->text, " host="), NULL);
}
END_TEST

#define HEADING "JobID|JobName|State|ExitCode|DerivedExitCode|Start|End|NodeList\n"
#define STARTED "|2026-03-14T00:00:00|2026-03-14T02:50:17|"

START_TEST(tables) {
    observed_check(&decoder_log,
                   HEADING "88110|train|OUT_OF_MEMORY|0:125|0:0" STARTED
                           "r2-g[12-14]\n"
                           "88111|train|CANCELLED by 2001|0:15|0:0" STARTED
                           "r2-g12\n"
                           "88112.0|python|NODE_FAIL|1:0|" STARTED
                           "r2-g14\n"
                           "88113|train|RUNNING|0:0|0:0|2026-03-14T00:00:00|Unknown|r2-g15\n"
                           "88114|train|COMPLETED|0:0|0:0" STARTED
                           "r2-g15\n"
                           "88115|train|OOM|0:9|0:0|2026-03-14T00:00:00|Unknown|None assigned\n"
                           "88116|train|F|1:0|0:0|2026-03-14T00:00:00|2026-99-14T02:50:17|n\n"
                           "88117|train|FAILED\n"
                           "88118|train|FAILED|1:0|0:0" STARTED "n1\n",
                   "2+1 slurm_state " AT
                   " job=88110 hosts=r2-g[12-14] signal=125 exit_code=0 "
                   "state=OUT_OF_MEMORY\n"
                   "3+1 slurm_state " AT
                   " host=r2-g12 job=88111 by_uid=2001 signal=15 exit_code=0 "
                   "state=CANCELLED\n"
                   "4+1 slurm_state " AT
                   " host=r2-g14 job=88112 step=0 exit_code=1 "
                   "state=NODE_FAIL\n"
                   "7+1 slurm_state - job=88115 signal=9 exit_code=0 state=OUT_OF_MEMORY\n"
                   "8 refused bad_timestamp\n");
}
END_TEST

// More rows than a block holds.
START_TEST(long_tables) {
    enum { ROWS_WRITTEN = 1000 };
    char *text = memory_take(ROWS_WRITTEN * 80);
    size_t size = (size_t)sprintf(text, "State|JobID|Comment\n");
    for (int i = 0; i < ROWS_WRITTEN; i++)
        size += (size_t)sprintf(text + size, "%d|%d|%s\n", i, i, i % 2 == 0 ? "none" : "\xff\xfe");
    for (int i = 0; i < ROWS_WRITTEN; i++)
        size += (size_t)sprintf(text + size, "JobID|State\n%d|FAILED\n", i);
    const struct observed *observed = observed_lines(&decoder_log, (struct slice){text, size});
    size_t found = 0;
    for (const char *at = observed->text; (at = strstr(at, " state=FAILED\n")) != NULL; at++)
        found++;
    ck_assert_uint_eq(found, ROWS_WRITTEN);
    size = (size_t)sprintf(text, "JobID|State\n");
    for (int i = 0; i < ROWS_WRITTEN; i++)
        size += (size_t)sprintf(text + size, "%d|TIMEOUT\n", i + 1);
    observed = observed_lines(&decoder_log, (struct slice){text, size});
    ck_assert_ptr_ne(strstr(observed->text, "2+1 slurm_state - job=1 state=TIMEOUT\n"), NULL);
    ck_assert_ptr_ne(strstr(observed->text, "501+1 slurm_state - job=500 state=TIMEOUT\n"), NULL);
    ck_assert_ptr_ne(strstr(observed->text, "1001+1 slurm_state - job=1000 state=TIMEOUT\n"), NULL);
    memory_give(text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("slurm");
    TCase *cases = tcase_create("slurm");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, lines, 0, sizeof ROWS / sizeof *ROWS);
    tcase_add_test(cases, tables);
    tcase_add_test(cases, long_tables);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

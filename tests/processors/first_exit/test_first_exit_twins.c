// SPDX-License-Identifier: Apache-2.0
// first_exit: an end that is told twice, by a process that does not say its rank and by who does.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

// A crash handler: the node and the pid, no rank.
static struct event *crashes(double seconds, const char *node, int64_t pid, int64_t signal) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_KILLED);
    if (pid >= 0)
        add(event, FACT_PID, pid);
    add(event, FACT_SIGNAL, signal);
    return event;
}

// A launcher: the rank, no pid.
static void is_seen(double seconds, const char *node, int32_t rank, int64_t signal) {
    add(say(seconds, node, rank, OBSERVATION_LAUNCHER_FAILED), FACT_SIGNAL, signal);
}

START_TEST(the_process_is_the_rank_that_ended_so) {
    crashes(60, "a", 9459, 11);
    is_seen(61, "a", 2, 11);
    says(run(), "Rank 2 on a ended first: it crashed (SIGSEGV)");
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

START_TEST(a_shell_that_names_nobody_tells_of_the_rank) {
    crashes(60, NULL, -1, 9);
    is_seen(61, NULL, 2, 9);
    says(run(), "Rank 2 ended first: it ended by SIGKILL");
}
END_TEST

START_TEST(one_of_two_that_ended_so_is_no_third) {
    crashes(61, "a", 9459, 11);
    is_seen(61, "a", 2, 11);
    is_seen(61, "a", 3, 11);
    const char *lines = run();
    says(lines, "Rank 2 on a and rank 3 on a ended first, at about one moment");
    says_not(lines, "9459");
}
END_TEST

// Another signal, another node, another minute, or a pid that is told: another process.
static const struct {
    double seen;
    const char *node;
    int64_t signal, pid;
} OTHERS[] = {{61, "a", 6, -1}, {61, "b", 11, -1}, {200, "a", 11, -1}, {61, "a", 11, 9460}};

START_TEST(another_process_stays_one) {
    crashes(60, "a", 9459, 11);
    struct event *event = say(OTHERS[_i].seen, OTHERS[_i].node, 2, OBSERVATION_LAUNCHER_FAILED);
    if (OTHERS[_i].pid >= 0)
        add(event, FACT_PID, OTHERS[_i].pid);
    add(event, FACT_SIGNAL, OTHERS[_i].signal);
    event->source = intern(SLICE("other.log"));
    says(run(), "rocess 9459 on a");
}
END_TEST

// The console holds what the rank's own log has, under its name.
START_TEST(words_of_a_rank_are_its_own_wherever_they_stand) {
    for (int32_t i = 0; i < 2; i++) {
        struct event *event = say(60 + i, NULL, i == 0 ? RANK_NONE : 3, OBSERVATION_EXCEPTION);
        add_text(event, FACT_EXCEPTION, "KeyError");
        add_text(event, FACT_MESSAGE, "'input_ids'");
        event->source = intern(i == 0 ? SLICE("console.log") : SLICE("rank.3/stderr"));
    }
    const char *lines = run();
    says(lines, "Rank 3 raised KeyError: 'input_ids'");
    says_not(lines, "A process");
}
END_TEST

START_TEST(a_job_whose_node_was_lost_was_not_stopped) {
    start_job(0, 100);
    add_text(say(60, "b", RANK_NONE, OBSERVATION_SLURM_NODE_FAILURE), FACT_MESSAGE, "b");
    struct event *stop = say(61, NULL, RANK_NONE, OBSERVATION_JOB_STOPPED);
    add_text(stop, FACT_REASON, "cancelled");
    stop->timeless = true;
    const char *lines = run();
    says(lines, "Node b was lost, and the ranks with it");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit_twins");
    TCase *cases = tcase_create("twins");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_process_is_the_rank_that_ended_so);
    tcase_add_test(cases, a_shell_that_names_nobody_tells_of_the_rank);
    tcase_add_test(cases, one_of_two_that_ended_so_is_no_third);
    tcase_add_loop_test(cases, another_process_stays_one, 0, sizeof OTHERS / sizeof *OTHERS);
    tcase_add_test(cases, words_of_a_rank_are_its_own_wherever_they_stand);
    tcase_add_test(cases, a_job_whose_node_was_lost_was_not_stopped);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// first_exit: whose a line is that says a local rank or nobody, where its launcher says more in the
// same log; and what all ranks, or all of one node, raised alike.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

// As torchrun's summary tells of a rank, in the log of its node's launcher.
static void sum_up(double seconds, const char *node, int32_t rank, int64_t pid, int64_t code) {
    struct event *event = say(seconds, node, rank, OBSERVATION_LAUNCHER_SUMMARY);
    add(event, FACT_PID, pid);
    add(event, FACT_LOCAL_RANK, rank % 2);
    add(event, FACT_EXIT_CODE, code);
    event->source = intern(slice_of(node));
    ends[event - cluster.events].said.time_slack_ns = 1000000000;
}

static struct event *undated(const char *log, enum observation_kind kind) {
    struct event *event = say(60, NULL, RANK_NONE, kind);
    event->timeless = true;
    event->source = intern(slice_of(log));
    return event;
}

// A traceback of which the log says no more than a local rank, or nothing.
static void raised(const char *log, int64_t local_rank, const char *type, const char *message,
                   bool victim) {
    struct event *event = undated(log, OBSERVATION_EXCEPTION);
    if (local_rank >= 0)
        add(event, FACT_LOCAL_RANK, local_rank);
    add_text(event, FACT_EXCEPTION, type);
    add_text(event, FACT_MESSAGE, message);
    add_yes_no(event, FACT_VICTIM, victim);
}

static const char MODULE[] = "No module named 'flash_attn'";

// Both nodes of a job of four ranks: what those of a and b raised, NULL: they waited.
static void raise_on(const char *a, const char *b) {
    const char *const message[] = {a, b};
    const char *const nodes[] = {"a", "b"};
    for (int32_t rank = 0; rank < 4; rank++) {
        const char *words = message[rank / 2];
        raised(nodes[rank / 2], rank % 2, words == NULL ? "DistStoreError" : "ModuleNotFoundError",
               words == NULL ? "Timed out after 601 seconds" : words, words == NULL);
        sum_up(words == NULL ? 660 : 60, nodes[rank / 2], rank, 100 + rank, 1);
    }
}

// -- who ------------------------------------------------------------------------------------------

START_TEST(a_local_rank_is_of_the_launcher_of_its_log) {
    raised("b", 1, "KeyError", "'x'", false);
    sum_up(60, "b", 3, 103, 1);
    raised("a", 1, "RuntimeError", "Connection closed by peer", true);
    sum_up(60, "a", 1, 101, 1);
    const char *lines = run();
    says(lines, "Rank 3 on b ended first: it raised KeyError: 'x'");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"victim\"}");
}
END_TEST

START_TEST(a_log_of_two_launchers_says_no_node) {
    raised("console", 1, "KeyError", "'x'", false);
    sum_up(60, "b", 3, 103, 1);
    sum_up(60, "a", 1, 101, 1);
    for (uint32_t i = 0; i < cluster.count; i++)
        cluster.events[i].source = intern(SLICE("console"));
    says(run(), "Process 1 of its node");
}
END_TEST

START_TEST(an_earlier_start_has_the_ranks_of_the_last) {
    struct event *event = say(60, NULL, RANK_NONE, OBSERVATION_LAUNCHER_FAILED);
    add(event, FACT_PID, 50);
    add(event, FACT_LOCAL_RANK, 1);
    add(event, FACT_EXIT_CODE, 1);
    event->source = intern(SLICE("b"));
    sum_up(90, "b", 3, 103, 1);
    const char *lines = run();
    says(lines, "Rank 3 on b ended first: it left with exit code 1");
    says_not(lines, "Process 50");
}
END_TEST

START_TEST(a_task_of_srun_is_a_rank_where_no_launcher_tells_of_others) {
    struct event *event = undated("srun.out", OBSERVATION_EXCEPTION);
    add(event, FACT_TASK, 5);
    add_text(event, FACT_EXCEPTION, "KeyError");
    add_yes_no(event, FACT_VICTIM, false);
    says(run(), "Rank 5 raised KeyError");
}
END_TEST

START_TEST(a_task_that_waited_is_not_blamed_by_its_code) {
    struct event *event = undated("srun.out", OBSERVATION_EXCEPTION);
    add(event, FACT_TASK, 3);
    add_text(event, FACT_EXCEPTION, "DistStoreError");
    add_yes_no(event, FACT_VICTIM, true);
    event = undated("srun.out", OBSERVATION_SLURM_TASK_EXIT);
    add_text(event, FACT_TASKS, "3");
    add(event, FACT_EXIT_CODE, 1);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// -- all ------------------------------------------------------------------------------------------

START_TEST(what_all_ranks_raise_is_no_rank_s_fault) {
    raise_on(MODULE, MODULE);
    const char *lines = run();
    says(lines, "All 4 ranks raised ModuleNotFoundError: No module named 'flash_attn'\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"suspect\"}");
    says(lines, "a restart as it is ends in the same way");
    says(lines, "\"confidence\":92");
    says_not(lines, "\"role\":\"culprit\"");
    says_not(lines, "\"role\":\"victim\"");
}
END_TEST

START_TEST(numbers_may_differ) {
    raise_on("No module named 'v1'", "No module named 'v2345'");
    says(run(), "All 4 ranks raised ModuleNotFoundError: No module named 'v1'");
}
END_TEST

START_TEST(other_words_are_another_reason) {
    raise_on(MODULE, "No module named 'apex'");
    says(run(), "ended first, at about one moment");
}
END_TEST

START_TEST(what_all_of_one_node_raise_is_that_node_s_fault) {
    raise_on(NULL, MODULE);
    const char *lines = run();
    says(lines, "Both ranks on b and no others raised ModuleNotFoundError");
    says(lines, "{\"kind\":\"node\",\"name\":\"b\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"suspect\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"victim\"}");
    says(lines, "\"action\":\"drain_node\"");
}
END_TEST

START_TEST(of_one_node_alone_it_is_not_known_whether_others_did) {
    for (int32_t rank = 2; rank < 4; rank++) {
        raised("b", rank % 2, "KeyError", "'x'", false);
        sum_up(60, "b", rank, 100 + rank, 1);
    }
    const char *lines = run();
    says(lines, "Both ranks on b raised KeyError: 'x'");
    says_not(lines, "\"role\":\"culprit\"");
}
END_TEST

START_TEST(a_rank_that_is_silent_may_have_been_well) {
    start_job(1, 100);
    place_of(1, "b", 4, 104);
    raise_on(MODULE, MODULE);
    says(run(), "ended first, at about one moment");
}
END_TEST

// -- the odd one ----------------------------------------------------------------------------------

static void differs(int32_t rank, const char *message) {
    raise_in(60, rank < 2 ? "a" : "b", rank, "RuntimeError", message, false);
}

START_TEST(who_differs_from_all_others_is_the_culprit) {
    differs(0,
            "Detected mismatch between collectives on ranks. Rank 0 is running collective: X, "
            "but Rank 2 is running collective: Y");
    differs(1,
            "Detected mismatch between collectives on ranks. Rank 1 is running collective: X, "
            "but Rank 2 is running collective: Y");
    differs(2,
            "Detected mismatch between collectives on ranks. Rank 2 is running collective: Y, "
            "but Rank 0 is running collective: X");
    const char *lines = run();
    says(lines,
         "Rank 2 on b called another collective than the others: it raised RuntimeError: "
         "Detected mismatch");
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"victim\"}");
}
END_TEST

START_TEST(of_two_that_differ_neither_is_odd) {
    differs(0,
            "Detected mismatch between collectives on ranks. Rank 0 is running collective: X, "
            "but Rank 1 is running collective: Y");
    differs(1,
            "Detected mismatch between collectives on ranks. Rank 1 is running collective: Y, "
            "but Rank 0 is running collective: X");
    const char *lines = run();
    says_not(lines, "called another collective");
    says_not(lines, "\"role\":\"culprit\"");
}
END_TEST

// -- nobody ---------------------------------------------------------------------------------------

START_TEST(tracebacks_that_are_alike_are_those_of_all_who_failed) {
    raised("b", -1, "KeyError", "'x'", false);
    raised("b", -1, "KeyError", "'x'", false);
    sum_up(60, "b", 0, 102, 1);
    sum_up(60, "b", 1, 103, 1);
    says(run(), "Both ranks raised KeyError: 'x'");
}
END_TEST

START_TEST(tracebacks_that_differ_are_nobody_s) {
    raised("b", -1, "KeyError", "'x'", false);
    raised("b", -1, "IndexError", "out of range", false);
    sum_up(60, "b", 0, 102, 1);
    sum_up(60, "b", 1, 103, 1);
    says_not(run(), "Both ranks");
}
END_TEST

START_TEST(fewer_tracebacks_than_failed_beside_a_lost_peer_are_nobody_s) {
    raised("b", -1, "KeyError", "'x'", false);
    raised("b", -1, "KeyError", "'x'", false);
    raised("b", -1, "RuntimeError", "Connection closed by peer", true);
    for (int32_t rank = 0; rank < 3; rank++)
        sum_up(60, "b", rank, 100 + rank, 1);
    says_not(run(), "ranks raised");
}
END_TEST

START_TEST(a_process_that_nobody_names_has_its_log) {
    static const char *const LOGS[][2] = {
        {"logs/worker-3.log", "A process (worker-3.log) raised KeyError"},
        {"run/3/stderr", "A process (3/stderr) raised KeyError"},
        {"run7/logs/train.log", "A process raised KeyError"},
        {"train.log", "A process raised KeyError"},
    };
    raised(LOGS[_i][0], -1, "KeyError", "'x'", false);
    says(run(), LOGS[_i][1]);
}
END_TEST

// -- two that are named ---------------------------------------------------------------------------

static const struct {
    const char *words;
    bool is_pair;
} PAIRS[] = {
    {"Duplicate GPU detected : rank 2 and rank 1 both on CUDA device 1b000", true},
    {"Mismatched NCCL version detected : rank 1 version 22703 rank 2 version 22105", true},
    {"Duplicate GPU detected : rank 2 and rank 9 both on CUDA device 1b000", false},
};

// NCCL gathers this of all ranks, so that each of them says it of two.
START_TEST(two_that_all_name_are_named) {
    raise_on(PAIRS[_i].words, PAIRS[_i].words);
    const char *lines = run();
    if (PAIRS[_i].is_pair) {
        says(lines, "Rank 1 on a and rank 2 on b ended first");
        says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"victim\"}");
    } else {
        says(lines, "All 4 ranks raised");
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit_alike");
    TCase *cases = tcase_create("alike");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_local_rank_is_of_the_launcher_of_its_log);
    tcase_add_test(cases, a_log_of_two_launchers_says_no_node);
    tcase_add_test(cases, an_earlier_start_has_the_ranks_of_the_last);
    tcase_add_test(cases, a_task_of_srun_is_a_rank_where_no_launcher_tells_of_others);
    tcase_add_test(cases, what_all_ranks_raise_is_no_rank_s_fault);
    tcase_add_test(cases, numbers_may_differ);
    tcase_add_test(cases, other_words_are_another_reason);
    tcase_add_test(cases, what_all_of_one_node_raise_is_that_node_s_fault);
    tcase_add_test(cases, of_one_node_alone_it_is_not_known_whether_others_did);
    tcase_add_test(cases, a_rank_that_is_silent_may_have_been_well);
    tcase_add_test(cases, a_task_that_waited_is_not_blamed_by_its_code);
    tcase_add_test(cases, who_differs_from_all_others_is_the_culprit);
    tcase_add_test(cases, of_two_that_differ_neither_is_odd);
    tcase_add_loop_test(cases, two_that_all_name_are_named, 0, sizeof PAIRS / sizeof *PAIRS);
    tcase_add_test(cases, tracebacks_that_are_alike_are_those_of_all_who_failed);
    tcase_add_test(cases, tracebacks_that_differ_are_nobody_s);
    tcase_add_test(cases, fewer_tracebacks_than_failed_beside_a_lost_peer_are_nobody_s);
    tcase_add_loop_test(cases, a_process_that_nobody_names_has_its_log, 0, 4);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// first_exit: what launchers say of an end without a code, of memory, and of a process by its
// number on a node that nobody names, and of one that the others lost.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

static struct event *reported(double seconds, const char *node, int64_t pid) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_LAUNCHER_FAILED);
    if (pid >= 0)
        add(event, FACT_PID, pid);
    return event;
}

static const struct {
    enum fact_key key;
    const char *text, *headline, *evidence;
} WORDS[] = {
    {FACT_MESSAGE, "End of file.", "Process 102 on b ended first: it ended: End of file.",
     "says that it ended: End of file."},
    {FACT_EXCEPTION, "KeyError", "Process 102 on b ended first: it raised KeyError",
     "says that it raised KeyError"},
    {FACT_REASON, "Out Of Memory",
     "Process 102 on b ended first: it was killed because memory ran out",
     "says that it was killed because memory ran out"},
};

START_TEST(an_end_without_a_code_is_one) {
    add_text(reported(60, "b", 102), WORDS[_i].key, WORDS[_i].text);
    const char *lines = run();
    says(lines, WORDS[_i].headline);
    says(lines, WORDS[_i].evidence);
}
END_TEST

START_TEST(what_ended_well_is_no_end_of_its_own) {
    add(reported(60, "b", 102), FACT_EXIT_CODE, 0);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(a_number_of_an_unknown_node_names_a_process) {
    struct event *event = reported(60, NULL, -1);
    add(event, FACT_LOCAL_RANK, 3);
    add(event, FACT_SIGNAL, 9);
    says(run(), "Process 3 of its node ended first: it ended by SIGKILL");
}
END_TEST

static struct event *layout(const char *meeting, int64_t nodes) {
    struct event *event = say(50, NULL, RANK_NONE, OBSERVATION_JOB_LAYOUT);
    if (meeting != NULL)
        add_text(event, FACT_MEETING, meeting);
    if (nodes >= 0)
        add(event, FACT_NODES, nodes);
    return event;
}

static const struct {
    const char *meeting;
    int64_t nodes;
    const char *who;
} LAYOUTS[] = {
    {NULL, 1, "Rank 3 ended first"},
    {"localhost:17908", -1, "Rank 3 ended first"},
    {"tcp://127.0.0.1:29500", -1, "Rank 3 ended first"},
    {"localhost:0", 2, "Process 3 of its node ended first"},
    {"gpu-a01:29500", -1, "Process 3 of its node ended first"},
};

START_TEST(the_number_on_the_only_node_is_the_rank) {
    layout(LAYOUTS[_i].meeting, LAYOUTS[_i].nodes);
    struct event *event = reported(60, NULL, -1);
    add(event, FACT_LOCAL_RANK, 3);
    add(event, FACT_SIGNAL, 9);
    says(run(), LAYOUTS[_i].who);
}
END_TEST

START_TEST(a_layout_of_another_log_says_nothing) {
    layout(NULL, 1)->source = intern(SLICE("other.log"));
    struct event *event = reported(60, NULL, -1);
    add(event, FACT_LOCAL_RANK, 3);
    add(event, FACT_SIGNAL, 9);
    says(run(), "Process 3 of its node ended first");
}
END_TEST

// A line of a log that says neither whose it is nor when it was.
static struct event *cry(enum observation_kind kind, const char *type, const char *message) {
    struct event *event = say(60, NULL, RANK_NONE, kind);
    event->timeless = true;
    if (type != NULL)
        add_text(event, FACT_EXCEPTION, type);
    add_text(event, FACT_MESSAGE, message);
    return event;
}

static void watch(int32_t rank, const char *message) {
    struct event *event = cry(OBSERVATION_WATCHDOG_TERMINATED, NULL, message);
    event->rank = rank;
    add_yes_no(event, FACT_VICTIM, false);
}

START_TEST(a_watchdog_that_found_an_error_of_its_gpu_tells_of_its_rank) {
    watch(3, "CUDA error: an illegal memory access was encountered");
    says(run(), "Rank 3 ended first: it raised CUDA error: an illegal memory access");
}
END_TEST

START_TEST(a_watchdog_says_whose_the_same_error_is) {
    cry(OBSERVATION_CUDA_ERROR, "RuntimeError", "CUDA error: uncorrectable ECC error encountered");
    watch(1, "CUDA error: uncorrectable ECC error encountered");
    if (_i == 1)
        watch(2, "CUDA error: uncorrectable ECC error encountered");
    const char *lines = run();
    if (_i == 0)
        says(lines, "\"headline\":\"Rank 1 ended first: it raised RuntimeError: CUDA error: unco");
    else
        says_not(lines, "Rank 1 ended first");
}
END_TEST

START_TEST(words_name_the_rank_that_says_them) {
    static const char *const WORDS_OF[] = {
        "Detected mismatch between collectives on ranks. Rank 1 is running collective: X, but Rank "
        "0 is running collective: Y",
        "Rank 1 successfully reached monitoredBarrier, but no",
    };
    cry(OBSERVATION_EXCEPTION, "RuntimeError", WORDS_OF[_i]);
    says(run(), "Rank 1 raised RuntimeError: ");
}
END_TEST

START_TEST(the_only_traceback_of_a_victim_is_of_who_left_with_code_1) {
    struct event *event = say(59, NULL, RANK_NONE, OBSERVATION_RENDEZVOUS_TIMEOUT);
    add_text(event, FACT_EXCEPTION, "DistNetworkError");
    add_yes_no(event, FACT_VICTIM, true);
    event = reported(60, NULL, -1);
    event->rank = 3;
    add(event, FACT_EXIT_CODE, _i == 1 ? 3 : 1);
    if (_i == 2) {
        event = reported(61, NULL, -1);
        event->rank = 1;
        add(event, FACT_EXIT_CODE, 1);
    }
    run();
    ck_assert_uint_eq(detector.verdict_count, _i == 0 ? 0 : 1);
}
END_TEST

START_TEST(words_of_a_signal_are_of_whom_the_launcher_saw_end_so) {
    struct event *event = reported(60, NULL, -1);
    event->rank = 2;
    add(event, FACT_SIGNAL, _i == 0 ? 11 : 9);
    cry(OBSERVATION_EXCEPTION, "FatalError", "`Segmentation fault` is detected by the system.");
    if (_i == 0)
        says(run(), "Rank 2 ended first: it raised FatalError: `Segmentation fault`");
    else
        says_not(run(), "Rank 2 ended first: it raised FatalError");
}
END_TEST

START_TEST(a_process_has_its_number_beside_its_pid) {
    struct event *event = reported(60, "b", 652);
    add(event, FACT_LOCAL_RANK, 2);
    add(event, FACT_SIGNAL, 9);
    says(run(), "Process 652 (local rank 2) on b ended first: it ended by SIGKILL");
}
END_TEST

START_TEST(numbers_of_one_log_are_several_processes) {
    for (int i = 0; i < 2; i++) {
        struct event *event = reported(60, NULL, -1);
        add(event, FACT_LOCAL_RANK, i);
        add(event, FACT_SIGNAL, 11);
    }
    says(run(), "Process 0 of its node and process 1 of its node ended first");
}
END_TEST

static void lost(double seconds, int32_t by, int64_t peer) {
    struct event *event = say(seconds, "a", by, OBSERVATION_PEER_LOST);
    add_yes_no(event, FACT_VICTIM, true);
    if (peer >= 0)
        add(event, FACT_PEER_RANK, peer);
}

START_TEST(who_was_lost_is_the_first) {
    lost(60, 0, 3);
    lost(60.1, 1, 3);
    lose_peer(60.2, "a", 2);
    const char *lines = run();
    says(lines, "Rank 3 ended first: it was lost to the others");
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"victim\"}");
}
END_TEST

START_TEST(what_the_lost_one_said_itself_counts_more) {
    lost(60, 0, 3);
    raise_in(59, "b", 3, "KeyError", "'labels'", false);
    says(run(), "Rank 3 on b ended first: it raised KeyError: 'labels'");
}
END_TEST

START_TEST(a_lost_peer_without_a_number_is_nobody) {
    lost(60, 0, -1);
    run();
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(what_others_say_of_the_lost_one_is_told) {
    lost(60, 0, 3);
    ends[cluster.count - 1].said.text = SLICE("task 3 sent no heartbeat");
    says(run(), "rank 3: others say of it: task 3 sent no heartbeat");
}
END_TEST

// An end that names nobody, below what somebody says of a wait or of a peer.
static const struct {
    enum observation_kind said;
    const char *exception;
    int32_t rank;
    enum observation_kind end;
    int64_t local_rank;
    enum fact_key key;
    int64_t value;
    bool is_own;
} BELOW[] = {
    {OBSERVATION_WATCHDOG_END, NULL, 10, OBSERVATION_LAUNCHER_FAILED, 2, FACT_SIGNAL, 6, false},
    {OBSERVATION_WATCHDOG_END, NULL, 1, OBSERVATION_LAUNCHER_FAILED, 1, FACT_SIGNAL, 6, false},
    {OBSERVATION_WATCHDOG_END, NULL, 1, OBSERVATION_LAUNCHER_FAILED, 2, FACT_SIGNAL, 6, true},
    {OBSERVATION_WATCHDOG_END, NULL, 1, OBSERVATION_LAUNCHER_FAILED, 1, FACT_SIGNAL, 9, true},
    {OBSERVATION_WATCHDOG_END, NULL, 1, OBSERVATION_LAUNCHER_FAILED, 1, FACT_EXIT_CODE, 3, true},
    {OBSERVATION_PEER_CLOSED, "E", 1, OBSERVATION_LAUNCHER_FAILED, 1, FACT_EXIT_CODE, 1, false},
    {OBSERVATION_PEER_CLOSED, "E", 1, OBSERVATION_LAUNCHER_FAILED, 1, FACT_SIGNAL, 6, true},
    {OBSERVATION_PEER_CLOSED, "E", -1, OBSERVATION_LAUNCHER_FAILED, 1, FACT_EXIT_CODE, 1, false},
    {OBSERVATION_PEER_CLOSED, NULL, -1, OBSERVATION_ABORT, -1, FACT_SIGNAL, 6, false},
    {OBSERVATION_PEER_CLOSED, NULL, -1, OBSERVATION_KILLED, -1, FACT_SIGNAL, 9, true},
    {OBSERVATION_COLLECTIVE_TIMEOUT, NULL, -1, OBSERVATION_KILLED, -1, FACT_SIGNAL, 9, false},
    {OBSERVATION_COLLECTIVE_TIMEOUT, NULL, 1, OBSERVATION_LAUNCHER_FAILED, -1, FACT_EXIT_CODE, 1,
     false},
};

static void say_below(size_t i) {
    struct event *words = say(60, NULL, BELOW[i].rank, BELOW[i].said);
    if (BELOW[i].exception != NULL)
        add_text(words, FACT_EXCEPTION, BELOW[i].exception);
    add_yes_no(words, FACT_VICTIM, true);
}

static void end_below(size_t i) {
    struct event *event = say(61, NULL, RANK_NONE, BELOW[i].end);
    if (BELOW[i].local_rank >= 0)
        add(event, FACT_LOCAL_RANK, BELOW[i].local_rank);
    add(event, BELOW[i].key, BELOW[i].value);
}

START_TEST(an_end_below_the_words_of_a_victim_may_be_its_own) {
    say_below((size_t)_i);
    end_below((size_t)_i);
    run();
    ck_assert_uint_eq(detector.verdict_count, BELOW[_i].is_own);
}
END_TEST

START_TEST(an_end_above_them_is_another) {
    end_below((size_t)_i);
    say_below((size_t)_i);
    run();
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

// How the rank ended that said it, its launcher told.
START_TEST(an_end_of_one_whose_own_is_known_is_another) {
    say_below(0);
    add(say(61, NULL, 10, OBSERVATION_LAUNCHER_FAILED), FACT_SIGNAL, 6);
    end_below(0);
    says(run(), "Process 2 of its node ended first: it ended by SIGABRT");
}
END_TEST

static void got_signal(double seconds, int64_t signal) {
    struct event *event = say(seconds, NULL, RANK_NONE, OBSERVATION_EXCEPTION);
    add(event, FACT_PID, 2133);
    if (signal > 0)
        add(event, FACT_SIGNAL, signal);
    add_text(event, FACT_EXCEPTION, "SignalException");
    add_text(event, FACT_MESSAGE, "Process 2133 got signal: 1");
    add_yes_no(event, FACT_VICTIM, true);
}

START_TEST(a_launcher_that_raises_its_signal_was_stopped) {
    got_signal(60, _i == 1 ? 0 : 1);
    if (_i == 2)
        lose_peer(59, "a", 0);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, _i == 0);
    if (_i == 0)
        says(lines, "The job was told to stop from outside");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit_reports");
    TCase *cases = tcase_create("reports");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, an_end_without_a_code_is_one, 0, sizeof WORDS / sizeof *WORDS);
    tcase_add_test(cases, what_ended_well_is_no_end_of_its_own);
    tcase_add_test(cases, a_number_of_an_unknown_node_names_a_process);
    tcase_add_loop_test(cases, the_number_on_the_only_node_is_the_rank, 0,
                        sizeof LAYOUTS / sizeof *LAYOUTS);
    tcase_add_test(cases, a_layout_of_another_log_says_nothing);
    tcase_add_test(cases, a_watchdog_that_found_an_error_of_its_gpu_tells_of_its_rank);
    tcase_add_loop_test(cases, a_watchdog_says_whose_the_same_error_is, 0, 2);
    tcase_add_loop_test(cases, words_name_the_rank_that_says_them, 0, 2);
    tcase_add_loop_test(cases, the_only_traceback_of_a_victim_is_of_who_left_with_code_1, 0, 3);
    tcase_add_loop_test(cases, words_of_a_signal_are_of_whom_the_launcher_saw_end_so, 0, 2);
    tcase_add_test(cases, a_process_has_its_number_beside_its_pid);
    tcase_add_test(cases, numbers_of_one_log_are_several_processes);
    tcase_add_test(cases, who_was_lost_is_the_first);
    tcase_add_test(cases, what_the_lost_one_said_itself_counts_more);
    tcase_add_test(cases, a_lost_peer_without_a_number_is_nobody);
    tcase_add_test(cases, what_others_say_of_the_lost_one_is_told);
    const int below = sizeof BELOW / sizeof *BELOW;
    tcase_add_loop_test(cases, an_end_below_the_words_of_a_victim_may_be_its_own, 0, below);
    tcase_add_loop_test(cases, an_end_above_them_is_another, 0, below);
    tcase_add_loop_test(cases, a_launcher_that_raises_its_signal_was_stopped, 0, 3);
    tcase_add_test(cases, an_end_of_one_whose_own_is_known_is_another);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

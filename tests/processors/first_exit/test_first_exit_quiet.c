// SPDX-License-Identifier: Apache-2.0
// first_exit: ranks that fall silent while others lose a peer, logs of one process, and whom the
// others waited for.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

static struct event *in_log(struct event *event, const char *log) {
    event->source = intern(slice_of(log));
    return event;
}

static struct event *counts(double seconds, int32_t rank, int64_t step) {
    struct event *event = say(seconds, NULL, rank, OBSERVATION_PROGRESS);
    add(event, FACT_ITERATION, step);
    return event;
}

// Ranks 0 to 3 count, and all but `quiet` lose a peer a second later.
static void lose(int32_t quiet, bool all_count) {
    for (int32_t rank = 0; rank < 4; rank++) {
        if (all_count || rank == quiet)
            counts(59, rank, 10);
        if (rank != quiet)
            lose_peer(60, NULL, rank);
    }
}

START_TEST(who_counted_and_fell_silent_is_named) {
    lose(_i, true);
    const char *lines = run();
    char culprit[80], words[80];
    snprintf(culprit, sizeof culprit, "{\"kind\":\"rank\",\"name\":\"%d\",\"role\":\"culprit\"}",
             _i);
    snprintf(words, sizeof words, "Rank %d ended first: it ended without a word", _i);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, culprit);
    says(lines, words);
    says(lines, "\"completeness\":\"partial\",\"confidence\":40");
}
END_TEST

// Where one rank counts for all; where it goes on, is done, or is one of two; where another rank is
// missing; where somebody tells of a process that nobody names.
START_TEST(silence_that_says_nothing) {
    lose(2, _i != 0);
    if (_i == 1)
        counts(61, 2, 20);
    if (_i == 2)
        add_text(counts(59, 2, 10), FACT_STATE, "done");
    if (_i == 3)
        counts(59, 4, 10);
    if (_i == 4)
        lose_peer(60, NULL, 5);
    if (_i == 5)
        add(say(60, NULL, RANK_NONE, OBSERVATION_LAUNCHER_SIGNAL), FACT_PID, 4711);
    ck_assert_str_eq(run(), "");
}
END_TEST

START_TEST(an_end_that_is_told_goes_before_silence) {
    lose(2, true);
    raise_in(60, NULL, 3, "KeyError", "'label'", false);
    says(run(), "Rank 3 ended first: it raised KeyError: 'label'");
}
END_TEST

static const char *worker(int32_t rank) {
    static const char *const NAMES[] = {"/logs/worker-0.log", "/logs/worker-1.log",
                                        "/logs/worker-2.log"};
    return NAMES[rank];
}

// Not one line names a rank: the numbers of the logs do. Loops over who is silent.
START_TEST(logs_of_one_process_each_name_it_by_their_number) {
    for (int32_t rank = 0; rank < 3; rank++) {
        in_log(counts(59, RANK_NONE, 10), worker(rank));
        if (rank == _i)
            continue;
        struct event *event =
            in_log(say(60, NULL, RANK_NONE, OBSERVATION_PEER_CLOSED), worker(rank));
        add_yes_no(event, FACT_VICTIM, true);
    }
    char words[80];
    snprintf(words, sizeof words, "Rank %d ended first: it ended without a word", _i);
    says(run(), words);
}
END_TEST

// What C++ writes names nobody, while other lines of the log do.
START_TEST(a_line_is_of_the_rank_that_its_log_is_of) {
    for (int32_t rank = 0; rank < 3; rank++)
        in_log(counts(59, rank, 10), rank == 0 ? "a" : rank == 1 ? "b" : "c");
    struct event *event = in_log(say(60, NULL, RANK_NONE, OBSERVATION_EXCEPTION), "b");
    add_text(event, FACT_EXCEPTION, "KeyError");
    event->timeless = true;
    // A launcher that speaks in the log starts others than the one that counts there.
    if (_i == 1)
        add(in_log(say(61, NULL, RANK_NONE, OBSERVATION_LAUNCHER_SIGNAL), "b"), FACT_PID, 4711);
    const char *lines = run();
    says(lines, _i == 0 ? "Rank 1 raised KeyError" : "A process ended first: it raised KeyError");
}
END_TEST

// "Rank 1 failed to pass monitoredBarrier": its launcher ends it afterwards.
START_TEST(whom_the_others_waited_for_is_named) {
    struct event *event = say(60, NULL, 0, OBSERVATION_EXCEPTION);
    add(event, FACT_PEER_RANK, 1);
    add_text(event, FACT_EXCEPTION, "RuntimeError");
    add_text(event, FACT_MESSAGE, "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 10000 ms");
    add_yes_no(event, FACT_VICTIM, true);
    event = say(61, NULL, 1, OBSERVATION_LAUNCHER_SIGNAL);
    add(event, FACT_SIGNAL, 15);
    add_yes_no(event, FACT_VICTIM, true);
    if (_i == 1)
        raise_in(59, NULL, 1, "KeyError", "'label'", false);
    const char *lines = run();
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"victim\"}");
    says(lines, _i == 0 ? "Rank 1 did not come to the barrier in time, and the others waited for "
                          "it in vain"
                        : "Rank 1 ended first: it raised KeyError: 'label'");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit_quiet");
    TCase *cases = tcase_create("cases");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, who_counted_and_fell_silent_is_named, 0, 4);
    tcase_add_loop_test(cases, silence_that_says_nothing, 0, 6);
    tcase_add_test(cases, an_end_that_is_told_goes_before_silence);
    tcase_add_loop_test(cases, logs_of_one_process_each_name_it_by_their_number, 0, 3);
    tcase_add_loop_test(cases, a_line_is_of_the_rank_that_its_log_is_of, 0, 2);
    tcase_add_loop_test(cases, whom_the_others_waited_for_is_named, 0, 2);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

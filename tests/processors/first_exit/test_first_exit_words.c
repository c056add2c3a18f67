// SPDX-License-Identifier: Apache-2.0
// first_exit: what several say of one end is one thing, and how each of them is said.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

#include <jansson.h>

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

enum telling { ABSENT, TOLD, TOLD_AGAIN };

// How the evidence of the first verdict tells this.
static enum telling telling(const char *lines, const char *description) {
    json_t *verdict = json_loads(lines, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *piece;
    size_t at;
    enum telling found = ABSENT;
    ck_assert_ptr_nonnull(verdict);
    json_array_foreach(json_object_get(verdict, "evidence_trail"), at, piece) {
        if (strcmp(json_string_value(json_object_get(piece, "description")), description) != 0)
            continue;
        bool again = json_is_true(json_object_get(piece, "repeats"));
        found = again && found != TOLD ? TOLD_AGAIN : TOLD;
    }
    json_decref(verdict);
    return found;
}

#define TELLS(lines, description) ck_assert_msg(telling(lines, description) == TOLD, "%s", lines)
#define TELLS_AGAIN(lines, description)                                                            \
    ck_assert_msg(telling(lines, description) == TOLD_AGAIN, "%s", lines)

static struct event *sums_up(double seconds, const char *node, int32_t rank, enum fact_key key,
                             int64_t value) {
    struct event *event = say(seconds, node, rank, OBSERVATION_LAUNCHER_SUMMARY);
    add(event, key, value);
    ends[event - cluster.events].said.time_slack_ns = 1000000000;
    return event;
}

// -- one process ----------------------------------------------------------------------------------

// A summary and a line of the launcher, in all ways to write a signal.
START_TEST(a_launcher_and_its_summary_tell_one_end) {
    static const struct {
        enum fact_key key;
        int64_t value;
    } WAYS[] = {{FACT_SIGNAL, 9}, {FACT_EXIT_CODE, 137}};
    start_job(0, 100);
    sums_up(60, "b", 2, WAYS[_i / 2].key, WAYS[_i / 2].value);
    leaves(60.7, "b", 102, WAYS[_i % 2].key, WAYS[_i % 2].value);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    TELLS(lines, "rank 2 on b: ended by SIGKILL");
    TELLS_AGAIN(lines, "rank 2 on b: its launcher says that it ended by SIGKILL");
}
END_TEST

START_TEST(an_exit_code_is_told_once) {
    start_job(0, 100);
    sums_up(60, "b", 2, FACT_EXIT_CODE, 3);
    leaves(60.7, "b", 102, FACT_EXIT_CODE, 3);
    const char *lines = run();
    TELLS(lines, "rank 2 on b: left with exit code 3");
    TELLS_AGAIN(lines, "rank 2 on b: its launcher says that it left with exit code 3");
}
END_TEST

START_TEST(other_codes_are_other_things) {
    start_job(0, 100);
    sums_up(60, "b", 2, FACT_EXIT_CODE, 3);
    leaves(60.7, "b", 102, _i == 0 ? FACT_EXIT_CODE : FACT_SIGNAL, _i == 0 ? 4 : 3);
    says_not(run(), "repeats");
}
END_TEST

// No signal has the number 127.
START_TEST(a_code_beyond_signals_is_a_code) {
    start_job(0, 100);
    leaves(60, "a", 101, FACT_EXIT_CODE, 255);
    says(run(), "Rank 1 on a ended first: it left with exit code 255");
}
END_TEST

static void fails(double seconds, enum observation_kind kind, int64_t code, const char *last) {
    struct event *event = say(seconds, "b", 2, kind);
    if (kind == OBSERVATION_SLURM_TASK_EXIT)
        add_text(event, FACT_TASKS, "2");
    add(event, FACT_EXIT_CODE, code);
    add_text(event, FACT_LAST_MESSAGE, last);
}

START_TEST(a_code_is_told_with_what_was_written_last) {
    start_job(0, 100);
    fails(60, _i == 0 ? OBSERVATION_LAUNCHER_FAILED : OBSERVATION_SLURM_TASK_EXIT, 3,
          "mesh\x1b[0m is \"torn\"");
    const char *lines = run();
    says(lines,
         "Rank 2 on b ended first: it left with exit code 3; its last line: mesh [0m is "
         "\\\"torn\\\"\"");
    says(lines, "Find where the program writes the last line of rank 2 on b");
    says_not(lines, "exception.message");
}
END_TEST

// Words say more.
START_TEST(what_was_written_last_does_not_hide_an_exception) {
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    fails(60.7, OBSERVATION_LAUNCHER_FAILED, 1, "mesh is torn");
    const char *lines = run();
    TELLS(lines, "rank 2 on b: IndexError: index out of range");
    TELLS(lines, "rank 2 on b: its launcher says that it left with exit code 1");
    says_not(lines, "mesh is torn");
}
END_TEST

// Why it left, and that it left so, are two things.
START_TEST(an_exception_does_not_say_the_code) {
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    leaves(60.7, "b", 102, FACT_EXIT_CODE, 1);
    const char *lines = run();
    TELLS(lines, "rank 2 on b: IndexError: index out of range");
    TELLS(lines, "rank 2 on b: its launcher says that it left with exit code 1");
    says_not(lines, "repeats");
}
END_TEST

// Who says most is told: the kernel, which knows why.
START_TEST(a_kill_for_want_of_memory_is_told_once) {
    start_job(0, 100);
    struct event *event = say(60, "b", RANK_NONE, OBSERVATION_OOM_KILL);
    add(event, FACT_PID, 102);
    leaves(60.7, "b", 102, FACT_SIGNAL, 9);
    event = say(60.9, "b", 2, OBSERVATION_CONTAINER_TERMINATED);
    add(event, FACT_EXIT_CODE, 137);
    add_text(event, FACT_REASON, "OOMKilled");
    const char *lines = run();
    TELLS(lines, "rank 2 on b: the kernel killed it because memory ran out");
    TELLS_AGAIN(lines, "rank 2 on b: its launcher says that it ended by SIGKILL");
    TELLS_AGAIN(lines, "rank 2 on b: its container was killed because memory ran out");
}
END_TEST

START_TEST(a_crash_is_told_once) {
    start_job(0, 100);
    struct event *event = say(60, "b", RANK_NONE, OBSERVATION_SEGFAULT);
    add(event, FACT_PID, 102);
    add_text(event, FACT_LIBRARY, "libc.so.6");
    leaves(60.7, "b", 102, FACT_SIGNAL, 11);
    const char *lines = run();
    TELLS(lines, "rank 2 on b: it crashed in libc.so.6");
    TELLS_AGAIN(lines, "rank 2 on b: its launcher says that it ended by SIGSEGV");
}
END_TEST

// Of two that say the same the one that says when is told, whichever is the reason.
START_TEST(who_says_when_is_told) {
    start_job(0, 100);
    say(60, "b", 2, OBSERVATION_ABORT)->timeless = true;
    leaves(60.7, "b", 102, FACT_SIGNAL, 6);
    const char *lines = run();
    TELLS_AGAIN(lines, "rank 2 on b: it aborted");
    TELLS(lines, "rank 2 on b: its launcher says that it ended by SIGABRT");
}
END_TEST

// -- the word of launchers ------------------------------------------------------------------------

// Of the victim that a launcher calls the root cause its end is told as well.
START_TEST(the_launchers_word_does_not_tell_an_end_again) {
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    struct event *event = sums_up(61, "a", 1, FACT_EXIT_CODE, 1);
    add_yes_no(event, FACT_VICTIM, true);
    add_yes_no(event, FACT_FIRST, true);
    const char *lines = run();
    TELLS(lines, "rank 1 on a: left with exit code 1");
    TELLS(lines, "the launcher of a calls rank 1 on a the root cause");
    says(lines, "\"launcher.root_cause\":\"rank 1 on a\"");
}
END_TEST

// The first that is told of the victim is another thing.
START_TEST(the_launchers_word_tells_what_nobody_else_does) {
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    tell_to_end(60.5, "a", 101);
    struct event *event = sums_up(61, "a", 1, FACT_SIGNAL, 15);
    add_yes_no(event, FACT_FIRST, true);
    const char *lines = run();
    TELLS(lines, "rank 1 on a: its launcher sent it SIGTERM");
    TELLS(lines, "the launcher of a calls rank 1 on a the root cause: ended by SIGTERM");
}
END_TEST

// -- without words --------------------------------------------------------------------------------

// No name of ours stands in a report.
START_TEST(each_kind_has_words) {
    char raw[64];
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    add_yes_no(say(61, "a", 1, (enum observation_kind)_i), FACT_VICTIM, true);
    snprintf(raw, sizeof raw, "rank 1 on a: %s\"", observation_name((enum observation_kind)_i));
    says_not(run(), raw);
}
END_TEST

START_TEST(an_exception_without_a_name_is_one) {
    start_job(0, 100);
    say(60, "b", 2, OBSERVATION_EXCEPTION);
    says(run(), "Rank 2 on b raised an exception; nothing says that it ended");
}
END_TEST

// Of two logs that do not say whose they are: each is told.
START_TEST(two_that_nobody_names_are_one_and_another) {
    for (int i = 0; i < 2; i++) {
        struct event *event = say(60 + i, "", RANK_NONE, OBSERVATION_EXCEPTION);
        add_text(event, FACT_EXCEPTION, "KeyError");
        add_text(event, FACT_MESSAGE, i == 0 ? "'a'" : "'b'");
        event->source = intern(i == 0 ? SLICE("a.log") : SLICE("b.log"));
        event->timeless = true;
        event->node = STRING_NONE;
    }
    const char *lines = run();
    says(lines, "A process and another raised KeyError: ");
    TELLS(lines, "a process: KeyError: 'a'");
    TELLS(lines, "a process: KeyError: 'b'");
}
END_TEST

// -- nodes and jobs -------------------------------------------------------------------------------

START_TEST(slurm_tells_of_a_lost_node_once) {
    start_job(0, 100);
    struct event *event = say(60, "b", RANK_NONE, OBSERVATION_SLURM_CANCELLED);
    add_text(event, FACT_REASON, "NODE FAILURE");
    say(61, "b", RANK_NONE, OBSERVATION_SLURM_NODE_FAILURE);
    lose_peer(62, "a", 0);
    const char *lines = run();
    TELLS(lines, "node b: Slurm cancelled it: NODE FAILURE");
    TELLS_AGAIN(lines, "node b: Slurm lost it: the node failed or does not respond");
}
END_TEST

START_TEST(kubernetes_tells_of_a_silent_node_once) {
    static const char *const STATUS[] = {"Unknown", "NodeNotReady"};
    start_job(0, 100);
    for (int i = 0; i < 2; i++) {
        struct event *event = say(100 + i, "b", RANK_NONE, OBSERVATION_NODE_CONDITION);
        add_text(event, FACT_STATUS, STATUS[i]);
        add_text(event, FACT_CONDITION, "Ready");
        add_yes_no(event, FACT_BAD, true);
    }
    lose_peer(62, "a", 0);
    const char *lines = run();
    TELLS(lines, "node b: Kubernetes says that the node is not ready: Unknown");
    TELLS_AGAIN(lines, "node b: Kubernetes says that the node is not ready: NodeNotReady");
}
END_TEST

// Of a task, of its node and of the job.
START_TEST(slurm_tells_of_a_task_without_memory_once) {
    struct event *event = say(60, "b", RANK_NONE, OBSERVATION_SLURM_TASK_EXIT);
    add_text(event, FACT_TASKS, "2");
    add_text(event, FACT_REASON, "Out Of Memory");
    event->timeless = true;
    say(60, "b", RANK_NONE, OBSERVATION_SLURM_OOM)->timeless = true;
    say(70, "", RANK_NONE, OBSERVATION_SLURM_OOM)->node = STRING_NONE;
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "Rank 2 on b ended first: it was killed because memory ran out");
    TELLS_AGAIN(lines, "rank 2 on b: Slurm says that it ran out of memory");
    TELLS(lines, "rank 2 on b: Slurm found tasks that were killed because memory ran out");
    says_not(lines, "\"suspect\",\"name\"");
    says_not(lines, "{\"kind\":\"node\",\"name\":\"b\",\"role\":\"culprit\"}");
}
END_TEST

// Somebody else's, as far as is known.
START_TEST(memory_of_another_node_is_another_end) {
    start_job(0, 100);
    struct event *event = say(60, "b", RANK_NONE, OBSERVATION_SLURM_TASK_EXIT);
    add_text(event, FACT_TASKS, "2");
    add_text(event, FACT_REASON, "Out Of Memory");
    event->timeless = true;
    say(60, "a", RANK_NONE, OBSERVATION_SLURM_OOM)->timeless = true;
    says(run(), "Rank 2 on b and node a ended first, at about one moment");
}
END_TEST

// Each node was told by itself.
START_TEST(two_nodes_are_two_things) {
    static const char *const NODES[] = {"a", "b"};
    start_job(0, 100);
    for (int i = 0; i < 2; i++)
        add(say(60 + i, NODES[i], RANK_NONE, OBSERVATION_LAUNCHER_TOLD_TO_STOP), FACT_SIGNAL, 15);
    const char *lines = run();
    TELLS(lines, "node a: its launcher was sent SIGTERM");
    TELLS(lines, "node b: its launcher was sent SIGTERM");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit: words");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, a_launcher_and_its_summary_tell_one_end, 0, 4);
    tcase_add_test(cases, an_exit_code_is_told_once);
    tcase_add_loop_test(cases, other_codes_are_other_things, 0, 2);
    tcase_add_test(cases, a_code_beyond_signals_is_a_code);
    tcase_add_loop_test(cases, a_code_is_told_with_what_was_written_last, 0, 2);
    tcase_add_test(cases, what_was_written_last_does_not_hide_an_exception);
    tcase_add_test(cases, an_exception_does_not_say_the_code);
    tcase_add_test(cases, a_kill_for_want_of_memory_is_told_once);
    tcase_add_test(cases, a_crash_is_told_once);
    tcase_add_test(cases, who_says_when_is_told);
    tcase_add_test(cases, the_launchers_word_does_not_tell_an_end_again);
    tcase_add_test(cases, the_launchers_word_tells_what_nobody_else_does);
    tcase_add_loop_test(cases, each_kind_has_words, 1, OBSERVATION_KIND_COUNT);
    tcase_add_test(cases, an_exception_without_a_name_is_one);
    tcase_add_test(cases, two_that_nobody_names_are_one_and_another);
    tcase_add_test(cases, slurm_tells_of_a_lost_node_once);
    tcase_add_test(cases, kubernetes_tells_of_a_silent_node_once);
    tcase_add_test(cases, slurm_tells_of_a_task_without_memory_once);
    tcase_add_test(cases, memory_of_another_node_is_another_end);
    tcase_add_test(cases, two_nodes_are_two_things);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

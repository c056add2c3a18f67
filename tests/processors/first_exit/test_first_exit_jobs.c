// SPDX-License-Identifier: Apache-2.0
// first_exit: what is told of one job is never another's, and the age of a file joins nothing.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

static struct event *of_job(struct event *event, const char *job) {
    event->job = job == NULL ? STRING_NONE : intern(slice_of(job));
    return event;
}

static struct event *place(double seconds, const char *node, int32_t rank, int64_t pid,
                           const char *job) {
    struct event *event = of_job(place_of(seconds, node == NULL ? "" : node, rank, pid), job);
    ends[event - cluster.events].place.node = node == NULL ? STRING_NONE : intern(slice_of(node));
    event->node = ends[event - cluster.events].place.node;
    return event;
}

// Its launcher says that the process left with a code; `node`, `job` NULL: not said.
static void left(double seconds, const char *node, int64_t pid, const char *job) {
    struct event *event = of_job(say(seconds, node, RANK_NONE, OBSERVATION_LAUNCHER_FAILED), job);
    add(event, FACT_PID, pid);
    add(event, FACT_EXIT_CODE, 1);
}

static void raised(double seconds, int32_t rank, const char *job, const char *words) {
    struct event *event = of_job(say(seconds, NULL, rank, OBSERVATION_EXCEPTION), job);
    add_text(event, FACT_EXCEPTION, "ValueError");
    add_text(event, FACT_MESSAGE, words);
    event->source = intern(slice_of(job == NULL ? "log" : job));
}

// The same ranks and pids in both jobs, as in containers; the maps say no time, and are read with
// their files' ages.
static void two_maps(const char *gpt_node, const char *llama_node, double gpt_s, double llama_s) {
    for (int32_t rank = 0; rank < 2; rank++) {
        place(gpt_s, gpt_node, rank, 4711 + rank, "gpt")->timeless = true;
        place(llama_s, llama_node, rank, 4711 + rank, "llama")->timeless = true;
    }
}

static const double AGES[] = {1, 59, 1000};
enum { AGE_COUNT = sizeof AGES / sizeof *AGES };

// Loops over the ages of both maps.
START_TEST(equal_pids_of_two_jobs) {
    two_maps(NULL, NULL, AGES[_i / AGE_COUNT], AGES[_i % AGE_COUNT]);
    left(60, NULL, 4712, "llama");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"job_id\":\"llama\"");
    says(lines, "Rank 1 ended first");
    says(lines, "\"start_time_unix_nano\":\"1794992460000000000\"");
}
END_TEST

// Neither line says its job: it may be of either.
START_TEST(equal_pids_without_a_job) {
    two_maps(NULL, NULL, AGES[_i / AGE_COUNT], AGES[_i % AGE_COUNT]);
    left(60, NULL, 4712, NULL);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says_not(lines, "\"job_id\"");
    says_not(lines, "Rank 1");
    says(lines, "rocess 4712");
}
END_TEST

START_TEST(equal_pids_on_one_node_without_a_job) {
    two_maps("a", "a", 0, 0);
    left(60, "a", 4712, NULL);
    const char *lines = run();
    says_not(lines, "\"job_id\"");
    says_not(lines, "Rank 1");
}
END_TEST

// The node says which of the two.
START_TEST(equal_pids_on_two_nodes) {
    two_maps("a", "b", AGES[_i / AGE_COUNT], AGES[_i % AGE_COUNT]);
    left(60, "b", 4712, NULL);
    const char *lines = run();
    says(lines, "\"job_id\":\"llama\"");
    says(lines, "Rank 1 on b ended first");
}
END_TEST

START_TEST(a_rank_without_a_job) {
    two_maps(NULL, NULL, AGES[_i / AGE_COUNT], AGES[_i % AGE_COUNT]);
    raised(60, 1, NULL, "bad token id");
    const char *lines = run();
    says_not(lines, "\"job_id\"");
    says(lines, "Rank 1 raised");
}
END_TEST

START_TEST(a_rank_that_only_one_job_has) {
    two_maps(NULL, NULL, 0, 0);
    place(0, NULL, 2, 4713, "llama");
    raised(60, 2, NULL, "bad token id");
    says(run(), "\"job_id\":\"llama\"");
}
END_TEST

// A map without a job is of neither of two that are named, but on its own node.
START_TEST(a_map_without_a_job) {
    const char *node = _i == 0 ? NULL : "a";
    place(0, node, 1, 4712, NULL)->timeless = true;
    left(60, node, 4712, "llama");
    raised(61, 0, "gpt", "bad token id");
    const char *lines = run();
    says(lines, "\"job_id\":\"llama\"");
    if (_i == 0)
        says_not(lines, "Rank 1");
    else
        says(lines, "Rank 1 on a ended first");
}
END_TEST

// No node is named, and there is but one process with the number.
START_TEST(a_pid_of_one_node_that_nobody_names) {
    place(0, NULL, 0, 4711, "gpt");
    place(0, NULL, 1, 4712, "gpt");
    left(60, NULL, 4712, _i == 0 ? "gpt" : NULL);
    says(run(), "Rank 1 ended first");
}
END_TEST

START_TEST(a_pid_of_two_ranks) {
    place(0, NULL, 0, 7, "gpt");
    place(0, NULL, 1, 7, "gpt");
    left(60, NULL, 7, "gpt");
    const char *lines = run();
    says_not(lines, "Rank 0");
    says_not(lines, "Rank 1");
}
END_TEST

START_TEST(a_pid_of_one_of_two_nodes) {
    place(0, "a", 0, 4711, "gpt");
    place(0, "b", 1, 4712, "gpt");
    left(60, _i == 0 ? NULL : "b", 4712, "gpt");
    if (_i == 0)
        says_not(run(), "Rank 1");
    else
        says(run(), "Rank 1 on b ended first");
}
END_TEST

// The traceback of a rank that nobody names is not that of another job's rank with the same words.
START_TEST(the_same_words_in_two_jobs) {
    raised(60, 1, "gpt", "bad token id");
    raised(60, RANK_NONE, "llama", "bad token id");
    const char *lines = run();
    says(lines, "\"job_id\":\"gpt\"");
    says(lines, "\"job_id\":\"llama\"");
}
END_TEST

// Of which of two jobs Slurm speaks, nobody knows; where it says so, or there is but one, it is.
START_TEST(a_job_that_was_cancelled) {
    two_maps("a", "b", 0, 0);
    if (_i == 2)
        for (uint32_t i = 0; i < cluster.count; i++)
            of_job(&cluster.events[i], "llama");
    struct event *event =
        of_job(say(60, NULL, RANK_NONE, OBSERVATION_SLURM_CANCELLED), _i == 1 ? "gpt" : NULL);
    add_text(event, FACT_REASON, "TIME LIMIT");
    const char *lines = run();
    if (_i == 0)
        ck_assert_str_eq(lines, "");
    else
        says(lines, _i == 1 ? "\"job_id\":\"gpt\"" : "\"job_id\":\"llama\"");
}
END_TEST

// -- rank maps without times, of several starts ---------------------------------------------------

static void undated_start(int32_t first, int32_t last, int64_t pid) {
    for (int32_t rank = first; rank <= last; rank++)
        place(1, rank < 2 ? "a" : "b", rank, pid + rank, "gpt")->timeless = true;
}

// Which of two starts ended, and whether the other one goes on, pids tell; in any order of lines.
START_TEST(two_starts_that_nobody_dated) {
    for (int turn = 0; turn < 2; turn++)
        undated_start(0, 3, (turn == 0) == (_i % 2 == 0) ? 100 : 200);
    left(60, "a", _i < 2 ? 101 : 201, "gpt");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "Rank 1 on a ended first");
    says(lines, _i < 2 ? "\"state\":\"resolved\"" : "\"state\":\"open\"");
}
END_TEST

// Each start ended by another rank.
START_TEST(two_ends_of_starts_that_nobody_dated) {
    undated_start(0, 3, 200);
    undated_start(0, 3, 100);
    left(60, "b", 103, "gpt");
    left(160, "a", 201, "gpt");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "Rank 3 on b ended first");
    says(lines, "Rank 1 on a ended first");
}
END_TEST

// A rank that the map does not have ended in the second start: that is not over.
START_TEST(who_is_in_no_map_is_of_the_last_start) {
    undated_start(0, 2, 100);
    undated_start(0, 2, 200);
    left(60, "a", 101, "gpt");
    raised(600, 3, "gpt", "bad token id");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    const char *end = strstr(lines, "Rank 3");
    ck_assert_ptr_nonnull(end);
    while (end > lines && end[-1] != '\n')
        end--;
    const char *open = strstr(end, "\"state\":\"open\"");
    ck_assert(open != NULL && open < strchr(end, '\n'));
}
END_TEST

// The second start moved the ranks of node b to node c: pids of two nodes have no order. Who ended
// is not taken for over.
START_TEST(ranks_that_moved) {
    undated_start(0, 3, 500);
    for (int32_t rank = 2; rank < 4; rank++)
        place(1, "c", rank, 300 + rank, "gpt")->timeless = true;
    left(60, _i == 0 ? "b" : "c", _i == 0 ? 503 : 303, "gpt");
    const char *lines = run();
    says(lines, _i == 0 ? "Rank 3 on b ended first" : "Rank 3 on c ended first");
    says(lines, "\"state\":\"open\"");
}
END_TEST

// The traceback of a rank that a map without times has on two nodes: it is on neither.
START_TEST(a_rank_on_either_of_two_nodes) {
    undated_start(0, 3, 500);
    place(1, "c", 3, 303, "gpt")->timeless = true;
    raised(60, 3, "gpt", "bad token id");
    cluster.events[cluster.count - 1].timeless = _i == 1;
    const char *lines = run();
    says(lines, "Rank 3 raised ValueError");
    says(lines, "\"state\":\"open\"");
}
END_TEST

// A map without a job looks like another start of the only job that is named; it may be another
// job, so that nothing is over.
START_TEST(a_map_without_a_job_ends_nothing) {
    for (int32_t rank = 0; rank < 2; rank++) {
        place(1, NULL, rank, 100 + rank, "gpt")->timeless = true;
        place(1, NULL, rank, 200 + rank, _i == 0 ? NULL : "gpt")->timeless = true;
    }
    left(60, NULL, 101, "gpt");
    says(run(), _i == 0 ? "\"state\":\"open\"" : "\"state\":\"resolved\"");
}
END_TEST

static void in_pod(struct event *event, const char *pod) {
    struct rank_place *said = &ends[event - cluster.events].place;
    said->namespace = SLICE("train");
    said->pod = slice_of(pod);
}

// The pods of a node have the same pids: the line's pod says whose it is, else nobody knows.
START_TEST(pods_of_one_node) {
    in_pod(place(0, "a", 0, 7, "gpt"), "w-0");
    in_pod(place(1, "a", 1, 7, "gpt"), "w-1");
    struct event *event = of_job(say(60, "a", RANK_NONE, OBSERVATION_LAUNCHER_FAILED), "gpt");
    add(event, FACT_PID, 7);
    if (_i < 2)
        add_text(event, FACT_POD, _i == 0 ? "train/w-0" : "w-1");
    add(event, FACT_EXIT_CODE, 1);
    const char *lines = run();
    if (_i < 2)
        says(lines, _i == 0 ? "Rank 0 on a ended first" : "Rank 1 on a ended first");
    else
        says(lines, "rocess 7");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit_jobs");
    TCase *cases = tcase_create("first_exit_jobs");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, equal_pids_of_two_jobs, 0, AGE_COUNT * AGE_COUNT);
    tcase_add_loop_test(cases, equal_pids_without_a_job, 0, AGE_COUNT * AGE_COUNT);
    tcase_add_test(cases, equal_pids_on_one_node_without_a_job);
    tcase_add_loop_test(cases, equal_pids_on_two_nodes, 0, AGE_COUNT * AGE_COUNT);
    tcase_add_loop_test(cases, a_rank_without_a_job, 0, AGE_COUNT * AGE_COUNT);
    tcase_add_test(cases, a_rank_that_only_one_job_has);
    tcase_add_loop_test(cases, a_map_without_a_job, 0, 2);
    tcase_add_loop_test(cases, a_pid_of_one_node_that_nobody_names, 0, 2);
    tcase_add_test(cases, a_pid_of_two_ranks);
    tcase_add_loop_test(cases, a_pid_of_one_of_two_nodes, 0, 2);
    tcase_add_test(cases, the_same_words_in_two_jobs);
    tcase_add_loop_test(cases, a_job_that_was_cancelled, 0, 3);
    tcase_add_loop_test(cases, two_starts_that_nobody_dated, 0, 4);
    tcase_add_test(cases, two_ends_of_starts_that_nobody_dated);
    tcase_add_test(cases, who_is_in_no_map_is_of_the_last_start);
    tcase_add_loop_test(cases, ranks_that_moved, 0, 2);
    tcase_add_loop_test(cases, a_rank_on_either_of_two_nodes, 0, 2);
    tcase_add_loop_test(cases, a_map_without_a_job_ends_nothing, 0, 2);
    tcase_add_loop_test(cases, pods_of_one_node, 0, 3);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// first_exit: whose end was the first, who is a victim, what ties and silence say, and what is
// kept.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

START_TEST(the_first_own_end_is_the_culprit) {
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    raise_in(61, "a", 1, "RuntimeError", "Connection closed by peer", true);
    tell_to_end(60.5, "b", 103);
    leaves(60.7, "b", 102, FACT_EXIT_CODE, 1);
    leaves(61.7, "a", 101, FACT_EXIT_CODE, 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"exception\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"victim\"}");
    says(lines, "Rank 2 on b ended first: it raised IndexError: index out of range");
    says(lines, "\"confidence\":92");
    says(lines, "\"exception.type\":\"IndexError\"");
}
END_TEST

static void traceback(const char *type) {
    struct event *event = say(60, NULL, RANK_NONE, OBSERVATION_EXCEPTION);
    add_text(event, FACT_EXCEPTION, type);
    add_text(event, FACT_MESSAGE, "'label'");
    event->timeless = true;
}

static void failed(int32_t rank, int64_t code) {
    struct event *event = say(61, NULL, rank, OBSERVATION_LAUNCHER_FAILED);
    add(event, FACT_EXIT_CODE, code);
    event->timeless = true;
}

// Not where the launcher names two, where two tracebacks differ, and behind another code.
START_TEST(a_traceback_without_a_name_is_that_of_the_only_rank_that_failed) {
    traceback("KeyError");
    if (_i == 2)
        traceback("IndexError");
    failed(2, _i == 3 ? 3 : 1);
    if (_i == 1)
        failed(3, 1);
    const char *lines = run();
    if (_i == 0) {
        says(lines, "Rank 2 ended first: it raised KeyError: 'label'");
        says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
        says_not(lines, "a process");
    } else {
        says(lines, "A process ended first: it raised ");
    }
}
END_TEST

// torchrun's summary names a rank as its other lines do, and errors of CUDA are raised, too.
START_TEST(a_traceback_of_cuda_is_that_of_the_only_rank_of_a_summary) {
    struct event *event = say(60, NULL, RANK_NONE, OBSERVATION_CUDA_ERROR);
    add_text(event, FACT_EXCEPTION, "RuntimeError");
    add_text(event, FACT_MESSAGE, "CUDA error: invalid device ordinal");
    event->timeless = true;
    event = say(61, NULL, 1, OBSERVATION_LAUNCHER_SUMMARY);
    add(event, FACT_EXIT_CODE, 1);
    const char *lines = run();
    says(lines, "Rank 1 ended first: it raised RuntimeError: CUDA error: invalid device ordinal");
    says_not(lines, "a process");
}
END_TEST

START_TEST(a_launcher_says_how_in_words) {
    start_job(0, 100);
    struct event *event = say(60, NULL, 2, OBSERVATION_LAUNCHER_FAILED);
    add_text(event, FACT_REASON, "called MPI_Abort");
    const char *lines = run();
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
    says(lines, "Rank 2 on b ended first: it called MPI_Abort");
    says(lines, "its launcher says that it called MPI_Abort");
}
END_TEST

// Any rank of which nothing is told may have been before the one that is named.
START_TEST(it_is_complete_where_all_ranks_were_seen) {
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    raise_in(61, "a", 1, "RuntimeError", "Connection closed by peer", true);
    tell_to_end(60.5, "b", 103);
    if (_i == 1)
        raise_in(61, "a", 0, "RuntimeError", "Connection closed by peer", true);
    const char *lines = run();
    says(lines, "Rank 2 on b ended first");
    says(lines, _i == 0 ? "\"completeness\":\"partial\",\"confidence\":92"
                        : "\"completeness\":\"full\",\"confidence\":92");
    ck_assert_int_eq(
        strstr(lines, "\"culprit.not_seen\":\"nothing says how it went with rank 0\"") != NULL,
        _i == 0);
}
END_TEST

// What is too long for its place ends between words; the numbers of a message stay whole, and the
// message itself stands in the attribute.
START_TEST(long_words_of_an_exception_are_shortened) {
    static const char OOM[] =
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB "
        "of which 12.88 MiB is free. Process 918273 has 76.90 GiB memory in use. Of the allocated "
        "memory 75.12 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";
    start_job(0, 100);
    raise_in(60, "b", 2, "torch.OutOfMemoryError", OOM, false);
    raise_in(62, "a", 0, "RuntimeError",
             "[../third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection closed by peer "
             "[10.0.0.12]:17567. This is typically caused by a remote worker crashing, which its "
             "own log tells of",
             true);
    leaves(60.7, "b", 102, FACT_EXIT_CODE, 1);
    const char *lines = run();
    says(lines, "Rank 2 on b ended first: it raised torch.OutOfMemoryError: CUDA out of memory.");
    says(lines, "Process 918273 has 76.90 GiB memory in use. Of the \\u2026\",");
    says(lines, "expandable_segments:True to avoid \\u2026\",");
    says(lines,
         "Connection closed by peer [10.0.0.12]:17567. This is typically caused by a remote "
         "worker crashing, which \\u2026\",");
    says(lines, "expandable_segments:True to avoid fragmentation.\"");
}
END_TEST

START_TEST(a_long_headline_says_how_it_ends) {
    static char type[90], message[300];
    memset(type, 'T', sizeof type - 1);
    for (size_t i = 0; i + 1 < sizeof message; i++)
        message[i] = "word "[i % 5];
    struct event *event =
        say(60, "a-node-of-a-rather-long-name-as-clouds-give-them", 3, OBSERVATION_EXCEPTION);
    add_text(event, FACT_EXCEPTION, type);
    add_text(event, FACT_MESSAGE, message);
    says(run(), "word \\u2026; nothing says that it ended\"");
}
END_TEST

START_TEST(whole_seconds_order_nothing_but_launchers_do) {
    start_job(0, 100);
    raise_in(60, "b", 2, "KeyError", "'labels'", false);
    raise_in(60, "a", 0, "ValueError", "loss is nan", false);
    const char *lines = run();
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"suspect\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"suspect\"}");
    says_not(lines, "\"role\":\"culprit\"");
    says(lines, "\"confidence\":62");
}
END_TEST

START_TEST(the_launcher_that_acted_first_breaks_a_tie) {
    start_job(0, 100);
    raise_in(60, "b", 2, "KeyError", "'labels'", false);
    raise_in(60, "a", 0, "ValueError", "loss is nan", false);
    leaves(60.2, "b", 102, FACT_EXIT_CODE, 1);
    leaves(60.9, "a", 100, FACT_EXIT_CODE, 1);
    const char *lines = run();
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"suspect\"}");
    detector_close(&detector);
    fixture_begin(&processor_first_exit);
    start_job(0, 100);
    say(60, "b", 2, OBSERVATION_ABORT);
    say(60, "a", 0, OBSERVATION_ABORT);
    leaves(60.2, "b", 102, FACT_SIGNAL, 6);
    leaves(60.9, "a", 100, FACT_SIGNAL, 6);
    cluster.events[4].timeless = cluster.events[5].timeless = true;
    lines = run();
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
    says(lines, "ended first: it ended by SIGABRT");
}
END_TEST

START_TEST(a_written_reason_counts_for_more_than_a_code) {
    start_job(0, 100);
    leaves(60.2, "a", 100, FACT_EXIT_CODE, 3);
    raise_in(60, "b", 2, "torch.OutOfMemoryError", "CUDA out of memory.", false);
    const char *lines = run();
    says(lines, "\"kind\":\"cuda_oom\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(an_exit_code_alone_is_named_when_it_is_first) {
    start_job(0, 100);
    leaves(60, "a", 101, FACT_EXIT_CODE, 3);
    lose_peer(61, "b", 2);
    lose_peer(61, "b", 3);
    const char *lines = run();
    says(lines, "\"kind\":\"exit_code\"");
    says(lines, "Rank 1 on a ended first: it left with exit code 3");
    says(lines, "\"confidence\":75");
}
END_TEST

// A launcher lists all that failed in one line: each counts, in whatever order they are told.
START_TEST(several_ends_in_one_line) {
    start_job(0, 100);
    leaves(60, "a", _i == 0 ? 101 : 100, FACT_SIGNAL, 9);
    leaves(60, "a", _i == 0 ? 100 : 101, FACT_SIGNAL, 9);
    cluster.events[5].position = cluster.events[4].position;
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"suspect\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"suspect\"}");
}
END_TEST

START_TEST(codes_that_nobody_explains_make_suspects) {
    start_job(0, 100);
    leaves(60, "a", 101, FACT_EXIT_CODE, 1);
    leaves(65, "b", 102, FACT_EXIT_CODE, 1);
    const char *lines = run();
    says(lines, "\"completeness\":\"partial\",\"confidence\":45");
    says_not(lines, "\"role\":\"culprit\"");
}
END_TEST

START_TEST(victims_alone_name_nobody) {
    start_job(0, 100);
    for (int32_t rank = 0; rank < 4; rank++)
        lose_peer(60 + rank, rank < 2 ? "a" : "b", rank);
    tell_to_end(62, "a", 100);
    leaves(63, "a", 101, FACT_EXIT_CODE, 1);
    tell_to_end(62, "b", 102);
    leaves(63, "b", 103, FACT_SIGNAL, 6);
    ck_assert_str_eq(run(), "");
}
END_TEST

START_TEST(what_was_caught_before_a_peer_was_lost_is_no_end) {
    start_job(0, 100);
    struct event *caught = say(60, "a", 1, OBSERVATION_EXCEPTION);
    add_text(caught, FACT_EXCEPTION, "TimeoutError");
    add_text(caught, FACT_MESSAGE, "the data server is slow");
    lose_peer(60.2, "a", 1);
    leaves(60.4, "b", 102, FACT_SIGNAL, 9);
    const char *lines = run();
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
    says(lines, "ended by SIGKILL");
}
END_TEST

START_TEST(a_traceback_alone_is_a_warning) {
    struct event *event = say(60, NULL, 3, OBSERVATION_EXCEPTION);
    add_text(event, FACT_EXCEPTION, "ValueError");
    add_text(event, FACT_MESSAGE, "loss is nan");
    const char *lines = run();
    says(lines, "\"severity\":\"warning\",\"completeness\":\"partial\"");
    says(lines, "Rank 3 raised ValueError: loss is nan; nothing says that it ended");
    says_not(lines, "\"role\":\"culprit\"");
}
END_TEST

START_TEST(the_kernel_names_a_process_by_its_pid) {
    start_job(0, 100);
    struct event *kill = say(60, "a", RANK_NONE, OBSERVATION_OOM_KILL);
    add(kill, FACT_PID, 101);
    struct event *other = say(59, "b", RANK_NONE, OBSERVATION_OOM_KILL);
    add(other, FACT_PID, 7777); // of no rank
    leaves(60.3, "a", 101, FACT_SIGNAL, 9);
    lose_peer(61, "b", 2);
    const char *lines = run();
    says(lines, "\"kind\":\"host_oom\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
    says(lines, "\"confidence\":90");
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

static void tell_to_stop(double seconds, const char *node) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_LAUNCHER_TOLD_TO_STOP);
    add(event, FACT_PID, 50);
    add(event, FACT_SIGNAL, 15);
}

START_TEST(a_node_that_was_told_to_stop_took_its_ranks_with_it) {
    start_job(0, 100);
    tell_to_stop(60, "b");
    raise_in(60, "b", 2, "KeyboardInterrupt", "", false);
    lose_peer(61, "a", 0);
    const char *lines = run();
    says(lines, "\"kind\":\"preempted\"");
    says(lines, "{\"kind\":\"node\",\"name\":\"b\",\"role\":\"culprit\"}");
    says(lines, "\"severity\":\"warning\"");
}
END_TEST

START_TEST(an_end_before_a_node_was_told_to_stop_was_the_first) {
    start_job(0, 100);
    raise_in(50, "a", 1, "ValueError", "bad record", false);
    tell_to_stop(60, "b");
    const char *lines = run();
    says(lines, "\"kind\":\"exception\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(nobody_is_to_blame_when_all_nodes_were_told_to_stop) {
    start_job(0, 100);
    tell_to_stop(60, "a");
    tell_to_stop(60, "b");
    const char *lines = run();
    says(lines, "\"kind\":\"preempted\"");
    says_not(lines, "\"role\":\"culprit\"");
}
END_TEST

// Nodes are told one after another, and their ranks end in the same second.
START_TEST(a_job_that_was_told_to_stop_node_by_node) {
    start_job(0, 100);
    tell_to_stop(60, "b");
    tell_to_stop(_i == 0 ? 60.9 : 61.1, "a");
    raise_in(61, "a", 0, "KeyboardInterrupt", "", false);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "The job was told to stop from outside, and the ranks with it");
    says(lines, "a: its launcher was sent SIGTERM");
    says(lines, "b: its launcher was sent SIGTERM");
    says(lines, "\"confidence\":92");
    says_not(lines, "\"kind\":\"node\"");
    says_not(lines, "k8s.node.name");
}
END_TEST

// Within half a minute, while nothing ends on the other nodes, it is still the job.
START_TEST(a_job_whose_nodes_are_told_seconds_apart) {
    start_job(0, 100);
    tell_to_stop(60, "b");
    tell_to_stop(_i == 1 ? 91 : 80, "a");
    raise_in(_i == 2 ? 70 : 95, "a", 0, "KeyboardInterrupt", "", false);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"preempted\"");
    if (_i == 0) {
        says(lines, "The job was told to stop from outside, and the ranks with it");
        says_not(lines, "\"role\":\"culprit\"");
    } else {
        says(lines, "{\"kind\":\"node\",\"name\":\"b\",\"role\":\"culprit\"}");
    }
}
END_TEST

// What stops two nodes of three may have struck the third by their end.
START_TEST(nodes_that_were_told_to_stop_are_not_the_job) {
    start_job(0, 100);
    place_of(0, "c", 4, 104);
    tell_to_stop(60, "b");
    tell_to_stop(60, "a");
    says_not(run(), "The job");
}
END_TEST

START_TEST(a_time_limit_blames_nobody) {
    struct event *event = say(60, NULL, RANK_NONE, OBSERVATION_SLURM_CANCELLED);
    add_text(event, FACT_REASON, "TIME LIMIT");
    const char *lines = run();
    says(lines, "\"kind\":\"time_limit\"");
    says(lines, "The job reached its time limit");
    says_not(lines, "\"role\":\"culprit\"");
}
END_TEST

static struct event *container(double seconds, const char *pod, const char *reason, int64_t code) {
    struct event *event = say(seconds, "a", RANK_NONE, OBSERVATION_CONTAINER_TERMINATED);
    add_text(event, FACT_POD, pod);
    add(event, FACT_EXIT_CODE, code);
    add_text(event, FACT_REASON, reason);
    return event;
}

START_TEST(a_container_tells_of_its_pod) {
    container(60, "train/w-1", "OOMKilled", 137);
    const char *lines = run();
    says(lines, "\"kind\":\"host_oom\"");
    says(lines, "{\"kind\":\"pod\",\"name\":\"train/w-1\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(of_contradictions_about_one_end_one_is_taken_in_any_order) {
    container(60, "train/w-1", "Error", _i == 0 ? 3 : 5);
    container(60, "train/w-1", "Error", _i == 0 ? 5 : 3);
    says(run(), "left with exit code 3");
}
END_TEST

START_TEST(a_container_of_which_nothing_is_known_was_not_killed) {
    container(60, "train/w-1", "ContainerStatusUnknown", 137);
    container(61, "train/w-2", "Error", 143);
    ck_assert_str_eq(run(), "");
}
END_TEST

START_TEST(the_one_that_is_silent_is_named_with_little_confidence) {
    start_job(0, 100);
    lose_peer(60, "a", 0);
    leaves(61, "a", 100, FACT_EXIT_CODE, 1);
    lose_peer(60, "b", 2);
    lose_peer(60, "b", 3);
    leaves(61, "b", 102, FACT_EXIT_CODE, 1);
    const char *lines = run();
    says(lines, "Rank 1 on a ended first: it ended without a word");
    says(lines, "\"completeness\":\"partial\",\"confidence\":40");
}
END_TEST

START_TEST(a_silent_node_is_lost) {
    start_job(0, 100);
    lose_peer(60, "b", 2);
    lose_peer(60, "b", 3);
    const char *lines = run();
    says(lines, "\"kind\":\"node_lost\"");
    says(lines, "{\"kind\":\"node\",\"name\":\"a\",\"role\":\"culprit\"}");
}
END_TEST

// A rank map without jobs tells of two that run at once: a node of the other one is not lost.
START_TEST(silence_among_several_jobs_says_nothing) {
    start_job(0, 100);
    place_of(0, "c", 0, 200);
    place_of(0, "c", 1, 201);
    for (int32_t rank = 0; rank < 4; rank++)
        lose_peer(60, rank < 2 ? "a" : "b", rank);
    leaves(61, "a", 100, FACT_EXIT_CODE, 1);
    leaves(61, "b", 102, FACT_EXIT_CODE, 1);
    ck_assert_str_eq(run(), "");
}
END_TEST

START_TEST(silence_of_several_nodes_says_nothing) {
    start_job(0, 100);
    place_of(0, "c", 4, 104);
    lose_peer(60, "b", 2);
    lose_peer(60, "b", 3);
    ck_assert_str_eq(run(), "");
}
END_TEST

START_TEST(a_start_that_goes_on_resolves_what_was_before) {
    start_job(0, 100);
    leaves(60, "a", 101, FACT_SIGNAL, 11);
    start_job(70, 200);
    const char *lines = run();
    says(lines, "\"kind\":\"segfault\",\"state\":\"resolved\"");
}
END_TEST

START_TEST(a_start_that_came_to_nothing_leaves_it_open) {
    start_job(0, 100);
    leaves(60, "a", 101, FACT_SIGNAL, 11);
    start_job(70, 200);
    for (int32_t rank = 0; rank < 4; rank++)
        lose_peer(80, rank < 2 ? "a" : "b", rank);
    leaves(81, "a", 200, FACT_EXIT_CODE, 1);
    leaves(81, "b", 203, FACT_EXIT_CODE, 1);
    const char *lines = run();
    says(lines, "\"kind\":\"segfault\",\"state\":\"open\"");
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

START_TEST(each_start_has_its_own_first_end) {
    start_job(0, 100);
    leaves(60, "a", 101, FACT_SIGNAL, 11);
    start_job(70, 200);
    raise_in(90, "b", 3, "ValueError", "loss is nan", false);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 2);
    says(lines, "\"kind\":\"segfault\",\"state\":\"resolved\"");
    says(lines, "\"kind\":\"exception\",\"state\":\"open\"");
}
END_TEST

static void one_of_everything(void) {
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    raise_in(61, "a", 1, "RuntimeError", "Connection closed by peer", true);
    tell_to_end(60.5, "b", 103);
    leaves(60.7, "b", 102, FACT_EXIT_CODE, 1);
    start_job(70, 200);
    leaves(90, "a", 201, FACT_SIGNAL, 11);
}

START_TEST(it_is_told_the_same_in_any_order) {
    one_of_everything();
    char *whole = strdup(run());
    detector_close(&detector);
    detector = detector_open(&processor_first_exit);
    detector_start(&detector);
    for (uint32_t i = cluster.count; i-- > 0;)
        detector_feed(&detector, &cluster.events[i], 1);
    detector_finish(&detector);
    ck_assert_str_eq(detector_lines(&detector), whole);
    free(whole);
}
END_TEST

START_TEST(kept_state_goes_on_as_if_nothing_had_happened) {
    one_of_everything();
    char *whole = strdup(run());
    struct detector second = detector_open(&processor_first_exit);
    detector_close(&detector);
    detector = detector_open(&processor_first_exit);
    detector_start(&detector);
    detector_feed(&detector, cluster.events, 7);
    detector_start(&second);
    detector_move_state(&detector, &second);
    detector_close(&detector);
    detector = second;
    detector_feed(&detector, cluster.events + 7, cluster.count - 7);
    detector_finish(&detector);
    ck_assert_str_eq(detector_lines(&detector), whole);
    free(whole);
}
END_TEST

START_TEST(nothing_is_allocated_once_warm) {
    detector_start(&detector);
    one_of_everything();
    for (uint32_t i = 0; i < 3; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, cluster_time(500), false);
    }
    uint64_t before = memory_figures().allocations;
    for (uint32_t i = 0; i < 10; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, cluster_time(500), false);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

START_TEST(bounds_let_the_oldest_go) {
    detector_set(&detector, "max_notes", "16");
    detector_set(&detector, "max_places", "16");
    for (int32_t rank = 0; rank < 40; rank++)
        place_of(rank, "a", rank, 100 + rank);
    for (int32_t rank = 0; rank < 40; rank++)
        leaves(60 + rank, "a", 100 + rank, FACT_SIGNAL, 9);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says_not(lines, "Rank 0 on a");
    says(lines, "ended first");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit");
    TCase *cases = tcase_create("cases");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_first_own_end_is_the_culprit);
    tcase_add_test(cases, a_launcher_says_how_in_words);
    tcase_add_test(cases, a_traceback_of_cuda_is_that_of_the_only_rank_of_a_summary);
    tcase_add_loop_test(cases, a_traceback_without_a_name_is_that_of_the_only_rank_that_failed, 0,
                        4);
    tcase_add_loop_test(cases, it_is_complete_where_all_ranks_were_seen, 0, 2);
    tcase_add_test(cases, long_words_of_an_exception_are_shortened);
    tcase_add_test(cases, a_long_headline_says_how_it_ends);
    tcase_add_test(cases, whole_seconds_order_nothing_but_launchers_do);
    tcase_add_test(cases, the_launcher_that_acted_first_breaks_a_tie);
    tcase_add_test(cases, a_written_reason_counts_for_more_than_a_code);
    tcase_add_test(cases, an_exit_code_alone_is_named_when_it_is_first);
    tcase_add_loop_test(cases, several_ends_in_one_line, 0, 2);
    tcase_add_test(cases, codes_that_nobody_explains_make_suspects);
    tcase_add_test(cases, victims_alone_name_nobody);
    tcase_add_test(cases, what_was_caught_before_a_peer_was_lost_is_no_end);
    tcase_add_test(cases, a_traceback_alone_is_a_warning);
    tcase_add_test(cases, the_kernel_names_a_process_by_its_pid);
    tcase_add_test(cases, a_node_that_was_told_to_stop_took_its_ranks_with_it);
    tcase_add_test(cases, an_end_before_a_node_was_told_to_stop_was_the_first);
    tcase_add_test(cases, nobody_is_to_blame_when_all_nodes_were_told_to_stop);
    tcase_add_loop_test(cases, a_job_that_was_told_to_stop_node_by_node, 0, 2);
    tcase_add_loop_test(cases, a_job_whose_nodes_are_told_seconds_apart, 0, 3);
    tcase_add_test(cases, nodes_that_were_told_to_stop_are_not_the_job);
    tcase_add_test(cases, a_time_limit_blames_nobody);
    tcase_add_test(cases, a_container_tells_of_its_pod);
    tcase_add_loop_test(cases, of_contradictions_about_one_end_one_is_taken_in_any_order, 0, 2);
    tcase_add_test(cases, a_container_of_which_nothing_is_known_was_not_killed);
    tcase_add_test(cases, the_one_that_is_silent_is_named_with_little_confidence);
    tcase_add_test(cases, a_silent_node_is_lost);
    tcase_add_test(cases, silence_among_several_jobs_says_nothing);
    tcase_add_test(cases, silence_of_several_nodes_says_nothing);
    tcase_add_test(cases, a_start_that_goes_on_resolves_what_was_before);
    tcase_add_test(cases, a_start_that_came_to_nothing_leaves_it_open);
    tcase_add_test(cases, each_start_has_its_own_first_end);
    tcase_add_test(cases, it_is_told_the_same_in_any_order);
    tcase_add_test(cases, kept_state_goes_on_as_if_nothing_had_happened);
    tcase_add_test(cases, nothing_is_allocated_once_warm);
    tcase_add_test(cases, bounds_let_the_oldest_go);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

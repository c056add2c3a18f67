// SPDX-License-Identifier: Apache-2.0
// unexplained: what is a sign, how it is said, what a verdict explains, what one failure is, and
// when a finding ends.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static struct verdict stands[4];
static struct entity named[4][2];
static struct evidence shown[4][1];
static uint32_t stand_count;
static struct rank_series series[3];
static struct rank_view views[3];
static struct evaluation job;
static bool is_sampled;

static void setup(void) {
    fixture_begin(&processor_unexplained);
    detector_start(&detector);
    stand_count = 0;
    is_sampled = false;
    memset(named, 0, sizeof named);
}

// A verdict of another detector that stands from `begin` to `end`, in seconds.
static struct verdict *stand(enum severity severity, double begin, double end) {
    struct verdict *verdict = &stands[stand_count];
    *verdict = (struct verdict){.pattern = "gpu_fault",
                                .kind = "failed",
                                .severity = severity,
                                .headline = SLICE("a GPU failed"),
                                .remediation = SLICE("look"),
                                .action = "monitor",
                                .start_ns = cluster_time(begin),
                                .end_ns = cluster_time(end),
                                .entities = named[stand_count],
                                .evidence = shown[stand_count]};
    snprintf(verdict->id, sizeof verdict->id, "gpu_fault:%u", stand_count++);
    return verdict;
}

static void on_node(struct verdict *verdict, const char *node) {
    verdict->entities[verdict->entity_count++] =
        (struct entity){"node", slice_of(node), ROLE_CULPRIT};
}

// A job of three ranks that wrote samples until then, in seconds.
static void sample_until(double first, double second, double third) {
    const double until[] = {first, second, third};
    job = (struct evaluation){.ranks = views, .rank_count = 3};
    for (int32_t rank = 0; rank < 3; rank++) {
        series[rank].rank = rank;
        views[rank] = (struct rank_view){.series = &series[rank],
                                         .first_ns = cluster_time(0),
                                         .last_ns = cluster_time(until[rank])};
    }
    is_sampled = true;
}

// What the detector makes of the events and of the verdicts that stand.
static const char *judge(bool last) {
    struct batch batch = {.events = cluster.events,
                          .event_count = cluster.count,
                          .arena = &detector.arena,
                          .evaluate = true,
                          .last = last,
                          .evaluations = &job,
                          .evaluation_count = is_sampled};
    for (uint32_t i = 0; i < cluster.count; i++)
        if (cluster.events[i].time_ns > detector.newest_ns)
            detector.newest_ns = cluster.events[i].time_ns;
    batch.newest_ns = detector.newest_ns;
    batch.as_of_ns = last ? UINT64_MAX : detector.newest_ns;
    for (uint32_t i = 0; i < stand_count; i++)
        batch_append_verdict(&batch, &stands[i]);
    detector_lines_reset(&detector);
    detector.type->processor.consume(detector.instance, &batch);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < batch.verdicts.count; i++)
        if (strcmp(batch.verdicts.items[i].pattern, "unexplained") == 0)
            batch.verdicts.items[kept++] = batch.verdicts.items[i];
    batch.verdicts.count = kept;
    detector_keep(&detector, &batch);
    cluster.count = 0;
    return detector_lines(&detector);
}

static void kill_in(double seconds, const char *node, int64_t pid) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_OOM_KILL);
    add(event, FACT_PID, pid);
    add_text(event, FACT_PROCESS, "python3");
}

START_TEST(what_failed_is_named_in_the_sentence) {
    kill_in(5, "gpu-07", 4711);
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"headline\":\"Not explained: gpu-07: the kernel killed python3 (pid 4711) because "
         "memory ran out\"");
    says(lines, "\"severity\":\"error\"");
    says(lines, "{\"kind\":\"node\",\"name\":\"gpu-07\",\"role\":\"suspect\"}");
    says(lines, "\"completeness\":\"partial\"");
    says(lines, "the output of each rank, that of the launcher.");
    says_not(lines, "kernel log of each node"); // it was there
}
END_TEST

START_TEST(a_watchdog_that_gave_up_is_a_sign) {
    static const struct app_line line = {.kind = APP_TIMEOUT,
                                         .rank = 3,
                                         .text = SLICE("Watchdog caught collective operation "
                                                       "timeout: WorkNCCL(SeqNum=1201)")};
    struct event *event = node_event_add(&cluster, 5, "a", EVENT_APP_LINE);
    event->line = &line;
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "Not explained: rank 3 on a: Watchdog caught collective operation timeout");
    says(lines, "\"uid\":\"sign_app:a:3:collective_timeout:");
}
END_TEST

START_TEST(what_is_no_failure_is_no_sign) {
    struct event *event = say(1, "a", RANK_NONE, OBSERVATION_NODE_CONDITION);
    add_text(event, FACT_CONDITION, "GpuHappy"); // nobody knows whether that is bad
    event = say(2, "a", RANK_NONE, OBSERVATION_CONTAINER_TERMINATED);
    add(event, FACT_EXIT_CODE, 0);
    event = say(3, "a", RANK_NONE, OBSERVATION_MACHINE_CHECK);
    add_yes_no(event, FACT_CORRECTED, true);
    event = say(4, NULL, RANK_NONE, OBSERVATION_JOB_CONDITION);
    add_text(event, FACT_CONDITION, "Suspended");
    say(5, "a", 0, OBSERVATION_RAS_RANK);
    say(6, "a", RANK_NONE, OBSERVATION_STORE_LOST); // an agent, at the end of each job
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(a_verdict_of_that_time_and_place_explains) {
    kill_in(5, "a", 10);
    on_node(stand(SEVERITY_ERROR, 4, 6), "a");
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(no_verdict_of_other_machines_jobs_or_times_does) {
    kill_in(2000, "a", 10);
    on_node(stand(SEVERITY_ERROR, 2000, 2001), "b");
    on_node(stand(SEVERITY_ERROR, 4, 6), "a");      // long over
    on_node(stand(SEVERITY_INFO, 2000, 2001), "a"); // no more than a note
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    detector_close(&detector);
    setup();
    kill_in(5, "a", 10);
    cluster.events[0].job = intern(SLICE("gpt"));
    stand(SEVERITY_ERROR, 4, 6)->job = intern(SLICE("llama"));
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

START_TEST(a_note_that_names_the_event_explains_it) {
    kill_in(5, "a", 10);
    struct verdict *note = stand(SEVERITY_INFO, 4, 6);
    note->evidence[note->evidence_count++] = (struct evidence){SLICE("exit:a::10:oom_kill:5"),
                                                               SLICE("it was killed"),
                                                               cluster_time(5),
                                                               true,
                                                               EVIDENCE_CAUSE,
                                                               false};
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(what_the_job_survives_is_no_failure) {
    sample_until(300, 290, 100); // one rank's samples ended for another reason
    kill_in(150, "a", 10);
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 0);
    detector_close(&detector);
    setup();
    sample_until(300, 290, 100);
    lose_peer(100, "a", 2); // the rank that said it wrote no more
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    detector_close(&detector);
    setup();
    sample_until(300, 200, 190);
    kill_in(150, "a", 10); // and the job ended
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    detector_close(&detector);
    setup();
    sample_until(300, 300, 300);
    say(100, "a", RANK_NONE, OBSERVATION_NFS_STALL); // samples come from ranks that wait, too
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

START_TEST(a_process_dies_once_whatever_the_clocks) {
    kill_in(5, "a", 10);
    kill_in(9000, "a", 10); // the same line, by times since the boot
    kill_in(9000, "b", 10);
    on_node(stand(SEVERITY_ERROR, 4, 6), "a");
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "Not explained: b: ");
}
END_TEST

START_TEST(what_ranks_say_may_follow_from_any_machine) {
    lose_peer(6, "b", 3);
    on_node(stand(SEVERITY_ERROR, 4, 6), "a");
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

START_TEST(a_failure_is_told_once_by_its_most_telling_sign) {
    struct event *event = say(3, "a", 1, OBSERVATION_LAUNCHER_FAILED);
    add(event, FACT_EXIT_CODE, 1);
    lose_peer(4, "a", 2);
    lose_peer(5, "b", 3);
    kill_in(6, "b", 77);
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "Not explained: b: the kernel killed python3 (pid 77) because memory ran out (and "
         "3 more signs of a failure)");
    says(lines, "rank 1 on a: its launcher says that it left with exit code 1");
    says(lines, "rank 2 on a: raised RuntimeError");
    const char *first = strstr(lines, "rank 1 on a"), *last = strstr(lines, "\"b: the kernel");
    ck_assert(first != NULL && last != NULL && first < last); // in order of time
}
END_TEST

START_TEST(repeats_are_one_and_gaps_part_failures) {
    for (int i = 0; i < 5; i++)
        lose_peer(10 + i, "a", 2);
    lose_peer(9000, "a", 2);
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 2);
    says_not(lines, "more signs");
}
END_TEST

START_TEST(the_first_ten_are_told) {
    for (int rank = 0; rank < 12; rank++)
        lose_peer(10 + rank, "a", rank);
    const char *lines = judge(true);
    says(lines, "(and 11 more signs of a failure)");
    says(lines, "rank 9 on a");
    says_not(lines, "rank 10 on a");
}
END_TEST

START_TEST(signs_without_a_job_go_to_the_only_one) {
    lose_peer(10, "a", 2);
    cluster.events[0].job = intern(SLICE("gpt"));
    kill_in(11, "b", 77);
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"job_id\":\"gpt\"");
}
END_TEST

START_TEST(what_has_no_time_is_of_the_first_failure) {
    lose_peer(10, "a", 2);
    struct event *event = say(99999, NULL, RANK_NONE, OBSERVATION_EXCEPTION);
    add_text(event, FACT_EXCEPTION, "KeyError");
    event->timeless = true;
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "Not explained: agent.log: raised KeyError (and 1 more sign of a failure)");
    says(lines, ":agent.log\"");
}
END_TEST

START_TEST(it_ends_when_it_is_explained) {
    detector_close(&detector);
    detector = detector_open(&processor_unexplained);
    detector_start_as(&detector, false);
    kill_in(5, "a", 10);
    judge(false);
    ck_assert_uint_eq(detector.verdict_count, 0); // the verdict that explains may be on its way
    lose_peer(60, "c", 9);
    says(judge(false), "\"state\":\"open\"");
    judge(false);
    ck_assert_uint_eq(detector.verdict_count, 0);
    stand(SEVERITY_ERROR, 4, 61);
    const char *lines = judge(false);
    says(lines, "\"state\":\"resolved\"");
    ck_assert_uint_eq(detector.verdict_count, 1);
    stand_count = 0; // that one is over: what it explained stays explained
    judge(false);
    ck_assert_uint_eq(detector.verdict_count, 0);
}
END_TEST

// -- states that end

static void not_ready(double seconds, const char *node) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_NODE_CONDITION);
    add_text(event, FACT_STATUS, "Unknown");
    add_text(event, FACT_CONDITION, "Ready");
    add_yes_no(event, FACT_BAD, true);
}

static void condition_is(double seconds, const char *node, const char *type, const char *status) {
    cluster_node(&cluster, seconds, node, type, status);
}

static void stall(double seconds, const char *server, const char *state) {
    struct event *event = say(seconds, "a", RANK_NONE, OBSERVATION_NFS_STALL);
    add_text(event, FACT_STATE, state);
    add_text(event, FACT_SERVER, server);
    ends[event - cluster.events].said.text =
        slice_of(strcmp(state, "end") == 0 ? "nfs: server OK" : "nfs: server not responding");
}

START_TEST(a_node_that_is_ready_again_is_told_as_over) {
    not_ready(10, "a");
    condition_is(75, "a", "Ready", "True");
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"headline\":\"Not explained: a: Kubernetes says Ready is Unknown (over after "
         "1 min 5 s)\"");
    says(lines, "\"severity\":\"info\"");
}
END_TEST

START_TEST(what_is_over_comes_after_what_is_not) {
    not_ready(10, "a");
    condition_is(75, "a", "Ready", "True");
    struct event *event = say(1000, "b", 1, OBSERVATION_LAUNCHER_FAILED);
    add(event, FACT_EXIT_CODE, 1);
    const char *lines = judge(true);
    says(lines,
         "\"headline\":\"Not explained: rank 1 on b: its launcher says that it left with "
         "exit code 1 (and 1 more sign of a failure)\"");
    says(lines, "a: Kubernetes says Ready is Unknown (over after 1 min 5 s)");
    says_not(lines, "\"role\":\"suspect\"");
}
END_TEST

START_TEST(what_lasted_while_others_failed_may_be_why) {
    stall(10, "filer1", "begin");
    lose_peer(100, "b", 1);
    stall(1200, "filer1", "end");
    says(judge(true),
         "\"headline\":\"Not explained: a: nfs: server not responding (over after 19 min "
         "50 s) (and 1 more sign of a failure)\"");
}
END_TEST

// What was well before, of another node, or another condition, ends nothing.
START_TEST(only_its_own_end_ends_a_state) {
    not_ready(10, "a");
    condition_is(5, "a", "Ready", "True");
    condition_is(75, "b", "Ready", "True");
    condition_is(76, "a", "DiskPressure", "False");
    condition_is(77, "a", "Ready", "False");
    const char *lines = judge(true);
    says_not(lines, "over after");
    says(lines, "\"severity\":\"warning\"");
}
END_TEST

START_TEST(a_state_that_comes_again_is_not_over) {
    condition_is(75, "a", "Ready", "True"); // in whatever order they come
    not_ready(10, "a");
    not_ready(900, "a");
    const char *lines = judge(true);
    says(lines, "Ready is Unknown (over after 1 min 5 s)");
    says(lines,
         "\"headline\":\"Not explained: a: Kubernetes says Ready is Unknown (and 1 more sign "
         "of a failure)\"");
}
END_TEST

START_TEST(a_server_that_answers_again_is_no_failure) {
    stall(10, "filer1", "begin");
    stall(40, "filer1", "end");
    says(judge(true), "a: nfs: server not responding (over after 30.0 s)\"");
    detector_close(&detector);
    setup();
    stall(10, "filer1", "begin");
    stall(40, "filer2", "end");
    const char *lines = judge(true);
    says_not(lines, "over after");
    says_not(lines, "more sign"); // that a server answers is no sign
}
END_TEST

static void health(double seconds, const char *check, const char *gpu, bool healthy) {
    struct event *event = say(seconds, "a", RANK_NONE, OBSERVATION_HEALTH_EVENT);
    add_text(event, FACT_GPU_UUID, gpu);
    add_text(event, FACT_REASON, check);
    add_yes_no(event, FACT_FATAL, !healthy);
    add_yes_no(event, FACT_HEALTHY, healthy);
    ends[event - cluster.events].said.text = slice_of(gpu);
}

START_TEST(a_check_that_passes_again_ends_its_own_failure) {
    health(10, "GpuNvlinkWatch", "GPU-1", false);
    health(70, "GpuNvlinkWatch", "GPU-1", true);
    health(100, "GpuNvlinkWatch", "GPU-2", false);
    const char *lines = judge(true);
    says(lines, "\"headline\":\"Not explained: a: GPU-2 (and 1 more sign of a failure)\"");
    says(lines, "a: GPU-1 (over after 1 min 0 s)");
}
END_TEST

// What the line itself says is not said again.
START_TEST(what_could_not_be_started_is_said_once) {
    struct event *event = say(1, "a", RANK_NONE, OBSERVATION_LAUNCH_FAILED);
    add_text(event, FACT_PROCESS, "./heat");
    add_text(event, FACT_ERROR, "No such file or directory");
    ends[0].said.text = slice_of(_i == 0 ? "it could not access"
                                         : "execvp error on file ./heat (No such file or "
                                           "directory)");
    says(judge(true), _i == 0 ? "a: it could not access ./heat: No such file or directory\""
                              : "a: execvp error on file ./heat (No such file or directory)\"");
}
END_TEST

// The sentence is in the evidence as what another piece says already.
static void repeats(const char *lines, const char *sentence) {
    says(lines, sentence);
    const char *mark = strstr(strstr(lines, sentence), "\"repeats\":true");
    ck_assert_msg(mark != NULL && mark < strchr(strstr(lines, sentence), '}'),
                  "\"%s\" repeats nothing: %s", sentence, lines);
}

// A process that its launcher tells of, with local rank 1.
static struct event *exits(double seconds, const char *node, int32_t rank,
                           enum observation_kind kind, int64_t pid) {
    struct event *event = say(seconds, node, rank, kind);
    if (pid >= 0)
        add(event, FACT_PID, pid);
    add(event, FACT_LOCAL_RANK, 1);
    add(event, FACT_EXIT_CODE, 1);
    return event;
}

START_TEST(a_process_is_told_once_by_its_best_name) {
    exits(4, NULL, RANK_NONE, OBSERVATION_LAUNCHER_FAILED, 4711);
    exits(5, "a", 5, OBSERVATION_LAUNCHER_SUMMARY, 4711);
    exits(6, "a", RANK_NONE, OBSERVATION_LAUNCHER_FAILED, -1);
    const char *lines = judge(true);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines,
         "\"headline\":\"Not explained: rank 5 on a: its launcher says that it left with "
         "exit code 1\"");
    repeats(lines, "\"local rank 1: its launcher says that it left with exit code 1\"");
    repeats(lines, "\"local rank 1 on a: its launcher says that it left with exit code 1\"");
}
END_TEST

static const struct {
    const char *what;
    const char *node, *job;
    int64_t pid;
    double seconds;
} OTHERS[] = {
    {"another machine", "b", "gpt", 4711, 6},
    {"another job", "a", "llama", 4711, 6},
    {"another process", "a", "gpt", 4712, 6},
    {"a later start, of which no pid is known", "a", "gpt", -1, 3000},
};

START_TEST(another_process_is_no_repeat) {
    struct event *event = exits(5, "a", 5, OBSERVATION_LAUNCHER_SUMMARY, 4711);
    event->job = intern(SLICE("gpt"));
    event = exits(OTHERS[_i].seconds, OTHERS[_i].node, RANK_NONE, OBSERVATION_LAUNCHER_FAILED,
                  OTHERS[_i].pid);
    event->job = intern(slice_of(OTHERS[_i].job));
    says_not(judge(true), "\"repeats\":true");
}
END_TEST

START_TEST(a_pid_without_a_node_is_of_its_file) {
    exits(5, "a", 5, OBSERVATION_LAUNCHER_SUMMARY, 53);
    struct event *event = exits(6, NULL, RANK_NONE, OBSERVATION_LAUNCHER_FAILED, 53);
    event->source = intern(SLICE("other.log"));
    says_not(judge(true), "\"repeats\":true");
    detector_close(&detector);
    setup();
    exits(5, "a", 5, OBSERVATION_LAUNCHER_SUMMARY, 53);
    exits(5, "b", 7, OBSERVATION_LAUNCHER_SUMMARY, 53);
    exits(6, NULL, RANK_NONE, OBSERVATION_LAUNCHER_FAILED, 53); // of one of them
    says_not(judge(true), "\"repeats\":true");
}
END_TEST

START_TEST(an_exception_and_its_error_file_are_one) {
    struct event *event = say(5, "a", 5, OBSERVATION_COLLECTIVE_TIMEOUT);
    add(event, FACT_LOCAL_RANK, 1);
    add_text(event, FACT_EXCEPTION, "torch.distributed.DistBackendError");
    add_text(event, FACT_MESSAGE, "Timed out");
    event = say(6, "a", RANK_NONE, OBSERVATION_ERROR_FILE);
    ends[1].said.text = slice_of("DistBackendError: Timed out");
    add(event, FACT_LOCAL_RANK, 1);
    add_text(event, FACT_EXCEPTION, "DistBackendError");
    add_text(event, FACT_MESSAGE, "Timed out");
    const char *lines = judge(true);
    says(lines,
         "\"headline\":\"Not explained: rank 5 on a: raised "
         "torch.distributed.DistBackendError: Timed out\"");
    repeats(lines, "\"local rank 1 on a: left an error file: DistBackendError: Timed out\"");
}
END_TEST

START_TEST(an_error_file_of_a_victim_tells_less) {
    raise_in(5, "a", 0, "RuntimeError", "Connection closed by peer", true);
    raise_in(6, "a", 1, "KeyError", "'label'", false);
    ends[0].said.text = slice_of("RuntimeError: Connection closed by peer");
    ends[1].said.text = slice_of("KeyError: 'label'");
    says(judge(true),
         "\"headline\":\"Not explained: rank 1 on a: left an error file: KeyError: "
         "'label' (and 1 more sign of a failure)\"");
}
END_TEST

START_TEST(a_kill_that_two_logs_date_differently_is_told_once) {
    kill_in(5, "a", 10);
    kill_in(1000, "a", 10); // by times since the boot
    says(judge(true),
         "\"headline\":\"Not explained: a: the kernel killed python3 (pid 10) because "
         "memory ran out\"");
}
END_TEST

START_TEST(the_peer_that_was_lost_is_named) {
    struct event *event = say(1, "a", 0, OBSERVATION_PEER_LOST);
    add_text(event, FACT_PEER, "gpu-b02");
    ends[0].said.text =
        slice_of("a peer process has unexpectedly disconnected.\n  Peer host: gpu-b02");
    says(judge(true),
         "rank 0 on a: a peer process has unexpectedly disconnected. (it lost gpu-b02)");
}
END_TEST

START_TEST(what_ended_a_chain_of_exceptions_is_said) {
    struct event *event = say(1, NULL, 0, OBSERVATION_EXCEPTION);
    add_text(event, FACT_EXCEPTION, "DistNetworkError");
    add_text(event, FACT_LAST_EXCEPTION, "RendezvousConnectionError");
    add_text(event, FACT_LAST_MESSAGE, "The connection to the C10d store has failed.");
    add_text(event, FACT_MESSAGE, "failed to recv, got 0 bytes");
    says(judge(true),
         "rank 0: raised DistNetworkError: failed to recv, got 0 bytes; then "
         "RendezvousConnectionError: The connection to the C10d store has failed.");
}
END_TEST

static const struct {
    enum observation_kind kind;
    const char *node;
    int64_t signal;
    enum observation_kind beside; // OBSERVATION_NONE: nothing
    const char *restart;
} RESTARTS[] = {
    {OBSERVATION_SLURM_CANCELLED, NULL, -1, OBSERVATION_NONE, "stopped"},
    {OBSERVATION_SLURM_CANCELLED, NULL, -1, OBSERVATION_SLURM_TASK_EXIT, "stopped"},
    {OBSERVATION_SLURM_CANCELLED, NULL, -1, OBSERVATION_PEER_CLOSED, "stopped"},
    {OBSERVATION_SLURM_CANCELLED, NULL, -1, OBSERVATION_EXCEPTION, "unknown"},
    {OBSERVATION_SLURM_CANCELLED, NULL, -1, OBSERVATION_NCCL_ERROR, "unknown"},
    {OBSERVATION_LAUNCHER_FAILED, "a", 15, OBSERVATION_NONE, "stopped"},
    {OBSERVATION_LAUNCHER_FAILED, "a", 9, OBSERVATION_NONE, "unknown"},
    {OBSERVATION_LAUNCHER_FAILED, "a", 9, OBSERVATION_LAUNCHER_TOLD_TO_STOP, "unknown"},
    {OBSERVATION_LAUNCH_FAILED, NULL, -1, OBSERVATION_NONE, "in_vain"},
    {OBSERVATION_LAUNCH_FAILED, "a", -1, OBSERVATION_NONE, "elsewhere"},
    {OBSERVATION_LAUNCH_FAILED, NULL, -1, OBSERVATION_SLURM_CANCELLED, "in_vain"},
    {OBSERVATION_OOM_KILL, "a", -1, OBSERVATION_NONE, "in_vain"},
    {OBSERVATION_FS_ERROR, "a", -1, OBSERVATION_NONE, "elsewhere"},
    {OBSERVATION_NFS_STALL, "a", -1, OBSERVATION_NONE, "unknown"},
};

START_TEST(whether_a_restart_helps) {
    char said[64];
    struct event *event = say(1, RESTARTS[_i].node, RANK_NONE, RESTARTS[_i].kind);
    if (RESTARTS[_i].signal >= 0)
        add(event, FACT_SIGNAL, RESTARTS[_i].signal);
    if (RESTARTS[_i].beside != OBSERVATION_NONE)
        say(2, NULL, 3, RESTARTS[_i].beside);
    snprintf(said, sizeof said, "\"culprit.restart\":\"%s\"", RESTARTS[_i].restart);
    says(judge(true), said);
}
END_TEST

// A line of a process that does not say its rank.
static struct event *cry(double seconds, enum observation_kind kind, const char *text) {
    struct event *event = say(seconds, NULL, RANK_NONE, kind);
    event->source = intern(SLICE("console.log"));
    ends[event - cluster.events].said.text = slice_of(text);
    return event;
}

static void meet(int32_t rank, const char *where) {
    struct event *event = say(1, NULL, rank, OBSERVATION_JOB_LAYOUT);
    add_text(event, FACT_MEETING, where);
}

START_TEST(the_other_end_that_words_name_is_a_suspect) {
    static const struct {
        const char *text, *peer;
    } WAYS[] = {
        {"socketStartConnect: Connect to 10.33.4.2<48213> failed : No route to host", "10.33.4.2"},
        {"NET/IB : Got completion from peer 10.1.2.9<44206> with status=12", "10.1.2.9"},
        {"Connection closed by remote peer gpu-b.local<5001>", "gpu-b.local"},
        {"The client socket has timed out while trying to connect to (gpu-a07, 29500).", "gpu-a07"},
        {"The client socket has failed to connect to [gpu-a07]:29500 (errno: 113).", "gpu-a07"},
        {"TCP client failed to connect/validate to host 10.0.0.7:29500 - retrying", "10.0.0.7"},
        {"Connection closed by peer [::ffff:10.0.1.5]:32116", "10.0.1.5"},
        {"connect [fd00::7]:32116: Connection refused", "fd00::7"},
        {"failed to connect to all addresses; last error: ipv4:10.0.0.8:8476: refused", "10.0.0.8"},
        {"connect [127.0.1.1]:32116: Connection refused", NULL},
        {"while trying to connect to (localhost, 29500).", NULL},
        {"Connect to 10.33.4.2", NULL},
    };
    cry(5, OBSERVATION_PEER_CLOSED, WAYS[_i].text);
    const char *lines = judge(true);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "{\"kind\":\"node\",\"name\":\"%s\",\"role\":\"suspect\"}",
             WAYS[_i].peer == NULL ? "" : WAYS[_i].peer);
    if (WAYS[_i].peer == NULL)
        says_not(lines, "suspect");
    else
        says(lines, wanted);
}
END_TEST

START_TEST(two_other_ends_or_one_that_speaks_are_none) {
    cry(5, OBSERVATION_PEER_CLOSED, "Connection closed by peer [10.0.1.5]:32116");
    cry(6, OBSERVATION_PEER_CLOSED, "Connection closed by peer [10.0.1.5]:32117");
    says(judge(true), "\"name\":\"10.0.1.5\"");
    struct event *event = say(7, "10.0.1.5", 3, OBSERVATION_COLLECTIVE_TIMEOUT);
    ends[event - cluster.events].said.text = SLICE("timed out");
    says_not(judge(true), "\"name\":\"10.0.1.5\",\"role\":\"suspect\"");
    cry(8, OBSERVATION_NCCL_NET_ERROR, "Got completion from peer 10.0.1.6<44206>");
    says_not(judge(true), "\"role\":\"suspect\"");
}
END_TEST

START_TEST(a_try_that_failed_is_a_sign_beside_others) {
    cry(5, OBSERVATION_CONNECT_FAILED, "cannot connect to [gpu-a07]:29500 (errno: 113).");
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 0);
    cry(9, OBSERVATION_RENDEZVOUS_TIMEOUT, "timed out");
    const char *lines = judge(true);
    says(lines, "Not explained: console.log: timed out (and 1 more sign of a failure)");
    says(lines, "\"name\":\"gpu-a07\",\"role\":\"suspect\"");
    says(lines, "errno: 113");
}
END_TEST

START_TEST(who_looks_elsewhere_for_its_job_is_named) {
    static const char *const PLACES[] = {"gpu-a:8490", "gpu-a:8490", "gpu-a.cluster:8490",
                                         "gpu-a:9999", "gpu-b:8490"};
    for (int32_t rank = 0; rank <= _i; rank++)
        meet(rank, PLACES[rank]);
    cry(9, OBSERVATION_STORE_LOST, "deadline exceeded")->rank = 1;
    const char *lines = judge(true);
    if (_i != 3) { // of one place, or two of them are elsewhere
        says_not(lines, "looks for its job");
        return;
    }
    says(lines, "Not explained: rank 3: looks for its job at gpu-a:9999, all others at gpu-a");
    says(lines, "{\"kind\":\"rank\",\"name\":\"3\",\"role\":\"suspect\"}");
    says(lines, "Give it the address and port");
}
END_TEST

START_TEST(where_a_job_meets_is_the_other_end_that_nobody_names) {
    meet(1, "worker-0:23456");
    meet(2, "worker-0:23456");
    judge(true);
    ck_assert_uint_eq(detector.verdict_count, 0);
    cry(9, OBSERVATION_PEER_CLOSED, "RuntimeError: Connection reset by peer");
    const char *lines = judge(true);
    says(lines, "Connection reset by peer; its job meets at worker-0\"");
    says(lines, "\"name\":\"worker-0\",\"role\":\"suspect\"");
    cry(10, OBSERVATION_COLLECTIVE_TIMEOUT, "timed out");
    says_not(judge(true), "\"name\":\"worker-0\",\"role\":\"suspect\"");
}
END_TEST

START_TEST(how_many_of_how_many_joined_is_said) {
    struct event *event = say(1, NULL, RANK_NONE, OBSERVATION_RENDEZVOUS_TIMEOUT);
    add(event, FACT_TASK, 3);
    add_text(event, FACT_EXCEPTION, "DistStoreError");
    add(event, FACT_JOINED, 4);
    add(event, FACT_EXPECTED, 8);
    says(judge(true), "Not explained: task 3: only 4 of 8 joined: raised DistStoreError");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("unexplained");
    TCase *tcase = tcase_create("cases");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_failed_is_named_in_the_sentence);
    tcase_add_test(tcase, a_watchdog_that_gave_up_is_a_sign);
    tcase_add_test(tcase, what_is_no_failure_is_no_sign);
    tcase_add_test(tcase, a_verdict_of_that_time_and_place_explains);
    tcase_add_test(tcase, no_verdict_of_other_machines_jobs_or_times_does);
    tcase_add_test(tcase, a_note_that_names_the_event_explains_it);
    tcase_add_test(tcase, what_the_job_survives_is_no_failure);
    tcase_add_test(tcase, a_process_dies_once_whatever_the_clocks);
    tcase_add_test(tcase, what_ranks_say_may_follow_from_any_machine);
    tcase_add_test(tcase, a_failure_is_told_once_by_its_most_telling_sign);
    tcase_add_test(tcase, repeats_are_one_and_gaps_part_failures);
    tcase_add_test(tcase, the_first_ten_are_told);
    tcase_add_test(tcase, signs_without_a_job_go_to_the_only_one);
    tcase_add_test(tcase, what_has_no_time_is_of_the_first_failure);
    tcase_add_test(tcase, it_ends_when_it_is_explained);
    tcase_add_test(tcase, the_peer_that_was_lost_is_named);
    tcase_add_test(tcase, what_ended_a_chain_of_exceptions_is_said);
    tcase_add_loop_test(tcase, whether_a_restart_helps, 0, sizeof RESTARTS / sizeof *RESTARTS);
    tcase_add_loop_test(tcase, the_other_end_that_words_name_is_a_suspect, 0, 12);
    tcase_add_test(tcase, two_other_ends_or_one_that_speaks_are_none);
    tcase_add_test(tcase, a_try_that_failed_is_a_sign_beside_others);
    tcase_add_loop_test(tcase, who_looks_elsewhere_for_its_job_is_named, 1, 5);
    tcase_add_test(tcase, where_a_job_meets_is_the_other_end_that_nobody_names);
    tcase_add_test(tcase, how_many_of_how_many_joined_is_said);
    tcase_add_test(tcase, a_node_that_is_ready_again_is_told_as_over);
    tcase_add_test(tcase, what_is_over_comes_after_what_is_not);
    tcase_add_test(tcase, what_lasted_while_others_failed_may_be_why);
    tcase_add_test(tcase, only_its_own_end_ends_a_state);
    tcase_add_test(tcase, a_state_that_comes_again_is_not_over);
    tcase_add_test(tcase, a_server_that_answers_again_is_no_failure);
    tcase_add_test(tcase, a_check_that_passes_again_ends_its_own_failure);
    tcase_add_test(tcase, a_process_is_told_once_by_its_best_name);
    tcase_add_loop_test(tcase, another_process_is_no_repeat, 0, sizeof OTHERS / sizeof *OTHERS);
    tcase_add_test(tcase, a_pid_without_a_node_is_of_its_file);
    tcase_add_test(tcase, an_exception_and_its_error_file_are_one);
    tcase_add_test(tcase, an_error_file_of_a_victim_tells_less);
    tcase_add_test(tcase, a_kill_that_two_logs_date_differently_is_told_once);
    tcase_add_loop_test(tcase, what_could_not_be_started_is_said_once, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// first_exit: kills inside containers, Xids of a rank's GPU, what Slurm and Kubernetes say of
// tasks, pods and nodes, and how soon an exit is named.
#include "cli/component_list.h"
#include "tests/processors/exit_lines.h"

static void setup(void) {
    fixture_begin(&processor_first_exit);
}

// -- out of memory in a container -----------------------------------------------------------------

static struct event *in_pod(double seconds, const char *node, int32_t rank, int64_t pid,
                            const char *pod) {
    struct event *event = place_of(seconds, node, rank, pid);
    struct rank_place *place = (struct rank_place *)(uintptr_t)event->place;
    place->namespace = SLICE("train");
    place->pod = slice_of(pod);
    return event;
}

// A rank in each of two pods on a node; the pids are those of their containers.
static void two_pods(void) {
    in_pod(0, "a", 0, 7, "w-0");
    in_pod(0, "a", 1, 40110, "w-1");
    cluster_pod(&cluster, 1, "w-0", "a");
    cluster_pod(&cluster, 1, "w-1", "a");
}

// The line with the control group, whose pid is the host's. NULL: the line without.
static void kernel_kill(double seconds, int64_t pid, const char *container, const char *uid) {
    struct event *event = say(seconds, "a", RANK_NONE, OBSERVATION_OOM_KILL);
    add(event, FACT_PID, pid);
    if (container != NULL)
        add_text(event, FACT_CONTAINER_ID, container);
    if (uid != NULL)
        add_text(event, FACT_UNIT_UID, uid);
}

START_TEST(a_kill_in_a_container_names_pod_and_rank) {
    two_pods();
    // Rank 1 has by chance the pid in its container that the other has on the host.
    kernel_kill(60, 40110, "c0", "uid-w-0");
    kernel_kill(60, 40110, NULL, NULL);
    lose_peer(61, "a", 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"host_oom\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"pod\",\"name\":\"train/w-0\",\"role\":\"suspect\"}");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"victim\"}");
    says(lines, "Rank 0 on a ended first: it was killed because memory ran out");
    says(lines, "\"confidence\":90");
}
END_TEST

START_TEST(a_kill_in_another_pod_is_none_of_the_job) {
    two_pods();
    kernel_kill(60, 40110, "c9", "uid-other");
    kernel_kill(60, 40110, NULL, NULL);
    ck_assert_str_eq(run(), "");
}
END_TEST

static struct event *ends_in_pod(double seconds, const char *pod, const char *container,
                                 int64_t code, const char *reason) {
    struct event *event = say(seconds, "a", RANK_NONE, OBSERVATION_CONTAINER_TERMINATED);
    add_text(event, FACT_POD, pod);
    add_text(event, FACT_CONTAINER, "main");
    add_text(event, FACT_CONTAINER_ID, container);
    add(event, FACT_EXIT_CODE, code);
    add_text(event, FACT_REASON, reason);
    return event;
}

// Docker's control groups say the container only, and its end says whose it was.
// The pod that was said last in event time counts, of two at one moment the greater name.
START_TEST(where_a_process_runs_does_not_depend_on_order) {
    static const struct {
        double seconds;
        const char *pod;
    } told[] = {{3, "w-0"}, {1, "w-9"}, {3, "w-00"}};
    for (int i = 0; i < 3; i++) {
        int at = (i * (_i < 3 ? 1 : 2) + _i) % 3; // each order
        in_pod(told[at].seconds, "a", 0, 7, told[at].pod);
    }
    in_pod(0, "a", 1, 40110, "w-1");
    cluster_pod(&cluster, 1, "w-00", "a");
    ends_in_pod(60, "train/w-00", "c0", 137, "OOMKilled");
    lose_peer(61, "a", 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"pod\",\"name\":\"train/w-00\",\"role\":\"suspect\"}");
}
END_TEST

START_TEST(a_kill_is_joined_by_the_container_alone) {
    in_pod(0, "a", 0, 7, "w-0");
    in_pod(0, "a", 1, 7, "w-1");
    ends_in_pod(61, "train/w-1", "c1", 137, "Error");
    kernel_kill(60, 40110, "c1", NULL);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"host_oom\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
}
END_TEST

// A pid of the host that a rank in a pod has as well is that rank's only where it was seen to end:
// some pods share the pids of their host.
START_TEST(a_pid_of_the_host_is_no_pid_of_a_pod) {
    in_pod(0, "a", 0, 7, "w-0");
    in_pod(0, "b", 1, 7, "w-1");
    kernel_kill(60, 7, NULL, NULL);
    lose_peer(61, "b", 1);
    if (_i == 1)
        leaves(60.3, "a", 7, FACT_SIGNAL, 9);
    const char *lines = run();
    if (_i == 1)
        says(lines, "\"kind\":\"host_oom\"");
    else
        says_not(lines, "host_oom");
}
END_TEST

// Two ranks and their launcher in one pod.
static void pod_of_two(void) {
    in_pod(0, "a", 0, 101, "w-0");
    in_pod(0, "a", 1, 102, "w-0");
    cluster_pod(&cluster, 1, "w-0", "a");
    kernel_kill(60, 40110, "c0", "uid-w-0");
    ends_in_pod(63, "train/w-0", "c0", 1, "Error");
}

START_TEST(of_several_ranks_it_is_the_one_that_was_killed) {
    pod_of_two();
    leaves(60.2, "a", 102, FACT_SIGNAL, 9);
    tell_to_end(60.3, "a", 101);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"host_oom\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
    says_not(lines, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"culprit\"}");
}
END_TEST

// Two jobs follow one another on a node; what says pods says no pids, and the other way round.
START_TEST(pods_of_an_earlier_job_are_not_mixed_up) {
    for (int job = 0; job < 2; job++)
        for (int32_t rank = 0; rank < 2; rank++) {
            struct event *pod = in_pod(30 * job, "a", rank, -1, job == 0 ? "w-0" : "x-0");
            struct event *pid = place_of(30 * job, "a", rank, 101 + 100 * job + rank);
            pod->job = pid->job = intern(job == 0 ? SLICE("first") : SLICE("second"));
        }
    cluster_pod(&cluster, 1, "w-0", "a");
    cluster_pod(&cluster, 31, "x-0", "a");
    kernel_kill(60, 40110, "c0", "uid-x-0");
    leaves(60.2, "a", 202, FACT_SIGNAL, 9);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"job_id\":\"second\"");
    says(lines, "\"kind\":\"host_oom\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
    says(lines, "{\"kind\":\"pod\",\"name\":\"train/x-0\",\"role\":\"suspect\"}");
}
END_TEST

START_TEST(of_several_ranks_none_is_guessed) {
    pod_of_two();
    const char *lines = run();
    says(lines, "\"kind\":\"host_oom\"");
    says(lines, "{\"kind\":\"pod\",\"name\":\"train/w-0\",\"role\":\"culprit\"}");
    says_not(lines, "\"kind\":\"rank\",\"name\":\"0\",\"role\":\"culprit\"");
    says_not(lines, "\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"");
}
END_TEST

// -- Xids -----------------------------------------------------------------------------------------

static const struct {
    uint32_t code;
    double seconds; // the CUDA error is raised at 100
    const char *gpu;
    const char *role; // NULL: it is no evidence
} XIDS[] = {
    {31, 99, "0000:1b:00", "cause"},   {13, 41, "0000:1b:00", "cause"},
    {43, 103, "0000:1b:00", "cause"},  {45, 100, "0000:1b:00", "cause"},
    {79, 98, "0000:1b:00", "context"}, {31, 39, "0000:1b:00", NULL},
    {31, 106, "0000:1b:00", NULL},     {31, 99, "0000:9b:00", NULL},
};

static void cuda_error(double seconds, const char *node, int32_t rank) {
    struct event *event = say(seconds, node, rank, OBSERVATION_CUDA_ERROR);
    add_text(event, FACT_EXCEPTION, "torch.AcceleratorError");
    add_text(event, FACT_MESSAGE, "CUDA error: an illegal memory access was encountered");
}

START_TEST(an_xid_goes_with_the_cuda_error_of_its_rank) {
    char want[64];
    start_job(0, 100);
    for (uint32_t i = 0; i < 4; i++)
        ends[i].place.address = node_pci(i % 2 == 0 ? "0000:1b:00" : "0000:29:00");
    cuda_error(100, "b", 2);
    leaves(100.5, "b", 102, FACT_SIGNAL, 6);
    lose_peer(101, "a", 0);
    node_xid(&cluster, XIDS[_i].seconds, "b", XIDS[_i].gpu, XIDS[_i].code, "Ch 00000008");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"cuda_error\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
    says_not(lines, "\"kind\":\"gpu\"");
    if (XIDS[_i].role == NULL) {
        says_not(lines, "xid:");
        return;
    }
    snprintf(want, sizeof want, "\"nvidia.xid.code\":\"%u\"", XIDS[_i].code);
    says(lines, want);
    const char *xid = strstr(lines, "xid:b:0000:1b:00:");
    ck_assert(xid != NULL);
    snprintf(want, sizeof want, "\"role\":\"%s\"", XIDS[_i].role);
    ck_assert(strncmp(strstr(xid, "\"role\":"), want, strlen(want)) == 0);
    if (strcmp(XIDS[_i].role, "cause") == 0)
        says(lines, "Look for the error in the program of rank 2 on b");
    else
        says_not(lines, "Look for the error in the program");
}
END_TEST

// The rank map says the UUID, a sample which address that is.
START_TEST(an_xid_is_joined_by_the_uuid) {
    start_job(0, 100);
    ends[2].place.uuid = SLICE("GPU-a");
    node_sample(&cluster, 10, "b", "0000:1b:00", _i == 0 ? "GPU-a" : "GPU-b");
    cuda_error(100, "b", 2);
    leaves(100.5, "b", 102, FACT_SIGNAL, 6);
    node_xid(&cluster, 99, "b", "0000:1b:00", 31, "");
    if (_i == 0)
        says(run(), "xid:b:0000:1b:00:31:");
    else
        says_not(run(), "xid:");
}
END_TEST

// Without a rank map of GPUs the driver's pid tells; not of a process in a container.
START_TEST(an_xid_is_joined_by_its_pid) {
    if (_i == 0)
        start_job(0, 100);
    else
        in_pod(0, "b", 2, 102, "w-2");
    cuda_error(100, "b", 2);
    leaves(100.5, "b", 102, FACT_SIGNAL, 6);
    node_xid(&cluster, 99, "b", "0000:1b:00", 31, "")->pid = 102;
    node_xid(&cluster, 99, "b", "0000:29:00", 31, "")->pid = 4711;
    const char *lines = run();
    says_not(lines, "0000:29:00");
    if (_i == 0)
        says(lines, "xid:b:0000:1b:00:31:");
    else
        says_not(lines, "xid:");
}
END_TEST

// -- Slurm ----------------------------------------------------------------------------------------

static struct event *tasks(const char *host, const char *list, enum fact_key key, int64_t value) {
    struct event *event = say(200, host, RANK_NONE, OBSERVATION_SLURM_TASK_EXIT);
    event->timeless = true;
    add_text(event, FACT_TASKS, list);
    if (key != FACT_KEY_COUNT)
        add(event, key, value);
    return event;
}

START_TEST(each_task_of_a_list_ended) {
    char want[80];
    tasks("n7", "3,5-7", FACT_SIGNAL, 9);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    for (int rank = 0; rank < 9; rank++) {
        snprintf(want, sizeof want, "{\"kind\":\"rank\",\"name\":\"%d\",\"role\":\"suspect\"}",
                 rank);
        if (rank == 3 || (rank >= 5 && rank <= 7))
            says(lines, want);
        else
            says_not(lines, want);
    }
}
END_TEST

// srun prints in the order in which it sees the ends.
START_TEST(the_first_line_of_srun_is_the_first_end) {
    tasks("n7", "8-15", FACT_EXIT_CODE, 1)->position = 20;
    tasks("n6", "3", FACT_EXIT_CODE, 7)->position = 10;
    tasks(NULL, "0-2,4-7", FACT_SIGNAL, 9)->position = 30;
    const char *lines = run();
    says(lines, "{\"kind\":\"rank\",\"name\":\"3\",\"role\":\"culprit\"}");
    says(lines, "Rank 3 on n6 ended first: it left with exit code 7");
    says_not(lines, "{\"kind\":\"rank\",\"name\":\"8\",\"role\":\"suspect\"}");
}
END_TEST

// Where launchers start the ranks, a task is a launcher, and says nothing of the rank of its
// number.
START_TEST(tasks_of_launchers_are_no_ranks) {
    start_job(0, 100);
    raise_in(60, "b", 2, "IndexError", "index out of range", false);
    leaves(60.7, "b", 102, FACT_EXIT_CODE, 1);
    tasks("b", "1", FACT_EXIT_CODE, 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
    says_not(lines, "slurm_task_exit");
}
END_TEST

START_TEST(ranks_that_are_elsewhere_are_no_tasks) {
    start_job(0, 100);
    tasks("b", "1", FACT_EXIT_CODE, 1); // rank 1 runs on a
    says_not(run(), "\"name\":\"1\"");
}
END_TEST

START_TEST(a_list_that_never_ends_is_bounded) {
    tasks("n7", "0-999999999", FACT_SIGNAL, 9);
    leaves(60, "n8", 5, FACT_SIGNAL, 9);
    run();
    ck_assert_uint_eq(detector.verdict_count, 1);
}
END_TEST

static struct event *cancelled(double seconds, const char *reason) {
    struct event *event = say(seconds, NULL, RANK_NONE, OBSERVATION_SLURM_CANCELLED);
    add_text(event, FACT_REASON, reason);
    ends[event - cluster.events].said.time_slack_ns = 1000000000;
    return event;
}

static void sacct(double seconds, const char *node, const char *state) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_SLURM_STATE);
    add_text(event, FACT_STATE, state);
    ends[event - cluster.events].said.time_slack_ns = 1000000000;
}

static void told(double seconds, const char *node) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_LAUNCHER_TOLD_TO_STOP);
    add(event, FACT_PID, 50);
    add(event, FACT_SIGNAL, 15);
}

static const struct {
    const char *reason, *state, *kind, *says;
} STOPS[] = {
    {"TIME LIMIT", "TIMEOUT", "time_limit", "The job reached its time limit"},
    {NULL, "TIMEOUT", "time_limit", "The job reached its time limit"},
    {NULL, "DEADLINE", "time_limit", "The job reached its time limit"},
    {"PREEMPTION", "PREEMPTED", "preempted", "The job was preempted by Slurm"},
    {NULL, "PREEMPTED", "preempted", "The job was preempted by Slurm"},
    {"JOB REQUEUE", NULL, "preempted", "The job was requeued by Slurm"},
    {"NODE FAILURE", NULL, "node_lost", "The job lost a node"},
};

// The lines of step, job and sacct are one end; launchers and ranks ended because of it.
START_TEST(what_slurm_stopped_is_told_once) {
    start_job(0, 100);
    if (STOPS[_i].reason != NULL) {
        cancelled(60, STOPS[_i].reason);
        cancelled(60, STOPS[_i].reason);
        told(60.4, "a");
        told(60.4, "b");
        raise_in(60, "a", 1, "KeyboardInterrupt", "", false);
    }
    if (STOPS[_i].state != NULL) {
        sacct(61, "a", STOPS[_i].state);
        sacct(61, NULL, STOPS[_i].state);
    }
    const char *lines = run();
    char want[64];
    ck_assert_uint_eq(detector.verdict_count, 1);
    snprintf(want, sizeof want, "\"kind\":\"%s\"", STOPS[_i].kind);
    says(lines, want);
    says(lines, STOPS[_i].says);
    says_not(lines, "\"role\":\"culprit\"");
    says_not(lines, "at about one moment");
}
END_TEST

START_TEST(an_end_before_the_limit_was_the_first) {
    start_job(0, 100);
    raise_in(50, "a", 1, "ValueError", "bad record", false);
    cancelled(60, "TIME LIMIT");
    says(run(), "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
}
END_TEST

static void node_failure(const char *host, const char *hosts) {
    struct event *event = say(200, host, RANK_NONE, OBSERVATION_SLURM_NODE_FAILURE);
    event->timeless = true;
    if (hosts != NULL)
        add_text(event, FACT_HOSTS, hosts);
}

// One line says that a node was lost, the other which.
START_TEST(a_node_that_slurm_lost) {
    start_job(0, 100);
    lose_peer(59, "a", 0);
    cancelled(60, "NODE FAILURE");
    if (_i == 0)
        node_failure("b", NULL);
    else
        sacct(61, "b", "NODE_FAIL");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"node_lost\"");
    says(lines, "{\"kind\":\"node\",\"name\":\"b\",\"role\":\"culprit\"}");
    says(lines, "Node b was lost, and the ranks with it");
    says(lines, "Slurm cancelled it: NODE FAILURE");
}
END_TEST

// Nothing else tells of the node, or the file of the line says that it was read before the start.
START_TEST(a_lost_node_that_only_srun_names) {
    start_job(100, 100);
    lose_peer(159, "a", 0);
    cancelled(160, "NODE FAILURE");
    struct event *event =
        say(_i == 0 ? 200 : 50, _i == 0 ? "c" : "b", RANK_NONE, OBSERVATION_SLURM_NODE_FAILURE);
    event->timeless = true;
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, _i == 0 ? "Node c was lost, and the ranks with it"
                        : "Node b was lost, and the ranks with it");
    says(lines, "Slurm cancelled it: NODE FAILURE");
}
END_TEST

// The controller tells of all nodes of the cluster; and of two jobs it may be either.
START_TEST(a_lost_node_that_may_be_of_another_job) {
    start_job(0, 100);
    struct event *event = say(60, "c", RANK_NONE, OBSERVATION_SLURM_NODE_FAILURE);
    for (uint32_t i = 0; i < 4 && _i == 1; i++)
        cluster.events[i].job = i < 2 ? intern(SLICE("one")) : intern(SLICE("two"));
    event->timeless = _i == 1;
    ck_assert_str_eq(run(), "");
}
END_TEST

START_TEST(a_list_of_nodes_is_each_of_them) {
    node_failure(NULL, "r2-g[09-10,12],login1");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "{\"kind\":\"node\",\"name\":\"r2-g09\",\"role\":\"culprit\"}");
    says(lines, "\"name\":\"r2-g10\"");
    says(lines, "\"name\":\"r2-g12\"");
    says(lines, "\"name\":\"login1\"");
    says_not(lines, "r2-g11");
}
END_TEST

// A launcher's words count as Slurm's do; of a loss that names no node they say nothing.
START_TEST(a_node_that_a_launcher_lost) {
    start_job(0, 100);
    lose_peer(59, "a", 0);
    struct event *killed = say(60, NULL, RANK_NONE, OBSERVATION_KILLED); // its remote shell
    add(killed, FACT_SIGNAL, 9);
    killed->timeless = true;
    struct event *event = say(61, _i == 0 ? "b" : NULL, RANK_NONE, OBSERVATION_NODE_LOST);
    event->timeless = true;
    event = say(61, _i == 0 ? "b" : NULL, RANK_NONE, OBSERVATION_NODE_LOST);
    add(event, FACT_EXIT_CODE, 137);
    event->timeless = true;
    const char *lines = run();
    if (_i == 0) {
        says(lines, "{\"kind\":\"node\",\"name\":\"b\",\"role\":\"culprit\"}");
        says(lines, "Node b was lost, and the ranks with it");
        says(lines,
             "its launcher lost the daemon on it, which was killed by SIGKILL (exit status "
             "137)");
    } else {
        says_not(lines, "node_lost");
    }
}
END_TEST

static const struct {
    const char *cause, *kind, *headline;
} JOB_STOPS[] = {{"time_limit", "time_limit", "The job reached its time limit"},
                 {"memory", "host_oom", "The job was killed because memory ran out"},
                 {"preempted", "preempted", "The job was preempted"},
                 {"cancelled", "preempted", "The job was cancelled from outside"}};

START_TEST(a_job_that_was_stopped) {
    start_job(0, 100);
    add_text(say(60, NULL, RANK_NONE, OBSERVATION_JOB_STOPPED), FACT_CAUSE, JOB_STOPS[_i].cause);
    leaves(61, "b", 102, FACT_EXIT_CODE, 1);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, JOB_STOPS[_i].headline);
    says(lines, JOB_STOPS[_i].kind);
    says_not(lines, "culprit\"}");
}
END_TEST

// The line of the stop stands before that of the task, or behind it.
START_TEST(tasks_that_a_stop_killed) {
    start_job(0, 100);
    for (int i = 0; i < 2; i++) {
        bool is_stop = i == _i;
        struct event *event =
            say(60, is_stop ? NULL : "b", RANK_NONE,
                is_stop ? OBSERVATION_SLURM_CANCELLED : OBSERVATION_SLURM_TASK_EXIT);
        event->timeless = true;
        if (is_stop)
            add_yes_no(event, FACT_VICTIM, true);
        else
            add_text(event, FACT_TASKS, "2");
        if (!is_stop)
            add(event, FACT_SIGNAL, 9);
    }
    const char *lines = run();
    if (_i == 0)
        ck_assert_str_eq(lines, "");
    else
        says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(a_stop_behind_an_end_is_not_the_first) {
    start_job(0, 100);
    for (int i = 0; i < 2; i++) {
        struct event *event = say(60, i == _i ? NULL : "b", RANK_NONE,
                                  i == _i ? OBSERVATION_JOB_STOPPED : OBSERVATION_LAUNCHER_FAILED);
        event->timeless = true;
        if (i == _i) {
            add_text(event, FACT_CAUSE, "cancelled");
        } else {
            add(event, FACT_PID, 102);
            add(event, FACT_EXIT_CODE, 3);
        }
    }
    says(run(), _i == 0 ? "The job was cancelled from outside"
                        : "Rank 2 on b ended first: it left with exit code 3");
}
END_TEST

// Its tasks leave with codes one after another, or srun kills them; a signal that a launcher saw is
// another matter.
START_TEST(codes_of_what_could_not_be_started) {
    start_job(0, 100);
    if (_i == 2) {
        struct event *event = say(60, "b", RANK_NONE, OBSERVATION_SLURM_TASK_EXIT);
        add_text(event, FACT_TASKS, "2");
        add(event, FACT_SIGNAL, 9);
    } else {
        leaves(60, "b", 102, _i == 0 ? FACT_EXIT_CODE : FACT_SIGNAL, _i == 0 ? 2 : 9);
    }
    say(59, NULL, RANK_NONE, OBSERVATION_LAUNCH_FAILED);
    const char *lines = run();
    if (_i != 1)
        ck_assert_str_eq(lines, "");
    else
        says(lines, "{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(memory_that_sacct_tells_of) {
    sacct(61, NULL, "OUT_OF_MEMORY");
    const char *lines = run();
    says(lines, "\"kind\":\"host_oom\"");
    says(lines, "The job was killed because memory ran out");
}
END_TEST

// -- Kubernetes -----------------------------------------------------------------------------------

static void disrupted(double seconds, const char *pod, const char *reason) {
    struct event *event = say(seconds, "b", RANK_NONE, OBSERVATION_POD_DISRUPTION);
    add_text(event, FACT_POD, pod);
    add_text(event, FACT_REASON, reason);
    ends[event - cluster.events].said.time_slack_ns = 1000000000;
}

static void not_ready(double seconds, const char *node, const char *status) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_NODE_CONDITION);
    add_text(event, FACT_STATUS, status);
    add_text(event, FACT_CONDITION, "Ready");
    add_yes_no(event, FACT_BAD, true);
    ends[event - cluster.events].said.time_slack_ns = 1000000000;
}

static void pods_on_two_nodes(void) {
    in_pod(0, "a", 0, 7, "w-0");
    in_pod(0, "b", 1, 7, "w-1");
}

START_TEST(a_pod_that_was_preempted) {
    pods_on_two_nodes();
    disrupted(60, "other/pod", "PreemptionByScheduler");
    if (_i == 0)
        disrupted(60, "train/w-1", "PreemptionByScheduler");
    else
        cluster_event(&cluster, 60, "e1", "Preempted", "w-1", NULL, "Preempted by pod x on node b");
    struct event *event = say(62, "b", RANK_NONE, OBSERVATION_CONTAINER_TERMINATED);
    add_text(event, FACT_POD, "train/w-1");
    add(event, FACT_EXIT_CODE, 1);
    add_text(event, FACT_REASON, "Error");
    lose_peer(63, "a", 0);
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"preempted\"");
    says(lines, "\"severity\":\"warning\"");
    says(lines, "{\"kind\":\"rank\",\"name\":\"1\",\"role\":\"culprit\"}");
    says(lines, "its place was needed for another pod");
    says_not(lines, "other/pod");
}
END_TEST

START_TEST(a_node_that_does_not_answer_the_cluster) {
    pods_on_two_nodes();
    lose_peer(60, "a", 0);
    if (_i == 0)
        not_ready(100, "b", "Unknown");
    else
        cluster_event(&cluster, 100, "e1", "NodeNotReady", "w-1", NULL, "Node is not ready");
    not_ready(100, "z", "Unknown"); // of no rank
    struct event *event = say(110, "b", RANK_NONE, OBSERVATION_CONTAINER_TERMINATED);
    add_text(event, FACT_POD, "train/w-1");
    add(event, FACT_EXIT_CODE, 137);
    add_text(event, FACT_REASON, "ContainerStatusUnknown");
    const char *lines = run();
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(lines, "\"kind\":\"node_lost\"");
    says(lines, "{\"kind\":\"node\",\"name\":\"b\",\"role\":\"culprit\"}");
    says(lines, "Node b stopped answering the cluster, and the ranks with it");
    says(lines, "\"confidence\":75");
    says_not(lines, "\"name\":\"z\"");
}
END_TEST

START_TEST(a_silent_kubelet_alone_is_no_end) {
    pods_on_two_nodes();
    not_ready(100, "b", "Unknown");
    ck_assert_str_eq(run(), "");
}
END_TEST

// Minutes later the job is stopped: the ranks of the node are there to be sent a signal, or
// somebody says that he stopped it.
START_TEST(a_silent_kubelet_before_a_stop_is_no_end) {
    pods_on_two_nodes();
    not_ready(100, "b", "Unknown");
    for (int i = 0; i < (_i == 2 ? 1 : 2); i++) {
        struct event *event = say(340, i == 0 ? "a" : "b", i, OBSERVATION_LAUNCHER_SIGNAL);
        add(event, FACT_SIGNAL, 15);
    }
    if (_i > 0)
        lose_peer(341, "a", 0); // as they all ended
    if (_i == 2)
        add(say(339, "a", RANK_NONE, OBSERVATION_LAUNCHER_TOLD_TO_STOP), FACT_SIGNAL, 15);
    says_not(run(), "node_lost");
}
END_TEST

static const struct {
    const char *reason, *says;
} LOSSES[] = {{"NodeLost", "Node b was lost"},          {"DeletionByPodGC", "Node b was lost"},
              {"NodeShutdown", "Node b was shut down"}, {"Terminated", "Node b was shut down"},
              {"EvictionByEvictionAPI", NULL}, // pod_evicted tells of it
              {"DeletionByTaintManager", NULL}};

START_TEST(what_the_cluster_says_of_a_pod_of_a_lost_node) {
    pods_on_two_nodes();
    disrupted(60, "train/w-1", LOSSES[_i].reason);
    lose_peer(61, "a", 0);
    const char *lines = run();
    if (LOSSES[_i].says != NULL)
        says(lines, LOSSES[_i].says);
    else
        says_not(lines, "exit:train/w-1:pod_disruption");
}
END_TEST

// -- time, order, state ---------------------------------------------------------------------------

// An exit is named at the first evaluation behind its last line; nothing waits for a silence.
START_TEST(an_exit_is_named_within_five_seconds) {
    start_job(0, 100);
    if (_i == 0) {
        raise_in(60, "b", 2, "IndexError", "index out of range", false);
    } else if (_i == 1) {
        leaves(60.5, "b", 102, FACT_SIGNAL, 9);
    } else {
        kernel_kill(60, 101, NULL, NULL);
    }
    double last = _i == 1 ? 60.5 : 60;
    uint32_t count = cluster.count;
    detector_start(&detector);
    detector_feed(&detector, cluster.events, count);
    detector_judge(&detector, cluster_time(last - 2), false);
    detector_judge(&detector, cluster_time(last - 1), false);
    ck_assert_uint_eq(detector.verdict_count, 0);
    detector.newest_ns = cluster_time(last + 5);
    detector_judge(&detector, cluster_time(last + 5), false);
    ck_assert_uint_eq(detector.verdict_count, 1);
    says(detector_lines(&detector), "ended first");
}
END_TEST

static void one_of_everything(void) {
    two_pods();
    kernel_kill(60, 40110, "c0", "uid-w-0");
    kernel_kill(60, 40110, NULL, NULL);
    ends_in_pod(61, "train/w-0", "c0", 137, "OOMKilled");
    lose_peer(61, "a", 1);
    node_xid(&cluster, 50, "a", "0000:1b:00", 31, "")->pid = 3;
    not_ready(300, "a", "Unknown");
    disrupted(310, "train/w-1", "PreemptionByScheduler");
    sacct(400, NULL, "TIMEOUT");
}

START_TEST(it_is_told_the_same_in_any_order) {
    one_of_everything();
    char *whole = strdup(run());
    says(whole, "{\"kind\":\"rank\",\"name\":\"0\",\"role\":\"culprit\"}");
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
    for (uint32_t cut = 1; cut < cluster.count; cut++) {
        struct detector second = detector_open(&processor_first_exit);
        detector_close(&detector);
        detector = detector_open(&processor_first_exit);
        detector_start(&detector);
        detector_feed(&detector, cluster.events, cut);
        detector_start(&second);
        detector_move_state(&detector, &second);
        detector_close(&detector);
        detector = second;
        detector_feed(&detector, cluster.events + cut, cluster.count - cut);
        detector_finish(&detector);
        ck_assert_str_eq(detector_lines(&detector), whole);
    }
    free(whole);
}
END_TEST

START_TEST(nothing_is_allocated_once_warm) {
    detector_start(&detector);
    one_of_everything();
    for (uint32_t i = 0; i < 3; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
    }
    uint64_t before = memory_figures().allocations;
    for (uint32_t i = 0; i < 10; i++) {
        detector_feed(&detector, cluster.events, cluster.count);
        detector_judge(&detector, UINT64_MAX, false);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

// -- a worker of a data loader --------------------------------------------------------------------

START_TEST(the_kernel_s_kill_of_a_worker_is_of_its_rank) {
    start_job(0, 100);
    struct event *kill = say(60, "b", RANK_NONE, OBSERVATION_OOM_KILL);
    add(kill, FACT_PID, _i == 0 ? 4711 : 4712);
    struct event *event = say(61, "b", 2, OBSERVATION_WORKER_KILLED);
    add(event, FACT_PID, 4711);
    add(event, FACT_SIGNAL, 9);
    add_text(event, FACT_EXCEPTION, "RuntimeError");
    add_text(event, FACT_MESSAGE, "DataLoader worker (pid 4711) is killed");
    const char *lines = run();
    says(lines, "Rank 2 on b");
    const char *killed =
        "rank 2 on b: the kernel killed a worker of its data loader (process "
        "4711) because memory ran out";
    ck_assert_int_eq(strstr(lines, killed) != NULL, _i == 0);
}
END_TEST

// -- a pod and its ranks by their host ------------------------------------------------------------

START_TEST(the_code_of_a_pod_is_no_cause_beside_the_ranks_on_it) {
    static const char *const hosts[] = {"w-0", "trainw-0", "w-1"};
    struct event *event = say(60, hosts[_i], 0, OBSERVATION_PEER_CLOSED);
    add_text(event, FACT_EXCEPTION, "RuntimeError");
    add_yes_no(event, FACT_VICTIM, true);
    event = say(61, "gpu-1", RANK_NONE, OBSERVATION_CONTAINER_TERMINATED);
    add_text(event, FACT_POD, "train/w-0");
    add(event, FACT_EXIT_CODE, 1);
    run();
    ck_assert_uint_eq(detector.verdict_count, _i == 0 ? 0 : 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("first_exit_places");
    TCase *cases = tcase_create("cases");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_kill_in_a_container_names_pod_and_rank);
    tcase_add_loop_test(cases, where_a_process_runs_does_not_depend_on_order, 0, 6);
    tcase_add_test(cases, a_kill_in_another_pod_is_none_of_the_job);
    tcase_add_test(cases, a_kill_is_joined_by_the_container_alone);
    tcase_add_loop_test(cases, a_pid_of_the_host_is_no_pid_of_a_pod, 0, 2);
    tcase_add_test(cases, of_several_ranks_it_is_the_one_that_was_killed);
    tcase_add_test(cases, pods_of_an_earlier_job_are_not_mixed_up);
    tcase_add_test(cases, of_several_ranks_none_is_guessed);
    tcase_add_loop_test(cases, an_xid_goes_with_the_cuda_error_of_its_rank, 0,
                        sizeof XIDS / sizeof *XIDS);
    tcase_add_loop_test(cases, an_xid_is_joined_by_the_uuid, 0, 2);
    tcase_add_loop_test(cases, an_xid_is_joined_by_its_pid, 0, 2);
    tcase_add_test(cases, each_task_of_a_list_ended);
    tcase_add_test(cases, the_first_line_of_srun_is_the_first_end);
    tcase_add_test(cases, tasks_of_launchers_are_no_ranks);
    tcase_add_test(cases, ranks_that_are_elsewhere_are_no_tasks);
    tcase_add_test(cases, a_list_that_never_ends_is_bounded);
    tcase_add_loop_test(cases, what_slurm_stopped_is_told_once, 0, sizeof STOPS / sizeof *STOPS);
    tcase_add_test(cases, an_end_before_the_limit_was_the_first);
    tcase_add_loop_test(cases, a_node_that_slurm_lost, 0, 2);
    tcase_add_loop_test(cases, a_lost_node_that_only_srun_names, 0, 2);
    tcase_add_loop_test(cases, a_lost_node_that_may_be_of_another_job, 0, 2);
    tcase_add_test(cases, a_list_of_nodes_is_each_of_them);
    tcase_add_loop_test(cases, a_node_that_a_launcher_lost, 0, 2);
    tcase_add_loop_test(cases, a_job_that_was_stopped, 0, sizeof JOB_STOPS / sizeof *JOB_STOPS);
    tcase_add_loop_test(cases, tasks_that_a_stop_killed, 0, 2);
    tcase_add_loop_test(cases, a_stop_behind_an_end_is_not_the_first, 0, 2);
    tcase_add_loop_test(cases, codes_of_what_could_not_be_started, 0, 3);
    tcase_add_test(cases, memory_that_sacct_tells_of);
    tcase_add_loop_test(cases, a_pod_that_was_preempted, 0, 2);
    tcase_add_loop_test(cases, a_node_that_does_not_answer_the_cluster, 0, 2);
    tcase_add_test(cases, a_silent_kubelet_alone_is_no_end);
    tcase_add_loop_test(cases, a_silent_kubelet_before_a_stop_is_no_end, 0, 3);
    tcase_add_loop_test(cases, what_the_cluster_says_of_a_pod_of_a_lost_node, 0,
                        sizeof LOSSES / sizeof *LOSSES);
    tcase_add_loop_test(cases, an_exit_is_named_within_five_seconds, 0, 3);
    tcase_add_test(cases, it_is_told_the_same_in_any_order);
    tcase_add_test(cases, kept_state_goes_on_as_if_nothing_had_happened);
    tcase_add_test(cases, nothing_is_allocated_once_warm);
    tcase_add_loop_test(cases, the_kernel_s_kill_of_a_worker_is_of_its_rank, 0, 2);
    tcase_add_loop_test(cases, the_code_of_a_pod_is_no_cause_beside_the_ranks_on_it, 0, 3);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

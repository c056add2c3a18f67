# SPDX-License-Identifier: Apache-2.0
"""Jobs of which one rank ends by itself and takes the others with it, and jobs that are stopped.

What tells of it are torchelastic's error files, the lines of each node's launcher, and the kernel's.
A victim writes an error file too, within the same second or the next; the launchers of the other
nodes call one of them the root cause.
"""
import time as clock

from cluster import SECOND

CLOSED = ("[../third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection closed by peer [%s]:%d. "
          "This is typically caused by a remote worker crashing.")
FULL = ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU %d has a total capacity of 79.11 GiB "
        "of which 1.52 GiB is free.")
RAISED = ["IndexError: index out of range in self", "KeyError: 'labels'",
          "ValueError: loss is nan at step 812", "FileNotFoundError: [Errno 2] No such file or "
          "directory: '/data/shard-0118.tar'"]
API = "torch/distributed/elastic/multiprocessing/api.py"


def launcher(case, at, node, text):
    case.add(at, "launcher", node, text)


def error_file(case, at, rank, message):
    case.add(at, "error_file", rank.node, (rank, message))


def failed(case, at, rank, code):
    launcher(case, at, rank.node, "E1118 00:00:00.000000 880 %s:1002] failed (exitcode: %d) "
             "local_rank: %d (pid: %d) of binary: /usr/bin/python3" % (API, code, rank.local,
                                                                      rank.pid))


def sent_signal(case, at, rank):
    launcher(case, at, rank.node, "W1118 00:00:00.000000 880 %s:1028] Sending process %d closing "
             "signal SIGTERM" % (API, rank.pid))


def end_others(case, at, culprit):
    """Some ranks lose the culprit and say so; the launcher of each node ends the rest."""
    dice = case.dice
    for node in case.cluster.nodes:
        first = None
        notices = at + int(dice.uniform(0.3, 3) * SECOND)
        for rank in node.ranks:
            if rank is culprit:
                continue
            if first is None and node is not culprit.node:
                first = rank
            elif dice.random() < 0.6:
                sent_signal(case, notices + SECOND // 5, rank)
                continue
            error_file(case, at + int(dice.uniform(0.1, 1.2) * SECOND), rank, "RuntimeError: " +
                       CLOSED % (culprit.node.ip, 10000 + dice.randrange(50000)))
        if first is not None:
            failed(case, max(notices, at + 13 * SECOND // 10) + SECOND // 2, first, 1)


def raises(case, at, rank, message):
    error_file(case, at, rank, message)
    failed(case, at + SECOND * 4 // 5, rank, 1)


def exit(case):  # pylint: disable=redefined-builtin
    """One rank raises, runs out of memory, crashes or is killed."""
    dice, cluster = case.dice, case.cluster
    rank, at = dice.choice(cluster.ranks), case.between(0.3, 0.8)
    kind = dice.choice(["exception", "exception", "cuda_oom", "host_oom", "segfault", "killed"])
    if kind == "exception":
        raises(case, at, rank, dice.choice(RAISED))
    elif kind == "cuda_oom":
        raises(case, at, rank, "torch.OutOfMemoryError: " + FULL % rank.local)
    elif kind == "host_oom":
        case.kernel(at, rank.node, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
                    "mems_allowed=0-1,oom_memcg=/job,task_memcg=/job,task=python3,pid=%d,uid=0"
                    % rank.pid)
    elif kind == "segfault":
        case.kernel(at, rank.node, "python3[%d]: segfault at 18 ip 00007f3112c4a9c0 sp "
                    "00007ffd51a2b3c0 error 4 in libtorch_cuda.so[7f3110000000+4a000000]"
                    % rank.pid, 6)
    if kind in ("host_oom", "killed", "segfault"):
        failed(case, at + SECOND // 10, rank, -11 if kind == "segfault" else -9)
    end_others(case, at + SECOND // 20, rank)
    for other in cluster.ranks:
        case.end_rank(other, at + (0 if other is rank else SECOND))
    case.root("first_exit", [kind], [["rank", str(rank.number)]], [["node", rank.node.name]])


# -- Jobs that are stopped --------------------------------------------------------------------------

def slurm(case, at, text):
    case.add(at, "slurm", case.cluster.nodes[0], text)


def cancelled(case, at, reason):
    """What slurmstepd of the first node and srun say; local time is UTC here."""
    stamp = clock.strftime("%Y-%m-%dT%H:%M:%S", clock.gmtime(at // SECOND))
    first = case.cluster.nodes[0].name
    slurm(case, at, "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")
    for what, later in (("STEP 4242.0", 0), ("JOB 4242", 1_000_000)):
        slurm(case, at + later, "slurmstepd: error: *** %s ON %s CANCELLED AT %s DUE TO %s ***"
              % (what, first, stamp, reason))


def told_to_stop(case, at, node):
    """The launcher is sent SIGTERM, and sends it to its ranks."""
    launcher(case, at, node, "W1118 00:00:00.000000 880 torch/distributed/elastic/agent/server/"
             "api.py:752] Received 15 death signal, shutting down workers")
    for rank in node.ranks:
        sent_signal(case, at + 2_000_000, rank)
        case.end_rank(rank, at + int(case.dice.uniform(0.1, 2) * SECOND))


def lose(case, at, node):
    """The ranks of the other nodes lose those of this one."""
    for other in case.cluster.nodes:
        if other is node:
            continue
        for rank in other.ranks:
            closed = at + int(case.dice.uniform(0.1, 1.2) * SECOND)
            error_file(case, closed, rank, "RuntimeError: " + CLOSED % (
                node.ip, 10000 + case.dice.randrange(50000)))
            case.end_rank(rank, closed + SECOND)
        failed(case, at + int(case.dice.uniform(1.5, 3) * SECOND), other.ranks[0], 1)


def time_limit(case, at):
    cancelled(case, at, "TIME LIMIT")
    for node in case.cluster.nodes:
        told_to_stop(case, at + case.dice.randrange(SECOND // 2), node)
    return [], whole_job(case)


def whole_job(case):
    return [["node", node.name] for node in case.cluster.nodes]


def preempted(case, at):
    """By Slurm the whole job, or one node of it, as when a spot machine is taken back."""
    if case.dice.random() < 0.5:
        cancelled(case, at, "PREEMPTION")
        for node in case.cluster.nodes:
            told_to_stop(case, at + case.dice.randrange(SECOND // 2), node)
        return [], whole_job(case)
    node = case.dice.choice(case.cluster.nodes)
    told_to_stop(case, at, node)
    lose(case, at + SECOND // 2, node)
    return [["node", node.name]], []


def node_lost(case, at):
    """A machine is gone with all that it would have said; in some cases Slurm says so."""
    node = case.dice.choice(case.cluster.nodes)
    case.lose_node(node, at)
    lose(case, at + SECOND // 2, node)
    if case.dice.random() < 0.5:
        slurm(case, at + 2 * SECOND, "srun: error: Node failure on " + node.name)
        cancelled(case, at + 2 * SECOND + SECOND // 2,
                  "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")
    return [["node", node.name]], []


def stopped(case):
    """The job's time is over, it is preempted, or it loses a node."""
    kind = case.dice.choice([time_limit, preempted, node_lost])
    who, also = kind(case, case.between(0.3, 0.8))
    case.root("first_exit", [kind.__name__], who, also)

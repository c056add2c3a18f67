# SPDX-License-Identifier: Apache-2.0
"""Jobs of which one rank ends by itself and takes the others with it.

What tells of it are torchelastic's error files, the lines of each node's launcher, and the kernel's.
A victim writes an error file too, within the same second or the next; the launchers of the other
nodes call one of them the root cause.
"""
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

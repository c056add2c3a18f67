# SPDX-License-Identifier: Apache-2.0
"""The jobs that are run: what each breaks, and what is right to say of it.

`accept` is judged as in golden/real_exits: with first_exit there is exactly one root, which names
one of `ranks`, of one of `kinds`; without it nobody else may be called a culprit; `nobody`: no
verdict of severity error. `held_up`, `leaked` and `slow`: nccl_hang, memory_first_cause and slow_rank
name `ranks`.
"""


class Case:
    def __init__(self, name, *options, fault=None, rank=None, kinds=(), without_kernel_log=(),
                 exception=None, message="", needs=(), **accept):
        self.name = name
        self.fault, self.rank = fault, rank
        self.options = list(options)
        if fault:
            self.options += ["--fault", fault, "--fault-rank", str(-1 if rank is None else rank)]
        self.exception, self.message = exception, message
        self.needs = set(needs)
        self.accept = {"first_exit": False, "kinds": list(kinds),
                       "ranks": [] if rank is None else [rank], **accept}
        if without_kernel_log:
            self.accept["kinds_without_kernel_log"] = list(without_kernel_log)
        self.truth = {"scenario": name, "fault": fault, "rank": rank}

    def telemetry(self):
        return "stormlog" in self.needs

    def ends_by_itself(self):
        return self.accept["first_exit"]


def end(name, *options, **more):
    return Case(name, "--timeout-s", "30", *options, first_exit=True, **more)


def hang(name, *options, **more):
    return Case(name, "--timeout-s", "8", "--dump-after-s", "4", *options, held_up=True,
                needs=["flight_recorder"], **more)


SLOW = ("--steps", "40", "--data-ms", "40", "--compute-ms", "160", "--timeout-s", "60")


def slow(name, phase, *options, rank, slow_ms=60, since=4, **more):
    """60 ms of 200: 30 % longer a step."""
    return Case(name, *SLOW, "--slow-ms", str(slow_ms), "--fault-step", str(since), *options,
                fault="slow_" + phase, rank=rank, needs=["stormlog"], nobody=True, **more)


ENDS = [
    end("exception", "--record", fault="exception", rank=2, kinds=["exception"],
        exception="ValueError", message="loss is nan at step 5 (learning rate 0.001)"),
    end("sigkill", fault="sigkill", rank=1, kinds=["killed"]),
    end("segfault", fault="segfault", rank=0, kinds=["segfault"], without_kernel_log=["killed"]),
    end("segfault_record", "--record", fault="segfault", rank=3, kinds=["segfault"]),
    end("os_exit", fault="os_exit", rank=3, kinds=["exit_code"]),
    end("memory_limit", fault="memory_limit", rank=1, kinds=["exception"],
        exception="RuntimeError", message="[enforce fail at alloc_cpu.cpp"),
    # The others wait for it while it grows.
    end("host_oom", "--dump-after-s", "1", fault="host_oom", rank=2, kinds=["host_oom"], without_kernel_log=["killed"],
        needs=["cgroup", "flight_recorder"]),
]
HANGS = [
    hang("stopped", fault="sigstop", rank=1, kinds=["stopped"]),
    hang("sleeping", "--sync", "reduce", fault="sleep", rank=2, kinds=["hang"]),
]
LEAK = Case("leak", "--steps", "25", "--data-ms", "100", "--compute-ms", "100",
            "--checkpoint-every", "10", "--timeout-s", "60",
            fault="leak", rank=2, needs=["stormlog"], leaked=True)
HEALTHY = [
    Case("healthy", "--checkpoint-every", "5", nobody=True),
]
SLOWED = [
    slow("slow_compute", "compute", rank=1, slow="slow_compute"),
    slow("slow_compute_reduce", "compute", "--sync", "reduce", rank=3, slow="slow_compute"),
    slow("slow_input", "input", rank=2, slow="slow_input"),
    slow("slow_checkpoint", "checkpoint", "--checkpoint-every", "2", "--checkpoint-ms", "100",
         rank=0, slow_ms=300, slow="slow_checkpoint"),
    slow("common_stall", "input", rank=None, slow_ms=600, since=20, slow="common_stall"),
    slow("slow_nobody", "compute", "--checkpoint-every", "8", rank=None, slow_ms=0, slow=""),
]
ANALYSED = ENDS + HANGS + [LEAK] + HEALTHY + SLOWED


def named(name):
    return next(case for case in ANALYSED if case.name == name)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch jobs, broken on purpose while culprit is tested, judged by what was broken.

    run_live_torch.py BINARY [--table] [--keep DIRECTORY] [CASE…]

Each job (cases.py) runs as record.py says and is then analysed as a collector would have found it;
those that end by themselves once more without what the kernel said. Two jobs run beside `culprit
run`: one is killed, one leaks and trains on until culprit has said so. Judged as golden/real_exits
is. --table prints what culprit and the summaries of torchrun name; --keep leaves the recordings.

Needs a Python with torch: this one, or that which CULPRIT_TORCH_PYTHON names. Without one nothing
is run, and the suite says so.
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
for folder in ("golden", "support"):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
import cases  # noqa: E402
import run_real_exits as exits  # noqa: E402
import run_real_hangs as hangs  # noqa: E402
import run_real_slow as slowness  # noqa: E402
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from record import Job, can, can_limit_memory  # noqa: E402

PATIENCE_S = 120
# What cases need, in words.
NEEDS = {"stormlog": "stormlog", "cgroup": "memory cgroup that may be made",
         "flight_recorder": "Flight Recorder for gloo"}
FLIGHT_RECORDER = "from torch._C import _distributed_c10d as c10d; c10d._dump_fr_trace_file"


def torch_python():
    """-> (the Python to use, or None; why there is none)"""
    python = os.environ.get("CULPRIT_TORCH_PYTHON", sys.executable)
    if not can(python, "import torch.distributed"):
        return None, "PyTorch is not installed for %s, so no job was run; " \
            "tests/README.md says how to install it" % python
    return python, None


class Suite:
    def __init__(self, binary, python, keep, table):
        self.binary, self.python, self.keep, self.table = binary, python, keep, table
        self.checks = Checks()
        self.agents = collections.Counter()
        self.has = {"stormlog": can(python, "import stormlog"), "cgroup": can_limit_memory(),
                    "flight_recorder": can(python, FLIGHT_RECORDER)}
        self.has_slow_rank = slowness.has_detector(binary)
        if not self.has_slow_rank:
            self.checks.skip(slowness.NO_DETECTOR + ": slow ranks are only held not to be faults")

    def missing(self, case):
        missing = sorted(NEEDS[need] for need in case.needs if not self.has[need])
        if missing:
            self.checks.skip("%s: there is no %s" % (case.name, " and no ".join(missing)))
        return missing

    def folder(self, base, name):
        folder = os.path.join(self.keep or base, name)
        os.makedirs(folder)
        return folder

    def run_job(self, case, folder, beside=lambda job: None, options=()):
        """-> the truth; `beside` is called when the job was started."""
        job = Job(self.python, case, folder, options=options)
        try:
            job.start()
            beside(job)
            in_time = job.wait()
        finally:
            left = job.close()
        self.checks.check(in_time, case.name + ": the job did not end within its limit")
        self.checks.check(left == 0, "%s: %d processes were left" % (case.name, left))
        truth = job.collect()
        self.checks.equal([end["rank"] for end in truth["ends"]], list(range(job.per_node *
                          len(job.nodes))), case.name + ": ranks that started")
        finished = all(code == 0 for code in job.exits.values())
        self.checks.equal(finished, not (case.ends_by_itself() or case.accept.get("held_up")),
                          "%s: whether torchrun ended well: %s" % (case.name, job.exits))
        return truth

    def analyse(self, case, base):
        if self.missing(case):
            return
        folder = self.folder(base, case.name)
        truth = self.run_job(case, folder)
        with_kernel_log = any("kernel.log" in names for _, _, names in os.walk(folder))
        for kernel in (True, False) if with_kernel_log else (False,):
            what = case.name + ("" if kernel else " without the kernel's log")
            found = exits.analyze(self.binary, exits.copy(folder, base, what, kernel))
            self.judge(what, truth, found, kernel)
            if kernel == with_kernel_log:
                self.say(case.name, folder, truth, found)

    def judge(self, what, truth, found, kernel):
        accept = truth["accept"]
        kinds = accept["kinds"] + ([] if kernel else accept.get("kinds_without_kernel_log", []))
        exits.judge(self.checks, what, truth, found, kinds)
        if accept.get("held_up"):
            hangs.judge(self.checks, what, truth, found)
        if accept.get("leaked"):
            self.checks.check(says_leak(found, accept), lambda: (
                "%s: rank %s is not said to leak: %r" % (
                    what, accept["ranks"], [v["headline"] for v in found or ()])))
        if "slow" in accept and self.has_slow_rank:
            slowness.judge(self.checks, what, truth, found)

    def say(self, name, folder, truth, found):
        launchers = list(exits.summaries(folder, truth))
        if exits.one_ranks_end(truth):
            self.agents.update(launchers)
        if self.table:
            print("%-20s culprit: %-60s torchrun: %s" % (
                name, "; ".join("%s %s %s" % (v["pattern"], v["kind"],
                                              ",".join(sum(exits.blamed(v), [])))
                                for v in found or ()), ", ".join(launchers)), flush=True)

    def live(self, case, base, until=None):
        """culprit follows the files of the job from before its start to after its end."""
        if self.missing(case):
            return
        name = case.name + "_live"
        folder = self.folder(base, name)
        culprit = Live(self.binary, folder, self.folder(base, name + "_culprit"))
        options = ("--until", until, "--steps", "1000") if until else ()

        def wait_for_it(job):
            if until:
                said = culprit.wait_for(lambda found: says_leak(found, case.accept), job)
                self.checks.check(said and job.is_running(),
                                  name + ": culprit did not say it while the job ran")
                with open(until, "w", encoding="ascii"):
                    pass

        try:
            truth = self.run_job(case, folder, wait_for_it, options)
            if not until:
                self.checks.check(culprit.wait_for(lambda found: any(
                    exits.is_root(v) and exits.names_right(truth, v) for v in found)),
                    name + ": culprit did not say it while it ran")
        finally:
            code = culprit.stop()
        self.checks.equal(code, 0, name + ": exit code of culprit run")
        found = culprit.found()
        self.judge(name, truth, found, kernel=False)
        self.say(name, folder, truth, found)


def says_leak(found, accept):
    return any(verdict["kind"] == "leak" and
               exits.blamed(verdict)[0] == [str(rank) for rank in accept["ranks"]]
               for verdict in found or ())


class Live:
    """culprit run on a folder that a job is about to write."""

    def __init__(self, binary, folder, own):
        self.output = os.path.join(own, "verdicts.jsonl")
        config = os.path.join(own, "culprit.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"file": {"include": [folder], "exclude": ["truth.json"],
                                       "poll_interval": "200ms", "finish_after": "1s"}},
                "exporters": {"json": {"path": self.output}},
                "service": {"pipelines": {"verdicts": {
                    "receivers": ["file"], "preset": "all", "exporters": ["json"],
                    "evaluate_every": "1s", "allowed_lateness": "1s", "settle": "1s"}}},
            }, file)
        with open(os.path.join(own, "log"), "wb") as log:
            self.process = subprocess.Popen([binary, "run", "--config", config],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=log, env=environment())

    def found(self):
        """The last state of each verdict that was written."""
        try:
            with open(self.output, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        return verdicts.read_lines(text[:text.rfind("\n") + 1])

    def wait_for(self, condition, job=None):
        limit = time.monotonic() + PATIENCE_S
        while not condition(self.found()):
            if self.process.poll() is not None or time.monotonic() > limit or (
                    job and not job.is_running()):
                return False
            time.sleep(0.1)
        return True

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def main():
    options, names = sys.argv[2:], []
    keep, table = None, "--table" in options
    if "--keep" in options:
        keep = options.pop(options.index("--keep") + 1)
        options.remove("--keep")
    names = [name for name in options if not name.startswith("--")]
    python, reason = torch_python()
    if python is None:
        checks = Checks()
        checks.skip(reason)
        sys.exit(checks.finish())
    suite = Suite(os.path.abspath(sys.argv[1]), python, keep, table)
    base = tempfile.mkdtemp(prefix="culprit-live-torch-")
    try:
        for case in cases.ANALYSED:
            if not names or case.name in names:
                suite.analyse(case, base)
        if not names or "live" in names:
            suite.live(cases.named("sigkill"), base)
            suite.live(cases.LEAK, base, until=os.path.join(base, "until"))
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if table:
        print("torchrun, where one rank ended first: " + ", ".join(
            "%d %s" % (suite.agents[what], what) for what in ("own", "victim", "nothing")))
    sys.exit(suite.checks.finish())


if __name__ == "__main__":
    main()

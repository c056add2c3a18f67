#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit beside ranks whose files roll: a segment or a rotated file that is over holds nothing back.

    run_rolling.py BINARY

The same job is followed twice: as one file a rank, and as files that roll every few lines, either
as the segments of telemetry sinks or renamed away as log rotation does. No source counts as silent
(idle_timeout: 1h). After each step of half a second of event time both must have judged as often;
the lines that they write are the same, and the leak is named no more than a second of event time
later. In between both are reloaded, and stopped and started, with files rolled meanwhile. Nothing
depends on how long something takes: what must happen is waited for, up to a limit.
"""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from own_metrics import metric_sum  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, wait_for, whole_lines  # noqa: E402

STEPS_A_SECOND = 2              # of event time
LEAK_RANK = 1
JOB = generate.Job("rolled", 31, 3, steps=10, swing=0.2, leak_rank=LEAK_RANK, leak_step=4,
                   leak_share=0.3, leak_at="backward", skew_s=0.3)
LINES = [list(generate.Rank(JOB, rank).lines()) for rank in range(JOB.ranks)]
TIMES = [[json.loads(line)["timestamp_ns"] for line in lines] for lines in LINES]
START_NS, END_NS = min(map(min, TIMES)), max(map(max, TIMES))
STEPS = int((END_NS - START_NS) * STEPS_A_SECOND / 10**9) + 1
ROLL_LINES = 17
RELOAD_STEPS, RESTART_STEPS = (7, 21), (4, 18, 23)


class Followed:
    """The job as files, and culprit following them."""
    rolls = False

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.input = os.path.join(folder, "in")
        self.output = os.path.join(folder, "verdicts.jsonl")
        self.log = os.path.join(folder, "log")
        self.own = free_port()
        os.makedirs(self.input)
        self.written = [0] * JOB.ranks
        self.accepted_before = 0
        self.first_leak = None
        with open(os.path.join(folder, "culprit.yaml"), "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"file": {"include": [self.input + "/**/*.jsonl*"],
                                       "poll_interval": "100ms"}},
                "exporters": {"json": {"path": self.output}},
                "extensions": {"file_storage": {"directory": os.path.join(folder, "store")}},
                "service": {"extensions": ["file_storage"], "checkpoint_interval": "100ms",
                            "telemetry": {"metrics": {"endpoint": "127.0.0.1:%d" % self.own}},
                            "pipelines": {"memory": {
                                "receivers": ["file"], "preset": "memory", "exporters": ["json"],
                                "evaluate_every": "1s", "allowed_lateness": "1s", "settle": "1s",
                                "idle_timeout": "1h", "caught_up_timeout": "1h"}}},
            }, file)

    def path(self, rank):
        return os.path.join(self.input, "rank%d.jsonl" % rank)

    def roll(self, rank):
        pass

    def write_until(self, time_ns):
        for rank, lines in enumerate(LINES):
            while (self.written[rank] < len(lines)
                   and TIMES[rank][self.written[rank]] <= time_ns):
                if self.written[rank] % ROLL_LINES == 0:
                    self.roll(rank)
                with open(self.path(rank), "ab") as file:
                    file.write(lines[self.written[rank]].encode() + b"\n")
                self.written[rank] += 1

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "run", "--config", os.path.join(self.folder, "culprit.yaml")],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env=environment())
        return self.wait_for(lambda: self.metric("culprit_pipeline_evaluations_total") is not None)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, condition):
        return wait_for(condition, self.process)

    def metric(self, name):
        """None while nobody answers, as during a reload."""
        return metric_sum(self.own, name)

    def accepted(self):
        count = self.metric("culprit_receiver_accepted_events_total")
        return -1 if count is None else count + self.accepted_before

    def evaluations(self):
        return self.metric("culprit_pipeline_evaluations_total") or 0

    def restart(self):
        """Rolls while nobody looks."""
        self.accepted_before = self.accepted()
        code = self.stop()
        for rank in range(JOB.ranks):
            self.roll(rank)
        return code == 0 and self.start()

    def reload(self):
        taken = self.log_text().count('"C1012"')
        self.process.send_signal(signal.SIGHUP)
        return self.wait_for(lambda: self.log_text().count('"C1012"') > taken)

    def lines_out(self):
        return whole_lines(self.output)

    def look_for_leak(self, step):
        if self.first_leak is None and any('"leak"' in line for line in self.lines_out()):
            self.first_leak = step


class Segments(Followed):
    rolls = True

    def path(self, rank):
        folder = os.path.join(self.input, "rank%d" % rank)
        os.makedirs(folder, exist_ok=True)
        number = max(len(glob.glob(folder + "/segment-*")), 1)
        return os.path.join(folder, "segment-%06d.jsonl" % number)

    def roll(self, rank):
        folder, name = os.path.split(self.path(rank))
        number = int(name[8:14]) + os.path.exists(os.path.join(folder, name))
        with open(os.path.join(folder, "segment-%06d.jsonl" % number), "wb"):
            pass


class Renamed(Followed):
    rolls = True

    def roll(self, rank):
        if os.path.exists(self.path(rank)):
            kept = len(glob.glob(self.path(rank) + ".*"))
            os.rename(self.path(rank), "%s.%d" % (self.path(rank), kept + 1))


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def both(self, what, pair, action):
        for one in pair:
            self.checks.check(action(one), lambda: "%s: %s" % (what, one.log_text()[-1500:]))

    def step(self, what, pair, number):
        whole, rolling = pair
        if number in RESTART_STEPS:
            self.both(what + ": restart", pair, lambda one: one.restart())
        if number in RELOAD_STEPS:
            self.both(what + ": reload", pair, lambda one: one.reload())
        for one in pair:
            one.write_until(START_NS + number * 10**9 // STEPS_A_SECOND)
        for one in pair:
            taken = one.wait_for(lambda: one.accepted() >= sum(one.written))
            self.checks.check(taken, "%s: step %d: accepted %s of %d: %s" % (
                what, number, one.accepted(), sum(one.written), one.log_text()[-1500:]))
        whole.look_for_leak(number)
        judged = whole.evaluations()
        kept_up = rolling.wait_for(lambda: rolling.evaluations() >= judged)
        rolling.look_for_leak(number)
        return self.checks.check(kept_up, "%s: step %d: judged %s times, in one file %s times" % (
            what, number, rolling.evaluations(), judged))

    def follow(self, kind):
        what = kind.__name__.lower()
        with tempfile.TemporaryDirectory() as folder:
            pair = []
            for number, one in enumerate((Followed, kind)):
                os.makedirs(os.path.join(folder, str(number)))
                pair.append(one(self.binary, os.path.join(folder, str(number))))
            try:
                self.both(what + ": start", pair, lambda one: one.start())
                for number in range(1, STEPS + 1):
                    if not self.step(what, pair, number):
                        break
            finally:
                codes = [one.stop() for one in pair]
            self.compare(what, pair, codes)

    def compare(self, what, pair, codes):
        whole, rolling = pair
        self.checks.equal(codes, [0, 0], what + ": exit codes")
        lines, wanted = ([(v["id"], v["state"], v["headline"]) for v in map(json.loads, one)]
                         for one in (rolling.lines_out(), whole.lines_out()))
        self.checks.equal(lines, wanted, what + ": what was written")
        self.checks.check(rolling.lines_out() == whole.lines_out(), what + ": its bytes")
        self.checks.check(whole.first_leak is not None and rolling.first_leak is not None
                          and rolling.first_leak <= whole.first_leak + STEPS_A_SECOND,
                          "%s: the leak was named at step %s, in one file at step %s"
                          % (what, rolling.first_leak, whole.first_leak))
        leaks = [v for v in verdicts.read_lines("\n".join(whole.lines_out()))
                 if v["kind"] == "leak"]
        self.checks.equal([verdicts.named(v, "culprit") for v in leaks], [[LEAK_RANK]],
                          what + ": who is named")
        for one in pair:
            self.checks.check("Sanitizer" not in one.log_text(), what + ": the sanitizer complains")
        print("%s: %d steps, leak named at step %s, in one file at step %s" % (
            what, STEPS, rolling.first_leak, whole.first_leak))

    def run(self):
        self.follow(Segments)
        self.follow(Renamed)
        return self.checks.finish()


if __name__ == "__main__":
    sys.exit(Suite(os.path.abspath(sys.argv[1])).run())

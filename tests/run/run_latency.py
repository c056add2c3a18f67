#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a pipeline with default options names a hang and an exit, and that it says in the end
what analyze says of the same lines.

    run_latency.py BINARY [CASES]      (2 of each class)

Made-up incidents (bench/diagnosis) are put through a live pipeline on a clock that follows the
arrival of their lines (bench/live_clock), so every figure is in event time and none depends on how
fast this machine is. Each is told in three ways: all sources go on; one source goes on behind the
last line that tells of the incident and all others fall silent; all fall silent. Then the real
program follows files, one of which goes on and one of which falls silent for good.
"""
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "diagnosis"))
import incidents  # noqa: E402
import live  # noqa: E402
import run_crash  # noqa: E402
from checks import Checks  # noqa: E402
from cluster import SECOND  # noqa: E402
from running import PATIENCE_S, whole_lines  # noqa: E402

SEED = 1511
CASES = 2
HANG_WITHIN_S = 15      # of its threshold: the first dump or line of a watchdog
EXIT_WITHIN_S = 5       # of the last line that tells of it
GOES_ON_S = 60
NOISE = "%s beat kernel: [%d.000000] systemd[1]: Started session %d of user root."


def stamp(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // SECOND)) + ".000000+00:00"


def beats(first_ns, last_ns):
    """Lines that mean nothing, of a node of its own, one a second."""
    return [(at, "beat/kern.log", NOISE % (stamp(at), 100 + i, i))
            for i, at in enumerate(range(first_ns - first_ns % SECOND, last_ns, SECOND))]


def told(case, how):
    """The lines of the case and when they arrive."""
    lines = live.lines_of(case)
    if how != "all go on":
        last = max(fact.time for fact in case.facts if fact.telling)
        lines = [line for line in lines if line.time <= last]
    arrivals = live.schedule(case.key, lines, "files")
    if how == "one goes on":
        arrivals += beats(case.start, lines[-1].time + GOES_ON_S * SECOND)
    return sorted(arrivals, key=lambda arrival: arrival[0])


def roots(verdicts):
    return sorted(json.dumps([verdict["id"], verdict["kind"], verdict["severity"],
                              sorted((one["kind"], one["name"], one["role"])
                                     for one in verdict["entities"])])
                  for verdict in verdicts if verdict["state"] != "resolved")


def judge_case(binary, kind, number, how, checks):
    case = incidents.make(kind, number, SEED)
    what = "%s, %s" % (case.name, how)
    arrivals = told(case, how)
    said = live.run(binary, arrivals)
    row = live.sum_up(case, said)
    checks.check(row["live"], what + ": the root is not named")
    checks.equal(row["taken_back"], [], what + ": called a root and taken back")
    if kind == "exit" and row["live"]:
        checks.check(row["live_last_s"] <= EXIT_WITHIN_S, "%s: named %.2f s after its last line"
                     % (what, row["live_last_s"]))
    elif row["live"]:
        checks.check(row["live_first_s"] <= HANG_WITHIN_S, "%s: named %.2f s after its threshold"
                     % (what, row["live_first_s"]))
    last = {verdict["id"]: verdict for _, _, verdict in said}
    checks.equal(roots(last.values()), roots(live.at_once(binary, arrivals)),
                 what + ": live against at once")


# -- the program itself -----------------------------------------------------------------------------

class Program(run_crash.Run):
    """Two files: one of a launcher, which falls silent, and a log that goes on or does not."""

    def __init__(self, binary, folder):
        super().__init__(binary, folder)
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["exporters"] = {"json": {"path": self.output}}
        # Nothing is to be said only since an input counts as silent.
        config["service"]["pipelines"] = {"all": {
            "receivers": ["file"], "preset": "all", "exporters": ["json"], "idle_timeout": "1h"}}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def receivers(self):
        return {"file": {"include": [self.input + "/*"]}}

    def append(self, name, text):
        with open(os.path.join(self.input, name), "a", encoding="utf-8") as file:
            file.write(text)

    def verdicts(self):
        return whole_lines(self.output)


def exit_lines(rank, at):
    return json.dumps({
        "source": "error_file", "observed_time_ns": at, "host.name": "node-a",
        "path": "/logs/run_1/attempt_0/%d/error.json" % rank,
        "document": {"message": {"message": "ValueError: loss is nan", "extraInfo": {
            "py_callstack": "Traceback (most recent call last):\n  File \"train.py\", line 1, in "
            "main\nValueError: loss is nan", "timestamp": str(at // SECOND)}}}}) + "\n"


def follow(binary, goes_on, checks):
    what = "followed, the other log %s" % ("goes on" if goes_on else "falls silent, too")
    with tempfile.TemporaryDirectory() as folder:
        run = Program(binary, folder)
        start = time.time_ns()
        run.append("errors.jsonl", exit_lines(3, start))
        run.append("kern.log", beats(start, start + SECOND)[0][2] + "\n")
        run.start()
        limit, beat = time.monotonic() + PATIENCE_S, start
        while not run.verdicts() and time.monotonic() < limit and not run.died():
            time.sleep(0.1)
            if goes_on and time.time_ns() - beat >= SECOND:
                beat = time.time_ns()
                run.append("kern.log", beats(beat, beat + SECOND)[0][2] + "\n")
        before = run.verdicts()
        checks.equal(len(before), 1, what + ": " + run.log_text()[-1500:])
        checks.check(before and "first_exit" in before[0], what + ": named: " + str(before)[:300])
        # What was said since nothing more came is not said again.
        run.process.kill()
        run.process.wait()
        run.start()
        checks.equal(run.stop(), 0, what + ": exit code")
        ids = [json.loads(line)["id"] for line in run.verdicts()
               if json.loads(line)["state"] == "open"]
        checks.equal(len(ids), len(set(ids)), what + ": said twice")
        checks.equal(run.verdicts()[:1], before, what + ": after a crash")


def main():
    binary = os.path.abspath(sys.argv[1])
    cases = int(sys.argv[2]) if len(sys.argv) > 2 else CASES
    checks = Checks()
    for kind in ("exit", "hang", "hang_in_logs"):
        for number in range(cases):
            for how in ("all go on", "one goes on", "all fall silent"):
                judge_case(binary, kind, number, how, checks)
    for goes_on in (True, False):
        follow(binary, goes_on, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

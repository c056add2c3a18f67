#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of real PyTorch jobs in which one rank is slower than the others.

    run_real_slow.py BINARY [CASE…]

Each case is analysed as it was collected, without truth.json, and once more without the scopes
that are steps, as programs write it that have none. A verdict of slow_rank must be of the
kind that `accept.slow` says and name the rank; where that is empty there must be none. A culprit
that has no such detector is only held to the rest: nobody is at fault.
"""
import glob
import gzip
import json
import os
import sys
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "real_slow")
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
import run_real_exits as exits  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

DETECTOR = "slow_rank"
NO_DETECTOR = "this culprit has no detector " + DETECTOR


def has_detector(binary):
    done = run(binary, "components", "--json")
    return any(component["name"] == DETECTOR
               for component in json.loads(done.text())["components"])


def judge(checks, what, truth, verdicts):
    """What slow_rank says of one job."""
    accept = truth["accept"]
    said = [(verdict["kind"], exits.blamed(verdict)[0])
            for verdict in verdicts or () if verdict["pattern"] == DETECTOR]
    wanted = [(accept["slow"], [str(rank) for rank in accept["ranks"]])] if accept["slow"] else []
    checks.equal(said, wanted, what + ": kind and rank that are slow")


def leave_out_steps(folder):
    """Removes the boundaries of the scopes that are steps."""
    for path in glob.glob(os.path.join(folder, "rank*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = [line for line in file
                     if json.loads(line).get("context") not in ("Phase entered: step",
                                                                "Phase exited: step")]
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.writelines(lines)


def main():
    checks = Checks()
    there = has_detector(sys.argv[1])
    if not there:
        checks.skip(NO_DETECTOR)
    names = sys.argv[2:] or sorted(os.path.basename(os.path.dirname(path))
                                   for path in glob.glob(os.path.join(HERE, "*", "truth.json")))
    checks.check(len(names) > 0, "there are no cases")
    for case in names:
        with open(os.path.join(HERE, case, "truth.json"), encoding="utf-8") as file:
            truth = json.load(file)
        with tempfile.TemporaryDirectory() as folder:
            copied = exits.copy(os.path.join(HERE, case), folder, case)
            verdicts = exits.analyze(sys.argv[1], copied)
            leave_out_steps(copied)
            without = exits.analyze(sys.argv[1], copied)
        exits.judge(checks, case, truth, verdicts, truth["accept"]["kinds"])
        if there:
            judge(checks, case, truth, verdicts)
            judge(checks, case + " without steps", truth, without)
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()

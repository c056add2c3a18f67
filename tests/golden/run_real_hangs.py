#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of real PyTorch jobs whose ranks waited for one, with Flight Recorder dumps.

    run_real_hangs.py BINARY [CASE…]

Each case is analysed as it was collected, without truth.json, and judged as in real_exits: with
`accept.first_exit` there is exactly one root, the end of that rank. In all of them there is one
verdict of nccl_hang, and it names the rank.
"""
import glob
import json
import os
import sys
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "real_hangs")
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
import run_real_exits as exits  # noqa: E402
from checks import Checks  # noqa: E402


def judge(checks, what, truth, verdicts):
    """What nccl_hang says of one job."""
    said = [exits.blamed(verdict)[0] for verdict in verdicts or ()
            if verdict["pattern"] == "nccl_hang"]
    checks.equal(said, [[str(rank) for rank in truth["accept"]["ranks"]]],
                 what + ": whom nccl_hang blames")


def main():
    checks = Checks()
    names = sys.argv[2:] or sorted(os.path.basename(os.path.dirname(path))
                                   for path in glob.glob(os.path.join(HERE, "*", "truth.json")))
    checks.check(len(names) > 0, "there are no cases")
    for case in names:
        with open(os.path.join(HERE, case, "truth.json"), encoding="utf-8") as file:
            truth = json.load(file)
        with tempfile.TemporaryDirectory() as folder:
            verdicts = exits.analyze(sys.argv[1], exits.copy(os.path.join(HERE, case), folder, case))
        exits.judge(checks, case, truth, verdicts, truth["accept"]["kinds"])
        judge(checks, case, truth, verdicts)
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()

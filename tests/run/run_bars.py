#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program writes between two states of a bar that overwrites itself is read.

    run_bars.py BINARY

Such a bar ends no line, so that its states are one line of any length, and messages lie within it.
"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

TIMEOUT = ("[rank1]:[E1119 10:00:00.123456 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught "
           "collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, "
           "NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.")
MEMORY = "srun: error: n1: task 3: Out Of Memory"


def bar(states):
    return "".join(f"\rEpoch 3:  12%|{'#' * 20:40}| {i}/30000 [01:05<07:58, 1.84it/s, loss=2.31]"
                   for i in range(states))


def kinds(binary, text):
    """What --stats says of a log."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "job.log"), "w", encoding="utf-8", newline="") as out:
            out.write(text)
        stats = os.path.join(folder, "stats.json")
        run(binary, "analyze", "--stats", stats, os.path.join(folder, "job.log"))
        with open(stats, encoding="utf-8") as file:
            told = json.load(file)
    return told


def main():
    binary = sys.argv[1]
    checks = Checks()
    lines = {
        "short": bar(3) + "\r" + TIMEOUT + bar(3) + "\r" + MEMORY + bar(3) + "\n",
        "without an end": bar(3) + "\r" + TIMEOUT + bar(3) + "\r" + MEMORY + bar(3),
        "longer than a line may be": bar(20000) + "\r" + TIMEOUT + bar(20000) + "\r" + MEMORY +
                                     bar(20000) + "\n",
        "behind a container's head": "2026-11-19T10:00:01.5Z stderr F " + bar(3) + "\r" + TIMEOUT +
                                     bar(3) + "\r" + MEMORY + bar(3) + "\n",
        "Windows' line ends": bar(3) + "\r\n" + TIMEOUT + "\r\n" + bar(3) + "\r\n" + MEMORY +
                              "\r\n",
    }
    for name, text in lines.items():
        told = json.dumps(kinds(binary, text))
        for kind in ("watchdog_timeout", "slurm_task_exit"):
            checks.check(kind in told, f"{name}: {kind} is not read: {told[:600]}")
    # Without a message the bar is nothing of interest, and no line of it is refused.
    told = json.dumps(kinds(binary, bar(60000)))
    checks.check("too_long" not in told, f"a bar alone: {told[:600]}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exceptions in logs of jobs that go on counting are no ends; and how far a job came is told.

    run_caught.py CULPRIT
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402

CULPRIT = sys.argv[1]
RAISED = ('Traceback (most recent call last):\n  File "/srv/a.py", line 5, in read\n    row["x"]\n'
          "KeyError: 'x'\n")


def steps(first, last, prefix=""):
    return "".join(f"{prefix}step {i}/90 loss 0.5\n" for i in range(first, last + 1))


def bars(first, last):
    return "".join(f" {i}%|##  | {i}/90 [00:{i:02}<01:00,  1.00it/s]\n"
                   for i in range(first, last + 1))


def marked(prefix, text):
    return "".join(prefix + line + "\n" for line in text.splitlines())


def verdicts(log):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "train.log"), "w", encoding="utf-8") as file:
            file.write(log)
        done = subprocess.run([CULPRIT, "analyze", "--output", "verdicts", folder], capture_output=True, text=True,
                              check=False, env=environment())
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def headlines(log):
    return [verdict["headline"] for verdict in verdicts(log)]


EXIT = "srun: error: n1: task 1: Exited with exit code 1\n"

# Nothing ended.
CAUGHT = {
    "counts on": steps(1, 5) + RAISED + steps(6, 20),
    "a bar counts on": bars(1, 5) + RAISED + bars(6, 20),
    "its writer counts on": steps(1, 5, "[rank1]: ") + marked("[rank1]: ", RAISED) +
                            steps(6, 7, "[rank1]: "),
    "the only counter goes on": steps(1, 5, "[rank0]: ") + marked("[rank1]: ", RAISED) +
                                steps(6, 20, "[rank0]: "),
    "done behind it": steps(1, 5) + RAISED + "INFO - training done\n",
    "several": steps(1, 5) + RAISED + steps(6, 20) + RAISED + steps(21, 30),
}
# The exception is told.
TOLD = {
    "nothing behind it": steps(1, 5) + RAISED,
    "the bar is drawn once more": bars(1, 5) + RAISED + bars(6, 6),
    "counts the same": steps(1, 5) + RAISED + steps(5, 5),
    "counts anew": steps(1, 5) + RAISED + steps(0, 9),
    "counts behind the end": steps(1, 5, "1: ") + marked("1: ", RAISED) + EXIT +
                             steps(6, 20, "1: "),
    "the last of several": steps(1, 5) + RAISED + steps(6, 20) + RAISED,
    "another finishes its step": steps(1, 5, "[rank0]: ") + marked("[rank1]: ", RAISED) +
                                 steps(6, 6, "[rank0]: "),
}


def main():
    checks = Checks()
    for name, log in CAUGHT.items():
        checks.equal(headlines(log), [], name)
    for name, log in TOLD.items():
        told = headlines(log)
        checks.check(len(told) == 1 and "KeyError" in told[0], f"{name}: {told}")
    killed = (steps(1, 5, "1: ") + marked("1: ", RAISED) + steps(6, 20, "1: ") +
              "srun: error: n1: task 1: Killed\n")
    told = headlines(killed)
    checks.check(len(told) == 1 and "SIGKILL" in told[0] and "KeyError" not in told[0],
                 f"a later end is one: {told}")
    far = ("0:   successfully saved checkpoint from iteration     4 to /ckpt\n" +
           steps(1, 5, "1: ") + marked("1: ", RAISED) + EXIT)
    attributes = verdicts(far)[0].get("attributes", {})
    checks.equal({key: attributes.get(key) for key in ("job.step", "job.steps", "job.checkpoint")},
                 {"job.step": "5", "job.steps": "90", "job.checkpoint": "4"}, "how far it came")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

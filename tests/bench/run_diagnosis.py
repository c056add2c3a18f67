#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the roots of made-up incidents named (bench/diagnosis), and nobody in healthy jobs?

    run_diagnosis.py BINARY

A few cases of each class as a collector leaves them. How often it holds in how many cases, and what
messes do to it, is for bench/diagnosis/run to say; here each of these must be right.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DIAGNOSIS = os.path.join(HERE, "..", "..", "bench", "diagnosis")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, DIAGNOSIS)
import incidents  # noqa: E402
import score  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402

SEED, CASES = 1, 2
SOON_S = {"hang": 15, "hang_in_logs": 15, "exit": 5}     # of event time, after the first sign


def try_case(binary, checks, kind, number):
    row = score.run_case(binary, kind, number, SEED, "none", timed=kind in SOON_S)
    name = "%s-%03d" % (kind, number)
    checks.check("failure" not in row, lambda: "%s: %s" % (name, row["failure"]))
    if row["truth"]["healthy"]:
        checks.equal(row["false"], 0, name + ": verdicts in a healthy job")
    else:
        checks.check(row["found"], lambda: "%s: the roots are %s, and these were named: %s"
                     % (name, row["truth"]["roots"], row["roots"]))
    if kind in SOON_S:
        after_s = row.get("after_s")
        checks.check(after_s is not None and after_s <= SOON_S[kind],
                     "%s: found after %s s of events" % (name, after_s))


def try_command(binary, checks, folder):
    """The command as it is typed: tables, figures, and input that is kept."""
    figures = os.path.join(folder, "figures.json")
    kept = os.path.join(folder, "kept")
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(DIAGNOSIS, "run"), binary, "--cases", "1", "--classes",
         "ecc,healthy", "--mess", "none,lost", "--json", figures, "--keep", kept],
        capture_output=True, text=True, timeout=120, env=environment(), check=False)
    checks.equal(done.returncode, 0, "exit code of bench/diagnosis/run: " + done.stderr[-500:])
    rows = [line.split("|")[1].strip() for line in done.stdout.split("\n") if line[:1] == "|"]
    checks.equal(rows, ["class", "---", "ecc", "healthy", "all", "mess", "---", "none", "lost",
                        "class", "---", "ecc"], "rows of its tables")
    with open(figures, encoding="utf-8") as file:
        checks.equal(json.load(file)["messes"]["none"]["cases"], 2, "cases in its figures")
    with open(os.path.join(kept, "none", "ecc-000", "truth.json"), encoding="utf-8") as file:
        checks.equal(json.load(file)["roots"][0]["pattern"], "hbm_ecc", "the truth that it keeps")
    checks.check(os.listdir(os.path.join(kept, "lost", "healthy-000", "input")),
                 "it keeps the input")


def try_hours(binary, checks):
    """Healthy hours of a small job; how many of a large one is for bench/diagnosis/hours to say."""
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(DIAGNOSIS, "hours"), binary, "--hours", "1", "--nodes",
         "16", "--gpus", "2", "--minutes", "30"],
        capture_output=True, text=True, timeout=120, env=environment(), check=False)
    checks.equal(done.returncode, 0, "exit code of bench/diagnosis/hours: " + done.stderr[-500:])
    rows = [[cell.strip() for cell in line.split("|")[1:6]] for line in done.stdout.split("\n")
            if line.startswith(("| plain", "| hard"))]
    checks.equal(rows, [["plain", "32", "0.5", "0", "0"], ["hard", "32", "0.5", "0", "0"]],
                 "its table")


def try_comparison(binary, checks, folder):
    """Without PyTorch's analyzer the comparison says so; culprit names whom it should."""
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(DIAGNOSIS, "compare"), binary, "--cases", "1", "--work",
         os.path.join(folder, "none")],
        capture_output=True, text=True, timeout=120, env=environment(), check=False)
    checks.equal(done.returncode, 0, "exit code of bench/diagnosis/compare: " + done.stderr[-500:])
    if "left out" in done.stderr:
        answers = [line.split("|")[3].strip() for line in done.stdout.split("\n")[2:] if line]
        checks.equal(answers, ["1 / 0 / 0 / 0"] * 7 + ["0 / 0 / 0 / 1"], "its table")


def main(binary):
    checks = Checks()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(try_case, binary, checks, kind, number)
                     for kind in incidents.CLASSES for number in range(CASES)]:
            done.result()
    with tempfile.TemporaryDirectory() as folder:
        try_command(binary, checks, folder)
        try_comparison(binary, checks, folder)
    try_hours(binary, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Field reports: what people post about jobs that broke, with what is to be answered.

    run_field_reports.py BINARY [--write] [--extract FOLDER] [--list GRADE,…] [SUITE…]

Each case is analysed as it would be by its owner, and graded as tests/support/field_reports.py
says. field_reports/grades.tsv holds the cases that are not right: no case may have a worse grade
than it says there. `--write` writes that file anew, `--list` shows the cases of some grades, and
`--extract` unpacks the cases to be read.
"""
import argparse
import concurrent.futures
import json
import os
import sys
import tarfile
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "field_reports")
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
import field_reports  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

SUITES = ("launchers", "torch", "taxonomy", "hw")
GRADES_FILE = os.path.join(HERE, "grades.tsv")
RESTARTS = ("right", "undecided", "wrong")
HEADER = "# Cases that are not right, and what is said of a restart. Written by run_field_reports.py.\n"


def extract(suites, folder):
    for suite in suites:
        with tarfile.open(os.path.join(HERE, suite + ".tar.xz")) as archive:
            archive.extractall(folder)


def cases_of(suites, folder):
    return ["%s/%s" % (suite, case) for suite in suites
            for case in sorted(os.listdir(os.path.join(folder, suite)))]


def grade(binary, folder, case):
    """Grade, that of the restart, and the answer in a line."""
    at = os.path.join(folder, case)
    with open(os.path.join(at, "expect.json"), encoding="utf-8") as file:
        want = json.load(file)
    done = run(binary, "analyze", "-q", "-o", "verdicts", "input", folder=at)
    text = run(binary, "analyze", "input", folder=at)
    if done.code != 0 or text.code != 0:
        return "wrong", None, "exit code %d: %s" % (done.code, done.errors() or text.errors())
    verdicts = [json.loads(line) for line in done.text().splitlines()]
    headline = [one["headline"] for one in field_reports.roots_of(verdicts)]
    return *field_reports.grade(want, verdicts, text.text()), (headline + [text.text()])[0]


def read_grades():
    with open(GRADES_FILE, encoding="ascii") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return {case: (grade_of, restart) for case, grade_of, restart in rows}


def write_grades(grades):
    with open(GRADES_FILE, "w", encoding="ascii") as file:
        file.write(HEADER)
        for case, (one, restart, _) in sorted(grades.items()):
            if one != "right" or restart not in (None, "right"):
                file.write("%s\t%s\t%s\n" % (case, one, restart or "right"))


def hold_against(checks, grades, written):
    order = field_reports.GRADES
    for case, (one, restart, answer) in grades.items():
        was, was_restart = written.get(case, ("right", "right"))
        checks.check(order.index(one) <= order.index(was), "%s: %s, it was %s: %.200s"
                     % (case, one, was, answer))
        checks.check(RESTARTS.index(restart or "right") <= RESTARTS.index(was_restart),
                     "%s: of a restart %s, it was %s" % (case, restart, was_restart))


def summary(grades):
    def of(values, wanted):
        return sum(value == wanted for value in values)
    found = [one for one, _, _ in grades.values()]
    restarts = [restart for _, restart, _ in grades.values() if restart]
    return ("%d of %d field reports right, partly %d, silent %d, wrong %d, false alarms %d; "
            "of a restart %d of %d right, undecided %d, wrong %d"
            % (of(found, "right"), len(found), of(found, "partly"), of(found, "silent"),
               of(found, "wrong"), of(found, "false"), of(restarts, "right"), len(restarts),
               of(restarts, "undecided"), of(restarts, "wrong")))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("suites", nargs="*", default=SUITES, metavar="SUITE")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--extract", metavar="FOLDER")
    parser.add_argument("--list", default="", metavar="GRADE,…")
    return parser.parse_args()


def main():
    given = arguments()
    if given.extract:
        extract(given.suites, given.extract)
        return
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        extract(given.suites, folder)
        cases = cases_of(given.suites, folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda case: grade(os.path.abspath(given.binary), folder, case), cases)
        grades = dict(zip(cases, found))
    for case, (one, _, answer) in grades.items():
        if one in given.list.split(","):
            print("%-60s %-7s %.120s" % (case, one, answer.splitlines()[0] if answer else ""))
    print(summary(grades))
    if given.write:
        write_grades(grades)
    hold_against(checks, grades, read_grades())
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()

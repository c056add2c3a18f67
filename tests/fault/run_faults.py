#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds when the world misbehaves: the table of docs/faults.md, row by row.

    run_faults.py BINARY                          the short form, as ./test.sh runs it
    run_faults.py BINARY --long [--times N]       the long form, with the suites that rows name
    run_faults.py BINARY --long --table FILE      … and the table of docs/faults.md to FILE
    run_faults.py BINARY --only F7,F13            some rows
    run_faults.py BINARY --list                   rows, cases and suites

BINARY stands in its build folder, with what is built for tests in tests/ beside it. The rows are in
rows.py. The short form leaves suites that rows name to ./test.sh, which runs them anyway, and sees
that they exist. --times N multiplies the counts of the long form; 0.1 is enough for a look.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from rows import ROWS  # noqa: E402
from world import Context, Failed, Left  # noqa: E402

SUITE_LIMIT_S = 3600


def source_of(suite):
    """The suite's source; None when there is none of this name."""
    folder, _, name = suite.name.partition("/")
    for ending in (".c", ".py"):
        for path in glob.glob(os.path.join(HERE, "..", folder, "**", name + ending),
                              recursive=True):
            return path
    return None


class Suites:
    """Other suites of the test run; each is run once. One thread."""

    def __init__(self, context):
        self.context, self.said = context, {}

    def run(self, suite):
        key = (suite.name, suite.long)
        if key not in self.said:
            self.said[key] = self.run_now(suite)
        return self.said[key]

    def command(self, suite):
        path = source_of(suite)
        name = os.path.basename(suite.name)
        if path.endswith(".c"):
            return [os.path.join(self.context.built, name)]
        if suite.name == "differential/run":
            return [sys.executable, "-B", path, os.path.join(self.context.built, "decode_driver")]
        return [sys.executable, "-B", path, self.context.binary, *suite.long]

    def run_now(self, suite):
        """(passed, what it said last); what is not there is said by the suite itself."""
        more = {"CI": os.environ["CI"]} if "CI" in os.environ else {}
        try:
            done = subprocess.run(self.command(suite), stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=SUITE_LIMIT_S, check=False,
                                  env=environment(CK_DEFAULT_TIMEOUT="120", **more))
        except (OSError, subprocess.TimeoutExpired) as failure:
            return False, str(failure)
        text = (done.stderr + done.stdout).decode("utf-8", "replace").strip()
        if done.returncode != 0:
            return False, text[-2000:]
        counts = [int(found) for found in re.findall(r"Checks: (\d+), Failures: 0", text)]
        if counts:
            return True, "%d tests" % sum(counts)
        found = re.search(r"^(\d+) passed, 0 failed$", text, re.M)
        if found:
            return True, "%s checks" % found.group(1)
        found = re.search(r"^(\d+ records) .*(0 differences)", text, re.M)
        return True, "%s, %s" % found.groups() if found else text.splitlines()[-1]


class Driver:
    def __init__(self, context, checks):
        self.context, self.checks = context, checks
        self.suites = Suites(context)

    def suites_exist(self, row):
        for suite in row.suites:
            path = source_of(suite)
            if not self.checks.check(path is not None, "%s: no suite %s" % (row.name, suite.name)):
                continue
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for test in suite.tests:
                self.checks.check(re.search(r"START_TEST\(%s\)" % re.escape(test), text),
                                  "%s: %s has no test %s" % (row.name, suite.name, test))

    def case(self, row, function):
        """What a case says."""
        began = time.monotonic()
        try:
            said = function(self.context)
            self.checks.check(True, row.name)
        except Left as left:
            said = "left out: %s" % left
            self.checks.skip("%s %s: %s" % (row.name, function.__name__, left))
        except Failed as failed:
            said = "FAILED"
            self.checks.check(False, "%s %s: %s" % (row.name, function.__name__, failed))
        except Exception:  # pylint: disable=broad-except
            said = "FAILED"
            self.checks.check(False, "%s %s: %s" % (row.name, function.__name__,
                                                    traceback.format_exc()))
        finally:
            self.context.end_children()
        print("%-4s %-16s %4.0f s  %s" % (row.name, function.__name__, time.monotonic() - began,
                                          said), flush=True)
        return said

    def suite(self, row, suite):
        began = time.monotonic()
        good, said = self.suites.run(suite)
        self.checks.check(good, "%s: %s: %s" % (row.name, suite.name, said))
        print("%-4s %-16s %4.0f s  %s" % (row.name, suite.name, time.monotonic() - began,
                                          said if good else "FAILED"), flush=True)
        return "`%s`: %s" % (" ".join((suite.name,) + suite.long), said if good else "FAILED")

    def run(self, rows, jobs):
        """For each row, what its cases and suites say."""
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool, \
                concurrent.futures.ThreadPoolExecutor(1) as one_by_one:
            waiting = {}
            # What waits most comes first, so that nothing waits for it at the end.
            for row in sorted(rows, key=lambda row: row.name != "F9"):
                self.suites_exist(row)
                parts = [pool.submit(self.case, row, function) for function in row.cases]
                if self.context.long:
                    parts += [one_by_one.submit(self.suite, row, suite) for suite in row.suites]
                waiting[row.name] = parts
            return [[part.result() for part in waiting[row.name]] for row in rows]


def write_table(path, rows, figures):
    with open(path, "w", encoding="utf-8") as file:
        file.write("| | fault | what was done | what held | figures |\n|---|---|---|---|---|\n")
        for row, found in zip(rows, figures):
            file.write("| %s |\n" % " | ".join([row.name, row.fault, row.done, row.holds,
                                                "; ".join(found)]))


def list_rows(rows):
    for row in rows:
        print("%-4s %s" % (row.name, row.fault))
        for function in row.cases:
            print("       %s.%s" % (function.__module__, function.__name__))
        for suite in row.suites:
            print("       %s %s" % (suite.name, ", ".join(suite.tests)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--times", type=float, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--table")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=3)
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name]
    unknown = set(wanted) - {row.name for row in ROWS}
    if unknown:
        parser.error("no row %s; there are %s" % (", ".join(sorted(unknown)),
                                                  ", ".join(row.name for row in ROWS)))
    rows = [row for row in ROWS if not wanted or row.name in wanted]
    if options.list:
        list_rows(rows)
        return 0
    checks = Checks()
    driver = Driver(Context(os.path.abspath(options.binary), options.long, options.times), checks)
    figures = driver.run(rows, options.jobs)
    if options.table:
        write_table(options.table, rows, figures)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

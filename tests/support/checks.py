# SPDX-License-Identifier: Apache-2.0
"""Counting for the test suites that are Python programs.

A suite makes one Checks, calls its methods, and ends with `sys.exit(checks.finish())`. The last
line it prints is `N passed, N failed`; the same two numbers go to the file that the environment
variable CULPRIT_RESULT_FILE names, for ./test.sh to add up.
"""
import os
import threading

SHOWN_MAX = 40


class Checks:
    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = []
        self.lock = threading.Lock()

    def check(self, condition, what):
        """One thing that must hold; `what` says which and, when it does not, what was seen."""
        with self.lock:
            if condition:
                self.passed += 1
                return True
            self.failed += 1
            if self.failed <= SHOWN_MAX:
                print("FAILED: " + (what() if callable(what) else what), flush=True)
            return False

    def equal(self, got, wanted, what):
        return self.check(got == wanted, lambda: what + ": " + difference(got, wanted))

    def skip(self, reason):
        """Something this machine cannot show; said at the end, and a suite may consist of it."""
        with self.lock:
            self.skipped.append(reason)

    def finish(self):
        for reason in self.skipped:
            print("SKIPPED: " + reason)
        print("%d passed, %d failed" % (self.passed, self.failed))
        path = os.environ.get("CULPRIT_RESULT_FILE")
        if path:
            with open(path, "w", encoding="ascii") as file:
                file.write("%d %d\n" % (self.passed, self.failed))
        return 1 if self.failed or not (self.passed or self.skipped) else 0


def difference(got, wanted):
    """Where two values part, short enough to read in a log."""
    if not isinstance(got, (str, bytes)) or type(got) is not type(wanted):
        return "got %r, expected %r" % (got, wanted)
    newline = b"\n" if isinstance(got, bytes) else "\n"
    got_lines, wanted_lines = got.split(newline), wanted.split(newline)
    for number, (mine, theirs) in enumerate(zip(got_lines, wanted_lines), 1):
        if mine != theirs:
            return "line %d: got %.200r, expected %.200r" % (number, mine, theirs)
    return "got %d lines, expected %d; got ends with %.200r" % (
        len(got_lines), len(wanted_lines), got[-100:])

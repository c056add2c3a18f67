#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Input as it comes where shippers, disks and people are at work: what was sent twice, was copied,
has holes, is compressed while it is read, or stops in the middle.

    run_practice.py BINARY             the short form, as ./test.sh runs it
    run_practice.py BINARY --long      every input of every kind
    run_practice.py BINARY --only NAME,NAME
    run_practice.py BINARY --list      the cases, and what each is after

Each case is a function case_NAME(suite) of a file case_*.py, whose first words say what people meet.
Nothing depends on how long something takes: what must happen is waited for.
"""
import argparse
import concurrent.futures
import glob
import importlib
import os
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
sys.path.insert(0, HERE)
from checks import Checks  # noqa: E402

WORKERS = 2


class Suite:
    def __init__(self, binary, long, checks):
        self.binary, self.long, self.checks = binary, long, checks


def cases():
    found = {}
    for path in sorted(glob.glob(os.path.join(HERE, "case_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for name in sorted(vars(module)):
            if name.startswith("case_"):
                found[name[5:]] = getattr(module, name)
    return found


def play(name, case, suite):
    with tempfile.TemporaryDirectory(prefix="practice.") as folder:
        try:
            case(suite, folder)
        except Exception:  # of one case: the others are still played
            suite.checks.check(False, "%s: %s" % (name, traceback.format_exc()))


def main():
    parser = argparse.ArgumentParser(description="Input as it comes in practice.")
    parser.add_argument("binary")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    found = cases()
    if arguments.list:
        for name, case in found.items():
            print("%-24s %s" % (name, " ".join((case.__doc__ or "").split())))
        return 0
    chosen = [name for name in arguments.only.split(",") if name] or list(found)
    checks = Checks()
    suite = Suite(os.path.abspath(arguments.binary), arguments.long, checks)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(play, name, found[name], suite) for name in chosen]:
            done.result()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

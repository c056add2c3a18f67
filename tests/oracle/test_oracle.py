#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the reference against the recorded answers, so that it can be believed elsewhere."""
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
import first_cause  # noqa: E402
from checks import Checks  # noqa: E402


def text_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def main():
    checks = Checks()
    golden = os.path.join(HERE, "..", "golden")
    folders = sorted(glob.glob(golden + "/first_cause/*/")) + sorted(glob.glob(golden + "/real/*/"))
    checks.equal(len(folders), 82, "number of recorded cases")
    for folder in folders:
        lines = os.path.join(folder, "events.jsonl")
        events = first_cause.events_of_files([lines if os.path.exists(lines) else folder])
        name = os.path.basename(folder.rstrip("/"))
        checks.equal(first_cause.summary_text(events), text_of(folder + "expected.json"),
                     name + " summary")
        checks.equal(first_cause.timeline_text(events), text_of(folder + "expected_timeline.json"),
                     name + " timeline")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clocks as they are met: a line with the date of tomorrow changes no answer; a zone is told of.

    run_clocks.py BINARY

The fixtures of the detectors, as one file and as a file a source: one line of each source is there
a second time, a day ahead. The verdicts are the same, byte for byte, and the line is told of.
"""
import datetime
import glob
import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

FIXTURES = os.path.join(HERE, "..", "golden", "detectors")
DAY_S = 86400
STAMP = re.compile(r'("timestamp":")([0-9]{10})(?=")')  # of an error file
NUMBER = re.compile(r"(?<![\d.])1[67]\d{17}(?!\d)")
MICROSECONDS = re.compile(r"(?<![\d.])1[67]\d{14}(?!\d)")  # of the Inspector
DATE = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d")
ZONED = "thermal_throttle/one_gpu_hw_thermal"
ALONE = "alone further ahead of all others"


def moved(line, seconds):
    """The line with all its times moved."""
    def date(match):
        when = datetime.datetime.strptime(match.group(), "%Y-%m-%dT%H:%M:%S")
        return (when + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    line = STAMP.sub(lambda match: match.group(1) + str(int(match.group(2)) + seconds), line)
    line = NUMBER.sub(lambda match: str(int(match.group()) + seconds * 10**9), line)
    line = MICROSECONDS.sub(lambda match: str(int(match.group()) + seconds * 10**6), line)
    return DATE.sub(date, line)


def fixtures():
    for path in sorted(glob.glob(os.path.join(FIXTURES, "*", "*", "events.jsonl"))):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        sources = {}
        for line in lines:
            sources.setdefault(json.loads(line).get("source", "telemetry"), []).append(line)
        yield "/".join(path.split(os.sep)[-3:-1]), lines, sources


def with_one_ahead(lines, line):
    half = len(lines) // 2
    return lines[:half] + [moved(line, DAY_S)] + lines[half:]


def write(folder, files):
    os.makedirs(folder)
    for name, lines in files.items():
        with open(os.path.join(folder, name + ".jsonl"), "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
    return folder


def roots(text):
    """What is found, without how long it lasted: a hang was last seen in its newest dump."""
    return sorted((verdict["id"], verdict["kind"], verdict["state"], verdict.get("related"),
                   str(verdict["entities"]), verdict.get("attributes", {}).get("culprit.root"))
                  for verdict in map(json.loads, text.splitlines()))


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def analyze(self, what, folder):
        done = run(self.binary, "analyze", "--output", "verdicts", folder)
        self.checks.equal(done.code, 0, what + ": exit code")
        return done.text(), done.errors()

    def of_fixture(self, name, lines, sources):
        for source in sources:
            for split in (False, True):
                what = "%s, %s, %s" % (name, source, "a file a source" if split else "one file")
                files = sources if split else {"all": lines}
                one = source if split else "all"
                ahead = dict(files)
                ahead[one] = with_one_ahead(files[one], sources[source][0])
                with tempfile.TemporaryDirectory() as folder:
                    wanted, _ = self.analyze(what, write(os.path.join(folder, "in"), files))
                    os.rename(os.path.join(folder, "in"), os.path.join(folder, "without"))
                    got, said = self.analyze(what, write(os.path.join(folder, "in"), ahead))
                if source == "fr_dump":
                    got, wanted = roots(got), roots(wanted)
                self.checks.equal(got, wanted, what)
                self.checks.check(ALONE in said, what + ": not told")

    def of_zone(self):
        """Three parts of one source's lines, one of them in another zone: said, with the value."""
        for name, _, sources in fixtures():
            if name != ZONED:
                continue
            for hours in (0, 2, -5):
                lines = sources["dcgm"]
                files = {"part%d" % i: [moved(line, hours * 3600 if i == 2 else 0)
                                        for line in lines[i::3]] for i in range(3)}
                with tempfile.TemporaryDirectory() as folder:
                    _, said = self.analyze("zone", write(os.path.join(folder, "in"), files))
                lines = [line for line in said.splitlines() if "steadily stand" in line]
                what = "%d hours" % hours
                self.checks.equal(len(lines), int(hours != 0), what + ": " + said)
                for line in lines:
                    self.checks.check('timezone: "%+03d:00"' % hours in line
                                      and "part2.jsonl" in line, what + ": " + line)

    def run(self):
        self.of_zone()
        for name, lines, sources in fixtures():
            self.of_fixture(name, lines, sources)
        return self.checks.finish()


if __name__ == "__main__":
    sys.exit(Suite(os.path.abspath(sys.argv[1])).run())

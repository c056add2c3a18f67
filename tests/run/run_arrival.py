#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What culprit writes does not depend on which of its sources it read first.

    run_arrival.py BINARY

Six jobs are spread over two files. One is there first, then the other; then the other way round;
and by turns, a few lines at a time. Nothing is judged before all has come (allowed_lateness is
longer than the jobs), then a late event in each file lets all moments be judged one after another.
The lines must be the same, byte for byte.
"""
import json
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
import run_rolling  # noqa: E402
from checks import Checks  # noqa: E402

JOBS, RANKS = 6, 3
LATE_NS = 2 * 3600 * 10**9
FILES = ("a.jsonl", "b.jsonl")


def make_ranks():
    """The lines of each rank; jobs that come first by name do not come first in time."""
    jobs = [generate.Job("job%d" % (JOBS - n), n + 1, RANKS, steps=6, swing=0.2,
                         leak_rank=n % RANKS, leak_step=2, leak_share=0.3, skew_s=0.3)
            for n in range(JOBS)]
    return [list(generate.Rank(job, rank).lines()) for job in jobs for rank in range(RANKS)]


def spread(ranks, seed):
    """Two texts: whole ranks are in one of them, in any order; and a late event for each."""
    chance = random.Random(seed)
    shuffled = ranks[:]
    chance.shuffle(shuffled)
    half = len(shuffled) // 2
    parts = [[line for rank in part for line in rank]
             for part in (shuffled[:half], shuffled[half:])]
    last = max(json.loads(line)["timestamp_ns"] for part in parts for line in part)
    ends = [json.dumps(dict(json.loads(part[-1]), timestamp_ns=last + LATE_NS)) for part in parts]
    return parts, ends


class Raced(run_rolling.Followed):
    """culprit over the two files, which are written as a test says."""

    def __init__(self, binary, folder):
        super().__init__(binary, folder)
        path = os.path.join(folder, "culprit.yaml")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["processors"] = {"job_filter": {"job_id": "each"}}
        config["service"]["pipelines"]["memory"]["allowed_lateness"] = "1h"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.count = 0

    def append(self, number, lines):
        with open(os.path.join(self.input, FILES[number]), "a", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        self.count += len(lines)
        return self.wait_for(lambda: self.accepted() >= self.count)


def a_first(parts):
    return [(0, parts[0]), (1, parts[1])]


def b_first(parts):
    return [(1, parts[1]), (0, parts[0])]


def by_turns(parts):
    step = 100
    return [(number, parts[number][at:at + step])
            for at in range(0, max(map(len, parts)), step) for number in (1, 0)]


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def written(self, what, parts, ends, order):
        with tempfile.TemporaryDirectory() as folder:
            one = Raced(self.binary, folder)
            taken = one.start()
            try:
                for number, lines in order(parts):
                    taken = taken and one.append(number, lines)
                self.checks.check(one.evaluations() == 0, what + ": judged before all had come")
                for number, end in enumerate(ends):
                    taken = taken and one.append(number, [end])
                judged = one.wait_for(lambda: one.evaluations() > 0)
            finally:
                code = one.stop()
            self.checks.equal((taken, judged, code), (True, True, 0), what)
            return one.lines_out()

    def run(self):
        for seed in (1, 2, 3):
            parts, ends = spread(make_ranks(), seed)
            wanted = self.written("seed %d" % seed, parts, ends, a_first)
            jobs = {json.loads(line)["job_id"] for line in wanted}
            self.checks.equal(len(jobs), JOBS, "seed %d: jobs that are told of" % seed)
            for order in (b_first, by_turns):
                what = "seed %d, %s" % (seed, order.__name__)
                lines = self.written(what, parts, ends, order)
                different = [number for number, pair in enumerate(zip(lines, wanted), 1)
                             if pair[0] != pair[1]]
                self.checks.equal((len(lines), different[:3]), (len(wanted), []),
                                  what + ": lines, and the first that differ")
        return self.checks.finish()


if __name__ == "__main__":
    sys.exit(Suite(os.path.abspath(sys.argv[1])).run())

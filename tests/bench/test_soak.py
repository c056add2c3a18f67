#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/soak makes of its looks, and what it sends: growth, lag and loss are told, ups and
downs are not. Runs no pipeline."""
import collections
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import soak_figures  # noqa: E402
import soak_load  # noqa: E402
from checks import Checks  # noqa: E402

HOUR_S, MIB = 3600, 1 << 20
LEVEL = {"rss": 50 * MIB, "held": 20 * MIB, "store": 30 * MIB, "descriptors": 70, "threads": 16,
         "behind": 0, "open": 0, "late_s": 2.5, "calm": True}


def looks(change=lambda at_s: {}, whole_s=HOUR_S):
    return [soak_figures.Look(**{"at_s": at_s, "alive_s": at_s, **LEVEL, **change(at_s)})
            for at_s in range(0, whole_s, 5)]


def judged(change=lambda at_s: {}, whole_s=HOUR_S):
    return soak_figures.judged(looks(change, whole_s), whole_s, 60, 10)


def check_growth(checks):
    checks.equal(judged(), [], "all level")
    checks.equal(judged(lambda at: {"rss": (50 + 5 * (at % 60 > 30)) * MIB}), [], "ups and downs")
    checks.equal(judged(lambda at: {"rss": (50 + min(at / 60, 15)) * MIB}), [], "the warm-up")
    checks.equal(judged(lambda at: {"rss": (50 + at / 200) * MIB}),
                 ["rss grew from 56.8 to 65.8 MiB (median): at most 5 % and 2 more are allowed"],
                 "a third of a MiB a minute")
    checks.equal(judged(lambda at: {"threads": 16 + (at > 3000)}),
                 ["threads grew from 16.0 to 17.0 (median): at most 0 % and 0 more are allowed"],
                 "a thread")
    checks.equal(len(judged(lambda at: {"descriptors": 70 + at // 200})), 1, "descriptors")
    checks.equal(len(judged(lambda at: {"store": (30 + at / 100) * MIB})), 1, "the store")
    checks.equal(judged(lambda at: {"held": (20 + at / 60) * MIB}, 500), [],
                 "a short run is not judged by it")
    checks.equal(judged(lambda at: {"rss": MIB if at % 600 < 30 else 50 * MIB,
                                    "alive_s": at % 600}), [], "after each kill it is small")
    checks.equal(len(judged(lambda at: {"alive_s": at % 50})), 1, "it is never warm")


def check_leak_and_peak(checks):
    """A leak of 1 % a minute is told by both figures of memory, a single peak by none; by made-up
    series that are as rough as those of a run."""
    def rough(at_s):
        return (at_s * 7919 % 101 - 50) / 100       # -0.5 to 0.5, MiB

    def leaking(share, whole_s):
        return judged(lambda at: {
            name: (start * (1 + share * at / 60) + rough(at)) * MIB
            for name, start in (("rss", 58), ("held", 38.5))}, whole_s)

    for minutes in (20, 35, 60):
        checks.equal([line.split()[0] for line in leaking(0.01, minutes * 60)], ["rss", "held"],
                     "1 %% a minute, in %d minutes" % minutes)
        checks.equal(leaking(0.0005, minutes * 60), [],
                     "0.05 %% a minute, in %d minutes, is within the bounds" % minutes)
    for begin, end in ((2750, 2820), (3100, 3180), (3520, 3600)):
        checks.equal(judged(lambda at, begin=begin, end=end: {
            "held": (44.0 if begin <= at < end else 38.5 + rough(at)) * MIB,
            "rss": (75 if begin <= at < end else 58) * MIB,
            "descriptors": 90 if begin <= at < end else 70}), [],
            "one peak from %d to %d s" % (begin, end))
    checks.equal([line.split()[0] for line in judged(lambda at: {
        "held": (44.0 if at > 2700 and at % 100 < 30 else 38.5) * MIB})], ["held"],
        "peaks that come again and again behind the first third")
    checks.equal([line.split()[0] for line in judged(lambda at: {
        "held": (38.5 if at < 2900 else 44.0) * MIB})], ["held"], "a step that stays")


def check_lag(checks):
    checks.equal(judged(lambda at: {"late_s": 60 if at % 100 < 10 else 2}), [], "two late looks")
    checks.equal(judged(lambda at: {"late_s": 60, "calm": False} if 900 < at < 990 else {}), [],
                 "while something holds it up")
    checks.equal(judged(lambda at: {"late_s": 11.5} if 900 <= at < 920 else {}),
                 ["it lags from 900 s on: 0 events behind, the newest evaluated sample is 11.5 s "
                  "old (at most 10.0 s)"], "three late looks")
    checks.equal(len(judged(lambda at: {"behind": 1} if at >= 300 else {}, 500)), 1,
                 "events that are not taken, also in a short run")
    checks.equal(soak_figures.lost({0: 10, 1: 20, 2: 5}, {0: 10, 1: 19, 2: 6}),
                 ["job soak-1: 20 samples were sent, 19 taken",
                  "job soak-2: 5 samples were sent, 6 taken"], "lost, and taken twice")
    checks.check(len(soak_figures.summary(looks(), HOUR_S, 60)) == 7, "the report")


def check_load(checks):
    """Each sample of each rank is sent once, under its job, whatever holds a node back."""
    plan = soak_load.Plan(ranks=32, rate=320, job_s=2)
    due, sent = [0], collections.Counter()
    plan.due = lambda: due[0]
    with tempfile.TemporaryDirectory() as folder:
        load = soak_load.Load(plan, folder, 1)
        load.plan.start_ns = 10**18
        load.writer.turn(0)
        load.poster.post = lambda job, events, refused, body: sent.update(posted(job, events, body))
        for due[0] in (0, 3, 3, 17, 45, 59):
            if due[0] == 17:
                load.hold_back(1000)
            load.round()
        load.paused = {}
        load.round()
        written = sum(load.written.values())
        for node, file in load.files.items():
            with open(file.path(), "rb") as source:
                sent.update(keys(source.read()))
            checks.check(node % 2 == 0, "every other node has a file")
        moved = soak_load.NodeFile(folder, 100)
        moved.lines = soak_load.ROLL_LINES + 1
        moved.write(b"one\n")
        checks.equal(moved.lines, 1, "a file that rolled")
    wanted = {("soak-%d" % (i // 20), rank, 10**18 + i * 10**8) for i in range(59)
              for rank in range(32)}
    checks.equal(set(sent), wanted, "samples")
    checks.equal(max(sent.values()), 1, "none twice")
    checks.equal(written, 59 * 16, "half of them by file")


def keys(data):
    for line in data.splitlines():
        one = json.loads(line)
        yield one["job_id"], one["rank"], one["timestamp_ns"]


def posted(job, events, body):
    found = list(keys(body))
    assert len(found) == events and {key[0] for key in found} == {"soak-%d" % job}
    return found


def main():
    checks = Checks()
    check_growth(checks)
    check_leak_and_peak(checks)
    check_lag(checks)
    check_load(checks)
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()

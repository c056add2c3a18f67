#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The detectors in a culprit that runs on and is killed again and again.

    run_node_crash.py BINARY [KILLS [DETECTOR…]]      (60 kills, spread over the fixtures of all
                                                       detectors, and two at least for each)

The lines of each fixture are appended to a file while culprit follows it with a store and is
killed; after the last restart it is stopped. The last word on each verdict must be that of a run
over the whole file, and the file of verdicts the one of a run that was never killed.
"""
import json
import os
import random
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, GOLDEN)
import run_crash  # noqa: E402
import run_detectors  # noqa: E402
from checks import Checks  # noqa: E402
from process import run as run_once  # noqa: E402

KILLS = 60
KILLS_LEAST = 2
SEED = 99
CHUNKS = 12


class Run(run_crash.Run):
    """One fixture: its lines in order of time, in a file of their own."""

    def __init__(self, binary, folder, lines):
        self.lines = sorted(lines, key=time_of)
        super().__init__(binary, folder)
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["exporters"] = {"json": {"path": self.output}}
        config["service"]["pipelines"] = {"all": {
            "receivers": sorted(self.receivers()), "preset": "all", "exporters": ["json"],
            "evaluate_every": "10s", "allowed_lateness": "1s", "idle_timeout": "1h",
            "caught_up_timeout": "1h"}}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def receivers(self):
        return {"file": {"include": [self.input + "/*.jsonl"], "poll_interval": "20ms"}}

    def write_all(self, kills=0):
        size = max(1, len(self.lines) // CHUNKS)
        chunks = [self.lines[at:at + size] for at in range(0, len(self.lines), size)]
        for number, chunk in enumerate(chunks):
            while self.kills < kills * number // len(chunks):
                time.sleep(0.002)
            with open(os.path.join(self.input, "all.jsonl"), "ab", buffering=0) as file:
                for line in chunk:
                    data = line.encode()
                    file.write(data[:len(data) // 2])
                    file.write(data[len(data) // 2:])


class Posted(Run):
    """The same by HTTP, one line a request."""

    def receivers(self):
        return {"http": {"endpoint": "127.0.0.1:%d" % self.port, "ack": "stored"}}

    def write_all(self, kills=0):
        for number, line in enumerate(self.lines):
            while self.kills < kills * number // len(self.lines):
                time.sleep(0.002)
            self.post(str(number), [line.rstrip("\n")])


def time_of(line):
    record = json.loads(line)
    return record.get("observed_time_ns") or record["timestamp_ns"]


def last_words(text):
    """The last state of each verdict that stands, without what depends on when it was said, and
    without the name of the input, which is another one when it is followed."""
    last = {}
    for line in text.splitlines():
        verdict = json.loads(re.sub(r"\([\w./-]+\.jsonl: ", "(", line))
        last[verdict["id"]] = verdict
    for verdict in last.values():
        verdict["said"] = verdict.pop("state") == "resolved"
    return sorted((json.dumps(verdict, sort_keys=True) for verdict in last.values()
                   if not verdict["said"]))


def follow(binary, lines, kills, chance, checks, what, kind=Run):
    with tempfile.TemporaryDirectory() as folder:
        run = kind(binary, folder, lines)
        run.start()
        run.kill_at_random(kills, chance)
        checks.equal(run.stop(), 0, what + ": exit code: " + run.log_text()[-1500:])
        checks.equal(run.failures, [], what + ": requests that were not acknowledged")
        checks.check("Sanitizer" not in run.log_text(), what + ": the sanitizer complains")
        return run.bytes_of(run.output).decode()


def case(binary, detector, name, place, kills, chance, checks):
    what = detector + "/" + name
    with open(os.path.join(place, "events.jsonl"), encoding="utf-8") as file:
        lines = file.readlines()
    whole = run_once(binary, "analyze", "--quiet", "--output", "verdicts",
                     os.path.join(place, "events.jsonl")).text()
    undisturbed = follow(binary, lines, 0, chance, checks, what + ", undisturbed")
    checks.equal(last_words(undisturbed), last_words(whole), what + ": live against at once")
    killed = follow(binary, lines, kills, chance, checks, what + ", killed")
    checks.equal(killed, undisturbed, what + ": killed against undisturbed")
    if detector == "incident":
        posted = follow(binary, lines, kills, chance, checks, what + ", posted", Posted)
        checks.equal(posted, undisturbed, what + ": posted against followed")


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    checks = Checks()
    chance = random.Random(SEED)
    chosen = sys.argv[3:]
    found = [found for found in run_detectors.cases() if not chosen or found[0] in chosen]
    each = max(KILLS_LEAST, kills // len(found))
    for detector, name, place in found:
        case(binary, detector, name, place, each, chance, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Span streams in a culprit that runs on and is killed again and again.

    run_spans_crash.py BINARY [KILLS]      (40 kills, spread over the streams)

The lines of each recorded stream are appended to a file, in pieces, while culprit follows it with a
store and is killed; after the last restart it is stopped. Its last document must be the one of the
real dask. Where the questions of a case name a clock for the end of the stream, which a culprit that
runs on is not asked, it must be the one of a culprit that reads the stream at once.
"""
import json
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SPANS = os.path.join(HERE, "..", "golden", "spans")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
import run_crash  # noqa: E402
import run_node_crash  # noqa: E402
from checks import Checks  # noqa: E402
from process import run as run_once  # noqa: E402
from spans_random import differences  # noqa: E402

KILLS = 40
SEED = 39
LONG_ENOUGH = 20  # lines; shorter streams are through before the first kill


class Stream(run_node_crash.Run):
    """One stream, in the order of its lines."""

    def __init__(self, binary, folder, lines):
        run_crash.Run.__init__(self, binary, folder)
        self.lines = lines
        self.spans = os.path.join(folder, "spans.jsonl")
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["exporters"] = {"json": {"path": self.spans, "content": "spans"}}
        config["processors"] = {"spans": {}}
        config["service"]["pipelines"] = {"spans": {
            "receivers": ["file"], "processors": ["spans"], "exporters": ["json"],
            "evaluate_every": "1s", "allowed_lateness": "1s", "idle_timeout": "1h",
            "caught_up_timeout": "1h"}}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def receivers(self):
        return {"file": {"include": [self.input + "/*.jsonl"], "poll_interval": "20ms",
                         "format": "spans"}}


def without_queries(document):
    return {key: value for key, value in document.items()
            if key not in ("queries", "source", "made_with")}


def compare(got, wanted):
    return differences(dict(without_queries(got), queries=[]),
                       dict(without_queries(wanted), queries=[]))


def follow(binary, name, lines, wanted, kills, chance, checks):
    what = name + ", killed"
    with tempfile.TemporaryDirectory() as folder:
        run = Stream(binary, folder, lines)
        run.start()
        run.kill_at_random(kills, chance)
        checks.equal(run.stop(), 0, what + ": exit code: " + run.log_text()[-1500:])
        checks.check("Sanitizer" not in run.log_text(), what + ": the sanitizer complains")
        documents = run.bytes_of(run.spans).decode().splitlines()
        checks.check(documents, what + ": no document")
        if documents:
            checks.equal(compare(json.loads(documents[-1]), wanted), [], what)


def wanted_of(binary, place, lines):
    with open(os.path.join(place, "expected.json"), encoding="utf-8") as file:
        wanted = json.load(file)
    with open(os.path.join(place, "queries.json"), encoding="utf-8") as file:
        if "now" not in json.load(file):
            return wanted
    done = run_once(binary, "analyze", "--quiet", "--output", "spans",
                    os.path.join(place, "events.jsonl"))
    at_once = json.loads(done.text())
    assert at_once["now"] == json.loads(lines[-1])["ts"] != wanted["now"], at_once["now"]
    return at_once


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    checks = Checks()
    chance = random.Random(SEED)
    streams = []
    for name in sorted(os.listdir(SPANS)):
        place = os.path.join(SPANS, name)
        if not os.path.exists(os.path.join(place, "expected.json")):
            continue
        with open(os.path.join(place, "events.jsonl"), encoding="utf-8", newline="\n") as file:
            lines = file.readlines()
        if len(lines) >= LONG_ENOUGH:
            streams.append((name, lines, wanted_of(binary, place, lines)))
    for name, lines, wanted in streams:
        follow(binary, name, lines, wanted, max(1, kills // len(streams)), chance, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

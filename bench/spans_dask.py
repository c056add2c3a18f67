#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a span stream costs the real dask: the package's own classes, driven as in tests/oracle.

    spans_dask.py EVENTS.jsonl FIRST

Lines are read beforehand, and those before FIRST (from 0) are applied untimed; then the rest, with
a clock: CPU time of the calls into dask with what they need already at hand. json.loads of the same
lines is timed by itself. Then all spans are merged and asked everything. Prints one JSON object.
"""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "oracle"))
import spans_dask  # noqa: E402
import spans_lines  # noqa: E402


class Anything:
    def __eq__(self, other):
        return True

    __hash__ = None


class GoodStream:
    """The view of a reader that believes every line."""

    def __init__(self):
        self.started, self.workers = False, set()

    def group_of(self, _):
        return Anything()

    def has_span(self, _):
        return True


def seconds_of(run):
    begun = time.process_time()
    run()
    return time.process_time() - begun


def main(path, first):
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    view = GoodStream()
    events = []
    for line in lines:
        events.append(spans_lines.read_line(line, view))
        view.started = True
    scheduler = spans_dask.Scheduler()
    for event in events[:first]:
        scheduler.apply(*event)
    measured = [(scheduler.handlers[kind], clock, what) for kind, clock, what in events[first:]]
    clock = scheduler.clock

    def apply():
        for handler, now, what in measured:
            clock.now = now
            handler(what)

    def read():
        for line in lines[first:]:
            json.loads(line)

    def merge():
        spans_dask.span_dump(scheduler, scheduler.extension.merge_all())

    apply_s, read_s = seconds_of(apply), seconds_of(read)
    merge_s = seconds_of(merge)
    if merge_s < 0.2:
        merge_s = min(merge_s, *(seconds_of(merge) for _ in range(3)))
    count = len(measured)
    print(json.dumps({"spans": len(scheduler.extension.spans), "events": count,
                      "apply_ns_per_event": round(apply_s * 1e9 / count, 1),
                      "json_ns_per_event": round(read_s * 1e9 / count, 1),
                      "merge_all_us": round(merge_s * 1e6, 1)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit beside the real dask on random span streams.

    run_spans_random.py BINARY                     as the test suite runs it
    run_spans_random.py BINARY --streams 5000 [--seed N] [--lines N] --fetch
    run_spans_random.py BINARY --write             records spans_random/ anew
    run_spans_random.py BINARY --show SEED FOLDER  one stream as files, to look into

The suite replays the recording in spans_random/: streams, questions, and the answers that dask's
`distributed` 2026.8.0 gave (tests/oracle/spans_dask.py). Where that package can be found it is also
asked about fresh streams. --fetch gets it from PyPI first (some 60 MB, kept in ~/.cache).
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
import dask_server  # noqa: E402
import spans_random  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

RECORDING = os.path.join(HERE, "spans_random", "streams.jsonl.gz")
RECORDED = 100
FRESH = 200  # where dask is found
FRESH_SEED = 1000000
# What streams must reach, or they show too little.
REACHED = {
    *("refused " + code for code in (
        "bad-json", "bad-event", "bad-field", "not-started", "already-started", "duplicate-worker",
        "unknown-worker", "bad-span", "group-mismatch", "bad-state", "unknown-task", "bad-entry",
        "unknown-span")),
    *(op + " answered" for op in (
        "span", "spans", "roots", "task", "find_by_name", "find_by_tags", "merge", "merge_by_tags",
        "merge_all")),
    *(op + ": nothing-to-merge" for op in ("merge_by_tags", "merge_all")),
    "span: unknown-span", "merge: unknown-span", "task: unknown-task", "merge_all with after",
    "span with now", "a now of the document", "the clock went backwards", "a group's name used again", "an entry refused",
    *(kind + what for kind in ("", "merged, ") for what in (
        "done", "not done", "no intervals", "three intervals", "zero threads", "idle", "no idle",
        "bytes", "code", "a child", "no groups", "start", "stop is enqueued", "idle not last",
        "three actions", "released", "processing", "memory", "erred", "forgotten")),
    "merged, a gap", "collections", "three deep", "default", "three groups", "id of another branch"}


def lines_of(seed, most):
    return 20 + seed % max(most - 20, 1)


def read_recording():
    with gzip.open(RECORDING, "rt", encoding="ascii") as file:
        return [json.loads(line) for line in file]


def write_recording(dask):
    os.makedirs(os.path.dirname(RECORDING), exist_ok=True)
    with open(RECORDING, "wb") as raw, gzip.GzipFile(
            filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=9) as file:
        for seed in range(RECORDED):
            stream = spans_random.Stream(seed, lines_of(seed, 60))
            record = {"seed": seed, "events": stream.events.decode("latin-1"),
                      "queries": stream.queries,
                      "expected": dask.document(stream.events, stream.queries)}
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return path


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        self.reached = set()
        self.lock = threading.Lock()

    def stream(self, what, seed, events, queries, expected):
        """One stream, in batches of a size that goes by the seed."""
        with self.lock:
            self.reached |= spans_random.features(expected, queries)
        name = os.path.join(self.folder, "%s-%d" % (what, seed))
        arguments = ["analyze", "--quiet", "--output", "spans"]
        arguments += [(), ("--set", "service.batch_size=1"),
                      ("--set", "service.batch_size=7")][seed % 3]
        done = run(self.binary, *arguments, "--queries",
                   write(name + ".json", json.dumps(queries).encode()),
                   write(name + ".jsonl", events))
        what = "%s stream %d" % (what, seed)
        try:
            found = spans_random.differences(json.loads(done.text()), expected)
        except (ValueError, LookupError, TypeError) as error:
            found = ["no document of spans (%r): exit code %d, %s %.500s"
                     % (error, done.code, done.errors()[-500:], done.text())]
        self.checks.check(not found, lambda: "%s: %s" % (what, "; ".join(found[:4])))
        os.unlink(name + ".json")
        os.unlink(name + ".jsonl")

    def replay(self, pool):
        records = read_recording()
        self.checks.equal(len(records), RECORDED, "number of recorded streams")
        for record in records:
            pool.submit(self.guarded, "recorded", record["seed"],
                        record["events"].encode("latin-1"), record["queries"],
                        record["expected"])

    def guarded(self, *stream):
        try:
            self.stream(*stream)
        except Exception as error:  # pylint: disable=broad-except
            self.checks.check(False, "%s stream %d: %r" % (*stream[:2], error))

    def fresh(self, pool, dask, seed, count, most):
        for number in range(seed, seed + count):
            stream = spans_random.Stream(number, lines_of(number, most))
            pool.submit(self.guarded, "fresh", number, stream.events, stream.queries,
                        dask.document(stream.events, stream.queries))

    def reaches(self):
        self.checks.equal(sorted(REACHED - self.reached), [], "what no stream reached")


def suite(options, interpreter):
    with tempfile.TemporaryDirectory() as folder:
        checked = Suite(options.binary, folder)
        # Leaving the block waits for what was submitted.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            checked.replay(pool)
        checked.reaches()
        if interpreter is None:
            checked.checks.skip("distributed %s is not here, so dask was asked about no fresh "
                                "streams (--fetch gets it)" % dask_server.VERSION)
        else:
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, \
                    dask_server.Dask(interpreter) as dask:
                checked.fresh(pool, dask, options.seed, options.streams, options.lines)
        return checked.checks.finish()


def show(options, interpreter):
    seed, folder = int(options.show[0]), options.show[1]
    os.makedirs(folder, exist_ok=True)
    stream = spans_random.Stream(seed, lines_of(seed, options.lines))
    write(os.path.join(folder, "events.jsonl"), stream.events)
    write(os.path.join(folder, "queries.json"), json.dumps(stream.queries, indent=1).encode())
    with dask_server.Dask(interpreter) as dask:
        expected = dask.document(stream.events, stream.queries)
    write(os.path.join(folder, "expected.json"), json.dumps(expected, indent=1).encode())
    return 0


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--streams", type=int, default=FRESH, help="fresh ones, where dask is")
    parser.add_argument("--seed", type=int, default=FRESH_SEED, help="of the first of them")
    parser.add_argument("--lines", type=int, default=120, help="at most, of a fresh stream")
    parser.add_argument("--fetch", action="store_true", help="get dask when it is not here")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", nargs=2, metavar=("SEED", "FOLDER"))
    options = parser.parse_args(arguments)
    interpreter = dask_server.python(options.fetch or options.write or bool(options.show))
    if options.show:
        return show(options, interpreter)
    if options.write:
        with dask_server.Dask(interpreter) as dask:
            write_recording(dask)
        return 0
    return suite(options, interpreter)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""What a line of a span stream costs culprit, and what it costs the real dask (bench.py)."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "support"))
import fetched  # noqa: E402

PACKAGE, VERSION = "distributed", "2026.8.0"
SPANS = (10, 1000, 100000)
RANKS = 8
DASK_EVENTS = 20000


def dask_python(say):
    """Who can ask dask, and why nobody can."""
    python = fetched.found(PACKAGE, VERSION)
    if python is not None:
        return python, None
    say("fetching %s %s" % (PACKAGE, VERSION))
    try:
        return fetched.fetch(PACKAGE, VERSION), None
    except RuntimeError as error:
        return None, str(error)


def dask(bench, python, row):
    """The same stream, with as few timed lines as dask has patience for."""
    path = os.path.join(bench.folder, "spans.jsonl")
    first = row["first_lines"]
    with open(path, "wb") as sink:
        subprocess.run([bench.program("bench/culprit_generate"), "--spans", str(row["spans"]),
                        "--ranks", str(RANKS), "--events", str(DASK_EVENTS)],
                       stdout=sink, check=True)
    with open(path, "rb") as file:
        lines = sum(1 for _ in file)
    if lines <= first:
        raise SystemExit("bench: the stream of %d spans has no line beyond the first %d"
                         % (row["spans"], first))
    try:
        return bench.said(python, "-B", os.path.join(HERE, "spans_dask.py"), path, str(first))
    finally:
        os.unlink(path)


def measure(bench, rounds, say):
    """Nanoseconds of CPU time a line, from its bytes to the state it changes; one core.

    Each opening of a phase leaves a group, and a question goes over all of them: so culprit is
    asked after as many lines as dask is, whatever it was timed with.
    """
    rows = bench.medians_said(rounds, bench.program("bench/bench_spans"), "300000",
                              *map(str, SPANS))
    python, why = dask_python(say)
    for row in rows:
        row["ns_per_event"] = round(row["decode_ns_per_event"] + row["apply_ns_per_event"], 1)
        row["events_per_s"] = round(1e9 / row["ns_per_event"])
        if python is None:
            continue
        row["dask"] = dask(bench, python, row)
        same = bench.said(bench.program("bench/bench_spans"), str(row["dask"]["events"]),
                          str(row["spans"]))
        row["merge_all_us_after_as_many"] = same[0]["merge_all_us"]
        row["dask/culprit"] = round((row["dask"]["json_ns_per_event"] +
                                     row["dask"]["apply_ns_per_event"]) / row["ns_per_event"], 1)
        row["merge_all_dask/culprit"] = round(
            row["dask"]["merge_all_us"] / row["merge_all_us_after_as_many"], 1)
    report = {"rows": rows, "dask": "%s %s" % (PACKAGE, VERSION)}
    if why is not None:
        report["dask"] = why
    return report

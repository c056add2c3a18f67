#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of bench/run: from a document of figures to rows, aims and pages; and what is compared
with which earlier state. Measures nothing."""
import copy
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import against  # noqa: E402
import bench  # noqa: E402
import logs  # noqa: E402
import table  # noqa: E402
from checks import Checks  # noqa: E402

MACHINE = {"cpu": "CPU", "cores": 2, "system": "Linux"}
FILES = {
    "machine": MACHINE, "input": {"events": 1000, "bytes": 640000, "bytes_per_event": 640},
    "python_decoder": "orjson",
    "programs": {"culprit": {"cpu_s": 0.4, "events_per_s": 2500000}},
    "ratios": {"culprit/grep": 0.9, "culprit/cat": 0.7, "python_loop/culprit": 6.5},
    "all_cores": {"threads": 2, "wall_s_one": 0.4, "wall_s_all": 0.25, "times": 1.6},
    "limits": {"bytes": 640000, "read_s": 0.1, "memory_s": 0.00001},
    "stages": [{"ranks": 8, "ns_per_event": 200.0, "decode_ns_per_event": 90.0},
               {"ranks": 64, "ns_per_event": 210.0, "decode_ns_per_event": 100.0},
               {"ranks": 16384, "ns_per_event": 230.0, "decode_ns_per_event": 120.0}],
    "growth": 1.15,
    "decode": {"ratio": 48.0},
    "allocations": [{"pipeline": "live", "allocations_per_event": 0.0},
                    {"pipeline": "all", "peak_bytes": 70, "peak_bytes_allowed": 100,
                     "peak_bytes_per_kept_sample": 60.0}],
    "kinds": [{"kind": kind, "events_per_second": rate, "bytes_per_event": 280,
               "megabytes_per_second": 100, "decode_ns_per_event": 900,
               "detectors_ns_per_event": 80, "evaluation_ms": 0.25,
               "at_100_a_second": {"events_per_second": 150000}}
              for kind, rate in (("xid", 300000), ("py_spy", 90000))] + [
        {"kind": "fr_dump", "entries_per_event": 4, "events_per_second": 80000,
         "bytes_per_event": 2598, "megabytes_per_second": 200, "decode_ns_per_event": 9000,
         "detectors_ns_per_event": 300, "evaluation_ms": 0.25,
         "at_100_a_second": {"events_per_second": 70000}}],
    "spans": {"rows": [
        {"spans": 10, "ns_per_event": 140.0, "merge_all_us": 1000.0},
        {"spans": 100000, "ns_per_event": 160.0, "merge_all_us": 4000.0, "dask/culprit": 20.0,
         "merge_all_dask/culprit": 110.0}]},
}
LIVE = {
    "machine": MACHINE, "limits": {"http_events_per_s": 4000000, "exec_ms": 2.0},
    "live": {"http": [{"ack": "accepted", "connections": 8, "events_per_s": 2000000,
                       "culprit_cpu_s_per_million": 1.0},
                      {"ack": "stored", "connections": 1, "events_per_s": 300000,
                       "culprit_cpu_s_per_million": 2.0}],
             "verdict_latency": [{"ranks": 8, "p99_ms": 9.0}, {"ranks": 10000, "p99_ms": 4.0},
                                 {"ranks": 10000, "p99_ms": 4.5}],
             "backlog": {"events": 1000000, "threads": 2, "rounds": 5, "events_per_s": 2500000,
                         "times_one_thread": 1.6},
             "start": {"median_ms": 10.0},
             "aims": [{"aim": "at rest, RSS MiB", "measured": 13, "at_most": 12, "met": False}]},
}


def cells(report, name):
    for line in table.markdown(report).splitlines():
        if line.startswith("| %s |" % name):
            return [cell.strip() for cell in line.strip("|").split("|")][1:]
    return None


def check_files(checks):
    checks.equal(cells(FILES, "file to summary, one core"),
                 ["0.400 s, 2.50 M events/s", "0.90 of `grep -F`'s time", "–",
                  "25 % of `read()` alone", "≤ 0.8 of `grep -F`: **not met**"], "one core")
    checks.equal(cells(FILES, "the same, beside a Python loop")[1:],
                 ["6.5 × a loop over orjson", "–", "–", "≥ 6 ×: met"], "a Python loop")
    checks.equal(cells(FILES, "file to summary, 2 cores"),
                 ["0.250 s, 1.60 × one core", "–", "–", "80 % of 2 ×", "≥ 1.8 ×: **not met**"],
                 "two cores")
    # 640 bytes at 64 GB/s are 10 ns.
    checks.equal(cells(FILES, "decoder"), ["100 ns an event", "48 × jansson", "–",
                                           "10 % of memory's bandwidth", "≥ 30 × jansson: met"],
                 "the decoder, at 64 ranks")
    checks.equal(cells(FILES, "cost of an event at 16,384 ranks")[0], "1.15 × that at 8", "growth")
    checks.equal(cells(FILES, "slowest kind of record (py_spy)")[4],
                 "≥ 0.1 M events/s: **not met**", "the slowest kind: a dump is its entries")
    checks.equal(table.slowest_kind_s("xid")(FILES["kinds"]), 1 / 300000,
                 "of two programs the same kind is compared")
    checks.equal(cells(FILES, "a line of spans, decoded and applied"),
                 ["160 ns", "20.0 × dask", "–", "–", "≤ 150 ns: **not met**"], "the dearest line")
    checks.equal(cells(FILES, "`merge_all` of 100,000 spans")[4], "≥ 100 × dask: met", "merge_all")
    one = copy.deepcopy(FILES)
    one["all_cores"]["threads"] = 4
    checks.equal(cells(one, "file to summary, 4 cores")[3:], ["40 % of 4 ×", "–"],
                 "the aim of two cores is theirs")
    del one["limits"]
    checks.equal(cells(one, "decoder")[3], "–", "a document without limits")
    alone = copy.deepcopy(FILES)
    for row in alone["spans"]["rows"]:
        row.pop("dask/culprit", None)
        row.pop("merge_all_dask/culprit", None)
    checks.equal(cells(alone, "`merge_all` of 100,000 spans"), ["4.00 ms", "–", "–", "–", "–"],
                 "without dask there is no aim to meet")


def check_logs(checks):
    report = {"machine": MACHINE, "logs": {
        "words": "a|b", "ripgrep": "not installed",
        "rows": [{"log": "training log", "bytes": 200000000, "lines": 1500000, "cpu_s": 0.2,
                  "mb_per_s": 1000, "culprit/grep": 1.4}],
        "all_cores": [{"threads": 2, "files": 1, "times": 1.7},
                      {"threads": 2, "files": 8, "times": 1.9}]}}
    report["logs"]["aims"] = logs.aims(report["logs"])
    made = table.page("<!-- logs -->\nold\n<!-- /logs -->\n", report)
    checks.check("| training log | 1,500,000 | 200 | 0.20 | 1000 | 1.40 of its time | not installed |"
                 in made and "old" not in made, "a log: " + made)
    checks.check("The training log on 2 threads: 1.70 × one thread's rate as one file, 1.90 × one "
                 "thread's rate in 8 files." in made, "all cores: " + made)
    checks.equal(cells(report, "the training log, in the time of grep -E"), ["1.4", "≤ 1.5: met"],
                 "an aim of logs")
    checks.equal(cells(report, "the training log in 1 file, two threads beside one"),
                 ["1.7", "≥ 1.8: **not met**"], "another")
    with tempfile.TemporaryDirectory() as folder:
        for name in logs.LOGS:
            sizes = [logs.make(name, os.path.join(folder, "log"), 200) for _ in range(2)]
            checks.equal(sizes[0], sizes[1], "the same log each time: " + name)


def check_release(checks):
    report = copy.deepcopy(FILES)
    report["against"] = {"name": "v1", "commit": "0123", "faster": {
        "file": 1.25, "decoder": 0.9, "span_line": 1.01}}
    checks.check("| beside `v1` (0123) |" in table.markdown(report), "the release is named")
    checks.equal(cells(report, "file to summary, one core")[2], "1.25 × as fast", "faster")
    checks.equal(cells(report, "decoder")[2], "0.90 × as fast", "slower")
    checks.equal(cells(report, "a line of spans, decoded and applied")[2], "the same (1.01 ×)",
                 "no difference that counts")
    checks.equal(cells(report, "`merge_all` of 100,000 spans")[2], "–", "not compared")
    report["against"] = {"skipped": "because"}
    checks.check("Not beside an earlier release: because." in table.markdown(report), "why not")


def check_live(checks):
    checks.equal(cells(LIVE, "HTTP, `ack: accepted`, 8 connections"),
                 ["2.00 M events/s, 1.00 M a core's second", "–", "–",
                  "50 % of a server that discards", "≥ 1.2 M a core's second: **not met**"],
                 "accepted: two cores do not make one faster")
    checks.equal(cells(LIVE, "HTTP, `ack: stored`, 1 connection")[4],
                 "≥ 0.4 M a core's second: met", "stored: waiting for the disk is no CPU time")
    checks.equal(cells(LIVE, "verdict behind its last event, p99, 10,000 ranks")[0], "4.5 ms",
                 "the worst of those with many ranks")
    checks.equal(cells(LIVE, "following a file, 1,000,000 events that were there, 2 threads")[0],
                 "2.50 M events/s, 1.60 × one thread's", "a backlog")
    checks.equal(cells(LIVE, "start to listening, store and HTTP")[3], "20 % of an empty program",
                 "start")
    checks.equal(cells(LIVE, "at rest, RSS MiB"), ["13", "≤ 12: **not met**"], "further aims")
    checks.equal(cells(LIVE, "decoder"), None, "what was not measured has no row")
    twice = {**LIVE, "aims": table.aims(LIVE) + table.further(LIVE)}
    checks.equal([one["aim"] for one in table.further(twice)], ["at rest, RSS MiB"],
                 "each aim stands once in a document that was measured")
    kafka = {"machine": MACHINE, "kafka": {"skipped": "no broker"}}
    checks.equal(table.rows(kafka), [], "Kafka that was left out")
    kafka["kafka"] = {"ratios": {"reads/librdkafka": 0.95, "writes live/kcat": 0.6}, "programs": {
        "culprit_reads": {"events_per_s": 1100000}, "culprit_writes_live": {"events_per_s": 1}}}
    checks.equal([(row.as_aim()["measured"], row.met()) for row in table.rows(kafka)],
                 [(1100000, True), (0.95, True), (0.6, False)], "Kafka")


def check_page(checks):
    text = "# P\n<!-- figures -->\nold\n<!-- /figures -->\n<!-- kinds -->\nold\n<!-- /kinds -->\nend\n"
    made = table.page(text, FILES)
    checks.check("old" not in made and made.endswith("<!-- /kinds -->\nend\n"), "both are replaced")
    checks.check("| xid | 300 | 280 | 100 | 900 | 80 | 0.2 | 150 |" in made, "kinds")
    checks.check("| fr_dump, whole, 4 entries each | 80 |" in made, "a kind of whole dumps")
    checks.equal(table.page(made, FILES), made, "twice is once")
    checks.check("old" in table.page(text, LIVE), "kinds that were not measured stay")
    checks.equal(table.page(text, {"machine": MACHINE}), text, "nothing measured, nothing written")
    try:
        table.page("no marks\n", FILES)
        checks.check(False, "a page without marks is taken")
    except ValueError as error:
        checks.check("figures" in str(error), "which marks are missing: %s" % error)
    with open(os.path.join(ROOT, "docs", "performance.md"), encoding="utf-8") as file:
        checks.check("| decoder | 100 ns" in table.page(file.read(), FILES), "the page has the marks")


def check_against(checks):
    checks.equal(against.chosen("none"), (None, "not asked for"), "none")
    checks.equal(against.chosen("v7"), ("v7", None), "a name")
    last, against.last_release = against.last_release, lambda: None
    checks.check("no tag" in against.chosen(None)[1], "no tag: it says what to do")
    against.last_release = lambda: "v2"
    checks.equal(against.chosen(None), ("v2", None), "the newest tag")
    against.last_release = last
    for ref in ("no-such-commit", HERE):
        try:
            against.found(ref)
            checks.check(False, "%s is taken" % ref)
        except SystemExit as error:
            checks.check(ref in str(error), str(error))
    checks.equal(against.quotient([[2.0, 1.0, 9.0], [3.0, 4.0, 5.0]]), 2.0, "medians, 4 by 2")
    checks.equal((against.limit_s(0.1), against.limit_s(30)), (20, 150), "patience with a program")
    patience = against.Patience(10)

    def late():
        subprocess.run(["sleep", "60"], check=True, timeout=0.1)

    def wrong():
        raise SystemExit("it broke")
    checks.equal([patience.run("a/first", lambda: 7), patience.run("b/late", late),
                  patience.run("wrong", wrong)], [7, None, None], "what fails is left out")
    patience.left_s = 0
    checks.equal(patience.run("last", lambda: 7), None, "and all behind the end of its time")
    checks.equal(against.reason_of(SystemExit("ended with 78: /srv/b/c.yaml:1:4: no; valid keys")),
                 "ended with 78: c.yaml:1:4: no", "a reason names no folder")
    checks.equal(patience.left_out, ["late (it took over 0 s)", "wrong (it broke)",
                                     "last (the comparison took over 10 s)"], "with reasons")
    one = {**FILES, "against": {"name": "v1", "faster": {}, "left_out": patience.left_out}}
    checks.check("Left out of the comparison: late (it took over 0 s); wrong (it broke); last"
                 in table.markdown(one), "which the table tells")
    order = []
    figures = against.turns("own", "earlier", lambda one: order.append(one) or len(order), 2)
    checks.equal((order, figures), (["own", "earlier", "own", "earlier"], [[1, 3], [2, 4]]),
                 "in turn")


class Rows(bench.Bench):
    """Says made-up figures in place of a program."""

    def __init__(self, rows, earlier=None, fails=False):
        super().__init__("build", None, "folder", earlier)
        self.rows, self.fails, self.limits = rows, fails, []

    def said_if_there(self, name, *arguments, limit_s):
        return self.said(name, *arguments, limit_s=limit_s)

    def said(self, *_, limit_s=None):
        self.limits.append(limit_s)
        if self.fails:
            raise ValueError("it says nothing")
        return self.rows


def check_in_turn(checks):
    picks = {"one": lambda row: row["one"], "two": lambda row: row["two"]}
    earlier = Rows({"one": 4.0})
    own = Rows({"one": 2.0, "two": 1.0}, earlier)
    checks.equal(own.in_turn(picks, "bench/program"),
                 ([{"one": 2.0, "two": 1.0}] * bench.TURNS, {"one": 2.0}),
                 "twice as fast by one, and the other is not said")
    checks.equal((len(own.limits), earlier.limits), (bench.TURNS, [against.LEAST_S] * bench.TURNS),
                 "each as often, the earlier one with an end")
    checks.equal(earlier.patience.left_out, ["two (its program says something else)"],
                 "what cannot be compared")
    checks.equal(own.in_turn(lambda row: {"key": lambda other: other["one"] * row["one"]}, "p")[1],
                 {"key": 2.0}, "what is compared depends on what today's says")
    broken = Rows({}, fails=True)
    own = Rows({"one": 2.0}, broken)
    checks.equal(own.in_turn(picks, "bench/program"), ([{"one": 2.0}], {}), "a program that fails")
    checks.equal((len(own.limits), len(broken.limits), broken.patience.left_out),
                 (1, 1, ["program (it says nothing)"]), "is run once")
    alone = Rows({"one": 2.0})
    checks.equal(alone.in_turn(picks, "bench/program", rounds=4), ([{"one": 2.0}] * 4, {}),
                 "rounds of today's alone")
    checks.equal(bench.medians([{"a": [3, "x", 10]}, {"a": [1, "x", 10]}, {"a": [2, "x", 10]}]),
                 {"a": [2, "x", 10]}, "medians, place by place")
    real = bench.Bench("no build", None, "folder")
    own = Rows({"one": 2.0}, real)
    checks.equal((own.in_turn(picks, "bench/program")[1], real.patience.left_out),
                 ({}, ["program (there is no such program in it)"]), "one that it has not")
    part_s, bench.PART_S = bench.PART_S, 0
    own = Rows({"one": 2.0}, earlier)
    own.in_turn({}, "bench/program")
    bench.PART_S = part_s
    checks.equal(len(own.limits), 1, "one that takes long is run once")


def main():
    checks = Checks()
    for check in (check_files, check_logs, check_release, check_live, check_page, check_against,
                  check_in_turn):
        check(checks)
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()

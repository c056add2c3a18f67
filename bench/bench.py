#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is culprit, beside what else reads the same file?

    bench/run [--events N] [--rounds N] [--folder DIR] [--live | --live-only | --spans-only]
              [--logs-only] [--kafka | --kafka-only] [--against REF] [--table] [--json FILE]
              [--page FILE]
    bench/run --from FILE [--table] [--page FILE]

Makes a file of N events (1,000,000) in a folder that is memory (/dev/shm), and lets each program
read it in turn, pinned to one core: culprit from file to summary, cat to another file, grep -F
writing its matches there, and a Python loop that decodes, filters and writes. Times are CPU time of
the whole process, and ratios are taken round by round; medians are given. Then the stages, the
allocations, the decoder, each kind of event that logs and the cluster give, and spans (beside the
real dask) are measured by programs of their own, and ordinary logs beside grep and ripgrep
(logs.py). With --live the live pipeline is measured too (live.py), with --kafka reading and writing
topics beside kcat (kafka.py). Prints one JSON document, or, with --table or on a terminal, a table
of what was aimed at: beside the peer, the last release and what the machine can do at most.

--against REF builds that commit in build/against/ and runs its programs in turn with today's; REF
may also be a folder that holds such a build. Without it the newest tag is taken, when there is one.
An earlier program that takes much longer than today's is ended, and so is all of the comparison
after some minutes; what was left out for that is said.
"""
import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import against
import kafka
import limits
import live
import logs
import spans
import table
from memory import provide_memory
from progress import say

PYTHON_LOOP = """
import sys
try:
    import orjson
    loads, dumps = orjson.loads, orjson.dumps
except ImportError:
    import json
    loads, dumps = json.loads, lambda record: json.dumps(record).encode()
with open(sys.argv[1], 'rb') as source, open(sys.argv[2], 'wb') as sink:
    for line in source:
        record = loads(line)
        if record['job_id'] == 'job-1':
            sink.write(dumps(record) + b'\\n')
"""
TURNS = 3                   # of a program that measures itself, while they are over in
PART_S = 25
KIND_RECORDS = "10000"      # of each of 35 kinds: half a minute
FLIGHT_DUMPS, FLIGHT_ENTRIES = 4096, 2000
FEW_RANKS, MANY_RANKS = 8, 16384
STORMLOG_LOOP = """
import json, sys
from stormlog.telemetry import telemetry_event_from_record
from stormlog.distributed_analysis import summarize_cross_rank_analysis
events = [telemetry_event_from_record(json.loads(line)) for line in open(sys.argv[1])]
print(json.dumps(summarize_cross_rank_analysis(events)))
"""


def importable(module):
    return subprocess.run([sys.executable, "-c", "import " + module], capture_output=True,
                          check=False).returncode == 0


class Run:
    """CPU and wall seconds of one process on one core, and the most memory it held."""

    def __init__(self, core, command, out, **environment):
        provide_memory()
        with open(out, "wb") as sink:
            begun = time.monotonic()
            process = subprocess.Popen(["taskset", "-c", str(core), *command], stdout=sink,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env={**os.environ, **environment})
            _, status, usage = os.wait4(process.pid, 0)
            self.wall_s = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit("%s failed with %d" % (" ".join(command), process.returncode))
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_rss_bytes = usage.ru_maxrss * 1024


class Bench:
    """The programs of one build. `earlier`: the Bench of another state, or None."""

    def __init__(self, build, options, folder, earlier=None):
        self.build, self.options, self.folder, self.earlier = build, options, folder, earlier
        self.patience = against.Patience()
        self.core = max(os.sched_getaffinity(0))
        self.input = os.path.join(folder, "events.jsonl")
        self.out = os.path.join(folder, "out")

    def program(self, name):
        return os.path.join(self.build, name)

    def make_input(self, events, path):
        with open(path, "wb") as sink:
            subprocess.run([self.program("bench/culprit_generate"), "--events", str(events)],
                           stdout=sink, check=True)
        return os.path.getsize(path)

    def peers(self):
        commands = {
            "culprit": ([self.program("culprit"), "analyze", "--quiet", "--output", "summary",
                         self.input], {}),
            "cat": (["cat", self.input], {}),
            "grep": (["grep", "-F", '"job_id":"job-1"', self.input], {"LC_ALL": "C"}),
            "python_loop": ([sys.executable, "-c", PYTHON_LOOP, self.input, self.out + ".python"],
                            {}),
        }
        if self.earlier:
            commands["earlier"] = ([self.earlier.program("culprit"), *commands["culprit"][0][1:]],
                                   {})
        runs = {name: [] for name in commands}
        for turn in range(self.options.rounds):
            for name, (command, environment) in commands.items():
                if name == "python_loop" and turn >= self.options.python_rounds:
                    continue
                say("round %d: %s" % (turn + 1, name))
                runs[name].append(Run(self.core, command, self.out, **environment))
        return runs

    def all_cores(self):
        """Wall time with one thread and with one for each core, in turn."""
        cores = sorted(os.sched_getaffinity(0))
        command = [self.program("culprit"), "analyze", "--quiet", "--output", "summary",
                   self.input, "--set"]
        runs, earlier = {1: [], len(cores): []}, []
        for turn in range(self.options.rounds):
            for threads, own in runs.items():
                say("round %d: culprit, %d thread%s"
                    % (turn + 1, threads, "" if threads == 1 else "s"))
                own.append(Run(",".join(map(str, cores)),
                               command + ["service.threads=%d" % threads], self.out))
            if self.earlier:        # which may not know the option, and takes all cores anyway
                earlier.append(Run(",".join(map(str, cores)), [self.earlier.program("culprit"),
                                                               *command[1:-1]], self.out))
        one, every = runs[1], runs[len(cores)]
        found = {"threads": len(cores), "wall_s_one": round(median(r.wall_s for r in one), 3),
                 "wall_s_all": round(median(r.wall_s for r in every), 3),
                 "times": round(median(a.wall_s / b.wall_s for a, b in zip(one, every)), 3),
                 "peak_rss_bytes": [max(r.peak_rss_bytes for r in own) for own in (one, every)]}
        if earlier:
            found["times_earlier"] = faster((r.wall_s for r in every), (r.wall_s for r in earlier))
        return found

    def stormlog(self):
        if not importable("stormlog"):
            return None
        events = 20000
        path = os.path.join(self.folder, "slice.jsonl")
        self.make_input(events, path)
        say("stormlog, %d events" % events)
        try:
            run = Run(self.core, [sys.executable, "-c", STORMLOG_LOOP, path], self.out)
        except SystemExit:
            return None
        return {"events": events, "events_per_s": round(events / run.cpu_s)}

    def said(self, *command, limit_s=None):
        say(" ".join(os.path.basename(c) for c in command))
        provide_memory()
        done = subprocess.run(["taskset", "-c", str(self.core), *command], check=True,
                              stdout=subprocess.PIPE, timeout=limit_s)
        return json.loads(done.stdout)

    def medians_said(self, rounds, *command):
        return medians([self.said(*command) for _ in range(rounds)])

    def in_turn(self, picks, name, *arguments, rounds=1):
        """All that the program of today says, in so many rounds at least; and how much faster than
        the earlier one by each of `picks`, functions of what a program says that give a time; or a
        function that gives them, from what today's said first."""
        begun = time.monotonic()
        own, theirs = [self.said(self.program(name), *arguments) for _ in range(rounds)], []
        if not self.earlier:
            return own, {}
        own_s = (time.monotonic() - begun) / rounds
        begun, limit_s = time.monotonic() - own_s, against.limit_s(own_s)
        turns = own[-1:]
        for turn in range(TURNS):
            at_s = time.monotonic()
            if turn > 0:
                turns.append(self.said(self.program(name), *arguments))
            said = self.earlier.patience.run(name, lambda: self.earlier.said_if_there(
                name, *arguments, limit_s=limit_s))
            if said is None:
                return own, {}
            theirs.append(said)
            now_s = time.monotonic()
            if now_s + own_s + (now_s - at_s) > begun + PART_S:
                break
        found = {}
        for key, pick in (picks(own[0]) if callable(picks) else picks).items():
            try:
                found[key] = faster(map(pick, turns), map(pick, theirs))
            except (KeyError, TypeError, StopIteration):
                self.earlier.patience.leave_out(key, "its %s says something else"
                                                % os.path.basename(name))
        return own + turns[1:], found

    def said_if_there(self, name, *arguments, limit_s):
        if not os.access(self.program(name), os.X_OK):
            raise ValueError("there is no such program in it")
        return self.said(self.program(name), *arguments, limit_s=limit_s)

    def flight(self, limit_s=None):
        """Seconds for the dumps of a large job; CPU time, without making them."""
        say("bench_flight: %d dumps of %d entries" % (FLIGHT_DUMPS, FLIGHT_ENTRIES))
        provide_memory()
        done = subprocess.run([self.program("bench/bench_flight"), str(FLIGHT_DUMPS),
                               str(FLIGHT_ENTRIES)], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=limit_s)
        found = re.search(r"^all\s+([\d.]+) s", done.stdout, re.M)
        if not found:
            raise ValueError("bench_flight says something else")
        return float(found.group(1))


def median(values):
    return statistics.median(values)


def medians(documents):
    """Of the numbers at each place of documents of one shape."""
    first = documents[0]
    if isinstance(first, dict):
        return {key: medians([document[key] for document in documents]) for key in first}
    if isinstance(first, list):
        return [medians(items) for items in zip(*documents)]
    same = all(document == first for document in documents)
    return first if same else round(median(documents), 3)


def faster(own, earlier):
    """How many times as fast, from times taken in turn."""
    return round(median(b / a for a, b in zip(own, earlier)), 3)


def figures(runs, events, size):
    cpu_s = median(r.cpu_s for r in runs)
    return {"cpu_s": round(cpu_s, 3), "wall_s": round(median(r.wall_s for r in runs), 3),
            "events_per_s": round(events / cpu_s), "mb_per_s": round(size / cpu_s / 1e6),
            "peak_rss_bytes": max(r.peak_rss_bytes for r in runs), "rounds": len(runs)}


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def measure(bench, options, compared_with):
    report = {"machine": {"cpu": cpu_name(), "cores": os.cpu_count(),
                          "system": "%s %s" % (platform.system(),
                                               ".".join(platform.release().split(".")[:2]))},
              "against": compared_with}
    measure_parts(bench, options, report)
    report["aims"] = table.aims(report) + table.further(report)
    return report


def measure_parts(bench, options, report):
    """Adds to the report; `seconds`: how long each part took."""
    for name, wanted, part in (
            ("spans", options.spans_only, measure_spans),
            ("files", not (options.spans_only or options.logs_only or options.kafka_only or
                           options.live_only), measure_files),
            ("logs", not (options.spans_only or options.kafka_only or options.live_only),
             measure_logs),
            ("live", options.live or options.live_only, measure_live),
            ("kafka", options.kafka or options.kafka_only, measure_kafka)):
        if not wanted:
            continue
        begun = time.monotonic()
        part(bench, options, report)
        report.setdefault("seconds", {})[name] = round(time.monotonic() - begun)
        say("%s took %d s" % (name, report["seconds"][name]))
    if bench.earlier:
        report["against"]["left_out"] = bench.earlier.patience.left_out


def measure_live(bench, options, report):
    own = live.Live(bench.build, options)
    report["live"] = own.measure()
    report.setdefault("limits", {}).update(limits.live(bench, options, say))
    if bench.earlier:
        report["against"]["faster"].update(against.live_in_turn(
            live, own, live.Live(bench.earlier.build, options), options, bench.earlier.patience))


def measure_logs(bench, options, report):
    report["logs"] = logs.measure(bench, options, Run, median, say)


def measure_kafka(bench, options, report):
    report["kafka"] = kafka.measure(bench, options, say)
    if not bench.earlier or "ratios" not in report["kafka"]:
        return
    earlier = bench.earlier.patience.run("kafka", lambda: kafka.measure(
        bench.earlier, options, say, kafka.COMPARED))
    # Each beside kcat in turn with it.
    for key, name in (("kafka_reads", "reads/kcat"), ("kafka_forwards", "writes live/kcat")):
        if earlier is not None:
            report["against"]["faster"][key] = round(
                report["kafka"]["ratios"][name] / earlier["ratios"][name], 3)


def measure_spans(bench, options, report):
    report["spans"] = spans.measure(bench, options.rounds, say)


def stage(ranks, figure):
    return lambda rows: next(row for row in rows if row["ranks"] == ranks)[figure]


def measure_files(bench, options, report):
    say("making %d events" % options.events)
    size = bench.make_input(options.events, bench.input)
    runs = bench.peers()
    report["input"] = {"events": options.events, "bytes": size,
                       "bytes_per_event": round(size / options.events)}
    report["limits"] = limits.memory(bench)
    report["python_decoder"] = "orjson" if importable("orjson") else "json (orjson is not there)"
    report["programs"] = {name: figures(own, options.events, size) for name, own in runs.items()}
    ratios = {}
    for over, under in (("culprit", "cat"), ("culprit", "grep"), ("python_loop", "culprit")):
        ratios[over + "/" + under] = round(median(
            a.cpu_s / b.cpu_s for a, b in zip(runs[over], runs[under])), 3)
    report["ratios"] = ratios
    report["all_cores"] = bench.all_cores()
    report["stormlog"] = bench.stormlog()
    if report["stormlog"] is not None:
        ratios["culprit/stormlog"] = round(report["programs"]["culprit"]["events_per_s"] /
                                           report["stormlog"]["events_per_s"], 1)
    os.unlink(bench.input)
    compared = {}
    if bench.earlier:
        compared["file"] = faster((r.cpu_s for r in runs["culprit"]),
                                  (r.cpu_s for r in runs["earlier"]))
        compared["all_cores"] = report["all_cores"]["times_earlier"]
    measure_programs(bench, options, report, compared)
    measure_spans(bench, options, report)
    if bench.earlier:
        _, found = bench.in_turn(
            {"span_line": lambda rows: max(row["decode_ns_per_event"] + row["apply_ns_per_event"]
                                           for row in rows),
             "merge_all": lambda rows: rows[-1]["merge_all_us"]},
            "bench/bench_spans", "300000", *map(str, spans.SPANS))
        report["against"]["faster"].update(compared, **found)


def measure_programs(bench, options, report, compared):
    """Those that measure one part each."""
    few, many = stage(FEW_RANKS, "ns_per_event"), stage(MANY_RANKS, "ns_per_event")
    runs, found = bench.in_turn(
        {"decoder": stage(64, "decode_ns_per_event"), "growth": many}, "bench/bench_stages",
        str(options.events), str(FEW_RANKS), "64", "1024", str(MANY_RANKS), rounds=options.rounds)
    report["stages"] = medians(runs)
    report["growth"] = round(median(many(rows) / few(rows) for rows in runs), 3)
    compared.update(found)
    report["allocations"] = bench.said(bench.program("bench/bench_allocations"))
    report["decode"] = bench.said(bench.program("bench/bench_decode"))
    runs, found = bench.in_turn(
        lambda rows: {"slowest_kind": table.slowest_kind_s(min(
            rows, key=table.records_per_second)["kind"])},
        "bench/bench_kinds", KIND_RECORDS)
    report["kinds"] = runs[0]
    compared.update(found)
    begun = time.monotonic()
    seconds = bench.flight()
    report["flight"] = {"dumps": FLIGHT_DUMPS, "entries": FLIGHT_ENTRIES, "seconds": seconds}
    if bench.earlier:
        limit_s = against.limit_s(time.monotonic() - begun)
        earlier = bench.earlier.patience.run("bench_flight",
                                             lambda: bench.earlier.flight(limit_s))
        if earlier is not None:
            compared["flight"] = round(earlier / seconds, 3)


def compare_with(options, folder):
    """The Bench of the earlier state, or None; and what the document says of it."""
    name, why = against.chosen(options.against)
    if name is None:
        say("not compared with an earlier release: " + why)
        return None, {"skipped": why}
    there = against.found(name)
    return (Bench(there["build"], options, folder),
            {"name": there["name"], "commit": there["commit"], "faster": {}})


def told(report, options):
    """Prints it, and writes what was asked for."""
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")
    if options.page:
        try:
            with open(options.page, encoding="utf-8") as file:
                text = table.page(file.read(), report)
        except (OSError, ValueError) as error:
            raise SystemExit("bench: --page %s: %s" % (options.page, error)) from None
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(text)
    if options.table or sys.stdout.isatty():
        print(table.markdown(report), end="")
        if "logs" in report:
            print("\n" + table.logs_markdown(report), end="")
    else:
        print(json.dumps(report, indent=2))


def main(arguments):
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--events", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python-rounds", type=int, default=2)
    parser.add_argument("--folder", default="/dev/shm", help="where the files are made")
    parser.add_argument("--live", action="store_true", help="measure the live pipeline, too")
    parser.add_argument("--live-only", action="store_true", help="and nothing else")
    parser.add_argument("--spans-only", action="store_true", help="spans and nothing else")
    parser.add_argument("--logs-only", action="store_true", help="logs and nothing else")
    parser.add_argument("--kafka", action="store_true", help="measure topics, too")
    parser.add_argument("--kafka-only", action="store_true", help="and nothing else")
    parser.add_argument("--kafka-events", type=int, default=300000, help="messages of each run")
    parser.add_argument("--live-events", type=int, default=1000000,
                        help="of each run over HTTP, and of the file that is followed")
    parser.add_argument("--live-evaluations", type=int, default=200,
                        help="verdict lines at least, for each latency")
    parser.add_argument("--live-folder", help="where its files are (the build folder)")
    parser.add_argument("--against", metavar="REF", help="the commit, or folder with its build, to "
                        "compare with; none: nothing (the newest tag before today's commit)")
    parser.add_argument("--table", action="store_true",
                        help="print the table also where standard output is no terminal")
    parser.add_argument("--json", metavar="FILE", help="write the JSON document there, too")
    parser.add_argument("--page", metavar="FILE",
                        help="put the tables between the marks of that page (docs/performance.md)")
    parser.add_argument("--from", dest="saved", metavar="FILE",
                        help="measure nothing; take this JSON document")
    options = parser.parse_args(arguments)
    if options.saved:
        try:
            with open(options.saved, encoding="utf-8") as file:
                report = json.load(file)
        except (OSError, ValueError) as error:
            raise SystemExit("bench: --from takes a document that bench/run wrote: %s"
                             % error) from None
        told(report, options)
        return 0
    folder = tempfile.mkdtemp(prefix="culprit-bench-", dir=options.folder)
    try:
        earlier, said = compare_with(options, folder)
        bench = Bench(os.path.abspath(options.build), options, folder, earlier)
        report = measure(bench, options, said)
    finally:
        shutil.rmtree(folder)
    told(report, options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is culprit, beside what else reads the same file?

    bench/run [--events N] [--rounds N] [--folder DIR] [--live | --live-only | --spans-only]
              [--kafka | --kafka-only]

Makes a file of N events (1,000,000) in a folder that is memory (/dev/shm), and lets each program
read it in turn, pinned to one core: culprit from file to summary, cat to another file, grep -F
writing its matches there, and a Python loop that decodes, filters and writes. Times are CPU time of
the whole process, and ratios are taken round by round; medians are given. Then the stages, the
allocations, the decoder, each kind of event that logs and the cluster give, and spans (beside the
real dask) are measured by programs of their own. With --live the live pipeline is
measured too (live.py), with --kafka reading and writing topics beside kcat (kafka.py). Prints one
JSON document.
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import kafka
import live
import spans

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
STORMLOG_LOOP = """
import json, sys
from stormlog.telemetry import telemetry_event_from_record
from stormlog.distributed_analysis import summarize_cross_rank_analysis
events = [telemetry_event_from_record(json.loads(line)) for line in open(sys.argv[1])]
print(json.dumps(summarize_cross_rank_analysis(events)))
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def importable(module):
    return subprocess.run([sys.executable, "-c", "import " + module], capture_output=True,
                          check=False).returncode == 0


class Run:
    """CPU and wall seconds of one process on one core, and the most memory it held."""

    def __init__(self, core, command, out, **environment):
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
    def __init__(self, build, options, folder):
        self.build, self.options, self.folder = build, options, folder
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
        runs = {1: [], len(cores): []}
        for turn in range(self.options.rounds):
            for threads, own in runs.items():
                say("round %d: culprit, %d thread%s"
                    % (turn + 1, threads, "" if threads == 1 else "s"))
                own.append(Run(",".join(map(str, cores)),
                               command + ["service.threads=%d" % threads], self.out))
        one, every = runs[1], runs[len(cores)]
        return {"threads": len(cores), "wall_s_one": round(median(r.wall_s for r in one), 3),
                "wall_s_all": round(median(r.wall_s for r in every), 3),
                "times": round(median(a.wall_s / b.wall_s for a, b in zip(one, every)), 3),
                "peak_rss_bytes": [max(r.peak_rss_bytes for r in own) for own in (one, every)]}

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

    def said(self, *command):
        say(" ".join(os.path.basename(c) for c in command))
        done = subprocess.run(["taskset", "-c", str(self.core), *command], check=True,
                              stdout=subprocess.PIPE)
        return json.loads(done.stdout)


def median(values):
    return statistics.median(values)


def figures(runs, events, size):
    cpu_s = median(r.cpu_s for r in runs)
    return {"cpu_s": round(cpu_s, 3), "wall_s": round(median(r.wall_s for r in runs), 3),
            "events_per_s": round(events / cpu_s), "mb_per_s": round(size / cpu_s / 1e6),
            "peak_rss_bytes": max(r.peak_rss_bytes for r in runs), "rounds": len(runs)}


def aim(what, figure, limit, at_least):
    met = figure >= limit if at_least else figure <= limit
    return {"aim": what, "measured": round(figure, 3), "at_least" if at_least else "at_most": limit,
            "met": met}


def aims(ratios, stages, allocations, decode):
    stormlog = []
    if "culprit/stormlog" in ratios:
        stormlog.append(aim("events a second, times stormlog's", ratios["culprit/stormlog"], 100.0,
                            True))
    cost = [row["ns_per_event"] for row in stages]
    kept = [row for row in allocations if row["pipeline"] == "all"]
    return [
        aim("file to summary, in the time of cat", ratios["culprit/cat"], 2.0, False),
        aim("file to summary, in the time of grep -F", ratios["culprit/grep"], 1.0, False),
        aim("file to summary, times as fast as a Python loop", ratios["python_loop/culprit"], 7.0,
            True),
        aim("decoding, times as fast as jansson", decode["ratio"], 30.0, True),
        aim("allocations an event in a live pipeline, warmed up",
            max(row["allocations_per_event"] for row in allocations if row["pipeline"] == "live"),
            0.0, False),
        aim("cost of an event at the most ranks, against the fewest", cost[-1] / cost[0], 1.5,
            False),
        aim("peak heap, of what 64 B a kept sample and 8 MiB allow",
            max(row["peak_bytes"] / row["peak_bytes_allowed"] for row in kept), 1.0, False),
    ] + stormlog


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def measure(bench, options):
    report = {"machine": {"cpu": cpu_name(), "cores": os.cpu_count(),
                          "system": platform.platform()}}
    if options.spans_only:
        measure_spans(bench, report)
        return report
    if options.kafka_only:
        measure_kafka(bench, options, report)
        return report
    if not options.live_only:
        measure_files(bench, options, report)
    if options.live or options.live_only:
        report["live"] = live.Live(bench.build, options).measure()
    if options.kafka:
        measure_kafka(bench, options, report)
    return report


def measure_kafka(bench, options, report):
    report["kafka"] = kafka.measure(bench, options, say)
    report.setdefault("aims", [])
    if "ratios" in report["kafka"]:
        ratios = report["kafka"]["ratios"]
        report["aims"] += [
            aim("reading a topic, of kcat's rate", ratios["reads/kcat"], 0.8, True),
            aim("writing a topic, of kcat's rate", ratios["writes/kcat"], 0.8, True)]


def measure_spans(bench, report):
    report["spans"] = spans.measure(bench, say)
    report["aims"] = []
    ratio = spans.least(report["spans"])
    if ratio is not None:
        report["aims"] = [aim("a line of spans, times as fast as dask", ratio, 100.0, True)]


def measure_files(bench, options, report):
    say("making %d events" % options.events)
    size = bench.make_input(options.events, bench.input)
    runs = bench.peers()
    report["input"] = {"events": options.events, "bytes": size,
                       "bytes_per_event": round(size / options.events)}
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
    report["stages"] = bench.said(bench.program("bench/bench_stages"), str(options.events), "8",
                                  "64", "1024", "16384")
    report["allocations"] = bench.said(bench.program("bench/bench_allocations"))
    report["decode"] = bench.said(bench.program("bench/bench_decode"))
    report["kinds"] = bench.said(bench.program("bench/bench_kinds"))
    measure_spans(bench, report)
    report["aims"] += aims(ratios, report["stages"], report["allocations"], report["decode"])
    if report["all_cores"]["threads"] == 2:
        report["aims"].append(aim("file to summary on two cores, times one core's speed",
                                  report["all_cores"]["times"], 1.8, True))
    report["aims"].append(aim("events a second of the slowest kind, from bytes to detectors",
                              min(row["events_per_second"] for row in report["kinds"]), 1e5, True))


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
    parser.add_argument("--kafka", action="store_true", help="measure topics, too")
    parser.add_argument("--kafka-only", action="store_true", help="and nothing else")
    parser.add_argument("--kafka-events", type=int, default=300000, help="messages of each run")
    parser.add_argument("--live-events", type=int, default=1000000, help="of each run over HTTP")
    parser.add_argument("--live-evaluations", type=int, default=200,
                        help="verdict lines at least, for each latency")
    parser.add_argument("--live-folder", help="where its files are (the build folder)")
    options = parser.parse_args(arguments)
    folder = tempfile.mkdtemp(prefix="culprit-bench-", dir=options.folder)
    try:
        report = measure(Bench(os.path.abspath(options.build), options, folder), options)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

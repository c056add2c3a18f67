# SPDX-License-Identifier: Apache-2.0
"""One file: read, parse, keep one job's events, write them as JSON lines; each program in turn.

What each leaves is counted: a program that lost an event is not compared.
"""
import json
import os
import re
import subprocess
import time

import measure

JOB = "job-1"
CULPRIT, ORJSON, JSON, JQ, STORMLOG = ("culprit", "Python loop, orjson", "Python loop, json", "jq",
                                       "stormlog")
TUNED, USUAL = "Collector, tuned, one core", "Collector, usual settings, all cores"
NEEDS = {CULPRIT: "culprit", ORJSON: "orjson", JSON: "python", TUNED: "collector",
         USUAL: "collector", JQ: "jq", STORMLOG: "stormlog"}
DOES = {
    CULPRIT: "`culprit run --once`, preset `all`: decodes and checks every record, keeps one "
             "job's, puts them in order of rank and time, aligns clocks, runs all detectors and "
             "builds spans; writes verdicts, never the events",
    ORJSON: "reads line by line, parses, compares one field, encodes the record anew",
    JSON: "the same with the standard library",
    TUNED: "file_log receiver with json_parser into the body, filter processor, file exporter "
           "(`flush_interval: 100ms`) that writes OTLP JSON, or nop exporter; no batch processor, "
           "own telemetry off, `GOGC=400`",
    USUAL: "the same with the batch processor, without `GOGC` and `flush_interval`",
    JQ: "`jq -c 'select(.job_id == \"%s\")'`; with `\\| empty` where nothing is written" % JOB,
    STORMLOG: "each line to a telemetry event, then its summary across ranks; beside it `culprit "
              "analyze --output summary`. Both have to say the same",
}
LOOP = """
import sys
{imports}
out = {sink}
with open(sys.argv[1], 'rb') as source:
    for line in source:
        record = loads(line)
        if record['job_id'] == 'job-1':
            {act}
"""
IMPORTS = {
    "python": "import json\nloads = json.loads\n"
              "dumps = lambda record: json.dumps(record, separators=(',', ':')).encode()",
    "orjson": "import orjson\nloads, dumps = orjson.loads, orjson.dumps"}
STORMLOG_PROGRAM = """
import json, sys
from stormlog.telemetry import telemetry_event_from_record
from stormlog.distributed_analysis import summarize_cross_rank_analysis
with open(sys.argv[1]) as source:
    events = [telemetry_event_from_record(json.loads(line)) for line in source]
with open(sys.argv[2], 'w') as sink:
    json.dump(summarize_cross_rank_analysis(events), sink)
"""


def loop(library, writing):
    return LOOP.format(imports=IMPORTS[library],
                       sink="open(sys.argv[2], 'wb')" if writing else "None",
                       act="out.write(dumps(record) + b'\\n')" if writing else "pass")


def culprit_config(source, out):
    return {"receivers": {"file": {"include": [source], "start_at": "beginning"}},
            "processors": {"job_filter": {"job_id": JOB}},
            "exporters": {"json": {"path": out}},
            "service": {"pipelines": {"all": {"receivers": ["file"], "preset": "all",
                                              "exporters": ["json"]}}}}


def collector_config(source, out, tuned):
    """`out` None: nothing is written."""
    exporter = "nop" if out is None else "file"
    exporters = {"nop": None} if out is None else {"file": {"path": out}}
    if out is not None and tuned:
        exporters["file"]["flush_interval"] = "100ms"
    processors = {"filter": {"error_mode": "propagate", "logs": {
        "log_record": ['body["job_id"] != "%s"' % JOB]}}}
    if not tuned:
        processors["batch"] = None
    return {"receivers": {"file_log": {"include": [source], "start_at": "beginning", "operators": [
                {"type": "json_parser", "parse_to": "body"}]}},
            "processors": processors, "exporters": exporters,
            "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
                        "pipelines": {"logs": {"receivers": ["file_log"],
                                               "processors": list(processors),
                                               "exporters": [exporter]}}}}


def count_in(path, word):
    """How often a word stands in a file; lines may be of any length."""
    count, rest = 0, b""
    with open(path, "rb") as file:
        while True:
            chunk = file.read(1 << 22)
            if not chunk:
                return count
            chunk = rest + chunk
            count += chunk.count(word)
            rest = chunk[-(len(word) - 1):]


def accepted_by_culprit(log):
    """Of its last message: how many events it took, and how many it refused."""
    match = re.search(r"(\d+) events accepted, (\d+) records refused", log)
    return (int(match.group(1)), int(match.group(2))) if match else None


class Files:
    def __init__(self, peers, generator, folder, core, say):
        self.peers, self.generator, self.folder = peers, generator, folder
        self.core, self.say = core, say
        self.failed = {}  # program -> why it is not compared
        self.log = self.path("log")

    def path(self, name):
        return os.path.join(self.folder, name)

    def generate(self, events, name):
        path = self.path(name)
        with open(path, "wb") as sink:
            subprocess.run([self.generator, "--events", str(events)], stdout=sink, check=True)
        return path

    def config(self, content):
        path = self.path("config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)  # JSON is YAML
        return path

    # -- the programs ---------------------------------------------------------------------------

    def culprit(self, source, out):
        program = self.peers["culprit"].program
        cost = measure.to_its_end(
            [program, "run", "--once", "--config",
             self.config(culprit_config(source, self.path("out")))], self.core, self.log)
        with open(self.log, encoding="utf-8") as file:
            got = accepted_by_culprit(file.read())
        if got != (self.events, 0):
            raise measure.Failed("culprit took %s of %d events" % (got, self.events))
        return cost, None

    def jq(self, source, out):
        chosen = 'select(.job_id == "%s")' % JOB
        cost = measure.to_its_end(
            ["jq", "-c", chosen if out else chosen + " | empty", source], self.core, self.log, out)
        return cost, b'"job_id":"' if out else None

    def python_loop(self, library, source, out):
        cost = measure.to_its_end(
            [self.peers[library].program, "-c", loop(library, out is not None), source,
             out or "/dev/null"], self.core, self.log)
        return cost, b'"job_id":"' if out else None

    def collector(self, source, out, tuned):
        more = {"GOGC": "400"} if tuned else {}
        command = [self.peers["collector"].program, "--config",
                   self.config(collector_config(source, out, tuned))]
        cost = measure.until_quiet(command, self.core if tuned else None, self.log, self.size,
                                   **more)
        return cost, b'"key":"job_id"' if out else None

    def programs(self, writing):
        """name -> what runs it; in the order of the table."""
        ways = {
            CULPRIT: self.culprit,
            ORJSON: lambda source, out: self.python_loop("orjson", source, out),
            JSON: lambda source, out: self.python_loop("python", source, out),
            TUNED: lambda source, out: self.collector(source, out, True),
            USUAL: lambda source, out: self.collector(source, out, False),
            JQ: self.jq,
        }
        if not writing:
            del ways[USUAL]
        return {name: way for name, way in ways.items()
                if NEEDS[name] in self.peers and name not in self.failed}

    # -- rounds ---------------------------------------------------------------------------------

    def once(self, name, way, source, writing):
        out = self.path("out")
        if os.path.exists(out):
            os.unlink(out)
        cost, word = way(source, out if writing else None)
        row = cost.row()
        row["written_bytes"] = os.path.getsize(out) if os.path.exists(out) else 0
        if word is not None:
            got = count_in(out, word)
            if got != self.kept:
                raise measure.Failed("%s wrote %d events, %d are right" % (name, got, self.kept))
        return row

    def job(self, source, writing, rounds):
        """name -> a row a round. A peer that fails is left out of the rest; culprit must not."""
        programs = self.programs(writing)
        rows = {name: [] for name in programs}
        for turn in range(rounds):
            for name, way in programs.items():
                if name in self.failed:
                    continue
                self.say("round %d of %d, %s: %s" % (turn + 1, rounds, "kept events written"
                                                     if writing else "nothing written", name))
                try:
                    rows[name].append(self.once(name, way, source, writing))
                except measure.Failed as error:
                    if name == CULPRIT:
                        raise
                    self.failed[name] = str(error)
                    self.say("left out: %s: %s" % (name, error))
                time.sleep(0.1)
        return {name: own for name, own in rows.items() if name not in self.failed}

    def measure(self, events, rounds):
        source = self.generate(events, "events.jsonl")
        self.events, self.size = events, os.path.getsize(source)
        self.kept = count_in(source, b'"job_id":"%s"' % JOB.encode())
        found = {"input": {"events": events, "bytes": self.size, "kept": self.kept},
                 "written": self.job(source, True, rounds),
                 "discarded": self.job(source, False, rounds)}
        os.unlink(source)
        return found

    def analysis(self, events, rounds):
        """stormlog's cross-rank analysis beside culprit's summary, which has to say the same."""
        if "stormlog" not in self.peers:
            return None
        source = self.generate(events, "slice.jsonl")
        commands = {
            CULPRIT: ([self.peers["culprit"].program, "analyze", "--quiet", "--output",
                       "summary", source], self.path("mine")),
            STORMLOG: ([self.peers["stormlog"].program, "-c", STORMLOG_PROGRAM, source,
                        self.path("theirs")], None)}
        rows = {name: [] for name in commands}
        for turn in range(rounds):
            for name, (command, out) in commands.items():
                self.say("round %d of %d, cross-rank analysis: %s" % (turn + 1, rounds, name))
                try:
                    rows[name].append(measure.to_its_end(command, self.core, self.log, out).row())
                except measure.Failed as error:
                    if name == CULPRIT:
                        raise
                    self.failed[name] = str(error)
                    self.say("left out: %s: %s" % (name, error))
                    return None
        same = []
        for name in ("mine", "theirs"):
            with open(self.path(name), encoding="utf-8") as file:
                same.append(json.load(file))
        if same[0] != same[1]:
            raise measure.Failed("culprit and stormlog do not say the same of %d events" % events)
        return {"input": {"events": events, "bytes": os.path.getsize(source)}, "rounds": rows}

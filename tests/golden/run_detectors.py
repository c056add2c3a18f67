#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The detectors on the fixtures of detectors/ and on real Flight Recorder dumps, as a user runs them.

    run_detectors.py BINARY [--write]

Each case is judged by its expectation (check_verdicts.py), also with its lines shuffled, in batches
of 1 and 7 events, and with its detector alone: the bytes stay the same, but for what `incident`
adds. Where one job is chosen, events of no job are judged as ever, but for telemetry, and those of
another not at all.
Every verdict is held against the schema. Each case's verdicts are those of its verdicts.jsonl,
byte for byte; --write writes these anew.
"""
import datetime
import json
import os
import random
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import check_verdicts  # noqa: E402
import real_schema  # noqa: E402
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

CASES = os.path.join(HERE, "detectors")
REAL = os.path.join(HERE, "real_flight_recorder")
SCHEMA = os.path.join(HERE, "..", "..", "docs", "verdict.schema.json")
SEEDS = (1, 2, 3)


def cases():
    for detector in sorted(os.listdir(CASES)):
        folder = os.path.join(CASES, detector)
        for case in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if os.path.exists(os.path.join(folder, case, "events.jsonl")):
                yield detector, case, os.path.join(folder, case)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        sys.exit("%s is not there; `run_detectors.py BINARY --write` writes it" % path)


def moment(time_ns):
    """As people read it: to milliseconds."""
    text = datetime.datetime.fromtimestamp(time_ns // 10**9, datetime.timezone.utc)
    return text.strftime("%Y-%m-%d %H:%M:%S") + ".%03d" % (time_ns // 10**6 % 1000)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def without_incident(text):
    """Verdict lines without what `incident` adds, in an order of their own."""
    lines = []
    for line in text.splitlines():
        verdict = json.loads(line)
        verdict.pop("related", None)
        verdict.get("attributes", {}).pop("culprit.root", None)
        if not verdict.get("attributes"):
            verdict.pop("attributes", None)
        lines.append(json.dumps(verdict, sort_keys=True))
    return sorted(lines)


class Suite:
    def __init__(self, binary, folder, writing):
        self.binary, self.folder, self.writing = binary, folder, writing
        self.checks = Checks()
        self.lines = []

    def analyze(self, what, *arguments):
        done = run(self.binary, "analyze", "--quiet", "--output", "verdicts", *arguments)
        self.checks.equal((done.code, done.errors()), (0, ""), what + ": exit code and errors")
        return done.text()

    def check_schema(self, text, what):
        self.lines += text.splitlines()
        for line in text.splitlines():
            self.checks.equal(verdicts.faults(json.loads(line)), [], what + ": schema")

    def alone(self, detector):
        config = write(os.path.join(self.folder, detector + ".yaml"), json.dumps({
            "receivers": {"file": {"include": ["unused"]}}, "exporters": {"json": {}},
            "processors": {detector: {}},
            "service": {"pipelines": {"p": {
                "receivers": ["file"], "processors": [detector], "exporters": ["json"]}}}}))
        return ("--config", config)

    def case(self, detector, name, place):
        events = os.path.join(place, "events.jsonl")
        what = detector + "/" + name
        text = self.analyze(what, events)
        self.checks.equal(check_verdicts.differences(place, text.splitlines()), [],
                          what + ": against the expectation")
        self.check_schema(text, what)
        golden = os.path.join(place, "verdicts.jsonl")
        if self.writing:
            write(golden, text)
        self.checks.equal(text, read(golden), what + ": verdicts.jsonl")
        for size in (1, 7):
            self.checks.equal(self.analyze(what, "--set", "service.batch_size=%d" % size, events),
                              text, "%s: in batches of %d" % (what, size))
        lines = read(events).splitlines(keepends=True)
        if not any('"source":"fr_entry"' in line for line in lines):
            for seed in SEEDS:
                mixed = lines[:]
                random.Random(seed).shuffle(mixed)
                # Evidence may name the file, with its folder.
                os.makedirs(os.path.join(self.folder, name), exist_ok=True)
                path = write(os.path.join(self.folder, name, "events.jsonl"), "".join(mixed))
                self.checks.equal(self.analyze(what, path), text,
                                  "%s: lines shuffled (%d)" % (what, seed))
        if detector != "incident":
            own = self.analyze(what, *self.alone(detector), events)
            mine = [line for line in text.splitlines() if json.loads(line)["pattern"] == detector]
            self.checks.equal(without_incident(own), without_incident("\n".join(mine)),
                              what + ": alone")

    def of_jobs(self, what, chosen, named, events):
        """Verdict lines with the job `chosen`, of events that name the job `named` unless None."""
        out = os.path.join(self.folder, "of_jobs.jsonl")
        if os.path.exists(out):
            os.unlink(out)
        receiver = {"include": [events]}
        if named is not None:
            receiver["job_id"] = named
        config = write(os.path.join(self.folder, "of_jobs.yaml"), json.dumps({
            "receivers": {"file": receiver}, "exporters": {"json": {"path": out}},
            "processors": {"job_filter": {"job_id": chosen}},
            "service": {"pipelines": {"p": {
                "receivers": ["file"], "preset": "all", "exporters": ["json"]}}}}))
        done = run(self.binary, "run", "--once", "--config", config)
        self.checks.equal(done.code, 0, "%s: run --once: %s" % (what, done.errors()[-500:]))
        return read(out) if os.path.exists(out) else ""

    def beside_a_chosen_job(self, what, events):
        # Telemetry without a job is not that of the chosen one; all else may be.
        is_telemetry = '"source"' not in read(events)
        if is_telemetry:
            self.checks.equal(self.of_jobs(what, "mine", None, events), "",
                              what + ": a job is chosen, telemetry of none")
        for named in ("mine",) if is_telemetry else (None, "mine"):
            self.checks.equal(self.of_jobs(what, "mine", named, events),
                              self.of_jobs(what, "auto", named, events),
                              "%s: a job is chosen, events of %s" % (what, named))
        self.checks.equal(self.of_jobs(what, "mine", "another", events), "",
                          what + ": a job is chosen, events of another")

    def real(self, scenario):
        place = os.path.join(REAL, scenario)
        injected = json.loads(read(os.path.join(place, "injected.json")))
        told = {}
        for form in ("json", "pickle"):
            what = "%s, %s" % (scenario, form)
            folder = os.path.join(place, form)
            text = told[form] = self.analyze(what, folder)
            self.check_schema(text, what)
            found = [json.loads(line) for line in text.splitlines()]
            culprits = sorted({int(entity["name"]) for verdict in found
                               for entity in verdict["entities"]
                               if entity["role"] == "culprit" and entity["kind"] == "rank"})
            self.checks.equal(culprits, injected["ranks"], what + ": who is named")
            if injected["fault"]:
                self.checks.equal([verdict["kind"] for verdict in found], [injected["fault"]],
                                  what + ": kinds")
                attributes = found[0]["attributes"]
                self.checks.equal(attributes["nccl.collective.seq_id"],
                                  str(injected["collective_seq_id"]), what + ": collective")
            # Files are read in the order of their paths.
            files = sorted(os.listdir(folder))
            for seed in SEEDS:
                order = files[:]
                random.Random(seed).shuffle(order)
                mixed = os.path.join(self.folder, "mixed")
                shutil.rmtree(mixed, ignore_errors=True)
                for number, file in enumerate(order):
                    os.makedirs(os.path.join(mixed, str(number)))
                    shutil.copy(os.path.join(folder, file), os.path.join(mixed, str(number)))
                self.checks.equal(self.analyze(what, mixed), text,
                                  "%s: order of files (%d)" % (what, seed))
        self.checks.equal(told["pickle"], told["json"], scenario + ": pickle against JSON")
        if scenario in ("gloo_missing_rank", "hooked_missing_rank", "hooked_silent_missing_rank"):
            for encoding in told:
                self.spoiled(scenario, place, encoding)

    def spoiled(self, scenario, place, encoding):
        """One dump of a job that hangs cannot be read: its rank is not named, and the verdict says
        what is not known. So it is with each rank and each way in which a dump is spoiled."""
        ways = {"cut": lambda text: text[:len(text) // 2],
                "begun": lambda text: text[:1],
                "empty": lambda text: b"",
                "noise": lambda text: bytes((7 * i + 41) % 256 for i in range(3000)),
                "words": lambda text: b"Killed\n",
                "of another schema": lambda text: b'{"version": "3.0", "entries": []}',
                "without entries": lambda text: b'{"version": "2.10"}'}
        found = json.loads(read(os.path.join(place, "injected.json")))
        folder = os.path.join(self.folder, "spoiled")
        for rank in range(4):
            for way, change in ways.items():
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(os.path.join(place, encoding), folder)
                path = os.path.join(folder, "comm_lib_trace_rank_%d" % rank)
                with open(path, "rb") as file:
                    text = file.read()
                os.chmod(path, 0o644)
                with open(path, "wb") as file:
                    file.write(change(text))
                what = "%s/%s: the dump of rank %d is %s: " % (scenario, encoding, rank, way)
                told = run(self.binary, "analyze", "--quiet", "--output", "verdicts", folder).text()
                verdicts = [json.loads(line) for line in told.splitlines()]
                if rank not in found["ranks"]:
                    self.checks.equal([[entity["name"] for entity in verdict["entities"]
                                        if entity["role"] == "culprit"] for verdict in verdicts],
                                      [[str(rank) for rank in found["ranks"]]], what + "culprits")
                for verdict in verdicts:
                    self.checks.equal(verdict["completeness"], "partial", what + "completeness")
                    self.checks.check(str(rank) not in [entity["name"]
                                                        for entity in verdict["entities"]],
                                      what + "it is named")
                    self.checks.check("the dump of rank %d could not be read (spoiled/comm_lib_"
                                      % rank in told, what + "it is not said")

    def story(self, place):
        """What a person reads, and the evidence of one verdict with where it stands."""
        events = os.path.join(place, "events.jsonl")
        done = run(self.binary, "analyze", "--quiet", events)
        self.checks.equal((done.code, done.errors()), (0, ""), "story: exit code and errors")
        golden = os.path.join(place, "story.txt")
        if self.writing:
            write(golden, done.text())
        self.checks.equal(done.text(), read(golden), "story.txt")
        lines = read(events).splitlines()
        for line in read(os.path.join(place, "verdicts.jsonl")).splitlines():
            verdict = json.loads(line)
            told = run(self.binary, "analyze", "--quiet", "--explain", verdict["id"], events).text()
            flat = " ".join(told.split())
            for piece in verdict["evidence_trail"]:
                self.checks.check(piece["uid"] in "".join(told.split()),
                                  "explain %s: %s is missing" % (verdict["id"], piece["uid"]))
            places = re.findall(r"events\.jsonl:(\d+)", "".join(told.split()))
            self.checks.equal(len(places), len(verdict["evidence_trail"]),
                              "explain %s: places" % verdict["id"])
            for number in places:
                start = lines[int(number) - 1][:40]
                self.checks.check(start in flat, "explain: line %s is not shown" % number)
        wrong = run(self.binary, "analyze", "--quiet", "--explain", "nothing:0", events)
        self.checks.check(wrong.code == 64 and "nothing:0" in wrong.errors(), lambda:
                          "explain: %d: %s" % (wrong.code, wrong.errors()))

    def times(self, what, place):
        """Text and page tell the two times of each verdict, and what its headline says of how long
        it lasted is the time between them."""
        events = os.path.join(place, "events.jsonl")
        page = os.path.join(self.folder, "times.html")
        run(self.binary, "analyze", "--quiet", "--html", page, events)
        shown = read(page)
        for line in read(os.path.join(place, "verdicts.jsonl")).splitlines():
            verdict = json.loads(line)
            said = "%s %s: " % (what, verdict["id"])
            begin, end = (int(verdict[key + "_time_unix_nano"]) for key in ("start", "end"))
            newest = max(int(piece["time_unix_nano"]) for piece in verdict["evidence_trail"]
                         if "time_unix_nano" in piece)
            self.checks.equal(end, newest, said + "its end is its latest evidence")
            self.checks.equal("culprit.not_seen" in verdict.get("attributes", {}),
                              verdict["completeness"] == "partial",
                              said + "it says what was not seen where that is so")
            told = " ".join(run(self.binary, "analyze", "--quiet", "--explain", verdict["id"],
                                events).text().split())
            self.checks.check("began %s UTC" % moment(begin) in told, said + "begin in text")
            self.checks.check(">%s UTC</time>" % moment(begin) in shown, said + "begin on the page")
            if end > begin:
                self.checks.check("last seen %s UTC, " % moment(end) in told, said + "end in text")
                self.checks.check(">%s UTC</time>, " % moment(end) in shown, said + "end on the page")
                lasted = re.search("last seen [^,]* UTC, (.*?) after it began", told).group(1)
                self.checks.check("<dd>" in shown and lasted + " after it began" in shown,
                                  said + "how long on the page")
                for claim in re.findall(", for ([^,]*?) when last seen", verdict["headline"]):
                    self.checks.equal(claim, lasted, said + "how long in the headline")

    def directory(self, place):
        """The same incident as the files that other programs write, in one directory."""
        folder = os.path.join(self.folder, "directory")
        os.makedirs(folder)
        objects, kernel, ranks = [], [], []
        for line in read(os.path.join(place, "events.jsonl")).splitlines():
            record = json.loads(line)
            source = record.pop("source")
            if source == "fr_dump":
                write(os.path.join(folder, "comm_lib_trace_rank_%d" % record["rank"]),
                      json.dumps(record["dump"]))
            elif source == "kmsg":
                kernel.append(json.dumps({
                    "__REALTIME_TIMESTAMP": str(record["timestamp_ns"] // 1000),
                    "_HOSTNAME": record["host.name"], "MESSAGE": record["message"],
                    "SYSLOG_IDENTIFIER": "kernel", "PRIORITY": "3"}))
            elif source == "k8s_watch":
                objects.append(record["object"])
            elif source == "rank_map":
                ranks.append(json.dumps(record))
            else:
                raise ValueError(source)
        write(os.path.join(folder, "kernel.jsonl"), "\n".join(kernel) + "\n")
        write(os.path.join(folder, "rank_map.jsonl"), "\n".join(ranks) + "\n")
        write(os.path.join(folder, "pods.json"),
              json.dumps({"apiVersion": "v1", "items": objects, "kind": "List"}, indent=4))
        told = [json.loads(line) for line in self.analyze("directory", folder).splitlines()]
        wanted = [json.loads(line)
                  for line in read(os.path.join(place, "verdicts.jsonl")).splitlines()]
        for key in ("pattern", "kind", "severity", "action", "start_time_unix_nano"):
            self.checks.equal([verdict[key] for verdict in told],
                              [verdict[key] for verdict in wanted], "directory: " + key)
        self.checks.equal([verdict["attributes"]["culprit.root"] for verdict in told],
                          [verdict["attributes"]["culprit.root"] for verdict in wanted],
                          "directory: roots")

    def drift(self, place):
        """A spelling that the schema does not know is refused by it."""
        line = read(os.path.join(place, "verdicts.jsonl")).splitlines()[0]
        for old, new in (('"pattern":"pcie_aer"', '"pattern":"pcie-aer"'),
                         ('"severity":"critical"', '"severity":"fatal"'),
                         ('"action":"drain_node"', '"action":"drain-node"'),
                         ('"headline":', '"head_line":'), ('"role":"culprit"', '"role":"guilty"')):
            self.checks.check(old in line, "drift: %s is not there" % old)
            wrong = real_schema.faults(SCHEMA, [line.replace(old, new)])
            self.checks.check(wrong is None or wrong != "", "drift: %s is taken" % new)

    def run(self):
        found = list(cases())
        self.checks.check(len(found) >= 23, "cases that were found: %d" % len(found))
        for detector, name, place in found:
            self.case(detector, name, place)
            self.beside_a_chosen_job(detector + "/" + name, os.path.join(place, "events.jsonl"))
            self.times(detector + "/" + name, place)
        self.story(os.path.join(CASES, "incident", "link_error_to_eviction"))
        self.directory(os.path.join(CASES, "incident", "link_error_to_eviction"))
        self.drift(os.path.join(CASES, "incident", "link_error_to_eviction"))
        scenarios = [name for name in sorted(os.listdir(REAL))
                     if os.path.isdir(os.path.join(REAL, name))]
        self.checks.check(len(scenarios) >= 6, "real scenarios: %r" % scenarios)
        for scenario in scenarios:
            self.real(scenario)
        wrong = real_schema.faults(SCHEMA, self.lines)
        if wrong is None:
            self.checks.skip("python3-jsonschema is not installed (tools/install_dependencies test)")
        else:
            self.checks.equal(wrong, "", "all verdicts, by a validator of the whole language")
        return self.checks.finish()


def main():
    with tempfile.TemporaryDirectory() as folder:
        return Suite(os.path.abspath(sys.argv[1]), folder, "--write" in sys.argv[2:]).run()


if __name__ == "__main__":
    sys.exit(main())

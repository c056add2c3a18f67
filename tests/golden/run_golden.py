#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit against stormlog's recorded answers, and against the reference where none is recorded.

    run_golden.py BINARY

For every case: as it is, in batches of 1 and 7, through `run --once` with a config, split into one
file a rank, and with the files named in the opposite order. For every real recording: the answer
over its directory, and whether the verdict names the rank that was broken.
"""
import concurrent.futures
import glob
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
import first_cause  # noqa: E402
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

OUTPUTS = ["summary", "timeline"]


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def expected_of(folder):
    return {"summary": bytes_of(folder + "expected.json"),
            "timeline": bytes_of(folder + "expected_timeline.json")}


def oracle_of(paths):
    events = first_cause.events_of_files(paths)
    return {"summary": first_cause.summary_text(events).encode(),
            "timeline": first_cause.timeline_text(events).encode()}


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def analyze(self, what, expected, paths, *options):
        for output in OUTPUTS:
            done = run(self.binary, "analyze", "--output", output, *options, *paths)
            said = "%s, %s" % (what, output)
            if self.checks.check(done.code == 0, "%s: exit code %d, not 0: %s"
                                 % (said, done.code, done.errors()[-2000:])):
                self.checks.equal(done.out, expected[output], said)

    def run_once(self, what, expected, paths, folder, batch_size):
        config = os.path.join(folder, "once-%d.yaml" % batch_size)
        outs = {output: os.path.join(folder, "%s-%d.out" % (output, batch_size))
                for output in OUTPUTS}
        write(config, json.dumps({
            "receivers": {"file": {"include": paths, "start_at": "beginning"}},
            "exporters": {"json/" + output: {"content": output, "path": outs[output]}
                          for output in OUTPUTS},
            "service": {"batch_size": batch_size, "pipelines": {
                "memory": {"receivers": ["file"], "preset": "memory",
                           "exporters": ["json/" + output for output in OUTPUTS]}}},
        }).encode())
        done = run(self.binary, "run", "--once", "--config", config)
        if not self.checks.check(done.code == 0, "%s: exit code %d, not 0: %s"
                                 % (what, done.code, done.errors()[-2000:])):
            return
        for output in OUTPUTS:
            self.checks.equal(bytes_of(outs[output]) if os.path.exists(outs[output]) else b"",
                              expected[output], "%s, %s" % (what, output))

    def split(self, what, lines, folder):
        """One file a rank; their names sort otherwise than their ranks (rank10 before rank2)."""
        files = {}
        for line in lines.splitlines(keepends=True):
            rank = first_cause.events_of_bytes(line)[0].rank
            files.setdefault(os.path.join(folder, "rank%d.jsonl" % rank), []).append(line)
        for path, own in files.items():
            write(path, b"".join(own))
        paths = sorted(files, key=os.fsencode)
        if not paths:
            return
        expected = oracle_of(paths)
        self.analyze(what + " split by rank", expected, paths)
        self.analyze(what + " split by rank, named in reverse", expected, paths[::-1])
        self.run_once(what + " split by rank, run --once", expected, paths, folder, 5)

    def case(self, folder):
        name = os.path.basename(folder.rstrip("/"))
        path = folder + "events.jsonl"
        expected = expected_of(folder)
        self.analyze(name, expected, [path])
        self.analyze(name + " in batches of 1", expected, [path], "--set", "service.batch_size=1")
        self.analyze(name + " in batches of 7", expected, [path], "--set", "service.batch_size=7")
        with tempfile.TemporaryDirectory() as scratch:
            self.run_once(name + ", run --once", expected, [path], scratch, 1024)
            self.run_once(name + ", run --once in batches of 3", expected, [path], scratch, 3)
            self.split(name, bytes_of(path), scratch)

    def recording(self, folder):
        name = os.path.basename(folder.rstrip("/"))
        expected = expected_of(folder)
        self.analyze(name, expected, [folder])
        self.analyze(name + " in batches of 7", expected, [folder], "--set", "service.batch_size=7")
        ranks = sorted(glob.glob(folder + "rank*"))
        self.analyze(name + " by rank directories in reverse", expected, ranks[::-1])
        with tempfile.TemporaryDirectory() as scratch:
            self.run_once(name + ", run --once", expected,
                          [os.path.join(folder, "**", "segment-*.jsonl")], scratch, 1024)
        done = run(self.binary, "analyze", "--output", "verdicts", folder)
        self.checks.equal(done.code, 0, name + ", verdicts: exit code")
        with open(folder + "injected.json", encoding="utf-8") as file:
            injected = json.load(file)
        self.judge(name, verdicts.read_lines(done.text()), injected["rank"])

    def judge(self, name, found, broken_rank):
        for verdict in found:
            self.checks.equal(verdicts.faults(verdict), [], name + ": verdict " + verdict["id"])
        grave = [v for v in found if verdicts.severity_at_least(v, "warning")]
        if broken_rank is None:
            self.checks.equal(grave, [], name + ": verdicts above info")
            return
        self.checks.equal([v["kind"] for v in grave], ["leak"], name + ": kinds of verdicts")
        self.checks.equal([verdicts.named(v, "culprit") for v in grave], [[broken_rank]],
                          name + ": ranks named culprit")


def main(binary):
    suite = Suite(binary)
    cases = sorted(glob.glob(HERE + "/first_cause/*/"))
    recordings = sorted(glob.glob(HERE + "/real/*/"))
    suite.checks.equal((len(cases), len(recordings)), (77, 5), "numbers of cases and recordings")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(suite.case, cases))
        list(pool.map(suite.recording, recordings))
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

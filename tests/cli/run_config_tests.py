#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`culprit test`: each kind of difference, what is wrong in a configuration's tests, and what a test
leaves alone.

    run_config_tests.py BINARY
"""
import gzip
import json
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

GOLDEN = os.path.normpath(os.path.join(HERE, "..", "golden"))
HANG = GOLDEN + "/detectors/nccl_hang/missing_rank/events.jsonl"
HEALTHY = GOLDEN + "/real/healthy"

BASE = """receivers:
  file/ranks: {include: [/nowhere]}
  file/kernel: {include: [/nowhere], format: kernel_log, node: n7, boot_time: "2026-01-02T00:00:00Z"}
exporters:
  json: {path: "${env:CULPRIT_TEST_NONE}/v.jsonl"}
extensions:
  file_storage: {directory: "${file:/nowhere/at/all}"}
service:
  extensions: [file_storage]
  pipelines:
    all: {receivers: [file/ranks, file/kernel], preset: all, exporters: [json]}
"""
XID = "[  100.0] NVRM: Xid (PCI:0000:17:00): 79, pid=1234, GPU has fallen off the bus."
HANG_EXPECTED = "{pattern: nccl_hang, severity: error, culprit: rank 5, suspect: node gpu-node-02}"
LOST = "{pattern: gpu_fault, severity: critical, culprit: gpu n7/0000:17:00}"


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        shutil.copy(HANG, os.path.join(folder, "hang.jsonl"))

    def config(self, tests, base=BASE):
        return write(os.path.join(self.folder, "c.yaml"), base + "tests:\n" + tests)

    def expect(self, code, *arguments, out=None, err="", what=""):
        """Runs culprit with a TMPDIR of its own, of which nothing may be left."""
        place = tempfile.mkdtemp(dir=self.folder)
        done = run(self.binary, *arguments, folder=self.folder, TMPDIR=place)
        what = what or " ".join(arguments)
        self.checks.check(done.code == code, "%s: exit code %d, not %d: %s%s"
                          % (what, done.code, code, done.text()[-1500:], done.errors()[-1500:]))
        if out is not None:
            self.checks.equal(done.text(), out, what + ": stdout")
        if err is not None:
            self.checks.equal(done.errors(), err, what + ": stderr")
        self.checks.equal(os.listdir(place), [], what + ": left in TMPDIR")
        self.checks.check(place not in done.text() + done.errors(), what + ": names its folder")
        os.rmdir(place)
        return done

    def one(self, body, differences, base=BASE):
        """One test; what differs, a line each, without places. None: something does."""
        self.config("  - name: t\n" + body, base)
        done = self.expect(0 if differences == [] else 1, "test", "c.yaml", what=body)
        if differences is None:
            return
        got = [re.sub(r" \(c\.yaml:\d+\)$", "", line).strip()
               for line in done.text().splitlines() if line.startswith("    ")]
        self.checks.equal([re.sub(r"\s+", " ", line) for line in got], differences, body)

    # -- what differs -----------------------------------------------------------------------------

    def passes(self):
        self.config("  - name: a rank is missing\n    inputs: [{include: hang.jsonl}]\n"
                    "    expect: [%s]\n"
                    "  - name: a lost GPU\n    inputs:\n      - receiver: file/kernel\n"
                    "        text: '%s'\n    expect: [%s]\n"
                    "  - name: both\n    inputs:\n      - {include: [hang.jsonl]}\n"
                    "      - {receiver: file/kernel, text: '%s'}\n    expect: [%s, %s]\n"
                    % (HANG_EXPECTED, XID, LOST, XID, LOST, HANG_EXPECTED))
        said = ("ok      a rank is missing (8 events, 1 verdict)\nok      a lost GPU (1 event, 1 verdict)"
                "\nok      both (9 events, 2 verdicts)\n3 tests, 0 failed\n")
        self.expect(0, "test", "c.yaml", out=said)
        self.expect(0, "test", "--config", "c.yaml", out=said)
        self.expect(0, "test", "c.yaml", "--test", "both", "--test", "a lost GPU",
                    out=said[said.index("ok      a lost"):].replace("3 tests", "2 tests"))
        self.expect(64, "test", "c.yaml", "--test", "a lost GPUs", out="", err=None)
        self.expect(64, "test", out="", err=None)
        self.expect(66, "test", "none.yaml", out="", err=None)

    def differs(self):
        hang = "    inputs: [{include: hang.jsonl}]\n    expect: "
        found = ("nccl_hang:da52bce008867f05: Rank 5 never called all_reduce 1201 of default_pg; 7 "
                 "ranks wait for it, for 7 min 0 s when last seen")
        unexpected = ["unexpected nccl_hang, kind missing_rank, severity error, culprit rank 5", found]
        self.one(hang + "[]\n", unexpected)
        self.one(hang + "[]\n    others: consequences\n", unexpected)
        self.one(hang + "[]\n    others: any\n", [])
        self.one(hang + "[{pattern: nccl_hang, severity: critical, culprit: rank 3}]\n",
                 ["differs severity error, expected critical; culprit rank 5, expected rank 3", found])
        self.one(hang + "[{pattern: nccl_hang, culprit: []}]\n",
                 ["differs culprit rank 5, expected nobody", found])
        self.one(hang + "[{pattern: first_exit, culprit: [rank 1, node a]}]\n",
                 ["missing first_exit, culprit rank 1, node a"] + unexpected)
        self.one(hang + "[%s, %s]\n" % (HANG_EXPECTED, HANG_EXPECTED),
                 ["missing nccl_hang, severity error, culprit rank 5, suspect node gpu-node-02"])
        self.one(hang + "[{pattern: nccl_hang, root: false, confidence: 86, state: resolved, "
                 "kind: desync, job: j, headline: Rank 6}]\n",
                 ["differs state open, expected resolved; kind missing_rank, expected desync; job "
                  "none, expected j; root true, expected false; confidence 85, expected at least 86; "
                  "headline does not contain \"Rank 6\"", found])
        self.one(hang + "[{pattern: nccl_hang, root: true, confidence: 85, state: open, "
                 "kind: missing_rank, headline: all_reduce 1201, job: j}]\n",
                 ["differs job none, expected j", found])
        self.one("    inputs: [{include: hang.jsonl, job_id: j}]\n    expect: [{pattern: nccl_hang, "
                 "job: j}]\n", [])

    def inputs(self):
        away = "cannot be read: No such file or directory"
        self.one("    inputs: [{include: gone.jsonl}]\n    expect: []\n",
                 ["input there is nothing to read: gone.jsonl: " + away])
        self.one("    inputs: [{include: gone.jsonl}, {include: hang.jsonl}]\n    expect: [%s]\n"
                 % HANG_EXPECTED, ["input there is nothing to read: gone.jsonl: " + away])
        self.one("    inputs: [{include: [gone.jsonl, hang.jsonl]}]\n    expect: [%s]\n"
                 % HANG_EXPECTED, ["input gone.jsonl: " + away])
        self.one("    inputs: [{include: 'gone*'}, {include: hang.jsonl}]\n    expect: [%s]\n"
                 % HANG_EXPECTED, None)
        write(self.folder + "/noise", bytes(range(256)) * 64)
        self.one("    inputs: [{include: noise}]\n    expect: []\n",
                 ["input noise: not read: not a text and no format that culprit knows"])
        with gzip.open(self.folder + "/hang.gz", "wb") as file, open(HANG, "rb") as source:
            file.write(source.read())
        self.one("    inputs: [{include: hang.gz}]\n    expect: [%s]\n" % HANG_EXPECTED, [])
        self.one("    inputs: [{text: '{\"no\": 1}', name: a.json}]\n    expect: []\n",
                 ["input a.json: not read: unrecognised format; name one with the option format"])
        self.one("    inputs: [{text: a, name: a/b}, {text: a, name: a/b/c}]\n    expect: []\n",
                 ["input cannot create a/b/c: Not a directory"])
        # A log with nothing in it is a log.
        self.one("    inputs: [{text: 'all is well', format: log}]\n    expect: []\n", [])
        broken = ("    inputs: [{text: '{\"source\":\"fr_dump\",', format: tagged, name: a/b/c}]\n"
                  "    expect: []\n")
        self.one(broken, ["input a/b/c: it ends inside a record (byte 21, after 1 records): what was whole "
                          "has been read"])
        broken = ("    inputs: [{text: '{\"source\":\"nobody\"}', format: tagged, name: a/b/c}]\n"
                  "    expect: []\n")
        self.one(broken, ["refused 1 record was refused, expected 0", "refused a/b/c:1: source: found the "
                          "text \"nobody\", expected one of app_log, dcgm, error_file, fr_dump, "
                          "fr_entry, ib_counters, k8s_watch, kmsg, launcher_log, nccl_inspector, "
                          "nccl_ras, rank_map, slurm, sysfs_aer"])
        self.one(broken + "    refused: 1\n", [])
        self.one(broken + "    refused: 2\n", None)

    def other_ways(self):
        """Directories, patterns, exclude, folders of the configuration, tests in their own file."""
        passed = "ok      t (8 events, 1 verdict)\n1 test, 0 failed\n"
        deep = os.path.join(self.folder, "a[1]", "data")
        os.makedirs(deep)
        shutil.copy(HANG, deep + "/one.jsonl")
        write(deep + "/two.jsonl", "{broken\n")
        write(deep + "/job.json", "{\"no\": \"input\"}")
        write(self.folder + "/base.yaml", BASE)
        for include in ("data", "[data/*.jsonl]", "['data/**/o*.jsonl', data/one.jsonl]"):
            write(self.folder + "/a[1]/tests.yaml",
                  "tests:\n  - name: t\n    inputs: [{include: %s, exclude: [two.jsonl]}]\n"
                  "    expect: [%s]\n" % (include, HANG_EXPECTED))
            self.expect(0, "test", "base.yaml", "a[1]/tests.yaml", out=passed)
        self.expect(0, "test", "--config", "base.yaml", "--config", self.folder + "/a[1]/tests.yaml",
                    out=passed)

    def options(self):
        """What the processors and receivers are set to counts."""
        quiet = BASE + "processors: {nccl_hang: {stuck_after: 20m}}\n"
        hang = "    inputs: [{include: hang.jsonl}]\n    expect: "
        self.one(hang + "[]\n", [], quiet)
        self.expect(1, "test", "c.yaml", "--set", "processors.nccl_hang.stuck_after=1m")
        # The node is the receiver's, the zone the input's own.
        xid = "    inputs: [{receiver: file/kernel, text: '%s'%s}]\n    expect: [%s]\n"
        self.one(xid % (XID, "", LOST), [])
        self.one(xid % (XID, ", node: n8", LOST.replace("n7", "n8")), [])
        self.one("    inputs: [{text: '%s'}]\n    expect: [%s]\n" % (XID, LOST), None)
        # An option that holds ${…} differs by machine: it is left out, as if it were not there.
        variable = BASE.replace("node: n7", "node: \"${env:CULPRIT_TEST_NODE:-n7}\"")
        self.one(xid % (XID, "", LOST), None, variable)
        self.one(xid % (XID, ", node: n7", LOST), [], variable)
        # The only receiver need not be named.
        alone = BASE.replace("  file/ranks: {include: [/nowhere]}\n", "").replace("file/ranks, ", "")
        self.one("    inputs: [{text: '%s'}]\n    expect: [%s]\n" % (XID, LOST), [], alone)
        # A dollar is one.
        self.one("    inputs: [{text: 'costs $5, ${env:X} and $$', format: log}]\n    expect: []\n", [])

    def times(self):
        """What is written without a year is of the year that `written` says, whenever it is run."""
        line = "Mar  1 10:00:00 n7 kernel: " + XID.split("] ")[1]
        for written in ("", ", written: '2020-06-01T00:00:00Z'"):
            self.one("    inputs: [{text: '%s'%s}]\n    expect: [{pattern: gpu_fault}]\n"
                     % (line, written), [])

    # -- formats ----------------------------------------------------------------------------------

    def formats(self):
        self.config("  - name: \"<a> & \\\"b\\\"\"\n    inputs: [{include: hang.jsonl}]\n"
                    "    expect: []\n"
                    "  - {name: good, inputs: [{include: hang.jsonl}], expect: [], others: any}\n")
        twice = [self.expect(1, "test", "c.yaml", "--format", kind).out
                 for kind in ("json", "junit", "text", "json", "junit", "text")]
        self.checks.equal(twice[:3], twice[3:], "the same bytes again")
        document = json.loads(twice[0])
        self.checks.equal((document["count"], document["failed"]), (2, 1), "counts in JSON")
        bad, good = document["tests"]
        self.checks.equal((bad["passed"], bad["name"], bad["pipeline"], bad["file"], bad["line"],
                           bad["verdicts"]), (False, '<a> & "b"', "all", "c.yaml", 13, 1), "JSON")
        self.checks.equal([one["kind"] for one in bad["differences"]], ["unexpected"], "JSON")
        self.checks.equal((good["passed"], good["differences"]), (True, []), "JSON of what passed")
        root = xml.etree.ElementTree.fromstring(twice[1])
        self.checks.equal((root.get("tests"), root.get("failures")), ("2", "1"), "counts in JUnit")
        cases = root.findall("testsuite/testcase")
        self.checks.equal([case.get("name") for case in cases], ['<a> & "b"', "good"], "JUnit")
        self.checks.check("Rank 5" in cases[0].find("failure").text, "JUnit says what differs")
        self.checks.check(cases[1].find("failure") is None, "JUnit of what passed")

    # -- what is wrong in a configuration ---------------------------------------------------------

    def mistakes(self):
        start = "  - name: t\n    inputs: [{include: hang.jsonl}]\n"
        for tests, said in (
                (start, r"13:5: tests\[0\]\.expect: is required"),
                (start + "    expect: none\n", r"expect: must be a list, not a text"),
                (start + "    expect: [{pattern: ncl_hang}]\n",
                 r"15:24: tests\[0\]\.expect\[0\]\.pattern: there is no pattern 'ncl_hang'; did you "
                 r"mean 'nccl_hang'\?"),
                (start + "    expect: [{pattern: zzz}]\n", r"culprit components"),
                (start + "    expect: [{}]\n", r"expect\[0\]\.pattern: is required"),
                (start + "    expect: [{pattern: nccl_hang, severty: error}]\n",
                 r"severty: unknown key; did you mean 'severity'"),
                (start + "    expect: [{pattern: nccl_hang, severity: fatal}]\n",
                 r"must be any, info, warning, error or critical"),
                (start + "    expect: [{pattern: nccl_hang, culprit: \"3\"}]\n", r"'3' is not KIND NAME"),
                (start + "    expect: [{pattern: nccl_hang, victim: rnk 3}]\n",
                 r"did you mean 'rank'\?"),
                (start + "    expect: [{pattern: nccl_hang, suspect: [rank]}]\n", r"names no rank"),
                (start + "    expect: []\n    others: some\n", r"none, consequences or any"),
                (start + "    expect: []\n    refused: -1\n", r"tests\[0\]\.refused"),
                (start + "    expect: []\n    pipeline: al\n", r"there is no pipeline 'al'"),
                (start + "    expect: []\n  - name: t\n    inputs: [{text: x}]\n    expect: []\n",
                 r"tests\[1\]\.name: the test in line 13 has the same name"),
                ("  - name: t\n    inputs: []\n    expect: []\n", r"the list is empty"),
                ("  - name: t\n    expect: []\n", r"tests\[0\]\.inputs: is required"),
                ("  - name: t\n    inputs: [{}]\n    expect: []\n", r"has no input"),
                ("  - name: t\n    inputs: [{include: a, text: b}]\n    expect: []\n",
                 r"has both include and text"),
                ("  - name: t\n    inputs: [{include: '-'}]\n    expect: []\n",
                 r"cannot read standard input"),
                ("  - name: t\n    inputs: [{text: x, name: ../x}]\n    expect: []\n",
                 r"is not the relative path"),
                ("  - name: t\n    inputs: [{include: x, name: x}]\n    expect: []\n",
                 r"is for text"),
                ("  - name: t\n    inputs: [{text: x, name: x}, {text: y, name: x}]\n    expect: []\n",
                 r"two texts have the name 'x'"),
                ("  - name: t\n    inputs: [{text: x, written: now}]\n    expect: []\n",
                 r"is not a time since 1970"),
                ("  - name: t\n    inputs: [{text: x, receiver: file/rank}]\n    expect: []\n",
                 r"did you mean 'file/ranks'"),
                ("  - name: t\n    inputs: [{text: x, quarantine: q}]\n    expect: []\n",
                 r"quarantine: unknown key"),
                ("  - name: t\n    inputs: [{text: x, timezone: Mars/X}]\n    expect: []\n",
                 r"tests\[0\]\.inputs\[0\]\.timezone: no such time zone"),
                ("  - name: t\n    inputs: [{include: 'a{b'}]\n    expect: []\n",
                 r"the pattern .* cannot be used"),
                ("  - t\n", r"tests\[0\]: must be a map"), ("  a: b\n", r"tests: must be a list")):
            self.config(tests)
            for command in (["test", "c.yaml"], ["validate", "--no-environment", "c.yaml"]):
                done = self.expect(78, *command, out="", err=None, what=tests)
                self.checks.check(re.search(said, done.errors()),
                                  "%s: %r is not in %s" % (tests, said, done.errors()))
                self.checks.check(re.match(r"c\.yaml:\d+:\d+: tests", done.errors()),
                                  "%s: no place: %s" % (tests, done.errors()))

    def several(self):
        two = BASE.replace("exporters: [json]}", "exporters: [json]}\n    "
                           "bare: {receivers: [file/ranks], processors: [job_filter], exporters: "
                           "[http]}").replace("  json: {", "  http: {endpoint: 'http://x:1/'}\n  json: {")
        two += "processors: {job_filter: {}}\n"
        for pipeline, said in (("", "is required, since there are several: all, bare"),
                               ("    pipeline: bare\n", "reports no verdicts")):
            self.config("  - name: t\n%s    inputs: [{text: x}]\n    expect: []\n" % pipeline, two)
            self.checks.check(said in self.expect(78, "test", "c.yaml", err=None).errors(), said)

    def nothing(self):
        for tests, base in (("", BASE), ("[]", BASE)):
            write(self.folder + "/c.yaml", base + ("tests: %s\n" % tests if tests else ""))
            self.checks.check("has no tests" in
                              self.expect(78, "test", "c.yaml", out="", err=None).errors(), tests)
            self.expect(0, "validate", "--no-environment", "c.yaml", err=None)

    def left_alone(self):
        """Beside tests that fail, run and analyze go on; a test opens and writes nothing else."""
        base = BASE.replace("${env:CULPRIT_TEST_NONE}", self.folder).replace("/nowhere]", HEALTHY + "]")
        base = base.replace("${file:/nowhere/at/all}", self.folder + "/store")
        base = base.replace("service:\n", "service:\n  telemetry: {metrics: {endpoint: "
                            "'unix:%s/socket'}}\n" % self.folder)
        self.config("  - {name: t, inputs: [{include: hang.jsonl}], expect: []}\n", base)
        self.expect(1, "test", "c.yaml")
        for name in ("v.jsonl", "store", "socket"):
            self.checks.check(not os.path.lexists(os.path.join(self.folder, name)), name + " is there")
        self.expect(0, "run", "--once", "--config", "c.yaml", err=None)
        self.checks.check(os.path.exists(self.folder + "/v.jsonl"), "run wrote no verdicts")
        printed = self.expect(0, "config", "print", "--config", "c.yaml", err=None).text()
        self.checks.check("tests:" not in printed, "config print shows tests")

    def many(self):
        """Bounds, and that a long list is told in part."""
        body = "".join("  - {name: n%d, inputs: [{text: x}], expect: []}\n" % i for i in range(1001))
        self.config(body)
        self.checks.check("at most 1000" in self.expect(78, "test", "c.yaml", err=None).errors(),
                          "1001 tests")
        self.one("    inputs: [%s]\n    expect: []\n" % ", ".join(["{text: x}"] * 64), [])
        self.config("  - {name: t, inputs: [%s], expect: []}\n" % ", ".join(["{text: x}"] * 65))
        self.checks.check("at most 64" in self.expect(78, "test", "c.yaml", err=None).errors(), "65")
        self.config("  - {name: t, inputs: [{include: hang.jsonl}], others: any, expect: [%s]}\n"
                    % ", ".join(["{pattern: slow_rank}"] * 256))
        done = self.expect(1, "test", "c.yaml")
        self.checks.check("… and 56 more" in done.text(), "256 are missing: " + done.text()[-300:])


def main():
    with tempfile.TemporaryDirectory(prefix="culprit-config-tests-") as folder:
        suite = Suite(os.path.abspath(sys.argv[1]), folder)
        for part in (suite.passes, suite.differs, suite.inputs, suite.other_ways, suite.options,
                     suite.times, suite.formats, suite.mistakes, suite.several, suite.nothing,
                     suite.left_alone, suite.many):
            part()
    sys.exit(suite.checks.finish())


if __name__ == "__main__":
    main()

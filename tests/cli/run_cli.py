#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit as a user types it: what is printed where, and with which exit code.

    run_cli.py BINARY
"""
import fcntl
import gzip
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from process import TIMEOUT_S, environment, run  # noqa: E402

GOLDEN = os.path.normpath(os.path.join(HERE, "..", "golden"))
CASE = GOLDEN + "/first_cause/002-basic-two-ranks/"
EMPTY = GOLDEN + "/first_cause/001-empty-file/"
KILLED = GOLDEN + "/real/sigkill-rank1"
HEALTHY = GOLDEN + "/real/healthy"
FIELD = GOLDEN + "/field"
EXITS = GOLDEN + "/real_exits"
COMMANDS = ["analyze", "run", "validate", "test", "components", "replay", "version", "help"]
ESCAPE = b"\x1b"


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def vectors():
    """The widest vectors that culprit uses on this processor, by what Linux says of it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^flags\s*:(.*)$", file.read(), re.M)
    flags = set(found.group(1).split()) if found else set()
    if not {"avx2", "bmi1", "bmi2"} <= flags:
        return "baseline"
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi"}
    return "AVX-512" if wide <= flags else "AVX2"


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    def path(self, name):
        return os.path.join(self.folder, name)

    def expect(self, code, *arguments, out=(), err=(), quiet=None, data=b"", **more):
        """Runs culprit; `out` and `err` must match these patterns, the `quiet` one stay empty."""
        done = run(self.binary, *arguments, data=data, folder=self.folder, **more)
        what = "culprit " + " ".join(repr(a)[1:-1] for a in arguments)
        self.checks.check(done.code == code, "%s: exit code %d, not %d: %s"
                          % (what, done.code, code, done.errors()[-1500:]))
        for name, text, patterns in (("stdout", done.text(), out), ("stderr", done.errors(), err)):
            for pattern in patterns:
                self.checks.check(re.search(pattern, text, re.M | re.S),
                                  "%s: %s does not match %r: %.1500s"
                                  % (what, name, pattern, text))
        if quiet is not None:
            self.checks.equal(done.text() if quiet == "out" else done.errors(), "",
                              "%s: std%s" % (what, quiet))
        self.checks.check(b"Sanitizer" not in done.err and b"runtime error" not in done.err,
                          what + ": the sanitizer complains")
        return done

    # -- finding one's way ----------------------------------------------------------------------

    def help(self):
        for how in (["--help"], ["-h"], ["help"]):
            self.expect(0, *how, out=[re.escape(c) for c in COMMANDS], quiet="err")
        for command in COMMANDS:
            own = self.expect(0, command, "--help", out=["culprit " + command], quiet="err")
            self.checks.equal(self.expect(0, "help", command, quiet="err").text(), own.text(),
                              "help %s and %s --help" % (command, command))
            self.expect(0, command, "-h", quiet="err")
        self.expect(0, "analyze", "--help",
                    out=["--output", "text.*summary.*timeline.*verdicts", "--fail-on",
                         r"\b65\b", r"\b66\b", r"\b78\b"])
        self.expect(64, quiet="out", err=["analyze"])
        self.expect(64, "help", "analyse", quiet="out", err=["analyze"])

    def flags(self):
        """Letters in one word, and flags in front of the command."""
        for words in (["analyze", "-qv", CASE], ["-qv", "analyze", CASE],
                      ["--quiet", "analyze", "--verbose", CASE], ["-q", "-v", "analyze", CASE]):
            self.expect(0, *words, quiet="err", out=["Not checked|looked at"])
        self.expect(0, "-q", "--help", out=["Commands:"], quiet="err")

    def columns(self):
        """Help fits a terminal of 80 columns, and says all exit codes that every command has."""
        listed = [line.split()[0] for line in self.expect(0, "help").text()
                  .split("Commands:\n")[1].split("\n\n")[0].splitlines()]
        both = [["config", "print"], ["config", "schema"], ["store", "check"], ["store", "dump"]]
        names = [[name] for name in listed if name not in ("config", "store")] + both
        self.checks.check(len(names) > 15, "the commands that help lists: %r" % listed)
        for name in [[], ["config"], ["store"]] + names:
            text = self.expect(0, "help", *name, quiet="err").text()
            for line in text.splitlines():
                self.checks.check(len(line) <= 80, "help %s: %d columns: %s"
                                  % (" ".join(name), len(line), line))
                self.checks.check(line == line.rstrip(), "blanks at the end of %r" % line)
            if name in names:
                codes = re.findall(r"^  (\d+)\b", text.split("Exit codes:\n")[1], re.M)
                self.checks.check({"0", "64", "74"} <= set(codes), "codes of %s: %r"
                                  % (name, codes))
                self.checks.equal(codes, sorted(codes, key=int), "order of the codes of %s" % name)

    def version(self):
        said = [self.expect(0, *how, out=[r"^culprit \d+\.\d+\.\d+ \([^)\n]+\)\nvector "
                                             r"instructions: (baseline|AVX2|AVX-512)\n$"],
                            quiet="err").text() for how in (["version"], ["--version"], ["-V"])]
        self.checks.equal(len(set(said)), 1, "distinct versions")
        self.checks.equal(said[0].rstrip().rsplit(": ", 1)[1], vectors(), "vector instructions")

    def mistyped(self):
        self.expect(64, "analyse", CASE, quiet="out", err=['"analyze"'])
        self.expect(64, "frobnicate", quiet="out", err=["frobnicate", "help"])
        self.expect(64, "analyze", "--ouput", "summary", CASE, quiet="out",
                    err=["--ouput", "--output"])
        self.expect(64, "analyze", "--output", "sumary", CASE, quiet="out",
                    err=["sumary", "summary"])
        self.expect(64, "analyze", "--output", quiet="out", err=["--output"])
        self.expect(64, "analyze", "--fail-on", "bad", CASE, quiet="out", err=["bad", "warning"])
        self.expect(64, "analyze", "--print-config=yes", quiet="out", err=["--print-config"])
        self.expect(64, "analyze", quiet="out", err=["PATH"])
        for command in (["analyze", CASE], ["validate", "x"], ["run", "--config", "x"],
                        ["test", "x"], ["config", "print", "--config", "x"]):
            self.expect(64, *command, "--set", "nonsense", quiet="out",
                        err=["--set number 1 has no '='; write --set KEY=VALUE"])
        self.expect(64, "analyze", "--set", "a..b=1", CASE, quiet="out", err=["no whole key"])
        self.expect(64, "--verbose", quiet="out", err=["no command.*culprit COMMAND --verbose"])
        self.expect(64, "--versoin", quiet="out", err=["--version"])
        self.expect(64, "--quiet", "frobnicate", quiet="out", err=["frobnicate"])
        self.expect(64, "-q", "version", quiet="out", err=["version: unknown option -q"])
        self.expect(64, "run", quiet="out", err=["--config"])
        self.expect(64, "run", "now", "--config", "x", quiet="out", err=["now"])
        self.expect(64, "validate", quiet="out", err=["--config"])
        self.expect(64, "replay", "--config", "x", quiet="out", err=["--input|--expect"])
        self.expect(64, "version", "--short", quiet="out", err=["--short"])
        self.expect(64, "components", "rank_grop", quiet="out", err=["rank_grop", "rank_group"])

    def completion(self):
        """What the scripts of the shells ask: the words that may stand in place of the last one."""
        wanted = {
            ("an",): ["analyze"], ("--v",): ["--version"], ("nonsense",): [],
            ("config", ""): ["print", "schema", "--help"], ("config", "x"): [],
            ("help", "con"): ["config"], ("help", "config", "p"): ["print"],
            ("analyze", "--out"): ["--output"], ("analyze", "--output", "t"): ["text", "timeline"],
            ("analyze", "-o", "sp"): ["spans"], ("-q", "an"): ["analyze"],
            ("--quiet", "-v", "analyze", "--output", "t"): ["text", "timeline"], ("analyze", "--fail-on=e"): ["--fail-on=error"],
            ("analyze", "--fail-on=zzz"): [], ("analyze", "--pipeline", ""): [],
            ("analyze", "--html", "x"): [":files"], ("analyze", "--html=x"): [":files"],
            ("analyze", "--quiet", ""): [":files"], ("analyze", "file", "--qui"): ["--quiet"],
            ("components", "first"): ["first_cause", "first_exit"], ("version", ""): [],
            ("completion", ""): ["bash", "zsh", "fish"], ("--",): ["--version", "--help"],
        }
        for words, answers in wanted.items():
            done = self.expect(0, "completion", "--words", "--", *words, quiet="err")
            self.checks.equal([line.split("\t")[0] for line in done.text().splitlines()], answers,
                              "what completes %r" % (words,))
        for shell in ("bash", "zsh", "fish"):
            self.expect(0, "completion", shell, quiet="err", out=["completion --words -- "])
        self.expect(64, "completion", quiet="out", err=["no shell given"])
        self.expect(64, "completion", "tcsh", quiet="out", err=["tcsh"])
        self.expect(64, "completion", "bash", "zsh", quiet="out", err=["zsh"])

    # -- inputs ---------------------------------------------------------------------------------

    def summary(self, paths, wanted=CASE, code=0, data=b"", **more):
        done = self.expect(code, "analyze", "--output", "summary", *paths, data=data, **more)
        self.checks.equal(done.out, bytes_of(wanted + "expected.json"),
                          "summary of " + " ".join(paths))

    def inputs(self):
        lines = bytes_of(CASE + "events.jsonl")
        records = [json.loads(line) for line in lines.splitlines()]
        self.summary([CASE + "events.jsonl"])
        self.summary(["-"], data=lines)
        self.summary(["-"], data=gzip.compress(lines))
        self.summary([write(self.path("events.jsonl.gz"), gzip.compress(lines))])
        self.summary([write(self.path("two members.jsonl.gz"),
                            gzip.compress(lines[:1000]) + gzip.compress(lines[1000:]))])
        self.summary([write(self.path("crlf.jsonl"), lines.replace(b"\n", b"\r\n"))])
        self.summary([write(self.path("no-newline.jsonl"), lines[:-1])])
        self.summary([write(self.path("blank lines.jsonl"), lines.replace(b"\n", b"\n\n \n"))])
        self.summary([write(self.path("array.json"), json.dumps(records, indent=2))])
        self.summary([write(self.path("object.json"), json.dumps({"events": records}))])
        self.summary([write(self.path("mlx.json"), json.dumps(
            {"telemetry_events": records, "session_summary": {}}))])
        self.summary(["--", write(self.path("-dash.jsonl"), lines)[len(self.folder) + 1:]])
        self.summary([write(self.path("r\u00e4nk \U0001f525.jsonl"), lines)])
        self.summary([EMPTY + "events.jsonl"], EMPTY)
        self.summary(["-"], EMPTY)
        one = self.expect(0, "analyze", "--output", "summary",
                          write(self.path("one.json"), json.dumps(records[0], indent=4)))
        self.checks.equal(json.loads(one.out)["rank_sample_counts"], {"0": 1}, "one bare event")
        done = self.expect(0, "analyze", "--output=summary", CASE + "events.jsonl", "--quiet",
                           quiet="err")
        self.checks.equal(done.out, bytes_of(CASE + "expected.json"), "options after the path")

    def refused(self):
        bad = write(self.path("bad.jsonl"), '{"schema_version":3}\nnot json\n{"rank":\n[1]\n')
        self.expect(65, "analyze", bad, err=[r"bad\.jsonl:1: ", r"bad\.jsonl:3: ",
                                             r"\n2 lines are of no interest\n"])
        lines = bytes_of(CASE + "events.jsonl").splitlines(keepends=True)
        broken = lines[0].replace(b'"pid":4000', b'"pid":"4000"')
        self.checks.check(broken != lines[0], "the line was broken as intended")
        mixed = write(self.path("mixed.jsonl"), b"".join([lines[0], broken] + lines[1:]))
        self.summary([mixed], err=[r"mixed\.jsonl:2: pid"])
        torn = write(self.path("torn.jsonl"), b"".join(lines) + lines[0][:200])
        self.summary([torn], err=[r"torn\.jsonl.*last line.*dropped"])
        self.expect(66, "analyze", self.path("none.jsonl"), quiet="out", err=["none.jsonl"])
        os.mkdir(self.path("hollow"))
        self.expect(66, "analyze", self.path("hollow"), quiet="out", err=["hollow|no file"])
        for number in range(5):
            os.makedirs(self.path("ranks/%d" % number))
            write(self.path("ranks/%d/stdin" % number), "x")
        done = self.expect(66, "analyze", self.path("ranks"), quiet="out", err=["; and 3 more$"])
        self.checks.equal(done.errors().count(": not read: stdin"), 2, "reasons: " + done.errors())
        self.summary([CASE + "events.jsonl", self.path("none.jsonl")], code=66,
                     err=[r"none\.jsonl.*No such file"])
        self.summary(["--ignore-missing", CASE + "events.jsonl", self.path("none.jsonl")],
                     err=[r"none\.jsonl.*No such file"])
        evil = write(self.path("evil\n\x1b[31m.jsonl"), "not json\n")
        done = self.expect(0, "analyze", evil, err=["its only line is of no interest"])
        self.checks.check(ESCAPE not in done.err, "a control character of a path is printed raw")

    def quiet_logs(self):
        """A log that can be read is valid input, also when it says nothing that is looked for."""
        log = write(self.path("job.log"), "2026-11-21 08:02:23 INFO step 1\nloss 3.2\n")
        empty = write(self.path("empty.log"), "")
        noise = write(self.path("noise.bin"), bytes(range(256)) * 64)
        said = [r"job\.log: read as a log, and none of its 2 lines is of interest"]
        self.expect(0, "analyze", log, err=said)
        self.expect(0, "analyze", log, "--format", "log", err=said)
        self.expect(0, "analyze", log, "--format", "kernel_log")
        self.expect(0, "analyze", log, empty, err=said)
        self.expect(0, "analyze", log, "--quiet", "--fail-on", "info", quiet="err")
        self.expect(0, "analyze", log, noise, err=["left out 1 file"])
        self.expect(65, "analyze", noise, err=["noise.bin: not read"])
        self.expect(65, "analyze", noise, empty, err=["noise.bin: not read"])
        self.expect(64, "analyze", log, "--explain", "x", err=["no verdict begins with x"])

    def before_the_work(self):
        """What cannot be written or read at the end is told before anything is read."""
        there = write(self.path("kept.json"), "kept")
        for path in (self.path("none/tally.json"), self.folder):
            self.expect(73, "analyze", "--stats", path, KILLED, quiet="out", err=["--stats: .*/"])
        self.expect(66, "analyze", "--stats", there, self.path("none.jsonl"), quiet="out")
        self.checks.equal(bytes_of(there), b"kept", "the document of a run that failed")
        new = self.path("new.json")
        self.expect(66, "analyze", "--stats", new, self.path("none.jsonl"), quiet="out")
        self.checks.check(not os.path.exists(new), "an empty document is left behind")
        write(there, "x" * 100000)
        self.expect(0, "analyze", "--stats", there, CASE)
        self.checks.equal(len(json.loads(bytes_of(there))["sources"]) > 0, True, "the document")
        self.expect(73, "analyze", "--html", self.path("none/page.html"), KILLED, quiet="out")
        config = write(self.path("replay.yaml"), self.config_text(KILLED))
        self.expect(66, "replay", "--config", config, "--input", self.path("gone"),
                    "--expect", self.path("gone.jsonl"), quiet="out", err=["gone.jsonl"])

    def missing(self):
        """An answer that does without an input says so, and so does the exit code."""
        there = KILLED + "/rank1"
        gone = [self.path("rank7.jsonl"), self.path("rank8*.jsonl")]
        told = [r"Missing input", r"rank7\.jsonl: does not exist", r"rank8\*\.jsonl: does not"]
        self.expect(66, "analyze", there, *gone, out=told, err=["rank7", "rank8"])
        self.expect(66, "analyze", there, *gone, "--quiet", "--fail-on", "info", out=told)
        self.expect(0, "analyze", there, *gone, "--ignore-missing", out=told)
        self.expect(2, "analyze", KILLED, *gone, "--ignore-missing", "--fail-on", "info")
        self.expect(66, "analyze", EMPTY + "events.jsonl", gone[0])
        self.expect(66, "analyze", "--ignore-missing", *gone, quiet="out")
        done = self.expect(66, "analyze", "--output", "verdicts", KILLED, *gone)
        whole = self.expect(0, "analyze", "--output", "verdicts", KILLED)
        found = verdicts.read_lines(done.text())
        for verdict in found:
            self.checks.equal(verdict["attributes"].pop("culprit.missing_inputs"),
                              ", ".join(gone), "the attribute of what is missing")
        self.checks.equal(found, verdicts.read_lines(whole.text()), "all else")
        page = self.path("page.html")
        self.expect(66, "analyze", "--html", page, KILLED, *gone)
        self.checks.check(b"rank7.jsonl: does not exist" in bytes_of(page), "the page")
        self.checks.check("Missing from" not in self.expect(0, "analyze", KILLED).text(),
                          "nothing is missing")

    def explain(self):
        one = verdicts.read_lines(self.expect(0, "analyze", "--output", "verdicts",
                                              KILLED).text())[0]
        self.expect(0, "analyze", "--explain", one["id"], KILLED, out=["Evidence"])
        # Of one moment each is shown where it stands.
        self.expect(0, "analyze", "--explain", "node_fault", FIELD + "/38-panic-oops/input.log",
                    out=[r"(?s)kernel_oops:.*input\.log:1\n.*kernel_panic:.*input\.log:4\n"])
        self.expect(0, "analyze", "--explain", one["id"][:12], KILLED, out=["Evidence"])
        self.expect(64, "analyze", "--explain", "nonsense\x1b[31m", KILLED, quiet="out", err=[
            r"no verdict begins with nonsense\\x1b\[31m; these were found:", re.escape(one["id"]),
            re.escape(one["headline"])])
        self.expect(64, "analyze", "--explain", "nonsense", HEALTHY, quiet="out",
                    err=["no verdict begins with nonsense"])
        self.expect(66, "analyze", "--explain", one["id"], KILLED, self.path("gone"),
                    out=["Evidence", "Missing input"])
        # An empty beginning fits all, and there is one.
        self.expect(0, "analyze", "--explain", "", KILLED, out=["Evidence"])

    def directory(self):
        folder = self.path("job")
        os.makedirs(folder + "/rank0")
        lines = bytes_of(CASE + "events.jsonl")
        write(folder + "/rank0/segment-000001.jsonl", lines)
        write(folder + "/rank0/segment-000001.jsonl.tmp", "half of it")
        write(folder + "/rank0/other.jsonl", lines)
        write(folder + "/rank0/manifest.json", "{broken")
        write(folder + "/rank0/rollups.json", "{}")
        write(folder + "/.hidden.jsonl", lines)
        write(folder + "/README.md", "# no telemetry\n")
        self.summary([folder], err=["README.md"])
        self.summary([folder + "/rank0/segment-000001.jsonl"])

    # -- outputs --------------------------------------------------------------------------------

    def text(self):
        self.expect(0, "analyze", HEALTHY, out=[r"^Healthy: .*4 of 4 ranks", r"Not checked: hangs"])
        # A job whose ranks waited in vain is not healthy; without dumps nobody knows for whom.
        self.expect(0, "analyze", EXITS + "/hang-2", out=[r"^Not explained: ", "more signs"])
        # What failed is named, also where no detector can say why.
        self.expect(0, "analyze", FIELD + "/40-storage-errors/input.log",
                    out=[r"^Not explained: .*I/O error"])
        self.expect(2, "analyze", "--fail-on", "warning", FIELD + "/40-storage-errors/input.log")
        # Nor is what only this pipeline has no stage for.
        fault = FIELD + "/43-off-the-bus-syslog/input.log"
        self.expect(0, "analyze", fault, out=[r"GPU .*1d:00"])
        config = write(self.path("memory.yaml"), json.dumps({
            "receivers": {"file": {"include": ["unused"]}}, "exporters": {"text": {}},
            "service": {"pipelines": {"p": {
                "receivers": ["file"], "preset": "memory", "exporters": ["text"]}}}}))
        self.expect(0, "analyze", "--config", config, fault,
                    out=[r"^Nothing was found in .*, but logs report failures"])
        self.expect(0, "analyze", "-v", HEALTHY, out=[r"Memory: no rank grew", r"Missing evidence"])
        self.expect(64, "analyze", "-v", "-o", "summary", HEALTHY, quiet="out", err=["--verbose"])
        done = self.expect(0, "analyze", KILLED, out=[r"\brank 1\b", "backward", "MiB|GiB"],
                           err=["840 events"])
        self.checks.check(ESCAPE not in done.out, "colours in a pipe")
        done = self.expect(0, "analyze", HEALTHY)
        self.checks.check(ESCAPE not in done.out, "colours in a pipe")
        self.checks.check(ESCAPE in self.on_terminal("analyze", KILLED), "no colours on a terminal")
        for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.checks.check(ESCAPE not in self.on_terminal("analyze", KILLED, **more),
                              "colours on a terminal with %s" % more)
        self.checks.check(ESCAPE in self.on_terminal("analyze", KILLED, NO_COLOR=""),
                          "an empty NO_COLOR counts as none")

    def page_hint(self):
        """A person at a terminal is told how to open the page; nobody else is."""
        page = self.path("the page's # 1.html")
        url = "file://" + urllib.parse.quote(os.path.realpath(page), safe="/~")
        for said, options, wanted in (
                ("with a page", ["--html", page], "open the page: %s\r\n" % url),
                ("without", [], "as a page with charts: add --html report.html\r\n")):
            out = self.on_terminal("analyze", *options, KILLED, err=True).decode()
            self.checks.check(out.endswith(wanted), "%s: %r" % (said, out[-300:]))
        self.checks.check(os.path.exists(page), "the page is there")
        out = self.on_terminal("analyze", "--quiet", "--html", page, KILLED, err=True).decode()
        self.checks.check("file://" not in out, "quiet: %r" % out[-300:])
        for options in ([], ["--html", page]):
            done = self.expect(0, "analyze", *options, KILLED)
            self.checks.check(b"file://" not in done.err and b"--html" not in done.err,
                              "in a pipe: %r" % done.err[-300:])

    def on_terminal(self, *arguments, err=False, **more):
        """What is printed when standard output is a terminal of 100 columns; `err`: standard error,
        too."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        more.setdefault("TERM", "xterm-256color")
        with subprocess.Popen([self.binary, *arguments], stdin=subprocess.DEVNULL, stdout=slave,
                              stderr=slave if err else subprocess.DEVNULL,
                              env=environment(**more)) as process:
            os.close(slave)
            out = b""
            while True:
                try:
                    block = os.read(master, 65536)
                except OSError:                 # the terminal's other side was closed
                    block = b""
                if not block:
                    break
                out += block
            process.wait(TIMEOUT_S)
        os.close(master)
        self.checks.equal(process.returncode, 0, "exit code on a terminal")
        self.checks.check(b"rank 1" in out, "rank 1 on a terminal")
        return out

    def verdict_lines(self):
        first = self.expect(0, "analyze", "--output", "verdicts", KILLED)
        found = verdicts.read_lines(first.text())
        self.checks.equal([(v["kind"], verdicts.named(v, "culprit")) for v in found],
                          [("leak", [1])], "verdicts of sigkill-rank1")
        again = self.expect(0, "analyze", "--output", "verdicts", KILLED)
        self.checks.equal(again.out, first.out, "verdicts of a second run")

    def fail_on(self):
        for severity, code in (("info", 2), ("warning", 2), ("error", 2), ("critical", 0),
                               ("never", 0)):
            self.expect(code, "analyze", "--fail-on", severity, KILLED)
        self.expect(0, "analyze", "--fail-on", "warning", HEALTHY)
        self.expect(2, "analyze", "--output", "summary", "--fail-on", "error", KILLED,
                    out=['"job_id"'])

    def closed(self):
        for output in ("timeline", "text", "verdicts"):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([self.binary, "analyze", "--output", output, KILLED],
                                  stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
                                  env=environment(), timeout=TIMEOUT_S, check=False)
            os.close(writer)
            self.checks.check(done.returncode == 0, "%s into a closed pipe: exit code %d: %s"
                              % (output, done.returncode, done.stderr[-500:]))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([self.binary, "analyze", "--output", "timeline", KILLED],
                                  stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                  env=environment(), timeout=TIMEOUT_S, check=False)
        self.checks.equal(done.returncode, 74, "exit code on a full disk")
        self.checks.check(b"No space left" in done.stderr, "a full disk is not said")

    # -- configurations -------------------------------------------------------------------------

    def config_text(self, path, out="-"):
        return ("receivers:\n  file:\n    include: [%s]\n    start_at: beginning\n"
                "exporters:\n  json:\n    content: verdicts\n    path: %s\n"
                "service:\n  pipelines:\n    memory:\n      receivers: [file]\n"
                "      preset: all\n      exporters: [json]\n"
                % (json.dumps(path), json.dumps(out)))

    def hints(self):
        """Configurations that mean well: what is said of each, where, and what stands first."""
        wrong = write(self.path("wrong.yaml"), """\
receivers:
  otlp: {protocols: {grpc: {endpoint: 0.0.0.0:4317}}}
  http: {endpoint: 4318}
  file: {include: no}
exporters:
  file: {path: x}
  otlphttp: {}
service: {pipelines: {p: {receivers: [file, otlp, http], exporters: [file, otlphttp]}}}
""")
        done = self.expect(78, "validate", wrong, quiet="out", err=[
            r"wrong\.yaml:2:3: receivers\.otlp: there is no receiver 'otlp'; use 'http'",
            r"wrong\.yaml:3:20: .*write \"127\.0\.0\.1:4318\"",
            r"wrong\.yaml:4:19: receivers\.file\.include: 'no' is a truth value",
            r"wrong\.yaml:6:3: .*use 'json'", r"wrong\.yaml:7:3: .*use 'otlp'"])
        self.checks.equal(len(done.errors().splitlines()), 5, "problems: " + done.errors())
        spare = write(self.path("spare.yaml"), """\
receivers: {file: {include: [a]}, http: {endpoint: "127.0.0.1:1"}, prometheus_scrape: {endpoints: ["http://a"]}}
processors: {memory_limiter: {limit: 1GiB}, align: {}}
exporters: {json: {path: "-"}, text: {}}
service: {pipelines: {p: {receivers: [http, prometheus_scrape], preset: memory,
                          processors: [memory_limiter], exporters: [json]}}}
""")
        done = self.expect(0, "validate", spare, out=[
            "^pipeline p: http, prometheus_scrape → memory_limiter → job_filter → "],
            err=[r"spare\.yaml:1:13: receivers\.file: is not started, as no pipeline uses it",
                 r"spare\.yaml:3:32: exporters\.text: is not started"])
        self.checks.equal(len(done.errors().splitlines()), 2, "warnings: " + done.errors())
        self.checks.check("checkpoint" not in done.text(), "a checkpoint without a store")
        kept = bytes_of(spare).decode() + "extensions: {file_storage: {directory: %s}}\n" % (
            json.dumps(self.folder))
        stored = write(self.path("stored.yaml"),
                       kept.replace("service: {", "service: {extensions: [file_storage], "))
        self.expect(0, "validate", stored, out=["since the last checkpoint"])

    def grpc_ports(self):
        """Port 4317 is where gRPC is expected, and culprit speaks OTLP over HTTP."""
        config = {"receivers": {"file": {"include": [EMPTY]}},
                  "exporters": {"otlp": {"endpoint": "http://127.0.0.1:4317"}},
                  "service": {"pipelines": {"p": {"receivers": ["file"], "preset": "all",
                                                  "exporters": ["otlp"]}}}}
        path = write(self.path("grpc.yaml"), json.dumps(config))
        self.expect(0, "run", "--once", "--config", path, err=["C3904.* gRPC at port 4317"])
        config["exporters"]["otlp"]["endpoint"] += "8"
        write(path, json.dumps(config))
        done = self.expect(0, "run", "--once", "--config", path)
        self.checks.check("C3904" not in done.errors(), "of another port: " + done.errors())
        # An address of this machine that no other test takes.
        address = "127.%d.%d.3:4317" % divmod(os.getpid() % 65536, 256)
        config["receivers"] = {"http": {"endpoint": address}}
        config["service"]["pipelines"]["p"]["receivers"] = ["http"]
        write(path, json.dumps(config))
        process = subprocess.Popen([self.binary, "run", "--config", path], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   env=environment())
        said = b""
        while b"C2108" not in said:
            line = process.stderr.readline()
            said += line
            if line == b"":
                break
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)
        self.checks.check(b"C2112" in said and b"4318" in said, "of port 4317: %r" % said)

    def config(self):
        good = self.config_text(KILLED)
        path = write(self.path("good.yaml"), good)
        self.expect(0, "validate", "--config", path, out=["memory"], quiet="err")
        self.expect(66, "validate", "--config", self.path("none.yaml"), quiet="out",
                    err=["none.yaml"])
        self.expect(66, "validate", self.path("none.yaml"), quiet="out", err=["none.yaml"])
        self.expect(66, "run", "--config", self.path("none.yaml"), quiet="out", err=["none.yaml"])
        bad = write(self.path("bad.yaml"), good.replace("start_at", "start_att")
                    .replace("content: verdicts", "content: verdict")
                    .replace("preset: all", "preset: all\n      evaluate_every: 10"))
        wrong = [r"bad\.yaml:4:\d+: .*start_att.*start_at", r"bad\.yaml:7:\d+: .*verdicts",
                 r"bad\.yaml:14:\d+: .*evaluate_every"]
        self.expect(78, "validate", "--config", bad, quiet="out", err=wrong)
        self.expect(78, "run", "--config", bad, quiet="out", err=wrong)
        self.expect(78, "run", "--once", "--config", bad, quiet="out", err=wrong)
        self.expect(78, "analyze", "--config", bad, KILLED, quiet="out", err=wrong)
        done = self.expect(78, "validate", "--config", bad, "--format", "json")
        self.checks.equal(len(json.loads(done.out)["problems"]), 3, "problems in JSON")
        tab = write(self.path("tab.yaml"), good.replace("  file:", "\tfile:"))
        self.expect(78, "validate", "--config", tab, quiet="out", err=[r"tab\.yaml:2:\d+: "])
        twice = write(self.path("twice.yaml"), good + "exporters: {}\n")
        self.expect(78, "validate", "--config", twice, quiet="out",
                    err=[r"twice\.yaml:15:\d+: exporters"])
        self.expect(78, "analyze", "--set", "processors.spike_detect.min_growht=1MiB", KILLED,
                    quiet="out", err=["min_growht", "min_growth"])
        self.expect(78, "analyze", "--set", "service.batch_size=0", KILLED, quiet="out",
                    err=["batch_size"])
        self.expect(0, "run", "--once", "--config", path, out=['"leak"'])
        self.secrets(good)
        self.promises(path)

    def promises(self, path):
        """`validate FILE` says "valid" and each promise once, whoever it is about."""
        done = self.expect(0, "validate", path, quiet="err", out=[r"\Avalid\npipeline memory: "])
        self.checks.equal(self.expect(0, "validate", "--config", path).out, done.out,
                          "validate with --config")
        self.checks.equal(self.expect(0, "run", "--dry-run", "--config", path).out, done.out,
                          "run --dry-run")
        two = write(self.path("two.yaml"), """receivers:
  file/a: {include: [/a]}
  file/b: {include: [/b]}
  file/c: {include: [/c], start_at: end}
  http: {}
exporters:
  json/a: {path: %s/a}
  json/b: {path: %s/b}
  json/c: {path: %s/c, retry_on_failure: {enabled: false}}
service:
  pipelines:
    one: {receivers: [file/a, file/b, http], preset: all, exporters: [json/a, json/b]}
    two: {receivers: [file/b, file/c, http], preset: all, exporters: [json/b, json/c]}
""" % ((self.folder,) * 3))
        text = self.expect(0, "validate", two, quiet="err", out=[
            "After a crash or restart each of file/a and file/b reads",
            "After a crash or restart file/c goes on", "While one of json/a and json/b cannot deliver",
            "What json/c cannot deliver at once is dropped"]).text()
        said = text[text.index("guarantees:"):]
        for sentence in re.split(r"(?<=\.)\s+", said.strip()):
            self.checks.equal(said.count(sentence), 1, "said once: " + sentence)
        self.expect(0, "validate", two, "--format", "json", out=['"valid": true', "file/a and file/b"])
        other = write(self.path("more.yaml"), "service: {batch_size: 0}\n")
        self.expect(78, "validate", path, other, quiet="out", err=["more.yaml:1:23: service.batch_size"])

    def secrets(self, good):
        lacking = write(self.path("environment.yaml"),
                        good.replace(json.dumps(KILLED), '"${env:CULPRIT_TEST_JOB}"'))
        self.expect(78, "validate", "--config", lacking, quiet="out",
                    err=[r"environment\.yaml:3:\d+: .*CULPRIT_TEST_JOB"])
        self.expect(0, "validate", "--config", lacking, "--no-environment")
        self.expect(0, "run", "--once", "--config", lacking, CULPRIT_TEST_JOB=KILLED,
                    out=['"leak"'])

    def print_config(self):
        text = self.expect(0, "analyze", "--print-config", quiet="err").text()
        self.checks.check("receivers:" in text and "pipelines:" in text, "the printed config")
        path = write(self.path("printed.yaml"), text)
        self.expect(0, "validate", "--config", path)
        own = self.expect(0, "analyze", KILLED)
        self.checks.equal(self.expect(0, "analyze", "--config", path, KILLED).out, own.out,
                          "analyze with the printed config")
        text = self.expect(0, "analyze", "--output", "summary", "--print-config", KILLED).text()
        done = self.expect(0, "run", "--once", "--config",
                           write(self.path("printed-once.yaml"), text))
        self.checks.equal(done.out, bytes_of(KILLED + "/expected.json"),
                          "run --once with the printed config")

    def components(self):
        done = self.expect(0, "components", quiet="err",
                           out=["receiver", "processor", "exporter", r"\bfile\b", r"\bjson\b"])
        names = ["job_filter", "rank_group", "align", "spike_detect", "first_cause",
                 "phase_attribution"]
        for name in names:
            self.checks.check(name in done.text(), "components does not list " + name)
            self.expect(0, "components", name, quiet="err", out=[name])
        self.expect(0, "components", "rank_group", out=["retention", "all"])

    def replay(self):
        config = write(self.path("replay.yaml"), self.config_text(KILLED))
        kept = self.expect(0, "analyze", "--output", "verdicts", KILLED).text()
        same = write(self.path("kept.jsonl"), kept)
        self.expect(0, "replay", "--config", config, "--input", KILLED, "--expect", same)
        segments = [os.path.join(KILLED, "rank%d" % rank, "segment-000001.jsonl")
                    for rank in range(4)]
        self.expect(0, "replay", "--config", config, "--input", *segments, "--expect", same)
        other = write(self.path("other.jsonl"), kept.replace('"leak"', '"swing"'))
        self.expect(1, "replay", "--config", config, "--input", KILLED, "--expect", other,
                    out=["leak", "swing"])
        none = write(self.path("nothing.jsonl"), "")
        self.expect(1, "replay", "--config", config, "--input", KILLED, "--expect", none,
                    out=["leak"])
        self.expect(66, "replay", "--config", config, "--input", self.path("none"), "--expect",
                    same, err=["none"])
        self.expect(66, "replay", "--config", config, "--input", KILLED, "--expect",
                    self.path("none"), err=["none"])


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(binary, folder)
        for part in (suite.help, suite.flags, suite.columns, suite.quiet_logs, suite.before_the_work,
                     suite.version, suite.mistyped, suite.completion, suite.inputs, suite.refused,
                     suite.directory, suite.missing, suite.explain, suite.text, suite.page_hint, suite.verdict_lines, suite.fail_on, suite.closed,
                     suite.hints, suite.grpc_ports, suite.config, suite.print_config, suite.components, suite.replay):
            part()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the comparison with other programs (bench/peers) still run, and notice what goes wrong?

    run_peers.py BINARY

On little input, with what is there anyway: culprit, Python, and jq if it is installed. Other
programs are played by scripts that do what they should, lose events, or end with an error. No time
is judged. Without the generators (built with the tests) there is nothing to show.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
PEERS = os.path.join(ROOT, "bench", "peers")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, PEERS)
import ingest  # noqa: E402
import report  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402

EVENTS, HTTP_EVENTS, ROUNDS = 3000, 2000, 2
FIGURES = {"wall_s", "cpu_s", "peak_rss_bytes", "written_bytes"}
# What stands in for jq, which is called with -c, a filter and a file.
GREP = 'case $2 in *empty) ;; *) exec grep -F \'"job_id":"job-1"\' "$3" ;; esac\n'
LOSSY = GREP.replace("exec grep", "exec grep -m 100")
BROKEN = "echo no memory at all >&2; exit 3\n"


def write_script(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


class Bench:
    def __init__(self, binary, folder):
        self.build = os.path.dirname(os.path.abspath(binary))
        self.folder, self.runs = folder, 0
        self.programs = os.path.join(folder, "programs")
        os.mkdir(self.programs)
        # Only what culprit and the harness call themselves: no go, no jq; and no pip.
        for name in ("taskset", "grep"):
            os.symlink(shutil.which(name), os.path.join(self.programs, name))
        os.makedirs(os.path.join(folder, "work", "python", "bin"))
        write_script(os.path.join(folder, "work", "python", "bin", "python3"), BROKEN)

    def play(self, name, script):
        write_script(os.path.join(self.programs, name),
                     "[ \"$1\" != --version ] || { echo stand-in; exit; }\n" + script)

    def run(self, *arguments, path=None):
        """(exit code, tables, messages, figures)."""
        self.runs += 1
        figures = os.path.join(self.folder, "figures%d.json" % self.runs)
        done = subprocess.run(
            [sys.executable, "-B", os.path.join(PEERS, "peers.py"), "--build", self.build,
             "--work", os.path.join(self.folder, "work"), "--folder", self.folder,
             "--events", str(EVENTS), "--http-events", str(HTTP_EVENTS), "--rounds", str(ROUNDS),
             "--json", figures, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300,
            env=environment(**({"PATH": path} if path else {})))
        found = None
        if os.path.exists(figures):
            with open(figures, encoding="utf-8") as file:
                found = json.load(file)
        return done.returncode, done.stdout.decode(), done.stderr.decode(), found


def rows_of(page, title):
    """Cells of the rows of a table, without its head."""
    part = page.split("### %s\n" % title)[1].split("###")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def everything(checks, bench):
    """Files and HTTP, with the programs of this machine."""
    code, page, said, found = bench.run("--only", "python,jq")
    if not checks.check(code == 0 and found, "it ends with %d: %s" % (code, said[-2000:])):
        return
    there = {"culprit", "python"} | ({"jq"} if shutil.which("jq") else set())
    checks.equal(set(found["peers"]), there, "programs")
    checks.equal(set(found["left_out"]), {"jq"} - there, "programs that are left out")
    names = {"culprit", "Python loop, json"} | ({"jq"} & there)
    checks.equal(found["files"]["input"]["events"], EVENTS, "events")
    kept = found["files"]["input"]["kept"]
    checks.check(0 < kept < EVENTS, "%d of %d events kept" % (kept, EVENTS))
    for job in ("written", "discarded"):
        checks.equal(set(found["files"][job]), names, job)
        for name, rows in found["files"][job].items():
            checks.equal(len(rows), ROUNDS, "%s, %s: rounds" % (job, name))
            checks.check(all(set(row) == FIGURES and row["wall_s"] > 0 and row["cpu_s"] > 0
                             and row["peak_rss_bytes"] > 0 for row in rows),
                         "%s, %s: %s" % (job, name, rows))
            writes = job == "written" and name != "culprit"
            checks.check(all((row["written_bytes"] > 0) == writes for row in rows),
                         "%s, %s: what was written: %s" % (job, name, rows))
    checks.equal({(one["program"], one["form"], one["connections"]) for one in found["ingest"]},
                 {("culprit", form, connections) for form in ingest.FORMATS
                  for connections in ingest.CONNECTIONS}, "ways by HTTP")
    for one in found["ingest"]:
        checks.check(len(one["rounds"]) == ROUNDS
                     and all(row["events_per_s"] > 0 and row["cpu_s_per_million"] > 0
                             for row in one["rounds"]), "by HTTP: %s" % one)
    tables(checks, bench, page, names)


def tables(checks, bench, page, names):
    title = report.TITLES["written"]
    rows = rows_of(page, title)
    checks.equal({row[0] for row in rows}, names, "programs in the table")
    own = [row for row in rows if row[0] == "culprit"]
    checks.equal([row[3] for row in own], ["1.00 (1.00 to 1.00)"], "culprit beside itself")
    again = subprocess.run([sys.executable, "-B", os.path.join(PEERS, "peers.py"), "--tables",
                            os.path.join(bench.folder, "figures%d.json" % bench.runs)],
                           capture_output=True, check=False)
    checks.equal(again.stdout.decode(), page, "the tables of a file of figures")


def troubles(checks, bench):
    """What is not there or does not work is named, and the others are measured."""
    more = ["--no-http", "--rounds", "1", "--events", "1000"]
    code, page, _, found = bench.run("--only", "jq,collector,orjson,stormlog,python", *more,
                                     path=bench.programs)
    checks.equal(code, 0, "without the other programs")
    if found:
        checks.equal(set(found["left_out"]), {"jq", "collector", "orjson", "stormlog"}, "left out")
        checks.equal(set(found["files"]["written"]), {"culprit", "Python loop, json"}, "measured")
        reasons = {row[0]: row[2] for row in rows_of(page, report.TITLES["peers"])}
        for name, part in (("jq", "jq is not installed"), ("collector", "there is no go"),
                           ("orjson", "failed with 3"), ("stormlog", "no memory")):
            checks.check(reasons.get(name, "").startswith("left out: ")
                         and part in reasons[name], "why %s is left out: %s" % (name, reasons))
    for script, part in ((GREP, None), (LOSSY, "jq wrote 100 events"), (BROKEN, "no memory")):
        bench.play("jq", script)
        code, page, _, found = bench.run("--only", "jq,python", *more, path=bench.programs)
        checks.equal(code, 0, "with a stand-in: " + script)
        if found:
            checks.equal("jq" in found["files"]["written"], part is None, "measured: " + script)
            checks.equal("jq" in found["files"]["discarded"], part is None, "again: " + script)
            checks.check((part or "") in found["left_out"].get("jq", ""),
                         "the reason: %s" % found["left_out"])
            checks.equal(set(found["files"]["written"]) - {"jq"}, {"culprit", "Python loop, json"},
                         "the others: " + script)
    for arguments, part in ((["--only", "perl"], "there is no perl"),
                            (["--rounds", "0"], "--rounds is 0")):
        code, _, said, found = bench.run(*arguments)
        checks.check(code == 2 and part in said and found is None,
                     "%s: %d, %s" % (arguments, code, said[-300:]))


def sums(checks):
    """Ratios are taken round by round."""
    mine, theirs = [{"cpu_s": 2.0}, {"cpu_s": 9.0}], [{"cpu_s": 1.0}, {"cpu_s": 3.0}]
    checks.equal(report.ratios(mine, theirs, "cpu_s"), [2.0, 3.0], "ratios")
    checks.equal(report.spread([2.0, 3.0, 40.0]), "3.00 (2.00 to 40.0)", "median and range")
    lines = ["%d" % number for number in range(256)]
    for connections in ingest.CONNECTIONS:
        count, steps = ingest.lines_needed(connections)
        checks.equal((count, count // connections % ingest.LINES), (steps * ingest.RANKS, 0),
                     "%d connections: whole steps, whole bodies" % connections)
        own = ingest.split(lines, connections)
        checks.equal(sorted(sum(own, []), key=int), lines, "no line is lost")
        checks.equal(len({int(line) % ingest.RANKS for line in own[0]}),
                     ingest.RANKS // connections, "ranks of a connection")


def main(binary):
    checks = Checks()
    sums(checks)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(binary, folder)
        if not os.path.exists(os.path.join(bench.build, "bench", "http_load")):
            checks.check(False, "no http_load in %s: configure with CULPRIT_TESTS" % bench.build)
            return checks.finish()
        everything(checks, bench)
        troubles(checks, bench)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

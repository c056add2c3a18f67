#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A W&B server that fails in every way: runs end complete and unharmed, or stop and say why.

    run_wandb_faults.py BINARY

A finished tracking run is exported to the mock server, undisturbed first. Then once for each way to
fail that may pass, at every place; what the server understood must be the same. Then once for each
way that cannot pass: of an artifact or file that costs only this one, of the run it ends the export
with a sentence. The API key must be in no log, no command line and no file.
"""
import concurrent.futures
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import wandb_golden  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from wandb_server import Mock  # noqa: E402

KEY = "canary_key_" + "0123456789abcdefghijklmnopqrstuvwxyz_ABC"
EVENTS = os.path.join(HERE, "golden", "small_no_alerts", "input", "events.jsonl")
ARTIFACT_CALLS = ("createArtifact", "createArtifactFiles", "createArtifactManifest",
                  "commitArtifact")
PLACES = ["graphql:" + call for call in ("model", "upsertBucket", *ARTIFACT_CALLS,
                                         "createRunFiles")] + ["storage", "file_stream"]
REFUSALS = (400, 401, 403, 404, 409, 410, 413, 422, 501)


class Suite:
    def __init__(self, binary, folder, open_to_the_end):
        self.binary, self.folder, self.open = binary, folder, open_to_the_end
        self.checks = Checks()
        self.local = threading.local()  # a server for each thread
        self.expected = None
        sink = os.path.join(folder, "sink")
        os.makedirs(os.path.join(sink, "deeper"))
        for name, size in (("one", 100000), ("empty", 0), ("deeper/two", 7)):
            with open(os.path.join(sink, name), "wb") as file:
                file.write(bytes(range(256)) * (size // 256) + b"x" * (size % 256))

    def config(self, url, timeout):
        return {
            "receivers": {"file": {"include": [EVENTS]}},
            "exporters": {"wandb": {
                "base_url": url, "api_key": "${env:WANDB_API_KEY}", "run_id": "therun",
                "content": "tracking", "log_artifacts": True, "timeout": timeout,
                "tracking": {"sink_directory": os.path.join(self.folder, "sink")},
                "retry_on_failure": {"initial_interval": "20ms", "multiplier": 1}}},
            "service": {
                "telemetry": {"logs": {"level": "debug", "encoding": "json"}},
                "pipelines": {"memory": {"receivers": ["file"], "preset": "memory",
                                         "exporters": ["wandb"]}}}}

    def export(self, faults, timeout="20s", seen=None):
        """(exit code, what it said, what the server decoded)"""
        if not hasattr(self.local, "mock"):
            self.local.mock = self.open.enter_context(Mock("--api-key", KEY))
        mock = self.local.mock
        mock.call("POST", "/__reset")
        for fault in faults:
            mock.call("POST", "/__fault", fault)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            path = os.path.join(folder, "culprit.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(self.config(mock.url, timeout), file)
            with subprocess.Popen(
                    [self.binary, "run", "--once", "--config", path], cwd=folder,
                    env=environment(WANDB_API_KEY=KEY, TMPDIR=folder, no_proxy="127.0.0.1"),
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
                if seen is not None:
                    seen(process.pid)
                said = process.communicate(timeout=100)[0].decode()
            self.check_secret(said, folder)
        hits = sum("fault" in request for request in mock.call("GET", "/__requests"))
        self.checks.check(hits >= len(faults), "only %d of %r came about" % (hits, faults))
        return process.returncode, said, mock.decoded()

    def check_secret(self, said, folder):
        self.checks.check(KEY not in said, "the key stands in what it said")
        for parent, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(parent, name), "rb") as file:
                    self.checks.check(KEY.encode() not in file.read(), "the key stands in " + name)

    def same(self, what, faults, timeout="20s"):
        """Disturbed, but in the end as if it had not been."""
        code, said, decoded = self.export(faults, timeout)
        if not self.checks.equal(code, 0, what + ": exit code, " + said[-600:]):
            return
        differences = []
        wandb_golden.differences(self.expected, wandb_golden.normalise(decoded)[0], "run",
                                 differences)
        self.checks.equal(differences, [], what)

    def without(self, what, faults, lacks):
        """One thing was left out and said, the run is complete."""
        code, said, decoded = self.export(faults)
        if not self.checks.equal(code, 0, what + ": exit code, " + said[-600:]):
            return
        self.checks.equal(decoded["violations"], [], what)
        run = decoded["runs"][0]
        self.checks.check(run["complete"], what + ": complete")
        self.checks.equal(len(run["history"]), len(self.expected["history"]), what + ": rows")
        self.checks.equal(said.count('"C3404"') > 0, True, what + ": it says what is left out")
        committed = [a for a in run["artifacts"] if a["state"] == "COMMITTED"]
        self.checks.equal(len(self.expected["artifacts"]) - len(committed), lacks,
                          what + ": artifacts that are lacking")

    def stops(self, what, faults, word):
        """It ends with a sentence, and the run is not complete."""
        code, said, decoded = self.export(faults)
        self.checks.equal(code, 74, what + ": exit code")
        self.checks.check(re.search(word, said), what + ": it says %r in %s" % (word, said[-600:]))
        self.checks.equal(decoded["violations"], [], what)
        self.checks.equal([run["complete"] for run in decoded["runs"] if run["complete"]], [], what)


def passing_cases(suite):
    at_all = lambda kind: ["at=%s,kind=%s" % (place, kind) for place in PLACES]
    for kind in ("500", "502", "503", "429", "408", "drop", "drop_after", "truncate", "garbage"):
        faults = at_all(kind)
        if kind == "garbage":  # storage and file_stream never read their answers
            faults = faults[:-2]
        yield suite.same, kind + " everywhere", faults
    for kind in ("500", "drop", "drop_after"):
        for skip in (1, 4, 9):
            yield (suite.same, "%s at upload %d" % (kind, skip + 1),
                   ["at=storage,kind=%s,skip=%d,count=2" % (kind, skip)])
    yield suite.same, "Retry-After", ["at=file_stream,kind=429,after=1",
                                      "at=graphql:upsertBucket,kind=503,after=0.5"]
    for after in ("0", "-5", "soon", "nan", "1e", "21 Oct 2015 07:28:00 GMT"):
        yield suite.same, "Retry-After: " + after, [
            "at=graphql:upsertBucket,kind=503,after=" + after,
            "at=storage,kind=429,after=" + after]
    yield suite.same, "slow", ["at=%s,kind=slow,secs=0.3" % place for place in PLACES]
    yield (suite.same, "stalled", ["at=%s,kind=stall,secs=6" % place for place in
                                   ("graphql:upsertBucket", "storage", "file_stream")], "2s")
    for status in (404, 409, 410):  # it asks what became of the run, and that is there
        yield suite.same, "%d once at file_stream" % status, [
            "at=file_stream,kind=%d" % status]
    yield suite.same, "conflict", ["at=graphql:upsertBucket,kind=409,count=3"]
    yield suite.same, "expired addresses", ["at=storage,kind=403", "at=storage,kind=403,skip=2",
                                            "at=storage,kind=403,skip=6"]
    yield suite.same, "stop is asked for", ["at=file_stream,kind=stopped,count=0"]


def other_cases(suite):
    for kind in ("gqlerror", "403", "500,count=20"):
        for call in ARTIFACT_CALLS:
            yield (suite.without, "%s at %s" % (kind, call),
                   ["at=graphql:%s,kind=%s" % (call, kind)], 1)
        yield (suite.without, kind + " at createRunFiles",
               ["at=graphql:createRunFiles,kind=" + kind], 0)
    yield suite.without, "refused upload", ["at=storage,kind=400"], 1
    yield suite.without, "expired again", ["at=storage,kind=403,count=2"], 1
    hints = {401: "API key", 403: "API key", 404: "entity"}
    for status in REFUSALS:
        word = "%d.*%s" % (status, hints.get(status, ""))
        yield suite.stops, "%d at file_stream" % status, [
            "at=file_stream,kind=%d,count=0" % status], word
        yield suite.stops, "%d at the query" % status, [
            "at=graphql:model,kind=%d" % status], word
        if status != 409:
            yield suite.stops, "%d at upsertBucket" % status, [
                "at=graphql:upsertBucket,kind=%d" % status], word
    yield suite.stops, "gqlerror at upsertBucket", [
        "at=graphql:upsertBucket,kind=gqlerror"], "injected error"


def check_known_content(suite):
    code, said, decoded = suite.export(["at=graphql:createArtifact,kind=dup"])
    suite.checks.equal(code, 0, "an artifact that is there already: " + said[-600:])
    suite.checks.equal((decoded["violations"], decoded["runs"][0]["complete"]), ([], True),
                       "an artifact that is there already")


def check_command_line(suite):
    """While it waits for the server, nobody on the machine can see the key."""
    lines = []

    def look(pid):
        until = time.monotonic() + 20
        while not lines and time.monotonic() < until:
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                line = file.read()
            if b"--once" in line:
                lines.append(line)
    suite.export(["at=graphql:model,kind=slow,secs=0.5"], seen=look)
    suite.checks.check(lines and KEY.encode() not in lines[0], "the key stands in the command line")


def check_wrong_key(suite):
    mock = suite.local.mock
    mock.call("POST", "/__reset")
    config = suite.config(mock.url, "5s")
    path = os.path.join(suite.folder, "wrong.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    for key, code, word in (("wrong_" + KEY, 74, "401"), ("short", 78, "40 or more"),
                            ("", 78, "WANDB_API_KEY")):
        done = subprocess.run([suite.binary, "run", "--once", "--config", path],
                              env=environment(WANDB_API_KEY=key, HOME=suite.folder,
                                              no_proxy="127.0.0.1"),
                              capture_output=True, timeout=60, check=False)
        said = done.stderr.decode()
        suite.checks.equal(done.returncode, code, "key %r: exit code, %s" % (key, said[-400:]))
        suite.checks.check(word in said and (not key or key not in said),
                           "key %r: %s" % (key, said[-400:]))


def main():
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        suite = Suite(os.path.abspath(sys.argv[1]), folder, stack)
        code, said, decoded = suite.export([])
        suite.checks.equal(code, 0, "undisturbed: " + said[-600:])
        suite.expected = wandb_golden.normalise(decoded)[0]
        suite.checks.equal(suite.expected["violations"], [], "undisturbed")
        suite.checks.equal(decoded["warnings"], [], "undisturbed: warnings")
        suite.checks.check(len(suite.expected["artifacts"]) >= 4, "undisturbed: artifacts")
        check_known_content(suite)
        check_command_line(suite)
        check_wrong_key(suite)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(case[0], *case[1:])
                       for case in [*passing_cases(suite), *other_cases(suite)]]
            for done in waiting:
                done.result()
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())

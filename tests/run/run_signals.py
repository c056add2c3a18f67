#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a live culprit says of itself: where it listens, after SIGUSR2, and at its end.

    run_signals.py BINARY
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, documents, wait_for  # noqa: E402

JOB = os.path.join(HERE, "..", "golden", "real", "sigkill-rank1")
CONFIG = """receivers:
  file: {include: ["%(folder)s/job/**"], start_at: beginning}
  http: {endpoint: "127.0.0.1:0"}
exporters:
  json: {path: %(folder)s/verdicts.jsonl}
  prometheus: {endpoint: "127.0.0.1:0"}
extensions:
  file_storage: {directory: %(folder)s/store}
  health_check: {endpoint: "127.0.0.1:0"}
service:
  extensions: [file_storage, health_check]
  batch_size: %(batch)d
  pipelines:
    memory:
      receivers: [file, http]
      preset: all
      exporters: [json, prometheus]
      idle_timeout: 100ms
      settle: 0s
"""


class Run:
    def __init__(self, binary, folder):
        self.folder = folder
        self.log = os.path.join(folder, "log")
        self.put(1024)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [binary, "run", "--config", os.path.join(folder, "c.yaml")], stderr=log,
                stdin=subprocess.DEVNULL, env=environment())

    def put(self, batch):
        with open(os.path.join(self.folder, "c.yaml"), "w", encoding="utf-8") as file:
            file.write(CONFIG % {"folder": self.folder, "batch": batch})

    def lines(self, code):
        return [line for line in documents(self.log) if line["code"] == code]

    def wait(self, code, count=1, component=""):
        """Until so many lines with the code about the component are there; these lines."""
        def lines():
            return [line for line in self.lines(code)
                    if line.get("component", "").endswith(component)]
        wait_for(lambda: len(lines()) >= count, self.process)
        return lines()

    def post(self, port, events):
        body = json.dumps({"events": events}).encode()
        request = urllib.request.Request("http://127.0.0.1:%s/v1/events" % port, body,
                                         {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()


def port_of(checks, line):
    """The port is said once, and it is the one that was chosen."""
    found = re.findall(r"127\.0\.0\.1:(\d+)", line["msg"])
    checks.check(len(found) == 1 and found[0] != "0" and "port" not in line["msg"],
                 "where it listens: " + line["msg"])
    return found[0] if found else "0"


def events():
    path = os.path.join(JOB, "rank0", "segment-000001.jsonl")
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().splitlines()[:3]]


def contains(path, text):
    try:
        with open(path, encoding="utf-8") as file:
            return text in file.read()
    except FileNotFoundError:
        return False


def figures(run, count):
    """What every component said the last of so many times SIGUSR2, by its name."""
    run.process.send_signal(signal.SIGUSR2)
    run.wait("C1008", count, "pipeline/memory/http")  # the last to say so
    return {line["component"]: line["msg"] for line in run.lines("C1008")}


def dumped(checks, run):
    """SIGUSR2: every component with its figures, every pipeline with what it judged."""
    end = time.monotonic() + PATIENCE_S
    said = {}
    count = 0
    # A verdict can come while the last of the job is still read.
    while not any(text.startswith("843 events, ") for text in said.values()) \
            and time.monotonic() < end:
        count += 1
        said = figures(run, count)
    for component, pattern in (
            ("receiver/http", r"^StatusOK; 3 events accepted, 0 records refused$"),
            ("receiver/file", r"^StatusOK; 840 events accepted, 0 records refused$"),
            ("exporter/json", r"^StatusOK; [\d.]+ \w+ of 128.0 MiB wait; \d+ records? sent, "
             r"0 failed, 0 dropped$"),
            ("exporter/prometheus", r"^StatusOK$"),
            ("extension/file_storage", r"^StatusOK; [\d.]+ \w+ of 1.00 GiB, [\d.]+ \w+ not written yet$"),
            ("memory/processor/rank_group", r"^StatusOK; 843 events$"),
            ("pipeline/memory", r"^843 events, the newest of 2026-11-21T08:0\S+Z; judged \d+ times, "
             r"(to the end of what came|up to 2026\S+Z), \d+ moments? waits?; 1 verdict, 1 open "
             r"\(1 error\)$"),
            ("pipeline/memory/file", r"^4 sources, \d of them not awaited; furthest behind is "
             r"\S+/rank\d/segment-000001.jsonl, [\d.]+ m?s behind the newest event$"),
            ("pipeline/memory/http", r"^1 source, \d of them not awaited; furthest behind is ")):
        found = next((text for name, text in said.items() if name.endswith(component)
                      and name.count("/") <= component.count("/") + 1), None)
        checks.check(found is not None and re.search(pattern, found),
                     "%s: %r does not match %r" % (component, found, pattern))


def main(binary):
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        shutil.copytree(JOB, os.path.join(folder, "job"),
                        ignore=shutil.ignore_patterns("*.json", "*.md"))
        run = Run(binary, folder)
        try:
            port = port_of(checks, run.wait("C2108")[0])
            port_of(checks, run.wait("C3201")[0])
            port_of(checks, run.wait("C6001")[0])
            run.post(port, events())
            verdicts = os.path.join(folder, "verdicts.jsonl")
            # A first line may come while the job is still read.
            wait_for(lambda: contains(verdicts, '"severity":"error"'), run.process)
            dumped(checks, run)
            # What was taken before a reload counts at the end.
            for number in (1, 2):
                run.put(100 + number)
                run.process.send_signal(signal.SIGHUP)
                run.wait("C1012", number)
            run.post(port, events()[:2])  # the listener stays open over a reload
        finally:
            run.process.terminate()
            checks.equal(run.process.wait(PATIENCE_S), 0, "the exit code")
        last = run.lines("C1004")[-1]["msg"]
        checks.check(last.endswith(" 845 events accepted, 0 records refused"), "the end: " + last)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

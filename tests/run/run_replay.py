#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A journal that no checkpoint holds, read again after a SIGKILL: the same with any threads.

    run_replay.py BINARY

Requests are acknowledged (ack: stored) and the whole program is killed before its first checkpoint.
Copies of its store are then read with service.threads 1, 2 and 7, and once more by a start that is
killed while it reads, at another moment each time: every event is there once, and the verdicts are
the same byte for byte.
"""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

THREADS = (1, 2, 7)
LINES = 25      # of a request
JOB = generate.Job("replayed", 99, 6, steps=40, swing=0.2, leak_rank=4, leak_step=5,
                   leak_share=0.3, leak_at="backward", skew_s=0.3)


def bodies():
    """Requests of one sender, by time; some have a line that is refused."""
    lines = [line for rank in range(JOB.ranks) for line in generate.Rank(JOB, rank).lines()]
    lines.sort(key=lambda line: json.loads(line)["timestamp_ns"])
    requests = [lines[at:at + LINES] for at in range(0, len(lines), LINES)]
    for request in requests[::7]:
        request.insert(len(request) // 2, '{"nonsense')
    return len(lines), ["\n".join(request) + "\n" for request in requests]


class Start:
    """culprit over the store in a folder."""

    def __init__(self, binary, folder, threads):
        self.folder, self.port = folder, free_port()
        self.output = os.path.join(folder, "verdicts.jsonl")
        self.log = os.path.join(folder, "log")
        # What a process that was killed wrote may be written again: the last one's alone count.
        if os.path.exists(self.output):
            os.remove(self.output)
        config = os.path.join(folder, "culprit.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"http": {"endpoint": "127.0.0.1:%d" % self.port, "ack": "stored"}},
                "exporters": {"json": {"path": self.output}},
                "extensions": {"file_storage": {"directory": os.path.join(folder, "store")}},
                "service": {
                    "extensions": ["file_storage"], "threads": threads,
                    "checkpoint_interval": "1h",
                    "pipelines": {"memory": {
                        "receivers": ["http"], "preset": "memory", "exporters": ["json"],
                        "evaluate_every": "1s", "allowed_lateness": "5s", "settle": "1s",
                        "idle_timeout": "1h", "caught_up_timeout": "1h"}}}}, file)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([binary, "run", "--config", config],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=log, env=environment())

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, code):
        if not wait_for(lambda: '"%s"' % code in self.said(), self.process):
            raise SystemExit("no %s: %s" % (code, self.said()[-2000:]))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def verdicts(self):
        with open(self.output, encoding="utf-8") as file:
            return file.read()


def post_all(port, requests, checks):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    for request in requests:
        connection.request("POST", "/v1/events", request.encode(),
                           {"Content-Type": "application/x-ndjson"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            checks.equal(answer.status, 200, "a request was not acknowledged")
            break
    connection.close()


def fill(binary, folder, requests, checks):
    start = Start(binary, folder, 1)
    start.wait_for("C2108")
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:     # 503 until it has looked for a journal
        probe = http.client.HTTPConnection("127.0.0.1", start.port, timeout=PATIENCE_S)
        probe.request("POST", "/v1/events", requests[0].encode(),
                      {"Content-Type": "application/x-ndjson"})
        status = probe.getresponse().status
        probe.close()
        if status == 200:
            break
        time.sleep(0.01)
    post_all(start.port, requests[1:], checks)
    start.kill()


def read_again(binary, filled, folder, threads, pauses):
    """A copy of the store, killed after each of these pauses, then read to the end."""
    shutil.copytree(filled, folder)
    for pause in pauses:
        start = Start(binary, folder, threads)
        start.wait_for("C2108")
        time.sleep(pause)
        start.kill()
    start = Start(binary, folder, threads)
    start.wait_for("C2105")
    code = start.stop()
    return code, start.verdicts(), start.said()


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    count, requests = bodies()
    checks.check(len(requests) > 100, "too few requests: %d" % len(requests))
    with tempfile.TemporaryDirectory() as parent:
        filled = os.path.join(parent, "filled")
        os.mkdir(filled)
        fill(binary, filled, requests, checks)
        first = None
        for threads in THREADS:
            for pauses in ((), (0.0, 0.01, 0.03)):
                name = "%d threads, killed %d times" % (threads, len(pauses))
                folder = os.path.join(parent, "%d-%d" % (threads, len(pauses)))
                code, verdicts, said = read_again(binary, filled, folder, threads, pauses)
                checks.equal(code, 0, name + ": exit code: " + said[-1500:])
                entries = re.search(r"(\d+) journal entries that no checkpoint held", said)
                checks.equal(int(entries[1]), len(requests), name + ": entries")
                events = re.search(r"(\d+) events accepted, 0 records refused", said)
                checks.check(events is not None and int(events[1]) == count,
                             name + ": events: " + said[-500:])
                first = verdicts if first is None else first
                checks.check(first.count("\n") >= 3, name + ": too few verdicts to compare")
                checks.equal(verdicts, first, name + ": verdicts")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

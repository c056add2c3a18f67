#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit run with a store, killed again and again while events arrive by file and HTTP.

    run_crash.py BINARY [KILLS]      (100 kills; 1,000 take some minutes)

A job's events are given out in rounds: some ranks append to files, some are posted with ack:
stored. SIGKILL comes at random moments, the writers wait for nobody. After the last restart the
verdict file equals that of a run that was not disturbed, byte for byte, the summary in every value,
and nothing that was acknowledged is missing. Nothing here depends on how long something takes.
"""
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

ROUND_NS = 500_000_000
SEED = 4711
JOB = generate.Job("crashed", 99, 6, steps=12, swing=0.2, leak_rank=4, leak_step=5,
                   leak_share=0.3, leak_at="backward", skew_s=0.3)


def rounds():
    """The job's lines by half seconds of event time: a list of {rank: [line]}."""
    split = {}
    for rank in range(JOB.ranks):
        for line in generate.Rank(JOB, rank).lines():
            at = json.loads(line)["timestamp_ns"] // ROUND_NS
            split.setdefault(at, {}).setdefault(rank, []).append(line)
    return [split[at] for at in sorted(split)]


ROUNDS = rounds()


class Run:
    """A folder, a config, culprit over it, and the writers of one job."""

    by_file, by_http = (0, 1, 2), (3, 4, 5)

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.input = os.path.join(folder, "in")
        self.output = os.path.join(folder, "verdicts.jsonl")
        self.summary = os.path.join(folder, "summary.json")
        self.log = os.path.join(folder, "log")
        self.config = os.path.join(folder, "culprit.yaml")
        self.port = free_port()
        self.process = None
        self.kills = 0
        self.said = 0
        self.failures = []
        os.makedirs(self.input)
        with open(self.config, "w", encoding="utf-8") as file:
            receivers = self.receivers()
            json.dump({
                "receivers": receivers,
                "exporters": {"json": {"path": self.output},
                              "json/summary": {"path": self.summary, "content": "summary"}},
                "extensions": {"file_storage": {"directory": os.path.join(folder, "store")}},
                "service": {
                    "extensions": ["file_storage"],
                    "checkpoint_interval": "40ms",
                    "shutdown_timeout": "%ds" % PATIENCE_S,
                    "pipelines": {"memory": {
                        "receivers": sorted(receivers), "preset": "memory",
                        "exporters": ["json", "json/summary"],
                        "evaluate_every": "1s", "allowed_lateness": "5s", "settle": "1s",
                        "idle_timeout": "1h", "caught_up_timeout": "1h"}}},
            }, file)

    def receivers(self):
        return {"file": {"include": [self.input + "/*.jsonl"], "poll_interval": "50ms"},
                "http": {"endpoint": "127.0.0.1:%d" % self.port, "ack": "stored"}}

    def start(self):
        self.said = self.log_text().count("C1001")
        log = open(self.log, "ab")
        self.process = subprocess.Popen([self.binary, "run", "--config", self.config],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=log, env=environment())
        log.close()

    def died(self):
        """Whether it ended by itself: nobody waits for it then."""
        return self.process.poll() not in (None, -signal.SIGKILL)

    def log_text(self):
        return self.bytes_of(self.log).decode("utf-8", "replace")

    def post(self, key, lines):
        """Tried until it is acknowledged, as a client would."""
        limit = time.monotonic() + PATIENCE_S
        body = ("\n".join(lines) + "\n").encode()
        while time.monotonic() < limit:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                connection.request("POST", "/v1/events", body,
                                   {"Content-Type": "application/x-ndjson",
                                    "Idempotency-Key": key})
                answer = connection.getresponse()
                text = answer.read()
                if answer.status in (200, 202):
                    return
                if answer.status not in (429, 503):
                    self.failures.append("%d %s" % (answer.status, text[:300]))
                    return
            except (OSError, http.client.HTTPException):
                if self.died():
                    break
            finally:
                connection.close()
            time.sleep(0.005)
        self.failures.append("no acknowledgement of %s" % key)

    def write(self, number):
        """One round: files are appended to in pieces, requests wait for their acknowledgement."""
        for rank in self.by_file:
            lines = ROUNDS[number].get(rank, [])
            with open(os.path.join(self.input, "rank%d.jsonl" % rank), "ab", buffering=0) as file:
                for line in lines:
                    half = len(line) // 2
                    file.write(line[:half].encode())
                    file.write(line[half:].encode() + b"\n")
        posts = [threading.Thread(target=self.post, args=("%d/%d" % (number, rank),
                                                          ROUNDS[number][rank]))
                 for rank in self.by_http if rank in ROUNDS[number]]
        for post in posts:
            post.start()
        for post in posts:
            post.join()

    def write_all(self, kills=0):
        """All rounds, spread over the kills."""
        for number in range(len(ROUNDS)):
            while self.kills < kills * number // len(ROUNDS):
                time.sleep(0.002)
            self.write(number)

    def wait_for_start(self):
        """From its first line on a signal asks it to stop."""
        wait_for(lambda: self.log_text().count("C1001") > self.said, self.process)

    def wait_for_all(self):
        """Until what was written has been read, where a stop does not see to that."""

    def stop(self):
        self.wait_for_start()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "none after %d s" % PATIENCE_S

    def pause(self, chance):
        return chance.uniform(0.005, 0.15)

    def kill_at_random(self, kills, chance):
        """Kills and starts again while the writers go on, and also after they have ended."""
        writer = threading.Thread(target=self.write_all, args=(kills,))
        writer.start()
        for _ in range(kills):
            time.sleep(self.pause(chance))
            self.process.kill()
            self.process.wait()
            self.kills += 1
            self.start()
        writer.join()

    def bytes_of(self, path):
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""


def undisturbed(make, checks):
    with tempfile.TemporaryDirectory() as folder:
        run = make(folder)
        run.start()
        run.write_all()
        run.wait_for_all()
        checks.equal(run.stop(), 0, "undisturbed: exit code")
        checks.equal(run.failures, [], "undisturbed: refused requests")
        checks.check("Sanitizer" not in run.log_text(), "undisturbed: the sanitizer complains")
        return run.bytes_of(run.output), run.bytes_of(run.summary)


def killed(make, kills, checks):
    """`make` gives a Run in a folder. Returns the verdicts of one that was not disturbed."""
    expected, expected_summary = undisturbed(make, checks)
    checks.check(expected.count(b"\n") >= 3, "undisturbed: too few verdicts to compare")
    with tempfile.TemporaryDirectory() as folder:
        run = make(folder)
        run.start()
        run.kill_at_random(kills, random.Random(SEED))
        run.wait_for_all()
        checks.equal(run.stop(), 0, "killed: exit code of the last one: " + run.log_text()[-1500:])
        checks.equal(run.failures, [], "killed: requests that were not acknowledged")
        log = run.log_text()
        checks.check("Sanitizer" not in log, lambda: "killed: the sanitizer complains: "
                     + log[log.find("Sanitizer") - 200:][:3000])
        checks.equal(run.bytes_of(run.output).decode(), expected.decode(), "killed: verdicts")
        checks.equal(json.loads(run.bytes_of(run.summary)), json.loads(expected_summary),
                     "killed: summary")
        checks.check(True, "killed %d times" % kills)
    return expected


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    checks = Checks()
    killed(lambda folder: Run(binary, folder), kills, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

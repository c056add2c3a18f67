#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a stop did not deliver or store is said, and the exit code tells.

    run_stop.py BINARY

A job's events arrive by file and HTTP; SIGTERM comes while a broker is away, with and without a
store, and while the store cannot be written. shutdown_timeout is the time for all of it.
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import run_crash  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402
from running import wait_for  # noqa: E402

CLEAN, LOST, KEPT = 0, 74, 75
FILE_MOST = 32 << 10


class Run(run_crash.Run):
    def __init__(self, binary, folder, store=True, broker_away=True, timeout="10s"):
        super().__init__(binary, folder)
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["service"]["shutdown_timeout"] = timeout
        if broker_away:
            config["exporters"]["kafka"] = {
                "brokers": ["127.0.0.1:%d" % run_crash.free_port()], "topic": "nowhere"}
            config["service"]["pipelines"]["memory"]["exporters"].append("kafka")
        if not store:
            config["extensions"], config["service"]["extensions"] = {}, []
            config["receivers"]["http"]["ack"] = "accepted"
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.limit = None

    def start(self):
        self.said = self.log_text().count("C1001")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "run", "--config", self.config], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log, env=environment(), preexec_fn=self.before)

    def before(self):
        if self.limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))


def stopped(checks, what, run, code, *said):
    run.start()
    run.wait_for_start()
    run.write_all()
    checks.equal(run.stop(), code, "%s: exit code: %s" % (what, run.log_text()[-1500:]))
    log = run.log_text()
    for text in said:
        checks.check(text in log, "%s: %s is not said: %s" % (what, text, log[-1500:]))
    checks.check("Sanitizer" not in log, what + ": the sanitizer complains")
    return log


def store_full(checks, binary, folder):
    """The files of the store may not grow; events wait in memory, and the sink has its time."""
    run = Run(binary, folder, broker_away=False)
    run.limit = FILE_MOST
    run.start()
    run.wait_for_start()
    for number in range(len(run_crash.ROUNDS)):
        for rank in run.by_file:
            with open(os.path.join(run.input, "rank%d.jsonl" % rank), "ab") as file:
                for line in run_crash.ROUNDS[number].get(rank, []):
                    file.write(line.encode() + b"\n")
    wait_for(lambda: "C4001" in run.log_text(), run.process)
    checks.equal(run.stop(), LOST, "a store that is full: exit code: " + run.log_text()[-1500:])
    log = run.log_text()
    checks.check("C4005" in log, "a store that is full: it is said: " + log[-1500:])
    checks.check(b'"id":' in run.bytes_of(run.output), "a store that is full: verdicts came")


def main():
    binary = os.path.abspath(sys.argv[1])
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(binary, folder, broker_away=False, timeout="60s")
        log = stopped(checks, "all is well", run, CLEAN)
        checks.check("C1009" not in log and "C1014" not in log, "a clean stop says nothing: " + log)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(binary, folder)
        stopped(checks, "with a store", run, KEPT, "C1009", "exporter/kafka", "not delivered",
                "the store keeps it for the next start")
        verdicts = run.bytes_of(run.output)
        checks.check(verdicts.endswith(b"\n"), "one that is away takes no time from the others")
    with tempfile.TemporaryDirectory() as folder:
        run = Run(binary, folder, store=False)
        stopped(checks, "without a store", run, LOST, "C1014", "exporter/kafka", "it is lost")
    with tempfile.TemporaryDirectory() as folder:
        store_full(checks, binary, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

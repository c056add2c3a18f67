#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What culprit tells the service manager that started it (sd_notify(3)).

    run_notify.py BINARY

The manager's socket is ours here. Heard is: readiness, once inputs are open and not before; each
reload with its end, whether the configuration was taken, had a mistake, or could not be started;
signs of life while nothing happens; the end. A start that fails never says that it is ready.
"""
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from ports import free_port  # noqa: E402
from process import environment  # noqa: E402
from running import PATIENCE_S  # noqa: E402

WATCHED_US = 400_000


class Managed:
    """culprit, started as by a service manager."""

    def __init__(self, binary, folder, config, **more):
        self.words = []
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.path = os.path.join(folder, "notify")
        self.manager.bind(self.path)
        self.manager.settimeout(0.1)
        self.config = os.path.join(folder, "culprit.json")
        self.put(config)
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [binary, "run", "--config", self.config], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, env=environment(NOTIFY_SOCKET=self.path, **more))

    def put(self, config):
        with open(self.config + ".new", "w", encoding="utf-8") as file:
            file.write(config if isinstance(config, str) else json.dumps(config))
        os.replace(self.config + ".new", self.config)

    def hear(self, done, patience_s=PATIENCE_S):
        """Listens until `done()`; what was heard is in `words`."""
        deadline = time.monotonic() + patience_s
        while not done() and time.monotonic() < deadline:
            try:
                self.words.append(self.manager.recv(4096).decode())
            except TimeoutError:
                pass
        return done()

    def firsts(self):
        """The first line of each datagram."""
        return [word.split("\n")[0] for word in self.words]

    def reload(self, config):
        """What is heard from the signal to the next readiness."""
        self.words = []
        self.put(config)
        self.process.send_signal(signal.SIGHUP)
        self.hear(lambda: "READY=1" in self.words)
        return self.firsts()

    def take(self):
        """What was said until now, without a wait for more."""
        while select.select([self.manager], [], [], 0)[0]:
            self.words.append(self.manager.recv(4096).decode())

    def ended(self):
        """Waits for the end, and takes what was said meanwhile."""
        code = self.process.wait(PATIENCE_S)
        self.take()
        return code

    def halt(self):
        """Stops it, as if it hung; what it said before that is taken."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)  # all its threads stand still
        self.take()

    def log_text(self):
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()[-1500:]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.manager.close()
        self.log.close()


def configuration(folder, port):
    return {"receivers": {"http": {"endpoint": "127.0.0.1:%d" % port}},
            "exporters": {"json": {"path": os.path.join(folder, "verdicts.jsonl")}},
            "service": {"pipelines": {"verdicts": {"receivers": ["http"], "preset": "all",
                                                   "exporters": ["json"]}}}}


def opened(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def lives(checks, binary, folder):
    port = free_port()
    run = Managed(binary, folder, configuration(folder, port))
    try:
        run.hear(lambda: run.words)
        checks.equal(run.firsts(), ["READY=1"], "after the start: " + run.log_text())
        checks.check(opened(port), "it says that it is ready, and its port is closed")
        other = free_port()
        checks.equal(run.reload(configuration(folder, other)), ["RELOADING=1", "READY=1"],
                     "a configuration that is taken")
        checks.check(opened(other), "ready after a reload, and its port is closed")
        since = run.words[0].split("\n")[1].partition("=")
        checks.check(since[0] == "MONOTONIC_USEC" and 0 < int(since[2]) <=
                     time.monotonic() * 1e6, "since when it reloads: %r" % (since,))
        checks.equal(run.reload("receivers: ["), ["RELOADING=1", "READY=1"],
                     "a configuration with a mistake")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            checks.equal(run.reload(configuration(folder, taken.getsockname()[1])),
                         ["RELOADING=1", "READY=1"], "a configuration that cannot be started")
        checks.check(opened(other), "the old configuration does not go on")
        run.words = []
        run.process.send_signal(signal.SIGTERM)
        checks.equal((run.ended(), run.words), (0, ["STOPPING=1"]), "the end: " + run.log_text())
    finally:
        run.close()


def watched(checks, binary, folder):
    run = Managed(binary, folder, configuration(folder, free_port()),
                  WATCHDOG_USEC=str(WATCHED_US))
    try:
        run.hear(lambda: run.words.count("WATCHDOG=1") >= 5)
        checks.check("READY=1" in run.words, "a watched one is not ready: " + run.log_text())
        checks.check(run.words.count("WATCHDOG=1") >= 5, "no signs of life: %r" % run.words)
        run.halt()
        run.words = []
        run.hear(lambda: run.words, 2 * WATCHED_US / 1e6)
        checks.equal(run.words, [], "signs of life of one that hangs")
        run.process.send_signal(signal.SIGCONT)
        run.process.send_signal(signal.SIGTERM)
        checks.equal(run.ended(), 0, "the end of a watched one")
        checks.equal(run.words.count("STOPPING=1"), 1, "STOPPING of a watched one")
    finally:
        run.close()


def fails(checks, binary, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        run = Managed(binary, folder, configuration(folder, taken.getsockname()[1]))
        try:
            checks.check(run.ended() != 0, "it started on a port that is taken")
            checks.check("READY=1" not in run.words, "ready, and not started: %r" % run.words)
        finally:
            run.close()


def main(binary):
    checks = Checks()
    for part in (lives, watched, fails):
        with tempfile.TemporaryDirectory() as folder:
            part(checks, binary, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit told to load its configuration again, while events arrive.

    run_reload.py BINARY

A configuration with a mistake changes nothing and is told with its place; one that cannot start
(its port is taken) gives way to the old one; a good one takes over with all state, whether there is
a store or not, so that the verdicts are those of a run that nobody disturbed. No request is refused
in between, and no signal is lost.
"""
import json
import os
import random
import re
import signal
import socket
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import run_crash  # noqa: E402
from checks import Checks  # noqa: E402
from running import wait_for  # noqa: E402


class Run(run_crash.Run):
    """A run whose configuration can be spoilt and mended."""

    def __init__(self, binary, folder, store):
        super().__init__(binary, folder)
        with open(self.config, encoding="utf-8") as file:
            self.good = json.load(file)
        if not store:
            del self.good["extensions"], self.good["service"]["extensions"]
            self.good["receivers"]["http"]["ack"] = "accepted"
        self.put(self.good)

    def put(self, config):
        # As an editor or a ConfigMap does: the new file takes the name.
        with open(self.config + ".new", "w", encoding="utf-8") as file:
            json.dump(config, file)
        os.replace(self.config + ".new", self.config)

    def changed(self, keys, value):
        config = json.loads(json.dumps(self.good))
        inner = config
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
        inner[keys[-1]] = value
        return config

    def reload(self, config, said):
        """Signals, and waits until the log says so."""
        before = self.log_text().count(said)
        self.put(config)
        self.process.send_signal(signal.SIGHUP)
        return wait_for(lambda: self.log_text().count(said) > before, self.process)


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def disturbed(self, expected, store):
        what = "with a store" if store else "without a store"
        chance = random.Random(5)
        with tempfile.TemporaryDirectory() as folder:
            run = Run(self.binary, folder, store)
            run.start()
            run.wait_for_start()
            writer = threading.Thread(target=run.write_all)
            writer.start()
            for _ in range(25):
                time.sleep(chance.uniform(0.001, 0.03))
                run.put(run.good if chance.random() < 0.5
                        else run.changed(["service", "batch_size"], chance.choice([1, 100, 4096])))
                run.process.send_signal(signal.SIGHUP)
            writer.join()
            self.checks.check(wait_for(lambda: '"C1012"' in run.log_text(), run.process),
                              what + ": no configuration was taken")
            run.process.send_signal(signal.SIGHUP)  # one more, into which the stop comes
            self.checks.equal(run.stop(), 0, what + ": exit code: " + run.log_text()[-1500:])
            self.checks.equal(run.failures, [], what + ": requests")
            log = run.log_text()
            self.checks.check("Sanitizer" not in log, what + ": the sanitizer complains")
            self.checks.equal(run.bytes_of(run.output).decode(), expected.decode(),
                              what + ": verdicts")

    def mistakes(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(self.binary, folder, True)
            run.start()
            run.wait_for_start()
            run.write(0)
            bad = run.changed(["service", "pipelines", "memory", "evaluate_evry"], "1s")
            # The last line of a reload is waited for: what stands before it is there then.
            self.checks.check(run.reload(bad, "the current configuration stays in use"),
                              "the old one stays")
            self.checks.check("evaluate_evry: unknown key" in run.log_text(),
                              "a mistake is told with its key")
            run.write(1)
            taken = run.changed(["exporters", "prometheus", "endpoint"],
                                "127.0.0.1:%d" % run.port)
            taken["service"]["pipelines"]["memory"]["exporters"].append("prometheus")
            self.checks.check(run.reload(taken, "is the port that receivers.http.endpoint has"),
                              "a port that two want is told: " + run.log_text()[-800:])
            with socket.create_server(("127.0.0.1", 0)) as other:
                taken["exporters"]["prometheus"]["endpoint"] = (
                    "127.0.0.1:%d" % other.getsockname()[1])
                self.checks.check(run.reload(taken, "failed to start, the previous one continues"),
                                  "a port that is taken is told: " + run.log_text()[-800:])
            run.write(2)
            spare = run.changed(["receivers", "file/spare"], {"include": ["x"]})
            self.checks.check(run.reload(spare, '"C1012"'), "a good one is taken after that")
            self.checks.check(re.search(r'"C1024".*:1:\d+: receivers\.file/spare: is not started',
                                        run.log_text()), "what is not used is told")
            self.checks.check(run.reload(run.good, '"C1012"'), "and another one")
            run.write(3)
            self.checks.equal(run.failures, [], "no request is refused")
            self.checks.equal(run.stop(), 0, "exit code: " + run.log_text()[-1500:])

    def storm(self):
        """Many signals at once are one reload, and the last configuration is the one that runs."""
        with tempfile.TemporaryDirectory() as folder:
            run = Run(self.binary, folder, False)
            run.start()
            run.wait_for_start()
            for number in range(300):
                run.put(run.changed(["service", "batch_size"], 1 + number))
                run.process.send_signal(signal.SIGHUP)
            end = os.path.join(folder, "last.jsonl")
            run.put(run.changed(["exporters", "json", "path"], end))
            run.process.send_signal(signal.SIGHUP)
            # The leak, which is in the later rounds, must not be told before the last reload.
            half = len(run_crash.ROUNDS) // 3
            for number in range(half):
                run.write(number)
            self.checks.check(wait_for(lambda: os.path.exists(end), run.process),
                              "storm: the last configuration is taken: " + run.log_text()[-800:])
            for number in range(half, len(run_crash.ROUNDS)):
                run.write(number)
            self.checks.equal(run.stop(), 0, "storm: exit code: " + run.log_text()[-1500:])
            self.checks.check(b'"leak"' in run.bytes_of(end),
                              "storm: the last configuration is the one that runs")


def main():
    binary = os.path.abspath(sys.argv[1])
    suite = Suite(binary)
    expected, _ = run_crash.undisturbed(lambda folder: run_crash.Run(binary, folder),
                                        suite.checks)
    suite.disturbed(expected, True)
    suite.disturbed(expected, False)
    suite.mistakes()
    suite.storm()
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())

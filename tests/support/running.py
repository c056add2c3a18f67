# SPDX-License-Identifier: Apache-2.0
"""A culprit that runs until it is told to stop, with its log and its verdicts.

    class Run(Running):
        def __init__(self, binary, folder): super().__init__(binary, folder, document)

    with Run(binary, folder) as run:
        wait_for(run.found)
        run.stop(checks, "name")
"""
import json
import os
import signal
import subprocess
import time

from process import environment

PATIENCE_S = 60


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


class Running:
    """`document`: the configuration, whose json exporter writes to `verdicts` of the folder."""

    def __init__(self, binary, folder, document):
        os.makedirs(folder, exist_ok=True)
        self.binary = binary
        self.verdicts = self.verdicts_in(folder)
        self.log_path, self.config = os.path.join(folder, "log"), os.path.join(folder, "c.yaml")
        self.process = None
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(document, file)

    @staticmethod
    def verdicts_in(folder):
        return os.path.join(folder, "verdicts.jsonl")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def start(self):
        before = self.log().count("C1001")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([self.binary, "run", "--config", self.config],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment())
        started = wait_for(lambda: self.log().count("C1001") > before
                           or self.process.poll() is not None)
        if not started or self.process.poll() is not None:
            raise RuntimeError("culprit did not start: " + self.log())
        return True

    def stop(self, checks, name):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            code = None
        checks.equal(code, 0, name + ": it stops: " + self.log()[-1500:])
        checks.check("ERROR: " not in self.log() and "runtime error" not in self.log(),
                     name + ": no sanitizer complains: " + self.log()[-3000:])

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def found(self, pattern=None):
        """The verdicts that are there whole; of all patterns, or of one."""
        try:
            with open(self.verdicts, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [one for one in lines if pattern is None or one["pattern"] == pattern]

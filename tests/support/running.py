# SPDX-License-Identifier: Apache-2.0
"""A culprit that runs until it is told to stop, with its log and its verdicts; and how a test waits.

What another thread or process does is waited for, and what was waited for is what is judged:
`wait_for` gives what the condition gave. A file that is being written may end within a line, so
`whole_lines` and `documents` read one. PATIENCE_S only guards against what never happens: no test
may need it, however slow the machine.

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

PATIENCE_S = 120
ASK_EVERY_S = 0.02


def wait_for(condition, process=None, patience_s=PATIENCE_S):
    """What the condition gave last: it is asked until that is true. Nobody waits longer than
    `patience_s`, nor for a `process` that has ended."""
    end = time.monotonic() + patience_s
    while True:
        over = time.monotonic() > end or (process is not None and process.poll() is not None)
        found = condition()
        if found or over:
            return found
        time.sleep(ASK_EVERY_S)


def whole_lines(path):
    """The lines that are there whole; none of a file that is not there yet."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return []
    return data[:data.rfind(b"\n") + 1].decode("utf-8", "replace").split("\n")[:-1]


def documents(path):
    """The JSON objects among them, such as verdicts, or what a log says."""
    return [json.loads(line) for line in whole_lines(path) if line.startswith("{")]


def stored(folder):
    """All bytes of a store. What waits or is known there after a crash is found in them."""
    content = b""
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        try:
            with open(os.path.join(folder, name), "rb") as file:
                content += file.read()
        except (FileNotFoundError, IsADirectoryError):
            pass
    return content


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
        started = wait_for(lambda: self.log().count("C1001") > before, self.process)
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
        return [one for one in documents(self.verdicts)
                if pattern is None or one["pattern"] == pattern]

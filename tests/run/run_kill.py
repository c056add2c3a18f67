#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit run beside a job whose files grow: asked to stop, killed, started again.

    run_kill.py BINARY

A stop by SIGTERM or SIGINT judges all that was written until then and exits with 0. After SIGKILL,
at whatever moment, the verdict file holds whole lines, but for a last one that may be torn; the
next start cuts that off and goes on. Nothing here depends on how long something takes: what must
happen is waited for, up to a limit.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
import verdicts  # noqa: E402
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402
from running import PATIENCE_S, wait_for  # noqa: E402

LEAK_RANK = 2
JOB = generate.Job("killed", 77, 4, steps=9, swing=0.2, leak_rank=LEAK_RANK, leak_step=4,
                   leak_share=0.3, leak_at="backward", skew_s=0.5)
LINES = [list(generate.Rank(JOB, rank).lines()) for rank in range(JOB.ranks)]


def essence(found):
    """What a live run and one over the same files at rest must agree on."""
    keys = ("id", "kind", "severity", "confidence", "action", "entities")
    return [[verdict[key] for key in keys] for verdict in found
            if verdicts.severity_at_least(verdict, "warning")]


class Live:
    """A folder with the files of a job, a config, and culprit running over it."""

    def __init__(self, binary, folder, content="verdicts", path=None):
        self.binary, self.folder = binary, folder
        self.input = os.path.join(folder, "in")
        self.output = os.path.join(folder, "verdicts.jsonl")
        self.log = os.path.join(folder, "log")
        self.config = os.path.join(folder, "culprit.yaml")
        os.makedirs(self.input, exist_ok=True)
        self.written = [0] * JOB.ranks
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({
                "receivers": {"file": {"include": [self.input + "/*.jsonl"],
                                       "start_at": "beginning"}},
                "exporters": {"json": {"content": content, "path": path or self.output}},
                "service": {"pipelines": {"memory": {
                    "receivers": ["file"], "preset": "memory", "exporters": ["json"],
                    "evaluate_every": "1s", "allowed_lateness": "1s", "settle": "1s"}},
                    "shutdown_timeout": "%ds" % PATIENCE_S},
            }, file)

    def input_path(self, rank):
        return os.path.join(self.input, "rank%d.jsonl" % rank)

    def write_until(self, share, tail=b""):
        """Appends each rank's lines up to this share of them, and then some bytes of a line."""
        for rank, lines in enumerate(LINES):
            until = int(len(lines) * share)
            with open(self.input_path(rank), "ab") as file:
                for line in lines[self.written[rank]:until]:
                    file.write(line.encode() + b"\n")
                file.write(tail)
            self.written[rank] = until

    def start(self, stdout=subprocess.DEVNULL):
        self.log_file = open(self.log, "ab")
        said = self.log_text().count("C1001")
        process = subprocess.Popen([self.binary, "run", "--config", self.config],
                                   stdin=subprocess.DEVNULL, stdout=stdout, stderr=self.log_file,
                                   env=environment())
        # From this line on a signal asks it to stop.
        wait_for(lambda: self.log_text().count("C1001") > said, process)
        return process

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def follows_all(self, process):
        folder = "/proc/%d/fd/" % process.pid
        held = set()
        for name in os.listdir(folder):
            try:
                held.add(os.readlink(folder + name))
            except FileNotFoundError:           # closed meanwhile
                pass
        return all(os.path.realpath(self.input_path(rank)) in held for rank in range(JOB.ranks))

    def stop(self, process, number):
        process.send_signal(number)
        try:
            code = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = "none after %d s" % PATIENCE_S
        self.log_file.close()
        return code

    def bytes_out(self):
        try:
            with open(self.output, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def ended(self, what, live, code, wanted=0):
        self.checks.check(code == wanted, lambda: "%s: exit code %s, not %s: %s"
                          % (what, code, wanted, live.log_text()[-2000:]))
        self.checks.check("Sanitizer" not in live.log_text(), what + ": the sanitizer complains")

    def whole(self, what, live):
        """All lines of the verdict file are whole and right; gives the last state of each."""
        data = live.bytes_out()
        self.checks.check(data == b"" or data.endswith(b"\n"), what + ": the last line is torn")
        try:
            lines = [json.loads(line) for line in data.splitlines()]
        except ValueError as error:
            self.checks.check(False, "%s: a line is no JSON: %s" % (what, error))
            return []
        for verdict in lines:
            self.checks.equal(verdicts.faults(verdict), [], what + ": a verdict")
        return verdicts.read_lines(data.decode())

    def names_the_leak(self, what, found):
        grave = [v for v in found if verdicts.severity_at_least(v, "warning")]
        self.checks.equal([(v["kind"], verdicts.named(v, "culprit")) for v in grave],
                          [("leak", [LEAK_RANK])], what + ": who is named")

    def graceful(self, number):
        what = signal.Signals(number).name
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder)
            live.write_until(0.3)
            process = live.start()
            for tenth in range(4, 11):
                live.write_until(tenth / 10)
            self.ended(what, live, live.stop(process, number))
            self.names_the_leak(what, self.whole(what, live))
            once = run(self.binary, "analyze", "--output", "verdicts", live.input)
            self.checks.equal(essence(self.whole(what, live)),
                              essence(verdicts.read_lines(once.text())),
                              what + ": last state, against analyze")

    def at_once(self):
        """Everything is there before it starts, and it is told to stop as soon as it listens."""
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder)
            live.write_until(1)
            process = live.start()
            self.ended("stop at once", live, live.stop(process, signal.SIGTERM))
            self.names_the_leak("stop at once", self.whole("stop at once", live))

    def nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder)
            process = live.start()
            self.ended("no input", live, live.stop(process, signal.SIGTERM))
            self.checks.equal(self.whole("no input", live), [], "no input: verdicts")

    def half_a_line(self):
        """The last line of a file that is followed is waited for, never read by halves."""
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder)
            tail = LINES[0][0].encode()[:300]
            live.write_until(1, tail)
            process = live.start()
            self.ended("half a line", live, live.stop(process, signal.SIGTERM))
            self.names_the_leak("half a line", self.whole("half a line", live))

    def appears_while_running(self):
        """A verdict is written while the job runs, not at the end only."""
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder)
            process = live.start()
            live.write_until(0.5)
            live.write_until(1)
            seen = wait_for(lambda: b'"leak"' in live.bytes_out(), process)
            self.checks.check(seen, "a leak is not said while the job runs")
            self.checks.check(process.poll() is None, "it ended by itself")
            self.ended("while running", live, live.stop(process, signal.SIGTERM))
            self.names_the_leak("while running", self.whole("while running", live))

    def rotated(self):
        """Files that are renamed away and begun anew are read on."""
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder)
            live.write_until(0.6)
            process = live.start()
            self.checks.check(wait_for(lambda: live.follows_all(process), process),
                              "rotated: the files are opened")
            for rank in range(JOB.ranks):
                os.rename(live.input_path(rank), live.input_path(rank) + ".1")
            live.write_until(1)
            self.ended("rotated", live, live.stop(process, signal.SIGTERM))
            self.names_the_leak("rotated", self.whole("rotated", live))

    def killed(self):
        dice = random.Random(5)
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder)
            for turn in range(8):
                what = "killed, turn %d" % turn
                process = live.start()
                live.write_until(min(1, (turn + 1 + dice.random()) / 8))
                time.sleep(dice.random() * 0.2)
                self.ended(what, live, live.stop(process, signal.SIGKILL), -signal.SIGKILL)
                self.whole_but_last(what, live)
            process = live.start()
            live.write_until(1)
            self.ended("after the kills", live, live.stop(process, signal.SIGTERM))
            self.names_the_leak("after the kills", self.whole("after the kills", live))

    def whole_but_last(self, what, live):
        whole = live.bytes_out().split(b"\n")[:-1]
        for line in whole:
            try:
                good = isinstance(json.loads(line), dict)
            except ValueError:
                good = False
            self.checks.check(good, "%s: the line %.200r is not whole" % (what, line))

    def torn_output(self):
        """A torn last line of the verdict file is gone after the next start."""
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder)
            live.write_until(1)
            self.ended("first run", live, live.stop(live.start(), signal.SIGTERM))
            line = live.bytes_out().splitlines()[-1] if live.bytes_out() else b"{"
            with open(live.output, "ab") as file:
                file.write(line[:len(line) // 2])
            self.ended("torn output", live, live.stop(live.start(), signal.SIGTERM))
            self.names_the_leak("torn output", self.whole("torn output", live))

    def second_signal(self):
        """While the first stop hangs on a reader that does not read, a second one ends it."""
        with tempfile.TemporaryDirectory() as folder:
            live = Live(self.binary, folder, content="timeline", path="-")
            live.write_until(1)
            reader, writer = os.pipe()
            process = live.start(stdout=writer)
            os.close(writer)
            process.send_signal(signal.SIGTERM)
            self.checks.check(wait_for(lambda: "C1002" in live.log_text(), process),
                              "the first signal is logged")
            # A pipe holds 64 KiB, the timeline is larger: it cannot finish.
            self.ended("second signal", live, live.stop(process, signal.SIGTERM),
                       128 + signal.SIGTERM)
            os.close(reader)


def main(binary):
    suite = Suite(binary)
    suite.nothing()
    suite.at_once()
    suite.graceful(signal.SIGTERM)
    suite.graceful(signal.SIGINT)
    suite.half_a_line()
    suite.appears_while_running()
    suite.rotated()
    suite.killed()
    suite.torn_output()
    suite.second_signal()
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

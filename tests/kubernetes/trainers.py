# SPDX-License-Identifier: Apache-2.0
"""Four gloo ranks in two pods for tests: real ones where there is torch, else recorded ones.

A trainer writes, in a folder for each pod, what the ranks of tests/live_torch write: the console of
torchrun and of its ranks, dumps of the Flight Recorder, and which process is which rank. Recorded
ones (golden/real_hangs) are played with the times of now, from a second before the fault on.
"""
import os
import pickle
import re
import sys
import threading
import time
from datetime import datetime, timezone

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "live_torch"))
import cases  # noqa: E402
import record  # noqa: E402

HANGS = os.path.join(HERE, "..", "golden", "real_hangs")
NODES = ("node-a", "node-b")
SECOND = 10**9
EPOCH = range(17 * 10**17, 19 * 10**17)  # numbers that are times of these years
# 2026-11-23 01:24:08,870 of the ranks; W1123 01:24:14.672000 of torchrun; 2026-11-23_01:24:15 of its summary
WRITTEN = [(re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})"), "%Y-%m-%dT%H:%M:%S.%f", 6),
           (re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})"), "%Y-%m-%d %H:%M:%S,%f", 3),
           (re.compile(r"(\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)"), "%Y-%m-%d_%H:%M:%S", None),
           (re.compile(r"(?<=^[WEI])(\d{4} \d\d:\d\d:\d\d\.\d{6})"), "%m%d %H:%M:%S.%f", 6)]


def parsed(text, form, year):
    if "%Y" not in form:
        text, form = "%d %s" % (year, text), "%Y " + form
    moment = datetime.strptime(text, form).replace(tzinfo=timezone.utc)
    whole = moment.replace(microsecond=0)
    return int(whole.timestamp()) * SECOND + moment.microsecond * 1000


def formatted(time_ns, form, digits):
    seconds, rest = divmod(time_ns, SECOND)
    text = datetime.fromtimestamp(seconds, timezone.utc).strftime(form.replace("%f", "#"))
    return text.replace("#", "" if digits is None else ("%09d" % rest)[:digits])


class Recorded:
    """golden/real_hangs/CASE, whose two nodes become two pods."""

    def __init__(self, case, folder, pods):
        self.case, self.source = case, os.path.join(HANGS, case)
        self.folder, self.pods = folder, pods
        self.rank = cases.named(case).rank
        self.year = 2026
        self.pieces = []  # (time, path, bytes), in order
        self.fault_ns = 0  # in the recording, then now
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.play, daemon=True)
        self.shift = 0

    def start(self):
        self.read()
        self.shift = time.time_ns() + SECOND - self.fault_ns
        self.thread.start()

    def wait_for_fault(self):
        """-> when it began, once that time has come"""
        self.ready.wait()
        return self.fault_ns + self.shift

    def end(self):
        self.thread.join()

    def read(self):
        found = []
        for node in NODES:
            for folder, _, names in os.walk(os.path.join(self.source, node)):
                found += [os.path.join(folder, name) for name in names]
        texts = {path: self.lines(path) for path in sorted(found) if "flight_recorder" not in path}
        everything = [line for lines in texts.values() for line in lines]
        step_ns = max(when for when, line in everything if b"step 4 loss" in line)
        kernel = [line for path, lines in texts.items() if path.endswith("kernel.log") for line in lines]
        self.fault_ns = max([when for when, _ in kernel] or [step_ns])
        over_ns = min(when for when, line in everything if re.match(rb"[WE]\d{4} ", line))
        for path, lines in texts.items():
            if not path.endswith("kernel.log"):
                # A rank's log ends with its traceback, shortly before its agent tells of the end.
                self.pieces += [(over_ns if when == 0 else when, path, line) for when, line in lines]
        options = cases.named(self.case).options
        dumped_ns = step_ns + int(options[options.index("--dump-after-s") + 1]) * SECOND
        for path in sorted(found):
            if path not in texts:
                with open(path, "rb") as file:
                    self.pieces.append((dumped_ns, path, pickle.load(file)))
        self.pieces.sort(key=lambda piece: piece[0])

    def lines(self, path):
        """(time, line): a line without a time is of the next one that has one, behind the last 0."""
        with open(path, "rb") as file:
            lines = file.read().splitlines(True)
        found, coming = [], 0
        if "agent" in path:  # ends with the summary
            coming = max(self.time_of(line) for line in lines)
        for line in reversed(lines):
            coming = self.time_of(line) or coming
            found.append((coming, line))
        return found[::-1]

    def time_of(self, line):
        text = line.decode("utf-8", "replace")
        number = re.search(r'"observed_time_ns": (\d+)', text)
        if number:
            return int(number.group(1))
        for pattern, form, _ in WRITTEN:
            found = pattern.search(text)
            if found and "_" not in form:
                return parsed(found.group(1), form, self.year)
        return 0

    def moved(self, line):
        text = line.decode("utf-8", "replace")
        for pattern, form, digits in WRITTEN:
            text = pattern.sub(lambda found: formatted(
                parsed(found.group(1), form, self.year) + self.shift, form, digits), text)
        text = re.sub(r'(?<="observed_time_ns": )\d+', lambda n: str(int(n.group()) + self.shift), text)
        for node, pod in zip(NODES, self.pods):
            text = text.replace(node, pod)
        return text.encode()

    def moved_dump(self, value):
        if isinstance(value, dict):
            return {key: self.moved_dump(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.moved_dump(one) for one in value)
        return value + self.shift if type(value) is int and value in EPOCH else value

    def play(self):
        for when, path, piece in self.pieces:
            while time.time_ns() < when + self.shift:
                if time.time_ns() >= self.fault_ns + self.shift:
                    self.ready.set()
                time.sleep(0.02)
            place = os.path.relpath(path, self.source)
            for node, pod in zip(NODES, self.pods):
                place = re.sub("^" + node, pod, place)
            place = os.path.join(self.folder, place)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "ab") as file:
                file.write(self.moved(piece) if isinstance(piece, bytes)
                           else pickle.dumps(self.moved_dump(piece), 2))
        self.ready.set()


class Real(record.Job):
    """The same job anew, with the pods' names as host names."""

    def __init__(self, python, case, folder, pods):
        super().__init__(python, cases.named(case), folder)
        self.nodes, self.per_node, self.rank = pods, 2, cases.named(case).rank

    def wait_for_fault(self):
        path = os.path.join(self.folder, self.nodes[self.rank // 2], "agent.stderr")
        while self.is_running() and time.monotonic() < self.limit:
            with open(path, "rb") as file:
                if b"[rank %d] step 4 " % self.rank in file.read():
                    break
            time.sleep(0.02)
        return time.time_ns()

    def end(self):
        self.wait()
        self.close()


def torch_python():
    """A Python with torch, where jobs can be given host names of their own; else None."""
    python = os.environ.get("CULPRIT_TORCH_PYTHON", sys.executable)
    able = record.can(python, "import torch.distributed") and record.host_name_setter()
    return python if able else None

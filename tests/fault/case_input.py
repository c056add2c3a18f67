# SPDX-License-Identifier: Apache-2.0
"""Cases of run_faults.py about what is in the input: rotated, torn, abusive, endless, other names.

Each puts what is wrong beside a job whose verdicts are known: they must stay what they are.
"""
import json
import os
import random
import re
import resource
import subprocess
import time

from process import environment
from world import ROUNDS, Run, folder, must, wait_for

START_NS = 1_760_000_000_000_000_000


def job_lines():
    """All lines of the job, in order of time."""
    lines = [line for part in ROUNDS for rank in sorted(part) for line in part[rank]]
    return sorted(lines, key=lambda line: json.loads(line)["timestamp_ns"])


LINES = job_lines()


class Analyzed:
    def __init__(self, context, data, *arguments, limit_s=600):
        with folder() as place:
            path = os.path.join(place, "events.jsonl")
            with open(path, "wb") as file:
                for piece in [data] if isinstance(data, bytes) else data:
                    file.write(piece)
            began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            done = subprocess.run([context.binary, "analyze", "--output", "verdicts", *arguments,
                                   path], stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=limit_s, env=environment(), check=False)
        self.code, self.out = done.returncode, done.stdout
        self.errors = done.stderr.decode("utf-8", "replace")
        self.peak_kib = max(began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        must(self.code in (0, 65), lambda: "exit code %d: %s" % (self.code, self.errors[-1500:]))
        must("Sanitizer" not in self.errors and "runtime error" not in self.errors,
             lambda: self.errors[-3000:])

    def verdicts(self):
        keys = ("id", "kind", "severity", "confidence", "entities")
        return sorted([json.dumps([verdict[key] for key in keys])
                       for verdict in map(json.loads, self.out.splitlines())])


def beside(context, abuse):
    """The job with these lines between its own: its verdicts stay; how many were refused."""
    clean = Analyzed(context, "\n".join(LINES).encode() + b"\n").verdicts()
    must(len(clean) >= 1, "no verdict of the job alone")
    mixed, step = [], max(1, len(LINES) // len(abuse))
    waiting = list(abuse)
    for number, line in enumerate(LINES):
        mixed.append(line.encode())
        if number % step == step - 1 and waiting:
            mixed.append(waiting.pop())
    found = Analyzed(context, b"\n".join(mixed + waiting) + b"\n")
    must(set(clean) <= set(found.verdicts()), lambda: "the verdicts are others: %r, not %r"
         % (found.verdicts(), clean))
    counted = re.search(r"([\d,]+) (?:records?|lines?)[^\n]* refused|refused ([\d,]+)",
                        found.errors)
    return counted.group(1) or counted.group(2) if counted else "some"


# -- JSON, meaning -------------------------------------------------------------------------------

def json_abuse(context):
    count = context.count(20_000, 1_000_000)
    event = LINES[0]
    lines = [b"[" * count, b'{"a":' * count, b'{"a":[' * count + b"]}" * count,
             b"{" + b",".join(b'"k%d":1' % i for i in range(count // 4)) + b"}",
             event.replace('"rank":', '"rank":1e999,"rank2":').encode(),
             event.replace('"pid":', '"pid":9007199254740993.5,"p":').encode(),
             event.replace('"timestamp_ns":', '"timestamp_ns":-0,"t":').encode(),
             event.replace('"timestamp_ns":', '"timestamp_ns":NaN,"t":').encode(),
             event.replace('"timestamp_ns":', '"timestamp_ns":1e400,"t":').encode(),
             event.replace('"rank":', '"rank":' + "9" * 5000 + ',"r":').encode(),
             event.replace('"host":"', '"host":"\\ud800').encode(),
             event.replace('"host":"', '"host":"\\ud800\\ud800').encode(),
             event.replace('"host":"', '"host":"\\u0000').encode(),
             event.encode().replace(b'"host":"', b'"host":"\xff\xfe\xc0\x80'),
             event.encode().replace(b'"host":"', b'"host":"\x00'),
             event.encode()[:-1], event.encode()[1:], b"\xef\xbb\xbf" + event.encode()[:-1],
             b"nul", b"tru", b"-", b"1.", b"1e", b"'a'", b'{"a":1,}', b"[1,]", b'{"a" 1}',
             b'"' + b"a" * count + b'"', b"\x00" * 100, b'{"":', b"Infinity", b"0x10", b"01",
             b'{"schema_version":' + b"1" * 400 + b"}"]
    refused = beside(context, lines)
    return "%d hostile lines, nesting of %d: refused %s, the verdicts stay" % (
        len(lines), count, refused)


def semantics(context):
    """Records that are JSON and cannot be true; those that might be are of another job."""
    base = json.loads(LINES[len(LINES) // 2])

    def changed(**more):
        return json.dumps({**base, **more}).encode()
    wrong = [{"rank": -1}, {"rank": 6}, {"rank": 1 << 31}, {"world_size": 0}, {"world_size": -5},
             {"timestamp_ns": -1}, {"timestamp_ns": "x"}, {"timestamp_ns": 1.5},
             {"timestamp_ns": None}, {"allocator_allocated_bytes": -1},
             {"allocator_allocated_bytes": "1"}, {"device_total_bytes": 1 << 70},
             {"sampling_interval_ms": -1}, {"event_type": 7}, {"schema_version": 99},
             {"pid": 1 << 80}, {"host": 5}, {"metadata": []}, {"rank": None, "world_size": None}]
    other = {"job_id": "another", "session_id": "another"}
    strange = [{"timestamp_ns": 0}, {"timestamp_ns": 1}, {"timestamp_ns": (1 << 63) - 1},
               {"timestamp_ns": START_NS // 1000}, {"timestamp_ns": START_NS + 10 * 365 * 86400
                                                    * 10**9},
               {"allocator_allocated_bytes": (1 << 63) - 1}, {"device_used_bytes": (1 << 63) - 16},
               {"world_size": 1 << 20}, {"rank": 0, "world_size": 3}, {"rank": 5, "local_rank": 99}]
    lines = [changed(**more) for more in wrong] + [changed(**other, **more) for more in strange]
    refused = beside(context, lines)
    return "%d records that cannot be true, %d strange ones of another job: refused %s" % (
        len(wrong), len(strange), refused)


# -- files that grow -----------------------------------------------------------------------------

class Following(Run):
    """Files only; what went through is counted."""

    def receivers(self):
        return {"file": {"include": [self.input + "/*.jsonl"], "poll_interval": "20ms",
                         "max_line_size": "64KiB",
                         "quarantine": os.path.join(self.folder, "refused.jsonl")}}

    def start(self, **more):
        super().start(wait=False, **more)
        wait_for(self.running, lambda: self.log_text()[-1500:])

    def counted(self, wanted, what):
        wait_for(lambda: (self.consumed() or 0) >= wanted, lambda: "%s: %s of %d went through; %s"
                 % (what, self.consumed(), wanted, self.log_text()[-1500:]))
        time.sleep(0.2)
        must(self.consumed() == wanted, lambda: "%s: %s went through, not %d"
             % (what, self.consumed(), wanted))


def event(number, rank):
    return json.dumps({**json.loads(LINES[0]), "timestamp_ns": START_NS + number * 1_000_000,
                       "rank": rank, "local_rank": rank, "pid": 4000 + rank,
                       "job_id": "rotated", "session_id": "rotated-%d" % rank}) + "\n"


def rotation(context):
    """Renamed away, deleted and made anew, by several writers; each line must count once."""
    turns = context.count(60, 3000)
    dice = random.Random(7)
    with folder() as place:
        run = Following(context, place)
        run.start()
        written = [0] * 4
        rotations = 0
        for turn in range(turns):
            rank = turn % 4
            path = os.path.join(run.input, "rank%d.jsonl" % rank)
            with open(path, "ab", buffering=0) as file:
                for _ in range(dice.randrange(1, 12)):
                    line = event(written[rank], rank).encode()
                    at = dice.randrange(1, len(line))
                    file.write(line[:at])
                    file.write(line[at:])
                    written[rank] += 1
            how = dice.randrange(4)
            if how == 3:
                continue
            # What a tool of that kind sees to: that the reader has the file before it goes.
            run.counted(sum(written), "turn %d" % turn)
            if how == 0:
                os.rename(path, path + ".1")
            elif how == 1:
                os.unlink(path)
            else:
                os.rename(path, "%s.%d" % (path, turn))
            rotations += 1
        run.counted(sum(written), "at the end")
        must(run.stop() == 0, lambda: run.log_text()[-1500:])
    return "%d lines over %d rotations: each once" % (sum(written), rotations)


def torn(context):
    """A line in pieces, a killed writer, NULs, CRLF, a BOM, lines of many MiB."""
    with folder() as place:
        run = Following(context, place)
        run.start()
        path = os.path.join(run.input, "torn.jsonl")
        good = 0
        with open(path, "ab", buffering=0) as file:
            line = event(good, 0).encode()
            for at in range(0, len(line), 7):
                file.write(line[at:at + 7])
                if at % 70 == 0:
                    time.sleep(0.005)
            good += 1
            for ending in (b"\r\n", b"\n\n\n", b"\n\x0b\n"):
                file.write(event(good, 0).encode()[:-1] + ending)
                good += 1
            # Its writer is killed in the middle; another begins a line behind that.
            file.write(event(good, 0).encode()[:200] + b"\n")
            file.write(bytes(100_000) + b"\n")
            file.write(event(good, 0).encode())
            good += 1
            for _ in range(context.count(4, 64)):
                file.write(b'{"a":"' + b"x" * (1 << 20))
            file.write(b"\n" + event(good, 0).encode())
            good += 1
        with open(os.path.join(run.input, "bom.jsonl"), "wb", buffering=0) as file:
            file.write(b"\xef\xbb\xbf" + event(good, 1).encode() + event(good + 1, 1).encode())
        wait_for(lambda: (run.consumed() or 0) >= good + 1, lambda: "%s of %d: %s" % (
            run.consumed(), good, run.log_text()[-1500:]))
        must(run.stop() == 0, lambda: run.log_text()[-1500:])
        with open(os.path.join(place, "refused.jsonl"), encoding="utf-8") as file:
            refused = [json.loads(text) for text in file]
        must(good + 1 <= accepted(run) <= good + 2, "accepted: %d of %d" % (accepted(run), good))
        must(2 <= len(refused) <= 6, lambda: "refused: %d, %.500r" % (len(refused), refused))
    return "%d lines right, %d refused, each once" % (good + 1, len(refused))


def accepted(run):
    found = re.findall(r"([\d,]+) events accepted", run.log_text())
    must(found, lambda: run.log_text()[-1000:])
    return int(found[-1].replace(",", ""))


# -- names without end ---------------------------------------------------------------------------

def cardinality(context):
    """More jobs, ranks, sessions and hosts than anybody has, behind a job that is known."""
    count = context.count(3_000, 300_000)
    clean = Analyzed(context, "\n".join(LINES).encode() + b"\n")

    def lines():
        yield "\n".join(LINES).encode() + b"\n"
        base = json.loads(LINES[0])
        for number in range(count):
            yield json.dumps({**base, "job_id": "j%d" % number, "session_id": "s%d" % number,
                              "host": "h%d" % number}).encode() + b"\n"
        for number in range(count):
            yield json.dumps({**base, "job_id": "wide", "rank": number, "local_rank": 0,
                              "world_size": 1 << 20, "host": "w%d" % number}).encode() + b"\n"
        yield json.dumps({**base, "job_id": "x" * 900_000}).encode() + b"\n"
    found = Analyzed(context, lines())
    must(set(clean.verdicts()) <= set(found.verdicts()), lambda: "the known job's verdicts: %r"
         % found.verdicts()[:5])
    must(context.sanitized or found.peak_kib < 2 << 20, "%d KiB of memory" % found.peak_kib)
    return "%d jobs and %d ranks: the known job's verdicts stay%s" % (
        count, count, "" if context.sanitized else ", %d MiB at most" % (found.peak_kib >> 10))


def names_for_ever(context):
    """The same against a culprit that runs: its metrics stay bounded, its memory too."""
    count = context.count(1_500, 100_000)
    with folder() as place:
        run = Run(context, place)
        run.start()
        base = json.loads(LINES[0])
        before = run.memory_kib()
        for first in range(0, count, 500):
            lines = [json.dumps({**base, "job_id": "n%d" % number, "session_id": "n%d" % number})
                     for number in range(first, first + 500)]
            wait_for(lambda: run.post_once("names/%d" % first, lines) == 200, "it is taken")
        peak = run.memory_kib("VmHWM") - before
        must(context.sanitized or peak < 600 * 1024, "memory grew by %d KiB" % peak)
        must(run.stop() == 0, lambda: run.log_text()[-1500:])
    return "%d jobs over HTTP: memory grew by %d MiB" % (count, peak >> 10)


def both_names(context):
    return cardinality(context) + "; " + names_for_ever(context)



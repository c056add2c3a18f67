#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs whose reports of several lines are held, in a culprit that is killed again and again.

    run_held_crash.py BINARY [KILLS]      (60 kills)

Each rank's file holds its telemetry with tracebacks of several writers in between, line by line, so
that most of the time some are held and reading goes on in front of them after each kill. The log of
a node holds records of the kernel, each of which waits for the next, in between such tracebacks.
Logs are finished when they were quiet for some milliseconds, at moments that differ in each run.
The verdicts and the summary are those of a run that was not disturbed, so nothing was counted
twice and nothing is missing; and every record that is refused after it was held is in the
quarantine.
"""
import datetime
import json
import os
import random
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import run_crash  # noqa: E402
import generate  # noqa: E402
from checks import Checks  # noqa: E402

KILLS = 60
SEED = 1812
NOISE_SEED = 7
WRITERS = 3
BOOT_S = generate.START_NS // 1_000_000_000
KILLS_AT_A_LINE = 3
REPORT_EVERY = 4   # rounds
REFUSED_EVERY = 5  # rounds
REPORT = ("pcieport 0000:00:01.0: AER: Uncorrectable (Non-Fatal) error message received from %s",
          "nvidia %s: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, "
          "(Requester ID)",
          "nvidia %s:   device [10de:2330] error status/mask=00040000/00000000",
          "nvidia %s:    [18] MalfTLP                (First)")


class Tracebacks:
    """Lines of several writers, each with one traceback after another, taken at random."""

    def __init__(self, chance):
        self.chance = chance
        self.queues = [[] for _ in range(WRITERS)]

    def line(self):
        writer = self.chance.randrange(WRITERS)
        queue = self.queues[writer]
        if not queue:
            frames = self.chance.randrange(1, 12)
            queue.append("Traceback (most recent call last):")
            for frame in range(frames):
                queue.append('  File "/job/train.py", line %d, in step' % (frame + 1))
                queue.append("    step(%d)" % frame)
            queue.append("RuntimeError: CUDA error: an illegal memory access was encountered")
            # Without this one would go over into the next, and all would be held for ever.
            queue += ["step %d" % n for n in range(self.chance.randrange(1, 20))]
        return "[rank%d]: %s\n" % (writer, queue.pop(0))


def node_lines(number):
    """What the kernel says in one round."""
    at_us = 1_000_000 + number * run_crash.ROUND_NS // 1000
    lines = ["6,%d,%d,-;usb 1-1: new device\n" % (10 * number, at_us)]
    if number % REPORT_EVERY == 1:
        device = "0000:%02x:00.0" % (0x10 + number)
        lines += ["3,%d,%d,-;%s\n" % (10 * number + 1 + at, at_us + 1000 + at, text % device)
                  for at, text in enumerate(REPORT)]
    if number % REFUSED_EVERY == 2:
        lines.append("3,%d,%d,-;Out of memory: Killed process 12 (py\n"
                     % (10 * number + 6, at_us + 2000))
    return lines


def made():
    """All files in rounds: a list of {name: text}, the same each time."""
    chance = random.Random(NOISE_SEED)
    noise = {}
    found = []
    for number, ranks in enumerate(run_crash.ROUNDS):
        parts = {"rank%d.jsonl" % rank: [line + "\n" for line in lines]
                 for rank, lines in ranks.items()}
        parts["node.log"] = node_lines(number)
        for name, lines in parts.items():
            source = noise.setdefault(name, Tracebacks(chance))
            mixed = []
            for line in lines:
                mixed.append(line)
                mixed += [source.line() for _ in range(chance.randrange(0, 3))]
            parts[name] = "".join(mixed)
        found.append(parts)
    found[0]["node.log"] += "step\n" * 64  # enough to tell what it is
    return found


ROUNDS = made()
KERNEL_LINES = {line for number in range(len(ROUNDS)) for line in node_lines(number)}


def refused_lines():
    text = "".join(parts["node.log"] for parts in ROUNDS)
    return {number for number, line in enumerate(text.splitlines(), 1)
            if line.endswith("Killed process 12 (py")}


class Run(run_crash.Run):
    def __init__(self, binary, folder):
        self.quarantine = os.path.join(folder, "refused.jsonl")
        super().__init__(binary, folder)
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        pipelines = config["service"]["pipelines"]
        pipelines["all"] = dict(pipelines.pop("memory"), preset="all")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def receivers(self):
        following = {"poll_interval": "20ms", "finish_after": "40ms"}
        return {"file": {"include": [self.input + "/*.jsonl"], **following},
                "file/node": {"include": [self.input + "/node.log"], "node": "node0",
                              "boot_time": boot_time(),
                              "quarantine": self.quarantine, **following}}

    def pause(self, chance):
        return chance.uniform(0.005, 0.6)

    def append(self, name, text):
        with open(os.path.join(self.input, name), "ab", buffering=0) as file:
            half = len(text) // 2
            file.write(text[:half].encode())
            file.write(text[half:].encode())

    def write_all(self, kills=0):
        """Waits for kills behind lines of the kernel, which are held just then: for several, so
        that some find nothing new and finish what is held."""
        waits = 0
        for parts in ROUNDS:
            for name, text in parts.items():
                if name != "node.log":
                    self.append(name, text)
                    continue
                for line in text.splitlines(keepends=True):
                    self.append(name, line)
                    waits += line in KERNEL_LINES
                    wanted = kills * waits // len(KERNEL_LINES)
                    while self.kills < wanted - wanted % KILLS_AT_A_LINE:
                        time.sleep(0.002)

    def quarantined(self):
        return [json.loads(line)["position"]
                for line in self.bytes_of(self.quarantine).decode().splitlines()]


def boot_time():
    moment = datetime.datetime.fromtimestamp(BOOT_S, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# Tracebacks have no time but that of being read, and one that pauses while culprit is killed is
# told in two parts: of first_exit only who and what is the same.
def of_nodes(text):
    return [line for line in text.splitlines() if '"pattern":"first_exit"' not in line]


def ends(text):
    last = {}
    for line in text.splitlines():
        found = json.loads(line)
        if found["pattern"] == "first_exit":
            last[found["id"]] = found["kind"], found["entities"]
    return last


def one(binary, kills, checks, what):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(binary, folder)
        run.start()
        if kills > 0:
            run.kill_at_random(kills, random.Random(SEED))
        else:
            run.write_all()
        checks.equal(run.stop(), 0, what + ": exit code: " + run.log_text()[-1500:])
        log = run.log_text()
        checks.check("Sanitizer" not in log,
                     lambda: what + ": the sanitizer complains: " + log[-3000:])
        kept = run.quarantined()
        checks.equal(set(kept), refused_lines(), what + ": what the quarantine holds")
        return run.bytes_of(run.output).decode(), json.loads(run.bytes_of(run.summary)), kept


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    checks = Checks()
    verdicts, summary, kept = one(binary, 0, checks, "undisturbed")
    checks.equal(len(kept), len(refused_lines()), "undisturbed: each refused record once")
    reported = {json.loads(line)["id"] for line in verdicts.splitlines()
                if json.loads(line)["pattern"] == "pcie_aer"}
    checks.equal(len(reported), len([n for n in range(len(ROUNDS)) if n % REPORT_EVERY == 1]),
                 "undisturbed: one verdict for each report of the kernel")
    checks.check("memory_first_cause" in verdicts, "undisturbed: none for the telemetry")
    killed_verdicts, killed_summary, _ = one(binary, kills, checks, "killed")
    checks.equal(of_nodes(killed_verdicts), of_nodes(verdicts), "killed: verdicts")
    checks.equal(ends(killed_verdicts), ends(verdicts), "killed: ends of ranks")
    checks.check(len(ends(verdicts)) > 0, "undisturbed: an end of a rank")
    checks.equal(killed_summary, summary, "killed: summary")
    checks.check(True, "killed %d times" % kills)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

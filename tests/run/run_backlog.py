#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""culprit run over files with much to read, whose lines are decoded on other threads.

    run_backlog.py BINARY [KILLS]      (30 kills for each number of threads)

Two files grow by megabytes at once, with lines that are broken, blank, too long, of another kind
and with \\r\\n between. culprit is killed at random moments, and mostly reads them then. With one,
two and five threads the verdicts are those of a run with one thread that was not disturbed, byte
for byte, and the summaries those of a run with as many threads.
"""
import json
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "healthy"))
import generate  # noqa: E402
import run_crash  # noqa: E402
from checks import Checks  # noqa: E402

THREADS = (1, 2, 5)
KILLS = 30
PIECES = 3
SEED = 18
JOB = generate.Job("backlog", 99, 6, steps=12, swing=0.2, leak_rank=4, leak_step=5, leak_share=0.3,
                   leak_at="backward", skew_s=0.3, interval_ns=3_500_000)
OTHERS = ("{\"schema_version\": 3, \"torn\n", "  \n", "\n", "x" * 70_000 + "\n",
          "y" * 2_500_000 + "\n", json.dumps({"schema_version": 3, "rank": -7}) + "\n",
          "[1760000000.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n")


def backlog(ranks):
    """The lines of these ranks as they came, and others between."""
    chance = random.Random(SEED)
    lines = sorted(((json.loads(line)["timestamp_ns"], line) for rank in ranks
                    for line in generate.Rank(JOB, rank).lines()))
    out = []
    for _, line in lines:
        out.append(line + ("\r\n" if chance.random() < 0.02 else "\n"))
        if chance.random() < 0.01:
            out.append(chance.choice(OTHERS[:4] + OTHERS[5:]))
    out.insert(len(out) // 2, OTHERS[4])
    return "".join(out).encode()


class Run(run_crash.Run):
    files = {"a.jsonl": (0, 2, 4), "b.jsonl": (1, 3, 5)}
    written = {}

    def __init__(self, binary, folder, threads):
        super().__init__(binary, folder)
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["service"]["threads"] = threads
        config["service"]["checkpoint_interval"] = "10ms"
        config["service"]["batch_size"] = 50  # so that many end within a block
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def receivers(self):
        for name, ranks in self.files.items():
            if name not in self.written:
                self.written[name] = backlog(ranks)
        return {"file": {"include": [self.input + "/*.jsonl"], "max_line_size": "1MiB"}}

    def write_all(self, kills=0):
        """In pieces that end anywhere, spread over the kills."""
        for number in range(PIECES):
            while self.kills < kills * number // PIECES:
                time.sleep(0.002)
            for name, data in self.written.items():
                with open(os.path.join(self.input, name), "ab") as file:
                    file.write(data[len(data) * number // PIECES:
                                    len(data) * (number + 1) // PIECES])

    def pause(self, chance):
        return chance.uniform(0.02, 0.08)


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    checks = Checks()
    first = None
    for threads in THREADS:
        told = run_crash.killed(lambda folder, threads=threads: Run(binary, folder, threads), kills,
                                checks)
        first = first or told
        checks.equal(told.decode(), first.decode(), "verdicts with %d threads" % threads)
    sizes = [len(data) for data in Run.written.values()]
    checks.check(min(sizes) > PIECES * (5 << 20), "the files are too short for what is to be tested")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

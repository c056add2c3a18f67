#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Made-up training jobs: healthy ones that a careless detector would blame, and leaky ones.

    generate.py SEED DIRECTORY     writes the job that this seed gives, one file a rank

A job is a base of memory that is there all the time (weights, optimizer), and a swing for each
step: activations pile up through forward and go again through backward. What a healthy job may do
beside that: come up within few samples, grow on all ranks while it warms up, and go over to larger
batches midway. Clocks are apart, samples come with jitter. The same seed gives the same bytes.
"""
import json
import os
import random
import sys

MIB = 1 << 20
GIB = 1 << 30
START_NS = 1_760_000_000_000_000_000
INTERVAL_NS = 100_000_000
DEVICE_BYTES = 80 * GIB


class Job:
    """What one job does. Shares are of the base; steps count from 0."""

    def __init__(self, name, seed, ranks, steps=14, swing=0.2, warm_up=0.0, batch_step=None,
                 batch_growth=0.0, leak_rank=None, leak_step=None, leak_share=0.0,
                 leak_at="backward", cut=False, skew_s=2.0, interval_ns=INTERVAL_NS, start_s=0.0):
        self.name, self.seed, self.ranks, self.steps = name, seed, ranks, steps
        self.swing, self.warm_up = swing, warm_up
        self.batch_step, self.batch_growth = batch_step, batch_growth
        self.leak_rank, self.leak_step = leak_rank, leak_step
        self.leak_share, self.leak_at = leak_share, leak_at
        self.cut = cut                          # ends anywhere, not at the end of a step
        self.skew_s = skew_s
        self.interval_ns = interval_ns
        self.start_s = start_s                  # seconds until the base is there

    def healthy(self):
        return self.leak_rank is None

    def generator(self, *part):
        return random.Random("/".join(str(p) for p in (self.name, self.seed) + part))


class Rank:
    def __init__(self, job, rank):
        self.job, self.rank = job, rank
        shared = job.generator("job")
        self.base = int(shared.uniform(4, 30) * GIB)
        self.step_ns = int(shared.uniform(1.2, 2.4) * 1e9)
        self.end_ns = job.steps * self.step_ns
        if job.cut:
            self.end_ns -= int(shared.uniform(0.1, 0.9) * self.step_ns)
        own = self.own = job.generator("rank", rank)
        self.base = int(self.base * own.uniform(0.98, 1.02))
        self.skew_ns = int(own.uniform(-job.skew_s, job.skew_s) * 1e9)
        self.lag_ns = int(own.uniform(0, 0.04) * 1e9)   # ranks are never quite together
        self.strength = own.uniform(0.96, 1.04)

    def swing_at(self, part):
        """Share of the step's activations that are held at this part (0 to 1) of the step."""
        if part < 0.15:
            return 0.0
        if part < 0.5:
            return (part - 0.15) / 0.35
        if part < 0.85:
            return (0.85 - part) / 0.35
        return 0.0

    def leaked(self, step, part):
        job = self.job
        if self.rank != job.leak_rank or step < job.leak_step:
            return 0.0
        first, last = {"forward": (0.15, 0.5), "backward": (0.3, 0.5), "input": (0.0, 0.14)}[
            job.leak_at]
        done = min(max((part - first) / (last - first), 0.0), 1.0)
        return (step - job.leak_step + done) * job.leak_share

    def used_at(self, time_ns):
        job = self.job
        step, part = divmod(max(time_ns - self.lag_ns, 0), self.step_ns)
        part /= self.step_ns
        held = 1.0 + job.warm_up * self.strength * min(step + part, 2.0) / 2.0
        if time_ns < job.start_s * 1e9:
            held *= 0.5 + time_ns / (job.start_s * 2e9)
        swing = job.swing
        if job.batch_step is not None and step >= job.batch_step:
            swing *= 1.0 + job.batch_growth
            held += job.batch_growth * 0.5
        held += swing * self.strength * self.swing_at(part) + self.leaked(step, part)
        return int(self.base * held) // 4096 * 4096

    def times(self):
        interval_ns = self.job.interval_ns
        time = self.own.randrange(interval_ns)
        while time < self.end_ns:
            yield time
            time += interval_ns + int(self.own.gauss(0, 0.04) * interval_ns)

    def lines(self):
        before = None
        for time in self.times():
            used = min(self.used_at(time), DEVICE_BYTES)
            allocated = used * 9 // 10
            reserved = used * 19 // 20
            change = 0 if before is None else allocated - before
            before = allocated
            yield json.dumps({
                "schema_version": 3, "session_id": "%s-r%d" % (self.job.name, self.rank),
                "timestamp_ns": START_NS + self.skew_ns + time, "event_type": "sample",
                "collector": "stormlog.cuda_tracker",
                "sampling_interval_ms": self.job.interval_ns // 1_000_000, "pid": 4000 + self.rank,
                "host": "node%d" % (self.rank // 8), "job_id": self.job.name, "rank": self.rank,
                "local_rank": self.rank % 8, "world_size": self.job.ranks,
                "device_id": self.rank % 8, "allocator_allocated_bytes": allocated,
                "allocator_reserved_bytes": reserved, "allocator_active_bytes": None,
                "allocator_inactive_bytes": None, "allocator_change_bytes": change,
                "device_used_bytes": used, "device_free_bytes": DEVICE_BYTES - used,
                "device_total_bytes": DEVICE_BYTES, "context": None, "metadata": {},
            }, separators=(",", ":"))


def write_job(job, folder):
    for rank in range(job.ranks):
        with open(os.path.join(folder, "rank-%03d.jsonl" % rank), "w", encoding="utf-8") as file:
            for line in Rank(job, rank).lines():
                file.write(line + "\n")


def healthy_jobs():
    for i, ranks in enumerate([2, 3, 4, 5, 8, 16]):
        for j, swing in enumerate([0.12, 0.25, 0.4, 0.6]):
            yield Job("swing-%d-%d" % (ranks, int(swing * 100)), 10 * i + j, ranks, swing=swing,
                      skew_s=[0.0, 0.5, 2.0][(i + j) % 3])
    for i, share in enumerate([0.15, 0.4, 1.0]):
        yield Job("warm-up-%d" % int(share * 100), 200 + i, 4, swing=0.2, warm_up=share)
        yield Job("warm-up-quiet-%d" % int(share * 100), 210 + i, 8, swing=0.02, warm_up=share)
    for i, growth in enumerate([0.2, 0.5, 1.0]):
        yield Job("batch-%d" % int(growth * 100), 220 + i, 4, swing=0.3, batch_step=6,
                  batch_growth=growth)
        yield Job("batch-wide-%d" % int(growth * 100), 230 + i, 12, swing=0.15, batch_step=5,
                  batch_growth=growth, warm_up=0.2)
    for i, start_s in enumerate([8, 12, 16, 20]):       # few samples while all ranks come up
        for j, ranks in enumerate([8, 32]):
            yield Job("start-%d-%d" % (start_s, ranks), 260 + 10 * i + j, ranks, steps=120,
                      swing=0.02, skew_s=0.0, interval_ns=100 * INTERVAL_NS, start_s=start_s)
    for i in range(8):
        yield Job("cut-%d" % i, 240 + i, [2, 4, 6, 8][i % 4], swing=[0.2, 0.45][i // 4], cut=True)


def leaky_jobs():
    places = ["backward", "forward", "input"]
    for i, share in enumerate([0.25, 0.4, 0.8]):
        for j, step in enumerate([2, 4, 9]):
            yield Job("leak-%d-step-%d" % (int(share * 100), step), 300 + 10 * i + j, 4,
                      steps=step + 3, swing=0.2, leak_rank=(i + 2 * j) % 4, leak_step=step,
                      leak_share=share, leak_at=places[(i + j) % 3])
    for rank in range(4):
        yield Job("leak-rank-%d" % rank, 340 + rank, 4, steps=8, swing=0.2, leak_rank=rank,
                  leak_step=4, leak_share=0.3, leak_at="backward")
    for i, at in enumerate(places):
        yield Job("leak-warm-up-" + at, 350 + i, 4, steps=10, swing=0.2, warm_up=0.05,
                  leak_rank=1 + i, leak_step=6, leak_share=0.35, leak_at=at)


def main(arguments):
    jobs = {job.seed: job for job in list(healthy_jobs()) + list(leaky_jobs())}
    if len(arguments) != 2 or not arguments[0].isdigit() or int(arguments[0]) not in jobs:
        print(__doc__ + "\nSeeds: " + ", ".join("%d (%s)" % (s, j.name) for s, j in jobs.items()),
              file=sys.stderr)
        return 64
    os.makedirs(arguments[1], exist_ok=True)
    write_job(jobs[int(arguments[0])], arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

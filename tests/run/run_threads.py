#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads that decode change no byte: the same answers with one thread, two and seven.

    run_threads.py BINARY

Files of some megabytes: training logs; telemetry of several ranks with lines that are broken,
blank, too long, of other kinds and in other key orders between, tracebacks of several lines,
compressed and not, with and without a newline at the end. Then a folder of many files: some that
each bring names of their own, of every length up to several blocks, empty ones, what is not known,
broken archives, logs that wait for the others, Flight Recorder dumps in JSON and as pickles, whole
and broken, and one that is too long.
"""
import gzip
import json
import os
import pickle
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

THREADS = (1, 2, 7)
START_NS = 1_800_000_000_000_000_000
TRACEBACK = ("[rank%d]: Traceback (most recent call last):\n"
             "[rank%d]:   File \"/app/train.py\", line 12, in step\n"
             "[rank%d]:     loss.backward()\n"
             "[rank%d]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
XID = "[%d.123456] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"


def sample(random_, rank, step, host):
    used = 1_000_000_000 + rank * 1000 + (step * 40_000_000 if rank == 5 and step > 400 else 0)
    record = {
        "schema_version": 3, "timestamp_ns": START_NS + step * 100_000_000 + rank * 1000,
        "event_type": "sample", "collector": "stormlog.cuda_tracker",
        "sampling_interval_ms": 100, "pid": 100 + rank, "host": host, "device_id": rank % 8,
        "allocator_allocated_bytes": used, "allocator_reserved_bytes": used + 1000,
        "allocator_active_bytes": None, "allocator_inactive_bytes": None,
        "allocator_change_bytes": 0, "device_used_bytes": used + 5000,
        "device_free_bytes": None, "device_total_bytes": 80_000_000_000, "context": "step é",
        "job_id": "train-%d" % (rank % 2), "rank": rank, "local_rank": rank % 8,
        "world_size": 8, "session_id": "s-%d-%d" % (rank, step // 500),
        "metadata": {"step": step}}
    if random_.random() < 0.01:
        items = list(record.items())
        random_.shuffle(items)
        record = dict(items)
    return json.dumps(record) + ("\r\n" if random_.random() < 0.05 else "\n")


def text(seed, steps, newline):
    random_ = random.Random(seed)
    lines = []
    for step in range(steps):
        for rank in range(8):
            lines.append(sample(random_, rank, step, "node-%d" % (rank // 4)))
        chance = random_.random()
        if chance < 0.02:
            lines.append("{\"schema_version\": 3, \"torn\n")
        elif chance < 0.04:
            lines.append("   \n\n")
        elif chance < 0.05:
            lines.append("x" * random_.choice((10, 70_000, 300_000)) + "\n")
        elif chance < 0.06:
            lines.append(TRACEBACK % ((step % 8,) * 4))
        elif chance < 0.065:
            lines.append(XID % step)
        elif chance < 0.08:
            lines.append(json.dumps({"schema_version": 3, "rank": -7}) + "\n")
    whole = "".join(lines)
    return whole if newline else whole.rstrip("\r\n")


def ordinary(seed, megabytes):
    """A training log: hardly a line is of interest, at any distance from the ends of blocks."""
    random_, lines, size = random.Random(seed), [], 0
    clock = 0
    while size < megabytes * 1_000_000:
        clock += random_.random() < 0.1
        at = "2027-01-15 %02d:%02d:%02d" % (8 + clock // 3600, clock // 60 % 60, clock % 60)
        chance = random_.random()
        if chance < 0.0004:
            line = TRACEBACK % ((clock % 8,) * 4)
        elif chance < 0.0006:
            line = "%s srun: error: node-%d: task %d: Killed\n" % (at, clock % 4, clock % 8)
        elif chance < 0.0008:
            line = XID % clock
        elif chance < 0.001:
            line = "\x1b[31mfailed\x1b[0m " + "x" * random_.choice((10, 9000, 70_000)) + "\r\n"
        elif chance < 0.0012:
            line = "3: exitcode: 1\n\n  \n{\"a\": %d}\n" % clock
        elif chance < 0.2:
            line = "no time in line %d of the log of seed %d\n" % (len(lines), seed)
        else:
            line = "[rank%d]: %s INFO step %d loss %.4f\n" % (clock % 8, at, len(lines),
                                                            random_.random())
        lines.append(line)
        size += len(line)
    return "".join(lines).rstrip("\n") if seed % 2 else "".join(lines)


def entry(rank, sequence):
    return {"record_id": sequence, "pg_id": 0, "process_group": ["0", "default_pg"],
            "collective_seq_id": sequence, "op_id": sequence, "profiling_name": "nccl:all_reduce",
            "time_created_ns": START_NS + sequence * 1_000_000 + rank,
            "input_sizes": [[1024, 8]], "input_dtypes": ["Float"], "output_sizes": [[1024, 8]],
            "output_dtypes": ["Float"], "timeout_ms": 600000, "is_p2p": False, "retired": False,
            "state": "completed" if rank != 3 or sequence < 40 else "scheduled",
            "frames": [{"name": "step", "filename": "train \u00e9.py", "line": 7}]}


def dump(rank, entries):
    return {"version": "2.5", "pg_config": {"0": {
        "name": "0", "desc": "default_pg", "ranks": str(list(range(8)))}},
        "entries": [entry(rank, i + 1) for i in range(entries)]}


def put(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def many(folder):
    """Files of which most are short; what they are named decides the order in which they count."""
    for i in range(160):
        random_ = random.Random(i)
        host = "node-%d" % (i // 8)
        lines = [sample(random_, i % 8, step, host + (".b" if i % 9 == 0 and step > 3 else ""))
                 .replace("s-%d-" % (i % 8), "s-%d-" % i) for step in range(i % 23 * 7)]
        data = "".join(lines).encode()
        if i % 5 == 1:
            data = data.rstrip(b"\r\n")
        if i % 7 == 2:
            data = data[:-40]
        if i % 11 == 3:
            data = b"\n  \n{\"schema_version\": 3, \"rank\": -7}\n" + data
        if i % 13 == 4:
            data += ("".join(TRACEBACK % ((i % 8,) * 4)) + XID % i).encode() + data[:3000]
        name = "%s/rank_%03d.jsonl" % (host, i)
        if i % 6 == 5:
            data, name = gzip.compress(data, 1), name + ".gz"
            if i % 12 == 11:
                data = data[:-9]
        put(folder, name, data)
    for i, size in enumerate((1, 2, 4, 6, 7)):  # MB, about the lengths at which ways part
        put(folder, "node-2/long_%d.jsonl" % i, text(40 + i, size * 185, i % 2 == 0).encode())
    put(folder, "node-3/a.json", b"[1, 2")
    put(folder, "node-3/b.json", b"")
    put(folder, "node-3/c.jsonl", b"\n\n \n")
    put(folder, "node-3/d.jsonl", bytes(random.Random(7).randbytes(100_000)))
    put(folder, "node-4/one_line.jsonl", b"x" * 3_000_000)
    for rank in range(8):
        data = json.dumps(dump(rank, 60 + rank * 300)).encode()
        if rank == 6:
            data = data[:-2]
        name = "node-%d/comm_lib_trace_rank_%d.json" % (rank // 4, rank)
        put(folder, name if rank != 2 else name + ".gz", data if rank != 2 else gzip.compress(data))
    for rank in range(8):
        data = pickle.dumps(dump(rank, 50 + rank * 300), 2)
        put(folder, "pickles/node-%d/comm_lib_trace_rank_%d" % (rank // 4, rank),
            data[:-2] if rank == 5 else data)
    put(folder, "node-1/kern.log", b"".join((XID % i).encode() for i in range(400)))
    put(folder, "node-1/train.log", "".join(TRACEBACK % ((i % 8,) * 4) for i in range(300)).encode())


def outputs(binary, folder, threads, *inputs):
    """What each form of the answer says, the closing words, and the figures of the inputs."""
    answers = []
    for form in ("text", "summary", "timeline", "verdicts"):
        done = run(binary, "analyze", "--set", "service.threads=%d" % threads, "--output", form,
                   "--stats", "stats.json", *inputs, folder=folder)
        with open(os.path.join(folder, "stats.json"), "rb") as file:
            answers.append((form, done.code, done.out, done.err, file.read()))
    return answers


def main(binary):
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        plain = text(1, 1500, True).encode()
        with open(os.path.join(folder, "plain.jsonl"), "wb") as file:
            file.write(plain)
        with open(os.path.join(folder, "open.jsonl"), "wb") as file:
            file.write(text(2, 1200, False).encode())
        with open(os.path.join(folder, "packed.jsonl.gz"), "wb") as file:
            file.write(gzip.compress(text(3, 1000, True).encode(), 1))
        with open(os.path.join(folder, "random.jsonl.gz"), "wb") as file:
            file.write(gzip.compress(plain, 0)[:-3000])  # large, and it breaks off
        for inputs in (["plain.jsonl"], ["open.jsonl"], ["packed.jsonl.gz"], ["random.jsonl.gz"],
                       ["plain.jsonl", "open.jsonl", "packed.jsonl.gz"]):
            one = outputs(binary, folder, 1, *inputs)
            checks.check(all(code == 0 for _, code, _, _, _ in one),
                         "%s: %r" % (inputs, one[0][3][-300:]))
            checks.check(len(one[2][2]) > 10_000, "%s: the timeline is short" % inputs)
            for threads in THREADS[1:]:
                for alone, together in zip(one, outputs(binary, folder, threads, *inputs)):
                    checks.equal(together, alone, "%s, %s with %d threads"
                                 % (inputs, alone[0], threads))
        many(os.path.join(folder, "many"))
        put(folder, "train.log", ordinary(7, 2).encode())
        for i, size in enumerate((0.2, 0.5, 1.2)):  # likewise
            put(folder, "logs/log_%d.log" % i, ordinary(i, size).encode())
        for inputs in (["train.log"], ["logs"], ["many"], ["many/**/*"],
                       ["many/**/*", "--set", "receivers.file.node=node-1"],
                       ["many/node-0", "many/node-1", "--set",
                        "receivers.file.max_document_size=400KiB"]):
            one = outputs(binary, folder, 1, *inputs)
            checks.check(all(code == 0 for _, code, _, _, _ in one),
                         "%s: %r" % (inputs, one[0][3][-300:]))
            checks.check(max(len(out) for _, _, out, _, _ in one) > 1000,
                         "%s: the answers are short" % inputs)
            for threads in THREADS[1:]:
                for alone, together in zip(one, outputs(binary, folder, threads, *inputs)):
                    checks.equal(together, alone, "%s, %s with %d threads"
                                 % (inputs, alone[0], threads))
        done = run(binary, "analyze", "--set", "service.threads=65", "plain.jsonl", folder=folder)
        checks.check(done.code != 0 and "service.threads" in done.errors(), done.errors())
        done = run(binary, "analyze", "--set", "service.threads=0", "-q", "-", folder=folder,
                   data=plain)
        checks.check(done.code == 0 and done.out, done.errors())
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

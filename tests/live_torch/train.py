# SPDX-License-Identifier: Apache-2.0
"""A small data-parallel training on CPUs with gloo, one rank of which may go wrong.

torchrun starts it; record.py says by options what is to happen, to whom, and in which step. Real
are the processes, their collectives and how they end; only how long computing, input and a
checkpoint take is set (--compute-ms, …), because the ranks share few cores.
"""
import argparse
import contextlib
import ctypes
import json
import logging
import os
import resource
import signal
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch._C import _distributed_c10d
from torch.distributed.elastic.multiprocessing.errors import record

RANK = int(os.environ["RANK"])
LOCAL_RANK = int(os.environ["LOCAL_RANK"])
WORLD_SIZE = int(os.environ["WORLD_SIZE"])
MIB = 1 << 20
WIDTH, WORDS, LENGTH, BATCH = 64, 512, 32, 16
log = logging.getLogger("train")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True, help="folder of this node, as it is collected")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--until", help="go on until this file is there, at most --steps")
    parser.add_argument("--timeout-s", type=float, default=5, help="of collectives")
    parser.add_argument("--dump-after-s", type=float, default=0,
                        help="dump when a step lasts longer; 0: never")
    parser.add_argument("--record", action="store_true", help="write error files, as @record does")
    parser.add_argument("--telemetry", help="folder for stormlog's telemetry")
    parser.add_argument("--sync", choices=("ddp", "reduce"), default="ddp",
                        help="average gradients in the backward pass, or in a phase of its own")
    parser.add_argument("--data-ms", type=float, default=5)
    parser.add_argument("--compute-ms", type=float, default=40)
    parser.add_argument("--checkpoint-ms", type=float, default=0)
    parser.add_argument("--checkpoint-every", type=int, default=0)
    parser.add_argument("--fault", default="", help="see broken() and milliseconds()")
    parser.add_argument("--fault-rank", type=int, default=-1, help="-1: every rank")
    parser.add_argument("--fault-step", type=int, default=5)
    parser.add_argument("--slow-ms", type=float, default=0, help="how much longer it takes")
    parser.add_argument("--leak-mib", type=int, default=32, help="in a layer")
    parser.add_argument("--cgroup", help="cgroup.procs of the memory limit that the rank is put in")
    return parser.parse_args()


args = arguments()
held = []


def is_mine(step):
    return args.fault_rank in (-1, RANK) and step >= args.fault_step


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.middle = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(),
                                    nn.Linear(2 * WIDTH, WIDTH))
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        hidden = self.words(tokens)
        return self.out(hidden + self.middle(hidden))


class NoTelemetry:
    def phase(self, name, metadata=None):
        return contextlib.nullcontext()

    def stop_tracking(self):
        pass


def telemetry():
    if not args.telemetry:
        return NoTelemetry()
    from stormlog import CPUMemoryTracker
    from stormlog.telemetry_sink import TelemetrySinkConfig
    sink = TelemetrySinkConfig(root_dir=os.path.join(args.telemetry, "rank%d" % RANK))
    tracker = CPUMemoryTracker(sampling_interval=0.1, telemetry_sink_config=sink)
    tracker.start_tracking()
    return tracker


def broken(step):
    """What goes wrong in the forward pass of one rank."""
    fault = args.fault
    if not is_mine(step):
        return
    if fault == "exception":
        raise ValueError("loss is nan at step %d (learning rate 0.001)" % step)
    if fault == "os_exit":
        os._exit(3)
    if fault == "segfault":
        ctypes.string_at(0)
    if fault in ("sigkill", "sigstop"):
        os.kill(os.getpid(), signal.SIGKILL if fault == "sigkill" else signal.SIGSTOP)
    if fault == "sleep":
        time.sleep(3600)
    if fault == "memory_limit":  # what a batch system sets with ulimit -v
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 256 * MIB,) * 2)
        torch.ones(1 << 30)
    if fault == "host_oom":  # until the kernel ends it
        with open(args.cgroup, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        while True:
            held.append(b"x" * (16 * MIB))
            time.sleep(0.05)


def milliseconds(phase, usual, step):
    """How long a phase takes: --fault slow_PHASE makes it longer."""
    return usual + (args.slow_ms if args.fault == "slow_" + phase and is_mine(step) else 0)


def work(phase, usual, step):
    time.sleep(milliseconds(phase, usual, step) / 1000)


def leak(step):
    """What a forgotten reference does: in each of four steps tensors of four layers stay alive."""
    if args.fault == "leak" and is_mine(step) and step < args.fault_step + 4:
        for _ in range(4):
            held.append(torch.ones(args.leak_mib * MIB // 4))
            time.sleep(0.1)


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= WORLD_SIZE


def save_checkpoint(model, step):
    work("checkpoint", args.checkpoint_ms, step)
    torch.save(model.state_dict(), os.path.join(args.out, "..", "checkpoint-%d.pt" % RANK))


def is_over(step):
    """All ranks agree: one that ends alone would look like a fault."""
    if args.until is None:
        return False
    asked = torch.tensor([float(os.path.exists(args.until))])
    dist.all_reduce(asked, op=dist.ReduceOp.MAX)
    return bool(asked.item())


def train_step(model, optimizer, tracker, step):
    started = time.perf_counter()
    with tracker.phase("data"):
        work("input", args.data_ms, step)
        tokens = torch.randint(0, WORDS, (BATCH, LENGTH))
        wanted = (tokens * 7 + 3) % WORDS
    with tracker.phase("forward"):
        broken(step)
        work("compute", args.compute_ms, step)
        loss = nn.functional.cross_entropy(model(tokens).reshape(-1, WORDS), wanted.reshape(-1))
    with tracker.phase("backward"):
        leak(step)
        loss.backward()
    if args.sync == "reduce":
        with tracker.phase("all_reduce"):
            average_gradients(model)
    with tracker.phase("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
    if args.checkpoint_every and step % args.checkpoint_every == args.checkpoint_every - 1:
        with tracker.phase("checkpoint"):
            save_checkpoint(model, step)
    log.info("step %d loss %.4f step_ms %.1f", step, float(loss.detach()),
             (time.perf_counter() - started) * 1e3)


def train():
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout_s))
    log.info("rank %d of %d on %s, pid %d", RANK, WORLD_SIZE, os.uname().nodename, os.getpid())
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Net()) if args.sync == "ddp" else Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dist.barrier()
    tracker = telemetry()
    watchdog = Watchdog()
    if args.dump_after_s > 0:
        watchdog.start()
    try:
        for step in range(args.steps):
            if is_over(step):
                break
            with tracker.phase("step", metadata={"step": step}):
                train_step(model, optimizer, tracker, step)
            watchdog.last_step = time.monotonic()
    finally:
        tracker.stop_tracking()
    dist.barrier()
    dist.destroy_process_group()
    log.info("training finished")


class Watchdog(threading.Thread):
    """Dumps what the Flight Recorder holds when no step has ended for a while, as the watchdog of
    NCCL does; gloo has none. After the timeout would be too late: an operation that failed is
    marked as over."""

    def __init__(self):
        super().__init__(daemon=True)
        self.last_step = time.monotonic()

    def run(self):
        while time.monotonic() - self.last_step < args.dump_after_s:
            time.sleep(0.1)
        os.makedirs(os.path.dirname(os.environ["TORCH_FR_DUMP_TEMP_FILE"]), exist_ok=True)
        _distributed_c10d._dump_fr_trace_file(RANK, includeStackTraces=True, backend="gloo")


def write_rank_map():
    line = {"source": "rank_map", "observed_time_ns": time.time_ns(),
            "host.name": os.uname().nodename, "rank": RANK, "local_rank": LOCAL_RANK,
            "process.pid": os.getpid()}
    with open(os.path.join(args.out, "rank_map.jsonl"), "ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO,
                        format="%%(asctime)s %%(levelname)s [rank %d] %%(message)s" % RANK)
    torch.set_num_threads(1)
    write_rank_map()
    (record(train) if args.record else train)()

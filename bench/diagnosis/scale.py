# SPDX-License-Identifier: Apache-2.0
"""Healthy hours of a large job, written as a collector leaves them.

An Hour is a Case without an incident. What is written often (memory of ranks, samples of GPUs,
counters of network cards, logs of ranks) goes straight to files, one rank or GPU at a time; all
else are facts as in any case. decoys.py says what happens in a hard hour. The same seed gives the
same bytes.
"""
import bisect
import os
import random

import background
import decoys
import sources
from case import Case, DEVICE_BYTES, Fact, GIB
from cluster import MINUTE, Rank, SECOND
from hang import Program, Recorder

MEMORY_NS = 10 * SECOND
SCRAPE_NS = 30 * SECOND
PORTS_NS = 60 * SECOND
STEP_NS = 12 * SECOND
CHATTER = 8             # times the kernel lines of a small case
OTHER_PODS = 150
COUNTERS = ("link_downed", "symbol_error", "port_rcv_errors", "link_error_recovery",
            "local_link_integrity_errors")


class Life:
    """One start of the job: its ranks, with the processes that they are."""

    def __init__(self, number, start, end, ranks):
        self.number, self.start, self.end = number, start, end
        self.ranks = [Rank(rank.number, rank.local, rank.gpu, rank.pid + 100_000 * number)
                      for rank in ranks]


class Pause:
    """All ranks stop training for a while: to evaluate, or to write a checkpoint."""

    def __init__(self, kind, first, last):
        self.kind, self.first, self.last = kind, first, last


class Hour(Case):
    def __init__(self, hard, number, seed, size, minutes=60):
        super().__init__("hard" if hard else "plain", number, seed, size, minutes * MINUTE)
        cluster = self.cluster
        cluster.has_rank_map = cluster.has_kubernetes = cluster.has_telemetry = True
        self.dcgm_fields = "full"
        self.lives = [Life(0, self.start, self.end, cluster.ranks)]
        self.pauses = []            # in order
        self.joins = {}             # rank: when it came
        self.clock_steps = {}       # node: (when, by how much)
        self.gaps = {}              # (source, node or number of a rank): [(first, last)]
        self.rotations = {}         # node: when its logs were rotated
        self.remarks = []           # (time, rank number, line of its log)
        self.port_errors = {}       # (GPU, counter): [when]
        self.true_verdicts = []     # (pattern, kind) of what did happen, and was no fault

    def pause_at(self, time):
        i = bisect.bisect_right(self.pauses, time, key=lambda pause: pause.first) - 1
        return self.pauses[i] if i >= 0 and time < self.pauses[i].last else None

    def life_at(self, time):
        return next((life for life in self.lives if life.start <= time < life.end), None)

    def told(self, source, of, time):
        return not any(first <= time < last for first, last in self.gaps.get((source, of), ()))

    def clock(self, node, time):
        since, step = self.clock_steps.get(node, (self.end, 0))
        return time + step if time >= since else time


class HourStyle(sources.Style):
    def stamp(self, fact):
        return self.case.clock(fact.node, fact.time)


def make(hard, number, seed, size=(125, 8), minutes=60):
    hour = Hour(hard, number, seed, size, minutes)
    if hard:
        for decoy in decoys.DECOYS:
            decoy(hour)
    else:
        dump_on_demand(hour, hour.between(0.2, 0.8))
    hour.pauses.sort(key=lambda pause: pause.first)
    dice = random.Random(hour.key + "/background")
    for life in hour.lives:
        for rank in life.ranks:
            hour.add(max(life.start, hour.joins.get(rank.number, 0)) + dice.randrange(3 * SECOND),
                     "rank_map", rank.node, rank, False)
    for _ in range(CHATTER):
        background.add_kernel_noise(hour, dice)
    background.add_link_noise(hour, dice)
    background.add_kubernetes(hour, dice)
    for _ in range(OTHER_PODS):
        background.add_other_pod(hour, dice)
    hour.facts.sort(key=lambda fact: fact.time)
    return hour


def dump_on_demand(hour, at, oldest_s=2.0, absent=()):
    """Somebody asks all ranks for a dump: each shows operations that began just before."""
    dice, life = hour.dice, hour.life_at(at)
    program = Program(hour, dice.choice(["flat", "mesh"]), dice.randrange(300, 90_000))
    first_record = dice.randrange(2000, 90_000)
    for rank in life.ranks:
        recorder = Recorder(program.groups_of(rank), 600)
        calls = program.calls[rank.number]
        began = at - int(oldest_s * SECOND)
        for step in (2, 1):
            for i, (group, operation) in enumerate(calls):
                number = group.next - step * sum(group is other for other, _ in calls)
                created = began - step * 2 * SECOND + i * SECOND // 4
                recorder.add(group, number, operation, created, "completed", created + SECOND // 8)
        if rank.number not in absent:
            group, operation = calls[0]
            recorder.add(group, group.next, operation,
                         began + int(dice.uniform(0, 0.3) * SECOND), "started")
        hour.add(at + dice.randrange(1, 900) * 1_000_000, "dump_line", rank.node,
                 (rank, recorder.dump(first_record)), False)


# -- What is written often ------------------------------------------------------------------------

def memory_lines(hour, rank):
    """(time, line) of the tracker of one rank."""
    dice = random.Random("%s/memory/%d" % (hour.key, rank.number))
    cluster = hour.cluster
    base = int((20 + 12 * random.Random(hour.key + "/base").random()) * GIB)
    own, effects = int(base * dice.uniform(0.985, 1.015)), hour.memory_effects.get(rank.number, [])
    for life in hour.lives:
        begin = max(life.start, hour.joins.get(rank.number, 0))
        time = begin + dice.randrange(MEMORY_NS)
        who = (MEMORY_NS // 1_000_000, life.ranks[rank.number].pid, rank.node.name, cluster.job,
               rank.number, rank.local, len(cluster.ranks), rank.local)
        before = None
        while time < life.end:
            used = own + int(base * dice.uniform(-0.004, 0.004))
            if time - begin < 40 * SECOND:
                used -= base * (40 * SECOND - time + begin) // (80 * SECOND)
            pause = hour.pause_at(time)
            if pause is not None and pause.kind == "evaluation":
                used -= base // 6
            elif pause is not None and rank.number == 0:
                used += 4 * GIB
            for since, more in effects:
                if time >= since:
                    used += more(time - since)
            used = min(used, DEVICE_BYTES - GIB) // 4096 * 4096
            if hour.told("telemetry", rank.number, time):
                yield time, sources.TELEMETRY % (
                    (cluster.job, rank.number, hour.clock(rank.node, time)) + who + (
                        used * 9 // 10, used * 19 // 20, (used - (before or used)) * 9 // 10, used,
                        DEVICE_BYTES - used, DEVICE_BYTES))
            before = used
            time += MEMORY_NS + int(dice.gauss(0, 0.01) * MEMORY_NS)


def scrape_lines(hour, style, gpu, rank):
    """(time, line) of what the exporter says of one GPU."""
    dice = random.Random("%s/scrapes/%s" % (hour.key, gpu.name))
    old = background.start_fields(hour, dice)
    old["DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"] = 0
    warmth = dice.randrange(56, 68)
    effects = hour.gpu_effects.get(gpu, [])
    time = hour.start + random.Random(hour.key + gpu.node.name).randrange(SCRAPE_NS)
    while time < hour.end:
        fields, pause = dict(old), hour.pause_at(time)
        life = hour.life_at(time)
        busy = life is not None and time >= hour.joins.get(rank.number, 0)
        load = 0 if not busy else {None: 1.0, "evaluation": 0.45, "checkpoint": 0.02}[
            pause and pause.kind]
        heat = 38 + int((warmth - 38) * load) + dice.randrange(4)
        fields.update(
            DCGM_FI_DEV_GPU_TEMP=heat, DCGM_FI_DEV_MEMORY_TEMP=heat + 11,
            DCGM_FI_DEV_SM_CLOCK=dice.choice([1965, 1965, 1980, 1950]) if load > 0.1 else 345,
            DCGM_FI_DEV_POWER_USAGE=75 + int(dice.randrange(500, 610) * load),
            DCGM_FI_DEV_GPU_UTIL=int(dice.randrange(85, 101) * load),
            DCGM_FI_DEV_CLOCKS_EVENT_REASONS=dice.choice([0, 4, 4]) if load > 0.1 else 1,
            DCGM_FI_DEV_PCIE_LINK_GEN=5 if load > 0.1 else 1)
        for since, change in effects:
            if time >= since:
                change(fields, time)
        fields["DCGM_FI_DEV_GPU_TEMP_LIMIT"] = 87 - fields["DCGM_FI_DEV_GPU_TEMP"]
        if hour.told("dcgm", gpu.node, time):
            yield time, sources.write_dcgm(style, Fact(time, "dcgm", gpu.node, (gpu, fields), False))[1]
        time += SCRAPE_NS


def port_lines(hour, style, gpu):
    dice = random.Random("%s/ports/%s" % (hour.key, gpu.name))
    old = {name: dice.choice([0, 0, 0, 1, 3]) for name in COUNTERS}
    time = hour.start + random.Random(hour.key + "/ports" + gpu.node.name).randrange(PORTS_NS)
    while time < hour.end:
        counters = {name: value + sum(when <= time for when in hour.port_errors.get((gpu, name),
                                                                                    ()))
                    for name, value in old.items()}
        yield time, sources.write_ib(style, Fact(time, "ib", gpu.node, (gpu, {
            "state": "4: ACTIVE", "phys_state": "5: LinkUp", "counters": counters}), False))[1]
        time += PORTS_NS


def log_lines(hour, rank):
    """(time, line) of the log that the program itself writes."""
    dice = random.Random("%s/log/%d" % (hour.key, rank.number))
    remarks = [(time, text) for time, number, text in hour.remarks if number == rank.number]
    step = 4000
    for life in hour.lives:
        time = max(life.start, hour.joins.get(rank.number, 0)) + 8 * SECOND
        yield time, log_line(hour, rank, time, "INFO trainer: starting from step %d" % step)
        while time < life.end:
            pause = hour.pause_at(time)
            if pause is None:
                step += 3
                text = "INFO trainer: step %d loss %.4f grad_norm %.3f tokens/s %d" % (
                    step, 1.9 + dice.uniform(-0.02, 0.02), dice.uniform(0.2, 0.5),
                    41_000 + dice.randrange(900))
            else:
                text = "INFO trainer: %s, step %d" % (pause.kind, step)
            yield time, log_line(hour, rank, time, text)
            time += STEP_NS + dice.randrange(SECOND)
    for time, text in remarks:
        yield time, log_line(hour, rank, time, text)


def log_line(hour, rank, time, text):
    ns = hour.clock(rank.node, time)
    return "%s,%03d %s" % (sources.rfc3339(ns, 0, "").replace("T", " "),
                           ns % SECOND // 1_000_000, text)


# -- Files ----------------------------------------------------------------------------------------

def write(hour, folder):
    """(bytes, lines) that were written below the folder."""
    style, cluster = HourStyle(hour), hour.cluster
    lines, documents = sources.write(hour, style)
    assert not documents
    texts = {}
    for line in lines:
        texts.setdefault(line.path, []).append((line.time, line.text))
    total = sum_up(save(hour, folder, path, texts[path]) for path in sorted(texts))
    for rank in cluster.ranks:
        place = rank.node.name
        total = sum_up([total,
                        save(hour, folder, "%s/telemetry/rank-%04d.jsonl" % (place, rank.number),
                             list(memory_lines(hour, rank))),
                        save(hour, folder, "%s/logs/rank_%d.log" % (place, rank.number),
                             in_order(log_lines(hour, rank)))])
    for node in cluster.nodes:
        scrapes, ports = [], []
        for gpu, rank in zip(node.gpus, node.ranks):
            scrapes += scrape_lines(hour, style, gpu, rank)
            ports += port_lines(hour, style, gpu)
        total = sum_up([total, save(hour, folder, node.name + "/dcgm.jsonl", in_order(scrapes)),
                        save(hour, folder, node.name + "/ib_counters.jsonl", in_order(ports))])
    return total


def in_order(lines):
    return sorted(lines, key=lambda line: line[0])


def sum_up(counts):
    parts = list(counts)
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


def save(hour, folder, path, lines):
    """One file, or two where the logs of its node were rotated."""
    node = path.partition("/")[0]
    when = next((when for other, when in hour.rotations.items() if other.name == node), None)
    parts = [(path, lines)] if when is None else [
        (path + ".1", [line for line in lines if line[0] < when]),
        (path, [line for line in lines if line[0] >= when])]
    written = 0
    for name, part in parts:
        whole = os.path.join(folder, name)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        data = "".join(text + "\n" for _, text in part).encode("utf-8")
        with open(whole, "wb") as file:
            file.write(data)
        written += len(data)
    return written, len(lines)

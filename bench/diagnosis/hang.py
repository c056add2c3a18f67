# SPDX-License-Identifier: Apache-2.0
"""A collective that hangs, as the Flight Recorders of the ranks show it.

A recorder's dump is built as PyTorch's plain data; sources.py writes it as JSON or pickle. Facts
from torch/csrc/distributed/c10d/FlightRecorder.hpp.
"""
import math

from cluster import MINUTE, SECOND

TIMEOUTS_S = [600, 300, 180, 120]
OPERATIONS = [("all_reduce", [[4096, 4096]], [[4096, 4096]]),
              ("all_reduce", [[8192]], [[8192]]),
              # Of these the side that is split among the group is as many times larger.
              ("reduce_scatter_tensor_coalesced", [[8192]], [[8192]]),
              ("all_gather_into_tensor_coalesced", [[8192]], [[8192]])]


def sizes_in(operation, members):
    """(sizes of what goes in, of what comes out) in a group of so many."""
    name, inputs, outputs = operation
    if name.startswith("reduce_scatter"):
        inputs = [[members * size[0]] for size in inputs]
    elif name.startswith("all_gather"):
        outputs = [[members * size[0]] for size in outputs]
    return inputs, outputs


class Group:
    def __init__(self, name, description, ranks, first):
        self.name, self.description = str(name), description
        self.ranks = [rank.number for rank in ranks]
        self.next = first


class Recorder:
    """The operations of one rank."""

    def __init__(self, groups, timeout_s):
        self.groups, self.timeout_ms = groups, timeout_s * 1000
        self.entries = []
        self.status = {group.name: [0, 0, 0] for group in groups}

    def add(self, group, number, operation, created, state, ended=None):
        name, (inputs, outputs) = operation[0], sizes_in(operation, len(group.ranks))
        started = None if state == "scheduled" else created + 120_000
        self.entries.append({
            "record_id": 0, "pg_id": self.groups.index(group),
            "process_group": [group.name, group.description],
            "thread_name": "pt_main_thread", "thread_id": "139700000000000",
            "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number,
            "profiling_name": "nccl:" + name, "time_created_ns": created,
            "input_sizes": inputs, "input_dtypes": ["BFloat16"],
            "output_sizes": outputs, "output_dtypes": ["BFloat16"],
            "state": state, "time_discovered_started_ns": started,
            "time_discovered_completed_ns": ended, "retired": ended is not None,
            "timeout_ms": self.timeout_ms, "is_p2p": False})
        status = self.status[group.name]
        status[0] = number
        if state != "scheduled":
            status[1] = number
        if ended is not None:
            status[2] = number

    def dump(self, first_record):
        self.entries.sort(key=lambda entry: entry["time_created_ns"])
        for i, entry in enumerate(self.entries):
            entry["record_id"] = first_record + i
        return {
            "version": "2.10", "comm_lib_version": "2.27.5",
            "pg_config": {group.name: {"name": group.name, "desc": group.description,
                                       "ranks": str(group.ranks)} for group in self.groups},
            "pg_status": {str(i): dict(zip(("last_enqueued_collective", "last_started_collective",
                                            "last_completed_collective"), self.status[group.name]))
                          for i, group in enumerate(self.groups)},
            "entries": self.entries}


class Program:
    """What the ranks of a job call in one step: a list of (group, operation) a rank."""

    def __init__(self, case, shape, first):
        nodes, ranks = case.cluster.nodes, case.cluster.ranks
        locals_of = range(len(nodes[0].ranks))
        self.calls = {rank.number: [] for rank in ranks}
        if shape == "flat":
            self.call([Group(0, "default_pg", ranks, first)], range(3))
            return
        tensor = [Group(1 + node.number, "mesh_tp", node.ranks, first * 4) for node in nodes]
        self.call(tensor, range(2))
        # "cube": stages of a pipeline are the halves of the nodes; data is split among the rest.
        stages = 2 if shape == "cube" and len(nodes) % 2 == 0 else 1
        width = len(nodes) // stages
        if stages == 2:
            self.call([Group(201 + i * len(locals_of) + local, "mesh_pp",
                             [nodes[i].ranks[local], nodes[i + width].ranks[local]], first * 2)
                       for i in range(width) for local in locals_of], [1])
        self.call(tensor, [2])
        if width > 1:
            self.call([Group(101 + stage * len(locals_of) + local, "mesh_dp",
                             [node.ranks[local] for node in nodes[stage * width:][:width]], first)
                       for stage in range(stages) for local in locals_of], [1])
        if shape == "cube":
            self.call([Group(0, "default_pg", ranks, first // 2)], [0])

    def call(self, groups, operations):
        for group in groups:
            for number in group.ranks:
                self.calls[number] += [(group, OPERATIONS[i]) for i in operations]

    def groups_of(self, rank):
        return list(dict.fromkeys(group for group, _ in self.calls[rank.number]))


class Hang:
    """All ranks of a case from `at` on, when some no longer come to what the others call.

    Each rank calls its program, and an operation ends when all of its group have called it, so
    that one who stops holds up its groups, these others, and so on.
    """

    def __init__(self, case, at, shape):
        self.case, self.at, self.shape, self.dice = case, at, shape, case.dice
        left_s = (case.end - at) // SECOND - 40
        fitting = [seconds for seconds in TIMEOUTS_S if seconds < left_s]
        self.timeout_s = self.dice.choice(fitting) if fitting else 90
        self.step_ns = int(self.dice.uniform(0.8, 3.0) * SECOND)
        self.program = Program(case, shape, self.dice.randrange(300, 90_000))
        self.dumped_at = at + self.timeout_s * SECOND + int(self.dice.uniform(0, 4) * SECOND)
        self.first_record = self.dice.randrange(2000, 90_000)

    def history(self, recorder, rank, steps=5):
        """What went well before. The number of each group's next operation."""
        calls = self.program.calls[rank.number]
        a_step = {group: sum(group is other for other, _ in calls)
                  for group in self.program.groups_of(rank)}
        numbers = {group: group.next - steps * count for group, count in a_step.items()}
        for step in range(steps, 0, -1):
            begin = self.at - step * self.step_ns + int(self.dice.uniform(0, 0.05) * self.step_ns)
            for i, (group, operation) in enumerate(calls):
                created = begin + (i + 1) * self.step_ns // (len(calls) + 4)
                recorder.add(group, numbers[group], operation, created, "completed",
                             created + self.step_ns // 32)
                numbers[group] += 1
        return numbers

    def play(self, stops, stalled):
        """What each rank called since: (group, number, operation, created, ended or None).

        `stops`: how many calls a rank that stops comes to; `stalled`: the group whose next
        operation nobody comes out of.
        """
        ranks = self.case.cluster.ranks
        done = {rank.number: [] for rank in ranks}
        clock = {rank.number: self.at + int(self.dice.uniform(0, 0.3) * self.step_ns)
                 for rank in ranks}
        position = dict.fromkeys(done, 0)
        called = {}         # (group, number): {rank: when}
        counts = {}         # (rank, group): operations called
        waiting = {}        # rank: (group, number, operation, created)
        moved = True
        while moved:
            moved = False
            for rank in ranks:
                who = rank.number
                calls = self.program.calls[who]
                if who in waiting or position[who] >= stops.get(who, 2 * len(calls)):
                    continue
                group, operation = calls[position[who] % len(calls)]
                number = group.next + counts.get((who, group), 0)
                counts[who, group] = counts.get((who, group), 0) + 1
                waiting[who] = (group, number, operation, clock[who])
                called.setdefault((group, number), {})[who] = clock[who]
                position[who] += 1
                moved = True
                if len(called[group, number]) < len(group.ranks) or group is stalled:
                    continue
                end = max(called[group, number].values()) + self.step_ns // 32
                for member in group.ranks:
                    done[member].append(waiting.pop(member) + (end,))
                    clock[member] = end + self.step_ns // 16
        for who, call in waiting.items():
            done[who].append(call + (None,))
        return done

    def write(self, culprits, odd=None, silent=(), stalled_on=None, told="dumps"):
        """Dumps, or lines of the watchdogs, of all ranks but `silent` ones.

        `odd`: an operation the culprits call instead. `stalled_on`: a node whose network nothing
        comes through any more.
        """
        case, stalled, stops = self.case, None, {}
        if odd or stalled_on:
            calls = self.program.calls[(stalled_on or case.cluster.nodes[0]).ranks[0].number]
            stalled = next(group for group, _ in calls if self.spans_nodes(group))
        elif culprits:
            last = len(self.program.calls[culprits[0].number])
            at = self.dice.randrange(last) if self.shape != "flat" else 0
            stops = {rank.number: at for rank in culprits}
        played = self.play(stops, stalled)
        for rank in case.cluster.ranks:
            recorder = Recorder(self.program.groups_of(rank), self.timeout_s)
            self.history(recorder, rank)
            for group, number, operation, created, ended in played[rank.number]:
                called = odd if odd and rank in culprits else operation
                recorder.add(group, number, called, created, "completed" if ended else "started",
                             ended)
                if not ended and self.shape == "flat" and self.dice.random() < 0.4:
                    recorder.add(group, number + 1, OPERATIONS[1], created + 900_000, "scheduled")
            written = self.dumped_at + int(self.dice.uniform(0, 2) * SECOND)
            if rank not in silent and told == "dumps":
                case.add(written, "dump", rank.node, (rank, recorder.dump(self.first_record)))
            elif rank not in silent:
                self.log(rank, recorder, written)
            case.end_rank(rank, written + int(self.dice.uniform(1, 15) * SECOND))

    def spans_nodes(self, group):
        return len({self.case.cluster.ranks[number].node for number in group.ranks}) > 1

    def log(self, rank, recorder, written):
        """What the watchdogs of a rank write: one of each group in which it waits; and the monitor
        of its first group, how far that is."""
        for entry in recorder.entries:
            if entry["state"] != "started":
                continue
            number = entry["collective_seq_id"]
            name = entry["process_group"][0]
            group = next(group for group in recorder.groups if group.name == name)
            place = group.ranks.index(rank.number)
            until = entry["time_created_ns"] + self.timeout_s * SECOND + 40_000_000
            operation = entry["profiling_name"].split(":")[1].replace("_", "").upper()
            elements = sum(math.prod(size) for size in entry["input_sizes"])
            self.case.add(until, "rank_log", rank.node, (rank, 683, (
                "[Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, "
                "OpType=%s, NumelIn=%d, NumelOut=%d, Timeout(ms)=%d) ran for %d milliseconds "
                "before timing out.") % (place, number, operation, elements, elements,
                                         self.timeout_s * 1000, self.timeout_s * 1000 + 40)))
            status = recorder.status[name]
            self.case.add(until + 200_000, "rank_log", rank.node, (rank, 2395, (
                "[PG ID %d PG GUID %s(%s) Rank %d]  failure detected by watchdog at work sequence "
                "id: %d PG status: last enqueued work: %d, last completed work: %d")
                % (recorder.groups.index(group), name, group.description, place, number,
                   status[0], status[2])))
        for group in recorder.groups:
            status = recorder.status[group.name]
            self.case.add(written, "rank_log", rank.node, (rank, 1750, (
                "[PG ID %d PG GUID %s(%s) Rank %d] Received a dump signal due to a collective "
                "timeout from  rank %d and we will try our best to dump the debug info. Last "
                "enqueued NCCL work: %d, last completed NCCL work: %d.This is most likely caused by "
                "incorrect usages of collectives") % (
                    recorder.groups.index(group), group.name, group.description,
                    group.ranks.index(rank.number), group.ranks[0], status[0], status[2])))


def dump_now_and_then(case):
    """Dumps of a job that is well, a few times: each shows an operation that just began."""
    shape = case.dice.choice(["flat", "mesh", "cube"])
    at = case.start + int(case.dice.uniform(20, 90) * SECOND)
    numbers = None
    while at < case.end - MINUTE:
        looks = Hang(case, at, shape)
        looks.program = numbers or looks.program
        numbers = looks.program
        for rank in case.cluster.ranks:
            recorder = Recorder(looks.program.groups_of(rank), looks.timeout_s)
            looks.history(recorder, rank)
            group, operation = looks.program.calls[rank.number][0]
            late = int(case.dice.uniform(0, 0.2) * looks.step_ns)
            recorder.add(group, group.next, operation, at + late, "started")
            case.add(at + late + case.dice.randrange(1, 200) * 1_000_000, "dump_line", rank.node,
                     (rank, recorder.dump(looks.first_record)), False)
        for group in {group for calls in looks.program.calls.values() for group, _ in calls}:
            group.next += 5000
        at += int(case.dice.uniform(200, 400) * SECOND)


def hang_moment(case, first=0.15, last=0.45):
    """A moment after which there is time for a timeout."""
    return min(case.between(first, last), case.end - 4 * MINUTE)

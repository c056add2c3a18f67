# SPDX-License-Identifier: Apache-2.0
"""A rank holds up the others, or a phase takes all of them longer: the class `slow`.

Telemetry of these jobs has the boundaries of phases: the ranks of a job wait for one another in each
step, in `backward` or in a phase of its own.
"""
import random

import incidents
from cluster import SECOND

MS = 1_000_000
STEPS = 56
TOLD_MAX = 12        # ranks that tell their phases
USUAL = {"data": 0.1, "forward": 0.3, "backward": 0.5, "all_reduce": 0.02, "optimizer": 0.08}


class Steps:
    """The steps of a job: what an incident changes of them, and when."""

    def __init__(self, case, jitter, count=STEPS):
        self.case, self.jitter, self.count = case, jitter, count
        self.dice = random.Random(case.key + "/steps")
        ranks = case.cluster.ranks
        self.ranks = sorted(self.dice.sample(ranks, min(TOLD_MAX, len(ranks))),
                            key=lambda rank: rank.number)
        self.has_wait = self.dice.random() < 0.5
        self.period = int(self.dice.uniform(2, 5) * SECOND)
        self.start = case.start + 20 * SECOND
        self.save_every = self.dice.choice([7, 8])
        self.saves = "all" if self.dice.random() < 0.5 else "one rank"
        self.factor = lambda step, rank, phase: 1.0
        case.cluster.has_telemetry = True

    @property
    def phases(self):
        names = ["data", "forward", "backward", "optimizer"]
        return names[:3] + ["all_reduce"] + names[3:] if self.has_wait else names

    def moment(self, step):
        return self.start + step * self.period

    def write(self):
        """Lines of all ranks, in step with one another."""
        case, dice = self.case, self.dice
        ranks = self.ranks
        clock = {rank: self.start + dice.randrange(5 * MS) for rank in ranks}
        self.sequence = dict.fromkeys(ranks, 0)
        wait = "all_reduce" if self.has_wait else "backward"
        for step in range(self.count):
            path = ["epoch", "step"]
            for rank in ranks:
                self.tell(clock[rank], rank, "enter", path)
            for phase in self.phases:
                end = {}
                for rank in ranks:
                    self.tell(clock[rank] + 10_000, rank, "enter", path + [phase])
                    end[rank] = clock[rank] + 20_000 + int(
                        self.period * USUAL[phase] * self.factor(step, rank, phase)
                        * dice.uniform(1 - self.jitter, 1 + self.jitter))
                if phase == wait:
                    end = dict.fromkeys(ranks, max(end.values()))
                for rank in ranks:
                    self.tell(end[rank], rank, "exit", path + [phase])
                    clock[rank] = end[rank] + 30_000
            for rank in ranks:
                self.tell(clock[rank], rank, "exit", path)
                clock[rank] += MS
                if step % self.save_every == 5 and (self.saves == "all" or rank is ranks[0]):
                    self.tell(clock[rank], rank, "enter", ["epoch", "checkpoint"])
                    clock[rank] += int(self.period * self.factor(step, rank, "checkpoint")
                                       * dice.uniform(0.9, 1.1))
                    self.tell(clock[rank], rank, "exit", ["epoch", "checkpoint"])
                    clock[rank] += MS

    def tell(self, time, rank, action, path):
        self.sequence[rank] += 1
        if time < self.case.rank_end.get(rank.number, self.case.end):
            self.case.add(time, "phase", rank.node, (rank, action, path, self.sequence[rank]))


def slow(case):
    """One rank computes, reads or saves longer than the others, or all of them read longer."""
    dice, steps = case.dice, Steps(case, case.dice.choice([0.02, 0.05, 0.1]))
    rank = dice.choice(steps.ranks)
    since = dice.randrange(14, 20)
    variant = dice.choice(["compute", "compute", "heat", "input", "checkpoint", "stall"])
    if variant == "compute" or variant == "heat":
        more = dice.uniform(1.4, 2)
        steps.factor = lambda step, who, phase: more if who is rank and step >= since and \
            phase in ("forward", "backward", "optimizer") else 1.0
        kind = "slow_compute"
    elif variant == "input":
        more = dice.uniform(4, 8)
        steps.factor = lambda step, who, phase: more if who is rank and step >= since and \
            phase == "data" else 1.0
        kind = "slow_input"
    elif variant == "checkpoint":
        more = dice.uniform(1.8, 3)
        steps.saves = "all"
        steps.factor = lambda step, who, phase: more if who is rank and phase == "checkpoint" \
            else 1.0
        kind = "slow_checkpoint"
    else:
        more = dice.uniform(3, 6)
        steps.factor = lambda step, who, phase: more if step >= since and phase == "data" else 1.0
        kind = "common_stall"
    steps.write()
    if variant == "heat":
        heat(case, rank, steps.moment(since))
        case.consequence("slow_rank", [["rank", str(rank.number)]])
    else:
        case.root("slow_rank", [kind], [] if kind == "common_stall"
                  else [["rank", str(rank.number)]])


def heat(case, rank, at):
    """The GPU of the rank is too hot, and its clocks are lower for it."""
    case.dcgm_fields = "full"
    case.cluster.has_rank_map = True
    incidents.heat(case, rank.gpu, at - 10 * SECOND, 0x48, case.dice.randrange(900, 1400), False)
    case.root("thermal_throttle", ["hw_thermal"], [["gpu", rank.gpu.name]])


def healthy_steps(case):
    """Nobody is slow: each step takes each rank up to 20 % more or less; in some jobs all compute
    longer from some step on, or one rank is slow for a few steps."""
    steps = Steps(case, case.dice.choice([0.05, 0.2, 0.2]))
    rank, since = case.dice.choice(steps.ranks), case.dice.randrange(14, 40)
    variant = case.dice.choice(["even", "longer sequences", "short spell"])
    if variant == "longer sequences":
        steps.factor = lambda step, who, phase: 1.8 if step >= since and phase in (
            "forward", "backward", "optimizer") else 1.0
    elif variant == "short spell":
        steps.factor = lambda step, who, phase: 1.5 if who is rank and phase == "forward" and \
            since <= step < since + 8 else 1.0
    steps.write()

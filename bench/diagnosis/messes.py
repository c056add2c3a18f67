# SPDX-License-Identifier: Apache-2.0
"""What happens to input on its way: one row a mess in MESSES.

A mess changes the style before anything is written (names, clocks, framing), the facts (one line
from the future), or the lines after. All dice of a mess come from the case, so that the same
case is met in each mess.
"""
import random

import sources
from case import Fact
from cluster import SECOND

ZONE_S = 2 * 3600
DAY_NS = 86_400 * SECOND


class Mess:
    """One way of messing; what it does not do it leaves alone."""
    options = ()        # of the run: see score.py

    def style(self, style, dice):
        pass

    def facts(self, facts, dice):
        pass

    def lines(self, lines, dice):
        return lines


class OneFile(Mess):
    """All kinds of lines in one file, in order of time."""

    def lines(self, lines, dice):
        for line in lines:
            line.path = "everything.jsonl"
        return lines


class Future(Mess):
    """One line of one source is dated a day ahead."""

    def facts(self, facts, dice):
        source = dice.choice(sorted({fact.source for fact in facts if not fact.telling
                                     and fact.source in ("kernel", "dcgm", "telemetry",
                                                         "kube_event")}))
        chosen = dice.choice([fact for fact in facts
                              if fact.source == source and not fact.telling])
        chosen.shift_ns = DAY_NS


class Folder(Mess):
    """The kernel log is dmesg -T in UTC: only its folder says of which node it is."""

    def style(self, style, dice):
        style.kernel_form = "dmesg"


class Zone(Mess):
    """The kernel log is dmesg -T in local time, two hours east of UTC, and nothing says so.

    In half of the cases the lines name their node.
    """

    def style(self, style, dice):
        style.kernel_form = dice.choice(["dmesg", "named_dmesg"])
        style.zone_s = ZONE_S


class ZoneWhole(Zone):
    """The same, and the kernel log is whole: it begins when the machine booted, days before."""

    def facts(self, facts, dice):
        nodes = sorted({fact.node for fact in facts if fact.source == "kernel"},
                       key=lambda node: node.name)
        first = min(fact.time for fact in facts)
        for node in nodes:
            for i in range(40):
                at = first - node.boot_seconds * SECOND * (40 - i) // 40
                facts.append(Fact(at, "kernel", node, (6, "systemd[1]: Started %d." % i), False))
        facts.sort(key=lambda fact: fact.time)


class ZoneTold(Zone):
    """The same, and the configuration says so."""
    options = ("timezone",)


class Fqdn(Mess):
    """One source writes names of nodes with their domain, the others without."""

    def style(self, style, dice):
        cluster = style.case.cluster
        there = {"rank_map": cluster.has_rank_map, "telemetry": cluster.has_telemetry,
                 "kubernetes": cluster.has_kubernetes}
        style.long_names = dice.choice([source for source in sources.NAMED_SOURCES
                                        if there.get(source, True)])


class Clocks(Mess):
    """The clock of each node is up to five seconds off."""

    def style(self, style, dice):
        for node in style.case.cluster.nodes + style.case.cluster.others:
            style.clock_ns[node] = int(dice.uniform(-5, 5) * SECOND)


class Lost(Mess):
    """5 % of all lines are lost."""

    def lines(self, lines, dice):
        return [line for line in lines if dice.random() >= 0.05]


class Doubled(Mess):
    """5 % of all lines come twice, the second time up to 200 lines later."""

    def lines(self, lines, dice):
        places = [(i + dice.choice([0, dice.randrange(200)]), line)
                  for i, line in enumerate(lines) if dice.random() < 0.05]
        return [line for _, line in sorted([*enumerate(lines), *places],
                                           key=lambda place: place[0])]


class Shuffled(Mess):
    """Lines of a file come in any order within five seconds."""

    def lines(self, lines, dice):
        return sorted(lines, key=lambda line: line.time + dice.randrange(5 * SECOND))


class Prefixes(Mess):
    """Lines of the kernel stand behind those of a container runtime or syslog, and end in CR LF."""

    def style(self, style, dice):
        style.kernel_form = dice.choice(sources.FRAMED)
        style.kernel_line_end = "\r\n"


MESSES = {
    "none": [], "one_file": [OneFile], "future": [Future], "folder": [Folder], "zone": [Zone],
    "zone_whole": [ZoneWhole], "zone_told": [ZoneTold], "fqdn": [Fqdn], "clocks": [Clocks], "lost": [Lost],
    "doubled": [Doubled], "shuffled": [Shuffled], "prefixes": [Prefixes],
    # All that input itself can tell; who collects must say the zone.
    "together": [Fqdn, Clocks, Prefixes, Future, Lost, Doubled, Shuffled, OneFile],
}
ORDINARY = [name for name in MESSES if name != "zone_told"]


def write(case, mess):
    """(lines, documents) of the case in this mess."""
    parts = [part() for part in MESSES[mess]]
    lines, documents = [], []
    for each in (case, *case.beside):
        style = sources.Style(each)
        for part in parts:
            dice = random.Random("%s/%s" % (each.key, type(part).__name__))
            part.style(style, dice)
            part.facts(each.facts, dice)
        of_job, whole = sources.write(each, style)
        lines += of_job
        documents += whole
    lines.sort(key=lambda line: line.time)
    for part in parts:
        lines = part.lines(lines, random.Random("%s/%s" % (case.key, type(part).__name__)))
    return lines, documents


def options(mess):
    return [option for part in MESSES[mess] for option in part.options]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The samples of this folder, judged as its README says.

    run_field.py FIELD_DUMP [CASE…]        all cases, or those whose folder's name begins so

Each case is read as it is; with the format named that its lines belong to; in reads of one byte and
of seven; with CR LF; and cut off at every line and at random places. Then all that can be mixed are
mixed into one stream, in several orders, and all are read as the files of one feed.

How our events are compared with expected.json:
- Events are sorted by the first of their lines; the words of both are the same, but for REASONS and
  RENAMED.
- A Pod or Node is also an event of kind "kubernetes", whatever its state. That a machine or a
  driver starts, stops or fails is a "node_state" or "node_fault". No case expects them, so
  they are left out, and a record that gave nothing else counts as `other`.
- An input that is one JSON document is not read in lines: its positions are those of items. There
  the order, kinds and facts are compared, and not the lines.
- UNJUDGED facts are no decoder's.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
from checks import Checks  # noqa: E402
from process import environment  # noqa: E402

OBSERVED = "2026-03-20T00:00:00Z"
CUTS, ORDERS, SEED = 40, 20, 14
BIG = 100000  # bytes; such an input is not read byte by byte

# Cases that do not pass yet; one that does must leave the list.
KNOWN_OPEN = ()

UNASKED = {"kubernetes", "node_state", "node_fault"}

# Our word for why a record was refused: that of expected.json.
REASONS = {"bad_json": "invalid_json"}
# A fact of expected.json that has two types is two facts of ours.
RENAMED = {("peer", int): "peer_rank"}
# `outlier`: what the lines around it say of a line's time. Judged with the clocks, not here.
UNJUDGED = {"line", "lines", "is", "kind", "why", "outlier", "time_unix_nano", "time_slack_nano"}
WITHOUT_CR = {"17", "29", "92"}
# UTF-16: the input as a whole is refused, and not cut into lines.
WITHOUT_LINES = {"92"}

KERNEL_KINDS = set("""xid gpu_off_bus gpu_uuid sxid aer oom_kill oom_reaped segfault trap soft_lockup
    hard_lockup hung_task kernel_oops kernel_panic machine_check memory_error io_error fs_error
    nfs_stall nic_health nic_command nic_power nic_module nic_link netdev_watchdog gpu_hang
    gpu_reset gpu_hardware_error""".split())
# The format that the lines of a case belong to, where its kinds do not tell.
FORMATS = {"33": "log", "36": "log", "39": "log", "45": "log", "48": "log",
           "82": "kubernetes", "83": "kubernetes", "84": "kubernetes", "85": "kubernetes",
           "86": "nvsentinel"}
# JSON of its own kind, or no format to be named.
UNNAMED = {"67", "68", "69", "70", "76", "77", "80", "81", "90", "92", "93"}

# Cases that cannot be mixed with others, beside those with options and whole documents.
UNMIXED = {
    "06": "a line's time counts on from the line before", "07": "as 06", "08": "as 06", "09": "as 06",
    "12": "the header of a part", "27": "a byte order mark stands at the front",
    "55": "lines that were broken in two", "58": "tracebacks that name no writer",
    "63": "a traceback breaks off: what its rank writes next would be taken for the rest",
    "74": "a message that goes on as long as lines have no prefix",
    "89": "a table's header", "92": "an encoding of its own", "93": "empty",
}
# Cases of which something stays together when they are mixed: the lines of each report, where they
# do not name their writer or name one that other cases have too; or all of it.
TOGETHER = {
    "30": "all: copies stand close to each other", "78": "all: a report with headings",
    "23": "no writer", "34": "the kernel of one host", "39": "as 34", "43": "as 34",
    "49": "no writer", "51": "no writer", "54": "no writer", "57": "ranks that others have",
    "59": "as 57", "61": "as 57", "62": "no writer", "64": "all: no writer",
    "71": "all: no writer",
}


def is_blank(line):
    return not line.strip(b" \t\r\v\f")


class Case:
    def __init__(self, folder):
        self.name = folder
        self.number = folder[:2]
        self.folder = os.path.join(HERE, folder)
        self.path = next(os.path.join(self.folder, name) for name in ("input.log", "input.json")
                         if os.path.exists(os.path.join(self.folder, name)))
        self.options = self.read_json("options.json", {})
        self.entries = self.read_json("expected.json", None)
        self.events = [entry for entry in self.entries if entry["is"] == "event"]
        self.refused = [entry for entry in self.entries if entry["is"] == "refused"]
        with open(self.path, "rb") as file:
            self.bytes = file.read()
        lines = self.bytes.split(b"\n")
        for event in self.events:
            # Empty lines are counted by themselves, also inside of a report.
            event["lines"] = [line for line in event.get("lines", [event["line"]])
                              if line > len(lines) or not is_blank(lines[line - 1])]
        self.is_document = (self.path.endswith(".json") and len(lines) > 2
                            and lines[0].strip() in (b"{", b"["))

    def read_json(self, name, otherwise):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return otherwise

    def arguments(self, form=None):
        options = self.options
        given = ["--observed", options.get("observed_time", OBSERVED)]
        form = form or options.get("format")
        for name, value in (("--format", form), ("--timezone", options.get("timezone")),
                            ("--boot", options.get("boot_time")), ("--node", options.get("node")),
                            ("--path", options.get("path")), ("--rank", options.get("rank")),
                            ("--world-size", options.get("world_size"))):
            if value is not None:
                given += [name, str(value)]
        return given

    def other_format(self):
        """The format to be named, or None."""
        if "format" in self.options or self.number in UNNAMED or not self.events:
            return None
        kinds = {event["kind"] for event in self.events}
        kernel = kinds & KERNEL_KINDS
        return FORMATS.get(self.number) or (
            "kernel_log" if kernel == kinds else "log" if kernel else "app_log")


# -- running ---------------------------------------------------------------------------------------

class Reading:
    """What came of one input."""

    def __init__(self):
        self.events, self.refused, self.notes, self.tally = [], [], [], None

    def sort(self):
        self.all_events = sorted(self.events, key=lambda event: event["line"])
        self.events = [event for event in self.all_events if event["kind"] not in UNASKED]


class Crash(Exception):
    pass


def dump(binary, arguments, *paths):
    done = subprocess.run([binary, *arguments, *paths], capture_output=True, timeout=300,
                          env=environment(), check=False)
    if done.returncode != 0:
        raise Crash("exit status %d: %s" % (done.returncode,
                                            done.stderr.decode("utf-8", "replace")[-600:].strip()))
    readings, reading = [], Reading()
    for line in done.stdout.splitlines():
        item = json.loads(line)
        if item["is"] == "tally":
            reading.tally = item
            reading.sort()
            readings.append(reading)
            reading = Reading()
        else:
            {"event": reading.events, "refused": reading.refused,
             "note": reading.notes}[item["is"]].append(item)
    return readings


# -- judging ---------------------------------------------------------------------------------------

def said(event, key, wanted):
    """What an event says of a fact; None: nothing."""
    got = event.get(RENAMED.get((key, type(wanted)), key))
    if isinstance(wanted, dict) and isinstance(got, str):
        got = json.loads(got)
        got = {name: got[name] for name in wanted if name in got}  # others are free
    return got


def same(got, wanted):
    return got == wanted and (isinstance(got, bool) == isinstance(wanted, bool))


def time_differs(event, wanted):
    time, due = event.get("time_unix_nano"), wanted["time_unix_nano"]
    if due is None or time is None:
        return None if time == due else "time_unix_nano is %r, not %r" % (time, due)
    if due <= time <= due + wanted.get("time_slack_nano", 0):
        return None
    return "time_unix_nano is %d, not %d (%+.6f s)" % (time, due, (time - due) / 1e9)


def event_differs(event, wanted, document):
    """Why an event is not the one that is wanted; None: it is."""
    if event["kind"] != wanted["kind"]:
        return "kind is %s, not %s" % (event["kind"], wanted["kind"])
    for key, value in wanted.items():
        if key not in UNJUDGED and not same(said(event, key, value), value):
            return "%s is %r, not %r" % (key, said(event, key, value), value)
    if not document and event["lines"] not in (len(wanted["lines"]), 0):
        return "made of %d lines, not %d" % (event["lines"], len(wanted["lines"]))
    return time_differs(event, wanted)


def count_differs(case, data, reading, cut=False):
    """Whether each line was counted once; None: it was. `cut`: the last one may have been dropped."""
    tally = reading.tally
    lines = data.split(b"\n")
    if lines[-1].strip(b"\0") == b"":  # zeros at the end are a hole that is not filled yet
        lines.pop()
    full = sum(not is_blank(line) for line in lines)
    total = tally["event_lines"] + tally["refused"] + tally["other"] + (cut and tally["torn"])
    if case.is_document or case.number in WITHOUT_LINES:
        return None
    if tally["unread"] and full:
        return None if cut else "not read: " + "; ".join(note["text"] for note in reading.notes)
    if total != full or tally["blank"] != len(lines) - full:
        return ("%d lines and %d blank ones are %d of events, %d refused, %d other, %d blank%s"
                % (full, len(lines) - full, tally["event_lines"], tally["refused"],
                   tally["other"], tally["blank"], ", the last one dropped" * tally["torn"]))
    return None


def other_differs(case, reading):
    """Whether what is expected of the lines without an event came about; None: it did."""
    if case.is_document or case.number in WITHOUT_LINES:
        return None
    wanted = {line for event in case.events for line in event["lines"]}
    shown = {event["line"] for event in reading.events}
    only_objects = {event["line"] for event in reading.all_events} - shown
    got = reading.tally["event_lines"] - len(only_objects)
    return None if got == len(wanted) else "events are made of %d lines, not %d" % (got, len(wanted))


def judge(case, reading, data):
    """What is wrong with a reading of the whole input: a list of sentences."""
    wrong = []
    got, wanted = reading.events, case.events
    for number in range(max(len(got), len(wanted))):
        if number >= len(got):
            wrong.append("line %d: no %s" % (wanted[number]["line"], wanted[number]["kind"]))
            continue
        if number >= len(wanted):
            wrong.append("line %d: a %s too many" % (got[number]["line"], got[number]["kind"]))
            continue
        if not case.is_document and got[number]["line"] != wanted[number]["line"]:
            wrong.append("a %s at line %d where a %s at line %d is expected" % (
                got[number]["kind"], got[number]["line"], wanted[number]["kind"],
                wanted[number]["line"]))
            break
        why = event_differs(got[number], wanted[number], case.is_document)
        if why:
            wrong.append("line %d, %s: %s" % (wanted[number]["line"], wanted[number]["kind"], why))
    got = sorted((0 if case.is_document else item["line"], reason(item))
                 for item in reading.refused)
    wanted = sorted((0 if case.is_document else item["line"], item["reason"])
                    for item in case.refused)
    if got != wanted:
        wrong.append("refused %s, not %s" % (got, wanted))
    wrong += [why for why in (count_differs(case, data, reading), other_differs(case, reading))
              if why]
    return wrong


def reason(item):
    return REASONS.get(item["reason"], item["reason"])


def is_part(got, wanted):
    """Whether a fact is the beginning of another: what was there of it."""
    return type(got) is type(wanted) and not isinstance(got, bool) and str(wanted).startswith(
        str(got))


def cut_differs(event, wanted):
    """Whether an event of a cut input says what the whole one does not; None: it does not."""
    for key, value in wanted.items():
        got = said(event, key, value)
        if key in UNJUDGED or got is None or same(got, value):
            continue
        if not (event.get("truncated") and is_part(got, value)):
            return "%s is %r, not %r" % (key, got, value)
    if event.get("time_unix_nano") is None or wanted["time_unix_nano"] is None:
        return None
    return time_differs(event, wanted)


def judge_cut(case, reading, data):
    """What is wrong with a reading of the first bytes: a list of sentences."""
    wrong = []
    for event in reading.events:
        wanted = [item for item in case.events if item["kind"] == event["kind"]
                  and (case.is_document or item["line"] == event["line"])]
        why = [cut_differs(event, item) for item in wanted]
        if wanted and all(why):
            wrong.append("line %d, %s: %s" % (event["line"], event["kind"], why[0]))
        elif not wanted and not event.get("truncated"):
            wrong.append("line %d: a %s that the whole input does not give"
                         % (event["line"], event["kind"]))
    why = count_differs(case, data, reading, True)
    return wrong + ([why] if why else [])


def cuts_of(case, chance):
    size = len(case.bytes)
    places = {at + 1 for at in range(size) if case.bytes[at:at + 1] == b"\n"}
    places |= {at - 1 for at in places}
    places |= {chance.randrange(size) for _ in range(CUTS if size else 0)} | {0}
    return sorted(at for at in places if at < size)


# -- the ways a case is read -----------------------------------------------------------------------

class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.chance = random.Random(SEED)

    def write(self, data):
        path = os.path.join(self.folder, "input")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def whole(self, case, arguments, path=None, data=None):
        reading, = dump(self.binary, arguments, path or case.path)
        return judge(case, reading, case.bytes if data is None else data)

    def chunks(self, case):
        for size in ((4097, 65535) if len(case.bytes) > BIG else (1, 7)):
            for why in self.whole(case, case.arguments() + ["--chunk", str(size)]):
                yield "in reads of %d: %s" % (size, why)

    def carriage_returns(self, case):
        if case.number in WITHOUT_CR or b"\r\n" in case.bytes:
            return
        data = case.bytes.replace(b"\n", b"\r\n")
        for why in self.whole(case, case.arguments(), self.write(data), data):
            yield "with CR LF: " + why

    def named(self, case):
        form = case.other_format()
        for why in self.whole(case, case.arguments(form)) if form else ():
            yield "as %s: %s" % (form, why)

    def cut(self, case):
        if not case.bytes:
            return
        cuts = cuts_of(case, random.Random(SEED))
        cut_list = ",".join(map(str, cuts))
        readings = dump(self.binary, case.arguments() + ["--cut", cut_list], case.path)
        for at, reading in zip(cuts, readings):
            for why in judge_cut(case, reading, case.bytes[:at]):
                yield "the first %d bytes: %s" % (at, why)

    def one(self, case):
        """What is wrong with a case, in all ways of reading it."""
        wrong = []
        for way in (lambda: self.whole(case, case.arguments()), lambda: self.named(case),
                    lambda: self.chunks(case), lambda: self.carriage_returns(case),
                    lambda: self.cut(case)):
            try:
                wrong += way()
            except Crash as crash:
                wrong.append(str(crash))
        return wrong


# -- all together ----------------------------------------------------------------------------------

def sum_of(readings):
    counts = {}
    for reading in readings:
        for item in reading.all_events + reading.refused:
            key = item["kind"] if item["is"] == "event" else "refused: " + reason(item)
            counts[key] = counts.get(key, 0) + 1
        for key in ("blank", "event_lines", "refused", "other"):
            counts[key] = counts.get(key, 0) + reading.tally[key]
    return counts


def differences(got, wanted):
    return ", ".join("%s: %d, not %d" % (key, got.get(key, 0), wanted.get(key, 0))
                     for key in sorted(set(got) | set(wanted))
                     if got.get(key, 0) != wanted.get(key, 0))


def units(case):
    """What of a case stays together, in order: lists of lines."""
    lines = [line + b"\n" for line in case.bytes.removesuffix(b"\n").split(b"\n")]
    if TOGETHER.get(case.number, "").startswith("all"):
        return [lines]
    bound = {}  # a line: the last line that stays with it
    for event in case.events if case.number in TOGETHER else ():
        bound[min(event["lines"])] = max(event["lines"])
    made, end = [], 0
    for number, line in enumerate(lines, 1):
        if number > end:
            made.append([])
        made[-1].append(line)
        end = max(end, bound.get(number, 0))
    return made


def mix(streams, chance):
    """Units of all, each stream's own in their order."""
    order = [index for index, stream in enumerate(streams) for _ in stream]
    chance.shuffle(order)
    places = [iter(stream) for stream in streams]
    return b"".join(line for index in order for line in next(places[index]))


def mixed(suite, cases, checks):
    cases = [case for case in cases if not case.options and not case.is_document
             and case.number not in UNMIXED]
    arguments = ["--observed", OBSERVED]
    apart = sum_of(dump(suite.binary, arguments, *(case.path for case in cases)))
    streams = [units(case) for case in cases]
    for order in range(ORDERS):
        data = mix(streams, suite.chance)
        together = sum_of(dump(suite.binary, arguments, suite.write(data)))
        why = differences(together, apart)
        checks.check(not why, "%d cases in one stream, order %d: %s" % (len(cases), order, why))


def as_one_folder(suite, cases, checks):
    """Files of one feed, one behind the other: what came before one makes no difference."""
    cases = [case for case in cases if not case.options]
    arguments = ["--observed", OBSERVED]
    apart = [dump(suite.binary, arguments, case.path)[0] for case in cases]
    together = dump(suite.binary, arguments, *(case.path for case in cases))
    for case, one, other in zip(cases, apart, together):
        checks.check(one.all_events == other.all_events and one.tally == other.tally
                     and one.refused == other.refused,
                     "%s: read behind others it gives other events" % case.name)


def judged(suite, case, checks, open_cases, shown):
    wrong = suite.one(case)
    if case.name in open_cases:
        checks.check(wrong, "%s is right now: it leaves KNOWN_OPEN" % case.name)
        return
    more = " (%d in all)" % len(wrong) if len(wrong) > shown else ""
    checks.check(not wrong, case.name + "".join("\n  " + why for why in wrong[:shown]) + more)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    binary, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    folders = sorted(name for name in os.listdir(HERE)
                     if os.path.exists(os.path.join(HERE, name, "expected.json")))
    chosen = [name for name in folders if not names or name.startswith(tuple(names))]
    checks = Checks()
    cases = [Case(name) for name in chosen]
    checks.check(cases, "no such case: %s" % " ".join(names))
    checks.check(set(KNOWN_OPEN) <= set(folders), "KNOWN_OPEN names a case that is not there")
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(binary, folder)
        # Asked for by name, a case shows what is wrong with it.
        for case in cases:
            judged(suite, case, checks, () if names else KNOWN_OPEN, 15 if names else 3)
        closed = [case for case in cases if case.name not in KNOWN_OPEN or names]
        as_one_folder(suite, closed, checks)
        if not names:
            mixed(suite, closed, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

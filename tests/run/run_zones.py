#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel logs whose times say no zone: read as local times only where other inputs prove it.

    run_zones.py BINARY

Each case is a folder with samples of GPUs (UTC) and `dmesg -T` of two nodes. Said once with the
value to set, the same again, and never against the option.
"""
import json
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

START = 1_794_985_200       # 2026-11-18 07:00:00 UTC
MINUTE, HOUR, DAY = 60, 3600, 86400
JOB = 30 * MINUTE
EVERY = 20                  # seconds between samples
ADDRESS = "0000:%02x:00"
SETTLED = re.compile(r"say no zone and are read as ([+-]\d\d:\d\d)")


def samples(node, changes=(), ends=None):
    """Of two GPUs; `changes` is [(time, GPU, Xid)], `ends` {GPU: time of the last sample}."""
    lines = []
    for at in range(START, START + JOB + 1, EVERY):
        for gpu in (0, 1):
            if at > (ends or {}).get(gpu, at):
                continue
            xid = 0
            for since, whose, code in changes:
                if whose == gpu and at >= since:
                    xid = code
            lines.append(json.dumps({
                "source": "dcgm", "timestamp_ns": at * 10**9, "Hostname": node, "gpu": str(gpu),
                "UUID": "GPU-%s-%d" % (node, gpu), "pci_bus_id": "0000" + ADDRESS % gpu + ".0",
                "fields": {"DCGM_FI_DEV_XID_ERRORS": xid, "DCGM_FI_DEV_GPU_TEMP": 60}}))
    return lines


def counters(node, rises):
    """AER's counters of one device; `rises` are the moments of corrected errors."""
    return [json.dumps({
        "source": "sysfs_aer", "timestamp_ns": at * 10**9, "k8s.node.name": node,
        "pci_bus_id": ADDRESS % 1 + ".0",
        "aer_dev_correctable": "TOTAL_ERR_COR %d\n" % sum(rise <= at for rise in rises),
        "aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 0\n", "aer_dev_fatal": "TOTAL_ERR_FATAL 0\n"})
        for at in range(START, START + JOB + 1, EVERY)]


def kernel(lines, ahead, node=None):
    """`lines` is [(true time, text)]."""
    name = "" if node is None else node + " kernel: "
    return ["[%s] %s%s" % (time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(at + ahead)), name, text)
            for at, text in sorted(lines)]


def xid(at, code, gpu=0):
    return (at, "NVRM: Xid (PCI:%s): %d, pid=7, name=python3, text" % (ADDRESS % gpu, code))


def corrected(at):
    return (at, "nvidia %s.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, "
            "(Receiver ID)" % (ADDRESS % 1))


BOOT = [(START - 20 * DAY + i * HOUR, "systemd[1]: Started unit %d." % i) for i in range(20)]
NOISE = [(START + 10 + i * 175, "systemd[1]: Reloaded unit %d." % i) for i in range(11)]
FAULT = START + 11 * MINUTE + 3
SECOND = START + 19 * MINUTE + 8


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def analyze(self, files, *options):
        with tempfile.TemporaryDirectory() as folder:
            for path, lines in files.items():
                whole = os.path.join(folder, path)
                os.makedirs(os.path.dirname(whole), exist_ok=True)
                with open(whole, "w", encoding="utf-8") as file:
                    file.write("".join(line + "\n" for line in lines))
            done = run(self.binary, "analyze", *options, "--output", "verdicts", folder)
            return done.text().replace(folder, ""), done.errors().replace(folder, "")

    def zone_of(self, files, *options):
        """What it was settled to; None: it was not."""
        _, said = self.analyze(files, *options)
        found = set(SETTLED.findall(said))
        self.checks.check(len(found) <= 1, "said once: " + said)
        return found.pop() if found else None

    def expect(self, what, files, zone, *options):
        self.checks.equal(self.zone_of(files, *options), zone, what)

    def of_pairs(self):
        def case(ahead, log, changes=((FAULT, 0, 119),), ends=None, node=None):
            return {"n1/dcgm.jsonl": samples("n1", changes, ends),
                    "n2/dcgm.jsonl": samples("n2"),
                    "n1/dmesg.log": kernel(BOOT + log, ahead, node),
                    "n2/dmesg.log": kernel(BOOT, ahead)}
        one = [xid(FAULT, 119)]
        two = one + [xid(SECOND, 31, 1)]
        changes = ((FAULT, 0, 119), (SECOND, 1, 31))
        for ahead, zone in ((2 * HOUR, "+02:00"), (-8 * HOUR, "-08:00"), (0, None)):
            self.expect("one pair, %d s" % ahead, case(ahead, one), zone)
        self.expect("a named node", case(2 * HOUR, one, node="n1"), "+02:00")
        self.expect("one pair is no proof of half an hour", case(HOUR // 2, one), None)
        self.expect("two pairs", case(11 * HOUR // 2, two, changes), "+05:30")
        self.expect("no multiple of a quarter", case(2 * HOUR + 7 * MINUTE, two, changes), None)
        self.expect("no zone is so far", case(15 * HOUR, two, changes), None)
        self.expect("another GPU", case(2 * HOUR, [xid(FAULT, 119, 1)]), None)
        self.expect("another Xid", case(2 * HOUR, [xid(FAULT, 31)]), None)
        self.expect("pairs that differ",
                    case(2 * HOUR, one + [xid(SECOND + HOUR, 31, 1)], changes), None)
        # The line is there a second time where it fits without any shift.
        self.expect("one that fits as it is",
                    case(0, one + [xid(FAULT + 2 * HOUR, 119)]), None)
        lost = [xid(FAULT, 79)]
        self.expect("samples that end", case(2 * HOUR, lost, (), {0: FAULT - 5}), "+02:00")
        self.expect("samples of all end", case(2 * HOUR, lost, (), {0: FAULT - 5, 1: FAULT - 5}),
                    None)
        errors = {"n1/dcgm.jsonl": samples("n1"), "n1/aer.jsonl": counters("n1", [FAULT, SECOND]),
                  "n1/dmesg.log": kernel(BOOT + [corrected(FAULT), corrected(SECOND)], 3 * HOUR)}
        self.expect("errors of a link", errors, "+03:00")

    def of_spans(self):
        def case(ahead, lines):
            return {"n1/dcgm.jsonl": samples("n1"), "n2/dcgm.jsonl": samples("n2"),
                    "n1/dmesg.log": kernel(lines, ahead), "n2/dmesg.log": kernel(lines, ahead)}
        self.expect("as long as the others", case(2 * HOUR, NOISE), "+02:00")
        self.expect("in UTC", case(0, NOISE), None)
        self.expect("since boot", case(2 * HOUR, BOOT + NOISE), None)
        self.expect("a short log", case(2 * HOUR, NOISE[:4]), None)
        self.expect("few lines", case(2 * HOUR, [NOISE[0], NOISE[-1]]), None)

    def of_others(self):
        files = {"n1/dcgm.jsonl": samples("n1", ((FAULT, 0, 48),)), "n2/dcgm.jsonl": samples("n2")}
        local = dict(files, **{"n1/dmesg.log": kernel(BOOT + [xid(FAULT, 48)], 2 * HOUR)})
        utc = dict(files, **{"n1/dmesg.log": kernel(BOOT + [xid(FAULT, 48)], 0)})
        for zone in ("UTC", "+02:00", "Europe/Berlin"):
            self.expect("the option %s" % zone, local, None, "--set", "receivers.file.timezone=" + zone)
        got, _ = self.analyze(local)
        again, _ = self.analyze(local)
        wanted, _ = self.analyze(utc)
        self.checks.check(wanted != "" and got == wanted, "the verdicts are those of UTC")
        self.checks.equal(again, got, "the same again")
        told, _ = self.analyze(local, "--set", "receivers.file.timezone=+02:00")
        self.checks.equal(told, wanted, "… and those of the zone that is told")
        # Times that say their zone are never touched.
        iso = [time.strftime("%Y-%m-%dT%H:%M:%S+00:00 n1 kernel: ", time.gmtime(at + 2 * HOUR)) + text
               for at, text in BOOT + [xid(FAULT, 48)]]
        self.expect("a log with a zone", dict(files, **{"n1/kern.log": iso}), None)

    def run(self):
        self.of_pairs()
        self.of_spans()
        self.of_others()
        return self.checks.finish()


if __name__ == "__main__":
    sys.exit(Suite(os.path.abspath(sys.argv[1])).run())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time that nobody wrote is told as such, everywhere.

    run_unknown_time.py BINARY

Files whose lines have no time, or only some of them: the verdict says whose time it has, and no view
shows when a file was written last as if it were when something happened. And one line of the kernel
that is dated hours ahead of all others is judged all the same.
"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

WRITTEN_NS = 1_790_000_000_123_456_789  # 2026-09-21 14:13:20 UTC
TRACEBACK = ("Traceback (most recent call last):\n"
             "  File \"train.py\", line 10, in <module>\n"
             "    main()\n"
             "ValueError: bad batch\n")
XID = "NVRM: Xid (PCI:0000:4e:00): 79, pid=4711, GPU has fallen off the bus."


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.utime(path, ns=(WRITTEN_NS, WRITTEN_NS))

    def analyze(self, name, form):
        return run(self.binary, "analyze", "--output", form, name, folder=self.folder)

    def shown(self, name, form):
        if form == "text":
            return self.analyze(name, "text").text()
        page = os.path.join(self.folder, "page.html")
        run(self.binary, "analyze", "--html", page, name, folder=self.folder)
        with open(page, encoding="utf-8") as file:
            return file.read()

    def verdicts(self, name):
        return [json.loads(line) for line in self.analyze(name, "verdicts").text().splitlines()]

    def check(self, name, time_of, start_ns, words):
        """The one verdict, and what text and page say of when it began."""
        verdicts = self.verdicts(name)
        self.checks.check(
            len(verdicts) == 1 and verdicts[0]["attributes"].get("culprit.time_of") == time_of
            and verdicts[0]["start_time_unix_nano"] == str(start_ns),
            lambda: "%s: %s" % (name, verdicts))
        self.checks.equal(verdicts[0]["completeness"], "partial", name)  # nobody is named
        for form in ("text", "html"):
            shown = " ".join(self.shown(name, form).split())
            self.checks.check(words in shown, lambda: "%s as %s: no %r in %s"
                              % (name, form, words, shown[:2000]))
            self.checks.check("14:13:20" not in shown, lambda: "%s as %s: the file's time" %
                              (name, form))

    def files(self):
        self.write("none.log", TRACEBACK)
        self.check("none.log", "file", WRITTEN_NS,
                   "time not known (file last written 2026-09-21 14:13 UTC)")
        dated = "2026-09-20 10:00:0%d,500 INFO step %d\n"
        self.write("between.log", dated % (5, 1) + TRACEBACK + dated % (6, 2))
        self.check("between.log", "line_before", 1_789_898_405_500_000_000,
                   "time not known (after 2026-09-20 10:00:05.500 UTC, the time of a line before it)")
        self.write("before.log", TRACEBACK + dated % (5, 1))
        self.check("before.log", "file", WRITTEN_NS,
                   "time not known (file last written 2026-09-21 14:13 UTC)")
        self.write("dated.log", dated % (5, 1) + "2026-09-20 10:00:06,500 ERROR failed\n" + TRACEBACK)
        self.check("dated.log", "line_before", 1_789_898_406_500_000_000,
                   "after 2026-09-20 10:00:06.500 UTC")

    def kernel(self):
        """Lines of the kernel without a time, in a file that is handed over whole."""
        for head in ("", "kernel: ", "[  +0.000316] ", "> kernel: "):
            self.write("kern.log", head + XID + "\n")
            # The number of the line keeps them in order.
            self.check("kern.log", "file", WRITTEN_NS + 1,
                       "time not known (file last written 2026-09-21 14:13 UTC)")

    def together(self):
        """Several faults without a time in one file: each is told, and says whose time it has."""
        self.write("faults.log", "\n".join((
            "Unable to determine the device handle for GPU 0000:4E:00.0: Unknown Error",
            "pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0",
            "pcieport 0000:00:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer",
            "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x22:0x56:894)",
            "EDAC MC1: 1 UE memory scrubbing error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0 (channel:1)",
            "Kernel panic - not syncing: Fatal exception", "")))
        verdicts = self.verdicts("faults.log")
        self.checks.check(len(verdicts) > 1 and all(
            verdict["attributes"].get("culprit.time_of") == "file" for verdict in verdicts),
            lambda: "faults.log: %s" % verdicts)

    def labels(self):
        """Dates stand behind "12: ", too, whether that is a rank or the number of a line."""
        self.write("labels.log", "".join(
            "%d: [2026-09-20 10:00:05] step 1\n" % rank for rank in (0, 1)) + TRACEBACK)
        self.check("labels.log", "line_before", 1_789_898_405_000_000_000,
                   "time not known (after 2026-09-20 10:00:05.000 UTC, the time of a line before it)")

    def far_ahead(self):
        """Telemetry of four ranks, and an Xid two hours behind its end."""
        for rank in range(4):
            self.write("job/rank%d.log" % rank, "".join(
                "2026-09-20 10:%02d:00,000 [rank%d]: INFO step %d\n" % (minute, rank, minute)
                for minute in range(10)))
        lines = ["2026-09-20T10:%02d:00.000000+00:00 node-a kernel: NVRM: Xid (PCI:0000:4e:00): 13, "
                 "pid=1, Graphics Exception" % minute for minute in (1, 2)]
        self.write("job/kern.log", "\n".join(
            [*lines, "2026-09-20T12:09:00.000000+00:00 node-a kernel: " + XID]) + "\n")
        for name in ("rank0", "rank1", "rank2"):
            self.write("job/%s/kern.log" % name, "".join(
                "2026-09-20T10:%02d:00.000000+00:00 %s kernel: NVRM: Xid (PCI:0000:1b:00): 13, pid=1, "
                "Graphics Exception\n" % (minute, name) for minute in (1, 2, 3)))
        done = self.analyze("job", "verdicts")
        lost = [verdict for verdict in map(json.loads, done.text().splitlines())
                if verdict["pattern"] == "gpu_fault" and verdict["kind"] == "gpu_lost"]
        self.checks.check(len(lost) == 1, lambda: "%s %s" % (done.text(), done.errors()))
        self.checks.check("judged as of that time" in self.analyze("job", "text").errors() +
                          self.analyze("job", "text").text(), lambda: done.errors())


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(binary, os.path.realpath(folder))
        suite.files()
        suite.kernel()
        suite.together()
        suite.labels()
        suite.far_ahead()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

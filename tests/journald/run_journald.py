#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The journald receiver in a whole culprit, over real journal files.

    run_journald.py BINARY [KILLS]

systemd-journal-remote writes the files; culprit reads them once, follows them live, and is killed
again and again while they grow: every fault is told, each once. Files are rotated and taken away,
and one is damaged.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "run"))
sys.path.insert(0, os.path.join(HERE, "..", "kmsg"))
import journal_files  # noqa: E402
import run_kmsg  # noqa: E402
from checks import Checks  # noqa: E402
from run_kmsg import by_gpu, xid  # noqa: E402
from running import PATIENCE_S  # noqa: E402

KILLS = 20
SEED = 17


class Run(run_kmsg.Run):
    """culprit over a directory of journal files, with a store."""

    def __init__(self, binary, folder, **options):
        self.journals = os.path.join(folder, "journal")
        self.options = options
        self.file = None
        os.makedirs(self.journals)
        super().__init__(binary, folder)
        self.device.close()
        config = json.loads(self.bytes_of(self.config))
        config["service"]["pipelines"]["all"]["receivers"] = ["journald"]
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def receivers(self):
        return {"journald": {"directory": self.journals, "start_at": "beginning",
                             **self.options}}

    def open(self, name):
        self.file = journal_files.JournalWriter(os.path.join(self.journals, name + ".journal"))

    def close(self, checks, what):
        checks.equal(self.file.close(), None, what + ": systemd-journal-remote")

    def write_all(self, kills=0):
        for number in range(run_kmsg.XIDS):
            while self.kills < kills * number // run_kmsg.XIDS:
                time.sleep(0.002)
            if number == run_kmsg.XIDS // 2:  # a rotation
                self.file.close()
                self.open("two")
            self.file.write("something else", fields={"_TRANSPORT": "stdout"})
            self.file.write(xid(number))

    def end(self, checks, what):
        checks.equal(self.stop(), 0, what + ": exit code: " + self.log_text()[-1500:])
        checks.check("Sanitizer" not in self.log_text(), what + ": the sanitizer complains")

    def told(self, count):
        return lambda: len(by_gpu(self.uids())) == count


def killed(binary, kills, checks):
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="culprit-journald-") as folder:
        run = Run(binary, folder)
        run.open("one")
        run.start()
        run.kill_at_random(kills, chance)
        run.wait_until("all faults are told after %d kills" % kills, run.told(run_kmsg.XIDS),
                       checks)
        run.end(checks, "killed")
        run.close(checks, "killed")
        checks.equal(set(by_gpu(run.uids()).values()), {1}, "each fault once")
        checks.check("C9201" not in run.log_text(), "no entry was missed")


def run_once(run):
    return subprocess.run([run.binary, "run", "--once", "--config", run.config],
                          capture_output=True, timeout=PATIENCE_S, check=False)


def once(binary, checks):
    with tempfile.TemporaryDirectory(prefix="culprit-journald-") as folder:
        run = Run(binary, folder, units=["x.service"], matches=["SYSLOG_IDENTIFIER=slurmd"])
        done = run_once(run)
        checks.check(done.returncode != 0 and b"no journal that may be read" in done.stderr,
                     "once: no journal: " + done.stderr.decode()[-500:])
        run.open("one")
        run.write_all()
        for unit, program in (("x.service", "x"), ("y.service", "y"), ("z.service", "slurmd")):
            run.file.write("told by " + program,
                           fields={"_TRANSPORT": "stdout", "_SYSTEMD_UNIT": unit,
                                   "SYSLOG_IDENTIFIER": program})
        run.close(checks, "once")
        done = run_once(run)
        checks.equal(done.returncode, 0, "once: exit code: " + done.stderr.decode()[-500:])
        checks.equal(len(by_gpu(run.uids())), run_kmsg.XIDS, "once: all that is there")


def rotated(binary, checks):
    """What it was to go on behind is gone; a damaged file does not hold up the others."""
    with tempfile.TemporaryDirectory(prefix="culprit-journald-") as folder:
        run = Run(binary, folder)
        run.open("one")
        run.file.write(xid(0))
        run.start()
        run.wait_until("the first fault", run.told(1), checks)
        checks.equal(run.stop(), 0, "rotated: exit code")
        run.close(checks, "rotated")
        os.unlink(run.file.path)
        run.open("two")
        run.file.write(xid(1))
        run.close(checks, "rotated")
        run.start()
        run.wait_until("what came after", run.told(2), checks)
        checks.equal(run.log_text().count("C9201"), 1, "the gap is told once")
        # Garbage in the middle of one file, and a file that is no journal.
        with open(run.file.path, "r+b") as file:
            size = os.path.getsize(run.file.path)
            file.seek(size // 100)
            file.write(b"\xff" * 4096)
        with open(os.path.join(run.journals, "three.journal"), "wb") as file:
            file.write(b"LPKSHHRH" + bytes(5000))
        run.open("four")
        run.file.write(xid(2))
        run.wait_until("another file goes on", run.told(3), checks)
        run.close(checks, "rotated")
        run.end(checks, "rotated")


def missing(binary, checks):
    """No journal at first."""
    with tempfile.TemporaryDirectory(prefix="culprit-journald-") as folder:
        run = Run(binary, folder)
        run.start()
        run.wait_until("the missing journal is told", lambda: "C1006" in run.log_text(), checks)
        run.open("one")
        run.file.write(xid(0))
        run.wait_until("the first fault", run.told(1), checks)
        run.wait_until("that it works is told", lambda: "C1007" in run.log_text(), checks)
        run.close(checks, "missing")
        run.end(checks, "missing")


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    checks = Checks()
    reason = journal_files.unavailable()
    if reason:
        checks.check(not os.environ.get("CI"), "journals must be tested in CI: " + reason)
        checks.skip("no journal can be written: " + reason)
        return checks.finish()
    once(binary, checks)
    missing(binary, checks)
    rotated(binary, checks)
    killed(binary, kills, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

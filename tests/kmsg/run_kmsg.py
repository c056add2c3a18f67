#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kmsg receiver in a whole culprit.

    run_kmsg.py BINARY [KILLS]

Reads a stand-in for the device (tests/support/kmsg_device.py) once and live; is killed again and
again while the kernel writes: every fault is told, each once, with one time, also those that were
told already and are read again. The device is taken
away and comes back, and it overruns. Where this machine lets its own /dev/kmsg be read, a program
that crashes is found in it.
"""
import ctypes
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "run"))
import run_crash  # noqa: E402
from checks import Checks  # noqa: E402
from kmsg_device import KmsgDevice  # noqa: E402
from own_metrics import metric_sum  # noqa: E402
from running import PATIENCE_S, documents, wait_for  # noqa: E402

KILLS = 25
SLACK_NS = 60 * 10**9
XIDS = 30  # a verdict lists up to 32
SEED = 16


def xid(number):
    return ("NVRM: Xid (PCI:%04x:%02x:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen "
            "off the bus." % (number // 200, number % 200 + 1))


class Run(run_crash.Run):
    """culprit over a stand-in, with a store."""

    def __init__(self, binary, folder, keep=100000):
        self.device = KmsgDevice(os.path.join(folder, "kmsg"), keep)
        super().__init__(binary, folder)
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        config["exporters"] = {"json": {"path": self.output}}
        config["service"]["pipelines"] = {"all": {
            "receivers": ["kmsg"], "preset": "all", "exporters": ["json"],
            "evaluate_every": "1s", "allowed_lateness": "1s", "idle_timeout": "1s",
            "settle": "1s"}}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def receivers(self):
        return {"kmsg": {"path": self.device.path, "node": "n7"}}

    def write_all(self, kills=0):
        for number in range(XIDS):
            while self.kills < kills * number // XIDS:
                time.sleep(0.002)
            self.device.write("systemd[1]: something else", priority=30)
            self.device.write(xid(number))

    def accepted(self):
        return metric_sum(self.port, "culprit_receiver_accepted_events_total") or 0

    def uids(self):
        """Ids of the evidence of the verdicts so far."""
        found = set()
        for verdict in documents(self.output):
            for evidence in verdict["evidence_trail"]:
                found.add(evidence["uid"])
        return found

    def wait_until(self, what, done, checks):
        checks.check(wait_for(done, self.process),
                     lambda: what + ": " + self.log_text()[-1500:])

    def end(self, checks, what):
        checks.equal(self.stop(), 0, what + ": exit code: " + self.log_text()[-1500:])
        checks.check("Sanitizer" not in self.log_text(), what + ": the sanitizer complains")
        self.device.close()


def by_gpu(uids):
    """How many ids each GPU has."""
    counts = {}
    for uid in uids:
        match = re.fullmatch(r"xid:n7:([0-9a-f:]+):79:\d+", uid)
        if match:
            counts[match.group(1)] = counts.get(match.group(1), 0) + 1
    return counts


def killed(binary, kills, checks):
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="culprit-kmsg-") as folder:
        run = Run(binary, folder)
        run.start()
        run.kill_at_random(kills, chance)
        run.wait_until("all faults are told after %d kills" % kills,
                       lambda: len(by_gpu(run.uids())) == XIDS, checks)
        run.end(checks, "killed")
        checks.equal(set(by_gpu(run.uids()).values()), {1}, "each fault once, with one time")
        checks.check("C9101" not in run.log_text(), "nothing was lost")


def repeated(binary, checks):
    """What is read again after a crash has the times that it had: no checkpoint saves that."""
    with tempfile.TemporaryDirectory(prefix="culprit-kmsg-") as folder:
        run = Run(binary, folder)
        config = json.loads(run.bytes_of(run.config))
        config["service"]["checkpoint_interval"] = "1h"
        config["service"]["pipelines"]["all"]["idle_timeout"] = "1h"
        with open(run.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        now = time.monotonic_ns() // 1000
        for number in range(10):
            run.device.write(xid(number), usec=now - (40 - 4 * number) * 1000000)
        run.start()
        run.wait_until("the first faults", lambda: len(by_gpu(run.uids())) >= 8, checks)
        # Those that come while it waits: their time is that of now, whatever they say.
        begun = time.time_ns()
        limit = time.monotonic() + PATIENCE_S
        while "C9103" not in run.log_text() and time.monotonic() < limit:
            run.device.write("something else", usec=now + 3600 * 1000000)
            time.sleep(0.7)
        later = 3600 * 1000000 + (time.time_ns() - begun) // 1000
        run.device.write(xid(10), usec=now + later)
        run.device.write(xid(11), usec=now + later + 60 * 1000000)
        run.wait_until("the fresh fault", lambda: len(by_gpu(run.uids())) >= 11, checks)
        told = run.uids()
        for _ in range(3):
            run.process.kill()
            run.process.wait()
            os.unlink(run.output)  # so that what is told now is seen
            run.start()
            run.wait_until("the same faults", lambda: len(by_gpu(run.uids())) >= 11, checks)
            told |= run.uids()
        checks.equal(set(by_gpu(told).values()), {1}, "read again, with the same times")
        fresh = [int(uid.rpartition(":")[2]) for uid in told if "0000:0b:00" in uid]
        checks.check(fresh and begun - SLACK_NS <= fresh[0] <= time.time_ns() + SLACK_NS,
                     "the fresh fault is of now: %s" % fresh)
        run.end(checks, "repeated")


def once(binary, checks):
    with tempfile.TemporaryDirectory(prefix="culprit-kmsg-") as folder:
        run = Run(binary, folder)
        run.write_all()
        done = subprocess.run([binary, "run", "--once", "--config", run.config],
                              capture_output=True, timeout=PATIENCE_S, check=False)
        checks.equal(done.returncode, 0, "once: exit code: " + done.stderr.decode()[-500:])
        checks.equal(len(by_gpu(run.uids())), XIDS, "once: all that is there")
        run.device.close()
        done = subprocess.run([binary, "run", "--once", "--config", run.config],
                              capture_output=True, timeout=PATIENCE_S, check=False)
        checks.check(done.returncode != 0 and b"is not there" in done.stderr,
                     "once: a missing device is told: " + done.stderr.decode()[-500:])


def troubles(binary, checks):
    """An overrun, and a device that is taken away."""
    with tempfile.TemporaryDirectory(prefix="culprit-kmsg-") as folder:
        run = Run(binary, folder, keep=4)
        run.device.write(xid(0))
        run.start()
        run.wait_until("the first fault", lambda: len(by_gpu(run.uids())) == 1, checks)
        run.device.close()
        run.wait_until("the missing device is told", lambda: "C1006" in run.log_text(), checks)
        for number in range(1, 11):
            run.device.write(xid(number))
        run.device.open()
        run.wait_until("what the kernel kept", lambda: len(by_gpu(run.uids())) == 5, checks)
        run.wait_until("that it works again is told", lambda: "C1007" in run.log_text(), checks)
        log = run.log_text()
        checks.check("6 records of the kernel are lost" in log, "what was overwritten is counted")
        checks.equal(log.count("C1006"), 1, "the trouble is told once")
        run.end(checks, "troubles")


def hangs_up(binary, checks):
    """A peer that takes each connection and ends it: it does not work again by being reached."""
    with tempfile.TemporaryDirectory(prefix="culprit-kmsg-") as folder:
        run = Run(binary, folder)
        run.device.close()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(run.device.path)
        listener.listen(8)
        run.start()
        for _ in range(3):
            listener.settimeout(PATIENCE_S)
            listener.accept()[0].close()
        listener.close()
        run.wait_until("the trouble is told", lambda: "C1006" in run.log_text(), checks)
        log = run.log_text()
        checks.check("C1007" not in log, "it does not work again: " + log)
        os.unlink(run.device.path)
        run.device.open()
        run.device.write(xid(0))
        run.wait_until("the fault", lambda: len(by_gpu(run.uids())) == 1, checks)
        run.wait_until("it works again", lambda: "C1007" in run.log_text(), checks)
        checks.equal(run.log_text().count("C1007"), 1, "that is told once")
        run.end(checks, "hangs up")


def crash():
    """A process that the kernel writes about."""
    pid = os.fork()
    if pid == 0:
        ctypes.string_at(0)
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def readable():
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
        return None
    except OSError as error:
        return str(error)


def last_records():
    """What the real device holds of crashes."""
    texts = []
    device = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            try:
                texts.append(os.read(device, 16384).decode("utf-8", "replace"))
            except BrokenPipeError:
                continue
            except BlockingIOError:
                return texts
    finally:
        os.close(device)


def real(binary, checks):
    reason = readable()
    if reason:
        checks.skip("/dev/kmsg of this machine: " + reason)
        return
    with tempfile.TemporaryDirectory(prefix="culprit-kmsg-") as folder:
        run = Run(binary, folder)
        config = json.loads(run.bytes_of(run.config))
        config["receivers"] = {"kmsg": {"start_at": "now"}}
        config["service"]["telemetry"] = {"metrics": {"endpoint": "127.0.0.1:%d" % run.port}}
        with open(run.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        run.start()
        # Reading begins some time after the first line of the log: crashes until one is read.
        written = False
        limit = time.monotonic() + PATIENCE_S
        while True:
            pid = crash()
            written = written or any("[%d]: segfault" % pid in text for text in last_records())
            if not written or run.accepted() or time.monotonic() > limit:
                break
            time.sleep(0.5)
        accepted = run.accepted()
        checks.equal(run.stop(), 0, "the real device: exit code: " + run.log_text()[-1500:])
        if written:
            checks.check(accepted >= 1, "a crash was read: " + run.log_text()[-1500:])
        else:
            checks.skip("the kernel of this machine does not write about crashes of programs")
        run.device.close()


def main():
    binary = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    checks = Checks()
    once(binary, checks)
    troubles(binary, checks)
    hangs_up(binary, checks)
    killed(binary, kills, checks)
    repeated(binary, checks)
    real(binary, checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What a process cost: wall and CPU seconds, and the most memory it held."""
import os
import subprocess
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
QUIET_S = 1.5         # a program that does not end is done when it has been at rest for so long
QUIET_CPU_S = 0.03    # and used no more than this meanwhile
PATIENCE_S = 600


class Failed(Exception):
    """A program did not do what it was started for."""


class Cost:
    def __init__(self, wall_s, cpu_s, peak_rss_bytes):
        self.wall_s, self.cpu_s, self.peak_rss_bytes = wall_s, cpu_s, peak_rss_bytes

    def row(self):
        return {"wall_s": round(self.wall_s, 4), "cpu_s": round(self.cpu_s, 4),
                "peak_rss_bytes": self.peak_rss_bytes}


def pinned(command, core):
    return command if core is None else ["taskset", "-c", str(core), *command]


def tail(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()[-600:].strip()


def start(command, core, log, out=None, **environment):
    sink = subprocess.DEVNULL if out is None else open(out, "wb")
    try:
        with open(log, "wb") as errors:
            return subprocess.Popen(pinned(command, core), stdin=subprocess.DEVNULL, stdout=sink,
                                    stderr=errors, env={**os.environ, **environment})
    finally:
        if out is not None:
            sink.close()


class Peak(threading.Thread):
    """Most memory that a process held, looked at every 2 ms while it runs.

    Not wait4's figure: that holds what the process was before exec, a copy of this one.
    """

    EVERY_S = 0.002

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.bytes, self.over = pid, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set():
            self.bytes = peak_of(self.pid) or self.bytes
            self.over.wait(self.EVERY_S)

    def stop(self):
        self.over.set()
        self.join()
        return self.bytes


def peak_of(pid):
    """Its high-water mark; None when it has ended."""
    try:
        with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1]) * 1024 for line in file
                         if line.startswith("VmHWM")), None)
    except OSError:
        return None


def to_its_end(command, core, log, out=None, **environment):
    """Runs a program that ends by itself."""
    begun = time.monotonic()
    process = start(command, core, log, out, **environment)
    peak = Peak(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - begun
    peak_bytes = peak.stop()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise Failed("%s ended with %d: %s" % (command[0], process.returncode, tail(log)))
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, peak_bytes)


# -- programs that do not end -------------------------------------------------------------------


def cpu_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def read_by(pid):
    """Bytes that it has read so far."""
    with open("/proc/%d/io" % pid, encoding="ascii") as file:
        return int(file.readline().split()[1])


def until_quiet(command, core, log, size, **environment):
    """Runs a program that reads a file of `size` bytes and then waits for more.

    It is done when it has read them and rests. Neither the rest nor the orderly end that follows
    are counted.
    """
    begun = time.monotonic()
    process = start(command, core, log, **environment)
    try:
        busy_cpu_s, busy_until = 0.0, time.monotonic()
        while True:
            time.sleep(0.02)
            if process.poll() is not None:
                raise Failed("%s ended with %d: %s" % (command[0], process.returncode, tail(log)))
            now, cpu_s = time.monotonic(), cpu_of(process.pid)
            if cpu_s - busy_cpu_s > QUIET_CPU_S or read_by(process.pid) < size:
                busy_cpu_s, busy_until = cpu_s, now
            elif now - busy_until > QUIET_S:
                break
            if now - begun > PATIENCE_S:
                raise Failed("%s is not done after %d s" % (command[0], PATIENCE_S))
        peak_bytes = peak_of(process.pid) or 0
        process.terminate()
        process.wait(PATIENCE_S)
        return Cost(busy_until - begun, busy_cpu_s, peak_bytes)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()

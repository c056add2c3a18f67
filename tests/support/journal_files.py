# SPDX-License-Identifier: Apache-2.0
"""Real journal files, written by systemd-journal-remote (Debian: systemd-journal-remote) from the
export format, without a running journald.

    journal = JournalWriter("/tmp/x/journal/one.journal")
    journal.write("NVRM: Xid ...", fields={"_HOSTNAME": "n7"})
    journal.close()
"""
import os
import shutil
import subprocess
import time

PROGRAMS = ("/lib/systemd/systemd-journal-remote", "/usr/lib/systemd/systemd-journal-remote")
BOOT = "3f2a9c0de11f4d0b8a6f7c1d2e3f4a5b"


def program():
    for path in PROGRAMS:
        if os.access(path, os.X_OK):
            return path
    return shutil.which("systemd-journal-remote")


def unavailable():
    """Why no journal can be written here; None: it can."""
    return None if program() else "the package systemd-journal-remote is not installed"


def entry(message, unix_us, fields):
    lines = {"__REALTIME_TIMESTAMP": str(unix_us), "__MONOTONIC_TIMESTAMP": str(unix_us % 10**12),
             "_BOOT_ID": BOOT, "_TRANSPORT": "kernel", "SYSLOG_IDENTIFIER": "kernel",
             "_HOSTNAME": "n7", "PRIORITY": "3"}
    lines.update(fields)
    out = b""
    for key, value in lines.items():
        if value is not None:
            out += ("%s=%s\n" % (key, value)).encode()
    if message is not None:
        data = message if isinstance(message, bytes) else message.encode()
        out += b"MESSAGE\n" + len(data).to_bytes(8, "little") + data + b"\n"
    return out + b"\n"


class JournalWriter:
    """One file, to which entries are appended as they are written."""

    def __init__(self, path):
        self.path = path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.process = subprocess.Popen([program(), "--output=" + path, "--compress=no", "-"],
                                        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)

    def write(self, message, unix_us=None, fields=None):
        if unix_us is None:
            unix_us = time.time_ns() // 1000
        self.process.stdin.write(entry(message, unix_us, fields or {}))
        self.process.stdin.flush()

    def close(self):
        """Returns what it complained about when it failed."""
        self.process.stdin.close()
        said = self.process.stderr.read().decode("utf-8", "replace")
        self.process.stderr.close()
        return None if self.process.wait(30) == 0 else said

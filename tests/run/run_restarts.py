#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What links do while a machine or a driver starts or stops is no fault, in each form of a log.

    run_restarts.py BINARY
"""
import datetime
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402

START = datetime.datetime(2026, 9, 10, 2, 0, 0, tzinfo=datetime.timezone.utc)
HOST = "gpu-05"
CARD, OTHER = "mlx5_core 0000:5c:00.0", "mlx5_core 0000:9a:00.0"

# (seconds, program, message), seconds of the kernel's own since its boot.
REBOOT = [(0, "systemd-logind", "The system will reboot now!"),
          (30, "kernel", CARD + " ens1f0np0: Link down"),
          (30, "kernel", OTHER + " ens2f0np0: Link down"),
          (33, "kernel", "reboot: Restarting system")]
BOOT = [(0, "kernel", "Linux version 6.8.0-60-generic (buildd@lcy02-amd64-054) #63-Ubuntu SMP"),
        (15, "kernel", CARD + ": firmware version: 28.39.1002"),
        (20, "kernel", CARD + ": Port module event: module 0, Cable plugged"),
        (20, "kernel", "mlx5_core 0000:5c:00.1: Port module event: module 1, Cable unplugged"),
        (25, "kernel", OTHER + " ens2f0np0: Link down"),
        (65, "kernel", CARD + " ens1f0np0: Link up"),
        (200, "kernel", OTHER + " ens2f0np0: Link up")]
# The boot's own first lines are gone: a ring buffer that was overwritten.
LATE_BOOT = BOOT[1:]
DRIVER = [(0, "kernel", CARD + ": E-Switch: Unload vfs: mode(LEGACY), nvfs(0), neovfs(0)"),
          (0, "kernel", OTHER + ": E-Switch: Unload vfs: mode(LEGACY), nvfs(0), neovfs(0)"),
          (1, "kernel", CARD + " ens1f0np0: Link down"),
          (1, "kernel", OTHER + " ens2f0np0: Link down"),
          (40, "kernel", CARD + ": firmware version: 28.39.1002"),
          (120, "kernel", CARD + " ens1f0np0: Link up"),
          (130, "kernel", OTHER + " ens2f0np0: Link up")]
FAULT = [(0, "kernel", CARD + " ens1f0np0: Link down"),
         (200, "kernel", CARD + " ens1f0np0: Link up")]
STORIES = {"reboot": ([REBOOT, BOOT], 0), "boot": ([BOOT], 0), "late boot": ([LATE_BOOT], 0),
           "driver": ([DRIVER], 0), "fault": ([FAULT], 1)}


def stamps(boots):
    """Of each line: when it was written, seconds since the boot, program, message."""
    begin = START
    for number, lines in enumerate(boots):
        for seconds, program, message in lines:
            since_boot = seconds if number > 0 or lines is BOOT or lines is LATE_BOOT \
                else 86400 + seconds
            yield begin + datetime.timedelta(seconds=seconds), since_boot, program, message
        begin += datetime.timedelta(seconds=370)


def dmesg(lines):
    return "".join("[%12.6f] %s\n" % (since, text) for _, since, name, text in lines
                   if name == "kernel")


def short_iso(lines):
    return "".join("%s %s %s: %s\n" % (when.isoformat(timespec="microseconds"), HOST, name, text)
                   for when, _, name, text in lines)


def syslog(lines):
    return "".join("%s %s %s: [%12.6f] %s\n" % (when.strftime("%b %d %H:%M:%S"), HOST, name, since,
                                                text) if name == "kernel" else
                   "%s %s %s[1201]: %s\n" % (when.strftime("%b %d %H:%M:%S"), HOST, name, text)
                   for when, since, name, text in lines)


def journal_json(lines):
    return "".join(json.dumps({
        "__REALTIME_TIMESTAMP": str(int(when.timestamp() * 1000000)),
        "__MONOTONIC_TIMESTAMP": str(since * 1000000), "_HOSTNAME": HOST,
        "SYSLOG_IDENTIFIER": name, "MESSAGE": text,
        "_TRANSPORT": "kernel" if name == "kernel" else "syslog"}) + "\n"
        for when, since, name, text in lines)


def journal_export(lines):
    return "".join("__CURSOR=s=1;i=%d\n__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n"
                   "_HOSTNAME=%s\nSYSLOG_IDENTIFIER=%s\n_TRANSPORT=%s\nMESSAGE=%s\n\n" %
                   (i, int(when.timestamp() * 1000000), since * 1000000, HOST, name,
                    "kernel" if name == "kernel" else "syslog", text)
                   for i, (when, since, name, text) in enumerate(lines))


FORMS = {"dmesg": dmesg, "short-iso": short_iso, "syslog": syslog, "journal JSON": journal_json,
         "journal export": journal_export}


def main():
    binary = sys.argv[1]
    checks = Checks()
    for form, write in FORMS.items():
        for story, (boots, wanted) in STORIES.items():
            if form == "dmesg" and story == "reboot":
                continue  # its ring does not live through one
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "node.log")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(write(list(stamps(boots))))
                done = subprocess.run([binary, "analyze", "--output", "verdicts", path],
                                      capture_output=True, timeout=60)
                found = [line for line in done.stdout.decode().splitlines() if line]
                checks.equal(len(found), wanted, "%s in %s, %r" % (story, form, found))
                checks.equal(done.returncode, 0, "%s in %s, exit code" % (story, form))
    sys.exit(checks.finish())


main()

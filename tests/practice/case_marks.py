# SPDX-License-Identifier: Apache-2.0
"""A mark of UTF-8 before what is read, as tools of Windows write it."""
import os

from case_holes import events
from ports import free_port
from world import Live, analyze, post, telemetry, write

MARK = b"\xef\xbb\xbf"


def case_marks(suite, folder):
    """Behind the mark stand lines, an array, the body of a request: all of it is read, at once and
    while it is followed."""
    lines = telemetry(0)
    array = b"[" + b",".join(line.rstrip() for line in lines) + b"]\n"
    port = free_port()
    receivers = {"file": {"include": [os.path.join(folder, "*.json*")], "poll_interval": "50ms"},
                 "http": {"endpoint": "127.0.0.1:%d" % port}}
    for name, data in (("lines.jsonl", b"".join(lines)), ("array.json", array)):
        path = write(os.path.join(folder, name), MARK + data)
        suite.checks.equal(events(suite, path), (len(lines), 0), "a mark before " + name)
    with Live(suite.binary, os.path.join(folder, "run"), receivers) as live:
        suite.checks.check(live.wait(lambda: live.accepted() >= 2 * len(lines)), "followed")
        post(port, MARK + lines[0])
        suite.checks.check(live.wait(lambda: live.accepted() >= 2 * len(lines) + 1), "posted")
        live.stop(suite.checks, "marks")


def case_utf_16(suite, folder):
    """Logs and telemetry in UTF-16, with its mark and without: they are named as what they are."""
    text = b"RuntimeError: CUDA out of memory\n" + b"".join(telemetry(0)[:3])
    for name, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        for begin in (mark, b""):
            data = begin + text.decode().encode(name)
            path = write(os.path.join(folder, name + ("" if begin else "-bare") + ".log"), data)
            found = analyze(suite.binary, path, "--verbose", output="text")
            told = found.text() + found.errors()
            wanted = "UTF-16," if begin else "UTF-16 without a mark"
            suite.checks.check("the log is " + wanted in told,
                               "%s, mark %r: %s" % (name, begin, told[-400:]))

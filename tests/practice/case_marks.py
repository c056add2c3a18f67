# SPDX-License-Identifier: Apache-2.0
"""A mark of UTF-8 before what is read, as tools of Windows write it."""
import os

from case_holes import events
from ports import free_port
from world import Live, post, telemetry, write

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

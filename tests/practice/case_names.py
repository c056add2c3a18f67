# SPDX-License-Identifier: Apache-2.0
"""What culprit writes to is moved away or removed under it."""
import os
import urllib.error

from ports import free_port
from running import wait_for
from world import Live, append, post, telemetry, write

XID = b"[ %d.000000] NVRM: Xid (PCI:0000:%02x:00): 79, pid=4711, GPU has fallen off the bus.\n"


def read(path):
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def case_verdicts_moved_away(suite, folder):
    """The file of verdicts is renamed by rotation, or removed: what comes later is in a new file of
    that name, and it is said."""
    path = write(os.path.join(folder, "in", "kern.log"), *(XID % (n, 1) for n in range(70)))
    receivers = {"file": {"include": [path], "poll_interval": "50ms"}}
    with Live(suite.binary, os.path.join(folder, "run"), receivers) as live:
        suite.checks.check(live.wait(lambda: read(live.verdicts)), "the first verdict")
        for number, move in enumerate((lambda: os.rename(live.verdicts, live.verdicts + ".old"),
                                       lambda: os.unlink(live.verdicts))):
            move()
            append(path, *(XID % (100 + 10 * number, 2 + number) for _ in range(3)))
            suite.checks.check(live.wait(lambda: read(live.verdicts).endswith(b"\n")),
                               "a new file has what comes later")
        live.stop(suite.checks, "moved away")
        suite.checks.equal(live.log().count("C3106"), 2, "it is said: " + live.log()[-800:])


def case_quarantine_moved_away(suite, folder):
    """The quarantine is rotated as the manual says: what is refused later is in a new one."""
    kept = os.path.join(folder, "refused.jsonl")
    path = write(os.path.join(folder, "in", "rank0.jsonl"), *telemetry(0)[:5], b'{"timestamp": 1\n')
    receivers = {"file": {"include": [path], "poll_interval": "50ms", "quarantine": kept}}
    with Live(suite.binary, os.path.join(folder, "run"), receivers) as live:
        suite.checks.check(live.wait(lambda: read(kept)), "a record is refused")
        os.rename(kept, kept + ".1")
        append(path, b'{"timestamp": 2\n')
        suite.checks.check(live.wait(lambda: read(kept).count(b"\n") == 1), "into a new file")
        live.stop(suite.checks, "quarantine")


def case_store_removed(suite, folder):
    """The store is moved away while culprit runs: nothing is acknowledged that no disk has, it is
    said, and it goes on once the store is back."""
    port = free_port()
    receivers = {"http": {"endpoint": "127.0.0.1:%d" % port, "ack": "stored"}}
    lines = telemetry(0)
    with Live(suite.binary, os.path.join(folder, "run"), receivers, store=True) as live:
        post(port, b"".join(lines[:10]))
        store = os.path.join(folder, "run", "store", "culprit.db")
        os.rename(store, store + ".away")
        live.wait(lambda: live.metric("culprit_store_degraded") or post_fails(port, lines[10]))
        suite.checks.check(wait_for(lambda: "C4001" in live.log(), live.process),
                           "it is said: " + live.log()[-600:])
        os.rename(store + ".away", store)
        suite.checks.check(wait_for(lambda: "C4002" in live.log(), live.process), "it is back")
        post(port, b"".join(lines[11:20]))
        live.stop(suite.checks, "store removed")


def post_fails(port, line):
    """True when one request is not acknowledged; the sender would send it again."""
    import urllib.request
    request = urllib.request.Request("http://127.0.0.1:%d/v1/events" % port, line,
                                     {"Content-Type": "application/x-ndjson"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=2):
            return False
    except (urllib.error.URLError, TimeoutError):
        return True

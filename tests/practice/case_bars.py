# SPDX-License-Identifier: Apache-2.0
"""Progress bars that overwrite themselves for hours and end no line."""
import gzip
import json
import os

from ports import free_port
from process import run
from world import Live, append, post, write

MESSAGE = ("[rank%d]:[E1119 10:00:00.123456 ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught "
           "collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, "
           "NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.")
HOURS = 20000  # states: some 1.5 MiB


def bar(states, rank=0):
    return "".join("\rEpoch 3, rank %d:  12%%|%-40s| %d/30000 [01:05<07:58, 1.84it/s]"
                   % (rank, "#" * 20, state) for state in range(states))


def told(suite, path):
    text = run(suite.binary, "analyze", "--stats", "-", "--output", "verdicts", path).text()
    return json.JSONDecoder().raw_decode(text[text.index("{\n"):])[0]["sources"][0]


def timeouts(source):
    return source["events"].get("watchdog_timeout", 0), sum(source["refused"].values())


def cri(line):
    """As a container runtime writes it: pieces of 16 KiB, of which the last one is marked."""
    pieces = [line[at:at + 16384] for at in range(0, len(line), 16384)]
    return "".join("2026-11-19T10:00:01.5Z stderr %s %s\n" % ("F" if at + 1 == len(pieces) else "P",
                                                              piece)
                   for at, piece in enumerate(pieces))


def case_bars_of_hours(suite, folder):
    """What stands behind a bar that was drawn for hours, of one rank or of several in one file, is
    read: plain, compressed, as containers and Docker write it."""
    one = bar(HOURS) + "\r" + MESSAGE % (1, 1) + bar(HOURS) + "\n"
    several = "".join(bar(HOURS // 4, rank) + "\r" + MESSAGE % (rank, rank) + "\r"
                      for rank in range(4)) + "\n"
    docker = json.dumps({"log": bar(2000) + "\r" + MESSAGE % (1, 1) + "\n", "stream": "stderr",
                         "time": "2026-11-19T10:00:01.5Z"}) + "\n"
    texts = {"one": (one, 1), "several": (several, 4), "open": (one[:-1], 1),
             "cri": (cri(one[:-1]), 1), "docker": (docker, 1)}
    for name, (text, count) in texts.items():
        path = write(os.path.join(folder, name, "job.log"), text.encode())
        suite.checks.equal(timeouts(told(suite, path)), (count, 0), "bars, " + name)
        path = write(os.path.join(folder, name, "job.log.gz"), gzip.compress(text.encode()))
        suite.checks.equal(timeouts(told(suite, path)), (count, 0), "bars, compressed, " + name)


def case_bars_while_followed(suite, folder):
    """The same while the log is followed, a state at a time, and in the body of a request."""
    path = write(os.path.join(folder, "in", "job.log"), b"job starts\n")
    port = free_port()
    receivers = {"file": {"include": [path], "poll_interval": "50ms"},
                 "http": {"endpoint": "127.0.0.1:%d" % port}}
    body = (bar(2000) + "\r" + MESSAGE % (1, 1) + bar(2000) + "\n").encode()
    with Live(suite.binary, os.path.join(folder, "run"), receivers) as live:
        append(path, bar(HOURS).encode())
        append(path, b"\r" + (MESSAGE % (1, 1)).encode())
        append(path, bar(HOURS).encode())
        append(path, b"\n")
        suite.checks.check(live.wait(lambda: live.accepted() >= 1), "followed")
        post(port, body, "text/plain")
        suite.checks.check(live.wait(lambda: live.accepted() >= 2), "posted")
        live.stop(suite.checks, "bars")

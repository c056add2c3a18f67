# SPDX-License-Identifier: Apache-2.0
"""Zeros where a line should be: before the first, between two, and more of them than any disk
has."""
import gzip
import json
import os

from process import run
from world import JOB, Live, analyze, append, said_of, telemetry, write

GIB = 1 << 30
XID = b"[ 1200.%06d] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.\n"


def hole(path, size, *parts):
    """A file that begins with a hole, as under a writer that goes on where it was."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.truncate(size)
        file.seek(size)
        for part in parts:
            file.write(part)
    return path


def events(suite, path):
    """How many lines became events, and how many were refused."""
    text = run(suite.binary, "analyze", "--stats", "-", "--output", "verdicts", path).text()
    text = text[text.index("{\n"):]
    source = json.JSONDecoder().raw_decode(text)[0]["sources"][0]
    return source["event_lines"], sum(source["refused"].values())


def case_zeros_in_files(suite, folder):
    """Zeros before the first line, between two and behind the last, of telemetry and of logs, plain
    and compressed: no line is lost by them."""
    lines = telemetry(0)
    log = [XID % number for number in range(3)]
    for kind, of_kind in (("telemetry.jsonl", lines), ("kernel.log", log)):
        body, zeros = b"".join(of_kind), b"\0" * 70000
        wanted = events(suite, write(os.path.join(folder, "plain", kind), body))
        middle = b"".join(of_kind[:2]) + zeros + b"".join(of_kind[2:])
        for name, data in (("before", zeros + body), ("between", middle), ("few", b"\0" * 5 + body),
                           ("much", b"\0" * (3 << 20) + body), ("behind", body + zeros)):
            path = write(os.path.join(folder, name, kind), data)
            suite.checks.equal(events(suite, path), wanted, "zeros %s of %s" % (name, kind))
        path = os.path.join(folder, "packed", kind + ".gz")
        wanted = events(suite, write(path, gzip.compress(body)))
        write(path, gzip.compress(zeros + body))
        suite.checks.equal(events(suite, path), wanted, "zeros in a compressed " + kind)


def case_hole_of_gigabytes(suite, folder):
    """A hole of 3 GiB before a log, which no disk holds: what stands behind it is read."""
    path = hole(os.path.join(folder, "rank0.jsonl"), 3 * GIB, *telemetry(0))
    suite.checks.equal(events(suite, path), (len(telemetry(0)), 0), "behind a hole of 3 GiB")


def case_zeros_while_followed(suite, folder):
    """A log is cut under a writer that goes on where it was, and another begins with a hole: all of
    their lines are read, and so is what comes later."""
    first, second, third = (os.path.join(folder, "in", "rank%d.jsonl" % rank) for rank in range(3))
    lines = telemetry(0)
    write(first, *lines[:20])
    hole(second, 3 * GIB, *telemetry(1)[:20])
    hole(third, 2 << 20)
    receivers = {"file": {"include": [os.path.join(folder, "in", "*.jsonl")],
                          "poll_interval": "50ms"}}
    with Live(suite.binary, os.path.join(folder, "run"), receivers) as live:
        suite.checks.check(live.wait(lambda: live.accepted() >= 40), "the hole is passed")
        with open(first, "r+b") as file:
            file.truncate(0)
        size = sum(map(len, lines[:20]))
        with open(first, "r+b") as file:
            file.seek(size)
            file.write(b"".join(lines[20:40]))
        suite.checks.check(live.wait(lambda: live.accepted() >= 60), "what was written after a cut")
        append(third, *telemetry(2)[:20])
        suite.checks.check(live.wait(lambda: live.accepted() >= 80), "behind zeros that grow")
        live.stop(suite.checks, "zeros")


def case_beginning_that_says_nothing(suite, folder):
    """A file begins with lines that say nothing, or with bytes that are no text: it is read all the
    same when others come, at once and while it is followed."""
    other = b'{"colour": "blue"}\n' * 100
    noise = bytes(range(1, 9)) * 150000 + b"\n"
    for name, before in (("words", other), ("noise", noise)):
        path = write(os.path.join(folder, name, "rank0.jsonl"), before, *telemetry(0))
        suite.checks.equal(events(suite, path)[0], len(telemetry(0)), name + " before telemetry")
        path = os.path.join(folder, "in-" + name, "rank0.jsonl")
        write(path, before)
        receivers = {"file": {"include": [path], "poll_interval": "50ms"}}
        with Live(suite.binary, os.path.join(folder, "run-" + name), receivers) as live:
            suite.checks.check(live.wait(lambda: "not read" in live.log()), name + ": it is said")
            append(path, *telemetry(0))
            suite.checks.check(live.wait(lambda: live.accepted() >= len(telemetry(0))),
                               name + ": what comes later is read")
            live.stop(suite.checks, name)


def case_packed_otherwise(suite, folder):
    """A file that is compressed by what culprit does not unpack is called by its name."""
    for name, magic in (("zst", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ\0"), ("bz2", b"BZh9"),
                        ("zip", b"PK\x03\x04")):
        path = write(os.path.join(folder, "rank0.log." + name), magic + os.urandom(5000))
        said = analyze(suite.binary, path).errors()
        word = {"zst": "zstd", "bz2": "bzip2"}.get(name, name)
        suite.checks.check(word in said and "not read" in said, "%s: %s" % (name, said[:300]))

# SPDX-License-Identifier: Apache-2.0
"""Files that are put anew under their own names, or seem shorter for a moment: each line counts
once."""
import gzip
import os
import time

from world import Live, append, telemetry, write

XID = b"[ 1200.%06d] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.\n"
POLL_S = 0.05


def kernel(count):
    return [XID % number for number in range(count)]


def array(text):
    return b"[" + b",".join(text.splitlines()) + b"]\n"


def follow(suite, folder, path, store=False):
    receivers = {"file": {"include": [path], "poll_interval": "%dms" % (POLL_S * 1000)}}
    return Live(suite.binary, os.path.join(folder, "run"), receivers, store=store)


def renamed_over(path, data, _):
    write(path + ".tmp", data)
    os.replace(path + ".tmp", path)


def copied_over(path, data, _):
    write(path, data)


def slowly(path, data, known):
    """As a slow copy over the network: cut, then filled, for a long time with less than was read."""
    write(path)
    for begin in range(0, len(data), known // 4):
        append(path, data[begin:begin + known // 4])
        time.sleep(3 * POLL_S)


def made_again(path, data, known):
    os.unlink(path)
    slowly(path, data, known)


def replaced(suite, folder, name, lines, put, stopped=False):
    """Of 60 lines 40 are read before the file is put anew with all of them."""
    pack = gzip.compress if name.endswith(".gz") else array if name.endswith(".json") else bytes
    path = write(os.path.join(folder, "in", name), pack(b"".join(lines[:40])))
    what = "%s of %s%s" % (put.__name__, name, " while stopped" if stopped else "")
    with follow(suite, folder, path, store=stopped) as live:
        suite.checks.check(live.wait(lambda: live.accepted() >= 40), what + ": before")
        if stopped:
            live.stop(suite.checks, what)
        put(path, pack(b"".join(lines[:60])), len(pack(b"".join(lines[:40]))))
        if stopped:
            live.start()
        wanted = 20 if stopped else 60
        suite.checks.check(live.wait(lambda: live.accepted() >= wanted), what + ": all is read")
        if pack is array:
            renamed_over(path, array(b"".join(lines[:70])), 0)
        else:
            append(path, pack(b"".join(lines[60:70])))
        suite.checks.check(live.wait(lambda: live.accepted() >= wanted + 10), what + ": it goes on")
        live.stop(suite.checks, what)
        said = live.log().rsplit('"C1004"', 1)[1].split("}", 1)[0]
        suite.checks.check(" %d events accepted" % (wanted + 10) in said,
                           "%s: each line once: %s" % (what, live.log()[-1500:]))


def case_put_anew(suite, folder):
    """A file is put anew under its name, as rsync (renamed over it), cp (cut and filled) and a slow
    scp do: what was read before is not read again, of telemetry, logs and compressed files, also
    when it happens while culprit is stopped."""
    telemetry_lines, log = telemetry(0), kernel(70)
    plays = [("rank0.jsonl", telemetry_lines, put, stopped)
             for put in (renamed_over, copied_over, slowly, made_again)
             for stopped in (False, True) if not (stopped and put in (slowly, made_again))]
    plays += [("kern.log", log, put, False) for put in (renamed_over, copied_over, slowly)]
    plays += [("kern.log", log, renamed_over, True),
              ("rank0.jsonl.gz", telemetry_lines, renamed_over, False),
              ("rank0.jsonl.gz", telemetry_lines, copied_over, False),
              ("rank0.jsonl.gz", telemetry_lines, renamed_over, True),
              ("rank0.json", telemetry_lines, renamed_over, False),
              ("rank0.json", telemetry_lines, renamed_over, True)]
    for number, (name, lines, put, stopped) in enumerate(plays):
        replaced(suite, os.path.join(folder, str(number)), name, lines, put, stopped)


def case_other_under_the_name(suite, folder):
    """A job starts anew and its log begins with the same words: what it writes is read at once,
    though it is shorter than what was read before."""
    banner = b"".join(b"using option %d with its default\n" % number for number in range(200))
    old, new = (banner + b"".join(XID % number for number in numbers)
                for numbers in (range(400), range(1000, 1010)))
    path = write(os.path.join(folder, "in", "kern.log"), old)
    with follow(suite, folder, path) as live:
        suite.checks.check(live.wait(lambda: live.accepted() >= 400), "the first job")
        write(path, new[:-300])
        time.sleep(4 * POLL_S)
        append(path, new[-300:])
        suite.checks.check(live.wait(lambda: live.accepted() >= 410), "the second")
        live.stop(suite.checks, "other under the name")


def case_size_goes_back(suite, folder):
    """A network file system says for a moment that a file is shorter than it was: that is no cut."""
    for kind, name, lines in (("telemetry", "rank0.jsonl", telemetry(0)),
                              ("log", "kern.log", kernel(70))):
        path = write(os.path.join(folder, kind, "in", name), *lines[:40])
        with follow(suite, os.path.join(folder, kind), path) as live:
            suite.checks.check(live.wait(lambda: live.accepted() >= 40), kind + ": before")
            for size in (sum(map(len, lines[:30])), sum(map(len, lines[:2])) + 7, 0):
                os.truncate(path, size)
                time.sleep(3 * POLL_S)
                append(path, b"".join(lines[:40])[size:])
                time.sleep(3 * POLL_S)
            append(path, *lines[40:60])
            suite.checks.check(live.wait(lambda: live.accepted() >= 60), kind + ": it goes on")
            live.stop(suite.checks, kind)
            suite.checks.check(" 60 events accepted" in live.log(),
                               kind + ": each line once: " + live.log()[-1500:])
            suite.checks.check("cut or filled anew" not in live.log(), kind + ": no cut is told")

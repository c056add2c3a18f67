# SPDX-License-Identifier: Apache-2.0
"""Cases of run_faults.py where the n-th call of a kind fails: memory, descriptors, sockets."""
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from case_disk import Small
from world import (OUT_OF_MEMORY, ROUNDS, Failed, Left, Run, apart, disturbed, folder, hit, must,
                   remove, wait_for)

# How culprit may end when a call failed: well; killed by nobody; with a word about the file, the
# system, the place that cannot be made, or memory.
FINE = {0, OUT_OF_MEMORY, 70, 73, 74, 77, 78}
ROUNDS_GIVEN = 4


# What fails, and whether only on files below the folder of the run.
BELOW = ("write", "read", "open", "fsync")
RULES = ["write:%d:EIO", "write:%d:ENOSPC:3", "write:%d:SHORT:3", "read:%d:EIO:2",
         "open:%d:EMFILE:2", "fsync:%d:EIO", "send:%d:ECONNRESET", "recv:%d:ECONNRESET",
         "accept:%d:ECONNABORTED:3", "accept:%d:EMFILE:5", "socket:%d:EMFILE", "thread:%d:EAGAIN"]
NEVER = 1 << 40


def counted(context, rules, binary=None):
    """How many calls of each kind an undisturbed run makes."""
    counts = {}
    for files in (True, False):
        kinds = sorted({rule.split(":")[0] for rule in rules})
        kinds = [kind for kind in kinds if (kind in BELOW) == files]
        if not kinds:
            continue
        with folder() as place:
            run, report = apart(context, place), os.path.join(place, "report")
            more = {"below": run.folder} if files else {}
            code = disturbed(context, run, ROUNDS_GIVEN, binary, **context.faults(
                ",".join("%s:%d:EIO" % (kind, NEVER) for kind in kinds), binary, report=report,
                **more))
            must(code == 0 and run.acknowledged, lambda: "undisturbed: %s" % run.log_text()[-1500:])
            with open(report, encoding="ascii") as file:
                found = dict(line.split()[1:] for line in file if line.startswith("count"))
            counts.update({kind: int(found[kind]) for kind in kinds})
    return counts


def spread(count, most):
    """Numbers from 1 to count, at most so many, evenly."""
    most = min(count, most)
    return sorted({1 + number * (count - 1) // max(1, most - 1) for number in range(most)})


def torture(context, rule, steps, binary=None):
    """One disturbed run for each n; how many were reached."""
    hits = 0
    more = {}
    for runs, number in enumerate(steps):
        with folder() as place:
            run, report = apart(context, place), os.path.join(place, "report")
            if rule.split(":")[0] in BELOW:
                more["below"] = run.folder
            variables = context.faults(rule % number, binary, report=report, **more)
            try:
                code = disturbed(context, run, ROUNDS_GIVEN, binary, **variables)
                must(code in FINE, lambda: "ended with %s: %s" % (code, run.log_text()[-1500:]))
                reached = hit(report) > 0
                if binary is not None and reached:
                    judge_memory(run, code)
                # Some go on without faults: nothing that was acknowledged may be missing.
                if runs % (1 if "malloc" not in rule and not context.long else 4) == 0:
                    run.finish(ROUNDS_GIVEN)
            except Failed as failed:
                raise Failed("%s: %s" % (rule % number, failed)) from None
        hits += reached
    must(hits > 0, "%s: never reached in %d runs" % (rule, len(steps)))
    return hits


def judge_memory(run, code):
    if code == OUT_OF_MEMORY:
        must("out of memory" in run.log_text(), "71 without a word")
    # Of culprit's own allocations none can be done without.
    must(code != 0, "it went on without memory")


def memory(context):
    """The n-th of culprit's own allocations fails, and all after it."""
    binary = context.tool("culprit_without_memory")
    rule = "malloc:%d:ENOMEM:0"
    count = counted(context, [rule], binary)["malloc"]
    steps = spread(count, context.count(12, 1000))
    hits = torture(context, rule, steps, binary)
    return "%d of some %d allocations failed, each with all after it" % (hits, count)


def memory_of_libraries(context):
    """One allocation fails, of culprit's or of a library's."""
    if context.sanitized:
        raise Left("a sanitizer brings its own malloc")
    rule = "malloc:%d:ENOMEM"
    count = counted(context, [rule])["malloc"]
    hits = torture(context, rule, spread(count, context.count(12, 400)))
    return "%d of some %d allocations failed, libraries' among them" % (hits, count)


def calls(context):
    """Files, sockets and threads, one kind after the other."""
    counts = counted(context, RULES)
    hits = runs = 0
    for rule in RULES:
        count = counts[rule.split(":")[0]]
        must(count > 0, "%s: there is no such call" % rule)
        steps = spread(count, context.count(3, 200))
        runs += len(steps)
        hits += torture(context, rule, steps)
    return "%d runs with a call that failed, of %d, over %d calls in %d ways" % (
        hits, runs, sum(counts.values()), len(RULES))


def few_descriptors(context):
    """A limit of 32 open files, and more clients than that."""
    with folder() as place:
        run = Run(context, place)
        # The sanitizer and the libraries are loaded before; 32 is for all that culprit opens.
        run.start(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)))
        clients = []
        for _ in range(64):
            client = socket.create_connection(("127.0.0.1", run.port), timeout=10)
            clients.append(client)
        time.sleep(0.3)
        must(not run.ended(), lambda: "it ended: " + run.log_text()[-1500:])
        for client in clients:
            client.close()
        wait_for(lambda: run.post_once("0/3", ROUNDS[0][3]) == 200, "it serves again")
        run.kill()
        run.finish(0)
    return "64 clients, 32 descriptors: served afterwards, nothing lost"


def no_scratch(context):
    """/tmp may only be read, and TMPDIR names what is not there."""
    home = tempfile.mkdtemp(prefix="culprit-fault-", dir="/var/tmp")
    try:
        run = Run(context, home)
        own = os.path.join(home, "culprit")          # the binary itself may be below /tmp
        shutil.copy(context.binary, own)
        wrapper = os.path.join(home, "without-tmp")
        with open(wrapper, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nmount -t tmpfs -o ro,size=4k none /tmp || exit 99\n"
                       "exec '%s' \"$@\"\n" % own)
        inner = os.path.join(home, "inner")
        with open(inner, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexec unshare -m '%s' \"$@\"\n" % wrapper)
        for path in (wrapper, inner):
            os.chmod(path, 0o755)
        mounts = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", home],
                                check=False, capture_output=True).returncode == 0
        run.start(binary=inner if mounts else own, TMPDIR="/nonexistent")
        run.give(0)
        must(run.missing == [], "not acknowledged")
        must(run.stop() == 0, lambda: run.log_text()[-1500:])
        run.finish(1)
    finally:
        remove(home)
    return ("/tmp read-only" if mounts else "TMPDIR names nothing") + ": no difference"


def not_root(context):
    """A user that owns nothing but one folder, over a root that may only be read."""
    user = 65532
    # Others may not come into TMPDIR, nor to where the binary is.
    with folder("/var/tmp") as place, Small(place, 64) as small:
        if not small.mounted:
            raise Left("no file system can be mounted here")
        run = Run(context, place)
        own = os.path.join(place, "culprit")
        shutil.copy(context.binary, own)
        wrapper = os.path.join(place, "confined")
        with open(wrapper, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nif [ \"$CONFINED\" != 1 ]; then\n"
                       "    CONFINED=1 exec unshare -m \"$0\" \"$@\"\nfi\n"
                       "mount -o remount,bind,ro / || exit 99\n"
                       "exec setpriv --reuid=%d --regid=%d --clear-groups '%s' \"$@\"\n"
                       % (user, user, own))
        os.chmod(wrapper, 0o755)
        tried = subprocess.run(["unshare", "-m", "mount", "-o", "remount,bind,ro", "/"],
                               check=False, capture_output=True)
        if tried.returncode != 0:
            raise Left("the root cannot be made read-only here")
        for path in (place, run.input):
            os.chown(path, user, user)
        run.start(binary=wrapper)
        run.give(0)
        must(run.missing == [], lambda: "not acknowledged: " + run.log_text()[-1500:])
        must(os.stat(run.output).st_uid == user, "it ran as another user")
        must(run.stop() == 0, lambda: run.log_text()[-1500:])
        run.finish(1)
    return "uid %d, read-only root: no difference" % user


def clock_jumps(context):
    """The wall clock goes an hour back, then a year forward, while events arrive."""
    with folder() as place:
        clock = os.path.join(place, "clock")

        def turn(seconds):
            with open(clock, "w", encoding="ascii") as file:
                file.write("%d\n" % seconds)
        turn(0)
        run = Run(context, place)
        run.start(**context.faults(clock=clock))
        jumps = [0, -3600, 365 * 86400, 0, 1, -86400]
        for number in range(6):
            turn(jumps[number])
            run.give(number)
            must(run.missing == [], lambda: "not acknowledged after a jump of %d s: %s"
                 % (jumps[number], run.log_text()[-1500:]))
        # Stopped for a while, as a machine that sleeps.
        run.signal(signal.SIGSTOP)
        time.sleep(1)
        turn(600)
        run.signal(signal.SIGCONT)
        run.give(6)
        must(run.missing == [], "not acknowledged after a sleep")
        must("shutdown_timeout" not in run.log_text(), "a timeout came of it")
        run.kill()
        run.finish(7)
    return "%d jumps between -1 day and +1 year, and a stop: same verdicts" % len(jumps)

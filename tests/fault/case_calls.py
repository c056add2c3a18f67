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

from world import (OUT_OF_MEMORY, ROUNDS, Failed, Run, disturbed, folder, hit, must, remove,
                   wait_for)

# How culprit may end when a call failed: well; killed by nobody; with a word about the file, the
# system, the place that cannot be made, or memory.
FINE = {0, OUT_OF_MEMORY, 70, 73, 74, 77, 78}


def torture(context, place, rules, steps, **more):
    """One disturbed run for each n until none is reached; runs and hits."""
    runs = hits = 0
    for number in steps:
        sub = os.path.join(place, str(number))
        os.mkdir(sub)
        report = os.path.join(sub, "report")
        run = Run(context, sub)
        variables = context.faults(rules % number, report=report, **more)
        try:
            code = disturbed(context, run, rounds=4, **variables)
            must(code in FINE, "ended with %s: %s" % (code, run.log_text()[-1500:]))
            if code == OUT_OF_MEMORY and "malloc" in rules:
                must("out of memory" in run.log_text(), "71 without a word")
            reached = hit(report) > 0
            # Every 8th goes on without faults; a run that was not reached is the last one.
            if runs % 8 == 0 or not reached:
                run.finish(4)
        except Failed as failed:
            raise Failed("%s: %s" % (rules % number, failed)) from None
        runs += 1
        hits += reached
        remove(sub)
        if not reached:
            break
    return runs, hits


def memory(context):
    """The n-th allocation fails, and all after it, at the start, in batches, at a reload, a stop."""
    binary = context.tool("culprit_without_memory") if context.sanitized else None
    steps = (range(1, 1 << 30, 1 if context.factor > 1 else 29) if context.long
             else (1, 30, 90, 200, 350, 500))
    with folder() as place:
        runs = hits = 0
        for number in steps:
            sub = os.path.join(place, str(number))
            os.mkdir(sub)
            run, report = Run(context, sub), os.path.join(sub, "report")
            rule = "malloc:%d:ENOMEM:0" % number
            variables = context.faults(rule, binary, report=report)
            try:
                code = disturbed(context, run, 4, binary, **variables)
                must(code in FINE, "ended with %s: %s" % (code, run.log_text()[-1500:]))
                reached = hit(report) > 0
                must(not reached or code != 0 or not context.sanitized,
                     "it went on without memory")
                if runs % 8 == 0 or not reached:
                    run.finish(4)
            except Failed as failed:
                raise Failed("%s: %s" % (rule, failed)) from None
            remove(sub)
            runs += 1
            hits += reached
            if not reached:
                break
    return "%d allocations failed, of some %d" % (hits, number)


def calls(context):
    """Reading, writing, sockets and threads, one kind after the other."""
    kinds = ["write:%d:EIO", "write:%d:ENOSPC:3", "read:%d:EIO:2", "send:%d:ECONNRESET",
             "recv:%d:ECONNRESET", "accept:%d:ECONNABORTED:3", "accept:%d:EMFILE:5",
             "socket:%d:EMFILE", "open:%d:EMFILE:2", "thread:%d:EAGAIN"]
    done = total = 0
    for kind in kinds:
        more = {}
        with folder() as place:
            if kind.split(":")[0] in ("write", "read", "open"):
                more["below"] = place
            steps = (range(1, 400, 1 if context.factor > 1 else 5) if context.long else (2,))
            runs, hits = torture(context, place, kind, steps, **more)
        done += hits
        total += runs
    return "%d of %d runs with a failing call, %d kinds" % (done, total, len(kinds))


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

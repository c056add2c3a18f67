# SPDX-License-Identifier: Apache-2.0
"""Cases of run_faults.py about disks: power loss, damage, full, failing, only to be read."""
import os
import random
import struct
import subprocess
import time

import process
from world import (ROUNDS, Failed, Left, Run, apart, disturbed, folder, hit, must, program,
                   remove, wait_for)

MIB = 1 << 20
LOG_HEADER, LOG_FRAME = 32, 24 + 4096


# -- power loss ----------------------------------------------------------------------------------

def power_loss(context):
    """The model over the store alone, then over a whole culprit."""
    seeds = context.count(500, 100_000)
    said = program([context.tool("power_loss"), str(seeds)])
    states = process_states(context, context.count(6, 250))
    return said + "; %d states of a whole culprit, restarted" % states


def all_in_one(place):
    """Store and verdicts in one folder, whose writes are written down."""
    def change(config):
        config["extensions"]["file_storage"]["directory"] = os.path.join(place, "disk")
        config["exporters"] = {"json": {"path": os.path.join(place, "disk", "verdicts.jsonl"),
                                        "retry_on_failure": {"initial_interval": "100ms"}}}
        config["service"]["pipelines"]["memory"]["exporters"] = ["json"]
    return change


def process_states(context, count):
    """culprit is started on what a power failure left; what it had acknowledged must count."""
    dice = random.Random(2)
    with folder() as place:
        os.mkdir(os.path.join(place, "disk"))
        log = os.path.join(place, "writes")
        run = Run(context, place, all_in_one(place))
        run.output_in_store = os.path.join(place, "disk", "verdicts.jsonl")
        acknowledged = []            # (size of the log, key)
        variables = {"LD_PRELOAD": context.tool("libdisk_preload.so"),
                     "CULPRIT_DISK_ROOT": os.path.join(place, "disk"), "CULPRIT_DISK_LOG": log}
        if context.sanitized:
            variables["ASAN_OPTIONS"] = "verify_asan_link_order=0"
        run.start(**variables)
        sent = []                    # (size of the log before, key, lines)
        for number in range(len(ROUNDS)):
            run.give_files(number)
            for rank in run.by_http:
                key, lines = "%d/%d" % (number, rank), ROUNDS[number].get(rank)
                if lines is None:
                    continue
                sent.append((os.path.getsize(log), key, lines))
                must(run.offer(key, lines) == 200, "not acknowledged")
                acknowledged.append((os.path.getsize(log), key))
        run.kill()
        size = os.path.getsize(log)
        must(size > 0, "nothing was written down")
        # culprit knows its files by their inodes, which a power failure does not change.
        kept = os.path.join(place, "kept")
        os.link(run.output_in_store, kept)
        for state in range(count):
            at = dice.randrange(size // 10, size) if state > 0 else size
            restart_from(context, run, (log, at, dice.randrange(1, 1 << 40)), kept, sent,
                         {key for where, key in acknowledged if where <= at})
    return count


def restart_from(context, run, state, kept, sent, safe):
    disk = os.path.dirname(run.output_in_store)
    remove(disk)
    os.mkdir(disk)
    os.link(kept, run.output_in_store)
    program([context.tool("power_loss"), "state", *map(str, state), disk])
    with open(run.log, "wb"):
        pass
    # Its senders repeat what they have no answer for, and nothing else.
    run.missing = [(key, lines) for _, key, lines in sent if key not in safe]
    run.output = run.output_in_store
    try:
        run.finish(len(ROUNDS))
    except Failed as failed:
        raise Failed("state %s: %s" % (state, failed)) from None
    must("C4003" not in run.log_text(), "the store counts as damaged after a power failure")


# -- damage --------------------------------------------------------------------------------------

def damage(context):
    step = max(1, round(1 / context.factor)) if context.long else 101
    said = program([context.tool("store_damage"), str(step)])
    count = context.count(2, 40)
    for number in range(count):
        damage_log(context, random.Random(number))
    return "%s; %d bytes of the log of a whole culprit: told, nothing lost" % (said, count)


def damage_log(context, dice):
    """A byte of the log is wrong after a kill; all that was acknowledged stays."""
    with folder() as place:
        run = Run(context, place, lambda config: config["service"].update(
            checkpoint_interval="1h"))
        run.start()
        store, first = os.path.join(place, "store"), len(ROUNDS) // 2
        for number in range(first):
            run.give(number)
        run.kill()
        must(not run.missing, "not acknowledged: %r" % run.missing)
        with open(os.path.join(store, "culprit.db-mark"), "rb") as mark:
            synced = struct.unpack_from("<I", mark.read(), 16)[0]
        with open(os.path.join(store, "culprit.db-wal"), "r+b") as log:
            at = dice.randrange(LOG_HEADER + synced * LOG_FRAME)
            log.seek(at)
            byte = log.read(1)[0]
            log.seek(at)
            log.write(bytes([byte ^ (1 + dice.randrange(255))]))
        check = process.run(context.binary, "store", "check", store)
        must(check.code == 1 and "acknowledged" in check.errors(),
             "byte %d: store check: %d: %s" % (at, check.code, check.errors()))
        run.finish(first)
        must(run.log_text().count('"C4003"') == 1, "byte %d: %s" % (at, run.log_text()[-2000:]))
        check = process.run(context.binary, "store", "check", store)
        must(check.code == 0, "after the repair: " + check.errors())


# -- full ----------------------------------------------------------------------------------------

class Small:
    """A file system of some MiB in memory, below a folder; needs root."""

    def __init__(self, path, mib):
        self.path = path
        os.makedirs(path, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % mib, "culprit-fault",
                               path], check=False, capture_output=True)
        self.mounted = done.returncode == 0

    def __enter__(self):
        return self

    def fill(self):
        with open(os.path.join(self.path, "ballast"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(65536))
            except OSError:
                pass
            try:
                while True:
                    file.write(b"x")
            except OSError:
                pass

    def free(self):
        os.unlink(os.path.join(self.path, "ballast"))

    def read_only(self):
        done = subprocess.run(["mount", "-o", "remount,ro", self.path], check=False,
                              capture_output=True)
        return done.returncode == 0

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", "-l", self.path], check=False)


def full(context):
    figures = [full_store(context), full_output(context)]
    figures.append(quota(context))
    return "; ".join(figures)


def full_store(context):
    with folder() as place, Small(os.path.join(place, "small"), 8) as small:
        if not small.mounted:
            raise Left("no file system can be mounted here")
        run = Run(context, place, lambda config: config["extensions"]["file_storage"].update(
            {"directory": os.path.join(small.path, "store"), "max_size": "16MiB"}))
        run.start()
        run.give(0)
        small.fill()
        wait_for(lambda: run.post_once("1/3", ROUNDS[1][3]) == 503, "a request is refused")
        must(not run.ended(), "it ended on a full disk")
        wait_for(lambda: run.degraded() == 1, "degraded is told")
        small.free()
        began = time.monotonic()
        wait_for(lambda: run.degraded() == 0, "it recovers")
        took = time.monotonic() - began
        for number in range(1, len(ROUNDS)):
            run.give_again()
            run.give(number)         # "1/3" again, under its key
        run.kill()
        run.finish(len(ROUNDS))
        return "store: 503, went on %.1f s after there was room" % took


def full_output(context):
    with folder() as place, Small(os.path.join(place, "small"), 8) as small:
        if not small.mounted:
            raise Left("no file system can be mounted here")

        def change(config):
            for exporter in config["exporters"].values():
                exporter["path"] = os.path.join(small.path, os.path.basename(exporter["path"]))
        run = Run(context, place, change)
        run.output = os.path.join(small.path, os.path.basename(run.output))
        run.summary = os.path.join(small.path, os.path.basename(run.summary))
        run.start()
        small.fill()
        for number in range(len(ROUNDS)):
            run.give(number)
        run.give_again()
        wait_for(lambda: "No space" in run.log_text(),
                 lambda: "the full disk is told: " + run.log_text()[-1500:])
        must(not run.ended(), "it ended on a full disk")
        small.free()
        run.kill()
        run.finish(len(ROUNDS))
        return "output: all lines once, whole"


def quota(context):
    """EDQUOT and short writes on whatever is below the folder, in turn."""
    rules = ["write:5:EDQUOT:20", "write:3:SHORT:40", "truncate:1:EIO:3", "rename:1:EACCES:2"]
    with folder() as place:
        for number, rule in enumerate(rules):
            sub = os.path.join(place, str(number))
            os.mkdir(sub)
            run = apart(context, sub)
            disturbed(context, run, **context.faults(rule, below=run.folder))
            run.finish(6)
            remove(sub)
    return "quota, short writes, no truncation, no renaming: nothing lost"


# -- fsync that fails ----------------------------------------------------------------------------

def failed_sync(context):
    """The n-th fsync of the store fails; then all of them, while requests come."""
    hits = rounds = 0
    for first in context_steps(context):
        with folder() as place:
            run = apart(context, place)
            report = os.path.join(place, "report")
            disturbed(context, run, **context.faults(
                "fsync:%d:EIO:%d" % (first, 1 + first % 3), below=run.folder, report=report))
            hits += hit(report)
            rounds += 1
            run.finish(6)
            if hit(report) == 0:
                break
    with folder() as place:
        run, armed = Run(context, place), os.path.join(place, "armed")
        run.start(**context.faults("fsync:1:EIO:0", armed=armed,
                                   below=os.path.join(place, "store")))
        run.give(0)
        open(armed, "w", encoding="ascii").close()
        status = run.offer("1/3", ROUNDS[1][3])
        must(status != 200, "acknowledged although the disk failed: %s" % status)
        wait_for(lambda: run.degraded() == 1, "degraded is told")
        run.kill()
        os.unlink(armed)
        run.finish(1)
    return "%d fsyncs failed in %d runs" % (hits, rounds)


def context_steps(context):
    """1, 2, 3… in the long form; some of them in the short one."""
    return range(1, 10_000) if context.long else (1, 4, 9)


# -- only to be read, stale ----------------------------------------------------------------------

def read_only(context):
    with folder() as place, Small(os.path.join(place, "small"), 8) as small:
        if not small.mounted or not small.read_only():
            raise Left("no file system can be mounted here")
        run = Run(context, place, lambda config: config["extensions"]["file_storage"].update(
            {"directory": os.path.join(small.path, "store")}))
        run.start(wait=False)
        wait_for(run.ended, "it ends")
        text = run.log_text()
        run.unharmed()
        must(run.process.returncode in (73, 74, 77), "exit code %s" % run.process.returncode)
        must("Read-only file system" in text and small.path in text,
             lambda: "it does not say what is wrong: " + text[-1000:])
    return "exit code %d, with the directory and the reason" % run.process.returncode


def stale(context):
    """As on a network file system whose server forgot the file."""
    with folder() as place:
        run = Run(context, place)
        disturbed(context, run, **context.faults(
            "open:3:ESTALE:5,read:5:ESTALE:6", below=run.input))
        run.finish(6)
    return "nothing lost"

# SPDX-License-Identifier: Apache-2.0
"""Ordinary logs, of which hardly a line is of interest, beside grep and ripgrep (bench.py).

Each log is made of the same lines with any Python: a training log of five writers, a kernel log as
syslog writes it, and the lines of one program as the journal and as CRI keep them. It ends with a
traceback or an Xid, so that something is to be found.
"""
import json
import os
import random
import shutil
import subprocess
import time

WORDS = "Traceback|Error|Killed|NCCL WARN|Xid|srun: error"
BEGIN_S, LINES_A_SECOND = 1763600000, 10
FILES = 8                   # that the training log is split into


def clock(form, line):
    return time.strftime(form, time.gmtime(BEGIN_S + line // LINES_A_SECOND))


def message(rng, line):
    return ("%s INFO trainer.py:%d step %d loss %.4f lr 0.0003 tokens/s %d mem 61.2GiB"
            % (clock("%Y-%m-%d %H:%M:%S", line), rng.randrange(900), line, rng.random(),
               rng.randrange(99999)))


def training(rng, line):
    at = clock("%Y-%m-%d %H:%M:%S", line)
    kind = line % 5
    if kind == 0:
        return ("[%s,%03d] [INFO] [logging.py:96:log_dist] [Rank 0] step=%d, skipped=0, "
                "lr=[1.2e-05], mom=[(0.9, 0.95)]" % (at, rng.randrange(1000), line))
    if kind == 1:
        return (" [%s] iteration %8d/ 5000000 | consumed samples: %12d | elapsed time per iteration "
                "(ms): %.1f | learning rate: 1.200E-05 | global batch size:   512 | lm loss: %.6E "
                "| loss scale: 1.0 | grad norm: 0.%03d |"
                % (at, line, line * 512, rng.random() * 1000, rng.random() * 3,
                   rng.randrange(999)))
    if kind == 2:
        return message(rng, line)
    if kind == 3:
        return ("{'loss': %.4f, 'grad_norm': %.4f, 'learning_rate': 1.2e-05, 'epoch': %.2f}"
                % (rng.random(), rng.random(), line / 100000))
    return ("[rank%d]: %s data: shard %d of s3://bucket/tokens/part-%05d.bin opened, %d documents "
            "in queue, prefetch 4" % (line % 8, at, rng.randrange(4096), rng.randrange(99999),
                                      rng.randrange(9999)))


def kernel(rng, line):
    said = rng.choice((
        'audit: type=1400 audit(%d.%03d:%d): apparmor="STATUS" operation="profile_load" '
        'profile="unconfined" name="docker-default" pid=%d comm="apparmor_parser"'
        % (BEGIN_S + line // LINES_A_SECOND, line % 1000, line, line % 30000),
        "cni0: port %d(veth%04x) entered forwarding state" % (line % 64, line % 4096),
        "IPv6: ADDRCONF(NETDEV_CHANGE): veth%04x: link becomes ready" % (line % 4096),
        "device veth%04x left promiscuous mode" % (line % 4096),
        "perf: interrupt took too long (%d > 4926), lowering kernel.perf_event_max_sample_rate "
        "to 40500" % (line % 9999)))
    return "%s gpu-n01 kernel: [%d.%06d] %s" % (clock("%b %e %H:%M:%S", line),
                                                600000 + line // LINES_A_SECOND, line % 1000000,
                                                said)


def journal_entry(line, said):
    return json.dumps({
        "__CURSOR": "s=abc;i=%x" % line, "_HOSTNAME": "gpu-n01", "SYSLOG_IDENTIFIER": "train",
        "__REALTIME_TIMESTAMP": str((BEGIN_S + line // LINES_A_SECOND) * 1000000 + line % 1000000),
        "_PID": "4711", "PRIORITY": "6", "MESSAGE": said})


def cri_line(line, said):
    return "%s.%03d000000Z stderr F %s" % (clock("%Y-%m-%dT%H:%M:%S", line), line % 1000, said)


TRACEBACK = ("Traceback (most recent call last):", '  File "train.py", line 5, in <module>',
             "ValueError: loss is nan")

# By name: a line, and what the log ends with.
LOGS = {
    "training log": (training, lambda count: TRACEBACK),
    "kernel log": (kernel, lambda count: (
        "%s gpu-n01 kernel: [%d.000001] NVRM: Xid (PCI:0000:1b:00): 79, pid=7, name=python3, GPU "
        "has fallen off the bus." % (clock("%b %e %H:%M:%S", count),
                                     600000 + count // LINES_A_SECOND),)),
    "journal, as JSON": (lambda rng, line: journal_entry(line, message(rng, line)),
                         lambda count: [journal_entry(count, text) for text in TRACEBACK]),
    "container log of CRI": (lambda rng, line: cri_line(line, message(rng, line)),
                             lambda count: [cri_line(count, text) for text in TRACEBACK]),
}


def make(name, path, lines):
    rng = random.Random(name)
    line_of, end_of = LOGS[name]
    with open(path, "w", encoding="utf-8") as file:
        for line in range(lines):
            file.write(line_of(rng, line) + "\n")
        for line in end_of(lines):
            file.write(line + "\n")
    return os.path.getsize(path)


def ripgrep():
    """Its version; None: it is not installed."""
    if shutil.which("rg") is None:
        return None
    done = subprocess.run(["rg", "--version"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[0]


def analyze(bench, paths, *more):
    return [bench.program("culprit"), "analyze", "--quiet", "--output", "summary", *more, *paths]


def beside(bench, rounds, run, path, has_ripgrep):
    """The runs of each program over the file, in turn."""
    commands = {"culprit": (analyze(bench, [path]), {}),
                "grep": (["grep", "-cE", WORDS, path], {"LC_ALL": "C"})}
    if has_ripgrep:
        commands["ripgrep"] = (["rg", "-c", "-j1", WORDS, path], {})
    runs = {name: [] for name in commands}
    for _ in range(rounds):
        for name, (command, environment) in commands.items():
            runs[name].append(run(bench.core, command, bench.out, **environment))
    return runs


def on_all_cores(bench, rounds, run, paths, median):
    """How many times as fast as on one thread, by wall time, in turn."""
    cores = sorted(os.sched_getaffinity(0))
    every = ",".join(map(str, cores))
    pairs = []
    for _ in range(rounds):
        one, all_of_them = (
            run(every, analyze(bench, paths, "--set", "service.threads=%d" % threads),
                bench.out).wall_s for threads in (1, len(cores)))
        pairs.append(one / all_of_them)
    return {"threads": len(cores), "files": len(paths), "times": round(median(pairs), 2)}


def split(path, count):
    """The file in as many parts of whole lines."""
    with open(path, "rb") as file:
        lines = file.readlines()
    parts = ["%s.%d.log" % (path, i) for i in range(count)]
    for i, part in enumerate(parts):
        with open(part, "wb") as file:
            file.writelines(lines[len(lines) * i // count:len(lines) * (i + 1) // count])
    return parts


def measure(bench, options, run, median, say):
    """CPU time of whole programs on one core, side by side in the same rounds; `run` is bench.Run."""
    version = ripgrep()
    found = {"words": WORDS, "ripgrep": version or "not installed", "rows": [], "all_cores": []}
    lines = max(1000, options.events * 6 // 10)
    for name in LOGS:
        say("%s: %d lines, beside grep" % (name, lines))
        path = os.path.join(bench.folder, "log")
        size = make(name, path, lines)
        runs = beside(bench, options.rounds, run, path, version is not None)
        ours = median(r.cpu_s for r in runs["culprit"])
        row = {"log": name, "bytes": size, "lines": lines, "cpu_s": round(ours, 3),
               "mb_per_s": round(size / ours / 1e6)}
        for peer in runs:
            if peer != "culprit":
                row["culprit/" + peer] = round(median(
                    a.cpu_s / b.cpu_s for a, b in zip(runs["culprit"], runs[peer])), 2)
        found["rows"].append(row)
        if name == "training log" and len(os.sched_getaffinity(0)) > 1:
            say("%s, on all cores" % name)
            parts = split(path, FILES)
            found["all_cores"] = [on_all_cores(bench, options.rounds, run, paths, median)
                                  for paths in ([path], parts)]
            for part in parts:
                os.unlink(part)
        os.unlink(path)
    found["aims"] = aims(found)
    return found


def aims(found):
    own = [("the training log, in the time of grep -E", found["rows"][0]["culprit/grep"],
            "at_most", 1.5)]
    for row in found["all_cores"]:
        if row["threads"] == 2:
            own.append(("the training log in %d file%s, two threads beside one"
                        % (row["files"], "" if row["files"] == 1 else "s"), row["times"],
                        "at_least", 1.8))
    return [{"aim": aim, "measured": value, key: bound,
             "met": value <= bound if key == "at_most" else value >= bound}
            for aim, value, key, bound in own]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What carries a log changes no answer, whatever its clock says.

    run_carriers.py BINARY

Small jobs that failed, as their consoles were written and behind each carrier, whose clock is that
of the programs, or hours away (the programs write local time), or late. Who broke the job, and of
what, is the same in all.
"""
import datetime
import itertools
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

UTC = datetime.timezone.utc
START = datetime.datetime(2026, 3, 14, 10, 0, 0, tzinfo=UTC)
HOUR = 3600
HOST = "gpu-a01"


class Clock:
    """`ahead_s`: of the programs, which write local time; `late_s`: of the carrier."""

    def __init__(self, name, ahead_s=0, late_s=0):
        self.name, self.ahead_s, self.late_s = name, ahead_s, late_s

    def program(self, at_s):
        return START + datetime.timedelta(seconds=at_s + self.ahead_s)

    def carrier(self, at_s):
        return START + datetime.timedelta(seconds=at_s + self.late_s)


CLOCKS = [Clock("one clock"), Clock("2 h apart", ahead_s=2 * HOUR),
          Clock("8 h behind", ahead_s=-8 * HOUR), Clock("5 h 30 min ahead", ahead_s=11 * HOUR // 2),
          Clock("40 s late", late_s=40), Clock("2 h apart, 40 s late", ahead_s=2 * HOUR, late_s=40),
          Clock("57 min late", late_s=57 * 60)]


# -- jobs -----------------------------------------------------------------------------------------
# Each gives [(seconds, text)] of the console and [(seconds, text)] of the kernel.

def python_log(clock, at_s, text):
    when = clock.program(at_s)
    return at_s, "%s,%03d %s" % (when.strftime("%Y-%m-%d %H:%M:%S"), when.microsecond // 1000, text)


def glog(clock, at_s, level, text):
    return at_s, clock.program(at_s).strftime(level + "%m%d %H:%M:%S.%f ") + text


def steps(clock, until_s):
    return [python_log(clock, at, "INFO train: step %d/300 loss %.4f" % (at, 9 / (at + 3)))
            for at in range(1, until_s)]


def lost_peer(at_s, rank):
    text = ("Traceback (most recent call last):",
            '  File "/srv/train.py", line 40, in <module>',
            "    dist.all_reduce(gradient)",
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Read error "
            "[10.0.0.2]:43737: Connection reset by peer")
    return [(at_s, "[rank%d]: %s" % (rank, line)) for line in text]


def torchrun_end(clock, at_s, rank, pid, seen_s):
    """What torchrun says; the summary's time is when it saw the end."""
    api = "4711 torch/distributed/elastic/multiprocessing/api.py:"
    summary = ["torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "=" * 54,
               "train.py FAILED", "-" * 54, "Failures:", "  <NO_OTHER_FAILURES>", "-" * 54,
               "Root Cause (first observed failure):", "[0]:",
               "  time      : " + clock.program(seen_s).strftime("%Y-%m-%d_%H:%M:%S"),
               "  host      : " + HOST,
               "  rank      : %d (local_rank: %d)" % (rank, rank),
               "  exitcode  : -9 (pid: %d)" % pid,
               "  error_file: <N/A>",
               "  traceback : Signal 9 (SIGKILL) received by PID %d" % pid,
               "=" * 54]
    return [glog(clock, at_s, "W", api + "897] Sending process 4712 closing signal SIGTERM"),
            glog(clock, at_s + 0.3, "E", api + "869] failed (exitcode: -9) local_rank: %d (pid: %d) "
                 "of binary: /usr/bin/python3" % (rank, pid)),
            (at_s + 0.4, "Traceback (most recent call last):"),
            (at_s + 0.4, '  File "/usr/bin/torchrun", line 8, in <module>'),
            (at_s + 0.4, "    sys.exit(main())"),
            *((at_s + 0.5, line) for line in summary)]


def killed(clock):
    return (steps(clock, 20) + lost_peer(20.1, 1) + lost_peer(20.2, 0)
            + torchrun_end(clock, 21, 2, 4714, 20)), []


def killed_undated(clock):
    """Only the summary says a time, and that to the second."""
    def bare(at_s, text):
        return at_s, text if not text[:4].isdigit() else text[24:]
    console, _ = killed(clock)
    return [bare(*line) for line in console
            if "api.py:" not in line[1]], []


def killed_buffered(clock):
    """The steps come when a buffer is full or the program ends, all at once."""
    console, _ = killed(clock)
    return [(19.9 if "step" in text else at_s, text) for at_s, text in console], []


def out_of_memory(clock):
    kernel = [(19.5, "python3 invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE), order=0, "
                     "oom_score_adj=0"),
              (19.6, "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
                     "global_oom,task_memcg=/user.slice,task=python3,pid=4714,uid=1000"),
              (19.6, "Out of memory: Killed process 4714 (python3) total-vm:58720256kB, "
                     "anon-rss:31457280kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:61640kB "
                     "oom_score_adj:0")]
    return killed(clock)[0], kernel


def timeout(clock):
    def said(at_s, rank):
        when = clock.program(at_s).strftime("%m%d %H:%M:%S.%f000")
        return (at_s, "[rank%d]:[E%s ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught collective "
                "operation timeout: WorkNCCL(SeqNum=118, OpType=ALLREDUCE, NumelIn=1048576, "
                "NumelOut=1048576, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
                % (rank, when, rank))
    return (steps(clock, 20) + [python_log(clock, 25, "[rank2] INFO data: waiting for shard 17")]
            + [said(620 + rank / 10, rank) for rank in (0, 1, 3)]), []


def lost_gpu(clock):
    """A fault of the GPU, which only the kernel names, and the exception that it led to."""
    said = ["Traceback (most recent call last):", '  File "/srv/train.py", line 38, in <module>',
            "    loss.backward()",
            "RuntimeError: CUDA error: unspecified launch failure"]
    kernel = [(19.2, "NVRM: Xid (PCI:0000:4e:00): 79, pid=4714, name=python3, GPU has fallen off the "
                     "bus.")]
    return (steps(clock, 20) + [(19.6, "[rank2]: " + line) for line in said]
            + lost_peer(20.1, 1) + lost_peer(20.2, 0)), kernel


JOBS = [lost_gpu, killed, killed_undated, killed_buffered, out_of_memory, timeout]


# -- carriers -------------------------------------------------------------------------------------

def rfc3339(when, digits=9):
    return when.strftime("%Y-%m-%dT%H:%M:%S.%f") + "0" * (digits - 6) + "Z"


def docker(when, _, text):
    return json.dumps({"log": text + "\n", "stream": "stderr", "time": rfc3339(when)})


def cri(when, _, text):
    return "%s stderr F %s" % (rfc3339(when), text)


def kubectl(when, _, text):
    return "%s %s" % (rfc3339(when), text)


def journal_short(when, program, text):
    return "%s %s %s: %s" % (when.strftime("%b %d %H:%M:%S"), HOST, program, text)


def journal_iso(when, program, text):
    return "%s %s %s: %s" % (when.strftime("%Y-%m-%dT%H:%M:%S+0000"), HOST, program, text)


def journal_json(when, program, text):
    return json.dumps({"__REALTIME_TIMESTAMP": str(round(when.timestamp() * 10**6)),
                       "_HOSTNAME": HOST, "SYSLOG_IDENTIFIER": program,
                       "_TRANSPORT": "stdout", "MESSAGE": text})


def syslog_iso(when, program, text):
    return "%s+00:00 %s %s: %s" % (when.strftime("%Y-%m-%dT%H:%M:%S.%f"), HOST, program, text)


def rfc5424(when, program, text):
    return "<13>1 %s %s %s - - - %s" % (rfc3339(when, 6), HOST, program, text)


CARRIERS = [docker, cri, kubectl, journal_short, journal_iso, journal_json, syslog_iso, rfc5424]


# -- the suite ------------------------------------------------------------------------------------

class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        self.names = map("case%d".__mod__, itertools.count())

    def write(self, folder, name, lines):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        os.utime(path, (START.timestamp() + 72 * HOUR,) * 2)

    def analyze(self, console, kernel, *options):
        """The verdicts, in one order."""
        folder = os.path.join(self.folder, next(self.names))
        os.makedirs(folder)
        self.write(folder, "console.log", console)
        if kernel:
            self.write(folder, "kern.log",
                       [syslog_iso(CLOCKS[0].carrier(at), "kernel", text) for at, text in kernel])
        done = run(self.binary, "analyze", "--output", "verdicts", "--set",
                   "receivers.file.node=" + HOST, *options, folder)
        return sorted(map(json.loads, done.text().splitlines()),
                      key=lambda verdict: (verdict["pattern"], verdict["id"]))

    def compare(self, what, got, wanted, late_s):
        """Who broke it, of what, and when: as the programs or the carrier say it, to two seconds."""
        self.checks.equal(who(got), who(wanted), what)
        for one, other in zip(got, wanted):
            apart_s = (int(one["start_time_unix_nano"]) - int(other["start_time_unix_nano"])) / 10**9
            self.checks.check(-2 <= apart_s <= late_s + 2,
                              lambda: "%s: began %.1f s apart" % (what, apart_s))

    def job(self, job):
        console, kernel = job(CLOCKS[0])
        plain = self.analyze([text for _, text in console], kernel)
        self.checks.check(plain, job.__name__ + " has an answer")
        for clock in CLOCKS:
            console, kernel = job(clock)
            if kernel and clock.late_s > 60:
                continue  # nobody can join two logs that say different times
            for carrier in CARRIERS:
                carried = [carrier(clock.carrier(at), "trainer[4700]", text) for at, text in console]
                self.compare("%s, %s, %s" % (job.__name__, carrier.__name__, clock.name),
                             self.analyze(carried, kernel), plain, clock.late_s)

    def with_zone(self):
        """The zone that is named counts for what a summary says, too."""
        console, kernel = out_of_memory(CLOCKS[0])
        plain = self.analyze([text for _, text in console], kernel)
        console, kernel = out_of_memory(CLOCKS[1])
        self.compare("in the zone that is named", self.analyze(
            [text for _, text in console], kernel, "--set", "receivers.file.timezone=+02:00"), plain, 0)


def who(verdicts):
    return [(verdict["pattern"], verdict["kind"], verdict["attributes"].get("culprit.root", ""),
             sorted((entity["kind"], entity["name"], entity["role"])
                    for entity in verdict["entities"])) for verdict in verdicts]


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(binary, os.path.realpath(folder))
        for job in JOBS:
            suite.job(job)
        suite.with_zone()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A date without a year takes that of its source or its neighbours, before the age of its file.

    run_years.py BINARY

A rank that was killed, as its console and the node's kernel log tell; the files were copied years
later, or written on the day. And the turn of a year within a log.
"""
import datetime
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import run  # noqa: E402

UTC = datetime.timezone.utc
SPRING = datetime.datetime(2023, 3, 14, 10, 0, 0, tzinfo=UTC)
NEW_YEAR = datetime.datetime(2023, 12, 31, 23, 59, 50, tzinfo=UTC)
LATER = datetime.timedelta(days=3 * 365)
DAY = datetime.timedelta(days=1)
API = "4711 torch/distributed/elastic/multiprocessing/api.py:"


class Run:
    """Lines of a run that began at `start` and broke 20 s later."""

    def __init__(self, start):
        self.start = start

    def at(self, seconds):
        return self.start + datetime.timedelta(seconds=seconds)

    def glog(self, seconds, level, text):
        return self.at(seconds).strftime(level + "%m%d %H:%M:%S.%f ") + text

    def console(self, said=(), summary=True):
        """`said`: lines that a program writes before."""
        lines = [self.glog(1, "W", API + "700] starting workers"), *said,
                 "[rank1]: Traceback (most recent call last):",
                 '[rank1]:   File "/srv/train.py", line 40, in <module>',
                 "[rank1]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Read "
                 "error [10.0.0.2]:43737: Connection reset by peer",
                 self.glog(21, "W", API + "897] Sending process 4712 closing signal SIGTERM"),
                 self.glog(21.3, "E", API + "869] failed (exitcode: -9) local_rank: 2 (pid: 4714) of "
                           "binary: /usr/bin/python3")]
        if summary:
            lines += ["Root Cause (first observed failure):", "[0]:",
                      self.at(20).strftime("  time      : %Y-%m-%d_%H:%M:%S"),
                      "  host      : gpu-a01", "  rank      : 2 (local_rank: 2)",
                      "  exitcode  : -9 (pid: 4714)", "  error_file: <N/A>",
                      "  traceback : Signal 9 (SIGKILL) received by PID 4714"]
        return lines

    def kernel(self):
        return [self.at(seconds).strftime("%b %d %H:%M:%S gpu-a01 kernel: ") + text
                for seconds, text in (
                    (2, "audit: rate limit exceeded"),
                    (19, "Out of memory: Killed process 4714 (python3) total-vm:58720256kB, "
                         "anon-rss:31457280kB, file-rss:0kB, shmem-rss:0kB, UID:1000 "
                         "pgtables:61640kB oom_score_adj:0"))]


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.checks = Checks()

    def begins(self, what, files, written, *options):
        """When the one incident began; `files` are lines by their names."""
        with tempfile.TemporaryDirectory() as folder:
            for name, lines in files.items():
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("".join(line + "\n" for line in lines))
                os.utime(path, (written.timestamp(),) * 2)
            done = run(self.binary, "analyze", "--output", "verdicts", *options, folder)
        verdicts = [json.loads(line) for line in done.text().splitlines()]
        self.checks.check(len(verdicts) == 1 and verdicts[0]["pattern"] == "first_exit",
                          lambda: "%s: %s" % (what, done.text()[:1000]))
        return datetime.datetime.fromtimestamp(
            min(int(verdict["start_time_unix_nano"]) for verdict in verdicts) / 10**9, UTC)

    def expect(self, what, files, written, start, *options):
        began = self.begins(what, files, written, *options)
        apart = abs(began - start)
        self.checks.check(apart < datetime.timedelta(minutes=1),
                          lambda: "%s: began %s" % (what, began))

    def said_in_source(self):
        for start in (SPRING, NEW_YEAR):
            job = Run(start)
            dated = [job.at(3).strftime("%Y-%m-%d %H:%M:%S,000 INFO step 1")]
            for written in (start + LATER, start + DAY):
                when = "of %s, written %s" % (start.date(), written.date())
                self.expect("summary " + when, {"a.log": job.console()}, written, start)
                self.expect("a line " + when, {"a.log": job.console(dated, summary=False)}, written,
                            start)
                many = ["step %d of 100000" % step for step in range(60000)]
                self.expect("a summary far behind " + when, {"a.log": job.console(many)}, written,
                            start)
                # A date that lies ahead says nothing of when the log was written.
                expires = ["the licence is valid until 2031-01-01 00:00:00"]
                self.expect("a date ahead " + when, {"a.log": job.console(expires)}, written, start)

    def said_by_neighbours(self):
        for start in (SPRING, NEW_YEAR):
            job = Run(start)
            bare = job.console(summary=False)
            rank = [job.at(at).strftime("%Y-%m-%d %H:%M:%S,000 [rank0] INFO step ") + str(at)
                    for at in range(20)] + [
                job.at(20).strftime("%Y-%m-%d %H:%M:%S,000 [rank0] ERROR RuntimeError: Connection "
                                    "closed by peer [10.0.0.2]:43737")]
            when = "of " + str(start.date())
            self.expect("the kernel's log " + when,
                        {"console.log": job.console(), "kern.log": job.kernel()}, start + LATER, start)
            self.expect("the kernel's log, by a zone that is set " + when,
                        {"console.log": job.console(), "kern.log": job.kernel()}, start + LATER,
                        start, "--set", "receivers.file.timezone=UTC")
            for name in ("a.log", "z.log"):
                self.expect("%s, a console %s" % (name, when), {name: bare, "rank0.log": rank},
                            start + LATER, start)

    def said_nowhere(self):
        """The age of the file counts, and all of it is of one year."""
        job = Run(SPRING)
        self.expect("nowhere", {"a.log": job.console(summary=False)}, SPRING + DAY, SPRING)


def main(binary):
    suite = Suite(binary)
    suite.said_in_source()
    suite.said_by_neighbours()
    suite.said_nowhere()
    return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
